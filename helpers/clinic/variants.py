"""Attentions that are right by another formula than softmax(q kᵀ/√d) v, and bugs of these.

They are computed as the known bugs are (`bugs`), from q, k and v in heads: (…, T, d).
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from helpers.clinic.bugs import (
    Bug,
    OutAndWeights,
    masked_scores,
    scaled_scores,
    with_changed_inputs,
)

BASES = (10_000, 500_000)


def rotated(z: Tensor, base: float = 10_000, *, pairs: bool = False) -> Tensor:
    """Rotary positions (RoPE, Su et al. 2021) for z (…, T, d).

    Channel i is rotated with channel i + d/2, as in Llama; with `pairs`, channel 2i with 2i + 1,
    as in the paper. The angle is t / base^(2i/d) for token t.
    """
    T, d = z.shape[-2:]
    i = torch.arange(d // 2, device=z.device)
    angles = torch.arange(T, device=z.device)[:, None] / base ** (2 * i / d)  # (T, d/2)
    cos, sin = angles.cos().to(z), angles.sin().to(z)
    a, b = (z[..., 0::2], z[..., 1::2]) if pairs else z.chunk(2, dim=-1)
    turned = a * cos - b * sin, b * cos + a * sin
    return torch.stack(turned, dim=-1).flatten(-2) if pairs else torch.cat(turned, dim=-1)


def softmax_1(scores: Tensor) -> Tensor:
    """The softmax with 1 added to the denominator (Miller 2023): rows may sum to less than 1."""
    padded = F.pad(scores, (0, 1))  # a score of 0 more, e⁰ = 1
    return padded.softmax(dim=-1)[..., :-1]


def _with_softmax_1(q: Tensor, k: Tensor, v: Tensor, causal: bool = True) -> OutAndWeights:
    weights = softmax_1(masked_scores(scaled_scores(q, k), causal))
    return weights @ v, weights


def _on_queries_and_keys(change: Callable[[Tensor], Tensor]) -> Callable:
    return lambda q, k, v: (change(q), change(k), v)


def variants(head_size: int) -> list[Bug]:
    """Attentions that are right by another formula, with queries of this size."""
    found = [
        with_changed_inputs(
            "QK-norm, RMS norm of queries and keys",
            "",
            _on_queries_and_keys(lambda z: F.rms_norm(z, z.shape[-1:], eps=1e-6)),
        ),
        with_changed_inputs(
            "QK-norm, layer norm of queries and keys",
            "",
            _on_queries_and_keys(lambda z: F.layer_norm(z, z.shape[-1:])),
        ),
        Bug("softmax1, with 1 added to the denominator", _with_softmax_1, ""),
    ]
    for rotate in _rotations(head_size):
        name = "rotary positions (RoPE) of queries and keys"
        found.append(with_changed_inputs(name, "", _on_queries_and_keys(rotate)))
    return found


def variant_bugs(head_size: int) -> list[Bug]:
    """Known bugs of these."""
    found = []
    for rotate in _rotations(head_size):
        found += [
            with_changed_inputs(
                "rotary positions on the queries only",
                "The queries are rotated by their position, and the keys are not. Rotate both, so "
                "that a score depends on the distance of the two tokens.",
                lambda q, k, v, rotate=rotate: (rotate(q), k, v),
            ),
            with_changed_inputs(
                "rotary positions on the keys only",
                "The keys are rotated by their position, and the queries are not. Rotate both, so "
                "that a score depends on the distance of the two tokens.",
                lambda q, k, v, rotate=rotate: (q, rotate(k), v),
            ),
            with_changed_inputs(
                "rotary positions on the values too",
                "The values are rotated by their position as well. Rotate only queries and keys: "
                "position belongs to the scores, not to what is passed on.",
                lambda q, k, v, rotate=rotate: tuple(map(rotate, (q, k, v))),
            ),
        ]
    return found


def _rotations(head_size: int) -> list[Callable[[Tensor], Tensor]]:
    if head_size % 2:
        return []
    return [
        lambda z, base=base, pairs=pairs: rotated(z, base, pairs=pairs)
        for pairs in (False, True)
        for base in BASES
    ]
