"""What a wrong result is: an argument, a step on the way, one of them multiplied."""

import re
from collections.abc import Iterator

from torch import Tensor

from attention_base.numbers import joined
from feedback.calls import notebook_tensors, unused_steps
from feedback.observations.factors import factor_name, factors_along, ratio_of
from feedback.observations.order import Rank
from feedback.observations.trial import ORDINALS, Observation, Pair, Trial, place_word, written


def what_it_is(trial: Trial) -> Iterator[Observation]:
    """One of the arguments, or a step on the way to the right result."""
    for i, name in enumerate(trial.names[: len(trial.inputs[0])]):
        arguments = [case[i] for case in trial.inputs]
        if all(isinstance(a, Tensor) for a in arguments):
            given = [a.detach().double() for a in arguments]
            if trial.is_everywhere(given):
                yield Observation(Rank.STEP, f"Your result is `{name}` itself, unchanged.")
            elif trial.is_everywhere([a.mT if a.dim() > 1 else None for a in given]):
                text = f"Your result is `{name}` with its last two axes swapped."
                yield Observation(Rank.OTHER_FORM, text)
            elif not trial.several and _same_reading_order(trial, given):
                yield Observation(
                    Rank.OTHER_FORM,
                    f"Your result holds the numbers of `{name}` in their old reading order: its "
                    "shape was changed, and no number moved (view and reshape do that).",
                )
    for name, compute in trial.intermediates:
        cases = range(len(trial.inputs))
        if not all(trial.right) and all(
            trial.same(trial.values[i], trial.step(name, compute, i)) for i in cases
        ):
            yield Observation(Rank.STEP, f"Your result is {name}.")


def what_it_never_uses(trial: Trial) -> Iterator[Observation]:
    """A step that the code computes, and the result does not depend on."""
    if not all(trial.right) and (unused := unused_steps(trial.candidate)):
        told = joined([f"`{name}`" for name in unused])
        it = "it" if len(unused) == 1 else "them"
        yield Observation(Rank.UNUSED_STEP, f"You compute {told}, and nothing uses {it}.")


def what_it_takes_from_the_notebook(trial: Trial) -> Iterator[Observation]:
    """A tensor that the code uses and that is none of its arguments."""
    if not all(trial.right) and (taken := notebook_tensors(trial.candidate)):
        told = joined([f"`{name}`" for name in taken])
        text = f"Your function uses {told} of the notebook; its arguments are all it should need."
        yield Observation(Rank.FROM_NOTEBOOK, text)


def _same_reading_order(trial: Trial, given: list[Tensor]) -> bool:
    pairs = list(zip(trial.values, given, strict=True))
    return not all(trial.right) and all(
        v is not None and v.numel() > 1 and trial.same(v.flatten(), a.flatten()) for v, a in pairs
    )


def step_with_factors(trial: Trial) -> Iterator[Observation]:
    """A step on the way to the right result, multiplied as a whole or along one axis."""
    if all(trial.right) or any(v is None or not v.isfinite().all() for v in trial.values):
        return
    for name, compute in trial.intermediates:
        first = trial.step(name, compute, 0)
        if first is None or first.shape != trial.values[0].shape:
            continue
        results = [trial.step(name, compute, i) for i in range(len(trial.inputs))]
        pairs = list(zip(trial.values, results, strict=True))
        if any(r is None or r.shape != v.shape or not r.isfinite().all() for v, r in pairs):
            continue
        ratios = [ratio_of(trial, v, r) for v, r in pairs]
        if None not in ratios:
            told = factor_name(ratios, trial)
            if not told and pairs[0][0].numel() > 1 and all(1e-3 < abs(r) < 1e3 for r in ratios):
                told = written(ratios[0])
                if len({written(r) for r in ratios}) > 1:
                    pairs_told = zip(ratios, ORDINALS, strict=False)
                    told = joined([f"{written(r)} (in the {nth} input)" for r, nth in pairs_told])
            if told:
                yield Observation(Rank.CAUSE, f"Your result is {told} times {_plain(name)}.")
                return
        value, step = pairs[trial.shown]
        for axis in range(value.dim()):
            factors = factors_along(trial, value, step, axis)
            if factors and None not in factors and _factors_in_all(trial, pairs, axis):
                word = place_word(trial, axis, value.dim())
                told = joined([f"{written(f)} in {word} {i}" for i, f in enumerate(factors[:3])])
                more = ", and so on." if len(factors) > 3 else "."
                yield Observation(Rank.SHAPE, f"Your result is {_plain(name)}, times {told}{more}")
                return


def _plain(name: str) -> str:
    """The name of a step without what it still lacks: "the running sums, not yet divided"."""
    return re.sub(r",[^,]*not yet.*", "", name)


def _factors_in_all(trial: Trial, pairs: list[Pair], axis: int) -> bool:
    return all(factors_along(trial, value, step, axis) for value, step in pairs)
