"""Attentions and blocks as people write them, right and with a known bug, for `diagnose`."""

import pytest
import torch
from torch import nn

from attention_clinic.bugs import BY_NAME, with_bugs
from helpers.attention import Block, Head, causal_mask

C, N_HEAD = 12, 3
INF = float("inf")


def spread(cases, every):
    """Of many cases one in `every` by default, all of them when `slow` ones run too."""
    return [
        case if i % every == 0 else pytest.param(*case, marks=pytest.mark.slow)
        for i, case in enumerate(cases)
    ]


def tril(scores):
    return torch.tril(torch.ones(scores.shape[-2:]))


class Written(nn.Module):
    """Attention by somebody else; `wrong` are methods in which they went wrong."""

    def __init__(self, n_head=N_HEAD, head_size=C // N_HEAD, **wrong):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(C, n_head * head_size) for _ in range(3))
        self.out = nn.Linear(n_head * head_size, C)
        self.heads = n_head
        for name, function in wrong.items():
            setattr(self, name, function)

    def split(self, z):
        B, T, _ = z.shape
        return z.view(B, T, self.heads, -1).transpose(1, 2)

    def values(self, x):
        return self.value(x)

    def roles(self, x, q, k, v):
        return q, k, v

    def scores(self, q, k):
        return q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5

    def weigh(self, scores):
        return scores.masked_fill(tril(scores) == 0, -INF).softmax(dim=-1)

    def mix(self, weights, q, k, v):
        return weights @ v

    def merge(self, out):
        B, _, T, _ = out.shape
        return out.transpose(1, 2).contiguous().view(B, T, -1)

    def forward(self, x):
        q, k, v = (self.split(z) for z in (self.query(x), self.key(x), self.values(x)))
        q, k, v = self.roles(self.split(x), q, k, v)
        weights = self.weigh(self.scores(q, k))
        return self.out(self.merge(self.mix(weights, q, k, v)))


def masked(scores, fill=-INF, diagonal=0):
    return scores.masked_fill(torch.tril(torch.ones_like(scores), diagonal) == 0, fill)


def renormalised(scores):
    weights = scores.softmax(-1) * tril(scores)
    return weights / weights.sum(-1, keepdim=True)


def view_split(z):
    B, T, _ = z.shape
    return z.view(B, N_HEAD, T, -1)


def view_merge(out):
    B, _, T, _ = out.shape
    return out.contiguous().view(B, T, -1)


def interleaved_split(z):
    B, T, _ = z.shape
    return z.view(B, T, -1, N_HEAD).permute(0, 3, 1, 2)


def swapped_split(z):
    B, T, _ = z.shape
    return z.view(B, T, C // N_HEAD, N_HEAD).transpose(1, 2)


# The name of a bug, and which methods of `Written` have it.
BROKEN = {
    "softmax over the queries": {"weigh": lambda s: masked(s).softmax(-2)},
    "softmax over the heads": {"weigh": lambda s: masked(s).softmax(1)},
    "softmax over the heads, masked with -1e9": {"weigh": lambda s: masked(s, -1e9).softmax(1)},
    "scores thrown away": {"weigh": lambda s: masked(torch.zeros_like(s)).softmax(-1)},
    "softmax before and after the mask": {"weigh": lambda s: masked(s.softmax(-1)).softmax(-1)},
    "masked after the softmax": {"weigh": lambda s: s.softmax(-1) * tril(s)},
    "future filled with 0": {"weigh": lambda s: (s * tril(s)).softmax(-1)},
    "diagonal masked too": {"weigh": lambda s: masked(s, diagonal=-1).softmax(-1)},
    "0 times infinity": {"weigh": lambda s: (s + (1 - tril(s)) * -INF).softmax(-1)},
    "diagonal masked with -1e9": {"weigh": lambda s: masked(s, -1e9, -1).softmax(-1)},
    "no mask": {"weigh": lambda s: s.softmax(-1)},
    "upper triangle kept": {"weigh": lambda s: s.masked_fill(tril(s).T == 0, -INF).softmax(-1)},
    "mask not inverted": {"weigh": lambda s: s.masked_fill(tril(s) == 1, -INF).softmax(-1)},
    "mask one too far": {"weigh": lambda s: masked(s, diagonal=1).softmax(-1)},
    "no scale": {"scores": lambda q, k: q @ k.mT},
    "divided by √C": {"scores": lambda q, k: q @ k.mT / C**0.5},
    "divided by √T": {"scores": lambda q, k: q @ k.mT / q.shape[-2] ** 0.5},
    "divided by head_size, not √head_size": {"scores": lambda q, k: q @ k.mT / q.shape[-1]},
    "multiplied by √head_size": {"scores": lambda q, k: q @ k.mT / q.shape[-1] ** -0.5},
    "queries and keys swapped": {"scores": lambda q, k: k @ q.mT / q.shape[-1] ** 0.5},
    "no softmax, masked with -1e9": {"weigh": lambda s: masked(s, -1e9)},
    "keys used as values": {"mix": lambda w, q, k, v: w @ k},
    "queries used as values": {"mix": lambda w, q, k, v: w @ q},
    "values used as queries": {"roles": lambda x, q, k, v: (v, k, v)},
    "values used as keys": {"roles": lambda x, q, k, v: (q, v, v)},
    "x used as keys": {"roles": lambda x, q, k, v: (q, x, v)},
    "weights summed without the values": {"mix": lambda w, q, k, v: w.sum(-1, keepdim=True) * v},
    "x used as values": {"values": lambda x: x},
    "weights transposed": {"mix": lambda w, q, k, v: w.mT @ v},
    "dropout left on": {
        "weigh": lambda s: nn.functional.dropout(masked(s).softmax(-1), 0.2),
    },
    "split by view, without transpose": {"split": view_split},
    "merged by view, without transpose": {"merge": view_merge},
    "n_head and head_size swapped": {"split": swapped_split},
    "n_head and head_size swapped, but divided by √head_size": {
        "split": swapped_split,
        "scores": lambda q, k: q @ k.mT / (C // N_HEAD) ** 0.5,
    },
    "split and merged by view": {"split": view_split, "merge": view_merge},
    "channels interleaved by the split": {"split": interleaved_split},
    "channels interleaved by the merge": {"merge": lambda out: out.permute(0, 2, 3, 1).flatten(2)},
    "one large head": {"split": lambda z: z[:, None], "merge": lambda out: out[:, 0]},
}


class BrokenAttention(nn.Module):
    """Multi-head attention with a known bug of the page, or with none (None)."""

    def __init__(self, bug, C, n_head=1, causal=True):
        super().__init__()
        self.n_head = n_head
        self.compute = with_bugs(*([BY_NAME[bug]] if bug else []), causal=causal)
        self.query, self.key, self.value = (nn.Linear(C, C, bias=False) for _ in range(3))
        self.proj = nn.Linear(C, C)

    def forward(self, x, *, return_weights=False):
        qkv = (self.query(x), self.key(x), self.value(x))
        out, weights = self.compute(*qkv, x, self.n_head)
        return (self.proj(out), weights) if return_weights else self.proj(out)


def list_of_heads():
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleList(Head(C, C // N_HEAD) for _ in range(N_HEAD))
            self.proj = nn.Linear(C, C)

        def forward(self, x):
            return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))

    return Heads()


def zero_projections(module, *names):
    for name, parameter in module.named_parameters():
        if name.endswith(names):
            nn.init.zeros_(parameter)
    return module


class Fused(nn.Module):
    """One Linear layer for queries, keys and values, and PyTorch's function."""

    def __init__(self, causal=True):
        super().__init__()
        self.qkv, self.causal = nn.Linear(C, 3 * C), causal

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)


class Wrapped(nn.Module):
    """PyTorch's attention, made without batch_first=True."""

    def __init__(self, masked):
        super().__init__()
        self.inner, self.masked = nn.MultiheadAttention(C, N_HEAD), masked

    def forward(self, x):
        mask = ~causal_mask(x.shape[1]) if self.masked else None
        return self.inner(x, x, x, attn_mask=mask)[0]


def rewired(put_together, norm="pre"):
    """A block whose author wrote another forward."""

    class Theirs(Block):
        def forward(self, x):
            return put_together(self, x)

    return Theirs(C, N_HEAD, norm)


def pre_norm(b, x):
    x = x + b.attention(b.norm_1(x))
    return x + b.feed_forward(b.norm_2(x))


def no_residual_post(b, x):
    x = b.norm_1(b.attention(x))
    return b.norm_2(b.feed_forward(x))


def no_first_residual(b, x):
    x = b.attention(b.norm_1(x))
    return x + b.feed_forward(b.norm_2(x))


def no_second_residual(b, x):
    x = x + b.attention(b.norm_1(x))
    return b.feed_forward(b.norm_2(x))


def norm_2_twice(b, x):
    x = b.norm_2(x + b.attention(x))
    return b.norm_2(x + b.feed_forward(x))


def norms_swapped(b, x):
    x = x + b.attention(b.norm_2(x))
    return x + b.feed_forward(b.norm_1(x))


def no_norms(b, x):
    x = x + b.attention(x)
    return x + b.feed_forward(x)


def no_norm_2(b, x):
    x = x + b.attention(b.norm_1(x))
    return x + b.feed_forward(x)


def norm_on_the_stream(b, x):
    x = b.norm_1(x)
    x = x + b.attention(x)
    x = b.norm_2(x)
    return x + b.feed_forward(x)


def norm_after_branch(b, x):
    x = x + b.norm_1(b.attention(x))
    return x + b.norm_2(b.feed_forward(x))


def feed_forward_first(b, x):
    x = x + b.feed_forward(b.norm_2(x))
    return x + b.attention(b.norm_1(x))


BROKEN_BLOCKS = {
    "no residual connections": lambda b, x: b.feed_forward(b.norm_2(b.attention(b.norm_1(x)))),
    "no residual connections, post": no_residual_post,
    "no residual connection around the attention": no_first_residual,
    "no residual connection around the feed-forward": no_second_residual,
    "one norm for both": lambda b, x: (
        (x := x + b.attention(b.norm_1(x))) + b.feed_forward(b.norm_1(x))
    ),
    "one norm for both, post": norm_2_twice,
    "norms swapped": norms_swapped,
    "no norms": no_norms,
    "no norm for the attention": lambda b, x: (
        (x := x + b.attention(x)) + b.feed_forward(b.norm_2(x))
    ),
    "no norm for the feed-forward": no_norm_2,
    "norm on the residual stream": norm_on_the_stream,
    "norm after the branch": norm_after_branch,
    "norm after the feed-forward": lambda b, x: (
        (x := x + b.attention(b.norm_1(x))) + b.norm_2(b.feed_forward(x))
    ),
    "no attention": lambda b, x: x + b.feed_forward(b.norm_2(x)),
    "no feed-forward": lambda b, x: x + b.attention(b.norm_1(x)),
    "feed-forward before attention": feed_forward_first,
    "parallel block (Wang and Komatsuzaki 2021)": lambda b, x: (
        x + b.attention(b.norm_1(x)) + b.feed_forward(b.norm_2(x))
    ),
}
