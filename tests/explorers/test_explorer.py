"""The tests that all explorers share. The file of each explorer holds what they need.

`model` computes without the explorer's code all that a reader has to see. `CONTROLS`: words beside
it, first value, how far it goes. `CASES`: arguments, and settings (values of the controls, then the
places of clicked buttons). `REFUSED`: arguments, and words of the ValueError.
"""

import itertools
import re
from importlib import import_module

import ipywidgets as widgets
import pytest

import explorers
from explorers import Explorer, explore_prefix, explore_scaling
from explorers.explorer import STYLES, slider
from tests.explorers import reading
from tests.explorers.reading import controls, drawing, move, now, shown
from tests.told import Told

NAMES = [name.removeprefix("explore_") for name in explorers.__all__ if name != "Explorer"]
MODELS = {name: import_module(f"tests.explorers.test_{name}") for name in NAMES}
EVERY = pytest.mark.parametrize("name", NAMES)
MANY = ("depth", "heads", "moments", "painter", "rotary", "ward")  # settings, for seconds
QUICK = [pytest.param(name, marks=[pytest.mark.slow] * (name in MANY)) for name in NAMES]


def explore(name, inputs=None):
    """Make an explorer; without inputs, with those of its first case."""
    inputs = MODELS[name].CASES[0][0] if inputs is None else inputs
    return getattr(explorers, f"explore_{name}")(**inputs)


@pytest.mark.parametrize("name", QUICK)
def test_in_every_setting_the_page_is_what_the_model_says(name):
    of = MODELS[name]
    for inputs, settings in of.CASES:
        explorer = explore(name, inputs)
        for setting in settings:
            values, clicks = setting[: len(of.CONTROLS)], setting[len(of.CONTROLS) :]
            move(explorer, dict(zip(of.CONTROLS, values, strict=True)), *clicks)
            assert clicks or values == tuple(c.value for c in controls(explorer).values())
            seen, wanted = reading.page(explorer), of.model(*inputs.values(), *setting)
            for part, wanted_part in itertools.zip_longest(seen, wanted):
                assert part == wanted_part, (inputs, setting)


@EVERY
@pytest.mark.parametrize("third", range(4))
def test_a_setting_is_drawn_as_it_is_stored(name, third, snapshot):
    """The first and the last of all settings, and two in between."""
    every = [(inputs, setting) for inputs, settings in MODELS[name].CASES for setting in settings]
    inputs, setting = every[third * (len(every) - 1) // 3]
    explorer, names = explore(name, inputs), MODELS[name].CONTROLS
    move(explorer, dict(zip(names, setting, strict=False)), *setting[len(names) :])
    assert explorer.view.value.replace("><", ">\n<") == snapshot.use_extension(Told)


@EVERY
def test_its_widgets_have_the_looks_and_limits_that_are_stored(name, snapshot):
    lines = []
    for widget in shown(explore(name).box):
        parts = [widget, widget.layout, getattr(widget, "style", None)]
        looks = [part.get_state(drop_defaults=True) for part in parts if part]
        told = [f"{key}={value}" for one in looks for key, value in one.items() if key[0] != "_"]
        told = [one for one in told if "IPY_MODEL" not in one and len(one) < 200]
        lines.append(f"{type(widget).__name__}: {', '.join(told)}")
    assert "\n".join(lines) == snapshot.use_extension(Told)


@EVERY
def test_every_control_is_tried_to_both_ends_and_changes_picture_and_words(name):
    for i, (text, (_, reach)) in enumerate(MODELS[name].CONTROLS.items()):
        explorer, seen = explore(name), []
        tried = list(dict.fromkeys(setting[i] for setting in MODELS[name].CASES[0][1]))
        control = controls(explorer)[text]
        ends = reach[:2] if isinstance(control, reading.SLIDERS) else reach
        if isinstance(control, widgets.Checkbox):
            ends = False, True
        assert {*tried} >= {*ends} and len(tried) > 1, text
        for value in tried[-4:]:
            move(explorer, {text: value})
            seen.append((reading.words(drawing(explorer)), now(explorer)))
        pictures, texts = zip(*seen, strict=True)
        assert len({*pictures}) == len({*texts}) == len(seen), (text, tried[-4:])


@EVERY
def test_all_controls_and_the_drawing_are_on_the_screen(name):
    explorer, expected = explore(name), MODELS[name].CONTROLS
    assert list(controls(explorer)) == list(expected)
    for text, control in controls(explorer).items():
        reach = tuple(getattr(control, "options", ()))
        if isinstance(control, reading.SLIDERS):
            reach = control.min, control.max, control.step
            assert control.readout and control.continuous_update and control.tabbable is not False
        assert (control.value, reach) == expected[text]
        if reach:
            assert control.style.description_width == "initial", "the name would be cut off"
            assert int(control.layout.width.removesuffix("px")) >= 200, "too short to be set"
    assert [w for w in explorer.controls.values() if w not in shown(explorer.box)] == []
    assert shown(explorer.box).count(explorer.view) == 1


@EVERY
def test_it_shows_itself_and_says_its_state(name):
    explorer = explore(name)
    bundle = explorer._repr_mimebundle_()
    assert bundle["text/plain"] == str(explorer) == repr(explorer)
    names = ", ".join(explorer.controls)
    assert str(explorer).startswith(f"Live: {explorer.about}\nControls: {names}.\nNow: ")
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == explorer.box.model_id


@EVERY
def test_a_step_sends_no_looks_but_colours(name):
    """How fast it is, is measured by benchmarks/live.py; this is what has to travel."""
    explorer = explore(name)
    assert len(explorer.view.value) < 25_000
    colours = r"background:light-dark\(#\w{6},#\w{6}\);color:light-dark\(\w+,#\w{6}\);"
    looks = rf"{colours}|text-align:left;min-width:\d+px;|"
    for cell in drawing(explorer).iter():
        if cell.tag in ("td", "th", "tr"):
            assert re.fullmatch(looks, cell.get("style", ""))
        for one in cell.get("class", "").split():
            assert f".{one}" in STYLES


@EVERY
def test_what_cannot_be_shown_is_refused(name):
    for inputs, message in getattr(MODELS[name], "REFUSED", []):
        with pytest.raises(ValueError, match=message):
            explore(name, inputs)


def test_the_style_sheet_stands_beside_the_picture_and_its_script_finds_the_box():
    """What the script does in a browser, tests/browser looks at."""
    explorer = explore_scaling()
    styles, _ = explorer.box.children
    assert (styles.value, styles.layout.display) == (STYLES, "none")
    assert explorer.view._dom_classes == ("attention-explorer",)
    assert re.search(r"this\.closest\('\.(\S+)'\)", STYLES)[1] in explorer.box._dom_classes
    assert re.search('<style onload="[^"]*">', STYLES), "a quote would end the attribute"


def test_an_error_is_told_in_the_widget_and_goes_away():
    class Reciprocal(Explorer):
        about = "divide"

        def draw(self, t):
            return f"one over t is {1 / t}"

        describe = draw

    explorer = Reciprocal({"t": slider("t", 2, 0, 3)})
    explorer.controls["t"].value = 0
    assert 'role="alert"' in explorer.view.value
    assert "ZeroDivisionError: division by zero" in explorer.view.value
    assert "cannot be drawn" in str(explorer)
    explorer.controls["t"].value = 1
    assert explorer.view.value == "one over t is 1.0"


def test_sliders_of_whole_numbers_and_of_others_write_what_they_hold():
    assert isinstance(slider("t", 2, 0, 3), widgets.IntSlider)
    other = slider("t", 2, 0, 3, 0.1)
    assert isinstance(other, widgets.FloatSlider) and other.readout_format == ".1f"


def test_values_are_taken_that_strict_mode_would_refuse(monkeypatch):
    monkeypatch.setenv("ATTENTION_STRICT", "1")
    explorer = explore_prefix([[0.1250004, 0.0]])
    assert "(0.13, 0)" in str(explorer)
    assert "alert" not in explorer.view.value
