"""Tensors as cells: sheets, a row times a column, the ribbon that heads are cut from."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_base.numbers import as_array, as_whole, bracketed, texts
from helpers.pictures import base
from helpers.pictures.base import Picture, titled
from helpers.pictures.checks import as_matrix, as_names, is_whole
from helpers.pictures.colours import BLUE, LINE, ORANGE, QUIET, TOKENS, Fill
from helpers.pictures.table import Cell, Table, grid, plain_cells, side_by_side, text_html, widest

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
        _numbered(plain_cells(sheet), caption=f"b = {i}", corner="t", over="c")
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


def _numbered(cells: list[list[Cell]], **headers: str) -> Table:
    """Make a table whose rows and columns are numbered."""
    columns = [str(c) for c in range(len(cells[0]))]
    return Table(columns, [(str(r), row) for r, row in enumerate(cells)], **headers)


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


def row_times_column(
    A: Any, B: Any, row: int, col: int, *, names: tuple[str, str] = ("A", "B"), title: str = ""
) -> Picture:
    """Draw A, B and A @ B, with one row, one column and the one number that they make.

    Parameters
    ----------
    A, B : (n, m) and (m, k)
        Up to 8 rows and columns.
    row, col : int
        Which cell of the product is shown.

    Raises
    ------
    ValueError
        If the shapes do not fit, are too large, or the cell is not there.
    """
    left, right = as_matrix(A, "A"), as_matrix(B, "B")
    if left.shape[1] != right.shape[0]:
        raise ValueError(
            f"A @ B needs as many columns in A as rows in B, got {left.shape} @ {right.shape}"
        )
    if max(*left.shape, *right.shape) > 8:
        raise ValueError(
            f"row_times_column draws up to 8 rows and columns, got {left.shape} @ {right.shape}"
        )
    names = as_names(names, 2, "names", "matrices")
    out = left @ right
    row = as_whole(row, "row of the product", 0, out.shape[0] - 1)
    col = as_whole(col, "col of the product", 0, out.shape[1] - 1)
    if all((matrix == np.round(matrix)).all() for matrix in (left, right)):
        left, right, out = (matrix.astype(int) for matrix in (left, right, out))  # 8, not 8.00
    length = range(left.shape[1])
    tables = [
        _numbered(plain_cells(texts(matrix), marked), caption=name)
        for matrix, marked, name in (
            (left, [(row, c) for c in length], names[0]),
            (right, [(r, col) for r in length], names[1]),
            (out, [(row, col)], f"{names[0]} @ {names[1]}"),
        )
    ]
    first, second, product = (table.cells for table in tables)
    factors = [(first[row][i].text, second[i][col].text) for i in length]
    added = f"{_sum_of_products(factors)} = {product[row][col].text}"
    sentence = f"row {row} · column {col}:  {added}"
    text_lines = [
        titled("Row times column", title),
        *(f"\n{table.caption}\n{table.text(headers=False)}" for table in tables),
        "",
        sentence.replace("·", "x"),
    ]
    heads = "{}, {} and {}".format(*(table.caption for table in tables))
    return Picture(
        alt=f"{titled('Row times column', title)}: {heads}; {sentence}.",
        text="\n".join(text_lines),
        draw=lambda: _draw_row_times_column(tables, sentence, title),
        html=lambda: (
            side_by_side([table.html() for table in tables], title)
            + f"<p>{text_html(sentence)}</p>"
        ),
    )


def _sum_of_products(factors: list[tuple[str, str]]) -> str:
    """Write "1 · 8 + 2 · (-1)"; of more than four products, those with 0 are only counted."""
    shown = factors
    if len(factors) > 4:
        shown = [pair for pair in factors if pair[0] != "0"] or factors[:1]
    products = [f"{a} · {bracketed(b)}" for a, b in shown]
    if len(shown) < len(factors):
        products.append(f"{len(factors) - len(shown)} times 0")
    return " + ".join(products)


def _draw_row_times_column(tables: list[Table], sentence: str, title: str) -> Figure:
    """Draw the three tables side by side with @ and = between them, and the sum below."""
    names, sign, height = 26, 34, 32  # room for the names of rows, for a sign; height of a cell
    room = base.WIDEST - 2 * base.PAD - 3 * names - 2 * sign
    room /= sum(len(table.columns) for table in tables)
    words = (cell.text for table in tables for row in table.cells for cell in row)
    step = widest(words, min(42, room), 5)
    sizes = [(step * len(table.columns), height * len(table.rows)) for table in tables]
    width = max(2 * base.PAD + 3 * names + 2 * sign + sum(wide for wide, _ in sizes), 380)
    lines, y = base.heading(title, width - 2 * base.PAD)
    below = base.break_lines(sentence, width - 2 * base.PAD, 12)
    tallest = max(high for _, high in sizes)
    top = base.PAD + y + 40
    figure, ax = base.empty_page(width, top + tallest + 20 + 18 * len(below) + base.PAD)
    base.write_heading(ax, lines)
    x = base.PAD + names
    for table, (wide, high), after in zip(tables, sizes, ("@", "=", ""), strict=True):
        y = top + (tallest - high) / 2
        base.write(ax, x + wide / 2, y - 29, table.caption, weight="bold", size=12)
        widths = [step] * len(table.columns)
        grid(ax, x, y, table.cells, widths, height, names=table.names, columns=table.columns)
        base.write(ax, x + wide + sign / 2, top + tallest / 2, after, size=16, color=QUIET)
        x += wide + sign + names
    base.write(
        ax, base.PAD, top + tallest + 18, "\n".join(below), ha="left", va="top", size=12,
        linespacing=1.4,
    )  # fmt: skip
    return figure


def ribbon(T: int, n_head: int, head_size: int, *, title: str = "") -> Picture:
    """Draw the channels of T tokens as a ribbon of cells, and two ways to cut it into heads.

    A cell says token.channel, and each token has its colour. Split right: view as (T, n_head,
    head_size), then transpose. Split by view alone: the ribbon is cut into (n_head, T, head_size)
    in reading order.

    Parameters
    ----------
    T, n_head, head_size : int
        At least 1 each; up to 8 tokens, 8 heads, 16 channels, and 64 cells in all.

    Raises
    ------
    ValueError
        If a size is out of range.
    """
    for name, size in (("T", T), ("n_head", n_head), ("head_size", head_size)):
        if not is_whole(size, 1, math.inf):
            raise ValueError(f"{name} must be a whole number of at least 1, got {size!r}")
    C = n_head * head_size
    if max(T, n_head) > 8 or C > 16 or T * C > 64:
        raise ValueError(
            f"ribbon draws up to 8 tokens, 8 heads, 16 channels and 64 cells, got {T} tokens of "
            f"{n_head} x {head_size} channels: {T * C} cells"
        )
    flat = np.arange(T * C).reshape(T, C)  # cells in the order of memory
    ways = {  # each (n_head, T, head_size)
        "split right: view, then transpose": flat.reshape(T, n_head, -1).transpose(1, 0, 2),
        "split wrong: by view alone": flat.reshape(n_head, T, -1),
    }
    memory = _channels(flat, C, f"as they lie, ({T}, {C})")
    tables = {
        way: [_channels(cells, C, f"head {h}") for h, cells in enumerate(heads)]
        for way, heads in ways.items()
    }
    text_lines = [
        titled("Channels as a ribbon", title),
        f"each cell is token.channel\n\nas they lie, (T, C) = ({T}, {C})",
        memory.text(headers=False),
    ]
    for way, heads in tables.items():
        text_lines.append(f"\n{way}, (n_head, T, head_size) = ({n_head}, {T}, {head_size})")
        text_lines += [f"{head.caption}\n{head.text(headers=False)}" for head in heads]
    held = sorted({int(i) // C for i in ways["split wrong: by view alone"][0].ravel()})
    which = f"token{'s' * (len(held) > 1)} {', '.join(map(str, held))}"
    return Picture(
        alt=f"{titled('Channels as a ribbon', title)}. {T} tokens of {C} channels as coloured "
        f"cells; split right, head 0 holds {head_size} channels of every token; split by view "
        f"alone, it holds channels of {which} only.",
        text="\n".join(text_lines),
        draw=lambda: _draw_ribbon(flat, ways, tables, title),
        html=lambda: "".join(
            side_by_side([table.html() for table in group], heading)
            for heading, group in ((title, [memory]), *tables.items())
        ),
    )


def _channels(cells: np.ndarray, C: int, caption: str) -> Table:
    """Make a table of cells, given by their positions in memory (n_row, n_col)."""
    rows = [
        [Cell(f"{i // C}.{i % C}", fill=Fill(TOKENS[i // C], "black")) for i in row]
        for row in cells.tolist()
    ]
    return _numbered(rows, caption=caption, corner="row")


def _draw_ribbon(
    flat: np.ndarray, ways: dict[str, np.ndarray], tables: dict[str, list[Table]], title: str
) -> Figure:
    """Draw the ribbon with its cuts marked above and below, and under it the heads of each way."""
    T, C = flat.shape
    n_head, _, head_size = ways[next(iter(ways))].shape
    step, height, gap = max(34, base.text_width(f"{T - 1}.{C - 1}") + 12), 28, 14
    # The ribbon is broken into lines of whole tokens.
    per_line = max(1, int((base.WIDEST - 2 * base.PAD) / step / C))
    strips = [flat[t : t + per_line].ravel() for t in range(0, T, per_line)]
    # The two ways stand side by side if there is room.
    head_wide = max(head_size * step, base.text_width(f"head {n_head - 1}") + 4) + gap
    way_wide = max(18 + n_head * head_wide, *(base.text_width(way, 12, True) for way in ways))
    abreast = 2 * way_wide + 30 <= base.WIDEST - 2 * base.PAD
    width = max(strips[0].size * step, (2 * way_wide + 30) if abreast else way_wide)
    lines, y = base.heading(title, width)
    top = base.PAD + y + 6
    strip_high, way_high = height + 50, T * height + 70
    below = top + 18 + strip_high * len(strips) + 6
    high = below + way_high * (1 if abreast else 2) - 16 + base.PAD
    figure, ax = base.empty_page(width + 2 * base.PAD, high)
    base.write_heading(ax, lines)
    note = f"{T} tokens of {C} channels, as they lie in memory"
    base.write(ax, base.PAD, top, note, ha="left", color=QUIET)
    for i, strip in enumerate(strips):
        y = top + 38 + i * strip_high
        cells = _channels(strip[None], C, "").cells
        grid(ax, base.PAD, y, cells, [step] * strip.size, height)
        for heads, colour, side in zip(ways.values(), (BLUE, ORANGE), (-1, 1), strict=True):
            head_of = np.empty(T * C, int)
            head_of[heads.ravel()] = np.arange(n_head).repeat(T * head_size)
            edge = y - 5 if side < 0 else y + height + 5
            _mark_heads(ax, head_of[strip], step, edge, side, colour)
    for i, (way, heads) in enumerate(tables.items()):
        x, y = base.PAD + (way_wide + 30) * i * abreast, below
        y += way_high * i * (not abreast)
        colour = (BLUE, ORANGE)[i]
        base.write(ax, x, y + 8, way, size=12, weight="bold", ha="left", color=colour)
        for h, head in enumerate(heads):
            left = x + 18 + h * head_wide
            names = head.names if h == 0 else ()
            grid(ax, left, y + 46, head.cells, [step] * head_size, height, names=names)
            base.write(ax, left + head_size * step / 2, y + 35, head.caption, color=colour)
    return figure


def _mark_heads(ax: Axes, heads: np.ndarray, step: float, y: float, side: int, colour: str) -> None:
    """Draw a line along neighbours of one head, with its name above (side -1) or below (1)."""
    cuts = [0, *(np.flatnonzero(np.diff(heads)) + 1).tolist(), len(heads)]
    for start, end in itertools.pairwise(cuts):
        left, right = base.PAD + start * step + 3, base.PAD + end * step - 3
        ax.plot([left, right], [y, y], color=colour, linewidth=2)
        name = f"head {heads[start]}"
        if base.text_width(name, 10) > right - left:
            name = str(heads[start])
        base.write(ax, (left + right) / 2, y + 9 * side, name, size=10, color=colour)
