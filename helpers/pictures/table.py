"""One description of a table, from which its text, its HTML and its drawing come.

A picture describes its cells once: a `Cell` is a text and how it looks, a `Table` is rows of cells
under headers. ``table.text()`` goes into the text version, ``table.html()`` is read by screen
readers, and `grid` draws the same cells with matplotlib.

What a look means in HTML is said once, in `CSS`. ``table.html()`` writes it into every cell,
because GitHub and untrusted notebooks remove style sheets: light cells with dark letters, to be
read on any page. ``table.html(classes=True)`` writes class names instead, for a page with the style
sheet `RULES`, and colours that follow the page, which is light or dark: less to send, which counts
in an explorer, where a table travels at every step of a slider.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from attention_base.numbers import align_columns, texts
from helpers.pictures import base
from helpers.pictures.colours import (
    CELL,
    GLOW,
    INK,
    MARKED_CELL,
    ORANGE,
    QUIET,
    SKY,
    Fill,
    by_theme,
)

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
    ".plain": f"background:{CELL};color:{INK};",
    ".marked": f"background:{MARKED_CELL};color:{INK};"
    f"outline:2px solid {ORANGE};outline-offset:-2px;",
    ".masked": "background:#d9d9d9 repeating-linear-gradient(45deg,#d9d9d9 0 4px,#b5b5b5 4px 6px);"
    f"color:{INK};",
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


RULES = by_theme(_rules(CSS, "") + "".join(_rules(SIZES[size], size) for size in SIZES))


class Cell(NamedTuple):
    """One cell of a table."""

    text: str  # what it says
    # "plain", "marked", "masked", "framed", "faint" or "bold", as `CSS` describes them; several
    # with spaces between; or none.
    look: str = ""
    fill: Fill | None = None  # its background, and letters to be read on it; see `colours.fills`
    note: str = ""  # shows when the mouse rests on it
    # A bar in front of the text, as a share of the longest possible one, 0 to 1. The look is then
    # that of the bar: "best", or none.
    bar: float | None = None


def plain_cells(
    texts: Iterable[Iterable[str]], marked: Container[tuple[int, int]] = ()
) -> list[list[Cell]]:
    """Make rows of plain cells; those that `marked` names by (row, column) are marked."""
    return [
        [Cell(text, "marked" if (r, c) in marked else "plain") for c, text in enumerate(row)]
        for r, row in enumerate(texts)
    ]


@dataclass(frozen=True)
class Table:
    """Rows of cells under headers."""

    columns: Sequence[str]  # one header a column
    rows: Sequence[tuple[str, Sequence[Cell]]]  # one cell a column
    caption: str = ""  # the title, or nothing
    corner: str = ""  # what the headers of the rows are
    over: str = ""  # what those of the columns are
    size: str = ""  # "" where numbers are to be read; "small" or "tiny" where there are many cells
    framed_row: int | None = None  # a row to draw a frame around
    bar_width: int = 110  # how long the longest possible bar is, in CSS pixels

    @property
    def names(self) -> list[str]:
        """The headers of the rows."""
        return [name for name, _ in self.rows]

    @property
    def cells(self) -> list[Sequence[Cell]]:
        """The cells, row by row."""
        return [cells for _, cells in self.rows]

    def text(self, *, headers: bool = True) -> str:
        """Write the cells as text, in aligned columns; the caption is not part of it.

        A corner heads the names of the rows. Where the columns have a name too (`over`), the
        text version of the picture tells both.
        """
        texts = [[cell.text for cell in row] for row in self.cells]
        if not headers:
            return "\n".join(align_columns(texts))
        names = ["" if self.over else self.corner, *self.names]
        if not names[0]:
            width = max(map(len, names))
            names = [name.ljust(width) for name in names]
        lines = zip(names, [self.columns, *texts], strict=True)
        return "\n".join(align_columns([[name, *words] for name, words in lines]))

    def html(self, *, classes: bool = False) -> str:
        """Write it as an HTML table with scoped headers, for readers and screen readers.

        `classes`: the page has the style sheet `RULES`.
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
        corner, column = tag("th", "axis name", scope="col"), tag("th", scope="col")
        html += [_header(corner, self.corner, tag)]
        html += [_header(column, name, tag) for name in self.columns]
        html.append("</tr></thead><tbody>")
        header = tag("th", "name", scope="row")
        for r, (name, cells) in enumerate(self.rows):
            row = tag("tr", "framed" if r == self.framed_row else "")
            html.append(f"{row}{_header(header, name, tag)}")
            html += [_cell(cell, tag, self.bar_width) for cell in cells]
            html.append("</tr>")
        html.append("</tbody></table>")
        return "".join(html)


def numbered(cells: list[list[Cell]], **headers: str) -> Table:
    """Make a table whose rows and columns are numbered."""
    columns = [str(c) for c in range(len(cells[0]))]
    return Table(columns, [(str(r), row) for r, row in enumerate(cells)], **headers)


def in_columns(
    corner: str,
    names: Iterable[Any],
    columns: dict[str, Any],
    marked: Sequence[tuple[int, int]] = (),
) -> Table:
    """Make a table of columns; each has as many decimals as it needs."""
    cells = plain_cells(zip(*map(texts, columns.values()), strict=True), marked)
    return Table(list(columns), list(zip(map(str, names), cells, strict=True)), corner=corner)


def _header(opened: str, text: str, tag: Callable[..., str]) -> str:
    """Write a header; one without words would be read out as an empty header, so it is a cell."""
    return f"{opened}{text_html(text)}</th>" if text else f"{tag('td', 'empty')}</td>"


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
        named, style = f' class="{look}"' if look else "", by_theme(style)
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
    """Make a text safe inside HTML.

    >>> text_html('"q" < 1')
    '&quot;q&quot; &lt; 1'
    """
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
    cells: Sequence[Sequence[Cell]],
    widths: Sequence[float],
    height: float,
    *,
    names: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> None:
    """Draw rows of cells with their upper left corner at (left, top), in CSS pixels.

    Cells are filled, plain or marked. `names` stand to the left of the rows, `columns` above.
    """
    from matplotlib.patches import Rectangle

    lefts = [left + sum(widths[:c]) for c in range(len(widths))]
    marked = []
    for r, row in enumerate(cells):
        y = top + r * height
        for x, width, cell in zip(lefts, widths, row, strict=True):
            place = (x, y), width, height
            fill = cell.fill or Fill(CELL, INK)
            if cell.look == "marked":
                fill = Fill(MARKED_CELL, INK)
                marked.append(place)
            ax.add_patch(Rectangle(*place, facecolor=fill.code, edgecolor="white", linewidth=1.5))
            base.write(
                ax, x + width / 2, y + height / 2, cell.text, color=fill.ink, va="center_baseline"
            )
    for place in marked:  # on top of the neighbours' edges
        ax.add_patch(Rectangle(*place, fill=False, edgecolor=ORANGE, linewidth=2))
    for r, name in enumerate(names):
        base.write(ax, left - 6, top + (r + 0.5) * height, name, ha="right", color=QUIET)
    for x, width, name in zip(lefts, widths, columns, strict=bool(columns)):
        base.write(ax, x + width / 2, top - 9, name, color=QUIET)


def widest(texts: Iterable[str], least: float, margin: float = 12) -> float:
    """How wide a column must be for all its texts."""
    return max([least, *(base.text_width(text) + margin for text in texts)])
