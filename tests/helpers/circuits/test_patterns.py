"""Patterns of attention that are known exactly."""

import pytest
import torch

from helpers.circuits import (
    RULES,
    equal_weights,
    followers,
    held_out,
    induction_score,
    letter_followers,
    previous_token_score,
    tokens_back,
)


def test_tokens_back_has_its_shares_in_each_row():
    pattern = tokens_back({0: 0.1, 2: 0.3})(5)
    for t in range(5):
        wanted = {t: 1.0} if t < 2 else {t: 0.25, t - 2: 0.75}
        for j in range(5):
            assert pattern[t, j] == pytest.approx(wanted.get(j, 0))


def test_a_row_that_sees_none_of_the_tokens_attends_to_its_own():
    assert torch.equal(tokens_back({3: 1.0})(3), torch.eye(3))
    assert torch.equal(tokens_back({1: 1.0})(1), torch.eye(1))
    assert previous_token_score(tokens_back({1: 2.0})(6)) == 1


def test_equal_weights_are_the_running_mean():
    x = torch.arange(5.0)
    assert torch.allclose(equal_weights(5) @ x, x.cumsum(0) / torch.arange(1.0, 6))


def test_followers_have_an_induction_score_of_1():
    ids, period = held_out()
    weights = followers(period)(48)
    assert weights.shape == (200, 1, 48, 48)
    assert torch.equal(induction_score(weights, period), torch.ones(200, 1))
    assert torch.equal(weights.sum(dim=-1), torch.ones(200, 1, 48))
    for text, p, rows in zip(ids[:9], period.flatten().tolist(), weights, strict=False):
        keys = rows[0].argmax(dim=-1)
        assert torch.equal(keys[:p], torch.arange(p))
        assert torch.equal(text[keys[p:]], text[p + 1 : 49])  # the letter that comes next
    assert torch.equal(followers(3)(7), followers(torch.tensor([[3]]))(7))


def test_letter_followers_are_the_rule_of_exercise_11_4():
    ids, _ = held_out()
    weights = letter_followers(ids[:20])
    assert weights.shape == (20, 1, 49, 49)
    for text, rows in zip(ids, weights[:, 0], strict=False):
        word = "".join(chr(97 + letter) for letter in text)
        assert torch.allclose(rows, RULES["induction"].weights(word))


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({}, "at least one"),
        ([1, 2], r"at least one .* got \[1, 2\]"),
        ({-1: 1.0}, "whole numbers from 0 on, got -1"),
        ({0.5: 1.0}, "whole numbers from 0 on, got 0.5"),
        ({1: 0.0}, "larger than 0; 1 back has 0.0"),
        ({1: 1.0, 2: -0.2}, "larger than 0; 2 back has -0.2"),
        ({1: float("nan")}, "larger than 0; 1 back has nan"),
    ],
)
def test_what_are_no_shares(shares, message):
    with pytest.raises(ValueError, match=message):
        tokens_back(shares)


@pytest.mark.parametrize(("period", "got"), [(0, "0"), (-5, "-5"), (2.5, "the float 2.5")])
def test_what_is_no_period(period, got):
    with pytest.raises((TypeError, ValueError), match=f"a whole number.*, got {got}"):
        followers(period)
