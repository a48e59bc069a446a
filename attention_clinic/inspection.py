"""Finds queries, keys, values and weights in a module.

An attention is an `nn.MultiheadAttention`, a module with layers of the usual names (`names`), or,
where there are no such names, the smallest part of a module that mixes tokens. Hooks see what its
layers compute. `readings` takes that as queries, keys and values; what lies between the heads and
the output is an `Ending`.
"""

import contextlib
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from attention_base.numbers import joined
from attention_base.same import ATOL, RTOL, close, same, same_but_for_rounding
from attention_clinic.bugs import (
    BY_NAME,
    Named,
    OutAndWeights,
    merge_heads,
    of_parts,
    split_heads,
    with_bugs,
)
from attention_clinic.calls import Call, Watching, calls_of, may_take_context, recorded
from attention_clinic.inline import InlineBlock, inline_block
from attention_clinic.latents import latent_readings
from attention_clinic.names import (
    ROLES,
    fused_name,
    is_layer,
    own_head_count,
    projection_name,
    query_and_fused_names,
    role_names,
    within,
)
from attention_clinic.readings import LayerCall, Reading, bias_beside, find_readings, times

NOT_BATCH_FIRST = (
    "has batch_first=False and reads (T, B, C): it takes sequences for tokens. Make it with "
    "batch_first=True"
)
ANOTHER_INPUT = of_parts("another input of its layers")
MORE_KEYS = of_parts("keys and values beside those of the tokens")
GATED = of_parts("gated attention (Qiu et al. 2025)")
MORE_BEHIND = of_parts("more behind the output projection")
RESIDUAL_INSIDE = ("x added to the output", "residual connection and norm inside of the attention")
PARALLEL = "parallel block (Wang and Komatsuzaki 2021)"
SCALE_OF_ONE = of_parts("no scale, by a setting of its own")
DIFFERENT_INPUTS = "queries, keys and values of different inputs"

# ---------------------------------------------------------------- what is found


@dataclass(frozen=True)
class Ending:
    """One way in which the outputs of the heads became a tensor that can be seen."""

    out: Tensor  # (B, T, n_head * head_size), or the output of the module
    # What lies between the merged outputs of the heads and `out`.
    project: Callable[[Tensor], Tensor] = field(default=lambda z: z)
    bugs: tuple[Named, ...] = ()  # as in `Reading`


@dataclass(frozen=True)
class AttentionInternals:
    """What an attention computed from one input."""

    x: Tensor  # (B, T, C), the input
    n_head: int  # number of heads
    readings: tuple[Reading, ...]  # the likeliest first
    endings: tuple[Ending, ...]
    weights: Tensor | None  # (B, n_head, T, T), or (B, T, T), or None
    # Whether all weights of the output projection are 0, so that its output depends on nothing.
    zero_projection: bool
    # Name of a role -> the weight of its layer, and which part of a gradient belongs to the role.
    roles: dict[str, tuple[nn.Parameter, Callable[[Tensor], Tensor]]]
    module: nn.Module
    dtype: torch.dtype = torch.float32  # the type of numbers in which it computes
    # Name of a bug -> its name and message in an attention of this kind.
    own_words: Mapping[str, Named] = field(default_factory=dict)
    # The parts of the block, where it is written in one class together with this attention.
    block: InlineBlock | None = None
    another_input: nn.Module | None = None  # one of its layers that reads something else than x
    different_inputs: tuple[Named, ...] = ()  # the bug that not all three read the same


# ---------------------------------------------------------------- which attentions


def attention_calls(whole: Call) -> dict[str, Call | None]:
    """How each attention in a module is called, by its name ("" for the module itself).

    None for one that the module has but does not call.
    """
    names: list[str] = []
    for name, part in whole.module.named_modules():
        is_dict = isinstance(part, nn.ModuleDict | nn.ParameterDict)  # it is not called
        inside = any(name.startswith(f"{outer}.") for outer in names)
        if _is_attention(part) and not is_dict and not inside:
            names.append(name)
    return calls_of(whole, names or _parts_that_mix_tokens(whole))


def parts_beside(
    module: nn.Module, attentions: Iterable[str], blocks: Iterable[str]
) -> dict[str, nn.Module]:
    """The parts with parameters that stand neither in an attention nor in a block, by name."""
    inside = [*attentions, *blocks]
    return {
        name: part
        for name, part in module.named_modules()
        if list(part.parameters(recurse=False)) and not within(name, inside)
    }


def has_unknown_parts(module: nn.Module, attentions: Iterable[str], blocks: Iterable[str]) -> bool:
    """Tell whether beside an attention there is more than a projection, and no known block."""
    alone = [name for name in attentions if not within(name, blocks)]
    others = parts_beside(module, alone, blocks).values()
    only_projection = len(others) <= 1 and all(isinstance(part, nn.Linear) for part in others)
    return bool(alone) and not only_projection


def _is_attention(module: nn.Module) -> bool:
    names = (role_names, fused_name, query_and_fused_names)
    return isinstance(module, nn.MultiheadAttention) or any(named(module) for named in names)


def _parts_that_mix_tokens(whole: Call) -> list[str]:
    """The names of the smallest parts with layers in which a token changes another's output."""
    parts = {
        name: part
        for name, part in whole.module.named_modules()
        if any(map(is_layer, [*part.modules(), *part.parameters()]))
    }
    mixing = [name for name, call in calls_of(whole, parts).items() if call and _mixes(call)]
    if not mixing:  # a token may attend to itself alone
        several = {name: list(part.modules()) for name, part in parts.items()}
        mixing = [name for name, own in several.items() if sum(map(is_layer, own)) in (3, 4)]
    outer = {name for name in mixing for one in mixing if one != name and within(one, [name])}
    return [name for name in mixing if name not in outer]


def _mixes(call: Call) -> bool:
    z = call.input
    if not isinstance(z, Tensor) or z.dim() != 3 or z.shape[1] < 2 or not z.is_floating_point():
        return False
    other = z.clone()
    other[:, z.shape[1] // 2] += torch.linspace(-1, 1, z.shape[-1]).to(z)
    try:
        before, after = (one.run()[0] for one in (call, call.with_input(other)))
    except Exception:  # it may be bound to the numbers that it got
        return False
    if not isinstance(before, Tensor) or before.shape[:2] != z.shape[:2]:
        return False
    changed = ~close(before, after, 1e-8, RTOL).flatten(2).all(-1).all(0)
    changed[z.shape[1] // 2] = False
    return bool(changed.any())


# ---------------------------------------------------------------- inside an attention


def inspect_attention(whole: Call, call: Call, n_head: int) -> AttentionInternals | str:
    """Find out what an attention in a module computed, or say why that cannot be known.

    n_head is its number of heads, unless it knows its own.
    """
    if isinstance(call.module, nn.MultiheadAttention):
        return _inspect_pytorch_attention(whole, call)
    x = call.input
    if x is None or x.dim() != 3:
        return "it does not read one input (B, T, C)"
    return _inspect_layers(whole, call, x, own_head_count(call.module) or n_head)


def _inspect_layers(whole: Call, call: Call, x: Tensor, n_head: int) -> AttentionInternals | str:
    out, weights, layer_calls = _run_and_record(call)
    if not isinstance(out, Tensor) or out.dim() != 3:
        return "it gives no output (B, T, anything)"
    if whole.time_first:
        seen = [
            (one.layer, _time_second(one.z, x), _time_second(one.out, x)) for one in layer_calls
        ]
        layer_calls = [LayerCall(*one) for one in seen]
        x, out = x.transpose(0, 1), out.transpose(0, 1)
    latent = latent_readings(layer_calls, x, n_head)
    found = latent or find_readings(call.module, layer_calls, x, n_head)
    if isinstance(found, str):
        return found
    readings, roles, used = found
    block = inline_block(call.module, layer_calls, used, x)
    read = [  # by each of these layers; (B, T, n_head, d), where a layer reads each head
        (layer, next((one.z for one in layer_calls if one.layer is layer), x))
        for layer in (used if block is None else ())
    ]
    read = [(layer, z.flatten(2)) for layer, z in read if z.shape[:2] == x.shape[:2]]
    # What stands before a narrow vector was read already.
    inputs = [(layer, z) for layer, z in read if not latent or z.shape == x.shape]
    more = () if all(same(z, x, 0) for _, z in inputs) else (ANOTHER_INPUT,)
    readings = [replace(one, bugs=(*one.bugs, *more)) for one in readings]
    different = () if may_take_context(whole.module) else _different_inputs([z for _, z in inputs])
    if block:
        z = block.projection.z
        endings, projection = [Ending(z)], getattr(block.projection.layer, "weight", None)
    else:
        endings, projection = _find_endings(call, x, out, layer_calls, used, n_head)
        endings[1:1] = _gated(endings[0], layer_calls, used, n_head)
    return AttentionInternals(
        x=x,
        n_head=n_head,
        readings=tuple(readings),
        endings=tuple(endings),
        weights=_not_scores(weights_shown(weights, x), readings[0], x, n_head),
        zero_projection=projection is not None and not projection.any(),
        roles=roles,
        dtype=out.dtype,
        own_words={"no scale": SCALE_OF_ONE} if _has_scale_of_one(call.module) else {},
        block=block,
        module=call.module,
        another_input=next((one for one, z in read if not same(z, x, 0)), None),
        different_inputs=different,
    )


def _has_scale_of_one(module: nn.Module) -> bool:
    """Whether it has a number of its own for the scale, which is 1."""
    own = [vars(module).get(name) for name in ("scale", "scaling", "softmax_scale")]
    return any(type(value) in (int, float) and value == 1 for value in own)


def _time_second(z: Tensor, x: Tensor) -> Tensor:
    """(T, B, …) as (B, T, …), where x is (T, B, C)."""
    return z.transpose(0, 1) if z.shape[:2] == x.shape[:2] else z


def _different_inputs(read: list[Tensor]) -> tuple[Named, ...]:
    """The bug that one of queries, keys and values is made of something else than the others."""
    odd = [
        f"{role}s".replace("ys", "ies" if role == "query" else "ys")
        for i, role in enumerate(ROLES[: len(read)])
        if not any(same(read[i], z, 0) for j, z in enumerate(read) if j != i)
    ]
    return (of_parts(DIFFERENT_INPUTS, names=joined(odd)),) if len(read) == 3 and odd else ()


def attention_of(
    module: nn.Module, seen: AttentionInternals, right: Tensor, causal: bool
) -> Callable[[Tensor], Tensor]:
    """Right attention with the layers of an inline block, whose weights were `right`."""
    n_head = right.shape[1]

    def of(reading: Reading, x: Tensor) -> OutAndWeights:
        return with_bugs(causal=causal)(reading.q, reading.k, reading.v, x, n_head)

    which = next(i for i, one in enumerate(seen.readings) if same(of(one, seen.x)[1], right, ATOL))

    def attention(z: Tensor) -> Tensor:
        calls = [LayerCall(one, z, one(z)) for one in seen.block.layers if callable(one)]
        reading = find_readings(module, calls, z, n_head)[0][which]
        return seen.block.projection.layer(of(reading, z)[0])

    return attention


def weights_shown(second: Tensor | None, x: Tensor) -> Tensor | None:
    """What a module returned beside its output, if it can be weights, (…, T, T)."""
    B, T = x.shape[:2]
    if second is None or second.shape[-2:] != (T, T):
        return None
    if second.dim() == 3 and len(second) % B == 0 and len(second) > B:  # (B * n_head, T, T)
        return second.unflatten(0, (B, -1))
    return second


def _not_scores(shown: Tensor | None, reading: Reading, x: Tensor, n_head: int) -> Tensor | None:
    """The weights shown; None where they are the scores, before the softmax, as in Whisper."""
    if shown is None or shown.dim() != 4 or shown.shape[1] != n_head or not (shown < 0).any():
        return shown
    qkv = (reading.q, reading.k, reading.v, x, n_head)
    right = (with_bugs(causal=causal)(*qkv)[1] for causal in (True, False))
    return None if any(same(shown.softmax(-1), one, ATOL) for one in right) else shown


def _run_and_record(call: Call) -> tuple[Tensor, Tensor | None, list[LayerCall]]:
    """The output, the weights if shown, and what every layer inside was called with."""
    names = [*(role_names(call.module) or ()), projection_name(call.module)]
    makers = [getattr(call.module, name) for name in names if name]
    layers = {
        name: part
        for name, part in call.module.named_modules()
        if is_layer(part) or any(part is one for one in makers)
    }
    (out, weights), calls = recorded(call.run_with_weights, layers)
    seen = [(one.call.module, one.call.input, one.out) for one in calls]
    return out, weights, [LayerCall(*one) for one in seen if all(z is not None for z in one)]


# ---------------------------------------------------------------- from the heads to the output


def _find_endings(
    call: Call, x: Tensor, out: Tensor, recorded: list[LayerCall], used: list, n_head: int
) -> tuple[list[Ending], Tensor | None]:
    """The ways in which the outputs of the heads may have become `out`; the projection's weight."""
    module, name = call.module, projection_name(call.module)
    projection = getattr(module, name) if name else None
    unused = Ending(out, bugs=(of_parts("output projection never used", names=name),))
    if isinstance(projection, nn.Parameter):
        ways = _through_matrix(projection, bias_beside(module, name), out)
        return [*(_before_matrix(call, projection, ways) or ways), unused], projection
    others = [
        _turned_back(one, out) for one in recorded if not any(one.layer is layer for layer in used)
    ]
    last = next((one for one in reversed(others) if _same_but_for_shape(one.out, out)), None)
    if last is not None:
        return _before_last(last, others, out), getattr(last.layer, "weight", None)
    layers = [] if projection is None else [one for one in projection.modules() if is_layer(one)]
    called = [one for one in others if any(one.layer is layer for layer in layers)]
    if layers and not called and not any(layers[0] is layer for layer in used):
        return [unused, Ending(out, projection)], None  # its matrix may be used in parts
    endings = [Ending(out)]
    if not recorded:  # it has matrices without names, and one may be the projection
        own = [w for w in module.parameters(recurse=False) if w.numel() == out.shape[-1] ** 2]
        endings += [one for w in own for one in _through_matrix(w, None, out)]
    for one in called[:1]:
        if one.z.shape[-1] != out.shape[-1] or one.z.dim() != 3:
            each = partial(_in_each_head, one.layer, n_head)
            bug = of_parts("output projection applied to each head")
            endings.append(Ending(out, each, bugs=(bug,)))
    for one in (called or others)[-1:]:
        if one.z.dim() == 3:
            endings.append(Ending(one.z, bugs=(_behind(module, x, one.out, out),)))
    return endings + _side_by_side(call, x, out, others), None


def _gated(ending: Ending, calls: list[LayerCall], used: list, n_head: int) -> list[Ending]:
    """The same, where the outputs of the heads were multiplied with a sigmoid of a layer's output.

    It reads what the layers of queries, keys and values read, or it is one of them, with more
    outputs than these take: in all, or in each head, its last ones.
    """
    width, gates = ending.out.shape[-1], []
    first = next((one.z for one in calls if used and one.layer is used[0]), None)
    for one in calls:
        z, named = one.out, 0 < len(used) < 4 and any(one.layer is layer for layer in used)
        if first is None or z.shape[:2] != ending.out.shape[:2] or not same(one.z, first, 0):
            continue
        z, of = z.flatten(2), z.flatten(2).shape[-1] / width
        gates += [z] if z.shape[-1] in (width, n_head) and not named else []
        if of in (2, 4):
            gates += [z.unflatten(-1, (n_head, int(of), -1))[..., -1, :], z[..., -width:]]
        gates += [z[..., -n_head:]] if z.shape[-1] == 3 * width + n_head else []
    gates = [gate.reshape(*gate.shape[:2], n_head, -1).sigmoid() for gate in gates]
    heads = ending.out.unflatten(-1, (n_head, -1)) if gates else ending.out
    return [replace(ending, out=(heads / g).flatten(2), bugs=(*ending.bugs, GATED)) for g in gates]


def _through_matrix(weight: nn.Parameter, bias: Tensor | None, out: Tensor) -> list[Ending]:
    """The projection is a matrix, (in, out) or, where both fit, (out, in)."""
    square = weight.dim() == 2 and weight.shape[0] == weight.shape[1]
    ways = [weight, weight.mT] if square else [weight]
    return [Ending(out, partial(times, weight=w, bias=bias)) for w in ways]


def _before_matrix(call: Call, weight: nn.Parameter, ways: list[Ending]) -> list[Ending]:
    """What was multiplied with the matrix, where one of these ways makes the output of it.

    Solving for it instead would round too much with most matrices.
    """
    factors: list[Tensor] = []

    def keep_factors(function: Callable, args: tuple, _: object) -> None:
        tensors = [z for z in tree_leaves(args) if isinstance(z, Tensor)]
        others = [z for z in tensors if z.data_ptr() != weight.data_ptr()]  # but for views of it
        factors.extend(others if len(others) < len(tensors) else [])

    with Watching(keep_factors):
        call.run()
    for z, way in itertools.product(factors, ways):
        (B, T), dtype = way.out.shape[:2], way.out.dtype
        turned = z.transpose(0, 1) if z.shape[:2] == (T, B) else z
        for merged in (turned, merge_heads(z) if z.dim() == 4 else z):
            with contextlib.suppress(RuntimeError):  # the sizes do not fit
                merged = merged.reshape(B, T, -1)
                if same_but_for_rounding(way.project(merged), way.out, dtype):
                    return [Ending(merged)]
    return []


def _before_last(last: LayerCall, others: list[LayerCall], out: Tensor) -> list[Ending]:
    """The last layer is the projection, which may have been called twice."""
    endings = [Ending(last.z.reshape(*out.shape[:2], -1))]
    before = [one for one in others if one.layer is last.layer and one is not last]
    if before and _same_but_for_shape(before[-1].out, last.z):
        endings.append(Ending(before[-1].z, bugs=(of_parts("output projection applied twice"),)))
    return endings


def _side_by_side(call: Call, x: Tensor, out: Tensor, others: list[LayerCall]) -> list[Ending]:
    """Two branches, the projection and another layer, are added to x."""
    return [
        Ending(one.z, bugs=(of_parts(PARALLEL),))
        for one, other in itertools.permutations(others, 2)
        if x.shape == one.out.shape == other.out.shape == out.shape
        and same_but_for_rounding(out, x + one.out + other.out, out.dtype)
        and same_but_for_rounding(_run_without(call, one.layer), x + other.out, out.dtype)
    ]


def _run_without(call: Call, layer: nn.Module) -> Tensor:
    """The output where what this layer makes is 0."""
    with layer.register_forward_hook(lambda *args: 0 * args[-1]):
        return call.run()[0]


def _behind(module: nn.Module, x: Tensor, projected: Tensor, out: Tensor) -> Named:
    """What follows after the output projection."""
    for bug, expected in (
        (of_parts(RESIDUAL_INSIDE[0]), x + projected),
        (of_parts("x minus the output"), x - projected),
        (BY_NAME["mean over time subtracted"], projected - projected.mean(1, keepdim=True)),
        (BY_NAME["mean of the batch subtracted"], projected - projected.mean(0, keepdim=True)),
    ):
        if same_but_for_rounding(out, expected, out.dtype):
            return Named(bug.name, bug.message, bug.meant)
    for part in module.children():
        with contextlib.suppress(Exception):  # it may take something else
            if same_but_for_rounding(out, part(x + projected), out.dtype):
                return of_parts(RESIDUAL_INSIDE[1])
    return MORE_BEHIND


def _turned_back(one: LayerCall, out: Tensor) -> LayerCall:
    """A call over (T, B, …) as one over (B, T, …), as `out` is."""
    B, T = out.shape[:2]
    if B == T or one.z.dim() != 3 or one.z.shape[:2] != (T, B):
        return one
    return LayerCall(one.layer, one.z.transpose(0, 1), one.out.transpose(0, 1))


def _in_each_head(layer: nn.Module, n_head: int, z: Tensor) -> Tensor:
    weight = layer.weight
    return merge_heads(layer(split_heads(z, n_head).to(weight)).to(z))


def _same_but_for_shape(a: Tensor, b: Tensor) -> bool:
    return a.numel() == b.numel() and a.shape[-1] == b.shape[-1] and same(a.reshape(b.shape), b, 0)


# ---------------------------------------------------------------- PyTorch's attention


def _inspect_pytorch_attention(whole: Call, call: Call) -> AttentionInternals | str:
    module = call.module
    names = list(inspect.signature(module.forward).parameters)
    given = dict(zip(names, call.args, strict=False)) | call.kwargs
    inputs = [given[role] for role in ROLES]
    x, bugs = inputs[0], ()
    if not all(same(z, x, 0) for z in inputs):
        if may_take_context(whole.module) or len({z.shape for z in inputs}) > 1:
            return "its queries and keys come from different inputs"
        bugs = _different_inputs(inputs)
    if module.in_proj_weight is None:
        return "its queries, keys and values have different sizes"
    if x.dim() != 3:
        return "it reads a single sequence without a batch"
    inside = call.module is not whole.module
    as_whole = not whole.time_first and x.shape == whole.input.shape and len(x) != x.shape[1]
    if inside and not module.batch_first and as_whole:
        return f"it {NOT_BATCH_FIRST}"
    known = (*ROLES, "need_weights", "average_attn_weights")
    silent = given.get("need_weights") is False
    call = Call(module, tuple(inputs), {key: given[key] for key in given if key not in known})

    def batch_first(z: Tensor) -> Tensor:
        return z if module.batch_first else z.transpose(0, 1)

    weights_of, bias = module.in_proj_weight.chunk(3), module.in_proj_bias
    biases = [None] * 3 if bias is None else bias.chunk(3)
    q, k, v = map(batch_first, map(F.linear, inputs, weights_of, biases))
    try:
        out, weights = call.run_with_weights()
        without = call.run(need_weights=False)[0] if silent else out
    except RuntimeError:  # as with a float32 mask for bfloat16, without which it does
        out, weights = without, _ = call.run(**({"need_weights": False} if silent else {}))
    if not torch.equal(out.isnan(), without.isnan()):  # of a row without a key it makes nan, or 0
        out, weights = without, None
    added = module.bias_k is not None or module.add_zero_attn
    return AttentionInternals(
        x=batch_first(x),
        n_head=module.num_heads,
        readings=(Reading(q, k, v, (*bugs, *([MORE_KEYS] if added else []))),),
        endings=(Ending(batch_first(out), module.out_proj),),
        weights=None if added else weights_shown(weights, q),
        zero_projection=not module.out_proj.weight.any(),
        roles={
            role: (module.in_proj_weight, lambda z, i=i: z.chunk(3)[i])
            for i, role in enumerate(ROLES)
        },
        dtype=out.dtype,
        own_words={
            "mask not inverted": of_parts("mask not inverted"),
            "mask reversed for scaled_dot_product_attention": of_parts("mask not inverted"),
        },
        module=module,
    )
