"""`assert_healthy`: `diagnose` as a test."""

from __future__ import annotations

from collections.abc import Callable, Collection

from torch import Tensor

from attention_base.numbers import described
from attention_clinic.crashes import where_raised
from attention_clinic.diagnosis import diagnose
from attention_clinic.report import has_word


def assert_healthy(
    module_or_callable: Callable,
    *,
    C: int,
    n_head: int | None = None,
    causal: bool = True,
    example: Tensor | None = None,
    expect: Collection[str] = (),
    layout: str | None = None,
    allow: Collection[str] = (),
) -> None:
    """Fail, with the report of `diagnose`, where an attention or a block is not healthy.

    What differs from the textbook fails, and what could not be checked, too: a test that passes
    should have checked all that it seems to check. Either may be allowed by its name.

    Parameters
    ----------
    module_or_callable, C, n_head, causal, example, expect, layout
        As for `diagnose`.
    allow
        Names, or words of names, that the report tells after ≠, such as "rotary", or after ○, such
        as "gradients reach". A bug (✗) cannot be allowed.

    Raises
    ------
    AssertionError
        With the report, and the names that `allow` would have to hold.
    TypeError, ValueError
        As `diagnose`; or allow is a text, not a tuple of names.

    Examples
    --------
    >>> from torch import nn
    >>> assert_healthy(nn.MultiheadAttention(32, 4, batch_first=True), C=32)
    """
    __tracebackhide__ = True  # pytest shows the test
    if isinstance(allow, str) or not isinstance(allow, Collection):
        raise TypeError(f"allow must be a tuple of names, got {described(allow)}.")
    sizes = {"C": C, "n_head": n_head, "causal": causal, "example": example}
    report = diagnose(module_or_callable, **sizes, expect=expect, layout=layout)
    if report.status == "healthy":
        return
    not_passed = [one.name for one in report.findings if not one.ok]
    names = tuple(dict.fromkeys([*not_passed, *report.different, *report.not_checked]))
    if report.status == "broken":
        place = f"\nRaised in {where_raised(report.error)}" if report.error else ""
        raise AssertionError(f"{report}{place.removesuffix(': ')}")
    if not all(any(has_word(name, word) for word in allow) for name in names):
        raise AssertionError(f"{report}\nTo let this pass: allow={names}")
