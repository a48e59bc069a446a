"""Where a result of the right shape is wrong, and which sums hold."""

import itertools
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from attention_base.numbers import joined, listed
from feedback import axes as names_of_axes
from feedback import messages
from feedback.observations.order import Rank
from feedback.observations.rows import proportions
from feedback.observations.trial import ORDINALS, Observation, Trial, place_word, plural, written


def where_it_is_wrong(trial: Trial) -> Iterator[Observation]:
    """Which inputs, which kinds of numbers, which places along an axis."""
    yield from _some_inputs(trial)
    if not trial.pairs or all(trial.right):
        return
    value, expected = trial.pairs[trial.shown]
    yield from _kinds_of_numbers(trial)
    yield from _not_finite(value, expected, trial)
    if value.numel() < 2:
        return
    yield from _places(trial, trial.close(value, expected))


def _some_inputs(trial: Trial) -> Iterator[Observation]:
    """The answer is right for some check inputs and not for others: what tells them apart."""
    right = trial.right
    if not any(right) or all(right):
        return
    plain = [i for i, one in enumerate(trial.sizes) if right[i] and 1 not in one.values()]
    good, bad = (plain or [right.index(True)])[0], right.index(False)
    does = "Your function works" if trial.got[bad].error else "Your result is right"
    verb = "raises" if trial.got[bad].error else "is wrong"
    axes = [_numbers_of_axes(trial.inputs[i]) for i in (good, bad)]
    if axes[0] != axes[1]:
        text = f"{does} for an input with {axes[0]} axes, and {verb} for one with {axes[1]}."
        yield Observation(Rank.SOME_INPUTS, text)
        return
    sizes = [_largest(trial.inputs[i]) for i in (good, bad)]
    if sizes[1] > 10 * sizes[0] > 0:
        a, b = map(written, sizes)
        text = f"{does} where the numbers reach {a}, and {verb} where they reach {b}."
        yield Observation(Rank.SOME_INPUTS, text)
        return
    alike = [f"{a} = {b}" for a, b in _equal_only_where_right(trial)]
    if alike:
        what = f"where {' and '.join(alike[:2])}"
        yield Observation(Rank.SOME_INPUTS, f"{does} {what}, and {verb} where they differ.")
        return
    single = [k for k, n in trial.sizes[good].items() if n == 1 != trial.sizes[bad].get(k)]
    if single:
        text = f"{does} where {single[0]} = 1, and {verb} where it is more."
        yield Observation(Rank.CORNER, text)
        return
    if told := _scale_where_it_fails(trial, good):
        text = f"{does} for the numbers of the {ORDINALS[good]} input, {told}"
        yield Observation(Rank.SOME_INPUTS, text)
        return
    own = {k: n for k, n in trial.sizes[good].items() if trial.sizes[bad].get(k) != n}
    text = f"{does} for the {ORDINALS[good]} input, and {verb} for the {ORDINALS[bad]}"
    if own and _fails_at_other_sizes(trial, good, own):
        listed_sizes = ", ".join(f"{k} = {n}" for k, n in own.items())
        text += f": is something fixed to the sizes of the {ORDINALS[good]} ({listed_sizes})?"
        yield Observation(Rank.CORNER, text)
    else:
        yield Observation(Rank.ONE_INPUT, f"{text}.")


def _scale_where_it_fails(trial: Trial, good: int) -> str:
    """Multiply the numbers of an input that is right until it is wrong; "" if it stays right."""
    names = trial.tensors()
    if len(names) != 1 and set(names) != set(trial.names):
        names = names[:1]  # what belongs to the data, and not to the weights
    for factor in (3, 10, 100, 1 / 3, 1 / 10, 1 / 100):
        pairs = zip(trial.names, trial.inputs[good], strict=False)
        arguments = tuple(factor * a if n in names else a for n, a in pairs)
        right = trial.reference_on(("scaled", good, factor), arguments)
        mine = trial.run(trial.candidate, arguments)
        if mine is None or right is None or not right.isfinite().all():
            continue
        if not trial.same(mine, right):
            larger = messages.low_mask(trial.candidate) if factor > 1 else ""
            return f"and is wrong for {written(factor)} times these numbers.{larger}"
    return ""


def _fails_at_other_sizes(trial: Trial, good: int, own: Mapping[str, int]) -> bool:
    """Whether an input that is right turns wrong once it has the sizes of the wrong one."""
    arguments = trial.inputs[good]
    turned = tuple(a.flip(*range(a.dim())) if isinstance(a, Tensor) else a for a in arguments)
    right = trial.reference_on(("turned", good), turned)
    if right is not None and not trial.same(trial.run(trial.candidate, turned), right):
        return False  # its numbers in another order are enough
    for letter in own:
        size = trial.sizes[trial.right.index(False)].get(letter)
        if size and letter in names_of_axes.all_letters(trial.axes):
            arguments = names_of_axes.resized(trial.axes, trial.names, arguments, letter, size)
    key = ("at other sizes", good)
    right = trial.reference_on(key, arguments)
    mine = trial.run(trial.candidate, arguments)
    if right is None or trial.same(mine, right):
        return False
    # Where most numbers are right, it is not the size that is wrong.
    wrong = mine is None or mine.shape != right.shape
    return wrong or trial.close(mine, right).double().mean().item() < 0.6


def _numbers_of_axes(arguments: tuple) -> int:
    return max((a.dim() for a in arguments if isinstance(a, Tensor)), default=0)


def _equal_only_where_right(trial: Trial) -> Iterator[tuple[str, str]]:
    """Pairs of axes of one size in every input that is right, and in no other."""
    letters = [k for k in trial.sizes[0] if all(k in one for one in trial.sizes)]
    # A size of 1 hides many a mistake, so such an input proves nothing.
    cases = [i for i, one in enumerate(trial.sizes) if 1 not in one.values()]
    sizes, right = [trial.sizes[i] for i in cases], [trial.right[i] for i in cases]
    if len(set(right)) < 2:
        return
    for a, b in itertools.combinations(letters, 2):
        if [one[a] == one[b] for one in sizes] == right:
            yield a, b
    products = [
        (a, f"{b}·{c}")
        for a, b, c in itertools.permutations(letters, 3)
        if b < c and [one[a] == one[b] * one[c] for one in sizes] == right
    ]
    if len(products) == 1:  # of several, all may be chance
        yield products[0]


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
    has_fractions = bool(((wanted - wanted.round()).abs() > 0.05).any())
    if not values.any() and wanted.any():
        yield Observation(Rank.ONE_RULE, "Your result is 0 everywhere.")
    elif ((values == 0) | (values == 1)).all() and has_fractions:
        text = "Your result holds only zeros and ones; the right one has fractions."
        yield Observation(Rank.ALL_ROWS, text)
    elif (values == values.round()).all() and has_fractions:
        text = "Your result holds only whole numbers; the right one has fractions."
        yield Observation(Rank.ALL_ROWS, text)
    elif (values >= 0).all() and (wanted < 0).any():
        yield Observation(Rank.WEIGHTED_SUM, "No number of your result is below 0; some should be.")


def _not_finite(value: Tensor, expected: Tensor, trial: Trial) -> Iterator[Observation]:
    """Where nan and inf stand."""
    lost = ~value.isfinite() & expected.isfinite()
    if not lost.any():
        return
    kind = _kind_of(value[lost])
    if lost.all():
        yield Observation(Rank.NOT_FINITE, f"Every number is {kind}.")
        return
    if lost.dim() >= 2 and lost.shape[-1] == lost.shape[-2]:
        corner = _corner_of(lost)
        if corner:
            yield Observation(Rank.NOT_FINITE, f"All numbers {corner} are {kind}, and no others.")
            return
    for axis in reversed(range(lost.dim())) if lost.dim() > 2 else range(lost.dim()):
        along = lost.movedim(axis, 0).flatten(1) if lost.dim() > 1 else lost[:, None]
        if bool((along.all(1) | ~along.any(1)).all()):
            places = along.all(1).nonzero().flatten().tolist()
            word = place_word(trial, axis, lost.dim())
            many = len(places) > 1
            which = f"{plural(word) if many else word} {listed(places)}".capitalize()
            rest = "are" if many else "is"
            text = f"{which} of your result {rest} {kind}, and nothing else is."
            yield Observation(Rank.NOT_FINITE, text)
            return


def _kind_of(lost: Tensor) -> str:
    kinds = ("nan", lost.isnan()), ("inf", lost == torch.inf), ("-inf", lost == -torch.inf)
    return next((kind for kind, where in kinds if where.all()), "nan or inf")


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
        word = place_word(trial, axis, right.dim())
        told = f"Only {_places_in_words(word, good_ones)} right."
        if len(bad) <= len(good_ones):
            told = f"Only {_places_in_words(word, bad)} wrong."
        if best is None or clean > best[0]:
            best = clean, told
    if best and best[0] > 0.5:
        yield Observation(Rank.SOME_PLACES if best[0] > 0.85 else Rank.MOST_PLACES, best[1])


def _places_in_words(word: str, places: list[int]) -> str:
    """Say "row 2 is" or "rows 0 to 2 are"."""
    if len(places) == 1:
        return f"{word} {places[0]} is"
    return f"{plural(word)} {listed(places)} are"


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
                sums = f"sum over the {plural(place_word(trial, axis, dim))} is"
                what = "column of your result sums to" if axis == dim - 2 else sums
                yield Observation(Rank.ALL_ROWS, f"Each {what} 1; each row should sum to 1.")
                return
        together = "sum to 1; each row should sum to 1."
        if all((v.sum() - 1).abs() < 1e-4 < (e.sum() - 1).abs() for v, e in trial.pairs):
            yield Observation(Rank.ALL_ROWS, f"All numbers of your result together {together}")
            return
        if dim > 2 and _ones(trial, value.flatten(-2), dim - 2):
            yield Observation(Rank.ALL_ROWS, f"All numbers of one matrix together {together}")
            return
        if any(proportions(trial)):
            return  # the sums are told there
        sums = value.sum(-1).flatten()
        bad = int((~trial.close(sums, torch.ones_like(sums))).double().argmax())
        which = f"Row {bad % value.shape[-2]}" if dim > 1 else "Your result"
        if dim == 3 and bad >= value.shape[-2]:
            which += f" of {place_word(trial, 0, dim)} {bad // value.shape[-2]}"
        if sums.max() - sums.min() < 1e-4 and len(sums) > 1:
            which = "Each row"
        yield Observation(Rank.ROW_SUM, f"{which} sums to {written(sums[bad].item())}, not 1.")
        return
    if rows or dim < 2:
        return
    for axis in range(dim):
        sums = expected.sum(axis)
        equal = trial.close(value.sum(axis), sums)
        if value.shape[axis] > 1 and equal.all() and sums.abs().max() > 100 * trial.atol:
            words = plural(place_word(trial, axis, dim))
            what = "The sum of each row is" if axis == dim - 1 else f"The sums over the {words} are"
            yield Observation(Rank.SUMS_HOLD, f"{what} right, the single numbers are not.")
            return


def _ones(trial: Trial, z: Tensor, axis: int) -> bool:
    sums = z.sum(axis)
    return bool(trial.close(sums, torch.ones_like(sums)).all())


# ---------------------------------------------------------------- a row, when all else says little


def a_row_of_weights(trial: Trial) -> Iterator[Observation]:
    """The first wrong row beside the right one, where a matrix of weights is made of numbers."""
    if not trial.pairs or trial.tensors() or all(trial.right):
        return
    value, expected = trial.pairs[trial.shown]
    if value.dim() != 2 or value.shape[1] > 8 or not _ones(trial, expected, 1):
        return
    wrong = (~trial.close(value, expected)).any(1).nonzero().flatten().tolist()
    row = next((i for i in wrong if i > 1), wrong[0])  # the first two have few weights
    got, wanted = (" ".join(map(written, z[row].tolist())) for z in (value, expected))
    yield Observation(Rank.ONE_ROW, f"Row {row} is {got}; it should be {wanted}.")


def which_tokens_have_weights(trial: Trial) -> Iterator[Observation]:
    """Where weights are made of numbers: at which distances they stand, and should stand."""
    if not trial.pairs or trial.tensors() or trial.result_axes != ["T", "T"]:
        return
    bands = [[_band(trial, z) for z in pair] for pair in trial.pairs]
    if all(mine and right and mine != right for mine, right in bands):
        given = zip(trial.names, trial.inputs[trial.shown], strict=False)
        numbers = joined([f"{name} = {number}" for name, number in given])
        text = "With {}, row t has its weights on {}; it should have them on {}."
        yield Observation(Rank.OTHER_BAND, text.format(numbers, *bands[trial.shown]))


def _band(trial: Trial, z: Tensor) -> str:
    """On which tokens row t has its weights, in words; "" unless this depends on s - t alone."""
    T = z.shape[-1] if z.dim() else 0
    if z.shape != (T, T):
        return ""
    z = z.nan_to_num()  # a row of nan has no weights
    later, used = torch.arange(T) - torch.arange(T)[:, None], z != 0
    distances = later[used].tolist()
    first, last = min(distances, default=0), max(distances, default=0)
    band = (first <= later) & (later <= last)
    if not (used == band).all() or not trial.close(z.sum(-1), used.any(-1).double()).all():
        return ""
    start, end = (f"t {'-' if n < 0 else '+'} {abs(n)}" if n else "t" for n in (first, last))
    if first == last:
        return f"token {start}"
    if first == 1 - T:
        return "all tokens" if last == T - 1 else f"all tokens up to {end}"
    return f"all tokens from {start} on" if last == T - 1 else f"tokens {start} to {end}"
