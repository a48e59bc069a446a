import itertools
import math

import pytest
import torch

from helpers.explorers import explore_scaling
from tests.explorers.reading import (
    colours,
    controls,
    drawing,
    floats,
    move,
    near,
    now,
    numbers,
    paragraphs,
    pixel,
    tables,
    words,
)

DIVISOR = "divisor (T = 8, C = 32)"
SIZES = [2**power for power in range(11)]


@pytest.fixture(scope="module")
def q_and_k():
    return torch.randn(2, 128, 8, 1024, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def explorer():
    return explore_scaling()


def divided_by(name, d):
    return {"none": 1, "√T": math.sqrt(8), "√C": math.sqrt(32), "√d": math.sqrt(d), "d": d}[name]


def gauges(explorer):
    """Each gauge as its name, its number, where its dot stands, and the marks with their places."""
    for svg in drawing(explorer).iter("svg"):
        head, *marks = svg.findall("text")
        name, text = words(head).split(": ")
        assert svg.get("aria-label") == words(head)
        (dot,) = svg.iter("circle")
        ticks = [floats(path.get("d"))[0] for path in svg.iter("path") if "v8" in path.get("d")]
        assert ticks == [float(mark.get("x")) for mark in marks]
        yield name, text, float(dot.get("cx")), {mark.text: float(mark.get("x")) for mark in marks}


@pytest.mark.parametrize("divisor", ["none", "√T", "√C", "√d", "d"])
@pytest.mark.parametrize("d", [1, 16, 256, 1024])
def test_gauges_rows_and_words_are_those_of_a_softmax(explorer, q_and_k, d, divisor):
    move(explorer, {"d": d, DIVISOR: divisor})
    q, k = q_and_k[..., :d]
    scores = (q @ k.mT).double() / divided_by(divisor, d)
    weights = torch.softmax(scores, -1)
    variance = scores.var(unbiased=False).item()
    bits = torch.distributions.Categorical(weights).entropy().mean().item() / math.log(2)
    derivative = (weights * (1 - weights)).mean().item()

    of_variance, of_entropy, of_derivative = gauges(explorer)
    name, text, dot, marks = of_variance
    assert name == "variance of the scores"
    assert float(text) == pytest.approx(variance, rel=0.051)
    low, one, high = (marks[mark] for mark in ("0.001", "1", "1000"))
    assert one - low == high - one, "a power of ten takes as much room everywhere"
    assert dot == pixel(one + (high - one) * min(max(math.log10(variance) / 3, -1), 1))
    name, text, dot, marks = of_entropy
    assert name == "entropy of a row, in bits"
    assert [float(text)] == near([bits])
    assert list(marks) == ["0: one key has all", "3: all keys alike"]
    left, right = marks.values()
    assert dot == pixel(left + (right - left) * bits / 3)
    name, text, dot, marks = of_derivative
    assert name == "mean derivative of a weight"
    assert [float(text)] == near([derivative], 3)
    assert list(marks) == ["0: none", "0.109: largest"]
    left, right = marks.values()
    largest = 1 / 8 * (1 - 1 / 8)  # when all 8 keys have the same weight
    assert dot == pixel(left + (right - left) * derivative / largest)

    (table,) = tables(explorer)
    assert (table.corner, table.over) == ("query", "key")
    assert (table.names, table.columns) == (["0", "1", "2"], [str(j) for j in range(8)])
    cells = [cell for row in table.rows for cell in row]
    assert numbers(cells) == near(weights[0, :3])
    assert [cell.fill for cell in cells] == colours(weights[0, :3])

    head, effect = paragraphs(explorer)
    assert head.startswith(f"d = {d}, scores ")
    if divisor == "none":
        assert head.endswith("not divided")
    else:
        assert f" divided by {divisor} = " in head
        assert floats(head)[-1:] == near([divided_by(divisor, d)], 3)
    text_of = [text for _, text, _, _ in gauges(explorer)]
    assert now(explorer) == (
        f"{head}: variance {text_of[0]}, entropy {text_of[1]} of at most 3 bits, mean derivative "
        f"of a weight {text_of[2]} of at most 0.109. {effect}"
    )


def test_the_marks_stand_inside_the_gauge():
    for svg in drawing(explore_scaling()).iter("svg"):
        left, top, width, height = floats(svg.get("viewBox"))
        line = max(floats(path.get("d"))[-1] for path in svg.iter("path") if "H" in path.get("d"))
        anchors = {float(t.get("x")): t.get("text-anchor") for t in svg.findall("text")[1:]}
        assert (anchors.pop(0.0), anchors.pop(line)) == ("start", "end")
        assert {*anchors.values()} <= {"middle"}
        assert left < 0 and left + width > line
        for y in [float(t.get("y")) for t in svg.iter("text")]:
            assert top + 10 < y < top + height


def test_only_the_root_of_d_is_right_for_every_d(explorer):
    right = {name: set() for name in controls(explorer)[DIVISOR].options}
    for d, name in itertools.product(SIZES, right):
        move(explorer, {"d": d, DIVISOR: name})
        (_, variance, _, _), *_ = gauges(explorer)
        if 0.8 < float(variance) < 1.25:
            right[name].add(d)
            assert "Each row prefers some keys" in paragraphs(explorer)[1]
    assert right == {"none": {1}, "√T": {8}, "√C": {32}, "√d": {*SIZES}, "d": {1}}


@pytest.mark.parametrize(
    ("d", "divisor", "told"),
    [
        (1024, "none", "Most rows are saturated"),
        (128, "√T", "In most rows one key has more than half"),
        (8, "none", "In most rows one key has more than half"),  # in rows, not in columns
        (4, "none", "more one-sided than at variance 1"),
        (64, "√d", "Each row prefers some keys"),
        (16, "d", "more even than at variance 1"),
        (1024, "d", "nearly the same weight"),
    ],
)
def test_it_says_what_the_divisor_does_to_the_weights(explorer, q_and_k, d, divisor, told):
    move(explorer, {"d": d, DIVISOR: divisor})
    q, k = q_and_k[..., :d]
    scores = (q @ k.mT).double() / divided_by(divisor, d)
    largest, variance = torch.softmax(scores, -1).amax(-1), scores.var()
    rows = {share: (largest > share).double().mean() > 0.5 for share in (0.5, 0.9)}
    assert told in paragraphs(explorer)[1]
    assert ("saturated" in told) == rows[0.9]
    assert ("more than half" in told) == (rows[0.5] and not rows[0.9])
    assert ("one-sided" in told) == (variance > 1.5 and not rows[0.5])
    assert ("prefers" in told) == (0.7 < variance < 1.5)
    assert ("more even" in told) == (0.03 < variance < 0.7)
