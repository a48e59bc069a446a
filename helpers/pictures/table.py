"""Tables: as HTML for readers and screen readers, and drawn cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from helpers.pictures import base
from helpers.pictures.colours import CARD, INK, MARK, ORANGE, QUIET, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes


CELL = "text-align:center;padding:5px 4px;min-width:34px;white-space:nowrap;"


HEAD = "text-align:center;padding:3px 6px;font-weight:normal;white-space:nowrap;"


HATCH = (
    "background:#d9d9d9 repeating-linear-gradient(45deg,#d9d9d9 0 4px,#b5b5b5 4px 6px);color:#222;"
)


FRAME = "outline:3px solid #e8792b;outline-offset:-1px;"  # to be seen on light and on dark


PLAIN = f"background:{CARD};color:#222;"  # the same for HTML


MARKED = f"background:{MARK};color:#222;outline:2px solid {ORANGE};outline-offset:-2px;"


def text_html(text: str) -> str:
    """Make a text safe inside HTML."""
    return escape(str(text), quote=True)


def td(text: str, style: str = "", note: str = "") -> str:
    """Make one cell of an HTML table; `note` shows when the mouse rests on it."""
    title = f' title="{text_html(note)}"' if note else ""
    return f'<td style="{CELL}{style}"{title}>{text_html(text)}</td>'


def html_table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[tuple[str, Sequence[str]]],
    *,
    corner: str = "",
    over: str = "",
    small: bool = False,
) -> str:
    """Build an HTML table for readers and screen readers: caption, scoped headers, inline styles.

    Parameters
    ----------
    caption : str
        The title, or nothing.
    columns : sequence of str
        One header a column.
    rows : sequence of (header, cells)
        Each cell is made by `td`.
    corner, over : str
        What the row headers and the column headers are.
    small : bool
        Many narrow columns: small headers.
    """
    head = HEAD + ("padding:0 2px;font-size:9px;" if small else "")
    plain = '<tr style="background:none">'  # JupyterLab would stripe the rows
    top = ""
    if caption:
        top = (
            '<caption style="caption-side:top;text-align:left;font-weight:bold;font-size:13px;'
            f'padding:2px 0 6px;color:inherit">{text_html(caption)}</caption>'
        )
    named = ""
    if over:
        named = (
            f'{plain}<td></td><th colspan="{len(columns)}" scope="colgroup" '
            f'style="{head}opacity:.8">{text_html(over)}</th></tr>'
        )
    heads = "".join(f'<th scope="col" style="{head}">{text_html(name)}</th>' for name in columns)
    body = "".join(
        f'{plain}<th scope="row" style="{head}text-align:right">{text_html(name)}</th>'
        f"{''.join(cells)}</tr>"
        for name, cells in rows
    )
    return (
        '<table style="border-collapse:separate;border-spacing:2px;border:none;margin:4px 0;'
        f'line-height:1.4;font-size:12px;font-variant-numeric:tabular-nums;color:inherit">{top}<thead>{named}'
        f'{plain}<th scope="col" style="{head}text-align:right;opacity:.8">{text_html(corner)}</th>'
        f"{heads}</tr></thead><tbody>{body}</tbody></table>"
    )


def side_by_side(parts: Sequence[str], title: str = "") -> str:
    """Put pieces of HTML next to each other, with a title over all of them."""
    head = f'<p style="font-weight:bold;margin:4px 0">{text_html(title)}</p>' if title else ""
    style = "display:flex;flex-wrap:wrap;gap:8px 28px;align-items:flex-start"
    return f'{head}<div style="{style}">{"".join(parts)}</div>'


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
            letters = INK
            if colours is not None:
                fill, letters = colours[r][c], str(ink(np.asarray(colours[r][c])))
            cell = Rectangle((x, y), w, h, facecolor=fill, edgecolor="white", linewidth=1.5)
            ax.add_patch(cell)
            base.write(ax, x + w / 2, y + h / 2, word, color=letters, va="center_baseline")
    for r, c in marked:
        frame = Rectangle((left + c * w, top + r * h), w, h, fill=False, linewidth=2)
        frame.set_edgecolor(ORANGE)
        ax.add_patch(frame)
    for r, name in enumerate(rows):
        base.write(ax, left - 6, top + (r + 0.5) * h, name, ha="right", color=QUIET)
    for c, name in enumerate(cols):
        base.write(ax, left + (c + 0.5) * w, top - 9, name, color=QUIET)


def widest(cells: Sequence[Sequence[str]], least: float, margin: float = 12) -> float:
    """How wide a column must be for all its words."""
    return max([least, *(base.text_width(word) + margin for row in cells for word in row)])
