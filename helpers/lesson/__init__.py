"""What a learner calls in a notebook: predict, check, hint and solution.

- `cells`: these four, and the errors that they raise. `question`: a prediction with its buttons.
- `grading`: what an exercise and a mistake are, and how an answer is judged. `messages`: what is
  said about a wrong answer. `patches`: makes a mistake from a change of the reference.
- `exercises`: one file for each notebook, with its solutions, known mistakes, hints, predictions.
"""

from helpers.lesson.cells import (
    CheckFailed,
    LessonError,
    NotAChoice,
    UnknownId,
    check,
    hint,
    predict,
    solution,
)
from helpers.lesson.exercises import EXERCISES, PREDICTIONS

__all__ = [
    "EXERCISES",
    "PREDICTIONS",
    "CheckFailed",
    "LessonError",
    "NotAChoice",
    "UnknownId",
    "check",
    "hint",
    "predict",
    "solution",
]
