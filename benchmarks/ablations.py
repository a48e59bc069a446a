"""What each part of TinyGPT is worth, and what cheats show: validation losses after training.

Each variant is TinyGPT with one change, trained on the texts behind Python's `help`,
repeated paragraphs dropped, with three seeds or more. Its loss is measured in two ways: in
parallel, as everybody does, and left to right, when the model is given only what stands before the
letter that it has to guess. An honest model has the same loss both ways. The prefix test asks for
the same before any training: do the logits change when everything after them is cut off?

The losses do not depend on the machine's load, but a little on Python's version (the texts) and on
the processor. Together they take some minutes on two quiet cores.

Run: python benchmarks/ablations.py [--quick]
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from attention_base.same import one_thread
from benchmarks.training import record
from helpers import positions
from helpers.attention import Block, MultiHeadAttention, attention, causal_mask, window_mask
from helpers.gpt import TinyGPT
from helpers.training import (
    Corpus,
    counting_losses,
    drop_repeats,
    python_help,
    train,
    validation_loss,
    watched,
)

T = 64
EVERY_WINDOW = 5  # left to right costs T passes, so every fifth window of the validation text
UNTRAINED = 8  # windows of the prefix test


# ---------------------------------------------------------------- changed attention


def no_scaling(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax((q @ k.mT).masked_fill(~mask, -math.inf), dim=-1) @ v


def causal_mean(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return mask / mask.sum(dim=-1, keepdim=True) @ v


def key_for_value(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return attention(q, k, k, mask)[0]


def weights_transposed(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return attention(q, k, v, mask)[1].mT @ v


def softmax_over_queries(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-2) @ v


def mask_after_softmax(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0) @ v


def right(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return attention(q, k, v, mask)[0]


class ChangedAttention(MultiHeadAttention):
    """Multi-head attention with another formula, or with `view` where axes have to be swapped.

    ``view`` is "split", "merge", "both" or "".
    """

    def __init__(
        self, C: int, n_head: int, *, formula: Callable[..., Tensor] = right, view: str = ""
    ) -> None:
        super().__init__(C, n_head, rotary=True)
        self.formula, self.view = formula, view

    def forward(self, x: Tensor, *, mask: Tensor | str | None = "causal") -> Tensor:
        """(B, T, C) -> (B, T, C); causal whatever the mask."""
        q, k, v = (self._split(layer(x)) for layer in (self.query, self.key, self.value))
        q, k = positions.rotary(q), positions.rotary(k)
        out = self.formula(q, k, v, causal_mask(x.shape[1]))  # (B, n_head, T, head_size)
        if self.view in ("merge", "both"):
            return self.proj(out.contiguous().view(x.shape))
        return self.proj(out.transpose(1, 2).flatten(2))

    def _split(self, z: Tensor) -> Tensor:
        if self.view in ("split", "both"):
            B, T, C = z.shape
            return z.view(B, self.n_head, T, C // self.n_head)
        return super()._split(z)


class NoAttention(MultiHeadAttention):
    """Adds nothing to the residual stream."""

    def forward(self, x: Tensor, *, mask: Tensor | str | None = "causal") -> Tensor:
        """(B, T, C) -> zeros."""
        return torch.zeros_like(x)


class NoResidual(Block):
    """A block that does not add to the tokens, but replaces them."""

    def forward(self, x: Tensor, **options: Any) -> Tensor:
        """(B, T, C) -> (B, T, C), with the options of `Block`."""
        return self.feed_forward(self.norm_2(self.attention(self.norm_1(x), **options)))


# ---------------------------------------------------------------- the variants


def replace_attention(model: TinyGPT, make: Callable[..., MultiHeadAttention]) -> None:
    """Give every block another attention, with the weights of the old one."""
    for block in model.blocks:
        old = block.attention
        block.attention = make(old.query.in_features, old.n_head)
        block.attention.load_state_dict(old.state_dict())


def changed(**change: Any) -> Callable[[TinyGPT], None]:
    return partial(replace_attention, make=partial(ChangedAttention, **change))


def without_positions(model: TinyGPT) -> None:
    for block in model.blocks:
        block.attention.rotary = False


def small_positions(model: TinyGPT) -> None:
    nn.init.normal_(model.positions.weight, std=0.02)  # as GPT-2's


def without_residual(model: TinyGPT) -> None:
    for block in model.blocks:
        block.__class__ = NoResidual


class Masked(nn.Module):
    """A model that is always given the same kind of mask."""

    def __init__(self, model: TinyGPT, mask: Callable[[int], Tensor | str | None]) -> None:
        super().__init__()
        self.model, self.mask, self.context_length = model, mask, model.context_length

    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) -> (B, T, V)."""
        return self.model(ids, mask=self.mask(ids.shape[1]))


class Variant(NamedTuple):
    """A change of TinyGPT, or the mask that it is given: T -> mask."""

    change: Callable[[TinyGPT], None] = lambda model: None
    mask: Callable[[int], Tensor | str | None] = lambda T: "causal"
    rotary: bool = True


VARIANTS = {
    "right": Variant(),
    "no attention": Variant(partial(replace_attention, make=NoAttention)),
    "causal mean": Variant(changed(formula=causal_mean)),
    "no positions": Variant(without_positions),
    "learned positions": Variant(rotary=False),
    "learned positions from 0.02": Variant(small_positions, rotary=False),
    "no residual": Variant(without_residual),
    "no scaling": Variant(changed(formula=no_scaling)),
    "window of 4": Variant(mask=partial(window_mask, window=4)),
    "no mask": Variant(mask=lambda T: None),
    "softmax over queries": Variant(changed(formula=softmax_over_queries)),
    "mask after softmax": Variant(changed(formula=mask_after_softmax)),
    "view in merge": Variant(changed(view="merge")),
    "view in split": Variant(changed(view="split")),
    "view in both": Variant(changed(view="both")),
    "key for value": Variant(changed(formula=key_for_value)),
    "weights transposed": Variant(changed(formula=weights_transposed)),
}


class Job(NamedTuple):
    """One training."""

    variant: str
    seed: int
    n_step: int = 400
    B: int = 16
    learning_rate: float = 0.005
    n_head: int = 4


def jobs() -> list[Job]:
    """All trainings of the full measurement; what the notebook shows comes first."""
    return [
        *(Job("right", seed) for seed in range(5)),
        *(Job(name, seed) for name in list(VARIANTS)[1:] for seed in range(3)),
        *(Job("mask after softmax", seed, n_step=200) for seed in range(3)),
        *(Job("right", seed, learning_rate=0.01) for seed in range(5)),
        *(Job("right", s, learning_rate=lr, n_head=2) for lr in (0.005, 0.01) for s in range(3)),
        *(Job(name, s, n_step=1600) for name in ("right", "window of 4") for s in range(3)),
    ]


# ---------------------------------------------------------------- measuring


@cache
def corpus() -> Corpus:
    return Corpus(drop_repeats(python_help()))


def trained(job: Job, model: nn.Module) -> list[float]:
    """Train a model with the settings of a job; its losses."""
    draw = partial(corpus().batch, job.B, T, torch.Generator().manual_seed(job.seed))
    with one_thread():
        return watched(partial(train, lr=job.learning_rate), model, draw, job.n_step)


def measure(job: Job) -> dict[str, Any]:
    """Train one variant and measure it."""
    variant = VARIANTS[job.variant]
    torch.manual_seed(job.seed)
    gpt = TinyGPT(len(corpus().letters), T, n_head=job.n_head, rotary=variant.rotary)
    variant.change(gpt)
    model = Masked(gpt, variant.mask)
    sample = corpus().windows(T)[::EVERY_WINDOW]
    few = sample[:UNTRAINED, :-1]
    with one_thread(), torch.no_grad():
        untrained = largest_difference(model(few), left_to_right(model, few))
    trained(job, model)
    loss = validation_loss(model, corpus())
    with one_thread(), torch.no_grad():
        parallel, guessed = model(sample[:, :-1]), left_to_right(model, sample[:, :-1])
    found = {
        "loss": loss,
        "loss_of_sample": cross_entropy(parallel, sample).item(),
        "left_to_right": cross_entropy(guessed, sample).item(),
    }
    found = {name: round(value, 4) for name, value in found.items()}
    found["prefix_untrained"] = untrained
    found["prefix_trained"] = largest_difference(parallel, guessed)
    return job._asdict() | found


def cross_entropy(logits: Tensor, windows: Tensor) -> Tensor:
    """Logits (B, T, V) and windows (B, T + 1) -> the mean loss."""
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def left_to_right(logits: Callable[[Tensor], Tensor], ids: Tensor) -> Tensor:
    """Logits (B, T, V), each computed without the letters behind it: T passes instead of one."""
    return torch.stack([logits(ids[:, : t + 1])[:, -1] for t in range(ids.shape[1])], dim=1)


def largest_difference(a: Tensor, b: Tensor) -> float:
    return float(f"{(a - b).abs().max().item():.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one seed, 20 steps, nothing stored")
    quick = parser.parse_args().quick
    todo = [Job(name, 0, n_step=20) for name in VARIANTS] if quick else jobs()
    torch.set_num_threads(1)
    print(f"{'variant':28}steps  B  rate heads seed   loss  sample  left to right  prefix test")
    runs = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for run in pool.map(measure, todo):
            runs.append(run)
            print(
                f"{run['variant']:28}{run['n_step']:5}{run['B']:3}{run['learning_rate']:6}"
                f"{run['n_head']:6}{run['seed']:5}{run['loss']:7.3f}{run['loss_of_sample']:8.3f}"
                f"{run['left_to_right']:15.3f}  {run['prefix_untrained']:.0e} -> "
                f"{run['prefix_trained']:.0e}",
                flush=True,
            )
    counting = [round(loss, 4) for loss in counting_losses(corpus(), 6)]
    print("counting with 0 to 6 letters:", counting)
    if not quick:
        found = {"letters": len(corpus().letters), "counting": counting, "runs": runs}
        print("stored:", record.write("ablations", record.conditions() | found))


if __name__ == "__main__":
    main()
