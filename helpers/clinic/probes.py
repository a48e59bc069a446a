"""Probes: questions put to attention weights or to a function, answered with numbers.

Each probe returns a `Finding`, which prints as one sentence or two: what was found, where, how
much, and, where the numbers point to one cause, a guess. A probe never proves that attention is
right; each sees some mistakes and is blind to others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from helpers.attention import causal_mask
from helpers.numbers import joined, listed, small
from helpers.show import wrap_text


@dataclass(frozen=True)
class Finding:
    """What a probe found: its name, whether all is well, and the numbers."""

    name: str
    ok: bool
    evidence: str

    def __str__(self) -> str:
        return wrap_text(f"{'✓' if self.ok else '✗'} {self.name}: {self.evidence}", hanging="  ")

    __repr__ = __str__


def finite(values: Any) -> Finding:
    """Look for numbers that are not finite: nan, inf or -inf.

    Parameters
    ----------
    values
        Tensor, array or list of any shape.

    Raises
    ------
    ValueError
        When there are no numbers.

    Examples
    --------
    >>> finite([1.0, 2.0])
    ✓ finite: all 2 numbers are finite.
    >>> finite([[float("nan"), float("nan")], [0.5, 0.5]])
    ✗ finite: 2 of 4 numbers are nan; the first is at [0, 0]. Row 0 is nan
      throughout: is it 0 / 0, a mean of nothing or a softmax of nothing?
    """
    values = _tensor(values, least=0)
    bad = ~values.isfinite()
    if not bad.any():
        return Finding("finite", True, f"all {values.numel()} numbers are finite.")
    kinds = [(values.isnan(), "nan"), (values == torch.inf, "inf"), (values == -torch.inf, "-inf")]
    counts = [(int(where.sum()), name) for where, name in kinds if where.any()]
    told = f"{counts[0][0]} of {values.numel()} numbers {_are(counts[0][0])} {counts[0][1]}"
    told += "".join(f", {count} {_are(count)} {name}" for count, name in counts[1:])
    told += f"; the first is at {bad.nonzero()[0].tolist()}."
    if values.dim() > 1 and values.isnan().all():
        told += " Everything is nan: was 0 multiplied by inf somewhere? 0 * inf is nan."
    elif values.dim() > 1 and (rows := values.isnan().all(-1)).any():
        told += f" {_rows(rows, 'is', 'are').capitalize()} nan throughout: "
        told += "is it 0 / 0, a mean of nothing or a softmax of nothing?"
    return Finding("finite", False, told)


def rows_sum_to_one(weights: Any, atol: float = 1e-5) -> Finding:
    """Check that every row of weights sums to 1.

    Only then is each output a weighted average.

    Parameters
    ----------
    weights
        (..., T_q, T_k), rows are queries.
    atol
        How far from 1 a sum may lie.

    Raises
    ------
    ValueError
        When weights is not at least 2-D, or is empty.

    Examples
    --------
    >>> rows_sum_to_one([[1.0, 0.0], [0.25, 0.75]])
    ✓ rows sum to 1: all 2 rows do.
    """
    name = "rows sum to 1"
    weights = _tensor(weights, least=2)
    sums = weights.sum(-1)
    bad = ~((sums - 1).abs() <= atol)  # written so that nan is bad
    if not bad.any():
        return Finding(name, True, f"all {sums.numel()} rows do.")
    if not sums.isfinite().all():
        lost = ~sums.isfinite()
        told = f"{_rows(lost, 'sums', 'sum')} to nan or inf. "
        return Finding(name, False, told + "finite(weights) tells more.")
    told = _sums(sums, bad)
    told += " — every output is a weighted average only if its row sums to 1."
    return Finding(name, False, told + _guess_about_sums(weights, sums, atol))


def no_weight_on_future(weights: Any) -> Finding:
    """Check that every weight on a later key is exactly 0.

    The last query is taken to see all keys: with T_k > T_q the first keys are earlier ones.

    Parameters
    ----------
    weights
        (..., T_q, T_k), rows are queries.

    Raises
    ------
    ValueError
        When weights is not at least 2-D, or is empty.

    Examples
    --------
    >>> no_weight_on_future([[1.0, 0.0], [0.25, 0.75]])
    ✓ no weight on the future: the only weight on a later key is 0.
    """
    name = "no weight on the future"
    weights = _tensor(weights, least=2)
    T_q, T_k = weights.shape[-2:]
    future = ~causal_mask(T_q, T_k)
    later = weights[..., future]
    if later.numel() == 0:
        return Finding(name, True, "there is no later key to weigh.")
    bad = (weights != 0) & future  # nan is bad too
    if not bad.any():
        if later.numel() == 1:
            return Finding(name, True, "the only weight on a later key is 0.")
        return Finding(name, True, f"all {later.numel()} weights on later keys are 0.")
    count = int(bad.sum())
    told = f"{count} of {later.numel()} weights on later keys {_are(count)} not 0"
    if later.isnan().any():
        return Finding(name, False, f"{told}, but nan. finite(weights) tells more.")
    *sheet, query, key = _unravel(weights.abs().masked_fill(~future, -1).argmax(), weights.shape)
    told += f"; the largest is {small(weights[*sheet, query, key].item())}: "
    told += f"query {query} reads key {key}{_sheet(sheet)}."
    return Finding(name, False, told + _guess_about_future(weights, future))


def no_leak(function: Callable, x: torch.Tensor, atol: float = 1e-6) -> Finding:
    """Check that no output changes when a later token does.

    Each token from 1 on is replaced in turn by a random vector, in every sequence, and the
    outputs before it are compared. (A random vector, since adding a constant to all channels
    would be cancelled by a layer norm.) Before each call the random state is set the same, so
    dropout does not read as a leak; afterwards it is what it was.

    Parameters
    ----------
    function
        Takes x, returns (..., T, anything), or a tuple of which that is the first.
    x
        (B, T, C) or (T, C), floats.
    atol
        How far an output may move and still count as the same.

    Raises
    ------
    TypeError
        When x is not a float tensor, or the function returns no tensor.
    ValueError
        When x has another number of dimensions or fewer than 2 tokens, or the output has not
        one row a token.

    Examples
    --------
    >>> x = torch.arange(6.0).reshape(3, 2)
    >>> no_leak(lambda x: x.cumsum(0), x)
    ✓ no leak: tokens 1 and 2 were replaced in turn; no output before them changed.
    """
    name = "no leak"
    moved = moves(function, x, name)
    if isinstance(moved, Finding):
        return moved
    return judge_leaks(moved, atol)


def judge_leaks(moved: torch.Tensor, atol: float) -> Finding:
    """What `no_leak` says of [j, t], how far token j moves output t."""
    name, T = "no leak", len(moved)
    moved = moved.tril(-1)
    leaks = moved > atol
    if not leaks.any():
        tokens = listed(range(1, T))
        told = f"{'token' if T == 2 else 'tokens'} {tokens} {'was' if T == 2 else 'were'} replaced"
        told += (
            " in turn; no output before them changed." if T > 2 else "; output 0 did not change."
        )
        return Finding(name, True, told)
    j = int(moved.amax(1).argmax())
    guilty = leaks[j].nonzero().flatten().tolist()
    told = (
        f"changing token {j} changed {'output' if len(guilty) == 1 else 'outputs'} "
        f"{listed(guilty)}, by up to {small(moved[j].max().item())} "
        f"(output {int(moved[j].argmax())})."
    )
    sources = int(leaks.any(1).sum())
    told += f" {sources} of the {T - 1} tokens tried {_verb(sources, 'reaches', 'reach')} back."
    return Finding(name, False, told)


def reach(
    function: Callable, x: torch.Tensor, atol: float = 1e-6, *, causal: bool = True
) -> Finding:
    """Check that every output changes when a token that it may read does.

    The twin of `no_leak`, with the same random tokens. A module that is made to ignore tokens,
    such as a window or a head with hand-set weights, fails it rightly.

    Parameters
    ----------
    function
        Takes x, returns (..., T, anything), or a tuple of which that is the first.
    x
        (B, T, C) or (T, C), floats.
    atol
        An output that moves by no more than this counts as the same.
    causal
        Whether an output may read its own token and those before it, or all.

    Raises
    ------
    TypeError, ValueError
        As for `no_leak`.

    Examples
    --------
    >>> x = torch.arange(6.0).reshape(3, 2)
    >>> reach(lambda x: x.cumsum(0), x)
    ✓ reach: tokens 0 to 2 were replaced in turn; every output from there on
      changed.
    >>> reach(lambda x: x, x)
    ✗ reach: output 2 hears only token 2. 3 of 6 pairs of a token and an output that
      may read it are deaf: no change arrives.
    """
    name = "reach"
    moved = moves(function, x, name)
    if isinstance(moved, Finding):
        return moved
    return judge_reach(moved, atol, causal)


def judge_reach(moved: torch.Tensor, atol: float, causal: bool) -> Finding:
    """What `reach` says of [j, t], how far token j moves output t."""
    name, T = "reach", len(moved)
    allowed = torch.ones(T, T, dtype=torch.bool)  # [j, t]: token j, output t
    allowed = allowed.triu() if causal else allowed
    deaf = allowed & (moved <= atol)
    if not deaf.any():
        told = f"tokens 0 to {T - 1} were replaced in turn; every output "
        return Finding(name, True, told + ("from there on changed." if causal else "changed."))
    t = T - 1 - int(deaf.sum(0).flip(0).argmax())  # the deafest, the last of them
    heard = (allowed & ~deaf)[:, t]
    told = f"output {t} hears {'only ' + _these('token', heard) if heard.any() else 'no token'}. "
    count = int(deaf.sum())
    told += f"{count} of {int(allowed.sum())} pairs of a token and an output that may read it "
    return Finding(name, False, told + f"{_are(count)} deaf: no change arrives.")


def sequences_stay_apart(function: Callable, x: torch.Tensor, atol: float = 1e-6) -> Finding:
    """Check that no output changes when another sequence of the batch does.

    Each sequence is replaced in turn by random tokens, and the outputs of the others are compared;
    with the random state as for `no_leak`.

    Parameters
    ----------
    function
        Takes x, returns (B, T, anything), or a tuple of which that is the first.
    x
        (B, T, C), floats, with B of at least 2.
    atol
        How far an output may move and still count as the same.

    Raises
    ------
    TypeError, ValueError
        As for `no_leak`; with a single sequence there is nothing to keep apart.

    Examples
    --------
    >>> x = torch.arange(12.0).reshape(2, 3, 2)
    >>> sequences_stay_apart(lambda x: x.cumsum(1), x)
    ✓ sequences stay apart: sequences 0 and 1 were replaced in turn; the outputs of
      the others did not change.
    >>> sequences_stay_apart(lambda x: x.cumsum(0), x)
    ✗ sequences stay apart: changing sequence 0 changed the outputs of sequence 1,
      by up to 6.15. Was something summed, averaged or normalised over axis 0?
    """
    name = "sequences stay apart"
    if isinstance(x, torch.Tensor) and (x.dim() != 3 or len(x) < 2):
        raise ValueError(f"x must be (B, T, C) with B of at least 2, got {described(x)}.")

    def by_sequence(swapped: torch.Tensor) -> torch.Tensor:
        return _output(function, swapped.transpose(0, 1)).transpose(0, 1)

    x = x.transpose(0, 1) if isinstance(x, torch.Tensor) else x
    moved = moves(by_sequence, x, name, "sequence")  # a sequence in the place of a token
    if isinstance(moved, Finding):
        return moved
    moved.fill_diagonal_(0)
    if not (moved > atol).any():
        told = f"sequences {listed(range(len(moved)))} were replaced in turn; "
        return Finding(name, True, told + "the outputs of the others did not change.")
    guilty = int(moved.amax(1).argmax())
    told = f"changing sequence {guilty} changed the outputs of "
    told += f"{_these('sequence', moved[guilty] > atol)}, "
    told += f"by up to {small(moved[guilty].max().item())}. "
    return Finding(name, False, told + "Was something summed, averaged or normalised over axis 0?")


def gradients_reach(out: torch.Tensor, tensors: Mapping[str, torch.Tensor]) -> Finding:
    """Check that a gradient from the output arrives at each of some tensors.

    A random gradient is sent back, since the plain sum of the output can hide a path: a softmax,
    for one, keeps the sum of its row whatever the scores.

    Parameters
    ----------
    out
        (..., T, anything) with at least 2 tokens: with one, a softmax has no choice to make.
    tensors
        Name -> tensor that out may have been computed from, such as the weights of a layer.

    Raises
    ------
    ValueError
        When out was computed without a graph, or has fewer than 2 tokens, or no tensors are given.

    Examples
    --------
    >>> a, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    >>> gradients_reach(a * 2 + b, {"a": a, "b": b})
    ✓ gradients reach: one arrives at a and b.
    >>> gradients_reach(a * 2, {"a": a, "b": b})
    ✗ gradients reach: none arrives at b: 0 of 3 numbers. What gets no gradient does
      not learn. The output was made without b. One arrives at a.
    """
    name = "gradients reach"
    if not tensors:
        raise ValueError("Say whom the gradient should reach: a dict of names and tensors.")
    if out.dim() < 2 or out.shape[-2] < 2:
        raise ValueError(f"out must be (..., T, C) with T of at least 2, got {described(out)}.")
    if not out.requires_grad:
        raise ValueError(
            "out carries no graph to send a gradient through: compute it outside of "
            "torch.no_grad(), from tensors that require a gradient, and do not detach it."
        )
    generator = torch.Generator().manual_seed(0)
    cotangent = torch.randn(out.shape, generator=generator).to(out)
    asked = {key: tensor for key, tensor in tensors.items() if tensor.requires_grad}
    found = torch.autograd.grad(
        out, list(asked.values()), cotangent, retain_graph=True, allow_unused=True
    )
    gradients = dict.fromkeys(tensors) | dict(zip(asked, found, strict=True))
    lost = [key for key, gradient in gradients.items() if gradient is None or not gradient.any()]
    won = [key for key in tensors if key not in lost]
    if not lost:
        return Finding(name, True, f"one arrives at {joined(won)}.")
    sizes = joined([f"0 of {tensors[key].numel()}" for key in lost])
    told = f"none arrives at {joined(lost)}: {sizes} numbers. What gets no gradient does not learn."
    unused = [key for key in lost if gradients[key] is None]
    told += f" The output was made without {joined(unused)}." if unused else ""
    return Finding(name, False, told + (f" One arrives at {joined(won)}." if won else ""))


def matches_reference(got: Any, expected: Any, atol: float = 1e-5) -> Finding:
    """Compare numbers with those of a reference, such as PyTorch's own function.

    Parameters
    ----------
    got, expected
        Tensors, arrays or lists of one shape.
    atol
        How far a number may lie from the expected one.

    Raises
    ------
    ValueError
        When the shapes differ, or there are no numbers.

    Examples
    --------
    >>> matches_reference([1.0, 2.0], [1.0, 2.5])
    ✗ equals the reference: 1 of 2 numbers is off; the most, by 0.50, the one at
      [1].
    """
    name = "equals the reference"
    got, expected = _tensor(got, least=0), _tensor(expected, least=0)
    if got.shape != expected.shape:
        shapes = f"{tuple(got.shape)} and {tuple(expected.shape)}"
        raise ValueError(f"Only equal shapes can be compared, got {shapes}.")
    apart = (got - expected).abs()
    bad = ~(apart <= atol)  # written so that nan is bad
    if not bad.any():
        return Finding(name, True, f"all {got.numel()} numbers within {atol:.0e}.")
    place = _unravel(apart.nan_to_num(nan=torch.inf).argmax(), got.shape)
    count, size = int(bad.sum()), apart[tuple(place)].item()
    told = f"{count} of {got.numel()} numbers {_are(count)} off; "
    told += "the first that is nan" if math.isnan(size) else f"the most, by {small(size)}, the one"
    return Finding(name, False, f"{told} at {place}.")


def moves(
    function: Callable, x: torch.Tensor, name: str, noun: str = "output"
) -> torch.Tensor | Finding:
    """Tell how far output t moves when token j is replaced, [j, t], or why that cannot be told."""
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        raise TypeError(
            f"{name.replace(' ', '_')} replaces tokens by random floats: x must be floats, "
            f"got {described(x)}."
        )
    if x.dim() not in (2, 3) or x.shape[-2] < 2:
        raise ValueError(f"x must be (B, T, C) or (T, C) with T of at least 2, got {described(x)}.")
    x = x.detach()
    T = x.shape[-2]
    generator = torch.Generator().manual_seed(0)
    spread = float(x.std()) or 1.0

    before = _output(function, x)
    if not before.isfinite().all():
        lost = (~before.isfinite()).movedim(-2, 0).flatten(1).any(1)
        told = f"cannot be told: {_these(noun, lost)} {_are(int(lost.sum()))} nan or inf. "
        return Finding(name, False, told + "Put finite(...) on the output first.")
    moved = torch.zeros(T, T)
    for j in [*range(1, T), 0]:
        changed = x.clone()
        noise = torch.randn(*x.shape[:-2], x.shape[-1], generator=generator) * spread
        changed[..., j, :] = noise.to(x)
        apart = (_output(function, changed) - before).abs().nan_to_num(nan=torch.inf)
        moved[j] = apart.movedim(-2, 0).flatten(1).amax(1)
    return moved


def seed_all(seed: int) -> None:
    """Seed PyTorch's random numbers.

    `torch.manual_seed` keeps a stack trace for each kind of GPU that is absent, which takes longer
    than many a probe.
    """
    if torch.cuda.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def _output(function: Callable, x: torch.Tensor) -> torch.Tensor:
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        seed_all(0)
        out = function(x.clone())
    out = out[0] if isinstance(out, tuple) else out
    if not isinstance(out, torch.Tensor):
        raise TypeError(f"The function must return a tensor, got {described(out)}.")
    if out.dim() < 2 or out.shape[:-1] != x.shape[:-1]:
        raise ValueError(
            f"The function must return one row a token: for x {tuple(x.shape)} an output of "
            f"{tuple(x.shape[:-1])} and any last size, got {tuple(out.shape)}."
        )
    return out.detach().cpu().double()


def _tensor(values: Any, least: int) -> torch.Tensor:
    values = torch.as_tensor(values).detach().cpu().double()
    if values.numel() == 0 or values.dim() < least:
        need = "numbers in rows and columns" if least else "numbers"
        raise ValueError(f"The probe needs {need}, got the shape {tuple(values.shape)}.")
    return values


def _guess_about_sums(weights: torch.Tensor, sums: torch.Tensor, atol: float) -> str:
    """Ask what the sums point to; empty when they point nowhere."""

    def all_one(dim: int) -> bool:
        total = weights.sum(dim)
        return torch.allclose(total, torch.ones_like(total), rtol=0, atol=atol)

    if all_one(-2):
        return " Columns sum to 1 here: was the softmax or sum taken over the wrong axis?"
    for dim in range(weights.dim() - 2):
        if all_one(dim):
            return f" Over axis {dim} they sum to 1: was the softmax or sum taken over that axis?"
    if ((weights == 0) | (weights == 1)).all():
        return " All weights are 0 or 1: was the division by the row sum left out?"
    future = ~causal_mask(*weights.shape[-2:])
    hidden = bool((weights[..., future] == 0).all())
    if hidden and (sums[..., -1] - 1).abs().max() <= atol and sums.max() <= 1 + atol:
        return " Only the last row is whole: was the mask put on after the softmax?"
    return ""


def _guess_about_future(weights: torch.Tensor, future: torch.Tensor) -> str:
    """Ask what the weights on the future point to; empty when they point nowhere."""
    if weights.shape[-2] == weights.shape[-1]:
        past = future.mT
        if past.any() and (weights[..., past] == 0).all():
            return " No weight is on the past: was the mask turned round, triu for tril?"
        if (weights.diagonal(dim1=-2, dim2=-1)[..., 1:] == 0).all():
            return " From token 1 on, none reads itself: was the diagonal masked too?"
    # Rows with at least two later keys; the others cannot tell one filling from another.
    rows = [row for row in range(len(future)) if future[row].sum() > 1]
    level = all(_is_level(weights[..., row, future[row]]) for row in rows)
    if rows and level and not _is_level(weights):
        return (
            " Within each row all later keys weigh the same: was the future filled with 0 "
            "instead of -inf?"
        )
    return ""


def _is_level(weights: torch.Tensor) -> bool:
    """Tell whether the numbers along the last axis are one and the same, and not 0."""
    first = weights[..., :1]
    return bool(((weights == first) & (first != 0)).all())


def _sums(sums: torch.Tensor, bad: torch.Tensor) -> str:
    """Rows grouped by what they sum to, or the two extremes when there are many groups."""
    groups: dict[str, torch.Tensor] = {}
    for value in sums[bad].unique():
        text = _near_one(value.item())
        groups[text] = groups.get(text, torch.zeros_like(bad)) | (bad & (sums == value))
    if len(groups) <= 3 and all(_tellable(where) for where in groups.values()):
        (text, where), *more = groups.items()
        told = f"{_rows(where, 'sums', 'sum')} to {text}"
        return told + "".join(f", {_rows(where)} to {text}" for text, where in more)
    ends = []
    for word, extreme in (("lowest", sums[bad].min()), ("highest", sums[bad].max())):
        *sheet, row = (bad & (sums == extreme)).nonzero()[0].tolist()
        ends.append(f"the {word} sum is {_near_one(extreme.item())} (row {row}{_sheet(sheet)})")
    count = int(bad.sum())
    return f"{count} of {bad.numel()} rows {_verb(count, 'does', 'do')} not; {', '.join(ends)}"


def _tellable(where: torch.Tensor) -> bool:
    """Tell whether `_rows` can name these rows without counting."""
    return (
        where.dim() == 1
        or int(where.sum()) <= 3
        or bool((where == where[(0,) * (where.dim() - 1)]).all())
    )


def _near_one(value: float) -> str:
    """Write a sum in two decimals; one that would read 1.00 tells its distance."""
    text = small(value)
    return f"1 {'+' if value > 1 else '-'} {abs(value - 1):.0e}" if text == "1.00" else text


def _rows(where: torch.Tensor, one: str = "", many: str = "") -> str:
    """Name the rows that are True in (..., T_q), with a verb: "rows 0 and 7 sum"."""
    sheets = where.reshape(-1, where.shape[-1])
    if len(sheets) == 1 or (sheets == sheets[0]).all():
        everywhere = " of every sheet" if len(sheets) > 1 else ""
        told, count = _these("row", sheets[0]) + everywhere, int(sheets[0].sum())
    else:
        places, count = where.nonzero().tolist(), int(where.sum())
        told = ", ".join(f"row {row}{_sheet(sheet)}" for *sheet, row in places[:3])
        told += f" and {count - 3} more" if count > 3 else ""
    return f"{told} {_verb(count, one, many)}".rstrip()


def _these(noun: str, where: torch.Tensor) -> str:
    places = where.nonzero().flatten().tolist()
    return f"{noun}{'' if len(places) == 1 else 's'} {listed(places)}"


def _sheet(sheet: Sequence[int]) -> str:
    """Name a matrix in a stack by its indices before the last two; empty for a lone matrix."""
    return f" of sheet [{', '.join(map(str, sheet))}]" if sheet else ""


def _unravel(place: torch.Tensor, shape: torch.Size) -> list[int]:
    return [int(i) for i in torch.unravel_index(place, shape)]


def _are(count: int) -> str:
    return _verb(count, "is", "are")


def _verb(count: int, one: str, many: str) -> str:
    return one if count == 1 else many


def described(value: Any) -> str:
    """Say what something is: a tensor with its shape and type, or the name of its class."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)} with {value.dtype}"
    return type(value).__name__
