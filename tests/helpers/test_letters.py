"""The tasks of notebook 08, and that the helpers train as the notebook does."""

import functools

import pytest
import torch
from torch import nn

from helpers.attention import Block
from helpers.letters import IGNORE, backwards, decode, encode, right_at, three_back, train
from tests.lesson.proofs import run_cells


def cells():
    return run_cells("08", "from functools", "torch.set_num_threads", "def train(", "class WithPos")


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


def test_the_helper_trains_as_the_notebook_does():
    here, states = cells(), []
    for trainer in (here["train"], train):
        torch.manual_seed(0)
        model = here["WithPositions"](n_block=1, n_head=1)
        trainer(model, three_back, 3)
        states.append(model.state_dict())
    for name, value in states[0].items():
        torch.testing.assert_close(value, states[1][name])


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


class NoResidual(Block):
    def forward(self, x, *, mask="causal"):
        return self.feed_forward(self.norm_2(self.attention(self.norm_1(x), mask=mask)))


@pytest.mark.slow
def test_without_residual_connections_eight_blocks_do_not_learn_to_reverse():  # 08, in the text
    model = cells()["WithPositions"](n_block=8, n_head=2)
    model.blocks = nn.ModuleList(NoResidual(32, 2) for _ in range(8))
    assert abs(train(model, backwards, 100) - torch.tensor(26.0).log()) < 0.1


@pytest.mark.slow  # 400 steps
def test_the_second_block_reads_the_clock_that_the_start_token_gives():  # 08, in the text
    from_start = functools.partial(backwards, start=True)
    torch.manual_seed(0)
    model = cells()["LetterModel"](2, 2)
    model.blocks = nn.ModuleList(Block(32, 2, rotary=True) for _ in range(2))
    train(model, from_start, 400)
    assert right_at(model, from_start)[10:].mean() > 0.95
    attention, head = model.blocks[0].attention, slice(0, 16)

    def at_its_mean(module, inputs, out):
        """The output as if head 0 gave “^” the same weight at all positions after it."""
        if isinstance(out, tuple):
            return None
        weights = attention(*inputs, return_weights=True)[1][:, 0, :, 0]  # (B, T)
        change = weights[:, 1:].mean() - weights
        value = attention.value(*inputs)[:, 0, head]  # (B, 16), of “^”
        return out + change[..., None] * (value @ attention.proj.weight[:, head].T)[:, None]

    attention.register_forward_hook(at_its_mean)
    assert right_at(model, from_start)[10:].mean() < 0.4
