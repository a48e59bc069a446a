"""Models that have learned to go on with repeated letters, in `trained.pt`; `make circuits`.

Notebook 12 trains the others itself.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch

from attention_base.arguments import typed
from helpers.circuits.interventions import patch
from helpers.circuits.patterns import Pattern, tokens_back
from helpers.circuits.repeats import N_LETTER, AttentionOnly, train_on_repeats

PATH = Path(__file__).with_name("trained.pt")


@dataclass(frozen=True)
class Variant:
    """A model of two layers, and how it is trained."""

    n_letter: int = N_LETTER
    n_step: int = 200
    distinct: bool = False  # no letter twice in a period
    first: Pattern | None = None  # stands in layer 0 from the first step on

    def new(self) -> AttentionOnly:
        """The model before its training; its parameters come from PyTorch's random numbers."""
        return AttentionOnly(2, n_letter=self.n_letter)

    def train(self, seed: int = 0) -> AttentionOnly:
        """Make a new model, and train it."""
        torch.manual_seed(seed)
        model = self.new()
        with patch(model, 0, self.first) if self.first else nullcontext():
            train_on_repeats(model, self.n_step, distinct=self.distinct)
        return model


VARIANTS = {
    "first layer by hand": Variant(first=tokens_back({1: 1.0})),
    "letters that occur once": Variant(n_letter=60, distinct=True),
}


@typed
def trained_on_repeats(name: str) -> AttentionOnly:
    """Load a model of two layers that was trained on repeated letters.

    Parameters
    ----------
    name
        "first layer by hand": its first layer had to attend to the token before, from the first
        step on; it needs ``patch(model, 0, tokens_back({1: 1.0}))`` afterwards, too.
        "letters that occur once": of 60, none occurred twice in a period.

    Raises
    ------
    ValueError
        When there is no such model.
    """
    if name not in VARIANTS:
        raise ValueError(f"There is no model {name!r}; there are {', '.join(map(repr, VARIANTS))}.")
    with torch.random.fork_rng(devices=[]):  # its first, random parameters do not matter
        model = VARIANTS[name].new()
    state = torch.load(PATH, weights_only=True)[name]
    model.load_state_dict({key: value.float() for key, value in state.items()})
    return model
