"""Notebook 01: the mean of tokens 0 … t of a sequence, in the plane."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from attention_base.numbers import as_array, number
from explorers.explorer import Explorer, sentences, slider, svg
from helpers.pictures.colours import BLUE, GLOW
from helpers.pictures.table import Cell, Table, side_by_side

SIDE = 340  # of the plane, in CSS pixels
STAR = "M0,-19L5,-6L18,-6L7,2L11,16L0,8L-11,16L-7,2L-18,-6L-5,-6Z"


def explore_prefix(x: Any) -> Explorer:
    """Move t: see tokens 0 … t of a sequence x (T, 2) in the plane, and their running mean."""
    points = as_array(x, "x").astype(float)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) == 0:
        raise ValueError(
            f"the plane needs one sequence with two channels, shape (T, 2), got {points.shape}; "
            f"pick one sequence, as in x[0]"
        )
    if not np.isfinite(points).all():
        raise ValueError("the plane needs finite numbers; x holds nan or inf")
    return PrefixExplorer(points)


class PrefixExplorer(Explorer):
    """The tokens as points, those up to t filled; the path of their running mean; a table of both.

    Parameters
    ----------
    points : (T, 2)
        The tokens.
    """

    about = "move t; see tokens 0…t, their mean, and the path of the mean so far."

    def __init__(self, points: np.ndarray) -> None:
        T = len(points)
        self.points = points
        self.means = np.cumsum(points, 0) / np.arange(1, T + 1)[:, None]  # (T, 2)
        self._low, high = _square_around(points)
        self._width = float(high[0] - self._low[0])  # of the plane, in the units of the tokens
        self._grid = self._draw_grid()
        super().__init__({"t": slider("t", min(3, T - 1), 0, T - 1)})

    def draw(self, t: int) -> str:
        """Draw the plane, and beside it the table."""
        plane = svg(
            self._grid + self._draw_path(t) + self._draw_tokens(t),
            self.describe(t), -40, -2, SIDE + 42, SIDE + 40,
        )  # fmt: skip
        return side_by_side([plane, self._table(t)]) + sentences(f"{self.describe(t)}.")

    def describe(self, t: int) -> str:
        """Say where the mean lies."""
        tokens = "token 0" if t == 0 else f"tokens 0…{t}"
        spot = ", ".join(map(number, self.means[t]))
        of = f"{t + 1} of {len(self.points)} tokens in it"
        return f"t = {t}: the mean of {tokens} is ({spot}), {of}"

    def _pixels(self, point: np.ndarray) -> tuple[float, float]:
        """Find the place of a point: to the right and down from the upper left corner."""
        a, b = (point - self._low) / self._width * SIDE
        return round(float(a), 1), round(SIDE - float(b), 1)

    def _draw_grid(self) -> str:
        """Draw what never moves: a line for each whole number (or 2nd, 3rd, …), and the names."""
        every = max(1, round(self._width / 5))
        first = math.floor(self._low.min() / every) * every
        last = math.ceil((self._low + self._width).max())
        lines, left, below = [], [], []
        for value in range(first, last, every):
            x, y = self._pixels(np.array([value, value]))
            opacity = 0.45 if value == 0 else 0.15
            if 8 < x < SIDE - 8:
                lines.append(f'<path d="M{x},0V{SIDE}" opacity="{opacity}"/>')
                below.append(f'<text x="{x}" y="{SIDE + 15}">{value}</text>')
            if 8 < y < SIDE - 8:
                lines.append(f'<path d="M0,{y}H{SIDE}" opacity="{opacity}"/>')
                left.append(f'<text x="-6" y="{y + 4}">{value}</text>')
        half = SIDE / 2
        return (
            f'<g stroke="currentColor" fill="none">{"".join(lines)}'
            f'<rect width="{SIDE}" height="{SIDE}" opacity=".3"/></g>'
            f'<g opacity=".8"><g text-anchor="end">{"".join(left)}</g>'
            f'<g text-anchor="middle">{"".join(below)}'
            f'<text x="{half}" y="{SIDE + 32}">channel 0</text>'
            f'<text transform="translate(-26,{half}) rotate(-90)">channel 1</text></g></g>'
        )

    def _draw_path(self, t: int) -> str:
        """Draw the running mean: a path with a dot for each mean, and a star for the last one."""
        places = [self._pixels(mean) for mean in self.means[: t + 1]]
        path = " ".join(f"{a},{b}" for a, b in places)
        dots = [f'<circle cx="{a}" cy="{b}" r="3"/>' for a, b in places[:-1]]
        a, b = places[-1]
        # Pale, under the tokens, and wider than one: neither hides the other where they meet.
        star = f'<path d="{STAR}" transform="translate({a},{b}) scale(1.4)" fill-opacity=".4"/>'
        return (
            f'<polyline points="{path}" fill="none" stroke="{GLOW}" stroke-width="2.5"/>'
            f'<g fill="{GLOW}">{"".join(dots)}</g>'
            f'<g fill="{GLOW}" stroke="{GLOW}" stroke-width="2">{star}</g>'
        )

    def _draw_tokens(self, t: int) -> str:
        seen = f'<circle r="10" fill="{BLUE}" stroke="white"/><text y="4" fill="white">'
        unseen = '<circle r="10" fill="none" stroke="currentColor"/><text y="4">'
        parts = []
        for i, point in enumerate(self.points):
            a, b = self._pixels(point)
            opacity, token = ("", seen) if i <= t else (' opacity=".7"', unseen)
            parts.append(f'<g transform="translate({a},{b})"{opacity}>{token}{i}</text></g>')
        return f'<g text-anchor="middle">{"".join(parts)}</g>'

    def _table(self, t: int) -> str:
        rows = []
        for i, (point, mean) in enumerate(zip(self.points, self.means, strict=True)):
            look = "plain" if i <= t else "faint"
            cells = [Cell(number(value), look) for value in point]
            look = "marked" if i == t else ""
            cells += [Cell(number(value) if i <= t else "", look) for value in mean]
            rows.append((str(i), cells))
        columns = ["channel 0", "channel 1", "mean, ch. 0", "mean, ch. 1"]
        return Table(columns, rows, corner="token").html(classes=True)


def _square_around(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the lower and the upper corner of a square that holds all points and the origin."""
    low, high = np.minimum(points.min(0), 0), np.maximum(points.max(0), 0)
    half = max(float((high - low).max()), 1e-3) * 0.58
    return (low + high) / 2 - half, (low + high) / 2 + half
