"""Read and replace the attention weights of any model, whatever its layers are called.

Each step of a run is looked at while it happens. Attention weights are known by what they are: rows
that sum to 1 and give nothing to later tokens.
"""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


def opened(
    model: nn.Module,
    ids: Tensor,
    put: Mapping[tuple[int, int], Tensor] | None = None,
    *,
    n_head: int = 4,
) -> tuple[Tensor, Tensor]:
    """Run a model; give its logits and the attention weights of all its heads.

    Parameters
    ----------
    model
        Maps ids (B, T) to logits. Dropout is off meanwhile.
    ids
        (B, T), with T of at least 2, and other than the channels of a token.
    put
        {(layer, head): weights that broadcast to (B, T, T)}, which take the place of its own, both
        counted from 0. Weights of 0 set the output of a head to 0.
    n_head
        Heads of a layer.

    Returns
    -------
    logits : torch.Tensor
        (B, T, V)
    weights : torch.Tensor
        (n_layer, B, n_head, T, T), as they were used.

    Raises
    ------
    ValueError
        When no weights are found, or not n_head for each layer, or none for a key of `put`.
    """
    put, training = dict(put or {}), model.training
    try:
        with torch.no_grad(), _Opened(*ids.shape, put, n_head) as seen:
            logits = model.eval()(ids)
    finally:
        model.train(training)
    if not seen.maps or len(seen.maps) % n_head:
        raise ValueError(
            f"{len(seen.maps)} heads were found in this {type(model).__name__}, and each layer has "
            f"n_head = {n_head}. A head is found by a step of PyTorch that gives its weights, "
            "(B, T, T) or (B, n_head, T, T): torch.softmax, or your own exp and sum. The steps "
            "inside nn.MultiheadAttention cannot be seen, and neither can weights that you never "
            "compute, because you divide by the sum after `@ v`. Write weights = "
            "torch.softmax(scores, dim=-1), and weights @ v."
        )
    weights = torch.stack(seen.maps, dim=1).unflatten(1, (-1, n_head)).movedim(1, 0)
    if absent := [place for place in put if place not in seen.placed]:
        raise ValueError(f"There is no head {absent[0]} in (layer, head), both counted from 0.")
    return logits, weights


class _Opened(TorchFunctionMode):
    """Keeps the map (B, T, T) of each head, in the order of the run."""

    def __init__(self, B: int, T: int, put: dict[tuple[int, int], Tensor], n_head: int) -> None:
        super().__init__()
        self.B, self.T, self.put, self.n_head = B, T, put, n_head
        self.maps: list[Tensor] = []
        self.placed: list[tuple[int, int]] = []

    def __torch_function__(self, func, types, args=(), kwargs=None) -> Any:
        kwargs = kwargs or {}
        if func is not F.scaled_dot_product_attention:
            return self._looked_at(func(*args, **kwargs))
        names = dict(zip(("query", "key", "value"), args, strict=False)) | kwargs
        value = names.pop("value")
        one_hot = torch.eye(value.shape[-2]).to(value).expand(*value.shape[:-1], -1)
        weights = func(names.pop("query"), names.pop("key"), one_hot, *args[3:], **names)
        shared = weights.shape[-3] // value.shape[-3]  # heads that share values
        return self._looked_at(weights) @ value.repeat_interleave(shared, dim=-3)

    def _looked_at(self, out: Any) -> Any:
        if type(out) is not Tensor or not out.is_floating_point() or out.dim() not in (3, 4):
            return out
        own = out.clone() if list(out.shape).count(self.T) == 2 else out
        z = self._by_head(own)
        if z is None or any(torch.allclose(z[:, 0], old, 0, 1e-6) for old in self.maps):
            return out
        for head in range(z.shape[1]):
            place = divmod(len(self.maps), self.n_head)
            if place in self.put:
                z[:, head] = self.put[place].to(z)
            self.placed.append(place)
            self.maps.append(z[:, head])
        return own

    def _by_head(self, own: Tensor) -> Tensor | None:
        """A view (B, heads, T, T) of weights; None for what has none."""
        square = [axis for axis, size in enumerate(own.shape) if size == self.T]
        if len(square) != 2:
            return None
        for axes in (square, square[::-1]):
            z = own.movedim(axes, (-2, -1))
            sums = (z.sum(dim=-1) - 1).abs().max()
            if sums < 1e-4 and z.min() >= 0 and not z.triu(1).any():
                if z.dim() == 4 and z.shape[1] == self.B != z.shape[0]:
                    z = z.transpose(0, 1)
                return z if z.dim() == 4 else z.unflatten(0, (self.B, -1))
        return None
