"""Modules by others with a realistic bug each, the last with two. BUGS = [(name, make, C, what is wrong), ...]; each line says n_head.

What is left of 40: on most of them `diagnose` goes a way, or says a sentence, that no other test has.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class MaskAfterSoftmax(nn.Module):
    def __init__(self, d_model=24, n_heads=3, d_head=8):
        super().__init__()
        self.d_head = d_head
        self.W_Q = nn.Parameter(torch.randn(n_heads, d_model, d_head) * d_model**-0.5)
        self.W_K = nn.Parameter(torch.randn(n_heads, d_model, d_head) * d_model**-0.5)
        self.W_V = nn.Parameter(torch.randn(n_heads, d_model, d_head) * d_model**-0.5)
        self.W_O = nn.Parameter(torch.randn(n_heads, d_head, d_model) * d_model**-0.5)

    def forward(self, x):
        q = torch.einsum("bpm,nmh->bpnh", x, self.W_Q)
        k = torch.einsum("bpm,nmh->bpnh", x, self.W_K)
        v = torch.einsum("bpm,nmh->bpnh", x, self.W_V)
        scores = torch.einsum("bqnh,bknh->bnqk", q, k) / self.d_head**0.5
        pattern = scores.softmax(-1)
        pattern = pattern * torch.ones_like(pattern).tril()
        z = torch.einsum("bknh,bnqk->bqnh", v, pattern)
        return torch.einsum("bqnh,nhm->bqm", z, self.W_O)


class WrongCorner(nn.Module):
    """The buffer is cut for a cache: the last T rows and the first T columns."""

    def __init__(self, width=32, n_heads=2, n_ctx=128):
        super().__init__()
        self.n_heads = n_heads
        self.Wqkv = nn.Linear(width, 3 * width)
        self.out_proj = nn.Linear(width, width)
        self.register_buffer("allowed", torch.ones(n_ctx, n_ctx, dtype=torch.bool).tril())

    def forward(self, x, past_kv=None):
        bsz, t, width = x.shape
        q, k, v = (
            z.view(bsz, t, self.n_heads, -1).transpose(1, 2) for z in self.Wqkv(x).chunk(3, dim=-1)
        )
        if past_kv is not None:
            k, v = torch.cat([past_kv[0], k], 2), torch.cat([past_kv[1], v], 2)
        scores = q @ k.mT / q.size(-1) ** 0.5
        scores = scores.masked_fill(~self.allowed[-t:, : k.size(2)], -torch.inf)
        return self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(bsz, t, width))


class LectureHead(nn.Module):
    def __init__(self, n_embd, head_size):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(64, 64)))

    def forward(self, x):
        B, T, C = x.shape
        k = self.key(x)
        q = self.query(x)
        wei = q @ k.transpose(-2, -1) * C**-0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        wei = F.softmax(wei, dim=-1)
        return wei @ self.value(x)


class ScaleC(nn.Module):
    def __init__(self, n_embd=32, num_heads=4):
        super().__init__()
        self.heads = nn.ModuleList(
            [LectureHead(n_embd, n_embd // num_heads) for _ in range(num_heads)]
        )
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


class GoodAttention(nn.Module):
    """A correct one, for the blocks below."""

    def __init__(self, c, h):
        super().__init__()
        self.h = h
        self.qkv = nn.Linear(c, 3 * c)
        self.proj = nn.Linear(c, c)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            t.view(B, T, self.h, C // self.h).transpose(1, 2) for t in self.qkv(x).chunk(3, -1)
        )
        return self.proj(
            F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C)
        )


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class MissingResidual(nn.Module):
    def __init__(self, dim=32, n_heads=4, hidden=96):
        super().__init__()
        self.self_attn = GoodAttention(dim, n_heads)
        self.input_layernorm = RMSNorm(dim)
        self.post_attention_layernorm = RMSNorm(dim)
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, hidden_states):
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states = self.self_attn(hidden_states)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = self.w2(F.silu(self.w1(hidden_states)) * self.w3(hidden_states))
        return hidden_states


class RoundedWeights(nn.Module):
    def __init__(self, n_in=20, n_head=2):
        super().__init__()
        self.n_head = n_head
        self.q, self.k, self.v, self.o = (nn.Linear(n_in, n_in, bias=False) for _ in range(4))

    def forward(self, x):
        B, T, C = x.shape
        d = C // self.n_head
        outs = []
        for h in range(self.n_head):
            s = slice(h * d, (h + 1) * d)
            q, k, v = self.q(x)[..., s], self.k(x)[..., s], self.v(x)[..., s]
            score = q @ k.mT / d**0.5
            score = score.masked_fill(torch.arange(T)[:, None] < torch.arange(T), -torch.inf)
            weight = torch.softmax(score, dim=-1)
            weight = torch.round(weight, decimals=2)
            outs.append(weight @ v)
        return self.o(torch.cat(outs, dim=-1))


class CacheNeverCleared(nn.Module):
    def __init__(self, d=32, num_heads=4, use_cache=True):
        super().__init__()
        self.num_heads, self.use_cache = num_heads, use_cache
        self.W_query, self.W_key, self.W_value = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.out_proj = nn.Linear(d, d)
        self.cache_k = self.cache_v = None

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (
            w(x).view(b, t, self.num_heads, -1).transpose(1, 2)
            for w in (self.W_query, self.W_key, self.W_value)
        )
        if self.use_cache:
            if self.cache_k is not None and self.cache_k.size(0) == b:
                k = torch.cat([self.cache_k, k], dim=2)
                v = torch.cat([self.cache_v, v], dim=2)
            self.cache_k, self.cache_v = k.detach(), v.detach()
        n = k.size(2)
        mask = torch.ones(t, n, dtype=torch.bool, device=x.device).tril(n - t)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out_proj(y.transpose(1, 2).reshape(b, t, d))


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


class RopeOnlyOnKeys(nn.Module):
    def __init__(self, dim=32, heads=4, base=10000.0):
        super().__init__()
        self.heads, self.hd = heads, dim // heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(dim, dim, bias=False) for _ in range(4)
        )
        self.register_buffer("inv_freq", base ** (-torch.arange(0, self.hd, 2).float() / self.hd))

    def rope(self, x):
        angle = torch.outer(torch.arange(x.shape[2], device=x.device).float(), self.inv_freq)
        angle = torch.cat((angle, angle), dim=-1)
        return x * angle.cos() + rotate_half(x) * angle.sin()

    def forward(self, x):
        B, T, C = x.shape
        q = self.q_proj(x).view(B, T, self.heads, self.hd).transpose(1, 2)
        k = self.k_proj(x).view(B, T, self.heads, self.hd).transpose(1, 2)
        v = self.v_proj(x).view(B, T, self.heads, self.hd).transpose(1, 2)
        q, k = q, self.rope(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(B, T, C))


class TwoBugBlock(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads = heads
        self.scale = dim**-0.5
        self.ln_a, self.ln_b = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def attention(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        s = q @ k.mT * self.scale
        s = s.masked_fill(torch.ones(T, T).triu(1) == 1, float("-inf"))
        return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))

    def forward(self, x):
        x = self.attention(self.ln_a(x))
        x = x + self.down(F.gelu(self.up(self.ln_b(x))))
        return x


BUGS = [
    (
        "mask_after_softmax",
        MaskAfterSoftmax,
        24,
        "mask multiplied in after the softmax: rows do not sum to 1, and the denominators leak; n_head=3",
    ),
    (
        "wrong_corner",
        WrongCorner,
        32,
        "mask buffer cut from the last T rows and first T columns: for T <= 64 (half the buffer) nothing is masked; n_head=2",
    ),
    (
        "scale_c",
        ScaleC,
        32,
        "scores divided by sqrt(C), not sqrt(head_size), in each head; n_head=4",
    ),
    (
        "missing_residual",
        MissingResidual,
        32,
        "Llama-like block (RMSNorm, SwiGLU, no RoPE) without the residual around the FFN; n_head=4",
    ),
    (
        "rounded_weights",
        RoundedWeights,
        20,
        "weights rounded to 2 decimals: no gradient for q and k, rows do not quite sum to 1; n_head=2",
    ),
    (
        "cache_never_cleared",
        CacheNeverCleared,
        32,
        "KV cache kept between calls: a second call with the same batch size also attends to the tokens of the first; n_head=4",
    ),
    (
        "rope_only_on_keys",
        RopeOnlyOnKeys,
        32,
        "RoPE applied to the keys and not to the queries, so scores depend on the key's absolute position; n_head=4",
    ),
    (
        "two_bug_block",
        TwoBugBlock,
        32,
        "two bugs: no residual around the attention, and scores divided by sqrt(C); n_head=4, pre-norm",
    ),
]
