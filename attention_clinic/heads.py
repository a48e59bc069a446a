"""Compares what a module makes of the outputs of the attentions in it with what is right.

That is proj(cat(outputs)) in the order of their list, or without proj where there is none; of a
single attention its output or the projection of it. The attentions themselves are compared
elsewhere (`comparison`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attention_base.numbers import joined
from attention_base.same import same_but_for_rounding, tolerance
from attention_clinic.bugs import Named, of_parts
from attention_clinic.calls import Call, PartCall, calls_of, may_take_context, part_of, recorded
from attention_clinic.probes import HEADS, Finding, matches_reference

OF_A_SLICE = "heads read only a part of x"

Bugs = tuple[Named, ...]


@dataclass(frozen=True)
class Rebuilt:
    """What rebuilding the output of a module from those of the attentions in it has shown."""

    finding: Finding  # whether the numbers are the same
    bugs: dict[str, str]  # name -> evidence, of the bugs with which they are
    meant: bool = False  # whether some modules are like this on purpose


def compare_heads(whole: Call, names: list[str], projection: str) -> Rebuilt | None:
    """Compare the output of a module with what is right to make of the attentions in it.

    Their names stand in the order of their list; the projection is the one layer beside them, or
    "". None where their outputs are not (B, T, …) or none was seen.
    """
    out, calls = _calls(whole, [*names, *([projection] if projection else [])])
    called = [one for one in calls if one.name != projection]
    if not called or any(one.out.shape[:2] != out.shape[:2] for one in called):
        return None
    if calls[-1].name != projection and any(one.name == projection for one in calls):
        projection = ""  # it makes what the attentions read
    if may_take_context(whole.module) or not in_one_list(names):
        names = [name for name in names if any(one.name == name for one in called)]
    same = all(torch.equal(one.call.input, called[0].call.input) for one in called)
    if not same and not slices_read(whole, names):  # one after the other
        outputs = {called[-1].name: called[-1].out}
    else:
        outputs = _outputs_of_all(whole.module, names, called)
    layer = part_of(whole.module, projection) if projection else None
    inputs = [called[-1].call.input, whole.input]
    return _compare(Heads(outputs, inputs, projection, layer), out, in_one_list(names))


def in_one_list(names: list[str]) -> bool:
    """Tell whether parts stand together in a list, as heads.0 and heads.1 do."""
    lists = {name.rpartition(".")[0] for name in names}
    return len(lists) == 1 and all(name.rpartition(".")[2].isdigit() for name in names)


def names_of_all(module: nn.Module, names: list[str]) -> list[str]:
    """The names of these heads, too, under which a list holds one of them again."""
    own = [part_of(module, name) for name in names]
    every = module.named_modules(remove_duplicate=False)
    found = [name for name, part in every if any(part is one for one in own)]
    return found if in_one_list(found) else names


def slices_read(whole: Call, names: list[str]) -> str:
    """Say which channels of x each head of a list reads; "" where that is all of them."""
    if len(names) < 2 or not in_one_list(names):
        return ""
    owner = names[0].rpartition(".")[0].rpartition(".")[0]
    calls = calls_of(whole, [owner, *names])
    x, read = calls[owner] and calls[owner].input, []
    for name in names:
        z = calls[name] and calls[name].input
        if x is None or z is None or z.shape[:-1] != x.shape[:-1] or z.shape[-1] >= x.shape[-1]:
            return ""
        starts = range(x.shape[-1] - z.shape[-1] + 1)
        start = next((i for i in starts if torch.equal(x[..., i : i + z.shape[-1]], z)), None)
        if start is None:
            return ""
        read.append(f"{name} the channels {start} to {start + z.shape[-1] - 1}")
    told = joined(read) if len(read) < 4 else f"{read[0]}, …, {read[-1]}"
    return (
        f"each head reads {z.shape[-1]} of the {x.shape[-1]} channels of its input: {told}. Every "
        "head reads all of x, head(x); its own Linear layers make head_size channels of them."
    )


def _calls(whole: Call, names: list[str]) -> tuple[Tensor, list[PartCall]]:
    """The output of a module, and the calls of some of its parts, one after another."""
    parts = {name: part_of(whole.module, name) for name in names}
    (out, _), calls = recorded(whole.run, parts)
    calls = [one for one in calls if one.call.input is not None and one.out is not None]
    for one in calls:
        if _is_turned(one.call.module, one.call.input, whole.input):
            one.call = one.call.with_input(one.call.input.transpose(0, 1))
            one.out = one.out.transpose(0, 1)
    return out, calls


def _is_turned(part: nn.Module, z: Tensor, x: Tensor) -> bool:
    """Tell whether a part read (T, B, C), as PyTorch's attention may."""
    B, T = x.shape[:2]
    if B == T:
        return isinstance(part, nn.MultiheadAttention) and not part.batch_first
    return z.shape[:2] == (T, B)


def _outputs_of_all(
    module: nn.Module, names: list[str], called: list[PartCall]
) -> dict[str, Tensor]:
    """The outputs of the heads, also of those that were not called."""
    like, seen = called[0].call, {one.name: one.out for one in reversed(called)}
    missing = {name: part_of(module, name) for name in names if name not in seen}
    seen |= {name: Call(z, like.args, like.kwargs).run()[0] for name, z in missing.items()}
    return {name: seen[name] for name in names}


# ---------------------------------------------------------------- right, and the known mistakes


@dataclass(frozen=True)
class Heads:
    """The outputs of the attentions in a module, and what can be made of them."""

    # Name of an attention -> its output (B, T, head_size), in the order of their list.
    outputs: dict[str, Tensor]
    inputs: list[Tensor]  # what may be added to them, (B, T, C)
    projection: str  # the name of the layer that follows, or ""
    layer: nn.Module | None  # this layer

    def __str__(self) -> str:
        names = list(self.outputs)
        if len(names) == 1:
            return f"{self.projection}({names[0]}(…))" if self.projection else f"that of {names[0]}"
        told = ", ".join(names if len(names) < 4 else (names[0], "…", names[-1]))
        return f"{self.projection}(cat({told}))" if self.projection else f"cat({told})"

    def right(self) -> Tensor | None:
        """What is right to make of them; None where the projection does not take it."""
        return self._projected(torch.cat(list(self.outputs.values()), dim=-1))

    def wrong(self) -> Iterator[tuple[Bugs, Tensor]]:
        """What known mistakes make of them, first one at a time, then two."""
        each = [self._projected(out) for out in self.outputs.values()]
        if self.layer is not None and all(z is not None for z in each):
            yield _bug("output projection applied to each head"), torch.cat(each, dim=-1)
        for count in (1, 2):
            for merge_bugs, merged in self._merged():
                for bugs, result in self._ended(merged):
                    if len(merge_bugs + bugs) == count:
                        yield merge_bugs + bugs, result

    def _projected(self, z: Tensor | None) -> Tensor | None:
        if self.layer is None or z is None:
            return z
        return self.layer(z) if z.shape[-1] == self.layer.in_features else None

    def _merged(self) -> Iterator[tuple[Bugs, Tensor]]:
        names, outputs = list(self.outputs), list(self.outputs.values())
        n, side_by_side = len(outputs), torch.cat(outputs, dim=-1)
        yield (), side_by_side
        for x in self.inputs if self.layer is not None else ():
            if x.shape == side_by_side.shape:
                yield _bug("x added before the projection"), side_by_side + x
        if n == 1:
            return
        if len({out.shape for out in outputs}) == 1:
            stacked = torch.stack(outputs, dim=1)  # (B, n_head, T, head_size)
            yield _bug("heads added", n), stacked.sum(1)
            yield _bug("heads averaged", n), stacked.mean(1)
            yield _bug("merged by view, without transpose"), stacked.reshape(side_by_side.shape)
            yield _bug("channels interleaved by the merge"), stacked.permute(0, 2, 3, 1).flatten(2)
            for name, out in self.outputs.items():
                yield _bug("one head repeated", n, name), torch.cat([out] * n, dim=-1)
        yield _bug("heads reversed by the merge"), torch.cat(outputs[::-1], dim=-1)
        for count in range(1, n):
            for i in range(n - count + 1):
                bug = _bug("only some of the heads used", n, joined(names[i : i + count]))
                yield bug, torch.cat(outputs[i : i + count], dim=-1)

    def _ended(self, merged: Tensor) -> Iterator[tuple[Bugs, Tensor]]:
        once = self._projected(merged)
        ways: list[tuple[Bugs, Tensor | None]] = [((), once)]
        if self.layer is not None:
            ways.append((_bug("output projection never used", names=self.projection), merged))
            ways.append((_bug("output projection applied twice"), self._projected(once)))
        added = [x for x in self.inputs if once is not None and x.shape == once.shape]
        ways += [(_bug("x added to the output"), once + x) for x in added]
        yield from ((bugs, result) for bugs, result in ways if result is not None)


def _bug(name: str, n: int = 0, names: str = "") -> Bugs:
    return (of_parts(name, n=n, names=names),)


def _compare(heads: Heads, out: Tensor, in_list: bool) -> Rebuilt:
    right = heads.right()
    if right is not None and same_but_for_rounding(out, right, out.dtype):
        evidence = f"the output is {heads}: all {out.numel()} numbers within "
        return Rebuilt(Finding(HEADS, True, f"{evidence}{tolerance(right):.0e}."), {})
    finding = Finding(HEADS, False, f"the output is not {heads}: {_difference(heads, out)}")
    for bugs, result in heads.wrong():
        if same_but_for_rounding(out, result, out.dtype):
            told = {bug.name: f"with this the numbers are the same. {bug.message}" for bug in bugs}
            mixed = () if in_list else ("heads added", "heads averaged")
            return Rebuilt(finding, told, all(bug.meant or bug.name in mixed for bug in bugs))
    return Rebuilt(finding, {})


def _difference(heads: Heads, out: Tensor) -> str:
    right = heads.right()
    if right is None:
        width = sum(one.shape[-1] for one in heads.outputs.values())
        taken = heads.layer.in_features
        return f"the heads make {width} channels, and {heads.projection} takes {taken}."
    if out.shape != right.shape:
        return f"it is {tuple(out.shape)}, not {tuple(right.shape)}."
    return matches_reference(out, right, tolerance(right)).evidence
