"""The exercises of notebook 14: attention as a loop that keeps keys, three sums, or one matrix."""

import itertools

import torch
import torch.nn.functional as F

from feedback.grading import Exercise
from helpers.attention import attention, causal_mask
from helpers.cost import attend_once
from helpers.positions import rotary

# ---------------------------------------------------------------- 14.1


def attend(q, k, v, cache):
    """New q, k, v (B, n_head, T_new, d), cache (keys, values) -> (out, (all keys, all values))."""
    keys, values = cache
    T_old, T_new = keys.shape[2], q.shape[2]
    positions = torch.arange(T_old, T_old + T_new)
    keys = torch.cat([keys, rotary(k, positions)], dim=2)
    values = torch.cat([values, v], dim=2)
    out, _ = attention(rotary(q, positions), keys, values, causal_mask(T_new, T_old + T_new))
    return out, (keys, values)


def in_pieces(attend, q, k, v, pieces):
    """The outputs (B, n_head, T, d) when the tokens come in pieces of so many.

    In turns with them, the answer is called as by another block, which has a cache of its own.
    """
    cache, outputs = (k[:, :, :0], v[:, :, :0]), []
    other = cache
    ends = [*itertools.accumulate(pieces[:-1])]  # the last piece is what is left
    for piece in zip(*(z.tensor_split(ends, dim=2) for z in (q, k, v)), strict=True):
        if piece[0].shape[2]:
            out, cache = attend_once(attend, *piece, cache)
            outputs.append(out)
            _, other = attend_once(attend, *(2 * z for z in piece), other)
    return torch.cat(outputs, dim=2)


def mask_of_ones_and_zeros(q, k, v, cache):
    T_old, T_new = cache[0].shape[2], q.shape[2]
    positions = torch.arange(T_old, T_old + T_new)
    k, v = torch.cat([cache[0], rotary(k, positions)], dim=2), torch.cat([cache[1], v], dim=2)
    mask = causal_mask(T_new, T_old + T_new).float()
    return F.scaled_dot_product_attention(rotary(q, positions), k, v, attn_mask=mask), (k, v)


def _queries_keys_values():
    generator = torch.Generator().manual_seed(0)
    cases = []
    for shape, pieces in (((2, 3, 9, 4), (2, 3, 1, 3)), ((3, 2, 7, 6), (1, 2, 4))):
        q, k, v = 1.5 * torch.randn(3, *shape, generator=generator)
        cases.append((q, k, v, pieces))
    return cases


ATTEND = Exercise(
    "14.1",
    attend,
    _queries_keys_values,
    used=in_pieces,
    axes={name: "B n_head T d" for name in ("q", "k", "v", "return")},
)


# ---------------------------------------------------------------- 14.2


def online_softmax(scores, values):
    """(T,), (T, D) -> (D,): softmax(scores) @ values, with one look at each score."""
    largest, total = torch.tensor(-torch.inf), torch.tensor(0.0)
    weighted = torch.zeros(values.shape[1])
    for score, value in zip(scores, values, strict=True):
        new = torch.maximum(largest, score)
        factor, weight = torch.exp(largest - new), torch.exp(score - new)
        total = factor * total + weight
        weighted = factor * weighted + weight * value
        largest = new
    return weighted / total


def from_the_first_score(scores, values, factor, weight):
    """The same loop, begun with the first score: how e is raised, for two sums and a new score."""
    largest, total, weighted = scores[0], torch.tensor(1.0), values[0]
    for score, value in zip(scores[1:], values[1:], strict=True):
        new = torch.maximum(largest, score)
        f, w = factor(largest, new), weight(largest, new, score)
        total, weighted = f * total + w, f * weighted + w * value
        largest = new
    return weighted / total


def rescaled_the_wrong_way(scores, values):
    return from_the_first_score(
        scores,
        values,
        lambda old, new: (new - old).exp(),
        lambda old, new, score: (score - new).exp(),
    )


def weighted_by_the_old_maximum(scores, values):
    return from_the_first_score(
        scores,
        values,
        lambda old, new: (old - new).exp(),
        lambda old, new, score: (score - old).exp(),
    )


def divided_at_each_step(scores, values):
    largest, total, out = torch.tensor(-torch.inf), torch.tensor(0.0), torch.zeros(values.shape[1])
    for score, value in zip(scores, values, strict=True):
        new = torch.maximum(largest, score)
        factor, weight = torch.exp(largest - new), torch.exp(score - new)
        total = factor * total + weight
        out = (factor * out + weight * value) / total
        largest = new
    return out


def no_maximum(scores, values):
    weights = scores.exp()
    return weights @ values / weights.sum()


def _scores_and_values():
    generator = torch.Generator().manual_seed(0)
    mixed, rising, large = (torch.randn(T, generator=generator) for T in (5, 7, 6))
    rising = rising.sort().values
    steps = torch.tensor([0.0, 150.0, 160.0, 300.0, 310.0])  # e to the 150 would overflow
    sizes = ((2 * mixed, 3), (2 * rising, 2), (1000 + large, 4), (large - 1000, 4))
    sizes = (*sizes, (steps, 3), (steps.flip(0), 3))
    return [(s, torch.randn(len(s), D, generator=generator)) for s, D in sizes]


ONLINE_SOFTMAX = Exercise(
    "14.2",
    online_softmax,
    _scores_and_values,
    atol=1e-4,  # right forms that carry a logarithm lose digits at scores around 1000
    axes={"scores": "T", "values": "T D", "return": "D"},
    without="softmax",
    intermediates=(
        ("the sum of the exponentials", lambda scores, values: (scores - scores.max()).exp().sum()),
        ("the weights, before the values are averaged", lambda scores, values: scores.softmax(0)),
        ("the plain mean of the values", lambda scores, values: values.mean(dim=0)),
    ),
)


# ---------------------------------------------------------------- 14.3


def linear_attention(q, k, v):
    """q, k (T, D), v (T, D_v) -> (T, D_v), in one loop over t and without a T x T matrix."""
    matrix, total = torch.zeros(k.shape[1], v.shape[1]), torch.zeros(k.shape[1])
    outputs = []
    for t in range(len(q)):
        matrix = matrix + torch.outer(k[t], v[t])
        total = total + k[t]
        outputs.append(q[t] @ matrix / (q[t] @ total))
    return torch.stack(outputs)


def with_a_tiny_number_in_the_divisor(q, k, v):  # as published code has it, against 0 / 0
    weights = (q @ k.mT).tril()
    return weights @ v / (weights.sum(dim=-1, keepdim=True) + 1e-6)


def over_all_tokens(q, k, v):
    return q @ (k.mT @ v) / (q @ k.sum(dim=0))[:, None]


def exponentials_of_scores(q, k, v):
    scores = (q @ k.mT).masked_fill(~causal_mask(len(q)), -torch.inf)
    return scores.softmax(dim=-1) @ v


def scaled_exponentials_of_scores(q, k, v):
    return attention(q, k, v, causal_mask(len(q)))[0]


def features_made_again(q, k, v):
    return linear_attention(F.elu(q) + 1, F.elu(k) + 1, v)


def query_and_key_exchanged(q, k, v):
    return linear_attention(k, q, v)


def read_before_written(q, k, v):
    matrix, total = torch.zeros(k.shape[1], v.shape[1]), torch.zeros(k.shape[1])
    outputs = []
    for t in range(len(q)):
        outputs.append(q[t] @ matrix / (q[t] @ total))
        matrix, total = matrix + torch.outer(k[t], v[t]), total + k[t]
    return torch.stack(outputs)


def divisor_one_token_behind(q, k, v):
    matrix, total = torch.zeros(k.shape[1], v.shape[1]), torch.zeros(k.shape[1])
    outputs = []
    for t in range(len(q)):
        matrix = matrix + torch.outer(k[t], v[t])
        outputs.append(q[t] @ matrix / (q[t] @ total))
        total = total + k[t]
    return torch.stack(outputs)


def _features_and_values():
    generator = torch.Generator().manual_seed(0)
    cases = []
    for T, D, D_v in ((6, 3, 4), (8, 5, 2)):
        q, k = torch.rand(2, T, D, generator=generator)
        cases.append((q, k, torch.randn(T, D_v, generator=generator)))
    return cases


LINEAR_ATTENTION = Exercise(
    "14.3",
    linear_attention,
    _features_and_values,
    accepted=(with_a_tiny_number_in_the_divisor,),
    axes={"q": "T D", "k": "T D", "v": "T D_v", "return": "T D_v"},
    optional=True,
    intermediates=(
        (
            "the divisors",
            lambda q, k, v: (q * k.cumsum(dim=0)).sum(dim=-1),
        ),
        ("the matrix after the last token", lambda q, k, v: k.mT @ v),
    ),
)


EXERCISES = ATTEND, ONLINE_SOFTMAX, LINEAR_ATTENTION
