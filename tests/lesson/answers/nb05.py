"""Wrong answers to the exercises of notebook 05, as learners might write them."""

import math

import torch
import torch.nn.functional as F

from helpers.attention import attention, causal_mask
from tests.lesson.answers import wrong

# ----------------------------------------- 05.1 measure the variance of scores


@wrong("05.1", "returns one variance for each row instead of one for all scores together")
def one_variance_for_each_row(q, k, scaled):
    scores = q @ k.mT
    if scaled:
        scores /= q.shape[-1] ** 0.5
    return scores.var(dim=-1)


@wrong("05.1", "averages the variances within the rows, so differences between rows do not count")
def mean_of_the_rows_variances(q, k, scaled):
    scores = q @ k.mT
    if scaled:
        scores = scores / q.shape[-1] ** 0.5
    return scores.var(dim=-1).mean()


@wrong("05.1", "measures only the first sequence of the batch")
def first_sequence_only(q, k, scaled):
    scores = q[0] @ k[0].T
    if scaled:
        scores = scores / q.shape[-1] ** 0.5
    return scores.var()


@wrong("05.1", "does not measure: returns what theory expects, d, or 1 if scaled")
def theory_instead_of_measuring(q, k, scaled):
    d = q.shape[-1]
    return torch.tensor(1.0 if scaled else float(d))


@wrong("05.1", "takes the softmax first, so it measures the weights and not the scores")
def variance_of_the_weights(q, k, scaled):
    scores = q @ k.mT
    if scaled:
        scores = scores / q.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1).var()


@wrong("05.1", "sums over the tokens instead of the channels: q.mT @ k is (B, d, d)")
def tokens_summed_instead_of_channels(q, k, scaled):
    scores = q.mT @ k
    if scaled:
        scores = scores / q.shape[-1] ** 0.5
    return scores.var()


@wrong("05.1", "measures only the scores that a causal mask allows")
def only_allowed_scores(q, k, scaled):
    scores = q @ k.mT
    if scaled:
        scores = scores / q.shape[-1] ** 0.5
    return scores[:, causal_mask(q.shape[1])].var()


@wrong("05.1", "averages the squares without subtracting the mean first")
def mean_not_subtracted(q, k, scaled):
    scores = q @ k.mT
    if scaled:
        scores = scores / q.shape[-1] ** 0.5
    return (scores**2).mean()


@wrong("05.1", "puts all sequences in one, so queries also meet the keys of other sequences")
def variance_across_sequences(q, k, scaled):
    d = q.shape[-1]
    scores = q.reshape(-1, d) @ k.reshape(-1, d).T
    return (scores / math.sqrt(d)).var() if scaled else scores.var()


@wrong("05.1", "takes the variance of each sequence and averages these, instead of all together")
def variance_per_sequence(q, k, scaled):
    scores = q @ k.mT
    if scaled:
        scores = scores / math.sqrt(q.size(-1))
    return scores.flatten(1).var(dim=1).mean()


@wrong("05.1", "uses the rule for the variance instead of measuring it on the scores")
def variance_by_formula(q, k, scaled):
    d = 1 if scaled else q.shape[-1]
    return d * q.var() * k.var()


@wrong("05.1", named="divided by √B")
def spread_by_batch_size(q, k, scaled):
    factor = 1 / len(q) ** 0.5 if scaled else 1.0
    return (factor * torch.einsum("btd,bsd->bts", q, k)).var()


# -------------------------------------------- 05.2 the same spread for every d


@wrong("05.2", "makes queries and keys length 1: cosines, which ignore how long they are")
def cosines_as_scores(q, k):
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    scores = (q @ k.mT).masked_fill(~causal_mask(q.shape[1]), float("-inf"))
    return torch.softmax(scores, dim=-1)


@wrong("05.2", "returns the masked, divided scores: the softmax is missing")
def scores_without_softmax(q, k):
    _, T, d = q.shape
    scores = q @ k.mT / d**0.5
    return scores.masked_fill(~causal_mask(T), float("-inf"))


@wrong("05.2", "gives the number d to torch.sqrt, which only takes tensors")
def torch_sqrt_of_a_number(q, k):
    _, T, d = q.shape
    scores = q @ k.mT / torch.sqrt(d)
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("05.2", "returns the output of attention and not its weights")
def output_instead_of_weights(q, k):
    weighted, _ = attention(q, k, k, causal_mask(q.shape[1]))
    return weighted


@wrong("05.2", "rounds the divided scores down to whole numbers with //")
def whole_number_division(q, k):
    _, T, d = q.shape
    scores = q @ k.mT // d**0.5
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("05.2", "divides each row by the root of the number of keys it may see, not by √d")
def divided_by_root_of_visible_keys(q, k):
    T = q.shape[1]
    visible = torch.arange(1, T + 1).view(T, 1)
    scores = q @ k.mT / visible.sqrt()
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("05.2", "averages the weights over the batch, so every sequence loses its own")
def averaged_over_the_batch(q, k):
    _, T, d = q.shape
    scores = q @ k.mT / d**0.5
    weights = torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)
    return weights.mean(dim=0)


@wrong("05.2", "divides by the measured spread of these scores instead of √d")
def divided_by_measured_spread(q, k):
    scores = q @ k.mT
    scores = scores / scores.std()
    scores = scores.masked_fill(~causal_mask(q.shape[1]), float("-inf"))
    return torch.softmax(scores, dim=-1)


@wrong("05.2", "rounds the root down to a whole number: right only for d = 1, 4, 9, 16, …")
def whole_number_root(q, k):
    _B, T, d = q.shape
    scores = q @ k.transpose(-2, -1) / math.isqrt(d)
    mask = torch.tril(torch.ones(T, T)).bool()
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)


@wrong("05.2", "takes every score that is exactly 0 for a masked one")
def zero_means_masked(q, k):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = torch.tril(scores)
    scores = scores.masked_fill(scores == 0, float("-inf"))
    return torch.softmax(scores, dim=-1)


@wrong("05.2", "makes queries and keys length 1 first, so their lengths do not count")
def weights_of_unit_vectors(q, k):
    T, d = q.shape[1:]
    scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT / d**0.5
    return torch.softmax(scores.masked_fill(torch.ones(T, T).triu(1) > 0, -torch.inf), dim=-1)


@wrong("05.2", named="softmax over the queries")
def weights_whose_columns_sum_to_one(q, k):
    e = torch.exp(torch.einsum("btd,bsd->bts", q, k) / math.sqrt(q.size(-1))).tril()
    return e / torch.einsum("bts->bs", e)[:, None]
