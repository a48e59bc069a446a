"""Finds the parts of a block that is written in one class, whose layers are called in one forward.

Its attention, feed-forward and norms are no modules of their own. Here they are put together again
from its layers, as functions, so that the block can be compared like any other.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_base.same import same
from attention_clinic.names import is_layer, is_norm
from attention_clinic.readings import LayerCall

Function = Callable[[Tensor], Tensor]
NOT_REBUILT = (
    "residual connections and norms were not checked, since attention, feed-forward and norms are "
    "no parts of their own"
)
PLAIN_NORMS: tuple[Function, ...] = (
    lambda z: F.layer_norm(z, z.shape[-1:]),
    lambda z: F.rms_norm(z, z.shape[-1:]),
)
ACTIVATIONS = (
    F.relu,
    F.gelu,
    lambda z: F.gelu(z, approximate="tanh"),
    F.silu,
    torch.tanh,
    torch.sigmoid,
    F.elu,
    F.leaky_relu,
    F.mish,
    lambda z: F.relu(z).square(),
)


@dataclass(frozen=True)
class InlineBlock:
    """The parts of a block that is written in one class."""

    layers: list  # those that make queries, keys and values
    projection: LayerCall  # the call of the output projection
    # As a function; None where its activation is not known.
    feed_forward: Function | None
    norms: tuple[str, str]  # their names in the module; "" for one that is written in its forward
    plain_norm: Function | None = None  # which is this one


def inline_block(
    module: nn.Module, recorded: list[LayerCall], used: list, x: Tensor
) -> InlineBlock | None:
    """Find the parts of a block beside the layers of its attention; None where it is no block.

    Recorded are the calls of all layers in it, in their order; used are the layers that make
    queries, keys and values; x is its input, (B, T, C).
    """
    C = x.shape[-1]
    last = max((i for i, one in enumerate(recorded) if _is_one_of(one.layer, used)), default=None)
    after = recorded[last + 1 :] if last is not None else []
    if not after or after[0].out.shape[-1] != C or after[0].z.dim() != 3:
        return None
    projection = after[0]
    kinds = (nn.ModuleDict, nn.ModuleList)
    containers = [one for one in module.children() if isinstance(one, kinds)]
    known = [*containers, *used, projection.layer]
    others = [part for one in (module, *containers) for part in one.children()]
    others = [one for one in others if list(one.parameters()) and not _is_one_of(one, known)]
    names = {id(part): name for name, part in module.named_modules()}
    norms = [names[id(part)] for part in others if is_norm(part)]
    rest = [part for part in others if not is_norm(part)]
    own, z = list(module.parameters(recurse=False)), recorded[0].z
    plain = next((f for f in PLAIN_NORMS if same(f(x), z, 1e-4) and not same(x, z, 1e-4)), None)
    if not norms and plain and all(one.dim() == 1 for one in own):
        norms = ["", ""]
    elif len(norms) != 2 or own:
        return None
    if len(rest) == 1 and sum(map(is_layer, rest[0].modules())) > 1 and not is_layer(rest[0]):
        feed_forward = rest[0]
        return InlineBlock(used, projection, lambda z: feed_forward(z.clone()), (*norms,), plain)
    read = [(one.layer, one.z) for one in recorded if _is_one_of(one.layer, rest)]
    if len(rest) not in {2, 3} or len(read) != len(rest) or not all(map(is_layer, rest)):
        return None
    feed_forward = feed_forward_of_layers(module, read)
    return InlineBlock(used, projection, feed_forward, (*norms,), plain)


def feed_forward_of_layers(
    module: nn.Module, read: list[tuple[Function, Tensor]], *more: Function
) -> Function | None:
    """Layers, each with what it read, as one function; None where its activation is not found."""
    without = [part for part in module.children() if not list(part.parameters())]
    for *hidden, (last, z) in itertools.permutations(read):
        for activation in (*without, *ACTIVATIONS, *more):
            made = partial(_hidden, activation, [layer for layer, _ in hidden])
            with contextlib.suppress(RuntimeError):  # the sizes do not fit
                if _makes(made, hidden[0][1], z):
                    return lambda z, last=last, made=made: last(made(z))
    return None


def _hidden(activation: Function, layers: list[Function], z: Tensor) -> Tensor:
    """What the last layer reads: the activation of another one, perhaps times a third one."""
    first, *gated = (layer(z) for layer in layers)
    return activation(first) * gated[0] if gated else activation(first)


def _is_one_of(part: object, parts: list) -> bool:
    return any(part is one for one in parts)


def _makes(function: Function, z: Tensor, out: Tensor) -> bool:
    made = function(z.clone())
    return isinstance(made, Tensor) and made.shape == out.shape and same(made, out, 1e-6)
