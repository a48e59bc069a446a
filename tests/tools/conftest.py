"""A small project with three notebooks, for the tools that make and renew the learner's copies."""

import os
from pathlib import Path

import nbformat
import pytest
from nbformat import v4

from tools import notebooks

NAMES = ("00_start", "01_bag", "02_matrix")


class Folder:
    """The notebooks and the learner's copies, in a folder of their own."""

    def __init__(self, root):
        self.source, self.work = root / "notebooks", root / "work"
        self.source.mkdir()
        for name in NAMES:
            self.write(name)

    def write(self, name, *, text="Why?", code="x = 1", output="told"):
        """Write a notebook of a heading, a text and one code cell that has run."""
        number = name[:2]
        told = v4.new_output("stream", text=output)
        cells = [
            v4.new_markdown_cell("# Title", id=f"n{number}-c01"),
            v4.new_markdown_cell(text, id=f"n{number}-c02"),
            v4.new_code_cell(code, id=f"n{number}-c03", outputs=[told], execution_count=1),
        ]
        path = self.source / f"{name}.ipynb"
        nbformat.write(v4.new_notebook(cells=cells), path)
        return path

    def copy(self, name="01_bag"):
        return self.work / f"{name}.ipynb"

    def edit(self, change, name="01_bag"):
        """Change a copy and save it as JupyterLab does."""
        nb = nbformat.read(self.copy(name), as_version=4)
        change(nb)
        nb.metadata["language_info"] = {"name": "python", "version": "3.12.1"}
        nbformat.write(nb, self.copy(name))

    def contents(self):
        """Every file in work/ with its bytes."""
        return {
            str(path.relative_to(self.work)): path.read_bytes()
            for path in self.work.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(notebooks, "SOURCE", tmp_path / "notebooks")
    monkeypatch.setattr(notebooks, "WORK", tmp_path / "work")
    return Folder(tmp_path)


@pytest.fixture
def disk(monkeypatch):
    """Let writing to some file fail halfway: disk(errno.ENOSPC, "01_bag.part")."""

    def fails(number, name):
        def write(method):
            def half(path, data, **settings):
                stem, _, kind = name.rpartition(".")
                partial = kind == "part" and path.name.startswith(f".{stem}.")
                if path.name == name or (partial and path.suffix == ".part"):
                    method(path, data[: len(data) // 2], **settings)
                    raise OSError(number, os.strerror(number))
                return method(path, data, **settings)

            return half

        for method in ("write_text", "write_bytes"):
            monkeypatch.setattr(Path, method, write(getattr(Path, method)))

    return fails


@pytest.fixture
def refused(capsys):
    """Run something that has to end with 1 and one sentence; returns that sentence."""

    def sentence(run, *arguments):
        with pytest.raises(SystemExit) as end:
            run(*arguments)
        assert end.value.code == 1
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1 and lines[0].endswith("."), lines
        return lines[0]

    return sentence
