"""Texts that are compared with stored ones: the words exactly, numbers within what rounding does.

`make refresh` renews what is stored. Read its diff: it is what a learner is told now.
"""

import math
import re

from syrupy.extensions.amber import AmberSnapshotExtension

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
TINY = 1e-4  # below it, a number is what rounding left over


def same(one: str, other: str) -> bool:
    """Whether two texts have the same words, and nearly the same numbers in the same places."""
    if words(one) != words(other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(nearly(a, b) for a, b in pairs)


def words(text: str) -> list[str]:
    """The words of a text, with a # for each number; lines may break elsewhere."""
    return NUMBER.sub("#", text).split()


def nearly(one: str, other: str) -> bool:
    """Whether two numbers differ by rounding only; whole ones must not differ."""
    if one.lstrip("-").isdecimal() and other.lstrip("-").isdecimal():
        return one == other
    a, b = float(one), float(other)
    return max(abs(a), abs(b)) < TINY or math.isclose(a, b, rel_tol=0.02, abs_tol=0.011)


class Told(AmberSnapshotExtension):
    """A snapshot of a text with numbers."""

    def matches(self, *, serialized_data: str, snapshot_data: str) -> bool:
        """Whether the text is the stored one."""
        return same(serialized_data, snapshot_data)
