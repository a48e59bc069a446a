"""Wrong answers to the exercises of notebook 05, as learners might write them."""

import math

import torch
import torch.nn.functional as F

from helpers.attention import attention, causal_mask
from tests.lesson.answers import wrong


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


@wrong("05.3", named="all scores grow")
def each_grows(scores, step):
    more = [score + step for score in scores.tolist()]
    exponentials = [math.exp(score) for score in more]
    return (exponentials[0] / sum(exponentials) - scores.softmax(0)[0].item()) / step


@wrong("05.3", named="logarithms of the weights")
def of_logarithms(scores, step):
    more = scores + step * F.one_hot(torch.tensor(0), len(scores))
    return (F.log_softmax(more, 0)[0] - F.log_softmax(scores, 0)[0]) / step
