"""Takes apart multi-head latent attention, whose keys and values are made of one narrow vector.

Its layers have no usual names, and what is rotated by position stands beside what is not. So the
layers are told by what they read and by how many channels they make. There are several readings:
comparing numbers (`comparison`) tells which one is right.
"""

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from attention_base.same import same
from attention_clinic.bugs import merge_heads, of_parts, split_heads
from attention_clinic.readings import Found, LayerCall, Reading
from attention_clinic.variants import ONLY_KEYS, ONLY_QUERIES, ROPE, ROPES

LATENT = "multi-head latent attention (MLA, DeepSeek-V2, 2024)"


def latent_readings(recorded: list[LayerCall], x: Tensor, n_head: int) -> Found | None:
    """Readings where keys and values are made of fewer channels than x has; None where not."""
    known = {id(one.layer): one for one in recorded if one.z.dim() == one.out.dim() == 3}
    if len(known) < 4 or any(one.out.shape[:2] != x.shape[:2] for one in known.values()):
        return None
    *calls, projection = known.values()
    down = [one for one in calls if one.z.shape == x.shape]
    up = [one for one in calls if one.z.shape[-1] < x.shape[-1]]
    readings, roles = [], {}
    place = {id(one): min(i for i, z in enumerate(up) if same(z.z, one.z)) for one in up}
    for one in sorted(up, key=lambda one: -place[id(one)]):  # queries' come first, keys', values'
        for k, v, makers in _keys_and_values(one, up, projection.z.shape[-1], n_head):
            others = [other for other in calls if other.layer not in makers]
            for q, layer in _queries(others, k.shape[-1], n_head):
                size, n = q.shape[-1] - k.shape[-1], one.z.shape[-1]
                rotated = _rotated_keys(down, size, n)
                more = [_reading(n, v, *three) for three in _with_positions(q, k, rotated, size)]
                readings += more
                if more and isinstance(weight := getattr(layer, "weight", None), nn.Parameter):
                    roles = roles or {"query": (weight, lambda z: z)}
    readings.sort(key=lambda one: not one.is_right)
    return (readings, roles, [one.layer for one in calls]) if readings else None


def _reading(n: int, v: Tensor, q: Tensor, k: Tensor, bugs: tuple) -> Reading:
    return Reading(*map(merge_heads, (q, k, v)), (of_parts(LATENT, n=n), *bugs))


def _keys_and_values(
    one: LayerCall, up: list[LayerCall], width: int, n_head: int
) -> Iterator[tuple[Tensor, Tensor, list]]:
    """Keys and values (B, n_head, T, d) of one layer, or of two; and these layers."""
    wide = one.out.shape[-1]
    if width % n_head or wide % n_head:
        return
    if wide > width:
        in_heads = split_heads(one.out, n_head).split(
            [(wide - width) // n_head, width // n_head], -1
        )
        by_role = (split_heads(z, n_head) for z in one.out.split([wide - width, width], -1))
        yield from ((*pair, [one.layer]) for pair in (in_heads, by_role))
    for other in up:
        if other is not one and other.out.shape[-1] == width and same(other.z, one.z):
            both = (split_heads(z.out, n_head) for z in (one, other))
            yield (*both, [one.layer, other.layer])


def _queries(
    calls: list[LayerCall], size: int, n_head: int
) -> Iterator[tuple[Tensor, nn.Module | None]]:
    """Queries (B, n_head, T, d) with at least so many channels, of one layer or of two."""
    sizes = {id(one): one.out.shape[-1] / n_head for one in calls}
    in_heads = {
        id(one): split_heads(one.out, n_head) for one in calls if sizes[id(one)].is_integer()
    }
    for one in calls:
        if id(one) in in_heads and sizes[id(one)] >= size:
            yield in_heads[id(one)], one.layer
    for one, other in itertools.permutations((z for z in calls if id(z) in in_heads), 2):
        if sizes[id(one)] == size and same(one.z, other.z):
            yield torch.cat([in_heads[id(one)], in_heads[id(other)]], -1), None


def _rotated_keys(down: list[LayerCall], size: int, n: int) -> list[Tensor]:
    """What may be the keys' rotated part (B, 1, T, size), which all heads share."""
    outputs = [one.out for one in reversed(down)]  # the keys' layer comes behind the queries'
    alone = [z for z in outputs if z.shape[-1] == size]
    beside = [z for z in outputs if z.shape[-1] == size + n]
    parts = [*alone, *(z[..., n:] for z in beside), *(z[..., :size] for z in beside)]
    return [z[:, None] for z in parts]


def _with_positions(
    q: Tensor, k: Tensor, rotated: list[Tensor], size: int
) -> Iterator[tuple[Tensor, Tensor, tuple]]:
    """Queries and keys with a part that is rotated, at the end of the queries or in front."""
    if not size:
        yield q, k, ()
    turns = [turn for turn in ROPES if "share" not in turn.keywords] if size % 2 == 0 else []
    for part, first in itertools.product(rotated if size else (), (False, True)):
        mine, rest = (q[..., :size], q[..., size:]) if first else (q[..., -size:], q[..., :-size])
        ways = [((), mine, part)]
        for turn in turns:
            ways += [((ROPE,), turn(mine), turn(part))]
            ways += [((ONLY_QUERIES,), turn(mine), part), ((ONLY_KEYS,), mine, turn(part))]
        for bugs, a, b in ways:
            yield torch.cat([rest, a], -1), torch.cat([k, b.expand(*k.shape[:-1], -1)], -1), bugs
