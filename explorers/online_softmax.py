"""Notebook 14: a softmax-weighted average, computed one score at a time."""

from __future__ import annotations

import math
from typing import NamedTuple

from attention_base.numbers import number
from explorers.explorer import Explorer, checkbox, dropdown, sentences, slider
from helpers.pictures.table import Cell, Table

VALUES = {1: 10, 3: 20, 2: 30}  # the value that comes with each score
ORDERS = {
    "1, 3, 2": (1, 3, 2),
    "3, 2, 1": (3, 2, 1),
    "1, 2, 3": (1, 2, 3),
    "1001, 1003, 1002": (1001, 1003, 1002),
}
COLUMNS = ("value", "maximum", "factor", "sum", "weighted sum", "quotient")


class Carried(NamedTuple):
    """What is carried from one score to the next, and the factor by which it was rescaled."""

    maximum: float = -math.inf
    factor: float = 1.0
    sum: float = 0.0
    weighted: float = 0.0

    def then(self, score: float, value: float, rescale: bool) -> Carried:
        """Take one score more."""
        maximum = max(self.maximum, score)
        factor = math.exp(self.maximum - maximum) if rescale else 1.0
        weight = math.exp(score - maximum)
        return Carried(
            maximum, factor, self.sum * factor + weight, self.weighted * factor + weight * value
        )


def explore_online_softmax() -> Explorer:
    """Three scores, one after the other: see the maximum and the two sums that are carried."""
    return OnlineSoftmaxExplorer()


class OnlineSoftmaxExplorer(Explorer):
    """A row of a table for each score: what is carried after it, and the average so far."""

    about = (
        "choose an order of three scores, and read them one after the other; see the maximum, the "
        "sum and the weighted sum that are carried, and their quotient."
    )

    def __init__(self) -> None:
        super().__init__(
            {
                "scores": dropdown("scores", ORDERS, "1, 3, 2"),
                "scores read": slider("scores read", 2, 0, 3),
                "rescale": checkbox("rescale the sums when the maximum grows", True),
            }
        )

    def draw(self, scores: str, scores_read: int, rescale: bool) -> str:
        """Draw the table, and say what happened with the last score."""
        return _table(scores, scores_read, rescale).html(classes=True) + sentences(
            *_told(scores, scores_read, rescale)
        )

    def describe(self, scores: str, scores_read: int, rescale: bool) -> str:
        """Say the same in words."""
        told = " ".join(_told(scores, scores_read, rescale))
        return f"{told}\n{_table(scores, scores_read, rescale).text()}"


def _steps(scores: str, rescale: bool) -> list[Carried]:
    """What is carried before the first score, and after each."""
    steps = [Carried()]
    for score in ORDERS[scores]:
        steps.append(steps[-1].then(score, _value(score), rescale))
    return steps


def _value(score: int) -> int:
    return VALUES[score % 1000]


def _table(scores: str, scores_read: int, rescale: bool) -> Table:
    rows, steps = [], _steps(scores, rescale)
    for i, score in enumerate(ORDERS[scores]):
        cells = [str(_value(score)), *[""] * (len(COLUMNS) - 1)]
        if i < scores_read:
            now = steps[i + 1]
            shown = (now.factor, now.sum, now.weighted, now.weighted / now.sum)
            cells[1:] = [number(now.maximum, 0), *map(number, shown)]
        look = "marked" if i == scores_read - 1 else "plain"
        rows.append((f"score {score}", [Cell(text, look) for text in cells]))
    return Table(list(COLUMNS), rows)


def _told(scores: str, scores_read: int, rescale: bool) -> list[str]:
    row, steps = ORDERS[scores], _steps(scores, rescale)
    unscaled = [] if rescale else ["The sums are never rescaled."]
    if not scores_read:
        said = "No score has been read: the maximum is minus infinity, and both sums are 0."
        return [said, *unscaled]
    before, now, score = steps[scores_read - 1], steps[scores_read], row[scores_read - 1]
    if scores_read == 1:
        said = f"The first score is the maximum, and its exponential is e^({score} - {score}) = 1."
    elif now.maximum == before.maximum:
        weight = number(math.exp(score - now.maximum))
        said = f"The maximum stays {number(now.maximum, 0)}, so the sums stay as they are, and "
        said += f"e^({score} - {number(now.maximum, 0)}) = {weight} is added to the sum."
    else:
        old, new = (number(one.maximum, 0) for one in (before, now))
        said = f"The maximum grows from {old} to {new}. "
        factor = number(math.exp(before.maximum - now.maximum))
        said += (
            f"Both sums are multiplied by e^({old} - {new}) = {factor}; then 1 is added to the sum."
            if rescale
            else f"Both sums are too large by e^({new} - {old}), and they stay so."
        )
    told = [said]
    if scores_read == len(row):
        weights = [math.exp(one - max(row)) for one in row]
        right = sum(w * _value(one) for w, one in zip(weights, row, strict=True)) / sum(weights)
        got = now.weighted / now.sum
        same = "the same" if math.isclose(got, right) else "another number"
        told.append(f"The softmax of the whole row gives {number(right)}, {same}.")
    if max(row) > 1000:
        told.append("Without a maximum, e^1001 would be inf in float32 and in float64.")
    return told + unscaled
