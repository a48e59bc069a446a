"""All probes, run on one attention or block, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from helpers.attention import causal_mask
from helpers.clinic import gradients as grad
from helpers.clinic import probes
from helpers.clinic.behaviour import behaviour, fitting_bugs
from helpers.clinic.blocks import (
    BlockInternals,
    block_calls,
    check_parts,
    inspected_block,
    random_norms,
    with_own_names,
)
from helpers.clinic.calls import (
    Call,
    may_take_context,
    mode_of_parts,
    out_and_weights,
    part_of,
    self_attention_call,
)
from helpers.clinic.comparison import (
    Comparison,
    cannot_be_judged,
    compare_attention,
    compare_with_block,
    in_form_of,
    same_weights,
    wrong_weights,
)
from helpers.clinic.crashes import NOT_RESHAPE, WRITE_RESHAPE
from helpers.clinic.heads import OF_A_SLICE, compare_heads, in_one_list, slices_read
from helpers.clinic.heads import PROBE as HEADS
from helpers.clinic.inline import NOT_REBUILT
from helpers.clinic.inspection import (
    NOT_BATCH_FIRST,
    AttentionInternals,
    attention_calls,
    attention_of,
    has_unknown_parts,
    inspect_attention,
    parts_beside,
)
from helpers.clinic.lists import InList
from helpers.clinic.module_bugs import ACROSS_SEQUENCES
from helpers.clinic.names import (
    block_part_names,
    missing_block_parts,
    own_head_count,
    projection_name,
    role_names,
)
from helpers.clinic.precision import only_rounded
from helpers.clinic.probes import Finding
from helpers.clinic.readings import may_be_meant
from helpers.clinic.report import dependence_heatmap, weights_heatmap
from helpers.clinic.wiring import WiringBug
from helpers.numbers import joined, listed, small
from helpers.pictures.base import Picture
from helpers.pictures.matrix import MOST
from helpers.torch_settings import seed_all

PROBES = (  # in the order in which they are reported
    "runs",
    "finite input and parameters",
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
    HEADS,
    "residuals and norms",
)
MOST_TOKENS = 16  # that are replaced in a long example
NO_WEIGHTS = "it shows no weights; return (out, weights) to show them"
NO_MODULE = "no queries, keys and values in sight; hand over the module that makes them"
NO_ATTENTION = (
    "I find no layers of queries, keys and values, neither by the usual names (query, key and "
    "value, q_proj, W_query, c_attn and the like) nor by what they do"
)
NO_PARTS = "there is more than an attention; of the parts of a block {}; rename yours"
ZERO_PROJECTION = "the output projection is zero throughout and hides what lies before it"
NOT_FINITE = "there are outputs that are nan or inf"
ONE_TOKEN = "the example has a single token"
DETACHED = (
    "The numbers are right, but no gradient arrives at {}: detach(), torch.no_grad() or .data cut "
    "the graph, and what gets no gradient does not learn. Leave it out."
)
IN_LIST = (
    "{} are in a Python {}, so they are no parameters of this module, and no optimiser will train "
    "them: {}."
)
NO_OPTIMISER = "parameters() does not contain the {}, so no optimiser uses their gradients."


class Examination:
    """All probes, run on one attention or block: what they found, or why they could not run.

    Attributes
    ----------
    findings, not_checked
        Name of a probe -> what it found, or why it did not run.
    different
        Name of a probe -> in what the module differs from the textbook; a bug or on purpose.
    places
        Name of a probe or a bug -> in which attentions or blocks, and the evidence there.
    recognised
        Name of a bug -> the evidence, where the same numbers were computed with it.
    on_purpose
        Names of those among `recognised` that some models have on purpose.
    attentions
        Name of an attention in the module ("" for itself) -> how it is called.
    internals
        Name of an attention -> what it computed.
    blocks
        Name of a block in the module -> how it is called.
    weights
        Name of an attention -> its weights, where they are known, and the right ones.
    changes
        (T, T), [j, t]: how much output t changes when token j is replaced.
    """

    def __init__(
        self,
        function: Callable,
        x: Tensor,
        n_head: int,
        causal: bool,
        try_heads: bool = False,
        in_lists: tuple[InList, ...] = (),
    ) -> None:
        self.function, self.x, self.n_head, self.causal = function, x, n_head, causal
        self.try_heads, self.in_lists = try_heads, in_lists
        self.findings: dict[str, Finding] = {}
        self.places: dict[str, list[tuple[str, str]]] = {}
        self.not_checked: dict[str, str] = {}
        self.different: dict[str, str] = {}
        self.recognised: dict[str, Finding] = {}
        self.on_purpose: set[str] = set()
        self.attentions: dict[str, Call | None] = {}
        self.internals: dict[str, AttentionInternals] = {}
        self.compared: dict[str, Comparison] = {}
        self.blocks: dict[str, Call | None] = {}
        self.weights: dict[str, tuple[Tensor | None, Tensor | None]] = {}
        self.changes: Tensor | None = None
        self.not_batch_first = ""
        self.unused: list[str] = []

        self.out, self.own_weights = self.run(x)
        if self._check_shape():
            self._inspect()
            self._check_finite()
            self._check_input_unchanged()
            self._check_same_twice()
            self._compare_with_reference()
            self._check_weights()
            self._check_dependence()
            self._check_training_mode()
            self._check_what_heads_read()
            self._check_heads()
            self._check_residuals_and_norms()
            self._check_parts()
            self._check_gradients()
            self._check_lists()
            self._judge_differences()
            self._tell_each_probe_once()
            self._tell_places()

    @property
    def failed(self) -> bool:
        """Whether any probe failed, or a bug was recognised."""
        return bool(self.bugs) or not all(finding.ok for finding in self.findings.values())

    @property
    def bugs(self) -> tuple[str, ...]:
        """The names of the recognised bugs, without what some models have on purpose."""
        return tuple(name for name in self.recognised if name not in self.on_purpose)

    @property
    def explained(self) -> bool:
        """Whether what differs from the textbook formula is a known variant of it."""
        return not any(one.unexplained for one in self.compared.values())

    @property
    def zero_projection(self) -> bool:
        """Whether all weights of an output projection are 0, in an attention or beside it."""
        others = parts_beside(self.function, self.attentions, self.blocks) if self.internals else {}
        beside = [one.weight for one in others.values() if isinstance(one, nn.Linear)]
        inside = any(seen.zero_projection for seen in self.internals.values())
        return inside or (len(others) == 1 and not all(bool(own.any()) for own in beside))

    def passed(self) -> dict[str, bool]:
        """Name of each probe that ran -> whether it passed."""
        return {name: finding.ok for name, finding in self.findings.items()}

    def run(self, x: Tensor, seed: int = 0) -> tuple[Tensor, Tensor | None]:
        """The output for x, (B, T, anything), and the weights if they are shown."""
        seed_all(seed)
        with torch.no_grad():
            if isinstance(self.function, nn.Module):
                call = self_attention_call(self.function, x.clone(), self.causal)
                out, weights = call.run_with_weights()
            else:
                out, weights = out_and_weights(self.function(x.clone()))
        shows_weights = weights is not None and weights.shape[-2:] == (x.shape[1],) * 2
        return self._batch_first(out), weights if shows_weights else None

    def _run_out(self, x: Tensor) -> Tensor:
        return self.run(x)[0]

    def _batch_first(self, out: Tensor) -> Tensor:
        pytorchs = isinstance(self.function, nn.MultiheadAttention)
        return out.transpose(0, 1) if pytorchs and not self.function.batch_first else out

    def _whole(self) -> Call:
        return self_attention_call(self.function, self.x, self.causal)

    def _add(self, finding: Finding, where: str = "") -> None:
        """Keep a finding; of the same probe in several places, the first that fails."""
        before = self.findings.get(finding.name)
        if before is None or (before.ok and not finding.ok):
            self.findings[finding.name], self.places[finding.name] = finding, []
        if self.findings[finding.name].ok == finding.ok:
            self.places[finding.name].append((where, finding.evidence))

    def _recognise(self, bug: str, evidence: str, where: str = "") -> None:
        """Keep that the module gives the same numbers as with a known bug."""
        self.recognised.setdefault(bug, Finding(bug, False, evidence))
        self.places.setdefault(bug, []).append((where, evidence))

    def tell_crash(self, finding: Finding, bug: str, message: str) -> None:
        """Tell the error of a view, after all else was examined with reshape in its place."""
        right = not self.failed and not self.different
        if not self.bugs:
            self._recognise(bug, f"{message} {WRITE_RESHAPE if right else NOT_RESHAPE}")
        self._add(finding)

    def _tell_places(self) -> None:
        """Say at the end of each finding in which attentions or blocks it is so."""
        for found in (self.findings, self.recognised):
            for name, finding in found.items():
                if where := self._places_in_words(name, finding.ok):
                    found[name] = replace(finding, evidence=f"{finding.evidence} (In {where}.)")

    def _places_in_words(self, name: str, ok: bool) -> str:
        """Where a probe passed or failed, or a bug was found; "" where it is plain."""
        evidence = {where: told for where, told in self.places.get(name, ()) if where}
        of_blocks = evidence.keys() <= self.blocks.keys()
        everywhere = self.blocks if of_blocks else self.attentions
        names, differ = list(evidence), len(set(evidence.values())) > 1
        if not names or (len(everywhere) == 1 and name not in self.recognised):
            return ""
        if len(names) == 1:
            return names[0]
        if evidence.keys() != everywhere.keys() or (differ and not ok):
            return f"{names[0]} and {len(names) - 1} more"
        if differ:  # the numbers are those of the first
            return f"{names[0]}, and it passed in the others"
        single = [one.n_head == 1 for one in self.internals.values()]
        noun = "heads" if in_one_list(names) and all(single) else "attentions"
        count = "both" if len(names) == 2 else f"all {len(names)}"
        return f"{count} {'blocks' if of_blocks else noun}"

    def _tell_each_probe_once(self) -> None:
        """What could not be checked everywhere is no passed probe."""
        for name in self.findings.keys() & self.not_checked.keys():
            if self.findings[name].ok:
                where = self._places_in_words(name, True)
                self.not_checked[name] += (
                    f"; it passed in {where}" if where else "; elsewhere it passed"
                )
                del self.findings[name]
            else:
                del self.not_checked[name]

    # ------------------------------------------------------------ the probes, one after another

    def _check_shape(self) -> bool:
        if not isinstance(self.out, Tensor):
            raise TypeError(f"Expected out or (out, weights), got {type(self.out).__name__}.")
        B, T, C = self.x.shape
        out, last = tuple(self.out.shape), C
        if self.n_head == 1 or out[-1] in self._widths():
            last = out[-1]
        ok = out == (B, T, last)
        evidence = f"x {(B, T, C)} gives out {out}"
        if self.own_weights is not None:
            weights = tuple(self.own_weights.shape)
            heads = self.n_head if len(weights) < 4 or not self.try_heads else weights[1]
            ok &= weights in ((B, T, T), (B, 1, T, T), (B, heads, T, T))
            evidence += f" and weights {weights}"
        if not ok:
            evidence += f"; expected out {(B, T, last)}"
            if self.own_weights is not None:
                evidence += f", weights {(B, T, T)} or {(B, self.n_head, T, T)}"
        evidence += "."
        if not ok and self.n_head > 1 and out[:-1] == (B, T):
            evidence += " Is it one head? Then pass n_head=1."
        self._add(Finding("shape", ok, evidence))
        return ok

    def _widths(self) -> set[int]:
        """The widths of outputs that a module may have on purpose: those of its projections."""
        parts = self.function.modules() if isinstance(self.function, nn.Module) else ()
        named = [(part, projection_name(part)) for part in parts]
        return {getattr(getattr(part, name), "out_features", 0) for part, name in named if name}

    def _inspect(self) -> None:
        why = NO_MODULE
        if isinstance(self.function, nn.Module):
            why = NO_ATTENTION
            seed_all(0)
            with torch.no_grad():
                whole = self._whole()
                self.attentions, self.blocks = attention_calls(whole), block_calls(whole)
                if has_unknown_parts(self.function, self.attentions, self.blocks):
                    self.not_checked["residuals and norms"] = self._why_no_block()
                not_called = [name for name, call in self.attentions.items() if call is None]
                if not_called:
                    were = "was" if len(not_called) == 1 else "were"
                    why = f"{joined(not_called)} {were} not called"
                for name, call in self.attentions.items():
                    if call is None:
                        continue
                    seed_all(0)
                    found = inspect_attention(whole, call, self._heads_of(name, call))
                    if isinstance(found, AttentionInternals):
                        self.internals[name] = found
                    else:
                        why = f"{name or 'the module'} cannot be inspected: {found}"
                        if NOT_BATCH_FIRST in found:
                            self.not_batch_first = name
        if not self.internals or len(self.internals) < len(self.attentions):
            self.not_checked["equals the reference"] = why

    def _why_no_block(self) -> str:
        """Which parts of a block were found beside an attention that stands in none, and not."""
        inside = tuple(f"{block}." for block in self.blocks)
        name = next(name for name in self.attentions if not name.startswith(inside))
        owner = part_of(self.function, name.rpartition(".")[0])
        return NO_PARTS.format(missing_block_parts(owner))

    def _heads_of(self, name: str, call: Call) -> int:
        """One of a list of heads has a share of the channels, or there are n_head of them."""
        names = role_names(call.module)
        layer = getattr(call.module, names[0]) if names else None
        head_size = getattr(layer, "out_features", 0)
        others = [one for one in self.attentions.values() if one is not None]
        in_list = len(self.attentions) == self.n_head and all(
            one.input is not None and torch.equal(one.input, call.input) for one in others
        )
        single = name and (head_size * self.n_head == self.x.shape[-1] or in_list)
        return 1 if single else self.n_head

    def _check_finite(self) -> None:
        finding = probes.finite(self.out)
        if finding.ok and self.own_weights is not None:
            finding = probes.finite(self.own_weights)
        self._add(finding)

    def _check_input_unchanged(self) -> None:
        """Told only where it fails: hardly anybody expects a module to change its input."""
        given = self.x.clone()
        seed_all(0)
        with torch.no_grad():
            if isinstance(self.function, nn.Module):
                call = self_attention_call(self.function, given, self.causal)
                self.function(*call.args, **call.kwargs)
            else:
                self.function(given)
        largest = (given - self.x).abs().nan_to_num().max().item()
        if largest > 0:
            evidence = f"after the call x itself is another, by up to {small(largest)}: whoever "
            evidence += "hands it over loses it. x += y and x.add_(y) change x; x = x + y makes a "
            evidence += "new tensor."
            self._recognise("its input changed in place", evidence)

    def _check_same_twice(self) -> None:
        repeated = self.run(self.x)[0]
        again = self.run(self.x, seed=1)[0]
        largest = max((z - self.out).abs().nan_to_num().max().item() for z in (repeated, again))
        if largest == 0:
            self._add(Finding("same twice", True, "two runs on the same input agree."))
            return
        evidence = f"two runs on the same input differ by up to {small(largest)}."
        self._add(Finding("same twice", False, evidence))
        if not torch.equal(repeated.nan_to_num(), self.out.nan_to_num()):
            evidence += " The random numbers were the same, so the module keeps something from one "
            evidence += "call to the next, such as a cache of keys and values. Begin each call "
            evidence += "without it."
            self._recognise("something kept from the call before", evidence)
            return
        evidence += " With the same random numbers they agree: something is still dropped at "
        evidence += "random. In evaluation nothing should be: use nn.Dropout, or F.dropout(…, "
        evidence += "training=self.training)."
        self._recognise("dropout left on", evidence)

    def _compare_with_reference(self) -> None:
        name_of_probe = "equals the reference"
        random = not self.findings["same twice"].ok
        for name, seen in self.internals.items():
            if why := cannot_be_judged(seen, self.causal):
                self.not_checked[name_of_probe] = why
                continue
            if random:
                self.not_checked[name_of_probe] = "two runs on the same input differ"
                continue
            found = compare_attention(
                seen,
                self.causal,
                try_heads=self._may_try_heads(seen, name),
                try_pairs=not any(one.unexplained for one in self.compared.values()),
            )
            self.compared[name] = found
            for bug, evidence in found.bugs.items():
                self._recognise(bug, evidence, name)
                self.on_purpose |= {bug} if may_be_meant(bug) else set()
            weights = seen.weights
            if found.finding.ok and weights is None:  # then the right weights are its weights
                weights = found.right
            elif weights is None:
                weights = found.weights
            if weights is not None and weights.shape[-1] != seen.x.shape[1]:  # across the batch
                weights = None
            self.weights[name] = (weights, found.right)
            if found.finding.ok or found.bugs:
                self._add(found.finding, name)
            if not found.bugs and (found.different or not found.finding.ok):
                where = f" (In {name}.)" if name else ""
                evidence = found.different or found.finding.evidence.rstrip(".")
                self.different.setdefault(name_of_probe, f"{evidence}.{where}")

    def _may_try_heads(self, seen: AttentionInternals, name: str) -> bool:
        part = part_of(self.function, name)
        return self.try_heads and own_head_count(part) is None and seen.n_head == 1

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
            atol = 1e-5 if weights.dtype.itemsize >= 4 and self._full(name) else 0.03
            self._judge_sums(probes.rows_sum_to_one(weights, atol), name)
            if self.causal and weights.isfinite().all():
                self._add(probes.no_weight_on_future(weights), name)
            elif self.causal:
                self.not_checked["no weight on the future"] = "there are weights that are nan"

    def _judge_sums(self, finding: Finding, name: str) -> None:
        """In a known variant, such as softmax1, the sums are no mistake."""
        if not finding.ok and name in self.compared and self.compared[name].different:
            self.different[finding.name] = finding.evidence
        else:
            self._add(finding, name)

    def _full(self, name: str) -> bool:
        return name not in self.internals or self.internals[name].dtype.itemsize >= 4

    def _check_dependence(self) -> None:
        asked = ["no leak"] * self.causal + ["reach", "sequences stay apart"]
        if self.x.shape[1] < 2:
            self.not_checked |= dict.fromkeys(asked, ONE_TOKEN)
            return
        changes = probes.output_changes(self._run_out, self.x, "diagnose", most=MOST_TOKENS)
        if isinstance(changes, Finding):
            self.not_checked |= dict.fromkeys(asked, NOT_FINITE)
            return
        if self.zero_projection:
            self.not_checked |= dict.fromkeys(asked, ZERO_PROJECTION)
            return
        self.changes = changes = self._without_rounding(changes)
        atol = 1e-6 * min(1.0, self.out.abs().max().item())
        if self.causal:
            self._add(probes.judge_leaks(changes, atol))
        self._judge_reach(probes.judge_reach(changes, 0.0, self.causal))
        x = self.x if len(self.x) > 1 else self.x.expand(2, -1, -1)
        apart = probes.sequences_stay_apart(self._run_out, x, atol)
        self._add(apart)
        if not apart.ok and self.not_batch_first:
            evidence = f"{self.not_batch_first} {NOT_BATCH_FIRST}."
            self._recognise("batch_first forgotten", evidence)
        elif not apart.ok and not self.bugs:
            for name, call in self.attentions.items():
                if call is not None and self._is_turned(call):
                    bug, message = ACROSS_SEQUENCES
                    self._recognise(
                        bug,
                        f"x {tuple(self.x.shape)} arrives at it as "
                        f"{tuple(call.input.shape)}. {message}",
                        name,
                    )

    def _is_turned(self, call: Call) -> bool:
        """Tell whether an attention that takes (B, T, C) was given (T, B, C)."""
        time_first = isinstance(call.module, nn.MultiheadAttention) and not call.module.batch_first
        z, (B, T) = call.input, self.x.shape[:2]
        turned = z is not None and z.shape[:2] == (T, B)
        return turned and not time_first and (B != T or torch.equal(z, self.x.transpose(0, 1)))

    def _without_rounding(self, changes: Tensor) -> Tensor:
        """The changes, and 0 for those that are rounding only.

        A change that is next to nothing may be rounding, or that of an attention with sharp scores.
        """
        size = self.out.abs().max().item()
        unsure = (changes > 0) & (changes < 100 * torch.finfo(self.out.dtype).eps * size)
        unsure = unsure.triu() if self.causal else unsure
        if not unsure.any():
            return changes
        rounded = only_rounded(self.function, self.x, self.causal, MOST_TOKENS)
        return changes if rounded is None else changes.masked_fill(unsure & rounded, 0)

    def _judge_reach(self, finding: Finding) -> None:
        if not finding.ok and self._right_weights_vanish():
            self.not_checked["reach"] = (
                f"{finding.evidence.removesuffix('.')}; but the right weights are below 0.000001 "
                "there: the scores are just that sharp"
            )
        elif not finding.ok and not self.bugs and self._is_only_sharp():
            self.not_checked["reach"] = (
                f"{finding.evidence.removesuffix('.')}; but for other inputs it does: the scores "
                "are just that sharp"
            )
        elif not finding.ok and (distances := self._distances()):
            evidence = f"each output depends only on the tokens that stand {listed(distances)} "
            evidence += (
                "before it (0 is its own). A sliding window does that; if it is meant, fine."
            )
            self.different["reach"] = evidence
        else:
            self._add(finding)

    def _distances(self) -> list[int]:
        """How far before an output the tokens stand that it depends on, if always the same.

        Empty where it depends on its own token only, or on others from place to place.
        """
        if not self.causal or self.changes.isnan().any():
            return []
        depends = (self.changes > 0).mT  # row = output, column = token
        T = len(depends)
        distances = [d for d in range(T) if depends[T - 1, T - 1 - d]]
        expected = sum(torch.ones(T - d).diag(-d) for d in distances) if distances else None
        same = expected is not None and torch.equal(expected > 0, depends)
        return distances if same and distances[0] == 0 and len(distances) > 1 else []

    def _right_weights_vanish(self) -> bool:
        """Tell whether the right weights are nearly 0 wherever an output does not change."""
        reference = self.findings.get("equals the reference")
        if not reference or not reference.ok:
            return False
        unchanged = (self.changes == 0).mT  # row = output, column = token
        unchanged &= causal_mask(len(unchanged)) if self.causal else unchanged
        largest = [right.flatten(0, -3).amax(0).cpu() for _, right in self.weights.values()]
        return bool(largest) and all(
            weights.shape == unchanged.shape and bool((weights[unchanged] < 1e-6).all())
            for weights in largest
        )

    def _is_only_sharp(self) -> bool:
        """Tell whether each output that does not change does so for other inputs."""
        allowed = torch.ones_like(self.changes, dtype=torch.bool)
        unchanged = (self.changes == 0) & (allowed.triu() if self.causal else allowed)
        rounded = only_rounded(self.function, self.x, self.causal, MOST_TOKENS)
        return rounded is not None and not (unchanged & rounded).any()

    def _check_training_mode(self) -> None:
        """Batch norm treats tokens alone in evaluation, and mixes all sequences in training."""
        if not isinstance(self.function, nn.Module) or self.x.shape[1] < 2:
            return
        named = self.function.named_modules()
        culprits = [
            name for name, part in named if isinstance(part, nn.modules.batchnorm._BatchNorm)
        ]
        apart = self.findings.get("sequences stay apart")
        if not culprits or apart is None or not apart.ok:
            return
        before = {name: z.clone() for name, z in self.function.named_buffers()}
        x = self.x if len(self.x) > 1 else self.x.expand(2, -1, -1)
        try:
            with mode_of_parts(self.function, lambda part: not isinstance(part, nn.Dropout)):
                finding = probes.sequences_stay_apart(self._run_out, x)
        finally:
            for name, z in self.function.named_buffers():
                z.copy_(before[name])
        if finding.ok:
            return
        evidence = f"in training mode {finding.evidence}"
        self.findings[finding.name] = Finding(finding.name, False, evidence)
        self._recognise(
            "batch norm instead of layer norm",
            f"in training, {culprits[0]} takes mean and variance over all tokens of all sequences, "
            "also of later ones. Use a layer norm, over the channels of each token.",
        )

    def _check_what_heads_read(self) -> None:
        """Told only where it fails: a head of a list that reads some of the channels."""
        lists: dict[str, list[str]] = {}
        for name in self.attentions:
            lists.setdefault(name.rpartition(".")[0], []).append(name)
        for where, names in lists.items():
            seed_all(0)
            with torch.no_grad():
                evidence = slices_read(self._whole(), names)
            if evidence:
                self._recognise(OF_A_SLICE, evidence, where)

    def _check_heads(self) -> None:
        """Compare what the module makes of the attentions in it, where there is no block."""
        names = list(self.attentions)
        if not names or "" in names or self.blocks or "residuals and norms" in self.not_checked:
            return
        if not self.out.isfinite().all():
            self.not_checked[HEADS] = NOT_FINITE
            return
        if not self.findings["same twice"].ok:
            self.not_checked[HEADS] = "two runs on the same input differ"
            return
        if self.zero_projection:
            self.not_checked[HEADS] = ZERO_PROJECTION
            return
        projection = next(iter(parts_beside(self.function, names, ())), "")
        seed_all(0)
        try:
            with torch.no_grad():
                found = compare_heads(self._whole(), names, projection)
        except Exception as error:  # parts that are called in other ways than ours
            self.not_checked[HEADS] = f"its parts cannot be called one by one: {error}"
            return
        if found is None:
            return
        for bug, evidence in found.bugs.items():
            self._recognise(bug, evidence)
            self.on_purpose |= {bug} if found.meant else set()
        if found.finding.ok or (found.bugs and not found.meant):
            self._add(found.finding)
        elif not found.bugs:
            right = [one.finding.ok for one in self.compared.values()]
            heads = "each head is right, but " if len(right) > 1 else "the attention is right, but "
            heads = heads if right and all(right) else ""
            self.different[HEADS] = heads + found.finding.evidence

    def _check_residuals_and_norms(self) -> None:
        inline = [name for name, seen in self.internals.items() if seen.block]
        for name in (*self.blocks, *inline):
            if name in self.blocks:
                found = self._compare_block(name, self.blocks[name])
                names = block_part_names(part_of(self.function, name))
            else:
                found = self._compare_inline_block(name)
                names = ("", "", *self.internals[name].block.norms)
            if isinstance(found, str):
                self.not_checked["residuals and norms"] = found.rstrip(".")
                continue
            finding, bugs = found
            on_purpose = bool(bugs) and all(bug.on_purpose for bug in bugs)
            for bug in bugs:
                evidence = "a block of the same parts with this bug gives the same numbers."
                if on_purpose:
                    evidence = "a block of the same parts put together like this gives the same "
                    evidence += "numbers."
                    self.on_purpose.add(bug.name)
                message = with_own_names(bug.message, names)
                self._recognise(bug.name, f"{evidence} {message}", name)
            if finding.ok or (bugs and not on_purpose):
                self._add(finding, name)
            elif not bugs:
                where = f" (In {name}.)" if name and len(self.blocks) > 1 else ""
                self.different.setdefault(finding.name, finding.evidence + where)

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
            with torch.no_grad(), inspected_block(call, self.causal) as block:
                return block if isinstance(block, str) else compare_with_block(block)
        except Exception as error:  # parts that are called in other ways than ours
            return f"its parts cannot be called one by one: {error}"

    def _compare_inline_block(self, name: str) -> tuple[Finding, tuple[WiringBug, ...]] | str:
        """The same for a block that is written in one class, if its attention is right."""
        seen, call, found = self.internals[name], self.attentions[name], self.compared.get(name)
        if not found or not found.finding.ok or found.bugs:
            return "they are compared only where the attention is right"
        if not seen.block.feed_forward:
            return f"the attention is right; {NOT_REBUILT}"
        seed_all(0)
        try:
            with torch.no_grad(), random_norms(call.module, ("", "", *seen.block.norms)):
                norms = [getattr(call.module, norm) for norm in seen.block.norms]
                attention = attention_of(call.module, seen, found.right, self.causal)
                parts = (attention, seen.block.feed_forward, *norms)
                return compare_with_block(BlockInternals(call.input, call.run()[0], parts))
        except Exception as error:  # layers that are called in other ways than ours
            return f"the attention is right; {NOT_REBUILT} ({error})"

    def _check_parts(self) -> None:
        for name, call in self.blocks.items():
            if call is None or call.input is None:
                continue
            try:
                with torch.no_grad():
                    found = check_parts(call)
            except Exception:  # told by the comparison with a block
                continue
            for bug, (evidence, part) in found.items():
                self._recognise(bug, evidence, f"{name}.{part}" if name else part)

    # ------------------------------------------------------------ gradients

    def _check_gradients(self) -> None:
        if why := self._why_no_gradients():
            self.not_checked["gradients reach"] = why
            return
        seed_all(0)
        whole = self._whole()
        try:
            gradients = grad.gradients_of(whole)
        except RuntimeError as error:
            if "inplace" not in str(error):
                raise
            self._add(Finding("gradients reach", False, grad.IN_PLACE))
            return
        names = {id(own): name for name, own in self.function.named_parameters()}
        unused = grad.parts_without(self.function, gradients)
        detached = [name for name in unused if grad.changes_output(whole, name)]
        self.unused = [name for name in unused if name not in detached]
        failed = False
        for name, seen in self.internals.items():
            roles = grad.roles_without(seen, names, gradients)
            if roles and self._sharp(name):
                continue
            if roles and not seen.zero_projection:
                failed = True
                self._tell_roles(name, seen, roles, gradients, names)
        more = self._without_purpose(self.unused)
        if more and not failed:
            self._tell_unused(more)
        elif detached and not failed:
            evidence = f"none arrives at {joined(detached)}, though the output depends on it: "
            evidence += "detach(), torch.no_grad() or .data cut the graph."
            self._add(Finding("gradients reach", False, evidence))
        if "gradients reach" not in self.findings and "gradients reach" not in self.not_checked:
            reached = f"one arrives at {grad.in_words(self._roles())}" if self._roles() else ""
            others = "every parameter gets one" if not reached else ", and at every other parameter"
            self._add(Finding("gradients reach", True, f"{reached}{others}."))

    def _check_lists(self) -> None:
        """What stands in a Python list was examined as if it were registered."""
        for one in self.in_lists:
            told = IN_LIST.format(one, one.kind, one.instead)
            self._recognise(f"{one.noun} in a Python {one.kind}", told)
            evidence = NO_OPTIMISER.format(one)
            before = self.findings.pop("gradients reach", None)
            if before and not before.ok:
                evidence += f" {before.evidence}"
            self.not_checked.pop("gradients reach", None)
            self._add(Finding("gradients reach", False, evidence))

    def _roles(self) -> set[str]:
        return {role for seen in self.internals.values() for role in seen.roles}

    def _why_no_gradients(self) -> str:
        if not isinstance(self.function, nn.Module):
            return NO_MODULE
        if not any(own.is_floating_point() for own in self.function.parameters()):
            return "it has no parameters"
        if not self.out.isfinite().all():
            return NOT_FINITE
        if self.x.shape[1] < 2:
            return ONE_TOKEN
        if self.zero_projection:
            return ZERO_PROJECTION
        return ""

    def _sharp(self, name: str) -> bool:
        """Tell whether all right weights are 0 or 1, where a softmax passes no gradient on."""
        right = self.weights.get(name, (None, None))[1]
        if right is None or (right * (1 - right)).any():
            return False
        self.not_checked["gradients reach"] = (
            "the scores are so sharp that all weights are 0 or 1, and a softmax like that "
            "passes no gradient on"
        )
        return True

    def _tell_roles(
        self,
        name: str,
        seen: AttentionInternals,
        roles: list[str],
        gradients: dict[str, Tensor | None],
        names: dict[int, str],
    ) -> None:
        reached = [role for role in seen.roles if role not in roles]
        words = grad.in_words(roles)
        evidence = f"none arrives at {words}: what gets no gradient does not learn."
        evidence += f" One arrives at {grad.in_words(reached)}." if reached else ""
        layers = [names.get(id(seen.roles[role][0]), "").removesuffix(".weight") for role in roles]
        never = [one for one in layers if any(f"{one}.".startswith(f"{u}.") for u in self.unused)]
        if never:
            evidence += f" The output was made without {joined(list(dict.fromkeys(never)))}: it is "
            evidence += "never used."
        self._add(Finding("gradients reach", False, evidence), name)
        compared = self.compared.get(name)
        cut = all(gradients.get(names.get(id(seen.roles[role][0]))) is None for role in roles)
        fused = len({id(weight) for weight, _ in seen.roles.values()}) == 1 and bool(reached)
        if (cut or fused) and not never and compared and compared.finding.ok and not compared.bugs:
            self._recognise(f"no gradient to {words}", DETACHED.format(words), name)

    def _without_purpose(self, unused: list[str]) -> list[str]:
        """What is not used, without what has no use here on purpose.

        These are the norm that a block with parallel branches does not need, and a
        cross-attention, which nothing was given for.
        """
        if any(name.startswith("parallel branches") for name in self.on_purpose):
            unused = [name for name in unused if not any(n in name for n in ("norm", "ln"))]
        if may_take_context(self.function):
            unused = [name for name in unused if not any(n in name for n in ("cross", "encoder"))]
        return unused

    def _tell_unused(self, unused: list[str]) -> None:
        words = joined(unused[:4]) + (f" and {len(unused) - 4} more" if len(unused) > 4 else "")
        verb = "it is" if len(unused) == 1 else "they are"
        evidence = f"none arrives at {words}: {verb} never used."
        self._add(Finding("gradients reach", False, evidence))
        for name, seen in self.internals.items():
            part = part_of(self.function, name)
            projection = projection_name(part)
            own = f"{name}.{projection}" if name else projection
            if projection and own in unused and seen.endings[0].bugs == ():
                self._recognise("output projection never used", evidence, name)

    # ------------------------------------------------------------ what follows from all of them

    def _judge_differences(self) -> None:
        """A difference from the textbook is a failed probe where anything else is wrong."""
        for name, evidence in list(self.different.items()):
            compared = [one for one in self.compared.values() if not one.bugs]
            on_purpose = name == "equals the reference" and any(one.different for one in compared)
            if self.failed and not self.bugs and not on_purpose and name != "reach":
                self._add(Finding(name, False, evidence))
                del self.different[name]

    def behaviour_fits(self) -> tuple[str, ...]:
        """The known bugs that explain what was seen from outside, the likeliest first.

        None where queries, keys and values were found: there all bugs have been computed already.
        """
        C = self.x.shape[-1]
        explained = ("finite", "rows sum to 1", "no weight on the future", "no leak", "reach")
        others = [one for one in self.findings.values() if not one.ok and one.name not in explained]
        if self.compared or C % self.n_head or others or self.mixes_no_tokens():
            return ()
        shown = self.own_weights if not self.internals else None
        seen = behaviour(self.out, shown, self.changes, self.causal)
        return fitting_bugs(seen, C, self.n_head, self.causal)

    def mixes_no_tokens(self) -> bool:
        """Tell whether every output depends on its own token only."""
        apart = self.findings.get("sequences stay apart")
        if self.changes is None or (apart and not apart.ok):
            return False
        changes = self.changes.where(~self.changes.isnan(), 0)
        return not (changes - changes.diag().diag()).any()

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
            if seen.weights is not None and name in self.weights
        ]
        if not all(same_weights(given, right) for given, right in shown):
            return "The scores or the mask are"
        if len(shown) == len(self.internals):
            return "The weights are right; what is computed from them is"
        return "The scores, the mask or what is computed from the weights is"

    def assumed_heads(self) -> str:
        """What was assumed about the number of heads, where it could not be told; or ""."""
        found = [one for one in self.compared.values() if one.finding.ok or one.bugs]
        if not self.try_heads or not self.internals:
            return ""
        if len(found) < len(self.compared):
            return (
                "Assumed: n_head = 1, since the module has no n_head, num_heads, heads or h. Pass "
                "n_head=… if it has more."
            )
        counts = {one.n_head for one in self.compared.values()} - {1}
        if counts and len(self.compared) == 1:
            return f"n_head = {counts.pop()}, found by trying: with it the numbers are right."
        return ""

    def picture(self) -> Picture | None:
        """The weights; or which output depends on which token, where only that looks wrong."""

        def failed(*names: str) -> bool:
            return any(name in self.findings and not self.findings[name].ok for name in names)

        if self.x.shape[-2] > MOST:  # the words have to do
            return None
        weights_failed = failed("rows sum to 1", "no weight on the future")
        if failed("no leak", "reach") and not weights_failed and self.changes is not None:
            return dependence_heatmap(self.changes, self.causal)
        drawn = [
            (weights, wrong_weights(weights, right, self.causal), right, name)
            for name, (weights, right) in self.weights.items()
            if weights is not None
        ]
        if not drawn:
            return None
        weights, wrong, right, name = max(drawn, key=lambda one: int(one[1].sum()))
        right = None if right is None else in_form_of(weights, right)
        return weights_heatmap(weights, wrong, right, name, self.causal)
