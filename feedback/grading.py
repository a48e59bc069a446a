"""What an exercise is: the definition from which its answers are judged.

An exercise knows a right answer (the reference), the mistakes that people make (most of them as a
change of a few characters in the reference) and inputs to run them on. `judge` runs a candidate,
the reference and the mistakes on the same inputs, and compares what comes out. So a mistake is
recognised by what it does, however it is written.
"""

import inspect
import itertools
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial

import torch
from torch import Tensor

from attention_base.known import Known, program
from attention_base.same import ATOL, RTOL, same, same_conditions
from feedback import axes as names_of_axes
from feedback.calls import CalledNames, Outcome, call, call_again, few_lines, is_number
from feedback.contracts import ContractInput, contract_inputs
from feedback.judge import Judge, Verdict, holds

FEW = 24  # tokens, and whatever else an axis counts, for an answer that takes long
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

    @cached_property
    def code(self) -> Callable:
        """The mistake as a program; a change is compiled when it is first needed."""
        return self.function or self.exercise.changed(self.known)

    @property
    def outcomes(self) -> Iterator[Outcome]:
        """What it does on each check input; on each it runs when needed, once: neither changes."""
        for i, arguments in enumerate(self.exercise.inputs):
            if i == len(self._kept):
                self._kept.append(self.exercise.once(self.code, arguments))
            yield self._kept[i]

    @cached_property
    def _kept(self) -> list[Outcome]:
        return []


@dataclass(frozen=True)
class Exercise:
    """A function to write, and everything needed to judge it.

    What follows from it alone, such as what the reference gives, is computed when it is first
    needed, and kept.
    """

    id: str  # such as "03.1"
    # A right answer: a plain ``def`` with the name and signature of the stub.
    reference: Callable
    # Makes the check inputs, argument tuples, the same each time.
    cases: Callable[[], list[tuple]]
    _: KW_ONLY
    # These four are told by a page, which `pages` joins on.
    title: str = ""
    checked: str = ""  # what a pass proves, in words
    hints: tuple[str, ...] = ()  # from vague to nearly there
    mistakes: tuple[Mistake, ...] = ()  # that are recognised
    accepted: tuple[Callable, ...] = ()  # other right forms: any of their numbers will do
    # Of each a name, such as "rows sum to 1", a function of the output and the arguments that says
    # whether it holds, and, if there is any, advice for an answer for which it only nearly does.
    # Told to a learner whose answer is wrong.
    properties: tuple[tuple[str, Callable] | tuple[str, Callable, str], ...] = ()
    # What a result does is judged, not its numbers: a function of the result and the arguments that
    # returns the effect and what is wrong with it, in words ("" for nothing). It may raise
    # TypeError or ValueError, in words, for what has no effect.
    effect: Callable | None = None
    # The wrong program that the stub holds, where the task is to fix it.
    given: Callable | None = None
    # Where one call is not enough to judge an answer: a function that calls it, used(answer,
    # *arguments of a case), and returns what is judged. It takes as many arguments as the answer.
    used: Callable | None = None
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
    # (`contracts`), and what is observed is told in these names.
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
    ready_made: tuple[Callable, ...] = ()  # other functions for which this holds, too
    # Pairs of words, such as "softmax", and names of functions, one of which has to be called.
    needs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    no_loop_over: str = ""  # axes, such as "B T", over which an answer may not loop in Python
    trained: bool = False  # whether gradients have to reach all float tensors and parameters
    optional: bool = False  # `progress` does not wait for it
    # Inputs beyond the check inputs that the task names, as `ContractInput.told` has them: for
    # these, an answer that fails is not only fragile.
    named: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        own = tuple(replace(mistake, exercise=self) for mistake in self.mistakes)
        object.__setattr__(self, "mistakes", own)

    def check(self, candidate: Callable) -> Verdict:
        """Judge a candidate by what it does on the check inputs.

        What the candidate raises becomes a verdict; only an interrupt passes through. Of what it
        prints, the first lines are shown. The random state and the number of threads are the same
        after as before.

        Returns
        -------
        Verdict
            "not attempted" when the candidate raises NotImplementedError, as a stub does, or has
            the code of the program that was given.
        """
        with few_lines():
            return Judge(self, candidate).verdict()

    # ------------------------------------------------ programs

    @property
    def solution(self) -> str:
        """The text of the reference, as `solution` shows it."""
        return textwrap.dedent(inspect.getsource(self.reference))

    def changed(self, known: Known) -> Callable:
        """The reference with the changes of a mistake."""
        return program(self.reference, known)

    def recognises(self, mistake: str) -> bool:
        """Tell whether it may give a mistake this name."""
        return any(one.name == mistake for one in self.mistakes)

    # ------------------------------------------------ inputs

    @cached_property
    def inputs(self) -> list[tuple]:
        """The check inputs. Functions are called with copies of them."""
        with same_conditions():
            return self.cases()

    @cached_property
    def names(self) -> list[str]:
        """The names of the arguments."""
        return list(inspect.signature(self.in_use(self.reference)).parameters)

    def sizes_of(self, arguments: tuple) -> dict[str, int]:
        """The size of each axis in a call, by its letter, and the other sizes."""
        found = names_of_axes.sizes(self.axes, self.names, arguments)
        return found | {name: size(*arguments) for name, size in self.sizes.items()}

    @cached_property
    def smaller(self) -> "Exercise | None":
        """The same exercise with few tokens, for answers that take long; None if it has few."""

        def cut(case: tuple) -> tuple:
            sizes = names_of_axes.sizes(self.axes, self.names, case)
            for letter in names_of_axes.all_letters(self.axes):
                if sizes.get(letter, 0) > FEW:
                    case = names_of_axes.resized(self.axes, self.names, case, letter, FEW)
            return case

        if all(cut(case) is case for case in self.inputs):
            return None
        return replace(self, cases=lambda: [cut(case) for case in self.cases()])

    @cached_property
    def contract(self) -> list[ContractInput]:
        """Inputs that the contract allows beside the plain cases, with the right results."""
        if self.effect:  # the task names all that a result has to do
            return []
        right = [self.in_use(form) for form in (self.reference, *self.accepted)]
        defaults = [one.default for one in inspect.signature(right[0]).parameters.values()]
        cases = [(*case, *defaults[len(case) :]) for case in (self.smaller or self).inputs]
        with same_conditions():
            return contract_inputs(right, cases, self.axes, self.names, self.atol, self.several)

    # ------------------------------------------------ outcomes

    def in_use(self, function: Callable) -> Callable:
        """What is called: the function itself, or several of its calls."""
        return partial(self.used, function) if self.used else function

    def run(self, function: Callable) -> list[Outcome]:
        """Call a function on each check input, every time from the same random state."""
        return [self._outcome(function, arguments) for arguments in self.inputs]

    def _outcome(self, function: Callable, arguments: tuple) -> Outcome:
        used = self.in_use(function), arguments, self.names, self.several
        if not (self.without or self.needs):
            return self._with_effect(call(*used), arguments)
        with CalledNames(self.ready_made) as watch:
            outcome = call(*used)
        return self._with_effect(replace(outcome, called=frozenset(watch.names)), arguments)

    def _with_effect(self, outcome: Outcome, arguments: tuple) -> Outcome:
        """The same outcome, and beside it what its value does, if this is what is judged."""
        if not self.effect or outcome.error or outcome.value is None:
            return outcome
        try:
            effect, failure = self.effect(outcome.value, *arguments)
        except (TypeError, ValueError) as error:
            effect, failure = None, str(error)
        return replace(outcome, effect=effect, failure=failure)

    def once(self, function: Callable, arguments: tuple) -> Outcome:
        """Run a function of ours, whose outcome is kept."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of programs that the learner never sees
            outcome = self._outcome(function, arguments)
        if outcome.error:  # its traceback would keep all that the function has computed
            outcome.error.with_traceback(None)
        return outcome

    @cached_property
    def right(self) -> list[list[Outcome]]:
        """What the reference and the other right forms give on each check input."""
        forms = (self.reference, *self.accepted)
        return [[self.once(form, given) for given in self.inputs] for form in forms]

    @cached_property
    def pairs(self) -> list[tuple[Mistake, Outcome]]:
        """Two mistakes at a time in one program, and what it makes of the first input."""
        changes = [mistake.known for mistake in self.mistakes if not mistake.function]
        right, given, found = self.reference, self.inputs[0], []
        with same_conditions(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for pair in itertools.combinations(changes, 2):
                if function := program(right, *pair) or program(right, *pair[::-1]):
                    first = call_again(self.in_use(function), given, self.names, self.several)
                    mistake = Mistake(Known("; ".join(one.name for one in pair)), function, self)
                    found.append((mistake, self._with_effect(first, given)))
        return found

    def always(self, has: Callable) -> bool:
        """Tell whether all right answers have a property on all check inputs."""
        return all(
            holds(has, outcome.value, arguments)
            for outcomes in self.right
            for arguments, outcome in zip(self.inputs, outcomes, strict=True)
        )

    @cached_property
    def experiments(self) -> dict:
        """What experiments on the reference gave, which later answers need again."""
        return {}

    # ------------------------------------------------ comparing

    def same(self, some: Iterable[Outcome], others: Iterable[Outcome]) -> bool:
        """Tell whether two functions' outcomes are the same on every check input."""
        return all(map(self.same_outcome, some, others))

    def same_outcome(self, a: Outcome, b: Outcome) -> bool:
        """Tell whether the same came of two calls."""
        if a.changed_input != b.changed_input or self.forbids(b) > self.forbids(a):
            return False
        if a.error or b.error:
            return type(a.error) is type(b.error) and str(a.error) == str(b.error)
        if a.effect is not None and b.effect is not None:
            return same(a.effect, b.effect, EFFECT)
        if a.failure or b.failure:
            return a.failure == b.failure
        if not (is_number(a.value) and is_number(b.value)):
            return type(a.value) is type(b.value) and not isinstance(a.value, Tensor)
        return same(torch.as_tensor(a.value), torch.as_tensor(b.value), self.atol, RTOL)

    def forbids(self, outcome: Outcome) -> bool:
        """Tell whether it came of a function that an answer may not call."""
        return bool(self.without) and any(self.without in name for name in outcome.called)

    def part(self, value: Tensor, arguments: tuple, name: str) -> Tensor:
        """One of several results that stand side by side; empty where it is not among them."""
        sizes, start = self.sizes_of(arguments), 0
        for one, axes in self.parts.items():
            width = sizes[names_of_axes.letters(axes)[-1]]
            if one == name:
                return value[..., start : start + width]
            start += width
        raise KeyError(name)
