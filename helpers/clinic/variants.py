"""Attentions that are right by another formula than softmax(q kᵀ/√d) v, and bugs of these.

They are changes of the same program as the known bugs (`bugs`).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from helpers.known import Known

SCORES = "scores = q"  # in the program, where queries and keys are ready


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


def _rewritten(name: str, change: str, message: str = "") -> Known:
    """Attention with other queries, keys or values: `change` makes them."""
    return Known(name, ((SCORES, f"{change}\n    {SCORES}"),), message)


_ROTATIONS = [
    f"rotated({{}}, {base}, pairs={pairs})" for pairs in (False, True) for base in (10_000, 500_000)
]
VARIANTS = [
    _rewritten(
        "QK-norm, RMS norm of queries and keys",
        "q, k = (F.rms_norm(z, z.shape[-1:], eps=1e-6) for z in (q, k))",
    ),
    _rewritten(
        "QK-norm, layer norm of queries and keys",
        "q, k = (F.layer_norm(z, z.shape[-1:]) for z in (q, k))",
    ),
    Known(
        "softmax1, with 1 added to the denominator",
        (("torch.softmax(scores, dim=-1)", "softmax_1(scores)"),),
    ),
    *(
        _rewritten(
            "rotary positions (RoPE) of queries and keys",
            f"q, k = {turn.format('q')}, {turn.format('k')}",
        )
        for turn in _ROTATIONS
    ),
]
_ROTATE_BOTH = "Rotate both, so that a score depends on the distance of the two tokens."
VARIANT_BUGS = [
    _rewritten(f"rotary positions on the {name}", change.format(*map(turn.format, "qkv")), message)
    for turn in _ROTATIONS
    for name, change, message in (
        (
            "queries only",
            "q = {0}",
            f"The queries are rotated by their position, and the keys are not. {_ROTATE_BOTH}",
        ),
        (
            "keys only",
            "k = {1}",
            f"The keys are rotated by their position, and the queries are not. {_ROTATE_BOTH}",
        ),
        (
            "values too",
            "q, k, v = {0}, {1}, {2}",
            "The values are rotated by their position as well. Rotate only queries and keys: "
            "position belongs to the scores, not to what is passed on.",
        ),
    )
]


def window(width: int) -> Known:
    """Attention of each token to itself and those before it, `width` in all."""
    change = ("triu(diagonal=1) == 1", f"tril(diagonal=0).triu(diagonal={1 - width}) == 0")
    told = f"each token attends to itself and the {width - 1} before it, a sliding window"
    return Known(told, (change,))
