"""Which parameters of a module a gradient from its output arrives at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import torch
from torch import Tensor, nn

from attention_base.numbers import joined
from attention_base.same import seed_all
from attention_clinic.bugs import of_parts
from attention_clinic.calls import Call, may_take_context, other_numbers, part_of
from attention_clinic.examination import Examination
from attention_clinic.from_outside import NOT_FINITE, ONE_TOKEN, ZERO_PROJECTION
from attention_clinic.names import ROLES, is_layer, is_norm, projection_name, within
from attention_clinic.probes import GRADIENTS, Finding
from attention_clinic.results import Results, found, named, not_checked, recognised
from attention_clinic.subject import NO_MODULE

Gradients = dict[str, Tensor | None]  # by the name of a parameter; None where none arrives
NO_OPTIMISER = "parameters() does not contain the {}, so no optimiser uses their gradients."
SHARP = (
    "the scores are so sharp that all weights are 0 or 1, and a softmax like that passes no "
    "gradient on"
)
CUT = "x changes the output otherwise than the gradient that arrives at x says."
IN_PLACE = (
    "none can be computed, since numbers that backpropagation needs were changed in place: write "
    "x = x + …, not x += …."
)


def gradients_of(whole: Call) -> Gradients:
    """The gradient of each parameter from a random upstream gradient; None without one.

    A RuntimeError says that numbers that backpropagation needs were changed in place.
    """
    named = [one for one in whole.module.named_parameters() if one[1].is_floating_point()]
    names, parameters = [name for name, _ in named], [own for _, own in named]
    before = [own.requires_grad for own in parameters]
    try:
        for own in parameters:
            own.requires_grad_(True)
        with torch.enable_grad():
            out = whole.run()[0]
            if not out.requires_grad:
                return dict.fromkeys(names)
            upstream = torch.randn(out.shape, generator=torch.Generator().manual_seed(0)).to(out)
            found = torch.autograd.grad((out * upstream).sum(), parameters, allow_unused=True)
        return dict(zip(names, found, strict=True))
    finally:
        for own, was in zip(parameters, before, strict=True):
            own.requires_grad_(was)


def parts_without(module: nn.Module, gradients: Gradients) -> list[str]:
    """The parameters without a gradient; a whole part by its name, where it gets none at all."""
    without = [name for name, gradient in gradients.items() if gradient is None]
    found: list[str] = []
    for name, _ in module.named_modules():
        inside = {key for key in gradients if within(key, [name])}
        if name and inside and inside.issubset(without) and not within(name, found):
            found.append(name)
    return found + [key for key in without if not within(key, found)]


def changes_output(whole: Call, name: str) -> bool:
    """Tell whether other numbers in a part's parameters change the output."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        out = whole.run()[0]
        others = [
            (own, own.data + torch.randn(own.shape, generator=generator).to(own.data))
            for key, own in whole.module.named_parameters()
            if within(key, [name])
        ]
        with other_numbers(others):
            return not torch.equal(out, whole.run()[0])


def in_words(roles: Iterable[str]) -> str:
    """Roles in their usual order: "query and key"."""
    roles = set(roles)
    return joined([role for role in ROLES if role in roles])


# ---------------------------------------------------------------- the steps of an examination


def check_gradients(exam: Examination) -> Results:
    """Look where a gradient from the output arrives."""
    subject, internals = exam.subject, exam.parts.internals
    if why := _why_no_gradients(exam):
        return not_checked(why, GRADIENTS)
    seed_all()
    whole = subject.call()
    try:
        gradients = gradients_of(whole)
    except RuntimeError as error:
        if isinstance(error, NotImplementedError):  # as on a CPU, where it only runs forward
            return not_checked("it has no backward on this machine", GRADIENTS)
        if "inplace" not in str(error):
            raise
        return found(Finding(GRADIENTS, False, IN_PLACE))
    without = parts_without(subject.function, gradients)
    detached = [name for name in without if changes_output(whole, name)]
    unused = [name for name in without if name not in detached]
    results = Results()
    for name in internals:
        results += _gradients_of_roles(exam, name, gradients, unused)
    if results.findings:
        return results
    more = _without_purpose(exam, unused)
    if more and not _of_no_consequence(exam, more):
        return results + _never_used(exam, more)
    if detached:
        evidence = f"none arrives at {joined(detached)}, though the output depends on it: "
        evidence += "detach(), torch.no_grad() or .data cut the graph."
        return results + found(Finding(GRADIENTS, False, evidence))
    if results.not_checked:
        return results
    if _cut_on_the_way_to_x(exam):
        return found(Finding(GRADIENTS, False, CUT)) + named(of_parts("gradient of x cut"))
    roles = {role for seen in internals.values() for role in seen.roles}
    evidence = "every parameter gets one."
    if roles:
        evidence = f"one arrives at {in_words(roles)}, and at every other parameter."
    if more:
        evidence = f"{evidence[:-1]} but {_listed(more)}, which forward never reads: remove what "
        evidence += "is not meant to be used."
    return results + found(Finding(GRADIENTS, True, evidence))


def _cut_on_the_way_to_x(exam: Examination) -> bool:
    """Whether x changes the output otherwise than its gradient says, as after x.detach().

    The output has to be smooth there: rounded numbers have a gradient of their own on purpose. A
    corner of a ReLU is not: beside a whole gradient, what it changes is little.
    """
    subject, x = exam.subject, exam.subject.x
    if x.dtype.itemsize < 4 or exam.out.dtype.itemsize < 4 or subject.mask or exam.results.failed:
        return False
    generator = torch.Generator().manual_seed(0)
    upstream = torch.randn(exam.out.shape, generator=generator).to(exam.out)
    way = torch.randn(x.shape, generator=generator).to(x)

    def along(size: float) -> Tensor:
        ahead, back = (subject.out(x + step * size * way) for step in (1, -1))
        return ((ahead - back) * upstream).double().sum() / (2 * size)

    seed_all()
    leaf = x.clone().requires_grad_()
    with torch.enable_grad():
        out = subject.call(leaf).run()[0]
        out = out.transpose(0, 1) if subject.time_first else out
        (gradient,) = torch.autograd.grad((out * upstream).sum(), leaf, allow_unused=True)
    gradient = torch.zeros_like(x) if gradient is None else gradient.double()
    small, smaller = along(1e-2), along(5e-3)
    off = (smaller - (gradient * way).sum()).abs()
    least = 0.1 * torch.maximum(smaller.abs(), gradient.norm().double())
    return bool(off > least and (small - smaller).abs() < 0.05 * off)


def _why_no_gradients(exam: Examination) -> str:
    subject = exam.subject
    if not subject.is_module:
        return NO_MODULE
    if not any(own.is_floating_point() for own in subject.function.parameters()):
        return "it has no parameters"
    if not exam.out.isfinite().all():
        return NOT_FINITE
    if subject.x.shape[1] < 2:
        return ONE_TOKEN
    return ZERO_PROJECTION if exam.parts.zero_projection else ""


def _gradients_of_roles(
    exam: Examination, name: str, gradients: Gradients, unused: list[str]
) -> Results:
    """Look which of query, key and value of an attention gets no gradient at its layer's weight."""
    seen, compared = exam.parts.internals[name], exam.compared.get(name)
    names = {id(own): key for key, own in exam.subject.function.named_parameters()}
    layers = {role: names.get(id(weight), "") for role, (weight, _) in seen.roles.items()}
    arrived = {role: gradients.get(layer) for role, layer in layers.items()}
    parts = {role: z if z is None else seen.roles[role][1](z) for role, z in arrived.items()}
    reached = [role for role, z in parts.items() if z is not None and z.any()]
    roles = [role for role in layers if role not in reached]
    if roles and compared and not (compared.right * (1 - compared.right)).any():
        return not_checked(SHARP, GRADIENTS)
    if not roles or seen.zero_projection:
        return Results()
    words = in_words(roles)
    evidence = f"none arrives at {words}: what gets no gradient does not learn."
    evidence += f" One arrives at {in_words(reached)}." if reached else ""
    of_roles = dict.fromkeys(layers[role].removesuffix(".weight") for role in roles)
    never = [layer for layer in of_roles if within(layer, unused)]
    if never:
        evidence += f" The output was made without {joined(never)}: it is never used."
    results = found(Finding(GRADIENTS, False, evidence), where=name)
    cut = all(arrived[role] is None for role in roles)
    fused = len({id(weight) for weight, _ in seen.roles.values()}) == 1 and bool(reached)
    if (cut or fused) and not never and compared and compared.finding.ok and not compared.bugs:
        bug = of_parts("no gradient", names=words)
        results += recognised(f"no gradient to {words}", bug.message, name)
    return results


def _without_purpose(exam: Examination, unused: list[str]) -> list[str]:
    """What is not used, without what has no use here on purpose.

    These are the norm that a block with parallel branches does not need, and a cross-attention,
    which nothing was given for.
    """
    if any(bug.meant and bug.name.startswith("parallel block") for bug in exam.results.bugs):
        unused = [name for name in unused if not any(n in name for n in ("norm", "ln"))]
    if may_take_context(exam.subject.function):
        unused = [name for name in unused if not any(n in name for n in ("cross", "encoder"))]
    return unused


def _of_no_consequence(exam: Examination, unused: list[str]) -> bool:
    """Tell whether these are parameters, beside an attention whose numbers are explained.

    A layer stands for something that is missing, and so do parameters of a layer or a norm, and a
    matrix that may be a projection.
    """
    parts = [one for one in exam.subject.function.named_modules() if not is_norm(one[1])]
    own = {
        f"{name}.{key}" if name else key: parameter
        for name, part in parts
        for key, parameter in part.named_parameters(recurse=False)
        if not is_layer(part)
    }
    explained = bool(exam.compared) and not any(one.unexplained for one in exam.compared.values())
    return (
        explained
        and not exam.results.failed
        and not exam.difference()
        and all(key in own and own[key].numel() != exam.out.shape[-1] ** 2 for key in unused)
    )


def _listed(names: list[str]) -> str:
    return joined(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _never_used(exam: Examination, unused: list[str]) -> Results:
    words = _listed(unused)
    verb = "it is" if len(unused) == 1 else "they are"
    evidence = f"none arrives at {words}: {verb} never used."
    results = found(Finding(GRADIENTS, False, evidence))
    for name, seen in exam.parts.internals.items():
        projection = projection_name(part_of(exam.subject.function, name))
        own = f"{name}.{projection}" if name else projection
        if projection and own in unused and seen.endings[0].bugs == ():
            results += recognised("output projection never used", evidence, name)
    return results


def check_lists(exam: Examination) -> Results:
    """Look where a gradient arrives, and tell of layers in Python lists that none is of use to.

    They were examined as if they were registered, so that no optimiser would train them is told
    in the place of what was found.
    """
    gradients = check_gradients(exam)
    for one in exam.in_lists:
        evidence = NO_OPTIMISER.format(one)
        if (before := gradients.finding(GRADIENTS)) is not None and not before:
            evidence += f" {before.evidence}"
        message = of_parts("in a Python list", names=one, kind=one.kind, instead=one.instead)[1]
        gradients = replace(
            gradients + recognised(f"{one.noun} in a Python {one.kind}", message),
            findings=((Finding(GRADIENTS, False, evidence), ""),),
            not_checked={},
        )
    return gradients
