"""Notebook 05: scaling."""

import torch

from helpers.tasks import NounHeads
from lesson.exercises import EXERCISES
from tests.lesson.proofs import proves, run, run_cells, written


def near(value, said, share=0.1):
    return abs(value / said - 1) < share


@proves("05.p5")
def size_of_a_score(texts):
    large, times, small = texts["question"].gives()
    assert times * small == large
    size = {
        d: (torch.randn(20_000, d) * torch.randn(20_000, d)).sum(dim=-1).std()
        for d in (small, large)
    }
    texts["a"].says(times)
    texts["b"].says(times**0.5)
    texts["c"].says(2)
    for letter in "bcd":
        texts[f"why {letter}"].says(*[times] * (letter != "d"), times**0.5, times**0.5)
    found = size[large] / size[small]
    return {
        "a": near(found, times),
        "b": near(found, times**0.5),
        "twice": near(found, 2),
        "as large": near(found, 1),
    }


@proves("05.p1")
def step_of_a_wrong_weight(texts):
    low, _, high, root = texts["question"].gives()
    assert root == "w - 1"
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


@proves("05.p4")
def raw_heads_at_three_rates(texts):
    said, d, first, steps, *rates = texts["question"].gives()
    train = EXERCISES["05.train"].reference
    windows = run_cells("05", "# Set-up", "windows = ")["windows"]

    def learned(rate, divisor=1):
        torch.manual_seed(0)
        heads = NounHeads(d, divisor)
        train(heads, lambda: windows[torch.randint(400, (20 * 64,))], steps, lr=rate)
        return int((heads.wrong(windows).sum(dim=-1) < 4).sum())

    assert learned(first) == said
    low, middle, high = found = [learned(rate) for rate in rates]
    assert [learned(rate, d**0.5) for rate in rates] == [20, 20, 20]
    one_step = 2 * d * rates[2] * torch.randn(1000, d).abs().mean()  # of a query, and of its key
    for letter, rate in zip("abc", rates, strict=True):
        texts[letter].says(rate)
    texts["why b"].says(rates[0], rates[2], high, len(rates))
    texts["why c"].says(d, rates[2])
    texts["why d"].says(rates[1], middle, rates[0])
    assert low == 0 and one_step > 100
    best = {letter: n == max(found) for letter, n in zip("abc", found, strict=True)}
    return {**best, "alike": len({*found}) == 1}


@proves("05.3")
def slope_of_a_weight(texts):
    texts["1"].says(2, 0, 0)
    copy = texts["2"].says(...)
    again, first, zero, growth = texts["3"].says(..., ..., ..., ...)
    assert (copy, zero) == (again, 0)
    grown = f"larger = {copy}", f"{first} += step"
    return written("scores, step", *grown, f"({growth}) / step", torch=torch)


@proves("05.2")
def scaled_weights(texts):
    texts["1"].says("B", "T", "d")
    size, root = texts["2"].says(...), texts["3"].says(...)
    softmax = EXERCISES["03.1"].reference
    return written("q, k", f"d = {size}", f"softmax(q @ k.mT / ({root}))", softmax=softmax)
