"""Named numbers: pairs as points in a plane, single ones as bars.

`scatter` and `bars` check their input, then return a `Picture`: drawn, as an HTML table, and in
words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_base.numbers import any_rounding, as_array, as_whole, decimals_for, described, number
from helpers.pictures import base
from helpers.pictures.base import Picture, titled
from helpers.pictures.checks import as_list, as_text
from helpers.pictures.colours import BLUE, INK, LINE, PALE, QUIET, SKY
from helpers.pictures.lines import ticks_around
from helpers.pictures.table import Table, plain_cells, side_by_side, text_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 12  # points or bars
ROW = 15  # height of a name beside a point
AWAY = 10  # from a point to its name


def scatter(
    points: Mapping[str, Sequence[float]],
    *,
    xlabel: str,
    ylabel: str,
    diagonal: str = "",
    statements: Sequence[str] = (),
    title: str = "",
) -> Picture:
    """Draw points in a plane, each with its name.

    Parameters
    ----------
    points : dict of name -> (x, y)
        Up to twelve.
    xlabel, ylabel : str
        What x and y are.
    diagonal : str
        The name of a dashed line on which x = y; both axes then have one scale. "" draws none.
    statements : sequence of str
        What the text version and the HTML say in place of the numbers, as for `curves`.

    Raises
    ------
    ValueError
        If there are no points or too many, or one of them is not two finite numbers.
    """
    xlabel, ylabel = as_text(xlabel, "xlabel"), as_text(ylabel, "ylabel")
    rows = _as_rows(points, "points", {2: "two, (x, y)"})
    notes = [f"across: {xlabel}; up: {ylabel}"]
    if as_text(diagonal, "diagonal"):
        notes.append(f"dashed line, where both are the same: {diagonal}")
    return _picture(
        "Points", rows, notes, [xlabel, ylabel], 2, statements, title,
        lambda: _draw_points(rows, xlabel, ylabel, diagonal, title),
    )  # fmt: skip


def bars(
    values: Mapping[str, float | Sequence[float]],
    *,
    xlabel: str,
    decimals: int = 2,
    reference: str = "",
    statements: Sequence[str] = (),
    title: str = "",
) -> Picture:
    """Draw a horizontal bar for each number: its name to the left, the number at its end.

    Parameters
    ----------
    values : dict of name -> number, or (number, lowest, highest)
        Up to twelve, none below 0. A thin line spans what was measured, from the lowest to the
        highest.
    xlabel : str
        What the numbers are, with their unit.
    decimals : int
        Digits after the point, where not all numbers are whole.
    reference : str
        The name of a bar whose end a dashed line marks for all others.
    statements : sequence of str
        What the text version and the HTML say in place of the numbers, as for `curves`.

    Raises
    ------
    ValueError
        If there are no bars or too many, a number is below 0 or not finite, it does not lie between
        the lowest and the highest, or `reference` names no bar.
    """
    xlabel, decimals = as_text(xlabel, "xlabel"), as_whole(decimals, "decimals", 0, 6)
    rows = _as_rows(values, "values", {1: "one", 3: "three, (number, lowest, highest)"})
    for name, (value, *span) in rows.items():
        low, high = span or (value, value)
        if not 0 <= low <= value <= high:
            raise ValueError(
                "values must be at least 0, and each between its lowest and its highest, "
                f"got {[value, *span]} for {name!r}"
            )
    if as_text(reference, "reference") and reference not in rows:
        raise ValueError(f"reference names {reference!r}, but the bars are {list(rows)}")
    decimals = decimals_for(np.concatenate([*rows.values()]), decimals)
    most = max(map(len, rows.values()))
    notes = [f"along: {xlabel}", *[f"dashed line: {reference}"] * bool(reference)]
    return _picture(
        "Bars", rows, notes, [xlabel, "lowest", "highest"][:most], decimals, statements, title,
        lambda: _draw_bars(rows, xlabel, decimals, reference, title),
    )  # fmt: skip


def _as_rows(given: Any, what: str, sizes: Mapping[int, str]) -> dict[str, list[float]]:
    """Copy a dict of name -> numbers, as many of them as `sizes` allows."""
    allowed = " or ".join(sizes.values())
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} must be a dict of name -> numbers, got {described(given)}")
    if not 1 <= len(given) <= MOST:
        raise ValueError(f"{what} must be 1 to {MOST}, got {len(given)}")
    rows = {}
    for name, numbers in given.items():
        row = np.atleast_1d(as_array(numbers, f"{what}: {name!r}")).astype(float)
        if row.ndim != 1 or len(row) not in sizes or not np.isfinite(row).all():
            raise ValueError(
                f"{what} need finite numbers, {allowed}, got {row.tolist()} for {name!r}"
            )
        rows[str(name)] = row.tolist()
    return rows


def _picture(
    kind: str,
    rows: dict[str, list[float]],
    notes: list[str],
    columns: list[str],
    decimals: int,
    statements: Sequence[str],
    title: str,
    draw: Callable[[], Figure],
) -> Picture:
    """Put the three forms together; with statements, words and HTML leave out the numbers."""
    kind = titled(kind, title)
    told = [as_text(one, "a statement") for one in as_list(statements, "statements")]
    named, html = [*rows], f"<p>{text_html(' '.join(told))}</p>"
    if not told:
        texts = [[number(value, decimals) for value in row] for row in rows.values()]
        named = [f"{name} {' '.join(row)}" for name, row in zip(rows, texts, strict=True)]
        texts = [row + ["–"] * (len(columns) - len(row)) for row in texts]
        cells = plain_cells(texts)
        table = Table(columns, list(zip(rows, cells, strict=True)), corner="name")
        told, html = [table.text()], table.html()
    return Picture(
        alt=f"{kind}: {'; '.join([*notes, ', '.join(named)])}.",
        text="\n".join([kind, *notes, "", *told]),
        draw=draw,
        html=lambda: side_by_side([html], title),
    )


# --- Points -----------------------------------------------------------------------------------


def _draw_points(
    rows: dict[str, list[float]], xlabel: str, ylabel: str, diagonal: str, title: str
) -> Figure:
    """Draw the axes with their grid, the diagonal, the points and their names."""
    points = np.array([*rows.values()])  # (n, 2)
    wide, tall = (330, 330) if diagonal else (440, 260)
    tall = min(tall, base.HIGHEST - base.PAD - 70)
    wide = tall if diagonal else wide
    # With a diagonal, both axes have the ticks and limits of all numbers.
    scales = [
        ticks_around(values.min(), values.max())
        for values in ((points, points) if diagonal else points.T)
    ]
    left = base.PAD + 36
    right = max(map(base.text_width, [*rows, diagonal])) + 2 * AWAY
    heading, y = base.heading(title, left + wide + right)
    top = base.PAD + y + 24
    figure, page = base.empty_page(min(left + wide + right, base.WIDEST), top + tall + 46)
    base.write_heading(page, heading)
    base.write(page, base.PAD, top - 12, ylabel, ha="left", color=QUIET)
    ax = base.axes_at(figure, left, top, wide, tall)
    for axis, (ticks, limits), set_limits in zip(
        (ax.xaxis, ax.yaxis), scales, (ax.set_xlim, ax.set_ylim), strict=True
    ):
        axis.set_ticks(ticks)
        axis.set_major_formatter("{x:g}")
        set_limits(*limits)
    ax.grid(color=PALE, linewidth=1)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, pad=5, labelsize=base.SMALL, labelcolor=INK, labelfontfamily=base.FONT)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(LINE)
    ax.set_xlabel(xlabel, **base.TEXT_STYLE | {"color": QUIET})
    if diagonal:
        ends = scales[0][1]
        ax.plot(ends, ends, color=QUIET, linewidth=1.2, linestyle=(0, (5, 3)))
        base.write(page, left + wide + 6, top, diagonal, ha="left", color=QUIET)
    ax.plot(*points.T, "o", color=BLUE, markersize=9, markeredgecolor="white", clip_on=False)
    pixels = ax.transData.transform(points) / 2 - ax.transAxes.transform((0, 0)) / 2
    spots = _spots([*rows], pixels, wide + right, tall)
    for name, point, (x, y) in zip(rows, points, spots, strict=True):
        at = {"xy": point, "xytext": (x, y), "textcoords": "offset points", "zorder": 5}
        if y:
            line = {"arrowstyle": "-", "color": QUIET, "linewidth": 1, "shrinkA": 0, "shrinkB": 5}
            ax.annotate("", **at, arrowprops=line)
        ax.annotate(
            name, **at, va="center", ha="left" if x > 0 else "right",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5}, **base.TEXT_STYLE,
        )  # fmt: skip
    return figure


def _spots(
    names: list[str], points: np.ndarray, wide: float, tall: float
) -> list[tuple[float, float]]:
    """Find for each name a spot beside its point where it covers nothing, up to 9 rows away.

    Points are CSS pixels from the lower left corner of the axes, spots CSS pixels from the points.
    """
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    found = {}
    for i in np.argsort(-points[:, 1], kind="stable"):  # from the top down
        long = base.text_width(names[i])
        choices = []
        for row, side in product(sorted(range(-9, 10), key=abs), (1, -1)):
            x, y = points[i] + (side * AWAY, row * ROW)
            box = x - long * (side < 0), y - ROW / 2, x + long * (side > 0), y + ROW / 2
            outside = box[0] < 0 or box[1] < 0 or box[2] > wide or box[3] > tall
            covers = any(
                box[0] < c and a < box[2] and box[1] < d and b < box[3] for a, b, c, d in taken
            )
            choices.append((outside, covers, len(choices), box, (side * AWAY, row * ROW)))
        *_, box, found[i] = min(choices)
        taken.append(box)
    return [found[i] for i in range(len(names))]


# --- Bars -------------------------------------------------------------------------------------


def _draw_bars(
    rows: dict[str, list[float]], xlabel: str, decimals: int, reference: str, title: str
) -> Figure:
    """Draw names, bars, the spans of what was measured, numbers, and the line to compare with."""
    from matplotlib.patches import Rectangle

    with any_rounding():  # a picture may differ from machine to machine, as its words may not
        numbers = [number(row[0], decimals) for row in rows.values()]
    left = base.PAD + max(map(base.text_width, rows)) + 10
    right = max(map(base.text_width, numbers)) + 10 + base.PAD
    long = min(380, max(base.WIDEST - left - right, 120))
    scale = long / (max(map(max, rows.values())) or 1)
    width = left + long + right
    heading, y = base.heading(title, width - 2 * base.PAD)
    top = base.PAD + y
    step = min(30, (base.HIGHEST - top - 30) / len(rows))
    thick, half = 0.6 * step, step / 2
    floor = top + step * len(rows)
    figure, page = base.empty_page(max(width, left + base.text_width(xlabel) + 10), floor + 30)
    base.write_heading(page, heading)
    base.write(page, left, floor + 14, xlabel, ha="left", color=QUIET)
    for i, ((name, (value, *span)), text) in enumerate(zip(rows.items(), numbers, strict=True)):
        y = top + (i + 0.5) * step
        page.add_patch(Rectangle((left, y - thick / 2), value * scale, thick, color=SKY))
        base.write(page, left - 8, y, name, ha="right")
        if span:
            ends = [left + end * scale for end in span]
            page.plot(ends, [y, y], "|-", color=INK, linewidth=1.5, markersize=8)
        end = left + max([value, *span]) * scale
        base.write(page, end + 8, y, text, ha="left")
        marked = left + rows[reference][0] * scale if reference else 0.0
        if reference:
            crosses = end + 4 < marked < end + 12 + base.text_width(text)  # the number
            for near, far in [(-half, -8), (8, half)] if crosses else [(-half, half)]:
                dashes = {"color": INK, "linewidth": 1.2, "linestyle": (0, (5, 3))}
                page.plot([marked, marked], [y + near, y + far], **dashes)
    page.plot([left, left], [top, floor], color=LINE, linewidth=1)
    return figure
