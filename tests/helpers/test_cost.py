"""Attention in blocks has the numbers of the formula; a cache is counted, and calls are timed."""

import pytest
import torch
import torch.nn.functional as F

from attention_base.same import same
from helpers.cost import KVCache, blockwise_attention, cache_bytes, seconds_of


@pytest.mark.parametrize("block_size", [1, 3, 4, 7, 10, 64])
def test_blocks_have_the_numbers_of_the_formula_and_its_gradients(block_size):
    q, k = torch.randn(2, 2, 3, 10, 4, requires_grad=True)
    v = torch.randn(2, 3, 10, 5, requires_grad=True)
    upstream = torch.randn(2, 3, 10, 5)
    right = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    out = blockwise_attention(q, k, v, block_size)
    assert same(out, right, atol=1e-5)
    found, wanted = (torch.autograd.grad((z * upstream).sum(), (q, k, v)) for z in (out, right))
    assert all(same(*pair, atol=1e-5) for pair in zip(found, wanted, strict=True))


@pytest.mark.parametrize("sign", [1, -1])
def test_huge_scores_do_not_overflow(sign):
    torch.manual_seed(0)
    q, k, v = 100 * torch.randn(1, 10, 4), sign * 100 * torch.randn(1, 10, 4), torch.randn(1, 10, 4)
    right = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True)
    assert same(blockwise_attention(q, k, v, 3), right, atol=1e-4)


def test_no_matrix_of_all_scores_is_made(monkeypatch):
    sizes, matmul = [], torch.Tensor.__matmul__

    def recorded(a, b):
        sizes.append((out := matmul(a, b)).shape[-1])
        return out

    monkeypatch.setattr(torch.Tensor, "__matmul__", recorded)
    blockwise_attention(*torch.randn(3, 1, 100, 4), block_size=16)
    assert max(sizes) == 16 and len(sizes) == 2 * 28  # 7 blocks: 28 pairs that are not all future


def test_other_numbers_of_queries_and_bad_sizes_are_refused():
    q, k = torch.randn(1, 3, 4), torch.randn(1, 5, 4)
    with pytest.raises(ValueError, match=r"T_q = 3, T_k = 5\. Behind a cache"):
        blockwise_attention(q, k, k)
    with pytest.raises(ValueError, match="block_size must be a whole number"):
        blockwise_attention(k, k, k, 0)
    with pytest.raises(ValueError, match="n_kv_head must be a whole number"):
        cache_bytes(2, 0, 16, 256)


def test_the_bytes_are_those_of_a_cache():
    cache = KVCache(7)
    keys, values = cache.append(*torch.randn(2, 3, 2, 7, 4))
    assert keys.nbytes + values.nbytes == cache_bytes(1, 2, 4, 7, B=3, bytes_per_number=4)


def test_seconds_are_noted_until_a_call_raises():
    layer = torch.nn.Linear(2, 2)
    with pytest.raises(RuntimeError), seconds_of(layer) as seconds:
        layer(torch.ones(2))
        layer(torch.ones(3))
    layer(torch.ones(2))
    assert len(seconds) == 1 and seconds[0] > 0
