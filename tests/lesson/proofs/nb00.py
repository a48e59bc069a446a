"""Notebook 00: reading tensors."""

import torch

from helpers.toy import TEXTS
from tests.lesson.proofs import fails, proves, run, written


@proves("00.p1")
def six_words_that_were_never_read(texts):
    (asked,) = texts["question"].quoted()
    assert texts["question"].gives() == [len(asked.split()), len(TEXTS)]
    read = {TEXTS[0]: "slept", TEXTS[1]: "cooled"}  # the only six words with one behind them
    assert texts["why a"].quoted() == texts["why d"].quoted()[:1] == [asked]
    texts["why a"].says(6)
    assert texts["why b"].quoted() == ["cooled", TEXTS[1], asked] and read[TEXTS[1]] == "cooled"
    cat, soup = (text.split() for text in TEXTS)
    ends = [[words[6 - n :] for words in (cat, soup, asked.split())] for n in range(7)]
    same = max(n for n, (one, other, new) in enumerate(ends) if one == other == new)
    texts["c"].says(len({*read.values()}))
    texts["why c"].says(same, 6)
    assert asked.split()[0] == texts["why d"].quoted()[1] not in cat + soup
    guess = read.get(asked)
    true = {word: guess == word for word in ("slept", "cooled")}
    return true | {"one of the two": guess in read.values(), "nothing": guess is None}


@proves("00.p2")
def shape_of_a_sum(texts):
    shape, B, T, C, code = texts["question"].gives()
    assert shape == (B, T, C)
    x, axis = torch.randn(shape), 2
    right = tuple(run(code, x=x).shape)
    assert torch.equal(run(code, x=x), x.sum(dim=axis))
    texts["a"].says(x.sum(dim=0).shape)
    texts["why a"].says(x.sum(dim=0), B, 0, axis, x=x)
    texts["b"].says(x.sum(dim=1).shape)
    texts["why b"].says(x.sum(dim=1), T, 0, axis, axis + 1, x=x)
    texts["c"].says((C,))
    texts["why d"].says(axis, C, B, T)
    return {letter: texts[letter].gives()[0] == right for letter in "abcd"}


@proves("00.p3")
def counts_by_a_row_of_sums(texts):
    counts = torch.tensor([[1, 0, 0], [1, 0, 0], [0, 1, 1]])  # rows: cat, soup, it
    n, sums = len(counts), counts.sum(dim=-1)
    code = texts["question"].says(counts.shape, *sums, ...)
    got = run(code, counts=counts)
    wanted = counts / counts.sum(dim=-1, keepdim=True)
    texts["why a"].says(counts.shape, sums.shape, -1, n, (2, 3), 2, 3, 2)
    assert fails(code, counts=torch.ones(2, 3))
    texts["why b"].says(sums[2], n, -1, *sums)
    texts["why c"].says(n, -1, *sums, *got[2], got[2].sum(), n, n)
    right = torch.equal(got, wanted)
    return {"error": fails(code, counts=counts), "shares": right, "other": not right}


@proves("00.1")
def mean_over_time(texts):
    before = ("B", "T", "C")
    after = texts["1"].says(before, ...)
    (axis,) = (n for n in range(3) if before[:n] + before[n + 1 :] == after)
    texts["2"].says(before[axis], axis, 0, axis - len(before))
    return written("x", "x." + texts["3"].says(...).replace("…", str(axis)))


@proves("00.2")
def normalise_rows(texts):
    code = texts["3"].says(..., 2)
    assert code.count("…") == 2
    return written("a", "a / " + code.replace("keepdim=…", "keepdim=True").replace("…", "-1"))


@proves("00.3")
def swap_last_two(texts):
    x = torch.arange(24.0).view(2, 3, 4)
    texts["1"].says(x[0, 1, 2], 3, x=x)  # one number, by three indices
    last, before = -1, -2
    texts["2"].says(2, last, before)
    texts["3"].says(2)
    (method,), (attribute,) = texts["3"].after("method"), texts["3"].after("attribute")
    assert torch.equal(getattr(x, attribute), x.transpose(last, before))
    return written("x", f"x.{method}({last}, {before})")
