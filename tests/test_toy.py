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


def test_sentence_is_the_embedding_of_its_ids():
    assert toy.IDS == [0, 4, 5, 2, 1, 3] and len(toy.WORDS) == 6
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        table = torch.nn.Embedding(50_000, 3)
    assert torch.equal(toy.sentence(), table(torch.tensor(toy.IDS)).detach())
    assert not toy.sentence().requires_grad


def test_the_global_random_state_stays():
    before = torch.get_rng_state()
    toy.numbers(), toy.readable(), toy.sentence()
    assert torch.equal(torch.get_rng_state(), before)
