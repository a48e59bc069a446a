"""Looking into an attention module: queries, keys, values, weights and output for one input.

Found in `nn.MultiheadAttention`, and in any module with Linear layers `query`, `key` and `value`,
at the top or deeper down, as in a block. An output projection may have any name. A block with
parts of the usual names is taken apart.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import causal_mask
from helpers.clinic.bugs import wired

ROLES = ("query", "key", "value")
TIME_FIRST = (
    "has batch_first=False and reads (T, B, C): it takes sequences for tokens. Make it with "
    "batch_first=True"
)
PARTS = ("attention", "feed_forward", "norm_1", "norm_2")  # of a block


@dataclass(frozen=True)
class Call:
    """A module and what it was called with."""

    module: nn.Module
    args: tuple
    kwargs: dict[str, Any]

    @property
    def first(self) -> Tensor | None:
        """The first argument that is a tensor."""
        given = (*self.args, *self.kwargs.values())
        return next((value for value in given if isinstance(value, Tensor)), None)

    def __call__(self, **more: Any) -> tuple[Tensor, Tensor | None]:
        """Call it again, with some arguments more: (out, weights or None)."""
        again = self.copied()
        return as_pair(self.module(*again.args, **again.kwargs, **more))

    def copied(self) -> "Call":
        """The same call with tensors of its own, which a module may change in place."""
        given = (*self.args, *self.kwargs.values())
        return self._with({id(z): z.clone() for z in given if isinstance(z, Tensor)})

    def reading(self, z: Tensor) -> "Call":
        """The same call with z in the place of the first tensor."""
        return self._with({id(self.first): z})

    def _with(self, others: dict[int, Tensor]) -> "Call":
        args = tuple(others.get(id(value), value) for value in self.args)
        kwargs = {key: others.get(id(value), value) for key, value in self.kwargs.items()}
        return Call(self.module, args, kwargs)

    def with_weights(self) -> tuple[Tensor, Tensor | None]:
        """Call it so that it returns its weights, if there is a known way to ask for them."""
        each_head = {"need_weights": True, "average_attn_weights": False}
        names = inspect.signature(self.module.forward).parameters
        for ask in (each_head, {"need_weights": True}, {"return_weights": True}):
            if names.keys() >= ask.keys() and not self.kwargs.keys() & ask.keys():
                with contextlib.suppress(Exception):  # it may refuse, as a fused module does
                    return self(**ask)
        return self()


@dataclass(frozen=True)
class Inside:
    """What an attention module made of one input.

    Attributes
    ----------
    x
        (B, T, C), what it read.
    n_head
        Number of heads.
    q, k, v
        (B, T, n_head * head_size).
    out
        What the heads gave, side by side, (B, T, n_head * head_size); or what the module gave,
        where that cannot be seen.
    project
        What lies between the heads' answers and `out`: nothing, or the output projection.
    weights
        (B, n_head, T, T), or (B, T, T), or None.
    hidden
        Whether the projection is zero throughout, so that nothing comes out of the module.
    trace
        Computes the output of the whole module anew, so that a gradient can be sent back from it:
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
    hidden: bool
    trace: Callable[[], tuple[Tensor, dict[str, Tensor]]]


def as_pair(result: Any) -> tuple[Tensor, Tensor | None]:
    """(out, weights or None) of what an attention returns: out, or out with weights."""
    if not isinstance(result, tuple | list):
        return result, None
    weights = result[1] if len(result) > 1 and isinstance(result[1], Tensor) else None
    return result[0], weights


def called(module: nn.Module, x: Tensor, causal: bool) -> Call:
    """How a module is called for self-attention over x."""
    if isinstance(module, nn.MultiheadAttention):  # it has no mask of its own; True = may not
        x = x if module.batch_first else x.transpose(0, 1)
        mask = ~causal_mask(x.shape[1 if module.batch_first else 0]).to(x.device)
        return Call(module, (x, x, x), {"attn_mask": mask if causal else None})
    free = not causal and "mask" in inspect.signature(module.forward).parameters
    return Call(module, (x,), {"mask": None} if free else {})


@contextlib.contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Set a module to evaluation, and afterwards every part of it back to what it was."""
    parts = list(module.modules()) if isinstance(module, nn.Module) else []
    were = [part.training for part in parts]
    try:
        for part in parts:
            part.training = False
        yield
    finally:
        for part, was in zip(parts, were, strict=True):
            part.training = was


def attentions(call: Call) -> dict[str, Call | None]:
    """All attention modules in a module, by name ("" for itself), and how each was called.

    None for one that the module has but did not call.
    """
    names: list[str] = []
    for name, part in call.module.named_modules():
        if _is_attention(part) and not any(name.startswith(f"{outer}.") for outer in names):
            names.append(name)
    return _calls(call, names)


def blocks(call: Call) -> dict[str, Call | None]:
    """All blocks with the four `PARTS` in a module, in the form of `attentions`."""
    named = call.module.named_modules()
    return _calls(call, [name for name, part in named if _is_block(part)])


def has_more(module: nn.Module, attentions: Iterable[str], blocks: Iterable[str]) -> bool:
    """Tell whether an attention stands outside of the blocks, with more than a projection."""

    def within(name: str, outer: Iterable[str]) -> bool:
        return any(not one or f"{name}.".startswith(f"{one}.") for one in outer)

    lone = [name for name in attentions if not within(name, blocks)]
    rest = [
        part
        for name, part in module.named_modules()
        if any(True for _ in part.parameters(recurse=False)) and not within(name, [*lone, *blocks])
    ]
    return bool(lone) and (len(rest) > 1 or any(not isinstance(part, nn.Linear) for part in rest))


def take_apart(call: Call, causal: bool) -> tuple[Tensor, Callable[..., Tensor]] | str:
    """What a block gives, and `wired` with its input and its parts; or why that cannot be told.

    Fresh norms are all alike, and a projection that is zero throughout hides what lies behind it.
    So all this is computed with random numbers in their places; the block itself keeps its own.
    """
    block, x = call.module, call.first
    inner = _calls(call, ["attention"])["attention"] or called(block.attention, x, causal)
    read = inner.first
    if x is None or read is None or read.shape != x.shape:
        return "its attention does not read one input (B, T, C)"
    numbers = _telling_numbers(block)

    def part(name: str) -> Callable[[Tensor], Tensor]:
        mine = [key for key in numbers if key.startswith(f"{name}.")]
        own = {key.removeprefix(f"{name}."): numbers[key] for key in mine}
        calling = inner if name == "attention" else Call(getattr(block, name), (x,), {})
        return lambda z: _out_with(calling.reading(z), own)

    out = _out_with(call, numbers)
    if not out.isfinite().all():
        return "there are outputs that are nan or inf"
    return out, partial(wired, x, *map(part, PARTS))


def _telling_numbers(block: nn.Module) -> dict[str, Tensor]:
    """Random numbers for the norms of a block, and for the weights in it that are all 0."""
    generator = torch.Generator().manual_seed(0)
    numbers = {}
    for name, own in block.named_parameters():
        if name.startswith(("norm_1.", "norm_2.")):
            numbers[name] = torch.rand(own.shape, generator=generator) * 1.5 + 0.5
        elif name.startswith(("attention.", "feed_forward.")) and own.dim() > 1 and not own.any():
            numbers[name] = torch.randn(own.shape, generator=generator) / own.shape[-1] ** 0.5
    return {name: value.to(block.get_parameter(name)) for name, value in numbers.items()}


def _calls(call: Call, names: Iterable[str]) -> dict[str, Call | None]:
    """How some parts of a module are called, by name; None for one that is not."""
    found: dict[str, Call | None] = dict.fromkeys(names)
    hooks = []
    for name in found:

        def remember(part: nn.Module, args: tuple, kwargs: dict, name: str = name) -> None:
            found[name] = found[name] or Call(part, args, kwargs).copied()

        part = call.module.get_submodule(name)
        hooks.append(part.register_forward_pre_hook(remember, with_kwargs=True))
    try:
        call()
    finally:
        for hook in hooks:
            hook.remove()
    return found


def look_inside(whole: Call, where: str, call: Call, n_head: int) -> Inside | str:
    """Find out what an attention made of its input, or say why that cannot be told.

    Parameters
    ----------
    whole
        The module under examination, and how it is called.
    where, call
        The name of an attention in it ("" for itself), and how that one was called.
    n_head
        Its number of heads, unless it has an `n_head` of its own.
    """
    prefix = f"{where}." if where else ""
    if isinstance(call.module, nn.MultiheadAttention):
        return _inside_theirs(whole, prefix, call)
    return _inside_linear(whole, prefix, call, n_head)


def _is_attention(module: nn.Module) -> bool:
    has_roles = all(isinstance(getattr(module, role, None), nn.Linear) for role in ROLES)
    return has_roles or isinstance(module, nn.MultiheadAttention)


def _is_block(module: nn.Module) -> bool:
    return all(isinstance(getattr(module, name, None), nn.Module) for name in PARTS)


def _inside_linear(whole: Call, prefix: str, call: Call, n_head: int) -> Inside | str:
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
    weights, proj, before = _projection(call)

    def trace() -> tuple[Tensor, dict[str, Tensor]]:
        leaves = {role: _leaf(getattr(module, role).weight) for role in ROLES}
        swapped = {f"{prefix}{role}.weight": leaf for role, leaf in leaves.items()}
        return _out_with(whole, swapped), leaves

    hidden = proj is not None and not proj.weight.any()
    return Inside(x, n_head, q, k, v, before, lambda z: z, weights, hidden, trace)


def _projection(call: Call) -> tuple[Tensor | None, nn.Linear | None, Tensor]:
    """The weights, the Linear layer that made out, and what went into it; or None, and out."""
    seen: list[tuple[nn.Linear, Tensor, Tensor]] = []
    roles = [getattr(call.module, role) for role in ROLES]
    hooks = [
        part.register_forward_hook(lambda part, args, out: seen.append((part, args[0], out)))
        for part in call.module.modules()
        if isinstance(part, nn.Linear) and part not in roles
    ]
    try:
        out, weights = call.with_weights()
    finally:
        for hook in hooks:
            hook.remove()
    for part, before, after in reversed(seen):
        if after.shape == out.shape and torch.isclose(after, out, 0, 0, equal_nan=True).all():
            return weights, part, before
    return weights, None, out


def _inside_theirs(whole: Call, prefix: str, call: Call) -> Inside | str:
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
    if prefix and not module.batch_first and x.shape == whole.first.shape and len(x) != x.shape[1]:
        return f"it {TIME_FIRST}"
    kwargs = {name: value for name, value in given.items() if name not in ROLES}
    kwargs = {k: v for k, v in kwargs.items() if k not in ("need_weights", "average_attn_weights")}
    call = Call(module, (x, x, x), kwargs)
    order = (lambda z: z) if module.batch_first else (lambda z: z.transpose(0, 1))
    q, k, v = order(F.linear(x, module.in_proj_weight, module.in_proj_bias)).chunk(3, dim=-1)
    out, weights = call.with_weights()

    def trace() -> tuple[Tensor, dict[str, Tensor]]:
        rows = module.in_proj_weight.chunk(3)
        leaves = {role: _leaf(weight) for role, weight in zip(ROLES, rows, strict=True)}
        swapped = {f"{prefix}in_proj_weight": torch.cat(list(leaves.values()))}
        return _out_with(whole, swapped), leaves

    hidden = not module.out_proj.weight.any()
    return Inside(
        order(x), module.num_heads, q, k, v, order(out), module.out_proj, weights, hidden, trace
    )


def _out_with(whole: Call, weights: dict[str, Tensor]) -> Tensor:
    """What a module gives with other weights."""
    whole = whole.copied()
    # tie_weights=True would not put back the weights of a part that stands there under two names.
    result = torch.func.functional_call(
        whole.module, weights, whole.args, whole.kwargs, tie_weights=False
    )
    return as_pair(result)[0]


def _leaf(weight: Tensor) -> Tensor:
    return weight.detach().clone().requires_grad_()
