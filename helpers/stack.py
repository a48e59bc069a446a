"""What becomes of a signal, its gradient and its tokens in a deep stack of fresh blocks.

Nothing is trained here. A block is attention with 4 heads, then a feed-forward layer, and there are
four ways to put its two halves into the stack and two ways to start their weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn as nn
import torch.nn.functional as F

from helpers.attention import attention, causal_mask

WAYS = ("plain", "residual", "+ norm", "+ zero-init projection")  # each adds to the one before
INITS = ("default", "unit gain")
DEEPEST = 100
AT_ONCE = 24  # all depths up to here are measured together

B, T, C, N_HEAD = 4, 8, 32, 4


@dataclass(frozen=True)
class Stack:
    """What a stack of blocks does to random tokens of size 1.

    `signal` is the typical size (rms) of a channel behind the last block, `gradient` that of the
    gradient which arrives at the input when one of size 1 is sent back, `similarity` the mean
    cosine between two tokens of a sequence behind the last block.
    """

    signal: float
    gradient: float
    similarity: float


def signal_by_depth(way: str, depth: int, *, init: str = "default") -> Stack:
    """Send 4 sequences of 8 random tokens up a stack of fresh blocks, and a gradient down.

    Always the same numbers: weights, tokens and gradient come from fixed seeds, in double
    precision, and a deeper stack begins with the blocks of a shallower one.

    Parameters
    ----------
    way : str
        "plain": each half of a block replaces the tokens; "residual": it adds to them;
        "+ norm": it adds, and reads them through a layer norm; "+ zero-init projection": the same,
        with the last layer of each half started at zero.
    depth : int
        How many blocks, 1 to 100.
    init : str
        "default": PyTorch's own start; "unit gain": weights of variance 1 / (number of inputs),
        so that a layer keeps the size of what passes.

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
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
    if isinstance(depth, bool) or not isinstance(depth, int) or not 1 <= depth <= DEEPEST:
        raise ValueError(f"depth must be a whole number from 1 to {DEEPEST}, got {depth!r}")
    return _all_depths(way, init, max(depth, AT_ONCE))[depth - 1]


@lru_cache(maxsize=16)
def _all_depths(way: str, init: str, deepest: int) -> list[Stack]:
    """Measure every depth from 1 to `deepest` in one pass, up and down.

    The tokens are there once for each depth. Behind every block one copy has arrived and the
    others go on; then a single backward pass serves them all.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the matrices are small: two threads mostly wait for each other
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            x, sent_back = (z / _rms(z) for z in torch.randn(2, 1, B, T, C, dtype=torch.double))
            copies = x.repeat(deepest, 1, 1, 1).requires_grad_()  # (deepest, B, T, C)
            going, arrived = copies, []
            for _ in range(deepest):
                for half in _block(way, init):
                    going = half(going)
                arrived.append(going[0])
                going = going[1:]
        out = torch.stack(arrived)
        (gradient,) = torch.autograd.grad((out * sent_back).sum(), copies)
        out = out.detach()
        towards = F.normalize(out, dim=-1)
        cosines = (towards @ towards.mT)[..., ~torch.eye(T, dtype=torch.bool)]  # without itself
        measured = (_rms(out).flatten(), _rms(gradient).flatten(), cosines.mean((1, 2)))
    finally:
        torch.set_num_threads(threads)
    return [Stack(*numbers) for numbers in zip(*(m.tolist() for m in measured), strict=True)]


def _rms(values: torch.Tensor) -> torch.Tensor:
    return values.pow(2).mean((1, 2, 3), keepdim=True).sqrt()


def _block(way: str, init: str) -> list[Callable[[torch.Tensor], torch.Tensor]]:
    """Make a fresh block: its two halves, attention and feed-forward, put in this way."""
    query, key, value = (_linear(C, C, init, bias=False) for _ in range(3))
    proj = _linear(C, C, init)
    wide, back = _linear(C, 4 * C, init), _linear(4 * C, C, init)
    if way == "+ zero-init projection":
        for layer in (proj, back):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def talk(x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            layer(x).unflatten(-1, (N_HEAD, -1)).transpose(-3, -2) for layer in (query, key, value)
        )
        out, _ = attention(q, k, v, causal_mask(T))
        return proj(out.transpose(-3, -2).flatten(-2))

    def think(x: torch.Tensor) -> torch.Tensor:
        return back(torch.relu(wide(x)))

    return [_put(half, way) for half in (talk, think)]


def _put(half: Callable, way: str) -> Callable[[torch.Tensor], torch.Tensor]:
    if way == "plain":
        return half
    if way == "residual":
        return lambda x: x + half(x)
    return lambda x: x + half(F.layer_norm(x, (C,)))


def _linear(n_in: int, n_out: int, init: str, bias: bool = True) -> nn.Linear:
    layer = nn.Linear(n_in, n_out, bias=bias, dtype=torch.double).requires_grad_(False)
    if init == "unit gain":
        nn.init.normal_(layer.weight, std=n_in**-0.5)
        if bias:
            nn.init.zeros_(layer.bias)
    return layer
