import re

import pytest
import torch
from matplotlib.colors import to_hex

from helpers.pictures import ribbon
from helpers.pictures.colours import TOKENS
from tests.helpers.pictures import reading


def test_the_ribbon_is_cut_as_torch_cuts_it():
    T, n_head, head_size = 3, 2, 2
    x = torch.tensor([[t + c / 10 for c in range(4)] for t in range(T)])
    right, wrong = str(ribbon(T, n_head, head_size)).split("\n\n")[2:]
    for part, heads in (
        (right, x.view(T, n_head, head_size).transpose(0, 1)),
        (wrong, x.view(n_head, T, head_size)),
    ):
        numbers = [float(n) for n in re.findall(r"^\d\.\d.*$", part, re.M) for n in n.split()]
        assert torch.allclose(torch.tensor(numbers), heads.flatten(), atol=1e-6)
    assert ribbon(2, 2, 1).alt.endswith("holds channels of token 0 only.")


@pytest.mark.parametrize(("T", "n_head", "head_size"), [(3, 2, 4), (4, 3, 2), (4, 4, 4)])
def test_the_ribbon_shows_memory_with_its_cuts_and_both_splits(T, n_head, head_size):
    C = n_head * head_size
    shown = ribbon(T, n_head, head_size)
    (page,) = shown.figure().axes
    tokens = [[f"{t}.{c}" for c in range(C)] for t in range(T)]
    flat = torch.arange(T * C)
    right = flat.view(T, n_head, head_size).transpose(0, 1)
    wrong = flat.view(n_head, T, head_size)
    split = [
        [[f"{i // C}.{i % C}" for i in row] for row in head]
        for way in (right.tolist(), wrong.tolist())
        for head in way
    ]
    memory, *heads = [table.cells for table in reading.read_html(shown.html())]
    assert memory == tokens and heads == split
    grids = reading.grids_on(page)
    texts = [[[box.text for box in row] for row in grid] for grid in grids]
    strips = texts[: -2 * n_head]
    assert [text for (strip,) in strips for text in strip] == [
        text for token in tokens for text in token
    ]
    assert texts[-2 * n_head :] == split
    # Lines along the ribbon say which head gets which cells: above split right, below by view.
    head_of = {"above": {}, "below": {}}
    for line in page.lines:
        (start, end), (y, _) = line.get_data()
        name = [
            t
            for t, (x, high) in reading.texts_on(page)
            if abs(x - (start + end) / 2) < 0.01 and abs(high - y) == 9
        ]
        (strip,) = [grid[0] for grid in grids[: -2 * n_head] if abs(grid[0][0].y + 14 - y) < 25]
        side = "above" if y < strip[0].y else "below"
        for box in strip:
            if start < box.x + box.width / 2 < end:
                assert (
                    head_of[side].setdefault(box.text, name[0].split()[-1]) == name[0].split()[-1]
                )
    for side, way in (("above", right), ("below", wrong)):
        assert head_of[side] == {
            f"{i // C}.{i % C}": str(h)
            for h, head in enumerate(way)
            for i in head.flatten().tolist()
        }


def test_each_token_of_the_ribbon_has_its_colour():
    ax = ribbon(3, 2, 2).figure().axes[0]
    cells = [text for text in ax.texts if re.fullmatch(r"\d\.\d", text.get_text())]
    assert len(cells) == len(ax.patches) == 3 * 3 * 4  # in memory, split right, split wrong
    for text, patch in zip(cells, ax.patches, strict=True):
        assert patch.get_bbox().contains(*text.get_position())
        assert to_hex(patch.get_facecolor()) == TOKENS[int(text.get_text()[0])]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ribbon(0, 2, 2), "T must be .* got 0"),
        (lambda: ribbon(9, 1, 1), "8 tokens.* got 9 tokens"),
        (lambda: ribbon(8, 3, 3), "72 cells"),
        (lambda: ribbon(1, 9, 1), "8 heads"),
        (lambda: ribbon(1, 1, 17), "16 channels"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
