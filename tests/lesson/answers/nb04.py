"""Wrong answers to the exercises of notebook 04, as learners might write them."""

import math

import torch
import torch.nn.functional as F

from helpers.attention import attention, causal_mask
from helpers.toy import sentence
from tests.lesson.answers import wrong

# The query of “is”, as the notebook has it before exercise 04.1.
query = sentence()[1] @ torch.rand(3, 2, generator=torch.Generator().manual_seed(123))


def all_scores(x, W_query, W_key):
    """The plain scores of each query (t) for each key (s)."""
    return torch.einsum("btc,cd,bse,ed->bts", x, W_query, x, W_key)


def divided(e):
    """Rows that sum to 1."""
    return e / e.sum(dim=-1, keepdim=True)


# -------------------------------------------------------------- 04.1 one score


@wrong("04.1", named="the tokens themselves")
def tokens_instead_of_query_and_key(x, W_query, W_key, i, j):
    return x[i] @ x[j]


@wrong("04.1", named="query and key swapped")
def query_of_j_and_key_of_i(x, W_query, W_key, i, j):
    queries = x @ W_query
    keys = x @ W_key
    return queries[j] @ keys[i]


@wrong("04.1", named="scaled already")
def already_scaled(x, W_query, W_key, i, j):
    d = W_query.shape[1]
    q = x[i] @ W_query
    k = x[j] @ W_key
    return q @ k / d**0.5


@wrong("04.1", named="products not added")
def products_not_added(x, W_query, W_key, i, j):
    return (x[i] @ W_query) * (x[j] @ W_key)


@wrong("04.1", named="one matrix for both")
def one_matrix_for_both(x, W_query, W_key, i, j):
    projected = x @ W_query
    return projected[i] @ projected[j]


@wrong("04.1", named="a whole row")
def whole_row_of_scores(x, W_query, W_key, i, j):
    query = x[i] @ W_query
    keys = x @ W_key
    return query @ keys.T


@wrong("04.1", named="softmax already taken")
def weight_instead_of_score(x, W_query, W_key, i, j):
    scores = (x @ W_query) @ (x @ W_key).T
    return torch.softmax(scores, dim=-1)[i, j]


@wrong("04.1", "transposes the matrices, as an nn.Linear weight would need; these are (C, d)")
def matrices_transposed(x, W_query, W_key, i, j):
    return (x[i] @ W_query.T) @ (x[j] @ W_key.T)


@wrong("04.1", "writes the sum out for two channels, so longer queries are cut off")
def only_two_channels(x, W_query, W_key, i, j):
    q = x[i] @ W_query
    k = x[j] @ W_key
    return q[0] * k[0] + q[1] * k[1]


@wrong("04.1", "picks columns i and j, which are channels, instead of rows")
def columns_instead_of_rows(x, W_query, W_key, i, j):
    queries, keys = x @ W_query, x @ W_key
    return queries[:, i] @ keys[:, j]


@wrong("04.1", "uses the notebook's query of “is” for every i")
def query_from_the_notebook(x, W_query, W_key, i, j):
    return query @ (x @ W_key)[j]


@wrong("04.1", "token j is left out: takes entry j of query i times W_key.T as the score")
def token_j_left_out(x, W_query, W_key, i, j):
    return (x[i] @ W_query @ W_key.T)[j]


@wrong("04.1", "the loop over the channels stops one too early, so the last product is missing")
def last_channel_missing(x, W_query, W_key, i, j):
    q = x[i] @ W_query
    k = x[j] @ W_key
    total = torch.tensor(0.0)
    for c in range(len(q) - 1):
        total = total + q[c] * k[c]
    return total


@wrong("04.1", named="both counted from 1")
def counted_from_one(x, W_query, W_key, i, j):
    q = x[i - 1] @ W_query
    k = x[j - 1] @ W_key
    return torch.dot(q, k)


@wrong("04.1", "divides by the lengths of query and key: the cosine instead of the dot product")
def cosine_of_the_angle(x, W_query, W_key, i, j):
    return F.cosine_similarity(x[i] @ W_query, x[j] @ W_key, dim=0)


@wrong("04.1", "takes the mean of the products instead of their sum")
def mean_of_products(x, W_query, W_key, i, j):
    q, k = x[i] @ W_query, x[j] @ W_key
    return torch.mean(q * k)


@wrong("04.1", "multiplies W_query by W_key without transposing W_key")
def key_matrix_not_transposed(x, W_query, W_key, i, j):
    return x[i] @ W_query @ W_key @ x[j]


@wrong("04.1", "prints the score and returns nothing")
def printed_not_returned(x, W_query, W_key, i, j):
    q = x[i] @ W_query
    k = x[j] @ W_key
    print("score:", (q * k).sum())


@wrong("04.1", "divides by the root of head_size and takes the softmax: a weight, not the score")
def weight_of_the_pair(x, W_query, W_key, i, j):
    queries = x @ W_query
    keys = x @ W_key
    scores = queries @ keys.T / W_query.shape[1] ** 0.5
    return torch.softmax(scores, dim=-1)[i, j]


@wrong("04.1", "takes the smaller of i and j as the query, as if their order did not matter")
def smaller_index_asks(x, W_query, W_key, i, j):
    i, j = sorted((i, j))  # q · k = k · q
    return torch.dot(x[i] @ W_query, x[j] @ W_key)


@wrong("04.1", "takes tensordot with dims=0, which multiplies each channel with each and adds none")
def score_by_outer_product(x, W_query, W_key, i, j):
    return torch.tensordot(x[i] @ W_query, x[j] @ W_key, dims=0)


@wrong("04.1", named="the query is counted from 1")
def score_with_queries_from_one(x, W_query, W_key, i, j):
    query = x[i - 1] @ W_query
    key = x[j] @ W_key
    return torch.dot(query, key)


@wrong("04.1", "sums query and key before multiplying, instead of multiplying channel by channel")
def score_product_of_sums(x, W_query, W_key, i, j):
    return (x[i] @ W_query).sum() * (x[j] @ W_key).sum()


@wrong("04.1", named="the key is counted from 1")
def score_with_the_key_before(x, W_query, W_key, i, j):
    return sum(a * b for a, b in zip(x[i] @ W_query, x[j - 1] @ W_key, strict=True))


@wrong("04.1", named="W_key for both")
def score_of_two_keys(x, W_query, W_key, i, j):
    keys = x @ W_key
    return torch.einsum("d,d->", keys[i], keys[j])


@wrong("04.1", named="divided by √2")
def score_over_root_two(x, W_query, W_key, i, j):
    return ((x[i] @ W_query) * (x[j] @ W_key)).sum() / math.sqrt(2)


# --------------------------------------- 04.2 from nn.linear to a plain matrix


@wrong("04.2", named="not transposed")
def weight_as_stored(layer):
    return layer.weight


@wrong("04.2", named="reshaped instead of transposed")
def reshaped_not_transposed(layer):
    d, C = layer.weight.shape
    return layer.weight.reshape(C, d)


@wrong("04.2", "puts an identity of size d through the layer, which expects tokens with C channels")
def identity_of_the_wrong_size(layer):
    return layer(torch.eye(layer.out_features))


@wrong("04.2", "returns the layer and not its matrix")
def layer_itself(layer):
    return layer


@wrong("04.2", "turns the matrix by 90° instead of transposing it: one axis is reversed")
def turned_by_90_degrees(layer):
    return torch.rot90(layer.weight)


@wrong("04.2", "returns a NumPy array, which x @ matrix does not accept")
def numpy_array(layer):
    return layer.weight.detach().numpy().T


@wrong("04.2", "the loop over the rows runs to d instead of C, so the other rows stay 0")
def only_the_first_d_rows(layer):
    d, C = layer.weight.shape
    M = torch.zeros(C, d)
    for i in range(min(C, d)):
        for j in range(d):
            M[i, j] = layer.weight[j, i]
    return M


@wrong("04.2", "converts to float64, so that x @ matrix stops with an error about the types")
def double_precision(layer):
    return layer.weight.T.double()


@wrong("04.2", "adds the layer's bias, which is None with bias=False")
def bias_added(layer):
    return layer.weight.T + layer.bias


@wrong("04.2", "multiplies the weight by its transpose: a (C, C) matrix")
def weight_times_its_transpose(layer):
    return layer.weight.T @ layer.weight


@wrong("04.2", "puts one token of ones through the layer, which gives only the sums of the columns")
def sums_of_the_columns(layer):
    return layer(torch.ones(1, layer.in_features))


@wrong("04.2", "returns the list of the layer's parameters and not a matrix")
def list_of_parameters(layer):
    return list(layer.parameters())


@wrong("04.2", named="inverted")
def pseudoinverse(layer):
    return torch.linalg.pinv(layer.weight)


@wrong("04.2", "rounds the entries to two decimals")
def rounded_to_two_decimals(layer):
    return torch.round(layer.weight.T, decimals=2)


@wrong("04.2", "puts the longer axis first, which transposes only if C is larger than d")
def longer_axis_first(layer):
    W = layer.weight
    if W.shape[0] < W.shape[1]:
        W = W.T
    return W


# ---------------------------------------------------------- 04.3 a causal head


@wrong("04.3", named="no mask")
def no_mask(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
    return weights @ v


@wrong("04.3", named="x is mixed instead of v")
def tokens_averaged(x, W_query, W_key, W_value):
    q, k = x @ W_query, x @ W_key
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(x.shape[1]), float("-inf"))
    return torch.softmax(scores, dim=-1) @ x


@wrong("04.3", "returns the weights together with the output, as a tuple")
def output_and_weights(x, W_query, W_key, W_value):
    return attention(x @ W_query, x @ W_key, x @ W_value, causal_mask(x.shape[1]))


@wrong("04.3", named="mask the wrong way round")
def mask_the_wrong_way_round(x, W_query, W_key, W_value):
    T = x.shape[1]
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(causal_mask(T), float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


@wrong("04.3", named="0 times infinity")
def mask_times_infinity_added(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores + (~causal_mask(x.shape[1])).float() * float("-inf")
    return torch.softmax(scores, dim=-1) @ v


@wrong("04.3", "makes the mask for B tokens (first axis of x) instead of T")
def mask_as_large_as_the_batch(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = q @ k.mT / q.shape[-1] ** 0.5
    mask = causal_mask(len(x))
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1) @ v


@wrong("04.3", named="all sequences in one")
def sequences_end_to_end(x, W_query, W_key, W_value):
    B, T, C = x.shape
    flat = x.reshape(B * T, C)
    q, k, v = flat @ W_query, flat @ W_key, flat @ W_value
    scores = q @ k.T / q.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~causal_mask(B * T), float("-inf")), dim=-1)
    return (weights @ v).reshape(B, T, -1)


@wrong("04.3", named="queries and keys swapped")
def query_and_key_swapped(x, W_query, W_key, W_value):
    k, q, v = x @ W_query, x @ W_key, x @ W_value
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(x.shape[1]), float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


@wrong("04.3", named="masked after the softmax")
def masked_after_the_softmax(x, W_query, W_key, W_value):
    T = x.shape[1]
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    weights = F.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1)
    weights = weights * torch.tril(torch.ones(T, T))
    return weights @ v


@wrong("04.3", "squeezes the output, so with one token or one sequence an axis is lost")
def output_squeezed(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    out, _ = attention(q, k, v, causal_mask(x.shape[1]))
    return out.squeeze()


@wrong("04.3", "gives all weight to the key with the largest score instead of taking a softmax")
def only_the_best_key(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(x.shape[1]), float("-inf"))
    best = scores.argmax(dim=-1)  # (B, T)
    return F.one_hot(best, x.shape[1]).float() @ v


@wrong("04.3", named="batch and time exchanged by .T")
def all_axes_of_the_keys_reversed(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = q @ k.T / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(x.shape[1]), float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


@wrong("04.3", named="softmax over the queries")
def softmax_down_the_columns(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = q @ k.mT / W_query.shape[1] ** 0.5
    scores = scores.masked_fill(~causal_mask(x.shape[1]), float("-inf"))
    weights = torch.softmax(scores, dim=1)
    return weights @ v


@wrong("04.3", named="keys reshaped instead of transposed")
def keys_reshaped(x, W_query, W_key, W_value):
    B, T, _ = x.shape
    d = W_query.shape[1]
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = torch.bmm(q, k.reshape(B, d, T)) / d**0.5
    scores = scores.masked_fill(~causal_mask(T), float("-inf"))
    return torch.bmm(torch.softmax(scores, dim=-1), v)


@wrong("04.3", named="divided by √T")
def divided_by_root_of_length(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    head_size = q.shape[1]
    scores = q @ k.mT / head_size**0.5
    scores = scores.masked_fill(~causal_mask(x.shape[1]), float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


@wrong("04.3", "two mistakes: fills with 0 instead of -inf, and divides by d and not by its root")
def filled_with_zero_and_divided_by_d(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = q @ k.mT / q.shape[-1]
    scores = torch.tril(scores)
    return torch.softmax(scores, dim=-1) @ v


@wrong("04.3", named="divided by d / 2")
def root_without_brackets(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    d = q.shape[-1]
    root = d**1 / 2
    scores = q @ k.transpose(-2, -1) / root
    mask = torch.tril(torch.ones(x.shape[1], x.shape[1]))
    scores = scores.masked_fill(mask == 0, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


@wrong("04.3", named="future filled with 0")
def tiny_negative_number(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = q @ k.mT / W_query.shape[1] ** 0.5
    scores = scores.masked_fill(~causal_mask(x.shape[1]), -1e-9)
    return F.softmax(scores, dim=-1) @ v


@wrong("04.3", named="divided by head_size, not √head_size")
def head_scaled_twice(x, W_query, W_key, W_value):
    q = x @ W_query / W_query.shape[1] ** 0.5
    return F.scaled_dot_product_attention(q, x @ W_key, x @ W_value, is_causal=True)


@wrong("04.3", named="tokens do not attend to themselves")
def head_without_itself(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = q @ k.mT / q.shape[-1] ** 0.5
    mask = torch.triu(torch.ones_like(scores)) == 1
    weights = torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
    return torch.nan_to_num(weights) @ v


@wrong("04.3", named="divided by √ of the value's length")
def head_scaled_by_value_size(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = q @ k.mT / math.sqrt(v.shape[-1])
    mask = torch.ones(x.shape[1], x.shape[1]).tril().bool()
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1) @ v


@wrong("04.3", "masks every score that is exactly 0, also those of the past")
def head_masks_zero_scores(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = torch.tril(q @ k.mT / q.shape[-1] ** 0.5)
    return torch.softmax(scores.masked_fill(scores == 0, float("-inf")), dim=-1) @ v


@wrong("04.3", "a token may not attend to itself (except the first), only to those before it")
def head_strictly_past(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    T = x.shape[1]
    mask = torch.tril(torch.ones(T, T), diagonal=-1).bool()
    mask[0, 0] = True
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, float("-inf"))
    return F.softmax(scores, dim=-1) @ v


@wrong("04.3", named="no scale")
def head_sdpa_scale_one(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)


@wrong("04.3", named="scores thrown away")
def head_running_means_of_the_values(x, W_query, W_key, W_value):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]
    return (x @ W_value).cumsum(dim=1) / counts


@wrong("04.3", named="diagonal masked too")
def head_row_zero_empty(x, W_query, W_key, W_value):
    e = all_scores(x, W_query, W_key).div(W_key.shape[1] ** 0.5).exp().tril(-1)
    return divided(e) @ (x @ W_value)


@wrong("04.3", named="diagonal masked with -1e9")
def head_row_zero_even(x, W_query, W_key, W_value):
    scores = all_scores(x, W_query, W_key) / W_key.shape[1] ** 0.5
    t = torch.arange(x.shape[1])
    scores[:, t[:, None] <= t] = -1e9
    return F.softmax(scores, dim=-1) @ (x @ W_value)


@wrong("04.3", named="upper triangle kept")
def head_keeps_triu(x, W_query, W_key, W_value):
    e = all_scores(x, W_query, W_key).div(W_key.shape[1] ** 0.5).exp().triu()
    return divided(e) @ (x @ W_value)


@wrong("04.3", named="mask one too far")
def head_sees_the_next_token(x, W_query, W_key, W_value):
    e = all_scores(x, W_query, W_key).div(W_key.shape[1] ** 0.5).exp().tril(1)
    return divided(e) @ (x @ W_value)


@wrong("04.3", named="multiplied by √head_size")
def head_times_the_root(x, W_query, W_key, W_value):
    scores = all_scores(x, W_query, W_key) * math.sqrt(W_query.shape[1])
    scores = torch.where(causal_mask(x.shape[1]), scores, -torch.inf)
    return torch.einsum("bts,bsd->btd", F.softmax(scores, dim=-1), x @ W_value)


@wrong("04.3", named="keys used as values")
def head_mixes_the_keys(x, W_query, W_key, W_value):
    keys = x @ W_key
    return F.scaled_dot_product_attention(x @ W_query, keys, keys, is_causal=True)


@wrong("04.3", named="weights transposed")
def head_sums_over_the_queries(x, W_query, W_key, W_value):
    e = all_scores(x, W_query, W_key).div(W_key.shape[1] ** 0.5).exp().tril()
    return torch.einsum("bts,btd->bsd", divided(e), x @ W_value)


@wrong("04.3", named="keys not transposed")
def head_without_a_transpose(x, W_query, W_key, W_value):
    scores = torch.bmm(x @ W_query, x @ W_key) / W_query.shape[1] ** 0.5
    scores = scores.masked_fill(~causal_mask(x.shape[1]), -torch.inf)
    return F.softmax(scores, dim=-1) @ (x @ W_value)


@wrong("04.3", named="values times weights")
def head_weights_on_the_right(x, W_query, W_key, W_value):
    e = all_scores(x, W_query, W_key).div(W_key.shape[1] ** 0.5).exp().tril()
    return torch.bmm(x @ W_value, divided(e))


@wrong("04.3", named="divided by 2 d")
def head_over_twice_the_length(x, W_query, W_key, W_value):
    d = W_query.shape[1]
    e = torch.exp(all_scores(x, W_query, W_key) / d / 2).tril()
    return divided(e) @ (x @ W_value)


@wrong("04.3", named="filled with plus infinity")
def head_with_infinity_added(x, W_query, W_key, W_value):
    T = x.shape[1]
    infinity = torch.tensor([[math.inf if s > t else 0.0 for s in range(T)] for t in range(T)])
    scores = all_scores(x, W_query, W_key) / W_query.shape[1] ** 0.5
    return F.softmax(scores + infinity, dim=-1) @ (x @ W_value)


@wrong("04.3", named="keys made with W_query")
def head_of_two_queries(x, W_query, W_key, W_value):
    q = x @ W_query
    return F.scaled_dot_product_attention(q, q, x @ W_value, is_causal=True)


@wrong("04.3", named="queries made with W_key")
def head_of_two_keys(x, W_query, W_key, W_value):
    k = x @ W_key
    return F.scaled_dot_product_attention(k, k, x @ W_value, is_causal=True)


@wrong("04.3", named="scaled after the softmax")
def head_output_over_the_root(x, W_query, W_key, W_value):
    e = torch.exp(all_scores(x, W_query, W_key)).tril()
    return divided(e) @ (x @ W_value) / W_query.shape[1] ** 0.5


@wrong("04.3", named="a second softmax")
def head_with_two_exponentials(x, W_query, W_key, W_value):
    e = all_scores(x, W_query, W_key).div(W_key.shape[1] ** 0.5).exp().tril()
    return divided(divided(e).exp()) @ (x @ W_value)


@wrong("04.3", named="mask added as 1 and 0")
def head_with_ones_added(x, W_query, W_key, W_value):
    scores = all_scores(x, W_query, W_key) / W_query.shape[1] ** 0.5
    e = scores.exp() * torch.ones_like(scores).tril().exp()
    return divided(e) @ (x @ W_value)


@wrong("04.3", named="filled with -1")
def head_with_minus_one(x, W_query, W_key, W_value):
    scores = all_scores(x, W_query, W_key) / W_query.shape[1] ** 0.5
    e = torch.where(causal_mask(x.shape[1]), scores, -1.0).exp()
    return divided(e) @ (x @ W_value)


@wrong("04.3", named="weights returned")
def head_stops_at_the_weights(x, W_query, W_key, W_value):
    return divided(all_scores(x, W_query, W_key).div(W_key.shape[1] ** 0.5).exp().tril())


@wrong("04.3", named="divided by √2 always")
def head_for_queries_of_two(x, W_query, W_key, W_value):
    e = torch.exp(all_scores(x, W_query, W_key) / math.sqrt(2)).tril()
    return divided(e) @ (x @ W_value)


@wrong("04.3", named="divided by √C")
def head_over_root_of_channels(x, W_query, W_key, W_value):
    e = torch.exp(all_scores(x, W_query, W_key) / math.sqrt(x.size(-1))).tril()
    return divided(e) @ (x @ W_value)


@wrong("04.3", named="divided by √16 always")
def head_over_four(x, W_query, W_key, W_value):
    e = torch.exp(all_scores(x, W_query, W_key) / 4).tril()
    return divided(e) @ (x @ W_value)


@wrong("04.3", named="no softmax")
def head_with_scores_for_weights(x, W_query, W_key, W_value):
    scores = all_scores(x, W_query, W_key) / W_query.shape[1] ** 0.5
    scores = torch.where(causal_mask(x.shape[1]), scores, -torch.inf)
    v = x @ W_value
    return (scores[..., None] * v[:, None]).sum(dim=2)


@wrong("04.3", named="softmax over the batch")
def head_with_shares_of_sequences(x, W_query, W_key, W_value):
    e = all_scores(x, W_query, W_key).div(W_key.shape[1] ** 0.5).exp().tril()
    return (e / sum(e)) @ (x @ W_value)


@wrong("04.3", named="divided by √B")
def root_of_the_batch_size(x, W_query, W_key, W_value):
    scores = (x @ W_query) @ (x @ W_key).mT / len(x) ** 0.5
    return scores.masked_fill(~causal_mask(x.shape[1]), -torch.inf).softmax(-1) @ (x @ W_value)


@wrong("04.3", named="filled with -10")
def future_at_minus_ten(x, W_query, W_key, W_value):
    scores = (x @ W_query) @ (x @ W_key).mT / math.sqrt(W_key.shape[1])
    future = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.where(future, -10.0, scores).softmax(-1) @ (x @ W_value)


@wrong("04.3", "queries and keys have changed places, and the scores are not divided")
def unscaled_scores_of_the_keys(x, W_query, W_key, W_value):
    scores = (x @ W_key) @ (x @ W_query).mT
    scores = scores.masked_fill(~causal_mask(x.shape[1]), float("-inf"))
    return torch.softmax(scores, dim=-1) @ (x @ W_value)
