"""Right attention with other queries and keys: rotated by their positions, normed, or both."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from attention_base.same import same
from attention_clinic.bugs import merge_heads, of_parts, split_heads
from attention_clinic.calls import Call, Watching
from attention_clinic.readings import Reading

ROPE = of_parts("rotary positions (RoPE, Su et al. 2021)")
QK_NORM = of_parts("QK-norm (Henry et al. 2020)")
HALVES_AND_PAIRS = of_parts("rotary positions, halves and pairs mixed up")
ONLY_QUERIES, ONLY_KEYS, VALUES_TOO = (
    of_parts(f"rotary positions on the {which}")
    for which in ("queries only", "keys only", "values too")
)
PRODUCTS = ("matmul", "__matmul__", "bmm", "baddbmm", "einsum", "scaled_dot_product_attention")
Function = Callable[[Tensor], Tensor]


def rotated(
    z: Tensor,
    base: float = 10_000,
    *,
    pairs: bool = False,
    share: float = 1,
    angles_of_pairs: bool | None = None,
    sign: int = 1,
) -> Tensor:
    """Rotary positions for z (…, T, d), on a share of its channels.

    Channel i is rotated with channel i + d/2, as in Llama; with `pairs`, channel 2i with 2i + 1,
    as in the paper. The angle is t / base^(2i/d) for token t. The two are mixed up where the
    angles stand as for pairs, and the channels are halves, or the other way round. With the sign
    -1 all turn backwards, as in modded-nanogpt: a score depends on the distance all the same.
    """
    size = round(share * z.shape[-1])
    z, rest = z.split([size, z.shape[-1] - size], dim=-1)
    i = torch.arange(size // 2, device=z.device)
    angles = sign * torch.arange(z.shape[-2], device=z.device)[:, None] / base ** (2 * i / size)
    angles = _side_by_side(angles, angles, pairs if angles_of_pairs is None else angles_of_pairs)
    a, b = (z[..., 0::2], z[..., 1::2]) if pairs else z.chunk(2, dim=-1)
    turned = z * angles.cos().to(z) + _side_by_side(-b, a, pairs) * angles.sin().to(z)
    return torch.cat([turned, rest], dim=-1)


def _side_by_side(a: Tensor, b: Tensor, pairs: bool) -> Tensor:
    return torch.stack([a, b], dim=-1).flatten(-2) if pairs else torch.cat([a, b], dim=-1)


BASES = (10_000, 500_000, 1_000_000)  # the paper's, Llama 3's, Qwen's
ROPES = [
    *(partial(rotated, base=base, pairs=p) for base in BASES for p in (False, True)),
    *(partial(rotated, pairs=p, share=share) for p in (False, True) for share in (0.5, 0.25)),
    *(partial(rotated, pairs=p, sign=-1) for p in (False, True)),
]
MIXED_UP = [partial(rotated, pairs=p, angles_of_pairs=not p) for p in (False, True)]
NORMS: list[Function] = [
    lambda z: F.rms_norm(z, z.shape[-1:], eps=1e-6),
    lambda z: F.layer_norm(z, z.shape[-1:]),
]


def rotated_in_vain(call: Call, q: Tensor, n_head: int) -> bool:
    """Tell whether queries were rotated, but for those at a place whose angle is 0.

    To be asked where the scores are those of the queries (B, T, n_head * d) without a rotation.
    """
    factors: list[Tensor] = []

    def keep_factors(function: Callable, args: tuple, _: object) -> None:
        if getattr(function, "__name__", "") in PRODUCTS:
            factors.extend(z for z in tree_leaves(args) if isinstance(z, Tensor))

    with Watching(keep_factors):
        call.run()
    plain = split_heads(q, n_head).flatten(0, -2)  # (vectors, d)
    for z in factors:
        if z.numel() != q.numel() or z.shape[-1] != plain.shape[-1]:
            continue
        turned = z.reshape(plain.shape) * (q.norm() / z.norm())  # they may be scaled, too
        lengths = (one.norm(dim=-1).sort().values for one in (turned, plain))
        if same(*lengths, 1e-4):
            unturned = (torch.cdist(turned.double(), plain.double()).amin(1) < 1e-3).float().mean()
            if 0 < unturned < 1:
                return True
    return False


def changed_readings(
    reading: Reading, n_head: int, module: nn.Module, *, likely: bool = False
) -> Iterator[Reading]:
    """A reading whose queries and keys are normed, then rotated, in each of the usual ways.

    With `likely`, in the likeliest of them, and with nothing wrong.
    """

    def with_bugs(q: Tensor, k: Tensor, v: Tensor, *bugs: tuple) -> Reading:
        q, k, v = map(merge_heads, (q, k, v))
        return replace(reading, q=q, k=k, v=v, bugs=(*reading.bugs, *bugs))

    q, k, v = (split_heads(z, n_head) for z in (reading.q, reading.k, reading.v))
    norms = _norms(module, q)
    yield from (with_bugs(f(q), g(k), v, QK_NORM) for f, g in norms)
    if q.shape[-1] % 2 or v.shape[-1] % 2:
        return
    for turn in ROPES[:2] if likely else ROPES:
        share = turn.keywords.get("share", 1)
        if any(z.shape[-1] * share % 2 for z in (q, v)):
            continue
        yield with_bugs(turn(q), turn(k), v, ROPE)
        yield from (with_bugs(turn(f(q)), turn(g(k)), v, QK_NORM, ROPE) for f, g in norms)
        yield from (with_bugs(f(turn(q)), g(turn(k)), v, QK_NORM, ROPE) for f, g in norms)
        if not likely:
            yield with_bugs(turn(q), k, v, ONLY_QUERIES)
            yield with_bugs(q, turn(k), v, ONLY_KEYS)
            yield with_bugs(turn(q), turn(k), turn(v), VALUES_TOO)
    if not likely:
        yield from (with_bugs(turn(q), turn(k), v, HALVES_AND_PAIRS) for turn in MIXED_UP)


def _norms(module: nn.Module, q: Tensor) -> list[tuple[Function, Function]]:
    """Norms of queries and of keys (B, n_head, T, d): without parameters, or the module's own."""
    n_head, d = q.shape[1], q.shape[-1]

    def of_heads(norm: nn.Module, size: int) -> Function:
        return norm if size == d else lambda z: split_heads(norm(merge_heads(z)), n_head)

    own = []
    for part in module.modules():
        sizes = {z.numel() if z.dim() == 1 else 0 for z in part.parameters()}
        if len(sizes) == 1 and sizes <= {d, n_head * d}:
            norm = of_heads(part, sizes.pop())
            with contextlib.suppress(Exception):  # a batch norm takes (B, C, T)
                own += [norm] if norm(q).shape == q.shape else []
    return [(f, f) for f in (*NORMS, *own[:4])] + [*itertools.permutations(own[:4], 2)]
