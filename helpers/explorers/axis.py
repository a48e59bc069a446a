"""Notebook 00: the axis that a sum removes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import numpy as np

from helpers.explorers.explorer import Explorer, checkbox, say, slider
from helpers.pictures.table import MARKED, PLAIN, html_table, side_by_side, td, text_html

if TYPE_CHECKING:
    pass


DIGITS = np.array(
    [[[3, 1, 4, 1], [5, 9, 2, 6], [0, 3, 5, 8]], [[2, 7, 1, 8], [4, 0, 9, 3], [6, 2, 3, 5]]]
)


def explore_axis() -> Explorer:
    """Sum a (2, 3, 4) tensor over one of its axes, and trace any number of the result."""
    controls = {
        "dim": slider("dim", 1, -3, 2),
        "keepdim": checkbox("keepdim"),
        "cell": slider("cell of the result", 0, 0, 7),
    }

    def fit_cell(change: Any = None) -> None:
        # The result has 12, 8 or 6 numbers: the slider ends at the last one.
        controls["cell"].max = DIGITS.size // DIGITS.shape[controls["dim"].value] - 1

    controls["dim"].observe(fit_cell, names="value")

    def trace(dim: int, keepdim: bool, cell: int) -> tuple[np.ndarray, tuple, np.ndarray, str, str]:
        axis = dim % 3
        out = DIGITS.sum(axis, keepdims=keepdim)
        place = np.unravel_index(cell, np.delete(DIGITS.shape, axis))  # without the summed axis
        source = np.zeros(DIGITS.shape, dtype=bool)
        source[(*place[:axis], slice(None), *place[axis:])] = True
        if keepdim:
            place = (*place[:axis], 0, *place[axis:])
        place = tuple(int(i) for i in place)
        option = ", keepdim=True" if keepdim else ""
        shapes = f"x.sum(dim={dim}{option}): {DIGITS.shape} -> {out.shape}"
        added = " + ".join(str(d) for d in DIGITS[source])
        return (
            out,
            place,
            source,
            shapes,
            f"out[{', '.join(map(str, place))}] = {added} = {out[place]}",
        )

    def draw(dim: int, keepdim: bool, cell: int) -> str:
        out, place, source, shapes, added = trace(dim, keepdim, cell)
        wins = np.zeros(out.shape, dtype=bool)
        wins[place] = True
        names = ["b", "t", "c"]
        left = names if keepdim else [name for i, name in enumerate(names) if i != dim % 3]
        return (
            '<code style="font-size:14px;background:none;color:inherit">'
            + f"{text_html(shapes)}</code>"
            + side_by_side(_stack(DIGITS, source, names))
            + '<p style="margin:10px 0 2px;font-weight:bold">out</p>'
            + side_by_side(_stack(out, wins, left))
            + say(added)
        )

    def tell(dim: int, keepdim: bool, cell: int) -> str:
        *_, shapes, added = trace(dim, keepdim, cell)
        return f"{shapes}; {added}"

    return Explorer(
        "choose the axis of a sum; see which numbers collapse into one.",
        controls,
        draw,
        tell,
        lambda c, view: widgets.VBox([widgets.HBox([c["dim"], c["keepdim"]]), c["cell"], view]),
    )


def _stack(values: np.ndarray, marked: np.ndarray, names: Sequence[str]) -> list[str]:
    """Write a 2-D or 3-D array of integers as HTML tables, some cells marked."""
    if values.ndim == 2:
        return [_integers(values, marked, "", names)]
    return [
        _integers(sheet, m, f"{names[0]} = {i}", names[1:])
        for i, (sheet, m) in enumerate(zip(values, marked, strict=True))
    ]


def _integers(values: np.ndarray, marked: np.ndarray, caption: str, names: Sequence[str]) -> str:
    rows = [
        (str(r), [td(str(v), MARKED if m else PLAIN) for v, m in zip(vs, ms, strict=True)])
        for r, (vs, ms) in enumerate(zip(values, marked, strict=True))
    ]
    columns = [str(c) for c in range(values.shape[1])]
    return html_table(caption, columns, rows, corner=names[0], over=names[1])
