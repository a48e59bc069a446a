"""Judge the pages of site/ with Lighthouse: ``python -m tools.lighthouse [index | 03 ...]``.

Lighthouse loads a page as a cheap phone does: 1.6 Mbit/s, 150 ms to the server, a processor four
times slower than this one. It computes these times from what it sees at full speed ("simulate", its
default). Each page is loaded three times, and the median counts. Other work on this machine costs
points of performance, so nothing else may run meanwhile.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from tools import browser, notebooks
from tools.lighthouse.server import serve
from tools.site.__main__ import SITE

INSTALLED = notebooks.ROOT / ".venv" / "lighthouse"
REPORTS = notebooks.ROOT / "build" / "lighthouse"
RUNS = 3
START = "index"
KINDS = ("performance", "accessibility", "best-practices")
LEAST = {"accessibility": 100, "best-practices": 100}
LEAST_PERFORMANCE = {START: 95}  # and any notebook:
OF_A_NOTEBOOK = 85

Scores = dict[str, float]


def least(page: str) -> Scores:
    """The points that a page needs."""
    return {"performance": LEAST_PERFORMANCE.get(page, OF_A_NOTEBOOK), **LEAST}


def measure(address: str, report: Path, chromium: str) -> Scores:
    """Load a page once; its points, of 100 each. The whole report stays beside the others.

    Raises
    ------
    SystemExit
        In one sentence, where Lighthouse gives no points.
    """
    points = report.with_name(f"{report.name}.report.json")
    points.unlink(missing_ok=True)
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # containers and CI
    flags = ["--headless=new", *browser.QUIET, *(["--no-sandbox"] if root else [])]
    ran = subprocess.run(
        [
            "node", str(INSTALLED / "node_modules" / "lighthouse" / "cli" / "index.js"), address,
            "--quiet", "--no-enable-error-reporting", f"--only-categories={','.join(KINDS)}",
            "--output=json", "--output=html", f"--output-path={report}",
            f"--chrome-flags={' '.join(flags)}",
        ],
        env={**os.environ, "CHROME_PATH": chromium},
        capture_output=True,
        text=True,
    )  # fmt: skip
    try:
        found = json.loads(points.read_text("utf-8"))
        return {kind: 100 * found["categories"][kind]["score"] for kind in KINDS}
    except (OSError, ValueError, KeyError, TypeError):
        last = (ran.stderr.strip().splitlines() or ["it said nothing"])[-1]
        notebooks.stop(f"Lighthouse gave no points to {address} ({last}): mend that first.")


def median(runs: list[Scores]) -> Scores:
    """Of each kind the median of some runs."""
    return {kind: statistics.median(run[kind] for run in runs) for kind in KINDS}


def row(page: str, runs: list[Scores]) -> tuple[str, bool]:
    """A line of the table, and whether the page has the points that it needs."""
    scores, needed = median(runs), least(page)
    cells = []
    for kind in KINDS:
        low = "*" if scores[kind] < needed[kind] else " "
        cells.append(f"{scores[kind]:{len(kind)}.0f}{low}")
    performance = ", ".join(f"{run['performance']:.0f}" for run in runs)
    line = f"{page:28}{'  '.join(cells)}  ({performance})"
    return line, all(scores[kind] >= needed[kind] for kind in KINDS)


def chosen(names: list[str]) -> list[str]:
    """The pages that are asked for, all of them for no name."""
    asked = []
    for name in filter(None, names):
        asked += [START] if name == START else [path.stem for path in notebooks.chosen(name)]
    return asked or [START, *(path.stem for path in notebooks.names())]


def main() -> None:
    """Print a line for each page; ends with 1 where one has fewer points than it needs."""
    pages = chosen(sys.argv[1:])
    chromium = browser.executable()
    for there, target in ((SITE / "index.html", "site"), (INSTALLED / "ready", "lighthouse")):
        if not there.exists():
            notebooks.stop(f"{notebooks.shown(there)} is missing: run make {target}.")
    with notebooks.writing(REPORTS):
        REPORTS.mkdir(parents=True, exist_ok=True)
    print(f"A phone on a slow network, as Lighthouse simulates it: medians of {RUNS} (each run)")
    print(f"{'':28}{'   '.join(KINDS)}")
    good = True
    with serve(SITE) as address:
        for page in pages:
            runs = [
                measure(f"{address}/{page}.html", REPORTS / f"{page}-{run + 1}", chromium)
                for run in range(RUNS)
            ]
            line, enough = row(page, runs)
            print(line, flush=True)
            good &= enough
    print(f"Whole reports: {notebooks.shown(REPORTS)}/*.html")
    if not good:
        needed = f"performance {LEAST_PERFORMANCE[START]} ({START}) or {OF_A_NOTEBOOK} (notebooks)"
        notebooks.stop(f"* is too low: a page needs {needed}, and 100 of the others.")


if __name__ == "__main__":
    main()
