"""A student's own file, `work/mine.py`, where a teacher asks: which of its parts pass.

It runs as the student, with limits and from the hub's copy of the project; `main` is what runs
there. What comes back is the student's word, as their code runs in the process that judges it.
"""

import ctypes
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from classroom import WORK, hub_folder, theirs
from lesson.mine import Loaded, builds
from lesson.own_file import NotKept, read

FILE = "mine.py"
SECONDS = 120  # a file with six parts takes 6
LIMITS = {"core": 0, "cpu": 120, "as": 4 * 2**30, "fsize": 10**7, "nofile": 256}  # seconds, bytes
LIMITS |= {"nproc": theirs.PROCESSES}
MOST = 20_000  # bytes of what it says
LETTERS = 200  # of a reason
DONE = "done"
SUBREAPER = 36  # of prctl: whose parent has ended becomes a child of this process


def judged(account: pwd.struct_passwd) -> dict[str, str]:
    """Why each part of a student's file does not pass, "" where it does; or why the file does not.

    It has to be in the student's home.
    """
    path = f"{account.pw_dir}/{WORK}/{FILE}"
    limits = (f"--{name}={most}" for name, most in LIMITS.items())
    with nothing_left(account):
        _, said = theirs.run(
            account,
            *("prlimit", *limits, sys.executable, "-BPm", "classroom.own", path),
            seconds=SECONDS,
            most=MOST,
            HOME=account.pw_dir,
            PYTHONPATH=f"{hub_folder()}/project",
            ATTENTION_PROGRESS="0",  # what runs here is no answer of theirs
            OMP_NUM_THREADS="1",
        )
    lines = [line.partition("\t") for line in said.decode(errors="replace").splitlines()]
    if lines[-1:] != [(DONE, "", "")]:
        return {FILE: f"ended before all was judged, by itself or by a limit ({SECONDS} seconds)"}
    return {name: _shown(why) for name, _, why in lines if name in {FILE, *_parts()}}


def _parts() -> set[str]:
    """The names of what builds ask for."""
    return {id.split(".")[1] for id in builds()}


def _shown(text: str) -> str:
    """A reason as a terminal can show it."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:LETTERS]


@contextmanager
def nothing_left(account: pwd.struct_passwd) -> Iterator[None]:
    """End what a student's file has started, also what has left its group and its parent."""
    system, me = ctypes.CDLL(None), os.getpid()
    system.prctl(SUBREAPER, 1, 0, 0, 0)
    end = time.monotonic() + SECONDS
    find = ["pgrep", f"--parent={me}", f"--uid={account.pw_uid}"]
    try:
        yield
    finally:
        while time.monotonic() < end + theirs.SECONDS:
            left = subprocess.run(find, capture_output=True, text=True).stdout.split()
            if not left:
                break
            for pid in map(int, left):
                os.kill(pid, signal.SIGKILL)
            for pid in map(int, left):
                os.waitpid(pid, 0)
        system.prctl(SUBREAPER, 0, 0, 0, 0)


def main() -> None:
    """Judge a file, as the student: a line for each part, and one that it is done."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the file prints is left out
    try:
        file = read(Path(sys.argv[1]))
        failed = Loaded(file).judge()
        told = {name: failed.get(name, "") for name in file.parts if name in _parts()}
    except NotKept as problem:
        told = {FILE: str(problem)}
    for name, why in told.items():
        print(name, " ".join(why.split()), sep="\t", file=out)
    print(DONE, file=out, flush=True)


if __name__ == "__main__":
    main()
