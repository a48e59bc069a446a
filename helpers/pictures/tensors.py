"""Tensors as cells: sheets, a row times a column, the ribbon that heads are cut from."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from helpers.numbers import as_array, texts
from helpers.pictures import base
from helpers.pictures.base import Picture, named
from helpers.pictures.checks import as_matrix
from helpers.pictures.colours import BLUE, LINE, ORANGE, PAPERS, QUIET, css, rgb
from helpers.pictures.table import (
    MARKED,
    PLAIN,
    grid,
    html_table,
    side_by_side,
    td,
    text_html,
    widest,
)
from helpers.show import align_columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sheets(x: Any, *, names: tuple[str, str, str] = ("b", "t", "c"), title: str = "") -> Picture:
    """Draw a (B, T, C) tensor as a stack of sheets, one sheet a sequence.

    Parameters
    ----------
    x : tensor, array or nested lists, (B, T, C)
        At most 200 numbers.
    names : three str
        What the three positions are called.

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
    b, t, c = names
    stack = texts(values)
    n_sheet, n_row, n_col = values.shape
    rows, cols = [str(i) for i in range(n_row)], [str(i) for i in range(n_col)]

    def tell() -> str:
        told = [named(title, f"{n_sheet} sheets of {n_row} x {n_col}")]
        told.append(f"sheet = {b}, row = {t}, column = {c}")
        for i, cells in enumerate(stack):
            told += ["", f"{b} = {i}"]
            told += align_columns(
                [["", *cols], *([r, *words] for r, words in zip(rows, cells, strict=True))]
            )
        return "\n".join(told)

    def draw() -> Figure:
        from matplotlib.patches import FancyBboxPatch

        step = (widest([w for cells in stack for w in cells], 40), 27)
        wide, high = 40 + n_col * step[0] + 10, 52 + n_row * step[1] + 10
        drop, gap = 14, 14  # each sheet lies a little lower than the one before
        per_line = max(1, min(n_sheet, int((base.WIDEST - 20 + gap) // (wide + gap))))
        n_line = -(-n_sheet // per_line)
        width = max(per_line * (wide + gap) - gap + 2 * base.PAD, 300)
        head, y = base.heading(title, width - 2 * base.PAD)
        fall = drop * (per_line - 1)
        height = base.PAD + y + n_line * (high + fall) + gap * (n_line - 1) + base.PAD
        figure, ax = base.sheet(width, height)
        base.write_heading(ax, head)
        for i, cells in enumerate(stack):
            line, place = divmod(i, per_line)
            left = base.PAD + place * (wide + gap)
            top = base.PAD + y + line * (high + fall + gap) + drop * place
            card = FancyBboxPatch((left + 4, top + 4), wide - 8, high - 8, boxstyle="round,pad=3")
            card.set(facecolor="white", edgecolor=LINE, linewidth=1)
            ax.add_patch(card)
            base.write(ax, left + 10, top + 14, f"{b} = {i}", ha="left", weight="bold", color=BLUE)
            base.write(
                ax, left + 40 + n_col * step[0] / 2, top + 14, c, color=QUIET, style="italic"
            )
            base.write(
                ax, left + 15, top + 52 + n_row * step[1] / 2, t, color=QUIET, style="italic"
            )
            grid(ax, left + 40, top + 50, cells, step, rows=rows, cols=cols)
        return figure

    def html() -> str:
        look = PLAIN
        return side_by_side(
            [
                html_table(
                    f"{b} = {i}",
                    cols,
                    [(r, [td(w, look) for w in ws]) for r, ws in zip(rows, cells, strict=True)],
                    corner=t,
                    over=c,
                )
                for i, cells in enumerate(stack)
            ],
            title,
        )

    alt = (
        f"{named(title, 'A tensor as a stack of sheets')}: {n_sheet} sheets, one for each {b}, "
        f"with {n_row} rows ({t}) and {n_col} columns ({c})."
    )
    return Picture(alt=alt, tell=tell, draw=draw, html=html)


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
    left_, right_ = as_matrix(A, "A"), as_matrix(B, "B")
    if left_.shape[1] != right_.shape[0]:
        raise ValueError(
            f"A @ B needs as many columns in A as rows in B, got {left_.shape} @ {right_.shape}"
        )
    if max(*left_.shape, *right_.shape) > 8:
        raise ValueError(
            f"row_times_column draws up to 8 rows and columns, got {left_.shape} @ {right_.shape}"
        )
    out = left_ @ right_
    if not (0 <= row < out.shape[0] and 0 <= col < out.shape[1]):
        raise ValueError(f"the product has shape {out.shape}, so it has no cell {(row, col)}")
    # Whole numbers are written as such: 8, not 8.00.
    whole = all((m == np.round(m)).all() for m in (left_, right_))
    parts = [m.astype(int) if whole else m for m in (left_, right_, out)]
    cells = [texts(part) for part in parts]
    heads = [names[0], names[1], f"{names[0]} @ {names[1]}"]
    marks = [
        [(row, c) for c in range(left_.shape[1])],
        [(r, col) for r in range(left_.shape[1])],
        [(row, col)],
    ]
    pairs = [(a, b[col]) for a, b in zip(cells[0][row], cells[1], strict=True)]
    told = pairs  # many products with 0 are only counted, not written
    if len(pairs) > 4:
        told = [pair for pair, a in zip(pairs, left_[row], strict=True) if a != 0] or pairs[:1]
    products = [f"{a} · " + (f"({b})" if b.startswith("-") else b) for a, b in told]
    if len(told) < len(pairs):
        products.append(f"{len(pairs) - len(told)} times 0")
    sum_ = f"row {row} · column {col}:  {' + '.join(products)} = {cells[2][row][col]}"

    def tell() -> str:
        told = [named(title, "Row times column")]
        for name, words in zip(heads, cells, strict=True):
            told += ["", name, *align_columns(words)]
        return "\n".join([*told, "", sum_.replace("·", "x")])

    def draw() -> Figure:
        room = base.WIDEST - 2 * base.PAD - 3 * 26 - 2 * 34
        room /= sum(len(words[0]) for words in cells)
        step = (widest([w for words in cells for w in words], min(42, room), 5), 32)
        sizes = [(len(words[0]) * step[0], len(words) * step[1]) for words in cells]
        width = max(2 * base.PAD + sum(26 + w for w, _ in sizes) + 2 * 34, 380)
        below = base.break_lines(sum_, width - 2 * base.PAD, 12)
        head, y = base.heading(title, width - 2 * base.PAD)
        tall = max(h for _, h in sizes)
        top = base.PAD + y + 40
        figure, ax = base.sheet(width, top + tall + 20 + 18 * len(below) + base.PAD)
        base.write_heading(ax, head)
        x = base.PAD + 26
        for i, (words, (w, h)) in enumerate(zip(cells, sizes, strict=True)):
            y = top + (tall - h) / 2
            base.write(ax, x + w / 2, y - 29, heads[i], weight="bold", size=12)
            rows, cols = range(len(words)), range(len(words[0]))
            grid(
                ax,
                x,
                y,
                words,
                step,
                rows=[*map(str, rows)],
                cols=[*map(str, cols)],
                marked=marks[i],
            )
            if i < 2:
                base.write(ax, x + w + 17, top + tall / 2, "@="[i], size=16, color=QUIET)
            x += w + 34 + 26
        note = "\n".join(below)
        base.write(
            ax, base.PAD, top + tall + 18, note, ha="left", va="top", size=12, linespacing=1.4
        )
        return figure

    def html() -> str:
        tables = []
        for name, words, marked in zip(heads, cells, marks, strict=True):
            rows = [
                (
                    str(r),
                    [td(w, MARKED if (r, c) in marked else PLAIN) for c, w in enumerate(ws)],
                )
                for r, ws in enumerate(words)
            ]
            tables.append(html_table(name, [str(c) for c in range(len(words[0]))], rows))
        return side_by_side(tables, title) + f"<p>{text_html(sum_)}</p>"

    alt = f"{named(title, 'Row times column')}: {heads[0]}, {heads[1]} and {heads[2]}; {sum_}."
    return Picture(alt=alt, tell=tell, draw=draw, html=html)


def ribbon(T: int, n_head: int, head_size: int, *, title: str = "") -> Picture:
    """Draw the channels of T tokens as a ribbon of cells, and two ways to cut it into heads.

    A cell says token.channel, and each token has its colour. Split right: view as (T, n_head,
    head_size), then transpose. Split by view alone: the ribbon is poured into (n_head, T,
    head_size) in reading order.

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
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {size!r}")
    C = n_head * head_size
    if max(T, n_head) > 8 or C > 16 or T * C > 64:
        raise ValueError(
            f"ribbon draws up to 8 tokens, 8 heads, 16 channels and 64 cells, got {T} tokens of "
            f"{n_head} x {head_size} channels: {T * C} cells"
        )
    token, channel = np.divmod(np.arange(T * C).reshape(T, C), C)
    flat = np.arange(T * C).reshape(T, C)
    right = flat.reshape(T, n_head, head_size).transpose(1, 0, 2)
    wrong = flat.reshape(n_head, T, head_size)
    cell = [f"{t}.{c}" for t, c in zip(token.ravel(), channel.ravel(), strict=True)]
    ways = {"split right: view, then transpose": right, "split by view alone": wrong}

    def words(part: np.ndarray) -> list[list[str]]:
        return [[cell[i] for i in row] for row in part]

    def papers(part: np.ndarray) -> list[list[tuple[float, ...]]]:
        return [[rgb(PAPERS[i // C]) for i in row] for row in part]

    held = sorted({int(i) // C for i in wrong[0].ravel()})
    which = f"token{'s' * (len(held) > 1)} {', '.join(map(str, held))}"

    def tell() -> str:
        told = [named(title, "Channels as a ribbon"), "each cell is token.channel"]
        told += ["", f"as they lie, (T, C) = ({T}, {C})", *align_columns(words(flat))]
        for way, heads in ways.items():
            told += ["", f"{way}, (n_head, T, head_size) = ({n_head}, {T}, {head_size})"]
            for h, part in enumerate(heads):
                told += [f"head {h}", *align_columns(words(part))]
        return "\n".join(told)

    def draw() -> Figure:
        return _draw_ribbon(title, flat, ways, words, papers)

    def html() -> str:
        def table(name: str, part: np.ndarray) -> str:
            body = [
                (str(r), [td(w, css(p)) for w, p in zip(ws, ps, strict=True)])
                for r, (ws, ps) in enumerate(zip(words(part), papers(part), strict=True))
            ]
            return html_table(name, [*map(str, range(part.shape[1]))], body, corner="row")

        parts = [side_by_side([table(f"as they lie, ({T}, {C})", flat)], title)]
        for way, heads in ways.items():
            parts.append(
                side_by_side([table(f"head {h}", part) for h, part in enumerate(heads)], way)
            )
        return "".join(parts)

    alt = (
        f"{named(title, 'Channels as a ribbon')}. {T} tokens of {C} channels as coloured cells; "
        f"split right, head 0 holds {head_size} channels of every token; split by view alone, it "
        f"holds channels of {which} only."
    )
    return Picture(alt=alt, tell=tell, draw=draw, html=html)


def _draw_ribbon(
    title: str, flat: np.ndarray, ways: dict[str, np.ndarray], words: Any, papers: Any
) -> Figure:
    """Draw the ribbon with its cuts marked above and below, and under it the heads of each way."""
    T, C = flat.shape
    n_head, _, head_size = ways[next(iter(ways))].shape
    step = (max(34, base.text_width(f"{T - 1}.{C - 1}") + 12), 28)
    per_line = max(1, int((base.WIDEST - 2 * base.PAD) / step[0] / C))  # whole tokens
    strips = [flat[t : t + per_line].reshape(1, -1) for t in range(0, T, per_line)]
    gap, names = 14, [f"head {h}" for h in range(n_head)]
    head_wide = max(head_size * step[0], base.text_width(names[-1]) + 4)
    way_wide = 18 + n_head * (head_wide + gap)
    title_wide = max(base.text_width(way, 12, True) for way in ways)
    way_wide = max(way_wide, title_wide)
    abreast = 2 * way_wide + 30 <= base.WIDEST - 2 * base.PAD
    width = max(strips[0].size * step[0], (2 * way_wide + 30) if abreast else way_wide)
    width += 2 * base.PAD
    title_, y = base.heading(title, width - 2 * base.PAD)
    top = base.PAD + y + 6
    strip_high = 20 + step[1] + 30
    way_high = 50 + T * step[1] + 20
    below = top + 18 + strip_high * len(strips) + 6
    figure, ax = base.sheet(width, below + way_high * (1 if abreast else 2) - 16 + base.PAD)
    base.write_heading(ax, title_)
    tints = (BLUE, ORANGE)
    base.write(
        ax, base.PAD, top, f"{T} tokens of {C} channels, as they lie in memory", ha="left",
        color=QUIET,
    )  # fmt: skip
    owner = {way: np.empty(T * C, int) for way in ways}
    for way, heads in ways.items():
        for h, part in enumerate(heads):
            owner[way][part.ravel()] = h
    for i, strip in enumerate(strips):
        y = top + 18 + i * strip_high + 20
        grid(ax, base.PAD, y, words(strip), step, colours=papers(strip))
        for way, tint, side in zip(ways, tints, (-1, 1), strict=True):
            edge = y - 5 if side < 0 else y + step[1] + 5
            of = owner[way][strip.ravel()]
            cuts = [0, *(np.flatnonzero(np.diff(of)) + 1).tolist(), len(of)]
            for a, b in itertools.pairwise(cuts):
                x0, x1 = base.PAD + a * step[0] + 3, base.PAD + b * step[0] - 3
                ax.plot([x0, x1], [edge, edge], color=tint, linewidth=2)
                name = f"head {of[a]}"
                if base.text_width(name, 10) > x1 - x0:
                    name = str(of[a])
                base.write(ax, (x0 + x1) / 2, edge + 9 * side, name, size=10, color=tint)
    for i, ((way, heads), tint) in enumerate(zip(ways.items(), tints, strict=True)):
        x = base.PAD + i * abreast * (way_wide + 30)
        y = below + i * (not abreast) * way_high
        base.write(ax, x, y + 8, way, size=12, weight="bold", ha="left", color=tint)
        for h, part in enumerate(heads):
            left = x + 18 + h * (head_wide + gap)
            rows = [*map(str, range(T))] if h == 0 else ()
            grid(ax, left, y + 46, words(part), step, colours=papers(part), rows=rows)
            base.write(ax, left + head_size * step[0] / 2, y + 35, names[h], color=tint)
    return figure
