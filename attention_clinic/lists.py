"""Finds layers and parameters of a module that stand in a plain Python list, tuple or dict.

PyTorch does not look into these: what is in them belongs to no `parameters()`, and no optimiser
trains it. What stands in its `nn.ParameterDict` is right.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from typing import Any

from torch import nn

OF_EVERY_MODULE = frozenset(vars(nn.Module()))
Part = nn.Module | nn.Parameter


@dataclass(frozen=True)
class InList:
    """Layers or parameters in a Python list."""

    name: str  # of the list, as in "blocks.0.heads"
    count: int  # how many stand in it
    noun: str  # "layers" or "parameters"
    kind: str  # "list", "tuple" or "dict"
    instead: str  # the class that registers what is in it

    def __str__(self) -> str:
        return f"{self.count} {self.noun if self.count > 1 else self.noun[:-1]} in `{self.name}`"


@contextlib.contextmanager
def registered(module: Any) -> Iterator[tuple[InList, ...]]:
    """Let a module have what stands in its Python lists as parts and parameters, for a while.

    What is frozen stays where it is: it may be hidden on purpose. What stands in a ParameterDict
    can be had by its key as an attribute, too.
    """
    added: list[tuple[dict, str]] = []
    for owner in [*module.modules()] if isinstance(module, nn.Module) else []:
        for one in owner.children():
            for key in one.keys() if isinstance(one, nn.ParameterDict) else ():
                if not hasattr(owner, key):
                    vars(owner)[key] = one[key]
                    added.append((vars(owner), key))
    found: list[InList] = []
    try:
        while isinstance(module, nn.Module) and (place := _next_list(module)):
            path, owner, attribute, parts = place
            container = nn.Module()
            for i, part in enumerate(parts):
                setattr(container, str(i), part)
            owner._modules[attribute] = container
            added.append((owner._modules, attribute))
            name = f"{path}.{attribute}" if path else attribute
            found.append(_described(name, getattr(owner, attribute), container))
        yield tuple(found)
    finally:
        for modules, attribute in added:
            del modules[attribute]


def _next_list(module: nn.Module) -> tuple[str, nn.Module, str, list[Part]] | None:
    """The first list with parts that should be registered: its owner, its name and these parts."""
    known = {id(own) for own in module.parameters()}
    for path, owner in module.named_modules():
        for attribute, value in vars(owner).items():
            parts = [part for part in _parts_in(value) if _learns_unknown(part, known)]
            if parts and attribute not in OF_EVERY_MODULE:
                return path, owner, attribute, parts
    return None


def _parts_in(value: Any) -> list[Part]:
    """All modules and parameters in a list, tuple, dict or dataclass, also in a list of these."""
    if isinstance(value, dict) or (is_dataclass(value) and not isinstance(value, type)):
        value = list((value if isinstance(value, dict) else vars(value)).values())
    if not isinstance(value, list | tuple):
        return []
    return [part for one in value for part in ([one] if isinstance(one, Part) else _parts_in(one))]


def _learns_unknown(part: Part, known: set[int]) -> bool:
    """Tell whether there is a parameter in a part that can learn and is not known."""
    own = [part] if isinstance(part, nn.Parameter) else part.parameters()
    return any(one.requires_grad and id(one) not in known for one in own)


def _described(name: str, value: list | tuple | dict, container: nn.Module) -> InList:
    layers = [one for one in container.modules() if list(one.parameters(recurse=False))]
    only_parameters = layers == [container]
    count = len(list(container.parameters())) if only_parameters else len(layers)
    kinds = {"dict": dict, "tuple": tuple, "list": list, "dataclass": object}
    kind = next(kind for kind, one in kinds.items() if isinstance(value, one))
    instead = f"nn.{'Parameter' if only_parameters else 'Module'}"
    instead += "Dict" if kind in ("dict", "dataclass") else "List"
    return InList(name, count, "parameters" if only_parameters else "layers", kind, instead)
