"""Cells may be run again: two times in a row, alone, or from any heading on.

A learner does not run a notebook from top to bottom and stop. Whatever they run again gives the
same outputs as before, or an assert says in words which cell to run first.
"""

import pytest

from tests.notebooks.test_mutations import stored
from tools.refresh import code_cells, is_ignored


class Finished:
    """A notebook that has been run: its code cells may be run again in the state of its end."""

    def __init__(self, once):
        self.shell, self.cells, self.headings = once.shell, code_cells(once.book), {}
        for cell in once.book.cells:
            for line in cell.source.splitlines() if cell.cell_type == "markdown" else ():
                if line.startswith("## "):
                    behind = once.book.cells[once.book.cells.index(cell) :]
                    self.headings[line] = [c for c in behind if c.cell_type == "code"]
        self.slow = {cell.id for cell, ran in once.made if ran.seconds > 0.5}
        self.names = dict(once.shell.shell.user_ns)

    def again(self, cells):
        """Run these cells in the state at the end of the notebook; say what went wrong."""
        names = self.shell.shell.user_ns
        names.clear()
        names.update(self.names)
        # A cell whose outputs may differ (versions, times) is run once.
        return [said for cell in cells if not is_ignored(cell) and (said := self._complaint(cell))]

    def _complaint(self, cell):
        ran = self.shell.run(cell.source)
        error = type(ran.error).__name__ if ran.error else ""
        if error == "AssertionError" and str(ran.error):
            return ""  # it says what to do
        if (ran.printed, ran.text, error) == stored(cell):
            return ""
        what = repr(ran.error) if error else f"other outputs: {ran.printed}{ran.text}"
        return f"{cell.id}, again: {what}\n{cell.source}"


@pytest.fixture(scope="session")
def finished(once):
    return Finished(once)


def test_each_cell_can_be_run_again_at_the_end_two_times_in_a_row(finished):
    """What takes long is run again one time, which shows if it goes on where it had ended."""
    times = [[cell] if cell.id in finished.slow else [cell, cell] for cell in finished.cells]
    assert [said for cells in times for said in finished.again(cells)] == []


def test_one_can_go_on_from_every_heading(finished):
    """What takes long was run again above; it stays out, unless others miss what it has made."""
    red = {}
    for name, cells in finished.headings.items():
        quick = [cell for cell in cells if cell.id not in finished.slow]
        if finished.again(quick) and (said := finished.again(cells)):
            red[name] = said
    assert red == {}
