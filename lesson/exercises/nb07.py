"""The exercises of notebook 07: the block."""

import torch
from torch import nn

from feedback.grading import Exercise
from lesson.builds import build

# ---------------------------------------------------------------- 07.2


def layer_norm(x, eps=1e-5):
    """(..., C) -> (..., C): each token's channels with mean 0 and variance 1."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, unbiased=False, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps)


def _by_squares(x, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt((centred**2).mean(-1, keepdim=True) + eps)


def _tokens():
    """Two batches; one token of each is tiny, where the place of eps shows."""
    generator = torch.Generator().manual_seed(0)
    batches = [
        torch.randn(3, 5, 8, generator=generator),
        torch.randn(2, 4, 6, generator=generator) + 3,
    ]
    for x in batches:
        x[0, 1] *= 1e-3
    return [(x,) for x in batches]


def _between_0_and_1(x, eps=1e-5):
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    return (x - low) / (high - low + eps)


def _length_one(x, eps=1e-5):
    return nn.functional.normalize(x - x.mean(dim=-1, keepdim=True), dim=-1, eps=eps)


def _not_centred(x, eps=1e-5):
    mean_square = (x**2).mean(dim=-1, keepdim=True)
    return (x - x.mean(dim=-1, keepdim=True)) / torch.sqrt(mean_square + eps)


LAYER_NORM = Exercise(
    "07.2",
    layer_norm,
    without="layer_norm",
    axes={"x": "... C", "return": "... C"},
    intermediates=(
        ("the mean of each token", lambda x, eps=1e-5: x.mean(-1)),
        ("the variance of each token", lambda x, eps=1e-5: x.var(-1, unbiased=False)),
        ("each token with its smallest channel at 0 and its largest at 1", _between_0_and_1),
        ("each token minus its mean, with length 1", _length_one),
        ("the centred token divided by the root of its mean square, mean included", _not_centred),
    ),
    trained=True,
    cases=_tokens,
    accepted=(_by_squares,),
    atol=1e-4,
    optional=True,
    properties=(("each token has mean 0", lambda out, x: bool(out.mean(-1).abs().max() < 1e-4)),),
)


EXERCISES = (LAYER_NORM, build("FeedForward"), build("Block"), build("TinyGPT"))
