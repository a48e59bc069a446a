"""Notebook 05: what scores are divided by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from helpers.explorers.explorer import GLOW, Explorer, controls_in_a_row, dropdown, say, slider
from helpers.numbers import brief, number
from helpers.pictures.colours import css, paint
from helpers.pictures.table import html_table, side_by_side, td

if TYPE_CHECKING:
    pass


T_5, C_5 = 8, 32  # tokens, and channels of the model that the head stands in


DIVISORS = {
    "none": lambda d: 1.0,
    "√T": lambda d: math.sqrt(T_5),
    "√C": lambda d: math.sqrt(C_5),
    "√d": lambda d: math.sqrt(d),
    "d": lambda d: float(d),
}


@lru_cache(maxsize=1)
def _raw_scores() -> list[np.ndarray]:
    """Make scores (128, T, T) of random queries and keys with d = 1, 2, 4, … 1024 channels."""
    source = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 128, T_5, 1024, generator=source)
    return [(q[..., : 2**p] @ k[..., : 2**p].mT).double().numpy() for p in range(11)]


def explore_scaling() -> Explorer:
    """Choose d and what scores are divided by; see how hard the softmax becomes."""
    controls = {
        "log2 d": slider("log₂ d", 5, 0, 10),
        "divisor": dropdown("divisor (T = 8, C = 32)", list(DIVISORS), "none"),
    }

    def measure(power: int, divisor: str) -> tuple[np.ndarray, float, float, float]:
        scores = _raw_scores()[power] / DIVISORS[divisor](2**power)
        grown = np.exp(scores - scores.max(-1, keepdims=True))
        weights = grown / grown.sum(-1, keepdims=True)
        bits = -(weights * np.log2(np.maximum(weights, 1e-300))).sum(-1).mean()
        answer = (weights * (1 - weights)).mean()
        return weights, float(scores.var()), float(bits), float(answer)

    def how(d: int, divisor: str) -> str:
        if divisor == "none":
            return f"d = {d}, scores as they are"
        by = f"{DIVISORS[divisor](d):.4g}"
        return f"d = {d}, scores divided by {divisor} = {by}"

    def judge(bits: float) -> str:
        if bits < 1:
            return "Most rows give nearly all to one token, and hardly a weight answers."
        if bits < 2.3:
            return "Sharper than it need be: the weights answer less than they could."
        if bits > 2.8:
            return "Every row is nearly a plain average."
        return "The weights choose, and still answer to their scores."

    def draw(**now: Any) -> str:
        d = 2 ** now["log2 d"]
        weights, variance, bits, answer = measure(now["log2 d"], now["divisor"])
        gauges = [
            _gauge("variance of the scores", brief(variance), math.log10(variance), -3, 3,
                   ["0.001", "1", "1000"]),
            _gauge("entropy of a row, in bits", number(bits), bits, 0, 3, ["0: one takes all",
                   "3: all alike"]),
            _gauge("how much a weight answers", number(answer, 3), answer, 0, 7 / 64,
                   ["0: deaf", "0.109: most"]),
        ]  # fmt: skip
        shown = weights[0, :3]
        cells = [
            [td(number(w), css(c)) for w, c in zip(row, colours, strict=True)]
            for row, colours in zip(shown, paint(shown, 0, 1, None), strict=True)
        ]
        table = html_table(
            "three rows of weights", [*map(str, range(T_5))],
            [(str(t), row) for t, row in enumerate(cells)], corner="query", over="key",
        )  # fmt: skip
        left = f"<div>{''.join(gauges)}</div>"
        return side_by_side([left, table], how(d, now["divisor"])) + say(judge(bits))

    def tell(**now: Any) -> str:
        d = 2 ** now["log2 d"]
        _, variance, bits, answer = measure(now["log2 d"], now["divisor"])
        return (
            f"{how(d, now['divisor'])}: variance {brief(variance)}, entropy "
            f"{number(bits)} of at most 3 bits, a weight answers with {number(answer, 3)} of at "
            f"most 0.109. {judge(bits)}"
        )

    return Explorer(
        "choose d and what scores are divided by; see what the softmax makes of them.",
        controls,
        draw,
        tell,
        controls_in_a_row,
    )


def _gauge(
    name: str, text: str, value: float, low: float, high: float, marks: Sequence[str]
) -> str:
    """Draw one number as a dot on a line from low to high, with marks evenly along it."""
    wide = 300
    spot = (min(max(value, low), high) - low) / (high - low) * wide
    notes = []
    for i, mark in enumerate(marks):
        place = i / (len(marks) - 1)
        anchor = {0: "start", 1: "end"}.get(place, "middle")
        notes.append(
            f'<path d="M{place * wide:.0f},26v8" stroke="currentColor" opacity=".6"/>'
            f'<text x="{place * wide:.0f}" y="48" text-anchor="{anchor}" opacity=".8">{mark}</text>'
        )
    return (
        f'<svg width="{wide + 20}" height="56" viewBox="-10 0 {wide + 20} 56" role="img" '
        f'aria-label="{name}: {text}" '
        'style="font:12px sans-serif;fill:currentColor;display:block;margin-bottom:6px">'
        f'<text x="0" y="13">{name}: <tspan font-weight="bold">{text}</tspan></text>'
        f'<path d="M0,30H{wide}" stroke="currentColor" opacity=".35" stroke-width="2"/>'
        f'{"".join(notes)}<circle cx="{spot:.1f}" cy="30" r="7" fill="{GLOW}"/></svg>'
    )
