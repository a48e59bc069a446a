"""What attention by another formula than softmax(q kᵀ/√d) v calls (see ``attention.md``)."""

import re
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from helpers.known import Known

FORMS = [rf"rotated(\1, {base}, pairs={p})" for p in (False, True) for base in (10_000, 500_000)]


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


def with_each_rope(known: Known) -> list[Known]:
    """A change as it is; one that writes ``rope(…)`` once for each way to rotate."""
    ((old, new),) = known.changes
    return [
        replace(known, changes=((old, re.sub(r"rope\((\w)\)", form, new)),))
        for form in (FORMS if "rope(" in new else [""])
    ]


def window(width: int) -> Known:
    """Attention of each token to itself and those before it, `width` in all."""
    change = ("triu(diagonal=1) == 1", f"tril(diagonal=0).triu(diagonal={1 - width}) == 0")
    told = f"each token attends to itself and the {width - 1} before it, a sliding window"
    return Known(told, (change,))
