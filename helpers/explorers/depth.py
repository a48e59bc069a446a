"""Notebook 07: signal, gradient and token similarity by depth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from helpers.explorers.explorer import (
    GLOW,
    SKY,
    Explorer,
    abreast,
    controls_in_a_row,
    dropdown,
    say,
    slider,
)
from helpers.numbers import brief, number, power
from helpers.pictures.lines import decades
from helpers.stack import AT_ONCE, INITS, WAYS, signal_by_depth

if TYPE_CHECKING:
    pass


WHAT = ("signal", "gradient", "similarity")


WIDE, TALL = 212, 150  # of one of the three charts


def explore_depth() -> Explorer:
    """Choose depth, way and start of a stack; see its signal, gradient and token similarity."""
    controls = {
        "depth": slider("depth, in blocks", 4, 1, AT_ONCE),
        "way": dropdown("way", WAYS, WAYS[0]),
        "start": dropdown("start", INITS, INITS[0]),
    }
    # Every depth of every way, measured once: a move of the slider only looks it up.
    found = {
        (way, init): [signal_by_depth(way, d, init=init) for d in range(1, AT_ONCE + 1)]
        for way in WAYS
        for init in INITS
    }
    charts = {
        (init, what): _Chart(
            {way: [getattr(f, what) for f in found[way, init]] for way in WAYS}, what
        )
        for init in INITS
        for what in WHAT
    }

    def judge(depth: int, way: str, start: str) -> str:
        stack = found[way, start][depth - 1]
        told = []
        if stack.signal < 0.1 or stack.signal > 10:
            told.append("the signal fades" if stack.signal < 1 else "the signal explodes")
        if stack.gradient < 0.1 or stack.gradient > 10:
            told.append("the gradient fades" if stack.gradient < 1 else "the gradient explodes")
        if stack.similarity > 0.9:
            told.append("all tokens point nearly the same way")
        if not told:
            return "✓ Signal and gradient stay within a factor of 10, and tokens stay apart."
        return f"⚠ {told[0][0].upper()}{', '.join(told)[1:]}."

    def draw(depth: int, way: str, start: str) -> str:
        parts = [charts[start, what].draw(way, depth) for what in WHAT]
        return abreast(parts) + say(
            "The thick line is the way you chose, the thin ones are the other three.",
            judge(depth, way, start),
        )

    def tell(depth: int, way: str, start: str) -> str:
        stack = found[way, start][depth - 1]
        told = ", ".join(f"{what} {_size(what, getattr(stack, what))}" for what in WHAT)
        return f"{way}, {start} start, depth {depth}: {told}. {judge(depth, way, start)}"

    return Explorer(
        "choose depth, way and start of a stack of fresh blocks; see what reaches its ends.",
        controls,
        draw,
        tell,
        controls_in_a_row,
    )


def _size(what: str, value: float) -> str:
    return number(value) if what == "similarity" else brief(value)


class _Chart:
    """One quantity by depth, four ways: all that does not move is drawn once."""

    def __init__(self, lines: dict[str, list[float]], what: str) -> None:
        self.lines, self.what = lines, what
        values = np.array(list(lines.values()))
        if what == "similarity":
            marks, self.low, self.high = {0.0: "0", 0.5: "0.5", 1.0: "1"}, -0.04, 1.04
        else:
            powers, limits = decades(float(values.min()), float(values.max()))
            marks = {float(p): power(p) for p in powers}
            self.low, self.high = map(math.log10, limits)
        self.paths = {
            way: " ".join(f"{self._x(d):.1f},{self._y(y):.1f}" for d, y in enumerate(ys, 1))
            for way, ys in lines.items()
        }
        grid = [
            f'<path d="M0,{y:.1f}H{WIDE}" stroke="currentColor" opacity=".15"/>'
            f'<text x="-6" y="{y + 4:.1f}" text-anchor="end" opacity=".85">{mark}</text>'
            for y, mark in ((self._place(p), mark) for p, mark in marks.items())
        ]
        grid += [
            f'<text x="{self._x(d):.1f}" y="{TALL + 16}" text-anchor="middle" opacity=".85">{d}'
            "</text>"
            for d in (1, 6, 12, 18, 24)
        ]
        grid.append(
            f'<text x="{WIDE / 2}" y="{TALL + 31}" text-anchor="middle" opacity=".85">depth</text>'
        )
        grid += [
            f'<polyline points="{path}" fill="none" stroke="currentColor" opacity=".3"/>'
            for path in self.paths.values()
        ]
        self.still = "".join(grid)

    def _x(self, depth: int) -> float:
        return 6 + (depth - 1) / (AT_ONCE - 1) * (WIDE - 12)

    def _place(self, value: float) -> float:
        return TALL * (1 - (value - self.low) / (self.high - self.low))

    def _y(self, value: float) -> float:
        return self._place(value if self.what == "similarity" else math.log10(value))

    def draw(self, way: str, depth: int) -> str:
        """Draw the chart with one way thick, and a dot at this depth."""
        value = self.lines[way][depth - 1]
        x, text = self._x(depth), _size(self.what, value)
        return (
            f'<svg width="{WIDE + 52}" height="{TALL + 58}" '
            f'viewBox="-44 -22 {WIDE + 52} {TALL + 58}" role="img" '
            f'aria-label="{self.what} at depth {depth}: {text}" '
            'style="font:12px sans-serif;fill:currentColor">'
            f'<text x="0" y="-9">{self.what}: <tspan font-weight="bold">{text}</tspan></text>'
            f'{self.still}<path d="M{x:.1f},0V{TALL}" stroke="{GLOW}" opacity=".5"/>'
            f'<polyline points="{self.paths[way]}" fill="none" stroke="{SKY}" stroke-width="3"/>'
            f'<circle cx="{x:.1f}" cy="{self._y(value):.1f}" r="6" fill="{GLOW}"/></svg>'
        )
