"""What pip installs of a folder, and a right attention to try it on."""

import subprocess
import sys

import pytest

RIGHT_ATTENTION = """
from torch import nn

class Right(nn.Module):
    def __init__(self, C, n_head):
        super().__init__()
        self.inner = nn.MultiheadAttention(C, n_head, batch_first=True)
    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.inner(x, x, x, attn_mask=mask)[0]
"""


def install(source, target):
    """Let pip install a source folder into another one, without what it needs."""
    words = f"install --quiet --no-deps --target {target} {source}"
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words.split()], capture_output=True, text=True
    )
    if "No matching distribution" in done.stderr:
        pytest.skip("pip cannot fetch setuptools here")
    assert done.returncode == 0, done.stderr
