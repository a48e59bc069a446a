"""Notebook 03: from scores to weights."""

import math

import torch

from helpers.attention import causal_mask
from tests.proofs import proves, run, run_cells, same, written


def causal(scores, fill=float("-inf")):
    return scores.masked_fill(~causal_mask(scores.shape[-1]), fill)


@proves("03.p1")
def zeros_masked_and_the_triangle(texts):
    score, fill, _ = texts["question"].gives()
    weights = causal(torch.full((8, 8), float(score)), fill).softmax(dim=-1)
    ones = torch.ones(8, 8).tril()
    largest = (weights - ones / ones.sum(dim=-1, keepdim=True)).abs().max().item()
    texts["question"].says(0, -math.inf, "02")
    texts["why a"].says(math.exp(score), 1, math.exp(fill), 0, 8, weights[3, 0], t=3)
    step = 10.0 ** round(math.log10(torch.finfo(torch.float32).eps / 16))  # of 1/8
    texts["b"].says(step)
    texts["why b"].says(2, "02")
    near = 0.1 < largest / step < 10
    return {"exactly": largest == 0, "b": near, "different": largest > 1e-6}


@proves("03.p2")
def future_filled_with_0(texts):
    fill, _, others, row, _, T = texts["question"].gives()
    texts["question"].says(0, -math.inf, others, row, "T", T)
    weights = causal(torch.full((T, T), float(others)), fill).softmax(dim=-1)[row]
    itself = torch.eye(T)[row]
    texts["a"].says(*itself, fill)
    texts["why a"].says(0, fill, math.exp(fill), math.exp(fill), row)
    texts["why b"].says(T, others, T, math.exp(others), 1 / T, row)
    texts["c"].says(fill)
    texts["why c"].says(weights.sum(), row)
    assert weights[row + 1 :].min() > 0
    equal = weights.tolist() == texts["b"].gives() * T
    return {"a": torch.equal(weights, itself), "b": equal, "nan": weights.isnan().any()}


@proves("03.p3")
def scores_of_1(texts):
    new, old, fill = texts["question"].gives()
    before, after = (causal(torch.full((8, 8), float(s)), fill).softmax(dim=-1) for s in (old, new))
    texts["question"].says(new, old, -math.inf)
    texts["why a"].says(math.exp(old))
    texts["b"].says(math.exp(new - old), math.exp(new - old))
    texts["c"].says(before.sum(dim=-1)[0])
    texts["why c"].says(after.sum(dim=-1)[0])
    (_, factor), (total,) = texts["b"].gives(), texts["c"].gives()
    larger = torch.allclose(after, factor * before, rtol=0, atol=1e-2)
    return {"same": same(after, before), "b": larger, "c": abs(after.sum() / 8 - total) > 1e-6}


@proves("03.p4")
def the_printed_matrix(texts):
    cells = ("import torch", "torch.manual_seed(1337)\ntokens", "printed = torch.tensor(")
    shown = run_cells("03", *cells)
    printed, scores = shown["printed"], shown["batch_scores"]
    masked, sums = causal(scores), printed.sum(dim=-1)

    def printed_is(weights):
        return torch.allclose(weights[0], printed, atol=1e-4)

    above_1 = sums[sums > 1.001]
    texts["why a"].says(1, len(above_1), *(round(one.item(), 2) for one in above_1))
    texts["why b"].says(printed.triu(1).max())
    assert torch.allclose(printed.sum(dim=0), torch.ones(8), atol=1e-3)
    softmax = texts["why c"].says(1, printed[-1, -1], ..., ("T", "T"), ("B", "T", "T"), 1)
    texts["why d"].says(masked.min(), printed.min(), printed.max())
    assert scores[0].tril().min() < 0
    return {
        "after the softmax": printed_is(scores.softmax(dim=-1).tril()),
        "forgot the mask": printed_is(scores.softmax(1)) or printed_is(scores.softmax(-1)),
        "along the columns": printed_is(run(f"masked.{softmax}", masked=masked)),
        "forgot the softmax": printed_is(masked),
    }


@proves("03.1")
def causal_softmax(texts):
    texts["1"].says(2)
    fill = texts["2"].says(..., ("T", "T"))
    value = f"mask, value = ~causal_mask(scores.shape[-1]), {texts['3'].says(...)}"
    return written("scores", value, f"scores.{fill}.softmax(dim=-1)")


@proves("03.2")
def look_one_back(texts):
    high, cell, low = texts["2"].says(..., ..., ...)
    texts["3"].says(0, causal(torch.randn(4, 4)).softmax(dim=-1)[0, 0])
    scores = f"scores = torch.full((T, T), {low}.0)"
    line = f"for t in range(1, T): scores{cell} = {high}"
    return written("T", scores, line, "causal(scores).softmax(dim=-1)", causal=causal)


@proves("03.3")
def safe_softmax(texts):
    largest, kept = texts["2"].says(...), texts["3"].says(...)
    scores = torch.randn(4, 3)
    texts["1"].says((scores - run(largest, scores=scores)).max())
    exp = f"exp = torch.exp(scores - {largest})"
    return written("scores", exp, f"exp / exp.sum(dim=-1, {kept})")
