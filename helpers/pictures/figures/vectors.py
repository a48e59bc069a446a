"""Arrows for vectors, as the figures of several notebooks draw them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes


def draw_vector(ax: Axes, start: np.ndarray, end: np.ndarray, color: str, linewidth: float) -> None:
    """Draw an arrow from one point to another."""
    style = f"-|>,head_length={0.25 + 0.05 * linewidth},head_width={0.12 + 0.03 * linewidth}"
    ax.annotate(
        "", end, start,
        arrowprops={
            "arrowstyle": style, "color": color, "linewidth": linewidth, "shrinkA": 0,
            "shrinkB": 0, "mutation_scale": 20, "joinstyle": "miter",
        },
    )  # fmt: skip
