"""How long does `check` take? Wanted: 0.1 s to pass or name a mistake, 0.3 s for other answers.

Every exercise, with as many threads as a notebook has: an answer that passes, the last of its
mistakes (which all others are compared before), and a wrong answer that is no known mistake. The
first call of an exercise makes its inputs, compiles its mistakes and runs them; later calls
remember what came out. The very first call in a new process also finds cold caches.

Run: python benchmarks/check.py [rounds]
"""

import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

ROUNDS = 9
PROCESSES = 3
WANTED = {"passes": 0.1, "names a mistake": 0.1, "other answer": 0.3}


def answers(exercise):
    """An answer of each kind."""
    right = exercise.reference

    def other(*arguments):
        out = right(*arguments)
        return [part * 1.01 for part in out] if exercise.several else out * 1.01

    return {"passes": right, "names a mistake": exercise.mistakes[-1].code, "other answer": other}


def seconds(exercise, answer):
    start = time.perf_counter()
    exercise.check(answer)
    return time.perf_counter() - start


def first_and_later(exercise, answer):
    """Seconds of the first call of a fresh copy of an exercise, and of the next one."""
    fresh = replace(exercise)
    return seconds(fresh, answer), seconds(fresh, answer)


def worst(times):
    """The exercise that takes longest, as text."""
    id = max(times, key=times.get)
    return f"{statistics.median(times.values()) * 1e3:4.0f} ms, the worst {id} {times[id] * 1e3:.0f}"


def very_first(id, kind):
    """Milliseconds of the first check of a new process."""
    code = f"import benchmarks.check as b; b.print_very_first({id!r}, {kind!r})"
    root = Path(__file__).resolve().parent.parent
    return float(subprocess.check_output([sys.executable, "-c", code], cwd=root))


def print_very_first(id, kind):
    from helpers.lesson import EXERCISES

    exercise = EXERCISES[id]
    print(1e3 * seconds(exercise, answers(exercise)[kind]))


def main():
    from helpers.lesson import EXERCISES

    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    slow = []
    for kind, wanted in WANTED.items():
        first, later = {}, {}
        for id, exercise in EXERCISES.items():
            answer = answers(exercise)[kind]
            pairs = [first_and_later(exercise, answer) for _ in range(rounds)]
            first[id], later[id] = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(f"{kind:15} first call {worst(first)}; later {worst(later)} (wanted: {wanted * 1e3:.0f})")
        id = max(first, key=first.get)
        alone = statistics.median(very_first(id, kind) for _ in range(PROCESSES))
        print(f"{'':15} {id} as the very first call of a process: {alone:.0f} ms")
        slow += [id] * (first[id] > wanted)
    raise SystemExit(bool(slow))


if __name__ == "__main__":
    main()
