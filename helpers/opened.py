"""Read and replace the attention weights of any model, whatever its layers are called."""

import math
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attention_base.arguments import typed
from attention_base.masks import refuse_bad_sizes
from helpers.attention.checks import refuse_bad_ids


@typed
def opened(
    model: nn.Module,
    ids: Tensor,
    put: Mapping[tuple[int, int], Tensor] | None = None,
    n_head: int = 4,
) -> tuple[Tensor, Tensor]:
    """Run a model; give its logits (B, T, V) and the weights (n_layer, B, n_head, T, T) it used.

    Each step of PyTorch is looked at. Weights are known by what they are: rows that sum to 1, with
    nothing on later tokens.

    Parameters
    ----------
    model
        Maps ids to logits. Dropout is off meanwhile.
    ids
        (B, T); T is other than 1, B and the channels of a token. If it is n_head, the weights have
        to be (…, T, T).
    put
        {(layer, head): weights (B, T, T) or (T, T)} in the place of its own, both counted from 0.
        Weights of 0 set the output of a head to 0.
    n_head
        Heads of a layer.

    Raises
    ------
    ValueError
        When no weights are found, or not n_head for each layer, or none for a key of `put`.
    """
    refuse_bad_ids(ids, math.inf)
    refuse_bad_sizes(n_head=n_head)
    put, training = put or {}, model.training
    B, T = ids.shape
    for place, weights in put.items():
        if weights.shape not in ((B, T, T), (1, T, T), (T, T)):
            raise ValueError(
                f"put must hold weights (T, T) = {(T, T)} or (B, T, T) for each head; those for "
                f"{place} have the shape {tuple(weights.shape)}."
            )
    try:
        with torch.no_grad(), _Opened(put, n_head, *ids.shape) as seen:
            logits = model.eval()(ids)
    finally:
        model.train(training)
    if not seen.maps or len(seen.maps) % n_head:
        raise ValueError(
            f"{len(seen.maps)} heads were found in this {type(model).__name__}, whose layers have "
            f"n_head = {n_head}. A head is found by its weights, (B, T, T) or (B, n_head, T, T), "
            "and they are not seen inside nn.MultiheadAttention, in a loop that takes token after "
            "token, or if you divide by their sum after `@ v`. For all tokens at once, write "
            "weights = torch.softmax(scores, dim=-1), and then weights @ v."
        )
    there = [divmod(i, n_head) for i in range(len(seen.maps))]
    if absent := [place for place in put if place not in there]:
        raise ValueError(
            f"put has no (layer, head) {absent[0]}: both are counted from 0, to {there[-1]}."
        )
    return logits, torch.stack(seen.maps, dim=1).unflatten(1, (-1, n_head)).movedim(1, 0)


class _Opened(TorchFunctionMode):
    """Keeps the map (B, T, T) of each head, in the order of the run."""

    def __init__(self, put: Mapping, n_head: int, B: int, T: int) -> None:
        super().__init__()
        self.put, self.n_head, self.B, self.T, self.maps = put, n_head, B, T, []

    def __torch_function__(self, func, types, args=(), kwargs=None) -> Any:
        given = kwargs or {}
        if func is not F.scaled_dot_product_attention:
            out = func(*args, **given)
            return self._looked_at(out) if isinstance(out, Tensor) else out
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        given = dict(zip(names, args, strict=False)) | given
        value = given.pop("value")
        one_hot = torch.eye(self.T).to(value).expand(*value.shape[:-1], -1)
        return self._looked_at(func(value=one_hot, **given)) @ value  # the weights, then all of it

    def _looked_at(self, out: Tensor) -> Tensor:
        square = [axis for axis, size in enumerate(out.shape) if size == self.T][-2:]
        if out.dim() not in (3, 4) or len(square) != 2 or not out.is_floating_point():
            return out
        own = out.clone()
        z = own.movedim(square, (-2, -1))  # what follows are views of own: (B, heads, T, T)
        if z.dim() == 3 and len(z) % self.B == 0:
            z = z.unflatten(0, (self.B, -1))
        z = z.transpose(0, 1) if len(z) != self.B else z
        if z.dim() == 3 or len(z) != self.B or z.min() < 0 or z.triu(1).any():
            return out
        known = any(torch.allclose(z[:, 0], old, 0, 1e-6) for old in self.maps)  # after a dropout
        if known or (z.sum(dim=-1) - 1).abs().max() > 1e-4:
            return out
        for weights in z.unbind(1):
            weights.copy_(self.put.get(divmod(len(self.maps), self.n_head), weights))
            self.maps.append(weights)
        return own
