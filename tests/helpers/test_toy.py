"""The running examples: the numbers of the source lectures, and no side effects."""

import pytest
import torch

from helpers import toy


@pytest.mark.parametrize(("C", "seed"), [(2, 1337), (2, 42), (32, 1337), (3, 0)])
def test_numbers_are_those_of_the_seed(C, seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        expected = torch.randn(4, 8, C)
    assert torch.equal(toy.numbers(C, seed), expected)


def test_numbers_of_the_lecture():
    first = torch.tensor([[0.1808, -0.0700], [-0.3596, -0.9152]])
    torch.testing.assert_close(toy.numbers()[0, :2], first, rtol=0, atol=5e-5)


def test_readable_says_where_it_stands():
    x = toy.readable(3, 5, 2)
    assert x.shape == (3, 5, 2) and x.dtype == torch.float32
    assert x[:, :, 0].tolist() == [[10 * b + t for t in range(5)] for b in range(3)]
    assert torch.equal(x[..., 0], x[..., 1])


def test_embed_looks_up_each_word_and_gives_zeros_to_others():
    one = toy.embed("the warm cat", toy.CAT_AND_SOUP)
    assert one.tolist() == [[0, 0], [1, 1], [1, 0]] and one.dtype == torch.float32
    both = toy.embed(toy.TEXTS, toy.CAT_AND_SOUP)
    assert both.shape == (2, 6, 2) and both[:, 1].tolist() == [[1, 0], [0, 1]]
    assert torch.equal(both[:, 2:], both[[1, 0], 2:])  # they differ in one word
    assert toy.embed("a b", {"b": [1, 2, 3]}).tolist() == [[0, 0, 0], [1, 2, 3]]


@pytest.mark.parametrize(
    ("text", "channels", "told"),
    [
        (["a b", "a"], {"a": [1.0]}, r"equally many words, at least one, got \[2, 1\]"),
        ("", {"a": [1.0]}, r"got \[0\]"),
        ([], {"a": [1.0]}, r"got \[\]"),
        ("a", {"a": [1.0], "b": [1.0, 2.0]}, r"as many channels, got \[1, 2\]"),
        ("a", {}, r"as many channels, got \[\]"),
    ],
)
def test_embed_says_what_does_not_fit(text, channels, told):
    with pytest.raises(ValueError, match=told):
        toy.embed(text, channels)


def test_the_global_random_state_stays():
    before = torch.get_rng_state()
    toy.numbers(), toy.readable()
    assert torch.equal(torch.get_rng_state(), before)


def test_lecture_scores_leave_the_global_generator_alone_and_are_those_of_the_lecture():
    state = torch.random.get_rng_state()
    scores = toy.lecture_scores()
    assert torch.equal(torch.random.get_rng_state(), state) and not scores.requires_grad
    torch.manual_seed(1337)
    tokens = torch.randn(4, 8, 32)
    key, query = torch.nn.Linear(32, 16, bias=False), torch.nn.Linear(32, 16, bias=False)
    assert torch.equal(scores, query(tokens) @ key(tokens).mT)
