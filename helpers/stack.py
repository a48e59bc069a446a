"""How signal, gradient and token similarity change with the depth of an untrained stack of blocks.

A block is causal multi-head attention with 4 heads, followed by a feed-forward network. There are
four ways to put these two branches into the stack, and two initialisations of their weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn as nn
import torch.nn.functional as F

from attention_base.same import one_thread
from helpers.attention import attention, causal_mask

WAYS = ("plain", "residual", "+ norm", "+ zero-init projection")  # each adds to the one before
INITS = ("default", "unit gain")
DEEPEST = 100
AT_ONCE = 24  # all depths up to here are measured together

B, T, C, N_HEAD = 4, 8, 32, 4


@dataclass(frozen=True)
class StackMeasurement:
    """What a stack of blocks does to random tokens of size 1.

    Attributes
    ----------
    signal
        Root mean square of the channels after the last block.
    gradient
        Root mean square of the gradient at the input, for an upstream gradient of size 1.
    similarity
        Mean cosine between two tokens of a sequence after the last block.
    """

    signal: float
    gradient: float
    similarity: float


def signal_by_depth(way: str, depth: int, *, init: str = "default") -> StackMeasurement:
    """Run 4 sequences of 8 random tokens through a new stack of blocks, forward and backward.

    The numbers are always the same: weights, tokens and upstream gradient come from a fixed seed,
    in double precision, and the first blocks of a deeper stack are those of a shallower one.

    Parameters
    ----------
    way : str
        "plain": each branch (attention, feed-forward) replaces the tokens; "residual": its output
        is added to them; "+ norm": added, and the branch reads them through a layer norm;
        "+ zero-init projection": the same, with the last layer of each branch initialised to zero.
    depth : int
        Number of blocks, 1 to 100.
    init : str
        "default": PyTorch's default initialisation; "unit gain": weights of variance
        1 / (number of inputs), so that a layer keeps the size of its input.

    Raises
    ------
    ValueError
        If there is no such way, init or depth.

    Examples
    --------
    >>> signal_by_depth("plain", 12).gradient < 1e-9
    True
    """
    for name, value, known in (("way", way, WAYS), ("init", init, INITS)):
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
    if isinstance(depth, bool) or not isinstance(depth, int) or not 1 <= depth <= DEEPEST:
        raise ValueError(f"depth must be a whole number from 1 to {DEEPEST}, got {depth!r}")
    return _all_depths(way, init, max(depth, AT_ONCE))[depth - 1]


@lru_cache(maxsize=16)
def _all_depths(way: str, init: str, deepest: int) -> list[StackMeasurement]:
    """Measure every depth from 1 to `deepest` in one forward and one backward pass.

    The input is there `deepest` times, once for each depth. After block d the copy for depth d is
    finished and the others go on.
    """
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        x, upstream = (z / _rms(z) for z in torch.randn(2, 1, B, T, C, dtype=torch.double))
        copies = x.repeat(deepest, 1, 1, 1).requires_grad_()  # (deepest, B, T, C)
        unfinished, finished = copies, []
        for _ in range(deepest):
            for branch in _block(way, init):
                unfinished = branch(unfinished)
            finished.append(unfinished[0])
            unfinished = unfinished[1:]
        out = torch.stack(finished)  # (deepest, B, T, C)
        # As a sum: given an upstream gradient, PyTorch would import sympy (30 MB).
        (gradient,) = torch.autograd.grad((out * upstream).sum(), copies)
        out = out.detach()
        directions = F.normalize(out, dim=-1)
        other_tokens = ~torch.eye(T, dtype=torch.bool)
        cosines = (directions @ directions.mT)[..., other_tokens]  # (deepest, B, T * (T - 1))
        measured = (_rms(out).flatten(), _rms(gradient).flatten(), cosines.mean((1, 2)))
    by_depth = zip(*(numbers.tolist() for numbers in measured), strict=True)
    return [StackMeasurement(*numbers) for numbers in by_depth]


def _rms(values: torch.Tensor) -> torch.Tensor:
    return values.pow(2).mean((1, 2, 3), keepdim=True).sqrt()


def _block(way: str, init: str) -> list[Callable[[torch.Tensor], torch.Tensor]]:
    """Make a new block: its attention and its feed-forward network, each joined to the stack."""
    query, key, value = (_linear(C, C, init, bias=False) for _ in range(3))
    proj = _linear(C, C, init)
    wide, narrow = _linear(C, 4 * C, init), _linear(4 * C, C, init)
    if way == "+ zero-init projection":
        for layer in (proj, narrow):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def self_attention(x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            layer(x).unflatten(-1, (N_HEAD, -1)).transpose(-3, -2) for layer in (query, key, value)
        )
        out, _ = attention(q, k, v, causal_mask(T))
        return proj(out.transpose(-3, -2).flatten(-2))

    def feed_forward(x: torch.Tensor) -> torch.Tensor:
        return narrow(torch.relu(wide(x)))

    return [_joined_to_stack(branch, way) for branch in (self_attention, feed_forward)]


def _joined_to_stack(branch: Callable, way: str) -> Callable[[torch.Tensor], torch.Tensor]:
    if way == "plain":
        return branch
    if way == "residual":
        return lambda x: x + branch(x)
    return lambda x: x + branch(F.layer_norm(x, (C,)))


def _linear(n_in: int, n_out: int, init: str, bias: bool = True) -> nn.Linear:
    layer = nn.Linear(n_in, n_out, bias=bias, dtype=torch.double).requires_grad_(False)
    if init == "unit gain":
        nn.init.normal_(layer.weight, std=n_in**-0.5)
        if bias:
            nn.init.zeros_(layer.bias)
    return layer
