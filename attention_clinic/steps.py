"""The steps of an examination: what each finds is added, then all of it is judged together."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

from attention_clinic import from_inside, from_outside
from attention_clinic.bugs import Named
from attention_clinic.crashes import NOT_RESHAPE, WRITE_RESHAPE
from attention_clinic.examination import Examination
from attention_clinic.gradients import check_lists
from attention_clinic.lists import InList
from attention_clinic.outbid import check_large_scores
from attention_clinic.probes import Finding
from attention_clinic.report import SHOWN_BY_VARIANTS
from attention_clinic.results import Results, found, recognised
from attention_clinic.subject import Subject

Step = Callable[[Examination], Results]
STEPS: tuple[Step, ...] = (  # in this order, since each may use what those before it have found
    from_inside.look_inside,
    from_outside.check_finite,
    from_outside.check_input_unchanged,
    from_outside.check_same_twice,
    from_outside.check_without_weights,
    from_inside.compare_attentions,
    from_inside.check_weights,
    from_outside.check_dependence,
    from_outside.check_context,
    from_inside.check_plain_tensors,
    from_inside.check_inputs,
    from_outside.check_training_mode,
    from_outside.check_prefixes,
    from_inside.check_what_heads_read,
    from_inside.check_heads,
    from_inside.check_residuals_and_norms,
    from_inside.check_parts_of_blocks,
    check_lists,  # and gradients
)


# These tell only what fails. That a module does not take a call of ours is no fault of it.
ASIDE = (from_outside.check_context, from_inside.check_inputs, from_inside.check_what_heads_read)


def examine(subject: Subject, in_lists: tuple[InList, ...] = ()) -> Examination:
    """Take all steps; layers that stand in Python lists are registered for a while."""
    exam = Examination(subject, in_lists, *subject.run(subject.x))
    exam.results = from_outside.check_shape(exam)
    if exam.results.failed:
        return exam
    for step in STEPS:
        with contextlib.suppress(Exception) if step in ASIDE else contextlib.nullcontext():
            exam.results += step(exam)
    for judge in JUDGES:
        exam.results = judge(exam)
    return exam


# ---------------------------------------------------------------- what takes the results' place


def _differences_judged(exam: Examination) -> Results:
    """A difference from the textbook is a failed probe where anything else is wrong."""
    results = exam.results
    for name, evidence in list(results.different.items()):
        if results.failed and not results.wrong and name not in SHOWN_BY_VARIANTS:
            others = {key: why for key, why in results.different.items() if key != name}
            results = replace(results + found(Finding(name, False, evidence)), different=others)
    return results


def _one_name_for_two_paths(exam: Examination) -> Results:
    """A mask that is missing on one of two paths is one bug, not two."""
    if from_outside.DROPPED_WITH_WEIGHTS not in exam.results.wrong:
        return exam.results
    bugs = tuple(bug for bug in exam.results.bugs if bug.name != "no mask")
    return replace(exam.results, bugs=bugs)


def _each_probe_once(exam: Examination) -> Results:
    """What could not be checked everywhere is no passed probe."""
    results, not_checked = exam.results, dict(exam.results.not_checked)
    findings = results.findings
    for name in {finding.name for finding, _ in findings} & not_checked.keys():
        if results.passed(name):
            where = exam.places_in_words(name, True)
            not_checked[name] += f"; it passed in {where}" if where else "; elsewhere it passed"
            findings = tuple(pair for pair in findings if pair[0].name != name)
        else:
            del not_checked[name]
    return replace(results, findings=findings, not_checked=not_checked)


JUDGES: tuple[Step, ...] = (
    check_large_scores,
    _differences_judged,
    _one_name_for_two_paths,
    _each_probe_once,
)


def with_crash(exam: Examination, finding: Finding, bug: Named) -> Examination:
    """Tell the error of a view, after all else was examined with reshape in its place."""
    right = not exam.results.failed and not exam.results.different
    if not exam.results.wrong:
        message = f"{bug.message} {WRITE_RESHAPE if right else NOT_RESHAPE}"
        exam.results += recognised(bug.name, message)
    exam.results += found(finding)
    return exam
