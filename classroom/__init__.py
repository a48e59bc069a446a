"""A class on one machine: JupyterHub with an account, a folder and a server for each student.

`make hub` starts it; README.md, beside this file, is the page for the teacher.
"""

import os
from pathlib import Path

# Everything the hub runs from. Students run programs that lie there, so it has to be a folder that
# all may read; a clone under a home, or under /root, is not.
HUB = Path(os.environ.get("HUB") or "/opt/attention-hub")
STUDENTS = "attention-students"  # the Unix group whose members may log in
WORK = "work"  # the folder in a student's home that holds notebooks and progress
