"""Judges an attention with rotary positions: by which angles queries and keys are turned.

Turned back by the right angles, they are linear functions of the tokens, as in notebook 06. Where
they are not, the angles of known mistakes are tried.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attention_base.same import same
from lesson.builds.calling import Made, Wrong, judges
from lesson.builds.classes import NOT_YOURS, attention_notes
from lesson.builds.right_08 import turn
from lesson.builds.steps import fitted, head_steps

C, N_HEAD, BASE = 36, 3, 10_000
MEANT = ("rotary positions (",)
TOLERANCE = 1e-3


@judges("08.MultiHeadAttention")
def judge_turned(made: Made) -> list[str]:
    """Judge the learner's MultiHeadAttention (C, n_head, base)."""
    return turned_notes(made)


def turned_notes(made: Made) -> list[str]:
    """Notes about a right attention with rotary positions."""
    attention = made.make(C, N_HEAD)
    if not made.problem(attention, lambda B, T: torch.randn(B, T, C), C):
        other = made.make(C, N_HEAD, base=100)
        for one, base in ((attention, BASE), (other, 100)):
            _check_angles(made, one, base)
    notes = attention_notes(made, MEANT)
    return [*notes, *(NOT_YOURS.format(name) for name in made.helpers_called())]


def _check_angles(made: Made, attention: nn.Module, base: float) -> None:
    """Raise what is wrong with the angles; without heads, only that there is no order."""
    x = torch.randn(2, 3 * C, C)
    heads, _ = head_steps(attention, x, C // N_HEAD)
    if len(heads) != N_HEAD:
        if all(_has_no_order(attention, size * torch.randn(2, 6, C)) for size in (1, 10)):
            raise made.known("not turned")
        return
    q, k, v = (torch.stack(steps, dim=1) for steps in list(zip(*heads, strict=True))[:3])
    right = _angles(base)
    turned = {name: _is_linear(turn(z, -right), x) for name, z in (("q", q), ("k", k))}
    plain = {name: _is_linear(z, x) for name, z in (("q", q), ("k", k), ("v", v))}
    if turned["q"] and turned["k"]:
        if not plain["v"]:
            raise made.known("values turned, too")
        return
    if plain["q"] and plain["k"]:
        raise made.known("not turned")
    for name, other in (("q", "k"), ("k", "q")):
        if turned[name] and plain[other]:
            raise made.known(f"only {name} turned")
        if turned[name] and _is_linear(turn({"q": q, "k": k}[other], right), x):
            raise made.known("turned in opposite directions")
    for name, undo in _mistakes(base).items():
        if all(_is_linear(undo(z), x) for z in (q, k)):
            raise made.known(name, base=base)
    for angles in (_angles(base, C), right.repeat(1, N_HEAD)):
        if _is_linear(q, turn(x, angles)):
            raise made.known("tokens turned")
    which = "queries" if not turned["q"] else "keys"
    told = "At position t, arrow i of a head turns by t * base ** (-2 * i / head_size)."
    raise Wrong("", f"The {which} are turned by other angles than those of the task. {told}")


def _has_no_order(attention: nn.Module, x: Tensor) -> bool:
    with torch.no_grad():
        last, of_swapped = (attention(z)[:, -1] for z in (x, x[:, [1, 0, 2, 3, 4, 5]]))
    return same(last, of_swapped, TOLERANCE)


def _mistakes(base: float) -> dict[str, Callable[[Tensor], Tensor]]:
    """How queries or keys (B, n_head, T, d) with a mistake become linear in the tokens again."""
    d, T = C // N_HEAD, torch.arange(3 * C)[:, None]
    own = base ** (-torch.arange(0, d, 2) / d)
    speeds = {
        "base not used": BASE ** (-torch.arange(0, d, 2) / d),
        "speeds of C channels": base ** (-torch.arange(0, d, 2) / C),
        "speeds that grow": 1 / own,
        "exponents half as large": base ** (-torch.arange(d // 2) / d),
        "a rounded exponent": base ** torch.div(-torch.arange(0, d, 2), d, rounding_mode="floor"),
        "one speed": torch.ones(d // 2),
        "turned twice": 2 * own,
        "turned backwards": -own,
        "degrees": own * 180 / torch.pi,
        "degrees, turned into radians": own * torch.pi / 180,
    }
    undo = {name: lambda z, angles=T * one: turn(z, -angles) for name, one in speeds.items()}
    return undo | {
        "turned before the split": lambda z: turn(_merged(z), -_angles(base, C)),
        "halves for pairs": lambda z: turn(z[..., _PAIRS], -_angles(base)),
    }


# Channels 0 and d / 2, then 1 and d / 2 + 1, and so on.
_PAIRS = torch.arange(C // N_HEAD).view(2, -1).T.flatten()


def _angles(base: float, d: int = C // N_HEAD) -> Tensor:
    """(T, d / 2), in radians."""
    return torch.arange(3 * C)[:, None] * base ** (-torch.arange(0, d, 2) / d)


def _merged(z: Tensor) -> Tensor:
    """(B, n_head, T, d) -> (B, T, C); what is merged already stays."""
    return z.transpose(1, 2).flatten(2) if z.dim() == 4 else z


def _is_linear(z: Tensor, x: Tensor) -> bool:
    z = _merged(z)
    return same(fitted(x, z)[0], z.double(), TOLERANCE)
