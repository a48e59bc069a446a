import re

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from helpers.pictures import ribbon, row_times_column, sheets
from helpers.pictures.colours import TOKENS
from tests.helpers.pictures import reading
from tests.helpers.pictures.examples import SCORES

L = torch.ones(3, 3).tril()
A = torch.tensor([[8.0, 6.0, 5.0], [2.0, 4.0, 4.0], [7.0, 4.0, 5.0]])


def test_sheets_tell_every_number_under_its_sheet():
    assert str(sheets([[[1, 2]], [[3, 44]]])).splitlines() == [
        "2 sheets of 1 x 2",
        "sheet = b, row = t, column = c",
        "",
        "b = 0",
        "   0  1",
        "0  1  2",
        "",
        "b = 1",
        "   0   1",
        "0  3  44",
    ]


def test_sheets_draw_every_number_on_its_sheet():
    ax = sheets([[[21, 22]], [[23, 24]]]).figure().axes[0]
    places = {text.get_text(): text.get_position() for text in ax.texts}
    assert places["b = 0"][0] < places["21"][0] < places["22"][0] < places["b = 1"][0]
    assert places["b = 1"][0] < places["23"][0] < places["24"][0]
    assert places["b = 1"][1] > places["b = 0"][1]  # a little lower than the one before


@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 4, 2)])
def test_every_sheet_holds_its_numbers_in_rows_and_columns(shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    shown = sheets(x, title="A tensor")
    (page,) = shown.figure().axes
    drawn = reading.read_page(page)
    for faces in (drawn, reading.read_html(shown.html())):
        assert np.allclose([table.numbers for table in faces], x, atol=0.0051)
    captions = {text: at for text, at in reading.texts_on(page) if text.startswith("b = ")}
    for b, (grid, table) in enumerate(
        zip(reading.grids_on(page), reading.read_html(shown.html()), strict=True)
    ):
        assert (table.caption, table.corner, table.over) == (f"b = {b}", "t", "c")
        left, top = captions[f"b = {b}"]
        assert left < grid[0][0].x < left + 50 and top < grid[0][0].y < top + 50
    names = [text for text, _ in reading.texts_on(page)]
    assert names.count("t") == names.count("c") == shape[0]
    assert names[0] == "A tensor"


@pytest.mark.parametrize(("row", "col"), [(0, 1), (2, 3)])
def test_row_times_column_draws_both_factors_and_the_product(row, col):
    a = np.random.default_rng(0).normal(size=(3, 2))
    b = np.random.default_rng(1).normal(size=(2, 4))
    shown = row_times_column(a, b, row, col, names=("weights", "v"))
    (page,) = shown.figure().axes
    captions = [table.caption for table in reading.read_html(shown.html())]
    assert captions == ["weights", "v", "weights @ v"]
    grids = reading.grids_on(page)
    for grid, values in zip(grids, (a, b, a @ b), strict=True):
        assert np.allclose([[float(c.text) for c in line] for line in grid], values, atol=0.0051)
    marked = [
        {(r, c) for r, line in enumerate(grid) for c, box in enumerate(line) if box.marked}
        for grid in grids
    ]
    assert marked == [{(row, 0), (row, 1)}, {(0, col), (1, col)}, {(row, col)}]
    places = dict(reading.texts_on(page))
    signs = [places[text][0] for text in ("weights", "@", "v", "=", "weights @ v")]
    assert signs == sorted(signs)
    (sentence,) = [text for text in places if text.startswith("row ")]
    assert sentence.split(":")[0] == f"row {row} · column {col}"
    products, total = sentence.split(":")[1].split("=")
    pairs = [[float(f.strip(" ()")) for f in p.split("·")] for p in products.split("+")]
    assert np.allclose(pairs, np.column_stack([a[row], b[:, col]]), atol=0.0051)
    assert float(total) == pytest.approx((a @ b)[row, col], abs=0.0051)
    for told in (str(shown).replace(" x ", " · "), reading.words(reading.parse(shown.html()))):
        assert sentence.split() == told[told.rindex("row ") :].split()


def test_row_times_column_writes_the_sum_out():
    shown = row_times_column(L, A, 1, 0, names=("L", "a"))
    assert str(shown).endswith("row 1 x column 0:  1 x 8 + 1 x 2 + 0 x 7 = 10")
    assert "17  14  14" in str(shown)
    negative = row_times_column([[0.5, -1.5]], [[-2.0], [1.0]], 0, 0)
    assert "0.50 x (-2) + -1.50 x 1 = -2.50" in str(negative)
    long = row_times_column(torch.tensor([[1.0, 1, 0, 0, 0]]), torch.arange(5.0)[:, None], 0, 0)
    assert str(long).endswith("1 x 0 + 1 x 1 + 3 times 0 = 1")


def test_row_column_and_result_are_framed():
    shown = row_times_column(L, A, 1, 0)
    ax = shown.figure().axes[0]
    frames = [patch for patch in ax.patches if not patch.get_fill()]
    assert len(frames) == 7  # a row, a column and the result
    framed = {
        text.get_text()
        for text in ax.texts
        for frame in frames
        if frame.get_bbox().contains(*text.get_position())
    }
    assert framed == {"0", "1", "8", "2", "7", "10"}
    assert shown.html().count("outline:2px") == 7


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
        (lambda: sheets(SCORES), r"3-D.*\(6, 6\)"),
        (lambda: sheets(torch.zeros(4, 8, 32)), "at most 200 numbers, got 1024.*slice"),
        (lambda: row_times_column(L[:, :2], A, 0, 0), r"\(3, 2\) @ \(3, 3\)"),
        (lambda: row_times_column(L, A, 3, 0), "row of the product .* from 0 to 2, got 3"),
        (lambda: row_times_column(torch.zeros(9, 3), A, 0, 0), "up to 8"),
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
