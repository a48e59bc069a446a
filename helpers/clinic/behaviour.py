"""Which known bugs fit a function whose queries, keys and values cannot be seen.

All that is known then is which outputs depend on which tokens, which outputs are nan, and the
weights if it shows them. The same is computed for attention with every known bug, and with every
two. The bugs that explain it exactly are named; where there are none, those that come nearest.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from helpers.clinic import probes
from helpers.clinic.bugs import OutAndWeights
from helpers.clinic.module_bugs import LIKELIEST, bug_pairs_for, bugs_for


@dataclass(frozen=True)
class Behaviour:
    """What can be seen of an attention from outside.

    Attributes
    ----------
    nan_rows
        (T,), which outputs are nan or inf.
    depends
        (T, T), [j, t]: whether output t depends on token j; None where outputs are nan.
    of_weights
        Which probes of the weights pass; empty where no weights are shown.
    """

    nan_rows: Tensor
    depends: Tensor | None
    of_weights: tuple[bool, ...] = ()


def behaviour(
    out: Tensor, weights: Tensor | None, changes: Tensor | None, causal: bool
) -> Behaviour:
    """What was seen: out (B, T, anything), the weights, and the changes [j, t] of outputs."""
    finite = out.isfinite().all(-1).all(0).cpu()
    return Behaviour(~finite, _depends(changes), _of_weights(weights, causal))


def fitting_bugs(seen: Behaviour, C: int, n_head: int, causal: bool) -> tuple[str, ...]:
    """The names of the bugs that explain what was seen, the likeliest first.

    A pair of bugs is named "one + other", and only where no single one fits exactly. Where none
    fits, the three that come nearest, if they are near.
    """
    x, qkv = _examples(len(seen.nan_rows), C)
    misses: dict[str, int] = {}
    for bug in bugs_for(x, n_head, causal):
        if not bug.mixes_sequences:
            misses[bug.name] = _misses(bug.compute, x, qkv, seen, causal)
    exact = [name for name, count in misses.items() if count == 0]
    if not exact:
        for one, other, both in bug_pairs_for(x, n_head, causal):
            mixes = one.mixes_sequences or other.mixes_sequences
            if not mixes and _misses(both, x, qkv, seen, causal) == 0:
                exact.append(f"{one.name} + {other.name}")
    if exact:
        ranks = {name: rank for rank, name in enumerate(LIKELIEST)}
        return tuple(sorted(exact, key=lambda name: ranks.get(name, len(ranks))))
    T = len(seen.nan_rows)
    near = sorted((count, name) for name, count in misses.items() if count <= T // 2)
    return tuple(name for _, name in near[:3])


def _examples(T: int, C: int) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, ...]]]:
    """Random tokens (T + 1, T, C), in the last T of which a token is another; and q, k, v."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, T, C, generator=generator).repeat(T + 1, 1, 1)
    x[torch.arange(1, T + 1), torch.arange(T)] = torch.randn(T, C, generator=generator)
    matrices = [torch.randn(C, C, generator=generator) / C**0.5 for _ in range(3)]
    return x, lambda z: tuple(z @ matrix for matrix in matrices)


def _misses(
    compute: Callable[..., OutAndWeights],
    x: Tensor,
    qkv: Callable[[Tensor], tuple[Tensor, ...]],
    seen: Behaviour,
    causal: bool,
) -> int:
    """In how many places a bug shows something else than what was seen."""
    try:
        out, weights = compute(*qkv(x))
    except RuntimeError:  # with these sizes there can be no such bug
        return len(seen.nan_rows) ** 2
    nan_rows = ~out[0].isfinite().all(-1)
    count = int((nan_rows != seen.nan_rows).sum()) * len(nan_rows)
    if seen.of_weights:
        passed = _of_weights(weights[:1], causal)
        count += sum(a != b for a, b in zip(passed, seen.of_weights, strict=True)) * len(nan_rows)
    if seen.depends is not None and not nan_rows.any():
        changes = (out[1:] - out[:1]).abs().amax(-1)
        count += int((_depends(changes) != seen.depends).sum())
    return count


def _depends(changes: Tensor | None) -> Tensor | None:
    """As `no_leak` and `reach` are judged: rounding is no leak, and any change is a dependence."""
    if changes is None or changes.isnan().any():
        return None
    later = torch.ones_like(changes, dtype=torch.bool).tril(-1)
    return changes > torch.where(later, 1e-6, 0.0)


def _of_weights(weights: Tensor | None, causal: bool) -> tuple[bool, ...]:
    if weights is None:
        return ()
    passed = [probes.rows_sum_to_one(weights).ok]
    if causal and weights.isfinite().all():
        passed.append(probes.no_weight_on_future(weights).ok)
    else:
        passed.append(not causal)
    return tuple(passed)
