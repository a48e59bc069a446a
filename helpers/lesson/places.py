"""Where a result of the right shape is wrong, and which sums hold."""

from collections.abc import Iterator

import torch
from torch import Tensor

from helpers.lesson.trial import ORDINALS, Observation, Trial, the_place, written
from helpers.numbers import listed


def where_it_is_wrong(trial: Trial) -> Iterator[Observation]:
    """Which inputs, which places along an axis, which corner of a matrix."""
    yield from _some_inputs(trial)
    if not trial.pairs or all(trial.right):
        return
    value, expected = trial.pairs[trial.shown]
    yield from _kinds_of_numbers(trial)
    yield from _not_finite(value, expected, trial)
    if value.numel() < 2:
        return
    right = trial.close(value, expected)
    yield from _places(trial, right)
    yield from _corners(trial, right)


def _some_inputs(trial: Trial) -> Iterator[Observation]:
    """The answer is right for some check inputs and not for others."""
    right = trial.right
    if not any(right) or all(right):
        return
    good, bad = right.index(True), right.index(False)
    sizes = {k: (trial.sizes[good].get(k), trial.sizes[bad].get(k)) for k in trial.sizes[bad]}
    differ = [f"{k} = {a} there, {b} here" for k, (a, b) in sizes.items() if a != b]
    text = f"Your result is right for the {ORDINALS[good]} input and wrong for the {ORDINALS[bad]}"
    if trial.got[bad].error:
        text = f"Your function works for the {ORDINALS[good]} input and not for the {ORDINALS[bad]}"
    sizes_of_numbers = [_largest(trial.inputs[i]) for i in (good, bad)]
    if sizes_of_numbers[1] > 10 * sizes_of_numbers[0]:
        a, b = map(written, sizes_of_numbers)
        text += f": its numbers reach {b} there, and {a} in the {ORDINALS[good]}."
    elif differ:
        text += f" ({'; '.join(differ)}): is something fixed to the sizes?"
    else:
        text += "."
    yield Observation(16, text)


def _largest(arguments: tuple) -> float:
    """The largest number, without its sign, in the tensors of a call."""
    tensors = [a for a in arguments if isinstance(a, Tensor) and a.is_floating_point()]
    return max((a.detach().abs().max().item() for a in tensors), default=0.0)


def _kinds_of_numbers(trial: Trial) -> Iterator[Observation]:
    """Only zeros and ones, only whole numbers, none below 0, where the right ones are others."""
    values = torch.cat([v.flatten() for v, _ in trial.pairs])
    wanted = torch.cat([e.flatten() for _, e in trial.pairs])
    if not values.isfinite().all() or len(values) < 4:
        return
    if not values.any() and wanted.any():
        yield Observation(6, "Your result is 0 everywhere.")
    elif ((values == 0) | (values == 1)).all() and not ((wanted == 0) | (wanted == 1)).all():
        yield Observation(13, "Your result holds only zeros and ones.")
    elif (values == values.round()).all() and not (wanted == wanted.round()).all():
        yield Observation(13, "Your result holds only whole numbers.")
    elif (values >= 0).all() and (wanted < 0).any():
        yield Observation(18, "No number of your result is below 0; some should be.")


def _not_finite(value: Tensor, expected: Tensor, trial: Trial) -> Iterator[Observation]:
    """Where nan and inf stand."""
    lost = ~value.isfinite() & expected.isfinite()
    if not lost.any():
        return
    kind = (
        "nan" if value[lost].isnan().all() else "inf" if value[lost].isinf().all() else "nan or inf"
    )
    if lost.all():
        yield Observation(15, f"Every number is {kind}.")
        return
    if lost.dim() >= 2 and lost.shape[-1] == lost.shape[-2]:
        corner = _corner_of(lost)
        if corner:
            yield Observation(15, f"All numbers {corner} are {kind}, and no others.")
            return
    for axis in range(lost.dim()):
        along = lost.movedim(axis, 0).flatten(1) if lost.dim() > 1 else lost[:, None]
        if bool((along.all(1) | ~along.any(1)).all()):
            places = along.all(1).nonzero().flatten().tolist()
            word = _word(trial, axis, lost.dim())
            many = len(places) > 1
            yield Observation(
                15,
                f"{word.capitalize()}{'s' if many else ''} {listed(places)} of your result "
                f"{'are' if many else 'is'} {kind}, and no others are.".replace(
                    "no others are", "no others are" if many else "no other is"
                ),
            )
            return


def _word(trial: Trial, axis: int, dim: int) -> str:
    words = trial.result_axes
    if len(words) != dim:
        return "row" if axis == dim - 2 else "column" if axis == dim - 1 else "place"
    if words.count(words[axis]) > 1:
        return "row" if axis == words.index(words[axis]) else "column"
    return the_place(words[axis])


def _places(trial: Trial, right: Tensor) -> Iterator[Observation]:
    """Along one axis, some places are right throughout and all others wrong throughout."""
    if not right.any():
        return
    best: tuple[float, str] | None = None
    for axis in range(right.dim()):
        along = right.movedim(axis, 0).flatten(1) if right.dim() > 1 else right[:, None]
        good = along.all(1)
        if not good.any() or good.all():
            continue
        clean = 1 - along[~good].double().mean().item()  # 1: nothing else is right
        good_ones, bad = good.nonzero().flatten().tolist(), (~good).nonzero().flatten().tolist()
        word = _word(trial, axis, right.dim())
        if len(bad) <= len(good_ones):
            told = f"Only {word}{'s' if len(bad) > 1 else ''} {listed(bad)} {'are' if len(bad) > 1 else 'is'} wrong; "
            told += f"{word}{'s' if len(good_ones) > 1 else ''} {listed(good_ones)} {'are' if len(good_ones) > 1 else 'is'} right."
        else:
            many = len(good_ones) > 1
            told = f"Only {word}{'s' if many else ''} {listed(good_ones)} {'are' if many else 'is'} right."
        if best is None or clean > best[0]:
            best = clean, told
    if best and best[0] > 0.5:
        yield Observation(17 if best[0] > 0.85 else 24, best[1])


def _corners(trial: Trial, right: Tensor) -> Iterator[Observation]:
    """In square matrices: only the diagonal, or only what is above or below it."""
    if right.dim() < 2 or right.shape[-1] != right.shape[-2] or right.shape[-1] < 3:
        return
    words = trial.result_axes
    if len(words) >= 2 and words[-1] != words[-2]:
        return
    for wrong, verb in ((True, "wrong"), (False, "right")):
        corner = _corner_of(~right if wrong else right)
        if corner:
            yield Observation(16, f"Exactly the numbers {corner} are {verb}.")
            return


def _corner_of(mask: Tensor) -> str:
    """Name the part of the last two axes where a mask is True: all of it, and nothing else."""
    ones = torch.ones(mask.shape[-2:], dtype=torch.bool)
    for name, part in (
        ("on the diagonal", ones.tril() & ones.triu()),
        ("above the diagonal", ones.triu(1)),
        ("below the diagonal", ones.tril(-1)),
        ("on and above the diagonal", ones.triu()),
        ("on and below the diagonal", ones.tril()),
        ("off the diagonal", ones.triu(1) | ones.tril(-1)),
    ):
        if torch.equal(mask, part.expand_as(mask)):
            return name
    return ""


# ---------------------------------------------------------------- sums


def which_sums_hold(trial: Trial) -> Iterator[Observation]:
    """Sums of 1 over an axis: where they should be, and where they are instead."""
    if not trial.pairs or all(trial.right):
        return
    value, expected = trial.pairs[trial.shown]
    dim = value.dim()
    if dim < 1 or not value.isfinite().all():
        return
    rows = _ones(trial, expected, dim - 1)
    if rows and not _ones(trial, value, dim - 1):
        for axis in range(dim - 1):
            if _ones(trial, value, axis):
                word = _word(trial, axis, dim)
                over = "column" if axis == dim - 2 else f"sum over the {word}s"
                yield Observation(
                    7,
                    f"Each {over} of your result {'sums to' if 'col' in over else 'is'} 1; each row should sum to 1.",
                )
                return
        total = value.sum().item()
        if abs(total - 1) < 1e-4:
            yield Observation(
                7, "All numbers of your result together sum to 1; each row should sum to 1."
            )
            return
        if dim > 2 and _ones(trial, value.flatten(-2), dim - 2):
            yield Observation(
                7, "Each matrix of your result sums to 1 as a whole; each row should sum to 1."
            )
            return
        sums = value.sum(-1).flatten()
        bad = (~trial.close(sums, torch.ones_like(sums))).nonzero().flatten().tolist()
        if len(bad) == len(sums) and float(sums.max() - sums.min()) < 1e-4:
            yield Observation(19, f"Each row sums to {written(sums[0].item())}, not 1.")
        else:
            yield Observation(20, f"Row {bad[0]} sums to {written(sums[bad[0]].item())}, not 1.")
        return
    if rows:
        return
    for axis in range(dim):
        if (
            dim > 1
            and value.shape[axis] > 1
            and trial.close(value.sum(axis), expected.sum(axis)).all()
        ):
            word = _word(trial, axis, dim)
            yield Observation(
                22, f"The sums over the {word}s are right, the single numbers are not."
            )
            return


def _ones(trial: Trial, z: Tensor, axis: int) -> bool:
    sums = z.sum(axis)
    return bool(trial.close(sums, torch.ones_like(sums)).all())


# ---------------------------------------------------------------- a row, when all else says little


def a_row_of_weights(trial: Trial) -> Iterator[Observation]:
    """The first wrong row beside the right one, where rows are weights."""
    if not trial.pairs or all(trial.right):
        return
    value, expected = trial.pairs[trial.shown]
    if (
        value.dim() < 1
        or not 1 < value.shape[-1] <= 8
        or not _ones(trial, expected, value.dim() - 1)
    ):
        return
    mine, right = value.reshape(-1, value.shape[-1]), expected.reshape(-1, value.shape[-1])
    wrong = (~trial.close(mine, right)).any(1).nonzero().flatten().tolist()
    i = next((i for i in wrong if 1 < i % value.shape[-2:][0]), wrong[0]) if value.dim() > 1 else 0
    place = i if value.dim() == 2 else i % value.shape[-2] if value.dim() > 2 else 0
    got = " ".join(written(n) for n in mine[i].tolist())
    wanted = " ".join(written(n) for n in right[i].tolist())
    yield Observation(21, f"Row {place} is {got}; it should be {wanted}.")
