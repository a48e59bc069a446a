import re

import ipywidgets as widgets
import pytest

from helpers import explorers
from helpers.explorers import Explorer, explore_prefix
from helpers.explorers.explorer import STYLES, slider
from tests.explorers.examples import EXAMPLES
from tests.explorers.reading import (
    CHOICES,
    SLIDERS,
    buttons,
    controls,
    drawing,
    move,
    now,
    shown,
    words,
)

# What a reader finds beside each explorer: where it begins, and how far it goes.
SCORE = (-4, 4, 0.1)
CONTROLS = {
    "axis": {
        "dim": (0, (-3, 2, 1)),
        "keepdim": (False, ()),
        "number of the result": (9, (0, 11, 1)),
    },
    "prefix": {"t": (3, (0, 3, 1))},
    "weights": {
        "preset": ("causal", ("causal", "window", "itself", "decay", "by hand")),
        "normalise: divide every row by its sum": (True, ()),
    },
    "softmax": {
        "temperature": (0.1, (0.1, 5, 0.1)),
        "mask: tokens 3 and 4 are the future": (False, ()),
        **{f"token {j}": (score, SCORE) for j, score in enumerate((1.0, 0.8, 1.2, 0.9, 1.5))},
    },
    "query": {
        "turned by °": (180, (-180, 180, 1)),
        "length ×": (1.0, (0, 4, 0.1)),
        "mix x: average the tokens, not the values": (False, ()),
    },
    "scaling": {
        "d": (256, tuple(2**power for power in range(11))),
        "divisor (T = 8, C = 32)": ("none", ("none", "√T", "√C", "√d", "d")),
    },
    "heads": {
        "row of the query": (7, (0, 7, 1)),
        "skip the transpose (split by view alone)": (False, ()),
    },
    "depth": {
        "depth, in blocks": (24, (1, 24, 1)),
        "way to stack": ("residual", ("plain", "residual", "+ norm", "+ zero-init projection")),
        "initialisation": ("unit gain", ("default", "unit gain")),
    },
}


def reach(widget):
    if isinstance(widget, SLIDERS):
        return widget.min, widget.max, widget.step
    return tuple(widget.options) if isinstance(widget, CHOICES) else ()


def other_settings(first, reach):
    """Three settings of a control that differ from the first; fewer where it has fewer."""
    if not reach:
        return [not first]
    if isinstance(reach[0], str) or len(reach) > 3:
        return [option for option in reach if option not in (first, "by hand")][:3]
    low, high, step = reach
    middle = low + (high - low) // (2 * step) * step
    wanted = dict.fromkeys((low + step, middle, high - step, high, low))
    return [value for value in wanted if value != first][:3]


def test_every_explorer_has_an_example():
    assert {f"explore_{name}" for name in EXAMPLES} == set(explorers.__all__) - {"Explorer"}
    assert EXAMPLES.keys() == CONTROLS.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_all_controls_and_the_drawing_are_on_the_screen(name):
    explorer = EXAMPLES[name]()
    found = {text: (w.value, reach(w)) for text, w in controls(explorer).items()}
    assert found == CONTROLS[name]
    visible = shown(explorer)
    assert [w for w in explorer.controls.values() if w not in visible] == [], "made, not shown"
    assert visible.count(explorer.view) == 1
    assert len(buttons(explorer)) == (16 if name == "weights" else 0)
    for widget in visible:
        if isinstance(widget, (*SLIDERS, *CHOICES)):
            assert widget.style.description_width == "initial", "the name would be cut off"
            assert int(widget.layout.width.removesuffix("px")) >= 200, "too short to be set"
        if isinstance(widget, SLIDERS):
            assert widget.readout and widget.continuous_update and widget.tabbable is not False


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_shows_itself_and_says_its_state(name):
    explorer = EXAMPLES[name]()
    bundle = explorer._repr_mimebundle_()
    assert bundle["text/plain"] == str(explorer) == repr(explorer)
    assert str(explorer).startswith(f"Live: {explorer.about}\nControls: ")
    assert "\nNow: " in str(explorer)
    view = bundle["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] == explorer.box.model_id


@pytest.mark.parametrize(
    ("name", "control"), [(name, control) for name in EXAMPLES for control in CONTROLS[name]]
)
def test_every_control_changes_picture_and_words(name, control):
    explorer = EXAMPLES[name]()
    settings = other_settings(*CONTROLS[name][control])
    if name == "weights" and control != "preset":
        move(explorer, {"preset": "decay"})  # whose rows do not sum to 1
    if name == "heads":
        move(explorer, {"row of the query": 5})
    seen = [(words(drawing(explorer)), now(explorer))]
    for setting in settings:
        move(explorer, {control: setting})
        assert controls(explorer)[control].value == setting
        seen.append((words(drawing(explorer)), now(explorer)))
    pictures, texts = zip(*seen, strict=True)
    assert len({*pictures}) == len({*texts}) == len(seen), settings


def test_every_button_changes_picture_and_words():
    explorer = EXAMPLES["weights"]()
    move(explorer, {"normalise: divide every row by its sum": False})
    for place in [tooltip.split(":")[0] for tooltip in buttons(explorer)]:
        before = explorer.view.value, now(explorer)
        next(b for tip, b in buttons(explorer).items() if tip.startswith(place)).click()
        assert (explorer.view.value != before[0], now(explorer) != before[1]) == (True, True), place


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_step_sends_no_looks_but_colours(name):
    """How fast it is, is measured by benchmarks/live.py; this is what has to travel."""
    explorer = EXAMPLES[name]()
    assert len(explorer.view.value) < 20_000
    looks = r"background:#[0-9a-f]{6};color:(black|white);|text-align:left;min-width:\d+px;|"
    for cell in drawing(explorer).iter():
        if cell.tag in ("td", "th", "tr"):
            assert re.fullmatch(looks, cell.get("style", ""))
        for one in cell.get("class", "").split():
            assert f".{one}" in STYLES


def test_the_style_sheet_stands_beside_the_picture():
    explorer = EXAMPLES["axis"]()
    styles, _ = explorer.box.children
    assert (styles.value, styles.layout.display) == (STYLES, "none")
    assert explorer.view._dom_classes == ("attention-explorer",)


def test_the_page_gives_names_to_the_sliders_of_the_box_that_holds_the_script():
    """What the script does in a browser, tests/browser looks at."""
    explorer = EXAMPLES["axis"]()
    box = re.search(r"this\.closest\('\.(\S+)'\)", STYLES)[1]
    assert box in explorer.box._dom_classes
    assert re.search('<style onload="[^"]*">', STYLES), "a quote would end the attribute"


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


def test_sliders_of_whole_numbers_and_of_others_write_what_they_hold():
    assert isinstance(slider("t", 2, 0, 3), widgets.IntSlider)
    other = slider("t", 2, 0, 3, 0.1)
    assert isinstance(other, widgets.FloatSlider) and other.readout_format == ".1f"


def test_values_are_taken_that_strict_mode_would_refuse(monkeypatch):
    monkeypatch.setenv("ATTENTION_STRICT", "1")
    explorer = explore_prefix([[0.1250004, 0.0]])
    assert "(0.13, 0)" in str(explorer)
    assert "alert" not in explorer.view.value
