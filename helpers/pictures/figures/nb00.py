"""Pictures that only notebook 00 shows: `sheets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attention_base.numbers import as_array, texts
from helpers.pictures import base
from helpers.pictures.base import Picture, titled
from helpers.pictures.colours import BLUE, LINE, QUIET
from helpers.pictures.table import Table, grid, numbered, plain_cells, side_by_side, widest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def sheets(x: Any, *, title: str = "") -> Picture:
    """Draw a (B, T, C) tensor as a stack of sheets, one sheet a sequence.

    Parameters
    ----------
    x : tensor, array or nested lists, (B, T, C)
        At most 200 numbers.

    Raises
    ------
    ValueError
        If `x` is not 3-D, is empty or has more than 200 numbers.
    """
    values = as_array(x, "x")
    if values.ndim != 3 or values.size == 0:
        raise ValueError(f"sheets draws a 3-D tensor (B, T, C), got shape {values.shape}")
    if values.size > 200:
        raise ValueError(
            f"sheets draws at most 200 numbers, got {values.size}: shape {values.shape}; "
            f"pass a slice such as x[:2, :5]"
        )
    n_sheet, n_row, n_col = values.shape
    tables = [
        numbered(plain_cells(sheet), caption=f"b = {i}", corner="t", over="c")
        for i, sheet in enumerate(texts(values))
    ]
    text_lines = [
        titled(f"{n_sheet} sheets of {n_row} x {n_col}", title),
        "sheet = b, row = t, column = c",
        *(f"\n{table.caption}\n{table.text()}" for table in tables),
    ]
    return Picture(
        alt=f"{titled('A tensor as a stack of sheets', title)}: {n_sheet} sheets, one for each "
        f"b, with {n_row} rows (t) and {n_col} columns (c).",
        text="\n".join(text_lines),
        draw=lambda: _draw_sheets(tables, title),
        html=lambda: side_by_side([table.html() for table in tables], title),
    )


def _draw_sheets(tables: list[Table], title: str) -> Figure:
    """Draw each table as a sheet of paper that lies a little lower than the one before."""
    step = widest((cell.text for table in tables for row in table.cells for cell in row), 40)
    n_row, n_col = len(tables[0].rows), len(tables[0].columns)
    height, margin = 27, (40, 50)  # of a cell; of a sheet, left of its cells and above
    wide, high = margin[0] + n_col * step + 10, margin[1] + n_row * height + 12
    drop, gap = 14, 14
    per_line = max(1, min(len(tables), int((base.WIDEST - 20 + gap) // (wide + gap))))
    n_line = -(-len(tables) // per_line)
    high += drop * (per_line - 1)  # of a line of sheets
    width = max(per_line * (wide + gap) - gap + 2 * base.PAD, 300)
    lines, y = base.heading(title, width - 2 * base.PAD)
    y += base.PAD
    figure, ax = base.empty_page(width, y + n_line * (high + gap) - gap + base.PAD)
    base.write_heading(ax, lines)
    for i, table in enumerate(tables):
        line, place = divmod(i, per_line)
        left = base.PAD + place * (wide + gap)
        _draw_sheet(ax, table, left, y + line * (high + gap) + drop * place, step)
    return figure


def _draw_sheet(ax: Axes, table: Table, left: float, top: float, step: float) -> None:
    """Draw one sheet with its upper left corner at (left, top); cells are `step` wide."""
    from matplotlib.patches import FancyBboxPatch

    x, y, wide, high = left + 40, top + 50, step * len(table.columns), 27 * len(table.rows)
    paper = FancyBboxPatch(
        (left + 4, top + 4), wide + 42, high + 54, boxstyle="round,pad=3", facecolor="white",
        edgecolor=LINE, linewidth=1,
    )  # fmt: skip
    ax.add_patch(paper)
    base.write(ax, left + 10, top + 14, table.caption, ha="left", weight="bold", color=BLUE)
    base.write(ax, x + wide / 2, top + 14, table.over, color=QUIET, style="italic")
    base.write(ax, left + 15, y + 2 + high / 2, table.corner, color=QUIET, style="italic")
    widths = [step] * len(table.columns)
    grid(ax, x, y, table.cells, widths, 27, names=table.names, columns=table.columns)
