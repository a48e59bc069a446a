import contextlib
import errno
import json

import nbformat
import pytest
from ipykernel.ipkernel import IPythonKernel
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from traitlets import import_item

from tests.tools.conftest import NAMES
from tools import lab


def copies(folder):
    return lab.copy_missing(folder.source, folder.work)


def notices(folder):
    return lab.notices(folder.source, folder.work)


def test_a_learners_copy_is_never_overwritten(folder):
    folder.work.mkdir()
    folder.copy("00_start").write_text("mine")
    assert copies(folder) == [folder.copy("01_bag"), folder.copy("02_matrix")]
    assert folder.copy("00_start").read_text() == "mine"
    *_, cell = nbformat.read(folder.copy(), as_version=4).cells
    assert (cell.source, cell.outputs, cell.execution_count) == ("x = 1", [], None)
    assert len(folder.contents()) == 3


def test_a_link_to_a_place_that_is_not_there_now_is_the_learners_too(folder):
    folder.work.mkdir()
    folder.copy().symlink_to(folder.work / "on a disk that is not mounted")
    copies(folder)
    assert folder.copy().is_symlink()


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "the disk is full: free some disk space"),
        (errno.EROFS, "its disk is read-only: copy the project"),
        (errno.EACCES, "no right to write there: get that right"),
        (errno.EIO, "Input/output error"),
    ],
)
@pytest.mark.parametrize("name", [".room", "01_bag.part"])
def test_a_copy_that_cannot_be_written_is_told_and_leaves_nothing_half(
    folder, disk, refused, number, says, name
):
    disk(number, name)
    said = refused(copies, folder)
    assert says in said and said.startswith("work") and "run the same command again" in said
    assert list(folder.contents()) == ([] if name == ".room" else ["00_start.ipynb"])


def test_a_full_disk_is_told_where_no_copy_is_missing_too(folder, disk, refused):
    copies(folder)
    disk(errno.ENOSPC, ".room")
    assert "disk is full" in refused(copies, folder)


def test_a_file_named_work_is_told(folder, refused):
    folder.work.write_text("mine")
    assert "work has to be a folder" in refused(copies, folder)
    assert folder.work.read_text() == "mine"


def test_a_damaged_notebook_is_told(folder, refused):
    (folder.source / "01_bag.ipynb").write_text("<<<<<<< HEAD")
    said = refused(copies, folder)
    assert "notebooks/01_bag.ipynb is damaged (line 1" in said and "restore that file" in said


def predict(nb):
    nb.cells[2].source = "x = 2"
    nb.cells.append(nbformat.v4.new_markdown_cell("My note."))


def drop_the_text(nb):
    del nb.cells[1]


def write_below_the_text(nb):
    nb.cells[1].source += "\n\nMy note."


def forget(nb):
    """As a copy was before copies noted what they were made from."""
    del nb.metadata[lab.MADE_FROM]


UNCHANGED = {"output": "told otherwise, with another PyTorch"}


@pytest.mark.parametrize("noted", [True, False])
@pytest.mark.parametrize("edit", [predict, drop_the_text, write_below_the_text, lambda nb: None])
def test_a_copy_is_not_told_while_its_notebook_stays_as_it_was(folder, edit, noted):
    copies(folder)
    folder.edit(edit)
    if not noted:
        folder.edit(forget)
    folder.write("01_bag", **UNCHANGED)
    assert notices(folder) == []


@pytest.mark.parametrize("change", [{"text": "Why not?"}, {"code": "x = 0  # your answer"}])
@pytest.mark.parametrize("edit", [predict, drop_the_text, lambda nb: None])
def test_a_copy_is_told_when_its_notebook_has_changed(folder, edit, change):
    copies(folder)
    folder.edit(edit)
    folder.write("01_bag", **change)
    (said,) = notices(folder)
    assert "notebooks/01_bag.ipynb has changed since work/01_bag.ipynb was made" in said
    assert "make fresh NB=01" in said and said.endswith(".")


def test_a_copy_from_before_notes_is_told_by_its_text_with_a_may(folder):
    copies(folder)
    folder.edit(forget)
    folder.write("01_bag", code="x = 0")
    assert notices(folder) == []  # the learner may have written that
    folder.write("01_bag", text="Why not?")
    (said,) = notices(folder)
    assert "work/01_bag.ipynb may be older" in said and "make fresh NB=01" in said


def test_each_copy_that_is_older_is_told(folder):
    copies(folder)
    for name in ("00_start", "02_matrix"):
        folder.write(name, text="Why not?")
    first, second = notices(folder)
    assert "NB=00" in first and "NB=02" in second


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1 is no JSON"),
        ('{\n "cells": [', "line 2 is no JSON"),
        ("[]", "is not a notebook"),
        ('{"cells": [{"cell_type": "code"}]}', "is not a notebook"),
        (b"\xff\xfe\x00", "is not a notebook"),
        (None, "cannot be read"),
    ],
)
def test_a_copy_that_is_damaged_is_told_and_stays(folder, text, says):
    copies(folder)
    path = folder.copy()
    path.unlink()
    if text is None:
        path.mkdir()
    else:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = folder.contents()
    (said,) = notices(folder)
    assert "work/01_bag.ipynb" in said and says in said and "make fresh NB=01" in said
    assert folder.contents() == before


def test_a_copy_without_the_right_to_read_it_is_told(folder, monkeypatch):
    copies(folder)
    read = lab.Path.read_text

    def refuse(path, **settings):
        if path == folder.copy():
            raise PermissionError(errno.EACCES, "Permission denied")
        return read(path, **settings)

    monkeypatch.setattr(lab.Path, "read_text", refuse)
    (said,) = notices(folder)
    assert "work/01_bag.ipynb cannot be read, because you have no right to" in said


def test_the_lab_opens_after_it_has_told_all_and_changes_no_copy(folder, monkeypatch, capsys):
    copies(folder)
    folder.copy("00_start").write_text("{")
    folder.edit(predict)
    folder.write("01_bag", text="Why not?")
    before = folder.contents()
    opened = []
    monkeypatch.setattr(lab.os, "execv", lambda *command: opened.append(command))
    monkeypatch.setattr(lab.subprocess, "call", lambda *command: 0)
    monkeypatch.setattr(lab.sys, "argv", ["lab"])
    with pytest.raises(SystemExit):
        lab.main()
    lines = capsys.readouterr().out.splitlines()
    assert [("NB=00" in line, "NB=01" in line) for line in lines[:2]] == [(1, 0), (0, 1)]
    assert lines[2].startswith("Opening JupyterLab") and len(opened) == 1
    assert folder.contents() == before


def test_the_command_opens_the_folder_that_one_stands_in(folder, tmp_path, monkeypatch, capsys):
    here = tmp_path / "here"
    here.mkdir()
    (here / "00_start.ipynb").write_text("{")
    monkeypatch.chdir(here)
    opened = []
    monkeypatch.setattr(lab.os, "execv", lambda python, command: opened.append(command))
    monkeypatch.setattr(lab.subprocess, "call", lambda *command: 0)
    for given in (["--help"], []):
        monkeypatch.setattr(lab.sys, "argv", ["attention-course", *given])
        with contextlib.suppress(SystemExit):
            lab.course()
        (before, *_), said = sorted(here.iterdir()), capsys.readouterr().out
    assert sorted(path.name for path in here.iterdir()) == [f"{name}.ipynb" for name in NAMES]
    assert before.read_text() == "{" and not folder.work.exists()
    assert f"--ServerApp.root_dir={here}" in opened[0] and len(opened) == 1
    assert "give your copy another name" in said and "make fresh" not in said


def test_a_copy_is_a_notebook_that_says_what_it_was_made_from(folder):
    copies(folder)
    nb = json.loads(folder.copy().read_text(encoding="utf-8"))
    assert nb["metadata"].keys() == {lab.MADE_FROM, "language_info"}
    nbformat.validate(nb)


def test_a_copy_says_about_python_what_its_kernel_says():
    """Where that differs, JupyterLab rewrites each notebook that is only opened."""
    assert IPythonKernel.language_info == lab.LANGUAGE


def test_the_lab_finds_its_connection(tmp_path):
    """Its effect, a live picture that follows at once, is measured by benchmarks/live.py."""
    flag = "--ServerApp.kernel_websocket_connection_class="
    named = [a.removeprefix(flag) for a in lab.arguments(tmp_path, "") if a.startswith(flag)]
    assert issubclass(import_item(named[0]), ZMQChannelsWebsocketConnection)
