"""Compares an attention or a block with the right one, and with every known bug.

The output of an attention is compared with what the right formula gives for its queries, keys and
values, then with what each known bug gives, and each two bugs together. A block is compared with
one that is rebuilt from its parts, correctly and with each known bug.
"""

import itertools
import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from helpers.attention import causal_mask
from helpers.clinic.bugs import (
    OutAndWeights,
    bug_pairs_for,
    bugs_for,
    correct_attention,
    in_heads,
    merge_heads,
    split_heads,
)
from helpers.clinic.inspection import AttentionInternals, BlockInternals
from helpers.clinic.probes import Finding, close, matches_reference, same_numbers
from helpers.clinic.wiring import WiringBug, block_output, wiring_bugs_and_pairs
from helpers.numbers import small

ATOL = 1e-5

# ---------------------------------------------------------------- comparing an attention


def compare_with_pytorch(seen: AttentionInternals, causal: bool) -> tuple[Finding, Tensor]:
    """Compare with `F.scaled_dot_product_attention`, and return the right weights."""
    q, k, v = (split_heads(z, seen.n_head) for z in (seen.q, seen.k, seen.v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    out = seen.project(merge_heads(out))
    right = correct_attention(q, k, v, causal)[1]
    name = "equals the reference"
    if seen.out.shape != out.shape:
        evidence = f"out {tuple(seen.out.shape)}, expected {tuple(out.shape)}."
        return Finding(name, False, evidence), right
    finding = matches_reference(seen.out, out, _tolerance(out))
    evidence = f"outputs: {finding.evidence}"
    if finding.ok and seen.weights is not None:
        expected = _in_form_of(seen.weights, right)
        finding = matches_reference(seen.weights, expected, ATOL)
        evidence += f" Weights: {finding.evidence}"
    return Finding(name, finding.ok, evidence), right


def recognise_bugs(seen: AttentionInternals, causal: bool) -> tuple[dict[str, str], Tensor] | None:
    """Find the bug, or two, that give the same numbers: name -> evidence, and the weights."""
    qkv = seen.q, seen.k, seen.v
    right = in_heads(partial(correct_attention, causal=causal), *qkv, seen.n_head)
    single = (((bug,), bug.compute) for bug in bugs_for(seen.x, seen.n_head, causal))
    pairs = (((a, b), both) for a, b, both in bug_pairs_for(seen.x, seen.n_head, causal))
    for bugs, compute in itertools.chain(single, pairs):
        try:
            out, weights = compute(*qkv)
        except RuntimeError:  # with these sizes there can be no such bug
            continue
        if _gives_the_same(seen, out, weights):
            same = "this bug gives" if len(bugs) == 1 else "the two bugs together give"
            same += f" the same numbers; {_difference((out, weights), right)}."
            return {bug.name: f"{same} {bug.message}" for bug in bugs}, weights
    return None


def _gives_the_same(seen: AttentionInternals, out: Tensor, weights: Tensor) -> bool:
    """Tell whether the module gave this output and, if it showed any, these weights."""
    if out.shape[-1] == seen.v.shape[-1]:
        out = seen.project(out)
    if not same_numbers(seen.out, out, _tolerance(out)):
        return False
    return seen.weights is None or same_weights(seen.weights, weights)


def _difference(found: OutAndWeights, right: OutAndWeights) -> str:
    """How much the weights differ from the right ones; the outputs, where the weights are right."""
    for what, a, b in zip(("weights", "outputs"), found[::-1], right[::-1], strict=True):
        if a.shape != b.shape:
            return f"the right {what} have the shape {tuple(b.shape)}, not {tuple(a.shape)}"
        difference = (a - b).abs()
        if not difference.isfinite().all():
            count = int((~difference.isfinite()).sum())
            return f"{count} of the {difference.numel()} {what} are nan or inf"
        if difference.max() > ATOL:
            return f"the right {what} differ by up to {small(difference.max().item())}"
    return "the right weights and outputs are nearly the same"


def _tolerance(out: Tensor) -> float:
    """How far rounding may take numbers of this size: 1e-5, ten times that for each digit more."""
    largest = out.abs().nan_to_num().max().item()
    return ATOL * 10.0 ** max(0, math.ceil(math.log10(largest or 1.0)) - 1)


def same_weights(given: Tensor, weights: Tensor) -> bool:
    """Tell whether the weights that a module showed are these, (B, n_head, T, T)."""
    return same_numbers(given, _in_form_of(given, weights), ATOL)


def _in_form_of(given: Tensor, weights: Tensor) -> Tensor:
    """Weights (B, n_head, T, T); their mean over the heads, if the given ones have no heads."""
    return weights.mean(1) if given.dim() == 3 else weights


def wrong_weights(weights: Tensor, right: Tensor | None, causal: bool) -> Tensor:
    """Which weights are wrong: not the right ones or, where these are not known, impossible."""
    if right is not None and (expected := _in_form_of(weights, right)).shape == weights.shape:
        return ~close(weights, expected, ATOL)
    sums = weights.sum(-1, keepdim=True)
    wrong = ~close(sums, torch.ones_like(sums), ATOL).expand_as(weights)
    if causal:
        future = ~causal_mask(weights.shape[-1]).to(weights.device)
        wrong = torch.where(future, weights != 0, wrong)
    return wrong


# ---------------------------------------------------------------- comparing a block


def compare_with_block(block: BlockInternals) -> tuple[Finding, tuple[WiringBug, ...]]:
    """Compare with blocks of the same parts: pre-norm, post-norm, and with every known bug."""
    name, out, tolerance = "residuals and norms", block.out, _tolerance(block.out)
    rebuild = partial(block_output, block.x, *block.parts)
    right = {norm_place: rebuild(norm_place=norm_place) for norm_place in ("pre", "post")}
    for norm_place, expected in right.items():
        if same_numbers(out, expected, tolerance):
            evidence = f"those of a {norm_place}-norm block: rebuilt from its parts, it gives the "
            evidence += f"same {out.numel()} numbers, within {tolerance:.0e}."
            return Finding(name, True, evidence), ()
    expected = right["pre"]
    if out.shape != expected.shape:
        evidence = f"it gives {tuple(out.shape)}; rebuilt from its parts, {tuple(expected.shape)}."
        return Finding(name, False, evidence), ()
    found = (
        bugs
        for bugs, arguments in wiring_bugs_and_pairs()
        if same_numbers(out, rebuild(**arguments), tolerance)
    )
    bugs = next(found, ())
    pre, post = (small((out - z).abs().max().item()) for z in right.values())
    evidence = f"rebuilt from its parts, a pre-norm block differs by up to {pre}, a post-norm "
    evidence += f"block by up to {post}"
    evidence += "." if bugs else "; with none of the known bugs are the numbers the same."
    return Finding(name, False, evidence), bugs
