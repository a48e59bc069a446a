import pytest
import torch

from helpers.explorers import explore_prefix
from tests.explorers.examples import X
from tests.explorers.reading import (
    drawing,
    floats,
    move,
    near,
    now,
    numbers,
    paragraphs,
    tables,
    words,
)

WIDE = torch.tensor([[20.0, -3.0], [-5.0, 14.5], [7.0, 0.0]])


def value_of(texts, place):
    """A function from pixels to values, by the numbers at an axis; they stand at even steps."""
    (a, first), (b, last) = [(float(t.get(place)), float(t.text)) for t in (texts[0], texts[-1])]
    scale = (last - first) / (b - a)
    for text in texts:
        value = first + scale * (float(text.get(place)) - a)
        assert value == pytest.approx(float(text.text), abs=0.15 * abs(scale))
    return lambda pixels: first + scale * (pixels - a)


class Plane:
    """The plane of the drawing, in the units of its axes."""

    def __init__(self, explorer):
        (self.svg,) = drawing(explorer).iter("svg")
        named = [t for t in self.svg.iter("text") if t.get("x") and "channel" not in t.text]
        self.left = [t for t in named if t.get("x") == "-6"]
        self.below = [t for t in named if t.get("x") != "-6"]
        self._across, up = value_of(self.below, "x"), value_of(self.left, "y")
        self._up = lambda y: up(y + 4)  # a text stands on its line's level, 4 pixels down

    def values(self, places):
        return [[self._across(x), self._up(y)] for x, y in places]

    def near(self, points):
        one_pixel = abs(self._across(1) - self._across(0))
        return pytest.approx(torch.as_tensor(points).double().numpy(), abs=0.15 * one_pixel)


def moved_to(element):
    return floats(element.get("transform"))[:2]


@pytest.mark.parametrize("x", [X, WIDE])
@pytest.mark.parametrize("t", [0, 1, 2])
def test_plane_table_and_words_show_the_running_mean(x, t):
    explorer = explore_prefix(x)
    move(explorer, {"t": t})
    means = [x[: i + 1].mean(0).tolist() for i in range(t + 1)]
    plane = Plane(explorer)

    tokens = [g for g in plane.svg.iter("g") if g.find("circle") is not None and g.get("transform")]
    assert [words(token) for token in tokens] == [str(i) for i in range(len(x))]
    assert plane.values(map(moved_to, tokens)) == plane.near(x)
    filled = [token.find("circle").get("fill") != "none" for token in tokens]
    assert filled == [i <= t for i in range(len(x))]
    assert [token.get("opacity") is None for token in tokens] == filled

    (path,) = plane.svg.iter("polyline")
    places = floats(path.get("points"))
    corners = list(zip(places[::2], places[1::2], strict=True))
    assert plane.values(corners) == plane.near(means)
    dots = [
        (float(c.get("cx")), float(c.get("cy"))) for c in plane.svg.iter("circle") if c.get("cx")
    ]
    assert dots == corners[:-1]
    (star,) = [p for p in plane.svg.iter("path") if p.get("transform")]
    assert plane.values([moved_to(star)]) == plane.near(means[-1:])

    (table,) = tables(explorer)
    assert table.columns == ["channel 0", "channel 1", "mean, ch. 0", "mean, ch. 1"]
    assert (table.corner, table.names) == ("token", [str(i) for i in range(len(x))])
    for c in range(2):
        tokens_in, means_in = table.column(f"channel {c}"), table.column(f"mean, ch. {c}")
        assert numbers(tokens_in) == near(x[:, c])
        assert [cell.look for cell in tokens_in] == ["plain"] * (t + 1) + ["faint"] * (
            len(x) - t - 1
        )
        assert numbers(means_in[: t + 1]) == near([mean[c] for mean in means])
        assert {cell.text for cell in means_in[t + 1 :]} <= {""}
        assert [cell.look == "marked" for cell in means_in] == [i == t for i in range(len(x))]

    told = now(explorer)
    last = ", ".join(table.column(f"mean, ch. {c}")[t].text for c in range(2))
    seen = "token 0" if t == 0 else f"tokens 0…{t}"
    assert told == f"t = {t}: the mean of {seen} is ({last}), {t + 1} of {len(x)} tokens in it"
    assert paragraphs(explorer) == [f"{told}."]
    assert plane.svg.get("aria-label") == told


@pytest.mark.parametrize("x", [X, WIDE])
def test_the_axes_have_numbers_beside_their_lines(x):
    plane = Plane(explore_prefix(x))
    assert 3 <= len(plane.below) <= 8 and 3 <= len(plane.left) <= 8
    lines = [path for path in plane.svg.iter("path") if not path.get("transform")]
    upright = {floats(p.get("d"))[0]: p.get("opacity") for p in lines if "V" in p.get("d")}
    level = {floats(p.get("d"))[1]: p.get("opacity") for p in lines if "H" in p.get("d")}
    for texts, place, above, drawn in (
        (plane.below, "x", 0, upright),
        (plane.left, "y", 4, level),
    ):
        assert [float(text.get(place)) - above for text in texts] == pytest.approx([*drawn])
        strong = [
            text.text
            for text, opacity in zip(texts, drawn.values(), strict=True)
            if float(opacity) > 0.3
        ]
        assert strong == ["0"], "the line of 0 is the strongest"
    side = frame(plane.svg)
    (left, bottom), (right, top) = plane.values([(0, side), (side, 0)])
    assert right - left == pytest.approx(top - bottom, rel=0.01), "one scale for both channels"
    assert {t.get("y") for t in plane.below} == {str(side + 15)}


def frame(svg):
    return int(next(svg.iter("rect")).get("width"))


@pytest.mark.parametrize("x", [X, WIDE, X / 100, [[0.0, 0.0]]])
def test_all_tokens_lie_inside_the_frame_and_all_of_it_on_the_picture(x):
    (svg,) = drawing(explore_prefix(x)).iter("svg")
    side = frame(svg)
    left, top, width, height = floats(svg.get("viewBox"))
    assert left < -32 and top <= 0 and left + width >= side and top + height > side + 32
    for token in svg.iter("g"):
        if token.get("transform") and token.find("circle") is not None:
            assert all(10 < place < side - 10 for place in moved_to(token))
    for text in svg.iter("text"):
        for place in (float(text.get(axis, 0)) for axis in "xy"):
            assert left <= place <= side + 32


def test_it_begins_with_the_last_token_of_a_short_sequence():
    assert now(explore_prefix(X[:2])).startswith("t = 1: ")


def test_the_star_is_seen_around_the_token_that_it_meets():
    explorer = explore_prefix(X)
    move(explorer, {"t": 0})  # the mean of token 0 is token 0
    elements = list(drawing(explorer).iter())
    (star,) = [e for e in elements if e.get("fill-opacity")]
    token = next(e for e in elements if e.get("r") == "10")
    assert elements.index(star) < elements.index(token), "the token lies over the star"
    reach = max(map(abs, floats(star.get("d")))) * floats(star.get("transform"))[2]
    assert reach > 20, "the star is wider than the token"


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (torch.zeros(4, 3), r"\(T, 2\), got \(4, 3\)"),
        (torch.zeros(2, 4, 2), r"\(T, 2\), got \(2, 4, 2\)"),
        (torch.zeros(0, 2), r"\(T, 2\), got \(0, 2\)"),
        ([[0.0, float("nan")]], "finite"),
    ],
)
def test_what_does_not_lie_in_the_plane_is_refused(x, words):
    with pytest.raises(ValueError, match=words):
        explore_prefix(x)
