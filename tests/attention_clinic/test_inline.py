"""A block that is written in one class is compared like one whose parts are modules."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attention_clinic import diagnose
from tests.attention_clinic.written import N_HEAD, C


class Inline(nn.Module):
    """Attention, feed-forward and norms in one forward; `put_together` calls them."""

    def __init__(self, put_together, activation=F.gelu):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.out = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.up, self.down = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)
        self.n_head, self.put_together, self.activation = N_HEAD, put_together, activation

    def attend(self, x):
        heads = (z.unflatten(-1, (N_HEAD, -1)).transpose(1, 2) for z in self.qkv(x).chunk(3, -1))
        return self.out(
            F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2)
        )

    def feed(self, x):
        return self.down(self.activation(self.up(x)))

    def forward(self, x):
        return self.put_together(self, x)


def pre_norm(b, x):
    x = x + b.attend(b.ln_1(x))
    return x + b.feed(b.ln_2(x))


def post_norm(b, x):
    x = b.ln_1(x + b.attend(x))
    return b.ln_2(x + b.feed(x))


def no_first_residual(b, x):
    x = b.attend(b.ln_1(x))
    return x + b.feed(b.ln_2(x))


def no_second_residual(b, x):
    x = x + b.attend(b.ln_1(x))
    return b.feed(b.ln_2(x))


@pytest.mark.parametrize("put_together", [pre_norm, post_norm])
def test_a_right_block_in_one_class_is_healthy(put_together):
    report = diagnose(Inline(put_together), C=C)
    assert report.status == "healthy", report
    assert "residuals and norms" in {finding.name for finding in report.findings}


@pytest.mark.parametrize(
    ("put_together", "bug"),
    [
        (no_first_residual, "no residual connection around the attention"),
        (no_second_residual, "no residual connection around the feed-forward"),
    ],
)
def test_the_missing_residual_connection_is_named(put_together, bug):
    report = diagnose(Inline(put_together), C=C)
    assert (report.status, report.bugs) == ("broken", (bug,)), report
    assert not report.different


class Unscaled(Inline):
    def attend(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, N_HEAD, -1)).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1)
        return self.out(out.transpose(1, 2).flatten(2))


def test_residuals_around_a_wrong_attention_are_not_checked():
    report = diagnose(Unscaled(no_first_residual), C=C)
    assert report.bugs == ("no scale",)
    assert report.not_checked == {
        "residuals and norms": "they are compared only where the attention is right"
    }


def test_what_cannot_be_rebuilt_is_incomplete():
    report = diagnose(Inline(no_first_residual, torch.sin), C=C)
    assert (report.status, list(report.not_checked)) == ("incomplete", ["residuals and norms"])
    assert report.not_checked["residuals and norms"].startswith("the attention is right; residual")
