"""`diagnose` runs all probes on an attention or a block, and names its bug.

A module is inspected: its queries, keys and values are found, and compared with every known bug
(`comparison`); the one that gives the same numbers as the module is its bug. Where they cannot be
found, the probes that passed and failed are compared with those of every known bug.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from helpers.attention import causal_mask
from helpers.clinic import probes
from helpers.clinic.bugs import LIKELIEST, BrokenAttention, OutAndWeights, bugs_for
from helpers.clinic.comparison import (
    compare_with_block,
    compare_with_pytorch,
    recognise_bugs,
    same_weights,
    wrong_weights,
)
from helpers.clinic.inspection import (
    BLOCK_PARTS,
    NOT_BATCH_FIRST,
    ROLES,
    AttentionInternals,
    Call,
    attention_calls,
    block_calls,
    evaluation_mode,
    has_unknown_parts,
    inspect_attention,
    inspect_block,
    out_and_weights,
    self_attention_call,
)
from helpers.clinic.probes import Finding
from helpers.clinic.report import Report, dependence_heatmap, weights_heatmap
from helpers.clinic.wiring import WiringBug
from helpers.numbers import joined, small
from helpers.pictures.base import Picture
from helpers.torch_settings import one_thread, seed_all

PROBES = (  # in the order in which they are reported
    "shape",
    "finite",
    "same twice",
    "rows sum to 1",
    "no weight on the future",
    "no leak",
    "reach",
    "sequences stay apart",
    "gradients reach",
    "equals the reference",
    "residuals and norms",
)
NO_WEIGHTS = "it shows no weights; return (out, weights) to show them"
NO_MODULE = "no queries, keys and values in sight; hand over the module that makes them"
NO_QKV = (
    f"I look for three Linear layers called {joined(ROLES)}, or for nn.MultiheadAttention; "
    "rename yours, or split one that makes all three"
)
NO_PARTS = (
    f"there is more than an attention, and of a block I look for parts called "
    f"{joined(BLOCK_PARTS)}; rename yours"
)
ZERO_PROJECTION = "the output projection is zero throughout and hides what lies before it"
NOT_FINITE = "there are outputs that are nan or inf"
CALLED_WITH_MASK = (
    "Called with attn_mask=~causal_mask(T); without a mask of yours it would attend to the future."
)


def diagnose(
    module_or_callable: Callable,
    *,
    C: int,
    n_head: int = 1,
    causal: bool = True,
    example: torch.Tensor | None = None,
) -> Report:
    """Run all probes on an attention or a block, and name its bug.

    `Head`, `MultiHeadAttention`, `nn.MultiheadAttention` and any module with Linear layers `query`,
    `key` and `value` are inspected, also inside a larger module such as a block. Then a wrong scale
    is detected too, and the bug is named for certain. (What a module does between its queries and
    its scores, such as a rotation by position, is taken for a bug.) A block of `attention`,
    `feed_forward`, `norm_1` and `norm_2` is compared with a pre-norm and a post-norm block of the
    same parts. Of anything else the failed probes are reported, and all known bugs that fit them,
    the likeliest first. Modules are examined in evaluation mode and left as they were; a bare
    `nn.MultiheadAttention` is called with a causal mask.

    Parameters
    ----------
    module_or_callable
        Takes x (B, T, C); returns out (B, T, anything) or (out, weights), with weights (B, T, T)
        or (B, n_head, T, T).
    C
        Channels of x.
    n_head
        Number of heads; not needed for a module that has its own `n_head`.
    causal
        Whether every token should attend to itself and those before it only, or to all.
    example
        (B, T, C) to run it on, T of at least 2; random numbers when left out.

    Returns
    -------
    Report
        With `status` "healthy", "broken" or "incomplete", `findings`, `not_checked` (name -> why)
        and `bugs`. Prints as text; a notebook shows a heatmap too, with the wrong cells outlined.

    Raises
    ------
    TypeError, ValueError
        When there is nothing to call, or the sizes do not fit.

    Examples
    --------
    >>> from helpers.attention import MultiHeadAttention
    >>> diagnose(MultiHeadAttention(32, 4), C=32, n_head=4).status
    'healthy'
    >>> diagnose(lambda x: x, C=32).bugs
    ()
    """
    function = module_or_callable
    _refuse_uncallable(function)
    n_head = _number_of_heads(function, C, n_head)
    x = _example(C, n_head, function) if example is None else _refuse_bad_example(example, C)
    with evaluation_mode(function), torch.random.fork_rng(devices=[]), one_thread():
        exam = Examination(function, x, n_head, causal)
        bugs = exam.recognised or (_bugs_that_fit(exam) if exam.failed else ())
    called_with_mask = causal and isinstance(function, nn.MultiheadAttention)
    return Report(
        status="broken" if exam.failed else "incomplete" if exam.not_checked else "healthy",
        findings=(*exam.recognised.values(), *_in_order(exam.findings).values()),
        not_checked=_in_order(exam.not_checked),
        bugs=tuple(bugs),
        recognised=bool(exam.recognised),
        remark="" if bugs else exam.remark(),
        note=CALLED_WITH_MASK if called_with_mask else "",
        draw=exam.picture,
    )


def _in_order(by_probe: dict[str, Any]) -> dict[str, Any]:
    return {name: by_probe[name] for name in PROBES if name in by_probe}


class Examination:
    """All probes, run on one attention or block: what they found, or why they could not run.

    Attributes
    ----------
    findings, not_checked
        Name of a probe -> what it found, or why it did not run.
    recognised
        Name of a bug -> the evidence, where the same numbers were computed with it.
    internals
        Name of an attention in the module ("" for itself) -> what it computed.
    blocks
        Name of a block in the module -> how it is called.
    weights
        Name of an attention -> its weights, where they are known, and the right ones.
    changes
        (T, T), [j, t]: how much output t changes when token j is replaced.
    """

    def __init__(self, function: Callable, x: Tensor, n_head: int, causal: bool) -> None:
        self.function, self.x, self.n_head, self.causal = function, x, n_head, causal
        self.findings: dict[str, Finding] = {}
        self.not_checked: dict[str, str] = {}
        self.recognised: dict[str, Finding] = {}
        self.internals: dict[str, AttentionInternals] = {}
        self.blocks: dict[str, Call | None] = {}
        self.weights: dict[str, tuple[Tensor | None, Tensor | None]] = {}
        self.changes: Tensor | None = None

        try:
            self.out, self.own_weights = self._run(x)
        except Exception as error:
            if why := _why_refused(function, x.shape[-1]):
                raise ValueError(why) from error
            raise
        if self._check_shape():
            self._inspect()
            self._check_finite()
            self._check_same_twice()
            self._compare_with_reference()
            self._check_weights()
            self._check_dependence()
            self._check_gradients()
            self._check_residuals_and_norms()

    @property
    def failed(self) -> bool:
        """Whether any probe failed."""
        return not all(finding.ok for finding in self.findings.values())

    def passed(self) -> dict[str, bool]:
        """Name of each probe that ran -> whether it passed."""
        return {name: finding.ok for name, finding in self.findings.items()}

    def _run(self, x: Tensor, seed: int = 0) -> OutAndWeights:
        seed_all(seed)
        with torch.no_grad():
            if not isinstance(self.function, nn.Module):
                return out_and_weights(self.function(x.clone()))
            call = self_attention_call(self.function, x.clone(), self.causal)
            out, weights = call.run_with_weights()
        return self._batch_first(out), weights

    def _run_out(self, x: Tensor) -> Tensor:
        return self._run(x)[0]

    def _batch_first(self, out: Tensor) -> Tensor:
        pytorchs = isinstance(self.function, nn.MultiheadAttention)
        return out.transpose(0, 1) if pytorchs and not self.function.batch_first else out

    def _add(self, finding: Finding, where: str = "") -> None:
        """Keep a finding; of the same probe in several places, the first that fails."""
        before = self.findings.get(finding.name)
        if before is None or before.ok:
            several = where and max(len(self.internals), len(self.blocks)) > 1
            evidence = f"{finding.evidence} (In {where}.)" if several else finding.evidence
            self.findings[finding.name] = Finding(finding.name, finding.ok, evidence)

    def _recognise(self, bug: str, evidence: str, where: str = "") -> None:
        """Keep that the module gives the same numbers as with a known bug."""
        evidence += f" (In {where}.)" if where else ""
        self.recognised[bug] = Finding(bug, False, evidence)

    # ------------------------------------------------------------ the probes, one after another

    def _check_shape(self) -> bool:
        if not isinstance(self.out, Tensor):
            raise TypeError(f"Expected out or (out, weights), got {type(self.out).__name__}.")
        B, T, C = self.x.shape
        out, last = tuple(self.out.shape), C if self.n_head > 1 else self.out.shape[-1]
        ok = out == (B, T, last)
        evidence = f"x {(B, T, C)} gives out {out}"
        if self.own_weights is not None:
            weights = tuple(self.own_weights.shape)
            ok &= weights in ((B, T, T), (B, 1, T, T), (B, self.n_head, T, T))
            evidence += f" and weights {weights}"
        expected = f"out {(B, T, last)}, weights {(B, T, T)} or {(B, self.n_head, T, T)}"
        evidence += "." if ok else f"; expected {expected}."
        self._add(Finding("shape", ok, evidence))
        return ok

    def _inspect(self) -> None:
        calls: dict[str, Call | None] = {}
        why = NO_MODULE
        if isinstance(self.function, nn.Module):
            why = NO_QKV
            seed_all(0)
            with torch.no_grad():
                whole = self_attention_call(self.function, self.x, self.causal)
                calls, self.blocks = attention_calls(whole), block_calls(whole)
                if has_unknown_parts(self.function, calls, self.blocks):
                    self.not_checked["residuals and norms"] = NO_PARTS
                for name, call in calls.items():
                    if call is None:
                        why = f"{name} was not called"
                        continue
                    seed_all(0)
                    found = inspect_attention(whole, name, call, self._heads_of(name, call))
                    if isinstance(found, AttentionInternals):
                        self.internals[name] = found
                    else:
                        why = f"{name or 'the module'} cannot be inspected: {found}"
        if not self.internals or len(self.internals) < len(calls):
            self.not_checked |= {"equals the reference": why, "gradients reach": why}

    def _heads_of(self, name: str, call: Call) -> int:
        """One of a list of heads has a share of the channels, and is a single head."""
        head_size = getattr(getattr(call.module, "query", None), "out_features", 0)
        single = name and head_size * self.n_head == self.x.shape[-1]
        return 1 if single else self.n_head

    def _check_finite(self) -> None:
        finding = probes.finite(self.out)
        if finding.ok and self.own_weights is not None:
            finding = probes.finite(self.own_weights)
        self._add(finding)

    def _check_same_twice(self) -> None:
        again = self._run(self.x, seed=1)[0]
        largest = (again - self.out).abs().nan_to_num().max().item()
        if largest == 0:
            self._add(Finding("same twice", True, "two runs on the same input agree."))
            return
        evidence = f"two runs on the same input differ by up to {small(largest)}."
        self._add(Finding("same twice", False, evidence))
        evidence += " Rows sum to 1 on average only. In evaluation nothing should be dropped: use "
        evidence += "nn.Dropout, or F.dropout(…, training=self.training)."
        self._recognise("dropout left on", evidence)

    def _compare_with_reference(self) -> None:
        for name, seen in self.internals.items():
            finding, right = compare_with_pytorch(seen, self.causal)
            self._add(finding, name)
            weights = seen.weights
            if finding.ok and weights is None:  # then the right weights are its weights
                weights = right
            elif not finding.ok and (found := recognise_bugs(seen, self.causal)):
                bugs, bug_weights = found
                for bug, evidence in bugs.items():
                    self._recognise(bug, evidence, name)
                weights = bug_weights if weights is None else weights
            self.weights[name] = (weights, right)

    def _check_weights(self) -> None:
        if not self.internals and self.own_weights is not None:
            self.weights[""] = (self.own_weights, None)
        known = {
            name: weights for name, (weights, _) in self.weights.items() if weights is not None
        }
        if not known or len(known) < len(self.internals):
            why = NO_WEIGHTS
            if self.internals:
                why = "it shows no weights, and they cannot be told from its output"
            asked = ["rows sum to 1"] + ["no weight on the future"] * self.causal
            self.not_checked |= dict.fromkeys(asked, why)
        for name, weights in known.items():
            self._add(probes.rows_sum_to_one(weights), name)
            if self.causal and weights.isfinite().all():
                self._add(probes.no_weight_on_future(weights), name)
            elif self.causal:
                self.not_checked["no weight on the future"] = "there are weights that are nan"

    def _check_dependence(self) -> None:
        asked = ["no leak"] * self.causal + ["reach", "sequences stay apart"]
        changes = probes.output_changes(self._run_out, self.x, "diagnose")
        if isinstance(changes, Finding):
            self.not_checked |= dict.fromkeys(asked, NOT_FINITE)
            return
        if any(seen.zero_projection for seen in self.internals.values()):
            self.not_checked |= dict.fromkeys(asked, ZERO_PROJECTION)
            return
        self.changes = changes
        if self.causal:
            self._add(probes.judge_leaks(changes, 1e-6))
        finding = probes.judge_reach(changes, 0.0, self.causal)
        if not finding.ok and self._right_weights_vanish():
            self.not_checked["reach"] = (
                f"{finding.evidence.removesuffix('.')}; but the right weights are below 0.000001 "
                "there: the scores are just that sharp"
            )
        else:
            self._add(finding)
        x = self.x if len(self.x) > 1 else self.x.expand(2, -1, -1)
        self._add(probes.sequences_stay_apart(self._run_out, x))

    def _right_weights_vanish(self) -> bool:
        """Tell whether the right weights are nearly 0 wherever an output does not change."""
        reference = self.findings.get("equals the reference")
        if not reference or not reference.ok:
            return False
        unchanged = (self.changes == 0).mT  # row = output, column = token
        unchanged &= causal_mask(len(unchanged)) if self.causal else unchanged
        largest = [right.flatten(0, -3).amax(0).cpu() for _, right in self.weights.values()]
        return all(
            weights.shape == unchanged.shape and bool((weights[unchanged] < 1e-6).all())
            for weights in largest
        )

    def _check_gradients(self) -> None:
        for name, seen in self.internals.items():
            if seen.zero_projection:
                self.not_checked["gradients reach"] = ZERO_PROJECTION
                continue
            if not seen.out.isfinite().all():
                self.not_checked["gradients reach"] = NOT_FINITE
                continue
            finding = self._gradients_reach(seen)
            right = self.weights[name][1]
            if not finding.ok and not (right * (1 - right)).any():
                self.not_checked["gradients reach"] = (
                    "the scores are so sharp that all weights are 0 or 1, and a softmax like that "
                    "passes no gradient on"
                )
            else:
                self._add(finding, name)

    def _gradients_reach(self, seen: AttentionInternals) -> Finding:
        seed_all(0)
        with torch.enable_grad():
            out, leaves = seen.recompute()
            try:
                return probes.gradients_reach(self._batch_first(out), leaves)
            except RuntimeError as error:
                if "inplace" not in str(error):
                    raise
        evidence = "none can be computed, since numbers that backpropagation needs were changed in "
        evidence += "place: write x = x + …, not x += …."
        return Finding("gradients reach", False, evidence)

    def _check_residuals_and_norms(self) -> None:
        for name, call in self.blocks.items():
            found = self._compare_block(name, call)
            if isinstance(found, str):
                self.not_checked["residuals and norms"] = found.rstrip(".")
                continue
            finding, bugs = found
            self._add(finding, name)
            for bug in bugs:
                evidence = "a block of the same parts with this bug gives the same numbers."
                self._recognise(bug.name, f"{evidence} {bug.message}", name)

    def _compare_block(
        self, name: str, call: Call | None
    ) -> tuple[Finding, tuple[WiringBug, ...]] | str:
        """Compare a block with one of the same parts, or say why that cannot be done."""
        if not self.findings["same twice"].ok:
            return "two runs on the same input differ"
        if call is None:
            return f"{name or 'the block'} was not called"
        seed_all(0)
        try:
            with torch.no_grad():
                block = inspect_block(call, self.causal)
                return block if isinstance(block, str) else compare_with_block(block)
        except Exception as error:  # parts that are called in other ways than ours
            return f"its parts cannot be called one by one: {error}"

    # ------------------------------------------------------------ what follows from all of them

    def mixes_no_tokens(self) -> bool:
        """Tell whether every output depends on its own token only."""
        if self.changes is None or not self.findings["sequences stay apart"].ok:
            return False
        return not (self.changes - self.changes.diag().diag()).any()

    def remark(self) -> str:
        """What to say about failed probes where no known bug fits."""
        remark = "No known bug fits."
        reference = self.findings.get("equals the reference")
        if reference and reference.ok:
            remark += " The attention in it is right; look at what stands around it."
        elif reference:
            remark = f"{self._wrong_part()} wrong, but no known bug fits."
        if self.mixes_no_tokens():
            asked = ": is it an attention?" if not self.internals else "."
            remark += f" It mixes no tokens at all{asked}"
        return remark

    def _wrong_part(self) -> str:
        """What is wrong inside, as far as the weights that the module shows can tell."""
        shown = [
            (seen.weights, self.weights[name][1])
            for name, seen in self.internals.items()
            if seen.weights is not None
        ]
        if not all(same_weights(given, right) for given, right in shown):
            return "The scores or the mask are"
        if len(shown) == len(self.internals):
            return "The weights are right; what is computed from them is"
        return "The scores, the mask or what is computed from the weights is"

    def picture(self) -> Picture | None:
        """The weights; or which output depends on which token, where only that looks wrong."""

        def failed(*names: str) -> bool:
            return any(name in self.findings and not self.findings[name].ok for name in names)

        weights_failed = failed("rows sum to 1", "no weight on the future")
        if failed("no leak", "reach") and not weights_failed:
            return dependence_heatmap(self.changes, self.causal)
        drawn = [
            (weights, wrong_weights(weights, right, self.causal), name)
            for name, (weights, right) in self.weights.items()
            if weights is not None
        ]
        if not drawn:
            return None
        return weights_heatmap(*max(drawn, key=lambda one: int(one[1].sum())))


# ---------------------------------------------------------------- bugs that fit the failed probes


def _bugs_that_fit(exam: Examination) -> tuple[str, ...]:
    """The known bugs with which the same probes pass and fail, the likeliest first.

    None where queries, keys and values were found: there all bugs have been computed already.
    """
    B, T, C = exam.x.shape
    shape_ok = exam.findings["shape"].ok
    if exam.internals or C % exam.n_head or not shape_ok or exam.mixes_no_tokens():
        return ()
    found, passed = [], exam.passed()
    for bug in bugs_for(exam.x, exam.n_head, exam.causal):
        seed_all(0)
        broken = BrokenAttention(bug.name, C, exam.n_head, exam.causal)
        function = partial(broken, return_weights=exam.own_weights is not None)
        fitting = Examination(function, _random(B, T, C), exam.n_head, exam.causal).passed()
        fitting["residuals and norms"] = True  # an attention has none that could be wrong
        if passed == {name: ok for name, ok in fitting.items() if name in passed}:
            found.append(bug.name)
    ranks = {name: rank for rank, name in enumerate(LIKELIEST)}
    return tuple(sorted(found, key=lambda name: ranks.get(name, len(ranks))))


# ---------------------------------------------------------------- the arguments of `diagnose`


def _refuse_uncallable(function: Any) -> None:
    if callable(function) and not isinstance(function, type):
        return
    got = f"the class {function.__name__}" if callable(function) else probes.described(function)
    raise TypeError(
        f"diagnose takes a module or a function x -> out, got {got}. Hand over what can be "
        "called with x: the module itself, not its class or what it returned."
    )


def _number_of_heads(function: Callable, C: int, n_head: int) -> int:
    for name, size in (("C", C), ("n_head", n_head)):
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {size!r}.")
    own = _own_n_head(function)
    known = {own} if own else set()
    if not own and isinstance(function, nn.Module):  # those inside; single heads may be in a list
        known = {_own_n_head(part) for part in function.modules()} - {None, 1}
    if known and n_head not in {1, *known}:
        heads = " and ".join(map(str, sorted(known)))
        raise ValueError(f"The module has {heads} heads, but diagnose was told n_head = {n_head}.")
    return own or n_head


def _own_n_head(part: Any) -> int | None:
    own = getattr(part, "n_head", getattr(part, "num_heads", None))
    return own if isinstance(own, int) else None


def _example(C: int, n_head: int, function: Callable) -> Tensor:
    """A random batch whose sizes B, T, C, n_head and head_size all differ."""
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


def _why_refused(function: Callable, C: int) -> str:
    """Why a module may have refused x (B, T, C); empty when nothing stands out."""
    named = list(function.named_modules()) if isinstance(function, nn.Module) else []
    kinds = (nn.Linear, nn.MultiheadAttention)
    name, first = next(
        ((name, part) for name, part in named if isinstance(part, kinds)), ("", None)
    )
    size = getattr(first, "in_features", getattr(first, "embed_dim", C))
    if size != C:
        layer = f"The module (its layer {name})" if name else "The module"
        return f"{layer} reads C = {size} channels, but diagnose was told C = {C}."
    for name, part in named:
        if name and isinstance(part, nn.MultiheadAttention) and not part.batch_first:
            return f"{name}, an nn.MultiheadAttention, {NOT_BATCH_FIRST}."
    return ""
