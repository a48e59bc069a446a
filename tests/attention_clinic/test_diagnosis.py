"""`diagnose` names every known bug, written here as people write it, and trusts the healthy."""

import math
import re
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attention_clinic import comparison
from attention_clinic.diagnosis import diagnose
from attention_clinic.steps import examine
from attention_clinic.subject import Subject
from helpers.attention import Block, FeedForward, Head, MultiHeadAttention, causal_mask
from helpers.positions import rotary
from helpers.ward import broken
from tests.attention_clinic.written import (
    BROKEN,
    N_HEAD,
    BrokenAttention,
    C,
    Fused,
    Written,
    list_of_heads,
    masked,
    pre_norm,
    renormalised,
    rewired,
    zero_projections,
)
from tests.lesson.examples import CHANGES, OF_TENSORS, OTHER_FORMS
from tests.told import Told


def one_of_each_kind(names, *kept):
    """All names, of which only the kept ones run by default; the others repeat them."""
    assert set(kept) <= set(names)
    return [name if name in kept else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", BROKEN)
def test_every_bug_is_named(name):
    report = diagnose(Written(**BROKEN[name]), C=C, n_head=N_HEAD)
    if "interleaved" in name:  # only another order of the channels
        assert (report.status, report.bugs) == ("different", (name,))
        return
    assert (report.status, report.bugs) == ("broken", (name,))
    named = report.findings[0]
    assert named.name == name and not named.ok and re.search(r"\d", named.evidence)
    assert str(report).startswith(f"BROKEN: {name}.\n✗ {name}: ")


SEVERAL_HEADS = {
    "split",
    "merge",
    "values",
    "roles",
}  # bugs of these methods, or over the heads, need them
ONE_HEAD = [
    name for name in BROKEN if not SEVERAL_HEADS & BROKEN[name].keys() and "heads" not in name
]


@pytest.mark.parametrize("name", one_of_each_kind(ONE_HEAD, "softmax over the queries", "no scale"))
def test_it_is_named_in_a_single_head_too(name):
    report = diagnose(Written(1, 5, **BROKEN[name]), C=C)
    assert (report.status, report.bugs) == ("broken", (name,))


RIGHT = {
    "as it should be": {},
    "renormalised afterwards": {"weigh": renormalised},
    "masked with -1e9": {"weigh": lambda s: masked(s, -1e9).softmax(-1)},
}


@pytest.mark.parametrize("wrong", RIGHT.values(), ids=RIGHT.keys())
def test_other_right_forms_are_healthy(wrong):
    assert diagnose(Written(**wrong), C=C, n_head=N_HEAD).status == "healthy"


def with_pytorchs(block):
    def forward(x):
        z, mask = block.norm_1(x), ~causal_mask(x.shape[1])
        x = x + block.attention(z, z, z, attn_mask=mask, need_weights=False)[0]
        return x + block.feed_forward(block.norm_2(x))

    block.attention = nn.MultiheadAttention(C, N_HEAD, batch_first=True)
    block.forward = forward
    return block


class WithoutSome(nn.Module):
    """Leaves out some tokens at random in training, without a dropout."""

    def forward(self, x):
        return x * (torch.rand(x.shape[:2])[..., None] < 0.5) if self.training else x


class WithTargets(Head):
    """Cannot be called with x alone in training."""

    def forward(self, x, targets=None):
        if self.training and targets is None:
            raise ValueError("Training needs targets.")
        return super().forward(x)


HEALTHY = {
    "head": lambda: Head(C, 5),
    "multi-head": lambda: MultiHeadAttention(C, N_HEAD),
    "fused": lambda: MultiHeadAttention(C, N_HEAD, fused=True),
    "with dropout, in training": lambda: MultiHeadAttention(C, N_HEAD, dropout=0.5).train(),
    "frozen, in double precision": lambda: MultiHeadAttention(C, N_HEAD).double().eval(),
    "block": lambda: Block(C, N_HEAD),
    "post-norm block": lambda: Block(C, N_HEAD, norm="post"),
    "block with new weights of 0": lambda: zero_projections(Block(C, N_HEAD), "wide.weight"),
    "two blocks": lambda: nn.Sequential(Block(C, N_HEAD), Block(C, N_HEAD, norm="post")),
    "block with PyTorch's": lambda: with_pytorchs(Block(C, N_HEAD)),
    "list of heads": list_of_heads,
    "wrapped": lambda: nn.Sequential(MultiHeadAttention(C, N_HEAD), nn.Dropout(0.5)),
    "with targets in training": lambda: WithTargets(C, 5),
    "random in training": lambda: nn.Sequential(MultiHeadAttention(C, N_HEAD), WithoutSome()),
    "PyTorch's": lambda: nn.MultiheadAttention(C, N_HEAD, batch_first=True),
    "PyTorch's, time first": lambda: nn.MultiheadAttention(C, N_HEAD, dropout=0.5),
}


@pytest.mark.parametrize("make", HEALTHY.values(), ids=HEALTHY.keys())
def test_sound_modules_are_healthy_and_left_as_they_were(make):
    module = make()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    training = [part.training for part in module.modules()]
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    report = diagnose(module, C=C, n_head=1 if isinstance(module, Head) else N_HEAD)
    assert report.status == "healthy", report
    assert not report.not_checked and not report.bugs
    of_parts = isinstance(module, nn.Sequential | Block) or hasattr(module, "heads")
    probes = 12 if of_parts else 11  # what is made of the parts is one more
    assert str(report).startswith(f"HEALTHY: all {probes} probes ran and passed.")
    assert training == [part.training for part in module.modules()]
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_num_threads() == threads
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


@pytest.mark.parametrize("pytorchs", [True, False], ids=["PyTorch's", "ours"])
def test_attention_without_a_mask_is_judged_by_what_it_should_be(pytorchs):
    multi_head = nn.MultiheadAttention(C, N_HEAD) if pytorchs else MultiHeadAttention(C, N_HEAD)
    assert diagnose(multi_head, C=C, causal=False).status == "healthy"
    broken = BrokenAttention("no scale", C, N_HEAD, causal=False)
    assert diagnose(broken, C=C, causal=False).bugs == ("no scale",)
    assert diagnose(Block(C, N_HEAD), C=C, causal=False).status == "healthy"
    always_causal = diagnose(rewired(pre_norm), C=C, n_head=N_HEAD, causal=False)
    assert (always_causal.status, always_causal.bugs) == ("broken", ("unwanted causal mask",))


def test_a_broken_attention_is_found_inside_a_block():
    block = rewired(pre_norm)
    block.attention = Written(**BROKEN["softmax over the queries"])
    report = diagnose(block, C=C, n_head=N_HEAD)
    assert report.bugs == ("softmax over the queries",)
    assert "(In attention.)" in report.findings[0].evidence


def test_two_bugs_at_once_are_both_named():
    """The head of a source lecture: softmax over the queries, and no scale."""
    wrong = {**BROKEN["softmax over the queries"], **BROKEN["no scale"]}
    report = diagnose(Written(1, 5, **wrong), C=C)
    assert set(report.bugs) == {"softmax over the queries", "no scale"}


def test_right_attention_whose_output_is_not_used_is_found_out():
    block = Block(C, N_HEAD)
    block.forward = lambda x: x + block.feed_forward(x + 0 * block.attention(x))
    report = diagnose(block, C=C, n_head=N_HEAD)
    failed = {finding.name for finding in report.findings if not finding.ok}
    named = {"no attention", "no norms"}
    assert failed == {"reach", "gradients reach", "residuals and norms"} | named
    assert set(report.bugs) == named


def test_another_formula_that_passes_all_else_is_different_not_broken():
    report = diagnose(Written(weigh=lambda s: masked(s * s).softmax(-1)), C=C, n_head=N_HEAD)
    assert report.status == "different"
    assert all(finding.ok for finding in report.findings)
    assert list(report.different) == ["equals the reference"]
    assert not report.bugs, "all were computed from q, k and v, and none was it"
    told = "it differs from softmax(q kᵀ/√d) v, and no known bug or variant explains it. 8 probes"
    assert told in " ".join(str(report).split()) and "meant" not in str(report)


def test_what_nothing_explains_on_a_few_tokens_is_not_compared_on_all(monkeypatch):
    tokens, find = set(), comparison._find

    def counted(seen, *rest):
        tokens.add(seen.x.shape[1])
        return find(seen, *rest)

    monkeypatch.setattr(comparison, "_find", counted)
    x = torch.randn(2, 33, C)
    unknown = Written(weigh=lambda s: masked(s * s).softmax(-1))
    assert not diagnose(unknown, C=C, n_head=N_HEAD, example=x).bugs and tokens == {16}
    assert diagnose(Written(**BROKEN["no mask"]), C=C, example=x).bugs == ("no mask",)

    def twenty_tokens(s):
        return masked(s).masked_fill(torch.ones_like(s).tril(-20) > 0, -math.inf).softmax(-1)

    wide = Written(weigh=twenty_tokens)
    assert diagnose(wide, C=C, example=x).bugs == ("sliding window (Beltagy et al. 2020)",)


def test_another_formula_that_leaks_is_broken():
    report = diagnose(Written(weigh=lambda s: (s * s).softmax(-1)), C=C, n_head=N_HEAD)
    assert report.status == "broken" and not report.different
    failed = {finding.name for finding in report.findings if not finding.ok}
    assert failed == {"no leak", "equals the reference"}
    told = "what is computed from the weights is wrong, but no known bug fits.\n"
    assert told in str(report).replace("\n  ", " ")


class Showing(MultiHeadAttention):
    """Right but for what `wrong` makes of its output and weights, which it shows."""

    def __init__(self, wrong):
        super().__init__(C, N_HEAD)
        self.wrong = wrong

    def forward(self, x, *, return_weights=False):
        out, weights = self.wrong(*super().forward(x, return_weights=True))
        return (out, weights) if return_weights else out


def test_right_weights_with_a_wrong_average_are_told_apart():
    class Both(Written):
        def forward(self, x):
            q, k, v = (self.split(z) for z in (self.query(x), self.key(x), self.value(x)))
            weights = self.weigh(self.scores(q, k))
            return self.out(self.merge(weights @ v + v.mean(-2, keepdim=True))), weights

    told = " ".join(str(diagnose(Both(), C=C)).split())
    assert "The weights are right; what is computed from them is wrong, but no known bug" in told


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            lambda out, weights: (out + out.mean(1, keepdim=True), weights),
            "The attention in it is right; look at what stands around it.",
        ),
        (
            lambda out, weights: (out, weights**2),
            "The scores or the mask are wrong, but no known bug",
        ),
    ],
    ids=["output", "weights"],
)
def test_weights_that_are_shown_say_on_which_side_of_them_it_went_wrong(wrong, told):
    report = diagnose(Showing(wrong), C=C)
    assert (report.status, report.bugs) == ("broken", ())
    assert told in " ".join(str(report).split())


def test_a_bug_around_right_attention_is_placed_there():
    block = Block(C, N_HEAD)
    block.forward = lambda x: x.mean(1, keepdim=True) + block.attention(x)
    told = " ".join(str(diagnose(block, C=C, n_head=N_HEAD)).split())
    assert told.startswith(
        "BROKEN: failed no leak, gradients reach, residuals and norms. No known bug fits. The atten"
    )
    assert "with none of the known bugs are the numbers the same" in told


def test_a_bare_function_is_incomplete_and_says_what_was_not_checked():
    multi_head = MultiHeadAttention(C, N_HEAD)
    report = diagnose(lambda x: multi_head(x), C=C, n_head=N_HEAD)
    assert report.status == "incomplete" and not report.bugs
    unseen = ["rows sum to 1", "no weight on the future", "gradients reach", "equals the reference"]
    assert list(report.not_checked) == unseen
    told = " ".join(str(report).split())
    assert told.startswith(f"INCOMPLETE: no bug found; not checked: {', '.join(unseen)}")
    assert max(map(len, str(report).splitlines())) <= 80
    assert "it shows no weights" in report.not_checked["rows sum to 1"]
    with_weights = diagnose(lambda x: multi_head(x, return_weights=True), C=C, n_head=N_HEAD)
    assert with_weights.status == "incomplete"
    assert list(with_weights.not_checked) == unseen[2:]


# The probes of the curriculum's table that a function (out, weights) allows: ✓, ✗, or not run (–).
PROBES = ("finite", "rows sum to 1", "no weight on the future", "no leak", "reach")


PATTERNS = {
    "softmax over the queries": "✓✗✓✗✓",
    "scores thrown away": "✓✓✓✓✓",
    "masked after the softmax": "✓✗✓✗✓",
    "future filled with 0": "✓✓✗✗✓",
    "diagonal masked too": "✗✗–––",
    "0 times infinity": "✗✗–––",
    "diagonal masked with -1e9": "✓✓✗✗✗",
    "no mask": "✓✓✗✗✓",
    "upper triangle kept": "✓✓✗✗✗",
    "mask not inverted": "✗✗–––",
    "mask one too far": "✓✓✗✗✓",
    "no scale": "✓✓✓✓✓",
    "divided by √C": "✓✓✓✓✓",
    "multiplied by √head_size": "✓✓✓✓✓",
    "queries and keys swapped": "✓✓✓✓✓",
    "keys used as values": "✓✓✓✓✓",
    "weights transposed": "✓✓✓✗✓",
    "split by view, without transpose": "✓✓✓✗✗",
    "merged by view, without transpose": "✓✓✓✗✗",
    "split and merged by view": "✓✓✓✓✗",
}


def signs(exam):
    found = {name: "✓" if one.ok else "✗" for name, one in exam.findings.items()}
    return "".join(found.get(name, "–") for name in PROBES)


@pytest.mark.parametrize("name", PATTERNS)
def test_probes_see_of_a_bare_function_what_the_table_says(name):
    broken = BrokenAttention(name, C, N_HEAD)
    x = torch.randn(2, 8, C)
    exam = examine(Subject(lambda x: broken(x, return_weights=True), x, N_HEAD, causal=True))
    assert signs(exam) == PATTERNS[name]


def test_bugs_that_no_probe_of_a_bare_function_sees_leave_it_incomplete():
    broken = BrokenAttention("no scale", C, N_HEAD)
    report = diagnose(lambda x: broken(x, return_weights=True), C=C, n_head=N_HEAD)
    assert (report.status, report.bugs) == ("incomplete", ())


def test_dropout_in_a_bare_function_is_named():
    multi_head = MultiHeadAttention(C, N_HEAD, dropout=0.5).train()
    report = diagnose(lambda x: multi_head(x), C=C, n_head=N_HEAD)
    assert (report.status, report.bugs) == ("broken", ("dropout left on",))


def test_of_a_bare_function_the_probes_say_what_is_wrong():
    fused = Fused(causal=False)
    report = diagnose(lambda x: fused(x), C=C, n_head=N_HEAD)
    assert (report.status, report.bugs) == ("broken", ())
    told = " ".join(str(report).split())
    assert told.startswith(
        "BROKEN: failed no leak. Of a function, known bugs cannot be tried; of the module they "
        "can. ✗ no leak: changing token "
    )
    seen = diagnose(fused, C=C, n_head=N_HEAD)
    assert set(seen.bugs) == {"no mask", "one large head"}


def test_a_mean_over_the_batch_is_noticed():
    multi_head = MultiHeadAttention(C, N_HEAD)
    report = diagnose(lambda x: multi_head(x) + x.mean(0), C=C, n_head=N_HEAD)
    assert (report.status, report.bugs) == ("broken", ())
    assert str(report).startswith("BROKEN: failed sequences stay apart. Of a function, known bugs")
    lone = diagnose(lambda x: multi_head(x) + x.mean(0), C=C, example=torch.randn(1, 5, C))
    assert str(lone).startswith("BROKEN: failed sequences stay apart.")


# ---------------------------------------------------------------- the same for a prefix


def by_log_of_T(q, k):
    return q @ k.mT / q.shape[-1] ** 0.5 * math.log(q.shape[-2])


class OverTime(nn.Module):
    """In training over all tokens of a sequence, in evaluation with what it has seen before."""

    def __init__(self, kind=nn.InstanceNorm1d):
        super().__init__()
        self.norm = kind(C, affine=True, track_running_stats=True)

    def forward(self, x):
        return self.norm(x.mT).mT


def told_of_prefixes(report):
    return {one.name: one.evidence for one in report.findings}.get("same for a prefix", "")


def test_view_in_both_leaks_nothing_and_fails_for_a_prefix():
    module = Written(**BROKEN["split and merged by view"])
    report = diagnose(module, C=C)
    assert report.bugs == ("split and merged by view",)
    assert "it depends on how many tokens there are" in told_of_prefixes(report)
    assert "no leak" in {one.name for one in report.findings if one.ok}
    told = str(diagnose(lambda x: module(x), C=C))
    assert told.startswith("BROKEN: failed same for a prefix, reach. Of a function, ")


def test_what_another_probe_explains_is_not_told_of_prefixes_too():
    batch_norm = Block(C, N_HEAD)
    batch_norm.norm_1 = OverTime(nn.BatchNorm1d)
    for module in (Written(**BROKEN["no mask"]), Written(**BROKEN["dropout left on"]), batch_norm):
        report = diagnose(module, C=C)
        assert report.status == "broken" and "same for a prefix" not in str(report)
    assert "for a prefix" not in str(diagnose(MultiHeadAttention(C, N_HEAD), C=C, causal=False))


def test_a_scale_by_the_number_of_tokens_is_different_not_broken():
    module = Written(scores=by_log_of_T)
    report = diagnose(module, C=C)
    assert report.status == "different"
    assert report.bugs == ("scores scaled by log T (Chiang and Cholak 2022)",)
    assert "how many tokens there are" in report.different["same for a prefix"]
    told = "). 7 probes passed; not checked: rows sum to 1, no weight on the future. If this is"
    assert told in " ".join(str(report).split())
    unknown = diagnose(lambda x: module(x), C=C)
    assert unknown.status == "different"
    assert str(unknown).startswith("DIFFERENT: the outputs depend on how many tokens there are, ")
    root = diagnose(Written(**BROKEN["divided by √T"]), C=C)
    assert "how many tokens there are" in told_of_prefixes(root) and root.status == "broken"


def test_a_norm_that_looks_ahead_in_training_only_is_found():
    block = Block(C, N_HEAD).eval()
    block.norm_1 = OverTime()
    before = {name: z.clone() for name, z in block.state_dict().items()}
    report = diagnose(block, C=C)
    assert str(report).startswith("BROKEN: failed same for a prefix. ")
    assert told_of_prefixes(report).startswith("in training mode, output ")
    assert block.norm_1.training and not block.norm_2.training
    assert all(torch.equal(before[name], z) for name, z in block.state_dict().items())


def test_a_batch_norm_before_the_attention_is_named():
    report = diagnose(broken("batch norm")(32, 4, 2), C=32)
    assert report.bugs == ("batch norm instead of layer norm",) and report.error is None


def test_heads_that_are_tiled_are_named_beside_rotary_positions():
    report = diagnose(broken("heads tiled")(32, 4, 2), C=32)
    assert report.status == "different" and "groups tiled" in report.bugs
    assert "groups tiled" not in diagnose(broken(None)(32, 4, 2), C=32).bugs


def test_rotary_positions_are_found_behind_a_fused_layer_that_is_split_per_head():
    class PerHead(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.mix = nn.Linear(32, 96), nn.Linear(32, 32)

        def forward(self, x):
            q, k, v = self.qkv(x).unflatten(2, (4, 3, 8)).permute(3, 0, 2, 1, 4)
            z = F.scaled_dot_product_attention(rotary(q), rotary(k), v, is_causal=True)
            return self.mix(z.transpose(1, 2).flatten(2))

    report = diagnose(PerHead(), C=32, n_head=4, expect=("rotary",))
    assert report.status == "healthy", report


def test_a_module_that_takes_no_shorter_text_is_not_checked_for_prefixes():
    module = MultiHeadAttention(C, N_HEAD)
    fixed = diagnose(lambda x: module(x, mask=causal_mask(8)), C=C)
    assert "it takes no shorter text: cut after token 6" in fixed.not_checked["same for a prefix"]
    assert fixed.status == "incomplete"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rounding_in_half_precision_is_no_difference_of_a_prefix(dtype):
    example = torch.randn(2, 33, 64, generator=torch.Generator().manual_seed(0)).to(dtype)
    for module in (MultiHeadAttention(64, 4).to(dtype), Block(64, 4).to(dtype)):
        report = diagnose(module, C=64, example=example)
        assert report.status != "broken", report
        told = " ".join(str(report).split())
        assert (
            "✓ same for a prefix: x was cut after tokens 0, 2, 4, 6, 8 and 11 more in turn" in told
        )


OF_OURS = {
    "head": lambda **how: Head(C, 4, **how),
    "multi-head": lambda **how: MultiHeadAttention(C, N_HEAD, **how),
    "fused": lambda **how: MultiHeadAttention(C, N_HEAD, fused=True, **how),
    "block": lambda **how: Block(C, N_HEAD, **how),
    "post-norm block": lambda **how: Block(C, N_HEAD, "post", **how),
}


@pytest.mark.parametrize("make", OF_OURS.values(), ids=OF_OURS.keys())
def test_our_own_modules_with_rotary_positions_are_different_by_these_alone(make):
    for causal in (True, False):
        report = diagnose(make(rotary=True), C=C, causal=causal)
        assert report.status == "different" and not report.not_checked, report
        assert report.bugs == ("rotary positions (RoPE, Su et al. 2021)",)
        assert all(finding.ok for finding in report.findings if finding.name not in report.bugs)


class AcrossTheBatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = MultiHeadAttention(C, N_HEAD)

    def forward(self, x):
        return self.attention(x.transpose(0, 1)).transpose(0, 1)


class AcrossTheBatchInside(Written):
    def forward(self, x):
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


@pytest.mark.parametrize("make", [AcrossTheBatch, AcrossTheBatchInside])
def test_attention_across_the_batch_is_named(make):
    report = diagnose(make(), C=C)
    assert (report.status, report.bugs) == ("broken", ("attention across the batch",))
    assert "a token to those at its own place in other sequences" in " ".join(str(report).split())


@pytest.mark.parametrize("n_head", [1, N_HEAD])
def test_what_mixes_no_tokens_is_asked_whether_it_is_an_attention(n_head):
    told = " ".join(str(diagnose(FeedForward(C), C=C, n_head=n_head)).split())
    assert told.startswith(
        "BROKEN: failed reach. No known bug fits. It mixes no tokens at all: is it an attention?"
    )


BAD_INPUT = [
    (lambda: diagnose(Head, C=C), TypeError, "got the class Head"),
    (lambda: diagnose(torch.ones(2), C=C), TypeError, r"got a tensor of shape \(2,\)"),
    (lambda: diagnose(lambda x: "out", C=C), TypeError, "Expected out .* got str"),
    (lambda: diagnose(Head(C, 4), C=0), ValueError, "C must be a whole number"),
    (lambda: diagnose(Block(C, 3), C=C, n_head=2.0), ValueError, "n_head must be a whole number"),
    (lambda: diagnose(MultiHeadAttention(C, 3), C=C, n_head=4), ValueError, "has 3 heads.* = 4"),
    (lambda: diagnose(MultiHeadAttention(C, 1), C=C, n_head=4), ValueError, "has 1 heads.* = 4"),
    (lambda: diagnose(Block(C, 4), C=C, n_head=2), ValueError, "has 4 heads.* = 2"),
    (lambda: diagnose(MultiHeadAttention(C, 3), C=6), ValueError, "query. reads C = 12 .* C = 6"),
    (lambda: diagnose(Block(C, 3), C=6), ValueError, "attention.query. reads C = 12 .* C = 6"),
    (
        lambda: diagnose(nn.MultiheadAttention(C, 3), C=6),
        ValueError,
        "module reads C = 12 .* C = 6",
    ),
    (lambda: diagnose(Fused(), C=6), ValueError, "layer qkv. reads C = 12 .* C = 6"),
    (lambda: diagnose(Head(C, 4), C=C, example=torch.ones(2, 0, C)), ValueError, "C = 12.*0, 12"),
    (lambda: diagnose(Head(C, 4), C=C, example=torch.ones(2, 4, 5)), ValueError, "C = 12.*4, 5"),
    (lambda: diagnose(Head(C, 4), C=C, example=[1.0]), TypeError, "tensor of floats, got the list"),
]


@pytest.mark.parametrize(("call", "error", "match"), BAD_INPUT)
def test_bad_input_is_refused_in_words(call, error, match):
    with pytest.raises(error, match=match):
        call()


class WithoutReturn(Written):
    def forward(self, x):
        super().forward(x)


@pytest.mark.parametrize("make", [WithoutReturn, lambda: lambda x: None], ids=["module", "lambda"])
def test_a_missing_return_is_asked_for(make):
    told = " ".join(str(diagnose(make(), C=C)).split())
    assert told.startswith("BROKEN: failed runs. It returns None. ✗ runs: it returned None: is its")


def test_a_number_of_tokens_that_is_written_in_the_code_is_asked_about():
    fixed = Written()
    fixed.forward = lambda x: Written.forward(fixed, x.view(-1, 11, C))
    told = " ".join(str(diagnose(fixed, C=C)).split())
    assert "It runs with 11 tokens only. 11 is written in its code: should it be T" in told


def test_a_wrong_shape_ends_the_examination():
    report = diagnose(lambda x: x.mean(1), C=C)
    assert [finding.name for finding in report.findings] == ["shape"] and report.status == "broken"
    assert "out (3, 12); expected out (3, 8, 12)" in report.findings[0].evidence


def test_a_cache_that_is_not_handed_over_is_told():
    class Keeps(MultiHeadAttention):
        def forward(self, x, layer_past=None, use_cache=False):
            return super().forward(x)

    (note,) = diagnose(Keeps(C, N_HEAD), C=C).notes
    assert note.startswith("Called without layer_past and use_cache: ")


# ---------------------------------------------------------------- two ways to call it


class TwoPaths(MultiHeadAttention):
    """A fast path without weights, and one with them; each with a mask or without."""

    def __init__(self, masked_without=True, masked_with=True, scale=None):
        super().__init__(C, N_HEAD)
        self.masked_without, self.masked_with, self.scale = masked_without, masked_with, scale

    def forward(self, x, need_weights=False):
        q, k, v = (
            z(x).unflatten(-1, (N_HEAD, -1)).transpose(1, 2)
            for z in (self.query, self.key, self.value)
        )
        if need_weights:
            scores = q @ k.mT / q.shape[-1] ** 0.5
            if self.masked_with:
                scores = scores.masked_fill(~causal_mask(x.shape[1]), -torch.inf)
            weights = torch.softmax(scores, dim=-1)
            return self.proj((weights @ v).transpose(1, 2).flatten(2)), weights
        out = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=self.masked_without, scale=self.scale
        )
        return self.proj(out.transpose(1, 2).flatten(2))


@pytest.mark.parametrize(
    ("given", "bug", "leaks"),
    [
        ({"masked_with": False}, "mask dropped when weights are asked for", True),
        ({"masked_without": False}, "mask dropped unless weights are asked for", True),
        ({"scale": 1.0}, "other outputs when weights are asked for", False),
        ({"masked_with": False, "masked_without": False}, "no mask", True),
    ],
)
def test_both_ways_to_call_a_module_are_compared(given, bug, leaks):
    report = diagnose(TwoPaths(**given), C=C, n_head=N_HEAD)
    assert report.bugs == (bug,)
    assert any(one.name == "no leak" and not one.ok for one in report.findings) == leaks


def test_two_paths_that_agree_are_healthy():
    assert diagnose(TwoPaths(), C=C, n_head=N_HEAD).status == "healthy"


class Odd(nn.Module):
    """A module of these parts, whose forward is a function of it and of x."""

    def __init__(self, forward, **parts):
        super().__init__()
        self.own = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.own(self, x)


def linear(*outputs):
    return nn.ModuleList(nn.Linear(C, n, bias=False) for n in outputs)


def two(*outputs):
    return dict(zip("ab", linear(*outputs), strict=True))


def matrices(*shapes):
    return nn.ParameterList(nn.Parameter(torch.randn(shape) / 5) for shape in shapes)


def attend(q, k, v, change=lambda scores: scores, mixed=None):
    q, k, v = (z.unflatten(-1, (N_HEAD, -1)).transpose(1, 2) for z in (q, k, v))
    scores = change(q @ k.mT / q.shape[-1] ** 0.5)
    scores = scores if mixed is None else torch.einsum("gh,bhij->bgij", mixed, scores)
    return (masked(scores).softmax(-1) @ v).transpose(1, 2).flatten(2)


def by_visible(scores):
    return scores * torch.arange(1.0, scores.shape[-1] + 1).log()[:, None]


def own_matrices(forward, *shapes, names="abcd"):
    return lambda: Odd(forward, **dict(zip(names, matrices(*shapes), strict=False)))


class Mixed(Block):
    def __init__(self):
        super().__init__(C, N_HEAD)
        self.own = nn.Parameter(torch.randn(C, C) / 5)

    def forward(self, x):
        return super().forward(x) @ self.own


class Asks(FeedForward):
    def forward(self, x, factor=None):
        if factor is None:
            raise ValueError("Say by what factor.")
        return super().forward(factor * x)


# What few people write: nothing of it may be told wrong, and nothing may end in an error.
ODD = {
    "no layer": lambda: Odd(lambda m, x: attend(x, x, x)),
    "one layer for two": lambda: Odd(lambda m, x: attend(m.a(x), m.b(x), m.b(x)), **two(C, C)),
    "five layers": lambda: Odd(
        lambda m, x: attend(*(one(x) for one in m.a[:3])) + 0 * (m.a[3](x) + m.a[4](x)),
        a=linear(C, C, C, C, C),
    ),
    "a projection without a name": lambda: Odd(
        lambda m, x: m.a[3](attend(*(one(x) for one in m.a[:3]))), a=linear(C, C, C, C)
    ),
    "text after text": lambda: Odd(
        lambda m, x: torch.cat([attend(*(one(t[None]) for one in m.a)) for t in x]),
        a=linear(C, C, C),
    ),
    "token after token": lambda: Odd(
        lambda m, x: attend(
            *(torch.stack([torch.stack([*map(one, t)]) for t in x]) for one in m.a)
        ),
        a=linear(C, C, C),
    ),
    "narrow matrices": own_matrices(
        lambda m, x: attend(x @ m.W_Q, x @ m.W_K, x @ m.W_V) @ m.W_O,
        *[(C, C // 2)] * 3, (C // 2, C),
        names=["W_Q", "W_K", "W_V", "W_O"],
    ),
    "matrices without names": own_matrices(
        lambda m, x: attend(x @ m.a.T, x @ m.b.T, x @ m.c.T), *[(C, C)] * 3
    ),
    "five matrices": own_matrices(
        lambda m, x: attend(x @ m.a, x @ m.b, x @ m.c) + 0 * x @ m.d @ m.e,
        *[(C, C)] * 5, names="abcde",
    ),
    "one after the other": own_matrices(
        lambda m, x: attend(*(x @ w for w in m.a)), (3, C, C)
    ),
    "a width that no heads share": lambda: Odd(
        lambda m, x: attend(*m.qkv(x)[..., :-1].chunk(3, dim=-1)), qkv=nn.Linear(C, 3 * C + 1)
    ),
    "scores by the logarithm of what is visible": lambda: Odd(
        lambda m, x: attend(*(one(x) for one in m.a), by_visible), a=linear(C, C, C)
    ),
    "scores mixed over heads": lambda: Odd(
        lambda m, x: attend(*(one(x) for one in m.a), mixed=m.b),
        a=linear(C, C, C), b=nn.Parameter(torch.randn(N_HEAD, N_HEAD)),
    ),
    "a table of places for 13 tokens": lambda: Odd(
        lambda m, x: attend(*(one(x) for one in m.a), lambda scores: scores + m.b[m.places]),
        a=linear(C, C, C), b=nn.Parameter(torch.randn(25)),
        places=nn.Buffer(12 + torch.arange(13)[:, None] - torch.arange(13)),
    ),
    "one head several times": lambda: Odd(
        lambda m, x: torch.cat([one(x) for one in m.a], -1), a=nn.ModuleList([Head(C, 4)] * 3)
    ),
    "an empty tuple": lambda: Odd(lambda m, x: (), a=linear(C)),
    "a block with one scalar": lambda: Odd(
        lambda m, x: (
            (h := x + m.f * m.block.attention(m.block.norm_1(x)))
            + m.f * m.block.feed_forward(m.block.norm_2(h))
        ),
        block=Block(C, N_HEAD), f=nn.Parameter(torch.tensor(0.5)),
    ),
    "a block with a matrix of its own": Mixed,
    "a block whose values are of something else": lambda: Odd(
        lambda m, x: (h := x + m.attend(m.norm_1(x))) + m.feed_forward(m.norm_2(h)),
        attend=Odd(
            lambda m, x: attend(m.query(x), m.key(x), m.value(2 * x)),
            **dict(zip(("query", "key", "value"), linear(C, C, C), strict=True)),
        ),
        feed_forward=FeedForward(C), norm_1=nn.LayerNorm(C), norm_2=nn.LayerNorm(C),
    ),
    "a block with a part that asks for more": lambda: Odd(
        lambda m, x: (h := x + m.attention(m.norm_1(x))) + m.feed_forward(m.norm_2(h), 2),
        attention=MultiHeadAttention(C, N_HEAD), feed_forward=Asks(C),
        norm_1=nn.LayerNorm(C), norm_2=nn.LayerNorm(C),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_what_few_people_write_is_told_as_it_is_stored(name, snapshot):
    torch.manual_seed(0)
    try:
        told = str(diagnose(ODD[name]().eval(), C=C, n_head=N_HEAD))
    except (TypeError, ValueError) as problem:
        told = str(problem)
    assert told == snapshot.use_extension(Told)


@pytest.mark.parametrize("layer", [MultiHeadAttention, Block])
@pytest.mark.parametrize("what", OTHER_FORMS | OF_TENSORS)
def test_a_right_output_in_another_form_is_told_as_it_is_stored(layer, what, snapshot):
    def forward(*given, **more):
        return (OTHER_FORMS | OF_TENSORS)[what](layer.forward(*given, **more))

    torch.manual_seed(0)
    made = type(layer.__name__, (layer,), {"forward": forward})(C, N_HEAD)
    try:
        told = str(diagnose(made.eval(), C=C, n_head=N_HEAD))
    except TypeError as problem:
        told = str(problem)
    assert told == snapshot.use_extension(Told)


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("part", [name for name, _ in Block(C, N_HEAD).named_modules()])
def test_a_block_with_a_changed_part_is_told_as_it_is_stored(part, read, snapshot):
    def changed(_, given, out=None, what=None):
        first, *more = given if out is None else out if isinstance(out, tuple) else (out,)
        return (CHANGES[what](first), *more) if more or out is None else CHANGES[what](first)

    told = []
    for what in CHANGES:
        torch.manual_seed(0)
        block = Block(C, N_HEAD).eval()
        inside = block.get_submodule(part)
        hook = inside.register_forward_pre_hook if read else inside.register_forward_hook
        hook(partial(changed, what=what))
        report = str(diagnose(block, C=C, n_head=N_HEAD))
        told.append(f"{what}: " + re.sub(r"^✓.*\n(  .*\n)*", "", report, flags=re.M))
    assert "\n".join(told) == snapshot.use_extension(Told)
