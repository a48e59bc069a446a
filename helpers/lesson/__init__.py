"""What a learner calls in a notebook: predict, check, hint, solution, glossary and progress.

- `cells`: the first five, and the errors that they raise. `question`: a prediction with buttons.
- `progress_file`: keeps a learner's answers. `progress_view`: the sixth, shows them. `series_view`:
  the map of the series.
- `grading`: what an exercise and a mistake are. `judge`: judges one answer. `calls`: runs it.
  `contracts`: more inputs for one that looks right. `observations`: experiments that find
  out what a wrong one does. `axes`: what axes are called. `messages`: what is said about a wrong
  answer.
- `exercises`: for each notebook a page, with all that is told about its exercises, predictions and
  terms, and a file with what is computed. `pages` joins the two; `terms`: what a term is.
"""

from helpers.lesson.cells import (
    CheckFailed,
    LessonError,
    NotAChoice,
    UnknownId,
    UnknownTerm,
    check,
    glossary,
    hint,
    known_mistakes,
    predict,
    solution,
)
from helpers.lesson.exercises import EXERCISES, PREDICTIONS, TERMS
from helpers.lesson.progress_view import progress
from helpers.lesson.series_view import series_map

__all__ = [
    "EXERCISES",
    "PREDICTIONS",
    "TERMS",
    "CheckFailed",
    "LessonError",
    "NotAChoice",
    "UnknownId",
    "UnknownTerm",
    "check",
    "glossary",
    "hint",
    "known_mistakes",
    "predict",
    "progress",
    "series_map",
    "solution",
]
