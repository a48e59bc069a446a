"""Takes what the layers of an attention computed as queries, keys and values.

Layers are known by their names, or by what they read; a fused layer makes all three. How the
outputs of layers are shared out among roles and heads is not always plain: then there are several
`Reading`s, the likeliest first. Comparing numbers (`comparison`) tells which one is right.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from attention_base.same import same
from attention_clinic.bugs import Named, merge_heads, of_parts, split_heads
from attention_clinic.names import (
    FUSED_BY_HEAD,
    FUSED_BY_ROLE,
    ROLES,
    fused_name,
    is_layer,
    query_and_fused_names,
    role_names,
)

NO_LAYERS = (
    "I see no layers that make queries, keys and values, neither by the usual names, such as "
    "query, key and value, nor by what they do"
)
X_AS_VALUES = of_parts("x used as values")
NO_PROJECTIONS = of_parts("no projections")
OF_ITS_CHANNELS = of_parts("one projection for all heads")
SHARED_LAYER = of_parts("one layer for queries and keys")


@dataclass(frozen=True)
class Reading:
    """One way to take the outputs of layers as queries, keys and values."""

    q: Tensor  # (B, T, n_head * head_size)
    k: Tensor
    v: Tensor
    # What is wrong, or a variant, where these give the module's numbers.
    bugs: tuple[Named, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong with it."""
        return all(bug.meant for bug in self.bugs)


@dataclass(frozen=True)
class LayerCall:
    """What a layer was called with, and what it computed."""

    layer: nn.Module
    z: Tensor
    out: Tensor


# Readings; role -> the weight of its layer, and which part of a gradient belongs to the role; the
# layers. Or why there are none.
Found = tuple[list[Reading], dict[str, tuple[nn.Parameter, Callable[[Tensor], Tensor]]], list] | str

# ---------------------------------------------------------------- whose output is whose


def _output_of(layer: nn.Module | nn.Parameter, recorded: list[LayerCall], x: Tensor) -> Tensor:
    """What a layer gave for all tokens; computed from x where that was not seen."""
    if isinstance(layer, nn.ModuleList | nn.ParameterList):  # one for each head
        return torch.cat([_output_of(one, recorded, x) for one in layer], dim=-1)
    for one in recorded:
        if one.layer is not layer or one.out.dim() not in (3, 4) or len(one.out) != len(x):
            continue
        if one.out.shape[1] == x.shape[1]:
            return one.out.flatten(2)  # (B, T, n_head, d), where a layer splits the heads itself
        if one.out.dim() == 4 and one.out.shape[2] == x.shape[1]:  # and transposes them
            return merge_heads(one.out)
    return layer(x) if isinstance(layer, nn.Module) else times(x, layer)


def times(z: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """(B, T, C) times a matrix (C, D), or one (C, d) for each head: (B, T, D)."""
    if weight.dim() == 3:
        if weight.shape[0] * weight.shape[1] == z.shape[-1] and weight.shape[1] != z.shape[-1]:
            weight = weight.flatten(0, 1)  # of an output projection: (n_head, d, C)
        elif weight.shape[0] == z.shape[-1] != weight.shape[1]:  # (C, n_head, d)
            weight = weight.flatten(1)
        else:
            weight = weight.transpose(0, 1).flatten(1)
    elif weight.shape[0] != z.shape[-1]:
        weight = weight.mT
    out = z @ weight
    return out if bias is None else out + bias.flatten()


def find_readings(module: nn.Module, recorded: list[LayerCall], x: Tensor, n_head: int) -> Found:
    """All readings, the weights of the roles, and the layers."""
    names = role_names(module) or ()
    layers = [getattr(module, name) for name in names]
    if layers and isinstance(layers[0], nn.Parameter | nn.ParameterList):
        return _readings_of_matrices(module, names, x, n_head)
    if len(layers) == 3:
        return _readings_of_three(layers, recorded, x, n_head)
    if layers:
        q, k = (_output_of(layer, recorded, x) for layer in layers)
        readings = [Reading(q, k, x, (X_AS_VALUES,))] if x.shape[-1] % n_head == 0 else []
        return _checked(readings, _role_weights(layers), layers)
    if query_and_fused_names(module):
        query, fused = (getattr(module, name) for name in query_and_fused_names(module))
        q, (k, v) = _output_of(query, recorded, x), _output_of(fused, recorded, x).chunk(2, -1)
        readings = _with_repeated_heads(q, k, v, n_head)
        return _checked(readings, _roles_of_two(query, fused), [query, fused])
    matrices = [one for one in module.parameters(recurse=False) if is_layer(one)]
    stacked = [one for one in matrices if len(one) == 3 and one.dim() == 3]  # (3, C, d)
    if stacked and stacked[0].shape[1] == x.shape[-1]:
        return _readings_of_unnamed_matrices([*stacked[0]], x, n_head)
    if name := fused_name(module):
        return _readings_of_fused(name, getattr(module, name), recorded, x, n_head)
    if len(matrices) > 2:
        return _readings_of_unnamed_matrices(matrices, x, n_head)
    return _readings_without_names(recorded, x, n_head)


def _checked(readings: list[Reading] | str, roles: dict, layers: list) -> Found:
    if isinstance(readings, str):
        return readings
    readings = [one for one in readings if one.q.shape[:2] == one.k.shape[:2] == one.v.shape[:2]]
    if not readings:
        return "its queries, keys and values do not fit together"
    return readings, roles, layers


def _role_weights(layers: list) -> dict:
    """The weights of layers that have one of their own."""
    weights = [getattr(one, "weight", one) for one in layers]
    return {
        role: (weight, lambda z: z)
        for role, weight in zip(ROLES, weights, strict=False)
        if isinstance(weight, nn.Parameter)
    }


def _roles_of_two(query: nn.Module, fused: nn.Module) -> dict:
    """A layer for the queries, and one whose first half of outputs are keys, the other values."""
    roles = _role_weights([query])
    axis = 1 if fused.weight.shape[0] == query.weight.shape[0] != fused.weight.shape[1] else 0
    for i, role in enumerate(ROLES[1:]):
        roles[role] = (fused.weight, lambda z, i=i: z.chunk(2, dim=axis)[i])
    return roles


def _readings_of_three(layers: list, recorded: list, x: Tensor, n_head: int) -> Found:
    q, k, v = (_output_of(layer, recorded, x) for layer in layers)
    readings = _with_repeated_heads(q, k, v, n_head)
    if recorded and q.shape[-1] == 2 * recorded[-1].z.shape[-1]:  # queries and a gate
        halves = q.unflatten(-1, (n_head, 2, -1))[..., 0, :].flatten(-2), q.chunk(2, dim=-1)[0]
        found = [_with_repeated_heads(half, k, v, n_head) for half in halves]
        found = [one for one in (*found, readings) if not isinstance(one, str)]
        readings = [*itertools.chain(*found)] or readings
    read = next((one.z for one in recorded if one.layer is layers[0]), x)
    bugs = [SHARED_LAYER] if layers[0] is layers[1] else []
    bugs += [OF_ITS_CHANNELS] if read.shape[-1] < x.shape[-1] else []
    if not isinstance(readings, str):
        readings = [replace(one, bugs=(*one.bugs, *bugs)) for one in readings]
    return _checked(readings, _role_weights(layers), layers)


def _readings_of_matrices(module: nn.Module, names: tuple, x: Tensor, n_head: int) -> Found:
    """Matrices are (in, out), as in x @ W, or else (out, in), as in F.linear."""
    weights = [getattr(module, name) for name in names]
    if isinstance(weights[0], nn.ParameterList):
        weights = [torch.stack([*one]) for one in weights]
    if weights[0].dim() == 3:  # (n_head, C, d) or (C, n_head, d)
        n_head = weights[0].shape[0 if weights[0].shape[1] == x.shape[-1] else 1]
    biases = [bias_beside(module, name) for name in names]
    rows = [times(x, *one) for one in zip(weights, biases, strict=True)]
    readings = _with_repeated_heads(*rows, n_head)
    if weights[0].dim() == 2 and weights[0].shape[0] == weights[0].shape[1]:
        columns = [times(x, w.mT, b) for w, b in zip(weights, biases, strict=True)]
        more = _with_repeated_heads(*columns, n_head)
        readings = readings + more if not isinstance(more, str) else readings
    return _checked(readings, _role_weights(weights), [])


def bias_beside(module: nn.Module, name: str) -> Tensor | None:
    """The bias of a matrix: b_Q of W_Q."""
    for bias in ("b" + name[1:], name.replace("weight", "bias"), f"{name}_bias", f"b{name[-1]}"):
        if bias != name and isinstance(getattr(module, bias, None), nn.Parameter):
            return getattr(module, bias)
    return None


def _with_repeated_heads(q: Tensor, k: Tensor, v: Tensor, n_head: int) -> list[Reading] | str:
    """One reading, or two where several heads of queries share a head of keys and values."""
    if q.shape[-1] % n_head:
        return f"{q.shape[-1]} channels cannot be shared out among {n_head} heads"
    head_size = q.shape[-1] // n_head
    n_group = k.shape[-1] // head_size
    if k.shape[-1] % head_size or n_head % n_group or v.shape[-1] % n_group:
        return f"its queries have {q.shape[-1]} channels, its keys {k.shape[-1]}"
    if n_group == n_head:
        return [Reading(q, k, v)]

    def repeated(z: Tensor) -> Tensor:
        return merge_heads(split_heads(z, n_group).repeat_interleave(n_head // n_group, dim=1))

    def tiled(z: Tensor) -> Tensor:
        return merge_heads(split_heads(z, n_group).repeat(1, n_head // n_group, 1, 1))

    if n_group == 1:
        one_head = of_parts("multi-query attention (Shazeer 2019)", n=1, names=n_head)
        return [Reading(q, repeated(k), repeated(v), (one_head,))]
    groups = of_parts("grouped-query attention (Ainslie et al. 2023)", n=n_group, names=n_head)
    in_two_ways = of_parts("keys and values repeated in different orders")
    return [
        Reading(q, repeated(k), repeated(v), (groups,)),
        Reading(q, tiled(k), tiled(v), (groups, of_parts("groups tiled"))),
        Reading(q, tiled(k), repeated(v), (groups, in_two_ways)),
        Reading(q, repeated(k), tiled(v), (groups, in_two_ways)),
    ]


def _readings_of_fused(
    name: str, layer: nn.Module | nn.Parameter, recorded: list, x: Tensor, n_head: int
) -> Found:
    """A layer that makes all three: one after the other, or side by side in each head."""
    fused = _output_of(layer, recorded, x)
    weight = layer if isinstance(layer, nn.Parameter) else layer.weight
    out_first = weight.shape[0] == fused.shape[-1] and weight.shape[-1] == x.shape[-1]
    readings: list[Reading] = []
    roles: dict = {}
    for splits, bugs in _ways_to_split(name, fused.shape[-1], x.shape[-1], n_head):
        parts = [split(fused) for split in splits]
        if len(parts) == 2:
            shared = Reading(parts[0], parts[0], parts[1], (SHARED_LAYER,))
            more = [shared] if parts[0].shape[-1] % n_head == 0 else []
            if x.shape[-1] % n_head == 0:
                more.append(Reading(*parts, x, (X_AS_VALUES,)))
        else:
            more = _with_repeated_heads(*parts, n_head)
        if isinstance(more, str):
            continue
        readings += [replace(one, bugs=(*one.bugs, *bugs)) for one in more]
        if not roles:
            roles = {
                role: (weight, partial(_part_of_gradient, split, out_first))
                for role, split in zip(ROLES, splits, strict=False)
                if isinstance(weight, nn.Parameter)
            }
    if not readings:
        return f"{fused.shape[-1]} channels of {name} cannot be shared out among {n_head} heads"
    return _checked(readings, roles, [layer])


def _part_of_gradient(split: Callable, out_first: bool, gradient: Tensor) -> Tensor:
    """The part of a fused weight's gradient for one role; a Linear layer stores (out, in)."""
    return split(gradient.mT if out_first else gradient)


def _ways_to_split(name: str, width: int, C: int, n_head: int) -> Iterator[tuple[list, tuple]]:
    """Functions that take queries, keys and values out of the last axis, and (name, message)s."""
    rest = width - C
    if rest > 2 * C and C % n_head == 0:  # the feed-forward reads the rest
        for count in sorted({1, n_head}):
            yield _cuts(C, count * C // n_head), ()
    if width % 3 == 0:
        yield from _in_thirds(name, width, n_head)
    if rest > 0 and rest % 2 == 0 and width != 3 * C and (rest // 2) % max(1, C // n_head) == 0:
        yield _cuts(C, rest // 2), ()
        if (n_group := rest // 2 // max(1, C // n_head)) > 1 and n_head % n_group == 0:
            yield _in_groups(n_group, n_head // n_group + 2), ()
    if width % 2 == 0 and width % 3:
        yield [partial(_part, 2, i) for i in range(2)], ()


def _cuts(C: int, kv: int) -> list[Callable[[Tensor], Tensor]]:
    """Queries of C channels, then keys and values of other widths."""
    edges = (0, C, C + kv, C + 2 * kv)
    return [lambda z, a=a, b=b: z[..., a:b] for a, b in itertools.pairwise(edges)]


def _in_groups(n_group: int, of: int) -> list[Callable[[Tensor], Tensor]]:
    """In each group the queries, then a key and a value: the parts of Megatron, `of` in all."""
    parts = (slice(0, -2), slice(-2, -1), slice(-1, None))
    return [lambda z, i=i: z.unflatten(-1, (n_group, of, -1))[..., i, :].flatten(-3) for i in parts]


def _in_thirds(name: str, width: int, n_head: int) -> Iterator[tuple[list, tuple]]:
    """One after the other, in any order, or side by side in each head or channel."""

    def part_of_head(i: int, z: Tensor) -> Tensor:
        return z.unflatten(-1, (n_head, 3, -1))[..., i, :].flatten(-2)

    def part_of_channel(i: int, z: Tensor) -> Tensor:
        return z.unflatten(-1, (-1, 3))[..., i]

    def reshaped(i: int, z: Tensor) -> Tensor:
        return z.reshape(3, *z.shape[:2], -1)[i]

    first, *others = [
        ([partial(_part, 3, i) for i in order], (_another_order(order),) if name else ())
        for order in itertools.permutations(range(3))
    ]
    by_role, by_head = [(first[0], ())], []
    if width % (3 * n_head) == 0 and n_head > 1:
        per_head = of_parts("fused layer split per head", names=name)
        bugs = (per_head,) if name in FUSED_BY_ROLE else ()
        takes = (part_of_head, part_of_channel)
        by_head = [([partial(take, i) for i in range(3)], bugs) for take in takes]
        if not name:
            orders = itertools.permutations(range(3))
            others += [([partial(part_of_head, i) for i in order], ()) for order in orders]
    yield from by_head + by_role if name in FUSED_BY_HEAD else by_role + by_head
    yield from others
    yield [partial(reshaped, i) for i in range(3)], (of_parts("fused layer reshaped", names=name),)


def _part(of: int, i: int, z: Tensor) -> Tensor:
    return z.chunk(of, dim=-1)[i]


def _another_order(order: tuple[int, ...]) -> Named:
    """What to say of the parts of a fused layer in another order: role i is part order[i]."""
    words = ", ".join("qkv"[order.index(i)] for i in range(3))
    _, message, meant = of_parts("fused layer split in another order", names=words)
    if order == (1, 0, 2):
        message += " (Scores k @ q.mT in place of q @ k.mT give the same numbers.)"
    return Named(f"fused layer split as {words}", message, meant)


def _readings_of_unnamed_matrices(matrices: list, x: Tensor, n_head: int) -> Found:
    """Three of the module's own matrices, in each order: the numbers tell which it is."""
    C = x.shape[-1]
    alike = len({w.dim() for w in matrices}) == 1
    fitting = [w for w in matrices if C in w.shape and (w.dim() == 2 or alike)]
    if not 3 <= len(fitting) <= 4:
        return NO_LAYERS
    rows = []
    for three in itertools.permutations(fitting, 3):
        rows.append([times(x, w) for w in three])
        if all(w.shape == (C, C) for w in three):
            rows.append([times(x, w.mT) for w in three])
    return _readings_of_any(rows, [], n_head)


def _readings_without_names(recorded: list[LayerCall], x: Tensor, n_head: int) -> Found:
    """The layers that read the attention's input, in each order: the numbers tell which it is."""
    reads = partial(_are_tokens, x=x)  # as layers do in a loop over texts or tokens
    first = next((one.z for one in recorded if one.z.shape[:2] == x.shape[:2] or reads(one.z)), x)
    if first.shape[:2] == x.shape[:2]:
        reads = partial(same, first)
    layers = [*dict.fromkeys(one.layer for one in recorded if reads(one.z))]
    if not layers or (len(recorded) == 1 and not same(recorded[0].z, x, 0)):  # a projection
        readings = [Reading(x, x, x, (NO_PROJECTIONS,))] if x.shape[-1] % n_head == 0 else []
        return _checked(readings, {}, []) if readings else NO_LAYERS
    if len(layers) == 1:
        return _readings_of_fused("", layers[0], recorded, x, n_head)
    outputs = [_output_of(one, recorded, x) for one in layers]
    if len(layers) == 2:
        return _checked(_readings_of_two(outputs, n_head), {}, layers)
    if not 3 <= len(layers) <= 4:
        return NO_LAYERS
    return _readings_of_any(itertools.permutations(outputs, 3), layers, n_head)


def _are_tokens(z: Tensor, x: Tensor) -> bool:
    """Each row of z is one of the tokens of x."""
    rows, tokens = z.flatten(0, -2) if z.dim() > 1 else z[None], x.flatten(0, 1)
    return z.shape[-1] == x.shape[-1] and bool((rows[:, None] == tokens).all(-1).any(-1).all())


def _readings_of_two(outputs: list[Tensor], n_head: int) -> list[Reading] | str:
    """Two layers, one of which makes two of the three."""
    readings: list[Reading] = []
    for a, b in (outputs, outputs[::-1]):
        if b.shape[-1] == 2 * a.shape[-1]:
            k, v = b.chunk(2, dim=-1)
            readings += [Reading(a, k, v), Reading(a, v, k)]
        elif a.shape == b.shape and a.shape[-1] % n_head == 0:
            for names, three in (("keys and values", (a, b, b)), ("queries and values", (a, b, a))):
                bug = of_parts("one layer for two roles", names=names)
                readings.append(Reading(*three, (bug,)))
            readings.append(Reading(a, a, b, (SHARED_LAYER,)))
    return readings or NO_LAYERS


def _readings_of_any(threes: Iterable[Sequence[Tensor]], layers: list, n_head: int) -> Found:
    """Readings of all that may be queries, keys and values."""
    found = [_with_repeated_heads(*three, n_head) for three in threes]
    readings = [r for more in found if not isinstance(more, str) for r in more if r.is_right]
    return _checked(readings, {}, layers) if readings else NO_LAYERS
