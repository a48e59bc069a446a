"""Notebook 04: one query in the plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from helpers.explorers.explorer import GLOW, SKY, Explorer, checkbox, controls_in_a_row, say, slider
from helpers.numbers import as_array, number
from helpers.pictures import base
from helpers.pictures.checks import as_matrix
from helpers.pictures.table import MARKED, PLAIN, html_table, side_by_side, td, text_html

if TYPE_CHECKING:
    pass


def explore_query(
    query: Any, keys: Any, values: Any, x: Any, *, words: Sequence[Any] | None = None
) -> Explorer:
    """Turn and stretch one query in the plane; see who it listens to, and what comes out.

    Parameters
    ----------
    query : (2,)
        Where to start.
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
    start = as_array(query, "query").astype(float)
    k, v, x_ = (
        as_matrix(m, what).astype(float)
        for m, what in ((keys, "keys"), (values, "values"), (x, "x"))
    )
    if start.shape != (2,) or k.shape[1] != 2:
        raise ValueError(
            f"the plane needs a query of shape (2,) and keys of shape (T, 2), got {start.shape} "
            f"and {k.shape}"
        )
    if not len(k) == len(v) == len(x_) or len(k) > 8 or max(v.shape[1], x_.shape[1]) > 6:
        raise ValueError(
            f"explore_query needs up to 8 tokens and 6 channels, equally many tokens in all: got "
            f"keys {k.shape}, values {v.shape}, x {x_.shape}"
        )
    names = [str(word) for word in (range(len(k)) if words is None else words)]
    if len(names) != len(k):
        raise ValueError(f"words needs one word for each of the {len(k)} keys, got {len(names)}")
    half = 1.2 * max(float(np.abs(k).max()), 1e-3)  # from the origin to the edge of the plane
    controls = {
        "angle": slider("turned by °", 0, -180, 180),
        "length": slider("length ×", 1.0, 0, 4, 0.1),
        "mix x": checkbox("mix x (not the values)"),
    }
    still = _plane_of_keys(k, names, half)

    def listen(angle: float, length: float, mixed: np.ndarray) -> tuple[np.ndarray, ...]:
        cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        q = length * np.array([[cos, -sin], [sin, cos]]) @ start
        scores = k @ q / math.sqrt(2)
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        return q, scores, weights, weights @ mixed

    def draw(**now: Any) -> str:
        mixed, letter = (x_, "x") if now["mix x"] else (v, "v")
        q, scores, weights, out = listen(now["angle"], now["length"], mixed)
        best = int(weights.argmax())
        rows = []
        for i, name in enumerate(names):
            look = MARKED if i == best else PLAIN
            bar = (
                '<td style="text-align:left;padding:0;min-width:150px;white-space:nowrap">'
                '<div style="display:inline-block;vertical-align:middle;height:16px;'
                f'width:{110 * weights[i]:.1f}px;background:{GLOW if i == best else SKY}"></div>'
                f'<span style="padding-left:5px">{number(weights[i])}</span></td>'
            )
            vector = [td(number(c), PLAIN) for c in mixed[i]]
            rows.append((name, [td(number(scores[i]), look), bar, *vector]))
        rows.append(("output", [td(""), td(""), *(td(number(o), MARKED) for o in out)]))
        columns = ["q · k / √2", "weight", *(f"{letter}{c}" for c in range(mixed.shape[1]))]
        what = "x: nobody has agreed to say that" if now["mix x"] else "the values"
        table = html_table("", columns, rows)
        told = (
            f"The output has {len(out)} channels: it mixes {what}. The weights come from the "
            f"query and the keys alone."
        )
        return side_by_side([_with_query(still, q, half, now), table]) + say(told)

    def tell(**now: Any) -> str:
        mixed, name = (x_, "x") if now["mix x"] else (v, "values")
        _, _, weights, out = listen(now["angle"], now["length"], mixed)
        told = ", ".join(f"{n} {number(w)}" for n, w in zip(names, weights, strict=True))
        return (
            f"query turned by {now['angle']}°, {number(now['length'], 1)} times as long: weights "
            f"{told}. weights @ {name} = {' '.join(map(number, out))}"
        )

    return Explorer(
        "turn one query in the plane; see who it listens to, and what comes out.",
        controls,
        draw,
        tell,
        controls_in_a_row,
    )


SIDE = 300  # of the plane, in CSS pixels


def _arrow(x: float, y: float, colour: str, thick: float) -> str:
    """Draw an arrow from the origin to (x, y) pixels."""
    reach = math.hypot(x, y)
    if reach < 1:
        return f'<circle r="{thick + 1}" fill="{colour}"/>'
    head = min(4 * thick + 2, reach)
    a, b = x / reach, y / reach  # along the arrow
    foot = (x - head * a, y - head * b)
    left, right = ((foot[0] - s * 0.45 * head * b, foot[1] + s * 0.45 * head * a) for s in (1, -1))
    return (
        f'<path d="M0,0L{foot[0]:.1f},{foot[1]:.1f}" stroke="{colour}" stroke-width="{thick}"/>'
        f'<path d="M{x:.1f},{y:.1f}L{left[0]:.1f},{left[1]:.1f}L{right[0]:.1f},{right[1]:.1f}Z" '
        f'fill="{colour}"/>'
    )


def _plane_of_keys(keys: np.ndarray, names: Sequence[str], half: float) -> str:
    """Draw what never moves: the axes, and an arrow with its word for each key."""
    edge = SIDE / 2
    parts = [
        f'<path d="M{-edge},0H{edge}M0,{-edge}V{edge}" stroke="currentColor" opacity=".35"/>',
        f'<rect x="{-edge}" y="{-edge}" width="{SIDE}" height="{SIDE}" fill="none" '
        'stroke="currentColor" opacity=".35"/>',
    ]
    tips = [(float(a), float(-b)) for a, b in keys / half * edge]
    taken: list[tuple[float, float, float]] = []
    for (a, b), name in sorted(zip(tips, names, strict=True), key=lambda tip: -tip[0][1]):
        wide = base.text_width(name, 12)
        x, y = (a + 7 if a >= 0 else a - 7 - wide), b + math.copysign(3, b)
        x = min(max(x, -edge + 3), edge - wide - 3)
        while any(abs(y - y2) < 14 and x < x2 + w2 and x2 < x + wide for x2, y2, w2 in taken):
            y -= 2
        taken.append((x, y, wide))
        parts.append(
            f'{_arrow(a, b, SKY, 2)}<text x="{x:.1f}" y="{y + 4:.1f}">{text_html(name)}</text>'
        )
    return "".join(parts)


def _with_query(still: str, query: np.ndarray, half: float, now: dict[str, Any]) -> str:
    edge = SIDE / 2
    x, y = query / half * edge * (1, -1)
    over = max(abs(x), abs(y)) / (edge - 2)
    if over > 1:  # too long for the plane: it ends at its edge
        x, y = x / over, y / over
    note = "query" + (" (reaches beyond the edge)" if over > 1 else "")
    told = f"keys as arrows; the query turned by {now['angle']}°, {now['length']:.1f} times as long"
    return (
        f'<svg width="{SIDE + 4}" height="{SIDE + 22}" role="img" aria-label="{told}" '
        f'viewBox="{-edge - 2} {-edge - 2} {SIDE + 4} {SIDE + 22}" '
        f'style="font:12px sans-serif;fill:currentColor">{_arrow(x, y, GLOW, 5)}{still}'
        f'<text x="{-edge}" y="{edge + 15}"><tspan fill="{GLOW}" font-weight="bold">{note}'
        f'</tspan><tspan fill="{SKY}" font-weight="bold" dx="12">keys</tspan></text></svg>'
    )
