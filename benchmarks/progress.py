"""How long does it take to keep a line of progress? Wanted: at most 2 ms a check, at p95.

The file is new, or has 20 000 lines already (years of work): it is never read to add a line. Beside
it a whole check of the fastest exercise, with and without progress, in turn; and how long a
prediction takes to find its earlier answer in the long file.

Run: python benchmarks/progress.py [rounds]
"""

import contextlib
import io
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from lesson import EXERCISES, check
from lesson.progress_file import SETTING, earlier, keep

ROUNDS = 2000
LINES = 20_000
WANTED = 2.0  # milliseconds
ID = "02.1"


def line() -> None:
    assert keep(ID, "check", "failed", mistake=EXERCISES[ID].mistakes[0].name) == ""


def whole_check() -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        check(ID, EXERCISES[ID].reference)


def milliseconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - start)


def told(what: str, times: list[float]) -> float:
    """Print the median and p95 of some times; returns the latter."""
    p95 = statistics.quantiles(times, n=20)[-1]
    print(f"{what:44} median {statistics.median(times):.3f} ms, p95 {p95:.3f} ms")
    return p95


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        new, long = Path(folder) / "new.jsonl", Path(folder) / "long.jsonl"
        os.environ[SETTING] = str(long)
        for i in range(LINES):
            keep(f"03.p{i % 5}", "predict", "right", answer="b")
        worst = 0.0
        for path in (new, long):
            os.environ[SETTING] = str(path)
            n = len(path.read_bytes().splitlines()) if path.exists() else 0
            worst = max(
                worst, told(f"a line, after {n}", [milliseconds(line) for _ in range(rounds)])
            )
        pairs = []
        for _ in range(rounds // 10):
            os.environ[SETTING] = "0"
            without = milliseconds(whole_check)
            os.environ[SETTING] = str(long)
            pairs.append((without, milliseconds(whole_check)))
        told(f"a whole check of {ID}, not kept", [a for a, _ in pairs])
        told(f"a whole check of {ID}, kept", [b for _, b in pairs])
        print(f"kept / not kept, median of pairs: {statistics.median(b / a for a, b in pairs):.2f}")
        told(
            f"the earlier answer, among {LINES} lines",
            [milliseconds(lambda: earlier("03.p1")) for _ in range(20)],
        )
    raise SystemExit(worst > WANTED)


if __name__ == "__main__":
    main()
