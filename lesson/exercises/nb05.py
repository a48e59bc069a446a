"""The exercises of notebook 05: scaling."""

import torch

from feedback.grading import Exercise
from helpers.attention import attention, causal_mask
from lesson.builds import build
from lesson.exercises.properties import NO_FUTURE, ROWS_SUM_TO_ONE


def _pairs(*shapes):
    generator = torch.Generator().manual_seed(0)
    return [tuple(torch.randn(*shape, generator=generator) for _ in range(2)) for shape in shapes]


# ---------------------------------------------------------------- 05.3


def slope(scores, step):
    """Scores (T,), a number -> how much weight 0 grows per unit, if score 0 grows by step."""
    larger = scores.clone()
    larger[0] += step
    return (torch.softmax(larger, dim=-1)[0] - torch.softmax(scores, dim=-1)[0]) / step


def _from_both_sides(scores, step):
    larger, smaller = scores.clone(), scores.clone()
    larger[0], smaller[0] = scores[0] + step, scores[0] - step
    return (torch.softmax(larger, dim=-1)[0] - torch.softmax(smaller, dim=-1)[0]) / (2 * step)


def _scores_and_steps():
    generator = torch.Generator().manual_seed(0)
    return [
        (torch.randn(T, generator=generator), step) for T, step in ((3, 0.5), (2, 0.1), (5, 0.01))
    ]


SLOPE = Exercise(
    "05.3",
    slope,
    _scores_and_steps,
    accepted=(_from_both_sides,),
    axes={"scores": "T"},
    atol=1e-4,
)


# ---------------------------------------------------------------- 05.2


def scaled_weights(q, k):
    """q, k (B, T, d) -> (B, T, T) causal weights, whose spread does not depend on d."""
    T, d = q.shape[-2:]
    scores = q @ k.mT / d**0.5
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


def _scaled_queries(q, k):
    fourth_root = q.shape[-1] ** 0.25
    scores = (q / fourth_root) @ (k / fourth_root).mT
    return torch.softmax(scores.masked_fill(torch.ones_like(scores).tril() == 0, -1e9), dim=-1)


def _scaled(q, k):
    return q @ k.mT / q.shape[-1] ** 0.5


def _masked(q, k):
    return _scaled(q, k).masked_fill(~causal_mask(q.shape[1]), float("-inf"))


def _scaled_cosines(q, k):
    return scaled_weights(q / q.norm(dim=-1, keepdim=True), k / k.norm(dim=-1, keepdim=True))


def _cosines(q, k):
    q, k = q / q.norm(dim=-1, keepdim=True), k / k.norm(dim=-1, keepdim=True)
    return scaled_weights(q * q.shape[-1] ** 0.5, k)


SCALED_WEIGHTS = Exercise(
    "05.2",
    scaled_weights,
    without="attention",
    ready_made=(attention,),
    axes={"q": "B T d", "k": "B T d", "return": "B T T"},
    intermediates=(
        ("the scores, before the division, the mask and the softmax", lambda q, k: q @ k.mT),
        ("the scaled scores, before the mask and the softmax", _scaled),
        ("the masked, scaled scores, before the softmax", _masked),
        (
            "the scaled scores with the future at 0, before the softmax",
            lambda q, k: _scaled(q, k).tril(),
        ),
        ("the weights times k: an output, not the weights", lambda q, k: scaled_weights(q, k) @ k),
        ("the weights times q: an output, not the weights", lambda q, k: scaled_weights(q, k) @ q),
        ("the weights of cosines: q and k with each row of length 1, not divided", _cosines),
        (
            "the weights of cosines: q and k with each row of length 1, divided by √d",
            _scaled_cosines,
        ),
        ("the right weights after another softmax", lambda q, k: scaled_weights(q, k).softmax(-1)),
    ),
    trained=True,
    cases=lambda: _pairs((3, 5, 16), (2, 6, 7)),
    accepted=(_scaled_queries,),
    properties=(ROWS_SUM_TO_ONE, NO_FUTURE),
)


EXERCISES = (build("train"), SLOPE, SCALED_WEIGHTS)
