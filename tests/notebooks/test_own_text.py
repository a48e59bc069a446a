"""Notebook 10 runs on a text of the learner's own when one line is changed; with fewer steps."""

import re

import nbformat
import pytest
import torch

from tests.cells import fresh_shell
from tools import notebooks

LINE = 'own_text = ""'


@pytest.mark.slow
def test_one_line_changes_the_text(tmp_path):
    (path,) = notebooks.chosen("10")
    text = tmp_path / "my_text.txt"
    pages = [notebooks.ROOT / "README.md", *sorted((notebooks.ROOT / "teaching").glob("*.md"))]
    text.write_text("\n\n".join(page.read_text("utf-8") for page in pages), encoding="utf-8")
    code = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    changed = [source.replace(LINE, f'own_text = "{text}"') for source in code]
    assert sum(a != b for a, b in zip(code, changed, strict=True)) == 1
    changed = [re.sub(r"(trained\(\w+, )\d+", r"\g<1>40", source) for source in changed]
    with fresh_shell() as shell, torch.random.fork_rng(devices=[]):
        for source in changed:
            ran = shell.run(source)
            assert ran.error is None, f"{source}\n{ran.error!r}"
        letters = set(text.read_text("utf-8"))
        assert set(shell.shell.user_ns["letters"]) <= letters
