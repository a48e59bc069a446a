"""Train the model that ships with the project: ``python -m tools.train_model``, about two minutes.

The start page of the site says how many seconds it took: run it on a quiet machine.
"""

import json
import os
import platform
import re
import time
from datetime import date
from functools import partial
from pathlib import Path

import torch

from attention_base.same import one_thread, seed_all
from helpers.gpt import TinyGPT
from helpers.training import (
    Corpus,
    drop_repeats,
    load_model,
    python_help,
    save_model,
    train,
    validation_loss,
    watched,
)
from helpers.training.shipped import PATH
from tools import notebooks

CONTEXT_LENGTH = 256
SETTING = {"n_step": 2600, "B": 4, "learning_rate": 0.01, "seed": 0}


def trained(corpus: Corpus) -> tuple[TinyGPT, float]:
    """Train a model; also say how many seconds that took."""
    n_step, B, lr, seed = SETTING.values()
    seed_all(seed)
    model, generator = TinyGPT(len(corpus.letters), CONTEXT_LENGTH), torch.Generator()
    draw = partial(corpus.batch, B, CONTEXT_LENGTH, generator.manual_seed(seed))
    start = time.perf_counter()
    with one_thread():
        watched(partial(train, lr=lr), model, draw, n_step)
    return model, time.perf_counter() - start


def processor() -> str:
    """The name of this machine's processor."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists() and (found := re.search(r"model name\s*: (.+)", cpuinfo.read_text())):
        return found[1]
    return platform.processor() or platform.machine()


def main() -> None:
    """Train, save, and print how it went."""
    corpus = Corpus(drop_repeats(python_help()))
    model, seconds = trained(corpus)
    try:
        save_model(PATH, model, corpus.letters, half=True)
    except OSError as error:
        notebooks.stop(str(error))
    rounded, _ = load_model(PATH)
    about = {
        "seconds": round(seconds, 1),
        "validation_loss": round(validation_loss(rounded, corpus), 4),
        **SETTING,
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "processor": f"{processor()}, one of {os.cpu_count()} cores",
    }
    text = json.dumps(about, indent=1)
    notebooks.write_whole(PATH.with_suffix(".json"), f"{text}\n")
    print(text)
    print(f"Written to {notebooks.shown(PATH)}, {PATH.stat().st_size / 1000:.0f} KB.")


if __name__ == "__main__":
    main()
