"""What classroom/install.sh finds before it installs anything."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from classroom.simulated import PROGRAMS, until
from tools import notebooks


def install(*arguments, **settings):
    """Run the script; returns its exit code and what it says."""
    done = subprocess.run(
        ["bash", "classroom/install.sh", *arguments],
        cwd=notebooks.ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def test_nothing_is_done_where_all_is_installed():
    before = (PROGRAMS / "installed").stat().st_mtime
    assert install(HUB=str(PROGRAMS)) == (0, "")
    assert (PROGRAMS / "installed").stat().st_mtime == before


@pytest.fixture
def open_folder(tmp_path):
    """A folder that all may enter, as those of pytest are not."""
    folder = Path(f"/opt/hub-test-{os.getpid()}")
    yield folder
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_a_folder_that_students_cannot_enter_is_told(tmp_path):
    code, said = install(HUB=str(tmp_path / "hub"))
    assert code and "Students cannot enter" in said and said.count("\n") == 1


def test_a_python_that_students_cannot_run_is_told(tmp_path, open_folder):
    tmp_path.chmod(0o700)
    (tmp_path / "python3").symlink_to(sys.executable)
    code, said = install(HUB=str(open_folder), PYTHON=str(tmp_path / "python3"))
    assert code and "students cannot run" in said and said.count("\n") == 1
    assert not (open_folder / "venv").exists()


def test_a_second_install_waits_for_the_first(open_folder):
    open_folder.mkdir()
    with open(open_folder / "install.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, said = install(HUB=str(open_folder))
    assert code and "being installed" in said and said.count("\n") == 1
    assert [path.name for path in open_folder.iterdir()] == ["install.lock"]


def test_nothing_is_installed_under_a_hub_that_runs(open_folder):
    """Where the lists have changed, all that its students' servers run would be removed first."""
    (open_folder / "state").mkdir(parents=True)
    (open_folder / "venv").mkdir()
    with open(open_folder / "state/lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, said = install(HUB=str(open_folder))
    assert code and "A hub runs from" in said and said.count("\n") == 1
    assert (open_folder / "venv").exists()


def test_ctrl_c_in_an_install_is_told(open_folder):
    open_folder.mkdir()
    began, python = open_folder / "began", open_folder / "python3"
    python.write_text(f'#!/bin/sh\ncase "$*" in *venv*) : > {began}; exec sleep 30; esac\n')
    python.chmod(0o755)
    running = subprocess.Popen(
        ["bash", "classroom/install.sh"],
        cwd=notebooks.ROOT,
        env={**os.environ, "HUB": str(open_folder / "hub"), "PYTHON": str(python)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until(began.exists, 10)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=30)
    assert running.returncode and said.startswith("Interrupted") and said.count("\n") == 1


@pytest.mark.parametrize("folder", ["hub", "/srv/the hub", "/srv/a:b"])
def test_a_folder_that_cannot_be_used_is_told(folder):
    code, said = install(HUB=folder)
    assert code and "HUB has to be a whole path" in said and said.count("\n") == 1


def test_other_commands_install_nothing(open_folder):
    code, said = install("look", HUB=str(open_folder))
    assert code and "There is no hub in" in said and said.count("\n") == 1
    assert not open_folder.exists()
    assert install("look", HUB=str(PROGRAMS)) == (0, "")
