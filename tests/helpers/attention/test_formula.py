"""Attention against PyTorch's own, and the words it refuses bad input with."""

import math

import pytest
import torch
import torch.nn.functional as F

from helpers.attention import attention, causal_mask

SHAPES = [  # leading sizes, T_q, T_k, d, d_v
    ((), 5, 5, 3, 3),
    ((2,), 4, 6, 3, 5),
    ((2, 3), 6, 4, 5, 2),
    ((2, 1, 3), 1, 7, 4, 1),
]


def qkv(lead, T_q, T_k, d, d_v, dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)

    def random(*shape):
        return torch.randn(*shape, dtype=dtype, generator=generator).requires_grad_()

    return random(*lead, T_q, d), random(*lead, T_k, d), random(*lead, T_k, d_v)


def masks(lead, T_q, T_k):
    """No mask, and masks of several shapes that all broadcast; every row keeps a key."""
    some = torch.rand(*lead, T_q, T_k, generator=torch.Generator().manual_seed(2)) > 0.5
    some[..., 0] = True
    keys = torch.arange(T_k) < max(1, T_k - 1)  # (T_k,)
    causal = causal_mask(T_q, T_k) | (torch.arange(T_k) == 0)
    return [None, causal, some, keys]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_pytorch_with_gradients(shape, dtype):
    lead, T_q, T_k, _, _ = shape
    tolerance = {"rtol": 0, "atol": 1e-5 if dtype == torch.float32 else 1e-12}
    for mask in masks(lead, T_q, T_k):
        ours, theirs = qkv(*shape, dtype), qkv(*shape, dtype)
        out, weights = attention(*ours, mask)
        wide = mask if mask is None else mask.expand(*mask.shape[:-2], T_q, T_k)
        expected = F.scaled_dot_product_attention(*theirs, attn_mask=wide)
        torch.testing.assert_close(out, expected, **tolerance)
        assert weights.shape == (*lead, T_q, T_k)
        torch.testing.assert_close(weights @ ours[2], out)
        upstream = torch.randn(out.shape, dtype=dtype, generator=torch.Generator().manual_seed(3))
        for a, b in zip(
            torch.autograd.grad(out, ours, upstream),
            torch.autograd.grad(expected, theirs, upstream),
            strict=True,
        ):
            torch.testing.assert_close(a, b, **tolerance)


def test_weights_are_a_causal_average():
    q, k, v = qkv((2, 3), 5, 5, 4, 2)
    _, weights = attention(q, k, v, causal_mask(5))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 5), rtol=0, atol=1e-6)
    assert (weights[..., ~causal_mask(5)] == 0).all()


def test_dropout_takes_weights_away_and_enlarges_the_others():
    q, k, v = qkv((2, 3), 20, 20, 4, 2)
    right = attention(q, k, v)[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        out, weights = attention(q, k, v, dropout=0.25)
    kept = weights != 0
    assert 0.7 < kept.float().mean() < 0.8
    torch.testing.assert_close(weights[kept], right[kept] / 0.75)
    torch.testing.assert_close(out, weights @ v)


def test_large_scores_stay_finite():
    q, k, v = (1e4 * tensor for tensor in qkv((), 4, 4, 3, 3))
    assert attention(q, k, v, causal_mask(4))[0].isfinite().all()


def test_heads_may_share_keys_by_broadcasting():
    q, k, v = qkv((2, 3), 4, 5, 6, 7)
    out, _ = attention(q, k[:, :1], v[:, :1])
    expected, _ = attention(q, k[:, :1].expand(-1, 3, -1, -1), v[:, :1].expand(-1, 3, -1, -1))
    torch.testing.assert_close(out, expected)


x = torch.ones(2, 4, 3)

BAD_INPUT = [
    ((x, x[..., :2], x), ValueError, r"last sizes must be equal: q \(2, 4, 3\) has 3, .* has 2"),
    ((x, x, x[:, :3]), ValueError, r"same number of tokens: k \(2, 4, 3\) has 4, .* has 3"),
    ((x, x.expand(3, 2, 4, 3), x[:1].expand(5, 4, 3)), ValueError, "before the last two"),
    ((x.long(), x, x), TypeError, r"q must hold floats, got torch.int64: use q.float\(\)"),
    ((x, x.bool(), x), TypeError, "k must hold floats, got torch.bool"),
    ((x, x, x.double()), TypeError, "one dtype, got torch.float32, torch.float32 and torch.float6"),
    ((x, x, x.tolist()), TypeError, r"v must be a tensor, got list: use torch\.tensor\(v\)"),
    ((x[0, 0], x, x), ValueError, r"q needs at least two dimensions.*\(3,\).*q\[None, :\]"),
    ((x, x[:, :0], x[:, :0]), ValueError, r"nothing to attend to: k has shape \(2, 0, 3\)"),
    ((x, x, x, torch.ones(4, 4)), TypeError, "bool tensor, True = may attend; got torch.float32"),
    ((x, x, x, [[True]]), TypeError, r"True = may attend; got list: use torch\.tensor\(mask\)"),
    ((x, x, x, torch.ones(3, 4) > 0), ValueError, r"mask \(3, 4\) .* scores \(2, 4, 4\)"),
    ((x, x, x, torch.ones(5, 2, 4, 4) > 0), ValueError, r"mask \(5, 2, 4, 4\) does not fit"),
]


@pytest.mark.parametrize(("arguments", "error", "match"), BAD_INPUT)
def test_bad_input_is_refused_in_words(arguments, error, match):
    with pytest.raises(error, match=match):
        attention(*arguments)


def test_a_row_without_keys_is_refused_with_its_index():
    with pytest.raises(ValueError, match=r"to itself: mask \| torch.eye"):
        attention(*[x[:, :2]] * 3, torch.zeros(2, 2) > 0)
    mask = causal_mask(4).expand(2, 4, 4).clone()
    mask[1, 2] = False
    with pytest.raises(
        ValueError, match=r"row \[1, 2\] of the mask .*1 of 8 rows.*mask \| torch.eye"
    ):
        attention(x, x, x, mask)
    with pytest.raises(ValueError, match=r"row \[0\] of the mask .*1 of 4 rows"):
        attention(x, x[:, :3], x[:, :3], causal_mask(4, 3))
    with pytest.raises(ValueError, match="no key: the mask is False throughout"):
        attention(x, x, x, torch.zeros(4) > 0)


def test_scale_is_that_of_the_formula():
    """One query, two keys: scores 0 and 3·2/√4 = 3, so weights 1 : e³."""
    q, k = torch.tensor([[3.0, 0, 0, 0]]), torch.tensor([[0.0, 0, 0, 0], [2.0, 0, 0, 0]])
    _, weights = attention(q, k, k)
    assert weights[0, 1].item() == pytest.approx(math.exp(3) / (1 + math.exp(3)))


def test_the_variances_that_a_lecture_printed_for_its_scores():
    """A newer PyTorch would show here that it draws other random numbers."""
    torch.manual_seed(1337)
    x = torch.randn(4, 8, 32)
    key, query, _ = (torch.nn.Linear(32, 16, bias=False) for _ in range(3))
    k, q = torch.randn(4, 8, 16), torch.randn(4, 8, 16)
    variances = [(q @ k.mT).var(), (q @ k.mT / 4).var(), (query(x) @ key(x).mT).var()]
    torch.testing.assert_close(
        torch.stack(variances).detach(), torch.tensor([17.4690, 1.0918, 1.9224]), atol=1e-3, rtol=0
    )
    five = torch.tensor([0.1, -0.2, 0.3, -0.2, 0.5])
    by_8 = torch.tensor([0.0326, 0.0030, 0.1615, 0.0030, 0.8000])
    torch.testing.assert_close(torch.softmax(8 * five, dim=-1), by_8, atol=1e-4, rtol=0)
