"""Each probe sees its own mistakes, says where and how much, and passes what is right."""

import math

import pytest
import torch

from attention_clinic.probes import (
    Finding,
    finite,
    gradients_reach,
    matches_reference,
    no_leak,
    no_weight_on_future,
    reach,
    rows_sum_to_one,
    same_for_prefix,
    sequences_stay_apart,
)
from helpers.attention import Block, MultiHeadAttention, attention, causal_mask
from tests.told import Told

T = 8
MASK = causal_mask(T)
x = torch.randn(4, T, 3, generator=torch.Generator().manual_seed(5))
scores = x @ x.mT / math.sqrt(3)  # (4, T, T)
masked = scores.masked_fill(~MASK, -math.inf)
good = masked.softmax(-1)


def words(finding):
    """What a finding says, wherever its lines break."""
    return " ".join(str(finding).split())


def test_a_finding_reads_as_a_sentence():
    assert str(Finding("finite", True, "all 4.")) == "✓ finite: all 4."
    assert repr(Finding("finite", False, "2 of 4.")) == "✗ finite: 2 of 4."


def test_a_long_finding_breaks_between_words():
    evidence = "7 of the 7 tokens tried reach back. " * 4
    lines = str(Finding("no leak", False, evidence)).splitlines()
    assert len(lines) == 2 and all(len(line) <= 80 for line in lines)
    assert lines[1].startswith("  ") and not lines[1].startswith("   ")
    assert words(Finding("no leak", False, evidence)) == f"✗ no leak: {evidence}".strip()
    exact = "✓ finite: " + "x" * 70
    assert str(Finding("finite", True, "x" * 70)) == exact


@pytest.mark.parametrize(
    "weights", [good, good[0], good[:, None].expand(4, 2, T, T), masked[:, -1:].softmax(-1)]
)
def test_healthy_weights_pass(weights):
    findings = finite(weights), rows_sum_to_one(weights), no_weight_on_future(weights)
    assert all(finding.ok for finding in findings), findings


def test_finite_counts_kinds_and_names_the_first():
    values = torch.tensor([[0.0, math.inf], [math.nan, -math.inf]])
    told = words(finite(values))
    assert told.startswith("✗ finite: 1 of 4 numbers is nan, 1 is inf, 1 is -inf")
    assert "first is at [0, 1]" in told


def test_finite_tells_masked_rows_from_nan_everywhere():
    diagonal_masked = scores.masked_fill(~MASK.tril(-1), -math.inf).softmax(-1)
    assert "Row 0 of every matrix is nan throughout" in words(finite(diagonal_masked))
    zero_times_inf = (scores + (1 - MASK.float()) * -math.inf).softmax(-1)
    assert "Everything is nan" in words(finite(zero_times_inf))


def test_row_sums_are_grouped_and_a_wrong_axis_is_guessed():
    near = (torch.arange(T)[:, None] - torch.arange(T)).abs() <= 1
    told = words(rows_sum_to_one(near / near.sum(0, keepdim=True)))
    assert "✗ rows sum to 1: rows 0 and 7 sum to 0.83, rows 1 and 6 to 1.17 —" in told
    assert "Columns sum to 1 here" in told


def test_many_row_sums_are_told_by_their_extremes():
    weights = masked.softmax(1)
    sums = weights.sum(-1)
    told = words(rows_sum_to_one(weights))
    assert f"{4 * T} of {4 * T} rows do not" in told and "Columns sum to 1" in told
    assert f"lowest sum is {sums.min():.2f}" in told
    assert f"highest sum is {sums.max():.2f}" in told


GUESSES = [
    (scores[:, None].expand(4, 2, T, T).softmax(1), "taken over that axis?"),
    (scores.softmax(-1) * MASK, "was the mask put on after the softmax?"),
    (MASK.float(), "was the division by the row sum left out?"),
    (good * 0.5, ""),
    (scores.softmax(-1) * 0.9, ""),
]


@pytest.mark.parametrize(("weights", "guess"), GUESSES)
def test_row_sums_guess_the_cause_only_where_it_shows(weights, guess, snapshot):
    finding = rows_sum_to_one(weights)
    assert words(finding) == snapshot.use_extension(Told)
    assert not finding.ok
    assert finding.evidence.endswith(guess or "only if its row sums to 1.")


def test_rows_that_differ_between_matrices_are_named_one_by_one():
    weights = torch.eye(3).expand(2, 3, 3).clone()
    weights[0, 1] *= 0.5
    weights[1, 2] *= 0.5
    assert "row 1 of matrix [0], row 2 of matrix [1] sum to 0.50" in words(rows_sum_to_one(weights))


def test_a_sum_just_off_1_does_not_read_as_1():
    assert "sums to 1 + 3e-05" in words(rows_sum_to_one([[0.50003, 0.5], [1.0, 0.0]]))


FUTURES = [
    (scores.masked_fill(~MASK, 0).softmax(-1), "filled with 0 instead of -inf?"),
    (scores.masked_fill(~MASK.mT, -math.inf).softmax(-1), "inverted, or triu used for tril?"),
    (scores.masked_fill(~MASK.tril(-1), -1e9).softmax(-1), "was the diagonal masked too?"),
    (scores.softmax(-1), ""),
    (torch.full((T, T), 1 / T), ""),
]


@pytest.mark.parametrize(("weights", "guess"), FUTURES)
def test_weight_on_the_future_is_found_and_its_cause_guessed(weights, guess, snapshot):
    finding = no_weight_on_future(weights)
    assert words(finding) == snapshot.use_extension(Told)
    assert not finding.ok
    assert finding.evidence.endswith(guess or ".")


def test_the_largest_weight_on_the_future_is_named():
    weights = torch.eye(4).expand(2, 4, 4).clone()
    weights[1, 2] = torch.tensor([0.0, 0.0, 0.75, 0.25])
    told = words(no_weight_on_future(weights))
    assert "1 of 12 weights on later keys is not 0" in told
    assert "the largest is 0.25: query 2 attends to key 3 of matrix [1]" in told
    assert "but nan" in words(no_weight_on_future(masked.softmax(0)))
    assert no_weight_on_future(torch.eye(2)).evidence == "the only weight on a later key is 0."
    assert no_weight_on_future(torch.eye(1)).evidence == "no query has a later key."


def self_attention(weigh):
    """With a mask that is cut to the tokens that came."""
    return lambda x: weigh(x @ x.mT, MASK[: x.shape[-2], : x.shape[-2]]) @ x


CHEATS = {
    "no mask": lambda s, m: s.softmax(-1),
    "wrong axis": lambda s, m: s.masked_fill(~m, -math.inf).softmax(-2).nan_to_num(),
    "filled with 0": lambda s, m: s.masked_fill(~m, 0).softmax(-1),
    "after the softmax": lambda s, m: s.softmax(-1) * m,
    "transposed": lambda s, m: s.masked_fill(~m, -math.inf).softmax(-1).mT,
}


def test_only_a_probe_that_passed_counts_as_true():
    assert no_leak(self_attention(lambda s, m: s.masked_fill(~m, -math.inf).softmax(-1)), x)
    assert not no_leak(self_attention(CHEATS["no mask"]), x)
    untold = same_for_prefix(lambda x: attention(x, x, x, causal_mask(T - 1))[0], x[:, :-1])
    assert (untold.ok, bool(untold)) == (None, False)


@pytest.mark.parametrize("weigh", CHEATS.values(), ids=CHEATS.keys())
@pytest.mark.parametrize("x", [x, x[0]], ids=["(B, T, C)", "(T, C)"])
def test_what_looks_ahead_leaks_and_is_not_the_same_for_a_prefix(weigh, x, snapshot):
    leak, finding = (probe(self_attention(weigh), x) for probe in (no_leak, same_for_prefix))
    assert (leak.ok, finding.ok) == (False, False)
    assert f"{words(leak)}\n{words(finding)}" == snapshot.use_extension(Told)


@pytest.mark.parametrize("x", [x, x[0], x[:, :, :1], x + 100], ids=lambda x: str(tuple(x.shape)))
def test_sound_functions_do_not_leak(x):
    assert no_leak(lambda x: attention(x, x, x, MASK), x).ok
    assert no_leak(lambda x: x.cumsum(-2), x).ok
    assert no_leak(torch.nn.Dropout(0.5), x).ok, "dropout must not read as a leak"


def test_a_leak_says_which_token_moved_which_outputs():
    def peek(x):  # output 2 reads token 5, and nothing else leaks
        out = x.clone()
        out[:, 2] = x[:, 5]
        return out

    told = words(no_leak(peek, x))
    assert "changing token 5 changed output 2, by up to " in told
    assert told.endswith("1 of the 7 tokens tried reaches back.")
    assert "changed outputs 0 to " in words(no_leak(lambda x: x.flip(1).cumsum(1).flip(1), x))


def test_of_two_tokens_one_is_replaced():
    told = words(no_leak(lambda x: x.cumsum(1), x[:, :2]))
    assert told == "✓ no leak: token 1 was replaced; output 0 did not change."


def test_a_leak_through_nan_outputs_cannot_be_told():
    told = words(no_leak(lambda x: masked.softmax(0) @ x, x))
    assert "cannot be told: outputs 0 to 6 are nan or inf" in told


def test_a_constant_input_hides_no_leak():
    assert not no_leak(lambda x: x.mean(1, keepdim=True).expand_as(x), torch.zeros(1, 4, 2)).ok


def view_in_both(x):
    heads = x.view(*x.shape[:-2], 3, x.shape[-2], 1)
    return attention(heads, heads, heads, causal_mask(x.shape[-2]))[0].contiguous().view(x.shape)


class Normed(torch.nn.Module):
    """A norm, right attention, and three kinds of dropout."""

    def __init__(self, norm, C=3):
        super().__init__()
        self.norm, self.attention = norm, MultiHeadAttention(C, 1, fused=True, dropout=0.4)
        self.pytorchs = torch.nn.MultiheadAttention(C, 1, dropout=0.4, batch_first=True)
        self.dropout = torch.nn.Dropout1d(0.4)

    def forward(self, x):
        x = self.norm(x)
        mask = ~causal_mask(x.shape[1])
        x = x + self.attention(x) + self.pytorchs(x, x, x, attn_mask=mask)[0]
        return torch.nn.functional.dropout(self.dropout(x), training=self.training)


class OverTime(torch.nn.BatchNorm1d):
    def __init__(self, C):
        super().__init__(C)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls = self.calls + self.training  # another tensor
        return super().forward(x.mT).mT


class Rounded(torch.nn.Module):
    """Takes and gives float32; its rounding depends on the number of tokens."""

    def __init__(self, dtype):
        super().__init__()
        self.one = torch.nn.Parameter(torch.ones((), dtype=dtype))

    def forward(self, x):
        z = x.to(self.one.dtype)
        up = torch.rand(z.shape, generator=torch.Generator().manual_seed(x.shape[-2])) < 0.3
        for _ in range(4 if z.dtype == torch.float16 else 1):  # as in several layers
            z = torch.where(up, z.nextafter(torch.full_like(z, math.inf)), z)
        return z.to(x.dtype)


@pytest.mark.parametrize("x", [x, x[0]], ids=["(B, T, C)", "(T, C)"])
def test_view_in_both_which_leaks_nothing_is_not_the_same_for_a_prefix(x):
    assert no_leak(view_in_both, x).ok
    told = words(same_for_prefix(view_in_both, x))
    assert told.startswith("✗ same for a prefix: output ") and " alone differs from " in told
    assert "it depends on how many tokens there are. 6 of the 7 prefixes tried differ." in told


def test_a_prefix_that_differs_says_which_output_and_by_how_much():
    def counts(x):  # output 2 knows how many tokens there are
        out = x.clone()
        out[:, 2:3] += 0.25 * (x.shape[1] - 3)
        return out

    told = words(same_for_prefix(counts, x))
    assert "output 2 of the first 3 tokens alone differs from output 2 of all 8, by up to " in told
    assert "by up to 1.25: it depends on how many tokens there are." in told
    assert told.endswith(" 1 of the 7 prefixes tried differs.")
    norm = same_for_prefix(lambda x: torch.nn.functional.layer_norm(x, x.shape[-2:]), x)
    assert norm.ok is False and "tokens after it" in norm.evidence


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_sound_modules_are_the_same_for_a_prefix(dtype):
    C = 12
    x = torch.randn(2, T, C, generator=torch.Generator().manual_seed(0)).to(dtype)
    for module in (MultiHeadAttention(C, 3), Block(C, 3), Block(C, 3, "post", rotary=True)):
        assert same_for_prefix(module.to(dtype), x).ok
        assert same_for_prefix(lambda x, module=module: module(100 * x) / 100, x).ok
    assert same_for_prefix(Normed(torch.nn.LayerNorm(3)), globals()["x"]).ok
    assert same_for_prefix(lambda x: (x.cumsum(-2), None), x[0]).ok


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_compared_on_average(dtype):
    rounded = Rounded(dtype)
    assert same_for_prefix(rounded, x).ok and same_for_prefix(rounded, x.to(dtype)).ok
    assert same_for_prefix(lambda x: rounded(x).float(), x.to(dtype)).ok
    assert not same_for_prefix(rounded, x, atol=1e-5).ok
    assert not same_for_prefix(lambda x: rounded(x), x).ok, "it is not known how it computes"
    assert not same_for_prefix(view_in_both, x.to(dtype)).ok


def test_a_batch_norm_is_caught_in_training_and_nothing_is_left_behind():
    module = Normed(OverTime(3))
    module.norm.eval()  # one part in another mode
    with torch.random.fork_rng(devices=[]):
        state = torch.get_rng_state()
        modes = [part.training for part in module.modules()]
        before = {name: z.clone() for name, z in module.state_dict().items()}
        told = words(same_for_prefix(module, x))
        assert "✗ same for a prefix: in training mode, output " in told
        assert "it depends on tokens after it." in told
        assert torch.equal(torch.get_rng_state(), state)
    assert modes == [part.training for part in module.modules()]
    assert all(torch.equal(before[name], z) for name, z in module.state_dict().items())
    frozen = Normed(OverTime(3)).eval()
    assert same_for_prefix(lambda x: frozen(x), x).ok, "in evaluation each token is alone"


def test_where_nothing_can_be_told_a_prefix_neither_passes_nor_fails():
    fixed = causal_mask(T)
    told = words(same_for_prefix(lambda x: attention(x, x, x, fixed), x))
    assert told.startswith("○ same for a prefix: it takes no shorter text: cut after token 6 it ")
    assert "raises ValueError: " in told
    told = (
        "✗ same for a prefix: cannot be told: outputs 0 to 7 are nan or inf. Put finite(...) on the"
    )
    assert words(same_for_prefix(lambda x: x / 0, x)) == f"{told} output first."
    random = words(same_for_prefix(torch.nn.functional.dropout, x))
    assert random.startswith("○ same for a prefix: two runs on the same x differ.")

    def from_3(x):
        if x.shape[1] < 3 or not x.is_contiguous():
            raise ValueError("Too short.")
        return x.cumsum(1)

    assert words(same_for_prefix(from_3, x)) == (
        "✓ same for a prefix: x was cut after tokens 2 to 6 in turn; the output there did not "
        "change. Cut after token 1 it raises ValueError: Too short."
    )


def test_ids_may_stand_in_the_place_of_tokens():
    embedding = torch.nn.Embedding(9, 3)
    ids = torch.tensor([[0, 3, 1, 8, 5], [2, 2, 7, 4, 6]])
    assert same_for_prefix(lambda ids: embedding(ids).cumsum(1), ids).ok
    assert same_for_prefix(lambda ids: embedding(ids).cumsum(0), ids[0]).ok
    assert "depends on tokens after it" in words(
        same_for_prefix(lambda ids: embedding(ids) + embedding(ids.max(1).values)[:, None], ids)
    )
    assert "how many tokens there are" in words(
        same_for_prefix(lambda ids: embedding(ids) * ids.shape[1], ids)
    )
    with pytest.raises(TypeError, match=r"floats, or ids, in a plain .*torch.bool"):
        same_for_prefix(lambda x: x, ids > 3)


def test_the_tolerance_of_a_prefix_may_be_given():
    def nearly(x):
        return x + 1e-4 / x.shape[1]

    assert not same_for_prefix(nearly, x).ok and same_for_prefix(nearly, x, atol=1e-3).ok


@pytest.mark.parametrize("x", [x, x[0]], ids=["(B, T, C)", "(T, C)"])
def test_what_depends_on_everything_it_may_reaches(x):
    assert reach(lambda x: attention(x, x, x, MASK), x).ok
    assert reach(lambda x: x.cumsum(-2), x).ok
    assert reach(lambda x: attention(x, x, x), x, causal=False).ok


def test_the_output_that_depends_on_the_fewest_tokens_is_named():
    window = MASK & ~MASK.tril(-2)  # this token and the one before it
    told = words(reach(lambda x: attention(x, x, x, window), x))
    assert told.startswith("✗ reach: output 7 depends on tokens 6 and 7 only. In 21 of 36 pairs")
    assert "output 7 depends on no token" in words(
        reach(lambda x: x.cumsum(1) * (MASK[6:7, :].mT), x)
    )
    causal = reach(lambda x: attention(x, x, x, MASK), x, causal=False)
    assert causal.evidence.startswith("output 0 depends on token 0 only. In 28 of 64 pairs")


def test_what_treats_each_sequence_alone_keeps_them_apart():
    assert sequences_stay_apart(lambda x: attention(x, x, x, MASK), x).ok
    assert sequences_stay_apart(lambda x: (x.mean(1, keepdim=True) + x, x.mean()), x).ok
    told = words(sequences_stay_apart(torch.nn.Dropout(0.5), x))
    assert told.startswith("✓ sequences stay apart: sequences 0 to 3 were replaced in turn;")


MIXING = {
    "mean": lambda x: x + x.mean(0),
    "softmax over the batch": lambda x: (x @ x.mT).softmax(0) @ x,
    "read as (T, B, C)": lambda x: attention(*[x.transpose(0, 1)] * 3)[0].transpose(0, 1),
    "batch norm": lambda x: (x - x.mean((0, 1))) / x.std((0, 1)),
    "only the last is added": lambda x: x + x[-1:],
}


@pytest.mark.parametrize("function", MIXING.values(), ids=MIXING.keys())
def test_mixed_sequences_are_found(function, snapshot):
    finding = sequences_stay_apart(function, x)
    assert not finding.ok and words(finding) == snapshot.use_extension(Told)


def test_mixed_sequences_are_named():
    def peek(x):  # sequence 1 reads sequence 3, and no other reads anything
        out = x.clone()
        out[1] += x[3]
        return out

    told = words(sequences_stay_apart(peek, x))
    assert "changing sequence 3 changed the outputs of sequence 1, by up to " in told
    nan = words(sequences_stay_apart(lambda x: torch.where(x == x[2], math.nan, x), x))
    assert "cannot be told: sequence 2 is nan or inf" in nan


def test_a_gradient_that_does_not_arrive_is_told_from_one_that_is_not_there():
    q, k, v, other = (torch.randn(2, 4, 3).requires_grad_() for _ in range(4))
    names = {"q": q, "k": k, "v": v}
    out, _ = attention(q, k, v, causal_mask(4))
    assert words(gradients_reach(out, names)) == "✓ gradients reach: one arrives at q, k and v."
    told = words(
        gradients_reach(out + 0 * other, names | {"other": other, "unused": torch.ones(3)})
    )
    assert "none arrives at other and unused: 0 of 24 and 0 of 3 numbers." in told
    assert told.endswith("The output was made without unused. One arrives at q, k and v.")
    assert q.grad is None, "nothing is left behind"


def test_a_plain_sum_would_miss_what_a_random_gradient_finds():
    """The sum of a row of weights is 1 whatever the scores: its gradient at q is 0."""
    q, k = torch.randn(2, 4, 3).requires_grad_(), torch.randn(2, 4, 3)
    weights = attention(q, k, k, causal_mask(4))[1]
    (by_sum,) = torch.autograd.grad(weights.sum(), q, retain_graph=True)
    assert by_sum.abs().max() < 1e-6
    assert gradients_reach(weights, {"q": q}).ok
    assert gradients_reach(q - q.flip(-1), {"q": q}).ok, "a sum of 0 whatever q"


def test_differences_from_a_reference_are_counted_and_placed():
    got = good.clone()
    assert words(matches_reference(got, good)) == (
        "✓ equals the reference: all 256 numbers within 1e-05."
    )
    got[1, 2, 0] += 0.25
    assert "1 of 256 numbers is off; the most, by 0.25, the one at [1, 2, 0]." in words(
        matches_reference(got, good)
    )
    got[3, 0, 0] = math.nan
    assert "2 of 256 numbers are off; the first that is nan at [3, 0, 0]" in words(
        matches_reference(got, good)
    )


def test_equal_infinities_are_equal():
    masked_scores = [0.5, -math.inf]
    assert matches_reference(masked_scores, masked_scores).ok
    assert not matches_reference([math.nan], [math.nan]).ok


def test_a_number_on_the_edge_of_rounding_is_told_with_one_digit_more(monkeypatch):
    monkeypatch.setenv("ATTENTION_STRICT", "1")
    assert "by 0.135," in words(matches_reference([0.13499996], [0.0]))
    assert "by 0.13," in words(matches_reference([0.125], [0.0])), "1/8 is exact on every machine"


def test_the_probe_leaves_no_trace():
    def noisy(x):
        return x.mul_(torch.rand(1)).flip(1).cumsum(1)

    input_before, findings = x.clone(), set()
    with torch.random.fork_rng(devices=[]):
        for seed in (1, 2):
            torch.manual_seed(seed)
            before = torch.get_rng_state()
            findings.add(words(no_leak(noisy, x)))
            assert torch.equal(torch.get_rng_state(), before)
    assert len(findings) == 1, "the same whatever the random state"
    assert torch.equal(x, input_before)


learned = x.clone().requires_grad_()
BAD_INPUT = [
    (lambda: finite([]), ValueError, "needs numbers, got the shape"),
    (lambda: rows_sum_to_one([0.5, 0.5]), ValueError, r"rows and columns, got the shape \(2,\)"),
    (lambda: no_leak(lambda x: x, x.long()), TypeError, "no_leak replaces .* must be floats"),
    (lambda: reach(lambda x: x, x.long()), TypeError, "reach replaces .* must be floats"),
    (lambda: sequences_stay_apart(lambda x: x, x.long()), TypeError, "apart replaces .* floats"),
    (
        lambda: sequences_stay_apart(lambda x: x, x.tolist()),
        TypeError,
        "must be floats .* got the list",
    ),
    (lambda: sequences_stay_apart(lambda x: x, x[:1]), ValueError, r"B of at least 2, .*\(1, 8, 3"),
    (lambda: sequences_stay_apart(lambda x: x, x[0]), ValueError, r"\(B, T, C\) with B"),
    (
        lambda: sequences_stay_apart(lambda x: x.mean(1), x),
        ValueError,
        r"one row a token.*\(4, 3\)",
    ),
    (lambda: gradients_reach(x, {"x": x}), ValueError, "no graph .* outside of torch.no_grad"),
    (lambda: gradients_reach(x, {}), ValueError, "Say what the gradient should reach"),
    (lambda: gradients_reach(x[:, :1], {"x": x}), ValueError, "T of at least 2"),
    (lambda: gradients_reach(None, {"x": x}), TypeError, "out must be .* floats, got None"),
    (lambda: gradients_reach(x, {"x": None}), TypeError, "x must be .* floats, got None"),
    (lambda: gradients_reach(x, [x]), TypeError, r"a dict of names and tensors.*got the list"),
    (lambda: gradients_reach(learned * x, {"x": x}), ValueError, "None of x requires a gradient"),
    (lambda: finite(None), TypeError, "values must be numbers .* got None"),
    (lambda: finite(x + 0j), TypeError, "values must be real, got complex"),
    (lambda: finite(x.to_sparse()), TypeError, r"not a sparse.*\.to_dense"),
    (lambda: finite(x.to("meta")), ValueError, "without numbers"),
    (lambda: rows_sum_to_one("0.5"), TypeError, "weights must be numbers .* got the str '0.5'"),
    (lambda: rows_sum_to_one(x, atol=-1), ValueError, "atol must be at least 0"),
    (lambda: rows_sum_to_one(x, atol=float("nan")), ValueError, "atol must be a finite number"),
    (lambda: no_weight_on_future([[1j]]), TypeError, "weights must be real"),
    (lambda: matches_reference(x + 0j, x), TypeError, "got must be real"),
    (lambda: matches_reference(x, None), TypeError, "expected must be numbers .* None"),
    (lambda: matches_reference(x, x, atol=None), TypeError, "atol must be a finite number"),
    (lambda: same_for_prefix(3, x), TypeError, "same_for_prefix calls a function .* the int 3"),
    (lambda: same_for_prefix(lambda x: x, x[0, 0]), ValueError, r"\(B, T, C\) or \(T, C\)"),
    (lambda: same_for_prefix(lambda x: x, x, atol=-1), ValueError, "atol must be at least 0"),
    (lambda: same_for_prefix(lambda x: x.mean(1), x), ValueError, r"one row a token.*\(4, 3\)"),
    (lambda: same_for_prefix(lambda x: x, 0.5), TypeError, r"plain tensor, got the float 0\.5\.$"),
    (lambda: no_leak(3, x), TypeError, "no_leak calls a function with x, got the int 3"),
    (lambda: no_leak(lambda q, k: q, x), TypeError, "x alone.*'k'.*lambda"),
    (lambda: no_leak(lambda x: x + 0j, x), TypeError, "must return real numbers"),
    (lambda: no_leak(lambda x: x, x.to("meta")), TypeError, "floats in a plain tensor"),
    (lambda: no_leak(lambda x: x, x.to_sparse()), TypeError, "floats in a plain tensor"),
    (lambda: no_leak(lambda x: x, x, atol="0"), TypeError, "atol must be a finite number"),
    (lambda: reach(lambda x: x, x, causal="no"), TypeError, "causal must be True or False"),
    (lambda: matches_reference([1.0], [1.0, 2.0]), ValueError, r"shapes .* \(1,\) and \(2,\)"),
    (lambda: no_leak(lambda x: x, x[0, 0]), ValueError, r"\(B, T, C\) or \(T, C\)"),
    (lambda: no_leak(lambda x: x, x[:, :1]), ValueError, "T of at least 2"),
    (lambda: no_leak(lambda x: None, x), TypeError, "must return a tensor, got None"),
    (lambda: no_leak(lambda x: x.to("meta"), x), ValueError, "a shape without numbers"),
    (lambda: no_leak(lambda x: [x], x), TypeError, "must return a tensor, got the list"),
    (lambda: no_leak(lambda x: x.mean(1), x), ValueError, r"one row a token.*\(4, 3\)"),
]


def test_pytorchs_attention_is_probed_as_the_message_says():
    mha = torch.nn.MultiheadAttention(x.shape[-1], 1, batch_first=True)
    with pytest.raises(TypeError, match="queries, keys and values") as refused:
        no_leak(mha, x)
    call = str(refused.value).split("write ")[1].removesuffix(".")
    assert eval(call, {"no_leak": no_leak, "mha": mha, "causal_mask": causal_mask, "x": x}).ok


def test_pytorchs_attention_that_reads_time_first_is_told():
    mha = torch.nn.MultiheadAttention(x.shape[-1], 1)
    with pytest.raises(TypeError, match="first axis of x as time"):
        no_leak(mha, x)


@pytest.mark.parametrize(("call", "error", "match"), BAD_INPUT)
def test_bad_input_is_refused_in_words(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_weights_have_no_prefix_to_compare():
    with pytest.raises(ValueError, match="of 1 tokens have 1 channels, those of all 4 have 4"):
        same_for_prefix(lambda x: (x @ x.mT).softmax(-1), torch.randn(4, 3))
