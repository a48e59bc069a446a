"""The file that keeps a learner's answers: a line for each check, prediction and review.

It is `work/progress.jsonl` of this project (of the notebook's folder, where pip has installed it),
or the file that ``ATTENTION_PROGRESS`` names; under ``ATTENTION_PROGRESS=0``, as in make test and
make refresh, nothing is kept or read. It stays on this computer, and holds nothing about the
learner or the machine, and no code.

Lines are only added, each by one write at the end of the file, so two kernels may write at once. A
line that was cut off, because the power failed or the disk was full, stays as it is: the next one
begins on a new line, and reading skips and counts it. Python hands each line to the system at once,
so a kernel that is killed loses nothing; only a power failure may take the last seconds (waiting
for the disk, with fsync, would take several milliseconds a line).
"""

import errno
import json
import os
import stat
import time
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from attention_base.home import HOME, INSTALLED

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

SETTING = "ATTENTION_PROGRESS"
VERSION = 1  # of the form of a line
MOST = 200  # characters of a text in a line
MOST_BYTES = 4_000_000  # that are read, the last of a file: some 28,000 answers
STATUSES = {
    "check": ("passed", "failed", "not attempted"),
    "predict": ("right", "wrong"),
    "review": ("right", "wrong"),
}
IN_NOTEBOOKS = ("check", "predict")  # what counts as work, in a report, too: no answer to review()
TIME = "%Y-%m-%dT%H:%M:%SZ"
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}

NOT_ORDINARY = "it is no ordinary file"

_told = False  # that nothing is kept: once is enough


@dataclass(frozen=True)
class Entry:
    """One line of the file."""

    time: str  # when, in UTC: "2026-01-31T09:30:00Z"
    notebook: str  # "03"
    id: str  # of the exercise or the prediction: "03.1", "03.p1"
    kind: str  # "check", "predict" or "review"
    status: str  # what came of it, see `STATUSES`
    answer: str = ""  # the letter that was chosen, of a prediction or a review
    # The name of the mistake that was recognised, if any; its exercise has no other of that name.
    mistake: str = ""


class Log(NamedTuple):
    """What a file says: its entries in order, and the numbers, from 1, of its broken lines."""

    entries: list[Entry]
    broken: list[int]
    left_out: int = 0  # bytes at the beginning, of a file that is larger than what is read


def place() -> Path | None:
    """Where progress is kept; None where it is switched off."""
    setting = os.environ.get(SETTING, "").strip()
    if setting == "0":
        return None
    return Path(os.path.expanduser(setting) or HOME / "work" / "progress.jsonl")


def shown(path: Path) -> str:
    """How a path is named in a message: from the folder that has `work`, as work/progress.jsonl."""
    return (path.relative_to(HOME) if path.is_relative_to(HOME) else path).as_posix()


def now() -> datetime:
    """The time in UTC, for all that is kept and asked again: the clock that tests set."""
    return datetime.now(UTC)


def when(entry: Entry) -> datetime | None:
    """When it was kept; None where somebody has written something else there."""
    with suppress(ValueError):
        return datetime.strptime(entry.time, TIME).replace(tzinfo=UTC)
    return None


def keep(id: str, kind: str, status: str, *, answer: str = "", mistake: str = "") -> str:
    """Add a line to the file.

    Returns
    -------
    str
        "", or one sentence for the learner: why nothing is kept, and what to do. It comes once.
        Nothing is raised, whatever goes wrong: a check is worth more than its line.
    """
    global _told
    path = place()
    try:
        if path:
            time_told, notebook = now().strftime(TIME), id.split(".")[0]
            _append(path, Entry(time_told, notebook, id, kind, status, answer, mistake))
    except Exception as error:
        if not _told:
            _told = True
            return f"Your progress is not kept, because {why(error, path)}."
    return ""


def _append(path: Path, entry: Entry) -> None:
    said = {"version": VERSION} | {name: text for name, text in vars(entry).items() if text}
    line = json.dumps(said, ensure_ascii=False).encode() + b"\n"
    if INSTALLED and path.parent == HOME / "work":  # in a clone, make lab makes it
        path.parent.mkdir(exist_ok=True)
    binary = getattr(os, "O_BINARY", 0)  # Windows would write \r\n
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | binary, 0o666)
    try:
        if stat.S_ISFIFO(os.fstat(file).st_mode):  # what is written into a pipe is gone
            raise OSError(errno.EINVAL, NOT_ORDINARY)
        _wait_for_others(file)
        if os.fstat(file).st_size:
            os.lseek(file, -1, os.SEEK_END)
            if os.read(file, 1) != b"\n":  # the last line was cut off
                line = b"\n" + line
        if os.write(file, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(file)


def _wait_for_others(file: int) -> None:
    """Let another kernel finish its line, for a tenth of a second at most.

    Its line would stay whole in any case, but half of it may be seen as a line that was cut off.
    """
    for _ in range(100 if fcntl else 0):
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until it is closed
        except BlockingIOError:
            time.sleep(0.001)
        except OSError:  # a disk without locks
            return


def why(error: Exception, path: Path) -> str:
    """Why a line could not be written, and what to do."""
    without = f"or set {SETTING}=0 to do without"
    number = getattr(error, "errno", None)
    if path.is_symlink() and not path.exists():
        return f"{shown(path)} is a link to {os.readlink(path)}, where nothing is: remove the link"
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"there is no folder {shown(path.parent)}: make it, {without}"
    if number in FULL:
        return "the disk is full: free some disk space"
    if isinstance(error, PermissionError) or number == errno.EROFS:
        return f"you have no right to write {shown(path)}: get that right, {without}"
    if isinstance(error, OSError):
        return f'{shown(path)} cannot be written ("{error.strerror}"): mend that, {without}'
    return f"the project has a bug ({type(error).__name__}: {error}): please report it"


def read(path: Path, kinds: Container[str] = IN_NOTEBOOKS) -> Log:
    """Read a file, the broken lines left out; one that is not there is empty.

    Of the others, those of these kinds are its entries.

    Raises
    ------
    OSError
        Where it cannot be read, or is no ordinary file.
    """
    try:
        content, left_out = _end_of(path)
    except FileNotFoundError:
        return Log([], [])
    return log_of(content, kinds)._replace(left_out=left_out)


def _end_of(path: Path) -> tuple[bytes, int]:
    """The last lines of a file, and how many bytes stand before them."""
    if not stat.S_ISREG(path.stat().st_mode):  # a device may never end
        raise OSError(errno.EINVAL, NOT_ORDINARY)
    with open(path, "rb") as file:
        left_out = max(0, os.fstat(file.fileno()).st_size - MOST_BYTES)
        file.seek(left_out)
        if left_out:
            left_out += len(file.readline())
        return file.read(), left_out


def log_of(content: bytes, kinds: Container[str] = IN_NOTEBOOKS) -> Log:
    """What the content of a file says, as `read` does."""
    entries, broken = [], []
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        if not (entry := _parsed(line)):
            broken.append(number)
        elif entry.kind in kinds:
            entries.append(entry)
    return Log(entries, broken)


def earlier(id: str) -> str:
    """The latest answer to a prediction in its notebook; "" for none, or where reading fails."""
    try:
        path = place()
        if path is None or not path.is_file():
            return ""
        wanted = json.dumps(id).encode()
        for line in reversed(_end_of(path)[0].split(b"\n")):
            entry = _parsed(line) if wanted in line else None
            if entry and (entry.id, entry.kind) == (id, "predict"):
                return entry.answer
        return ""
    except Exception:
        return ""


def _parsed(line: bytes) -> Entry | None:
    """The entry that a line holds; None for a line that `keep` has not written."""
    try:
        said = json.loads(line)
        entry = Entry(**{field.name: said.get(field.name, "") for field in fields(Entry)})
        texts = all(text.isprintable() and len(text) < MOST for text in vars(entry).values())
        known = texts and said["version"] == VERSION and entry.status in STATUSES[entry.kind]
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None
    return entry if known and entry.id.startswith(f"{entry.notebook}.") else None
