"""An exercise and a prediction that no notebook has, and answers to the exercise."""

import torch

from attention_base.known import Known
from feedback.grading import Exercise, Mistake
from lesson.builds import Build
from lesson.exercises import EXERCISES
from lesson.question import Choice, Prediction

# All but those that ask for a class or a loop, whose judges have inputs and tests of their own.
CALLED = {id: one for id, one in EXERCISES.items() if not isinstance(one, Build)}


def running_sum(x):
    """(B, T, C) -> (B, T, C)."""
    return x.cumsum(dim=1)


def in_place(x):
    x[:, 0] = 0
    return x.cumsum(dim=1)


EXERCISE = Exercise(
    "99.1",
    running_sum,
    lambda: [(torch.randn(2, 5, 3),), (torch.randn(3, 4, 2),)],
    title="Running sum",
    mistakes=(
        Mistake(
            Known("over the channels", (("dim=1", "dim=-1"),), "You summed over the channels.")
        ),
        Mistake(Known("a product", (("x.cumsum(dim=1)", "x @ x"),), "Nothing is multiplied.")),
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


def failure(candidate, exercise=EXERCISE):
    """All that is told of an answer that fails and is no known mistake."""
    verdict = exercise.check(candidate)
    assert (verdict.status, verdict.mistake) == ("failed", None)
    return verdict.told(details=True)
