"""What the learner calls: predict, check, hint, solution."""

import difflib
import html
import inspect
import re
import textwrap
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from helpers.lesson.exercises import EXERCISES, PREDICTIONS, Exercise, Prediction
from helpers.show import wrap_text

if TYPE_CHECKING:
    import ipywidgets


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


class NotAChoice(LessonError, ValueError):
    """The answer given to a prediction is none of its choices."""


def check(id: str, candidate: Callable) -> Callable:
    """Check an answer to an exercise, and return the function to go on with.

    Parameters
    ----------
    id
        The exercise, such as "03.1".
    candidate
        The learner's function (itself, not its result).

    Returns
    -------
    Callable
        The candidate when it passes; the reference when it was not attempted (it raises
        NotImplementedError), so that the cells below run.

    Raises
    ------
    CheckFailed
        When the answer is wrong. The text names the mistake, or the first difference.
    UnknownId
        When there is no such exercise.
    """
    if callable(id) and isinstance(candidate, str):
        raise LessonError(f'The id comes first: check("{candidate}", {_name(id)}).')
    exercise = _find(id, EXERCISES)
    verdict = exercise.check(candidate)
    head = f"{exercise.id} {exercise.title}"
    if verdict.status == "passed":
        print(wrap_text(f"✓ {head}: {verdict.message}"))
        return candidate
    if verdict.status == "not attempted":
        print(f"○ {head}: {verdict.message}")
        print(f'The reference stands in, so the cells below run. hint("{exercise.id}") helps.')
        return exercise.reference
    lines = [f"✗ {head}: {verdict.mistake or 'not right yet'}"]
    lines += [verdict.message, verdict.details, f'hint("{exercise.id}") helps.']
    raise CheckFailed("\n".join(wrap_text(line) for line in lines if line)) from None


_hints_given: dict[str, int] = {}


def hint(id: str) -> None:
    """Print the next hint of an exercise, from vague to nearly there.

    Raises
    ------
    UnknownId
        When there is no such exercise.
    """
    exercise = _find(id, EXERCISES)
    n = len(exercise.hints)
    given = _hints_given.get(exercise.id, 0)
    level = min(given + 1, n)
    print(wrap_text(f"Hint {level} of {n}: {exercise.hints[level - 1]}"))
    if given >= n:
        print(f'That was the last hint. solution("{exercise.id}") shows one solution.')
    _hints_given[exercise.id] = given + 1


def solution(id: str) -> None:
    """Print one solution of an exercise.

    Raises
    ------
    UnknownId
        When there is no such exercise.
    """
    exercise = _find(id, EXERCISES)
    print(f"# One solution of {exercise.id} {exercise.title}; others pass too.")
    print(textwrap.dedent(inspect.getsource(exercise.reference)), end="")


def predict(id: str, answer: str | None = None) -> "Question":
    """Ask a prediction, or answer it.

    Parameters
    ----------
    id
        The prediction, such as "03.p1".
    answer
        The letter of a choice. Left out, the question is shown with a button a choice. A wrong
        answer is explained; it does not stop the notebook.

    Returns
    -------
    Question
        Shown by Jupyter; its ``str`` says the same in text.

    Raises
    ------
    UnknownId
        When there is no such prediction.
    NotAChoice
        When the answer is none of the choices.
    """
    prediction = _find(id, PREDICTIONS)
    if answer is not None:
        given, answer = answer, str(answer).strip(" )").lower()
    if answer is not None and answer not in prediction.choices:
        raise NotAChoice(
            f"{given!r} is no choice of {prediction.id}. "
            f"Choose one of {_listed(prediction.choices)}: "
            f'predict("{prediction.id}", "{next(iter(prediction.choices))}").'
        )
    return Question(prediction, answer)


class Question:
    """A prediction on the screen: buttons and text, or text alone once answered in code."""

    def __init__(self, prediction: Prediction, answer: str | None = None) -> None:
        self.prediction = prediction
        self.answer = answer
        self.answered_in_code = answer is not None

    def __str__(self) -> str:
        p = self.prediction
        lines = [f"Prediction {p.id}", wrap_text(p.question), ""]
        for letter, choice in p.choices.items():
            lines.append(wrap_text(f"{letter}) {choice.text}", hanging="   "))
        lines.append("")
        if self.answer is None:
            first = next(iter(p.choices))
            lines.append(f'Answer with a button, or in code: predict("{p.id}", "{first}")')
        else:
            lines.append(wrap_text(f"Your answer: {self.answer}) {p.choices[self.answer].text}"))
            lines.append(wrap_text(self.told()))
        return "\n".join(lines)

    __repr__ = __str__

    def told(self) -> str:
        """Say whether the chosen answer is right, and why."""
        choice = self.prediction.choices[self.answer]
        if self.answer == self.prediction.answer:
            return f"✓ {choice.explanation}"
        return f"✗ {choice.explanation} Try another answer."

    def _repr_mimebundle_(self, **_) -> dict:
        if self.answered_in_code:  # text is saved with the notebook; nothing is left to click
            return {"text/plain": str(self)}
        return self.box._repr_mimebundle_() | {"text/plain": str(self)}

    # ipywidgets is imported where it is needed: checking exercises and running tests do without.

    @cached_property
    def box(self) -> "ipywidgets.VBox":
        """The widget: question, a button a choice, and what the chosen answer is told."""
        from ipywidgets import HTML, VBox

        p = self.prediction
        question = HTML(f"{STYLE}<div><b>Prediction {p.id}</b></div>{_as_html(p.question)}")
        return VBox([question, *self.buttons.values(), self.explanation])

    @cached_property
    def buttons(self) -> "dict[str, ipywidgets.Button]":
        """The buttons by the letters of their choices."""
        from ipywidgets import Button, Layout

        buttons = {}
        for letter, choice in self.prediction.choices.items():
            text = choice.text.replace("`", "")  # a button shows plain text
            button = Button(
                description=f"{letter}) {text}", layout=Layout(width="auto", height="auto")
            )
            button.add_class("lesson-choice")
            button.on_click(lambda _, letter=letter: self.choose(letter))
            buttons[letter] = button
        return buttons

    @cached_property
    def explanation(self) -> "ipywidgets.HTML":
        """What the chosen answer is told; empty before."""
        from ipywidgets import HTML

        return HTML("")

    def choose(self, letter: str) -> None:
        """Take an answer, as a button does."""
        self.answer = letter
        for other, button in self.buttons.items():
            chosen = other == letter
            right = letter == self.prediction.answer
            button.icon = ("check" if right else "times") if chosen else ""
        self.explanation.value = f'<div role="alert">{_as_html(self.told())}</div>'


# Buttons keep their text on one line and crop it; a choice needs several.
STYLE = (
    "<style>.lesson-choice.jupyter-button{white-space:normal;text-align:left;"
    "line-height:1.4;padding:6px 10px;overflow:visible;max-width:60em}</style>"
)


def _as_html(text: str) -> str:
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
    return f'<div style="max-width:60em;line-height:1.4;white-space:pre-wrap">{escaped}</div>'


def _find(id: str, where: dict) -> Exercise | Prediction:
    """Look up an id; an unknown one raises UnknownId, which says what to do."""
    if isinstance(id, str) and id in where:
        return where[id]
    kind, other = ("exercise", PREDICTIONS) if where is EXERCISES else ("prediction", EXERCISES)
    if isinstance(id, str) and id in other:
        call = f'check("{id}", …)' if other is EXERCISES else f'predict("{id}")'
        raise UnknownId(f"{id} is no {kind}: use {call}.")
    told = f"There is no {kind} {id!r}. {_nearest(str(id), where)}"
    raise UnknownId(told if isinstance(id, str) else f"{told} An id is text, in quotes.")


def _nearest(id: str, where: dict) -> str:
    """Name what a mistyped id may mean: "3.1" is "03.1", and "03.9" one of those of 03."""
    notebook, dot, number = id.strip().partition(".")
    notebook = notebook.zfill(2)
    same_notebook = [known for known in where if known.startswith(f"{notebook}.")]
    if notebook + dot + number in where:
        return f'The nearest: "{notebook}{dot}{number}".'
    if same_notebook:
        return f"Notebook {notebook} has {_listed(same_notebook, 'and')}."
    near = difflib.get_close_matches(id, where, n=1, cutoff=0.7)
    if near:
        return f"The nearest: {_listed(near)}."
    return f'They run from "{min(where)}" to "{max(where)}".'


def _listed(names, last: str = "or") -> str:
    names = [f'"{name}"' for name in names]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def _name(function: Callable) -> str:
    return getattr(function, "__name__", "your_function")
