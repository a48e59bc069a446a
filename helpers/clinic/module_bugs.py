"""Bugs that only `diagnose` looks for, and all known bugs of attention in one form.

`MODULE_BUGS` and `MODULE_SPLIT_BUGS` are called as the lists of `bugs`, and are beside them so that
the exercises, which use those lists, keep theirs short.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from helpers.clinic.bugs import (
    ATTENTION_BUGS,
    HEAD_AXIS_BUGS,
    SPLIT_BUGS,
    Bug,
    OutAndWeights,
    correct_attention,
    future_of,
    in_heads,
    known_bug,
    known_input_bug,
    masked_scores,
    scaled_scores,
    split_by_view,
    split_heads,
    with_changed_inputs,
)

# Where several bugs fit the failed probes, these are named first, the likeliest at the front.
LIKELIEST = (
    "no mask",
    "future filled with 0",
    "softmax over the queries",
    "masked after the softmax",
    "split by view, without transpose",
    "no scale",
)

MODULE_BUGS: dict[str, Bug] = {}
MODULE_SPLIT_BUGS: dict[str, Bug] = {}

# ---------------------------------------------------------------- the softmax and the scores


@known_bug(
    "scaled after the softmax",
    "The weights were divided by √head_size, so rows sum to less than 1. Divide the scores, then "
    "take the softmax.",
    bugs=MODULE_BUGS,
)
def _scaled_after_softmax(q, k, v, causal=True):
    weights = torch.softmax(masked_scores(q @ k.mT, causal), dim=-1) / q.shape[-1] ** 0.5
    return weights @ v, weights


@known_bug(
    "softmax taken twice",
    "The softmax of weights was taken. It makes them nearly equal, and gives a share to those that "
    "were 0: the future. Take it once, of the masked scores.",
    bugs=MODULE_BUGS,
)
def _softmax_twice(q, k, v, causal=True):
    weights = correct_attention(q, k, v, causal)[1].softmax(dim=-1)
    return weights @ v, weights


@known_bug(
    "softmax before and after the mask",
    "The softmax was taken of all scores, then again of what the mask leaves: weights are nearly "
    "equal, and later tokens change the first sum. Mask the scores, then take it once.",
    of_mask=True,
    bugs=MODULE_BUGS,
)
def _softmax_before_the_mask(q, k, v):
    weights = torch.softmax(scaled_scores(q, k), dim=-1)
    weights = torch.softmax(weights.masked_fill(future_of(weights), -torch.inf), dim=-1)
    return weights @ v, weights


def _no_softmax(fill: float) -> Callable[..., OutAndWeights]:
    def compute(q, k, v, causal=True):
        scores = scaled_scores(q, k)
        scores = scores.masked_fill(future_of(scores), fill) if causal else scores
        return scores @ v, scores

    return compute


NO_SOFTMAX = (
    "The scores themselves are the weights: rows do not sum to 1, and some are negative. Take the "
    "softmax of the masked scores."
)
for _name, _fill in {
    "no softmax": -torch.inf,
    "no softmax, masked with 0": 0.0,
    "no softmax, masked with -1e9": -1e9,
    "no softmax, masked with the smallest float": torch.finfo(torch.float32).min,
}.items():
    known_bug(_name, NO_SOFTMAX, of_mask=_fill > -torch.inf, bugs=MODULE_BUGS)(_no_softmax(_fill))


# ---------------------------------------------------------------- the mask


def _filled(fill: float, then_scaled: bool) -> Callable[..., OutAndWeights]:
    def compute(q, k, v):
        scores = scaled_scores(q, k)
        fill_here = fill / q.shape[-1] ** 0.5 if then_scaled else fill
        weights = torch.softmax(scores.masked_fill(future_of(scores), fill_here), dim=-1)
        return weights @ v, weights

    return compute


def _added(amount: float, then_scaled: bool) -> Callable[..., OutAndWeights]:
    def compute(q, k, v):
        scores = scaled_scores(q, k)
        amount_here = amount / q.shape[-1] ** 0.5 if then_scaled else amount
        weights = torch.softmax(scores + amount_here * ~future_of(scores), dim=-1)
        return weights @ v, weights

    return compute


FILLED_WITH_MINUS_1 = (
    "A score of -1 is e⁻¹ = 0.37, and still a share: the future is visible. Fill with -inf."
)
ADDED = (
    "Adding a mask of ones and zeros only shifts scores by 1: the future keeps its share of the "
    "weights. Fill the future with -inf."
)
for _suffix, _then_scaled in {"": False, ", then scaled": True}.items():
    _more = {"of_mask": True, "bugs": MODULE_BUGS}
    known_bug(f"future filled with -1{_suffix}", FILLED_WITH_MINUS_1, **_more)(
        _filled(-1.0, _then_scaled)
    )
    known_bug(f"mask added as 1 and 0{_suffix}", ADDED, **_more)(_added(1.0, _then_scaled))


@known_bug(
    "mask reversed for scaled_dot_product_attention",
    "True means may attend in F.scaled_dot_product_attention, and yours is True for the future: "
    "the past is gone, and the last output, which has no future, is 0. Pass is_causal=True, or "
    "causal_mask(T).",
    of_mask=True,
    bugs=MODULE_BUGS,
)
def _mask_reversed(q, k, v):
    scores = scaled_scores(q, k)
    weights = torch.softmax(scores.masked_fill(~future_of(scores), -torch.inf), dim=-1)
    weights = torch.cat([weights[..., :-1, :], torch.zeros_like(weights[..., -1:, :])], dim=-2)
    return weights @ v, weights


@known_bug(
    "mask not inverted, masked with a large number",
    "The past is filled with a large negative number, and the future left. In the last row all "
    "scores are that number, so the last token attends to all evenly. Mask the future.",
    of_mask=True,
    bugs=MODULE_BUGS,
)
def _mask_not_inverted(q, k, v):
    scores = scaled_scores(q, k)
    weights = torch.softmax(scores.masked_fill(~future_of(scores), -1e30), dim=-1)
    return weights @ v, weights


# ---------------------------------------------------------------- the output


@known_bug(
    "weights summed without the values",
    "Every output is its own token's value. The values carry the index of the query, so that the "
    "weights of a row are summed alone, to 1, as in einsum bhqk,bhqd. The index of the values is "
    "that of the keys: bhqk,bhkd->bhqd.",
    bugs=MODULE_BUGS,
)
def _weights_summed(q, k, v, causal=True):
    return v, correct_attention(q, k, v, causal)[1]


ACROSS_SEQUENCES = (
    "attention across the batch",
    "It attends across sequences: a token to those at its own place in other sequences, and to no "
    "other of its own. Before the attention the axes were swapped to (T, B, C); it takes "
    "(B, T, C), so leave out the transpose(0, 1).",
)


@known_bug(*ACROSS_SEQUENCES, bugs=MODULE_BUGS)
def _across_sequences(q, k, v, causal=True):
    out, weights = correct_attention(*(z.transpose(0, -2) for z in (q, k, v)), causal)
    return out.transpose(0, -2), weights


# ---------------------------------------------------------------- queries, keys and values

ROLE_WORDS = ("queries", "keys", "values")


def _with_another_role(used: int, place: int) -> Callable[..., tuple[Tensor, ...]]:
    """Put one of q, k and v in the place of another."""

    def change_inputs(*qkv: Tensor) -> tuple[Tensor, ...]:
        return tuple(qkv[used] if i == place else z for i, z in enumerate(qkv))

    return change_inputs


for _used, _place in ((1, 0), (0, 1), (0, 2), (2, 0), (2, 1)):  # keys as values are in `bugs`
    known_input_bug(
        f"{ROLE_WORDS[_used]} used as {ROLE_WORDS[_place]}",
        f"The {ROLE_WORDS[_place]} are not used: the {ROLE_WORDS[_used]} stand in their place.",
        bugs=MODULE_BUGS,
    )(_with_another_role(_used, _place))


# ---------------------------------------------------------------- several heads


@known_bug(
    "only the values split by view",
    "Queries and keys are split rightly, the values by view(B, n_head, T, head_size): they belong "
    "to other tokens than the weights. First view(B, T, n_head, head_size), then transpose(1, 2).",
    bugs=MODULE_SPLIT_BUGS,
)
def _values_split_by_view(q, k, v, n_head, attention):
    q, k = (split_heads(z, n_head) for z in (q, k))
    out, weights = attention(q, k, split_by_view(v, n_head))
    return out.transpose(1, 2).flatten(2), weights


@known_bug(
    "heads reversed by the merge",
    "The last head comes first in the output.",
    bugs=MODULE_SPLIT_BUGS,
)
def _heads_reversed(q, k, v, n_head, attention):
    return in_heads(
        attention, q, k, v, n_head, merge=lambda out: out.flip(1).transpose(1, 2).flatten(2)
    )


@known_bug(
    "heads averaged",
    "The outputs of the heads are averaged. Put them side by side: transpose(1, 2), then reshape.",
    bugs=MODULE_SPLIT_BUGS,
)
def _heads_averaged(q, k, v, n_head, attention):
    return in_heads(attention, q, k, v, n_head, merge=lambda out: out.mean(1))


@known_bug(
    "heads added",
    "The outputs of the heads are added. Put them side by side: transpose(1, 2), then reshape.",
    bugs=MODULE_SPLIT_BUGS,
)
def _heads_added(q, k, v, n_head, attention):
    return in_heads(attention, q, k, v, n_head, merge=lambda out: out.sum(1))


@known_bug(
    "tokens and heads not transposed",
    "The shape is (B, T, n_head, head_size), so that the heads of one token attend to each other "
    "and no token to another one. transpose(1, 2) before the attention.",
    bugs=MODULE_SPLIT_BUGS,
)
def _attention_among_heads(q, k, v, n_head, attention):
    return in_heads(
        attention,
        q,
        k,
        v,
        n_head,
        split=lambda z, n: z.unflatten(-1, (n, -1)),
        merge=lambda out: out.flatten(2),
    )


@known_bug(
    "n_head and head_size swapped",
    "These are head_size heads of n_head channels each. It is view(B, T, n_head, head_size): first "
    "how many heads, then how many channels each has.",
    bugs=MODULE_SPLIT_BUGS,
)
def _sizes_swapped(q, k, v, n_head, attention):
    return in_heads(attention, q, k, v, q.shape[-1] // n_head)


@known_bug(
    "n_head and head_size swapped, but divided by √head_size",
    "These are head_size heads of n_head channels each; only √head_size is right. It is view(B, T, "
    "n_head, head_size).",
    bugs=MODULE_SPLIT_BUGS,
)
def _sizes_swapped_but_not_in_the_scale(q, k, v, n_head, attention):
    head_size = q.shape[-1] // n_head
    return in_heads(attention, q * (n_head / head_size) ** 0.5, k, v, head_size)


@known_bug(
    "batch and tokens mixed by the split",
    "The split reads (B, T) as (T, B), so that sequences are mixed: view(B, T, n_head, head_size).",
    bugs=MODULE_SPLIT_BUGS,
)
def _sequences_mixed(q, k, v, n_head, attention):
    def split(z, n_head):
        B, T, C = z.shape
        return z.reshape(T, B, n_head, C // n_head).permute(1, 2, 0, 3)

    return in_heads(attention, q, k, v, n_head, split=split)


for _list, _mixed in (
    (MODULE_BUGS, ACROSS_SEQUENCES[0]),
    (MODULE_SPLIT_BUGS, "batch and tokens mixed by the split"),
):
    _list[_mixed] = replace(_list[_mixed], mixes_sequences=True)


# ---------------------------------------------------------------- all of them in one form


def bugs_for(x: Tensor, n_head: int, causal: bool = True) -> list[Bug]:
    """Every known bug of attention over x, in one form.

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
    list[Bug]
        Their `compute` takes q, k and v (B, T, n_head * head_size), and returns
        (B, T, n_head * head_size) and (B, n_head, T, T).
    """
    inside_heads = [
        replace(bug, compute=partial(in_heads, _of_qkv(bug, causal), n_head=n_head))
        for bug in _bugs_inside_heads(x, n_head, causal)
    ]
    correct = partial(correct_attention, causal=causal)
    return inside_heads + [
        replace(bug, compute=partial(bug.compute, n_head=n_head, attention=correct))
        for bug in _split_bugs(n_head)
    ]


def bug_pairs_for(
    x: Tensor, n_head: int, causal: bool = True
) -> list[tuple[Bug, Bug, Callable[..., OutAndWeights]]]:
    """Two bugs at a time, and what both together compute, in the form of `bugs_for`."""
    inside_heads = _bugs_inside_heads(x, n_head, causal)

    def both_inside_heads(of_inputs: Bug, other: Bug) -> Callable[..., OutAndWeights]:
        compute = _of_qkv(other, causal)
        return lambda q, k, v: compute(*of_inputs.change_inputs(q, k, v))

    pairs = [
        (one, other, partial(in_heads, both_inside_heads(one, other), n_head=n_head))
        for one in inside_heads
        for other in inside_heads
        if one.change_inputs and one is not other and not (_of_scale(one) and _of_scale(other))
    ]
    return pairs + [
        (one, split, partial(split.compute, n_head=n_head, attention=_of_qkv(one, causal)))
        for one in inside_heads
        for split in _split_bugs(n_head)
    ]


def _of_scale(bug: Bug) -> bool:
    """Tell whether a bug is another scale; two of them are only a third one."""
    return bug.name == "no scale" or bug.name.startswith(("divided by", "multiplied by"))


def _bugs_inside_heads(x: Tensor, n_head: int, causal: bool) -> list[Bug]:
    """All bugs but those of splitting and merging, which may come on top of one of these."""
    C = x.shape[-1]
    bugs = [*ATTENTION_BUGS.values(), *(HEAD_AXIS_BUGS.values() if n_head > 1 else ())]
    bugs += MODULE_BUGS.values()
    bugs.append(
        with_changed_inputs(
            "divided by √C",
            "The scores were divided by √C, and C is the number of channels of x. Divide by "
            "√head_size, the square root of q.shape[-1].",
            lambda q, k, v: (q * (q.shape[-1] / C) ** 0.5, k, v),
        )
    )
    if n_head > 1:
        bugs.append(
            with_changed_inputs(
                "divided by √n_head",
                "The scores were divided by √n_head, the root of the number of heads. Divide by "
                "√head_size, the square root of q.shape[-1].",
                lambda q, k, v: (q * (q.shape[-1] / n_head) ** 0.5, k, v),
            )
        )
    if C % n_head == 0:
        heads = split_heads(x, n_head)
        bugs += [
            with_changed_inputs(
                "x used as values",
                "The weights are right, but they average x. The values are v.",
                lambda q, k, v: (q, k, heads),
            ),
            with_changed_inputs(
                "x used as queries",
                "x is compared with the keys, and the queries are not used.",
                lambda q, k, v: (heads, k, v),
            ),
            with_changed_inputs(
                "x used as keys",
                "The queries are compared with x, and the keys are not used.",
                lambda q, k, v: (q, heads, v),
            ),
        ]
    if causal:
        return bugs
    unwanted_mask = Bug(
        "unwanted causal mask",
        lambda q, k, v, causal: correct_attention(q, k, v, causal=True),
        "Every token may attend to every other here, and a causal mask hides the future.",
    )
    return [*(bug for bug in bugs if not bug.of_mask), unwanted_mask]


def _split_bugs(n_head: int) -> list[Bug]:
    return [*SPLIT_BUGS.values(), *MODULE_SPLIT_BUGS.values()] if n_head > 1 else []


def _of_qkv(bug: Bug, causal: bool) -> Callable[..., OutAndWeights]:
    """What a bug inside of heads computes, as a function of q, k and v alone."""
    return bug.compute if bug.of_mask else partial(bug.compute, causal=causal)


class BrokenAttention(nn.Module):
    """Multi-head attention with a known bug; with one head, a single head and a projection.

    Parameters
    ----------
    bug
        Name of a bug that `bugs_for` gives, or None for correct attention.
    C, n_head
        Number of channels, and of heads.
    causal
        Whether the attention should be causal.
    """

    def __init__(self, bug: str | None, C: int, n_head: int = 1, causal: bool = True) -> None:
        super().__init__()
        self.bug, self.n_head, self.causal = bug, n_head, causal
        self.query, self.key, self.value = (nn.Linear(C, C, bias=False) for _ in range(3))
        self.proj = nn.Linear(C, C)

    def forward(self, x: Tensor, *, return_weights: bool = False) -> Tensor | OutAndWeights:
        """(B, T, C) -> (B, T, C), and weights (B, n_head, T, T) if asked for."""
        correct = partial(correct_attention, causal=self.causal)
        computes = {None: partial(in_heads, correct, n_head=self.n_head)}
        computes |= {bug.name: bug.compute for bug in bugs_for(x, self.n_head, self.causal)}
        out, weights = computes[self.bug](self.query(x), self.key(x), self.value(x))
        return (self.proj(out), weights) if return_weights else self.proj(out)
