import itertools
import math
import re

import pytest

from helpers.explorers import explore_depth
from helpers.stack import INITS, WAYS, signal_by_depth
from tests.explorers.reading import drawing, floats, move, now, paragraphs, pixel, words

QUANTITIES = ("signal", "gradient", "similarity")
POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@pytest.fixture(scope="module")
def explorer():
    return explore_depth()


def choose(explorer, way, init, depth):
    move(explorer, {"way to stack": way, "initialisation": init, "depth, in blocks": depth})


def measured(quantity, way, init):
    return [getattr(signal_by_depth(way, depth, init=init), quantity) for depth in range(1, 25)]


def places(line):
    numbers = floats(line.get("points"))
    return list(zip(numbers[::2], numbers[1::2], strict=True))


class Chart:
    """One chart of the drawing, and from its ticks the functions from values to pixels."""

    def __init__(self, svg):
        self.svg = svg
        self.quantity, self.text = words(next(svg.iter("text"))).split(": ")
        below, (left, *_) = {}, [g for g in svg.iter("g") if g.get("text-anchor") == "end"]
        for text in next(g for g in svg.iter("g") if g.get("text-anchor") == "middle"):
            below[text.text] = float(text.get("x"))
        assert below.pop("depth") == (below["1"] + below["24"]) / 2
        first, last = below["1"], below["24"]
        self.x = lambda depth: first + (depth - 1) * (last - first) / 23
        assert below == {d: pixel(self.x(int(d))) for d in ("1", "6", "12", "18", "24")}
        ticks = [(self._height(t.text), float(t.get("y")) - 4) for t in left]
        (low, y_low), (high, y_high) = ticks[0], ticks[-1]
        self.y = lambda v: y_low + (self._scale(v) - low) * (y_high - y_low) / (high - low)
        assert [y for _, y in ticks] == [
            pixel(y_low + (h - low) * (y_high - y_low) / (high - low)) for h, _ in ticks
        ]
        grid = floats(next(svg.iter("path")).get("d").replace("M0,", " ").replace("H212", " "))
        assert grid == pytest.approx([y for _, y in ticks])

    def _scale(self, value):
        return value if self.quantity == "similarity" else math.log10(value)

    def _height(self, tick):
        if tick.startswith("10") and not tick.isdecimal():  # 10⁻³
            return float(tick[2:].translate(POWERS))
        return self._scale(float(tick))

    def lines(self):
        thick = [line for line in self.svg.iter("polyline") if line.get("stroke-width")]
        return thick, [line for line in self.svg.iter("polyline") if line not in thick]

    def near(self, values):
        return [
            (pixel(self.x(d)), pytest.approx(self.y(v), abs=0.15)) for d, v in enumerate(values, 1)
        ]


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("way", WAYS)
def test_charts_and_words_show_the_measured_stack(explorer, way, init):
    for depth in (1, 9, 24):
        choose(explorer, way, init, depth)
        charts = [Chart(svg) for svg in drawing(explorer).iter("svg")]
        assert [chart.quantity for chart in charts] == [*QUANTITIES]
        for chart in charts:
            values = measured(chart.quantity, way, init)
            value, decimals = values[depth - 1], chart.quantity == "similarity"
            exact = pytest.approx(value, rel=0 if decimals else 0.051, abs=0.0051 * decimals)
            assert float(chart.text) == exact
            assert chart.svg.get("aria-label") == f"{chart.quantity} at depth {depth}: {chart.text}"
            (thick,), thin = chart.lines()
            assert places(thick) == chart.near(values)
            (dot,) = chart.svg.iter("circle")
            (here,) = chart.near(values)[depth - 1 : depth]
            assert (float(dot.get("cx")), float(dot.get("cy"))) == here
            upright = next(p for p in chart.svg.iter("path") if "V" in p.get("d"))
            assert floats(upright.get("d"))[0] == here[0]
            left, top, width, height = floats(chart.svg.get("viewBox"))
            for x, y in itertools.chain(*map(places, [thick, *thin])):
                assert left + 40 < x < left + width - 6 and 0 <= y <= floats(upright.get("d"))[-1]
                assert top < y < top + height
        told = ", ".join(f"{chart.quantity} {chart.text}" for chart in charts)
        about_lines, problems = paragraphs(explorer)
        assert "thick line" in about_lines
        assert now(explorer) == f"{way}, {init} initialisation, depth {depth}: {told}. {problems}"


@pytest.mark.parametrize("init", INITS)
def test_the_thin_lines_are_all_four_ways(explorer, init):
    choose(explorer, "plain", init, 3)
    for chart in map(Chart, drawing(explorer).iter("svg")):
        _, thin = chart.lines()
        drawn = [places(line) for line in thin]
        assert drawn == [chart.near(measured(chart.quantity, way, init)) for way in WAYS]


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("way", WAYS)
def test_it_names_what_is_wrong_with_a_stack(explorer, way, init):
    for depth in range(1, 25):
        choose(explorer, way, init, depth)
        stack = signal_by_depth(way, depth, init=init)
        problem = paragraphs(explorer)[1]
        for name, value in (("signal", stack.signal), ("gradient", stack.gradient)):
            assert (f"he {name} fades" in problem) == (value < 0.1)
            assert (f"he {name} explodes" in problem) == (value > 10)
        assert ("ll tokens point nearly the same way" in problem) == (stack.similarity > 0.9)
        fine = "✓ Signal and gradient stay within a factor of 10, and tokens stay apart."
        assert (problem == fine) or re.fullmatch(r"⚠ [TA][^A-Z]*\.", problem)


def test_two_problems_stand_in_one_sentence(explorer):
    choose(explorer, "plain", "unit gain", 6)
    told = "⚠ The gradient fades, all tokens point nearly the same way."
    assert paragraphs(explorer)[1] == told


def test_a_move_of_the_slider_only_looks_numbers_up(monkeypatch):
    explorer = explore_depth()
    monkeypatch.setattr("helpers.explorers.depth.signal_by_depth", None)
    choose(explorer, "residual", "default", 17)
    drawing(explorer)
