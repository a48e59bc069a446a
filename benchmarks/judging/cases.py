"""Attentions and blocks, right ones and wrong ones, in a form that every judge can call.

`THREADS` are rebuilt from what public threads say, in our words; `STANDARD` is a list of ours. The
names of layers and arguments are those that torch-judge asks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import MultiHeadAttention

C, N_HEAD = 32, 4


class Attention(nn.Module):
    """Multi-head attention whose steps are methods, so that a bug changes one of them."""

    def __init__(self, d_model: int = C, num_heads: int = N_HEAD, causal: bool = True) -> None:
        super().__init__()
        self.n_head, self.causal = num_heads, causal
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def split(self, z: Tensor) -> Tensor:
        return z.unflatten(-1, (self.n_head, -1)).transpose(1, 2)

    def roles(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return q, k, v

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.mT / math.sqrt(q.shape[-1])

    def future(self, scores: Tensor) -> Tensor:
        return torch.ones(scores.shape[-2:]).triu(1) == 1

    def masked(self, scores: Tensor) -> Tensor:
        return scores.masked_fill(self.future(scores), -math.inf)

    def normalised(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)

    def weights(self, scores: Tensor) -> Tensor:
        return self.normalised(self.masked(scores) if self.causal else scores)

    def merge(self, z: Tensor) -> Tensor:
        return z.transpose(1, 2).flatten(2)

    def project(self, z: Tensor) -> Tensor:
        return self.W_o(z)

    def forward(self, q: Tensor, k: Tensor | None = None, v: Tensor | None = None) -> Tensor:
        k, v = q if k is None else k, q if v is None else v
        heads = (self.split(f(z)) for f, z in ((self.W_q, q), (self.W_k, k), (self.W_v, v)))
        q, k, v = self.roles(*heads)
        return self.project(self.merge(self.weights(self.scores(q, k)) @ v))


class Block(nn.Module):
    """A pre-norm block; a bug changes how it is put together."""

    def __init__(self, d_model: int = C, num_heads: int = N_HEAD) -> None:
        super().__init__()
        self.attn = Attention(d_model, num_heads)
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        wide = 4 * d_model
        self.mlp = nn.Sequential(nn.Linear(d_model, wide), nn.GELU(), nn.Linear(wide, d_model))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Case(NamedTuple):
    """One module that a judge is given."""

    told: str  # the bug, or the form of a right one
    words: str  # any of these in what a judge says names the bug
    make: Callable[..., nn.Module]  # a class, called with (d_model, num_heads), or with nothing
    causal: bool = True
    thread: str = ""  # where it was reported, on github.com


def attention(told: str, words: str, causal: bool = True, thread: str = "", **methods: Any) -> Case:
    """An attention with other methods."""
    methods["__init__"] = lambda self, d_model=C, num_heads=N_HEAD, causal=causal: (
        Attention.__init__(self, d_model, num_heads, causal)
    )
    return Case(told, words, type("Changed", (Attention,), methods), causal, thread)


def block(told: str, words: str, forward: Callable, thread: str = "") -> Case:
    """A block that is put together in another way."""
    return Case(told, words, type("ChangedBlock", (Block,), {"forward": forward}), True, thread)


def two_steps(first: Callable, second: Callable) -> Callable:
    return lambda self, x: second(self, first(self, x))


FIRST, SECOND = (
    lambda b, x: x + b.attn(b.ln1(x)),
    lambda b, x: x + b.mlp(b.ln2(x)),
)


def no_scale(self: Any, q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT


def no_mask(self: Any, scores: Tensor) -> Tensor:
    return scores


def merged_by_view(self: Any, z: Tensor) -> Tensor:
    return z.reshape(z.shape[0], z.shape[2], -1)


def split_by_view(self: Any, z: Tensor) -> Tensor:
    return z.reshape(z.shape[0], self.n_head, z.shape[1], -1)


def of_another_width(self: Any, q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT / math.sqrt(q.shape[-1] * self.n_head)


def mixed_rows(self: Any, z: Tensor) -> Tensor:
    B, H, T, d = z.shape
    return z.reshape(H, B, T, d).permute(1, 2, 0, 3).flatten(2)


def over_heads_and_keys(self: Any, scores: Tensor) -> Tensor:
    joint = scores.permute(0, 2, 1, 3)  # (B, T, n_head, T)
    return joint.flatten(2).softmax(-1).view_as(joint).permute(0, 2, 1, 3)


def repeated_along_tokens(self: Any, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    return q, *(z.repeat_interleave(2, dim=-2)[..., : z.shape[-2], :] for z in (k, v))


SCALE, MASK = "scale √ sqrt", "mask causal future leak triangle"
VIEW, RESIDUAL, NORM = "view reshape transpose", "residual sum", "norm"
THREADS = [
    attention(
        "no scale", SCALE, scores=no_scale, thread="delzac/cntkx/issues/10", causal=False
    ),
    attention(
        "no scale, in a text on the cache", SCALE, scores=no_scale,
        thread="huggingface/blog/pull/2893",
    ),
    attention(
        "no scale, and the projection is not returned", "scale √ sqrt projection proj",
        scores=no_scale, project=lambda self, z: z, causal=False,
        thread="ethen8181/machine-learning/issues/13",
    ),
    attention(
        "divided by √C", SCALE, scores=of_another_width,
        thread="FareedKhan-dev/train-llm-from-scratch/pull/3",
    ),
    attention(
        "a fixed scale of 0.5", SCALE, scores=lambda self, q, k: q @ k.mT * 0.5, causal=False,
        thread="BobMcDear/attorch/issues/14",
    ),
    attention(
        "every head is head 0", "head", causal=False, thread="BobMcDear/attorch/issues/14",
        roles=lambda self, *qkv: tuple(z[:, :1].expand_as(z) for z in qkv),
    ),
    attention(
        "scaled after the softmax", SCALE, causal=False,
        scores=no_scale, normalised=lambda self, s: s.softmax(-1) / math.sqrt(C),
        thread="FrancescoSaverioZuppichini/ViT/issues/2",
    ),
    attention(
        "softmax over heads and keys", "softmax", causal=False, normalised=over_heads_and_keys,
        thread="facebookresearch/detr/issues/247",
    ),
    attention(
        "heads split by view", VIEW, split=split_by_view, causal=False,
        thread="reczoo/FuxiCTR/issues/30",
    ),
    attention(
        "heads merged by view", VIEW, merge=merged_by_view,
        thread="jsbaan/transformer-from-scratch/pull/6",
    ),
    attention(
        "heads merged by view, without a mask", VIEW, merge=merged_by_view, causal=False,
        thread="649453932/Chinese-Text-Classification-Pytorch/issues/10",
    ),
    attention(
        "batch and heads mixed by the merge", "batch", merge=mixed_rows, causal=False,
        thread="gazelle93/Transformer-Various-Positional-Encoding/issues/1",
    ),
    attention(
        "keys and values repeated along the tokens", "repeat token", roles=repeated_along_tokens,
        thread="PrimeIntellect-ai/prime-rl/pull/2681",
    ),
    attention(
        "the causal mask skipped", MASK, masked=no_mask,
        thread="facebookresearch/xformers/issues/103",
    ),
    attention(
        "a causal mask made for one token", MASK,
        future=lambda self, s: torch.ones(1, 1).triu(1) == 1,
        thread="facebookresearch/xformers/issues/1135",
    ),
    attention(
        "the future filled with −e", MASK, thread="hyunwoongko/transformer/issues/10",
        masked=lambda self, s: s.masked_fill(self.future(s), -math.e),
    ),
    block(
        "x + x in place of the residual", RESIDUAL,
        two_steps(lambda b, x: 2 * b.attn(b.ln1(x)), SECOND), "kyegomez/BitNet/issues/32",
    ),
    block(
        "norm on the residual stream", "norm residual",
        two_steps(lambda b, x: (z := b.ln1(x)) + b.attn(z), SECOND),
        "Howuhh/faster-trajectory-transformer/issues/3",
    ),
    block(
        "one norm for both", NORM, two_steps(FIRST, lambda b, x: x + b.mlp(b.ln1(x))),
        "allenai/OLMo/issues/222",
    ),
    block(
        "one norm for both, after the branches", NORM,
        lambda b, x: b.ln1((y := b.ln1(x + b.attn(x))) + b.mlp(y)), "ml-explore/mlx/issues/1636",
    ),
    block(
        "norms that are never called", NORM,
        lambda b, x: (y := x + b.attn(x)) + b.mlp(y), "agentdr1/LA_MIL/issues/3",
    ),
    block(
        "the second residual from the block's input", RESIDUAL,
        lambda b, x: b.ln2(x + b.mlp(b.ln1(x + b.attn(x)))),
        "strutive07/transformer-tensorflow2.0/issues/14",
    ),
]  # fmt: skip


def hidden(diagonal: int, fill: float = -math.inf) -> Callable:
    return lambda self, s: s.masked_fill(torch.ones(s.shape[-2:]).triu(diagonal) == 1, fill)


STANDARD = [
    attention("no scale", SCALE, scores=no_scale),
    attention("divided by √C", SCALE, scores=of_another_width),
    attention(
        "divided by head_size", SCALE, scores=lambda self, q, k: q @ k.mT / q.shape[-1]
    ),
    attention("no mask", MASK, masked=no_mask),
    attention("mask one too far", MASK, masked=hidden(2)),
    attention("diagonal masked with -1e9", "mask diagonal", masked=hidden(0, -1e9)),
    attention("future filled with 0", MASK, masked=hidden(1, 0.0)),
    attention(
        "masked after the softmax", MASK, weights=lambda self, s: s.softmax(-1).tril()
    ),
    attention(
        "mask upside down", MASK,
        masked=lambda self, s: s.masked_fill(torch.ones(s.shape[-2:]).tril(-1) == 1, -math.inf),
    ),
    attention("softmax over the queries", "softmax", normalised=lambda self, s: s.softmax(-2)),
    attention(
        "softmax over the heads", "softmax",
        weights=lambda self, s: hidden(1, -1e9)(self, s).softmax(1),
    ),
    attention(
        "softmax over the batch", "softmax batch",
        weights=lambda self, s: hidden(1, -1e9)(self, s).softmax(0),
    ),
    attention("no softmax", "softmax", weights=lambda self, s: s.tril()),
    attention("keys used as values", "key value", roles=lambda self, q, k, v: (q, k, k)),
    attention("values used as keys", "key value", roles=lambda self, q, k, v: (q, v, v)),
    attention("queries and keys swapped", "quer key", roles=lambda self, q, k, v: (k, q, v)),
    attention("heads split by view", VIEW, split=split_by_view),
    attention("heads merged by view", VIEW, merge=merged_by_view),
    attention(
        "channels interleaved by the merge", "interleave",
        merge=lambda self, z: z.permute(0, 2, 3, 1).flatten(2),
    ),
    attention(
        "one large head", "head", split=lambda self, z: z[:, None], merge=lambda self, z: z[:, 0]
    ),
    attention(
        "dropout that is never off", "dropout",
        normalised=lambda self, s: F.dropout(s.softmax(-1), 0.2),
    ),
    attention("no projection", "proj", project=lambda self, z: z),
    block("no residual connections", RESIDUAL, lambda b, x: b.mlp(b.ln2(b.attn(b.ln1(x))))),
    block(
        "no residual around the feed-forward", RESIDUAL,
        two_steps(FIRST, lambda b, x: b.mlp(b.ln2(x))),
    ),
    block("norms swapped", NORM, lambda b, x: (y := x + b.attn(b.ln2(x))) + b.mlp(b.ln1(y))),
    block("no feed-forward", "feed mlp", FIRST),
]  # fmt: skip


class Fused(Attention):
    """One layer for queries, keys and values, and PyTorch's own attention."""

    def __init__(self, d_model: int = C, num_heads: int = N_HEAD) -> None:
        super().__init__(d_model, num_heads)
        del self.W_q, self.W_k, self.W_v
        self.c_attn = nn.Linear(d_model, 3 * d_model)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.split(z) for z in self.c_attn(x).chunk(3, dim=-1))
        return self.W_o(self.merge(F.scaled_dot_product_attention(q, k, v, is_causal=True)))


class OneHead(nn.Module):
    """A single head, as lectures write it."""

    def __init__(self) -> None:
        super().__init__()
        self.n_head = 1
        self.key, self.query, self.value = (nn.Linear(C, 8, bias=False) for _ in range(3))
        self.register_buffer("tril", torch.ones(64, 64).tril())

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        scores = self.query(x) @ self.key(x).mT * 8**-0.5
        return scores.masked_fill(self.tril[:T, :T] == 0, -math.inf).softmax(-1) @ self.value(x)


class Einsum(nn.Module):
    """A matrix for each head and role, as in interpretability."""

    def __init__(self) -> None:
        super().__init__()
        self.W_Q, self.W_K, self.W_V = (
            nn.Parameter(torch.randn(N_HEAD, C, C // N_HEAD) / C**0.5) for _ in range(3)
        )
        self.W_O = nn.Parameter(torch.randn(N_HEAD, C // N_HEAD, C) / C**0.5)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (torch.einsum("btc,hcd->bhtd", x, w) for w in (self.W_Q, self.W_K, self.W_V))
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(C // N_HEAD)
        future = torch.ones(scores.shape[-2:]).triu(1) == 1
        z = scores.masked_fill(future, -1e9).softmax(-1) @ v
        return torch.einsum("bhtd,hdc->btc", z, self.W_O)


class Grouped(Attention):
    """Two heads of keys and values for the four of queries."""

    def __init__(self, d_model: int = C, num_heads: int = N_HEAD) -> None:
        super().__init__(d_model, num_heads)
        self.W_k, self.W_v = nn.Linear(d_model, d_model // 2), nn.Linear(d_model, d_model // 2)

    def forward(self, x: Tensor) -> Tensor:
        q = self.split(self.W_q(x))
        k, v = (
            f(x).unflatten(-1, (-1, q.shape[-1])).transpose(1, 2).repeat_interleave(2, dim=1)
            for f in (self.W_k, self.W_v)
        )
        return self.W_o(self.merge(self.weights(self.scores(q, k)) @ v))


RIGHT = [
    attention("attention", ""),
    attention("attention without a mask", "", causal=False),
    block("a pre-norm block", "", Block.forward),
    block("a post-norm block", "", lambda b, x: b.ln2((y := b.ln1(x + b.attn(x))) + b.mlp(y))),
    Case("fused, with PyTorch's attention", "", Fused),
    Case("one head", "", OneHead),
    Case("einsums", "", Einsum),
    Case("grouped queries", "", Grouped),
    Case("the attention of notebook 06", "", lambda: MultiHeadAttention(C, N_HEAD)),
    Case(
        "PyTorch's encoder layer", "",
        lambda: nn.TransformerEncoderLayer(C, N_HEAD, 4 * C, batch_first=True), causal=False,
    ),
]  # fmt: skip
