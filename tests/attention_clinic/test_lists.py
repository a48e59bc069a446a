"""Layers in a Python list are found, examined and told; what is registered is left alone."""

import pytest
import torch
from torch import nn

from attention_clinic import diagnose
from attention_clinic.lists import registered
from helpers.attention import Head, MultiHeadAttention
from tests.attention_clinic.written import N_HEAD, C, masked


class Heads(nn.Module):
    def __init__(self, heads, proj=None):
        super().__init__()
        self.heads, self.proj = heads, nn.Linear(C, C) if proj is None else proj

    def forward(self, x):
        heads = self.heads.values() if isinstance(self.heads, dict) else self.heads
        return self.proj(torch.cat([head(x) for head in heads], dim=-1))


def some_heads():
    return [Head(C, C // N_HEAD) for _ in range(N_HEAD)]


LISTS = {
    "list": (lambda: some_heads(), "nn.ModuleList"),
    "tuple": (lambda: tuple(some_heads()), "nn.ModuleList"),
    "dict": (lambda: dict(enumerate(some_heads())), "nn.ModuleDict"),
}


@pytest.mark.parametrize("kind", LISTS)
def test_layers_in_a_python_list_are_named(kind):
    make, instead = LISTS[kind]
    module = Heads(make())
    before = set(vars(module)), len(list(module.parameters()))
    report = diagnose(module, C=C)
    assert (report.status, report.bugs) == ("broken", (f"layers in a Python {kind}",))
    told = " ".join(str(report).split())
    assert f"9 layers in `heads` are in a Python {kind}, so they are no parameters" in told
    assert f"no optimiser will train them: {instead}." in told
    assert "✗ gradients reach: parameters() does not contain the 9 layers in `heads`" in told
    assert (set(vars(module)), len(list(module.parameters()))) == before, "left as it was"


def test_a_bug_in_a_head_of_a_python_list_is_found_too():
    class Unscaled(Head):
        def forward(self, x):
            return masked(self.query(x) @ self.key(x).mT).softmax(-1) @ self.value(x)

    module = Heads([*some_heads()[1:], Unscaled(C, C // N_HEAD)])
    report = diagnose(module, C=C)
    assert set(report.bugs) == {"layers in a Python list", "no scale"}
    named = {finding.name: finding.evidence for finding in report.findings}
    assert named["no scale"].endswith("(In heads.2.)")


def test_a_layer_without_a_gradient_is_told_beside_a_python_list():
    module = Heads(some_heads())
    module.unused = nn.Linear(C, C)
    told = " ".join(str(diagnose(module, C=C)).split())
    assert "parameters() does not contain the 9 layers in `heads`" in told
    assert "none arrives at unused: it is never used." in told


def test_parameters_and_lists_of_lists_are_counted():
    module = nn.Module()
    module.matrices = [nn.Parameter(torch.ones(2, 2)) for _ in range(3)]
    module.inner = nn.Module()
    module.inner.layers = [[nn.Linear(2, 2)], [nn.Linear(2, 2), nn.ReLU()]]
    module.inner.one = {"a": nn.Linear(2, 2)}
    with registered(module) as found:
        told = [(str(one), one.kind, one.instead) for one in found]
        assert len(list(module.parameters())) == 9
    assert told == [
        ("3 parameters in `matrices`", "list", "nn.ParameterList"),
        ("2 layers in `inner.layers`", "list", "nn.ModuleList"),
        ("1 layer in `inner.one`", "dict", "nn.ModuleDict"),
    ]
    assert not list(module.parameters())


def test_what_is_registered_elsewhere_or_frozen_is_left_alone():
    module = MultiHeadAttention(C, N_HEAD)
    module.layers = [module.query, module.key]
    module.numbers, module.teacher = [1, 2], [MultiHeadAttention(C, N_HEAD).requires_grad_(False)]
    assert diagnose(module, C=C).status == "healthy"
