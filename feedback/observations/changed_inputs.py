"""Find out for which other inputs a wrong result would be the right one.

The reference runs on inputs that were changed in some simple way: an argument multiplied, reversed,
shifted, replaced by another. What came out is kept, so that later answers are only compared.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from attention_base.numbers import joined
from feedback import axes as names_of_axes
from feedback.observations.factors import named_factors
from feedback.observations.order import Rank
from feedback.observations.trial import Observation, Trial

FEW = 20_000  # numbers: with more, each run of the reference takes its time


def right_for_other_inputs(trial: Trial) -> Iterator[Observation]:
    """Changes of the inputs for which the wrong result is the right one."""
    if any(v is None for v in trial.values) or all(trial.right):
        return
    if not any(v.isfinite().any() for v in trial.values):
        return
    cases = sorted(range(len(trial.inputs)), key=lambda i: trial.right[i])  # wrong ones first
    if "changes" not in trial.remembered:
        trial.remembered["changes"] = list(_changes(trial))
    for number, (told, change) in enumerate(trial.remembered["changes"]):
        if all(trial.same(trial.values[i], _result(trial, number, change, i)) for i in cases):
            yield Observation(Rank.ONE_RULE, f"Your result is the right one {told}.")
            return


def _result(trial: Trial, number: int, change: Callable, case: int) -> Tensor | None:
    """What the reference makes of a case with a change; computed once."""
    key = ("changed", number, case)
    if key not in trial.remembered:
        arguments = dict(zip(trial.names, trial.inputs[case], strict=False))
        try:
            with torch.no_grad():
                arguments = change(arguments, case)
        except (RuntimeError, IndexError, TypeError, ValueError, ZeroDivisionError):
            trial.remembered[key] = None
        else:
            values = tuple(arguments.values())
            trial.remembered[key] = trial.run_known(trial.reference, values)
    return trial.remembered[key]


def _changes(trial: Trial) -> Iterator[tuple[str, Callable]]:
    first = dict(zip(trial.names, trial.inputs[0], strict=False))
    yield from _of_scalars(first)
    yield from _of_modules(first)
    yield from _exchanges(first)
    for name, argument in first.items():
        if isinstance(argument, Tensor) and argument.is_floating_point():
            yield from _of_axes(trial, name, argument)
            yield from _of_numbers(name, argument)
    yield from _multiplied(trial, first)
    yield from _transposed(trial, first)


def _with(name: str, change: Callable[[Any], Any]) -> Callable:
    """A change of one argument."""
    return lambda arguments, case: arguments | {name: change(arguments[name])}


# ---------------------------------------------------------------- numbers, modules, exchanges


def _of_scalars(first: dict) -> Iterator[tuple[str, Callable]]:
    for name, argument in first.items():
        if isinstance(argument, bool):
            yield f"for the other value of `{name}`", _with(name, lambda v: not v)
            for value in (True, False):
                yield f"for `{name}={value}`, whatever it is", _with(name, lambda v, k=value: k)
        elif isinstance(argument, int):
            for add in (1, -1, 2, -2):
                told = f"for `{name} {'+' if add > 0 else '-'} {abs(add)}` in the place of `{name}`"
                yield told, _with(name, lambda v, k=add: v + k)
            for value in (0, 1, 2):
                yield f"for `{name} = {value}`, whatever it is", _with(name, lambda v, k=value: k)
        elif isinstance(argument, float):
            yield from _of_float(name)


def _of_float(name: str) -> Iterator[tuple[str, Callable]]:
    changes = {
        f"1 / {name}": lambda v: 1 / v,
        f"√{name}": lambda v: v**0.5,
        f"{name}²": lambda v: v**2,
        f"exp(-{name})": lambda v: float(torch.tensor(-v).exp()),
        f"min({name}, 1)": lambda v: min(v, 1.0),
        f"max({name}, 1)": lambda v: max(v, 1.0),
        f"int({name})": lambda v: float(int(v)),
    }
    for value in (1.0, 0.0, 0.5, 2.0, 8.0, 1 / 8):
        yield f"for `{name} = {value:g}`, whatever it is", _with(name, lambda v, k=value: k)
    for told, change in changes.items():
        yield f"for {told} in the place of `{name}`", _with(name, change)


# What may become of a module, in words.
OF_MODULES: tuple[tuple[str, Callable], ...] = (
    ("if {} changed nothing", lambda f: lambda z: z),
    ("if {} returned 0", lambda f: torch.zeros_like),
    ("if all sequences got what {} makes of sequence 0", lambda f: lambda z: f(z)[:1].expand_as(z)),
)


def _of_modules(first: dict) -> Iterator[tuple[str, Callable]]:
    modules = [name for name, a in first.items() if isinstance(a, nn.Module)]
    for told, change in OF_MODULES:
        for name in modules if len(modules) > 1 else []:
            yield told.format(f"`{name}`"), _with(name, change)
    for name, argument in first.items():
        if isinstance(argument, list) and len(argument) > 1:
            yield f"for `{name}` in the reverse order", _with(name, lambda v: v[::-1])
            for told, change in (
                ("the first alone", lambda v: v[:1]),
                ("the last alone", lambda v: v[-1:]),
                ("all but the last", lambda v: v[:-1]),
                ("all but the first", lambda v: v[1:]),
            ):
                yield f"for {told} of `{name}`", _with(name, change)


def _exchanges(first: dict) -> Iterator[tuple[str, Callable]]:
    """One argument in the place of another, or two that change places."""
    names = list(first)
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            one, other = first[a], first[b]
            alike = type(one) is type(other) and not isinstance(one, bool)
            if isinstance(one, Tensor) and isinstance(other, Tensor):
                alike = one.dim() == other.dim()
            if not alike and not (isinstance(one, nn.Module) and isinstance(other, nn.Module)):
                continue
            yield (
                f"if `{a}` and `{b}` changed places",
                lambda args, _, a=a, b=b: args | {a: args[b], b: args[a]},
            )
            for kept, lost in ((a, b), (b, a)):
                yield (
                    f"if `{kept}` also stood in the place of `{lost}`",
                    lambda args, _, kept=kept, lost=lost: args | {lost: args[kept]},
                )


# ---------------------------------------------------------------- tensors


def _of_axes(trial: Trial, name: str, tensor: Tensor) -> Iterator[tuple[str, Callable]]:
    """Along each axis: only one part of it, all parts alike, reversed, shifted."""
    words = names_of_axes.letters(trial.axes.get(name, ""))
    if not {"T", "B", "R"} & set(words) and len(trial.tensors()) > 1:
        return  # a matrix of weights, whose places are alike
    if tensor.dim() < 1 or tensor.numel() > FEW:
        words = words[:1] if len(words) == tensor.dim() else []
    for place, word in enumerate(words):
        axis, noun = place - len(words), names_of_axes.noun(word)
        if words.count(word) > 1:
            noun = "row" if place == words.index(word) else "column"
        if names_of_axes.split(word)[1] == word and words.count(word) == 1:
            yield f"for {noun} 0 alone", _cut(trial, word)
        changes: tuple[tuple[str, Callable[[Tensor, int], Tensor]], ...] = (
            (f"if every {noun} of `{name}` were {noun} 0", _first),
            (f"if every {noun} of `{name}` were the last", _last),
            (f"if every {noun} of `{name}` were the mean {noun}", _mean),
            (f"for `{name}` with its {noun}s in the reverse order", _flip),
            (f"for `{name}` with each {noun} replaced by the one before it", _later),
            (f"for `{name}` with each {noun} replaced by the one after it", _earlier),
            (f"for `{name}` with {noun} 0 set to 0", _no_first),
            (f"for `{name}` with the last {noun} set to 0", _no_last),
        )
        for told, change in changes:
            yield told, _with(name, lambda z, change=change, axis=axis: change(z, axis))


def _cut(trial: Trial, letter: str) -> Callable:
    def change(arguments: dict, _) -> dict:
        names = list(arguments)
        values = names_of_axes.resized(trial.axes, names, list(arguments.values()), letter, 1)
        return dict(zip(names, values, strict=True))

    return change


def _first(z: Tensor, axis: int) -> Tensor:
    return z.narrow(axis, 0, 1).expand_as(z)


def _last(z: Tensor, axis: int) -> Tensor:
    return z.narrow(axis, z.shape[axis] - 1, 1).expand_as(z)


def _mean(z: Tensor, axis: int) -> Tensor:
    return z.mean(axis, keepdim=True).expand_as(z)


def _flip(z: Tensor, axis: int) -> Tensor:
    return z.flip(axis)


def _later(z: Tensor, axis: int) -> Tensor:
    return z.roll(1, axis)


def _earlier(z: Tensor, axis: int) -> Tensor:
    return z.roll(-1, axis)


def _no_first(z: Tensor, axis: int) -> Tensor:
    return torch.cat([0 * z.narrow(axis, 0, 1), z.narrow(axis, 1, z.shape[axis] - 1)], axis)


def _no_last(z: Tensor, axis: int) -> Tensor:
    n = z.shape[axis] - 1
    return torch.cat([z.narrow(axis, 0, n), 0 * z.narrow(axis, n, 1)], axis)


def _of_numbers(name: str, tensor: Tensor) -> Iterator[tuple[str, Callable]]:
    """The same change of every number, or of every row."""
    changes: list[tuple[str, Callable[[Tensor], Tensor]]] = [(f"for -`{name}`", torch.neg)]
    if tensor.numel() <= FEW:
        changes += [
            (f"for `{name}` without its signs", torch.abs),
            (f"for `{name}` rounded to whole numbers", torch.round),
            (f"for `{name}` after a softmax of each row", lambda z: torch.softmax(z, -1)),
        ]
        if tensor.dim() > 1:
            changes.append((f"for `{name}` transposed", lambda z: z.mT))
    for told, change in changes:
        yield told, _with(name, change)


def _transposed(trial: Trial, first: dict) -> Iterator[tuple[str, Callable]]:
    """All matrices of weights transposed, where they are square."""
    names = [n for n in trial.tensors() if "T" not in names_of_axes.letters(trial.axes.get(n, ""))]
    if len(names) > 1 and all(first[name].dim() == 2 for name in names):
        yield (
            f"for {joined([f'`{name}`' for name in names])} transposed",
            lambda args, _: args | {name: args[name].mT for name in names},
        )


def _multiplied(trial: Trial, first: dict) -> Iterator[tuple[str, Callable]]:
    """The data multiplied by a factor that has a name."""
    tensors = trial.tensors()
    modules = any(isinstance(a, nn.Module | list) for a in first.values())
    if not tensors or modules or first[tensors[0]].numel() > FEW:
        return
    simple = [
        (told, factors)
        for told, factors in named_factors(trial)
        if told in ("2", "1/2") or re.fullmatch(r"([12]/)?√?[A-Za-z_]+( .*)?|1?/?ln 2.*", told)
    ]
    for name in tensors[:2]:
        for told, factors in simple:
            yield (
                f"for `{name}` multiplied by {told}",
                lambda args, case, name=name, factors=factors: (
                    args | {name: args[name] * factors[case]}
                ),
            )
