"""Masks against plain loops, their polarity against PyTorch's, and rows that are empty."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers.attention import (
    Head,
    MultiHeadAttention,
    attention,
    causal_mask,
    padding_mask,
    prefix_mask,
    window_mask,
)

# Padding at the left, none, at the right, and within; (4, 5).
REAL = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 1, 0, 1]]) > 0
ITSELF = torch.eye(5, dtype=torch.bool)
RULES = {  # a mask, and whether query i may attend to key j
    "causal": (causal_mask(5), lambda i, j: j <= i),
    "causal, one token": (causal_mask(1), lambda i, j: True),
    "causal, one query": (causal_mask(1, 5), lambda i, j: True),
    "causal, earlier keys": (causal_mask(3, 7), lambda i, j: j <= i + 7 - 3),
    "causal, fewer keys": (causal_mask(3, 2), lambda i, j: j <= i + 2 - 3),
    "window of 1": (window_mask(5, 1), lambda i, j: j == i),
    "window of 3": (window_mask(6, 3), lambda i, j: j in (i - 2, i - 1, i)),
    "a window as long as the text": (window_mask(5, 5), lambda i, j: j <= i),
    "a window longer than the text": (window_mask(5, 9), lambda i, j: j <= i),
    "prefix of 1": (prefix_mask(5, 1), lambda i, j: j <= i),
    "prefix of 3": (prefix_mask(6, 3), lambda i, j: j <= i or j < 3),
    "all is prefix": (prefix_mask(5, 5), lambda i, j: True),
    "padding": (padding_mask(REAL).expand(4, 6, 5)[0], lambda i, j: REAL.tolist()[0][j]),
}


def random(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", RULES)
def test_each_mask_is_its_rule_written_as_a_double_loop(name):
    mask, may = RULES[name]
    T_q, T_k = mask.shape
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[may(i, j) for j in range(T_k)] for i in range(T_q)]


def test_padding_may_not_be_read_and_the_text_is_what_it_is_without():
    mask = padding_mask(REAL)
    assert mask.shape == (4, 1, 5) and padding_mask(REAL[:0]).shape == (0, 1, 5)
    x = random(4, 5, 8)
    for module in (Head(8, 4), MultiHeadAttention(8, 2), MultiHeadAttention(8, 2, fused=True)):
        out = module(x, mask=mask & causal_mask(5) | ITSELF)
        for b, real in enumerate(REAL):
            alone = module(x[b : b + 1, real])  # without its padding
            torch.testing.assert_close(out[b : b + 1, real], alone, rtol=0, atol=1e-6)


def test_left_padding_under_a_causal_mask_empties_rows_and_itself_mends_them():
    q, k, v = random(3, 4, 5, 8)
    mask = padding_mask(REAL) & causal_mask(5)
    remedy = r"row \[0, 0\] of the mask .*2 of 20 rows.*mask \| torch.eye\(T, dtype=torch.bool\)"
    for run in (lambda: attention(q, k, v, mask), lambda: MultiHeadAttention(8, 2)(q, mask=mask)):
        with pytest.raises(ValueError, match=remedy):
            run()
    out, weights = attention(q, k, v, mask | ITSELF)
    assert out.isfinite().all() and torch.equal(weights > 0, mask | ITSELF)
    rows = mask.any(dim=-1)
    assert torch.equal((mask | ITSELF)[REAL], mask[REAL]), "rows of the text stay"
    assert rows.tolist() == [[False, False, True, True, True], *[[True] * 5] * 3]


def test_pytorch_says_what_the_docstring_says_of_an_empty_row():
    q, k, v = random(3, 1, 5, 8)
    mask = ~ITSELF & causal_mask(5)  # row 0 is empty
    assert (F.scaled_dot_product_attention(q, k, v, mask)[0, 0] == 0).all()
    theirs = nn.MultiheadAttention(8, 2, batch_first=True)  # its biases are 0
    assert theirs(q, q, q, attn_mask=~mask)[0][0, 0].isnan().all()
    out = theirs(q, q, q, attn_mask=~mask, need_weights=False)[0]
    assert (out[0, 0] == 0).all()
    with torch.no_grad():
        out = theirs.eval()(q, q, q, attn_mask=~mask, need_weights=False)[0]
    assert out[0, 0].isnan().all()


def test_true_means_may_attend_as_in_one_function_of_pytorch_and_unlike_the_other():
    x, mask = random(4, 5, 8), prefix_mask(5, 2)
    out, _ = attention(x, x, x, mask)
    expected = F.scaled_dot_product_attention(x, x, x, mask)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-6)
    ours, theirs = (MultiHeadAttention(8, 2), nn.MultiheadAttention(8, 2, batch_first=True))
    with torch.no_grad():
        weights = [ours.query.weight, ours.key.weight, ours.value.weight]
        theirs.in_proj_weight.copy_(torch.cat(weights))
    theirs.out_proj.load_state_dict(ours.proj.state_dict())
    expected, _ = theirs(x, x, x, attn_mask=~mask)
    torch.testing.assert_close(ours(x, mask=mask), expected, rtol=0, atol=1e-6)
    expected, _ = theirs(x, x, x, key_padding_mask=~REAL)
    torch.testing.assert_close(ours(x, mask=padding_mask(REAL)), expected, rtol=0, atol=1e-6)


def test_is_causal_lines_up_the_other_way():
    """PyTorch lines up the first query with the first key, as the docstring says."""
    q, k, v = random(2, 3), random(4, 3), random(4, 3)
    theirs = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    first_to_first = torch.ones(2, 4, dtype=torch.bool).tril()
    torch.testing.assert_close(attention(q, k, v, first_to_first)[0], theirs)
    assert not torch.allclose(attention(q, k, v, causal_mask(2, 4))[0], theirs, atol=1e-3)


WHOLE = "must be a whole number of at least 1"
BAD = [
    (lambda: window_mask(4, 0), ValueError, f"window {WHOLE}, got 0"),
    (lambda: window_mask(4, 2.0), ValueError, f"window {WHOLE}, got 2.0"),
    (lambda: window_mask(-4, 2), ValueError, f"T {WHOLE}, got -4"),
    (lambda: prefix_mask(4, 0), ValueError, f"n_prefix {WHOLE}, got 0"),
    (lambda: prefix_mask(4, 5), ValueError, "part of the text: n_prefix = 5, but T = 4"),
    (lambda: padding_mask(REAL.int()), TypeError, "real must be .*got torch.int32.*ids != pad"),
    (lambda: padding_mask(REAL.tolist()), TypeError, r"got list: use torch\.tensor\(real\)"),
    (lambda: padding_mask(None), TypeError, "True at tokens of the text.*got NoneType"),
    (lambda: padding_mask(REAL[0]), ValueError, r"real must be \(B, T\), got \(5,\)"),
    (lambda: padding_mask(REAL & (REAL.sum(1, True) < 4)), ValueError, "sequence 1 of 4 has none"),
    (lambda: padding_mask(REAL[:, :0]), ValueError, "sequence 0 of 4 has none. Leave it out"),
]


@pytest.mark.parametrize(("make", "error", "match"), BAD)
def test_what_is_no_mask_is_refused_in_words(make, error, match):
    with pytest.raises(error, match=match):
        make()


@pytest.mark.parametrize("size", [0, -1, 2.0, True, "3"])
def test_causal_mask_refuses_what_is_no_size(size):
    with pytest.raises(ValueError, match="T_k must be a whole number of at least 1"):
        causal_mask(3, size)


@pytest.mark.parametrize("size", [torch.ones(2, 4, 3), torch.ones(2, 4, 3).numpy()])
def test_of_a_tensor_in_the_place_of_a_size_only_the_shape_is_told(size):
    with pytest.raises(
        ValueError, match=r"at least 1, got (Tensor|ndarray) of shape \(2, 4, 3\)\.$"
    ):
        causal_mask(size)
