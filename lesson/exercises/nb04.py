"""The exercises of notebook 04: one head."""

import torch

from feedback.grading import Exercise
from lesson.builds import build


def query_matrix(strength):
    """-> (2, 2) matrix: a consonant's query finds vowels, and a vowel's query finds nothing."""
    return torch.tensor([[0.0, 0.0], [strength, 0.0]])


QUERY_MATRIX = Exercise(
    "04.4",
    query_matrix,
    cases=lambda: [(12.0,), (3.0,), (0.5,)],
)


def step(p, learning_rate):
    """Move the parameter p against its gradient, in place; then clear its gradient."""
    with torch.no_grad():
        p -= learning_rate * p.grad
    p.grad = None


def _three_steps(answer, p, learning_rate):
    """What p, and a single number, are after each of three steps; the loss is steeper for some."""
    found, one = [], torch.nn.Parameter(p.flatten()[0].clone())
    p = torch.nn.Parameter(p.clone())
    with torch.enable_grad():  # an answer that switches it off is not right, and cannot go on
        for _ in range(3):
            slopes = torch.arange(1.0, 1 + p.numel()).view_as(p)
            ((slopes * (p - 3).square()).sum() + (one - 3).square()).backward()
            answer(p, learning_rate)
            answer(one, learning_rate)
            found.append(torch.cat([p.detach().flatten(), one.detach().view(1)]))
    return torch.stack(found)


STEP = Exercise(
    "04.5",
    step,
    cases=lambda: [
        (torch.tensor([1.0, 4.0, -2.0]), 0.1),
        (torch.tensor([[2.0, -1.0, 0.5], [0.0, 5.0, 1.0]]), 0.05),
    ],
    used=_three_steps,
)

EXERCISES = (build("Head"), QUERY_MATRIX, STEP)
