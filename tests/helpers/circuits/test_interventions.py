"""Heads that are ablated, patterns that are patched in, and what attention looks like."""

import re

import pytest
import torch
from torch import nn

from helpers.attention import KVCache, MultiHeadAttention, causal_mask
from helpers.circuits import ablate, attention_layers, induction_score, patch, previous_token_score
from helpers.gpt import TinyGPT

C, N_HEAD, T = 12, 3, 5


class OwnModel(nn.Module):
    """A model as somebody may have written it: two layers, the second of them cross-attention."""

    def __init__(self, fused=False):
        super().__init__()
        self.read = MultiHeadAttention(C, N_HEAD, fused=fused, rotary=True)
        self.cross = MultiHeadAttention(C, N_HEAD, fused=fused)

    def forward(self, x, memory):
        x = x + self.read(x)
        return x + self.cross(x, context=memory, mask=None)


@pytest.fixture
def gpt():
    torch.manual_seed(0)
    return TinyGPT(vocab_size=7, context_length=9, C=C, n_head=N_HEAD).eval()


@pytest.fixture
def ids():
    return torch.randint(7, (2, T), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def x():
    return torch.randn(2, T, C, generator=torch.Generator().manual_seed(2))


def head_by_head(layer, x, context, weights, without=()):
    """The output of a layer as a loop over heads, some of which give 0."""
    d = C // layer.n_head
    outs = []
    for h in range(layer.n_head):
        v = context @ layer.value.weight[h * d : (h + 1) * d].mT
        outs.append(weights[:, h] @ v * (h not in without))
    return layer.proj(torch.cat(outs, dim=-1))


def one_back(T):
    """Each token attends to the one before it, the first one to itself."""
    pattern = torch.diag(torch.ones(T - 1), -1)
    pattern[0, 0] = 1
    return pattern


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("heads", [0, 2, [0, 1], (1,), torch.tensor(2), torch.tensor([0, 2])])
def test_ablated_heads_give_0_and_the_others_what_they_gave(x, heads, rotary):
    layer = MultiHeadAttention(C, N_HEAD, rotary=rotary)
    out, weights = layer(x, return_weights=True)
    without = torch.as_tensor(heads).flatten().tolist()
    expected = head_by_head(layer, x, x, weights, without)
    with ablate(layer, 0, heads):
        ablated, same_weights = layer(x, return_weights=True)
    assert torch.allclose(ablated, expected, atol=1e-6)
    assert not torch.allclose(ablated, out, atol=1e-3)
    assert torch.equal(same_weights, weights)


def test_a_head_that_gives_nan_is_gone_too(x):
    layer = MultiHeadAttention(C, N_HEAD)
    with torch.no_grad():
        layer.value.weight[: C // N_HEAD] = torch.nan
    with ablate(layer, 0, 0):
        assert layer(x).isfinite().all()


@pytest.mark.parametrize("fused", [False, True])
def test_a_pattern_takes_the_place_of_the_weights(x, fused):
    model = OwnModel(fused)
    memory = torch.randn(2, 4, C, generator=torch.Generator().manual_seed(3))
    to_memory = torch.full((T, 4), 0.25)
    with patch(model, 0, one_back(T)), patch(model, 1, to_memory):
        out = model(x, memory)
    heads = one_back(T).expand(2, N_HEAD, T, T)
    mixed = x + head_by_head(model.read, x, x, heads)
    expected = mixed + head_by_head(model.cross, mixed, memory, to_memory.expand(2, N_HEAD, T, 4))
    assert torch.allclose(out, expected, atol=1e-6)


def test_a_pattern_may_differ_from_head_to_head_and_from_text_to_text(x):
    layer = MultiHeadAttention(C, N_HEAD)
    pattern = torch.rand(2, N_HEAD, T, T, generator=torch.Generator().manual_seed(4))
    pattern = pattern / pattern.sum(-1, keepdim=True)
    with patch(layer, 0, pattern):
        out, weights = layer(x, return_weights=True)
    assert torch.equal(weights, pattern)
    assert torch.allclose(out, head_by_head(layer, x, x, pattern), atol=1e-6)


def test_the_own_weights_as_a_pattern_change_nothing(gpt, ids):
    before = gpt(ids)
    with patch(gpt, 1, gpt.attention_weights(ids)[1]):
        assert torch.allclose(gpt(ids), before, atol=1e-6)


@pytest.mark.parametrize("n_kv_head", [1, 2, 4])
def test_a_pattern_finds_shared_values_and_kept_ones(x, n_kv_head):
    attention, cache = MultiHeadAttention(C, 4, n_kv_head), KVCache(T)
    out, weights = attention(x, return_weights=True)
    attention(x[:, :3], cache=cache)
    with patch(attention, 0, weights[:, :, 3:]):
        torch.testing.assert_close(attention(x[:, 3:], cache=cache), out[:, 3:])


def test_gpt_shows_the_pattern_and_writes_with_it(gpt, ids):
    seen = []

    def pattern(T_k):
        seen.append(T_k)
        return one_back(T_k)

    with patch(gpt, 0, pattern):
        weights = gpt.attention_weights(ids)
        longer = gpt.generate(ids, 2)
    assert torch.equal(weights[0], one_back(T).expand(2, N_HEAD, T, T))
    assert seen == [5, 5, 5, 6] and longer.shape == (2, 7)


def test_both_at_once_in_one_layer(x):
    layer = MultiHeadAttention(C, N_HEAD)
    expected = head_by_head(layer, x, x, one_back(T).expand(2, N_HEAD, T, T), without=[1])
    with patch(layer, 0, one_back(T)), ablate(layer, 0, 1):
        assert torch.allclose(layer(x), expected, atol=1e-6)
    with ablate(layer, 0, 1), patch(layer, 0, one_back(T)):
        assert torch.allclose(layer(x), expected, atol=1e-6)


def test_the_last_pattern_of_a_layer_holds(x):
    layer = MultiHeadAttention(C, N_HEAD)
    with patch(layer, 0, torch.eye(T)), patch(layer, 0, one_back(T)):
        assert torch.equal(layer(x, return_weights=True)[1][0, 0], one_back(T))


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_afterwards_the_model_is_what_it_was(gpt, ids, error):
    before, parameters = gpt(ids), {k: v.clone() for k, v in gpt.state_dict().items()}
    with pytest.raises(error), ablate(gpt, 0, 1), patch(gpt, 1, one_back(T)):
        changed = gpt(ids)
        raise error
    assert not torch.allclose(changed, before, atol=1e-3)
    assert torch.equal(gpt(ids), before)
    assert all(torch.equal(gpt.state_dict()[k], v) for k, v in parameters.items())
    for part in gpt.modules():
        assert not part._forward_hooks and not part._forward_pre_hooks


def test_a_model_can_be_trained_while_it_is_changed(x):
    layer = MultiHeadAttention(C, N_HEAD)
    with patch(layer, 0, one_back(T)), ablate(layer, 0, 0):
        layer(x).square().sum().backward()
    assert layer.query.weight.grad is None or not layer.query.weight.grad.any()
    d = C // N_HEAD
    assert not layer.value.weight.grad[:d].any() and layer.value.weight.grad[d:].any()


def test_layers_are_counted_as_the_model_holds_them(gpt):
    assert attention_layers(gpt) == [block.attention for block in gpt.blocks]
    model = OwnModel()
    assert attention_layers(model) == [model.read, model.cross]


def test_models_without_our_attention():
    with pytest.raises(ValueError, match=r"Linear holds no helpers\.attention\.MultiHeadAttention"):
        attention_layers(nn.Linear(2, 2))
    with (
        pytest.raises(ValueError, match=r"PyTorch's own nn\.MultiheadAttention cannot be"),
        patch(nn.MultiheadAttention(4, 2), 0, torch.eye(3)),
    ):
        pass


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda m: ablate(m, 2, 0), ValueError, "layer must be .* from 0 to 1, got 2"),
        (lambda m: ablate(m, -1, 0), ValueError, "layer must be .* got -1"),
        (lambda m: ablate(m, 0, 3), ValueError, "head must be .* from 0 to 2, got 3"),
        (lambda m: ablate(m, 0, [0, 7]), ValueError, "head must be .* got 7"),
        (
            lambda m: ablate(m, 0, [1.0]),
            TypeError,
            "head must be a whole number .* got the float 1.0",
        ),
        (
            lambda m: ablate(m, 0, True),
            TypeError,
            "head must be a whole number .* got the bool True",
        ),
        (
            lambda m: patch(m, "0", torch.eye(T)),
            TypeError,
            "layer must be a whole number, got the str '0'",
        ),
        (lambda m: patch(m, 2, torch.eye(T)), ValueError, "layer must be .* from 0 to 1"),
        (lambda m: ablate(m, 0, None), TypeError, "head must be a whole number .* got None"),
        (lambda m: ablate(m, 0, torch.rand(2, 2)), TypeError, "head must be a whole number"),
        (lambda _: ablate(None, 0, 0), TypeError, "model must be an nn.Module, got NoneType"),
    ],
)
def test_layers_and_heads_that_are_not_there(gpt, change, error, message):
    with pytest.raises(error, match=message), change(gpt):
        pass


def no_weights(place, value):
    pattern = one_back(T)
    pattern[place] = value
    return pattern


@pytest.mark.parametrize(
    ("pattern", "error", "message"),
    [
        (no_weights((3, 1), 0.5), ValueError, "layer 1 must .* row 3 sums to 1.5."),
        (no_weights((2, 1), torch.nan), ValueError, "row 2 sums to nan."),
        (no_weights(4, torch.tensor([-1.0, 1, 0, 1, 0])), ValueError, "row 4 holds -1."),
        (no_weights((4, 3), 0.0)[None, None], ValueError, r"row 4 of \[0, 0\] sums to 0."),
        (torch.eye(T + 1), ValueError, r"\(B, n_head, T_q, T_k\) = \(2, 3, 5, 5\), got \(6, 6\)"),
        (torch.eye(T).bool(), TypeError, "layer 1 must be a float tensor, got torch.bool"),
        (lambda T_k: None, TypeError, "must be a float tensor, got NoneType"),
    ],
)
def test_patterns_that_are_no_weights(gpt, ids, pattern, error, message):
    before = gpt(ids)
    with pytest.raises(error, match=message), patch(gpt, 1, pattern):
        gpt(ids)
    assert torch.equal(gpt(ids), before)


# ---------------------------------------------------------------- scores


def test_scores_are_means_over_their_diagonals():
    source = torch.Generator().manual_seed(5)
    weights = torch.rand(3, 2, 9, 9, generator=source).masked_fill(~causal_mask(9), 0)
    weights = weights / weights.sum(-1, keepdim=True)
    for b, period in enumerate([3, 4, 7]):
        for h in range(2):
            one = weights[b, h]
            mean = sum(one[t, t - 1] for t in range(1, 9)) / 8
            assert torch.isclose(previous_token_score(weights)[b, h], mean)
            mean = sum(one[t, t - period + 1] for t in range(period, 9)) / (9 - period)
            assert torch.isclose(induction_score(one, period), mean)
            assert torch.isclose(induction_score(weights, torch.tensor([3, 4, 7]))[b, h], mean)
    in_a_column = torch.tensor([[3], [4], [7]])
    per_text = induction_score(weights, torch.tensor([3, 4, 7]))
    assert torch.equal(induction_score(weights, in_a_column), per_text)
    assert induction_score(weights, torch.tensor(4)).shape == (3, 2)


def test_scores_of_exact_patterns():
    assert previous_token_score(one_back(T)) == 1 and previous_token_score(torch.eye(T)) == 0
    weights = torch.eye(8)
    weights[3:] = torch.eye(8)[1:6]  # row t finds key t - 2
    assert induction_score(weights, 3) == 1
    assert induction_score(weights, 4) == 0  # one place beside it


@pytest.mark.parametrize(
    ("score", "error", "message"),
    [
        (lambda: previous_token_score(torch.ones(1, 1)), ValueError, "at least two tokens"),
        (lambda: previous_token_score(torch.ones(3, 2) / 2), ValueError, r"T\), got \(3, 2\)"),
        (lambda: previous_token_score(torch.ones(3)), ValueError, r"\(..., T, T\), got \(3,\)"),
        (lambda: previous_token_score([[1.0]]), TypeError, "got the list"),
        (lambda: previous_token_score(torch.zeros(2, 2)), ValueError, "row 0 sums to 0"),
        (lambda: previous_token_score(torch.eye(2) * torch.nan), ValueError, "sums to nan"),
        (lambda: induction_score(torch.eye(4), 4), ValueError, "from 1 to T - 1 = 3, got 4"),
        (lambda: induction_score(torch.eye(4), 0), ValueError, "from 1 to T - 1 = 3, got 0"),
        (
            lambda: induction_score(torch.eye(4), 1.5),
            TypeError,
            "whole number .* got the float 1.5",
        ),
        (
            lambda: induction_score(torch.eye(4).expand(2, 4, 4), torch.tensor([2, 2, 2])),
            ValueError,
            r"each of the B texts of weights \(B, ..., T, T\); got 3 for weights \(2, 4, 4\)",
        ),
    ],
)
def test_what_has_no_score(score, error, message):
    with pytest.raises(error, match=re.compile(message)):
        score()
