"""One description of a table, from which its text, its HTML and its drawing come.

A picture describes its cells once: a `Cell` is a text and how it looks, a `Table` is rows of cells
under headers. ``table.text()`` goes into the twin, ``table.html()`` is read by screen readers, and
`grid` draws the same cells with matplotlib.

What a look means in HTML is said once, in `CSS`. ``table.html()`` writes it into every cell,
because GitHub and untrusted notebooks remove style sheets. ``table.html(classes=True)`` writes
class names instead, for a place that holds the `STYLESHEET`: less than half the size, which counts
in an explorer, where a table travels at every step of a slider.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from helpers.pictures import base
from helpers.pictures.colours import CARD, GLOW, INK, MARK, ORANGE, QUIET, SKY, Fill, ink
from helpers.show import align_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# By tag; and by look, with a dot in front.
CSS = {
    "table": "border-collapse:separate;border-spacing:2px;border:none;margin:4px 0;"
    "line-height:1.4;font-size:12px;font-variant-numeric:tabular-nums;color:inherit;",
    "caption": "caption-side:top;text-align:left;font-weight:bold;font-size:13px;"
    "padding:2px 0 6px;color:inherit;",
    "tr": "background:none;",  # JupyterLab would stripe the rows
    "th": "text-align:center;padding:3px 6px;font-weight:normal;white-space:nowrap;",
    "td": "text-align:center;padding:5px 4px;min-width:34px;white-space:nowrap;",
    "i": "display:inline-block;vertical-align:middle;height:16px;margin-right:5px;"
    f"background:{SKY};",  # a bar
    ".name": "text-align:right;",  # the header of a row
    ".axis": "opacity:.8;",  # what the rows are, what the columns are
    ".plain": f"background:{CARD};color:#222;",
    ".marked": f"background:{MARK};color:#222;outline:2px solid {ORANGE};outline-offset:-2px;",
    ".masked": "background:#d9d9d9 repeating-linear-gradient(45deg,#d9d9d9 0 4px,#b5b5b5 4px 6px);"
    "color:#222;",
    ".framed": f"outline:3px solid {GLOW};outline-offset:-1px;",  # a cell, or a whole row
    ".faint": "opacity:.75;",
    ".bold": "font-weight:bold;",
    ".empty": "min-width:0;padding:0;",  # above the names of the rows
    ".best": f"background:{GLOW};",  # the bar that matters
}
# What differs in a table of many cells: "small" has room for ".25", "tiny" for colours alone, with
# the numbers there for screen readers and for the mouse.
SIZES = {
    "": {},
    "small": {
        "table": "border-spacing:1px;",
        "th": "padding:0 3px;font-size:11px;",
        "td": "padding:0;min-width:21px;height:20px;font-size:10px;",
    },
    "tiny": {
        "th": "padding:0 2px;font-size:9px;",
        "td": "padding:0;min-width:14px;height:14px;font-size:0;",
    },
}
CLASS = "attention-table"


def _rules(css: dict[str, str], size: str) -> str:
    # The class stands three times because JupyterLab's own rules for tables have to yield.
    table = 3 * f".{CLASS}" + (f".{size}" if size else "")
    return "".join(f"{table}{'' if name == 'table' else f' {name}'}{{{css[name]}}}" for name in css)


STYLESHEET = f"<style>{_rules(CSS, '')}{''.join(_rules(SIZES[s], s) for s in SIZES)}</style>"


class Cell(NamedTuple):
    """One cell of a table.

    Parameters
    ----------
    text : str
        What it says.
    look : str
        "plain", "marked", "masked", "framed", "faint" or "bold", as `CSS` describes them; several
        with spaces between; or none.
    fill : Fill
        Its background, and letters to be read on it; see `colours.fills`.
    note : str
        Shows when the mouse rests on it.
    bar : float
        A bar in front of the text, as a share of the longest possible one, 0 to 1. The look is
        then that of the bar: "best", or none.
    """

    text: str
    look: str = ""
    fill: Fill | None = None
    note: str = ""
    bar: float | None = None


@dataclass(frozen=True)
class Table:
    """Rows of cells under headers.

    Parameters
    ----------
    columns : sequence of str
        One header a column.
    rows : sequence of (header, cells)
        One cell a column.
    caption : str
        The title, or nothing.
    corner, over : str
        What the headers of the rows are, what those of the columns are.
    size : str
        "" where numbers are to be read; "small" or "tiny" where there are many cells.
    framed_row : int
        A row to draw a frame around.
    bar_width : int
        How long the longest possible bar is, in CSS pixels.
    """

    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    caption: str = ""
    corner: str = ""
    over: str = ""
    size: str = ""
    framed_row: int | None = None
    bar_width: int = 110

    def text(self, *, headers: bool = True) -> str:
        """Write the cells as text, in aligned columns; the caption is up to the twin.

        A corner heads the names of the rows. Where the columns have a name too (`over`), the twin
        tells both.
        """
        cells = [[cell.text for cell in cells] for _, cells in self.rows]
        if not headers:
            return "\n".join(align_columns(cells))
        names = ["" if self.over else self.corner, *(name for name, _ in self.rows)]
        if not names[0]:
            width = max(map(len, names))
            names = [name.ljust(width) for name in names]
        lines = zip(names, [self.columns, *cells], strict=True)
        return "\n".join(align_columns([[name, *words] for name, words in lines]))

    def html(self, *, classes: bool = False) -> str:
        """Write it as an HTML table with scoped headers, for readers and screen readers.

        `classes`: the page holds the `STYLESHEET`.
        """
        tag = partial(_tag, size=self.size, classes=classes)
        html = [f'<table class="{CLASS} {self.size}">' if classes else tag("table")]
        if self.caption:
            html.append(f"{tag('caption')}{text_html(self.caption)}</caption>")
        html += ["<thead>", tag("tr")]
        if self.over:
            over = tag("th", "axis", scope="colgroup", colspan=len(self.columns))
            html.append(
                f"{tag('td', 'empty')}</td>{over}{text_html(self.over)}</th></tr>{tag('tr')}"
            )
        html.append(f"{tag('th', 'axis name', scope='col')}{text_html(self.corner)}</th>")
        column = tag("th", scope="col")
        html += [f"{column}{text_html(name)}</th>" for name in self.columns]
        html.append("</tr></thead><tbody>")
        header = tag("th", "name", scope="row")
        for r, (name, cells) in enumerate(self.rows):
            row = tag("tr", "framed" if r == self.framed_row else "")
            html.append(f"{row}{header}{text_html(name)}</th>")
            html += [_cell(cell, tag, self.bar_width) for cell in cells]
            html.append("</tr>")
        html.append("</tbody></table>")
        return "".join(html)


def _cell(cell: Cell, tag: Callable[..., str], bar_width: int) -> str:
    text, look, fill, note, bar = cell
    style = f"background:{fill.code};color:{fill.ink};" if fill else ""
    word, title = text_html(text), {"title": text_html(note)} if note else {}
    if bar is None:
        return f"{tag('td', look, style, **title)}{word}</td>"
    drawn = tag("i", look, f"width:{bar_width * bar:.1f}px")
    style += f"text-align:left;min-width:{bar_width + 40}px;"
    return f"{tag('td', '', style, **title)}{drawn}</i>{word}</td>"


def _tag(
    name: str, look: str = "", style: str = "", *, size: str, classes: bool, **attributes: Any
) -> str:
    """Open an HTML element that looks as `CSS` describes it, by classes or by its own style."""
    if classes:
        named = f' class="{look}"' if look else ""
    else:
        named, style = "", _css(name, look, size) + style
    styled = f' style="{style}"' if style else ""
    more = "".join([f' {key}="{value}"' for key, value in attributes.items()])
    return f"<{name}{named}{styled}{more}>"


@lru_cache
def _css(name: str, look: str, size: str) -> str:
    looks = "".join(CSS[f".{one}"] for one in look.split())
    return CSS[name] + SIZES[size].get(name, "") + looks


def text_html(text: str) -> str:
    """Make a text safe inside HTML."""
    return escape(str(text), quote=True)


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


# --- Until every picture and explorer describes its tables as a Table ---

CELL = "text-align:center;padding:5px 4px;min-width:34px;white-space:nowrap;"


HEAD = "text-align:center;padding:3px 6px;font-weight:normal;white-space:nowrap;"


HATCH = (
    "background:#d9d9d9 repeating-linear-gradient(45deg,#d9d9d9 0 4px,#b5b5b5 4px 6px);color:#222;"
)


FRAME = "outline:3px solid #e8792b;outline-offset:-1px;"  # to be seen on light and on dark


PLAIN = f"background:{CARD};color:#222;"  # the same for HTML


MARKED = f"background:{MARK};color:#222;outline:2px solid {ORANGE};outline-offset:-2px;"


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
