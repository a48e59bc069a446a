import itertools
import math

from attention_base.numbers import brief, number
from explorers import explore_depth
from helpers.pictures.colours import GLOW, SKY
from helpers.stack import INITS, WAYS, signal_by_depth
from tests.explorers.reading import Chart, drawing, move

DEPTHS = list(range(1, 25))
BESIDE = {  # the numbers left of a chart
    ("signal", "default"): "0.1 1",
    ("signal", "unit gain"): "0.0001 0.01 1 100 10000",
    ("gradient", "default"): "10⁻²⁴ 10⁻¹⁸ 10⁻¹² 10⁻⁶ 1",
    ("gradient", "unit gain"): "0.0001 0.01 1 100 10000",
}


def line(quantity, way, init):
    """How high a line is at each depth; signal and gradient are told in powers of ten."""
    scale = float if quantity == "similarity" else math.log10
    return [scale(getattr(signal_by_depth(way, d, init=init), quantity)) for d in DEPTHS]


def model(depth, way, init):
    stack = signal_by_depth(way, depth, init=init)
    charts, told = [], []
    for quantity, write in ("signal", brief), ("gradient", brief), ("similarity", number):
        text = write(getattr(stack, quantity))
        told.append(f"{quantity} {text}")
        ticks = f"{BESIDE.get((quantity, init), '0 0.5 1')} 1 6 12 18 24".split()
        chosen = line(quantity, way, init)
        lines = [("currentColor", None, DEPTHS, line(quantity, other, init)) for other in WAYS]
        lines.append((SKY, "3", DEPTHS, chosen))
        marks = [(GLOW, ".5", depth, None), (GLOW, None, depth, chosen[depth - 1])]
        marks.append(("depth", None, (1 + 24) / 2, None))
        label = f"{quantity} at depth {depth}: {text}"
        charts.append(Chart(label, [f"{quantity}: {text}", *ticks, "depth"], marks, lines))
    key = "The thick line is the way that you chose, the thin lines are the other three."
    state = f"{way}, {init} initialisation, depth {depth}: {', '.join(told)}"
    return [f"{state}. {problems(stack)}", *charts, key, problems(stack)]


def problems(stack):
    found = []
    for name, value in ("signal", stack.signal), ("gradient", stack.gradient):
        if value < 0.1 or value > 10:
            found.append(f"the {name} {'fades' if value < 1 else 'explodes'}")
    if stack.similarity > 0.9:
        found.append("all tokens point nearly the same way")
    if not found:
        return "✓ Signal and gradient stay within a factor of 10, and tokens stay apart."
    return f"⚠ {', '.join(found).capitalize()}."


CONTROLS = {
    "depth, in blocks": (24, (1, 24, 1)),
    "way to stack": ("residual", ("plain", "residual", "+ norm", "+ zero-init projection")),
    "initialisation": ("unit gain", ("default", "unit gain")),
}
CASES = [({}, list(itertools.product(DEPTHS, WAYS, INITS)))]


def test_a_move_of_the_slider_only_looks_numbers_up(monkeypatch):
    explorer = explore_depth()
    monkeypatch.setattr("explorers.depth.signal_by_depth", None)
    move(explorer, {"way to stack": "plain", "depth, in blocks": 17})
    drawing(explorer)
