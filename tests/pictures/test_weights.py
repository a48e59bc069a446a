import re

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from helpers.numbers import number
from helpers.pictures import score_arrows, softmax_steps, why_this_weight
from helpers.pictures.colours import BLUE, ORANGE, PALE

WORDS = ["Life", "is", "short"]
QUERY = torch.tensor([1.0, 2.0])
KEYS = torch.tensor([[0.5, -1.0], [3.0, 0.25], [-1.0, 0.75]])  # (3, 2)
VALUES = torch.tensor([[1.0, 0.0, 0.0, 2.0], [0.0, 4.0, 0.0, 2.0], [0.0, 0.0, 8.0, 2.0]])  # (3, 4)
SCORES = [1.0, 0.0, 2.0, 5.0]
ALLOWED = [True, True, True, False]


def test_arrows_point_as_their_vectors_and_tell_the_dot_product():
    keys = {"a": [1.0, 0.5], "b": [-2.0, 0.25]}
    shown = score_arrows(QUERY, keys, title="Fit")
    ax = shown.figure().axes[0]
    drawn = [note for note in ax.texts if getattr(note, "arrow_patch", None)]
    vectors = np.array([np.subtract(note.xy, note.xyann) * [1, -1] for note in drawn])
    unit = vectors[0, 0] / QUERY[0].item()
    assert np.allclose(vectors / unit, [QUERY, keys["a"], QUERY, keys["b"]], atol=1e-6)
    colours = [to_hex(note.arrow_patch.get_facecolor()) for note in drawn]
    assert colours == [PALE, BLUE, PALE, BLUE]
    assert [t.get_text() for t in ax.texts if "score " in t.get_text()] == [
        "score 2.00",
        "score -1.50",
    ]
    assert str(shown).splitlines() == [
        "Arrows: Fit",
        "query: (1, 2)",
        "key  channel 0  channel 1  score",
        "  a          1       0.50   2.00",
        "  b         -2       0.25  -1.50",
    ]


def test_softmax_steps_end_in_the_softmax():
    shown = str(softmax_steps(SCORES, ALLOWED, labels=list("abcd")))
    weights = torch.softmax(torch.tensor([1.0, 0.0, 2.0, -torch.inf]), -1)
    last = shown.splitlines()[-1]
    assert re.findall(r"\d\.\d\d", last) == [f"{w:.2f}" for w in weights[:3]] + ["1.00"]
    assert last.split()[-3] == "0"  # exp turns -inf into nothing at all
    assert "exp(score)  " in shown and "7.39" in shown  # as in the formula
    assert shown.splitlines()[3].split() == ["masked", "1.00", "0", "2.00", "-inf"]
    large = str(softmax_steps([11.0, 12.0, 99.0], [True, True, False]))
    assert "exp(score - 12" in large  # the largest that may be seen, not the largest
    assert "exp(score - (-20" in str(softmax_steps([-20.0, -21.0]))


def test_the_bars_of_the_softmax_are_as_long_as_its_weights():
    ax = softmax_steps(SCORES, ALLOWED).figure().axes[0]
    heights = np.abs([bar.get_height() for bar in ax.containers[0]])
    weights = torch.softmax(torch.tensor([1.0, 0.0, 2.0, -torch.inf]), -1).numpy()
    assert np.allclose(heights / heights.sum(), weights, atol=1e-6)


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


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: softmax_steps(KEYS), r"one row.*\(3, 2\)"),
        (lambda: score_arrows(QUERY, {}), "1 to 6 keys, got 0"),
        (lambda: score_arrows([1.0], {"a": QUERY}), r"query must be two .*got \[1.0\]"),
        (lambda: score_arrows(QUERY, {"a": [1.0, torch.nan]}), "the key 'a' must be two finite"),
        (lambda: softmax_steps([1.0, -torch.inf]), "allowed=, not as -inf"),
        (lambda: softmax_steps([1.0, 2.0], [False, False]), "0/0 is nan"),
        (lambda: softmax_steps([1.0, 2.0], labels=["a"]), "each of the 2 scores, got 1"),
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
