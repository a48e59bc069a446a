"""Notebook 08: a query and a key as four pairs of arrows, turned by their positions."""

from __future__ import annotations

import math
from typing import NamedTuple

import ipywidgets as widgets
import torch

from attention_base.numbers import number
from explorers.explorer import Explorer, arrow, sentences, slider, svg
from helpers.pictures.colours import GLOW, SKY
from helpers.pictures.table import side_by_side
from helpers.positions import rotary

SPEEDS = (1.0, 0.1, 0.01, 0.001)  # radians a position, with d = 8 channels and base 10 000
BETWEEN = 40  # degrees from the query to the key while both stand at position 0
START = torch.tensor(
    [[1.0, 0.0] * 4, [math.cos(math.radians(BETWEEN)), math.sin(math.radians(BETWEEN))] * 4],
    dtype=torch.float64,
)  # (2, 8): query, key
FARTHEST = 24
AGAIN = 19  # positions: 3.02 full circles of the fastest arrow
SHIFTS = (0, 1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 500, 1000)
RADIUS = 58  # of a circle, in CSS pixels
WIDTH, HEIGHT = 140, 44  # of a chart
LEGEND = svg(
    f'<text y="14"><tspan fill="{GLOW}">■</tspan> query <tspan fill="{SKY}">■</tspan> key '
    "· faint: before the shift</text>",
    "orange: the query; blue: the key; faint: before the shift", 0, 0, 300, 20,
)  # fmt: skip


def explore_rotary() -> Explorer:
    """Move a query and a key apart or both together; see which angles and cosines change."""
    return RotaryExplorer()


class _Panel(NamedTuple):
    """One pair of channels of the query and of the key."""

    query: tuple[float, float]
    key: tuple[float, float]
    turn: float  # degrees from the query to the key, the short way
    cosine: float  # the dot product: both arrows have length 1


class RotaryExplorer(Explorer):
    """Four circles with two arrows each; under each circle, the cosine for every distance."""

    about = (
        "choose how far apart query and key stand, and shift both; see which angles between their "
        "arrows change."
    )

    def __init__(self) -> None:
        self._charts = [_draw_axes_and_curve(speed) for speed in SPEEDS]
        super().__init__(
            {
                "distance": slider("distance", 3, 0, FARTHEST),
                "shift": widgets.SelectionSlider(
                    options=SHIFTS, value=0, description="shift of both",
                    style={"description_width": "initial"}, layout={"width": "300px"},
                ),
            }
        )  # fmt: skip

    def draw(self, distance: int, shift: int) -> str:
        """Draw the four pairs of channels, and say what the shift has changed."""
        before, panels = _turn(distance, 0), _turn(distance, shift)
        drawn = [
            f"<div>{_draw_circle(i, panel, at_first)}{self._draw_chart(i, distance, panel)}</div>"
            for i, (panel, at_first) in enumerate(zip(panels, before, strict=True))
        ]
        return (
            sentences(f"{_places_in_words(distance, shift)}.")
            + side_by_side(drawn)
            + LEGEND
            + sentences(_score_in_words(panels), _shift_in_words(shift), _again_in_words(distance))
        )

    def describe(self, distance: int, shift: int) -> str:
        """Say angles, cosines and score, and what the shift has changed."""
        panels = _turn(distance, shift)
        pairs = ", ".join(
            f"{number(abs(panel.turn), 1)}° (cosine {number(panel.cosine)})" for panel in panels
        )
        told = f"{_places_in_words(distance, shift)}. Angles between the arrows: {pairs}."
        more = _score_in_words(panels), _shift_in_words(shift), _again_in_words(distance)
        return " ".join([told, *filter(None, more)])

    def _draw_chart(self, i: int, distance: int, panel: _Panel) -> str:
        x, y = _x(distance), _y(panel.cosine)
        return svg(
            f'{self._charts[i]}<path d="M{x:.1f},0V{HEIGHT}" stroke="{GLOW}" opacity=".5"/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{GLOW}"/>',
            f"cosine at distance {distance}: {number(panel.cosine)}",
            -30, -8, WIDTH + 46, HEIGHT + 44,
        )  # fmt: skip


def _turn(distance: int, shift: int) -> list[_Panel]:
    """Turn query and key by their positions; the key stands `distance` before the query."""
    turned = rotary(START, torch.tensor([shift + distance, shift]))
    panels = []
    for (a, b), (c, d) in zip(*turned.unflatten(-1, (4, 2)).tolist(), strict=True):
        cosine = a * c + b * d
        panels.append(
            _Panel((a, b), (c, d), math.degrees(math.atan2(a * d - b * c, cosine)), cosine)
        )
    return panels


def _places_in_words(distance: int, shift: int) -> str:
    return (
        f"Query at position {shift + distance}, key at position {shift}: distance {distance}, "
        f"shift {shift}"
    )


def _score_in_words(panels: list[_Panel]) -> str:
    score = number(sum(panel.cosine for panel in panels))
    return f"Score: {score}, the sum of the four cosines."


def _shift_in_words(shift: int) -> str:
    if not shift:
        return f"At position 0, each query arrow stands at 0° and each key arrow at {BETWEEN}°."
    return (
        "The shift turned both arrows of a pair by the same angle, so angle, cosine and score stay "
        "the same."
    )


def _again_in_words(distance: int) -> str:
    if distance < AGAIN:
        return ""
    near = distance - AGAIN
    (fast, slow), (fast_near, slow_near) = (
        [number(panel.cosine) for panel in _turn(apart, 0)[:2]] for apart in (distance, near)
    )
    return (
        f"The fastest arrow can hardly tell distance {distance} from {near}: {AGAIN} positions are "
        f"{number(AGAIN / math.tau)} full circles, and its cosine is {fast} here, {fast_near} "
        f"there. The next arrow can: {slow} here, {slow_near} there."
    )


def _draw_circle(i: int, panel: _Panel, before: _Panel) -> str:
    """Draw the arrows of one pair of channels, and the arc between them."""
    speed = SPEEDS[i]
    angle = f"angle between {number(abs(panel.turn), 1)}°"
    start = math.atan2(panel.query[1], panel.query[0])
    steps = [start + math.radians(panel.turn) * step / 12 for step in range(13)]
    arc = " ".join(f"{22 * math.cos(at):.1f},{-22 * math.sin(at):.1f}" for at in steps)
    faint, clear = (
        arrow(*_tip(one.key), SKY, 3) + arrow(*_tip(one.query), GLOW, 3) for one in (before, panel)
    )
    channels = f"channels {2 * i} and {2 * i + 1}"
    turns = f"{speed:g} rad = {math.degrees(speed):.3g}° a position"
    return svg(
        f'<g text-anchor="middle"><text y="-88" font-weight="bold">{channels}</text>'
        f'<text y="-71">{turns}</text><text y="76">{angle}</text>'
        f'<text y="93" font-weight="bold">cosine {number(panel.cosine)}</text></g>'
        f'<g fill="none" stroke="currentColor"><circle r="{RADIUS}" opacity=".25"/>'
        f'<polyline points="{arc}" stroke-width="2"/></g>'
        f'<g opacity=".3">{faint}</g>{clear}',
        f"{channels}, {turns}: {angle}", -93, -102, 186, 202,
    )  # fmt: skip


def _tip(vector: tuple[float, float]) -> tuple[float, float]:
    return RADIUS * vector[0], -RADIUS * vector[1]


def _draw_axes_and_curve(speed: float) -> str:
    """Draw what never moves under a circle: the cosine by distance."""
    curve = " ".join(
        f"{_x(n / 4):.1f},{_y(math.cos(math.radians(BETWEEN) - speed * n / 4)):.1f}"
        for n in range(4 * FARTHEST + 1)
    )
    left = "".join(f'<text x="-6" y="{_y(c) + 4:.1f}">{c}</text>' for c in (1, 0, -1))
    below = "".join(f'<text x="{_x(n):.1f}" y="{HEIGHT + 18}">{n}</text>' for n in (0, 12, 24))
    grid = "".join(f"M0,{_y(c):.1f}H{WIDTH}" for c in (1, 0, -1))
    return (
        f'<path d="{grid}" stroke="currentColor" opacity=".2"/>'
        f'<g opacity=".85"><g text-anchor="end">{left}</g><g text-anchor="middle">{below}'
        f'<text x="{WIDTH / 2:g}" y="{HEIGHT + 32}">cosine by distance</text></g></g>'
        f'<polyline points="{curve}" fill="none" stroke="{SKY}" stroke-width="2"/>'
    )


def _x(distance: float) -> float:
    return distance / FARTHEST * WIDTH


def _y(cosine: float) -> float:
    return HEIGHT * (1 - cosine) / 2
