"""Notebook 03: from scores to weights."""

import math

import torch

from helpers.attention import causal_mask
from lesson.exercises import EXERCISES
from tests.lesson.proofs import proves, run, run_cells, written


def causal(scores, fill=float("-inf")):
    return scores.masked_fill(~causal_mask(scores.shape[-1]), fill)


@proves("03.p1")
def six_weights_for_four_texts(texts):
    shown = run_cells("03", "# Set-up", "texts = [*TEXTS")
    x, words = shown["x"], [text.split() for text in shown["texts"]]
    x = torch.where(x[..., :1] == x[..., 1:], 0.0, x)  # “warm” changes no guess
    differences = x[..., 0] - x[..., 1]  # (4, 6), times a row: above 0, we guess “slept”
    slept = torch.tensor(["cat" in text for text in words])

    def guesses_right(row):
        ahead = differences @ row
        return bool(((ahead > 1e-6) == slept).all() and (ahead[~slept] < -1e-6).all())

    def with_weights(one, two):
        return torch.tensor([0.0, one, two, 0.0, 0.0, 0.0])

    # Texts 2 and 3 exclude each other: the sum of what each needs above 0 is never above 0.
    assert (differences[2] + differences[3]).max() <= 0 and slept[2] and slept[3]
    half, first, _, second = texts["a"].gives()
    texts["a"].says(0.5, first, 0.5, second)
    texts["question"].says(6, 1, 6, 4, 4)
    texts["why a"].says(0.5, 0.5, 0.5, 0.5)
    assert (with_weights(0.5, 0.5) @ x[3]).tolist() == (with_weights(half, half) @ x[2]).tolist()
    texts["b"].says(2, 1)
    texts["why b"].says(2)
    assert words[3][2] == "ate" and words[2][1] == "hungry"
    texts["c"].says(1, 2)
    texts["why c"].says(1)
    texts["why d"].says(1, 2, 2, 1, 3)
    return {
        "½": guesses_right(with_weights(0.5, 0.5)),
        "2 than on word 1": guesses_right(with_weights(0.4, 0.6)),
        "1 than on word 2": guesses_right(with_weights(0.6, 0.4)),
        "no": True,
    }


def row_of_it():
    cells = ("# Set-up", "texts = [*TEXTS", "def rate(text)", "row = rate(texts[0])")
    return run_cells("03", *cells)["row"]


@proves("03.p2")
def scores_doubled(texts):
    row = row_of_it()
    cat, warm = row[1].item(), row[3].item()
    old, new = row.softmax(-1)[3], (2 * row).softmax(-1)[3]
    exp = torch.exp(row)
    texts["question"].says(warm, old, 2, 6, 2 * warm, 2 * cat, 2 * row[0].item())
    texts["a"].says(new)
    ahead = cat - warm
    texts["why a"].says(
        ahead, 2 * ahead, math.e**ahead, exp[1] / exp[3], math.e ** (2 * ahead), 54.6
    )
    assert abs(math.e ** (2 * ahead) - 54.6) < 0.05
    texts["b"].says(old)
    texts["why b"].says(2, 2)
    texts["c"].says(2 * old)
    texts["why c"].says(exp[3], exp[3] ** 2, 2, exp[1], exp[1] ** 2)
    said = {letter: texts[letter].gives()[0] for letter in "abc"}
    return {letter: abs(one - new) <= 0.005 for letter, one in said.items()}


@proves("03.p3")
def cat_masked(texts):
    row = row_of_it()
    masked = row.clone()
    masked[1] = -math.inf
    exp, before, after = torch.exp(row), row.softmax(-1), masked.softmax(-1)
    left = exp.sum() - exp[1]
    texts["question"].says(0, before[1], before[3], before[0])
    texts["a"].says(before[3])
    texts["why a"].says(row[3], exp[3], exp.sum(), left)
    texts["b"].says(before[3] + before[1] / 5)
    texts["why b"].says(before[3], 1 / 5, before[1])
    texts["c"].says(after[3])
    texts["why c"].says(exp.sum(), left, exp.sum() / left, exp[3], left, after[3])
    texts["d"].says(before[3] + before[1])
    texts["why d"].says(before[3], before[1])
    said = {letter: texts[letter].gives()[0] for letter in "abcd"}
    return {letter: abs(one - after[3]) <= 0.005 for letter, one in said.items()}


@proves("03.p4")
def two_nouns(texts):
    cells = ("# Set-up", "texts = [*TEXTS", "with_noun", "two_nouns = embed")
    solutions = {f.__name__: f for f in (EXERCISES[i].reference for i in ("03.1", "03.2"))}
    two = run_cells("03", *cells, **solutions)["two_nouns"]
    scores = (two @ two.mT)[0, 5]
    cat, soup, it = scores[1].item(), scores[3].item(), scores[5].item()
    assert cat == soup
    texts["question"].says(2)
    weights = scores.softmax(-1)
    alone = scores.clone()
    alone[3] = 0  # no second noun
    ahead = alone.softmax(-1)[1]
    texts["a"].says(ahead, 0.01)
    texts["why a"].says(2)
    texts["b"].says(0.01, ahead)
    texts["c"].says(weights[1], weights[3])
    texts["why c"].says(cat - it, cat - scores[0].item())
    said = {letter: texts[letter].gives() for letter in "abc"}
    return {letter: abs(one - weights[1]) <= 0.005 for letter, (one, _) in said.items()}


@proves("03.1")
def causal_softmax(texts):
    texts["1"].says(2)
    fill = texts["2"].says(..., ("T", "T"))
    value = f"mask, value = ~causal_mask(scores.shape[-1]), {texts['3'].says(...)}"
    return written("scores", value, f"scores.{fill}.softmax(dim=-1)")


@proves("03.2")
def attend(texts):
    texts["1"].says(2, "causal_softmax", ("B", "T", "T"), ("B", "T", "C"))
    scores = texts["2"].says(..., "causal_softmax")
    average = texts["3"].says(..., "02")
    return written("x", f"weights = causal({scores}).softmax(dim=-1)", average, causal=causal)


@proves("03.3")
def safe_softmax(texts):
    largest, kept = texts["2"].says(...), texts["3"].says(...)
    scores = torch.randn(4, 3)
    texts["1"].says((scores - run(largest, scores=scores)).max())
    exp = f"exp = torch.exp(scores - {largest})"
    return written("scores", exp, f"exp / exp.sum(dim=-1, {kept})")


@proves("03.generate")
def hints_of_generate(texts):
    texts["1"].gives()
    logits = texts["2"].says(..., ("B", "V"))
    axis, draw = texts["3"].says(..., ..., ("B", 1))
    longer = texts["4"].says(...)
    return written(
        "model, ids, n, temperature=1.0",
        "for _ in range(n):",
        f"    weights = torch.softmax({logits} / temperature, {axis})",
        f"    drawn = {draw}",
        f"    ids = {longer}",
        "ids",
    )
