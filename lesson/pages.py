"""Joins what is told about a notebook's exercises and predictions with what is computed.

Told is it by a page, ``exercises/NN.md`` (`attention_base.known` says how a page is written)::

    # 02 the idea of the notebook ⏎ in a few words, for the map of the series

    # 02.1 The title of an exercise
    what a pass has checked
    - a hint; from vague to nearly there
    ## a mistake
        what stands in the reference → what stands there instead
    what a learner sees, and why
    ## a mistake that is another program
        def its_function_in_nb02
    As in 01.1.

    # 02.p1
    the question
    ## a wrong choice
    why it is wrong
    ## ✓ the right choice
    why it is right

    # Terms
    - name (also a synonym, another; everyday word): what it means

Computed is it by ``exercises/nbNN.py``: the reference of an exercise, its inputs, and more.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from attention_base.known import Known, Line, PageError, Section, changed_source, read
from feedback.grading import Exercise, Mistake
from lesson.question import Choice, Prediction
from lesson.terms import Term

SAME = re.compile(r"As in (\d\d\.\w+)(?:, “(.+)”)?\.")
TERM = re.compile(r"(?P<name>[^:(]+?)(?: \((?P<more>[^)]*)\))?: (?P<meaning>.+)")
MORE = re.compile(r"(?:also (?P<also>[^;]+))?(?:; )?(?P<everyday>everyday word)?")

Joined = tuple[str, list[Exercise], list[Prediction], list[Term]]


def join(module: ModuleType, above: Mapping[str, Exercise]) -> Joined:
    """The idea, the exercises, the predictions and the terms of a notebook, complete.

    Parameters
    ----------
    module
        One of ``exercises/nbNN.py``; its page lies beside it.
    above
        The exercises of earlier notebooks, at which a message may stand already.

    Raises
    ------
    PageError
        When the page does not say what it should; the text names file and line.
    """
    path = Path(module.__file__).with_name(module.__name__[-2:] + ".md")
    computed = {exercise.id: exercise for exercise in module.EXERCISES}
    exercises = {id: one for id, one in computed.items() if one.title}  # told already, as builds
    predictions: list[Prediction] = []
    terms: list[Term] = []
    idea = ""
    for section in read(path):
        id, _, title = section.head.partition(" ")
        if id == path.stem and title:
            idea = re.sub(r"\s*⏎\s*", "\n", title)
        elif section.head == "Terms":
            terms += [_term(item, path.stem) for item in section.items]
        elif re.fullmatch(rf"{path.stem}\.p\d+", section.head):
            predictions.append(_prediction(section, [p.id for p in predictions]))
        elif id in computed and id not in exercises:
            exercises[id] = _exercise(computed[id], title, section, module, {**above, **exercises})
        else:
            known = ", ".join(sorted(computed.keys() - exercises.keys())) or "no exercise"
            raise PageError(
                f"{section.where}: “{section.head}” is no heading here. A section is `# Terms`, a "
                f"prediction such as `# {path.stem}.p1`, or an exercise of {path.stem} with its "
                f"title, once: of {Path(module.__file__).name}, {known} is not told above."
            )
    for id in computed.keys() - exercises.keys():
        raise PageError(f"{path.name}: exercise {id} is missing. Begin it with `# {id} Its title`.")
    if not idea:
        raise PageError(f"{path.name}: begin it with its idea, as in `# {path.stem} one head`.")
    return idea, [exercises[id] for id in computed], predictions, terms


def _exercise(
    computed: Exercise,
    title: str,
    section: Section,
    module: ModuleType,
    above: Mapping[str, Exercise],
) -> Exercise:
    where = section.where
    for what, there, form in (
        ("title", title, f"`# {computed.id} The loop`"),
        (
            "single line that says what a pass has checked",
            len(section.lines) == 1,
            "one, below its title",
        ),
        ("hint", section.items, "`- Which axis should disappear?`"),
        ("mistake", section.entries, "`## divided by T`"),
    ):
        if not there:
            raise PageError(f"{where}: exercise {computed.id} has no {what}. Write {form}.")
    told: list[Mistake] = []
    for known in section.entries:
        message = _message(
            known, {id: one.mistakes for id, one in above.items()} | {computed.id: told}
        )
        told.append(Mistake(replace(known, message=message), _function(known, computed, module)))
    return replace(
        computed,
        title=title,
        checked=section.lines[0].text,
        hints=tuple(item.text for item in section.items),
        mistakes=tuple(told),
    )


def _function(known: Known, exercise: Exercise, module: ModuleType) -> object:
    """The function of a mistake that is another program; None where it is a change that fits."""
    where = f"{known.where}, “{known.name}”"
    if known.changes and not known.function:
        changed_source(exercise.reference, known.changes, where)
        return None
    file = Path(module.__file__).name
    if not known.function:
        raise PageError(
            f"{where}: below the name belongs what this mistake changes, as in `    dim=1 → dim=0`"
            f", or the function of {file} that makes it, as in `    def own_program`."
        )
    if not callable(function := getattr(module, known.function, None)):
        raise PageError(f"{where}: {file} has no function {known.function}.")
    return function


def _message(known: Known, above: Mapping[str, Sequence[Mistake]]) -> str:
    """What is told about a mistake; it may stand at one above: "As in 01.1."."""
    where = f"{known.where}, “{known.name}”"
    if not known.message:
        raise PageError(f"{where}: say in a line below it what a learner sees, and why.")
    if not (same := SAME.fullmatch(known.message)):
        return known.message
    id, name = same[1], same[2] or known.name
    there = {mistake.name: mistake for mistake in above.get(id, ())}
    if name not in there:
        near = difflib.get_close_matches(name, there, n=1, cutoff=0.3)
        raise PageError(
            f"{where}: above it, {id} has no mistake “{name}”"
            + (f", but “{near[0]}”." if near else ". Write what is told here.")
        )
    return there[name].message


def _prediction(section: Section, above: list[str]) -> Prediction:
    where, id = section.where, section.head
    if id in above:
        raise PageError(f"{where}: {id} stands above, too. Give each prediction its own number.")
    if len(section.lines) != 1:
        raise PageError(f"{where}: below {id} belongs its question, on one line.")
    if not 2 <= len(section.entries) <= 10:
        raise PageError(f"{where}: {id} needs two to ten choices, each as `## its text`.")
    right = [entry for entry in section.entries if entry.name.startswith("✓ ")]
    if len(right) != 1:
        raise PageError(
            f"{where}: {id} has {len(right) or 'no'} right choices. Mark one: `## ✓ its text`."
        )
    choices = {}
    for letter, entry in zip("abcdefghij", section.entries, strict=False):
        if not entry.message or entry.changes:
            raise PageError(f"{entry.where}: below a choice belongs only why it is right or wrong.")
        choices[letter] = Choice(entry.name.removeprefix("✓ "), entry.message)
    answer = "abcdefghij"[section.entries.index(right[0])]
    return Prediction(id, section.lines[0].text, choices, answer)


def _term(item: Line, notebook: str) -> Term:
    found = TERM.fullmatch(item.text)
    more = found and MORE.fullmatch(found["more"] or "")
    if not more:
        raise PageError(
            f"{item.where}: a term is `- name: what it means`, or `- name (also a synonym, "
            "another; everyday word): what it means`."
        )
    also = tuple(more["also"].split(", ")) if more["also"] else ()
    return Term(found["name"], found["meaning"], also, bool(more["everyday"]), notebook)
