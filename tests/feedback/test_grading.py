"""How an answer is judged: by what it does, and without a trace left behind."""

from dataclasses import replace

import pytest
import torch

from attention_base.known import Known
from feedback.grading import Exercise, Mistake
from helpers.circuits import RULES, score_from_blocks
from lesson.exercises import EXERCISES
from tests.lesson.examples import EXERCISE, failure, in_place


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
    assert verdict.place.startswith("out[0, 0, 1] is ")
    assert "Input: x of shape (2, 5, 3)" in verdict.details and "What holds" in verdict.details


def test_a_known_mistake_that_changes_its_input_is_told_from_one_that_does_not():
    mistake = Mistake(Known("in place", message="x is overwritten."), in_place)
    exercise = replace(EXERCISE, mistakes=(mistake,))
    assert exercise.check(in_place).mistake == "in place"

    def same_numbers(x):
        return in_place(x.clone())

    assert exercise.check(same_numbers).mistake is None


def test_a_known_mistake_that_raises_is_named():
    verdict = EXERCISE.check(lambda tokens: tokens @ tokens)
    assert verdict.mistake == "a product"
    assert "raised RuntimeError in line" in verdict.place


def unscaled_without_mask(q, k):
    return (q @ k.mT).softmax(-1)


def swapped_with_a_future_of_0(q, k):
    return (k @ q.mT / q.shape[-1] ** 0.5).tril().softmax(-1)


@pytest.mark.parametrize(
    ("id", "answer", "names"),
    [
        ("05.2", unscaled_without_mask, "not scaled; no mask"),
        ("05.2", swapped_with_a_future_of_0, "future filled with 0; queries and keys swapped"),
        ("03.1", lambda scores: scores.softmax(1), "softmax over the queries (dim=1); no mask"),
    ],
)
def test_two_mistakes_at_once_are_named(id, answer, names):
    verdict = EXERCISES[id].check(answer)
    assert (verdict.mistake, verdict.message) == (None, f"Two mistakes at once: {names}.")


def test_a_pair_has_to_give_every_number_and_what_says_more_is_told_before():
    def nearly(*arguments):
        return unscaled_without_mask(*arguments) * (1 + 0.1 * (len(arguments[0]) == 2))

    for id, answer in (("05.2", nearly), ("03.1", lambda scores: scores)):
        assert "Two mistakes" not in EXERCISES[id].check(answer).message
    assert EXERCISES["05.2"].pairs is EXERCISES["05.2"].pairs, "they are made once"


# ---------------------------------------------------------------- what a result does


def one_back(letters, T):
    return score_from_blocks(letters, T, {("position", "position"): torch.eye(T).roll(-1, 1)})


def weights_and_failure(M, letters, T):
    rule = RULES["one back"]
    failure = rule.first_failure(M, letters, T)
    return rule.found(M, letters, T), failure


def itself(letters, T):
    return score_from_blocks(letters, T, {("position", "position"): torch.eye(T)})


BY_EFFECT = Exercise(
    "99.9",
    one_back,
    lambda: [("abc-", 6), ("-cba", 5)],
    effect=weights_and_failure,
    mistakes=(Mistake(Known("itself", (), "Each token finds itself."), function=itself),),
)


@pytest.mark.parametrize("factor", [1, 7, 0.5])
def test_of_scores_only_the_weights_are_judged(factor):
    assert BY_EFFECT.check(lambda letters, T: factor * one_back(letters, T)).status == "passed"
    verdict = BY_EFFECT.check(lambda letters, T: factor * itself(letters, T))
    assert verdict.mistake == "itself"
    assert "position 1 (“a”) should attend to position 0 (“b”)" in verdict.place


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda letters, T: one_back(letters, T) * 0, "as much as on position 0"),
        (lambda letters, T: one_back(letters, T) / 100, "larger, but not by enough"),
        (lambda letters, T: torch.eye(T), r"M must be (10, 10), got (6, 6)."),
        (lambda letters, T: torch.full((10, 10), -torch.inf), "row 0, column 0 has -inf"),
        (lambda letters, T: {}, "M must be a tensor (10, 10), got dict."),
        (lambda letters, T: None, "Your function returned None"),
    ],
)
def test_of_scores_that_do_something_else_it_is_told_where(answer, told):
    verdict = BY_EFFECT.check(answer)
    assert verdict.status == "failed" and not verdict.mistake
    assert told in verdict.message


# ---------------------------------------------------------------- an answer that is called again


def counts_on(x, total):
    return total + x.cumsum(dim=1)


def in_two_calls(answer, x, cut):
    """The running sum of both parts, from two calls."""
    first = answer(x[:, :cut], torch.zeros(len(x), 1, x.shape[2]))
    return torch.cat([first, answer(x[:, cut:], first[:, -1:])], dim=1)


IN_USE = Exercise(
    "99.8",
    counts_on,
    lambda: [(torch.randn(2, 5, 3), 2), (torch.randn(3, 4, 2), 1)],
    used=in_two_calls,
    mistakes=(Mistake(Known("begins anew", (("total + ", ""),), "The old sum is lost.")),),
)


def test_an_answer_may_be_judged_by_several_calls():
    assert IN_USE.check(counts_on).status == "passed"
    assert IN_USE.check(lambda x, total: x.cumsum(1)).mistake == "begins anew"
    doubled = IN_USE.check(lambda x, total: 2 * (total + x.cumsum(1))).told(details=True)
    assert "Input: x of shape (2, 5, 3), cut = 2." in doubled


def test_what_its_use_refuses_is_told_in_words_and_an_error_of_the_answer_with_its_line():
    told = EXERCISES["14.generate"].check(lambda model, ids, *_: ids).message
    assert told.startswith("Expected texts (2, 6), got a tensor of shape (2, 3)")
    told = EXERCISES["14.generate"].check(lambda model, ids, *_: ids @ 3).message
    assert told.startswith("Your function raised TypeError in line")


def side_by_side(answer, a, b):
    """The sum and the product of two answers' numbers, (B, T) beside (B, C)."""
    return torch.cat(answer(a, b), dim=-1)


SEVERAL = Exercise(
    "99.7",
    lambda a, b: (a.cumsum(1), b.softmax(1)),
    lambda: [(torch.randn(2, 5), torch.randn(2, 3)), (torch.randn(3, 4), torch.randn(3, 2))],
    used=side_by_side,
    parts={"sums": "B T", "shares": "B C"},
    axes={"a": "B T", "b": "B C"},
)


def test_of_several_results_it_is_told_which_one_is_wrong():
    doubled = SEVERAL.check(lambda a, b: (a.cumsum(1), 2 * b.softmax(1)))
    assert doubled.observations[0] == "Your sums are right, your shares are not."
    assert doubled.observations[1] == "Of your shares: every number is 2 times what it should be."
    assert doubled.place.startswith("In your shares, the number at [0, 0] is ")
    assert "Of your shares, 0 of the 6 numbers are right." in doubled.details
    assert "(2, 8)" not in doubled.told(details=True), "nobody returned both in one tensor"
    both = SEVERAL.check(lambda a, b: (-a.cumsum(1), b.softmax(0)))
    assert "your shares" in both.message
    assert "your sums" not in both.message
    assert "Of your sums, " in both.details
    assert "Of your shares, " in both.details


@pytest.mark.parametrize(
    "candidate",
    [
        lambda x: x.cumsum(dim=1),
        lambda x: torch.cumsum(x, 1),
        lambda x: x.clone().cumsum_(1),
        lambda x: 2 * x.cumsum(1),  # wrong numbers too
        lambda x: x.logcumsumexp(1),
    ],
)
def test_what_an_exercise_does_without_is_noticed_however_it_is_called(candidate):
    exercise = replace(EXERCISE, without="cumsum", mistakes=())
    assert "calls torch's own cumsum. Here you write it yourself." in failure(candidate, exercise)
    own = torch.tril(torch.ones(5, 5))
    exercise = replace(exercise, reference=lambda x: own[: x.shape[1], : x.shape[1]] @ x)
    assert exercise.check(exercise.reference).status == "passed"
    assert exercise.check(candidate).status == "failed"


@pytest.mark.parametrize(
    "candidate",
    [
        lambda scores: torch.softmax(scores, -1),
        lambda scores: scores.softmax(-1),
        lambda scores: torch.nn.functional.softmax(scores, dim=-1),
        torch.nn.Softmax(dim=-1),
        lambda scores: torch.nn.functional.log_softmax(scores, dim=-1).exp(),
        lambda scores: torch.special.softmax(scores, -1),
    ],
)
def test_03_3_takes_no_softmax_of_torch(candidate):
    assert EXERCISES["03.3"].check(candidate).mistake == "torch's softmax"


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
    same = Exercise("99.5", lambda x: x, lambda: [(torch.ones(2, 3),)])
    assert same.check(lambda x: x[:, :]).status == "passed"


def test_an_interrupt_passes_through_and_the_random_state_is_restored():
    def mine(x):
        torch.manual_seed(1)
        raise KeyboardInterrupt

    before = torch.get_rng_state()
    with pytest.raises(KeyboardInterrupt):
        EXERCISE.check(mine)
    assert torch.equal(torch.get_rng_state(), before)


class Own(BaseException):
    """No Exception: an `except Exception` lets it pass."""


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), Own("mine")])
def test_what_is_no_exception_is_told_as_well(error):
    def mine(x, calls=None):
        raise error

    verdict = EXERCISE.check(mine)
    assert verdict.status == "failed" and f"raised {type(error).__name__}" in verdict.message


def test_an_error_without_words_is_told():
    class Silent(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    def mine(x):
        raise Silent

    verdict = EXERCISE.check(mine)
    assert verdict.status == "failed" and "raised Silent in line" in verdict.message


def test_the_global_random_state_stays():
    def mine(x):
        torch.manual_seed(7)
        print("thinking")
        return x.cumsum(dim=1)

    before = torch.get_rng_state()
    assert EXERCISE.check(mine).status == "passed"
    assert torch.equal(torch.get_rng_state(), before)


def test_what_the_learner_prints_is_seen_but_not_hundreds_of_lines(capsys):
    EXERCISE.check(lambda x: print("thinking" + "\n" * 150))
    told = capsys.readouterr().out
    assert told.startswith("thinking\n") and "… and " in told and told.count("\n") == 21


def test_an_answer_runs_on_one_thread_and_the_number_of_threads_is_restored():
    threads = []

    def mine(x):
        threads.append(torch.get_num_threads())
        torch.set_num_threads(3)
        return x.cumsum(dim=1)

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert EXERCISE.check(mine).status == "passed"
        assert set(threads) == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_reference_and_the_mistakes_run_once():
    ran = []

    def counted(x):
        ran.append("reference")
        return x.cumsum(dim=1)

    def a_mistake(x):
        ran.append("mistake")
        return x.cumsum(dim=-1)

    def cases():
        ran.append("cases")
        return EXERCISE.cases()

    mistake = Mistake(Known("over the channels", message="Another axis."), a_mistake)
    exercise = replace(EXERCISE, reference=counted, cases=cases, mistakes=(mistake,))
    assert exercise.check(lambda x: x.cumsum(-1)).mistake == "over the channels"
    assert ran == ["cases", "reference", "reference", "mistake", "mistake"], "two inputs each"
    failure(lambda x: x, exercise)
    once = list(ran)  # with experiments on the reference
    for _ in range(2):
        failure(lambda x: x, exercise)
        assert exercise.check(lambda x: x.cumsum(-1)).mistake == "over the channels"
    assert ran == once


def reversed_sum(x):
    """To be mended."""
    return x.flip(1).cumsum(dim=1)


def test_a_program_to_mend_counts_as_not_attempted_until_its_code_changes():
    def commented(x):
        """Other words."""
        # a comment
        return x.flip(1).cumsum(dim=1)

    def in_other_code(tokens):
        return tokens.flip(1).cumsum(dim=1)

    exercise = replace(EXERCISE, given=reversed_sum)
    verdict = exercise.check(commented)
    assert verdict.status == "not attempted" and verdict.message.startswith("not changed yet")
    assert exercise.check(in_other_code).status == "failed"
    assert exercise.check(torch.nn.Identity()).status == "failed", "it has no source of a def"
    assert exercise.check(lambda x: x.cumsum(dim=1)).status == "passed"
