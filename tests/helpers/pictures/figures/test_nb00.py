import numpy as np
import pytest
import torch

from helpers.pictures import sheets
from tests.helpers.pictures import reading
from tests.helpers.pictures.examples import SCORES


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


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sheets(SCORES), r"3-D.*\(6, 6\)"),
        (lambda: sheets(torch.zeros(4, 8, 32)), "at most 200 numbers, got 1024.*slice"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
