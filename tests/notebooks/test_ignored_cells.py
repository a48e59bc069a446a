"""An output that nbval does not compare still says what its cell says, in words and in form."""

import nbformat
import pytest
import torch

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


@pytest.mark.slow
@pytest.mark.parametrize("number", sorted({c.notebook for c in ignored_cells.IGNORED_CELLS}))
def test_a_stored_output_says_what_its_cell_says(number):
    (path,) = notebooks.chosen(number)
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    with fresh_shell() as shell, torch.random.fork_rng(devices=[]):
        for cell in cells:
            ran = shell.run(cell.source)
            if entry := ignored_cells.listed(number, cell.source):
                found = differences(text_of(cell.outputs), ran.printed + ran.text, entry.share)
                assert not found, f"{entry.first_line}\n{found}\nmake refresh REFRESH_ARGS=--all"
