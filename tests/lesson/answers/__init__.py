"""Wrong answers to the exercises, written by people who had not seen the mistakes' code.

Those without a name are told by what experiments find out. Of those with one, each exercise keeps
the program that has the least in common with the mistake's code: that every mistake is named, and
with other names for its variables, is tried with this code in `tests/lesson/test_exercises.py`.
"""

import importlib
import pkgutil
from collections.abc import Callable
from typing import NamedTuple


class WrongAnswer(NamedTuple):
    """A function that answers an exercise wrongly: how, or the name of the mistake."""

    exercise: str
    what: str
    named: str
    function: Callable


WRONG: list[WrongAnswer] = []


def wrong(exercise: str, what: str = "", *, named: str = "") -> Callable[[Callable], Callable]:
    """Keep the function below as a wrong answer, which gets this name, or else an observation."""

    def keep(function: Callable) -> Callable:
        WRONG.append(WrongAnswer(exercise, what or named, named, function))
        return function

    return keep


def load() -> list[WrongAnswer]:
    """All wrong answers, from the files beside this one."""
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("nb"):
            importlib.import_module(f"{__name__}.{module.name}")
    return WRONG
