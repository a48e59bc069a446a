# ruff: noqa: D102 (a class says what its forward does)
"""Right answers to the builds, which the mistakes of `builds.md` change."""

import torch
import torch.nn.functional as F
from torch import nn


class Head(nn.Module):
    """(B, T, C) -> (B, T, head_size): causal self-attention, scores divided by √head_size."""

    def __init__(self, C, head_size):
        super().__init__()
        self.query = nn.Linear(C, head_size, bias=False)
        self.key = nn.Linear(C, head_size, bias=False)
        self.value = nn.Linear(C, head_size, bias=False)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)  # (B, T, head_size)
        T = x.shape[1]
        scores = q @ k.mT / q.shape[-1] ** 0.5  # (B, T, T)
        past = torch.ones(T, T, dtype=torch.bool).tril()
        weights = torch.softmax(scores.masked_fill(~past, float("-inf")), dim=-1)
        return weights @ v


class MultiHeadAttention(nn.Module):
    """(B, T, C) -> (B, T, C): n_head heads of C / n_head channels, and an output projection."""

    def __init__(self, C, n_head):
        super().__init__()
        self.n_head, self.head_size = n_head, C // n_head
        self.query = nn.Linear(C, C, bias=False)
        self.key = nn.Linear(C, C, bias=False)
        self.value = nn.Linear(C, C, bias=False)
        self.proj = nn.Linear(C, C)

    def split(self, z):
        return z.unflatten(2, (self.n_head, self.head_size)).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        T = x.shape[1]
        scores = q @ k.mT / self.head_size**0.5  # (B, n_head, T, T)
        past = torch.ones(T, T, dtype=torch.bool).tril()
        weights = torch.softmax(scores.masked_fill(~past, float("-inf")), dim=-1)
        return self.proj((weights @ v).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """(..., C) -> (..., C): to 4 * C channels, ReLU, and back, for each token alone."""

    def __init__(self, C):
        super().__init__()
        self.wide = nn.Linear(C, 4 * C)
        self.proj = nn.Linear(4 * C, C)

    def forward(self, x):
        return self.proj(torch.relu(self.wide(x)))


class Block(nn.Module):
    """(B, T, C) -> (B, T, C): x + attention(norm(x)), then x + feed_forward(norm(x))."""

    def __init__(self, C, n_head):
        super().__init__()
        self.attention = MultiHeadAttention(C, n_head)
        self.feed_forward = FeedForward(C)
        self.norm_1 = nn.LayerNorm(C)
        self.norm_2 = nn.LayerNorm(C)

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.feed_forward(self.norm_2(x))


class TinyGPT(nn.Module):
    """(B, T) ids -> (B, T, vocab_size) logits of the letter after each of them."""

    def __init__(self, vocab_size, context_length, C=64, n_head=4, n_layer=2):
        super().__init__()
        self.context_length = context_length
        self.embedding = nn.Embedding(vocab_size, C)
        self.blocks = nn.ModuleList(Block(C, n_head) for _ in range(n_layer))
        self.norm = nn.LayerNorm(C)
        self.to_logits = nn.Linear(C, vocab_size)

    def forward(self, ids):
        x = self.embedding(ids)  # (B, T, C)
        for block in self.blocks:
            x = block(x)
        return self.to_logits(self.norm(x))


def train(model, draw_windows, steps, lr=5e-3):
    """Train in place with AdamW; return the loss of each step, as numbers.

    draw_windows() gives ids (B, T + 1): the model reads the first T, and each next one is its
    target.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    losses = []
    for _ in range(steps):
        windows = draw_windows()  # (B, T + 1)
        logits = model(windows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
