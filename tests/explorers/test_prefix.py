import pytest
import torch

from attention_base.numbers import number
from explorers import explore_prefix
from helpers.pictures.colours import BLUE, GLOW
from helpers.pictures.table import Cell, Table
from tests.explorers.reading import Chart, cells, drawing, floats, near, now

X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [4.0, 1.0]])
WIDE = torch.tensor([[20.0, -3.0], [-5.0, 14.5], [7.0, 0.0]])
# By T: the numbers at the axes, left and below, and the middle of the axis below.
AXES = {4: (range(-1, 4), range(-1, 5), 1.5), 3: (range(-6, 24, 6), range(-6, 24, 6), 7.5)}


def model(x, t):
    left, below, middle = AXES[len(x)]
    x = x.double()
    means = [x[: i + 1].mean(0) for i in range(t + 1)]
    tokens = "token 0" if t == 0 else f"tokens 0…{t}"
    spot = ", ".join(map(number, means[t]))
    told = f"t = {t}: the mean of {tokens} is ({spot}), {t + 1} of {len(x)} tokens in it"
    path = torch.stack(means).T.tolist()
    marks = [(GLOW, None, *mean.tolist()) for mean in means]
    marks += [(BLUE, None, *point) for point in x[: t + 1].tolist()]
    marks += [("none", ".7", *point) for point in x[t + 1 :].tolist()]
    marks.append(("channel 0", None, middle, None))
    names = ["channel 0", "channel 1", *map(str, range(len(x)))]
    plane = Chart(told, [*map(str, [*left, *below]), *names], marks, [(GLOW, "2.5", *path)])
    rows = [cells(x[i], "plain") + cells(means[i], "marked" * (i == t)) for i in range(t + 1)]
    rows += [cells(point, "faint") + [Cell("")] * 2 for point in x[t + 1 :]]
    columns = ["channel 0", "channel 1", "mean, ch. 0", "mean, ch. 1"]
    rows = [(str(i), row) for i, row in enumerate(rows)]
    return [told, plane, Table(columns, rows, corner="token"), f"{told}."]


CONTROLS = {"t": (3, (0, 3, 1))}
CASES = [({"x": X}, [(0,), (1,), (2,), (3,)]), ({"x": WIDE}, [(0,), (1,), (2,)])]
REFUSED = [
    ({"x": torch.zeros(4, 3)}, r"\(T, 2\), got \(4, 3\)"),
    ({"x": torch.zeros(2, 4, 2)}, r"\(T, 2\), got \(2, 4, 2\)"),
    ({"x": torch.zeros(0, 2)}, r"\(T, 2\), got \(0, 2\)"),
    ({"x": [[0.0, float("nan")]]}, "finite"),
]


@pytest.mark.parametrize("x", [X, WIDE, X / 100, [[0.0, 0.0]]])
def test_all_tokens_lie_inside_the_frame_and_its_words_near_it(x):
    (svg,) = drawing(explore_prefix(x)).iter("svg")
    side = float(next(svg.iter("rect")).get("width"))
    for token in [g for g in svg.iter("g") if g.get("transform")]:
        assert all(10 < place < side - 10 for place in floats(token.get("transform")))
    assert all(float(text.get("y", 0)) <= side + 32 for text in svg.iter("text"))


def test_both_channels_have_one_scale_and_the_line_of_0_is_the_strongest():
    paths = list(drawing(explore_prefix(X)).iter("path"))  # both axes begin with -1 and 0
    steps = []
    for place, way in enumerate("VH"):
        lines = [path for path in paths if way in path.get("d")]
        assert [i for i, line in enumerate(lines) if float(line.get("opacity")) > 0.3] == [1]
        steps.append(floats(lines[1].get("d"))[place] - floats(lines[0].get("d"))[place])
    assert steps[0] == near(-steps[1], 0.2)


def test_it_begins_with_token_3_or_the_last_of_a_short_sequence():
    for T, t in (2, 1), (8, 3):
        assert now(explore_prefix(torch.ones(T, 2))).startswith(f"t = {t}: ")


def test_the_star_is_seen_around_the_token_that_it_meets():
    elements = list(drawing(explore_prefix(X[:1])).iter())  # the mean of token 0 is token 0
    (star,) = [e for e in elements if e.get("fill-opacity")]
    token = next(e for e in elements if e.get("r") == "10")
    assert elements.index(star) < elements.index(token), "the token lies over the star"
    reach = max(map(abs, floats(star.get("d")))) * floats(star.get("transform"))[2]
    assert reach > 20, "the star is wider than the token"
