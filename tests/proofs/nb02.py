"""Notebook 02: weights in a matrix."""

import math

import torch

from helpers.lesson.exercises import EXERCISES
from helpers.toy import numbers
from tests.proofs import proves, run


@proves("02.p1", "acee8c")
def row_1_of_L_at_a(texts):
    values = texts["question"].read(
        "L is the {code} triangle of ones, a has the rows {} {} {}, {} {} {}, {} {} {}. "
        "What is row {} of {code}?"
    )
    size, *entries, row, code = values
    a, L = torch.tensor(entries).view(3, 3), torch.ones(3, 3).tril().long()
    assert size == "3 × 3" and row == 1

    def product(code):
        return run(code, L=L, a=a)[row].tolist()

    right = product(code)
    a_said = texts["a"].read("{numbers}")
    again, weights, *pairs = texts["why a"].read(
        "Row {} of L is {numbers}. It takes row 0 of a once, row 1 once and row 2 not at all: "
        "{code}, {code}, {code}."
    )
    assert again == row and weights == L[row].tolist() == [1, 1, 0]
    assert [run(one) for one in pairs] == right

    b_said = texts["b"].read("{numbers}")
    one, other, again, weights = texts["why b"].read(
        "This is row {} plus row {}, as with ones on and *above* the diagonal. "
        "L has its ones on and *below* it, so row {} of L is {numbers}."
    )
    assert (
        (a[one] + a[other]).tolist() == b_said == (torch.ones(3, 3).triu().long() @ a)[1].tolist()
    )
    assert weights == L[again].tolist()

    c_said = texts["c"].read("{numbers}")
    again, code = texts["why c"].find(
        "This is row {} of {code}, in which L combines the columns of a. "
        "With L on the left, the rows of a are combined."
    )
    assert product(code) == c_said and again == row
    d_said = texts["d"].read("{numbers}: L cuts off the upper corner")
    again, code = texts["why d"].find("This is row {} of {code}, entry by entry. The sign @")
    assert product(code) == d_said and again == row
    said = {"a": a_said, "b": b_said, "c": c_said, "d": d_said}
    return {letter: one == right for letter, one in said.items()}


@proves("02.p2", "25b3b8")
def loop_against_product(texts):
    bits, kind, digits, low, high = texts["question"].read(
        "The numbers are {}-bit floats ({code}), which store about {word} digits. How large is the "
        "largest difference between the means by the loop and by the product? "
        "(All means lie between {} and {}.)"
    )
    dtype = getattr(torch, kind)
    assert torch.finfo(dtype).bits == bits
    assert 10**-digits < torch.finfo(dtype).eps < 10 ** (1 - digits)

    def largest_difference(x):
        loop = torch.stack([x[:, : t + 1].mean(dim=1) for t in range(8)], dim=1)
        assert low < loop.min() and loop.max() < high
        ones = torch.ones(8, 8, dtype=x.dtype).tril()
        return (ones / ones.sum(dim=-1, keepdim=True) @ x - loop).abs().max().item()

    difference = largest_difference(numbers().to(dtype))

    def about(low, high):
        return low / 3 < difference < 3 * high

    texts["a"].read("exactly 0: the same formula gives the same bits")
    b = texts["b"].read("about {}")
    bits, digits_64 = texts["why b"].find(
        "need {}-bit floats, such as those of Python, which store about {} digits."
    )
    assert torch.finfo(torch.float64).bits == bits
    assert 10**-digits_64 < torch.finfo(torch.float64).eps < 10 ** (1 - digits_64)
    assert b / 3 < largest_difference(numbers().double()) < 3 * b
    c = texts["c"].read("about {} to {}")
    kind_said, near, factor, power = texts["why c"].find(
        "A {code} near {} is rounded by up to {}·{}, a smaller"
    )
    half_step = torch.finfo(dtype).eps / 2
    assert (kind_said, near) == (kind, 1) and math.isclose(
        float(f"{half_step:.0e}"), factor * power
    )
    atol, again = texts["why c"].find("such as atol={code} (an absolute tolerance of {}).")
    assert float(atol) == again > difference
    d = texts["d"].read("about {}: the rounding errors of {word} tokens add up")
    each, eight, together = texts["why d"].find(
        "each is at most about {}, some up and some down. {code} of them stay below {}."
    )
    assert eight == "Eight" and d[1] == 8 and about(0, each) and 8 * each < together
    return {"a": difference == 0, "b": about(b, b), "c": about(*c), "d": about(d[0], d[0])}


@proves("02.p3", "5b1a64")
def x_at_W(texts):
    x_shape, W_shape, code, other = texts["question"].read(
        "x is {shape} and W is the {shape} matrix of weights. "
        "What happens if you write {code} instead of {code}?"
    )
    x, W = torch.randn(x_shape), torch.rand(W_shape)
    run(other, x=x, W=W)
    texts["a"].read("the same result as before")
    texts["b"].read("an error: the shapes do not fit")
    try:
        run(code, x=x, W=W)
        fits = True
    except RuntimeError:
        fits = False
    left, right, columns, rows, size = texts["why b"].find(
        "{shape} @ {shape} needs as many columns on the left as rows on the right, "
        "and {} is not {}. If C were {}, there would be no error."
    )
    assert left == x_shape[1:] and right == W_shape
    assert (columns, rows, size) == (left[1], right[0], right[0])
    run(code, x=torch.randn(*x_shape[:2], size), W=W)
    texts["c"].read("the result with tokens and channels swapped")
    swapped, again, columns, rows = texts["why c"].find(
        "That is {code}. In {code} the inner sizes are {} and {}, and"
    )
    assert torch.allclose(run(swapped, x=x, W=W), run(other, x=x, W=W).mT, atol=1e-6)
    assert again == code and (columns, rows) == (x_shape[-1], W_shape[0])
    return {"a": fits, "b": not fits, "c": fits}


@proves("02.1", "a7850c")
def mean_by_matmul(texts):
    texts["1"].read(
        "Build for T tokens the matrix that the 3 × 3 example had, then put it to the left of x."
    )
    triangle = texts["2"].read(
        "{code} has its ones on and below the diagonal. Divide every row by its sum."
    )
    table = [[float(s <= t) for s in range(4)] for t in range(4)]
    assert run(triangle, T=4).tolist() == table
    product, shape = texts["3"].read(
        "{code} multiplies every sequence of the batch by the same {shape} matrix."
    )
    assert shape == ("T", "T")

    def causal_mean_matmul(x):
        ones = run(triangle, T=x.shape[1])
        return run(product, weights=ones / ones.sum(dim=-1, keepdim=True), x=x)

    return causal_mean_matmul


@proves("02.2", "f45a65")
def window(texts):
    back, shape, again = texts["1"].read(
        "Token s lies {code} steps back from output t. "
        "Build the {shape} table of {code} first: row t, column s."
    )
    table = texts["2"].read("{code} is that table. Which of its values lie inside the window?")
    steps = [[run(back, t=t, s=s) for s in range(5)] for t in range(5)]
    assert run(table, T=5).tolist() == steps and back == again and shape == ("T", "T")
    as_ones = texts["3"].read(
        "A comparison gives True and False; {code} makes ones and zeros of them. "
        "Then divide each row by its sum."
    )

    def window_weights(T, width):
        age = run(table, T=T)
        inside = run("((age >= 0) & (age < width))" + as_ones, age=age, width=width)
        return inside / inside.sum(dim=-1, keepdim=True)

    return window_weights


@proves("02.3", "c33758")
def fading_memory(texts):
    exercise, count = texts["1"].read(
        "Begin again with the table of t - s, as in {code}. A token k steps back counts {code}."
    )
    assert exercise < "02.3" and "t - s" in EXERCISES[exercise].hints[0]
    cut = texts["2"].read(
        "Future cells must be 0 before the row sums are taken; {code} sets them to 0."
    )
    divided = texts["3"].read(
        "Divide each row by its sum: {code}, where raw holds the weights before the division."
    )

    def decay_weights(T, decay):
        age = torch.arange(T)[:, None] - torch.arange(T)
        counts = run(count, decay=decay, k=age.float())
        return run(divided, raw=run(cut)(counts))

    return decay_weights
