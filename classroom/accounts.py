"""Make or remove students' accounts: ``python -m classroom.accounts add|remove LIST``, as root.

LIST is a file with one line for each student, ``name:password``. An account that exists already
keeps its password. `remove` deletes the accounts that `add` has made, with their homes; one that
existed before only loses the right to log in to the hub. FILES=1 lets it delete, too, what the
accounts have left outside of their homes; FILES=0 leaves that.
"""

import grp
import os
import pwd
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from classroom import WORK, hub_folder, hub_group, left, theirs
from classroom.hub import running
from tools import notebooks

# A longer name has no room in the path of a kernel's socket (107 bytes).
NAME = re.compile(r"[a-z][a-z0-9_-]{0,29}")
MARK = "Student of "  # and the hub's folder: in /etc/passwd
LEAST = 8  # characters of a password
LONGEST = 500  # bytes of a password; chpasswd refuses more than 511
FIRST_USER = 1000  # smaller numbers belong to the system
NO_SHELL = "/usr/sbin/nologin"  # they log in to the hub, not to the machine
MOST = 65_536  # bytes of the settings of a student's git
NO_WORK = 3
SETTINGS = (
    f'[ -e "$1" ] || [ -L "$1" ] || exit {NO_WORK}; exec head --bytes={MOST} "$1/.git/config"'
)


def read(path: Path, need_passwords: bool = True) -> dict[str, str]:
    """The passwords by name; a list with a mistake ends in one sentence, with nothing done."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        notebooks.stop(f"The list {path} is no UTF-8 text: save it as UTF-8.")
    except OSError as error:
        notebooks.stop(f"The list {path} cannot be read ({error.strerror}): name another.")
    passwords: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.strip().startswith("#"):
            continue
        name, _, password = line.partition(":")
        mistake = wrong(name, password) if need_passwords else wrong_name(name)
        if mistake:
            notebooks.stop(f"Line {number} of {path} {mistake}; nobody was added or removed.")
        if name in passwords:
            notebooks.stop(
                f"{name} stands twice in {path}, again in line {number}: choose another name; "
                "nobody was added or removed."
            )
        passwords[name] = password
    if not passwords:
        notebooks.stop(f"{path} is empty: write a line name:password for each student.")
    return passwords


def wrong_name(name: str) -> str:
    """What is wrong with a name, "" where nothing is."""
    if NAME.fullmatch(name):
        return ""
    return (
        "has to be name:password, where the name begins with a letter and has up to 30 small "
        "letters, digits, - and _"
    )


def wrong(name: str, password: str) -> str:
    """What is wrong with a student who is to be added, "" where nothing is."""
    if (name, password) == ("name", "password"):
        return "is the heading of a table, and would make an account: remove it"
    if mistake := wrong_name(name):
        return mistake
    if len(password) < LEAST or password != password.strip():
        return (
            f"has a password that is too short, or begins or ends with a blank: {name} needs "
            f"{LEAST} characters or more"
        )
    if (size := len(password.encode())) > LONGEST:
        return (
            f"has a password that is too long: {name} may have at most {LONGEST} bytes, and this "
            f"has {size}"
        )
    if account := existing(name):
        if account.pw_uid < FIRST_USER or not Path(account.pw_dir).is_dir():
            return f"names {name}, an account of the system or without a home: choose another name"
        made_for = account.pw_gecos.split(",")[0]
        if made_for.startswith(MARK) and made_for != mark():
            return (
                f"names {name}, a student of the hub in {made_for.removeprefix(MARK)}: choose "
                "another name"
            )
    return ""


def existing(name: str) -> pwd.struct_passwd | None:
    """The account of that name, if there is one."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def add(passwords: dict[str, str]) -> None:
    """Make the accounts that are missing, and let all of them log in."""
    run("groupadd", "--force", hub_group())
    each(passwords, lambda name: add_one(name, passwords[name]), "added")


def add_one(name: str, password: str) -> None:
    """Make the account of a student if it is missing, and let the student log in."""
    if account := existing(name):
        if Path(account.pw_dir).stat().st_uid != account.pw_uid:
            notebooks.stop(
                f"The home {account.pw_dir} is not {name}'s own, and nobody else could read it any "
                "more: give the account another home, then run the same command again."
            )
        if not is_ours(account):
            notebooks.stop(
                f"{account.pw_dir}/{WORK} holds something else already, or cannot be read: rename "
                "it, then run the same command again."
            )
    else:
        run("useradd", "--create-home", f"--comment={mark()}", f"--shell={NO_SHELL}", name)
    if account and not (is_made_here(account) and never_had_password(name)):
        print(f"{name}: existed already; keeps its password")
    else:
        run("chpasswd", text=f"{name}:{password}")
        print(f"{name}: made")
    run("usermod", "--append", f"--groups={hub_group()}", name)
    Path(existing(name).pw_dir).chmod(0o700)


def never_had_password(name: str) -> bool:
    """Whether useradd has made an account, and nobody has given it a password yet, as by Ctrl-C."""
    shadow = subprocess.run(["getent", "shadow", name], capture_output=True, text=True).stdout
    return shadow.startswith(f"{name}:!:")


def is_ours(account: pwd.struct_passwd) -> bool:
    """May the notebooks be there? nbgitpuller would change any other repository in their place."""
    work = f"{account.pw_dir}/{WORK}"
    code, said = theirs.run(
        account, "sh", "-c", SETTINGS, "sh", work, seconds=theirs.SECONDS, most=MOST
    )
    return code == NO_WORK or (code == 0 and os.fsencode(f"{hub_folder()}/notebooks") in said)


def mark() -> str:
    """What /etc/passwd says of an account that `add` has made for this hub: it may be removed."""
    return f"{MARK}{hub_folder()}"


def remove(names: list[str], files: bool | None = None) -> None:
    """Delete the accounts that `add` has made, with their homes; exclude the others.

    The hub must not run: it would go on knowing who has logged in. What lies outside of the homes
    is removed, too, if ``files``; where that is not said, and there is any, nobody is removed.
    """
    if pid := running(hub_folder()):
        notebooks.stop(
            "The hub runs: press Ctrl-C in its terminal first (without that terminal: "
            f"sudo kill -INT {pid}), then run the same command again; nobody was removed."
        )
    ours = {name: here for name in names if (here := existing(name)) and is_made_here(here)}
    for account in ours.values():
        # The next account may get the same number, and with it whatever still runs or lies there.
        end_processes(account)
    outside(ours, files)
    forget(names)
    each(names, lambda name: remove_one(name, ours.get(name)), "removed")


def remove_one(name: str, ours: pwd.struct_passwd | None) -> None:
    """Delete the account of a student if it is ours; exclude another one."""
    sockets = hub_folder() / "run" / name
    if ours:
        need_removed(ours, sockets)
        need_removed(ours, Path(ours.pw_dir))
        # Shared memory outlives its processes, and the next account may get its owner's number.
        theirs.run(ours, "ipcrm", "--all", seconds=theirs.SECONDS)
        run("userdel", "--remove", "--force", name)
        print(f"{name}: removed with its home")
    elif account := existing(name):
        if name in members():
            run("gpasswd", "--delete", name, hub_group())
            end_processes(account, "jupyterhub-singleuser")
            need_removed(account, sockets)
        print(f"{name}: stays, because it was not made here; may no longer log in to the hub")
    else:
        print(f"{name}: there is no such account")


def need_removed(account: pwd.struct_passwd, folder: Path) -> None:
    """Remove what is in a student's folder, which is theirs; end in one sentence where it stays."""
    if not theirs.remove(account, folder):
        notebooks.stop(
            f"{folder} holds what {account.pw_name} may not remove, or more than can be removed "
            f"in {theirs.LONG} seconds: look at it, then run the same command again."
        )
    if folder.parent == hub_folder() / "run" and folder.is_dir():
        folder.rmdir()


def each(names: Iterable[str], do: Callable[[str], None], done: str) -> None:
    """Do something for each student; who hinders it is named at the end, and keeps up nobody."""
    hindered = []
    for name in names:
        try:
            do(name)
        except SystemExit:  # it has said why
            hindered.append(name)
    if hindered:
        notebooks.stop(f"Not {done}: {', '.join(hindered)}.")


def is_made_here(account: pwd.struct_passwd) -> bool:
    """Whether `add` has made an account, for this hub."""
    return account.pw_gecos.split(",")[0] == mark()


def outside(ours: dict[str, pwd.struct_passwd], files: bool | None) -> None:
    """Find what accounts have left outside of their homes, and remove it if ``files``."""
    found, all_of_it = left.found(ours.values())
    before = found
    if files and any(found.values()):
        for account in ours.values():
            left.remove(account, found[account.pw_uid])
        found, all_of_it = left.found(ours.values())
    for name, account in ours.items():
        paths = found.get(account.pw_uid, [])
        if files and (gone := len(set(before[account.pw_uid]) - set(paths))):
            print(f"{name}: {left.counted(gone)} outside of the home removed")
        if paths:
            print(f"{name}: {left.counted(len(paths))} outside of the home: {left.told(paths)}")
    if not all_of_it:
        print(f"There may be more: each search ends after {left.SECONDS} seconds.")
    if files is None and (any(found.values()) or not all_of_it):
        notebooks.stop(
            "Whoever gets the number of a removed account owns what it has left: run the same "
            "command with FILES=1 to remove what is found, too, or with FILES=0 to leave it; "
            "nobody was removed."
        )
    if any(found.values()) and files:
        print("What is left could not be removed with the students' rights: look at it yourself.")


def forget(names: list[str]) -> None:
    """Let the hub forget these students, and with them every browser that they logged in with."""
    database = hub_folder() / "state/jupyterhub.sqlite"
    if not database.exists():
        return
    from jupyterhub import orm  # only the hub's own Python has it

    with orm.new_session_factory(f"sqlite:///{database}")() as session:
        for name in names:
            if user := orm.User.find(session, name):
                session.delete(user)
        session.commit()


def end_processes(account: pwd.struct_passwd, *what: str) -> None:
    """Kill an account's processes, or those whose command line has ``what`` in it."""
    kill = ["pkill", "--signal=KILL", f"--uid={account.pw_uid}"]
    if what:  # a student may keep whoever reads a command line waiting
        theirs.run(account, *kill, "--full", *what, seconds=theirs.SECONDS)
    else:
        # All at once, or those that make new ones would go on; then what has ended the killer.
        theirs.run(account, "sh", "-c", "kill -s KILL -- -1", seconds=theirs.SECONDS)
        subprocess.run(kill)


def members() -> list[str]:
    """The names of all who may log in to the hub."""
    try:
        return sorted(grp.getgrnam(hub_group()).gr_mem)
    except KeyError:
        return []


def run(*command: str, text: str = "") -> None:
    """Run a command of the system; its complaint ends this one."""
    done = subprocess.run(command, input=text, text=True, capture_output=True)
    if done.returncode:
        notebooks.stop(f"{command[0]} failed: {done.stderr.strip()}")


def main() -> None:
    """Do what the command line says."""
    if len(sys.argv) != 3 or sys.argv[1] not in ("add", "remove") or not sys.argv[2]:
        notebooks.stop("Name the list of students, as in make accounts FROM=class.txt.")
    try:
        if sys.argv[1] == "add":
            add(read(Path(sys.argv[2])))
        else:
            files = {"1": True, "0": False}.get(os.environ.get("FILES", ""))
            remove(list(read(Path(sys.argv[2]), need_passwords=False)), files)
    except KeyboardInterrupt:
        notebooks.stop("Interrupted: run the same command again to go on.")


if __name__ == "__main__":
    main()
