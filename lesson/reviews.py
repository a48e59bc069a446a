"""Asks again on later days what a learner has answered, and first what they got wrong: `review`.

A question is due one day after its prediction was answered, or its exercise passed. Answered right
in a review, it is due again after 7 days, then after 30, and then it is done; answered wrong, on
the next day. Days are those of the learner's calendar: what a lesson on Monday has asked is due in
the lesson of the next Monday, also if that begins an hour earlier.
"""

import math
import random
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import zip_longest
from textwrap import indent

from attention_base.known import changed_source
from attention_base.numbers import wrap_text
from feedback.grading import Mistake
from lesson import progress_file
from lesson.builds import Build
from lesson.errors import LessonError, UnknownId
from lesson.exercises import EXERCISES, NEED_THEIR_NOTEBOOK, PREDICTIONS, SERIES
from lesson.question import Choice, Prediction, Question

DAYS = (1, 7, 30)  # after which a question is asked: the first time, the second, the third
SECONDS = 300  # that one review takes, as `seconds` counts them


@dataclass
class Item:
    """A prediction that was answered, or the last mistake before an exercise passed."""

    id: str  # "03.p1" or "03.1"
    mistake: str  # its name; "" for a prediction
    right: bool  # the last answer that counts
    last: date | None  # its day; None where the file says none
    times: int = 0  # answered right in reviews, in a row

    def wait(self, today: date) -> float:
        """In how many days it is due: 0 or less if it is, inf if it has been asked often enough.

        A last day that lies ahead comes from a clock that was wrong, so nothing is known of it;
        but for tomorrow, which whoever travels west has behind them.
        """
        if self.times == len(DAYS):
            return math.inf
        if self.last is None or (passed := (today - self.last).days) < -1:
            return 0
        return DAYS[self.times] - passed

    def answer(self, right: bool, day: date) -> bool:
        """Count an answer to a review, if it was due on that day; says whether it was."""
        was_due = self.wait(day) <= 0
        if was_due:
            self.right, self.last, self.times = right, day, self.times + 1 if right else 0
        return was_due


class Again(Question):
    """A question that is asked again."""

    head, call = "Review", "review"


def review(id: str = "", answer: str | None = None) -> Question | None:
    """Ask again what you have answered: one day, one week and one month later, for five minutes.

    Asked are predictions, and mistakes that you have made in exercises which have passed since,
    mixed from all notebooks, and first what was wrong. Your first answers stay as they are.

    Parameters
    ----------
    id
        A question, such as "03.p1", to answer it in code. Left out, those that are due are shown,
        with a button for each choice.
    answer
        The letter of a choice.

    Returns
    -------
    Question or None
        The question that was named.

    Raises
    ------
    UnknownId
        When you have answered nothing of that name that can be asked again.
    NotAChoice
        When the answer is none of the choices.
    LessonError
        When the file with your answers cannot be read.
    """
    found, today = items(), _today()
    if id != "":
        if str(id) not in found:
            raise UnknownId(f"review has no question {id!r}. Call review() to see those it has.")
        return _asked(found[str(id)], answer)
    if not (ready := due(found.values(), today)):
        waits = [item.wait(today) for item in found.values()]
        print(wrap_text(_when_next(min(waits, default=math.inf), today)))
        return None
    from IPython.display import display

    questions = fitting(ready)
    more = len(ready) - len(questions)
    print(f"Questions: {len(questions)}, for five minutes at most. Due after these: {more}.")
    for question in questions:
        display(question)
    return None


def due_by_notebook() -> Counter[str]:
    """How many questions are due, by notebook; none where the learner's file cannot be read."""
    try:
        return Counter(sorted(item.id[:2] for item in due(items().values(), _today())))
    except LessonError:
        return Counter()


# ---------------------------------------------------------------- what is due


def items() -> dict[str, Item]:
    """What can be asked again, by id, as the learner's file says."""
    path = progress_file.place()
    try:
        entries = progress_file.read(path, progress_file.STATUSES).entries if path else []
    except OSError as error:
        told = f"review needs {progress_file.shown(path)}, which cannot be read"
        raise LessonError(wrap_text(f"{told} ({error.strerror}). Mend or rename it.")) from None
    found, unsolved = {}, {}
    for entry in entries:
        id, right, day = entry.id, entry.status == "right", _day(entry)
        if entry.kind == "review":
            if day and id in found and found[id].mistake == entry.mistake:
                found[id].answer(right, day)
        elif entry.kind == "predict":
            if id in PREDICTIONS and id not in NEED_THEIR_NOTEBOOK:
                found.setdefault(id, Item(id, "", right, day))
        elif _mistake(id, entry.mistake):
            unsolved[id] = entry.mistake
        elif entry.status == "passed" and id in unsolved:  # its solution may be shown
            found[id] = Item(id, unsolved.pop(id), False, day)
    return found


def due(found: Iterable[Item], today: date) -> list[Item]:
    """Those that are due, from each notebook one in turn, and of each first what was wrong."""
    ready = [item for item in found if item.wait(today) <= 0]
    by_notebook: dict[str, list[Item]] = {}
    for item in sorted(ready, key=lambda item: (item.right, item.wait(today), item.id)):
        by_notebook.setdefault(item.id[:2], []).append(item)
    return [item for turn in zip_longest(*by_notebook.values()) for item in turn if item]


def _when_next(days: float, today: date) -> str:
    if progress_file.place() is None:
        return "There is nothing to review: ATTENTION_PROGRESS is 0, so no answers are kept."
    if days == math.inf:
        told = "a prediction is asked again from the day after you have answered it, and a mistake"
        return f"There is nothing to review: {told} once its exercise has passed."
    day, told = today + timedelta(days), "tomorrow" if days == 1 else f"in {days} days"
    return f"Nothing is due today: the next question is due {told}, on {day.day} {day:%B}."


def _today() -> date:
    return progress_file.now().astimezone().date()


def _day(entry: progress_file.Entry) -> date | None:
    try:
        then = progress_file.when(entry)
        return then and then.astimezone().date()
    except (OverflowError, OSError, ValueError):  # a year that no clock has shown
        return None


# ---------------------------------------------------------------- the questions


def fitting(ready: Iterable[Item]) -> list[Again]:
    """Questions of the first ones, as many as fit in the time of a review."""
    questions, left = [], SECONDS
    for item in ready:
        question = _asked(item)
        left -= seconds(question.prediction)
        if left < 0:
            break
        questions.append(question)
    return questions


def seconds(prediction: Prediction) -> float:
    """What a question takes with its longest explanation: as `tools.pace` counts."""
    choices = prediction.choices.values()
    longest = max((choice.explanation for choice in choices), key=len)
    prose, code = re.subn(r"^ .*", "", prediction.question, flags=re.MULTILINE)
    words = len(" ".join([prose, *(choice.text for choice in choices), longest]).split())
    return 20 + words / 150 * 60 + 4 * code


def _asked(item: Item, answer: str | None = None) -> Again:
    """The question of an item; an answer is kept if it is due, and so only the first."""
    prediction = _of_mistake(item) if item.mistake else PREDICTIONS[item.id]
    idea = SERIES[item.id[:2]].replace("\n", " ")
    told = f"From notebook {item.id[:2]}, {idea}: {prediction.question}"

    def keep(letter: str) -> str:
        status = "right" if letter == prediction.answer else "wrong"
        if not item.answer(status == "right", _today()):
            return ""
        return progress_file.keep(item.id, "review", status, answer=letter, mistake=item.mistake)

    return Again(replace(prediction, question=told), answer, keep=keep)


def _mistake(id: str, name: str) -> Mistake | None:
    """The mistake, if it is a change of the solution; a class is too long to read again."""
    exercise = EXERCISES.get(id)
    mistakes = () if exercise is None or isinstance(exercise, Build) else exercise.mistakes
    changes = [one for one in mistakes if one.known.changes and not one.function]
    return next((one for one in changes if one.name == name), None)


def _of_mistake(item: Item) -> Prediction:
    """A program with the mistake, and names of mistakes of its exercise to choose from."""
    exercise, own = EXERCISES[item.id], _mistake(item.id, item.mistake)
    changes = own.known.changes
    others = [one for one in exercise.mistakes if not {*changes} & {*one.known.changes}]
    draw = random.Random(item.id + item.mistake)  # the same letters when it is answered in code
    shown = [own, *draw.sample(others, min(2, len(others)))]
    draw.shuffle(shown)
    choices = {}
    for letter, one in zip("abc", shown, strict=False):
        elsewhere = "" if one is own else "This program does something else. With this mistake: "
        choices[letter] = Choice(one.name, elsewhere + one.message)
    code = indent(changed_source(exercise.reference, changes, item.mistake), "    ").rstrip()
    told = f"in exercise {item.id}, {exercise.title}, you once made a mistake, and so does this"
    told = f"{told} program. Which one is it?\n{code}"
    return Prediction(item.id, told, choices, "abc"[shown.index(own)])
