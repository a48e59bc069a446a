"""The common names of an attention's layers and of a block's parts, which stand in ``names.md``.

`diagnose` looks for these names in a module. A layer may be an `nn.Linear`, a `Conv1D`, whose
weight is stored as (in, out), or an `nn.Parameter`.
"""

import re
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from attention_base.known import read
from attention_base.numbers import joined

_PAGE = [
    [tuple(item.text.split()) for item in section.items]
    for section in read(Path(__file__).with_name("names.md"))
]
ROLES = ("query", "key", "value")
ROLE_NAMES, NORM_NAMES = _PAGE[0], _PAGE[-1]  # of layers that belong together
FUSED_NAMES, KEY_VALUE_NAMES, PROJECTION_NAMES, HEAD_COUNT_NAMES, CHANNEL_NAMES = (
    [name for (name,) in items] for items in _PAGE[1:6]
)
HEAD_SIZE_NAMES, LENGTH_NAMES, ATTENTION_NAMES, FEED_FORWARD_NAMES = (
    [name for (name,) in items] for items in _PAGE[6:10]
)
USUAL = {key: int(told) if told.isdecimal() else getattr(nn, told, told) for key, told in _PAGE[10]}
FUSED_BY_HEAD = ("query_key_value",)  # queries, keys and values of head 0, then of head 1, …
FUSED_BY_ROLE = ("c_attn", "in_proj_weight")  # all queries, all keys, all values


def role_names(module: nn.Module) -> tuple[str, ...] | None:
    """The names of the three layers, in the order of `ROLES`; two, where that of v is missing."""
    for names in ROLE_NAMES:
        if all(is_layer(getattr(module, name, None)) for name in names):
            return names
    for names in ROLE_NAMES:
        if all(_is_made_of_layers(getattr(module, name, None)) for name in names):
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
    return next(
        (n for n, part in parts.items() if is_layer(part) or _is_made_of_layers(part)), None
    )


def block_part_names(module: nn.Module) -> tuple[str, str, str, str] | None:
    """The names of a block's attention, feed-forward and two norms; "" for layers of its own."""
    parts = _block_parts(module)
    if None in parts:
        return None
    attention, feed_forward, norms = parts
    return (attention, feed_forward, *norms)


def missing_block_parts(module: nn.Module) -> str:
    """Which parts of a block were found, and which usual names the missing ones may have."""
    attention, feed_forward, norms = _block_parts(module)
    found = [
        f"{what} ({name})"
        for what, name in (("the attention", attention), ("the feed-forward", feed_forward))
        if name
    ]
    found += [f"the norms ({' and '.join(dict.fromkeys(norms))})"] if norms else []
    missing = []
    if attention is None:
        missing.append(f"attention ({', '.join(ATTENTION_NAMES[:4])}, …)")
    if feed_forward is None:
        missing.append(f"feed-forward ({', '.join(FEED_FORWARD_NAMES[:4])}, …)")
    if norms is None:
        pairs = ", ".join(" and ".join(names) for names in NORM_NAMES[:3])
        missing.append(f"two norms ({pairs}, …)")
    return f"found: {joined(found) if found else 'none'}; missing: {joined(missing)}"


def _block_parts(module: nn.Module) -> tuple[str | None, str | None, tuple[str, str] | None]:
    def has(name: str) -> bool:
        return isinstance(getattr(module, name, None), nn.Module)

    attention = next(filter(has, ATTENTION_NAMES), None)
    feed_forward = next(filter(has, FEED_FORWARD_NAMES), None)
    if feed_forward is None and len(layers_beside(module)) in (2, 3):
        feed_forward = ""
    norms = next((names for names in NORM_NAMES if all(map(has, names))), None)
    if norms is None and attention and feed_forward is not None:
        norms = _norms_inside(module, (attention, feed_forward or attention))
    return attention, feed_forward, norms


def layers_beside(module: nn.Module) -> list[str]:
    """The names of the Linear layers that stand in a block itself."""
    return [name for name, part in module.named_children() if is_layer(part)]


def _norms_inside(module: nn.Module, others: tuple[str, str]) -> tuple[str, str] | None:
    """The names of two norms whose places differ in a number, as in sublayer.0.norm."""
    found = [
        name
        for name, part in module.named_modules()
        if not name.startswith(tuple(f"{one}." for one in others))
        and (own := list(part.parameters(recurse=False)))
        and all(one.dim() == 1 for one in own)
    ]
    places = {re.sub(r"\d+", "", name) for name in found}
    return (found[0], found[1]) if len(found) == 2 and len(places) == 1 else None


def own_head_count(module: Any) -> int | None:
    """The number of heads that a module knows under one of the usual names."""
    for name in HEAD_COUNT_NAMES:
        value = getattr(module, name, None)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def is_layer(part: Any) -> bool:
    """Tell whether a part multiplies with a matrix: Linear, Conv1D or a parameter."""
    if isinstance(part, nn.Parameter):
        return part.dim() in (2, 3)
    weight = getattr(part, "weight", None)
    matrix = isinstance(weight, Tensor) and weight.dim() == 2
    return isinstance(part, nn.Module) and matrix and not isinstance(part, nn.Embedding)


def _is_made_of_layers(part: Any) -> bool:
    """Tell whether a part may stand for a layer, as one with LoRA or a Sequential does."""
    containers = (nn.ModuleList, nn.ModuleDict, nn.MultiheadAttention)
    return isinstance(part, nn.Module) and not isinstance(part, containers)


def _first(module: nn.Module, names: Any) -> str | None:
    return next((name for name in names if is_layer(getattr(module, name, None))), None)
