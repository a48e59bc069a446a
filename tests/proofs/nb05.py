"""Notebook 05: scaling."""

import math

import torch

from helpers.lesson.exercises import EXERCISES
from tests.proofs import proves, run, run_cells, same, written


def near(value, said, share=0.1):
    return abs(value / said - 1) < share


@proves("05.p1")
def variance_of_raw_scores(texts):
    variance, layer, entries = texts["question"].gives()
    C, d = run(layer).in_features, run(layer).out_features
    with torch.no_grad():
        weights = torch.stack([run(layer).weight.T for _ in range(400)])
        x = torch.randn(200, 64, C) * variance**0.5
        q, k = x @ weights[::2], x @ weights[1::2]
        measured = (q @ k.mT).var().item()
    third = C * variance * entries
    assert near(weights.var(), entries, 0.02) and near(q.var(), third, 0.02)
    texts["a"].says(d * variance)  # as its explanation says, for queries and keys of variance 1
    texts["why a"].says(1, C, variance * entries, third)
    texts["b"].says(d * variance / d)
    texts["why b"].says(d**0.5, 1, third)
    texts["c"].says(d * third**2)
    texts["why c"].says(C, variance * entries, third, d, third**2, d * third**2, d * third**2)
    texts["d"].says(third)
    texts["why d"].says(C, variance * entries, third, d)
    return {letter: near(measured, *texts[letter].gives()) for letter in "abcd"}


@proves("05.p2")
def scores_times_9(texts):
    *scores, _, _, factor = texts["question"].gives()

    def largest_weight(factor):
        return (factor * torch.tensor(scores)).softmax(dim=0).max().item()

    second, first = sorted(scores)[-2:]
    gap, n = first - second, len(scores)
    ratio, new_ratio = math.exp(gap), math.exp(factor * gap)
    texts["question"].says(*scores, largest_weight(1), n, factor)
    texts["a"].says(largest_weight(1))
    texts["why a"].says(1, 1, factor)
    texts["b"].says(largest_weight(factor))
    texts["why b"].says(2, gap, factor * gap, ratio, ratio, new_ratio, new_ratio)
    texts["c"].says(largest_weight(1 / factor), n)
    texts["why c"].says(factor, factor)
    right = round(largest_weight(factor), 2)
    return {letter: texts[letter].gives()[0] == right for letter in "abc"}


@proves("05.p3")
def division_forgotten(texts):
    layer, root = texts["question"].gives()
    C, d = run(layer).in_features, run(layer).out_features
    cells = ("def letters_and_pattern", "def weights_of", "def descend")
    here = run_cells("05", "import torch", *cells)
    here["letters"], here["pattern"] = here["letters"][:50], here["pattern"][:50]  # saves seconds
    tokens = here["letters"] @ torch.randn(26, C)
    W_q, W_k = (run(layer).weight.detach().T.requires_grad_() for _ in range(2))
    loss = here["descend"](tokens, W_q, W_k, divisor=1, learning_rate=3.75)[-1]
    zero = torch.zeros(26, 1)
    learns = loss < 0.2 * here["loss_of"](here["letters"], here["pattern"], zero, zero, 1).item()
    draw_batch = run_cells("05", "import torch", "def draw_batch")["draw_batch"]
    x, (to_key, to_query, _), *_ = draw_batch(1337)
    assert to_query.weight.shape == (d, C) and root == d**0.5
    with torch.no_grad():
        raw = to_query(x) @ to_key(x).mT
        assert same(x @ (to_query.weight / root).T @ to_key(x).mT, raw / root)
    texts["why b"].says(1, 256, 1 * 256, raw.var())  # the large head at the beginning
    texts["why c"].says(raw.var(), root, "W_query", root)
    return {"error": math.isnan(loss), "not learn": not learns, "nothing unusual": learns}


@proves("05.1")
def score_variance(texts):
    texts["1"].says(("B", "T", "d"), ("B", "d", "T"))
    root, variance = texts["2"].says(..., -1), texts["3"].says(...)
    scores = f"scores = q @ k.mT / ({root} if scaled else 1)"
    return written("q, k, scaled", "d = q.shape[-1]", scores, variance)


@proves("05.2")
def scaled_weights(texts):
    texts["1"].says("B", "T", "d")
    size, root = texts["2"].says(...), texts["3"].says(...)
    softmax = EXERCISES["03.1"].reference
    return written("q, k", f"d = {size}", f"softmax(q @ k.mT / ({root}))", softmax=softmax)


@proves("05.3")
def soften(texts):
    texts["1"].says(16**0.5, d=16)
    axis = texts["2"].says(...)
    return written("scores, temperature", f"(scores / temperature).softmax(dim={axis})")
