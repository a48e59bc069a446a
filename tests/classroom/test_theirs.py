"""What lies in a student's home, or runs there, stops root for nobody else."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from classroom import accounts, hub_group, theirs

BAD, GOOD = "hub-test-bad", "hub-test-good"


@pytest.fixture
def folder(monkeypatch):
    """The folder of a hub that does not run, where all may enter."""
    folder = Path(tempfile.mkdtemp(dir="/opt"))
    folder.chmod(0o755)
    monkeypatch.setenv("HUB", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def two(folder, monkeypatch):
    """An account of the machine, and the name of one to be made."""
    monkeypatch.setattr(theirs, "SECONDS", 1)
    accounts.run("groupadd", "--force", hub_group())
    accounts.run("useradd", "--create-home", BAD)
    yield accounts.existing(BAD)
    for name in (BAD, GOOD):
        subprocess.run(["pkill", "--signal=KILL", f"--uid={name}"])
        subprocess.run(["userdel", "--remove", "--force", name], capture_output=True)
        shutil.rmtree(f"/home/{name}", ignore_errors=True)
    accounts.run("groupdel", hub_group())


def as_student(account, script, *words):
    """Run lines of the shell in the home of a student."""
    ids = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    subprocess.run(["sh", "-ec", script, "sh", *words], check=True, cwd=account.pw_dir, **ids)


OURS = 'mkdir -p work/.git && echo "url = file://$1/notebooks" > work/.git/config'
WORKS = {
    "nothing": ("", True),
    "a link to nothing": ("ln -s nowhere work", False),
    "the notebooks": (OURS, True),
    "with bytes that are no UTF-8": (rf"{OURS}; printf '\344\366' >> work/.git/config", True),
    "another repository": ("mkdir -p work/.git && echo url = own > work/.git/config", False),
    "an own folder": ("mkdir work", False),
    "a file": ("echo mine > work", False),
    "a pipe": ("mkfifo work", False),
    "a pipe for git's settings": ("mkdir -p work/.git && mkfifo work/.git/config", False),
    "a folder for git's settings": ("mkdir -p work/.git/config", False),
    "endless settings": ("mkdir -p work/.git && ln -s /dev/zero work/.git/config", False),
    "a file that only root may read": ("mkdir work && ln -s $1/.git work/.git", False),
}


@pytest.mark.parametrize("what", WORKS)
def test_a_folder_that_is_not_ours_keeps_out_its_student_alone(what, two, folder, capsys):
    script, added = WORKS[what]
    (folder / ".git").mkdir(mode=0o700)
    (folder / ".git/config").write_text(f"{folder}/notebooks")
    as_student(two, script, str(folder))
    start, passwords = time.monotonic(), {BAD: "any-password", GOOD: "any-password"}
    if added:
        accounts.add(passwords)
    else:
        with pytest.raises(SystemExit):
            accounts.add(passwords)
        said = capsys.readouterr().err
        assert f"/home/{BAD}/work" in said and f"Not added: {BAD}." in said
    assert time.monotonic() - start < 10
    assert accounts.members() == [BAD] * added + [GOOD]


@pytest.mark.parametrize("words", ["!", "of a teacher", "!locked by a teacher"])
def test_only_an_account_that_never_got_its_password_gets_it_again(words, two, capsys):
    """Ctrl-C, or chpasswd itself, may end the command after useradd."""
    accounts.run("usermod", f"--comment={accounts.mark()}", f"--password={words}", BAD)
    accounts.add({BAD: "any-password"})
    kept = subprocess.check_output(["getent", "shadow", BAD], text=True).split(":")[1]
    assert (kept == words) == (words != "!") and (words != "!" or kept.startswith("$"))
    assert ("keeps its password" in capsys.readouterr().out) == (words != "!")


def test_a_home_that_is_somebody_elses_stays_open(two, folder, capsys):
    shared = folder / "shared"
    shared.mkdir()
    accounts.run("usermod", f"--home={shared}", BAD)
    with pytest.raises(SystemExit):
        accounts.add({BAD: "any-password", GOOD: "any-password"})
    said = capsys.readouterr().err
    assert f"{shared} is not {BAD}'s own" in said and f"Not added: {BAD}." in said
    assert shared.stat().st_mode & 0o777 == 0o755 and accounts.members() == [GOOD]


LEFT = {
    "as deep as no path can be": (
        'exec python3 -c \'import os\nfor _ in range(3000): os.mkdir("dddd"), os.chdir("dddd")\''
    ),
    "what may only be read": "mkdir -p a/b; touch a/b/c; chmod 500 a/b a",
    "what may not be read": "mkdir -p a/b; touch a/b/c; chmod 0 a/b a",
    "a link": "ln -s $1 link",
    "a program that goes on": "while :; do mkdir -p a/b; touch a/b/c; done > /dev/null 2>&1 &",
}


@pytest.mark.parametrize("what", LEFT)
def test_an_account_is_removed_whatever_its_folders_hold(what, two, folder, capsys):
    (folder / "of root").write_text("kept")
    accounts.run("usermod", f"--comment={accounts.mark()}", BAD)
    sockets = folder / "run" / BAD
    sockets.mkdir(parents=True)
    os.chown(sockets, two.pw_uid, two.pw_gid)
    for place in (two.pw_dir, sockets):
        as_student(two, f"cd {place}; {LEFT[what]}", str(folder))
    accounts.remove([BAD])
    assert not accounts.existing(BAD) and not Path(two.pw_dir).exists()
    assert not sockets.exists() and (folder / "of root").read_text() == "kept"


def shared():
    """The owners of what processes share by numbers: memory, queues and semaphores."""
    owners = []
    for kind in ("shm", "msg", "sem"):
        head, *rows = Path("/proc/sysvipc", kind).read_text().splitlines()
        owners += [int(row.split()[head.split().index("uid")]) for row in rows]
    return owners


def test_what_a_student_shared_with_others_goes_with_the_account(two):
    accounts.run("usermod", f"--comment={accounts.mark()}", BAD)
    as_student(two, "ipcmk --shmem=1000 --queue --semaphore=2")
    others = [uid for uid in shared() if uid != two.pw_uid]
    assert shared().count(two.pw_uid) >= 3
    accounts.remove([BAD])
    assert shared() == others


def test_what_a_student_could_not_remove_keeps_their_account_alone(two, capsys):
    accounts.run("usermod", f"--comment={accounts.mark()}", BAD)
    (Path(two.pw_dir) / "of root").mkdir()
    (Path(two.pw_dir) / "of root/x").write_text("kept")
    accounts.add({GOOD: "any-password"})
    with pytest.raises(SystemExit):
        accounts.remove([BAD, GOOD])
    said = capsys.readouterr()
    assert f"{two.pw_dir} holds what {BAD} may not remove" in said.err
    assert f"Not removed: {BAD}." in said.err and f"{GOOD}: removed" in said.out
    assert accounts.existing(BAD) and not accounts.existing(GOOD)
    assert (Path(two.pw_dir) / "of root/x").read_text() == "kept"


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("echo one; echo two", 0, b"one\n"),
        ("cat /dev/zero", None, bytes(4)),
        ("sleep 60 & sleep 60", None, b""),
        ("sleep 60 &", 0, b""),
        ("exit 3", 3, b""),
        ("kill -STOP $$", None, b""),
        ("tr '\\0' '\\n' < /proc/self/environ | grep -c SECRET", 1, b"0\n"),
        ("cat /etc/shadow", 1, b""),
    ],
)
def test_a_command_has_the_rights_of_the_student_and_limits(script, code, said, two, monkeypatch):
    monkeypatch.setenv("SECRET", "of root")
    start = time.monotonic()
    assert theirs.run(two, "sh", "-c", script, seconds=1, most=4) == (code, said)
    assert time.monotonic() - start < 3
