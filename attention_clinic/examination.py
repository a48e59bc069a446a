"""What an examination of one attention or block has found so far, and what is reported of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from torch import Tensor

from attention_clinic.comparison import Comparison, in_form_of, same_weights, wrong_weights
from attention_clinic.heads import in_one_list
from attention_clinic.lists import InList
from attention_clinic.probes import (
    GRADIENTS,
    HEADS,
    PREFIX,
    REFERENCE,
    RESIDUALS,
    Finding,
    mixes_no_tokens,
)
from attention_clinic.report import Dependence, Weights
from attention_clinic.results import Results
from attention_clinic.subject import Parts, Subject

PROBES = (  # in the order in which they are reported
    "runs",
    "finite input and parameters",
    "shape",
    "finite",
    "same twice",
    "rows sum to 1",
    "no weight on the future",
    "no leak",
    PREFIX,
    "reach",
    "sequences stay apart",
    GRADIENTS,
    REFERENCE,
    HEADS,
    RESIDUALS,
)
NOT_EXPLAINED = ", and no known bug or variant explains it"
NO_ATTENTION = "It mixes no tokens at all: is it an attention?"


@dataclass
class Examination:
    """What was examined, and what the steps have found so far: each may use it and add to it."""

    subject: Subject
    in_lists: tuple[InList, ...]  # layers that stand in Python lists, registered for a while
    out: Tensor  # the output for the subject's x
    shown: Tensor | None  # the weights that were returned beside it
    parts: Parts = field(default_factory=Parts)  # the attentions and blocks in it
    # Name of an attention -> what comparing it with the right formula has shown.
    compared: dict[str, Comparison] = field(default_factory=dict)
    # (T, T), [j, t]: how much output t changes when token j is replaced; None if not measured.
    changes: Tensor | None = None
    results: Results = field(default_factory=Results)

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """Name of an attention -> its weights, where they are shown or found by comparing."""
        if not self.parts.internals:
            return {} if self.shown is None else {"": self.shown}
        known = {}
        for name, one in self.compared.items():
            seen = self.parts.internals[name]
            weights = seen.weights
            if weights is None:  # where the numbers are right, the right weights are its weights
                weights = one.right if one.finding.ok else one.weights
            if weights is not None and weights.shape[-1] == seen.x.shape[1]:  # not over the batch
                known[name] = weights
        return known

    # ------------------------------------------------------------ what is reported

    @property
    def findings(self) -> dict[str, Finding]:
        """Name of each probe that ran -> what it found, and where."""
        names = {finding.name for finding, _ in self.results.findings}
        return {name: self._placed(self.results.finding(name)) for name in PROBES if name in names}

    @property
    def recognised(self) -> dict[str, Finding]:
        """Name of each recognised bug -> the evidence, and where."""
        first = {bug.name: bug.evidence for bug in reversed(self.results.bugs)}
        names = dict.fromkeys(bug.name for bug in self.results.bugs)
        return {name: self._placed(Finding(name, False, first[name])) for name in names}

    def _placed(self, finding: Finding) -> Finding:
        """Say at the end of the evidence in which attentions or blocks it is so."""
        where = self.places_in_words(finding.name, finding.ok)
        evidence = f"{finding.evidence} (In {where}.)" if where else finding.evidence
        return replace(finding, evidence=evidence)

    def places_in_words(self, name: str, ok: bool) -> str:
        """Where a probe passed or failed, or a bug was found; "" where it is plain."""
        evidence = self.results.places(name)
        of_blocks = evidence.keys() <= self.parts.blocks.keys()
        everywhere = self.parts.blocks if of_blocks else self.parts.attentions
        names, differ = list(evidence), len(set(evidence.values())) > 1
        is_bug = name in {bug.name for bug in self.results.bugs}
        if not names or (len(everywhere) == 1 and not is_bug):
            return ""
        if len(names) == 1:
            return names[0]
        if evidence.keys() != everywhere.keys() or (differ and not ok):
            return f"{names[0]} and {len(names) - 1} more"
        if differ:  # the numbers are those of the first
            return f"{names[0]}, and it passed in the others"
        single = [one.n_head == 1 for one in self.parts.internals.values()]
        noun = "heads" if in_one_list(names) and all(single) else "attentions"
        count = "both" if len(names) == 2 else f"all {len(names)}"
        return f"{count} {'blocks' if of_blocks else noun}"

    def difference(self) -> str:
        """What no known bug or variant explains, in a few words; "" where there is nothing."""
        different = self.results.different
        words = {
            REFERENCE: "it differs from softmax(q kᵀ/√d) v",
            HEADS: different.get(HEADS, "").split(":")[0],
            RESIDUALS: "it differs from a pre-norm and a post-norm block",
        }
        if not self.results.bugs:  # such as a scale by log T
            words[PREFIX] = "the outputs depend on how many tokens there are"
        return next((words[name] + NOT_EXPLAINED for name in words if name in different), "")

    def remark(self) -> str:
        """What to say about failed probes where no known bug fits."""
        reference = self.results.finding(REFERENCE)
        remark = "No known bug fits."
        if not self.subject.is_module:
            remark = "Of a function, known bugs cannot be tried; of the module they can."
        if reference:
            remark += " The attention in it is right; look at what stands around it."
        elif reference is not None:
            remark = f"{self._wrong_part()} wrong, but no known bug fits."
        apart = self.results.finding("sequences stay apart")
        if mixes_no_tokens(self.changes) and (apart is None or apart):
            asked = not self.parts.internals
            remark += f" {NO_ATTENTION if asked else 'It mixes no tokens at all.'}"
        return remark

    def _wrong_part(self) -> str:
        """What is wrong inside, as far as the weights that the module shows can tell."""
        internals = self.parts.internals
        shown = [
            (internals[name].weights, one.right)
            for name, one in self.compared.items()
            if internals[name].weights is not None
        ]
        if not all(same_weights(given, right) for given, right in shown):
            return "The scores or the mask are"
        if len(shown) == len(internals):
            return "The weights are right; what is computed from them is"
        return "The scores, the mask or what is computed from the weights is"

    def assumed_heads(self) -> str:
        """What was assumed about the number of heads, where it could not be told; or ""."""
        known = [one for one in self.compared.values() if one.finding.ok or one.bugs]
        if not self.subject.try_heads or not self.parts.internals:
            return ""
        if len(known) < len(self.compared):
            return (
                "Assumed: n_head = 1, since the module has no n_head, num_heads, heads or h. Pass "
                "n_head=… if it has more."
            )
        counts = {one.n_head for one in self.compared.values()} - {1}
        if counts and len(self.compared) == 1:
            return f"n_head = {counts.pop()}, found by trying: with it the numbers are right."
        return ""

    def evidence(self) -> Weights | Dependence | None:
        """The weights; or which output depends on which token, where only that looks wrong."""

        def failed(*names: str) -> bool:
            found = map(self.results.finding, names)
            return any(one is not None and not one for one in found)

        causal = self.subject.causal
        weights_failed = failed("rows sum to 1", "no weight on the future")
        if failed("no leak", "reach") and not weights_failed and self.changes is not None:
            return Dependence(self.changes, causal)
        rights = {name: one.right for name, one in self.compared.items()}
        drawn = [
            (weights, wrong_weights(weights, rights.get(name), causal), rights.get(name), name)
            for name, weights in self.weights.items()
        ]
        if not drawn:
            return None
        weights, wrong, right, name = max(drawn, key=lambda one: int(one[1].sum()))
        right = None if right is None else in_form_of(weights, right)
        return Weights(weights, wrong, right, name, causal)
