import re

import pytest
import torch

from helpers.explorers import explore_query
from helpers.numbers import number
from tests.explorers.examples import EXAMPLES, KEYS, QUERY, VALUES, WORDS
from tests.explorers.examples import X_OF_QUERY as X


def numbers_after(explorer, words):
    return re.findall(r"-?\d+\.\d\d|\b0\b", str(explorer).split(words)[1])


def test_it_begins_with_the_query_turned_round():
    told = str(EXAMPLES["query"]())
    weights = torch.softmax(KEYS @ -QUERY / 2**0.5, -1)
    for word, weight in zip(WORDS, weights, strict=True):
        assert f"{word} {number(weight)}" in told


def test_at_0_it_is_the_query_as_given_and_what_is_ticked_is_averaged():
    explorer = EXAMPLES["query"]()
    explorer.controls["angle"].value = 0
    weights = torch.softmax(KEYS @ QUERY / 2**0.5, -1)
    for word, weight in zip(WORDS, weights, strict=True):
        assert f"{word} {number(weight)}" in str(explorer)
    assert numbers_after(explorer, "@ values") == [number(o) for o in weights @ VALUES]
    explorer.controls["mix x"].value = True
    assert numbers_after(explorer, "@ x") == [number(o) for o in weights @ X]
    assert f"<is> {number(weights[1])}" in str(explorer)


def test_a_longer_query_sharpens_and_stays_on_the_plane():
    explorer = EXAMPLES["query"]()
    explorer.controls["angle"].value = 90
    explorer.controls["length"].value = 4.0
    weights = torch.softmax(KEYS @ torch.tensor([-8.0, 4.0]) / 2**0.5, -1)
    told = f"weights Life {number(weights[0])}, <is> 0, short {number(weights[2])}."
    assert told in str(explorer)
    assert "reaches beyond the edge" in explorer.view.value
    tip = re.search(r'fill="#e8792b"/>', explorer.view.value).start()
    x = float(re.findall(r'd="M(-?[\d.]+),', explorer.view.value[:tip])[-1])
    assert -150 <= x < -140
    explorer.controls["length"].value = 0.0
    assert "Life 0.33, <is> 0.33, short 0.33" in str(explorer)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: explore_query(X[0], X, VALUES, X), r"\(2,\) .* got \(3,\) and \(3, 3\)"),
        (lambda: explore_query(QUERY, KEYS, VALUES[:2], X), r"equally many.*values \(2, 4\)"),
        (lambda: explore_query(QUERY, KEYS, VALUES, X, words=["a"]), "3 keys, got 1"),
    ],
)
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_no_word_lies_on_the_arrow_of_a_key():
    keys = torch.tensor([[-0.08, -0.30], [-0.30, -0.73], [-0.48, -0.58], [0.53, 1.74]])
    words = ["Life", "short", "first", "is"]
    view = explore_query(QUERY, keys, torch.ones(4, 2), torch.ones(4, 2), words=words).view.value
    tips = keys * 150 / (1.2 * 1.74) * torch.tensor([1.0, -1.0])
    for word in words:
        left, base = map(
            float, re.search(rf'<text x="([-\d.]+)" y="([-\d.]+)">{word}<', view).groups()
        )
        points = torch.linspace(0, 1, 101)[:, None, None] * tips  # (101, T, 2) along the arrows
        beside = (points[..., 0] > left) & (points[..., 0] < left + 6 * len(word))
        assert not (beside & ((points[..., 1] - (base - 4)).abs() < 5)).any(), word
