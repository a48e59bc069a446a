import re
from xml.etree import ElementTree

import pytest

from helpers import explorers
from helpers.explorers import Explorer, explore_prefix
from helpers.explorers.explorer import STYLES, slider
from tests.explorers.examples import EXAMPLES


def elements(explorer):
    """All elements of the picture; tags that are not closed or texts that are not safe fail."""
    return list(ElementTree.fromstring(f"<div>{explorer.view.value}</div>").iter())


def test_every_explorer_has_an_example():
    assert {f"explore_{name}" for name in EXAMPLES} == set(explorers.__all__) - {"Explorer"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_shows_itself_and_says_its_state(name):
    explorer = EXAMPLES[name]()
    shown = explorer._repr_mimebundle_()
    assert shown["text/plain"] == str(explorer) == repr(explorer)
    assert str(explorer).startswith(f"Live: {explorer.about}\nControls: ")
    assert "\nNow: " in str(explorer)
    assert "application/vnd.jupyter.widget-view+json" in shown


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_control_changes_picture_and_words(name):
    explorer = EXAMPLES[name]()
    elements(explorer)
    for control, widget in explorer.controls.items():
        before = explorer.view.value, str(explorer)
        if control == "cells":
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
        elements(explorer)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_step_sends_no_looks_but_colours(name):
    """How fast it is, is measured by benchmarks/live.py; this is what has to travel."""
    explorer = EXAMPLES[name]()
    assert len(explorer.view.value) < 20_000
    looks = r"background:#[0-9a-f]{6};color:(black|white);|text-align:left;min-width:\d+px;|"
    for cell in elements(explorer):
        if cell.tag in ("td", "th", "tr"):
            assert re.fullmatch(looks, cell.get("style", ""))
        for one in cell.get("class", "").split():
            assert f".{one}" in STYLES


def test_the_style_sheet_stands_beside_the_picture():
    explorer = EXAMPLES["axis"]()
    styles, _ = explorer.box.children
    assert styles.value == STYLES
    assert explorer.view._dom_classes == ("attention-explorer",)


class Reciprocal(Explorer):
    about = "divide"

    def draw(self, t):
        return f"one over t is {1 / t}"

    describe = draw


def test_an_error_is_told_in_the_widget_and_goes_away():
    explorer = Reciprocal({"t": slider("t", 2, 0, 3)})
    explorer.controls["t"].value = 0
    assert 'role="alert"' in explorer.view.value
    assert "ZeroDivisionError: division by zero" in explorer.view.value
    assert "cannot be drawn" in str(explorer)
    explorer.controls["t"].value = 1
    assert explorer.view.value == "one over t is 1.0"


def test_values_are_taken_that_strict_mode_would_refuse(monkeypatch):
    monkeypatch.setenv("ATTENTION_STRICT", "1")
    explorer = explore_prefix([[0.1250004, 0.0]])
    assert "(0.13, 0)" in str(explorer)
    assert "alert" not in explorer.view.value
