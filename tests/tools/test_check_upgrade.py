"""make check-upgrade in a small project: real pip and kernels, a package made here, no network."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import zipfile

import nbformat
import pytest
from nbformat import v4

from tools import check_upgrade, notebooks
from tools.check_upgrade import Change, differences, examine, verdict, wanted

# What the package under trial says; an older one without VALUE is installed for the tests.
NEW = "VALUE = 0.5898"


def printed(text):
    return [v4.new_output("stream", text=f"{text}\n")]


class Project:
    """A copy of the tools with one notebook and a list of one package, syrupy."""

    def __init__(self, folder):
        self.folder, self.wheels = folder / "the project", folder / "wheels"
        shutil.copytree(
            notebooks.ROOT / "tools",
            self.folder / "tools",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        for name in (
            "__init__",
            "glossary",
        ):  # they import helpers and so torch, which takes a while
            (self.folder / f"tools/{name}.py").write_text("")
        (self.folder / "notebooks").mkdir()
        self.wheels.mkdir()
        self.pinned = check_upgrade.pins()["syrupy"]
        (self.folder / "requirements.txt").write_text(f"syrupy=={self.pinned}  # tests\n")
        self.release("99.0")

    def release(self, version, code=NEW, needs="", module="syrupy"):
        """Make a release of the package that pip can install without a network."""
        about = f"syrupy-{version}.dist-info"
        with zipfile.ZipFile(self.wheels / f"syrupy-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{module}.py", code)
            wheel.writestr(
                f"{about}/METADATA",
                f"Metadata-Version: 2.1\nName: syrupy\nVersion: {version}\n{needs}",
            )
            wheel.writestr(
                f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{about}/RECORD", "")

    def write(self, *cells, name="00_tiny"):
        """Write a notebook of cells, each with what is stored below it."""
        made = [v4.new_code_cell(code, outputs=outputs) for code, outputs in cells]
        path = self.folder / f"notebooks/{name}.ipynb"
        nbformat.write(v4.new_notebook(cells=[v4.new_markdown_cell("# Why?"), *made]), path)
        return path

    def start(self, *asked, before=lambda: None, **settings):
        """Start the check; ``before`` runs in its process first."""

        def ready():
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            before()

        outer = ("PIP_", "TORCH_INDEX", "ATTENTION_")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(outer)}
        offline = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": str(self.wheels)}
        return subprocess.Popen(
            [sys.executable, "-m", "tools.check_upgrade", *asked],
            cwd=self.folder,
            env={**environment, **offline, "PYTHONPATH": "", "PIP_NO_INDEX": "1", **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=ready,
        )

    def check(self, *asked, **settings):
        """Run the check: its exit code, what it says, and the one sentence of a failure."""
        running = self.start(*asked, **settings)
        out, err = running.communicate(timeout=120)
        assert not list((self.folder / "build").glob("upgrade-*")), "its environment is still there"
        assert "Traceback" not in out + err, err
        return running.returncode, out, err.strip()


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def one_sentence(text, *parts):
    return text.endswith(".") and "\n" not in text and all(part in text for part in parts)


def test_each_changed_cell_is_named_with_its_numbers_before_and_after(project):
    path = project.write(
        ("import os, syrupy", []),
        ("print(f'{syrupy.VALUE:.2f}')", printed("0.59")),
        ("print('row 0')\nprint(f'{syrupy.VALUE:.4f}')", printed("row 0\n0.5899")),
        ("assert syrupy.VALUE > 0.5898, 'too small'", []),
        ("assert os.environ.get('ATTENTION_STRICT') != '1', 'an edge'", []),
    )
    stored = path.read_bytes()
    code, out, err = project.check("syrupy==99.0")
    assert (code, err) == (1, "")
    assert f"Trying syrupy 99.0 instead of {project.pinned}\n" in out
    _, first, second, third, end = out.split("\n\n")
    assert first.splitlines() == [
        "00_tiny.ipynb, cell 4 (`print('row 0')`) changed",
        "  stdout:",
        "    before: 0.5899",
        "    now:    0.5898",
    ]
    assert second.startswith("00_tiny.ipynb, cell 5") and second.splitlines()[0].endswith("fails")
    assert "AssertionError: too small" in second
    assert third.startswith("00_tiny.ipynb, cell 6") and third.splitlines()[0].endswith("changed")
    assert end.startswith("3 of 5 cells changed, and 1 of them fails: stay with the versions")
    assert path.read_bytes() == stored


@pytest.mark.slow
def test_the_newest_release_that_changes_nothing_is_0(project):
    project.release("99.1", "VALUE = 0.5899")
    project.write(("import syrupy\nprint(f'{syrupy.VALUE:.4f}')", printed("0.5899")))
    code, out, err = project.check()
    assert (code, err) == (0, "")
    assert "Trying syrupy 99.1" in out
    assert out.splitlines()[-1].startswith("Nothing changed: 1 cell ran")


@pytest.mark.slow
def test_without_a_newer_release_nothing_runs(project):
    (project.wheels / "syrupy-99.0-py3-none-any.whl").unlink()
    project.write(("1 / 0", []))
    code, out, err = project.check()
    assert (code, err) == (0, "")
    assert "Nothing to try" in out.splitlines()[-1]


def test_a_release_that_is_not_there_is_told_with_those_there_are(project):
    code, _, err = project.check("syrupy==98.0")
    assert code == 1
    assert one_sentence(err, "no syrupy==98.0 for Python 3.", "the newest are 99.0", "upgrade.log")
    assert "98.0" in (project.folder / "build/upgrade.log").read_text()


@pytest.mark.slow
def test_an_index_that_does_not_answer_is_told(project):
    nowhere = {"PIP_NO_INDEX": "0", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": "http://127.0.0.1:1/"}
    code, _, err = project.check("syrupy==99.0", **nowhere)
    assert code == 1 and one_sentence(err, "cannot be reached", "check the network")


@pytest.mark.slow
def test_a_disk_that_is_full_is_told(project):
    project.release("99.2", f"TEXT = '{'x' * 3_000_000}'")

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    code, _, err = project.check("syrupy==99.2", before=little_room)
    assert code == 1 and one_sentence(err, "disk is full", "free some disk space")
    code, _, err = project.check(
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    )
    assert code == 1 and one_sentence(err, "build cannot be written", "the disk is full")


@pytest.mark.slow
def test_versions_that_do_not_go_together_are_told(project):
    with (project.folder / "requirements.txt").open("a") as file:
        file.write("nbval==0.11.0  # tests\n")
    project.release("99.3", needs="Requires-Dist: nbval>=50\n")
    code, _, err = project.check("syrupy==99.3")
    assert code == 1 and one_sentence(err, "do not go together", "syrupy 99.3 depends on nbval>=50")


@pytest.mark.slow
def test_a_python_that_dies_of_the_new_package_is_told(project):
    project.release("99.4", "raise ImportError('libtorch is missing')", module="nbformat")
    code, _, err = project.check("syrupy==99.4")
    assert code == 1 and one_sentence(err, "No notebook could be run", "libtorch is missing")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing_behind(project, number):
    sleeps = "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))"
    project.write((f"{sleeps}\ntime.sleep(60)", []))
    running = project.start("syrupy==99.0")
    note = project.folder / "notebooks/pid"
    while not note.exists() or not note.read_text():
        assert running.poll() is None, running.communicate()
        time.sleep(0.02)
    running.send_signal(number)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 1
    assert one_sentence(err.strip(), "Interrupted", "nothing else was changed")
    assert not list((project.folder / "build").glob("upgrade-*"))
    end = time.monotonic() + 20
    while os.path.exists(f"/proc/{note.read_text()}") and time.monotonic() < end:
        time.sleep(0.1)
    assert not os.path.exists(f"/proc/{note.read_text()}"), "its kernel still runs"


# --- Without pip and kernels -------------------------------------------------------------------


def test_what_is_asked_for_takes_the_place_of_the_pin(monkeypatch):
    monkeypatch.setattr(check_upgrade, "pins", lambda: {"torch": "2.13.0", "pytest-xdist": "3.8"})
    assert wanted(["torch==2.15.0"]) == ["torch==2.15.0", "pytest-xdist==3.8"]
    assert wanted(["PyTest_xdist"]) == ["torch==2.13.0", "pytest-xdist"]
    assert wanted([]) == ["torch", "pytest-xdist"]


def test_every_pin_of_the_project_is_read():
    assert check_upgrade.pins()["torch"] == "2.13.0"
    assert len(check_upgrade.pins()) >= 13


def test_a_package_that_the_project_does_not_use_is_refused(refused):
    assert "does not pin tensorflow: choose from torch, " in refused(wanted, ["tensorflow==3.0"])


@pytest.mark.parametrize("asked", ["torch>=2", "torch=2.15.0", "--upgrade", "torch=="])
def test_what_is_no_package_with_a_version_is_refused(refused, asked):
    assert "as in PKG=torch==2.15.0" in refused(wanted, [asked])


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """Compare a cell's stored outputs with new ones, without a kernel."""

    def compared(before, now, tags=()):
        path = tmp_path / "03_tiny.ipynb"
        cell = v4.new_code_cell("x", outputs=before, metadata={"tags": list(tags)})
        nbformat.write(v4.new_notebook(cells=[cell]), path)
        new = v4.new_notebook(cells=[v4.new_code_cell("x", outputs=now)])
        monkeypatch.setattr(check_upgrade, "execute", lambda *_, **__: new)
        return examine(path)

    return compared


def shows(**data):
    kinds = {"text": "text/plain", "html": "text/html", "png": "image/png"}
    return v4.new_output("execute_result", {kinds[k]: v for k, v in data.items()})


def raises(value):
    return v4.new_output("error", ename="ValueError", evalue=value, traceback=["File /here"])


def test_what_nbval_does_not_compare_is_no_change(ran):
    assert ran([shows(text="1", png="AA")], [shows(text="1", png="BB")]) == (1, [])
    assert ran(printed("1"), printed("2"), tags=["nbval-ignore-output"]) == (1, [])
    halves = [v4.new_output("stream", text=text) for text in ("1 ", "2\n")]
    assert ran(printed("1 2"), halves) == (1, [])
    assert ran([raises("no")], [raises("no")], tags=["raises-exception"]) == (1, [])


def test_what_nbval_compares_is_a_change(ran):
    for before, now in [
        ([shows(text="1")], [shows(text="2")]),
        ([shows(text="1", html="<b>")], [shows(text="1", html="<i>")]),
        ([shows(text="1")], []),
        (printed("1"), [v4.new_output("stream", name="stderr", text="1\n")]),
        ([raises("no")], [raises("not")]),
        ([raises("no")], []),
    ]:
        count, (change,) = ran(before, now)
        assert count == 1 and not change.fails, (before, now)


def test_a_cell_that_raises_fails_even_where_its_output_is_not_compared(ran):
    _, (change,) = ran(printed("1"), [raises("no")], tags=["nbval-ignore-output"])
    assert change.fails and change.where == "03_tiny.ipynb, cell 1 (`x`)"


def test_a_kernel_that_dies_fails_its_notebook(ran, monkeypatch):
    ran([], [])

    def dies(*_, **__):
        raise check_upgrade.CellFailed("cell 1 (`x`) ended the kernel")

    monkeypatch.setattr(check_upgrade, "execute", dies)
    notebook = notebooks.ROOT / "notebooks/00_start_here.ipynb"
    count, (change,) = examine(notebook)
    assert count == 0 and change.fails
    assert change.where == "00_start_here.ipynb, cell 1 (`x`) ended the kernel"


def test_text_is_told_before_html_and_long_lines_around_the_difference():
    before, now = ({"text/plain": t, "text/html": f"<b>{t}"} for t in ("1.5", "2.5"))
    assert differences(before, now) == ["text/plain:", "  before: 1.5", "  now:    2.5"]
    before, now = ({"text/html": f"{'<td>' * 90}{n}{'</td>' * 90}"} for n in (7, 8))
    _, one, two = differences(before, now)
    assert ">7<" in one and ">8<" in two and len(one) < 120
    many, none = {"stdout": "\n".join("abc" * 9)}, {}
    assert differences(many, none)[-1] == "  and 16 more lines"


def test_the_verdict_counts_in_words():
    changed = Change("03", False, [])
    assert verdict(235, []).startswith("Nothing changed: 235 cells ran, and each")
    assert verdict(235, [changed, changed]).startswith("2 of 235 cells changed, none fails.")
    failing = Change("04", True, [])
    assert "2 of 235 cells changed, and 1 of them fails:" in verdict(235, [changed, failing])
    assert "2 of 235 cells changed, and 2 of them fail:" in verdict(235, [failing, failing])
