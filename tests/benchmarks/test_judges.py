"""The modules of benchmarks/judges.py: each bug changes what the right module computes."""

import pytest
import torch
from torch import nn

from benchmarks import judges
from benchmarks.judging.cases import STANDARD, THREADS, Attention, Block, C


@pytest.mark.parametrize("case", [*THREADS, *STANDARD], ids=lambda case: case.told)
def test_a_bug_changes_the_numbers(case):
    torch.manual_seed(0)
    wrong = case.make()
    right = Block() if isinstance(wrong, Block) else Attention(causal=case.causal)
    for norm in (m for m in wrong.modules() if isinstance(m, nn.LayerNorm)):
        nn.init.normal_(norm.weight)  # two new ones are one function
    right.load_state_dict(wrong.state_dict())
    x = torch.randn(2, 6, C)
    assert (right(x) - wrong(x)).abs().max() > 1e-3


def test_a_bug_is_named_by_one_of_its_words(monkeypatch):
    said = {"a": "No SCALE here", "b": "numbers differ", "c": "", "d": None}
    monkeypatch.setattr(judges, "JUDGES", {k: lambda case, v=v: v for k, v in said.items()})
    of = {judge: judges.judged(judge, "threads", THREADS[0]) for judge in said}
    assert [of[judge]["found"] for judge in said] == [True, True, False, None]
    assert [of[judge]["named"] for judge in said] == [True, False, False, False]
