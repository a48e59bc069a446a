"""All exercises, predictions and terms, each notebook's from two files beside this one.

``NN.md`` is the page that a learner's feedback stands on: titles, hints, mistakes, predictions and
terms, in prose. ``nbNN.py`` computes: references, inputs, properties, other right forms. A new
notebook is found by its two files; nothing else needs editing.

``EXERCISES`` and ``PREDICTIONS`` map an id such as ``"03.1"`` or ``"03.p1"`` to its object,
``TERMS`` a term's name to its definition and ``SERIES`` a notebook's number to its idea in a few
words, in the order of the notebooks.
"""

import importlib
import pkgutil
import re
from pathlib import Path

from attention_base.known import PageError
from feedback import messages
from feedback.grading import Exercise
from lesson.pages import join
from lesson.question import Prediction
from lesson.terms import Term

# A learner writes in none of our packages.
PROJECT = Path(__file__).resolve().parents[2]
messages.NOT_THEIRS += [str(path.parent) for path in PROJECT.glob("*/__init__.py")]

# Exercises and predictions that have gone, with the titles they had. Their ids are never used
# again, since progress files have them.
RETIRED = {
    "00.1": "The mean token",
    "00.3": "Swap the last two axes",
    "00.p4": "A column of a view",
    "01.2": "One loop for the whole batch",
    "03.p5": "Read published weights",
    "04.1": "One score",
    "04.2": "From nn.Linear to a plain matrix",
    "04.3": "A causal head",
    "04.p2": "The lowest of three scores",
    "05.1": "Measure the variance of scores",
    "05.p3": "Adam and saturated heads",
    "06.1": "A list of heads",
    "06.2": "All heads in one tensor",
    "06.3": "Split a fused weight",
    "06.p1": "Heads in another order",
    "07.1": "Feed-forward network",
    "07.3": "The block",
    "08.1": "Shuffled tokens, shuffled outputs",
    "08.2": "Turn pairs of channels",
    "10.1": "The loss of the next letter",
    "10.2": "Write",
    "10.5": "How likely is the letter?",
    "10.p3": "A window of four letters",
    "12.p3": "One head of four less",
    "12.p4": "Induction heads in the model that writes",
    "12.p6": "After a quarter of the steps",
    "13.3": "Whatever the scores are",
    "13.p3": "One query and six kept keys",
    "13.p7": "A bug that only a reference finds",
    "13.p8": "A row of the table",
    "13.9": "A question for QK-norm",
    "14.1": "A cache",
    "14.3": "Attention as a loop",
    "14.p2": "Texts behind a cache without a mask",
    "14.p4": "A mask in place of is_causal=True",
    "14.p5": "What a block of DeepSeek-V3 keeps",
    "15.2": "Move weights",
    "15.3": "A window with sinks",
}

# Predictions that ask about what stands above them in their notebook, such as a program or a
# picture, so nobody can answer them elsewhere: review() leaves them out.
NEED_THEIR_NOTEBOOK = {
    *("00.p1", "01.p3", "03.p1", "08.p2", "08.p4", "09.p2", "09.p3", "10.p4"),
    *("13.p4", "13.p6", "13.p9", "15.p5", "15.p6", "15.p8"),
}

EXERCISES: dict[str, Exercise] = {}
PREDICTIONS: dict[str, Prediction] = {}
TERMS: dict[str, Term] = {}
SERIES: dict[str, str] = {}


def define(into: dict[str, Term], terms: list[Term]) -> None:
    """Add the terms that a notebook introduces.

    Raises
    ------
    PageError
        When two terms share a name or a synonym.
    """
    for term in terms:
        for known in into.values():
            if twice := {known.name, *known.also} & {term.name, *term.also}:
                raise PageError(
                    f"{term.notebook}.md: the term “{min(twice)}” stands in {known.notebook}.md, "
                    "too. Define it where it is first used."
                )
        into[term.name] = term


for _name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    if re.fullmatch(r"nb\d\d", _name):
        SERIES[_name[2:]], _exercises, _predictions, _terms = join(
            importlib.import_module(f"{__name__}.{_name}"), EXERCISES
        )
        EXERCISES |= {exercise.id: exercise for exercise in _exercises}
        PREDICTIONS |= {prediction.id: prediction for prediction in _predictions}
        define(TERMS, _terms)
