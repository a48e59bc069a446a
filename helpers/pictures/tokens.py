"""Tokens: which output reads which input, and which word the outputs at “it” let us guess."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_base.numbers import described
from helpers.pictures import base
from helpers.pictures.base import Picture, titled
from helpers.pictures.checks import as_matrix, as_names, is_whole
from helpers.pictures.colours import BLUE, CELL, FAINT, INK, ORANGE, QUIET, Fill
from helpers.pictures.matrix import Heatmap, heatmap
from helpers.pictures.table import Cell, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def staircase(T: int, *, title: str = "") -> Picture:
    """Draw who feeds whom: an arrow from each input to its own output, and to every later one.

    Parameters
    ----------
    T : int
        How many tokens, 1 to 12.

    Raises
    ------
    ValueError
        If T is out of range.
    """
    if not is_whole(T, 1, 12):
        raise ValueError(f"staircase draws 1 to 12 tokens, got {described(T)} for T")
    may = np.tri(T, dtype=bool)  # row t, column j: output t reads input j
    reads = [_inputs_in_words(t) for t in range(T)]
    text_lines = [titled("Who feeds whom", title)]
    text_lines += [f"output {t} reads {inputs}" for t, inputs in enumerate(reads)]
    table = Table(
        [str(j) for j in range(T)],
        [(str(t), [_arrow_cell(may[t, j], t == j) for j in range(T)]) for t in range(T)],
        title,
        corner="output",
        over="input",
    )
    return Picture(
        alt=f"{titled('Who feeds whom', title)}: {T} inputs below, {T} outputs above, "
        f"{int(may.sum())} arrows; output {T - 1} reads {reads[-1]}.",
        text="\n".join(text_lines),
        draw=lambda: _draw_staircase(may, title),
        html=table.html,
    )


def _inputs_in_words(t: int) -> str:
    """Say which inputs output t reads."""
    return f"input{'s' * (t > 1)} {', '.join(map(str, range(t)))} and itself" if t else "itself"


def _arrow_cell(may: bool, own: bool) -> Cell:
    if not may:
        return Cell("", "masked", note="no arrow")
    return Cell("self" if own else "yes", fill=Fill(ORANGE if own else BLUE, "white"))


def _draw_staircase(may: np.ndarray, title: str) -> Figure:
    """Draw inputs in a row, and above them each output one step higher than the one before."""
    T = len(may)
    step, rise = min(72, 820 / T), 22
    width = max(2 * base.PAD + 60 + T * step, 370)
    lines, y = base.heading(title, width - 2 * base.PAD)
    low = base.PAD + y + 92 + rise * (T - 1) + 34  # the line of the inputs
    figure, ax = base.empty_page(width, low + 48)
    base.write_heading(ax, lines)
    across = [base.PAD + 60 + (j + 0.5) * step for j in range(T)]
    high = [low - 100 - rise * t for t in range(T)]
    for t, j in np.argwhere(may):
        own = t == j
        ax.annotate(
            "", (across[t], high[t]), (across[j], low),
            arrowprops={
                "arrowstyle": "-|>,head_width=0.22,head_length=0.42",
                "color": ORANGE if own else FAINT,
                "linewidth": 2 if own else 1,
                "zorder": 2 if own else 1,
                "antialiased": own,  # smooth slanted lines double the file
                "shrinkA": 14, "shrinkB": 14,
            },
        )  # fmt: skip
    for t in range(T):
        _draw_token(ax, across[t], low, str(t), CELL)
        _draw_token(ax, across[t], high[t], str(t), "white")
    base.write(ax, base.PAD, low, "inputs", ha="left", color=QUIET)
    base.write(ax, base.PAD, high[0], "outputs", ha="left", color=QUIET)
    base.write(ax, base.PAD, low + 34, "orange: a token's own arrow", ha="left", color=ORANGE)
    base.write(ax, base.PAD + 190, low + 34, "blue: from another token", ha="left", color=BLUE)
    return figure


def _draw_token(ax: Axes, x: float, y: float, text: str, fill: str) -> None:
    from matplotlib.patches import Circle

    ax.add_patch(Circle((x, y), 11, facecolor=fill, edgecolor=INK, linewidth=1.2, zorder=3))
    base.write(ax, x, y, text, size=10, va="center_baseline", zorder=4)


def guessed_next(outputs: Any, texts: Sequence[str], *, title: str = "") -> Heatmap:
    """Draw the output at “it” for each text, and the word that we would guess next.

    The guess is “slept” if the channel *animal* is larger, “cooled” if *food* is, and none, “???”,
    if they are equal up to rounding.

    Parameters
    ----------
    outputs : (n_text, 2)
        The channels animal and food, from 0 to 1.
    texts : sequence of str
        They stand beside the rows.

    Raises
    ------
    ValueError
        If `outputs` is not (n_text, 2), or there is not one text for each row.
    """
    values = as_matrix(outputs, "outputs")
    if values.shape[1] != 2:
        raise ValueError(f"guessed_next draws animal and food, (n_text, 2), got {values.shape}")
    named = zip(as_names(texts, len(values), "texts", "outputs"), values, strict=True)
    rows = [f"{text} → {_guess(*channels)}" for text, channels in named]
    cols = {"output at “it”": ["animal", "food"]}
    return heatmap(values, rows={"text": rows}, cols=cols, vmin=0, vmax=1, title=title)


def _guess(animal: float, food: float) -> str:
    if abs(animal - food) < 1e-6:
        return "???"
    return "slept" if animal > food else "cooled"
