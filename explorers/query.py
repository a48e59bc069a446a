"""Notebook 04: one query in the plane, its weights, and the output that they mix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from attention_base.numbers import as_array, number
from explorers.explorer import Explorer, arrow, checkbox, slider, svg
from helpers.pictures import base
from helpers.pictures.checks import as_matrix, as_names
from helpers.pictures.colours import GLOW, SKY
from helpers.pictures.table import Cell, Table, side_by_side, text_html

EDGE = 150  # from the origin to the edge of the plane, in CSS pixels


def explore_query(
    query: Any, keys: Any, values: Any, x: Any, *, words: Sequence[Any] | None = None
) -> Explorer:
    """Turn and stretch one query in the plane; see its attention weights, and the output.

    Parameters
    ----------
    query : (2,)
        The query before it is turned and stretched.
    keys : (T, 2)
        At most 8.
    values : (T, d_v)
        At most 6 channels; what is mixed.
    x : (T, C)
        At most 6 channels; what is mixed instead when "mix x" is ticked.
    words : sequence, (T,)
        Names of the tokens; without: 0, 1, 2, …

    Raises
    ------
    ValueError
        If query and keys are not in the plane, or the shapes do not fit together.
    """
    q = as_array(query, "query").astype(float)
    k, v, x = (
        as_matrix(m, what).astype(float)
        for m, what in ((keys, "keys"), (values, "values"), (x, "x"))
    )
    if q.shape != (2,) or k.shape[1] != 2:
        raise ValueError(
            f"the plane needs a query of shape (2,) and keys of shape (T, 2), got {q.shape} "
            f"and {k.shape}"
        )
    if not len(k) == len(v) == len(x) or len(k) > 8 or max(v.shape[1], x.shape[1]) > 6:
        raise ValueError(
            f"explore_query needs up to 8 tokens and 6 channels, equally many tokens in all: got "
            f"keys {k.shape}, values {v.shape}, x {x.shape}"
        )
    return QueryExplorer(q, k, v, x, as_names(words, len(k), "words", "keys"))


class _Attention(NamedTuple):
    """What one query gives."""

    query: np.ndarray  # (2,)
    scores: np.ndarray  # (T,), divided by √2
    weights: np.ndarray  # (T,)
    out: np.ndarray  # (d_v,) or (C,)


class QueryExplorer(Explorer):
    """The query and the keys as arrows; a table of scores, weights, values and the output.

    Parameters
    ----------
    query : (2,)
    keys : (T, 2)
    values : (T, d_v)
    x : (T, C)
    words : sequence of str, (T,)
    """

    about = "turn one query in the plane; see which keys it fits, and what the output becomes."

    def __init__(
        self,
        query: np.ndarray,
        keys: np.ndarray,
        values: np.ndarray,
        x: np.ndarray,
        words: Sequence[str],
    ) -> None:
        self.query, self.keys, self.values, self.x, self.words = query, keys, values, x, words
        self._scale = EDGE / (1.2 * max(float(np.abs(keys).max()), 1e-3))  # pixels for a 1
        self._axes_and_keys = self._draw_axes_and_keys()
        super().__init__(
            {
                "angle": slider("turned by °", 180, -180, 180),
                "length": slider("length ×", 1.0, 0, 4, 0.1),
                "mix x": checkbox("mix x: average the tokens, not the values"),
            }
        )

    def draw(self, angle: int, length: float, mix_x: bool) -> str:
        """Draw the plane, and beside it the table."""
        found = self._attend(angle, length, mix_x)
        told = f"keys as arrows; the query {_query_in_words(angle, length)}"
        plane = svg(
            self._draw_query(found.query) + self._axes_and_keys,
            told, -EDGE - 2, -EDGE - 2, 2 * EDGE + 4, 2 * EDGE + 22,
        )  # fmt: skip
        return side_by_side([plane, self._table(found, mix_x)])

    def describe(self, angle: int, length: float, mix_x: bool) -> str:
        """Say the weights and the output."""
        found = self._attend(angle, length, mix_x)
        pairs = zip(self.words, found.weights, strict=True)
        weights = ", ".join(f"{word} {number(weight)}" for word, weight in pairs)
        return (
            f"query {_query_in_words(angle, length)}: weights {weights}. "
            f"weights @ {'x' if mix_x else 'values'} = {' '.join(map(number, found.out))}"
        )

    def _attend(self, angle: int, length: float, mix_x: bool) -> _Attention:
        cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        query = length * np.array([[cos, -sin], [sin, cos]]) @ self.query
        scores = self.keys @ query / math.sqrt(2)
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        return _Attention(query, scores, weights, weights @ (self.x if mix_x else self.values))

    def _table(self, found: _Attention, mix_x: bool) -> str:
        mixed, letter = (self.x, "x") if mix_x else (self.values, "v")
        best = found.weights.argmax()
        rows = []
        for i, word in enumerate(self.words):
            cells = [
                Cell(number(found.scores[i]), "marked" if i == best else "plain"),
                Cell(number(found.weights[i]), "best" if i == best else "", bar=found.weights[i]),
                *(Cell(number(value), "plain") for value in mixed[i]),
            ]
            rows.append((word, cells))
        output = [Cell(number(value), "marked") for value in found.out]
        rows.append(("output", [Cell(""), Cell(""), *output]))
        columns = ["q · k / √2", "weight", *(f"{letter}{c}" for c in range(mixed.shape[1]))]
        return Table(columns, rows).html(classes=True)

    def _draw_axes_and_keys(self) -> str:
        """Draw what never moves: the axes, and an arrow with its word for each key."""
        parts = [
            '<g fill="none" stroke="currentColor" opacity=".35">'
            f'<path d="M{-EDGE},0H{EDGE}M0,{-EDGE}V{EDGE}"/>'
            f'<rect x="{-EDGE}" y="{-EDGE}" width="{2 * EDGE}" height="{2 * EDGE}"/></g>'
        ]
        tips = [(float(x), float(-y)) for x, y in self.keys * self._scale]
        taken: list[tuple[float, float, float]] = []  # left, middle and width of each word
        for (x, y), word in sorted(zip(tips, self.words, strict=True), key=lambda tip: -tip[0][1]):
            width = base.text_width(word, 12)
            middle = y + math.copysign(3, y)
            sides = (x + 7, x - 7 - width) if x >= 0 else (x - 7 - width, x + 7)
            free = (s for s in sides if not any(_crosses(tip, s, middle, width) for tip in tips))
            left = min(max(next(free, sides[0]), -EDGE + 3), EDGE - width - 3)
            while any(_overlap(left, middle, width, *other) for other in taken):
                middle -= 2
            taken.append((left, middle, width))
            text = f'<text x="{left:.1f}" y="{middle + 4:.1f}">{text_html(word)}</text>'
            parts.append(arrow(x, y, SKY, 2) + text)
        return "".join(parts)

    def _draw_query(self, query: np.ndarray) -> str:
        """Draw the query as an arrow, with the key to the colours below the plane."""
        x, y = query * self._scale * (1, -1)
        beyond = max(abs(x), abs(y)) / (EDGE - 2)
        if beyond > 1:  # too long for the plane: the arrow ends at its edge
            x, y = x / beyond, y / beyond
        note = " (reaches beyond the edge)" if beyond > 1 else ""
        return (
            f'{arrow(x, y, GLOW, 3)}<text x="{-EDGE}" y="{EDGE + 15}" font-weight="bold">'
            f'<tspan fill="{GLOW}">■</tspan> query{note}'
            f'<tspan fill="{SKY}" dx="12">■</tspan> keys</text>'
        )


def _query_in_words(angle: int, length: float) -> str:
    return f"turned by {angle}°, {number(length, 1)} times as long"


def _overlap(
    left: float, middle: float, width: float, left2: float, middle2: float, width2: float
) -> bool:
    """Whether two words in the plane overlap."""
    return abs(middle - middle2) < 14 and left < left2 + width2 and left2 < left + width


def _crosses(tip: tuple[float, float], left: float, middle: float, width: float) -> bool:
    """Whether the arrow from the origin to this tip runs through a word in the plane."""
    points = ((tip[0] * step / 50, tip[1] * step / 50) for step in range(51))
    return any(left - 2 < x < left + width + 2 and abs(y - middle) < 7 for x, y in points)
