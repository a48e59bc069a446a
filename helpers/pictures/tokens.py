"""Tokens: which output reads which input, and tokens as points in the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from helpers.numbers import as_array, number
from helpers.pictures import base
from helpers.pictures.base import Picture, named
from helpers.pictures.checks import as_mask
from helpers.pictures.colours import BLUE, CARD, FAINT, INK, LINE, ORANGE, PALE, QUIET
from helpers.pictures.table import HATCH, MARKED, PLAIN, html_table, td
from helpers.show import align_columns

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
    if isinstance(T, bool) or not isinstance(T, int) or not 1 <= T <= 12:
        raise ValueError(f"staircase draws 1 to 12 tokens, got T={T!r}")
    may = np.tri(T, dtype=bool) if mask is None else as_mask(mask, (T, T), "mask")

    def reads(t: int) -> str:
        others = [str(j) for j in range(T) if may[t, j] and j != t]
        words = [f"input{'s' * (len(others) > 1)} {', '.join(others)}"] if others else []
        return " and ".join([*words, *(["itself"] if may[t, t] else [])]) or "nothing"

    def tell() -> str:
        return "\n".join(
            [
                named(title, "Who feeds whom"),
                *(f"output {t} reads {reads(t)}" for t in range(T)),
            ]
        )

    def draw() -> Figure:
        step = min(72, 820 / T)
        width = max(2 * base.PAD + 60 + T * step, 370)
        head, y = base.heading(title, width - 2 * base.PAD)
        rise = 22
        low = base.PAD + y + 92 + rise * (T - 1) + 34  # the line of the inputs
        figure, ax = base.sheet(width, low + 48)
        base.write_heading(ax, head)
        spot = [base.PAD + 60 + (j + 0.5) * step for j in range(T)]
        high = [low - 100 - rise * t for t in range(T)]  # output t stands t steps up
        for t in range(T):
            for j in range(T):
                if may[t, j]:
                    ax.annotate(
                        "", (spot[t], high[t]), (spot[j], low),
                        arrowprops={
                            "arrowstyle": "-|>,head_width=0.22,head_length=0.42",
                            "color": ORANGE if j == t else FAINT,
                            "linewidth": 2 if j == t else 1,
                            "zorder": 2 if j == t else 1,
                            "antialiased": j == t,  # smooth slanted lines double the file
                            "shrinkA": 14, "shrinkB": 14,
                        },
                    )  # fmt: skip
        for j in range(T):
            _node(ax, spot[j], low, str(j), CARD)
            _node(ax, spot[j], high[j], str(j), "white")
        base.write(ax, base.PAD, low, "inputs", ha="left", color=QUIET)
        base.write(ax, base.PAD, high[0], "outputs", ha="left", color=QUIET)
        base.write(ax, base.PAD, low + 34, "orange: a token's own arrow", ha="left", color=ORANGE)
        base.write(ax, base.PAD + 190, low + 34, "blue: from another token", ha="left", color=BLUE)
        return figure

    def html() -> str:
        def cell(t: int, j: int) -> str:
            if not may[t, j]:
                return td("", HATCH, "no arrow")
            colour = ORANGE if t == j else BLUE
            return td("self" if t == j else "yes", f"background:{colour};color:white")

        return html_table(
            title,
            [str(j) for j in range(T)],
            [(str(t), [cell(t, j) for j in range(T)]) for t in range(T)],
            corner="output",
            over="input",
        )

    alt = (
        f"{named(title, 'Who feeds whom')}: {T} inputs below, {T} outputs above, "
        f"{int(may.sum())} arrows; output {T - 1} reads {reads(T - 1)}."
    )
    return Picture(alt=alt, tell=tell, draw=draw, html=html)


def _node(ax: Axes, x: float, y: float, text: str, fill: str, edge: str = INK) -> None:
    from matplotlib.patches import Circle

    ax.add_patch(Circle((x, y), 11, facecolor=fill, edgecolor=edge, linewidth=1.2, zorder=3))
    base.write(ax, x, y, text, size=10, va="center_baseline", zorder=4, color=edge)


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
    T = len(values)

    def tell() -> str:
        told = [named(title, "Tokens in the plane")]
        told += align_columns(
            [
                ["token", "channel 0", "channel 1", ""],
                *(
                    [str(i), *map(number, xy), "in the mean" if i <= t else "not yet"]
                    for i, xy in enumerate(values.tolist())
                ),
                [f"mean of 0…{t}", *map(number, mean.tolist()), ""],
            ]
        )
        return "\n".join(told)

    def draw() -> Figure:
        head, y = base.heading(title, 400)
        side, left, top = 340, 62, base.PAD + y + 6
        width, height = left + side + base.PAD + 10, top + side + 74
        figure = base.canvas(width, height)
        width, height = (72 * inches for inches in figure.get_size_inches())
        over = figure.add_axes((0, 0, 1, 1))
        over.set(xlim=(0, width), ylim=(height, 0))
        over.axis("off")
        base.write_heading(over, head)
        ax = figure.add_axes((left / width, 1 - (top + side) / height, side / width, side / height))
        low, high = square_around(values)
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
        ax.axhline(0, color=PALE, linewidth=1, zorder=0)
        ax.axvline(0, color=PALE, linewidth=1, zorder=0)
        for i, (a, b) in enumerate(values.tolist()):
            seen = i <= t
            ax.plot(
                a, b, "o", markersize=19, zorder=2 + seen, markeredgewidth=1.2,
                color=BLUE if seen else "white", markeredgecolor=BLUE if seen else LINE,
            )  # fmt: skip
            colour = "white" if seen else QUIET
            base.write(
                ax, a, b, str(i), size=10, color=colour, va="center_baseline", zorder=2 + seen
            )
        # Behind all points, and larger: at t = 0 it lies under token 0.
        star = {"markersize": 42, "markeredgecolor": "white", "zorder": 1.5}
        ax.plot(*mean, "*", color=ORANGE, **star)
        ax.set_xlabel("channel 0", size=base.BODY, color=QUIET, family=base.FONT)
        ax.set_ylabel("channel 1", size=base.BODY, color=QUIET, family=base.FONT)
        ax.tick_params(length=3, labelsize=10, color=LINE, labelcolor=INK)
        for spine in ax.spines.values():
            spine.set_color(PALE)
        spot = f"({number(mean[0])}, {number(mean[1])})"
        which = "token 0" if t == 0 else f"tokens 0…{t}"
        note = f"★ mean of {which}: {spot}"
        base.write(over, left, height - 18, note, ha="left", color=ORANGE, size=12)
        return figure

    def html() -> str:
        rows = [
            (
                str(i),
                [td(number(v), PLAIN if i <= t else "opacity:.75") for v in xy],
            )
            for i, xy in enumerate(values.tolist())
        ]
        rows.append((f"mean of 0…{t}", [td(number(v), MARKED) for v in mean.tolist()]))
        return html_table(title, ["channel 0", "channel 1"], rows, corner="token")

    alt = (
        f"{named(title, 'Tokens in the plane')}: {T} numbered points; tokens 0 to {t} are filled, "
        f"and a star marks their mean at ({number(mean[0])}, {number(mean[1])})."
    )
    return Picture(alt=alt, tell=tell, draw=draw, html=html)


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
    if isinstance(t, bool) or not isinstance(t, int) or not 0 <= t < len(values):
        raise ValueError(f"t must be a position from 0 to {len(values) - 1}, got {t!r}")
    return values, values[: t + 1].mean(0)


def square_around(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the lower and the upper corner of a square that holds all points and the origin."""
    low, high = np.minimum(values.min(0), 0), np.maximum(values.max(0), 0)
    half = max(float((high - low).max()), 1e-3) * 0.58
    return (low + high) / 2 - half, (low + high) / 2 + half
