import itertools
import math

import pytest
import torch

from helpers.explorers import explore_query
from helpers.pictures.base import text_width
from tests.explorers.examples import EXAMPLES, KEYS, QUERY, VALUES, WORDS
from tests.explorers.examples import X_OF_QUERY as X
from tests.explorers.reading import (
    drawing,
    floats,
    move,
    near,
    now,
    numbers,
    pixel,
    tables,
    words,
)

ANGLE, LENGTH = "turned by °", "length ×"
MIX_X = "mix x: average the tokens, not the values"
GLOW, SKY = "#e8792b", "#4a90c8"  # the query, the keys


class Plane:
    """The plane of the drawing: tips of arrows by colour, words by their text, in pixels."""

    def __init__(self, explorer):
        (self.svg,) = drawing(explorer).iter("svg")
        rect = next(self.svg.iter("rect"))
        self.edge = -float(rect.get("x"))
        assert floats(" ".join(rect.get(part) for part in ("y", "width", "height"))) == [
            -self.edge, 2 * self.edge, 2 * self.edge,
        ]  # fmt: skip
        axes = next(path for path in self.svg.iter("path") if "H" in path.get("d"))
        assert axes.get("d") == f"M-{self.edge:g},0H{self.edge:g}M0,-{self.edge:g}V{self.edge:g}"
        self.legend, *texts = self.svg.iter("text")
        self.words = {t.text: (float(t.get("x")), float(t.get("y"))) for t in texts}

    def arrows(self, colour):
        """Tips of all arrows of this colour; the shaft, the neck and the head lie on one line."""
        shafts = [p for p in self.svg.iter("path") if p.get("stroke") == colour]
        heads = [p for p in self.svg.iter("path") if p.get("fill") == colour]
        for shaft, head in zip(shafts, heads, strict=True):
            assert shaft.get("d").startswith("M0,0L")
            a, b = floats(shaft.get("d"))[2:]
            x, y, *corners = floats(head.get("d"))
            left, right = complex(*corners[:2]), complex(*corners[2:])
            tip, neck = complex(x, y), complex(a, b)
            assert neck == pytest.approx((left + right) / 2, abs=0.2), "the head sits on the shaft"
            along, across = tip - neck, left - right
            assert (along * across.conjugate()).real == pytest.approx(0, abs=3), "a right angle"
            assert 0.5 < abs(across) / abs(along) < 1.2 and abs(along) <= abs(tip) + 0.1
            assert (tip.conjugate() * along).real > 0, "it points away from the origin"
            assert (tip.conjugate() * along).imag == pytest.approx(0, abs=0.15 * abs(tip))
            yield x, y


def turned(angle, length):
    """The query, turned to the left and stretched."""
    a = math.radians(angle)
    x, y = QUERY.double().tolist()
    return (
        length
        * torch.tensor(
            [x * math.cos(a) - y * math.sin(a), x * math.sin(a) + y * math.cos(a)]
        ).double()
    )


@pytest.mark.parametrize("mix_x", [False, True])
@pytest.mark.parametrize("length", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("angle", [-180, -35, 0, 90, 180])
def test_arrows_table_and_words_show_one_query(angle, length, mix_x):
    explorer = EXAMPLES["query"]()
    move(explorer, {ANGLE: angle, LENGTH: length, MIX_X: mix_x})
    query = turned(angle, length)
    scores = KEYS.double() @ query / math.sqrt(2)
    weights = torch.softmax(scores, -1)
    mixed = (X if mix_x else VALUES).double()
    best = [i == weights.argmax() for i in range(3)]

    plane = Plane(explorer)
    keys = [*plane.arrows(SKY)]
    scale = max(abs(x) for x, _ in keys) / 3  # pixels for a 1: the longest key reaches to 3
    from_bottom_to_top = sorted(KEYS.tolist(), key=lambda key: key[1])
    assert keys == [(pixel(x * scale), pixel(-y * scale)) for x, y in from_bottom_to_top]
    assert all(max(abs(x), abs(y)) < plane.edge for x, y in keys)
    ((x, y),) = plane.arrows(GLOW)
    tip = query * scale * torch.tensor([1, -1])
    beyond = tip.abs().max().item() > plane.edge - 2
    assert ("reaches beyond the edge" in words(plane.legend)) == beyond
    if beyond:  # the same direction, up to the edge
        assert plane.edge - 10 < max(abs(x), abs(y)) < plane.edge
        tip *= max(abs(x), abs(y)) / tip.abs().max()
    assert [x, y] == [pixel(place) for place in tip.tolist()]

    (table,) = tables(explorer)
    letter = "x" if mix_x else "v"
    channels = [f"{letter}{c}" for c in range(mixed.shape[1])]
    assert table.columns == ["q · k / √2", "weight", *channels]
    assert table.names == [*WORDS, "output"]
    score, weight = table.column("q · k / √2"), table.column("weight")
    assert numbers(score) == near(scores)
    assert numbers(weight) == near(weights)
    assert [cell.bar for cell in weight[:-1]] == pixel((110 * weights).tolist())
    assert [cell.look == "marked" for cell in score[:-1]] == best
    assert [cell.bar_look == "best" for cell in weight[:-1]] == best
    for c, channel in enumerate(channels):
        *rows, out = table.column(channel)
        assert numbers(rows) == near(mixed[:, c])
        assert numbers([out]) == near(weights @ mixed[:, c])
        assert out.look == "marked" and {cell.look for cell in rows} == {"plain"}

    setting, told = now(explorer).split(": weights ")
    pairs = ", ".join(f"{word} {w.text}" for word, w in zip(WORDS, weight[:-1], strict=True))
    output = " ".join(cell.text for cell in table.rows[-1] if cell.text)
    assert told == f"{pairs}. weights @ {'x' if mix_x else 'values'} = {output}"
    assert plane.svg.get("aria-label").endswith(setting.removeprefix("query "))
    assert floats(setting) == [angle, length]


def test_a_query_of_length_0_is_a_dot_that_fits_all_keys_alike():
    explorer = EXAMPLES["query"]()
    move(explorer, {LENGTH: 0.0})
    plane = Plane(explorer)
    assert [*plane.arrows(GLOW)] == []
    (dot,) = plane.svg.iter("circle")
    assert dot.get("fill") == GLOW and float(dot.get("r")) > 2
    assert "Life 0.33, <is> 0.33, short 0.33" in now(explorer)


def test_it_begins_with_the_query_turned_round():
    plane = Plane(EXAMPLES["query"]())
    ((x, y),) = plane.arrows(GLOW)
    assert x < 0 < y


CROWDED = torch.tensor([[-0.08, -0.30], [-0.30, -0.73], [-0.48, -0.58], [0.53, 1.74]])
CLOSE = torch.tensor([[1.0, 1.0], [1.0, 1.02], [1.0, 0.98], [-1.0, 0.5], [-1.0, 0.5]])


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        (CROWDED, ["Life", "short", "first", "is"]),
        (CLOSE, ["Life", "short", "first", "is", "dessert"]),
        (KEYS, WORDS),
        (KEYS * 100, None),
    ],
)
def test_each_word_is_read_beside_the_tip_of_its_key(keys, names):
    view = explore_query(QUERY, keys, torch.ones(len(keys), 2), keys, words=names)
    plane = Plane(view)
    scale = max(max(map(abs, tip)) for tip in plane.arrows(SKY)) / keys.abs().max()
    tips = keys * scale * torch.tensor([1.0, -1.0])
    names = names or [str(i) for i in range(len(keys))]
    assert sorted(plane.words) == sorted(names)
    boxes = {}
    for name, tip in zip(names, tips.tolist(), strict=True):
        left, base = plane.words[name]
        right = left + text_width(name, 12)
        assert max(left - tip[0], tip[0] - right) < 12 + 2 * len(name), f"{name} beside its tip"
        assert -plane.edge < left and right < plane.edge
        boxes[name] = left, right, base
    for name, (left, right, base) in boxes.items():
        points = torch.linspace(0, 1, 101)[:, None, None] * tips  # (101, T, 2) along the arrows
        beside = (points[..., 0] > left) & (points[..., 0] < right)
        if keys is CROWDED:
            assert not (beside & ((points[..., 1] - (base - 4)).abs() < 5)).any(), name
        index = names.index(name)
        near_tip = abs(base - 4 - tips[index][1].item())
        assert near_tip <= 3.1 or (keys is CLOSE and near_tip < 45)
    for (a, b, y), (c, d, z) in itertools.combinations(boxes.values(), 2):
        assert abs(y - z) >= 13 or b < c or d < a, "words do not overlap"


def test_the_plane_and_its_legend_lie_on_the_picture():
    plane = Plane(EXAMPLES["query"]())
    left, top, width, height = floats(plane.svg.get("viewBox"))
    edge = plane.edge
    assert left < -edge and top < -edge and left + width > edge
    assert left <= float(plane.legend.get("x")) < 0, "room for the words to the right of it"
    assert edge + 10 < float(plane.legend.get("y")) < top + height
    assert words(plane.legend) == "■ query■ keys"
    assert [square.get("fill") for square in plane.legend] == [GLOW, SKY]


LONG = torch.zeros(9, 2)
WIDE = torch.zeros(3, 7)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: explore_query(X[0], X, VALUES, X), r"\(2,\) .* got \(3,\) and \(3, 3\)"),
        (lambda: explore_query(QUERY, X, VALUES, X), r"\(2,\) .* got \(2,\) and \(3, 3\)"),
        (lambda: explore_query(X[0], KEYS, VALUES, X), r"\(2,\) .* got \(3,\) and \(3, 2\)"),
        (lambda: explore_query(QUERY, KEYS, VALUES[:2], X), r"equally many.*values \(2, 4\)"),
        (lambda: explore_query(QUERY, KEYS, VALUES, X[:2]), r"equally many.*x \(2, 3\)"),
        (lambda: explore_query(QUERY, LONG, LONG, LONG), r"8 tokens.*keys \(9, 2\)"),
        (lambda: explore_query(QUERY, KEYS, WIDE, X), r"6 channels.*values \(3, 7\)"),
        (lambda: explore_query(QUERY, KEYS, VALUES, WIDE), r"6 channels.*x \(3, 7\)"),
        (lambda: explore_query(QUERY, KEYS, VALUES, X, words=["a"]), "3 keys, got 1"),
    ],
)
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_8_tokens_with_6_channels_fit():
    told = now(explore_query(QUERY, LONG[:8], torch.ones(8, 6), torch.ones(8, 6)))
    assert told.endswith("weights @ values = 1.00 1.00 1.00 1.00 1.00 1.00")
