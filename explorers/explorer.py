"""What all explorers share: controls, a picture that follows them, and the same state in words.

An `Explorer` watches its controls and writes HTML into one widget. Drawing takes about a
millisecond, so the picture moves with the slider. The style sheet stands beside the picture and
never changes: what travels at each step are numbers and class names.

Tests drive an explorer as a hand would: ``explorer.controls["t"].value = 3``, then read
``explorer.view.value`` or ``str(explorer)``. Where widgets cannot be shown (a page on the web, a
saved notebook) the words stand for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets
import numpy as np

from attention_base.numbers import any_rounding, number
from helpers.pictures.colours import fills, paint
from helpers.pictures.table import RULES as TABLE_RULES
from helpers.pictures.table import Cell, text_html

CLASS = "attention-explorer"
# What a keyboard and a screen reader need, and no trait of ipywidgets gives. The page does it again
# at every step. A slider's handle has no name, and as its value it tells 0.7999999999999998, or the
# place of an option in its list: both are copied from what stands beside the slider. In a list,
# JupyterLab takes the arrow keys for its own, which select cells, not options.
ON_LOAD = f"""
const box = this.closest('.{CLASS}-box');
const mend = () => {{
  for (const slider of box.querySelectorAll('.widget-slider')) {{
    const [label, handle, readout] = ['.widget-label', '.noUi-handle', '.widget-readout']
      .map(part => slider.querySelector(part));
    handle?.setAttribute('aria-label', label.textContent);
    handle?.setAttribute('aria-valuetext', readout.textContent);
  }}
  for (const list of box.querySelectorAll('select')) list.dataset.lmSuppressShortcuts = 'true';
}};
new MutationObserver(mend).observe(box, {{childList: true, subtree: true}});
mend();
"""
RULES = f"""{TABLE_RULES}
[data-jp-theme-light="false"] .{CLASS} {{color-scheme: dark}}
.{CLASS} p {{margin: 4px 0; line-height: 1.4}}
.{CLASS} svg {{font: 12px sans-serif; fill: currentColor; display: block}}
.{CLASS}.tall-rows td {{height: 20px}}
.{CLASS} .error {{border-left: 4px solid #d6006c; padding: 6px 10px}}
"""
STYLES = f'<style onload="{ON_LOAD}">{RULES}</style>'


class Explorer:
    """Controls, a picture that follows them, and a text that says what it shows.

    A subclass names itself in `about`, hands its controls to ``super().__init__`` when it is ready
    to draw, and has the methods `draw` and `describe`. Both get the values of all controls by
    name, with _ for a space.

    Parameters
    ----------
    controls : dict of name -> widget
        Whatever has a `value`.

    Attributes
    ----------
    about : str
        What can be explored, in one line.
    view : widgets.HTML
        The picture.
    box : widgets.Widget
        All of it.
    """

    about: str

    def __init__(self, controls: dict[str, widgets.Widget]) -> None:
        self.controls = controls
        self.view = widgets.HTML()
        self.view.add_class(CLASS)
        styles = widgets.HTML(STYLES, layout={"display": "none"})
        self.box = widgets.VBox([styles, self.arrange()])
        self.box.add_class(f"{CLASS}-box")
        for control in controls.values():
            control.observe(self._redraw, names="value")
        self._redraw()

    def draw(self, **values: Any) -> str:
        """Draw the picture as HTML."""
        raise NotImplementedError

    def describe(self, **values: Any) -> str:
        """Say in words and numbers what the picture shows."""
        raise NotImplementedError

    def arrange(self) -> widgets.Widget:
        """Put `controls` and `view` in their places: the controls in a row above the view."""
        return widgets.VBox([in_a_row(*self.controls.values()), self.view])

    def _values(self) -> dict[str, Any]:
        return {name.replace(" ", "_"): widget.value for name, widget in self.controls.items()}

    def _redraw(self, change: Any = None) -> None:
        try:
            with any_rounding():
                self.view.value = self.draw(**self._values())
        except Exception as error:  # a callback's traceback would vanish: say it where the eyes are
            self.view.value = (
                '<div role="alert" class="error"><b>This setting cannot be drawn.</b> '
                f"{text_html(_in_words(error))}. Move a control back to go on.</div>"
            )

    def __str__(self) -> str:
        try:
            with any_rounding():
                now = self.describe(**self._values())
        except Exception as error:
            now = f"this setting cannot be drawn, {_in_words(error)}"
        return f"Live: {self.about}\nControls: {', '.join(self.controls)}.\nNow: {now}"

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self.box._repr_mimebundle_() | {"text/plain": str(self)}


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(".: ")


def slider(name: str, value: float, low: float, high: float, step: float = 1) -> widgets.Widget:
    """Make a slider with its name in front; of whole numbers if `step` is whole."""
    kind = widgets.IntSlider if isinstance(step, int) else widgets.FloatSlider
    more = {} if kind is widgets.IntSlider else {"readout_format": ".1f"}
    return kind(
        value=value, min=low, max=high, step=step, description=name,
        style={"description_width": "initial"}, layout={"width": "300px"}, **more,
    )  # fmt: skip


def checkbox(name: str, value: bool = False) -> widgets.Checkbox:
    """Make a box to tick, with its name behind it."""
    return widgets.Checkbox(value=value, description=name, indent=False, layout={"width": "auto"})


def dropdown(name: str, options: Sequence[str], value: str) -> widgets.Dropdown:
    """Make a list to choose from, with its name in front."""
    return widgets.Dropdown(
        options=list(options), value=value, description=name,
        style={"description_width": "initial"},
        layout={"width": "240px", "margin": "2px 12px 2px 2px"},
    )  # fmt: skip


def in_a_row(*parts: widgets.Widget) -> widgets.HBox:
    """Put widgets next to each other, and below where there is no room."""
    return widgets.HBox(parts, layout={"flex_flow": "row wrap", "align_items": "center"})


def sentences(*texts: str) -> str:
    """Write sentences as HTML, one a line; empty ones are left out."""
    return "".join([f"<p>{text_html(text)}</p>" for text in texts if text])


def coloured_cells(
    values: np.ndarray, low: float, high: float, center: float | None = None
) -> list[list[Cell]]:
    """Make the cells of a heatmap (rows, columns): every number on its colour.

    `low`, `high` and `center` are the limits and the middle of the colours, as for `paint`.
    """
    return [
        [Cell(number(value), fill=fill) for value, fill in zip(*row, strict=True)]
        for row in zip(values, fills(paint(values, low, high, center)), strict=True)
    ]


def svg(content: str, label: str, left: float, top: float, width: float, height: float) -> str:
    """Make an SVG picture of the rectangle from (left, top), in CSS pixels."""
    return (
        f'<svg width="{width}" height="{height}" viewBox="{left} {top} {width} {height}" '
        f'role="img" aria-label="{text_html(label)}">{content}</svg>'
    )


def arrow(x: float, y: float, colour: str, width: float) -> str:
    """Draw an arrow from the origin to (x, y) pixels."""
    length = math.hypot(x, y)
    if length < 1:
        return f'<circle r="{width + 1}" fill="{colour}"/>'
    head = min(4 * width + 2, length)
    a, b = x / length, y / length  # along the arrow
    neck = (x - head * a, y - head * b)
    left, right = ((neck[0] - s * 0.45 * head * b, neck[1] + s * 0.45 * head * a) for s in (1, -1))
    return (
        f'<path d="M0,0L{neck[0]:.1f},{neck[1]:.1f}" stroke="{colour}" stroke-width="{width}"/>'
        f'<path d="M{x:.1f},{y:.1f}L{left[0]:.1f},{left[1]:.1f}L{right[0]:.1f},{right[1]:.1f}Z" '
        f'fill="{colour}"/>'
    )
