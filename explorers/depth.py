"""Notebook 07: signal, gradient and token similarity by depth, for four ways to stack blocks."""

from __future__ import annotations

import math

import numpy as np

from attention_base.numbers import brief, number, powers
from explorers.explorer import Explorer, dropdown, sentences, slider, svg
from helpers.pictures.colours import GLOW, SKY
from helpers.pictures.lines import decades
from helpers.pictures.table import side_by_side
from helpers.stack import AT_ONCE, INITS, WAYS, signal_by_depth

QUANTITIES = {"signal": brief, "gradient": brief, "similarity": number}  # and how they are written
WIDTH, HEIGHT = 212, 150  # of a chart, in CSS pixels


def explore_depth() -> Explorer:
    """Choose depth, way and initialisation of a stack; see signal, gradient and similarity."""
    return DepthExplorer()


class DepthExplorer(Explorer):
    """Three charts by depth; the chosen way is drawn thick, with a dot at the chosen depth.

    Every depth of every way is measured once: a move of the slider only looks it up.
    """

    about = (
        "choose how many untrained blocks are stacked, in which way, and how they are initialised; "
        "see the signal at the end, the gradient at the input, and how similar the tokens are."
    )

    def __init__(self) -> None:
        depths = range(1, AT_ONCE + 1)
        self._stacks = {
            (way, init): [signal_by_depth(way, depth, init=init) for depth in depths]
            for way in WAYS
            for init in INITS
        }
        self._charts = {
            (init, quantity): _DepthChart(
                quantity,
                {way: [getattr(s, quantity) for s in self._stacks[way, init]] for way in WAYS},
            )
            for init in INITS
            for quantity in QUANTITIES
        }
        super().__init__(
            {
                "depth": slider("depth, in blocks", AT_ONCE, 1, AT_ONCE),
                "way": dropdown("way to stack", WAYS, "residual"),
                "initialisation": dropdown("initialisation", INITS, "unit gain"),
            }
        )

    def draw(self, depth: int, way: str, initialisation: str) -> str:
        """Draw the three charts, and say what is wrong with the stack."""
        charts = [self._charts[initialisation, name].draw(way, depth) for name in QUANTITIES]
        return side_by_side(charts) + sentences(
            "The thick line is the way that you chose, the thin lines are the other three.",
            self._problems_in_words(depth, way, initialisation),
        )

    def describe(self, depth: int, way: str, initialisation: str) -> str:
        """Say the three numbers, and what is wrong with the stack."""
        stack = self._stacks[way, initialisation][depth - 1]
        values = ", ".join(
            f"{name} {write(getattr(stack, name))}" for name, write in QUANTITIES.items()
        )
        problems = self._problems_in_words(depth, way, initialisation)
        return f"{way}, {initialisation} initialisation, depth {depth}: {values}. {problems}"

    def _problems_in_words(self, depth: int, way: str, initialisation: str) -> str:
        stack = self._stacks[way, initialisation][depth - 1]
        problems = []
        for name, value in (("signal", stack.signal), ("gradient", stack.gradient)):
            if not 0.1 <= value <= 10:
                problems.append(f"the {name} {'fades' if value < 1 else 'explodes'}")
        if stack.similarity > 0.9:
            problems.append("all tokens point nearly the same way")
        if not problems:
            return "✓ Signal and gradient stay within a factor of 10, and tokens stay apart."
        sentence = ", ".join(problems)
        return f"⚠ {sentence[0].upper()}{sentence[1:]}."


class _DepthChart:
    """One quantity by depth, for all ways.

    Parameters
    ----------
    quantity : str
        "signal" and "gradient" are drawn on a logarithmic axis, "similarity" from 0 to 1.
    values : dict of way -> values at depth 1, 2, 3, …
    """

    def __init__(self, quantity: str, values: dict[str, list[float]]) -> None:
        self.quantity, self.values = quantity, values
        if quantity == "similarity":
            self._heights = values
            ticks, self._limits = {0.0: "0", 0.5: "0.5", 1.0: "1"}, (-0.04, 1.04)
        else:
            self._heights = {way: np.log10(line).tolist() for way, line in values.items()}
            everything = np.array(list(values.values()))
            exponents, limits = decades(float(everything.min()), float(everything.max()))
            ticks = dict(zip(map(float, exponents), powers(exponents), strict=True))
            self._limits = math.log10(limits[0]), math.log10(limits[1])
        self._paths = {
            way: " ".join(f"{_x(depth):.1f},{self._y(h):.1f}" for depth, h in enumerate(line, 1))
            for way, line in self._heights.items()
        }
        self._background = self._draw_axes(ticks) + self._draw_thin_lines()

    def draw(self, way: str, depth: int) -> str:
        """Draw the chart with one way thick, and a dot at this depth."""
        text = QUANTITIES[self.quantity](self.values[way][depth - 1])
        x, y = _x(depth), self._y(self._heights[way][depth - 1])
        return svg(
            f'<text y="-9">{self.quantity}: <tspan font-weight="bold">{text}</tspan></text>'
            f'{self._background}<path d="M{x:.1f},0V{HEIGHT}" stroke="{GLOW}" opacity=".5"/>'
            f'<polyline points="{self._paths[way]}" fill="none" stroke="{SKY}" stroke-width="3"/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{GLOW}"/>',
            f"{self.quantity} at depth {depth}: {text}", -52, -22, WIDTH + 60, HEIGHT + 58,
        )  # fmt: skip

    def _y(self, height: float) -> float:
        low, high = self._limits
        return HEIGHT * (1 - (height - low) / (high - low))

    def _draw_axes(self, ticks: dict[float, str]) -> str:
        heights = {self._y(value): text for value, text in ticks.items()}
        grid = [f"M0,{y:.1f}H{WIDTH}" for y in heights]
        left = [f'<text x="-6" y="{y + 4:.1f}">{text}</text>' for y, text in heights.items()]
        below = [
            f'<text x="{_x(depth):.1f}" y="{HEIGHT + 16}">{depth}</text>'
            for depth in (1, 6, 12, 18, 24)
        ]
        return (
            f'<path d="{"".join(grid)}" stroke="currentColor" opacity=".15"/>'
            f'<g opacity=".85"><g text-anchor="end">{"".join(left)}</g>'
            f'<g text-anchor="middle">{"".join(below)}'
            f'<text x="{WIDTH / 2}" y="{HEIGHT + 31}">depth</text></g></g>'
        )

    def _draw_thin_lines(self) -> str:
        lines = [f'<polyline points="{path}" opacity=".3"/>' for path in self._paths.values()]
        return f'<g fill="none" stroke="currentColor">{"".join(lines)}</g>'


def _x(depth: int) -> float:
    return 6 + (depth - 1) / (AT_ONCE - 1) * (WIDTH - 12)
