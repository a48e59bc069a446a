"""Wrong answers to the exercises of notebook 13, as learners might write them."""

from itertools import pairwise

import torch
import torch.nn.functional as F

from helpers.attention import attention, causal_mask
from lesson.exercises.nb13 import near_mask
from tests.lesson.answers import wrong


def scaled(q, k):
    return q @ k.transpose(-2, -1) / q.size(-1) ** 0.5


def seen(q, k):
    """Scores with minus infinity on the future."""
    scores = scaled(q, k)
    return scores.masked_fill(torch.ones_like(scores).triu(1).bool(), float("-inf"))


def rows_of_1(weights):
    return weights / weights.sum(dim=-1, keepdim=True)


def with_weights(weights, v):
    return weights @ v, weights


def future_is(q, k, v, value):
    scores = scaled(q, k)
    return with_weights(torch.where(causal_mask(q.shape[2]), scores, value).softmax(-1), v)


# ---------------------------------------------------------------- 13.1 fix the cause


@wrong("13.1", named="the outputs fixed, the weights not")
def outputs_of_pytorch(q, k, v):
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out, rows_of_1(seen(q, k).softmax(-2))


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


@wrong("13.2", named="the weights fixed, the outputs not")
def masked_for_the_picture(q, k, v, need_weights):
    if not need_weights:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True), None
    return scaled(q, k).softmax(-1) @ v, seen(q, k).softmax(-1)


@wrong("13.2")
def low_number_as_mask(q, k, v, need_weights):
    if not need_weights:
        return attention(q, k, v, causal_mask(q.shape[2]))[0], None
    return future_is(q, k, v, -1e4)


@wrong("13.2")
def output_without_a_pair(q, k, v, need_weights):
    if not need_weights:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return attention(q, k, v, causal_mask(q.shape[2]))


# ---------------------------------------------------------------- 13.4 new tokens behind old ones


@wrong("13.4", named="as it was given")
def triangle_of_the_scores(q, k, v):
    hidden = torch.ones_like(q @ k.mT).tril() == 0
    return scaled(q, k).masked_fill(hidden, -torch.inf).softmax(-1) @ v


@wrong("13.4")
def queries_filled_up_behind(q, k, v):
    filled = torch.cat([q, torch.zeros_like(k[:, :, q.shape[2] :])], dim=2)
    return F.scaled_dot_product_attention(filled, k, v, is_causal=True)


@wrong("13.4")
def one_old_token_taken_for_granted(q, k, v):
    may = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(1)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=may)


# ---------------------------------------------------------------- 13.5 grouped heads


@wrong("13.5", named="queries reordered")
def queries_in_the_order_of_the_keys(q, k, v):
    B, n_head, T, d = q.shape
    q = q.view(B, k.shape[1], -1, T, d).transpose(1, 2).reshape(B, n_head, T, d)
    k, v = (z.repeat(1, n_head // z.shape[1], 1, 1) for z in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@wrong("13.5")
def first_key_head_for_all(q, k, v):
    return F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], is_causal=True)


# ---------------------------------------------------------------- 13.6 a question in pieces


def read_in_pieces(attention, x, sizes):
    cache, ends = [], [0, *torch.tensor(sizes).cumsum(0).tolist()]
    parts = [attention(x[:, a:b], start=a, cache=cache) for a, b in pairwise(ends)]
    return torch.cat(parts, dim=1)


def chat(x):
    return [3, 1, 1, x.shape[1] - 5]


@wrong("13.6", named="one by one")
def a_prompt_and_then_letters(attention, x):
    pieces = read_in_pieces(attention, x, [4] + (x.shape[1] - 4) * [1])
    return torch.max(abs(pieces - attention(x)))


@wrong("13.6")
def a_length_from_memory(attention, x):
    return (read_in_pieces(attention, x, [3, 1, 4]) - attention(x)).abs().max().item()


@wrong("13.6")
def all_differences(attention, x):
    return (read_in_pieces(attention, x, chat(x)) - attention(x)).abs()


@wrong("13.6")
def read_from_the_beginning_again(attention, x):
    cache, out = [], attention(x[:, :3])
    for end in range(4, x.shape[1] + 1):
        out = torch.cat([out, attention(x[:, :end], cache=cache)[:, -1:]], dim=1)
    return (out - attention(x)).abs().max().item()


def one_list_for_ever(attention, x, cache=[]):  # noqa: B006
    out, start = [], 0
    for piece in x.split(chat(x), dim=1):
        out.append(attention(piece, start=start, cache=cache))
        start += piece.shape[1]
    return (torch.cat(out, dim=1) - attention(x)).abs().max().item()


wrong("13.6")(one_list_for_ever)


# ---------------------------------------------------------------- 13.7 the window


@wrong("13.7", named="a slice that begins below 0")
def a_row_at_a_time(T_new, T_all, window):
    rows = torch.zeros(T_new, T_all).bool()
    for row, end in zip(rows, range(T_all - T_new + 1, T_all + 1), strict=True):
        row[end - window : end] = True
    return rows


@wrong("13.7")
def all_tokens_as_queries(T_new, T_all, window):
    back = torch.arange(T_all)[:, None] - torch.arange(T_all)
    return (back >= 0) & (back < window)


@wrong("13.7")
def too_many_new_ones(T_new, T_all, window):
    query, key = torch.arange(T_new)[:, None], torch.arange(T_all)
    return (key <= query + T_all - T_new) & (key > query + T_new - window)


# ---------------------------------------------------------------- 13.8 the sink


@wrong("13.8", named="sinks before they come")
def columns_set_to_true(T_new, T_all, window, sinks):
    mask = near_mask(T_new, T_all, window).clone()
    mask[:, :sinks] = True
    return mask


@wrong("13.8")
def everything_opened(T_new, T_all, window, sinks):
    causal, first = near_mask(T_new, T_all, T_all), torch.arange(T_all) < sinks
    return causal | first | near_mask(T_new, T_all, window)
