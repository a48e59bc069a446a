"""What our rooms add to the import of torch, matplotlib and ipywidgets; wanted: at most 0.3 s.

All modules, of which a notebook imports a part: 0.23 to 0.28 s on two cores with 15 notebooks.

Fresh processes, the two imports in turn, so that the machine's noise falls on both; with compiled
files, also where the environment tells Python to keep none.
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path

ROUNDS = 9
WANTED = 0.3
ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("attention_base", "attention_clinic", "explorers", "feedback", "helpers", "lesson")
BASE = "import torch, matplotlib.figure, ipywidgets"


def modules():
    """All modules of these rooms, by name, but those that only start or refuse."""
    left_out = {ROOT / "helpers" / f"{name}.py" for name in ("clinic", "explorers", "lesson")}
    paths = sorted({path for room in ROOMS for path in (ROOT / room).rglob("*.py")} - left_out)
    paths = [path for path in paths if path.name != "__main__.py"]
    parts = [path.relative_to(ROOT).with_suffix("").parts for path in paths]
    return [".".join(p[:-1] if p[-1] == "__init__" else p) for p in parts]


def seconds(code):
    """How long a new Python takes for this code, its own start left out."""
    timed = f"import time; t = time.perf_counter(); {code}; print(time.perf_counter() - t)"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    return float(subprocess.check_output([sys.executable, "-c", timed], cwd=ROOT, env=environment))


def main():
    both = f"{BASE}; import {', '.join(modules())}"
    seconds(both)  # the first one reads from the disk
    pairs = [(seconds(BASE), seconds(both)) for _ in range(ROUNDS)]
    base = [b for b, _ in pairs]
    added = statistics.median(a - b for b, a in pairs)
    print(f"{BASE}: median {statistics.median(base):.2f} s ({min(base):.2f} to {max(base):.2f})")
    print(f"ours add {added:.3f} s (median of {ROUNDS} pairs; wanted: at most {WANTED} s)")
    raise SystemExit(added > WANTED)


if __name__ == "__main__":
    main()
