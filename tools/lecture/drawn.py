"""Pictures for slides: drawn as SVG, and so large that the last row reads every letter."""

from __future__ import annotations

import base64
import io
import re
from typing import TYPE_CHECKING, Any

from helpers.pictures import base
from helpers.pictures.colours import TOKENS
from helpers.pictures.diagrams import Arrow, Box, Panel, diagram

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from helpers.pictures import Picture

LEAST = 24  # px, of the slide's 1280 × 720
ROOM = (1200, 574)  # px: what a slide has for a picture, below a title of two lines
NARROW, WIDE = (560, 274), (base.WIDEST, 274)  # CSS px of a picture, with its margins
MARGIN = base.PAD - 4  # is cut off


def drawings(picture: Picture) -> list[str]:
    """Draw a picture, as an SVG or as one for each of its panels; none if letters stay too small.

    It is laid out narrowly and widely, because some pictures need more lines where it is narrow.
    """
    found: list[Figure] = []
    for room in (NARROW, WIDE):
        with base.on_a_slide(*room):
            found.append(picture.figure())
    best = max(found, key=letters)
    if letters(best) >= LEAST:
        return [svg(best)]
    with base.on_a_slide(*NARROW):
        panels = picture.panels()
    if panels and min(map(letters, panels)) >= LEAST:
        return [*map(svg, panels)]
    return []


def letters(figure: Figure) -> float:
    """How many px the smallest letters of a figure have on a slide."""
    width, height = (length - 2 * MARGIN for length in base.size_of(figure))
    return base.BODY * min(ROOM[0] / width, ROOM[1] / height)


def svg(figure: Figure) -> str:
    """Write a figure as SVG, without its margin; letters are outlines, the same everywhere."""
    from matplotlib import rc_context

    file = io.StringIO()
    with base.usual_settings(), rc_context({"svg.fonttype": "path", "svg.hashsalt": "slide"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    width, height = (length - 2 * MARGIN for length in base.size_of(figure))
    return re.sub(
        r'width="[\d.]+pt" height="[\d.]+pt" viewBox="[^"]*"',
        f'width="{width:g}" height="{height:g}" viewBox="{MARGIN} {MARGIN} {width:g} {height:g}"',
        file.getvalue(),
        count=1,
    )


# The symbols of the formula, with their names in the code; each has the colour of its box.
SYMBOLS = {
    "softmax": "softmax of each row", "Q": "q", "Kᵀ": "k.mT", "√d": "√ head_size", "V": "v"
}  # fmt: skip
COLOURS = dict(zip(SYMBOLS, TOKENS, strict=False))


def formula() -> dict[str, Any]:
    """The formula of attention, and a head as boxes in the colours of its symbols."""
    boxes = [
        Box("x", "x", 0, 1, 3, data=True),
        Box("query", "q = x @ W_query", 1, 0, look=COLOURS["Q"]),
        Box("key", "k = x @ W_key", 1, 1, look=COLOURS["Kᵀ"]),
        Box("value", "v = x @ W_value", 1, 2, look=COLOURS["V"]),
        Box("scores", "q @ k.mT\n/ √d", 2, 0.5, 2, look=COLOURS["√d"]),
        Box("mask", "mask", 3, 0.5, 2),
        Box("softmax", "softmax", 4, 0.5, 2, look=COLOURS["softmax"]),
        Box("average", "weights\n@ v", 5, 1, 3),
        Box("out", "out", 6, 1, data=True),
    ]
    ends = [
        *(("x", role) for role in ("query", "key", "value")),
        *(("query", "scores"), ("key", "scores"), ("scores", "mask"), ("mask", "softmax")),
        *(("softmax", "average"), ("value", "average"), ("average", "out")),
    ]
    picture = diagram(
        "The formula as boxes",
        [Panel(boxes, [Arrow(*pair) for pair in ends], row_height=40, gap=12)],
        alt=(
            "Boxes and arrows from left to right, in the colours of the symbols: x times W_query, "
            "W_key and W_value is q, k and v; q @ k.mT / √d gives the scores; the mask, then "
            "softmax; weights @ v gives out."
        ),
    )
    with base.on_a_slide(*NARROW):
        drawing = svg(picture.figure())
    symbols = {name: (code, COLOURS[name]) for name, code in SYMBOLS.items()}
    return {"src": as_uri(drawing), "alt": picture.alt, "symbols": symbols}


def as_uri(drawing: str) -> str:
    """An SVG as the address of an image."""
    return f"data:image/svg+xml;base64,{base64.b64encode(drawing.encode()).decode()}"
