"""Attention weights, how they come about: one row through the softmax, one weight step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from helpers.numbers import as_array, number, texts
from helpers.pictures import base
from helpers.pictures.base import Picture, named
from helpers.pictures.checks import as_mask, as_matrix
from helpers.pictures.colours import BLUE, LINE, ORANGE, QUIET, css, paint
from helpers.pictures.table import (
    MARKED,
    PLAIN,
    grid,
    html_table,
    side_by_side,
    td,
    text_html,
    widest,
)
from helpers.show import align_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def softmax_steps(
    scores: Any, allowed: Any = None, *, labels: Sequence[Any] | None = None, title: str = ""
) -> Picture:
    """Draw one row on its way through the softmax: score, masked, exp, divided by the sum.

    Parameters
    ----------
    scores : (T,), up to 10
        The scores of one query with every key.
    allowed : bool, (T,)
        True = may attend; without: all.
    labels : sequence, (T,)
        The keys; without: 0, 1, 2, …

    Raises
    ------
    ValueError, TypeError
        If the shapes do not fit, a score is not finite, or nothing is allowed.
    """
    row = as_array(scores, "scores").astype(float)
    if row.ndim != 1 or not 1 <= len(row) <= 10:
        raise ValueError(
            f"softmax_steps draws one row of 1 to 10 scores, got shape {row.shape}; pick a row, "
            f"as in scores[3]"
        )
    if not np.isfinite(row).all():
        raise ValueError(
            "softmax_steps needs finite scores; give the mask as allowed=, not as -inf"
        )
    may = as_mask(allowed, row.shape, "allowed")
    if not may.any():
        raise ValueError("allowed is False everywhere: exp gives only zeros, and 0/0 is nan")
    keys = [str(k) for k in (range(len(row)) if labels is None else labels)]
    if len(keys) != len(row):
        raise ValueError(
            f"labels needs one label for each of the {len(row)} scores, got {len(keys)}"
        )
    masked = np.where(may, row, -np.inf)
    top = masked.max()
    grown = np.exp(masked - top)
    weights = grown / grown.sum()
    reach = max(float(np.abs(row).max()), 1e-9)
    colours = [paint(part, -reach, reach, 0.0) for part in (row, masked)]
    colours += [paint(part, 0, 1, None) for part in (grown, weights)]
    names = ["score", "masked", f"exp(score - {_signed(top)})", "divided by the sum"]
    cells = texts(np.stack([row, masked, grown, weights]))
    sums = ["", "", f"sum {number(grown.sum())}", f"sum {number(weights.sum())}"]

    def tell() -> str:
        width = max(map(len, names))
        told = align_columns(
            [
                [n.ljust(width), *ws, s]
                for n, ws, s in zip(["", *names], [keys, *cells], ["", *sums], strict=True)
            ]
        )
        return "\n".join([named(title, "One row through the softmax"), *told])

    def draw() -> Figure:
        n = len(row)
        left = base.PAD + max(map(base.text_width, names)) + 10
        longest = max(map(base.text_width, keys))
        room = (base.WIDEST - left - 80) / n
        step = (max(widest(cells, 54), min(longest + 12, room)), 34)
        size = base.BODY * min(1, (step[0] - 6) / longest) if longest else base.BODY
        width = left + n * step[0] + 74
        head, y = base.heading(title, width - 2 * base.PAD)
        top_, gap, bars = base.PAD + y + 18, 12, 84
        figure, ax = base.sheet(width, top_ + 4 * step[1] + 3 * gap + bars + 32)
        base.write_heading(ax, head)
        for r, words in enumerate(cells):
            y = top_ + r * (step[1] + gap)
            grid(ax, left, y, [words], step, colours=[colours[r]])
            base.write(ax, left - 8, y + step[1] / 2, names[r], ha="right")
            base.write(ax, left + n * step[0] + 8, y + step[1] / 2, sums[r], ha="left", color=QUIET)
        floor = top_ + 4 * step[1] + 3 * gap + bars + 6
        ax.plot([left, left + n * step[0]], [floor, floor], color=LINE, linewidth=1)
        spots = left + (np.arange(n) + 0.5) * step[0]
        ax.bar(spots, -weights * bars, 0.55 * step[0], bottom=floor, color=BLUE)
        base.write(ax, left - 8, floor - bars / 2, "as bars", ha="right", color=QUIET)
        for spot, key in zip(spots, keys, strict=True):
            for height in (top_ - 9, floor + 11):
                base.write(ax, spot, height, key, size=size, color=QUIET)
        return figure

    def html() -> str:
        rows = []
        for name, words, paints, total in zip(names, cells, colours, sums, strict=True):
            shown = [td(w, css(colour)) for w, colour in zip(words, paints, strict=True)]
            rows.append((name, [*shown, td(total)]))
        return html_table(title, [*keys, ""], rows, over="key (who is read)")

    best = int(weights.argmax())
    most = f"{number(weights[best])} on {keys[best]}"
    alt = (
        f"{named(title, 'One row through the softmax')}: scores, masked scores, their exp, and "
        f"the weights as numbers and bars; the largest weight is {most}."
    )
    return Picture(alt=alt, tell=tell, draw=draw, html=html)


def _signed(value: float) -> str:
    text = number(value)
    return f"({text})" if text.startswith("-") else text


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
    score; the scores of all keys, divided by the root of d, and their softmax; the value of j, the
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
    if isinstance(j, bool) or not isinstance(j, int) or not 0 <= j < len(k):
        raise ValueError(f"j must be a key from 0 to {len(k) - 1}, got {j!r}")
    names = [str(word) for word in (range(len(k)) if words is None else words)]
    if len(names) != len(k):
        raise ValueError(f"words needs one word for each of the {len(k)} keys, got {len(names)}")
    who = f"“{names[j]}”" if words is not None else f"token {j}"
    d, d_v = len(q), v.shape[1]
    scores = k @ q
    scaled = scores / math.sqrt(d)
    weights = np.exp(scaled - scaled.max())
    weights /= weights.sum()
    score, weight = number(scores[j]), number(weights[j])
    channels, outs = [*map(str, range(d))], [*map(str, range(d_v))]
    parts = (
        Part(
            "channel",
            channels,
            {"query": q, f"key of {who}": k[j], "product": q * k[j]},
            [],
            f"The products add up to the score: {score}.",
        ),
        Part(
            "key",
            names,
            {"score": scores, f"÷ √{d}": scaled, "weight": weights},
            [(j, 0), (j, 1), (j, 2)],
            f"Divided by √{d}, the softmax of all {len(k)} scores: {weight} for {who}.",
        ),
        Part(
            "channel",
            outs,
            {
                f"value of {who}": v[j],
                f"its share, × {weight}": weights[j] * v[j],
                "output": weights @ v,
            },
            [(r, 1) for r in range(d_v)],
            f"{weight} of the value of {who} goes in. The output: all {len(k)} shares added.",
        ),
    )

    def tell() -> str:
        told = [named(title, "Why this weight")]
        for part in parts:
            rows = [[r, *ws] for r, ws in zip(part.rows, part.cells, strict=True)]
            told += ["", part.says, *align_columns([[part.corner, *part.columns], *rows])]
        return "\n".join(told)

    def html() -> str:
        tables = []
        for part in parts:
            body = [
                (
                    row,
                    [td(w, MARKED if (r, c) in part.marked else PLAIN) for c, w in enumerate(ws)],
                )
                for r, (row, ws) in enumerate(zip(part.rows, part.cells, strict=True))
            ]
            table = html_table("", [*part.columns], body, corner=part.corner)
            says = f'<p style="width:0;min-width:100%;margin:2px 0">{text_html(part.says)}</p>'
            tables.append(f"<div>{table}{says}</div>")
        return side_by_side(tables, title)

    alt = (
        f"{named(title, 'Why this weight')}: the products of query and key of {who} add up to the "
        f"score {score}; the softmax of all scores makes it {weight}; that share of its value goes "
        f"into the output."
    )
    return Picture(
        alt=alt, tell=tell, html=html, draw=lambda: _draw_why(title, parts, weights, j, score)
    )


@dataclass(frozen=True)
class Part:
    """One of three tables: a header line of columns, a row for each channel or key."""

    corner: str  # what the rows are
    rows: list[str]
    columns: dict[str, np.ndarray]
    marked: list[tuple[int, int]]
    says: str

    @property
    def cells(self) -> list[list[str]]:
        """The numbers as text, row by row; each column has as many digits as it needs."""
        return [list(r) for r in zip(*map(texts, self.columns.values()), strict=True)]


def _draw_why(title: str, parts: Sequence[Part], weights: np.ndarray, j: int, score: str) -> Figure:
    """Draw three tables from left to right, with an arrow from each to the next."""
    high, bar = 28, 44
    # A column is as wide as its numbers, and as the longest word above them.
    wide = [
        [
            widest([[*words, *head.split()]], 58)
            for head, words in zip(part.columns, zip(*part.cells, strict=True), strict=True)
        ]
        for part in parts
    ]
    labels = [max(map(base.text_width, [*part.rows, part.corner, "score"])) + 8 for part in parts]
    spans = [label + sum(w) for label, w in zip(labels, wide, strict=True)]
    spans[1] += bar + 8
    gap = min(46, max(26, (base.WIDEST - 2 * base.PAD - sum(spans)) / 2))  # for the arrows
    width = sum(spans) + 2 * gap + 2 * base.PAD
    heads = [
        ["\n".join(base.break_lines(head, w - 4)) for head, w in zip(part.columns, ws, strict=True)]
        for part, ws in zip(parts, wide, strict=True)
    ]
    below = [base.break_lines(part.says, span - 4) for part, span in zip(parts, spans, strict=True)]
    title_, y = base.heading(title, width - 2 * base.PAD)
    top = base.PAD + y + 15 * max(1 + head.count("\n") for line in heads for head in line) + 8
    tall = [len(part.rows) for part in parts]
    floor = top + high * max(tall[0] + 1, *tall[1:]) + 16  # the score is one row more
    figure, ax = base.sheet(width, floor + 16 * max(map(len, below)) + base.PAD)
    base.write_heading(ax, title_)
    lefts = [base.PAD + sum(spans[:i]) + gap * i for i in range(3)]
    rights = [left + label + sum(w) for left, label, w in zip(lefts, labels, wide, strict=True)]
    for i, part in enumerate(parts):
        x = lefts[i] + labels[i]
        base.write(ax, x - 6, top - 9, part.corner, ha="right", color=QUIET, style="italic")
        words = list(zip(*part.cells, strict=True))
        framed = {column for _, column in part.marked}
        for c in sorted(range(len(words)), key=framed.__contains__):  # frames lie on top
            spot, step = x + sum(wide[i][:c]), (wide[i][c], high)
            grid(
                ax, spot, top, [[word] for word in words[c]], step,
                rows=part.rows if c == 0 else (),
                marked=[(row, 0) for row, column in part.marked if column == c],
            )  # fmt: skip
            base.write(
                ax, spot + step[0] / 2, top - 3, heads[i][c], va="bottom", color=QUIET,
                linespacing=1.2,
            )  # fmt: skip
        note = "\n".join(below[i])
        base.write(ax, lefts[i], floor, note, ha="left", va="top", linespacing=1.3)
    last, under = wide[0][-1], top + high * tall[0] + 4
    grid(ax, rights[0] - last, under, [[score]], (last, high), marked=[(0, 0)])
    base.write(ax, rights[0] - last - 8, under + high / 2, "score", ha="right")
    rows = top + high * (np.arange(tall[1]) + 0.5)
    tints = [ORANGE if r == j else BLUE for r in range(tall[1])]
    ax.barh(rows, weights * bar, 0.5 * high, left=rights[1] + 5, color=tints)
    _elbow(ax, (rights[0] + 4, under + high / 2), (lefts[1] - 3, rows[j]), lefts[1] - 0.6 * gap)
    end = rights[1] + 9 + weights[j] * bar
    _elbow(ax, (end, rows[j]), (lefts[2] - 3, top + high * tall[2] / 2), lefts[2] - 0.6 * gap)
    return figure


def _elbow(ax: Axes, start: tuple[float, float], end: tuple[float, float], turn: float) -> None:
    """Draw an arrow that goes level, up or down at x = `turn`, and level again."""
    (a, b), (c, d) = start, end
    ax.plot([a, turn, turn, c - 5], [b, b, d, d], color=ORANGE, linewidth=1.6, zorder=1)
    ax.fill([c - 7, c - 7, c], [d - 4, d + 4, d], color=ORANGE, linewidth=0)
