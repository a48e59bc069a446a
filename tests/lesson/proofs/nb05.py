"""Notebook 05: scaling."""

import torch

from lesson.exercises import EXERCISES
from tests.lesson.proofs import proves, run, run_cells, written


def near(value, said, share=0.1):
    return abs(value / said - 1) < share


@proves("05.p1")
def step_of_a_wrong_weight(texts):
    low, _, high = texts["question"].gives()
    losses, steps, slopes = [], [], []
    for weight in (low, high):  # of two scores, the other is 0
        score = torch.tensor(weight).logit().requires_grad_()
        loss = (torch.sigmoid(score) - 1) ** 2
        loss.backward()
        losses.append(loss.item())
        steps.append(score.grad.abs().item())
        slopes.append(weight * (1 - weight))
    farther = steps[1] / steps[0]  # in B than in A
    (times,) = texts["a"].gives()
    assert near(losses[0] / losses[1], times)  # as far as the losses differ
    texts["why a"].says(times, *losses, *slopes, "B")
    texts["why b"].says(*slopes, "B")
    texts["why c"].says("B", *slopes)
    texts["why d"].says(*slopes, "B")
    return {
        "a": near(1 / farther, times),
        "equally": near(farther, 1),
        "c": near(farther, texts["c"].gives()[-1]),
        "d": near(farther, texts["d"].gives()[-1], 0.01),
    }


@proves("05.p2")
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


@proves("05.p3")
def raw_heads_with_adam(texts):
    d, variance, steps, rate, small = texts["question"].gives()
    assert (variance, steps) == (1, 100)  # as in `twenty`
    here = run_cells("05", "import torch", "texts, wanted", "def twenty(")
    ends = here["twenty"](d, 1, rate, by=here["descend_with_adam"])
    learned = (ends < small).float().mean().item()  # the share of the heads
    (half,) = texts["b"].gives()
    return {"hardly": learned < 0.2, "b": near(learned, half, 0.5), "all": learned == 1}


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
