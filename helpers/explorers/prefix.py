"""Notebook 01: the mean of a prefix, in the plane."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from helpers.explorers.explorer import GLOW, Explorer, say, slider
from helpers.numbers import number
from helpers.pictures.colours import BLUE
from helpers.pictures.table import MARKED, PLAIN, html_table, side_by_side, td, text_html
from helpers.pictures.tokens import points_and_mean, square_around

if TYPE_CHECKING:
    pass


STAR = "M0,-19L5,-6L18,-6L7,2L11,16L0,8L-11,16L-7,2L-18,-6L-5,-6Z"


def explore_prefix(x: Any) -> Explorer:
    """Move t: see tokens 0 … t of a sequence x (T, 2) in the plane, and their running mean."""
    points, _ = points_and_mean(x, 0)
    means = np.cumsum(points, 0) / np.arange(1, len(points) + 1)[:, None]
    low, high = square_around(points)
    side = 340

    def place(point: np.ndarray) -> tuple[float, float]:
        a, b = (point - low) / (high - low) * side
        return round(float(a), 1), round(side - float(b), 1)

    lines_ = []
    every = max(1, round(float(high[0] - low[0]) / 5))
    for v in range(math.floor(low.min() / every) * every, math.ceil(high.max()), every):
        a, b = place(np.array([v, v]))
        weight = 0.45 if v == 0 else 0.15
        if 8 < a < side - 8:
            lines_.append(
                f'<path d="M{a},0V{side}" stroke="currentColor" opacity="{weight}"/>'
                f'<text x="{a}" y="{side + 15}" text-anchor="middle" opacity=".8">{v}</text>'
            )
        if 8 < b < side - 8:
            lines_.append(
                f'<path d="M0,{b}H{side}" stroke="currentColor" opacity="{weight}"/>'
                f'<text x="-6" y="{b + 4}" text-anchor="end" opacity=".8">{v}</text>'
            )
    grid = "".join(lines_) + (
        f'<text x="{side / 2}" y="{side + 32}" text-anchor="middle" opacity=".8">channel 0</text>'
        f'<text transform="translate(-26,{side / 2}) rotate(-90)" text-anchor="middle" '
        f'opacity=".8">channel 1</text>'
        f'<rect width="{side}" height="{side}" fill="none" stroke="currentColor" opacity=".3"/>'
    )

    def draw(t: int) -> str:
        path = " ".join(f"{a},{b}" for a, b in map(place, means[: t + 1]))
        parts = [f'<polyline points="{path}" fill="none" stroke="{GLOW}" stroke-width="2.5"/>']
        for mean in means[:t]:
            a, b = place(mean)
            parts.append(f'<circle cx="{a}" cy="{b}" r="3" fill="{GLOW}"/>')
        a, b = place(means[t])
        # Pale, under the tokens, and wider than one: neither hides the other where they meet.
        parts.append(
            f'<path d="{STAR}" transform="translate({a},{b}) scale(1.4)" fill="{GLOW}" '
            f'fill-opacity=".4" stroke="{GLOW}" stroke-width="2"/>'
        )
        for i, point in enumerate(points):
            a, b = place(point)
            seen = i <= t
            fill, letters = (BLUE, "white") if seen else ("none", "currentColor")
            parts.append(
                f'<g opacity="{1 if seen else 0.7}"><circle cx="{a}" cy="{b}" r="10" '
                f'fill="{fill}" stroke="{"white" if seen else letters}"/>'
                f'<text x="{a}" y="{b + 4}" text-anchor="middle" fill="{letters}">{i}</text></g>'
            )
        svg = (
            f'<svg width="{side + 42}" height="{side + 40}" '
            f'viewBox="-40 -2 {side + 42} {side + 40}" role="img" '
            f'aria-label="{text_html(tell(t))}" '
            f'style="font:12px sans-serif;fill:currentColor">{grid}{"".join(parts)}</svg>'
        )
        rows = [
            (
                str(i),
                [
                    *(td(number(v), PLAIN if i <= t else "opacity:.75") for v in point),
                    *(td(number(v) if i <= t else "", MARKED if i == t else "") for v in mean),
                ],
            )
            for i, (point, mean) in enumerate(zip(points.tolist(), means.tolist(), strict=True))
        ]
        columns = ["channel 0", "channel 1", "mean, ch. 0", "mean, ch. 1"]
        table = html_table("", columns, rows, corner="token")
        return side_by_side([svg, table]) + say(tell(t) + ".")

    def tell(t: int) -> str:
        who = "token 0" if t == 0 else f"tokens 0…{t}"
        spot = f"({number(means[t, 0])}, {number(means[t, 1])})"
        return f"t = {t}: the mean of {who} is {spot}, {t + 1} of {len(points)} tokens in it"

    return Explorer(
        "move t; see the tokens 0…t, the path of their running mean, and the mean.",
        {"t": slider("t", min(3, len(points) - 1), 0, len(points) - 1)},
        draw,
        tell,
    )
