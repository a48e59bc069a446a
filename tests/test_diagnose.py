"""`diagnose` names every known mistake, written here as people write it, and trusts the healthy."""

import re

import pytest
import torch
from torch import nn

from helpers.attention import Block, Head, MultiHeadAttention
from helpers.illnesses import Patient, illnesses_of, pairs_of
from helpers.probes import diagnose

C, N_HEAD = 12, 3
INF = float("inf")


@pytest.fixture(autouse=True)
def same_random_numbers():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def tril(scores):
    return torch.tril(torch.ones(scores.shape[-2:]))


class Written(nn.Module):
    """Attention by somebody else: `weigh` and `mix` are where they may have gone wrong."""

    def __init__(self, n_head=N_HEAD, head_size=C // N_HEAD, **wrong):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(C, n_head * head_size) for _ in range(3))
        self.out = nn.Linear(n_head * head_size, C)
        self.heads = n_head
        for name, function in wrong.items():
            setattr(self, name, function)

    def split(self, z):
        B, T, _ = z.shape
        return z.view(B, T, self.heads, -1).transpose(1, 2)

    def scores(self, q, k):
        return q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5

    def weigh(self, scores):
        return scores.masked_fill(tril(scores) == 0, -INF).softmax(dim=-1)

    def mix(self, weights, q, k, v):
        return weights @ v

    def merge(self, out):
        B, _, T, _ = out.shape
        return out.transpose(1, 2).contiguous().view(B, T, -1)

    def forward(self, x):
        q, k, v = (self.split(layer(x)) for layer in (self.query, self.key, self.value))
        weights = self.weigh(self.scores(q, k))
        return self.out(self.merge(self.mix(weights, q, k, v)))


def masked(scores, fill=-INF, diagonal=0):
    return scores.masked_fill(torch.tril(torch.ones_like(scores), diagonal) == 0, fill)


def renormalised(scores):
    weights = scores.softmax(-1) * tril(scores)
    return weights / weights.sum(-1, keepdim=True)


def view_split(z):
    B, T, _ = z.shape
    return z.view(B, N_HEAD, T, -1)


def view_merge(out):
    B, _, T, _ = out.shape
    return out.contiguous().view(B, T, -1)


# The curriculum's table: the name, and how the mistake is made.
TABLE = {
    "softmax over the queries": {"weigh": lambda s: masked(s).softmax(-2)},
    "softmax over the heads": {"weigh": lambda s: masked(s).softmax(1)},
    "scores thrown away": {"weigh": lambda s: masked(torch.zeros_like(s)).softmax(-1)},
    "masked after the softmax": {"weigh": lambda s: s.softmax(-1) * tril(s)},
    "future filled with 0": {"weigh": lambda s: (s * tril(s)).softmax(-1)},
    "diagonal masked too": {"weigh": lambda s: masked(s, diagonal=-1).softmax(-1)},
    "0 times infinity": {"weigh": lambda s: (s + (1 - tril(s)) * -INF).softmax(-1)},
    "diagonal masked with -1e9": {"weigh": lambda s: masked(s, -1e9, -1).softmax(-1)},
    "no mask": {"weigh": lambda s: s.softmax(-1)},
    "upper triangle kept": {"weigh": lambda s: s.masked_fill(tril(s).T == 0, -INF).softmax(-1)},
    "no scale": {"scores": lambda q, k: q @ k.mT},
    "divided by the root of C": {"scores": lambda q, k: q @ k.mT / C**0.5},
    "divided by the root of T": {"scores": lambda q, k: q @ k.mT / q.shape[-2] ** 0.5},
    "divided by the size, without a root": {"scores": lambda q, k: q @ k.mT / q.shape[-1]},
    "multiplied by the root": {"scores": lambda q, k: q @ k.mT / q.shape[-1] ** -0.5},
    "queries and keys swapped": {"scores": lambda q, k: k @ q.mT / q.shape[-1] ** 0.5},
    "keys in the place of values": {"mix": lambda w, q, k, v: w @ k},
    "weights transposed": {"mix": lambda w, q, k, v: w.mT @ v},
    "dropout left on": {
        "weigh": lambda s: nn.functional.dropout(masked(s).softmax(-1), 0.2),
    },
    "split by view, without transpose": {"split": view_split},
    "merged by view, without transpose": {"merge": view_merge},
    "split and merged by view": {"split": view_split, "merge": view_merge},
}


@pytest.mark.parametrize("name", TABLE)
def test_every_row_of_the_table_is_named(name):
    report = diagnose(Written(**TABLE[name]), C=C, n_head=N_HEAD)
    assert (report.status, report.illnesses, report.recognised) == ("ill", (name,), True)
    named = report.findings[0]
    assert named.name == name and not named.ok and re.search(r"\d", named.evidence)
    assert str(report).startswith(f"ILL: {name}.\n✗ {name}: ")


ONE_HEAD = [name for name in TABLE if not {"split", "merge"} & TABLE[name].keys()]


@pytest.mark.parametrize("name", [name for name in ONE_HEAD if "heads" not in name])
def test_it_is_named_in_a_single_head_too(name):
    report = diagnose(Written(1, 5, **TABLE[name]), C=C)
    assert (report.status, report.illnesses) == ("ill", (name,))


RIGHT = {
    "as it should be": {},
    "renormalised afterwards": {"weigh": renormalised},
    "masked with -1e9": {"weigh": lambda s: masked(s, -1e9).softmax(-1)},
}


@pytest.mark.parametrize("wrong", RIGHT.values(), ids=RIGHT.keys())
def test_other_right_forms_are_healthy(wrong):
    assert diagnose(Written(**wrong), C=C, n_head=N_HEAD).status == "healthy"


def list_of_heads():
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleList(Head(C, C // N_HEAD) for _ in range(N_HEAD))
            self.proj = nn.Linear(C, C)

        def forward(self, x):
            return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))

    return Heads()


HEALTHY = {
    "head": lambda: Head(C, 5),
    "many heads": lambda: MultiHeadAttention(C, N_HEAD),
    "fused": lambda: MultiHeadAttention(C, N_HEAD, fused=True),
    "with dropout, in training": lambda: MultiHeadAttention(C, N_HEAD, dropout=0.5).train(),
    "frozen, in double precision": lambda: MultiHeadAttention(C, N_HEAD).double().eval(),
    "block": lambda: Block(C, N_HEAD),
    "post-norm block": lambda: Block(C, N_HEAD, norm="post"),
    "list of heads": list_of_heads,
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
    assert not report.not_checked and not report.illnesses
    assert str(report).startswith("HEALTHY: all 9 probes ran and passed.")
    assert training == [part.training for part in module.modules()]
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_num_threads() == threads
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


@pytest.mark.parametrize("theirs", [True, False], ids=["PyTorch's", "ours"])
def test_attention_without_a_mask_is_judged_by_what_it_should_be(theirs):
    many = nn.MultiheadAttention(C, N_HEAD) if theirs else MultiHeadAttention(C, N_HEAD)
    assert diagnose(many, C=C, causal=False).status == "healthy"
    patient = Patient("no scale", C, N_HEAD, causal=False)
    assert diagnose(patient, C=C, causal=False).illnesses == ("no scale",)
    block = diagnose(Block(C, N_HEAD), C=C, n_head=N_HEAD, causal=False)
    assert (block.status, block.illnesses) == ("ill", ("masked",))


def test_an_ill_attention_is_found_inside_a_block():
    block = Block(C, N_HEAD)
    block.attention = Written(**TABLE["softmax over the queries"])
    report = diagnose(block, C=C, n_head=N_HEAD)
    assert report.illnesses == ("softmax over the queries",)
    assert "(In attention.)" in report.findings[0].evidence


def test_two_mistakes_at_once_are_both_named():
    """The head of a source lecture: softmax over the readers, and no root."""
    wrong = {**TABLE["softmax over the queries"], **TABLE["no scale"]}
    report = diagnose(Written(1, 5, **wrong), C=C)
    assert report.recognised
    assert set(report.illnesses) == {"softmax over the queries", "no scale"}


def test_all_pairs_that_are_not_one_mistake_are_told_apart():
    """Each pair's numbers differ from those of every other pair and of every single mistake."""
    generator = torch.Generator().manual_seed(1)
    x, q, k, v = (torch.randn(2, 7, C, generator=generator) for _ in range(4))
    seen = [(one.name, one.compute(q, k, v)[0]) for one in illnesses_of(x, N_HEAD)]
    swallowing = {"scores thrown away", "0 times infinity"}  # what else is wrong does not show
    scales = {name for name in TABLE if "root" in name or "scale" in name}
    for one, other, both in pairs_of(x, N_HEAD):
        names = {one.name, other.name}
        values = {"keys in the place of values", "x is mixed instead of v"}
        if names & swallowing or len(names & scales) > 1 or names == values:
            continue
        if names == {"divided by the root of C", "one large head"}:
            continue
        seen.append((" + ".join(sorted(names)), both(q, k, v)[0]))
    names, outs = zip(*seen, strict=True)
    flat = torch.stack(outs).flatten(1).nan_to_num(nan=1e3)
    same = torch.cdist(flat, flat, p=torch.inf) < 1e-5
    for i, j in same.triu(1).nonzero().tolist():
        assert names[i] == names[j], f"{names[i]} = {names[j]}"


def test_right_attention_that_nobody_listens_to_is_found_out():
    block = Block(C, N_HEAD)
    block.forward = lambda x: x + block.feed_forward(x + 0 * block.attention(x))
    report = diagnose(block, C=C, n_head=N_HEAD)
    failed = {finding.name for finding in report.findings if not finding.ok}
    assert failed == {"reach", "gradients reach"}


def test_an_unknown_mistake_is_ill_without_a_name():
    report = diagnose(Written(weigh=lambda s: masked(s * s).softmax(-1)), C=C, n_head=N_HEAD)
    assert report.status == "ill" and not report.recognised
    failed = {finding.name for finding in report.findings if not finding.ok}
    assert failed == {"equals the reference"}
    assert "no scale" in report.illnesses, "it fits, by its probes"


def test_a_mistake_around_right_attention_is_placed_there():
    block = Block(C, N_HEAD)
    block.forward = lambda x: x.mean(1, keepdim=True) + block.attention(x)
    told = str(diagnose(block, C=C, n_head=N_HEAD))
    assert told.startswith("ILL: failed no leak. No known illness fits. The attention in it is ri")


# ---------------------------------------------------------------- bare functions


def test_a_bare_function_is_incomplete_and_says_what_was_not_checked():
    many = MultiHeadAttention(C, N_HEAD)
    report = diagnose(lambda x: many(x), C=C, n_head=N_HEAD)
    assert report.status == "incomplete" and not report.illnesses
    unseen = ["rows sum to 1", "no weight on the future", "gradients reach", "equals the reference"]
    assert list(report.not_checked) == unseen
    told = " ".join(str(report).split())
    assert told.startswith(f"INCOMPLETE: no illness found; not checked: {', '.join(unseen)}")
    assert max(map(len, str(report).splitlines())) <= 80
    assert "it shows no weights" in report.not_checked["rows sum to 1"]
    with_weights = diagnose(lambda x: many(x, return_weights=True), C=C, n_head=N_HEAD)
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
    "no scale": "✓✓✓✓✓",
    "divided by the root of C": "✓✓✓✓✓",
    "multiplied by the root": "✓✓✓✓✓",
    "queries and keys swapped": "✓✓✓✓✓",
    "keys in the place of values": "✓✓✓✓✓",
    "weights transposed": "✓✓✓✗✓",
    "split by view, without transpose": "✓✓✓✗✗",
    "merged by view, without transpose": "✓✓✓✗✗",
    "split and merged by view": "✓✓✓✓✗",
}


def signs(report):
    found = {finding.name: "✗✓"[finding.ok] for finding in report.findings}
    return "".join(found.get(name, "–") for name in PROBES)


@pytest.mark.parametrize("name", PATTERNS)
def test_probes_see_of_a_bare_function_what_the_table_says(name):
    patient = Patient(name, C, N_HEAD)
    report = diagnose(lambda x: patient(x, return_weights=True), C=C, n_head=N_HEAD)
    assert signs(report) == PATTERNS[name]
    same = {other for other in PATTERNS if PATTERNS[other] == PATTERNS[name]}
    if "✗" in PATTERNS[name]:
        assert report.status == "ill" and not report.recognised
        assert set(report.illnesses) & PATTERNS.keys() == same
        assert f"This fits: {'; '.join(report.illnesses)}." in " ".join(str(report).split())
    else:
        assert (report.status, report.illnesses) == ("incomplete", ())
    out_only = diagnose(lambda x: patient(x), C=C, n_head=N_HEAD)
    assert set(report.illnesses) <= set(out_only.illnesses)


def test_dropout_in_a_bare_function_is_named():
    many = MultiHeadAttention(C, N_HEAD, dropout=0.5).train()
    report = diagnose(lambda x: many(x), C=C, n_head=N_HEAD)
    assert (report.status, report.illnesses) == ("ill", ("dropout left on",))


@pytest.mark.parametrize("inner", ["ours", "PyTorch's", "block"])
def test_a_zero_projection_hides_gradients_and_is_not_ill(inner):
    module = {
        "ours": lambda: MultiHeadAttention(C, N_HEAD),
        "PyTorch's": lambda: nn.MultiheadAttention(C, N_HEAD),
        "block": lambda: Block(C, N_HEAD),
    }[inner]()
    for name, parameter in module.named_parameters():
        if name.endswith(("proj.weight", "out_proj.weight")) and "in_proj" not in name:
            nn.init.zeros_(parameter)
    report = diagnose(module, C=C, n_head=N_HEAD)
    assert report.status == "incomplete", report
    assert list(report.not_checked) == ["no leak", "reach", "gradients reach"]
    assert "projection is zero throughout" in report.not_checked["gradients reach"]


def test_weights_name_an_illness_that_a_zero_projection_hides():
    class Unscaled(nn.MultiheadAttention):
        def forward(
            self, query, key, value, need_weights=True, attn_mask=None, average_attn_weights=True
        ):
            how = {"attn_mask": attn_mask, "average_attn_weights": average_attn_weights}
            out, weights = super().forward(query, key, value, **how)
            return out, (weights.log() * self.head_dim**0.5).softmax(-1)

    unscaled = Unscaled(C, N_HEAD)
    assert not diagnose(unscaled, C=C).recognised, "weights and outputs contradict each other"
    nn.init.zeros_(unscaled.out_proj.weight)
    report = diagnose(unscaled, C=C)
    assert (report.recognised, report.illnesses) == (True, ("no scale",))


def test_sharp_scores_are_not_deafness():
    report = diagnose(MultiHeadAttention(C, N_HEAD), C=C, example=300 * torch.randn(1, 5, C))
    assert report.status == "incomplete"
    assert "right weights are below 0.000001" in report.not_checked["reach"]
    assert "passes no gradient" in report.not_checked["gradients reach"]


def test_what_cannot_be_looked_into_is_said():
    class Crossed(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            out = self.inner(
                x, x + 1, x, need_weights=False, attn_mask=torch.ones(8, 8).triu(1) > 0
            )
            return out[0]

    report = diagnose(Crossed(nn.MultiheadAttention(C, N_HEAD, batch_first=True)), C=C)
    assert report.status == "incomplete"
    assert "come from different inputs" in report.not_checked["equals the reference"]
    assert "hand over the module" in diagnose(nn.Linear(C, C), C=C).not_checked["gradients reach"]


# ---------------------------------------------------------------- the report


def test_the_guilty_cells_are_outlined():
    report = diagnose(Patient("future filled with 0", C, N_HEAD), C=C)
    outlined = report.picture.decided.outline
    assert (0, 7) in outlined and (7, 7) not in outlined, "the last row hides nothing"
    bundle = report._repr_mimebundle_()
    assert (
        bundle["text/plain"].startswith(str(report)) and "outlined: row 0" in bundle["text/plain"]
    )
    assert "<table" in bundle["text/html"] and "future filled with 0" in bundle["text/html"]
    healthy = diagnose(MultiHeadAttention(C, N_HEAD), C=C)
    assert not healthy.picture.decided.outline
    deaf = diagnose(Patient("split and merged by view", C, N_HEAD), C=C)
    assert "hears" in str(deaf.picture) and deaf.picture.decided.outline
    function = Patient("no mask", C, N_HEAD)
    bare = diagnose(lambda x: function(x, return_weights=True), C=C, n_head=N_HEAD)
    T = len(bare.picture.decided.values)
    assert set(bare.picture.decided.outline) == {(t, j) for t in range(T) for j in range(t + 1, T)}
    function = Patient("masked after the softmax", C, N_HEAD)
    bare = diagnose(lambda x: function(x, return_weights=True), C=C, n_head=N_HEAD)
    rows = {(t, j) for t in range(T - 1) for j in range(t + 1)}
    assert set(bare.picture.decided.outline) == rows, "all but the last row sum to less than 1"


def test_without_weights_and_trouble_there_is_no_picture():
    report = diagnose(lambda x: x.cumsum(1), C=C)
    assert report.picture is None and report._repr_mimebundle_() == {"text/plain": str(report)}


BAD_INPUT = [
    (lambda: diagnose(Head, C=C), TypeError, "got the class Head"),
    (lambda: diagnose(torch.ones(2), C=C), TypeError, r"got a tensor of shape \(2,\)"),
    (lambda: diagnose(lambda x: None, C=C), TypeError, "Expected out .* got NoneType"),
    (lambda: diagnose(Head(C, 4), C=0), ValueError, "C must be a whole number"),
    (lambda: diagnose(Block(C, 3), C=C, n_head=2.0), ValueError, "n_head must be a whole number"),
    (lambda: diagnose(MultiHeadAttention(C, 3), C=C, n_head=4), ValueError, "has 3 heads.* = 4"),
    (lambda: diagnose(Head(C, 4), C=C, example=torch.ones(2, 1, C)), ValueError, "T of at least 2"),
    (lambda: diagnose(Head(C, 4), C=C, example=torch.ones(2, 4, 5)), ValueError, "C = 12.*4, 5"),
    (lambda: diagnose(Head(C, 4), C=C, example=[1.0]), TypeError, "tensor of floats, got list"),
]


@pytest.mark.parametrize(("call", "error", "match"), BAD_INPUT)
def test_bad_input_is_refused_in_words(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_a_wrong_shape_ends_the_examination():
    report = diagnose(lambda x: x.mean(1), C=C)
    assert [finding.name for finding in report.findings] == ["shape"] and report.status == "ill"
    assert "out (3, 12); expected out (3, 8, 12)" in report.findings[0].evidence
