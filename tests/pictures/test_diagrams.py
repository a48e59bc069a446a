import itertools
import re

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgba

from helpers.numbers import brief, number
from helpers.pictures import base as picture
from helpers.pictures.colours import ORANGE, STROKES
from helpers.pictures.lines import curves
from helpers.pictures.tensors import ribbon
from helpers.pictures.weights import why_this_weight

WORDS = ["Life", "is", "short"]
QUERY = torch.tensor([1.0, 2.0])
KEYS = torch.tensor([[0.5, -1.0], [3.0, 0.25], [-1.0, 0.75]])  # (3, 2)
VALUES = torch.tensor([[1.0, 0.0, 0.0, 2.0], [0.0, 4.0, 0.0, 2.0], [0.0, 0.0, 8.0, 2.0]])  # (3, 4)
X = [1, 4, 16, 64]
PANELS = {
    "size": {"raw": [1.0, 4, 16, 64], "scaled": [1.0, 1, 1, 1.01]},
    "share": {"raw": [0.25, 0.1, 0.0052, 0], "scaled": [0.25] * 4},
}
TWO = {"xlabel": "d", "logx": True, "logy": ["size"]}

ALL = {
    "why": lambda: why_this_weight(QUERY, KEYS, VALUES, 1, words=WORDS, title="Why “is”?"),
    "large why": lambda: why_this_weight(
        torch.full((12,), -99.5), torch.ones(12, 12), -100.5 * torch.ones(12, 12), 11,
        words=["dishwashers"] * 12, title="A long title " * 9,
    ),
    "one token": lambda: why_this_weight([1.0], [[1.0]], [[1.0]], 0),
    "curves": lambda: curves(X, PANELS, **TWO, title="Two quantities"),
    "six panels": lambda: curves(
        range(1, 101),
        {f"panel {i}, with a name that is longer than its line": {
            f"a way that is called {name}": np.geomspace(10.0 ** -i, 1, 100) for name in "abcdef"
        } for i in range(0, 30, 5)},
        xlabel="steps", logy=["panel 25, with a name that is longer than its line"],
    ),
    "one curve": lambda: curves([0.5, 1.5], {"loss": {"a": [-1e-9, 0.0]}}, xlabel="x"),
    "ribbon": lambda: ribbon(4, 2, 2, title="Whose channels?"),
    "large ribbon": lambda: ribbon(8, 4, 2),
    "narrow ribbon": lambda: ribbon(1, 1, 1),
    "many heads": lambda: ribbon(4, 8, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_every_diagram_has_its_three_faces(name):
    drawn = ALL[name]()
    data, metadata = drawn._repr_mimebundle_()
    assert data["text/plain"] == str(drawn)
    assert 20 < len(metadata["image/png"]["alt"]) < 800
    assert len(drawn.png()) < 100_000
    html = drawn.html()
    assert html.count("<table") == html.count("</table>") >= 1
    assert html.count('scope="row"') >= 1


@pytest.mark.parametrize("name", ALL)
def test_no_text_of_a_diagram_is_cut_off_or_covered(name):
    figure = ALL[name]().figure()
    picture._png(figure)
    width, height = figure.bbox.size
    assert width <= 2 * 900
    boxes = {}
    for text in figure.findobj(lambda artist: hasattr(artist, "get_text") and artist.get_text()):
        box = text.get_window_extent()
        if text.get_visible() and figure.bbox.overlaps(box):  # ticks outside are never drawn
            boxes[text] = box
            inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
            assert inside, f"cut off: {text.get_text()!r}"
    for (a, one), (b, two) in itertools.combinations(boxes.items(), 2):
        apart = one.x1 <= two.x0 + 1 or two.x1 <= one.x0 + 1
        apart = apart or one.y1 <= two.y0 + 2 or two.y1 <= one.y0 + 2
        assert apart, f"{a.get_text()!r} lies on {b.get_text()!r}"


def test_why_this_weight_follows_the_formula():
    told = str(why_this_weight(QUERY, KEYS, VALUES, 1, words=WORDS))
    scores = KEYS @ QUERY
    weights = torch.softmax(scores / 2**0.5, dim=-1)
    out = weights @ VALUES
    first, second, third = (part.splitlines() for part in told.split("\n\n")[1:])
    assert first[0] == "The products add up to the score: 3.50."
    assert [line.split()[-3:] for line in first[2:]] == [
        ["1", "3.00", "3.00"],
        ["2", "0.25", "0.50"],
    ]
    for row, word in enumerate(WORDS):
        numbers = [scores[row], scores[row] / 2**0.5, weights[row]]
        assert second[2 + row].split() == [word, *map(number, numbers)]
    assert [line.split()[-1] for line in third[2:]] == [number(o) for o in out]
    assert third[3].split()[1:3] == ["4", f"{4 * weights[1]:.2f}"]
    assert "× 0.87" in third[1]


def test_the_row_that_is_explained_is_marked():
    shown = why_this_weight(QUERY, KEYS, VALUES, 2, words=WORDS)
    ax = shown.figure().axes[0]
    widths = np.array([bar.get_width() for bar in ax.containers[0]])
    weights = torch.softmax(KEYS @ QUERY / 2**0.5, -1).numpy()
    assert np.allclose(widths / widths.sum(), weights, atol=1e-6)
    orange = [bar.get_facecolor() == to_rgba(ORANGE) for bar in ax.containers[0]]
    assert orange == [False, False, True]
    assert shown.html().count("outline:2px") == 3 + 4  # one row of scores, the shares


def test_curves_draw_and_tell_the_same_numbers():
    shown = curves(X, PANELS, **TWO)
    _, size, share = shown.figure().axes
    assert (size.get_xscale(), size.get_yscale(), share.get_yscale()) == ("log", "log", "linear")
    for ax, given in zip((size, share), PANELS.values(), strict=True):
        for line, (name, values) in zip(ax.lines, given.items(), strict=True):
            assert (line.get_label(), line.get_xydata().tolist()) == (
                name,
                [[float(a), float(b)] for a, b in zip(X, values, strict=True)],
            )
    assert [line.get_color() for line in size.lines] == [stroke[0] for stroke in STROKES[:2]]
    assert str(shown).splitlines() == [
        "Curves",
        "across: d (logarithmic)",
        "",
        "size (logarithmic)",
        "          1    4   16   64",
        "raw       1    4   16   64",
        "scaled  1.0  1.0  1.0  1.0",
        "",
        "share",
        "           1     4      16    64",
        "raw     0.25  0.10  0.0052     0",
        "scaled  0.25  0.25    0.25  0.25",
    ]


def test_ticks_are_few_and_readable():
    def ticks(values, log=True):
        panels = {"p": {"a": values}}
        ax = curves([1, 2], panels, xlabel="x", logy=["p"] * log).figure().axes[1]
        return [label.get_text() for label in ax.get_yticklabels()]

    assert ticks([1e-27, 7]) == ["10⁻²⁴", "10⁻¹⁸", "10⁻¹²", "10⁻⁶", "1"]
    assert ticks([0.99, 1000]) == ["1", "10", "100", "1000"]
    assert ticks([2, 8]) == ["1", "10"]
    assert ticks([0, 1.0], log=False) == ["0", "0.5", "1"]
    assert ticks([3, 3], log=False)[0] == "0"


def test_next_to_nothing_is_told_only_on_a_logarithmic_axis():
    panels = {"log": {"a": [1e-9, 0.5]}, "linear": {"a": [1e-9, 0.5]}}
    told = str(curves([1, 2], panels, xlabel="x", logy=["log"]))
    assert [line.split()[1] for line in told.splitlines() if line.startswith("a ")] == [
        "1.0e-09",
        "0",
    ]


def test_a_gap_is_left_where_there_is_no_number():
    shown = curves([1, 2, 3], {"p": {"a": [1.0, torch.nan, 2.5]}}, xlabel="x")
    line = shown.figure().axes[1].lines[0]
    assert np.isnan(line.get_ydata()).tolist() == [False, True, False]
    assert str(shown).splitlines()[-1] == "a  1.0  nan  2.5"


@pytest.mark.parametrize(
    ("value", "text"),
    [(9.04e-28, "9.0e-28"), (-0.00523, "-0.0052"), (0.0996, "0.10"), (0.996, "1.0"), (17.2, "17"),
     (9961, "1.0e+04"), (247_000, "2.5e+05"), (0.0, "0"), (float("inf"), "inf")],
)  # fmt: skip
def test_brief_keeps_two_figures(value, text):
    assert brief(value) == text


def test_strict_mode_refuses_a_figure_on_the_edge(monkeypatch):
    monkeypatch.setenv("ATTENTION_STRICT", "1")
    with pytest.raises(ValueError, match="another machine"):
        brief(4.15e-5 + 1e-12)


def test_the_ribbon_is_cut_as_torch_cuts_it():
    T, n_head, head_size = 3, 2, 2
    x = torch.tensor([[t + c / 10 for c in range(4)] for t in range(T)])
    told = str(ribbon(T, n_head, head_size))
    right, wrong = told.split("\n\n")[2:]
    for part, heads in (
        (right, x.view(T, n_head, head_size).transpose(0, 1)),
        (wrong, x.view(n_head, T, head_size)),
    ):
        numbers = [float(n) for n in re.findall(r"^\d\.\d.*$", part, re.M) for n in n.split()]
        assert torch.allclose(torch.tensor(numbers), heads.flatten(), atol=1e-6)
    assert ribbon(2, 2, 1).alt.endswith("holds channels of token 0 only.")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: why_this_weight(KEYS, KEYS, VALUES, 0), r"shape \(2,\), got \(3, 2\)"),
        (lambda: why_this_weight(QUERY, KEYS, VALUES[:2], 0), "3 keys and 2 values"),
        (lambda: why_this_weight(QUERY, KEYS, VALUES, 3), "from 0 to 2, got 3"),
        (lambda: why_this_weight(QUERY * torch.nan, KEYS, VALUES, 0), "finite"),
        (lambda: why_this_weight(QUERY, KEYS, VALUES, 0, words=["a"]), "3 keys, got 1"),
        (lambda: why_this_weight(QUERY, KEYS.repeat(5, 1), VALUES.repeat(5, 1), 0), "up to 12"),
        (lambda: curves([2, 1], PANELS, xlabel="x"), "increasing"),
        (lambda: curves([0, 1], {"p": {"a": [1, 2]}}, xlabel="x", logx=True), "above 0, got 0"),
        (lambda: curves([1, 2], {}, xlabel="x"), "at least one panel"),
        (lambda: curves([1, 2], {"p": {"a": [1]}}, xlabel="x"), r"'a' in 'p'.*2 x, got .*\(1,\)"),
        (lambda: curves(X, PANELS, xlabel="x", logy=["q"]), r"'q'.*\['size', 'share'\]"),
        (lambda: curves(X, PANELS, xlabel="x", logy=["share"]), "no place for 0, in 'raw'"),
        (lambda: curves(X, PANELS, xlabel="x", columns=4), "1, 2 or 3, got 4"),
        (
            lambda: curves([1, 2], {"p": {n: [1, 2] for n in "abcdefg"}}, xlabel="x"),
            "6 lines apart, got 7",
        ),
        (lambda: ribbon(0, 2, 2), "T must be .* got 0"),
        (lambda: ribbon(9, 1, 1), "8 tokens.* got 9 tokens"),
        (lambda: ribbon(8, 3, 3), "72 cells"),
        (lambda: ribbon(1, 9, 1), "8 heads"),
        (lambda: ribbon(1, 1, 17), "16 channels"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
