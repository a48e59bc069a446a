"""What an exercise is, and how an answer to it is judged.

An exercise knows a right answer (the reference), the mistakes that people make (most of them as a
change of a few characters in the reference) and inputs to run them on. Judging a candidate means:
run it, the reference and the mistakes on the same inputs, and compare what comes out. So a mistake
is recognised by what it does, however it is written.
"""

import copy
import inspect
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from helpers.lesson import messages
from helpers.lesson.patches import patched
from helpers.torch_settings import one_thread, seed_all

Change = tuple[str, str]  # an old text and a new one


@dataclass(frozen=True)
class Mistake:
    """A mistake people make: its name, what it changes in the reference, and what to tell.

    Attributes
    ----------
    name
        What is wrong, in a few words.
    change
        The old and the new text, or several such pairs, put in one after the other. Each old text
        stands in the reference's source exactly once.
    function
        In the place of a change, where the mistake is another program: a function that makes it.
    message
        What the learner sees, and why.
    exercise
        The exercise that it belongs to; the exercise sets it.
    """

    name: str
    _: KW_ONLY
    change: Change | tuple[Change, ...] = ()
    function: Callable | None = None
    message: str
    exercise: "Exercise | None" = field(default=None, repr=False, compare=False)

    @cached_property
    def code(self) -> Callable:
        """The mistake as a function; a change is compiled when it is first needed.

        Raises
        ------
        ValueError
            When the change does not fit the reference.
        """
        if self.function:
            return self.function
        one_change = isinstance(self.change[0], str)
        changes = [self.change] if one_change else self.change
        return patched(self.exercise.reference, changes, f"{self.exercise.id}, {self.name}")


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
    details
        For a recognised mistake: the input, what was expected and what came.
    """

    status: str
    mistake: str | None
    message: str
    details: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of one call: a value or an exception, and what else it did."""

    value: Any = None
    error: Exception | None = None
    changed_input: str | None = None  # the name of the argument that was written into
    forbidden_call: bool = False  # whether it called what the exercise is to do without


@dataclass(frozen=True)
class Exercise:
    """A function to write, and everything needed to judge it.

    Attributes
    ----------
    id, title
        Such as "03.1" and "Causal softmax".
    reference
        A right answer: a plain ``def`` with the name and signature of the notebook's stub. It
        returns a tensor (or one number).
    cases
        Makes the check inputs: a list of argument tuples, the same each time.
    mistakes
        The mistakes that are recognised, most likely first.
    hints
        From vague to nearly there.
    accepted
        Other right forms, which tests run.
    properties
        Pairs of a name, such as "rows sum to 1", and a function of the output and the arguments
        that says whether it holds. Told to a learner whose answer is wrong.
    checked
        What a pass proves, in words.
    atol
        How far a number may lie from the reference's, plus one part in 100 000 of it.
    several
        The answer is several tensors of one shape, as a tuple, a list or one by one from a
        generator; they are judged stacked.
    without
        A word: an answer may call no function of torch that has it in its name.
    """

    id: str
    title: str
    reference: Callable
    cases: Callable[[], list[tuple]]
    mistakes: tuple[Mistake, ...]
    hints: tuple[str, ...]
    accepted: tuple[Callable, ...] = ()
    properties: tuple[tuple[str, Callable], ...] = ()
    checked: str = ""
    atol: float = 1e-5
    several: bool = False
    without: str = ""
    _remembered: dict[Callable, list[Outcome]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

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
            "not attempted" when the candidate raises NotImplementedError, as a stub does.
        """
        problem = messages.not_callable(candidate, self.reference, self.inputs[0])
        if problem:
            return Verdict("failed", None, problem)
        outcomes = self.run(candidate)
        if any(_is_stub(outcome.error) for outcome in outcomes):
            return Verdict("not attempted", None, messages.not_attempted(candidate))
        expected = self.remembered(self.reference)
        problems = [
            self._problem(candidate, got, wanted.value)
            for got, wanted in zip(outcomes, expected, strict=True)
        ]
        if not any(problems):
            return Verdict("passed", None, self.checked)
        case = next(i for i, problem in enumerate(problems) if problem)
        problem = problems[case]
        shown_input = messages.inputs(self._argument_names(), self.inputs[case])
        for mistake in self.mistakes:
            if self.same(outcomes, self.remembered(mistake.code)):
                details = f"{shown_input}\n{problem}"
                return Verdict("failed", mistake.name, mistake.message, details)
        holds = self._what_holds(case, outcomes[case].value, expected[case].value)
        return Verdict("failed", None, "\n".join(filter(None, [problem, shown_input, holds])))

    def run(self, function: Callable) -> list[Outcome]:
        """Call a function on each check input, every time from the same random state."""
        outcomes = []
        for arguments in self.inputs:
            watch = _CalledNames() if self.without else nullcontext()
            with _same_conditions(), watch as called:
                outcome = _call(function, arguments, self._argument_names(), self.several)
            forbidden = bool(called) and any(self.without in name for name in called.names)
            outcomes.append(replace(outcome, forbidden_call=forbidden))
        return outcomes

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
        if (a.changed_input, a.forbidden_call) != (b.changed_input, b.forbidden_call):
            return False
        if a.error or b.error:
            return type(a.error) is type(b.error) and str(a.error) == str(b.error)
        if not (_is_number(a.value) and _is_number(b.value)):
            return type(a.value) is type(b.value) and not isinstance(a.value, Tensor)
        a, b = torch.as_tensor(a.value), torch.as_tensor(b.value)
        return a.shape == b.shape and bool(self._close(a, b).all())

    def _close(self, a: Tensor, b: Tensor) -> Tensor:
        return _agree(a, b, rtol=1e-5, atol=self.atol)

    @cached_property
    def inputs(self) -> list[tuple]:
        """The check inputs. Functions are called with copies of them."""
        with _same_conditions():
            return self.cases()

    def _argument_names(self) -> list[str]:
        return list(inspect.signature(self.reference).parameters)

    def _problem(self, candidate: Callable, got: Outcome, expected: Any) -> str:
        """Say what is wrong with the outcome of one call; "" when nothing is."""
        if got.error:
            return messages.raised(got.error, candidate)
        if got.changed_input:
            return messages.changed_input(got.changed_input)
        if got.forbidden_call:
            return messages.forbidden_call(self.without)
        value = got.value
        if value is None:
            return messages.nothing_returned()
        expected = torch.as_tensor(expected)
        if not isinstance(value, Tensor) and (expected.dim() or not _is_number(value)):
            return messages.not_a_tensor(value, expected, self.several)
        value = torch.as_tensor(value)
        if value.shape != expected.shape:
            if self.several and value.dim() == expected.dim():
                return messages.wrong_number_of_tensors(value, expected)
            return messages.wrong_shape(value, expected)
        if messages.kind(value) != messages.kind(expected):
            return messages.wrong_kind(value, expected)
        if not self._close(value, expected).all():
            return messages.wrong_numbers(value, expected, self._close)
        if value.dim() and value.is_floating_point() and value.dtype != expected.dtype:
            return messages.wrong_dtype(value, expected)
        return ""

    def _what_holds(self, case: int, value: Any, expected: Any) -> str:
        """Say what is right about a wrong answer of the right shape."""
        if not (isinstance(value, Tensor) and isinstance(expected, Tensor)):
            return ""
        if value.is_complex() or value.shape != expected.shape or not value.dim():
            return ""
        holds, fails, extra = [], [], []
        for name, has in self.properties:
            wanted = _holds(has, expected, self.inputs[case])
            if _holds(has, value, self.inputs[case]):
                (holds if wanted else extra).append(name)
            elif wanted:
                fails.append(name)
        return messages.what_holds(value, self._close(value, expected), holds, fails, extra)


@contextmanager
def _same_conditions() -> Iterator[None]:
    """One thread and the random state of seed 0; afterwards both are as they were before."""
    with one_thread(), torch.random.fork_rng(devices=[]):
        seed_all(0)
        yield


class _CalledNames(TorchFunctionMode):
    """Notes the names of the torch functions and tensor methods that are called meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.add(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


def _call(function: Callable, arguments: tuple, names: list[str], several: bool) -> Outcome:
    given = [_copy(argument) for argument in arguments]
    try:
        value = function(*given)
        if several and isinstance(value, Iterator):
            value = tuple(value)
        if several and len(messages.tensor_shapes(value)) == 1:
            value = torch.stack(tuple(value))
        if isinstance(value, Tensor):  # a copy, since a later call may use the same memory
            value = value.detach().cpu().to_dense().clone()
    except Exception as error:
        return Outcome(error=error)
    for name, before, after in zip(names, arguments, given, strict=False):
        if not _unchanged(before, after):
            return Outcome(value=value, changed_input=name)
    return Outcome(value=value)


def _copy(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        return argument.detach().clone().requires_grad_(argument.requires_grad)
    return copy.deepcopy(argument)


def _unchanged(before: Any, after: Any) -> bool:
    """Compare tensors, the weights of modules, and lists of either; anything else passes."""
    if any(isinstance(before, a) != isinstance(after, a) for a in (nn.Module, list, Tensor)):
        return False
    if isinstance(before, nn.Module):
        before, after = (list(module.state_dict().values()) for module in (before, after))
    if isinstance(before, list):
        return len(before) == len(after) and all(map(_unchanged, before, after))
    if not isinstance(before, Tensor):
        return True
    if (before.shape, before.dtype) != (after.shape, after.dtype):
        return False
    return bool(_agree(before, after).all())


def _agree(a: Tensor, b: Tensor, rtol: float = 0.0, atol: float = 0.0) -> Tensor:
    """Where two tensors agree, as True and False; nan agrees with nan."""
    return torch.isclose(a.double(), b.double(), rtol=rtol, atol=atol, equal_nan=True)


def _is_number(value: Any) -> bool:
    if isinstance(value, Tensor):
        return not value.is_complex()
    return isinstance(value, int | float)


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
