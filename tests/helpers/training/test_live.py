"""What a training shows: curve and button in a notebook, lines in a terminal, stored words."""

import io
import re
import sys
import threading
from xml.etree import ElementTree

import IPython.display
import nbformat
import pytest
from nbformat import v4

from helpers.training import live
from helpers.training.live import LiveCurve, Run, round_numbers
from tests.explorers.reading import floats, words
from tests.helpers.training.small import trained, windows
from tools import notebooks
from tools.refresh import execute, normalise


def out(capsys):
    return capsys.readouterr().out


# ---------------------------------------------------------------- outside of a notebook


def test_in_a_file_there_is_a_line_for_each_tenth(capsys):
    trained(50)
    *lines, end, loss = out(capsys).splitlines()
    assert len(lines) == 9
    for line, step in zip(lines, range(5, 50, 5), strict=True):
        assert re.fullmatch(rf"step {step} of 50 · loss \d\.\d\d · \d+ s left", line)
    assert end == "Trained for all 50 steps."
    assert re.fullmatch(r"Mean loss of the last 20 steps: \d\.\d\d\.", loss)


def test_a_loss_that_has_grown_is_remarked():
    assert len(live.state_and_loss(Run(6, [4.0, 3.0]))) == 2
    told = live.state_and_loss(Run(6, [1.0, 50.0, 50.0]))
    assert told[-1] == "This is more than at the start: a smaller learning rate may help."


class Terminal(io.StringIO):
    """A terminal, which shows the last thing that was written at each place of a line."""

    def isatty(self):
        return True

    def lines(self):
        """What is read at the end."""
        shown = []
        for line in self.getvalue().split("\n"):
            letters = []
            for part in line.split("\r"):
                letters[: len(part)] = part
            shown.append("".join(letters).rstrip())
        return shown


def test_in_a_terminal_one_line_is_written_again_and_again(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(live, "SECONDS", 0)
    trained(12)
    told = re.findall(r"\rstep (\d+) of 12 · loss \d\.\d\d · \d+ s left", sys.stdout.getvalue())
    assert told == [str(step) for step in range(1, 13)]
    first, second, end = sys.stdout.lines()
    assert first == "Trained for all 12 steps." and end == ""
    assert second.startswith("Mean loss of the last 12 steps: ")


def test_it_is_drawn_only_now_and_then(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    now = iter(range(10_000))
    monkeypatch.setattr(live.time, "monotonic", lambda: next(now) / 20)  # 0.05 s for each look
    trained(100)
    assert 10 <= sys.stdout.getvalue().count(" s left") <= 40


def test_letters_that_a_terminal_lacks_are_replaced(monkeypatch):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stdout)
    trained(10)
    stdout.flush()
    assert b"step 1 of 10 * loss " in stdout.buffer.getvalue()


# ---------------------------------------------------------------- in a notebook


class Shown(list):
    """What a notebook shows in the place of one output, from first to last."""

    def display(self, thing, display_id):
        assert display_id and not self
        self.update(thing)
        return self

    def update(self, thing):
        self.append(thing._repr_mimebundle_())


@pytest.fixture
def shown(monkeypatch):
    outputs = Shown()
    monkeypatch.setattr(IPython.display, "display", outputs.display)
    monkeypatch.setattr(live, "shown", LiveCurve)
    monkeypatch.setattr("helpers.training.loop.shown", LiveCurve)
    monkeypatch.setattr(live, "SECONDS", 0)
    monkeypatch.delenv("ATTENTION_STORED", raising=False)
    return outputs


def parts(html):
    """The text of each paragraph, and the SVG; open tags fail."""
    tree = ElementTree.fromstring(f"<div>{html}</div>")
    return [words(p) for p in tree.iter("p")], tree.find(".//svg")


def test_at_the_end_the_curve_stays(shown):
    _, losses = trained(240)
    first, last = shown
    assert "application/vnd.jupyter.widget-view+json" in first
    assert first["text/plain"] == "Training: 0 of 240 steps."
    assert set(last) == {"text/plain", "text/html"}
    told, svg = parts(last["text/html"])
    mean = sum(losses[-20:]) / 20
    expected = ["Trained for all 240 steps.", f"Mean loss of the last 20 steps: {mean:.2f}."]
    assert told == expected and last["text/plain"].splitlines() == told
    means = [sum(losses[i : i + 2]) / 2 for i in range(0, 240, 2)]
    points = [(0, losses[0]), *zip(range(1, 240, 2), means, strict=True)]
    assert read(svg) == [pytest.approx(point, abs=0.03) for point in points]
    label = f"Loss by step: {losses[0]:.2f} at first, {means[-1]:.2f} at step 240"
    assert svg.get("aria-label") == label and svg.get("role") == "img"


def read(svg):
    """The points of the curve in the units of its axes, by the numbers beside them."""
    texts = [(float(e.get("x")), float(e.get("y")), e.text) for e in svg.iter("text")]
    across = [(x, float(t.replace(",", ""))) for x, y, t in texts if t[0].isdigit() and x >= 56]
    up = [(y - 4, float(t)) for x, y, t in texts if t[0].isdigit() and x < 56]
    (x0, n0), (x1, n1) = across[0], across[-1]
    (y0, v0), (y1, v1) = up[0], up[-1]
    numbers = floats(svg.find("polyline").get("points"))
    assert all(x0 <= x <= x1 for x in numbers[::2])
    assert all(min(y0, y1) <= y <= max(y0, y1) for y in numbers[1::2])
    return [
        (n0 + (x - x0) / (x1 - x0) * (n1 - n0), v0 + (y - y0) / (y1 - y0) * (v1 - v0))
        for x, y in zip(numbers[::2], numbers[1::2], strict=True)
    ]


def test_the_button_stops_after_the_step_and_what_was_learned_stays(shown, monkeypatch):
    views, plain = [], windows()

    def noted(run, stop):
        views.append(LiveCurve(run, stop))
        return views[-1]

    def draw():
        if views[0].run.step == 5:
            views[0].button.click()
        return plain()

    monkeypatch.setattr("helpers.training.loop.shown", noted)
    model, losses = trained(draw=draw)
    assert len(losses) == 6 and not model._forward_hooks
    said = "Stopped after 6 of 24 steps. The model keeps what it has learned."
    assert shown[-1]["text/plain"].startswith(said) and said in shown[-1]["text/html"]
    assert not any(widget.comm for widget in (views[0].box, views[0].view, views[0].button))


@pytest.mark.parametrize("then", ["Go on", "Stop"])
def test_a_pause_lasts_until_one_goes_on_or_stops(shown, then):
    view = LiveCurve(Run(24), stop := threading.Event())
    view.run.losses += [3.0] * 6
    view.pause.click()
    training = threading.Thread(target=view.step, daemon=True)
    training.start()
    training.join(0.3)
    assert training.is_alive() and view.pause.description == "Go on"
    assert "step 6 of 24 · loss 3.00 · paused" in view.view.value
    (view.pause if then == "Go on" else view.button).click()
    training.join(5)
    assert not training.is_alive() and stop.is_set() == (then == "Stop")
    assert view.pause.description == ("Pause" if then == "Go on" else "Go on")


def test_while_it_runs_it_says_how_far_it_is(shown):
    view = LiveCurve(Run(1200), threading.Event())
    view.run.losses += [3.0] * 1100
    view.step()
    told, svg = parts(view.view.value)
    assert re.fullmatch(r"step 1,100 of 1,200 · loss 3\.00 · \d+ s left", told[0])
    assert len(read(svg)) == 111 and read(svg)[-1] == pytest.approx((1095, 3.0), abs=2)


@pytest.mark.parametrize("highest", [1e-9, 0.031, 1, 1.01, 2.2, 4.8, 5, 6, 6.1, 99, 2543.6, 3e38])
def test_ticks_are_a_few_round_numbers(highest):
    ticks = round_numbers(highest)
    assert ticks[0] == 0 and ticks[-1] >= highest * (1 - 1e-9) and 2 <= len(ticks) <= 8
    assert ticks[-2] < max(highest, 1e-6)
    assert f"{ticks[1]:.6e}"[:8] in ("1.000000", "2.000000", "5.000000")
    assert ticks == pytest.approx([i * ticks[1] for i in range(len(ticks))])


RUN = """from tests.helpers.training.small import trained
_, losses = trained(16)"""


@pytest.mark.slow  # a kernel; notebook 10 has such a cell, too
def test_a_stored_notebook_has_the_words_alone(tmp_path, monkeypatch):
    """In a real kernel, as under make refresh."""
    monkeypatch.setenv("PYTHONPATH", str(notebooks.ROOT))
    monkeypatch.setenv("ATTENTION_STORED", "1")
    cells = [v4.new_code_cell(RUN), v4.new_code_cell("print(len(losses))")]
    done = normalise(execute(v4.new_notebook(cells=cells), tmp_path), "10")
    (output,) = done.cells[0].outputs
    assert set(output.data) == {"text/plain"}
    state, loss = output.data["text/plain"].splitlines()
    assert state == "Trained for all 16 steps." and loss.startswith("Mean loss of the last 16")
    assert done.cells[1].outputs[0].text == "16\n"
    nbformat.validate(done)
