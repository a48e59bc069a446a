"""How a wrong result relates to the right one, to the arguments, and to steps on the way."""

import itertools
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from helpers.lesson.trial import ORDINALS, Observation, Pair, Trial, place_word, plural, written
from helpers.numbers import joined, listed

# ---------------------------------------------------------------- what it is


def what_it_is(trial: Trial) -> Iterator[Observation]:
    """One of the arguments, or a step on the way to the right result."""
    for i, name in enumerate(trial.names[: len(trial.inputs[0])]):
        arguments = [case[i] for case in trial.inputs]
        if all(isinstance(a, Tensor) for a in arguments):
            given = [a.detach().double() for a in arguments]
            if _all_same(trial, given):
                yield Observation(3, f"Your result is `{name}` itself, unchanged.")
            elif _all_same(trial, [a.mT if a.dim() > 1 else None for a in given]):
                yield Observation(4, f"Your result is `{name}` with its last two axes swapped.")
            elif _same_reading_order(trial, given):
                yield Observation(
                    4,
                    f"Your result holds the numbers of `{name}` in their old reading order: its "
                    "shape was changed, and no number moved (view and reshape do that).",
                )
    for name, compute in trial.intermediates:
        cases = range(len(trial.inputs))
        if not all(trial.right) and all(
            trial.same(trial.values[i], _step(trial, name, compute, i)) for i in cases
        ):
            yield Observation(3, f"Your result is {name}.")


def _all_same(trial: Trial, others: list[Tensor | None]) -> bool:
    pairs = zip(trial.values, others, strict=True)
    return all(trial.same(v, other) for v, other in pairs) and not all(trial.right)


def _same_reading_order(trial: Trial, given: list[Tensor]) -> bool:
    pairs = list(zip(trial.values, given, strict=True))
    return not all(trial.right) and all(
        v is not None and v.numel() > 1 and trial.same(v.flatten(), a.flatten()) for v, a in pairs
    )


def _step(trial: Trial, name: str, compute: Callable, case: int) -> Tensor | None:
    """A step on the way on one check input; computed once, since it never changes."""
    key = ("step", name, case)
    if key not in trial.remembered:
        trial.remembered[key] = trial.run_known(compute, trial.inputs[case])
    return trial.remembered[key]


# ---------------------------------------------------------------- every number in one way

UNARY: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = (
    ("the right ones squared", torch.square),
    ("the square roots of the right ones", torch.sqrt),
    ("1 divided by the right ones", torch.reciprocal),
    ("the exponentials of the right ones", torch.exp),
    ("the right ones without their signs", torch.abs),
    ("the right ones with every negative number set to 0 (a ReLU)", lambda e: e.clamp(min=0)),
    ("the right ones rounded to whole numbers", torch.round),
    ("the right ones rounded down to whole numbers", torch.floor),
    ("the right ones rounded towards 0", torch.trunc),
    ("1 minus the right ones", lambda e: 1 - e),
    *(
        (
            f"the right ones rounded to {n} decimal{'s' if n > 1 else ''}",
            lambda e, n=n: torch.round(e, decimals=n),
        )
        for n in (1, 2, 3, 4)
    ),
)


def every_number(trial: Trial) -> Iterator[Observation]:
    """One rule that makes every number of the result from the right one."""
    if not trial.pairs or all(trial.right):
        return
    if text := _factor(trial):
        yield Observation(6, text)
    if text := _offset(trial):
        yield Observation(6, text)
    single = all(e.numel() == 1 for _, e in trial.pairs)
    for name, change in UNARY:
        if single and "whole" in name:  # by chance, or for another reason
            continue
        if all(trial.same(v, change(e)) for v, e in trial.pairs):
            yield Observation(6, f"Your numbers are {name}.")
    if all((v <= 0).all() and trial.same(v.exp(), e) for v, e in trial.pairs):
        yield Observation(5, "Your numbers are the logarithms of the right ones.")
    yield from _argument_added(trial)
    yield from _cut_off(trial)


def _factor(trial: Trial) -> str:
    """Say by what all numbers are multiplied, with its name where it has one."""
    ratios = [_ratio(trial, v, e) for v, e in trial.pairs]
    numbers = sum(e.numel() for _, e in trial.pairs)
    if any(ratio is None for ratio in ratios) or numbers < 2:
        return ""
    name = factor_name(ratios, trial)
    if name:
        return f"Every number is {name} times what it should be."
    wrong = [i for i, right in enumerate(trial.right) if not right]
    if 1 < len(wrong) < len(ratios) and (name := factor_name(ratios, trial, wrong)):
        told = listed([i + 1 for i in wrong])
        return f"In inputs {told}, every number is {name} times what it should be."
    if all(e.numel() < 2 for _, e in trial.pairs):  # one number always has a ratio
        return ""
    told = [
        f"right in the {ORDINALS[i]} input"
        if math.isclose(ratio, 1, rel_tol=1e-5)
        else f"{written(ratio)} times what it should be in the {ORDINALS[i]}"
        for i, ratio in enumerate(ratios)
    ]
    return f"Every number is {joined(told)}."


def _ratio(trial: Trial, value: Tensor, expected: Tensor) -> float | None:
    """The factor between two tensors, where there is one."""
    finite = expected.isfinite() & value.isfinite()
    if not torch.equal(value.isfinite(), expected.isfinite()) or not finite.any():
        return None
    largest = expected.masked_fill(~finite, 0).abs().flatten().argmax()
    wanted = expected.flatten()[largest].item()
    ratio = value.flatten()[largest].item() / wanted if wanted else 0.0
    if ratio and bool(trial.close(value / ratio, expected).all()):
        return ratio
    return None


def factor_name(
    ratios: list[float], trial: Trial, cases: list[int] | None = None, rel_tol: float = 2e-5
) -> str:
    """Name factors, one for each check input, that are the same simple function of its sizes.

    "" when there is none, or when all factors are 1. `cases` says which inputs count; all, when
    left out. `rel_tol` is how far from a named factor each may lie.
    """
    cases = list(range(len(ratios))) if cases is None else cases

    def picked(values: list[float]) -> list[float]:
        return [values[i] for i in cases]

    ratios = picked(ratios)
    if all(math.isclose(ratio, 1, rel_tol=rel_tol) for ratio in ratios):
        return ""
    for sign, positive in (("", ratios), ("-", [-ratio for ratio in ratios])):
        if min(positive) <= 0:
            continue
        for name, factors in named_factors(trial):
            if all(
                math.isclose(a, b, rel_tol=rel_tol)
                for a, b in zip(positive, picked(factors), strict=True)
            ):
                return sign + name
        for name, sizes in _sizes_by_name(trial):
            for root, power in (("", 1), ("√", 2)):
                fixed = [n / ratio**power for n, ratio in zip(picked(sizes), positive, strict=True)]
                k = round(fixed[0])
                if k > 1 and all(math.isclose(f, k, rel_tol=rel_tol) for f in fixed):
                    return f"{sign}{root}({name}/{k})" if root else f"{sign}{name}/{k}"
    return ""


def named_factors(trial: Trial) -> list[tuple[str, list[float]]]:
    """Factors that have a name, with their value for each check input: 2, 1/√d, ln 2, …."""
    if "factors" in trial.remembered:
        return trial.remembered["factors"]
    count = len(trial.inputs)
    found = [("2", [2.0] * count), ("1/2", [0.5] * count), ("1", [1.0] * count)]
    for name, sizes in _sizes_by_name(trial):
        found += _functions_of(name, sizes)
    found += [(str(n), [float(n)] * count) for n in range(3, 101)]
    found += [(f"1/{n}", [1 / n] * count) for n in range(3, 101)]
    found += [(f"√{n}", [n**0.5] * count) for n in range(2, 33)]
    found += [(f"1/√{n}", [n**-0.5] * count) for n in range(2, 33)]
    found += [("ln 2 (0.69)", [math.log(2)] * count), ("1/ln 2", [1 / math.log(2)] * count)]
    found += [("ln 10", [math.log(10)] * count), ("1/ln 10", [1 / math.log(10)] * count)]
    for (a, first), (b, second) in itertools.combinations(_sizes_by_name(trial), 2):
        both = list(zip(first, second, strict=True))
        found += [
            (f"{a}·{b}", [m * n for m, n in both]),
            (f"1/({a}·{b})", [1 / (m * n) for m, n in both]),
            (f"{a}/{b}", [m / n for m, n in both]),
            (f"{b}/{a}", [n / m for m, n in both]),
            (f"√({a}/{b})", [(m / n) ** 0.5 for m, n in both]),
            (f"√({b}/{a})", [(n / m) ** 0.5 for m, n in both]),
        ]
    trial.remembered["factors"] = found
    return found


def _functions_of(name: str, sizes: list[float]) -> Iterator[tuple[str, list[float]]]:
    yield name, list(sizes)
    yield f"1/{name}", [1 / n for n in sizes]
    yield f"√{name}", [n**0.5 for n in sizes]
    yield f"1/√{name}", [n**-0.5 for n in sizes]
    yield f"{name}²", [n**2 for n in sizes]
    yield f"1/{name}²", [n**-2 for n in sizes]
    if min(sizes) > 1:
        yield f"({name} − 1)/{name}", [(n - 1) / n for n in sizes]
        yield f"√(({name} − 1)/{name})", [((n - 1) / n) ** 0.5 for n in sizes]
        yield f"{name}/({name} − 1)", [n / (n - 1) for n in sizes]
    yield f"1/({name} + 1)", [1 / (n + 1) for n in sizes]
    yield f"2/{name}", [2 / n for n in sizes]
    yield f"{name}/2", [n / 2 for n in sizes]
    yield f"4/{name}", [4 / n for n in sizes]
    yield f"{name}/4", [n / 4 for n in sizes]


def _sizes_by_name(trial: Trial) -> list[tuple[str, list[float]]]:
    """Sizes, and numbers above 0 among the arguments, with their value in each input."""
    found = {
        letter: [float(one[letter]) for one in trial.sizes]
        for letter in trial.sizes[0]
        if all(one.get(letter, 0) > 0 for one in trial.sizes)
    }
    for i, name in enumerate(trial.names[: len(trial.inputs[0])]):
        values = [case[i] for case in trial.inputs]
        if all(type(v) in (int, float) and v > 0 for v in values) and name not in found:
            found[name] = [float(v) for v in values]
    several = {name: sizes for name, sizes in found.items() if len(set(sizes)) > 1}
    return list(several.items())


def _offset(trial: Trial) -> str:
    """Say what was added to all numbers, or to all numbers of a row."""
    offsets = []
    for value, expected in trial.pairs:
        if not (value.isfinite().all() and expected.isfinite().all()) or value.numel() < 2:
            return ""
        difference = (value - expected).flatten()
        if not bool(trial.close(difference, difference[:1].expand_as(difference)).all()):
            return ""
        offsets.append(difference.mean().item())
    told = [written(abs(offset)) for offset in offsets]
    if len(set(told)) == 1:
        return f"Every number is {told[0]} too {'large' if offsets[0] > 0 else 'small'}."
    return f"In each input all numbers are off by the same amount: {joined(told)}."


def _cut_off(trial: Trial) -> Iterator[Observation]:
    """The right numbers, cut off at a smallest and a largest one."""
    limits = []
    for value, expected in trial.pairs:
        if not value.isfinite().all() or value.numel() < 4:
            return
        low, high = value.min(), value.max()
        if not trial.same(value, expected.clamp(low, high)):
            return
        limits.append((low.item(), high.item(), expected.min() < low, expected.max() > high))
    low, high = (written(z) for z in limits[0][:2])
    both = {(below, above) for _, _, below, above in limits}
    if all(below and above for below, above in both):
        yield Observation(6, f"Your numbers are the right ones, cut off at {low} and {high}.")
    elif any(above for _, above in both):
        yield Observation(6, f"Your numbers are the right ones, cut off above {high}.")
    elif any(below for below, _ in both):
        yield Observation(6, f"Your numbers are the right ones, cut off below {low}.")


def _argument_added(trial: Trial) -> Iterator[Observation]:
    for i, name in enumerate(trial.names[: len(trial.inputs[0])]):
        arguments = [case[i] for case in trial.inputs]
        if not all(isinstance(a, Tensor) for a in arguments):
            continue
        for sign, word in ((1, "plus"), (-1, "minus")):
            sums = [
                e + sign * a.detach() if _broadcasts(a, e) else None
                for a, (_, e) in zip(arguments, trial.pairs, strict=True)
            ]
            if _all_same(trial, sums):
                yield Observation(5, f"Your result is the right one {word} `{name}`.")
    for name, compute in trial.intermediates:
        for sign, word in ((1, "plus"), (-1, "minus")):
            if all(
                (z := _step(trial, name, compute, i)) is not None
                and z.shape == e.shape
                and trial.same(v, e + sign * z)
                for i, (v, e) in enumerate(trial.pairs)
            ):
                yield Observation(5, f"Your result is the right one {word} {name}.")


def _broadcasts(a: Tensor, e: Tensor) -> bool:
    pairs = zip(reversed(a.shape), reversed(e.shape), strict=False)
    return 0 < a.dim() <= e.dim() and all(m in (1, n) for m, n in pairs)


# ---------------------------------------------------------------- the right numbers elsewhere


def other_places(trial: Trial) -> Iterator[Observation]:
    """The right numbers in other places: axes swapped, parts exchanged, repeated or shifted."""
    if any(v is None for v in trial.values) or all(trial.right):
        return
    yield from _axes_exchanged(trial)
    yield from _parts_elsewhere(trial)
    yield from _reduced(trial)


def _axes_exchanged(trial: Trial) -> Iterator[Observation]:
    dim = trial.wanted[0].dim()
    words = trial.result_axes
    if any(z.dim() != dim for z in (*trial.values, *trial.wanted)) or dim < 2 or dim > 5:
        return
    for order in itertools.permutations(range(dim)):
        if list(order) == sorted(order):
            continue
        if _all_same(trial, [e.permute(order) for e in trial.wanted]):
            moved = [i for i in range(dim) if order[i] != i]
            if len(moved) == 2 and len(words) == dim and words[moved[0]] != words[moved[1]]:
                told = f"axes {words[moved[0]]} and {words[moved[1]]} have changed places"
            elif len(moved) == 2 and moved == [dim - 2, dim - 1]:
                told = "rows and columns are swapped"
            elif len(moved) == 2:
                told = f"axes {moved[0]} and {moved[1]} have changed places"
            else:
                told = f"all of its axes have changed places, as by permute{tuple(order)}"
            yield Observation(4, f"The numbers are right, but {told}.")
            return
    for a, b in itertools.combinations(range(dim), 2):
        for one in (a, b):
            turned = [e.transpose(a, b).flip(one) for e in trial.wanted]
            if _all_same(trial, turned):
                place = place_word(trial, one, dim)
                yield Observation(
                    4,
                    f"The numbers are right, but axes {a} and {b} have changed places, and the "
                    f"order of the {plural(place)} is reversed: the matrix is turned by 90°.",
                )
                return


def _parts_elsewhere(trial: Trial) -> Iterator[Observation]:
    """Along one axis, every part of the result is a part of the right result."""
    if not trial.pairs:
        return
    case = max(range(len(trial.pairs)), key=lambda i: trial.pairs[i][1].numel())
    case = case if not trial.right[case] else trial.shown
    value, expected = trial.pairs[case]
    for axis in range(value.dim()):
        places = _sources(trial, value, expected, axis)
        if not places or places == list(range(len(places))) or len(places) < 2:
            continue
        word = place_word(trial, axis, value.dim())
        text = _moved(places, word)
        if text and _holds_in_all(trial, axis, places):
            yield Observation(7 if "shifted" in text else 5, text)


def _sources(trial: Trial, value: Tensor, expected: Tensor, axis: int) -> list[int | None]:
    """For each place along an axis, where in the right result its numbers stand; None: nowhere."""
    if not value.isfinite().all():
        return []
    mine, right = value.movedim(axis, 0).flatten(1), expected.movedim(axis, 0).flatten(1)
    if right.shape[1] < 2 or right.shape[0] > 12:
        return []
    found = []
    for i, part in enumerate(mine):
        fits = trial.close(part.expand_as(right), right).all(1)
        if not fits.any():
            found.append(None)
        else:
            found.append(i if fits[i] else int(fits.nonzero()[0]))
    return found if sum(f is None for f in found) <= 1 else []


def heads_elsewhere(trial: Trial) -> Iterator[Observation]:
    """Channels in blocks of head_size: the right blocks in other places, or only some right."""
    if not trial.pairs or any("n_head" not in one for one in trial.sizes):
        return
    value, expected = trial.pairs[trial.shown]
    n_head = trial.sizes[trial.shown]["n_head"]
    if expected.shape[-1] % n_head or n_head < 2 or not value.isfinite().all():
        return
    mine, right = (z.unflatten(-1, (n_head, -1)) for z in (value, expected))
    places = _sources(trial, mine, right, mine.dim() - 2)
    if places and None not in places and places != list(range(n_head)):
        yield Observation(4, _moved(places, "head").replace("head ", "the part of head "))
        return
    good = [i for i in range(n_head) if trial.same(mine[..., i, :], right[..., i, :])]
    if good and len(good) < n_head:
        one = f"head {good[0]} is" if len(good) == 1 else f"heads {listed(good)} are"
        yield Observation(13, f"Only the part of {one} right.")


def _moved(places: list[int | None], word: str) -> str:
    count = len(places)
    known = [p for p in places if p is not None]
    if len(set(known)) == 1 and None not in places:
        return f"Every {word} of your result is what {word} {known[0]} should be."
    for step in (1, -1):
        inner = [(i, i - step) for i in range(count) if 0 <= i - step < count]
        if count > 2 and all(places[i] == j for i, j in inner):
            first, source = inner[-1] if step == 1 else inner[0]
            return (
                f"Your result is shifted by one: {word} {first} of your result is what "
                f"{word} {source} should be."
            )
    if None in places:
        return ""
    if places == list(reversed(range(count))):
        return (
            f"The order of the {word}s is reversed: {word} 0 is what {word} {count - 1} should be."
        )
    moved = [i for i, p in enumerate(places) if p != i]
    told = joined([f"{word} {i} is what {word} {places[i]} should be" for i in moved[:3]])
    return f"The parts are right, but in other places: {told}."


def _holds_in_all(trial: Trial, axis: int, places: list[int | None]) -> bool:
    """Tell whether all other inputs show moved parts along this axis, too."""
    for (value, expected), right in zip(trial.pairs, trial.right, strict=True):
        if right or expected.numel() < 3 or 1 in expected.shape:  # such a size hides a move
            continue
        if not _sources(trial, value, expected, axis):
            return False
    return True


REDUCTIONS: tuple[tuple[str, Callable], ...] = (
    ("the mean of the right one over its {0}s", lambda e, a: e.mean(a)),
    ("the sum of the right one over its {0}s", lambda e, a: e.sum(a)),
    ("{} 0 of the right one", lambda e, a: e.select(a, 0)),
    ("the last {} of the right one", lambda e, a: e.select(a, -1)),
    ("the right one cut off after {} 0", lambda e, a: e.narrow(a, 0, 1)),
    ("the right one without its last {}", lambda e, a: e.narrow(a, 0, max(e.shape[a] - 1, 0))),
    ("the right one without its {} 0", lambda e, a: e.narrow(a, 1, max(e.shape[a] - 1, 0))),
)


def _reduced(trial: Trial) -> Iterator[Observation]:
    """The result is the right one with an axis gone, cut, or one too many."""
    dim = trial.wanted[0].dim()
    if any(e.dim() != dim for e in trial.wanted):
        return
    for axis, (name, reduce) in itertools.product(range(dim), REDUCTIONS):
        if any(e.shape[axis] == 0 for e in trial.wanted):
            continue
        if _all_same(trial, [reduce(e, axis) for e in trial.wanted]):
            yield Observation(4, f"Your result is {name.format(place_word(trial, axis, dim))}.")
            return
    if all(v.dim() == dim + 1 for v in trial.values):
        for axis in range(dim + 1):
            firsts = [v.select(axis, 0) for v in trial.values if v.shape[axis]]
            if len(firsts) == len(trial.values) and all(map(trial.same, firsts, trial.wanted)):
                which = "the only place" if trial.values[0].shape[axis] == 1 else "place 0"
                yield Observation(4, f"The right result stands at {which} along your axis {axis}.")
                return
            lasts = [v.select(axis, -1) for v in trial.values if v.shape[axis]]
            if len(lasts) == len(trial.values) and all(map(trial.same, lasts, trial.wanted)):
                yield Observation(
                    4, f"The right result stands at the last place along your axis {axis}."
                )
                return
    if all(
        v.numel() == e.numel() > 1 and trial.same(v.flatten(), e.flatten())
        for v, e in zip(trial.values, trial.wanted, strict=True)
    ):
        yield Observation(
            4, "The numbers and their reading order are right; only the shape is another."
        )
        return
    if all(v.dim() == dim for v in trial.values):
        for axis in range(dim):
            yield from _contained(trial, axis, dim)


def _contained(trial: Trial, axis: int, dim: int) -> Iterator[Observation]:
    """The right result is the first or last part of a longer one."""
    longer = [
        v.shape[axis] - e.shape[axis] for v, e in zip(trial.values, trial.wanted, strict=True)
    ]
    if min(longer) <= 0:
        return
    word = place_word(trial, axis, dim)
    for start, told in ((False, "begins with"), (True, "ends with")):
        parts = [
            v.narrow(axis, n if start else 0, v.shape[axis] - n)
            for v, n in zip(trial.values, longer, strict=True)
        ]
        if all(map(trial.same, parts, trial.wanted)):
            counts = {v.shape[axis] for v in trial.values}
            more = f"has {longer[0]} more {word if longer[0] == 1 else plural(word)}"
            if len(set(longer)) > 1:
                more = f"is longer: it has {longer[0]} more {plural(word)} in the first input"
                if len(counts) == 1:
                    more = f"always has {counts.pop()} {plural(word)}"
            yield Observation(4, f"Your result {told} the right one and {more}.")
            return


def same_numbers(trial: Trial) -> Iterator[Observation]:
    """All right numbers are there, in some other order."""
    if all(trial.right) or any(v is None for v in trial.values):
        return
    if all(
        v.numel() == e.numel() > 3
        and v.isfinite().all()
        and trial.same(v.flatten().sort().values, e.flatten().sort().values)
        for v, e in zip(trial.values, trial.wanted, strict=True)
    ):
        yield Observation(9, "Your result holds exactly the right numbers, but in other places.")


# ---------------------------------------------------------------- rows with factors of their own

ROW_FACTORS: tuple[tuple[str, Callable], ...] = (
    ("t + 1", lambda t, T: t + 1),
    ("1/(t + 1)", lambda t, T: 1 / (t + 1)),
    ("(t + 1)/T", lambda t, T: (t + 1) / T),
    ("T/(t + 1)", lambda t, T: T / (t + 1)),
    ("(t + 1)/t", lambda t, T: (t + 1) / t if t else math.inf),
    ("(t + 1)/t, from t = 1 on,", lambda t, T: (t + 1) / t if t else 1),
    ("t/(t + 1)", lambda t, T: t / (t + 1)),
    ("(t + 1)/(t + 2)", lambda t, T: (t + 1) / (t + 2)),
    ("2/(t + 2)", lambda t, T: 2 / (t + 2)),
)


def row_factors(trial: Trial) -> Iterator[Observation]:
    """Along one axis, all numbers of a place are off by one factor, which differs by place."""
    if not trial.pairs or all(trial.right):
        return
    told = list(_proportions(trial))
    if told:
        yield from told
        return
    value, expected = trial.pairs[trial.shown]
    dim = value.dim()
    for axis in range(dim):
        factors = _factors_along(trial, value, expected, axis)
        if not factors or len({round(f, 5) for f in factors if f is not None}) < 2:
            continue
        word = place_word(trial, axis, dim)
        if dim == 3 and axis == 0 and len(trial.pairs) > 1 and expected.shape[0] < 3:
            continue
        if word == "output" and (name := _row_factor_name(trial, axis)):
            yield Observation(6, f"Output t is {name} times what it should be.")
            return
        told = [
            f"{written(f)} in {word} {i}"
            for i, f in enumerate(factors)
            if f is not None and not math.isclose(f, 1, rel_tol=1e-5)
        ]
        if any(f is not None and not 1e-4 < abs(f) < 1e4 for f in factors):
            continue
        rest = any(f is not None and math.isclose(f, 1, rel_tol=1e-5) for f in factors)
        text = f"Within one {word}, all numbers are off by the same factor: {joined(told[:4])}"
        yield Observation(11, text + ("; the others are right." if rest else "."))
        return


def each_row(trial: Trial) -> Iterator[Observation]:
    """Every row is right but for a factor, or an amount, of its own."""
    if not trial.pairs or all(trial.right) or any(_proportions(trial)):
        return
    for value, expected in trial.pairs:
        if value.dim() < 1 or value.shape[-1] < 3 or not value.isfinite().all():
            return
        if not expected.isfinite().all() or (expected.abs().amax(-1) == 0).any():
            return
    factors = _by_row(trial, lambda v, e: _at_largest(v, e) / _at_largest(e, e), torch.mul)
    offsets = _by_row(trial, lambda v, e: (v - e).mean(-1, keepdim=True), torch.add)
    for measured, right, what in ((factors, 1, "one factor"), (offsets, 0, "the same amount")):
        wrong = [n for n in measured if not math.isclose(n, right, rel_tol=1e-4, abs_tol=1e-4)]
        if wrong:
            told = joined([f"{n:.3g}" for n in wrong[:3]])
            rows = "another one for each row" if len(wrong) > 1 else "in one row"
            text = f"Within each row all numbers are off by {what}, {rows}: {told}"
            yield Observation(13, text + (", and so on." if len(wrong) > 3 else "."))
            return


def _at_largest(z: Tensor, expected: Tensor) -> Tensor:
    """In each row, the number where the right one is largest."""
    return z.gather(-1, expected.abs().argmax(-1, keepdim=True))


def _by_row(trial: Trial, measure: Callable, apply: Callable) -> list[float]:
    """What is measured for each row, if it makes every row right; else nothing."""
    found: list[float] = []
    for value, expected in trial.pairs:
        rows = measure(value, expected)
        if not trial.same(value, apply(expected, rows)):
            return []
        found += rows.flatten().tolist()
    return found


def _factors_along(trial: Trial, value: Tensor, expected: Tensor, axis: int) -> list[float | None]:
    mine, right = value.movedim(axis, 0), expected.movedim(axis, 0)
    if right.shape[0] < 2 or right[0].numel() < 2 or right.shape[0] > 12:
        return []
    found: list[float | None] = []
    for part, wanted in zip(mine, right, strict=True):
        if wanted.count_nonzero() < 2:  # one number always has a factor
            ratio = _ratio(trial, part, wanted) if wanted.count_nonzero() else None
        elif part.isinf().all():
            ratio = math.inf
        else:
            ratio = _ratio(trial, part, wanted)
            if ratio is None:
                return []
        found.append(ratio)
    many = sum(w.count_nonzero() > 1 for w in right)
    return found if many > 1 else []


def _row_factor_name(trial: Trial, axis: int) -> str:
    for name, function in ROW_FACTORS:
        if all(
            (factors := _factors_along(trial, value, expected, axis))
            and all(
                f is None or math.isclose(f, function(t, len(factors)), rel_tol=1e-4)
                for t, f in enumerate(factors)
            )
            for value, expected in trial.pairs
        ):
            return name
    return ""


def _proportions(trial: Trial) -> Iterator[Observation]:
    """The rows are right once each is divided by its sum."""
    for value, expected in trial.pairs:
        if value.dim() < 1 or value.shape[-1] < 2 or not value.isfinite().all():
            return
        sums = value.sum(-1, keepdim=True)
        if (sums == 0).any() or not trial.same(value / sums, expected):
            return
        if not trial.close(expected.sum(-1), torch.ones_like(expected.sum(-1))).all():
            return
    value, _ = trial.pairs[trial.shown]
    sums = value.sum(-1).flatten()
    wrong = int((~trial.close(sums, torch.ones_like(sums))).flatten().double().argmax())
    yield Observation(
        7,
        "Within each row the proportions are right, but the sums are not: "
        f"row {wrong % value.shape[-2] if value.dim() > 1 else wrong} sums to "
        f"{written(sums[wrong].item())}, not 1.",
    )


# ---------------------------------------------------------------- the same for other places


def alike(trial: Trial) -> Iterator[Observation]:
    """The result does not differ along an axis along which the right one does."""
    if not trial.pairs:
        return
    dim = min(v.dim() for v, _ in trial.pairs)
    for axis in range(dim):
        if all(
            v.isfinite().all()
            and v.shape[axis] > 1
            and _constant(trial, v, axis)
            and not _constant(trial, e, axis)
            for v, e in trial.pairs
        ):
            word = place_word(trial, axis, dim)
            count = trial.pairs[0][0].shape[axis]
            yield Observation(8, f"All {count} {plural(word)} of your result are alike.")


def _constant(trial: Trial, z: Tensor, axis: int) -> bool:
    return bool(trial.close(z, z.narrow(axis, 0, 1).expand_as(z)).all())


# ---------------------------------------------------------------- a step on the way, multiplied


def step_with_factors(trial: Trial) -> Iterator[Observation]:
    """A step on the way to the right result, multiplied as a whole or along one axis."""
    if all(trial.right) or any(v is None or not v.isfinite().all() for v in trial.values):
        return
    for name, compute in trial.intermediates:
        first = _step(trial, name, compute, 0)
        if first is None or first.shape != trial.values[0].shape:
            continue
        results = [_step(trial, name, compute, i) for i in range(len(trial.inputs))]
        pairs = list(zip(trial.values, results, strict=True))
        if any(r is None or r.shape != v.shape or not r.isfinite().all() for v, r in pairs):
            continue
        ratios = [_ratio(trial, v, r) for v, r in pairs]
        if None not in ratios:
            told = factor_name(ratios, trial)
            if not told and pairs[0][0].numel() > 1 and all(1e-3 < abs(r) < 1e3 for r in ratios):
                told = f"{joined([written(r) for r in ratios])}"
            if told:
                yield Observation(8, f"Your result is {told} times {name}.")
                return
        value, step = pairs[trial.shown]
        for axis in range(value.dim()):
            factors = _factors_along(trial, value, step, axis)
            if factors and None not in factors and _factors_in_all(trial, pairs, axis):
                word = place_word(trial, axis, value.dim())
                told = joined([f"{written(f)} in {word} {i}" for i, f in enumerate(factors[:3])])
                more = ", and so on." if len(factors) > 3 else "."
                yield Observation(12, f"Your result is {name}, times {told}{more}")
                return


def _factors_in_all(trial: Trial, pairs: list[Pair], axis: int) -> bool:
    return all(_factors_along(trial, value, step, axis) for value, step in pairs)


# ---------------------------------------------------------------- weights of other scores


def scores_multiplied(trial: Trial) -> Iterator[Observation]:
    """Weights that are those of the right scores, multiplied: too sharp or too even."""
    if not trial.pairs or not trial.tensors() or all(trial.right):
        return
    by_case = [_sharpness(trial, value, expected) for value, expected in trial.pairs]
    long_rows = [e.shape[-1] > 2 and int((e > 1e-9).sum(-1).max()) > 2 for _, e in trial.pairs]
    if any(long and not rows for long, rows in zip(long_rows, by_case, strict=True)):
        return
    if not any(by_case):
        return
    by_case = [rows for rows in by_case if rows] if not all(by_case) else by_case
    alike = [
        max(rows.values()) - min(rows.values()) < 1e-3 * max(rows.values()) for rows in by_case
    ]
    if all(alike):
        ratios = [next(iter(rows.values())) for rows in by_case]
        told = "" if len(ratios) < len(trial.inputs) else factor_name(ratios, trial, rel_tol=1e-3)
        told = told or joined([f"{ratio:.3g}" for ratio in dict.fromkeys(ratios)])
        text = f"Your weights are those of the right scores multiplied by {told}."
        yield Observation(7, text)
        return
    rows = next(rows for rows, same in zip(by_case, alike, strict=True) if not same)
    told = joined([f"{factor:.3g} in row {row}" for row, factor in list(rows.items())[:4]])
    text = "Your weights are those of the right scores, multiplied differently in each row"
    yield Observation(11, f"{text}: by {told}.")


def _sharpness(trial: Trial, value: Tensor, expected: Tensor) -> dict[int, float]:
    """For the rows of the first matrix, by what their scores seem to be multiplied."""
    if not _are_weights(trial, value, expected):
        return {}
    mine, right = (z.reshape(-1, *z.shape[-2:])[0] for z in (value, expected))
    found = {}
    for row, (v, e) in enumerate(zip(mine, right, strict=True)):
        used = e > 1e-9
        if used.sum() < 3:
            continue
        if not torch.equal(v > 1e-12, used):
            return {}
        a, b = v[used].log(), e[used].log()
        a, b = a - a.mean(), b - b.mean()
        factor = (a @ b / (b @ b)).item() if b.any() else 0.0
        if not factor or not torch.allclose(a, factor * b, rtol=1e-3, atol=1e-3 * abs(factor)):
            return {}
        found[row] = factor
    return found


def _are_weights(trial: Trial, value: Tensor, expected: Tensor) -> bool:
    if value.dim() < 2 or (value < 0).any() or not value.isfinite().all():
        return False
    ones = torch.ones(value.shape[:-1]).double()
    return all(bool(trial.close(z.sum(-1), ones).all()) for z in (value, expected))


def columns_shifted(trial: Trial) -> Iterator[Observation]:
    """Weights of scores from which another number was subtracted in each column."""
    if not trial.pairs or not trial.tensors() or all(trial.right):
        return
    value, expected = trial.pairs[trial.shown]
    if not _are_weights(trial, value, expected) or (value < 1e-6).any() or (expected < 1e-6).any():
        return
    difference = (value.log() - expected.log()).reshape(-1, *value.shape[-2:])[0]
    rows, columns = difference.mean(1, keepdim=True), difference.mean(0, keepdim=True)
    left = difference - rows - columns + difference.mean()
    if (
        min(difference.shape) > 1
        and left.abs().max() < 1e-3 < (columns - columns.mean()).abs().max()
    ):
        yield Observation(
            9,
            "Your weights are those of scores that were shifted by another amount in each column. "
            "What is subtracted may differ from row to row, but has to be one number within a row.",
        )
