"""The exercises of notebook 04: one head."""

import torch
from torch import nn

from attention_base.same import seed_all
from attention_clinic.bugs import EXERCISE_BUGS
from feedback.grading import Exercise
from helpers.attention import attention, causal_mask


def _normal(seed, *shapes):
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(*shape, generator=generator) for shape in shapes)


# ---------------------------------------------------------------- 04.1


def score(x, W_query, W_key, i, j):
    """Score of query i for key j, from x (T, C) and two (C, d) matrices: the plain dot product."""
    return (x[i] @ W_query) @ (x[j] @ W_key)


def _score_from_table(x, W_query, W_key, i, j):
    return (x @ W_query @ (x @ W_key).T)[i, j]


def _sum_of_both(x, W_query, W_key, i, j):
    return (x[i] @ W_query + x[j] @ W_key).sum()


def _weight(x, W_query, W_key, i, j):
    scores = x @ W_query @ (x @ W_key).T / W_query.shape[1] ** 0.5
    return torch.softmax(scores, dim=-1)[i, j]


def _product_of_sums(x, W_query, W_key, i, j):
    return (x[i] @ W_query).sum() * (x[j] @ W_key).sum()


def _column(x, W_query, W_key, i, j):
    return x @ W_query @ (x[j] @ W_key)


def _left_out(n):
    return lambda x, W_query, W_key, i, j: (x[i] @ W_query)[:-n] @ (x[j] @ W_key)[:-n]


def _only(n):
    return lambda x, W_query, W_key, i, j: (x[i] @ W_query)[:n] @ (x[j] @ W_key)[:n]


SCORE = Exercise(
    "04.1",
    score,
    axes={"x": "T C", "W_query": "C d", "W_key": "C d"},
    intermediates=(
        ("the query of token i", lambda x, W_query, W_key, i, j: x[i] @ W_query),
        ("the key of token j", lambda x, W_query, W_key, i, j: x[j] @ W_key),
        ("all scores, (T, T)", lambda x, W_query, W_key, i, j: x @ W_query @ (x @ W_key).T),
        ("the sum of query and key, not of their products", _sum_of_both),
        ("the scores of all queries for key j", _column),
        ("the product of two sums: the channels were added up before", _product_of_sums),
        ("the weight of this pair, and not its score", _weight),
        *((f"the score with the last {n} of its products left out", _left_out(n)) for n in (1, 2)),
        *((f"the score of the first {n} channels only", _only(n)) for n in (1, 2)),
    ),
    cases=lambda: [
        (*_normal(0, (7, 3), (3, 2), (3, 2)), 2, 5),  # others than in the text
        (*_normal(1, (5, 4), (4, 3), (4, 3)), 3, 2),
    ],
    accepted=(_score_from_table,),
)


# ---------------------------------------------------------------- 04.2


def plain_matrix(layer):
    """nn.Linear(C, d, bias=False) -> (C, d) matrix M with x @ M == layer(x)."""
    return layer.weight.T


def _by_asking(layer):
    return layer(torch.eye(layer.in_features))


def _linear(C, d):
    seed_all(C + d)
    return nn.Linear(C, d, bias=False)


def _product(layer):
    return layer.weight.T @ layer.weight


def _other_product(layer):
    return layer.weight @ layer.weight.T


def _of_ones(layer):
    return layer(torch.ones(1, layer.in_features))


PLAIN_MATRIX = Exercise(
    "04.2",
    plain_matrix,
    axes={"return": "C d"},
    sizes={"C": lambda layer: layer.in_features, "d": lambda layer: layer.out_features},
    intermediates=(
        ("layer.weight as it is stored, (d, C)", lambda layer: layer.weight),
        ("the (C, C) product of layer.weight.T and layer.weight", _product),
        ("the (d, d) product of layer.weight and layer.weight.T", _other_product),
        ("the layer's result for one token of ones: the sums of the matrix's columns", _of_ones),
    ),
    cases=lambda: [(_linear(5, 3),), (_linear(4, 4),), (_linear(1, 2),), (_linear(3, 1),)],
    accepted=(_by_asking,),
)


# ---------------------------------------------------------------- 04.3


def head(x, W_query, W_key, W_value):
    """(B, T, C), (C, d), (C, d), (C, d_v) -> (B, T, d_v): causal self-attention, scaled."""
    T = x.shape[1]
    q, k, v = x @ W_query, x @ W_key, x @ W_value  # (B, T, d) each
    scores = q @ k.mT / q.shape[-1] ** 0.5  # (B, T, T)
    scores = scores.masked_fill(~causal_mask(T), float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def _head_by_einsum(x, W_query, W_key, W_value):
    T = x.shape[1]
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = torch.einsum("bqd,bkd->bqk", q, k) / W_query.shape[1] ** 0.5
    masked = scores.masked_fill(torch.tril(torch.ones(T, T)) == 0, -1e9)
    return torch.einsum("bqk,bkd->bqd", torch.softmax(masked, dim=-1), v)


def _head_again(x, W_query, W_key, W_value):
    """The head in the words of `attention_clinic.bugs.attention`."""
    T = x.shape[1]  # noqa: F841 - for what a bug divides by
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = q @ k.mT / q.shape[-1] ** 0.5
    future = torch.ones_like(scores).triu(diagonal=1) == 1
    scores = scores.masked_fill(future, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    out = weights @ v
    return out


def loop_stops_early(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    out = torch.zeros_like(v)
    for t in range(x.shape[1]):
        scores = q[:, t : t + 1] @ k[:, :t].mT / q.shape[-1] ** 0.5
        out[:, t : t + 1] = torch.softmax(scores, dim=-1) @ v[:, :t]
    return out


_STEPS = (
    "the queries",
    "the keys",
    "the values, which no weights have averaged",
    "the scores, before the division, the mask and the softmax",
    "the scaled scores, before the mask and the softmax",
    "the masked, scaled scores, before the softmax",
    "the weights, not yet multiplied by the values",
)


def _step(n):
    """A step on the way to the head's output, as a function of its arguments."""

    def step(x, W_query, W_key, W_value):
        q, k, v = x @ W_query, x @ W_key, x @ W_value
        scores = q @ k.mT
        scaled = scores / q.shape[-1] ** 0.5
        masked = scaled.masked_fill(~causal_mask(x.shape[1]), float("-inf"))
        return (q, k, v, scores, scaled, masked, torch.softmax(masked, dim=-1))[n]

    return step


def _best_key(x, W_query, W_key, W_value):
    best = _step(5)(x, W_query, W_key, W_value).argmax(dim=-1)
    return nn.functional.one_hot(best, x.shape[1]).float() @ (x @ W_value)


def _sigmoids(x, W_query, W_key, W_value):
    return _step(5)(x, W_query, W_key, W_value).sigmoid() @ (x @ W_value)


def _mean_of_values(x, W_query, W_key, W_value):
    return head(x, 0 * W_query, W_key, W_value)


def sequences_end_to_end(x, W_query, W_key, W_value):
    B, T, C = x.shape
    return head(x.reshape(1, B * T, C), W_query, W_key, W_value).reshape(B, T, -1)


HEAD = Exercise(
    "04.3",
    head,
    axes={"x": "B T C", "W_query": "C d", "W_key": "C d", "W_value": "C d_v", "return": "B T d_v"},
    intermediates=(
        *((name, _step(n)) for n, name in enumerate(_STEPS)),
        ("the values of the best key alone, of the largest score of each row", _best_key),
        ("the plain causal mean of the values: the scores are not used", _mean_of_values),
        ("the values with sigmoids of the scores as weights, which do not sum to 1", _sigmoids),
    ),
    without="attention",
    ready_made=(attention,),
    named=("T = 1",),
    trained=True,
    cases=lambda: [
        _normal(0, (3, 5, 8), (8, 2), (8, 2), (8, 2)),
        _normal(1, (2, 6, 7), (7, 3), (7, 3), (7, 4)),
    ],
    accepted=(_head_by_einsum,),
    known=dict.fromkeys(EXERCISE_BUGS.values()),
    reworded=_head_again,
    words={'float("-inf")': "-torch.inf"},
)


EXERCISES = (SCORE, PLAIN_MATRIX, HEAD)
