"""Curves: lines in small multiples, with their numbers as tables.

`curves` checks its input, then returns a `Picture`: drawn, as HTML tables, and in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_base.numbers import (
    EDGE,
    as_array,
    as_real,
    as_whole,
    briefs,
    described,
    number,
    powers,
)
from helpers.pictures import base
from helpers.pictures.base import Picture, titled
from helpers.pictures.checks import as_list, as_switch, as_text
from helpers.pictures.colours import CURVES, INK, LINE, PALE, QUIET
from helpers.pictures.table import Cell, Table, plain_cells, side_by_side, text_html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def curves(
    x: Sequence[float],
    panels: Mapping[str, Mapping[str, Sequence[float] | float]],
    *,
    xlabel: str,
    logx: bool = False,
    logy: Sequence[str] = (),
    columns: int | None = None,
    statements: Sequence[str] = (),
    title: str = "",
) -> Picture:
    """Draw lines in small multiples: one panel per quantity, one line per way of doing it.

    Parameters
    ----------
    x : (n,)
        Shared by all panels, increasing.
    panels : dict of panel name -> dict of line name -> (n,) numbers
        A line of the same name looks the same in every panel; up to six names. nan and inf leave
        a gap. One number in place of n is a level to compare with: a thin horizontal line, with
        its name at the right end.
    xlabel : str
        What x is.
    logx : bool
        A logarithmic x axis.
    logy : sequence of str
        The panels that have a logarithmic y axis.
    columns : int
        Panels side by side, 1 to 3; without: as many as there are, at most 3.
    statements : sequence of str
        What the text version and the HTML say in place of the numbers. For numbers that differ
        from machine to machine, as after many training steps: state what the cell asserts.

    Raises
    ------
    ValueError
        If lengths do not fit, there is nothing to draw or too much, `logy` names no panel, or a
        number is not positive on a logarithmic axis.
    """
    xlabel, logx = as_text(xlabel, "xlabel"), as_switch(logx, "logx")
    across = as_array(x, "x").astype(float)
    if across.ndim != 1 or len(across) < 2 or not (np.diff(across) > 0).all():
        raise ValueError(f"x must be at least two increasing numbers, got {across.tolist()}")
    if logx and across[0] <= 0:
        raise ValueError(f"a logarithmic x axis needs numbers above 0, got {across[0]:g}")
    for given in [panels, *(panels.values() if isinstance(panels, Mapping) else [])]:
        if not isinstance(given, Mapping):
            raise TypeError(
                "panels must be a dict of dicts, panel name -> line name -> numbers, "
                f"got {described(given)} in it"
            )
    if not panels or not all(panels.values()):
        raise ValueError("curves needs at least one panel with at least one line in it")
    data = {
        panel: {
            str(name): _as_line(y, f"{name!r} in {panel!r}", across) for name, y in lines.items()
        }
        for panel, lines in panels.items()
    }
    logy = [as_text(panel, "a panel in logy") for panel in as_list(logy, "logy")]
    statements = [as_text(one, "a statement") for one in as_list(statements, "statements")]
    if unknown := [panel for panel in logy if panel not in data]:
        raise ValueError(f"logy names {unknown[0]!r}, but the panels are {list(data)}")
    names, levels = (
        list(dict.fromkeys(n for lines in data.values() for n, y in lines.items() if y.ndim == d))
        for d in (1, 0)
    )
    if len(names) > len(CURVES):
        raise ValueError(f"curves tells {len(CURVES)} lines apart, got {len(names)}: {names}")
    for panel in logy:
        for name, y in data[panel].items():
            if (y <= 0).any():
                raise ValueError(
                    f"{panel!r} has a logarithmic axis, which has no place for {y[y <= 0][0]:g}, "
                    f"in {name!r}; leave the panel out of logy, or write nan"
                )
    if columns is None:
        columns = 3
    columns = min(as_whole(columns, "columns", 1, 3), len(data))
    text_lines = [titled("Curves", title), f"across: {xlabel}{' (logarithmic)' * logx}"]
    if statements:  # in the place of numbers, which may stand on the edge between two roundings
        tables, text_lines = [], [*text_lines, "", *statements]
    else:
        tables = [
            table
            for panel, y in data.items()
            for table in _tables(panel, y, across, panel in logy, xlabel)
        ]
        text_lines += [f"\n{table.caption}\n{table.text()}" for table in tables]
    first, *_, last = briefs(across)
    told = f"the line{'s' * (len(names) > 1)} {', '.join(names)}" if names else ""
    if levels:
        told += f"{' and ' * bool(names)}horizontal lines at {', '.join(levels)}"
    return Picture(
        alt=f"{titled('Curves', title)}: {len(data)} panel{'s' * (len(data) > 1)} "
        f"({'; '.join(data)}) over {xlabel} ({first} to {last}), with {told}.",
        text="\n".join(text_lines),
        draw=lambda: _draw_curves(across, data, names, levels, xlabel, logx, logy, columns, title),
        html=lambda: side_by_side(
            [f"<p>{text_html(' '.join(statements))}</p>"]
            if statements
            else [table.html() for table in tables],
            title,
        ),
    )


def _as_line(y: Any, what: str, across: np.ndarray) -> np.ndarray:
    values = as_array(y, what).astype(float)
    if values.shape == ():
        return np.array(as_real(y, what))
    if values.shape != across.shape:
        raise ValueError(
            f"{what} needs one number for each of the {len(across)} x, got shape {values.shape}"
        )
    return values


def _tables(
    panel: str, lines: dict[str, np.ndarray], across: np.ndarray, log: bool, xlabel: str
) -> Iterator[Table]:
    rows, levels = [], []
    for name, y in lines.items():
        if not y.ndim:
            levels.append((name, [Cell(number(float(y)), "plain")]))
            continue
        if not log:  # what is too small to be seen is written as 0
            y = np.where(np.abs(y) < EDGE, 0, y)
        rows.append((name, *plain_cells([briefs(y)])))
    if rows:
        yield Table(briefs(across), rows, _panel_name(panel, log), over=xlabel)
    if levels:
        yield Table(["level"], levels, f"{_panel_name(panel, log)}, horizontal lines")


def _panel_name(panel: str, log: bool) -> str:
    return f"{panel} (logarithmic)" if log else panel


def _draw_curves(
    across: np.ndarray,
    data: dict[str, dict[str, np.ndarray]],
    names: list[str],
    levels: list[str],
    xlabel: str,
    logx: bool,
    logy: Sequence[str],
    columns: int,
    title: str,
) -> Figure:
    """Draw a title, a legend that all panels share, and the panels line by line."""
    left, gutter = 46, 26  # room for y labels; between panels
    tall = 220 if levels else 140  # of an axes; levels lie close together
    right = max([14 + base.text_width(name) for name in levels], default=0)
    wide = min((base.WIDEST - 2 * base.PAD + gutter) / columns - gutter - right, 422) - left
    width = 2 * base.PAD + columns * (left + wide + right + gutter) - gutter
    names_of_panels = [_panel_name(panel, panel in logy) for panel in data]
    titles = [base.heading(name, left + wide, 11.5) for name in names_of_panels]
    over = max(high for _, high in titles)
    heading, y = base.heading(title, width - 2 * base.PAD)
    # Names stand side by side as long as there is room for the widest.
    abreast = int(width // (max(map(base.text_width, names)) + 60)) or 1
    legend_top = base.PAD + y
    top = legend_top + (20 * -(-len(names) // abreast) + 10 if len(names) > 1 else 0)
    n_line = -(-len(data) // columns)
    tall = min(tall, (base.HIGHEST - top - 20) / n_line - over - 26)
    high = over + tall + 26
    figure, page = base.empty_page(width, top + n_line * high + 20)
    base.write_heading(page, heading)
    styles = {
        name: {
            "label": name, "color": colour, "marker": marker, "linestyle": dashes, "linewidth": 2,
            "markersize": 6.5, "markeredgecolor": "white", "zorder": 3 + order,
            "markevery": -(-len(across) // 40),  # more would hide the line
        }
        for order, (name, (colour, marker, dashes)) in enumerate(zip(names, CURVES, strict=False))
    }  # fmt: skip
    for i, (panel, lines) in enumerate(data.items()):
        line, place = divmod(i, columns)
        x = base.PAD + place * (left + wide + right + gutter) + left
        ax = base.axes_at(figure, x, top + line * high + over, wide, tall)
        ax.set_xscale("log" if logx else "linear")
        for name in [name for name in names if name in lines and lines[name].ndim]:
            y = np.where(np.isfinite(lines[name]), lines[name], np.nan)
            ax.plot(across, y, **styles[name], antialiased=False, clip_on=False)
        _set_y_axis(ax, np.hstack(list(lines.values())), panel in logy)
        _set_x_axis(ax, across, wide)
        _draw_levels(ax, {name: float(y) for name, y in lines.items() if not y.ndim})
        ax.tick_params(
            length=0, pad=5, labelsize=base.SMALL, labelcolor=INK, labelfontfamily=base.FONT
        )
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(LINE)
        style = base.TITLE_STYLE | {"size": 11.5}
        ax.set_title(titles[i][0], loc="left", x=-left / wide, **style)
        if i + columns >= len(data):  # nothing below it
            ax.set_xlabel(xlabel, **base.TEXT_STYLE | {"color": QUIET})
    if len(names) > 1:
        marks = [page.plot([], [], **style)[0] for style in styles.values()]
        legend = page.legend(
            handles=marks, loc="upper left", bbox_to_anchor=(base.PAD, legend_top), ncols=abreast,
            bbox_transform=page.transData, frameon=False, borderpad=0, borderaxespad=0,
            prop={"family": base.FONT, "size": base.BODY},
        )  # fmt: skip
        for name in legend.get_texts():
            name.set_parse_math(False)
    return figure


def _draw_levels(ax: Axes, levels: dict[str, float]) -> None:
    """Draw thin horizontal lines; where their names would overlap, one moves down."""
    free = math.inf
    for name, y in sorted(levels.items(), key=lambda item: -item[1]):
        ax.axhline(y, color=QUIET, linewidth=1.2, linestyle=(0, (5, 3)), zorder=2.5)
        place = float(ax.transData.transform((0, y))[1]) / 2  # CSS pixels, upwards
        moved = min(place, free) - place
        free = place + moved - 14
        ax.annotate(
            name, (1, y), (12, moved), xycoords=("axes fraction", "data"),
            textcoords="offset points", va="center", annotation_clip=False, **base.TEXT_STYLE,
            arrowprops={"arrowstyle": "-", "color": QUIET, "linewidth": 1.2, "relpos": (0, 0.5)}
            | {"shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip


def _set_y_axis(ax: Axes, values: np.ndarray, log: bool) -> None:
    """Give the y axis few ticks with pale lines, and limits with a little room."""
    from matplotlib.ticker import NullLocator

    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if log:
        exponents, limits = decades(low, high)
        ax.set_yscale("log")
        ax.set_yticks([10.0**p for p in exponents], powers(exponents))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.set_ylim(*limits)
    else:
        ticks, limits = ticks_around(low, high)
        ax.set_yticks(ticks)
        ax.set_ylim(*limits)
        ax.yaxis.set_major_formatter("{x:g}")
    ax.grid(axis="y", color=PALE, linewidth=1)
    ax.set_axisbelow(True)


def _set_x_axis(ax: Axes, across: np.ndarray, wide: float) -> None:
    """Label every x if there is room, or else round numbers (on a logarithmic axis: some x)."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    labels = briefs(across)
    log = ax.get_xscale() == "log"
    scaled = np.log(across) if log else across
    places = (scaled - scaled[0]) / (scaled[-1] - scaled[0]) * wide * 0.9
    half = [base.text_width(label, base.SMALL) / 2 + 4 for label in labels]
    last = len(across) - 1
    kept = [0]
    for i in range(1, last):
        free = places[i] - places[kept[-1]] > half[i] + half[kept[-1]]
        if free and places[last] - places[i] > half[i] + half[last]:
            kept.append(i)
    kept.append(last)
    if log or len(kept) == len(across):
        ax.set_xticks([across[i] for i in kept], [labels[i] for i in kept], parse_math=False)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_locator(NullLocator())


def ticks_around(low: float, high: float) -> tuple[np.ndarray, tuple[float, float]]:
    """Choose few round ticks, and the limits with a little room, for 0 and values to both sides.

    The outer ticks lie around all values, so that each can be read between two of them.
    """
    from matplotlib.ticker import MaxNLocator

    low, high = min(low, 0.0), max(high, 0.0)
    if high - low < EDGE:
        high = low + 1
    ticks = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
    room = 0.04 * (ticks[-1] - ticks[0])
    return ticks, (ticks[0] - room, ticks[-1] + room)


def decades(low: float, high: float) -> tuple[list[int], tuple[float, float]]:
    """Choose up to six powers of ten as ticks, and the limits, for values from low to high."""
    bottom, top = math.log10(low) - 0.05, math.log10(high) + 0.05
    powers: list[int] = []
    for every in (1, 2, 3, 6, 10, 20, 50, 100):
        powers = [every * i for i in range(math.ceil(bottom / every), math.floor(top / every) + 1)]
        if len(powers) <= 6:
            break
    if len(powers) < 2:  # all between two neighbours: show both
        powers = [math.floor(bottom), math.ceil(top)]
        bottom, top = float(powers[0]), float(powers[1])
    room = 0.04 * (top - bottom)
    return powers, (10 ** (bottom - room), 10 ** (top + room))
