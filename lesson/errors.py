"""The errors that a learner sees: words, and no traceback."""


class LessonError(Exception):
    """An error told in words only: Jupyter shows its text, and no traceback."""

    def __str__(self) -> str:
        return str(self.args[0])

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


class CheckFailed(LessonError):
    """An exercise's answer is wrong; the text says how."""


class UnknownId(LessonError, KeyError):
    """There is no exercise or prediction of this id; the text names the nearest."""


class UnknownTerm(LessonError, KeyError):
    """The glossary has no such term; the text names those that are near."""


class NotAChoice(LessonError, ValueError):
    """The answer given to a prediction is none of its choices."""
