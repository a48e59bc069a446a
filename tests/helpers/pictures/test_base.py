"""What holds for every picture, and the switch from pictures to tables."""

import base64
import hashlib
import io
import itertools
import os
import re
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from functools import cache
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text
from PIL import Image

from helpers.pictures import (
    base,
    block_diagram,
    curves,
    encoder_decoder_diagram,
    head_diagram,
    heatmap,
    heatmaps,
    ladder,
    lookup_diagram,
    multi_head_diagram,
    ribbon,
    sheets,
)
from helpers.pictures.base import break_lines, darkened, png_of, text_width
from helpers.pictures.colours import GROUND, dark
from lesson import series_map
from tests.helpers.pictures import reading
from tests.helpers.pictures.examples import (
    BIG,
    EXAMPLES,
    HEATMAPS,
    LONG,
    MAY,
    SCORES,
    WEIGHTS,
    WORDS,
)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_picture_exists_in_words_and_as_html(name):
    shown = EXAMPLES[name]()
    assert len(str(shown).splitlines()) >= 2
    assert 20 < len(shown.alt) < 800
    html = shown.html()
    assert html.count("<table") == html.count("</table>") >= 1
    assert html.count('scope="row"') >= 1


@cache  # several tests look at it
def drawn(name):
    """The figure of a picture, its PNG, and its texts: not those of ticks outside the limits."""
    texts, draw = [], Text.draw
    figure = ALL[name]().figure()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", lambda self, to: (texts.append(self), draw(self, to)))
        return figure, png_of(figure), texts


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_text_is_cut_off_or_covered(name):
    figure, png, texts = drawn(name)
    assert len(png) < 70_000
    width, height = figure.bbox.size
    assert width <= 2 * base.WIDEST
    texts = [text for text in texts if text.get_text() and text.get_visible()]
    assert texts
    level = []
    for text in texts:
        box = text.get_window_extent()
        inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
        assert inside, f"cut off: {text.get_text()!r}"
        is_number = re.fullmatch(r"[−⁻-]?[\d.⁻⁰¹²³⁴-⁹]+", text.get_text())
        assert is_number or not text.get_parse_math(), f"{text.get_text()!r} would lose its $"
        if text.get_rotation() in (0, 90):
            level.append((text.get_text(), box.padded(-1)))
    for (one, first), (other, second) in itertools.combinations(level, 2):
        assert not first.overlaps(second), f"{one!r} lies on {other!r}"


@pytest.mark.parametrize("name", HEATMAPS)
def test_a_heatmap_says_the_same_drawn_in_its_table_and_in_words(name):
    shown = EXAMPLES[name]()
    figure, tables = shown.figure(), reading.read_html(shown.html())
    maps = [reading.read_heatmap(ax) for ax in figure.axes if not ax.get_images()]
    if maps[0].texts:
        told = reading.in_words(tables, str(shown))
        drawn = [heatmap.table() for heatmap in maps]
        for faces in zip(drawn, tables, told, strict=True):
            assert faces[0].said() == faces[1].said() == faces[2].said()
    for drawn, table in zip(maps, tables, strict=True):
        title = drawn.title or "".join(text.get_text() for text in figure.texts)
        assert table.caption.split() == title.split()
        assert (table.corner, table.over) == drawn.names
        assert f"row = {table.corner}, column = {table.over}" in str(shown)
        cells = [*np.ndindex(drawn.colours.shape[:2])]
        assert drawn.masked == {(r, c) for r, c in cells if table.notes[r][c] == "masked"}
        assert drawn.outlined == {(r, c) for r, c in cells if "outline" in table.styles[r][c]}
        free = [at for at in cells if at not in drawn.masked]
        fills = [reading.rgb(table.styles[r][c]["background"]) for r, c in free]
        assert np.abs(np.array([drawn.colours[at] for at in free]) - fills).max() < 0.002
        for r, c in drawn.texts:
            assert drawn.inks[r, c] == to_hex(table.styles[r][c]["color"])


@pytest.mark.parametrize("name", ["sheets", "many sheets", "why", "large why", "one token"])
def test_tables_say_the_same_drawn_in_html_and_in_words(name):
    shown = EXAMPLES[name]()
    (page,) = shown.figure().axes
    drawn, tables = reading.read_page(page), reading.read_html(shown.html())
    for grid, table, told in zip(
        drawn, tables, reading.in_words(tables, str(shown)), strict=name.endswith("sheets")
    ):
        assert grid.said() == table.said() == told.said()


@pytest.mark.parametrize("name", ["row times column", "wide rows"])
def test_factors_and_product_say_the_same_drawn_in_html_and_in_words(name):
    shown = EXAMPLES[name]()
    (page,) = shown.figure().axes
    drawn, tables = reading.read_page(page), reading.read_html(shown.html())
    assert [grid.said() for grid in drawn] == [table.said() for table in tables]
    for table in tables:
        told = reading.read_bare_text(str(shown), table.caption, len(table.names))
        assert told == table.cells
        assert table.caption in [text.get_text() for text in page.texts]


def test_output_carries_text_version_picture_and_alt():
    shown = heatmap(WEIGHTS, mask=MAY, title="Means")
    data, metadata = shown._repr_mimebundle_()
    assert set(data) == {"text/plain", "image/png"}
    assert data["text/plain"] == str(shown) == repr(shown)
    png = base64.b64decode(data["image/png"])
    width, height = Image.open(io.BytesIO(png)).size
    described = metadata["image/png"]
    assert (2 * described["width"], 2 * described["height"]) == (width, height)
    assert described["alt"] == shown.alt
    assert len(png) < 30_000


def test_the_switch_draws_tables(monkeypatch):
    shown = heatmap(WEIGHTS)
    base.tables()
    assert set(shown._repr_mimebundle_()[0]) == {"text/plain", "text/html"}
    base.tables(False)
    assert "image/png" in shown._repr_mimebundle_()[0]
    monkeypatch.setattr(base, "_tables", None)
    monkeypatch.setenv("ATTENTION_TABLES", "1")
    assert "text/html" in shown._repr_mimebundle_()[0]
    base.tables(False)  # the call has the last word
    assert "image/png" in shown._repr_mimebundle_()[0]


def test_no_dot_of_the_file_has_another_colour_than_was_drawn():
    """The shades of a colour bar are rare: none of them may turn into the grey of a letter."""
    values = np.random.default_rng(0).uniform(-0.2, 0.9, (13, 13))
    figure = heatmap(values, vmin=-1, vmax=1).figure()
    stored = np.asarray(Image.open(io.BytesIO(png_of(figure))).convert("RGB"))
    drawn = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    assert np.abs(stored.astype(int) - drawn).max() < 32


def test_the_few_colours_of_the_file_are_the_right_ones():
    shown = heatmap(SCORES, title="Scores")
    figure = shown.figure()
    dots = Image.open(io.BytesIO(png_of(figure))).convert("RGB")
    assert dots.getpixel((0, 0)) == (255, 255, 255)
    for row, col in itertools.product(range(6), repeat=2):
        x, y = figure.axes[0].transData.transform((col - 0.4, row - 0.4))
        colour = np.array(dots.getpixel((round(x), dots.height - round(y)))) / 255
        assert np.abs(colour - shown.content.colours[row, col]).max() < 0.02


# One of each kind, with all that can be in it.
REFERENCES = {
    "heatmap": lambda: heatmap(
        SCORES[:3, :4], rows=WORDS[:3], cols={"read": LONG[:4]}, mask=MAY[:3, 2:],
        outline=[(1, 0), (2, 3)], title="Scores and a title of two lines",
    ),
    "heatmap, colours": lambda: heatmap(BIG[:13] - 0.2, title="Twenty"),
    "heatmaps": lambda: heatmaps(
        {"a": MAY[:1], "the second one": SCORES[:2], "c": SCORES[:1], "d": MAY[:1], "e": MAY[3:4]},
        title="Five in two lines",
    ),
    "sheets": lambda: sheets(np.arange(12).reshape(2, 3, 2) - 100.5, title="Sheets"),
    "ribbon": lambda: ribbon(7, 2, 2, title="Ribbon"),
    "curves": lambda: curves(
        [1, 4, 16], {"size": {"a": [1, 4, 16], "b": [1, 1, 1.01]}, "share": {"a": [0.2, 0.1, 0]}},
        xlabel="d", logx=True, logy=["size"], columns=1, title="Two quantities",
    ),
    "head": lambda: head_diagram(B=None),
    "many heads": multi_head_diagram,
    "series": lambda: series_map("05"),
    "lookup": lookup_diagram,
    "block": block_diagram,
} | {name: EXAMPLES[name] for name in (
    "row times column", "staircase", "weighted sum", "softmax", "why", "levels", "points",
    "bars with spans",
)}  # fmt: skip


@pytest.mark.parametrize("name", REFERENCES)
def test_reference(name, snapshot):
    """Every place, colour and size, and all words. If a change is wanted: make refresh."""
    shown = REFERENCES[name]()
    figure = shown.figure()
    png_of(figure)  # texts have no place before
    assert "\n".join([shown.alt, "", str(shown), "", reading.listing(figure)]) == snapshot


@contextmanager
def under_a_long_title():
    heading, more = base.heading, " and a title that is much too long for one line" * 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "heading", lambda title, *size: heading(title and title + more, *size))
        yield


@pytest.mark.parametrize(
    "where",
    [
        nullcontext,
        lambda: base.on_a_slide(560, 274),
        lambda: base.on_a_slide(900, 274),
        pytest.param(under_a_long_title, marks=pytest.mark.slow),
    ],
    ids=["in a notebook", "on a slide", "across a slide", "under a long title"],
)
def test_each_example_is_laid_out_as_before(where, snapshot):
    """How large each is, and a checksum of all places, colours and words: look where it differs."""
    told = []
    for name in ALL:
        try:
            with where():
                figure = drawn(name)[0] if where is nullcontext else ALL[name]().figure()
        except ValueError as problem:  # it would not fit
            told.append(f"{name}: {problem}")
            continue
        png_of(figure)  # texts have no place before
        wide, high = reading.size_of(figure)
        shown = ALL[name]()
        all_faces = "\n".join([reading.listing(figure), shown.html(), str(shown), shown.alt])
        checksum = hashlib.md5(all_faces.encode()).hexdigest()[:8]
        told.append(f"{name}: {wide:.1f} x {high:.1f}, {checksum}")
    assert "\n".join(told) == snapshot


def test_lines_are_broken_between_words():
    text = "a title of several words, and\na second line"
    lines = break_lines(text, 80)
    assert " ".join(lines) == text.replace("\n", " ")
    assert all(text_width(line) <= 80 for line in lines)
    assert "line" in lines[-1] and "words, and" in " ".join(lines[:-1])


def test_a_word_that_is_wider_than_the_page_breaks_too():
    lines = break_lines("a /very/long/path/to/a/file, which", 60)
    assert len(lines) > 3 and all(text_width(line) <= 60 for line in lines)
    assert "".join(lines).replace(" ", "") == "a/very/long/path/to/a/file,which"
    assert break_lines("wide", 1) == list("wide")


@pytest.mark.slow
def test_no_pyplot_and_no_settings_of_matplotlib_are_touched():
    code = """
import sys, matplotlib
before = matplotlib.rcParams.copy()
import helpers.pictures
helpers.pictures.heatmap([[1.0]]).png()
assert "matplotlib.pyplot" not in sys.modules
assert matplotlib.rcParams.copy() == before
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)


def test_a_learner_sees_a_picture_with_its_alt_text(monkeypatch):
    picture = heatmap([[1.0, 0.0]], title='"<b>" & more')
    stored, metadata = picture._repr_mimebundle_()
    assert set(stored) == {"text/plain", "image/png"}
    assert metadata["image/png"]["alt"] == picture.alt
    monkeypatch.delenv("ATTENTION_STORED")
    live, _ = picture._repr_mimebundle_()
    assert set(live) == {"text/plain", "text/html"}
    light, other = images(live["text/html"])
    assert light["src"] == f"data:image/png;base64,{stored['image/png']}"
    shown = ["display:none" not in image["style"] for image in (light, other)]
    assert shown == [True, False]  # without a style sheet
    for attributes in (light, other):
        assert attributes["alt"] == picture.alt
        assert int(attributes["width"]) == metadata["image/png"]["width"]


def test_a_picture_for_a_dark_page_has_the_same_dots_in_dark_colours():
    png = heatmap(SCORES[:2, :3], mask=MAY[1:3, :3]).png()
    light = Image.open(io.BytesIO(png)).convert("RGB")
    shown = Image.open(io.BytesIO(darkened(png))).convert("RGBA")
    page = Image.new("RGBA", shown.size, GROUND)
    page.alpha_composite(shown)
    places = [(x, y) for x in range(0, light.width, 7) for y in range(0, light.height, 7)]
    code = "#{:02x}{:02x}{:02x}".format
    pairs = {(code(*light.getpixel(at)), code(*page.getpixel(at)[:3])) for at in places}
    assert len(pairs) > 10
    assert all(dark(one) == other for one, other in pairs)
    assert shown.getpixel((0, 0))[3] == 0  # whatever dark the page has


# All that a picture draws, with the maps of the series.
ALL = EXAMPLES | {
    "head": head_diagram, "many heads diagram": multi_head_diagram,
    "lookup": lookup_diagram, "block": block_diagram, "series": lambda: series_map("05"),
    "encoder and decoder": encoder_decoder_diagram, "ladder": ladder,
}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_letters_and_marks_have_contrast_on_a_light_and_on_a_dark_page(name):
    figure, *_ = drawn(name)
    texts, marks = reading.letters_on_grounds(figure), reading.marks(figure)
    assert texts
    for on in (lambda code: code, dark):
        faint = [text for text, *both in texts if reading.contrast(*map(on, both)) < 4.5]
        faint += [code for code in marks if reading.contrast(on(code), on("#ffffff")) < 3]
        assert faint == []


def images(page):
    found = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, has: found.append(dict(has)) if tag == "img" else None
    parser.feed(page)
    return found


FOREIGN = [
    {"text.usetex": True},
    {"axes.grid": True, "axes.axisbelow": False},
    {"font.size": 30, "axes.prop_cycle": matplotlib.cycler(color="r"), "lines.linewidth": 9},
    {"savefig.bbox": "tight", "figure.autolayout": True, "figure.constrained_layout.use": False},
    {"image.origin": "lower", "image.aspect": "auto", "axes.xmargin": 0.5, "axes.ymargin": 0.5},
    {"text.hinting_factor": 1, "text.kerning_factor": 6, "axes.unicode_minus": False},
    {"xtick.direction": "in", "ytick.labelsize": 30, "path.sketch": (9, 9, 9), "text.color": "r"},
]


@pytest.mark.parametrize("settings", FOREIGN, ids=lambda one: next(iter(one)))
@pytest.mark.parametrize("name", ["words", "curves", "points", "bars with spans", "softmax"])
def test_a_picture_is_the_same_whatever_a_matplotlibrc_says(name, settings):
    usual = EXAMPLES[name]().png()
    for kept in (base.text_width, base._font):
        kept.cache_clear()
    with matplotlib.rc_context(settings):
        assert EXAMPLES[name]().png() == usual
        assert png_of(EXAMPLES[name]().figure()) == usual
    for kept in (base.text_width, base._font):
        kept.cache_clear()
