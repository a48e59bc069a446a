"""A notebook run once from top to bottom, which several slow tests look at."""

import time

import nbformat
import pytest

from attention_base import numbers
from helpers.pictures import base
from tools import ignored_cells
from tools.refresh import code_cells


def faces(shown):
    """What a cell stores of its value, {"image/png": …, "text/plain": …, "metadata": …}."""
    made = shown._repr_mimebundle_()
    data, metadata = made if isinstance(made, tuple) else (made, {})
    return {kind: part for kind, part in data.items() if "widget" not in kind}, metadata


def refuse_unrounded(value, decimals):
    """On some machine, a number that is printed as it is lies at the edge between two roundings."""
    if abs(value - round(value, decimals)) > 1e-6:
        raise ValueError(f"{value} differs between machines: round it before it is shown")


def once_through(book, shell, number=""):
    """Run the cells of a notebook: pairs of a cell and what became of it, and faces by cell.

    The faces are those of each value that has a picture. With the ``number`` of the notebook, the
    cells whose words are compared here alone may show no number that is printed as it is.
    """
    made, drawn = [], {}
    for cell in code_cells(book):
        with pytest.MonkeyPatch.context() as patch:
            entry = ignored_cells.listed(number, cell.source)
            if entry and entry.words:
                patch.setattr(numbers, "_refuse_edge", refuse_unrounded)
            began = time.process_time()
            ran = shell.run(cell.source)
            ran.seconds = time.process_time() - began
        if isinstance(ran.value, base.Picture):
            drawn[cell.id] = faces(ran.value)
        ran.value = None  # a model need not stay
        made.append((cell, ran))
    return made, drawn


class Once:
    """A notebook, what its cells gave, and the shell in which they ran."""

    def __init__(self, path, shell):
        self.number, self.book, self.shell = path.name[:2], nbformat.read(path, as_version=4), shell
        self.made, self.drawn = once_through(self.book, shell, self.number)
