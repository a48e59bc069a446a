import math
import re

import pytest
import torch

from helpers.explorers import explore_heads
from helpers.numbers import narrow, number
from helpers.toy import numbers
from tests.explorers.examples import TOKENS


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
def test_it_names_the_tokens_that_change_an_output(skip, T, n_head):
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
            most = number(weights[h, row].max())
            assert re.search(rf"head {h} gives most to token \d \({most}\)", told)
        reached = re.search(r"depends on tokens? (.*?)\.", told)[1]
        first, *last = map(int, re.findall(r"\d+", reached))
        tokens = range(first, last[0] + 1) if " to " in reached else [first, *last]
        assert list(tokens) == moved[row].nonzero().flatten().tolist()
        assert ("It depends on the future" in told) == bool(moved[row, row + 1 :].any())
        assert ("does not depend on token" in told) == (not moved[row, : row + 1].all())


@pytest.mark.parametrize("row", [0, 3])
def test_the_chosen_row_has_its_numbers_and_a_frame(row):
    explorer = explore_heads(TOKENS)
    explorer.controls["skip"].value = False
    explorer.controls["row"].value = row
    weights, _ = heads_by_loops(TOKENS.double(), 4, False)
    shown = re.findall(r">(\.\d\d|0|1)</td>", explorer.view.value)
    assert shown == [narrow(w) for h in range(4) for w in weights[h, row, : row + 1].tolist()]
    framed = re.findall(r'class="framed"><th [^>]*>(\d)</th>', explorer.view.value)
    assert framed == [str(row)] * 4


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: explore_heads(TOKENS, 5), "C = 32 channels .* n_head = 5 heads"),
        (lambda: explore_heads(TOKENS, 0), "from 1 to 8, got 0"),
        (lambda: explore_heads(torch.zeros(11, 4)), r"10 tokens, got 11.*x\[:10\]"),
        (lambda: explore_heads(numbers(32)), r"2-D.*\(4, 8, 32\)"),
    ],
)
def test_what_cannot_be_split_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
