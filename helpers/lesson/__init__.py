"""What a learner calls: predict, check, hint and solution, and what they know of each notebook."""

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
