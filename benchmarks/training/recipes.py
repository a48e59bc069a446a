"""The classic recipe for a character GPT on a CPU, ours, and the steps between the two.

The classic one is that of nanoGPT (A. Karpathy, 2022, https://github.com/karpathy/nanoGPT): what
its README gives for a CPU, with the settings of config/train_shakespeare_char.py. It is written
anew here. Two things are faster than there, for all recipes alike: AdamW is fused, and attention is
an explicit masked softmax, whose backward pass takes less time than that of
``F.scaled_dot_product_attention`` on a CPU when windows are as short as 64.

Sources: Muon is from K. Jordan et al. (2024), https://kellerjordan.github.io/posts/muon/; a
projection that begins at 0 from Zhang et al. (2019), "Fixup Initialization",
https://arxiv.org/abs/1901.09321; embeddings of several letters from Bojanowski et al. (2017),
"Enriching Word Vectors with Subword Information", https://arxiv.org/abs/1607.04606.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.training import Corpus

T = 64  # letters of a window
WARMUP = 100  # steps of the classic schedule
ROWS = 2**14  # embeddings of three letters; those of several triples may be the same
OTHERS, TABLES = 0.03, 0.03  # learning rates of AdamW beside Muon
MULTIPLIER, PRIME = 2_654_435_761, 2**31 - 1  # which row a triple gets


@dataclass(frozen=True)
class Recipe:
    """How a model is made and trained; the defaults are the classic recipe.

    Parameters
    ----------
    learning_rate
        Of AdamW, or with muon of Muon.
    n_step, B, C, n_layer, n_head
        As for `helpers.gpt.TinyGPT`, and when a number is not what it must be.
    rotary
        Whether positions are rotary. If not, a learned vector for each position is added.
    muon
        Whether the matrices of the blocks are trained by Muon. With it come projections and logits
        that begin at 0, a learning rate that falls to 0 in a straight line, and learning rates
        that fit each kind of parameter.
    several
        Channels of an embedding of the last two letters, and of one of the last three, which are
        added to that of the letter; 0 for none.
    """

    learning_rate: float = 1e-3
    n_step: int = 2000
    B: int = 12
    C: int = 128
    n_layer: int = 4
    n_head: int = 4
    rotary: bool = False
    muon: bool = False
    several: int = 0


class Attention(nn.Module):
    """Causal multi-head attention in one batched matmul."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        C, self.n_head = recipe.C, recipe.n_head
        self.query_key_value = nn.Linear(C, 3 * C, bias=False)
        self.proj = nn.Linear(C, C, bias=False)
        self.register_buffer("future", torch.full((T, T), -math.inf).triu(1))
        self.register_buffer("angles", rotary_angles(C // self.n_head) if recipe.rotary else None)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        B, _, C = x.shape
        heads = self.query_key_value(x).view(B, T, 3 * self.n_head, -1).transpose(1, 2)
        q, k, v = heads.chunk(3, dim=1)  # (B, n_head, T, head_size)
        if self.angles is not None:
            q, k = turn(q, self.angles), turn(k, self.angles)
        scores = q @ k.mT / math.sqrt(C // self.n_head)
        weights = torch.softmax(scores + self.future, dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(B, T, C))


def rotary_angles(head_size: int, base: float = 1000.0) -> Tensor:
    """Cosines and sines, (2, T, head_size / 2)."""
    angles = torch.arange(T)[:, None] * base ** (-torch.arange(0, head_size, 2) / head_size)
    return torch.stack([angles.cos(), angles.sin()])


def turn(x: Tensor, angles: Tensor) -> Tensor:
    """As `helpers.positions.rotary`, but channel i is paired with i + head_size / 2."""
    (a, b), (cos, sin) = x.chunk(2, dim=-1), angles
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class Block(nn.Module):
    """A pre-norm block with GELU."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        C = recipe.C
        self.attention = Attention(recipe)
        self.wide, self.narrow = nn.Linear(C, 4 * C, bias=False), nn.Linear(4 * C, C, bias=False)
        self.norm_1, self.norm_2 = nn.LayerNorm(C, bias=False), nn.LayerNorm(C, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        x = x + self.attention(self.norm_1(x))
        return x + self.narrow(F.gelu(self.wide(self.norm_2(x))))


class GPT(nn.Module):
    """Ids (B, T) -> logits (B, T, V), by a recipe."""

    def __init__(self, V: int, recipe: Recipe) -> None:
        super().__init__()
        C, self.V = recipe.C, V
        self.embedding = nn.Embedding(V, C)
        self.positions = None if recipe.rotary else nn.Embedding(T, C)
        self.blocks = nn.ModuleList(Block(recipe) for _ in range(recipe.n_layer))
        self.norm, self.to_logits = nn.LayerNorm(C, bias=False), nn.Linear(C, V, bias=False)
        self.several = None
        if recipe.several:
            self.several = nn.ModuleList(
                nn.Sequential(
                    nn.Embedding(rows, recipe.several), nn.Linear(recipe.several, C, bias=False)
                )
                for rows in (V * V, ROWS)
            )
        self._initialise(recipe)

    @torch.no_grad()
    def _initialise(self, recipe: Recipe) -> None:
        for weight in self.parameters():
            if weight.dim() == 2:
                classic = not recipe.muon or weight.shape[0] == self.V
                weight.normal_(0, 0.02 if classic else weight.shape[1] ** -0.5)
        for block in self.blocks:
            for weight in (block.attention.proj.weight, block.narrow.weight):
                weight.normal_(0, 0.0 if recipe.muon else 0.02 / math.sqrt(2 * recipe.n_layer))
        if recipe.muon:
            self.embedding.weight.normal_()
            self.to_logits.weight.zero_()
        else:
            self.to_logits.weight = self.embedding.weight
        for table, _ in self.several or ():
            table.weight.zero_()

    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) -> (B, T, V)."""
        x = self.embedding(ids)
        if self.positions is not None:
            x = x + self.positions.weight
        if self.several is not None:
            before, second = F.pad(ids, (1, -1)), F.pad(ids, (2, -2))
            pairs = before * self.V + ids
            triples = (second * self.V * self.V + pairs) * MULTIPLIER % PRIME % ROWS
            x = x + self.several[0](pairs) + self.several[1](triples)
        for block in self.blocks:
            x = block(x)
        return self.to_logits(self.norm(x))


class Muon(torch.optim.Optimizer):
    """`torch.optim.Muon` without weight decay, whose products are in float32.

    There they are in bfloat16, which is slow on a CPU without instructions for it: in a model as
    small as ours, they would take most of the time.
    """

    def __init__(self, matrices: list[Tensor], lr: float, momentum: float) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self) -> None:
        """One update, with Nesterov's momentum."""
        for group in self.param_groups:
            for matrix in group["params"]:
                average = self.state[matrix].setdefault("average", torch.zeros_like(matrix))
                average.lerp_(matrix.grad, 1 - group["momentum"])
                rows, columns = matrix.shape
                rate = group["lr"] * math.sqrt(max(1, rows / columns))
                matrix.sub_(rate * orthogonal(matrix.grad.lerp(average, group["momentum"])))


def orthogonal(update: Tensor) -> Tensor:
    """A matrix with the directions of this one, whose singular values are all near 1.

    By five Newton-Schulz steps, with the coefficients of K. Jordan et al. (2024).
    """
    wide = update.mT if update.shape[0] > update.shape[1] else update
    wide = wide / wide.norm().clamp(min=1e-7)
    for _ in range(5):
        gram = wide @ wide.mT
        wide = 3.4445 * wide + (2.0315 * gram @ gram - 4.7750 * gram) @ wide
    return wide.mT if update.shape[0] > update.shape[1] else wide


def optimizers(model: GPT, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """One that trains everything, or Muon for the matrices of blocks and AdamW for the rest."""
    if not recipe.muon:
        groups = [
            {"params": [p for p in model.parameters() if p.dim() == 2], "weight_decay": 0.1},
            {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
        ]
        return [torch.optim.AdamW(groups, recipe.learning_rate, betas=(0.9, 0.99), fused=True)]
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
    tables = [table.weight for table, _ in model.several or ()]
    known = {*matrices, *tables}
    groups = [
        {"params": [p for p in model.parameters() if p not in known], "lr": OTHERS},
        {"params": tables, "lr": TABLES},
    ]
    return [
        Muon(matrices, recipe.learning_rate, momentum=0.9),
        torch.optim.AdamW(groups, betas=(0.9, 0.95), weight_decay=0.0, fused=True),
    ]


def schedule(step: int, recipe: Recipe) -> float:
    """The learning rate of a step, as a share of the recipe's."""
    if recipe.muon:
        return 1 - step / recipe.n_step
    if step < WARMUP:
        return (step + 1) / (WARMUP + 1)
    done = (step - WARMUP) / (recipe.n_step - WARMUP)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * done))


def train(recipe: Recipe, corpus: Corpus, seed: int) -> tuple[GPT, float]:
    """Train a model; returns it and the seconds that all steps took together."""
    torch.manual_seed(seed)
    model = GPT(len(corpus.letters), recipe)
    generator = torch.Generator().manual_seed(seed)
    both = optimizers(model, recipe)
    groups = [group for optimizer in both for group in optimizer.param_groups]
    rates = [group["lr"] for group in groups]
    corpus.batch(1, T, torch.Generator())  # the ids are computed before the clock starts
    start = time.perf_counter()
    for step in range(recipe.n_step):
        for group, rate in zip(groups, rates, strict=True):
            group["lr"] = rate * schedule(step, recipe)
        windows = corpus.batch(recipe.B, T, generator)
        loss = cross_entropy(model(windows[:, :-1]), windows)
        model.zero_grad()
        loss.backward()
        if not recipe.muon:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in both:
            optimizer.step()
    return model, time.perf_counter() - start


@torch.no_grad()
def full_loss(model: GPT, corpus: Corpus) -> float:
    """The mean loss over all windows of the validation text, in float32."""
    windows = corpus.windows(T)
    total = sum(cross_entropy(model(w[:, :-1]), w).item() * len(w) for w in windows.split(64))
    return total / len(windows)


def cross_entropy(logits: Tensor, windows: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
