"""Notebooks 04 to 07 and 10 run with right parts in the learner's file that are built otherwise."""

import inspect

import nbformat
import pytest
import torch

from lesson import progress_file
from lesson.builds import right
from tests.cells import fresh_shell
from tests.lesson.build_answers import RIGHT
from tests.lesson.test_mine import GENERATE, SETUP
from tests.notebooks.test_solutions import calls
from tools import notebooks

DESIGNS = {
    "one layer for all three, with biases": (
        RIGHT["Head one layer for all three, bias, SDPA"],
        RIGHT["train Adam, clipped, its rate falls"],
        RIGHT["MultiHeadAttention one layer for all three, bias, SDPA"],
        RIGHT["FeedForward a Sequential, GELU, dropout"],
        RIGHT["Block RMSNorm, GELU, a feed-forward of its own"],
        RIGHT["TinyGPT tied weights, positions, Sequential, dropout"],
    ),
    "lists and dicts": (
        RIGHT["Head parameters in a list, einsum, a kept mask"],
        inspect.getsource(right.train),
        RIGHT["MultiHeadAttention own heads, dropout"],
        inspect.getsource(right.FeedForward),
        RIGHT["Block parts in a dict"],
        inspect.getsource(right.TinyGPT),
    ),
}


PATHS = [*notebooks.names()[4:8], *notebooks.chosen("10")]


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
@pytest.mark.parametrize("parts", DESIGNS.values(), ids=DESIGNS)
def test_all_cells_run_with_other_designs(parts, path, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_PROGRESS", str(tmp_path / "progress.jsonl"))
    monkeypatch.setenv("ATTENTION_STRICT", "0")  # as for a learner, who prints other numbers
    monkeypatch.setattr(progress_file, "_told", False)
    (tmp_path / "mine.py").write_text("\n\n".join([SETUP, *parts, GENERATE]), encoding="utf-8")
    with fresh_shell() as shell, torch.random.fork_rng(devices=[]):
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type == "code":
                ran = shell.run(cell.source)
                assert ran.error is None, f"{cell.source}\n{ran.error!r}"
                assert "stands in for your" not in ran.printed
                builds = [id for id, _ in calls(cell.source, "check") if id[3:].isalpha()]
                assert not builds or "The one in your file stands in" in ran.printed
