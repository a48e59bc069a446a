"""Scores written by hand: tokens, the matrix of scores, its weights."""

import pytest
import torch

from helpers.circuits import one_hot_tokens, score_from_blocks, second_layer_tokens, written_weights

LETTERS, T = "abc-", 5
LL, LP = ("letter", "letter"), ("letter", "position")
PL, PP = ("position", "letter"), ("position", "position")


def test_a_score_is_the_sum_of_the_entries_of_four_blocks():
    source = torch.Generator().manual_seed(0)
    sizes = {"letter": 4, "position": 5}
    blocks = {
        pair: torch.randn(sizes[pair[0]], sizes[pair[1]], generator=source)
        for pair in (LL, LP, PL, PP)
    }
    M, word = score_from_blocks(LETTERS, T, blocks), "cab-a"
    x = one_hot_tokens(word, LETTERS, T)
    scores = x @ M @ x.mT
    for t, query in enumerate(map(LETTERS.index, word)):
        for j, key in enumerate(map(LETTERS.index, word)):
            by_hand = blocks[LL][query, key] + blocks[LP][query, j] + blocks[PL][t, key]
            assert torch.isclose(scores[t, j], by_hand + blocks[PP][t, j], atol=1e-6)


def test_blocks_of_the_second_layer_stand_behind_those_of_the_first():
    pair = ("letter", "copied position")
    M = score_from_blocks(LETTERS, T, {pair: torch.ones(4, 5)}, layer=1)
    assert M.shape == (18, 18) and M[:4, 13:].eq(1).all() and M.sum() == 20


def test_a_second_layer_reads_what_the_first_has_read():
    x = one_hot_tokens("cab", LETTERS, T)
    one_back = score_from_blocks(LETTERS, T, {PP: torch.diag(torch.ones(4), -1)})
    tokens = second_layer_tokens(x, written_weights(x, one_back))
    assert torch.equal(tokens[:, :9], x)
    assert torch.allclose(tokens[:, 9:], x[[0, 0, 1]], atol=1e-6)


def test_the_weights_are_causal_and_follow_the_sharpness():
    x = one_hot_tokens("aab", LETTERS, T)
    same = score_from_blocks(LETTERS, T, {LL: torch.eye(4)})
    weights = written_weights(x, same, sharpness=1.0)
    e = torch.e
    expected = torch.tensor(
        [[1, 0, 0], [0.5, 0.5, 0], [1 / (2 + e), 1 / (2 + e), e / (2 + e)]], dtype=torch.float
    )
    assert torch.allclose(weights, expected)
    assert torch.allclose(written_weights(x, same)[2], torch.tensor([0.0, 0, 1]), atol=1e-6)
    assert torch.allclose(written_weights(x[None].double(), same, 1.0)[0].float(), expected)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("", "1 to T = 5 letters; '' has 0"),
        ("abcabc", "1 to T = 5 letters; 'abcabc' has 6"),
        ("abx", "The letters are 'abc-'; position 2 of 'abx' has 'x'"),
    ],
)
def test_words_that_have_no_tokens(word, message):
    with pytest.raises(ValueError, match=message):
        one_hot_tokens(word, LETTERS, T)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ({PL: torch.ones(4, 5)}, r"'position', 'letter'\) must be \(5, 4\), got \(4, 5\)"),
        (
            {LL: torch.full((4, 4), -torch.inf)},
            r"row 0, column 0 has -inf, and 0 .* nan. For “never” use a",
        ),
        ({LL: torch.eye(4) * torch.nan}, r"row 0, column 0 has nan, and 0 times nan is nan\.$"),
        ({("letter", "place"): torch.eye(4)}, "one of 'letter', 'position' in layer 0; got"),
        ({"letter": torch.eye(4)}, "one of 'letter', 'position' in layer 0; got 'letter'"),
        ({("letter", "copied letter"): torch.eye(4)}, "in layer 0; .* need layer=1"),
    ],
)
def test_blocks_that_are_refused(blocks, message):
    with pytest.raises(ValueError, match=message):
        score_from_blocks(LETTERS, T, blocks)


def test_no_tensor_and_no_third_layer():
    with pytest.raises(TypeError, match=r"\('letter', 'letter'\) must be a tensor .*, got list"):
        score_from_blocks(LETTERS, T, {LL: [[1.0]]})
    with pytest.raises(ValueError, match="layer must be a whole number from 0 to 1, got 2"):
        score_from_blocks(LETTERS, T, {}, layer=2)
    with pytest.raises(TypeError, match=r"blocks must be a dict such as .* got list"):
        score_from_blocks(LETTERS, T, [])


@pytest.mark.parametrize("letters", ["aabc", "", ["a", "b"]])
def test_letters_that_are_none(letters):
    told = "letters must be a text of different letters, got"
    with pytest.raises(ValueError, match=told):
        one_hot_tokens("a", letters, T)
    with pytest.raises(ValueError, match=told):
        score_from_blocks(letters, T, {})


def test_words_and_lengths_that_are_none():
    with pytest.raises(TypeError, match="word must be a text, got list"):
        one_hot_tokens(["ab", "c"], LETTERS, T)
    with pytest.raises(ValueError, match="T must be a whole number of at least 1, got -1"):
        score_from_blocks(LETTERS, -1, {})


def test_scores_that_are_refused():
    x = one_hot_tokens("ab", LETTERS, T)
    with pytest.raises(TypeError, match=r"M must be a tensor \(9, 9\), got NoneType"):
        written_weights(x, None)
    with pytest.raises(ValueError, match=r"M must be \(9, 9\), got \(4, 4\)"):
        written_weights(x, torch.eye(4))
    with pytest.raises(ValueError, match=r"M must .* row 3, column 3 has inf, and .* is nan\.$"):
        written_weights(x, torch.diag(torch.tensor([0, 0, 0, torch.inf, 0, 0, 0, 0, 0])))
    with pytest.raises(ValueError, match="sharpness must be a finite number, got inf"):
        written_weights(x, torch.eye(9), torch.inf)
    with pytest.raises(TypeError, match="x must be tokens"):
        written_weights("ab", torch.eye(9))
    with pytest.raises(ValueError, match=r"weights must be \(\.\.\., t, t\) .* shape \(2, 9\)"):
        second_layer_tokens(x, x)
