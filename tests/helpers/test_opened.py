"""The attention weights of models that people write: read, and replaced, in each design."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attention_base.same import seed_all
from helpers.circuits import ablate, patch, tokens_back
from helpers.gpt import TinyGPT
from helpers.opened import opened

C, N_HEAD, T = 16, 4, 9
FUTURE = torch.ones(T, T).triu(1).bool()


class Attention(nn.Module):
    """One layer for all queries, keys and values; a design says what it does with them."""

    def __init__(self, attend):
        super().__init__()
        self.all_three, self.ending, self.attend = nn.Linear(C, 3 * C), nn.Linear(C, C), attend
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        q, k, v = self.all_three(x).unflatten(-1, (3, N_HEAD, C // N_HEAD)).permute(2, 0, 3, 1, 4)
        return self.ending(self.attend(self, q, k, v).transpose(1, 2).flatten(2))


def scores(q, k):
    return q @ k.mT / math.sqrt(q.shape[-1])


def masked(q, k):
    return scores(q, k).masked_fill(FUTURE, -torch.inf)


def heads_one_by_one(self, q, k, v):
    parts = zip(*(z.unbind(1) for z in (q, k, v)), strict=True)
    return torch.stack([torch.softmax(masked(q, k), -1) @ v for q, k, v in parts], dim=1)


def own_exp_and_sum(self, q, k, v):
    weights = scores(q, k).exp() * ~FUTURE
    weights /= weights.sum(-1, keepdim=True)
    return weights @ v


def keys_before_queries(self, q, k, v):
    weights = F.softmax(masked(q, k).movedim(1, -1), dim=2)  # (B, T, T, n_head)
    return torch.einsum("bqkh,bhkd->bhqd", weights, v)


def softmax_before_the_mask(self, q, k, v):
    weights = scores(q, k).softmax(-1).tril()
    return (weights / weights.sum(-1, keepdim=True)) @ v


def heads_in_the_batch(self, q, k, v):
    q, k, v = (z.flatten(0, 1) for z in (q, k, v))
    return (torch.softmax(masked(q, k), -1) @ v).unflatten(0, (-1, N_HEAD))


DESIGNS = {
    "function": lambda self, q, k, v: torch.softmax(masked(q, k), dim=-1) @ v,
    "method, dropout": lambda self, q, k, v: self.drop(masked(q, k).softmax(-1)) @ v,
    "module": lambda self, q, k, v: nn.Softmax(dim=-1)(masked(q, k)) @ v,
    "SDPA": lambda self, q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "SDPA with a mask": lambda self, q, k, v: F.scaled_dot_product_attention(
        query=q, key=k, value=v, attn_mask=~FUTURE
    ),
    "SDPA by place": lambda self, q, k, v: F.scaled_dot_product_attention(q, k, v, None, 0.0, True),
    "heads before texts": lambda self, q, k, v: (
        torch.softmax(masked(q, k).transpose(0, 1), dim=-1) @ v.transpose(0, 1)
    ).transpose(0, 1),
    "scores with a bias for each head": lambda self, q, k, v: (
        torch.softmax(masked(q, k) + torch.zeros(N_HEAD, T, T), dim=-1) @ v
    ),
    "a list of heads": heads_one_by_one,
    "exp and sum": own_exp_and_sum,
    "heads on the last axis": keys_before_queries,
    "softmax before the mask": softmax_before_the_mask,
    "heads in the batch": heads_in_the_batch,
}


def divided_at_the_end(self, q, k, v):
    weights = scores(q, k).exp() * ~FUTURE
    return weights @ v / weights.sum(-1, keepdim=True)


def pytorchs_layer(self, q, k, v):
    x = v.transpose(1, 2).flatten(2)
    layer = nn.MultiheadAttention(C, N_HEAD, batch_first=True)
    return layer(x, x, x, attn_mask=FUTURE)[0].unflatten(2, (N_HEAD, -1)).transpose(1, 2)


class GPT(nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.first, self.last = nn.Embedding(5, C), nn.Linear(C, 5)
        self.layers = nn.ModuleList(Attention(attend) for _ in range(2))

    def forward(self, ids):
        x = self.first(ids)
        for layer in self.layers:
            x = x + layer(F.layer_norm(x, (C,)))
        return self.last(x)


def model_and_ids(attend):
    seed_all(0)
    return GPT(attend).train(), torch.randint(5, (3, T))


@pytest.mark.parametrize("attend", DESIGNS.values(), ids=DESIGNS)
def test_each_design_gives_the_same_weights_and_takes_the_same_patches(attend):
    plain, ids = model_and_ids(DESIGNS["function"])
    model, _ = model_and_ids(attend)
    for put in (
        {},
        {(0, 1): tokens_back({1: 1.0})(T)},
        {(1, 0): torch.zeros(T, T), (1, 3): FUTURE},
    ):
        logits, weights = opened(model, ids, put)
        wanted, right = opened(plain, ids, put)
        assert weights.shape == (2, 3, N_HEAD, T, T)
        assert torch.allclose(weights, right, atol=1e-5)
        assert torch.allclose(logits, wanted, atol=1e-5)
    assert model.training and torch.allclose(opened(model, ids)[0], model.eval()(ids), atol=1e-5)


def test_it_does_what_patch_and_ablate_do():
    seed_all(0)
    gpt, ids = TinyGPT(5, T, C, N_HEAD, rotary=True), torch.randint(5, (3, T))
    before = tokens_back({1: 1.0})(T)
    logits, weights = opened(gpt, ids, {(1, head): before for head in range(N_HEAD)})
    with patch(gpt, 1, before):
        assert torch.allclose(gpt(ids), logits, atol=1e-5)
        assert torch.allclose(gpt.attention_weights(ids), weights, atol=1e-5)
    with ablate(gpt, 0, 2):
        assert torch.allclose(gpt(ids), opened(gpt, ids, {(0, 2): before * 0})[0], atol=1e-5)


@pytest.mark.parametrize("attend", [divided_at_the_end, pytorchs_layer])
def test_where_no_weights_are_seen_it_says_what_to_write(attend):
    model, ids = model_and_ids(attend)
    with pytest.raises(ValueError, match=r"0 heads were found .* write weights = torch\.softmax"):
        opened(model, ids)


def test_other_numbers_of_heads_are_told():
    model, ids = model_and_ids(DESIGNS["function"])
    with pytest.raises(ValueError, match=r"8 heads were found .* n_head = 3"):
        opened(model, ids, n_head=3)
    with pytest.raises(ValueError, match=r"no \(layer, head\) \(2, 0\)"):
        opened(model, ids, {(2, 0): torch.eye(T)})


@pytest.mark.parametrize("place", [(0, 4), (2, 0), (0, -1)])  # of 2 layers with 2 heads
def test_a_head_that_is_not_there_is_not_left_out_silently(place):
    model = TinyGPT(6, 20, C=4, n_head=2)
    with pytest.raises(ValueError, match=rf"no \(layer, head\) .*{place[1]}\): .* \(1, 1\)"):
        opened(model, torch.arange(5)[None], {place: torch.eye(5)}, n_head=2)
