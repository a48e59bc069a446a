"""Make or remove students' accounts: ``python -m classroom.accounts add|remove LIST``, as root.

LIST is a file with one line for each student, ``name:password``. An account that exists already
keeps its password. `remove` deletes the accounts that `add` has made, with their homes; one that
existed before only loses the right to log in to the hub.
"""

import grp
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path

from classroom import HUB, STUDENTS, WORK
from tools import notebooks

MADE = "Student of an attention hub"  # in /etc/passwd: which accounts may be removed
# A longer name has no room in the path of a kernel's socket (107 bytes).
NAME = re.compile(r"[a-z][a-z0-9_-]{0,29}")
FIRST_USER = 1000  # smaller numbers belong to the system


def read(path: Path) -> dict[str, str]:
    """The passwords by name; a list with a mistake ends in one sentence, with nothing done."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        notebooks.stop(
            f"The list {path} cannot be read: name a text file, as in make accounts FROM=class.txt."
        )
    passwords: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        name, _, password = line.partition(":")
        if not NAME.fullmatch(name) or not password.strip():
            notebooks.stop(
                f"Line {number} of {path} has to be name:password, where the name begins with a "
                "letter and has up to 30 small letters, digits, - and _; nobody was added or "
                "removed."
            )
        if name in passwords:
            notebooks.stop(
                f"{name} stands twice in {path}, again in line {number}: choose another name; "
                "nobody was added or removed."
            )
        if (account := existing(name)) and account.pw_uid < FIRST_USER:
            notebooks.stop(
                f"Line {number} of {path} names {name}, an account of the system: choose another "
                "name; nobody was added or removed."
            )
        passwords[name] = password
    if not passwords:
        notebooks.stop(f"{path} is empty: write a line name:password for each student.")
    return passwords


def existing(name: str) -> pwd.struct_passwd | None:
    """The account of that name, if there is one."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def add(passwords: dict[str, str]) -> None:
    """Make the accounts that are missing, and let all of them log in."""
    run("groupadd", "--force", STUDENTS)
    for name in passwords:
        if (account := existing(name)) and not is_ours(work := Path(account.pw_dir) / WORK):
            notebooks.stop(
                f"{work} holds something else already: rename it, then run the same command again; "
                "nobody was added."
            )
    for name, password in passwords.items():
        if existing(name):
            print(f"{name}: existed already; keeps its password")
        else:
            run("useradd", "--create-home", f"--comment={MADE}", "--shell=/bin/bash", name)
            run("chpasswd", text=f"{name}:{password}")
            print(f"{name}: made")
        run("usermod", "--append", f"--groups={STUDENTS}", name)
        Path(existing(name).pw_dir).chmod(0o700)


def is_ours(work: Path) -> bool:
    """May the notebooks be there? nbgitpuller would change any other repository in their place."""
    config = work / ".git/config"
    return not work.exists() or (config.exists() and f"{HUB}/notebooks" in config.read_text())


def remove(names: list[str]) -> None:
    """Delete the accounts that `add` has made, with their homes; exclude the others."""
    for name in names:
        account = existing(name)
        if account is None:
            print(f"{name}: there is no such account")
        elif account.pw_gecos != MADE:
            if name in members():
                run("gpasswd", "--delete", name, STUDENTS)
            print(f"{name}: stays, because it was not made here; may no longer log in to the hub")
        else:
            # The next account may get the same number, and with it whatever still runs.
            subprocess.run(["pkill", "--signal=KILL", "--uid", name])
            run("userdel", "--remove", "--force", name)
            shutil.rmtree(HUB / "run" / name, ignore_errors=True)
            print(f"{name}: removed with its home")


def members() -> list[str]:
    """The names of all who may log in to the hub."""
    try:
        return sorted(grp.getgrnam(STUDENTS).gr_mem)
    except KeyError:
        return []


def run(*command: str, text: str = "") -> None:
    """Run a command of the system; its complaint ends this one."""
    done = subprocess.run(command, input=text, text=True, capture_output=True)
    if done.returncode:
        notebooks.stop(f"{command[0]} failed: {done.stderr.strip()}")


def main() -> None:
    """Do what the command line says."""
    if len(sys.argv) != 3 or sys.argv[1] not in ("add", "remove"):
        notebooks.stop("Name the list of students, as in make accounts FROM=class.txt.")
    passwords = read(Path(sys.argv[2]))
    if sys.argv[1] == "add":
        add(passwords)
    else:
        remove(list(passwords))


if __name__ == "__main__":
    main()
