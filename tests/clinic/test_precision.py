"""Rounding is told from a dependence that is next to nothing."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers.attention import Head, MultiHeadAttention
from helpers.clinic import diagnose
from helpers.clinic.precision import only_rounded
from tests.clinic.written import N_HEAD, C, Written, masked


class Summed(nn.Module):
    """The weights of a row are summed without the values, and 1 ± rounding is left of them."""

    def __init__(self):
        super().__init__()
        for name in ("W_Q", "W_K", "W_V"):
            matrix = torch.randn(N_HEAD, C, C // N_HEAD) / C**0.5
            setattr(self, name, nn.Parameter(matrix))
        self.W_O = nn.Parameter(torch.randn(N_HEAD, C // N_HEAD, C))

    def forward(self, x):
        q, k, v = (torch.einsum("btc,hcd->bhtd", x, w) for w in (self.W_Q, self.W_K, self.W_V))
        weights = masked(q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return torch.einsum("bhqk,bhqd,hdc->bqc", weights, v, self.W_O)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_what_only_rounds_otherwise_is_not_reached(dtype):
    report = diagnose(Summed().to(dtype), C=C, n_head=N_HEAD)
    assert report.bugs == ("weights summed without the values",)
    told = {finding.name: finding.evidence for finding in report.findings if not finding.ok}
    assert told["reach"].startswith("output 7 depends on token 7 only. In 28 of 36 pairs")


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = MultiHeadAttention(C, N_HEAD)

    def forward(self, x):
        return x + 1e-6 * self.attention(x)


class Single(Scaled):
    """Does not run in float64."""

    def forward(self, x):
        return super().forward(x.float())


def passed(report):
    return {finding.name for finding in report.findings if finding.ok}


@pytest.mark.parametrize("make", [Scaled, Single])
def test_a_branch_that_is_nearly_nothing_is_reached(make):
    assert "reach" in passed(diagnose(make(), C=C))


def test_sharp_scores_of_another_formula_are_not_unreached():
    class Sharp(Head):
        def forward(self, x):
            q, k, v = (layer(F.layer_norm(x, (C,))) for layer in (self.query, self.key, self.value))
            return (masked(1000 * (q @ k.mT).tanh()).softmax(-1) @ v).tanh()

    report = diagnose(Sharp(C, C), C=C)
    assert report.status == "different"
    assert report.not_checked["reach"].endswith(
        "but for other inputs it does: the scores are just that sharp"
    )


def test_a_function_is_judged_in_float64_or_not_at_all():
    x = torch.randn(2, 4, C)
    unchanged = only_rounded(lambda x: x + 1e-9 * x.cumsum(1), x, causal=True, most=4)
    assert torch.equal(unchanged, torch.ones(4, 4).tril(-1) == 1), "later tokens change nothing"
    assert only_rounded(lambda x: x.float(), x, causal=True, most=4) is None


def test_a_window_is_still_a_window():
    def near(scores):
        return masked(scores).masked_fill(torch.ones_like(scores).tril(-3) == 1, -math.inf)

    report = diagnose(Written(weigh=lambda s: near(s).softmax(-1)), C=C, n_head=N_HEAD)
    assert "stand 0 to 2 before it" in report.different["reach"]
