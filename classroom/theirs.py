"""What is a student's: root reads, runs and removes it with the rights of the student.

Students decide what lies in their homes and what else runs under their numbers: a pipe that nobody
fills, a link to endless zeros, a program that stops each new one. So a limit of time and one of
bytes, which root itself keeps, hold for all of it, and nothing of root's environment goes along.
"""

import os
import pwd
import select
import signal
import subprocess
import time
from pathlib import Path

SECONDS = 10  # for one file
LONG = 300  # for all files of a student
PROCESSES = 512  # of a student, with their threads: a notebook takes 13 to 16, and a server 6
AT_ONCE = 65_536  # bytes that a pipe holds
# What may be read-only, such as a folder that a package manager made, is removed, too.
REMOVE = """\
rm -rf --one-file-system -- "$1" 2>/dev/null && exit
chmod -R u+rwx -- "$1"
rm -rf --one-file-system -- "$1"
[ -z "$(ls -A -- "$1" | head --bytes=1)" ]"""


def run(
    account: pwd.struct_passwd,
    *command: str,
    seconds: float,
    most: int = 0,
    given: object = subprocess.DEVNULL,
    **environment: str,
) -> tuple[int | None, bytes]:
    """Run a command as a student; returns its exit code and the first ``most`` bytes it writes.

    The exit code is None where the command could not begin or was ended, with all processes of its
    group, after so many seconds.
    """
    end = time.monotonic() + seconds
    try:
        child = subprocess.Popen(
            command,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", **environment},
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            start_new_session=True,
        )
    except BlockingIOError:  # the student has as many processes as root may have
        return None, b""
    with child:
        text = _read(child, most, end)
        try:
            child.wait(max(0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return None, text
    return child.returncode, text


def _read(child: subprocess.Popen, most: int, end: float) -> bytes:
    """Read up to so many bytes until a time; not on, where others hold the pipe of an ended one."""
    pipe, text = child.stdout.fileno(), bytearray()
    while len(text) < most and (left := end - time.monotonic()) > 0:
        if select.select([pipe], [], [], min(left, 0.05))[0]:
            if not (more := os.read(pipe, min(AT_ONCE, most - len(text)))):
                break
            text += more
        elif child.poll() is not None:
            break
    return bytes(text)


def read(account: pwd.struct_passwd, path: Path, most: int, seconds: float) -> bytes | None:
    """The first ``most`` bytes of a student's file; None where there is none to read in time."""
    command = ["head", f"--bytes={most}", "--", str(path)]
    code, text = run(account, *command, most=most, seconds=seconds)
    return text if code == 0 else None


def remove(account: pwd.struct_passwd, folder: Path) -> bool:
    """Remove what is in a folder of a student; whether it is empty, or gone, afterwards."""
    return run(account, "sh", "-c", REMOVE, "sh", str(folder), seconds=LONG)[0] == 0
