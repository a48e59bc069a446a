import cmath
import itertools

import pytest
import torch

from attention_base.numbers import number
from explorers import explore_query
from helpers.pictures.base import text_width
from helpers.pictures.colours import GLOW, SKY
from helpers.pictures.table import Cell, Table
from tests.explorers.reading import Chart, cells, drawing

QUERY = torch.tensor([1.0, 2.0])
KEYS = torch.tensor([[0.5, -1.0], [3.0, 0.25], [-1.0, 0.75]])  # (3, 2)
VALUES = torch.tensor([[1.0, 0.0, 0.0, 2.0], [0.0, 4.0, 0.0, 2.0], [0.0, 0.0, 8.0, 2.0]])  # (3, 4)
X = torch.tensor([[1.0, 1.0, 0.5], [0.0, 2.0, 0.5], [-1.0, 3.0, 0.5]])  # (3, 3)
WORDS = ["Life", "<is>", "short"]
EDGE = 150  # from the middle of the plane, in pixels
LONG, WIDE = torch.zeros(9, 2), torch.ones(3, 7)


def model(query, keys, values, x, words, angle, length, mix_x):
    turned = complex(*query.tolist()) * cmath.rect(length, angle / 180 * cmath.pi)
    query = torch.tensor([turned.real, turned.imag], dtype=torch.double)
    scores = keys.double() @ query / 2**0.5
    weights = torch.softmax(scores, -1)
    mixed, letter, whole = (x, "x", "x") if mix_x else (values, "v", "values")
    out = weights @ mixed.double()
    setting = f"turned by {angle}°, {number(float(length), 1)} times as long"

    scale = EDGE / (1.2 * max(keys.abs().max().item(), 1e-3))  # no key reaches the edge
    beyond = query.abs().max().item() * scale / (EDGE - 2)
    from_below = sorted(zip(keys.tolist(), words, strict=True), key=lambda key: key[0][1])
    arrows = [((query / max(1, beyond)).tolist(), GLOW, 3)]
    arrows += [(key, SKY, 2) for key, _ in from_below]
    marks, lines = [], []
    for (right, up), colour, width in arrows:
        tip = complex(right, -up) * scale
        if abs(tip) < 1:  # no room for an arrow
            marks.append((colour, None, 0, 0))
            continue
        along = tip / abs(tip) * min(4 * width + 2, abs(tip))
        neck, side = tip - along, 0.45j * along
        for thick, places in (str(width), (0j, neck)), (None, (tip, neck + side, neck - side)):
            lines.append((colour, thick, [p.real for p in places], [p.imag for p in places]))
    legend = f"■ query{' (reaches beyond the edge)' * (beyond > 1)}■ keys"
    label = f"keys as arrows; the query {setting}"
    plane = Chart(label, [legend, *[word for _, word in from_below]], marks, lines)

    best, rows = weights.tolist().index(weights.max()), []
    for i, word in enumerate(words):
        look, bar_look = ("marked", "best") if i == best else ("plain", "")
        share = Cell(number(weights[i]), bar_look, bar=110 * weights[i].item())
        rows.append((word, [*cells([scores[i]], look), share, *cells(mixed[i], "plain")]))
    rows.append(("output", [Cell(""), Cell(""), *cells(out, "marked")]))
    columns = ["q · k / √2", "weight", *[f"{letter}{c}" for c in range(len(out))]]
    shares = ", ".join(f"{name} {number(w)}" for name, w in zip(words, weights, strict=True))
    told = f"weights {shares}. weights @ {whole} = {' '.join(map(number, out))}"
    return [f"query {setting}: {told}", plane, Table(columns, rows)]


def inputs(query=QUERY, keys=KEYS, values=VALUES, x=X, words=WORDS):
    return {"query": query, "keys": keys, "values": values, "x": x, "words": words}


CONTROLS = {
    "turned by °": (180, (-180, 180, 1)),
    "length ×": (1.0, (0, 4, 0.1)),
    "mix x: average the tokens, not the values": (False, ()),
}
TURNS = list(itertools.product((-180, 180, 90, -35, 0), (0.3, 1.0, 4.0, 0.0), (False, True)))
FULL = inputs(QUERY, LONG[:8], torch.ones(8, 6), torch.ones(8, 6), list("abcdefgh"))
CASES = [(inputs(), TURNS), (FULL, [(0, 1.0, True)])]
REFUSED = [
    (inputs(X[0], X, VALUES, X), r"\(2,\) .* got \(3,\) and \(3, 3\)"),
    (inputs(QUERY, X, VALUES, X), r"\(2,\) .* got \(2,\) and \(3, 3\)"),
    (inputs(X[0], KEYS, VALUES, X), r"\(2,\) .* got \(3,\) and \(3, 2\)"),
    (inputs(QUERY, KEYS, VALUES[:2], X), r"equally many.*values \(2, 4\)"),
    (inputs(QUERY, KEYS, VALUES, X[:2]), r"equally many.*x \(2, 3\)"),
    (inputs(QUERY, LONG, LONG, LONG), r"8 tokens.*keys \(9, 2\)"),
    (inputs(QUERY, KEYS, WIDE, X), r"6 channels.*values \(3, 7\)"),
    (inputs(QUERY, KEYS, VALUES, WIDE), r"6 channels.*x \(3, 7\)"),
    (inputs(QUERY, KEYS, VALUES, X, ["a"]), "3 keys, got 1"),
]

CROWDED = torch.tensor([[-0.08, -0.30], [-0.30, -0.73], [-0.48, -0.58], [0.53, 1.74]])
CLOSE = torch.tensor([[1.0, 1.0], [1.0, 1.02], [1.0, 0.98], [-1.0, 0.5], [-1.0, 0.5]])
NAMES = ["Life", "short", "first", "is", "dessert"]


@pytest.mark.parametrize(
    ("keys", "names"),
    [(CROWDED, NAMES[:4]), (CLOSE, NAMES), (KEYS, WORDS), (KEYS * 100, None)],
)
def test_each_word_is_read_beside_the_tip_of_its_key(keys, names):
    explorer = explore_query(QUERY, keys, torch.ones(len(keys), 2), keys, words=names)
    (svg,) = drawing(explorer).iter("svg")
    (axes,) = [path.get("d") for path in svg.iter("path") if "H" in path.get("d")]
    assert axes == f"M-{EDGE},0H{EDGE}M0,-{EDGE}V{EDGE}"
    frame, legend = next(svg.iter("rect")).attrib.values(), next(svg.iter("text"))
    assert list(map(int, frame)) == [-EDGE, -EDGE, 2 * EDGE, 2 * EDGE]
    assert float(legend.get("y")) > EDGE + 10
    assert [square.get("fill") for square in legend] == [GLOW, SKY]
    placed = {text.text: text for text in svg.iter("text")}
    assert not any(part.tail for part in svg), "nothing stands between the parts"
    tips = keys * EDGE / (1.2 * keys.abs().max()) * torch.tensor([1.0, -1.0])
    boxes = []
    for name, (x, y) in zip(names or "012", tips.tolist(), strict=True):
        left, base = (float(placed[name].get(place)) for place in "xy")
        right = left + text_width(name, 12)
        assert max(left - x, x - right) < 12 + 2 * len(name), f"{name} beside its tip"
        assert abs(base - 4 - y) <= 3.1 or (keys is CLOSE and abs(base - 4 - y) < 45)
        assert left > -EDGE and right < EDGE
        points = torch.linspace(0, 1, 101)[:, None, None] * tips  # (101, T, 2) along the arrows
        beside = (points[..., 0] > left) & (points[..., 0] < right)
        if keys is CROWDED:
            assert not (beside & ((points[..., 1] - (base - 4)).abs() < 5)).any(), name
        boxes.append((left, right, base))
    for (a, b, y), (c, d, z) in itertools.combinations(boxes, 2):
        assert abs(y - z) >= 13 or b < c or d < a, "words do not overlap"
