import errno
import subprocess
import sys
import time

import nbformat
import pytest

from tools import fresh, lab, notebooks


def test_fresh_sets_every_old_copy_aside(folder, monkeypatch, capsys):
    now, strftime = time.struct_time((2026, 1, 31, 15, 4, 5, 5, 31, 0)), time.strftime
    monkeypatch.setattr(fresh.time, "strftime", lambda form: strftime(form, now))
    fresh.main("01")
    for text in ("first", "second"):
        folder.copy().write_text(text)
        fresh.main("1")
        assert nbformat.read(folder.copy(), as_version=4).cells[2].source == "x = 1"
    old = sorted((folder.work / "old").iterdir())
    assert sorted(path.read_text() for path in old) == ["first", "second"]
    assert "01_bag-20260131-150405" in capsys.readouterr().out


def test_a_fresh_copy_is_not_told_as_older(folder):
    lab.copy_missing(folder.source, folder.work)
    folder.write("01_bag", text="Why not?")
    assert len(lab.notices(folder.source, folder.work)) == 1
    fresh.main("01")
    assert lab.notices(folder.source, folder.work) == []


@pytest.mark.parametrize("name", [".room", "01_bag.part"])
def test_a_full_disk_leaves_the_learners_copy_in_its_place(folder, disk, refused, name):
    folder.work.mkdir()
    folder.copy().write_text("mine")
    disk(errno.ENOSPC, name)
    said = refused(fresh.main, "01")
    assert "disk is full" in said and said.startswith("work")
    assert folder.contents() == {"01_bag.ipynb": b"mine"}


def test_a_file_named_old_is_told(folder, refused):
    folder.work.mkdir()
    folder.copy().write_text("mine")
    (folder.work / "old").write_text("mine, too")
    assert "work/old has to be a folder" in refused(fresh.main, "01")
    assert folder.contents() == {"01_bag.ipynb": b"mine", "old": b"mine, too"}


def test_a_damaged_notebook_leaves_the_learners_copy_in_its_place(folder, refused):
    folder.work.mkdir()
    folder.copy().write_text("mine")
    (folder.source / "01_bag.ipynb").write_text("{")
    assert "notebooks/01_bag.ipynb is damaged" in refused(fresh.main, "01")
    assert folder.contents() == {"01_bag.ipynb": b"mine"}


@pytest.mark.parametrize("nb", ["", "77", "x"])
def test_fresh_of_no_notebook_gives_the_list(nb):
    done = subprocess.run(
        [sys.executable, "-m", "tools.fresh", nb],
        cwd=notebooks.ROOT,
        capture_output=True,
        text=True,
    )
    (said,) = done.stderr.splitlines()
    assert done.returncode == 1 and said.endswith(".")
    assert all(path.stem in said for path in notebooks.names())
