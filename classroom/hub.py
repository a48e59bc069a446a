"""Start JupyterHub for a class: ``python -m classroom.hub``, as root, with the hub's own Python.

It runs from a copy of this project in the folder `HUB`, which students can read; a clone may lie
where they cannot. The copy and the students' notebooks are renewed at each start.
"""

import compileall
import fcntl
import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

from classroom import HUB
from classroom.publish import publish
from tools import notebooks

# Students' git asks whether it may read a repository of another account, here root's.
GITCONFIG = """[include]
path = /etc/gitconfig
[safe]
directory = {}/notebooks/.git
"""
COPIED = ("classroom", "helpers", "tools")


def be_the_only_one(hub: Path) -> None:
    """End in one sentence where a hub runs from that folder: a second one would stop its proxy."""
    (hub / "state").mkdir(mode=0o700, exist_ok=True)
    lock = os.open(hub / "state/lock", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        notebooks.stop(
            f"A hub runs already from {hub}: press Ctrl-C in its terminal, "
            "then run the same command again."
        )
    os.set_inheritable(lock, True)  # JupyterHub, in our place, goes on holding it


def renew(hub: Path) -> None:
    """Bring what students run and read up to date: the project's code and the notebooks."""
    os.umask(0o022)
    project = hub / "project"
    new = hub / "project.new"
    shutil.rmtree(new, ignore_errors=True)
    for name in COPIED:
        shutil.copytree(
            notebooks.ROOT / name, new / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    compileall.compile_dir(new, quiet=1, stripdir=new, prependdir=project)  # students cannot
    shutil.rmtree(project, ignore_errors=True)
    new.rename(project)
    publish(hub / "notebooks")
    (hub / "gitconfig").write_text(GITCONFIG.format(hub))
    (hub / "run").mkdir(exist_ok=True)


def become_jupyterhub(hub: Path) -> NoReturn:
    """Go on as JupyterHub, with little of root's environment."""
    path = f"{hub}/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    ours = {"HUB": str(hub), "HOME": "/root", "PATH": path, "PYTHONPATH": str(hub / "project")}
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "PORT") if name in os.environ}
    config = hub / "project/classroom/jupyterhub_config.py"
    os.chdir(hub / "state")
    command = [sys.executable, "-m", "jupyterhub", f"--config={config}"]
    os.execve(sys.executable, command, kept | ours)


if __name__ == "__main__":
    be_the_only_one(HUB)
    renew(HUB)
    port = os.environ.get("PORT") or 8000
    print(f"The hub: http://127.0.0.1:{port}. It runs until you press Ctrl-C here.", flush=True)
    become_jupyterhub(HUB)
