"""The command ``attention-clinic``: `diagnose` for an attention in any file, with an exit code."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from torch import nn

from attention_base.numbers import described, joined, wrap_text
from attention_base.same import same_conditions
from attention_clinic.calls import self_attention_call
from attention_clinic.crashes import where_raised
from attention_clinic.diagnosis import diagnose, random_example, refuse_uncallable
from attention_clinic.examination import NO_ATTENTION
from attention_clinic.from_outside import POOLS
from attention_clinic.making import make, read_arguments
from attention_clinic.names import own_head_count
from attention_clinic.outbid import LARGE, SCORES
from attention_clinic.report import Report
from attention_clinic.targets import FORMS, CannotRun, importing_from, load, place_of, their_errors

EXIT_CODES = {"healthy": 0, "broken": 1, "different": 2, "could not run": 3, "incomplete": 4}
DESCRIPTION = """\
Say whether an attention, or a block with one, is right, and which bug it has.

Its file is imported, its class made and called: what stands there runs on your computer, so name
only code that you would run yourself. C and n_head go to the arguments whose names say so
(d_model, num_heads and the like); --arg gives others. A function or a module that the file has
made already is called as it is.
"""
EXIT_CODES_TOLD = """\
exit codes:
  0  healthy: every probe ran and passed
  1  broken: a probe failed, or a known bug was recognised
  2  different from the textbook, which may be meant (rotary positions, a sliding window)
  3  could not run: no such file or class, an error of its own, no attention, wrong sizes
  4  incomplete: no bug was found, but some probes could not run. It is not 0, since what was not
     checked may be wrong; and not 3, so that a CI job can accept it and still see a missing file.
"""
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with the arguments of a command line; returns its exit code."""
    argv = sys.argv[1:] if argv is None else argv
    made_as = ""
    try:
        arguments = _parser().parse_args(argv)
        with contextlib.redirect_stdout(sys.stderr):  # their prints
            made_as, report = _examined(arguments)
        why = ""
    except CannotRun as error:
        why, report = str(error), Report("could not run", (), {})
    except KeyboardInterrupt:
        return 130
    if "--json" in argv:
        _print(json.dumps(_as_dict(report, made_as, why), ensure_ascii=False, indent=1))
    elif why:
        print(f"Could not run. {why}", file=sys.stderr)
    else:
        asked = any(SCORES in finding.evidence for finding in report.findings)
        scores = f"scores beyond ±{LARGE:,.0f}" if asked else "very large scores"
        ended = wrap_text(NOT_ASKED.format(scores)) if report.status == "healthy" else ""
        _print(f"{made_as}, run on x {report.example}\n{report}\n{ended}".rstrip())
    return EXIT_CODES[report.status]


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:  # | head has read enough; Python would complain at the end, too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _as_dict(report: Report, made_as: str, why: str) -> dict[str, Any]:
    return {
        "status": report.status,
        "bugs": report.bugs,
        "findings": [vars(one) for one in report.findings],
        "not_checked": dict(report.not_checked),
        "different": dict(report.different),
        "notes": [*filter(None, [report.assumed]), *report.notes],
        "made_as": made_as,
        "example": report.example,
        "error": why,
    }


# ---------------------------------------------------------------- the command line


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """An error of the command line is told like all others: 2 would mean "different"."""
        raise CannotRun(f"{message}. See attention-clinic --help.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="attention-clinic",
        description=DESCRIPTION,
        epilog=EXIT_CODES_TOLD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("target", help=f"{FORMS}; a function or a module will do, too")
    parser.add_argument("--C", type=int, required=True, help="channels of x (B, T, C)")
    parser.add_argument("--n-head", type=int, help="heads, where the module does not know its own")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another argument of the class, such as --arg dropout=0.1; repeat it for more",
    )
    parser.add_argument(
        "--no-causal", action="store_true", help="every token may attend to all, as in an encoder"
    )
    parser.add_argument(
        "--example",
        type=_sizes,
        metavar="B,T",
        help="run it on this many sequences and tokens (default: 3,8 or nearby)",
    )
    parser.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="WORD",
        help="a variant that is meant, such as rotary: healthy with it, different without",
    )
    parser.add_argument(
        "--layout", choices=("btc", "tbc"), help="the axes of x; tbc: it takes (T, B, C)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _sizes(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"takes two numbers, such as 4,16; got {text}")
    return int(parts[0]), int(parts[1])


# ---------------------------------------------------------------- what is examined


def _examined(arguments: argparse.Namespace) -> tuple[str, Report]:
    """How the module was made, and what `diagnose` finds."""
    C, n_head = arguments.C, arguments.n_head
    for name, size in (("--C", C), ("--n-head", 1 if n_head is None else n_head)):
        if size < 1:
            raise CannotRun(f"{name} must be at least 1, got {size}.")
    given = read_arguments(arguments.arg)
    place = place_of(arguments.target)
    with importing_from(place), same_conditions():
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
    if not callable(function):
        raise CannotRun(f"{name} is {described(function)}, which cannot be called.")
    causal, example = not arguments.no_causal, arguments.example
    with their_errors(f"{name} ({told})"):
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
        raise CannotRun(told + (TOKENS_WANTED if wants_tokens else ""))
    if report.findings and POOLS in report.findings[0].evidence:
        raise CannotRun(report.findings[0].evidence)
    if NO_ATTENTION in report.remark:
        raise CannotRun(f"{NO_ATTENTION} Each output depends on the token at its place only.")
    return report
