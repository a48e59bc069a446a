"""Copy each student's progress into a folder: ``python -m classroom.collect FOLDER``, as root.

The folder gets one NAME.jsonl for each student who has begun, and the report about the class.
"""

import os
import pwd
import subprocess
import sys
from pathlib import Path

from classroom import WORK
from classroom.accounts import members
from tools import notebooks, report

MOST = 20_000_000  # bytes of a file; a year of work is less than one million
SECONDS = 10  # for one file; a pipe in its place would never end


def progress_of(account: pwd.struct_passwd) -> bytes | None:
    """What a student's progress file holds; None where there is none to read.

    It is read with the student's rights: in its place may lie a link to any other file.
    """
    path = Path(account.pw_dir) / WORK / "progress.jsonl"
    try:
        done = subprocess.run(
            ["head", f"--bytes={MOST}", "--", str(path)],
            capture_output=True,
            timeout=SECONDS,
            cwd="/",
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None


def collect(folder: Path) -> tuple[list[str], list[str]]:
    """Write the files; returns the names of those who have one, and of the others."""
    with_file, without = [], []
    for name in members():
        kept = progress_of(pwd.getpwnam(name))
        if kept is None:
            without.append(name)
            continue
        path = folder / f"{name}.jsonl"
        with notebooks.writing(path):
            path.write_bytes(kept)
        hand_over(path)
        with_file.append(name)
    return with_file, without


def hand_over(path: Path) -> None:
    """Let whoever called sudo go on without it."""
    os.chown(path, int(os.environ.get("SUDO_UID", 0)), int(os.environ.get("SUDO_GID", 0)))


def main() -> None:
    """Collect, say from whom, and report."""
    if len(sys.argv) != 2 or not sys.argv[1]:
        notebooks.stop("Name a folder for the files, as in make collect OUT=monday.")
    if os.geteuid():
        notebooks.stop("Only root may read the students' homes: run the same command with sudo.")
    folder = Path(sys.argv[1])
    if not folder.exists():
        with notebooks.writing(folder):
            folder.mkdir(mode=0o700)
        hand_over(folder)
    with_file, without = collect(folder)
    print(f"{folder}: progress of {len(with_file)} students")
    if without:
        print(f"No progress yet: {', '.join(without)}")
    if not with_file:
        return
    try:
        report.main([str(folder)])
    finally:  # it also ends with an exit code where a file has a fault
        if (page := folder / "report.html").exists():
            hand_over(page)


if __name__ == "__main__":
    main()
