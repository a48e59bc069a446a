"""Notebook 07: the block."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from helpers.attention import Block, FeedForward, MultiHeadAttention
from helpers.stack import signal_by_depth
from tests.proofs import proves, run, run_cells, same, written

GUESSING = math.log(26)


@proves("07.p1")
def weights_of_a_block(texts):
    size = {"C": 8, "4C": 32}
    attention, ffn = (
        [p for p in module.parameters() if p.dim() == 2]
        for module in (MultiHeadAttention(size["C"], n_head=2), FeedForward(size["C"]))
    )
    n, shape = texts["why a"].gives()
    assert [p.shape for p in attention] == n * [tuple(size[axis] for axis in shape)]
    n_wide, *shapes, n_all = texts["why b"].gives()
    assert n_wide == len(ffn) and n_all == n
    assert [p.shape for p in ffn] == [tuple(size[axis] for axis in shape) for shape in shapes]
    in_attention, in_ffn = (sum(p.numel() for p in each) for each in (attention, ffn))
    assert all(p.numel() == in_attention for p in ffn)
    a, b = in_attention > in_ffn, in_ffn > in_attention
    return {"attention,": a, "the feed-forward": b, "neither": in_attention == in_ffn}


@proves("07.p2")
def signal_of_24_blocks(texts):
    blocks, branches, share, size = texts["question"].gives()
    # At right angles, lengths add up as in Pythagoras.
    attention, feed_forward = math.sqrt(1 + 1), math.sqrt(1 + share**2)
    end = size * (attention * feed_forward) ** blocks
    measured = signal_by_depth("residual", blocks, init="unit gain").signal
    block = math.sqrt(2 * round(1 + share**2, 1))  # as the text rounds
    assert abs(block**blocks / end - 1) < 0.25
    texts["question"].says(blocks, 2 * blocks, share, size)
    texts["a"].says(size)
    texts["b"].says(round(size + branches * size, -1))
    texts["why b"].says(branches, size, size)
    of_a_block = (2, math.sqrt(2), attention, share, feed_forward, branches, block, math.sqrt(3))
    of_all = (blocks, math.sqrt(3) ** blocks, round(block**blocks, -3), round(measured, -4))
    texts["why c"].says(*of_a_block, *of_all)
    texts["c"].says(10 ** int(math.log10(measured)))
    one, few, many = (texts[letter].gives()[0] for letter in "abc")
    a, b = (n / 2 < measured < 2 * n or n / 2 < end < 2 * n for n in (one, few))
    return {"a": a, "b": b, "c": min(measured, end) > many}


@proves("07.p3")
def norm_of_a_changed_token(texts):
    factor, added = texts["question"].gives()
    x = torch.randn(6, 32)
    changed = x.clone()
    changed[1] = factor * x[1] + added
    before, after = F.layer_norm(x, (32,)), F.layer_norm(changed, (32,))
    moved = ((after - before).abs() > 1e-4).any(dim=-1)
    assert torch.allclose(changed[1].std(), factor * x[1].std(), atol=1e-4)
    rise = round((changed[1].mean() - factor * x[1].mean()).item(), 4)
    texts["why a"].says(factor, rise)
    texts["b"].says(added)
    texts["why b"].says(rise)
    texts["why c"].says(rise)
    rises = ((after - before)[1] - added).abs().max() < 1e-4
    shrinks = after[1].norm() < before[1].norm() - 1e-3
    return {"not": not moved.any(), "b": rises, "shrinks": shrinks, "all words": moved.all()}


@proves("07.p4")
def word_that_is_left(texts):
    (n_block,) = texts["question"].gives()
    words = texts["question"].quoted()[0].split()
    torch.manual_seed(0)
    x, blocks = torch.randn(1, len(words), 32), [Block(32, n_head=4) for _ in range(n_block)]

    def last(x, mask="causal"):
        for one in blocks:
            x = one.feed_forward(one.norm_2(one.attention(one.norm_1(x), mask=mask)))
        return x[0, -1]

    def most_changed(**mask):
        others, changes = torch.randn(len(words), 32), []
        for t, other in enumerate(others):
            replaced = x.index_put((torch.tensor(0), torch.tensor(t)), other)
            changes.append((last(replaced, **mask) - last(x, **mask)).norm())
        return words[int(torch.stack(changes).argmax())], min(changes) > 0.05 * max(changes)

    word, alike = most_changed()
    assert most_changed(mask=None)[1] and not alike  # why c
    return {"that of “it”": word == "it", "that of “the”": word == "the", "all alike": alike}


def train_reverser(n_block, residual, n_step):
    """The losses of the notebook's model."""

    def run_stack(x, blocks, residual):
        for one in blocks:
            for branch, norm in (one.attention, one.norm_1), (one.feed_forward, one.norm_2):
                x = branch(norm(x)) + (x if residual else 0)
        return x

    cells = ("alphabet =", "class Reverser", "def adam_step", "def train(")
    here = run_cells("07", "import torch", *cells, C=32, run_stack=run_stack)
    torch.manual_seed(0)
    model = here["Reverser"](n_block=n_block, n_head=4, residual=residual)
    return here["train"](model, n_step=n_step)


@proves("07.p5")
def training_without_residual_connections(texts):
    (n_block,) = texts["question"].gives()
    texts["question"].says(8)
    # After 25 steps the model with residual connections has begun to learn.
    learns, ends = (train_reverser(n_block, residual, 25)[-5:] for residual in (True, False))
    learns, ends = sum(learns) / 5, sum(ends) / 5
    assert learns < GUESSING - 0.1
    texts["why a"].says(2, 4, 4, 100, n_block, 100)  # slow: a test of its own trains 2 and 4
    normed = F.layer_norm(7 * torch.randn(4, 32), (32,))
    texts["why c"].says(round(normed.square().mean().sqrt().item(), 3))
    falls, stays = learns < ends < GUESSING - 0.05, abs(ends - GUESSING) < 0.05
    return {"slowly": falls, "guessing": stays, "nan": math.isnan(ends)}


@proves("07.1")
def feed_forward(texts):
    layer, x = nn.Linear(3, 5), torch.randn(2, 3)
    texts["1"].says(3)
    linear = texts["2"].says(nn.Linear, ("out", "in"), ...)
    assert layer.weight.shape == (layer.out_features, layer.in_features)
    assert same(run(linear, x=x, W=layer.weight, b=layer.bias), layer(x))
    hidden = f"x, W, b = {texts['3'].says(...)}, W_2, b_2"
    return written("x, W_1, b_1, W_2, b_2", hidden, linear)


@proves("07.2")
def layer_norm(texts):
    axis, keepdim = texts["1"].says(..., 1, ...)
    mean = f"x.mean({axis}, {keepdim})"
    assert run(mean, x=torch.ones(2, 3)).shape[-1] == 1
    variance, root = texts["2"].says("C", ...), texts["3"].says(...)
    return written("x, eps=1e-5", f"variance = {variance}", f"(x - {mean}) / {root}")


@proves("07.3")
def block(texts):
    form = texts["1"].says(2, ...)
    first, second = (f"x = {form}".replace("branch", texts[n].says(...)) for n in "23")
    return written("x, attention, feed_forward, norm_1, norm_2", first, second, "x")
