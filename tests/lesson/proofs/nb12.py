"""Notebook 12: what a trained model's attention looks like, and what it causes.

The models are those that `make circuits` stores; tests/helpers/circuits asks five seeds.
"""

from contextlib import nullcontext
from functools import cache

import torch

from helpers.circuits import (
    AttentionOnly,
    ablate,
    copied_right,
    equal_weights,
    held_out,
    induction_score,
    on_known_letters,
    patch,
    previous_token_score,
    repeated,
    tokens_back,
    train_on_repeats,
    trained_on_repeats,
)
from helpers.circuits.trained import VARIANTS
from helpers.training import about_shipped_model, shipped_model
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
    found = previous_token_score(free().attention_weights(ids[:, :-1])[layer - 1]).mean()
    assert abs(found - share) < 0.05 and abs(right(free()) - as_trained) < 0.02
    assert BEFORE(3)[2, 1] == weight
    for name in "bd":
        texts[f"why {name}"].says(2)
    patched = right(free(), layer - 1, BEFORE)
    assert patched < right(free(), layer - 1, equal_weights)  # why d
    (most,), (least, up_to), (low, high), (less,) = (texts[name].gives() for name in "abcd")
    return {
        "a": patched > most,
        "b": least / 100 <= patched <= up_to,
        "c": low / 100 <= patched <= high,
        "d": patched < less,
    }


@proves("12.p2")
def trained_with_the_exact_pattern(texts):
    one, two, ends = texts["question"].gives()
    assert (one, two) == (1, 2) and abs(right(free()) - ends) < 0.02
    model = trained_on_repeats("first layer by hand")
    end = right(model, 0, BEFORE)
    layer, steps, half = texts["why a"].gives()
    assert layer == two
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


@proves("12.p3")
def without_one_of_four(texts):
    layer, n_head, whole = texts["question"].gives()
    model = trained_on_repeats("four heads")
    assert abs(right(model) - whole) < 0.02
    ids, period = held_out()
    scores = induction_score(model.attention_weights(ids[:, :-1])[layer - 1], period).mean(dim=0)
    with ablate(model, layer - 1, int(scores.argmax())):
        without = right(model)
    texts["why b"].says(1 / n_head, 1 / n_head)
    texts["why c"].says(n_head - 1)
    (least,), (about,), (half,), (less,) = (texts[name].gives() for name in "abcd")
    return {
        "a": without > least,
        "b": abs(without - about) < 0.1,
        "c": abs(without - half) < 0.1,
        "d": without < less,
    }


@proves("12.p4")
def the_model_that_writes(texts):
    n_layer, n_head, least = texts["question"].gives()
    model, letters = shipped_model()
    ids, period = repeated(100, torch.Generator().manual_seed(2), len(letters))
    weights = model.attention_weights(ids[:, :-1]).transpose(0, 1)  # (B, layer, head, T, T)
    assert weights.shape[1:3] == (n_layer, n_head)
    above = (induction_score(weights, period).mean(dim=0) > least).sum().item()
    (two,) = texts["b"].gives()
    four, steps, times = texts["why b"].gives()
    assert four == n_head and steps == 200 and about_shipped_model()["n_step"] > times * steps
    texts["c"].says(3, n_head)
    texts["why c"].says(n_head, n_layer)
    (most,) = texts["d"].gives()
    texts["why d"].says(1, 1)
    return {
        "none": above == 0,
        "one or two": 1 <= above <= two,
        "three": 3 <= above <= n_head,
        "more": above > most,
    }


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
