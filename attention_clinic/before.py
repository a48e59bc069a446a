"""What happens to x before the first attention or block of a module reads it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from attention_base.numbers import small
from attention_base.same import same, tolerance
from attention_clinic.bugs import of_parts
from attention_clinic.calls import Call, recorded
from attention_clinic.inline import PLAIN_NORMS
from attention_clinic.results import Results, named

Seen = tuple[Tensor, list[Tensor]]  # what a part read, and what the parts before it had made


def check_what_comes_before(whole: Call, parts: Mapping[str, Call | None], known: bool) -> Results:
    """Compare what attentions or blocks read with x, unless other layers made it.

    None of these parts stands in another one. `known` says whether there is no other part with
    parameters, which may do anything.
    """
    x = whole.input
    parts = {name: call for name, call in parts.items() if name and call and call.input is not None}
    read = [call.input for call in parts.values()]
    if whole.time_first or not parts or x is None or any(z.shape != x.shape for z in read):
        return Results()
    if any(same(z, x, 0) for z in read):  # what the others read is made of its output
        return Results()
    name = next(iter(parts))
    other = x + torch.linspace(-1, 1, x.numel()).reshape(x.shape).flip(-1).to(x)
    one, two = (_seen(whole.with_input(z), name) for z in (x, other))
    for before, after in zip((x, *one[1]), (other, *two[1]), strict=True):
        if (results := _explained(name, one[0], two[0], before, after)) is not None:
            return results
    if known:
        return named(of_parts("something else than x is read", names=name), name)
    return Results()


def _seen(whole: Call, name: str) -> Seen:
    """What a part reads, and what other modules had made by then, in the same shape."""
    _, calls = recorded(whole.run, dict(whole.module.named_modules()))
    first = next(i for i, one in enumerate(calls) if one.name == name)
    others = [one.out for one in calls[:first] if not one.name.startswith(f"{name}.")]
    shape = whole.input.shape
    return calls[first].call.input, [z for z in others if z is not None and z.shape == shape]


def _explained(name: str, z: Tensor, z_2: Tensor, x: Tensor, x_2: Tensor) -> Results | None:
    """What was made of x, where that is plain: z, and z_2 of another x_2. None where it is not."""
    half, T = z.dtype.itemsize < 4, x.shape[1]
    z, z_2, x, x_2 = (one.float() for one in (z, z_2, x, x_2))
    atol = 0.02 * z.abs().max().item() if half else tolerance(z)
    if any(same(z, norm(x), 1e-4) for norm in PLAIN_NORMS):
        return Results()
    moved = [d for d in range(1, T) if same(z, x.roll(d, 1), atol)]
    if moved or same(z, x.flip(1), atol):
        how = f"token t reads token t - {moved[0]}" if moved else "the last token comes first"
        return named(of_parts("tokens moved before the attention", names=how), name)
    by = ((z_2 - z) * (x_2 - x)).sum() / (x_2 - x).square().sum()
    added = z - by * x
    if not same(z_2 - by * x_2, added, 10 * atol) or by.abs() < 1e-6:
        return None
    results = Results()
    if not same(added, added[:1].expand_as(added), atol):
        results += named(of_parts("positions along the batch"), name)
    elif T > 1 and added.abs().max() > atol and same(added, added[:, :1].expand_as(added), atol):
        results += named(of_parts("one position for all tokens"), name)
    if abs(by - 1) > (0.02 if half else 1e-4):
        scaled = of_parts("x scaled before the attention", names=small(by.item()))
        results += named(scaled, name)
    return results
