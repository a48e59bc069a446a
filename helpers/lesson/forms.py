"""Wrong shapes, wrong types and crashes: what can be found out all the same."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from helpers.lesson import axes as names_of_axes
from helpers.lesson.calls import call, is_number
from helpers.lesson.trial import ORDINALS, Observation, Trial
from helpers.numbers import joined


def what_form_it_has(trial: Trial) -> Iterator[Observation]:
    """The shape in letters, the right result inside a tuple, or where it runs at all."""
    if trial.got[trial.shown].error:
        yield from _where_it_runs(trial)
        return
    if trial.got[trial.shown].changed_input and trial.right[trial.shown]:
        yield Observation(20, "The numbers that it returns are right.")
    yield from _inside(trial)
    yield from _shape_in_letters(trial)


def _shape_in_letters(trial: Trial) -> Iterator[Observation]:
    wrong = [
        i
        for i, (v, e) in enumerate(zip(trial.values, trial.wanted, strict=True))
        if v is not None and v.shape != e.shape
    ]
    if not wrong or not trial.wanted[0].dim():
        return
    known = [trial.sizes[i] for i in wrong]
    got = names_of_axes.spelled([tuple(trial.values[i].shape) for i in wrong], known)
    right = trial.axes.get("return", "")
    if got and right and "..." not in right:
        wanted = ", ".join(names_of_axes.letters(right))
        yield Observation(12, f"In letters, your result is {got}; it should be ({wanted}).")


def _inside(trial: Trial) -> Iterator[Observation]:
    """A tuple, a list or a dict that holds the right result, or makes it up."""
    values = [outcome.value for outcome in trial.got]
    if all(isinstance(v, dict) for v in values):
        parts = [tuple(v.values()) for v in values]
        if trial.several and all(map(_stack_is_right, [trial] * len(parts), parts, trial.wanted)):
            yield Observation(
                4,
                "The values of your dict are the right tensors: return them as a tuple, without names.",
            )
        return
    if all(isinstance(v, tuple | list) and v for v in values):
        for i in range(min(map(len, values))):
            parts = [_number_or_none(v[i]) for v in values]
            if all(trial.same(p, e) for p, e in zip(parts, trial.wanted, strict=True)):
                count = len(values[0])
                kind = type(values[0]).__name__
                yield Observation(
                    4,
                    f"Item {i} of the {count} in your {kind} is the right result: return it alone.",
                )
                return
            if all(
                p is not None and trial.same(p.mT if p.dim() > 1 else p, e)
                for p, e in zip(parts, trial.wanted, strict=True)
            ):
                yield Observation(
                    4,
                    f"Item {i} of your {type(values[0]).__name__} is the right result transposed.",
                )
                return
        if all(map(_nested_is_right, [trial] * len(values), values, trial.wanted)):
            yield Observation(4, "The numbers are right; they are nested lists, not a tensor.")


def _number_or_none(value: Any) -> Tensor | None:
    return torch.as_tensor(value).detach().double() if is_number(value) else None


def _stack_is_right(trial: Trial, parts: Sequence[Any], wanted: Tensor) -> bool:
    try:
        return trial.same(torch.stack(list(parts)).detach().double(), wanted)
    except (RuntimeError, TypeError):
        return False


def _nested_is_right(trial: Trial, value: Any, wanted: Tensor) -> bool:
    try:
        return trial.same(torch.tensor(value, dtype=torch.double), wanted)
    except (RuntimeError, TypeError, ValueError):
        return False


# ---------------------------------------------------------------- it raises


def _where_it_runs(trial: Trial) -> Iterator[Observation]:
    """Inputs for which the function does not raise, and whether it is right there."""
    runs = [i for i, outcome in enumerate(trial.got) if not outcome.error]
    if runs:
        i = runs[0]
        if trial.right[i]:
            return  # told among the places
        yield Observation(
            18, f"It does not raise for the {ORDINALS[i]} input, but its result is wrong there."
        )
        return
    for told, arguments in _gentler(trial):
        outcome = call(trial.candidate, arguments, trial.names, trial.several)
        if outcome.error:
            continue
        wanted = trial.run(trial.reference, arguments)
        value = torch.as_tensor(outcome.value).double() if is_number(outcome.value) else None
        if wanted is None:
            continue
        result = (
            "and its result is right there"
            if trial.same(value, wanted)
            else "but its result is wrong there"
        )
        yield Observation(14, f"Your function runs only where {told}, {result}.")
        return


def _gentler(trial: Trial) -> Iterator[tuple[str, tuple]]:
    """Inputs for which mixed-up axes do not raise: two sizes equal, or one of them 1."""
    case, sizes = trial.inputs[0], trial.sizes[0]
    letters = [k for k, n in sizes.items() if n > 1]
    for i, a in enumerate(letters):
        for b in letters[i + 1 :]:
            least = min(sizes[a], sizes[b])
            one = names_of_axes.cut(trial.axes, trial.names, case, a, least)
            yield f"{a} = {b}", names_of_axes.cut(trial.axes, trial.names, one, b, least)
    for a in letters:
        yield f"{a} = 1", names_of_axes.cut(trial.axes, trial.names, case, a, 1)
    arguments = case
    if len(letters) > 2:
        least = min(sizes[k] for k in letters)
        for a in letters:
            arguments = names_of_axes.cut(trial.axes, trial.names, arguments, a, least)
        yield f"{joined(letters)} are equal", arguments
