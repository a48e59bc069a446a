"""The exercises of notebook 06: many heads."""

import torch
import torch.nn.functional as F

from attention_base.same import seed_all
from attention_clinic.bugs import EXERCISE_BUGS, EXERCISE_BUGS_OF_HEADS, merge_heads, split_heads
from feedback.grading import Exercise
from helpers.attention import Head, causal_mask

# ---------------------------------------------------------------- 06.1


def side_by_side_heads(heads, x):
    """Functions (B, T, C) -> (B, T, head_size), and x (B, T, C) -> (B, T, n_head * head_size)."""
    return torch.cat([head(x) for head in heads], dim=-1)


def chained(heads, x):
    out = []
    for head in heads:
        out.append(head(x))
        x = torch.cat([out[-1], x[..., out[-1].shape[-1] :]], dim=-1)
    return torch.cat(out, dim=-1)


def fed_forward(heads, x):
    out = []
    for head in heads:
        x = head(x)
        out.append(x)
    return torch.cat(out, dim=-1)


def _heads_and_x():
    seed_all(0)
    return [
        ([Head(6, 2) for _ in range(3)], torch.randn(4, 5, 6)),
        ([Head(8, 3) for _ in range(2)], torch.randn(3, 6, 8)),
    ]


def _with_x(heads, x):
    return torch.cat([x, *(head(x) for head in heads)], dim=-1)


def _before_x(heads, x):
    return torch.cat([*(head(x) for head in heads), x], dim=-1)


def _multiplied(heads, x):
    return torch.stack([head(x) for head in heads]).prod(dim=0)


SIDE_BY_SIDE_HEADS = Exercise(
    "06.1",
    side_by_side_heads,
    axes={"heads": "n_head", "x": "B T C", "return": "B T n_head·head_size"},
    sizes={
        "head_size": lambda heads, x: heads[0](x).shape[-1],
    },
    intermediates=(
        ("the heads' results with `x` itself in front of them", _with_x),
        ("the heads' results with `x` itself behind them", _before_x),
        ("the product of the heads' results", _multiplied),
    ),
    trained=True,
    cases=_heads_and_x,
)


# ---------------------------------------------------------------- 06.2


def many_heads(q, k, v, n_head):
    """q, k, v (B, T, C) -> (B, T, C): causal attention in n_head slices of the channels."""
    B, T, C = q.shape
    head_size = C // n_head
    q, k, v = (z.view(B, T, n_head, head_size).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.mT / head_size**0.5  # (B, n_head, T, T)
    scores = scores.masked_fill(~causal_mask(T), float("-inf"))
    out = torch.softmax(scores, dim=-1) @ v  # (B, n_head, T, head_size)
    return out.transpose(1, 2).reshape(B, T, C)


def _by_slices(q, k, v, n_head):
    T, size = q.shape[1], q.shape[-1] // n_head
    answers = []
    for h in range(n_head):
        a, b, c = (z[..., h * size : (h + 1) * size] for z in (q, k, v))
        scores = (a @ b.mT / size**0.5).masked_fill(torch.ones(T, T).triu(diagonal=1) == 1, -1e9)
        answers.append(torch.softmax(scores, dim=-1) @ c)
    return torch.cat(answers, dim=-1)


def _qkv():
    generator = torch.Generator().manual_seed(0)
    return [
        (*(torch.randn(3, 8, 20, generator=generator) for _ in range(3)), 4),
        (*(torch.randn(2, 6, 12, generator=generator) for _ in range(3)), 3),
    ]


def _many_heads_again(q, k, v, n_head):
    """The heads in the words of `attention_clinic.bugs.attention`."""
    B, T, C = q.shape  # noqa: RUF059 - for what a mistake divides by
    q, k, v = (z.reshape(B, T, n_head, -1).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    future = torch.ones_like(scores).triu(diagonal=1) == 1
    scores = scores.masked_fill(future, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    out = weights @ v
    return out.transpose(1, 2).flatten(2)


def interleaved(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.reshape(B, T, C // n_head, n_head).permute(0, 3, 1, 2) for z in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out.permute(0, 2, 3, 1).reshape(B, T, C)


def no_transpose(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.view(B, T, n_head, -1) for z in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).reshape(B, T, C)


def last_axes_swapped(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.view(B, T, n_head, -1).mT for z in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).mT.reshape(B, T, C)


def mask_for_masked_fill(q, k, v, n_head):
    q, k, v = (split_heads(z, n_head) for z in (q, k, v))
    future = ~causal_mask(q.shape[-2])
    return merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=future))


_STEPS = (
    "the queries after the split, (B, n_head, T, head_size)",
    "the keys after the split",
    "the values after the split",
    "the scores, before the division, the mask and the softmax",
    "the scaled scores, before the mask and the softmax",
    "the masked, scaled scores, before the softmax",
    "the weights, not yet multiplied by the values",
    "the outputs of the heads, not yet merged",
    "the outputs of the heads with their axes in the right order, but not yet joined",
)


def _step(n):
    """A step on the way to the merged output, as a function of the arguments."""

    def step(q, k, v, n_head):
        q, k, v = (split_heads(z, n_head) for z in (q, k, v))
        scores = q @ k.mT
        scaled = scores / q.shape[-1] ** 0.5
        masked = scaled.masked_fill(~causal_mask(q.shape[-2]), float("-inf"))
        weights = torch.softmax(masked, dim=-1)
        out = weights @ v
        return (q, k, v, scores, scaled, masked, weights, out, out.transpose(1, 2))[n]

    return step


MANY_HEADS = Exercise(
    "06.2",
    many_heads,
    axes={"q": "B T C", "k": "B T C", "v": "B T C", "return": "B T C"},
    sizes={
        "n_head": lambda q, k, v, n_head: n_head,
        "head_size": lambda q, k, v, n_head: q.shape[-1] // n_head,
    },
    intermediates=tuple((name, _step(n)) for n, name in enumerate(_STEPS)),
    trained=True,
    cases=_qkv,
    accepted=(_by_slices,),
    known=dict.fromkeys([*EXERCISE_BUGS.values(), *EXERCISE_BUGS_OF_HEADS.values()]),
    reworded=_many_heads_again,
    words={"head_size**0.5": "q.shape[-1] ** 0.5"},
)


# ---------------------------------------------------------------- 06.3


def cut_qkv(fused):
    """(3 * C, C) -> three (C, C) weights: query, key, value."""
    return fused.chunk(3)


def _cut_by_view(fused):
    return fused.view(3, -1, fused.shape[-1])


def _cut_by_slices(fused):
    C = fused.shape[-1]
    return [fused[:C], fused[C : 2 * C], fused[2 * C :]]


def _query_scaled(fused):
    query, key, value = fused.chunk(3)
    return query / fused.shape[1] ** 0.5, key, value


CUT_QKV = Exercise(
    "06.3",
    cut_qkv,
    cases=lambda: [
        (torch.randn(18, 6, generator=torch.Generator().manual_seed(0)),),
        (torch.randn(9, 3, generator=torch.Generator().manual_seed(1)),),
    ],
    accepted=(_cut_by_view, _cut_by_slices),
    several=True,
    axes={"fused": "3C C", "return": "3 C C"},
    intermediates=(
        ("the query's weight three times", lambda fused: [fused.chunk(3)[0]] * 3),
        ("the right three weights, the query's divided by √C", _query_scaled),
    ),
)


EXERCISES = (SIDE_BY_SIDE_HEADS, MANY_HEADS, CUT_QKV)
