"""Notebook 12: what two layers attend to while they learn, and what patterns in their place do."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from attention_base.numbers import as_whole, number
from explorers.explorer import Explorer, dropdown, sentences, slider, svg
from explorers.quilt import Part, quilt
from helpers.circuits import training_moments
from helpers.circuits.moments import PATTERNS, STEPS, WORD
from helpers.pictures.colours import GLOW, SKY, fills, paint
from helpers.pictures.table import side_by_side

PERIOD = len(WORD)
PARTS = [Part(f"key, {half} period", f"query, {half} period", WORD) for half in ("first", "second")]
EXACT = "the letter before", "the letter after the same letter"  # in layer 0, in layer 1
READ = "Rows: query (who reads); columns: key (who is read)."
KEY = "The thick line is with the patterns that you chose, the thin line with both layers learned."
SIDE = 11  # of a cell of a map, in CSS pixels
WIDTH, HEIGHT = 212, 150  # of the chart


def explore_moments(step: int = 200) -> Explorer:
    """Move through a training of two layers, and patch them; see both maps, and what is right.

    Parameters
    ----------
    step
        The moment to begin with: 0, 10, … 200.

    Raises
    ------
    TypeError, ValueError
        When it is none of these.
    """
    step = as_whole(step, "step", STEPS[0], STEPS[-1])
    if step not in STEPS:
        raise ValueError(f"step must be one of 0, 10, 20, … {STEPS[-1]}, got {step}")
    return MomentsExplorer(step)


class MomentsExplorer(Explorer):
    """The maps of both layers at a step, and the share of right letters by step.

    Everything was computed by `make circuits`: a move of the slider only looks it up.
    """

    about = (
        "choose a step of a training, and a pattern for each layer; see what the letters attend "
        "to, and how many of the known letters are right."
    )

    def __init__(self, step: int) -> None:
        self._moments = training_moments()
        super().__init__(
            {
                "step": slider("step", step, STEPS[0], STEPS[-1], STEPS.step),
                "layer 0": dropdown("layer 0", PATTERNS, "learned"),
                "layer 1": dropdown("layer 1", PATTERNS, "learned"),
            }
        )

    def draw(self, step: int, layer_0: str, layer_1: str) -> str:
        """Draw the two maps and the chart, and say the numbers."""
        maps = self._maps(*_place(step, layer_0, layer_1))
        titles = _titles(layer_0, layer_1)
        parts = [
            f"<div>{side_by_side([_draw_map(weights, title)], title)}</div>"
            for weights, title in zip(maps, titles, strict=True)
        ]
        parts.append(_draw_chart(self._moments.right, *_place(step, layer_0, layer_1)))
        return side_by_side(parts) + sentences(*self._told(step, layer_0, layer_1), READ, KEY)

    def describe(self, step: int, layer_0: str, layer_1: str) -> str:
        """Say the numbers and the curve."""
        _, i, j = _place(step, layer_0, layer_1)
        right = self._moments.right
        told = " ".join(self._told(step, layer_0, layer_1))
        return (
            f"{'. '.join(_titles(layer_0, layer_1))}. {told} With these patterns, the share right "
            f"at steps {STEPS[0]}, {STEPS[1]}, … {STEPS[-1]} is "
            f"{', '.join(map(number, right[:, i, j].tolist()))}."
        )

    def _maps(self, moment: int, i: int, j: int) -> tuple[Tensor, Tensor]:
        """The weights of both layers, each (T, T)."""
        return self._moments.layer_0[moment, i], self._moments.layer_1[moment, i, j]

    def _told(self, step: int, layer_0: str, layer_1: str) -> list[str]:
        """What there is to say of a setting: how good it is, and its stripes."""
        moments, place = self._moments, _place(step, layer_0, layer_1)
        previous = moments.previous_token_score[place[:2]]
        first, second = self._maps(*place)
        near = [number(_stripe(first, back)) for back in range(3)]
        same, after = (number(_stripe(second, back)) for back in (PERIOD, PERIOD - 1))
        return [
            f"Step {step}: {number(100 * moments.right[place], 0)} % of the known letters are "
            f"right, loss {number(moments.loss[place])}; previous-token score {number(previous)}; "
            f"induction score {number(moments.induction_score[place])}.",
            f"In the second “{WORD}”, the mean weight of a letter in layer 0 is {near[0]} on "
            f"itself, {near[1]} one back and {near[2]} two back; in layer 1 it is {after} on the "
            f"letter after the same letter, {PERIOD - 1} back, and {same} on the same letter, "
            f"{PERIOD} back.",
        ]


def _place(step: int, layer_0: str, layer_1: str) -> tuple[int, int, int]:
    """Where the numbers of a setting stand in `TrainingMoments`."""
    return STEPS.index(step), PATTERNS.index(layer_0), PATTERNS.index(layer_1)


def _titles(*layers: str) -> list[str]:
    """The titles of the maps."""
    meant = [{"exact": exact, "equal": "itself and all before it, equally"} for exact in EXACT]
    return [
        f"Layer {n}, {pattern}" + (f": {means[pattern]}" if pattern in means else "")
        for n, (pattern, means) in enumerate(zip(layers, meant, strict=True))
    ]


def _stripe(weights: Tensor, back: int) -> Tensor:
    """The mean weight that the letters of the second period give to the one this far back."""
    return weights.diagonal(-back)[PERIOD - back :].mean()


# ---------------------------------------------------------------- pictures


def _draw_map(weights: Tensor, title: str) -> str:
    """Draw a map (T, T), rounded to hundredths: fewer colours, and less to send."""
    rounded = np.round(weights.double().numpy(), 2)
    return quilt(rounded, fills(paint(rounded, 0, 1, None)), PARTS, title, SIDE)


def _draw_chart(right: Tensor, moment: int, i: int, j: int) -> str:
    """Draw the share right by step: learned thin, the chosen patterns thick, a dot at a moment."""
    x, y = _x(STEPS[moment]), _y(right[moment, i, j].item())
    thin, thick = (
        " ".join(f"{_x(s):.1f},{_y(r):.1f}" for s, r in zip(STEPS, line.tolist(), strict=True))
        for line in (right[:, 0, 0], right[:, i, j])
    )
    share = number(right[moment, i, j])
    left = "".join(f'<text x="-6" y="{_y(r) + 4:.1f}">{r:g}</text>' for r in (0, 0.5, 1))
    below = "".join(
        f'<text x="{_x(s):.1f}" y="{HEIGHT + 16}">{s}</text>' for s in (0, 50, 100, 150, 200)
    )
    grid = "".join(f"M0,{_y(r):.1f}H{WIDTH}" for r in (0, 0.5, 1))
    return svg(
        f'<text y="-9">share right: <tspan font-weight="bold">{share}</tspan></text>'
        f'<path d="{grid}" stroke="currentColor" opacity=".15"/>'
        f'<g opacity=".85"><g text-anchor="end">{left}</g><g text-anchor="middle">{below}'
        f'<text x="{WIDTH / 2:g}" y="{HEIGHT + 31}">step</text></g></g>'
        f'<path d="M{x:.1f},0V{HEIGHT}" stroke="{GLOW}" opacity=".5"/><g fill="none">'
        f'<polyline points="{thin}" stroke="currentColor" opacity=".5"/>'
        f'<polyline points="{thick}" stroke="{SKY}" stroke-width="3"/></g>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{GLOW}"/>',
        f"share right at step {STEPS[moment]}: {share}", -30, -22, WIDTH + 44, HEIGHT + 58,
    )  # fmt: skip


def _x(step: int) -> float:
    return 6 + step / STEPS[-1] * (WIDTH - 12)


def _y(share: float) -> float:
    return HEIGHT * (1 - (share + 0.04) / 1.08)
