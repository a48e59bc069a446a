"""The colours of all pictures: names, colour maps, and letters that can be read on any of them.

All are chosen for a white page; `dark` makes of each the colour that stands for it on a dark page.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

INK, QUIET, LINE = "#222222", "#666666", "#8a8a8a"  # text, names of axes, thin lines
BLUE, ORANGE, PALE = "#1f5f99", "#b8520b", "#c9d3dc"  # what a picture shows, stresses, leaves back
GLOW, SKY = "#e8792b", "#4a90c8"  # orange and blue to be seen on light and on dark pages
FAINT = "#668eb2"  # blue for thin lines that cross each other
GROUND = "#111111"  # of a dark page, as in JupyterLab

# Where on the scale from 0 to 1 which colour stands; those between are blended.
WEIGHTS = {0.0: "#ffffff", 0.1: "#eaf0a0", 0.4: "#8fd08a", 0.7: "#1f8a6d", 1.0: "#003a36"}
SCORES = {  # around a centre: blue below, red above
    0.0: "#2166ac", 0.15: "#4393c3", 0.3: "#92c5de", 0.42: "#d1e5f0", 0.5: "#ffffff",
    0.58: "#fddbc7", 0.7: "#f4a582", 0.85: "#d6604d", 1.0: "#b2182b",
}  # fmt: skip

BLACK_ABOVE = 0.179  # the luminance from which on black letters have more contrast than white ones
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
    ("#a58400", "P", "-"),
)


class Fill(NamedTuple):
    """The background of a cell, and black or white letters on it."""

    code: str  # "#1f5f99"
    ink: str  # "black" or "white"


def paint(values: np.ndarray, low: float, high: float, center: float | None) -> np.ndarray:
    """Give every value its colour: (…) numbers -> (…, 3) red, green, blue, each 0…1.

    White is `low`, or the centre.
    """
    values = values.astype(float)
    if center is None:  # the root: a hundredth of the scale is already a tenth of the colours
        place, scale = np.sqrt(np.clip((values - low) / (high - low), 0, 1)), WEIGHTS
    else:  # the centre is in the middle of the map even if the limits are lopsided
        place = 0.5 + (np.clip(values, low, high) - center) / (2 * max(high - center, center - low))
        scale = SCORES
    stops = np.array([channels(code) for code in scale.values()]) / 255
    colours = np.stack([np.interp(place, list(scale), stop) for stop in stops.T], axis=-1)
    colours[np.isinf(values)] = INFINITE
    colours[np.isnan(values)] = NAN
    return colours


def channels(code: str) -> list[int]:
    """Read the red, green and blue of a colour: "#ff8000" -> [255, 128, 0]."""
    return [int(code[i : i + 2], 16) for i in (1, 3, 5)]


def luminance(colours: np.ndarray) -> np.ndarray:
    """Measure how light colours are, as WCAG 2 does: (…, 3) numbers 0…1 -> (…) numbers 0…1."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    return linear @ (0.2126, 0.7152, 0.0722)


def ink(colours: np.ndarray) -> np.ndarray:
    """Choose black or white letters for each colour (…, 3): whichever has the higher contrast.

    By the relative luminance of WCAG 2: above 0.179 black, else white. Either way the contrast is
    at least 4.5 : 1.
    """
    return np.where(luminance(colours) > BLACK_ABOVE, "black", "white")


def fills(colours: np.ndarray) -> Any:
    """Make a `Fill` of each colour: (…, 3) numbers 0…1 -> lists, nested as the array is."""
    parts = np.round(colours * 255)
    codes = parts.astype(int) @ (65536, 256, 1)
    return _fills(codes.tolist(), ink(parts / 255).tolist())


def _fills(code: Any, letters: Any) -> Any:
    if isinstance(code, list):
        return [_fills(c, ls) for c, ls in zip(code, letters, strict=True)]
    return Fill(f"#{code:06x}", letters)


# --- Dark pages -------------------------------------------------------------------------------


@lru_cache(maxsize=8192)
def dark(code: str) -> str:
    """Turn a colour of a white page into the one that stands for it on a dark page.

    White becomes `GROUND`, black white. What has a contrast of 4.5 : 1 keeps it: whatever is dark,
    as letters, with the ground; whatever is pale, as a cell, with the letters on it. The same
    amount is added to red, green and blue, or taken away, so that the hue stays.
    """
    given = channels(code)
    light = 0.05 + _light(given)
    # The contrast of two colours is the quotient of their `light`.
    if light <= 0.05 + BLACK_ABOVE:
        wanted = 1.05 * GROUND_LIGHT / light
    else:  # 1 / light, but for white
        wanted = 0.0515 / light + (GROUND_LIGHT - 0.0515 / 1.05) * light / 1.05

    def moved(by: int) -> list[int]:
        return [min(max(part + by, 0), 255) for part in given]

    more = range(-255, 255)
    by = bisect_left(more, wanted - 1e-9, key=lambda by: 0.05 + _light(moved(by)))
    return "#{:02x}{:02x}{:02x}".format(*moved(by - 255))


def _light(parts: list[int]) -> float:
    """Measure the luminance of one colour; for a single one, plain Python is faster."""
    red, green, blue = (p / 3294.6 if p <= 10 else ((p + 14.025) / 269.025) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


GROUND_LIGHT = 0.05 + _light(channels(GROUND))


@lru_cache(maxsize=8192)
def by_theme(style: str) -> str:
    """Let the colours of a CSS style follow the page, which is light or dark."""
    names = {"black": "#000000", "white": "#ffffff"}

    def both(found: re.Match[str]) -> str:
        code = names.get(found[0], found[0])
        return code if code in (GLOW, SKY) else f"light-dark({found[0]},{dark(code)})"

    return re.sub(r"#[0-9a-f]{6}|\b(black|white)\b(?!-)", both, style)
