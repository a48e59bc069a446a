"""make check-upgrade in a small project: real pip and kernels, a package made here, no network."""

import functools
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from nbformat import v4

from tools import notebooks
from tools.check_upgrade import PINS, verdict, wanted

NOTEBOOK = Path("notebooks/00_tiny.ipynb")
PID = Path("notebooks/pid")  # that a cell writes


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Work in a folder with the program and a short list of packages; syrupy is tried."""
    monkeypatch.chdir(tmp_path)
    ours = ("kernels", "notebooks", "check_upgrade", "ignored_cells")
    others = ("tests/plugin.py", "tests/stored.py", "attention_base/files.py")
    for name in (*others, *(f"tools/{name}.py" for name in ours)):
        Path(name).parent.mkdir(exist_ok=True)
        shutil.copy(notebooks.ROOT / name, name)
    # Or a package of this name on PYTHONPATH would stand before it.
    for name in ("attention_base", "tests", "tools"):
        Path(name, "__init__.py").touch()
    Path("pytest.ini").write_text("[pytest]\naddopts = -p tests.plugin\n")
    NOTEBOOK.parent.mkdir()
    Path("requirements.txt").write_text(f"{PINS['syrupy']}  # tests\n{PINS['nbval']}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")


def release(version, code, needs="pytest"):
    """Make a release of the package that pip can install."""
    about = f"syrupy-{version}.dist-info"
    metadata = f"Name: syrupy\nVersion: {version}\nRequires-Dist: {needs}\n"
    with zipfile.ZipFile(f"syrupy-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("syrupy.py", code)
        wheel.writestr(f"{about}/METADATA", metadata)
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\n")
        wheel.writestr(f"{about}/RECORD", "")


def write(*cells):
    """Write a notebook of cells, each with what is stored as printed by it."""
    nb = v4.new_notebook()
    for code, text in cells:
        printed = [v4.new_output("stream", text=text)] if text else []
        nb.cells.append(v4.new_code_cell(code, outputs=printed, execution_count=1))
    NOTEBOOK.write_text(v4.writes(nb))


def check(*asked, interrupt=None):
    """Run it: the exit code, all that is said, and the last line of that."""
    command = [sys.executable, "-m", "tools.check_upgrade", *asked]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    # A shell in the background ignores Ctrl-C for all that it starts: not for this.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    running = subprocess.Popen(command, **pipes, text=True, preexec_fn=heed)
    while interrupt and not (PID.exists() and PID.read_text()):
        assert running.poll() is None, running.communicate()
        time.sleep(0.02)
    if interrupt:
        running.send_signal(interrupt)
    said, _ = running.communicate(timeout=600)
    assert os.listdir("build") == ["upgrade.log"]
    return running.returncode, said, said.splitlines()[-1]


@pytest.mark.slow
def test_what_changes_is_told_before_and_after_and_apart_from_what_fails(project):
    release("99.0", "import sys\nN = 0.5898\nwarn = lambda: print('old', file=sys.stderr)")
    write(
        ("import os, syrupy", ""),
        ("print(f'row\\n{syrupy.N:.4f}')", "row\n0.5899\n"),
        ("syrupy.warn()", ""),
        ("assert syrupy.N > 0.5898, 'too small'", ""),
        ("print(f'{syrupy.N:.2f}', os.environ['ATTENTION_STRICT'])", "0.59 0\n"),
    )
    stored = NOTEBOOK.read_bytes()
    code, said, last = check("syrupy==99.0")
    assert code == 1 and "\nTrying syrupy 99.0\n" in said
    _, number, warning, failing = said.split("___ notebooks/00_tiny.ipynb::Cell ")
    assert number[0] == "1" and "\n-stdout: 0.5899\n+stdout: 0.5898\n" in number
    assert warning[0] == "2" and "\n+stderr: old\n" in warning
    assert failing[0] == "3" and "caused an exception" in failing and "too small" in failing
    assert last.startswith("Of 5 cells 2 changed, 1 failed: stay with")
    assert NOTEBOOK.read_bytes() == stored


@pytest.mark.slow
def test_the_newest_release_is_tried_if_there_is_one(project):
    write(("import syrupy\nprint(syrupy.N)", "0.5899\n"))
    code, _, last = check()
    assert code == 0 and last.startswith("Nothing to try")
    release("99.0", "N = 0.5898")
    release("99.1", "N = 0.5899")
    code, said, last = check()
    assert code == 0 and "Trying syrupy 99.1" in said
    assert last.startswith("Of 1 cells 0 changed, 0 failed: write the new version")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "reason", "sentence"),
    [
        ("98.0", "No matching distribution found for syrupy==98.0", "pip could not install this"),
        ("99.0", "conflicting dependencies", "pip could not install this"),
        ("99.1", "no libtorch", "No notebook could be run"),
    ],
)
def test_what_cannot_be_tried_ends_in_one_sentence(project, version, reason, sentence):
    release("99.0", "", needs="nbval>=50")
    release("99.1", "raise ImportError('no libtorch')")  # pytest imports it as a plugin
    code, said, last = check(f"syrupy=={version}")
    assert code == 1 and reason in said and last.startswith(sentence) and last.endswith(".")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing_behind(project, number):
    release("99.0", "")
    write(("import os, time\nprint(os.getpid(), file=open('pid', 'w'))\ntime.sleep(99)", ""))
    code, _, last = check("syrupy==99.0", interrupt=number)
    assert code == 1 and last.startswith("Interrupted: ")
    late = time.monotonic() + 20
    while Path("/proc", PID.read_text().strip()).exists():
        assert time.monotonic() < late, "its kernel still runs"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("changed", "failed", "late", "oldest", "said"),
    [
        (0, 0, 0, False, "0 changed, 0 failed: write the new version into"),
        (2, 0, 0, False, "2 changed, 0 failed: if that is right"),
        (1, 2, 1, False, "1 changed, 2 failed (not judged, after one that took too long: 1): stay"),
        (0, 0, 0, True, "0 changed, 0 failed: pyproject.toml says so."),
        (1, 0, 0, True, "1 changed, 0 failed: mend the notebooks or the helpers"),
    ],
)
def test_the_results_are_told_with_what_to_do(changed, failed, late, oldest, said):
    cells = changed * ['<failure message="Cell outputs differ"/>'] + ["<skipped/>"] * late
    cells += [*["<failure/>", "<error/>"][:failed], ""]
    results = "".join(f"<testcase>{cell}</testcase>" for cell in cells)
    assert verdict(results, oldest).startswith(f"Of {len(cells)} cells {said}")


def test_what_is_asked_for_is_found_in_the_list():
    assert len(PINS) >= 13 and wanted([]) == {name: name for name in PINS}
    assert wanted(["torch==2.15.0"]) == {"torch": "torch==2.15.0"}
    oldest = wanted(["oldest"])
    assert oldest["torch"].startswith("torch==2.") and oldest["torch"] != PINS["torch"]
    assert wanted(["PyTest_xdist"]) == {"pytest-xdist": "PyTest_xdist"}


@pytest.mark.parametrize("asked", ["tensorflow", "torch>=2", "torch=2.15", "--pre", "torch=="])
def test_what_is_no_package_of_the_list_is_refused(refused, asked):
    assert f"{asked} is not a package of requirements.txt" in refused(wanted, [asked])
