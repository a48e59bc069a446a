"""make refresh, run for real on tiny notebooks: what it writes, and what it leaves as it was."""

import contextlib
import copy
import io

import nbformat
import pytest
from nbformat import v4

from tools import ignored_cells, notebooks, refresh


def write(path, *sources, tags=()):
    """Write a notebook of code cells that has not run; ``tags`` are those of its last cell."""
    cells = [v4.new_markdown_cell("# A question?"), *map(v4.new_code_cell, sources)]
    cells[-1].metadata.tags = list(tags)
    nbformat.write(v4.new_notebook(cells=cells), path)
    return path


def outputs(path):
    """What is stored below each code cell, as text."""
    cells = nbformat.read(path, as_version=4).cells[1:]
    return ["".join(o.get("text") or o.data["text/plain"] for o in cell.outputs) for cell in cells]


PRINTS = "import sys\nprint('to', end=' ')\nsys.stdout.flush()\nprint('gether')"
COUNTS = """from pathlib import Path
count = 1 + (int(Path("count").read_text()) if Path("count").exists() else 0)
_ = Path("count").write_text(str(count))
print(count, "runs")"""


def here(nb, folder):
    """Run the cells in this process, each letter printed on its own."""
    nb, names = copy.deepcopy(nb), {}
    for cell in refresh.code_cells(nb):
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as said:
            exec(cell.source, names)
        cell.outputs = [v4.new_output("stream", text=letter) for letter in said.getvalue()]
    return nb


@pytest.mark.parametrize("execute", [here, pytest.param(refresh.execute, marks=pytest.mark.slow)])
def test_outputs_are_written_once_and_ignored_ones_are_kept(tmp_path, monkeypatch, execute):
    notebooks.one_environment()
    monkeypatch.setattr(refresh, "execute", execute)
    path = write(tmp_path / "03_tiny.ipynb", PRINTS, COUNTS, tags=[ignored_cells.TAG])
    assert refresh.refresh(path)
    assert outputs(path) == ["to gether\n", "1 runs\n"]
    nb = nbformat.read(path, as_version=4)
    assert nb.metadata == notebooks.METADATA
    assert [cell.id for cell in nb.cells] == ["n03-c01", "n03-c02", "n03-c03"]
    assert [cell.execution_count for cell in nb.cells[1:]] == [1, 2]
    assert [cell.metadata.get("jupyter") for cell in nb.cells[1:]] == [notebooks.FOLDED, None]

    written = path.read_bytes()
    assert not refresh.refresh(path)
    assert path.read_bytes() == written
    assert (tmp_path / "count").read_text() == "2", "it ran, and its new output was dropped"

    assert refresh.refresh(path, everything=True)
    assert outputs(path) == ["to gether\n", "3 runs\n"]

    nb = nbformat.read(path, as_version=4)
    nb.cells[2].source = nb.cells[2].source.replace("runs", "times")
    nbformat.write(nb, path)
    assert refresh.refresh(path)
    assert outputs(path) == ["to gether\n", "4 times\n"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("print('before')\n1 / 0", r"cell 3 \(`print\('before'\)`\) raised ZeroDivisionError"),
        ("import warnings\nwarnings.warn('careful')", r"cell 3 \(`import .*wrote to stderr: .*"),
        ("import os\nos._exit(1)", r"cell 3 \(`import os`\) ended"),
    ],
)
def test_a_notebook_with_a_faulty_cell_stays_as_it_was(tmp_path, monkeypatch, capsys, source, what):
    path = write(tmp_path / "03_tiny.ipynb", "x = 1", source)
    before = path.read_bytes()
    monkeypatch.setattr(notebooks, "SOURCE", tmp_path)
    monkeypatch.setattr(refresh.glossary, "main", lambda: None)
    monkeypatch.setattr("sys.argv", ["refresh"])
    with pytest.raises(SystemExit) as end:
        refresh.main()
    assert end.value.code
    said = capsys.readouterr().out
    with pytest.raises(AssertionError, match=rf"03_tiny.ipynb \.\.\. not refreshed: {what}"):
        raise AssertionError(said)
    assert "The file is as it was" in said
    assert path.read_bytes() == before


@pytest.mark.parametrize("failing", ["03", "04", "none"])
def test_one_failure_makes_the_exit_code_whatever_follows(tmp_path, monkeypatch, capsys, failing):
    def run(path, everything):
        if path.name.startswith(failing):
            raise refresh.CellFailed("cell 3 raised ZeroDivisionError")
        return True

    for name in ("03_tiny.ipynb", "04_tiny.ipynb"):
        write(tmp_path / name)
    monkeypatch.setattr(notebooks, "SOURCE", tmp_path)
    monkeypatch.setattr(refresh.glossary, "main", lambda: None)
    monkeypatch.setattr("sys.argv", ["refresh"])
    monkeypatch.setattr(refresh, "refresh", run)
    with pytest.raises(SystemExit) as end:
        refresh.main()
    said, faults = capsys.readouterr().out, failing != "none"
    assert [said.count(f"... {word}") for word in ("not", "changed")] == [faults, 2 - faults]
    assert end.value.code == faults


@pytest.mark.slow
def test_a_wanted_error_is_stored_without_the_paths_of_this_machine(tmp_path):
    path = write(tmp_path / "03_tiny.ipynb", "open('nothing')", tags=["raises-exception"])
    assert refresh.refresh(path)
    (error,) = nbformat.read(path, as_version=4).cells[1].outputs
    assert error.ename == "FileNotFoundError"
    assert not [part for part in error.traceback if "/" in part]
