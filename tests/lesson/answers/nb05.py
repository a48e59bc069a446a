"""Wrong answers to the exercises of notebook 05, as learners might write them."""

import math

import torch
import torch.nn.functional as F

from helpers.attention import attention, causal_mask
from tests.lesson.answers import wrong


def divided(e):
    """Rows that sum to 1."""
    return e / e.sum(dim=-1, keepdim=True)


# ----------------------------------------- 05.1 measure the variance of scores


@wrong("05.1", named="never scaled")
def never_scaled(q, k, scaled):
    scores = q @ k.mT
    return scores.var()


@wrong("05.1", named="scaled the other way round")
def scaled_when_not_asked(q, k, scaled):
    scores = q @ k.transpose(-2, -1)
    if not scaled:
        scores = scores / math.sqrt(q.size(-1))
    return scores.var()


@wrong("05.1", named="standard deviation")
def standard_deviation(q, k, scaled):
    scores = q @ k.mT
    if scaled:
        scores = scores / q.shape[-1] ** 0.5
    return scores.std()


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


@wrong("05.1", named="divided by d")
def divided_by_d(q, k, scaled):
    d = q.shape[-1]
    scores = q @ k.mT
    return (scores / d).var() if scaled else scores.var()


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


@wrong("05.1", named="divided by d / 2")
def half_of_d(q, k, scaled):
    scores = q @ k.mT
    divisor = q.shape[-1] ** 1 / 2
    if scaled:
        scores = scores / divisor
    return scores.var()


@wrong("05.1", named="divided by √T")
def root_of_the_number_of_tokens(q, k, scaled):
    scores = q @ k.mT
    if scaled:
        scores = scores / q.shape[1] ** 0.5
    return scores.var()


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


@wrong("05.1", named="only a token with itself")
def matching_pairs_only(q, k, scaled):
    dots = (q * k).sum(dim=-1)
    if scaled:
        dots = dots / q.shape[-1] ** 0.5
    return dots.var()


@wrong("05.1", "averages the squares without subtracting the mean first")
def mean_not_subtracted(q, k, scaled):
    scores = q @ k.mT
    if scaled:
        scores = scores / q.shape[-1] ** 0.5
    return (scores**2).mean()


@wrong("05.1", named="the variance was divided, not the scores")
def variance_divided_afterwards(q, k, scaled):
    variance = (q @ k.mT).var()
    return variance / q.shape[-1] ** 0.5 if scaled else variance


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


@wrong("05.1", named="divided by √16 always")
def variance_fixed_to_sixteen(q, k, scaled):
    scores = q @ k.mT
    return (scores / 4).var() if scaled else scores.var()


@wrong("05.1", named="always scaled")
def scaled_whatever_is_asked(q, k, scaled):
    return (torch.einsum("btd,bsd->bts", q, k) / math.sqrt(q.size(-1))).var()


@wrong("05.1", named="divided by 2 d")
def variance_over_twice_d(q, k, scaled):
    scores = torch.einsum("btd,bsd->bts", q, k)
    if scaled:
        scores = scores / q.size(-1) / 2
    return scores.var()


@wrong("05.1", named="multiplied by √d")
def variance_times_the_root(q, k, scaled):
    scores = torch.einsum("btd,bsd->bts", q, k)
    return (scores * math.sqrt(q.size(-1)) if scaled else scores).var()


@wrong("05.1", named="products instead of scores")
def variance_of_single_products(q, k, scaled):
    products = q * k
    if scaled:
        products = products / math.sqrt(q.size(-1))
    return products.var()


@wrong("05.1", named="divided by √B")
def spread_by_batch_size(q, k, scaled):
    factor = 1 / len(q) ** 0.5 if scaled else 1.0
    return (factor * torch.einsum("btd,bsd->bts", q, k)).var()


# -------------------------------------------- 05.2 the same spread for every d


@wrong("05.2", named="divided by √T")
def divided_by_root_of_tokens(q, k):
    T = q.shape[1]
    scores = q @ k.mT / T**0.5
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("05.2", named="divided by d")
def divided_by_d_itself(q, k):
    T, d = q.shape[1:]
    scores = q @ k.mT / d
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("05.2", named="scaled after the softmax")
def weights_divided_after_softmax(q, k):
    scores = (q @ k.mT).masked_fill(~causal_mask(q.shape[1]), float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return weights / q.shape[-1] ** 0.5


@wrong("05.2", named="divided by √16 always")
def divisor_of_sixteen_channels(q, k):
    T = q.shape[1]
    scores = q @ k.mT / 16**0.5
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("05.2", named="no mask")
def without_the_mask(q, k):
    d = q.size(-1)
    return F.softmax(q @ k.transpose(-2, -1) / math.sqrt(d), dim=-1)


@wrong("05.2", named="multiplied by √d")
def divided_by_one_over_root(q, k):
    _, T, d = q.shape
    scores = q @ k.mT / d**-0.5
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


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


@wrong("05.2", named="future filled with 0")
def masked_scores_set_to_zero(q, k):
    d = q.shape[-1]
    scores = torch.tril(q @ k.mT / d**0.5)
    return torch.softmax(scores, dim=-1)


@wrong("05.2", "divides by the measured spread of these scores instead of √d")
def divided_by_measured_spread(q, k):
    scores = q @ k.mT
    scores = scores / scores.std()
    scores = scores.masked_fill(~causal_mask(q.shape[1]), float("-inf"))
    return torch.softmax(scores, dim=-1)


@wrong("05.2", named="mask one too far")
def next_token_visible(q, k):
    _, T, d = q.shape
    scores = q @ k.mT / d**0.5
    mask = torch.tril(torch.ones(T, T), diagonal=1).bool()
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)


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


@wrong("05.2", named="divided by d / 2")
def weights_divided_by_half_of_d(q, k):
    T, d = q.shape[1:]
    scores = q @ k.mT / (d**1 / 2)
    scores = scores.masked_fill(~causal_mask(T), float("-inf"))
    return F.softmax(scores, dim=-1)


@wrong("05.2", named="not scaled")
def weights_divided_and_renormalised(q, k):
    masked = (q @ k.mT).masked_fill(~causal_mask(q.shape[1]), float("-inf"))
    weights = torch.softmax(masked, dim=-1) / q.shape[-1] ** 0.5
    return weights / weights.sum(dim=-1, keepdim=True)


@wrong("05.2", named="0 times infinity")
def weights_with_infinity_times_zero(q, k):
    T, d = q.shape[-2:]
    scores = q @ k.mT / d**0.5
    scores = scores + (1 - torch.tril(torch.ones(T, T))) * float("-inf")
    return torch.softmax(scores, dim=-1)


@wrong("05.2", "makes queries and keys length 1 first, so their lengths do not count")
def weights_of_unit_vectors(q, k):
    T, d = q.shape[1:]
    scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT / d**0.5
    return torch.softmax(scores.masked_fill(torch.ones(T, T).triu(1) > 0, -torch.inf), dim=-1)


@wrong("05.2", named="divided by 2 d")
def weights_over_twice_d(q, k):
    scores = torch.einsum("btd,bsd->bts", q, k)
    return divided(torch.exp(scores / q.size(-1) / 2).tril())


@wrong("05.2", named="divided by √B")
def weights_over_root_of_batch(q, k):
    scores = torch.einsum("btd,bsd->bts", q, k)
    return divided(torch.exp(scores / math.sqrt(len(q))).tril())


@wrong("05.2", named="softmax over the queries")
def weights_whose_columns_sum_to_one(q, k):
    e = torch.exp(torch.einsum("btd,bsd->bts", q, k) / math.sqrt(q.size(-1))).tril()
    return e / torch.einsum("bts->bs", e)[:, None]


@wrong("05.2", named="masked after the softmax")
def weights_cut_at_the_end(q, k):
    e = torch.exp(torch.einsum("btd,bsd->bts", q, k) / math.sqrt(q.size(-1)))
    return divided(e).tril()


@wrong("05.2", named="diagonal masked too")
def weights_with_an_empty_row(q, k):
    e = torch.exp(torch.einsum("btd,bsd->bts", q, k) / math.sqrt(q.size(-1)))
    return divided(e.tril(-1))


@wrong("05.2", named="diagonal masked with -1e9")
def weights_with_an_even_first_row(q, k):
    scores = torch.einsum("btd,bsd->bts", q, k) / math.sqrt(q.size(-1))
    t = torch.arange(q.shape[1])
    scores[:, t[:, None] <= t] = -1e9
    return F.softmax(scores, dim=-1)


@wrong("05.2", named="upper triangle kept")
def weights_of_triu(q, k):
    e = torch.exp(torch.einsum("btd,bsd->bts", q, k) / math.sqrt(q.size(-1)))
    return divided(e.triu())


@wrong("05.2", named="mask the wrong way round")
def weights_of_the_future_only(q, k):
    e = torch.exp(torch.einsum("btd,bsd->bts", q, k) / math.sqrt(q.size(-1)))
    return divided(e.triu(1))


@wrong("05.2", named="queries and keys swapped")
def weights_of_keys_that_ask(q, k):
    e = torch.exp(torch.einsum("bsd,btd->bts", q, k) / math.sqrt(q.size(-1)))
    return divided(e.tril())
