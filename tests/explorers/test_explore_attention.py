import itertools
import math
import re

import pytest
import torch

from helpers.explorers import (
    explore_depth,
    explore_heads,
    explore_query,
    explore_scaling,
)
from helpers.numbers import number
from helpers.stack import INITS, WAYS, signal_by_depth
from helpers.toy import numbers

WORDS = ["Life", "is", "short"]
QUERY = torch.tensor([1.0, 2.0])
KEYS = torch.tensor([[0.5, -1.0], [3.0, 0.25], [-1.0, 0.75]])  # (3, 2)
VALUES = torch.tensor([[1.0, 0.0, 0.0, 2.0], [0.0, 4.0, 0.0, 2.0], [0.0, 0.0, 8.0, 2.0]])  # (3, 4)
X = torch.tensor([[1.0, 1.0, 0.5], [0.0, 2.0, 0.5], [-1.0, 3.0, 0.5]])  # (3, 3)
TOKENS = numbers(32)[0]  # (8, 32)

ALL = {
    "query": lambda: explore_query(QUERY, KEYS, VALUES, X, words=WORDS),
    "scaling": explore_scaling,
    "heads": lambda: explore_heads(TOKENS),
    "depth": explore_depth,
}


def told_numbers(explorer, after):
    return re.findall(r"-?\d+\.\d\d|\b0\b", str(explorer).split(after)[1])


def test_the_query_starts_as_given_and_mixes_what_is_ticked():
    explorer = ALL["query"]()
    weights = torch.softmax(KEYS @ QUERY / 2**0.5, -1)
    for word, weight in zip(WORDS, weights, strict=True):
        assert f"{word} {number(weight)}" in str(explorer)
    assert told_numbers(explorer, "@ values") == [number(o) for o in weights @ VALUES]
    explorer.controls["mix x"].value = True
    assert told_numbers(explorer, "@ x") == [number(o) for o in weights @ X]
    assert f"is {number(weights[1])}" in str(explorer)


def test_a_longer_query_sharpens_and_stays_on_the_plane():
    explorer = ALL["query"]()
    explorer.controls["angle"].value = 90
    explorer.controls["length"].value = 4.0
    weights = torch.softmax(KEYS @ torch.tensor([-8.0, 4.0]) / 2**0.5, -1)
    assert f"weights Life {number(weights[0])}, is 0, short {number(weights[2])}." in str(explorer)
    assert "reaches beyond the edge" in explorer.view.value
    tip = re.search(r'fill="#e8792b"/>', explorer.view.value).start()
    x = float(re.findall(r'd="M(-?[\d.]+),', explorer.view.value[:tip])[-1])
    assert -150 <= x < -140
    explorer.controls["length"].value = 0.0
    assert "Life 0.33, is 0.33, short 0.33" in str(explorer)


def variance(explorer):
    return float(re.search(r"variance ([\d.e+-]+)", str(explorer))[1])


def test_only_the_root_of_d_is_right_for_every_d():
    explorer = explore_scaling()
    d, divisor = explorer.controls["log2 d"], explorer.controls["divisor"]
    right = {name: set() for name in divisor.options}
    for power, name in itertools.product(range(11), right):
        d.value, divisor.value = power, name
        if 0.8 < variance(explorer) < 1.25:
            right[name].add(2**power)
            assert "The weights choose" in explorer.view.value
    everywhere = {2**p for p in range(11)}
    assert right == {"none": {1}, "√T": {8}, "√C": {32}, "√d": everywhere, "d": {1}}


def test_scaling_measures_entropy_and_sensitivity():
    explorer = explore_scaling()
    explorer.controls["log2 d"].value, explorer.controls["divisor"].value = 10, "d"
    assert "entropy 3.00 of at most 3 bits, a weight answers with 0.109" in str(explorer)
    assert "nearly a plain average" in str(explorer)
    explorer.controls["divisor"].value = "none"
    bits, answer = (float(n) for n in re.findall(r"(?:entropy|with) (\d\.\d+)", str(explorer)))
    assert bits < 0.2
    assert answer < 0.01
    assert "nearly all to one token" in str(explorer)


def test_scaling_says_when_rows_are_sharp_without_being_lost():
    explorer = explore_scaling()
    explorer.controls["log2 d"].value, explorer.controls["divisor"].value = 2, "none"
    assert "Sharper than it need be" in str(explorer)


@pytest.mark.parametrize(
    ("way", "start", "depth", "told"),
    [
        ("plain", "default", 1, "⚠ The signal fades, the gradient fades."),
        ("plain", "unit gain", 6, "⚠ The gradient fades, all tokens point nearly the same way."),
        ("residual", "unit gain", 6, "⚠ The signal explodes, the gradient explodes."),
        ("+ norm", "unit gain", 24, "✓ Signal and gradient stay within a factor of 10"),
    ],
)
def test_depth_names_what_is_wrong_with_a_stack(way, start, depth, told):
    explorer = explore_depth()
    for name, value in {"way": way, "start": start, "depth": depth}.items():
        explorer.controls[name].value = value
    assert told in str(explorer)


def heads_by_loops(x, n_head, skip):
    """Attend with the matrices of the explorer, head by head: (n_head, T, T) and (T, C)."""
    T, C = x.shape
    size = C // n_head
    matrices = torch.randn(3, C, C, generator=torch.Generator().manual_seed(0)).double() / C**0.5
    q, k, v = (x @ matrix for matrix in matrices)
    weights, out = torch.zeros(n_head, T, T).double(), torch.zeros(T, C).double()
    for h in range(n_head):
        if skip:
            part = slice(h * T * size, (h + 1) * T * size)
            a, b, c = (z.flatten()[part].view(T, size) for z in (q, k, v))
        else:
            a, b, c = (z[:, h * size : (h + 1) * size] for z in (q, k, v))
        for t in range(T):
            weights[h, t, : t + 1] = torch.softmax(b[: t + 1] @ a[t] / math.sqrt(size), -1)
            out[t, h * size : (h + 1) * size] = weights[h, t, : t + 1] @ c[: t + 1]
    return weights, out


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(("T", "n_head"), [(8, 4), (5, 2), (4, 1)])
def test_heads_hear_what_they_are_said_to_hear(skip, T, n_head):
    x = TOKENS[:T].double()
    explorer = explore_heads(x, n_head)
    explorer.controls["skip"].value = skip
    weights, out = heads_by_loops(x, n_head, skip)
    moved = torch.zeros(T, T, dtype=torch.bool)
    for s in range(T):
        changed = x.clone()
        changed[s] = torch.randn(32, generator=torch.Generator().manual_seed(s))
        moved[:, s] = (heads_by_loops(changed, n_head, skip)[1] - out).abs().amax(1) > 1e-9
    for row in range(T):
        explorer.controls["row"].value = row
        told = str(explorer)
        for h in range(n_head):
            assert re.search(
                rf"head {h} most to token \d \({number(weights[h, row].max())}\)", told
            )
        heard = re.search(r"hears tokens? (.*?)\.", told)[1]
        first, *last = map(int, re.findall(r"\d+", heard))
        tokens = range(first, last[0] + 1) if " to " in heard else [first, *last]
        assert list(tokens) == moved[row].nonzero().flatten().tolist()
        assert ("It sees the future" in told) == bool(moved[row, row + 1 :].any())
        assert ("does not hear" in told) == (not moved[row, : row + 1].all())


def test_the_chosen_row_has_its_numbers():
    explorer = explore_heads(TOKENS)
    explorer.controls["row"].value = 3
    weights, _ = heads_by_loops(TOKENS.double(), 4, False)
    shown = re.findall(r">(\.\d\d|0)</td>", explorer.view.value)
    assert shown == [
        number(w).removeprefix("0") or "0" for h in range(4) for w in weights[h, 3, :4]
    ]


def test_depth_shows_the_measured_stack():
    explorer = explore_depth()
    controls = explorer.controls
    for way, init, deep in itertools.product(WAYS, INITS, (1, 24)):
        controls["way"].value, controls["start"].value, controls["depth"].value = way, init, deep
        stack = signal_by_depth(way, deep, init=init)
        signal, gradient, similarity = re.search(
            r"signal (\S+), gradient (\S+), similarity (\S+)\. ", str(explorer)
        ).groups()
        assert float(signal) == pytest.approx(stack.signal, rel=0.06)
        assert float(gradient) == pytest.approx(stack.gradient, rel=0.06)
        assert similarity == number(stack.similarity)
        assert ("explodes" in str(explorer)) == (stack.signal > 1000)
        assert explorer.view.value.count("<circle") == 3


def test_depth_only_looks_numbers_up(monkeypatch):
    explorer = explore_depth()
    monkeypatch.setattr("helpers.explorers.depth.signal_by_depth", None)
    explorer.controls["depth"].value = 17
    explorer.controls["way"].value = "residual"
    assert "alert" not in explorer.view.value


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: explore_query(X[0], X, VALUES, X), r"\(2,\) .* got \(3,\) and \(3, 3\)"),
        (lambda: explore_query(QUERY, KEYS, VALUES[:2], X), r"equally many.*values \(2, 4\)"),
        (lambda: explore_query(QUERY, KEYS, VALUES, X, words=["a"]), "3 keys, got 1"),
        (lambda: explore_heads(TOKENS, 5), "C=32 channels and 5 heads"),
        (lambda: explore_heads(TOKENS, 0), "from 1 to 8, got 0"),
        (lambda: explore_heads(torch.zeros(11, 4)), r"10 tokens, got 11.*x\[:10\]"),
        (lambda: explore_heads(numbers(32)), r"2-D.*\(4, 8, 32\)"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
