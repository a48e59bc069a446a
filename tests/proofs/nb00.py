"""Notebook 00: reading tensors."""

import pytest
import torch

from helpers.attention import causal_mask
from helpers.toy import WORDS, sentence
from tests.proofs import proves, rounds_to, run


@proves("00.p1", "855aea")
def dessert_and_is(texts):
    reader, read = texts["question"].find("does “{code}” attend to “{code}”?")
    generator = torch.Generator().manual_seed(123)
    W_query, W_key = (torch.rand(3, 2, generator=generator) for _ in range(2))
    scores = (sentence() @ W_query) @ (sentence() @ W_key).T / 2**0.5
    weights = scores.masked_fill(~causal_mask(6), float("-inf")).softmax(dim=-1)

    def weight(row, column):
        return weights[WORDS.index(row), WORDS.index(column)]

    said = texts["a"].read("{}")
    row, column, again = texts["why a"].find(
        "The row is “{code}”, because “dessert” reads. The column is “{code}”, "
        "because “is” is read. Their cell holds {}."
    )
    assert (row, column, again) == (reader, read, said)

    texts["b"].read("not at all, because the cell is hatched")
    row, column = texts["why b"].find("You looked at row “{code}” and column “{code}”.")
    assert (row, column) == (read, reader) and weight(row, column) == 0

    other = texts["c"].read("{}")
    again, column, before = texts["why c"].find(
        "{} is in the column of “{code}”. The word “{code}” comes one column before it."
    )
    assert other == again and rounds_to(weight(reader, column), other)
    assert before == read and WORDS.index(before) + 1 == WORDS.index(column)
    return {
        "a": rounds_to(weight(reader, read), said),
        "b": weight(reader, read) == 0,
        "c": rounds_to(weight(reader, read), other),
    }


@proves("00.p2", "5403b6")
def shape_of_a_sum(texts):
    shape, B, T, C, code = texts["question"].read(
        "x has the shape {shape}: {} sequences, {} tokens, {} channels. "
        "What is the shape of {code}?"
    )
    assert shape == (B, T, C)
    x = torch.zeros(shape)
    right = run(code, x=x).shape

    def sums(letter, what):
        """A wrong choice is the shape of another sum, which its explanation names."""
        said = texts[letter].read("{shape}")
        other, counted, axis, place = texts[f"why {letter}"].read(
            f"This is the shape of {{code}}, the sum over the {{}} {what}. "
            "Axes are counted from 0, so axis {} is the {code} one."
        )
        assert run(other, x=x).shape == said
        assert counted == shape[("sequences", "tokens").index(what)]
        assert axis == 2 and place in ("last", "third")
        return said == right

    c, axis = texts["c"].read("{shape}, because axis {} is what remains")
    assert c == shape[2:] and axis == 2
    d = texts["d"].read("{shape}")
    axis, two, B_said, T_said = texts["why d"].read(
        "Axis {} counts the channels. The {word} channels of each token become one sum, "
        "for each of the {} sequences and each of the {} tokens."
    )
    assert (axis, two) == (2, shape[2]) and (B_said, T_said) == shape[:2]
    return {
        "a": sums("a", "sequences"),
        "b": sums("b", "tokens"),
        "c": c == right,
        "d": d == right,
    }


@proves("00.p3", "eb8814")
def counts_by_a_row_of_sums(texts):
    size, sums, code = texts["question"].read(
        "counts is the {code} table above, and its row sums are {numbers}. What does {code} give?"
    )
    counts = torch.tensor([[1, 0, 0], [1, 0, 0], [0, 1, 1]])  # rows: cat, soup, it
    assert size == "3 × 3" and counts.sum(dim=-1).tolist() == sums
    got = run(code, counts=counts)  # no error
    wanted = torch.stack([row / row.sum() for row in counts])

    oblong, divisors = texts["a"].read("an error, because {shape} cannot be divided by {shape}")
    assert counts.shape == oblong and counts.sum(dim=-1).shape == divisors
    first, second, fits, n, not_3, not_2 = texts["why a"].find(
        "lines up the shapes at their last axis, {} and {}, and repeats the three sums for every "
        "row. A {shape} matrix and its {} row sums do raise an error, because {} and {} do not fit."
    )
    assert (first, second) == (oblong[-1], divisors[-1])
    assert fits[0] == n and {not_3, not_2} == {fits[-1], n}
    with pytest.raises(RuntimeError):
        run(code, counts=torch.ones(fits))

    texts["b"].read("the shares we want: every row sums to 1")
    own = texts["why b"].find("divided by its own sum, {}.")
    assert counts[2].sum() == own
    assert texts["why b"].find("the columns are divided by {numbers}") == sums
    texts["c"].read("wrong numbers, without an error")
    assert texts["why c"].find("the columns are divided by {numbers}") == sums
    row, total = texts["why c"].find("Row “it” becomes {numbers}, which sums to {}.")
    assert got[2].tolist() == row and sum(row) == total
    lengths = texts["why c"].find("the lengths {numbers} fit")
    assert lengths == [counts.shape[-1], len(sums)]
    return {"a": False, "b": torch.equal(got, wanted), "c": not torch.equal(got, wanted)}


@proves("00.1", "b3aa31")
def mean_over_time(texts):
    before, after = texts["1"].read(
        "Compare the shapes {shape} and {shape}: which axis has to disappear?"
    )
    letter, axis, negative = texts["2"].read(
        "{code} is axis {}, because axes are counted from 0. Counted from the end, it is axis {}."
    )
    assert {letter} == set(before) - set(after)
    assert before.index(letter) == axis == negative + len(before)
    call = texts["3"].read("Tensors have a method {code}. It removes the axis that you name.")
    return lambda x: run("x." + call.replace("…", str(axis)), x=x)


@proves("00.2", "9be1ed")
def normalise_rows(texts):
    texts["2"].read(
        "The last index changes, with and without axes in front. The sums of a matrix must stay "
        "a column, so that each row is divided by its own sum."
    )
    call = texts["3"].read("{code} has the two arguments that you need.")
    code = "a / " + call.replace("keepdim=…", "keepdim=True").replace("dim=…", "dim=-1")
    return lambda a: run(code, a=a)


@proves("00.3", "36f70c")
def swap_last_two(texts):
    entry = texts["1"].read(
        "Where must the number {code} be in the result? Write down its three indices."
    )
    last, before = texts["2"].read(
        "The two axes that change places are the last and the one before it. "
        "Counted from the end, they are {} and {}."
    )
    x = torch.arange(24.0).view(2, 3, 4)
    assert run(entry.replace("1, 2", "2, 1"), x=x.transpose(last, before)) == run(entry, x=x)
    method, attribute = texts["3"].read(
        "Tensors have a method {code}, which takes the numbers of two axes, "
        "and the attribute {code}."
    )
    assert torch.equal(getattr(x, attribute), x.transpose(last, before))
    return lambda x: getattr(x, method)(last, before)
