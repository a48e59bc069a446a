"""A mask that large scores outbid is found; none that they do not is refused."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attention_clinic import child, command, diagnose
from attention_clinic.outbid import AT_TEN_THOUSAND, OUTBID, SCORES
from helpers.attention import Block, MultiHeadAttention, causal_mask
from helpers.ward import Attention, broken
from tests.attention_clinic.designs import others_right


class Masked(nn.Module):
    """Attention in four heads that fills with a number; keeps the lowest score of row 0."""

    def __init__(self, fill, added=False, change=lambda q, k, scores: scores, C=32):
        super().__init__()
        self.n_head, self.fill, self.added, self.change = 4, fill, added, change
        self.qkv, self.proj, self.lowest = nn.Linear(C, 3 * C), nn.Linear(C, C), 0.0

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (z.view(B, T, 4, -1).transpose(1, 2) for z in self.qkv(x).chunk(3, -1))
        scores = self.change(q, k, q @ k.mT / math.sqrt(C // 4))
        self.lowest = min(self.lowest, scores[..., 0, 0].min().item())
        future = ~causal_mask(T)
        fill = torch.finfo(scores.dtype).min if self.fill == "min" else self.fill
        scores = (
            scores + future.to(scores) * fill if self.added else scores.masked_fill(future, fill)
        )
        out = scores.softmax(-1) @ v
        return self.proj(out.transpose(1, 2).flatten(2))


def leaks(report):
    (finding,) = (one for one in report.findings if one.name == "no leak")
    return finding


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("fill", [-torch.inf, "min", -1e30, -1e9, -1e5, -65504.0])
def test_a_mask_that_no_score_of_a_trained_model_outbids_is_right(fill, dtype):
    module = Masked(fill).to(dtype)
    report = diagnose(module, C=32)
    assert (report.status, report.bugs) == ("healthy", ())
    assert leaks(report).evidence.endswith(SCORES)
    assert module.lowest == pytest.approx(-30_000, rel=0.02), "as the report says"


@pytest.mark.parametrize(
    ("fill", "added", "name"),
    [
        (-1e4, False, AT_TEN_THOUSAND),
        (-5e3, False, OUTBID),
        (-2e4, False, OUTBID),
        (-1e4, True, OUTBID),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_mask_that_large_scores_outbid_is_named(fill, added, name, dtype):
    report = diagnose(Masked(fill, added).to(dtype), C=32)
    assert (report.status, report.bugs) == ("broken", (name,))
    assert "Fill with -inf" in str(report).replace("\n  ", " ")
    assert "-30,000" in leaks(report).evidence
    assert len(report.findings) == 12, "the bug, and eleven probes as always"


class Stock(nn.Module):
    def __init__(self, fill):
        super().__init__()
        self.mha, self.fill = nn.MultiheadAttention(32, 4, batch_first=True), fill

    def forward(self, x):
        mask = torch.zeros(x.shape[1], x.shape[1]).masked_fill(~causal_mask(x.shape[1]), self.fill)
        return self.mha(x, x, x, attn_mask=mask)[0]


class Fused(nn.Module):
    def __init__(self, fill):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(32, 32, bias=False) for _ in range(3))
        self.n_head, self.fill = 4, fill

    def forward(self, x):
        layers = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (z(x).unflatten(2, (4, 8)).transpose(1, 2) for z in layers)
        mask = torch.zeros(x.shape[1], x.shape[1]).masked_fill(~causal_mask(x.shape[1]), self.fill)
        return F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2)


class InABlock(nn.Module):
    def __init__(self, fill):
        super().__init__()
        self.norm1, self.norm2, self.attn = nn.LayerNorm(32), nn.LayerNorm(32), Masked(fill)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def two_blocks(fill):
    return nn.Sequential(Block(32, 4), InABlock(fill))


@pytest.mark.parametrize("make", [Stock, Fused, InABlock, two_blocks])
def test_it_is_found_in_pytorchs_attention_and_in_a_block_and_nothing_right_is_refused(make):
    torch.manual_seed(0)
    assert {AT_TEN_THOUSAND, OUTBID} & {*diagnose(make(-1e4), C=32).bugs}
    for fill in (-torch.inf, -1e9):
        assert diagnose(make(fill), C=32).status == "healthy"


def test_of_several_attentions_the_wrong_one_is_named():
    torch.manual_seed(0)
    assert "(In 1.attn.)" in str(diagnose(two_blocks(-1e4), C=32)).replace("\n  ", " ")


def test_the_third_bug_of_notebook_13_is_found_and_the_right_attention_is_not():
    torch.manual_seed(0)
    assert diagnose(broken("mask of -1e4")(16, 4, 2), C=16, n_head=4).bugs == ("mask of -1e4",)
    right = diagnose(Attention(16, 4, 2), C=16, n_head=4)
    assert right.status == "different"
    assert "query weights" in leaks(right).evidence, "its norm comes before the layers"


@pytest.mark.parametrize(
    "change",
    [
        lambda q, k, scores: F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT,  # QK-norm
        lambda q, k, scores: 50 * torch.tanh(scores / 50),  # softcap
    ],
)
def test_where_scores_are_bounded_a_large_number_will_do(change):
    report = diagnose(Masked(-1e4, change=change), C=32)
    assert not {AT_TEN_THOUSAND, OUTBID} & {*report.bugs}
    assert SCORES not in leaks(report).evidence, "no score was as large as that"


@pytest.mark.parametrize("fill", [-torch.inf, "min", -65504.0, -1e4])
def test_in_float16_scores_of_this_size_are_infinite_and_nothing_is_told(fill):
    report = diagnose(Masked(fill).half(), C=32)
    assert report.status == "healthy"
    assert leaks(report).evidence.endswith("no output before them changed.")


@pytest.mark.parametrize("fill", [-torch.inf, -1e4])
def test_what_refuses_large_scores_or_makes_nan_of_them_is_not_asked(fill):
    def refuse(q, k, scores):
        if scores.abs().max() > 1e3:
            raise OverflowError
        return scores

    def lose(q, k, scores):
        return scores + 0 * (1e38 * scores)

    for change in (refuse, lose):
        report = diagnose(Masked(fill, change=change), C=32)
        assert report.status == "healthy"
        assert leaks(report).evidence.endswith("no output before them changed.")


def test_where_no_single_weight_makes_the_queries_it_is_not_asked():
    report = diagnose(others_right.LoRAAttention(), C=32)
    assert leaks(report).evidence.endswith("no output before them changed.")


def test_without_a_mask_or_layers_of_queries_it_is_not_asked():
    report = diagnose(nn.MultiheadAttention(32, 4, batch_first=True), C=32, causal=False)
    assert (report.status, "row 0" in str(report)) == ("healthy", False)
    assert "row 0" not in str(diagnose(lambda x: MultiHeadAttention(32, 4)(x) * 0 + x, C=32))


@pytest.mark.parametrize("fill", [-torch.inf, -1e4])
def test_the_module_is_left_as_it_was(fill):
    module = Masked(fill)
    before, places = copy.deepcopy(module.state_dict()), [p.data_ptr() for p in module.parameters()]
    diagnose(module, C=32)
    assert all(torch.equal(before[name], z) for name, z in module.state_dict().items())
    assert [p.data_ptr() for p in module.parameters()] == places


def test_the_command_says_which_scores_were_not_asked(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(
        "from helpers.attention import MultiHeadAttention\n"
        "right, half = MultiHeadAttention(32, 4), MultiHeadAttention(32, 4).half()\n"
    )
    for name, told in (("right", "scores beyond ±30,000"), ("half", "very large scores")):
        assert command.main([f"{tmp_path}/mine.py:{name}", "--C", "32"], child.answer) == 0
        assert told in capsys.readouterr().out.replace("\n", " ")
