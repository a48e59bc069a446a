"""Cells may be run again: two times in a row, alone, or from any heading on.

A learner does not run a notebook from top to bottom and stop. Whatever they run again gives the
same outputs as before, or an assert says in words which cell to run first.
"""

import nbformat
import pytest
import torch

from tests.cells import fresh_shell
from tests.notebooks.test_mutations import stored
from tools import notebooks

TRAIN = ("05", "06", "08", "09", "10", "11", "12")  # their cells train: seconds each
MEASURES = ("13", "14")  # their cells write texts and take times: seconds each, too


def marked(path):
    slow = [pytest.mark.slow] if path.name.startswith(TRAIN + MEASURES) else []
    return pytest.param(path, id=path.stem, marks=slow)


class Finished:
    """A notebook after each of its cells was run two times in a row."""

    def __init__(self, path, shell):
        self.shell, self.cells, self.headings = shell, [], {}
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                self.cells.append(cell)
                continue
            for line in cell.source.splitlines():
                if line.startswith("## "):
                    self.headings[line] = len(self.cells)
        # A cell whose outputs may differ (versions, times) is run once.
        twice = [p for p in range(len(self.cells)) for _ in range(1 if self.ignored(p) else 2)]
        self.complaints_of_first_run = self.complaints(twice)
        self.names = dict(shell.shell.user_ns)

    def complaints(self, places):
        return [said for place in places if (said := self._complaint(place))]

    def _complaint(self, place):
        cell = self.cells[place]
        ran = self.shell.run(cell.source)
        error = type(ran.error).__name__ if ran.error else ""
        if error == "AssertionError" and str(ran.error):
            return ""  # it says what to do
        if self.ignored(place) and not error:
            return ""
        if (ran.printed, ran.text, error) == stored(cell):
            return ""
        what = repr(ran.error) if error else f"other outputs: {ran.printed}{ran.text}"
        return f"code cell {place}, again: {what}\n{cell.source}"

    def ignored(self, place):
        return "nbval-ignore-output" in self.cells[place].metadata.get("tags", [])

    def again(self, places):
        """Run these cells in the state at the end of the notebook; say what went wrong."""
        names = self.shell.shell.user_ns
        names.clear()
        names.update(self.names)
        return self.complaints(place for place in places if not self.ignored(place))


@pytest.fixture(scope="module", params=[marked(path) for path in notebooks.names()])
def finished(request):
    with fresh_shell() as shell, torch.random.fork_rng(devices=[]):
        yield Finished(request.param, shell)


def test_each_cell_can_be_run_twice_in_a_row(finished):
    assert finished.complaints_of_first_run == []


def test_each_cell_can_be_run_again_at_the_end(finished):
    assert [said for place in range(len(finished.cells)) for said in finished.again([place])] == []


def test_one_can_go_on_from_every_heading(finished):
    end = len(finished.cells)
    again = {name: finished.again(range(at, end)) for name, at in finished.headings.items()}
    assert {name: said for name, said in again.items() if said} == {}
