"""What the command's child process does: it imports a file, makes a class and examines it."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

from torch import nn

from attention_base.numbers import described, joined, wrap_text
from attention_base.same import same_conditions
from attention_clinic.calls import self_attention_call
from attention_clinic.command import EXIT_CODES, Answer, CannotRun, as_json
from attention_clinic.crashes import where_raised
from attention_clinic.diagnosis import diagnose, random_example, refuse_uncallable
from attention_clinic.examination import NO_ATTENTION
from attention_clinic.from_outside import POOLS
from attention_clinic.making import make, read_arguments
from attention_clinic.names import own_head_count
from attention_clinic.outbid import LARGE, SCORES
from attention_clinic.report import Report
from attention_clinic.targets import importing_from, load, missing_package, place_of, their_errors

OTHER_INPUTS = (
    "{} takes {}, and is given one x (B, T, C). Write a module in its file whose forward(self, x) "
    "calls it with all that it takes, as in return self.attention(x, mask), and name that one."
)
NOT_ASKED = (
    "Not asked: texts in pieces with a cache, masks of yours, {}, long texts, lower precision, "
    "dropout in training, the numbers of a feed-forward. Ask them where you use them."
)
# In one module it cannot be told from a number that is the same, with other heads it can.
AMBIGUOUS, HERE = "divided by √n_head", "as with {} heads √n_head could be another number"
TOKENS_WANTED = " It looks up token numbers in an embedding: name the attention or a block in it."


def answer(arguments: argparse.Namespace) -> Answer:
    """Examine what a command line names; `CannotRun` where that cannot be had."""
    with contextlib.redirect_stdout(sys.stderr):  # their prints
        made_as, report = _examined(arguments)
    if arguments.json:
        return EXIT_CODES[report.status], as_json(**_as_dict(report, made_as))
    asked = any(SCORES in finding.evidence for finding in report.findings)
    scores = f"scores beyond ±{LARGE:,.0f}" if asked else "very large scores"
    ended = wrap_text(NOT_ASKED.format(scores)) if report.status == "healthy" else ""
    text = f"{made_as}, run on x {report.example}\n{report}\n{ended}".rstrip()
    return EXIT_CODES[report.status], text


def _as_dict(report: Report, made_as: str) -> dict[str, Any]:
    return {
        "status": report.status,
        "bugs": report.bugs,
        "findings": [vars(one) for one in report.findings],
        "not_checked": dict(report.not_checked),
        "different": dict(report.different),
        "notes": [*filter(None, [report.assumed]), *report.notes],
        "made_as": made_as,
        "example": report.example,
    }


def _examined(arguments: argparse.Namespace) -> tuple[str, Report]:
    """How the module was made, and what `diagnose` finds."""
    C, n_head = arguments.C, arguments.n_head
    for name, size in (("--C", C), ("--n-head", 1 if n_head is None else n_head)):
        if size < 1:
            raise CannotRun(f"{name} must be at least 1, got {size}.")
    given = read_arguments(arguments.arg)
    place = place_of(arguments.target)
    with importing_from(place), same_conditions(), their_errors(place.name, ours=True):
        found, file = load(place)
        if not isinstance(found, type):
            if given:
                raise CannotRun(f"--arg is for a class, and {place.name} is made already.")
            told = f"{place.name}, called as it is"
            return told, _refuse_unjudged(_diagnosed(found, n_head, told, place.name, arguments))

        def made_with(n_head: int | None) -> tuple[str, Report, int]:
            function, told, heads = make(found, C, n_head, given, vars(file))
            known, told = _knows_heads(function) and heads != 1, f"made as {told}"
            count = n_head if known else heads
            report = _diagnosed(function, count, told, place.name, arguments)
            return told, report, heads or 1

        told, report, heads = made_with(n_head)
        other = 2 * heads if C not in (4 * heads**2, 2 * heads**2) else heads // 2  # else √d is it
        if AMBIGUOUS in report.bugs and other and C % other == 0:
            told_of_other, of_other, _ = made_with(other)
            if AMBIGUOUS not in of_other.bugs:
                told, report = f"{told_of_other}, {HERE.format(heads)}", of_other
    return told, _refuse_unjudged(report)


def _diagnosed(
    function: Any, n_head: int | None, told: str, name: str, arguments: argparse.Namespace
) -> Report:
    causal, example = not arguments.no_causal, arguments.example
    with their_errors(f"{name} ({told})", ours=True):
        if not callable(function):
            raise CannotRun(f"{name} is {described(function)}, which cannot be called.")
        refuse_uncallable(function)
        _refuse_other_inputs(function, name, causal)
        example = example and random_example(*example, arguments.C, function)
        try:
            return diagnose(
                function,
                C=arguments.C,
                n_head=n_head,
                causal=causal,
                example=example,
                expect=arguments.expect,
                layout=arguments.layout,
            )
        except ValueError as error:
            raise CannotRun(str(error)) from error


def _knows_heads(function: Callable) -> bool:
    ready = "_modules" in vars(function) if isinstance(function, nn.Module) else False
    parts = function.modules() if ready else ()  # diagnose says what is missing
    return any(map(own_head_count, parts))


def _refuse_other_inputs(function: Callable, name: str, causal: bool) -> None:
    """Refuse what cannot be called with one x."""
    args, kwargs = (None,), {}
    if isinstance(function, nn.Module):
        call = self_attention_call(function, random_example(1, 1, 1, function), causal)
        args, kwargs, function = call.args, call.kwargs, function.forward
    try:
        signature = inspect.signature(function)
    except ValueError:  # of a function written in C
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        wanted = [key for key, one in signature.parameters.items() if one.default is one.empty]
        told = joined(wanted) if wanted else "no input"
        raise CannotRun(OTHER_INPUTS.format(name, told)) from error


def _refuse_unjudged(report: Report) -> Report:
    """The report; refused where an error ended the examination, or it is no attention."""
    if report.error and not report.bugs:
        told = where_raised(report.error) + report.findings[0].evidence
        wants_tokens = "indices" in told and "Long" in told
        missing = missing_package(report.error).lstrip(".")
        raise CannotRun(told + (TOKENS_WANTED if wants_tokens else missing))
    if report.findings and POOLS in report.findings[0].evidence:
        raise CannotRun(report.findings[0].evidence)
    if NO_ATTENTION in report.remark:
        raise CannotRun(f"{NO_ATTENTION} Each output depends on the token at its place only.")
    return report
