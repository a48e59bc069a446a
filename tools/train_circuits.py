"""Train two layers of attention on letters that repeat, and store what they were on the way.

``python -m tools.train_circuits``, about half a minute.
"""

import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from string import ascii_lowercase

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from helpers.circuits import (
    AttentionOnly,
    induction_score,
    on_known_letters,
    patch,
    previous_token_score,
    repeated,
    train_on_repeats,
)
from helpers.circuits.moments import PATH, PATTERNS, STEPS, TEXT, WORD, TrainingMoments
from helpers.gpt import encode
from helpers.same import seed_all
from tools import notebooks


def fixed(pattern: str, layer: int, T: int, period: Tensor) -> Tensor:
    """Make the pattern "exact" or "equal" of a layer, from 0, for texts with periods (B, 1)."""
    t = torch.arange(T)
    if pattern == "equal":
        return torch.ones(T, T).tril() / (t + 1)[:, None]
    if layer == 0:
        return F.one_hot((t - 1).clamp(min=0), T).float()
    follower = torch.where(t >= period, t - period + 1, t)  # (B, T)
    return F.one_hot(follower, T).float()[:, None]  # the same for all heads


@contextmanager
def patched(
    model: AttentionOnly, patterns: tuple[str, str], T: int, period: Tensor
) -> Iterator[None]:
    """Put patterns into both layers; "learned" leaves a layer as it is."""
    with ExitStack() as stack:
        for layer, pattern in enumerate(patterns):
            if pattern != "learned":
                stack.enter_context(patch(model, layer, fixed(pattern, layer, T, period)))
        yield


def train() -> dict[str, np.ndarray]:
    """Train a model, and measure it at each moment: the arrays of `TrainingMoments`."""
    seed_all(0)
    model = AttentionOnly(n_layer=2)
    ids, period = repeated(200, torch.Generator().manual_seed(1))  # those of on_known_letters
    ids = ids[:, :-1]
    text, word_period = encode(TEXT, ascii_lowercase)[None], torch.tensor([[len(WORD)]])
    found: dict[str, list] = {name: [] for name in TrainingMoments._fields}

    def watch(step: int) -> None:
        for patterns in product(PATTERNS, PATTERNS):
            with patched(model, patterns, ids.shape[1], period):
                loss, right = on_known_letters(model)
                first, second = model.attention_weights(ids)[:, :, 0]  # (B, T, T)
            with patched(model, patterns, len(TEXT), word_period):
                maps = model.attention_weights(text)[:, 0, 0].half().numpy()  # (2, T, T)
            scores = previous_token_score(first).mean(), induction_score(second, period).mean()
            values = *map(np.float32, (loss, right, *scores)), *maps
            for name, value in zip(found, values, strict=True):
                found[name].append(value)

    train_on_repeats(model, STEPS[-1], watch=watch)
    n = len(PATTERNS)
    arrays = {
        name: np.array(values).reshape(-1, n, n, *values[0].shape) for name, values in found.items()
    }
    for name in ("previous_token_score", "layer_1"):  # the same for each pattern of layer 2
        arrays[name] = arrays[name][:, :, 0]
    return arrays


def main() -> None:
    """Train, store, and print how it went."""
    arrays = train()
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    notebooks.write_whole(PATH, file.getvalue())
    for pattern, shares in zip(PATTERNS, arrays["right"][-1], strict=True):
        told = ", ".join(
            f"{share:.3f} {name}" for name, share in zip(PATTERNS, shares, strict=True)
        )
        print(f"Layer 1 {pattern}: the share right with layer 2 is {told}.")
    print(f"Written to {notebooks.shown(PATH)}, {PATH.stat().st_size / 1000:.0f} KB.")


if __name__ == "__main__":
    main()
