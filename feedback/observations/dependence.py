"""What a result depends on, found by changing one thing at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor, nn

from attention_base.numbers import joined
from attention_base.same import RTOL, close, same
from feedback import axes as names_of_axes
from feedback.calls import copied
from feedback.observations.order import Rank
from feedback.observations.trial import Observation, Trial, place_word, plural, replaced, written

KEPT = (
    "Called again with the same input, your function returns something else: it keeps something "
    "from the call before. What it collects has to begin empty inside of it."
)
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


def what_it_keeps(trial: Trial) -> Iterator[Observation]:
    """Whether a second call with the first input gives something else than the first call did."""
    again = trial.run(trial.candidate, trial.inputs[0])
    if trial.values[0] is not None and not _equal(again, trial.values[0]):
        yield Observation(Rank.NOT_REPEATABLE, KEPT)


def what_it_depends_on(trial: Trial) -> Iterator[Observation]:
    """What changes the result and should not, and what does not and should."""
    value, wanted = trial.values[trial.shown], trial.wanted[trial.shown]
    if value is None:
        return
    if not _equal(trial.run(trial.candidate, trial.inputs[trial.shown], seed=1), value):
        text = "Your result is another one each time: it depends on random numbers."
        yield Observation(Rank.NOT_REPEATABLE, text)
        return
    if not value.isfinite().any():
        return
    yield from _unused(trial, value, wanted)
    yield from _places(trial, value, wanted)


def _equal(a: Tensor | None, b: Tensor) -> bool:
    return a is not None and same(a, b)


def _experiments(trial: Trial) -> list[Experiment]:
    key = ("experiments", trial.shown)
    if key not in trial.remembered:
        trial.remembered[key] = [
            Experiment(*parts, expected)
            for parts in _changes(trial)
            if (expected := trial.run_known(trial.reference, parts[-1])) is not None
        ]
    return trial.remembered[key]


def _changes(trial: Trial) -> Iterator[tuple[str, str, str, int, tuple]]:
    case = trial.inputs[trial.shown]
    generator = torch.Generator().manual_seed(0)
    for name, argument in zip(trial.names, case, strict=False):
        is_size = name in names_of_axes.all_letters(trial.axes)
        for other in _others(argument, generator) if not is_size else ():
            yield name, "", "", 0, replaced(trial, trial.shown, name, other)
        if isinstance(argument, list):
            for i, part in enumerate(argument):
                for other in _others(part, generator):
                    changed = [*argument[:i], other, *argument[i + 1 :]]
                    yield name, "item", "item", i, replaced(trial, trial.shown, name, changed)
        if isinstance(argument, Tensor) and argument.is_floating_point():
            words = names_of_axes.letters(trial.axes.get(name, ""))
            if len(trial.tensors()) > 1 and not {"B", "T"} & set(words) and "..." not in words:
                continue  # a matrix of weights: its places have no meaning of their own
            yield from _changes_of_places(trial, name, argument, generator)


def _others(argument: Any, generator: torch.Generator) -> list[Any]:
    """Other values of the same kind; none where there is none."""
    if isinstance(argument, bool):
        return [not argument]
    if isinstance(argument, int):
        return [argument - 1, argument + 1]
    if isinstance(argument, float):
        return [0.7 * argument, 0.1 * argument, 3.0 * argument]
    if isinstance(argument, Tensor) and argument.is_floating_point():
        tensor = argument.detach()
        added = torch.rand(tensor.shape, generator=generator)
        if (tensor > 0).all():
            return [tensor + added, tensor * (0.2 + 3 * added), tensor.flip(-1) + 0.5]
        return [tensor + added, -2 * tensor + added, 9 * added - 4]
    if isinstance(argument, nn.Module) and any(True for _ in argument.parameters()):
        other = copied(argument)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.add_(torch.rand(parameter.shape, generator=generator))
        return [other]
    return []


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
            added = torch.rand(part.shape, generator=generator) + 0.1
            part.copy_(part + added if (tensor > 0).all() else 3 * added - 2 * part)
            yield name, letter, noun, place, replaced(trial, trial.shown, name, changed)


# ---------------------------------------------------------------- what has no effect at all


def _unused(trial: Trial, value: Tensor, wanted: Tensor) -> Iterator[Observation]:
    idle: dict[tuple[str, str, int], list[bool]] = {}
    for one in _experiments(trial):
        if one.letter not in ("", "item") or not _differs(one.expected, wanted):
            continue
        mine = trial.run(trial.candidate, one.arguments)
        key = (one.argument, one.letter, one.place)
        idle.setdefault(key, []).append(mine is not None and not _differs(mine, value))
    for (name, letter, place), alike in idle.items():
        what = f"item {place} of `{name}`" if letter else f"`{name}`"
        if all(alike):
            yield Observation(Rank.ALL_ROWS, f"Your result does not change when {what} changes.")
        elif any(alike) and value.isfinite().all():
            text = f"Your result does not change with every change of {what}; it should."
            yield Observation(Rank.SHAPE, text)


def _differs(a: Tensor, b: Tensor) -> bool:
    return a.shape != b.shape or bool(_changed(a, b).any())


def _changed(a: Tensor, b: Tensor) -> Tensor:
    return ~close(a, b, 1e-7, 1e-6)


# ---------------------------------------------------------------- which place changes which


def _places(trial: Trial, value: Tensor, wanted: Tensor) -> Iterator[Observation]:
    """Compare which places of the result change with those that should."""
    groups: dict[tuple[str, str, str], list[Experiment]] = {}
    for one in _experiments(trial):
        if one.letter not in ("", "item"):
            groups.setdefault((one.argument, one.letter, one.noun), []).append(one)
    decided = wanted.dim() == 0 and _one_place_decides(trial, wanted)
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
            if idle and not (decided and len(idle) < len(places)):
                yield from _idle(name, noun, idle, len(places))
            continue
        got = [_by_place(_changed(m, value), axis) for m in mine]
        right = [_by_place(_changed(one.expected, wanted), axis) for one in experiments]
        known = _by_place(value.isfinite(), axis)  # nan stays nan, whatever it depends on
        yield from _pattern(name, letter, noun, places, got, right, trial, known)


def _one_place_decides(trial: Trial, wanted: Tensor) -> bool:
    """Tell whether a result is a maximum, or the like: most of the numbers do not matter."""
    for name in trial.tensors():
        tensor = trial.inputs[trial.shown][trial.names.index(name)]
        if not tensor.is_floating_point():
            continue
        for place in range(0, tensor.numel(), 1 + tensor.numel() // MANY):
            moved = tensor.detach().clone()
            moved.view(-1)[place] += 0.01
            other = trial.run_known(trial.reference, replaced(trial, trial.shown, name, moved))
            if other is not None and not _differs(other, wanted):
                return True
    return False


def _by_place(changed: Tensor, axis: int) -> list[bool]:
    return (
        changed.movedim(axis, 0).flatten(1).any(1).tolist()
        if changed.dim() > 1
        else changed.tolist()
    )


def _idle(name: str, noun: str, idle: list[int], count: int) -> Iterator[Observation]:
    if len(idle) == count:
        yield Observation(Rank.CAUSE, f"Your result does not change when `{name}` changes.")
        return
    which = f"{plural(noun)} {joined([str(p) for p in idle])} of `{name}` change"
    if len(idle) == 1:
        which = f"{noun} {idle[0]} of `{name}` changes"
    yield Observation(Rank.PLACE_IGNORED, f"Your result does not change when {which}.")


def _pattern(
    name: str,
    letter: str,
    noun: str,
    places: list[int],
    got: list[list[bool]],
    right: list[list[bool]],
    trial: Trial,
    known: list[bool],
) -> Iterator[Observation]:
    """Compare two patterns: for each place of an argument, which places of the result change."""
    words = trial.result_axes
    place = place_word(trial, words.index(letter), len(words))
    of = f" of `{name}`" if len(trial.tensors()) > 1 or noun in ("row", "column") else ""
    pairs = [
        (j, i, m, w)
        for i, mine, wanted in zip(places, got, right, strict=True)
        for j, (m, w) in enumerate(zip(mine, wanted, strict=True))
    ]
    extra = [(j, i) for j, i, m, w in pairs if m and not w and i != j]
    missing = [(j, i) for j, i, m, w in pairs if w and not m and known[j]]
    future = [(j, i) for j, i in extra if i > j]
    causal = letter == "T" and not any(w for j, i, _, w in pairs if i > j)
    if future and causal:
        yield Observation(Rank.CAUSE, _sees_the_future(future, place, noun, of))
    elif extra:
        j, i = extra[0]
        mixed = f": {plural(noun)} are mixed" if letter in ("B", "C", "d") else ", and should not"
        text = f"{place.capitalize()} {j} of your result changes when {noun} {i}{of} does{mixed}."
        yield Observation(Rank.CAUSE if letter == "B" else Rank.PLACE_IGNORED, text)
    idle = [
        i
        for i, mine, wanted in zip(places, got, right, strict=True)
        if any(wanted) and not any(mine)
    ]
    if idle:
        yield from _idle(name, noun, idle, len(places))
    elif missing and all(i == j for j, i in missing) and len(missing) > 1:
        yield Observation(Rank.ONE_ROW, f"No {place} changes when its own {noun}{of} changes.")
    elif missing:
        j, i = missing[-1] if letter == "T" else missing[0]
        text = f"{place.capitalize()} {j} of your result does not change when {noun} {i}{of} does"
        yield Observation(Rank.ROW_FACTORS, f"{text}, and should.")


def _sees_the_future(future: list[tuple[int, int]], place: str, noun: str, of: str) -> str:
    """Say how far into the future the outputs see."""
    far = {j: max(i for k, i in future if k == j) - j for j, _ in future}
    if set(far.values()) == {1} and len(far) > 1:
        return f"Each {place} changes when the next {noun}{of} does: it sees one of its future."
    j, i = max(future, key=lambda pair: pair[1] - pair[0])
    return f"{place.capitalize()} {j} changes when {noun} {i}{of} changes: it sees the future."


# ---------------------------------------------------------------- a weighted sum of the tokens


def what_it_adds_up(trial: Trial) -> Iterator[Observation]:
    """Where the result is a weighted sum of the tokens: the weights."""
    if len(trial.tensors()) != 1 or not trial.pairs:
        return
    name = trial.tensors()[0]
    words = names_of_axes.letters(trial.axes.get(name, ""))
    if words != ["B", "T", "C"] or trial.result_axes[-1:] != ["C"]:
        return
    if not trial.values[trial.shown].isfinite().any():
        return
    mine = _weights(trial, trial.candidate, name)
    key = ("weights", trial.shown)
    if key not in trial.remembered:
        trial.remembered[key] = _weights(trial, trial.reference, name)
    right = trial.remembered[key]
    if mine is None or right is None or mine.shape != right.shape or right[..., -1].any():
        return
    wrong = ~close(mine, right, 1e-4, RTOL)
    if not wrong.any():
        return
    c = int(wrong.flatten(1).any(1).nonzero()[-1])  # often channel 0 alone is right
    places = wrong[c].any(1).nonzero().flatten().tolist()
    t = next((t for t in places if t > 1 and mine[c, t].isfinite().all()), places[0])
    if not mine[c, t].isfinite().all():
        return
    channel = f" of channel {c}" if not same(mine[0, t], mine[c, t], 1e-4, RTOL) else ""
    got, added = _weights_in_words(mine[c, t, :-1].tolist()), mine[c, t, -1].item()
    got += f", and {_approximate(added)}" if abs(added) > 1e-4 else ""
    wanted = _weights_in_words(right[c, t, :-1].tolist())
    yield Observation(
        Rank.WEIGHTED_SUM, f"Output {t}{channel} adds up {got}; it should be {wanted}."
    )


def _weights(trial: Trial, function: Any, name: str) -> Tensor | None:
    """(C, T_out, T + 1): how much an output moves with each token; last, what is added to it.

    For sequence 0; each channel of an output with the same channel of the tokens. None when the
    result is no such sum.
    """
    x = trial.inputs[trial.shown][trial.names.index(name)].detach()
    base = _of_sequence_0(trial.run(function, replaced(trial, trial.shown, name, x)))
    zero = _of_sequence_0(trial.run(function, replaced(trial, trial.shown, name, 0 * x)))
    if base is None or zero is None or base.shape != zero.shape:
        return None
    rows = []
    for t in range(x.shape[1]):
        moved = []
        for step in (1.0, 3.0):
            changed = x.clone()
            changed[0, t] += step
            out = _of_sequence_0(trial.run(function, replaced(trial, trial.shown, name, changed)))
            if out is None or out.shape != base.shape:
                return None
            moved.append((out - base) / step)
        if not same(*moved, 1e-4, RTOL):
            return None
        rows.append(moved[0])
    return torch.stack([*rows, zero], dim=-1).movedim(1, 0)


def _of_sequence_0(out: Tensor | None) -> Tensor | None:
    """(T_out, C) of a result (B, T_out, C)."""
    return out[0] if out is not None and out.dim() == 3 and len(out) else None


def _weights_in_words(weights: list[float]) -> str:
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
        share = _approximate(used[0][1])
        return f"all of {named}" if share == "1" else f"{share} of {named}{each}"
    return f"{named} with the weights {joined([_approximate(w) for _, w in used])}"


def _approximate(value: float) -> str:
    """A measured weight, as a fraction where it is close to one."""
    fraction = Fraction(value).limit_denominator(36)
    return str(fraction) if abs(float(fraction) - value) < 2e-5 else written(value)


# ---------------------------------------------------------------- multiplied and shifted


def how_it_follows(trial: Trial) -> Iterator[Observation]:
    """Whether the result follows when an argument is doubled, shifted, or changed a little."""
    value, wanted = trial.values[trial.shown], trial.wanted[trial.shown]
    if not trial.pairs or not value.isfinite().all():
        return
    for name in trial.tensors():
        argument = trial.inputs[trial.shown][trial.names.index(name)].detach()
        other = replaced(trial, trial.shown, name, 3 * argument.sin() + argument.cos())
        if trial.same(trial.run(trial.candidate, other), value):
            continue  # it does not depend on this argument at all
        for told, change, follow, rise in (
            (f"`{name}` is doubled", 2 * argument, "doubles as well", lambda z: 2 * z),
            (f"1 is added to all of `{name}`", argument + 1, "rises by 1", lambda z: z + 1),
        ):
            arguments = replaced(trial, trial.shown, name, change)
            key = ("follows", trial.shown, told)
            results = (
                (trial.run(trial.candidate, arguments), value),
                (trial.reference_on(key, arguments), wanted),
            )
            kinds = [_kind(trial, new, old, follow, rise) for new, old in results]
            if kinds[0] == kinds[1] or None in kinds:
                continue
            mine, right = (kind or "does neither" for kind in kinds)
            if kinds[0]:
                text = f"When {told}, your result {mine}; the right one "
                yield Observation(
                    Rank.SOME_INPUTS, text + (f"{right}." if kinds[1] else "does not.")
                )
            else:
                text = f"When {told}, the right result {right}; yours does not."
                yield Observation(Rank.NOT_FINITE, text)


def _kind(trial: Trial, new: Tensor | None, old: Tensor, follow: str, rise: Any) -> str | None:
    """How a result follows a change, in words; "" for none of these ways, None for no result."""
    if new is None or new.shape != old.shape or old.abs().max() < 100 * trial.atol:
        return None
    for told, wanted in (("stays the same", old), (follow, rise(old))):
        close = trial.close(new, wanted)
        if close.all():
            return told
        if close.double().mean() > 0.3:  # rounding, or an ε: it follows as good as
            return None
    return ""
