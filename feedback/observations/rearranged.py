"""The right numbers in other places, or only a part of them."""

import itertools
from collections.abc import Callable, Iterator

from torch import Tensor

from attention_base.numbers import joined, listed
from feedback.observations.order import Rank
from feedback.observations.trial import Observation, Trial, place_word, plural


def other_places(trial: Trial) -> Iterator[Observation]:
    """The right numbers in other places: axes swapped, parts exchanged, repeated or shifted."""
    if any(v is None for v in trial.values) or all(trial.right):
        return
    yield from _axes_exchanged(trial)
    yield from _parts_elsewhere(trial)
    yield from _reduced(trial)


def _axes_exchanged(trial: Trial) -> Iterator[Observation]:
    dim = trial.wanted[0].dim()
    words = trial.result_axes
    if any(z.dim() != dim for z in (*trial.values, *trial.wanted)) or dim < 2 or dim > 5:
        return
    for order in itertools.permutations(range(dim)):
        if list(order) == sorted(order):
            continue
        if trial.is_everywhere([e.permute(order) for e in trial.wanted]):
            moved = [i for i in range(dim) if order[i] != i]
            if len(moved) == 2 and len(words) == dim and words[moved[0]] != words[moved[1]]:
                told = f"axes {words[moved[0]]} and {words[moved[1]]} have changed places"
            elif len(moved) == 2 and moved == [dim - 2, dim - 1]:
                told = "rows and columns are swapped"
            elif len(moved) == 2:
                told = f"axes {moved[0]} and {moved[1]} have changed places"
            else:
                told = f"all of its axes have changed places, as by permute{tuple(order)}"
            yield Observation(Rank.OTHER_FORM, f"The numbers are right, but {told}.")
            return
    for a, b in itertools.combinations(range(dim), 2):
        for one in (a, b):
            turned = [e.transpose(a, b).flip(one) for e in trial.wanted]
            if trial.is_everywhere(turned):
                place = place_word(trial, one, dim)
                yield Observation(
                    Rank.OTHER_FORM,
                    f"The numbers are right, but axes {a} and {b} have changed places, and the "
                    f"order of the {plural(place)} is reversed: the matrix is turned by 90°.",
                )
                return


def _parts_elsewhere(trial: Trial) -> Iterator[Observation]:
    """Along one axis, every part of the result is a part of the right result."""
    if not trial.pairs:
        return
    case = max(range(len(trial.pairs)), key=lambda i: trial.pairs[i][1].numel())
    case = case if not trial.right[case] else trial.shown
    value, expected = trial.pairs[case]
    for axis in range(value.dim()):
        places = _sources(trial, value, expected, axis)
        if not places or places == list(range(len(places))) or len(places) < 2:
            continue
        word = place_word(trial, axis, value.dim())
        text = _moved(places, word)
        if text and _holds_in_all(trial, axis - value.dim(), places):
            yield Observation(Rank.ALL_ROWS if "shifted" in text else Rank.PARTS_MOVED, text)


def _sources(trial: Trial, value: Tensor, expected: Tensor, axis: int) -> list[int | None]:
    """For each place along an axis, where in the right result its numbers stand; None: nowhere."""
    if not value.isfinite().all() or -axis > value.dim():  # other inputs may have fewer axes
        return []
    mine, right = (z.movedim(axis, 0).reshape(z.shape[axis], -1) for z in (value, expected))
    if right.shape[1] < 2 or right.shape[0] > 12:
        return []
    found = []
    for i, part in enumerate(mine):
        fits = trial.close(part.expand_as(right), right).all(1)
        if not fits.any():
            found.append(None)
        else:
            found.append(i if fits[i] else int(fits.nonzero()[0]))
    return found if sum(f is None for f in found) <= 1 else []


def _moved(places: list[int | None], word: str) -> str:
    count = len(places)
    known = [p for p in places if p is not None]
    if len(set(known)) == 1 and None not in places:
        return f"Every {word} of your result is what {word} {known[0]} should be."
    for step in (1, -1):
        inner = [(i, i - step) for i in range(count) if 0 <= i - step < count]
        if count > 2 and all(places[i] == j for i, j in inner):
            first, source = inner[-1] if step == 1 else inner[0]
            return (
                f"Your result is shifted by one: {word} {first} of your result is what "
                f"{word} {source} should be."
            )
    if None in places:
        return ""
    if places == list(reversed(range(count))):
        return (
            f"The order of the {word}s is reversed: {word} 0 is what {word} {count - 1} should be."
        )
    moved = [i for i, p in enumerate(places) if p != i]
    if len(moved) > 1 and len({places[i] for i in moved}) == 1:
        told = f"{plural(word)} {listed(moved)} are what {word} {places[moved[0]]} should be"
    else:
        told = joined([f"{word} {i} is what {word} {places[i]} should be" for i in moved[:3]])
    return f"The parts are right, but in other places: {told}."


def _holds_in_all(trial: Trial, axis: int, places: list[int | None]) -> bool:
    """Tell whether all other inputs show moved parts along this axis, too."""
    for (value, expected), right in zip(trial.pairs, trial.right, strict=True):
        if right or expected.numel() < 3 or 1 in expected.shape:  # such a size hides a move
            continue
        if not _sources(trial, value, expected, axis):
            return False
    return True


REDUCTIONS: tuple[tuple[str, Callable], ...] = (
    ("the mean of the right one over its {0}s", lambda e, a: e.mean(a)),
    ("the sum of the right one over its {0}s", lambda e, a: e.sum(a)),
    ("{} 0 of the right one", lambda e, a: e.select(a, 0)),
    ("the last {} of the right one", lambda e, a: e.select(a, -1)),
    ("the right one cut off after {} 0", lambda e, a: e.narrow(a, 0, 1)),
    ("the right one without its last {}", lambda e, a: e.narrow(a, 0, max(e.shape[a] - 1, 0))),
    ("the right one without its {} 0", lambda e, a: e.narrow(a, 1, max(e.shape[a] - 1, 0))),
)


def _reduced(trial: Trial) -> Iterator[Observation]:
    """The result is the right one with an axis gone, cut, or one too many."""
    dim = trial.wanted[0].dim()
    if any(e.dim() != dim for e in trial.wanted):
        return
    for axis, (name, reduce) in itertools.product(range(dim), REDUCTIONS):
        if any(e.shape[axis] == 0 for e in trial.wanted):
            continue
        parts = [reduce(e, axis) for e in trial.wanted]
        if "{0}" in name and all(trial.close(z, z.flatten()[:1]).all() for z in parts):
            continue  # a mean or sum of weights that is 1 / T, whatever they are
        if trial.is_everywhere(parts):
            text = f"Your result is {name.format(place_word(trial, axis, dim))}."
            yield Observation(Rank.OTHER_FORM, text)
            return
    if all(v.dim() == dim + 1 for v in trial.values):
        for axis in range(dim + 1):
            firsts = [v.select(axis, 0) for v in trial.values if v.shape[axis]]
            if len(firsts) == len(trial.values) and all(map(trial.same, firsts, trial.wanted)):
                which = "the only place" if trial.values[0].shape[axis] == 1 else "place 0"
                text = f"The right result stands at {which} along your axis {axis}."
                yield Observation(Rank.OTHER_FORM, text)
                return
    if all(
        v.numel() == e.numel() > 1 and trial.same(v.flatten(), e.flatten())
        for v, e in zip(trial.values, trial.wanted, strict=True)
    ):
        text = "The numbers and their reading order are right; only the shape is another."
        yield Observation(Rank.OTHER_FORM, text)
        return
    if all(v.dim() == dim for v in trial.values):
        for axis in range(dim):
            yield from _contained(trial, axis, dim)


def _contained(trial: Trial, axis: int, dim: int) -> Iterator[Observation]:
    """The right result is the first or last part of a longer one."""
    longer = [
        v.shape[axis] - e.shape[axis] for v, e in zip(trial.values, trial.wanted, strict=True)
    ]
    if min(longer) <= 0:
        return
    word = place_word(trial, axis, dim)
    for start, told in ((False, "begins with"), (True, "ends with")):
        parts = [
            v.narrow(axis, n if start else 0, v.shape[axis] - n)
            for v, n in zip(trial.values, longer, strict=True)
        ]
        if all(map(trial.same, parts, trial.wanted)):
            counts = {v.shape[axis] for v in trial.values}
            more = f"has {longer[0]} more {word if longer[0] == 1 else plural(word)}"
            if len(set(longer)) > 1:
                more = f"is longer: it has {longer[0]} more {plural(word)} in the first input"
                if len(counts) == 1:
                    more = f"always has {counts.pop()} {plural(word)}"
            yield Observation(Rank.OTHER_FORM, f"Your result {told} the right one and {more}.")
            return
