"""conda, Binder and Codespaces start the notebooks as make does: what can be tried without them.

Their services are not run here. For Binder, the Dockerfile of ``repo2docker --no-build`` (2026.4)
was read: it installs binder/environment.yml, whose folder its mamba (2.3.3) gives to pip, and runs
binder/postBuild and binder/start in the project. devcontainer.json is valid by the schema of the
devcontainers specification.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml

from tools import notebooks

ROOT = notebooks.ROOT
CPU = "https://download.pytorch.org/whl/cpu"
ENVIRONMENT, BINDER = (
    yaml.safe_load((ROOT / folder / "environment.yml").read_text(encoding="utf-8"))
    for folder in (".", "binder")
)
CONTAINER = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))


def test_conda_installs_the_one_list_with_pytorchs_cpu_build():
    *plain, last = ENVIRONMENT["dependencies"]
    assert [re.split("[=<>]", name)[0] for name in plain] == ["python", "pip"]
    assert last == {"pip": [f"--extra-index-url {CPU}", "-r requirements.txt", "-e ."]}


def test_binder_installs_what_conda_does_as_seen_from_its_folder():
    *plain, last = BINDER["dependencies"]
    from_the_root = [line.replace("../", "").replace("..", ".") for line in last["pip"]]
    assert {**BINDER, "dependencies": [*plain, {"pip": from_the_root}]} == ENVIRONMENT
    assert {"-r ../requirements.txt", "-e .."} < set(last["pip"])


def test_the_address_of_the_cpu_build_is_the_same_everywhere():
    assert CONTAINER["containerEnv"] == {"TORCH_INDEX": CPU}
    for name in ("README.md", "CONTRIBUTING.md", "environment.yml", "binder/environment.yml"):
        found = re.findall(r"https://download\.pytorch\.org[\w./-]*", (ROOT / name).read_text())
        assert set(found) == {CPU}, name


def test_all_take_the_oldest_python_that_the_project_allows():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    assert ENVIRONMENT["dependencies"][0] == f"python={oldest}"
    assert CONTAINER["image"].rpartition(":")[2] == oldest


@pytest.fixture
def clone(tmp_path):
    """The project as Binder has it, in its folder."""
    for name in ("binder", "tools", "notebooks"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "attention_base").symlink_to(ROOT / "attention_base")
    return tmp_path


def run(folder, *command):
    """Run a command as Binder does, with the project's Python first; returns what it prints."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "PYTHONPATH")}
    return subprocess.run(
        command,
        cwd=folder,
        env={**settings, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_binder_has_copies_without_outputs(clone):
    run(clone, "./binder/postBuild")
    copies = notebooks.names(clone / "work")
    assert [path.name for path in copies] == [path.name for path in notebooks.names()]
    for path in copies:
        assert not any(cell.get("outputs") for cell in nbformat.read(path, as_version=4).cells)


def test_binder_opens_the_first_notebook_with_one_thread_a_kernel(clone):
    assert run(clone, "./binder/start", "printenv", "OMP_NUM_THREADS") == "1"
    first = notebooks.names()[0].name
    for command in ("jupyter lab --ip=0.0.0.0", "python3 -c jupyterlab --port=8888"):
        said = run(clone, "./binder/start", "echo", *command.split())
        assert said == f"{command} --LabApp.default_url=/lab/tree/work/{first}"
    assert run(clone, "./binder/start", "echo", "bash") == "bash"


def test_codespaces_installs_with_make_and_opens_the_lab():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    make, ready = CONTAINER["updateContentCommand"].split()
    assert make == "make" and f"\nREADY := {ready}\n" in makefile
    make, lab, arguments = shlex.split(CONTAINER["postAttachCommand"])
    assert (make, lab) == ("make", "lab") and arguments.startswith("LAB_ARGS=--no-browser ")


def test_codespaces_forwards_the_port_of_the_lab_and_only_its_pages_may_ask():
    (port,) = CONTAINER["forwardPorts"]
    assert list(CONTAINER["portsAttributes"]) == [str(port)]
    arguments = CONTAINER["postAttachCommand"]
    assert f"--port={port} --ServerApp.port_retries=0" in arguments
    allowed = re.search(r"allow_origin_pat=([^']+)'", arguments)[1].replace("$$", "$")  # as make
    assert re.match(allowed, f"https://fluffy-name-{port}.app.github.dev")
    assert not re.match(allowed, f"https://fluffy-name-{port}-app.github.dev")
    assert not re.match(allowed, "https://fluffy-name-9999.app.github.dev")
    assert not re.match(allowed, f"https://fluffy-name-{port}.app.github.dev.example.org")
