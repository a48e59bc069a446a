import math
import re

import pytest
import torch

from helpers.explorers import explore_heads
from helpers.toy import numbers as tokens_of
from tests.explorers.examples import TOKENS
from tests.explorers.reading import colours, floats, move, near, now, numbers, paragraphs, tables

ROW, SKIP = "row of the query", "skip the transpose (split by view alone)"


def heads_by_loops(x, n_head, skip):
    """Attend head by head: weights (n_head, T, T), output (T, C), owners of rows (n_head, T)."""
    T, C = x.shape
    size = C // n_head
    matrices = torch.randn(3, C, C, generator=torch.Generator().manual_seed(0)).double() / C**0.5
    q, k, v = (x @ matrix for matrix in matrices)
    weights, out = torch.zeros(n_head, T, T).double(), torch.zeros(T, C).double()
    owners = torch.arange(T).repeat(n_head, 1)
    for h in range(n_head):
        if skip:
            part = slice(h * T * size, (h + 1) * T * size)
            a, b, c = (z.flatten()[part].view(T, size) for z in (q, k, v))
            owners[h] = torch.arange(T).repeat_interleave(C)[part][::size]
        else:
            a, b, c = (z[:, h * size : (h + 1) * size] for z in (q, k, v))
        for t in range(T):
            weights[h, t, : t + 1] = torch.softmax(b[: t + 1] @ a[t] / math.sqrt(size), -1)
            out[t, h * size : (h + 1) * size] = weights[h, t, : t + 1] @ c[: t + 1]
    return weights, out, owners


def tokens_in(sentence):
    """The tokens that a sentence names: "tokens 0 to 3" or "tokens 0, 2 and 3"."""
    places = list(map(int, re.findall(r"\d+", sentence)))
    return list(range(places[0], places[1] + 1)) if " to " in sentence else places


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(("T", "n_head"), [(8, 4), (5, 2), (4, 1), (6, 8)])
def test_drawing_and_words_show_what_each_head_does(skip, T, n_head):
    x = torch.randn(T, 32, generator=torch.Generator().manual_seed(2)).double()
    explorer = explore_heads(x, n_head)
    move(explorer, {SKIP: skip})
    weights, out, owners = heads_by_loops(x, n_head, skip)
    moved = torch.zeros(T, T, dtype=torch.bool)
    for s in range(T):
        changed = x.clone()
        changed[s] = torch.randn(32, generator=torch.Generator().manual_seed(s))
        moved[:, s] = (heads_by_loops(changed, n_head, skip)[1] - out).abs().amax(1) > 1e-9
    past = torch.ones(T, T, dtype=torch.bool).tril()
    for row in {0, 2, T - 1}:
        move(explorer, {ROW: row})
        most = []
        heads = tables(explorer)
        assert len(heads) == n_head
        for h, table in enumerate(heads):
            names = [str(owner) for owner in owners[h].tolist()]
            assert table.names == table.columns == names
            cells = [cell for cells in table.rows for cell in cells]
            seen = [cell for cell, may in zip(cells, past.flatten(), strict=True) if may]
            hidden = [cell for cell, may in zip(cells, past.flatten(), strict=True) if not may]
            assert [cell.fill for cell in seen] == colours(weights[h][past])
            assert [float(cell.note) for cell in seen] == near(weights[h][past])
            assert {(c.look, c.fill, c.text, c.note) for c in hidden} <= {
                ("masked", "", "", "masked")
            }
            assert [any(cell.text for cell in cells) for cells in table.rows] == [
                t == row for t in range(T)
            ], "numbers in the chosen row alone"
            assert numbers(table.rows[row]) == near(weights[h, row, : row + 1])
            assert table.framed == [names[row]]
            largest, key = weights[h, row].max(0)
            head, token, weight = floats(table.caption)
            assert (head, token) == (h, owners[h, key])
            assert [weight] == near(largest)
            shown_weight = table.caption.split("(")[1]
            most.append(f"head {h} gives most to token {owners[h, key]} ({shown_weight}")
        note, reach, future, *missing = paragraphs(explorer)
        assert f"Row {row} is framed" in note
        assert ("the token whose channels stand there" in note) == skip
        assert tokens_in(reach.split("depends on")[1]) == moved[row].nonzero().flatten().tolist()
        later = [t for t in range(row + 1, T) if moved[row, t]]
        assert future.startswith("⚠ It depends on the future" if later else "✓ It does not depend")
        if later:
            named, right = re.search(r"\((.*?)\).* is token \d+ (.*)\.", future).groups()
            assert tokens_in(named) == later
            right_heads = [h for h in range(n_head) if owners[h, row] == row]
            assert tokens_in(right) == right_heads
        unseen = [t for t in range(row + 1) if not moved[row, t]]
        assert [tokens_in(sentence) for sentence in missing] == [unseen] * bool(unseen)
        how = "split by view alone" if skip else "split right"
        told = " ".join([reach, future, *missing])
        assert now(explorer) == f"row {row}, {how}: {', '.join(most)}. {told}"


def test_the_frame_stays_on_one_row_when_tokens_stand_twice():
    explorer = explore_heads(TOKENS)
    move(explorer, {SKIP: True, ROW: 5})
    for table in tables(explorer):
        assert len(table.framed) == 1
        assert [i for i, row in enumerate(table.rows) if row[0].text] == [5]


def test_10_tokens_and_8_heads_fit():
    assert [len(table.rows) for table in tables(explore_heads(torch.eye(10, 8), 8))] == [10] * 8


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: explore_heads(TOKENS, 5), "C = 32 channels .* n_head = 5 heads"),
        (lambda: explore_heads(TOKENS, 0), "from 1 to 8, got 0"),
        (lambda: explore_heads(tokens_of(36)[0], 9), "from 1 to 8, got 9"),
        (lambda: explore_heads(TOKENS, True), "from 1 to 8, got True"),
        (lambda: explore_heads(TOKENS, 2.0), "from 1 to 8, got 2.0"),
        (lambda: explore_heads(torch.zeros(11, 4)), r"10 tokens, got 11.*x\[:10\]"),
        (lambda: explore_heads(tokens_of(32)), r"2-D.*\(4, 8, 32\)"),
    ],
)
def test_what_cannot_be_split_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
