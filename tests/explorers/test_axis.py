import re

import pytest
import torch

from helpers.explorers import explore_axis
from tests.explorers.reading import controls, drawing, move, now, paragraphs, tables, words

X = torch.tensor(
    [[[3, 1, 4, 1], [5, 9, 2, 6], [0, 3, 5, 8]], [[2, 7, 1, 8], [4, 0, 9, 3], [6, 2, 3, 5]]]
)


def read(sheets):
    """The numbers of tables and their marks, each as one tensor."""
    numbers = [[[int(cell.text) for cell in row] for row in sheet.rows] for sheet in sheets]
    marks = [[[cell.look == "marked" for cell in row] for row in sheet.rows] for sheet in sheets]
    return torch.tensor(numbers), torch.tensor(marks)


@pytest.mark.parametrize("dim", range(-3, 3))
@pytest.mark.parametrize("keepdim", [False, True])
def test_the_marked_numbers_are_those_that_the_sum_adds(dim, keepdim):
    explorer = explore_axis()
    move(explorer, {"dim": dim, "keepdim": keepdim})
    x = X.double().requires_grad_()
    out = x.sum(dim, keepdim=keepdim)
    axes = [axis for i, axis in enumerate("btc") if keepdim or i != dim % 3]
    for cell in (0, 4, out.numel() - 1):
        move(explorer, {"number of the result": cell})
        number = out.flatten()[cell]
        (added,) = torch.autograd.grad(number, x, retain_graph=True)
        sheets = tables(explorer)
        shown_x, marked_x = read(sheets[:2])
        shown_out, marked_out = read(sheets[2:])
        assert shown_x.equal(X) and marked_x.equal(added.bool())
        assert shown_out.view(out.shape).equal(out.long())
        assert marked_out.flatten().nonzero().tolist() == [[cell]]
        assert [sheet.caption for sheet in sheets[:2]] == ["b = 0", "b = 1"]
        captions = [f"{axes[0]} = {i}" for i in range(len(out))] if len(axes) == 3 else [""]
        assert [sheet.caption for sheet in sheets[2:]] == captions
        for sheet, names in zip(
            sheets, [*[["t", "c"]] * 2, *[axes[-2:]] * len(captions)], strict=True
        ):
            rows, columns = len(sheet.rows), len(sheet.rows[0])
            assert [sheet.corner, sheet.over] == names
            assert sheet.names == [str(i) for i in range(rows)]
            assert sheet.columns == [str(i) for i in range(columns)]
        option = ", keepdim=True" if keepdim else ""
        call = f"x.sum(dim={dim}{option}): (2, 3, 4) -> {tuple(out.shape)}"
        place = [i.item() for i in torch.unravel_index(torch.tensor(cell), out.shape)]
        terms = " + ".join(map(str, X[added.bool()].tolist()))
        equation = f"out{place} = {terms} = {int(number)}"
        assert words(drawing(explorer).find("code")) == call
        assert paragraphs(explorer) == ["out", equation]
        assert now(explorer) == f"{call}; {equation}"


def test_the_slider_of_the_result_ends_at_its_last_number():
    explorer = explore_axis()
    for dim, last in {0: 11, 1: 7, 2: 5, -3: 11, -2: 7, -1: 5}.items():
        move(explorer, {"number of the result": 0, "dim": dim})
        assert controls(explorer)["number of the result"].max == last
    move(explorer, {"dim": 0, "number of the result": 11})
    move(explorer, {"dim": 2})
    assert controls(explorer)["number of the result"].value == 5
    assert re.search(r"out\[1, 2\] = 6 \+ 2 \+ 3 \+ 5 = 16", now(explorer))
