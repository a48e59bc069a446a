"""Attention modules and blocks, right and wrong, as people write them under four schemes of names.

Each scheme is written out once, below. A design or a bug is a change of that text, so that every
module has the attributes and the lines of real code, and one step of it is another. The parts of
the text that changes replace have names (`ROLES`), and so has what they stand for (`NAMES`).
"""

import ast
import itertools
import linecache
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

C, N_HEAD, BLOCK_SIZE = 32, 4, 64
SCHEMES = ("ours", "nano", "raschka", "llama")


@dataclass(frozen=True)
class Design:
    """A module that is right.

    ``kind`` is "textbook" when every attention in it is softmax(q @ k.T / sqrt(d)) @ v over the
    earlier tokens and blocks are plain pre-norm or post-norm; "different" for any other formula.
    """

    name: str
    build: Callable[[], nn.Module]
    C: int
    n_head: int
    kind: str


@dataclass(frozen=True)
class Bug:
    """A mistake, under each scheme in which it can be made."""

    name: str
    build_by_scheme: dict[str, Callable[[], nn.Module]]
    C: int
    n_head: int


# ---------------------------------------------------------------- ours


class Attention(nn.Module):
    def __init__(self, C, n_head, bias=False):
        super().__init__()
        self.n_head = n_head
        self.query = nn.Linear(C, C, bias=bias)
        self.key = nn.Linear(C, C, bias=bias)
        self.value = nn.Linear(C, C, bias=bias)
        self.proj = nn.Linear(C, C)

    def forward(self, x):
        B, T, C = x.shape
        q = self.query(x)
        k = self.key(x)
        v = self.value(x)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        mask = torch.tril(torch.ones(T, T, dtype=torch.bool))
        scores = scores.masked_fill(~mask, -math.inf)
        weights = torch.softmax(scores, dim=-1)
        out = weights @ v
        out = out.transpose(1, 2).flatten(2)
        return self.proj(out)


class FeedForward(nn.Module):
    def __init__(self, C):
        super().__init__()
        self.wide = nn.Linear(C, 4 * C)
        self.proj = nn.Linear(4 * C, C)

    def forward(self, x):
        return self.proj(torch.relu(self.wide(x)))


class Block(nn.Module):
    def __init__(self, C, n_head):
        super().__init__()
        self.attention = Attention(C, n_head)
        self.feed_forward = FeedForward(C)
        self.norm_1, self.norm_2 = nn.LayerNorm(C), nn.LayerNorm(C)

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        x = x + self.feed_forward(self.norm_2(x))
        return x


class Stack(nn.Module):
    def __init__(self, C, n_head):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(C, n_head) for _ in range(3)])

    def forward(self, x):
        return self.blocks(x)


# ---------------------------------------------------------------- nanoGPT's names


@dataclass
class GPTConfig:
    block_size: int = BLOCK_SIZE
    n_head: int = N_HEAD
    n_embd: int = C
    dropout: float = 0.0
    bias: bool = True
    n_layer: int = 3


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.attn_dropout = nn.Dropout(config.dropout)
        self.resid_dropout = nn.Dropout(config.dropout)
        self.n_head = config.n_head
        self.n_embd = config.n_embd
        size = config.block_size
        self.register_buffer("bias", torch.tril(torch.ones(size, size)).view(1, 1, size, size))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        att = self.attn_dropout(att)
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_dropout(self.c_proj(y))


class LayerNorm(nn.Module):
    def __init__(self, ndim, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(ndim))
        self.bias = nn.Parameter(torch.zeros(ndim)) if bias else None

    def forward(self, input):
        return F.layer_norm(input, self.weight.shape, self.weight, self.bias, 1e-5)


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.gelu = nn.GELU()
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        x = self.c_fc(x)
        x = self.gelu(x)
        x = self.c_proj(x)
        return self.dropout(x)


class GPTBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = LayerNorm(config.n_embd, bias=config.bias)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = LayerNorm(config.n_embd, bias=config.bias)
        self.mlp = MLP(config)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        h = nn.ModuleList([GPTBlock(config) for _ in range(config.n_layer)])
        self.transformer = nn.ModuleDict({"h": h})

    def forward(self, x):
        for block in self.transformer.h:
            x = block(x)
        return x


# ---------------------------------------------------------------- Raschka's names


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        b, num_tokens, _ = x.shape
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)

        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim)
        values = values.view(b, num_tokens, self.num_heads, self.head_dim)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim)

        keys = keys.transpose(1, 2)
        queries = queries.transpose(1, 2)
        values = values.transpose(1, 2)

        attn_scores = queries @ keys.transpose(2, 3)
        mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
        attn_scores.masked_fill_(mask_bool, -torch.inf)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        attn_weights = self.dropout(attn_weights)

        context_vec = attn_weights @ values
        context_vec = context_vec.transpose(1, 2).contiguous().view(b, num_tokens, self.d_out)
        return self.out_proj(context_vec)


class ScaledLayerNorm(nn.Module):
    def __init__(self, emb_dim):
        super().__init__()
        self.eps = 1e-5
        self.scale = nn.Parameter(torch.ones(emb_dim))
        self.shift = nn.Parameter(torch.zeros(emb_dim))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        norm_x = (x - mean) / torch.sqrt(var + self.eps)
        return self.scale * norm_x + self.shift


class GELU(nn.Module):
    def forward(self, x):
        cubed = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x.pow(3))
        return 0.5 * x * (1 + torch.tanh(cubed))


class LayersFeedForward(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(cfg["emb_dim"], 4 * cfg["emb_dim"]),
            GELU(),
            nn.Linear(4 * cfg["emb_dim"], cfg["emb_dim"]),
        )

    def forward(self, x):
        return self.layers(x)


class TransformerBlock(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.att = MultiHeadAttention(
            d_in=cfg["emb_dim"],
            d_out=cfg["emb_dim"],
            context_length=cfg["context_length"],
            num_heads=cfg["n_heads"],
            dropout=cfg["drop_rate"],
            qkv_bias=cfg["qkv_bias"],
        )
        self.ff = LayersFeedForward(cfg)
        self.norm1 = ScaledLayerNorm(cfg["emb_dim"])
        self.norm2 = ScaledLayerNorm(cfg["emb_dim"])
        self.drop_shortcut = nn.Dropout(cfg["drop_rate"])

    def forward(self, x):
        shortcut = x
        x = self.norm1(x)
        x = self.att(x)
        x = self.drop_shortcut(x)
        x = x + shortcut

        shortcut = x
        x = self.norm2(x)
        x = self.ff(x)
        x = self.drop_shortcut(x)
        x = x + shortcut
        return x


class GPTModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.trf_blocks = nn.Sequential(*[TransformerBlock(cfg) for _ in range(cfg["n_layers"])])

    def forward(self, x):
        return self.trf_blocks(x)


# ---------------------------------------------------------------- Llama's names


def repeat_kv(hidden_states, n_rep):
    batch, num_kv_heads, slen, head_dim = hidden_states.shape
    if n_rep == 1:
        return hidden_states
    hidden_states = hidden_states[:, :, None].expand(batch, num_kv_heads, n_rep, slen, head_dim)
    return hidden_states.reshape(batch, num_kv_heads * n_rep, slen, head_dim)


class LlamaAttention(nn.Module):
    def __init__(self, hidden_size, num_heads, num_kv_heads=None, attention_bias=False):
        super().__init__()
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads or num_heads
        self.num_kv_groups = self.num_heads // self.num_kv_heads
        self.head_dim = hidden_size // num_heads
        self.scaling = self.head_dim**-0.5
        kv_size = self.num_kv_heads * self.head_dim
        self.q_proj = nn.Linear(hidden_size, hidden_size, bias=attention_bias)
        self.k_proj = nn.Linear(hidden_size, kv_size, bias=attention_bias)
        self.v_proj = nn.Linear(hidden_size, kv_size, bias=attention_bias)
        self.o_proj = nn.Linear(hidden_size, hidden_size, bias=attention_bias)

    def forward(self, hidden_states):
        bsz, q_len, _ = hidden_states.size()
        query_states = self.q_proj(hidden_states)
        key_states = self.k_proj(hidden_states)
        value_states = self.v_proj(hidden_states)
        query_states = query_states.view(bsz, q_len, self.num_heads, self.head_dim).transpose(1, 2)
        key_states = key_states.view(bsz, q_len, self.num_kv_heads, self.head_dim).transpose(1, 2)
        value_states = value_states.view(bsz, q_len, self.num_kv_heads, self.head_dim)
        value_states = value_states.transpose(1, 2)
        key_states = repeat_kv(key_states, self.num_kv_groups)
        value_states = repeat_kv(value_states, self.num_kv_groups)
        attn_weights = torch.matmul(query_states, key_states.transpose(2, 3)) * self.scaling
        causal_mask = torch.full((q_len, q_len), torch.finfo(attn_weights.dtype).min).triu(1)
        attn_weights = attn_weights + causal_mask.to(attn_weights.dtype)
        attn_weights = nn.functional.softmax(attn_weights, dim=-1, dtype=torch.float32)
        attn_weights = attn_weights.to(query_states.dtype)
        attn_output = torch.matmul(attn_weights, value_states)
        attn_output = attn_output.transpose(1, 2).reshape(bsz, q_len, self.hidden_size)
        return self.o_proj(attn_output)


class LlamaRMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * hidden_states * torch.rsqrt(variance + self.variance_epsilon)


class LlamaMLP(nn.Module):
    def __init__(self, hidden_size, intermediate_size):
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)
        self.act_fn = nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class LlamaDecoderLayer(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.self_attn = LlamaAttention(hidden_size, num_heads)
        self.mlp = LlamaMLP(hidden_size, 3 * hidden_size)
        self.input_layernorm = LlamaRMSNorm(hidden_size)
        self.post_attention_layernorm = LlamaRMSNorm(hidden_size)

    def forward(self, hidden_states):
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states = self.self_attn(hidden_states)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class LlamaModel(nn.Module):
    def __init__(self, hidden_size, num_heads, num_hidden_layers=3):
        super().__init__()
        layers = [LlamaDecoderLayer(hidden_size, num_heads) for _ in range(num_hidden_layers)]
        self.layers = nn.ModuleList(layers)

    def forward(self, hidden_states):
        for decoder_layer in self.layers:
            hidden_states = decoder_layer(hidden_states)
        return hidden_states


# ---------------------------------------------------------------- changes of these texts

PARTS = {
    "ours": {"attention": Attention, "feed_forward": FeedForward, "block": Block, "model": Stack},
    "nano": {
        "attention": CausalSelfAttention,
        "norm": LayerNorm,
        "feed_forward": MLP,
        "block": GPTBlock,
        "model": GPT,
    },
    "raschka": {
        "attention": MultiHeadAttention,
        "norm": ScaledLayerNorm,
        "feed_forward": LayersFeedForward,
        "block": TransformerBlock,
        "model": GPTModel,
    },
    "llama": {
        "attention": LlamaAttention,
        "norm": LlamaRMSNorm,
        "feed_forward": LlamaMLP,
        "block": LlamaDecoderLayer,
        "model": LlamaModel,
    },
}

# What stands in the attention of each scheme; a role that is missing does not exist there.
ROLES = {
    "ours": {
        "query_layer": "self.query = nn.Linear(C, C, bias=bias)",
        "key_layer": "self.key = nn.Linear(C, C, bias=bias)",
        "value_layer": "self.value = nn.Linear(C, C, bias=bias)",
        "proj_layer": "self.proj = nn.Linear(C, C)",
        "init": "self.proj = nn.Linear(C, C)",
        "shape": "B, T, C = x.shape",
        "query": "q = self.query(x)",
        "key": "k = self.key(x)",
        "value": "v = self.value(x)",
        "split_q": "q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)",
        "split_k": "k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)",
        "split_v": "v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)",
        "heads": "v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)",
        "score": "scores = q @ k.mT / math.sqrt(q.shape[-1])",
        "product": "q @ k.mT",
        "scale": " / math.sqrt(q.shape[-1])",
        "mask": "mask = torch.tril(torch.ones(T, T, dtype=torch.bool))",
        "hide": "scores = scores.masked_fill(~mask, -math.inf)",
        "fill": "-math.inf",
        "softmax": "weights = torch.softmax(scores, dim=-1)",
        "axis": "dim=-1",
        "average": "out = weights @ v",
        "merge": "out = out.transpose(1, 2).flatten(2)",
        "output": "return self.proj(out)",
    },
    "nano": {
        "proj_layer": "nn.Linear(config.n_embd, config.n_embd, bias=config.bias)",
        "init": (
            'self.register_buffer("bias", torch.tril(torch.ones(size, '
            "size)).view(1, 1, size, size))"
        ),
        "shape": "B, T, C = x.size()",
        "project": "q, k, v = self.c_attn(x).split(self.n_embd, dim=2)",
        "split_q": "q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)",
        "split_k": "k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)",
        "split_v": "v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)",
        "heads": "v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)",
        "score": "att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))",
        "product": "q @ k.transpose(-2, -1)",
        "scale": " * (1.0 / math.sqrt(k.size(-1)))",
        "hide": 'att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))',
        "fill": 'float("-inf")',
        "softmax": "att = F.softmax(att, dim=-1)",
        "axis": "dim=-1",
        "drop": "att = self.attn_dropout(att)",
        "average": "y = att @ v",
        "merge": "y = y.transpose(1, 2).contiguous().view(B, T, C)",
        "output": "return self.resid_dropout(self.c_proj(y))",
    },
    "raschka": {
        "query_layer": "self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)",
        "key_layer": "self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)",
        "value_layer": "self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)",
        "proj_layer": "self.out_proj = nn.Linear(d_out, d_out)",
        "init": 'self.register_buffer("mask", mask)',
        "shape": "b, num_tokens, _ = x.shape",
        "query": "queries = self.W_query(x)",
        "key": "keys = self.W_key(x)",
        "value": "values = self.W_value(x)",
        "split_q": "queries = queries.view(b, num_tokens, self.num_heads, self.head_dim)",
        "split_k": "keys = keys.view(b, num_tokens, self.num_heads, self.head_dim)",
        "split_v": "values = values.view(b, num_tokens, self.num_heads, self.head_dim)",
        "heads_q": "queries = queries.transpose(1, 2)",
        "heads_k": "keys = keys.transpose(1, 2)",
        "heads_v": "values = values.transpose(1, 2)",
        "heads": "values = values.transpose(1, 2)",
        "score": "attn_scores = queries @ keys.transpose(2, 3)",
        "product": "queries @ keys.transpose(2, 3)",
        "scale": " / keys.shape[-1] ** 0.5",
        "mask": "mask_bool = self.mask.bool()[:num_tokens, :num_tokens]",
        "hide": "attn_scores.masked_fill_(mask_bool, -torch.inf)",
        "fill": "-torch.inf",
        "softmax": "attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)",
        "axis": "dim=-1",
        "drop": "attn_weights = self.dropout(attn_weights)",
        "average": "context_vec = attn_weights @ values",
        "merge": (
            "context_vec = context_vec.transpose(1, 2).contiguous().view(b, num_tokens, self.d_out)"
        ),
        "output": "return self.out_proj(context_vec)",
    },
    "llama": {
        "query_layer": "self.q_proj = nn.Linear(hidden_size, hidden_size, bias=attention_bias)",
        "key_layer": "self.k_proj = nn.Linear(hidden_size, kv_size, bias=attention_bias)",
        "value_layer": "self.v_proj = nn.Linear(hidden_size, kv_size, bias=attention_bias)",
        "proj_layer": "self.o_proj = nn.Linear(hidden_size, hidden_size, bias=attention_bias)",
        "init": "self.o_proj = nn.Linear(hidden_size, hidden_size, bias=attention_bias)",
        "shape": "bsz, q_len, _ = hidden_states.size()",
        "query": "query_states = self.q_proj(hidden_states)",
        "key": "key_states = self.k_proj(hidden_states)",
        "value": "value_states = self.v_proj(hidden_states)",
        "split_q": (
            "query_states = query_states.view(bsz, q_len, "
            "self.num_heads, self.head_dim).transpose(1, 2)"
        ),
        "split_k": (
            "key_states = key_states.view(bsz, q_len, self.num_kv_heads, "
            "self.head_dim).transpose(1, 2)"
        ),
        "split_v": "value_states = value_states.view(bsz, q_len, self.num_kv_heads, self.head_dim)",
        "heads_v": "value_states = value_states.transpose(1, 2)",
        "heads": "value_states = repeat_kv(value_states, self.num_kv_groups)",
        "score": (
            "attn_weights = torch.matmul(query_states, key_states.transpose(2, 3)) * self.scaling"
        ),
        "product": "torch.matmul(query_states, key_states.transpose(2, 3))",
        "scale": " * self.scaling",
        "mask": (
            "causal_mask = torch.full((q_len, q_len), torch.finfo(attn_weights.dtype).min).triu(1)"
        ),
        "hide": "attn_weights = attn_weights + causal_mask.to(attn_weights.dtype)",
        "fill": "torch.finfo(attn_weights.dtype).min",
        "softmax": (
            "attn_weights = nn.functional.softmax(attn_weights, dim=-1, dtype=torch.float32)"
        ),
        "axis": "dim=-1",
        "cast": "attn_weights = attn_weights.to(query_states.dtype)",
        "average": "attn_output = torch.matmul(attn_weights, value_states)",
        "merge": "attn_output = attn_output.transpose(1, 2).reshape(bsz, q_len, self.hidden_size)",
        "output": "return self.o_proj(attn_output)",
    },
}
ALL_ROLES = set().union(*ROLES.values())

# What the new text of a change may name, in braces. {hidden} and {seen} need the line of the mask.
NAMES = {
    "ours": {
        **{name: name for name in ("x", "q", "k", "v", "scores", "weights", "out", "B", "T", "C")},
        "H": "self.n_head",
        "H_kv": "self.n_head",
        "d": "C // self.n_head",
        "proj": "self.proj",
        "query": "self.query",
        "key": "self.key",
        "value": "self.value",
        "hidden": "~mask",
        "seen": "mask",
        "init_C": "C",
        "init_H": "n_head",
    },
    "nano": {
        **{name: name for name in ("x", "q", "k", "v", "B", "T", "C")},
        "scores": "att",
        "weights": "att",
        "out": "y",
        "H": "self.n_head",
        "H_kv": "self.n_head",
        "d": "C // self.n_head",
        "proj": "self.c_proj",
        "hidden": "self.bias[:, :, :T, :T] == 0",
        "seen": "self.bias[:, :, :T, :T]",
        "init_C": "config.n_embd",
        "init_H": "config.n_head",
    },
    "raschka": {
        "x": "x",
        "q": "queries",
        "k": "keys",
        "v": "values",
        "scores": "attn_scores",
        "weights": "attn_weights",
        "out": "context_vec",
        "B": "b",
        "T": "num_tokens",
        "C": "self.d_out",
        "H": "self.num_heads",
        "H_kv": "self.num_heads",
        "d": "self.head_dim",
        "proj": "self.out_proj",
        "query": "self.W_query",
        "key": "self.W_key",
        "value": "self.W_value",
        "hidden": "mask_bool",
        "seen": "~mask_bool",
        "init_C": "d_out",
        "init_H": "num_heads",
    },
    "llama": {
        "x": "hidden_states",
        "q": "query_states",
        "k": "key_states",
        "v": "value_states",
        "scores": "attn_weights",
        "weights": "attn_weights",
        "out": "attn_output",
        "B": "bsz",
        "T": "q_len",
        "C": "self.hidden_size",
        "H": "self.num_heads",
        "H_kv": "self.num_kv_heads",
        "d": "self.head_dim",
        "proj": "self.o_proj",
        "query": "self.q_proj",
        "key": "self.k_proj",
        "value": "self.v_proj",
        "hidden": "causal_mask < 0",
        "seen": "causal_mask == 0",
        "init_C": "hidden_size",
        "init_H": "num_heads",
    },
}

BLOCK_NAMES = {  # the layers of the first half of a block and of the second
    "ours": {
        "norm": ["self.norm_1", "self.norm_2"],
        "layer": ["self.attention", "self.feed_forward"],
    },
    "nano": {"norm": ["self.ln_1", "self.ln_2"], "layer": ["self.attn", "self.mlp"]},
    "raschka": {"norm": ["self.norm1", "self.norm2"], "layer": ["self.att", "self.ff"]},
    "llama": {
        "norm": ["self.input_layernorm", "self.post_attention_layernorm"],
        "layer": ["self.self_attn", "self.mlp"],
    },
}


ADDED = "{x} + {f}"


def half(scheme, i, *, total=ADDED, norm="before", by=None, layer=None):
    """The lines of one half of a block: ``i`` is 0 for the attention, 1 for the feed-forward.

    ``total``: what the half gives, of {x} and of the layer's output {f}. ``norm``: "before" the
    layer, "twice" before it, "after" the sum, on the "stream", "behind" the layer, or "none".
    ``by`` and ``layer``: whose norm and whose layer, as for ``i``.
    """
    n = BLOCK_NAMES[scheme]["norm"][i if by is None else by]
    f = BLOCK_NAMES[scheme]["layer"][i if layer is None else layer]
    before = {"before": 1, "twice": 2, "stream": 1}.get(norm, 0)
    if scheme in ("ours", "nano"):
        inner = f"{n}(" * before + "x" + ")" * before
        lines = [f"x = {inner}"] if norm == "stream" else []
        term = f"{f}(x)" if norm == "stream" else f"{f}({inner})"
        term = f"{n}({term})" if norm == "behind" else term
        result = total.format(x="x", f=term)
        lines.append(f"x = {n}({result})" if norm == "after" else f"x = {result}")
        return "\n        ".join(lines)
    x, old = ("x", "shortcut") if scheme == "raschka" else ("hidden_states", "residual")
    if scheme == "raschka":
        total = total.replace(ADDED, "{f} + {x}")
    kept = [f"{old} = {x}"] if "{x}" in total else []
    normed = [f"{x} = {n}({x})"]
    lines = normed + kept if norm == "stream" else kept + normed * before
    lines += [f"{x} = {f}({x})"] + (normed if norm == "behind" else [])
    lines += ["x = self.drop_shortcut(x)"] if scheme == "raschka" else []
    lines += [f"{x} = {total.format(x=old, f=x)}"] if kept else []
    return "\n        ".join(lines + (normed if norm == "after" else []))


def edited(source, changes, roles, names):
    """The source with each change made in its place; a key of changes is a role or a text of it.

    ``"+role"`` puts lines behind the role. Every old text has to stand in the source once.
    """
    spans = []
    for key, new in changes.items():
        role = key.removeprefix("+")
        if new is None or (new == "" and role in ALL_ROLES - set(roles)):
            continue  # nothing to remove in this scheme
        old = roles[role] if role in ALL_ROLES else role
        old = old.format(**names) if "{" in old else old
        if source.count(old) != 1:
            raise ValueError(f"{source.count(old)} times in the source: {old!r}")
        start, new = source.index(old), new.format(**names)
        end = start + len(old)
        spans.append((end, end, "\n        " + new) if key.startswith("+") else (start, end, new))
    spans.sort()
    for (_, end, _), (start, _, _) in itertools.pairwise(spans):
        if start < end:
            raise ValueError("two changes of the same text")
    for start, end, new in reversed(spans):
        source = source[:start] + new + source[end:]
    return "\n".join(line for line in source.splitlines() if line.strip()) + "\n"


@cache
def sources():
    """The source of every class of this file, by name."""
    text = Path(__file__).read_text(encoding="utf-8")
    lines, tree = text.splitlines(True), ast.parse(text)
    return {
        node.name: "".join(lines[node.lineno - 1 : node.end_lineno])
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }


COUNTER = itertools.count()


def class_of(scheme, wanted, changes, names):
    """The class of a part of a scheme with ``changes`` of the texts, as if typed in a notebook.

    ``names`` replaces what the texts call by name, such as {"FeedForward": another class}.
    """
    namespace = {**globals(), "__name__": "written", **names}
    renewed = set(names)
    for part, cls in PARTS[scheme].items():
        name, source = cls.__name__, sources()[cls.__name__]
        if part in changes and part == "block":
            halves = {"first": half(scheme, 0), "second": half(scheme, 1)}
            change = {halves.get(key, key): new for key, new in changes[part].items()}
            source = edited(source, change, {}, {})
        elif part in changes:
            source = edited(source, changes[part], ROLES[scheme], NAMES[scheme])
        elif not any(f"{other}(" in source for other in renewed):
            source = None  # as it was
        if source and name not in names:
            file = f"<{scheme} {part} {next(COUNTER)}>"
            linecache.cache[file] = (len(source), None, source.splitlines(True), file)
            exec(compile(source, file, "exec"), namespace)
            renewed.add(name)
        if part == wanted:
            return namespace[name]
    raise ValueError(f"{scheme} has no {wanted}")


def build(
    scheme,
    part="attention",
    changes=None,
    names=None,
    n_head=N_HEAD,
    bias=None,
    dropout=0.0,
    block_size=BLOCK_SIZE,
    **options,
):
    """One module of a scheme, in evaluation mode. ``changes``: part -> what becomes of its text."""
    cls = class_of(scheme, part, changes or {}, names or {})
    if scheme == "nano":
        bias = True if bias is None else bias
        config = GPTConfig(block_size, n_head, C, dropout, bias)
        return cls(config).eval()
    if scheme == "raschka" and part == "attention":
        return cls(C, C, block_size, dropout, n_head, qkv_bias=bool(bias)).eval()
    if scheme == "raschka":
        cfg = {"emb_dim": C, "context_length": block_size, "n_heads": n_head, "n_layers": 3}
        return cls({**cfg, "drop_rate": dropout, "qkv_bias": bool(bias)}).eval()
    if part == "attention" and bias is not None:
        options["attention_bias" if scheme == "llama" else "bias"] = bias
    return cls(C, n_head, **options).eval()


# Steps of the changed modules that are more than a line.


def rope(z):
    """Rotate channel i with channel i + d/2 (Llama)."""
    angle = torch.arange(z.shape[-2])[:, None] / 10000 ** torch.linspace(0, 1, z.shape[-1] // 2 + 1)
    cos, sin = angle[:, :-1].cos(), angle[:, :-1].sin()
    a, b = z.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def rope_pairs(z):
    """Rotate channel 2i with channel 2i + 1 (the paper), as complex numbers."""
    T, d = z.shape[-2:]
    angle = torch.arange(T)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    pairs = torch.view_as_complex(z.reshape(*z.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


def distance(T):
    """How far key j lies behind query i."""
    return torch.arange(T)[:, None] - torch.arange(T)


# ---------------------------------------------------------------- right modules of other make


class OneHead(nn.Module):
    def __init__(self, n_embd, head_size, block_size=BLOCK_SIZE):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        T = x.shape[1]
        k = self.key(x)
        q = self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        wei = F.softmax(wei, dim=-1)
        return wei @ self.value(x)


class HeadList(nn.Module):
    def __init__(self, n_embd, num_heads):
        super().__init__()
        self.heads = nn.ModuleList(OneHead(n_embd, n_embd // num_heads) for _ in range(num_heads))
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        num_tokens = x.shape[1]
        keys, queries, values = self.W_key(x), self.W_query(x), self.W_value(x)
        attn_scores = queries @ keys.transpose(1, 2)
        attn_scores.masked_fill_(self.mask.bool()[:num_tokens, :num_tokens], -torch.inf)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        return self.dropout(attn_weights) @ values


class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)


class TorchAttention(nn.Module):
    """nn.MultiheadAttention; ``how`` says which of its arguments hold the mask."""

    def __init__(self, d_model, nhead, how="bool", batch_first=True, **options):
        super().__init__()
        self.how = how
        self.attn = nn.MultiheadAttention(d_model, nhead, batch_first=batch_first, **options)

    def forward(self, x):
        T = x.size(0) if self.how == "size of axis 0" else x.size(1)
        mask = torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)
        if self.how == "float":
            mask = nn.Transformer.generate_square_subsequent_mask(T)
            return self.attn(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0]
        if self.how == "sequence first":
            x = x.transpose(0, 1)
            return self.attn(x, x, x, attn_mask=mask)[0].transpose(0, 1)
        return self.attn(x, x, x, attn_mask=mask)[0]


class TorchLayer(nn.Module):
    def __init__(self, d_model, nhead, norm_first):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(
            d_model, nhead, 4 * d_model, activation="gelu", batch_first=True, norm_first=norm_first
        )

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1))
        return self.layer(x, src_mask=mask, is_causal=True)


class LensAttention(nn.Module):
    """A matrix for each head, as in TransformerLens."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        d_head = d_model // n_heads
        self.d_head = d_head
        for name in "QKV":
            weight = torch.randn(n_heads, d_model, d_head) / math.sqrt(d_model)
            setattr(self, f"W_{name}", nn.Parameter(weight))
            setattr(self, f"b_{name}", nn.Parameter(torch.zeros(n_heads, d_head)))
        self.W_O = nn.Parameter(torch.randn(n_heads, d_head, d_model) / math.sqrt(d_model))
        self.b_O = nn.Parameter(torch.zeros(d_model))
        self.register_buffer("IGNORE", torch.tensor(-1e5))

    def forward(self, resid):
        q = torch.einsum("bpm,hmd->bphd", resid, self.W_Q) + self.b_Q
        k = torch.einsum("bpm,hmd->bphd", resid, self.W_K) + self.b_K
        v = torch.einsum("bpm,hmd->bphd", resid, self.W_V) + self.b_V
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / self.d_head**0.5
        above = torch.triu(torch.ones(scores.shape[-2:]), diagonal=1).bool()
        pattern = scores.masked_fill(above, self.IGNORE).softmax(-1)
        z = torch.einsum("bhqk,bkhd->bqhd", pattern, v)
        return torch.einsum("bqhd,hdm->bqm", z, self.W_O) + self.b_O


class NeoXAttention(nn.Module):
    """Queries, keys and values lie side by side in each head."""

    def __init__(self, hidden_size, n_head):
        super().__init__()
        self.n_head, self.head_size = n_head, hidden_size // n_head
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states):
        B, T, C = hidden_states.shape
        qkv = self.query_key_value(hidden_states).view(B, T, self.n_head, 3 * self.head_size)
        query, key, value = qkv.transpose(1, 2).chunk(3, dim=-1)
        out = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.dense(out.transpose(1, 2).reshape(B, T, C))


class TimmAttention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads, self.scale = num_heads, (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        q = q * self.scale
        attn = q @ k.transpose(-2, -1) + torch.full((N, N), -torch.inf).triu(1)
        return self.proj((attn.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, N, C))


class FoldedAttention(nn.Module):
    """Heads folded into the batch, three axes, torch.bmm (fairseq, OPT)."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, embed_dim // num_heads
        self.scaling = self.head_dim**-0.5
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def _shape(self, z):
        B, T, _ = z.shape
        z = z.view(B, T, self.num_heads, self.head_dim).transpose(1, 2).contiguous()
        return z.view(B * self.num_heads, T, self.head_dim)

    def forward(self, x):
        B, T, C = x.shape
        q = self._shape(self.q_proj(x) * self.scaling)
        k, v = self._shape(self.k_proj(x)), self._shape(self.v_proj(x))
        attn_weights = torch.baddbmm(torch.full((T, T), -1e9).triu(1), q, k.transpose(1, 2))
        attn_output = torch.bmm(F.softmax(attn_weights, dim=-1), v)
        attn_output = attn_output.view(B, self.num_heads, T, self.head_dim).transpose(1, 2)
        return self.out_proj(attn_output.reshape(B, T, C))


class CachedAttention(FoldedAttention):
    """One token at a time, with the keys and values of earlier ones in a list."""

    def forward(self, x):
        B, T, C = x.shape
        keys, values, outs = [], [], []
        for t in range(T):
            now = x[:, t : t + 1]
            q = self._shape(self.q_proj(now))
            keys.append(self._shape(self.k_proj(now)))
            values.append(self._shape(self.v_proj(now)))
            k, v = torch.cat(keys, dim=1), torch.cat(values, dim=1)
            weights = torch.softmax(q @ k.mT * self.scaling, dim=-1)
            outs.append((weights @ v).view(B, 1, C))
        return self.out_proj(torch.cat(outs, dim=1))


class FlashAttention(FoldedAttention):
    """Keys in blocks of four, with a running maximum and a running sum."""

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (self._shape(f(x)) for f in (self.q_proj, self.k_proj, self.v_proj))
        top = torch.full((*q.shape[:2], 1), -1e30)
        total, out = torch.zeros_like(top), torch.zeros_like(q)
        for start in range(0, T, 4):
            scores = q @ k[:, start : start + 4].mT * self.scaling
            later = torch.arange(T)[start : start + 4] > torch.arange(T)[:, None]
            scores = scores.masked_fill(later, -math.inf)
            new = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
            exp, old = torch.exp(scores - new), torch.exp(top - new)
            total = total * old + exp.sum(dim=-1, keepdim=True)
            out = out * old + exp @ v[:, start : start + 4]
            top = new
        out = (out / total).view(B, self.num_heads, T, self.head_dim).transpose(1, 2)
        return self.out_proj(out.reshape(B, T, C))


class WideHeads(nn.Module):
    """Heads larger than C / n_head, as in Gemma; values of another size than keys."""

    def __init__(self, hidden_size, num_heads, head_dim, v_head_dim):
        super().__init__()
        self.num_heads, self.head_dim, self.v_head_dim = num_heads, head_dim, v_head_dim
        self.q_proj = nn.Linear(hidden_size, num_heads * head_dim, bias=False)
        self.k_proj = nn.Linear(hidden_size, num_heads * head_dim, bias=False)
        self.v_proj = nn.Linear(hidden_size, num_heads * v_head_dim, bias=False)
        self.o_proj = nn.Linear(num_heads * v_head_dim, hidden_size, bias=False)

    def forward(self, hidden_states):
        B, T, _ = hidden_states.shape
        q = self.q_proj(hidden_states).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(hidden_states).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(hidden_states).view(B, T, self.num_heads, self.v_head_dim).transpose(1, 2)
        weights = (q @ k.mT * self.head_dim**-0.5).masked_fill(distance(T) < 0, -math.inf)
        out = weights.softmax(dim=-1) @ v
        return self.o_proj(out.transpose(1, 2).reshape(B, T, -1))


class AnnotatedAttention(nn.Module):
    """Four Linear layers in one list, as in the Annotated Transformer."""

    def __init__(self, h, d_model):
        super().__init__()
        self.d_k, self.h = d_model // h, h
        self.linears = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        n, T = x.size(0), x.size(1)
        query, key, value = (
            lin(x).view(n, -1, self.h, self.d_k).transpose(1, 2) for lin in self.linears[:3]
        )
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.d_k)
        scores = scores.masked_fill(torch.ones(1, 1, T, T).tril() == 0, -1e9)
        x = torch.matmul(scores.softmax(dim=-1), value)
        return self.linears[-1](x.transpose(1, 2).contiguous().view(n, -1, self.h * self.d_k))


class ResidualInside(nn.Module):
    """The attention adds its input and norms the sum by itself (the paper's first translations)."""

    def __init__(self, d_model, n_head):
        super().__init__()
        self.n_head, self.d_k = n_head, d_model // n_head
        self.w_qs = nn.Linear(d_model, d_model, bias=False)
        self.w_ks = nn.Linear(d_model, d_model, bias=False)
        self.w_vs = nn.Linear(d_model, d_model, bias=False)
        self.fc = nn.Linear(d_model, d_model, bias=False)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-6)

    def forward(self, x):
        residual, (B, T, _) = x, x.shape
        q = self.w_qs(x).view(B, T, self.n_head, self.d_k).transpose(1, 2)
        k = self.w_ks(x).view(B, T, self.n_head, self.d_k).transpose(1, 2)
        v = self.w_vs(x).view(B, T, self.n_head, self.d_k).transpose(1, 2)
        attn = torch.matmul(q / self.d_k**0.5, k.transpose(2, 3))
        attn = F.softmax(attn.masked_fill(torch.ones(T, T).tril() == 0, -1e9), dim=-1)
        out = self.fc(torch.matmul(attn, v).transpose(1, 2).contiguous().view(B, T, -1))
        return self.layer_norm(out + residual)


class HalfInside(nn.Module):
    """Takes and gives float32, and computes in bfloat16."""

    def __init__(self, C, n_head):
        super().__init__()
        self.attention = Attention(C, n_head).bfloat16()

    def forward(self, x):
        return self.attention(x.bfloat16()).to(x.dtype)


class GatedFeedForward(nn.Module):
    def __init__(self, size):
        super().__init__()
        size = size["emb_dim"] if isinstance(size, dict) else size
        self.fc1 = nn.Linear(size, 3 * size, bias=False)
        self.fc2 = nn.Linear(size, 3 * size, bias=False)
        self.fc3 = nn.Linear(3 * size, size, bias=False)

    def forward(self, x):
        return self.fc3(F.silu(self.fc1(x)) * self.fc2(x))


class TokenNorm(nn.Module):
    """Not layer norm: over the tokens of a sequence."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, x):
        mean, var = x.mean(dim=1, keepdim=True), x.var(dim=1, keepdim=True)
        return self.weight * (x - mean) / torch.sqrt(var + 1e-5) + self.bias


class BatchNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.BatchNorm1d(size)

    def forward(self, x):
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


class TokenConv(nn.Conv1d):
    """In place of a Linear layer: sees the token before and the token after as well."""

    def __init__(self, size, out, bias=True):
        super().__init__(size, out, kernel_size=3, padding=1, bias=bias)

    def forward(self, x):
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class MaskOnItself(TorchAttention):
    """nn.MultiheadAttention with a mask in which True means: may attend."""

    def forward(self, x):
        T = x.size(1)
        return self.attn(x, x, x, attn_mask=torch.ones(T, T, dtype=torch.bool).tril())[0]


class NoMask(TorchAttention):
    def forward(self, x):
        return self.attn(x, x, x)[0]


class OnlyIsCausal(TorchAttention):
    def forward(self, x):
        return self.attn(x, x, x, is_causal=True)[0]


# ---------------------------------------------------------------- lists


def halves_of(scheme, halves):
    """Changes of a block: its first and its second half by what `half` calls them."""
    keys = ("first", "second")
    return {
        key: half(scheme, i, **how)
        for i, (key, how) in enumerate(zip(keys, halves, strict=True))
        if how
    }


def of_each(every, own, scheme, where, halves=None):
    """What `build` takes as changes."""
    changes = {**(every or {}), **own.get(scheme, {})}
    if halves:
        changes |= halves_of(scheme, halves)
    return {where: changes} if changes else {}


def inside_model(scheme, changes):
    """A model of three blocks whose second one is changed."""
    model = build(scheme, "model")
    blocks = {
        "ours": lambda: model.blocks,
        "nano": lambda: model.transformer.h,
        "raschka": lambda: model.trf_blocks,
        "llama": lambda: model.layers,
    }[scheme]()
    blocks[1] = build(scheme, "block", changes)
    return model.eval()


def designs(
    name,
    kind,
    every=None,
    *,
    schemes=SCHEMES,
    part="attention",
    where="attention",
    halves=None,
    names=None,
    n_head=N_HEAD,
    dtype=None,
    options=None,
    **own,
):
    """One design under each scheme: ``own`` holds the changes that differ from ``every``."""

    def builder(scheme):
        changes = of_each(every, own, scheme, where, halves)
        build_it = partial(
            build,
            scheme,
            part,
            changes,
            (names or {}).get(scheme),
            n_head=n_head,
            **(options or {}),
        )
        return build_it if dtype is None else lambda: build_it().to(dtype)

    return [Design(f"{name}, {s}", builder(s), C, n_head, kind) for s in schemes]


def design(name, kind, make, n_head=N_HEAD):
    return Design(name, lambda: make().eval(), C, n_head, kind)


SDPA = {
    **dict.fromkeys(("score", "mask", "hide", "softmax", "drop", "cast"), ""),
    "average": "{out} = F.scaled_dot_product_attention({q}, {k}, {v}, is_causal=True)",
}
POST = ({"norm": "after"}, {"norm": "after"})
OWN_SOFTMAX = """{weights} = torch.exp({scores} - {scores}.max(dim=-1, keepdim=True).values)
        {weights} = {weights} / {weights}.sum(dim=-1, keepdim=True)"""
LOOP = """{out} = torch.empty_like({q})
        for h in range({q}.shape[1]):
            for t in range({T}):
                row = {k}[:, h, : t + 1] @ {q}[:, h, t, :, None] / {k}.shape[-1] ** 0.5
                {out}[:, h, t] = (torch.softmax(row, dim=1) * {v}[:, h, : t + 1]).sum(dim=1)"""


RMS_AND_SWIGLU = {
    "ours": {"FeedForward": GatedFeedForward},
    "nano": {
        "LayerNorm": lambda ndim, bias: nn.RMSNorm(ndim),
        "MLP": lambda config: LlamaMLP(config.n_embd, 3 * config.n_embd),
    },
    "raschka": {"ScaledLayerNorm": nn.RMSNorm, "LayersFeedForward": GatedFeedForward},
}
TWO_NORMS, TWO_RMS = "nn.LayerNorm(C), nn.LayerNorm(C)", "nn.RMSNorm(C), nn.RMSNorm(C)"
WITH_DROPOUT = {  # for the schemes whose texts have no dropout layers
    "ours": {
        "+init": "self.dropout = nn.Dropout(0.2)",
        "+softmax": "weights = self.dropout(weights)",
        "output": "return self.dropout(self.proj(out))",
    },
    "llama": {"+softmax": "attn_weights = F.dropout(attn_weights, p=0.2, training=self.training)"},
}
PARALLEL = {
    "ours": "h = self.norm_1(x)\n        x = x + self.attention(h) + self.feed_forward(h)",
    "nano": "h = self.ln_1(x)\n        x = x + self.attn(h) + self.mlp(h)",
    "raschka": "h = self.norm1(x)\n        x = x + self.drop_shortcut(self.att(h) + self.ff(h))",
    "llama": (
        "residual = hidden_states\n"
        "        hidden_states = self.input_layernorm(hidden_states)\n"
        "        hidden_states = self.self_attn(hidden_states) + self.mlp(hidden_states)\n"
        "        hidden_states = residual + hidden_states"
    ),
}

DESIGNS = [
    # ------------------------------------------------------------ textbook: attention
    *designs("multi-head", "textbook"),
    *designs("multi-head with biases", "textbook", options={"bias": True}),
    *designs(
        "multi-head without a bias",
        "textbook",
        options={"bias": False},
        ours={"proj_layer": "self.proj = nn.Linear(C, C, bias=False)"},
        raschka={"proj_layer": "self.out_proj = nn.Linear(d_out, d_out, bias=False)"},
    ),
    *designs("multi-head by sdpa", "textbook", SDPA),
    *designs("multi-head by a loop", "textbook", {**SDPA, "average": LOOP}),
    *designs("one head", "textbook", n_head=1),
    *designs("two heads", "textbook", n_head=2),
    *designs("dropout in eval", "textbook", **WITH_DROPOUT, options={"dropout": 0.2}),
    *designs(
        "own softmax",
        "textbook",
        {"softmax": OWN_SOFTMAX},
        ours={"softmax": OWN_SOFTMAX.replace("({scores}", "(scores", 1)},
        raschka={
            "score": "attn_scores = queries @ keys.transpose(2, 3) / keys.shape[-1] ** 0.5",
            "softmax": OWN_SOFTMAX,
        },
    ),
    *designs(
        "queries scaled",
        "textbook",
        {"scale": "", "+heads": "{q} = {q} / math.sqrt({q}.shape[-1])"},
    ),
    *designs(
        "queries and keys scaled",
        "textbook",
        {
            "scale": "",
            "+heads": "{q}, {k} = {q} / {q}.shape[-1] ** 0.25, {k} / {k}.shape[-1] ** 0.25",
        },
    ),
    *designs("hidden scores -1e9", "textbook", {"fill": "-1e9"}),
    *designs(
        "einsum",
        "textbook",
        {
            "product": "torch.einsum('bhid,bhjd->bhij', {q}, {k})",
            "average": "{out} = torch.einsum('bhij,bhjd->bhid', {weights}, {v})",
        },
    ),
    *designs(
        "fixed block_size of 8",
        "textbook",
        schemes=("nano", "raschka"),
        options={"block_size": 8},
        nano={"+shape": "assert T <= self.bias.size(-1), 'longer than block_size'"},
        raschka={"+shape": "assert num_tokens <= len(self.mask), 'longer than context_length'"},
    ),
    design("Head, ours", "textbook", lambda: OneHead(C, 8), n_head=1),
    design("CausalAttention, raschka", "textbook", lambda: CausalAttention(C, 8, 64, 0.1), 1),
    design("list of heads, nano", "textbook", lambda: HeadList(C, N_HEAD)),
    design(
        "list of heads without projection, raschka",
        "textbook",
        lambda: MultiHeadAttentionWrapper(C, 8, 64, 0.1, N_HEAD),
    ),
    design("nn.MultiheadAttention", "textbook", lambda: TorchAttention(C, N_HEAD)),
    design("nn.MultiheadAttention, -inf", "textbook", lambda: TorchAttention(C, N_HEAD, "float")),
    design(
        "nn.MultiheadAttention, sequence first",
        "textbook",
        lambda: TorchAttention(C, N_HEAD, "sequence first", batch_first=False),
    ),
    design("a matrix for each head", "textbook", lambda: LensAttention(C, N_HEAD)),
    design("qkv interleaved per head", "textbook", lambda: NeoXAttention(C, N_HEAD)),
    design("qkv by permute", "textbook", lambda: TimmAttention(C, N_HEAD)),
    design("heads in the batch", "textbook", lambda: FoldedAttention(C, N_HEAD)),
    design("token by token", "textbook", lambda: CachedAttention(C, N_HEAD)),
    design("running softmax", "textbook", lambda: FlashAttention(C, N_HEAD)),
    design("wide heads", "textbook", lambda: WideHeads(C, N_HEAD, 12, 6)),
    design("list of Linear layers", "textbook", lambda: AnnotatedAttention(N_HEAD, C)),
    # ------------------------------------------------------------ textbook: blocks
    *designs("pre-norm block", "textbook", part="block"),
    *designs("post-norm block", "textbook", part="block", where="block", halves=POST),
    *designs("pre-norm block by sdpa", "textbook", SDPA, part="block"),
    *designs(
        "block with dropout in eval",
        "textbook",
        part="block",
        schemes=("nano", "raschka"),
        options={"dropout": 0.2},
    ),
    *designs(
        "block with GELU",
        "textbook",
        part="block",
        where="feed_forward",
        schemes=("ours",),
        ours={"torch.relu(self.wide(x))": "F.gelu(self.wide(x))"},
    ),
    *designs(
        "block with RMS norm and SwiGLU",
        "textbook",
        part="block",
        where="block",
        schemes=("ours", "nano", "raschka"),
        names=RMS_AND_SWIGLU,
        ours={TWO_NORMS: TWO_RMS},
    ),
    *designs(
        "post-norm block with RMS norm and SwiGLU",
        "textbook",
        part="block",
        where="block",
        schemes=("ours", "nano", "raschka"),
        names=RMS_AND_SWIGLU,
        halves=POST,
        ours={TWO_NORMS: TWO_RMS},
    ),
    *designs("model of three blocks", "textbook", part="model"),
    design("nn.TransformerEncoderLayer, pre", "textbook", lambda: TorchLayer(C, N_HEAD, True)),
    design("nn.TransformerEncoderLayer, post", "textbook", lambda: TorchLayer(C, N_HEAD, False)),
    # ------------------------------------------------------------ right, by another formula
    *designs(
        "LayerNorm inside",
        "different",
        {"+init": "self.norm = nn.LayerNorm({init_C})", "+shape": "{x} = self.norm({x})"},
    ),
    *designs(
        "learned positions inside",
        "different",
        {
            "+init": "self.position = nn.Embedding(64, {init_C})",
            "+shape": "{x} = {x} + self.position(torch.arange({T}))",
        },
    ),
    *designs(
        "gate on the output",
        "different",
        {
            "+init": "self.gate = nn.Linear({init_C}, {init_C})",
            "+merge": "{out} = {out} * torch.sigmoid(self.gate({x}))",
        },
    ),
    *designs("bfloat16", "different", dtype=torch.bfloat16),
    *designs("bfloat16 by sdpa", "different", SDPA, dtype=torch.bfloat16),
    *designs("float16", "different", dtype=torch.float16),
    *designs("bfloat16 block", "different", part="block", dtype=torch.bfloat16),
    design("bfloat16 inside", "different", lambda: HalfInside(C, N_HEAD)),
    design("residual and norm inside", "different", lambda: ResidualInside(C, N_HEAD)),
    design(
        "nn.MultiheadAttention, add_zero_attn",
        "different",
        lambda: TorchAttention(C, N_HEAD, add_zero_attn=True),
    ),
    *designs(
        "parallel block",
        "different",
        part="block",
        where="block",
        **{scheme: {"first": "", "second": text} for scheme, text in PARALLEL.items()},
    ),
]


def bug(
    name,
    every=None,
    *,
    base=None,
    schemes=SCHEMES,
    part="attention",
    where="attention",
    halves=None,
    names=None,
    options=None,
    **own,
):
    """One bug under each scheme. ``base``: the changes that the right module has as well."""
    wrong = {}
    for scheme in schemes:
        changes = of_each({**(base or {}), **(every or {})}, own, scheme, where, halves)
        if part == "model":
            wrong[scheme] = partial(inside_model, scheme, changes)
            continue
        own_names = (names or {}).get(scheme)
        wrong[scheme] = partial(build, scheme, part, changes, own_names, **(options or {}))
    return Bug(name, wrong, C, N_HEAD)


def torch_bug(name, make):
    """A bug in the use of nn.MultiheadAttention, which has its own names."""
    return Bug(name, {"torch": lambda: make().eval()}, C, N_HEAD)


def split_as(text, which="qkv"):
    """All of q, k, v (or some) split into heads by another text, which begins with a dot."""
    changes = {f"split_{z}": f"{{{z}}} = {{{z}}}" + text for z in which}
    if "k" in which:
        for z in "kv":  # Llama's keys and values may have fewer heads
            changes[f"split_{z}"] = changes[f"split_{z}"].replace("{H}", "{H_kv}")
    return changes | {f"heads_{z}": "" for z in which}


NO_MASK = {"mask": "", "hide": ""}
NANO_TRIL = "torch.tril(torch.ones(size, size))"
LLAMA_TRIU = ".triu(1)"
BLOCK = {"part": "block", "where": "block"}

BUGS = [
    # ------------------------------------------------------------ the scale
    bug("no scale", {"scale": ""}),
    bug("scale by √C", {"scale": " / math.sqrt({C})"}),
    bug("scale by head_size", {"scale": " / {k}.shape[-1]"}),
    bug("multiplied by √head_size", {"scale": " * math.sqrt({k}.shape[-1])"}),
    bug("scale by √T", {"scale": " / math.sqrt({k}.shape[-2])"}),
    bug("scale by √n_head", {"scale": " / math.sqrt({H})"}),
    bug("scaled twice", {"+heads": "{q} = {q} / math.sqrt({q}.shape[-1])"}),
    bug(
        "scale after the softmax",
        {"scale": "", "+softmax": "{weights} = {weights} / math.sqrt({k}.shape[-1])"},
    ),
    # ------------------------------------------------------------ the softmax
    bug("softmax over queries", {"axis": "dim=-2"}),
    bug("softmax over heads", {"axis": "dim=1"}),
    bug("softmax twice", {"+softmax": "{weights} = torch.softmax({weights}, dim=-1)"}),
    bug(
        "no softmax",
        {"softmax": ""},
        ours={"softmax": "weights = scores"},
        raschka={"softmax": "attn_weights = attn_scores / keys.shape[-1] ** 0.5"},
    ),
    bug(
        "no softmax, hidden scores 0",
        {"softmax": "", "hide": "{scores} = {scores}.masked_fill({hidden}, 0.0)"},
        ours={"softmax": "weights = scores"},
        raschka={"softmax": "attn_weights = attn_scores / keys.shape[-1] ** 0.5"},
    ),
    # ------------------------------------------------------------ the mask
    bug("no mask", NO_MASK),
    bug(
        "mask inverted",
        ours={"hide": "scores = scores.masked_fill(mask, -math.inf)"},
        nano={"hide": 'att = att.masked_fill(self.bias[:, :, :T, :T] == 1, float("-inf"))'},
        raschka={"hide": "attn_scores.masked_fill_(~mask_bool, -torch.inf)"},
        llama={LLAMA_TRIU: ".tril()"},
    ),
    bug(
        "mask one too far",
        ours={"mask": "mask = torch.tril(torch.ones(T, T, dtype=torch.bool), diagonal=1)"},
        nano={NANO_TRIL: "torch.tril(torch.ones(size, size), diagonal=1)"},
        raschka={"diagonal=1": "diagonal=2"},
        llama={LLAMA_TRIU: ".triu(2)"},
    ),
    bug(
        "mask one too strict",
        ours={"mask": "mask = torch.tril(torch.ones(T, T, dtype=torch.bool), diagonal=-1)"},
        nano={NANO_TRIL: "torch.tril(torch.ones(size, size), diagonal=-1)"},
        raschka={"diagonal=1": "diagonal=0"},
        llama={LLAMA_TRIU: ".triu(0)"},
    ),
    bug(
        "mask transposed",
        ours={"mask": "mask = torch.triu(torch.ones(T, T, dtype=torch.bool))"},
        nano={NANO_TRIL: "torch.triu(torch.ones(size, size))"},
        raschka={"torch.triu(": "torch.tril(", "diagonal=1": "diagonal=-1"},
        llama={LLAMA_TRIU: ".tril(-1)"},
    ),
    *(
        bug(
            f"hidden scores {fill}",
            {"fill": fill},
            llama={"fill": fill} if fill != "0.0" else {"fill": None, "hide": zeroed},
        )
        for zeroed in ["attn_weights = attn_weights * (causal_mask == 0)"]
        for fill in ("0.0", "1e-9", "-1.0")
    ),
    bug(
        "mask after the softmax",
        {"hide": "", "+softmax": "{weights} = {weights}.masked_fill({hidden}, 0.0)"},
    ),
    bug(
        "mask added as 1 and 0",
        {"hide": "{scores} = {scores} + ({seen})"},
        raschka={"hide": "attn_scores = attn_scores + (~mask_bool)"},
    ),
    bug(
        "whole mask",
        schemes=("nano", "raschka"),
        nano={"hide": 'att = att.masked_fill(self.bias == 0, float("-inf"))'},
        raschka={"mask": "mask_bool = self.mask.bool()"},
    ),
    # ------------------------------------------------------------ PyTorch's function
    bug(
        "sdpa without is_causal",
        {"average": "{out} = F.scaled_dot_product_attention({q}, {k}, {v})"},
        base=SDPA,
    ),
    bug(
        "sdpa with the mask reversed",
        {
            "average": (
                "hidden = torch.triu(torch.ones({T}, {T}, dtype=torch.bool), diagonal=1)\n"
                "        {out} = F.scaled_dot_product_attention({q}, {k}, {v}, attn_mask=hidden)"
            )
        },
        base=SDPA,
    ),
    bug("sdpa and scale", {"+heads": "{q} = {q} / math.sqrt({q}.shape[-1])"}, base=SDPA),
    bug(
        "sdpa with scale 1",
        {"average": SDPA["average"].replace("=True", "=True, scale=1.0")},
        base=SDPA,
    ),
    bug(
        "sdpa on axes (B, T, heads, d)",
        {**split_as(".view({B}, {T}, {H}, {d})"), "merge": "{out} = {out}.reshape({B}, {T}, {C})"},
        base=SDPA,
    ),
    # ------------------------------------------------------------ queries, keys, values
    bug(
        "roles of q and k swapped, mask transposed",
        {"product": "{k} @ {q}.transpose(-2, -1)"},
        ours={"mask": "mask = torch.tril(torch.ones(T, T, dtype=torch.bool)).mT"},
        nano={"hide": 'att = att.masked_fill(self.bias[:, :, :T, :T].mT == 0, float("-inf"))'},
        raschka={"hide": "attn_scores.masked_fill_(mask_bool.T, -torch.inf)"},
        llama={LLAMA_TRIU: ".triu(1).T"},
    ),
    bug("q and k swapped", {"product": "{k} @ {q}.transpose(-2, -1)"}),
    bug("keys used as queries", {"product": "{k} @ {k}.transpose(-2, -1)"}),
    bug(
        "one layer for q and k",
        ours={"key_layer": "self.key = self.query"},
        nano={
            "3 * config.n_embd": "2 * config.n_embd",
            "project": "k, v = self.c_attn(x).split(self.n_embd, dim=2)",
            "split_q": "q = k",
        },
        raschka={"key_layer": "self.W_key = self.W_query"},
        llama={"key_layer": "self.k_proj = self.q_proj"},
    ),
    bug("queries are x", {"query": "{q} = {x}"}, nano={"query": None, "+project": "q = x"}),
    bug(
        "keys from the query layer",
        {"key": "{k} = {query}({x})"},
        nano={"key": None, "+project": "k = q"},
    ),
    bug(
        "values are x",
        {"value": "{v} = {x}", "value_layer": ""},
        nano={
            "value": None,
            "3 * config.n_embd": "2 * config.n_embd",
            "project": "(q, k), v = self.c_attn(x).split(self.n_embd, dim=2), x",
        },
    ),
    bug("value layer unused", {"value": "{v} = {x}"}, nano={"value": None, "+project": "v = x"}),
    bug(
        "values from the key layer",
        {"value": "{v} = {key}({x})"},
        nano={"value": None, "+project": "v = k"},
    ),
    bug("keys averaged", {"average": "{out} = {weights} @ {k}"}),
    bug("weights transposed", {"average": "{out} = {weights}.transpose(-2, -1) @ {v}"}),
    bug("keys not transposed", {"product": "{q} @ {k}"}),
    bug(
        "fused layer split as k, q, v",
        schemes=("nano",),
        nano={"project": "k, q, v = self.c_attn(x).split(self.n_embd, dim=2)"},
    ),
    bug(
        "fused layer split as v, k, q",
        schemes=("nano",),
        nano={"project": "v, k, q = self.c_attn(x).split(self.n_embd, dim=2)"},
    ),
    bug(
        "fused layer split per head",
        schemes=("nano",),
        nano={
            "project": (
                "qkv = self.c_attn(x).view(B, T, self.n_head, 3 * (C // self.n_head))\n"
                "        q, k, v = qkv.transpose(1, 2).chunk(3, dim=-1)"
            ),
            "split_q": "",
            "split_k": "",
            "split_v": "",
        },
    ),
    # ------------------------------------------------------------ heads
    bug("heads split by view", split_as(".reshape({B}, {H}, {T}, {d})")),
    bug("only values split by view", split_as(".reshape({B}, {H}, {T}, {d})", "v")),
    bug("heads merged by view", {"merge": "{out} = {out}.reshape({B}, {T}, {C})"}),
    bug(
        "heads split and merged by view",
        {
            **split_as(".reshape({B}, {H}, {T}, {d})"),
            "merge": "{out} = {out}.reshape({B}, {T}, {C})",
        },
    ),
    bug("interleaved split", split_as(".view({B}, {T}, {d}, {H}).permute(0, 3, 1, 2)")),
    bug("interleaved merge", {"merge": "{out} = {out}.permute(0, 2, 3, 1).reshape({B}, {T}, {C})"}),
    bug(
        "heads reversed in the merge",
        {"merge": "{out} = {out}.flip(1).transpose(1, 2).reshape({B}, {T}, {C})"},
    ),
    bug(
        "one large head",
        split_as(".view({B}, {T}, 1, {C}).transpose(1, 2)"),
        llama={"scale": " / math.sqrt(self.hidden_size)"},
    ),
    bug(
        "heads averaged",
        {"merge": "{out} = {out}.mean(dim=1)"},
        ours={"proj_layer": "self.proj = nn.Linear(C // n_head, C)"},
        nano={"proj_layer": "nn.Linear(config.n_embd // config.n_head, config.n_embd)"},
        raschka={"proj_layer": "self.out_proj = nn.Linear(d_out // num_heads, d_out)"},
        llama={"proj_layer": "self.o_proj = nn.Linear(self.head_dim, hidden_size, bias=False)"},
    ),
    bug("batch and tokens mixed", split_as(".reshape({T}, {B}, {H}, {d}).permute(1, 2, 0, 3)")),
    bug(
        "merged by view after transpose",
        {"merge": "{out} = {out}.transpose(1, 2).view({B}, {T}, {C})"},
    ),
    # ------------------------------------------------------------ the output projection
    bug("output projection forgotten", {"output": "return {out}"}),
    bug("output projection twice", {"output": "return {proj}({proj}({out}))"}),
    bug(
        "output projection per head",
        {
            "merge": "{out} = {proj}({out}).transpose(1, 2).reshape({B}, {T}, {C})",
            "output": "return {out}",
        },
        ours={"proj_layer": "self.proj = nn.Linear(C // n_head, C // n_head)"},
        nano={"proj_layer": "nn.Linear(*[config.n_embd // config.n_head] * 2)"},
        raschka={"proj_layer": "self.out_proj = nn.Linear(self.head_dim, self.head_dim)"},
        llama={"proj_layer": "self.o_proj = nn.Linear(self.head_dim, self.head_dim, bias=False)"},
    ),
    # ------------------------------------------------------------ dropout and gradients
    bug("dropout in eval", {"+softmax": "{weights} = F.dropout({weights}, 0.1)"}),
    bug("weights detached", {"+softmax": "{weights} = {weights}.detach()"}),
    bug(
        "queries without gradient",
        ours={"query": "with torch.no_grad():\n            q = self.query(x)"},
        nano={
            "project": (
                "with torch.no_grad():\n"
                "            q = self.c_attn(x)[:, :, : self.n_embd]\n"
                "        _, k, v = self.c_attn(x).split(self.n_embd, dim=2)"
            )
        },
        raschka={"query": "with torch.no_grad():\n            queries = self.W_query(x)"},
        llama={
            "query": "with torch.no_grad():\n            query_states = self.q_proj(hidden_states)"
        },
    ),
    # ------------------------------------------------------------ positions, groups
    bug(
        "RoPE on queries only",
        {"+heads": "{q} = rope({q})"},
        base={"+heads": "{q}, {k} = rope({q}), rope({k})"},
    ),
    bug(
        "RoPE on values as well",
        {"+heads": "{q}, {k}, {v} = rope({q}), rope({k}), rope({v})"},
        base={"+heads": "{q}, {k} = rope({q}), rope({k})"},
    ),
    bug(
        "RoPE along the heads",
        {
            "+heads": (
                "{q} = rope({q}.transpose(1, 2)).transpose(1, 2)\n"
                "        {k} = rope({k}.transpose(1, 2)).transpose(1, 2)"
            )
        },
        base={"+heads": "{q}, {k} = rope({q}), rope({k})"},
    ),
    bug(
        "groups tiled",
        schemes=("llama",),
        options={"num_kv_heads": 2},
        names={"llama": {"repeat_kv": lambda z, n: z.repeat(1, n, 1, 1)}},
    ),
    # ------------------------------------------------------------ nn.MultiheadAttention
    torch_bug("batch_first forgotten", lambda: TorchAttention(C, N_HEAD, batch_first=False)),
    torch_bug(
        "batch_first forgotten, mask of size B",
        lambda: TorchAttention(C, N_HEAD, "size of axis 0", batch_first=False),
    ),
    torch_bug("mask of nn.MultiheadAttention inverted", lambda: MaskOnItself(C, N_HEAD)),
    torch_bug("nn.MultiheadAttention without mask", lambda: NoMask(C, N_HEAD)),
    torch_bug("is_causal without attn_mask", lambda: OnlyIsCausal(C, N_HEAD)),
    # ------------------------------------------------------------ blocks
    bug("no residual around attention", **BLOCK, halves=({"total": "{f}"}, None)),
    bug("no residual around the feed-forward", **BLOCK, halves=(None, {"total": "{f}"})),
    bug("no residual at all", **BLOCK, halves=({"total": "{f}"}, {"total": "{f}"})),
    bug(
        "half residual",
        **BLOCK,
        halves=({"total": "({x} + {f}) / 2"}, {"total": "({x} + {f}) / 2"}),
    ),
    bug("residual twice", **BLOCK, halves=({"total": "{x} + {x} + {f}"}, None)),
    bug("norm twice", **BLOCK, halves=({"norm": "twice"}, None)),
    bug("norm on the stream, attention", **BLOCK, halves=({"norm": "stream"}, None)),
    bug("norm on the stream, feed-forward", **BLOCK, halves=(None, {"norm": "stream"})),
    bug("norm on the stream, both", **BLOCK, halves=({"norm": "stream"}, {"norm": "stream"})),
    bug("norm behind the attention", **BLOCK, halves=({"norm": "behind"}, None)),
    bug("no norm before attention", **BLOCK, halves=({"norm": "none"}, None)),
    bug("no norm before the feed-forward", **BLOCK, halves=(None, {"norm": "none"})),
    bug("one norm for both", **BLOCK, halves=(None, {"by": 0})),
    bug("norms swapped", **BLOCK, halves=({"by": 1}, {"by": 0})),
    bug("feed-forward in place of attention", **BLOCK, halves=({"layer": 1}, None)),
    bug("attention in place of the feed-forward", **BLOCK, halves=(None, {"layer": 0})),
    bug("feed-forward missing", {"second": ""}, **BLOCK),
    bug("attention missing", {"first": ""}, **BLOCK),
    bug("feed-forward first", **BLOCK, halves=({"by": 1, "layer": 1}, {"by": 0, "layer": 0})),
    bug(
        "attention's sum lost",
        **BLOCK,
        ours={"first": "h = x + self.attention(self.norm_1(x))"},
        nano={"first": "h = x + self.attn(self.ln_1(x))"},
        raschka={
            "first": half("raschka", 0).replace(
                "x = x + shortcut", "h = x + shortcut\n        x = shortcut"
            )
        },
        llama={
            "first": (
                "residual = hidden_states\n"
                "        attn_output = self.self_attn(self.input_layernorm(hidden_states))"
            )
        },
    ),
    bug("mixed pre-norm and post-norm", **BLOCK, halves=(None, {"norm": "after"})),
    bug(
        "post-norm without residual",
        **BLOCK,
        halves=({"norm": "after", "total": "{f}"}, {"norm": "after"}),
    ),
    bug("post-norm with one norm", **BLOCK, halves=({"norm": "after"}, {"norm": "after", "by": 0})),
    bug(
        "batch norm",
        **BLOCK,
        names={
            "nano": {"LayerNorm": lambda ndim, bias: BatchNorm(ndim)},
            "raschka": {"ScaledLayerNorm": BatchNorm},
            "llama": {"LlamaRMSNorm": BatchNorm},
        },
        ours={TWO_NORMS: "BatchNorm(C), BatchNorm(C)"},
    ),
    bug(
        "norm over tokens",
        **BLOCK,
        names={
            "nano": {"LayerNorm": lambda ndim, bias: TokenNorm(ndim)},
            "raschka": {"ScaledLayerNorm": TokenNorm},
        },
        schemes=SCHEMES[:3],
        ours={TWO_NORMS: "TokenNorm(C), TokenNorm(C)"},
    ),
    bug(
        "RMS norm over tokens",
        part="block",
        where="norm",
        schemes=("llama",),
        llama={"mean(-1,": "mean(1,"},
    ),
    bug(
        "norm without the root",
        part="block",
        where="norm",
        schemes=("raschka", "llama"),
        raschka={"torch.sqrt(var + self.eps)": "(var + self.eps)"},
        llama={"* torch.rsqrt(variance + self.variance_epsilon)": "/ (variance + 1e-6)"},
    ),
    bug(
        "feed-forward mixes tokens",
        part="block",
        where="feed_forward",
        ours={"nn.Linear(C, 4 * C)": "TokenConv(C, 4 * C)"},
        nano={"self.c_fc = nn.Linear(": "self.c_fc = TokenConv("},
        raschka={'nn.Linear(cfg["emb_dim"], 4': 'TokenConv(cfg["emb_dim"], 4'},
        llama={"self.up_proj = nn.Linear(": "self.up_proj = TokenConv("},
    ),
    bug(
        "feed-forward centres over tokens",
        part="block",
        where="feed_forward",
        ours={"self.wide(x)": "self.wide(x - x.mean(dim=1, keepdim=True))"},
        nano={"self.c_fc(x)": "self.c_fc(x - x.mean(dim=1, keepdim=True))"},
        raschka={"self.layers(x)": "self.layers(x - x.mean(dim=1, keepdim=True))"},
        llama={"self.up_proj(x)": "self.up_proj(x - x.mean(dim=1, keepdim=True))"},
    ),
    bug(
        "feed-forward without activation",
        part="block",
        where="feed_forward",
        ours={"torch.relu(self.wide(x))": "self.wide(x)"},
        nano={"x = self.gelu(x)": ""},
        raschka={"GELU(),": ""},
        llama={"self.act_fn(self.gate_proj(x)) * ": ""},
    ),
    bug("block without mask", NO_MASK, part="block"),
    bug("block without scale", {"scale": ""}, part="block"),
    bug("one block without mask", NO_MASK, part="model"),
    bug("one block without scale", {"scale": ""}, part="model"),
    bug("one block without residual", part="model", where="block", halves=({"total": "{f}"}, None)),
]
