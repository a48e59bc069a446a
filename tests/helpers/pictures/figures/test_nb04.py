from itertools import pairwise

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from attention_base.numbers import number
from helpers.pictures import why_this_weight
from helpers.pictures.colours import BLUE, ORANGE
from tests.helpers.pictures import reading

WORDS = ["Life", "is", "short"]


QUERY = torch.tensor([1.0, 2.0])


KEYS = torch.tensor([[0.5, -1.0], [3.0, 0.25], [-1.0, 0.75]])  # (3, 2)


VALUES = torch.tensor([[1.0, 0.0, 0.0, 2.0], [0.0, 4.0, 0.0, 2.0], [0.0, 0.0, 8.0, 2.0]])  # (3, 4)


def test_why_this_weight_follows_the_formula():
    shown = str(why_this_weight(QUERY, KEYS, VALUES, 1, words=WORDS))
    scores = KEYS @ QUERY
    weights = torch.softmax(scores / 2**0.5, dim=-1)
    out = weights @ VALUES
    first, second, third = (part.splitlines() for part in shown.split("\n\n")[1:])
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


def test_the_weight_that_is_explained_is_marked():
    shown = why_this_weight(QUERY, KEYS, VALUES, 2, words=WORDS)
    ax = shown.figure().axes[0]
    bars = ax.containers[0]
    widths = np.array([bar.get_width() for bar in bars])
    weights = torch.softmax(KEYS @ QUERY / 2**0.5, -1).numpy()
    assert np.allclose(widths / widths.sum(), weights, atol=1e-6)
    assert [to_hex(bar.get_facecolor()) for bar in bars] == [BLUE, BLUE, ORANGE]
    frames = [patch for patch in ax.patches if not patch.get_fill()]
    assert len(frames) == 3 + 4 + 1  # a row of scores, the shares, and the sum of the products
    assert shown.html().count("outline:2px") == 3 + 4


@pytest.mark.parametrize("j", [0, 2])
def test_arrows_lead_from_the_score_to_its_key_and_from_its_weight_to_the_shares(j):
    (page,) = why_this_weight(QUERY, KEYS, VALUES, j, words=WORDS).figure().axes
    products, weights, shares, (((score,),)) = reading.grids_on(page)
    row = weights[j]
    assert score.text == row[0].text and score.marked
    assert score.x == products[-1][2].x and score.y > products[-1][2].y  # below the products
    assert [[box.marked for box in line] for line in weights] == [[r == j] * 3 for r in range(3)]
    assert [[box.marked for box in line] for line in shares] == [[False, True, False]] * 4
    first, second = [line.get_xydata() for line in page.lines]
    bar = page.containers[0][j]
    middle = row[0].y + row[0].height / 2
    assert bar.get_y() + bar.get_height() / 2 == pytest.approx(middle)
    assert first[0, 0] > score.x + score.width and first[0, 1] == score.y + score.height / 2
    assert score.x + score.width < first[-1, 0] < weights[0][0].x and first[-1, 1] == middle
    assert row[-1].x + row[-1].width < bar.get_x() < second[0, 0] and second[0, 1] == middle
    assert bar.get_x() + bar.get_width() < second[0, 0]
    assert second[-1, 0] < shares[0][0].x
    assert 2 * second[-1, 1] == shares[0][0].y + shares[-1][0].y + shares[-1][0].height
    # Below each table stands a sentence, which begins where the room of the table does.
    _, *begins = sorted(t.get_position()[0] for t in page.texts if t.get_va() == "top")[-3:]
    for elbow, tip, begin in zip((first, second), page.patches[-2:], begins, strict=True):
        for (a, b), (c, d) in pairwise(elbow):
            assert (a < c and b == d) or a == c  # level to the right, or upright
        (left, top), (below_left, bottom), (x, y), _ = tip.get_xy()
        assert left == below_left < elbow[-1, 0] < x
        assert top < y < bottom and top + bottom == 2 * y == 2 * elbow[-1, 1]
        assert x < begin


def test_whole_scores_are_written_alike_everywhere():
    shown = why_this_weight([1.0, 2.0], [[3.0, 4.0], [0.0, 1.0]], [[1.0], [2.0]], 0)
    assert "add up to the score: 11." in str(shown)
    (page,) = shown.figure().axes
    *_, (((score,),)) = reading.grids_on(page)
    assert score.text == reading.read_html(shown.html())[1].cells[0][0] == "11"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: why_this_weight(KEYS, KEYS, VALUES, 0), r"shape \(2,\), got \(3, 2\)"),
        (lambda: why_this_weight(QUERY, KEYS, VALUES[:2], 0), "3 keys and 2 values"),
        (lambda: why_this_weight(QUERY, KEYS, VALUES, 3), "from 0 to 2, got 3"),
        (lambda: why_this_weight(QUERY * torch.nan, KEYS, VALUES, 0), "finite"),
        (lambda: why_this_weight(QUERY, KEYS, VALUES, 0, words=["a"]), "3 keys, got 1"),
        (lambda: why_this_weight(QUERY, KEYS.repeat(5, 1), VALUES.repeat(5, 1), 0), "up to 12"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
