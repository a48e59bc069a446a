"""Store what the real model says to the questions of notebook 15: ``python -m tools.real_answers``.

Runs the notebook with the model (`make real`), and writes `helpers/real/answers.json` with every
question that it asks, and `heads.npz` with three heads of one block.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import nbformat
import numpy as np
import torch

from explorers import sentence
from helpers.real import study
from helpers.real.gguf import read_gguf
from tools import notebooks, refresh
from tools.site import nouns

NUMBERS, BYTES = 32, 20  # in one piece of the file


def heads() -> dict[str, np.ndarray]:
    """The bytes of three heads in the file, and the vectors (T, C) that they read."""
    model, pieces = study.the_model()
    C, n_head, n_kv_head = (model.sizes[name] for name in ("C", "n_head", "n_kv_head"))
    d = C // n_head
    rows = slice(study.HEADS[0] * d, (study.HEADS[-1] + 1) * d)
    group = study.HEADS[0] // (n_head // n_kv_head)
    shared = slice(group * d, (group + 1) * d)
    _, tensors = read_gguf(study.path_of_model())
    names = ("q", "k", "v", "output")
    layer = {name: tensors[f"blk.{study.BLOCK}.attn_{name}.weight"].blocks() for name in names}
    with torch.no_grad():
        x = study.streams(model, pieces.encode(study.TEXT))[study.BLOCK]
        x = model.blocks[study.BLOCK].norm_1(x)[0]
    return {
        "x": x.numpy(),
        "q": layer["q"].reshape(C, -1)[rows],
        "k": layer["k"].reshape(n_kv_head * d, -1)[shared],
        "v": layer["v"].reshape(n_kv_head * d, -1)[shared],
        "o": layer["output"].reshape(C, -1, BYTES)[:, rows.start // NUMBERS : rows.stop // NUMBERS],
    }


def answers() -> dict:
    """Every question that notebook 15 asks, and what the model says."""
    (path,) = notebooks.chosen("15")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answers.jsonl"
        os.environ["ATTENTION_REAL_ANSWERS"] = str(file)
        refresh.execute(nbformat.read(path, 4), notebooks.SOURCE)
        for text in sentence.TEXTS:  # that its live part offers
            study.next_words(text, sentence.WORDS)
            study.last_looks(text, sentence.HEADS)
        nouns.choices()  # that the site offers
        found = {}
        for line in file.read_text(encoding="utf-8").splitlines():
            found |= json.loads(line)
    return dict(sorted(found.items()))


def main() -> None:
    """Store both files."""
    named = os.environ.get("ATTENTION_REAL", "")
    notebooks.one_environment()
    os.environ["ATTENTION_REAL"] = named
    if not study.path_of_model():
        sys.exit("The model is not installed: type make real first.")
    np.savez_compressed(study.ANSWERS.with_name("heads.npz"), **heads())
    study.ANSWERS.unlink(missing_ok=True)  # so that questions follow from new answers only
    found = answers()
    text = ",\n".join(
        f"{json.dumps(question)}: {json.dumps(said, separators=(',', ':'))}"
        for question, said in found.items()
    )
    notebooks.write_whole(study.ANSWERS, f"{{\n{text}\n}}\n")
    print(f"stored: {len(found)} answers, {study.ANSWERS.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
