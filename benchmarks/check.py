"""How long does `check` take? At most 0.1 s to pass or name a mistake, 0.3 s for other answers.

A build may take 0.4 s: its class is made in several sizes, and the clinic examines each. So may
13.6, whose answer asks nine attentions in pieces.

Every exercise, with as many threads as a notebook has: an answer that passes, the last of its
mistakes (all others are compared before it), and a wrong answer that is no known mistake. The first
call of an exercise makes its inputs, compiles its mistakes and runs them; later calls remember what
came out. The very first call in a process finds PyTorch cold, too: measured alone, for the slowest.

Run: python benchmarks/check.py [rounds]
"""

import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from lesson import EXERCISES
from lesson.builds import Build

ROUNDS = 9
PROCESSES = 3
WANTED = {"passes": 100, "names a mistake": 100, "other answer": 300}  # milliseconds
LARGE = {id for id, one in EXERCISES.items() if isinstance(one, Build)} | {"13.6"}
OF_LARGE = 400


def answer(exercise, kind):
    """An answer of a kind of `WANTED`."""
    right = exercise.reference

    def other(*arguments):
        out = right(*arguments)
        return [part * 1.01 for part in out] if exercise.several else out * 1.01

    last = exercise.mistakes[-1]
    return {"passes": right, "names a mistake": last.code, "other answer": other}[kind]


def milliseconds(exercise, candidate):
    start = time.perf_counter()
    exercise.check(candidate)
    return 1e3 * (time.perf_counter() - start)


def first_and_later(exercise, kind, rounds):
    """Medians of the first call of fresh copies of an exercise, and of the call after it."""
    pairs = []
    for _ in range(rounds):
        fresh, candidate = replace(exercise), answer(exercise, kind)
        pairs.append((milliseconds(fresh, candidate), milliseconds(fresh, candidate)))
    return [statistics.median(times) for times in zip(*pairs, strict=True)]


def very_first(id, kind):
    """The first check of a new process."""
    code = (
        "from benchmarks.check import EXERCISES, answer, milliseconds\n"
        f"exercise = EXERCISES[{id!r}]\n"
        f"print(milliseconds(exercise, answer(exercise, {kind!r})))"
    )
    root = Path(__file__).resolve().parent.parent
    return float(subprocess.check_output([sys.executable, "-c", code], cwd=root))


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    too_slow = []
    for kind, wanted in WANTED.items():
        times = {id: first_and_later(one, kind, rounds) for id, one in EXERCISES.items()}
        print(f"{kind} (wanted: at most {wanted} ms)")
        for call, name in enumerate(("first call", "later")):
            of_this_call = {id: both[call] for id, both in times.items()}
            slowest = max(of_this_call, key=of_this_call.get)
            median, most = statistics.median(of_this_call.values()), of_this_call[slowest]
            print(
                f"  {name:11} median {median:.1f} ms, the slowest exercise {slowest} {most:.1f} ms"
            )
            for id, took in of_this_call.items():
                if took > (OF_LARGE if id in LARGE else wanted):
                    too_slow.append(f"{id} {kind}")
        slowest = max(times, key=lambda id: times[id][0])
        alone = statistics.median(very_first(slowest, kind) for _ in range(PROCESSES))
        print(f"  {slowest} as the very first call of a process: {alone:.0f} ms")
    raise SystemExit(f"Too slow: {', '.join(too_slow)}" if too_slow else 0)


if __name__ == "__main__":
    main()
