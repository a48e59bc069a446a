"""Attention gone wrong: the known mistakes, each one line away from the right formula.

`healthy` is the formula as it should be; every illness differs from it in one place. The exercises
recognise a learner's mistake by them, and `diagnose` names an illness by computing each of them
from the queries, keys and values that it finds in a module.

`ILLNESSES` take q, k (..., T, d) and v (..., T, d_v), and return (out, weights): (..., T, d_v) and
(..., T, T). With ``causal=False`` everybody may read everybody. `OVER_HEADS` are of the same form
and need an axis of heads, (B, n_head, T, d). `HEAD_ILLNESSES` split and merge wrongly: they take
q, k and v (B, T, C), n_head and how to attend in each head, and return (B, T, C) and
(B, n_head, T, T). `illnesses_of` brings all into one form, with those that need to know the input.

`MISWIRINGS` are mistakes in putting a block together from its four parts; `wired` computes them.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from helpers.attention import causal_mask

Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Illness:
    """A known mistake: its name, what it computes, and what to tell who made it.

    `of_mask` says that the mistake is about the causal mask, and needs one. `fed` is there when
    the mistake is the same as giving other q, k and v to right attention: it makes those.
    """

    name: str
    compute: Callable[..., Pair]
    message: str
    of_mask: bool = False
    fed: Callable[..., tuple[Tensor, Tensor, Tensor]] | None = None


# Where several illnesses fit what was seen, these are told first, the likeliest at the front.
LIKELIEST = (
    "no mask",
    "future filled with 0",
    "softmax over the queries",
    "masked after the softmax",
    "split by view, without transpose",
    "no scale",
)

ILLNESSES: dict[str, Illness] = {}
OVER_HEADS: dict[str, Illness] = {}
HEAD_ILLNESSES: dict[str, Illness] = {}


def _known(name: str, message: str, *, of_mask: bool = False, into: dict = ILLNESSES) -> Callable:
    """Put the function below into a list of illnesses."""

    def keep(compute: Callable) -> Callable:
        into[name] = Illness(name, compute, message, of_mask)
        return compute

    return keep


def _fed(name: str, message: str) -> Callable:
    """Put into `ILLNESSES`: right attention, fed with what the function below makes."""

    def keep(fed: Callable) -> Callable:
        ILLNESSES[name] = _as_fed(name, message, fed)
        return fed

    return keep


def _as_fed(name: str, message: str, fed: Callable) -> Illness:
    return Illness(
        name, lambda q, k, v, causal=True: healthy(*fed(q, k, v), causal), message, fed=fed
    )


def healthy(q: Tensor, k: Tensor, v: Tensor, causal: bool = True) -> Pair:
    """Attention as it should be (Vaswani et al. 2017, equation 1)."""
    weights = torch.softmax(_masked(_scores(q, k), causal), dim=-1)
    return weights @ v, weights


def _scores(q, k):
    return q @ k.mT / q.shape[-1] ** 0.5


def _masked(scores, causal=True):
    return scores.masked_fill(_future(scores), -torch.inf) if causal else scores


def _future(scores):
    return ~causal_mask(scores.shape[-1]).to(scores.device)


# ---------------------------------------------------------------- the softmax and the scores


@_known(
    "softmax over the queries",
    "The columns of the weights sum to 1, the rows do not. The softmax ran over the readers (dim=1 "
    "of (B, T, T), dim=-2 in general); it belongs to the keys, dim=-1.",
)
def _softmax_over_queries(q, k, v, causal=True):
    weights = torch.softmax(_masked(_scores(q, k), causal), dim=-2)
    return weights @ v, weights


@_known(
    "scores thrown away",
    "The output is the plain causal mean of v: the scores were replaced by zeros, and queries and "
    "keys are not used at all.",
)
def _scores_thrown_away(q, k, v, causal=True):
    weights = torch.softmax(_masked(torch.zeros_like(_scores(q, k)), causal), dim=-1)
    return weights @ v, weights


# ---------------------------------------------------------------- the mask


@_known(
    "masked after the softmax",
    "The future took its share and was cut off afterwards: rows sum to less than 1. Mask the "
    "scores, then take the softmax.",
    of_mask=True,
)
def _masked_after_softmax(q, k, v):
    weights = torch.tril(torch.softmax(_scores(q, k), dim=-1))
    return weights @ v, weights


@_known(
    "future filled with 0",
    "A score of 0 is e⁰ = 1, a full share: the future is visible. Fill with -inf (multiplying "
    "scores by tril is the same mistake).",
    of_mask=True,
)
def _filled_with_zero(q, k, v):
    scores = _scores(q, k)
    weights = torch.softmax(scores.masked_fill(_future(scores), 0.0), dim=-1)
    return weights @ v, weights


@_known(
    "diagonal masked too",
    "Tokens may not look at themselves, so token 0 has nobody left and its row is nan.",
    of_mask=True,
)
def _diagonal_masked(q, k, v, fill=-torch.inf):
    scores = _scores(q, k)
    not_before = torch.ones_like(scores).triu() == 1
    weights = torch.softmax(scores.masked_fill(not_before, fill), dim=-1)
    return weights @ v, weights


@_known(
    "diagonal masked with -1e9",
    "Tokens may not look at themselves; row 0 holds -1e9 everywhere, so it shares evenly over the "
    "whole future.",
    of_mask=True,
)
def _diagonal_masked_softly(q, k, v):
    return _diagonal_masked(q, k, v, fill=-1e9)


@_known(
    "0 times infinity",
    "Everything is nan: (1 - tril) * -inf is 0 * inf = nan where it should be 0. Use masked_fill.",
    of_mask=True,
)
def _zero_times_infinity(q, k, v):
    scores = _scores(q, k)
    weights = torch.softmax(scores + (1 - torch.ones_like(scores).tril()) * -torch.inf, dim=-1)
    return weights @ v, weights


@_known("no mask", "Every token sees the future: the mask is missing.", of_mask=True)
def _no_mask(q, k, v):
    return healthy(q, k, v, causal=False)


@_known(
    "upper triangle kept",
    "Each token sees itself and its future: triu where tril was meant, or the mask turned round.",
    of_mask=True,
)
def _upper_triangle(q, k, v):
    scores = _scores(q, k)
    past = torch.ones_like(scores).tril(diagonal=-1) == 1
    weights = torch.softmax(scores.masked_fill(past, -torch.inf), dim=-1)
    return weights @ v, weights


@_known(
    "mask not inverted",
    "masked_fill fills where its mask is True, and yours is True where one may look: the past is "
    "gone and the future left, and the last row, which has no future, is nan. Turn it round: "
    "~causal_mask(T).",
    of_mask=True,
)
def _mask_not_inverted(q, k, v):
    scores = _scores(q, k)
    weights = torch.softmax(scores.masked_fill(~_future(scores), -torch.inf), dim=-1)
    return weights @ v, weights


@_known(
    "mask one too far",
    "Each token sees one token of its future: the mask begins one too far to the right. It is "
    "triu(diagonal=1), or tril() without a diagonal.",
    of_mask=True,
)
def _mask_one_too_far(q, k, v):
    scores = _scores(q, k)
    too_late = torch.ones_like(scores).triu(diagonal=2) == 1
    weights = torch.softmax(scores.masked_fill(too_late, -torch.inf), dim=-1)
    return weights @ v, weights


# ---------------------------------------------------------------- what goes in


@_fed(
    "no scale", "Right but for the root: scores must be divided by the root of the query's length."
)
def _no_scale(q, k, v):
    return q * q.shape[-1] ** 0.5, k, v


@_fed(
    "multiplied by the root",
    "The scores were multiplied by the root of the query's length (or divided by its inverse); "
    "they must be divided by it.",
)
def _multiplied_by_root(q, k, v):
    return q * q.shape[-1], k, v


@_fed(
    "divided by the size, without a root",
    "The scores were divided by the query's length itself; divide by its square root.",
)
def _divided_by_size(q, k, v):
    return q / q.shape[-1] ** 0.5, k, v


@_fed(
    "divided by the root of T",
    "The number under the root is the number of tokens. It must be the length of a query, "
    "q.shape[-1].",
)
def _divided_by_root_of_T(q, k, v):
    return q * (q.shape[-1] / q.shape[-2]) ** 0.5, k, v


@_fed(
    "queries and keys swapped",
    "Rows and columns of the scores changed roles: it is q @ k.mT, the query on the left.",
)
def _queries_and_keys_swapped(q, k, v):
    return k, q, v


@_fed(
    "keys in the place of values",
    "The weights are right and mix the keys. What is mixed is v.",
)
def _keys_for_values(q, k, v):
    return q, k, k


# ---------------------------------------------------------------- what comes out


@_known(
    "weights transposed",
    "The weights are right, but out is weights.mT @ v: every output collects from those who read "
    "it, the future. It is weights @ v.",
)
def _weights_transposed(q, k, v, causal=True):
    weights = healthy(q, k, v, causal)[1]
    return weights.mT @ v, weights


# ---------------------------------------------------------------- many heads


def split(z: Tensor, n_head: int) -> Tensor:
    """(B, T, C) -> (B, n_head, T, head_size): cut the channels, then transpose."""
    B, T, C = z.shape
    return z.reshape(B, T, n_head, C // n_head).transpose(1, 2)


def merge(out: Tensor) -> Tensor:
    """(B, n_head, T, head_size) -> (B, T, C): transpose back, then join the channels."""
    return out.transpose(1, 2).flatten(2)


def in_heads(
    compute: Callable[..., Pair], q, k, v, n_head, split=split, merge=merge, **how
) -> Pair:
    """Compute in each slice of the channels: (B, T, C) and (B, n_head, T, T)."""
    out, weights = compute(*(split(z, n_head) for z in (q, k, v)))
    return merge(out), weights


def _split_by_view(z, n_head):
    B, T, C = z.shape
    return z.reshape(B, n_head, T, C // n_head)


def _merge_by_view(out):
    B, n_head, T, head_size = out.shape
    return out.reshape(B, T, n_head * head_size)


def _split_interleaved(z, n_head):
    B, T, C = z.shape
    return z.reshape(B, T, C // n_head, n_head).permute(0, 3, 1, 2)


def _merge_interleaved(out):
    return out.permute(0, 2, 3, 1).flatten(2)


@_known(
    "split by view, without transpose",
    "The split poured the numbers into (B, n_head, T, head_size) in reading order: a head got all "
    "channels of a few tokens, and tokens of the future among them. First view(B, T, n_head, "
    "head_size), then transpose(1, 2).",
    into=HEAD_ILLNESSES,
)
def _wrong_split(q, k, v, n_head, attend):
    return in_heads(attend, q, k, v, n_head, split=_split_by_view)


@_known(
    "merged by view, without transpose",
    "Split right, merged wrong: the heads stood in front of the tokens when they were flattened. "
    "transpose(1, 2) back first, then reshape.",
    into=HEAD_ILLNESSES,
)
def _wrong_merge(q, k, v, n_head, attend):
    return in_heads(attend, q, k, v, n_head, merge=_merge_by_view)


@_known(
    "split and merged by view",
    "Both ends skip the transpose. Nothing leaks, since the two undo each other, but each “head” "
    "sees only a few whole tokens: late outputs no longer hear early ones.",
    into=HEAD_ILLNESSES,
)
def _wrong_split_and_merge(q, k, v, n_head, attend):
    return in_heads(attend, q, k, v, n_head, split=_split_by_view, merge=_merge_by_view)


@_known(
    "every n-th channel",
    "Head 0 got channels 0, n_head, 2·n_head, … The cut is in blocks: view(B, T, n_head, "
    "head_size), in this order.",
    into=HEAD_ILLNESSES,
)
def _interleaved_split(q, k, v, n_head, attend):
    return in_heads(attend, q, k, v, n_head, split=_split_interleaved)


@_known(
    "merged channel by channel",
    "The channels of the heads alternate in the output. First all channels of head 0, then all of "
    "head 1: transpose(1, 2), then reshape.",
    into=HEAD_ILLNESSES,
)
def _interleaved_merge(q, k, v, n_head, attend):
    return in_heads(attend, q, k, v, n_head, merge=_merge_interleaved)


@_known(
    "one large head",
    "n_head made no difference: this is a single head of all C channels.",
    into=HEAD_ILLNESSES,
)
def _one_large_head(q, k, v, n_head, attend):
    return in_heads(attend, q, k, v, 1)


@_known(
    "softmax over the heads",
    "dim=1 of (B, n_head, T, T) is the head: the heads share out 1 among themselves, for each "
    "pair, and the future is nan. The keys are the last axis, dim=-1.",
    into=OVER_HEADS,
)
def _softmax_over_heads(q, k, v, causal=True, fill=-torch.inf):
    scores = _scores(q, k)
    scores = scores.masked_fill(_future(scores), fill) if causal else scores
    weights = torch.softmax(scores, dim=1)
    return weights @ v, weights


@_known(
    "softmax over the heads, masked with -1e9",
    "dim=1 of (B, n_head, T, T) is the head: the heads share out 1 among themselves, for each "
    "pair, also for each pair in the future. The keys are the last axis, dim=-1.",
    of_mask=True,
    into=OVER_HEADS,
)
def _softmax_over_heads_softly(q, k, v):
    return _softmax_over_heads(q, k, v, fill=-1e9)


# ---------------------------------------------------------------- all of them


def illnesses_of(x: Tensor, n_head: int, causal: bool = True) -> list[Illness]:
    """Every known illness of attention over x, in one form.

    Parameters
    ----------
    x
        (B, T, C), the input.
    n_head
        Number of heads.
    causal
        Whether the attention should be causal.

    Returns
    -------
    list[Illness]
        Their `compute` takes q, k and v (B, T, n_head * head_size), and returns
        (B, T, n_head * head_size) and (B, n_head, T, T).
    """
    found = [
        replace(one, compute=partial(in_heads, _attend(one, causal), n_head=n_head))
        for one in _attending(x, n_head, causal)
    ]
    right = partial(healthy, causal=causal)
    return found + [
        replace(one, compute=partial(one.compute, n_head=n_head, attend=right))
        for one in _splitting(n_head)
    ]


def pairs_of(
    x: Tensor, n_head: int, causal: bool = True
) -> list[tuple[Illness, Illness, Callable]]:
    """Two illnesses at a time, and what both together compute, in the form of `illnesses_of`."""
    single = _attending(x, n_head, causal)
    pairs = [
        (one, other, partial(in_heads, _attend(other, causal, one.fed), n_head=n_head))
        for one in single
        for other in single
        if one.fed and one is not other
    ]
    return pairs + [
        (one, other, partial(other.compute, n_head=n_head, attend=_attend(one, causal)))
        for one in single
        for other in _splitting(n_head)
    ]


def _attending(x: Tensor, n_head: int, causal: bool) -> list[Illness]:
    """The illnesses of attending itself, in each head; those of splitting come on top."""
    C = x.shape[-1]
    known = [*ILLNESSES.values(), *(OVER_HEADS.values() if n_head > 1 else ())]
    known.append(
        _as_fed(
            "divided by the root of C",
            "The number under the root is the length of a query, q.shape[-1], not the number of "
            "channels of x.",
            lambda q, k, v: (q * (q.shape[-1] / C) ** 0.5, k, v),
        )
    )
    if C % n_head == 0:
        known.append(
            _as_fed(
                "x is mixed instead of v",
                "The weights are right and mix x, which is private. What is said, and mixed, is v.",
                lambda q, k, v: (q, k, split(x, n_head)),
            )
        )
    if causal:
        return known
    masked = Illness(
        "masked",
        lambda q, k, v, causal: healthy(q, k, v, causal=True),
        "Everybody may read everybody here, and a causal mask hides the future.",
    )
    return [*(one for one in known if not one.of_mask), masked]


def _splitting(n_head: int) -> list[Illness]:
    return list(HEAD_ILLNESSES.values()) if n_head > 1 else []


def _attend(illness: Illness, causal: bool, fed: Callable | None = None) -> Callable[..., Pair]:
    """An illness as a function of q, k and v alone; perhaps fed with what another one makes."""

    def attend(q, k, v):
        q, k, v = fed(q, k, v) if fed else (q, k, v)
        return illness.compute(q, k, v) if illness.of_mask else illness.compute(q, k, v, causal)

    return attend


# ---------------------------------------------------------------- the block


# How a branch, its norm and the road are joined: what is on the road, and what the branch reads.
JOINTS: dict[str, Callable[..., Tensor]] = {
    "pre": lambda road, read, branch, norm: road + branch(norm(read)),
    "post": lambda road, read, branch, norm: norm(road + branch(read)),
    "on the road": lambda road, read, branch, norm: norm(road) + branch(norm(read)),
    "behind": lambda road, read, branch, norm: road + norm(branch(read)),
}


def wired(
    x: Tensor,
    attention: Callable,
    feed_forward: Callable,
    norm_1: Callable,
    norm_2: Callable,
    *,
    joint: str = "pre",
    order: Sequence[int] = (0, 1),
    roads: tuple[bool, bool] = (True, True),
    norms: tuple[int | None, int | None] = (0, 1),
    side_by_side: bool = False,
) -> Tensor:
    """A block put together from its four parts, each a function of (B, T, C).

    Parameters
    ----------
    x
        (B, T, C), the input of the block.
    attention, feed_forward, norm_1, norm_2
        The parts.
    joint
        "pre": road + branch(norm); "post": norm(road + branch); or another of `JOINTS`.
    order
        Which branches there are, 0 = attention and 1 = feed-forward, in this order.
    roads
        Whether x is added to what the attention gives, and to what the feed-forward gives.
    norms
        Whose norm the attention has, and whose the feed-forward; None for no norm.
    side_by_side
        Whether both branches read the input of the block.

    Returns
    -------
    Tensor
        (B, T, C)
    """
    road = x
    for i in order:
        branch, norm = (attention, feed_forward)[i], lambda z: z
        if norms[i] is not None:
            norm = (norm_1, norm_2)[norms[i]]
        read = x if side_by_side else road
        road = JOINTS[joint](road if roads[i] else 0 * road, read, branch, norm)
    return road


@dataclass(frozen=True)
class Miswiring:
    """A mistake in putting a block together: the arguments of `wired` that it changes."""

    name: str
    message: str
    changed: Mapping[str, Any]


MISWIRINGS = (
    Miswiring(
        "no road",
        "Nothing is added: x is replaced twice. It is x + attention(…), then x + feed_forward(…).",
        {"roads": (False, False)},
    ),
    Miswiring(
        "no road round the attention",
        "The attention replaces x instead of adding to it.",
        {"roads": (False, True)},
    ),
    Miswiring(
        "no road round the feed-forward",
        "The feed-forward replaces x instead of adding to it.",
        {"roads": (True, False)},
    ),
    Miswiring(
        "one norm for both",
        "norm_1 was used twice, norm_2 never. Fresh norms are all alike: it shows after training.",
        {"norms": (0, 0)},
    ),
    Miswiring(
        "one norm for both",
        "norm_2 was used twice, norm_1 never. Fresh norms are all alike: it shows after training.",
        {"norms": (1, 1)},
    ),
    Miswiring(
        "norms swapped",
        "norm_1 belongs to the attention, norm_2 to the feed-forward. Fresh norms are all alike: "
        "it shows after training.",
        {"norms": (1, 0)},
    ),
    Miswiring(
        "no norms",
        "norm_1 and norm_2 were not used: nothing holds the size of x. Each branch needs its norm.",
        {"norms": (None, None)},
    ),
    Miswiring(
        "no norm for the attention",
        "norm_1 was not used: the attention needs its norm too.",
        {"norms": (None, 1)},
    ),
    Miswiring(
        "no norm for the feed-forward",
        "norm_2 was not used: the feed-forward needs its norm too.",
        {"norms": (0, None)},
    ),
    Miswiring(
        "norm on the road",
        "x itself was replaced by its norm. Only the branch sees norm(x); the road keeps x.",
        {"joint": "on the road"},
    ),
    Miswiring(
        "norm behind the branch",
        "This is x + norm(f(x)), which some models do on purpose. Pre-norm is x + f(norm(x)), "
        "post-norm is norm(x + f(x)).",
        {"joint": "behind"},
    ),
    Miswiring(
        "no attention",
        "What the attention gave was not used: no token hears another. If its sum was computed and "
        "not kept, write x = x + attention(norm_1(x)).",
        {"order": (1,)},
    ),
    Miswiring(
        "no feed-forward",
        "What the feed-forward gave was not used: tokens talk, and nobody thinks.",
        {"order": (0,)},
    ),
    Miswiring(
        "thinks before it talks",
        "First attention, then feed-forward.",
        {"order": (1, 0)},
    ),
    Miswiring(
        "side by side",
        "Both branches read the same x, which some models do on purpose. Here the feed-forward "
        "thinks about what the attention brought: update x in between.",
        {"side_by_side": True},
    ),
)


def miswired() -> Iterator[tuple[tuple[Miswiring, ...], dict[str, Any]]]:
    """Each known mistake of wiring, then two at a time; with the arguments of `wired`."""
    for count in (1, 2):
        for mistakes in itertools.combinations(MISWIRINGS, count):
            changed = [key for one in mistakes for key in one.changed]
            if len(changed) > len(set(changed)):  # two that exclude each other
                continue
            for joint in ("pre",) if "joint" in changed else ("pre", "post"):
                how: dict[str, Any] = {"joint": joint}
                for one in mistakes:
                    how |= one.changed
                yield mistakes, how


class Patient(nn.Module):
    """Many-headed attention with a known illness; with one head it is a head and a projection.

    Parameters
    ----------
    name
        Which illness: a name that `illnesses_of` gives, or "healthy".
    C, n_head
        Channels, and heads among which they are shared out.
    causal
        Whether the attention should be causal.
    """

    def __init__(self, name: str, C: int, n_head: int = 1, causal: bool = True) -> None:
        super().__init__()
        self.name, self.n_head, self.causal = name, n_head, causal
        self.query, self.key, self.value = (nn.Linear(C, C, bias=False) for _ in range(3))
        self.proj = nn.Linear(C, C)

    def forward(self, x: Tensor, *, return_weights: bool = False) -> Tensor | Pair:
        """(B, T, C) -> (B, T, C), and weights (B, n_head, T, T) if asked for."""
        computes = {one.name: one.compute for one in illnesses_of(x, self.n_head, self.causal)}
        right = partial(healthy, causal=self.causal)
        computes["healthy"] = partial(in_heads, right, n_head=self.n_head)
        out, weights = computes[self.name](self.query(x), self.key(x), self.value(x))
        return (self.proj(out), weights) if return_weights else self.proj(out)
