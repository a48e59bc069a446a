"""Wrong answers to the exercises of notebook 14, as learners might write them."""

import torch
import torch.nn.functional as F

from helpers.attention import causal_mask
from helpers.positions import rotary
from tests.lesson.answers import wrong

# ---------------------------------------------------------------- 14.1 attend


def turned(q, k, v, cache):
    """Queries, all keys and all values, as they should be."""
    n = cache[0].size(2)
    p = torch.arange(n, n + q.size(2))
    keys, values = torch.cat((cache[0], rotary(k, p)), dim=2), torch.cat((cache[1], v), dim=2)
    return rotary(q, p), keys, values


def weighed(q, keys, values, mask=None):
    """The formula; the mask is causal and ends at the bottom right if none is given."""
    mask = causal_mask(q.size(2), keys.size(2)) if mask is None else mask
    return F.scaled_dot_product_attention(q, keys, values, mask)


@wrong("14.1", named="old keys lost")
def the_cache_as_it_came(q, k, v, cache):
    return weighed(*turned(q, k, v, cache)), cache


@wrong("14.1", "no cache returned")
def out_alone(q, k, v, cache):
    return weighed(*turned(q, k, v, cache))


@wrong("14.1", "keys and values not in a pair")
def three_results(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    return weighed(q, keys, values), keys, values


@wrong("14.1", "a mask that does not fit, in PyTorch's words")
def square_mask_for_pytorch(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    return weighed(q, keys, values, causal_mask(q.size(2))), (keys, values)


@wrong("14.1", "the first of the new tokens is masked for itself")
def strictly_earlier(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    mask = causal_mask(q.size(2), keys.size(2))
    earlier = mask.tril(cache[0].size(2) - 1)
    return weighed(q, keys, values, torch.where(earlier.any(1, keepdim=True), earlier, mask)), (
        keys,
        values,
    )


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


@wrong("14.1", "a cache of its own")
def a_cache_for_all_blocks(q, k, v, cache, kept=[]):  # noqa: B006
    kept[:] = kept if cache[0].size(2) else cache
    _, keys, values = turned(q, k, v, tuple(kept))
    q = rotary(q, torch.arange(keys.size(2))[-q.size(2) :])
    kept[:] = keys, values
    return weighed(q, keys, values), (keys, values)


@wrong("14.2", "the whole row at once")
def softmax_of_the_row(scores, values):
    return torch.softmax(scores, dim=0) @ values
