"""Finds the parts of a transformer block, and checks the feed-forward and the norms by themselves.

A block is found by the names of its parts (`names`). To tell one norm from another, and what a
projection of zeros hides, the block and its parts are run with random numbers in their place.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from attention_base.numbers import small
from attention_base.same import same, same_but_for_rounding
from attention_clinic.bugs import Named, of_parts
from attention_clinic.calls import (
    Call,
    calls_of,
    other_numbers,
    out_and_weights,
    part_of,
    recorded,
    self_attention_call,
)
from attention_clinic.inline import feed_forward_of_layers
from attention_clinic.names import PartNames, block_part_names, layers_beside, within
from attention_clinic.probes import Finding, output_changes, sequences_stay_apart

Function = Callable[[Tensor], Tensor]
SAME_NUMBERS = "it returns the same numbers whatever x is: nothing of x comes through."
ONLY_ADDS = (
    "So the block can only add to x. The activation belongs between the two layers; none follows "
    "the last one."
)
SECOND = re.compile("post|after|final|output|second|ff|feed|mlp")  # in names of norms
OF_CHANNELS = "Mean and variance are those of the channels of one token, dim=-1."


@dataclass(frozen=True)
class BlockInternals:
    """The input (B, T, C) and the output of a block, and its four parts as functions."""

    call: Call
    x: Tensor
    out: Tensor
    parts: tuple[Function, ...]
    # Other norms of the block, and what its branches may be multiplied by.
    more_norms: tuple[Function, ...] = ()
    factors: tuple[Tensor, ...] = ()

    def of_few(self) -> "BlockInternals":
        """The same of a few tokens, or of a sequence where its parts take no shorter one."""
        x = self.x[:1, :16]
        with suppress(Exception):
            self.parts[0](x)
            return replace(self, x=x, out=self.call.with_input(x).run()[0])
        return replace(self, x=self.x[:1], out=self.out[:1])

    def variants(self) -> Iterator[tuple[Named, tuple[Function, ...]]]:
        """The parts with a norm or a factor of their own behind each branch: name, parts."""
        attention, feed_forward, *norms = self.parts
        norms = [*norms, *self.more_norms][:5]
        ends = [*norms, *(partial(torch.mul, factor) for factor in self.factors[:4])]
        for *before, one, other in itertools.chain(
            itertools.permutations(ends, 4), ((*norms[:2], end, end) for end in ends[2:])
        ):
            if set(before) <= set(norms):
                branches = _then(attention, one), _then(feed_forward, other)
                yield self._name(one, other), (*branches, *before)

    def _name(self, *ends: Function) -> Named:
        twice, once = (ends[0](factor * self.x) for factor in (2, 1))
        if not same_but_for_rounding(twice, 2 * once, self.x.dtype):
            return of_parts("sandwich norm (Ding et al. 2021)")
        numbers = [end.args[0].numel() for end in ends if isinstance(end, partial)]
        scalar = "ReZero (Bachlechner et al. 2020)"
        return of_parts(scalar if 1 in numbers else "LayerScale (Touvron et al. 2021)")


def _then(branch: Function, end: Function) -> Function:
    return lambda z: end(branch(z))


def remembering(parts: tuple[Function, ...]) -> list[Function]:
    """Parts of a block that compute nothing twice."""
    known: dict[tuple[int, bytes], Tensor] = {}

    def call(i: int, z: Tensor) -> Tensor:
        key = (i, z.contiguous().view(torch.uint8).cpu().numpy().tobytes())
        if key not in known:
            known[key] = parts[i](z)
        return known[key]

    return [partial(call, i) for i in range(len(parts))]


def blocks_in(whole: Call, attentions: Iterable[str]) -> dict[str, PartNames]:
    """The names of the parts of each block in a module, by the name of the block.

    These are the smallest parts around attentions that have the parts of a block.
    """
    named, found = dict(whole.module.named_modules()), {}
    for name in sorted(named, key=len, reverse=True):
        start = f"{name}." if name else ""
        inside = [one.removeprefix(start) for one in attentions if one.startswith(start)]
        is_list = isinstance(named[name], nn.ModuleList | nn.ModuleDict)
        taken = within(name, found) or any(within(one, [name]) for one in found)
        if not inside or "" in inside or is_list or taken or name in attentions:
            continue
        if names := block_part_names(named[name], inside):
            found[name] = (*names[:2], *_in_order(whole, named[name], names[2:]))
    return found


def _in_order(whole: Call, block: nn.Module, norms: tuple[str, str]) -> tuple[str, str]:
    """That of the attention first: as their names say or, if they do not, as they are called."""
    without_numbers = {re.sub(r"\d+", "", norm) for norm in norms}
    second = [norm for norm in norms if SECOND.search(norm)]
    if len(without_numbers) == 1:  # as norm_1 and norm_2
        return norms
    if len(second) == 1:
        return (*(norm for norm in norms if norm not in second), *second)
    parts = {norm: part_of(block, norm) for norm in norms}
    called = [one.name for one in recorded(whole.run, parts)[1]]
    first, *_, last = [*dict.fromkeys([*called, *norms])]  # those that are not called at the end
    return first, last


@contextmanager
def inspected_block(call: Call, names: PartNames, causal: bool) -> Iterator[BlockInternals | str]:
    """Find the output of a block and its parts, or say why that cannot be done.

    Inside of the context, norms and projections of zeros hold random numbers.
    """
    block, x = call.module, call.input
    found = block_attention(call, names, causal)
    if not found:
        yield "its attention does not read one input (B, T, C)"
        return

    attention, attended = found
    projection, feed_forward = layers_of(call, names, attended)
    with random_norms(block, names):
        out = call.run()[0]
        if not out.isfinite().all():
            yield "there are outputs that are nan or inf"
            return
        norms = (_function(part_of(block, name)) for name in names[2:])
        parts = (_then(attention, projection), feed_forward, *norms)
        more, factors = more_parts(block, names)
        yield BlockInternals(call, x, out, parts, tuple(map(_function, more)), tuple(factors))


def more_parts(
    block: nn.Module, names: tuple[str, ...]
) -> tuple[list[nn.Module], list[nn.Parameter]]:
    """Parts of a block beside the usual ones: those like a norm, and its own parameters."""
    more = [
        part
        for name, part in block.named_children()
        if name not in {one.split(".")[0] for one in names}
        and list(part.parameters())
        and all(own.dim() == 1 for own in part.parameters())
    ]
    return more, [own for own in block.parameters(recurse=False) if own.dim() < 2]


def with_own_names(message: str, names: tuple[str, ...]) -> str:
    """A message with the block's own names for its parts: ln_1(…) in the place of norm_1(…)."""
    usual = (r"\battention(?=\()", r"\bfeed_forward\b", r"\bnorm_1\b", r"\bnorm_2\b")
    for name, own in zip(usual, names, strict=True):
        message = re.sub(name, own, message) if own else message
    return message


def block_attention(call: Call, names: PartNames, causal: bool) -> tuple[Function, Tensor] | None:
    """The attention of a block as a function, and what it returned; a list of heads as well."""
    part, x, names = part_of(call.module, names[0]), call.input, list(names[:1])
    if isinstance(part, nn.ModuleList):
        names = [f"{names[0]}.{name}" for name, _ in part.named_children()]
    calls = [
        one or self_attention_call(part_of(call.module, name), x, causal)
        for name, one in calls_of(call, names).items()
    ]
    if x is None or any(one.input is None or one.input.shape != x.shape for one in calls):
        return None

    def attention(z: Tensor) -> Tensor:
        return torch.cat([one.with_input(z).run()[0] for one in calls], dim=-1)

    return attention, attention(calls[0].input)


def layers_of(call: Call, names: PartNames, attended: Tensor) -> tuple[Function, Function]:
    """The output projection and the feed-forward of a block, as functions.

    Also where they are layers of the block itself: the projection is the one that reads what the
    attention returned.
    """
    block, projection = call.module, lambda z: z
    if names[1]:
        return projection, _function(part_of(block, names[1]))
    layers = layers_beside(block, names[0])
    calls = list(calls_of(call, layers).values())
    given = getattr(block, "activation", nn.Identity())
    if None in calls:  # PyTorch has a faster way, which does not call them
        first, second = (part_of(block, name) for name in layers)
        return projection, lambda z: second(given(first(z)))
    after = [one for one in calls if same(one.input, attended, 0)]
    read = [(one.module, one.input) for one in calls if not after or one is not after[0]]
    if found := feed_forward_of_layers(block, read, given, nn.Identity()):
        return after[0].module if after else projection, found
    raise ValueError("which activation its feed-forward has was not found")


def _function(part: nn.Module) -> Function:
    return lambda z: out_and_weights(part(z.clone()))[0]


def random_norms(block: nn.Module, names: tuple[str, ...]) -> AbstractContextManager[None]:
    """Put random numbers into the norms of a block and its weights that are all 0, for a while."""
    generator = torch.Generator().manual_seed(0)
    norms = [one for name in names[2:] if name for one in part_of(block, name).parameters()]
    if names[0]:
        more, factors = more_parts(block, names)
        norms += [*factors, *(one for part in more for one in part.parameters())]
    others = []
    for own in block.parameters():
        if any(own is one for one in norms):
            others.append((own, torch.rand(own.shape, generator=generator) * 1.5 + 0.5))
        elif own.dim() > 1 and not own.any():
            random = torch.randn(own.shape, generator=generator)
            others.append((own, random / own.shape[-1] ** 0.5))
    return other_numbers(others)


# ---------------------------------------------------------------- the parts by themselves


def check_parts(call: Call, names: PartNames, causal: bool) -> dict[str, tuple[str, str]]:
    """Bugs inside of the feed-forward or the norms of a block: name -> (evidence, part).

    Each has to treat every token alone, a norm has to undo a factor, and the feed-forward has to
    be more than one Linear layer.
    """
    block, x = call.module, call.input
    found: dict[str, tuple[str, str]] = {}
    _, attended = block_attention(call, names, causal)
    feed_forward = layers_of(call, names, attended)[1]
    where = names[1] or layers_beside(block, names[0])[-1]
    if evidence := _mixing(feed_forward, x):
        found["feed-forward mixes tokens"] = (evidence, where)
    elif evidence := _missing_activation(feed_forward, x):
        found["no activation in the feed-forward"] = (evidence, where)
    elif _without_effect(block, feed_forward, x):
        found["feed-forward without effect"] = (SAME_NUMBERS, where)
    elif _never_negative(feed_forward, x):
        evidence = f"what it returns is never negative. {ONLY_ADDS}"
        found["activation behind the feed-forward"] = (evidence, where)
    if part_of(block, names[2]) is part_of(block, names[3]):
        evidence = f"both branches read through one norm, {names[2]}. Each needs its own."
        found["one norm for both"] = (evidence, names[3])
    for name in names[2:]:
        norm = _function(part_of(block, name))
        if not norm(x).isfinite().all():  # told as such
            continue
        apart = sequences_stay_apart(norm, x if len(x) > 1 else x.expand(2, -1, -1))
        if not apart.ok:
            found.setdefault("norm over the batch", (f"{apart.evidence} {OF_CHANNELS}", name))
        elif evidence := _mixing(norm, x):
            found.setdefault("norm over the tokens", (f"{evidence} {OF_CHANNELS}", name))
        elif evidence := _factor_left(norm, x):
            found.setdefault("norm without the root", (evidence, name))
        elif _without_effect(block, norm, x):
            found.setdefault("norm without effect", (SAME_NUMBERS, name))
    return found


def _mixing(function: Function, x: Tensor) -> str:
    """Whether an output depends on another token; empty when none does."""
    changes = output_changes(function, x, "mixing", most=4)
    if isinstance(changes, Finding):
        return ""
    changes = changes.where(~changes.isnan(), 0)
    changes.fill_diagonal_(0)
    if not (changes > 1e-6).any():
        return ""
    j, t = divmod(int(changes.argmax()), len(changes))
    return (
        f"changing token {j} changed its output {t}, by up to {small(changes[j, t].item())}; it "
        "should treat each token alone."
    )


def _missing_activation(function: Function, x: Tensor) -> str:
    """Whether f(a) + f(b) = f(a + b) + f(0), so that two layers are no more than one."""
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(x[:1].shape, generator=generator).to(x) for _ in range(2))
    of_a, of_b, of_both, of_zero = (function(z) for z in (a, b, a + b, a * 0))
    difference = (of_a + of_b - of_both - of_zero).abs().max().item()
    scale = (of_a - of_zero).abs().max().item()
    if x.dtype.itemsize < 4 or not difference <= 1e-5 * scale or scale < 1e-6:
        return ""  # also with nan
    return (
        "f(a) + f(b) = f(a + b) + f(0), so it is no more than one Linear layer. An activation, "
        "ReLU or GELU, belongs between its two layers."
    )


def _without_effect(block: nn.Module, function: Function, x: Tensor) -> bool:
    """Whether all outputs are the same, and not because parameters begin as zeros."""
    generator = torch.Generator().manual_seed(0)
    zeros = [own for own in block.parameters() if not own.any()]
    with other_numbers((own, torch.randn(own.shape, generator=generator)) for own in zeros):
        out = function(torch.randn((8, *x.shape[1:]), generator=generator).to(x))
    return bool((out == out[0, 0]).all())


def _never_negative(function: Function, x: Tensor) -> bool:
    """Whether a ReLU or a softmax comes last: no output is below 0, and not all are the same."""
    z = torch.randn((8, *x.shape[1:]), generator=torch.Generator().manual_seed(0)).to(x)
    out = function(z)
    return bool((out >= 0).all() and (out != out[0, 0]).any())


def _factor_left(norm: Function, x: Tensor) -> str:
    """Whether norm(100 x) is norm(x) / 100, as where the root of the variance is missing."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(x[:1].shape, generator=generator).to(x) * 2
    zero, one, many = (norm(factor * z) for factor in (0, 1, 100))
    ratio = ((many - zero).abs().mean() / (one - zero).abs().mean()).item()
    if not 0.009 < ratio < 0.011:
        return ""
    return (
        "norm(100·x) is norm(x) / 100, and it should be norm(x): x is divided by the variance, and "
        "not by its root."
    )
