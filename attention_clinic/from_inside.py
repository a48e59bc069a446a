"""Steps of an examination that look into the module: its attentions, their heads, its blocks."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_leaves

from attention_base.known import Known
from attention_base.numbers import joined
from attention_base.same import ATOL, same, seed_all
from attention_clinic import probes
from attention_clinic.before import check_what_comes_before
from attention_clinic.blocks import (
    BlockInternals,
    check_parts,
    inspected_block,
    random_norms,
    with_own_names,
)
from attention_clinic.bugs import Named, of_parts
from attention_clinic.calls import Call, part_of
from attention_clinic.comparison import (
    Comparison,
    cannot_be_judged,
    compare_attention,
    compare_with_block,
)
from attention_clinic.from_outside import NOT_FINITE, ZERO_PROJECTION, mixes_no_tokens
from attention_clinic.heads import OF_A_SLICE, compare_heads, names_of_all, slices_read
from attention_clinic.heads import PROBE as HEADS
from attention_clinic.inline import NOT_REBUILT
from attention_clinic.inspection import (
    MORE_BEHIND,
    RESIDUAL_INSIDE,
    AttentionInternals,
    attention_of,
    parts_beside,
    within,
)
from attention_clinic.names import ROLE_NAMES, PartNames, own_head_count
from attention_clinic.probes import Finding
from attention_clinic.subject import Inside, Subject, look_inside
from attention_clinic.told import Told, found, not_checked, recognised, together
from attention_clinic.variants import rotated_in_vain

NO_WEIGHTS = "it shows no weights; return (out, weights) to show them"
TWO_RUNS_DIFFER = "two runs on the same input differ"
REFERENCE, RESIDUALS = "equals the reference", "residuals and norms"
FEW = (4, 16)  # sequences and tokens, on which what may explain a large example is tried first

# ---------------------------------------------------------------- the attentions


def compare_attentions(
    subject: Subject, inside: Inside, before: Told
) -> tuple[Told, dict[str, Comparison]]:
    """Compare each attention with the right formula, and with every known bug."""
    told, compared = Told(), {}
    few = functools.cache(lambda: _of_few_tokens(subject))
    for name, seen in inside.internals.items():
        why = cannot_be_judged(seen, subject.causal)
        if not why and not before.passed("same twice"):
            why = TWO_RUNS_DIFFER
        if why:
            told += not_checked(why, REFERENCE)
            continue
        try:
            one = compare_attention(
                seen,
                subject.causal,
                few=lambda name=name: few().get(name),
                try_heads=_may_try_heads(subject, seen, name),
                try_pairs=not any(other.unexplained for other in compared.values()),
            )
        except Exception as error:  # of an experiment of ours: the module itself has run
            told += not_checked(f"comparing it raised {type(error).__name__}", REFERENCE)
            continue
        compared[name] = one
        told_of_rotation = any(bug.startswith("rotary") for bug in one.bugs | one.variants)
        if (
            one.finding.ok
            and not told_of_rotation
            and rotated_in_vain(inside.attentions[name], seen.readings[0].q, one.n_head)
        ):
            told += recognised(*of_parts("rotary positions that cancel")[:2], name)
        told += _told_of_inputs(inside.attentions[name], seen, subject.causal, name)
        twice = RESIDUAL_INSIDE if within(name, inside.blocks) else ()  # is x added
        for bug, evidence in (one.bugs | one.variants).items():
            meant = bug in one.variants and bug not in twice
            if bug == MORE_BEHIND.name:
                told += Told(different={HEADS: MORE_BEHIND.message})
            else:
                told += recognised(bug, evidence, name, meant)
        if one.finding.ok or one.bugs:
            told += found(one.finding, where=name)
        elif one.unexplained:
            where = f" (In {name}.)" if name else ""
            told += Told(different={REFERENCE: f"{one.finding.evidence}{where}"})
    return told, compared


def _of_few_tokens(subject: Subject) -> dict[str, AttentionInternals]:
    """What the attentions compute of a part of a large example, where they take it."""
    part = subject.x[: FEW[0], : FEW[1]]
    if part.shape == subject.x.shape:
        return {}
    try:
        return look_inside(replace(subject, x=part)).internals
    except Exception:  # it may take no shorter text
        return {}


def _told_of_inputs(call: Call, seen: AttentionInternals, causal: bool, name: str) -> Told:
    """Whether what its layers read mixes later tokens, or sequences."""
    layer, kept = seen.another_input, []
    if layer is None:
        return Told()

    def read(z: Tensor) -> Tensor:
        hook = layer.register_forward_pre_hook(lambda _, args: kept.append(args[0]))
        try:
            call.with_input(z).run()
        finally:
            hook.remove()
        return kept.pop()

    told = Told()
    formulas = {
        "x minus its mean over the tokens": seen.x - seen.x.mean(1, keepdim=True),
        "x minus its mean over the batch": seen.x - seen.x.mean(0, keepdim=True),
        "x normed over tokens and channels": F.layer_norm(seen.x, seen.x.shape[1:]),
    }
    with torch.no_grad(), contextlib.suppress(TypeError, ValueError):  # folded in another way
        what = [words for words, z in formulas.items() if same(read(seen.x), z, ATOL)]
        names = f" It is {what[0]}." if what else ""
        if causal and not probes.no_leak(read, seen.x).ok:
            told = recognised(*of_parts("tokens mixed before the attention", names=names)[:2], name)
        elif len(seen.x) > 1 and not probes.sequences_stay_apart(read, seen.x).ok:
            bug = of_parts("sequences mixed before the attention", names=names)
            told = recognised(*bug[:2], name)
        elif mixes_no_tokens(probes.output_changes(read, seen.x, name)):
            told = together(recognised(*bug[:2], name) for bug in seen.different_inputs)
    return told


def _may_try_heads(subject: Subject, seen: AttentionInternals, name: str) -> bool:
    part = part_of(subject.function, name)
    return subject.try_heads and own_head_count(part) is None and seen.n_head == 1


def known_weights(
    inside: Inside, compared: Mapping[str, Comparison], shown: Tensor | None
) -> dict[str, Tensor]:
    """The weights of each attention where they are known: shown, or found by comparing."""
    if not inside.internals:
        return {} if shown is None else {"": shown}
    known = {}
    for name, one in compared.items():
        seen = inside.internals[name]
        weights = seen.weights
        if weights is None:  # where the numbers are right, the right weights are its weights
            weights = one.right if one.finding.ok else one.weights
        if weights is not None and weights.shape[-1] == seen.x.shape[1]:  # not across the batch
            known[name] = weights
    return known


def check_weights(
    subject: Subject,
    inside: Inside,
    compared: Mapping[str, Comparison],
    weights: Mapping[str, Tensor],
) -> Told:
    """Check that rows sum to 1, and that no weight is on the future."""
    told, sums, future = Told(), "rows sum to 1", "no weight on the future"
    if not weights or len(weights) < len(inside.internals):
        why = NO_WEIGHTS
        if inside.internals:
            why = "it shows no weights, and they cannot be told from its output"
        told += not_checked(why, sums, *([future] if subject.causal else []))
    for name, own in weights.items():
        computed_in = inside.internals[name].dtype if name in inside.internals else own.dtype
        full = own.dtype.itemsize >= 4 and computed_in.itemsize >= 4
        finding = probes.rows_sum_to_one(own, ATOL if full else 0.03)
        if not finding.ok and name in compared and compared[name].variants:
            told += Told(different={sums: finding.evidence})  # as of softmax1: no mistake
        else:
            told += found(finding, where=name)
        if subject.causal and own.isfinite().all():
            told += found(probes.no_weight_on_future(own), where=name)
        elif subject.causal:
            told += not_checked("there are weights that are nan", future)
    return told


def check_plain_tensors(subject: Subject) -> Told:
    """Told only where it fails: matrices that are no parameters.

    Those of the usual names; others where they require a gradient, and are not kept from a call.
    """
    for name, part in subject.function.named_modules() if subject.is_module else ():
        own = [(key, z) for key, one in vars(part).items() for z in tree_leaves(one)]
        own = [(key, z) for key, z in own if type(z) is Tensor and z.dim() > 1]
        found = {key for key, z in own if z.requires_grad and z.is_leaf}
        flat = {key for key, z in own if z.dim() == 2}
        found |= {key for names in ROLE_NAMES if flat.issuperset(names) for key in names}
        if found:
            names = joined([key for key in vars(part) if key in found])
            return recognised(*of_parts("plain tensors", names=names)[:2], name)
    return Told()


def check_inputs(subject: Subject, inside: Inside) -> Told:
    """Told only where it fails: an attention or a block that reads something else than x."""
    if not subject.is_module:
        return Told()
    alone = {n: one for n, one in inside.attentions.items() if not within(n, inside.blocks)}
    others = parts_beside(subject.function, inside.attentions, inside.blocks)
    matrices = [
        p for part in others.values() for p in part.parameters(recurse=False) if p.dim() > 1
    ]
    seed_all(0)
    try:
        with torch.no_grad():
            return check_what_comes_before(subject.call(), alone | inside.blocks, not matrices)
    except Exception:  # of an experiment of ours: the module itself has run
        return Told()


# ---------------------------------------------------------------- several heads


def check_what_heads_read(subject: Subject, inside: Inside) -> Told:
    """Told only where it fails: a head of a list that reads some of the channels."""
    lists: dict[str, list[str]] = {}
    for name in inside.attentions:
        lists.setdefault(name.rpartition(".")[0], []).append(name)
    told = Told()
    for where, names in lists.items():
        seed_all(0)
        with torch.no_grad():
            evidence = slices_read(subject.call(), names)
        told += recognised(OF_A_SLICE, evidence, where) if evidence else Told()
        n = len(names_of_all(subject.function, names))
        if n > len(names):
            told += recognised(*of_parts("one head several times", n=n)[:2], where)
    return told


def check_heads(
    subject: Subject,
    inside: Inside,
    compared: Mapping[str, Comparison],
    out: Tensor,
    before: Told,
) -> Told:
    """Compare what the module makes of the attentions in it, where there is no block."""
    names = list(inside.attentions)
    names = names_of_all(subject.function, names) if subject.is_module else names
    if not names or "" in names or inside.blocks or RESIDUALS in before.not_checked:
        return Told()
    for why, holds in (
        (NOT_FINITE, not out.isfinite().all()),
        (TWO_RUNS_DIFFER, not before.passed("same twice")),
        (ZERO_PROJECTION, inside.zero_projection),
    ):
        if holds:
            return not_checked(why, HEADS)
    projection = next(iter(parts_beside(subject.function, names, ())), "")
    seed_all(0)
    try:
        with torch.no_grad():
            rebuilt = compare_heads(subject.call(), names, projection)
    except Exception as error:  # parts that are called in other ways than ours
        return not_checked(f"its parts cannot be called one by one: {error}", HEADS)
    if rebuilt is None:
        return Told()
    told = together(
        recognised(bug, evidence, meant=rebuilt.meant) for bug, evidence in rebuilt.bugs.items()
    )
    if rebuilt.finding.ok or (rebuilt.bugs and not rebuilt.meant):
        return told + found(rebuilt.finding)
    if rebuilt.bugs:
        return told
    right = [one.finding.ok for one in compared.values()]
    heads = "each head is right, but " if len(right) > 1 else "the attention is right, but "
    heads = heads if right and all(right) else ""
    return told + Told(different={HEADS: heads + rebuilt.finding.evidence})


# ---------------------------------------------------------------- blocks


def check_residuals_and_norms(
    subject: Subject, inside: Inside, compared: Mapping[str, Comparison], before: Told
) -> Told:
    """Compare each block with one of the same parts, put together rightly and wrongly."""
    told = Told()
    for name, call in inside.blocks.items():
        if not before.passed("same twice"):
            told += not_checked(TWO_RUNS_DIFFER, RESIDUALS)
        elif call is None:
            told += not_checked(f"{name or 'the block'} was not called", RESIDUALS)
        else:
            names = inside.block_parts[name]
            ended = _compare(call, names, subject.causal)
            told += _block_told(name, names, ended, several=len(inside.blocks) > 1)
    for name, seen in inside.internals.items():
        if seen.block:
            ended = _compare_inline(subject, name, inside, compared)
            told += _block_told(name, ("", "", *_names_of(seen.block.norms)), ended, several=False)
    return told


Compared = tuple[Finding, tuple[Known | Named, ...]] | str  # or why that cannot be done


def _compare(call: Call, names: PartNames, causal: bool) -> Compared:
    seed_all(0)
    try:
        with torch.no_grad(), inspected_block(call, names, causal) as block:
            return block if isinstance(block, str) else compare_with_block(block)
    except Exception as error:  # parts that are called in other ways than ours
        return f"its parts cannot be called one by one: {error}"


def _compare_inline(
    subject: Subject, name: str, inside: Inside, compared: Mapping[str, Comparison]
) -> Compared:
    """The same for a block that is written in one class, if its attention is right."""
    seen, call, one = inside.internals[name], inside.attentions[name], compared.get(name)
    if not one or not one.finding.ok or one.bugs:
        return "they are compared only where the attention is right"
    if not seen.block.feed_forward:
        return f"the attention is right; {NOT_REBUILT}"
    seed_all(0)
    try:
        with torch.no_grad(), random_norms(call.module, ("", "", *_names_of(seen.block.norms))):
            norms = [
                part_of(call.module, one) if isinstance(one, str) else one
                for one in seen.block.norms
            ]
            attention = attention_of(call.module, seen, one.right, subject.causal)
            parts = (attention, seen.block.feed_forward, *norms)
            return compare_with_block(BlockInternals(call.input, call.run()[0], parts))
    except Exception as error:  # layers that are called in other ways than ours
        return f"the attention is right; {NOT_REBUILT} ({error})"


def _names_of(norms: Iterable) -> Iterator[str]:
    """Names of norms; "" for those written in a forward."""
    return (one if isinstance(one, str) else "" for one in norms)


def _block_told(name: str, names: tuple[str, ...], ended: Compared, several: bool) -> Told:
    if isinstance(ended, str):
        return not_checked(ended.rstrip("."), RESIDUALS)
    finding, bugs = ended
    meant = bool(bugs) and all(bug.meant for bug in bugs)
    evidence = "a block of the same parts with this bug gives the same numbers."
    if meant:
        evidence = "a block of the same parts put together like this gives the same numbers."
    told = together(
        recognised(bug.name, f"{evidence} {with_own_names(bug.message, names)}", name, bug.meant)
        for bug in bugs
    )
    if finding.ok or (bugs and not meant):
        return told + found(finding, where=name)
    if bugs:
        return told
    where = f" (In {name}.)" if name and several else ""
    return told + Told(different={RESIDUALS: finding.evidence + where})


def check_parts_of_blocks(inside: Inside, before: Told) -> Told:
    """Told only where it fails: what is wrong inside of a feed-forward or a norm."""
    told = Told()
    parallel = [bug.where for bug in before.bugs if bug.meant and bug.name.startswith("parallel")]
    for name, call in inside.blocks.items():
        if call is None or call.input is None:
            continue
        try:
            with torch.no_grad():
                bugs = check_parts(call, inside.block_parts[name])
        except Exception:  # told by the comparison with a block
            continue
        if name in parallel:  # two branches that read the same need no norm each
            bugs.pop("one norm for both", None)
        for bug, (evidence, part) in bugs.items():
            told += recognised(bug, evidence, f"{name}.{part}" if name else part)
    return told
