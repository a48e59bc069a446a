"""All steps of an examination of one attention or block, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from attention_clinic import from_inside, from_outside
from attention_clinic.bugs import Named
from attention_clinic.comparison import Comparison, in_form_of, same_weights, wrong_weights
from attention_clinic.crashes import NOT_RESHAPE, WRITE_RESHAPE
from attention_clinic.from_inside import REFERENCE, RESIDUALS
from attention_clinic.gradients import PROBE as GRADIENTS
from attention_clinic.gradients import check_gradients, check_lists
from attention_clinic.heads import PROBE as HEADS
from attention_clinic.heads import in_one_list
from attention_clinic.lists import InList
from attention_clinic.outbid import check_large_scores
from attention_clinic.probes import PREFIX, Finding
from attention_clinic.report import SHOWN_BY_VARIANTS, Dependence, Weights
from attention_clinic.subject import Inside, Subject, look_inside
from attention_clinic.told import Told, found, recognised

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


@dataclass(frozen=True)
class Examination:
    """What an examination has found."""

    subject: Subject  # what was examined
    inside: Inside  # the attentions and blocks in it
    told: Told  # what all steps have found
    # Name of an attention -> what comparing it with the right formula has shown.
    compared: Mapping[str, Comparison]
    weights: Mapping[str, Tensor]  # name of an attention -> its weights, where they are known
    # (T, T), [j, t]: how much output t changes when token j is replaced; None if not measured.
    changes: Tensor | None

    # ------------------------------------------------------------ what is reported

    @property
    def findings(self) -> dict[str, Finding]:
        """Name of each probe that ran -> what it found, and where."""
        names = {finding.name for finding, _ in self.told.findings}
        return {name: self._placed(self.told.finding(name)) for name in PROBES if name in names}

    @property
    def recognised(self) -> dict[str, Finding]:
        """Name of each recognised bug -> the evidence, and where."""
        first = {bug.name: bug.evidence for bug in reversed(self.told.bugs)}
        names = dict.fromkeys(bug.name for bug in self.told.bugs)
        return {name: self._placed(Finding(name, False, first[name])) for name in names}

    def _placed(self, finding: Finding) -> Finding:
        """Say at the end of the evidence in which attentions or blocks it is so."""
        where = self.places_in_words(finding.name, finding.ok)
        evidence = f"{finding.evidence} (In {where}.)" if where else finding.evidence
        return replace(finding, evidence=evidence)

    def places_in_words(self, name: str, ok: bool) -> str:
        """Where a probe passed or failed, or a bug was found; "" where it is plain."""
        evidence = self.told.places(name)
        of_blocks = evidence.keys() <= self.inside.blocks.keys()
        everywhere = self.inside.blocks if of_blocks else self.inside.attentions
        names, differ = list(evidence), len(set(evidence.values())) > 1
        is_bug = name in {bug.name for bug in self.told.bugs}
        if not names or (len(everywhere) == 1 and not is_bug):
            return ""
        if len(names) == 1:
            return names[0]
        if evidence.keys() != everywhere.keys() or (differ and not ok):
            return f"{names[0]} and {len(names) - 1} more"
        if differ:  # the numbers are those of the first
            return f"{names[0]}, and it passed in the others"
        single = [one.n_head == 1 for one in self.inside.internals.values()]
        noun = "heads" if in_one_list(names) and all(single) else "attentions"
        count = "both" if len(names) == 2 else f"all {len(names)}"
        return f"{count} {'blocks' if of_blocks else noun}"

    def difference(self) -> str:
        """What no known bug or variant explains, in a few words; "" where there is nothing."""
        different = self.told.different
        words = {
            REFERENCE: "it differs from softmax(q kᵀ/√d) v",
            HEADS: different.get(HEADS, "").split(":")[0],
            RESIDUALS: "it differs from a pre-norm and a post-norm block",
        }
        if not self.told.bugs:  # such as a scale by log T
            words[PREFIX] = "the outputs depend on how many tokens there are"
        return next((words[name] + NOT_EXPLAINED for name in words if name in different), "")

    def remark(self) -> str:
        """What to say about failed probes where no known bug fits."""
        reference = self.told.finding(REFERENCE)
        remark = "No known bug fits."
        if not self.subject.is_module:
            remark = "Of a function, known bugs cannot be tried; of the module they can."
        if reference:
            remark += " The attention in it is right; look at what stands around it."
        elif reference is not None:
            remark = f"{self._wrong_part()} wrong, but no known bug fits."
        apart = self.told.finding("sequences stay apart")
        if from_outside.mixes_no_tokens(self.changes) and (apart is None or apart):
            asked = not self.inside.internals
            remark += f" {NO_ATTENTION if asked else 'It mixes no tokens at all.'}"
        return remark

    def _wrong_part(self) -> str:
        """What is wrong inside, as far as the weights that the module shows can tell."""
        internals = self.inside.internals
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
        if not self.subject.try_heads or not self.inside.internals:
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
            found = map(self.told.finding, names)
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


def examine(subject: Subject, in_lists: tuple[InList, ...] = ()) -> Examination:
    """Take all steps, each of which may use what those before it have found.

    Parameters
    ----------
    subject
        A module or a function, its input, and what it should be.
    in_lists
        Layers that stand in Python lists, and are registered for a while.
    """
    out, shown = subject.run(subject.x)
    told = from_outside.check_shape(subject, out, shown)
    if told.failed:
        nothing = Inside({}, {}, {}, {}, "", False, Told())
        return Examination(subject, nothing, told, {}, {}, None)
    inside = look_inside(subject)
    told += inside.told
    told += from_outside.check_finite(out, shown)
    told += from_outside.check_input_unchanged(subject)
    twice = from_outside.check_same_twice(subject, out)
    told += twice
    if not twice.failed:
        told += from_outside.check_without_weights(subject, out)
    of_reference, compared = from_inside.compare_attentions(subject, inside, told)
    told += of_reference
    weights = from_inside.known_weights(inside, compared, shown)
    told += from_inside.check_weights(subject, inside, compared, weights)
    right = {
        name: one.right if one.finding.ok or one.variants else None
        for name, one in compared.items()
    }
    of_dependence, changes = from_outside.check_dependence(subject, inside, out, right, told)
    told += of_dependence
    told += from_outside.check_context(subject)
    told += from_inside.check_plain_tensors(subject)
    told += from_inside.check_inputs(subject, inside)
    told += from_outside.check_training_mode(subject, told)
    told += from_outside.check_prefixes(subject, told)
    told += from_inside.check_what_heads_read(subject, inside)
    told += from_inside.check_heads(subject, inside, compared, out, told)
    told += from_inside.check_residuals_and_norms(subject, inside, compared, told)
    told += from_inside.check_parts_of_blocks(inside, told)
    gradients = check_gradients(subject, inside, compared, out, told)
    told += check_lists(in_lists, gradients)
    told = check_large_scores(subject, inside, compared, told)
    told = _one_name_for_two_paths(_differences_judged(told))
    exam = Examination(subject, inside, told, compared, weights, changes)
    return replace(exam, told=_each_probe_once(exam))


def _differences_judged(told: Told) -> Told:
    """A difference from the textbook is a failed probe where anything else is wrong."""
    for name, evidence in list(told.different.items()):
        if told.failed and not told.wrong and name not in SHOWN_BY_VARIANTS:
            others = {key: why for key, why in told.different.items() if key != name}
            told = replace(told + found(Finding(name, False, evidence)), different=others)
    return told


def _one_name_for_two_paths(told: Told) -> Told:
    """A mask that is missing on one of two paths is one bug, not two."""
    if from_outside.DROPPED_WITH_WEIGHTS not in told.wrong:
        return told
    return replace(told, bugs=tuple(bug for bug in told.bugs if bug.name != "no mask"))


def _each_probe_once(exam: Examination) -> Told:
    """What could not be checked everywhere is no passed probe."""
    told, not_checked = exam.told, dict(exam.told.not_checked)
    findings = told.findings
    for name in {finding.name for finding, _ in findings} & not_checked.keys():
        if told.passed(name):
            where = exam.places_in_words(name, True)
            not_checked[name] += f"; it passed in {where}" if where else "; elsewhere it passed"
            findings = tuple(pair for pair in findings if pair[0].name != name)
        else:
            del not_checked[name]
    return replace(told, findings=findings, not_checked=not_checked)


def with_crash(exam: Examination, finding: Finding, bug: Named) -> Examination:
    """Tell the error of a view, after all else was examined with reshape in its place."""
    told = exam.told
    right = not told.failed and not told.different
    if not told.wrong:
        told += recognised(bug.name, f"{bug.message} {WRITE_RESHAPE if right else NOT_RESHAPE}")
    return replace(exam, told=told + found(finding))
