"""Wrong answers to the exercises of notebook 04, as learners might write them."""

import torch
import torch.nn.functional as F

from helpers.attention import attention, causal_mask
from helpers.toy import sentence
from tests.lesson.answers import wrong

# The query of “is”, as the notebook has it before exercise 04.1.
query = sentence()[1] @ torch.rand(3, 2, generator=torch.Generator().manual_seed(123))


# -------------------------------------------------------------- 04.1 one score


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


@wrong("04.1", "sums query and key before multiplying, instead of multiplying channel by channel")
def score_product_of_sums(x, W_query, W_key, i, j):
    return (x[i] @ W_query).sum() * (x[j] @ W_key).sum()


@wrong("04.1", named="the key is counted from 1")
def score_with_the_key_before(x, W_query, W_key, i, j):
    return sum(a * b for a, b in zip(x[i] @ W_query, x[j - 1] @ W_key, strict=True))


# --------------------------------------- 04.2 from nn.linear to a plain matrix


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


@wrong("04.3", "returns the weights together with the output, as a tuple")
def output_and_weights(x, W_query, W_key, W_value):
    return attention(x @ W_query, x @ W_key, x @ W_value, causal_mask(x.shape[1]))


@wrong("04.3", "makes the mask for B tokens (first axis of x) instead of T")
def mask_as_large_as_the_batch(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = q @ k.mT / q.shape[-1] ** 0.5
    mask = causal_mask(len(x))
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1) @ v


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


@wrong("04.3", "two mistakes: fills with 0 instead of -inf, and divides by d and not by its root")
def filled_with_zero_and_divided_by_d(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = q @ k.mT / q.shape[-1]
    scores = torch.tril(scores)
    return torch.softmax(scores, dim=-1) @ v


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


@wrong("04.3", named="keys used as values")
def head_mixes_the_keys(x, W_query, W_key, W_value):
    keys = x @ W_key
    return F.scaled_dot_product_attention(x @ W_query, keys, keys, is_causal=True)


@wrong("04.3", "queries and keys have changed places, and the scores are not divided")
def unscaled_scores_of_the_keys(x, W_query, W_key, W_value):
    scores = (x @ W_key) @ (x @ W_query).mT
    scores = scores.masked_fill(~causal_mask(x.shape[1]), float("-inf"))
    return torch.softmax(scores, dim=-1) @ (x @ W_value)
