import numpy as np
import pytest
import torch

from helpers.explorers import (
    Explorer,
    explore_axis,
    explore_prefix,
    explore_softmax,
    explore_weights,
)
from helpers.explorers.axis import DIGITS
from helpers.explorers.explorer import slider
from tests.explorers.test_explore_attention import ALL as OF_04_TO_07

X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [4.0, 1.0]])  # (4, 2)

ALL = {
    "axis": explore_axis,
    "prefix": lambda: explore_prefix(X),
    "weights": lambda: explore_weights(X),
    "softmax": explore_softmax,
    **OF_04_TO_07,
}


@pytest.mark.parametrize("name", ALL)
def test_every_explorer_shows_itself_and_tells_its_state(name):
    explorer = ALL[name]()
    shown = explorer._repr_mimebundle_()
    assert shown["text/plain"] == str(explorer) == repr(explorer)
    assert str(explorer).startswith("Live: ")
    assert "Now: " in str(explorer)
    assert "application/vnd.jupyter.widget-view+json" in shown
    assert "alert" not in explorer.view.value


@pytest.mark.parametrize("name", ALL)
def test_every_control_changes_picture_and_words(name):
    explorer = ALL[name]()
    for control, widget in explorer.controls.items():
        before = explorer.view.value, str(explorer)
        if control == "painter":
            widget.buttons[0, 1].click()
        elif control == "preset":
            widget.value = "window" if widget.value != "window" else "decay"
        elif hasattr(widget, "options"):
            widget.value = next(o for o in widget.options if o != widget.value)
        else:
            ends = (widget.min, widget.max) if hasattr(widget, "max") else (False, True)
            widget.value = ends[widget.value != ends[1]]
        assert explorer.view.value != before[0], control
        assert str(explorer) != before[1], control
        assert "alert" not in explorer.view.value


@pytest.mark.parametrize("name", ALL)
def test_a_picture_is_small_enough_to_follow_a_slider(name):
    """How fast it is, is measured by benchmarks/live.py; this is what has to travel."""
    assert len(ALL[name]().view.value) < 40_000


def test_an_error_is_told_in_the_widget_and_goes_away(monkeypatch):
    def draw(t):
        return f"one over t is {1 / t}"

    explorer = Explorer("divide", {"t": slider("t", 2, 0, 3)}, draw, draw)
    explorer.controls["t"].value = 0
    assert 'role="alert"' in explorer.view.value
    assert "ZeroDivisionError: division by zero" in explorer.view.value
    assert "cannot be drawn" in str(explorer)
    explorer.controls["t"].value = 1
    assert explorer.view.value == "one over t is 1.0"


def test_explorers_take_values_that_strict_mode_would_refuse(monkeypatch):
    monkeypatch.setenv("ATTENTION_STRICT", "1")
    explorer = explore_prefix([[0.1250004, 0.0]])
    assert "(0.13, 0)" in str(explorer)
    assert "alert" not in explorer.view.value


def test_axis_sums_as_torch_does():
    explorer = explore_axis()
    x, controls = torch.tensor(DIGITS), explorer.controls
    for dim in range(-3, 3):
        for keepdim in (False, True):
            controls["dim"].value, controls["keepdim"].value = dim, keepdim
            out = x.sum(dim, keepdim=keepdim)
            assert f"-> {tuple(out.shape)}" in str(explorer)
            assert controls["cell"].max == out.numel() - 1
            controls["cell"].value = controls["cell"].max
            assert f"= {out.flatten()[-1]}" in str(explorer)
            summed = x.shape[dim]
            assert explorer.view.value.count("outline:2px") == summed + 1
    controls["dim"].value = 0
    controls["cell"].value = 11
    controls["dim"].value = 2  # now there are only 6 cells
    assert controls["cell"].value == 5


def test_prefix_follows_the_running_mean():
    explorer = explore_prefix(X)
    explorer.controls["t"].value = 3
    assert "tokens 0…3 is (1.00, 1.00), 4 of 4" in str(explorer)
    assert explorer.view.value.count("<circle") == 4 + 3  # tokens, and the means before this one
    explorer.controls["t"].value = 0
    assert "token 0 is (1.00, 0), 1 of 4" in str(explorer)


def test_prefix_shows_the_star_around_the_token_that_it_meets():
    explorer = explore_prefix(X)
    explorer.controls["t"].value = 0  # the mean of token 0 is token 0
    star, token = (explorer.view.value.index(part) for part in ("fill-opacity", ">0</text></g>"))
    assert star < token, "the token lies over the star"
    assert "scale(1.4)" in explorer.view.value, "the star is wider than the token"


def test_weights_presets_are_those_of_the_notebook():
    explorer = explore_weights(X)
    preset = explorer.controls["preset"]
    causal = np.tri(4)
    for name, weights in {
        "causal": causal,
        "window": causal - np.tri(4, k=-3),
        "last token": np.eye(4),
        "decay": causal * 0.5 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4))),
    }.items():
        preset.value = name
        assert np.array_equal(explorer.controls["painter"].value, weights)
        out = (weights / weights.sum(1, keepdims=True)) @ X.numpy()
        last = str(explorer).splitlines()[-1].split()
        assert last[-2:] == [f"{value + 1e-9:.2f}" for value in out[-1]]
        assert "✓ Every row sums to 1" in explorer.view.value


def test_weights_are_painted_by_clicks_and_watched():
    explorer = explore_weights(X)
    painter, preset = explorer.controls["painter"], explorer.controls["preset"]
    button = painter.buttons[1, 2]
    button.click()
    assert (painter.value[1][2], button.description, preset.value) == (1.0, "1", "painted")
    assert "row 1 sees the future" in str(explorer)
    assert "⚠ row 1 sees the future" in explorer.view.value
    assert button.tooltip == "query 1, key 2: raw weight 1"
    bright = button.style.button_color
    button.click()
    assert (painter.value[1][2], button.style.button_color != bright) == (2.0, True)
    button.click()
    assert preset.value == "causal"  # painted back
    painter.buttons[0, 0].click()
    painter.buttons[0, 0].click()  # 1 -> 2 -> 0: row 0 is empty
    assert "row 0 sums to 0: nothing to average, and 0/0 is nan" in str(explorer)
    explorer.controls["normalise"].value = False
    assert "row 0 sums to 0: nothing to average, so the output is 0" in str(explorer)
    assert "rows 1, 2, 3 do not sum to 1" in str(explorer)


def test_a_painting_comes_back_after_a_preset():
    explorer = explore_weights(X)
    painter, preset = explorer.controls["painter"], explorer.controls["preset"]
    preset.value = "painted"  # nothing is, yet
    assert np.array_equal(painter.value, np.tri(4))
    painter.buttons[1, 2].click()
    painter.buttons[3, 0].click()
    mine = painter.value
    preset.value = "decay"
    assert painter.value != mine
    preset.value = "painted"
    assert (painter.value, preset.value) == (mine, "painted")
    preset.value = "window"
    painter.buttons[0, 1].click()  # a new painting, which begins with the window
    preset.value = "causal"
    preset.value = "painted"
    window = np.tri(4) - np.tri(4, k=-3)
    window[0, 1] = 1
    assert np.array_equal(painter.value, window)


def test_softmax_agrees_with_torch():
    explorer = explore_softmax()
    controls = explorer.controls
    scores = torch.tensor([0.5, -1.0, 2.0, 1.0, -3.0])
    for j, score in enumerate(scores.tolist()):
        controls[f"token {j}"].value = score
    controls["temperature"].value = 2.0
    weights = torch.softmax(scores / 2, -1)
    told = " ".join(f"{w:.2f}" for w in weights)
    bits = -(weights * weights.log2()).sum()
    assert f"weights {told}. Entropy {bits:.2f} bits of at most 2.32" in str(explorer)
    controls["mask"].value = True
    weights = torch.softmax(scores[:3] / 2, -1)
    told = " ".join([*(f"{w:.2f}" for w in weights), "0", "0"])
    assert f"weights {told}. Entropy" in str(explorer)
    assert explorer.view.value.count("(masked)") == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: explore_prefix(torch.zeros(4, 3)), r"\(T, 2\), got \(4, 3\)"),
        (lambda: explore_weights(torch.zeros(9, 2)), r"8 tokens.*\(9, 2\).*slice"),
        (lambda: explore_weights(torch.zeros(4, 8, 2)), r"2-D.*\(4, 8, 2\)"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
