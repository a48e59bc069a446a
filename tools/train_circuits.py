"""Train the models of notebook 12, and store them, one of them at each moment of its training.

``python -m tools.train_circuits``, about a minute.
"""

import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from string import ascii_lowercase

import numpy as np
import torch
from torch import Tensor

from attention_base.same import seed_all
from helpers.circuits import (
    AttentionOnly,
    equal_weights,
    followers,
    held_out,
    induction_score,
    on_known_letters,
    patch,
    previous_token_score,
    tokens_back,
    train_on_repeats,
    trained,
)
from helpers.circuits.moments import PATH, PATTERNS, STEPS, TEXT, WORD, TrainingMoments
from helpers.circuits.trained import VARIANTS, Variant
from helpers.gpt import encode
from tools import notebooks


@contextmanager
def patched(model: AttentionOnly, names: tuple[str, str], period: Tensor) -> Iterator[None]:
    """Put patterns into both layers, by name; "learned" leaves a layer as it is."""
    exact = tokens_back({1: 1.0}), followers(period)
    with ExitStack() as stack:
        for layer, name in enumerate(names):
            if name != "learned":
                pattern = exact[layer] if name == "exact" else equal_weights
                stack.enter_context(patch(model, layer, pattern))
        yield


def moments() -> dict[str, np.ndarray]:
    """Train two layers, and measure them at each moment: the arrays of `TrainingMoments`."""
    seed_all()
    model = AttentionOnly(n_layer=2)
    ids, period = held_out()
    ids = ids[:, :-1]
    text = encode(TEXT, ascii_lowercase)[None]
    found: dict[str, list] = {name: [] for name in TrainingMoments._fields}

    def watch(step: int) -> None:
        for names in product(PATTERNS, PATTERNS):
            with patched(model, names, period):
                loss, right = on_known_letters(model)
                first, second = model.attention_weights(ids)[:, :, 0]  # (B, T, T)
            with patched(model, names, torch.tensor([[len(WORD)]])):
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
    for name in ("previous_token_score", "layer_0"):  # the same for each pattern of layer 1
        arrays[name] = arrays[name][:, :, 0]
    return arrays


def parameters(variant: Variant) -> dict[str, Tensor]:
    """Train a model, and round its parameters to float16."""
    return {name: value.half() for name, value in variant.train().state_dict().items()}


def main() -> None:
    """Train, store, and print how it went."""
    arrays = moments()
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    notebooks.write_whole(PATH, file.getvalue())
    for pattern, shares in zip(PATTERNS, arrays["right"][-1], strict=True):
        told = ", ".join(
            f"{share:.3f} {name}" for name, share in zip(PATTERNS, shares, strict=True)
        )
        print(f"Layer 0 {pattern}: the share right with layer 1 is {told}.")
    file = io.BytesIO()
    torch.save({name: parameters(variant) for name, variant in VARIANTS.items()}, file)
    notebooks.write_whole(trained.PATH, file.getvalue())
    for path in (PATH, trained.PATH):
        print(f"Written to {notebooks.shown(path)}, {path.stat().st_size / 1000:.0f} KB.")


if __name__ == "__main__":
    main()
