"""The models of notebook 12 that were trained beforehand, and what it says of them."""

import functools
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F

from attention_base.same import one_thread
from helpers.circuits import (
    AttentionOnly,
    held_out,
    on_known_letters,
    patch,
    repeated,
    tokens_back,
    trained_on_repeats,
)
from helpers.circuits.trained import PATH, VARIANTS

BEFORE = tokens_back({1: 1.0})


def right(model, layer=0, pattern=None, distinct=False):
    with patch(model, layer, pattern) if pattern else nullcontext():
        return on_known_letters(model, distinct=distinct)[1]


def backwards(model, distinct=False):
    """The mean weights of the first layer on letters 0 to 3 back."""
    ids, _ = held_out(model.letters.num_embeddings, distinct=distinct)
    with one_thread():
        weights = model.attention_weights(ids[:, :-1])[0, :, 0]
    return [weights[:, 24:].diagonal(24 - d, 1, 2).mean().item() for d in range(4)]


def says_of_the_first_layer_by_hand(model):
    assert 0.8 < right(model, 0, BEFORE) < 0.87


def says_of_letters_that_occur_once(model):
    assert right(model, distinct=True) > 0.97 and right(model, 0, BEFORE, distinct=True) > 0.96
    back = backwards(model, distinct=True)
    assert back[1] > 0.25 and back[2] < 0.06, "two back all but vanishes"


FACTS = {
    "first layer by hand": says_of_the_first_layer_by_hand,
    "letters that occur once": says_of_letters_that_occur_once,
}


@pytest.mark.parametrize("name", VARIANTS)
def test_what_the_notebook_says_of_a_stored_model(name):
    FACTS[name](trained_on_repeats(name))


def test_queries_from_the_letters_alone_do_no_harm_where_letters_occur_once():
    model = trained_on_repeats("letters that occur once")
    query, seen = model.layers[1].query, []

    def from_the_letters(*_):
        return F.linear(model.norms[1](model.letters(seen[-1])), query.weight)

    model.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    query.register_forward_hook(from_the_letters)
    assert right(model, distinct=True) > 0.985
    assert right(model, pattern=BEFORE, distinct=True) > 0.985


def test_the_file_is_small_and_an_unknown_name_is_refused():
    assert PATH.stat().st_size < 400_000
    with pytest.raises(ValueError, match="no model 'four heads'; there are 'first layer by hand'"):
        trained_on_repeats("four heads")


def test_loading_leaves_the_random_numbers_alone():
    torch.manual_seed(0)
    first = torch.rand(3)
    torch.manual_seed(0)
    trained_on_repeats("first layer by hand")
    assert torch.equal(torch.rand(3), first)


@functools.cache  # two tests ask for seed 0
def trained(name, seed):
    return VARIANTS[name].train(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", VARIANTS)
def test_what_is_said_holds_for_five_seeds(name, seed):
    FACTS[name](trained(name, seed))


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_the_stored_models_are_those_that_the_command_trains(name):
    stored, again = trained_on_repeats(name), trained(name, 0)
    first, distinct = VARIANTS[name].first, VARIANTS[name].distinct
    shares = [right(model, 0, first, distinct) for model in (stored, again)]
    assert shares[0] == pytest.approx(shares[1], abs=0.02)
    assert backwards(stored, distinct) == pytest.approx(backwards(again, distinct), abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_one_rotary_layer_can_single_out_the_letter_before(seed):
    torch.manual_seed(seed)
    model = AttentionOnly(n_layer=1)
    generator = torch.Generator().manual_seed(seed)
    adam = torch.optim.Adam(model.parameters(), lr=0.005)
    with one_thread():
        for _ in range(200):
            ids, _ = repeated(32, generator)
            loss = F.cross_entropy(model(ids)[:, 1:].flatten(0, 1), ids[:, :-1].flatten())
            adam.zero_grad()
            loss.backward()
            adam.step()
        weights = model.attention_weights(held_out()[0])[0, :, 0]
    assert weights.diagonal(-1, 1, 2)[:, 8:].mean() > 0.9
