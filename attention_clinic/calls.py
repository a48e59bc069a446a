"""How a module and the parts of it are called, and with which arguments."""

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attention_base.masks import causal_mask

CACHE_WORDS = ("cache", "past", "kept")
CONTEXT_NAMES = ("context", "memory", "encoder_hidden_states", "key_value_states", "kv", "xa", "y")


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

    @property
    def ways_to_ask(self) -> list[dict[str, Any]]:
        """The arguments by which this module can be asked for its weights, the best first."""
        of_each_head = {"need_weights": True, "average_attn_weights": False}
        names = parameters_of(self.module)
        known = (of_each_head, {"need_weights": True}, {"return_weights": True})
        return [
            arguments
            for arguments in known
            if names.keys() >= arguments.keys() and not self.kwargs.keys() & arguments.keys()
        ]

    def run_with_weights(self) -> tuple[Tensor, Tensor | None]:
        """Call the module so that it returns its weights, if there is a known way to ask."""
        for arguments in self.ways_to_ask:
            with contextlib.suppress(Exception):  # it may refuse, as a fused module does
                return self.run(**arguments)
        return self.run()

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
    if not result:
        return None, None
    weights = result[1] if len(result) > 1 and isinstance(result[1], Tensor) else None
    return result[0], weights


def parameters_of(module: nn.Module) -> Mapping[str, inspect.Parameter]:
    """What a module may be called with, by name."""
    if not inspect.ismethod(module.forward):
        return inspect.signature(module.forward).parameters
    _, *others = _parameters_of(module.forward.__func__).items()
    return dict(others)


@lru_cache(maxsize=64)  # it is asked before each call
def _parameters_of(method: Callable) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(method).parameters


def self_attention_call(module: nn.Module, x: Tensor, causal: bool) -> Call:
    """How to call a module for self-attention over x; one that asks for a context gets x again."""
    if isinstance(module, nn.MultiheadAttention):  # it has no mask of its own; True = may not
        x = x if module.batch_first else x.transpose(0, 1)
        mask = ~causal_mask(x.shape[1 if module.batch_first else 0]).to(x.device)
        return Call(module, (x, x, x), {"attn_mask": mask if causal else None})
    takes_mask = "mask" in parameters_of(module)
    kwargs: dict[str, Any] = {"mask": None} if takes_mask and not causal else {}
    context = context_name(module)
    return Call(module, (x,), kwargs | ({context: x} if context else {}))


def cache_names(module: Any) -> list[str]:
    """The arguments of a module that seem to be for keys and values of earlier tokens."""
    names = parameters_of(module) if isinstance(module, nn.Module) else ()
    return [name for name in names if any(word in name for word in CACHE_WORDS)]


def may_take_context(module: nn.Module) -> bool:
    """Tell whether a module takes a context, required or not."""
    return any(name in CONTEXT_NAMES for name in parameters_of(module))


def context_name(module: nn.Module) -> str | None:
    """The name of a second argument that a module has to be given: the context, if any."""
    required = [
        name
        for name, one in parameters_of(module).items()
        if one.default is one.empty and one.kind is not one.VAR_POSITIONAL
    ]
    return next((name for name in required[1:] if name in CONTEXT_NAMES), None)


@contextlib.contextmanager
def evaluation_mode(module: Any) -> Iterator[None]:
    """Set a module to evaluation, and afterwards every part of it to what it was before."""
    with mode_of_parts(module, lambda part: False):
        yield


@contextlib.contextmanager
def mode_of_parts(module: Any, training: Callable[[nn.Module], bool]) -> Iterator[None]:
    """Set each part of a module to training or not, and afterwards to what it was before."""
    parts = list(module.modules()) if isinstance(module, nn.Module) else []
    before = [part.training for part in parts]
    fast_path = torch.backends.mha.get_fastpath_enabled()  # it would not call a block's parts
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        for part in parts:
            part.training = training(part)
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)
        for part, was in zip(parts, before, strict=True):
            part.training = was


@contextlib.contextmanager
def training_mode(module: nn.Module) -> Iterator[None]:
    """Set a module to training but drop nothing; afterwards modes and buffers are as before."""
    buffers = [
        (part, name, z, z.clone())
        for part in module.modules()
        for name, z in part.named_buffers(recurse=False)
    ]
    in_training = mode_of_parts(module, lambda part: not isinstance(part, nn.MultiheadAttention))
    try:
        with in_training, _NothingDropped():  # it would not see the dropout of PyTorch's attention
            yield
    finally:
        for part, name, z, before in buffers:
            if not torch.equal(z, before):
                z.copy_(before)
            setattr(part, name, z)


class _NothingDropped(TorchFunctionMode):
    """Lets every dropout keep all numbers, also one that is no module."""

    def __torch_function__(
        self, function: Callable, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        name, kwargs = getattr(function, "__name__", ""), kwargs or {}
        if "dropout" in name:
            return (*args, *kwargs.values())[0]
        if name == "scaled_dot_product_attention":  # (q, k, v, mask, dropout_p, is_causal)
            args = (*args[:4], *(0.0 for _ in args[4:5]), *args[5:])
            kwargs = {key: 0.0 if key == "dropout_p" else one for key, one in kwargs.items()}
        return function(*args, **kwargs)


def part_of(module: nn.Module, name: str) -> nn.Module:
    """A part of a module by its name, "" for the module itself.

    ``get_submodule`` refuses those that stand in a Python list (`lists`).
    """
    return dict(module.named_modules(remove_duplicate=False))[name]


def calls_of(whole: Call, names: Iterable[str]) -> dict[str, Call | None]:
    """How some parts of a module are called, by name; None for one that is not called."""
    calls: dict[str, Call | None] = dict.fromkeys(names)
    hooks = []
    for name in calls:

        def remember(part: nn.Module, args: tuple, kwargs: dict, name: str = name) -> None:
            calls[name] = calls[name] or Call(part, args, kwargs).copied()

        part = part_of(whole.module, name)
        hooks.append(part.register_forward_pre_hook(remember, with_kwargs=True))
    try:
        whole.run()
    finally:
        for hook in hooks:
            hook.remove()
    return calls
