"""Notebook 07: the block."""

import math

import torch
import torch.nn.functional as F

from helpers import stack
from helpers.attention import Block, MultiHeadAttention
from tests.lesson.proofs import proves, run, written


@proves("07.p1")
def two_texts_after_twelve_layers(texts):
    n_layer, n_text = texts["question"].gives()
    torch.manual_seed(0)
    x = torch.randn(7, 32)[torch.tensor([[0, 1, 2, 3, 4, 5], [0, 6, 2, 3, 4, 5]])]
    differences = []
    for layer in (MultiHeadAttention(32, n_head=4) for _ in range(n_layer)):
        x = layer(x)
        differences.append(((x[0, 5] - x[1, 5]).norm() / x[0, 5].norm()).item())
    after_one, end = differences[0], differences[-1]
    texts["why b"].says(n_layer)
    assert after_one > 0.1 and len(x) == n_text
    # The page says so: the averages alone bring all words into one direction.
    torch.manual_seed(0)
    averaged = alone = torch.randn(6, 32)
    for layer in (MultiHeadAttention(32, n_head=4) for _ in range(n_layer)):
        layer.proj.bias.data.zero_()
        averaged, alone = layer(averaged[None])[0], layer.proj(layer.value(alone))
    least = [F.cosine_similarity(z[:, None], z[None], dim=-1).min() for z in (averaged, alone)]
    assert least[0] > 0.995 and least[1] < 0
    return {"clearly": end > 0.5, "a little": 1e-3 < end < 0.5, "not visibly": end < 1e-6}


@proves("07.p2")
def signal_of_24_blocks(texts):
    blocks, branches, size = texts["question"].gives()
    share = math.sqrt(1 / 2)  # a ReLU sets half of the squares to 0
    tokens, added = torch.randn(2, 1, 4, 8, 32, dtype=torch.double)[0], []
    for branch in [one for _ in range(blocks) for one in stack._block("residual", "unit gain")]:
        before, tokens = tokens, branch(tokens)
        added.append(((tokens - before).norm() / before.norm()).item())
    first, *later = added[::2]
    assert abs(sum(later) / (blocks - 1) - 1) < 0.05 and max(added) < 1.3  # “about as large”
    assert round(sum(added[1::2]) / blocks, 1) == round(share, 1)
    # At right angles, lengths add up as in Pythagoras.
    attention, feed_forward = math.sqrt(1 + 1), math.sqrt(1 + share**2)
    end = size * (attention * feed_forward) ** blocks
    measured = stack.signal_by_depth("residual", blocks, init="unit gain").signal
    block = math.sqrt(2 * round(1 + share**2, 1))  # as the text rounds
    assert abs(block**blocks / end - 1) < 0.25
    texts["question"].says(blocks, 2 * blocks, size)
    texts["a"].says(size)
    texts["b"].says(round(size + branches * size, -1))
    texts["why b"].says(branches, size)
    of_branches = (round(first, 1), math.sqrt(2), attention, round(share, 1), feed_forward)
    of_a_block = (*of_branches, branches, block, math.sqrt(3))
    of_all = (blocks, math.sqrt(3) ** blocks, round(block**blocks, -3), round(measured, -4))
    texts["why c"].says(*of_a_block, *of_all)
    texts["c"].says(10 ** int(math.log10(measured)))
    one, few, many = (texts[letter].gives()[0] for letter in "abc")
    a, b = (n / 2 < measured < 2 * n or n / 2 < end < 2 * n for n in (one, few))
    return {"a": a, "b": b, "c": min(measured, end) > many}


@proves("07.p3")
def signal_of_24_blocks_with_norms(texts):
    blocks, _, size = texts["question"].gives()
    share = math.sqrt(1 / 2)  # a ReLU sets half of the squares to 0
    squares = size + blocks * size + blocks * share**2
    measured = stack.signal_by_depth("+ norm", blocks, init="unit gain").signal
    texts["why a"].says(size)
    worked = (squares, squares, math.sqrt(squares), round(math.sqrt(squares)))
    texts["why b"].says(size, size, round(share, 1), *worked, round(measured))
    texts["why c"].says(2 * blocks)
    texts["why d"].says(size)
    texts["c"].says(round(size + blocks * (size + share), -1))  # all in one direction
    without = stack.signal_by_depth("residual", blocks, init="unit gain").signal
    texts["d"].says(10 ** int(math.log10(without)))
    ends = {letter: texts[letter].gives()[0] for letter in "abcd"}
    nearest = min(ends, key=lambda letter: abs(math.log(measured / ends[letter])))
    return {letter: letter == nearest for letter in ends}


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
    return {"that of “it”": word == "it", "that of “the”": word == "the", "all about alike": alike}


@proves("07.2")
def layer_norm(texts):
    axis, keepdim = texts["1"].says(..., 1, ...)
    mean = f"x.mean({axis}, {keepdim})"
    assert run(mean, x=torch.ones(2, 3)).shape[-1] == 1
    variance, root = texts["2"].says("C", ...), texts["3"].says(...)
    return written("x, eps=1e-5", f"variance = {variance}", f"(x - {mean}) / {root}")
