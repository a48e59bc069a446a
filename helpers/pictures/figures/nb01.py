"""Pictures that only notebook 01 shows: `staircase`, `weighted_sum`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_base.numbers import as_array, described, texts
from helpers.pictures import base
from helpers.pictures.base import Picture, titled
from helpers.pictures.checks import as_matrix, as_names, is_whole
from helpers.pictures.colours import BLUE, CELL, FAINT, INK, LINE, ORANGE, PALE, QUIET, Fill
from helpers.pictures.figures.vectors import draw_vector
from helpers.pictures.table import Cell, Table, grid, in_columns, side_by_side, widest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def staircase(T: int, *, title: str = "") -> Picture:
    """Draw who feeds whom: an arrow from each input to its own output, and to every later one.

    Parameters
    ----------
    T : int
        How many tokens, 1 to 12.

    Raises
    ------
    ValueError
        If T is out of range.
    """
    if not is_whole(T, 1, 12):
        raise ValueError(f"staircase draws 1 to 12 tokens, got {described(T)} for T")
    may = np.tri(T, dtype=bool)  # row t, column j: output t reads input j
    reads = [_inputs_in_words(t) for t in range(T)]
    text_lines = [titled("Who feeds whom", title)]
    text_lines += [f"output {t} reads {inputs}" for t, inputs in enumerate(reads)]
    table = Table(
        [str(j) for j in range(T)],
        [(str(t), [_arrow_cell(may[t, j], t == j) for j in range(T)]) for t in range(T)],
        title,
        corner="output",
        over="input",
    )
    return Picture(
        alt=f"{titled('Who feeds whom', title)}: {T} inputs below, {T} outputs above, "
        f"{int(may.sum())} arrows; output {T - 1} reads {reads[-1]}.",
        text="\n".join(text_lines),
        draw=lambda: _draw_staircase(may, title),
        html=table.html,
    )


def _inputs_in_words(t: int) -> str:
    """Say which inputs output t reads."""
    return f"input{'s' * (t > 1)} {', '.join(map(str, range(t)))} and itself" if t else "itself"


def _arrow_cell(may: bool, own: bool) -> Cell:
    if not may:
        return Cell("", "masked", note="no arrow")
    return Cell("self" if own else "yes", fill=Fill(ORANGE if own else BLUE, "white"))


def _draw_staircase(may: np.ndarray, title: str) -> Figure:
    """Draw inputs in a row, and above them each output one step higher than the one before."""
    T = len(may)
    step, rise = min(72, 820 / T), 22
    width = max(2 * base.PAD + 60 + T * step, 370)
    lines, y = base.heading(title, width - 2 * base.PAD)
    low = base.PAD + y + 92 + rise * (T - 1) + 34  # the line of the inputs
    figure, ax = base.empty_page(width, low + 48)
    base.write_heading(ax, lines)
    across = [base.PAD + 60 + (j + 0.5) * step for j in range(T)]
    high = [low - 100 - rise * t for t in range(T)]
    for t, j in np.argwhere(may):
        own = t == j
        ax.annotate(
            "", (across[t], high[t]), (across[j], low),
            arrowprops={
                "arrowstyle": "-|>,head_width=0.22,head_length=0.42",
                "color": ORANGE if own else FAINT,
                "linewidth": 2 if own else 1,
                "zorder": 2 if own else 1,
                "antialiased": own,  # smooth slanted lines double the file
                "shrinkA": 14, "shrinkB": 14,
            },
        )  # fmt: skip
    for t in range(T):
        _draw_token(ax, across[t], low, str(t), CELL)
        _draw_token(ax, across[t], high[t], str(t), "white")
    base.write(ax, base.PAD, low, "inputs", ha="left", color=QUIET)
    base.write(ax, base.PAD, high[0], "outputs", ha="left", color=QUIET)
    base.write(ax, base.PAD, low + 34, "orange: a token's own arrow", ha="left", color=ORANGE)
    base.write(ax, base.PAD + 190, low + 34, "blue: from another token", ha="left", color=BLUE)
    return figure


def _draw_token(ax: Axes, x: float, y: float, text: str, fill: str) -> None:
    from matplotlib.patches import Circle

    ax.add_patch(Circle((x, y), 11, facecolor=fill, edgecolor=INK, linewidth=1.2, zorder=3))
    base.write(ax, x, y, text, size=10, va="center_baseline", zorder=4)


MOST_ARROWS = 8  # tokens in `weighted_sum`


def weighted_sum(
    weights: Any,
    tokens: Any,
    labels: Sequence[Any] | None = None,
    *,
    channels: Sequence[str] = ("channel 0", "channel 1"),
    title: str = "",
) -> Picture:
    """Draw one row of weights times the tokens: each token shortened by its weight, then added.

    Parameters
    ----------
    weights : (T,), up to 8
        One row of weights.
    tokens : (T, 2)
        Each is an arrow in the plane.
    labels : sequence, (T,)
        Names of the tokens; without: 0, 1, 2, …
    channels : two texts
        Names of the axes, to the right and upwards.

    Raises
    ------
    ValueError
        If the shapes do not fit, there are more than 8 tokens, or a number is not finite.
    """
    w, x = as_array(weights, "weights").astype(float), as_matrix(tokens, "tokens").astype(float)
    if x.shape[1] != 2 or w.shape != x.shape[:1] or len(w) > MOST_ARROWS:
        raise ValueError(
            f"weighted_sum draws weights (T,) and tokens (T, 2) with up to {MOST_ARROWS} tokens, "
            f"got {w.shape} and {x.shape}; pick one row and one sequence, as in w[5] and x[0]"
        )
    if not (np.isfinite(w).all() and np.isfinite(x).all()):
        raise ValueError("weighted_sum needs finite numbers; there is nan or inf in them")
    names = as_names(labels, len(w), "labels", "tokens")
    across, up = as_names(channels, 2, "channels", "axes")
    shares = w[:, None] * x  # (T, 2)
    columns = {"weight": w, across: x[:, 0], up: x[:, 1]}
    columns |= {f"weight × {across}": shares[:, 0], f"weight × {up}": shares[:, 1]}
    table = in_columns("token", names, columns)
    ends = texts(shares.sum(0))
    last = [Cell(""), Cell(""), Cell("added:"), *(Cell(end, "marked") for end in ends)]
    table = replace(table, rows=[*table.rows, ("output", last)])
    return Picture(
        alt=f"{titled('A weighted sum as arrows', title)}: {len(w)} tokens as arrows "
        f"({across} to the right, {up} upwards), each shortened by its weight and put behind the "
        f"one before. The last tip is the output, ({', '.join(ends)}).",
        text=f"{titled('Weighted sum', title)}\n{table.text()}",
        draw=lambda: _draw_sum(table, x, shares, (across, up), title),
        html=lambda: side_by_side([table.html()], title),
    )


def _draw_sum(
    table: Table, tokens: np.ndarray, shares: np.ndarray, channels: tuple[str, str], title: str
) -> Figure:
    """Draw the table, and beside it the plane: tokens pale, shares blue, their sum orange."""
    height, least, side = (28, 54, 250) if base.TITLED else (26, 40, 140)
    label = widest([*table.names, table.corner], 0, 8)
    heads = ["\n".join(base.break_lines(head, 62)) for head in table.columns]
    words = zip(*([cell.text for cell in row] for row in table.cells), strict=True)
    pairs = zip(words, heads, strict=True)
    widths = [widest([*column, *head.split("\n")], least) for column, head in pairs]
    left = base.PAD + label
    plane = left + sum(widths) + 24 + base.text_width(channels[1]) / 2
    width = plane + side + base.text_width(channels[0]) + base.PAD
    lines, y = base.heading(title, width - 2 * base.PAD)
    top = base.PAD + y + 15 * max(1 + head.count("\n") for head in heads) + 8
    low = base.PAD + y + 20  # the plane begins below the name of its axis
    tall = max(top + height * len(table.rows), low + side)
    figure, ax = base.empty_page(width, tall + 40)
    base.write_heading(ax, lines)
    base.write(ax, left - 6, top - 9, table.corner, ha="right", color=QUIET, style="italic")
    grid(ax, left, top, table.cells, widths, height, names=table.names)
    for c, head in enumerate(heads):
        x = left + sum(widths[:c]) + widths[c] / 2
        base.write(ax, x, top - 3, head, va="bottom", color=QUIET, linespacing=1.2)
    path = np.cumsum(np.vstack([[0, 0], shares]), axis=0)  # (T + 1, 2)
    least, most = (bound(np.vstack([tokens, path]), axis=0) for bound in (np.min, np.max))
    unit = (side - 70) / max(float((most - least).max()), 1e-9)  # pixels
    middle = np.array([plane + side / 2, low + side / 2])

    def place(point: np.ndarray) -> np.ndarray:
        return middle + (point - (least + most) / 2) * unit * [1, -1]  # y points down on the page

    origin = place(np.zeros(2))
    ax.plot([plane, plane + side], [origin[1]] * 2, color=LINE, linewidth=1, zorder=0)
    ax.plot([origin[0]] * 2, [low, low + side], color=LINE, linewidth=1, zorder=0)
    base.write(ax, plane + side + 4, origin[1], channels[0], ha="left", color=QUIET)
    base.write(ax, origin[0], low - 10, channels[1], color=QUIET)
    tips: dict[tuple[float, ...], list[str]] = {}
    for name, token in zip(table.names, tokens, strict=False):
        tips.setdefault(tuple(token.tolist()), []).append(name)
    taken: list[tuple[float, float, float]] = []
    for token, same in tips.items():
        if any(token):
            tip, name = place(np.array(token)), ", ".join(same)
            draw_vector(ax, origin, tip, PALE, 6)
            tip[0] += 0 if token[0] else base.text_width(name) / 2 + 6  # beside the axis
            _write_near(ax, tip, name, plane - 20, taken)
    if path[-1].any():
        draw_vector(ax, origin, place(path[-1]), ORANGE, 4)
    for start, end in pairwise(path):
        if (start != end).any():
            draw_vector(ax, place(start), place(end), BLUE, 1.6)
    ax.plot(*origin, "o", color=INK, markersize=5, zorder=3)
    note = "grey: the tokens · blue: weight × token, one after the other · orange: the output"
    base.write(ax, base.PAD, tall + 24, note, ha="left", color=QUIET)
    return figure


def _write_near(
    ax: Axes, tip: np.ndarray, name: str, left: float, taken: list[tuple[float, float, float]]
) -> None:
    """Write a name above or below the tip of an arrow, unless other names leave no room."""
    half = base.text_width(name) / 2
    x = float(np.clip(tip[0], left + half, ax.get_xlim()[1] - base.PAD - half))
    for shift in (-12, 12, -28, 28):
        y = float(tip[1]) + shift
        if all(abs(x - a) > half + b + 4 or abs(y - c) > 15 for a, b, c in taken):
            taken.append((x, half, y))
            base.write(ax, x, y, name)
            return
