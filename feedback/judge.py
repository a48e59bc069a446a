"""Judges one candidate of an exercise: what it does beside what a right answer does."""

import copy
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from attention_base.same import RTOL, close, same_conditions
from feedback import axes as names_of_axes
from feedback import messages
from feedback.calls import (
    Outcome,
    TooSlow,
    call,
    call_again,
    code_of,
    gradients,
    is_number,
    is_stub,
    numpy_calls,
    own_calls,
    steps,
    time_limit,
    trainable,
)
from feedback.contracts import ContractInput, Kind, fits, why_fragile
from feedback.observations import observe
from feedback.observations.order import Rank
from feedback.observations.trial import Observation, Trial

SECONDS = 2  # that a check may take: it tries fewer inputs with an answer that is slow
MOST_NOTES = 2  # about a right answer


@dataclass(frozen=True)
class Verdict:
    """What became of a candidate."""

    status: str  # "passed", "not attempted" or "failed"
    mistake: str | None  # the name of the recognised mistake
    message: str  # what to tell the learner; a recognised mistake's own message, word for word
    place: str = ""  # of a wrong answer: one place where it shows
    details: str = ""  # what is told on request: the input, what holds all the same, and more
    # For any other wrong answer: what experiments found out about it, the best first.
    observations: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # for a right answer: where it is fragile

    def told(self, details: bool = False) -> str:
        """The message and the place, and the details on request."""
        return _lines(self.message, self.place, self.details if details else "")


class Judge:
    """One candidate of an exercise (`grading`, which imports this file) and what it does."""

    def __init__(self, exercise: "Exercise", candidate: Callable) -> None:  # noqa: F821
        self.exercise, self.candidate = exercise, candidate
        self.used = exercise.in_use(candidate)
        self.slow = False  # whether it ran out of time on some input of the contract

    def verdict(self) -> Verdict:
        """Judge the candidate, as `Exercise.check` says."""
        task, candidate = self.exercise, self.candidate
        if problem := messages.not_callable(candidate, task.reference, task.inputs[0]):
            return Verdict("failed", None, problem)
        if task.given and code_of(candidate) == code_of(task.given):
            return Verdict("not attempted", None, messages.not_changed())
        if task.smaller is not None and self._seconds() > SECONDS:
            verdict = task.smaller.check(candidate)
            notes = tuple(dict.fromkeys([*verdict.notes, messages.fewer_inputs()]))
            return replace(verdict, notes=notes) if verdict.status == "passed" else verdict
        if any(is_stub(outcome.error) for outcome in self.outcomes):
            return Verdict("not attempted", None, messages.not_attempted(candidate))
        if any(self.problems):
            return self._failure()
        if not all(outcome.plain for outcome in self.outcomes):
            return _refused(messages.not_plain())
        if problem := self._broken_requirement():
            return _refused(problem)
        return self._beyond()

    @cached_property
    def outcomes(self) -> list[Outcome]:
        """What the candidate does on each check input."""
        return self.exercise.run(self.candidate)

    @cached_property
    def problems(self) -> list[str]:
        """What is wrong on each check input, beside the reference or another right form that fits.

        "" where nothing is.
        """
        found = []
        for right in self.exercise.right:
            calls = zip(self.outcomes, right, self.exercise.inputs, strict=True)
            found.append([self._problem(got, wanted.value, given) for got, wanted, given in calls])
            if not any(found[-1]):
                return found[-1]
        return found[0]

    def _seconds(self) -> float:
        """How long all check inputs may take, if the time grows as the square of a size."""
        small, seconds = self.exercise.smaller.inputs[0], []
        for _ in range(2):  # the first call finds PyTorch cold
            start = time.perf_counter()
            call(self.used, small, self.exercise.names, self.exercise.several)
            seconds.append(time.perf_counter() - start)
        ratio = max(
            mine.numel() / few.numel()
            for mine, few in zip(self.exercise.inputs[0], small, strict=True)
            if isinstance(mine, Tensor)
        )
        return min(seconds) * ratio**2 * len(self.exercise.inputs)

    # ------------------------------------------------ what is wrong with one call

    def _problem(
        self, got: Outcome, expected: Any, arguments: tuple, atol: float | None = None
    ) -> str:
        """Say what is wrong with the outcome of one call; "" when nothing is."""
        task, value = self.exercise, got.value
        if got.error:
            return messages.raised(got.error, self.candidate)
        if got.changed_input:
            given = dict(zip(task.names, task.inputs[0], strict=False))
            return messages.changed_input(got.changed_input, given[got.changed_input])
        if value is None:
            return messages.nothing_returned()
        if task.effect:
            return got.failure
        expected = torch.as_tensor(expected)
        if not isinstance(value, Tensor) and (expected.dim() or not is_number(value)):
            return messages.not_a_tensor(value, expected, task.several)
        if type(value) is int and expected.is_floating_point():
            value = float(value)  # as of max(0, change): Python's 0 is the number 0.0
        value = torch.as_tensor(value)
        if value.shape != expected.shape:
            return messages.wrong_shape(value, expected, task.several)
        if messages.kind(value) != messages.kind(expected):
            return messages.wrong_kind(value, expected)
        if problem := self._wrong_numbers(value, expected, arguments, atol):
            return problem
        if task.forbids(got):
            return messages.forbidden_call(task.without, bool(task.ready_made))
        if value.dim() and value.is_floating_point() and value.dtype != expected.dtype:
            return messages.wrong_dtype(value, expected)
        return ""

    def _wrong_numbers(
        self, value: Tensor, expected: Tensor, arguments: tuple, atol: float | None
    ) -> str:
        right = close(value, expected, self.exercise.atol if atol is None else atol, RTOL)
        if right.all():
            return ""
        for name in self.exercise.parts:
            mine, wanted, ok = (
                self.exercise.part(z, arguments, name) for z in (value, expected, right)
            )
            if not ok.all():
                return messages.wrong_numbers(mine, wanted, ok, name)
        return messages.wrong_numbers(value, expected, right)

    def _what_holds(self, case: int) -> str:
        """Say what is right about a wrong answer, or its wrong parts, of the right shape."""
        task, given, got = self.exercise, self.exercise.inputs[case], self.outcomes[case]
        value, expected = got.value, task.right[0][case].value
        if task.effect or got.changed_input:
            return ""
        if not (isinstance(value, Tensor) and isinstance(expected, Tensor)) or not value.dim():
            return ""
        if value.is_complex() or value.shape != expected.shape:
            return ""
        if not task.parts:
            has = [
                (name, holds(has, value, given), holds(has, expected, given))
                for name, has, *_ in task.properties
            ]
            return messages.what_holds(value, expected, self._close(value, expected), has)
        told = []
        for name in task.parts:
            mine, wanted = (task.part(z, given, name) for z in (value, expected))
            if not (right := self._close(mine, wanted)).all():
                told.append(f"Of your {name}, {messages.what_holds(mine, wanted, right)}")
        return "\n".join(told)

    def _close(self, a: Tensor, b: Tensor) -> Tensor:
        return close(a, b, self.exercise.atol, RTOL)

    # ------------------------------------------------ the answer is wrong

    def _failure(self) -> Verdict:
        """Name the mistake; where it is no known one, tell what experiments find out."""
        task = self.exercise
        case = next(i for i, problem in enumerate(self.problems) if problem)
        got, problem = self.outcomes[case], self.problems[case]
        given, holding = messages.inputs(task.names, task.inputs[case]), self._what_holds(case)
        for mistake in task.mistakes:
            if task.same(self.outcomes, mistake.outcomes):
                place, _, more = problem.partition("\n")
                details = _lines(more, given, holding)
                return Verdict("failed", mistake.name, mistake.message, place, details)
        forbidden = (
            messages.forbidden_call(task.without, bool(task.ready_made))
            if task.forbids(got)
            else ""
        )
        problem = problem.removesuffix(forbidden)
        if not problem:  # all numbers are right, so far
            return self._only_forbidden(forbidden)
        observations = self._observations()
        told = " ".join(observations)
        if task.effect:
            observations = observations or (problem,)
        if got.error or got.changed_input:  # what was observed may only follow from this
            remedy = messages.remedy(got.error) if got.error and told else ""
            message = _lines(problem.removesuffix(remedy).strip(), told)
            rest = _lines(remedy, given)
            place, details = ("", rest) if told else (rest, "")
        elif told:
            message, place, details = told, _lines(problem, forbidden), _lines(given, holding)
        else:
            message, place, details = _lines(problem, forbidden, holding), "", given
        return Verdict("failed", None, message, place, details, observations)

    def _only_forbidden(self, forbidden: str) -> Verdict:
        """The numbers are right, and they come of a function that an answer may not call."""
        also = self._beyond()
        also = also.message if also.status == "failed" else ""
        forbidden = f"{messages.RIGHT_BUT} {forbidden[0].lower()}{forbidden[1:]}"
        told = (forbidden, *filter(None, [also.split("\n")[0]]))
        return Verdict("failed", None, _lines(forbidden, also), observations=told)

    def _observations(self) -> tuple[str, ...]:
        """What experiments find out; of several results, about one that is wrong."""
        task, pairs = self.exercise, self._two_mistakes()
        if task.effect:
            return tuple(one.text for one in pairs)
        errors = [outcome.error for outcome in self.outcomes if outcome.error]
        if any(messages.is_refused(error, self.candidate) for error in errors):
            return ()  # it raises nothing itself, and the refusal says all
        trial = self.trial()
        of_parts = {name: self._trial_of_part(trial, name) for name in task.parts if trial.pairs}
        wrong = [name for name, one in of_parts.items() if not all(one.right)]
        if not wrong:  # one result, or the numbers are right, and something else is not
            return observe(trial, pairs)
        right = [name for name in of_parts if name not in wrong]
        told = observe(of_parts[wrong[-1]], pairs)  # of wrong weights follow wrong outputs
        told = messages.told_of_part(told, wrong[-1])
        return (messages.wrong_part(wrong[-1], right), *told[:1]) if right else told

    def trial(self) -> Trial:
        """The candidate under examination, beside the reference."""
        task = self.exercise
        return Trial(
            self.used,
            task.in_use(task.reference),
            task.names,
            task.axes,
            copy.deepcopy(task.inputs),  # an experiment that raises may leave a hook in a module
            self.outcomes,
            task.right[0],
            [task.sizes_of(arguments) for arguments in task.inputs],
            task.intermediates,
            task.several,
            task.atol,
            task.experiments,
        )

    def _trial_of_part(self, trial: Trial, name: str) -> Trial:
        """The same answer, of which only one of its results is seen."""
        task = self.exercise

        def only(function: Callable) -> Callable:
            return lambda *arguments: task.part(function(*arguments), arguments, name)

        def of(outcomes: Sequence[Outcome]) -> list[Outcome]:
            return [
                replace(one, value=task.part(one.value, arguments, name))
                for one, arguments in zip(outcomes, task.inputs, strict=True)
            ]

        whole = replace(
            trial,
            candidate=only(trial.candidate),
            reference=only(trial.reference),
            axes={**task.axes, "return": task.parts[name]},
            got=of(trial.got),
            expected=of(trial.expected),
        )
        shown = [i for i, one in enumerate(whole.expected) if one.value.numel()]
        remembered = task.experiments.setdefault(("part", name), {})
        return replace(whole.only(shown), remembered=remembered)

    def _two_mistakes(self) -> Iterator[Observation]:
        """Two mistakes that give just these outcomes, unless most of one is nan, or all is 0."""
        values = [torch.as_tensor(one.value) for one in self.outcomes if is_number(one.value)]
        if any(value.isfinite().double().mean() < 0.5 for value in values):
            return
        right = self.exercise.right[0]  # which some two mistakes together give, too
        if not any(map(torch.any, values)) or self.exercise.same(self.outcomes, right):
            return
        for pair, first in self.exercise.pairs:
            likely = self.exercise.same_outcome(self.outcomes[0], first)
            if likely and self.exercise.same(self.outcomes, pair.outcomes):
                yield Observation(Rank.TWO_MISTAKES, f"Two mistakes at once: {pair.name}.")
                return

    # ------------------------------------------------ all plain check inputs are right

    def _broken_requirement(self) -> str:
        """Say which requirement an answer with the right numbers breaks; "" for none."""
        task = self.exercise
        for name, has, *advice in task.properties:
            results = zip(task.inputs, self.outcomes, strict=True)
            if not all(holds(has, got.value, given) for given, got in results) and task.always(has):
                return messages.property_missing(name, task.atol, *advice)
        called = frozenset.union(*(outcome.called for outcome in self.outcomes))
        for what, names in task.needs:
            if not (called | numpy_calls(self.candidate)) & {*names}:
                return messages.missing_call(what, names)
        for letter in task.no_loop_over.split():
            if counts := self._loops(letter):
                called = own_calls(self.candidate, task.inputs[0])
                return messages.loops(names_of_axes.noun(letter), letter, counts, called)
        return ""

    def _loops(self, letter: str) -> list[tuple[int, int]]:
        """Sizes of an axis and Python's steps for them, where these grow with it; else nothing."""
        task, counts = self.exercise, []
        for size in (6, 12, 24):
            given = names_of_axes.resized(task.axes, task.names, task.inputs[0], letter, size)
            counts.append((size, steps(self.candidate, given)))
        (_, few), (_, more), (_, many) = counts
        # A branch for large sizes takes more steps, too, but not more and more.
        grows = 0 < few < more and many - more >= 1.5 * (more - few)
        return [counts[0], counts[2]] if grows else []

    def _beyond(self) -> Verdict:
        """Find the input of the contract, or the gradient, for which an answer is wrong.

        Notes say where it is only fragile, and whether it was too slow for some of the inputs.
        """
        task, fragile = self.exercise, {}
        for wanted, got, reason in self._misfits():
            if not reason or wanted.told in task.named:
                return self._right_but(wanted, got, reason)
            right = wanted.expected.value
            note = messages.fragile(wanted.told, reason, got.error, got.value, right)
            fragile.setdefault(messages.REASONS[reason], note)
        problem, note = self._wrong_gradient() if task.trained else ("", "")
        if problem:
            return _refused(problem)
        with same_conditions():
            remark = task.remark(self.used) if task.remark else ""
        slow = messages.fewer_inputs() if self.slow else ""
        notes = [remark, *list(fragile.values())[:MOST_NOTES], note, slow]
        return Verdict("passed", None, task.checked, notes=tuple(filter(None, notes)))

    def _misfits(self) -> list[tuple[ContractInput, Outcome, str]]:
        """Inputs of the contract with a result that does not fit, and why it is only fragile.

        The last one's reason is "" if the answer is wrong there.
        """
        task, found = self.exercise, []
        contract = copy.deepcopy(task.contract)  # an answer that is stopped may leave a hook in it
        reference, begin = task.in_use(task.reference), time.perf_counter()
        with same_conditions(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of inputs that the learner never sees
            for wanted in sorted(contract, key=lambda one: one.kind is Kind.SIZE):  # slow
                given = wanted.arguments, task.names, task.several
                try:
                    with time_limit(SECONDS - (time.perf_counter() - begin)):
                        # It was seen to change nothing, or it would not have come so far.
                        got = call_again(self.used, *given, share_modules=True)
                except TooSlow:
                    self.slow = True
                    continue
                if fits(wanted, got):
                    continue
                reason = why_fragile(wanted, got, self.used, reference, task.several)
                found.append((wanted, got, reason))
                if not reason:
                    break
        return found

    def _right_but(self, wanted: ContractInput, got: Outcome, reason: str) -> Verdict:
        """The answer is wrong for an input of the contract, or fails where the task asks for it."""
        right, given = wanted.expected.value, wanted.arguments
        problem = self._problem(got, right, given, wanted.atol)
        if reason and is_number(got.value) and not torch.as_tensor(got.value).isfinite().all():
            problem += f"\n{messages.because(reason)}"
        lost = {
            name: advice
            for name, has, *advice in self.exercise.properties
            if not got.error and holds(has, right, given) > holds(has, got.value, given)
        }
        advice = next(iter(lost.values()), ())
        told = messages.right_but(wanted.told, problem, list(lost), self.candidate, *advice)
        return _refused(told, messages.inputs(self.exercise.names, given))

    def _wrong_gradient(self) -> tuple[str, str]:
        """What is wrong with the gradients, or why the answer is only fragile."""
        task, arguments = self.exercise, self.exercise.inputs[0]
        pairs = zip(task.names, arguments, strict=False)
        floats = [name for name, argument in pairs for _ in trainable(argument)]
        try:
            mine = gradients(self.used, arguments, task.several)
        except Exception as error:
            if "modified by an inplace operation" in messages.text_of(error):
                return "", messages.backward_in_place()
            return messages.raised_with_gradients(error, self.candidate), ""
        right = gradients(task.in_use(task.reference), arguments, task.several)
        for name, got, wanted in zip(floats, mine, right, strict=True):
            if wanted is None:
                continue
            if got is None or not close(got, wanted, 1e-4, 1e-3).all():
                return messages.wrong_gradient(name, got is None, self.candidate), ""
        return "", ""


def holds(has: Callable, value: Tensor, arguments: tuple) -> bool:
    """Tell whether a result has a property."""
    try:
        return bool(has(value, *arguments))
    except Exception:  # a property may trip over an answer that its author did not foresee
        return False


def _refused(problem: str, details: str = "") -> Verdict:
    """The verdict on right numbers to which something else is wrong; its first line says what."""
    return Verdict("failed", None, problem, "", details, (problem.split("\n")[0],))


def _lines(*texts: str) -> str:
    """The texts below one another, without those that are empty."""
    return "\n".join(filter(None, texts))
