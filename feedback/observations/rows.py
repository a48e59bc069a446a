"""Rows of a wrong result: each off by its own factor, all alike, or weights of other scores."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from attention_base.numbers import joined
from attention_base.same import same
from feedback.observations.factors import factor_name, factors_along
from feedback.observations.order import Rank
from feedback.observations.trial import Observation, Trial, place_word, written

ROW_FACTORS: tuple[tuple[str, Callable], ...] = (
    ("t + 1", lambda t, T: t + 1),
    ("1/(t + 1)", lambda t, T: 1 / (t + 1)),
    ("(t + 1)/T", lambda t, T: (t + 1) / T),
    ("T/(t + 1)", lambda t, T: T / (t + 1)),
    ("(t + 1)/t", lambda t, T: (t + 1) / t if t else math.inf),
    ("(t + 1)/t, from t = 1 on,", lambda t, T: (t + 1) / t if t else 1),
    ("(t + 1)/(t + 2)", lambda t, T: (t + 1) / (t + 2)),
    ("2/(t + 2)", lambda t, T: 2 / (t + 2)),
)


def row_factors(trial: Trial) -> Iterator[Observation]:
    """Along one axis, all numbers of a place are off by one factor, which differs by place."""
    if not trial.pairs or all(trial.right):
        return
    told = list(proportions(trial))
    if told:
        yield from told
        return
    value, expected = trial.pairs[trial.shown]
    dim = value.dim()
    for axis in range(dim):
        factors = factors_along(trial, value, expected, axis)
        if not factors or len({round(f, 5) for f in factors if f is not None}) < 2:
            continue
        word = place_word(trial, axis, dim)
        if dim == 3 and axis == 0 and len(trial.pairs) > 1 and expected.shape[0] < 3:
            continue
        if word == "output" and (name := _row_factor_name(trial, axis)):
            yield Observation(Rank.ONE_RULE, f"Output t is {name} times what it should be.")
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
        yield Observation(Rank.ROW_FACTORS, text + ("; the others are right." if rest else "."))
        return


def each_row(trial: Trial) -> Iterator[Observation]:
    """Every row is right but for a factor, or an amount, of its own."""
    if not trial.pairs or all(trial.right) or any(row_factors(trial)):
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
        if any(wrong):
            told = ", ".join(f"{n:.3g}" for n in wrong[:3]) + (", …" if len(wrong) > 3 else ".")
            rows = "another one for each row" if len(wrong) > 1 else "in one row"
            if len(wrong) == len(measured):
                text = f"Within each row all numbers are off by {what}, {rows}: {told}"
            else:
                text = f"In {len(wrong)} of {len(measured)} rows, all numbers are off by {what}, "
                text += f"{rows}: {told} The other rows are right."
            yield Observation(Rank.WEIGHTED_SUM, text)
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


def _row_factor_name(trial: Trial, axis: int) -> str:
    for name, function in ROW_FACTORS:
        if all(
            (factors := factors_along(trial, value, expected, axis))
            and all(
                f is None or math.isclose(f, function(t, len(factors)), rel_tol=1e-4)
                for t, f in enumerate(factors)
            )
            for value, expected in trial.pairs
        ):
            return name
    return ""


def proportions(trial: Trial) -> Iterator[Observation]:
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
        Rank.ALL_ROWS,
        "Within each row the proportions are right, but the sums are not: "
        f"row {wrong % value.shape[-2] if value.dim() > 1 else wrong} sums to "
        f"{written(sums[wrong].item())}, not 1.",
    )


# ---------------------------------------------------------------- weights of other scores


def scores_multiplied(trial: Trial) -> Iterator[Observation]:
    """Weights that are those of the right scores, multiplied: too sharp or too even."""
    if not trial.pairs or not trial.tensors() or all(trial.right):
        return
    if any(e.dim() < 2 for _, e in trial.pairs):
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
        if all(abs(ratio - 1) < 1e-3 for ratio in ratios):
            return
        told = "" if len(ratios) < len(trial.inputs) else factor_name(ratios, trial, rel_tol=1e-3)
        told = told or joined(list(dict.fromkeys(f"{ratio:.3g}" for ratio in ratios)))
        text = f"Your weights are those of the right scores multiplied by {told}."
        yield Observation(Rank.ALL_ROWS, text)
        return
    rows = next(rows for rows, same in zip(by_case, alike, strict=True) if not same)
    told = joined([f"{factor:.3g} in row {row}" for row, factor in list(rows.items())[:4]])
    text = "Your weights are those of the right scores, multiplied differently in each row"
    yield Observation(Rank.ROW_FACTORS, f"{text}: by {told}.")


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
        if not factor or not same(a, factor * b, 1e-3 * abs(factor), 1e-3):
            return {}
        found[row] = factor
    return found


def _are_weights(trial: Trial, value: Tensor, expected: Tensor) -> bool:
    if value.dim() < 2 or (value < 0).any() or not value.isfinite().all():
        return False
    ones = torch.ones(value.shape[:-1]).double()
    return all(bool(trial.close(z.sum(-1), ones).all()) for z in (value, expected))
