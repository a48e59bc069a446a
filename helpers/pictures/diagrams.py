"""Diagrams of what happens inside heads: how one weight comes about, how channels are cut.

Each function checks its input, then returns a `Picture`: drawn, as an HTML table, and in words.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from helpers.numbers import as_array, number, texts
from helpers.pictures import base as pic
from helpers.pictures.base import Picture
from helpers.pictures.drawings import MARKED, PLAIN, grid, named, widest
from helpers.pictures.matrix import as_matrix, css
from helpers.show import align_columns

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
                    [
                        pic.td(w, MARKED if (r, c) in part.marked else PLAIN)
                        for c, w in enumerate(ws)
                    ],
                )
                for r, (row, ws) in enumerate(zip(part.rows, part.cells, strict=True))
            ]
            table = pic.html_table("", [*part.columns], body, corner=part.corner)
            says = f'<p style="width:0;min-width:100%;margin:2px 0">{pic.text_html(part.says)}</p>'
            tables.append(f"<div>{table}{says}</div>")
        return pic.side_by_side(tables, title)

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
    labels = [max(map(pic.text_width, [*part.rows, part.corner, "score"])) + 8 for part in parts]
    spans = [label + sum(w) for label, w in zip(labels, wide, strict=True)]
    spans[1] += bar + 8
    gap = min(46, max(26, (pic.WIDEST - 2 * pic.PAD - sum(spans)) / 2))  # for the arrows
    width = sum(spans) + 2 * gap + 2 * pic.PAD
    heads = [
        ["\n".join(pic.wrap(head, w - 4)) for head, w in zip(part.columns, ws, strict=True)]
        for part, ws in zip(parts, wide, strict=True)
    ]
    below = [pic.wrap(part.says, span - 4) for part, span in zip(parts, spans, strict=True)]
    title_, y = pic.heading(title, width - 2 * pic.PAD)
    top = pic.PAD + y + 15 * max(1 + head.count("\n") for line in heads for head in line) + 8
    tall = [len(part.rows) for part in parts]
    floor = top + high * max(tall[0] + 1, *tall[1:]) + 16  # the score is one row more
    figure, ax = pic.sheet(width, floor + 16 * max(map(len, below)) + pic.PAD)
    pic.write_heading(ax, title_)
    lefts = [pic.PAD + sum(spans[:i]) + gap * i for i in range(3)]
    rights = [left + label + sum(w) for left, label, w in zip(lefts, labels, wide, strict=True)]
    for i, part in enumerate(parts):
        x = lefts[i] + labels[i]
        pic.write(ax, x - 6, top - 9, part.corner, ha="right", color=pic.QUIET, style="italic")
        words = list(zip(*part.cells, strict=True))
        framed = {column for _, column in part.marked}
        for c in sorted(range(len(words)), key=framed.__contains__):  # frames lie on top
            spot, step = x + sum(wide[i][:c]), (wide[i][c], high)
            grid(
                ax, spot, top, [[word] for word in words[c]], step,
                rows=part.rows if c == 0 else (),
                marked=[(row, 0) for row, column in part.marked if column == c],
            )  # fmt: skip
            pic.write(
                ax, spot + step[0] / 2, top - 3, heads[i][c], va="bottom", color=pic.QUIET,
                linespacing=1.2,
            )  # fmt: skip
        note = "\n".join(below[i])
        pic.write(ax, lefts[i], floor, note, ha="left", va="top", linespacing=1.3)
    last, under = wide[0][-1], top + high * tall[0] + 4
    grid(ax, rights[0] - last, under, [[score]], (last, high), marked=[(0, 0)])
    pic.write(ax, rights[0] - last - 8, under + high / 2, "score", ha="right")
    rows = top + high * (np.arange(tall[1]) + 0.5)
    tints = [pic.ORANGE if r == j else pic.BLUE for r in range(tall[1])]
    ax.barh(rows, weights * bar, 0.5 * high, left=rights[1] + 5, color=tints)
    _elbow(ax, (rights[0] + 4, under + high / 2), (lefts[1] - 3, rows[j]), lefts[1] - 0.6 * gap)
    end = rights[1] + 9 + weights[j] * bar
    _elbow(ax, (end, rows[j]), (lefts[2] - 3, top + high * tall[2] / 2), lefts[2] - 0.6 * gap)
    return figure


def _elbow(ax: Axes, start: tuple[float, float], end: tuple[float, float], turn: float) -> None:
    """Draw an arrow that goes level, up or down at x = `turn`, and level again."""
    (a, b), (c, d) = start, end
    ax.plot([a, turn, turn, c - 5], [b, b, d, d], color=pic.ORANGE, linewidth=1.6, zorder=1)
    ax.fill([c - 7, c - 7, c], [d - 4, d + 4, d], color=pic.ORANGE, linewidth=0)


# --- The ribbon -------------------------------------------------------------------------------

# One pale colour a token, black letters on all of them.
PAPERS = ("#a9cbe8", "#f8c89a", "#b5dfc4", "#e6b8d8", "#f3e08d", "#c6c1ea", "#d8d3cb", "#f2aeb0")


def ribbon(T: int, n_head: int, head_size: int, *, title: str = "") -> Picture:
    """Draw the channels of T tokens as a ribbon of cells, and two ways to cut it into heads.

    A cell says token.channel, and each token has its colour. Split right: view as (T, n_head,
    head_size), then transpose. Split by view alone: the ribbon is poured into (n_head, T,
    head_size) in reading order.

    Parameters
    ----------
    T, n_head, head_size : int
        At least 1 each; up to 8 tokens, 8 heads, 16 channels, and 64 cells in all.

    Raises
    ------
    ValueError
        If a size is out of range.
    """
    for name, size in (("T", T), ("n_head", n_head), ("head_size", head_size)):
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {size!r}")
    C = n_head * head_size
    if max(T, n_head) > 8 or C > 16 or T * C > 64:
        raise ValueError(
            f"ribbon draws up to 8 tokens, 8 heads, 16 channels and 64 cells, got {T} tokens of "
            f"{n_head} x {head_size} channels: {T * C} cells"
        )
    token, channel = np.divmod(np.arange(T * C).reshape(T, C), C)
    flat = np.arange(T * C).reshape(T, C)
    right = flat.reshape(T, n_head, head_size).transpose(1, 0, 2)
    wrong = flat.reshape(n_head, T, head_size)
    cell = [f"{t}.{c}" for t, c in zip(token.ravel(), channel.ravel(), strict=True)]
    ways = {"split right: view, then transpose": right, "split by view alone": wrong}

    def words(part: np.ndarray) -> list[list[str]]:
        return [[cell[i] for i in row] for row in part]

    def papers(part: np.ndarray) -> list[list[tuple[float, ...]]]:
        return [[_rgb(PAPERS[i // C]) for i in row] for row in part]

    held = sorted({int(i) // C for i in wrong[0].ravel()})
    which = f"token{'s' * (len(held) > 1)} {', '.join(map(str, held))}"

    def tell() -> str:
        told = [named(title, "Channels as a ribbon"), "each cell is token.channel"]
        told += ["", f"as they lie, (T, C) = ({T}, {C})", *align_columns(words(flat))]
        for way, heads in ways.items():
            told += ["", f"{way}, (n_head, T, head_size) = ({n_head}, {T}, {head_size})"]
            for h, part in enumerate(heads):
                told += [f"head {h}", *align_columns(words(part))]
        return "\n".join(told)

    def draw() -> Figure:
        return _draw_ribbon(title, flat, ways, words, papers)

    def html() -> str:
        def table(name: str, part: np.ndarray) -> str:
            body = [
                (str(r), [pic.td(w, css(p)) for w, p in zip(ws, ps, strict=True)])
                for r, (ws, ps) in enumerate(zip(words(part), papers(part), strict=True))
            ]
            return pic.html_table(name, [*map(str, range(part.shape[1]))], body, corner="row")

        parts = [pic.side_by_side([table(f"as they lie, ({T}, {C})", flat)], title)]
        for way, heads in ways.items():
            parts.append(
                pic.side_by_side([table(f"head {h}", part) for h, part in enumerate(heads)], way)
            )
        return "".join(parts)

    alt = (
        f"{named(title, 'Channels as a ribbon')}. {T} tokens of {C} channels as coloured cells; "
        f"split right, head 0 holds {head_size} channels of every token; split by view alone, it "
        f"holds channels of {which} only."
    )
    return Picture(alt=alt, tell=tell, draw=draw, html=html)


def _rgb(code: str) -> tuple[float, ...]:
    return tuple(int(code[i : i + 2], 16) / 255 for i in (1, 3, 5))


def _draw_ribbon(
    title: str, flat: np.ndarray, ways: dict[str, np.ndarray], words: Any, papers: Any
) -> Figure:
    """Draw the ribbon with its cuts marked above and below, and under it the heads of each way."""
    T, C = flat.shape
    n_head, _, head_size = ways[next(iter(ways))].shape
    step = (max(34, pic.text_width(f"{T - 1}.{C - 1}") + 12), 28)
    per_line = max(1, int((pic.WIDEST - 2 * pic.PAD) / step[0] / C))  # whole tokens
    strips = [flat[t : t + per_line].reshape(1, -1) for t in range(0, T, per_line)]
    gap, names = 14, [f"head {h}" for h in range(n_head)]
    head_wide = max(head_size * step[0], pic.text_width(names[-1]) + 4)
    way_wide = 18 + n_head * (head_wide + gap)
    title_wide = max(pic.text_width(way, 12, True) for way in ways)
    way_wide = max(way_wide, title_wide)
    abreast = 2 * way_wide + 30 <= pic.WIDEST - 2 * pic.PAD
    width = max(strips[0].size * step[0], (2 * way_wide + 30) if abreast else way_wide)
    width += 2 * pic.PAD
    title_, y = pic.heading(title, width - 2 * pic.PAD)
    top = pic.PAD + y + 6
    strip_high = 20 + step[1] + 30
    way_high = 50 + T * step[1] + 20
    below = top + 18 + strip_high * len(strips) + 6
    figure, ax = pic.sheet(width, below + way_high * (1 if abreast else 2) - 16 + pic.PAD)
    pic.write_heading(ax, title_)
    tints = (pic.BLUE, pic.ORANGE)
    pic.write(
        ax, pic.PAD, top, f"{T} tokens of {C} channels, as they lie in memory", ha="left",
        color=pic.QUIET,
    )  # fmt: skip
    owner = {way: np.empty(T * C, int) for way in ways}
    for way, heads in ways.items():
        for h, part in enumerate(heads):
            owner[way][part.ravel()] = h
    for i, strip in enumerate(strips):
        y = top + 18 + i * strip_high + 20
        grid(ax, pic.PAD, y, words(strip), step, colours=papers(strip))
        for way, tint, side in zip(ways, tints, (-1, 1), strict=True):
            edge = y - 5 if side < 0 else y + step[1] + 5
            of = owner[way][strip.ravel()]
            cuts = [0, *(np.flatnonzero(np.diff(of)) + 1).tolist(), len(of)]
            for a, b in itertools.pairwise(cuts):
                x0, x1 = pic.PAD + a * step[0] + 3, pic.PAD + b * step[0] - 3
                ax.plot([x0, x1], [edge, edge], color=tint, linewidth=2)
                name = f"head {of[a]}"
                if pic.text_width(name, 10) > x1 - x0:
                    name = str(of[a])
                pic.write(ax, (x0 + x1) / 2, edge + 9 * side, name, size=10, color=tint)
    for i, ((way, heads), tint) in enumerate(zip(ways.items(), tints, strict=True)):
        x = pic.PAD + i * abreast * (way_wide + 30)
        y = below + i * (not abreast) * way_high
        pic.write(ax, x, y + 8, way, size=12, weight="bold", ha="left", color=tint)
        for h, part in enumerate(heads):
            left = x + 18 + h * (head_wide + gap)
            rows = [*map(str, range(T))] if h == 0 else ()
            grid(ax, left, y + 46, words(part), step, colours=papers(part), rows=rows)
            pic.write(ax, left + head_size * step[0] / 2, y + 35, names[h], color=tint)
    return figure
