"""`diagnose` for notebooks: the clinic's report, with the heatmap that goes with it."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

import attention_clinic
from attention_base.masks import causal_mask
from attention_clinic.report import Dependence, Report, Weights
from helpers.pictures.base import Picture
from helpers.pictures.matrix import MOST, heatmap, heatmaps


class DrawnReport(Report):
    """A report of the clinic that a notebook shows with its picture."""

    @property
    def picture(self) -> Picture | None:
        """A heatmap with the wrong cells outlined; None where there is nothing to show."""
        if self.evidence is None or self.example[-2] > MOST:  # the words have to do
            return None
        is_weights = isinstance(self.evidence, Weights)
        return (_weights if is_weights else _dependence)(self.evidence)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        picture = self.picture
        if picture is None:
            return {"text/plain": str(self)}
        text = f'<pre style="white-space: pre-wrap">{html.escape(str(self))}</pre>'
        return {"text/plain": f"{self}\n\n{picture}", "text/html": text + picture.html()}


def diagnose(module_or_callable: Callable, **settings: Any) -> DrawnReport:
    """Do what `attention_clinic.diagnose` does, with the same settings, and draw what it finds."""
    return DrawnReport(**vars(attention_clinic.diagnose(module_or_callable, **settings)))


def _weights(shown: Weights) -> Picture:
    """The (T, T) weights with the most wrong cells; beside them the right ones, if known."""
    weights, right = shown.weights, shown.right
    matrices = shown.wrong.flatten(0, -3)
    worst = int(matrices.sum((-2, -1)).argmax())
    place = np.unravel_index(worst, shown.wrong.shape[:-2])
    axes = [f"{axis} {int(i)}" for axis, i in zip(("sequence", "head"), place, strict=False)]
    cells = [tuple(cell) for cell in matrices[worst].nonzero().tolist()]
    title = f"Weights, {', '.join(axes)}" + (f", in {shown.name}" if shown.name else "")
    title += "; outlined: wrong" if cells else ""
    yours = weights.flatten(0, -3)[worst]
    if not cells or right is None or right.shape != weights.shape:
        return heatmap(yours, title=title, outline=cells, mask=_not_hidden(yours, shown.causal))
    both = {"yours": yours, "right": right.flatten(0, -3)[worst]}
    mask = {key: _not_hidden(one, shown.causal) for key, one in both.items()}
    return heatmaps(both, title=title, mask=mask, outline={"yours": cells})


def _not_hidden(weights: Tensor, causal: bool) -> Tensor | None:
    """Every cell but those of the future whose weight is exactly 0."""
    future = ~causal_mask(len(weights)).to(weights.device)
    return ~(future & (weights == 0)) if causal else None


def _dependence(shown: Dependence) -> Picture:
    """Which output depends on which token."""
    changes = shown.changes.mT  # row = output, column = token that was replaced
    allowed = (
        causal_mask(len(changes)) if shown.causal else torch.ones_like(changes, dtype=torch.bool)
    )
    # As `no_leak` and `reach` are judged: rounding is no leak, and any change is a dependence.
    depends = changes > torch.where(allowed, 0.0, 1e-6)
    cells = [tuple(cell) for cell in (depends != allowed).nonzero().tolist()]
    return heatmap(
        depends.float(),
        rows="output",
        cols="token that was replaced",
        title="1 = this output depends on this token; outlined: wrong",
        fmt=".0f",
        outline=cells,
    )
