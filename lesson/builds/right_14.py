# ruff: noqa: D102 (a class says what its forward does)
"""Right answers to the builds of notebook 14: the parts of 07 and 08, now with a cache."""

import torch
from torch import nn

from lesson.builds.right import FeedForward
from lesson.builds.right_08 import turn


class MultiHeadAttention(nn.Module):
    """(B, T, C) -> (B, T, C); with a cache, x are the tokens behind those that it has read."""

    def __init__(self, C, n_head, base=10_000):
        super().__init__()
        self.n_head, self.head_size = n_head, C // n_head
        self.query = nn.Linear(C, C, bias=False)
        self.key = nn.Linear(C, C, bias=False)
        self.value = nn.Linear(C, C, bias=False)
        self.proj = nn.Linear(C, C)
        self.speeds = base ** (-torch.arange(0, self.head_size, 2) / self.head_size)

    def split(self, z):
        return z.unflatten(2, (self.n_head, self.head_size)).transpose(1, 2)

    def forward(self, x, cache=None):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        T = x.shape[1]
        T_old = cache["k"].shape[2] if cache else 0
        angles = torch.arange(T_old, T_old + T)[:, None] * self.speeds  # (T, head_size / 2)
        q, k = turn(q, angles), turn(k, angles)
        if T_old:
            k, v = torch.cat([cache["k"], k], dim=2), torch.cat([cache["v"], v], dim=2)
        if cache is not None:
            cache["k"], cache["v"] = k, v
        scores = q @ k.mT / self.head_size**0.5  # (B, n_head, T, T_old + T)
        past = torch.ones(T, T_old + T, dtype=torch.bool).tril(T_old)
        weights = torch.softmax(scores.masked_fill(~past, float("-inf")), dim=-1)
        return self.proj((weights @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """(B, T, C) -> (B, T, C): x + attention(norm(x)), then x + feed_forward(norm(x))."""

    def __init__(self, C, n_head):
        super().__init__()
        self.attention = MultiHeadAttention(C, n_head)
        self.feed_forward = FeedForward(C)
        self.norm_1 = nn.LayerNorm(C)
        self.norm_2 = nn.LayerNorm(C)

    def forward(self, x, cache=None):
        x = x + self.attention(self.norm_1(x), cache=cache)
        return x + self.feed_forward(self.norm_2(x))


class TinyGPT(nn.Module):
    """(B, T) ids -> (B, T, vocab_size) logits; with a cache, ids are those behind the read ones."""

    def __init__(self, vocab_size, context_length, C=64, n_head=4, n_layer=2):
        super().__init__()
        self.context_length = context_length
        self.embedding = nn.Embedding(vocab_size, C)
        self.blocks = nn.ModuleList(Block(C, n_head) for _ in range(n_layer))
        self.norm = nn.LayerNorm(C)
        self.to_logits = nn.Linear(C, vocab_size)

    def forward(self, ids, cache=None):
        x = self.embedding(ids)  # (B, T, C)
        for i, block in enumerate(self.blocks):
            x = block(x, cache=None if cache is None else cache.setdefault(i, {}))
        return self.to_logits(self.norm(x))


@torch.no_grad()
def generate(model, ids, n, temperature=1.0, cached=False):
    """Texts (B, T) -> (B, T + n); if cached, each letter is read once."""
    cache, new = {}, ids
    for _ in range(n):
        window = ids[:, -model.context_length :]
        if ids.shape[1] > model.context_length:
            cache, new = {}, window  # a letter is left out, so all are read again
        logits = model(new, cache=cache) if cached else model(window)
        weights = torch.softmax(logits[:, -1] / temperature, dim=-1)
        new = torch.multinomial(weights, 1)
        ids = torch.cat([ids, new], dim=1)
    return ids
