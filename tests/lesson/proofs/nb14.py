"""Notebook 14: what attention costs.

Times are compared where one is several times the other, so that a busy machine changes no key.
"""

import functools
from time import perf_counter

import torch

from attention_base.same import one_thread
from helpers import cost
from helpers.attention import attention, causal_mask
from helpers.gpt import encode
from helpers.positions import rotary
from helpers.training import shipped_model
from lesson.exercises import EXERCISES
from tests.lesson.proofs import proves, run, written

# As in the notebook: beginnings of four texts, 20 letters each.
PROMPTS = (
    'The "for" statement ',
    "If the expression is",
    "Python is a language",
    "The standard library",
)


@torch.no_grad()
def moved_behind(mask, seed):
    """How far the probabilities of 64 texts move, (64, 236), if a cache reads 20 letters so."""
    gpt, letters = shipped_model()
    ids = torch.stack([encode(text, letters) for text in PROMPTS * 16])
    generator = torch.Generator().manual_seed(seed)
    ids = gpt.generate(ids, 236, 0.5, generator=generator, cache=True)
    logits = gpt(ids[:, :-1])
    cache = gpt.new_cache()
    first, rest = gpt(ids[:, :20], mask=mask, cache=cache), gpt(ids[:, 20:-1], cache=cache)
    found = torch.cat([first[:, -1:], rest], dim=1)
    return (found.softmax(dim=-1) - logits[:, 19:].softmax(dim=-1)).abs().amax(dim=-1)


def keys_of(gpt, ids, mask):
    """The keys (n_layer, B, T, C) of each block."""
    found = []
    hooks = [
        block.attention.key.register_forward_hook(lambda _layer, _x, out: found.append(out))
        for block in gpt.blocks
    ]
    gpt(ids, mask=mask)
    for hook in hooks:
        hook.remove()
    return torch.stack(found)


@proves("14.p1")
def keys_that_change(texts):
    new, first, last = texts["question"].gives()
    gpt, letters = shipped_model()
    ids = torch.randint(len(letters), (2, new + 1), generator=torch.Generator().manual_seed(0))
    assert (first, last) == (0, new - 1)

    @torch.no_grad()
    def changed(mask):
        pair = keys_of(gpt, ids, mask)[:, :, :new], keys_of(gpt, ids[:, :new], mask)
        return ((pair[0] - pair[1]).abs().amax(dim=(1, 2, 3)) > 1e-3).tolist()

    assert changed("causal") == [False, False]  # why a
    one, two = changed(None)
    for text, blocks in {"why a": [0], "why b": [0], "why c": [0, 1, 0], "why d": [1, 0]}.items():
        texts[text].says(*blocks)
    texts["b"].says(0), texts["c"].says(1)
    return {
        "none": not one and not two,
        "block 0": one and not two,
        "block 1": two and not one,
        "both blocks": one and two,
    }


@proves("14.p7")
def letters_behind_a_prompt(texts):
    (size,) = texts["question"].gives()
    assert {len(text) for text in PROMPTS} == {size}
    assert moved_behind("causal", 0).max() < 1e-5
    for name, blocks in {"why b": [1], "why c": [0, 1], "why d": [0, 1]}.items():
        texts[name].says(*blocks)
    holds = []
    for seed in range(3):
        moved = moved_behind(None, seed).mean(dim=0)
        first, rest, last = moved[:3].mean(), moved[20:].mean(), moved[-3:].mean()
        holds.append((rest > first / 2, first > 20 * rest, last > first, moved.max() < 1e-5))
    words = ("equally", "first few", "last few", "none")
    return {word: all(held) for word, held in zip(words, zip(*holds, strict=True), strict=True)}


def seconds(*functions):
    """The least seconds of each, of three calls in turns."""
    found = [[] for _ in functions]
    for _ in range(3):
        for function, runs in zip(functions, found, strict=True):
            start = perf_counter()
            function()
            runs.append(perf_counter() - start)
    return map(min, found)


@proves("14.p3")
def blocks_against_the_formula(texts):
    _, T, n_head, d, name, steps = texts["question"].gives()
    blockwise = getattr(cost, name)
    q, k, v = torch.randn(3, 1, n_head, T, d)
    block, heads = texts["why a"].gives()
    assert heads == n_head and block[0] == block[1]
    n = T // block[0]
    assert steps == n * (n + 1) // 2
    half, factor = texts["why d"].gives()
    assert half == texts["why c"].says(...) and 0.45 < 1 - steps / n**2 < half == 1 / factor
    with one_thread():
        formula, blocks = seconds(
            lambda: attention(q, k, v, causal_mask(T)), lambda: blockwise(q, k, v)
        )
        scores = torch.randn(1, n_head, T, T)
        there = torch.empty_like(scores)
        new, ready = seconds(lambda: scores / 4, lambda: torch.div(scores, 4, out=there))
    assert new > 1.5 * ready, "why d: much of the time goes into getting memory"
    (ten,), (twice,) = texts["a"].gives(), texts["b"].gives()
    return {
        "ten times": blocks > ten / twice * formula,
        "twice": ten / twice * formula >= blocks > 1.4 * formula,
        "about as fast": 1.4 * formula >= blocks > formula / factor,
        "several": blocks <= formula / factor,
    }


@proves("14.p6")
def writing_with_a_cache(texts):
    read, n, once = texts["question"].gives()
    begin = once - n + 1
    assert read == sum(range(begin, begin + n))
    (times,) = texts["a"].gives()
    assert times == round(read / once)
    texts["why a"].says(n)
    texts["why b"].says(n)
    texts["why c"].says(once)
    generate = EXERCISES["14.generate"].reference
    model = EXERCISES["14.TinyGPT"].reference(100, context_length=256).eval()
    prompts = torch.randint(100, (4, begin))
    ways = (functools.partial(generate, model, prompts, n, cached=way) for way in (False, True))
    with one_thread():
        slow, fast = seconds(*ways)
        one, twenty = seconds(lambda: model(prompts[:, :1]), lambda: model(prompts[:, :20]))
    assert twenty < 3 * one, "why a"
    return {
        "a": slow > times / 2 * fast,
        "several": 2 * fast < slow <= times / 2 * fast,
        "hardly": fast <= slow <= 2 * fast,
        "slower": slow < fast,
    }


# ---------------------------------------------------------------- hints


@proves("14.generate")
def hints_of_generate(texts):
    window = texts["3"].says("model.context_length", ...)
    return written(
        "model, ids, n, temperature=1.0, cached=False",
        "cache, new = {}, ids",
        "for _ in range(n):",
        f"    window = {window}",
        "    if ids.shape[1] > model.context_length:",
        "        cache, new = {}, window",
        "    logits = model(new, cache=cache) if cached else model(window)",
        "    new = torch.multinomial(torch.softmax(logits[:, -1] / temperature, dim=-1), 1)",
        "    ids = torch.cat([ids, new], dim=1)",
        "ids",
    )


@proves("14.2")
def one_score_at_a_time(texts):
    new, factor, weight = texts["2"].gives()
    *again, total, weighted = texts["3"].gives()
    assert again == [factor, weight]
    score, old, two = torch.tensor([3.0, 1.0, 2.0])
    assert run(new, largest=old, score=score) == score and run(factor, largest=old, new=two) < 1
    start = "largest, total = torch.tensor(-torch.inf), 0", "weighted = torch.zeros_like(values[0])"
    step = f"new = {new}; factor, weight = {factor}, {weight}; total = {total}"
    step = f"for score, value in zip(scores, values): {step}; weighted = {weighted}; largest = new"
    return written("scores, values", *start, step, "weighted / total")
