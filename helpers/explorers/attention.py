"""Live explorers of attention itself: one query, the size of scores, many heads, a deep stack.

They are made as those in `helpers.explorers.explorer` are: controls, and HTML that follows them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import ipywidgets as widgets
import numpy as np
import torch

from helpers.attention import attention, causal_mask
from helpers.explorers.explorer import GLOW, Explorer, checkbox, say, slider
from helpers.numbers import as_array, brief, listed, number, power
from helpers.pictures import base as pic
from helpers.pictures.drawings import MARKED, PLAIN
from helpers.pictures.lines import decades
from helpers.pictures.matrix import as_matrix, css, paint
from helpers.stack import AT_ONCE, INITS, WAYS, signal_by_depth

SKY = "#4a90c8"  # blue that is seen on light and on dark


def _dropdown(name: str, options: Sequence[str], value: str) -> widgets.Dropdown:
    return widgets.Dropdown(
        options=list(options), value=value, description=name,
        style={"description_width": "initial"},
        layout={"width": "240px", "margin": "2px 12px 2px 2px"},
    )  # fmt: skip


def _abreast(parts: Sequence[str]) -> str:
    """Put pieces of HTML close to each other, so that they fit into a notebook's line."""
    style = "display:flex;flex-wrap:wrap;gap:8px 14px;align-items:flex-start"
    return f'<div style="{style}">{"".join(parts)}</div>'


def _controls_in_a_row(controls: dict[str, widgets.Widget], view: widgets.Widget) -> widgets.Widget:
    row = widgets.HBox(
        list(controls.values()), layout={"flex_flow": "row wrap", "align_items": "center"}
    )
    return widgets.VBox([row, view])


# --- 04: one query in the plane ---------------------------------------------------------------


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
            vector = [pic.td(number(c), PLAIN) for c in mixed[i]]
            rows.append((name, [pic.td(number(scores[i]), look), bar, *vector]))
        rows.append(("output", [pic.td(""), pic.td(""), *(pic.td(number(o), MARKED) for o in out)]))
        columns = ["q · k / √2", "weight", *(f"{letter}{c}" for c in range(mixed.shape[1]))]
        what = "x: nobody has agreed to say that" if now["mix x"] else "the values"
        table = pic.html_table("", columns, rows)
        told = (
            f"The output has {len(out)} channels: it mixes {what}. The weights come from the "
            f"query and the keys alone."
        )
        return pic.side_by_side([_with_query(still, q, half, now), table]) + say(told)

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
        _controls_in_a_row,
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
        wide = pic.text_width(name, 12)
        x, y = (a + 7 if a >= 0 else a - 7 - wide), b + math.copysign(3, b)
        x = min(max(x, -edge + 3), edge - wide - 3)
        while any(abs(y - y2) < 14 and x < x2 + w2 and x2 < x + wide for x2, y2, w2 in taken):
            y -= 2
        taken.append((x, y, wide))
        parts.append(
            f'{_arrow(a, b, SKY, 2)}<text x="{x:.1f}" y="{y + 4:.1f}">{pic.text_html(name)}</text>'
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


# --- 05: what to divide by --------------------------------------------------------------------

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
        "divisor": _dropdown("divisor (T = 8, C = 32)", list(DIVISORS), "none"),
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
            [pic.td(number(w), css(c)) for w, c in zip(row, colours, strict=True)]
            for row, colours in zip(shown, paint(shown, 0, 1, None), strict=True)
        ]
        table = pic.html_table(
            "three rows of weights", [*map(str, range(T_5))],
            [(str(t), row) for t, row in enumerate(cells)], corner="query", over="key",
        )  # fmt: skip
        left = f"<div>{''.join(gauges)}</div>"
        return pic.side_by_side([left, table], how(d, now["divisor"])) + say(judge(bits))

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
        _controls_in_a_row,
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


# --- 06: heads side by side -------------------------------------------------------------------


def explore_heads(x: Any, n_head: int = 4) -> Explorer:
    """Choose the row that reads; compare what the heads give it, split right or by `view` alone.

    Queries, keys and values come from random matrices with a fixed seed. The heads are merged
    right in both cases.

    Parameters
    ----------
    x : tensor, array or nested lists, (T, C)
        One sequence, at most 10 tokens.
    n_head : int
        1 to 8 heads.

    Raises
    ------
    ValueError
        If `x` is not (T, C), is too long, or C is not divisible by n_head.
    """
    tokens = torch.as_tensor(as_matrix(x, "x").astype(float))
    T, C = tokens.shape
    if T > 10:
        raise ValueError(f"explore_heads has room for 10 tokens, got {T}; pass a slice: x[:10]")
    if isinstance(n_head, bool) or not isinstance(n_head, int) or not 1 <= n_head <= 8:
        raise ValueError(f"n_head must be a whole number from 1 to 8, got {n_head!r}")
    if C % n_head:
        raise ValueError(f"C must be divisible by n_head, got C={C} channels and {n_head} heads")
    source = torch.Generator().manual_seed(0)
    matrices = torch.randn(3, C, C, generator=source).double() / C**0.5
    q, k, v = tokens @ matrices
    mask = causal_mask(T)

    def split(z: torch.Tensor, skip: bool) -> torch.Tensor:
        return z.reshape(n_head, T, -1) if skip else z.reshape(T, n_head, -1).transpose(0, 1)

    whose = torch.arange(T)[:, None].expand(T, C)  # the token that a channel belongs to
    states = {}
    for skip in (False, True):
        _, weights = attention(split(q, skip), split(k, skip), split(v, skip), mask)
        states[skip] = weights.numpy(), split(whose, skip)[..., 0].numpy()  # (n_head, T)

    controls = {
        "row": slider("row that reads", min(5, T - 1), 0, T - 1),
        "skip": checkbox("skip the transpose (split by view alone)"),
    }
    colours = {skip: paint(weights, 0, 1, None) for skip, (weights, _) in states.items()}

    def heard(row: int, skip: bool) -> list[int]:
        """List the tokens that output `row` hears: in each head, those of its rows 0 … row."""
        owner = states[skip][1]
        return sorted({int(t) for t in owner[:, : row + 1].ravel()})

    def verdict(row: int, skip: bool) -> list[str]:
        tokens_ = heard(row, skip)
        future = [t for t in tokens_ if t > row]
        missing = [t for t in range(row + 1) if t not in tokens_]
        told = [f"Output {row} hears {_tokens(tokens_)}."]
        if future:
            told.append(f"⚠ It sees the future: {_tokens(future)}. The mask is in place, but row "
                        f"{row} of most heads is not token {row}.")  # fmt: skip
        else:
            told.append("✓ It does not see the future.")
        if missing:
            told.append(f"⚠ It does not hear {_tokens(missing)}.")
        return told

    def draw(row: int, skip: bool) -> str:
        weights, owner = states[skip]
        paints = colours[skip]
        panels = []
        for h in range(n_head):
            best = int(weights[h, row].argmax())
            most = f"most: {owner[h, best]} ({number(weights[h, row, best])})"
            panels.append(_head(f"head {h}", weights[h], paints[h], owner[h], row, most))
        says = "whose channels these are" if skip else "tokens"
        note = f"Beside a head: {says}, as queries (left) and as keys (above). Row {row} is framed."
        return _abreast(panels) + say(note, *verdict(row, skip))

    def tell(row: int, skip: bool) -> str:
        weights, owner = states[skip]
        how = "split by view alone" if skip else "split right"
        most = [
            f"head {h} most to token {owner[h, w.argmax()]} ({number(w.max())})"
            for h, w in enumerate(weights[:, row])
        ]
        return f"row {row}, {how}: {', '.join(most)}. {' '.join(verdict(row, skip))}"

    return Explorer(
        "choose the row that reads; compare what the heads give it, split right and wrong.",
        controls,
        draw,
        tell,
        _controls_in_a_row,
    )


def _tokens(tokens: Sequence[int]) -> str:
    return f"token{'s' * (len(tokens) > 1)} {listed(tokens)}"


def _head(
    name: str, weights: np.ndarray, colours: np.ndarray, owner: np.ndarray, row: int, most: str
) -> str:
    """Draw one head as a small HTML heatmap: numbers in the chosen row, colours in all."""
    T = len(weights)
    cell = "width:21px;min-width:21px;height:20px;padding:0;text-align:center;font-size:10px;"
    body = []
    for t in range(T):
        frame = f"border:2px solid {GLOW};border-width:2px 0;" if t == row else ""
        cells = []
        for weight, colour in zip(weights[t, : t + 1], colours[t], strict=False):
            note = number(weight)
            word = (note.removeprefix("0") or "0") if t == row else ""
            cells.append(f'<td style="{cell}{css(colour)}{frame}" title="{note}">{word}</td>')
        if t + 1 < T:  # one long cell for all that is masked
            look = f"padding:0;{pic.HATCH}{frame}"
            cells.append(f'<td colspan="{T - 1 - t}" title="masked" style="{look}"></td>')
        look = "font-weight:bold" if t == row else "font-weight:normal;opacity:.75"
        head = f'<th scope="row" style="padding:0 5px 0 0;font-size:11px;{look}">{owner[t]}</th>'
        body.append(f'<tr style="background:none">{head}{"".join(cells)}</tr>')
    top = "".join(
        f'<th scope="col" style="padding:0;font-size:11px;font-weight:normal;text-align:center;'
        f'opacity:.75">{owner[j]}</th>'
        for j in range(T)
    )
    return (
        '<table style="border-collapse:separate;border-spacing:1px;border:none;color:inherit;'
        'margin:2px 0;line-height:1.3;font-variant-numeric:tabular-nums">'
        '<caption style="caption-side:top;'
        f'text-align:left;color:inherit;font-size:12px;padding:0 0 2px"><b>{name}</b> · {most}'
        f'</caption><thead><tr style="background:none"><td></td>{top}</tr></thead><tbody>'
        f"{''.join(body)}</tbody></table>"
    )


# --- 07: depth --------------------------------------------------------------------------------

WHAT = ("signal", "gradient", "similarity")
WIDE, TALL = 212, 150  # of one of the three charts


def explore_depth() -> Explorer:
    """Choose depth, way and start of a stack; see its signal, gradient and token similarity."""
    controls = {
        "depth": slider("depth, in blocks", 4, 1, AT_ONCE),
        "way": _dropdown("way", WAYS, WAYS[0]),
        "start": _dropdown("start", INITS, INITS[0]),
    }
    # Every depth of every way, measured once: a move of the slider only looks it up.
    found = {
        (way, init): [signal_by_depth(way, d, init=init) for d in range(1, AT_ONCE + 1)]
        for way in WAYS
        for init in INITS
    }
    charts = {
        (init, what): _Chart(
            {way: [getattr(f, what) for f in found[way, init]] for way in WAYS}, what
        )
        for init in INITS
        for what in WHAT
    }

    def judge(depth: int, way: str, start: str) -> str:
        stack = found[way, start][depth - 1]
        told = []
        if stack.signal < 0.1 or stack.signal > 10:
            told.append("the signal fades" if stack.signal < 1 else "the signal explodes")
        if stack.gradient < 0.1 or stack.gradient > 10:
            told.append("the gradient fades" if stack.gradient < 1 else "the gradient explodes")
        if stack.similarity > 0.9:
            told.append("all tokens point nearly the same way")
        if not told:
            return "✓ Signal and gradient stay within a factor of 10, and tokens stay apart."
        return f"⚠ {told[0][0].upper()}{', '.join(told)[1:]}."

    def draw(depth: int, way: str, start: str) -> str:
        parts = [charts[start, what].draw(way, depth) for what in WHAT]
        return _abreast(parts) + say(
            "The thick line is the way you chose, the thin ones are the other three.",
            judge(depth, way, start),
        )

    def tell(depth: int, way: str, start: str) -> str:
        stack = found[way, start][depth - 1]
        told = ", ".join(f"{what} {_size(what, getattr(stack, what))}" for what in WHAT)
        return f"{way}, {start} start, depth {depth}: {told}. {judge(depth, way, start)}"

    return Explorer(
        "choose depth, way and start of a stack of fresh blocks; see what reaches its ends.",
        controls,
        draw,
        tell,
        _controls_in_a_row,
    )


def _size(what: str, value: float) -> str:
    return number(value) if what == "similarity" else brief(value)


class _Chart:
    """One quantity by depth, four ways: all that does not move is drawn once."""

    def __init__(self, lines: dict[str, list[float]], what: str) -> None:
        self.lines, self.what = lines, what
        values = np.array(list(lines.values()))
        if what == "similarity":
            marks, self.low, self.high = {0.0: "0", 0.5: "0.5", 1.0: "1"}, -0.04, 1.04
        else:
            powers, limits = decades(float(values.min()), float(values.max()))
            marks = {float(p): power(p) for p in powers}
            self.low, self.high = map(math.log10, limits)
        self.paths = {
            way: " ".join(f"{self._x(d):.1f},{self._y(y):.1f}" for d, y in enumerate(ys, 1))
            for way, ys in lines.items()
        }
        grid = [
            f'<path d="M0,{y:.1f}H{WIDE}" stroke="currentColor" opacity=".15"/>'
            f'<text x="-6" y="{y + 4:.1f}" text-anchor="end" opacity=".85">{mark}</text>'
            for y, mark in ((self._place(p), mark) for p, mark in marks.items())
        ]
        grid += [
            f'<text x="{self._x(d):.1f}" y="{TALL + 16}" text-anchor="middle" opacity=".85">{d}'
            "</text>"
            for d in (1, 6, 12, 18, 24)
        ]
        grid.append(
            f'<text x="{WIDE / 2}" y="{TALL + 31}" text-anchor="middle" opacity=".85">depth</text>'
        )
        grid += [
            f'<polyline points="{path}" fill="none" stroke="currentColor" opacity=".3"/>'
            for path in self.paths.values()
        ]
        self.still = "".join(grid)

    def _x(self, depth: int) -> float:
        return 6 + (depth - 1) / (AT_ONCE - 1) * (WIDE - 12)

    def _place(self, value: float) -> float:
        return TALL * (1 - (value - self.low) / (self.high - self.low))

    def _y(self, value: float) -> float:
        return self._place(value if self.what == "similarity" else math.log10(value))

    def draw(self, way: str, depth: int) -> str:
        """Draw the chart with one way thick, and a dot at this depth."""
        value = self.lines[way][depth - 1]
        x, text = self._x(depth), _size(self.what, value)
        return (
            f'<svg width="{WIDE + 52}" height="{TALL + 58}" '
            f'viewBox="-44 -22 {WIDE + 52} {TALL + 58}" role="img" '
            f'aria-label="{self.what} at depth {depth}: {text}" '
            'style="font:12px sans-serif;fill:currentColor">'
            f'<text x="0" y="-9">{self.what}: <tspan font-weight="bold">{text}</tspan></text>'
            f'{self.still}<path d="M{x:.1f},0V{TALL}" stroke="{GLOW}" opacity=".5"/>'
            f'<polyline points="{self.paths[way]}" fill="none" stroke="{SKY}" stroke-width="3"/>'
            f'<circle cx="{x:.1f}" cy="{self._y(value):.1f}" r="6" fill="{GLOW}"/></svg>'
        )
