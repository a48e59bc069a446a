"""Wrong answers to the exercises of notebook 06, as learners might write them."""

import torch

from tests.lesson.answers import wrong

C = 32  # as in the notebook


def pieces(z, n_head):
    """A list of the heads' channels, (B, T, head_size) each."""
    head_size = z.shape[-1] // n_head
    return [z[..., h * head_size : (h + 1) * head_size] for h in range(n_head)]


# -------------------------------------------------------- 06.1 a list of heads


@wrong("06.1", named="last head first")
def last_head_first(heads, x):
    out = heads[0](x)
    for head in heads[1:]:
        out = torch.cat([head(x), out], dim=-1)
    return out


@wrong("06.1", "returns the list of outputs and does not join them")
def a_list_of_outputs(heads, x):
    return [head(x) for head in heads]


@wrong("06.1", "runs the heads under no_grad, so no gradient reaches x or their weights")
def heads_without_gradient(heads, x):
    with torch.no_grad():
        return torch.cat([head(x) for head in heads], dim=-1)


@wrong("06.1", "puts x itself in front of the outputs")
def x_in_front(heads, x):
    return torch.cat([x, *(head(x) for head in heads)], dim=-1)


@wrong("06.1", "the loop ends one too early, so the last head is left out")
def without_the_last_head(heads, x):
    return torch.cat([heads[h](x) for h in range(len(heads) - 1)], dim=-1)


@wrong("06.1", "is written for exactly four heads")
def four_heads_by_hand(heads, x):
    a, b, c, d = heads[0](x), heads[1](x), heads[2](x), heads[3](x)
    return torch.cat([a, b, c, d], dim=-1)


@wrong("06.1", "fills a tensor as wide as x, although n_head * head_size may differ from C")
def heads_in_a_tensor_like_x(heads, x):
    result = torch.zeros_like(x)
    start = 0
    for head in heads:
        out = head(x)
        result[..., start : start + out.shape[-1]] = out
        start += out.shape[-1]
    return result


@wrong("06.1", "takes exactly the first four heads, however many there are")
def heads_first_four(heads, x):
    return torch.cat([head(x) for head in heads[:4]], dim=2)


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


@wrong("06.2", named="scores thrown away")
def many_heads_running_means(q, k, v, n_head):
    return v.cumsum(dim=1) / torch.arange(1, v.shape[1] + 1)[:, None]


# --------------------------------------------------- 06.3 split a fused weight


@wrong("06.3", named="value first, query last")
def cut_from_the_end(fused):
    C = fused.shape[1]
    return fused[-C:], fused[-2 * C : -C], fused[: -2 * C]


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
