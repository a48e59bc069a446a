"""All probes put to one attention, and the illness named: what `diagnose` does.

A module is looked into (`inspection`): its queries, keys and values are taken, every known
illness (`bugs`) is computed from them, and the one that gives just what the module
gave is its illness. Where nothing can be looked into, the passed and failed probes are compared
with those of every known illness. A block is put together anew from its parts, rightly and in every
wrong way that is known, and compared in the same manner.
"""

from __future__ import annotations

import contextlib
import html
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import causal_mask
from helpers.clinic import probes
from helpers.clinic.bugs import (
    LIKELIEST,
    Miswiring,
    Patient,
    healthy,
    illnesses_of,
    in_heads,
    merge,
    miswired,
    pairs_of,
    split,
)
from helpers.clinic.inspection import (
    PARTS,
    ROLES,
    TIME_FIRST,
    Call,
    Inside,
    as_pair,
    attentions,
    blocks,
    called,
    evaluating,
    has_more,
    look_inside,
    take_apart,
)
from helpers.clinic.probes import Finding, seed_all
from helpers.numbers import joined, small
from helpers.pictures.base import Picture
from helpers.pictures.matrix import heatmap
from helpers.show import wrap_text

ATOL = 1e-5
ORDER = ("shape", "finite", "same twice", "rows sum to 1", "no weight on the future", "no leak")
ORDER += ("reach", "sequences stay apart", "gradients reach", "equals the reference")
ORDER += ("roads and norms",)
NO_WEIGHTS = "it shows no weights; return (out, weights) to show them"
NO_MODULE = "no queries, keys and values in sight; hand over the module that makes them"
NO_QKV = (
    f"I look for three Linear layers called {joined(ROLES)}, or for nn.MultiheadAttention; "
    "rename yours, or split one that makes all three"
)
NO_PARTS = (
    f"there is more than an attention, and of a block I look for parts called {joined(PARTS)}; "
    "rename yours"
)
HIDDEN = "the output projection is zero throughout and hides what lies behind it"
NONE_FITS = "No known illness fits."
WITH_MASK = (
    "Called with attn_mask=~causal_mask(T); without a mask of yours it would see the future."
)
NOT_FINITE = "there are outputs that are nan or inf"


@dataclass(frozen=True)
class Report:
    """What `diagnose` found.

    Attributes
    ----------
    status
        "healthy": every probe ran and passed. "ill": at least one failed. "incomplete": none
        failed, and some could not run.
    findings
        The recognised illnesses, then the probes that ran, each with its `name`, `evidence` and
        whether it is `ok`.
    not_checked
        The probes that could not run, and why.
    illnesses
        The names of the illness that was recognised; or, where no q, k and v could be looked at,
        of all that fit the failed probes.
    recognised
        Whether the module gave just what the named illness gives, number for number.
    remark
        A sentence for the verdict on what failed without being recognised.
    note
        How the module was called, where that is not plain.
    draw
        Makes the picture.
    """

    status: str
    findings: tuple[Finding, ...]
    not_checked: Mapping[str, str]
    illnesses: tuple[str, ...] = ()
    recognised: bool = False
    remark: str = ""
    note: str = ""
    draw: Callable[[], Picture | None] = lambda: None

    @property
    def picture(self) -> Picture | None:
        """A heatmap with the guilty cells outlined; None where nothing can be shown."""
        return self.draw()

    def __str__(self) -> str:
        ill = self.status == "ill"
        lines = [self._verdict()]
        lines += [str(finding) for finding in self.findings if not (ill and finding.ok)]
        passed = [finding.name for finding in self.findings if finding.ok]
        if ill and passed:  # beside a failure, what passed is told briefly
            lines.append(f"✓ passed: {', '.join(passed)}.")
        lines += [f"○ {name}: {why}." for name, why in self.not_checked.items()]
        lines += [self.note] if self.note else []
        return wrap_text("\n".join(lines), hanging="  ")

    __repr__ = __str__

    def _verdict(self) -> str:
        if self.status == "healthy":
            return f"HEALTHY: all {len(self.findings)} probes ran and passed."
        if self.status == "incomplete":
            return f"INCOMPLETE: no illness found; not checked: {', '.join(self.not_checked)}."
        if self.recognised:
            return f"ILL: {' and '.join(self.illnesses)}."
        failed = ", ".join(finding.name for finding in self.findings if not finding.ok)
        if self.illnesses:
            return f"ILL: failed {failed}. It could be: {'; '.join(self.illnesses)}."
        return f"ILL: failed {failed}. {self.remark}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        picture = self.picture
        if picture is None:
            return {"text/plain": str(self)}
        words = f'<pre style="white-space: pre-wrap">{html.escape(str(self))}</pre>'
        return {"text/plain": f"{self}\n\n{picture}", "text/html": words + picture.html()}


def diagnose(
    module_or_callable: Callable,
    *,
    C: int,
    n_head: int = 1,
    causal: bool = True,
    example: torch.Tensor | None = None,
) -> Report:
    """Put all probes to an attention, and name what is wrong with it.

    `Head`, `MultiHeadAttention`, `nn.MultiheadAttention` and any module with Linear layers `query`,
    `key` and `value` (and perhaps `proj`) are looked into, also inside of a larger module such as a
    block. Then scale mistakes are seen too, and the illness is named for certain. (What such a
    module puts between its queries and its scores, a rotation by position say, reads as a mistake.)
    A block of `attention`, `feed_forward`, `norm_1` and `norm_2` is compared with a pre-norm and a
    post-norm block of these parts. Of anything else the failed probes are told, and all known
    illnesses that it could be, the likeliest first. Modules are examined in evaluation, and left as
    they were; a bare `nn.MultiheadAttention` is called with a causal mask.

    Parameters
    ----------
    module_or_callable
        Takes x (B, T, C); returns out (B, T, anything) or (out, weights), with weights (B, T, T)
        or (B, n_head, T, T).
    C
        Channels of x.
    n_head
        Number of heads; a module that has its own `n_head` need not be told.
    causal
        Whether it should hide the future, or let everybody read everybody.
    example
        (B, T, C) to examine it with, T of at least 2; random numbers when left out.

    Returns
    -------
    Report
        With `status` "healthy", "ill" or "incomplete", `findings`, `not_checked` (name -> why) and
        `illnesses`. Prints as text; in a notebook a heatmap shows the guilty cells outlined.

    Raises
    ------
    TypeError, ValueError
        When there is nothing to call, or the sizes do not fit.

    Examples
    --------
    >>> from helpers.attention import MultiHeadAttention
    >>> diagnose(MultiHeadAttention(32, 4), C=32, n_head=4).status
    'healthy'
    >>> diagnose(lambda x: x, C=32).illnesses
    ()
    """
    function = module_or_callable
    if not callable(function) or isinstance(function, type):
        what = (
            f"the class {function.__name__}" if callable(function) else probes.described(function)
        )
        raise TypeError(
            f"diagnose takes a module or a function x -> out, got {what}. Hand over what can be "
            "called with x: the module itself, not its class or what it returned."
        )
    n_head = _n_head(function, C, n_head)
    x = _example(C, n_head, function) if example is None else _refuse_bad_example(example, C)
    with evaluating(function), torch.random.fork_rng(devices=[]), _one_thread():
        exam = Exam(function, x, n_head, causal)
        names = exam.recognised or (_fitting(exam) if exam.failed else ())
    status = "ill" if exam.failed else "incomplete" if exam.not_checked else "healthy"
    findings = (*exam.recognised.values(), *_in_order(exam.findings).values())
    not_checked, recognised = _in_order(exam.not_checked), bool(exam.recognised)
    remark = "" if names else exam.remark()
    note = WITH_MASK if causal and isinstance(function, nn.MultiheadAttention) else ""
    return Report(
        status, findings, not_checked, tuple(names), recognised, remark, note, exam.picture
    )


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Thousands of tiny products: on a busy machine threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _in_order(told: dict[str, Any]) -> dict[str, Any]:
    return {name: told[name] for name in ORDER if name in told}


class Exam:
    """The probes put to one attention, in order: what they found, or why they could not run.

    Attributes
    ----------
    findings, not_checked
        Name of a probe -> what it found, or why it did not run.
    recognised
        Name of an illness -> the evidence, where q, k and v could be looked at.
    insides
        Where -> what was seen there; "" is the module itself.
    blocks
        Where -> how a block with parts of known names was called there.
    """

    def __init__(self, function: Callable, x: Tensor, n_head: int, causal: bool) -> None:
        self.function, self.x, self.n_head, self.causal = function, x, n_head, causal
        self.findings: dict[str, Finding] = {}
        self.not_checked: dict[str, str] = {}
        self.recognised: dict[str, Finding] = {}
        self.insides: dict[str, Inside] = {}
        self.blocks: dict[str, Call | None] = {}
        self.shown: dict[str, tuple[Tensor, Tensor | None]] = {}  # weights, and the right ones
        self.moved: Tensor | None = None  # [j, t]: how far token j moves output t

        try:
            self.out, self.weights = self._run(x)
        except Exception as error:
            if why := _misfit(function, x.shape[-1]):
                raise ValueError(why) from error
            raise
        if self._shape():
            self._look_inside()
            self._finite()
            self._steady()
            self._reference()
            self._rows_and_future()
            self._leak_and_reach()
            self._gradients()
            self._roads()

    @property
    def failed(self) -> bool:
        """Whether any probe failed."""
        return not all(finding.ok for finding in self.findings.values())

    def pattern(self) -> dict[str, bool]:
        """Which probes passed and which failed, of those that ran."""
        return {name: finding.ok for name, finding in self.findings.items()}

    def _run(self, x: Tensor, seed: int = 0) -> tuple[Tensor, Tensor | None]:
        seed_all(seed)
        with torch.no_grad():
            if not isinstance(self.function, nn.Module):
                return as_pair(self.function(x.clone()))
            out, weights = called(self.function, x.clone(), self.causal).with_weights()
        return self._batch_first(out), weights

    def _batch_first(self, out: Tensor) -> Tensor:
        theirs = isinstance(self.function, nn.MultiheadAttention)
        return out.transpose(0, 1) if theirs and not self.function.batch_first else out

    def _note(self, finding: Finding, where: str = "") -> None:
        """Keep a finding; of several places with the same probe, the first that fails."""
        before = self.findings.get(finding.name)
        if before is None or before.ok:
            several = where and max(len(self.insides), len(self.blocks)) > 1
            told = f"{finding.evidence} (In {where}.)" if several else finding.evidence
            self.findings[finding.name] = Finding(finding.name, finding.ok, told)

    def _shape(self) -> bool:
        if not isinstance(self.out, Tensor):
            raise TypeError(f"Expected out or (out, weights), got {type(self.out).__name__}.")
        B, T, C = self.x.shape
        got, last = tuple(self.out.shape), C if self.n_head > 1 else self.out.shape[-1]
        told, ok = f"x {(B, T, C)} gives out {got}", got == (B, T, last)
        if self.weights is not None:
            got = tuple(self.weights.shape)
            told += f" and weights {got}"
            ok &= got in ((B, T, T), (B, 1, T, T), (B, self.n_head, T, T))
        wanted = f"out {(B, T, last)}, weights {(B, T, T)} or {(B, self.n_head, T, T)}"
        self._note(Finding("shape", ok, told + ("." if ok else f"; expected {wanted}.")))
        return ok

    def _look_inside(self) -> None:
        found: dict[str, Any] = {}
        why = NO_MODULE
        if isinstance(self.function, nn.Module):
            why = NO_QKV
            seed_all(0)
            with torch.no_grad():
                whole = called(self.function, self.x, self.causal)
                found, self.blocks = attentions(whole), blocks(whole)
                if has_more(self.function, found, self.blocks):
                    self.not_checked["roads and norms"] = NO_PARTS
                for where, call in found.items():
                    if call is None:
                        why = f"{where} was not called"
                        continue
                    # One of a list of heads has a share of the channels, and is a single head.
                    size = getattr(getattr(call.module, "query", None), "out_features", 0)
                    alone = where and size * self.n_head == self.x.shape[-1]
                    seed_all(0)
                    seen = look_inside(whole, where, call, 1 if alone else self.n_head)
                    if isinstance(seen, Inside):
                        self.insides[where] = seen
                    else:
                        why = f"{where or 'the module'} cannot be looked into: {seen}"
        if not self.insides or len(self.insides) < len(found):
            self.not_checked |= {"equals the reference": why, "gradients reach": why}

    def _finite(self) -> None:
        finding = probes.finite(self.out)
        if finding.ok and self.weights is not None:
            finding = probes.finite(self.weights)
        self._note(finding)

    def _steady(self) -> None:
        again = self._run(self.x, seed=1)[0]
        apart = (again - self.out).abs().nan_to_num().max().item()
        told = f"two runs on the same input differ by up to {small(apart)}."
        ok = apart == 0
        self._note(Finding("same twice", ok, "two runs on the same input agree." if ok else told))
        if not ok:
            told += " Rows sum to 1 on average only. In evaluation nothing should be dropped: use "
            told += "nn.Dropout, or F.dropout(…, training=self.training)."
            self.recognised["dropout left on"] = Finding("dropout left on", False, told)

    def _reference(self) -> None:
        for where, inside in self.insides.items():
            finding, right = _against_reference(inside, self.causal)
            self._note(finding, where)
            self.shown[where] = (inside.weights, right)
            if finding.ok:  # then these are its weights, whether it shows them or not
                self.shown[where] = (right if inside.weights is None else inside.weights, right)
                continue
            for name, (told, weights) in _recognised(inside, self.causal).items():
                self.recognised[name] = Finding(name, False, told + (where and f" (In {where}.)"))
                if inside.weights is None:
                    self.shown[where] = (weights, right)

    def _rows_and_future(self) -> None:
        if not self.insides and self.weights is not None:
            self.shown[""] = (self.weights, None)
        asked = ["rows sum to 1"] + ["no weight on the future"] * self.causal
        seen = {where: pair[0] for where, pair in self.shown.items() if pair[0] is not None}
        if not seen or len(seen) < len(self.insides):
            why = NO_WEIGHTS
            if self.insides:
                why = "it shows no weights, and they cannot be told from its output"
            self.not_checked |= dict.fromkeys(asked, why)
        for where, weights in seen.items():
            self._note(probes.rows_sum_to_one(weights), where)
            if self.causal and weights.isfinite().all():
                self._note(probes.no_weight_on_future(weights), where)
            elif self.causal:
                self.not_checked["no weight on the future"] = "there are weights that are nan"

    def _leak_and_reach(self) -> None:
        asked = ["no leak"] * self.causal + ["reach", "sequences stay apart"]
        moved = probes.moves(lambda x: self._run(x)[0], self.x, "diagnose")
        if isinstance(moved, Finding):
            self.not_checked |= dict.fromkeys(asked, NOT_FINITE)
            return
        if any(inside.hidden for inside in self.insides.values()):
            self.not_checked |= dict.fromkeys(asked, HIDDEN)
            return
        self.moved = moved
        if self.causal:
            self._note(probes.judge_leaks(moved, 1e-6))
        finding = probes.judge_reach(moved, 0.0, self.causal)
        if not finding.ok and self._too_sharp(moved):
            self.not_checked["reach"] = (
                f"{finding.evidence.removesuffix('.')}; but the right weights are below 0.000001 "
                "there: the scores are just that sharp"
            )
        else:
            self._note(finding)
        x = self.x if len(self.x) > 1 else self.x.expand(2, -1, -1)
        self._note(probes.sequences_stay_apart(lambda x: self._run(x)[0], x))

    def _mixes_nothing(self) -> bool:
        """Tell whether every output depends on its own token only."""
        if self.moved is None or not self.findings["sequences stay apart"].ok:
            return False
        return not (self.moved - self.moved.diag().diag()).any()

    def remark(self) -> str:
        """What to say where no illness has a name."""
        told = NONE_FITS
        reference = self.findings.get("equals the reference")
        if reference and reference.ok:
            told += " The attention in it is right; look at what stands around it."
        elif reference:
            told = f"{self._wrong_part()} wrong, but in no way that I know."
        if self._mixes_nothing():
            asked = ": is it an attention?" if not self.insides else "."
            told += f" It mixes no tokens at all{asked}"
        return told

    def _wrong_part(self) -> str:
        """Tell what is wrong inside, as far as the weights that were shown can tell."""
        shown = [
            (inside.weights, self.shown[where][1])
            for where, inside in self.insides.items()
            if inside.weights is not None
        ]
        if any(not _same(got, _shaped(right, got), ATOL) for got, right in shown):
            return "The scores or the mask are"
        if len(shown) == len(self.insides):
            return "The weights are right; what is made of them is"
        return "The scores, the mask or what is made of the weights is"

    def _too_sharp(self, moved: Tensor) -> bool:
        """Tell whether even right attention would hardly hear the tokens that are not heard."""
        reference = self.findings.get("equals the reference")
        if not reference or not reference.ok:
            return False
        deaf = (moved == 0).mT  # row = output, column = token
        deaf &= causal_mask(len(deaf)) if self.causal else deaf
        rights = [right.flatten(0, -3).amax(0) for _, right in self.shown.values()]
        return all(bool((right.cpu()[deaf] < 1e-6).all()) for right in rights)

    def _gradients(self) -> None:
        for where, inside in self.insides.items():
            if inside.hidden:
                self.not_checked["gradients reach"] = HIDDEN
                continue
            if not inside.out.isfinite().all():
                self.not_checked["gradients reach"] = NOT_FINITE
                continue
            seed_all(0)
            with torch.enable_grad():
                out, leaves = inside.trace()
                try:
                    finding = probes.gradients_reach(self._batch_first(out), leaves)
                except RuntimeError as error:
                    if "inplace" not in str(error):
                        raise
                    told = "none can be sent back, since numbers that it needs were changed in "
                    told += "place: write x = x + …, not x += …."
                    finding = Finding("gradients reach", False, told)
            right = self.shown[where][1]
            if not finding.ok and not (right * (1 - right)).any():
                self.not_checked["gradients reach"] = (
                    "the scores are so sharp that all weights are 0 or 1, and a softmax like that "
                    "passes no gradient on"
                )
            else:
                self._note(finding, where)

    def _roads(self) -> None:
        """Compare each block with what its four parts give when they are put together anew."""
        for where, call in self.blocks.items():
            why = "" if call else f"{where or 'the block'} was not called"
            if not self.findings["same twice"].ok:
                why = "two runs on the same input differ"
            seed_all(0)
            try:
                with torch.no_grad():
                    taken = why or take_apart(call, self.causal)
                    compared = None if isinstance(taken, str) else _against_parts(*taken)
            except Exception as error:  # parts that are called in other ways than ours
                taken, compared = f"its parts cannot be called one by one: {error}", None
            if compared is None:
                self.not_checked["roads and norms"] = str(taken).rstrip(".")
                continue
            finding, named = compared
            self._note(finding, where)
            for one in named:
                told = f"put together like this, its parts give the same numbers. {one.message}"
                told += where and f" (In {where}.)"
                self.recognised[one.name] = Finding(one.name, False, told)

    def picture(self) -> Picture | None:
        """The weights, or who hears whom where the weights look innocent and the hearing is not."""

        def failed(*names: str) -> bool:
            return any(name in self.findings and not self.findings[name].ok for name in names)

        innocent = not failed("rows sum to 1", "no weight on the future")
        if innocent and failed("no leak", "reach"):
            return _hearing_picture(self.moved, self.causal)
        drawn = [(where, *pair) for where, pair in self.shown.items() if pair[0] is not None]
        if not drawn:
            return None
        guilty = [_guilty(weights, right, self.causal) for _, weights, right in drawn]
        worst = max(range(len(drawn)), key=lambda i: int(guilty[i].sum()))
        where, weights, _ = drawn[worst]
        return _weights_picture(weights, guilty[worst], where)


def _against_reference(inside: Inside, causal: bool) -> tuple[Finding, Tensor]:
    """Compare with `F.scaled_dot_product_attention`, and give the right weights."""
    q, k, v = (split(z, inside.n_head) for z in (inside.q, inside.k, inside.v))
    out = inside.project(merge(F.scaled_dot_product_attention(q, k, v, is_causal=causal)))
    right = healthy(q, k, v, causal)[1]
    name = "equals the reference"
    if inside.out.shape != out.shape:
        shapes = f"out {tuple(inside.out.shape)}, expected {tuple(out.shape)}."
        return Finding(name, False, shapes), right
    finding = probes.matches_reference(inside.out, out, _atol(out))
    told = f"outputs: {finding.evidence}"
    if finding.ok and inside.weights is not None:
        finding = probes.matches_reference(inside.weights, _shaped(right, inside.weights), ATOL)
        told += f" Weights: {finding.evidence}"
    return Finding(name, finding.ok, told), right


def _against_parts(out: Tensor, wired: Callable) -> tuple[Finding, tuple[Miswiring, ...]]:
    """Compare what a block gave with its parts, put together rightly or in a known wrong way."""
    atol, name = _atol(out), "roads and norms"
    right = {joint: wired(joint=joint) for joint in ("pre", "post")}
    for joint, expected in right.items():
        if _same(out, expected, atol):
            told = f"those of a {joint}-norm block: its parts, put together anew, give the same "
            return Finding(name, True, f"{told}{out.numel()} numbers, within {atol:.0e}."), ()
    expected = right["pre"]
    if out.shape != expected.shape:
        shapes = f"{tuple(out.shape)}, its parts, put together anew, {tuple(expected.shape)}"
        told = f"it gives {shapes}."
        return Finding(name, False, told), ()
    named = next((some for some, how in miswired() if _same(out, wired(**how), atol)), ())
    pre, post = (small((out - z).abs().max().item()) for z in right.values())
    told = f"its parts, put together anew, give numbers that are up to {pre} away as a pre-norm "
    told += f"block, up to {post} as a post-norm block"
    told += "." if named else ", and none of the known ways of going wrong gives the same."
    return Finding(name, False, told), named


def _recognised(inside: Inside, causal: bool) -> dict[str, tuple[str, Tensor]]:
    """The illness, or the two, that give just what the module gave: name -> evidence, weights."""
    x, n_head, qkv = inside.x, inside.n_head, (inside.q, inside.k, inside.v)
    right = in_heads(partial(healthy, causal=causal), *qkv, n_head)
    singles = (((one,), one.compute) for one in illnesses_of(x, n_head, causal))
    pairs = (((one, other), both) for one, other, both in pairs_of(x, n_head, causal))
    for illnesses, compute in itertools.chain(singles, pairs):
        try:
            out, weights = compute(*qkv)
        except RuntimeError:  # sizes with which this mistake cannot be made
            continue
        if _gave(inside, out, weights):
            told = "this mistake gives" if len(illnesses) == 1 else "the two mistakes together give"
            told += f" the same numbers; right {_told_off((out, weights), right)}."
            return {one.name: (f"{told} {one.message}", weights) for one in illnesses}
    return {}


def _gave(inside: Inside, out: Tensor, weights: Tensor) -> bool:
    """Tell whether the module gave this output and, if it showed any, these weights."""
    if out.shape[-1] == inside.v.shape[-1]:
        out = inside.project(out)
    if not _same(inside.out, out, _atol(out)):
        return False
    given = inside.weights
    return given is None or _same(given, _shaped(weights, given), ATOL)


def _told_off(found: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> str:
    """How far the weights are from the right ones; or the outputs, where the weights are right."""
    for what, a, b in zip(("weights", "outputs"), found[::-1], right[::-1], strict=True):
        if a.shape != b.shape:
            return f"{what} have the shape {tuple(b.shape)}, not {tuple(a.shape)}"
        apart = (a - b).abs()
        if not apart.isfinite().all():
            lost = int((~apart.isfinite()).sum())
            return f"{what} are no nan or inf, as {lost} of {apart.numel()} are here"
        if apart.max() > ATOL:
            return f"{what} are up to {small(apart.max().item())} away"
    return "weights and outputs are close by"


def _same(a: Tensor, b: Tensor, atol: float) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=atol, equal_nan=True)


def _atol(out: Tensor) -> float:
    """What rounding may do to numbers of this size: 1e-5, and ten times that for each digit."""
    largest = out.abs().nan_to_num().max().item()
    return ATOL * 10.0 ** max(0, math.ceil(math.log10(largest or 1.0)) - 1)


def _shaped(weights: Tensor, like: Tensor) -> Tensor:
    """Weights (B, n_head, T, T) as somebody gave them: those of a lone head, or their mean."""
    return weights.mean(1) if like.dim() == 3 else weights


def _fitting(exam: Exam) -> tuple[str, ...]:
    """The known illnesses with which the same probes pass and fail.

    Where queries, keys and values were found all of them have been compared, and none was it.
    """
    B, T, C = exam.x.shape
    if exam.insides or C % exam.n_head or not exam.findings["shape"].ok or exam._mixes_nothing():
        return ()
    found, seen = [], exam.pattern()
    for illness in illnesses_of(exam.x, exam.n_head, exam.causal):
        seed_all(0)
        patient = Patient(illness.name, C, exam.n_head, exam.causal)
        shows = partial(patient, return_weights=exam.weights is not None)
        pattern = Exam(shows, _random(B, T, C), exam.n_head, exam.causal).pattern()
        pattern["roads and norms"] = True  # an attention has none that could be wrong
        if seen == {name: ok for name, ok in pattern.items() if name in seen}:
            found.append(illness.name)
    ranks = {name: rank for rank, name in enumerate(LIKELIEST)}
    return tuple(sorted(found, key=lambda name: ranks.get(name, len(ranks))))


def _guilty(weights: Tensor, right: Tensor | None, causal: bool) -> Tensor:
    """Which weights are wrong: not the right ones, or, where those are not known, impossible."""
    if right is not None and (shaped := _shaped(right, weights)).shape == weights.shape:
        return ~((weights - shaped).abs() <= ATOL)
    bad = ~weights.isfinite()
    bad |= ~((weights.sum(-1, keepdim=True) - 1).abs() <= ATOL)
    if causal:
        future = ~causal_mask(weights.shape[-1]).to(weights.device)
        bad = (bad & ~future) | ((weights != 0) & future)
    return bad


def _weights_picture(weights: Tensor, guilty: Tensor, where: str) -> Picture:
    sheets = guilty.flatten(0, -3)
    worst = int(sheets.sum((-2, -1)).argmax())
    place = torch.unravel_index(torch.tensor(worst), guilty.shape[:-2])
    named = [f"{what} {int(i)}" for what, i in zip(("sequence", "head"), place, strict=False)]
    title = f"Weights, {', '.join(named)}" + (f", in {where}" if where else "")
    cells = [tuple(cell) for cell in sheets[worst].nonzero().tolist()]
    title += "; outlined: wrong" if cells else ""
    return heatmap(weights.flatten(0, -3)[worst], title=title, outline=cells)


def _hearing_picture(moved: Tensor, causal: bool) -> Picture:
    heard = (moved > 1e-6).mT  # row = output, column = token that was replaced
    allowed = causal_mask(len(heard)) if causal else torch.ones_like(heard)
    cells = [tuple(cell) for cell in (heard != allowed).nonzero().tolist()]
    return heatmap(
        heard.float(),
        rows="output",
        cols="token that was replaced",
        title="1 = this output hears this token; outlined: wrong",
        fmt=".0f",
        outline=cells,
    )


def _n_head(function: Callable, C: int, n_head: int) -> int:
    for name, size in (("C", C), ("n_head", n_head)):
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {size!r}.")
    own = _own_n_head(function)
    known = {own} if own else set()
    if not own and isinstance(function, nn.Module):  # those inside; single heads may be in a list
        known = {_own_n_head(part) for part in function.modules()} - {None, 1}
    if known and n_head not in {1, *known}:
        told = " and ".join(map(str, sorted(known)))
        raise ValueError(f"The module has {told} heads, but diagnose was told n_head = {n_head}.")
    return own or n_head


def _own_n_head(part: Any) -> int | None:
    own = getattr(part, "n_head", getattr(part, "num_heads", None))
    return own if isinstance(own, int) else None


def _misfit(function: Callable, C: int) -> str:
    """Why a module may have refused x (B, T, C); empty when nothing stands out."""
    named = list(function.named_modules()) if isinstance(function, nn.Module) else []
    kinds = (nn.Linear, nn.MultiheadAttention)
    name, first = next(
        ((name, part) for name, part in named if isinstance(part, kinds)), ("", None)
    )
    size = getattr(first, "in_features", getattr(first, "embed_dim", C))
    if size != C:
        who = f"The module (its layer {name})" if name else "The module"
        return f"{who} reads C = {size} channels, but diagnose was told C = {C}."
    for name, part in named:
        if name and isinstance(part, nn.MultiheadAttention) and not part.batch_first:
            return f"{name}, an nn.MultiheadAttention, {TIME_FIRST}."
    return ""


def _example(C: int, n_head: int, function: Callable) -> Tensor:
    """A random batch, of sizes that cannot be taken for one another."""
    taken = {C, C // n_head, (C // n_head) ** 2, n_head}
    T = next(T for T in (8, 7, 6, 5, 4) if T not in taken)
    B = next(B for B in (3, 2, 4, 5) if B not in taken | {T})
    x = _random(B, T, C)
    some = next(function.parameters(), x) if isinstance(function, nn.Module) else x
    return x.to(some)


def _random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def _refuse_bad_example(example: Any, C: int) -> Tensor:
    if not isinstance(example, Tensor) or not example.is_floating_point():
        raise TypeError(f"example must be a tensor of floats, got {probes.described(example)}.")
    if example.dim() != 3 or example.shape[-1] != C or example.shape[1] < 2:
        raise ValueError(
            f"example must be (B, T, C) with C = {C} and T of at least 2, "
            f"got {tuple(example.shape)}."
        )
    return example.detach()
