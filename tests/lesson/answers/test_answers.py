"""Wrong answers by people who had not seen the mistakes' code: refused, and told what they do."""

import re

import pytest

from feedback.calls import same_conditions
from feedback.judge import Judge
from feedback.observations import KINDS
from lesson.exercises import EXERCISES
from tests.lesson.answers import load
from tests.lesson.examples import CALLED
from tests.lesson.right_answers import RIGHT
from tests.told import Told

# No name and no observation: Python's or PyTorch's own error says it, with the line and a remedy.
ERRORS_THAT_SAY_IT = {
    *("average_over_the_batch_axis", "running_means_in_log_space", "mm_with_a_batch"),
    *("row_zero_counts_no_token", "product_with_64_bit_weights", "printed_not_returned"),
    *("torch_sqrt_of_a_number", "only_the_output", "weights_first", "output_without_a_pair"),
    *("a_length_from_memory", "all_differences", "out_alone", "three_results"),
    *("cleared_first", "with_a_graph"),
}

ANSWERS = {f"{one.exercise}-{one.function.__name__}": one for one in load()}
answers = pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)


@answers
@pytest.mark.filterwarnings("ignore")
def test_a_wrong_answer_is_refused_with_a_name_or_an_observation(answer, snapshot):
    name = answer.function.__name__
    verdict = EXERCISES[answer.exercise].check(answer.function)
    assert verdict.status == "failed", answer.what
    assert (verdict.mistake or "") == answer.named, answer.what
    assert len(verdict.observations) <= 2
    by_its_error = name in ERRORS_THAT_SAY_IT and not verdict.observations
    assert verdict.mistake or verdict.observations or by_its_error, verdict.message
    if not verdict.mistake:
        told = re.sub(r"in line \d+:", "in line …:", verdict.told(details=by_its_error))
        assert told == snapshot.use_extension(Told)


@pytest.mark.parametrize(
    "id", [id for id, one in ANSWERS.items() if not EXERCISES[one.exercise].effect]
)
@pytest.mark.filterwarnings("ignore")
def test_each_experiment_finds_what_is_stored_whoever_else_says_more(id, snapshot):
    exercise, answer = EXERCISES[ANSWERS[id].exercise], ANSWERS[id]
    trial = Judge(exercise, answer.function).trial()
    if any(one.changed_input for one in trial.got):
        pytest.skip(
            "it changes its inputs, which is told first: what is found depends on the order"
        )
    with same_conditions():
        told = [
            f"{kind.__name__} ({one.rank.name}): {one.text}"
            for kind in KINDS
            for one in kind(trial)
        ]
    assert "\n".join(told) == snapshot.use_extension(Told)


def test_every_exercise_has_a_mistake_that_is_made_in_another_program():
    assert sorted({one.exercise for one in load() if one.named}) == sorted(CALLED)


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES.keys())
def test_no_mistake_is_a_right_answer(exercise):
    right = {f.__name__: exercise.run(f) for id, f in RIGHT if id == exercise.id}
    for mistake in exercise.mistakes:
        outcomes = [*mistake.outcomes]
        same = [name for name, others in right.items() if exercise.same(others, outcomes)]
        assert not same, mistake.name
