"""Which parameters of a module a gradient from its output arrives at."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from helpers.clinic.calls import Call
from helpers.clinic.inspection import AttentionInternals
from helpers.clinic.names import ROLES
from helpers.numbers import joined

IN_PLACE = (
    "none can be computed, since numbers that backpropagation needs were changed in place: write "
    "x = x + …, not x += …."
)


@contextlib.contextmanager
def learning(module: nn.Module) -> Iterator[list[tuple[str, nn.Parameter]]]:
    """Let every parameter of a module require a gradient, for a while."""
    named = [one for one in module.named_parameters() if one[1].is_floating_point()]
    before = [own.requires_grad for _, own in named]
    try:
        for _, own in named:
            own.requires_grad_(True)
        yield named
    finally:
        for (_, own), was in zip(named, before, strict=True):
            own.requires_grad_(was)


def gradients_of(whole: Call) -> dict[str, Tensor | None]:
    """Name of each parameter -> its gradient from a random upstream gradient, None without one.

    Raises
    ------
    RuntimeError
        When numbers that backpropagation needs were changed in place.
    """
    with learning(whole.module) as named, torch.enable_grad():
        out = whole.run()[0]
        if not out.requires_grad:
            return dict.fromkeys(name for name, _ in named)
        upstream = torch.randn(out.shape, generator=torch.Generator().manual_seed(0)).to(out)
        parameters = [own for _, own in named]
        found = torch.autograd.grad((out * upstream).sum(), parameters, allow_unused=True)
    return {name: z for (name, _), z in zip(named, found, strict=True)}


def roles_without(
    seen: AttentionInternals, names: dict[int, str], gradients: dict[str, Tensor | None]
) -> list[str]:
    """Which of query, key and value gets no gradient at its layer's weight."""
    without = []
    for role, (weight, part_of) in seen.roles.items():
        gradient = gradients.get(names.get(id(weight), ""))
        if gradient is None or not part_of(gradient).any():
            without.append(role)
    return without


def parts_without(module: nn.Module, gradients: dict[str, Tensor | None]) -> list[str]:
    """The parameters without a gradient; a whole part by its name, where it gets none at all."""
    without = {name for name, gradient in gradients.items() if gradient is None}
    found: list[str] = []
    for name, _ in module.named_modules():
        inside = [key for key in gradients if key.startswith(f"{name}.")]
        known = any(f"{name}.".startswith(f"{outer}.") for outer in found)
        if name and inside and without.issuperset(inside) and not known:
            found.append(name)
    alone = [key for key in gradients if key in without]
    return found + [key for key in alone if not any(key.startswith(f"{name}.") for name in found)]


def changes_output(whole: Call, name: str) -> bool:
    """Tell whether other numbers in a part's parameters change the output."""
    parameters = [
        own for key, own in whole.module.named_parameters() if f"{key}.".startswith(f"{name}.")
    ]
    before = [own.data for own in parameters]
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        out = whole.run()[0]
        try:
            for own in parameters:
                own.data = own.data + torch.randn(own.shape, generator=generator).to(own.data)
            other = whole.run()[0]
        finally:
            for own, data in zip(parameters, before, strict=True):
                own.data = data
    return not torch.equal(out, other)


def in_words(roles: Iterable[str]) -> str:
    """Roles in their usual order: "query and key"."""
    roles = set(roles)
    return joined([role for role in ROLES if role in roles])
