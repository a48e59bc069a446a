"""Notebook 00: the axis that a sum removes, and the numbers that are added into each result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import ipywidgets as widgets
import numpy as np

from helpers.explorers.explorer import Explorer, checkbox, in_a_row, sentences, slider
from helpers.pictures.table import Cell, Table, side_by_side, text_html

DIGITS = np.array(
    [[[3, 1, 4, 1], [5, 9, 2, 6], [0, 3, 5, 8]], [[2, 7, 1, 8], [4, 0, 9, 3], [6, 2, 3, 5]]]
)  # (2, 3, 4)
AXES = ("b", "t", "c")


def explore_axis() -> Explorer:
    """Sum a (2, 3, 4) tensor over one of its axes, and trace any number of the result."""
    return AxisExplorer()


class AxisExplorer(Explorer):
    """A tensor and its sum: one cell of the sum is marked, and the numbers that were added."""

    about = "choose the axis of a sum, and see which numbers are added."

    def __init__(self) -> None:
        controls = {
            "dim": slider("dim", 0, -3, 2),
            "keepdim": checkbox("keepdim"),
            "cell": slider("number of the result", 9, 0, 11),
        }

        def fit_cell(change: Any) -> None:
            # The result has 12, 8 or 6 numbers: the slider ends at the last one.
            controls["cell"].max = DIGITS.size // DIGITS.shape[change["new"]] - 1

        controls["dim"].observe(fit_cell, names="value")
        super().__init__(controls)

    def arrange(self) -> widgets.Widget:
        """Put the slider of the cell below the options of the sum."""
        dim, keepdim, cell = self.controls.values()
        return widgets.VBox([in_a_row(dim, keepdim), cell, self.view])

    def draw(self, dim: int, keepdim: bool, cell: int) -> str:
        """Draw the tensor and its sum as tables, the traced cells marked."""
        traced = _trace(dim, keepdim, cell)
        marked = np.zeros(traced.out.shape, dtype=bool)
        marked[traced.place] = True
        axes = [name for i, name in enumerate(AXES) if keepdim or i != dim % 3]
        return (
            '<code style="font-size:14px;background:none;color:inherit">'
            f"{text_html(traced.shapes)}</code>"
            f"{_tables(DIGITS, traced.added, AXES)}"
            '<p style="margin:10px 0 2px;font-weight:bold">out</p>'
            f"{_tables(traced.out, marked, axes)}{sentences(traced.equation)}"
        )

    def describe(self, dim: int, keepdim: bool, cell: int) -> str:
        """Say the shapes, and how the traced number comes about."""
        traced = _trace(dim, keepdim, cell)
        return f"{traced.shapes}; {traced.equation}"


class _Trace(NamedTuple):
    """A sum, and where one of its numbers comes from."""

    out: np.ndarray  # the sum
    place: tuple[int, ...]  # the index of the number in it
    added: np.ndarray  # bool (2, 3, 4): the numbers of the tensor that were added
    shapes: str
    equation: str


def _trace(dim: int, keepdim: bool, cell: int) -> _Trace:
    """Sum over `dim`, and find what went into number `cell` of the result."""
    axis = dim % 3
    out = DIGITS.sum(axis, keepdims=keepdim)
    before_and_after = np.delete(DIGITS.shape, axis)
    place = [int(i) for i in np.unravel_index(cell, before_and_after)]
    added = np.zeros(DIGITS.shape, dtype=bool)
    added[(*place[:axis], slice(None), *place[axis:])] = True
    if keepdim:
        place.insert(axis, 0)
    option = ", keepdim=True" if keepdim else ""
    terms = " + ".join(str(digit) for digit in DIGITS[added])
    return _Trace(
        out=out,
        place=tuple(place),
        added=added,
        shapes=f"x.sum(dim={dim}{option}): {DIGITS.shape} -> {out.shape}",
        equation=f"out[{', '.join(map(str, place))}] = {terms} = {out[tuple(place)]}",
    )


def _tables(values: np.ndarray, marked: np.ndarray, axes: Sequence[str]) -> str:
    """Draw a 2-D array of integers as a table, a 3-D one as a table for each index of axis 0."""
    if values.ndim == 2:
        values, marked, captions = values[None], marked[None], [""]
    else:
        captions = [f"{axes[0]} = {i}" for i in range(len(values))]
    return side_by_side(
        [
            _table(sheet, marks, caption, *axes[-2:])
            for sheet, marks, caption in zip(values, marked, captions, strict=True)
        ]
    )


def _table(values: np.ndarray, marked: np.ndarray, caption: str, corner: str, over: str) -> str:
    looks = np.where(marked, "marked", "plain")
    rows = [
        (str(r), [Cell(str(v), str(look)) for v, look in zip(*row, strict=True)])
        for r, row in enumerate(zip(values, looks, strict=True))
    ]
    columns = [str(c) for c in range(values.shape[1])]
    return Table(columns, rows, caption, corner, over).html(classes=True)
