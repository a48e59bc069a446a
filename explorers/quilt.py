"""A matrix of coloured squares in blocks, whose numbers show where the mouse rests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from explorers.explorer import svg
from helpers.pictures.colours import CELL, Fill, by_theme

GAP = 10  # between blocks, in CSS pixels
LEFT, TOP = 36, 32  # of the first cell, below and beside the names


class Part(NamedTuple):
    """Rows and columns that belong together; the blocks are part × part."""

    columns: str  # what these are
    rows: str
    names: Sequence[str]  # of each row, and of each column


def quilt(
    values: np.ndarray,
    colours: Sequence[Sequence[Fill]],
    parts: Sequence[Part],
    label: str,
    side: int,
) -> str:
    """Draw a matrix (n, n) as SVG; its zeros stay empty. `side` is that of a cell, in pixels."""
    names = [name for part in parts for name in part.names]
    ends = np.cumsum([len(part.names) for part in parts]).tolist()
    blocks = list(pairwise([0, *ends]))
    starts = [i * side + GAP * sum(end <= i for end in ends[:-1]) for i in range(len(names) + 1)]
    ground, cells, above, beside, over = "", "", "", "", ""
    for top, bottom in blocks:
        for left, right in blocks:
            ground += (
                f'<rect x="{LEFT + starts[left]}" y="{TOP + starts[top]}" '
                f'width="{side * (right - left)}" height="{side * (bottom - top)}"/>'
            )
    # One path for all cells of a value, since what a step sends has to be short.
    for value in np.unique(values[values != 0]):
        places = np.argwhere(values == value).tolist()
        path = "".join(
            f"M{LEFT + starts[j]},{TOP + starts[i]}h{side - 1}v{side - 1}h{1 - side}z"
            for i, j in places
        )
        row, column = places[0]
        colour = by_theme(f"fill:{colours[row][column].code}")
        cells += f'<path d="{path}" style="{colour}"><title>{value:g}</title></path>'
    for start, name in zip(starts, names, strict=False):
        middle = start + side // 2  # of a cell, whose last pixel is a gap
        above += f'<text x="{LEFT + middle}" y="{TOP - 5}">{name}</text>'
        beside += f'<text x="{LEFT - 5}" y="{TOP + middle + 3}">{name}</text>'
    for (first, end), part in zip(blocks, parts, strict=True):
        middle = starts[first] + side * (end - first) / 2
        x, y = LEFT + middle, TOP + middle
        over += f'<text x="{x}" y="12" text-anchor="middle">{part.columns}</text>'
        over += (
            f'<text text-anchor="middle" transform="translate(12,{y}) rotate(-90)">'
            f"{part.rows}</text>"
        )
    content = (
        f'<g style="{by_theme(f"fill:{CELL}")}">{ground}</g>'
        f'<g shape-rendering="crispEdges">{cells}</g>{over}<g font-size="10">'
        f'<g text-anchor="middle">{above}</g><g text-anchor="end">{beside}</g></g>'
    )
    size = starts[-1] + 2
    return svg(content, label, 0, 0, LEFT + size, TOP + size)
