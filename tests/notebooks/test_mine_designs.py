"""Notebooks run with parts in the learner's file that are right and built otherwise."""

import ast
import inspect

import nbformat
import pytest
import torch

from lesson import progress_file
from lesson.builds import right, right_08, right_14
from tests.cells import fresh_shell
from tests.lesson.build_answers import RIGHT
from tests.lesson.test_mine import COUNT, GENERATE, SETUP
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
TURN = inspect.getsource(right_08.turn)
# The attention with positions, and what has a cache: the parts that take the places of others.
WITH_ORDER = {
    "one layer for all three, with biases": [
        TURN,
        RIGHT["08.MultiHeadAttention one layer for all three, bias, SDPA, complex numbers"],
    ],
    "lists and dicts": [TURN, RIGHT["08.MultiHeadAttention own heads, positions from 1"]],
}
WITH_CACHE = {
    "one layer for all three, with biases": [
        TURN,
        RIGHT["14.MultiHeadAttention one layer for all three, bias, SDPA"],
        RIGHT["14.Block parts in a dict, by place"],
        RIGHT["14.TinyGPT a list of caches under one name"],
        inspect.getsource(right_14.generate),
    ],
    "lists and dicts": [
        TURN,
        RIGHT["14.MultiHeadAttention own heads, own caches, keys turned when they are read"],
        inspect.getsource(right_14.Block),
        inspect.getsource(right_14.TinyGPT),
        inspect.getsource(right_14.generate),
    ],
}
# Published weights put into such an attention.
FILLED = {
    "one layer for all three, with biases": """
@torch.no_grad()
def fill(attention, query, key, value, proj):
    d, n = len(query) // attention.n_head, len(query) // len(key)
    halves = [z.unflatten(0, (-1, 2, d // 2)) for z in (query, key)]
    q, k = (z.transpose(1, 2).flatten(0, 2) for z in halves)
    k, v = (z.unflatten(0, (-1, d)).repeat_interleave(n, dim=0).flatten(0, 1) for z in (k, value))
    attention.c_attn.weight.copy_(torch.cat([q, k, v]))
    attention.c_proj.weight.copy_(proj)
    attention.c_attn.bias.zero_(), attention.c_proj.bias.zero_()
""",
    "lists and dicts": """
@torch.no_grad()
def fill(attention, query, key, value, proj):
    d, n = len(query) // len(attention.heads), len(query) // len(key)
    turned = [i + j for i in range(d // 2) for j in (0, d // 2)]
    for h, head in enumerate(attention.heads):
        head.q.weight.copy_(query[h * d : (h + 1) * d][turned])
        head.k.weight.copy_(key[h // n * d : (h // n + 1) * d][turned])
        head.v.weight.copy_(value[h // n * d : (h // n + 1) * d])
    attention.last.weight.copy_(proj), attention.last.bias.zero_()
""",
}


def parts_for(design, number):
    """The texts of a file with which a learner comes to the end of a notebook."""
    kinds = {
        "08": WITH_ORDER,
        "10": WITH_ORDER,
        "12": WITH_ORDER,
        "13": WITH_ORDER,
        "14": WITH_CACHE,
        "15": {design: [*parts, FILLED[design]] for design, parts in WITH_CACHE.items()},
    }
    newer = kinds.get(number, {}).get(design, [])
    parts = [COUNT, *DESIGNS[design], GENERATE, *newer]  # of two with one name, the last
    return list({ast.parse(part).body[-1].name: part for part in parts}.values())


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(
    "path",
    [path for path in notebooks.names()[4:] if path.stem[:2] not in ("09", "11")],
    ids=lambda path: path.stem,
)
def test_all_cells_run_with_other_designs(design, path, tmp_path, monkeypatch):
    parts = parts_for(design, path.stem[:2])
    monkeypatch.setenv("ATTENTION_PROGRESS", str(tmp_path / "progress.jsonl"))
    monkeypatch.setenv("ATTENTION_STRICT", "0")  # as for a learner, who prints other numbers
    monkeypatch.setattr(progress_file, "_told", False)
    (tmp_path / "mine.py").write_text("\n\n".join([SETUP, *parts]), encoding="utf-8")
    with fresh_shell() as shell, torch.random.fork_rng(devices=[]):
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type == "code":
                ran = shell.run(cell.source)
                assert ran.error is None, f"{cell.source}\n{ran.error!r}"
                assert "stands in for your" not in ran.printed
                builds = [id for id, _ in calls(cell.source, "check") if id[3:].isalpha()]
                assert not builds or "The one in your file stands in" in ran.printed
