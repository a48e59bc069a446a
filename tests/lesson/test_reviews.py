"""review(): what it asks on which day, by a clock that is set, and what it keeps of the answers."""

import inspect
import json
import re
import textwrap
import time
from collections import Counter
from datetime import UTC, datetime

import IPython.display
import pytest

from helpers.pictures.base import size_of
from lesson import EXERCISES, PREDICTIONS, cells, progress, progress_file, reviews, series_map
from lesson.errors import LessonError, NotAChoice, UnknownId
from lesson.exercises import NEED_THEIR_NOTEBOOK, RETIRED, SERIES
from lesson.progress_file import STATUSES, earlier, keep, log_of, read
from lesson.reviews import Item, review, seconds

RIGHT = {id: prediction.answer for id, prediction in PREDICTIONS.items()}
ASKED = [id for id in PREDICTIONS if id not in NEED_THEIR_NOTEBOOK]
ID, OTHER = "03.p2", "05.p1"
WRONG = next(letter for letter in PREDICTIONS[ID].choices if letter != RIGHT[ID])
MISTAKE = "mask one too far"  # of 03.1
MISTAKES = [
    (id, mistake.name)
    for id, exercise in EXERCISES.items()
    for mistake in exercise.mistakes
    if reviews._mistake(id, mistake.name)
]


@pytest.fixture
def at(kept, monkeypatch):
    """Sets the clock, and the place where it hangs."""

    def set_to(local, zone="UTC"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        then = datetime.fromisoformat(local).astimezone(UTC)
        monkeypatch.setattr(progress_file, "now", lambda: then)

    yield set_to
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def shown(monkeypatch):
    """Calls review(), and returns the questions that it shows."""
    questions = []
    monkeypatch.setattr(IPython.display, "display", questions.append)

    def call():
        questions.clear()
        assert review() is None
        return [*questions]

    return call


def ids(questions):
    return [question.prediction.id for question in questions]


ZONES = ["UTC", "Pacific/Kiritimati", "America/Los_Angeles"]  # UTC+14; UTC-8, and in summer -7


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("status", ["right", "wrong"])
def test_it_asks_after_one_day_one_week_and_one_month_of_the_calendar(at, shown, zone, status):
    at("2026-03-02 23:59", zone)
    keep(ID, "predict", status, answer=RIGHT[ID])
    for not_yet, due in [
        ("2026-03-02 23:59:59", "2026-03-03 00:00"),
        ("2026-03-09 23:59:59", "2026-03-10 00:00"),  # in Los Angeles, an hour has been left out
        ("2026-04-08 23:59:59", "2026-04-09 00:00"),
    ]:
        at(not_yet, zone)
        keep(ID, "predict", status, answer=RIGHT[ID])  # the notebook has run again
        assert shown() == []
        at(due, zone)
        (question,) = shown()
        question.buttons[RIGHT[ID]].click()
        assert shown() == []
    at("2031-01-01 00:00", zone)
    assert shown() == [], "three times are enough"


def test_what_was_wrong_is_asked_again_the_next_day(at, shown):
    at("2026-03-02 10:00")
    keep(ID, "predict", "right", answer=RIGHT[ID])
    for day, letter in [(3, RIGHT[ID]), (10, WRONG), (11, RIGHT[ID]), (18, RIGHT[ID])]:
        at(f"2026-03-{day - 1:02d} 10:00")
        assert shown() == []
        at(f"2026-03-{day:02d} 10:00")
        (question,) = shown()
        question.buttons[letter].click()


def test_only_the_first_click_counts_and_first_answers_stay(at, shown, kept):
    at("2026-03-02 10:00")
    keep(ID, "predict", "wrong", answer=WRONG)
    before, told = read(kept), str(progress())
    at("2026-03-03 09:00")
    (one,), (copy,) = shown(), shown()
    for letter in (WRONG, RIGHT[ID]):
        one.buttons[letter].click()
    copy.buttons[RIGHT[ID]].click()
    review(ID, RIGHT[ID])
    of_today = read(kept, STATUSES).entries[1:]
    assert [entry.status for entry in of_today] == ["wrong", "right"], "the copy did not know"
    at("2026-03-04 09:00")
    assert ids(shown()) == [ID], "but the file does"
    assert read(kept) == log_of(kept.read_bytes()) == before
    assert (str(progress()), earlier(ID)) == (told, WRONG)
    assert f"{WRONG})" in str(cells.predict(ID)).split("earlier run:")[1]


def test_in_code_it_explains_and_refuses_as_predict_does(at, capsys):
    at("2026-03-02 10:00")
    keep(ID, "predict", "right", answer=RIGHT[ID])
    at("2026-03-03 10:00")
    assert review() is None
    told = capsys.readouterr().out
    assert told.startswith("Questions: 1, for five minutes at most. Due after these: 0.\n")
    assert f"Review {ID}\nFrom notebook 03, scores to weights: “warm” has a score" in told
    assert told.endswith(f'Answer with a button, or in code: review("{ID}", "…")\n')
    assert all(choice.explanation[:30] not in told for choice in PREDICTIONS[ID].choices.values())
    answered = review(ID, f"{WRONG.upper()})")
    assert f"Your answer: {WRONG})" in str(answered) and "Try another" in str(answered)
    assert list(answered._repr_mimebundle_()) == ["text/plain"]
    with pytest.raises(NotAChoice, match=rf'review\("{ID}", "…"\)'):
        review(ID, "z")
    for id in (OTHER, "9", 3, ["03.p2"], min(RETIRED), min(NEED_THEIR_NOTEBOOK)):
        with pytest.raises(UnknownId, match="has no question"):
            review(id, "a")


def test_buttons_are_reached_by_the_keyboard_and_text_stands_beside_them(at, shown):
    at("2026-03-02 10:00")
    keep("03.1", "check", "failed", mistake=MISTAKE)
    keep("03.1", "check", "passed")
    at("2026-03-03 10:00")
    (question,) = shown()
    bundle = question._repr_mimebundle_()
    assert bundle["text/plain"] == str(question) and len(bundle) == 2
    for button in question.box.children[1:-1]:
        assert not button.disabled and button.tabbable is not False
    assert "<code>        may_attend = torch.tril(" in question.box.children[0].value
    question.buttons[question.prediction.answer].click()
    assert "✓ Each token attends to one token of its future" in question.shown_feedback.value


# ---------------------------------------------------------------- mistakes


def test_a_mistake_is_asked_once_its_exercise_has_passed_and_the_latest_counts(at, shown, kept):
    at("2026-03-02 10:00")
    keep("03.1", "check", "failed", mistake="no mask")
    keep("03.1", "check", "failed", mistake=MISTAKE)
    keep("03.1", "check", "failed", mistake="a name of an older version")
    keep("04.head", "check", "passed")
    at("2026-03-03 10:00")
    assert shown() == []
    keep("03.1", "check", "passed")
    assert shown() == []
    at("2026-03-04 10:00")
    keep("03.1", "check", "passed")  # the notebook has run again
    (question,) = shown()
    choices = question.prediction.choices
    assert choices[question.prediction.answer].text == MISTAKE
    keep("03.1", "review", "right", answer="a", mistake="no mask")
    assert ids(shown()) == ["03.1"], "this answer was to another question"
    assert (
        "\n        may_attend = torch.tril(torch.ones(T, T, dtype=torch.bool), diagonal=1)\n"
        in (str(question))
    )
    question.choose(question.prediction.answer)
    assert json.loads(kept.read_text().splitlines()[-1])["mistake"] == MISTAKE
    keep("03.1", "check", "failed", mistake=MISTAKE)
    keep("03.1", "check", "passed")
    assert shown() == []
    at("2026-03-05 10:00")
    assert ids(shown()) == ["03.1"], "made again, it begins again"


def test_every_question_about_a_mistake_has_it_among_others_and_fits_in_a_review():
    assert len(MISTAKES) > 600
    for id, name in MISTAKES:
        prediction = reviews._of_mistake(Item(id, name, False, None))
        own = prediction.choices[prediction.answer]
        (mistake,) = (one for one in EXERCISES[id].mistakes if one.name == name)
        assert (own.text, own.explanation) == (name, mistake.message)
        assert len({one.text for one in prediction.choices.values()}) > 1
    every = [Item(id, name, False, None) for id, name in MISTAKES]
    every += [Item(id, "", True, None) for id in ASKED]
    takes = [seconds(reviews._asked(item).prediction) for item in every]
    assert min(takes) > 20 and max(takes) <= reviews.SECONDS


@pytest.mark.parametrize(("id", "name"), MISTAKES[:: len(MISTAKES) // 8])
def test_the_program_that_is_shown_makes_the_mistake(id, name):
    shown = str(reviews._asked(Item(id, name, False, None))).split("it?\n", 1)[1]
    reference = EXERCISES[id].reference
    names = dict(inspect.unwrap(reference).__globals__)
    exec(textwrap.dedent(shown.split("\n\n")[0]), names)
    assert EXERCISES[id].check(names[reference.__name__]).mistake == name


# ---------------------------------------------------------------- which, and how many


@pytest.mark.parametrize("n", [0, 1, 200])
def test_they_come_from_all_notebooks_wrong_ones_first_and_fit_in_five_minutes(
    at, shown, capsys, n
):
    at("2026-03-02 10:00")
    wrong = [(id, name) for i, (id, name) in enumerate(MISTAKES) if i % 4 == 0]
    exercises = [id for id in dict(wrong)][: n // 2]
    for id in exercises:
        keep(id, "check", "failed", mistake=dict(wrong)[id])
        keep(id, "check", "passed")
    for i, id in enumerate(ASKED[: n - len(exercises)]):
        keep(id, "predict", "wrong" if i % 3 == 0 else "right", answer="a")
    at("2026-03-03 10:00")
    questions = shown()
    told = capsys.readouterr().out
    due = min(n, len(exercises) + len(ASKED))
    if n == 0:
        assert told.startswith("There is nothing to review: a prediction is asked again from the")
        return
    total = sum(seconds(question.prediction) for question in questions)
    assert total <= 300 and told.endswith(f"Due after these: {due - len(questions)}.\n")
    notebooks = [id[:2] for id in ids(questions)]
    assert len(set(notebooks)) == len(notebooks), "one of each notebook, before a second of one"
    assert len(questions) == 1 or (len(questions) >= 3 and total > 150)
    firsts = {}
    for item in reviews.due(reviews.items().values(), progress_file.now().date()):
        firsts.setdefault(item.id[:2], item.right)
    assert [*firsts.values()] == sorted(firsts.values()), "those that were wrong come first"


def test_where_nothing_is_due_one_sentence_says_when(at, shown, capsys):
    at("2026-03-02 10:00")
    keep(ID, "predict", "wrong", answer=WRONG)
    keep(ID, "review", "right", answer=RIGHT[ID])  # it was not due, so this does not count
    assert shown() == []
    at("2026-03-03 10:00")
    keep(ID, "review", "right", answer=RIGHT[ID])
    at("2026-03-05 10:00")
    assert shown() == []
    assert capsys.readouterr().out == (
        "Nothing is due today: the next question is due tomorrow, on 3 March.\n"
        "Nothing is due today: the next question is due in 5 days, on 10 March.\n"
    )


# ---------------------------------------------------------------- clocks and files that are wrong


@pytest.mark.parametrize(
    ("kept_at", "due"),
    [
        ("2030-01-01T00:00:00Z", True),  # by a clock that was years ahead
        ("2026-03-03T09:00:00Z", False),  # by one that was some hours ahead, or further east
        ("9999-12-31T23:59:59Z", True),
        ("0001-01-01T00:00:00Z", True),
        ("yesterday", True),
        ("", True),
    ],
)
def test_a_time_that_cannot_be_right_is_asked_once_and_has_a_right_one_then(
    at, shown, kept, kept_at, due
):
    at("2026-03-02 10:00", "America/Los_Angeles")
    keep(ID, "predict", "right", answer=RIGHT[ID])
    kept.write_text(re.sub(r'"time": "[^"]*"', f'"time": "{kept_at}"', kept.read_text()))
    assert ids(shown()) == [ID] * due
    review(ID, RIGHT[ID])
    assert shown() == []
    at("2026-03-10 10:00", "America/Los_Angeles")
    assert ids(shown()) == [ID]


def test_what_these_notebooks_do_not_ask_is_left_out(at, shown, kept):
    at("2026-03-02 10:00")
    for id in (*RETIRED, *NEED_THEIR_NOTEBOOK, "77.p1"):
        keep(id, "predict", "wrong", answer="a")
        keep(id, "check", "failed", mistake=MISTAKE)
        keep(id, "check", "passed")
        keep(id, "review", "wrong", answer="a")
    keep("04.head", "check", "failed", mistake="no mask")  # a class
    with open(kept, "ab") as file:
        file.write(b'{"version": 1, "kind": "rev\n\xff\n[]\n')
    keep(OTHER, "review", "right", answer="a")  # never answered in its notebook
    keep(OTHER, "predict", "right", answer=RIGHT[OTHER])
    at("2026-03-03 10:00")
    assert ids(shown()) == [OTHER]
    assert set(PREDICTIONS) >= NEED_THEIR_NOTEBOOK


def test_a_file_that_cannot_be_read_is_named_and_the_map_does_without(
    at, kept, monkeypatch, capsys
):
    kept.mkdir()
    with pytest.raises(
        LessonError, match=r"which\s+cannot\s+be\s+read\s+\(it\s+is\s+no\s+ordinary"
    ):
        review()
    assert "review" not in str(series_map("03")) + capsys.readouterr().out
    monkeypatch.setenv("ATTENTION_PROGRESS", "0")
    assert review() is None
    assert capsys.readouterr().out.startswith("There is nothing to review: ATTENTION_PROGRESS is 0")


# ---------------------------------------------------------------- the map


def test_the_map_says_what_is_due_where_and_how_to_be_asked(at, capsys):
    at("2026-03-02 10:00")
    for id in ASKED:
        keep(id, "predict", "right", answer=RIGHT[id])
    quiet = str(series_map("03"))
    assert "review" not in quiet + capsys.readouterr().out
    at("2026-03-03 10:00")
    picture, said = series_map("03"), capsys.readouterr().out
    assert said.endswith("from lesson import review; review()\n")
    for number, n in Counter(id[:2] for id in ASKED).items():
        assert f"{n} of {number}" in said.replace("\n", " ") and f"{n} of {number}" in picture.alt
        line = next(line for line in str(picture).splitlines() if line.startswith(number))
        assert f"{n} to review]" in line and (number != "03" or "[you are here, " in line)
    figure = picture.figure()
    assert size_of(figure)[0] <= 900 and len(SERIES) == 16
    (axes,) = figure.axes
    frames = [p.get_window_extent() for p in axes.patches if p.get_linestyle() == "--"]
    names = [t.get_window_extent() for t in axes.texts if t.get_text().startswith("Part")]
    crossed = [(n, y) for n in names for f in frames for y in (f.y0, f.y1) if n.y0 < y < n.y1]
    assert len(frames) == len(names) == 3 and not crossed, "below notes of two lines"
