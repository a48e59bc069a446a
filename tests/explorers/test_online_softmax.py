import itertools

import pytest
import torch

from attention_base.numbers import number
from explorers import explore_online_softmax
from helpers.pictures.table import Cell, Table
from tests.explorers.reading import now

ORDERS = ("1, 3, 2", "3, 2, 1", "1, 2, 3", "1001, 1003, 1002")
COLUMNS = ["value", "maximum", "factor", "sum", "weighted sum", "quotient"]


def model(order, n, rescale):
    """What is carried after n scores is a sum over all of them, if it is rescaled."""
    row = torch.tensor([float(score) for score in order.split(", ")], dtype=torch.float64)
    values = torch.tensor([{1: 10.0, 2: 30.0, 3: 20.0}[score.item() % 1000] for score in row])
    top = torch.cummax(row, 0).values
    factors = [0.0] + [(top[i] - top[i + 1]).exp().item() for i in range(2)]
    rows, totals = [], []
    for i, (score, value) in enumerate(zip(row, values, strict=True)):
        # Not rescaled, each exponential keeps the maximum that it was computed with.
        e = (row[: i + 1] - (top[i] if rescale else top[: i + 1])).exp()
        totals.append(((e * values[: i + 1]).sum() / e.sum()).item())
        factor = factors[i] if rescale else 1.0
        carried = [factor, e.sum(), (e * values[: i + 1]).sum(), totals[-1]]
        texts = [number(top[i], 0), *map(number, carried)] if i < n else [""] * 5
        look = "marked" if i == n - 1 else "plain"
        rows.append((f"score {score:.0f}", [Cell(text, look) for text in (f"{value:.0f}", *texts)]))
    told = ["No score has been read: the maximum is minus infinity, and both sums are 0."]
    if n:
        score, new = int(row[n - 1]), int(top[n - 1])
        old = int(top[n - 2]) if n > 1 else None
        told = [
            f"The first score is the maximum, and its exponential is e^({score} - {score}) = 1."
            if n == 1
            else f"The maximum stays {new}, so the sums stay as they are, and "
            f"e^({score} - {new}) = {number((row[n - 1] - new).exp())} is added to the sum."
            if old == new
            else f"The maximum grows from {old} to {new}. Both sums are multiplied by "
            f"e^({old} - {new}) = {number(factors[n - 1])}; then 1 is added to the sum."
            if rescale
            else f"The maximum grows from {old} to {new}. Both sums are too large by "
            f"e^({new} - {old}), and they stay so."
        ]
    if n == 3:
        right = torch.softmax(row, 0) @ values.double()
        same = "the same" if abs(right - totals[-1]) < 1e-9 else "another number"
        told.append(f"The softmax of the whole row gives {number(right)}, {same}.")
    if order.startswith("1001") and n:
        told.append("Without a maximum, e^1001 would be inf in float32 and in float64.")
    table = Table(COLUMNS, rows)
    if not rescale:
        told.append("The sums are never rescaled.")
    words = " ".join([*told, *COLUMNS])
    words += "".join(f" {name} {' '.join(c.text for c in cells)}" for name, cells in rows)
    return [" ".join(words.split()), table, *told]


CONTROLS = {
    "scores": ("1, 3, 2", ORDERS),
    "scores read": (2, (0, 3, 1)),
    "rescale the sums when the maximum grows": (True, ()),
}
CASES = [({}, list(itertools.product(ORDERS, range(4), (True, False))))]


def test_the_numbers_are_those_of_the_notebooks_table():
    explorer = explore_online_softmax()
    for n, quotient in enumerate(("10.00", "18.81", "21.55"), start=1):
        explorer.controls["scores read"].value = n
        assert quotient in now(explorer)
    explorer.controls["rescale"].value = False
    assert "gives 21.55, another number" in now(explorer)


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_has_the_same_average(order):
    explorer = explore_online_softmax()
    explorer.controls["scores"].value, explorer.controls["scores read"].value = order, 3
    assert "gives 21.55, the same." in now(explorer)
