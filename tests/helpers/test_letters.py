"""The tasks of notebook 08, and its training."""

import pytest
import torch
from torch import nn

from helpers.letters import IGNORE, backwards, decode, encode, right_at, three_back, train


def seeded():
    return torch.Generator().manual_seed(0)


def test_a_word_survives_its_ids():
    assert decode(encode("^strawberry")[0]) == "^strawberry"
    assert encode("").shape == (1, 0) and encode("").dtype == torch.long
    with pytest.raises(ValueError, match="only the letters a to z; got 'S' in 'Straw'"):
        encode("Straw")


def test_what_is_read_and_what_comes_next_belong_to_a_word_and_its_reverse():
    for start in (False, True):
        ids, targets = backwards(5, seeded(), start=start)
        word = ids[:, start : start + 10]
        assert ids.shape == targets.shape == (5, 19 + start)
        assert torch.equal(targets[:, -10:], word.flip(1))
        assert (targets[:, :-10] == IGNORE).all()
        assert torch.equal(ids[:, start + 10 :], targets[:, -10:-1])  # what was written is read
        assert not start or decode(ids[:, 0]) == "^^^^^"


def test_three_back_is_three_back():
    ids, targets = three_back(4, seeded(), T=9)
    assert torch.equal(targets[:, 3:], ids[:, :-3]) and (targets[:, :3] == IGNORE).all()


def test_a_learning_rate_that_falls_takes_smaller_steps_at_the_end():
    def change(falling):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(27, 8), nn.Linear(8, 26))
        before = model[0].weight.detach().clone()
        train(model, three_back, 4, falling=falling)
        return (model[0].weight - before).abs().max()

    assert change(falling=True) < 0.8 * change(falling=False)


def test_the_share_of_right_predictions_is_told_for_each_position():
    class Copies(nn.Module):
        def forward(self, ids, mask="causal"):
            return nn.functional.one_hot(ids.roll(3, dims=1), 27).float()

    assert right_at(Copies(), three_back).tolist() == [0.0] * 3 + [1.0] * 17
