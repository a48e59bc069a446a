"""What `diagnose` returns: a report that prints as text, and the heatmap that goes with it."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from helpers.attention import causal_mask
from helpers.clinic.probes import Finding
from helpers.numbers import wrap_text
from helpers.pictures.base import Picture
from helpers.pictures.matrix import heatmap, heatmaps

LOOK = "Whether it is right is not known: compare it with its formula."


@dataclass(frozen=True)
class Report:
    """What `diagnose` found.

    Attributes
    ----------
    status
        "healthy": every probe ran and passed. "different": none failed, but the numbers are not
        those of the textbook; `bugs` names the variant, or nothing explains them. "broken": at
        least one failed, or a bug was recognised. "incomplete": none failed, some could not run.
    findings
        The recognised bugs, then the probes that ran, each with its `name`, `evidence` and whether
        it is `ok`.
    not_checked
        Name of a probe that could not run -> why.
    bugs
        The names of the recognised bugs: the module gives the same numbers as attention, or a
        block, with these. Where the status is "different", those of the variants.
    remark
        A sentence for the verdict where no bug fits.
    assumed
        What had to be assumed; told first.
    notes
        How the module was called, where that is not plain.
    different
        Name of a probe -> in what the module differs from the textbook.
    difference
        What no known bug or variant explains, in a few words, for the verdict.
    draw
        Makes the picture.
    example
        The shape (B, T, C) of what the module was given.
    error
        The error that the module raised and that ended the examination; None if there was none.
    """

    status: str
    findings: tuple[Finding, ...]
    not_checked: Mapping[str, str]
    bugs: tuple[str, ...] = ()
    remark: str = ""
    assumed: str = ""
    notes: tuple[str, ...] = ()
    different: Mapping[str, str] = field(default_factory=dict)
    difference: str = ""
    draw: Callable[[], Picture | None] = lambda: None
    example: tuple[int, ...] = ()
    error: Exception | None = None

    @property
    def picture(self) -> Picture | None:
        """A heatmap with the wrong cells outlined; None where there is nothing to show."""
        return self.draw()

    def __str__(self) -> str:
        broken = self.status == "broken"
        lines = [self.assumed] if self.assumed else []
        lines.append(self._verdict())
        lines += [self._line(finding) for finding in self.findings if not (broken and finding.ok)]
        lines += [f"≠ {name}: {evidence}" for name, evidence in self.different.items()]
        passed = [finding.name for finding in self.findings if finding.ok]
        if broken and passed:  # beside failed probes, those that passed are only listed
            lines.append(f"✓ passed: {', '.join(passed)}.")
        lines += [f"○ {name}: {why}." for name, why in self.not_checked.items()]
        lines += self.notes
        return wrap_text("\n".join(lines), hanging="  ")

    __repr__ = __str__

    def _line(self, finding: Finding) -> str:
        """A finding as a line; where nothing is broken, a difference is no cross."""
        mark = "✗" if self.status == "broken" else "≠"
        return f"{'✓' if finding.ok else mark} {finding.name}: {finding.evidence}"

    def _verdict(self) -> str:
        if self.status == "healthy":
            return f"HEALTHY: all {len(self.findings)} probes ran and passed."
        if self.status == "incomplete":
            return f"INCOMPLETE: no bug found; not checked: {', '.join(self.not_checked)}."
        if self.status == "different":
            what = [*self.bugs, *([self.difference] if self.difference else [])]
            what = what or ["the outputs do not depend on all tokens"]
            advice = LOOK if self.difference else "If this is meant, fine."
            return f"DIFFERENT: {' and '.join(what)}. {self._all_else()} {advice}"
        if self.bugs:
            return f"BROKEN: {' and '.join(self.bugs)}."
        failed = ", ".join(finding.name for finding in self.findings if not finding.ok)
        return f"BROKEN: failed {failed}. {self.remark}"

    def _all_else(self) -> str:
        if not self.not_checked:
            return "All else passed."
        passed = sum(finding.ok for finding in self.findings)
        return f"{passed} probes passed; not checked: {', '.join(self.not_checked)}."

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        picture = self.picture
        if picture is None:
            return {"text/plain": str(self)}
        text = f'<pre style="white-space: pre-wrap">{html.escape(str(self))}</pre>'
        return {"text/plain": f"{self}\n\n{picture}", "text/html": text + picture.html()}


def weights_heatmap(
    weights: Tensor, wrong: Tensor, right: Tensor | None, name: str, causal: bool
) -> Picture:
    """The (T, T) weights with the most wrong cells, of weights (B, T, T) or (B, n_head, T, T).

    Parameters
    ----------
    weights, wrong
        The weights of an attention, and which of them are wrong.
    right
        The right weights, drawn beside those that are wrong; None where they are not known.
    name
        The name of the attention in the module; "" for the module itself.
    causal
        Whether the future, where its weights are 0, is hatched.
    """
    matrices = wrong.flatten(0, -3)
    worst = int(matrices.sum((-2, -1)).argmax())
    place = np.unravel_index(worst, wrong.shape[:-2])
    axes = [f"{axis} {int(i)}" for axis, i in zip(("sequence", "head"), place, strict=False)]
    cells = [tuple(cell) for cell in matrices[worst].nonzero().tolist()]
    title = f"Weights, {', '.join(axes)}" + (f", in {name}" if name else "")
    title += "; outlined: wrong" if cells else ""
    yours = weights.flatten(0, -3)[worst]
    if not cells or right is None or right.shape != weights.shape:
        return heatmap(yours, title=title, outline=cells, mask=_not_hidden(yours, causal))
    shown = {"yours": yours, "right": right.flatten(0, -3)[worst]}
    mask = {key: _not_hidden(one, causal) for key, one in shown.items()}
    return heatmaps(shown, title=title, mask=mask, outline={"yours": cells})


def _not_hidden(weights: Tensor, causal: bool) -> Tensor | None:
    """Every cell but those of the future whose weight is exactly 0."""
    future = ~causal_mask(len(weights)).to(weights.device)
    return ~(future & (weights == 0)) if causal else None


def dependence_heatmap(changes: Tensor, causal: bool) -> Picture:
    """Which output depends on which token, from the changes [j, t] of output t with token j."""
    changes = changes.mT  # row = output, column = token that was replaced
    allowed = causal_mask(len(changes)) if causal else torch.ones_like(changes, dtype=torch.bool)
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
