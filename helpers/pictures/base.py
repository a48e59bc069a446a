"""What all pictures share: a picture can be drawn, shown as an HTML table, and told in words.

A notebook's output holds three things for each picture: the PNG that you see, a short description
for screen readers (`alt`), and the *twin*: the same content as plain text, with the numbers. Tests
compare the twins, because nobody can compare PNGs. `tables()` swaps every PNG for an HTML table.

Lengths are CSS pixels throughout; a picture is drawn with two dots a pixel, so that it is crisp.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from helpers.pictures.colours import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FONT = "DejaVu Sans"  # comes with matplotlib: the same letters on every machine


BODY, TITLE = 11, 13  # letter sizes


PAD = 10  # white margin around every picture


WIDEST = 900


_tables: bool | None = None  # None: ask the environment


def tables(on: bool = True) -> None:
    """Draw every picture from now on as an HTML table (for screen readers), or as a picture again.

    ``ATTENTION_TABLES=1`` in the environment does the same from the start.
    """
    global _tables
    _tables = bool(on)


def tables_on() -> bool:
    """Whether pictures are drawn as HTML tables at the moment."""
    return os.environ.get("ATTENTION_TABLES") == "1" if _tables is None else _tables


class Picture:
    """One picture with three faces: drawn, as an HTML table, and in words.

    Parameters
    ----------
    alt : str
        One or two sentences for those who cannot see the picture.
    tell : () -> str
        The twin: title, axes and rounded numbers as plain text. This is ``str(picture)``.
    draw : () -> Figure
        Draws it with matplotlib.
    html : () -> str
        Draws it as HTML.
    """

    def __init__(
        self,
        *,
        alt: str,
        tell: Callable[[], str],
        draw: Callable[[], Figure],
        html: Callable[[], str],
    ) -> None:
        self.alt = alt
        self._tell, self._draw, self._html = tell, draw, html

    def __str__(self) -> str:
        return self._tell()

    __repr__ = __str__

    def figure(self) -> Figure:
        """Draw it as a matplotlib figure (never through pyplot, so nothing leaks)."""
        return self._draw()

    def html(self) -> str:
        """Draw it as HTML, legible on a light and on a dark page."""
        return self._html()

    def png(self) -> bytes:
        """Draw it as a PNG, two dots a CSS pixel."""
        return _png(self.figure())

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        data = {"text/plain": str(self)}
        if tables_on():
            return data | {"text/html": self.html()}, {}
        figure = self.figure()
        width, height = (round(inches * 72) for inches in figure.get_size_inches())
        data["image/png"] = base64.b64encode(_png(figure)).decode()
        return data, {"image/png": {"alt": self.alt, "width": width, "height": height}}


def canvas(width: float, height: float) -> Figure:
    """Make an empty white figure of that many CSS pixels."""
    from matplotlib.figure import Figure

    return Figure(figsize=(round(width) / 72, round(height) / 72), dpi=144, facecolor="white")


def sheet(width: float, height: float) -> tuple[Figure, Axes]:
    """Make a figure with one invisible axes over all of it: x to the right, y down, CSS pixels."""
    figure = canvas(width, height)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.axis("off")
    return figure, ax


def write(ax: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write a text, by default centred on (x, y), in the house's letters."""
    style = {"size": BODY, "color": INK, "ha": "center", "va": "center"} | style
    ax.text(x, y, text, family=FONT, parse_math=False, **style)


def _png(figure: Figure) -> bytes:
    """Draw a figure and store it with few colours: a third of the file, no difference to see."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas = figure.canvas if hasattr(figure.canvas, "buffer_rgba") else FigureCanvasAgg(figure)
    canvas.draw()
    dots = np.asarray(canvas.buffer_rgba()).view("<u4")[..., 0]  # (height, width)
    # Six bits for each of red, green and blue name a shade.
    shade = dots >> 2 & 0x3F | dots >> 4 & 0xFC0 | dots >> 6 & 0x3F000
    count = np.bincount(shade.ravel(), minlength=1 << 18)
    exact = np.zeros(1 << 18, "<u4")
    exact[shade] = dots
    seen = np.flatnonzero(count)
    kept = seen[np.argsort(-count[seen], kind="stable")[:96]]
    # The most frequent shades make the palette; each other one goes to the nearest of them.
    rgb = exact.view("u1").reshape(-1, 4)[:, :3].astype("f4")
    distance = (rgb[kept] ** 2).sum(1) - 2 * rgb[seen] @ rgb[kept].T
    place = np.zeros(1 << 18, "u1")
    place[seen] = distance.argmin(1)
    image = Image.fromarray(place[shade])
    image.putpalette(rgb[kept].astype("u1").tobytes())
    file = io.BytesIO()
    image.save(file, "PNG", dpi=(144, 144), compress_level=8)
    return file.getvalue()


@lru_cache(maxsize=4096)
def text_width(text: str, size: float = BODY, bold: bool = False) -> float:
    """Measure a text, in CSS pixels."""
    font = _font(bold)
    font.set_size(size, 72)
    font.set_text(text, 0.0)
    return font.get_width_height()[0] / 64


@lru_cache
def _font(bold: bool) -> Any:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return get_font(findfont(FontProperties(family=FONT, weight="bold" if bold else "normal")))


def break_lines(text: str, width: float, size: float = BODY, bold: bool = False) -> list[str]:
    """Break a text into lines that are at most `width` wide; words break only if they must."""
    done: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            longer = f"{line} {word}".strip()
            if not line or text_width(longer, size, bold) <= width:
                line = longer
            else:
                done.append(line)
                line = word
        done.append(line)
    return done


def heading(text: str, width: float, size: float = TITLE) -> tuple[list[str], float]:
    """Break a title into lines, and say how high they stand together with the gap below."""
    if not text:
        return [], 0
    title = break_lines(text, width, size, bold=True)
    return title, round(1.31 * size) * len(title) + 7


def write_heading(ax: Axes, title: Sequence[str], x: float = PAD, y: float = PAD) -> None:
    """Write the lines of a title, left-aligned."""
    write(
        ax, x, y, "\n".join(title), size=TITLE, weight="bold", ha="left", va="top", linespacing=1.25
    )


def named(title: str, otherwise: str) -> str:
    """What kind of picture it is, with its title if it has one."""
    return f"{otherwise}: {title}" if title else otherwise
