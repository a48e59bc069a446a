"""Notebook 02: weights in a matrix."""

import pytest
import torch

from lesson.exercises import EXERCISES
from tests.lesson.proofs import fails, proves, run, same, written

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
    texts["d"].says(*(L * a)[row])
    texts["why d"].says(row, L * a, a=a, L=L)
    return {letter: texts[letter].gives()[:3] == right for letter in "abcd"}


@proves("02.p2")
def x_at_W(texts):
    x_shape, name, W_shape, code, other = texts["question"].gives()
    x, W = torch.randn(x_shape), torch.rand(W_shape)
    before, inner, size = run(other, x=x, W=W), x_shape[-1], W_shape[0]
    error = fails(code, x=x, W=W)
    now = torch.empty(0) if error else run(code, x=x, W=W)
    rows = f"{x_shape[0] * size}x{inner}"
    texts["why b"].says(x_shape[1:], W_shape, inner, size, x_shape[0], "C", size)
    with pytest.raises(RuntimeError, match=rows):
        run(code, x=x, W=W)
    assert rows in texts["why b"].text
    assert name == "W" and not fails(code, x=torch.randn(*x_shape[:2], size), W=W)
    texts["why c"].says(before.mT, code, inner, size, x=x, W=W)
    return {"same": same(now, before), "error": error, "swapped": same(now, before.mT)}


@proves("02.p3")
def decay_in_a_long_text(texts):
    decay, T = texts["question"].gives()[0], texts["question"].gives()[-1]
    raw = decay ** torch.arange(T - 1, -1, -1, dtype=torch.float64)  # of the last row
    last, others = (raw[-1] / raw.sum()).item(), raw[:-1].sum().item()
    texts["question"].says(decay, T)
    series = decay + decay**2 + decay**3
    assert abs(others - 1) < 1e-6
    texts["a"].says(1 / T)
    texts["why a"].says("1/1000", series)
    texts["b"].says(last)
    texts["why b"].says(1, series, 1, decay)
    texts["c"].says(1 - 1 / T)
    texts["why c"].says(series, 1)
    said = {letter: texts[letter].gives()[0] for letter in "abc"}
    return {letter: abs(one - last) < 5e-4 for letter, one in said.items()}


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
