"""Finds queries, keys, values and weights in a module.

An attention is an `nn.MultiheadAttention`, a module with layers of the usual names (`names`), or,
where there are no such names, the smallest part of a module that mixes tokens. Hooks see what its
layers compute. What belongs to which of queries, keys and values, and how it is shared out among
the heads, is not always plain: then there are several `Reading`s. Which one is right is found out
by comparing numbers (`comparison`).
"""

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.clinic.bugs import merge_heads, split_heads
from helpers.clinic.calls import Call, calls_of
from helpers.clinic.names import (
    FUSED_BY_HEAD,
    FUSED_BY_ROLE,
    ROLES,
    fused_name,
    is_layer,
    own_head_count,
    projection_name,
    query_and_fused_names,
    role_names,
)
from helpers.clinic.probes import same_numbers

NOT_BATCH_FIRST = (
    "has batch_first=False and reads (T, B, C): it takes sequences for tokens. Make it with "
    "batch_first=True"
)
NO_LAYERS = (
    "I see no layers that make queries, keys and values, neither by the usual names, such as "
    "query, key and value, nor by what they do"
)
GROUPS_TILED = (
    "groups tiled",
    "The heads of keys and values were repeated as 0 1 0 1. Query heads 0 and 1 share head 0, so "
    "it is 0 0 1 1: repeat_interleave, or expand and reshape.",
)
SHARED_LAYER = (
    "one layer for queries and keys",
    "Queries and keys are the same vectors, so that scores are symmetric and a token fits itself "
    "best. Each needs a layer of its own.",
)
NEVER_USED = (
    "output projection never used",
    "The outputs of the heads are returned as they are: the heads are never combined. Return "
    "proj(out).",
)
USED_TWICE = (
    "output projection applied twice",
    "The output goes through the output projection two times.",
)
OF_EACH_HEAD = (
    "output projection applied to each head",
    "Each head goes through the same small layer, so the heads are never combined. First merge "
    "the heads, then one layer (C, C).",
)
X_AS_VALUES = (
    "x used as values",
    "The weights are right, but they average x. The values are v, and need a layer of their own.",
)
ANOTHER_INPUT = (
    "the layers of queries, keys and values read something else than the input x, as with a norm "
    "or positions inside of the attention"
)
MORE_KEYS = "there are keys and values beside those of the tokens"
MORE_BEHIND = "something more follows after the output projection"

# ---------------------------------------------------------------- what is found


@dataclass(frozen=True)
class Reading:
    """One way to take the outputs of layers as queries, keys and values.

    Attributes
    ----------
    q, k, v
        (B, T, n_head * head_size).
    bugs
        (name, message) of what is wrong where these give the numbers of the module.
    different
        In what it differs from textbook attention, or "".
    """

    q: Tensor
    k: Tensor
    v: Tensor
    bugs: tuple[tuple[str, str], ...] = ()
    different: str = ""


@dataclass(frozen=True)
class Ending:
    """One way in which the outputs of the heads became a tensor that can be seen.

    Attributes
    ----------
    out
        (B, T, n_head * head_size), or the output of the module.
    project
        What lies between the merged outputs of the heads and `out`.
    bugs, different
        As in `Reading`.
    """

    out: Tensor
    project: Callable[[Tensor], Tensor] = field(default=lambda z: z)
    bugs: tuple[tuple[str, str], ...] = ()
    different: str = ""


@dataclass(frozen=True)
class AttentionInternals:
    """What an attention computed from one input.

    Attributes
    ----------
    x
        (B, T, C), the input.
    n_head
        Number of heads.
    readings, endings
        The likeliest first.
    weights
        (B, n_head, T, T), or (B, T, T), or None.
    zero_projection
        Whether all weights of the output projection are 0, so that its output depends on nothing.
    roles
        Name of a role -> the weight of its layer, and which part of a gradient belongs to the role.
    dtype
        The type of numbers in which it computes.
    """

    x: Tensor
    n_head: int
    readings: tuple[Reading, ...]
    endings: tuple[Ending, ...]
    weights: Tensor | None
    zero_projection: bool
    roles: dict[str, tuple[nn.Parameter, Callable[[Tensor], Tensor]]]
    dtype: torch.dtype = torch.float32


@dataclass(frozen=True)
class LayerCall:
    """What a layer was called with, and what it computed."""

    layer: nn.Module
    z: Tensor
    out: Tensor


# ---------------------------------------------------------------- which attentions


def attention_calls(whole: Call) -> dict[str, Call | None]:
    """How each attention in a module is called, by its name ("" for the module itself).

    None for one that the module has but does not call.
    """
    names: list[str] = []
    for name, part in whole.module.named_modules():
        if _is_attention(part) and not any(name.startswith(f"{outer}.") for outer in names):
            names.append(name)
    return calls_of(whole, names or _parts_that_mix_tokens(whole))


def has_unknown_parts(module: nn.Module, attentions: Iterable[str], blocks: Iterable[str]) -> bool:
    """Tell whether beside an attention there is more than a projection, and no known block."""
    alone = [name for name in attentions if not _within(name, blocks)]
    others = [
        part
        for name, part in module.named_modules()
        if list(part.parameters(recurse=False)) and not _within(name, [*alone, *blocks])
    ]
    only_projection = len(others) <= 1 and all(isinstance(part, nn.Linear) for part in others)
    return bool(alone) and not only_projection


def _is_attention(module: nn.Module) -> bool:
    return bool(
        isinstance(module, nn.MultiheadAttention)
        or role_names(module)
        or fused_name(module)
        or query_and_fused_names(module)
    )


def _within(name: str, outer: Iterable[str]) -> bool:
    """Tell whether a part is one of the outer ones or stands in one ("" is the whole module)."""
    return any(not one or f"{name}.".startswith(f"{one}.") for one in outer)


def _parts_that_mix_tokens(whole: Call) -> list[str]:
    """The names of the smallest parts with layers in which a token changes another's output."""
    parts = {
        name: part
        for name, part in whole.module.named_modules()
        if sum(map(is_layer, part.modules())) > 1
    }
    mixing = [name for name, call in calls_of(whole, parts).items() if call and _mixes(call)]
    return [
        name
        for name in mixing
        if not any(other != name and _within(other, [name]) for other in mixing)
    ]


def _mixes(call: Call) -> bool:
    z = call.input
    if not isinstance(z, Tensor) or z.dim() != 3 or z.shape[1] < 2 or not z.is_floating_point():
        return False
    other = z.clone()
    other[:, z.shape[1] // 2] += torch.linspace(-1, 1, z.shape[-1]).to(z)
    try:
        before, after = (one.run()[0] for one in (call, call.with_input(other)))
    except Exception:  # it may be bound to the numbers that it got
        return False
    if not isinstance(before, Tensor) or before.shape[:2] != z.shape[:2]:
        return False
    changed = ~torch.isclose(before, after, equal_nan=True).flatten(2).all(-1).all(0)
    changed[z.shape[1] // 2] = False
    return bool(changed.any())


# ---------------------------------------------------------------- inside an attention


def inspect_attention(whole: Call, call: Call, n_head: int) -> AttentionInternals | str:
    """Find out what an attention computed from its input, or say why that cannot be known.

    Parameters
    ----------
    whole
        The module under examination, and how it is called.
    call
        How an attention in it is called.
    n_head
        Its number of heads, unless it knows its own.
    """
    if isinstance(call.module, nn.MultiheadAttention):
        return _inspect_pytorch_attention(whole, call)
    x = call.input
    if x is None or x.dim() != 3:
        return "it does not read one input (B, T, C)"
    return _inspect_layers(call, x, own_head_count(call.module) or n_head)


def _inspect_layers(call: Call, x: Tensor, n_head: int) -> AttentionInternals | str:
    out, weights, layer_calls = _run_and_record(call)
    if not isinstance(out, Tensor) or out.dim() != 3:
        return "it gives no output (B, T, anything)"
    found = _find_roles(call.module, layer_calls, x, n_head)
    if isinstance(found, str):
        return found
    readings, roles, used = found
    same_input = all(
        same_numbers(one.z, x, 0)
        for one in layer_calls
        if any(one.layer is layer for layer in used) and one.z.shape[:2] == x.shape[:2]
    )
    if not same_input:
        readings = [replace(one, different=one.different or ANOTHER_INPUT) for one in readings]
    endings, projection = _find_endings(call.module, out, layer_calls, used, n_head)
    return AttentionInternals(
        x=x,
        n_head=n_head,
        readings=tuple(readings),
        endings=tuple(endings),
        weights=_if_weights(weights, x.shape[1]),
        zero_projection=projection is not None and not projection.any(),
        roles=roles,
        dtype=out.dtype,
    )


def _if_weights(second: Tensor | None, T: int) -> Tensor | None:
    """What a module returned beside its output, if it can be weights, (…, T, T)."""
    return second if second is not None and second.shape[-2:] == (T, T) else None


def _run_and_record(call: Call) -> tuple[Tensor, Tensor | None, list[LayerCall]]:
    """The output, the weights if shown, and what every layer inside was called with."""
    recorded: list[LayerCall] = []

    def record(layer: nn.Module, args: tuple, result: Tensor) -> None:
        if args and isinstance(args[0], Tensor) and isinstance(result, Tensor):
            recorded.append(LayerCall(layer, args[0].detach().clone(), result.detach().clone()))

    names = [*(role_names(call.module) or ()), projection_name(call.module)]
    makers = [getattr(call.module, name) for name in names if name]
    hooks = [
        part.register_forward_hook(record)
        for part in call.module.modules()
        if is_layer(part) or any(part is one for one in makers)
    ]
    try:
        out, weights = call.run_with_weights()
    finally:
        for hook in hooks:
            hook.remove()
    return out, weights, recorded


def _output_of(layer: nn.Module | nn.Parameter, recorded: list[LayerCall], x: Tensor) -> Tensor:
    """What a layer gave for all tokens; computed from x where that was not seen."""
    for one in recorded:
        if one.layer is layer and one.out.shape[:2] == x.shape[:2] and one.out.dim() == 3:
            return one.out
    return layer(x) if isinstance(layer, nn.Module) else _times(x, layer)


def _times(z: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """(B, T, C) times a matrix (C, D), or one (C, d) for each head: (B, T, D)."""
    if weight.dim() == 3:
        if weight.shape[0] * weight.shape[1] == z.shape[-1] and weight.shape[1] != z.shape[-1]:
            weight = weight.flatten(0, 1)  # of an output projection: (n_head, d, C)
        else:
            weight = weight.transpose(0, 1).flatten(1)
    elif weight.shape[0] != z.shape[-1]:
        weight = weight.mT
    out = z @ weight
    return out if bias is None else out + bias.flatten()


def _find_roles(
    module: nn.Module, recorded: list[LayerCall], x: Tensor, n_head: int
) -> tuple[list[Reading], dict, list] | str:
    """All readings, the weights of the roles, and the layers."""
    names = role_names(module)
    if names and len(names) == 3:
        layers = [getattr(module, name) for name in names]
        if isinstance(layers[0], nn.Parameter):
            return _readings_of_matrices(module, names, x, n_head)
        return _readings_of_three(layers, recorded, x, n_head)
    if names:
        q, k = (_output_of(getattr(module, name), recorded, x) for name in names)
        layers = [getattr(module, name) for name in names]
        readings = [Reading(q, k, x, (X_AS_VALUES,))] if x.shape[-1] % n_head == 0 else []
        return _checked(readings, _role_weights(layers), layers)
    if query_and_fused_names(module):
        query, fused = (getattr(module, name) for name in query_and_fused_names(module))
        q, (k, v) = _output_of(query, recorded, x), _output_of(fused, recorded, x).chunk(2, -1)
        readings = _with_repeated_heads(q, k, v, n_head)
        return _checked(readings, _roles_of_two(query, fused), [query, fused])
    if name := fused_name(module):
        return _readings_of_fused(name, getattr(module, name), recorded, x, n_head)
    return _readings_without_names(recorded, x, n_head)


def _checked(
    readings: list[Reading] | str, roles: dict, layers: list
) -> tuple[list[Reading], dict, list] | str:
    if isinstance(readings, str):
        return readings
    readings = [one for one in readings if one.q.shape[:2] == one.k.shape[:2] == one.v.shape[:2]]
    if not readings:
        return "its queries, keys and values do not fit together"
    return readings, roles, layers


def _role_weights(layers: list) -> dict:
    """The weights of layers that have one of their own."""
    weights = [
        one if isinstance(one, nn.Parameter) else getattr(one, "weight", None) for one in layers
    ]
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


def _readings_of_three(layers: list, recorded: list, x: Tensor, n_head: int):
    q, k, v = (_output_of(layer, recorded, x) for layer in layers)
    readings = _with_repeated_heads(q, k, v, n_head)
    if layers[0] is layers[1] and not isinstance(readings, str):
        readings = [replace(one, bugs=(*one.bugs, SHARED_LAYER)) for one in readings]
    return _checked(readings, _role_weights(layers), layers)


def _readings_of_matrices(module: nn.Module, names: tuple, x: Tensor, n_head: int):
    """Matrices are (in, out), as in x @ W, or else (out, in), as in F.linear."""
    weights = [getattr(module, name) for name in names]
    n_head = weights[0].shape[0] if weights[0].dim() == 3 else n_head
    biases = [_bias_beside(module, name) for name in names]
    rows = [_times(x, *one) for one in zip(weights, biases, strict=True)]
    readings = _with_repeated_heads(*rows, n_head)
    if weights[0].dim() == 2 and weights[0].shape[0] == weights[0].shape[1]:
        columns = [_times(x, w.mT, b) for w, b in zip(weights, biases, strict=True)]
        more = _with_repeated_heads(*columns, n_head)
        readings = readings + more if not isinstance(more, str) else readings
    return _checked(readings, _role_weights(weights), [])


def _bias_beside(module: nn.Module, name: str) -> Tensor | None:
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

    heads = "head" if n_group == 1 else "heads"
    different = f"{n_group} {heads} of keys and values serve {n_head} heads of queries "
    different += "(grouped-query attention)" if n_group > 1 else "(multi-query attention)"
    return [
        Reading(q, repeated(k), repeated(v), (), different),
        Reading(q, tiled(k), tiled(v), (GROUPS_TILED,), different),
    ]


def _readings_of_fused(
    name: str, layer: nn.Module | nn.Parameter, recorded: list, x: Tensor, n_head: int
):
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

    def part(of: int, i: int, z: Tensor) -> Tensor:
        return z.chunk(of, dim=-1)[i]

    def part_of_head(i: int, z: Tensor) -> Tensor:
        return z.unflatten(-1, (n_head, 3, -1))[..., i, :].flatten(-2)

    def part_of_channel(i: int, z: Tensor) -> Tensor:
        return z.unflatten(-1, (-1, 3))[..., i]

    def cut(start: int, stop: int, z: Tensor) -> Tensor:
        return z[..., start:stop]

    if width % 3 == 0:
        by_role = [
            (
                [partial(part, 3, i) for i in order],
                () if order == (0, 1, 2) else (_another_order(order),),
            )
            for order in itertools.permutations(range(3))
        ]
        by_head = []
        if width % (3 * n_head) == 0 and n_head > 1:
            bugs = (_by_head(name),) if name in FUSED_BY_ROLE else ()
            by_head = [
                ([partial(take, i) for i in range(3)], bugs)
                for take in (part_of_head, part_of_channel)
            ]
        first, others = by_role[:1], by_role[1:]
        yield from by_head + first if name in FUSED_BY_HEAD else first + by_head
        yield from others
    rest = width - C
    if rest > 0 and rest % 2 == 0 and width != 3 * C and (rest // 2) % max(1, C // n_head) == 0:
        edges = (0, C, C + rest // 2, width)
        yield [partial(cut, *edge) for edge in itertools.pairwise(edges)], ()
    if width % 2 == 0 and width % 3:
        yield [partial(part, 2, i) for i in range(2)], ()


def _another_order(order: tuple[int, ...]) -> tuple[str, str]:
    """The bug of taking the parts of a fused layer in another order: role i is part order[i]."""
    words = ", ".join("qkv"[order.index(i)] for i in range(3))
    return (
        f"fused layer split as {words}",
        f"The output of the fused layer is taken as {words}. It is q, k, v by custom, and weights "
        "that were stored by others are read wrongly; trained from scratch it does no harm.",
    )


def _by_head(name: str) -> tuple[str, str]:
    return (
        "fused layer split per head",
        f"The output of {name} is read as q, k and v of head 0, then of head 1, and so on. By "
        "custom it is all queries, all keys, all values, and weights that were stored by others "
        "are read wrongly; trained from scratch it does no harm.",
    )


def _readings_without_names(recorded: list[LayerCall], x: Tensor, n_head: int):
    """The layers that read the attention's input, in each order: the numbers tell which it is."""
    first = next((one for one in recorded if one.z.shape[:2] == x.shape[:2]), None)
    if first is None:
        return NO_LAYERS
    layers = []
    for one in recorded:
        if same_numbers(one.z, first.z, 0) and not any(one.layer is layer for layer in layers):
            layers.append(one.layer)
    if len(layers) == 1:
        return _readings_of_fused("", layers[0], recorded, x, n_head)
    if not 3 <= len(layers) <= 4:
        return NO_LAYERS
    readings: list[Reading] = []
    for three in itertools.permutations(layers, 3):
        more = _with_repeated_heads(*(_output_of(one, recorded, x) for one in three), n_head)
        readings += more if not isinstance(more, str) else []
    readings = [one for one in readings if not one.bugs]
    return _checked(readings, {}, layers) if readings else NO_LAYERS


# ---------------------------------------------------------------- from the heads to the output


def _find_endings(
    module: nn.Module, out: Tensor, recorded: list[LayerCall], used: list, n_head: int
) -> tuple[list[Ending], Tensor | None]:
    """The ways in which the outputs of the heads may have become `out`; the projection's weight."""
    others = [one for one in recorded if not any(one.layer is layer for layer in used)]
    last = next((one for one in reversed(others) if _same_but_for_shape(one.out, out)), None)
    name = projection_name(module)
    projection = getattr(module, name) if name else None
    if isinstance(projection, nn.Parameter):
        bias = _bias_beside(module, name)
        endings = [Ending(out, partial(_times, weight=projection, bias=bias))]
        if projection.dim() == 2 and projection.shape[0] == projection.shape[1]:
            endings.append(Ending(out, partial(_times, weight=projection.mT, bias=bias)))
        return [*endings, Ending(out, bugs=(NEVER_USED,))], projection
    if last is not None:
        endings = [Ending(last.z.reshape(*out.shape[:2], -1))]
        before = [one for one in others if one.layer is last.layer and one is not last]
        if before and _same_but_for_shape(before[-1].out, last.z):
            endings.append(Ending(before[-1].z, bugs=(USED_TWICE,)))
        return endings, getattr(last.layer, "weight", None)
    layers = [] if projection is None else [one for one in projection.modules() if is_layer(one)]
    endings = [Ending(out)]
    called = [one for one in others if any(one.layer is layer for layer in layers)]
    if layers and not called and not any(layers[0] is layer for layer in used):
        return [Ending(out, bugs=(NEVER_USED,))], None
    for one in called[:1]:
        if one.z.shape[-1] != out.shape[-1] or one.z.dim() != 3:
            each = partial(_in_each_head, one.layer, n_head)
            endings.append(Ending(out, each, bugs=(OF_EACH_HEAD,)))
    for one in (called or others)[-1:]:
        if one.z.dim() == 3:
            endings.append(Ending(one.z, different=MORE_BEHIND))
    return endings, None


def _in_each_head(layer: nn.Module, n_head: int, z: Tensor) -> Tensor:
    weight = layer.weight
    return merge_heads(layer(split_heads(z, n_head).to(weight)).to(z))


def _same_but_for_shape(a: Tensor, b: Tensor) -> bool:
    return (
        a.numel() == b.numel()
        and a.shape[-1] == b.shape[-1]
        and same_numbers(a.reshape(b.shape), b, 0)
    )


# ---------------------------------------------------------------- PyTorch's attention


def _inspect_pytorch_attention(whole: Call, call: Call) -> AttentionInternals | str:
    module = call.module
    names = list(inspect.signature(module.forward).parameters)
    given = dict(zip(names, call.args, strict=False)) | call.kwargs
    x = given["query"]
    if given["key"] is not x or given["value"] is not x:
        return "its queries and keys come from different inputs"
    if module.in_proj_weight is None:
        return "its queries, keys and values have different sizes"
    if x.dim() != 3:
        return "it reads a single sequence without a batch"
    inside = call.module is not whole.module
    if inside and not module.batch_first and x.shape == whole.input.shape and len(x) != x.shape[1]:
        return f"it {NOT_BATCH_FIRST}"
    known = (*ROLES, "need_weights", "average_attn_weights")
    silent = {"need_weights": False} if given.get("need_weights") is False else {}
    call = Call(module, (x, x, x), {key: given[key] for key in given if key not in known})

    def batch_first(z: Tensor) -> Tensor:
        return z if module.batch_first else z.transpose(0, 1)

    qkv = F.linear(x, module.in_proj_weight, module.in_proj_bias)
    q, k, v = batch_first(qkv).chunk(3, dim=-1)
    try:
        out, weights = call.run_with_weights()
    except RuntimeError:  # as with a float32 mask for bfloat16, without which it does
        out, weights = call.run(**silent)
    added = module.bias_k is not None or module.add_zero_attn
    return AttentionInternals(
        x=batch_first(x),
        n_head=module.num_heads,
        readings=(Reading(q, k, v, different=MORE_KEYS if added else ""),),
        endings=(Ending(batch_first(out), module.out_proj),),
        weights=None if added else _if_weights(weights, q.shape[1]),
        zero_projection=not module.out_proj.weight.any(),
        roles={
            role: (module.in_proj_weight, lambda z, i=i: z.chunk(3)[i])
            for i, role in enumerate(ROLES)
        },
        dtype=out.dtype,
    )
