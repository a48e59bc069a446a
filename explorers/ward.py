"""Notebook 13: find out by questions which of eight bugs an attention has."""

from __future__ import annotations

from attention_base.numbers import joined, number
from explorers.explorer import Explorer, dropdown, sentences
from helpers.pictures.table import Cell, Table, text_html
from helpers.ward import EIGHT, QUESTIONS, ask, broken, wrong_lines

ORDER = (6, 2, 0, 5, 7, 3, 1, 4)  # which of the eight stands behind attention A, B, …
RIGHT = "the right one"
NONE = "none"
READ = "Hatched: {} answers otherwise, so it is not this one."


def explore_ward() -> Explorer:
    """Choose one of eight attentions and ask it up to three questions; see which bugs still fit.

    Each has one of the bugs of `helpers.ward`. One of them needs three questions.
    """
    return WardExplorer()


class WardExplorer(Explorer):
    """A table of what was asked: the answers, and those of each bug and of the right attention."""

    about = "choose an attention and ask it up to three questions; see which bugs still fit."

    def __init__(self) -> None:
        names = list(EIGHT)
        self._hidden = {f"attention {i}": names[k] for i, k in zip("ABCDEFGH", ORDER, strict=True)}
        self._answers = {RIGHT: dict.fromkeys(QUESTIONS, 0.0)}
        self._answers |= {name: ask(broken(name)) for name in EIGHT}
        again = [NONE, *QUESTIONS]
        super().__init__(
            {
                "attention": dropdown("attention", list(self._hidden), "attention A"),
                "first question": dropdown("first question", list(QUESTIONS), "shape"),
                "second question": dropdown("second question", again, NONE),
                "third question": dropdown("third question", again, NONE),
            }
        )

    def draw(
        self, attention: str, first_question: str, second_question: str, third_question: str
    ) -> str:
        """Draw the table, say what still fits and, when the questions end there, the bug."""
        asked = _asked(first_question, second_question, third_question)
        fitting = self._fitting(attention, asked)
        meant = sentences(*(f"{name}: {QUESTIONS[name].__doc__}" for name in asked))
        table = self._table(attention, asked, fitting).html(classes=True)
        again = _again(first_question, second_question, third_question)
        told = sentences(*again, READ.format(attention), _told(fitting))
        return meant + table + told + _shown(fitting)

    def describe(
        self, attention: str, first_question: str, second_question: str, third_question: str
    ) -> str:
        """Say the answers, what still fits and, when the questions end there, the bug."""
        asked = _asked(first_question, second_question, third_question)
        fitting, answers = self._fitting(attention, asked), self._of(attention)
        told = "; ".join(f"{name}: {_in_words(answers[name])}" for name in asked)
        again = " ".join(_again(first_question, second_question, third_question))
        said = f"{attention}. {told}. Still possible: {joined(fitting)}. {_told(fitting)} {again}"
        if len(fitting) > 1:
            return said
        (name,) = fitting
        return f"{said}\n{name}:\n{wrong_lines(name)}\n{EIGHT[name].message}"

    def _of(self, attention: str) -> dict[str, float]:
        return self._answers[self._hidden[attention]]

    def _same(self, one: str, other: str, asked: list[str]) -> bool:
        """Whether two of the nine pass the same of these questions."""
        a, b = self._answers[one], self._answers[other]
        return all((a[name] == 0) == (b[name] == 0) for name in asked)

    def _fitting(self, attention: str, asked: list[str]) -> list[str]:
        """Those of the nine that pass what this attention passes, and no more."""
        hidden = self._hidden[attention]
        return [name for name in self._answers if self._same(name, hidden, asked)]

    def _table(self, attention: str, asked: list[str], fitting: list[str]) -> Table:
        own = [Cell(_in_words(self._of(attention)[name]), "bold") for name in asked]
        rows = [(attention, [*own, Cell(f"{len(fitting)} of {len(self._answers)}", "bold")])]
        for name, answers in self._answers.items():
            cells = [
                Cell(
                    "fails" if answers[question] else "passes",
                    "plain" if self._same(name, self._hidden[attention], [question]) else "masked",
                )
                for question in asked
            ]
            last = Cell("yes", "marked") if name in fitting else Cell("no", "faint")
            rows.append((name, [*cells, last]))
        return Table([*asked, "still possible"], rows, corner="attention", framed_row=0)


def _told(fitting: list[str]) -> str:
    if len(fitting) == 1:
        return "1 of the 9 still fits. This is the bug:"
    return f"{len(fitting)} of the 9 still fit. Other questions tell them apart."


def _shown(fitting: list[str]) -> str:
    """The bug, where it is the only one that fits: an attention behind a number has one."""
    if len(fitting) > 1:
        return ""
    (name,) = fitting
    line = f"<p><b>{text_html(name)}</b></p><pre>{text_html(wrong_lines(name))}</pre>"
    return line + sentences(*EIGHT[name].message.splitlines())


def _asked(*questions: str) -> list[str]:
    """The questions, each once."""
    return [name for name in dict.fromkeys(questions) if name != NONE]


def _again(*questions: str) -> list[str]:
    """What is said where a question is asked more than once."""
    asked = [name for name in questions if name != NONE]
    twice = dict.fromkeys(name for name in asked if asked.count(name) > 1)
    return [
        f"“{name}” is asked {asked.count(name)} times: the answer stays the same." for name in twice
    ]


def _in_words(wrong_by: float) -> str:
    return f"fails, wrong by {number(wrong_by)}" if wrong_by else "passes"
