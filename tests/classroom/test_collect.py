"""What make collect writes, and what students cannot make it write."""

import inspect
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

import pytest

from classroom import collect, own, theirs
from lesson.builds import right


def answered(browser):
    """Let a student answer a question; returns their progress file."""
    kernel = browser.kernel("work/03_softmax_masking.ipynb")
    kernel.run("from lesson import predict\npredict('03.p1', 'b')")
    kernel.close()
    return Path(f"/home/{browser.name}/work/progress.jsonl")


def as_student(name, *command):
    account = pwd.getpwnam(name)
    subprocess.run(command, check=True, user=account.pw_uid, group=account.pw_gid, cwd="/")


def test_each_students_progress_comes_under_their_name(anna, ben, tmp_path, monkeypatch):
    theirs = {browser.name: answered(browser).read_bytes() for browser in (anna, ben)}
    monkeypatch.setenv("SUDO_UID", "1234")
    (tmp_path / "another's").mkdir()
    for folder in ("class", "another's"):
        monkeypatch.setattr(sys, "argv", ["collect", str(tmp_path / folder)])
        collect.main()
    for name, text in theirs.items():
        assert (tmp_path / "class" / f"{name}.jsonl").read_bytes() == text
    page = (tmp_path / "class/report.html").read_text()
    assert all(name in page for name in theirs)
    for folder, owner in (("class", 1234), ("another's", 0)):
        assert (tmp_path / folder).stat().st_uid == owner
        assert {path.stat().st_uid for path in (tmp_path / folder).iterdir()} == {1234}


@pytest.mark.parametrize("what", ["another's", "root's", "pipe", "nothing"])
def test_what_lies_in_place_of_the_file_is_read_with_the_students_rights(
    what, anna, ben, tmp_path, monkeypatch
):
    monkeypatch.setattr(theirs, "SECONDS", 1)
    answered(anna)
    mine, aside = answered(ben), f"/home/{ben.name}/aside"
    os.rename(mine, aside)
    try:
        if what == "another's":
            as_student(ben.name, "ln", "-s", f"/home/{anna.name}/work/progress.jsonl", str(mine))
        elif what == "root's":
            as_student(ben.name, "ln", "-s", "/etc/shadow", str(mine))
        elif what == "pipe":
            as_student(ben.name, "mkfifo", str(mine))
        with_file, without = collect.collect(tmp_path)
        assert ben.name in without and anna.name in with_file
        assert not (tmp_path / f"{ben.name}.jsonl").exists()
    finally:
        mine.unlink(missing_ok=True)
        os.rename(aside, mine)


def test_only_a_folder_of_its_own_is_written_to(anna, tmp_path, monkeypatch, capsys):
    answered(anna)
    folder = tmp_path / "class"
    monkeypatch.setattr(sys, "argv", ["collect", str(folder)])
    collect.main()
    (folder / "left.jsonl").write_bytes((folder / f"{anna.name}.jsonl").read_bytes())
    (folder / "broken.jsonl").write_text("no JSON")
    capsys.readouterr()
    collect.main()
    said = capsys.readouterr()
    assert "Collected earlier, and in the report, too: broken, left" in said.out
    assert "broken.jsonl is no progress file" in said.err
    assert "left" in (folder / "report.html").read_text()
    before = (folder / "report.html").read_bytes()
    for spoil in (
        lambda: (folder / "mine.txt").touch(),
        lambda: (folder / "x.jsonl").symlink_to("/etc/hostname"),
        lambda: os.chown(folder, 1234, 1234),
    ):
        spoil()
        with pytest.raises(SystemExit):
            collect.main()
        assert "holds something else already" in capsys.readouterr().err
        assert (folder / "report.html").read_bytes() == before
        for name in ("mine.txt", "x.jsonl"):
            (folder / name).unlink(missing_ok=True)


@pytest.fixture
def ground():
    """A folder in /tmp in which all may write, and nobody removes what is another's."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


WAYS = {  # what a student prepares, what root makes, and which folder the teacher names
    "a new folder": ("", "", "class", True),
    "root's link on the way": ("", "mkdir real; ln -s real way", "way/class", True),
    "a teacher who is one of the class": ("mkdir own", "", "own/class", True),
    "a link": ("ln -s $1 class", "", "class", False),
    "root's own link": ("", "mkdir real; ln -s real class", "class", False),
    "a link to nothing": ("ln -s $1/new class", "", "class", False),
    "a link on the way": ("ln -s $1 way", "", "way/class", False),
    "a student's folder on the way": ("mkdir way", "", "way/class", False),
    "root's link to a student's folder": ("mkdir way", "ln -s way real", "real/class", False),
    "a folder open to all": ("", "mkdir class; chmod 777 class", "class", False),
    "a folder open to all on the way": ("", "mkdir way; chmod 777 way", "way/class", False),
    "a file on the way": ("", "touch way", "way/class", False),
}


@pytest.mark.parametrize("what", WAYS)
def test_no_student_decides_where_the_files_come(what, ben, ground, tmp_path, monkeypatch, capsys):
    prepared, roots, named, written = WAYS[what]
    if what.startswith("a teacher"):
        monkeypatch.setenv("SUDO_UID", str(pwd.getpwnam(ben.name).pw_uid))
    as_student(ben.name, "sh", "-ec", f"cd {ground}; {prepared}", "sh", str(tmp_path))
    subprocess.run(["sh", "-ec", roots], check=True, cwd=ground)
    monkeypatch.setattr(sys, "argv", ["collect", str(ground / named)])
    if written:
        answered(ben)
        collect.main()
        assert (ground / named / "report.html").exists()
    else:
        with pytest.raises(SystemExit):
            collect.main()
        assert capsys.readouterr().err.count("\n") == 1
        assert not [*ground.rglob("*.jsonl"), *tmp_path.rglob("*.jsonl")]


def test_a_name_in_the_group_without_an_account_is_passed_over(anna, tmp_path, monkeypatch):
    answered(anna)
    monkeypatch.setattr(collect, "members", lambda: ["hub-test-nobody", anna.name])
    assert collect.collect(tmp_path) == ([anna.name], ["hub-test-nobody"])


OWN = f"""\
import os, time
import torch
from torch import nn


def turn(x):
    return x


{inspect.getsource(right.Head)}
"""
TURN = {"turn": "Your function takes (x)", "Head": ""}
ENDS = {  # what a student's own file does, and what is said of it
    "two parts": ("", TURN),
    "what is no Python": ("def turn(:", {"mine.py": "no Python"}),
    "another's file": (None, None),
    "the rights of root": ("open('/etc/shadow')", {"mine.py": "PermissionError"}),
    "more memory": ("x = bytearray(5 * 10**9)", {"mine.py": "MemoryError"}),
    "a large file": (
        "open(os.path.expanduser('~/x'), 'wb').write(bytes(2 * 10**7))",
        {"mine.py": "File too large"},
    ),
    "many files": ("x = [open('/etc/passwd') for _ in range(300)]", {"mine.py": "Too many"}),
    "many processes": (
        "try:\n    while os.fork():\n        pass\n    os.closerange(0, 9)\n    time.sleep(90)\n"
        "except BlockingIOError:\n    raise SystemExit('no more')",
        {"mine.py": "no more"},
    ),
    "a process that stays": (
        "if not os.fork():\n    os.setsid()\n    os.closerange(0, 3)\n"
        "    if not os.fork():\n        time.sleep(90)\n    os._exit(0)",
        TURN,
    ),
    "no end": ("time.sleep(90)", {"mine.py": "ended before all was judged"}),
    "what looks like the end": (
        "os.write(1, b'Head\\t\\ndone\\n')\nos._exit(0)",
        {"mine.py": "ended before all was judged"},
    ),
}


@pytest.mark.parametrize("what", ENDS)
def test_a_students_own_file_is_run_as_the_student_with_limits(
    what, anna, ben, tmp_path, monkeypatch
):
    text, told = ENDS[what]
    answered(ben)
    path = Path(f"/home/{ben.name}/work/mine.py")
    if text is None:
        as_student(ben.name, "ln", "-s", "/etc/shadow", str(path))
    else:
        path.write_text(OWN + text)
    if what == "no end":
        monkeypatch.setattr(own, "SECONDS", 8)
    before = Path(f"/home/{ben.name}/work/progress.jsonl").read_bytes()
    monkeypatch.setenv("MINE", "1")
    monkeypatch.setattr(sys, "argv", ["collect", str(tmp_path / "class")])
    try:
        for _ in range(1 + (text == "")):  # also into a folder that has them
            collect.main()
    finally:
        path.unlink()
    found = json.loads((tmp_path / "class/mine.json").read_text()).get(ben.name)
    copy = tmp_path / f"class/{ben.name}.mine.py"
    if told is None:
        assert found is None and not copy.exists()
        return
    assert copy.read_text() == OWN + text
    assert found.keys() == told.keys()
    assert all(why in found[name] and bool(why) == bool(found[name]) for name, why in told.items())
    page = (tmp_path / "class/report.html").read_text()
    assert "Own files" in page and all(escape(why) in page for why in found.values())
    assert Path(f"/home/{ben.name}/work/progress.jsonl").read_bytes() == before
    ids = subprocess.run(["pgrep", "-U", ben.name, "-a"], capture_output=True, text=True).stdout
    assert "classroom.own" not in ids
