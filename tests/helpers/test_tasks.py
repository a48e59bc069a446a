"""The tasks of notebooks 05 and 06: what the texts hold, and that both ways to descend do so."""

import torch

from helpers import tasks
from helpers.attention import attention, causal_mask


def test_each_text_has_one_noun_and_ends_with_it():
    before = torch.get_rng_state()
    texts, wanted = tasks.texts_with_a_noun(300, seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    nouns = texts < tasks.NOUNS
    assert (nouns.sum(dim=1) == 1).all() and nouns.any(dim=0).tolist() == [True] * 5 + [False]
    assert {tasks.VOCABULARY[number] for number in texts[:, 5]} == {"it"}
    assert torch.equal(tasks.CHANNELS[texts[nouns]], wanted)
    assert wanted.unique(dim=0).tolist() == [[0, 1], [1, 0]]


def test_words_pass_on_what_they_have_to_do_with():
    assert len({*tasks.VOCABULARY}) == len(tasks.CHANNELS) == 102
    told = {"cat": [1, 0], "soup": [0, 1], "warm": [1, 1], "hungry": [0, 1], "it": [0, 0]}
    for word, channels in told.items():
        assert tasks.CHANNELS[tasks.word_numbers([word])[0, 0]].tolist() == channels


def test_raw_weights_are_those_of_attention_with_larger_queries():
    q, k = torch.randn(2, 3, 5, 16, generator=torch.Generator().manual_seed(0))
    _, weights = attention(4 * q, k, k, causal_mask(5))
    torch.testing.assert_close(tasks.raw_weights(q, k), weights)


def test_tokens_say_word_and_place_and_the_target_says_word_0_and_word_3():
    words = tasks.word_numbers(["dogs are chasing cats so"], tasks.SIXTEEN)
    assert words.tolist() == [[0, 1, 2, 3, 4]]
    tokens, target = tasks.words_and_places(words), tasks.first_word_and_word_before(words)
    assert (
        tokens.shape == (1, 5, 32)
        and (tokens[0].nonzero()[:, 1].view(5, 2) % 16).eq(torch.arange(5)[:, None]).all()
    )
    assert target.nonzero()[:, 1].tolist() == [0, 16 + 3]


def test_descend_takes_the_steps_of_gradient_descent():
    a = torch.tensor(3.0, requires_grad=True)
    losses = tasks.descend(lambda: a**2, [a], learning_rate=0.25, steps=3)
    assert losses == [9.0, 2.25, 0.5625] and a.item() == 0.375 and a.grad is None


def test_with_adam_a_tiny_gradient_makes_as_large_a_step_as_a_large_one():
    for factor in (1.0, 1e-4):
        a = torch.tensor(3.0, requires_grad=True)
        losses = tasks.descend_with_adam(lambda a=a, c=factor: c * a, [a], 0.25, steps=2)
        torch.testing.assert_close(a.detach(), torch.tensor(2.5), atol=1e-4, rtol=0)
        torch.testing.assert_close(losses, [3 * factor, 2.75 * factor], atol=0, rtol=1e-4)
