"""Gradient descent on the rules of notebook 11."""

import pytest

from helpers.circuits import RULES, learn_rule


def test_no_step_is_the_initialisation_and_a_seed_gives_the_same_matrix():
    first, again = (learn_rule(RULES["one back"], 2, seed=1, n_step=0) for _ in range(2))
    assert first.M.equal(again.M) and first.weights < 0.5
    assert not first.M.equal(learn_rule(RULES["one back"], 2, seed=2, n_step=0).M)
    assert first.M.shape == (19, 19) and first.M.svd().S[2:].max() < 1e-5


def test_two_channels_look_one_back_and_one_does_not():
    assert learn_rule(RULES["one back"], 2).weights > 0.99
    one = learn_rule(RULES["one back"], 1)
    assert one.weights < 0.97 and one.outputs < 0.97


def test_the_right_outputs_do_not_fix_the_weights():
    found = learn_rule(RULES["same letter"], 2)
    assert found.outputs > 0.99 and 0.3 < found.weights < 0.7


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("one back", 2), TypeError, "one of RULES for one layer, got 'one back'"),
        ((RULES["induction"], 2), TypeError, "got “induction”, which takes two"),
        ((RULES["one back"], -1), ValueError, "head_size must be .* got -1"),
        ((RULES["one back"], 2, 0, 1.5), TypeError, "n_step must be .* got"),
    ],
)
def test_what_cannot_be_learned(arguments, error, message):
    with pytest.raises(error, match=message):
        learn_rule(*arguments)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_what_notebook_11_says_holds_for_five_seeds(seed):
    assert learn_rule(RULES["one back"], 1, seed).weights < 0.99
    assert learn_rule(RULES["one back"], 2, seed).weights > 0.99
    same = learn_rule(RULES["same letter"], 2, seed)
    assert same.outputs > 0.99 and same.weights < 0.7
    assert learn_rule(RULES["last separator"], 2, seed).outputs > 0.99
