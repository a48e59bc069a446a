import torch

from helpers.explorers import explore_axis
from helpers.pictures.table import Table
from tests.explorers.reading import cells, controls, move, now

X = torch.tensor(
    [[[3, 1, 4, 1], [5, 9, 2, 6], [0, 3, 5, 8]], [[2, 7, 1, 8], [4, 0, 9, 3], [6, 2, 3, 5]]]
)


def model(dim, keepdim, cell):
    x = X.double().requires_grad_()
    out = x.sum(dim, keepdim=keepdim)
    (added,) = torch.autograd.grad(out.flatten()[cell], x)
    added, marked = added.bool(), torch.arange(out.numel()).view(out.shape) == cell
    axes = [axis for i, axis in enumerate("btc") if keepdim or i != dim % 3]
    option = ", keepdim=True" if keepdim else ""
    call = f"x.sum(dim={dim}{option}): (2, 3, 4) -> {tuple(out.shape)}"
    terms = " + ".join(map(str, X[added].tolist()))
    equation = f"out{marked.nonzero()[0].tolist()} = {terms} = {int(out[marked])}"
    result = tables(out.long(), marked, axes)
    return [f"{call}; {equation}", call, *tables(X, added, "btc"), "out", *result, equation]


def tables(values, marked, axes):
    """Two axes in one table; three in a table for each index of the first."""
    if len(axes) == 2:
        return [sheet(values, marked, "", *axes)]
    return [sheet(values[i], marked[i], f"{axes[0]} = {i}", *axes[1:]) for i in range(len(values))]


def sheet(values, marked, *headings):
    rows = [cells(row, "plain") for row in values]
    for r, c in marked.nonzero().tolist():
        rows[r][c] = rows[r][c]._replace(look="marked")
    columns = [str(c) for c in range(len(rows[0]))]
    return Table(columns, [(str(r), row) for r, row in enumerate(rows)], *headings)


CELL = "number of the result"
LAST = {0: 11, 1: 7, 2: 5, -1: 5, -2: 7, -3: 11}  # number of the sum over each axis
CONTROLS = {"dim": (0, (-3, 2, 1)), "keepdim": (False, ()), CELL: (9, (0, 11, 1))}
CASES = [({}, [(d, keep, i) for d in LAST for keep in (False, True) for i in (0, 4, LAST[d])])]


def test_the_slider_of_the_result_ends_at_its_last_number():
    explorer = explore_axis()
    for dim, last in LAST.items():
        move(explorer, {CELL: 0, "dim": dim})
        assert controls(explorer)[CELL].max == last
    move(explorer, {CELL: 11, "dim": 2})
    assert now(explorer).endswith("out[1, 2] = 6 + 2 + 3 + 5 = 16")
