"""Known bugs of attention: changes of one right program, told in ``attention.md``.

`diagnose` puts each into the program, runs it on the queries, keys and values of a module, and
names the one that gives the same numbers. Two bugs together are both changes in one program.
"""

import itertools
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_base.known import Known, changed_source, program, read

OutAndWeights = tuple[Tensor, Tensor]


class Named(NamedTuple):
    """A bug or, where it may be meant, a variant."""

    name: str
    message: str
    meant: bool = False


def attention(q, k, v, x, n_head):
    """Causal attention in n_head heads: equation 1 of Vaswani et al. (2017).

    q, k, v (B, T, n_head * d) and x (B, T, C), which they were made from -> the merged outputs
    (B, T, n_head * d) and the weights (B, n_head, T, T).
    """
    B, T, _ = x.shape
    q, k, v = (z.reshape(B, T, n_head, -1).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    future = torch.ones_like(scores).triu(diagonal=1) == 1
    scores = scores.masked_fill(future, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    out = weights @ v
    return out.transpose(1, 2).flatten(2), weights


# ---------------------------------------------------------------- the page

IN_ONE_HEAD, WITH_SEVERAL, VARIANTS = (
    section.entries for section in read(Path(__file__).with_name("attention.md"))
)
for _known in itertools.chain(IN_ONE_HEAD, WITH_SEVERAL, VARIANTS):
    changed_source(attention, _known.changes, f"{_known.where}, “{_known.name}”")  # each must fit
BY_NAME = {bug.name: bug for bug in [*IN_ONE_HEAD, *WITH_SEVERAL]}
NO_MASK = BY_NAME["no mask"]
UNWANTED_MASK = Known(
    "unwanted causal mask",
    message="Every token may attend to every other here, and a causal mask hides the future.",
)
# With these an output depends on other sequences of the batch.
MIX_SEQUENCES = {
    "attention across the batch",
    "batch and tokens mixed by the split",
    "batch and heads mixed by the merge",
    "batch, heads and tokens mixed by the merge",
    "mean of the batch subtracted",
    "softmax over the batch",
    "softmax over the batch, masked with -1e9",
}


@cache
def with_bugs(*bugs: Known, causal: bool = True) -> Callable[..., OutAndWeights] | None:
    """Attention with one or several bugs; None where they exclude each other.

    It is called as `attention` is. Without bugs, and with ``causal=False``, it is right attention
    of every token to every other.
    """
    changed = [bug for bug in bugs if bug is not UNWANTED_MASK]
    right = [] if causal or len(changed) < len(bugs) else [NO_MASK]
    if not right and not changed:
        return attention
    return program(attention, *right, *changed) or program(attention, *changed[::-1], *right)


def bugs_for(n_head: int, causal: bool = True) -> list[Known]:
    """Every known bug of attention in so many heads, which should be causal or not."""
    bugs = [*IN_ONE_HEAD, *(WITH_SEVERAL if n_head > 1 else [])]
    if causal:
        return bugs
    return [bug for bug in bugs if with_bugs(bug, causal=False)] + [UNWANTED_MASK]


def window(width: int) -> Known:
    """Attention of each token to itself and those before it, `width` in all."""
    change = ("triu(diagonal=1) == 1", f"tril(diagonal=0).triu(diagonal={1 - width}) == 0")
    name, message, meant = of_parts("sliding window (Beltagy et al. 2020)", n=width - 1)
    return Known(name, (change,), message, meant=meant)


def softmax_1(scores: Tensor) -> Tensor:
    """The softmax with 1 added to the denominator: rows may sum to less than 1."""
    return F.pad(scores, (0, 1)).softmax(dim=-1)[..., :-1]  # a score of 0 more, e⁰ = 1


# ---------------------------------------------------------------- seen in the parts of a module

OF_PARTS = {
    known.name: known
    for section in read(Path(__file__).with_name("parts.md"))
    for known in section.entries
}


def of_parts(name: str, **words: object) -> Named:
    """A bug or a variant of ``parts.md``, with words for what stands in braces."""
    known = OF_PARTS[name]
    return Named(name, known.message.format(**words), known.meant)


# ---------------------------------------------------------------- heads


def split_heads(z: Tensor, n_head: int) -> Tensor:
    """(B, T, C) -> (B, n_head, T, head_size): view, then transpose."""
    B, T, C = z.shape
    return z.reshape(B, T, n_head, C // n_head).transpose(1, 2)


def merge_heads(out: Tensor) -> Tensor:
    """(B, n_head, T, head_size) -> (B, T, C): transpose back, then join the channels."""
    return out.transpose(1, 2).flatten(2)
