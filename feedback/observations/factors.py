"""One rule that makes every number of a wrong result from the right one, and names for factors."""

import itertools
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from attention_base.numbers import joined
from feedback.observations.order import Rank
from feedback.observations.trial import ORDINALS, Observation, Trial, written

SIZES = (*range(2, 11), 16, 32, 64)  # that an example may have
UNARY: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = (
    ("1 divided by the right ones", torch.reciprocal),
    ("the right ones rounded to whole numbers", torch.round),
    ("the right ones rounded down to whole numbers", torch.floor),
    ("the right ones rounded towards 0", torch.trunc),
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
        yield Observation(Rank.ONE_RULE, text)
    if text := _offset(trial):
        yield Observation(Rank.ONE_RULE, text)
    single = all(e.numel() == 1 for _, e in trial.pairs)
    shares = all((e >= 0).all() and e.max() <= 1 for _, e in trial.pairs)
    for name, change in UNARY:
        if (single and "whole" in name) or (shares and change in (torch.floor, torch.trunc)):
            # by chance, or for another reason
            continue
        if all(trial.same(v, change(e)) for v, e in trial.pairs):
            yield Observation(Rank.ONE_RULE, f"Your numbers are {name}.")
    if all((v <= 0).all() and trial.same(v.exp(), e) for v, e in trial.pairs):
        yield Observation(Rank.PARTS_MOVED, "Your numbers are the logarithms of the right ones.")
    yield from _argument_added(trial)


def _factor(trial: Trial) -> str:
    """Say by what all numbers are multiplied, with its name where it has one."""
    ratios = [ratio_of(trial, v, e) for v, e in trial.pairs]
    numbers = sum(e.numel() for _, e in trial.pairs)
    if any(ratio is None for ratio in ratios) or numbers < 2:
        return ""
    name = factor_name(ratios, trial)
    if name and all(e.numel() < 2 for _, e in trial.pairs):
        return f"Your result is {name} times what it should be."
    if name:
        return f"Every number is {name} times what it should be."
    if all(e.numel() < 2 for _, e in trial.pairs):  # one number always has a ratio
        return ""
    told = [
        f"right in the {ORDINALS[i]} input"
        if math.isclose(ratio, 1, rel_tol=1e-5)
        else f"{written(ratio)} times what it should be in the {ORDINALS[i]}"
        for i, ratio in enumerate(ratios)
    ]
    return f"Every number is {joined(told)}."


def ratio_of(trial: Trial, value: Tensor, expected: Tensor) -> float | None:
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


def factor_name(ratios: list[float], trial: Trial, rel_tol: float = 2e-5) -> str:
    """Name factors, one for each check input, that are the same simple function of its sizes.

    "" when there is none, or when all factors are 1. `rel_tol` is how far from a named factor each
    may lie.
    """
    if all(math.isclose(ratio, 1, rel_tol=rel_tol) for ratio in ratios):
        return ""
    for sign, positive in (("", ratios), ("-", [-ratio for ratio in ratios])):
        if min(positive) <= 0:
            continue
        for name, factors in named_factors(trial):
            pairs = zip(positive, factors, strict=True)
            if all(math.isclose(a, b, rel_tol=rel_tol) for a, b in pairs):
                return sign + name
        for name, sizes in _sizes_by_name(trial):
            for power, form in ((1, "{}"), (2, "√({})")):
                factors = [ratio**power for ratio in positive]
                pairs = list(zip(sizes, factors, strict=True))
                for fixed, text in (
                    ([n / f for n, f in pairs], f"{name}/{{}}"),
                    ([n * f for n, f in pairs], f"{{}}/{name}"),
                ):
                    k = round(fixed[0])
                    if k in SIZES and all(math.isclose(f, k, rel_tol=rel_tol) for f in fixed):
                        return sign + form.format(text.format(k))
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
    if max(sizes) < 1:
        yield f"(1 − {name})", [1 - n for n in sizes]
    yield f"1/({name} + 1)", [1 / (n + 1) for n in sizes]
    yield f"2/{name}", [2 / n for n in sizes]
    yield f"2/√{name}", [2 / n**0.5 for n in sizes]
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
            if trial.is_everywhere(sums):
                text = f"Your result is the right one {word} `{name}`."
                yield Observation(Rank.PARTS_MOVED, text)


def _broadcasts(a: Tensor, e: Tensor) -> bool:
    pairs = zip(reversed(a.shape), reversed(e.shape), strict=False)
    return 0 < a.dim() <= e.dim() and all(m in (1, n) for m, n in pairs)


def factors_along(trial: Trial, value: Tensor, expected: Tensor, axis: int) -> list[float | None]:
    """For each place along an axis, the factor between two tensors; nothing if one has none.

    None stands for a place with so few numbers that they prove no factor.
    """
    if axis >= value.dim():
        return []
    mine, right = value.movedim(axis, 0), expected.movedim(axis, 0)
    if right.shape[0] < 2 or right[0].numel() < 2 or right.shape[0] > 12:
        return []
    found: list[float | None] = []
    for part, wanted in zip(mine, right, strict=True):
        if wanted.count_nonzero() < 2:  # one number always has a factor
            ratio = ratio_of(trial, part, wanted) if wanted.count_nonzero() else None
        elif part.isinf().all():
            ratio = math.inf
        else:
            ratio = ratio_of(trial, part, wanted)
            if ratio is None:
                return []
        found.append(ratio)
    many = sum(w.count_nonzero() > 1 for w in right)
    return found if many > 1 else []
