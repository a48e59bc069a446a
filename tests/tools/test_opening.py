"""make lab and make fresh, run in a small copy of the project, with a JupyterLab of two lines."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

import nbformat
import pytest
from nbformat import v4
from traitlets import import_item

from tools import lab, notebooks

PRETENDED_LAB = "import json, sys\nopen('arguments', 'w').write(json.dumps(sys.argv[1:]))\n"


@pytest.fixture
def project(tmp_path):
    """A copy of tools/ beside two notebooks of one cell each."""
    shutil.copytree(notebooks.ROOT / "tools", tmp_path / "tools")
    for package in ("notebooks", "jupyterlab"):
        (tmp_path / package).mkdir()
    (tmp_path / "jupyterlab/__init__.py").touch()
    (tmp_path / "jupyterlab/__main__.py").write_text(PRETENDED_LAB)
    for name in ("00_first", "01_second"):
        output = v4.new_output("stream", text="told")
        cell = v4.new_code_cell(f"{name!r}", outputs=[output], execution_count=1)
        nbformat.write(v4.new_notebook(cells=[cell]), tmp_path / f"notebooks/{name}.ipynb")
    return tmp_path


def run(project, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def files(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.ipynb")}


@contextlib.contextmanager
def listening():
    """A port of this machine on which somebody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


@pytest.fixture
def free():
    """A port that is free, as far as a machine can say that."""
    with listening() as port:
        pass
    return port


def test_lab_opens_copies_without_outputs_and_never_the_originals(project, free):
    originals = files(project / "notebooks")
    said = run(project, "tools.lab", "--no-browser", "--port", str(free))
    assert "00_first.ipynb, 01_second.ipynb" in said
    arguments = json.loads((project / "arguments").read_text())
    assert f"--ServerApp.root_dir={project / 'work'}" in arguments
    assert "--LabApp.default_url=/lab/tree/00_first.ipynb" in arguments
    assert arguments[-3:] == ["--no-browser", "--port", str(free)] and "is taken" not in said
    assert not [part for part in arguments if str(project / "notebooks") in part]
    assert files(project / "notebooks") == originals
    for name in originals:
        (cell,) = nbformat.read(project / "work" / name, as_version=4).cells
        assert (cell.outputs, cell.execution_count) == ([], None)


@pytest.mark.parametrize("form", ["--port {}", "--port={}", "--ServerApp.port={}"])
def test_a_port_that_is_taken_is_told_with_the_one_that_is_free(form, capsys):
    with listening() as port:
        given = ["--no-browser", *form.format(port).split(), "--ip=127.0.0.1"]
        *others, other = lab.with_free_port(given)
        flag, _, free = other.partition("=")
        assert others == ["--no-browser", "--ip=127.0.0.1"]  # JupyterLab refuses two ports
        assert flag == "--ServerApp.port" and port < int(free) < port + 5
        said = f"Port {port} is taken by another program, so JupyterLab takes port {free}.\n"
        assert capsys.readouterr().out == said
        for more in (["--port-retries", "0"], ["--ServerApp.port_retries=0"]):
            assert lab.with_free_port(given + more) == given + more
    assert lab.with_free_port(given) == given
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("given", ["--port", "--port x", "--port=0", "--port=70000"])
def test_what_is_no_port_is_left_to_jupyterlab(given, capsys):
    assert lab.with_free_port(given.split()) == given.split()
    assert capsys.readouterr().out == ""


def test_the_usual_port_is_asked_for_too(monkeypatch, capsys):
    with listening() as port:
        monkeypatch.setenv("JUPYTER_PORT", str(port))
        first, other = lab.with_free_port(["--no-browser"])
        assert first == "--no-browser" and other.startswith("--ServerApp.port=")
        assert f"Port {port} is taken" in capsys.readouterr().out
        monkeypatch.setenv("JUPYTER_PORT_RETRIES", "0")
        assert lab.with_free_port(["--no-browser"]) == ["--no-browser"]


def test_fresh_gives_one_new_copy_and_leaves_the_others(project):
    run(project, "tools.lab")
    for name in ("00_first", "01_second"):
        (project / f"work/{name}.ipynb").write_text(f"my {name}")
    said = run(project, "tools.fresh", "1")
    assert "work/old/01_second-" in said and "New: work/01_second.ipynb" in said
    assert (project / "work/00_first.ipynb").read_text() == "my 00_first"
    assert nbformat.read(project / "work/01_second.ipynb", as_version=4).cells
    (old,) = (project / "work/old").iterdir()
    assert old.read_text() == "my 01_second"


OPEN_SLIDES = """import os
from tools.slides import live
if hasattr(os, "geteuid") and os.geteuid() == 0:
    live.sys.argv.append("--allow-root")
live.main("00")
"""


@pytest.mark.slow  # two servers
def test_slides_on_a_port_that_is_taken_and_without_a_browser_say_so(project):
    shutil.rmtree(project / "jupyterlab")  # the real one
    (project / "attention_base").symlink_to(notebooks.ROOT / "attention_base")
    (project / "open.py").write_text(OPEN_SLIDES)
    nothing = project / "nothing"
    nothing.mkdir()
    with listening() as port:
        with open(project / "log", "w") as log:
            server = subprocess.Popen(
                [sys.executable, "open.py", "00", f"--port={port}"],
                cwd=project,
                env=os.environ
                | {"PYTHONPATH": str(project), "HOME": str(project), "PATH": str(nothing)},
                stdout=log,
                stderr=log,
            )
        for _ in range(300):
            said = (project / "log").read_text()
            if server.poll() is not None or "Or copy and paste" in said:
                break
            time.sleep(0.1)
        server.terminate()
        server.wait()
    taken, free = re.search(r"Port (\d+) is taken .* takes port (\d+)\.", said).groups()
    assert int(taken) == port and "already in use" not in said
    assert "No web browser found" in said
    assert f"http://127.0.0.1:{port}/" not in said
    assert f"http://127.0.0.1:{free}/" in said.partition("Or copy and paste")[2]


def settings():
    """What make lab tells JupyterLab, by class and name."""
    given = [part[2:].partition("=") for part in lab.arguments(notebooks.WORK, "") if "." in part]
    return {name: value for name, _, value in given}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # what it imports warns of itself
def test_jupyterlab_knows_every_setting_that_it_is_given():
    """It only warns of a name that it does not know, and goes on without."""
    from jupyter_lsp import LanguageServerManager
    from jupyter_server.serverapp import ServerApp
    from jupyterlab.labapp import LabApp

    classes = {kind.__name__: kind for kind in (ServerApp, LabApp, LanguageServerManager)}
    assert len(settings()) >= 8
    for setting in settings():
        owner, _, name = setting.partition(".")
        assert name in classes[owner].class_traits(), setting


def test_jupyterlab_asks_nothing_and_fetches_nothing():
    given = settings()
    assert given["LabApp.news_url"] == "None"
    assert given["LabApp.extension_manager"] == "readonly"
    never = import_item(given["LabApp.check_for_updates_class"])
    assert never.__name__ == "NeverCheckForUpdate"
    overrides = json.loads((lab.SETTINGS / "overrides.json").read_text())
    assert given["LabApp.app_settings_dir"] == str(lab.SETTINGS)
    asked = overrides["@jupyterlab/apputils-extension:notification"]
    assert asked == {"fetchNews": "false", "checkForUpdates": False}
