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
    "average_over_the_batch_axis": "The tensors of the list have different shapes.",
    "running_means_in_log_space": "or of the root or the logarithm of a negative number",
    "mm_with_a_batch": "a @ b (torch.matmul) takes a batch, too.",
    "row_zero_counts_no_token": "Positions count from 0: is the divisor 0 for the first one?",
    "product_with_64_bit_weights": "The two hold other types of numbers.",
    "printed_not_returned": "Your function returned None: its `return` is missing",
    "torch_sqrt_of_a_number": "For a number, write n ** 0.5",
    "only_the_output": "attend must return (out, weights), two tensors.",
    "weights_first": "it returned (weights, out).",
    "output_without_a_pair": "Without need_weights, attend must return (out, None).",
    "a_length_from_memory": "The size of tensor a (8) must match the size of tensor b (9)",
    "all_differences": "in_pieces must return one number, the largest difference.",
    "out_alone": "it returned a tensor of shape (2, 3, 2, 4).",
    "three_results": "attend must return (out, (keys, values)), three tensors with four axes each",
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
    if name in ERRORS_THAT_SAY_IT and not verdict.observations:
        assert ERRORS_THAT_SAY_IT[name] in verdict.told(details=True)
    else:
        assert verdict.mistake or verdict.observations, verdict.message
    if not verdict.mistake:
        told = re.sub(r"in line \d+:", "in line …:", verdict.told())
        assert told == snapshot.use_extension(Told)


@pytest.mark.parametrize(
    "id", [id for id, one in ANSWERS.items() if not EXERCISES[one.exercise].effect]
)
@pytest.mark.filterwarnings("ignore")
def test_each_experiment_finds_what_is_stored_whoever_else_says_more(id, snapshot):
    exercise, answer = EXERCISES[ANSWERS[id].exercise], ANSWERS[id]
    trial = Judge(exercise, answer.function).trial()
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
        outcomes = mistake.outcomes
        same = [name for name, others in right.items() if exercise.same(others, outcomes)]
        assert not same, mistake.name
