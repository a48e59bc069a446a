"""Looks for the steps of attention among all that a module computes, whatever its layers are.

It is asked where `attention_clinic` finds no queries, keys and values by the layers that make them.
"""

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from attention_base.same import same

TOLERANCE = 1e-4


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
    with torch.no_grad(), Seen() as seen:
        out = module(x)
    B, T, C = x.shape
    end = (T, out.shape[-1] if n_head == 1 else C // n_head)
    parts = [one for one in seen.tensors.values() if one.shape[-2:] == end and len(one) == B]
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    heads: list[Tensor] = []  # (B, T, head_size)
    for q in parts:
        for k in (one for one in parts if one.shape == q.shape and one is not q):
            scores = q @ k.mT / q.shape[-1] ** 0.5
            weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
            for v in (one for one in parts if one.shape == q.shape):
                gave = weights @ v
                if any(same(gave, one, TOLERANCE) for one in parts):
                    heads += gave.unbind(1) if gave.dim() == 4 else [gave]
    if n_head == 1:
        return any(same(out, one, TOLERANCE) for one in heads)
    heads = [one for i, one in enumerate(heads) if not any(same(one, z) for z in heads[:i])]
    merged = torch.cat([*heads, torch.ones(B, T, 1)], dim=-1).flatten(0, 1).double()
    wanted = out.flatten(0, 1).double()
    linear = merged @ torch.linalg.lstsq(merged, wanted).solution
    return len(heads) == n_head and same(linear, wanted, TOLERANCE)


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
