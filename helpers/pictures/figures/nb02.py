"""Pictures that only notebook 02 shows: `row_times_column`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attention_base.numbers import as_whole, bracketed, texts
from helpers.pictures import base
from helpers.pictures.base import Picture, titled
from helpers.pictures.checks import as_matrix, as_names
from helpers.pictures.colours import QUIET
from helpers.pictures.table import (
    Table,
    grid,
    numbered,
    plain_cells,
    side_by_side,
    text_html,
    widest,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        numbered(plain_cells(texts(matrix), marked), caption=name)
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
