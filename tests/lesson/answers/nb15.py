"""Wrong answers to the exercises of notebook 15, as learners might write them."""

import torch

from tests.lesson.answers import wrong

# ---------------------------------------------------------------- 15.fill


def turned(weight, d):
    """The rows of each head in pairs, which the answers below get right."""
    order = [i + j for i in range(d // 2) for j in (0, d // 2)]
    return torch.cat([head[order] for head in weight.split(d)])


@wrong("15.fill", named="groups tiled")
def heads_in_turn(attention, query, key, value, proj):
    n_kv_head = len(key) // attention.head_size
    query, key = (turned(z, attention.head_size) for z in (query, key))
    keys, values = (one.chunk(n_kv_head) for one in (key, value))
    in_turn = [h % n_kv_head for h in range(attention.n_head)]
    attention.query.weight.data = query
    attention.key.weight.data = torch.cat([keys[h] for h in in_turn])
    attention.value.weight.data = torch.cat([values[h] for h in in_turn])
    attention.proj.weight.data = proj
    attention.proj.bias.data = torch.zeros_like(attention.proj.bias)


@wrong("15.fill", "all heads read the keys of head 0")
def the_first_head_for_all(attention, query, key, value, proj):
    d = attention.head_size
    query, key = turned(query, d), turned(key, d)
    attention.query.weight.copy_(query)
    attention.key.weight.copy_(key[:d].repeat(attention.n_head, 1))
    attention.value.weight.copy_(value[:d].repeat(attention.n_head, 1))
    attention.proj.weight.copy_(proj)
    attention.proj.bias.fill_(0)


@wrong("15.fill", "one query head of each group is filled")
def once_in_each_group(attention, query, key, value, proj):
    d = attention.head_size
    query, key = turned(query, d), turned(key, d)
    n = attention.n_head * d // len(key)
    attention.query.weight.copy_(query)
    attention.proj.weight.copy_(proj)
    attention.proj.bias.zero_()
    for g in range(len(key) // d):
        first = slice(g * n * d, (g * n + 1) * d)
        attention.key.weight[first] = key[g * d : (g + 1) * d]
        attention.value.weight[first] = value[g * d : (g + 1) * d]


@wrong("15.fill", named="halves left as they are")
def groups_alone(attention, query, key, value, proj):
    d, n = attention.head_size, len(query) // len(key)
    attention.query.weight.data, attention.proj.weight.data = query, proj
    for layer, weight in ((attention.key, key), (attention.value, value)):
        layer.weight.data = torch.cat([head for head in weight.split(d) for _ in range(n)])
    attention.proj.bias.data = torch.zeros(len(proj))


@wrong("15.fill", "the channels of each pair exchanged")
def turned_backwards(attention, query, key, value, proj):
    d = attention.head_size
    order = [i + j for i in range(d // 2) for j in (d // 2, 0)]
    query, key = (torch.cat([head[order] for head in z.split(d)]) for z in (query, key))
    groups_alone(attention, query, key, value, proj)


# ---------------------------------------------------------------- 15.1 patch one head


@wrong("15.1", named="every n-th channel")
def an_axis_of_heads_behind(z, other, head, n_head):
    z = z.clone()
    z.unflatten(-1, (-1, n_head))[:, -1, :, head] = other.unflatten(-1, (-1, n_head))[
        :, -1, :, head
    ]
    return z


@wrong("15.1", named="heads counted from 1")
def head_before(z, other, head, n_head):
    parts = [part.clone() for part in z.chunk(n_head, dim=-1)]
    parts[head - 1][:, -1] = other.chunk(n_head, dim=-1)[head - 1][:, -1]
    return torch.cat(parts, dim=-1)


@wrong("15.1", "z is overwritten")
def in_place(z, other, head, n_head):
    size = z.shape[-1] // n_head
    z[:, -1, head * size : (head + 1) * size] = other[:, -1, head * size : (head + 1) * size]
    return z


@wrong("15.1", "only the last token comes back")
def last_token_only(z, other, head, n_head):
    size = z.shape[-1] // n_head
    mine = torch.arange(z.shape[-1]) // size == head
    return torch.where(mine, other[:, -1], z[:, -1])


# ---------------------------------------------------------------- 15.4 hide a token


@wrong("15.4", named="softmax again")
def a_score_of_no_weight(maps, target):
    scores = maps.clone()
    scores[..., -1, target] = 0
    return torch.cat([maps[..., :-1, :], scores[..., -1:, :].softmax(dim=-1)], dim=-2)


@wrong("15.4", named="given to the last token")
def given_to_it(maps, target):
    maps = maps.clone()
    maps[..., -1, -1] += maps[..., -1, target]
    maps[..., -1, target] = 0
    return maps


@wrong("15.4", "one axis in front, always")
def with_one_batch(maps, target):
    maps = maps.clone()
    maps[:, -1, target] = 0
    maps[:, -1] /= maps[:, -1].sum(dim=-1, keepdim=True)
    return maps


@wrong("15.4", "the maps are overwritten")
def maps_in_place(maps, target):
    maps[..., -1, target] = 0
    maps[..., -1, :] /= maps[..., -1, :].sum(dim=-1, keepdim=True)
    return maps


# ---------------------------------------------------------------- 15.5 the wanted row


@wrong("15.5", named="the other weights stay")
def more_for_the_target(maps, target=1):
    last = torch.zeros_like(maps)
    last[..., -1, target] = 1 - maps[..., -1, target]
    return maps + last


# ---------------------------------------------------------------- 15.6 the control


@wrong("15.6", named="fewer than the test")
def taken_out_afterwards(maps, target, heads):
    first = maps[..., -1, target].flatten().argsort(descending=True)[: len(heads)]
    return [place for i in first.tolist() if (place := divmod(i, len(maps[0]))) not in heads]


@wrong("15.6", "numbers of heads, no pairs")
def numbers_through_all_blocks(maps, target, heads):
    order = maps[..., -1, target].flatten().argsort(descending=True).tolist()
    return [i for i in order if divmod(i, maps.shape[1]) not in heads][: len(heads)]


@wrong("15.6", "the maps are overwritten")
def marked_in_the_maps(maps, target, heads):
    for block, head in heads:
        maps[block, head] = -1
    first = maps[..., -1, target].flatten().topk(len(heads)).indices
    return [divmod(i, maps.shape[1]) for i in first.tolist()]
