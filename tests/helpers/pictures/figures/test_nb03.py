import re

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from helpers.pictures import softmax_steps
from tests.helpers.pictures import reading

KEYS = torch.tensor([[0.5, -1.0], [3.0, 0.25], [-1.0, 0.75]])  # (3, 2)


SCORES = [1.0, 0.0, 2.0, 5.0]


ALLOWED = [True, True, True, False]


@pytest.mark.parametrize(
    ("scores", "allowed"),
    [(SCORES, ALLOWED), ([0.5, -1.0, 12.0, 11.0, 3.0], [True, True, True, True, False])],
)
def test_every_step_of_the_softmax_stands_under_its_key(scores, allowed):
    keys = [f"k{i}" for i in range(len(scores))]
    shown = softmax_steps(scores, allowed, labels=keys, title="One row")
    (page,) = shown.figure().axes
    (table,) = reading.read_html(shown.html())
    lines = [re.split(r"\s{2,}", line.strip()) for line in str(shown).splitlines()[1:]]
    grids = reading.grids_on(page)
    masked = torch.tensor(scores).masked_fill(~torch.tensor(allowed), -torch.inf)
    top = masked.max() if masked.max() > 10 else 0
    grown = (masked - top).exp()
    steps = torch.stack([torch.tensor(scores), masked, grown, masked.softmax(-1)])
    for r, (grid, values) in enumerate(zip(grids, steps, strict=True)):
        (row,) = grid
        assert [float(box.text) for box in row] == pytest.approx(values.tolist(), abs=0.0051)
        assert table.cells[r][:-1] == [box.text for box in row] == lines[r + 1][1 : 1 + len(row)]
        fills = [to_hex(style["background"]) for style in table.styles[r][:-1]]
        assert fills == [box.fill for box in row]
        total = table.cells[r][-1]
        beside = [
            t
            for t, (x, y) in reading.texts_on(page)
            if y == row[0].y + row[0].height / 2 and x > row[-1].x + row[-1].width
        ]
        assert "".join(beside) == total == "".join(lines[r + 1][1 + len(row) :])
        assert (total != "") == (r >= 2)
        if total:
            assert float(total.removeprefix("sum ")) == pytest.approx(
                values.sum().item(), abs=0.0051
            )
    assert table.columns == [*keys, ""] and lines[0] == keys
    assert [line[0] for line in lines[1:]] == table.names
    assert (table.caption, table.over) == ("One row", "key (who is read)")
    middles = [box.x + box.width / 2 for box in grids[0][0]]
    for key, x in zip(keys, middles, strict=True):
        above, below = sorted(at for text, at in reading.texts_on(page) if text == key)
        assert above[0] == below[0] == pytest.approx(x)
        assert above[1] < grids[0][0][0].y < grids[-1][0][0].y < below[1]
    bars = page.containers[0]
    assert [bar.get_x() + bar.get_width() / 2 for bar in bars] == pytest.approx(middles)
    heights = np.array([bar.get_height() for bar in bars])
    assert np.allclose(heights / heights.sum(), steps[-1], atol=1e-6)
    (line,) = page.lines
    assert {bar.get_y() for bar in bars} == set(line.get_ydata())  # they stand on it


def test_softmax_steps_end_in_the_softmax():
    shown = str(softmax_steps(SCORES, ALLOWED, labels=list("abcd")))
    weights = torch.softmax(torch.tensor([1.0, 0.0, 2.0, -torch.inf]), -1)
    last = shown.splitlines()[-1]
    assert re.findall(r"\d\.\d\d", last) == [f"{w:.2f}" for w in weights[:3]] + ["1.00"]
    assert last.split()[-3] == "0"  # exp turns -inf into nothing at all
    assert "exp(score)  " in shown and "7.39" in shown  # as in the formula
    assert shown.splitlines()[3].split() == ["masked", "1.00", "0", "2.00", "-inf"]
    large = str(softmax_steps([11.0, 12.0, 99.0], [True, True, False]))
    assert "exp(score - 12" in large  # the largest that may be seen, not the largest
    assert "exp(score - (-20" in str(softmax_steps([-20.0, -21.0]))


def test_the_bars_of_the_softmax_are_as_long_as_its_weights():
    ax = softmax_steps(SCORES, ALLOWED).figure().axes[0]
    heights = np.abs([bar.get_height() for bar in ax.containers[0]])
    weights = torch.softmax(torch.tensor([1.0, 0.0, 2.0, -torch.inf]), -1).numpy()
    assert np.allclose(heights / heights.sum(), weights, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: softmax_steps(KEYS), r"one row.*\(3, 2\)"),
        (lambda: softmax_steps([1.0, -torch.inf]), "allowed=, not as -inf"),
        (lambda: softmax_steps([1.0, 2.0], [False, False]), "0/0 is nan"),
        (lambda: softmax_steps([1.0, 2.0], labels=["a"]), "each of the 2 scores, got 1"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_without_a_mask_there_is_no_masked_row():
    shown = str(softmax_steps([1.0, 0.0]))
    assert "masked" not in shown and "exp(score)" in shown
    assert "masked" in str(softmax_steps([1.0, 0.0], [True, False]))
