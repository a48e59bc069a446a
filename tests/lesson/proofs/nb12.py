"""Notebook 12: what a trained model's attention looks like, and what it causes.

The models are those that `make circuits` stores; tests/helpers/circuits asks five seeds.
"""

from contextlib import nullcontext
from functools import cache

import torch

from helpers.circuits import (
    AttentionOnly,
    copied_right,
    equal_weights,
    held_out,
    on_known_letters,
    patch,
    previous_token_score,
    repeated,
    tokens_back,
    train_on_repeats,
    trained_on_repeats,
)
from helpers.circuits.trained import VARIANTS
from helpers.opened import opened
from lesson.exercises import EXERCISES
from tests.lesson.proofs import proves, run, written

BEFORE = tokens_back({1: 1.0})


def right(model, layer=0, pattern=None):
    with patch(model, layer, pattern) if pattern else nullcontext():
        return on_known_letters(model)[1]


@cache
def free():
    torch.manual_seed(0)
    model = AttentionOnly(n_layer=2)
    train_on_repeats(model)
    return model


@proves("12.p1")
def the_exact_pattern_in_layer_1(texts):
    layer, share, weight, as_trained = texts["question"].gives()
    ids, _ = held_out()
    found = previous_token_score(free().attention_weights(ids[:, :-1])[layer]).mean()
    assert abs(found - share) < 0.05 and abs(right(free()) - as_trained) < 0.02
    assert BEFORE(3)[2, 1] == weight
    for name in "bd":
        texts[f"why {name}"].says(1)
    texts["why c"].says(1, layer)
    patched = right(free(), layer, BEFORE)
    assert patched < right(free(), layer, equal_weights)  # why d
    (most,), (least, up_to), (low, high), (less,) = (texts[name].gives() for name in "abcd")
    return {
        "a": patched > most,
        "b": least / 100 <= patched <= up_to,
        "c": low / 100 <= patched <= high,
        "d": patched < less,
    }


def right_with(back, weight):
    """The share of known letters, with this weight so far back in layer 0 and no other."""
    ids, period = held_out()
    put = {(0, 0): weight * tokens_back({back: 1.0})(48)}
    hit = opened(free(), ids[:, :-1], put, n_head=1)[0].argmax(dim=-1) == ids[:, 1:]
    return hit[torch.arange(48) >= period].double().mean()


@proves("12.p7")
def the_strength_of_the_trained_layer(texts):
    full, weight, zero = texts["question"].gives()
    maps = free().attention_weights(held_out()[0][:, :-1])
    assert abs(previous_token_score(maps[0]).mean() - weight) < 0.02 and (full, zero) == (1, 0)
    share = right_with(1, weight)
    return {name: abs(share - texts[name].gives()[0]) < 0.07 for name in "bcd"} | {
        "a": share < texts["a"].gives()[0]
    }


@proves("12.p8")
def a_control_of_the_place(texts):
    (weight,) = texts["question"].gives()
    texts["why d"].says(0, 0)
    assert right_with(1, weight) > 0.7 and right_with(2, weight) < 0.2
    same = {letter: texts[letter].gives()[-1] == weight for letter in "abcd"}
    return {letter: same[letter] and "two letters back" in texts[letter].text for letter in same}


@proves("12.p2")
def trained_with_the_exact_pattern(texts):
    first, second, ends = texts["question"].gives()
    assert (first, second) == (0, 1) and abs(right(free()) - ends) < 0.02
    model = trained_on_repeats("first layer by hand")
    end = right(model, 0, BEFORE)
    layer, steps, half = texts["why a"].gives()
    assert layer == second
    torch.manual_seed(0)
    early = VARIANTS["first layer by hand"].new()
    with patch(early, 0, BEFORE):
        assert train_on_repeats(early, steps)[-1].right > half
    texts["why d"].says(2)
    assert abs(copied_right(1) - end) < 0.03 and abs(copied_right(2) - right(free())) < 0.03
    (less,), (most,) = texts["a"].gives(), texts["d"].gives()
    (low, high), (least, up_to) = texts["b"].gives(), texts["c"].gives()
    return {
        "a": end < less,
        "b": low / 100 <= end <= high,
        "c": least / 100 <= end <= up_to,
        "d": end > most,
    }


@proves("12.p5")
def the_exact_pattern_in_a_head_of_the_own_model(texts):
    layer, left, zero = texts["question"].gives()
    assert layer == zero == 0 and abs(right(free(), 0, BEFORE) - left) < 0.02
    maps = free().attention_weights(held_out()[0][:, :-1])
    found = previous_token_score(maps[0]).mean()
    torch.manual_seed(0)
    model, generator = EXERCISES["14.TinyGPT"].reference(26, 48), torch.Generator().manual_seed(0)
    EXERCISES["05.train"].reference(model, lambda: repeated(32, generator)[0], 400)
    ids, period = held_out()
    _, weights = opened(model, ids[:, :-1])
    scores = previous_token_score(weights[0]).mean(dim=0)
    logits, _ = opened(model, ids[:, :-1], {(0, scores.argmax().item()): BEFORE(48)})
    hit = logits.argmax(dim=-1) == ids[:, 1:]
    share = hit[torch.arange(48) >= period].double().mean()
    texts["why a"].says(int(1 / found.item()))
    (half,) = texts["why b"].gives()
    assert half < 0.7 < scores.max() < 1
    (less,), (about,), (more,) = (texts[name].gives() for name in "abc")
    return {"a": share < less, "b": abs(share - about) < 0.2, "c": share > more}


# ---------------------------------------------------------------- hints


@proves("12.1")
def induction(texts):
    texts["1"].says("t - period")
    texts["2"].says("weights[t, t - period + 1]")
    rows, found = texts["3"].says(..., ...)
    return written("weights, period", "T = len(weights)", f"rows = {rows}", f"{found}.mean()")


@proves("12.2")
def patched(texts):
    layer_value, _, _, heads = texts["2"].gives()
    assert layer_value == "layer.value(x)" and heads == ("B", "n_head", "T", "head_size")
    product, after, small, last = texts["3"].gives()
    assert run(product, pattern=torch.ones(5, 5), v=torch.ones(2, 3, 5, 4)).shape == (2, 3, 5, 4)
    assert (after, small, last) == (heads, ("T", "T"), "layer.proj")
    values, whole = texts["4"].gives()
    assert values.startswith(layer_value) and product in whole
    return written("layer, x, pattern", "B, T, C = x.shape", f"v = {values}", whole)


@proves("12.3")
def without_head(texts):
    texts["1"].says("layer.proj", "weights @ v", "layer.proj")
    call, _, value, _ = texts["2"].gives()
    out, _, place, zero, proj = texts["3"].gives()
    values = f"{value}.unflatten(2, (layer.n_head, -1)).transpose(1, 2)"
    lines = f"_, weights = {call}", f"v = {values}", f"out = {out}", f"{place} = {zero}"
    return written("layer, x, head", *lines, f"{proj}(out.transpose(1, 2).flatten(2))")
