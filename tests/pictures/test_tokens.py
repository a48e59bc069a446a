import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from helpers.pictures import staircase
from helpers.pictures.colours import ORANGE

X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [4.0, 1.0]])  # (4, 2)
WINDOW = np.tri(5, dtype=bool) & ~np.tri(5, k=-2, dtype=bool)


def arrows(shown):
    """From which input to which output the arrows go, and which of them are orange."""
    ax = shown.figure().axes[0]
    found = [text for text in ax.texts if getattr(text, "arrow_patch", None)]
    spots = {round(text.get_position()[0]): int(text.get_text()) for text in ax.texts
             if text.get_text().isdigit()}  # fmt: skip
    pairs = {}
    for arrow in found:
        start, end = spots[round(arrow.get_position()[0])], spots[round(arrow.xy[0])]
        pairs[start, end] = to_hex(arrow.arrow_patch.get_edgecolor()) == ORANGE
    return pairs


@pytest.mark.parametrize("mask", [None, WINDOW], ids=["causal", "window"])
def test_the_staircase_has_one_arrow_for_each_pair(mask):
    may = np.tri(5, dtype=bool) if mask is None else mask
    assert arrows(staircase(5, mask=mask)) == {
        (j, t): bool(j == t) for t, j in np.argwhere(may).tolist()
    }


def test_the_staircase_says_what_each_output_reads():
    assert str(staircase(5, mask=WINDOW)).splitlines()[1:4] == [
        "output 0 reads itself",
        "output 1 reads input 0 and itself",
        "output 2 reads input 1 and itself",
    ]
    strict = str(staircase(3, mask=np.tri(3, k=-1, dtype=bool)))
    assert strict.endswith(
        "output 0 reads nothing\noutput 1 reads input 0\noutput 2 reads inputs 0, 1"
    )


def test_the_table_of_the_staircase_has_a_cell_for_each_pair():
    html = staircase(5, mask=WINDOW).html()
    assert (html.count(">self</td>"), html.count(">yes</td>")) == (5, 4)
    assert html.count('title="no arrow"') == 16


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: staircase(13), "1 to 12 tokens, got the int 13 for T"),
        (lambda: staircase(3, mask=np.ones((2, 2), dtype=bool)), r"\(3, 3\), got \(2, 2\)"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
