"""A cache: a text read in pieces gives the numbers of one pass; what does not fit is refused."""

import pytest
import torch
import torch.nn.functional as F

from attention_base.same import same
from helpers.attention import Block, KVCache, MultiHeadAttention, causal_mask
from helpers.gpt import TinyGPT

PIECES = [[1] * 9, [9], [4, 1, 1, 3], [1, 5, 3]]


def in_pieces(module, x, sizes, cache):
    return torch.cat([module(piece, cache=cache) for piece in x.split(sizes, dim=1)], dim=1)


@pytest.mark.parametrize("sizes", PIECES)
@pytest.mark.parametrize("n_kv_head", [1, 2, 4])
@pytest.mark.parametrize("setting", [{}, {"rotary": True}, {"fused": True}])
def test_attention_in_pieces_is_attention_of_the_whole(sizes, n_kv_head, setting):
    module, x = MultiHeadAttention(16, 4, n_kv_head, **setting), torch.randn(2, 9, 16)
    cache = KVCache(9)
    assert same(in_pieces(module, x, sizes, cache), module(x), atol=1e-5)
    assert len(cache) == 9 and cache.keys.shape == cache.values.shape == (2, n_kv_head, 9, 4)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_block_in_pieces(norm):
    block, x = Block(16, 4, norm, rotary=True), torch.randn(2, 9, 16)
    assert same(in_pieces(block, x, [4, 1, 4], KVCache(9)), block(x), atol=1e-5)


def test_gradients_go_through_a_cache():
    module, x = MultiHeadAttention(16, 4), torch.randn(2, 9, 16, requires_grad=True)
    upstream = torch.randn(2, 9, 16)
    (whole,) = torch.autograd.grad((module(x) * upstream).sum(), x)
    (pieces,) = torch.autograd.grad((in_pieces(module, x, [4, 5], KVCache(9)) * upstream).sum(), x)
    assert same(pieces, whole, atol=1e-5)


def test_a_mask_of_ones_own_counts_the_kept_tokens():
    module, x, cache = MultiHeadAttention(16, 4), torch.randn(2, 9, 16), KVCache(9)
    module(x[:, :6], cache=cache)
    out = module(x[:, 6:], mask=causal_mask(3, 9), cache=cache)
    assert same(out, module(x)[:, 6:], atol=1e-5)
    with pytest.raises(ValueError, match=r"scores \(2, 3, 9\).*Of the 9 keys, 6 stand"):
        again = KVCache(9)
        module(x[:, :6], cache=again)
        module(x[:, 6:], mask=causal_mask(3), cache=again)


@pytest.mark.parametrize("rotary", [True, False])
@pytest.mark.parametrize("sizes", PIECES)
def test_logits_in_pieces(rotary, sizes):
    model = TinyGPT(20, 12, 16, 4, rotary=rotary)
    ids = torch.randint(20, (2, 9))
    assert same(in_pieces(model, ids, sizes, model.new_cache()), model(ids), atol=1e-5)


@pytest.mark.parametrize("n", [5, 30])  # within context_length, and beyond
def test_writing_with_a_cache_gives_the_same_ids(n):
    model, ids = TinyGPT(20, 12, 16, 4), torch.randint(20, (3, 4))
    texts = [
        model.generate(ids, n, generator=torch.Generator().manual_seed(0), cache=cache)
        for cache in (False, True)
    ]
    assert torch.equal(*texts)


def test_with_a_cache_each_token_is_read_once(monkeypatch):
    model, read = TinyGPT(20, 12, 16, 4), []
    model.embedding.register_forward_hook(lambda layer, args, out: read.append(args[0].shape[1]))
    model.generate(torch.zeros(1, 4, dtype=torch.long), 6, cache=True)
    assert read == [4, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("n_kv_head", [1, 2])
def test_groups_are_those_of_pytorch(n_kv_head):
    module, x = MultiHeadAttention(16, 4, n_kv_head), torch.randn(2, 9, 16)
    heads = ((module.query, 4), (module.key, n_kv_head), (module.value, n_kv_head))
    q, k, v = (layer(x).view(2, 9, n, 4).transpose(1, 2) for layer, n in heads)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    assert same(module(x), module.proj(out.transpose(1, 2).flatten(2)), atol=1e-5)


def test_uneven_groups_are_refused():
    with pytest.raises(ValueError, match=r"n_head = 6, n_kv_head = 4\. Use one of 1, 2, 3, 6 key"):
        MultiHeadAttention(24, 6, 4)


def test_a_full_cache_is_told():
    cache = KVCache(5)
    cache.append(torch.zeros(1, 2, 4, 3), torch.zeros(1, 2, 4, 3))
    with pytest.raises(ValueError, match="takes 5 tokens and holds 4; 2 more do not fit"):
        cache.append(torch.zeros(1, 2, 2, 3), torch.zeros(1, 2, 2, 3))
    assert len(cache) == 4
    model = TinyGPT(20, 12, 16, 4)
    caches = model.new_cache()
    model(torch.zeros(1, 10, dtype=torch.long), cache=caches)
    with pytest.raises(ValueError, match=r"got 10 \+ 3, context_length=12"):
        model(torch.zeros(1, 3, dtype=torch.long), cache=caches)


@pytest.mark.parametrize(
    ("k", "v", "told"),
    [
        ((2, 2, 1, 3), (2, 2, 1, 3), r"holds k of shape \(1, 2, 4, 3\).*got \(2, 2, 1, 3\)"),
        ((1, 1, 1, 3), (1, 1, 1, 3), "another module, begin a new cache"),
        ((1, 2, 1, 3), (1, 2, 1, 5), r"holds v of shape \(1, 2, 4, 3\)"),
        ((1, 2, 1, 3), (1, 2, 2, 3), r"got \(1, 2, 1, 3\) and \(1, 2, 2, 3\)"),
        ((2, 1, 3), (2, 1, 3), r"must be \(B, n_kv_head, T_new, head_size\)"),
    ],
)
def test_what_does_not_fit_is_refused_and_not_kept(k, v, told):
    cache = KVCache(9)
    cache.append(torch.zeros(1, 2, 4, 3), torch.zeros(1, 2, 4, 3))
    with pytest.raises(ValueError, match=told):
        cache.append(torch.zeros(k), torch.zeros(v))
    assert len(cache) == 4 and cache.values.shape == (1, 2, 4, 3)


def test_another_dtype_and_a_context_are_refused():
    cache = KVCache(9)
    cache.append(torch.zeros(1, 2, 4, 3), torch.zeros(1, 2, 4, 3))
    with pytest.raises(TypeError, match=r"of type torch\.float32, got torch\.float64"):
        cache.append(*torch.zeros(2, 1, 2, 1, 3, dtype=torch.float64))
    module, x = MultiHeadAttention(16, 4), torch.randn(2, 9, 16)
    with pytest.raises(ValueError, match="Leave out the cache"):
        module(x, context=x, mask=None, cache=KVCache(9))
