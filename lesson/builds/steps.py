"""Looks for the steps of attention among all that a module computes, whatever its layers are.

It is asked where `attention_clinic` finds no queries, keys and values by the layers that make them.
"""

import copy
from collections.abc import Callable
from itertools import permutations
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from attention_base.arguments import typed
from attention_base.masks import refuse_bad_sizes
from attention_base.same import same
from helpers.attention import attention, causal_mask
from helpers.attention.checks import refuse_uneven_heads

TOLERANCE = 1e-4
CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.Sequential)


class Seen(TorchFunctionMode):
    """Notes the float tensors that functions of torch take and give meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.tensors: dict[int, Tensor] = {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for one in tree_leaves((args, kwargs, out)):
            if type(one) is Tensor and one.is_floating_point() and one.dim() > 2:
                self.tensors[id(one)] = one
        return out


class HeadSteps(NamedTuple):
    """What one head of an attention computed: (B, T, head_size) each."""

    q: Tensor
    k: Tensor
    v: Tensor
    gave: Tensor


def head_steps(module: nn.Module, x: Tensor, head_size: int) -> tuple[list[HeadSteps], Tensor]:
    """The heads that are found among the steps of a module, and what the module gives."""
    with torch.no_grad(), Seen() as seen:
        out = module(x)
    B, T, _ = x.shape
    tensors = [z for one in seen.tensors.values() if len(one) == B for z in _heads_in_front(one)]
    same_place = {(z.data_ptr(), z.shape, z.stride()): z for z in tensors}
    parts = [z for z in same_place.values() if z.shape[-2:] == (T, head_size)]
    future = torch.ones(T, T, dtype=torch.bool).triu(1)

    def found(is_given: Callable[[Tensor], bool]) -> list[HeadSteps]:
        heads: list[HeadSteps] = []
        for q in parts:
            for k in (one for one in parts if one.shape == q.shape and one is not q):
                scores = q @ k.mT / q.shape[-1] ** 0.5
                weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
                for v in (one for one in parts if one.shape == q.shape):
                    gave = weights @ v
                    if is_given(gave):
                        steps = (q, k, v, gave)
                        each = zip(*(z.unbind(1) for z in steps), strict=True)
                        heads += [HeadSteps(*one) for one in (each if q.dim() == 4 else [steps])]
                        break  # a head of C channels: others would do as values, too
        return heads

    def projected(gave: Tensor) -> bool:  # in the same step as the average
        merged = gave.transpose(1, 2).flatten(2) if gave.dim() == 4 else x[..., :0]
        return merged.shape == out.shape and same(fitted(merged, out)[0], out.double(), TOLERANCE)

    heads = found(lambda gave: any(same(gave, one, TOLERANCE) for one in parts))
    heads = heads or found(projected)
    first = [all(not same(one.gave, z.gave) for z in heads[:i]) for i, one in enumerate(heads)]
    return [one for one, new in zip(heads, first, strict=True) if new], out


def _heads_in_front(z: Tensor) -> list[Tensor]:
    """A tensor as it is, and with its heads moved to axis 1, from axis 2 and from axis 3."""
    return [z, z.transpose(1, 2), z.movedim(3, 1)] if z.dim() == 4 else [z]


def is_attention(module: nn.Module, x: Tensor, n_head: int) -> bool:
    """Tell whether the steps of causal attention lead to what a module gives.

    Parameters
    ----------
    module
        Takes x. It gives what its head gives, or a linear function of what n_head heads give.
    x
        (B, T, C), with many more tokens than channels, so that a linear function can be told.
    n_head
        The number of heads; 1 for a head alone.
    """
    if n_head == 1:
        with torch.no_grad():
            width = module(x).shape[-1]
        heads, out = head_steps(module, x, width)
        heads = heads or _by_its_matrices(module, x, width)
        return any(same(out, one.gave, TOLERANCE) for one in heads)
    heads, out = head_steps(module, x, x.shape[-1] // n_head)
    merged = torch.cat([one.gave for one in heads], dim=-1) if heads else x[..., :0]
    linear, _ = fitted(merged, out)
    return len(heads) == n_head and same(linear, out.double(), TOLERANCE)


def _by_its_matrices(module: nn.Module, x: Tensor, width: int) -> list[HeadSteps]:
    """What a head computes by each three of its matrices, for one that takes token after token."""
    own = [one.detach() for one in module.parameters() if one.dim() == 2]
    parts = [x @ z for one in own for z in (one.T, one) if z.shape == (x.shape[-1], width)]
    mask = causal_mask(x.shape[1])
    return [HeadSteps(*qkv, attention(*qkv, mask)[0]) for qkv in permutations(parts, 3)]


def _token_by_token(module: nn.Module, x: Tensor) -> list[HeadSteps]:
    """The steps of a module that is a head, none for any other."""
    if len(list(module.parameters())) != 3 or isinstance(module, CONTAINERS):
        return []
    with torch.no_grad():
        out = module(x)
    steps = _by_its_matrices(module, x, out.shape[-1])
    return [one for one in steps if same(one.gave, out, TOLERANCE)][:1]


def fitted(z: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """The linear function of z that is nearest to out, and its matrix, the bias its last row."""
    z = torch.cat([z, torch.ones(*z.shape[:-1], 1)], dim=-1).double()
    matrix = torch.linalg.lstsq(z.flatten(0, 1), out.flatten(0, 1).double()).solution
    return z @ matrix, matrix


@typed
def as_pytorch(attention: nn.Module, C: int, n_head: int) -> nn.MultiheadAttention:
    """Make PyTorch's layer with the weights of a causal attention, whatever its layers are called.

    The weights are fitted to the queries, keys, values and outputs that the attention computes.

    Parameters
    ----------
    attention
        Takes (B, T, C).
    C, n_head
        The channels of a token, and the number of heads.

    Raises
    ------
    ValueError
        If its heads are not found.
    """
    refuse_bad_sizes(C=C, n_head=n_head)
    refuse_uneven_heads(C, n_head)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3 * C, C, generator=generator)
    attention = copy.deepcopy(attention).eval()  # without dropout
    for own in attention.modules():
        if isinstance(own, nn.MultiheadAttention) and own.num_heads == n_head:
            own.batch_first = True  # the copy's
            return own
    heads, out = head_steps(attention, x, C // n_head)
    heads = heads or [steps for one in attention.modules() for steps in _token_by_token(one, x)]
    if len(heads) != n_head:
        raise ValueError(
            f"Among the steps of this attention, {len(heads)} heads were found, and n_head is "
            f"{n_head}. Queries, keys and values are looked for as (B, T, head_size) of a head, or "
            "of all as (B, n_head, T, head_size), with n_head on axis 1, 2 or 3."
        )
    q, k, v, gave = (torch.cat(steps, dim=-1) for steps in zip(*heads, strict=True))
    fused = torch.cat([fitted(x, one)[1] for one in (q, k, v)], dim=1).float()  # (C + 1, 3C)
    ending = fitted(gave, out)[1].float()
    layer = nn.MultiheadAttention(C, n_head, batch_first=True)
    with torch.no_grad():
        for own, matrix in (
            (layer.in_proj_weight, fused[:-1].T),
            (layer.in_proj_bias, fused[-1]),
            (layer.out_proj.weight, ending[:-1].T),
            (layer.out_proj.bias, ending[-1]),
        ):
            own.copy_(matrix)
    return layer


def gives_heads(module: nn.Module, x: Tensor) -> bool:
    """Tell whether a module gives the outputs of its heads side by side, and no function of them.

    One Linear layer behind them would make other numbers, and one that was seen before.
    """
    with torch.no_grad(), Seen() as seen:
        out = module(x)
    tensors = list(seen.tensors.values())
    heads = [one for one in tensors if one.dim() == 4 and one.shape[2] == x.shape[1]]
    single = [one for one in tensors if one.shape[:2] == out.shape[:2] and one.dim() == 3]
    first = [one for one in single if one.shape[-1] < out.shape[-1]]
    return any(same(one.transpose(1, 2).flatten(2), out, TOLERANCE) for one in heads) or any(
        same(one, out[..., : one.shape[-1]], TOLERANCE) for one in first
    )
