"""Which code of theirs runs in the command's child process, and what to say if it ended Python.

The parent process reads what the child leaves in a folder, and does without PyTorch, so nothing
here imports it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib.util
import linecache
import os
import re
import signal
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import attention_base
import attention_clinic

_spec = importlib.util.find_spec("torch")
TORCHS_HOME = str(Path(_spec.origin).parent) if _spec and _spec.origin else "no torch"
OWN_HOME, BASE, PYTHONS_HOME = (
    str(Path(one.__file__).parent) for one in (attention_clinic, attention_base, os)
)
OWN_HOMES = (OWN_HOME, BASE)
# It stands in front of the traceback's last line.
OWN_FAULT = (
    "This is a fault of the clinic, not of your module. Please report it, with your command and "
    "your file, to whoever gave you the clinic: "
)
IMPORTED = "cannot be imported"
MAIN = 'if __name__ == "__main__":'


def of_others(file: str) -> bool:
    """Tell whether a file is one of Python, of PyTorch or of ours."""
    of_python = file.startswith(PYTHONS_HOME) and "-packages" not in file
    return of_python or file.startswith((TORCHS_HOME, *OWN_HOMES, "<frozen"))


def short_path(file: Path) -> str:
    """A path, from the current folder on if it lies there."""
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


def own_fault(error: BaseException) -> str:
    """Say that an error is one of ours, and where it was raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    last = " ".join(traceback.format_exception_only(error)[-1].split())
    return f"{OWN_FAULT}{Path(frame.filename).name}:{frame.lineno}: {last}"


# ---------------------------------------------------------------- in the child process

_folder = Path()
_seconds = 0.0
_parent = 0
_stack: IO | None = None  # None: no parent waits
_limited = False


def start(folder: Path, seconds: float) -> None:
    """Leave in a folder what runs, and where it stands if it crashes or takes too long."""
    global _folder, _seconds, _parent, _stack
    _folder, _seconds, _parent = folder, seconds, os.getppid()
    _stack = (folder / "stack").open("w")
    faulthandler.enable(_stack)


@contextlib.contextmanager
def running(doing: str) -> Iterator[None]:
    """Their code runs: the parent says what was done if it ends Python."""
    if not _stack:
        yield
        return
    note = _folder / "doing"
    before = note.read_bytes() if note.exists() else b""
    note.write_text(doing, encoding="utf-8", errors="replace")
    try:
        yield
    finally:
        note.write_bytes(before)


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Give code of theirs so many seconds: a file, the making of a class, or one call.

    A thread of faulthandler, which needs no Python, ends the process: they may be in C or catch
    every exception.
    """
    global _limited
    if not _stack or _limited:
        yield
        return
    if os.getppid() != _parent:  # it was killed, and nobody waits
        os._exit(1)
    _limited = True
    faulthandler.dump_traceback_later(_seconds, exit=True, file=_stack)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        _limited = False


def let_end() -> None:
    """The answer is there: what else was begun, such as a thread that trains, has a second."""
    faulthandler.dump_traceback_later(1, exit=True, file=_stack)


# ---------------------------------------------------------------- in the parent process


def how_it_ended(folder: Path, code: int, seconds: float) -> str:
    """Say why the child process gave no answer."""
    doing, stack = (
        path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        for path in (folder / "doing", folder / "stack")
    )
    _, late, threads = stack.rpartition("Timeout (")
    where, line = _line_of(threads)
    if late:
        told = f"{where}after {seconds:g} s this is still running: “{line or '?'}”."
        if not doing.endswith(IMPORTED):
            return f"{doing}: {told} Name a part that takes less time, or raise --timeout."
        if re.match(r"(import|from)\b", line):
            return f"{doing}: {told} If only loading takes so long, raise --timeout."
        return f"{doing}: {told} Put what trains or waits below {MAIN}, or raise --timeout."
    ended = f"exit code {code}"
    if code < 0:
        ended = signal.Signals(-code).name + (", as when no memory is left" if code == -9 else "")
    if not doing:
        return f"{OWN_FAULT}its process ended with {ended}."
    return f"{doing}: {where}it ends Python, with {ended}, before there is a result."


def _line_of(threads: str) -> tuple[str, str]:
    """``file.py:12: `` and its text, for the line of theirs at which the main thread stands."""
    blocks = threads.strip().split("\n\n")
    crashed = [block for block in blocks if "Current thread 0x" in block]
    main = (crashed or blocks)[-1]  # the first thread comes last
    frames = re.findall(r'^  File "(.*)", line (\d+)', main, re.M)
    theirs = [(_decoded(file), int(n)) for file, n in frames if not of_others(file)]
    own = [one for one in theirs if "-packages" not in one[0]]  # not of what they import
    for file, n in (own or theirs)[:1]:
        return f"{short_path(Path(file))}:{n}: ", linecache.getline(file, n).strip()
    return "", ""


def _decoded(file: str) -> str:
    """A path of faulthandler, which writes an é as its number."""
    pattern = r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))"
    told = re.sub(pattern, lambda found: chr(int(found[found.lastindex], 16)), file)
    return file if os.path.exists(file) else told
