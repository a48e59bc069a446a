"""The package of `make wheel` in an empty folder: a notebook alone, and the command."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig

import pytest
from nbformat import v4

from tests.installed import install
from tools import notebooks

ROOT = notebooks.ROOT
ROOMS = (*notebooks.ROOMS, "notebooks", "benchmarks/results")
NEEDED = {".py", ".ipynb", ".json", ".md", ".npz", ".pt", ".txt"}  # and no pictures of benchmarks
ALONE = "15_a_real_model.ipynb"  # it reads stored answers, stored measurements and weights
# nbval gives up when a cell is silent for 5 s: the first one imports torch.
PATIENT = """def pytest_collection_modifyitems(items):
    for item in items:
        item.output_timeout = 60
"""
BEFORE = "import helpers, pathlib; print(pathlib.Path(helpers.__file__).parents[1].name)"

pytestmark = pytest.mark.slow  # pip builds a wheel


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """What pip installs of the wheel, without what it needs."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # pip builds where the source lies
    for name in (*ROOMS, "tools"):
        shutil.copytree(ROOT / name, source / name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    install(source, folder / "site")
    return folder / "site"


def run(site, folder, *words, first=""):
    """Start Python in a folder without the project, to which .pth files lead: -S skips them."""
    path = os.pathsep.join([str(first), str(site), sysconfig.get_paths()["purelib"]])
    settings = {name: v for name, v in os.environ.items() if name != "ATTENTION_PROGRESS"}
    return subprocess.run(
        [sys.executable, "-S", "-P", *words],
        cwd=folder,
        env=settings | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_it_has_every_file_of_the_rooms_and_of_tools_what_the_command_needs(site):
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.*"):
            if path.suffix in NEEDED and "__pycache__" not in path.parts:
                assert (site / path.relative_to(ROOT)).exists(), path
    tools = {path.stem for path in (site / "tools").glob("*.py")}
    assert tools == {"__init__", "lab", "lab_connection", "notebooks"}
    assert not (site / "tests").exists() and (site / "bin/attention-course").exists()


def test_a_notebook_runs_alone_and_keeps_answers_beside_itself(site, tmp_path):
    nb = json.loads((ROOT / "notebooks" / ALONE).read_text(encoding="utf-8"))
    first = v4.new_code_cell(BEFORE, execution_count=1)  # as Colab installs in a cell
    first.outputs = [v4.new_output("stream", text=f"{site.name}\n")]
    nb["cells"].insert(1, first)
    (tmp_path / ALONE).write_text(json.dumps(nb), encoding="utf-8")
    (tmp_path / "conftest.py").write_text(PATIENT)
    options = "--nbval --nbval-current-env -q -p no:cacheprovider --color=no"
    done = run(site, tmp_path, "-m", "pytest", *options.split(), ALONE)
    assert done.returncode == 0, done.stdout + done.stderr
    (kept,) = (tmp_path / "work").iterdir()
    ids = [json.loads(line)["id"] for line in kept.read_text().splitlines()]
    assert kept.name == "progress.jsonl" and {id[:2] for id in ids} == {"15"}


def test_the_command_copies_where_one_stands_and_opens_jupyterlab_there(site, tmp_path):
    here, pretended = tmp_path / "here", tmp_path / "jupyterlab"
    here.mkdir()
    pretended.mkdir()
    (pretended / "__init__.py").touch()
    (pretended / "__main__.py").write_text("import sys; print(*sys.argv[1:], sep='\\n')")
    (here / "00_start_here.ipynb").write_text("mine")
    done = run(site, here, "-c", "from tools.lab import course; course()", first=tmp_path)
    assert done.returncode == 0, done.stderr
    arguments = done.stdout.splitlines()
    assert f"--ServerApp.root_dir={here}" in arguments
    settings = f"--LabApp.app_settings_dir={site}/tools/lab_settings"
    assert settings in arguments and (site / "tools/lab_settings/overrides.json").exists()
    assert (here / "00_start_here.ipynb").read_text() == "mine"
    assert {path.name for path in here.iterdir()} == {path.name for path in notebooks.names()}
