"""The model that ships with the project, in `shipped.pt`; `make model` trains it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from helpers.gpt import TinyGPT
from helpers.training.checkpoint import load_model

PATH = Path(__file__).with_name("shipped.pt")


def shipped_model() -> tuple[TinyGPT, str]:
    """Load the model that ships with the project: it has learned from windows of 256 letters.

    Returns
    -------
    model : TinyGPT
        In eval mode. Its parameters have been rounded to float16, and are float32 again.
    letters : str
        Its vocabulary, for `encode` and `decode` of `helpers.gpt`. The help texts of another
        version of Python may have a letter that it lacks.
    """
    model, letters = load_model(PATH)
    return model.eval(), letters


def about_shipped_model() -> dict[str, Any]:
    """How the model that ships was trained.

    Returns
    -------
    dict
        ``seconds`` of training, the ``processor``, the ``date``, the versions of ``python`` and
        ``torch``; ``n_step``, ``B``, ``learning_rate`` and ``seed``; ``validation_loss``, with
        the parameters as they are stored.
    """
    return json.loads(PATH.with_suffix(".json").read_text(encoding="utf-8"))
