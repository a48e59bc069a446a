"""Pictures that only notebook 03 shows: `softmax_steps`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_base.numbers import as_array, bracketed, number, texts
from helpers.pictures import base
from helpers.pictures.base import Picture, titled
from helpers.pictures.checks import as_mask, as_names
from helpers.pictures.colours import BLUE, LINE, QUIET, fills, paint
from helpers.pictures.table import Cell, Table, grid, widest

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
