"""What an exercise is, and how an answer to it is judged.

An exercise knows a right answer (the reference), the mistakes that people make (most of them as a
change of a few characters in the reference) and inputs to run them on. Judging a candidate means:
run it, the reference and the mistakes on the same inputs, and compare what comes out. So a mistake
is recognised by what it does, however it is written.
"""

import ast
import copy
import inspect
import itertools
import textwrap
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from attention_base.known import Known, program
from attention_base.same import ATOL, RTOL, close, same, same_conditions
from feedback import axes as names_of_axes
from feedback import messages
from feedback.calls import (
    CalledNames,
    Outcome,
    TooSlow,
    call,
    call_again,
    gradients,
    is_number,
    numpy_calls,
    own_calls,
    steps,
    time_limit,
    trainable,
)
from feedback.contracts import ContractInput, Kind, contract_inputs, fits, why_fragile
from feedback.observations import observe
from feedback.observations.order import Rank
from feedback.observations.trial import Observation, Trial

SECONDS = 2  # that a check may take: it tries fewer inputs with an answer that is slow
FEW = 24  # tokens, and whatever else an axis counts, for such an answer
MOST_NOTES = 2  # about a right answer
EFFECT = 0.01  # how far the effects of two answers lie apart if they make the same mistake


@dataclass(frozen=True)
class Mistake:
    """A mistake people make in an exercise."""

    known: Known  # its name, what it changes in the reference, and what to tell
    # In the place of a change, where the mistake is another program: a function that makes it.
    function: Callable | None = None
    # The exercise that it belongs to; the exercise sets it.
    exercise: "Exercise | None" = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """What is wrong, in a few words."""
        return self.known.name

    @property
    def message(self) -> str:
        """What the learner sees, and why."""
        return self.known.message

    @property
    def code(self) -> Callable:
        """The mistake as a function; a change is compiled when it is first needed."""
        again = self.known in self.exercise.known
        right = self.exercise.reworded if again else self.exercise.reference
        return self.function or program(right, self.known)


@dataclass(frozen=True)
class Verdict:
    """What became of a candidate.

    Attributes
    ----------
    status
        "passed", "not attempted" or "failed".
    mistake
        The name of the recognised mistake, or None.
    message
        What to tell the learner; a recognised mistake's own message, word for word.
    place
        Of a wrong answer: one place where it shows.
    details
        What is told on request: the input, what holds all the same, and more.
    observations
        For any other wrong answer: what experiments found out about it, the best first.
    notes
        For a right answer: where it is fragile.
    """

    status: str
    mistake: str | None
    message: str
    place: str = ""
    details: str = ""
    observations: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def told(self, details: bool = False) -> str:
        """The message and the place, and the details on request."""
        return _lines(self.message, self.place, self.details if details else "")


@dataclass(frozen=True)
class Exercise:
    """A function to write, and everything needed to judge it."""

    id: str  # such as "03.1"
    # A right answer: a plain ``def`` with the name and signature of the notebook's stub.
    reference: Callable
    # Makes the check inputs, argument tuples, the same each time.
    cases: Callable[[], list[tuple]]
    _: KW_ONLY
    # These four are told by the notebook's page, which `lesson.pages` joins on.
    title: str = ""
    checked: str = ""  # what a pass proves, in words
    hints: tuple[str, ...] = ()  # from vague to nearly there
    mistakes: tuple[Mistake, ...] = ()  # that are recognised
    # Known bugs of attention or of a block that are recognised, too, and what makes each; None
    # where it is its change of `reworded`.
    known: Mapping[Known, Callable | None] = field(default_factory=dict)
    # The reference again, in the words that these bugs change; and what has become of its words
    # that the mistakes change.
    reworded: Callable | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    accepted: tuple[Callable, ...] = ()  # other right forms: any of their numbers will do
    # Pairs of a name, such as "rows sum to 1", and a function of the output and the arguments that
    # says whether it holds. Told to a learner whose answer is wrong.
    properties: tuple[tuple[str, Callable], ...] = ()
    # What a result does is judged, not its numbers: a function of the result and the arguments that
    # returns the effect and what is wrong with it, in words ("" for nothing). It may raise
    # TypeError or ValueError, in words, for what has no effect.
    effect: Callable | None = None
    # The wrong program that the notebook's stub holds, where the task is to fix it.
    given: Callable | None = None
    # Where one call is not enough to judge an answer: a function that calls it, used(answer,
    # *arguments of a case), and returns what is judged. It takes as many arguments as the answer.
    used: Callable | None = None
    judged: str = "out"  # what that is in code, to name a place in it
    # What is judged are several results, side by side along the last axis: what each is called, and
    # its axes. The last of these says how wide it is; a result may end before the last ones.
    parts: Mapping[str, str] = field(default_factory=dict)
    # How far a number may lie from the reference's, plus one part in 100 000 of it.
    atol: float = ATOL
    # The answer is several tensors of one shape, as a tuple, a list or one by one from a generator;
    # they are judged stacked.
    several: bool = False
    # What the axes of the arguments and of the result ("return") are called: "B T C", or "... C"
    # where any axes may stand in front. More check inputs follow from them
    # (`feedback.contracts`), and what is observed is told in these names.
    axes: Mapping[str, str] = field(default_factory=dict)
    # Sizes that are no axis of an argument, by name: functions of the arguments.
    sizes: Mapping[str, Callable] = field(default_factory=dict)
    # Pairs of a name, such as "the masked scores", and a function of the arguments: steps on the
    # way, and other results that people hand in for the right one.
    intermediates: tuple[tuple[str, Callable], ...] = ()
    # A function of an answer, called as it is judged, that says what else there is to tell of a
    # right one; "" for nothing.
    remark: Callable | None = None
    without: str = ""  # a word: an answer may call no function of torch that has it in its name
    # Pairs of words, such as "softmax", and names of functions, one of which has to be called.
    needs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    no_loop_over: str = ""  # axes, such as "B T", over which an answer may not loop in Python
    trained: bool = False  # whether gradients have to reach all float tensors and parameters
    optional: bool = False  # `progress` does not wait for it
    # Inputs beyond the check inputs that the task names, as `ContractInput.told` has them: for
    # these, an answer that fails is not only fragile.
    named: tuple[str, ...] = ()
    _remembered: dict[Callable, list[Outcome]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _experiments: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        own = tuple(replace(mistake, exercise=self) for mistake in self.mistakes)
        object.__setattr__(self, "mistakes", own)

    def check(self, candidate: Callable) -> Verdict:
        """Judge a candidate by what it does on the check inputs.

        What the candidate raises becomes a verdict; only an interrupt passes through. The random
        state and the number of threads are the same after as before.

        Returns
        -------
        Verdict
            "not attempted" when the candidate raises NotImplementedError, as a stub does, or has
            the code of the program that was given.
        """
        problem = messages.not_callable(candidate, self.reference, self.inputs[0])
        if problem:
            return Verdict("failed", None, problem)
        if self.given and _code(candidate) == _code(self.given):
            return Verdict("not attempted", None, messages.not_changed())
        if self._smaller is not None and self._seconds(candidate) > SECONDS:
            verdict = self._smaller.check(candidate)
            if verdict.status != "passed":
                return verdict
            return replace(
                verdict, notes=tuple(dict.fromkeys([*verdict.notes, messages.fewer_inputs()]))
            )
        outcomes = self.run(candidate)
        if any(_is_stub(outcome.error) for outcome in outcomes):
            return Verdict("not attempted", None, messages.not_attempted(candidate))
        problems = self._problems(candidate, outcomes, self.reference)
        for form in self.accepted if any(problems) else ():
            if not any(of_form := self._problems(candidate, outcomes, form)):
                problems = of_form
        if any(problems):
            return self._failure(candidate, outcomes, problems)
        if problem := self._broken_requirement(candidate, outcomes):
            return Verdict("failed", None, problem, observations=(problem.split("\n")[0],))
        return self._beyond(candidate)

    def _problems(self, candidate: Callable, outcomes: list[Outcome], right: Callable) -> list[str]:
        """What is wrong on each check input, compared with a right form; "" where nothing is."""
        return [
            self._problem(candidate, got, wanted.value, arguments)
            for got, wanted, arguments in zip(
                outcomes, self.remembered(right), self.inputs, strict=True
            )
        ]

    def _seconds(self, candidate: Callable) -> float:
        """How long all check inputs may take, if the time grows as the square of a size."""
        small, seconds = self._smaller.inputs[0], []
        for _ in range(2):  # the first call finds PyTorch cold
            start = time.perf_counter()
            call(self._in_use(candidate), small, self._argument_names(), self.several)
            seconds.append(time.perf_counter() - start)
        ratio = max(
            mine.numel() / few.numel()
            for mine, few in zip(self.inputs[0], small, strict=True)
            if isinstance(mine, Tensor)
        )
        return min(seconds) * ratio**2 * len(self.inputs)

    @cached_property
    def _smaller(self) -> "Exercise | None":
        """The same exercise with few tokens, for answers that take long; None if it has few."""
        names = self._argument_names()
        letters = names_of_axes.all_letters(self.axes)

        def smaller() -> list[tuple]:
            cases = self.cases()
            for letter in letters:
                cases = [
                    names_of_axes.resized(self.axes, names, case, letter, FEW)
                    if names_of_axes.sizes(self.axes, names, case).get(letter, 0) > FEW
                    else case
                    for case in cases
                ]
            return cases

        sizes = [
            self._sizes(arguments).get(letter, 0) for arguments in self.inputs for letter in letters
        ]
        return replace(self, cases=smaller) if max(sizes, default=0) > FEW else None

    def _failure(
        self, candidate: Callable, outcomes: list[Outcome], problems: list[str]
    ) -> Verdict:
        """Name the mistake; where it is no known one, tell what experiments find out."""
        case = next(i for i, problem in enumerate(problems) if problem)
        got, expected = outcomes[case], self.remembered(self.reference)[case].value
        shown_input = messages.inputs(self._argument_names(), self.inputs[case])
        holds = "" if got.changed_input else self._what_holds(case, got.value, expected)
        for mistake in self.mistakes:
            if self.same(outcomes, self.remembered(mistake.code)):
                place, _, more = problems[case].partition("\n")
                details = _lines(more, shown_input, holds)
                return Verdict("failed", mistake.name, mistake.message, place, details)
        forbidden = messages.forbidden_call(self.without) if self._forbidden(got) else ""
        problem = problems[case].removesuffix(forbidden)
        if not problem:  # all numbers are right, so far
            also = self._beyond(candidate)
            also = also.message if also.status == "failed" else ""
            forbidden = f"{messages.RIGHT_BUT} {forbidden[0].lower()}{forbidden[1:]}"
            told = (forbidden, *filter(None, [also.split("\n")[0]]))
            return Verdict("failed", None, _lines(forbidden, also), observations=told)
        pairs = self._two_mistakes(outcomes)
        if self.effect:
            observations = tuple(one.text for one in pairs)
        else:
            observations = self._observed(candidate, outcomes, pairs)
        told = " ".join(observations)
        if got.error or got.changed_input:  # what was observed may only follow from this
            remedy = messages.remedy(got.error) if got.error and told else ""
            message = _lines(problem.removesuffix(remedy).strip(), told)
            rest = _lines(remedy, shown_input)
            place, details = ("", rest) if told else (rest, "")
        elif told:
            message, place, details = told, _lines(problem, forbidden), _lines(shown_input, holds)
        else:
            message, place, details = _lines(problem, forbidden, holds), "", shown_input
        if self.effect:
            observations = observations or (problem,)
        return Verdict("failed", None, message, place, details, observations)

    def _observed(
        self, candidate: Callable, outcomes: list[Outcome], pairs: Iterator[Observation]
    ) -> tuple[str, ...]:
        """What experiments find out; of several results, about one that is wrong."""
        trial = self._trial(candidate, outcomes)
        if any(one.error and messages.is_refused(one.error, candidate) for one in outcomes):
            return ()  # it raises nothing itself, and the refusal says all
        if not self.parts or not trial.pairs:
            return observe(trial, pairs)
        of_parts = {name: self._trial_of_part(trial, name) for name in self.parts}
        wrong = [name for name, one in of_parts.items() if not all(one.right)]
        if not wrong:  # the numbers are right, and something else is not
            return observe(trial, pairs)
        right = [name for name in of_parts if name not in wrong]
        told = observe(of_parts[wrong[-1]], pairs)  # of wrong weights follow wrong outputs
        told = messages.told_of_part(told, wrong[-1])
        return (messages.wrong_part(wrong[-1], right), *told[:1]) if right else told

    def _trial_of_part(self, trial: Trial, name: str) -> Trial:
        """The same answer, of which only one of its results is seen."""

        def only(function: Callable) -> Callable:
            return lambda *arguments: self._part(function(*arguments), arguments, name)

        def of(outcomes: Sequence[Outcome]) -> list[Outcome]:
            return [
                replace(one, value=self._part(one.value, arguments, name))
                for one, arguments in zip(outcomes, self.inputs, strict=True)
            ]

        whole = replace(
            trial,
            candidate=only(trial.candidate),
            reference=only(trial.reference),
            axes={**self.axes, "return": self.parts[name]},
            got=of(trial.got),
            expected=of(trial.expected),
        )
        shown = [i for i, one in enumerate(whole.expected) if one.value.numel()]
        return replace(
            whole.only(shown), remembered=self._experiments.setdefault(("part", name), {})
        )

    def _part(self, value: Tensor, arguments: tuple, name: str) -> Tensor:
        """One of several results that stand side by side; empty where it is not among them."""
        start, end = self._place_of_part(arguments, name)
        return value[..., start:end]

    def _place_of_part(self, arguments: tuple, name: str) -> tuple[int, int]:
        sizes, start = self._sizes(arguments), 0
        for one, axes in self.parts.items():
            end = start + sizes[names_of_axes.letters(axes)[-1]]
            if one == name:
                return start, end
            start = end
        raise KeyError(name)

    def _two_mistakes(self, outcomes: list[Outcome]) -> Iterator[Observation]:
        """Two mistakes that give just these outcomes, unless most of one is nan."""
        values = [torch.as_tensor(one.value) for one in outcomes if is_number(one.value)]
        if not values or any(value.isfinite().double().mean() < 0.5 for value in values):
            return
        for told, (function, first) in self._pairs.items():
            likely = self._same_outcome(outcomes[0], first)
            if likely and self.same(outcomes, self.remembered(function)):
                yield Observation(Rank.TWO_MISTAKES, told)
                return

    @cached_property
    def _pairs(self) -> dict[str, tuple[Callable, Outcome]]:
        """Two mistakes at a time in one program, and what it makes of the first input."""
        changes = [mistake.known for mistake in self.mistakes if not mistake.function]
        again = [
            replace(one, changes=tuple((self.words.get(old, old), new) for old, new in one.changes))
            for one in changes
        ]
        names, found = self._argument_names(), {}
        with same_conditions(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for right, known in ((self.reference, changes), (self.reworded, again)):
                for pair in itertools.combinations(known if right else (), 2):
                    told = f"Two mistakes at once: {'; '.join(one.name for one in pair)}."
                    if told in found:
                        continue
                    if function := program(right, *pair) or program(right, *pair[::-1]):
                        used = self._in_use(function)
                        first = call_again(used, self.inputs[0], names, self.several)
                        found[told] = function, self._with_effect(first, self.inputs[0])
        return found

    def _trial(self, candidate: Callable, outcomes: list[Outcome]) -> Trial:
        names = self._argument_names()
        return Trial(
            self._in_use(candidate),
            self._in_use(self.reference),
            names,
            self.axes,
            copy.deepcopy(self.inputs),  # an experiment that raises may leave a hook in a module
            outcomes,
            self.remembered(self.reference),
            [self._sizes(arguments) for arguments in self.inputs],
            self.intermediates,
            self.several,
            self.atol,
            self._experiments,
        )

    def _sizes(self, arguments: tuple) -> dict[str, int]:
        found = names_of_axes.sizes(self.axes, self._argument_names(), arguments)
        return found | {name: size(*arguments) for name, size in self.sizes.items()}

    # ------------------------------------------------ when all plain check inputs are right

    def _broken_requirement(self, candidate: Callable, outcomes: list[Outcome]) -> str:
        """Say which requirement an answer with the right numbers breaks; "" for none."""
        for name, has in self._sure_properties:
            for arguments, got in zip(self.inputs, outcomes, strict=True):
                if not _holds(has, got.value, arguments):
                    return messages.property_missing(name, self.atol)
        called = frozenset.union(*(outcome.called for outcome in outcomes))
        for what, names in self.needs:
            if not (called | numpy_calls(candidate)) & {*names}:
                return messages.missing_call(what, names)
        for letter in self.no_loop_over.split():
            if counts := self._loops(candidate, letter):
                called = own_calls(candidate, self.inputs[0])
                return messages.loops(names_of_axes.noun(letter), letter, counts, called)
        return ""

    @cached_property
    def _sure_properties(self) -> list[tuple[str, Callable]]:
        """The properties that all right answers have on all check inputs."""
        right = [self.remembered(form) for form in (self.reference, *self.accepted)]
        return [
            (name, has)
            for name, has in self.properties
            if all(
                _holds(has, outcome.value, arguments)
                for outcomes in right
                for arguments, outcome in zip(self.inputs, outcomes, strict=True)
            )
        ]

    def _loops(self, candidate: Callable, letter: str) -> list[tuple[int, int]]:
        """Sizes of an axis and Python's steps for them, where these grow with it; else nothing."""
        counts = []
        for size in (6, 12, 24):
            arguments = names_of_axes.resized(
                self.axes, self._argument_names(), self.inputs[0], letter, size
            )
            counts.append((size, steps(candidate, arguments)))
        (_, few), (_, more), (_, many) = counts
        # A branch for large sizes takes more steps, too, but not more and more.
        grows = 0 < few < more and many - more >= 1.5 * (more - few)
        return [counts[0], counts[2]] if grows else []

    @cached_property
    def contract(self) -> list[ContractInput]:
        """Inputs that the contract allows beside the plain cases, with the right results."""
        if self.effect:  # the task names all that a result has to do
            return []
        right = [self._in_use(form) for form in (self.reference, *self.accepted)]
        names = self._argument_names()
        with same_conditions():
            cases = (self._smaller or self)._full_inputs
            return contract_inputs(right, cases, self.axes, names, self.atol, self.several)

    @property
    def _full_inputs(self) -> list[tuple]:
        """The check inputs with the default of each argument that is left out."""
        parameters = inspect.signature(self._in_use(self.reference)).parameters.values()
        defaults = [p.default for p in parameters]
        return [(*arguments, *defaults[len(arguments) :]) for arguments in self.inputs]

    def _beyond(self, candidate: Callable) -> Verdict:
        """Find the input of the contract, or the gradient, for which an answer is wrong.

        Notes say where it is only fragile, and whether it was too slow for some of the inputs.
        """
        names = self._argument_names()
        contract = copy.deepcopy(self.contract)  # an answer that is stopped may leave a hook in it
        notes: dict[str, str] = {}
        begin, slow = time.perf_counter(), False
        used, reference = self._in_use(candidate), self._in_use(self.reference)
        with same_conditions(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of inputs that the learner never sees
            for wanted in sorted(contract, key=lambda one: one.kind is Kind.SIZE):  # slow
                left = SECONDS - (time.perf_counter() - begin)
                try:
                    with time_limit(left):
                        # It was seen to change nothing, or it would not have come so far.
                        got = call_again(
                            used, wanted.arguments, names, self.several, share_modules=True
                        )
                except TooSlow:
                    slow = True
                    continue
                if fits(wanted, got):
                    continue
                reason = why_fragile(wanted, got, used, reference, self.several)
                if not reason or wanted.told in self.named:
                    right, given = wanted.expected.value, wanted.arguments
                    problem = self._problem(candidate, got, right, given, wanted.atol)
                    lost = [
                        name
                        for name, has in self.properties
                        if not got.error
                        and _holds(has, right, given) > _holds(has, got.value, given)
                    ]
                    told = messages.right_but(wanted.told, problem, lost, candidate)
                    shown = messages.inputs(names, wanted.arguments)
                    observed = (told.split("\n")[0],)
                    return Verdict("failed", None, told, "", shown, observed)
                note = messages.fragile(
                    wanted.told, reason, got.error, got.value, wanted.expected.value
                )
                notes.setdefault(messages.REASONS[reason], note)
        problem, note = self._wrong_gradient(candidate) if self.trained else ("", "")
        if problem:
            return Verdict("failed", None, problem, observations=(problem.split("\n")[0],))
        more = [note, messages.fewer_inputs() if slow else ""]
        with same_conditions():
            remark = self.remark(used) if self.remark else ""
        told = (*filter(None, [remark]), *list(notes.values())[:MOST_NOTES], *filter(None, more))
        return Verdict("passed", None, self.checked, notes=told)

    def _wrong_gradient(self, candidate: Callable) -> tuple[str, str]:
        """What is wrong with the gradients, or why it is only fragile."""
        arguments = self._full_inputs[0]
        pairs = zip(self._argument_names(), arguments, strict=True)
        floats = [name for name, argument in pairs for _ in trainable(argument)]
        try:
            mine = gradients(self._in_use(candidate), arguments, self.several)
        except Exception as error:
            if "modified by an inplace operation" in str(error):
                return "", messages.backward_in_place()
            return messages.raised_with_gradients(error, candidate), ""
        right = gradients(self._in_use(self.reference), arguments, self.several)
        for name, got, wanted in zip(floats, mine, right, strict=True):
            if wanted is None:
                continue
            if got is None or not close(got, wanted, 1e-4, 1e-3).all():
                return messages.wrong_gradient(name, got is None, candidate), ""
        return "", ""

    # ------------------------------------------------ running and comparing

    def run(self, function: Callable) -> list[Outcome]:
        """Call a function on each check input, every time from the same random state."""
        names, outcomes, used = self._argument_names(), [], self._in_use(function)
        for arguments in self.inputs:
            if self.without or self.needs:
                with CalledNames() as watch:
                    outcome = call(used, arguments, names, self.several)
                outcome = replace(outcome, called=frozenset(watch.names))
            else:
                outcome = call(used, arguments, names, self.several)
            outcomes.append(self._with_effect(outcome, arguments))
        return outcomes

    def _in_use(self, function: Callable) -> Callable:
        """What is called: the function itself, or several of its calls."""
        return partial(self.used, function) if self.used else function

    def _with_effect(self, outcome: Outcome, arguments: tuple) -> Outcome:
        """The same outcome, and beside it what its value does, if this is what is judged."""
        if not self.effect or outcome.error or outcome.value is None:
            return outcome
        try:
            effect, failure = self.effect(outcome.value, *arguments)
        except (TypeError, ValueError) as error:
            effect, failure = None, str(error)
        return replace(outcome, effect=effect, failure=failure)

    def _forbidden(self, outcome: Outcome) -> bool:
        return bool(self.without) and any(self.without in name for name in outcome.called)

    def remembered(self, function: Callable) -> list[Outcome]:
        """Run the reference or a mistake, once only: neither it nor the check inputs change."""
        if function not in self._remembered:
            outcomes = self.run(function)
            for outcome in outcomes:
                if outcome.error:  # its traceback would keep all that the function has computed
                    outcome.error.with_traceback(None)
            self._remembered[function] = outcomes
        return self._remembered[function]

    def same(self, some: list[Outcome], others: list[Outcome]) -> bool:
        """Tell whether two functions' outcomes are the same on every check input."""
        return all(map(self._same_outcome, some, others))

    def _same_outcome(self, a: Outcome, b: Outcome) -> bool:
        if a.changed_input != b.changed_input or self._forbidden(b) > self._forbidden(a):
            return False
        if a.error or b.error:
            return type(a.error) is type(b.error) and str(a.error) == str(b.error)
        if a.effect is not None and b.effect is not None:
            return same(a.effect, b.effect, EFFECT)
        if a.failure or b.failure:
            return a.failure == b.failure
        if not (is_number(a.value) and is_number(b.value)):
            return type(a.value) is type(b.value) and not isinstance(a.value, Tensor)
        a, b = torch.as_tensor(a.value), torch.as_tensor(b.value)
        return a.shape == b.shape and bool(self._close(a, b).all())

    def _close(self, a: Tensor, b: Tensor) -> Tensor:
        return close(a, b, self.atol, RTOL)

    @cached_property
    def inputs(self) -> list[tuple]:
        """The check inputs. Functions are called with copies of them."""
        with same_conditions():
            return self.cases()

    def _argument_names(self) -> list[str]:
        return list(inspect.signature(self._in_use(self.reference)).parameters)

    def _problem(
        self,
        candidate: Callable,
        got: Outcome,
        expected: Any,
        arguments: tuple,
        atol: float | None = None,
    ) -> str:
        """Say what is wrong with the outcome of one call; "" when nothing is."""
        if got.error:
            return messages.raised(got.error, candidate)
        if got.changed_input:
            given = dict(zip(self._argument_names(), self._full_inputs[0], strict=True))
            return messages.changed_input(got.changed_input, given[got.changed_input])
        value = got.value
        if value is None:
            return messages.nothing_returned()
        if self.effect:
            return got.failure
        expected = torch.as_tensor(expected)
        if not isinstance(value, Tensor) and (expected.dim() or not is_number(value)):
            return messages.not_a_tensor(value, expected, self.several)
        if type(value) is int and expected.is_floating_point():
            value = float(value)  # as of max(0, change): Python's 0 is the number 0.0
        value = torch.as_tensor(value)
        if value.shape != expected.shape:
            if self.several and value.dim() == expected.dim():
                return messages.wrong_number_of_tensors(value, expected)
            if self.several:
                return messages.one_tensor(value, expected)
            return messages.wrong_shape(value, expected)
        if messages.kind(value) != messages.kind(expected):
            return messages.wrong_kind(value, expected)

        right = close(value, expected, self.atol if atol is None else atol, RTOL)
        if not right.all():
            for name in self.parts:
                mine, wanted, ok = (
                    self._part(z, arguments, name) for z in (value, expected, right)
                )
                if not ok.all():
                    return messages.wrong_numbers(mine, wanted, ok, name, part=True)
            return messages.wrong_numbers(value, expected, right, self.judged)
        if self._forbidden(got):
            return messages.forbidden_call(self.without)
        if value.dim() and value.is_floating_point() and value.dtype != expected.dtype:
            return messages.wrong_dtype(value, expected)
        return ""

    def _what_holds(self, case: int, value: Any, expected: Any) -> str:
        """Say what is right about a wrong answer of the right shape."""
        if self.effect:
            return ""
        if not (isinstance(value, Tensor) and isinstance(expected, Tensor)):
            return ""
        if value.is_complex() or value.shape != expected.shape or not value.dim():
            return ""
        if self.parts:
            return _lines(*self._what_holds_in_parts(case, value, expected))
        holds, fails, extra = [], [], []
        for name, has in self.properties:
            wanted = _holds(has, expected, self.inputs[case])
            if _holds(has, value, self.inputs[case]):
                (holds if wanted else extra).append(name)
            elif wanted and value.isfinite().all():  # of nan, nothing holds
                fails.append(name)
        right = self._close(value, expected)
        return _lines(
            messages.lost(value, expected), messages.what_holds(value, right, holds, fails, extra)
        )

    def _what_holds_in_parts(self, case: int, value: Tensor, expected: Tensor) -> Iterator[str]:
        """The same for each of several results that is wrong."""
        for name in self.parts:
            mine, wanted = (self._part(z, self.inputs[case], name) for z in (value, expected))
            right = self._close(mine, wanted)
            if not right.all():
                holds = messages.what_holds(mine, right, [], [], [])
                told = _lines(messages.lost(mine, wanted), holds)
                yield f"Of your {name}, {told}"


def _lines(*texts: str) -> str:
    """The texts below one another, without those that are empty."""
    return "\n".join(filter(None, texts))


def _code(function: Callable) -> str:
    """What a function's arguments and lines are, without comments and docstring; "" if unknown."""
    try:
        node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, SyntaxError, TypeError):
        return ""
    if not isinstance(node, ast.FunctionDef):  # a lambda
        return ""
    body = node.body[ast.get_docstring(node) is not None :]
    return ast.unparse(node.args) + "".join(f"\n{ast.unparse(line)}" for line in body)


def _is_stub(error: Exception | None) -> bool:
    """Tell whether this is a stub's own ``raise NotImplementedError``.

    PyTorch raises NotImplementedError too, for instance for the softmax of whole numbers. That
    one has a text, and the line it comes from does not begin with ``raise``.
    """
    if not isinstance(error, NotImplementedError):
        return False
    line = traceback.extract_tb(error.__traceback__)[-1].line or ""
    return not str(error) or line.startswith("raise")


def _holds(property: Callable, value: Tensor, arguments: tuple) -> bool:
    try:
        return bool(property(value, *arguments))
    except Exception:  # a property may trip over an answer that its author did not foresee
        return False
