"""An output that nbval does not compare still says what its cell says, in words and in form."""

import nbformat
import pytest
import torch

from helpers import numbers
from tests.cells import fresh_shell
from tools import ignored_cells, notebooks
from tools.ignored_cells import differences, text_of

OLD = "scaled: 0.48\nrows 0 1351, at 3.2e-08"


@pytest.mark.parametrize(
    ("new", "what"),
    [
        ("raw: 0.48\nrows 0 1351, at 3.2e-08", "words differ"),
        ("scaled: nan\nrows 0 1351, at 3.2e-08", "words differ"),
        ("scaled: 0.48\nrows 0, at 3.2e-08", "words differ"),
        ("scaled: 0.14\nrows 0 1351, at 3.2e-08", "0.48 against 0.14"),
        ("scaled: 0.48\nrows 40 1351, at 3.2e-08", "0 against 40"),
        ("scaled: 0.48\nrows 0 1351, at 3.2e-05", "3.2e-08 against 3.2e-05"),
    ],
)
def test_a_false_output_is_seen(new, what):
    assert [said for said in differences(OLD, new, 0.5) if what in said]


def test_another_machine_is_none():
    assert differences(OLD, "scaled:  0.52\nrows  3  1290, at 2.2e-08", 0.5) == []
    assert differences("torch 2.13.0+cpu · 1 threads", "torch 2.14 · 8 threads", None) == []


def refuse_unrounded(value, decimals):
    """On some machine, a number that is printed as it is lies at the edge between two roundings."""
    if abs(value - round(value, decimals)) > 1e-6:
        raise ValueError(f"{value} differs between machines: round it before it is shown")


@pytest.mark.slow
@pytest.mark.parametrize("number", sorted({c.notebook for c in ignored_cells.IGNORED_CELLS}))
def test_a_stored_output_says_what_its_cell_says(number, monkeypatch):
    (path,) = notebooks.chosen(number)
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    with fresh_shell() as shell, torch.random.fork_rng(devices=[]):
        for cell in cells:
            entry = ignored_cells.listed(number, cell.source)
            if entry:
                monkeypatch.setattr(numbers, "_refuse_edge", refuse_unrounded)
            ran = shell.run(cell.source)
            monkeypatch.undo()
            if entry and not entry.words:
                assert bool(text_of(cell.outputs)) == bool(ran.printed + ran.text), entry.first_line
            elif entry:
                found = differences(text_of(cell.outputs), ran.printed + ran.text, entry.share)
                assert not found, f"{entry.first_line}\n{found}\nmake refresh REFRESH_ARGS=--all"
