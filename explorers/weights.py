"""Notebook 02: a matrix of weights, set by hand, and the outputs that it gives."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets
import numpy as np
import traitlets

from attention_base.numbers import align_columns, narrow, number, texts
from explorers.explorer import Explorer, checkbox, coloured_cells, dropdown, in_a_row, sentences
from helpers.pictures.checks import as_matrix, as_names
from helpers.pictures.table import Cell, Table, text_html

PRESETS: dict[str, Callable[[int, int], float]] = {
    "causal": lambda t, j: float(j <= t),
    "window": lambda t, j: float(t - 3 < j <= t),
    "itself": lambda t, j: float(j == t),
    "decay": lambda t, j: 0.5 ** (t - j) if j <= t else 0.0,
}
ROW = "26.8px"  # as high as a row of the table
Matrix = tuple[tuple[float, ...], ...]  # (T, T) as set: row = output, column = input


def explore_weights(x: Any, words: Sequence[str] | None = None) -> Explorer:
    """Set a T x T matrix of weights by hand; see the outputs weights @ x and the row sums.

    Parameters
    ----------
    x : tensor, array or nested lists, (T, C)
        One sequence, T at most 8, C at most 4.
    words : sequence of str
        The tokens' names; without: 0, 1, 2, …

    Raises
    ------
    TypeError
        If `words` is no list.
    ValueError
        If `x` is not (T, C) or too large to read, or if `words` are not T.
    """
    values = as_matrix(x, "x").astype(float)
    T, C = values.shape
    if T > 8 or C > 4:
        raise ValueError(
            f"explore_weights has room for 8 tokens and 4 channels, got shape {values.shape}; "
            f"pass a slice such as x[:8, :2]"
        )
    return WeightsExplorer(values, as_names(words, T, "words", "tokens"))


class WeightsExplorer(Explorer):
    """A square of buttons to set weights; a table of the weights, their row sums and the outputs.

    Parameters
    ----------
    x : (T, C)
    labels : T strings
        The names of the tokens.
    """

    about = "set the weights (a click on a cell: 0, 1, 2, 0, …); see the outputs and the row sums."

    def __init__(self, x: np.ndarray, labels: list[str]) -> None:
        self.x, self.labels = x, labels
        T, C = x.shape
        self._channels = [""] if C == 1 else [f", ch. {c}" for c in range(C)]
        self._matrices: dict[str, Matrix] = {
            name: tuple(tuple(weight(t, j) for j in range(T)) for t in range(T))
            for name, weight in PRESETS.items()
        }  # and "by hand", once something is
        controls = {
            "preset": dropdown("preset", [*PRESETS, "by hand"], "causal"),
            "normalise": checkbox("normalise: divide every row by its sum", True),
            "cells": Painter(self._matrices["causal"], labels),
        }
        controls["preset"].observe(self._paint_preset, names="value")
        controls["cells"].observe(self._name_painting, names="value")
        super().__init__(controls)

    def _paint_preset(self, change: Any) -> None:
        if change["new"] in self._matrices:
            self.controls["cells"].value = self._matrices[change["new"]]

    def _name_painting(self, change: Any) -> None:
        names = [name for name in PRESETS if self._matrices[name] == change["new"]]
        if not names:  # kept, to come back to from a preset
            names, self._matrices["by hand"] = ["by hand"], change["new"]
        if self.controls["preset"].value not in names:
            self.controls["preset"].value = names[0]

    def arrange(self) -> widgets.Widget:
        """Put the square of buttons to the left of the table."""
        options = in_a_row(self.controls["preset"], self.controls["normalise"])
        below = widgets.HBox([self.controls["cells"], self.view], layout={"flex_flow": "row wrap"})
        return widgets.VBox([options, below])

    def draw(self, preset: str, normalise: bool, cells: Matrix) -> str:
        """Draw weights and outputs, and warn of what makes them no averages of the past."""
        weights, out = self._mix(cells, normalise)
        T, C = self.x.shape
        largest = max(1.0, float(np.nan_to_num(weights).max()))
        weight_cells = coloured_cells(weights, 0, largest)
        reach = max(float(np.abs(self.x).max()), 1e-9)
        out_cells = coloured_cells(out, -reach, reach, 0.0)
        rows = []
        for t in range(T):
            row_sum = Cell(number(weights[t].sum()), "bold")
            rows.append((self.labels[t], [*weight_cells[t], row_sum, *out_cells[t]]))
        for c, channel in enumerate(self._channels):
            x_cells = [Cell(value, "plain") for value in texts(self.x[:, c])]
            rows.append((f"x{channel}", [*x_cells, *[Cell("")] * (1 + C)]))
        columns = [*self.labels, "row sum", *(f"result{channel}" for channel in self._channels)]
        table = Table(columns, rows, "weights, and result = weights @ x", corner="output")
        warnings = [f"⚠ {warning}" for warning in self._warnings(cells, normalise)]
        fine = "✓ Every row sums to 1, and no row sees the future."
        return table.html(classes=True) + sentences(*(warnings or [fine]))

    def describe(self, preset: str, normalise: bool, cells: Matrix) -> str:
        """Say the weights as they were set, row sums and outputs as a table, and the warnings."""
        weights, out = self._mix(cells, normalise)
        lines = [["", "cells", "row sum", *(f"result{channel}" for channel in self._channels)]]
        for t, raw in enumerate(cells):
            as_set = " ".join(map(narrow, raw))
            lines.append(
                [f"row {self.labels[t]}", as_set, number(weights[t].sum()), *map(number, out[t])]
            )
        for c, channel in enumerate(self._channels):
            values = " ".join(texts(self.x[:, c]))
            lines.append([f"x{channel}", values, *[""] * (1 + len(self._channels))])
        how = "each row divided by its sum" if normalise else "not divided by the row sums"
        return "\n".join(
            [f"{preset}, {how}", *align_columns(lines), *self._warnings(cells, normalise)]
        )

    def _mix(self, painted: Matrix, normalise: bool) -> tuple[np.ndarray, np.ndarray]:
        """Weights (T, T) and outputs (T, C)."""
        weights = np.array(painted)
        if normalise:
            with np.errstate(invalid="ignore"):  # an empty row: 0 / 0 is nan, and shown as such
                weights = weights / weights.sum(1, keepdims=True)
        return weights, weights @ self.x

    def _warnings(self, painted: Matrix, normalise: bool) -> list[str]:
        """What makes a row no average of the past."""
        raw = np.array(painted)
        sums = raw.sum(1)
        empty = np.flatnonzero(sums == 0)
        odd = np.flatnonzero((sums != 0) & (np.abs(sums - 1) > 1e-9))
        future = np.flatnonzero(np.triu(raw, 1).any(1))
        warnings = []
        if len(empty):
            why = "and 0/0 is nan" if normalise else "so the output is 0"
            warnings.append(f"{self._rows(empty, 'sum', 'sums')} to 0: nothing to average, {why}.")
        if len(odd) and not normalise:
            rows = self._rows(odd, "do not sum", "does not sum")
            warnings.append(f"{rows} to 1: a weighted sum, not an average.")
        if len(future):
            warnings.append(
                f"{self._rows(future, 'see', 'sees')} the future: weight on a token after its own."
            )
        return warnings

    def _rows(self, rows: np.ndarray, plural: str, singular: str) -> str:
        """Rows and their verb: "row 1 sees", "rows 1, 2 see"."""
        labels = [self.labels[row] for row in rows]
        names = ", ".join(label if label.isdigit() else f"“{label}”" for label in labels)
        return f"row {names} {singular}" if len(rows) == 1 else f"rows {names} {plural}"


class Painter(widgets.GridBox):
    """A square of buttons, one a weight; a click turns 0 into 1, 1 into 2, anything else into 0.

    `value` is the matrix, a tuple of rows; ``painter.buttons[t, j].click()`` paints one cell.
    """

    value = traitlets.Tuple()

    def __init__(self, value: Matrix, labels: Sequence[str]) -> None:
        self.labels, T = labels, len(value)
        size = widgets.Layout(width="34px", height=ROW, padding="0", margin="0")
        self.buttons = {
            (t, j): widgets.Button(layout=size) for t, j in itertools.product(range(T), repeat=2)
        }
        bold = widgets.ButtonStyle(font_weight="bold")
        self._styles = {False: widgets.ButtonStyle(), True: bold}  # of 0, of a weight
        for (t, j), button in self.buttons.items():
            button.on_click(lambda _, t=t, j=j: self._paint(t, j))
        flat = widgets.Layout(margin="0", height=ROW)
        over = widgets.Layout(margin="0", grid_area="1 / 1 / 2 / -1")
        head = (
            '<div style="text-align:{};line-height:26px;font-size:12px;white-space:nowrap">{}</div>'
        )
        note = "<b>click a cell</b> (column = input)"
        cells = [widgets.HTML(head.format("center", note), layout=over)]
        cells.append(widgets.HTML(head.format("right", "output"), layout=flat))
        names = [text_html(label) for label in labels]
        cells += [widgets.HTML(head.format("center", name), layout=flat) for name in names]
        for t in range(T):
            cells.append(widgets.HTML(head.format("right", names[t]), layout=flat))
            cells += [self.buttons[t, j] for j in range(T)]
        super().__init__(
            children=cells,
            layout={
                "grid_template_columns": f"max-content repeat({T}, 34px)",
                "grid_auto_rows": ROW,
                "grid_gap": "2px",
                "margin": "1px 24px 4px 0",
            },
        )
        self.observe(self._show, names="value")
        self.value = value

    def _paint(self, t: int, j: int) -> None:
        rows = [list(row) for row in self.value]
        rows[t][j] = {0.0: 1.0, 1.0: 2.0}.get(rows[t][j], 0.0)
        self.value = tuple(map(tuple, rows))

    def _show(self, change: Any) -> None:
        """Write on all buttons; the colours stand in the table beside them."""
        for (t, j), button in self.buttons.items():
            weight = self.value[t][j]
            with button.hold_sync():
                button.description = narrow(weight)
                button.style = self._styles[weight > 0]
                button.tooltip = (
                    f"output {self.labels[t]}, input {self.labels[j]}: weight {weight:g}"
                )
