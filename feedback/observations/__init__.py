"""Finds out by experiment what a wrong answer does, and says it in one or two sentences.

Nothing here knows an exercise: what is tried follows from the names of the axes, from the arguments
and from the reference. Every sentence is a fact that was computed; a guess ends in "?".

- `trial`: a wrong answer, what it was given and what came. `order`: how much a fact explains.
- `steps`: it is an argument or a step on the way. `factors`: every number is off in one way.
  `rearranged`: the right numbers elsewhere. `rows`: each row is off in its own way.
  `changed_inputs`: right for other inputs. `dependence`: what it depends on. `places`: where it is
  wrong. `forms`: shapes, types, crashes.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from attention_base.same import same_conditions
from feedback import messages
from feedback.observations import (
    changed_inputs,
    dependence,
    factors,
    forms,
    places,
    rearranged,
    rows,
    steps,
)
from feedback.observations.order import Rank
from feedback.observations.trial import Observation, Trial

KINDS: tuple[Callable[[Trial], Iterator[Observation]], ...] = (
    dependence.what_it_keeps,
    steps.what_it_is,
    steps.what_it_never_uses,
    steps.what_it_takes_from_the_notebook,
    forms.what_form_it_has,
    factors.every_number,
    rearranged.other_places,
    rows.row_factors,
    rows.each_row,
    steps.step_with_factors,
    rows.scores_multiplied,
    changed_inputs.right_for_other_inputs,
    dependence.what_it_depends_on,
    dependence.what_it_adds_up,
    dependence.how_it_follows,
    places.where_it_is_wrong,
    places.which_sums_hold,
    places.which_tokens_have_weights,
    places.a_row_of_weights,
)


def observe(trial: Trial, more: Iterable[Observation] = ()) -> tuple[str, ...]:
    """The one or two facts about an answer that explain most, the best first.

    Parameters
    ----------
    trial
        The answer and what came of it.
    more
        What else was found out; nothing is asked for where a fact above says all.

    Returns
    -------
    tuple of str
        Sentences; empty when no experiment found anything.
    """
    broken: list[str] = []
    with same_conditions(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the answer, which was told of them before
        found = _search(trial, broken)
        if not any(fact.rank <= Rank.OTHER_BAND for fact in found):
            found += [_Fact(one.rank, len(KINDS), one.text) for one in more]
        runs = [i for i, outcome in enumerate(trial.got) if not outcome.error]
        if trial.got[trial.shown].error:
            found += _where_it_runs(trial, broken)
        elif len(runs) < len(trial.got):  # on the others nothing can be seen
            found += [fact for fact in _search(trial.only(runs), broken) if fact not in found]
        elif any(trial.right) and not all(trial.right):
            found += _where_it_is_wrong(trial)
    found.sort(key=lambda fact: (fact.rank, fact.kind))
    best = found[:1]
    if best and best[0].rank > Rank.COMPLETE:
        best += [fact for fact in found if fact.kind != best[0].kind][:1]
    return (*(fact.text for fact in best), *dict.fromkeys(broken))


class _Fact(NamedTuple):
    rank: Rank
    kind: int  # the place of its experiment in KINDS
    text: str


def _search(trial: Trial, broken: list[str]) -> list[_Fact]:
    """All that the experiments found; what broke is told in `broken`, and raised under test."""
    found: list[_Fact] = []
    for i, kind in enumerate(KINDS):
        try:
            of_this_kind = sorted(kind(trial), key=lambda one: one.rank)
        except Exception as error:  # it tripped over a result that its author did not foresee
            if os.environ.get("ATTENTION_STRICT") == "1":
                raise
            broken.append(messages.broken_experiment(kind.__name__, error))
            continue
        found += [_Fact(one.rank, i, one.text) for one in of_this_kind]
        if any(fact.rank <= Rank.CERTAIN for fact in found):
            break
    return found


def _where_it_is_wrong(trial: Trial) -> list[_Fact]:
    """What the result is on the inputs for which it is wrong, where it is right for others."""
    there = trial.only([i for i, right in enumerate(trial.right) if not right])
    for kind in (
        steps.what_it_is,
        rearranged.other_places,
        changed_inputs.right_for_other_inputs,
    ):
        for one in kind(there):
            text = f"Where it is wrong, {one.text[0].lower()}{one.text[1:]}"
            return [_Fact(Rank.CAUSE, len(KINDS), text)]
    return []


def _where_it_runs(trial: Trial, broken: list[str]) -> list[_Fact]:
    """What is seen of an answer that raises, on an input for which it does not."""
    if not (runs := forms.where_it_runs(trial)):
        return []
    told, there, guess = runs
    if all(there.right):
        text = f"{told} your function runs, and it is right there{guess or '.'}"
        return [_Fact(Rank.WEIGHTED_SUM, len(KINDS), text)]
    seen = sorted(_search(there, broken), key=lambda fact: (fact.rank, fact.kind))
    # Less would say little of an input that was made for this.
    if seen and (seen[0].rank <= Rank.STRONG or told.endswith("input")):
        text = f"{told} your function runs. There, {seen[0].text[0].lower()}{seen[0].text[1:]}"
        return [_Fact(Rank.SOME_INPUTS, len(KINDS), text)]
    return []
