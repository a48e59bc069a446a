import itertools
import re

import pytest

from helpers.explorers import explore_depth
from helpers.numbers import number
from helpers.stack import INITS, WAYS, signal_by_depth


def choose(explorer, way, init, depth):
    for name, value in {"way": way, "initialisation": init, "depth": depth}.items():
        explorer.controls[name].value = value


@pytest.mark.parametrize(
    ("way", "init", "depth", "told"),
    [
        ("plain", "default", 1, "⚠ The signal fades, the gradient fades."),
        ("plain", "unit gain", 6, "⚠ The gradient fades, all tokens point nearly the same way."),
        ("residual", "unit gain", 6, "⚠ The signal explodes, the gradient explodes."),
        ("+ norm", "unit gain", 24, "✓ Signal and gradient stay within a factor of 10"),
    ],
)
def test_it_names_what_is_wrong_with_a_stack(way, init, depth, told):
    explorer = explore_depth()
    choose(explorer, way, init, depth)
    assert told in str(explorer)
    assert told in explorer.view.value


def test_it_shows_the_measured_stack():
    explorer = explore_depth()
    for way, init, depth in itertools.product(WAYS, INITS, (1, 24)):
        choose(explorer, way, init, depth)
        stack = signal_by_depth(way, depth, init=init)
        signal, gradient, similarity = re.search(
            r"signal (\S+), gradient (\S+), similarity (\S+)\. ", str(explorer)
        ).groups()
        assert float(signal) == pytest.approx(stack.signal, rel=0.06)
        assert float(gradient) == pytest.approx(stack.gradient, rel=0.06)
        assert similarity == number(stack.similarity)
        assert ("explodes" in str(explorer)) == (stack.signal > 1000)
        assert explorer.view.value.count("<circle") == 3


def test_a_move_of_the_slider_only_looks_numbers_up(monkeypatch):
    explorer = explore_depth()
    monkeypatch.setattr("helpers.explorers.depth.signal_by_depth", None)
    choose(explorer, "residual", "default", 17)
    assert "alert" not in explorer.view.value
