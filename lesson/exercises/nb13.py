"""The exercises of notebook 13: attentions that run and are wrong, each to be fixed."""

import torch
import torch.nn.functional as F
from torch import Tensor

from feedback.grading import Exercise
from helpers.attention import causal_mask

QKV = {name: "B n_head T head_size" for name in ("q", "k", "v")}
PARTS = {"outputs": "B n_head T head_size", "weights": "B n_head T T"}


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
    shapes = v.shape, (q @ k.mT).shape
    if (weights.shape, out.shape) == shapes and out.shape != weights.shape:
        raise ValueError("attend must return (out, weights); it returned (weights, out).")
    for name, one, shape in zip(("out", "weights"), (out, weights), shapes, strict=True):
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
    parts=PARTS,
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
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise TypeError("Without need_weights, attend must return (out, None).")
    out, weights = returned
    if weights is not None:
        name = type(weights).__name__
        raise TypeError(f"Without need_weights, attend must return (out, None), not (out, {name}).")
    return out


def _paths():
    return [(*qkv, need_weights) for qkv in _texts() for need_weights in (True, False)]


BOTH_PATHS = Exercise(
    "13.2",
    attend,
    _paths,
    given=slow_path_without_mask,
    used=on_a_path,
    parts=PARTS,
    axes=QKV,
)


# ---------------------------------------------------------------- 13.3


def large_negative_mask(q, k, v):
    """q, k, v (B, n_head, T, head_size) -> (out, weights)."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(q.shape[2]), -1e4)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


def attend(q, k, v):
    """q, k, v (B, n_head, T, head_size) -> (out, weights)."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(q.shape[2]), -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


def _louder(generator, shape, size):
    """Queries, keys and values, with scores from size to 5 times it, above 0 and below."""
    q, k, v = 0.05 * torch.randn(3, *shape, generator=generator)
    for z in (q, k):
        sign = torch.randn(shape[:-1], generator=generator).sign()
        z[..., 0] += sign * (1.1 + torch.rand(shape[:-1], generator=generator))
    q[0, 0, 0, 0], k[0, 0, 0, 0] = 2.2, -2.2  # the lowest score is one that has to be seen
    return (size * shape[-1] ** 0.5) ** 0.5 * q, (size * shape[-1] ** 0.5) ** 0.5 * k, 20 * v


def _small_and_large_scores():
    generator = torch.Generator().manual_seed(0)
    large = [  # some below -10,000, and some below most numbers that people take for a mask
        _louder(generator, shape, size)
        for shape, size in (((3, 2, 6, 4), 1.2e4), ((2, 4, 5, 3), 1e30))
    ]
    lowest = _with_the_lowest_score(generator, -3.4018e38)
    return [_qkv(generator, (2, 3, 5, 4), 1.5), *large, lowest]


def _with_the_lowest_score(generator, score):
    """Queries, keys and values in which query 0 sees one score, and this is so low."""
    q, k, v = _qkv(generator, (3, 2, 6, 1))  # one channel: the product is the score
    q[0, 0, 0, 0], k[0, 0, 0, 0] = -((-score) ** 0.5), (-score) ** 0.5
    return q, k, v


LOWEST_FLOAT = (
    "One more thing: your masked scores are the lowest finite number in the place of minus "
    "infinity. No finite score lies below it, and libraries use it, because a row in which every "
    "key is masked gets equal weights then and not nan. A score that overflows to minus infinity "
    "does lie below it, and there the future gets the weight."
)


def lowest_float(attend):
    """Say so where a score of minus infinity gives the weight to the future."""
    q, k, v = _with_the_lowest_score(torch.Generator().manual_seed(0), -1e50)  # it overflows
    try:
        weights = attend(q, k, v)[..., v.shape[-1] :]
    except Exception:  # it refuses such scores
        return ""
    return LOWEST_FLOAT if weights[0, 0, 0, 1:].sum() > 0.5 else ""


MINUS_INFINITY = Exercise(
    "13.3",
    attend,
    _small_and_large_scores,
    given=large_negative_mask,
    used=with_its_weights,
    parts=PARTS,
    remark=lowest_float,
    axes=QKV,
)


# ---------------------------------------------------------------- 13.4


def mask_at_the_top_left(q, k, v):
    """New q (B, n_head, T_new, d), k and v (B, n_head, T_all, d) -> out, shaped as q."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attend_to_kept(q, k, v):
    """New q (B, n_head, T_new, d), k and v (B, n_head, T_all, d) -> out, shaped as q."""
    mask = causal_mask(q.shape[2], k.shape[2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def last_rows(q, k, v):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    hidden = ~causal_mask(k.shape[2])[-q.shape[2] :]
    return scores.masked_fill(hidden, -torch.inf).softmax(dim=-1) @ v


def _new_and_kept():
    cases, generator = [], torch.Generator().manual_seed(0)
    for B, n_head, T_new, T_all, d in ((2, 5, 3, 8, 4), (3, 2, 1, 6, 4), (2, 3, 5, 5, 4)):
        _, k, v = _qkv(generator, (B, n_head, T_all, d), 1.5)
        cases.append((1.5 * torch.randn(B, n_head, T_new, d, generator=generator), k, v))
    q, k, v = _louder(generator, (2, 3, 6, 4), 1e30)  # so that few numbers will do as a mask
    return [*cases, (q[:, :, -3:], k, v)]


def large_negative_number(q, k, v):
    hidden = ~causal_mask(q.shape[2], k.shape[2])
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -1e4)
    return torch.softmax(scores, dim=-1) @ v


KEPT_KEYS = Exercise(
    "13.4",
    attend_to_kept,
    _new_and_kept,
    accepted=(last_rows,),
    given=mask_at_the_top_left,
    axes={
        "q": "B n_head T_new d",
        "k": "B n_head T_all d",
        "v": "B n_head T_all d",
        "return": "B n_head T_new d",
    },
)


# ---------------------------------------------------------------- 13.5


def heads_tiled(q, k, v):
    """Many q (B, n_head, T, d), few k and v (B, n_kv_head, T, d) -> out, shaped as q."""
    times = q.shape[1] // k.shape[1]
    k, v = k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attend(q, k, v):
    """Many q (B, n_head, T, d), few k and v (B, n_kv_head, T, d) -> out, shaped as q."""
    times = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(times, dim=1), v.repeat_interleave(times, dim=1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def grouped_by_pytorch(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def queries_reordered(q, k, v):
    order = torch.arange(q.shape[1]).view(k.shape[1], -1).T.flatten()
    return heads_tiled(q[:, order], k, v)


def tokens_and_copies_mixed(q, k, v):
    times = q.shape[1] // k.shape[1]
    k, v = (z[:, :, :, None].expand(-1, -1, -1, times, -1).reshape(q.shape) for z in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def _grouped_heads():
    cases, generator = [], torch.Generator().manual_seed(0)
    for B, n_head, n_kv_head, T, d in ((3, 6, 2, 5, 4), (2, 6, 3, 4, 5)):
        _, k, v = _qkv(generator, (B, n_kv_head, T, d), 1.5)
        cases.append((1.5 * torch.randn(B, n_head, T, d, generator=generator), k, v))
    return cases


GROUPED_HEADS = Exercise(
    "13.5",
    attend,
    _grouped_heads,
    accepted=(grouped_by_pytorch,),
    given=heads_tiled,
    axes={
        "q": "B n_head T d",
        "k": "B n_kv_head T d",
        "v": "B n_kv_head T d",
        "return": "B n_head T d",
    },
)


EXERCISES = (OVER_THE_KEYS, BOTH_PATHS, MINUS_INFINITY, KEPT_KEYS, GROUPED_HEADS)
