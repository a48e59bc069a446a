"""Notebook 03: from scores to weights, by a softmax with a temperature and a mask."""

from __future__ import annotations

import ipywidgets as widgets
import numpy as np

from attention_base.numbers import number
from explorers.explorer import Explorer, checkbox, in_a_row, sentences, slider
from helpers.pictures.table import Cell, Table

SCORES = (1.0, 0.8, 1.2, 0.9, 1.5)  # at first: close together, yet one takes nearly all
TEMPERATURE = 0.1
MASKED = 3  # the first token that the mask hides


def explore_softmax() -> Explorer:
    """Five scores, a temperature and a mask: see the weights, and how spread out they are."""
    return SoftmaxExplorer()


class SoftmaxExplorer(Explorer):
    """A row of scores, each beside its weight as a bar; below them the entropy of the weights."""

    about = "move five scores and the temperature, tick the mask; see the weights of softmax."

    def __init__(self) -> None:
        scores = {
            f"token {j}": slider(f"token {j}", score, -4, 4, 0.1) for j, score in enumerate(SCORES)
        }
        self._score_sliders = list(scores.values())
        options = {
            "temperature": slider("temperature", TEMPERATURE, 0.1, 5, 0.1),
            "mask": checkbox("mask: tokens 3 and 4 are the future"),
        }
        super().__init__(scores | options)

    def arrange(self) -> widgets.Widget:
        """Put the slider of each score to the left of its weight."""
        self.view.add_class("tall-rows")  # as tall as a slider
        title = widgets.HTML('<div style="font-size:12px">scores</div>', layout={"height": "28px"})
        scores = widgets.VBox([title, *self._score_sliders])
        options = in_a_row(self.controls["temperature"], self.controls["mask"])
        below = widgets.HBox([scores, self.view], layout={"flex_flow": "row wrap"})
        return widgets.VBox([options, below])

    def draw(self, temperature: float, mask: bool, **scores: float) -> str:
        """Draw the scores that go into the softmax, and the weights that come out, as bars."""
        divided = _divide(list(scores.values()), temperature, mask)
        weights = _softmax(divided)
        rows = []
        for j, (score, weight) in enumerate(zip(divided, weights, strict=True)):
            masked = mask and j >= MASKED
            cells = [
                Cell(number(score), "masked" if masked else "plain"),
                Cell(number(weight) + " (masked)" * masked, bar=weight),
            ]
            rows.append((f"token {j}", cells))
        over = "score / temperature" + ", masked" * mask
        table = Table([over, "weight"], rows, bar_width=210)
        return table.html(classes=True) + sentences(_entropy_in_words(weights, mask))

    def describe(self, temperature: float, mask: bool, **scores: float) -> str:
        """Say the scores and the weights."""
        weights = _softmax(_divide(list(scores.values()), temperature, mask))
        return (
            f"scores {' '.join(number(score, 1) for score in scores.values())}, "
            f"temperature {number(temperature, 1)}, mask {'on' if mask else 'off'}: "
            f"weights {' '.join(map(number, weights))}. {_entropy_in_words(weights, mask)}"
        )


def _divide(scores: list[float], temperature: float, mask: bool) -> np.ndarray:
    """Divide the scores by the temperature, and put -inf where the mask hides a token."""
    divided = np.array(scores) / temperature
    if mask:
        divided[MASKED:] = -np.inf
    return divided


def _softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def _entropy_in_words(weights: np.ndarray, mask: bool) -> str:
    positive = weights[weights > 0]
    bits = -float((positive * np.log2(positive)).sum()) + 0.0
    most = np.log2(MASKED if mask else len(weights))
    return (
        f"Entropy {number(bits)} bits of at most {number(most)}: as spread out as "
        f"{number(2**bits, 1)} equal weights."
    )
