"""Kernels forked from a process that has imported what takes each of them seconds to import.

It imports packages of others only: what a notebook imports of this project is imported anew, and
fails where it would fail. Where a package of others warns, which a learner would read, it ends.
"""

import gc
import importlib
import io
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, suppress
from typing import Any

# torch._dynamo: the first optimizer of a process imports it.
PACKAGES = (
    "torch",
    "torch._dynamo",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "ipywidgets",
    "ipykernel.ipkernel",
    "ipykernel.kernelapp",
)
parent = None  # of the kernels that this process asks for, and the line to it


class Kernel:
    """A forked kernel, with what jupyter_client wants of a subprocess.Popen."""

    stdin = stdout = stderr = None

    def __init__(self, line):
        self.line = line  # whose other end closes when the kernel ends
        if not (pid := line.recv(20)):
            raise RuntimeError(
                "The process that imports what all kernels import has ended: see above"
            )
        self.pid = int(pid)

    def poll(self) -> int | None:
        """0 once it has ended, None before."""
        return 0 if select.select([self.line], [], [], 0)[0] else None

    def wait(self) -> int:
        """Wait until it ends."""
        select.select([self.line], [], [])
        return 0

    def send_signal(self, number: int) -> None:
        """Send a signal to it."""
        os.kill(self.pid, number)


def launch(cmd: list[str], *, env: dict[str, str], cwd: str | None = None, **_: Any) -> Kernel:
    """In the place of jupyter_client's launch_kernel: fork the kernel of this command."""
    global parent
    if parent is None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            parent = subprocess.Popen([sys.executable, __file__], stdin=theirs), ours
    ours, theirs = socket.socketpair()
    with theirs:
        asked = json.dumps([cmd[cmd.index("ipykernel_launcher") :], dict(env), str(cwd or "")])
        socket.send_fds(parent[1], [asked.encode()], [theirs.fileno()])
    return Kernel(ours)


def stop() -> None:
    """End the parent, where there is one."""
    global parent
    if parent:
        parent[1].close()
        parent[0].wait()
        parent = None


def fork_what_is_asked_for() -> None:
    """Import, then fork a kernel for each command that comes over stdin, until it closes."""
    del sys.path[0]  # this folder
    before = dict(os.environ)
    # Both are read on import. A kernel ends when its parent does, and draws into its notebook.
    os.environ["JPY_PARENT_PID"] = str(os.getpid())
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    with redirect_stderr(io.StringIO()) as said:
        for name in PACKAGES:
            importlib.import_module(name)
    if said.getvalue():
        sys.exit(said.getvalue())
    own = dict(os.environ.items() - before.items())  # torch sets some, too
    gc.collect()
    gc.freeze()  # a collection in a kernel would copy all this
    line = socket.socket(fileno=0)
    while True:
        asked, lines, *_ = socket.recv_fds(line, 1 << 20, 1)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not asked:
            return
        if os.fork() == 0:
            line.close()
            arguments, environment, folder = json.loads(asked)
            be_kernel(arguments, own | environment, folder, socket.socket(fileno=lines[0]))
        os.close(lines[0])


def folders(environment: Mapping[str, str]) -> list[str]:
    """The folders that PYTHONPATH names."""
    named = environment.get("PYTHONPATH", "").split(os.pathsep)
    return [os.path.abspath(folder) for folder in named if folder]


def be_kernel(
    arguments: list[str], environment: dict[str, str], folder: str, line: socket.socket
) -> None:
    """Become the kernel: what a fresh process has of its own is made anew."""
    os.setsid()
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    line.send(str(os.getpid()).encode())
    started = folders(os.environ)  # of the parent; the kernel's may be others
    sys.path[:] = folders(environment) + [path for path in sys.path if path not in started]
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder or ".")
    sys.argv = arguments
    sys.modules["torch"].seed()  # as on import, which has drawn a seed for all kernels
    sys.modules["numpy"].random.seed()
    sys.modules["ipykernel.kernelapp"].launch_new_instance()
    sys.exit()


if __name__ == "__main__":
    fork_what_is_asked_for()
