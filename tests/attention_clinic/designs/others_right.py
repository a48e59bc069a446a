"""Correct causal modules in the styles of others. RIGHT = [(name, make, C, what it is), ...]; each line says n_head.

What is left of 30: on most of them `diagnose` goes a way, or says a sentence, that no other test has.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class GPTConfig:
    block_size: int = 64
    n_head: int = 4
    n_embd: int = 32
    dropout: float = 0.0
    bias: bool = True


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
        self.register_buffer(
            "bias",
            torch.tril(torch.ones(config.block_size, config.block_size)).view(
                1, 1, config.block_size, config.block_size
            ),
        )

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


class LoRALinear(nn.Module):
    def __init__(self, fan_in, fan_out, rank=4, alpha=8.0):
        super().__init__()
        self.base = nn.Linear(fan_in, fan_out)
        self.lora_A = nn.Parameter(torch.randn(rank, fan_in) / fan_in**0.5)
        self.lora_B = nn.Parameter(torch.randn(fan_out, rank) * 0.2)  # as after some training
        self.scaling = alpha / rank

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.lora_A), self.lora_B) * self.scaling


class LoRAAttention(nn.Module):
    def __init__(self, dim=32, heads=4, rank=4):
        super().__init__()
        self.heads = heads
        self.q_proj = LoRALinear(dim, dim, rank)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = LoRALinear(dim, dim, rank)
        self.o_proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            p(x).view(B, T, self.heads, -1).transpose(1, 2)
            for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        s = q @ k.mT / math.sqrt(q.shape[-1])
        s = s + torch.full((T, T), -torch.inf, device=x.device).triu(1)
        return self.o_proj((s.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))


class LatentAttention(nn.Module):
    def __init__(self, d_model=48, n_heads=4, kv_rank=12, head_dim=12):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, head_dim
        self.q_up = nn.Linear(d_model, n_heads * head_dim, bias=False)
        self.kv_down = nn.Linear(d_model, kv_rank, bias=False)
        self.k_up = nn.Linear(kv_rank, n_heads * head_dim, bias=False)
        self.v_up = nn.Linear(kv_rank, n_heads * head_dim, bias=False)
        self.o = nn.Linear(n_heads * head_dim, d_model, bias=False)
        for lin in (self.q_up, self.kv_down, self.k_up, self.v_up, self.o):
            nn.init.normal_(lin.weight, std=lin.in_features**-0.5)

    def forward(self, h):
        B, T, _ = h.shape
        c_kv = self.kv_down(h)
        split = lambda t: t.unflatten(-1, (self.n_heads, self.head_dim)).movedim(2, 1)
        q, k, v = split(self.q_up(h)), split(self.k_up(c_kv)), split(self.v_up(c_kv))
        o = F.scaled_dot_product_attention(
            q, k, v, attn_mask=torch.ones(T, T, dtype=torch.bool, device=h.device).tril()
        )
        return self.o(o.movedim(1, 2).flatten(-2))


class PreNormBlock(nn.Module):
    def __init__(self, n_embd=32, n_head=4):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(GPTConfig(n_embd=n_embd, n_head=n_head))
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.ModuleDict(
            dict(
                c_fc=nn.Linear(n_embd, 4 * n_embd),
                act=nn.GELU(approximate="tanh"),
                c_proj=nn.Linear(4 * n_embd, n_embd),
            )
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        m = self.mlp
        x = x + m.c_proj(m.act(m.c_fc(self.ln_2(x))))
        return x


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class QKNormAttention(nn.Module):
    def __init__(self, hidden=48, heads=4):
        super().__init__()
        self.head_dim = hidden // heads
        self.q_proj = nn.Linear(hidden, hidden, bias=False)
        self.k_proj = nn.Linear(hidden, hidden, bias=False)
        self.v_proj = nn.Linear(hidden, hidden, bias=False)
        self.o_proj = nn.Linear(hidden, hidden, bias=False)
        self.q_norm = RMSNorm(self.head_dim)
        self.k_norm = RMSNorm(self.head_dim)

    def forward(self, hidden_states):
        shape = (*hidden_states.shape[:-1], -1, self.head_dim)
        q = self.q_norm(self.q_proj(hidden_states).view(shape)).transpose(1, 2)
        k = self.k_norm(self.k_proj(hidden_states).view(shape)).transpose(1, 2)
        v = self.v_proj(hidden_states).view(shape).transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(out.transpose(1, 2).reshape(*hidden_states.shape[:-1], -1))


class MultiQueryAttention(nn.Module):
    def __init__(self, d_model=30, n_query=6):
        super().__init__()
        self.n_query = n_query
        self.dk = d_model // n_query
        self.P_q = nn.Parameter(torch.randn(n_query, d_model, self.dk) * d_model**-0.5)
        self.P_k = nn.Parameter(torch.randn(d_model, self.dk) * d_model**-0.5)
        self.P_v = nn.Parameter(torch.randn(d_model, self.dk) * d_model**-0.5)
        self.P_o = nn.Parameter(torch.randn(n_query, self.dk, d_model) * d_model**-0.5)

    def forward(self, X):
        Q = torch.einsum("bnd,hdk->bhnk", X, self.P_q)
        K = torch.einsum("bmd,dk->bmk", X, self.P_k)
        V = torch.einsum("bmd,dv->bmv", X, self.P_v)
        logits = torch.einsum("bhnk,bmk->bhnm", Q, K) * self.dk**-0.5
        n = X.shape[1]
        logits = torch.where(torch.ones(n, n, device=X.device).tril() > 0, logits, -1e30)
        O = torch.einsum("bhnm,bmv->bhnv", logits.softmax(-1), V)
        return torch.einsum("bhnv,hvd->bnd", O, self.P_o)


class GatedAttention(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads = heads
        self.in_proj = nn.Linear(dim, 4 * dim)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v, g = self.in_proj(x).chunk(4, dim=-1)
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C)
        return self.out_proj(a * torch.sigmoid(g))


class DiffAttention(nn.Module):
    def __init__(self, embed_dim=32, num_heads=2):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads // 2
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.k_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.v_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.lam = nn.Parameter(torch.tensor(0.5))
        self.subln = RMSNorm(2 * self.head_dim)

    def forward(self, x):
        b, n, c = x.shape
        q = self.q_proj(x).view(b, n, 2 * self.num_heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(b, n, 2 * self.num_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(b, n, self.num_heads, 2 * self.head_dim).transpose(1, 2)
        s = q @ k.transpose(-1, -2) * self.head_dim**-0.5
        s = s + torch.triu(torch.full((n, n), float("-inf"), device=x.device), 1)
        w = F.softmax(s, dim=-1).view(b, self.num_heads, 2, n, n)
        w = w[:, :, 0] - self.lam * w[:, :, 1]
        a = self.subln(w @ v)
        return self.out_proj(a.transpose(1, 2).reshape(b, n, c))


class SigmoidAttention(nn.Module):
    """Ramapuram et al. 2024: an elementwise sigmoid in place of the softmax, with bias -log(n)."""

    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            self.qkv(x)
            .reshape(B, T, 3, self.heads, C // self.heads)
            .permute(2, 0, 3, 1, 4)
            .unbind()
        )
        s = q @ k.transpose(-2, -1) * (C // self.heads) ** -0.5
        n = torch.arange(1, T + 1, device=x.device).view(1, 1, T, 1)  # keys that this query may see
        p = torch.sigmoid(s - n.log()) * torch.ones(T, T, device=x.device).tril()
        return self.proj((p @ v).transpose(1, 2).reshape(B, T, C))


RIGHT = [
    (
        "nanogpt",
        lambda: CausalSelfAttention(GPTConfig()),
        32,
        "nanoGPT attention, fused qkv with bias, buffer mask; n_head=4; textbook",
    ),
    (
        "lora",
        LoRAAttention,
        32,
        "LoRA (non-zero) on q and v; n_head=4; textbook with the merged weights",
    ),
    (
        "latent_kv",
        LatentAttention,
        48,
        "keys and values from a 12-channel latent (MLA without RoPE); n_head=4; textbook with low-rank weights",
    ),
    ("gpt2_block", PreNormBlock, 32, "pre-norm block, GELU; n_head=4; textbook"),
    (
        "qk_norm",
        QKNormAttention,
        48,
        "RMSNorm on q and k of each head (Qwen 3 without RoPE); n_head=4; different",
    ),
    (
        "multi_query",
        MultiQueryAttention,
        30,
        "one key and value head for six query heads, Shazeer's einsums; n_head=6; textbook formula with shared keys and values ('different' is fine as well)",
    ),
    (
        "output_gate",
        GatedAttention,
        32,
        "sigmoid gate from x on the merged heads; n_head=4; different",
    ),
    (
        "differential",
        DiffAttention,
        32,
        "difference of two softmaxes, then RMSNorm per head; n_head=2; different",
    ),
    (
        "sigmoid_attention",
        SigmoidAttention,
        32,
        "sigmoid(s - log n) in place of softmax, rows do not sum to 1; n_head=4; different",
    ),
]
