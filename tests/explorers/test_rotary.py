import cmath
import itertools
import math

import pytest

from attention_base.numbers import number
from explorers import explore_rotary
from helpers.pictures.colours import GLOW, SKY
from tests.explorers.reading import Chart, controls, drawing, now

SPEEDS = {"1": "57.3", "0.1": "5.73", "0.01": "0.573", "0.001": "0.0573"}  # radians, degrees
KEY = cmath.rect(1, math.radians(40))  # at position 0; the query stands at 1
RADIUS = 58


def pair(speed, distance, shift):
    """Query and key as complex numbers."""
    return cmath.rect(1, speed * (shift + distance)), KEY * cmath.rect(1, speed * shift)


def cosine(speed, distance):
    return math.cos(math.radians(40) - speed * distance)


def arrow(tip, colour):
    """A stroke and a head."""
    tip = tip.conjugate() * RADIUS  # y points down
    along = tip / RADIUS * 14
    neck, side = tip - along, 0.45j * along
    for thick, places in ("3", (0j, neck)), (None, (tip, neck + side, neck - side)):
        yield colour, thick, [p.real for p in places], [p.imag for p in places]


def circle(i, told, distance, shift):
    speed = float(told)
    (query, key), before = pair(speed, distance, shift), pair(speed, distance, 0)
    between = cmath.phase(key / query)
    angle = f"angle between {number(abs(math.degrees(between)), 1)}°"
    names = f"channels {2 * i} and {2 * i + 1}", f"{told} rad = {SPEEDS[told]}° a position"
    arc = [22 * (query * cmath.rect(1, between * n / 12)).conjugate() for n in range(13)]
    lines = [("currentColor", "2", [p.real for p in arc], [p.imag for p in arc])]
    for one, other in (before, (query, key)):
        lines += [*arrow(other, SKY), *arrow(one, GLOW)]
    words = [*names, angle, f"cosine {number(cosine(speed, distance))}"]
    return Chart(f"{', '.join(names)}: {angle}", words, [("none", ".25", 0, 0)], lines)


def curve(told, distance):
    here = cosine(float(told), distance)
    marks = [(GLOW, ".5", distance, None), (GLOW, None, distance, here)]
    marks.append(("cosine by distance", None, 12, None))
    places = [n / 4 for n in range(97)]
    line = (SKY, "2", places, [cosine(float(told), place) for place in places])
    words = ["1", "0", "-1", "0", "12", "24", "cosine by distance"]
    return Chart(f"cosine at distance {distance}: {number(here)}", words, marks, [line])


def model(distance, shift):
    where = f"Query at position {distance + shift}, key at position {shift}: "
    where += f"distance {distance}, shift {shift}."
    cosines = [cosine(float(told), distance) for told in SPEEDS]
    pairs = ", ".join(
        f"{number(math.degrees(math.acos(c)), 1)}° (cosine {number(c)})" for c in cosines
    )
    score = f"Score: {number(sum(cosines))}, the sum of the four cosines."
    effect = "At position 0, each query arrow stands at 0° and each key arrow at 40°."
    if shift:
        effect = "The shift turned both arrows of a pair by the same angle, so angle, cosine and "
        effect += "score stay the same."
    texts = [score, effect]
    if distance >= 19:
        near, (fast, slow) = distance - 19, map(number, cosines[:2])
        text = f"The fastest arrow can hardly tell distance {distance} from {near}: 19 positions "
        text += f"are 3.02 full circles, and its cosine is {fast} here, {number(cosine(1, near))} "
        text += f"there. The next arrow can: {slow} here, {number(cosine(0.1, near))} there."
        texts.append(text)
    panels = [
        part
        for i, told in enumerate(SPEEDS)
        for part in (circle(i, told, distance, shift), curve(told, distance))
    ]
    label = "orange: the query; blue: the key; faint: before the shift"
    legend = Chart(label, ["■ query ■ key · faint: before the shift"], [], [])
    told = " ".join([where, f"Angles between the arrows: {pairs}.", *texts])
    return [told, where, *panels, legend, *texts]


SHIFTS = (0, 1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 500, 1000)
CONTROLS = {"distance": (3, (0, 24, 1)), "shift of both": (0, SHIFTS)}
CASES = [({}, list(itertools.product((0, 3, 7, 18, 19, 22, 24), SHIFTS)))]


@pytest.mark.parametrize("distance", range(25))
def test_the_shift_leaves_every_angle_cosine_and_score(distance):
    explorer = explore_rotary()
    controls(explorer)["distance"].value = distance
    told = set()
    for shift in SHIFTS:
        controls(explorer)["shift of both"].value = shift
        told.add(now(explorer).split("Angles ")[1].split(" the sum")[0])
    assert len(told) == 1


def test_only_from_19_on_the_fastest_arrow_stands_nearly_where_it_stood_before():
    for distance in range(25):
        close = [n for n in range(distance) if math.cos(distance - n) > math.cos(math.radians(10))]
        assert close == ([distance - 19] if distance >= 19 else [])
    assert number(19 / math.tau) == "3.02"


def test_where_the_arrows_stood_before_the_shift_is_faint_and_the_legend_has_its_colours():
    pictures = list(drawing(explore_rotary()).iter("svg"))
    for circle in pictures[:8:2]:
        (faint,) = circle.findall("g[@opacity='.3']")
        assert len(faint) == len(circle.findall("path")) == 4
    assert [part.get("fill") for part in pictures[-1].iter("tspan")] == [GLOW, SKY]
