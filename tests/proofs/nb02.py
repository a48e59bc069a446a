"""Notebook 02: weights in a matrix."""

import math

import torch

from helpers.lesson.exercises import EXERCISES
from helpers.toy import numbers
from tests.proofs import fails, proves, run, same, written

BY_ROW_SUMS = "ones / ones.sum(dim=-1, keepdim=True)"


@proves("02.p1")
def row_1_of_L_at_a(texts):
    _, size, *entries, row, code = texts["question"].gives()
    a, L = torch.tensor(entries).view(size), torch.ones(size).tril().long()
    right = run(code, L=L, a=a)[row].tolist()
    sums = [f"{one} + {other}" for one, other in zip(entries[:3], entries[3:6], strict=True)]
    assert right == (L @ a)[row].tolist() and L[row].tolist() == [1, 1, 0]
    texts["why a"].says(row, "L", *L[row], 0, 1, 2, *sums)
    texts["b"].says(*(L.T @ a)[row])  # ones on and above the diagonal
    texts["why b"].says(row, row + 1, "L", row, *L[row])
    texts["c"].says(*(a @ L)[row])
    texts["why c"].says(row, a @ L, a=a, L=L)
    texts["d"].says(*(L * a)[row], "L")
    texts["why d"].says(row, L * a, a=a, L=L)
    return {letter: texts[letter].gives()[:3] == right for letter in "abcd"}


@proves("02.p2")
def loop_against_product(texts):
    bits, kind, digits, low, high = texts["question"].gives()
    float_, double = torch.finfo(getattr(torch, kind)), torch.finfo(torch.float64)
    assert (bits, digits) == (float_.bits, round(-math.log10(float_.eps)))

    def largest_difference(x):
        loop = torch.stack([x[:, : t + 1].mean(dim=1) for t in range(8)], dim=1)
        assert high == -low == math.ceil(loop.abs().max())
        ones = torch.ones(8, 8, dtype=x.dtype).tril()
        return (ones / ones.sum(dim=-1, keepdim=True) @ x - loop).abs().max().item()

    difference = largest_difference(numbers().to(getattr(torch, kind)))
    accepted, each = 1e-6, 1e-7
    assert difference / 3 < each and 8 * each < accepted
    texts["a"].says(0)
    texts["why a"].says(2)
    texts["b"].says(10.0 ** round(math.log10(largest_difference(numbers().double()))))
    texts["why b"].says(double.bits, round(-math.log10(double.eps)))
    texts["c"].says(each / 10, each)
    texts["why c"].says(kind, 1, float_.eps / 2, {"atol": accepted}, accepted)
    texts["d"].says(1e-5, 8)
    texts["why d"].says(each, 8, accepted)
    said = {letter: texts[letter].gives() for letter in "abc"} | {"d": [1e-5]}
    return {one: min(n) / 3 <= difference <= 3 * max(n) for one, n in said.items()}


@proves("02.p3")
def x_at_W(texts):
    x_shape, name, W_shape, code, other = texts["question"].gives()
    x, W = torch.randn(x_shape), torch.rand(W_shape)
    before, inner, size = run(other, x=x, W=W), x_shape[-1], W_shape[0]
    error = fails(code, x=x, W=W)
    now = torch.empty(0) if error else run(code, x=x, W=W)
    texts["why b"].says(x_shape[1:], W_shape, inner, size, "C", size)
    assert name == "W" and not fails(code, x=torch.randn(*x_shape[:2], size), W=W)
    texts["why c"].says(before.mT, code, inner, size, x=x, W=W)
    return {"same": same(now, before), "error": error, "swapped": same(now, before.mT)}


@proves("02.1")
def mean_by_matmul(texts):
    texts["1"].says("T", (3, 3))
    triangle, product = texts["2"].says(...), texts["3"].says(..., ("T", "T"))
    steps = ("T = x.shape[1]", f"ones = {triangle}", f"weights = {BY_ROW_SUMS}")
    return written("x", *steps, product)


@proves("02.2")
def window(texts):
    back, again = texts["1"].says(..., ("T", "T"), ...)
    table, as_ones = texts["2"].says(...), texts["3"].says(...)
    steps = [[run(back, t=t, s=s) for s in range(5)] for t in range(5)]
    assert back == again and run(table, T=5).tolist() == steps
    assert run(f"torch.eye(2, dtype=bool){as_ones}").is_floating_point()
    ones = f"ones = ((age >= 0) & (age < width)){as_ones}"
    return written("T, width", f"age = {table}", ones, BY_ROW_SUMS)


@proves("02.3")
def fading_memory(texts):
    back, earlier, count = texts["1"].gives()
    assert earlier < "02.3" and back in EXERCISES[earlier].hints[0]
    cut = texts["2"].says(0, ..., 0)
    places = "t, s = torch.arange(T)[:, None], torch.arange(T)"
    steps = (places, f"k = ({back}).float()", f"raw = {cut}({count})")
    return written("T, decay", *steps, texts["3"].says(...))
