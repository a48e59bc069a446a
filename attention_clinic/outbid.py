"""Asks for the future once more, with scores as large as training can make them.

A mask that fills with -10,000 in the place of minus infinity is right as long as some visible score
of each row lies above -10,000. Row 0 has one visible score. So the weights of the queries are
multiplied until this score is -30,000, and the later tokens are replaced: output 0 must not change,
whatever the weights of a causal module are.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from attention_base.numbers import small
from attention_clinic.bugs import of_parts, split_heads
from attention_clinic.calls import Watching, other_numbers
from attention_clinic.examination import Examination
from attention_clinic.inspection import AttentionInternals
from attention_clinic.probes import Finding
from attention_clinic.results import Results, found, named
from attention_clinic.subject import Subject, find_parts

PROBE = "no leak"
LARGE = 30_000.0  # a score was seen at -16,940 in training, in karpathy/minGPT#75
SCORES = f", also with a score of -{LARGE:,.0f} in row 0."
WEIGHTS = ", also with query weights {:,.0f} times as large."
AT_TEN_THOUSAND = "mask of -1e4"
OUTBID = "mask that large scores outbid"
# With these a score of row 0 is still the product of its query and its key, by √head_size.
PLAIN = ("rotary positions (", "grouped-query", "multi-query", "ALiBi (", "sliding window")

Weight = tuple[nn.Parameter, Callable[[Tensor], Tensor]]  # as in `AttentionInternals.roles`


def check_large_scores(exam: Examination) -> Results:
    """Look whether output 0 depends on later tokens once its score is large, if all else is right.

    Returns what takes the place of the results so far. Where scores of this size cannot be made,
    or give outputs that are nan or inf, nothing more is told.
    """
    subject, parts, before = exam.subject, exam.parts, exam.results
    if not subject.causal or before.failed or not before.passed(PROBE):
        return before
    largest = {name: _score_of_row_0(seen) for name, seen in parts.internals.items()}
    queries = {
        name: (parts.internals[name].roles["query"], score)
        for name, score in largest.items()
        if score and "query" in parts.internals[name].roles
    }
    if not queries or len(queries) < len(parts.attentions):
        return before
    changed = _change_of_output_0(subject, queries.values(), LARGE)
    if changed is None:
        return before
    if not changed:
        known = [exam.compared[name] for name in queries if name in exam.compared]
        known = [one for one in known if all(name.startswith(PLAIN) for name in one.variants)]
        plain = [one.finding.ok for one in known] == [True] * len(queries)
        factors = [LARGE / abs(score) for score in largest.values()]
        reached = plain and _reached(subject, queries)
        return _passed(before, SCORES if reached else WEIGHTS.format(min(factors)))
    types = set()
    with Watching(lambda function, args, result: types.add(getattr(result, "dtype", None))):
        _change_of_output_0(subject, queries.values(), LARGE)
    if torch.float16 in types:  # it ends at 65504, and below that scores are minus infinity
        return before
    evidence = "with the weights of the queries multiplied until the score of row 0 is "
    evidence += f"-{LARGE:,.0f}, changing later tokens changed output 0, by up to {small(changed)}."
    results = before + found(Finding(PROBE, False, evidence))
    for name, one in queries.items():
        at = {size: _change_of_output_0(subject, [one], size) for size in (9e3, 1.1e4, LARGE)}
        if at[LARGE] or len(queries) == 1:
            bug = AT_TEN_THOUSAND if at[1.1e4] and at[9e3] == 0 else OUTBID
            results += named(of_parts(bug), name)
    return results


def _score_of_row_0(seen: AttentionInternals) -> float:
    """The largest score, in size, of a first query with its own key; 0 where there is none."""
    reading = seen.readings[0]
    try:
        q, k = (split_heads(z[:, :1].double(), seen.n_head) for z in (reading.q, reading.k))
    except RuntimeError:  # its heads are others
        return 0.0
    scores = (q * k).sum(-1).flatten() / math.sqrt(q.shape[-1])
    largest = scores[scores.abs().argmax()].item()
    return largest if math.isfinite(largest) and abs(largest) > 1e-6 else 0.0


def _reached(subject: Subject, queries: Mapping[str, tuple[Weight, float]]) -> bool:
    """Tell whether the scores became as large as they should; not where more adds to a layer."""
    try:
        with _larger(subject, queries.values(), LARGE):
            seen = find_parts(subject).internals
        scores = [-_score_of_row_0(seen[name]) for name in queries]
    except Exception:  # it may refuse scores of this size where it is asked for its weights
        return False
    return all(math.isclose(score, LARGE, rel_tol=0.02) for score in scores)


def _passed(before: Results, more: str) -> Results:
    """The same, and what else the probe has tried."""
    findings = tuple(
        (replace(one, evidence=one.evidence.removesuffix(".") + more), where)
        if one.name == PROBE
        else (one, where)
        for one, where in before.findings
    )
    return replace(before, findings=findings)


def _change_of_output_0(
    subject: Subject, queries: Iterable[tuple[Weight, float]], size: float
) -> float | None:
    """How much later tokens change output 0 with scores of this size; None where it is not finite.

    A change that may be rounding counts as 0.
    """
    x = subject.x
    others = x.clone()
    noise = torch.randn(others[:, 1:].shape, generator=torch.Generator().manual_seed(1))
    others[:, 1:] = (noise * (float(x.std()) or 1.0)).to(x)
    with _larger(subject, queries, size):
        try:
            whole, other = (subject.out(z)[:, 0].cpu().double() for z in (x, others))
        except Exception:  # it may refuse scores of this size
            return None
    if not (whole.isfinite().all() and other.isfinite().all()):
        return None
    dtype = subject.out(x).dtype
    rounding = 1e-5 if dtype.itemsize >= 4 and x.dtype.itemsize >= 4 else 0.02
    change = (whole - other).abs().max().item()
    return change if change > rounding * whole.abs().max().item() else 0.0


@contextlib.contextmanager
def _larger(
    subject: Subject, queries: Iterable[tuple[Weight, float]], size: float
) -> Iterator[None]:
    """Multiply the layers of queries for a while, so that the lowest score of row 0 is -size."""
    with contextlib.ExitStack() as stack:
        for (weight, own_part), score in queries:
            for own, places in _with_bias(subject.function, weight, own_part):
                changed = _multiplied(own, places, -size / score)
                stack.enter_context(other_numbers([(own, changed)]))
        yield


def _with_bias(
    module: nn.Module, weight: nn.Parameter, own_part: Callable[[Tensor], Tensor]
) -> Iterator[tuple[nn.Parameter, Tensor]]:
    """A part of a weight and, if there is one, of the bias beside it: which of its numbers."""
    places = own_part(torch.arange(weight.numel(), device=weight.device).view(weight.shape))
    yield weight, places.flatten()
    for part in module.modules():
        for name, own in part.named_parameters(recurse=False):
            bias = getattr(part, name.replace("weight", "bias"), None)
            if own is not weight or bias is own or not isinstance(bias, nn.Parameter):
                continue
            by_row = isinstance(part, nn.Linear | nn.MultiheadAttention)
            if weight.dim() == 2 and len(bias) == weight.shape[0 if by_row else 1]:
                of_row, of_column = places // weight.shape[1], places % weight.shape[1]
                yield bias, (of_row if by_row else of_column).unique()
            return


def _multiplied(own: nn.Parameter, places: Tensor, factor: float) -> Tensor:
    """A parameter with some of its numbers multiplied."""
    changed = own.data.clone(memory_format=torch.contiguous_format)
    changed.view(-1)[places] *= factor
    return changed
