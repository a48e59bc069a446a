"""The exercises of notebook 00: reading tensors."""

import torch

from attention_clinic.probes import rows_sum_to_one
from feedback.grading import Exercise
from lesson.exercises.properties import ROWS_SUM_TO_ONE


def _positive(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(sum(shape))) + 0.1


# ---------------------------------------------------------------- 00.1


def mean_over_time(x):
    """(B, T, C) -> (B, C): the mean of the tokens of each sequence."""
    return x.mean(dim=1)


def _mean_by_negative_dim(x):
    return x.sum(dim=-2) / x.shape[-2]


def _running_means(x):
    return x.cumsum(dim=1) / torch.arange(1, x.shape[1] + 1)[:, None]


def _midrange(x):
    return (x.amin(dim=1) + x.amax(dim=1)) / 2


MEAN_OVER_TIME = Exercise(
    "00.1",
    mean_over_time,
    axes={"x": "B T C", "return": "B C"},
    intermediates=(
        ("the running mean of every token, not only the last", _running_means),
        ("the median of the tokens, not their mean", lambda x: x.median(dim=1).values),
        ("the largest token in each channel, not their mean", lambda x: x.amax(dim=1)),
        ("the middle between the smallest and the largest token", _midrange),
        ("the mean of the first and the last token only", lambda x: (x[:, 0] + x[:, -1]) / 2),
        ("the token in the middle, x[:, T // 2]", lambda x: x[:, x.shape[1] // 2]),
        ("the last token, x[:, -1]", lambda x: x[:, -1]),
        ("the first token, x[:, 0]", lambda x: x[:, 0]),
    ),
    cases=lambda: [(_positive(3, 5, 2),), (_positive(2, 7, 4),)],
    accepted=(_mean_by_negative_dim,),
)


# ---------------------------------------------------------------- 00.2


def normalise_rows(a):
    """(..., R, S), int or float >= 0, no row all 0 -> same shape: each row divided by its sum."""
    return a / a.sum(dim=-1, keepdim=True)


def _normalise_unsqueeze(a):
    return a / a.sum(-1)[..., None]


def _by_matrix(a):
    return a / a.sum(dim=(-2, -1), keepdim=True)


def _unit(a):
    return a / (a**2).sum(dim=-1, keepdim=True).sqrt()


def _by_others(a):
    return a / (a.sum(dim=-1, keepdim=True) - a)


def _by_first(a):
    return a / a.flatten(1).sum(dim=-1).reshape(-1, *[1] * (a.dim() - 1))


NORMALISE_ROWS = Exercise(
    "00.2",
    normalise_rows,
    named=("`a` with 4 axes",),
    axes={"a": "... R S", "return": "... R S"},
    intermediates=(
        ("the sums of the rows", lambda a: a.sum(dim=-1)),
        ("the sums of the rows, as a column", lambda a: a.sum(dim=-1, keepdim=True)),
        ("`a` with each matrix divided by the sum of all its numbers", _by_matrix),
        ("`a` with each row divided by the square root of its sum of squares", _unit),
        ("`a` with each entry divided by the sum of the others in its row", _by_others),
        ("`a` with each entry of the first axis divided by its whole sum", _by_first),
    ),
    cases=lambda: [
        (_positive(4, 4),),
        (_positive(2, 3, 5),),
        (_positive(3, 3, 3),),
        (torch.tensor([[0, 1, 1, 0], [2, 1, 0, 1], [0, 0, 3, 0]]),),
    ],
    accepted=(_normalise_unsqueeze,),
    properties=(
        ROWS_SUM_TO_ONE,
        ("columns sum to 1", lambda out, a: rows_sum_to_one(out.mT).ok),
    ),
)


# ---------------------------------------------------------------- 00.3


def swap_last_two(x):
    """(B, R, S) -> (B, S, R): entry [b, s, r] is x[b, r, s]."""
    return x.transpose(-2, -1)


def _swap_by_mt(x):
    return x.mT


def _swap_by_permute(x):
    return x.permute(0, 2, 1)


SWAP_LAST_TWO = Exercise(
    "00.3",
    swap_last_two,
    axes={"x": "B R S", "return": "B S R"},
    intermediates=(
        ("`x` times `x` transposed, one number for each pair of rows", lambda x: x @ x.mT),
        ("`x` with the order along its last axis reversed", lambda x: x.flip(-1)),
        ("`x` with the order of its rows reversed", lambda x: x.flip(-2)),
    ),
    cases=lambda: [(_positive(2, 3, 4),), (_positive(3, 4, 4),)],
    accepted=(_swap_by_mt, _swap_by_permute),
)


EXERCISES = (MEAN_OVER_TIME, NORMALISE_ROWS, SWAP_LAST_TWO)
