"""The colours of numbers and letters, each on a light and on a dark page."""

import itertools

import numpy as np
import pytest

from helpers.pictures.colours import (
    GLOW,
    GROUND,
    INFINITE,
    MASKED,
    NAN,
    TOKENS,
    Fill,
    by_theme,
    channels,
    dark,
    fills,
    paint,
)
from tests.helpers.pictures.reading import contrast

PAGES = {"light": lambda code: code, "dark": dark}
SPECIAL = np.array([MASKED, INFINITE, NAN])
WEIGHTS = paint(np.linspace(0, 1, 1000), 0, 1, None)
SCORES = paint(np.linspace(-1, 1, 1000), -1, 1, 0.0)
LETTERS = {"black": "#000000", "white": "#ffffff"}


def codes(colours):
    return [fill.code for fill in fills(colours)]


def lab(code):
    """A colour in CIELAB, in which equal distances look about equal."""
    rgb = np.array(channels(code)) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt(
        [[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8728]] @ linear
    )
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def apart(one, other):
    return np.linalg.norm(lab(one) - lab(other))


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    "colours", [WEIGHTS, SCORES, SPECIAL], ids=["weights", "scores", "special"]
)
def test_letters_have_contrast_on_every_colour(colours, page):
    on = PAGES[page]
    assert min(contrast(on(f.code), on(LETTERS[f.ink])) for f in fills(colours)) >= 4.5


@pytest.mark.parametrize("page", PAGES)
def test_black_letters_have_contrast_on_every_token(page):
    on = PAGES[page]
    assert min(contrast(on(code), on("#000000")) for code in TOKENS) >= 4.5
    assert min(apart(on(a), on(b)) for a, b in itertools.combinations(TOKENS, 2)) > 10


@pytest.mark.parametrize("page", PAGES)
def test_special_cells_are_never_the_colour_of_a_number(page):
    numbers = [lab(PAGES[page](code)) for code in codes(np.concatenate([WEIGHTS, SCORES]))]
    special = [lab(PAGES[page](code)) for code in codes(SPECIAL)]
    for one in special:
        assert np.linalg.norm(np.array(numbers) - one, axis=1).min() > 4
    for one, other in itertools.combinations(special, 2):
        assert np.linalg.norm(one - other) > 15


@pytest.mark.parametrize("page", PAGES)
def test_small_weights_are_told_from_zero_which_is_the_page(page):
    on = PAGES[page]
    zero, *rest = map(on, codes(paint(np.array([0, 0.01, 0.13, 0.25, 0.5, 1.0]), 0, 1, None)))
    assert zero == {"light": "#ffffff", "dark": GROUND}[page]
    assert apart(zero, rest[0]) > 10  # side by side, 2 can be told from each other
    assert all(apart(a, b) > 10 for a, b in itertools.pairwise([zero, *rest]))
    steps = [contrast(zero, code) for code in map(on, codes(WEIGHTS))]
    assert all(a <= b * 1.01 for a, b in itertools.pairwise(steps))  # more weight, more contrast


def test_zero_is_in_the_middle_of_diverging_colours_even_with_lopsided_limits():
    colours = paint(np.array([-1.0, 0.0, 4.0]), -1, 4, 0.0)
    assert np.allclose(colours, paint(np.array([-1.0, 0.0, 4.0]), -4, 4, 0.0))  # -1 is pale
    assert np.allclose(colours[1], 1) and codes(colours)[2] == "#b2182b"


def test_a_dark_page_keeps_the_contrasts_of_a_light_one():
    assert (dark("#ffffff"), dark("#000000")) == (GROUND, "#ffffff")
    for code in ("#222222", "#666666", "#1f5f99", "#b8520b"):  # letters, as on white
        assert contrast(dark(code), GROUND) == pytest.approx(contrast(code, "#ffffff"), rel=0.02)
    red, green, blue = channels(dark("#1f5f99"))
    assert (green - red, blue - green) == (0x5F - 0x1F, 0x99 - 0x5F)  # the hue stays


def test_colours_of_a_style_follow_the_page_but_those_that_are_made_for_both():
    style = f"color:white;background:#1f5f99;outline:2px solid {GLOW};white-space:nowrap"
    assert by_theme(style) == (
        f"color:light-dark(white,{GROUND});background:light-dark(#1f5f99,{dark('#1f5f99')});"
        f"outline:2px solid {GLOW};white-space:nowrap"
    )


def test_fills_are_nested_as_the_array_is():
    assert fills(np.array([[[0, 0, 0.5], [1, 1, 0.5]]])) == [
        [Fill("#000080", "white"), Fill("#ffff80", "black")]
    ]
    assert fills(np.array([1.0, 1.0, 1.0])) == Fill("#ffffff", "black")


@pytest.mark.parametrize(
    ("low", "high", "center"), [(0.0, 1.0, None), (-2.0, 1.0, 0.0), (-1.0, 2.0, 0.0)]
)
def test_a_value_beyond_a_limit_has_the_colour_of_the_limit(low, high, center):
    values = np.array([low - 0.5, low, high, high + 0.5])
    below, least, most, above = paint(values, low, high, center).tolist()
    assert below == least != most == above
