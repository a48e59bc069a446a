"""Wrong answers to the exercises of notebook 03, as learners might write them."""

import math

import torch
import torch.nn.functional as F

from helpers.attention import causal_mask
from tests.answers import wrong

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


# ------------------------------------------------------------------ 03.2 attend one back


@wrong("03.2", named="scores too gentle")
def score_of_one(T):
    scores = torch.diag(torch.ones(T - 1), -1)
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("03.2", named="future not masked")
def token_zero_not_masked(T):
    scores = torch.zeros(T, T)
    for t in range(1, T):
        scores[t, t - 1] = 20
    return torch.softmax(scores, dim=-1)


@wrong("03.2", "returns the masked scores and leaves out the softmax")
def scores_without_softmax(T):
    scores = torch.diag(torch.full((T - 1,), 20.0), -1)
    return scores.masked_fill(~causal_mask(T), float("-inf"))


@wrong("03.2", named="no high score is left")
def row_and_column_mixed_up(T):
    scores = torch.zeros(T, T)
    for t in range(1, T):
        scores[t - 1, t] = 20.0
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("03.2", named="token 0 has no key")
def token_zero_has_no_key(T):
    scores = torch.full((T, T), float("-inf"))
    for t in range(1, T):
        scores[t, t - 1] = 20.0
    return torch.softmax(scores, dim=-1)


@wrong("03.2", "the range ends one too early, so the last token gets no high score")
def last_token_left_out(T):
    scores = torch.zeros(T, T)
    for t in range(1, T - 1):
        scores[t, t - 1] = 20.0
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("03.2", named="softmax down the columns")
def softmax_down_columns(T):
    scores = torch.diag(torch.full((T - 1,), 20.0), -1)
    scores[0, 0] = 20.0
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=0)


@wrong("03.2", named="row 0 wraps round")
def rolled_identity(T):
    scores = 20 * torch.roll(torch.eye(T), shifts=-1, dims=1)
    return torch.softmax(scores, dim=-1)


@wrong("03.2", "a score of 6 is enough for up to five tokens and too small for longer texts")
def score_of_six(T):
    scores = torch.zeros(T, T)
    rows = torch.arange(1, T)
    scores[rows, rows - 1] = 6.0
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("03.2", named="looks two back")
def looks_two_back(T):
    scores = torch.zeros(T, T)
    for t in range(T):
        scores[t, max(t - 2, 0)] = 20.0
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("03.2", "the scores have the wrong sign: the previous token gets the least weight")
def minus_twenty(T):
    scores = torch.diag(torch.full((T - 1,), -20.0), -1)
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("03.2", "the scores are whole numbers, in which minus infinity cannot be written")
def whole_number_scores(T):
    scores = torch.zeros(T, T, dtype=torch.long)
    for t in range(1, T):
        scores[t, t - 1] = 20
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("03.2", "computes the exponentials of 100 by hand, and inf / inf is nan")
def hundred_overflows(T):
    scores = torch.diag(torch.full((T - 1,), 100.0), -1)
    exponentials = torch.exp(scores.masked_fill(~causal_mask(T), float("-inf")))
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


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


@wrong("03.3", "clamps the scores at 80, so all that are higher become equal")
def clamped_at_eighty(scores):
    exponentials = torch.exp(scores.clamp(max=80))
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@wrong("03.3", named="max without .values")
def maximum_is_a_pair(scores):
    shifted = scores - torch.max(scores, dim=-1, keepdim=True)
    return torch.exp(shifted) / torch.exp(shifted).sum(dim=-1, keepdim=True)


@wrong("03.3", "64-bit floats only move the limit: the exponential of 1000 is still inf")
def in_double_precision(scores):
    exponentials = torch.exp(scores.double())
    return (exponentials / exponentials.sum(dim=-1, keepdim=True)).float()


@wrong("03.3", named="no keepdim")
def row_sums_without_keepdim(scores):
    exponentials = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return exponentials / exponentials.sum(dim=-1)


@wrong("03.3", "subtracts 1000, which suits the example and no other size of scores")
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


@wrong("03.3", "adds 1 to the sum to be safe, so that the row sums to less than 1")
def one_added_to_the_sum(scores):
    exponentials = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return exponentials / (exponentials.sum(dim=-1, keepdim=True) + 1)


# ------------------------------------------------------- written apart, and opened last


@wrong("03.1", named="0 times infinity")
def mask_times_infinity(scores):
    mask = causal_mask(scores.shape[-1])
    return torch.softmax(scores + (~mask).float() * float("-inf"), dim=-1)


@wrong("03.1", "fills with the lowest score instead of minus infinity, which still has a weight")
def filled_with_lowest_score(scores):
    mask = causal_mask(scores.shape[-1])
    lowest = scores.min()
    return torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)


@wrong("03.1", named="T taken from the batch axis")
def mask_of_batch_size(scores):
    mask = causal_mask(scores.shape[0])
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)


@wrong("03.1", named="masked after the softmax, then divided")
def maximum_includes_the_future(scores):
    exponentials = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    exponentials = exponentials * causal_mask(scores.shape[-1])
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


# ------------------------------------------------------------------ 03.2 attend one back


@wrong("03.2", named="looks at itself")
def looks_at_itself(T):
    scores = 20 * torch.eye(T)
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("03.2", "gives 20 to all earlier tokens, so each token averages its past")
def all_of_the_past(T):
    scores = 20 * torch.tril(torch.ones(T, T), diagonal=-1)
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("03.2", "gives the whole first column a high score, not only the corner of token 0")
def first_column_too(T):
    scores = torch.diag(torch.full((T - 1,), 20.0), -1)
    scores[:, 0] = 20.0
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("03.2", "writes 0 and 1 without a softmax and leaves the row of token 0 empty")
def weights_by_hand(T):
    return torch.diag(torch.ones(T - 1), -1)


@wrong("03.2", "the size is fixed to the three tokens of the example")
def three_tokens_only(T):
    scores = torch.tensor([[20.0, 0.0, 0.0], [20.0, 0.0, 0.0], [0.0, 20.0, 0.0]])
    return torch.softmax(scores.masked_fill(~causal_mask(3), float("-inf")), dim=-1)


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


@wrong("03.1", named="0 times infinity")
def zero_times_infinity(scores):
    T = scores.shape[-1]
    allowed = torch.tril(torch.ones(T, T))
    masked = scores * allowed + (1 - allowed) * float("-inf")
    return torch.softmax(masked, dim=-1)


@wrong("03.1", "fills the future with the lowest score minus 1, so it keeps some weight")
def filled_just_below_the_lowest(scores):
    T = scores.shape[-1]
    low = scores.min().item() - 1
    return torch.softmax(scores.masked_fill(~causal_mask(T), low), dim=-1)


@wrong("03.1", "takes all zeros after tril for the future, so scores of 0 are masked too")
def zeros_taken_for_the_future(scores):
    wei = torch.tril(scores)
    wei = wei.masked_fill(wei == 0, float("-inf"))
    return torch.softmax(wei, dim=-1)


@wrong("03.1", "takes one softmax over the whole matrix, so all rows share a sum of 1")
def softmax_of_the_flat_matrix(scores):
    B, T, _ = scores.shape
    masked = scores.masked_fill(~causal_mask(T), float("-inf"))
    return torch.softmax(masked.view(B, -1), dim=-1).view(B, T, T)


@wrong("03.2", named="future not masked")
def without_the_mask(T):
    scores = torch.zeros(T, T)
    for t in range(1, T):
        scores[t, t - 1] = 20.0
    return torch.softmax(scores, dim=-1)


@wrong("03.2", named="token 0 has no key")
def own_token_masked(T):
    scores = 20 * torch.eye(T).roll(-1, dims=1)
    earlier = torch.tril(torch.ones(T, T), diagonal=-1).bool()
    return torch.softmax(scores.masked_fill(~earlier, float("-inf")), dim=-1)


@wrong("03.2", named="looks at itself")
def later_keys_score_higher(T):
    scores = 20.0 * torch.arange(T).repeat(T, 1)
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("03.3", named="less than the largest subtracted")
def mean_subtracted(scores):
    exponentials = torch.exp(scores - scores.mean(dim=-1, keepdim=True))
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@wrong("03.3", named="divided by the largest instead of subtracted")
def divided_by_the_largest(scores):
    exponentials = torch.exp(scores / scores.amax(dim=-1, keepdim=True))
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


# ------------------------------------------------------- a third set, opened last


@wrong("03.1", "fills the future with -100, which is not below all scores that may come")
def filled_with_minus_hundred(scores):
    future = ~causal_mask(scores.shape[-1])
    return torch.softmax(scores.masked_fill(future, -100.0), dim=-1)


@wrong("03.1", named="no mask")
def mask_not_kept(scores):
    T = scores.shape[-1]
    scores.masked_fill(~causal_mask(T), float("-inf"))
    return torch.softmax(scores, dim=-1)


@wrong("03.1", named="mask one too far")
def one_token_ahead(scores):
    T = scores.shape[-1]
    future = torch.ones(T, T).triu(diagonal=2).bool()
    return torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1)


@wrong("03.1", "masks after the softmax; where the past has underflowed, the row becomes all 0")
def triangle_after_softmax(scores):
    weights = torch.tril(torch.softmax(scores, dim=-1))
    return weights / (weights.sum(dim=-1, keepdim=True) + 1e-9)


@wrong("03.2", "a score of 7 above the others is too little when there are many tokens")
def seven_above(T):
    scores = torch.zeros(T, T)
    for t in range(1, T):
        scores[t, t - 1] = 7.0
    scores = scores.masked_fill(~causal_mask(T), float("-inf"))
    return torch.softmax(scores, dim=-1)


@wrong("03.2", named="no high score is left")
def high_score_for_the_next(T):
    scores = torch.diag(torch.full((T - 1,), 20.0), diagonal=1)
    scores = scores.masked_fill(~causal_mask(T), float("-inf"))
    return torch.softmax(scores, dim=-1)


@wrong("03.2", named="row 0 wraps round")
def rolled_without_mask(T):
    scores = 20 * torch.eye(T).roll(-1, dims=1)
    return torch.softmax(scores, dim=-1)


@wrong("03.2", "returns the masked scores; the softmax is missing")
def scores_returned(T):
    scores = torch.zeros(T, T)
    scores[0, 0] = 20.0
    for t in range(1, T):
        scores[t, t - 1] = 20.0
    return scores.masked_fill(~causal_mask(T), float("-inf"))


# ------------------------------------------------------- a fourth set, opened last


@wrong("03.1", named="0 times infinity")
def causal_softmax_with_added_mask(scores):
    T = scores.shape[-1]
    future = 1.0 - torch.tril(torch.ones(T, T))
    return torch.softmax(scores + future * float("-inf"), dim=-1)


@wrong("03.1", named="T taken from the batch axis")
def causal_softmax_with_mask_of_batch_size(scores):
    may_attend = causal_mask(len(scores))
    return torch.softmax(scores.masked_fill(~may_attend, float("-inf")), dim=-1)


@wrong("03.1", named="masked after the softmax, then divided")
def causal_softmax_with_maximum_of_the_future(scores):
    T = scores.shape[-1]
    exps = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    exps = exps * torch.tril(torch.ones(T, T))
    return exps / exps.sum(dim=-1, keepdim=True)


@wrong("03.2", "a score only 8 above the others is too little when a row has many keys")
def one_back_with_a_score_of_eight(T):
    scores = torch.zeros(T, T)
    for t in range(T):
        scores[t, max(t - 1, 0)] = 8.0
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("03.2", "there is no mask: the weights of the future are tiny, but not 0")
def one_back_without_a_mask(T):
    scores = torch.full((T, T), -10.0)
    scores[0, 0] = 10.0
    for t in range(1, T):
        scores[t, t - 1] = 10.0
    return torch.softmax(scores, dim=-1)


@wrong("03.2", "all rows are the same Python list, so every row gets every high score")
def one_back_with_one_shared_row(T):
    scores = [[0.0] * T] * T
    scores[0][0] = 20.0
    for t in range(1, T):
        scores[t][t - 1] = 20.0
    scores = torch.tensor(scores)
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("03.2", "for the sake of token 0, every token has the high score for itself, too")
def one_back_and_itself(T):
    one_back = torch.diag(torch.ones(T), -1)[:T, :T]
    scores = 20 * (torch.eye(T) + one_back)
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("03.3", "subtracts the largest absolute value: large negative scores all underflow to 0")
def softmax_minus_the_largest_size(scores):
    exps = torch.exp(scores - scores.abs().amax(dim=-1, keepdim=True))
    return exps / exps.sum(dim=-1, keepdim=True)


# ------------------------------------------------------- a fifth set, opened last


@wrong("03.1", "fills the future with a number 10 below the lowest score, so it keeps some weight")
def ten_below_the_lowest(scores):
    may_attend = causal_mask(scores.shape[-1])
    return torch.softmax(scores.masked_fill(~may_attend, scores.min().item() - 10), dim=-1)


@wrong("03.1", "adds -1000 to the scores of the future, too little when scores differ by more")
def minus_thousand_added(scores):
    future = torch.triu(torch.ones_like(scores), diagonal=1)
    return torch.softmax(scores - 1000 * future, dim=-1)


@wrong("03.2", named="no high score is left")
def high_scores_above_diagonal(T):
    scores = torch.diag(torch.full((max(T - 1, 0),), 20.0), diagonal=1)[:T, :T]
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong(
    "03.2", "lowers the score by only 1 per step of distance, so the neighbours keep much weight"
)
def one_per_step(T):
    steps = torch.arange(T)
    scores = -(steps[:, None] - 1 - steps[None, :]).abs().float()
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


@wrong("03.2", "starts the loop at 2, so token 1 shares its weight between token 0 and itself")
def loop_from_two(T):
    scores = torch.zeros(T, T)
    for t in range(2, T):
        scores[t, t - 1] = 20.0
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


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


@wrong("03.2", named="looks forward")
def next_token_raised(T):
    rows = []
    for t in range(T):
        scores = torch.tensor([20.0 if s == t + 1 or s == t == T - 1 else 0.0 for s in range(T)])
        rows.append(F.pad(torch.softmax(scores[: t + 1], dim=0), (0, T - t - 1)))
    return torch.stack(rows)


@wrong("03.2", named="scores still too gentle")
def lead_of_five(T):
    e = torch.ones(T, T).tril()
    for t in range(1, T):
        e[t, t - 1] = math.exp(5)
    return e / e.sum(dim=1)[:, None]


@wrong("03.2", named="row and column swapped, from t = 0 on")
def column_t_of_the_row_before(T):
    scores = 20.0 * torch.eye(T).roll(-1, 0)
    e = torch.exp(scores).tril()
    return e / e.sum(dim=1)[:, None]


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
