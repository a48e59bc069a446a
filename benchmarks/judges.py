"""Which bugs of an attention are found, and named, by attention-clinic and by two other judges.

torchtest2 (checks of any model) and torch-judge (tests of exercises) come from PyPI; this script
installs them into build/judges, without their requirements. Each judge gets the modules of
benchmarks/judging/cases.py: bugs from public threads, a list of our own, and right modules. A bug
is found where a judge fails the module (the clinic: broken, or named as different), and named
where one of the case's words stands in what the judge says is wrong.

torch-judge has tests for an attention without a mask, for a causal function of (Q, K, V), and for a
pre-norm block. An attention gets the first two, as far as its steps allow, a block the third; a
right module of another form cannot be given to it.

Run: python benchmarks/judges.py [--quick]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from attention_clinic import diagnose
from benchmarks.judging.cases import N_HEAD, RIGHT, STANDARD, THREADS, Attention, Block, C, Case
from benchmarks.training import record

FOLDER = Path(__file__).resolve().parent.parent / "build" / "judges"
PACKAGES = ("torchtest2==0.1.0", "torch-judge==0.1.1")
LISTS = {"threads": THREADS, "standard": STANDARD, "right": RIGHT}


def install() -> None:
    """Put the other judges where they can be imported."""
    if not FOLDER.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--target", str(FOLDER), *PACKAGES], check=True)
    sys.path.append(str(FOLDER))


def clinic(case: Case) -> str | None:
    """What attention-clinic finds wrong, "" for nothing."""
    module = case.make()
    report = diagnose(module, C=C, n_head=getattr(module, "n_head", N_HEAD), causal=case.causal)
    if report.status in ("broken", "different"):
        return ", ".join(report.bugs) or report.status
    return ""


def torchtest2(case: Case) -> str | None:
    """What torchtest2 fails; its warnings do not count, as it says that they may be meant."""
    from torchtest2 import check_model

    report = check_model(case.make(), torch.randn(4, 8, C))
    return "; ".join(f"{one.name}: {one.message}" for one in report.failures)


def torch_judge(case: Case) -> str | None:
    """What torch-judge fails; None where its tests cannot be given such a module."""
    made = case.make
    if not (isinstance(made, type) and issubclass(made, (Attention, Block))):
        return None
    if issubclass(made, Block):
        return failed("gpt2_block", made)
    if made.forward is not Attention.forward:
        return None
    module = made(C, 1)  # for the function, one head

    def causal_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q, k, v = module.roles(*(z[:, None] for z in (q, k, v)))
        return (module.weights(module.scores(q, k)) @ v)[:, 0]

    module.causal = True
    said = failed("mha", lambda d_model, num_heads: made(d_model, num_heads, causal=False))
    return said or (failed("causal_attention", causal_attention) if case.causal else "")


def failed(task: str, made: Callable) -> str:
    """What the tests of a task say against a class or a function."""
    from torch_judge.tasks import get_task

    tests = get_task(task)
    for test in tests["tests"]:
        try:
            exec(test["code"].replace("{fn}", "made"), {"made": made})
        except Exception as error:
            return f"{test['name']}: {error}"
    return ""


JUDGES = {"attention-clinic": clinic, "torchtest2": torchtest2, "torch-judge": torch_judge}


def judged(judge: str, name: str, case: Case) -> dict[str, Any]:
    """One case before one judge, as a row of the results."""
    torch.manual_seed(0)
    start = time.perf_counter()
    said = JUDGES[judge](case)
    seconds = time.perf_counter() - start
    named = said and any(word in said.lower() for word in case.words.split())
    return {
        "list": name,
        "case": case.told,
        "thread": case.thread,
        "judge": judge,
        "found": None if said is None else bool(said),
        "named": bool(named),
        "said": said and " ".join(said.split())[:160],
        "seconds": round(seconds, 2),
    }


def summary(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each judge and list: how many it was given, found and named, and its median time."""
    rows = []
    for judge in JUDGES:
        for name in LISTS:
            given = [
                one
                for one in runs
                if (one["judge"], one["list"]) == (judge, name) and one["found"] is not None
            ]
            rows.append(
                {
                    "judge": judge,
                    "list": name,
                    "of": len(LISTS[name]),
                    "given": len(given),
                    "found": sum(one["found"] for one in given),
                    "named": sum(one["named"] for one in given),
                    "seconds": round(statistics.median(one["seconds"] for one in given), 2),
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="every fifth case, nothing stored")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    install()
    runs = []
    for name, cases in LISTS.items():
        for case in cases[:: 5 if asked.quick else 1]:
            for judge in JUDGES:
                runs.append(run := judged(judge, name, case))
                print(f"{name:9} {case.told:45.45} {judge:17} {run['said']}", flush=True)
    for row in summary(runs):
        print(row)
    if not asked.quick:
        measured = record.conditions() | {"packages": PACKAGES, "summary": summary(runs)}
        print("stored:", record.write("judges", measured | {"runs": runs}))


if __name__ == "__main__":
    main()
