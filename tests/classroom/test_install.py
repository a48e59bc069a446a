"""What classroom/install.sh finds before it installs anything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from classroom import HUB
from tools import notebooks


def install(**settings):
    """Run the script; returns its exit code and what it says."""
    done = subprocess.run(
        ["bash", "classroom/install.sh"],
        cwd=notebooks.ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def test_nothing_is_done_where_all_is_installed():
    before = (HUB / "installed").stat().st_mtime
    assert install() == (0, "")
    assert (HUB / "installed").stat().st_mtime == before


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
