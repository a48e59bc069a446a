"""How a module and the parts of it are called, and with which arguments."""

import contextlib
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, update_wrapper
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attention_base.masks import causal_mask
from attention_base.same import ATOL, same, same_but_for_rounding
from attention_clinic.names import HEAD_SIZE_NAMES
from attention_clinic.watch import limited

CACHE_WORDS = ("cache", "past", "kept")
CONTEXT_NAMES = ("context", "memory", "encoder_hidden_states", "key_value_states", "kv", "xa", "y")
CONTEXT_NAMES += ("encoder_out", "enc_out", "encoder_output", "encoder_outputs", "cond")
MASK_NAMES = ("mask", "attn_mask", "attention_mask", "src_mask", "causal_mask")
PYTORCHS = (
    nn.MultiheadAttention,
    nn.TransformerEncoderLayer,
    nn.TransformerEncoder,
    nn.TransformerDecoderLayer,
    nn.TransformerDecoder,
)
NEUTRAL_NAMES = ("residual", "alibi", "position_bias", "position_embeddings")
INPUTS = ({"query", "key", "value"}, {"q", "k", "v"}, {"query", "key"}, {"q", "k"})


@dataclass(frozen=True)
class Mask:
    """How a module wants to be told which tokens may be attended to, by one of its arguments."""

    name: str
    told: str  # in Python
    # From (T, T), True where a query may attend to a key, and the number of sequences.
    made: Callable[[Tensor, int], Tensor]


_FORMS: list[tuple[str, Callable[[Tensor], Tensor]]] = [
    ("causal_mask(T)", lambda may: may),
    ("~causal_mask(T)", lambda may: ~may),
    ("causal_mask(T).float()", lambda may: may.float()),
    ("-inf where not causal_mask(T), else 0", lambda may: may.float().log()),
]
_AXES: list[tuple[str, Callable[[Tensor, int], Tensor]]] = [
    ("", lambda z, B: z),
    (" as (B, 1, T, T)", lambda z, B: z.expand(B, 1, -1, -1)),
    (" as (B, T, T)", lambda z, B: z.expand(B, -1, -1)),
]


@dataclass(frozen=True)
class Call:
    """A module or a function, and the arguments that it is called with."""

    module: nn.Module | Callable
    args: tuple
    kwargs: dict[str, Any]
    time_first: bool = False  # whether its input is (T, B, C)

    @property
    def input(self) -> Tensor | None:
        """The first argument that is a tensor."""
        return next((value for value in self._arguments() if isinstance(value, Tensor)), None)

    def run(self, **more: Any) -> tuple[Tensor, Tensor | None]:
        """Call the module, with some arguments more: (out, weights or None)."""
        call = self.copied()
        with limited():
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
        return Call(self.module, args, kwargs, self.time_first)


def out_and_weights(result: Any) -> tuple[Tensor, Tensor | None]:
    """(out, weights or None), from what an attention returned: out, or a tuple (out, weights)."""
    if not isinstance(result, tuple | list):
        return result, None
    if not result:
        return result, None
    out, *others = result
    weights = next((z for z in others if isinstance(z, Tensor)), None)
    if weights is not None and isinstance(out, Tensor) and weights.shape[:1] == (1,) < out.shape:
        weights = None  # of all sequences alike, as a bias of positions
    return out, weights


def parameters_of(module: nn.Module | Callable) -> Mapping[str, inspect.Parameter]:
    """What a module may be called with, by name; nothing for a function."""
    if not isinstance(module, nn.Module):
        return {}
    forward = inspect.unwrap(module.forward)  # `forward_seen` has put one around it
    if not inspect.ismethod(forward):
        return inspect.signature(forward).parameters
    _, *others = _parameters_of(forward.__func__).items()
    return dict(others)


@lru_cache(maxsize=64)  # it is asked before each call
def _parameters_of(method: Callable) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(method).parameters


def self_attention_call(
    module: nn.Module | Callable,
    x: Tensor,
    causal: bool,
    mask: Mask | None = None,
    time_first: bool | None = None,
) -> Call:
    """How to call a module for self-attention over x (B, T, C).

    One that asks for a context gets x again, and one that asks for queries, keys and values gets x
    for each. Time first means (T, B, C); None: as PyTorch's own modules say.
    """
    (B, T), time_first = x.shape[:2], reads_time_first(module) if time_first is None else time_first
    x = x.transpose(0, 1) if time_first else x
    if isinstance(module, nn.MultiheadAttention):  # it has no mask of its own; True = may not
        may_not = ~causal_mask(T).to(x.device)
        return Call(module, (x, x, x), {"attn_mask": may_not if causal else None}, time_first)
    names = parameters_of(module)
    kwargs: dict[str, Any] = {
        name: None
        for name in MASK_NAMES
        if name in names and (not causal or names[name].default is inspect.Parameter.empty)
    }
    kwargs |= neutral(module, x)
    if mask:
        may = causal_mask(T).to(x.device) | (not causal)
        kwargs[mask.name] = mask.made(may, B)
    if of_roles := inputs_of_roles(module):
        return Call(module, (x,) * len(of_roles), kwargs, time_first)
    context = context_name(module)
    return Call(module, (x,), kwargs | ({context: x} if context else {}), time_first)


def reads_time_first(module: Any) -> bool:
    """Whether a module is PyTorch's own and was made to read (T, B, C)."""
    parts = module.modules() if isinstance(module, PYTORCHS) else ()
    own = next((part for part in parts if isinstance(part, nn.MultiheadAttention)), None)
    return own is not None and not own.batch_first


def neutral(module: nn.Module, x: Tensor) -> dict[str, Any]:
    """What a module wants besides x and masks, so that it changes nothing; by name."""
    found: dict[str, Any] = {}
    for name, one in parameters_of(module).items():
        told = str(one).lower()
        optional = any(word in told for word in ("| none", "optional", "=none"))
        if name == "position_embeddings" and ("tuple" in told or not optional):
            turn = x.new_ones(1, x.shape[1], _rotated_size(module, x.shape[2]))
            found[name] = turn, 0 * turn  # cos and sin
        elif name in NEUTRAL_NAMES and one.default is one.empty:
            zeros = torch.zeros_like(x) if name == "residual" else x.new_zeros(1, 1, x.shape[1])
            found[name] = None if optional else zeros
    return found


def _rotated_size(module: nn.Module, C: int) -> int:
    """How many channels of a head are rotated, as far as the module knows it."""
    own = [one for part in module.modules() for one in vars(part).items() if type(one[1]) is int]
    rotated = [size for name, size in own if "rope" in name or "rotary" in name]
    return [*rotated, *(size for name, size in own if name in HEAD_SIZE_NAMES), C][0]


def inputs_of_roles(module: nn.Module) -> list[str]:
    """The names of queries, keys and perhaps values, where a module has to be given them, or []."""
    if isinstance(module, nn.MultiheadAttention):  # everybody knows how it is called
        return []
    names = required_names(module)
    singular = [name.lower().replace("queries", "query").removesuffix("s") for name in names]
    return next((names[:n] for n in (3, 2) if {*singular[:n]} in INPUTS), [])


def mask_wanted(
    module: nn.Module, x: Tensor, causal: bool, time_first: bool, *, has_none: bool = False
) -> Mask | None:
    """The mask that a module has to be given, so that no token attends to a later one.

    None where it needs no mask, or where none of the usual forms changes much; and where, without
    one, it tells places apart: then it may have a mask of its own, which another one would hide,
    unless it is known that it `has_none`.
    """
    names = [name for name in MASK_NAMES if name in parameters_of(module)]
    own = isinstance(module, nn.MultiheadAttention)  # called with one anyway
    T = x.shape[1]
    if own or not names or T < 2:
        return None
    other = x.clone()
    other[:, T // 2 :] += torch.linspace(-1, 1, x.shape[-1]).to(x)

    def out_of(z: Tensor, causal: bool, mask: Mask | None = None) -> Tensor:
        out, _ = self_attention_call(module, z, causal, mask, time_first).run()
        return out.transpose(0, 1) if time_first else out

    def tells_places_apart() -> bool:
        """Whether, without a mask, other outputs come out where tokens stand in another order."""
        try:
            a, b = (out_of(z, True) for z in (x, x.flip(1)))
        except Exception:  # it takes no call without a mask
            return False
        return not same_but_for_rounding(b.flip(1), a, a.dtype)

    def leak(mask: Mask | None) -> float:
        """How much later tokens change earlier outputs; inf where it takes no mask of this form."""
        try:
            a, b = (out_of(z, causal, mask) for z in (x, other))
        except Exception:
            return math.inf
        ok = isinstance(a, Tensor) and a.shape[:2] == x.shape[:2] and bool(a.isfinite().all())
        ok = ok and not same(a, b, ATOL)
        return (a - b)[:, : T // 2].abs().max().item() * causal if ok else math.inf

    without = leak(None)
    if without <= ATOL or (causal and not has_none and tells_places_apart()):
        return None
    masks = (
        Mask(name, told + axes, lambda may, B, form=form, place=place: place(form(may), B))
        for name in names
        for told, form in _FORMS
        for axes, place in _AXES
    )
    best, least = None, 0.9 * without  # there may be a leak beside the mask
    for mask in masks:
        if least > ATOL and (size := leak(mask)) < least:
            best, least = mask, size
    return best


def cache_names(module: Any) -> list[str]:
    """The arguments of a module that seem to be for earlier tokens, or for padding."""
    words = CACHE_WORDS if isinstance(module, PYTORCHS) else (*CACHE_WORDS, "padding")
    return [name for name in parameters_of(module) if any(word in name for word in words)]


def may_take_context(module: nn.Module) -> bool:
    """Tell whether a module takes a context, required or not."""
    return any(name in CONTEXT_NAMES for name in parameters_of(module))


def context_name(module: nn.Module) -> str | None:
    """The name of a second argument that a module has to be given: the context, if any."""
    return next((name for name in required_names(module)[1:] if name in CONTEXT_NAMES), None)


def required_names(module: nn.Module) -> list[str]:
    """The arguments that a module has to be given, but for masks, which may be None."""
    return [
        name
        for name, one in parameters_of(module).items()
        if one.default is one.empty
        and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        and name not in MASK_NAMES
    ]


@contextlib.contextmanager
def evaluation_mode(
    module: Any, training: Callable[[nn.Module], bool] = lambda part: False
) -> Iterator[None]:
    """Set each part of a module to evaluation, or as `training` tells, and back to what it was."""
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
    in_training = evaluation_mode(module, lambda one: not isinstance(one, nn.MultiheadAttention))
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


@contextlib.contextmanager
def other_numbers(pairs: Iterable[tuple[nn.Parameter, Tensor]]) -> Iterator[None]:
    """Let each of these parameters hold other numbers, for a while."""
    pairs = list(pairs)
    before = [own.data for own, _ in pairs]
    try:
        for own, values in pairs:
            own.data = values.to(own.data)
        yield
    finally:
        for (own, _), data in zip(pairs, before, strict=True):
            own.data = data


class Watching(TorchFunctionMode):
    """Hands each function of PyTorch that runs, its arguments and its result to another one."""

    def __init__(self, note: Callable[[Callable, tuple, Any], None]) -> None:
        super().__init__()
        self.note = note

    def __torch_function__(
        self, function: Callable, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        result = function(*args, **(kwargs or {}))
        self.note(function, args, result)
        return result


@contextlib.contextmanager
def forward_seen(module: Any) -> Iterator[None]:
    """Let a part that is called by its forward, not by itself, run its hooks, too, for a while."""
    parts = [*module.modules()] if isinstance(module, nn.Module) else []
    # Compiled modules hand on what is set.
    parts = [one for one in parts if type(one).__setattr__ is nn.Module.__setattr__]
    before = [vars(one).get("forward") for one in parts]
    running: set[int] = set()
    hooks = []
    for part in parts:

        def forward(
            *args: Any, part: nn.Module = part, own: Any = part.forward, **more: Any
        ) -> Any:
            return own(*args, **more) if id(part) in running else part(*args, **more)

        hooks += [
            part.register_forward_pre_hook(lambda one, _: running.add(id(one)), prepend=True),
            part.register_forward_hook(
                lambda one, *_: running.discard(id(one)), prepend=True, always_call=True
            ),
        ]
        part.forward = update_wrapper(forward, part.forward)
    try:
        yield
    finally:
        for part, own in zip(parts, before, strict=True):
            del part.forward
            if own is not None:
                part.forward = own
        for hook in hooks:
            hook.remove()


def part_of(module: nn.Module, name: str) -> nn.Module:
    """A part of a module by its name, "" for the module itself.

    ``get_submodule`` refuses those that stand in a Python list (`lists`).
    """
    return dict(module.named_modules(remove_duplicate=False))[name]


@dataclass
class PartCall:
    """A call of a part of a module, by its name in it, and what it returned, if a tensor."""

    name: str
    call: Call
    out: Tensor | None = None


def recorded(run: Callable[[], Any], parts: Mapping[str, nn.Module]) -> tuple[Any, list[PartCall]]:
    """What a function returns, and the calls of parts meanwhile, in the order they ended in."""
    running: list[PartCall] = []
    ended: list[PartCall] = []
    hooks = []
    for name, part in parts.items():

        def begin(part: nn.Module, args: tuple, kwargs: dict, name: str = name) -> None:
            running.append(PartCall(name, Call(part, args, kwargs).copied()))

        def end(part: nn.Module, args: tuple, result: Any) -> None:
            out, _ = out_and_weights(result)
            while running[-1].call.module is not part:  # one that raised an error
                running.pop()
            ended.append(running.pop())
            ended[-1].out = out.detach().clone() if isinstance(out, Tensor) else None

        hooks += [part.register_forward_pre_hook(begin, with_kwargs=True)]
        hooks += [part.register_forward_hook(end)]
    try:
        return run(), ended
    finally:
        for hook in hooks:
            hook.remove()


def calls_of(whole: Call, names: Iterable[str]) -> dict[str, Call | None]:
    """How some parts of a module are called, by name; None for one that is not called."""
    parts = {name: part_of(whole.module, name) for name in names}
    calls = {one.name: one.call for one in reversed(recorded(whole.run, parts)[1])}
    return {name: calls.get(name) for name in parts}
