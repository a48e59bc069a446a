import re

import numpy as np
import pytest
import torch

from helpers.explorers import explore_weights
from tests.explorers.examples import X


def test_presets_are_those_of_the_notebook():
    explorer = explore_weights(X)
    preset = explorer.controls["preset"]
    causal = np.tri(4)
    for name, weights in {
        "causal": causal,
        "window": causal - np.tri(4, k=-3),
        "itself": np.eye(4),
        "decay": causal * 0.5 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4))),
    }.items():
        preset.value = name
        assert np.array_equal(explorer.controls["cells"].value, weights)
        out = (weights / weights.sum(1, keepdims=True)) @ X.numpy()
        last = next(
            li for li in str(explorer).splitlines() if li.lstrip().startswith("row 3")
        ).split()
        assert last[-2:] == [f"{value + 1e-9:.2f}" for value in out[-1]]
        assert "✓ Every row sums to 1" in explorer.view.value


def test_clicks_paint_and_are_watched():
    explorer = explore_weights(X)
    painter, preset = explorer.controls["cells"], explorer.controls["preset"]
    button = painter.buttons[1, 2]
    button.click()
    assert (painter.value[1][2], button.description, preset.value) == (1.0, "1", "by hand")
    assert "row 1 sees the future" in str(explorer)
    assert "⚠ row 1 sees the future" in explorer.view.value
    assert button.tooltip == "output 1, input 2: weight 1"
    bright = button.style.button_color
    button.click()
    assert (painter.value[1][2], button.style.button_color != bright) == (2.0, True)
    button.click()
    assert preset.value == "causal"  # as it was
    painter.buttons[0, 0].click()
    painter.buttons[0, 0].click()  # 1 -> 2 -> 0: row 0 is empty
    assert "row 0 sums to 0: nothing to average, and 0/0 is nan" in str(explorer)
    explorer.controls["normalise"].value = False
    assert "row 0 sums to 0: nothing to average, so the output is 0" in str(explorer)
    assert "rows 1, 2, 3 do not sum to 1" in str(explorer)


def test_a_painting_comes_back_after_a_preset():
    explorer = explore_weights(X)
    painter, preset = explorer.controls["cells"], explorer.controls["preset"]
    first = painter.value
    preset.value = "by hand"  # nothing is, yet
    assert painter.value == first
    painter.buttons[1, 2].click()
    painter.buttons[3, 0].click()
    mine = painter.value
    preset.value = "decay"
    assert painter.value != mine
    preset.value = "by hand"
    assert (painter.value, preset.value) == (mine, "by hand")
    preset.value = "window"
    painter.buttons[0, 1].click()  # a new painting, which begins with the window
    preset.value = "decay"
    preset.value = "by hand"
    window = np.tri(4) - np.tri(4, k=-3)
    window[0, 1] = 1
    assert np.array_equal(painter.value, window)


def test_words_name_rows_columns_and_warnings():
    explorer = explore_weights([[0.0], [1.0]], words=["<it>", "cat"])
    assert re.search(
        r"row <it> +1 0 +1\.00 +0\n +row cat +1 1 +1\.00 +0\.50\n +x +0 1$", str(explorer)
    )
    button = explorer.controls["cells"].buttons[0, 1]
    button.click()
    assert "row “<it>” sees the future" in str(explorer)
    assert button.tooltip == "output <it>, input cat: weight 1"
    assert "⚠ row “&lt;it&gt;” sees the future" in explorer.view.value
    heads = " ".join(getattr(part, "value", "") for part in explorer.controls["cells"].children)
    assert ("&lt;it&gt;" in heads, "<it>" in heads) == (True, False)
    with pytest.raises(ValueError, match="2 tokens and words has 1"):
        explore_weights([[0.0], [1.0]], words=["cat"])


@pytest.mark.parametrize(
    ("shape", "words"),
    [((9, 2), r"8 tokens.*\(9, 2\).*slice"), ((4, 8, 2), r"2-D.*\(4, 8, 2\)")],
)
def test_what_is_too_large_is_refused(shape, words):
    with pytest.raises(ValueError, match=words):
        explore_weights(torch.zeros(shape))
