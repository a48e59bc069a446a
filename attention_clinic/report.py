"""What `diagnose` returns: a report that prints as text, and the numbers behind it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from torch import Tensor

from attention_base.numbers import wrap_text
from attention_clinic.probes import Finding

SHOWN_BY_VARIANTS = ("reach", "rows sum to 1")  # probes: differences by which a variant shows
LOOK = "Whether it is right is not known: compare it with its formula."


def has_word(name: str, word: str) -> bool:
    """Tell whether a word, or several, stand whole in a name, in large or small letters."""
    pattern = rf"(?<!\w){re.escape(str(word).strip())}(?!\w)"
    return bool(str(word).strip() and re.search(pattern, name, re.IGNORECASE))


@dataclass(frozen=True)
class Weights:
    """The attention weights that a report is about, (B, T, T) or (B, n_head, T, T)."""

    weights: Tensor
    wrong: Tensor  # which of them are wrong
    right: Tensor | None  # what they should be; None where this is not known
    name: str  # of the attention in the module; "" for the module itself
    causal: bool


@dataclass(frozen=True)
class Dependence:
    """Which output depends on which token: changes [j, t] of output t with token j replaced."""

    changes: Tensor
    causal: bool


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
    evidence
        The numbers that show what is wrong, or what is right; None where there are none.
    example
        The shape (B, T, C) of what the module was given.
    error
        The error that the module raised and that ended the examination; None if there was none.
    expected
        The variants that were found, and that were said to be meant.
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
    evidence: Weights | Dependence | None = None
    example: tuple[int, ...] = ()
    error: Exception | None = None
    expected: tuple[str, ...] = ()

    def expecting(self, meant: Mapping[str, Collection[str]]) -> Report:
        """The report where variants, or bugs, are meant: for each word, those that it may mean.

        Where no other difference was found, it is healthy with them, and not without.
        """
        shown = {*self.bugs, "equals the reference"}  # where a bug shows
        failed = {finding.name for finding in self.findings if not finding.ok} - shown
        if not meant or failed or self.status not in ("healthy", "different", "broken"):
            return self
        missing = [word for word, names in meant.items() if not {*names} & {*self.bugs}]
        if missing and self.status != "broken":
            why = f"{' and '.join(missing)} expected, and not found"
            different = {**self.different, "expected": f"{why}."}
            return replace(self, status="different", difference=why, different=different)
        others = {*self.bugs}.difference(*meant.values())
        if missing or others or self.difference or set(self.different) - set(SHOWN_BY_VARIANTS):
            return self
        status = "incomplete" if self.not_checked else "healthy"
        return replace(self, status=status, expected=self.bugs)

    def __str__(self) -> str:
        broken = self.status == "broken"
        lines = [self.assumed] if self.assumed else []
        lines.append(self._verdict())
        mark = "✗" if broken else "✓" if self.expected else "≠"  # what is meant is no difference
        shown = [one for one in self.findings if not (broken and one.ok)]
        lines += [f"{'✓' if one.ok else mark} {one.name}: {one.evidence}" for one in shown]
        different = {} if self.expected else self.different  # what a meant variant shows by
        lines += [f"≠ {name}: {evidence}" for name, evidence in different.items()]
        passed = [finding.name for finding in self.findings if finding.ok]
        if broken and passed:  # beside failed probes, those that passed are only listed
            lines.append(f"✓ passed: {', '.join(passed)}.")
        lines += [f"○ {name}: {why}." for name, why in self.not_checked.items()]
        lines += self.notes
        return wrap_text("\n".join(lines), hanging="  ")

    __repr__ = __str__

    def _verdict(self) -> str:
        if self.expected and self.status == "healthy":
            return f"HEALTHY: {' and '.join(self.expected)}, as expected. All else passed."
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
