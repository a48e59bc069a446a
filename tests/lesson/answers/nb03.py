"""Wrong answers to the exercises of notebook 03, as learners might write them."""

import math

import torch
import torch.nn.functional as F

from helpers.attention import causal_mask
from tests.lesson.answers import wrong

# ------------------------------------------------------- 03.1 causal softmax for a batch


@wrong("03.1", named="future filled with 0, or multiplied by tril")
def future_filled_with_zero(scores):
    mask = causal_mask(scores.shape[-1])
    return torch.softmax(scores.masked_fill(~mask, 0.0), dim=-1)


@wrong("03.1", named="no mask")
def masked_fill_not_kept(scores):
    mask = causal_mask(scores.shape[-1])
    scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1)


@wrong("03.1", named="masked after the softmax")
def masked_after_softmax(scores):
    mask = causal_mask(scores.shape[-1])
    return torch.softmax(scores, dim=-1) * mask


@wrong("03.1", named="softmax over the queries (dim=1)")
def softmax_over_queries(scores):
    mask = causal_mask(scores.shape[-1])
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=1)


@wrong("03.1", named="past masked instead of future")
def past_is_masked(scores):
    mask = causal_mask(scores.shape[-1])
    return torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)


@wrong("03.1", named="scores thrown away")
def equal_shares(scores):
    tril = torch.tril(torch.ones_like(scores))
    return tril / tril.sum(dim=-1, keepdim=True)


@wrong("03.1", named="diagonal masked too")
def diagonal_masked_too(scores):
    past = torch.ones_like(scores).tril(diagonal=-1)
    return torch.softmax(scores.masked_fill(past == 0, float("-inf")), dim=-1)


@wrong("03.1", named="100 subtracted from the future")
def finite_penalty(scores):
    return torch.softmax(scores - 50 * torch.ones_like(scores).triu(1), dim=-1)


@wrong("03.1", named="mask added as 1 and 0")
def mask_added_as_ones(scores):
    mask = causal_mask(scores.shape[-1])
    return torch.softmax(scores + mask.float(), dim=-1)


@wrong("03.1", named="mask one too far")
def sees_one_ahead(scores):
    may_attend = torch.tril(torch.ones_like(scores), diagonal=1).bool()
    return torch.softmax(scores.masked_fill(~may_attend, float("-inf")), dim=-1)


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


@wrong("03.1", named="no softmax")
def masked_scores_returned(scores):
    return scores.masked_fill(~causal_mask(scores.shape[-1]), float("-inf"))


@wrong("03.1", "handles the first sequence only and drops the batch axis")
def first_sequence_only(scores):
    masked = scores[0].masked_fill(~causal_mask(scores.shape[-1]), float("-inf"))
    return torch.softmax(masked, dim=-1)


@wrong("03.1", named="divided by the row sums without keepdim")
def sums_of_rows_not_kept(scores):
    exponentials = scores.exp() * causal_mask(scores.shape[-1])
    return exponentials / exponentials.sum(dim=2)


# ------------------------------------------------------------------ 03.2 attention


def _causal(scores, dim=-1):
    mask = causal_mask(scores.shape[-1])
    return F.softmax(scores.masked_fill(mask == 0, -math.inf), dim=dim)


@wrong("03.2", named="softmax over the queries (dim=1)")
def columns_sum_to_one(x):
    return _causal(torch.einsum("btc,bsc->bts", x, x), dim=1) @ x


@wrong("03.2", named="no mask")
def sees_all(x):
    return F.softmax(x @ x.transpose(1, 2), -1) @ x


@wrong("03.2", named="no softmax")
def scores_as_weights(x):
    return (x @ x.mT).tril() @ x


@wrong("03.2", named="masked after the softmax")
def cut_afterwards(x):
    return (x @ x.mT).softmax(-1) * causal_mask(x.shape[1]) @ x


@wrong("03.2", named="future filled with 0")
def scores_of_zero(x):
    return (x @ x.mT * causal_mask(x.shape[1])).softmax(-1) @ x


@wrong("03.2", named="plain averages")
def still_the_average(x):
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]


@wrong("03.2", named="scores of the tokens, weights transposed")
def other_way_round(x):
    return torch.einsum("bts,btc->bsc", _causal(x @ x.mT), x)


@wrong("03.2", named="scores divided by √C")
def as_in_the_papers(x):
    return _causal(x @ x.mT / math.sqrt(x.size(-1))) @ x


@wrong("03.2", named="tokens divided by their length")
def cosines(x):
    return _causal(F.cosine_similarity(x[:, :, None], x[:, None], dim=-1)) @ x


@wrong("03.2", named="added to the tokens")
def with_a_residual(x):
    return _causal(x @ x.mT) @ x + x


@wrong("03.2", named="mask one too far")
def one_ahead(x):
    future = torch.ones(x.shape[1], x.shape[1]).triu(2) == 1
    return (x @ x.mT).masked_fill(future, -math.inf).softmax(-1) @ x


@wrong("03.2", named="mask of the sequences")
def size_of_the_batch(x):
    return (x @ x.mT).masked_fill(~causal_mask(len(x)), -math.inf).softmax(-1) @ x


@wrong("03.2", named="a product the wrong way round")
def channels_with_channels(x):
    return _causal(x.transpose(1, 2) @ x) @ x


@wrong("03.2", named="view in the place of a transpose")
def columns_by_view(x):
    B, T, C = x.shape
    scores = torch.bmm(x, x.view(B, C, T))
    return scores.masked_fill(~causal_mask(T), -math.inf).softmax(-1) @ x


@wrong("03.2", named="x.T instead of x.mT")
def all_axes_turned(x):
    return _causal(x @ x.permute(2, 1, 0)) @ x


@wrong("03.2", named="* instead of @")
def entry_by_entry(x):
    return _causal(x * x.transpose(-1, -2)) @ x


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


@wrong("03.3", named="along the first axis")
def softmax_along_the_first_axis(scores):
    exponentials = (scores - scores.amax(dim=0)).exp()
    return exponentials / exponentials.sum(dim=0)


@wrong("03.3", named="overflow")
def softmax_by_formula(scores):
    exponentials = torch.exp(scores)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@wrong("03.3", named="largest of the whole matrix")
def one_maximum_for_all(scores):
    exponentials = torch.exp(scores - scores.max())
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@wrong("03.3", named="less than the largest subtracted")
def minimum_subtracted(scores):
    shifted = scores - scores.min(dim=-1, keepdim=True).values
    return shifted.exp() / shifted.exp().sum(dim=-1, keepdim=True)


@wrong("03.3", named="max without .values")
def maximum_is_a_pair(scores):
    shifted = scores - torch.max(scores, dim=-1, keepdim=True)
    return torch.exp(shifted) / torch.exp(shifted).sum(dim=-1, keepdim=True)


@wrong("03.3", named="no keepdim")
def row_sums_without_keepdim(scores):
    exponentials = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return exponentials / exponentials.sum(dim=-1)


@wrong("03.3", named="a constant subtracted")
def thousand_subtracted(scores):
    exponentials = torch.exp(scores - 1000)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@wrong("03.3", named="not divided")
def not_divided(scores):
    return torch.exp(scores - scores.amax(dim=-1, keepdim=True))


@wrong("03.3", "takes powers of 2 instead of e, so differences count less")
def powers_of_two(scores):
    powers = 2 ** (scores - scores.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)


@wrong("03.3", named="divided by the grand total")
def one_sum_for_all(scores):
    exponentials = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return exponentials / exponentials.sum()


@wrong("03.3", "stops at the logarithms of the weights")
def logarithms_of_weights(scores):
    return F.log_softmax(scores, dim=-1)


# ------------------------------------------------------- written apart, and opened last


@wrong("03.1", named="0 times infinity")
def mask_times_infinity(scores):
    mask = causal_mask(scores.shape[-1])
    return torch.softmax(scores + (~mask).float() * float("-inf"), dim=-1)


@wrong("03.1", named="T taken from the batch axis")
def mask_of_batch_size(scores):
    mask = causal_mask(scores.shape[0])
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)


@wrong("03.1", named="masked after the softmax, then divided")
def maximum_includes_the_future(scores):
    exponentials = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    exponentials = exponentials * causal_mask(scores.shape[-1])
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


# ------------------------------------------------------ 03.3 a softmax without overflow


@wrong("03.3", named="divided by the largest instead of subtracted")
def divided_by_maximum(scores):
    exponentials = torch.exp(scores / scores.max(dim=-1, keepdim=True).values)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@wrong("03.3", "subtracts the largest score above the fraction line only, not below it")
def subtracted_above_only(scores):
    top = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return top / torch.exp(scores).sum(dim=-1, keepdim=True)


@wrong("03.3", named="largest of each column")
def maximum_of_columns(scores):
    exponentials = torch.exp(scores - scores.max(dim=0).values)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@wrong("03.3", "subtracts the logarithm of a sum that has already overflowed")
def logarithm_of_infinity(scores):
    log_sum = torch.log(torch.exp(scores).sum(dim=-1, keepdim=True))
    return torch.exp(scores - log_sum)


# ------------------------------------------------------- a second set, opened last


@wrong("03.1", "takes all zeros after tril for the future, so scores of 0 are masked too")
def zeros_taken_for_the_future(scores):
    wei = torch.tril(scores)
    wei = wei.masked_fill(wei == 0, float("-inf"))
    return torch.softmax(wei, dim=-1)


# ------------------------------------------------------- a third set, opened last


@wrong("03.1", "fills the future with -100, which is not below all scores that may come")
def filled_with_minus_hundred(scores):
    future = ~causal_mask(scores.shape[-1])
    return torch.softmax(scores.masked_fill(future, -100.0), dim=-1)


@wrong("03.1", "masks after the softmax; where the past has underflowed, the row becomes all 0")
def triangle_after_softmax(scores):
    weights = torch.tril(torch.softmax(scores, dim=-1))
    return weights / (weights.sum(dim=-1, keepdim=True) + 1e-9)


# ------------------------------------------------------- a fourth set, opened last


# ------------------------------------------------------- a fifth set, opened last


@wrong("03.1", "adds -1000 to the scores of the future, too little when scores differ by more")
def minus_thousand_added(scores):
    future = torch.triu(torch.ones_like(scores), diagonal=1)
    return torch.softmax(scores - 1000 * future, dim=-1)


# One for each mistake that no answer above makes.


@wrong("03.1", named="softmax over the batch (dim=0)")
def sequences_share_one(scores):
    e = torch.exp(scores).tril()
    return e / sum(e)


@wrong("03.1", named="a second softmax")
def weights_as_new_scores(scores):
    masked = torch.where(causal_mask(scores.shape[-1]), scores, -torch.inf)
    e = torch.exp(masked - masked.amax(-1, keepdim=True))
    again = torch.exp(e / e.sum(-1, keepdim=True))
    return again / again.sum(-1, keepdim=True)


@wrong("03.1", named="divided by the sum of everything")
def whole_batch_shares_one(scores):
    e = torch.exp(scores).tril()
    return e / e.sum()


@wrong("03.1", named="diagonal masked with -1e9")
def large_number_from_the_diagonal_on(scores):
    t = torch.arange(scores.shape[-1])
    low = torch.where(t[:, None] > t, scores, -1e9)
    return F.softmax(low, dim=-1)


@wrong("03.1", named="upper triangle kept")
def exponentials_above_the_diagonal(scores):
    e = torch.exp(scores).triu()
    return e / torch.einsum("bts->bt", e)[..., None]


@wrong("03.1", named="filled with -10")
def minus_ten_for_infinity(scores):
    e = torch.where(causal_mask(scores.shape[-1]), scores.exp(), math.exp(-10))
    return e / e.sum(-1, keepdim=True)


@wrong("03.1", named="filled with -1")
def minus_one_for_infinity(scores):
    e = torch.where(causal_mask(scores.shape[-1]), scores.exp(), math.exp(-1))
    return e / e.sum(-1, keepdim=True)


@wrong("03.1", named="filled with plus infinity")
def infinity_added(scores):
    T = scores.shape[-1]
    infinity = torch.tensor([[math.inf if s > t else 0.0 for s in range(T)] for t in range(T)])
    return F.softmax(scores + infinity, dim=-1)


@wrong("03.3", named="divided down the columns")
def sums_of_the_columns(scores):
    e = torch.exp(scores - scores.amax(-1, keepdim=True)).transpose(-2, -1)
    return (e / e.sum(-1, keepdim=True)).transpose(-2, -1)


@wrong("03.3", named="torch's softmax")
def softmax_as_a_layer(scores):
    return torch.nn.Softmax(dim=-1)(scores)


@wrong("03.3", named="sign turned")
def largest_minus_each(scores):
    ahead = scores.amax(-1, keepdim=True) - scores
    return ahead.exp() / ahead.exp().sum(-1, keepdim=True)


@wrong("03.3", named="largest subtracted after exp")
def exponentials_lowered(scores):
    e = scores.exp()
    e = e - e.amax(-1, keepdim=True)
    return e / e.sum(-1, keepdim=True)


@wrong("03.3", named="a constant subtracted that fits no row")
def half_a_thousand_taken_off(scores):
    shifted = scores.clone()
    shifted -= 500
    e = shifted.exp()
    return e / e.sum(dim=-1, keepdim=True)


@wrong("03.3", named="a small constant subtracted")
def a_hundred_taken_off(scores):
    e = torch.e ** (scores - 100.0)
    return e / e.sum(-1).unsqueeze(-1)
