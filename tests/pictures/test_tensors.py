import re

import pytest
import torch
from matplotlib.colors import to_hex

from helpers.pictures import ribbon, row_times_column, sheets
from helpers.pictures.colours import TOKENS
from tests.pictures.examples import SCORES

L = torch.ones(3, 3).tril()
A = torch.tensor([[8.0, 6.0, 5.0], [2.0, 4.0, 4.0], [7.0, 4.0, 5.0]])


def test_sheets_tell_every_number_under_its_sheet():
    assert str(sheets([[[1, 2]], [[3, 44]]], names=("b", "row", "col"))).splitlines() == [
        "2 sheets of 1 x 2",
        "sheet = b, row = row, column = col",
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
