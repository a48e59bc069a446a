"""Curves: lines in small multiples, with their numbers as tables.

`curves` checks its input, then returns a `Picture`: drawn, as HTML tables, and in words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from helpers.numbers import as_array, briefs, power
from helpers.pictures import base
from helpers.pictures.base import Picture, named
from helpers.pictures.colours import INK, LINE, PALE, QUIET, STROKES
from helpers.pictures.table import PLAIN, html_table, side_by_side, td
from helpers.show import align_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


TALL = 140  # height of the axes of one panel


def curves(
    x: Sequence[float],
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    xlabel: str,
    logx: bool = False,
    logy: Sequence[str] = (),
    columns: int | None = None,
    title: str = "",
) -> Picture:
    """Draw lines in small multiples: one panel a quantity, one line a way of doing it.

    Parameters
    ----------
    x : (n,)
        Shared by all panels, increasing.
    panels : dict of panel name -> dict of line name -> (n,) numbers
        A line of the same name looks the same in every panel; up to six names. nan and inf leave
        a gap.
    xlabel : str
        What x is.
    logx : bool
        A logarithmic x axis.
    logy : sequence of str
        The panels that have a logarithmic y axis.
    columns : int
        Panels side by side, 1 to 3; without: as many as there are, at most 3.

    Raises
    ------
    ValueError
        If lengths do not fit, there is nothing to draw or too much, `logy` names no panel, or a
        number is not positive on a logarithmic axis.
    """
    across = as_array(x, "x").astype(float)
    if across.ndim != 1 or len(across) < 2 or not (np.diff(across) > 0).all():
        raise ValueError(f"x must be at least two increasing numbers, got {across.tolist()}")
    if logx and across[0] <= 0:
        raise ValueError(f"a logarithmic x axis needs numbers above 0, got {across[0]:g}")
    if not panels or not all(panels.values()):
        raise ValueError("curves needs at least one panel with at least one line in it")
    data = {
        panel: {
            str(name): as_array(y, f"{name!r} in {panel!r}").astype(float)
            for name, y in given.items()
        }
        for panel, given in panels.items()
    }
    if unknown := [panel for panel in logy if panel not in data]:
        raise ValueError(f"logy names {unknown[0]!r}, but the panels are {list(data)}")
    names = list(dict.fromkeys(name for given in data.values() for name in given))
    if len(names) > len(STROKES):
        raise ValueError(f"curves tells {len(STROKES)} lines apart, got {len(names)}: {names}")
    for panel, given in data.items():
        for name, y in given.items():
            if y.shape != across.shape:
                raise ValueError(
                    f"{name!r} in {panel!r} needs one number for each of the {len(across)} x, "
                    f"got shape {y.shape}"
                )
            if panel in logy and (y <= 0).any():
                raise ValueError(
                    f"{panel!r} has a logarithmic axis, which has no place for {y[y <= 0][0]:g}, "
                    f"in {name!r}; leave the panel out of logy, or write nan"
                )
    if columns is None:
        columns = min(3, len(data))
    if columns not in (1, 2, 3):
        raise ValueError(f"columns must be 1, 2 or 3, got {columns!r}")
    columns = min(columns, len(data))
    head = briefs(across)

    def rows_of(panel: str) -> list[tuple[str, list[str]]]:
        return [(name, briefs(y, tiny=panel in logy)) for name, y in data[panel].items()]

    def called(panel: str) -> str:
        return f"{panel} (logarithmic)" if panel in logy else panel

    def tell() -> str:
        told = [named(title, "Curves"), f"across: {xlabel}{' (logarithmic)' * logx}"]
        for panel in data:
            width = max(map(len, names))
            told += ["", called(panel)]
            told += align_columns(
                [["".ljust(width), *head]] + [[n.ljust(width), *c] for n, c in rows_of(panel)]
            )
        return "\n".join(told)

    def draw() -> Figure:
        return _draw_curves(across, head, data, names, xlabel, logx, logy, columns, title)

    def html() -> str:
        tables = [
            html_table(
                called(panel),
                head,
                [(name, [td(c, PLAIN) for c in cells]) for name, cells in rows_of(panel)],
                over=xlabel,
            )
            for panel in data
        ]
        return side_by_side(tables, title)

    alt = (
        f"{named(title, 'Curves')}: {len(data)} panel{'s' * (len(data) > 1)} "
        f"({'; '.join(data)}) over {xlabel} ({head[0]} to {head[-1]}), with the "
        f"line{'s' * (len(names) > 1)} {', '.join(names)}."
    )
    return Picture(alt=alt, tell=tell, draw=draw, html=html)


def _draw_curves(
    across: np.ndarray,
    head: list[str],
    data: dict[str, dict[str, np.ndarray]],
    names: list[str],
    xlabel: str,
    logx: bool,
    logy: Sequence[str],
    columns: int,
    title: str,
) -> Figure:
    gutter, left = 18, 46  # between panels; y labels
    room = (base.WIDEST - 2 * base.PAD - gutter * (columns - 1)) / columns
    wide = min(room, 430) - left - 8
    width = 2 * base.PAD + columns * (left + wide + 8) + gutter * (columns - 1)
    title_, y = base.heading(title, width - 2 * base.PAD)
    panel_titles = [base.break_lines(panel, wide + left, 11.5, True) for panel in data]
    legend_lines = _legend_lines(names, width - 2 * base.PAD) if len(names) > 1 else []
    over = 15 * max(map(len, panel_titles)) + 8
    n_line = -(-len(data) // columns)
    tall = over + TALL + 28
    start = base.PAD + y + (22 * len(legend_lines) + 6 if legend_lines else 0)
    figure = base.canvas(width, start + n_line * tall + 20)
    width, height = (72 * inches for inches in figure.get_size_inches())
    sheet = figure.add_axes((0, 0, 1, 1))
    sheet.set(xlim=(0, width), ylim=(height, 0))
    sheet.axis("off")
    base.write_heading(sheet, title_)
    for i, line in enumerate(legend_lines):
        spot = base.PAD
        for name in line:
            colour, mark, dash = STROKES[names.index(name)]
            y_ = base.PAD + y + 22 * i + 9
            sheet.plot(
                [spot, spot + 13, spot + 26], [y_] * 3, color=colour, linestyle=dash, linewidth=2,
                marker=mark, markevery=[1], markersize=6, markeredgecolor="white",
            )  # fmt: skip
            base.write(sheet, spot + 32, y_, name, ha="left")
            spot += 32 + base.text_width(name) + 24
    for i, (panel, given) in enumerate(data.items()):
        line, place = divmod(i, columns)
        x0 = base.PAD + place * (left + wide + 8 + gutter)
        y0 = start + line * tall
        base.write(
            sheet, x0, y0 + over - 8, "\n".join(panel_titles[i]), size=11.5, weight="bold",
            ha="left", va="bottom", linespacing=1.2,
        )  # fmt: skip
        ax = figure.add_axes(
            ((x0 + left) / width, 1 - (y0 + over + TALL) / height, wide / width, TALL / height)
        )
        if logx:
            ax.set_xscale("log")
        if panel in logy:
            ax.set_yscale("log")
        for name, values in given.items():
            place_ = names.index(name)
            colour, mark, dash = STROKES[place_]
            ax.plot(
                across, np.where(np.isfinite(values), values, np.nan), color=colour, marker=mark,
                linestyle=dash, linewidth=2, markersize=6.5, markeredgecolor="white",
                antialiased=False, zorder=3 + place_, label=name, clip_on=False,
            )  # fmt: skip
        _axes_of(ax, across, head, np.concatenate(list(given.values())), panel in logy, wide)
        if i + columns >= len(data):  # nothing below it
            ax.set_xlabel(xlabel, size=base.BODY, color=QUIET, family=base.FONT, labelpad=4)
            ax.xaxis.label.set_parse_math(False)
    return figure


def _legend_lines(names: list[str], room: float) -> list[list[str]]:
    done, spot = [[]], 0.0
    for name in names:
        need = 32 + base.text_width(name) + 24
        if done[-1] and spot + need > room:
            done, spot = [*done, []], 0.0
        done[-1].append(name)
        spot += need
    return done


def _axes_of(
    ax: Axes, across: np.ndarray, head: list[str], values: np.ndarray, log: bool, wide: float
) -> None:
    """Give an axes few readable ticks, pale lines at them, and limits with a little room."""
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter, NullLocator

    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if log:
        marks, limits = decades(low, high)
        labels = [power(mark) for mark in marks]
        marks = [10.0**mark for mark in marks]
    else:
        low, high = min(low, 0.0), max(high, 0.0)
        if high - low < 1e-6:
            high = low + 1
        marks = [
            float(m)
            for m in MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
            if low - 1e-9 <= m <= high + (high - low) * 0.1
        ]
        limits = (low - (high - low) * 0.04, max(high, marks[-1]) + (high - low) * 0.06)
        labels = [f"{mark:g}".replace("-", "−") for mark in marks]
    ax.set_ylim(*limits)
    ax.yaxis.set_major_locator(FixedLocator(marks))
    ax.set_yticks(marks, labels)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    keep = _readable(ax, across, head, wide)
    ax.set_xticks([across[i] for i in keep], [head[i] for i in keep])
    ax.tick_params(length=0, pad=5, labelsize=10.5, labelcolor=INK, labelfontfamily=base.FONT)
    for label in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        label.set_parse_math(False)
    ax.grid(axis="y", color=PALE, linewidth=1)
    ax.set_axisbelow(True)
    for side, spine in ax.spines.items():
        spine.set(visible=side in ("left", "bottom"), color=LINE)


def decades(low: float, high: float) -> tuple[list[int], tuple[float, float]]:
    """Choose up to six powers of ten as ticks, and the limits, for values from low to high."""
    bottom, top = math.log10(low) - 0.05, math.log10(high) + 0.05
    marks: list[int] = []
    for every in (1, 2, 3, 6, 10, 20, 50, 100):
        marks = [every * i for i in range(math.ceil(bottom / every), math.floor(top / every) + 1)]
        if len(marks) <= 6:
            break
    if len(marks) < 2:  # all between two neighbours: show both
        marks = [math.floor(bottom), math.ceil(top)]
        bottom, top = float(marks[0]), float(marks[1])
    room = 0.04 * (top - bottom)
    return marks, (10 ** (bottom - room), 10 ** (top + room))


def _readable(ax: Axes, across: np.ndarray, head: list[str], wide: float) -> list[int]:
    """Choose the x that get a label: first and last, and between them whatever has room."""
    scale = np.log(across) if ax.get_xscale() == "log" else across
    spots = (scale - scale[0]) / (scale[-1] - scale[0]) * wide * 0.9
    half = [base.text_width(text, 10.5) / 2 + 4 for text in head]
    keep = [0]
    for i in range(1, len(across) - 1):
        after = spots[i] - spots[keep[-1]] > half[i] + half[keep[-1]]
        if after and spots[-1] - spots[i] > half[i] + half[-1]:
            keep.append(i)
    return [*keep, len(across) - 1]
