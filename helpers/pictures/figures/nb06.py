"""Pictures that only notebook 06 shows: `ribbon`, `multi_head_diagram`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from helpers.attention.checks import refuse_uneven_heads
from helpers.pictures import base
from helpers.pictures.base import Picture, titled
from helpers.pictures.checks import is_whole
from helpers.pictures.colours import BLUE, ORANGE, QUIET, TOKENS, Fill
from helpers.pictures.diagrams import (
    Arrow,
    Box,
    Frame,
    Panel,
    Size,
    diagram,
    refuse_bad_shape_sizes,
    shape_text,
)
from helpers.pictures.table import Cell, Table, grid, numbered, side_by_side

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    return numbered(rows, caption=caption, corner="row")


def _draw_ribbon(
    flat: np.ndarray, ways: dict[str, np.ndarray], tables: dict[str, list[Table]], title: str
) -> Figure:
    """Draw the ribbon with its cuts marked above and below, and under it the heads of each way."""
    T, C = flat.shape
    n_head, _, head_size = ways[next(iter(ways))].shape
    step, gap = max(34 if base.TITLED else 32, base.text_width(f"{T - 1}.{C - 1}") + 12), 14
    height = 28 if base.TITLED else 23
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


def multi_head_diagram(n_head: int = 4, *, B: Size = "B", T: Size = "T", C: Size = "C") -> Picture:
    """Draw multi-head attention: the channels are split, every head attends, the heads are merged.

    Parameters
    ----------
    n_head : int
        How many heads, 2 to 6.
    B, T, C : int or str
        The sizes to write into the shapes.

    Raises
    ------
    ValueError
        If a size is wrong, or if n_head does not divide C.
    """
    if not is_whole(n_head, 2, 6):
        raise ValueError(f"multi_head_diagram draws 2 to 6 heads, got n_head={n_head!r}")
    refuse_bad_shape_sizes(B=B, T=T, C=C)
    if isinstance(C, int):
        refuse_uneven_heads(C, n_head)
    head_size = C // n_head if isinstance(C, int) else "head_size"
    whole, part = shape_text(B, T, C), shape_text(B, T, head_size)
    layers, heads = ("query", "key", "value"), [f"head {h}" for h in range(n_head)]
    rows = max(3, n_head)
    middle = (rows - 1) / 2

    def spread(names: Sequence[str]) -> Iterator[tuple[str, float]]:
        """Give each name its row, evenly over the whole height."""
        for i, name in enumerate(names):
            yield name, (i + 0.5) * rows / len(names) - 0.5

    boxes = [
        Box("x", "x", 0, middle, rows, shape=whole, data=True),
        *(Box(name, f"{name}\nlayer", 1, row) for name, row in spread(layers)),
        Box("split", f"split\nq, k, v into\n{n_head} slices\neach", 2, middle, rows),
        *(Box(name, f"{name}:\nattention", 3, row, look="accent") for name, row in spread(heads)),
        Box("merge", "merge:\nput side\nby side", 4, middle, rows),
        Box("proj", "proj", 5, middle),
        Box("out", "out", 6, middle, shape=whole, data=True),
    ]
    arrows = [
        *(Arrow("x", name) for name in layers),
        *(Arrow(name, "split", name[0], whole) for name in layers),
        *(Arrow("split", name, f"slice {h}", part) for h, name in enumerate(heads)),
        *(Arrow(name, "merge", f"out {h}", part) for h, name in enumerate(heads)),
        Arrow("merge", "proj", "merged", whole),
        Arrow("proj", "out"),
    ]
    together = (
        f"all heads in one batched matmul: the scores are q @ k.mT,\n"
        f"{shape_text(B, n_head, T, head_size)} @ {shape_text(B, n_head, head_size, T)}; "
        "then weights @ v"
    )
    return diagram(
        "Multi-head attention: each head gets a slice of q, k and v, not of x",
        [Panel(boxes, arrows, [Frame(together, heads, accent=True)], row_height=50, gap=18)],
        alt=(
            f"Boxes and arrows from left to right: a query, a key and a value layer turn x {whole} "
            f"into q, k and v, which are split into {n_head} slices. {n_head} marked boxes, one "
            f"for each head, attend in parallel, each with slices {part}; one batched matmul "
            f"computes the scores of all heads. Their outs are put side by side to {whole}, and "
            f"proj gives out {whole}."
        ),
    )
