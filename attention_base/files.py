"""Writes a file whole or not at all, whoever else writes it at the same time."""

import itertools
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

LEFT_OVER = 3600  # seconds after which nobody writes a partial file any more
_numbers = itertools.count()


def write_whole(path: Path, data: bytes, make_room: Callable[[], object] = lambda: None) -> None:
    """Write a file under a name of its own first, then put it into its place.

    Two programs, or two threads, may write at once: each has a name of its own, and the last one
    stays. A partial file that a killed program has left over is removed when the file is written an
    hour later. A file that was there keeps its rights.

    Parameters
    ----------
    path
        The file.
    data
        All that it shall hold.
    make_room
        Called when nothing but the move is left to do.

    Raises
    ------
    OSError
        Where it cannot be written. What was there is as it was.
    """
    _remove_left_over(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}-{next(_numbers)}.part")
    try:
        partial.write_bytes(data)
        with open(partial, "r+b") as file:
            os.fsync(file.fileno())  # or a power failure could leave the name without the bytes
        with suppress(FileNotFoundError):
            partial.chmod(path.stat().st_mode & 0o777)
        make_room()
        os.replace(partial, path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _remove_left_over(path: Path) -> None:
    """Remove the partial files of this file that nobody writes any more."""
    with suppress(OSError):
        for old in path.parent.glob(f".{path.name.replace('[', '[[]')}.*.part"):
            writer = old.name.removesuffix(".part").rpartition(".")[2].partition("-")[0]
            if time.time() - old.stat().st_mtime > LEFT_OVER and not _runs(writer):
                old.unlink(missing_ok=True)


def _runs(process: str) -> bool:
    """Whether a process with this number runs, such as one that was suspended; where we can ask."""
    if os.name != "posix":  # on Windows, to ask is to interrupt
        return False
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:  # another user's
        return True
    return True
