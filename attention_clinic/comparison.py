"""Compares an attention or a block with the right one, and with every known bug.

The output of an attention is compared with what the right formula gives for its queries, keys and
values, then with what each known bug gives, and each two bugs together. A block is compared with
one that is rebuilt from its parts, correctly and with each known bug.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from attention_base.known import Known
from attention_base.masks import causal_mask
from attention_base.numbers import small
from attention_base.same import ATOL, close, same, same_but_for_rounding, tolerance
from attention_clinic.blocks import BlockInternals, Function, remembering
from attention_clinic.bugs import (
    MIX_SEQUENCES,
    VARIANTS,
    Named,
    OutAndWeights,
    bugs_for,
    of_parts,
    window,
    with_bugs,
)
from attention_clinic.fitted import explain, with_learned_keys
from attention_clinic.inspection import GATED, MORE_KEYS, AttentionInternals, Ending
from attention_clinic.probes import REFERENCE, RESIDUALS, Finding, matches_reference
from attention_clinic.readings import Reading
from attention_clinic.variants import QK_NORM, ROPE, changed_readings
from attention_clinic.wiring import block_output, wiring_bugs_and_pairs

Way = tuple[Reading, Ending]
Ways = list[Way]

LARGEST_WINDOW = 64  # that is tried
OWN_SCALE = "another scale of normed queries and keys"
SCALES = ("no scale", "divided by head_size, not √head_size", "divided by √n_head", "divided by √C")
FOUND = "found from its weights, which follow from its outputs and values."

# ---------------------------------------------------------------- comparing an attention


@dataclass(frozen=True)
class Comparison:
    """What comparing an attention with the right formula, and with the bugs, has shown."""

    finding: Finding  # whether the numbers are those of the right formula
    right: Tensor  # the right weights (B, n_head, T, T)
    # With these the numbers are the same: name -> evidence.
    bugs: dict[str, str] = field(default_factory=dict)
    variants: dict[str, str] = field(default_factory=dict)  # which some models have on purpose
    weights: Tensor | None = None  # the weights with these, if known
    n_head: int = 1  # the number of heads with which the numbers are the same

    @property
    def unexplained(self) -> bool:
        """Whether neither the right formula nor any bug or variant gives the numbers."""
        return not self.finding.ok and not self.bugs and not self.variants


def compare_attention(
    seen: AttentionInternals,
    causal: bool,
    *,
    few: Callable[[], AttentionInternals | None] = lambda: None,
    try_heads: bool = False,
    try_pairs: bool = True,
) -> Comparison:
    """Compare an attention with the right formula, then with every known variant and bug.

    `few` gives what it computed of a few tokens, or None: what nothing explains there is not
    compared any further, since each of the many comparisons takes far longer with all tokens. With
    `try_heads` its number of heads is not known for sure, and others are tried, too. `try_pairs`
    means each two bugs together, which takes most of the time.
    """
    seen = _in_full_precision(seen)
    ways = list(itertools.product(seen.readings, seen.endings))
    plain = [(reading, ending) for reading, ending in ways if not (reading.bugs or ending.bugs)]
    others = _with_other_heads(seen) if try_heads else []
    for own in (seen, *others):
        if found := _explained(own, ways if own is seen else plain, causal):
            return found
    of_few, again = few(), {"try_heads": try_heads, "try_pairs": try_pairs}
    in_vain = of_few is not None and compare_attention(of_few, causal, **again).unexplained
    try_pairs &= bool(ways[0][1].out.any())  # some two bugs together give zeros
    if not in_vain and (found := _recognise_any(seen, ways, others, causal, try_pairs)):
        return found
    reading, ending = ways[0]
    out, right = _right(seen, reading, causal)
    meant = {bug.name: bug.message for bug in reading.bugs if bug.name == MORE_KEYS.name}
    finding = _difference_from_right(seen, ending, out)
    return Comparison(finding, right, {}, meant, None, seen.n_head)


def _recognise_any(
    seen: AttentionInternals,
    ways: Ways,
    others: list[AttentionInternals],
    causal: bool,
    try_pairs: bool,
) -> Comparison | None:
    """Find other queries and keys, known bugs, or another number of heads that give the numbers."""
    first, *more = seen.readings  # heads of keys may be repeated in another order
    plain = [first, *(one for one in more if one.is_right and same(one.q, first.q))]
    split = [one for one in more if one.is_right and not same(one.q, first.q)]  # a fused layer's
    for readings, likely in ((plain, False), (split, True)):
        changed = (
            new
            for one in readings
            for new in changed_readings(one, seen.n_head, seen.module, likely=likely)
        )
        if found := _explained(seen, itertools.product(changed, seen.endings), causal):
            return found
    likely = changed_readings(first, seen.n_head, seen.module, likely=True)
    changed = [*itertools.product(likely, _likeliest(seen.endings))]
    if found := _recognise(seen, ways, changed, causal, try_pairs):
        return found
    for other in others:
        if found := _recognise(other, ways[:2], [], causal, False):
            return found
    return None


def _likeliest(endings: Sequence[Ending]) -> list[Ending]:
    """The first one, and those with a gate, which stand behind it."""
    return [one for one in endings if one is endings[0] or GATED in one.bugs]


def _with_other_heads(seen: AttentionInternals) -> list[AttentionInternals]:
    """The same with each other number of heads that there may be."""
    channels = math.gcd(seen.readings[0].q.shape[-1], seen.readings[0].v.shape[-1])
    counts = (n for n in range(1, channels // 2 + 1) if channels % n == 0 and n != seen.n_head)
    return [replace(seen, n_head=n) for n in counts]


def _explained(seen: AttentionInternals, ways: Iterable[Way], causal: bool) -> Comparison | None:
    """The numbers are the right ones, of one of these readings and endings, which may have bugs."""
    for reading, ending in ways:
        out, right = _right(seen, reading, causal)
        if not _gives_the_same(seen, ending, out, right):
            continue
        within = tolerance(ending.out, seen.dtype)
        on_average = "" if seen.dtype.itemsize >= 4 else "on average "
        evidence = f"outputs: all {ending.out.numel()} numbers {on_average}within {within:.0e}."
        if seen.weights is not None:
            atol = weights_tolerance(seen.dtype)
            evidence += f" Weights: all {seen.weights.numel()} numbers within {atol:.0e}."
        told = _told((*reading.bugs, *ending.bugs), "with this the numbers are the same.")
        return Comparison(Finding(REFERENCE, True, evidence), right, *told, right, seen.n_head)
    return None


def _told(found: Sequence[Named | Known], same: str) -> tuple[dict[str, str], dict[str, str]]:
    """What is told of the bugs among these, and of the variants: name -> evidence."""
    told: tuple[dict[str, str], dict[str, str]] = {}, {}
    normed = QK_NORM in found  # then scores are small, whatever they are divided by
    for one in found:
        bug = of_parts(OWN_SCALE, names=one.name) if normed and one.name in SCALES else one
        told[bug.meant][bug.name] = f"{same} {bug.message}"
    return told


def _right(seen: AttentionInternals, reading: Reading, causal: bool) -> OutAndWeights:
    return _computed(seen, reading, with_bugs(causal=causal))


def _computed(
    seen: AttentionInternals, reading: Reading, attention: Callable[..., OutAndWeights]
) -> OutAndWeights:
    return attention(reading.q, reading.k, reading.v, seen.x, seen.n_head)


def _difference_from_right(seen: AttentionInternals, ending: Ending, out: Tensor) -> Finding:
    out = ending.project(out)
    if ending.out.shape != out.shape:
        evidence = f"out {tuple(ending.out.shape)}; the formula makes {tuple(out.shape)} of its "
        evidence += "queries, keys and values."
    elif (finding := matches_reference(ending.out, out, tolerance(out, seen.dtype))).ok:
        evidence = "the outputs are right, but the weights that it shows are not."
    else:
        evidence = f"outputs: {finding.evidence}"
    return Finding(REFERENCE, False, evidence)


def cannot_be_judged(seen: AttentionInternals, causal: bool) -> str:
    """Why this input shows nothing about the scores; empty when it does."""
    seen = _in_full_precision(seen)
    reading = seen.readings[0]
    if seen.x.shape[1] == 1:
        return "with a single token every weight is 1, whatever the scores are"
    zero = replace(reading, q=reading.q * 0)
    out, plain = (_right(seen, one, causal)[0] for one in (reading, zero))
    if same_but_for_rounding(out, plain, seen.dtype):
        return "on this input all weights of a row are equal, whatever the scores are"
    return ""


# ---------------------------------------------------------------- known bugs


def _recognise(
    seen: AttentionInternals, ways: Ways, changed: Ways, causal: bool, try_pairs: bool
) -> Comparison | None:
    """Find the bug, the variant, or two of them, that give the same numbers."""
    windows = range(2, min(seen.x.shape[1], LARGEST_WINDOW)) if causal else ()
    bugs = bugs_for(seen.n_head, causal)
    singles = [(one,) for one in (*VARIANTS, *map(window, windows), *bugs)]
    clean, wrong = [], []
    for way in ways:
        (clean if all(bug.meant for one in way for bug in one.bugs) else wrong).append(way)
    for way in (*clean, *changed, *wrong):
        if found := _find(seen, way, causal, singles):
            return found
    fitted = ((explain, FOUND), (with_learned_keys, "with this the numbers are the same."))
    # In multi-head latent attention, positions belong to a reading, and are one of several kinds.
    likely = [one for i, one in enumerate(clean[:20]) if i < 2 or ROPE in one[0].bugs]
    for (how, with_this), way in itertools.product(fitted, (*likely, *changed)):
        reading, ending = way
        if found := how(seen, reading, ending, causal):
            named, weights = found
            out, right = _right(seen, reading, causal)
            finding = _difference_from_right(seen, ending, out)
            told = _told((*named, *reading.bugs, *ending.bugs), with_this)
            right = right if weights is None or not all(bug.meant for bug in named) else weights
            return Comparison(finding, right, *told, weights, seen.n_head)
    pairs = itertools.combinations([*VARIANTS, *bugs], 2)
    found = (_find(seen, way, causal, pairs) for way in ways[: len(_likeliest(seen.endings))])
    return next(filter(None, found), None) if try_pairs else None


def _find(
    seen: AttentionInternals, way: Way, causal: bool, tried: Iterable[tuple[Known, ...]]
) -> Comparison | None:
    """Find the first of these bugs with which this reading gives the numbers that were seen.

    Most bugs are ruled out by the first sequence alone.
    """
    (reading, ending), first = way, slice(0, 1)
    q, k, v = (z[first] for z in (reading.q, reading.k, reading.v))
    weights = None if seen.weights is None else seen.weights[first]
    small_seen = replace(seen, weights=weights, x=seen.x[first])
    small_reading = replace(reading, q=q, k=k, v=v)
    small_ending = replace(ending, out=ending.out[first])
    for bugs in tried:
        attention = with_bugs(*bugs, causal=causal)
        if attention is None:
            continue
        try:
            if MIX_SEQUENCES.isdisjoint(bug.name for bug in bugs):
                alone = _computed(small_seen, small_reading, attention)
                if not _gives_the_same(small_seen, small_ending, *alone):
                    continue
            result = _computed(seen, reading, attention)
        except RuntimeError:  # with these sizes there can be no such bug
            continue
        if _gives_the_same(seen, ending, *result):
            return _comparison(seen, way, causal, bugs, result)
    return None


def _comparison(
    seen: AttentionInternals, way: Way, causal: bool, bugs: tuple[Known, ...], result: OutAndWeights
) -> Comparison:
    """What is told of bugs and variants that were found."""
    reading, ending = way
    named = [seen.own_words.get(bug.name, bug) for bug in bugs]
    named += [*reading.bugs, *ending.bugs]
    without_bugs = with_bugs(*(bug for bug in bugs if bug.meant), causal=causal)
    own = reading if reading.is_right else seen.readings[0]
    out, right = _computed(seen, own, without_bugs)
    count = sum(not one.meant for one in named)
    these = "this bug" if count == 1 else "these bugs together"
    same = f"attention with {these} gives the same numbers as your module; "
    same += f"{_difference(result, (out, right))}."
    told = _told(named, same)[0], _told(named, "with this the numbers are the same.")[1]
    finding = _difference_from_right(seen, ending, out)
    return Comparison(finding, right, *told, result[1], seen.n_head)


def _gives_the_same(seen: AttentionInternals, ending: Ending, out: Tensor, weights: Tensor) -> bool:
    """Tell whether the module gave this output and, if it showed any, these weights."""
    try:
        out = ending.project(out)
    except RuntimeError:  # the sizes do not fit
        return False
    if not same_but_for_rounding(ending.out, out, seen.dtype):
        return False
    atol = weights_tolerance(seen.dtype)
    return seen.weights is None or same_weights(seen.weights, weights, atol)


def _difference(found: OutAndWeights, right: OutAndWeights) -> str:
    """How much the weights differ from the right ones; the outputs, where the weights are right."""
    for what, a, b in zip(("weights", "outputs"), found[::-1], right[::-1], strict=True):
        if a.shape != b.shape:
            return f"yours are {what} {tuple(a.shape)}, the right ones {tuple(b.shape)}"
        difference = (a - b).abs()
        if not difference.isfinite().all():
            count = int((~difference.isfinite()).sum())
            return f"{count} of its {difference.numel()} {what} are nan or inf"
        if difference.max() > ATOL:
            return f"the right {what} differ from yours by up to {small(difference.max().item())}"
    return "the right weights and outputs are nearly the same"


# ---------------------------------------------------------------- rounding


def _in_full_precision(seen: AttentionInternals) -> AttentionInternals:
    """float16 and bfloat16 as float32, in which the formulas are computed."""
    if seen.dtype.itemsize >= 4:
        return seen

    def full(reading: Reading) -> Reading:
        return replace(reading, q=reading.q.float(), k=reading.k.float(), v=reading.v.float())

    def in_full(one: Ending) -> Ending:
        return replace(
            one, out=one.out.float(), project=lambda z: one.project(z.to(seen.dtype)).float()
        )

    return replace(
        seen,
        x=seen.x.float(),
        readings=tuple(map(full, seen.readings)),
        endings=tuple(map(in_full, seen.endings)),
        weights=None if seen.weights is None else seen.weights.float(),
    )


def weights_tolerance(dtype: torch.dtype) -> float:
    """How far rounding may take weights that were computed in this type."""
    return max(ATOL, 4 * torch.finfo(dtype).eps)


def same_weights(given: Tensor, weights: Tensor, atol: float = ATOL) -> bool:
    """Tell whether the weights that a module showed are these, (B, n_head, T, T)."""
    return same(given, in_form_of(given, weights), atol)


def in_form_of(given: Tensor, weights: Tensor) -> Tensor:
    """Weights (B, n_head, T, T); their mean over the heads, if the given ones have no heads."""
    return weights.mean(1) if given.dim() == 3 else weights


def wrong_weights(weights: Tensor, right: Tensor | None, causal: bool) -> Tensor:
    """Which weights are wrong: not the right ones or, where these are not known, impossible."""
    atol = weights_tolerance(weights.dtype)
    if right is not None and (expected := in_form_of(weights, right)).shape == weights.shape:
        return ~close(weights, expected, atol)
    sums = weights.sum(-1, keepdim=True)
    wrong = ~close(sums, torch.ones_like(sums), atol).expand_as(weights)
    if causal:
        future = ~causal_mask(weights.shape[-1]).to(weights.device)
        wrong = torch.where(future, weights != 0, wrong)
    return wrong


# ---------------------------------------------------------------- comparing a block


def compare_with_block(block: BlockInternals) -> tuple[Finding, tuple[Known | Named, ...]]:
    """Compare with blocks of the same parts: pre-norm, post-norm, and with every known bug."""
    name, out = RESIDUALS, block.out
    right = _right_blocks(block, block.parts)
    for norm_place, expected in right.items():
        if same_but_for_rounding(out, expected, out.dtype):
            evidence = f"those of a {norm_place}-norm block: rebuilt from its parts, it gives the "
            evidence += f"same {out.numel()} numbers, within {tolerance(out):.0e}."
            return Finding(name, True, evidence), ()
    expected = right["pre"]
    if out.shape != expected.shape:
        evidence = f"it gives {tuple(out.shape)}; rebuilt from its parts, {tuple(expected.shape)}."
        return Finding(name, False, evidence), ()
    bugs = (_variant_of_block(block) or _recognise_wiring(block)) if out.any() else ()
    pre, post = (small((out - z).abs().max().item()) for z in right.values())
    evidence = f"rebuilt from its parts, a pre-norm block differs by up to {pre}, a post-norm "
    evidence += f"block by up to {post}"
    evidence += "." if bugs else "; with none of the known bugs are the numbers the same."
    return Finding(name, False, evidence), bugs


def _right_blocks(block: BlockInternals, parts: tuple[Function, ...]) -> dict[str, Tensor]:
    return {one: block_output(block.x, *parts, norm_place=one) for one in ("pre", "post")}


def _variant_of_block(block: BlockInternals) -> tuple[Named, ...]:
    for named, parts in block.variants():
        right = _right_blocks(block, parts).values()
        if any(same_but_for_rounding(block.out, one, block.out.dtype) for one in right):
            return (named,)
    return ()


def _recognise_wiring(block: BlockInternals) -> tuple[Known, ...]:
    """The bug, or two, with which the parts give the same numbers; most fail on a few tokens."""
    few = block.of_few()
    first = remembering(few.parts)
    for bugs, arguments in wiring_bugs_and_pairs():
        alone = block_output(few.x, *first, **arguments)
        if same_but_for_rounding(few.out, alone, block.out.dtype) and same_but_for_rounding(
            block.out, block_output(block.x, *block.parts, **arguments), block.out.dtype
        ):
            return bugs
    return ()
