"""Start JupyterHub for a class: ``python -m classroom.hub``, as root, with the hub's own Python.

It runs from a copy of this project in the folder `HUB`, which students can read; a clone may lie
where they cannot. The copy and the students' notebooks are renewed at each start.
"""

import compileall
import fcntl
import os
import resource
import shutil
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from classroom import hub_folder
from classroom.publish import publish
from tools import notebooks

# Students' git asks whether it may read a repository of another account, here root's.
GITCONFIG = """[include]
path = /etc/gitconfig
[safe]
directory = {}/notebooks/.git
"""
PATIENCE = 2  # seconds: a proxy that has just ended needs a moment to leave its port
FILES = 65_536  # open at once, where the system allows it: each idle connection is one
COPIED = ("classroom", *notebooks.ROOMS, "tools")
# A clone may hold more, such as the list of the class, and all that is copied can be read by all.
KINDS = (".py", ".md", ".json", ".npz", ".pt", ".sh", "passages.txt", "bin/node")


def running(hub: Path) -> int:
    """The process id of the hub that runs from that folder, 0 where none does."""
    path = hub / "state/lock"
    if not path.exists():
        return 0
    with open(path) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            while not (pid := path.read_text()):  # it has just begun
                time.sleep(0.01)
            return int(pid)
    return 0


def be_the_only_one(hub: Path) -> None:
    """End in one sentence where a hub runs from that folder: a second one would stop its proxy."""
    (hub / "state").mkdir(mode=0o700, exist_ok=True)
    lock = os.open(hub / "state/lock", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        notebooks.stop(
            f"A hub runs already from {hub}: press Ctrl-C in its terminal (without that terminal: "
            f"sudo kill -INT {running(hub)}), then run the same command again."
        )
    os.ftruncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())  # JupyterHub, in our place, keeps the number
    os.set_inheritable(lock, True)  # and goes on holding the lock


def chosen_port() -> int:
    """The port that PORT names; a mistake in it ends in one sentence."""
    text = os.environ.get("PORT") or "8000"
    if not text.isdecimal() or not 0 < int(text) <= 65533:  # the hub takes the next two, too
        notebooks.stop(f"PORT has to be a number from 1 to 65533, as in PORT=9000; got {text}.")
    return int(text)


def end_old_proxy(hub: Path) -> None:
    """End the proxy that a killed hub has left behind."""
    file = hub / "state/proxy.pid"
    with suppress(FileNotFoundError, ProcessLookupError, ValueError):
        pid = int(file.read_text())
        for number in (signal.SIGTERM, signal.SIGKILL):
            for _ in range(50):
                if b"configurable-http-proxy" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return
                os.kill(pid, number)
                time.sleep(0.1)


def need_ports(port: int) -> None:
    """End in one sentence where another program has a port of the hub."""
    for each in range(port, port + 3):
        end = time.monotonic() + PATIENCE
        while why := _taken(each):
            if time.monotonic() > end:
                notebooks.stop(
                    f"Port {each} cannot be used ({why}), and the hub needs the ports {port} to "
                    f"{port + 2}: end that program, or choose others, as in PORT=9000, then run "
                    "the same command again."
                )
            time.sleep(0.05)


def _taken(port: int) -> str:
    """Why a port cannot be used, "" where it can."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return error.strerror
    return ""


def renew(hub: Path) -> None:
    """Bring what students run and read up to date: the project's code and the notebooks."""
    os.umask(0o022)  # students read what is made here
    project = hub / "project"
    new = hub / "project.new"
    shutil.rmtree(new, ignore_errors=True)
    for name in COPIED:
        shutil.copytree(notebooks.ROOT / name, new / name, ignore=_not_copied)
    compileall.compile_dir(new, quiet=1, stripdir=new, prependdir=project)  # students cannot
    shutil.rmtree(project, ignore_errors=True)
    new.rename(project)
    publish(hub / "notebooks")
    (hub / "gitconfig").write_text(GITCONFIG.format(hub))
    (hub / "run").mkdir(exist_ok=True)


def _not_copied(folder: str, names: list[str]) -> list[str]:
    """What of a folder students neither run nor read."""
    paths = {name: Path(folder, name) for name in names}
    files = [name for name in names if not paths[name].is_dir()]
    return ["__pycache__", *(name for name in files if not str(paths[name]).endswith(KINDS))]


def become_jupyterhub(hub: Path) -> NoReturn:
    """Go on as JupyterHub, with little of root's environment."""
    path = f"{hub}/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    ours = {"HUB": str(hub), "HOME": "/root", "PATH": path, "PYTHONPATH": str(hub / "project")}
    settings = ("LANG", "LC_ALL", "PORT", "PROXY")
    kept = {name: os.environ[name] for name in settings if name in os.environ}
    config = hub / "project/classroom/jupyterhub_config.py"
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    os.chdir(hub / "state")
    command = [sys.executable, "-m", "jupyterhub", f"--config={config}"]
    os.execve(sys.executable, command, kept | ours)


def main() -> None:
    """Prepare everything, and become the hub."""
    hub, port = hub_folder(), chosen_port()
    be_the_only_one(hub)
    end_old_proxy(hub)
    need_ports(port)
    renew(hub)
    print(f"The hub: http://127.0.0.1:{port}. It runs until you press Ctrl-C here.", flush=True)
    become_jupyterhub(hub)


if __name__ == "__main__":
    main()
