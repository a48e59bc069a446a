"""Notebook 05: what scores are divided by, and what becomes of the weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import ipywidgets as widgets
import numpy as np
import torch

from attention_base.numbers import brief, number, texts
from explorers.explorer import Explorer, coloured_cells, dropdown, sentences, svg
from helpers.pictures.colours import GLOW
from helpers.pictures.table import Table, side_by_side

T = 8  # tokens
C = 32  # channels of the model that the head stands in
SIZES = [2**p for p in range(11)]  # d: channels of a query
DIVISORS = {
    "none": lambda d: 1.0,
    "√T": lambda d: math.sqrt(T),
    "√C": lambda d: math.sqrt(C),
    "√d": lambda d: math.sqrt(d),
    "d": lambda d: float(d),
}
WIDTH = 300  # of a gauge, in CSS pixels


def explore_scaling() -> Explorer:
    """Choose d and what scores are divided by; see what becomes of the weights."""
    return ScalingExplorer()


class ScalingExplorer(Explorer):
    """Gauges: variance of random scores, entropy and derivative of their weights; some rows."""

    about = "choose d and what the scores are divided by; see what becomes of the weights."

    def __init__(self) -> None:
        super().__init__(
            {
                "d": widgets.SelectionSlider(
                    options=SIZES, value=256, description="d",
                    style={"description_width": "initial"}, layout={"width": "300px"},
                ),
                "divisor": dropdown("divisor (T = 8, C = 32)", list(DIVISORS), "none"),
            }
        )  # fmt: skip

    def draw(self, d: int, divisor: str) -> str:
        """Draw three gauges, and beside them three rows of weights."""
        found = _measure(d, divisor)
        variance, bits, sensitivity = found.variance, found.bits, found.sensitivity
        gauges = (
            _gauge(
                "variance of the scores", brief(variance),
                (math.log10(variance) + 3) / 6, ["0.001", "1", "1000"],
            ),
            _gauge(
                "entropy of a row, in bits", number(bits),
                bits / 3, ["0: one key has all", "3: all keys alike"],
            ),
            _gauge(
                "mean derivative of a weight", number(sensitivity, 3),
                sensitivity / (7 / 64), ["0: none", "0.109: largest"],
            ),
        )  # fmt: skip
        return side_by_side(
            [f"<div>{''.join(gauges)}</div>", _table(found.weights[0, :3])],
            _divisor_in_words(d, divisor),
        ) + sentences(_softmax_in_words(found))

    def describe(self, d: int, divisor: str) -> str:
        """Say what the gauges show."""
        found = _measure(d, divisor)
        return (
            f"{_divisor_in_words(d, divisor)}: variance {brief(found.variance)}, entropy "
            f"{number(found.bits)} of at most 3 bits, mean derivative of a weight "
            f"{number(found.sensitivity, 3)} of at most 0.109. {_softmax_in_words(found)}"
        )


class _Measured(NamedTuple):
    """What becomes of the scores of many random queries and keys."""

    weights: np.ndarray  # (128, T, T)
    variance: float  # of the scores
    bits: float  # the entropy of a row of weights, on average
    sensitivity: float  # the derivative of a weight by its own score, on average


def _measure(d: int, divisor: str) -> _Measured:
    scores = _dot_products()[d] / DIVISORS[divisor](d)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    bits = -(weights * np.log2(np.maximum(weights, 1e-300))).sum(-1).mean()
    sensitivity = (weights * (1 - weights)).mean()
    return _Measured(weights, float(scores.var()), float(bits), float(sensitivity))


@lru_cache(maxsize=1)
def _dot_products() -> dict[int, np.ndarray]:
    """Make scores (128, T, T) of random queries and keys with d = 1, 2, 4, … 1024 channels."""
    source = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 128, T, 1024, generator=source)
    return {d: (q[..., :d] @ k[..., :d].mT).double().numpy() for d in SIZES}


def _divisor_in_words(d: int, divisor: str) -> str:
    if divisor == "none":
        return f"d = {d}, scores not divided"
    return f"d = {d}, scores divided by {divisor} = {texts(np.array(DIVISORS[divisor](d)), 3)}"


def _softmax_in_words(found: _Measured) -> str:
    largest = found.weights.max(-1)
    if (largest > 0.9).mean() > 0.5:
        return (
            "Most rows are saturated: one key has more than 0.9 of the weight, "
            "and a small change of a score changes hardly any weight."
        )
    if (largest > 0.5).mean() > 0.5:
        return (
            "In most rows one key has more than half of the weight, "
            "and the weights change less when a score changes."
        )
    if found.variance > 1.5:
        return (
            "The rows are more one-sided than at variance 1, "
            "and the weights change less when a score changes."
        )
    if found.variance > 0.7:
        return "Each row prefers some keys, and its weights still change when a score changes."
    if found.variance > 0.03:
        return "The rows are more even than at variance 1: the scores change the weights less."
    return "All keys get nearly the same weight, whatever the scores are."


def _table(weights: np.ndarray) -> str:
    rows = [(str(t), cells) for t, cells in enumerate(coloured_cells(weights, 0, 1))]
    columns = [str(j) for j in range(T)]
    table = Table(columns, rows, "three rows of weights", corner="query", over="key")
    return table.html(classes=True)


def _gauge(name: str, text: str, share: float, marks: Sequence[str]) -> str:
    """Draw a number as a dot on a line, this share of the way from its left to its right end.

    The marks stand evenly along the line.
    """
    ticks = []
    for i, mark in enumerate(marks):
        x = i / (len(marks) - 1) * WIDTH
        anchor = "start" if i == 0 else "end" if i == len(marks) - 1 else "middle"
        ticks += [
            f'<path d="M{x:.0f},26v8" stroke="currentColor" opacity=".6"/>',
            f'<text x="{x:.0f}" y="48" text-anchor="{anchor}" opacity=".8">{mark}</text>',
        ]
    return svg(
        f'<text y="13">{name}: <tspan font-weight="bold">{text}</tspan></text>'
        f'<path d="M0,30H{WIDTH}" stroke="currentColor" opacity=".35" stroke-width="2"/>'
        f"{''.join(ticks)}"
        f'<circle cx="{min(max(share, 0), 1) * WIDTH:.1f}" cy="30" r="7" fill="{GLOW}"/>',
        f"{name}: {text}", -10, 0, WIDTH + 20, 62,
    )  # fmt: skip
