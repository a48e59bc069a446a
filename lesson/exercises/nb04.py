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

EXERCISES = (build("Head"), QUERY_MATRIX)
