import numpy as np
import pytest
import torch

from helpers.pictures import row_times_column
from tests.helpers.pictures import reading

L = torch.ones(3, 3).tril()


A = torch.tensor([[8.0, 6.0, 5.0], [2.0, 4.0, 4.0], [7.0, 4.0, 5.0]])


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


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: row_times_column(L[:, :2], A, 0, 0), r"\(3, 2\) @ \(3, 3\)"),
        (lambda: row_times_column(L, A, 3, 0), "row of the product .* from 0 to 2, got 3"),
        (lambda: row_times_column(torch.zeros(9, 3), A, 0, 0), "up to 8"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
