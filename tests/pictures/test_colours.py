import itertools

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_rgb

from helpers.pictures.colours import INFINITE, MASKED, NAN, TOKENS, Fill, fills, ink, paint

SPECIAL = np.array([MASKED, INFINITE, NAN])


def luminance(colours):
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    return linear @ (0.2126, 0.7152, 0.0722)


def contrast(letters, colours):
    high = np.maximum(luminance(letters), luminance(colours))
    low = np.minimum(luminance(letters), luminance(colours))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    "colours",
    [
        paint(np.linspace(0, 1, 500), 0, 1, None),
        paint(np.linspace(-1, 1, 500), -1, 1, 0.0),
        SPECIAL,
    ],
    ids=["cividis", "RdBu", "special"],
)
def test_letters_have_contrast_on_every_colour(colours):
    letters = np.where(ink(colours) == "white", 1.0, 0.0)[:, None].repeat(3, 1)
    assert contrast(letters, colours).min() >= 4.5


def test_black_letters_have_contrast_on_every_token():
    colours = np.array([to_rgb(code) for code in TOKENS])
    assert contrast(np.zeros(3), colours).min() >= 4.5


def test_special_cells_are_never_the_colour_of_a_number():
    maps = [colormaps[name](np.linspace(0, 1, 256))[:, :3] for name in ("cividis", "RdBu_r")]
    for colour in SPECIAL:
        assert np.abs(np.concatenate(maps) - colour).max(1).min() > 0.05
    for one, other in itertools.combinations(SPECIAL, 2):
        assert np.abs(one - other).max() > 0.05


def test_zero_is_in_the_middle_of_diverging_colours_even_with_lopsided_limits():
    colours = paint(np.array([-1.0, 0.0, 4.0]), -1, 4, 0.0)
    assert np.allclose(colours, colormaps["RdBu_r"]([0.375, 0.5, 1.0])[:, :3])  # -1 is pale


def test_fills_are_nested_as_the_array_is():
    assert fills(np.array([[[0, 0, 0.5], [1, 1, 0.5]]])) == [
        [Fill("#000080", "white"), Fill("#ffff80", "black")]
    ]
    assert fills(np.array([1.0, 1.0, 1.0])) == Fill("#ffffff", "black")
