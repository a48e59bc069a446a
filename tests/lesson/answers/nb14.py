"""Wrong answers to the exercises of notebook 14, as learners might write them."""

import torch
import torch.nn.functional as F

from helpers.attention import attention, causal_mask
from helpers.positions import rotary
from tests.lesson.answers import wrong

# ---------------------------------------------------------------- 14.1 attend


def places(q, cache):
    """The positions of the new tokens."""
    n = cache[0].size(2)
    return torch.arange(n, n + q.size(2))


def turned(q, k, v, cache):
    """Queries, all keys and all values, as they should be."""
    p = places(q, cache)
    keys, values = torch.cat((cache[0], rotary(k, p)), dim=2), torch.cat((cache[1], v), dim=2)
    return rotary(q, p), keys, values


def weighed(q, keys, values, mask=None):
    """The formula; the mask is causal and ends at the bottom right if none is given."""
    mask = causal_mask(q.size(2), keys.size(2)) if mask is None else mask
    return F.scaled_dot_product_attention(q, keys, values, mask)


@wrong("14.1", named="no mask")
def unmasked(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    return torch.softmax(q @ keys.mT / q.size(-1) ** 0.5, dim=-1) @ values, (keys, values)


@wrong("14.1", named="mask at the top left")
def is_causal(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    return F.scaled_dot_product_attention(q, keys, values, is_causal=True), (keys, values)


@wrong("14.1", named="mask at the top left")
def first_rows_of_the_mask(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    return weighed(q, keys, values, causal_mask(keys.size(2))[: q.size(2)]), (keys, values)


@wrong("14.1", named="old keys lost")
def attends_to_the_new_only(q, k, v, cache):
    p = places(q, cache)
    q, k = rotary(q, p), rotary(k, p)
    return weighed(q, k, v), (torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2))


@wrong("14.1", named="old keys lost")
def no_cache_at_all(q, k, v, cache):
    p = torch.arange(q.size(2))
    return weighed(rotary(q, p), rotary(k, p), v), (rotary(k, p), v)


@wrong("14.1", named="old keys lost")
def the_cache_as_it_came(q, k, v, cache):
    return weighed(*turned(q, k, v, cache)), cache


@wrong("14.1", named="only the last piece kept")
def keeps_its_own(q, k, v, cache):
    p = places(q, cache)
    return weighed(*turned(q, k, v, cache)), (rotary(k, p), v)


@wrong("14.1", named="positions from 0")
def no_positions_given(q, k, v, cache):
    keys, values = torch.cat([cache[0], rotary(k)], 2), torch.cat([cache[1], v], 2)
    return weighed(rotary(q), keys, values), (keys, values)


@wrong("14.1", named="positions from 0 for the queries")
def only_keys_advance(q, k, v, cache):
    _, keys, values = turned(q, k, v, cache)
    return weighed(rotary(q), keys, values), (keys, values)


@wrong("14.1", named="positions from 0 for the keys")
def only_queries_advance(q, k, v, cache):
    keys, values = torch.cat([cache[0], rotary(k)], 2), torch.cat([cache[1], v], 2)
    return weighed(rotary(q, places(q, cache)), keys, values), (keys, values)


@wrong("14.1", named="one position for all new tokens")
def all_at_the_end(q, k, v, cache):
    p = torch.zeros(q.size(2)).long() + cache[0].size(2)
    keys, values = torch.cat([cache[0], rotary(k, p)], 2), torch.cat([cache[1], v], 2)
    return weighed(rotary(q, p), keys, values), (keys, values)


@wrong("14.1", named="queries not turned")
def plain_queries(q, k, v, cache):
    _, keys, values = turned(q, k, v, cache)
    return weighed(q, keys, values), (keys, values)


@wrong("14.1", named="keys not turned")
def plain_keys(q, k, v, cache):
    keys, values = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
    return weighed(turned(q, k, v, cache)[0], keys, values), (keys, values)


@wrong("14.1", named="nothing turned")
def without_rotary(q, k, v, cache):
    keys, values = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
    return weighed(q, keys, values), (keys, values)


@wrong("14.1", named="old keys not turned")
def keeps_plain_keys(q, k, v, cache):
    new_q, keys, values = turned(q, k, v, cache)
    return weighed(new_q, keys, values), (torch.cat([cache[0], k], 2), values)


@wrong("14.1", named="old keys turned again")
def turns_all_each_time(q, k, v, cache):
    keys, values = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
    keys = rotary(keys, torch.arange(keys.size(2)))
    return weighed(rotary(q, places(q, cache)), keys, values), (keys, values)


@wrong("14.1", named="values turned")
def turns_all_three(q, k, v, cache):
    return (out := turned(q, k, rotary(v, places(q, cache)), cache)) and (weighed(*out), out[1:])


@wrong("14.1", named="new before old")
def in_front(q, k, v, cache):
    p = places(q, cache)
    keys, values = torch.cat([rotary(k, p), cache[0]], 2), torch.cat([v, cache[1]], 2)
    return weighed(rotary(q, p), keys, values), (keys, values)


@wrong("14.1", named="keys and values in different orders")
def values_in_front(q, k, v, cache):
    q, keys, _ = turned(q, k, v, cache)
    values = torch.cat([v, cache[1]], 2)
    return weighed(q, keys, values), (keys, values)


@wrong("14.1", named="values not appended")
def values_of_the_new_ones(q, k, v, cache):
    q, keys, _ = turned(q, k, v, cache)
    return attention(q, keys, v, causal_mask(q.size(2), keys.size(2)))[0], (keys, v)


@wrong("14.1", named="appended along the heads")
def dim_1(q, k, v, cache):
    keys = torch.cat([cache[0], rotary(k, places(q, cache))], dim=1)
    return weighed(q, keys, torch.cat([cache[1], v], dim=1)), (keys, v)


@wrong("14.1", named="appended along the texts")
def no_dim(q, k, v, cache):
    keys = torch.cat([cache[0], rotary(k, places(q, cache))])
    return weighed(q, keys, torch.cat([cache[1], v])), (keys, v)


@wrong("14.1", named="appended along the channels")
def dim_3(q, k, v, cache):
    keys = torch.cat([cache[0], rotary(k, places(q, cache))], dim=3)
    return weighed(q, keys, torch.cat([cache[1], v], dim=3)), (keys, v)


@wrong("14.1", named="mask of the new tokens only")
def square_mask(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    return attention(q, keys, values, causal_mask(q.shape[2]))[0], (keys, values)


@wrong("14.1", named="mask one too far")
def triangle_shifted(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    later = torch.ones(q.size(2), keys.size(2)).triu(cache[0].size(2) + 2).bool()
    return weighed(q, keys, values, ~later), (keys, values)


@wrong("14.1", named="no √d")
def unscaled(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    scores = (q @ keys.mT).masked_fill(~causal_mask(q.size(2), keys.size(2)), -torch.inf)
    return scores.softmax(-1) @ values, (keys, values)


@wrong("14.1", named="only the last new token")
def one_output(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    return weighed(q[:, :, -1:], keys, values), (keys, values)


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


def loop(scores, values, step, result=lambda m, s, w: w / s):
    """Three numbers that are carried, and what one more score makes of them."""
    carried = torch.tensor(float("-inf")), torch.zeros(()), torch.zeros(values.size(1))
    for t in range(scores.size(0)):
        carried = step(*carried, scores[t], values[t])
    return result(*carried)


@wrong("14.2", named="sum not rescaled")
def forgets_the_sum(scores, values):
    def step(m, s, w, x, v):
        top = max(m, x)
        e = torch.exp(x - top)
        return top, s + e, w * torch.exp(m - top) + e * v

    return loop(scores, values, step)


@wrong("14.2", named="weighted sum not rescaled")
def forgets_the_weighted_sum(scores, values):
    def step(m, s, w, x, v):
        top = max(m, x)
        e = torch.exp(x - top)
        return top, s * torch.exp(m - top) + e, w + e * v

    return loop(scores, values, step)


@wrong("14.2", named="nothing rescaled")
def forgets_both(scores, values):
    def step(m, s, w, x, v):
        top = max(m, x)
        return top, s + (x - top).exp(), w + (x - top).exp() * v

    return loop(scores, values, step)


@wrong("14.2", named="an exponent above 0")
def grows_from_nothing(scores, values):
    def step(m, s, w, x, v):
        top = max(m, x)
        f, e = (top - m).exp(), (x - top).exp()
        return top, s * f + e, w * f + e * v

    return loop(scores, values, step)


@wrong("14.2", named="an exponent above 0")
def compared_with_minus_infinity(scores, values):
    def step(m, s, w, x, v):
        top = max(m, x)
        f, e = (m - top).exp(), (x - m).exp()
        return top, s * f + e, w * f + e * v

    return loop(scores, values, step)


def begun(scores, values, factor, weight):
    m, s, w = scores[0], 1.0, values[0]
    for x, v in zip(scores[1:], values[1:], strict=True):
        top = torch.maximum(m, x)
        s, w = s * factor(m, top) + weight(m, top, x), w * factor(m, top) + weight(m, top, x) * v
        m = top
    return w / s


@wrong("14.2", named="rescaled the wrong way")
def new_minus_old(scores, values):
    return begun(scores, values, lambda m, t: (t - m).exp(), lambda m, t, x: (x - t).exp())


@wrong("14.2", named="weighted by the old maximum")
def compared_with_the_old(scores, values):
    return begun(scores, values, lambda m, t: (m - t).exp(), lambda m, t, x: (x - m).exp())


@wrong("14.2", named="rescaled after adding")
def adds_first(scores, values):
    def step(m, s, w, x, v):
        top = max(m, x)
        s, w = s + (x - top).exp(), w + (x - top).exp() * v
        return top, s * (m - top).exp(), w * (m - top).exp()

    return loop(scores, values, step)


@wrong("14.2", named="the last score as the maximum")
def remembers_the_last(scores, values):
    def step(m, s, w, x, v):
        top = max(m, x)
        f, e = (m - top).exp(), (x - top).exp()
        return x, s * f + e, w * f + e * v

    return loop(scores, values, step)


@wrong("14.2", named="the maximum not kept")
def remembers_none(scores, values):
    def step(m, s, w, x, v):
        top = max(m, x)
        f, e = (m - top).exp(), (x - top).exp()
        return m, s * f + e, w * f + e * v

    return loop(scores, values, step)


@wrong("14.2", named="divided at each step")
def averages_of_averages(scores, values):
    def step(m, s, w, x, v):
        top = max(m, x)
        f, e = (m - top).exp(), (x - top).exp()
        return top, s * f + e, (w * f + e * v) / (s * f + e)

    return loop(scores, values, step, lambda m, s, w: w)


@wrong("14.2", named="not divided")
def sum_of_products(scores, values):
    return (scores - scores.max()).exp() @ values


@wrong("14.2", named="divided by the number of scores")
def mean_of_products(scores, values):
    return ((scores - scores.max()).exp()[:, None] * values).mean(dim=0)


@wrong("14.2", named="no maximum")
def plain_exponentials(scores, values):
    total, weighted = 0.0, 0.0
    for x, v in zip(scores, values, strict=True):
        total, weighted = total + x.exp(), weighted + x.exp() * v
    return weighted / total


@wrong("14.2", named="the first score left out")
def begins_with_the_second(scores, values):
    return scores[1:].softmax(0) @ values[1:]


@wrong("14.2", "only the weights")
def whole_row_of_weights(scores, values):
    return scores.softmax(0)


@wrong("14.2", "the largest score wins")
def hardmax(scores, values):
    return values[scores.argmax()]


# ---------------------------------------------------------------- 14.3 linear attention


@wrong("14.3", named="reads before it writes")
def strictly_past(q, k, v):
    weights = (q @ k.T).tril(-1)
    return weights @ v / weights.sum(dim=1, keepdim=True)


@wrong("14.3", named="no divisor")
def unnormalised(q, k, v):
    return (q @ k.T).tril() @ v


@wrong("14.3", named="divided by the number of tokens")
def divided_by_t(q, k, v):
    return (q @ k.T).tril() @ v / torch.arange(1, len(q) + 1)[:, None]


@wrong("14.3", named="divided by the sum of the keys alone")
def divided_by_keys(q, k, v):
    return (q @ k.T).tril() @ v / k.cumsum(dim=0).sum(dim=1, keepdim=True)


@wrong("14.3", named="outer product transposed")
def value_times_key(q, k, v):
    S, z, out = torch.zeros(k.size(1), v.size(1)), torch.zeros(k.size(1)), []
    for t in range(q.size(0)):
        S, z = S + v[t][:, None] * k[t][None, :], z + k[t]
        out.append((q[t] @ S) / (q[t] @ z))
    return torch.stack(out)


@wrong("14.3", named="matrix not accumulated")
def last_outer_product(q, k, v):
    weights = q @ k.T
    return torch.diagonal(weights)[:, None] * v / weights.tril().sum(dim=1, keepdim=True)


@wrong("14.3", named="keys not accumulated")
def last_key(q, k, v):
    weights = (q @ k.T).tril()
    return weights @ v / weights.diagonal()[:, None]


@wrong("14.3", named="nothing accumulated")
def own_value(q, k, v):
    return v.clone()


@wrong("14.3", named="over all tokens")
def sees_everything(q, k, v):
    weights = q @ k.T
    return weights @ v / weights.sum(dim=1, keepdim=True)


@wrong("14.3", named="the exponential again")
def exp_of_dots(q, k, v):
    weights = (q @ k.T).exp().tril()
    return weights @ v / weights.sum(dim=1, keepdim=True)


@wrong("14.3", named="softmax attention")
def pytorch_does_it(q, k, v):
    return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]


@wrong("14.3", named="features made again")
def elu_plus_one(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    weights = torch.tril(q @ k.T)
    return weights @ v / weights.sum(dim=1, keepdim=True)


@wrong("14.3", named="queries and keys exchanged")
def transposed_scores(q, k, v):
    weights = (k @ q.T).tril()
    return weights @ v / weights.sum(dim=1, keepdim=True)


@wrong("14.3", named="divided by a vector")
def divided_by_a_vector(q, k, v):
    S, z, out = 0, 0, []
    for t in range(len(q)):
        S, z = S + torch.outer(k[t], v[t]), z + k[t]
        out.append(q[t] @ S / z)
    return torch.stack(out)


@wrong("14.3", "the plain running mean")
def running_mean(q, k, v):
    return v.cumsum(dim=0) / torch.arange(1, len(v) + 1)[:, None]


@wrong("14.3", "all outputs from the last query")
def one_query(q, k, v):
    weights = q[-1] @ k.T
    return (weights[:, None] * v).cumsum(0) / weights.cumsum(0)[:, None]


# ---------------------------------------------------------------- of a blind trial


@wrong("14.1", named="no mask behind old tokens")
def masked_while_the_cache_is_empty(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    first = cache[0].size(2) == 0
    return F.scaled_dot_product_attention(q, keys, values, is_causal=first), (keys, values)


@wrong("14.1", named="mask at the top left for several tokens")
def masked_when_several_come(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    several = q.size(2) > 1
    return F.scaled_dot_product_attention(q, keys, values, is_causal=several), (keys, values)


@wrong("14.1", named="mask of 1 and 0 added")
def numbers_for_a_mask(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    return weighed(q, keys, values, causal_mask(q.size(2), keys.size(2)).float()), (keys, values)


@wrong("14.1", named="mask in the wrong order")
def triangle_over_the_old_keys(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    new, old = q.size(2), cache[0].size(2)
    mask = torch.cat([torch.ones(new, new).tril(), torch.ones(new, old)], dim=1).bool()
    return weighed(q, keys, values, mask), (keys, values)


@wrong("14.1", named="keys and values exchanged in the cache")
def values_before_keys(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    return weighed(q, keys, values), (values, keys)


@wrong("14.1", named="keys appended to the values")
def keys_among_the_values(q, k, v, cache):
    q, keys, _ = turned(q, k, v, cache)
    values = torch.cat([cache[1], keys[:, :, -q.size(2) :]], dim=2)
    return weighed(q, keys, values), (keys, values)


@wrong("14.1", named="positions too far on")
def places_of_the_next_piece(q, k, v, cache):
    p = places(q, cache) + q.size(2)
    keys, values = torch.cat([cache[0], rotary(k, p)], dim=2), torch.cat([cache[1], v], dim=2)
    return weighed(rotary(q, p), keys, values), (keys, values)


@wrong("14.1", named="all keys turned again for the scores")
def turned_in_use(q, k, v, cache):
    q, keys, values = turned(q, k, v, cache)
    return weighed(q, rotary(keys), values), (keys, values)


@wrong("14.1", "a cache of its own")
def a_cache_for_all_blocks(q, k, v, cache, kept=[]):  # noqa: B006
    kept[:] = kept if cache[0].size(2) else cache
    _, keys, values = turned(q, k, v, tuple(kept))
    q = rotary(q, torch.arange(keys.size(2))[-q.size(2) :])
    kept[:] = keys, values
    return weighed(q, keys, values), (keys, values)


@wrong("14.2", named="the first score as the maximum")
def first_score_for_all(scores, values):
    weights = [torch.exp(score - scores[0]) for score in scores]
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


@wrong("14.2", named="the newest score as the maximum")
def newest_score_for_all(scores, values):
    largest, total, weighted = torch.tensor(-torch.inf), 0.0, torch.zeros(values.shape[1])
    for score, value in zip(scores, values, strict=True):
        factor, largest = torch.exp(largest - score), score
        total, weighted = total * factor + 1, weighted * factor + value
    return weighted / total


@wrong("14.2", named="the maximum begins at 0")
def at_least_0(scores, values):
    largest, total, weighted = torch.tensor(0.0), 0.0, torch.zeros(values.shape[1])
    for score, value in zip(scores, values, strict=True):
        new = torch.maximum(largest, score)
        factor, weight, largest = torch.exp(largest - new), torch.exp(score - new), new
        total, weighted = total * factor + weight, weighted * factor + weight * value
    return weighted / total


@wrong("14.2", named="the first score counted twice")
def first_score_again(scores, values):
    largest, total, weighted = scores[0], 1.0, values[0]
    for score, value in zip(scores, values, strict=True):
        new = torch.maximum(largest, score)
        factor, weight, largest = torch.exp(largest - new), torch.exp(score - new), new
        total, weighted = total * factor + weight, weighted * factor + weight * value
    return weighted / total


@wrong("14.2", "the whole row at once")
def softmax_of_the_row(scores, values):
    return torch.softmax(scores, dim=0) @ values


@wrong("14.3", named="divided by t")
def divided_by_those_before(q, k, v):
    matrix, outs = torch.zeros(k.shape[1], v.shape[1]), []
    for t in range(len(q)):
        matrix = matrix + torch.outer(k[t], v[t])
        outs.append(q[t] @ matrix / t)
    return torch.stack(outs)


@wrong("14.3", named="divisor one token behind")
def divisor_late(q, k, v):
    matrices = (k[:, :, None] * v[:, None, :]).cumsum(dim=0)
    late = k.cumsum(dim=0) - k
    late[0] = 0  # not the rounding of a difference
    return torch.einsum("ti,tij->tj", q, matrices) / (q * late).sum(dim=-1, keepdim=True)


@wrong("14.3", named="queries added up for the divisor")
def sum_of_queries(q, k, v):
    matrices = (k[:, :, None] * v[:, None, :]).cumsum(dim=0)
    totals = (q * q.cumsum(dim=0)).sum(dim=-1, keepdim=True)
    return torch.einsum("ti,tij->tj", q, matrices) / totals
