"""The few pictures that are not heatmaps: sheets, a staircase, a plane, two kinds of sums.

Each function checks its input, then returns a `Picture`: drawn, as an HTML table, and in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from helpers.numbers import as_array, number, texts
from helpers.pictures import base as pic
from helpers.pictures.base import Picture
from helpers.pictures.matrix import as_mask, as_matrix, css, ink, paint
from helpers.show import align_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CARD, MARK = "#f3f6f9", "#fde3cf"  # the paper of a plain cell, and of one that matters
PLAIN = f"background:{CARD};color:#222;"  # the same for HTML
MARKED = f"background:{MARK};color:#222;outline:2px solid {pic.ORANGE};outline-offset:-2px;"
FAINT = "#86a9c8"  # blue for thin lines that cross each other


def grid(
    ax: Axes,
    left: float,
    top: float,
    cells: Sequence[Sequence[str]],
    step: tuple[float, float],
    *,
    colours: Any = None,
    rows: Sequence[str] = (),
    cols: Sequence[str] = (),
    marked: Sequence[tuple[int, int]] = (),
) -> None:
    """Draw a table of words with its upper left corner at (left, top); cells are `step` large."""
    from matplotlib.patches import Rectangle

    w, h = step
    for r, words in enumerate(cells):
        for c, word in enumerate(words):
            x, y = left + c * w, top + r * h
            fill = MARK if (r, c) in marked else CARD
            letters = pic.INK
            if colours is not None:
                fill, letters = colours[r][c], str(ink(np.asarray(colours[r][c])))
            cell = Rectangle((x, y), w, h, facecolor=fill, edgecolor="white", linewidth=1.5)
            ax.add_patch(cell)
            pic.write(ax, x + w / 2, y + h / 2, word, color=letters, va="center_baseline")
    for r, c in marked:
        frame = Rectangle((left + c * w, top + r * h), w, h, fill=False, linewidth=2)
        frame.set_edgecolor(pic.ORANGE)
        ax.add_patch(frame)
    for r, name in enumerate(rows):
        pic.write(ax, left - 6, top + (r + 0.5) * h, name, ha="right", color=pic.QUIET)
    for c, name in enumerate(cols):
        pic.write(ax, left + (c + 0.5) * w, top - 9, name, color=pic.QUIET)


def widest(cells: Sequence[Sequence[str]], least: float, margin: float = 12) -> float:
    """How wide a column must be for all its words."""
    return max([least, *(pic.text_width(word) + margin for row in cells for word in row)])


def named(title: str, otherwise: str) -> str:
    """What kind of picture it is, with its title if it has one."""
    return f"{otherwise}: {title}" if title else otherwise


def sheets(x: Any, *, names: tuple[str, str, str] = ("b", "t", "c"), title: str = "") -> Picture:
    """Draw a (B, T, C) tensor as a stack of sheets, one sheet a sequence.

    Parameters
    ----------
    x : tensor, array or nested lists, (B, T, C)
        At most 200 numbers.
    names : three str
        What the three positions are called.

    Raises
    ------
    ValueError
        If `x` is not 3-D, is empty or has more than 200 numbers.
    """
    values = as_array(x, "x")
    if values.ndim != 3 or values.size == 0:
        raise ValueError(f"sheets draws a 3-D tensor (B, T, C), got shape {values.shape}")
    if values.size > 200:
        raise ValueError(
            f"sheets draws at most 200 numbers, got {values.size}: shape {values.shape}; "
            f"pass a slice such as x[:2, :5]"
        )
    b, t, c = names
    stack = texts(values)
    n_sheet, n_row, n_col = values.shape
    rows, cols = [str(i) for i in range(n_row)], [str(i) for i in range(n_col)]

    def tell() -> str:
        told = [named(title, f"{n_sheet} sheets of {n_row} x {n_col}")]
        told.append(f"sheet = {b}, row = {t}, column = {c}")
        for i, cells in enumerate(stack):
            told += ["", f"{b} = {i}"]
            told += align_columns(
                [["", *cols], *([r, *words] for r, words in zip(rows, cells, strict=True))]
            )
        return "\n".join(told)

    def draw() -> Figure:
        from matplotlib.patches import FancyBboxPatch

        step = (widest([w for cells in stack for w in cells], 40), 27)
        wide, high = 40 + n_col * step[0] + 10, 52 + n_row * step[1] + 10
        drop, gap = 14, 14  # each sheet lies a little lower than the one before
        per_line = max(1, min(n_sheet, int((pic.WIDEST - 20 + gap) // (wide + gap))))
        n_line = -(-n_sheet // per_line)
        width = max(per_line * (wide + gap) - gap + 2 * pic.PAD, 300)
        head, y = pic.heading(title, width - 2 * pic.PAD)
        fall = drop * (per_line - 1)
        height = pic.PAD + y + n_line * (high + fall) + gap * (n_line - 1) + pic.PAD
        figure, ax = pic.sheet(width, height)
        pic.write_heading(ax, head)
        for i, cells in enumerate(stack):
            line, place = divmod(i, per_line)
            left = pic.PAD + place * (wide + gap)
            top = pic.PAD + y + line * (high + fall + gap) + drop * place
            card = FancyBboxPatch((left + 4, top + 4), wide - 8, high - 8, boxstyle="round,pad=3")
            card.set(facecolor="white", edgecolor=pic.LINE, linewidth=1)
            ax.add_patch(card)
            pic.write(
                ax, left + 10, top + 14, f"{b} = {i}", ha="left", weight="bold", color=pic.BLUE
            )
            pic.write(
                ax, left + 40 + n_col * step[0] / 2, top + 14, c, color=pic.QUIET, style="italic"
            )
            pic.write(
                ax, left + 15, top + 52 + n_row * step[1] / 2, t, color=pic.QUIET, style="italic"
            )
            grid(ax, left + 40, top + 50, cells, step, rows=rows, cols=cols)
        return figure

    def html() -> str:
        look = PLAIN
        return pic.side_by_side(
            [
                pic.html_table(
                    f"{b} = {i}",
                    cols,
                    [(r, [pic.td(w, look) for w in ws]) for r, ws in zip(rows, cells, strict=True)],
                    corner=t,
                    over=c,
                )
                for i, cells in enumerate(stack)
            ],
            title,
        )

    alt = (
        f"{named(title, 'A tensor as a stack of sheets')}: {n_sheet} sheets, one for each {b}, "
        f"with {n_row} rows ({t}) and {n_col} columns ({c})."
    )
    return Picture(alt=alt, tell=tell, draw=draw, html=html)


def staircase(T: int, *, mask: Any = None, title: str = "") -> Picture:
    """Draw who feeds whom: an arrow from input j to output t for each pair that is allowed.

    Parameters
    ----------
    T : int
        How many tokens, 1 to 12.
    mask : bool, (T, T)
        Row t, column j: True = output t may read input j. Without: causal, every output reads its
        own token and everything before it.

    Raises
    ------
    ValueError, TypeError
        If T is out of range or the mask does not fit.
    """
    if isinstance(T, bool) or not isinstance(T, int) or not 1 <= T <= 12:
        raise ValueError(f"staircase draws 1 to 12 tokens, got T={T!r}")
    may = np.tri(T, dtype=bool) if mask is None else as_mask(mask, (T, T), "mask")

    def reads(t: int) -> str:
        others = [str(j) for j in range(T) if may[t, j] and j != t]
        words = [f"input{'s' * (len(others) > 1)} {', '.join(others)}"] if others else []
        return " and ".join([*words, *(["itself"] if may[t, t] else [])]) or "nothing"

    def tell() -> str:
        return "\n".join(
            [
                named(title, "Who feeds whom"),
                *(f"output {t} reads {reads(t)}" for t in range(T)),
            ]
        )

    def draw() -> Figure:
        step = min(72, 820 / T)
        width = max(2 * pic.PAD + 60 + T * step, 370)
        head, y = pic.heading(title, width - 2 * pic.PAD)
        rise = 22
        low = pic.PAD + y + 92 + rise * (T - 1) + 34  # the line of the inputs
        figure, ax = pic.sheet(width, low + 48)
        pic.write_heading(ax, head)
        spot = [pic.PAD + 60 + (j + 0.5) * step for j in range(T)]
        high = [low - 100 - rise * t for t in range(T)]  # output t stands t steps up
        for t in range(T):
            for j in range(T):
                if may[t, j]:
                    ax.annotate(
                        "", (spot[t], high[t]), (spot[j], low),
                        arrowprops={
                            "arrowstyle": "-|>,head_width=0.22,head_length=0.42",
                            "color": pic.ORANGE if j == t else FAINT,
                            "linewidth": 2 if j == t else 1,
                            "zorder": 2 if j == t else 1,
                            "antialiased": j == t,  # smooth slanted lines double the file
                            "shrinkA": 14, "shrinkB": 14,
                        },
                    )  # fmt: skip
        for j in range(T):
            _node(ax, spot[j], low, str(j), CARD)
            _node(ax, spot[j], high[j], str(j), "white")
        pic.write(ax, pic.PAD, low, "inputs", ha="left", color=pic.QUIET)
        pic.write(ax, pic.PAD, high[0], "outputs", ha="left", color=pic.QUIET)
        pic.write(ax, pic.PAD, low + 34, "orange: a token's own arrow", ha="left", color=pic.ORANGE)
        pic.write(
            ax, pic.PAD + 190, low + 34, "blue: from another token", ha="left", color=pic.BLUE
        )
        return figure

    def html() -> str:
        def cell(t: int, j: int) -> str:
            if not may[t, j]:
                return pic.td("", pic.HATCH, "no arrow")
            colour = pic.ORANGE if t == j else pic.BLUE
            return pic.td("self" if t == j else "yes", f"background:{colour};color:white")

        return pic.html_table(
            title,
            [str(j) for j in range(T)],
            [(str(t), [cell(t, j) for j in range(T)]) for t in range(T)],
            corner="output",
            over="input",
        )

    alt = (
        f"{named(title, 'Who feeds whom')}: {T} inputs below, {T} outputs above, "
        f"{int(may.sum())} arrows; output {T - 1} reads {reads(T - 1)}."
    )
    return Picture(alt=alt, tell=tell, draw=draw, html=html)


def _node(ax: Axes, x: float, y: float, text: str, fill: str, edge: str = pic.INK) -> None:
    from matplotlib.patches import Circle

    ax.add_patch(Circle((x, y), 11, facecolor=fill, edgecolor=edge, linewidth=1.2, zorder=3))
    pic.write(ax, x, y, text, size=10, va="center_baseline", zorder=4, color=edge)


def plane(x: Any, t: int, *, title: str = "") -> Picture:
    """Draw the tokens of one sequence as points, and the mean of tokens 0 … t as a star.

    Parameters
    ----------
    x : tensor, array or nested lists, (T, 2)
        One sequence with two channels.
    t : int
        The last token in the mean, 0 to T - 1.

    Raises
    ------
    ValueError
        If `x` does not have two channels, is not finite, or `t` is out of range.
    """
    values, mean = points_and_mean(x, t)
    T = len(values)

    def tell() -> str:
        told = [named(title, "Tokens in the plane")]
        told += align_columns(
            [
                ["token", "channel 0", "channel 1", ""],
                *(
                    [str(i), *map(number, xy), "in the mean" if i <= t else "not yet"]
                    for i, xy in enumerate(values.tolist())
                ),
                [f"mean of 0…{t}", *map(number, mean.tolist()), ""],
            ]
        )
        return "\n".join(told)

    def draw() -> Figure:
        head, y = pic.heading(title, 400)
        side, left, top = 340, 62, pic.PAD + y + 6
        width, height = left + side + pic.PAD + 10, top + side + 74
        figure = pic.canvas(width, height)
        width, height = (72 * inches for inches in figure.get_size_inches())
        over = figure.add_axes((0, 0, 1, 1))
        over.set(xlim=(0, width), ylim=(height, 0))
        over.axis("off")
        pic.write_heading(over, head)
        ax = figure.add_axes((left / width, 1 - (top + side) / height, side / width, side / height))
        low, high = square_around(values)
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
        ax.axhline(0, color=pic.PALE, linewidth=1, zorder=0)
        ax.axvline(0, color=pic.PALE, linewidth=1, zorder=0)
        for i, (a, b) in enumerate(values.tolist()):
            seen = i <= t
            ax.plot(
                a, b, "o", markersize=19, zorder=2 + seen, markeredgewidth=1.2,
                color=pic.BLUE if seen else "white", markeredgecolor=pic.BLUE if seen else pic.LINE,
            )  # fmt: skip
            colour = "white" if seen else pic.QUIET
            pic.write(
                ax, a, b, str(i), size=10, color=colour, va="center_baseline", zorder=2 + seen
            )
        # Behind all points, and larger: at t = 0 it lies under token 0.
        star = {"markersize": 42, "markeredgecolor": "white", "zorder": 1.5}
        ax.plot(*mean, "*", color=pic.ORANGE, **star)
        ax.set_xlabel("channel 0", size=pic.BODY, color=pic.QUIET, family=pic.FONT)
        ax.set_ylabel("channel 1", size=pic.BODY, color=pic.QUIET, family=pic.FONT)
        ax.tick_params(length=3, labelsize=10, color=pic.LINE, labelcolor=pic.INK)
        for spine in ax.spines.values():
            spine.set_color(pic.PALE)
        spot = f"({number(mean[0])}, {number(mean[1])})"
        which = "token 0" if t == 0 else f"tokens 0…{t}"
        note = f"★ mean of {which}: {spot}"
        pic.write(over, left, height - 18, note, ha="left", color=pic.ORANGE, size=12)
        return figure

    def html() -> str:
        rows = [
            (
                str(i),
                [pic.td(number(v), PLAIN if i <= t else "opacity:.75") for v in xy],
            )
            for i, xy in enumerate(values.tolist())
        ]
        rows.append((f"mean of 0…{t}", [pic.td(number(v), MARKED) for v in mean.tolist()]))
        return pic.html_table(title, ["channel 0", "channel 1"], rows, corner="token")

    alt = (
        f"{named(title, 'Tokens in the plane')}: {T} numbered points; tokens 0 to {t} are filled, "
        f"and a star marks their mean at ({number(mean[0])}, {number(mean[1])})."
    )
    return Picture(alt=alt, tell=tell, draw=draw, html=html)


def points_and_mean(x: Any, t: int) -> tuple[np.ndarray, np.ndarray]:
    """Copy a sequence (T, 2) to NumPy, and take the mean of tokens 0 … t."""
    values = as_array(x, "x").astype(float)
    if values.ndim != 2 or values.shape[1] != 2 or len(values) == 0:
        raise ValueError(
            f"the plane needs one sequence with two channels, shape (T, 2), got {values.shape}; "
            f"pick one sequence, as in x[0]"
        )
    if not np.isfinite(values).all():
        raise ValueError("the plane needs finite numbers; x holds nan or inf")
    if isinstance(t, bool) or not isinstance(t, int) or not 0 <= t < len(values):
        raise ValueError(f"t must be a position from 0 to {len(values) - 1}, got {t!r}")
    return values, values[: t + 1].mean(0)


def square_around(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the lower and the upper corner of a square that holds all points and the origin."""
    low, high = np.minimum(values.min(0), 0), np.maximum(values.max(0), 0)
    half = max(float((high - low).max()), 1e-3) * 0.58
    return (low + high) / 2 - half, (low + high) / 2 + half


def row_times_column(
    A: Any, B: Any, row: int, col: int, *, names: tuple[str, str] = ("A", "B"), title: str = ""
) -> Picture:
    """Draw A, B and A @ B, with one row, one column and the one number that they make.

    Parameters
    ----------
    A, B : (n, m) and (m, k)
        Up to 8 rows and columns.
    row, col : int
        Which cell of the product is shown.

    Raises
    ------
    ValueError
        If the shapes do not fit, are too large, or the cell is not there.
    """
    left_, right_ = as_matrix(A, "A"), as_matrix(B, "B")
    if left_.shape[1] != right_.shape[0]:
        raise ValueError(
            f"A @ B needs as many columns in A as rows in B, got {left_.shape} @ {right_.shape}"
        )
    if max(*left_.shape, *right_.shape) > 8:
        raise ValueError(
            f"row_times_column draws up to 8 rows and columns, got {left_.shape} @ {right_.shape}"
        )
    out = left_ @ right_
    if not (0 <= row < out.shape[0] and 0 <= col < out.shape[1]):
        raise ValueError(f"the product has shape {out.shape}, so it has no cell {(row, col)}")
    # Whole numbers are written as such: 8, not 8.00.
    whole = all((m == np.round(m)).all() for m in (left_, right_))
    parts = [m.astype(int) if whole else m for m in (left_, right_, out)]
    cells = [texts(part) for part in parts]
    heads = [names[0], names[1], f"{names[0]} @ {names[1]}"]
    marks = [
        [(row, c) for c in range(left_.shape[1])],
        [(r, col) for r in range(left_.shape[1])],
        [(row, col)],
    ]
    pairs = [(a, b[col]) for a, b in zip(cells[0][row], cells[1], strict=True)]
    told = pairs  # many products with 0 are only counted, not written
    if len(pairs) > 4:
        told = [pair for pair, a in zip(pairs, left_[row], strict=True) if a != 0] or pairs[:1]
    products = [f"{a} · " + (f"({b})" if b.startswith("-") else b) for a, b in told]
    if len(told) < len(pairs):
        products.append(f"{len(pairs) - len(told)} times 0")
    sum_ = f"row {row} · column {col}:  {' + '.join(products)} = {cells[2][row][col]}"

    def tell() -> str:
        told = [named(title, "Row times column")]
        for name, words in zip(heads, cells, strict=True):
            told += ["", name, *align_columns(words)]
        return "\n".join([*told, "", sum_.replace("·", "x")])

    def draw() -> Figure:
        room = pic.WIDEST - 2 * pic.PAD - 3 * 26 - 2 * 34
        room /= sum(len(words[0]) for words in cells)
        step = (widest([w for words in cells for w in words], min(42, room), 5), 32)
        sizes = [(len(words[0]) * step[0], len(words) * step[1]) for words in cells]
        width = max(2 * pic.PAD + sum(26 + w for w, _ in sizes) + 2 * 34, 380)
        below = pic.wrap(sum_, width - 2 * pic.PAD, 12)
        head, y = pic.heading(title, width - 2 * pic.PAD)
        tall = max(h for _, h in sizes)
        top = pic.PAD + y + 40
        figure, ax = pic.sheet(width, top + tall + 20 + 18 * len(below) + pic.PAD)
        pic.write_heading(ax, head)
        x = pic.PAD + 26
        for i, (words, (w, h)) in enumerate(zip(cells, sizes, strict=True)):
            y = top + (tall - h) / 2
            pic.write(ax, x + w / 2, y - 29, heads[i], weight="bold", size=12)
            rows, cols = range(len(words)), range(len(words[0]))
            grid(
                ax,
                x,
                y,
                words,
                step,
                rows=[*map(str, rows)],
                cols=[*map(str, cols)],
                marked=marks[i],
            )
            if i < 2:
                pic.write(ax, x + w + 17, top + tall / 2, "@="[i], size=16, color=pic.QUIET)
            x += w + 34 + 26
        note = "\n".join(below)
        pic.write(ax, pic.PAD, top + tall + 18, note, ha="left", va="top", size=12, linespacing=1.4)
        return figure

    def html() -> str:
        tables = []
        for name, words, marked in zip(heads, cells, marks, strict=True):
            rows = [
                (
                    str(r),
                    [pic.td(w, MARKED if (r, c) in marked else PLAIN) for c, w in enumerate(ws)],
                )
                for r, ws in enumerate(words)
            ]
            tables.append(pic.html_table(name, [str(c) for c in range(len(words[0]))], rows))
        return pic.side_by_side(tables, title) + f"<p>{pic.text_html(sum_)}</p>"

    alt = f"{named(title, 'Row times column')}: {heads[0]}, {heads[1]} and {heads[2]}; {sum_}."
    return Picture(alt=alt, tell=tell, draw=draw, html=html)


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
        left = pic.PAD + max(map(pic.text_width, names)) + 10
        longest = max(map(pic.text_width, keys))
        room = (pic.WIDEST - left - 80) / n
        step = (max(widest(cells, 54), min(longest + 12, room)), 34)
        size = pic.BODY * min(1, (step[0] - 6) / longest) if longest else pic.BODY
        width = left + n * step[0] + 74
        head, y = pic.heading(title, width - 2 * pic.PAD)
        top_, gap, bars = pic.PAD + y + 18, 12, 84
        figure, ax = pic.sheet(width, top_ + 4 * step[1] + 3 * gap + bars + 32)
        pic.write_heading(ax, head)
        for r, words in enumerate(cells):
            y = top_ + r * (step[1] + gap)
            grid(ax, left, y, [words], step, colours=[colours[r]])
            pic.write(ax, left - 8, y + step[1] / 2, names[r], ha="right")
            pic.write(
                ax, left + n * step[0] + 8, y + step[1] / 2, sums[r], ha="left", color=pic.QUIET
            )
        floor = top_ + 4 * step[1] + 3 * gap + bars + 6
        ax.plot([left, left + n * step[0]], [floor, floor], color=pic.LINE, linewidth=1)
        spots = left + (np.arange(n) + 0.5) * step[0]
        ax.bar(spots, -weights * bars, 0.55 * step[0], bottom=floor, color=pic.BLUE)
        pic.write(ax, left - 8, floor - bars / 2, "as bars", ha="right", color=pic.QUIET)
        for spot, key in zip(spots, keys, strict=True):
            for height in (top_ - 9, floor + 11):
                pic.write(ax, spot, height, key, size=size, color=pic.QUIET)
        return figure

    def html() -> str:
        rows = []
        for name, words, paints, total in zip(names, cells, colours, sums, strict=True):
            shown = [pic.td(w, css(colour)) for w, colour in zip(words, paints, strict=True)]
            rows.append((name, [*shown, pic.td(total)]))
        return pic.html_table(title, [*keys, ""], rows, over="key (who is read)")

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
