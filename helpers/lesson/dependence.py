"""What a result depends on, found by changing one thing at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor, nn

from helpers.lesson import axes as names_of_axes
from helpers.lesson.calls import copied
from helpers.lesson.trial import Observation, Trial, replaced, the_place, written
from helpers.numbers import joined

MANY = 8  # places of an axis that are tried


@dataclass(frozen=True)
class Experiment:
    """A change of the arguments of one case, and what the reference makes of it."""

    argument: str
    letter: str  # "" where all of the argument was changed
    noun: str
    place: int
    arguments: tuple
    expected: Tensor


def what_it_depends_on(trial: Trial) -> Iterator[Observation]:
    """What changes the result and should not, and what does not and should."""
    value, wanted = trial.values[trial.shown], trial.wanted[trial.shown]
    if value is None:
        return
    if not _equal(trial.run(trial.candidate, trial.inputs[trial.shown], seed=1), value):
        yield Observation(2, "Your result is another one each time: it depends on random numbers.")
        return
    if not value.isfinite().any():
        return
    yield from _unused(trial, value, wanted)
    yield from _places(trial, value, wanted)


def _equal(a: Tensor | None, b: Tensor) -> bool:
    return a is not None and a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num())


def _experiments(trial: Trial) -> list[Experiment]:
    key = ("experiments", trial.shown)
    if key not in trial.remembered:
        trial.remembered[key] = [
            Experiment(*parts, expected)
            for parts in _changes(trial)
            if (expected := trial.run(trial.reference, parts[-1])) is not None
        ]
    return trial.remembered[key]


def _changes(trial: Trial) -> Iterator[tuple[str, str, str, int, tuple]]:
    case = trial.inputs[trial.shown]
    generator = torch.Generator().manual_seed(0)
    for name, argument in zip(trial.names, case, strict=False):
        other = _another(argument, generator)
        if other is not None:
            yield name, "", "", 0, replaced(trial, trial.shown, name, other)
        if isinstance(argument, list):
            for i, part in enumerate(argument):
                if (other := _another(part, generator)) is not None:
                    changed = [*argument[:i], other, *argument[i + 1 :]]
                    yield name, "item", "item", i, replaced(trial, trial.shown, name, changed)
        if isinstance(argument, Tensor) and argument.is_floating_point():
            yield from _changes_of_places(trial, name, argument, generator)


def _another(argument: Any, generator: torch.Generator) -> Any:
    """Another value of the same kind; None where there is none."""
    if isinstance(argument, bool):
        return not argument
    if isinstance(argument, float):
        return 0.7 * argument
    if isinstance(argument, Tensor) and argument.is_floating_point():
        return argument.detach() + torch.rand(argument.shape, generator=generator)
    if isinstance(argument, nn.Module) and any(True for _ in argument.parameters()):
        other = copied(argument)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.add_(torch.rand(parameter.shape, generator=generator))
        return other
    return None


def _changes_of_places(
    trial: Trial, name: str, tensor: Tensor, generator: torch.Generator
) -> Iterator[tuple[str, str, str, int, tuple]]:
    words = names_of_axes.letters(trial.axes.get(name, ""))
    if len(words) > tensor.dim():
        return
    for i, word in enumerate(words):
        letter, axis = names_of_axes.split(word)[1], i - len(words)
        count, noun = tensor.shape[axis], names_of_axes.noun(word)
        if words.count(word) > 1:
            noun = "row" if i == words.index(word) else "column"
        for place in range(count) if count <= MANY else (0, 1, 2, count // 2, count - 1):
            changed = tensor.detach().clone()
            part = changed.select(axis, place)
            part += torch.rand(part.shape, generator=generator) + 0.1
            yield name, letter, noun, place, replaced(trial, trial.shown, name, changed)


# ---------------------------------------------------------------- what has no effect at all


def _unused(trial: Trial, value: Tensor, wanted: Tensor) -> Iterator[Observation]:
    for one in _experiments(trial):
        if one.letter not in ("", "item") or not _differs(one.expected, wanted):
            continue
        mine = trial.run(trial.candidate, one.arguments)
        if mine is not None and not _differs(mine, value):
            what = f"item {one.place} of `{one.argument}`" if one.letter else f"`{one.argument}`"
            yield Observation(8, f"Your result does not change when {what} changes.")


def _differs(a: Tensor, b: Tensor) -> bool:
    return a.shape != b.shape or bool(_changed(a, b).any())


def _changed(a: Tensor, b: Tensor) -> Tensor:
    return ~torch.isclose(a, b, rtol=1e-6, atol=1e-7, equal_nan=True)


# ---------------------------------------------------------------- which place changes which


def _places(trial: Trial, value: Tensor, wanted: Tensor) -> Iterator[Observation]:
    """Compare which places of the result change with those that should."""
    groups: dict[tuple[str, str, str], list[Experiment]] = {}
    for one in _experiments(trial):
        if one.letter not in ("", "item"):
            groups.setdefault((one.argument, one.letter, one.noun), []).append(one)
    for (name, letter, noun), experiments in groups.items():
        mine = [trial.run(trial.candidate, one.arguments) for one in experiments]
        if any(m is None or m.shape != value.shape for m in mine):
            continue
        axis = names_of_axes.axis_of(trial.axes.get("return", ""), letter, wanted.dim())
        places = [one.place for one in experiments]
        if axis is None or value.shape != wanted.shape:
            idle = [
                p
                for p, m, one in zip(places, mine, experiments, strict=True)
                if _differs(one.expected, wanted) and not _differs(m, value)
            ]
            if idle:
                yield from _idle(name, noun, idle, len(places))
            continue
        got = [_by_place(_changed(m, value), axis) for m in mine]
        right = [_by_place(_changed(one.expected, wanted), axis) for one in experiments]
        yield from _pattern(name, letter, noun, places, got, right, trial)


def _by_place(changed: Tensor, axis: int) -> list[bool]:
    return (
        changed.movedim(axis, 0).flatten(1).any(1).tolist()
        if changed.dim() > 1
        else changed.tolist()
    )


def _idle(name: str, noun: str, idle: list[int], count: int) -> Iterator[Observation]:
    if len(idle) == count:
        yield Observation(8, f"Your result does not change when `{name}` changes.")
        return
    told = joined([str(p) for p in idle])
    verb = "changes" if len(idle) == 1 else "change"
    yield Observation(
        9,
        f"Your result does not change when {noun}{'s' if len(idle) > 1 else ''} {told} of `{name}` {verb}.",
    )


def _pattern(
    name: str,
    letter: str,
    noun: str,
    places: list[int],
    got: list[list[bool]],
    right: list[list[bool]],
    trial: Trial,
) -> Iterator[Observation]:
    """Compare two patterns: for each place of an argument, which places of the result change."""
    place = the_place(letter)
    place = "row" if noun in ("row", "column") else place
    of = f" of `{name}`" if len(trial.tensors()) > 1 or noun in ("row", "column") else ""
    extra, missing = [], []
    for i, mine, wanted in zip(places, got, right, strict=True):
        for j, (m, w) in enumerate(zip(mine, wanted, strict=True)):
            if m and not w:
                extra.append((j, i))
            if w and not m:
                missing.append((j, i))
    future = [(j, i) for j, i in extra if i > j and letter == "T"]
    if future:
        nearest = {min(i for j, i in future if j == k) - k for k, _ in future}
        furthest = {max(i for j, i in future if j == k) - k for k, _ in future}
        j, i = (
            future[-1] if nearest == furthest == {1} else max(future, key=lambda ji: ji[1] - ji[0])
        )
        if nearest == furthest == {1} and len(future) > 1:
            yield Observation(
                9,
                f"Each {place} changes when the next {noun}{of} does: it sees one {noun} of its future.",
            )
        else:
            yield Observation(
                9,
                f"{place.capitalize()} {j} changes when {noun} {i}{of} changes: it sees the future.",
            )
    elif extra:
        j, i = extra[0]
        mixed = f": {noun}s are mixed" if letter in ("B", "T", "C", "d") else ""
        yield Observation(
            9, f"{place.capitalize()} {j} of your result changes when {noun} {i}{of} does{mixed}."
        )
    if missing:
        own = all(i == j for j, i in missing)
        idle = [i for i in places if not any(got[places.index(i)]) and any(right[places.index(i)])]
        if idle:
            yield from _idle(name, noun, idle, len(places))
        elif own and len(missing) > 1:
            yield Observation(10, f"No {place} changes when its own {noun}{of} changes.")
        else:
            j, i = missing[-1] if letter == "T" else missing[0]
            yield Observation(
                11,
                f"{place.capitalize()} {j} of your result does not change when {noun} {i}{of} changes.",
            )


# ---------------------------------------------------------------- a weighted sum of the tokens


def what_it_adds_up(trial: Trial) -> Iterator[Observation]:
    """Where the result is a weighted sum of the tokens: the weights."""
    if len(trial.tensors()) != 1 or not trial.pairs:
        return
    name = trial.tensors()[0]
    words = names_of_axes.letters(trial.axes.get(name, ""))
    if words != ["B", "T", "C"] or trial.result_axes[-1:] != ["C"]:
        return
    mine = _weights(trial, trial.candidate, name)
    right = _weights(trial, trial.reference, name)
    if mine is None or right is None or mine.shape != right.shape:
        return
    wrong = (~torch.isclose(mine, right, atol=1e-4)).flatten(1).any(1).nonzero().flatten().tolist()
    if not wrong:
        return
    t = next((t for t in wrong if t > 1), wrong[0])
    output = f"Output {t}" if len(mine) > 1 else "Your result"
    got = _weights_in_words(mine[t].tolist())
    wanted = _weights_in_words(right[t].tolist(), brief=True)
    yield Observation(13, f"{output} adds up {got}; it should be {wanted}.")


def _weights(trial: Trial, function: Any, name: str) -> Tensor | None:
    """(T_out, T) by how much channel 0 of each output moves with channel 0 of each token."""
    x = trial.inputs[trial.shown][trial.names.index(name)].detach().double().float()
    base = trial.run(function, replaced(trial, trial.shown, name, x))
    if base is None or not base.isfinite().all():
        return None
    rows = []
    for t in range(x.shape[1]):
        moved = []
        for step in (1.0, 3.0):
            changed = x.clone()
            changed[0, t, 0] += step
            out = trial.run(function, replaced(trial, trial.shown, name, changed))
            if out is None or out.shape != base.shape:
                return None
            moved.append((out - base)[0, ..., 0].reshape(-1) / step)
        if not torch.allclose(moved[0], moved[1], atol=1e-4):
            return None
        rows.append(moved[0])
    return torch.stack(rows, dim=1)


def _weights_in_words(weights: list[float], brief: bool = False) -> str:
    used = [(t, w) for t, w in enumerate(weights) if abs(w) > 1e-5]
    if not used:
        return "no token at all"
    alike = all(abs(w - used[0][1]) < 1e-4 for _, w in used)
    named = (
        f"tokens {joined([str(t) for t, _ in used])}" if len(used) > 1 else f"token {used[0][0]}"
    )
    if len(used) > 2 and used[-1][0] - used[0][0] == len(used) - 1:
        named = f"tokens {used[0][0]} to {used[-1][0]}"
    if alike:
        each = " each" if len(used) > 1 else ""
        return f"{_approximate(used[0][1])} of {named}{each}"
    return f"{named} with the weights {joined([_approximate(w) for _, w in used])}"


def _approximate(value: float) -> str:
    """A measured weight, as a fraction where it is close to one."""
    fraction = Fraction(value).limit_denominator(36)
    return str(fraction) if abs(float(fraction) - value) < 2e-5 else written(value)


# ---------------------------------------------------------------- multiplied and shifted


def how_it_follows(trial: Trial) -> Iterator[Observation]:
    """Whether the result follows when an argument is doubled, or 1 is added to all its numbers."""
    if not trial.pairs:
        return
    case = trial.shown
    value, wanted = trial.pairs[case]
    if not value.isfinite().all():
        return
    for name in trial.tensors():
        argument = trial.inputs[case][trial.names.index(name)].detach()
        for told, change, rise in (
            (f"`{name}` is doubled", 2 * argument, lambda z: 2 * z),
            (f"1 is added to every number of `{name}`", argument + 1, lambda z: z + 1),
        ):
            arguments = replaced(trial, case, name, change)
            mine, right = (trial.run(f, arguments) for f in (trial.candidate, trial.reference))
            if mine is None or right is None or mine.shape != value.shape:
                continue
            kinds = [_kind(trial, new, old, rise) for new, old in ((mine, value), (right, wanted))]
            if kinds[0] != kinds[1] and "other" != kinds[0]:
                yield Observation(
                    14, f"When {told}, your result {kinds[0]}; the right one {_not(kinds[1])}."
                )
            elif kinds[0] != kinds[1]:
                yield Observation(14, f"When {told}, the right result {kinds[1]}; yours does not.")


def _kind(trial: Trial, new: Tensor, old: Tensor, rise: Any) -> str:
    if trial.same(new, old):
        return "stays the same"
    if trial.same(new, rise(old)):
        return "follows in the same way"
    return "other"


def _not(kind: str) -> str:
    return "does not" if kind == "other" else kind
