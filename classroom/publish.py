"""Write the notebooks without outputs as a repository: ``python -m classroom.publish FOLDER``.

That repository is what nbgitpuller brings to the students. Run again, it gets a commit with what
has changed, which each student receives with their next server.
"""

import subprocess
import sys
from pathlib import Path

from tools import lab, notebooks

BRANCH = "main"
FILES = {
    # One notebook is one piece: lines of two versions put together need not be a notebook. Where
    # the student has saved their copy, an update leaves all of it alone.
    ".gitattributes": "*.ipynb -merge\n",
    ".gitignore": ".*/\nprogress.jsonl\n",
}


def publish(folder: Path) -> bool:
    """Bring the repository in ``folder`` up to date; True where that took a commit."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet", f"--initial-branch={BRANCH}")
    for path in notebooks.names(folder):
        path.unlink()
    for path in notebooks.names():
        (folder / path.name).write_text(lab.for_learner(path), encoding="utf-8")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "add", "--all")
    if not git(folder, "status", "--porcelain"):
        return False
    git(folder, "commit", "--quiet", "--message=Notebooks without outputs")
    return True


def git(folder: Path, *arguments: str) -> str:
    """What a git command says, with an author of its own and no hooks or settings of root's."""
    who = ["-c", "user.name=Attention from a for-loop", "-c", "user.email=hub@localhost"]
    plain = ["-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"]
    command = ["git", "-C", str(folder), *who, *plain, *arguments]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1]:
        notebooks.stop("Name the folder for the repository, as in make publish OUT=folder.")
    changed = publish(Path(sys.argv[1]))
    print(f"{sys.argv[1]}: {'a new commit' if changed else 'nothing has changed'}")
