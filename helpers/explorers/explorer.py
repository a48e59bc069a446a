"""Live explorers: a few controls and one drawing that follows them.

An `Explorer` watches its controls and writes HTML into one widget. A drawing takes a millisecond,
so the picture moves with the slider. Tests drive it as a hand would: ``explorer.controls["t"].value
= 3``, then read ``explorer.view.value`` or ``str(explorer)``. Where widgets cannot be shown (a page
on the web, a saved notebook) the text stands for it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets
import numpy as np
import traitlets

from helpers.numbers import any_rounding, number
from helpers.pictures import base as pic
from helpers.pictures.drawings import MARKED, PLAIN, points_and_mean, square_around
from helpers.pictures.matrix import as_matrix, css, ink, paint
from helpers.show import align_columns

GLOW = "#e8792b"  # orange that is seen on light and on dark
STAR = "M0,-19L5,-6L18,-6L7,2L11,16L0,8L-11,16L-7,2L-18,-6L-5,-6Z"


class Explorer:
    """Controls, a drawing that follows them, and a text that says what it shows.

    Parameters
    ----------
    what : str
        One line on what can be explored.
    controls : dict of name -> widget
        Whatever has a `value`; `draw` and `tell` get these values by name.
    draw : (**values) -> str
        The picture as HTML.
    tell : (**values) -> str
        The state in words and numbers.
    layout : (controls, view) -> widget
        How they are arranged; without: the controls above the view.
    """

    def __init__(
        self,
        what: str,
        controls: dict[str, widgets.Widget],
        draw: Callable[..., str],
        tell: Callable[..., str],
        layout: Callable[[dict[str, widgets.Widget], widgets.Widget], widgets.Widget] | None = None,
    ) -> None:
        self.what, self.controls = what, controls
        self._draw, self._tell = draw, tell
        self.view = widgets.HTML()
        arrange = layout or (lambda c, view: widgets.VBox([*c.values(), view]))
        self.box = arrange(controls, self.view)
        for control in controls.values():
            control.observe(self._follow, names="value")
        self._follow()

    def _values(self) -> dict[str, Any]:
        return {name: control.value for name, control in self.controls.items()}

    def _follow(self, change: Any = None) -> None:
        try:
            with any_rounding():
                self.view.value = self._draw(**self._values())
        except Exception as error:  # a callback's traceback would vanish: say it where the eyes are
            self.view.value = (
                '<div role="alert" style="border-left:4px solid #d6006c;padding:6px 10px">'
                f"<b>This setting cannot be drawn.</b> {pic.text_html(_in_words(error))}. "
                "Move a control back to go on.</div>"
            )

    def __str__(self) -> str:
        try:
            with any_rounding():
                now = self._tell(**self._values())
        except Exception as error:
            now = f"this setting cannot be drawn, {_in_words(error)}"
        return f"Live: {self.what}\nControls: {', '.join(self.controls)}.\nNow: {now}"

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self.box._repr_mimebundle_() | {"text/plain": str(self)}


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(".: ")


def slider(name: str, value: float, low: float, high: float, step: float = 1) -> widgets.Widget:
    """A slider with its name in front; of whole numbers if `step` is whole."""
    kind = widgets.IntSlider if isinstance(step, int) else widgets.FloatSlider
    more = {} if kind is widgets.IntSlider else {"readout_format": ".1f"}
    return kind(
        value=value, min=low, max=high, step=step, description=name,
        style={"description_width": "initial"}, layout={"width": "300px"}, **more,
    )  # fmt: skip


def checkbox(name: str, value: bool = False) -> widgets.Checkbox:
    """A box to tick, with its name behind it."""
    return widgets.Checkbox(value=value, description=name, indent=False, layout={"width": "auto"})


def say(*sentences: str) -> str:
    """Sentences as HTML, one a line; empty ones are left out."""
    return "".join(
        f'<p style="margin:4px 0;line-height:1.4">{pic.text_html(s)}</p>' for s in sentences if s
    )


# --- 00: which axis goes? ---------------------------------------------------------------------

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
            + f"{pic.text_html(shapes)}</code>"
            + pic.side_by_side(_stack(DIGITS, source, names))
            + '<p style="margin:10px 0 2px;font-weight:bold">out</p>'
            + pic.side_by_side(_stack(out, wins, left))
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
        (str(r), [pic.td(str(v), MARKED if m else PLAIN) for v, m in zip(vs, ms, strict=True)])
        for r, (vs, ms) in enumerate(zip(values, marked, strict=True))
    ]
    columns = [str(c) for c in range(values.shape[1])]
    return pic.html_table(caption, columns, rows, corner=names[0], over=names[1])


# --- 01: the mean of a prefix, in the plane ---------------------------------------------------


def explore_prefix(x: Any) -> Explorer:
    """Move t: see tokens 0 … t of a sequence x (T, 2) in the plane, and their running mean."""
    points, _ = points_and_mean(x, 0)
    means = np.cumsum(points, 0) / np.arange(1, len(points) + 1)[:, None]
    low, high = square_around(points)
    side = 340

    def place(point: np.ndarray) -> tuple[float, float]:
        a, b = (point - low) / (high - low) * side
        return round(float(a), 1), round(side - float(b), 1)

    lines_ = []
    every = max(1, round(float(high[0] - low[0]) / 5))
    for v in range(math.floor(low.min() / every) * every, math.ceil(high.max()), every):
        a, b = place(np.array([v, v]))
        weight = 0.45 if v == 0 else 0.15
        if 8 < a < side - 8:
            lines_.append(
                f'<path d="M{a},0V{side}" stroke="currentColor" opacity="{weight}"/>'
                f'<text x="{a}" y="{side + 15}" text-anchor="middle" opacity=".8">{v}</text>'
            )
        if 8 < b < side - 8:
            lines_.append(
                f'<path d="M0,{b}H{side}" stroke="currentColor" opacity="{weight}"/>'
                f'<text x="-6" y="{b + 4}" text-anchor="end" opacity=".8">{v}</text>'
            )
    grid = "".join(lines_) + (
        f'<text x="{side / 2}" y="{side + 32}" text-anchor="middle" opacity=".8">channel 0</text>'
        f'<text transform="translate(-26,{side / 2}) rotate(-90)" text-anchor="middle" '
        f'opacity=".8">channel 1</text>'
        f'<rect width="{side}" height="{side}" fill="none" stroke="currentColor" opacity=".3"/>'
    )

    def draw(t: int) -> str:
        path = " ".join(f"{a},{b}" for a, b in map(place, means[: t + 1]))
        parts = [f'<polyline points="{path}" fill="none" stroke="{GLOW}" stroke-width="2.5"/>']
        for mean in means[:t]:
            a, b = place(mean)
            parts.append(f'<circle cx="{a}" cy="{b}" r="3" fill="{GLOW}"/>')
        a, b = place(means[t])
        # Pale, under the tokens, and wider than one: neither hides the other where they meet.
        parts.append(
            f'<path d="{STAR}" transform="translate({a},{b}) scale(1.4)" fill="{GLOW}" '
            f'fill-opacity=".4" stroke="{GLOW}" stroke-width="2"/>'
        )
        for i, point in enumerate(points):
            a, b = place(point)
            seen = i <= t
            fill, letters = (pic.BLUE, "white") if seen else ("none", "currentColor")
            parts.append(
                f'<g opacity="{1 if seen else 0.7}"><circle cx="{a}" cy="{b}" r="10" '
                f'fill="{fill}" stroke="{"white" if seen else letters}"/>'
                f'<text x="{a}" y="{b + 4}" text-anchor="middle" fill="{letters}">{i}</text></g>'
            )
        svg = (
            f'<svg width="{side + 42}" height="{side + 40}" '
            f'viewBox="-40 -2 {side + 42} {side + 40}" role="img" '
            f'aria-label="{pic.text_html(tell(t))}" '
            f'style="font:12px sans-serif;fill:currentColor">{grid}{"".join(parts)}</svg>'
        )
        rows = [
            (
                str(i),
                [
                    *(pic.td(number(v), PLAIN if i <= t else "opacity:.75") for v in point),
                    *(pic.td(number(v) if i <= t else "", MARKED if i == t else "") for v in mean),
                ],
            )
            for i, (point, mean) in enumerate(zip(points.tolist(), means.tolist(), strict=True))
        ]
        columns = ["channel 0", "channel 1", "mean, ch. 0", "mean, ch. 1"]
        table = pic.html_table("", columns, rows, corner="token")
        return pic.side_by_side([svg, table]) + say(tell(t) + ".")

    def tell(t: int) -> str:
        who = "token 0" if t == 0 else f"tokens 0…{t}"
        spot = f"({number(means[t, 0])}, {number(means[t, 1])})"
        return f"t = {t}: the mean of {who} is {spot}, {t + 1} of {len(points)} tokens in it"

    return Explorer(
        "move t; see the tokens 0…t, the path of their running mean, and the mean.",
        {"t": slider("t", min(3, len(points) - 1), 0, len(points) - 1)},
        draw,
        tell,
    )


# --- 02: paint the weights --------------------------------------------------------------------

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
            cells = [pic.td(number(w), css(c)) for w, c in zip(weights[t], colours[t], strict=True)]
            cells.append(pic.td(number(weights[t].sum()), "font-weight:bold;"))
            cells += [pic.td(number(o), css(c)) for o, c in zip(out[t], tints[t], strict=True)]
            rows.append((str(t), cells))
        columns = [*map(str, range(T)), "row sum", *(f"out {c}" for c in range(C))]
        table = pic.html_table("weights, and out = weights @ x", columns, rows, corner="query")
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


# --- 03: from scores to weights ---------------------------------------------------------------


def explore_softmax() -> Explorer:
    """Five scores, a temperature and a mask: see the weights, and how spread out they are."""
    start = (1.0, 0.0, 2.0, -1.0, 3.0)
    controls = {f"token {j}": slider(f"token {j}", s, -4, 4, 0.1) for j, s in enumerate(start)}
    controls["temperature"] = slider("temperature", 1.0, 0.1, 5, 0.1)
    controls["mask"] = checkbox("mask: tokens 3 and 4 are the future")

    def steps(values: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        scores = np.array([values[f"token {j}"] for j in range(5)])
        divided = scores / values["temperature"]
        if values["mask"]:
            divided[3:] = -np.inf
        weights = np.exp(divided - divided.max())
        weights /= weights.sum()
        alive = weights[weights > 0]
        return scores, divided, weights, float(-(alive * np.log2(alive)).sum()) + 0.0

    def draw(**values: Any) -> str:
        _, divided, weights, bits = steps(values)
        rows = []
        for j in range(5):
            hidden = values["mask"] and j >= 3
            look = "text-align:left;padding:0;min-width:320px;height:30px;white-space:nowrap"
            bar = (
                f'<td style="{look}"><div style="display:inline-block;vertical-align:middle;'
                f'height:20px;width:{260 * weights[j]:.1f}px;background:#4a90c8"></div>'
                f'<span style="padding-left:6px;vertical-align:middle">{number(weights[j])}'
                f"{' (masked)' * hidden}</span></td>"
            )
            cells = [pic.td(number(divided[j]), pic.HATCH if hidden else PLAIN)]
            rows.append((f"token {j}", [*cells, bar]))
        over = "score / temperature" + (", then the mask" if values["mask"] else "")
        table = pic.html_table("", [over, "weight"], rows)
        return table + say(entropy(values, bits))

    def entropy(values: dict[str, Any], bits: float) -> str:
        n = 3 if values["mask"] else 5
        return (
            f"Entropy {number(bits)} bits of at most {number(np.log2(n))}: as spread out as "
            f"{number(2**bits, 1)} equal weights."
        )

    def tell(**values: Any) -> str:
        scores, _, weights, bits = steps(values)
        return (
            f"scores {' '.join(number(s, 1) for s in scores)}, "
            f"temperature {number(values['temperature'], 1)}, "
            f"mask {'on' if values['mask'] else 'off'}: weights "
            f"{' '.join(map(number, weights))}. {entropy(values, bits)}"
        )

    def arrange(c: dict[str, widgets.Widget], view: widgets.Widget) -> widgets.Widget:
        first = widgets.HTML('<div style="font-size:12px">scores</div>', layout={"height": "22px"})
        left = widgets.VBox([first, *(c[f"token {j}"] for j in range(5))])
        top = widgets.HBox([c["temperature"], c["mask"]], layout={"flex_flow": "row wrap"})
        return widgets.VBox([top, widgets.HBox([left, view], layout={"flex_flow": "row wrap"})])

    return Explorer(
        "move five scores, the temperature and the mask; see the weights.",
        controls,
        draw,
        tell,
        arrange,
    )
