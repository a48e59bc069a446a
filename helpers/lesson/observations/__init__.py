"""Finds out by experiment what a wrong answer does, and says it in one or two sentences.

Nothing here knows an exercise: what is tried follows from the names of the axes, from the arguments
and from the reference. Every sentence is a fact that was computed; a guess ends in "?".

- `trial`: a wrong answer, what it was given and what came. `steps`: it is an argument or a step on
  the way. `factors`: every number is off in one way. `rearranged`: the right numbers elsewhere.
  `rows`: each row is off in its own way. `changed_inputs`: right for other inputs.
  `dependence`: what it depends on. `places`: where it is wrong. `forms`: shapes, types, crashes.
"""

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator

from helpers.lesson.observations.changed_inputs import right_for_other_inputs
from helpers.lesson.observations.dependence import (
    how_it_follows,
    what_it_adds_up,
    what_it_depends_on,
    what_it_keeps,
)
from helpers.lesson.observations.factors import every_number
from helpers.lesson.observations.forms import what_form_it_has, where_it_runs
from helpers.lesson.observations.places import (
    a_row_of_weights,
    right_for_positive_numbers,
    rows_by_size,
    where_it_is_wrong,
    which_sums_hold,
    zeros_missing,
)
from helpers.lesson.observations.rearranged import heads_elsewhere, other_places, same_numbers
from helpers.lesson.observations.rows import (
    columns_shifted,
    each_row,
    row_factors,
    scores_multiplied,
    symmetric,
)
from helpers.lesson.observations.steps import step_with_factors, what_it_is
from helpers.lesson.observations.trial import Observation, Trial
from helpers.same import same_conditions

KINDS: tuple[Callable[[Trial], Iterator[Observation]], ...] = (
    what_it_keeps,
    what_it_is,
    what_form_it_has,
    every_number,
    other_places,
    row_factors,
    each_row,
    step_with_factors,
    scores_multiplied,
    columns_shifted,
    heads_elsewhere,
    symmetric,
    same_numbers,
    right_for_other_inputs,
    what_it_depends_on,
    what_it_adds_up,
    how_it_follows,
    where_it_is_wrong,
    right_for_positive_numbers,
    rows_by_size,
    zeros_missing,
    which_sums_hold,
    a_row_of_weights,
)
CERTAIN = 4  # nothing explains more than a fact of at most this rank: the search ends
STRONG = 8  # a fact of at most this rank points to a cause by itself
COMPLETE = 6  # a fact of at most this rank says all; another sentence would only distract


def observe(trial: Trial) -> tuple[str, ...]:
    """The one or two facts about an answer that explain most, the best first.

    Parameters
    ----------
    trial
        The answer and what came of it.

    Returns
    -------
    tuple of str
        Sentences; empty when no experiment found anything.
    """
    with same_conditions(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the answer, which was told of them before
        found = _search(trial)
        runs = [i for i, outcome in enumerate(trial.got) if not outcome.error]
        if trial.got[trial.shown].error:
            found = sorted([*found, *_where_it_runs(trial)])
        elif len(runs) < len(trial.got):  # on the others nothing can be seen
            found = sorted({*found, *_search(trial.only(runs))})
        elif any(trial.right) and not all(trial.right):
            found = sorted([*found, *_where_it_is_wrong(trial)])
    if not found:
        return ()
    best = found[0]
    others = [one for one in found[1:] if one[1] != best[1]]
    if best[0] <= COMPLETE or not others:
        return (best[2],)
    return (best[2], others[0][2])


def _search(trial: Trial) -> list[tuple[int, int, str]]:
    """Rank, kind and text of all that the experiments found, the best first."""
    found: list[tuple[int, int, str]] = []
    for order, kind in enumerate(KINDS):
        # An experiment may trip over a result that its author did not foresee.
        with contextlib.suppress(Exception):
            of_this_kind = sorted(kind(trial), key=lambda one: one.rank)
            found += [(one.rank, order, one.text) for one in of_this_kind]
        if found and min(found)[0] <= CERTAIN:
            break
    return sorted(found, key=lambda one: one[0])


def _where_it_is_wrong(trial: Trial) -> Iterator[tuple[int, int, str]]:
    """What the result is on the inputs for which it is wrong, where it is right for others."""
    there = trial.only([i for i, right in enumerate(trial.right) if not right])
    for kind in (what_it_is, other_places, right_for_other_inputs):
        for one in itertools.islice(kind(there), 1):
            text = f"{one.text[0].lower()}{one.text[1:]}"
            yield 8, len(KINDS), f"Where it is wrong, {text}"
            return


def _where_it_runs(trial: Trial) -> Iterator[tuple[int, int, str]]:
    """What is seen of an answer that raises, on an input for which it does not."""
    found = where_it_runs(trial)
    if not found:
        return
    told, there, guess = found
    if all(there.right):
        text = f"{told} your function runs, and it is right there{guess or '.'}"
        yield 13, len(KINDS), text
        return
    seen = _search(there)
    # Less would say little of an input that was made for this.
    if seen and (seen[0][0] <= STRONG or told.startswith("For")):
        text = seen[0][2]
        yield 14, len(KINDS), f"{told} your function runs. There, {text[0].lower()}{text[1:]}"
