"""Finds out by experiment what a wrong answer does, and says it in one or two sentences.

Nothing here knows an exercise: what is tried follows from the names of the axes, from the arguments
and from the reference. Every sentence is a fact that was computed.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator

from helpers.lesson.calls import same_conditions
from helpers.lesson.changed_inputs import right_for_other_inputs
from helpers.lesson.dependence import how_it_follows, what_it_adds_up, what_it_depends_on
from helpers.lesson.forms import what_form_it_has
from helpers.lesson.places import (
    a_row_of_weights,
    rows_by_size,
    where_it_is_wrong,
    which_sums_hold,
    zeros_missing,
)
from helpers.lesson.relations import (
    alike,
    columns_shifted,
    each_row,
    every_number,
    heads_elsewhere,
    other_places,
    row_factors,
    same_numbers,
    scores_multiplied,
    step_with_factors,
    what_it_is,
)
from helpers.lesson.trial import Observation, Trial

KINDS: tuple[Callable[[Trial], Iterator[Observation]], ...] = (
    what_it_is,
    every_number,
    other_places,
    row_factors,
    each_row,
    step_with_factors,
    scores_multiplied,
    columns_shifted,
    heads_elsewhere,
    alike,
    same_numbers,
    right_for_other_inputs,
    what_it_depends_on,
    what_it_adds_up,
    how_it_follows,
    what_form_it_has,
    where_it_is_wrong,
    rows_by_size,
    zeros_missing,
    which_sums_hold,
    a_row_of_weights,
)
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
    found: list[tuple[int, int, str]] = []
    with same_conditions(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the answer, which was told of them before
        for order, kind in enumerate(KINDS):
            # An experiment may trip over a result that its author did not foresee.
            with contextlib.suppress(Exception):
                of_this_kind = sorted(kind(trial), key=lambda one: one.rank)
                found += [(one.rank, order, one.text) for one in of_this_kind]
    found.sort(key=lambda one: one[0])
    if not found:
        return ()
    best = found[0]
    others = [one for one in found[1:] if one[1] != best[1]]
    if best[0] <= COMPLETE or not others:
        return (best[2],)
    return (best[2], others[0][2])
