"""What students have left outside of their homes, in /tmp or wherever else all may write.

It belongs to a number, and the next account may get the same one. So it is looked for while the
account is still there, and removed with the rights of the account: where a folder on the way has
been put in place of another, nothing is lost that the student could not have removed.
"""

import os
import pwd
import shlex
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from classroom import theirs

LOCAL = {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "tmpfs"}
LOCAL |= {"xfs", "zfs"}
ALSO = [b"/var/spool/cron", b"/var/mail"]  # where programs of root write what students give them
SECONDS = 300  # for looking for the folders, and for looking into them
MOST = 20_000_000  # bytes of paths
SHOWN = 3  # paths of a student


def found(accounts: Iterable[pwd.struct_passwd]) -> tuple[dict[int, list[bytes]], bool]:
    """The paths outside of their homes by the number of the account, and whether these are all.

    No link is followed, and no disk of another machine is searched.
    """
    accounts = list(accounts)
    paths: dict[int, list[bytes]] = {account.pw_uid: [] for account in accounts}
    if not paths:
        return {}, True
    homes = [os.path.realpath(account.pw_dir) for account in accounts]
    skip = [word for home in homes for word in ("-path", home, "-prune", "-o")]
    open_to_all = ["-type", "d", "-perm", "-0002", "-prune", "-print0"]
    folders, all_folders = _find([os.fsencode(path) for path in disks()], *skip, *open_to_all)
    folders += [path for path in ALSO if os.path.isdir(path)]
    owned = [word for uid in paths for word in ("-o", "-uid", str(uid))][1:]
    lines, all_lines = _find(folders, *skip, "(", *owned, ")", "-printf", r"%U %p\0")
    for line in dict.fromkeys(lines):
        uid, path = line.split(b" ", 1)
        paths[int(uid)].append(path)
    return paths, all_folders and all_lines


def _find(folders: list[bytes], *what: str) -> tuple[list[bytes], bool]:
    """What find finds there, and whether it came to its end."""
    find = ["sh", "-c", f'exec find "$@" -xdev {shlex.join(what)}', "sh"]
    command = ["timeout", str(SECONDS), "xargs", "--null", "--no-run-if-empty", *find]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with tempfile.TemporaryFile() as names:  # they may be more than a command can have
        names.write(b"\0".join(folders))
        names.seek(0)
        with subprocess.Popen(command, stdin=names, **pipes) as search:
            text = search.stdout.read(MOST)
            search.stdout.close()
    # The part after the last 0 is nothing, or cut off. 123: a file went away in between.
    return text.split(b"\0")[:-1], search.returncode in (0, 123) and len(text) < MOST


def disks() -> list[str]:
    """Where the file systems of this machine are mounted."""
    said = Path("/proc/self/mounts").read_bytes().decode(errors="surrogateescape")
    each = [line.split() for line in said.splitlines()]
    places = [place for _, place, kind, *_ in each if kind in LOCAL]
    # Linux writes a blank in a name as \040.
    known = [os.fsdecode(place.encode().decode("unicode_escape")) for place in places]
    return sorted(path for path in set(known) if os.path.isdir(path))


def remove(account: pwd.struct_passwd, paths: list[bytes]) -> None:
    """Remove them with the rights of the account; a folder only where it is empty by then."""
    with tempfile.TemporaryFile() as inner_first:
        for path in sorted(paths, key=lambda path: path.count(b"/"), reverse=True):
            inner_first.write(path + b"\0")
        inner_first.seek(0)
        command = ["xargs", "--null", "--no-run-if-empty", "rm", "--force", "--dir", "--"]
        theirs.run(account, *command, seconds=SECONDS, given=inner_first)


def told(paths: list[bytes]) -> str:
    """The first of them, as a terminal can show them, and how many more they are."""
    shown = [os.fsdecode(path) for path in sorted(paths)[:SHOWN]]
    shown = ["".join(x if x.isprintable() else "?" for x in path) for path in shown]
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return f"{', '.join(shown)}{more}"


def counted(number: int) -> str:
    """A number of files in words; a folder is one, too."""
    return f"{number} file{'s' * (number != 1)}"
