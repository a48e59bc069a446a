"""What was measured once, by a command that takes minutes, and stored with its machine and date."""

import json
from pathlib import Path
from typing import Any

from attention_base.arguments import typed

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks" / "results"


@typed
def measured(name: str) -> dict[str, Any]:
    """Read the results of a benchmark, such as "ablations".

    Returns
    -------
    dict
        With "machine", "date" and "runs", among others; `benchmarks/README.md` explains it.

    Raises
    ------
    FileNotFoundError
        When there are no results of that name.
    """
    path = FOLDER / f"{name}.json"
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.json"))) or "none"
        raise FileNotFoundError(f"There are no results {name!r}; those stored are: {known}.")
    return json.loads(path.read_text(encoding="utf-8"))


@typed
def losses(n_step: int) -> dict[str, tuple[float, float, float]]:
    """The validation losses of the tiny GPT with one part changed, after n_step steps.

    Returns
    -------
    dict of variant -> (mean, lowest, highest)
        Over the seeds of "ablations", with the settings of its first run.
    """
    found = {name: [run["loss"] for run in runs] for name, runs in _by_variant(n_step).items()}
    return {name: (_mean(values), min(values), max(values)) for name, values in found.items()}


@typed
def both_losses(n_step: int) -> dict[str, tuple[float, float]]:
    """The same losses in one pass and from left to right, on a sample of the validation windows.

    Returns
    -------
    dict of variant -> (in one pass, from left to right)
        Means over the seeds.
    """
    return {
        name: (
            _mean([r["loss_of_sample"] for r in runs]),
            _mean([r["left_to_right"] for r in runs]),
        )
        for name, runs in _by_variant(n_step).items()
    }


def ward_losses() -> dict[str, dict[str, float]]:
    """The losses of the wrong attentions of notebook 13 after training, by how they are measured.

    Returns
    -------
    dict of variant -> (dict of way -> loss)
        "right" and the names of `helpers.ward.EIGHT`; means over the seeds. "last steps" is
        the loss on the training text; all others are of one sample of the validation windows.
    """
    ways = {
        "last steps": "training",
        "in one pass": "loss_of_sample",
        "left to right": "left_to_right",
        "in pieces": "in_pieces",
        "with weights": "with_weights",
        "in training": "in_training",
    }
    return {
        variant: {way: _mean([run[name] for run in runs]) for way, name in ways.items()}
        for variant, runs in _grouped(measured("ward")["runs"]).items()
    }


def _by_variant(n_step: int) -> dict[str, list[dict[str, Any]]]:
    """The runs of "ablations" with n_step steps and otherwise the settings of the first one."""
    runs = measured("ablations")["runs"]
    usual = {name: runs[0][name] for name in ("B", "learning_rate", "n_head")} | {"n_step": n_step}
    found = [run for run in runs if all(run[name] == value for name, value in usual.items())]
    if not found:
        known = sorted({run["n_step"] for run in runs})
        raise ValueError(f"n_step must be one of {known}, which were measured, got {n_step}.")
    return _grouped(found)


def _grouped(runs: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        found.setdefault(run["variant"], []).append(run)
    return found


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
