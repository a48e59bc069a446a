"""All exercises and predictions, gathered from the files ``nbNN.py`` beside this one.

``EXERCISES`` and ``PREDICTIONS`` map an id such as ``"03.1"`` or ``"03.p1"`` to its object, in
the order of the notebooks. A new file is found by its name; nothing else needs editing.
"""

import importlib
import pkgutil
import re

from helpers.lesson.grading import Exercise
from helpers.lesson.question import Prediction

EXERCISES: dict[str, Exercise] = {}
PREDICTIONS: dict[str, Prediction] = {}


def gather(into: dict, found: tuple, source: str) -> None:
    """Add exercises or predictions to a dict by their ids; an id that is taken is refused.

    Raises
    ------
    ValueError
        When two entries have one id, or an id does not begin with its file's number.
    """
    for entry in found:
        if entry.id in into:
            raise ValueError(f"{source}: the id {entry.id!r} is taken. Give each its own.")
        if not entry.id.startswith(source.removeprefix("nb") + "."):
            raise ValueError(f"{source}: the id {entry.id!r} must begin with the file's number.")
        into[entry.id] = entry


for _name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    if re.fullmatch(r"nb\d\d", _name):
        _module = importlib.import_module(f"{__name__}.{_name}")
        gather(EXERCISES, _module.EXERCISES, _name)
        gather(PREDICTIONS, _module.PREDICTIONS, _name)
