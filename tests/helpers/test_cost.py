"""Attention in blocks has the numbers of the formula, a GPT that reads once those of its model."""

import pytest
import torch
import torch.nn.functional as F

from attention_base.same import same, seed_all
from helpers.cost import KVCache, ReadsOnce, blockwise_attention, cache_bytes
from helpers.gpt import TinyGPT
from lesson.exercises import EXERCISES

ATTEND = EXERCISES["14.1"].reference
IDS = torch.randint(9, (2, 12), generator=torch.Generator().manual_seed(0))


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


# ---------------------------------------------------------------- reading once


@pytest.fixture
def gpt():
    seed_all(0)
    return TinyGPT(vocab_size=9, context_length=12, C=16, n_head=2)


@pytest.mark.parametrize("ends", [(12,), range(1, 13), (4, 5, 12)])
def test_pieces_give_the_logits_of_one_pass(gpt, ends):
    reader = ReadsOnce(gpt, ATTEND)
    pieces = [reader(IDS[:, :end]) for end in ends]
    torch.testing.assert_close(torch.cat(pieces, dim=1), gpt(IDS))


def test_the_model_stays_as_it_is_and_each_reader_begins_anew(gpt):
    before = {name: value.clone() for name, value in gpt.state_dict().items()}
    first, second = (ReadsOnce(gpt, ATTEND)(IDS) for _ in range(2))
    assert torch.equal(first, second)
    assert all(torch.equal(value, before[name]) for name, value in gpt.state_dict().items())


def test_what_raises_has_read_nothing(gpt):
    def fails_once(q, k, v, cache):
        failures.append(len(failures))
        if len(failures) == 4:  # in the second block, with the second piece
            raise RuntimeError
        return ATTEND(q, k, v, cache)

    failures = []
    reader = ReadsOnce(gpt, fails_once)
    reader(IDS[:, :5])
    with pytest.raises(RuntimeError):
        reader(IDS)
    torch.testing.assert_close(reader(IDS), gpt(IDS)[:, 5:])


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        (IDS[:, :5], r"It has read 5 tokens already, so ids need at least 6: .*; got 5\."),
        (IDS[:1], r"It has read 2 texts, and ids are 1\. For another text make a new ReadsOnce"),
        (8 - IDS, r"The first 5 tokens of ids are not those it has read\."),
        (IDS.repeat(1, 2), r"got T=24, context_length=12\."),
        (IDS.float(), "ids must be whole numbers in a tensor"),
    ],
)
def test_another_text_is_refused(gpt, ids, told):
    reader = ReadsOnce(gpt, ATTEND)
    reader(IDS[:, :5])
    with pytest.raises((TypeError, ValueError), match=told):
        reader(ids)


@pytest.mark.parametrize(
    ("attend", "told"),
    [
        (lambda q, k, v, cache: None, r"four axes each; it returned None\."),
        (lambda q, k, v, cache: v, r"it returned a tensor of shape \(2, 2, 12, 8\)\."),
        (lambda q, k, v, cache: (v, k, v), r"it returned \(a tensor of shape .*, a tensor"),
        (lambda q, k, v, cache: (v, (k, None)), r"it returned \(a tensor .*, \(a .*, None\)\)\."),
        (lambda q, k, v, cache: (v, (k, v[0])), r"a tensor of shape \(2, 12, 8\)\)\)\."),
        (lambda q, k, v, cache: (v[:, :, -1:], (k, v)), r"= \(2, 2, 12, 8\), .*\(2, 2, 1, 8\)\."),
    ],
)
def test_what_is_no_output_and_a_cache_is_refused(gpt, attend, told):
    with pytest.raises((TypeError, ValueError), match=told):
        ReadsOnce(gpt, attend)(IDS)


def test_a_model_with_learned_positions_is_refused():
    with pytest.raises(ValueError, match="needs rotary=True; this one has rotary=False"):
        ReadsOnce(TinyGPT(9, 12, C=16, rotary=False), ATTEND)
