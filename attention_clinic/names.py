"""The common names of an attention's layers and of a block's parts, which stand in ``names.md``.

`diagnose` looks for these names in a module. A layer may be an `nn.Linear`, a `Conv1D`, whose
weight is stored as (in, out), or an `nn.Parameter`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from attention_base.known import read

_PAGE = [
    [tuple(item.text.split()) for item in section.items]
    for section in read(Path(__file__).with_name("names.md"))
]
# Of a block's attention, feed-forward and two norms; "" for layers of the block itself.
PartNames = tuple[str, str, str, str]
ROLES = ("query", "key", "value")
ROLE_NAMES = _PAGE[0]  # of layers that belong together
FUSED_NAMES, KEY_VALUE_NAMES, PROJECTION_NAMES, HEAD_COUNT_NAMES, CHANNEL_NAMES = (
    [name for (name,) in items] for items in _PAGE[1:6]
)
HEAD_SIZE_NAMES, LENGTH_NAMES = ([name for (name,) in items] for items in _PAGE[6:8])
USUAL = {key: int(told) if told.isdecimal() else getattr(nn, told, told) for key, told in _PAGE[8]}
FUSED_BY_HEAD = ("query_key_value",)  # queries, keys and values of head 0, then of head 1, …
FUSED_BY_ROLE = ("c_attn", "in_proj_weight")  # all queries, all keys, all values


def role_names(module: nn.Module) -> tuple[str, ...] | None:
    """The names of the three layers, in the order of `ROLES`; two, where that of v is missing."""
    for kind in (is_layer, _is_made_of_layers, _is_list_of_layers):
        for names in ROLE_NAMES:
            if all(kind(getattr(module, name, None)) for name in names):
                return names
    for names in ROLE_NAMES:
        if all(isinstance(getattr(module, name, None), nn.Linear) for name in names[:2]):
            return names[:2]
    return None


def fused_name(module: nn.Module) -> str | None:
    """The name of the one layer that makes queries, keys and values."""
    return _first(module, FUSED_NAMES)


def query_and_fused_names(module: nn.Module) -> tuple[str, str] | None:
    """The names of a layer for the queries and of one for keys and values."""
    fused = _first(module, KEY_VALUE_NAMES)
    query = _first(module, [names[0] for names in ROLE_NAMES])
    return (query, fused) if query and fused else None


def projection_name(module: nn.Module) -> str | None:
    """The name of the output projection."""
    parts = {name: getattr(module, name, None) for name in PROJECTION_NAMES}
    found = (name for name, one in parts.items() if is_layer(one) or _is_made_of_layers(one))
    return next(found, None)


def block_part_names(module: nn.Module, attentions: list[str]) -> PartNames | None:
    """The parts of a block around these attentions, by what they are; None where it is no block.

    Beside the attention it has one to four norms, and layers.
    """
    named = dict(module.named_modules())
    kept = [name for name, own in module.named_parameters(recurse=False) if own.dim() > 1]
    inside = [name for name, part in named.items() if is_norm(part)]
    attention = _widest(named, _common(attentions), inside)
    norms = [name for name in inside if not within(name, [attention])]
    layers = layers_beside(module, attention)
    others = [*layers, attention, *norms]
    batch = nn.modules.batchnorm._BatchNorm  # reads (B, C, T), and what calls it (B, T, C)
    norms = [_widest(named, n, others) if isinstance(named[n], batch) else n for n in norms]
    feed_forward = _widest(named, _common(layers), [*norms, attention]) if layers else ""
    is_list = isinstance(named[feed_forward], nn.ModuleList | nn.ModuleDict)
    if is_list or any(within(name, [feed_forward]) for name in (*norms, attention)):
        feed_forward = ""
    if kept or not attention or not 1 <= len(norms) <= 4:
        return None
    if len(norms) == 1 and len(inside) > 1:  # the attention has its norm inside
        return None
    if len(layers) < 2 and (len(norms) == 1 or feed_forward in ("", *layers)):  # a projection
        return None
    if not feed_forward and len(layers) > 4:
        return None
    return attention, feed_forward, norms[0], norms[min(1, len(norms) - 1)]


def _common(names: list[str]) -> str:
    """The part that several stand in; of one, this one."""
    common = names[0].split(".")
    for name in names[1:]:
        common = [a for a, b in zip(common, name.split("."), strict=False) if a == b]
    return ".".join(common)


def _widest(named: dict[str, nn.Module], name: str, others: Iterable[str]) -> str:
    """The widest part around a part that can be called, and that none of the others stands in."""
    others = [other for other in others if not within(other, [name])]
    outer = widest = name
    while (outer := outer.rpartition(".")[0]) and not any(within(one, [outer]) for one in others):
        if not isinstance(named[outer], nn.ModuleList | nn.ModuleDict):
            widest = outer
    return widest


def within(name: str, outer: Iterable[str]) -> bool:
    """Tell whether a part is one of the outer ones or stands in one ("" is the whole module)."""
    return any(not one or f"{name}.".startswith(f"{one}.") for one in outer)


def layers_beside(module: nn.Module, attention: str) -> list[str]:
    """The names of the layers of a block beside its attention."""
    named = module.named_modules()
    return [n for n, part in named if is_layer(part) and not within(n, [attention])]


def is_norm(part: nn.Module) -> bool:
    """Tell whether a part without parts has vectors only, or the name of a norm."""
    own, named = list(part.parameters()), "norm" in type(part).__name__.lower()
    vectors = all(one.dim() == 1 for one in own) if own else named
    return vectors and not list(part.children())


def own_head_count(module: Any) -> int | None:
    """The number of heads that a module knows under one of the usual names."""
    for name in HEAD_COUNT_NAMES:
        value = getattr(module, name, None)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if is_number and not _is_width(name, value, module):
            return value
    return None


def _is_width(name: str, value: int, module: Any) -> bool:
    """Tell whether h is the size of a head: what all layers make, or a third of it."""
    layers = [part for part in module.children() if is_layer(part)] if name == "h" else []
    return bool(layers) and all(len(one.weight) in (value, 3 * value) for one in layers)


def is_layer(part: Any) -> bool:
    """Tell whether a part multiplies with a matrix: Linear, Conv1D or a parameter."""
    if isinstance(part, nn.Parameter):
        return part.dim() in (2, 3)
    weight = getattr(part, "weight", None)
    matrix = isinstance(weight, Tensor) and not nn.parameter.is_lazy(weight) and weight.dim() == 2
    return isinstance(part, nn.Module) and matrix and not isinstance(part, nn.Embedding)


def _is_made_of_layers(part: Any) -> bool:
    """Tell whether a part may stand for a layer, as one with LoRA or a Sequential does."""
    containers = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.MultiheadAttention)
    return isinstance(part, nn.Module) and not isinstance(part, containers)


def _is_list_of_layers(part: Any) -> bool:
    """Tell whether a part has a layer for each head."""
    return isinstance(part, nn.ModuleList | nn.ParameterList) and all(map(is_layer, part))


def _first(module: nn.Module, names: Any) -> str | None:
    return next((name for name in names if is_layer(getattr(module, name, None))), None)
