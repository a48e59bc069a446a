"""Running the notebooks as make test does keeps nobody's progress."""

import os
import subprocess
import sys

import pytest

from tools import notebooks


@pytest.mark.slow  # a second pytest with a kernel
def test_a_run_of_a_notebook_by_nbval_leaves_no_progress(tmp_path):
    """Not even where a learner has named a file: a notebook with three checks, all cells."""
    mine, default = tmp_path / "mine.jsonl", notebooks.WORK / "progress.jsonl"
    before = default.read_bytes() if default.exists() else None
    (notebook,) = notebooks.chosen("01")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval"]
    done = subprocess.run(
        [*command, "--nbval-current-env", str(notebook)],
        cwd=notebooks.ROOT,
        env={**os.environ, "ATTENTION_PROGRESS": str(mine)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout
    assert list(tmp_path.iterdir()) == []
    assert (default.read_bytes() if default.exists() else None) == before
