"""`diagnose` names what is wrong, names a variant by its paper, and tells what a module raises."""

import math
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import attention_clinic as clinic
from attention_clinic import diagnose
from helpers.attention import Block
from tests.attention_clinic.designs.named import (
    BROKEN,
    RAISING,
    VARIANTS,
    C,
    LinearTransformer,
    PaLMBlock,
    Rotated,
    heads,
    masked,
    merged,
)
from tests.attention_clinic.designs.test_wild import DIFFERENT
from tests.attention_clinic.written import spread
from tests.told import Told


@pytest.mark.parametrize(
    ("what", "status"),
    spread(
        [*((what, "broken") for what in BROKEN), *((what, "different") for what in VARIANTS)],
        every=4,
    ),
)
def test_it_is_named(what, status, snapshot):
    make, names = (BROKEN | VARIANTS)[what]
    report = diagnose(make().eval(), C=C)
    assert (report.status, set(report.bugs)) == (status, set(names.split("; "))), report
    assert str(report) == snapshot.use_extension(Told)


def test_a_variant_that_is_expected_is_not_told_as_a_difference():
    for what in ("latent, DeepSeek", "gated", "sinks, window and RoPE, gpt-oss", "position bias"):
        make, names = VARIANTS[what]
        report = diagnose(make().eval(), C=C, expect=names.split("; "))
        assert report.status == "healthy" and "≠" not in str(report)
        assert f"✓ {names.split('; ')[0]}: " in " ".join(str(report).split())


@pytest.mark.parametrize(
    ("base", "pairs", "share", "sign"),
    [
        *((base, pairs, 1, 1) for base in (10_000, 500_000, 1_000_000) for pairs in (False, True)),
        *((10_000, False, 0.25, 1), (10_000, True, 0.5, 1)),
        *((10_000, False, 1, -1), (10_000, True, 1, -1)),
    ],
)
def test_each_usual_way_to_rotate_is_found(base, pairs, share, sign):
    found = diagnose(Rotated(base, pairs, share, sign).eval(), C=C)
    assert found.bugs == ("rotary positions (RoPE, Su et al. 2021)",)


class ShowsScores(nn.Module):
    """Returns the scores, before the softmax, beside its output, as Whisper does."""

    def __init__(self, factor):
        super().__init__()
        self.n_head, self.factor = 4, factor
        self.query, self.key, self.value, self.out = (nn.Linear(C, C) for _ in range(4))

    def forward(self, x):
        q, k, v = (heads(f(x), self.n_head) for f in (self.query, self.key, self.value))
        scores = masked(q @ k.mT / (C // self.n_head) ** 0.5)
        return self.out(merged((self.factor * scores).softmax(-1) @ v)), scores


def test_scores_that_are_shown_are_not_taken_for_weights():
    assert diagnose(ShowsScores(1), C=C).status == "healthy"
    assert diagnose(ShowsScores(math.sqrt(8)), C=C).bugs == ("no scale",)


class LinearEncoder(LinearTransformer):
    def forward(self, x):
        q, k, v = (heads(f(x), self.n_head) for f in (self.query, self.key, self.value))
        q, k = self.phi(q), self.phi(k)
        return self.out(merged(q @ (k.mT @ v) / (q * k.sum(2, keepdim=True)).sum(-1, keepdim=True)))


def test_linear_attention_is_named_in_an_encoder_too():
    report = diagnose(LinearEncoder(), C=C, causal=False)
    assert report.bugs == ("linear attention (Katharopoulos et al. 2020)",)


@pytest.mark.parametrize("what", RAISING)
def test_what_a_module_raises_is_told(what):
    make, told = RAISING[what]
    report = diagnose(make().eval(), C=C)
    assert report.status == "broken" or "block_size" in str(report)
    assert told in " ".join(str(report).split())


def test_everything_on_the_page_of_parts_that_may_be_meant_is_tried():
    page = (Path(clinic.__file__).parent / "parts.md").read_text(encoding="utf-8")
    meant = set(re.findall(r"^## (.+)\n    on_purpose=True", page, re.M))
    tried = {name for _, names in VARIANTS.values() for name in names.split("; ")}
    elsewhere = {  # in test_diagnose_designs.py, test_inspection.py and test_other_code.py
        "another mask",
        "one block several times",
        "another input of its layers",
        "keys and values beside those of the tokens",
        "more behind the output projection",
        "residual connection and norm inside of the attention",
        "fused layer split in another order",
        "fused layer split per head",
        *(name for _, name in DIFFERENT.values()),
    }
    assert meant == (meant & tried) | elsewhere


def test_a_branch_that_reads_the_attention_is_not_called_parallel():
    report = diagnose(PaLMBlock(parallel=False), C=C)
    assert report.status == "different" and "parallel" not in str(report)


class Inline(Block):
    """Layers of the feed-forward stand in the block, and its norms in parts with a number."""

    def __init__(self, gated, residual):
        super().__init__(C, 4)
        del self.feed_forward
        self.gated, self.residual = gated, residual
        self.up, self.down = nn.Linear(C, 48), nn.Linear(48, C)
        if gated:
            self.gate = nn.Linear(C, 48)
        else:
            self.sub = nn.ModuleList(nn.ModuleDict({"norm": nn.LayerNorm(C)}) for _ in range(2))
            del self.norm_1, self.norm_2

    def forward(self, x):
        norms = [self.norm_1, self.norm_2] if self.gated else [one["norm"] for one in self.sub]
        x = x + self.attention(norms[0](x))
        h = norms[1](x)
        h = F.silu(self.gate(h)) * self.up(h) if self.gated else F.relu(self.up(h))
        return self.residual * x + self.down(h)


@pytest.mark.parametrize("gated", [True, False])
def test_parts_of_a_block_are_found_where_they_have_no_usual_names(gated):
    assert diagnose(Inline(gated, residual=1), C=C).status == "healthy"
    bugs = diagnose(Inline(gated, residual=0), C=C).bugs
    assert bugs == ("no residual connection around the feed-forward",)


def test_numbers_of_a_variant_are_told():
    told = {
        "ALiBi": "it is 0.25, 0.06, 0.02 and 4e-03 a token",
        "softcap 2": "with c = 2.00",
        "clamped to ±1": "cut off at -0.30 and 0.30",
        "learned temperature": "divided by 1.89, where √head_size is 2.83",
        "log T": "the logarithm of T = 7",
        "log of each row": "the logarithm of the number of visible tokens",
        "window ahead": "that stand -2, -1 and 0 before it",
        "mean over time": "It is x minus its mean over the tokens.",
        "mean over batch": "It is x minus its mean over the batch.",
    }
    for what, words in told.items():
        torch.manual_seed(0)
        assert words in " ".join(str(diagnose((BROKEN | VARIANTS)[what][0](), C=C)).split()), what
