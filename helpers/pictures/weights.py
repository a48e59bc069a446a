"""Attention weights: how they come about, from score to softmax, and the sum that they make."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_base.numbers import as_array, as_real, as_whole, bracketed, described, number, texts
from helpers.pictures import base
from helpers.pictures.base import Picture, titled
from helpers.pictures.checks import as_mask, as_matrix, as_names
from helpers.pictures.colours import BLUE, INK, LINE, ORANGE, PALE, QUIET, fills, paint
from helpers.pictures.table import Cell, Table, grid, plain_cells, side_by_side, text_html, widest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def score_arrows(query: Any, keys: Mapping[str, Any], *, title: str = "") -> Picture:
    """Draw a query and several keys as arrows, each key with its score, the dot product.

    Parameters
    ----------
    query : (2,)
        The same in every panel.
    keys : dict of name -> (2,), one to six
        One panel per key; the name says how it lies to the query.

    Raises
    ------
    ValueError
        If a vector does not have two channels or is not finite, or there are no keys or too many.
    """
    if not isinstance(keys, Mapping):
        raise TypeError(f"keys must be a dict of name -> (2,), got {described(keys)}")
    if not 1 <= len(keys) <= 6:
        raise ValueError(f"score_arrows draws 1 to 6 keys, got {len(keys)}")
    q = _as_arrow(query, "query")
    ks = np.stack([_as_arrow(key, f"the key {name!r}") for name, key in keys.items()])  # (n, 2)
    columns = {"channel 0": ks[:, 0], "channel 1": ks[:, 1], "score": ks @ q}
    table = _table("key", keys, columns, marked=[(i, 2) for i in range(len(ks))])
    scores = texts(ks @ q)
    at = f"({', '.join(texts(q))})"
    named = [f"{score} {name}" for name, score in zip(keys, scores, strict=True)]
    return Picture(
        alt=f"{titled('Arrows', title)}: the query {at} and one key in each of "
        f"{len(keys)} panels. "
        f"Scores: {', '.join(named)}.",
        text=f"{titled('Arrows', title)}\nquery: {at}\n{table.text()}",
        draw=lambda: _draw_arrows(q, ks, list(keys), scores, title),
        html=lambda: side_by_side([f"<p>query: {at}</p>{table.html()}"], title),
    )


def _as_arrow(vector: Any, what: str) -> np.ndarray:
    values = as_array(vector, what).astype(float)
    if values.shape != (2,) or not np.isfinite(values).all():
        raise ValueError(f"{what} must be two finite numbers, got {values.tolist()}")
    return values


def _draw_arrows(
    query: np.ndarray, keys: np.ndarray, names: list[str], scores: list[str], title: str
) -> Figure:
    """Draw one panel per key, all in one scale: the query pale and wide, the key on top of it."""
    gap = 14
    side = min(180, (base.WIDEST - 2 * base.PAD + gap) / len(keys) - gap)
    width = max(2 * base.PAD + len(keys) * (side + gap) - gap, 370)
    heads = [base.break_lines(name, side) for name in names]
    lines, y = base.heading(title, width - 2 * base.PAD)
    top = base.PAD + y + 16 * max(map(len, heads)) + 8
    vectors = np.stack([query, *keys])
    low, high = np.minimum(vectors.min(0), 0), np.maximum(vectors.max(0), 0)
    unit = (side - 28) / max(float((high - low).max()), 1e-9)  # pixels
    tall = max(40, (high - low)[1] * unit + 28)
    figure, ax = base.empty_page(width, top + tall + 70)
    base.write_heading(ax, lines)
    for i, (head, key, score) in enumerate(zip(heads, keys, scores, strict=True)):
        left = base.PAD + i * (side + gap)
        middle = np.array([left + side / 2, top + tall / 2])
        start = middle - [1, -1] * (low + high) / 2 * unit  # y points down on the page
        base.write(ax, middle[0], top - 8, "\n".join(head), va="bottom", linespacing=1.25)
        _draw_vector(ax, start, start + [1, -1] * query * unit, LINE, 8)
        _draw_vector(ax, start, start + [1, -1] * key * unit, BLUE, 2.2)
        ax.plot(*start, "o", color=INK, markersize=6, zorder=3)
        text = f"score {score}"
        base.write(ax, middle[0], top + tall + 16, text, size=12, weight="bold", color=ORANGE)
    note = "wide, grey: the query · thin, blue: the key"
    base.write(ax, base.PAD, top + tall + 50, note, ha="left", color=QUIET)
    return figure


def _draw_vector(
    ax: Axes, start: np.ndarray, end: np.ndarray, color: str, linewidth: float
) -> None:
    style = f"-|>,head_length={0.25 + 0.05 * linewidth},head_width={0.12 + 0.03 * linewidth}"
    ax.annotate(
        "", end, start,
        arrowprops={
            "arrowstyle": style, "color": color, "linewidth": linewidth, "shrinkA": 0,
            "shrinkB": 0, "mutation_scale": 20, "joinstyle": "miter",
        },
    )  # fmt: skip


KEY_AT = 40  # degrees from the query to the key while both stand at position 0


def turned_arrows(pairs: Any, *, degrees: float, title: str = "") -> Picture:
    """Draw a query and a key as arrows that are turned by their positions, for some pairs of them.

    At position 0 the query stands at 0° and the key at 40°.

    Parameters
    ----------
    pairs : (n, 2), one to four
        The positions of the query and of the key, at least 0; one panel per pair.
    degrees : float
        The angle by which one position turns an arrow.

    Raises
    ------
    ValueError
        If pairs is not (n, 2), a position is negative, nan or inf, or degrees is not finite.
    """
    places, degrees = as_matrix(pairs, "pairs").astype(float), as_real(degrees, "degrees")
    if places.shape[1] != 2 or len(places) > 4:
        raise ValueError(
            f"turned_arrows draws 1 to 4 pairs (query, key) of positions, got pairs {places.shape}"
        )
    if not (np.isfinite(places) & (places >= 0)).all():
        raise ValueError(
            f"positions count from 0, so pairs are finite and at least 0; got {places.tolist()}"
        )
    angles = degrees * places + (0, KEY_AT)  # (n, 2) degrees
    between = 180 - np.abs(180 - (angles[:, 1] - angles[:, 0]) % 360)  # (n,)
    columns = {"query at": places[:, 0], "key at": places[:, 1]}
    columns |= {"query's angle": angles[:, 0] % 360, "key's angle": angles[:, 1] % 360}
    columns["angle between"] = between
    marked = [(i, len(columns) - 1) for i in range(len(places))]
    table = _table("panel", range(len(places)), columns, marked)
    names = [f"query at {i:g}, key at {j:g}" for i, j in places]
    told = [f"{angle}°" for angle in texts(between, 1)]
    rule = (
        f"At position 0, the query stands at 0° and the key at {KEY_AT}°; each position turns them "
        f"by {texts(np.array(degrees), 1)}°."
    )
    of_each = "; ".join(f"{angle} with {name}" for name, angle in zip(names, told, strict=True))
    return Picture(
        alt=f"{titled('Turned arrows', title)}: a query and a key in each of {len(places)} panels, "
        f"turned by their positions. Angle between them: {of_each}.",
        text=f"{titled('Turned arrows', title)}\n{rule}\n{table.text()}",
        draw=lambda: _draw_turned(np.radians(angles), names, told, rule, title),
        html=lambda: side_by_side([f"<p>{rule}</p>{table.html()}"], title),
    )


def _draw_turned(
    angles: np.ndarray, names: list[str], told: list[str], rule: str, title: str
) -> Figure:
    """Draw one circle per pair of angles (n, 2), and outside of it the arc from arrow to arrow."""
    from matplotlib.patches import Circle

    radius, side = 58, 205
    notes = ["wide, grey: the query · thin, blue: the key · orange: the angle between them", rule]
    least = max(base.text_width(note) for note in notes)
    width = 2 * base.PAD + max(len(names) * side, least)
    lines, y = base.heading(title, width - 2 * base.PAD)
    top = base.PAD + y
    figure, ax = base.empty_page(width, top + 2 * radius + 124)
    base.write_heading(ax, lines)
    for i, ((query, key), name, text) in enumerate(zip(angles, names, told, strict=True)):
        middle = np.array([base.PAD + (i + 0.5) * side, top + radius + 52])

        def place(angle: Any, far: Any, middle: np.ndarray = middle) -> np.ndarray:
            return middle + np.stack([far * np.cos(angle), -far * np.sin(angle)], -1)

        base.write(ax, middle[0], top + 8, name)
        ax.add_patch(Circle(middle, radius, fill=False, edgecolor=PALE, linewidth=1))
        turn = (key - query + np.pi) % (2 * np.pi) - np.pi  # the short way
        arc = place(np.linspace(query, query + turn, 60), radius + 6)
        ax.plot(*arc.T, color=ORANGE, linewidth=2.5)
        half = query + turn / 2
        room = base.text_width(text, 12, bold=True) / 2 * abs(np.cos(half))
        x, y = place(half, radius + 14 + room + 4 * abs(np.sin(half)))
        base.write(ax, x, y, text, size=12, weight="bold", color=ORANGE)
        _draw_vector(ax, middle, place(query, radius), LINE, 8)
        _draw_vector(ax, middle, place(key, radius), BLUE, 2.2)
        ax.plot(*middle, "o", color=INK, markersize=6, zorder=3)
    for n, note in enumerate(notes):
        low = top + 2 * radius + 90 + 18 * n
        base.write(ax, base.PAD, low, note, ha="left", color=QUIET)
    return figure


MOST_ARROWS = 8  # tokens in `weighted_sum`


def weighted_sum(
    weights: Any,
    tokens: Any,
    labels: Sequence[Any] | None = None,
    *,
    channels: Sequence[str] = ("channel 0", "channel 1"),
    title: str = "",
) -> Picture:
    """Draw one row of weights times the tokens: each token shortened by its weight, then added.

    Parameters
    ----------
    weights : (T,), up to 8
        One row of weights.
    tokens : (T, 2)
        Each is an arrow in the plane.
    labels : sequence, (T,)
        Names of the tokens; without: 0, 1, 2, …
    channels : two texts
        Names of the axes, to the right and upwards.

    Raises
    ------
    ValueError
        If the shapes do not fit, there are more than 8 tokens, or a number is not finite.
    """
    w, x = as_array(weights, "weights").astype(float), as_matrix(tokens, "tokens").astype(float)
    if x.shape[1] != 2 or w.shape != x.shape[:1] or len(w) > MOST_ARROWS:
        raise ValueError(
            f"weighted_sum draws weights (T,) and tokens (T, 2) with up to {MOST_ARROWS} tokens, "
            f"got {w.shape} and {x.shape}; pick one row and one sequence, as in w[5] and x[0]"
        )
    if not (np.isfinite(w).all() and np.isfinite(x).all()):
        raise ValueError("weighted_sum needs finite numbers; there is nan or inf in them")
    names = as_names(labels, len(w), "labels", "tokens")
    across, up = as_names(channels, 2, "channels", "axes")
    shares = w[:, None] * x  # (T, 2)
    columns = {"weight": w, across: x[:, 0], up: x[:, 1]}
    columns |= {f"weight × {across}": shares[:, 0], f"weight × {up}": shares[:, 1]}
    table = _table("token", names, columns)
    ends = texts(shares.sum(0))
    last = [Cell(""), Cell(""), Cell("added:"), *(Cell(end, "marked") for end in ends)]
    table = replace(table, rows=[*table.rows, ("output", last)])
    return Picture(
        alt=f"{titled('A weighted sum as arrows', title)}: {len(w)} tokens as arrows "
        f"({across} to the right, {up} upwards), each shortened by its weight and put behind the "
        f"one before. The last tip is the output, ({', '.join(ends)}).",
        text=f"{titled('Weighted sum', title)}\n{table.text()}",
        draw=lambda: _draw_sum(table, x, shares, (across, up), title),
        html=lambda: side_by_side([table.html()], title),
    )


def _draw_sum(
    table: Table, tokens: np.ndarray, shares: np.ndarray, channels: tuple[str, str], title: str
) -> Figure:
    """Draw the table, and beside it the plane: tokens pale, shares blue, their sum orange."""
    height, side = 28, 250
    label = widest([*table.names, table.corner], 0, 8)
    heads = ["\n".join(base.break_lines(head, 62)) for head in table.columns]
    words = zip(*([cell.text for cell in row] for row in table.cells), strict=True)
    pairs = zip(words, heads, strict=True)
    widths = [widest([*column, *head.split("\n")], 54) for column, head in pairs]
    left = base.PAD + label
    plane = left + sum(widths) + 24 + base.text_width(channels[1]) / 2
    width = plane + side + base.text_width(channels[0]) + base.PAD
    lines, y = base.heading(title, width - 2 * base.PAD)
    top = base.PAD + y + 15 * max(1 + head.count("\n") for head in heads) + 8
    low = base.PAD + y + 20  # the plane begins below the name of its axis
    tall = max(top + height * len(table.rows), low + side)
    figure, ax = base.empty_page(width, tall + 40)
    base.write_heading(ax, lines)
    corner = {"ha": "right", "color": QUIET, "style": "italic"}
    base.write(ax, left - 6, top - 9, table.corner, **corner)
    grid(ax, left, top, table.cells, widths, height, names=table.names)
    for c, head in enumerate(heads):
        x = left + sum(widths[:c]) + widths[c] / 2
        base.write(ax, x, top - 3, head, va="bottom", color=QUIET, linespacing=1.2)
    path = np.cumsum(np.vstack([[0, 0], shares]), axis=0)  # (T + 1, 2)
    least = np.minimum(np.minimum(tokens.min(0), path.min(0)), 0)
    most = np.maximum(np.maximum(tokens.max(0), path.max(0)), 0)
    unit = (side - 70) / max(float((most - least).max()), 1e-9)  # pixels
    middle = np.array([plane + side / 2, low + side / 2])

    def place(point: np.ndarray) -> np.ndarray:
        return middle + (point - (least + most) / 2) * unit * [1, -1]  # y points down on the page

    origin = place(np.zeros(2))
    ax.plot([plane, plane + side], [origin[1]] * 2, color=LINE, linewidth=1, zorder=0)
    ax.plot([origin[0]] * 2, [low, low + side], color=LINE, linewidth=1, zorder=0)
    base.write(ax, plane + side + 4, origin[1], channels[0], ha="left", color=QUIET)
    base.write(ax, origin[0], low - 10, channels[1], color=QUIET)
    tips: dict[tuple[float, ...], list[str]] = {}
    for name, token in zip(table.names, tokens, strict=False):
        tips.setdefault(tuple(token.tolist()), []).append(name)
    taken: list[tuple[float, float, float]] = []
    for token, same in tips.items():
        if any(token):
            _draw_vector(ax, origin, place(np.array(token)), PALE, 6)
            _write_near(ax, place(np.array(token)), ", ".join(same), plane - 20, taken)
    if path[-1].any():
        _draw_vector(ax, origin, place(path[-1]), ORANGE, 4)
    for start, end in pairwise(path):
        if (start != end).any():
            _draw_vector(ax, place(start), place(end), BLUE, 1.6)
    ax.plot(*origin, "o", color=INK, markersize=5, zorder=3)
    note = "grey: the tokens · blue: weight × token, one after the other · orange: the output"
    base.write(ax, base.PAD, tall + 24, note, ha="left", color=QUIET)
    return figure


def _write_near(
    ax: Axes, tip: np.ndarray, name: str, left: float, taken: list[tuple[float, float, float]]
) -> None:
    """Write a name above or below the tip of an arrow, unless other names leave no room."""
    half = base.text_width(name) / 2
    x = float(np.clip(tip[0], left + half, ax.get_xlim()[1] - base.PAD - half))
    for shift in (-12, 12, -28, 28):
        y = float(tip[1]) + shift
        if all(abs(x - a) > half + b + 4 or abs(y - c) > 15 for a, b, c in taken):
            taken.append((x, half, y))
            base.write(ax, x, y, name)
            return


def softmax_steps(
    scores: Any, allowed: Any = None, *, labels: Sequence[Any] | None = None, title: str = ""
) -> Picture:
    """Draw one row on its way through the softmax: score, masked, exp, divided by the sum.

    Without `allowed`, there is no row "masked". Where the largest score is above 10 or below -10,
    it is subtracted before the exponential.

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
    keys = as_names(labels, len(row), "labels", "scores")
    masked = np.where(may, row, -np.inf)
    # For ordinary scores as in the formula; large ones would overflow without the subtraction.
    top = masked.max() if abs(masked.max()) > 10 else 0.0
    grown = np.exp(masked - top)
    weights = grown / grown.sum()
    steps = np.stack([row, masked, grown, weights])
    exp = f"exp(score - {bracketed(number(top))})" if top else "exp(score)"
    names = ["score", "masked", exp, "divided by the sum"]
    sums = ["", "", f"sum {number(grown.sum())}", f"sum {number(weights.sum())}"]
    reach = max(float(np.abs(row).max()), 1e-9)
    colours = [
        *paint(steps[:2], -reach, reach, 0.0),
        *paint(steps[2:3], 0, grown.max(), None),
        *paint(steps[3:], 0, 1, None),
    ]
    if may.all():  # nothing is masked
        steps = np.delete(steps, 1, axis=0)
        del names[1], sums[1], colours[1]
    rows = []
    for name, words, colour, total in zip(names, texts(steps), colours, sums, strict=True):
        cells = [Cell(word, fill=fill) for word, fill in zip(words, fills(colour), strict=True)]
        rows.append((name, [*cells, Cell(total)]))
    table = Table([*keys, ""], rows, title, over="key (who is read)")
    best = int(weights.argmax())
    return Picture(
        alt=f"{titled('One row through the softmax', title)}: {', '.join(names[:-1])}, "
        "and the weights as numbers and bars; the largest weight is "
        f"{number(weights[best])} on {keys[best]}.",
        text=f"{titled('One row through the softmax', title)}\n{table.text()}",
        draw=lambda: _draw_steps(table, weights, title),
        html=table.html,
    )


def _draw_steps(table: Table, weights: np.ndarray, title: str) -> Figure:
    """Draw the rows of the table under each other, and under them the weights as bars."""
    keys, n = table.columns[:-1], len(weights)
    left = base.PAD + max(map(base.text_width, table.names)) + 10
    longest = max(map(base.text_width, keys))
    room = (base.WIDEST - left - 80) / n
    words = (cell.text for row in table.cells for cell in row[:-1])
    step = max(widest(words, 54), min(longest + 12, room))
    size = base.BODY * min(1, (step - 6) / longest) if longest else base.BODY
    right = left + n * step
    lines, y = base.heading(title, right + 74 - 2 * base.PAD)
    top, height, gap, bars = base.PAD + y + 18, 34, 12, 84
    floor = top + len(table.rows) * (height + gap) - gap + bars + 6  # the bars stand on it
    figure, ax = base.empty_page(right + 74, floor + 26)
    base.write_heading(ax, lines)
    for r, (name, (*cells, total)) in enumerate(table.rows):
        y = top + r * (height + gap)
        grid(ax, left, y, [cells], [step] * n, height)
        base.write(ax, left - 8, y + height / 2, name, ha="right")
        base.write(ax, right + 8, y + height / 2, total.text, ha="left", color=QUIET)
    across = left + (np.arange(n) + 0.5) * step
    ax.plot([left, right], [floor, floor], color=LINE, linewidth=1)
    ax.bar(across, -weights * bars, 0.55 * step, bottom=floor, color=BLUE)
    base.write(ax, left - 8, floor - bars / 2, "as bars", ha="right", color=QUIET)
    for x, key in zip(across, keys, strict=True):
        base.write(ax, x, top - 9, key, size=size, color=QUIET)
        base.write(ax, x, floor + 11, key, size=size, color=QUIET)
    return figure


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
            _table("channel", range(d), products),
            f"The products add up to the score: {score}.",
        ),
        Step(
            _table("key", names, softmax, marked=[(j, 0), (j, 1), (j, 2)]),
            f"Divided by √{d}, the softmax of all {len(k)} scores: {weight} for {who}.",
        ),
        Step(
            _table("channel", range(d_v), shares, marked=[(row, 1) for row in range(d_v)]),
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


def _table(
    corner: str,
    names: Iterable[Any],
    columns: dict[str, np.ndarray],
    marked: Sequence[tuple[int, int]] = (),
) -> Table:
    """Make a table of columns; each has as many decimals as it needs."""
    cells = plain_cells(zip(*map(texts, columns.values()), strict=True), marked)
    return Table(list(columns), list(zip(map(str, names), cells, strict=True)), corner=corner)


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
