"""Known bugs of attention, each one line away from the right formula.

`correct_attention` is the right formula, and each bug differs from it in one place. The exercises
recognise a learner's mistake by these bugs. `diagnose` computes each of them from the queries, keys
and values of a module, and names the one that gives the same numbers as the module.

There are three lists, because not every bug needs to know the same things:

- `ATTENTION_BUGS` take q, k (..., T, d) and v (..., T, d_v), and return (out, weights):
  (..., T, d_v) and (..., T, T). With ``causal=False`` every token may attend to every other.
- `HEAD_AXIS_BUGS` are called in the same way and need an axis of heads, (B, n_head, T, d).
- `SPLIT_BUGS` split the channels into heads or merge them in a wrong way. They take q, k and v
  (B, T, C), n_head, and the attention to compute in each head; they return (B, T, C) and
  (B, n_head, T, T).

`module_bugs` adds those that only `diagnose` looks for, and brings all of them into one form.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from helpers.attention import causal_mask

OutAndWeights = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Bug:
    """A known bug of attention.

    Attributes
    ----------
    name
        What is wrong, in a few words.
    compute
        Attention with this bug; called as the list in which it stands says.
    message
        What to tell the author: the symptom, and what to write instead.
    of_mask
        Whether it is a bug of the causal mask. Then `compute` takes no `causal`.
    change_inputs
        For a bug that equals correct attention to other q, k and v: what makes these.
    mixes_sequences
        Whether an output depends on other sequences of the batch.
    """

    name: str
    compute: Callable[..., OutAndWeights]
    message: str
    of_mask: bool = False
    change_inputs: Callable[..., tuple[Tensor, Tensor, Tensor]] | None = None
    mixes_sequences: bool = False


ATTENTION_BUGS: dict[str, Bug] = {}
HEAD_AXIS_BUGS: dict[str, Bug] = {}
SPLIT_BUGS: dict[str, Bug] = {}


def known_bug(
    name: str, message: str, *, of_mask: bool = False, bugs: dict[str, Bug] = ATTENTION_BUGS
) -> Callable:
    """Add the function below to a list of bugs."""

    def add(compute: Callable) -> Callable:
        bugs[name] = Bug(name, compute, message, of_mask)
        return compute

    return add


def known_input_bug(name: str, message: str, *, bugs: dict[str, Bug] = ATTENTION_BUGS) -> Callable:
    """Add correct attention with the q, k and v of the function below to a list of bugs."""

    def add(change_inputs: Callable) -> Callable:
        bugs[name] = with_changed_inputs(name, message, change_inputs)
        return change_inputs

    return add


def with_changed_inputs(name: str, message: str, change_inputs: Callable) -> Bug:
    """The bug of computing correct attention from other q, k and v."""

    def compute(q, k, v, causal=True):
        return correct_attention(*change_inputs(q, k, v), causal)

    return Bug(name, compute, message, change_inputs=change_inputs)


def correct_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = True) -> OutAndWeights:
    """Attention without a bug: equation 1 of Vaswani et al. (2017)."""
    weights = torch.softmax(masked_scores(scaled_scores(q, k), causal), dim=-1)
    return weights @ v, weights


def scaled_scores(q: Tensor, k: Tensor) -> Tensor:
    """(..., T, d) and (..., T, d) -> (..., T, T)."""
    return q @ k.mT / q.shape[-1] ** 0.5


def masked_scores(scores: Tensor, causal: bool = True) -> Tensor:
    """The scores with -inf for the future."""
    return scores.masked_fill(future_of(scores), -torch.inf) if causal else scores


def future_of(scores: Tensor) -> Tensor:
    """(T, T), True where the key is later than the query."""
    return ~causal_mask(scores.shape[-1]).to(scores.device)


# ---------------------------------------------------------------- the softmax and the scores


@known_bug(
    "softmax over the queries",
    "The columns of the weights sum to 1, the rows do not. The softmax ran over the queries (dim=1 "
    "of (B, T, T), dim=-2 in general); it belongs to the keys, dim=-1.",
)
def _softmax_over_queries(q, k, v, causal=True):
    weights = torch.softmax(masked_scores(scaled_scores(q, k), causal), dim=-2)
    return weights @ v, weights


@known_bug(
    "scores thrown away",
    "The output is the plain causal mean of v: the scores were replaced by zeros, and queries and "
    "keys are not used at all.",
)
def _scores_thrown_away(q, k, v, causal=True):
    weights = torch.softmax(masked_scores(torch.zeros_like(scaled_scores(q, k)), causal), dim=-1)
    return weights @ v, weights


# ---------------------------------------------------------------- the mask


@known_bug(
    "masked after the softmax",
    "The future got its share of the weights and was set to 0 afterwards, so all rows but the last "
    "sum to less than 1. Mask the scores, then take the softmax.",
    of_mask=True,
)
def _masked_after_softmax(q, k, v):
    weights = torch.tril(torch.softmax(scaled_scores(q, k), dim=-1))
    return weights @ v, weights


@known_bug(
    "future filled with 0",
    "A score of 0 is e⁰ = 1, a full share: the future is visible. Fill with -inf (multiplying "
    "scores by tril is the same mistake).",
    of_mask=True,
)
def _future_filled_with_zero(q, k, v):
    scores = scaled_scores(q, k)
    weights = torch.softmax(scores.masked_fill(future_of(scores), 0.0), dim=-1)
    return weights @ v, weights


@known_bug(
    "diagonal masked too",
    "The mask keeps every token from itself, so token 0 has no key left and its row is nan.",
    of_mask=True,
)
def _diagonal_masked(q, k, v, fill=-torch.inf):
    scores = scaled_scores(q, k)
    not_before = torch.ones_like(scores).triu() == 1
    weights = torch.softmax(scores.masked_fill(not_before, fill), dim=-1)
    return weights @ v, weights


@known_bug(
    "diagonal masked with -1e9",
    "The mask keeps every token from itself. Row 0 holds -1e9 everywhere, so token 0 attends "
    "evenly to all tokens, also to the whole future.",
    of_mask=True,
)
def _diagonal_masked_with_large_number(q, k, v):
    return _diagonal_masked(q, k, v, fill=-1e9)


@known_bug(
    "0 times infinity",
    "Everything is nan: (1 - tril) * -inf is 0 * inf = nan where it should be 0. Use masked_fill.",
    of_mask=True,
)
def _zero_times_infinity(q, k, v):
    scores = scaled_scores(q, k)
    weights = torch.softmax(scores + (1 - torch.ones_like(scores).tril()) * -torch.inf, dim=-1)
    return weights @ v, weights


@known_bug("no mask", "Every token attends to the future: the mask is missing.", of_mask=True)
def _no_mask(q, k, v):
    return correct_attention(q, k, v, causal=False)


@known_bug(
    "upper triangle kept",
    "Each token attends to itself and its future: triu where tril was meant, or the mask inverted.",
    of_mask=True,
)
def _upper_triangle_kept(q, k, v):
    scores = scaled_scores(q, k)
    past = torch.ones_like(scores).tril(diagonal=-1) == 1
    weights = torch.softmax(scores.masked_fill(past, -torch.inf), dim=-1)
    return weights @ v, weights


@known_bug(
    "mask not inverted",
    "masked_fill fills where its mask is True, and yours is True where a token may attend: the "
    "past is gone and the future left, and the last row, which has no future, is nan. Invert it: "
    "~causal_mask(T).",
    of_mask=True,
)
def _mask_not_inverted(q, k, v):
    scores = scaled_scores(q, k)
    weights = torch.softmax(scores.masked_fill(~future_of(scores), -torch.inf), dim=-1)
    return weights @ v, weights


@known_bug(
    "mask one too far",
    "Each token attends to one token of its future: the mask begins one too far to the right. It "
    "is triu(diagonal=1), or tril() without a diagonal.",
    of_mask=True,
)
def _mask_one_too_far(q, k, v):
    scores = scaled_scores(q, k)
    too_late = torch.ones_like(scores).triu(diagonal=2) == 1
    weights = torch.softmax(scores.masked_fill(too_late, -torch.inf), dim=-1)
    return weights @ v, weights


# ---------------------------------------------------------------- the inputs: scale, q, k and v


@known_input_bug(
    "no scale",
    "Right but for the scale: scores must be divided by √head_size, the square root of "
    "q.shape[-1].",
)
def _no_scale(q, k, v):
    return q * q.shape[-1] ** 0.5, k, v


@known_input_bug(
    "multiplied by √head_size",
    "The scores were multiplied by √head_size (or divided by its inverse); they must be divided by "
    "it.",
)
def _multiplied_by_root(q, k, v):
    return q * q.shape[-1], k, v


@known_input_bug(
    "divided by head_size, not √head_size",
    "The scores were divided by head_size itself, q.shape[-1]; divide by its square root.",
)
def _divided_by_head_size(q, k, v):
    return q / q.shape[-1] ** 0.5, k, v


@known_input_bug(
    "divided by √T",
    "The scores were divided by √T, and T is the number of tokens. Divide by √head_size, the "
    "square root of q.shape[-1].",
)
def _divided_by_root_of_T(q, k, v):
    return q * (q.shape[-1] / q.shape[-2]) ** 0.5, k, v


@known_input_bug(
    "queries and keys swapped",
    "The scores are transposed: it is q @ k.mT, the query on the left.",
)
def _queries_and_keys_swapped(q, k, v):
    return k, q, v


@known_input_bug(
    "keys used as values",
    "The weights are right, but they average the keys. The values are v.",
)
def _keys_used_as_values(q, k, v):
    return q, k, k


# ---------------------------------------------------------------- the output


@known_bug(
    "weights transposed",
    "The weights are right, but out is weights.mT @ v: every output is collected from the tokens "
    "that attend to it, the future ones. It is weights @ v.",
)
def _weights_transposed(q, k, v, causal=True):
    weights = correct_attention(q, k, v, causal)[1]
    return weights.mT @ v, weights


# ---------------------------------------------------------------- several heads


@known_bug(
    "softmax over the heads",
    "dim=1 of (B, n_head, T, T) is the head: for each query and key the weights of all heads sum "
    "to 1, and the future is nan. The keys are the last axis, dim=-1.",
    bugs=HEAD_AXIS_BUGS,
)
def _softmax_over_heads(q, k, v, causal=True, fill=-torch.inf):
    scores = scaled_scores(q, k)
    scores = scores.masked_fill(future_of(scores), fill) if causal else scores
    weights = torch.softmax(scores, dim=1)
    return weights @ v, weights


@known_bug(
    "softmax over the heads, masked with -1e9",
    "dim=1 of (B, n_head, T, T) is the head: for each query and key the weights of all heads sum "
    "to 1, also for keys in the future. The keys are the last axis, dim=-1.",
    of_mask=True,
    bugs=HEAD_AXIS_BUGS,
)
def _softmax_over_heads_with_large_number(q, k, v):
    return _softmax_over_heads(q, k, v, fill=-1e9)


def split_heads(z: Tensor, n_head: int) -> Tensor:
    """(B, T, C) -> (B, n_head, T, head_size): view, then transpose."""
    B, T, C = z.shape
    return z.reshape(B, T, n_head, C // n_head).transpose(1, 2)


def merge_heads(out: Tensor) -> Tensor:
    """(B, n_head, T, head_size) -> (B, T, C): transpose back, then join the channels."""
    return out.transpose(1, 2).flatten(2)


def in_heads(
    attention: Callable[..., OutAndWeights],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    n_head: int,
    split: Callable = split_heads,
    merge: Callable = merge_heads,
) -> OutAndWeights:
    """Compute an attention in each head: q, k, v (B, T, C) -> (B, T, C) and (B, n_head, T, T)."""
    out, weights = attention(*(split(z, n_head) for z in (q, k, v)))
    return merge(out), weights


def split_by_view(z: Tensor, n_head: int) -> Tensor:
    """The wrong split, without a transpose: a head gets all channels of a few tokens."""
    B, T, C = z.shape
    return z.reshape(B, n_head, T, C // n_head)


def merge_by_view(out: Tensor) -> Tensor:
    """The wrong merge, without a transpose."""
    B, n_head, T, head_size = out.shape
    return out.reshape(B, T, n_head * head_size)


def _split_interleaved(z, n_head):
    B, T, C = z.shape
    return z.reshape(B, T, C // n_head, n_head).permute(0, 3, 1, 2)


def _merge_interleaved(out):
    return out.permute(0, 2, 3, 1).flatten(2)


@known_bug(
    "split by view, without transpose",
    "view(B, n_head, T, head_size) keeps the numbers in their order, so a head got all channels of "
    "a few tokens, and tokens of the future among them. First view(B, T, n_head, head_size), then "
    "transpose(1, 2).",
    bugs=SPLIT_BUGS,
)
def _wrong_split(q, k, v, n_head, attention):
    return in_heads(attention, q, k, v, n_head, split=split_by_view)


@known_bug(
    "merged by view, without transpose",
    "Split right, merged wrong: the heads stood in front of the tokens when they were flattened. "
    "transpose(1, 2) back first, then reshape.",
    bugs=SPLIT_BUGS,
)
def _wrong_merge(q, k, v, n_head, attention):
    return in_heads(attention, q, k, v, n_head, merge=merge_by_view)


@known_bug(
    "split and merged by view",
    "Both the split and the merge lack the transpose. Nothing leaks, since the two undo each "
    "other, but each head gets only a few whole tokens, so late outputs do not depend on early "
    "tokens.",
    bugs=SPLIT_BUGS,
)
def _wrong_split_and_merge(q, k, v, n_head, attention):
    return in_heads(attention, q, k, v, n_head, split=split_by_view, merge=merge_by_view)


@known_bug(
    "channels interleaved by the split",
    "Head 0 got channels 0, n_head, 2·n_head, … A head has neighbouring channels: view(B, T, "
    "n_head, head_size), in this order.",
    bugs=SPLIT_BUGS,
)
def _interleaved_split(q, k, v, n_head, attention):
    return in_heads(attention, q, k, v, n_head, split=_split_interleaved)


@known_bug(
    "channels interleaved by the merge",
    "The channels of the heads alternate in the output. First all channels of head 0, then all of "
    "head 1: transpose(1, 2), then reshape.",
    bugs=SPLIT_BUGS,
)
def _interleaved_merge(q, k, v, n_head, attention):
    return in_heads(attention, q, k, v, n_head, merge=_merge_interleaved)


@known_bug(
    "one large head",
    "n_head made no difference: this is a single head of all C channels.",
    bugs=SPLIT_BUGS,
)
def _one_large_head(q, k, v, n_head, attention):
    return in_heads(attention, q, k, v, 1)
