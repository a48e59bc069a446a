"""30 correct causal modules in many styles. RIGHT = [(name, make, C, what it is), ...]; each line says n_head."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


# ---------------------------------------------------------------- 1 nanoGPT
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


# ---------------------------------------------------------------- 2 Raschka
class MultiHeadAttentionRaschka(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        values = values.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        attn_scores = queries @ keys.transpose(2, 3)
        mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
        attn_scores.masked_fill_(mask_bool, -torch.inf)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        attn_weights = self.dropout(attn_weights)
        context_vec = (attn_weights @ values).transpose(1, 2)
        context_vec = context_vec.contiguous().view(b, num_tokens, self.d_out)
        return self.out_proj(context_vec)


# ---------------------------------------------------------------- 3 Karpathy's lecture
class Head(nn.Module):
    def __init__(self, n_embd, head_size, block_size):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.dropout = nn.Dropout(0.0)

    def forward(self, x):
        B, T, C = x.shape
        k = self.key(x)
        q = self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        wei = F.softmax(wei, dim=-1)
        wei = self.dropout(wei)
        return wei @ self.value(x)


class LectureMultiHead(nn.Module):
    def __init__(self, n_embd=30, num_heads=5, block_size=64):
        super().__init__()
        head_size = n_embd // num_heads
        self.heads = nn.ModuleList([Head(n_embd, head_size, block_size) for _ in range(num_heads)])
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        out = torch.cat([h(x) for h in self.heads], dim=-1)
        return self.proj(out)


# ---------------------------------------------------------------- 4 a student's single head
class Kopf(nn.Module):
    """(B, T, 24) -> (B, T, 10)."""

    def __init__(self, breite=24, groesse=10):
        super().__init__()
        self.suche = nn.Parameter(torch.randn(breite, groesse) / breite**0.5)
        self.angebot = nn.Parameter(torch.randn(breite, groesse) / breite**0.5)
        self.inhalt = nn.Parameter(torch.randn(breite, groesse) / breite**0.5)

    def forward(self, woerter):
        frage = woerter @ self.suche
        schluessel = woerter @ self.angebot
        punkte = frage @ schluessel.mT / self.suche.shape[1] ** 0.5
        n = woerter.shape[1]
        spaeter = torch.arange(n)[None, :] > torch.arange(n)[:, None]
        punkte[:, spaeter] = -torch.inf
        e = (punkte - punkte.amax(-1, keepdim=True)).exp()
        gewichte = e / e.sum(-1, keepdim=True)
        return gewichte @ (woerter @ self.inhalt)


# ---------------------------------------------------------------- 5 Llama attention
def precompute_freqs_cis(dim, end, theta=10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    return torch.polar(torch.ones(end, dim // 2), torch.outer(torch.arange(end).float(), freqs))


def apply_rotary_emb(xq, xk, freqs_cis):
    xq_ = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
    xk_ = torch.view_as_complex(xk.float().reshape(*xk.shape[:-1], -1, 2))
    f = freqs_cis.view(1, xq_.shape[1], 1, xq_.shape[-1])
    return torch.view_as_real(xq_ * f).flatten(3).type_as(xq), torch.view_as_real(xk_ * f).flatten(
        3
    ).type_as(xk)


def repeat_kv(x, n_rep):
    bs, slen, n_kv_heads, head_dim = x.shape
    if n_rep == 1:
        return x
    return (
        x[:, :, :, None, :]
        .expand(bs, slen, n_kv_heads, n_rep, head_dim)
        .reshape(bs, slen, n_kv_heads * n_rep, head_dim)
    )


class LlamaAttention(nn.Module):
    def __init__(self, dim=64, n_heads=8, n_kv_heads=2, max_seq_len=128):
        super().__init__()
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.n_rep = n_heads // n_kv_heads
        self.head_dim = dim // n_heads
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, dim, bias=False)
        self.register_buffer(
            "freqs_cis", precompute_freqs_cis(self.head_dim, max_seq_len), persistent=False
        )

    def forward(self, x: Tensor, mask: Tensor | None = None):
        bsz, seqlen, _ = x.shape
        xq = self.wq(x).view(bsz, seqlen, self.n_heads, self.head_dim)
        xk = self.wk(x).view(bsz, seqlen, self.n_kv_heads, self.head_dim)
        xv = self.wv(x).view(bsz, seqlen, self.n_kv_heads, self.head_dim)
        xq, xk = apply_rotary_emb(xq, xk, self.freqs_cis[:seqlen])
        keys, values = repeat_kv(xk, self.n_rep), repeat_kv(xv, self.n_rep)
        xq, keys, values = xq.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2)
        scores = torch.matmul(xq, keys.transpose(2, 3)) / math.sqrt(self.head_dim)
        if mask is None:
            mask = torch.full((seqlen, seqlen), float("-inf"), device=x.device).triu(1)
        scores = F.softmax((scores + mask).float(), dim=-1).type_as(xq)
        output = torch.matmul(scores, values).transpose(1, 2).contiguous().view(bsz, seqlen, -1)
        return self.wo(output)


# ---------------------------------------------------------------- 6 Hugging Face GPT-2
class Conv1D(nn.Module):
    def __init__(self, nf, nx):
        super().__init__()
        self.nf = nf
        self.weight = nn.Parameter(torch.empty(nx, nf))
        self.bias = nn.Parameter(torch.zeros(nf))
        nn.init.normal_(self.weight, std=0.15)

    def forward(self, x):
        size_out = x.size()[:-1] + (self.nf,)
        return torch.addmm(self.bias, x.reshape(-1, x.size(-1)), self.weight).view(size_out)


class GPT2Attention(nn.Module):
    def __init__(self, hidden_size=48, num_attention_heads=6, max_positions=64):
        super().__init__()
        self.register_buffer(
            "bias",
            torch.tril(torch.ones((max_positions, max_positions), dtype=torch.bool)).view(
                1, 1, max_positions, max_positions
            ),
            persistent=False,
        )
        self.embed_dim = hidden_size
        self.num_heads = num_attention_heads
        self.head_dim = self.embed_dim // self.num_heads
        self.split_size = self.embed_dim
        self.c_attn = Conv1D(3 * self.embed_dim, self.embed_dim)
        self.c_proj = Conv1D(self.embed_dim, self.embed_dim)

    def _split_heads(self, tensor):
        return tensor.view(tensor.size()[:-1] + (self.num_heads, self.head_dim)).permute(0, 2, 1, 3)

    def _merge_heads(self, tensor):
        tensor = tensor.permute(0, 2, 1, 3).contiguous()
        return tensor.view(tensor.size()[:-2] + (self.num_heads * self.head_dim,))

    def _attn(self, query, key, value, attention_mask=None, head_mask=None):
        attn_weights = torch.matmul(query, key.transpose(-1, -2))
        attn_weights = attn_weights / torch.full(
            [], value.size(-1) ** 0.5, dtype=attn_weights.dtype, device=attn_weights.device
        )
        query_length, key_length = query.size(-2), key.size(-2)
        causal_mask = self.bias[:, :, key_length - query_length : key_length, :key_length]
        mask_value = torch.full(
            [],
            torch.finfo(attn_weights.dtype).min,
            dtype=attn_weights.dtype,
            device=attn_weights.device,
        )
        attn_weights = torch.where(causal_mask, attn_weights, mask_value)
        if attention_mask is not None:
            attn_weights = attn_weights + attention_mask
        attn_weights = F.softmax(attn_weights, dim=-1)
        if head_mask is not None:
            attn_weights = attn_weights * head_mask
        return torch.matmul(attn_weights, value), attn_weights

    def forward(
        self,
        hidden_states,
        layer_past=None,
        attention_mask=None,
        head_mask=None,
        use_cache=False,
        output_attentions=False,
    ):
        query, key, value = self.c_attn(hidden_states).split(self.split_size, dim=2)
        query, key, value = (
            self._split_heads(query),
            self._split_heads(key),
            self._split_heads(value),
        )
        if layer_past is not None:
            key = torch.cat((layer_past[0], key), dim=-2)
            value = torch.cat((layer_past[1], value), dim=-2)
        attn_output, attn_weights = self._attn(query, key, value, attention_mask, head_mask)
        attn_output = self.c_proj(self._merge_heads(attn_output))
        if use_cache or output_attentions:
            return attn_output, (key, value) if use_cache else None, attn_weights
        return attn_output


# ---------------------------------------------------------------- 7 d2l
def masked_softmax(X, valid_lens):
    shape = X.shape
    valid_lens = valid_lens.reshape(-1)
    X = X.reshape(-1, shape[-1])
    mask = torch.arange(X.size(1), device=X.device)[None, :] < valid_lens[:, None]
    X = X.masked_fill(~mask, -1e6)
    return F.softmax(X.reshape(shape), dim=-1)


class DotProductAttention(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens):
        d = queries.shape[-1]
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(d)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)


class D2LMultiHeadAttention(nn.Module):
    def __init__(self, num_hiddens=40, num_heads=5, bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.attention = DotProductAttention()
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=bias)
        self.W_k = nn.Linear(num_hiddens, num_hiddens, bias=bias)
        self.W_v = nn.Linear(num_hiddens, num_hiddens, bias=bias)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=bias)

    def transpose_qkv(self, X):
        X = X.reshape(X.shape[0], X.shape[1], self.num_heads, -1)
        X = X.permute(0, 2, 1, 3)
        return X.reshape(-1, X.shape[2], X.shape[3])

    def transpose_output(self, X):
        X = X.reshape(-1, self.num_heads, X.shape[1], X.shape[2])
        X = X.permute(0, 2, 1, 3)
        return X.reshape(X.shape[0], X.shape[1], -1)

    def forward(self, X):
        queries = self.transpose_qkv(self.W_q(X))
        keys = self.transpose_qkv(self.W_k(X))
        values = self.transpose_qkv(self.W_v(X))
        dec_valid_lens = torch.arange(1, X.shape[1] + 1, device=X.device).repeat(
            queries.shape[0], 1
        )
        return self.W_o(
            self.transpose_output(self.attention(queries, keys, values, dec_valid_lens))
        )


# ---------------------------------------------------------------- 8 TransformerLens / ARENA
class EinsumAttention(nn.Module):
    IGNORE: Tensor

    def __init__(self, d_model=36, n_heads=3, d_head=12, init_range=0.2):
        super().__init__()
        self.d_head = d_head
        self.W_Q = nn.Parameter(torch.empty(n_heads, d_model, d_head))
        self.W_K = nn.Parameter(torch.empty(n_heads, d_model, d_head))
        self.W_V = nn.Parameter(torch.empty(n_heads, d_model, d_head))
        self.W_O = nn.Parameter(torch.empty(n_heads, d_head, d_model))
        for W in (self.W_Q, self.W_K, self.W_V, self.W_O):
            nn.init.normal_(W, std=init_range)
        self.b_Q = nn.Parameter(0.1 * torch.randn(n_heads, d_head))
        self.b_K = nn.Parameter(torch.zeros(n_heads, d_head))
        self.b_V = nn.Parameter(torch.zeros(n_heads, d_head))
        self.b_O = nn.Parameter(torch.zeros(d_model))
        self.register_buffer("IGNORE", torch.tensor(float("-inf")))

    def apply_causal_mask(self, attn_scores):
        all_ones = torch.ones(attn_scores.size(-2), attn_scores.size(-1), device=attn_scores.device)
        mask = torch.triu(all_ones, diagonal=1).bool()
        attn_scores.masked_fill_(mask, self.IGNORE)
        return attn_scores

    def forward(self, normalized_resid_pre):
        x = normalized_resid_pre
        q = torch.einsum("bpm,nmh->bpnh", x, self.W_Q) + self.b_Q
        k = torch.einsum("bpm,nmh->bpnh", x, self.W_K) + self.b_K
        v = torch.einsum("bpm,nmh->bpnh", x, self.W_V) + self.b_V
        attn_scores = torch.einsum("bqnh,bknh->bnqk", q, k)
        attn_pattern = self.apply_causal_mask(attn_scores / self.d_head**0.5).softmax(-1)
        z = torch.einsum("bknh,bnqk->bqnh", v, attn_pattern)
        return torch.einsum("bqnh,nhm->bqm", z, self.W_O) + self.b_O


# ---------------------------------------------------------------- 9 SDPA
class FlashAttn(nn.Module):
    def __init__(self, c=32, h=2):
        super().__init__()
        self.h = h
        self.to_qkv = nn.Linear(c, 3 * c, bias=False)
        self.to_out = nn.Sequential(nn.Linear(c, c), nn.Dropout(0.0))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = (
            self.to_qkv(x).reshape(b, n, 3, self.h, c // self.h).permute(2, 0, 3, 1, 4).unbind(0)
        )
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.to_out(o.transpose(1, 2).flatten(2))


# ---------------------------------------------------------------- 10 nn.MultiheadAttention inside
class TorchMHA(nn.Module):
    def __init__(self, embed_dim=28, num_heads=7):
        super().__init__()
        self.mha = nn.MultiheadAttention(embed_dim, num_heads, dropout=0.0, batch_first=True)

    def forward(self, x):
        T = x.size(1)
        not_allowed = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(diagonal=1)
        out, _ = self.mha(x, x, x, attn_mask=not_allowed, need_weights=False)
        return out


# ---------------------------------------------------------------- 11 LoRA
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


# ---------------------------------------------------------------- 12 optional KV cache
class CachedAttention(nn.Module):
    def __init__(self, width=32, n_heads=4):
        super().__init__()
        self.n_heads = n_heads
        self.Wqkv = nn.Linear(width, 3 * width)
        self.out_proj = nn.Linear(width, width)

    def forward(self, x, past_kv=None, return_kv=False):
        bsz, t_new, width = x.shape
        qkv = self.Wqkv(x).view(bsz, t_new, self.n_heads, 3, width // self.n_heads)
        q, k, v = (z.squeeze(3).transpose(1, 2) for z in qkv.split(1, dim=3))
        if past_kv is not None:
            k = torch.cat([past_kv[0], k], dim=2)
            v = torch.cat([past_kv[1], v], dim=2)
        t_all = k.size(2)
        allowed = torch.ones(t_new, t_all, dtype=torch.bool, device=x.device).tril(
            diagonal=t_all - t_new
        )
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / q.size(-1) ** 0.5
        probs = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(dim=-1)
        out = self.out_proj(torch.einsum("bhqk,bhkd->bqhd", probs, v).flatten(2))
        return (out, (k, v)) if return_kv else out


# ---------------------------------------------------------------- 13 low-rank latent keys and values
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


# ---------------------------------------------------------------- 14 loop over the queries
class LoopAttention(nn.Module):
    """Each query looks at a slice of the keys, so no mask is needed."""

    def __init__(self, C=20, n_head=2):
        super().__init__()
        self.n_head = n_head
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(C, C, bias=False) for _ in range(4))

    def forward(self, x):
        B, T, C = x.shape
        d = C // self.n_head
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        rows = []
        for t in range(T):
            parts = []
            for h in range(self.n_head):
                sl = slice(h * d, (h + 1) * d)
                scores = (k[:, : t + 1, sl] * q[:, t : t + 1, sl]).sum(-1) / d**0.5  # (B, t+1)
                w = torch.softmax(scores, dim=1)
                parts.append((w[..., None] * v[:, : t + 1, sl]).sum(1))
            rows.append(torch.cat(parts, -1))
        return self.W_o(torch.stack(rows, dim=1))


# ---------------------------------------------------------------- 15 einops-like, head_dim not C / n_head
def rearrange_heads(t, h):  # 'b n (h d) -> (b h) n d'
    b, n, hd = t.shape
    return t.view(b, n, h, hd // h).permute(0, 2, 1, 3).reshape(b * h, n, hd // h)


def unrearrange_heads(t, h):  # '(b h) n d -> b n (h d)'
    bh, n, d = t.shape
    return t.view(bh // h, h, n, d).permute(0, 2, 1, 3).reshape(bh // h, n, h * d)


class LucidAttention(nn.Module):
    def __init__(self, dim=24, heads=3, dim_head=16):
        super().__init__()
        inner_dim = dim_head * heads
        self.heads = heads
        self.scale = dim_head**-0.5
        self.to_q = nn.Linear(dim, inner_dim, bias=False)
        self.to_kv = nn.Linear(dim, inner_dim * 2, bias=False)
        self.to_out = nn.Linear(inner_dim, dim)

    def forward(self, x):
        h, device = self.heads, x.device
        q, (k, v) = self.to_q(x), self.to_kv(x).chunk(2, dim=-1)
        q, k, v = (rearrange_heads(t, h) for t in (q, k, v))
        q = q * self.scale
        sim = torch.einsum("b i d, b j d -> b i j", q, k)
        i, j = sim.shape[-2:]
        causal = torch.ones((i, j), device=device, dtype=torch.bool).triu(j - i + 1)
        sim = sim.masked_fill(causal, -torch.finfo(sim.dtype).max)
        attn = sim.softmax(dim=-1)
        return self.to_out(unrearrange_heads(torch.einsum("b i j, b j d -> b i d", attn, v), h))


# ---------------------------------------------------------------- 16 pre-norm GPT-2 block
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


# ---------------------------------------------------------------- 17 post-norm block, 2017
class AddNorm(nn.Module):
    def __init__(self, norm_shape, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.ln = nn.LayerNorm(norm_shape)

    def forward(self, X, Y):
        return self.ln(self.dropout(Y) + X)


class TransformerDecoderOnlyBlock(nn.Module):
    def __init__(self, num_hiddens=40, ffn_num_hiddens=96, num_heads=4):
        super().__init__()
        self.attention = D2LMultiHeadAttention(num_hiddens, num_heads, bias=True)
        self.addnorm1 = AddNorm(num_hiddens)
        self.ffn = nn.Sequential(
            nn.Linear(num_hiddens, ffn_num_hiddens),
            nn.ReLU(),
            nn.Linear(ffn_num_hiddens, num_hiddens),
        )
        self.addnorm2 = AddNorm(num_hiddens)

    def forward(self, X):
        Y = self.addnorm1(X, self.attention(X))
        return self.addnorm2(Y, self.ffn(Y))


# ---------------------------------------------------------------- 18 ALiBi
class ALiBiAttention(nn.Module):
    def __init__(self, dim=32, n_heads=8):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.register_buffer(
            "slopes", torch.tensor([2.0 ** (-8.0 * (i + 1) / n_heads) for i in range(n_heads)])
        )

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = [t.view(B, T, self.n_heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1)]
        pos = torch.arange(T, device=x.device)
        distance = pos[None, :] - pos[:, None]  # j - i, <= 0 for the past
        bias = self.slopes[:, None, None] * distance
        bias = bias.masked_fill(distance > 0, float("-inf"))
        att = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(C // self.n_heads) + bias, dim=-1)
        return self.out((att @ v).transpose(1, 2).reshape(B, T, C))


# ---------------------------------------------------------------- 19 QK-norm
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


# ---------------------------------------------------------------- 20 multi-query
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


# ---------------------------------------------------------------- 21 sliding window
class LocalAttention(nn.Module):
    def __init__(self, dim=32, heads=4, window=6):
        super().__init__()
        self.heads, self.window = heads, window
        self.qkv = nn.Linear(dim, dim * 3, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        i = torch.arange(T, device=x.device)
        back = i[:, None] - i[None, :]
        visible = (back >= 0) & (back < self.window)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


# ---------------------------------------------------------------- 22 sinks (gpt-oss)
class SinkAttention(nn.Module):
    """A learned logit per head joins the softmax and is then dropped, so a head can attend to nothing."""

    def __init__(self, dim=32, n_heads=4):
        super().__init__()
        self.n_heads = n_heads
        self.sinks = nn.Parameter(torch.randn(n_heads) * 0.5)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=-1)
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for t in (q, k, v))
        qk = (q @ k.mT) * (C // self.n_heads) ** -0.5
        qk = qk + torch.triu(qk.new_full((T, T), -float("inf")), diagonal=1)
        sinks = self.sinks.view(1, -1, 1, 1).expand(B, -1, T, 1)
        w = torch.cat([qk, sinks], dim=-1).softmax(dim=-1)[..., :-1]
        return self.out((w @ v).transpose(1, 2).flatten(2))


# ---------------------------------------------------------------- 23 sigmoid gate on the output
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


# ---------------------------------------------------------------- 24 parallel block (GPT-J)
class GPTJBlock(nn.Module):
    def __init__(self, d=32, heads=4):
        super().__init__()
        self.ln = nn.LayerNorm(d)
        self.attn = FlashAttn(d, heads)
        self.fc_in = nn.Linear(d, 4 * d)
        self.fc_out = nn.Linear(4 * d, d)

    def forward(self, x):
        h = self.ln(x)
        return x + self.attn(h) + self.fc_out(F.gelu(self.fc_in(h)))


# ---------------------------------------------------------------- 25 Llama block
class LlamaMLP(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(dim, hidden, bias=False)
        self.up_proj = nn.Linear(dim, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaDecoderLayer(nn.Module):
    def __init__(self, dim=48, n_heads=6, n_kv_heads=3):
        super().__init__()
        self.self_attn = LlamaAttention(dim, n_heads, n_kv_heads)
        self.mlp = LlamaMLP(dim, 128)
        self.input_layernorm = RMSNorm(dim)
        self.post_attention_layernorm = RMSNorm(dim)

    def forward(self, hidden_states):
        residual = hidden_states
        hidden_states = self.self_attn(self.input_layernorm(hidden_states))
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.mlp(self.post_attention_layernorm(hidden_states))
        return residual + hidden_states


# ---------------------------------------------------------------- 26 LayerScale block
class LayerScaleBlock(nn.Module):
    def __init__(self, dim=32, num_heads=4, init=0.3):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = LoRAAttention(dim, num_heads)
        self.gamma_1 = nn.Parameter(init * torch.ones(dim))
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))
        self.gamma_2 = nn.Parameter(init * torch.ones(dim))

    def forward(self, x):
        x = x + self.gamma_1 * self.attn(self.norm1(x))
        return x + self.gamma_2 * self.mlp(self.norm2(x))


# ---------------------------------------------------------------- 27 soft-capped scores (Gemma 2)
class SoftcapAttention(nn.Module):
    def __init__(self, hidden=40, heads=4, head_dim=16, cap=2.0):
        super().__init__()
        self.heads, self.head_dim, self.cap = heads, head_dim, cap
        self.qkv_proj = nn.Linear(hidden, 3 * heads * head_dim, bias=False)
        self.o_proj = nn.Linear(heads * head_dim, hidden, bias=False)
        self.scaling = head_dim**-0.5

    def forward(self, hidden_states):
        B, L, _ = hidden_states.shape
        q, k, v = (
            self.qkv_proj(hidden_states)
            .view(B, L, 3 * self.heads, self.head_dim)
            .transpose(1, 2)
            .chunk(3, dim=1)
        )
        scores = torch.matmul(q * self.scaling, k.transpose(2, 3))
        scores = self.cap * torch.tanh(scores / self.cap)
        future = torch.ones(L, L, device=q.device).triu(1).bool()
        scores = scores.masked_fill(future, -2.3819763e38)
        out = torch.matmul(F.softmax(scores.float(), dim=-1), v)
        return self.o_proj(out.transpose(1, 2).contiguous().view(B, L, -1))


# ---------------------------------------------------------------- 28 T5: relative bias, no scale
class T5CausalAttention(nn.Module):
    """As in T5 the scores are not divided; the initialisation of q makes up for it."""

    def __init__(self, d_model=32, n_heads=4, buckets=16):
        super().__init__()
        self.n_heads, self.buckets = n_heads, buckets
        d = d_model // n_heads
        self.q = nn.Linear(d_model, d_model, bias=False)
        self.k = nn.Linear(d_model, d_model, bias=False)
        self.v = nn.Linear(d_model, d_model, bias=False)
        self.o = nn.Linear(d_model, d_model, bias=False)
        nn.init.normal_(self.q.weight, std=(d_model * d) ** -0.5)
        for lin in (self.k, self.v, self.o):
            nn.init.normal_(lin.weight, std=d_model**-0.5)
        self.relative_attention_bias = nn.Embedding(buckets, n_heads)

    def forward(self, x):
        B, T, C = x.shape
        unshape = lambda s: s.view(B, T, self.n_heads, -1).transpose(1, 2)
        q, k, v = unshape(self.q(x)), unshape(self.k(x)), unshape(self.v(x))
        pos = torch.arange(T, device=x.device)
        back = (pos[:, None] - pos[None, :]).clamp(0, self.buckets - 1)
        position_bias = self.relative_attention_bias(back).permute(2, 0, 1)[None]
        mask = (pos[None, :] > pos[:, None]) * torch.finfo(x.dtype).min
        scores = q @ k.transpose(3, 2) + position_bias + mask
        attn = F.softmax(scores.float(), dim=-1).type_as(scores)
        return self.o((attn @ v).transpose(1, 2).contiguous().view(B, T, C))


# ---------------------------------------------------------------- 29 differential attention
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


# ---------------------------------------------------------------- 30 sigmoid attention
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
        "raschka",
        lambda: MultiHeadAttentionRaschka(36, 36, 64, 0.0, 3),
        36,
        "Raschka's book, -inf in place before dividing; n_head=3; textbook",
    ),
    (
        "lecture_heads",
        LectureMultiHead,
        30,
        "Karpathy's lecture, ModuleList of heads and proj; n_head=5; textbook",
    ),
    (
        "kopf",
        Kopf,
        24,
        "one head, (B, T, 24) -> (B, T, 10), nn.Parameter matrices, softmax by hand; n_head=1; textbook",
    ),
    (
        "llama_attention",
        LlamaAttention,
        64,
        "Llama attention, RoPE (complex pairs), 8 query heads on 2 kv heads; n_head=8; different",
    ),
    (
        "hf_gpt2",
        GPT2Attention,
        48,
        "Hugging Face GPT-2 attention, Conv1D, optional cache and masks; n_head=6; textbook",
    ),
    (
        "d2l",
        D2LMultiHeadAttention,
        40,
        "d2l, heads folded into the batch, valid_lens as causal mask (-1e6); n_head=5; textbook",
    ),
    (
        "transformer_lens",
        EinsumAttention,
        36,
        "einsum with W_Q of shape (heads, C, d); n_head=3; textbook",
    ),
    ("sdpa", FlashAttn, 32, "SDPA with is_causal, fused qkv; n_head=2; textbook"),
    ("torch_mha", TorchMHA, 28, "nn.MultiheadAttention inside, bool mask; n_head=7; textbook"),
    (
        "lora",
        LoRAAttention,
        32,
        "LoRA (non-zero) on q and v; n_head=4; textbook with the merged weights",
    ),
    (
        "kv_cache_arg",
        CachedAttention,
        32,
        "optional past_kv, qkv interleaved per head (B, T, H, 3, d); n_head=4; textbook",
    ),
    (
        "latent_kv",
        LatentAttention,
        48,
        "keys and values from a 12-channel latent (MLA without RoPE); n_head=4; textbook with low-rank weights",
    ),
    (
        "query_loop",
        LoopAttention,
        20,
        "for-loops over queries and heads, slices in place of a mask; n_head=2; textbook",
    ),
    (
        "lucid",
        LucidAttention,
        24,
        "lucidrains style, 3 heads of 16 channels in 24-channel tokens; n_head=3; textbook, head_size is not C / n_head",
    ),
    ("gpt2_block", PreNormBlock, 32, "pre-norm block, GELU; n_head=4; textbook"),
    (
        "post_norm_block",
        TransformerDecoderOnlyBlock,
        40,
        "post-norm block of 2017 in d2l style, ReLU, FFN of 96; n_head=4; textbook",
    ),
    ("alibi", ALiBiAttention, 32, "ALiBi biases; n_head=8; different"),
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
        "sliding_window",
        LocalAttention,
        32,
        "each token sees itself and the 5 before it; n_head=4; different",
    ),
    (
        "sinks",
        SinkAttention,
        32,
        "learned sink logit per head, rows sum to less than 1; n_head=4; different",
    ),
    (
        "output_gate",
        GatedAttention,
        32,
        "sigmoid gate from x on the merged heads; n_head=4; different",
    ),
    (
        "parallel_block",
        GPTJBlock,
        32,
        "parallel block, x + attn(ln(x)) + mlp(ln(x)); n_head=4; different as a block, its attention is textbook",
    ),
    (
        "llama_block",
        LlamaDecoderLayer,
        48,
        "pre-norm block with RMSNorm, SwiGLU, RoPE, 6 heads on 3 kv heads; n_head=6; different",
    ),
    (
        "layerscale_block",
        LayerScaleBlock,
        32,
        "pre-norm block with a learned scale of 0.3 on each branch, LoRA attention; n_head=4; different",
    ),
    (
        "softcap",
        SoftcapAttention,
        40,
        "scores capped by 2 tanh(s / 2), as Gemma 2, 4 heads of 16; n_head=4; different",
    ),
    (
        "t5",
        T5CausalAttention,
        32,
        "learned relative bias, scores not divided on purpose (small q at init); n_head=4; different",
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
