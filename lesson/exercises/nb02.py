"""The exercises of notebook 02: weights in a matrix."""

import torch

from feedback.grading import Exercise
from lesson.exercises.properties import NO_FUTURE, ROWS_SUM_TO_ONE

# ---------------------------------------------------------------- 02.1


def causal_mean_matmul(x):
    """(B, T, C) -> (B, T, C): the causal mean as one matrix product."""
    T = x.shape[1]
    ones = torch.tril(torch.ones(T, T))
    weights = ones / ones.sum(dim=-1, keepdim=True)  # (T, T)
    return weights @ x


def _by_dividing_afterwards(x):
    T = x.shape[1]
    return torch.tril(torch.ones(T, T)) @ x / torch.arange(1, T + 1)[:, None]


def _batches():
    generator = torch.Generator().manual_seed(0)
    return [
        (torch.randn(3, 5, 2, generator=generator),),
        (torch.randn(2, 7, 4, generator=generator),),
    ]


def _causal_weights(x):
    ones = torch.tril(torch.ones(x.shape[1], x.shape[1]))
    return ones / ones.sum(dim=-1, keepdim=True)


_PRODUCTS = ("matmul", "mm", "bmm", "einsum", "linear", "tensordot", "baddbmm", "inner")


CAUSAL_MEAN_MATMUL = Exercise(
    "02.1",
    causal_mean_matmul,
    _batches,
    axes={"x": "B T C", "return": "B T C"},
    intermediates=(
        ("the (T, T) weights, not yet multiplied by x", _causal_weights),
        (
            "the running sums, as the weights are ones and not yet divided",
            lambda x: x.cumsum(dim=1),
        ),
    ),
    needs=(("matrix product", _PRODUCTS),),
    no_loop_over="B T",
    accepted=(_by_dividing_afterwards,),
)


# ---------------------------------------------------------------- 02.2


def window_weights(T, width):
    """(T, T) weights: output t is the mean of the last `width` tokens, itself included."""
    t = torch.arange(T)
    age = t[:, None] - t  # (T, T): how far back token s lies from token t
    inside = ((age >= 0) & (age < width)).float()
    return inside / inside.sum(dim=-1, keepdim=True)


def _window_by_loop(T, width):
    weights = torch.zeros(T, T)
    for t in range(T):
        first = max(0, t + 1 - width)
        weights[t, first : t + 1] = 1 / (t + 1 - first)
    return weights


def _ages(T):
    return (torch.arange(T)[:, None] - torch.arange(T)).float()


def _window(T, width):
    return ((_ages(T) >= 0) & (_ages(T) < width)).float()


def _blocks(T, width):
    block = torch.arange(T) // width
    same = (block[:, None] == block).float().tril()
    return same / same.sum(dim=-1, keepdim=True)


def negative_start(T, width):
    weights = torch.zeros(T, T)
    for t in range(T):
        weights[t, t - width + 1 : t + 1] = 1 / min(t + 1, width)
    return weights


def empty_slice(T, width):
    eye = torch.eye(T)
    return torch.stack([eye[t - width + 1 : t + 1].mean(dim=0) for t in range(T)])


def wrapped_start(T, width):
    weights = torch.zeros(T, T)
    for t in range(T):
        for s in range(t - width + 1, t + 1):
            weights[t, s] = 1
    return weights / weights.sum(dim=-1, keepdim=True)


WINDOW_WEIGHTS = Exercise(
    "02.2",
    window_weights,
    lambda: [(7, 3), (5, 2)],
    axes={"return": "T T"},
    intermediates=(
        ("the table of t - s, how far back each token lies", lambda T, width: _ages(T)),
        ("the window as ones and zeros, not yet divided", lambda T, width: _window(T, width)),
        ("the window cut into blocks that do not overlap", _blocks),
    ),
    accepted=(_window_by_loop,),
    properties=(ROWS_SUM_TO_ONE, NO_FUTURE),
)


# ---------------------------------------------------------------- 02.3


def decay_weights(T, decay):
    """(T, T) causal weights, rows sum to 1: a token k steps back has decay**k / sum of its row."""
    t = torch.arange(T)
    age = t[:, None] - t  # (T, T)
    raw = torch.tril(decay ** age.clamp(min=0).float())
    return raw / raw.sum(dim=-1, keepdim=True)


def _decay_by_softmax(T, decay):
    t = torch.arange(T)
    age = (t[:, None] - t).float()
    scores = age * torch.log(torch.tensor(float(decay)))
    return torch.softmax(scores.masked_fill(age < 0, float("-inf")), dim=-1)


def _decay_by_series(T, decay):  # for decay < 1, as the task says
    t = torch.arange(T)[:, None]
    raw = torch.tril(decay ** (t - t.T).clamp(min=0))
    return raw * (1 - decay) / (1 - decay ** (t + 1))


def _raw(T, decay):
    return torch.tril(decay ** _ages(T).clamp(min=0))


def _raw_both(T, decay):
    return decay ** _ages(T).abs()


DECAY_WEIGHTS = Exercise(
    "02.3",
    decay_weights,
    lambda: [(5, 0.25), (4, 0.8)],
    axes={"return": "T T"},
    intermediates=(
        ("the table of t - s, how far back each token lies", lambda T, decay: _ages(T)),
        ("decay ** (t - s), not yet divided by the row sums", _raw),
        ("decay ** |t - s| for the future, too, not yet divided by the row sums", _raw_both),
        ("the weights of the plain causal mean", lambda T, decay: decay_weights(T, 1.0)),
    ),
    accepted=(_decay_by_softmax, _decay_by_series),
    properties=(ROWS_SUM_TO_ONE, NO_FUTURE),
    named=("T = 150",),  # as the task says, and as the page goes on with 1000
    optional=True,
)


EXERCISES = (CAUSAL_MEAN_MATMUL, WINDOW_WEIGHTS, DECAY_WEIGHTS)
