"""A kernel without PyTorch is told in one sentence, whichever room a cell imports first."""

import subprocess
import sys

import pytest

WITHOUT = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "torch" else find(name, *more)
"""


@pytest.mark.parametrize(
    "line",
    [
        "from lesson import check",
        "from helpers.attention import causal_mask",
        "from helpers.toy import TEXTS",
        "from explorers import explore_context",
        "from attention_clinic import no_leak",
    ],
)
def test_no_torch_is_told_in_one_sentence(line):
    run = subprocess.run(
        [sys.executable, "-c", f"{WITHOUT}\n{line}"], capture_output=True, text=True
    )
    assert run.returncode == 1
    said = run.stderr.splitlines()[-1]
    assert said.startswith("ModuleNotFoundError: The Python of this kernel, ")
    assert "has no PyTorch. Start with `make lab`" in said
