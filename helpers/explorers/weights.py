"""Notebook 02: a matrix of weights, painted by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import numpy as np
import traitlets

from helpers.explorers.explorer import Explorer, checkbox, say
from helpers.numbers import number
from helpers.pictures.checks import as_matrix
from helpers.pictures.colours import css, ink, paint
from helpers.pictures.table import html_table, td
from helpers.show import align_columns

if TYPE_CHECKING:
    pass


PRESETS: dict[str, Callable[[int, int], float]] = {
    "causal": lambda t, j: float(j <= t),
    "window": lambda t, j: float(t - 3 < j <= t),
    "last token": lambda t, j: float(j == t),
    "decay": lambda t, j: 0.5 ** (t - j) if j <= t else 0.0,
}


def explore_weights(x: Any) -> Explorer:
    """Paint a T x T matrix of weights by hand; see the outputs weights @ x and the row sums.

    Parameters
    ----------
    x : tensor, array or nested lists, (T, C)
        One sequence, T at most 8, C at most 4.

    Raises
    ------
    ValueError
        If `x` is not (T, C) or too large to read.
    """
    values = as_matrix(x, "x").astype(float)
    T, C = values.shape
    if T > 8 or C > 4:
        raise ValueError(
            f"explore_weights has room for 8 tokens and 4 channels, got shape {values.shape}; "
            f"pass a slice such as x[:8, :2]"
        )
    controls = {
        "preset": widgets.Dropdown(
            options=[*PRESETS, "painted"], value="causal", description="preset",
            style={"description_width": "initial"}, layout={"width": "190px"},
        ),
        "normalise": checkbox("normalise: divide every row by its sum", True),
        "painter": Painter(_preset("causal", T)),
    }  # fmt: skip

    choices = {name: _preset(name, T) for name in PRESETS}  # and "painted", once something is

    def repaint(change: Any) -> None:
        if change["new"] in choices:
            controls["painter"].value = choices[change["new"]]

    def rename(change: Any) -> None:
        names = [name for name in PRESETS if choices[name] == change["new"]]
        if not names:  # kept, to come back to from a preset
            names, choices["painted"] = ["painted"], change["new"]
        if controls["preset"].value not in names:
            controls["preset"].value = names[0]

    controls["preset"].observe(repaint, names="value")
    controls["painter"].observe(rename, names="value")

    def weigh(painter: tuple, normalise: bool) -> tuple[np.ndarray, np.ndarray]:
        raw = np.array(painter)
        sums = raw.sum(1, keepdims=True)
        with np.errstate(invalid="ignore"):
            weights = raw / sums if normalise else raw
        return weights, weights @ values

    def warn(painter: tuple, normalise: bool) -> list[str]:
        raw = np.array(painter)
        sums = raw.sum(1)
        empty = np.flatnonzero(sums == 0)
        odd = np.flatnonzero((sums != 0) & (np.abs(sums - 1) > 1e-9))
        future = np.flatnonzero(np.triu(raw, 1).any(1))
        notes = []
        if len(empty):
            why = "and 0/0 is nan" if normalise else "so the output is 0"
            notes.append(f"{_rows(empty, 'sum', 'sums')} to 0: nothing to average, {why}.")
        if len(odd) and not normalise:
            rows = _rows(odd, "do not sum", "does not sum")
            notes.append(f"{rows} to 1: a weighted sum, not an average.")
        if len(future):
            rows = _rows(future, "see", "sees")
            notes.append(f"{rows} the future: weight on a token after its own.")
        return notes

    def draw(preset: str, normalise: bool, painter: tuple) -> str:
        weights, out = weigh(painter, normalise)
        colours = paint(weights, 0, max(1.0, float(np.nan_to_num(weights).max())), None)
        reach = max(float(np.abs(values).max()), 1e-9)
        tints = paint(out, -reach, reach, 0.0)
        rows = []
        for t in range(T):
            cells = [td(number(w), css(c)) for w, c in zip(weights[t], colours[t], strict=True)]
            cells.append(td(number(weights[t].sum()), "font-weight:bold;"))
            cells += [td(number(o), css(c)) for o, c in zip(out[t], tints[t], strict=True)]
            rows.append((str(t), cells))
        columns = [*map(str, range(T)), "row sum", *(f"out {c}" for c in range(C))]
        table = html_table("weights, and out = weights @ x", columns, rows, corner="query")
        notes = [f"⚠ {note}" for note in warn(painter, normalise)]
        return table + say(*(notes or ["✓ Every row sums to 1, and no row sees the future."]))

    def tell(preset: str, normalise: bool, painter: tuple) -> str:
        weights, out = weigh(painter, normalise)
        told = [["", "painted", "row sum", *(f"out {c}" for c in range(C))]]
        for t in range(T):
            raw = " ".join(_brief(w) for w in painter[t])
            told.append([f"row {t}", raw, number(weights[t].sum()), *map(number, out[t])])
        how = "each row divided by its sum" if normalise else "as painted"
        return "\n".join([f"{preset}, {how}", *align_columns(told), *warn(painter, normalise)])

    def arrange(c: dict[str, widgets.Widget], view: widgets.Widget) -> widgets.Widget:
        top = widgets.HBox([c["preset"], c["normalise"]], layout={"align_items": "center"})
        below = widgets.HBox([c["painter"], view], layout={"flex_flow": "row wrap"})
        return widgets.VBox([top, below])

    return Explorer(
        "paint a matrix of weights (a click on a cell: 0, 1, 2, 0, …); see outputs and row sums.",
        controls,
        draw,
        tell,
        arrange,
    )


def _preset(name: str, T: int) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(PRESETS[name](t, j) for j in range(T)) for t in range(T))


def _rows(rows: np.ndarray, many: str, one: str) -> str:
    names = ", ".join(str(r) for r in rows)
    return f"row {names} {one}" if len(rows) == 1 else f"rows {names} {many}"


def _brief(weight: float) -> str:
    """Write a painted weight in three letters at most: 0, 1, 2, .5, .25, .13."""
    return number(weight).removeprefix("0") if 0 < weight < 1 else f"{weight:g}"


class Painter(widgets.GridBox):
    """A square of buttons, one a weight; a click turns 0 into 1, 1 into 2, anything else into 0.

    `value` is the matrix, a tuple of rows; ``painter.buttons[t, j].click()`` paints one cell.
    """

    value = traitlets.Tuple()

    def __init__(self, value: tuple[tuple[float, ...], ...]) -> None:
        T = len(value)
        size = widgets.Layout(width="34px", height="28px", padding="0", margin="0")
        self.buttons = {
            (t, j): widgets.Button(layout=size) for t, j in itertools.product(range(T), repeat=2)
        }
        self._styles: dict[float, widgets.ButtonStyle] = {}
        for (t, j), button in self.buttons.items():
            button.on_click(lambda _, t=t, j=j: self._cycle(t, j))
        flat = widgets.Layout(margin="0", height="28px")
        over = widgets.Layout(margin="0", height="28px", grid_area="1 / 1 / 2 / -1")
        head = '<div style="text-align:center;line-height:28px;font-size:12px">{}</div>'
        note = "<b>paint</b>: row = query, column = key"
        cells = [widgets.HTML(head.format(note), layout=over), widgets.HTML(layout=flat)]
        cells += [widgets.HTML(head.format(j), layout=flat) for j in range(T)]
        for t in range(T):
            cells.append(widgets.HTML(head.format(t), layout=flat))
            cells += [self.buttons[t, j] for j in range(T)]
        super().__init__(
            children=cells,
            layout={
                "grid_template_columns": f"18px repeat({T}, 34px)",
                "grid_auto_rows": "28px",
                "grid_gap": "2px",
                "margin": "4px 24px 4px 0",
            },
        )
        self.observe(self._colour, names="value")
        self.value = value

    def _cycle(self, t: int, j: int) -> None:
        rows = [list(row) for row in self.value]
        rows[t][j] = {0.0: 1.0, 1.0: 2.0}.get(rows[t][j], 0.0)
        self.value = tuple(map(tuple, rows))

    def _colour(self, change: Any) -> None:
        for (t, j), button in self.buttons.items():
            weight = self.value[t][j]
            with button.hold_sync():
                button.description = _brief(weight)
                button.style = self._style(weight)
                button.tooltip = f"query {t}, key {j}: raw weight {weight:g}"

    def _style(self, weight: float) -> widgets.ButtonStyle:
        if weight not in self._styles:
            colour = paint(np.array([weight]), 0, 2, None)[0]
            code = "#" + "".join(f"{round(255 * float(part)):02x}" for part in colour)
            self._styles[weight] = widgets.ButtonStyle(
                button_color=code, text_color=str(ink(colour))
            )
        return self._styles[weight]
