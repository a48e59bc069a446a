"""Notebook 07: the block."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from helpers.stack import signal_by_depth
from tests.proofs import proves, rounds_to, run, run_cells


@proves("07.p1", "a4a64a")
def tokens_shuffled(texts):
    texts["question"].read(
        "The tokens are shuffled, the feed-forward network is applied, and its outputs are put "
        "back in order. Which outputs differ from those without shuffling?"
    )
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
    x, order = torch.randn(8, 8), torch.tensor([3, 1, 0, 2, 7, 6, 5, 4])
    moves = (network(x[order])[order.argsort()] - network(x)).abs().amax(dim=-1)
    differ = (moves > 1e-5).tolist()
    texts["a"].read("all of them, because the order of the tokens matters")
    texts["b"].read("none")
    texts["c"].read("only those of the tokens that moved")
    moved = (order != torch.arange(8)).tolist()
    return {"a": all(differ), "b": not any(differ), "c": differ == moved}


@proves("07.p2", "bf4e70")
def signal_of_24_blocks(texts):
    blocks, branches, share, size = texts["question"].read(
        "{} blocks with residual connections: {} branches. Each attention returns vectors about as "
        "long as those it reads, each feed-forward network about {} times as long, all nearly at "
        "right angles to what they read. The tokens begin at size {}. "
        "How large are they at the end?"
    )
    assert branches == 2 * blocks
    after_attention = math.sqrt(1 + 1)  # at right angles, lengths add up as in Pythagoras
    after_both = after_attention * math.sqrt(1 + share**2)
    end = size * after_both**blocks
    measured = signal_by_depth("residual", blocks, init="unit gain").signal

    a, adding, one = texts["a"].read("about {}: each of the {} branches adds {}")
    assert adding == branches and a == round(size + adding * one, -1)
    assert texts["why a"].find("The first branch does return numbers of size {}.") == size
    b = texts["b"].read("about {}: attention averages")
    c = texts["c"].read("more than {}")
    root, times, again, narrow = texts["why c"].find(
        "have a sum that is {code} = {} times as large. With {} times the size it is {} times "
        "as large."
    )
    assert root == "√2" and rounds_to(after_attention, times, 1) and again == share
    assert rounds_to(math.sqrt(1 + share**2), narrow, 1)
    assert texts["why c"].find("The factors of all {} branches are multiplied.") == branches
    first, second, both, n, base, power, result, notebook = texts["why c"].find(
        "Those of one block make √{} · √{} = √{}, and {} blocks √{} to the power of {}, "
        "which is {}. The notebook measures {}."
    )
    assert first * second == both == base and n == power == blocks
    assert first == 2 and rounds_to(1 + share**2, second, 1)
    assert round(base ** (power / 2), -3) == result and abs(end / result - 1) < 0.25
    assert float(f"{measured:.1e}") == notebook
    ends = (measured, end)
    return {
        "a": all(a / 2 < one < 2 * a for one in ends),
        "b": all(b / 2 < one < 2 * b for one in ends),
        "c": all(one > c for one in ends),
    }


@proves("07.p3", "f85692")
def norm_of_a_pushed_token(texts):
    added, token = texts["question"].read(
        "{} is added to every channel of token {}. How does the output of layer norm change?"
    )
    x = torch.randn(6, 32, generator=torch.Generator().manual_seed(0))
    pushed = x.clone()
    pushed[token] += added
    change = F.layer_norm(pushed, (32,)) - F.layer_norm(x, (32,))
    moved = (change.abs() > 1e-4).any(dim=-1)
    texts["a"].read("nothing changes")
    rise = texts["why a"].find("The mean of that token rises by {} too and is subtracted")
    assert torch.allclose(pushed[token].mean() - x[token].mean(), torch.tensor(float(rise)))
    assert torch.allclose(pushed[token].var(), x[token].var(), atol=1e-4)
    which, by = texts["b"].read("token {} rises by {}")
    assert (which, by) == (token, added)
    assert texts["why b"].find("and this mean has risen by {} as well.") == added
    shrinks = texts["c"].read("token {} shrinks, because it is divided by a larger number")
    assert shrinks == token
    texts["d"].read("all tokens change a little")
    return {
        "a": not moved.any(),
        "b": torch.allclose(change[which], torch.tensor(float(by)), atol=1e-4),
        "c": bool(F.layer_norm(pushed, (32,))[shrinks].norm() < x[shrinks].norm() - 1e-3)
        and bool(moved.any()),
        "d": bool(moved.all()),
    }


@proves("07.p4", "48207f")
def dropout_doubles(texts):
    texts["question"].read("Why does dropout double the weights that are kept?")
    torch.manual_seed(0)
    p = texts["why b"].find("With probability {} a weight becomes 0, otherwise it is doubled.")
    weights = torch.rand(50, 50).tril().softmax(dim=-1).requires_grad_()
    draws = torch.stack([F.dropout(weights, p) for _ in range(1500)])
    kept = draws[draws != 0] / weights.detach().expand_as(draws)[draws != 0]
    assert torch.allclose(kept, torch.tensor(2.0))  # doubled
    right_on_average = torch.allclose(draws.mean(dim=0), weights, rtol=0.2, atol=0)
    undoubled = torch.allclose(draws.mean(dim=0) / 2, weights, rtol=0.2, atol=0)
    sums = draws.sum(dim=-1)
    gradients = torch.autograd.grad(draws.sum(), weights)[0] / len(draws)  # 1 without dropout

    total = texts["a"].read("so that the weights of each row sum to {} again")
    row, only, again, more = texts["why a"].find(
        "In row {} the only weight is now {}, so this row sums to {}. "
        "Dropout comes after the softmax, and a row may sum to more or less than {}."
    )
    notebook_row = torch.ones(1, 1)[row]  # token 0 can attend to itself only
    assert (notebook_row / (1 - p)).item() == only == again
    assert sums.min() < more < sums.max() and more == total == 1
    texts["b"].read("so that each weight is right on average")
    before, zero, doubled, mean = texts["why b"].find(
        "So {} becomes {} or {}, which is {} on average."
    )
    assert doubled == before / (1 - p) and zero * p + doubled * (1 - p) == mean == before
    texts["c"].read("so that the tokens that are kept get larger gradients and learn faster")
    return {
        "a": torch.allclose(sums, torch.tensor(float(total)), atol=1e-3),
        "b": right_on_average and not undoubled,
        "c": bool(gradients.mean() > 1.1),
    }


def train_reverser(n_block, residual, n_step):
    """The losses of the notebook's model."""

    def run_stack(x, blocks, residual):
        for block in blocks:
            branches = (block.attention, block.norm_1), (block.feed_forward, block.norm_2)
            for branch, norm in branches:
                x = x + branch(norm(x)) if residual else branch(norm(x))
        return x

    cells = ("alphabet =", "class Reverser", "def adam_step", "def train(")
    here = run_cells("07", "import torch", *cells, C=32, run_stack=run_stack)
    torch.manual_seed(0)
    model = here["Reverser"](n_block=n_block, n_head=4, residual=residual)
    return here["train"](model, n_step=n_step)


GUESSING = math.log(26)


@proves("07.p5", "bf3ff6")
def training_without_residual_connections(texts):
    n_block = texts["question"].read(
        "Each of the {word} blocks keeps its norms in both versions. "
        "What happens in training without residual connections?"
    )
    # After 25 steps the model with residual connections has begun to learn.
    ends = {
        residual: sum(train_reverser(n_block, residual, n_step=25)[-5:]) / 5
        for residual in (True, False)
    }
    assert ends[True] < GUESSING - 0.1
    texts["a"].read("The loss falls as well, only more slowly.")
    few, more, again, steps, eight, steps_here = texts["why a"].read(
        "That is what happens with {word} or {word} blocks ({word} need more than {} steps). "
        "With {word}, all letters but the first are averaged away before the last layer, "
        "and {} steps do not change this."
    )
    assert few < more == again < eight == n_block and steps == steps_here == 100
    texts["b"].read("The loss stays near that of guessing.")
    texts["c"].read("The loss becomes nan, because the numbers explode.")
    size = texts["why c"].find("each norm brings the tokens back to size {}.")
    normed = F.layer_norm(7 * torch.randn(4, 32), (32,))
    assert torch.allclose(normed.square().mean(dim=-1).sqrt(), torch.tensor(float(size)), atol=1e-3)
    return {
        "a": ends[True] < ends[False] < GUESSING - 0.05,
        "b": abs(ends[False] - GUESSING) < 0.05,
        "c": math.isnan(ends[False]),
    }


@proves("07.1", "011625")
def feed_forward(texts):
    texts["1"].read("Three steps: the first Linear layer, ReLU, the second Linear layer.")
    shape, linear = texts["2"].read(
        "nn.Linear stores its weight as {shape}, so a Linear layer computes {code}."
    )
    layer, x = nn.Linear(3, 5), torch.randn(2, 3)
    assert shape == ("out", "in") and layer.weight.shape == (5, 3)
    assert torch.allclose(run(linear, x=x, W=layer.weight, b=layer.bias), layer(x), atol=1e-6)
    hidden = texts["3"].read("{code} is what goes into the second layer.")

    def feed_forward(x, W_1, b_1, W_2, b_2):
        return run(linear, x=run(hidden, x=x, W_1=W_1, b_1=b_1), W=W_2, b=b_2)

    return feed_forward


@proves("07.2", "5e3d33")
def layer_norm(texts):
    axis, length, keepdim = texts["1"].read(
        "Take mean and variance over the channels, {code}, and keep that axis with length {} "
        "({code}), so that they fit to x."
    )
    assert run(f"x.mean({axis}, {keepdim})", x=torch.ones(2, 3)).shape[-1] == length
    variance = texts["2"].read("The variance that divides by C is {code}.")
    x = torch.randn(4, 6)
    squares = (x - x.mean(dim=-1, keepdim=True)) ** 2
    assert torch.allclose(run(variance, x=x)[:, 0], squares.sum(dim=-1) / 6, atol=1e-6)
    root = texts["3"].read("Subtract the mean, then divide by {code}.")

    def layer_norm(x, eps=1e-5):
        mean = run(f"x.mean({axis}, {keepdim})", x=x)
        return (x - mean) / run(root, variance=run(variance, x=x), eps=eps)

    return layer_norm


@proves("07.3", "1ef5c8")
def block(texts):
    form = texts["1"].read(
        "Two lines, each of the form {code}. Each branch begins with its own norm."
    )
    assert form == "x = x + branch"
    first = texts["2"].read("The first branch is {code}.")
    second = texts["3"].read(
        "The second branch is {code}. It reads the x that the first line has made."
    )

    def block(x, attention, feed_forward, norm_1, norm_2):
        parts = {"attention": attention, "feed_forward": feed_forward}
        norms = {"norm_1": norm_1, "norm_2": norm_2}
        for branch in (first, second):
            exec(form.replace("branch", branch), parts | norms, local := {"x": x})
            x = local["x"]
        return x

    return block
