"""Draw the picture of the cheat sheet, teaching/cheatsheet.svg: ``python -m tools.sheet_picture``.

One head as matrices whose sizes can be counted; what one query takes part in is marked. It is SVG,
so that its letters stay sharp on paper.
"""

import math
from itertools import product

from helpers.pictures.colours import CELL as PLAIN
from helpers.pictures.colours import INK, LINE, MARKED_CELL, ORANGE
from tools import notebooks

PATH = notebooks.ROOT / "teaching" / "cheatsheet.svg"
T, D = 4, 3  # tokens, channels of a head
QUERY = 2  # the row that is marked
SCORES = (0.0, 1.0, -1.0)  # of this query, after the division, with the keys that it may attend to
CELL, GAP, OVER = 18, 30, 18  # pixels; the room between matrices, and above them
FUTURE = "#d5d8dc"


def weights() -> list[float]:
    """The softmax of the scores: the weights of the marked row."""
    exponentials = [math.exp(score) for score in SCORES]
    return [e / sum(exponentials) for e in exponentials]


def svg() -> str:
    """The picture: scores above, outputs below."""
    scores = [*(f"{score:g}".replace("-", "−") for score in SCORES), "−∞"]
    shares = [*(f"{weight:.2f}".removeprefix("0") for weight in weights()), "0"]
    above = [_matrix("q", T, D), "@", _matrix("k.mT", D, T), "→", _matrix("masked", T, T, scores)]
    below = [_matrix("weights", T, T, shares), "@", _matrix("v", T, D), "→", _matrix("out", T, D)]
    row = OVER + CELL * T + 4
    width, height = CELL * (2 * T + D) + 2 * GAP + 2, 2 * row
    drawn = "\n".join([*_side_by_side(above, 0), *_side_by_side(below, row)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{2 * width}" height="{2 * height}" '
        'font-family="Helvetica, Arial, sans-serif" text-anchor="middle">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n{drawn}\n</svg>\n'
    )


def _matrix(name: str, rows: int, columns: int, numbers: list[str] | None = None) -> tuple:
    return name, rows, columns, numbers or []


def _side_by_side(parts: list[tuple | str], top: int) -> list[str]:
    """Matrices from left to right, with a sign between them."""
    drawn, x = [], 1
    for part in parts:
        if isinstance(part, str):
            drawn.append(_text(x + GAP / 2, top + OVER + CELL * T / 2 + 5, part, size=14))
            x += GAP
        else:
            drawn += _drawn(*part, x, top + OVER)
            x += CELL * part[2]
    return drawn


def _drawn(name: str, rows: int, columns: int, numbers: list[str], x: int, top: float) -> list[str]:
    """One matrix: marked is what query QUERY takes part in, grey is the future."""
    top += CELL * (T - rows) / 2
    drawn = [_text(x + CELL * columns / 2, top - 5, name, weight="bold")]
    for i, j in product(range(rows), range(columns)):
        marked = {"k.mT": j <= QUERY, "v": i <= QUERY}.get(name, i == QUERY)
        fill = FUTURE if rows == columns and j > i else MARKED_CELL if marked else PLAIN
        drawn.append(_rect(x + CELL * j, top + CELL * i, CELL, f'fill="{fill}" stroke="{LINE}"'))
    if rows == T and name != "v":
        around = f'fill="none" stroke="{ORANGE}" stroke-width="2"'
        drawn.append(_rect(x, top + CELL * QUERY, CELL * columns, around))
    for j, number in enumerate(numbers):
        middle = x + CELL * (j + 0.5), top + CELL * (QUERY + 0.5) + 3.5
        drawn.append(_text(*middle, number, size=9))
    return drawn


def _rect(x: float, y: float, width: float, look: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width}" height="{CELL}" {look}/>'


def _text(x: float, y: float, text: str, size: int = 12, weight: str = "normal") -> str:
    look = f'font-size="{size}" font-weight="{weight}" fill="{INK}"'
    return f'<text x="{x:g}" y="{y:g}" {look}>{text}</text>'


def main() -> None:
    """Write the file."""
    notebooks.write_whole(PATH, svg())


if __name__ == "__main__":
    main()
