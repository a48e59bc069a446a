"""All exercises, predictions and terms, gathered from the files ``nbNN.py`` beside this one.

``EXERCISES`` and ``PREDICTIONS`` map an id such as ``"03.1"`` or ``"03.p1"`` to its object, and
``TERMS`` a term's name to its definition, in the order of the notebooks. A new file is found by
its name; nothing else needs editing.
"""

import importlib
import pkgutil
import re
from dataclasses import replace

from helpers.lesson.grading import Exercise
from helpers.lesson.question import Prediction
from helpers.lesson.terms import Term

EXERCISES: dict[str, Exercise] = {}
PREDICTIONS: dict[str, Prediction] = {}
TERMS: dict[str, Term] = {}


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


def define(into: dict[str, Term], terms: tuple[Term, ...], source: str) -> None:
    """Add the terms that a notebook introduces; a name that is taken is refused.

    Raises
    ------
    ValueError
        When two terms share a name or a synonym.
    """
    for term in terms:
        taken = {name for known in into.values() for name in (known.name, *known.also)}
        if twice := taken & {term.name, *term.also}:
            raise ValueError(f"{source}: {min(twice)!r} is defined twice. One place for each term.")
        into[term.name] = replace(term, notebook=source.removeprefix("nb"))


for _name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    if re.fullmatch(r"nb\d\d", _name):
        _module = importlib.import_module(f"{__name__}.{_name}")
        gather(EXERCISES, _module.EXERCISES, _name)
        gather(PREDICTIONS, _module.PREDICTIONS, _name)
        define(TERMS, _module.TERMS, _name)
