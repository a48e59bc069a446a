"""What the tools share: where the notebooks are, how they are named, how they are run."""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from attention_base import files

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "notebooks"
WORK = ROOT / "work"
# The packages that notebooks import, and what these stand on.
ROOMS = ("attention_base", "attention_clinic", "explorers", "feedback", "helpers", "lesson")

# All that a committed notebook says about itself. JupyterLab adds versions and settings of one
# machine; they would be a diff in every commit.
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_METADATA = ("slideshow", "tags")
FOLDED = {"source_hidden": True}  # what the first code cell has as "jupyter": the set-up is folded

ROOM = 310_000  # bytes that a folder must have left: one notebook with its outputs
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


def names(folder: Path | None = None) -> list[Path]:
    """All notebooks of the series, or those of another folder, in order."""
    return sorted((folder or SOURCE).glob("[0-9][0-9]_*.ipynb"))


def chosen(nb: str) -> list[Path]:
    """The notebook that ``nb`` names ("03", "3" or "03_softmax_masking"), all of them for "".

    Raises
    ------
    SystemExit
        In one sentence with the list, where no notebook has that number.
    """
    found = names()
    if nb:
        wanted = nb.removesuffix(".ipynb")
        found = [p for p in found if wanted.zfill(2) in (p.stem, p.stem[:2])]
        if not found:
            there = ", ".join(p.stem for p in names())
            raise SystemExit(f"There is no notebook {nb}: choose one with NB=03 from {there}.")
    return found


def cell_id(number: str, position: int) -> str:
    """The fixed id of a cell; positions count from 1: the third cell of 03 is "n03-c03"."""
    return f"n{number}-c{position:02d}"


def one_environment() -> None:
    """Make the kernels that this process starts the same on every machine."""
    # Numbers that may round differently elsewhere are refused, but under make check-upgrade.
    os.environ.setdefault("ATTENTION_STRICT", "1")
    os.environ["ATTENTION_STORED"] = "1"  # pictures as GitHub shows them
    os.environ["ATTENTION_PROGRESS"] = "0"  # no learner's answers: none written, none shown
    os.environ["ATTENTION_REAL"] = "0"  # what the published model has said is stored
    one_thread_unless_told()
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # no debugger warning on stderr
    for name in ("ATTENTION_TABLES", "MPLBACKEND"):
        os.environ.pop(name, None)


def one_thread_unless_told() -> None:
    """Let the kernels that this process starts compute with one thread.

    The tensors are small, so a second thread mostly waits for the first.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def write_whole(
    path: Path, content: str | bytes, make_room: Callable[[], object] = lambda: None
) -> None:
    """Write a file whole or not at all, as `files.write_whole` does.

    Raises
    ------
    SystemExit
        In one sentence, where the file cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    with writing(path):
        files.write_whole(path, data, make_room)


def need_room(folder: Path) -> None:
    """Make the folder where it is missing, and end in one sentence where it takes no files.

    JupyterLab and a kernel would say so only after minutes of work.
    """
    probe = folder / ".room"
    with writing(folder):
        folder.mkdir(exist_ok=True)
        try:
            probe.write_bytes(bytes(ROOM))
        finally:
            with suppress(OSError):
                probe.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Let a failure to write ``path`` end in one sentence: what is wrong, and what to do."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileExistsError | NotADirectoryError):
            stop(
                f"{shown(path)} has to be a folder, but something else has that name: "
                "move it away, then run the same command again."
            )
        if error.errno in FULL:
            reason, todo = "the disk is full", "free some disk space"
        elif error.errno == errno.EROFS:
            reason, todo = "its disk is read-only", "copy the project to a folder of your own"
        elif isinstance(error, PermissionError):
            reason = "you have no right to write there"
            todo = "get that right, or copy the project to a folder of your own"
        else:
            reason, todo = f'the system says "{error.strerror}"', "mend that"
        stop(
            f"{shown(path)} cannot be written, because {reason}: "
            f"{todo}, then run the same command again."
        )


def shown(path: Path) -> str:
    """How a path is named in a message: from the project's folder, as in work/old."""
    return (path.relative_to(ROOT) if path.is_relative_to(ROOT) else path).as_posix()


def stop(message: str) -> NoReturn:
    """End with one sentence on stderr."""
    print(message, file=sys.stderr)
    raise SystemExit(1)
