"""A wrong answer under examination: what it was called with, what came, what should have come."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from attention_base.same import ATOL, RTOL, close, seed_all
from feedback import axes as names_of_axes
from feedback.calls import Outcome, call_again, is_number
from feedback.observations.order import Rank

Pair = tuple[Tensor, Tensor]
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


@dataclass(frozen=True)
class Observation:
    """A fact about an answer, in a sentence, and how much it explains."""

    rank: Rank
    text: str


@dataclass(frozen=True)
class Trial:
    """A wrong answer, the reference, and what both gave."""

    candidate: Callable
    reference: Callable
    names: Sequence[str]  # the names of the reference's arguments
    # What the axes of arguments and result are called (`feedback.axes`).
    axes: Mapping[str, str]
    inputs: Sequence[tuple]  # the arguments of each check input
    got: Sequence[Outcome]  # of the candidate
    expected: Sequence[Outcome]  # of the reference
    sizes: Sequence[Mapping[str, int]]  # for each check input: the size of each letter
    # Pairs of a name and a function of the arguments.
    intermediates: Sequence[tuple[str, Callable]] = ()
    several: bool = False  # as in the exercise
    atol: float = ATOL
    # Where experiments with the reference alone keep what came out; shared between trials.
    remembered: dict = field(default_factory=dict)

    def only(self, cases: Sequence[int]) -> "Trial":
        """The same answer on some of the check inputs."""

        def picked(values: Sequence) -> list:
            return [values[i] for i in cases]

        return replace(
            self,
            inputs=picked(self.inputs),
            got=picked(self.got),
            expected=picked(self.expected),
            sizes=picked(self.sizes),
            remembered={},
        )

    def on(self, arguments: tuple) -> "Trial | None":
        """The same answer on an input of its own; None where the reference refuses it."""
        got = call_again(self.candidate, arguments, self.names, self.several)
        wanted = call_again(self.reference, arguments, self.names, self.several)
        if wanted.error:
            return None
        return replace(
            self,
            inputs=[arguments],
            got=[got],
            expected=[wanted],
            sizes=[names_of_axes.sizes(self.axes, self.names, arguments)],
            remembered={},
        )

    def run(self, function: Callable, arguments: tuple, seed: int = 0) -> Tensor | None:
        """What a function returns, as a tensor of doubles; None where it is no number."""
        outcome = call_again(
            function, arguments, self.names, self.several, seed, self._changes_nothing
        )
        return as_double(outcome)

    @cached_property
    def _changes_nothing(self) -> bool:
        """Whether the candidate left all arguments as they were, as far as that was seen."""
        return not any(outcome.error or outcome.changed_input for outcome in self.got)

    def run_known(self, function: Callable, arguments: tuple) -> Tensor | None:
        """Do the same as `run`, faster, for the reference and others that change no argument."""
        seed_all()
        try:
            with torch.no_grad():
                value = function(*arguments)
            if self.several and not isinstance(value, Tensor):
                value = torch.stack(tuple(value))
        except Exception:  # it may refuse what was made of the arguments
            return None
        return as_double(Outcome(value=value))

    def reference_on(self, key: tuple, arguments: tuple) -> Tensor | None:
        """What the reference returns; computed once for each key."""
        if key not in self.remembered:
            self.remembered[key] = self.run_known(self.reference, arguments)
        return self.remembered[key]

    def close(self, a: Tensor, b: Tensor) -> Tensor:
        """Where two tensors of one shape agree within the exercise's tolerance."""
        return close(a, b, self.atol, RTOL)

    def same(self, a: Tensor | None, b: Tensor | None) -> bool:
        """Tell whether two tensors have one shape and agree everywhere."""
        if a is None or b is None or a.shape != b.shape:
            return False
        if a.numel() > 1:  # one number tells most tensors apart, and is compared much faster
            one, other = a.reshape(-1)[-1].item(), b.reshape(-1)[-1].item()
            if abs(one - other) > 2 * self.atol + 1e-4 * abs(other):
                return False
        return bool(self.close(a, b).all())

    def is_everywhere(self, others: Sequence[Tensor | None]) -> bool:
        """Tell whether a wrong result equals these tensors, one for each check input."""
        return not all(self.right) and all(map(self.same, self.values, others))

    def step(self, name: str, compute: Callable, case: int) -> Tensor | None:
        """A step on the way on one check input; computed once, since it never changes."""
        key = ("step", name, case)
        if key not in self.remembered:
            self.remembered[key] = self.run_known(compute, self.inputs[case])
        return self.remembered[key]

    @cached_property
    def values(self) -> list[Tensor | None]:
        """What the candidate returned, as doubles."""
        return [as_double(outcome) for outcome in self.got]

    @cached_property
    def wanted(self) -> list[Tensor]:
        """What the reference returned, as doubles."""
        return [as_double(outcome) for outcome in self.expected]

    @cached_property
    def pairs(self) -> list[Pair]:
        """What came and what should have come, if all shapes are right; else nothing."""
        pairs = list(zip(self.values, self.wanted, strict=True))
        if all(v is not None and v.shape == e.shape and v.numel() for v, e in pairs):
            return pairs
        return []

    @cached_property
    def right(self) -> list[bool]:
        """For each check input, whether all numbers are right."""
        return [self.same(v, e) for v, e in zip(self.values, self.wanted, strict=True)]

    @cached_property
    def shown(self) -> int:
        """The first check input on which the answer is wrong."""
        return self.right.index(False) if False in self.right else 0

    @property
    def result_axes(self) -> list[str]:
        """What the axes of the result are called."""
        return names_of_axes.letters(self.axes.get("return", ""))

    def tensors(self) -> list[str]:
        """The names of the arguments that are float tensors."""
        pairs = zip(self.names, self.inputs[0], strict=False)
        return [n for n, a in pairs if isinstance(a, Tensor) and a.is_floating_point()]


def as_double(outcome: Outcome) -> Tensor | None:
    """The value of an outcome as a tensor of doubles; None where it is no number."""
    if outcome.error or outcome.value is None or not is_number(outcome.value):
        return None
    return torch.as_tensor(outcome.value).detach().double()


def replaced(trial: Trial, case: int, name: str, value: Any) -> tuple:
    """The arguments of a case with one of them replaced."""
    pairs = zip(trial.names, trial.inputs[case], strict=False)
    return tuple(value if n == name else a for n, a in pairs)


def written(value: float) -> str:
    """A number for a sentence: whole, a simple fraction, or four digits.

    Examples
    --------
    >>> written(1 / 64), written(3.0), written(1 / 65), written(-2 / 3)
    ('1/64', '3', '0.01538', '-2/3')
    """
    if value != value or abs(value) == float("inf"):
        return str(value)
    if abs(value) > 1 and abs(value - round(value, 2)) < 1e-6:
        return f"{round(value, 2):g}"
    fraction = Fraction(value).limit_denominator(64)
    if abs(float(fraction) - value) < 1e-6:
        return str(fraction)
    return f"{value:.4g}" if abs(value - round(value)) > 1e-3 or not value else f"{value:.7g}"


def place_word(trial: Trial, axis: int, dim: int) -> str:
    """How one place along an axis of a result with so many axes is called: "output", "row"."""
    words = trial.result_axes
    if len(words) != dim:
        known = {1: "number", 2: "row"}.get(dim, "sequence") if axis == 0 else "row"
        return "column" if axis == dim - 1 and dim > 1 else known
    nouns = ["output" if word == "T" else names_of_axes.noun(word) for word in words]
    if nouns.count(nouns[axis]) > 1:
        return "row" if axis == nouns.index(nouns[axis]) else "column"
    return nouns[axis]


def plural(word: str) -> str:
    """The plural of a place's name."""
    return "matrices" if word == "matrix" else "batches" if word == "batch" else f"{word}s"
