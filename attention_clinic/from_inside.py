"""Steps of an examination that look into the module: its attentions, their heads, its blocks."""

from __future__ import annotations

import contextlib
import functools
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
from attention_clinic.calls import Call, part_of, recorded
from attention_clinic.comparison import cannot_be_judged, compare_attention, compare_with_block
from attention_clinic.examination import Examination
from attention_clinic.from_outside import NOT_FINITE, ZERO_PROJECTION
from attention_clinic.heads import OF_A_SLICE, compare_heads, names_of_all, slices_read
from attention_clinic.inline import NOT_REBUILT
from attention_clinic.inspection import (
    MORE_BEHIND,
    RESIDUAL_INSIDE,
    AttentionInternals,
    attention_of,
    parts_beside,
)
from attention_clinic.names import ROLE_NAMES, PartNames, own_head_count, within
from attention_clinic.probes import HEADS, REFERENCE, RESIDUALS, Finding
from attention_clinic.results import Results, found, named, not_checked, recognised, together
from attention_clinic.subject import Subject, find_parts
from attention_clinic.variants import rotated_in_vain

NO_WEIGHTS = "it shows no weights; return (out, weights) to show them"
TWO_RUNS_DIFFER = "two runs on the same input differ"
FEW = (4, 16)  # sequences and tokens, on which what may explain a large example is tried first

# ---------------------------------------------------------------- the attentions


def look_inside(exam: Examination) -> Results:
    """Find the attentions and blocks, and what the attentions compute."""
    exam.parts = find_parts(exam.subject)
    if "" in exam.parts.internals and exam.parts.internals[""].weights is None:
        exam.shown = None  # what was returned beside the output are no weights
    return exam.parts.results


def compare_attentions(exam: Examination) -> Results:
    """Compare each attention with the right formula, and with every known bug."""
    subject, parts = exam.subject, exam.parts
    results, compared = Results(), exam.compared
    few = functools.cache(lambda: _of_few_tokens(subject))
    for name, seen in parts.internals.items():
        why = cannot_be_judged(seen, subject.causal)
        if not why and not exam.results.passed("same twice"):
            why = TWO_RUNS_DIFFER
        if why:
            results += not_checked(why, REFERENCE)
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
            results += not_checked(f"comparing it raised {type(error).__name__}", REFERENCE)
            continue
        compared[name] = one
        rotates = any(bug.startswith("rotary") for bug in one.bugs | one.variants)
        call, q = parts.attentions[name], seen.readings[0].q
        if one.finding.ok and not rotates and rotated_in_vain(call, q, one.n_head):
            results += named(of_parts("rotary positions that cancel"), name)
        results += _check_what_is_read(call, seen, subject.causal, name)
        twice = RESIDUAL_INSIDE if within(name, parts.blocks) else ()  # is x added
        for bug, evidence in (one.bugs | one.variants).items():
            meant = bug in one.variants and bug not in twice
            if bug == MORE_BEHIND.name:
                results += Results(different={HEADS: MORE_BEHIND.message})
            else:
                results += recognised(bug, evidence, name, meant)
        if one.finding.ok or one.bugs:
            results += found(one.finding, where=name)
        elif one.unexplained:
            where = f" (In {name}.)" if name else ""
            results += Results(different={REFERENCE: f"{one.finding.evidence}{where}"})
    return results


def _of_few_tokens(subject: Subject) -> dict[str, AttentionInternals]:
    """What the attentions compute of a part of a large example, where they take it."""
    part = subject.x[: FEW[0], : FEW[1]]
    if part.shape == subject.x.shape:
        return {}
    try:
        return find_parts(replace(subject, x=part)).internals
    except Exception:  # it may take no shorter text
        return {}


def _check_what_is_read(call: Call, seen: AttentionInternals, causal: bool, name: str) -> Results:
    """Whether what its layers read mixes later tokens, or sequences."""
    layer = seen.another_input
    if layer is None:
        return Results()

    def read(z: Tensor) -> Tensor:
        return recorded(call.with_input(z).run, {"": layer})[1][-1].call.input

    results = Results()
    formulas = {
        "x minus its mean over the tokens": seen.x - seen.x.mean(1, keepdim=True),
        "x minus its mean over the batch": seen.x - seen.x.mean(0, keepdim=True),
        "x normed over tokens and channels": F.layer_norm(seen.x, seen.x.shape[1:]),
    }
    with torch.no_grad(), contextlib.suppress(TypeError, ValueError):  # folded in another way
        what = [words for words, z in formulas.items() if same(read(seen.x), z, ATOL)]
        names = f" It is {what[0]}." if what else ""
        narrow = read(seen.x).shape[-1] < seen.x.shape[-1]  # the vector of latent attention
        if (causal or narrow) and not probes.no_leak(read, seen.x).ok:
            results = named(of_parts("tokens mixed before the attention", names=names), name)
        elif len(seen.x) > 1 and not probes.sequences_stay_apart(read, seen.x).ok:
            bug = of_parts("sequences mixed before the attention", names=names)
            results = named(bug, name)
        elif probes.mixes_no_tokens(probes.output_changes(read, seen.x, name)):
            results = together(named(bug, name) for bug in seen.different_inputs)
    return results


def _may_try_heads(subject: Subject, seen: AttentionInternals, name: str) -> bool:
    part = part_of(subject.function, name)
    return subject.try_heads and own_head_count(part) is None and seen.n_head == 1


def check_weights(exam: Examination) -> Results:
    """Check that rows sum to 1, and that no weight is on the future."""
    subject, weights, internals = exam.subject, exam.weights, exam.parts.internals
    results, sums, future = Results(), "rows sum to 1", "no weight on the future"
    if not weights or len(weights) < len(internals):
        why = NO_WEIGHTS
        if internals:
            why = "it shows no weights, and they cannot be told from its output"
        results += not_checked(why, sums, *([future] if subject.causal else []))
    for name, own in weights.items():
        computed_in = internals[name].dtype if name in internals else own.dtype
        full = own.dtype.itemsize >= 4 and computed_in.itemsize >= 4
        finding = probes.rows_sum_to_one(own, ATOL if full else 0.03)
        if not finding.ok and name in exam.compared and exam.compared[name].variants:
            results += Results(different={sums: finding.evidence})  # as of softmax1: no mistake
        else:
            results += found(finding, where=name)
        if subject.causal and own.isfinite().all():
            results += found(probes.no_weight_on_future(own), where=name)
        elif subject.causal:
            results += not_checked("there are weights that are nan", future)
    return results


def check_plain_tensors(exam: Examination) -> Results:
    """Told only where it fails: matrices that are no parameters.

    Those of the usual names, those that require a gradient, and all where no layers are seen.
    """
    module, unseen = exam.subject.function, not exam.parts.attentions
    for name, part in module.named_modules() if exam.subject.is_module else ():
        own = [(key, z) for key, one in vars(part).items() for z in tree_leaves(one)]
        own = [(key, z) for key, z in own if type(z) is Tensor and z.dim() > 1 and z.is_leaf]
        flat = {key: z for key, z in own if z.dim() == 2 and not z.is_complex()}  # as of rotations
        bare = {key for key, z in flat.items() if len(z.unique()) > 3}  # a mask has few numbers
        found = {key for key, z in own if z.requires_grad or (unseen and key in bare)}
        found |= {key for names in ROLE_NAMES if flat.keys() >= {*names} for key in names}
        if found:
            names = joined([key for key in vars(part) if key in found])
            return named(of_parts("plain tensors", names=names), name)
    return Results()


def check_inputs(exam: Examination) -> Results:
    """Told only where it fails: an attention or a block that reads something else than x."""
    subject, parts = exam.subject, exam.parts
    if not subject.is_module:
        return Results()
    alone = {n: one for n, one in parts.attentions.items() if not within(n, parts.blocks)}
    others = parts_beside(subject.function, parts.attentions, parts.blocks)
    beside = (own for part in others.values() for own in part.parameters(recurse=False))
    known = all(own.dim() < 2 for own in beside)
    seed_all()
    with torch.no_grad():
        return check_what_comes_before(subject.call(), alone | parts.blocks, known)


# ---------------------------------------------------------------- several heads


def check_what_heads_read(exam: Examination) -> Results:
    """Told only where it fails: a head of a list that reads some of the channels."""
    subject = exam.subject
    lists: dict[str, list[str]] = {}
    for name in exam.parts.attentions:
        lists.setdefault(name.rpartition(".")[0], []).append(name)
    results = Results()
    for where, names in lists.items():
        seed_all()
        with torch.no_grad():
            evidence = slices_read(subject.call(), names)
        results += recognised(OF_A_SLICE, evidence, where) if evidence else Results()
        n = len(names_of_all(subject.function, names))
        if n > len(names):
            results += named(of_parts("one head several times", n=n), where)
    return results


def check_heads(exam: Examination) -> Results:
    """Compare what the module makes of the attentions in it, where there is no block."""
    subject, parts, before = exam.subject, exam.parts, exam.results
    names = list(parts.attentions)
    names = names_of_all(subject.function, names) if subject.is_module else names
    if not names or "" in names or parts.blocks or RESIDUALS in before.not_checked:
        return Results()
    for why, holds in (
        (NOT_FINITE, not exam.out.isfinite().all()),
        (TWO_RUNS_DIFFER, not before.passed("same twice")),
        (ZERO_PROJECTION, parts.zero_projection),
    ):
        if holds:
            return not_checked(why, HEADS)
    projection = next(iter(parts_beside(subject.function, names, ())), "")
    seed_all()
    try:
        with torch.no_grad():
            rebuilt = compare_heads(subject.call(), names, projection)
    except Exception as error:  # parts that are called in other ways than ours
        return not_checked(f"its parts cannot be called one by one: {error}", HEADS)
    if rebuilt is None:
        return Results()
    results = together(
        recognised(bug, evidence, meant=rebuilt.meant) for bug, evidence in rebuilt.bugs.items()
    )
    if rebuilt.finding.ok or (rebuilt.bugs and not rebuilt.meant):
        return results + found(rebuilt.finding)
    if rebuilt.bugs:
        return results
    right = [one.finding.ok for one in exam.compared.values()]
    heads = "each head is right, but " if len(right) > 1 else "the attention is right, but "
    heads = heads if right and all(right) else ""
    return results + Results(different={HEADS: heads + rebuilt.finding.evidence})


# ---------------------------------------------------------------- blocks


def check_residuals_and_norms(exam: Examination) -> Results:
    """Compare each block with one of the same parts, put together rightly and wrongly."""
    subject, parts = exam.subject, exam.parts
    results = Results()
    for name, call in parts.blocks.items():
        if not exam.results.passed("same twice"):
            results += not_checked(TWO_RUNS_DIFFER, RESIDUALS)
        elif call is None:
            results += not_checked(f"{name or 'the block'} was not called", RESIDUALS)
        else:
            names = parts.block_parts[name]
            ended = _compare(call, names, subject.causal)
            results += _of_block(name, names, ended, several=len(parts.blocks) > 1)
    for name, seen in parts.internals.items():
        if seen.block:
            ended = _compare_inline(exam, name)
            results += _of_block(name, ("", "", *seen.block.norms), ended, several=False)
    return results


Compared = tuple[Finding, tuple[Known | Named, ...]] | str  # or why that cannot be done


def _compare(call: Call, names: PartNames, causal: bool) -> Compared:
    seed_all()
    try:
        with torch.no_grad(), inspected_block(call, names, causal) as block:
            return block if isinstance(block, str) else compare_with_block(block)
    except Exception as error:  # parts that are called in other ways than ours
        return f"its parts cannot be called one by one: {error}"


def _compare_inline(exam: Examination, name: str) -> Compared:
    """The same for a block that is written in one class, if its attention is right."""
    seen, call = exam.parts.internals[name], exam.parts.attentions[name]
    one = exam.compared.get(name)
    if not one or not one.finding.ok or one.bugs:
        return "they are compared only where the attention is right"
    if not seen.block.feed_forward:
        return f"the attention is right; {NOT_REBUILT}"
    seed_all()
    try:
        with torch.no_grad(), random_norms(call.module, ("", "", *seen.block.norms)):
            names, plain = seen.block.norms, seen.block.plain_norm
            norms = [part_of(call.module, name) if name else plain for name in names]
            attention = attention_of(call.module, seen, one.right, exam.subject.causal)
            parts = (attention, seen.block.feed_forward, *norms)
            return compare_with_block(BlockInternals(call, call.input, call.run()[0], parts))
    except Exception as error:  # layers that are called in other ways than ours
        return f"the attention is right; {NOT_REBUILT} ({error})"


def _of_block(name: str, names: tuple[str, ...], ended: Compared, several: bool) -> Results:
    if isinstance(ended, str):
        return not_checked(ended.rstrip("."), RESIDUALS)
    finding, bugs = ended
    meant = bool(bugs) and all(bug.meant for bug in bugs)
    evidence = "a block of the same parts with this bug gives the same numbers."
    if meant:
        evidence = "a block of the same parts put together like this gives the same numbers."
    results = together(
        recognised(bug.name, f"{evidence} {with_own_names(bug.message, names)}", name, bug.meant)
        for bug in bugs
    )
    if finding.ok or (bugs and not meant):
        return results + found(finding, where=name)
    if bugs:
        return results
    where = f" (In {name}.)" if name and several else ""
    return results + Results(different={RESIDUALS: finding.evidence + where})


def check_parts_of_blocks(exam: Examination) -> Results:
    """Told only where it fails: what is wrong inside of a feed-forward or a norm."""
    results, meant = Results(), [bug for bug in exam.results.bugs if bug.meant]
    for name in exam.parts.blocks:
        if (n := len(names_of_all(exam.subject.function, [name]))) > 1:
            results += named(of_parts("one block several times", n=n), name)
    parallel = [bug.where for bug in meant if bug.name.startswith("parallel")]
    for name, call in exam.parts.blocks.items():
        if call is None or call.input is None:
            continue
        try:
            with torch.no_grad():
                bugs = check_parts(call, exam.parts.block_parts[name], exam.subject.causal)
        except Exception:  # told by the comparison with a block
            continue
        if name in parallel:  # two branches that read the same need no norm each
            bugs.pop("one norm for both", None)
        for bug, (evidence, part) in bugs.items():
            results += recognised(bug, evidence, f"{name}.{part}" if name else part)
    return results
