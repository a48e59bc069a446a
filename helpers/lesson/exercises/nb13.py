"""The exercises of notebook 13: attentions that run and are wrong, each to be mended."""

import torch
import torch.nn.functional as F
from torch import Tensor

from helpers.attention import causal_mask
from helpers.lesson.grading import Exercise

QKV = {name: "B n_head T head_size" for name in ("q", "k", "v")}


def _qkv(generator, shape, size=1.0):
    """Queries, keys and values; each score is about as large as the square of ``size``."""
    q, k, v = torch.randn(3, *shape, generator=generator)
    return size * q, size * k, v


def out_and_weights(returned, q, k, v):
    """What an answer returned, side by side: (B, n_head, T, head_size + T).

    Raises
    ------
    TypeError, ValueError
        When it is no pair of an output and weights.
    """
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise TypeError("attend must return (out, weights), two tensors.")
    out, weights = returned
    if not isinstance(out, Tensor) or not isinstance(weights, Tensor):
        names = " and ".join(type(one).__name__ for one in returned)
        raise TypeError(f"attend must return (out, weights), two tensors; it returned {names}.")
    for name, one, shape in (("out", out, v.shape), ("weights", weights, (q @ k.mT).shape)):
        if one.shape != shape:
            raise ValueError(f"{name} must be {tuple(shape)}; attend returned {tuple(one.shape)}.")
    return torch.cat([out, weights], dim=-1)


def with_its_weights(attend, q, k, v):
    return out_and_weights(attend(q, k, v), q, k, v)


# ---------------------------------------------------------------- 13.1


def softmax_over_queries(q, k, v):
    """q, k, v (B, n_head, T, head_size) -> (out, weights)."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(q.shape[2]), -torch.inf)
    weights = torch.softmax(scores, dim=-2)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ v, weights


def attend(q, k, v):
    """q, k, v (B, n_head, T, head_size) -> (out, weights)."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(q.shape[2]), -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


def _texts():
    generator = torch.Generator().manual_seed(0)
    return [_qkv(generator, shape, 1.5) for shape in ((2, 3, 5, 4), (3, 2, 4, 6))]


OVER_THE_KEYS = Exercise(
    "13.1",
    attend,
    _texts,
    given=softmax_over_queries,
    used=with_its_weights,
    judged="torch.cat([out, weights], dim=-1)",
    axes=QKV,
)


# ---------------------------------------------------------------- 13.2


def slow_path_without_mask(q, k, v, need_weights):
    """q, k, v (B, n_head, T, head_size) -> (out, weights), or (out, None) on the fast path."""
    if not need_weights:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True), None
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


def attend(q, k, v, need_weights):
    """q, k, v (B, n_head, T, head_size) -> (out, weights), or (out, None) on the fast path."""
    if not need_weights:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True), None
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(q.shape[2]), -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


def on_a_path(attend, q, k, v, need_weights):
    """What is judged: on the slow path outputs and weights, on the fast one outputs."""
    returned = attend(q, k, v, need_weights)
    if need_weights:
        return out_and_weights(returned, q, k, v)
    if not isinstance(returned, tuple | list) or len(returned) != 2 or returned[1] is not None:
        raise TypeError("Without need_weights, attend must return (out, None).")
    return returned[0]


def _paths():
    return [(*qkv, need_weights) for qkv in _texts() for need_weights in (True, False)]


BOTH_PATHS = Exercise(
    "13.2",
    attend,
    _paths,
    given=slow_path_without_mask,
    used=on_a_path,
    judged="torch.cat([out, weights], dim=-1)",
    axes=QKV,
)


EXERCISES = (OVER_THE_KEYS, BOTH_PATHS)
