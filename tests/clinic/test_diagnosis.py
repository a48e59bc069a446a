"""`diagnose` names every known mistake, written here as people write it, and trusts the healthy."""

import re

import pytest
import torch
from torch import nn

from helpers.attention import Block, FeedForward, Head, MultiHeadAttention, causal_mask
from helpers.clinic.bugs import MISWIRINGS, Patient, illnesses_of, miswired, pairs_of, wired
from helpers.clinic.diagnosis import diagnose

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
    "mask not inverted": {"weigh": lambda s: s.masked_fill(tril(s) == 1, -INF).softmax(-1)},
    "mask one too far": {"weigh": lambda s: masked(s, diagonal=1).softmax(-1)},
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


def zero_projections(module, *names):
    for name, parameter in module.named_parameters():
        if name.endswith(names):
            nn.init.zeros_(parameter)
    return module


def with_theirs(block):
    def forward(x):
        z, mask = block.norm_1(x), ~causal_mask(x.shape[1])
        x = x + block.attention(z, z, z, attn_mask=mask, need_weights=False)[0]
        return x + block.feed_forward(block.norm_2(x))

    block.attention = nn.MultiheadAttention(C, N_HEAD, batch_first=True)
    block.forward = forward
    return block


HEALTHY = {
    "head": lambda: Head(C, 5),
    "many heads": lambda: MultiHeadAttention(C, N_HEAD),
    "fused": lambda: MultiHeadAttention(C, N_HEAD, fused=True),
    "with dropout, in training": lambda: MultiHeadAttention(C, N_HEAD, dropout=0.5).train(),
    "frozen, in double precision": lambda: MultiHeadAttention(C, N_HEAD).double().eval(),
    "block": lambda: Block(C, N_HEAD),
    "post-norm block": lambda: Block(C, N_HEAD, norm="post"),
    "block with new weights of 0": lambda: zero_projections(Block(C, N_HEAD), "wide.weight"),
    "two blocks": lambda: nn.Sequential(Block(C, N_HEAD), Block(C, N_HEAD, norm="post")),
    "block with PyTorch's": lambda: with_theirs(Block(C, N_HEAD)),
    "list of heads": list_of_heads,
    "wrapped": lambda: nn.Sequential(MultiHeadAttention(C, N_HEAD), nn.Dropout(0.5)),
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
    probes = 11 if any(isinstance(part, Block) for part in module.modules()) else 10
    assert str(report).startswith(f"HEALTHY: all {probes} probes ran and passed.")
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
    named = {"no attention", "no norms"}
    assert failed == {"reach", "gradients reach", "roads and norms"} | named
    assert set(report.illnesses) == named


def test_an_unknown_mistake_is_ill_without_a_name():
    report = diagnose(Written(weigh=lambda s: masked(s * s).softmax(-1)), C=C, n_head=N_HEAD)
    assert report.status == "ill" and not report.recognised
    failed = {finding.name for finding in report.findings if not finding.ok}
    assert failed == {"equals the reference"}
    assert not report.illnesses, "all were computed from q, k and v, and none was it"
    told = "what is made of the weights is wrong, but in no way that I know.\n"
    assert told in str(report).replace("\n  ", " ")


class Showing(MultiHeadAttention):
    """Right but for what `wrong` makes of its output and weights, which it shows."""

    def __init__(self, wrong):
        super().__init__(C, N_HEAD)
        self.wrong = wrong

    def forward(self, x, *, return_weights=False):
        out, weights = self.wrong(*super().forward(x, return_weights=True))
        return (out, weights) if return_weights else out


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda out, weights: (out * 2, weights), "The weights are right; what is made of them"),
        (lambda out, weights: (out, weights**2), "The scores or the mask are wrong, but in no way"),
    ],
    ids=["output", "weights"],
)
def test_weights_that_are_shown_say_on_which_side_of_them_it_went_wrong(wrong, told):
    report = diagnose(Showing(wrong), C=C)
    assert (report.status, report.illnesses) == ("ill", ())
    assert told in " ".join(str(report).split())


@pytest.mark.parametrize("causal", [True, False])
def test_it_is_said_that_theirs_was_given_a_mask(causal):
    told = " ".join(str(diagnose(nn.MultiheadAttention(C, N_HEAD), C=C, causal=causal)).split())
    assert told.count("attn_mask=~causal_mask(T); without a mask of yours") == causal
    assert "attn_mask" not in str(diagnose(MultiHeadAttention(C, N_HEAD), C=C))


def test_a_mistake_around_right_attention_is_placed_there():
    block = Block(C, N_HEAD)
    block.forward = lambda x: x.mean(1, keepdim=True) + block.attention(x)
    told = " ".join(str(diagnose(block, C=C, n_head=N_HEAD)).split())
    assert told.startswith("ILL: failed no leak, roads and norms. No known illness fits. The atten")
    assert "none of the known ways of going wrong gives the same" in told


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
    "mask not inverted": "✗✗–––",
    "mask one too far": "✓✓✗✗✓",
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
        assert f"It could be: {'; '.join(report.illnesses)}." in " ".join(str(report).split())
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
    zero_projections(module, "out_proj.weight" if inner == "PyTorch's" else "proj.weight")
    report = diagnose(module, C=C, n_head=N_HEAD)
    assert report.status == "incomplete", report
    unseen = ["no leak", "reach", "sequences stay apart", "gradients reach"]
    assert list(report.not_checked) == unseen
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
    linear = diagnose(nn.Linear(C, C), C=C).not_checked
    assert "Linear layers called query, key and value" in linear["gradients reach"]
    assert "return (out, weights)" in linear["rows sum to 1"]
    bare = diagnose(lambda x: x, C=C).not_checked
    assert "hand over the module" in bare["gradients reach"]


class Fused(nn.Module):
    """One Linear layer for queries, keys and values, and PyTorch's function."""

    def __init__(self, causal=True):
        super().__init__()
        self.qkv, self.causal = nn.Linear(C, 3 * C), causal

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)


def test_one_layer_for_all_three_is_told_what_is_looked_for():
    report = diagnose(Fused(), C=C)
    assert report.status == "incomplete"
    assert (
        "rename yours, or split one that makes all three" in report.not_checked["gradients reach"]
    )


def test_of_several_illnesses_that_fit_the_likeliest_comes_first():
    report = diagnose(Fused(causal=False), C=C, n_head=N_HEAD)
    assert len(report.illnesses) > 4 and report.illnesses[0] == "no mask"
    assert "It could be: no mask; future filled with 0; " in " ".join(str(report).split())


class Wrapped(nn.Module):
    """PyTorch's attention, made without batch_first=True."""

    def __init__(self, masked):
        super().__init__()
        self.inner, self.masked = nn.MultiheadAttention(C, N_HEAD), masked

    def forward(self, x):
        mask = ~causal_mask(x.shape[1]) if self.masked else None
        return self.inner(x, x, x, attn_mask=mask)[0]


def test_sequences_that_are_taken_for_tokens_are_noticed():
    report = diagnose(Wrapped(False), C=C, causal=False)
    failed = {finding.name for finding in report.findings if not finding.ok}
    assert failed == {"reach", "sequences stay apart"}
    assert "Make it with batch_first=True" in report.not_checked["equals the reference"]
    assert "mixes no tokens" not in str(report), "it mixes sequences"


def test_a_mean_over_the_batch_is_noticed():
    many = MultiHeadAttention(C, N_HEAD)
    report = diagnose(lambda x: many(x) + x.mean(0), C=C, n_head=N_HEAD)
    assert (report.status, report.illnesses) == ("ill", ())
    assert str(report).startswith("ILL: failed sequences stay apart. No known illness fits.")
    lone = diagnose(lambda x: many(x) + x.mean(0), C=C, example=torch.randn(1, 5, C))
    assert str(lone).startswith("ILL: failed sequences stay apart.")


@pytest.mark.parametrize("n_head", [1, N_HEAD])
def test_what_mixes_no_tokens_is_asked_whether_it_is_an_attention(n_head):
    told = " ".join(str(diagnose(FeedForward(C), C=C, n_head=n_head)).split())
    assert told.startswith(
        "ILL: failed reach. No known illness fits. It mixes no tokens at all: is it an attention?"
    )


# ---------------------------------------------------------------- blocks


def rewired(put_together, norm="pre"):
    """A block whose author wrote another forward."""

    class Theirs(Block):
        def forward(self, x):
            return put_together(self, x)

    return Theirs(C, N_HEAD, norm)


def no_road_post(b, x):
    x = b.norm_1(b.attention(x))
    return b.norm_2(b.feed_forward(x))


def no_first_road(b, x):
    x = b.attention(b.norm_1(x))
    return x + b.feed_forward(b.norm_2(x))


def no_second_road(b, x):
    x = x + b.attention(b.norm_1(x))
    return b.feed_forward(b.norm_2(x))


def norm_2_twice(b, x):
    x = b.norm_2(x + b.attention(x))
    return b.norm_2(x + b.feed_forward(x))


def norms_swapped(b, x):
    x = x + b.attention(b.norm_2(x))
    return x + b.feed_forward(b.norm_1(x))


def no_norms(b, x):
    x = x + b.attention(x)
    return x + b.feed_forward(x)


def no_norm_2(b, x):
    x = x + b.attention(b.norm_1(x))
    return x + b.feed_forward(x)


def norm_on_the_road(b, x):
    x = b.norm_1(x)
    x = x + b.attention(x)
    x = b.norm_2(x)
    return x + b.feed_forward(x)


def norm_behind(b, x):
    x = x + b.norm_1(b.attention(x))
    return x + b.norm_2(b.feed_forward(x))


def thinks_first(b, x):
    x = x + b.feed_forward(b.norm_2(x))
    return x + b.attention(b.norm_1(x))


BLOCKS = {
    "no road": lambda b, x: b.feed_forward(b.norm_2(b.attention(b.norm_1(x)))),
    "no road, post": no_road_post,
    "no road round the attention": no_first_road,
    "no road round the feed-forward": no_second_road,
    "one norm for both": lambda b, x: (
        (x := x + b.attention(b.norm_1(x))) + b.feed_forward(b.norm_1(x))
    ),
    "one norm for both, post": norm_2_twice,
    "norms swapped": norms_swapped,
    "no norms": no_norms,
    "no norm for the attention": lambda b, x: (
        (x := x + b.attention(x)) + b.feed_forward(b.norm_2(x))
    ),
    "no norm for the feed-forward": no_norm_2,
    "norm on the road": norm_on_the_road,
    "norm behind the branch": norm_behind,
    "no attention": lambda b, x: x + b.feed_forward(b.norm_2(x)),
    "no feed-forward": lambda b, x: x + b.attention(b.norm_1(x)),
    "thinks before it talks": thinks_first,
    "side by side": lambda b, x: x + b.attention(b.norm_1(x)) + b.feed_forward(b.norm_2(x)),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_put_together_wrongly_is_named(name):
    report = diagnose(rewired(BLOCKS[name]), C=C, n_head=N_HEAD)
    assert (report.status, report.recognised) == ("ill", True)
    assert report.illnesses == (name.removesuffix(", post"),)
    assert "✗ roads and norms: its parts" in str(report) and re.search(r"up to \d", str(report))


def test_every_known_miswiring_is_tried():
    assert {one.name for one in MISWIRINGS} == {name.removesuffix(", post") for name in BLOCKS}
    assert all(one.message.endswith(".") for one in MISWIRINGS)


def test_no_miswiring_is_right_or_another_one():
    generator = torch.Generator().manual_seed(0)
    block = Block(C, N_HEAD).requires_grad_(False)
    for norm in (block.norm_1, block.norm_2):
        norm.weight.uniform_(0.5, 2, generator=generator)
        norm.bias.uniform_(0.5, 2, generator=generator)
    x = torch.randn(3, 8, C, generator=generator)
    parts = (block.attention, block.feed_forward, block.norm_1, block.norm_2)
    torch.testing.assert_close(wired(x, *parts), block(x))
    block.norm = "post"
    torch.testing.assert_close(wired(x, *parts, joint="post"), block(x))
    seen = [({"pre"}, wired(x, *parts)), ({"post"}, wired(x, *parts, joint="post"))]
    singles = [some for some in miswired() if len(some[0]) == 1]
    for (one,), how in singles:
        out = wired(x, *parts, **how)
        same = [name for name, other in seen if torch.allclose(out, other, rtol=0, atol=1e-4)]
        assert all(name == {one.name} for name in same), f"{one.name} = {same}"
        seen.append(({one.name}, out))


def test_two_mistakes_in_one_block_are_both_named():
    bare = rewired(lambda b, x: b.feed_forward(b.attention(x)))
    assert set(diagnose(bare, C=C).illnesses) == {"no road", "no norms"}
    block = rewired(no_first_road)
    block.attention = Patient("no scale", C, N_HEAD)
    assert diagnose(block, C=C).illnesses == ("no scale", "no road round the attention")


def test_a_norm_that_two_branches_share_is_noticed():
    block = Block(C, N_HEAD)
    block.norm_2 = norm = block.norm_1
    assert diagnose(block, C=C).illnesses == ("one norm for both",)
    assert (norm.weight == 1).all() and (norm.bias == 0).all(), "left as it was"


def test_other_ways_to_put_a_block_together_are_none_of_the_known():
    def pre_and_post(b, x):
        x = x + b.attention(b.norm_1(x))
        return b.norm_2(x + b.feed_forward(x))

    report = diagnose(rewired(pre_and_post), C=C)
    assert (report.status, report.illnesses) == ("ill", ())
    told = " ".join(str(report).split())
    assert (
        "ILL: failed roads and norms. No known illness fits. The attention in it is right" in told
    )
    assert "none of the known ways" in told


def test_the_wrong_one_of_several_blocks_is_named_by_its_place():
    stack = nn.Sequential(Block(C, N_HEAD), rewired(BLOCKS["no road"]), Block(C, N_HEAD))
    report = diagnose(stack, C=C)
    assert report.illnesses == ("no road",)
    assert report.findings[0].evidence.endswith("(In 1.)")


def test_a_block_with_other_names_is_not_called_healthy():
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.sa, self.ln = MultiHeadAttention(C, N_HEAD), nn.LayerNorm(C)

        def forward(self, x):
            return self.sa(self.ln(x))

    report = diagnose(Other(), C=C)
    assert (report.status, list(report.not_checked)) == ("incomplete", ["roads and norms"])
    assert "attention, feed_forward, norm_1 and norm_2" in report.not_checked["roads and norms"]


@pytest.mark.parametrize(
    ("attention", "why"),
    [
        (Written(**TABLE["0 times infinity"]), "nan"),
        (Written(**TABLE["dropout left on"]), "differ"),
    ],
    ids=["nan", "dropout"],
)
def test_roads_round_an_attention_without_an_answer_are_not_judged(attention, why):
    block = Block(C, N_HEAD)
    block.attention = attention
    assert why in diagnose(block, C=C, n_head=N_HEAD).not_checked["roads and norms"]


def test_parts_that_cannot_be_called_alone_are_not_judged():
    class Two(FeedForward):
        def forward(self, x, y):
            return super().forward(x + y)

    block = rewired(lambda b, x: x + b.feed_forward(b.attention(b.norm_1(x)), x))
    block.feed_forward = Two(C)
    why = diagnose(block, C=C).not_checked["roads and norms"]
    assert why.startswith("its parts cannot be called one by one: ")


def test_changes_in_place_are_no_two_runs_that_differ():
    def once(b, x):
        x += b.attention(b.norm_1(x))
        return x + b.feed_forward(b.norm_2(x))

    def twice(b, x):
        x = once(b, x)
        x += b.norm_2(x)
        return x

    assert diagnose(rewired(once), C=C).status == "healthy"
    assert "write x = x + …, not x += …" in " ".join(str(diagnose(rewired(twice), C=C)).split())


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
    (lambda: diagnose(Wrapped(True), C=C), ValueError, "^inner, .* batch_first=False .*=True"),
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
