"""Write the notebooks without outputs as a repository: ``python -m classroom.publish [FOLDER]``.

Without a folder it is that of the hub. The repository is what nbgitpuller brings to the students.
Run again, it gets a commit with what has changed, which each student receives with their next
server.
"""

import os
import subprocess
import sys
from pathlib import Path

from classroom import hub_folder
from tools import lab, notebooks

BRANCH = "main"
EMAIL = "hub@localhost"  # of the author of all commits
FILES = {
    # One notebook is one piece: lines of two versions put together need not be a notebook. Where
    # the student has saved their copy, an update leaves all of it alone.
    ".gitattributes": "*.ipynb -merge\n",
    ".gitignore": ".*/\nprogress.jsonl\nmine.py\nmine_history.jsonl\n",
}


def publish(folder: Path) -> bool:
    """Bring the repository in ``folder`` up to date; True where that took a commit.

    Raises
    ------
    SystemExit
        In one sentence, where the folder holds anything that `publish` has not made.
    """
    with notebooks.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()) and not is_published(folder):
            notebooks.stop(
                f"{folder} holds something else already: name a new folder, as in OUT=published."
            )
        before = os.umask(0o022)  # students read what is made here
        try:
            return _renew(folder)
        finally:
            os.umask(before)


def is_published(folder: Path) -> bool:
    """Whether `publish` has made what is in a folder."""
    config = folder / ".git/config"
    return config.is_file() and f"email = {EMAIL}" in config.read_text()


def _renew(folder: Path) -> bool:
    texts = {path.name: lab.for_learner(path) for path in notebooks.names()} | FILES
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet", f"--initial-branch={BRANCH}")
        git(folder, "config", "user.email", EMAIL)
    for path in notebooks.names(folder):
        path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "add", "--all")
    if not git(folder, "status", "--porcelain"):
        return False
    git(folder, "commit", "--quiet", "--message=Notebooks without outputs")
    return True


def git(folder: Path, *arguments: str) -> str:
    """What a git command says, with an author of its own and no hooks or settings of root's."""
    who = ["-c", "user.name=Attention from a for-loop", "-c", f"user.email={EMAIL}"]
    plain = ["-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"]
    command = ["git", "-C", str(folder), *who, *plain, *arguments]
    try:
        done = subprocess.run(command, text=True, capture_output=True)
    except FileNotFoundError:
        notebooks.stop(
            "git is needed for this, and it is not installed: install it from git-scm.com or your "
            "package manager (Debian, Ubuntu: apt install git), then run the same command again."
        )
    if done.returncode:
        notebooks.stop(f"git {arguments[0]} failed in {folder}: {done.stderr.strip()}")
    return done.stdout


def main() -> None:
    """Publish into the folder that is named, or into that of the hub."""
    named = sys.argv[1] if len(sys.argv) > 1 else ""
    folder = Path(named) if named else hub_folder() / "notebooks"
    told = "a new commit" if publish(folder) else "nothing has changed"
    print(f"{folder}: {told}")


if __name__ == "__main__":
    main()
