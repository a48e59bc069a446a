"""What the learner reads: every way to be wrong, in words, and never a traceback of ours."""

import inspect
import math
import textwrap
from dataclasses import replace

import pytest
import torch

from helpers.lesson import CheckFailed, LessonError, NotAChoice, UnknownId
from helpers.lesson import cells as lesson
from helpers.lesson.exercises import EXERCISES, PREDICTIONS
from helpers.lesson.grading import Choice, Exercise, Mistake, Prediction
from tests.cells import fresh_shell


def running_sum(x):
    """(B, T, C) -> (B, T, C)."""
    return x.cumsum(dim=1)


def over_channels(x):
    return x.cumsum(dim=-1)


def no_batch(x):
    return x @ x


def in_place(x):
    x[:, 0] = 0
    return x.cumsum(dim=1)


def whole_numbers(x):
    return x.cumsum(dim=1).round().long()


EXERCISE = Exercise(
    id="99.1",
    title="Running sum",
    reference=running_sum,
    cases=lambda: [(torch.randn(2, 5, 3),), (torch.randn(3, 4, 2),)],
    mistakes=(
        Mistake("over the channels", over_channels, "You summed over the channels."),
        Mistake("a product", no_batch, "Nothing is multiplied here."),
    ),
    hints=("Look at the axes.", "Time is axis 1."),
    properties=(
        ("first token unchanged", lambda out, x: torch.equal(out[:, 0], x[:, 0])),
        ("last is the total", lambda out, x: torch.allclose(out[:, -1], x.sum(1), atol=1e-5)),
    ),
    checked="two shapes, every number",
)

PREDICTION = Prediction(
    id="99.p1",
    question="Is `0.1 + 0.2 == 0.3`? " + "Think of how a computer stores numbers. " * 5,
    choices={
        "a": Choice("yes", "In decimals it is. A computer stores binary fractions."),
        "b": Choice("no, `0.1` < 1 & not exact", "Right: 0.1 has no finite binary fraction."),
    },
    answer="b",
)


@pytest.fixture(autouse=True)
def example(monkeypatch):
    monkeypatch.setitem(EXERCISES, "99.1", EXERCISE)
    monkeypatch.setitem(PREDICTIONS, "99.p1", PREDICTION)
    lesson._hints_given.clear()


def failure(candidate, exercise=EXERCISE):
    verdict = exercise.check(candidate)
    assert (verdict.status, verdict.mistake) == ("failed", None)
    return verdict.message


# ---------------------------------------------------------------- what came back


def test_a_pass_returns_the_candidate_and_says_what_was_checked(capsys):
    def mine(x):
        return torch.stack([x[:, : t + 1].sum(1) for t in range(x.shape[1])], dim=1)

    assert lesson.check("99.1", mine) is mine
    assert capsys.readouterr().out == "✓ 99.1 Running sum: two shapes, every number\n"


def test_a_stub_is_not_attempted_and_the_reference_stands_in(capsys):
    def stub(x):
        """Docstring."""
        raise NotImplementedError

    assert lesson.check("99.1", stub) is running_sum
    assert capsys.readouterr().out == (
        "○ 99.1 Running sum: not attempted yet.\n"
        'The reference stands in, so the cells below run. hint("99.1") helps.\n'
    )


def test_a_raise_left_behind_is_pointed_out():
    def stub(x):
        total = x.sum(1)
        raise NotImplementedError("write me")
        return total

    verdict = EXERCISE.check(stub)
    assert verdict.status == "not attempted" and "Take that line out" in verdict.message


def test_pytorchs_own_not_implemented_is_an_error_not_a_stub():
    assert "raised NotImplementedError: " in failure(lambda x: x.long().softmax(-1))


def test_a_known_mistake_is_recognised_by_what_it_does_not_by_its_text():
    def mine(x):
        return torch.stack([x[..., : c + 1].sum(-1) for c in range(x.shape[-1])], dim=-1)

    verdict = EXERCISE.check(mine)
    assert (verdict.mistake, verdict.message) == (
        "over the channels",
        "You summed over the channels.",
    )
    assert "Input: x of shape (2, 5, 3)" in verdict.details and "expected" in verdict.details


def test_a_known_mistake_that_changes_its_input_is_told_from_one_that_does_not():
    exercise = replace(EXERCISE, mistakes=(Mistake("in place", in_place, "x is overwritten."),))
    assert exercise.check(in_place).mistake == "in place"

    def same_numbers(x):
        return in_place(x.clone())

    assert exercise.check(same_numbers).mistake is None


def test_a_known_mistake_that_raises_is_named():
    verdict = EXERCISE.check(lambda tokens: tokens @ tokens)
    assert verdict.mistake == "a product"
    assert "raised RuntimeError" in verdict.details


def test_an_unknown_difference_tells_place_numbers_and_what_held():
    def from_token_2_on(x):
        out = x.cumsum(dim=1)
        out[0, 2:, 1] += 1
        return out

    message = failure(from_token_2_on)
    expected = EXERCISE.run(running_sum)[0].value[0, 2, 1].item()
    assert f"at out[0, 2, 1]: expected {expected:.4g}, got {expected + 1:.4g}." in message
    assert "Input: x of shape (2, 5, 3)." in message
    assert "27 of the 30 numbers are right, all of out[:, 0] and out[:, 1] among them" in message
    assert "What holds: the shape (2, 5, 3), all numbers finite, first token unchanged." in message
    assert "What does not: last is the total." in message


def test_a_property_that_the_right_answer_lacks_is_told_as_such():
    total = (
        "every token is the total",
        lambda out, x: torch.equal(out, out[:, -1:].expand_as(out)),
    )
    exercise = replace(EXERCISE, properties=(total,))
    message = failure(lambda x: x.sum(1, keepdim=True).expand_as(x), exercise)
    assert "What should not hold: every token is the total." in message
    assert "total" not in failure(lambda x: x, exercise)


def test_a_difference_in_a_later_digit_is_shown():
    message = failure(lambda x: x.cumsum(dim=1) * 1.0001)
    expected, got = message.split("expected ")[1].split(".\n")[0].split(", got ")
    assert expected != got
    assert "Every number" not in message


GUESSES = [
    (lambda x: 3 * x.cumsum(dim=1), "Every number is 3 times what it should be."),
    (lambda x: x.cumsum(dim=1)[..., :1], "Wrong shape: expected (2, 5, 3), got (2, 5, 1)."),
    (lambda x: x.cumsum(dim=1).mT, "got (2, 3, 5). The sizes are right; their order is not."),
    (lambda x: x.cumsum(dim=1)[None], "got (1, 2, 5, 3). An axis of size 1 is left over."),
    (lambda x: x.sum(), "expected (2, 5, 3), got (), a single number."),
    (lambda x: None, "returned None. Is its `return` missing?"),
    (lambda x: x.cumsum(dim=1) / 4, "Every number is 1/4 times what it should be."),
    (lambda x: x.cumsum(dim=1) * 2**0.5, "Every number is √2 times what it should be."),
    (lambda x: x.cumsum(dim=1) / 3**0.5, "Every number is 1/√3 times what it should be."),
    (lambda x: -x.cumsum(dim=1), "Every number is -1 times what it should be."),
    (lambda x: x.numpy(), "got a numpy array. Return a tensor: torch.from_numpy"),
    (lambda x: x.numpy().sum(), "got a number of numpy (float32). Return a tensor: torch.tensor"),
    (lambda x: list(x), "got a list of 2 tensors of shape (5, 3). torch.stack(…) joins"),
    (
        lambda x: x.split(1, dim=2),
        "got a tuple of 3 tensors of shape (2, 5, 1). torch.cat(…) joins",
    ),
    (lambda x: (x, x), "got a tuple of 2 tensors of shape (2, 5, 3). Return one tensor."),
    (lambda x: (x, x.mT), "got 2 tensors of shape (2, 3, 5) and (2, 5, 3). Return one tensor."),
    (lambda x: x.tolist(), "got a list. torch.tensor"),
    (lambda x: 1.5, "Expected a tensor of shape (2, 5, 3), got a float."),
    (lambda x: running_sum, "got a function."),
    (whole_numbers, "Expected floats, got whole numbers (torch.int64)."),
    (lambda x: x > 0, "Expected floats, got True and False (torch.bool)."),
    (lambda x: x.double().cumsum(dim=1), "they are torch.float64; expected torch.float32."),
    (lambda x: 2 * x.double().cumsum(dim=1), "Every number is 2 times"),
    (lambda x: x.cumsum(dim=1) + 0j, "Expected floats, got complex numbers"),
    (in_place, "Your function changed its input `x`"),
    (lambda x: x.cumsum_(dim=1), "Your function changed its input `x`"),
    (lambda x: x.cumsum(dim=1).to_sparse() * 2, "Every number is 2 times"),
]


@pytest.mark.parametrize(("candidate", "words"), GUESSES)
def test_what_came_back_is_told_in_words(candidate, words):
    assert words in failure(candidate)


def test_nan_is_told_with_its_place_and_number():
    message = failure(lambda x: torch.where(torch.arange(3) == 1, math.nan, x.cumsum(dim=1)))
    assert "First difference at out[0, 0, 1]: expected" in message and "got nan" in message
    assert "10 of 30 numbers are nan or inf. nan comes of 0 / 0" in message
    assert "all numbers finite" not in message


def test_swapped_rows_and_columns_are_told():
    square = Exercise("99.2", "Square", lambda a: a, lambda: [(torch.randn(4, 4),)], (), ("",))
    assert "rows and columns are swapped" in failure(lambda a: a.mT, square)


def test_one_number_may_come_as_a_float_or_a_tensor():
    dot = Exercise(
        "99.3",
        "Dot",
        lambda a, b: float(a @ b),
        lambda: [(torch.ones(3), torch.ones(3))],
        (),
        ("",),
    )
    assert dot.check(lambda a, b: 3.0).status == "passed"
    assert dot.check(lambda a, b: (a * b).sum()).status == "passed"
    assert dot.check(lambda a, b: (a * b).double().sum()).status == "passed"
    assert "Expected 3, got 4." in failure(lambda a, b: 4.0, dot)
    assert "Every number" not in failure(lambda a, b: 6.0, dot)
    assert "Expected one number, got a tensor of shape (3,)." in failure(lambda a, b: a * b, dot)
    assert "Expected one number, got a str." in failure(lambda a, b: "3", dot)
    told = failure(lambda a, b: (a @ b).numpy()[()], dot)
    assert "Expected one number, got a number of numpy (float32). Return a tensor" in told


@pytest.mark.parametrize(
    "borrowed",
    [
        lambda x: x.cumsum(dim=1),
        lambda x: torch.cumsum(x, 1),
        lambda x: x.clone().cumsum_(1),
        lambda x: 2 * x.cumsum(1),  # wrong numbers too
        lambda x: x.logcumsumexp(1),
    ],
)
def test_what_an_exercise_does_without_is_noticed_however_it_is_called(borrowed):
    exercise = replace(EXERCISE, without="cumsum", mistakes=())
    assert "calls torch's own cumsum. Here you write it yourself." in failure(borrowed, exercise)
    own = torch.tril(torch.ones(5, 5))
    exercise = replace(exercise, reference=lambda x: own[: x.shape[1], : x.shape[1]] @ x)
    assert exercise.check(exercise.reference).status == "passed"
    assert exercise.check(borrowed).status == "failed"


@pytest.mark.parametrize(
    "borrowed",
    [
        lambda scores: torch.softmax(scores, -1),
        lambda scores: scores.softmax(-1),
        lambda scores: torch.nn.functional.softmax(scores, dim=-1),
        torch.nn.Softmax(dim=-1),
        lambda scores: torch.nn.functional.log_softmax(scores, dim=-1).exp(),
        lambda scores: torch.special.softmax(scores, -1),
    ],
)
def test_03_3_takes_no_softmax_of_torch(borrowed):
    assert EXERCISES["03.3"].check(borrowed).mistake == "torch's softmax"


def test_numbers_among_the_arguments_are_told():
    eye = Exercise("99.4", "Eye", lambda T: torch.eye(T), lambda: [(3,)], (), ("",))
    assert "Input: T = 3." in failure(lambda T: torch.ones(T, T), eye)


def test_harmless_ways_pass():
    def with_gradient(x):
        return x.cumsum(dim=1).requires_grad_()

    buffer = torch.zeros(3, 5, 3)

    def in_one_buffer(x):  # each call writes over the last one's answer
        out = buffer[: x.shape[0], : x.shape[1], : x.shape[2]]
        return torch.cumsum(x, dim=1, out=out)

    def by_view_of_its_input(x):
        return x[:, :, :]

    for candidate in (with_gradient, in_one_buffer):
        assert EXERCISE.check(candidate).status == "passed"
    same = Exercise("99.5", "Same", lambda x: x, lambda: [(torch.ones(2, 3),)], (), ("",))
    assert same.check(lambda x: x[:, :]).status == "passed"


# ---------------------------------------------------------------- how it was called


def test_a_class_is_told_from_its_instance():
    message = failure(torch.nn.Tanh)
    assert message == "You handed over a class; give a function, or an instance: Tanh(…)."
    assert "First difference" in failure(torch.nn.Tanh())


def test_what_is_no_function_is_told(capsys):
    message = failure(torch.ones(2, 3))
    assert "got a tensor of shape (2, 3), which looks like a result" in message
    assert "without brackets after its name: running_sum" in message
    assert "got None." in failure(None)


@pytest.mark.parametrize("candidate", [lambda: 1, lambda x, y: x, lambda *, x: x])
def test_a_wrong_number_of_arguments_is_told(candidate):
    message = failure(candidate)
    assert f"takes {inspect.signature(candidate)}, but it is called as running_sum(x)" in message
    assert "Its first line should read: def running_sum(x):" in message


def test_an_exception_is_told_with_the_learners_line():
    def inner(x):
        return x[:, 7]

    def mine(x):
        y = x + 1
        return inner(y)  # the line below is not ours

    message = failure(mine)
    assert "Your function raised IndexError: index 7 is out of bounds" in message
    assert "`return x[:, 7]`" in message and "Input: x of shape (2, 5, 3)" in message


def test_an_exception_inside_torch_names_the_learners_line_not_torchs():
    def mine(x):
        return torch.nn.functional.softmax(x, dim="last")

    assert '`return torch.nn.functional.softmax(x, dim="last")`' in failure(mine)


REMEDIES_MET = [
    (lambda x: x + x.mT, "Sizes line up from the right"),
    (lambda x: x[0] @ x[0], "as many columns in a as b has rows"),
    (lambda x: x @ x, "as many columns in a as b has rows"),
    (lambda x: torch.zeros(3).copy_(x), "does not fit its place"),
    (lambda x: torch.zeros(2).fill_(0).__setitem__(0, x[0]), "more axes than its place"),
    (lambda x: x > 0 and x < 1, "For tensors: & | ~"),
    (lambda x: x[~x], "~ wants True and False"),
    (lambda x: x.masked_fill(x, 0), "A mask is True and False"),
    (lambda x: x - x.max(dim=1), "take .values"),
    (lambda x: [x for _ in x.shape[1]], "write range(n)"),
    (lambda x: [T for B, T in [x.shape]], "one number for each axis"),
]


@pytest.mark.parametrize(("candidate", "remedy"), REMEDIES_MET)
def test_a_common_exception_is_told_with_what_to_do(candidate, remedy):
    message = failure(candidate, replace(EXERCISE, mistakes=()))
    assert "Your function raised" in message and remedy in message


def test_a_long_exception_is_shortened():
    def mine(x):
        raise ValueError("long " * 500)

    assert len(failure(mine)) < 600


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes_through_and_the_random_state_is_restored(error):
    def mine(x):
        torch.manual_seed(1)
        raise error

    before = torch.get_rng_state()
    with pytest.raises(error):
        EXERCISE.check(mine)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_global_random_state_stays():
    def mine(x):
        torch.manual_seed(7)
        print("thinking")
        return x.cumsum(dim=1)

    before = torch.get_rng_state()
    assert EXERCISE.check(mine).status == "passed"
    assert torch.equal(torch.get_rng_state(), before)


def test_what_the_learner_prints_is_seen(capsys):
    EXERCISE.check(lambda x: print("thinking") or x.cumsum(dim=1))
    assert "thinking" in capsys.readouterr().out


# ---------------------------------------------------------------- in Jupyter


def test_a_failed_check_shows_its_message_and_no_traceback():
    cell = """
        from helpers.lesson import check

        def running_sum(x):
            return x.cumsum(dim=1) @ 3

        running_sum = check("99.1", running_sum)
    """
    with fresh_shell() as shell:
        ran = shell.run(textwrap.dedent(cell).strip())
    assert isinstance(ran.error, CheckFailed)
    assert ran.printed.startswith("✗ 99.1 Running sum: not right yet\n")
    assert "line 4: `return x.cumsum(dim=1) @ 3`" in ran.printed, "the line of the learner's cell"
    assert 'hint("99.1") helps.' in ran.printed
    assert "Traceback" not in ran.printed and ".py" not in ran.printed
    assert max(map(len, ran.printed.splitlines())) <= 80


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
    for id, told in {
        "0.1": 'The nearest: "00.1".',
        "031": 'The nearest: "03.1".',
        "3.7": 'Notebook 03 has "03.1", "03.2" and "03.3".',
        "03": 'Notebook 03 has "03.1", "03.2" and "03.3".',
        "elephant": """no exercise 'elephant'. They run from "00.1" to "99.1".""",
        "47.11": """no exercise '47.11'. They run from "00.1" to "99.1".""",
    }.items():
        with pytest.raises(UnknownId) as raised:
            lesson.hint(id)
        assert str(raised.value).endswith(told)
    with pytest.raises(UnknownId, match=r'The nearest: "03\.1"\. An id is text, in quotes'):
        lesson.hint(3.1)
    with pytest.raises(KeyError):
        lesson.hint("elephant")
    with pytest.raises(LessonError, match=r'check\("99\.1", running_sum\)'):
        lesson.check(running_sum, "99.1")


def test_hints_come_one_by_one_and_then_point_to_the_solution(capsys):
    told = []
    for _ in range(4):
        lesson.hint("99.1")
        told.append(capsys.readouterr().out)
    assert told[:2] == ["Hint 1 of 2: Look at the axes.\n", "Hint 2 of 2: Time is axis 1.\n"]
    assert told[2] == told[3] != told[1]
    assert told[2].startswith(told[1]) and 'solution("99.1") shows one solution' in told[2]


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


# ---------------------------------------------------------------- predictions


def test_a_question_is_complete_in_text():
    told = str(lesson.predict("99.p1"))
    assert told.startswith("Prediction 99.p1\nIs `0.1 + 0.2 == 0.3`? Think")
    assert "\na) yes\nb) no, `0.1` < 1 & not exact\n" in told
    assert told.endswith('Answer with a button, or in code: predict("99.p1", "a")')
    assert max(map(len, told.splitlines())) <= 80
    assert "Right:" not in told and "decimals" not in told, "an explanation given away"


@pytest.mark.parametrize("answer", ["b", "B", "b)"])
def test_a_right_answer_in_code(answer):
    told = str(lesson.predict("99.p1", answer))
    assert "Your answer: b) no, `0.1` < 1 & not exact\n✓ Right: 0.1 has no" in told


def test_a_wrong_answer_in_code_explains_itself_and_goes_on():
    question = lesson.predict("99.p1", "a")
    assert "✗ In decimals it is." in str(question) and "Try another answer." in str(question)
    assert list(question._repr_mimebundle_()) == ["text/plain"], "saved with the notebook as text"


@pytest.mark.parametrize("answer", ["c", "", 1, ["a"]])
def test_an_answer_that_is_no_choice(answer):
    with pytest.raises(NotAChoice, match=r'Choose one of "a" or "b": predict\("99\.p1", "a"\)'):
        lesson.predict("99.p1", answer)


def test_buttons_answer_and_explain():
    question = lesson.predict("99.p1")
    bundle = question._repr_mimebundle_()
    assert bundle["text/plain"] == str(question) == repr(question)
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert [button.description for button in question.buttons.values()] == [
        "a) yes",
        "b) no, 0.1 < 1 & not exact",
    ]
    question.buttons["a"].click()
    assert "✗ In decimals it is." in question.explanation.value
    assert "Try another answer." in question.explanation.value
    question.buttons["b"].click()
    assert "✓ Right: 0.1 has no" in question.explanation.value
    assert "In decimals" not in question.explanation.value
    assert [button.icon for button in question.buttons.values()] == ["", "check"]
    assert "Your answer: b)" in str(question)


def test_a_question_answered_by_a_button_is_shown_so_again():
    question = lesson.predict("99.p1")
    question.buttons["b"].click()
    bundle = question._repr_mimebundle_()
    assert "✓ Right: 0.1" in bundle["text/plain"] and len(bundle) == 2


def test_text_is_escaped_and_code_is_marked_in_html():
    question = lesson.predict("99.p1")
    html = question.box.children[0].value
    assert "<code>0.1 + 0.2 == 0.3</code>" in html
    assert lesson._as_html("a < b & `c`").count("&lt;") == 1
