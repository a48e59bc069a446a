"""The model in the page: its parameters as a script, and what it writes when the site is built."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from helpers.gpt import TinyGPT, decode, encode
from helpers.same import one_thread
from helpers.training import about_shipped_model, shipped_model

PROMPT = "The cat was warm, so it "


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


def shipped() -> Shown:
    """The model that ships with the project."""
    return Shown(*shipped_model(), about_shipped_model())
