"""The colours of all pictures: names, colour maps, and letters that can be read on any of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

INK, QUIET, LINE = "#222222", "#666666", "#9a9a9a"  # text, names of axes, thin lines
BLUE, ORANGE, PALE = "#1f5f99", "#c2570c", "#c9d3dc"  # what a picture shows, stresses, leaves back
GLOW, SKY = "#e8792b", "#4a90c8"  # orange and blue to be seen on light and on dark pages
FAINT = "#86a9c8"  # blue for thin lines that cross each other

CELL, MARKED_CELL = "#f3f6f9", "#fde3cf"  # the background of a plain cell, of one that matters
MASKED = (0.886, 0.886, 0.886)  # a masked cell, under its hatching
INFINITE = (0.92, 0.82, 0.96)  # inf and -inf: pale violet, in no colour map
NAN = (0.85, 0.0, 0.55)  # nan: magenta, an alarm

# One pale colour a token, black letters on all of them.
TOKENS = ("#a9cbe8", "#f8c89a", "#b5dfc4", "#e6b8d8", "#f3e08d", "#c6c1ea", "#d8d3cb", "#f2aeb0")

# Colour, marker and dashes of a curve: told apart even by those who do not see all colours.
CURVES = (
    (BLUE, "o", "-"),
    (ORANGE, "s", "-"),
    ("#3a9a7a", "^", "--"),
    ("#8a3f8f", "D", ":"),
    ("#222222", "v", "-."),
    ("#b08d00", "P", "-"),
)


class Fill(NamedTuple):
    """The background of a cell, and black or white letters on it."""

    code: str  # "#1f5f99"
    ink: str  # "black" or "white"


def paint(values: np.ndarray, low: float, high: float, center: float | None) -> np.ndarray:
    """Give every value its colour: (…) numbers -> (…, 3) red, green, blue, each 0…1."""
    from matplotlib import colormaps

    values = values.astype(float)
    if center is None:
        place = (values - low) / (high - low)
    else:  # the centre is in the middle of the map even if the limits are lopsided
        place = 0.5 + (np.clip(values, low, high) - center) / (2 * max(high - center, center - low))
    finite = np.isfinite(values)
    colours = colormaps["cividis" if center is None else "RdBu_r"](np.where(finite, place, 0))
    colours = colours[..., :3]
    colours[np.isinf(values)] = INFINITE
    colours[np.isnan(values)] = NAN
    return colours


def ink(colours: np.ndarray) -> np.ndarray:
    """Choose black or white letters for each colour (…, 3): whichever has the higher contrast.

    By the relative luminance of WCAG 2: above 0.179 black, else white. Either way the contrast is
    at least 4.5 : 1.
    """
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    return np.where(linear @ (0.2126, 0.7152, 0.0722) > 0.179, "black", "white")


def fills(colours: np.ndarray) -> Any:
    """Make a `Fill` of each colour: (…, 3) numbers 0…1 -> lists, nested as the array is."""
    codes = np.round(colours * 255).astype(int) @ (65536, 256, 1)
    return _fills(codes.tolist(), ink(colours).tolist())


def _fills(code: Any, letters: Any) -> Any:
    if isinstance(code, list):
        return [_fills(c, ls) for c, ls in zip(code, letters, strict=True)]
    return Fill(f"#{code:06x}", letters)
