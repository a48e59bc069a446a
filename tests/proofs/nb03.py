"""Notebook 03: from scores to weights."""

import math

import torch

from tests.proofs import proves, rounds_to, run, run_cells


def causal(scores, fill=float("-inf")):
    T = scores.shape[-1]
    return scores.masked_fill(torch.ones(T, T).triu(1) == 1, fill)


@proves("03.p1", "0de0b2")
def zeros_masked_and_the_triangle(texts):
    score = texts["question"].find("All scores are {}, the future is filled with -inf")
    texts["question"].find("the matrix of notebook 02, a triangle of ones divided by its row sums")
    weights = causal(torch.full((8, 8), float(score))).softmax(dim=-1)
    ones = torch.ones(8, 8).tril()
    by_sums = ones / ones.sum(dim=-1, keepdim=True)
    largest = (weights - by_sums).abs().max().item()

    texts["a"].read("exactly equal")
    one, zero, count, share = texts["why a"].find(
        "e⁰ is exactly {}, e^-inf is exactly {}, and a sum of up to {} ones is exact. "
        "Both ways end with the same division, {code}, so"
    )
    assert (math.exp(0), math.exp(-math.inf)) == (one, zero) and torch.ones(count).sum() == count
    assert all(rounds_to(weights[t, 0], round(run(share, t=t), 7), 7) for t in range(count))
    b = texts["b"].read("equal up to rounding, about {}")
    texts["why b"].find("as in notebook 02")
    texts["c"].read("different: exponentials do not give equal weights")
    return {"a": largest == 0, "b": b / 10 < largest < 10 * b, "c": largest > 1e-6}


@proves("03.p2", "c053f2")
def future_filled_with_0(texts):
    fill, others, row, T = texts["question"].read(
        "The future is filled with {} instead of -inf. All other scores are {}, too. "
        "What is row {} of the weights (T = {})?"
    )
    weights = causal(torch.full((T, T), float(others)), fill).softmax(dim=-1)
    a = texts["a"].read("{numbers}, because 0 means no attention")
    assert len(a) == T and a[row] == sum(a) == 1  # all weight on itself
    exponential = texts["why a"].find(
        "A weight of 0 means no attention, but this 0 is a score. Its exponential is e⁰ = {}, "
        "as large as that of token 0 itself."
    )
    assert exponential == math.exp(fill)
    b = texts["b"].read("{} everywhere")
    one, share = texts["why b"].find(
        "All eight scores are 0, so all eight exponentials are {}, and each weight is {code}. "
        "Token 0 attends"
    )
    assert one == math.exp(0) and run(share) == b and T == 8
    texts["c"].read("nan, because 0 cannot be used as a mask")
    total = texts["why c"].find("The rows sum to {} and the shape is right, but token 0 attends")
    assert torch.allclose(weights.sum(dim=-1), torch.tensor(float(total)), atol=1e-6)
    assert weights[0, 1:].min() > 0
    return {
        "a": weights[row].tolist() == a,
        "b": weights[row].tolist() == [b] * T,
        "c": bool(weights[row].isnan().any()),
    }


@proves("03.p3", "8b1f3f")
def scores_of_1(texts):
    new, old = texts["question"].read(
        "Start from scores of {} instead of {}, fill the future with -inf, and apply softmax. "
        "What happens to the weights?"
    )
    before, after = (causal(torch.full((8, 8), float(s))).softmax(dim=-1) for s in (old, new))
    assert math.exp(old) == texts["why a"].find("Every exponential is now e instead of {}.")
    texts["a"].read("they stay the same")
    factor = texts["b"].read("each is e = {} times as large")
    assert rounds_to(math.e, factor)
    total = texts["c"].read("the rows no longer sum to {}")
    assert texts["why c"].find("each row still sums to {}.") == total == 1
    return {
        "a": torch.allclose(before, after, rtol=0, atol=1e-6),
        "b": torch.allclose(after, factor * before, rtol=0, atol=1e-2),
        "c": not torch.allclose(after.sum(dim=-1), torch.tensor(float(total)), atol=1e-6),
    }


@proves("03.p4", "8583c0")
def the_printed_matrix(texts):
    shown = run_cells(
        "03", "import torch", "torch.manual_seed(1337)\ntokens", "printed = torch.tensor("
    )
    printed, scores = shown["printed"], shown["batch_scores"]

    def printed_is(weights):
        return torch.allclose(weights[0], printed, atol=1e-4)

    texts["a"].read("masked after the softmax, and did not divide by the row sums again")
    rows, sums = texts["why a"].find("Here {word} rows sum to {numbers}.")
    totals = printed.sum(dim=-1)
    total = texts["why a"].find("the rows sum to {}, and")
    assert [round(s, 2) for s in totals[totals > total].tolist()] == sums and len(sums) == rows

    texts["b"].read("forgot the mask")
    assert texts["why b"].find("every entry above the diagonal is {}.") == 0
    assert not printed.triu(1).any()
    texts["c"].read("applied the softmax along the columns")
    column, single, call, right_for, wrong_for, axis = texts["why c"].read(
        "Every column sums to {}, and the last column holds a single {}. {code} does this. "
        "It is right for a {shape} matrix, and wrong for {shape}, where axis {} is the query."
    )
    assert torch.allclose(printed.sum(dim=0), torch.tensor(float(column)), atol=1e-3)
    assert printed[:, -1].tolist() == [0] * 7 + [single]
    assert right_for == ("T", "T") and wrong_for == ("B", "T", "T") and wrong_for[axis] == "T"
    texts["d"].read("forgot the softmax")
    texts["why d"].find("Then we would see negative scores, and -inf in the future.")
    low, high = texts["why d"].find("Here all numbers lie between {} and {}.")
    assert printed.min() == low and printed.max() == high and scores[0].tril().min() < 0
    return {
        "a": printed_is(scores.softmax(dim=-1).tril()),
        "b": printed_is(scores.softmax(dim=1)) or printed_is(scores.softmax(dim=-1)),
        "c": printed_is(run(f"masked.{call}", masked=causal(scores))),
        "d": printed_is(causal(scores)),
    }


@proves("03.1", "fa894e")
def causal_softmax(texts):
    call, shape = texts["2"].read(
        "{code} returns a new tensor, with the value wherever the mask is True. "
        "A {shape} mask is broadcast over the batch."
    )
    scores = torch.randn(2, 3, 3)
    mask = torch.ones(3, 3).triu(1) == 1
    filled = run("scores." + call, scores=scores, mask=mask, value=7.0)
    assert shape == ("T", "T")
    assert (filled[:, mask] == 7).all() and torch.equal(filled[:, ~mask], scores[:, ~mask])
    infinity, which = texts["3"].read(
        "Fill the future with {code}, then apply softmax along the axis of the keys, "
        "which is the {code} one."
    )
    assert which == "last"

    def causal_softmax(scores):
        T = scores.shape[-1]
        mask = torch.ones(T, T).triu(1) == 1
        value = run(infinity)
        return run("scores." + call, scores=scores, mask=mask, value=value).softmax(dim=-1)

    return causal_softmax


@proves("03.2", "d28a55")
def look_one_back(texts):
    high, t, back, low = texts["2"].read(
        "Put {} into the cells [{code}, {code}] and leave the others at {}. "
        "Then mask the future and apply softmax."
    )

    def look_one_back(T):
        scores = torch.full((T, T), float(low))
        for row in range(1, T):
            scores[run(t, t=row), run(back, t=row)] = high
        return causal(scores).softmax(dim=-1)

    token, weight = texts["3"].read(
        "Token {} has no token before it. With the future masked, only its own cell is left, "
        "so it gets the weight {} for any score."
    )
    assert causal(torch.randn(4, 4)).softmax(dim=-1)[token, token] == weight
    return look_one_back


@proves("03.3", "e9b204")
def safe_softmax(texts):
    top = texts["1"].read(
        "You may subtract any number from a whole row. "
        "Which one makes sure that no exponent in this row is above {}?"
    )
    largest = texts["2"].read("{code} holds the largest score of each row, as a column.")
    scores = torch.randn(4, 3)
    assert run(largest, scores=scores).tolist() == [[max(row)] for row in scores.tolist()]
    assert (scores - run(largest, scores=scores)).max() == top
    kept = texts["3"].read(
        "Take exp of the difference, then divide it by the sum of its row, with {code}."
    )

    def safe_softmax(scores):
        exp = torch.exp(scores - run(largest, scores=scores))
        return run(f"exp / exp.sum(dim=-1, {kept})", exp=exp)

    return safe_softmax
