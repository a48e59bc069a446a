"""The known bugs of a block: each is different, and `diagnose` names it."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from attention_base.known import read
from attention_clinic import diagnose, wiring
from attention_clinic.wiring import WIRING_BUGS, block_output, wiring_bugs_and_pairs
from helpers.attention import Block, FeedForward, MultiHeadAttention
from tests.attention_clinic.written import (
    BROKEN_BLOCKS,
    N_HEAD,
    BrokenAttention,
    C,
    no_first_residual,
    rewired,
)


def test_no_wiring_bug_is_right_or_another_one():
    generator = torch.Generator().manual_seed(0)
    block = Block(C, N_HEAD).requires_grad_(False)
    for norm in (block.norm_1, block.norm_2):
        norm.weight.uniform_(0.5, 2, generator=generator)
        norm.bias.uniform_(0.5, 2, generator=generator)
    x = torch.randn(3, 8, C, generator=generator)
    parts = (block.attention, block.feed_forward, block.norm_1, block.norm_2)
    torch.testing.assert_close(block_output(x, *parts), block(x))
    block.norm = "post"
    torch.testing.assert_close(block_output(x, *parts, norm_place="post"), block(x))
    seen = [
        ({"pre"}, block_output(x, *parts)),
        ({"post"}, block_output(x, *parts, norm_place="post")),
    ]
    for bugs, arguments in wiring_bugs_and_pairs():
        if len(bugs) > 1:
            continue
        out, names = block_output(x, *parts, **arguments), {bugs[0].name}
        same = [name for name, other in seen if torch.allclose(out, other, rtol=0, atol=1e-4)]
        assert all(name == names for name in same), f"{names} = {same}"
        seen.append((names, out))


def test_every_common_wiring_bug_is_tried():
    tried = {name.removesuffix(", post") for name in BROKEN_BLOCKS}
    common, *_ = read(Path(wiring.__file__).with_name("block.md"))
    assert {bug.name for bug in common.entries} == tried - {"norm after the feed-forward"}
    assert all(bug.message.endswith(".") for bug in common.entries)


@pytest.mark.parametrize("name", BROKEN_BLOCKS)
def test_a_block_put_together_wrongly_is_named(name):
    report = diagnose(rewired(BROKEN_BLOCKS[name]), C=C, n_head=N_HEAD)
    on_purpose = any(bug.meant for bug in WIRING_BUGS if bug.name == name)
    assert report.status == ("different" if on_purpose else "broken")
    assert report.bugs == (name.removesuffix(", post"),)
    if on_purpose:
        told = " ".join(str(report).split())
        assert told.startswith(f"DIFFERENT: {name}. All else passed. If this is meant, fine.")
        assert f"≠ {name}: a block of the same parts put together like this" in told
        return
    assert "✗ residuals and norms: rebuilt from its parts" in str(report)
    assert re.search(r"up to \d", str(report))


def test_the_parts_are_called_by_their_own_names():
    class Theirs(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(C), nn.LayerNorm(C)
            self.attn, self.mlp = MultiHeadAttention(C, N_HEAD), FeedForward(C)

        def forward(self, x):
            self.attn(self.ln_1(x))  # and x is as before
            return x + self.mlp(self.ln_2(x))

    report = diagnose(Theirs(), C=C)
    assert report.bugs == ("no attention",)
    assert report.findings[0].evidence.endswith(
        "whether attn(ln_1(x)) is added to x, and the sum kept."
    )
    assert "The output of the attention was not used" in report.findings[0].evidence


def test_two_bugs_in_one_block_are_both_named():
    bare = rewired(lambda b, x: b.feed_forward(b.attention(x)))
    assert set(diagnose(bare, C=C).bugs) == {"no residual connections", "no norms"}
    block = rewired(no_first_residual)
    block.attention = BrokenAttention("no scale", C, N_HEAD)
    assert diagnose(block, C=C).bugs == ("no scale", "no residual connection around the attention")


def test_a_norm_that_two_branches_share_is_noticed():
    block = Block(C, N_HEAD)
    block.norm_2 = norm = block.norm_1
    assert diagnose(block, C=C).bugs == ("one norm for both",)
    assert (norm.weight == 1).all() and (norm.bias == 0).all(), "left as it was"


def test_other_ways_to_put_a_block_together_are_different_not_broken():
    def scaled_branches(b, x):
        x = x + 0.1 * b.attention(b.norm_1(x))
        return x + 0.1 * b.feed_forward(b.norm_2(x))

    report = diagnose(rewired(scaled_branches), C=C)
    assert (report.status, report.bugs) == ("different", ())
    told = " ".join(str(report).split())
    assert "it differs from a pre-norm and a post-norm block, and no known bug or variant" in told
    assert "meant" not in told, "what is not explained is not called fine"
    assert "none of the known bugs" in told


def test_the_wrong_one_of_several_blocks_is_named_by_its_place():
    stack = nn.Sequential(
        Block(C, N_HEAD), rewired(BROKEN_BLOCKS["no residual connections"]), Block(C, N_HEAD)
    )
    report = diagnose(stack, C=C)
    assert report.bugs == ("no residual connections",)
    assert report.findings[0].evidence.endswith("(In 1.)")
