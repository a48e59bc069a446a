"""What training and its losses tell of the eight wrong attentions of notebook 13.

Each is trained in the place of the right one, in the setting of `ablations.py`, with three seeds
and 2 heads of keys for 4 of queries. Then the same loss is measured in each way in which such a
model is used: on whole windows, left to right, in pieces with kept keys and values, while the
weights are asked for, and in training mode. A right attention gives one loss in all of them.

The losses do not depend on the machine's load. Together they take about five minutes on one core.

Run: python benchmarks/ward.py [--quick]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from attention_base.same import one_thread
from benchmarks.ablations import EVERY_WINDOW, Job, T, corpus, cross_entropy, left_to_right, trained
from benchmarks.training import record
from helpers.gpt import TinyGPT
from helpers.training import validation_loss
from helpers.ward import EIGHT, GPT, broken

SEEDS = 3
N_KV_HEAD = 2
PIECES = [16, 1, 16, 1, 16, 14]  # letters; together T
LAST = 50  # steps, whose mean is the training loss at the end
VARIANTS = {"right": None} | {name: name for name in EIGHT}


def measure(job: Job) -> dict[str, Any]:
    """Train one variant and measure it."""
    torch.manual_seed(job.seed)
    model = TinyGPT(len(corpus().letters), T, n_head=job.n_head)
    make, C = broken(VARIANTS[job.variant]), model.config["C"]
    model = GPT(model, [make(C, job.n_head, N_KV_HEAD) for _ in model.blocks])
    losses = trained(job, model)
    model.eval()
    found = {
        "training": sum(losses[-LAST:]) / len(losses[-LAST:]),
        "loss": validation_loss(model, corpus()),
    }
    sample = corpus().windows(T)[::EVERY_WINDOW]
    ids = sample[:, :-1]
    with one_thread(), torch.no_grad():
        logits = {
            "loss_of_sample": model(ids),
            "left_to_right": left_to_right(model, ids),
            "in_pieces": in_pieces(model, ids),
            "with_weights": model(ids, need_weights=True),
            "in_training": model.train()(ids),  # the last: a batch norm changes in it
        }
    found |= {name: cross_entropy(given, sample).item() for name, given in logits.items()}
    return job._asdict() | {name: round(value, 4) for name, value in found.items()}


def in_pieces(model: GPT, ids: Tensor) -> Tensor:
    """Logits (B, T, V), computed piece by piece with kept keys and values."""
    kept: list[list] = [[] for _ in model.attentions]
    logits, start = [], 0
    for piece in ids.split(PIECES, dim=1):
        logits.append(model(piece, start, kept))
        start += piece.shape[1]
    return torch.cat(logits, dim=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one seed, 20 steps, nothing stored")
    quick = parser.parse_args().quick
    jobs = [Job(name, seed) for name in VARIANTS for seed in range(SEEDS)]
    if quick:
        jobs = [Job(name, 0, n_step=20) for name in VARIANTS]
    runs: list[dict[str, Any]] = []
    for job in jobs:
        runs.append(measure(job))
        losses = {name: value for name, value in runs[-1].items() if name not in Job._fields}
        if len(runs) == 1:
            print(f"{'variant':40}seed " + "".join(f"{name:>16}" for name in losses))
        numbers = "".join(f"{value:16.3f}" for value in losses.values())
        print(f"{job.variant:40}{job.seed:4} {numbers}", flush=True)
    if not quick:
        print("stored:", record.write("ward", record.conditions() | {"runs": runs}))


if __name__ == "__main__":
    main()
