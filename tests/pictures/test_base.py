"""What holds for every picture, and the switch from pictures to tables."""

import base64
import io
import itertools
import os
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

from helpers.pictures import base, heatmap
from helpers.pictures.base import break_lines, png_of, text_width
from tests.pictures.examples import EXAMPLES, MAY, SCORES, WEIGHTS


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_picture_exists_in_words_and_as_html(name):
    shown = EXAMPLES[name]()
    assert len(str(shown).splitlines()) >= 2
    assert 20 < len(shown.alt) < 800
    html = shown.html()
    assert html.count("<table") == html.count("</table>") >= 1
    assert html.count('scope="row"') >= 1


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_text_is_cut_off_or_covered(name, monkeypatch):
    drawn = []  # matplotlib also makes texts that it never draws: of ticks outside the limits
    draw = Text.draw
    monkeypatch.setattr(Text, "draw", lambda self, to: (drawn.append(self), draw(self, to)))
    figure = EXAMPLES[name]().figure()
    assert len(png_of(figure)) < 70_000
    width, height = figure.bbox.size
    assert width <= 2 * base.WIDEST
    texts = [text for text in drawn if text.get_text() and text.get_visible()]
    assert texts
    level = []
    for text in texts:
        box = text.get_window_extent()
        inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
        assert inside, f"cut off: {text.get_text()!r}"
        if text.get_rotation() in (0, 90):
            level.append((text.get_text(), box.padded(-1)))
    for (one, first), (other, second) in itertools.combinations(level, 2):
        assert not first.overlaps(second), f"{one!r} lies on {other!r}"


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


def test_lines_are_broken_between_words():
    text = "a title of several words, and\na second line"
    lines = break_lines(text, 80)
    assert " ".join(lines) == text.replace("\n", " ")
    assert all(text_width(line) <= 80 for line in lines)
    assert "line" in lines[-1] and "words, and" in " ".join(lines[:-1])
    assert break_lines("unbreakable", 10) == ["unbreakable"]


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
    (attributes,) = images(live["text/html"])
    assert attributes["alt"] == picture.alt
    assert attributes["src"] == f"data:image/png;base64,{stored['image/png']}"
    assert int(attributes["width"]) == metadata["image/png"]["width"]


def images(page):
    found = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.append(dict(attributes))
    parser.feed(page)
    return found
