import re

import numpy as np
import pytest
import torch

from helpers.pictures import base as picture
from helpers.pictures import plane, row_times_column, sheets, softmax_steps, staircase

X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [4.0, 1.0]])  # (4, 2)
L = torch.ones(3, 3).tril()
A = torch.tensor([[8.0, 6.0, 5.0], [2.0, 4.0, 4.0], [7.0, 4.0, 5.0]])
SCORES = [1.0, 0.0, 2.0, 5.0]
ALLOWED = [True, True, True, False]

ALL = {
    "sheets": lambda: sheets(torch.arange(24).reshape(2, 3, 4), title="A long title " * 9),
    "many sheets": lambda: sheets(torch.full((9, 4, 5), -1000.5)),
    "staircase": lambda: staircase(8, title="Who"),
    "one token": lambda: staircase(1),
    "plane": lambda: plane(X, 2, title="Means"),
    "row times column": lambda: row_times_column(L, A, 1, 0, names=("L", "a"), title="A sum"),
    "wide rows": lambda: row_times_column(torch.full((1, 8), 0.125), torch.ones(8, 8), 0, 7),
    "softmax": lambda: softmax_steps(SCORES, ALLOWED, labels=["Life", "is", "short", "eat"]),
    "long softmax": lambda: softmax_steps(torch.arange(10.0) - 99, labels=["extraordinarily"] * 10),
}


@pytest.mark.parametrize("name", ALL)
def test_every_drawing_has_its_three_faces(name):
    drawn = ALL[name]()
    data, metadata = drawn._repr_mimebundle_()
    assert data["text/plain"] == str(drawn)
    assert 20 < len(metadata["image/png"]["alt"]) < 500
    assert len(drawn.png()) < 60_000
    html = drawn.html()
    assert html.count("<table") == html.count("</table>") >= 1
    assert html.count('scope="row"') >= 1


@pytest.mark.parametrize("name", ALL)
def test_no_text_of_a_drawing_is_cut_off(name):
    figure = ALL[name]().figure()
    picture._png(figure)
    width, height = figure.bbox.size
    assert width <= 2 * 900
    for text in figure.findobj(lambda artist: hasattr(artist, "get_text") and artist.get_text()):
        box = text.get_window_extent()
        inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
        # The ticks outside the limits are never drawn.
        assert inside or not figure.bbox.overlaps(box), f"cut off: {text.get_text()!r}"


def test_sheets_tell_every_number_under_its_sheet():
    assert str(sheets([[[1, 2]], [[3, 44]]], names=("b", "row", "col"))).splitlines() == [
        "2 sheets of 1 x 2",
        "sheet = b, row = row, column = col",
        "",
        "b = 0",
        "   0  1",
        "0  1  2",
        "",
        "b = 1",
        "   0   1",
        "0  3  44",
    ]


def test_the_staircase_has_one_arrow_for_each_pair():
    def arrows(drawn):
        return [text for text in drawn.figure().axes[0].texts if hasattr(text, "arrow_patch")]

    assert len(arrows(staircase(5))) == 15
    window = np.tri(5, dtype=bool) & ~np.tri(5, k=-2, dtype=bool)
    shown = staircase(5, mask=window)
    assert len(arrows(shown)) == 9
    assert str(shown).splitlines()[1:4] == [
        "output 0 reads itself",
        "output 1 reads input 0 and itself",
        "output 2 reads input 1 and itself",
    ]
    strict = str(staircase(3, mask=np.tri(3, k=-1, dtype=bool)))
    assert strict.endswith(
        "output 0 reads nothing\noutput 1 reads input 0\noutput 2 reads inputs 0, 1"
    )


def test_the_plane_marks_the_mean_of_the_prefix():
    shown = plane(X, 1)
    assert "mean of 0…1       0.50       1.00" in str(shown)
    ax = shown.figure().axes[1]
    star = next(line for line in ax.lines if line.get_marker() == "*")
    assert star.get_xydata().tolist() == [[0.5, 1.0]]
    assert ax.get_aspect() == 1
    assert str(plane(X, 2)) != str(shown)


def test_row_times_column_writes_the_sum_out():
    shown = row_times_column(L, A, 1, 0, names=("L", "a"))
    assert str(shown).endswith("row 1 x column 0:  1 x 8 + 1 x 2 + 0 x 7 = 10")
    assert "17  14  14" in str(shown)
    assert shown.html().count("outline:2px") == 7  # a row, a column and the result
    negative = row_times_column([[0.5, -1.5]], [[-2.0], [1.0]], 0, 0)
    assert "0.50 x (-2) + -1.50 x 1 = -2.50" in str(negative)
    long = row_times_column(torch.tensor([[1.0, 1, 0, 0, 0]]), torch.arange(5.0)[:, None], 0, 0)
    assert str(long).endswith("1 x 0 + 1 x 1 + 3 times 0 = 1")


def test_softmax_steps_end_in_the_softmax():
    shown = str(softmax_steps(SCORES, ALLOWED, labels=list("abcd")))
    weights = torch.softmax(torch.tensor([1.0, 0.0, 2.0, -torch.inf]), -1)
    last = shown.splitlines()[-1]
    assert re.findall(r"\d\.\d\d", last) == [f"{w:.2f}" for w in weights[:3]] + ["1.00"]
    assert last.split()[-3] == "0"  # exp turns -inf into nothing at all
    assert "exp(score - 2" in shown  # the largest that may be seen, not the largest
    assert shown.splitlines()[3].split() == ["masked", "1.00", "0", "2.00", "-inf"]
    assert "exp(score - (-1" in str(softmax_steps([-1.0, -2.0]))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sheets(X), r"3-D.*\(4, 2\)"),
        (lambda: sheets(torch.zeros(4, 8, 32)), "at most 200 numbers, got 1024.*slice"),
        (lambda: staircase(13), "1 to 12 tokens, got T=13"),
        (lambda: staircase(3, mask=np.ones((2, 2), dtype=bool)), r"\(3, 3\), got \(2, 2\)"),
        (lambda: plane(A, 0), r"shape \(T, 2\), got \(3, 3\)"),
        (lambda: plane(X, 4), "from 0 to 3, got 4"),
        (lambda: plane(X * torch.inf, 0), "finite"),
        (lambda: row_times_column(X, A, 0, 0), r"\(4, 2\) @ \(3, 3\)"),
        (lambda: row_times_column(L, A, 3, 0), r"no cell \(3, 0\)"),
        (lambda: row_times_column(torch.zeros(9, 2), X.T, 0, 0), "up to 8"),
        (lambda: softmax_steps(A), r"one row.*\(3, 3\)"),
        (lambda: softmax_steps([1.0, -torch.inf]), "allowed=, not as -inf"),
        (lambda: softmax_steps([1.0, 2.0], [False, False]), "0/0 is nan"),
        (lambda: softmax_steps([1.0, 2.0], labels=["a"]), "each of the 2 scores, got 1"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
