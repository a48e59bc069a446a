"""Notebook 07: the block."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from helpers.stack import signal_by_depth
from tests.proofs import proves, run, run_cells, same, written

GUESSING = math.log(26)


@proves("07.p1")
def tokens_shuffled(texts):
    network = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
    x, order = torch.randn(8, 8), torch.tensor([3, 1, 0, 2, 7, 6, 5, 4])
    moves = (network(x[order])[order.argsort()] - network(x)).abs().amax(dim=-1)
    differ, moved = moves > 1e-5, order != torch.arange(8)
    return {"all": differ.all(), "none": not differ.any(), "only": torch.equal(differ, moved)}


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
    texts["a"].says(round(size + branches * size, -1), branches, size)
    texts["why a"].says(size)
    texts["b"].says(size)
    of_a_block = (2, math.sqrt(2), attention, share, feed_forward, branches, block, math.sqrt(3))
    of_all = (blocks, math.sqrt(3) ** blocks, round(block**blocks, -3), round(measured, -4))
    texts["why c"].says(*of_a_block, *of_all)
    texts["c"].says(10 ** int(math.log10(measured)))
    few, one, many = (texts[letter].gives()[0] for letter in "abc")
    a, b = (n / 2 < measured < 2 * n or n / 2 < end < 2 * n for n in (few, one))
    return {"a": a, "b": b, "c": min(measured, end) > many}


@proves("07.p3")
def norm_of_a_pushed_token(texts):
    added, token = texts["question"].gives()
    x = torch.randn(6, 32)
    pushed = x.index_add(0, torch.tensor([token]), torch.full((1, 32), float(added)))
    before, after = F.layer_norm(x, (32,)), F.layer_norm(pushed, (32,))
    moved = ((after - before).abs() > 1e-4).any(dim=-1)
    assert torch.allclose(pushed[token].var(), x[token].var(), atol=1e-4)
    rise = round((pushed[token].mean() - x[token].mean()).item(), 4)
    texts["why a"].says(rise)
    texts["b"].says(token, added)
    texts["why b"].says(rise)
    texts["c"].says(token)
    rises = ((after - before)[token] - added).abs().max() < 1e-4
    shrinks = after[token].norm() < before[token].norm() - 1e-3
    return {"nothing": not moved.any(), "b": rises, "c": shrinks, "all tokens": moved.all()}


@proves("07.p4")
def dropout_doubles(texts):
    p = texts["why b"].gives()[0]
    weights = torch.rand(50, 50).tril().softmax(dim=-1).requires_grad_()
    draws = torch.stack([F.dropout(weights, p) for _ in range(1500)])
    factors, sums = draws[draws != 0] / weights.expand_as(draws)[draws != 0], draws.sum(dim=-1)
    factor = round(factors.mean().item(), 4)
    assert torch.allclose(factors, torch.tensor(factor)) and sums.min() < 1 < sums.max()
    gradients = torch.autograd.grad(draws.sum(), weights)[0] / len(draws)  # 1 without dropout

    def right_on_average(draws):
        return torch.allclose(draws.mean(dim=0), weights, rtol=0.2, atol=0)

    texts["question"].says(factor)
    texts["a"].says(1)
    texts["why a"].says(0, factor, factor, 1)  # token 0 can attend to itself only
    texts["why b"].says(p, 0, factor, 1, 0, factor, p * 0 + (1 - p) * factor)
    rows, larger = torch.allclose(sums, torch.ones(()), atol=1e-3), gradients.mean() > 1.1
    on_average = right_on_average(draws) and not right_on_average(draws / factor)
    return {"row": rows, "right on average": on_average, "larger gradients": larger}


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
