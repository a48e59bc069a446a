"""Where a kernel lacks PyTorch or our packages, the first cell of a notebook says what to do."""

import json
import re
import subprocess
import sys

import pytest

from tools import notebooks

SET_UPS = {  # the first code cell of each notebook
    path.stem: next(
        "".join(cell["source"])
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    )
    for path in notebooks.names()
}
IN_A_KERNEL = "from IPython.core.interactiveshell import InteractiveShell as S; S().run_cell({!r})"


def run_without(module, code):
    """Run code in a Python that has not this module."""
    hidden = f"import sys; sys.modules[{module!r}] = None\n"
    return subprocess.run([sys.executable, "-c", hidden + code], capture_output=True, text=True)


@pytest.mark.parametrize(
    "code",
    [
        "from lesson import check",
        "from helpers.attention import causal_mask",
        "from helpers.toy import TEXTS",
        "from explorers import explore_context",
        "from attention_clinic import no_leak",
        *(pytest.param(code, id=name) for name, code in SET_UPS.items()),
    ],
)
def test_no_torch_is_told_in_one_sentence(code):
    run = run_without("torch", code)
    assert run.returncode == 1
    said = run.stderr.splitlines()[-1]
    assert said.startswith("ModuleNotFoundError: The Python of this kernel, ")
    assert "has no PyTorch. Start with `make lab`" in said


def test_no_packages_of_ours_are_told_above_the_line_that_fails():
    told = r"^# Set-up\. Not found\? .*kernel.*%pip install.*\nfrom (explorers|attention_clinic)"
    for name, code in SET_UPS.items():
        assert re.search(told, code, re.M), name
    code = IN_A_KERNEL.format(SET_UPS["00_start_here"])
    shown = re.sub(r"\x1b\[[\d;]*m", "", run_without("explorers", code).stdout)
    assert "ModuleNotFoundError" in shown and "%pip install its wheel in a cell above" in shown, (
        shown
    )
