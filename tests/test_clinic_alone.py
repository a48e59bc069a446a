"""The clinic as pip installs it: with torch and NumPy, and nothing else of this project."""

import os
import shutil
import subprocess
import sys
import sysconfig

import pytest

from tests.installed import RIGHT_ATTENTION, install
from tools.notebooks import ROOT

MODULES = f"""{RIGHT_ATTENTION}
class NoMask(Right):
    def forward(self, x):
        return self.inner(x, x, x)[0]
"""
TEST = """from attention_clinic import assert_healthy
from mine import NoMask, Right
def test_right(): assert_healthy(Right(32, 4), C=32, n_head=4)
def test_no_mask(): assert_healthy(NoMask(32, 4), C=32, n_head=4)
"""

pytestmark = pytest.mark.slow  # pip builds a wheel


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A folder with what the wheel holds in site/, and these modules and tests beside it."""
    folder = tmp_path_factory.mktemp("alone")
    for name in ("attention_base", "attention_clinic"):  # pip builds where the source lies
        shutil.copytree(ROOT / name, folder / "source" / name)
    install(folder / "source/attention_clinic", folder / "site")
    (folder / "mine.py").write_text(MODULES)
    (folder / "test_mine.py").write_text(TEST)
    return folder


def run(alone, *words):
    """Start Python without the project: -S leaves out the .pth files that lead to it."""
    path = [str(alone / "site"), str(alone), sysconfig.get_paths()["purelib"]]
    return subprocess.run(
        [sys.executable, "-S", "-P", *words],
        cwd=alone,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
    )


def test_it_brings_its_pages_and_no_other_room(alone):
    for name in ("helpers", "lesson", "feedback", "explorers", "tests"):
        assert run(alone, "-c", f"import {name}").returncode == 1, name
    pages = {path.name for path in (ROOT / "attention_clinic").glob("*.md")} - {"README.md"}
    assert pages <= {path.name for path in (alone / "site/attention_clinic").iterdir()}


@pytest.mark.parametrize(
    ("name", "code", "told"), [("Right", 0, "HEALTHY"), ("NoMask", 1, "no mask")]
)
def test_the_command_judges_a_file(alone, name, code, told):
    done = run(alone, "-m", "attention_clinic", f"mine.py:{name}", "--C=32", "--n-head=4")
    assert (done.returncode, done.stderr) == (code, "") and told in done.stdout
    assert (alone / "site/bin/attention-clinic").exists()
    version = "import attention_clinic as c, importlib.metadata as m; print(c.__version__); "
    done = run(alone, "-c", f"{version}print(m.version('attention-clinic'))")
    assert len(set(done.stdout.split())) == 1, done.stdout + done.stderr


def test_a_pytest_fails_where_the_module_is_wrong(alone):
    done = run(alone, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py")
    assert "1 failed, 1 passed" in done.stdout and "no mask" in done.stdout
