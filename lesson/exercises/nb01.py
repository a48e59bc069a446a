"""The exercises of notebook 01: the causal mean, by loops."""

import torch

from feedback.grading import Exercise


def _batches():
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(3, 5, 2, generator=generator)
    first[2, 1] = 0  # a token of zeros counts as any other
    return [(first,), (torch.randn(2, 3, 4, generator=generator),)]


_AXES = {"x": "B T C", "return": "B T C"}


def _running_mean_of_squares(x):
    return (x**2).cumsum(dim=1) / torch.arange(1, x.shape[1] + 1)[:, None]


# What people hand in for the causal mean.
_STEPS = (
    ("the running sums, not yet divided", lambda x: x.cumsum(dim=1)),
    ("the mean of all tokens of each sequence, (B, C)", lambda x: x.mean(dim=1)),
    ("the causal mean of the squares", _running_mean_of_squares),
    ("the largest token so far, in each channel", lambda x: x.cummax(dim=1).values),
)


def _without_itself(x, first):
    """The mean of the tokens before, and something else for output 0."""
    means = (x.cumsum(dim=1) - x)[:, 1:] / torch.arange(1, x.shape[1])[:, None]
    return torch.cat([first(x[:, :1]), means], dim=1)


def forgets_itself_keeps_token_0(x):
    return _without_itself(x, torch.clone)


def forgets_itself_leaves_0(x):
    return _without_itself(x, torch.zeros_like)


def without_zeros(x):
    counted = (x != 0).any(dim=-1, keepdim=True).cumsum(dim=1)  # (B, T, 1)
    return x.cumsum(dim=1) / counted.clamp(min=1)


# ---------------------------------------------------------------- 01.1


def causal_mean(x):
    """(B, T, C) -> (B, T, C): output t is the mean of tokens 0 to t of its own sequence."""
    B, T, C = x.shape
    out = torch.zeros(B, T, C)
    for b in range(B):
        for t in range(T):
            out[b, t] = x[b, : t + 1].mean(dim=0)
    return out


CAUSAL_MEAN = Exercise(
    "01.1",
    causal_mean,
    _batches,
    axes=_AXES,
    intermediates=_STEPS,
)


# ---------------------------------------------------------------- 01.3


def causal_mean_cumsum(x):
    """(B, T, C) -> (B, T, C): as causal_mean, without a loop in Python."""
    counts = torch.arange(1, x.shape[1] + 1)[:, None]  # (T, 1)
    return x.cumsum(dim=1) / counts


def _by_matrix(x):
    T = x.shape[1]
    return torch.tril(torch.ones(T, T, dtype=x.dtype)) @ x / torch.arange(1, T + 1)[:, None]


CAUSAL_MEAN_CUMSUM = Exercise(
    "01.3",
    causal_mean_cumsum,
    _batches,
    axes=_AXES,
    intermediates=_STEPS,
    no_loop_over="B T",
    accepted=(_by_matrix,),
)


EXERCISES = (CAUSAL_MEAN, CAUSAL_MEAN_CUMSUM)
