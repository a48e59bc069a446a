"""Wrong answers to the exercises of notebook 14, as learners might write them."""

import torch

from tests.lesson.answers import wrong

# ---------------------------------------------------------------- 14.2 online softmax


@wrong("14.2", named="divided by the number of scores")
def mean_of_products(scores, values):
    return ((scores - scores.max()).exp()[:, None] * values).mean(dim=0)


@wrong("14.2", "only the weights")
def whole_row_of_weights(scores, values):
    return scores.softmax(0)


@wrong("14.2", "the largest score wins")
def hardmax(scores, values):
    return values[scores.argmax()]


# ---------------------------------------------------------------- 14.3 linear attention


@wrong("14.3", named="matrix not accumulated")
def last_outer_product(q, k, v):
    weights = q @ k.T
    return torch.diagonal(weights)[:, None] * v / weights.tril().sum(dim=1, keepdim=True)


@wrong("14.3", "the plain running mean")
def running_mean(q, k, v):
    return v.cumsum(dim=0) / torch.arange(1, len(v) + 1)[:, None]


@wrong("14.3", "all outputs from the last query")
def one_query(q, k, v):
    weights = q[-1] @ k.T
    return (weights[:, None] * v).cumsum(0) / weights.cumsum(0)[:, None]


# ---------------------------------------------------------------- of a blind trial


@wrong("14.2", "the whole row at once")
def softmax_of_the_row(scores, values):
    return torch.softmax(scores, dim=0) @ values
