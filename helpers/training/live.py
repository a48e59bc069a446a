"""What a run shows while it trains: a curve with buttons in a notebook, lines elsewhere."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from attention_base.terminal import print_anywhere
from helpers.pictures.colours import SKY
from helpers.pictures.table import text_html

SECONDS = 0.2  # between two drawings, so that they cost next to nothing
AVERAGED = 20  # losses in the number that is told: a single one depends on its windows
POINTS = 120  # of the curve, at most
LEFT, TOP, WIDTH, HEIGHT = 56, 8, 480, 150  # of the chart in its picture, in CSS pixels
UPRIGHT = f'text-anchor="middle" transform="rotate(-90 12 {TOP + HEIGHT / 2})"'
RULES = """<style>
.attention-training svg {font: 12px sans-serif; fill: currentColor; display: block}
.attention-training p {margin: 4px 0; line-height: 1.4}
</style>"""


@dataclass
class Run:
    """What is shown of a training."""

    n_step: int
    losses: list[float] = field(default_factory=list)

    @property
    def step(self) -> int:
        """How many steps are done."""
        return len(self.losses)


class Lines:
    """A run in a terminal: one line, written again and again; in a file, a line for each tenth."""

    def __init__(self, run: Run, stop: threading.Event) -> None:
        self.run, self.clock = run, Clock(run)
        self.rewritten = sys.stdout.isatty()
        print_anywhere()

    def step(self) -> None:
        """Tell what there is after a step."""
        n, every = self.run.n_step, max(1, self.run.n_step // 10)
        if self.rewritten and self.clock.strikes():
            print(f"\r{self._line():<79}", end="", flush=True)
        elif not self.rewritten and self.run.step % every == 0 and self.run.step < n:
            print(self._line(), flush=True)

    def end(self) -> None:
        """Tell what has come of it."""
        print("\r" + " " * 79 + "\r" if self.rewritten else "", end="")
        print(summary(self.run), flush=True)

    def _line(self) -> str:
        return f"{progress(self.run)} · {self.clock.left()}"


class LiveCurve:
    """A run in a notebook: a curve with two buttons, which set flags and do nothing else.

    JupyterLab and ipykernel can handle messages of widgets in a thread of their own, so that the
    button works in the middle of a cell. What stays at the end needs no kernel.
    """

    def __init__(self, run: Run, stop: threading.Event) -> None:
        import ipywidgets as widgets  # not where no notebook is
        from IPython.display import display

        self.run, self.clock, self.running = run, Clock(run), True
        self.button = widgets.Button(
            description="Stop", icon="stop", tooltip="Stop after this step; what was learned stays"
        )
        self.button.on_click(lambda _: stop.set())
        self.stop, self.paused = stop, False
        self.pause = widgets.Button(description="Pause", icon="pause")
        self.pause.on_click(self._pause_or_go_on)
        self.view = widgets.HTML()
        self.box = widgets.VBox([self.view, widgets.HBox([self.pause, self.button])])
        self._draw()
        # By default, ipykernel 7.4 hands the messages of a widget to the thread that has used it
        # last, which is the one that trains. Without its note of that, it asks JupyterLab.
        for button in (self.pause, self.button):
            vars(button.comm).pop("_reply_subshell_id", None)
        self.handle = display(self, display_id=True)

    def step(self) -> None:
        """Draw what there is after a step, if the last drawing is not quite new; wait if paused."""
        if self.paused:
            self._draw()
            since = time.monotonic()
            while self.paused and not self.stop.wait(0.05):
                pass
            self.clock.started += time.monotonic() - since
        elif self.clock.strikes():
            self._draw()

    def _pause_or_go_on(self, button: Any) -> None:
        self.paused = not self.paused
        button.description, button.icon = ("Go on", "play") if self.paused else ("Pause", "pause")

    def end(self) -> None:
        """Leave a picture without a button in the place of the live one."""
        self.running = False
        self.handle.update(self)
        for widget in (self.view, self.pause, self.button, *self.box.children[1:], self.box):
            widget.close()

    def _draw(self) -> None:
        left = "paused" if self.paused else self.clock.left()
        state = f"<p>{text_html(progress(self.run))} · {left}</p>"
        self.view.value = drawn(self.run, state)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        text = {"text/plain": summary(self.run, self.running)}
        if self.running:
            return self.box._repr_mimebundle_() | text
        if os.environ.get("ATTENTION_STORED") == "1":  # losses differ from machine to machine
            return text
        state = "".join(f"<p>{text_html(line)}</p>" for line in state_and_loss(self.run))
        return {"text/html": drawn(self.run, state)} | text


def shown(run: Run, stop: threading.Event) -> Lines | LiveCurve:
    """Begin to show a run: in a notebook as a picture, anywhere else as lines."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    return (LiveCurve if hasattr(shell, "kernel") else Lines)(run, stop)


@contextmanager
def interrupts(stop: threading.Event) -> Iterator[None]:
    """Let the first interrupt (■ in JupyterLab, Ctrl+C) set a flag; a second one raises as usual.

    So a step is done as a whole, or not at all.
    """
    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
        yield
        return

    def first(*_: Any) -> None:
        stop.set()
        signal.signal(signal.SIGINT, usual)

    usual = signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


class Clock:
    """When to draw again, and how long a run will still take."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.started = self.last = time.monotonic()

    def strikes(self) -> bool:
        """Whether the last time that this was true is long enough ago."""
        now = time.monotonic()
        if now - self.last < SECONDS:
            return False
        self.last = now
        return True

    def left(self) -> str:
        """The seconds that are left if all steps take as long as those so far, in words."""
        done = self.run.step
        if not done:
            return "starting"
        each = (time.monotonic() - self.started) / done
        return f"{math.ceil(each * (self.run.n_step - self.run.step))} s left"


# ---------------------------------------------------------------- the same state in words


def progress(run: Run) -> str:
    """Where a run is, in one line."""
    loss = f" · loss {mean_loss(run):.2f}" if run.losses else ""
    return f"step {run.step:,} of {run.n_step:,}{loss}"


def state_and_loss(run: Run, running: bool = False) -> list[str]:
    """How far a run has come, and its latest losses."""
    n, of = run.step, f"{run.step:,} of {run.n_step:,} steps"
    if running:
        state = f"Training: {of}."
    elif n == run.n_step:
        state = f"Trained for all {n:,} steps."
    else:
        state = f"Stopped after {of}. The model keeps what it has learned."
    if not n:
        return [state]
    last = min(n, AVERAGED)
    steps = f"{last} steps" if last > 1 else "step"
    told = [state, f"Mean loss of the last {steps}: {mean_loss(run):.2f}."]
    if mean_loss(run) > run.losses[0]:
        told.append("This is more than at the start: a smaller learning rate may help.")
    return told


def summary(run: Run, running: bool = False) -> str:
    """How far a run has come, and its latest losses, in words without times."""
    return "\n".join(state_and_loss(run, running))


def mean_loss(run: Run) -> float:
    """The mean of the last few losses."""
    last = run.losses[-AVERAGED:]
    return sum(last) / len(last)


# ---------------------------------------------------------------- the same state as a picture


def drawn(run: Run, state: str) -> str:
    """The state and the curve as HTML, to be read on light and on dark pages."""
    return f'{RULES}<div class="attention-training">{state}{curve(run)}</div>'


def curve(run: Run) -> str:
    """The losses as an SVG picture: the first one, then means of neighbouring steps."""
    each = math.ceil(run.n_step / POINTS)
    points = [(0.0, loss) for loss in run.losses[:1]]
    for start in range(0, run.step, each):
        some = run.losses[start : start + each]
        points.append((start + len(some) / 2, sum(some) / len(some)))
    ticks = round_numbers(max((loss for _, loss in points), default=5.0))
    bottom = TOP + HEIGHT

    def x(step: float) -> float:
        return LEFT + WIDTH * step / run.n_step

    def y(loss: float) -> float:
        return bottom - HEIGHT * loss / ticks[-1]

    parts = [
        f'<path d="M{LEFT},{y(tick):.1f}H{LEFT + WIDTH}" stroke="currentColor" opacity=".2"/>'
        f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        for tick in ticks
    ]
    for step in sorted({0, run.n_step // 2, run.n_step}):
        parts.append(
            f'<text x="{x(step):.1f}" y="{bottom + 16}" text-anchor="middle">{step:,}</text>'
        )
    line = " ".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss in points)
    parts.append(f'<polyline points="{line}" fill="none" stroke="{SKY}" stroke-width="2"/>')
    parts.append(f'<text x="{LEFT + WIDTH / 2}" y="{bottom + 32}" text-anchor="middle">step</text>')
    parts.append(f'<text x="12" y="{TOP + HEIGHT / 2}" {UPRIGHT}>loss</text>')
    width, height = LEFT + WIDTH + 30, bottom + 38
    label = "Loss by step"
    if points:
        label += f": {points[0][1]:.2f} at first, {points[-1][1]:.2f} at step {run.step:,}"
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{label}">{"".join(parts)}</svg>'
    )


def round_numbers(highest: float) -> list[float]:
    """Ticks for an axis from 0: up to seven numbers, the last one not below `highest`."""
    unit = 10.0 ** math.floor(math.log10(max(highest, 1e-6)))
    step = next(s * unit for s in (0.2, 0.5, 1, 2) if highest <= 6 * s * unit)
    return [i * step for i in range(math.ceil(highest / step - 1e-9) + 1)]
