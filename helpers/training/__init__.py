"""Training a tiny GPT.

- text: `python_help`, `read_text`, `drop_repeats`; `Corpus`, which splits a text; `share_seen`,
  `counting_losses`
- loop: `watched`, `train`, `validation_loss`, `trained_perplexity`; what is shown meanwhile: live
- checkpoint: `load_model`, `save_model`
- shipped: `shipped_model`, which has been trained; `about_shipped_model`
"""

from helpers.training.checkpoint import load_model, save_model
from helpers.training.loop import train, trained_perplexity, validation_loss, watched
from helpers.training.shipped import about_shipped_model, shipped_model
from helpers.training.text import (
    Corpus,
    counting_losses,
    drop_repeats,
    python_help,
    read_text,
    share_seen,
)

__all__ = [
    "Corpus",
    "about_shipped_model",
    "counting_losses",
    "drop_repeats",
    "load_model",
    "python_help",
    "read_text",
    "save_model",
    "share_seen",
    "shipped_model",
    "train",
    "trained_perplexity",
    "validation_loss",
    "watched",
]
