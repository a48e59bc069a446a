"""Copy each student's progress into a folder: ``python -m classroom.collect FOLDER``, as root.

The folder gets one NAME.jsonl for each student who has begun, and the report about the class. With
MINE=1 it gets the students' own files, too, as NAME.mine.py, and the report says which parts pass.
"""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from classroom import WORK, own, theirs
from classroom.accounts import existing, members
from lesson.own_file import MOST_BYTES
from tools import notebooks, report

MOST = 20_000_000  # bytes of a file; a year of work is less than one million
REPORT = "report.html"


def progress_of(name: str, most: int = MOST, seconds: float | None = None) -> bytes | None:
    """What a student's progress file holds; None where there is none to read.

    Of a file that is too large come the first ``most`` bytes.
    """
    if not (account := existing(name)):  # removed, and the group still names it
        return None
    path = Path(account.pw_dir) / WORK / "progress.jsonl"
    return theirs.read(account, path, most, seconds or theirs.SECONDS)


def collect(folder: Path) -> tuple[list[str], list[str]]:
    """Write the files; returns the names of those who have one, and of the others."""
    with_file, without = [], []
    for name in members():
        kept = progress_of(name)
        if kept is None:
            without.append(name)
            continue
        write(folder / f"{name}.jsonl", kept)
        with_file.append(name)
    return with_file, without


def collect_own(folder: Path) -> None:
    """Write each student's own file, and for the report which of its parts pass, by name."""
    told = {}
    for account in filter(None, map(existing, members())):
        path, name = Path(account.pw_dir) / WORK / own.FILE, account.pw_name
        if (text := theirs.read(account, path, MOST_BYTES, theirs.SECONDS)) is None:
            continue
        # No program that is started in this folder takes a name with a point for a module.
        write(folder / f"{name}.{own.FILE}", text)
        told[name] = own.judged(account)
        passed = [part for part, why in told[name].items() if not why]
        print(f"{name}: {own.FILE} was run; pass: {', '.join(passed) or 'none'}", flush=True)
    write(folder / report.OWN, json.dumps(told).encode())


def write(path: Path, data: bytes) -> None:
    """Write a file for whoever called sudo."""
    with notebooks.writing(path):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with open(os.open(path, flags, 0o666), "wb") as file:
            file.write(data)
    hand_over(path)


def hand_over(path: Path) -> None:
    """Let whoever called sudo go on without it."""
    ids = (int(os.environ.get(name, 0)) for name in ("SUDO_UID", "SUDO_GID"))
    os.chown(path, *ids, follow_symlinks=False)


def need_folder(folder: Path) -> None:
    """Make the folder; from one that `collect` has made, remove the old report.

    Raises
    ------
    SystemExit
        In one sentence, where it holds anything else, belongs to another account, or where a
        student decides what its name leads to.
    """
    if way := in_students_hands(folder):
        notebooks.stop(
            f"{way} is a link, or open to students, who could lead the files elsewhere: name a new "
            "folder where only you may write, as in OUT=monday."
        )
    if not folder.exists():
        with notebooks.writing(folder):
            folder.mkdir(mode=0o700)
        return hand_over(folder)
    with notebooks.writing(folder):
        found = list(folder.iterdir())
    if folder.stat().st_uid not in who_asks() or not all(map(is_collected, found)):
        notebooks.stop(
            f"{folder} holds something else already, or is somebody else's: name a new folder, "
            "as in OUT=monday."
        )
    for name in (REPORT, report.OWN):
        (folder / name).unlink(missing_ok=True)


def who_asks() -> set[int]:
    """The numbers of root and of whoever called sudo, who may be one of the class."""
    return {0, int(os.environ.get("SUDO_UID", 0))}


def in_students_hands(folder: Path) -> Path | None:
    """What on the way to a folder a student may change, or has made; a link in its own place."""
    if folder.is_symlink():
        return folder
    found = filter(None, map(existing, members()))
    students = {each.pw_uid: each for each in found if each.pw_uid not in who_asks()}
    groups = {x for each in students.values() for x in os.getgrouplist(each.pw_name, each.pw_gid)}
    whole = Path(os.path.abspath(folder))
    for way in (whole, *whole.parents, *Path(os.path.realpath(whole)).parents):
        with suppress(OSError):
            there = way.lstat()
            # Where all may write, as in /tmp, the sticky bit keeps each from what is another's.
            bits = 0o022 if there.st_gid in groups else 0o002
            is_open = there.st_mode & bits and (way == whole or not there.st_mode & 0o1000)
            if there.st_uid in students or (is_open and not way.is_symlink()):
                return way
    return None


def is_collected(path: Path) -> bool:
    """Whether a file may be one that `collect` has written; a link never is."""
    named = path.name.endswith((".jsonl", f".{own.FILE}")) or path.name in (REPORT, report.OWN)
    return named and path.is_file() and not path.is_symlink()


def main() -> None:
    """Collect, say from whom, and report."""
    if len(sys.argv) != 2 or not sys.argv[1]:
        notebooks.stop("Name a folder for the files, as in make collect OUT=monday.")
    if os.geteuid():
        notebooks.stop("Only root may read the students' homes: run the same command with sudo.")
    folder = Path(sys.argv[1])
    need_folder(folder)
    with_file, without = collect(folder)
    n = len(with_file)
    print(f"{folder}: progress of {n} student{'s' * (n != 1)}")
    if without:
        print(f"No progress yet: {', '.join(without)}")
    if old := sorted({path.stem for path in folder.glob("*.jsonl")} - set(with_file)):
        print(f"Collected earlier, and in the report, too: {', '.join(old)}")
    if os.environ.get("MINE") == "1":
        collect_own(folder)
    if with_file or old:
        try:
            report.main(["--", str(folder)])
        except SystemExit:  # it has said which file is none; the others are in the report
            if not (folder / REPORT).exists():
                raise
        hand_over(folder / REPORT)


if __name__ == "__main__":
    main()
