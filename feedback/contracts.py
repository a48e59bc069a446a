"""Inputs that an exercise's contract allows and its plain cases do not show.

From the cases and the names of the axes follow: sizes of 1, many tokens, equal sizes, other axes in
front, numbers 1000 and 100 000 times as large or a millionth, whole numbers, numbers around 100 and
-1000, some -inf, float64, tensors that lie transposed in memory, other layers, and other values of
each number among the arguments. An input is left out where the reference or an accepted form
refuses it, where they disagree, or where float32 is too coarse for one right answer.

An answer that gives wrong numbers for such an input is wrong. One that is only fragile there is
right, with a note: it raises or gives nan on an input that the task does not name, or loses digits
that float64 would have kept.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attention_base.numbers import joined
from attention_base.same import RTOL, same
from feedback import axes as names_of_axes
from feedback.calls import Outcome, call_again, copied, is_number

LONG, LARGE, MANY = 150, 70, 12  # tokens; any other size; parts of a list
FRONT = ((), (2,), (2, 3))  # axes in the place of "..."


class Kind(Enum):
    """What is unusual about an input."""

    NUMBER = "another number among the arguments"
    SIZE = "many tokens, or another size"
    VALUES = "whole numbers, or only zeros"
    ONE = "a size of 1"
    AXES = "another number of axes in front"
    DTYPE = "float64"
    LAYOUT = "not contiguous"
    LARGE = "numbers many times as large"
    TINY = "numbers a millionth as large"
    INFINITE = "-inf in some places"
    AWAY_FROM_0 = "numbers far away from 0"


# On these an answer may raise or give nan, and is only fragile.
MAY_FAIL = {Kind.ONE, Kind.AXES, Kind.LAYOUT, Kind.LARGE, Kind.INFINITE, Kind.AWAY_FROM_0}
ROUNDING, SQUEEZED = "rounding", "squeezed"  # why an answer is fragile, beside the kinds
SMALL_SHARE = 0.01  # of the right number: what a small number that was added makes of tiny ones


@dataclass(frozen=True)
class ContractInput:
    """Arguments that a right answer can take, in words, and what comes of the reference."""

    told: str
    kind: Kind
    arguments: tuple
    expected: Outcome
    atol: float


def contract_inputs(
    right: Sequence[Callable],
    cases: Sequence[tuple],
    axes: Mapping[str, str],
    names: Sequence[str],
    atol: float,
    several: bool,
) -> list[ContractInput]:
    """All inputs of the contract on which the right answers agree.

    Parameters
    ----------
    right
        The right answers, the reference first.
    cases
        The plain check inputs, from which the others are made.
    axes, names
        What the axes of each argument are called, and the names of the arguments.
    atol
        How far a number of about 1 may lie from the reference's.
    several
        Whether the answer is several tensors.
    """
    run = partial(call_again, names=names, several=several, share_modules=True)
    found = []
    for told, kind, arguments in _variations(cases, axes, names):
        expected = run(right[0], arguments)
        if expected.error or not is_number(expected.value):
            continue
        value = torch.as_tensor(expected.value)
        if not value.isfinite().all():
            continue
        size = value.double().abs().max().item() if value.numel() else 0.0
        allowed = atol * (size or 1.0)
        kept = ContractInput(told, kind, arguments, expected, allowed)
        others = [run(form, arguments) for form in right[1:]]
        exact = run(right[0], tuple(map(_as_double, arguments)))
        precise = exact.error or same(torch.as_tensor(exact.value), value, allowed / 4, RTOL)
        if precise and all(fits(kept, other) for other in others):
            found.append(kept)
    return found


def fits(wanted: ContractInput, got: Outcome) -> bool:
    """Tell whether an outcome is right, but for the number of digits."""
    if got.error or got.changed_input or not is_number(got.value):
        return False
    a, b = torch.as_tensor(got.value), torch.as_tensor(wanted.expected.value)
    return same(a, b, wanted.atol, RTOL)


def why_fragile(
    wanted: ContractInput, got: Outcome, function: Callable, reference: Callable, several: bool
) -> str:
    """Why an answer that does not fit is right but for what no task asks; "" where it is wrong."""
    if got.changed_input:
        return ""
    failed = got.error is not None or not is_number(got.value)
    right = torch.as_tensor(wanted.expected.value)
    value = right if failed else torch.as_tensor(got.value)
    lost = failed or value.shape != right.shape
    may_fail = wanted.kind in MAY_FAIL or (wanted.kind is Kind.SIZE and not lost)
    if wanted.kind is Kind.ONE and not failed and value.shape != right.shape:
        return SQUEEZED if value.numel() == right.numel() else ""
    lost = lost or not value.isfinite().all()
    if wanted.kind is Kind.DTYPE or (lost and may_fail):
        return wanted.kind.value
    small = SMALL_SHARE * right.abs().max().item() if right.numel() else 0.0
    if wanted.kind is Kind.TINY and not lost and same(value, right, small):
        return wanted.kind.value

    def is_right(change: Callable[[Any], Any]) -> bool:
        return _is_right_after(change, wanted.arguments, function, reference, several)

    if lost and any(is_right(lambda a, size=size: _of_size(a, size)) for size in (1.0, 1e-3)):
        return Kind.LARGE.value
    return ROUNDING if is_right(_all_double) else ""


def _is_right_after(
    change: Callable[[Any], Any],
    arguments: tuple,
    function: Callable,
    reference: Callable,
    several: bool,
) -> bool:
    """Tell whether an answer is right for arguments that were changed; in their type of float."""
    given = tuple(map(change, arguments))
    before, dtypes = torch.get_default_dtype(), {a.dtype for a in given if _is_float(a)}
    torch.set_default_dtype(max(dtypes, key=lambda dtype: dtype.itemsize, default=before))
    try:
        mine, right = (call_again(f, given, (), several) for f in (function, reference))
    finally:
        torch.set_default_dtype(before)
    if mine.error or right.error or not is_number(mine.value):
        return False
    a, b = torch.as_tensor(mine.value), torch.as_tensor(right.value)
    if a.dtype != b.dtype or not b.isfinite().all():
        return False
    return same(a, b, RTOL * (b.abs().max().item() or 1.0))


def _of_size(argument: Any, size: float) -> Any:
    """A tensor of floats, multiplied so that its largest number is of this size."""
    return argument * (size / argument.abs().max()) if _is_float(argument) else argument


def _all_double(argument: Any) -> Any:
    """An argument in float64, modules and lists of them too."""
    if isinstance(argument, list):
        return [_all_double(part) for part in argument]
    return copied(argument).double() if isinstance(argument, nn.Module) else _as_double(argument)


def _as_double(argument: Any) -> Any:
    return argument.double() if _is_float(argument) else argument


def _is_float(argument: Any) -> bool:
    return isinstance(argument, Tensor) and argument.is_floating_point()


# ---------------------------------------------------------------- the inputs


def _variations(cases: Sequence[tuple], axes: Mapping, names: Sequence[str]) -> Iterator:
    """Words, kind and arguments; the likeliest to find something first."""
    first = cases[0]
    yield from _other_numbers(first, names, axes)
    if any(map(_is_float, first)):
        yield from _scaled(first, axes, names)
    yield from _small_sizes(cases[:2], axes, names)
    if any(map(_is_float, first)):
        yield from _large_sizes(first, axes, names)
        yield from _other_layouts(first, names)
        for told, arguments in other_fronts(first, axes, names):
            yield told, Kind.AXES, arguments
        for told, arguments in _long_fronts(first, axes, names):
            yield told, Kind.SIZE, arguments
    yield from _other_layers(first, names)


def _small_sizes(cases: Sequence[tuple], axes: Mapping, names: Sequence[str]) -> Iterator:
    for letter in names_of_axes.all_letters(axes):
        for case in cases:
            if names_of_axes.sizes(axes, names, case).get(letter, 1) > 1:
                yield f"{letter} = 1", Kind.ONE, names_of_axes.resized(axes, names, case, letter, 1)


def _large_sizes(case: tuple, axes: Mapping, names: Sequence[str]) -> Iterator:
    """Larger sizes than an example has, for which masks and counts may be too short; equal ones."""
    own = names_of_axes.sizes(axes, names, case)
    known = [letter for letter in names_of_axes.all_letters(axes) if letter in own]
    counted = [axes.get(n) for n, a in zip(names, case, strict=False) if isinstance(a, list)]
    for letter in known:
        size = LONG if letter == "T" else MANY if letter in counted else LARGE
        arguments = names_of_axes.resized(axes, names, case, letter, size)
        yield f"{letter} = {size}", Kind.SIZE, arguments
    for letter, other in itertools.combinations([*known, *(own.keys() - known)], 2):
        if letter in known and own[letter] != own[other]:
            arguments = names_of_axes.resized(axes, names, case, letter, own[other])
            yield f"{letter} = {other}", Kind.SIZE, arguments


def _other_numbers(case: tuple, names: Sequence[str], axes: Mapping) -> Iterator:
    """Other values of whole numbers and floats among the arguments, one at a time."""
    sizes = names_of_axes.sizes(axes, names, case)
    for i, (name, value) in enumerate(zip(names, case, strict=False)):
        others: tuple = ()
        if type(value) is int:
            others = (0, 1, 2, 10 * value, *sizes.values())
            others = (2, LONG) if name in names_of_axes.all_letters(axes) else others
        elif isinstance(value, float):
            larger = (1.25 * value, 10 * value) if value >= 1 else ((1 + value) / 2,)
            others = (1.0, value / 10, value / 50, value / 1000, *larger)
        for other in dict.fromkeys(others):
            if other != value:
                kind = Kind.SIZE if other == LONG else Kind.NUMBER
                yield f"{name} = {other:g}", kind, (*case[:i], other, *case[i + 1 :])
        if isinstance(value, float) and value < 1 and sizes.get("T"):
            changed = (*case[:i], (1 + value) / 2, *case[i + 1 :])
            arguments = names_of_axes.resized(axes, names, changed, "T", LONG)
            yield f"{name} = {(1 + value) / 2:g} and T = {LONG}", Kind.SIZE, arguments


def _scaled(case: tuple, axes: Mapping, names: Sequence[str]) -> Iterator:
    """The data (what has tokens, or else every float tensor) larger, smaller and shifted."""
    data = [name for name, a in zip(names, case, strict=False) if _is_float(a)]
    with_tokens = [name for name in data if "T" in names_of_axes.letters(axes.get(name, ""))]
    data = with_tokens or data
    written = joined([f"`{name}`" for name in data])

    def changed(change: Callable[[Tensor], Tensor]) -> tuple:
        pairs = zip(names, case, strict=False)
        return tuple(change(a) if name in data else a for name, a in pairs)

    changes: list[tuple[str, Kind, Callable[[Tensor], Tensor]]] = [
        ("numbers 1000 times as large in", Kind.LARGE, lambda z: z * 1000),
        ("numbers 100000 times as large in", Kind.LARGE, lambda z: z * 1e5),
        ("numbers a millionth as large in", Kind.TINY, lambda z: z * 1e-6),
        ("whole numbers, 0 among them, in", Kind.VALUES, torch.round),
        ("only zeros in", Kind.VALUES, torch.zeros_like),
        ("-inf in some places of", Kind.INFINITE, _with_minus_inf),
        ("numbers around 100 in", Kind.AWAY_FROM_0, lambda z: 100 + _normal(z)),
    ]
    if any((a < 0).any() for a in case if _is_float(a)):
        away = ("numbers around -1000 in", Kind.AWAY_FROM_0, lambda z: _normal(z) - 1000)
        changes.append(away)
    for told, kind, change in changes:
        yield f"{told} {written}", kind, changed(change)


def _with_minus_inf(z: Tensor) -> Tensor:
    """One place in each row set to -inf, as a mask does."""
    if z.dim() < 1 or z.shape[-1] < 2:
        return z
    rows = z.reshape(-1, z.shape[-1]).clone()
    places = torch.arange(len(rows))
    rows[places, (places + 1) % z.shape[-1]] = -torch.inf
    return rows.reshape(z.shape)


def _normal(z: Tensor) -> Tensor:
    return torch.randn(z.shape, generator=torch.Generator().manual_seed(z.numel()))


def _other_layouts(case: tuple, names: Sequence[str]) -> Iterator:
    yield "float64", Kind.DTYPE, tuple(map(_as_double, case))
    if any(isinstance(a, Tensor) and a.dim() > 1 for a in case):
        told = "tensors that are not contiguous (their numbers lie transposed in memory)"
        yield told, Kind.LAYOUT, tuple(map(_transposed_in_memory, case))


def _transposed_in_memory(argument: Any) -> Any:
    if isinstance(argument, Tensor) and argument.dim() > 1:
        return argument.mT.contiguous().mT
    return argument


def _other_layers(case: tuple, names: Sequence[str]) -> Iterator:
    """A larger layer in the place of each."""
    for i, (name, layer) in enumerate(zip(names, case, strict=False)):
        if isinstance(layer, nn.Linear):
            other = nn.Linear(LARGE, LARGE + 1, bias=layer.bias is not None)
            told = f"{name} = nn.Linear({LARGE}, {LARGE + 1})"
            yield told, Kind.SIZE, (*case[:i], other, *case[i + 1 :])


def _long_fronts(case: tuple, axes: Mapping, names: Sequence[str]) -> Iterator:
    """As many axes in front as before, and longer ones."""
    for name, tensor in zip(names, case, strict=False):
        own = len(names_of_axes.letters(axes.get(name, "")))
        if axes.get(name, "").startswith("...") and (count := tensor.dim() - own):
            front = (*(2 for _ in range(count - 1)), LONG)
            for _, arguments in other_fronts(case, axes, names, [front]):
                yield f"{', '.join(map(str, front))} in the place of ...", arguments
            return


def other_fronts(
    case: tuple,
    axes: Mapping,
    names: Sequence[str],
    fronts: Sequence[tuple[int, ...]] = FRONT,
) -> Iterator:
    """Pairs of words and arguments: other axes for "...", in all arguments that have it."""
    open_ones = [name for name in names if axes.get(name, "").startswith("...")]
    for front in fronts if open_ones else ():
        arguments, dim = [], 0
        for name, argument in zip(names, case, strict=False):
            if name in open_ones:
                argument = _with_front(argument, len(names_of_axes.letters(axes[name])), front)
                dim = argument.dim()
            arguments.append(argument)
        if [a.shape for a in arguments if isinstance(a, Tensor)] != [
            a.shape for a in case if isinstance(a, Tensor)
        ]:
            written = joined([f"`{name}`" for name in open_ones])
            yield f"{written} with {dim} {'axis' if dim == 1 else 'axes'}", tuple(arguments)


def _with_front(tensor: Tensor, own: int, front: tuple[int, ...]) -> Tensor:
    """The tensor's own last axes, with other axes in front; new parts are old ones rolled."""
    parts = list(tensor.reshape(-1, *tensor.shape[tensor.dim() - own :]))
    wanted = torch.Size(front).numel()
    while len(parts) < wanted:
        parts.append((1 + 0.1 * (len(parts) < 9)) * parts[len(parts) - 1].roll(1, -1))
    return torch.stack(parts[:wanted]).reshape(*front, *parts[0].shape)
