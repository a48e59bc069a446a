"""What a learner calls: predict, check, hint and solution, and their errors."""

import textwrap
from dataclasses import replace

import pytest
import torch

from lesson import CheckFailed, LessonError, NotAChoice, UnknownId
from lesson import cells as lesson
from lesson.exercises import EXERCISES, PREDICTIONS
from tests.cells import fresh_shell
from tests.lesson.examples import EXERCISE, PREDICTION, running_sum


@pytest.fixture(autouse=True)
def example(monkeypatch):
    monkeypatch.setitem(EXERCISES, "99.1", EXERCISE)
    monkeypatch.setitem(PREDICTIONS, "99.p1", PREDICTION)
    lesson._hints_given.clear()


def test_a_pass_returns_the_candidate_and_says_what_was_checked(capsys):
    def mine(x):
        return torch.stack([x[:, : t + 1].sum(1) for t in range(x.shape[1])], dim=1)

    assert lesson.check("99.1", mine) is mine
    assert capsys.readouterr().out == "✓ 99.1 Running sum: two shapes, every number\n"


def test_right_numbers_in_another_form_are_told_as_such():
    with pytest.raises(
        CheckFailed, match=r"99\.1: the numbers are right, but they are torch\.float64"
    ):
        lesson.check("99.1", lambda x: x.double().cumsum(dim=1))


def test_a_stub_is_not_attempted_and_the_reference_stands_in(capsys):
    def stub(x):
        """Docstring."""
        raise NotImplementedError

    assert lesson.check("99.1", stub) is running_sum
    assert capsys.readouterr().out == (
        "○ 99.1 Running sum: not attempted yet.\n"
        'The reference stands in, so the cells below run. hint("99.1") helps.\n'
    )


def test_known_mistakes_are_functions_that_check_names():
    mistakes = lesson.known_mistakes("99.1")
    assert list(mistakes) == ["over the channels", "a product"]
    with pytest.raises(CheckFailed, match="over the channels"):
        lesson.check("99.1", mistakes["over the channels"])
    with pytest.raises(UnknownId, match=r'There is no exercise .99\.9.\. Notebook 99 has "99\.1"'):
        lesson.known_mistakes("99.9")


def test_a_failed_check_shows_its_message_and_no_traceback():
    cell = """
        from lesson import check

        def running_sum(x):
            return x.cumsum(dim=1) @ 3

        running_sum = check("99.1", running_sum)
    """
    with fresh_shell() as shell:
        ran = shell.run(textwrap.dedent(cell).strip())
    assert isinstance(ran.error, CheckFailed)
    assert ran.printed.startswith("✗ 99.1: not right yet\n")
    assert "line 4: `return x.cumsum(dim=1) @ 3`" in ran.printed, "the line of the learner's cell"
    assert 'More: hint("99.1").' in ran.printed
    assert "Traceback" not in ran.printed and ".py" not in ran.printed
    assert max(map(len, ran.printed.splitlines())) <= 80


def test_the_details_are_told_on_request_only():
    def doubled(x):
        return 2 * x.cumsum(dim=1)

    with pytest.raises(CheckFailed) as raised:
        lesson.check("99.1", doubled)
    text = str(raised.value)
    assert text.startswith(
        "✗ 99.1: not right yet\nEvery number is 2 times what it should be.\nout["
    )
    assert text.endswith('\nMore: hint("99.1") or check(…, details=True).')
    assert len(text.splitlines()) == 4
    with pytest.raises(CheckFailed, match=r"Input: x of shape .*\n0 of .* What holds: the shape"):
        lesson.check("99.1", doubled, details=True)


def test_an_endless_loop_that_is_stopped_is_told_with_its_line(monkeypatch):
    def running_sum(x):
        while len(x):
            pass
        raise KeyboardInterrupt  # as Jupyter's button does

    monkeypatch.setattr(lesson, "SECONDS", 0.2)
    with pytest.raises(LessonError, match=r"0.2 seconds, check stopped your function in line \d+:"):
        lesson.check("99.1", running_sum)
    with pytest.raises(LessonError, match=r"You stopped your function in line \d+: `raise Keyb"):
        lesson.check("99.1", lambda x: running_sum(x[:0]))


@pytest.mark.parametrize("ask", [lesson.check, lesson.hint, lesson.solution, lesson.predict])
def test_a_call_without_an_id_says_where_ids_stand(ask):
    with pytest.raises(UnknownId, match="the heading above it has its id, such as"):
        ask()


def test_unknown_ids_name_the_nearest():
    for call in (lesson.hint, lesson.solution, lambda id: lesson.check(id, running_sum)):
        with pytest.raises(UnknownId, match=r"no exercise '99\.11'\. Notebook 99 has \"99\.1\"\."):
            call("99.11")
    with pytest.raises(UnknownId, match=r"no prediction '99\.1p'.*\"99\.p1\""):
        lesson.predict("99.1p")
    with pytest.raises(UnknownId, match=r'99\.p1 is no exercise: use predict\("99\.p1"\)'):
        lesson.check("99.p1", running_sum)
    with pytest.raises(UnknownId, match=r'99\.1 is no prediction: use check\("99\.1", …\)'):
        lesson.predict("99.1")
    with pytest.raises(UnknownId, match=r'"99\.1".* An id is text, in quotes'):
        lesson.hint(99.1)
    for id, message in {
        "0.2": 'The nearest: "00.2".',
        "00.3": "00.3 (Swap the last two axes) is no longer in these notebooks.",
        "031": 'The nearest: "03.1".',
        "3.7": 'Notebook 03 has "03.1", "03.2", "03.3" and "03.generate".',
        "03": 'Notebook 03 has "03.1", "03.2", "03.3" and "03.generate".',
        "elephant": """no exercise 'elephant'. They run from "00.2" to "99.1".""",
        "47.11": """no exercise '47.11'. They run from "00.2" to "99.1".""",
    }.items():
        with pytest.raises(UnknownId) as raised:
            lesson.hint(id)
        assert str(raised.value).endswith(message)
    with pytest.raises(UnknownId, match=r'The nearest: "03\.1"\. An id is text, in quotes'):
        lesson.hint(3.1)
    with pytest.raises(KeyError):
        lesson.hint("elephant")
    with pytest.raises(LessonError, match=r'check\("99\.1", running_sum\)'):
        lesson.check(running_sum, "99.1")


def test_hints_come_one_by_one_and_then_point_to_the_solution(capsys):
    printed = []
    for _ in range(4):
        lesson.hint("99.1")
        printed.append(capsys.readouterr().out)
    assert printed[:2] == ["Hint 1 of 2: Look at the axes.\n", "Hint 2 of 2: Time is axis 1.\n"]
    assert printed[2] == printed[3] != printed[1]
    assert printed[2].startswith(printed[1]) and 'solution("99.1") shows one solution' in printed[2]


def test_code_in_a_hint_keeps_its_lines(capsys, monkeypatch):
    code = "    for t in range(T):\n        total = total + x[:, t]"
    exercise = replace(EXERCISE, hints=(f"A loop would do:\n{code}\nThen stack.",))
    monkeypatch.setitem(EXERCISES, "99.1", exercise)
    lesson.hint("99.1")
    assert capsys.readouterr().out == f"Hint 1 of 1: A loop would do:\n{code}\nThen stack.\n"


def test_the_solution_is_code_that_passes(capsys):
    lesson.solution("99.1")
    space = {"torch": torch}
    exec(capsys.readouterr().out, space)
    assert EXERCISE.check(space["running_sum"]).status == "passed"


@pytest.mark.parametrize("answer", ["b", "B", "b)"])
def test_a_right_answer_in_code(answer):
    text = str(lesson.predict("99.p1", answer))
    assert "Your answer: b) no, `0.1` < 1 & not exact\n✓ Right: 0.1 has no" in text


@pytest.mark.parametrize("answer", ["c", "", 1, ["a"]])
def test_an_answer_that_is_no_choice(answer):
    with pytest.raises(NotAChoice, match=r'Choose one of "a" or "b": predict\("99\.p1", "…"\)'):
        lesson.predict("99.p1", answer)


def test_a_check_without_a_function_says_what_to_write():
    with pytest.raises(LessonError, match=r'causal_mean = check\("01.1", causal_mean\)'):
        lesson.check("01.1")


def test_an_error_of_a_later_call_that_is_no_exception_is_told():
    class Own(BaseException):
        pass

    calls = []

    def mine(x):
        calls.append(x)
        if len(calls) > 4:  # the first ones judge its numbers
            raise Own("later")
        return running_sum(x)

    with pytest.raises(LessonError, match="raised Own in line"):
        lesson.check("99.1", mine)
