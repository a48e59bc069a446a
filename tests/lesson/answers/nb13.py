"""Wrong answers to the exercises of notebook 13, as learners might write them."""

import torch
import torch.nn.functional as F

from helpers.attention import attention, causal_mask
from tests.lesson.answers import wrong


def scaled(q, k):
    return q @ k.transpose(-2, -1) / q.size(-1) ** 0.5


def seen(q, k):
    """Scores with minus infinity on the future."""
    scores = scaled(q, k)
    return scores.masked_fill(torch.ones_like(scores).triu(1).bool(), float("-inf"))


def cut(scores):
    return scores.tril()


def rows_of_1(weights):
    return weights / weights.sum(dim=-1, keepdim=True)


def with_weights(weights, v):
    return weights @ v, weights


# ---------------------------------------------------------------- 13.1 fix the cause


@wrong("13.1", named="as it was given")
def normalised_by_a_function(q, k, v):
    return with_weights(F.normalize(seen(q, k).softmax(2), p=1, dim=-1), v)


@wrong("13.1", named="the softmax still over the queries")
def division_taken_out(q, k, v):
    return with_weights(F.softmax(seen(q, k), 2), v)


@wrong("13.1", named="the softmax still over the queries")
def columns_divided_twice(q, k, v):
    weights = seen(q, k).softmax(-2)
    return with_weights(weights / weights.sum(dim=-2, keepdim=True), v)


@wrong("13.1", named="divided by the sums of the columns")
def columns_of_right_weights(q, k, v):
    weights = F.softmax(seen(q, k), -1)
    return with_weights(weights / weights.sum(-2).unsqueeze(-2), v)


@wrong("13.1", named="masked after the softmax over the queries")
def mask_moved_down(q, k, v):
    weights = torch.softmax(scaled(q, k), dim=-2)
    return with_weights(rows_of_1(weights.masked_fill(~causal_mask(q.shape[2]), 0)), v)


@wrong("13.1", named="masked after the softmax over the queries, rows not divided")
def mask_moved_down_alone(q, k, v):
    return with_weights(torch.softmax(scaled(q, k), dim=-2) * causal_mask(q.shape[2]), v)


@wrong("13.1", named="masked after the softmax")
def right_axis_mask_moved_down(q, k, v):
    return with_weights(scaled(q, k).softmax(-1) * causal_mask(q.shape[2]), v)


@wrong("13.1", named="divided, then masked")
def mask_at_the_end(q, k, v):
    return with_weights(cut(rows_of_1(scaled(q, k).softmax(-2))), v)


@wrong("13.1", named="no mask")
def mask_not_kept(q, k, v):
    scores = scaled(q, k)
    scores.masked_fill(~causal_mask(q.shape[2]), -torch.inf)
    return with_weights(scores.softmax(dim=-1), v)


@wrong("13.1", named="softmax over the heads")
def dim_1(q, k, v):
    return with_weights(rows_of_1(torch.softmax(seen(q, k), dim=1)), v)


@wrong("13.1", named="softmax over the heads, rows not divided")
def dim_minus_3(q, k, v):
    return with_weights(torch.softmax(seen(q, k), dim=-3), v)


@wrong("13.1", named="softmax over the texts")
def dim_0(q, k, v):
    return with_weights(rows_of_1(torch.softmax(seen(q, k), dim=0)), v)


@wrong("13.1", named="softmax over the texts, rows not divided")
def dim_minus_4(q, k, v):
    return with_weights(torch.softmax(seen(q, k), dim=-4), v)


@wrong("13.1", named="weights transposed")
def columns_made_rows(q, k, v):
    return with_weights(seen(q, k).softmax(-2).transpose(-2, -1), v)


@wrong("13.1", named="softmax twice")
def softmax_for_the_division(q, k, v):
    return with_weights(F.softmax(F.softmax(seen(q, k), 2), 3), v)


@wrong("13.1", named="softmax twice, both over the keys")
def softmax_for_the_division_too(q, k, v):
    return with_weights(seen(q, k).softmax(-1).softmax(-1), v)


@wrong("13.1", named="the outputs fixed, the weights not")
def outputs_of_pytorch(q, k, v):
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out, rows_of_1(seen(q, k).softmax(-2))


@wrong("13.1", named="the weights fixed, the outputs not")
def outputs_computed_first(q, k, v):
    out = rows_of_1(seen(q, k).softmax(-2)) @ v
    return out, seen(q, k).softmax(-1)


@wrong("13.1")
def divided_by_earlier_queries_only(q, k, v):
    e = seen(q, k).exp()
    return with_weights(rows_of_1(e / e.cumsum(dim=-2).clamp(min=1e-9)), v)


@wrong("13.1")
def outputs_doubled(q, k, v):
    weights = seen(q, k).softmax(-1)
    return weights @ v + weights @ v, weights


@wrong("13.1")
def rows_of_length_1(q, k, v):
    weights = torch.softmax(seen(q, k), dim=-2)
    return with_weights(weights / weights.norm(dim=-1, keepdim=True), v)


@wrong("13.1")
def only_the_output(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@wrong("13.1")
def weights_first(q, k, v):
    weights = seen(q, k).softmax(-1)
    return weights, weights @ v


# ---------------------------------------------------------------- 13.2 both paths


def on_paths(slow, fast=None):
    """An answer with these two paths."""

    def answer(q, k, v, need_weights):
        if need_weights:
            return slow(q, k, v)
        return (fast or (lambda q, k, v: attention(q, k, v, causal_mask(q.shape[2]))[0]))(
            q, k, v
        ), None

    return answer


def without_mask(q, k, v):
    return scaled(q, k).softmax(-1) @ v


@wrong("13.2", named="as it was given")
def masked_but_not_kept(q, k, v, need_weights):
    if not need_weights:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True), None
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores.masked_fill(~causal_mask(q.shape[2]), -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@wrong("13.2", named="weights cut after the softmax")
def cut_weights(q, k, v, need_weights):
    return on_paths(lambda q, k, v: with_weights(cut(scaled(q, k).softmax(-1)), v))(
        q, k, v, need_weights
    )


@wrong("13.2", named="the outputs fixed, the weights not")
def fast_outputs_always(q, k, v, need_weights):
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out, scaled(q, k).softmax(-1) if need_weights else None


@wrong("13.2", named="the outputs fixed, the weights cut")
def fast_outputs_and_cut_weights(q, k, v, need_weights):
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    weights = scaled(q, k).softmax(-1).masked_fill(~causal_mask(q.shape[2]), 0)
    return out, weights if need_weights else None


@wrong("13.2", named="the weights fixed, the outputs not")
def masked_for_the_picture(q, k, v, need_weights):
    return on_paths(lambda q, k, v: (without_mask(q, k, v), seen(q, k).softmax(-1)))(
        q, k, v, need_weights
    )


@wrong("13.2", named="the weights cut, the outputs not fixed")
def cut_for_the_picture(q, k, v, need_weights):
    return on_paths(lambda q, k, v: (without_mask(q, k, v), cut(scaled(q, k).softmax(-1))))(
        q, k, v, need_weights
    )


@wrong("13.2", named="both paths without a mask")
def equal_and_wrong(q, k, v, need_weights):
    weights = scaled(q, k).softmax(-1)
    return weights @ v, weights if need_weights else None


@wrong("13.2", named="the fast path without a mask")
def exchanged_masks(q, k, v, need_weights):
    if not need_weights:
        return F.scaled_dot_product_attention(q, k, v), None
    return attention(q, k, v, causal_mask(q.shape[2]))


@wrong("13.2", named="no weights")
def never_any_weights(q, k, v, need_weights):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True), None


@wrong("13.2", named="the two paths exchanged")
def paths_exchanged(q, k, v, need_weights):
    if need_weights:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True), None
    return with_weights(seen(q, k).softmax(-1), v)


def masked_by(hidden, value=-torch.inf):
    """An answer whose slow path puts a number where this tensor of T x T is true."""

    def slow(q, k, v):
        scores = scaled(q, k)
        ones = torch.ones_like(scores)
        return with_weights(torch.where(hidden(ones) == 1, value, scores).softmax(-1), v)

    return on_paths(slow)


@wrong("13.2", named="mask the wrong way round")
def lower_triangle_hidden(q, k, v, need_weights):
    return masked_by(torch.tril)(q, k, v, need_weights)


@wrong("13.2", named="mask of the future and the token itself")
def upper_triangle_hidden(q, k, v, need_weights):
    return masked_by(torch.triu)(q, k, v, need_weights)


@wrong("13.2", named="mask one too far")
def next_token_seen(q, k, v, need_weights):
    return masked_by(lambda ones: ones.triu(2))(q, k, v, need_weights)


@wrong("13.2", named="future filled with 0")
def zeros_in_the_scores(q, k, v, need_weights):
    return masked_by(lambda ones: ones.triu(1), 0.0)(q, k, v, need_weights)


@wrong("13.2", named="minus infinity in the weights")
def mask_below_its_line(q, k, v, need_weights):
    def slow(q, k, v):
        weights = scaled(q, k).softmax(-1)
        return with_weights(weights.masked_fill(causal_mask(q.shape[2]) == 0, -torch.inf), v)

    return on_paths(slow)(q, k, v, need_weights)


@wrong("13.2", named="no √d")
def scale_lost(q, k, v, need_weights):
    def slow(q, k, v):
        scores = (q @ k.mT).masked_fill(~causal_mask(q.shape[2]), -torch.inf)
        return with_weights(scores.softmax(-1), v)

    return on_paths(slow)(q, k, v, need_weights)


@wrong("13.2")
def low_number_as_mask(q, k, v, need_weights):
    return masked_by(lambda ones: ones.triu(1), -1e4)(q, k, v, need_weights)


@wrong("13.2")
def output_without_a_pair(q, k, v, need_weights):
    if not need_weights:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return attention(q, k, v, causal_mask(q.shape[2]))


@wrong("13.2", named="weights on both paths")
def weights_on_both_paths(q, k, v, need_weights):
    return attention(q, k, v, causal_mask(q.shape[2]))


@wrong("13.2", named="softmax over the queries")
def softmax_over_queries_on_the_slow_path(q, k, v, need_weights):
    def slow(q, k, v):
        return with_weights(F.softmax(seen(q, k), 2), v)

    return on_paths(slow)(q, k, v, need_weights)


@wrong("13.2", named="the mask of the fast path the wrong way round")
def what_may_not_be_seen_on_the_fast_path(q, k, v, need_weights):
    def fast(q, k, v):
        later = torch.ones(q.shape[2], q.shape[2]).triu(1) == 1
        return F.scaled_dot_product_attention(q, k, v, later)

    return on_paths(lambda q, k, v: with_weights(seen(q, k).softmax(-1), v), fast)(
        q, k, v, need_weights
    )


# ---------------------------------------------------------------- 13.3 minus infinity


def future_is(q, k, v, value):
    scores = scaled(q, k)
    return with_weights(torch.where(causal_mask(q.shape[2]), scores, value).softmax(-1), v)


@wrong("13.3", named="as it was given")
def minus_ten_thousand_in_float(q, k, v):
    return future_is(q, k, v, -10000.0)


@wrong("13.3", named="a lower number")
def a_billion(q, k, v):
    return future_is(q, k, v, float(-(10**9)))


@wrong("13.3", named="a lower number")
def as_low_as_float16_goes(q, k, v):
    return future_is(q, k, v, torch.finfo(torch.float16).min)


@wrong("13.3", named="a lower number")
def ten_to_the_10(q, k, v):
    return future_is(q, k, v, -1e10)


@wrong("13.3", named="a lower number")
def ten_to_the_20(q, k, v):
    return future_is(q, k, v, -1e20)


@wrong("13.3", named="a number near the lowest float")
def ten_to_the_38(q, k, v):
    return future_is(q, k, v, -1e38)


@wrong("13.3", named="a number near the lowest float")
def lowest_float_in_two_digits(q, k, v):
    return future_is(q, k, v, -3.4e38)


@wrong("13.3", named="a number near the lowest float")
def half_the_lowest_float(q, k, v):
    return future_is(q, k, v, torch.finfo(q.dtype).min / 2)


@wrong("13.3")
def outputs_of_pytorch_and_weights_without_a_mask(q, k, v):
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out, scaled(q, k).softmax(-1)


@wrong("13.3", named="scores clamped, two ways")
def clamped_and_masked(q, k, v):
    scores = scaled(q, k).clamp(-9e3, 9e3).masked_fill(~causal_mask(q.shape[2]), -1e4)
    return with_weights(scores.softmax(-1), v)


@wrong("13.3", named="scores clamped")
def never_below_the_mask(q, k, v):
    scores = scaled(q, k).clamp_min(-5000).masked_fill(~causal_mask(q.shape[2]), -1e4)
    return with_weights(scores.softmax(-1), v)


@wrong("13.3", named="scores clamped above")
def never_too_large(q, k, v):
    scores = scaled(q, k).clamp_max(5000).masked_fill(~causal_mask(q.shape[2]), -1e4)
    return with_weights(scores.softmax(-1), v)


@wrong("13.3", named="masked after the softmax")
def cut_behind(q, k, v):
    return with_weights(scaled(q, k).softmax(-1) * causal_mask(q.shape[2]), v)


@wrong("13.3", named="masked after the softmax, rows divided by their sums")
def cut_behind_and_divided(q, k, v):
    return with_weights(rows_of_1(cut(scaled(q, k).softmax(-1))), v)


@wrong("13.3", named="both masks")
def cut_behind_too(q, k, v):
    scores = scaled(q, k).masked_fill(~causal_mask(q.shape[2]), -1e4)
    return with_weights(scores.softmax(-1) * causal_mask(q.shape[2]), v)


@wrong("13.3", named="mask of 1 and 0 added")
def mask_as_numbers(q, k, v):
    return with_weights((scaled(q, k) + causal_mask(q.shape[2]).float()).softmax(-1), v)


@wrong("13.3", named="future filled with 0")
def lower_triangle_of_scores(q, k, v):
    return with_weights(torch.softmax(scaled(q, k).tril(), dim=-1), v)


@wrong("13.3", named="a number added")
def a_billion_added(q, k, v):
    mask = (1.0 - causal_mask(q.shape[2]).float()) * -1e9
    return with_weights((scaled(q, k) + mask).softmax(-1), v)


@wrong("13.3", named="-10,000 added")
def ten_thousand_added(q, k, v):
    mask = (1.0 - causal_mask(q.shape[2]).float()) * -10000.0
    return with_weights((scaled(q, k) + mask).softmax(-1), v)


@wrong("13.3", named="infinity times 0")
def infinity_times_a_mask(q, k, v):
    mask = (1.0 - causal_mask(q.shape[2]).float()) * -torch.inf
    return with_weights((scaled(q, k) + mask).softmax(-1), v)


@wrong("13.3", named="plus infinity")
def sign_forgotten(q, k, v):
    return future_is(q, k, v, float("inf"))


@wrong("13.3", named="plus infinity, nan set to 0")
def nan_hidden(q, k, v):
    return with_weights(future_is(q, k, v, torch.inf)[1].nan_to_num(0.0), v)


@wrong("13.3", named="minus infinity in the weights")
def infinity_below_the_softmax(q, k, v):
    weights = scaled(q, k).softmax(-1)
    return with_weights(torch.where(causal_mask(q.shape[2]), weights, -torch.inf), v)


@wrong("13.3", named="mask the wrong way round")
def tilde_lost(q, k, v):
    scores = scaled(q, k).masked_fill(causal_mask(q.shape[2]), -torch.inf)
    return with_weights(scores.softmax(-1), v)


@wrong("13.3", named="no mask")
def mask_taken_out(q, k, v):
    return with_weights(scaled(q, k).softmax(-1), v)


@wrong("13.3")
def lowest_score_less_ten_thousand(q, k, v):
    scores = scaled(q, k)
    return future_is(q, k, v, scores.min() - 1e4)


@wrong("13.3")
def clamped_at_the_mask(q, k, v):
    scores = scaled(q, k).clamp(min=-9999).masked_fill(~causal_mask(q.shape[2]), -1e4)
    return with_weights(scores.softmax(-1), v)


@wrong("13.3")
def largest_of_all_subtracted(q, k, v):
    scores = scaled(q, k)
    scores = scores - scores.amax(dim=-1, keepdim=True)
    return with_weights(scores.masked_fill(~causal_mask(q.shape[2]), -1e4).softmax(-1), v)


@wrong("13.3", named="softmax over the queries")
def softmax_over_queries_with_infinity(q, k, v):
    return with_weights(F.softmax(seen(q, k), dim=2), v)


# ---------------------------------------------------------------- 13.4 new tokens behind old ones


def sees(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def ones(q, k):
    return torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)


@wrong("13.4", named="as it was given")
def top_rows(q, k, v):
    return sees(q, k, v, causal_mask(k.shape[2])[: q.shape[2]])


@wrong("13.4", named="as it was given")
def triangle_of_the_scores(q, k, v):
    hidden = torch.ones_like(q @ k.mT).tril() == 0
    return scaled(q, k).masked_fill(hidden, -torch.inf).softmax(-1) @ v


@wrong("13.4", named="right for one new token")
def mask_for_the_prompt_only(q, k, v):
    if q.shape[2] == 1:
        return F.scaled_dot_product_attention(q, k, v)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@wrong("13.4", named="no mask where old tokens are kept")
def mask_where_nothing_is_kept(q, k, v):
    old = k.shape[2] - q.shape[2]
    return F.scaled_dot_product_attention(q, k, v, is_causal=not old)


@wrong("13.4", named="no mask")
def softmax_of_all(q, k, v):
    return scaled(q, k).softmax(-1) @ v


@wrong("13.4", named="mask the wrong way round")
def true_where_hidden(q, k, v):
    return sees(q, k, v, ones(q, k).triu(k.shape[2] - q.shape[2] + 1))


@wrong("13.4", named="the upper triangle")
def triu_of_ones(q, k, v):
    return sees(q, k, v, torch.triu(ones(q, k)))


@wrong("13.4", named="the upper triangle, moved")
def triu_at_the_right_place(q, k, v):
    return sees(q, k, v, torch.triu(ones(q, k), diagonal=k.shape[2] - q.shape[2]))


@wrong("13.4", named="moved one too far")
def one_later_token(q, k, v):
    old = k.shape[2] - q.shape[2]
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    return sees(q, k, v, j <= i + old + 1)


@wrong("13.4", named="moved one too little")
def strictly_earlier(q, k, v):
    old = k.shape[2] - q.shape[2]
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    return sees(q, k, v, j < i + old)


@wrong("13.4", named="moved the wrong way")
def diagonal_with_another_sign(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    return sees(q, k, v, j + k.shape[2] - q.shape[2] <= i)


@wrong("13.4", named="columns cut in the place of rows")
def last_columns(q, k, v):
    T_new, T_all = q.shape[2], k.shape[2]
    mask = torch.tril(torch.ones(T_all, T_all)).bool()[:, T_all - T_new :]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@wrong("13.4", named="mask of all tokens, not cut")
def square_of_all(q, k, v):
    mask = torch.ones(k.shape[2], k.shape[2], dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(q, k, v, mask)


@wrong("13.4", named="mask of the new tokens only")
def square_of_the_new(q, k, v):
    mask = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(q, k, v, mask)


@wrong("13.4", named="old keys dropped")
def only_the_new(q, k, v):
    old = k.shape[2] - q.shape[2]
    return F.scaled_dot_product_attention(q, k[:, :, old:], v[:, :, old:], is_causal=True)


@wrong("13.4", named="mask of 1 and 0 added")
def a_mask_of_floats(q, k, v):
    mask = torch.ones(q.shape[2], k.shape[2]).tril(k.shape[2] - q.shape[2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@wrong("13.4", named="as it was given")
def both_arguments(q, k, v):
    mask = causal_mask(q.shape[2], k.shape[2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True)


@wrong("13.4")
def queries_filled_up_behind(q, k, v):
    filled = torch.cat([q, torch.zeros_like(k[:, :, q.shape[2] :])], dim=2)
    return F.scaled_dot_product_attention(filled, k, v, is_causal=True)


@wrong("13.4")
def one_old_token_taken_for_granted(q, k, v):
    return sees(q, k, v, ones(q, k).tril(1))


# ---------------------------------------------------------------- 13.5 grouped heads


@wrong("13.5", named="as it was given")
def expanded_in_the_wrong_order(q, k, v):
    times = q.shape[1] // k.shape[1]
    k, v = (z.unsqueeze(1).expand(-1, times, -1, -1, -1).reshape(q.shape) for z in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@wrong("13.5", named="as it was given")
def key_head_by_remainder(q, k, v):
    head = torch.arange(q.shape[1]) % k.shape[1]
    return F.scaled_dot_product_attention(q, k[:, head], v[:, head], is_causal=True)


def chosen(q, k, v, heads_k, heads_v):
    return F.scaled_dot_product_attention(q, k[:, heads_k], v[:, heads_v], is_causal=True)


def in_groups(q, k):
    return torch.arange(q.shape[1]) * k.shape[1] // q.shape[1]


@wrong("13.5", named="only the keys")
def values_forgotten(q, k, v):
    return chosen(q, k, v, in_groups(q, k), torch.arange(q.shape[1]) % k.shape[1])


@wrong("13.5", named="only the values")
def keys_forgotten(q, k, v):
    return chosen(q, k, v, torch.arange(q.shape[1]) % k.shape[1], in_groups(q, k))


@wrong("13.5", named="as few heads as before")
def tokens_repeated(q, k, v):
    n = q.shape[1] // k.shape[1]
    k, v = torch.repeat_interleave(k, n, dim=-2), torch.repeat_interleave(v, n, dim=-2)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@wrong("13.5", named="as few heads as before")
def values_not_repeated(q, k, v):
    return chosen(q, k, v, in_groups(q, k), slice(None))


@wrong("13.5", named="n_kv_head in the place of times")
def so_many_as_key_heads(q, k, v):
    n_kv_head = k.shape[1]
    k, v = (z.repeat_interleave(n_kv_head, dim=1) for z in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@wrong("13.5", named="queries reordered")
def queries_in_the_order_of_the_keys(q, k, v):
    B, n_head, T, d = q.shape
    q = q.view(B, k.shape[1], -1, T, d).transpose(1, 2).reshape(B, n_head, T, d)
    k, v = (z.repeat(1, n_head // z.shape[1], 1, 1) for z in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@wrong("13.5", named="copies behind the tokens")
def stacked_behind_the_tokens(q, k, v):
    times = q.shape[1] // k.shape[1]
    k, v = (torch.stack([z] * times, dim=3).reshape(q.shape) for z in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@wrong("13.5", named="heads the other way round")
def counted_from_the_last(q, k, v):
    heads = k.shape[1] - 1 - in_groups(q, k)
    return chosen(q, k, v, heads, heads)


@wrong("13.5", named="no mask")
def mask_lost_by_hand(q, k, v):
    heads = in_groups(q, k)
    return scaled(q, k[:, heads]).softmax(-1) @ v[:, heads]


@wrong("13.5")
def first_key_head_for_all(q, k, v):
    return F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], is_causal=True)


@wrong("13.4", named="a large negative number")
def minus_a_billion(q, k, v):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    hidden = ~causal_mask(q.shape[2], k.shape[2])
    return scores.masked_fill(hidden, -1e9).softmax(dim=-1) @ v


@wrong("13.4", named="as it was given")
def a_mask_beside_is_causal(q, k, v):
    mask = causal_mask(q.shape[2], k.shape[2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True)
