"""The model in the page: its parameters as a script, and what it writes when the site is built."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from attention_base.same import one_thread
from helpers.gpt import TinyGPT, decode, encode, next_token_probabilities
from helpers.training import about_shipped_model, shipped_model

PROMPT = "Return the number of "
TEMPERATURE = 0.8  # where its slider stands at first
ROWS = 8  # letters that have a bar
NAMES = {" ": "space", "\n": "new line"}


@dataclass
class Shown:
    """A model as the start page shows it.

    Attributes
    ----------
    gpt, letters
        The model and its vocabulary.
    about
        How it was trained, as `helpers.training.shipped.about_shipped_model` says it.
    prompt
        The text that stands there at first.
    """

    gpt: TinyGPT
    letters: str
    about: dict[str, Any]
    prompt: str = PROMPT

    @property
    def size(self) -> int:
        """The number of its parameters."""
        return sum(p.numel() for p in self.gpt.parameters())

    @cached_property
    def written(self) -> str:
        """How it goes on from the prompt: for those who read without JavaScript."""
        ids, drawn = encode(self.prompt, self.letters), torch.Generator().manual_seed(0)
        with one_thread():
            ids = self.gpt.generate(ids[None], 200, temperature=0.5, generator=drawn)[0]
        return decode(ids, self.letters).removeprefix(self.prompt)

    @cached_property
    def next(self) -> list[tuple[str, float, str]]:
        """The likeliest next letters as the page shows them first: name, probability, share."""
        with one_thread():
            logits = self.gpt(encode(self.prompt, self.letters)[None])[0, -1]
            p = next_token_probabilities(logits, TEMPERATURE, len(self.letters)).tolist()
        named = [(NAMES.get(c, c), share) for c, share in zip(self.letters, p, strict=True)]
        named.sort(key=lambda row: -row[1])
        return [(name, share, in_percent(share)) for name, share in named]

    @property
    def others(self) -> str:
        """What the page says of the letters that have no bar."""
        rest = self.next[ROWS:]
        return f"{len(rest)} other letters: {in_percent(sum(share for _, share, _ in rest))}."

    @property
    def script(self) -> str:
        """What static/model.js reads: sizes, vocabulary, and the parameters in float16."""
        parameters = self.gpt.state_dict()
        halves = b"".join(value.half().numpy().tobytes() for value in parameters.values())
        data = {
            "config": self.gpt.config,
            "letters": self.letters,
            "shapes": {name: list(value.shape) for name, value in parameters.items()},
            "weights": base64.b64encode(halves).decode(),
        }
        return f"window.MODEL = {json.dumps(data, ensure_ascii=False)};\n"


def in_percent(share: float) -> str:
    """A probability as static/write.js writes it."""
    return "< 1 %" if share < 0.01 else f"{100 * share:.0f} %"


def shipped() -> Shown:
    """The model that ships with the project."""
    return Shown(*shipped_model(), about_shipped_model())
