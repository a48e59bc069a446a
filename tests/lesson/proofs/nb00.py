"""Notebook 00: reading tensors."""

import torch

from helpers.toy import TEXTS
from helpers.training import python_help
from lesson.exercises.nb00 import count
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


@proves("00.2")
def normalise_rows(texts):
    code = texts["3"].says(..., 2)
    assert code.count("…") == 2
    return written("a", "a / " + code.replace("keepdim=…", "keepdim=True").replace("…", "-1"))


@proves("00.p5")
def always_the_most_frequent(texts):
    pairs = count(" ".join(python_help().split()))
    text = "The cat"
    while text[-1] not in text[7:-1]:
        text += max(pairs[text[-1]], key=pairs[text[-1]].get)
    circle = text[text.index(text[-1], 7) + 1 :]
    return {
        "better": False,
        "fewer": False,
        "the same few": 1 < len(circle) < 6,
        "one letter": len(circle) == 1,
    }


@proves("00.count")
def hints_of_count(texts):
    texts["1"].gives()
    texts["2"].gives()
    texts["3"].gives()
    return written(
        "text",
        "counts = {}",
        "from itertools import pairwise",
        "for letter, next_letter in pairwise(text):",
        "    after = counts.setdefault(letter, {})",
        "    after[next_letter] = after.get(next_letter, 0) + 1",
        "counts",
    )


@proves("00.write")
def hints_of_write(texts):
    for text in texts.values():
        text.gives()
    return written(
        "guess, start, n",
        "import random",
        "text = start",
        "for _ in range(n):",
        "    counts = guess(text)",
        "    letters = random.choices(list(counts), list(counts.values()))",
        "    text += letters[0]",
        "text",
    )
