"""Tokens: which output reads which input, and tokens as points in the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from helpers.numbers import as_array, number
from helpers.pictures import base
from helpers.pictures.base import Picture, titled
from helpers.pictures.checks import as_mask, is_whole
from helpers.pictures.colours import BLUE, CELL, FAINT, INK, LINE, ORANGE, PALE, QUIET, Fill
from helpers.pictures.table import Cell, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def staircase(T: int, *, mask: Any = None, title: str = "") -> Picture:
    """Draw who feeds whom: an arrow from input j to output t for each pair that is allowed.

    Parameters
    ----------
    T : int
        How many tokens, 1 to 12.
    mask : bool, (T, T)
        Row t, column j: True = output t may read input j. Without: causal, every output reads its
        own token and everything before it.

    Raises
    ------
    ValueError, TypeError
        If T is out of range or the mask does not fit.
    """
    if not is_whole(T, 1, 12):
        raise ValueError(f"staircase draws 1 to 12 tokens, got T={T!r}")
    may = np.tri(T, dtype=bool) if mask is None else as_mask(mask, (T, T), "mask")
    reads = [_inputs_in_words(may[t], t) for t in range(T)]
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


def _inputs_in_words(may: np.ndarray, t: int) -> str:
    """Say which inputs output t reads, given its row of the mask."""
    others = [str(j) for j in np.flatnonzero(may) if j != t]
    words = [f"input{'s' * (len(others) > 1)} {', '.join(others)}"] if others else []
    return " and ".join([*words, *(["itself"] if may[t] else [])]) or "nothing"


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


def plane(x: Any, t: int, *, title: str = "") -> Picture:
    """Draw the tokens of one sequence as points, and the mean of tokens 0 … t as a star.

    Parameters
    ----------
    x : tensor, array or nested lists, (T, 2)
        One sequence with two channels.
    t : int
        The last token in the mean, 0 to T - 1.

    Raises
    ------
    ValueError
        If `x` does not have two channels, is not finite, or `t` is out of range.
    """
    values, mean = points_and_mean(x, t)
    name, spot = f"mean of 0…{t}", [number(value) for value in mean]
    rows = [
        (str(i), [*(Cell(number(value), "plain") for value in point), Cell("in the mean")])
        if i <= t
        else (str(i), [*(Cell(number(value), "faint") for value in point), Cell("not yet")])
        for i, point in enumerate(values.tolist())
    ]
    rows.append((name, [*(Cell(text, "marked") for text in spot), Cell("")]))
    table = Table(["channel 0", "channel 1", ""], rows, title, corner="token")
    place = f"({', '.join(spot)})"
    return Picture(
        alt=f"{titled('Tokens in the plane', title)}: {len(values)} numbered points; tokens 0 to "
        f"{t} are filled, and a star marks their mean at {place}.",
        text=f"{titled('Tokens in the plane', title)}\n{table.text()}",
        draw=lambda: _draw_plane(values, t, mean, place, title),
        html=table.html,
    )


def _draw_plane(values: np.ndarray, t: int, mean: np.ndarray, spot: str, title: str) -> Figure:
    """Draw numbered points, the first t + 1 of them filled, and the star in the middle of those."""
    side, left = 340, 62
    lines, y = base.heading(title, 400)
    top = base.PAD + y + 6
    figure, page = base.empty_page(left + side + base.PAD + 10, top + side + 74)
    base.write_heading(page, lines)
    ax = base.axes_at(figure, left, top, side, side)
    low, high = square_around(values)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    ax.axhline(0, color=PALE, linewidth=1, zorder=0)
    ax.axvline(0, color=PALE, linewidth=1, zorder=0)
    for i, (a, b) in enumerate(values.tolist()):
        fill, edge, letters = (BLUE, BLUE, "white") if i <= t else ("white", LINE, QUIET)
        order = 2 + (i <= t)
        ax.plot(
            a, b, "o", markersize=19, color=fill, markeredgecolor=edge, markeredgewidth=1.2,
            zorder=order,
        )  # fmt: skip
        base.write(ax, a, b, str(i), size=10, color=letters, va="center_baseline", zorder=order)
    # Behind all points, and larger: at t = 0 it lies under token 0.
    ax.plot(*mean, "*", color=ORANGE, markersize=34, markeredgecolor="white", zorder=1.5)
    ax.set_xlabel("channel 0", **base.TEXT_STYLE | {"color": QUIET})
    ax.set_ylabel("channel 1", **base.TEXT_STYLE | {"color": QUIET})
    ax.tick_params(length=3, labelsize=10, color=LINE, labelcolor=INK)
    ax.spines[:].set_color(PALE)
    which = "token 0" if t == 0 else f"tokens 0…{t}"
    note = f"★ mean of {which}: {spot}"
    base.write(page, left, top + side + 56, note, ha="left", color=ORANGE, size=12)
    return figure


def points_and_mean(x: Any, t: int) -> tuple[np.ndarray, np.ndarray]:
    """Copy a sequence (T, 2) to NumPy, and take the mean of tokens 0 … t."""
    values = as_array(x, "x").astype(float)
    if values.ndim != 2 or values.shape[1] != 2 or len(values) == 0:
        raise ValueError(
            f"the plane needs one sequence with two channels, shape (T, 2), got {values.shape}; "
            f"pick one sequence, as in x[0]"
        )
    if not np.isfinite(values).all():
        raise ValueError("the plane needs finite numbers; x holds nan or inf")
    if not is_whole(t, 0, len(values) - 1):
        raise ValueError(f"t must be a position from 0 to {len(values) - 1}, got {t!r}")
    return values, values[: t + 1].mean(0)


def square_around(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the lower and the upper corner of a square that holds all points and the origin."""
    low, high = np.minimum(values.min(0), 0), np.maximum(values.max(0), 0)
    half = max(float((high - low).max()), 1e-3) * 0.58
    return (low + high) / 2 - half, (low + high) / 2 + half
