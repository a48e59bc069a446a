"""Finds queries, keys, values and weights in a module, and the parts of a block.

An attention is an `nn.MultiheadAttention`, or any module with Linear layers `query`, `key` and
`value`; it may be the module itself or stand deeper in it, as in a block. Its output projection may
have any name. A block is found by the names of its four parts.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import causal_mask
from helpers.clinic.probes import same_numbers

ROLES = ("query", "key", "value")
BLOCK_PARTS = ("attention", "feed_forward", "norm_1", "norm_2")
NOT_BATCH_FIRST = (
    "has batch_first=False and reads (T, B, C): it takes sequences for tokens. Make it with "
    "batch_first=True"
)

# ---------------------------------------------------------------- how a module is called


@dataclass(frozen=True)
class Call:
    """A module and the arguments that it is called with."""

    module: nn.Module
    args: tuple
    kwargs: dict[str, Any]

    @property
    def input(self) -> Tensor | None:
        """The first argument that is a tensor."""
        return next((value for value in self._arguments() if isinstance(value, Tensor)), None)

    def run(self, **more: Any) -> tuple[Tensor, Tensor | None]:
        """Call the module, with some arguments more: (out, weights or None)."""
        call = self.copied()
        return out_and_weights(self.module(*call.args, **call.kwargs, **more))

    def run_with_weights(self) -> tuple[Tensor, Tensor | None]:
        """Call the module so that it returns its weights, if there is a known way to ask."""
        of_each_head = {"need_weights": True, "average_attn_weights": False}
        names = inspect.signature(self.module.forward).parameters
        for arguments in (of_each_head, {"need_weights": True}, {"return_weights": True}):
            if names.keys() >= arguments.keys() and not self.kwargs.keys() & arguments.keys():
                with contextlib.suppress(Exception):  # it may refuse, as a fused module does
                    return self.run(**arguments)
        return self.run()

    def run_with_parameters(self, parameters: dict[str, Tensor]) -> Tensor:
        """The output of the module with other parameters; its own stay what they are."""
        call = self.copied()
        # tie_weights=True would not restore the parameters of a part that has two names.
        result = torch.func.functional_call(
            call.module, parameters, call.args, call.kwargs, tie_weights=False
        )
        return out_and_weights(result)[0]

    def copied(self) -> "Call":
        """The same call with copies of its tensors, which the module may change in place."""
        return self._replacing({id(z): z.clone() for z in self._arguments() if torch.is_tensor(z)})

    def with_input(self, z: Tensor) -> "Call":
        """The same call with z in the place of its input."""
        return self._replacing({id(self.input): z})

    def _arguments(self) -> tuple:
        return (*self.args, *self.kwargs.values())

    def _replacing(self, others: dict[int, Tensor]) -> "Call":
        args = tuple(others.get(id(value), value) for value in self.args)
        kwargs = {key: others.get(id(value), value) for key, value in self.kwargs.items()}
        return Call(self.module, args, kwargs)


def out_and_weights(result: Any) -> tuple[Tensor, Tensor | None]:
    """(out, weights or None), from what an attention returned: out, or a tuple (out, weights)."""
    if not isinstance(result, tuple | list):
        return result, None
    weights = result[1] if len(result) > 1 and isinstance(result[1], Tensor) else None
    return result[0], weights


def self_attention_call(module: nn.Module, x: Tensor, causal: bool) -> Call:
    """How to call a module for self-attention over x."""
    if isinstance(module, nn.MultiheadAttention):  # it has no mask of its own; True = may not
        x = x if module.batch_first else x.transpose(0, 1)
        mask = ~causal_mask(x.shape[1 if module.batch_first else 0]).to(x.device)
        return Call(module, (x, x, x), {"attn_mask": mask if causal else None})
    takes_mask = "mask" in inspect.signature(module.forward).parameters
    return Call(module, (x,), {"mask": None} if takes_mask and not causal else {})


@contextlib.contextmanager
def evaluation_mode(module: Any) -> Iterator[None]:
    """Set a module to evaluation, and afterwards every part of it to what it was before."""
    parts = list(module.modules()) if isinstance(module, nn.Module) else []
    before = [part.training for part in parts]
    try:
        for part in parts:
            part.training = False
        yield
    finally:
        for part, training in zip(parts, before, strict=True):
            part.training = training


# ---------------------------------------------------------------- which attentions and blocks


def attention_calls(whole: Call) -> dict[str, Call | None]:
    """How each attention in a module is called, by its name ("" for the module itself).

    None for one that the module has but does not call.
    """
    names: list[str] = []
    for name, part in whole.module.named_modules():
        if _is_attention(part) and not any(name.startswith(f"{outer}.") for outer in names):
            names.append(name)
    return _calls_of(whole, names)


def block_calls(whole: Call) -> dict[str, Call | None]:
    """How each block with the four `BLOCK_PARTS` is called, as in `attention_calls`."""
    named = whole.module.named_modules()
    return _calls_of(whole, [name for name, part in named if _is_block(part)])


def has_unknown_parts(module: nn.Module, attentions: Iterable[str], blocks: Iterable[str]) -> bool:
    """Tell whether beside an attention there is more than a projection, and no known block."""
    alone = [name for name in attentions if not _within(name, blocks)]
    others = [
        part
        for name, part in module.named_modules()
        if list(part.parameters(recurse=False)) and not _within(name, [*alone, *blocks])
    ]
    only_projection = len(others) <= 1 and all(isinstance(part, nn.Linear) for part in others)
    return bool(alone) and not only_projection


def _is_attention(module: nn.Module) -> bool:
    has_roles = all(isinstance(getattr(module, role, None), nn.Linear) for role in ROLES)
    return has_roles or isinstance(module, nn.MultiheadAttention)


def _is_block(module: nn.Module) -> bool:
    return all(isinstance(getattr(module, name, None), nn.Module) for name in BLOCK_PARTS)


def _within(name: str, outer: Iterable[str]) -> bool:
    """Tell whether a part is one of the outer ones or stands in one ("" is the whole module)."""
    return any(not one or f"{name}.".startswith(f"{one}.") for one in outer)


def _calls_of(whole: Call, names: Iterable[str]) -> dict[str, Call | None]:
    """How some parts of a module are called, by name; None for one that is not called."""
    calls: dict[str, Call | None] = dict.fromkeys(names)
    hooks = []
    for name in calls:

        def remember(part: nn.Module, args: tuple, kwargs: dict, name: str = name) -> None:
            calls[name] = calls[name] or Call(part, args, kwargs).copied()

        part = whole.module.get_submodule(name)
        hooks.append(part.register_forward_pre_hook(remember, with_kwargs=True))
    try:
        whole.run()
    finally:
        for hook in hooks:
            hook.remove()
    return calls


# ---------------------------------------------------------------- inside an attention


@dataclass(frozen=True)
class AttentionInternals:
    """What an attention computed from one input.

    Attributes
    ----------
    x
        (B, T, C), the input.
    n_head
        Number of heads.
    q, k, v
        (B, T, n_head * head_size).
    out
        (B, T, n_head * head_size), the outputs of the heads side by side; where these cannot be
        seen, the output of the module.
    project
        What lies between the outputs of the heads and `out`: nothing, or the output projection.
    weights
        (B, n_head, T, T), or (B, T, T), or None.
    zero_projection
        Whether all weights of the output projection are 0, so that its output depends on nothing.
    recompute
        Computes the output of the whole module anew, with a graph for backpropagation:
        (out, {"query": weight, "key": …, "value": …}).
    """

    x: Tensor
    n_head: int
    q: Tensor
    k: Tensor
    v: Tensor
    out: Tensor
    project: Callable[[Tensor], Tensor]
    weights: Tensor | None
    zero_projection: bool
    recompute: Callable[[], tuple[Tensor, dict[str, Tensor]]]


def inspect_attention(whole: Call, name: str, call: Call, n_head: int) -> AttentionInternals | str:
    """Find out what an attention computed from its input, or say why that cannot be known.

    Parameters
    ----------
    whole
        The module under examination, and how it is called.
    name, call
        The name of an attention in it ("" for itself), and how that one is called.
    n_head
        Its number of heads, unless it has an `n_head` of its own.
    """
    prefix = f"{name}." if name else ""
    if isinstance(call.module, nn.MultiheadAttention):
        return _inspect_pytorch_attention(whole, prefix, call)
    return _inspect_linear_layers(whole, prefix, call, n_head)


def _inspect_linear_layers(
    whole: Call, prefix: str, call: Call, n_head: int
) -> AttentionInternals | str:
    module = call.module
    x = call.args[0] if call.args else call.kwargs.get("x")
    if not isinstance(x, Tensor) or x.dim() != 3 or call.kwargs.get("context") is not None:
        return "it does not read one input (B, T, C)"
    n_head = getattr(module, "n_head", n_head)
    q, k, v = (getattr(module, role)(x) for role in ROLES)
    if q.shape[-1] != k.shape[-1]:
        return f"its queries have {q.shape[-1]} channels, its keys {k.shape[-1]}"
    if q.shape[-1] % n_head or v.shape[-1] % n_head:
        return f"{q.shape[-1]} channels cannot be shared out among {n_head} heads"
    weights, projection, before = _find_projection(call)

    def recompute() -> tuple[Tensor, dict[str, Tensor]]:
        leaves = {role: _leaf(getattr(module, role).weight) for role in ROLES}
        parameters = {f"{prefix}{role}.weight": leaf for role, leaf in leaves.items()}
        return whole.run_with_parameters(parameters), leaves

    return AttentionInternals(
        x=x,
        n_head=n_head,
        q=q,
        k=k,
        v=v,
        out=before,
        project=lambda z: z,
        weights=weights,
        zero_projection=projection is not None and not projection.weight.any(),
        recompute=recompute,
    )


def _find_projection(call: Call) -> tuple[Tensor | None, nn.Linear | None, Tensor]:
    """The weights, the Linear layer that computed out, and its input; or None, and out itself."""
    linear_calls: list[tuple[nn.Linear, Tensor, Tensor]] = []
    roles = [getattr(call.module, role) for role in ROLES]
    hooks = [
        part.register_forward_hook(lambda *called: linear_calls.append(called))
        for part in call.module.modules()
        if isinstance(part, nn.Linear) and part not in roles
    ]
    try:
        out, weights = call.run_with_weights()
    finally:
        for hook in hooks:
            hook.remove()
    for layer, (before, *_), after in reversed(linear_calls):
        if same_numbers(after, out, atol=0):
            return weights, layer, before
    return weights, None, out


def _inspect_pytorch_attention(whole: Call, prefix: str, call: Call) -> AttentionInternals | str:
    module = call.module
    names = list(inspect.signature(module.forward).parameters)
    given = dict(zip(names, call.args, strict=False)) | call.kwargs
    x = given["query"]
    if given["key"] is not x or given["value"] is not x:
        return "its queries and keys come from different inputs"
    if module.in_proj_weight is None or module.bias_k is not None or module.add_zero_attn:
        return "it has separate or additional keys"
    if x.dim() != 3:
        return "it reads a single sequence without a batch"
    if prefix and not module.batch_first and x.shape == whole.input.shape and len(x) != x.shape[1]:
        return f"it {NOT_BATCH_FIRST}"
    known = (*ROLES, "need_weights", "average_attn_weights")
    call = Call(module, (x, x, x), {key: given[key] for key in given if key not in known})

    def batch_first(z: Tensor) -> Tensor:
        return z if module.batch_first else z.transpose(0, 1)

    qkv = F.linear(x, module.in_proj_weight, module.in_proj_bias)
    q, k, v = batch_first(qkv).chunk(3, dim=-1)
    out, weights = call.run_with_weights()

    def recompute() -> tuple[Tensor, dict[str, Tensor]]:
        thirds = module.in_proj_weight.chunk(3)
        leaves = {role: _leaf(third) for role, third in zip(ROLES, thirds, strict=True)}
        parameters = {f"{prefix}in_proj_weight": torch.cat(list(leaves.values()))}
        return whole.run_with_parameters(parameters), leaves

    return AttentionInternals(
        x=batch_first(x),
        n_head=module.num_heads,
        q=q,
        k=k,
        v=v,
        out=batch_first(out),
        project=module.out_proj,
        weights=weights,
        zero_projection=not module.out_proj.weight.any(),
        recompute=recompute,
    )


def _leaf(weight: Tensor) -> Tensor:
    return weight.detach().clone().requires_grad_()


# ---------------------------------------------------------------- inside a block


@dataclass(frozen=True)
class BlockInternals:
    """The input (B, T, C) and the output of a block, and its `BLOCK_PARTS` as functions."""

    x: Tensor
    out: Tensor
    parts: tuple[Callable[[Tensor], Tensor], ...]


def inspect_block(call: Call, causal: bool) -> BlockInternals | str:
    """Find the output of a block and its parts, or say why that cannot be done.

    At initialisation all norms are equal, and a projection of zeros hides what lies before it. So
    the block and its parts are run with random numbers in their place; its own are not changed.
    """
    block, x = call.module, call.input
    attention = _calls_of(call, ["attention"])["attention"]
    attention = attention or self_attention_call(block.attention, x, causal)
    if x is None or attention.input is None or attention.input.shape != x.shape:
        return "its attention does not read one input (B, T, C)"
    parameters = _random_parameters(block)

    def part(name: str) -> Callable[[Tensor], Tensor]:
        prefix = f"{name}."
        own = {
            key.removeprefix(prefix): value
            for key, value in parameters.items()
            if key.startswith(prefix)
        }
        how = attention if name == "attention" else Call(getattr(block, name), (x,), {})
        return lambda z: how.with_input(z).run_with_parameters(own)

    out = call.run_with_parameters(parameters)
    if not out.isfinite().all():
        return "there are outputs that are nan or inf"
    return BlockInternals(x, out, tuple(map(part, BLOCK_PARTS)))


def _random_parameters(block: nn.Module) -> dict[str, Tensor]:
    """Random numbers for the norms of a block, and for its weights that are all 0."""
    generator = torch.Generator().manual_seed(0)
    parameters = {}
    for name, own in block.named_parameters():
        if name.startswith(("norm_1.", "norm_2.")):
            parameters[name] = torch.rand(own.shape, generator=generator) * 1.5 + 0.5
        elif name.startswith(("attention.", "feed_forward.")) and own.dim() > 1 and not own.any():
            parameters[name] = torch.randn(own.shape, generator=generator) / own.shape[-1] ** 0.5
    return {name: value.to(block.get_parameter(name)) for name, value in parameters.items()}
