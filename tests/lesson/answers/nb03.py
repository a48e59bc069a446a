"""Wrong answers to the exercises of notebook 03, as learners might write them."""

import math

import torch
import torch.nn.functional as F

from helpers.attention import causal_mask
from tests.lesson.answers import wrong

# ------------------------------------------------------- 03.1 causal softmax for a batch


@wrong("03.1", "applies a second softmax to weights that were masked with 0")
def softmax_twice(scores):
    weights = torch.softmax(scores, dim=-1)
    weights = torch.tril(weights)
    return torch.softmax(weights, dim=-1)


@wrong("03.1", "divides the scores by the root of their number, which the task does not ask for")
def scaled_by_root(scores):
    T = scores.shape[-1]
    masked = scores.masked_fill(~causal_mask(T), float("-inf"))
    return torch.softmax(masked / math.sqrt(T), dim=-1)


@wrong("03.1", "handles the first sequence only and drops the batch axis")
def first_sequence_only(scores):
    masked = scores[0].masked_fill(~causal_mask(scores.shape[-1]), float("-inf"))
    return torch.softmax(masked, dim=-1)


# ------------------------------------------------------------------ 03.2 attention


def _causal(scores, dim=-1):
    mask = causal_mask(scores.shape[-1])
    return F.softmax(scores.masked_fill(mask == 0, -math.inf), dim=dim)


@wrong("03.2", named="tokens divided by their length")
def cosines(x):
    return _causal(F.cosine_similarity(x[:, :, None], x[:, None], dim=-1)) @ x


@wrong("03.2", "returns the weights and never averages the tokens")
def only_weights(x):
    return _causal(x @ x.mT)


@wrong("03.2", "returns the outputs with the weights")
def two_results(x):
    weights = _causal(x @ x.mT)
    return weights @ x, weights


@wrong("03.2", "averages the scores, not the tokens")
def averages_of_scores(x):
    scores = x @ x.mT
    return _causal(scores) @ scores


@wrong("03.2", "compares each token with the mean of the text")
def with_the_mean(x):
    scores = (x @ x.mean(1, keepdim=True).mT).mT.expand(-1, x.shape[1], -1)
    return _causal(scores) @ x


# ------------------------------------------------------ 03.3 a softmax without overflow


@wrong("03.3", "takes powers of 2 instead of e, so differences count less")
def powers_of_two(scores):
    powers = 2 ** (scores - scores.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)


@wrong("03.3", "stops at the logarithms of the weights")
def logarithms_of_weights(scores):
    return F.log_softmax(scores, dim=-1)


@wrong("03.3", "subtracts the largest score above the fraction line only, not below it")
def subtracted_above_only(scores):
    top = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return top / torch.exp(scores).sum(dim=-1, keepdim=True)


@wrong("03.3", "subtracts the logarithm of a sum that has already overflowed")
def logarithm_of_infinity(scores):
    log_sum = torch.log(torch.exp(scores).sum(dim=-1, keepdim=True))
    return torch.exp(scores - log_sum)


# ------------------------------------------------------- written apart


@wrong("03.1", "takes all zeros after tril for the future, so scores of 0 are masked too")
def zeros_taken_for_the_future(scores):
    wei = torch.tril(scores)
    wei = wei.masked_fill(wei == 0, float("-inf"))
    return torch.softmax(wei, dim=-1)


@wrong("03.1", "fills the future with -100, which is not below all scores that may come")
def filled_with_minus_hundred(scores):
    future = ~causal_mask(scores.shape[-1])
    return torch.softmax(scores.masked_fill(future, -100.0), dim=-1)


@wrong("03.1", "masks after the softmax; where the past has underflowed, the row becomes all 0")
def triangle_after_softmax(scores):
    weights = torch.tril(torch.softmax(scores, dim=-1))
    return weights / (weights.sum(dim=-1, keepdim=True) + 1e-9)


@wrong("03.1", "adds -1000 to the scores of the future, too little when scores differ by more")
def minus_thousand_added(scores):
    future = torch.triu(torch.ones_like(scores), diagonal=1)
    return torch.softmax(scores - 1000 * future, dim=-1)


@wrong("03.1", named="upper triangle kept")
def exponentials_above_the_diagonal(scores):
    e = torch.exp(scores).triu()
    return e / torch.einsum("bts->bt", e)[..., None]


@wrong("03.3", named="divided down the columns")
def sums_of_the_columns(scores):
    e = torch.exp(scores - scores.amax(-1, keepdim=True)).transpose(-2, -1)
    return (e / e.sum(-1, keepdim=True)).transpose(-2, -1)


# ------------------------------------------------- 03.generate


@wrong("03.generate", named="multiplied by the temperature")
def powers_of_the_shares(model, ids, n, temperature=1.0):
    with torch.no_grad():
        for _ in range(n):
            shares = model(ids[:, -model.context_length :])[:, -1].softmax(dim=-1)
            shares = shares**temperature
            ids = torch.hstack([ids, torch.multinomial(shares, 1)])
    return ids
