"""Steps of an examination that only call the module: what goes in, and what comes out."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import torch
from torch import Tensor, nn

from attention_base.masks import causal_mask
from attention_base.numbers import joined, listed, small
from attention_base.same import same, same_but_for_rounding, seed_all, tolerance
from attention_clinic import probes
from attention_clinic.bugs import BY_NAME, of_parts
from attention_clinic.calls import Call, context_name, training_mode
from attention_clinic.examination import Examination
from attention_clinic.fitted import ANOTHER_MASK
from attention_clinic.inspection import NOT_BATCH_FIRST
from attention_clinic.names import projection_name
from attention_clinic.probes import PREFIX, Finding
from attention_clinic.results import Results, found, named, not_checked, recognised
from attention_clinic.subject import Subject

MOST_TOKENS = 16  # that are replaced in a long example
ZERO_PROJECTION = "the output projection is zero throughout and hides what lies before it"
NOT_FINITE = "there are outputs that are nan or inf"
POOLS = "It gives one output for a whole text, as a pooling does, not one for each token."
ONE_TOKEN = "the example has a single token"
DROPPED_WITH_WEIGHTS = "mask dropped when weights are asked for"
ONLY_WITH = (
    "Without them, no token attends to the future; with them, tokens do. So training may have been "
    "right, and the weights that you look at are not those it used. Mask the scores on both paths."
)
NO_MASK_WITHOUT = "mask dropped unless weights are asked for"
ONLY_WITHOUT = (
    "With them, no token attends to the future; without them, as in training, tokens do. Mask on "
    "both paths."
)
IF_MEANT = (
    ' If the whole module takes (T, B, C) on purpose, say so: layout="tbc" (--layout tbc).',
    ' Without layout="tbc" (--layout tbc) they would stay apart.',
)
OF_THE_PLACE = (
    "with the sequences in another order, a sequence gets other outputs: what is computed depends "
    "on its place in the batch."
)
TWO_PATHS = "other outputs when weights are asked for"
TWO_PATHS_DIFFER = (
    "Whoever looks at the weights sees those of another computation: make both paths the same, "
    "with the same scale and the same mask."
)


def check_shape(exam: Examination) -> Results:
    """Compare the shapes of the output, and of the weights if they are shown, with (B, T, C)."""
    subject, out, weights = exam.subject, exam.out, exam.shown
    if not isinstance(out, Tensor) or not out.is_floating_point():
        got = out.dtype if isinstance(out, Tensor) else type(out).__name__
        raise TypeError(f"Expected out or (out, weights), of floats, got {got}.")
    B, T, C = subject.x.shape
    n_head, shape, last = subject.n_head, tuple(out.shape), C
    if n_head == 1 or shape[-1] in _widths(subject):
        last = shape[-1]
    ok = shape == (B, T, last)
    evidence = f"x {(B, T, C)} gives out {shape}"
    if weights is not None:
        of_weights = tuple(weights.shape)
        heads = n_head if len(of_weights) < 4 or not subject.try_heads else of_weights[1]
        ok &= of_weights in ((B, T, T), (B, 1, T, T), (B, heads, T, T))
        evidence += f" and weights {of_weights}"
    if not ok:
        evidence += f"; expected out {(B, T, last)}"
        if weights is not None:
            evidence += f", weights {(B, T, T)} or {(B, n_head, T, T)}"
    evidence += "."
    if not ok and n_head > 1 and shape[:-1] == (B, T):
        evidence += " Is it one head? Then pass n_head=1."
    if T > 1 and shape[:1] == (B,) and (len(shape) == 2 or shape[1:-1] == (1,)):
        evidence += f" {POOLS}"
    return found(Finding("shape", ok, evidence))


def _widths(subject: Subject) -> set[int]:
    """The widths of outputs that a module may have on purpose: those of its projections."""
    parts = subject.function.modules() if subject.is_module else ()
    named = [(part, projection_name(part)) for part in parts]
    return {getattr(getattr(part, name), "out_features", 0) for part, name in named if name}


def check_finite(exam: Examination) -> Results:
    """Look for nan and inf."""
    finding = probes.finite(exam.out)
    if finding.ok and exam.shown is not None:
        finding = probes.finite(exam.shown)
    return found(finding)


def check_input_unchanged(exam: Examination) -> Results:
    """Told only where it fails: hardly anybody expects a module to change its input."""
    subject = exam.subject
    given = subject.x.clone()
    call = subject.call(given)
    seed_all()
    with torch.no_grad():
        call.module(*call.args, **call.kwargs)
    largest = (given - subject.x).abs().nan_to_num().max().item()
    if largest == 0:
        return Results()
    return recognised(
        "its input changed in place",
        f"after the call x itself is another, by up to {small(largest)}: whoever hands it over "
        "loses it. x += y and x.add_(y) change x; x = x + y makes a new tensor.",
    )


def check_same_twice(exam: Examination) -> Results:
    """Run it again, with the same random numbers and with others."""
    name, subject, out = "same twice", exam.subject, exam.out
    subject.out(subject.x.flip(1))  # of which it may keep something
    repeated, again = subject.out(subject.x), subject.run(subject.x, seed=1)[0]
    largest = max((z - out).abs().nan_to_num().max().item() for z in (repeated, again))
    if largest == 0:
        return found(Finding(name, True, "two runs on the same input agree."))
    evidence = f"two runs on the same input differ by up to {small(largest)}."
    if not torch.equal(repeated.nan_to_num(), out.nan_to_num()):
        bug = "something kept from the call before"
        why = "The random numbers were the same, so the module keeps something from one call to "
        why += "the next, such as a cache of keys and values. Begin each call without it."
    elif made := subject.made_while_running():
        bug = "layers made in forward"
        why = f"Each call makes new ones ({joined(made)}), which nothing trains: make them once, "
        why += "in __init__, and call them in forward."
    else:
        bug = "dropout left on"
        why = "With the same random numbers they agree: something is still dropped at random. In "
        why += "evaluation nothing should be: use nn.Dropout, or F.dropout(…, "
        why += "training=self.training). (A function has no evaluation: hand over its module.)"
    return found(Finding(name, False, evidence)) + recognised(bug, f"{evidence} {why}")


def check_without_weights(exam: Examination) -> Results:
    """Call it without asking for the weights, too. Told only where the outputs differ."""
    subject, out = exam.subject, exam.out
    if not exam.results.passed("same twice") or not subject.call().ways_to_ask:
        return Results()
    without = subject.out_without_weights(subject.x)
    if without.shape != out.shape or same(without, out, tolerance(out)):
        return Results()
    largest = (without - out).abs().nan_to_num().max().item()
    differ = f"with the weights asked for, the outputs are others, by up to {small(largest)}."
    if subject.causal and subject.x.shape[1] > 1:
        findings = []  # whether an output changes with a later token
        for run in (subject.out, subject.out_without_weights):
            changes = probes.output_changes(run, subject.x, "diagnose", most=MOST_TOKENS)
            if isinstance(changes, Finding):
                return recognised(TWO_PATHS, f"{differ} {TWO_PATHS_DIFFER}")
            findings.append(probes.judge_leaks(changes, tolerance(out)))
        with_them, without_them = findings
        if without_them and not with_them:
            return recognised(DROPPED_WITH_WEIGHTS, f"{differ} {ONLY_WITH}")
        if with_them and not without_them:
            bug = recognised(NO_MASK_WITHOUT, f"{differ} {ONLY_WITHOUT}")
            return found(without_them) + bug
    return recognised(TWO_PATHS, f"{differ} {TWO_PATHS_DIFFER}")


def check_context(exam: Examination) -> Results:
    """Replace tokens of x, then of the context. Told only where the context is not used rightly."""
    subject = exam.subject
    name = context_name(subject.function)
    if not name:
        return Results()

    def out_of(x: Tensor, context: Tensor) -> Tensor:
        call = subject.call(x)
        context = context.transpose(0, 1) if subject.time_first else context
        seed_all()
        with torch.no_grad():
            out, _ = Call(call.module, call.args, call.kwargs | {name: context}).run()
        return out.transpose(0, 1) if subject.time_first else out

    x = subject.x
    of_x, of_context = (
        probes.output_changes(run, x, "diagnose", most=4)
        for run in (lambda z: out_of(z, x), lambda z: out_of(x, z))
    )
    if isinstance(of_x, Finding) or isinstance(of_context, Finding):
        return Results()
    if not of_context.nan_to_num().any():
        return named(of_parts("context never used", names=name))
    if probes.mixes_no_tokens(of_x):
        with contextlib.suppress(Exception):
            out_of(x, torch.cat([x, x[:, :2]], dim=1))
            return Results()
        return named(of_parts("context as long as x", names=name))
    if probes.mixes_no_tokens(of_context):
        return named(of_parts("queries of the context"))
    alone = len(exam.parts.attentions) == 1  # or a block of two attentions
    return named(of_parts("keys or values of x")) if alone else Results()


# ---------------------------------------------------------------- which output depends on what


def check_dependence(exam: Examination) -> Results:
    """Replace tokens and sequences, one at a time, and see which outputs change."""
    subject, out = exam.subject, exam.out
    x, causal = subject.x, subject.causal
    asked = ["no leak", PREFIX] * causal + ["reach", "sequences stay apart"]
    if x.shape[1] < 2:
        return not_checked(ONE_TOKEN, *asked)
    changes = probes.output_changes(subject.out, x, "diagnose", most=MOST_TOKENS)
    if isinstance(changes, Finding):
        return not_checked(NOT_FINITE, *asked)
    if exam.parts.zero_projection:
        return not_checked(ZERO_PROJECTION, *asked)
    exam.changes = changes
    atol = 1e-6 * min(1.0, out.abs().max().item())
    results = found(probes.judge_leaks(changes, atol)) if causal else Results()
    results += _judge_reach(exam, changes)
    apart = probes.sequences_stay_apart(subject.out, x if len(x) > 1 else x.expand(2, -1, -1), atol)
    if apart.ok and exam.results.passed("same twice"):
        turned = subject.out(x.flip(0)).flip(0)
        if not same_but_for_rounding(turned, out, out.dtype):
            apart = Finding(apart.name, False, OF_THE_PLACE)
    elif not apart.ok:
        results += _why_mixed(exam)
        if _consistent(replace(subject, time_first=not subject.time_first)):
            apart = replace(apart, evidence=apart.evidence + IF_MEANT[subject.time_first])
    return results + found(apart)


def _why_mixed(exam: Examination) -> Results:
    """Why outputs depend on other sequences, where the axes B and T have changed places."""
    if exam.parts.not_batch_first:
        evidence = f"{exam.parts.not_batch_first} {NOT_BATCH_FIRST}."
        return recognised("batch_first forgotten", evidence)
    results = Results()
    x, attentions = exam.subject.x, exam.parts.attentions
    for name, call in attentions.items() if not exam.results.wrong else ():
        if call is not None and _is_turned(call, x):
            bug = BY_NAME["attention across the batch"]
            arrives = f"x {tuple(x.shape)} arrives at it as {tuple(call.input.shape)}."
            results += recognised(bug.name, f"{arrives} {bug.message}", name)
    return results


def _consistent(subject: Subject) -> bool:
    """Whether sequences stay apart, where the axes of its input are these."""
    try:
        return probes.sequences_stay_apart(subject.out, subject.x).ok
    except Exception:  # it may have no other axes
        return False


def _is_turned(call: Call, x: Tensor) -> bool:
    """Tell whether an attention that takes (B, T, C) was given (T, B, C)."""
    time_first = isinstance(call.module, nn.MultiheadAttention) and not call.module.batch_first
    z, (B, T) = call.input, x.shape[:2]
    turned = z is not None and z.shape[:2] == (T, B)
    return turned and not time_first and (B != T or torch.equal(z, x.transpose(0, 1)))


def _judge_reach(exam: Examination, changes: Tensor) -> Results:
    causal = exam.subject.causal
    finding = probes.judge_reach(changes, 0.0, causal)
    if finding.ok:
        return found(finding)
    if causal and (distances := _distances(changes)):
        evidence = f"each output depends only on the tokens that stand {listed(distances)} "
        evidence += "before it (0 is its own). A sliding window does that; if it is meant, fine."
        return Results(different={"reach": evidence})
    if any(ANOTHER_MASK in one.variants for one in exam.compared.values()):
        return Results(different={"reach": finding.evidence})
    if _right_weights_vanish(exam, changes):
        return not_checked(
            f"{finding.evidence.removesuffix('.')}; but the right weights are below 0.000001 "
            "there: the scores are just that sharp",
            "reach",
        )
    return found(finding)


def _right_weights_vanish(exam: Examination, changes: Tensor) -> bool:
    """Tell whether the right weights are nearly 0 wherever an output does not change."""
    known = [one for one in exam.compared.values() if one.finding.ok or one.variants]
    if not known or len(known) < len(exam.compared):
        return False
    unchanged = (changes == 0).mT  # row = output, column = token
    unchanged &= causal_mask(len(unchanged)) if exam.subject.causal else unchanged
    largest = [one.right.flatten(0, -3).amax(0).cpu() for one in known]
    return all(
        weights.shape == unchanged.shape and bool((weights[unchanged] < 1e-6).all())
        for weights in largest
    )


def _distances(changes: Tensor) -> list[int]:
    """How far before an output the tokens stand that it depends on, if always the same.

    Empty where it depends on its own token only, or on others from place to place.
    """
    if changes.isnan().any():
        return []
    depends = (changes > 0).mT  # row = output, column = token
    T = len(depends)
    distances = [d for d in range(T) if depends[T - 1, T - 1 - d]]
    expected = sum(torch.ones(T - d).diag(-d) for d in distances) if distances else None
    same = expected is not None and torch.equal(expected > 0, depends)
    return distances if same and distances[0] == 0 and len(distances) > 1 else []


def check_training_mode(exam: Examination) -> Results:
    """Batch norm treats tokens alone in evaluation, and mixes all sequences in training."""
    subject = exam.subject
    if not subject.is_module or not exam.results.passed("sequences stay apart"):
        return Results()
    module, x = subject.function, subject.x
    kind = nn.modules.batchnorm._BatchNorm
    culprits = [name for name, part in module.named_modules() if isinstance(part, kind)]
    if not culprits:
        return Results()
    with training_mode(module):
        finding = probes.sequences_stay_apart(subject.out, x.expand(max(2, len(x)), -1, -1))
    if finding.ok:
        return Results()
    in_training = Finding(finding.name, False, f"in training mode {finding.evidence}")
    return found(in_training) + recognised(
        "batch norm instead of layer norm",
        f"in training, {culprits[0]} takes mean and variance over all tokens of all sequences, "
        "also of later ones. Use a layer norm, over the channels of each token.",
    )


def check_prefixes(exam: Examination) -> Results:
    """Compare with shorter texts what should be causal, where no other probe explains it."""
    subject, before = exam.subject, exam.results
    if not all(map(before.passed, ("same twice", "no leak", "sequences stay apart"))):
        return Results()
    finding, by_number = probes.judge_prefixes(
        lambda z: subject.run(z, seed=None)[0],
        subject.x,
        module=subject.function if subject.is_module else None,
        most=MOST_TOKENS,
    )
    if finding.ok is None:
        return not_checked(finding.evidence.removesuffix("."), PREFIX)
    if by_number and not before.failed:  # as with a scale by log T
        return Results(different={PREFIX: finding.evidence})
    return found(finding)
