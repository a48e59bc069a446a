"""Try the pages of exercises after an edit: `make pages`, or `make pages NB=03` for one.

A page that cannot be read ends in one sentence with file and line. Then each mistake is put into
its exercise, which has to refuse it by its own name: one that changes no result, or the same
results as another one, is told. The exit code is 1 where anything is to mend.
"""

import sys
from collections.abc import Iterator

from helpers.known import PageError
from tools import notebooks


def main(number: str = "") -> None:
    """Try one page, or all of them."""
    chosen = [path.name[:2] for path in notebooks.chosen(number)]
    try:
        from helpers.lesson.exercises import EXERCISES, PREDICTIONS, TERMS

        failed = False
        for name in chosen:
            exercises = [one for id, one in EXERCISES.items() if id.startswith(name)]
            faults = [fault for exercise in exercises for fault in faults_of(exercise)]
            failed |= bool(faults)
            counts = (
                len(exercises),
                sum(len(exercise.mistakes) for exercise in exercises),
                sum(id.startswith(name) for id in PREDICTIONS),
                sum(term.notebook == name for term in TERMS.values()),
            )
            print(
                "{}.md: {} exercises, {} mistakes, {} predictions, {} terms".format(name, *counts)
            )
            print("\n".join(f"  {fault}" for fault in faults) or "  nothing to mend")
    except PageError as error:
        notebooks.stop(str(error))
    raise SystemExit(failed)


def faults_of(exercise: "Exercise") -> Iterator[str]:  # noqa: F821 - a faulty page stops its import
    """Say which mistakes of an exercise it does not refuse by their own names."""
    for mistake in exercise.mistakes:
        where = f"{mistake.known.where}, “{mistake.name}”"
        verdict = exercise.check(mistake.code)
        if verdict.status != "failed":
            yield f"{where}: with this change the answer passes {exercise.id}. Change what matters."
        elif verdict.mistake != mistake.name:
            other = f"as “{verdict.mistake}”" if verdict.mistake else "another result"
            yield f"{where}: this gives the same results {other}. One of the two is enough."


if __name__ == "__main__":
    main(*sys.argv[1:])
