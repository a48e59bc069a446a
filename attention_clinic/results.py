"""What the steps of an examination found, and how it adds up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from attention_clinic.bugs import Named
from attention_clinic.probes import Finding


@dataclass(frozen=True)
class Recognised:
    """A bug with which the same numbers were computed, the evidence, and in which part.

    ``meant``: some models are like this on purpose.
    """

    name: str
    evidence: str
    where: str = ""
    meant: bool = False


@dataclass(frozen=True)
class Results:
    """What one step found, or several together."""

    # Pairs of what a probe found and in which part; "" for the whole module.
    findings: tuple[tuple[Finding, str], ...] = ()
    bugs: tuple[Recognised, ...] = ()  # in the order in which they were recognised
    # Name of a probe -> why it could not run.
    not_checked: Mapping[str, str] = field(default_factory=dict)
    # Name of a probe -> in what the module differs from the textbook; a bug or on purpose.
    different: Mapping[str, str] = field(default_factory=dict)

    def __add__(self, other: Results) -> Results:
        return Results(
            self.findings + other.findings,
            self.bugs + other.bugs,
            {**self.not_checked, **other.not_checked},
            {**other.different, **self.different},  # the first of several parts
        )

    @property
    def wrong(self) -> tuple[str, ...]:
        """The names of the recognised bugs, each once, without what may be meant."""
        meant = {bug.name for bug in self.bugs if bug.meant}
        return tuple(dict.fromkeys(bug.name for bug in self.bugs if bug.name not in meant))

    @property
    def failed(self) -> bool:
        """Whether any probe failed, or a bug was recognised."""
        return bool(self.wrong) or not all(finding.ok for finding, _ in self.findings)

    def finding(self, name: str) -> Finding | None:
        """What a probe found: in several parts, the first that failed."""
        found = [finding for finding, _ in self.findings if finding.name == name]
        return next((one for one in found if not one.ok), found[0] if found else None)

    def passed(self, name: str) -> bool:
        """Tell whether a probe ran and passed."""
        return bool(self.finding(name))

    def places(self, name: str) -> dict[str, str]:
        """The parts in which a bug was recognised or a probe ended as told -> the evidence."""
        finding = self.finding(name)
        pairs = [(w, f.evidence) for f, w in self.findings if f.name == name and f.ok == finding.ok]
        pairs += [(bug.where, bug.evidence) for bug in self.bugs if bug.name == name]
        return {where: evidence for where, evidence in pairs if where}


def found(*findings: Finding, where: str = "") -> Results:
    """What probes found in one part."""
    return Results(tuple((finding, where) for finding in findings))


def recognised(name: str, evidence: str, where: str = "", meant: bool = False) -> Results:
    """A bug that was recognised."""
    return Results(bugs=(Recognised(name, evidence, where, meant),))


def named(bug: Named, where: str = "") -> Results:
    """A bug, or a variant, that was recognised, as its page tells it."""
    return recognised(bug.name, bug.message, where, bug.meant)


def not_checked(why: str, *probes: str) -> Results:
    """Probes that could not run, and why."""
    return Results(not_checked=dict.fromkeys(probes, why))


def together(parts: Iterable[Results]) -> Results:
    """All that several steps have found."""
    return sum(parts, Results())
