"""A file is written whole, or not at all, whoever else writes it at the same time."""

import itertools
import os
import subprocess
import sys
import threading

import pytest

from attention_base import files
from attention_base.files import LEFT_OVER, write_whole


def test_several_may_write_at_once_and_one_of_them_stays(tmp_path):
    path, failed = tmp_path / "mine.py", []
    texts = [str(i).encode() * 50_000 for i in range(8)]

    def write(text):
        for _ in range(20):
            try:
                write_whole(path, text)
            except OSError as error:
                failed.append(error)

    writers = [threading.Thread(target=write, args=(text,)) for text in texts]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert not failed and path.read_bytes() in texts
    assert list(tmp_path.iterdir()) == [path]


def test_two_programs_have_partial_files_of_their_own(tmp_path, monkeypatch):
    partial = []
    monkeypatch.setattr(files.os, "replace", lambda old, new: partial.append(old))
    for pid in (1, 2):
        monkeypatch.setattr(files, "_numbers", itertools.count())  # each program counts from 0
        monkeypatch.setattr(files.os, "getpid", lambda pid=pid: pid)
        write_whole(tmp_path / "mine.py", b"text")
    assert len({*partial}) == 2


def test_what_was_there_keeps_its_rights_and_stays_where_writing_fails(tmp_path):
    path = tmp_path / "mine.py"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write_whole(path, b"new")
    assert path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == 0o600

    def no_room():
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        write_whole(path, b"newer", no_room)
    assert path.read_bytes() == b"new" and list(tmp_path.iterdir()) == [path]


def test_what_a_killed_program_has_left_over_goes_an_hour_later(tmp_path):
    path, gone = tmp_path / "a[1].py", subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    old, young, other, of_living = (
        tmp_path / f".{name}.{process}.part"
        for name, process in (
            ("a[1].py", f"{gone.pid}-0"),
            ("a[1].py", f"{gone.pid}-1"),
            ("b.py", f"{gone.pid}-0"),
            ("a[1].py", f"{os.getppid()}-0"),  # it may have been suspended
        )
    )
    for one in (old, young, other, of_living):
        one.write_bytes(b"half")
    for one in (old, other, of_living):
        os.utime(one, (0, one.stat().st_mtime - LEFT_OVER - 1))
    write_whole(path, b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([path, young, other, of_living])
