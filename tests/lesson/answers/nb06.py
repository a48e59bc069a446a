"""Wrong answers to the exercises of notebook 06, as learners might write them."""

import torch
import torch.nn.functional as F

from helpers.attention import causal_mask
from tests.lesson.answers import wrong


def cut(z, n_head):  # from the notebook
    return z.view(*z.shape[:2], n_head, -1)  # (B, T, n_head, head_size)


C = 32  # as in the notebook


def pieces(z, n_head):
    """A list of the heads' channels, (B, T, head_size) each."""
    head_size = z.shape[-1] // n_head
    return [z[..., h * head_size : (h + 1) * head_size] for h in range(n_head)]


def exponentials(q, k, scale=None):
    """Of all scores, divided by the root of the length of a query if no scale is given."""
    return torch.exp(torch.einsum("btd,bsd->bts", q, k) * (scale or q.shape[-1] ** -0.5))


def divided(e):
    """Rows that sum to 1."""
    return e / e.sum(dim=-1, keepdim=True)


def head_by_head(q, k, v, n_head, one_head):
    """The outputs of a function of one head's queries, keys and values, side by side."""
    split = zip(*(pieces(z, n_head) for z in (q, k, v)), strict=True)
    return torch.cat([one_head(*parts) for parts in split], dim=-1)


# -------------------------------------------------------- 06.1 a list of heads


@wrong("06.1", named="along the time axis")
def stacked_like_numpy(heads, x):
    return torch.hstack([head(x) for head in heads])


@wrong("06.1", named="stacked on a new last axis")
def stacked_on_a_new_axis(heads, x):
    return torch.stack([head(x) for head in heads], dim=-1)


@wrong("06.1", named="channels of the heads shuffled together")
def heads_interleaved(heads, x):
    outputs = torch.stack([head(x) for head in heads], dim=-1)
    return outputs.flatten(start_dim=-2)


@wrong("06.1", named="added")
def heads_added(heads, x):
    out = 0
    for head in heads:
        out = out + head(x)
    return out


@wrong("06.1", named="last head first")
def last_head_first(heads, x):
    out = heads[0](x)
    for head in heads[1:]:
        out = torch.cat([head(x), out], dim=-1)
    return out


@wrong("06.1", named="along the batch axis")
def joined_along_the_batch(heads, x):
    return torch.cat([head(x) for head in heads])


@wrong("06.1", "returns the list of outputs and does not join them")
def a_list_of_outputs(heads, x):
    return [head(x) for head in heads]


@wrong("06.1", named="the same head each time")
def the_first_head_repeated(heads, x):
    head = heads[0]
    return torch.cat([head(x) for _ in heads], dim=-1)


@wrong("06.1", named="each head reads the head before it")
def heads_in_a_chain(heads, x):
    outputs = []
    for head in heads:
        x = head(x)
        outputs.append(x)
    return torch.cat(outputs, dim=-1)


@wrong("06.1", "runs the heads under no_grad, so no gradient reaches x or their weights")
def heads_without_gradient(heads, x):
    with torch.no_grad():
        return torch.cat([head(x) for head in heads], dim=-1)


@wrong("06.1", "puts x itself in front of the outputs")
def x_in_front(heads, x):
    return torch.cat([x, *(head(x) for head in heads)], dim=-1)


@wrong("06.1", named="the first head only")
def returns_in_the_loop(heads, x):
    outputs = []
    for head in heads:
        outputs.append(head(x))
        return torch.cat(outputs, dim=-1)


@wrong("06.1", named="each head reads a slice of x")
def each_head_reads_a_slice(heads, x):
    slices = x.chunk(len(heads), dim=-1)
    return torch.cat([head(part) for head, part in zip(heads, slices, strict=True)], dim=-1)


@wrong("06.1", "the loop ends one too early, so the last head is left out")
def without_the_last_head(heads, x):
    return torch.cat([heads[h](x) for h in range(len(heads) - 1)], dim=-1)


@wrong("06.1", "is written for exactly four heads")
def four_heads_by_hand(heads, x):
    a, b, c, d = heads[0](x), heads[1](x), heads[2](x), heads[3](x)
    return torch.cat([a, b, c, d], dim=-1)


@wrong("06.1", named="stacked, then reshaped")
def reshaped_with_heads_in_front(heads, x):
    B, T, _ = x.shape
    return torch.stack([head(x) for head in heads]).reshape(B, T, -1)


@wrong("06.1", "fills a tensor as wide as x, although n_head * head_size may differ from C")
def heads_in_a_tensor_like_x(heads, x):
    result = torch.zeros_like(x)
    start = 0
    for head in heads:
        out = head(x)
        result[..., start : start + out.shape[-1]] = out
        start += out.shape[-1]
    return result


@wrong("06.1", named="stacked on axis 1, then reshaped")
def heads_stacked_before_tokens(heads, x):
    B, T, _ = x.shape
    return torch.stack([head(x) for head in heads], dim=1).reshape(B, T, -1)


@wrong("06.1", "takes exactly the first four heads, however many there are")
def heads_first_four(heads, x):
    return torch.cat([head(x) for head in heads[:4]], dim=2)


@wrong("06.1", named="stacked on a new axis")
def heads_in_an_axis_after_the_batch(heads, x):
    return torch.cat([head(x)[:, None] for head in heads], dim=1)


@wrong("06.1", named="stacked on a new first axis")
def heads_in_an_axis_in_front(heads, x):
    return torch.cat([head(x)[None] for head in heads])


@wrong("06.1", named="stacked on a new axis before the channels")
def heads_in_an_axis_before_the_channels(heads, x):
    return torch.cat([head(x).unsqueeze(-2) for head in heads], dim=-2)


@wrong("06.1", named="averaged")
def heads_added_and_divided(heads, x):
    total = 0
    for head in heads:
        total = total + head(x)
    return total / len(heads)


@wrong("06.1", named="one after the other")
def heads_write_into_x(heads, x):
    outputs, stream = [], x.clone()
    for head in heads:
        out = head(stream)
        stream[..., : out.shape[-1]] = out
        outputs.append(out)
    return torch.cat(outputs, dim=-1)


@wrong("06.1", named="the last head only")
def heads_overwrite_the_output(heads, x):
    for head in heads:
        out = head(x)
    return out


@wrong("06.1", "the output of the last head is never written, so its channels stay 0")
def last_part_stays_zero(heads, x):
    outputs = [head(x) for head in heads]
    out = torch.zeros(*x.shape[:2], sum(one.shape[-1] for one in outputs))
    start = 0
    for one in outputs[:-1]:
        out[..., start : start + one.shape[-1]] = one
        start += one.shape[-1]
    return out


# ------------------------------------------------ 06.2 all heads in one tensor


@wrong("06.2", named="split by view, without transpose")
def split_by_view_alone(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.view(B, n_head, T, C // n_head) for z in (q, k, v))
    scores = q @ k.mT / (C // n_head) ** 0.5
    weights = torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)
    return (weights @ v).transpose(1, 2).reshape(B, T, C)


@wrong("06.2", named="divided by √C")
def divided_by_root_c(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (cut(z, n_head).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.mT / C**0.5
    weights = torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)
    return (weights @ v).transpose(1, 2).reshape(B, T, C)


@wrong("06.2", named="no mask")
def no_mask_at_all(q, k, v, n_head):
    q, k, v = (cut(z, n_head).transpose(1, 2) for z in (q, k, v))
    weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
    out = weights @ v
    return out.transpose(1, 2).flatten(2)


@wrong("06.2", named="softmax over the queries")
def softmax_over_queries(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (cut(z, n_head).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.mT / (C // n_head) ** 0.5
    weights = scores.masked_fill(~causal_mask(T), float("-inf")).softmax(dim=-2)
    return (weights @ v).transpose(1, 2).reshape(B, T, C)


@wrong("06.2", named="mask the wrong way round")
def mask_the_wrong_way_round(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (cut(z, n_head).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.mT / (C // n_head) ** 0.5
    scores = scores.masked_fill(causal_mask(T), float("-inf"))
    return (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, C)


@wrong("06.2", named="split and merged by view")
def view_both_times(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.reshape(B, n_head, T, -1) for z in (q, k, v))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(T), float("-inf"))
    return (scores.softmax(-1) @ v).reshape(B, T, C)


@wrong("06.2", named="one large head")
def one_big_head(q, k, v, n_head):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@wrong("06.2", named="divided by head_size, not √head_size")
def divided_by_head_size(q, k, v, n_head):
    B, T, C = q.shape
    head_size = C // n_head
    q, k, v = (cut(z, n_head).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.mT / head_size
    weights = torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)
    return (weights @ v).transpose(1, 2).reshape(B, T, C)


@wrong("06.2", named="keys used as values")
def weights_times_keys(q, k, v, n_head):
    B, T, C = q.shape
    q, k = cut(q, n_head).transpose(1, 2), cut(k, n_head).transpose(1, 2)
    scores = q @ k.mT / (C // n_head) ** 0.5
    weights = torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)
    return (weights @ k).transpose(1, 2).reshape(B, T, C)


@wrong("06.2", named="queries and keys swapped")
def keys_ask_queries(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (cut(z, n_head).transpose(1, 2) for z in (q, k, v))
    scores = k @ q.mT / (C // n_head) ** 0.5
    weights = torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)
    return (weights @ v).transpose(1, 2).reshape(B, T, C)


@wrong("06.2", named="future filled with 0")
def future_scores_set_to_zero(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (cut(z, n_head).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.mT * causal_mask(T) / (C // n_head) ** 0.5
    return (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, C)


@wrong("06.2", named="no scale")
def scores_not_divided(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (cut(z, n_head).transpose(1, 2) for z in (q, k, v))
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
    weights = torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)
    return torch.einsum("bhqk,bhkd->bqhd", weights, v).reshape(B, T, C)


@wrong("06.2", named="heads averaged")
def averaged_over_heads(q, k, v, n_head):
    T = q.shape[1]
    q, k, v = (cut(z, n_head).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)
    return (weights @ v).mean(dim=1)


@wrong("06.2", named="keys transposed on other axes")
def keys_transposed_on_the_wrong_axes(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (cut(z, n_head).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.transpose(1, 2) / (C // n_head) ** 0.5
    weights = torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)
    return (weights @ v).transpose(1, 2).reshape(B, T, C)


@wrong("06.2", named="channels interleaved by split and merge")
def every_nth_channel(q, k, v, n_head):
    B, T, C = q.shape
    size = C // n_head
    q, k, v = (z.view(B, T, size, n_head).permute(0, 3, 1, 2) for z in (q, k, v))
    scores = (q @ k.mT / size**0.5).masked_fill(~causal_mask(T), float("-inf"))
    out = torch.softmax(scores, dim=-1) @ v
    return out.permute(0, 2, 3, 1).reshape(B, T, C)


@wrong("06.2", named="masked after the softmax")
def masked_after_the_softmax(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (cut(z, n_head).transpose(1, 2) for z in (q, k, v))
    weights = torch.softmax(q @ k.mT / (C // n_head) ** 0.5, dim=-1).tril()
    return (weights @ v).transpose(1, 2).reshape(B, T, C)


@wrong("06.2", named="diagonal masked too")
def may_not_attend_to_itself(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (cut(z, n_head).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.mT / (C // n_head) ** 0.5
    before = torch.ones(T, T, dtype=torch.bool).tril(diagonal=-1)
    weights = torch.softmax(scores.masked_fill(~before, float("-inf")), dim=-1)
    return (weights @ v).transpose(1, 2).reshape(B, T, C)


@wrong("06.2", named="n_head and head_size swapped")
def n_head_taken_for_head_size(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.view(B, T, -1, n_head).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.mT / n_head**0.5
    weights = torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)
    return (weights @ v).transpose(1, 2).reshape(B, T, C)


@wrong("06.2", named="mask the wrong way round for PyTorch's function")
def mask_upside_down(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.view(B, T, n_head, -1).transpose(1, 2) for z in (q, k, v))
    future = torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=future)
    return out.transpose(1, 2).reshape(B, T, C)


@wrong("06.2", named="softmax over the heads")
def softmax_over_heads(q, k, v, n_head):
    B, T, C = q.shape
    head_size = C // n_head
    q, k, v = (z.view(B, T, n_head, head_size).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.transpose(-2, -1) / head_size**0.5
    weights = torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=1)
    return (weights @ v).transpose(1, 2).reshape(B, T, C)


@wrong("06.2", named="n_head and head_size swapped, but divided by √head_size")
def many_heads_split_by_count(q, k, v, n_head):
    pieces = zip(q.split(n_head, -1), k.split(n_head, -1), v.split(n_head, -1), strict=True)
    head_size = q.shape[-1] // n_head
    allowed = causal_mask(q.shape[1])
    outputs = []
    for q_h, k_h, v_h in pieces:
        scores = q_h @ k_h.mT / head_size**0.5
        weights = torch.softmax(scores.masked_fill(~allowed, float("-inf")), dim=-1)
        outputs.append(weights @ v_h)
    return torch.cat(outputs, dim=-1)


@wrong("06.2", named="no transpose")
def many_heads_attend_to_heads(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.view(B, T, n_head, C // n_head) for z in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).reshape(B, T, C)


@wrong("06.2", named="merged by view, without transpose")
def many_heads_merge_without_transpose(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.view(B, T, n_head, -1).transpose(1, 2) for z in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).reshape(B, T, C)


@wrong("06.2", named="divided by √n_head")
def many_heads_root_of_n_head(q, k, v, n_head):
    B, T, _ = q.shape
    q, k, v = (z.reshape(B, T, n_head, -1).transpose(1, 2) for z in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=n_head**-0.5)
    return out.transpose(1, 2).flatten(2)


@wrong("06.2", named="channels interleaved by the split")
def many_heads_of_every_nth_channel(q, k, v, n_head):
    outputs = []
    for h in range(n_head):
        one, two, three = (z[..., h::n_head] for z in (q, k, v))
        outputs.append(divided(exponentials(one, two).tril()) @ three)
    return torch.cat(outputs, dim=-1)


@wrong("06.2", named="channels interleaved by the merge")
def many_heads_into_every_nth_channel(q, k, v, n_head):
    out = torch.zeros_like(v)
    for h in range(n_head):
        one, two, three = (pieces(z, n_head)[h] for z in (q, k, v))
        out[..., h::n_head] = divided(exponentials(one, two).tril()) @ three
    return out


@wrong("06.2", named="no transpose, so the mask does not fit")
def many_heads_masked_without_transpose(q, k, v, n_head):
    q, k, v = (z.unflatten(-1, (n_head, -1)) for z in (q, k, v))
    scores = torch.einsum("btnd,btmd->btnm", q, k) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(q.shape[1]), -torch.inf)
    return torch.softmax(scores, dim=-1).matmul(v).flatten(2)


@wrong("06.2", named=".mT instead of transpose(1, 2)")
def many_heads_last_two_swapped(q, k, v, n_head):
    q, k, v = (z.unflatten(-1, (n_head, -1)).transpose(-1, -2) for z in (q, k, v))
    scores = torch.einsum("btdn,bten->btde", q, k) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(q.shape[-2]), -torch.inf)
    return torch.softmax(scores, dim=-1).matmul(v).transpose(-1, -2).flatten(2)


@wrong("06.2", named="merged with .mT")
def many_heads_merged_after_another_swap(q, k, v, n_head):
    outputs = []
    for h in range(n_head):
        one, two, three = (pieces(z, n_head)[h] for z in (q, k, v))
        outputs.append(divided(exponentials(one, two).tril()) @ three)
    return torch.stack(outputs, dim=1).transpose(2, 3).reshape(v.shape)


@wrong("06.2", named="only v split by view")
def many_heads_runs_of_values(q, k, v, n_head):
    B, T, C = v.shape
    runs = v.flatten(1).chunk(n_head, dim=1)
    outputs = []
    for one, two, run in zip(pieces(q, n_head), pieces(k, n_head), runs, strict=True):
        outputs.append(divided(exponentials(one, two).tril()) @ run.reshape(B, T, C // n_head))
    return torch.cat(outputs, dim=-1)


@wrong("06.2", named="not merged")
def many_heads_left_apart(q, k, v, n_head):
    split = zip(*(pieces(z, n_head) for z in (q, k, v)), strict=True)
    heads = [divided(exponentials(one, two).tril()) @ three for one, two, three in split]
    return torch.stack(heads, dim=1)


@wrong("06.2", named="mask added as 1 and 0")
def many_heads_with_ones_added(q, k, v, n_head):
    def one_head(q, k, v):
        e = exponentials(q, k)
        return divided(e * torch.ones_like(e).tril().exp()) @ v

    return head_by_head(q, k, v, n_head, one_head)


@wrong("06.2", named="a second softmax")
def many_heads_with_two_exponentials(q, k, v, n_head):
    def one_head(q, k, v):
        return divided(divided(exponentials(q, k).tril()).exp()) @ v

    return head_by_head(q, k, v, n_head, one_head)


@wrong("06.2", named="scaled after the softmax")
def many_heads_outputs_over_the_root(q, k, v, n_head):
    def one_head(q, k, v):
        return divided(exponentials(q, k, scale=1).tril()) @ v / q.shape[-1] ** 0.5

    return head_by_head(q, k, v, n_head, one_head)


@wrong("06.2", named="keys not transposed")
def many_heads_keys_as_they_are(q, k, v, n_head):
    q, k, v = (torch.stack(pieces(z, n_head), dim=1) for z in (q, k, v))
    scores = torch.matmul(q, k) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(q.shape[2]), -torch.inf)
    return torch.softmax(scores, dim=-1).matmul(v).transpose(1, 2).flatten(2)


@wrong("06.2", named="divided by head_size / 2")
def many_heads_over_half(q, k, v, n_head):
    def one_head(q, k, v):
        return divided(exponentials(q, k, scale=2 / q.shape[-1]).tril()) @ v

    return head_by_head(q, k, v, n_head, one_head)


@wrong("06.2", named="divided by 2 head_size")
def many_heads_over_twice(q, k, v, n_head):
    def one_head(q, k, v):
        return divided(exponentials(q, k, scale=0.5 / q.shape[-1]).tril()) @ v

    return head_by_head(q, k, v, n_head, one_head)


@wrong("06.2", named="no softmax")
def many_heads_with_scores_for_weights(q, k, v, n_head):
    def one_head(q, k, v):
        scores = torch.where(causal_mask(q.shape[1]), exponentials(q, k).log(), -torch.inf)
        return (scores[..., None] * v[:, None]).sum(dim=2)

    return head_by_head(q, k, v, n_head, one_head)


@wrong("06.2", named="scores thrown away")
def many_heads_running_means(q, k, v, n_head):
    return v.cumsum(dim=1) / torch.arange(1, v.shape[1] + 1)[:, None]


@wrong("06.2", named="diagonal masked with -1e9")
def many_heads_with_an_even_first_row(q, k, v, n_head):
    def one_head(q, k, v):
        e = exponentials(q, k).tril(-1)
        e[:, 0] = 1
        return divided(e) @ v

    return head_by_head(q, k, v, n_head, one_head)


@wrong("06.2", named="0 times infinity")
def many_heads_times_infinity(q, k, v, n_head):
    def one_head(q, k, v):
        T = q.shape[1]
        mask = torch.tensor([[float(s > t) for s in range(T)] for t in range(T)])
        return F.softmax(exponentials(q, k).log() + mask * -torch.inf, dim=-1) @ v

    return head_by_head(q, k, v, n_head, one_head)


@wrong("06.2", named="upper triangle kept")
def many_heads_of_triu(q, k, v, n_head):
    def one_head(q, k, v):
        return divided(exponentials(q, k).triu()) @ v

    return head_by_head(q, k, v, n_head, one_head)


@wrong("06.2", named="mask one too far")
def many_heads_see_the_next_token(q, k, v, n_head):
    def one_head(q, k, v):
        return divided(exponentials(q, k).tril(1)) @ v

    return head_by_head(q, k, v, n_head, one_head)


@wrong("06.2", named="multiplied by √head_size")
def many_heads_times_the_root(q, k, v, n_head):
    def one_head(q, k, v):
        return divided(exponentials(q, k, scale=q.shape[-1] ** 0.5).tril()) @ v

    return head_by_head(q, k, v, n_head, one_head)


@wrong("06.2", named="divided by √T")
def many_heads_over_root_of_tokens(q, k, v, n_head):
    def one_head(q, k, v):
        return divided(exponentials(q, k, scale=q.shape[1] ** -0.5).tril()) @ v

    return head_by_head(q, k, v, n_head, one_head)


@wrong("06.2", named="weights transposed")
def many_heads_sum_over_the_queries(q, k, v, n_head):
    def one_head(q, k, v):
        return torch.einsum("bts,btd->bsd", divided(exponentials(q, k).tril()), v)

    return head_by_head(q, k, v, n_head, one_head)


@wrong("06.2", named="softmax over the heads, masked with -1e9")
def many_heads_share_each_pair(q, k, v, n_head):
    split = zip(pieces(q, n_head), pieces(k, n_head), strict=True)
    past = causal_mask(q.shape[1])
    e = [torch.where(past, exponentials(one, two), 1.0) for one, two in split]
    values = pieces(v, n_head)
    return torch.cat([e[h] / sum(e) @ values[h] for h in range(n_head)], dim=-1)


# --------------------------------------------------- 06.3 split a fused weight


@wrong("06.3", named="every third row")
def every_third_row(fused):
    return fused[0::3], fused[1::3], fused[2::3]


@wrong("06.3", named="value first, query last")
def cut_from_the_end(fused):
    C = fused.shape[1]
    return fused[-C:], fused[-2 * C : -C], fused[: -2 * C]


@wrong("06.3", named="cut along the columns")
def columns_cut(fused):
    return torch.chunk(fused, 3, dim=1)


@wrong("06.3", "is fixed to C = 32")
def fixed_to_32(fused):
    return fused[:32], fused[32:64], fused[64:96]


@wrong("06.3", "returns query and key only and leaves out the value")
def without_the_value(fused):
    C = fused.shape[1]
    return fused[:C], fused[C : 2 * C]


@wrong("06.3", "never moves the start, so all three weights are the query's")
def three_times_the_query(fused):
    C = fused.shape[1]
    start = 0
    pieces = []
    for _ in range(3):
        pieces.append(fused[start : start + C])
    return tuple(pieces)


@wrong("06.3", "returns a dict, which unpacks into its names and not into the weights")
def as_a_dict(fused):
    C = fused.shape[1]
    return {"query": fused[:C], "key": fused[C : 2 * C], "value": fused[2 * C :]}


@wrong("06.3", "divides the query weight by √C, although only a split was asked for")
def query_scaled_already(fused):
    query, key, value = fused.chunk(3)
    return query / fused.shape[1] ** 0.5, key, value


@wrong("06.3", named="key and value exchanged")
def key_and_value_swapped(fused):
    query, value, key = fused.chunk(3, dim=0)
    return query, key, value


@wrong("06.3", named="transposed first, then cut")
def reshaped_after_transpose(fused):
    C = fused.shape[1]
    query, key, value = fused.T.reshape(3, C, C)
    return query, key, value


@wrong("06.3", "assumes that the rows are ordered by head, with query, key and value of each head")
def ordered_by_head(fused):
    C = fused.shape[1]
    n_head = 4
    groups = fused.view(n_head, 3, C // n_head, C)
    return tuple(groups[:, i].reshape(C, C) for i in range(3))


@wrong("06.3", "sets the other rows to 0 instead of cutting them off, so the shape stays (3C, C)")
def other_rows_zeroed(fused):
    C = fused.shape[1]
    pieces = []
    for i in range(3):
        piece = torch.zeros_like(fused)
        piece[i * C : (i + 1) * C] = fused[i * C : (i + 1) * C]
        pieces.append(piece)
    return pieces


@wrong("06.3", "splits into pieces of C // 3 rows, because it takes C for the fused size")
def pieces_a_third_of_c(fused):
    size = fused.shape[1] // 3
    return fused[:size], fused[size : 2 * size], fused[2 * size : 3 * size]


@wrong("06.3", named="key first")
def cut_key_first(fused):
    query, key, value = fused.chunk(3, dim=0)
    return key, query, value


@wrong("06.3", named="pieces of three rows")
def cut_pieces_of_three(fused):
    return torch.split(fused, 3)


@wrong("06.3", named="transposed")
def cut_and_transposed(fused):
    return tuple(piece.T for piece in fused.chunk(3, dim=0))


@wrong("06.3", named="value first")
def cut_last_piece_first(fused):
    C = fused.shape[1]
    return fused[2 * C :], fused[:C], fused[C : 2 * C]


@wrong("06.3", named="query last")
def cut_first_piece_last(fused):
    C = fused.shape[1]
    return [fused[(i + 1) % 3 * C :][:C] for i in range(3)]
