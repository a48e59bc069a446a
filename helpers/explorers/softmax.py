"""Notebook 03: from scores to weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import numpy as np

from helpers.explorers.explorer import Explorer, checkbox, say, slider
from helpers.numbers import number
from helpers.pictures.table import HATCH, PLAIN, html_table, td

if TYPE_CHECKING:
    pass


def explore_softmax() -> Explorer:
    """Five scores, a temperature and a mask: see the weights, and how spread out they are."""
    start = (1.0, 0.0, 2.0, -1.0, 3.0)
    controls = {f"token {j}": slider(f"token {j}", s, -4, 4, 0.1) for j, s in enumerate(start)}
    controls["temperature"] = slider("temperature", 1.0, 0.1, 5, 0.1)
    controls["mask"] = checkbox("mask: tokens 3 and 4 are the future")

    def steps(values: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        scores = np.array([values[f"token {j}"] for j in range(5)])
        divided = scores / values["temperature"]
        if values["mask"]:
            divided[3:] = -np.inf
        weights = np.exp(divided - divided.max())
        weights /= weights.sum()
        alive = weights[weights > 0]
        return scores, divided, weights, float(-(alive * np.log2(alive)).sum()) + 0.0

    def draw(**values: Any) -> str:
        _, divided, weights, bits = steps(values)
        rows = []
        for j in range(5):
            hidden = values["mask"] and j >= 3
            look = "text-align:left;padding:0;min-width:320px;height:30px;white-space:nowrap"
            bar = (
                f'<td style="{look}"><div style="display:inline-block;vertical-align:middle;'
                f'height:20px;width:{260 * weights[j]:.1f}px;background:#4a90c8"></div>'
                f'<span style="padding-left:6px;vertical-align:middle">{number(weights[j])}'
                f"{' (masked)' * hidden}</span></td>"
            )
            cells = [td(number(divided[j]), HATCH if hidden else PLAIN)]
            rows.append((f"token {j}", [*cells, bar]))
        over = "score / temperature" + (", then the mask" if values["mask"] else "")
        table = html_table("", [over, "weight"], rows)
        return table + say(entropy(values, bits))

    def entropy(values: dict[str, Any], bits: float) -> str:
        n = 3 if values["mask"] else 5
        return (
            f"Entropy {number(bits)} bits of at most {number(np.log2(n))}: as spread out as "
            f"{number(2**bits, 1)} equal weights."
        )

    def tell(**values: Any) -> str:
        scores, _, weights, bits = steps(values)
        return (
            f"scores {' '.join(number(s, 1) for s in scores)}, "
            f"temperature {number(values['temperature'], 1)}, "
            f"mask {'on' if values['mask'] else 'off'}: weights "
            f"{' '.join(map(number, weights))}. {entropy(values, bits)}"
        )

    def arrange(c: dict[str, widgets.Widget], view: widgets.Widget) -> widgets.Widget:
        first = widgets.HTML('<div style="font-size:12px">scores</div>', layout={"height": "22px"})
        left = widgets.VBox([first, *(c[f"token {j}"] for j in range(5))])
        top = widgets.HBox([c["temperature"], c["mask"]], layout={"flex_flow": "row wrap"})
        return widgets.VBox([top, widgets.HBox([left, view], layout={"flex_flow": "row wrap"})])

    return Explorer(
        "move five scores, the temperature and the mask; see the weights.",
        controls,
        draw,
        tell,
        arrange,
    )
