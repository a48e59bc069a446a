"""`diagnose` on other people's code: other layers, other inputs, other number types, and errors."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attention_clinic import diagnose
from helpers.attention import Block, MultiHeadAttention
from tests.attention_clinic.designs.others_right import QKNormAttention
from tests.attention_clinic.written import BROKEN, Written, no_norms, rewired

C, N_HEAD = 32, 4


def split(z, n_head=N_HEAD):
    return z.unflatten(-1, (n_head, -1)).transpose(1, 2)


def attend(q, k, v, n_head=N_HEAD, *, scale=True, dim=-1, mask=True, fill=-math.inf):
    """Heads, attention and merge, with what is wrong."""
    q, k, v = (split(z, n_head) for z in (q, k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1] if scale else 1)
    if mask:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).tril() == 0, fill)
    return (scores.softmax(dim) @ v).transpose(1, 2).flatten(2)


def words(report):
    return " ".join(str(report).split())


class QueryAndFused(nn.Module):
    def __init__(self, **wrong):
        super().__init__()
        self.heads, self.wrong = N_HEAD, wrong
        self.to_q, self.to_kv = nn.Linear(C, C, bias=False), nn.Linear(C, 2 * C, bias=False)
        self.to_out = nn.Sequential(nn.Linear(C, C), nn.Dropout(0.1))

    def forward(self, x):
        return self.to_out(attend(self.to_q(x), *self.to_kv(x).chunk(2, -1), **self.wrong))


class Conv1D(nn.Module):
    def __init__(self, nf, nx):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(nx, nf) / nx**0.5)  # (in, out)
        self.bias = nn.Parameter(torch.zeros(nf))

    def forward(self, x):
        return x @ self.weight + self.bias


class Convolved(nn.Module):
    def __init__(self, order="qkv", **wrong):
        super().__init__()
        self.num_heads, self.order, self.wrong = N_HEAD, order, wrong
        self.c_attn, self.c_proj = Conv1D(3 * C, C), Conv1D(C, C)

    def forward(self, x):
        by_role = dict(zip(self.order, self.c_attn(x).split(C, 2), strict=True))
        return self.c_proj(attend(*(by_role[role] for role in "qkv"), **self.wrong))


class Matrices(nn.Module):
    def __init__(self, times=torch.matmul, projected=True, **wrong):
        super().__init__()
        self.n_heads, self.times, self.projected, self.wrong = N_HEAD, times, projected, wrong
        for name in ("W_q", "W_k", "W_v", "W_o"):
            setattr(self, name, nn.Parameter(torch.randn(C, C) / C**0.5))

    def forward(self, x):
        qkv = (self.times(x, matrix) for matrix in (self.W_q, self.W_k, self.W_v))
        out = attend(*qkv, **self.wrong)
        return self.times(out, self.W_o) if self.projected else out


class Nameless(nn.Module):
    def __init__(self, **wrong):
        super().__init__()
        self.a, self.b, self.c, self.d = (nn.Linear(C, C) for _ in range(4))
        self.wrong = wrong

    def forward(self, x):
        return self.d(attend(self.a(x), self.b(x), self.c(x), **self.wrong))


class NamelessFused(nn.Module):
    def __init__(self, **wrong):
        super().__init__()
        self.one, self.two, self.h, self.wrong = nn.Linear(C, 3 * C), nn.Linear(C, C), N_HEAD, wrong

    def forward(self, x):
        return self.two(attend(*self.one(x).chunk(3, -1), **self.wrong))


class NamelessMatrices(nn.Module):
    def __init__(self, **wrong):
        super().__init__()
        self.wrong = wrong
        for name in "abcd":
            setattr(self, name, nn.Parameter(torch.randn(C, C) / C**0.5))

    def forward(self, x):
        return attend(x @ self.a, x @ self.b, x @ self.c, **self.wrong) @ self.d


class NamelessHead(nn.Module):
    def __init__(self, **wrong):
        super().__init__()
        self.wrong = wrong
        for name in "abc":
            setattr(self, name, nn.Parameter(torch.randn(C, 7) / C**0.5))

    def forward(self, x):
        return attend(x @ self.a, x @ self.b, x @ self.c, 1, **self.wrong)


class FusedAlone(NamelessFused):
    def forward(self, x):
        return attend(*self.one(x).chunk(3, -1), **self.wrong)


class Cross(nn.Module):
    def __init__(self, mask=False, **wrong):
        super().__init__()
        self.num_heads, self.wrong = N_HEAD, {"mask": mask, **wrong}
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(C, C) for _ in range(4))

    def forward(self, x, context):
        qkv = self.q_proj(x), self.k_proj(context), self.v_proj(context)
        return self.out_proj(attend(*qkv, **self.wrong))


MADE_OTHERWISE = {
    "queries, and keys with values": QueryAndFused,
    "Conv1D": Convolved,
    "matrices": Matrices,
    "matrices (out, in)": lambda **wrong: Matrices(F.linear, **wrong),
    "without names": Nameless,
    "fused, without names": NamelessFused,
    "matrices without names": NamelessMatrices,
}
WRONG = {
    "no scale": {"scale": False},
    "no mask": {"mask": False},
    "softmax over the queries": {"dim": -2},
    "future filled with 0": {"fill": 0.0},
}


@pytest.mark.slow
@pytest.mark.parametrize("make", MADE_OTHERWISE.values(), ids=MADE_OTHERWISE.keys())
def test_other_layers_are_found(make):
    report = diagnose(make().eval(), C=C, n_head=N_HEAD)
    assert report.status == "healthy" and not report.not_checked, report
    for name, wrong in WRONG.items():
        assert diagnose(make(**wrong).eval(), C=C, n_head=N_HEAD).bugs == (name,)


def test_a_cross_attention_is_called_with_x_as_its_context():
    report = diagnose(Cross(), C=C)
    assert report.status == "healthy" and "Called with context=x" in str(report)
    assert diagnose(Cross(scale=False), C=C).bugs == ("no scale",)
    assert diagnose(Cross(mask=True), C=C).bugs == ("unwanted causal mask",)


def test_no_variant_is_named_that_fits_whatever_the_numbers_are():
    report = diagnose(QKNormAttention(48, heads=4), C=48)  # 16 heads of 3 channels fit 3 tokens
    assert (report.status, report.bugs) == ("different", ()) and "n_head=…" in report.assumed
    known = diagnose(QKNormAttention(48, heads=4), C=48, n_head=4)
    assert known.bugs == ("QK-norm (Henry et al. 2020)",)


def test_the_order_of_a_fused_layer_is_named_and_no_bug():
    for order in ("kqv", "vkq"):
        name = f"fused layer split as {', '.join(order)}"
        report = diagnose(Convolved(order), C=C)
        assert (report.status, report.bugs) == ("different", (name,))
        told = words(report)
        assert told.startswith(f"DIFFERENT: {name}. All else passed. If this is meant, fine. ≠")
        assert "weights that were stored by a model with the usual order would be read" in told


def test_beside_another_order_a_bug_is_told_as_with_the_usual_one():
    usual, other = Convolved("qkv", scale=False), Convolved("kqv", scale=False)
    other.load_state_dict(usual.state_dict())
    q, k, v = usual.c_attn.weight.detach().chunk(3, dim=1)
    other.c_attn.weight = nn.Parameter(torch.cat([k, q, v], dim=1))  # now both are one function
    expected, report = diagnose(usual, C=C), diagnose(other, C=C)
    assert (report.status, report.bugs) == ("broken", ("no scale",))
    failed = [finding for finding in expected.findings if not finding.ok]
    assert [finding.name for finding in failed] == ["no scale", "equals the reference"]
    assert set(failed) <= set(report.findings), "measured by what is right in its own order"
    assert "≠ fused layer split as k, q, v: with this the numbers are the same." in words(report)


def test_a_projection_that_is_never_used_is_found():
    report = diagnose(Matrices(projected=False), C=C)
    assert report.bugs == ("output projection never used",)
    assert "none arrives at W_o: it is never used" in " ".join(str(report).split())


def test_a_key_bias_gets_no_gradient_and_is_healthy():
    class WithBias(Nameless):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.proj = self.a, self.b, self.c, self.d
            self.n_head = N_HEAD

    assert diagnose(WithBias(), C=C).status == "healthy"


def test_matrices_without_names_and_a_fused_layer_alone_are_found():
    for make, heads in ((NamelessHead, 1), (FusedAlone, N_HEAD)):
        assert "equals the reference" not in diagnose(make(), C=C, n_head=heads).not_checked
        for name, wrong in WRONG.items():
            assert diagnose(make(**wrong), C=C, n_head=heads).bugs[0] == name


# ---------------------------------------------------------------- the input, and the call before


def test_a_module_that_changes_its_input_is_told():
    class InPlace(MultiHeadAttention):
        def forward(self, x):
            x += 1
            return super().forward(x)

    x = torch.randn(2, 5, C)
    before = x.clone()
    report = diagnose(InPlace(C, N_HEAD), C=C, example=x)
    assert report.status == "broken" and report.bugs == ("its input changed in place",)
    assert "by up to 1.00" in report.findings[0].evidence and torch.equal(x, before)

    def added(x):
        return x.add_(1)

    assert diagnose(added, C=C).bugs[0] == "its input changed in place"


def test_what_is_kept_between_calls_is_no_dropout():
    class Cached(MultiHeadAttention):
        kept = 0

        def forward(self, x):
            out = super().forward(x) + 0.1 * self.kept
            self.kept = out
            return out

    report = diagnose(Cached(C, N_HEAD), C=C, n_head=N_HEAD)
    assert report.bugs == ("something kept from the call before",)


# ---------------------------------------------------------------- the number of heads


def test_heads_are_tried_where_they_are_not_known():
    told = str(diagnose(Nameless(), C=C))
    assert told.startswith("n_head = 4, found by trying: with it the numbers are right.\nHEALTHY")
    assert diagnose(Nameless(scale=False), C=C).bugs == ("no scale",)


def test_what_was_assumed_is_said_first():
    class Squared(Nameless):
        def forward(self, x):
            return self.d(attend(self.a(x) ** 2, self.b(x), self.c(x)))

    report = diagnose(Squared(), C=C)
    assert report.status == "different"
    assert str(report).startswith("Assumed: n_head = 1, since the module has no n_head, num_heads")


def test_one_wrong_head_of_several_is_placed():
    class Head(nn.Module):
        def __init__(self, divisor):
            super().__init__()
            self.query, self.key, self.value = (nn.Linear(C, 8, bias=False) for _ in range(3))
            self.divisor = divisor

        def forward(self, x):
            scores = self.query(x) @ self.key(x).mT / self.divisor**0.5
            scores = scores.masked_fill(torch.ones(scores.shape[-2:]).tril() == 0, -math.inf)
            return scores.softmax(-1) @ self.value(x)

    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleList(Head(divisor) for divisor in (8, 8, C, 8))
            self.proj = nn.Linear(C, C)

        def forward(self, x):
            return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))

    for n_head in (None, N_HEAD):
        report = diagnose(Heads(), C=C, n_head=n_head)
        assert report.bugs == ("divided by √C",)
        assert report.findings[0].evidence.endswith("(In heads.2.)")


# ---------------------------------------------------------------- what it returns


def test_a_cache_is_not_taken_for_weights():
    class Cached(MultiHeadAttention):
        def forward(self, x):
            return super().forward(x), self._split(self.key(x))

    assert diagnose(Cached(C, N_HEAD), C=C).status == "healthy"


def test_an_output_of_another_width_is_right_where_the_projection_makes_it():
    class Narrow(nn.Module):
        def __init__(self):
            super().__init__()
            self.W_query, self.W_key, self.W_value = (nn.Linear(C, 16) for _ in range(3))
            self.num_heads, self.out_proj = 2, nn.Linear(16, 16)

        def forward(self, x):
            qkv = self.W_query(x), self.W_key(x), self.W_value(x)
            return self.out_proj(attend(*qkv, n_head=2))

    assert diagnose(Narrow(), C=C).status == "healthy"


# ---------------------------------------------------------------- what it is run on


@pytest.mark.parametrize("shape", [(1, 6), (1, 2), (5, 3), (2, 20)])
def test_an_example_may_have_any_shape(shape):
    example = torch.randn(*shape, C)
    assert diagnose(QueryAndFused(), C=C, example=example).status == "healthy"
    assert diagnose(QueryAndFused(scale=False), C=C, example=example).bugs == ("no scale",)


def test_of_a_single_token_it_is_said_that_it_shows_nothing():
    report = diagnose(QueryAndFused(scale=False), C=C, example=torch.randn(2, 1, C))
    assert report.status == "incomplete"
    assert report.not_checked["no leak"] == "the example has a single token"
    assert "every weight is 1" in report.not_checked["equals the reference"]


EMPTY = {
    "all its numbers are 0": torch.zeros(2, 5, C),
    "its largest number is 4e-30": torch.randn(2, 5, C, generator=torch.Generator().manual_seed(1))
    .clamp(-4, 4)
    .mul(1e-30),
    "all its tokens are equal": torch.ones(2, 5, C),
}


def test_an_example_that_shows_nothing_is_not_judged():
    for why, example in EMPTY.items():
        report = diagnose(QueryAndFused(scale=False), C=C, example=example)
        assert report.status == "incomplete" and not report.findings
        told = report.not_checked["everything"]
        assert "cannot be judged on this input" in told
        assert why.split(" 4e")[0] in told
    tiny = diagnose(QueryAndFused(scale=False), C=C, example=1e-4 * torch.randn(2, 5, C))
    assert tiny.status == "incomplete"
    assert "all weights of a row are equal" in tiny.not_checked["equals the reference"]


def test_nan_in_parameters_or_the_example_is_told_first_and_ends_the_search():
    broken = QueryAndFused(dim=-2)
    report = diagnose(broken, C=C, example=torch.full((2, 5, C), math.nan))
    assert "The example holds numbers that are nan or inf" in " ".join(str(report).split())
    with torch.no_grad():
        broken.to_kv.weight[3, 4] = math.inf
    report = diagnose(broken, C=C)
    assert report.status == "broken" and not report.bugs and len(report.findings) == 1
    told = " ".join(str(report).split())
    assert "to_kv.weight holds numbers that are nan or inf" in told
    assert "1 of its 2048 numbers, the first at [3, 4]." in told


# ---------------------------------------------------------------- float16 and bfloat16


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_judged_by_its_own_rounding(dtype):
    assert diagnose(QueryAndFused().to(dtype), C=C).status == "healthy"
    assert diagnose(Block(C, N_HEAD).to(dtype), C=C).status == "healthy"
    for name, wrong in WRONG.items():
        assert diagnose(QueryAndFused(**wrong).to(dtype), C=C).bugs == (name,)


def test_a_fill_value_that_float16_does_not_hold_is_named():
    report = diagnose(QueryAndFused(fill=-1e9).half(), C=C)
    assert report.bugs == ("fill value too large for this type",)
    assert diagnose(QueryAndFused(fill=-1e9).bfloat16(), C=C).status == "healthy"


# ---------------------------------------------------------------- errors


class WithBlockSize(MultiHeadAttention):
    def __init__(self, block_size, cut=True, dtype=torch.float):
        super().__init__(C, N_HEAD)
        self.cut = cut
        self.register_buffer("tril", torch.ones(block_size, block_size, dtype=dtype).tril())

    def forward(self, x):
        q, k, v = (split(layer(x)) for layer in (self.query, self.key, self.value))
        T = x.shape[1]
        mask = self.tril[:T, :T] if self.cut else self.tril
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(mask == 0, -math.inf)
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


def test_a_block_size_that_is_too_small_is_told_and_the_rest_examined():
    report = diagnose(WithBlockSize(4), C=C)
    assert report.status == "healthy"
    told = " ".join(str(report).split())
    assert "Examined with 4 tokens: on x (3, 7, 32) it raises RuntimeError" in told
    assert "It runs with 1 to 4 tokens, and no more: is that its block_size?" in told
    assert "masked_fill(mask == 0" in told, "the line of the error"


@pytest.mark.parametrize("dtype", [torch.float, torch.bool])
def test_a_mask_that_is_not_cut_is_named(dtype):
    module = WithBlockSize(16, cut=False, dtype=dtype)
    assert diagnose(module, C=C).bugs == ("mask not cut to T tokens",)


def test_another_error_is_told_with_its_line():
    def refuses(x):
        raise RuntimeError("out of order")

    report = diagnose(refuses, C=C)
    told = " ".join(str(report).split())
    assert told.startswith("BROKEN: failed runs. It raises an error.")
    assert "RuntimeError: out of order, in the line “raise RuntimeError" in told


class ByView(nn.Module):
    """Splits the outputs of a fused layer, or merges the heads, by view where it cannot be had."""

    def __init__(self, split_by_view):
        super().__init__()
        self.n_head, self.split_by_view = N_HEAD, split_by_view
        self.qkv, self.proj = nn.Linear(C, 3 * C), nn.Linear(C, C)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.qkv(x).split(C, dim=-1)
        if self.split_by_view:
            q, k, v = (z.view(B, N_HEAD, T, -1) for z in (q, k, v))
        else:
            q, k, v = (split(z) for z in (q, k, v))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(torch.ones(T, T).tril() == 0, -math.inf)
        out = (scores.softmax(-1) @ v).transpose(1, 2)
        return self.proj(out.flatten(2) if self.split_by_view else out.view(B, T, C))


def test_a_view_that_should_be_a_reshape_is_told_from_one_that_should_not():
    merged = diagnose(ByView(split_by_view=False), C=C)
    assert merged.bugs == ("view of a tensor that is not contiguous",)
    assert "it runs and all else is right: write reshape" in words(merged)
    split_wrongly = diagnose(ByView(split_by_view=True), C=C)
    assert split_wrongly.bugs == ("split by view, without transpose",)
    told = words(split_wrongly)
    assert "First view(B, T, n_head, head_size), then transpose(1, 2)" in told
    assert "view size is not compatible" in told and told.endswith("reshape in the place of view.")
    assert "view" not in vars(torch.Tensor), "left as it was"


# ---------------------------------------------------------------- the words


def test_dropout_of_the_output_says_nothing_about_rows():
    class Dropping(MultiHeadAttention):
        def forward(self, x):
            return F.dropout(super().forward(x), 0.2)

    report = diagnose(Dropping(C, N_HEAD), C=C)
    assert report.bugs == ("dropout left on",)
    assert "With the same random numbers they agree" in words(report)
    assert "ows sum" not in report.findings[0].evidence


def test_weights_are_expected_only_where_some_came():
    told = words(diagnose(lambda x: x[..., :8], C=C, n_head=N_HEAD))
    assert (
        "gives out (3, 7, 8); expected out (3, 7, 32). Is it one head? Then pass n_head=1." in told
    )
    told = words(diagnose(lambda x: (x, torch.ones(3, 5, 7, 7)), C=C, n_head=N_HEAD))
    assert "expected out (3, 7, 32), weights (3, 7, 7) or (3, 4, 7, 7)." in told


@pytest.mark.parametrize("how", [{}, {"need_weights": False}], ids=str)
def test_an_inverted_mask_of_pytorchs_is_told_in_its_words_and_once(how):
    class Inverted(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.MultiheadAttention(C, N_HEAD, batch_first=True)

        def forward(self, x):
            mask = torch.ones(x.shape[1], x.shape[1]).tril() == 1
            return self.inner(x, x, x, attn_mask=mask, **how)[0]

    report = diagnose(Inverted(), C=C)
    assert report.bugs == ("mask not inverted",)
    told = words(report)
    assert "attn_mask is True where a token may NOT attend" in told and "masked_fill" not in told
    finite = next(finding.ok for finding in report.findings if finding.name == "finite")
    assert finite == ("nan at" not in told) == bool(how)


# ---------------------------------------------------------------- parts of a block


def test_the_place_of_a_bug_in_several_blocks_is_told():
    wrong = Block(C, N_HEAD)
    wrong.feed_forward = nn.Sequential(nn.Linear(C, 64), nn.Linear(64, C))
    report = diagnose(nn.Sequential(Block(C, N_HEAD), wrong), C=C)
    assert report.bugs == ("no activation in the feed-forward",)
    assert report.findings[0].evidence.endswith("(In 1.feed_forward.)")


def test_training_mode_is_left_as_it_was_after_batch_norm_was_tried():
    class OverTheBatch(nn.BatchNorm1d):
        def forward(self, x):
            return super().forward(x.mT).mT

    block = Block(C, N_HEAD).eval()
    block.norm_2 = OverTheBatch(C).eval()
    before = {name: z.clone() for name, z in block.state_dict().items()}
    report = diagnose(block, C=C)
    assert "batch norm instead of layer norm" in report.bugs
    assert "In training" not in str(report) and "in training mode changing" in str(report)
    assert not any(part.training for part in block.modules())
    assert all(torch.equal(before[name], z) for name, z in block.state_dict().items())


def test_a_block_with_two_wrong_parts_tells_both():
    block = rewired(no_norms)
    block.attention = Written(**BROKEN["no scale"])
    assert set(diagnose(block, C=12, n_head=3).bugs) == {"no scale", "no norms"}
