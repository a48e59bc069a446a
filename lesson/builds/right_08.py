# ruff: noqa: D102 (a class says what its forward does)
"""Right answers to the builds of notebook 08."""

import torch
from torch import nn


def turn(x, angles):
    """Turn the pairs of channels of x (..., T, d) by angles (T, d / 2): (..., T, d)."""
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


class MultiHeadAttention(nn.Module):
    """(B, T, C) -> (B, T, C): n_head heads, whose queries and keys are turned by position."""

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

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        T = x.shape[1]
        angles = torch.arange(T)[:, None] * self.speeds  # (T, head_size / 2)
        q, k = turn(q, angles), turn(k, angles)
        scores = q @ k.mT / self.head_size**0.5  # (B, n_head, T, T)
        past = torch.ones(T, T, dtype=torch.bool).tril()
        weights = torch.softmax(scores.masked_fill(~past, float("-inf")), dim=-1)
        return self.proj((weights @ v).transpose(1, 2).flatten(2))
