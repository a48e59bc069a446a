"""What all pictures share: `Picture`, the switch to tables, and the measuring of texts.

A notebook's output holds three things for each picture: the PNG that you see, a short description
for screen readers (`alt`), and the text version: the same content as plain text, with the numbers.
Tests compare the text versions, because nobody can compare PNGs. `tables()` swaps every PNG for an
HTML table.

JupyterLab shows an output of the type image/png without its `alt`, so a learner's picture is HTML
with the PNG in it. Under ``ATTENTION_STORED=1``, as in make refresh, it is image/png with the `alt`
in its metadata: plain pictures are what GitHub and nbconvert show for sure.

A learner's picture is there twice, for JupyterLab's light and dark theme. Where a notebook is not
trusted, JupyterLab takes its style sheets away, and the images' own styles leave the light one.

Lengths are CSS pixels throughout; a picture is drawn with two dots a pixel, so that it is crisp.
"""

from __future__ import annotations

import base64
import io
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from helpers.pictures.checks import as_switch, as_text
from helpers.pictures.colours import INK, channels, dark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FONT = "DejaVu Sans"  # comes with matplotlib: the same letters on every machine
BODY, TITLE = 11, 13  # letter sizes
PAD = 10  # white margin around every picture
WIDEST, HIGHEST = 900, math.inf
SMALL = 10.5  # letters of ticks
TITLED = True  # whether the title stands in the picture: a slide has it above
SURFACE = 800  # dots: a shade that fills as many is kept as it is
NEARBY = 16  # of 255, in red, green or blue: how far another shade may move
TEXT_STYLE = {"family": FONT, "size": BODY, "color": INK, "parse_math": False}
TITLE_STYLE = TEXT_STYLE | {"size": TITLE, "weight": "bold", "linespacing": 1.25}

THEMES = """<style>
[data-jp-theme-light="false"] .attention-light {display: none}
[data-jp-theme-light="false"] .attention-dark {display: inline !important}
</style>"""

_tables: bool | None = None  # None: ask the environment


def tables(on: bool = True) -> None:
    """Draw every picture from now on as an HTML table (for screen readers), or as a picture again.

    ``ATTENTION_TABLES=1`` in the environment does the same from the start.
    """
    global _tables
    _tables = as_switch(on, "on")


def tables_on() -> bool:
    """Whether pictures are drawn as HTML tables at the moment."""
    return os.environ.get("ATTENTION_TABLES") == "1" if _tables is None else _tables


class Picture:
    """A picture in three forms: drawn, as HTML, and as text.

    Parameters
    ----------
    alt : str
        One or two sentences for those who cannot see the picture.
    text : str
        The text version: title, axes and rounded numbers as plain text. This is ``str(picture)``.
    draw : () -> Figure
        Draws it with matplotlib.
    html : () -> str
        Makes its HTML tables.
    parts : sequence of () -> Figure
        Draw its panels one by one, for slides on which all of them would be too small.
    """

    def __init__(
        self,
        *,
        alt: str,
        text: str,
        draw: Callable[[], Figure],
        html: Callable[[], str],
        parts: Sequence[Callable[[], Figure]] = (),
    ) -> None:
        self.alt = alt
        self._text, self._draw, self._html, self._parts = text, draw, html, parts

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def figure(self) -> Figure:
        """Draw it as a matplotlib figure (never through pyplot, so nothing leaks)."""
        with usual_settings():
            return self._draw()

    def panels(self) -> list[Figure]:
        """Draw each of its panels as a figure; none where it is not made of panels."""
        with usual_settings():
            return [draw() for draw in self._parts]

    def html(self) -> str:
        """Draw it as HTML, legible on a light and on a dark page."""
        return self._html()

    def png(self) -> bytes:
        """Draw it as a PNG, two dots a CSS pixel."""
        return png_of(self.figure())

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        data = {"text/plain": str(self)}
        if tables_on():
            return data | {"text/html": self.html()}, {}
        figure = self.figure()
        width, height = map(round, size_of(figure))
        png = png_of(figure)
        if os.environ.get("ATTENTION_STORED") == "1":
            metadata = {"alt": self.alt, "width": width, "height": height}
            return data | {"image/png": base64.b64encode(png).decode()}, {"image/png": metadata}
        images = [
            f'<img class="attention-{theme}" alt="{escape(self.alt)}" width="{width}" '
            f'height="{height}" style="max-width:100%;height:auto{hidden}" '
            f'src="data:image/png;base64,{base64.b64encode(drawn).decode()}">'
            for theme, hidden, drawn in (
                ("light", "", png),
                ("dark", ";display:none", darkened(png)),
            )
        ]
        return data | {"text/html": THEMES + "".join(images)}, {}


def titled(kind: str, title: str) -> str:
    """What kind of picture it is, with its title if it has one: "Curves: Loss"."""
    return f"{kind}: {title}" if as_text(title, "title") else kind


@contextmanager
def usual_settings() -> Iterator[None]:
    """Matplotlib's own settings for a while, whatever a user's matplotlibrc says."""
    from matplotlib import rc_context, rcParamsDefault

    of_session = ("backend", "interactive")
    usual = {name: rcParamsDefault[name] for name in rcParamsDefault if name not in of_session}
    with rc_context(usual):
        yield


@contextmanager
def on_a_slide(width: float, height: float) -> Iterator[None]:
    """Draw into so much room for a while, without titles, and with no letter below `BODY`."""
    global WIDEST, HIGHEST, SMALL, TITLED
    before = WIDEST, HIGHEST, SMALL, TITLED
    WIDEST, HIGHEST, SMALL, TITLED = width, height, BODY, False
    try:
        yield
    finally:
        WIDEST, HIGHEST, SMALL, TITLED = before


# --- Figures ----------------------------------------------------------------------------------


def empty_figure(width: float, height: float) -> Figure:
    """Make an empty white figure of that many CSS pixels."""
    from matplotlib.figure import Figure

    return Figure(figsize=(round(width) / 72, round(height) / 72), dpi=144, facecolor="white")


def size_of(figure: Figure) -> tuple[float, float]:
    """Width and height of a figure, in CSS pixels."""
    width, height = figure.get_size_inches()
    return 72 * width, 72 * height


def empty_page(width: float, height: float) -> tuple[Figure, Axes]:
    """Make a figure with one invisible axes over all of it: x to the right, y down, CSS pixels."""
    figure = empty_figure(width, height)
    width, height = size_of(figure)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.axis("off")
    return figure, ax


def axes_at(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Add axes to a figure, at a place in CSS pixels from its upper left corner."""
    wide, high = size_of(figure)
    return figure.add_axes((left / wide, 1 - (top + height) / high, width / wide, height / high))


def png_of(figure: Figure) -> bytes:
    """Draw a figure and store it with a palette of up to 256 colours, which makes a small file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas = figure.canvas if hasattr(figure.canvas, "buffer_rgba") else FigureCanvasAgg(figure)
    with usual_settings():
        canvas.draw()
    dots = np.asarray(canvas.buffer_rgba()).view("<u4")[..., 0]  # (height, width)
    # A shade is named by six bits for each of red, green and blue.
    shade = dots >> 2 & 0x3F | dots >> 4 & 0xFC0 | dots >> 6 & 0x3F000
    count = np.bincount(shade.ravel(), minlength=1 << 18)
    colour = np.zeros(1 << 18, "<u4")
    colour[shade] = dots
    found = np.flatnonzero(count)
    found = found[np.argsort(-count[found], kind="stable")]
    rgb = colour.view("u1").reshape(-1, 4)[found, :3].astype("f4")
    kept = _palette(rgb, count[found])
    distance = (rgb[kept] ** 2).sum(1) - 2 * rgb @ rgb[kept].T
    nearest = np.zeros(1 << 18, "u1")
    nearest[found] = distance.argmin(1)
    image = Image.fromarray(nearest[shade])
    image.putpalette(rgb[kept].astype("u1").tobytes())
    file = io.BytesIO()
    image.save(file, "PNG", dpi=(144, 144), compress_level=8)
    return file.getvalue()


def darkened(png: bytes) -> bytes:
    """Turn a PNG as `png_of` makes it into one for a dark page, whose ground shows through."""
    from PIL import Image

    image = Image.open(io.BytesIO(png))
    palette = iter(image.getpalette())
    codes = ["#{:02x}{:02x}{:02x}".format(*rgb) for rgb in zip(*[palette] * 3, strict=True)]
    image.putpalette([part for code in codes for part in channels(dark(code))])
    file = io.BytesIO()
    ground = codes.index("#ffffff")
    image.save(file, "PNG", dpi=(144, 144), compress_level=8, transparency=ground)
    return file.getvalue()


def _palette(rgb: np.ndarray, count: np.ndarray) -> list[int]:
    """Choose colours, of (n, 3) shades from the most frequent to the rarest.

    Pillow's quantize moves the colours of whole cells and makes white grey. Here the shades of
    surfaces stay as they are. Then shades are added, each time the one farthest from all others,
    until every shade of a letter's edge or a colour bar has one nearby.
    """
    kept = list(range(min(200, max(1, int((count >= SURFACE).sum())))))
    away = np.min([np.abs(rgb - rgb[k]).max(1) for k in kept], axis=0)
    while away.max() > NEARBY and len(kept) < 256:
        kept.append(int(away.argmax()))
        away = np.minimum(away, np.abs(rgb - rgb[kept[-1]]).max(1))
    return kept


# --- Texts ------------------------------------------------------------------------------------


def write(ax: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write a text, by default centred on (x, y), in the letters of all pictures."""
    style = TEXT_STYLE | {"ha": "center", "va": "center"} | style
    if not TITLED:
        style["size"] = max(style["size"], BODY)
    ax.text(x, y, text, **style)


@lru_cache(maxsize=4096)
def text_width(text: str, size: float = BODY, bold: bool = False) -> float:
    """Measure a text, in CSS pixels."""
    font = _font(bold)
    font.set_size(size, 72)
    font.set_text(text.replace("\n", " "), 0.0)  # a line break has no letter
    return font.get_width_height()[0] / 64


@lru_cache
def _font(bold: bool) -> Any:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    with usual_settings():
        return get_font(findfont(FontProperties(family=FONT, weight="bold" if bold else "normal")))


def break_lines(text: str, width: float, size: float = BODY, bold: bool = False) -> list[str]:
    """Break a text into lines that are at most `width` wide; words break only if they must."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            longer = f"{line} {word}".strip()
            if not line or text_width(longer, size, bold) <= width:
                line = longer
            else:
                lines.append(line)
                line = word
            while text_width(line, size, bold) > width and len(line) > 1:  # a word, such as a path
                end = 1
                while text_width(line[: end + 1], size, bold) <= width:
                    end += 1
                lines.append(line[:end])
                line = line[end:]
        lines.append(line)
    return lines


def heading(title: str, width: float, size: float = TITLE) -> tuple[str, float]:
    """Break a title into lines, and say how high they stand together with the gap below."""
    if not title or (size == TITLE and not TITLED):
        return "", 0
    lines = break_lines(title, width, size, bold=True)
    return "\n".join(lines), round(1.31 * size) * len(lines) + 7


def write_heading(ax: Axes, title: str) -> None:
    """Write the lines of a title into the upper left corner of a page."""
    write(ax, PAD, PAD, title, ha="left", va="top", **TITLE_STYLE)
