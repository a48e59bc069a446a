"""Pictures that only notebook 04 shows: of weights, of a lookup, and of a head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_base.numbers import as_array, as_whole, texts
from helpers.pictures import base
from helpers.pictures.base import Picture, titled
from helpers.pictures.checks import as_matrix, as_names
from helpers.pictures.colours import BLUE, ORANGE, QUIET
from helpers.pictures.diagrams import (
    Arrow,
    Box,
    Panel,
    Size,
    diagram,
    refuse_bad_shape_sizes,
    shape_text,
)
from helpers.pictures.table import Cell, Table, grid, in_columns, side_by_side, text_html, widest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST = 12  # tokens, and channels of a head, in `why_this_weight`


def why_this_weight(
    query: Any,
    keys: Any,
    values: Any,
    j: int,
    *,
    words: Sequence[Any] | None = None,
    title: str = "",
) -> Picture:
    """Draw how one query comes to its weight for key j, and what that weight carries.

    From left to right: the products of query and key j, channel by channel, and their sum, the
    score; the scores of all keys, divided by √d, and their softmax; the value of j, the
    share of it that goes into the output, and the output.

    Parameters
    ----------
    query : (d,)
        The one who reads.
    keys : (T, d)
    values : (T, d_v)
        d_v may differ from d.
    j : int
        The key to look at, 0 to T - 1.
    words : sequence, (T,)
        Names of the keys; without: 0, 1, 2, …

    Raises
    ------
    ValueError
        If the shapes do not fit together, hold nan or inf, or have more than 12 rows to draw.
    """
    q = as_array(query, "query").astype(float)
    k, v = as_matrix(keys, "keys").astype(float), as_matrix(values, "values").astype(float)
    if q.shape != k.shape[1:]:
        raise ValueError(
            f"query must be one query as long as a key, shape {k.shape[1:]}, got {q.shape}; "
            f"pick one, as in queries[1]"
        )
    if len(k) != len(v):
        raise ValueError(f"each key has one value, got {len(k)} keys and {len(v)} values")
    if max(*k.shape, *v.shape) > MOST:
        raise ValueError(
            f"why_this_weight draws up to {MOST} tokens and channels, got keys {k.shape} and "
            f"values {v.shape}; make a smaller example"
        )
    if not all(np.isfinite(part).all() for part in (q, k, v)):
        raise ValueError("why_this_weight needs finite numbers; there is nan or inf in them")
    j = as_whole(j, "j, the key to look at,", 0, len(k) - 1)
    names = as_names(words, len(k), "words", "keys")
    who = f"“{names[j]}”" if words is not None else f"token {j}"
    d, d_v = len(q), v.shape[1]
    scores = k @ q
    scaled = scores / math.sqrt(d)
    weights = np.exp(scaled - scaled.max())
    weights /= weights.sum()
    score, weight = texts(scores)[j], texts(weights)[j]  # as the table writes them
    products = {"query": q, f"key of {who}": k[j], "product": q * k[j]}
    softmax = {"score": scores, f"÷ √{d}": scaled, "weight": weights}
    shares = {
        f"value of {who}": v[j],
        f"its share, × {weight}": weights[j] * v[j],
        "output": weights @ v,
    }
    steps = [
        Step(
            in_columns("channel", range(d), products),
            f"The products add up to the score: {score}.",
        ),
        Step(
            in_columns("key", names, softmax, marked=[(j, 0), (j, 1), (j, 2)]),
            f"Divided by √{d}, the softmax of all {len(k)} scores: {weight} for {who}.",
        ),
        Step(
            in_columns("channel", range(d_v), shares, marked=[(row, 1) for row in range(d_v)]),
            f"{weight} of the value of {who} goes in. The output: all {len(k)} shares added.",
        ),
    ]
    text_lines = [titled("Why this weight", title)]
    text_lines += [f"\n{step.sentence}\n{step.table.text()}" for step in steps]
    return Picture(
        alt=f"{titled('Why this weight', title)}: the products of query and key of {who} add up to "
        f"the score {score}; the softmax of all scores makes it {weight}; that share of its value "
        "goes into the output.",
        text="\n".join(text_lines),
        draw=lambda: _draw_why(steps, score, weights, j, title),
        html=lambda: side_by_side([step.html() for step in steps], title),
    )


@dataclass(frozen=True)
class Step:
    """One of the three steps of `why_this_weight`: its numbers, and what happens in them."""

    table: Table
    sentence: str

    def html(self) -> str:
        """Put the sentence under the table, no wider than the table."""
        style = "width:0;min-width:100%;margin:2px 0"
        return f'<div>{self.table.html()}<p style="{style}">{text_html(self.sentence)}</p></div>'


def _draw_why(steps: list[Step], score: str, weights: np.ndarray, j: int, title: str) -> Figure:
    """Draw three tables from left to right, with an arrow from each to the next."""
    tables, height, bar = [step.table for step in steps], 28, 44
    # A column is as wide as its numbers, and as the longest word above them.
    widths = [
        [
            widest([*(row[c].text for row in table.cells), *head.split()], 58)
            for c, head in enumerate(table.columns)
        ]
        for table in tables
    ]
    labels = [widest([*table.names, table.corner, "score"], 0, 8) for table in tables]
    spans = [label + sum(ws) for label, ws in zip(labels, widths, strict=True)]
    spans[1] += bar + 8
    gap = min(46, max(26, (base.WIDEST - 2 * base.PAD - sum(spans)) / 2))  # for the arrows
    heads = [
        [
            "\n".join(base.break_lines(head, w - 4))
            for head, w in zip(table.columns, ws, strict=True)
        ]
        for table, ws in zip(tables, widths, strict=True)
    ]
    notes = [
        base.break_lines(step.sentence, span - 4) for step, span in zip(steps, spans, strict=True)
    ]
    width = sum(spans) + 2 * gap + 2 * base.PAD
    lines, y = base.heading(title, width - 2 * base.PAD)
    top = base.PAD + y + 15 * max(1 + head.count("\n") for row in heads for head in row) + 8
    tall = [len(table.rows) for table in tables]
    floor = top + height * max(tall[0] + 1, *tall[1:]) + 16  # the score is one row more
    figure, ax = base.empty_page(width, floor + 16 * max(map(len, notes)) + base.PAD)
    base.write_heading(ax, lines)
    starts = [base.PAD + sum(spans[:i]) + gap * i for i in range(3)]
    lefts = [start + label for start, label in zip(starts, labels, strict=True)]
    rights = [left + sum(ws) for left, ws in zip(lefts, widths, strict=True)]
    for i, table in enumerate(tables):
        corner = {"ha": "right", "color": QUIET, "style": "italic"}
        base.write(ax, lefts[i] - 6, top - 9, table.corner, **corner)
        grid(ax, lefts[i], top, table.cells, widths[i], height, names=table.names)
        for c, head in enumerate(heads[i]):
            x = lefts[i] + sum(widths[i][:c]) + widths[i][c] / 2
            base.write(ax, x, top - 3, head, va="bottom", color=QUIET, linespacing=1.2)
        note = "\n".join(notes[i])
        base.write(ax, starts[i], floor, note, ha="left", va="top", linespacing=1.3)
    # The sum of the products, one row below them.
    last, under = widths[0][-1], top + height * tall[0] + 4
    grid(ax, rights[0] - last, under, [[Cell(score, "marked")]], [last], height)
    base.write(ax, rights[0] - last - 8, under + height / 2, "score", ha="right")
    # The weights as bars, and from their numbers on to the next table.
    rows = top + height * (np.arange(tall[1]) + 0.5)
    colours = [ORANGE if row == j else BLUE for row in range(tall[1])]
    ax.barh(rows, weights * bar, 0.5 * height, left=rights[1] + 5, color=colours)
    end = rights[1] + 9 + weights[j] * bar
    turns = [start - 0.6 * gap for start in starts]
    _draw_elbow(ax, (rights[0] + 4, under + height / 2), (starts[1] - 3, rows[j]), turns[1])
    _draw_elbow(ax, (end, rows[j]), (starts[2] - 3, top + height * tall[2] / 2), turns[2])
    return figure


def _draw_elbow(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], turn: float
) -> None:
    """Draw an arrow that goes level, up or down at x = `turn`, and level again."""
    (a, b), (c, d) = start, end
    ax.plot([a, turn, turn, c - 5], [b, b, d, d], color=ORANGE, linewidth=1.6, zorder=1)
    ax.fill([c - 7, c - 7, c], [d - 4, d + 4, d], color=ORANGE, linewidth=0)


def lookup_diagram() -> Picture:
    """Draw a lookup in a dictionary beside attention, with the same query and the same keys.

    The query is what "it" looks for in "the cat was warm, so it slept". The weights are made up.
    """
    tokens = (
        ("the", "article", 0.03),
        ("cat", "noun", 0.70),
        ("was", "verb", 0.07),
        ("warm", "adjective", 0.20),
    )
    query = Box("query", "“it” looks\nfor a\nnoun", 0, 1.5, 4, data=True)
    exact, soft, arrows = [query], [query], []
    for row, (word, kind, weight) in enumerate(tokens):
        key = Box(f"key {row}", kind, 1, row)
        value = Box(f"value {row}", f"value\nof “{word}”", 2, row, data=True)
        soft += [key, value]
        if kind == "noun":
            exact += [replace(key, text=f"{kind}\n= query", look="accent"), value]
        else:
            exact += [
                replace(key, text=f"{kind}\n≠ query", look="pale"),
                replace(value, look="pale"),
            ]
        thick = {"width": 18 * weight, "accent": True}
        arrows += [
            Arrow("query", key.name),
            Arrow(key.name, value.name, f"{weight:.2f}", **thick),
            Arrow(value.name, "output", **thick),
        ]
    exact.append(Box("output", "value\nof “cat”", 3, 1.5, 4, data=True))
    total = "\n+ ".join(f"{weight:.2f} × “{word}”" for word, _, weight in tokens)
    soft.append(Box("output", total, 3, 1.5, 4))
    path = [("query", "key 1"), ("key 1", "value 1"), ("value 1", "output")]
    heads = ("query", "key", "value", "output")
    return diagram(
        "A dictionary finds one value, attention averages all of them",
        [
            Panel(
                exact,
                [Arrow(start, end, width=3, accent=True) for start, end in path],
                title="Dictionary: one key is equal to the query",
                heads=heads,
            ),
            Panel(soft, arrows, title="Attention: every key gets a weight", heads=heads),
        ],
        alt=(
            "Two panels with the columns query, key, value and output. Dictionary: the query "
            "“noun” is equal to one of four keys, and one arrow leads through this key to the "
            "value of “cat”. Attention: arrows lead from the same query to all four keys, and on "
            "through all four values into one output, as thick as their weights: 0.70 for “cat”, "
            "0.20 for “warm”, 0.07 for “was”, 0.03 for “the”."
        ),
    )


def head_diagram(
    *,
    B: Size | None = "B",
    T: Size = "T",
    C: Size = "C",
    head_size: Size = "head_size",
    value_size: Size | None = None,
) -> Picture:
    """Draw one attention head: queries and keys give the weights, the weights average the values.

    Parameters
    ----------
    B, T, C, head_size : int or str
        The sizes to write into the shapes; `B=None`: without a batch.
    value_size : int or str
        Channels of a value, where it has others than queries and keys.

    Raises
    ------
    ValueError
        If a size is neither a number of at least 1 nor a name, or if the shapes are too long.
    """
    value_size = head_size if value_size is None else value_size
    refuse_bad_shape_sizes(
        B=1 if B is None else B, T=T, C=C, head_size=head_size, value_size=value_size
    )
    batch = [] if B is None else [B]
    tokens, square = shape_text(*batch, T, C), shape_text(*batch, T, T)
    roles, values = shape_text(*batch, T, head_size), shape_text(*batch, T, value_size)
    boxes = [
        Box("x", "x", 0, 1, 3, shape=tokens, data=True),
        Box("query", "@ W_query", 1, 0),
        Box("key", "@ W_key", 1, 1),
        Box("value", "@ W_value", 1, 2),
        Box("scores", f"q @ k.mT\n/ √{head_size}", 2, 0.5, 2),
        Box("mask", "mask", 3, 0.5, 2),
        Box("softmax", "softmax\nof each\nrow", 4, 0.5, 2),
        Box("average", "weights\n@ v", 5, 1, 3, look="accent"),
        Box("out", "out", 6, 1, shape=values, data=True),
    ]
    arrows = [
        Arrow("x", "query"),
        Arrow("x", "key"),
        Arrow("x", "value"),
        Arrow("query", "scores", "q", roles),
        Arrow("key", "scores", "k", roles),
        Arrow("scores", "mask", "scaled\nscores", square),
        Arrow("mask", "softmax", "masked", square),
        Arrow("softmax", "average", "weights", square, width=3, accent=True),
        Arrow("value", "average", "v", values),
        Arrow("average", "out"),
    ]
    return diagram(
        "One head: queries and keys give the weights that average the values",
        [Panel(boxes, arrows, row_height=54, gap=18)],
        alt=(
            f"Boxes and arrows from left to right: x {tokens} is multiplied by W_query, W_key and "
            f"W_value. q and k meet in q @ k.mT / √{head_size}, which gives scaled scores "
            f"{square}; the mask and a softmax of each row follow. The weights {square} are "
            f"marked: they meet v in weights @ v, which gives out {values}."
        ),
    )
