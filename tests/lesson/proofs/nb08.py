"""Notebook 08: order."""

from functools import lru_cache

import torch

from helpers.attention import Block
from helpers.letters import backwards, right_at, three_back
from helpers.positions import rotary
from lesson.exercises import EXERCISES
from tests.lesson.proofs import proves, run_cells, written


@lru_cache
def models():
    """The notebook's models, and what trains them."""
    cells = "from functools", "torch.set_num", "class WithPositions"
    here = run_cells("08", *cells, add_positions=EXERCISES["08.4"].reference)

    class WithRotary(here["LetterModel"]):
        def __init__(self, n_block, n_head):
            super().__init__(n_block, n_head)
            blocks = (Block(32, n_head, rotary=True) for _ in range(n_block))
            self.blocks = torch.nn.ModuleList(blocks)

    return here | {"WithRotary": WithRotary}


def longer(B, generator):
    return three_back(B, generator, T=40)


def trained(kind, task, n_step, n_block, n_head):
    torch.manual_seed(0)
    model = models()[kind](n_block, n_head)
    models()["train"](model, task, n_step)
    return model


@proves("08.p1")
def two_words_that_end_alike(texts):
    first, second, last = texts["question"].quoted()
    order = torch.tensor([first.index(letter) for letter in second])
    x = torch.randn(1, 6, 32)
    y, differs = x[:, order], []
    assert first[-1] == second[-1] == last and sorted(first) == sorted(second)
    for _ in range(2):
        block = Block(32, n_head=4)
        x, y = block(x), block(y)
        differs.append(bool((x - y)[0, 5].norm() > 0.01 * x[0, 5].norm()))
    l_1, l_2 = first.index("l"), second.index("l")
    for letters, seen in (("s i", first[:l_1]), ("e n", second[:l_2])):
        assert letters.replace(" ", "") == seen  # why b
    texts["question"].says(2, 2, 2)
    texts["a"].says(2)
    texts["c"].says(2)
    texts["why b"].says(2)
    texts["why c"].says(len(order))
    texts["why d"].says(2, len(order))
    one, two = differs
    return {
        "in both": one and two,
        "stack of two": two and not one,
        "stack of one": one and not two,
        "in neither": not (one or two),
    }


@proves("08.p2")
def shifted(texts):
    (shift, count) = texts["question"].gives()
    W_q, W_k = torch.randn(2, 32, 8) / 6
    x, places = torch.randn(8, 32), torch.arange(8)

    def behind(x, places):
        return rotary(x @ W_q, places) @ rotary(x @ W_k, places).mT

    def before(x, places):
        x = rotary(x, places)
        return (x @ W_q) @ (x @ W_k).mT

    stays = [
        bool((f(x, places + shift) - f(x, places)).abs().max() < 1e-3) for f in (behind, before)
    ]
    assert count == len(stays)
    texts["a"].says("turned_after")
    texts["b"].says("turned_before")
    texts["why c"].says("turned_before")
    texts["why d"].says(shift)
    return {
        "only `turned_after`": stays == [True, False],
        "only `turned_before`": stays == [False, True],
        "both": all(stays),
        "neither": not any(stays),
    }


@proves("08.p3")
def at_new_positions(texts):
    first, last, one, of = texts["question"].gives()
    share = {}
    for kind in ("WithPositions", "WithRotary"):
        right = right_at(trained(kind, three_back, 100, 1, 1), longer)
        share[kind] = right[first : last + 1].mean().item()
    assert abs(share["WithPositions"] - one / of) < 0.03
    texts["why a"].says(3)
    texts["why b"].says(3, last, last, first - 1, 3)
    texts["why c"].says(3)
    right = share["WithRotary"]
    (rarely,), (least, most), (always,) = (texts[letter].gives() for letter in "abc")
    return {"a": right < rarely, "b": least < right < most, "c": right > always}


@proves("08.p4")
def backwards_with_rotary(texts):
    steps, percent, more = texts["question"].gives()
    learned = right_at(trained("WithPositions", backwards, steps, 2, 2), backwards)[9:].mean()
    assert learned > percent
    right = right_at(trained("WithRotary", backwards, more, 2, 2), backwards)[9:].mean()
    (_, low), (_, least, most), (high,) = (texts[letter].gives() for letter in "abc")
    texts["why a"].says(steps, more)
    without = right_at(trained("LetterModel", backwards, steps, 2, 2), backwards)[9:].mean()
    assert abs(without - low) < 0.02
    texts["why b"].says(0, 2, 4)
    texts["why c"].says(3, 2)
    return {
        "a": right < 0.15,
        "b": least < right < most,
        "c": right > high,
    }


@proves("08.4")
def add_positions(texts):
    texts["1"].gives()
    _, size, rows, *_ = texts["2"].gives()
    last = texts["3"].says(...)
    assert size in rows and rows in last
    return written("x, table", last)


@proves("08.turn")
def turn(texts):
    a, b = texts["1"].says(..., ...)
    first, second, cos, sin = texts["2"].says(..., ..., ..., ...)
    lines = [f"a = {a}", f"b = {b}", f"cos = {cos}", f"sin = {sin}"]
    lines += [f"first = {first}", f"second = {second}"]
    return written("x, angles", *lines, texts["3"].says(...))


@proves("08.3")
def look_back(texts):
    return written("k, n, speeds", texts["3"].says(...), turn=EXERCISES["08.turn"].reference)
