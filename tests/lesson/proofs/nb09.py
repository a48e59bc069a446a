"""Notebook 09: who may attend to whom."""

import math

import torch
import torch.nn.functional as F

from helpers.attention import MultiHeadAttention, causal_mask
from helpers.letters import train
from helpers.sorter import Sorter, alphabetical, fill, sort
from tests.lesson.proofs import proves, run, same, written


@proves("09.p1")
def padding_behind_a_text(texts):
    (n_padding,), (word, *_) = texts["question"].gives(), texts["question"].quoted()
    T, layer = len(word), MultiHeadAttention(32, n_head=4)
    x = torch.randn(1, T + n_padding, 32)
    alone, padded = layer(x[:, :T]), layer(x)
    changed = [not same(alone[:, t], padded[:, t], 1e-5) for t in range(T)]
    unmasked = layer(x[:, :T], mask=None) - layer(x, mask=None)[:, :T]
    assert (unmasked.abs() > 1e-3).any(dim=2).all()  # why a: without a mask, all three change
    for name in ("a", "why a", "why c"):
        texts[name].says(T)
    return {
        "all three": all(changed),
        "only that": changed == [False] * (T - 1) + [True],
        "none": not any(changed),
    }


@proves("09.p2")
def empty_rows_in_two_layers(texts):
    n_layer, *empty, of_nothing = texts["question"].gives()
    real = torch.ones(1, 5).index_fill(1, torch.tensor(empty), 0).bool()
    out, nan, mask = torch.randn(1, 5, 4), [], causal_mask(5) & real[:, None, :]
    for _ in range(n_layer):
        weights = (out @ out.mT).masked_fill(~mask, -math.inf).softmax(dim=-1)
        out = weights @ out
        nan.append(out.isnan().any(dim=2)[0].nonzero().flatten().tolist())
    text = [t for t in range(5) if t not in empty]
    assert math.isnan(of_nothing) and nan[0] == empty
    assert (weights[0, text][:, empty] == 0).all()  # and yet the output is nan
    for name, around in {"why a": [*text, *empty, 0], "why c": [*text, 0]}.items():
        assert math.isnan(run(texts[name].says(*around, ...), nan=math.nan))
    texts["why b"].says(text[0], 0)
    holds = {letter: nan[1] == texts[letter].gives() for letter in "ab"}
    return holds | {"all five": len(nan[1]) == texts["c"].gives()[0]}


@proves("09.p3")
def nothing_to_read(texts):
    (word,) = texts["question"].quoted()
    torch.manual_seed(0)
    model = Sorter()
    model.cross.value.requires_grad_(False).weight.zero_()
    train(model, alphabetical, 500, 0.004, falling=True)
    (wrote,) = sort(model, fill([word]))
    (last,) = texts["c"].quoted()
    letters = "abcdefghijklmnopqrstuvwxyz"
    for letter in "ab":
        texts[letter].says(len(wrote))
    assert sort(model, fill(["cat"])) == ["abc"]  # the same for every word
    return {
        "random": wrote not in letters and len(set(wrote)) > 1,
        "one letter": len(set(wrote)) == 1,
        "alphabet": wrote == letters[: letters.index(last) + 1],
    }


@proves("09.p4")
def one_query(texts):
    T_k, function, causal = texts["question"].gives()
    q, k, v = torch.randn(1, 4), torch.randn(T_k, 4), torch.randn(T_k, 4)
    out = run(f"{function}(q, k, v, {causal})", q=q, k=k, v=v)
    wanted = F.scaled_dot_product_attention(q, k, v)
    texts["a"].says(T_k)
    texts["why a"].says(T_k, 0)
    texts["why b"].says(0, 0, 1)
    return {
        "all six": same(out, wanted, 1e-5),
        "first": torch.equal(out, v[:1]),
        "last": same(out, v[-1:], 1e-5),
    }


@proves("09.1")
def batch_mask(texts):
    texts["1"].says(2)  # the rules of the mask
    causal, real = texts["2"].says(..., ("T", "T"), ("B", 1, "T"), ...)
    both, again, diagonal = texts["3"].says(..., ..., ...)
    assert (both, again) == (causal, real)
    sizes = {"real": torch.ones(2, 5).bool(), "T": 5}
    assert run(causal, **sizes).shape == (5, 5) and run(real, **sizes).shape == (2, 1, 5)
    return written("real", "T = real.shape[1]", f"{causal} & {real} | {diagonal}")


@proves("09.2")
def cross_attention(texts):
    q, k, v = texts["2"].says(..., ..., ..., ("B", "T_q", "T_k"))
    real, axis = texts["3"].says(..., ("B", 1, "T_k"), ...)
    masked, scores = texts["4"].says(..., ...)
    assert f"~{real}," in masked
    lines = [f"q, k, v = {q}, {k}, {v}", f"scores = {scores}", f"scores = {masked}"]
    names = "x, memory, real, W_q, W_k, W_v"
    return written(names, *lines, f"torch.softmax(scores, {axis}) @ v")


@proves("09.3")
def prefix_change(texts):
    texts["1"].says(0)
    prefix, last, whole = texts["2"].says(..., ..., ...)
    difference, largest, places = texts["3"].says(..., ..., ...)
    assert prefix in last and difference == f"{last} - {whole}"
    return written("f, x", f"max(({difference}).{largest} for t in {places}).item()")


@proves("09.4")
def three_masks(texts):
    i, j = texts["2"].says(..., ..., ("T", "T"))
    window, prefix, sink = texts["3"].says(..., ..., ...)
    lines = f"i, j = {i}, {j}", f"window = {window}"
    return written("T, n", *lines, f"window, {prefix}, {sink}")
