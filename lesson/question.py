"""A prediction: a question with choices, answered before the code runs, by a button or in code."""

import html
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from attention_base.numbers import wrap_text
from lesson.errors import NotAChoice

if TYPE_CHECKING:
    import ipywidgets


@dataclass(frozen=True)
class Choice:
    """One choice of a prediction: its text, and why it is right or wrong."""

    text: str
    explanation: str


@dataclass(frozen=True)
class Prediction:
    """A question to answer before running the code: choices by letter, and the right letter."""

    id: str
    question: str
    choices: dict[str, Choice]
    answer: str


class Question:
    """A prediction on the screen: buttons and text, or text alone once answered in code.

    ``head`` stands above it, and ``call`` answers it in code.

    Parameters
    ----------
    prediction
        What is asked.
    answer
        What was given in code as a letter, or None.
    earlier
        A letter that was given on an earlier run of the notebook; "" or another text for none.
    keep
        Called with each answer; may return a sentence for the learner.

    Raises
    ------
    NotAChoice
        When the answer is none of the choices.
    """

    head, call = "Prediction", "predict"

    def __init__(
        self,
        prediction: Prediction,
        answer: str | None = None,
        *,
        earlier: str = "",
        keep: Callable[[str], str] = lambda letter: "",
    ) -> None:
        self.prediction = prediction
        self.answer = None if answer is None else str(answer).strip(" )").lower()
        if answer is not None and self.answer not in prediction.choices:
            raise NotAChoice(
                f"{answer!r} is no choice of {prediction.id}. "
                f"Choose one of {quoted(prediction.choices)}: "
                f'{self.call}("{prediction.id}", "…"), with a letter in the place of …'
            )
        self.answered_in_code = answer is not None
        self.earlier = earlier if earlier in prediction.choices else ""
        self._keep = keep
        self._note = "" if answer is None else keep(self.answer)

    def __str__(self) -> str:
        p = self.prediction
        lines = [f"{self.head} {p.id}", wrap_text(p.question), ""]
        for letter, choice in p.choices.items():
            lines.append(wrap_text(f"{letter}) {choice.text}", hanging="   "))
        lines.append("")
        if self.answer is None and self.earlier:
            lines.append(wrap_text(self.earlier_feedback()))
            lines.append("")
        if self.answer is None:
            # No letter stands here: the line must not be a right answer by being copied.
            lines.append(f'Answer with a button, or in code: {self.call}("{p.id}", "…")')
        else:
            lines.append(wrap_text(f"Your answer: {self.answer}) {p.choices[self.answer].text}"))
            lines.append(wrap_text(self.feedback()))
        return "\n".join(lines)

    __repr__ = __str__

    def feedback(self) -> str:
        """Whether the chosen answer is right, and why."""
        return "\n".join(filter(None, [self._explained(self.answer), self._note]))

    def earlier_feedback(self) -> str:
        """The answer of an earlier run, marked as such, whether it was right, and why."""
        choice = self.prediction.choices[self.earlier]
        head = f"Your answer on an earlier run: {self.earlier}) {choice.text}"
        return f"{head}\n{self._explained(self.earlier)}"

    def _explained(self, letter: str) -> str:
        choice = self.prediction.choices[letter]
        if letter == self.prediction.answer:
            return f"✓ {choice.explanation}"
        return f"✗ {choice.explanation} Try another answer."

    def _repr_mimebundle_(self, **_) -> dict:
        if self.answered_in_code:  # text is saved with the notebook; nothing is left to click
            return {"text/plain": str(self)}
        return self.box._repr_mimebundle_() | {"text/plain": str(self)}

    # ipywidgets is imported where it is needed: checking exercises and running tests do without.

    @cached_property
    def box(self) -> "ipywidgets.VBox":
        """The widget: the question, a button for each choice, and the feedback."""
        from ipywidgets import HTML, VBox

        p = self.prediction
        question = HTML(f"{STYLE}<div><b>{self.head} {p.id}</b></div>{as_html(p.question)}")
        return VBox([question, *self.buttons.values(), self.shown_feedback])

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
        if self.earlier:
            self._mark(buttons, self.earlier)
        return buttons

    @cached_property
    def shown_feedback(self) -> "ipywidgets.HTML":
        """The feedback below the buttons; empty before the first answer, if there is no earlier."""
        from ipywidgets import HTML

        return HTML(as_html(self.earlier_feedback()) if self.earlier else "")

    def choose(self, letter: str) -> None:
        """Take an answer, as a button does."""
        self.answer = letter
        self._note = self._keep(letter)
        self._mark(self.buttons, letter)
        self.shown_feedback.value = f'<div role="alert">{as_html(self.feedback())}</div>'

    def _mark(self, buttons: "dict[str, ipywidgets.Button]", letter: str) -> None:
        """Give the button of this letter its sign, and take it from the others."""
        sign = "check" if letter == self.prediction.answer else "times"
        for other, button in buttons.items():
            button.icon = sign if other == letter else ""


# Buttons keep their text on one line and crop it; a choice needs several.
STYLE = (
    "<style>.lesson-choice.jupyter-button{white-space:normal;text-align:left;"
    "line-height:1.4;padding:6px 10px;overflow:visible;max-width:60em}</style>"
)


def as_html(text: str) -> str:
    """Escape a text for HTML; a line that begins with a space, or has backticks, has code."""
    style = "max-width:60em;line-height:1.4;white-space:pre-wrap"
    marked = re.sub(r"^ .*$", r"<code>\g<0></code>", code_marked(text), flags=re.MULTILINE)
    return f'<div style="{style}">{marked}</div>'


def code_marked(text: str) -> str:
    """Escape a text for the inside of an HTML element, with code for what stands in backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def quoted(names: Iterable[str], last: str = "or") -> str:
    """Names in quotes, as in a sentence: "a", "b" or "c"."""
    names = [f'"{name}"' for name in names]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
