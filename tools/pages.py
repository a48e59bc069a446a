"""Try the pages of exercises after an edit: `make pages`, or `make pages NB=03` for one.

A page that cannot be read ends in one sentence with file and line. Then each mistake is put into
its exercise, which has to refuse it by its own name: one that changes no result, or the same
results as another one, is told. The exit code is 1 where anything is to mend.
"""

import sys
from collections.abc import Iterator

from tools import notebooks


def main(number: str = "") -> None:
    """Try one page, or all of them."""
    try:
        from helpers.lesson.exercises import EXERCISES, PREDICTIONS, TERMS
    except ValueError as error:  # a page that cannot be read: the text names file and line
        notebooks.stop(str(error))
    failed = False
    for name in (path.name[:2] for path in notebooks.chosen(number)):
        exercises = [one for id, one in EXERCISES.items() if id.startswith(name)]
        faults = [fault for exercise in exercises for fault in faults_of(exercise)]
        failed |= bool(faults)
        n_mistakes = sum(len(exercise.mistakes) for exercise in exercises)
        n_predictions = sum(id.startswith(name) for id in PREDICTIONS)
        n_terms = sum(term.notebook == name for term in TERMS.values())
        print(
            f"{name}.md: {len(exercises)} exercises, {n_mistakes} mistakes, "
            f"{n_predictions} predictions, {n_terms} terms"
        )
        print("\n".join(f"  {fault}" for fault in faults) or "  nothing to mend")
    raise SystemExit(failed)


def faults_of(exercise: "Exercise") -> Iterator[str]:  # noqa: F821 - a faulty page stops its import
    """Say which mistakes of an exercise it does not refuse by their own names."""
    for mistake in exercise.mistakes:
        where = f"{mistake.known.where}, “{mistake.name}”"
        try:
            verdict = exercise.check(mistake.code)
        except ValueError as error:  # its change makes no program
            yield str(error)
            continue
        if verdict.status != "failed":
            yield f"{where}: with this change the answer passes {exercise.id}. Change what matters."
        elif verdict.mistake != mistake.name:
            other = f"as “{verdict.mistake}”" if verdict.mistake else "another result"
            yield f"{where}: this gives the same results {other}. One of the two is enough."


if __name__ == "__main__":
    main(*sys.argv[1:])
