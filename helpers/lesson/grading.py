"""What an exercise and a prediction are, and how an answer to an exercise is judged.

An exercise knows a right answer (the reference), the mistakes people make (as running code,
each with its message) and inputs to run them on. Judging a candidate means: run it, the
reference and the mistakes on the same inputs, and compare what comes out. So a mistake is
recognised by what it does, however it is written.
"""

import copy
import inspect
import math
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from helpers.numbers import told_apart

HELPERS = str(Path(__file__).resolve().parents[1])
LIBRARIES = (sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"])

# What torch and Python say of a mistake that beginners make, and what to do about it.
REMEDIES = {
    "must match the size of tensor": "Sizes line up from the right, and each must be equal or 1. "
    "Print the .shape of both tensors.",
    "mat1 and mat2 shapes cannot be": "a @ b needs as many columns in a as b has rows. Print the "
    ".shape of both.",
    "Expected size for first two dimensions": "a @ b needs as many columns in a as b has rows. "
    "Print the .shape of both.",
    "expand(": "What is stored or expanded has more axes than its place. Print the .shape "
    "of both sides.",
    "expanded size of the tensor": "What is stored or expanded does not fit its place. Print "
    "the .shape of both sides.",
    "Boolean value of Tensor": "`and`, `or`, `not` and chains such as 0 <= a < b want one True or "
    "False. For tensors: & | ~, with brackets around each comparison.",
    "operator.invert": "~ wants True and False. A comparison, such as == 1, makes them.",
    "only supports boolean masks": "A mask is True and False. A comparison, such as == 0, makes "
    "them.",
    "return_types": "max, min and others return two tensors when they get a dim: take .values.",
    "'int' object is not iterable": "To count from 0 to n - 1, write range(n).",
    "values to unpack": "If this is a shape: it has one number for each axis, as in "
    "B, T, C = x.shape.",
}


@dataclass(frozen=True)
class Mistake:
    """A mistake people make: its name, code that makes it, and what to tell who made it."""

    name: str
    code: Callable
    message: str


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
class Choice:
    """One choice of a prediction: its text, and why it is right or wrong."""

    text: str
    explanation: str


@dataclass(frozen=True)
class Prediction:
    """A question to answer before running the code: choices by letter, and the right letter."""

    id: str
    question: str
    choices: dict[str, Choice]
    answer: str


@dataclass(frozen=True)
class Outcome:
    """What came of one call: a value or an exception, and what else it did."""

    value: Any = None
    error: Exception | None = None
    changed: str | None = None  # the name of the argument that was written into
    borrowed: bool = False  # whether it called what the exercise is to do without


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
        Makes the check inputs anew: a list of argument tuples.
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

    def check(self, candidate: Callable) -> Verdict:
        """Judge a candidate by what it does on the check inputs.

        What the candidate raises becomes a verdict; only an interrupt passes through. The random
        state is the same after as before.

        Returns
        -------
        Verdict
            "not attempted" when the candidate raises NotImplementedError, as a stub does.
        """
        problem = self._call_problem(candidate)
        if problem:
            return Verdict("failed", None, problem)
        outcomes = self.run(candidate)
        if any(_is_stub(outcome.error) for outcome in outcomes):
            return Verdict("not attempted", None, _not_attempted(candidate))
        expected = self.run(self.reference)
        problems = [
            self._problem(candidate, got, wanted.value)
            for got, wanted in zip(outcomes, expected, strict=True)
        ]
        if not any(problems):
            return Verdict("passed", None, self.checked)
        case = next(i for i, problem in enumerate(problems) if problem)
        problem, told_input = problems[case], self._told_input(case)
        for mistake in self.mistakes:
            if self.same(outcomes, self.run(mistake.code)):
                return Verdict("failed", mistake.name, mistake.message, f"{told_input}\n{problem}")
        held = self._held(case, outcomes[case].value, expected[case].value)
        return Verdict("failed", None, "\n".join(filter(None, [problem, told_input, held])))

    def run(self, function: Callable) -> list[Outcome]:
        """Call a function on each check input, every time from the same random state."""
        outcomes = []
        for arguments in self._inputs():
            watched = _Calls() if self.without else nullcontext()
            with torch.random.fork_rng(devices=[]), watched as calls:
                torch.manual_seed(0)
                outcome = _call(function, arguments, self._names(), self.several)
            borrowed = bool(calls) and any(self.without in name for name in calls.names)
            outcomes.append(replace(outcome, borrowed=borrowed))
        return outcomes

    def same(self, some: list[Outcome], others: list[Outcome]) -> bool:
        """Tell whether two functions' outcomes are the same on every check input."""
        return all(self._same(a, b) for a, b in zip(some, others, strict=True))

    def _same(self, a: Outcome, b: Outcome) -> bool:
        if (a.changed, a.borrowed) != (b.changed, b.borrowed):
            return False
        if a.error or b.error:
            return type(a.error) is type(b.error) and str(a.error) == str(b.error)
        if not (_is_number(a.value) and _is_number(b.value)):
            return type(a.value) is type(b.value) and not isinstance(a.value, torch.Tensor)
        a, b = torch.as_tensor(a.value), torch.as_tensor(b.value)
        return a.shape == b.shape and bool(self._close(a, b).all())

    def _close(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.isclose(a.double(), b.double(), rtol=1e-5, atol=self.atol, equal_nan=True)

    def _inputs(self) -> list[tuple]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.cases()

    def _names(self) -> list[str]:
        return list(inspect.signature(self.reference).parameters)

    # What follows puts into words what is wrong, and what is not.

    def _call_problem(self, candidate: Callable) -> str:
        """Say why the candidate cannot be called at all; empty when it can."""
        name = self.reference.__name__
        if inspect.isclass(candidate):
            made = candidate.__name__
            return f"You handed over a class; give a function, or an instance: {made}(…)."
        if not callable(candidate):
            return (
                f"Expected a function, got {_what(candidate)}.\n"
                f"Hand over the function itself, without brackets after its name: {name}."
            )
        arguments = self._inputs()[0]
        try:
            signature = inspect.signature(candidate)
        except (TypeError, ValueError):  # a built-in function does not tell
            return ""
        try:
            signature.bind(*arguments)
        except TypeError:
            named = ", ".join(self._names()[: len(arguments)])
            return (
                f"Your function takes {signature}, but it is called as {name}({named}).\n"
                f"Its first line should read: def {name}{inspect.signature(self.reference)}:"
            )
        return ""

    def _problem(self, candidate: Callable, got: Outcome, expected: Any) -> str:
        """Say what is wrong with the outcome of one call; empty when nothing is."""
        if got.error:
            return _told_error(got.error, candidate)
        if got.changed:
            return (
                f"Your function changed its input `{got.changed}`, which its caller still needs.\n"
                f"Make a new tensor: write nothing into `{got.changed}` or what it holds, call no "
                "method that ends in _ on it, or work on a .clone()."
            )
        if got.borrowed:
            return f"Your function calls torch's own {self.without}. Here you write it yourself."
        value = got.value
        if value is None:
            return "Your function returned None. Is its `return` missing?"
        expected = torch.as_tensor(expected)
        if not isinstance(value, torch.Tensor) and (expected.dim() or not _is_number(value)):
            return _not_a_tensor(value, expected, self.several)
        value = torch.as_tensor(value)
        if value.shape != expected.shape:
            if self.several and value.dim() == expected.dim():
                told = f"{len(value)} of shape {_shape(value)[1:]}"
                return f"Expected {_wanted(expected, self.several)}, got {told}."
            return _wrong_shape(value, expected)
        if _kind(value) != _kind(expected):
            return _wrong_kind(value, expected)
        right = self._close(value, expected)
        if not right.all():
            return self._wrong_numbers(value, expected, right)
        if value.dim() and value.is_floating_point() and value.dtype != expected.dtype:
            return _wrong_digits(value, expected)
        return ""

    def _wrong_numbers(
        self, value: torch.Tensor, expected: torch.Tensor, right: torch.Tensor
    ) -> str:
        index = tuple((~right).nonzero()[0].tolist())
        wanted, got = told_apart(expected[index].item(), value[index].item())
        where = f"First difference at out{list(index)}: e" if index else "E"
        told = f"{where}xpected {wanted}, got {got}."
        lost = ~value.isfinite() & expected.isfinite()
        if lost.any():
            told += f"\n{int(lost.sum())} of {value.numel()} numbers are nan or inf."
            if value.isnan().any():
                told += " nan comes of 0 / 0, inf - inf or 0 * inf, and then spreads."
            return told
        square = value.dim() > 1 and value.shape[-1] == value.shape[-2]
        if square and self._close(value.mT, expected).all():
            return f"{told}\nThe numbers are right, but rows and columns are swapped."
        ratio, named = _simple_ratio(value, expected)
        if named and self._close(value / ratio, expected).all():
            told += f"\nEvery number is {named} times what it should be."
        return told

    def _held(self, case: int, value: Any, expected: Any) -> str:
        """Say what is right about a wrong answer, which narrows the search."""
        if not (isinstance(value, torch.Tensor) and isinstance(expected, torch.Tensor)):
            return ""
        if value.is_complex() or value.shape != expected.shape or not value.dim():
            return ""
        holds, fails, extra = [f"the shape {_shape(value)}"], [], []
        if value.isfinite().all():
            holds.append("all numbers finite")
        arguments = self._inputs()[case]
        for name, question in self.properties:
            has = _answers(question, value, arguments)
            if _answers(question, expected, arguments):
                (holds if has else fails).append(name)
            elif has:
                extra.append(name)
        told = f"{_told_right(self._close(value, expected))} What holds: {', '.join(holds)}."
        if fails:
            told += f" What does not: {', '.join(fails)}."
        return told + (f" What should not hold: {', '.join(extra)}." if extra else "")

    def _told_input(self, case: int) -> str:
        told = [
            f"{name} of shape {_shape(argument)}"
            if isinstance(argument, torch.Tensor)
            else f"{name} = {_named(argument)}"
            for name, argument in zip(self._names(), self._inputs()[case], strict=False)
        ]
        return f"Input: {', '.join(told)}."


class _Calls(TorchFunctionMode):
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
        if several and len(_shapes(value)) == 1:
            value = torch.stack(tuple(value))
        if isinstance(value, torch.Tensor):  # a copy, since a later call may use the same memory
            value = value.detach().cpu().to_dense().clone()
    except Exception as error:
        return Outcome(error=error)
    for name, before, after in zip(names, arguments, given, strict=False):
        if not _identical(before, after):
            return Outcome(value=value, changed=name)
    return Outcome(value=value)


def _copy(argument: Any) -> Any:
    if isinstance(argument, torch.Tensor):
        return argument.detach().clone().requires_grad_(argument.requires_grad)
    return copy.deepcopy(argument)


def _identical(before: Any, after: Any) -> bool:
    """Compare tensors, the weights of modules, and lists of either; anything else passes."""
    if any(isinstance(before, a) != isinstance(after, a) for a in (nn.Module, list, torch.Tensor)):
        return False
    if isinstance(before, nn.Module):
        before, after = (list(module.state_dict().values()) for module in (before, after))
    if isinstance(before, list):
        return len(before) == len(after) and all(map(_identical, before, after))
    if not isinstance(before, torch.Tensor):
        return True
    if (before.shape, before.dtype) != (after.shape, after.dtype):
        return False
    return bool(torch.isclose(before, after, 0, 0, True).all())


def _is_stub(error: Exception | None) -> bool:
    """Tell whether this is a stub's own ``raise NotImplementedError``.

    PyTorch raises NotImplementedError too, for instance for the softmax of whole numbers. That
    one has a text, and the line it comes from does not begin with ``raise``.
    """
    if not isinstance(error, NotImplementedError):
        return False
    line = traceback.extract_tb(error.__traceback__)[-1].line or ""
    return not str(error) or line.startswith("raise")


def _not_attempted(candidate: Callable) -> str:
    code = getattr(candidate, "__code__", None)
    if code and (len(code.co_names) > 1 or code.co_nlocals > code.co_argcount):
        return "not attempted yet: it still says `raise NotImplementedError`. Take that line out."
    return "not attempted yet."


def _told_error(error: Exception, candidate: Callable) -> str:
    text = _shortened(" ".join(str(error).split()), 300)
    told = f"Your function raised {type(error).__name__}{': ' + text if text else ''}"
    frame = _learners_line(error, candidate)
    if frame and frame.line:
        told += f"\nIt happened in line {frame.lineno}: `{_shortened(frame.line, 100)}`"
    remedy = next((remedy for part, remedy in REMEDIES.items() if part in text), "")
    return f"{told}\n{remedy}" if remedy else told


def _learners_line(error: Exception, candidate: Callable) -> traceback.FrameSummary | None:
    """Find the innermost line in the candidate's own cell, else in any code but libraries'."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is our own call
    code = getattr(inspect.unwrap(candidate), "__code__", None)
    own = [frame for frame in frames if code and frame.filename == code.co_filename]
    others = [frame for frame in frames if not frame.filename.startswith((HELPERS, *LIBRARIES))]
    return (own or others or [None])[-1]


def _not_a_tensor(value: Any, expected: torch.Tensor, several: bool) -> str:
    told = f"Expected {_wanted(expected, several)}, got {_what(value)}."
    name = type(value).__name__
    if several:
        return told
    if isinstance(value, tuple | list) and _shapes(value):
        return f"{told} {_joined(value, expected)}"
    if type(value).__module__ == "numpy":
        way = "from_numpy" if name == "ndarray" else "tensor"
        return f"{told} Return a tensor: torch.{way}(…) makes one; staying with torch is simpler."
    return f"{told} torch.tensor(…) takes plain numbers." if name == "list" else told


def _wanted(expected: torch.Tensor, several: bool) -> str:
    if several:
        return f"{len(expected)} tensors of shape {_shape(expected[0])}"
    return f"a tensor of shape {_shape(expected)}" if expected.dim() else "one number"


def _joined(tensors: tuple | list, expected: torch.Tensor) -> str:
    """Say how tensors become the one that is expected, where that can be seen from shapes."""
    wanted = _shape(expected)
    for way, told in ((torch.cat, "an axis that they have"), (torch.stack, "a new axis")):
        for dim in range(len(wanted)):
            try:
                fits = _shape(way(tuple(tensors), dim)) == wanted
            except (RuntimeError, IndexError):
                continue
            if fits:
                return f"torch.{way.__name__}(…) joins them along {told}."
    return "Return one tensor."


def _wrong_shape(value: torch.Tensor, expected: torch.Tensor) -> str:
    if not expected.dim():
        return f"Expected one number, got a tensor of shape {_shape(value)}."
    told = f"Wrong shape: expected {_shape(expected)}, got {_shape(value)}"
    wanted, got = list(expected.shape), list(value.shape)
    if not got:
        return f"{told}, a single number."
    if sorted(got) == sorted(wanted):
        return f"{told}. The sizes are right; their order is not."
    if [n for n in got if n != 1] == [n for n in wanted if n != 1]:
        if len(got) > len(wanted):
            return f"{told}. An axis of size 1 is left over."
        return f"{told}. An axis of size 1 is missing: keepdim=True keeps it."
    return f"{told}."


def _wrong_kind(value: torch.Tensor, expected: torch.Tensor) -> str:
    told = f"Expected {_kind(expected)}, got {_kind(value)} ({value.dtype})."
    remedies = {
        "floats": " Start from floats, or use .float().",
        "True and False": " A comparison, such as == 1, makes them.",
    }
    return told + remedies.get(_kind(expected), "")


def _wrong_digits(value: torch.Tensor, expected: torch.Tensor) -> str:
    return (
        f"The numbers are right, but they are {value.dtype}; expected {expected.dtype}.\n"
        "PyTorch refuses @ and allclose between two dtypes, so cells below would fail. Leave out "
        f"dtype=… and .double(), or end with .to({expected.dtype})."
    )


def _kind(tensor: torch.Tensor) -> str:
    if tensor.dtype == torch.bool:
        return "True and False"
    if tensor.is_complex():
        return "complex numbers"
    return "floats" if tensor.is_floating_point() else "whole numbers"


def _is_number(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return not value.is_complex()
    return isinstance(value, int | float)


def _simple_ratio(value: torch.Tensor, expected: torch.Tensor) -> tuple[float, str]:
    """Guess what all numbers are multiplied by, and name it: 3, 1/4, √2, 1/√2 or their negative.

    The name is empty when it is another number, or when one number alone is to be compared.
    """
    largest = tuple(i.item() for i in torch.unravel_index(expected.abs().argmax(), expected.shape))
    if value.numel() < 2 or not expected.is_floating_point() or expected[largest] == 0:
        return 0.0, ""
    ratio = (value[largest] / expected[largest]).item()
    for n in range(1, 101):
        for factor, named in (
            (n, f"{n}"),
            (1 / n, f"1/{n}"),
            (n**0.5, f"√{n}"),
            (n**-0.5, f"1/√{n}"),
        ):
            if factor != 1 and math.isclose(ratio, factor, rel_tol=1e-5):
                return ratio, named
            if math.isclose(ratio, -factor, rel_tol=1e-5):
                return ratio, f"-{named}"
    return 0.0, ""


def _answers(question: Callable, value: torch.Tensor, arguments: tuple) -> bool:
    try:
        return bool(question(value, *arguments))
    except Exception:  # a property may trip over an answer that its author did not foresee
        return False


def _told_right(right: torch.Tensor) -> str:
    """Say how many numbers are right, and which positions are so throughout."""
    count, of = int(right.sum()), right.numel()
    if count in (0, of):
        return f"{'All' if count else 'None'} of the {of} numbers {'are' if count else 'is'} right."
    told = f"{count} of the {of} numbers {'is' if count == 1 else 'are'} right"
    if right.dim() < 2:
        return f"{told}."
    whole = right.movedim(-2, 0).flatten(1).all(1).nonzero().flatten().tolist()
    names = [f"out[{':, ' * (right.dim() - 2)}{i}]" for i in whole]
    if len(names) > 2 and whole[-1] - whole[0] == len(whole) - 1:
        names = [f"{names[0]} to {names[-1]}"]
    listed = " and ".join(names) if len(names) < 3 else ", ".join(names)
    return f"{told}, all of {listed} among them." if names else f"{told}."


def _shapes(value: Any) -> set[tuple[int, ...]]:
    """The different shapes of the tensors in a tuple or list; none if it is anything else."""
    if not isinstance(value, tuple | list) or not all(isinstance(v, torch.Tensor) for v in value):
        return set()
    return {_shape(tensor) for tensor in value}


def _named(argument: Any) -> str:
    """Name an argument that is no tensor, within a line."""
    if isinstance(argument, list):
        return f"[{', '.join(map(_named, argument))}]"
    if isinstance(argument, nn.Module) and not isinstance(argument, nn.Linear):
        return f"{type(argument).__name__}(…)"
    return repr(argument)


def _what(value: Any) -> str:
    if value is None:
        return "None"
    if len(shapes := _shapes(value)) > 1:
        return f"{len(value)} tensors of shape {' and '.join(map(str, sorted(shapes)))}"
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {_shape(value)}, which looks like a result"
    name = type(value).__name__
    if shapes and name in ("list", "tuple"):
        return f"a {name} of {len(value)} tensors of shape {next(iter(shapes))}"
    if type(value).__module__ == "numpy":
        return "a numpy array" if name == "ndarray" else f"a number of numpy ({name})"
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + " …"


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)
