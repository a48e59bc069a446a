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
REPORT = "report.html"
SECONDS = 10  # for one file; a pipe in its place would never end


def progress_of(
    account: pwd.struct_passwd, most: int = MOST, seconds: float | None = None
) -> bytes | None:
    """What a student's progress file holds; None where there is none to read.

    It is read with the student's rights: in its place may lie a link to any other file. Of a file
    that is too large come the first ``most`` bytes.
    """
    path = Path(account.pw_dir) / WORK / "progress.jsonl"
    try:
        done = subprocess.run(
            ["head", f"--bytes={most}", "--", str(path)],
            capture_output=True,
            timeout=SECONDS if seconds is None else seconds,
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


def need_folder(folder: Path) -> None:
    """Make the folder; from one that `collect` has made, remove the old report.

    Raises
    ------
    SystemExit
        In one sentence, where it holds anything else or belongs to another account.
    """
    if not folder.exists():
        with notebooks.writing(folder):
            folder.mkdir(mode=0o700)
        return hand_over(folder)
    with notebooks.writing(folder):
        found = list(folder.iterdir())
    ours = {0, int(os.environ.get("SUDO_UID", 0))}
    if folder.stat().st_uid not in ours or not all(map(is_collected, found)):
        notebooks.stop(
            f"{folder} holds something else already, or is somebody else's: name a new folder, "
            "as in OUT=monday."
        )
    (folder / REPORT).unlink(missing_ok=True)


def is_collected(path: Path) -> bool:
    """Whether a file may be one that `collect` has written; a link never is."""
    named = path.suffix == ".jsonl" or path.name == REPORT
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
    if with_file or old:
        try:
            report.main([str(folder)])
        except SystemExit:  # it has said which file is none; the others are in the report
            if not (folder / REPORT).exists():
                raise
        hand_over(folder / REPORT)


if __name__ == "__main__":
    main()
