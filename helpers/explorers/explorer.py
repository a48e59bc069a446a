"""Live explorers: a few controls and one drawing that follows them.

An `Explorer` watches its controls and writes HTML into one widget. A drawing takes a millisecond,
so the picture moves with the slider. Tests drive it as a hand would: ``explorer.controls["t"].value
= 3``, then read ``explorer.view.value`` or ``str(explorer)``. Where widgets cannot be shown (a page
on the web, a saved notebook) the text stands for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from helpers.numbers import any_rounding
from helpers.pictures.table import text_html

if TYPE_CHECKING:
    pass


GLOW = "#e8792b"  # orange that is seen on light and on dark


SKY = "#4a90c8"  # blue that is seen on light and on dark


class Explorer:
    """Controls, a drawing that follows them, and a text that says what it shows.

    Parameters
    ----------
    what : str
        One line on what can be explored.
    controls : dict of name -> widget
        Whatever has a `value`; `draw` and `tell` get these values by name.
    draw : (**values) -> str
        The picture as HTML.
    tell : (**values) -> str
        The state in words and numbers.
    layout : (controls, view) -> widget
        How they are arranged; without: the controls above the view.
    """

    def __init__(
        self,
        what: str,
        controls: dict[str, widgets.Widget],
        draw: Callable[..., str],
        tell: Callable[..., str],
        layout: Callable[[dict[str, widgets.Widget], widgets.Widget], widgets.Widget] | None = None,
    ) -> None:
        self.what, self.controls = what, controls
        self._draw, self._tell = draw, tell
        self.view = widgets.HTML()
        arrange = layout or (lambda c, view: widgets.VBox([*c.values(), view]))
        self.box = arrange(controls, self.view)
        for control in controls.values():
            control.observe(self._follow, names="value")
        self._follow()

    def _values(self) -> dict[str, Any]:
        return {name: control.value for name, control in self.controls.items()}

    def _follow(self, change: Any = None) -> None:
        try:
            with any_rounding():
                self.view.value = self._draw(**self._values())
        except Exception as error:  # a callback's traceback would vanish: say it where the eyes are
            self.view.value = (
                '<div role="alert" style="border-left:4px solid #d6006c;padding:6px 10px">'
                f"<b>This setting cannot be drawn.</b> {text_html(_in_words(error))}. "
                "Move a control back to go on.</div>"
            )

    def __str__(self) -> str:
        try:
            with any_rounding():
                now = self._tell(**self._values())
        except Exception as error:
            now = f"this setting cannot be drawn, {_in_words(error)}"
        return f"Live: {self.what}\nControls: {', '.join(self.controls)}.\nNow: {now}"

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self.box._repr_mimebundle_() | {"text/plain": str(self)}


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(".: ")


def slider(name: str, value: float, low: float, high: float, step: float = 1) -> widgets.Widget:
    """A slider with its name in front; of whole numbers if `step` is whole."""
    kind = widgets.IntSlider if isinstance(step, int) else widgets.FloatSlider
    more = {} if kind is widgets.IntSlider else {"readout_format": ".1f"}
    return kind(
        value=value, min=low, max=high, step=step, description=name,
        style={"description_width": "initial"}, layout={"width": "300px"}, **more,
    )  # fmt: skip


def checkbox(name: str, value: bool = False) -> widgets.Checkbox:
    """A box to tick, with its name behind it."""
    return widgets.Checkbox(value=value, description=name, indent=False, layout={"width": "auto"})


def dropdown(name: str, options: Sequence[str], value: str) -> widgets.Dropdown:
    """A list to choose from, with its name in front."""
    return widgets.Dropdown(
        options=list(options), value=value, description=name,
        style={"description_width": "initial"},
        layout={"width": "240px", "margin": "2px 12px 2px 2px"},
    )  # fmt: skip


def say(*sentences: str) -> str:
    """Sentences as HTML, one a line; empty ones are left out."""
    return "".join(
        f'<p style="margin:4px 0;line-height:1.4">{text_html(s)}</p>' for s in sentences if s
    )


def abreast(parts: Sequence[str]) -> str:
    """Put pieces of HTML close to each other, so that they fit into a notebook's line."""
    style = "display:flex;flex-wrap:wrap;gap:8px 14px;align-items:flex-start"
    return f'<div style="{style}">{"".join(parts)}</div>'


def controls_in_a_row(controls: dict[str, widgets.Widget], view: widgets.Widget) -> widgets.Widget:
    """Put the controls in a row above the view."""
    row = widgets.HBox(
        list(controls.values()), layout={"flex_flow": "row wrap", "align_items": "center"}
    )
    return widgets.VBox([row, view])
