"""What is under examination, how it runs, and which attentions and blocks are in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from attention_base.numbers import joined
from attention_base.same import seed_all
from attention_clinic.blocks import blocks_in
from attention_clinic.calls import Call, Mask, calls_of, part_of, self_attention_call
from attention_clinic.heads import names_of_all
from attention_clinic.inspection import (
    NOT_BATCH_FIRST,
    AttentionInternals,
    attention_calls,
    has_unknown_parts,
    inspect_attention,
    parts_beside,
    weights_shown,
)
from attention_clinic.names import PartNames, is_layer, is_norm, role_names, within
from attention_clinic.results import Results, not_checked

NO_MODULE = "no queries, keys and values in sight; hand over the module that makes them"
NO_ATTENTION = (
    "I find no layers of queries, keys and values, neither by the usual names (query, key and "
    "value, q_proj, W_query, c_attn and the like) nor by what they do"
)
NO_BLOCK = (
    "there is more than an attention, and I see no block in it: a block has two norms and two "
    "layers beside an attention; norms here: {}, layers: {}"
)


@dataclass(frozen=True)
class Subject:
    """A module or a function, its input x (B, T, C), and what it should be.

    ``try_heads``: its number of heads is only assumed.
    """

    function: Callable
    x: Tensor
    n_head: int
    causal: bool
    try_heads: bool = False
    mask: Mask | None = None  # that the module has to be given
    time_first: bool = False  # whether the module reads (T, B, C)

    @property
    def is_module(self) -> bool:
        """Whether it is a module, which may be looked into."""
        return isinstance(self.function, nn.Module)

    def call(self, x: Tensor | None = None) -> Call:
        """How the module is called with its input, or with another one."""
        x = self.x if x is None else x
        return self_attention_call(self.function, x, self.causal, self.mask, self.time_first)

    def run(
        self, x: Tensor, seed: int | None = 0, with_weights: bool = True
    ) -> tuple[Tensor, Tensor | None]:
        """The output for x, (B, T, anything), and the weights if they are shown.

        With None as the seed, random numbers go on from where they are.
        """
        if seed is not None:
            seed_all(seed)
        call = self.call(x)
        with torch.no_grad():
            out, weights = call.run_with_weights() if with_weights else call.run()
        out = out.transpose(0, 1) if self.time_first and isinstance(out, Tensor) else out
        return out, weights_shown(weights, x)

    def out(self, x: Tensor) -> Tensor:
        """The output alone."""
        return self.run(x)[0]

    def made_while_running(self) -> list[str]:
        """The kinds of layers that get their parameters while it runs."""
        made: dict[str, None] = {}

        def remember(part: nn.Module, *_: object) -> None:
            made[type(part).__name__] = None

        with nn.modules.module.register_module_parameter_registration_hook(remember):
            self.out(self.x)
        return list(made)

    def out_without_weights(self, x: Tensor) -> Tensor:
        """The output of a call that does not ask for the weights."""
        return self.run(x, with_weights=False)[0]


@dataclass(frozen=True)
class Parts:
    """The attentions and blocks in a module."""

    # Name in the module ("" for itself) -> how it is called; None for one that is not.
    attentions: dict[str, Call | None] = field(default_factory=dict)
    blocks: dict[str, Call | None] = field(default_factory=dict)  # in the same way
    # Name of a block -> those of its parts.
    block_parts: dict[str, PartNames] = field(default_factory=dict)
    # Name of an attention -> what it computed.
    internals: dict[str, AttentionInternals] = field(default_factory=dict)
    # The name of an ``nn.MultiheadAttention`` that takes sequences for tokens, or "".
    not_batch_first: str = ""
    # Whether all weights of an output projection are 0, in an attention or beside it.
    zero_projection: bool = False
    results: Results = field(default_factory=Results)  # what could not be found


def find_parts(subject: Subject) -> Parts:
    """Find the attentions and blocks of a module, and what the attentions compute."""
    if not subject.is_module:
        return Parts(results=not_checked(NO_MODULE, "equals the reference"))
    module, why, not_batch_first = subject.function, NO_ATTENTION, ""
    internals: dict[str, AttentionInternals] = {}
    seed_all()
    with torch.no_grad():
        whole = subject.call()
        attentions = attention_calls(whole)
        block_parts = blocks_in(whole, attentions)
        blocks = calls_of(whole, block_parts)
        not_called = [name for name, call in attentions.items() if call is None]
        if not_called:
            why = f"{joined(not_called)} {'was' if len(not_called) == 1 else 'were'} not called"
        for name, call in attentions.items():
            if call is None:
                continue
            seed_all()
            try:
                n_head = _heads_of(subject, name, call, attentions)
                found = inspect_attention(whole, call, n_head)
            except Exception as error:  # of an experiment of ours: the module itself has run
                found = f"trying it raised {type(error).__name__}"
            if isinstance(found, AttentionInternals):
                internals[name] = found
            else:
                why = f"{name or 'the module'} cannot be inspected: {found}"
                not_batch_first = name if NOT_BATCH_FIRST in found else not_batch_first
    results = Results()
    if has_unknown_parts(module, attentions, blocks):
        results += not_checked(_why_no_block(module, attentions, blocks), "residuals and norms")
    if not internals or len(internals) < len(attentions):
        results += not_checked(why, "equals the reference")
    zero = _zero_projection(module, attentions, blocks, internals)
    return Parts(attentions, blocks, block_parts, internals, not_batch_first, zero, results)


def _heads_of(subject: Subject, name: str, call: Call, attentions: dict[str, Call | None]) -> int:
    """One of a list of heads has a share of the channels, or there are n_head of them."""
    names = role_names(call.module)
    layer = getattr(call.module, names[0]) if names else None
    head_size = getattr(layer, "out_features", 0)
    others = [one for one in attentions.values() if one is not None]
    in_list = len(names_of_all(subject.function, [*attentions])) == subject.n_head and all(
        one.input is not None and torch.equal(one.input, call.input) for one in others
    )
    single = name and (head_size * subject.n_head == subject.x.shape[-1] or in_list)
    return 1 if single else subject.n_head


def _why_no_block(module: nn.Module, attentions: dict, blocks: dict) -> str:
    """Which parts of a block were found beside an attention that stands in none, and not."""
    name = next(name for name in attentions if not within(name, blocks))
    where = name[: name.rfind(".") + 1]
    owner = part_of(module, where.removesuffix("."))
    beside = [part for n, part in owner.named_modules() if not within(n, [name[len(where) :]])]
    return NO_BLOCK.format(sum(map(is_norm, beside)), sum(map(is_layer, beside)))


def _zero_projection(module: nn.Module, attentions: dict, blocks: dict, internals: dict) -> bool:
    others = parts_beside(module, attentions, blocks) if internals else {}
    beside = [one.weight for one in others.values() if isinstance(one, nn.Linear)]
    inside = any(seen.zero_projection for seen in internals.values())
    return inside or (len(others) == 1 and not all(bool(own.any()) for own in beside))
