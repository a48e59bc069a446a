"""A class on one machine: JupyterHub with an account, a folder and a server for each student.

`make hub` starts it; README.md, beside this file, is the page for the teacher.
"""

import hashlib
import os
from pathlib import Path

USUAL = Path("/opt/attention-hub")
WORK = "work"  # the folder in a student's home that holds notebooks and progress


def hub_folder() -> Path:
    """The folder that everything of the hub runs from.

    Students run programs that lie there, so it has to be a folder that all may read; a clone under
    a home, or under /root, is not.
    """
    return Path(os.environ.get("HUB") or USUAL)


def hub_group() -> str:
    """The Unix group whose members may log in: every hub of a machine has its own."""
    folder = hub_folder()
    if folder == USUAL:
        return "attention-students"
    return f"attention-students-{hashlib.sha256(bytes(folder)).hexdigest()[:6]}"
