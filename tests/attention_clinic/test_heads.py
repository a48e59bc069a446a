"""What a module makes of the outputs of its heads is rebuilt, and a mistake there has a name."""

import pytest
import torch
from torch import nn

from attention_clinic import diagnose
from helpers.attention import Head, MultiHeadAttention, causal_mask
from tests.attention_clinic.written import N_HEAD, C

HEAD_SIZE = C // N_HEAD


class Heads(nn.Module):
    """A list of heads; `put_together` makes the output of their outputs."""

    def __init__(self, put_together, head_size=HEAD_SIZE, proj=(C, C)):
        super().__init__()
        self.heads = nn.ModuleList(Head(C, head_size) for _ in range(N_HEAD))
        self.proj = nn.Linear(*proj) if proj else None
        self.put_together = put_together

    def forward(self, x):
        return self.put_together(self, x)


def outputs(s, x):
    return [head(x) for head in s.heads]


def cat(outs):
    return torch.cat(outs, dim=-1)


def words(report):
    return " ".join(str(report).split())


WRONG = {
    "x added before the projection": (lambda s, x: s.proj(cat(outputs(s, x)) + x), {}),
    "heads added": (lambda s, x: s.proj(sum(outputs(s, x))), {"head_size": C}),
    "heads averaged": (lambda s, x: s.proj(sum(outputs(s, x)) / N_HEAD), {"head_size": C}),
    "heads reversed by the merge": (lambda s, x: s.proj(cat(outputs(s, x)[::-1])), {}),
    "merged by view, without transpose": (
        lambda s, x: s.proj(torch.stack(outputs(s, x), 1).reshape(x.shape)),
        {},
    ),
    "channels interleaved by the merge": (
        lambda s, x: s.proj(torch.stack(outputs(s, x), -1).flatten(-2)),
        {},
    ),
    "only some of the heads used": (
        lambda s, x: s.proj(cat(outputs(s, x)[:2])),
        {"proj": (2 * HEAD_SIZE, C)},
    ),
    "one head repeated": (lambda s, x: s.proj(cat([s.heads[0](x)] * N_HEAD)), {}),
    "output projection never used": (lambda s, x: cat(outputs(s, x)), {}),
    "output projection applied twice": (lambda s, x: s.proj(s.proj(cat(outputs(s, x)))), {}),
    "output projection applied to each head": (
        lambda s, x: cat([s.proj(out) for out in outputs(s, x)]),
        {"proj": (HEAD_SIZE, HEAD_SIZE)},
    ),
}

# The output projection learns any order of its channels.
OTHER_ORDERS = {"heads reversed by the merge", "channels interleaved by the merge"}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_the_outputs_of_right_heads_is_named(name):
    put_together, sizes = WRONG[name]
    report = diagnose(Heads(put_together, **sizes), C=C)
    status = "different" if name in OTHER_ORDERS else "broken"
    assert (report.status, report.bugs) == (status, (name,)), report
    if status == "broken":
        assert "the output is not proj(cat(heads.0, heads.1, heads.2))" in words(report)


def test_two_mistakes_are_both_named():
    both = Heads(lambda s, x: cat(outputs(s, x)[::-1]))
    expected = {"heads reversed by the merge", "output projection never used"}
    assert set(diagnose(both, C=C).bugs) == expected


@pytest.mark.parametrize("n_head", [None, N_HEAD])
def test_full_heads_that_are_added_are_counted(n_head):
    report = diagnose(Heads(lambda s, x: sum(outputs(s, x)), C, None), C=C, n_head=n_head)
    assert report.bugs == ("heads added",)
    assert "The outputs of the 3 heads are added" in words(report)


class Slices(Heads):
    """Heads that read slices of x."""

    def __init__(self, read):
        super().__init__(
            lambda s, x: s.proj(cat([h(z) for h, z in zip(s.heads, read(x), strict=True)]))
        )
        self.heads = nn.ModuleList(Head(HEAD_SIZE, HEAD_SIZE) for _ in range(N_HEAD))


@pytest.mark.parametrize(
    ("read", "last"),
    [
        (lambda x: x.split(HEAD_SIZE, -1), "heads.2 the channels 8 to 11"),
        (lambda x: [x[..., :HEAD_SIZE]] * N_HEAD, "heads.2 the channels 0 to 3"),
    ],
    ids=["each its own", "all the first"],
)
def test_heads_that_read_a_slice_of_x_are_told(read, last):
    report = diagnose(Slices(read), C=C)
    assert (report.status, report.bugs) == ("broken", ("heads read only a part of x",))
    told = words(report)
    assert "each head reads 4 of the 12 channels of its input" in told and last in told
    assert "✓ passed" in told and "heads and projection" in told.split("✓ passed")[1]


def test_another_use_of_right_heads_is_different():
    report = diagnose(Heads(lambda s, x: s.proj(cat(outputs(s, x)).relu())), C=C)
    assert (report.status, report.bugs) == ("different", ())
    told = "DIFFERENT: each head is right, but the output is not proj(cat(heads.0, heads.1, heads.2"
    assert words(report).startswith(told)


def test_a_residual_connection_around_an_attention_is_no_bug():
    wrapped = Heads(lambda s, x: x + s.proj(cat(outputs(s, x))))
    report = diagnose(wrapped, C=C)
    assert (report.status, report.bugs) == ("different", ("x added to the output",))


def test_heads_that_are_not_called_are_not_said_to_be_right():
    report = diagnose(Heads(WRONG["one head repeated"][0]), C=C)
    assert "equals the reference" not in {finding.name for finding in report.findings}
    told = report.not_checked["equals the reference"]
    assert told == "heads.1 and heads.2 were not called; it passed in heads.0"


def test_it_is_said_of_all_heads_what_holds_for_all():
    report = diagnose(Heads(lambda s, x: s.proj(cat(outputs(s, x)))), C=C)
    evidence = {finding.name: finding.evidence for finding in report.findings}
    assert evidence["equals the reference"].endswith("(In all 3 heads.)")
    assert evidence["heads and projection"].startswith(
        "the output is proj(cat(heads.0, heads.1, heads.2)): all "
    )
    two = diagnose(nn.Sequential(*(MultiHeadAttention(C, N_HEAD) for _ in range(2))), C=C)
    assert "(In both attentions.)" in two.findings[-2].evidence


class TimeFirst(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(C, N_HEAD)

    def forward(self, x):
        z = x.transpose(0, 1)
        return self.inner(z, z, z, attn_mask=~causal_mask(x.shape[1]))[0].transpose(0, 1)


def multi_head():
    return MultiHeadAttention(C, N_HEAD)


RIGHT = {
    "without a projection": lambda: Heads(lambda s, x: cat(outputs(s, x)), proj=None),
    "in half precision": lambda: Heads(lambda s, x: s.proj(cat(outputs(s, x)))).half(),
    "one after the other": lambda: nn.Sequential(multi_head(), TimeFirst()),
    "a layer before": lambda: nn.Sequential(nn.Linear(C, C), multi_head()),
    "a layer between": lambda: nn.Sequential(multi_head(), nn.Linear(C, C), multi_head()),
    "a layer behind": lambda: nn.Sequential(TimeFirst(), nn.Linear(C, C)),
}


@pytest.mark.parametrize("make", RIGHT.values(), ids=RIGHT.keys())
def test_other_right_uses_are_healthy(make):
    report = diagnose(make(), C=C)
    assert report.status == "healthy", report
    assert "heads and projection" in {finding.name for finding in report.findings}
    square = torch.randn(4, 4, C).to(next(make().parameters()))  # B = T
    assert diagnose(make(), C=C, example=square).status == "healthy"


def test_a_projection_of_zeros_hides_the_heads():
    heads = Heads(lambda s, x: s.proj(cat(outputs(s, x))))
    nn.init.zeros_(heads.proj.weight)
    report = diagnose(heads, C=C)
    assert report.status == "incomplete"
    assert "zero throughout" in report.not_checked["heads and projection"]
