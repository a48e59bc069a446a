"""Probes: each checks one property of attention weights or of a function, with numbers.

A probe returns a `Finding`, which prints as one or two sentences: what was found, where, how much,
and a guess at the cause where the numbers point to one. No probe proves that attention is right;
each detects some bugs and misses others.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from attention_base.masks import causal_mask
from attention_base.numbers import as_array, as_real, described, joined, listed, small, wrap_text
from attention_base.same import close, seed_all, tolerance
from attention_clinic.calls import evaluation_mode, training_mode

PREFIX, GRADIENTS = "same for a prefix", "gradients reach"
REFERENCE, HEADS = "equals the reference", "heads and projection"
RESIDUALS = "residuals and norms"
MARKS = {True: "✓", False: "✗", None: "○"}


@dataclass(frozen=True)
class Finding:
    """The result of a probe: its name, whether it passed, and the numbers.

    ``ok`` is None where nothing can be told; the evidence says why. As a condition, a finding is
    true only where the probe passed.

    Examples
    --------
    >>> weights = torch.softmax(torch.zeros(2, 2), dim=-1)
    >>> print("causal" if no_weight_on_future(weights) else "it sees the future")
    it sees the future
    """

    name: str
    ok: bool | None
    evidence: str

    def __bool__(self) -> bool:
        return self.ok is True

    def __str__(self) -> str:
        return wrap_text(f"{MARKS[self.ok]} {self.name}: {self.evidence}", hanging="  ")

    __repr__ = __str__


def finite(values: Any) -> Finding:
    """Check that every number is finite: not nan, inf or -inf.

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
    values = _as_doubles(values, "values")
    bad = ~values.isfinite()
    if not bad.any():
        return Finding("finite", True, f"all {values.numel()} numbers are finite.")
    kinds = [(values.isnan(), "nan"), (values == torch.inf, "inf"), (values == -torch.inf, "-inf")]
    counts = [(int(where.sum()), name) for where, name in kinds if where.any()]
    (count, kind), *others = counts
    evidence = f"{count} of {values.numel()} numbers {_is_or_are(count)} {kind}"
    evidence += "".join(f", {count} {_is_or_are(count)} {kind}" for count, kind in others)
    evidence += f"; the first is at {bad.nonzero()[0].tolist()}."
    if values.dim() > 1 and values.isnan().all():
        evidence += " Everything is nan: was 0 multiplied by inf somewhere? 0 * inf is nan."
    elif values.dim() > 1 and (rows := values.isnan().all(-1)).any():
        evidence += f" {_name_rows(rows, 'is', 'are').capitalize()} nan throughout: "
        evidence += "is it 0 / 0, a mean of nothing or a softmax of nothing?"
    return Finding("finite", False, evidence)


def rows_sum_to_one(weights: Any, atol: float = 1e-5) -> Finding:
    """Check that every row of weights sums to 1, so that each output is a weighted average.

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
    weights, atol = _as_doubles(weights, "weights", min_dim=2), _as_tolerance(atol)
    sums = weights.sum(-1)
    bad = ~close(sums, torch.ones_like(sums), atol)
    if not bad.any():
        return Finding(name, True, f"all {sums.numel()} rows do.")
    if not sums.isfinite().all():
        rows = _name_rows(~sums.isfinite(), "sums", "sum")
        return Finding(name, False, f"{rows} to nan or inf. finite(weights) tells more.")
    evidence = _describe_sums(sums, bad)
    evidence += " — every output is a weighted average only if its row sums to 1."
    return Finding(name, False, evidence + _guess_about_sums(weights, sums, atol))


def no_weight_on_future(weights: Any) -> Finding:
    """Check that every weight on a later key is exactly 0.

    The last query may attend to all keys, so with T_k > T_q the first keys are earlier ones.

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
    weights = _as_doubles(weights, "weights", min_dim=2)
    T_q, T_k = weights.shape[-2:]
    future = ~causal_mask(T_q, T_k)
    later = weights[..., future]
    if later.numel() == 0:
        return Finding(name, True, "no query has a later key.")
    bad = (weights != 0) & future  # nan is bad too
    if not bad.any():
        if later.numel() == 1:
            return Finding(name, True, "the only weight on a later key is 0.")
        return Finding(name, True, f"all {later.numel()} weights on later keys are 0.")
    count = int(bad.sum())
    evidence = f"{count} of {later.numel()} weights on later keys {_is_or_are(count)} not 0"
    if later.isnan().any():
        return Finding(name, False, f"{evidence}, but nan. finite(weights) tells more.")
    largest = weights.abs().masked_fill(~future, -1).argmax()
    *matrix, query, key = _unravel(largest, weights.shape)
    evidence += f"; the largest is {small(weights[*matrix, query, key].item())}: "
    evidence += f"query {query} attends to key {key}{_of_matrix(matrix)}."
    return Finding(name, False, evidence + _guess_about_future(weights, future))


def no_leak(function: Callable, x: torch.Tensor, atol: float = 1e-6) -> Finding:
    """Check that no output changes when a later token does.

    Each token from 1 on is replaced in turn by a random vector, in every sequence, and the
    outputs before it are compared. (A random vector, since a layer norm would cancel a constant
    that is added to all channels.) Every call begins with the same random state, so that dropout
    does not look like a leak; afterwards the state is what it was before.

    Parameters
    ----------
    function
        Takes x, returns (..., T, anything), or a tuple of which that is the first.
    x
        (B, T, C) or (T, C), floats.
    atol
        How much an output may change and still count as the same.

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
    atol = _as_tolerance(atol)
    changes = output_changes(function, x, "no leak")
    return changes if isinstance(changes, Finding) else judge_leaks(changes, atol)


def mixes_no_tokens(changes: torch.Tensor | None) -> bool:
    """Tell whether every output depends on its own token only."""
    if changes is None:
        return False
    changes = changes.where(~changes.isnan(), 0)
    return not (changes - changes.diag().diag()).any()


def judge_leaks(changes: torch.Tensor, atol: float) -> Finding:
    """Judge, as `no_leak` does, the changes [j, t] of output t after token j was replaced."""
    name, T = "no leak", len(changes)
    replaced = [j for j in range(1, T) if not changes[j].isnan().any()]
    backward = changes.where(~changes.isnan(), 0).tril(-1)  # outputs before the replaced token
    leaks = backward > atol
    if not leaks.any():
        if T == 2:
            return Finding(name, True, "token 1 was replaced; output 0 did not change.")
        tokens = f"tokens {listed(replaced)} were replaced in turn"
        return Finding(name, True, f"{tokens}; no output before them changed.")
    j = int(backward.amax(1).argmax())
    outputs, largest = leaks[j].nonzero().flatten().tolist(), int(backward[j].argmax())
    evidence = f"changing token {j} changed {'output' if len(outputs) == 1 else 'outputs'} "
    evidence += f"{listed(outputs)}, by up to {small(backward[j, largest].item())}"
    evidence += "." if len(outputs) == 1 else f" (output {largest})."
    count = int(leaks.any(1).sum())
    reach_back = "reaches" if count == 1 else "reach"
    evidence += f" {count} of the {len(replaced)} tokens tried {reach_back} back."
    return Finding(name, False, evidence)


def same_for_prefix(
    module_or_function: Callable, x: torch.Tensor, atol: float | None = None
) -> Finding:
    """Check that an output is the same when the tokens after it do not exist yet.

    x is cut after each token in turn, and the last output of what is left is compared with the
    output at that place in all of x: ``f(x[:, :t + 1])[:, t] == f(x)[:, t]``. Whoever writes token
    by token, or keeps keys and values in a cache, relies on it. It holds for causal attention; an
    encoder and cross-attention promise no such thing.

    A module is called in evaluation mode, then in training mode with its dropout off, where a
    batch norm is another function. Afterwards modes, buffers and random state are what they were.

    Parameters
    ----------
    module_or_function, x
        As `function` and `x` for `no_leak`. Where the function takes ids, x holds ids: whole
        numbers, (B, T) or (T,).
    atol
        How far an output may lie from the other. Left out: as far as rounding may take outputs of
        this size, 1e-5 for numbers of about 1. Where x, the outputs or the parameters of the module
        are float16 or bfloat16, outputs may differ by 0.7 % of their size on average.

    Returns
    -------
    Finding
        Its `ok` is None where nothing can be told: no shorter text is accepted, or the outputs are
        random.

    Raises
    ------
    TypeError, ValueError
        As for `no_leak`.

    Examples
    --------
    >>> x = torch.arange(6.0).reshape(3, 2)
    >>> same_for_prefix(lambda x: x.cumsum(0), x)
    ✓ same for a prefix: x was cut after tokens 0 and 1 in turn; the output there
      did not change.
    >>> same_for_prefix(lambda x: x / len(x), x)
    ✗ same for a prefix: output 0 of the first token alone differs from output 0 of
      all 3, by up to 0.67: it depends on how many tokens there are. 2 of the 2
      prefixes tried differ.
    """
    atol = None if atol is None else _as_tolerance(atol)
    function = module_or_function
    _check_call(function, x, "same_for_prefix")
    module = function if isinstance(function, torch.nn.Module) else None
    if not x.is_floating_point():  # ids: an axis of one channel, which the function does not see
        x = x[..., None]

        def function(tokens: torch.Tensor) -> torch.Tensor:
            return module_or_function(tokens[..., 0])

    _check_tokens(x)
    with evaluation_mode(module):
        return judge_prefixes(function, x.detach(), atol, module)[0]


def judge_prefixes(
    function: Callable,
    x: torch.Tensor,
    atol: float | None = None,
    module: torch.nn.Module | None = None,
    most: int | None = None,
) -> tuple[Finding, bool]:
    """Judge as `same_for_prefix` does, and tell whether only the number of tokens matters.

    The module, in evaluation mode already, is what `function` calls, and is tried in training mode
    too, where it is known. Of a longer sequence, `most` is how many prefixes are tried.
    """
    whole = _called(function, x)
    if not whole.isfinite().all():
        return _not_finite(PREFIX, whole, "output"), False
    own = [] if module is None else [z for z in module.parameters() if z.is_floating_point()]
    dtype = min((z.dtype for z in (x, whole, *own)), key=lambda one: one.itemsize)
    prefixes = _Prefixes(function, x, whole, atol, dtype)
    finding, by_number = prefixes.judged(most)
    if module is None or not finding.ok:
        return finding, by_number
    with training_mode(module):
        try:
            in_training = replace(prefixes, whole=_called(function, x))
        except Exception:  # it may want more than x then
            return finding, False
        if not in_training.same(in_training.whole, whole):
            told, by_number = in_training.judged(most)
            if told.ok is False:
                return replace(told, evidence=f"in training mode, {told.evidence}"), by_number
    return finding, False


@dataclass(frozen=True)
class _Prefixes:
    """A function, its output for all of x, and how far an output may lie from it."""

    function: Callable
    x: torch.Tensor
    whole: torch.Tensor
    atol: float | None
    dtype: torch.dtype

    def same(self, a: torch.Tensor, b: torch.Tensor) -> bool:
        """Tell whether two outputs differ by rounding only; in half precision, on average."""
        if self.atol is not None or self.dtype.itemsize >= 4:
            return _largest(a, b) <= (tolerance(self.whole) if self.atol is None else self.atol)
        on_average = (a.double() - b.double()).square().mean().sqrt().item()
        return on_average <= tolerance(self.whole, torch.bfloat16)  # float16, too: rounding adds up

    def judged(self, most: int | None) -> tuple[Finding, bool]:
        """Judge the prefixes, and tell whether only the number of tokens matters."""
        T = self.x.shape[-2]
        changes, refused = {}, {}
        for t in range(T - 1) if most is None or most >= T else _spread(T - 1, most):
            try:
                part = _called(self.function, self.x[..., : t + 1, :])  # contiguous, as a copy is
            except Exception as error:  # of whatever kind: it takes no text of this length
                refused[t] = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": .")
                continue
            if part.shape[-1] != self.whole.shape[-1]:
                raise ValueError(
                    f"The outputs of {t + 1} tokens have {part.shape[-1]} channels, those of all "
                    f"{T} have {self.whole.shape[-1]}. Give a function that returns outputs, not "
                    "weights."
                )
            here, there = part[..., t, :], self.whole[..., t, :]
            changes[t] = 0.0 if self.same(here, there) else _largest(here, there)
        if any(changes.values()):
            return self._differing(changes)
        if not changes:
            why = f"it takes no shorter text: cut after token {t} it raises {refused[t]}."
            return Finding(PREFIX, None, why), False
        evidence = f"x was cut after {_in_turn(changes)}; the output there did not change."
        if refused:
            *_, (t, raised) = refused.items()
            evidence += f" Cut after token {t} it raises {raised}."
        return Finding(PREFIX, True, evidence), False

    def _differing(self, changes: dict[int, float]) -> tuple[Finding, bool]:
        """Tell of the prefix whose last output differs the most, and on what that depends."""
        if not self.same(_called(self.function, self.x, seed=1), self.whole):
            why = "two runs on the same x differ. Is dropout on, or does it keep something?"
            return Finding(PREFIX, None, why), False
        t, T = max(changes, key=changes.get), self.x.shape[-2]
        others = self.x.clone()
        later = others[..., t + 1 :, :]
        generator = torch.Generator().manual_seed(0)
        if self.x.is_floating_point():
            noise = torch.randn(later.shape, generator=generator)
            later.copy_(noise * (float(self.x.std()) or 1.0))
        else:  # other ids
            chosen = torch.randint(self.x.numel(), later.shape, generator=generator)
            later.copy_(self.x.flatten()[chosen])
        unchanged = _called(self.function, others)
        by_number = self.same(unchanged[..., t, :], self.whole[..., t, :])
        first = "token" if t == 0 else f"{t + 1} tokens"
        evidence = f"output {t} of the first {first} alone differs from output {t} of all {T}, by "
        evidence += f"up to {small(changes[t])}: it depends on "
        evidence += "how many tokens there are. " if by_number else "tokens after it. "
        count = sum(map(bool, changes.values()))
        evidence += f"{count} of the {len(changes)} prefixes tried differ{'s' * (count == 1)}."
        return Finding(PREFIX, False, evidence), by_number


def reach(
    function: Callable, x: torch.Tensor, atol: float = 1e-6, *, causal: bool = True
) -> Finding:
    """Check that every output changes when a token that it may attend to does.

    The counterpart of `no_leak`, with the same random tokens. A module that ignores tokens on
    purpose, such as one with a window or with hand-set weights, fails it rightly.

    Parameters
    ----------
    function, x, atol
        As for `no_leak`.
    causal
        Whether an output may depend on its own token and those before it only, or on all.

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
    ✗ reach: output 2 depends on token 2 only. In 3 of 6 pairs of an output and a
      token that it may attend to, the output did not change.
    """
    atol = _as_tolerance(atol)
    if not isinstance(causal, bool):
        raise TypeError(f"causal must be True or False, got {described(causal)}.")
    changes = output_changes(function, x, "reach")
    return changes if isinstance(changes, Finding) else judge_reach(changes, atol, causal)


def judge_reach(changes: torch.Tensor, atol: float, causal: bool) -> Finding:
    """Judge, as `reach` does, the changes [j, t] of output t after token j was replaced."""
    name, T = "reach", len(changes)
    allowed = torch.ones(T, T, dtype=torch.bool)  # [j, t]: output t may attend to token j
    allowed = allowed.triu() if causal else allowed
    replaced = ~changes.isnan().any(1)
    allowed &= replaced[:, None]
    unchanged = allowed & (changes <= atol)
    if not unchanged.any():
        outputs = "every output from there on changed" if causal else "every output changed"
        tokens = listed(replaced.nonzero().flatten().tolist())
        return Finding(name, True, f"tokens {tokens} were replaced in turn; {outputs}.")
    t = T - 1 - int(unchanged.sum(0).flip(0).argmax())  # the last of the worst outputs
    reaching = (allowed & ~unchanged)[:, t]
    tokens = f"{_name_places('token', reaching)} only" if reaching.any() else "no token"
    evidence = f"output {t} depends on {tokens}. In {int(unchanged.sum())} of {int(allowed.sum())} "
    evidence += "pairs of an output and a token that it may attend to, the output did not change."
    return Finding(name, False, evidence)


def sequences_stay_apart(function: Callable, x: torch.Tensor, atol: float = 1e-6) -> Finding:
    """Check that no output changes when another sequence of the batch does.

    Each sequence is replaced in turn by random tokens, and the outputs of the others are compared,
    with the same random state as in `no_leak`.

    Parameters
    ----------
    function, x, atol
        As for `no_leak`, but x is (B, T, C) with B of at least 2.

    Raises
    ------
    TypeError, ValueError
        As for `no_leak`, and when there is only one sequence.

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
    name, atol = "sequences stay apart", _as_tolerance(atol)
    _check_call(function, x, name)
    if x.dim() != 3 or len(x) < 2:
        raise ValueError(f"x must be (B, T, C) with B of at least 2, got {described(x)}.")

    def by_sequence(swapped: torch.Tensor) -> torch.Tensor:
        return _output(function, swapped.transpose(0, 1)).transpose(0, 1)

    # Sequences in the place of tokens.
    changes = output_changes(by_sequence, x.transpose(0, 1), name, "sequence")
    if isinstance(changes, Finding):
        return changes
    changes.fill_diagonal_(0)
    if not (changes > atol).any():
        evidence = f"sequences {listed(range(len(changes)))} were replaced in turn; "
        return Finding(name, True, evidence + "the outputs of the others did not change.")
    b = int(changes.amax(1).argmax())
    evidence = f"changing sequence {b} changed the outputs of "
    evidence += f"{_name_places('sequence', changes[b] > atol)}, "
    evidence += f"by up to {small(changes[b].max().item())}. "
    evidence += "Was something summed, averaged or normalised over axis 0?"
    return Finding(name, False, evidence)


def gradients_reach(out: torch.Tensor, tensors: Mapping[str, torch.Tensor]) -> Finding:
    """Check that a gradient from the output arrives at each of some tensors.

    The upstream gradient is random. That of a plain sum can hide a path: the weights of a row sum
    to 1 whatever the scores are.

    Parameters
    ----------
    out
        (..., T, anything) with at least 2 tokens: the softmax of a single score is always 1.
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
    if not isinstance(tensors, Mapping) or not tensors:
        raise (ValueError if isinstance(tensors, Mapping) else TypeError)(
            "Say what the gradient should reach: a dict of names and tensors, such as "
            f'{{"query": layer.weight}}; got {described(tensors)}.'
        )
    for what, tensor in {"out": out, **tensors}.items():
        if not isinstance(tensor, torch.Tensor) or not has_plain_floats(tensor):
            raise TypeError(f"{what} must be a plain tensor of floats, got {described(tensor)}.")
    if out.dim() < 2 or out.shape[-2] < 2:
        raise ValueError(f"out must be (..., T, C) with T of at least 2, got {described(out)}.")
    if not out.requires_grad:
        raise ValueError(
            "out has no graph to backpropagate through: compute it outside of "
            "torch.no_grad(), from tensors that require a gradient, and do not detach it."
        )
    upstream = torch.randn(out.shape, generator=torch.Generator().manual_seed(0)).to(out)
    inputs = {key: tensor for key, tensor in tensors.items() if tensor.requires_grad}
    if not inputs:
        raise ValueError(
            f"None of {joined(list(tensors))} requires a gradient: nothing can arrive."
        )
    # As a sum: given an upstream gradient, PyTorch would import sympy, 30 MB and half a second.
    found = torch.autograd.grad(
        (out * upstream).sum(), list(inputs.values()), retain_graph=True, allow_unused=True
    )
    gradients = dict.fromkeys(tensors) | dict(zip(inputs, found, strict=True))
    without = [key for key, gradient in gradients.items() if gradient is None or not gradient.any()]
    reached = [key for key in tensors if key not in without]
    if not without:
        return Finding(name, True, f"one arrives at {joined(reached)}.")
    sizes = joined([f"0 of {tensors[key].numel()}" for key in without])
    evidence = f"none arrives at {joined(without)}: {sizes} numbers. "
    evidence += "What gets no gradient does not learn."
    unused = [key for key in without if gradients[key] is None]
    evidence += f" The output was made without {joined(unused)}." if unused else ""
    evidence += f" One arrives at {joined(reached)}." if reached else ""
    return Finding(name, False, evidence)


def matches_reference(got: Any, expected: Any, atol: float = 1e-5) -> Finding:
    """Compare numbers with those of a reference, such as PyTorch's own function.

    Parameters
    ----------
    got, expected
        Tensors, arrays or lists of one shape.
    atol
        How much a number may differ from the expected one.

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
    got, expected = _as_doubles(got, "got"), _as_doubles(expected, "expected")
    atol = _as_tolerance(atol)
    if got.shape != expected.shape:
        shapes = f"{tuple(got.shape)} and {tuple(expected.shape)}"
        raise ValueError(f"Only equal shapes can be compared, got {shapes}.")
    bad = ~close(got, expected, atol) | got.isnan()
    if not bad.any():
        return Finding(name, True, f"all {got.numel()} numbers within {atol:.0e}.")
    distance = (got - expected).abs().masked_fill(~bad, 0)
    place = _unravel(distance.nan_to_num(nan=torch.inf).argmax(), got.shape)
    count, largest = int(bad.sum()), distance[*place].item()
    where = f"the most, by {small(largest)}, the one at {place}"
    if math.isnan(largest):
        where = f"the first that is nan at {place}"
    evidence = f"{count} of {got.numel()} numbers {_is_or_are(count)} off; {where}."
    return Finding(name, False, evidence)


def output_changes(
    function: Callable, x: torch.Tensor, name: str, noun: str = "output", most: int | None = None
) -> torch.Tensor | Finding:
    """Measure how much output t changes when token j is replaced: (T, T), [j, t].

    With `most`, of a longer sequence only so many tokens are replaced, spread evenly; the rows of
    the others are nan. Where there are outputs that are nan or inf, the `Finding` of the probe
    `name` instead.
    """
    _check_call(function, x, name)
    _check_tokens(x)
    x = x.detach()
    T = x.shape[-2]
    generator = torch.Generator().manual_seed(0)
    spread = float(x.std()) or 1.0

    before = _output(function, x)
    if not before.isfinite().all():
        return _not_finite(name, before, noun)
    changes = torch.full((T, T), torch.nan)
    chosen = range(T) if most is None or most >= T else _spread(T, most)
    for j in [*(j for j in chosen if j), 0]:
        changed = x.clone()
        noise = torch.randn(*x.shape[:-2], x.shape[-1], generator=generator) * spread
        changed[..., j, :] = noise.to(x)
        distance = (_output(function, changed) - before).abs().nan_to_num(nan=torch.inf)
        changes[j] = distance.movedim(-2, 0).flatten(1).amax(1)
    return changes


_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)  # of ids


def _check_call(function: Callable, x: torch.Tensor, name: str) -> None:
    """Refuse what cannot be called with x alone, and x that has no floats to replace."""
    probe = name.replace(" ", "_")
    prefix = probe == "same_for_prefix"
    does = "cuts tokens off" if prefix else "replaces tokens by random floats"
    ids = prefix and isinstance(x, torch.Tensor) and x.dtype in _WHOLE
    if not ids and (not isinstance(x, torch.Tensor) or not has_plain_floats(x)):
        wanted = "floats, or ids," if prefix else "floats"
        remedy = "" if prefix else " For ids, give what their embedding makes of them."
        raise TypeError(
            f"{probe} {does}: x must be {wanted} in a plain tensor, got {described(x)}.{remedy}"
        )
    if not callable(function):
        raise TypeError(f"{probe} calls a function with x, got {described(function)} for it.")
    if isinstance(function, torch.nn.MultiheadAttention):
        turned = "" if function.batch_first else "Yours reads the first axis of x as time. "
        raise TypeError(
            "nn.MultiheadAttention takes queries, keys and values, and its mask is True where a "
            f"query may NOT attend. {turned}Made with batch_first=True, write {probe}(lambda x: "
            "mha(x, x, x, attn_mask=~causal_mask(x.shape[-2]))[0], x)."
        )
    is_module = isinstance(function, torch.nn.Module)
    try:
        signature = inspect.signature(function.forward if is_module else function)
    except ValueError:  # some functions written in C do not tell
        return
    try:
        signature.bind(x)
    except TypeError as error:
        raise TypeError(
            f"{probe} calls the function with x alone, which it does not take: {error}. Give the "
            "rest in a lambda, such as lambda x: f(x, x, x)."
        ) from None


def _check_tokens(x: torch.Tensor) -> None:
    """Refuse what is no sequence of at least two tokens."""
    if x.dim() not in (2, 3) or x.shape[-2] < 2:
        raise ValueError(f"x must be (B, T, C) or (T, C) with T of at least 2, got {described(x)}.")


def _not_finite(name: str, out: torch.Tensor, noun: str) -> Finding:
    """What is told where outputs are nan or inf."""
    bad = (~out.isfinite()).movedim(-2, 0).flatten(1).any(1)
    evidence = f"cannot be told: {_name_places(noun, bad)} {_is_or_are(int(bad.sum()))} nan "
    return Finding(name, False, evidence + "or inf. Put finite(...) on the output first.")


def has_plain_floats(x: torch.Tensor) -> bool:
    """Tell whether a tensor holds floats, one for each of its places."""
    plain = x.layout is torch.strided and not x.is_nested and not x.is_meta
    return plain and x.is_floating_point()


def _as_tolerance(atol: float) -> float:
    if (tolerance := as_real(atol, "atol")) < 0:
        raise ValueError(
            f"atol must be at least 0, got {tolerance:g}: it is how far numbers may lie apart."
        )
    return tolerance


def _spread(T: int, count: int) -> list[int]:
    """So many tokens of T, from the first to the last."""
    return sorted({round(i * (T - 1) / (count - 1)) for i in range(count)})


def _output(function: Callable, x: torch.Tensor) -> torch.Tensor:
    return _called(function, x).cpu().double()


def _called(function: Callable, x: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """What a function returns for x, if it has one row a token."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        seed_all(seed)
        out = function(x.clone())
    out = out[0] if isinstance(out, tuple) else out
    if not isinstance(out, torch.Tensor):
        raise TypeError(f"The function must return a tensor, got {described(out)}.")
    if out.is_complex() or not (out.layout is torch.strided and not out.is_nested):
        raise TypeError(
            f"The function must return real numbers in a plain tensor, got {described(out)}."
        )
    if out.is_meta:
        raise ValueError("The function returned a shape without numbers (device 'meta').")
    if out.dim() < 2 or out.shape[:-1] != x.shape[:-1]:
        raise ValueError(
            f"The function must return one row a token: for x {tuple(x.shape)} an output of "
            f"{tuple(x.shape[:-1])} and any last size, got {tuple(out.shape)}."
        )
    return out.detach()


def _as_doubles(values: Any, what: str, min_dim: int = 0) -> torch.Tensor:
    values = torch.from_numpy(as_array(values, what).astype(float))
    if values.numel() == 0 or values.dim() < min_dim:
        need = "numbers in rows and columns" if min_dim else "numbers"
        raise ValueError(f"The probe needs {need}, got the shape {tuple(values.shape)}.")
    return values


def _guess_about_sums(weights: torch.Tensor, sums: torch.Tensor, atol: float) -> str:
    """Ask about the bug that these sums suggest; empty when they suggest none."""

    def sums_to_one(dim: int) -> bool:
        total = weights.sum(dim)
        return bool(close(total, torch.ones_like(total), atol).all())

    if sums_to_one(-2):
        return " Columns sum to 1 here: was the softmax or sum taken over the wrong axis?"
    for dim in range(weights.dim() - 2):
        if sums_to_one(dim):
            return f" Over axis {dim} they sum to 1: was the softmax or sum taken over that axis?"
    if ((weights == 0) | (weights == 1)).all():
        return " All weights are 0 or 1: was the division by the row sum left out?"
    future = ~causal_mask(*weights.shape[-2:])
    last = sums[..., -1]
    last_is_one = bool(close(last, torch.ones_like(last), atol).all())
    if last_is_one and sums.max() <= 1 + atol and not weights[..., future].any():
        return " Only the last row is whole: was the mask put on after the softmax?"
    return ""


def _guess_about_future(weights: torch.Tensor, future: torch.Tensor) -> str:
    """Ask about the bug that the weights on the future suggest; empty when they suggest none."""
    if weights.shape[-2] == weights.shape[-1]:
        past = future.mT
        if past.any() and (weights[..., past] == 0).all():
            return " No weight is on the past: was the mask inverted, or triu used for tril?"
        if (weights.diagonal(dim1=-2, dim2=-1)[..., 1:] == 0).all():
            return " From token 1 on, none attends to itself: was the diagonal masked too?"
    # Only in rows with at least two later keys can equal weights be told from others.
    rows = [row for row in range(len(future)) if future[row].sum() > 1]
    equal = all(_equal_and_not_0(weights[..., row, future[row]]) for row in rows)
    if rows and equal and not _equal_and_not_0(weights):
        return (
            " Within each row all later keys have the same weight: was the future filled with 0 "
            "instead of -inf?"
        )
    return ""


def _equal_and_not_0(weights: torch.Tensor) -> bool:
    """Tell whether the numbers along the last axis are equal, and not 0."""
    first = weights[..., :1]
    return bool(((weights == first) & (first != 0)).all())


def _describe_sums(sums: torch.Tensor, bad: torch.Tensor) -> str:
    """Rows grouped by what they sum to, or the two extremes when there are many groups."""
    groups: dict[str, torch.Tensor] = {}
    for value in sums[bad].unique():
        text = _format_sum(value.item())
        groups[text] = groups.get(text, torch.zeros_like(bad)) | (bad & (sums == value))
    if len(groups) <= 3 and all(_few_enough_to_name(where) for where in groups.values()):
        (text, where), *others = groups.items()
        first = f"{_name_rows(where, 'sums', 'sum')} to {text}"
        return first + "".join(f", {_name_rows(where)} to {text}" for text, where in others)
    extremes = []
    for word, extreme in (("lowest", sums[bad].min()), ("highest", sums[bad].max())):
        *matrix, row = (bad & (sums == extreme)).nonzero()[0].tolist()
        place = f"row {row}{_of_matrix(matrix)}"
        extremes.append(f"the {word} sum is {_format_sum(extreme.item())} ({place})")
    count = int(bad.sum())
    do = "does" if count == 1 else "do"
    return f"{count} of {bad.numel()} rows {do} not; {', '.join(extremes)}"


def _few_enough_to_name(where: torch.Tensor) -> bool:
    """Tell whether `_name_rows` can name these rows without counting."""
    first = where[(0,) * (where.dim() - 1)]
    return where.dim() == 1 or int(where.sum()) <= 3 or bool((where == first).all())


def _format_sum(value: float) -> str:
    """Write a sum in two decimals; for one that would read 1.00, its difference from 1."""
    text = small(value)
    return f"1 {'+' if value > 1 else '-'} {abs(value - 1):.0e}" if text == "1.00" else text


def _name_rows(where: torch.Tensor, singular: str = "", plural: str = "") -> str:
    """Name the rows that are True in (..., T_q), with a verb: "rows 0 and 7 sum"."""
    matrices = where.reshape(-1, where.shape[-1])
    if len(matrices) == 1 or (matrices == matrices[0]).all():
        everywhere = " of every matrix" if len(matrices) > 1 else ""
        rows, count = _name_places("row", matrices[0]) + everywhere, int(matrices[0].sum())
    else:
        places, count = where.nonzero().tolist(), int(where.sum())
        rows = ", ".join(f"row {row}{_of_matrix(matrix)}" for *matrix, row in places[:3])
        rows += f" and {count - 3} more" if count > 3 else ""
    return f"{rows} {singular if count == 1 else plural}".rstrip()


def _name_places(noun: str, where: torch.Tensor) -> str:
    """Name the positions that are True: "tokens 6 and 7"."""
    places = where.nonzero().flatten().tolist()
    return f"{noun}{'' if len(places) == 1 else 's'} {listed(places)}"


def _in_turn(places: Iterable[int]) -> str:
    """Name tokens: "tokens 0 to 6 in turn"."""
    places = list(places)
    return f"token {places[0]}" if len(places) == 1 else f"tokens {listed(places)} in turn"


def _largest(a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest difference; inf where one is nan."""
    return (a.double() - b.double()).abs().nan_to_num(nan=torch.inf).max().item()


def _of_matrix(index: Sequence[int]) -> str:
    """Name a matrix of several, such as that of sequence b and head h; empty for a single one."""
    return f" of matrix [{', '.join(map(str, index))}]" if index else ""


def _unravel(place: torch.Tensor, shape: torch.Size) -> list[int]:
    return [int(i) for i in np.unravel_index(int(place), shape)]


def _is_or_are(count: int) -> str:
    return "is" if count == 1 else "are"
