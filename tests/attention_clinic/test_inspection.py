"""What can be found in a module, and what is said where it cannot be found."""

import pytest
import torch
from torch import nn

from attention_clinic import diagnose
from helpers.attention import Block, FeedForward, Head, MultiHeadAttention, causal_mask
from tests.attention_clinic.written import (
    BROKEN,
    N_HEAD,
    C,
    Fused,
    Wrapped,
    Written,
    pre_norm,
    rewired,
    zero_projections,
)


class Calling(nn.Module):
    """A module that calls an attention inside of it as `call` says."""

    def __init__(self, inner, call):
        super().__init__()
        self.inner, self.call = inner, call

    def forward(self, x):
        return self.call(self.inner, x)


def pytorchs(**how):
    return nn.MultiheadAttention(C, N_HEAD, batch_first=True, **how)


def self_attention(inner, x):
    return inner(x, x, x, attn_mask=~causal_mask(x.shape[1]))[0]


def one_by_one(inner, x):
    mask = ~causal_mask(x.shape[1])
    return torch.stack([inner(z, z, z, attn_mask=mask)[0] for z in x])


def with_key_channels(channels):
    head = Head(C, 4)
    head.key = nn.Linear(C, channels)
    head.forward = lambda x: x + head.query(x).cumsum(1) @ torch.ones(4, C)
    return head


NOT_INSPECTED = {
    "a single sequence without a batch": Calling(pytorchs(), one_by_one),
    "queries have 4 channels, its keys 3": with_key_channels(3),
    "inner was not called": Calling(Head(C, C), lambda inner, x: x.cumsum(1)),
    "no layers of queries, keys and values, neither by the usual names": nn.Linear(C, C),
    "hand over the module": lambda x: x,
}


@pytest.mark.parametrize("why", NOT_INSPECTED)
def test_what_cannot_be_inspected_is_said(why):
    assert why in diagnose(NOT_INSPECTED[why], C=C).not_checked["equals the reference"]


def test_a_fused_layer_and_another_context_are_inspected():
    assert diagnose(Fused(), C=C).status == "healthy"
    without_mask = Calling(Head(C, C), lambda inner, x: inner(x, context=x, mask=None))
    assert diagnose(without_mask, C=C).bugs == ("no mask",)
    assert diagnose(without_mask, C=C, causal=False).status == "healthy"


@pytest.mark.parametrize(
    ("name", "bugs"),
    [("query_key_value", ()), ("qkv", ()), ("c_attn", ("fused layer split per head",))],
)
def test_a_fused_layer_may_be_read_head_by_head_where_that_is_the_custom(name, bugs):
    class ByHead(nn.Module):
        def __init__(self):
            super().__init__()
            self.add_module(name, nn.Linear(C, 3 * C))

        def forward(self, x):
            fused = getattr(self, name)(x).unflatten(-1, (N_HEAD, -1)).transpose(1, 2)
            q, k, v = fused.chunk(3, dim=-1)
            out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return out.transpose(1, 2).flatten(2)

    assert diagnose(ByHead(), C=C, n_head=N_HEAD).bugs == bugs


def test_a_fused_layer_may_be_read_group_by_group():
    class InGroups(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(C, 2 * C)

        def forward(self, x):
            fused = self.qkv(x).unflatten(-1, (2, 4, -1))  # in each of 2 groups q, q, k and v
            q, k, v = (z.flatten(2, 3).transpose(1, 2) for z in fused.split([2, 1, 1], dim=3))
            k, v = (z.repeat_interleave(2, dim=1) for z in (k, v))
            out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return out.transpose(1, 2).flatten(2)

    report = diagnose(InGroups(), C=C, n_head=4)
    assert report.bugs == ("grouped-query attention (Ainslie et al. 2023)",)


@pytest.mark.parametrize("more", ["add_bias_kv", "add_zero_attn"])
def test_additional_keys_are_no_bug(more):
    report = diagnose(Calling(pytorchs(**{more: True}), self_attention), C=C)
    assert report.status == "different"
    told = {"add_bias_kv": "beside those of the tokens", "add_zero_attn": "softmax1"}[more]
    assert told in str(report)


def test_layers_that_are_never_used_are_found():
    unused = Calling(Head(C, C), lambda inner, x: x.cumsum(1))
    assert "none arrives at inner: it is never used" in " ".join(str(diagnose(unused, C=C)).split())
    two = diagnose(with_key_channels(3), C=C)
    assert "none arrives at key and value: they are never used" in str(two)


def test_channels_that_cannot_be_shared_out_among_the_heads_are_not_inspected():
    uneven = Calling(Head(C, 5), lambda inner, x: inner(x) @ torch.ones(5, C))
    why = diagnose(uneven, C=C, n_head=3).not_checked["equals the reference"]
    assert "5 channels cannot be shared out among 3 heads" in why


@pytest.mark.parametrize(
    "names",
    [
        "W_Q W_K W_V",
        "w_qs w_ks w_vs",
        "q k v",
        "queries keys values",
        "proj_q proj_k proj_v",
        "q_linear k_linear v_linear",
        "fc_q fc_k fc_v",
        "q_proj_weight k_proj_weight v_proj_weight",
    ],
)
def test_matrices_are_known_by_the_names_that_people_give_them(names):
    """Without the names either of two matrices could be that of the queries."""

    class Matrices(nn.Module):
        def __init__(self):
            super().__init__()
            for name in names.split():
                self.register_parameter(name, nn.Parameter(torch.randn(C, C) / C**0.5))

        def forward(self, x):
            q, k, v = (x @ getattr(self, name) for name in names.split())
            scores = k @ q.mT / C**0.5
            return scores.masked_fill(~causal_mask(x.shape[1]), -torch.inf).softmax(-1) @ v

    assert diagnose(Matrices(), C=C).bugs == ("queries and keys swapped",)


@pytest.mark.parametrize("inner", ["ours", "PyTorch's", "block"])
def test_a_zero_projection_hides_gradients_and_is_not_broken(inner):
    module = {
        "ours": lambda: MultiHeadAttention(C, N_HEAD),
        "PyTorch's": lambda: nn.MultiheadAttention(C, N_HEAD),
        "block": lambda: Block(C, N_HEAD),
    }[inner]()
    zero_projections(module, "out_proj.weight" if inner == "PyTorch's" else "proj.weight")
    report = diagnose(module, C=C, n_head=N_HEAD)
    assert report.status == "incomplete", report
    unseen = ["no leak", "same for a prefix", "reach", "sequences stay apart", "gradients reach"]
    assert list(report.not_checked) == unseen
    assert "projection is zero throughout" in report.not_checked["gradients reach"]


def test_weights_name_a_bug_that_a_zero_projection_hides():
    class Unscaled(nn.MultiheadAttention):
        def forward(
            self, query, key, value, need_weights=True, attn_mask=None, average_attn_weights=True
        ):
            how = {"attn_mask": attn_mask, "average_attn_weights": average_attn_weights}
            out, weights = super().forward(query, key, value, **how)
            return out, (weights.log() * self.head_dim**0.5).softmax(-1)

    unscaled = Unscaled(C, N_HEAD)
    assert not diagnose(unscaled, C=C).bugs, "weights and outputs contradict each other"
    nn.init.zeros_(unscaled.out_proj.weight)
    report = diagnose(unscaled, C=C)
    assert report.bugs == ("no scale",)


def test_sharp_scores_are_no_bug():
    report = diagnose(MultiHeadAttention(C, N_HEAD), C=C, example=300 * torch.randn(1, 5, C))
    assert report.status == "incomplete"
    assert "right weights are below 0.000001" in report.not_checked["reach"]
    assert "passes no gradient" in report.not_checked["gradients reach"]


def test_sequences_that_are_taken_for_tokens_are_noticed():
    report = diagnose(Wrapped(False), C=C, causal=False)
    failed = {finding.name for finding in report.findings if not finding.ok}
    assert failed == {"reach", "sequences stay apart", "batch_first forgotten"}
    assert report.bugs == ("batch_first forgotten",)
    assert "Make it with batch_first=True" in report.not_checked["equals the reference"]
    assert "mixes no tokens" not in str(report), "it mixes sequences"


@pytest.mark.parametrize("causal", [True, False])
def test_it_is_said_that_pytorchs_was_given_a_mask(causal):
    told = " ".join(str(diagnose(nn.MultiheadAttention(C, N_HEAD), C=C, causal=causal)).split())
    assert told.count("attn_mask=~causal_mask(T); without a mask of yours") == causal
    assert "attn_mask" not in str(diagnose(MultiHeadAttention(C, N_HEAD), C=C))


def test_a_part_of_a_block_is_not_called_healthy():
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.sa, self.ln = MultiHeadAttention(C, N_HEAD), nn.LayerNorm(C)

        def forward(self, x):
            return self.sa(self.ln(x))

    report = diagnose(Other(), C=C)
    assert (report.status, list(report.not_checked)) == ("incomplete", ["residuals and norms"])
    assert "norms here: 1, layers: 0" in report.not_checked["residuals and norms"]


@pytest.mark.parametrize(
    ("attention", "why"),
    [
        (Written(**BROKEN["0 times infinity"]), "nan"),
        (Written(**BROKEN["dropout left on"]), "differ"),
    ],
    ids=["nan", "dropout"],
)
def test_residuals_around_an_attention_that_gives_nothing_certain_are_not_judged(attention, why):
    block = rewired(pre_norm)
    block.attention = attention
    assert why in diagnose(block, C=C, n_head=N_HEAD).not_checked["residuals and norms"]


def test_blocks_that_are_not_called_or_read_another_input_are_not_judged():
    unused = Calling(Block(C, N_HEAD), lambda inner, x: inner.attention(x))
    why = diagnose(unused, C=C).not_checked["residuals and norms"]
    assert why == "inner was not called"
    shorter = rewired(lambda b, x: x + b.attention(x[:, :1]))
    why = diagnose(shorter, C=C).not_checked["residuals and norms"]
    assert why == "its attention does not read one input (B, T, C)"


def test_parts_that_cannot_be_called_alone_are_not_judged():
    class Two(FeedForward):
        def forward(self, x, y):
            return super().forward(x + y)

    block = rewired(lambda b, x: x + b.feed_forward(b.attention(b.norm_1(x)), x))
    block.feed_forward = Two(C)
    why = diagnose(block, C=C).not_checked["residuals and norms"]
    assert why.startswith("its parts cannot be called one by one: ")


def test_changes_in_place_are_no_two_runs_that_differ():
    def in_place(b, x):
        x += b.attention(b.norm_1(x))
        return x + b.feed_forward(b.norm_2(x))

    block = rewired(in_place)
    with pytest.raises(RuntimeError, match="inplace"):
        block(torch.randn(2, 4, C)).sum().backward()
    report = diagnose(block, C=C)
    wrong = {one.name for one in report.findings if not one.ok}
    assert wrong == {"its input changed in place", "gradients reach"}
    assert "write x = x + …, not x += …" in " ".join(str(report).split())
