"""`diagnose` runs all probes on an attention or a block, and names its bug.

A module is inspected: its queries, keys and values are found, and compared with every known bug
(`comparison`); the one that gives the same numbers as the module is its bug. Where they cannot be
found, only the probes say what is wrong.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attention_base.numbers import joined
from attention_base.same import one_thread, seed_all
from attention_clinic import probes
from attention_clinic.bugs import BY_NAME, NO_MASK, OF_PARTS, VARIANTS, Named
from attention_clinic.calls import (
    cache_names,
    context_name,
    evaluation_mode,
    forward_seen,
    inputs_of_roles,
    mask_wanted,
    neutral,
    reads_time_first,
    self_attention_call,
)
from attention_clinic.crashes import (
    NOT_CONTIGUOUS,
    examine_crash,
    raised_later,
    reshape_for_view,
    resized,
    runs,
)
from attention_clinic.examination import PROBES, Examination
from attention_clinic.lists import InList, registered
from attention_clinic.names import own_head_count
from attention_clinic.probes import Finding
from attention_clinic.report import Report, has_word
from attention_clinic.steps import examine, with_crash
from attention_clinic.subject import Subject
from attention_clinic.wiring import WIRING_BUGS

# Each bug and variant by its name: whether some models have it on purpose.
KNOWN = {
    one.name: one.meant for one in (*OF_PARTS.values(), *WIRING_BUGS, *BY_NAME.values(), *VARIANTS)
}
CALLED_WITH_MASK = (
    "Called with attn_mask={}; without a mask of yours it would attend to the future."
)
CALLED_WITH = "Called with x as {}."
CALLED_WITH_CONTEXT = "Called with {}=x, so that x attends to itself, and to later tokens."
CALLED_WITH_NEUTRAL = "Called with {} of no effect (cos 1, sin 0; or 0): others were not checked."
CALLED_WITH_ITS_MASK = "Called with {}; without it, tokens would attend to later ones."
CALLED_WITHOUT = "Called without {}: what it does with that was not checked."
WITH_RESHAPE = "Examined with reshape in the place of view."
LONGER = 64
NOT_LONGER = (
    "With {} tokens it raises an error: is there a size in it that should be T, x.shape[1]? If it "
    "was told by an argument, with a number that was a guess, tell a larger one."
)
CHANNELS_FIRST = (
    "It reads (B, C, T), channels first. x is (B, T, C), or (T, B, C) with --layout tbc. A wrapper "
    "that transposes makes it fit: its forward returns self.attention(x.mT).mT."
)
RETURNED_NONE = (
    "it returned None: is its `return` missing? It should return out, or (out, weights)."
)
EMPTY = "cannot be judged on this input: {}"


def diagnose(
    module_or_callable: Callable,
    *,
    C: int,
    n_head: int | None = None,
    causal: bool = True,
    example: torch.Tensor | None = None,
    expect: Collection[str] = (),
    layout: str | None = None,
) -> Report:
    """Run all probes on an attention or a block, and name its bug.

    Of a module the queries, keys and values are found, by the usual names of their layers or by
    what these do, also inside of a larger module such as a block. Then a wrong scale is detected
    too, and the bug is named for certain. What differs from the textbook formula and passes all
    other probes, such as a rotation by position, is called "different", not broken. A block is
    compared with a pre-norm and a post-norm block of the same parts. Of a function only the probes
    say what is wrong. Modules are examined in evaluation mode, compared with training mode, and
    left as they were; a bare `nn.MultiheadAttention` is called with a causal mask.

    Parameters
    ----------
    module_or_callable
        Takes x (B, T, C); returns out (B, T, anything) or (out, weights), with weights (B, T, T)
        or (B, n_head, T, T).
    C
        Channels of x.
    n_head
        Number of heads; not needed for a module that knows its own, as `n_head`, `num_heads`,
        `heads` or `h`.
    causal
        Whether every token should attend to itself and those before it only, or to all.
    example
        (B, T, C) to run it on; random numbers when left out.
    expect
        Words in the names of variants that are meant, such as "rotary": with them, and no other
        difference, it is healthy, and without them different.
    layout
        "tbc" for a module that takes and returns (T, B, C). None: as its `batch_first` says, of
        PyTorch's own; "btc" for all others.

    Returns
    -------
    Report
        With `status` "healthy", "different", "broken" or "incomplete", `findings`, `not_checked`
        (name -> why), `different` (name -> in what) and `bugs`. Prints as text; a notebook shows a
        heatmap too, with the wrong cells outlined.

    Raises
    ------
    TypeError, ValueError
        When there is nothing to call, or the sizes do not fit.

    Examples
    --------
    >>> diagnose(nn.MultiheadAttention(32, 4, batch_first=True), C=32, n_head=4).status
    'healthy'
    >>> diagnose(lambda x: x, C=32).bugs
    ()
    """
    function = getattr(module_or_callable, "_orig_mod", module_or_callable)  # torch.compile's
    refuse_uncallable(function)
    if not isinstance(causal, bool):
        raise TypeError(f"causal must be True or False, got {probes.described(causal)}.")
    if isinstance(expect, str) or not isinstance(expect, Collection):
        raise TypeError(f"expect must be a tuple of names, got {probes.described(expect)}.")
    meant = {word: _names_with(word) for word in expect}
    for word, names in meant.items():
        if not names:
            near = difflib.get_close_matches(str(word), " ".join(KNOWN).split(), n=3, cutoff=0.5)
            near = f"did you mean {joined(near)}?" if near else "such as rotary or QK-norm."
            raise ValueError(f"expect takes words of the names of variants, got {word!r}: {near}")
    if layout not in (None, "btc", "tbc"):
        raise ValueError(f'layout must be "btc" or "tbc", got {layout!r}.')
    time_first = reads_time_first(function) if layout is None else layout == "tbc"
    given = n_head
    n_head, known = _number_of_heads(function, C, n_head)
    x = _example(C, n_head, function) if example is None else _refuse_bad_example(example, C)
    _give_sizes(function, x, causal)
    with registered(function) as in_lists:
        try_heads = given is None and not known
        subject = Subject(function, x, n_head, causal, try_heads, time_first=time_first)
        report = _diagnose(subject, in_lists)
    return replace(report, example=tuple(x.shape)).expecting(meant)


def _give_sizes(function: Callable, x: Tensor, causal: bool) -> None:
    """Let layers such as nn.LazyLinear find their sizes, by one call."""
    own = function.parameters() if isinstance(function, nn.Module) else ()
    if any(map(nn.parameter.is_lazy, own)):
        with contextlib.suppress(Exception), torch.no_grad():  # told where it is run
            self_attention_call(function, x, causal).run()


def _diagnose(subject: Subject, in_lists: tuple[InList, ...]) -> Report:
    function, x, causal = subject.function, subject.x, subject.causal
    if report := _not_to_be_judged(function, x):
        return report
    context = context_name(function)
    causal_here = causal and not context
    conditions = (evaluation_mode(function), torch.random.fork_rng(devices=[]), one_thread())
    with contextlib.ExitStack() as stack:
        for condition in (*conditions, forward_seen(function)):
            stack.enter_context(condition)
        for has_none in (False, True):
            with torch.no_grad():
                mask = mask_wanted(function, x, causal_here, subject.time_first, has_none=has_none)
            if has_none and not mask:
                break
            subject = replace(subject, causal=causal_here, mask=mask)
            found = _examine(subject, in_lists)
            if isinstance(found, Report):
                return found
            exam, notes = found
            # Where it tells places apart, only its numbers tell that it has no mask of its own.
            unmasked = [NO_MASK.name in one.bugs for one in exam.compared.values()]
            if mask or not unmasked or not all(unmasked):
                break
    masked = causal and isinstance(function, nn.MultiheadAttention)
    called = (  # each with the words in it; none where it is not so
        (CALLED_WITH, ["(T, B, C)"] if subject.time_first else []),
        (CALLED_WITH_ITS_MASK, [f"{mask.name}={mask.told}"] if mask else []),
        (CALLED_WITH, inputs_of_roles(function)),
        (CALLED_WITH_NEUTRAL, list(neutral(function, x))),
        (CALLED_WITH_MASK, ["~causal_mask(T)"] if masked else []),
        (CALLED_WITH_CONTEXT, [context] if context else []),
        (CALLED_WITHOUT, cache_names(function)),
    )
    notes += tuple(text.format(joined(words)) for text, words in called if words)
    results, recognised = exam.results, exam.recognised
    named = results.wrong if results.failed else tuple(recognised)
    meant = {name: one.evidence for name, one in recognised.items() if name not in named}
    return Report(
        status=_status(exam),
        findings=(*(recognised[name] for name in named), *exam.findings.values()),
        not_checked=_in_order(results.not_checked),
        different=meant | _in_order(results.different),
        difference=exam.difference(),
        bugs=named,
        remark="" if named else exam.remark(),
        assumed=exam.assumed_heads(),
        notes=notes,
        evidence=exam.evidence(),
    )


def _status(exam: Examination) -> str:
    results = exam.results
    if results.failed:
        return "broken"
    if results.different or any(bug.meant for bug in results.bugs):
        return "different"
    return "incomplete" if results.not_checked else "healthy"


def _in_order(by_probe: Mapping[str, Any]) -> dict[str, Any]:
    return {name: by_probe[name] for name in PROBES if name in by_probe}


def _examine(
    subject: Subject, in_lists: tuple[InList, ...]
) -> tuple[Examination, tuple[str, ...]] | Report:
    """Run all probes; on the first tokens only, where the module takes no more."""
    function, x = subject.function, subject.x

    def run(z: Tensor) -> Any:
        seed_all()
        with torch.no_grad():
            return subject.call(z).run()[0]

    notes: tuple[str, ...] = ()
    try:
        result = run(x)
    except Exception as error:
        if why := _why_refused(function, x, run):
            raise ValueError(why) from error
        crash = examine_crash(function, x, error, run)
        if crash.bug == NOT_CONTIGUOUS:
            with contextlib.suppress(Exception), reshape_for_view():
                exam = examine(subject, in_lists)
                return with_crash(exam, crash.finding, crash.bug), (WITH_RESHAPE,)
        if crash.resized is None:
            return _report_of_crash(crash.finding, crash.bug, error)
        x = crash.resized
        subject = replace(subject, x=x)
        notes = (f"Examined with {x.shape[1]} tokens: {crash.finding.evidence}",)
    else:
        if result is None:
            return _report_of_crash(Finding("runs", False, RETURNED_NONE), None)
    try:
        exam = examine(subject, in_lists)
        if not notes and x.shape[1] < LONGER and not runs(run, resized(x, LONGER)):
            notes = (NOT_LONGER.format(LONGER),)
        return exam, notes
    except Exception as error:
        if (finding := raised_later(error, x)) is not None:
            return _report_of_crash(finding, None, error)
        raise


def _report_of_crash(finding: Finding, bug: Named | None, error: Exception | None = None) -> Report:
    found = () if bug is None else (Finding(bug.name, False, bug.message),)
    return Report(
        status="broken",
        findings=(*found, finding),
        not_checked={},
        bugs=tuple(one.name for one in found),
        remark="It raises an error." if error else "It returns None.",
        error=error,
    )


def _not_to_be_judged(function: Callable, x: Tensor) -> Report | None:
    """What ends the search: numbers that are nan or inf, or an example that shows nothing."""
    named = [] if not isinstance(function, nn.Module) else list(function.named_parameters())
    for name, own in [*named, ("The example", x)]:
        if not nn.parameter.is_lazy(own) and bool((bad := ~own.isfinite()).any()):
            evidence = f"{int(bad.sum())} of its {own.numel()} numbers, the first at "
            evidence += f"{bad.nonzero()[0].tolist()}. What is computed from them is nan or inf "
            evidence += "too, so nothing else was checked."
            finding = Finding("finite input and parameters", False, evidence)
            remark = f"{name} holds numbers that are nan or inf."
            return Report("broken", (finding,), {}, remark=remark)
    largest = x.abs().max().item()
    tiny = f"its largest number is {largest:.0e}, and what it changes is rounded off"
    equal = x.shape[1] > 1 and bool((x == x[:, :1]).all())
    whys = {"all its numbers are 0": not largest, tiny: largest < 1e-12}
    why = next((why for why, so in (whys | {"all its tokens are equal": equal}).items() if so), "")
    return Report("incomplete", (), {"everything": EMPTY.format(why)}) if why else None


# ---------------------------------------------------------------- the arguments of `diagnose`


def refuse_uncallable(function: Any) -> None:
    """Refuse what cannot be called, and a module whose __init__ has left out PyTorch's."""
    if isinstance(function, nn.Module) and "_modules" not in vars(function):
        name = type(function).__name__
        raise TypeError(f"{name} is no module yet: call super().__init__() first in its __init__.")
    if callable(function) and not isinstance(function, type):
        return
    got = f"the class {function.__name__}" if callable(function) else probes.described(function)
    raise TypeError(
        f"diagnose takes a module or a function x -> out, got {got}. Hand over what can be "
        "called with x: the module itself, not its class or what it returned."
    )


def _names_with(word: str) -> list[str]:
    """The variants with a word in their names, or else the bugs: “rotary” means no bug in it."""
    names = [name for name in KNOWN if has_word(name, word)]
    return [name for name in names if KNOWN[name] or name == word] or names


def _number_of_heads(function: Callable, C: int, n_head: int | None) -> tuple[int, bool]:
    """The number of heads, and whether the module or one in it knows it."""
    for name, size in (("C", C), ("n_head", 1 if n_head is None else n_head)):
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {size!r}.")
    own = own_head_count(function)
    known = {own} if own else set()
    if not own and isinstance(function, nn.Module):  # those inside; single heads may be in a list
        known = {own_head_count(part) for part in function.modules()} - {None, 1}
    if known and n_head not in {None, 1, *known}:
        heads = " and ".join(map(str, sorted(known)))
        raise ValueError(f"The module has {heads} heads, but diagnose was told n_head = {n_head}.")
    found = own or (known.pop() if len(known) == 1 and n_head is None else None)
    return found or n_head or 1, bool(found or known)


def _example(C: int, n_head: int, function: Callable) -> Tensor:
    """A random batch whose sizes B, T, C, n_head and head_size all differ."""
    taken = {C, C // n_head, (C // n_head) ** 2, n_head}
    T = next(T for T in (8, 7, 6, 5, 4) if T not in taken | {C // n_head // 2})
    B = next(B for B in (3, 2, 4, 5) if B not in taken | {T})
    return random_example(B, T, C, function)


def random_example(B: int, T: int, C: int, function: Callable) -> Tensor:
    """Random numbers (B, T, C), always the same ones, in the type of a module's parameters."""
    x = torch.randn(B, T, C, generator=torch.Generator().manual_seed(0))
    some = next(function.parameters(), x) if isinstance(function, nn.Module) else x
    return x.to(some.device, some.dtype) if some.is_floating_point() else x


def _refuse_bad_example(example: Any, C: int) -> Tensor:
    if not isinstance(example, Tensor) or not probes.has_plain_floats(example):
        raise TypeError(f"example must be a tensor of floats, got {probes.described(example)}.")
    if example.dim() != 3 or example.shape[-1] != C or not example.numel():
        raise ValueError(f"example must be (B, T, C) with C = {C}, got {tuple(example.shape)}.")
    return example.detach()


def _why_refused(function: Callable, x: Tensor, run: Callable[[Tensor], Any]) -> str:
    """Why a module may have refused x (B, T, C); empty when nothing stands out."""
    C = x.shape[-1]
    named = list(function.named_modules()) if isinstance(function, nn.Module) else []
    convolved = any(isinstance(one, nn.Conv1d) and one.in_channels == C for _, one in named)
    if convolved and runs(run, x.mT):
        return CHANNELS_FIRST
    kinds = (nn.Linear, nn.MultiheadAttention)
    name, first = next((one for one in named if isinstance(one[1], kinds)), ("", None))
    size = getattr(first, "in_features", getattr(first, "embed_dim", C))
    if size == C or runs(run, resized(x, size)):  # it may take tokens for channels
        return ""
    layer = f"The module (its layer {name})" if name else "The module"
    return f"{layer} reads C = {size} channels, but it was given C = {C}."
