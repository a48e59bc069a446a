"""40 modules with a realistic bug each (the last two with two). BUGS = [(name, make, C, what is wrong), ...]; each line says n_head."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


# ================================================================ the mask
class NoMask(nn.Module):  # 1
    def __init__(self, n_embd=32, n_head=4, block_size=64):
        super().__init__()
        self.n_head, self.n_embd = n_head, n_embd
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.register_buffer(
            "bias",
            torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size),
        )

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y)


class SeesNext(nn.Module):  # 2
    def __init__(self, n_embd=20, head_size=8):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(64, 64), diagonal=1))

    def forward(self, x):
        B, T, C = x.shape
        k, q = self.key(x), self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        wei = F.softmax(wei, dim=-1)
        return wei @ self.value(x)


class NotItself(nn.Module):  # 3
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        dots = q @ k.transpose(-1, -2) * (c // self.heads) ** -0.5
        i = torch.arange(n, device=x.device)
        mask = i[:, None] <= i[None, :]
        dots = dots.masked_fill(mask, -1e9)
        attn = dots.softmax(dim=-1)
        return self.out((attn @ v).transpose(1, 2).reshape(b, n, c))


class UpsideDown(nn.Module):  # 4
    def __init__(self, d_in=36, d_out=36, context_length=64, num_heads=3):
        super().__init__()
        self.d_out, self.num_heads, self.head_dim = d_out, num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=0)
        )

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys = self.W_key(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = self.W_query(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        values = self.W_value(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        attn_scores = queries @ keys.transpose(2, 3)
        mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
        attn_scores = attn_scores.masked_fill(~mask_bool, -torch.inf)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        context_vec = (attn_weights @ values).transpose(1, 2)
        return self.out_proj(context_vec.contiguous().view(b, num_tokens, self.d_out))


class MaskAfterSoftmax(nn.Module):  # 5
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


class TinyNumber(nn.Module):  # 6
    def __init__(self, d_model=32, h=4):
        super().__init__()
        self.h, self.d_k = h, d_model // h
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])

    def attention(self, query, key, value, mask=None):
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e-9)
        p_attn = scores.softmax(dim=-1)
        return torch.matmul(p_attn, value)

    def forward(self, x):
        nbatches, T = x.size(0), x.size(1)
        mask = torch.tril(torch.ones(1, 1, T, T, device=x.device))
        query, key, value = [
            lin(x).view(nbatches, -1, self.h, self.d_k).transpose(1, 2) for lin in self.linears[:3]
        ]
        x = self.attention(query, key, value, mask=mask)
        x = x.transpose(1, 2).contiguous().view(nbatches, -1, self.h * self.d_k)
        return self.linears[-1](x)


class AddedMask(nn.Module):  # 7
    def __init__(self, dim=40, heads=5, max_len=64):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(dim, dim) for _ in range(4))
        self.register_buffer("causal", torch.tril(torch.ones(max_len, max_len)))

    def forward(self, x):
        B, T, C = x.shape
        q = self.q_proj(x).view(B, T, self.heads, -1).transpose(1, 2)
        k = self.k_proj(x).view(B, T, self.heads, -1).transpose(1, 2)
        v = self.v_proj(x).view(B, T, self.heads, -1).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.causal[:T, :T])
        return self.o_proj(y.transpose(1, 2).reshape(B, T, C))


class TorchMaskInverted(nn.Module):  # 8
    def __init__(self, embed_dim=28, num_heads=4):
        super().__init__()
        self.mha = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)

    def forward(self, x):
        T = x.size(1)
        mask = torch.tril(torch.ones(T, T, device=x.device)).bool()
        out, _ = self.mha(x, x, x, attn_mask=mask)
        return out


class WrongCorner(nn.Module):  # 9
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


# ================================================================ softmax and scale
class WrongAxis(nn.Module):  # 10
    def __init__(self, channels=24, size=12):
        super().__init__()
        self.wq = nn.Parameter(torch.randn(channels, size) / channels**0.5)
        self.wk = nn.Parameter(torch.randn(channels, size) / channels**0.5)
        self.wv = nn.Parameter(torch.randn(channels, size) / channels**0.5)

    def forward(self, x):
        q, k, v = x @ self.wq, x @ self.wk, x @ self.wv
        scores = torch.bmm(q, k.transpose(1, 2)) / q.shape[-1] ** 0.5
        future = torch.triu(torch.ones(x.shape[1], x.shape[1]), 1).bool()
        scores = scores.masked_fill(future, float("-inf"))
        weights = F.softmax(scores, dim=1)
        return torch.bmm(weights, v)


class SoftmaxOverHeads(nn.Module):  # 11
    def __init__(self, dim=32, num_heads=4):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = dim // num_heads
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = (q * self.head_dim**-0.5) @ k.transpose(-2, -1)
        causal = torch.ones(N, N, device=x.device).tril() == 0
        attn = attn.masked_fill(causal, -1e9)
        attn = attn.softmax(dim=1)
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj(x)


class NoScale(nn.Module):  # 12
    def __init__(self, num_hiddens=48, num_heads=4):
        super().__init__()
        self.num_heads = num_heads
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_k = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_v = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=False)

    def split(self, X):
        X = X.reshape(X.shape[0], X.shape[1], self.num_heads, -1).permute(0, 2, 1, 3)
        return X.reshape(-1, X.shape[2], X.shape[3])

    def forward(self, X):
        queries, keys, values = (
            self.split(self.W_q(X)),
            self.split(self.W_k(X)),
            self.split(self.W_v(X)),
        )
        scores = torch.bmm(queries, keys.transpose(1, 2))
        T = X.shape[1]
        scores = scores + torch.full((T, T), -1e9, device=X.device).triu(1)
        out = torch.bmm(F.softmax(scores, dim=-1), values)
        out = out.reshape(-1, self.num_heads, T, out.shape[-1]).permute(0, 2, 1, 3)
        return self.W_o(out.reshape(X.shape[0], T, -1))


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


class ScaleC(nn.Module):  # 13
    def __init__(self, n_embd=32, num_heads=4):
        super().__init__()
        self.heads = nn.ModuleList(
            [LectureHead(n_embd, n_embd // num_heads) for _ in range(num_heads)]
        )
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


class DividedByD(nn.Module):  # 14
    def __init__(self, hidden_size=48, num_attention_heads=6):
        super().__init__()
        self.num_heads = num_attention_heads
        self.head_dim = hidden_size // num_attention_heads
        self.scaling = 1.0 / self.head_dim
        self.q_proj = nn.Linear(hidden_size, hidden_size)
        self.k_proj = nn.Linear(hidden_size, hidden_size)
        self.v_proj = nn.Linear(hidden_size, hidden_size)
        self.out_proj = nn.Linear(hidden_size, hidden_size)

    def _shape(self, tensor, seq_len, bsz):
        return tensor.view(bsz, seq_len, self.num_heads, self.head_dim).transpose(1, 2).contiguous()

    def forward(self, hidden_states, attention_mask=None):
        bsz, tgt_len, embed_dim = hidden_states.size()
        query_states = self._shape(self.q_proj(hidden_states) * self.scaling, tgt_len, bsz)
        key_states = self._shape(self.k_proj(hidden_states), -1, bsz)
        value_states = self._shape(self.v_proj(hidden_states), -1, bsz)
        attn_weights = torch.matmul(query_states, key_states.transpose(2, 3))
        if attention_mask is None:
            attention_mask = torch.triu(
                torch.full((tgt_len, tgt_len), torch.finfo(torch.float32).min), 1
            )
        attn_weights = F.softmax(attn_weights + attention_mask, dim=-1)
        attn_output = (
            torch.matmul(attn_weights, value_states)
            .transpose(1, 2)
            .reshape(bsz, tgt_len, embed_dim)
        )
        return self.out_proj(attn_output)


class Multiplied(nn.Module):  # 15
    def __init__(self, C=16, n_head=2):
        super().__init__()
        self.n_head = n_head
        self.d = C // n_head
        self.Wqkv = nn.Parameter(torch.randn(3, n_head, C, self.d) * C**-0.5)
        self.Wo = nn.Parameter(torch.randn(C, C) * C**-0.5)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = torch.einsum("btc,shcd->sbhtd", x, self.Wqkv)
        scores = q @ k.mT * math.sqrt(self.d)
        scores = torch.where(torch.ones(T, T).tril().bool(), scores, -torch.inf)
        return (scores.softmax(-1) @ v).movedim(1, 2).flatten(2) @ self.Wo


class ScaleAfterSoftmax(nn.Module):  # 16
    def __init__(self, d_model=32, num_heads=4):
        super().__init__()
        self.num_heads = num_heads
        self.to_q = nn.Linear(d_model, d_model, bias=False)
        self.to_k = nn.Linear(d_model, d_model, bias=False)
        self.to_v = nn.Linear(d_model, d_model, bias=False)
        self.to_out = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, n, _ = x.shape
        heads = lambda t: t.view(b, n, self.num_heads, -1).permute(0, 2, 1, 3)
        q, k, v = heads(self.to_q(x)), heads(self.to_k(x)), heads(self.to_v(x))
        sim = torch.einsum("bhid,bhjd->bhij", q, k)
        sim = sim.masked_fill(
            torch.ones(n, n, dtype=torch.bool).triu(1), -torch.finfo(sim.dtype).max
        )
        attn = sim.softmax(dim=-1) / math.sqrt(q.shape[-1])
        out = torch.einsum("bhij,bhjd->bhid", attn, v)
        return self.to_out(out.permute(0, 2, 1, 3).reshape(b, n, -1))


class SoftmaxTwice(nn.Module):  # 17
    def __init__(self, dim=24, heads=2):
        super().__init__()
        self.heads = heads
        self.in_proj = nn.Linear(dim, 3 * dim)
        self.out_proj = nn.Linear(dim, dim)

    @staticmethod
    def scores(q, k):
        return torch.softmax(q @ k.transpose(-1, -2) / q.size(-1) ** 0.5, dim=-1)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.in_proj(x).split(C, -1)
        )
        att = self.scores(q, k)
        att = att.masked_fill(torch.triu(torch.ones(T, T, dtype=torch.bool), 1), float("-inf"))
        att = torch.softmax(att, dim=-1)
        return self.out_proj((att @ v).transpose(1, 2).reshape(B, T, C))


# ================================================================ heads
class PlainView(nn.Module):  # 18
    def __init__(self, n_embd=32, n_head=4):
        super().__init__()
        self.n_head = n_head
        self.qkv = nn.Linear(n_embd, 3 * n_embd)
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        B, T, C = x.shape
        hs = C // self.n_head
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.reshape(B, self.n_head, T, hs)
        k = k.reshape(B, self.n_head, T, hs)
        v = v.reshape(B, self.n_head, T, hs)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out = out.reshape(B, T, C)
        return self.proj(out)


class MergeNoTranspose(nn.Module):  # 19
    def __init__(self, d_model=30, nhead=5):
        super().__init__()
        self.nhead = nhead
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_concat = nn.Linear(d_model, d_model)

    def forward(self, x):
        batch, length, d_model = x.size()
        q, k, v = [
            w(x).view(batch, length, self.nhead, -1).transpose(1, 2)
            for w in (self.w_q, self.w_k, self.w_v)
        ]
        score = (q @ k.transpose(2, 3)) / math.sqrt(q.size(-1))
        score = score.masked_fill(torch.tril(torch.ones(length, length)) == 0, -10000)
        out = torch.softmax(score, -1) @ v
        out = out.contiguous().view(batch, length, d_model)
        return self.w_concat(out)


class SequenceFirst(nn.Module):  # 20
    def __init__(self, embed_dim=32, num_heads=4):
        super().__init__()
        self.mha = nn.MultiheadAttention(embed_dim, num_heads, dropout=0.0)

    def forward(self, x):
        n = x.size(0)
        mask = torch.triu(torch.full((n, n), float("-inf"), device=x.device), diagonal=1)
        return self.mha(x, x, x, attn_mask=mask, need_weights=False)[0]


class AttendsAcrossHeads(nn.Module):  # 21
    def __init__(self, dim=32, n_heads=4):
        super().__init__()
        self.n_heads = n_heads
        self.head_dim = dim // n_heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)
        self.wv = nn.Linear(dim, dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        bsz, seqlen, _ = x.shape
        xq = self.wq(x).view(bsz, seqlen, self.n_heads, self.head_dim)
        xk = self.wk(x).view(bsz, seqlen, self.n_heads, self.head_dim)
        xv = self.wv(x).view(bsz, seqlen, self.n_heads, self.head_dim)
        output = F.scaled_dot_product_attention(xq, xk, xv, is_causal=True)
        return self.wo(output.reshape(bsz, seqlen, -1))


class CausalHead(nn.Module):
    def __init__(self, dim, size):
        super().__init__()
        self.q = nn.Linear(dim, size, bias=False)
        self.k = nn.Linear(dim, size, bias=False)
        self.v = nn.Linear(dim, size, bias=False)

    def forward(self, x):
        return F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x), is_causal=True)


class OnlyFirstHead(nn.Module):  # 22
    def __init__(self, dim=32, n_heads=4):
        super().__init__()
        self.heads = nn.ModuleList([CausalHead(dim, dim // n_heads) for _ in range(n_heads)])
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        outs = []
        for i in range(len(self.heads)):
            head = self.heads[0]
            outs.append(head(x))
        return self.proj(torch.cat(outs, dim=-1))


class RepeatOrder(nn.Module):  # 23
    """Grouped-query attention: query heads 0 to n_rep - 1 read kv head 0, the next n_rep read kv head 1, ..."""

    def __init__(self, dim=48, n_heads=6, n_kv_heads=2):
        super().__init__()
        self.n_heads, self.n_kv_heads, self.n_rep = n_heads, n_kv_heads, n_heads // n_kv_heads
        self.head_dim = dim // n_heads
        self.q_proj = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        B, T, _ = x.shape
        q = self.q_proj(x).view(B, T, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(B, T, self.n_kv_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(B, T, self.n_kv_heads, self.head_dim).transpose(1, 2)
        k = k.repeat(1, self.n_rep, 1, 1)
        v = v.repeat(1, self.n_rep, 1, 1)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(out.transpose(1, 2).reshape(B, T, -1))


# ================================================================ projections
class KeyIsQuery(nn.Module):  # 24
    def __init__(self, n_embd=24, n_head=3):
        super().__init__()
        self.n_head = n_head
        self.query = nn.Linear(n_embd, n_embd)
        self.key = nn.Linear(n_embd, n_embd)
        self.value = nn.Linear(n_embd, n_embd)
        self.proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("mask", torch.tril(torch.ones(64, 64))[None, None])

    def forward(self, x, layer_past=None):
        B, T, C = x.size()
        k = self.query(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = self.query(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = self.value(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.proj(y.transpose(1, 2).contiguous().view(B, T, C))


class ValueFromKey(nn.Module):  # 25
    def __init__(self, dim=36, heads=6):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.heads, C // self.heads)
        q = qkv[:, :, 0].transpose(1, 2)
        k = qkv[:, :, 1].transpose(1, 2)
        v = qkv[:, :, 1].transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(B, T, C))


class ProjectionUnused(nn.Module):  # 26
    def __init__(self, d_out=32, num_heads=4):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_out, d_out, bias=True)
        self.W_key = nn.Linear(d_out, d_out, bias=True)
        self.W_value = nn.Linear(d_out, d_out, bias=True)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        b, t, c = x.shape
        q = self.W_query(x).view(b, t, self.num_heads, self.head_dim).transpose(1, 2)
        k = self.W_key(x).view(b, t, self.num_heads, self.head_dim).transpose(1, 2)
        v = self.W_value(x).view(b, t, self.num_heads, self.head_dim).transpose(1, 2)
        s = q @ k.transpose(2, 3) / self.head_dim**0.5
        s.masked_fill_(torch.triu(torch.ones(t, t), 1).bool(), -torch.inf)
        context_vec = (torch.softmax(s, dim=-1) @ v).transpose(1, 2).contiguous().view(b, t, c)
        self.out_proj(context_vec)
        return context_vec


class ProjectionBeforeMerge(nn.Module):  # 27
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads, self.hd = heads, dim // heads
        self.q, self.k, self.v = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.proj = nn.Linear(self.hd, self.hd)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            f(x).view(B, T, self.heads, self.hd).transpose(1, 2) for f in (self.q, self.k, self.v)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = self.proj(y)  # (B, heads, T, hd)
        return y.transpose(1, 2).contiguous().view(B, T, C)


# ================================================================ the block
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


class MissingResidual(nn.Module):  # 28
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


class AddsTheNorm(nn.Module):  # 29
    def __init__(self, n_embd=32, n_head=4):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.sa = GoodAttention(n_embd, n_head)
        self.ffwd = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.ReLU(), nn.Linear(4 * n_embd, n_embd)
        )

    def forward(self, x):
        x = self.ln1(x)
        x = x + self.sa(x)
        x = self.ln2(x)
        x = x + self.ffwd(x)
        return x


class LayerNormOverTime(nn.Module):
    def __init__(self, emb_dim):
        super().__init__()
        self.eps = 1e-5
        self.scale = nn.Parameter(torch.ones(emb_dim))
        self.shift = nn.Parameter(torch.zeros(emb_dim))

    def forward(self, x):
        mean = x.mean(dim=1, keepdim=True)
        var = x.var(dim=1, keepdim=True, unbiased=False)
        return self.scale * (x - mean) / torch.sqrt(var + self.eps) + self.shift


class TimeNormBlock(nn.Module):  # 30
    def __init__(self, emb_dim=36, n_heads=3):
        super().__init__()
        self.att = GoodAttention(emb_dim, n_heads)
        self.ff = nn.Sequential(
            nn.Linear(emb_dim, 4 * emb_dim), nn.GELU(), nn.Linear(4 * emb_dim, emb_dim)
        )
        self.norm1 = LayerNormOverTime(emb_dim)
        self.norm2 = LayerNormOverTime(emb_dim)

    def forward(self, x):
        shortcut = x
        x = self.att(self.norm1(x)) + shortcut
        shortcut = x
        return self.ff(self.norm2(x)) + shortcut


class BatchNormBlock(nn.Module):  # 31
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm1d(dim), nn.BatchNorm1d(dim)
        self.attn = GoodAttention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def norm(self, bn, x):
        return bn(x.transpose(1, 2)).transpose(1, 2)

    def forward(self, x):
        x = x + self.attn(self.norm(self.bn1, x))
        return x + self.mlp(self.norm(self.bn2, x))


class InPlaceBlock(nn.Module):  # 32
    """First block of a model: adds sinusoidal positions, then pre-norm attention and FFN."""

    def __init__(self, dim=24, heads=3, max_len=64):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = GoodAttention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))
        angle = torch.arange(max_len)[:, None] * 10000.0 ** (-torch.arange(0, dim, 2) / dim)
        self.register_buffer("pe", torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1))

    def forward(self, x):
        x += self.pe[: x.size(1)]
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


# ================================================================ dropout, gradients, state
class DropoutInEval(nn.Module):  # 33
    def __init__(self, c=32, h=4, dropout=0.2):
        super().__init__()
        self.h, self.dropout = h, dropout
        self.c_attn = nn.Linear(c, 3 * c)
        self.c_proj = nn.Linear(c, c)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.c_attn(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.h, C // self.h).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=None, dropout_p=self.dropout, is_causal=True
        )
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class DetachedWeights(nn.Module):  # 34
    def __init__(self, d_model=32, n_heads=2):
        super().__init__()
        self.n_heads = n_heads
        self.W_in = nn.Linear(d_model, 3 * d_model)
        self.W_out = nn.Linear(d_model, d_model)
        self.last_weights = None

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.W_in(x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        logits = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        logits = logits.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf)
        self.last_weights = torch.softmax(logits, dim=-1).detach()
        z = self.last_weights @ v
        return self.W_out(z.transpose(1, 2).reshape(B, T, C))


class RoundedWeights(nn.Module):  # 35
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


class CacheNeverCleared(nn.Module):  # 36
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


# ================================================================ positions
class TokenShiftRoll(nn.Module):  # 37
    """Keys and values see half of the previous token, as in RWKV's token shift."""

    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads = heads
        self.mix = nn.Parameter(torch.full((dim,), 0.5))
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def forward(self, x):
        B, T, C = x.shape
        prev = torch.roll(x, shifts=1, dims=1)
        xm = x * self.mix + prev * (1 - self.mix)
        q, k, v = (
            t.view(B, T, self.heads, -1).transpose(1, 2)
            for t in (self.q(x), self.k(xm), self.v(xm))
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(B, T, C))


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


class RopeOnlyOnKeys(nn.Module):  # 38
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


# ================================================================ two bugs
class NoScaleNoProjection(nn.Module):  # 39
    def __init__(self, n_embd=32, n_head=4):
        super().__init__()
        self.n_head = n_head
        self.attn = nn.Linear(n_embd, 3 * n_embd, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.attn(x).split(C, dim=-1)
        q, k, v = [t.view(B, T, self.n_head, -1).transpose(1, 2) for t in (q, k, v)]
        w = (
            (q @ k.mT)
            .masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -torch.inf)
            .softmax(-1)
        )
        return (w @ v).transpose(1, 2).reshape(B, T, C)


class TwoBugBlock(nn.Module):  # 40
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
        "no_mask",
        NoMask,
        32,
        "mask missing: the result of masked_fill is thrown away (not in place); n_head=4",
    ),
    (
        "sees_next",
        SeesNext,
        20,
        "mask one off: tril with diagonal=1, each token sees the next one; one head of 8, (B, T, 20) -> (B, T, 8)",
    ),
    (
        "not_itself",
        NotItself,
        32,
        "mask one off: the diagonal is masked with -1e9, so a token does not see itself, and row 0 is uniform over all tokens (a leak); n_head=4",
    ),
    (
        "upside_down",
        UpsideDown,
        36,
        "mask reversed: upper triangle kept, each token sees itself and the future; n_head=3",
    ),
    (
        "mask_after_softmax",
        MaskAfterSoftmax,
        24,
        "mask multiplied in after the softmax: rows do not sum to 1, and the denominators leak; n_head=3",
    ),
    (
        "tiny_number",
        TinyNumber,
        32,
        "masked scores set to -1e-9 in place of -1e9, so about 0, not -inf: future stays visible; n_head=4",
    ),
    (
        "added_mask",
        AddedMask,
        40,
        "float mask of 1 and 0 given to SDPA, which adds it: future stays visible; n_head=5",
    ),
    (
        "torch_mask_inverted",
        TorchMaskInverted,
        28,
        "boolean mask the wrong way round for nn.MultiheadAttention (True = forbidden): only the future is seen, last token NaN; n_head=4",
    ),
    (
        "wrong_corner",
        WrongCorner,
        32,
        "mask buffer cut from the last T rows and first T columns: for T <= 64 (half the buffer) nothing is masked; n_head=2",
    ),
    (
        "wrong_axis",
        WrongAxis,
        24,
        "softmax over the queries (dim=1): columns sum to 1, and later queries leak in; one head of 12, (B, T, 24) -> (B, T, 12)",
    ),
    (
        "softmax_over_heads",
        SoftmaxOverHeads,
        32,
        "softmax over the heads (dim=1 of (B, H, T, T)): the future gets weight 1 / n_head; n_head=4",
    ),
    ("no_scale", NoScale, 48, "scores not divided by sqrt(head_size); n_head=4"),
    (
        "scale_c",
        ScaleC,
        32,
        "scores divided by sqrt(C), not sqrt(head_size), in each head; n_head=4",
    ),
    ("divided_by_d", DividedByD, 48, "scores divided by head_size, not by its root; n_head=6"),
    ("multiplied", Multiplied, 16, "scores multiplied by sqrt(head_size); n_head=2"),
    (
        "scale_after_softmax",
        ScaleAfterSoftmax,
        32,
        "weights divided by sqrt(head_size) after the softmax; n_head=4",
    ),
    (
        "softmax_twice",
        SoftmaxTwice,
        24,
        "softmax before the mask and again after it: nearly uniform weights, and the first one's denominators leak; n_head=2",
    ),
    (
        "plain_view",
        PlainView,
        32,
        "heads split (and merged) by a plain reshape to (B, H, T, d), which mixes tokens and channels; n_head=4",
    ),
    (
        "merge_no_transpose",
        MergeNoTranspose,
        30,
        "heads merged by view without transposing (B, H, T, d) back; n_head=5",
    ),
    (
        "sequence_first",
        SequenceFirst,
        32,
        "nn.MultiheadAttention without batch_first: it attends across the batch (sequence b reads sequences 0 to b at the same position), not the tokens; n_head=4",
    ),
    (
        "across_heads",
        AttendsAcrossHeads,
        32,
        "SDPA on (B, T, H, d) without transpose: attends across the heads of one token, tokens never mix; n_head=4",
    ),
    (
        "only_first_head",
        OnlyFirstHead,
        32,
        "head 0 is used n_head times, heads 1 to 3 never; n_head=4",
    ),
    (
        "repeat_order",
        RepeatOrder,
        48,
        "grouped-query: repeat in place of repeat_interleave, so query head h reads kv head h % 2, not h // 3 as the docstring says (a pairing that only the statement makes wrong); n_head=6, 2 kv heads",
    ),
    (
        "key_is_query",
        KeyIsQuery,
        24,
        "keys computed with the query matrix, self.key unused; n_head=3",
    ),
    (
        "value_from_key",
        ValueFromKey,
        36,
        "values taken from the key slice of the fused qkv, the last third unused; n_head=6",
    ),
    (
        "projection_unused",
        ProjectionUnused,
        32,
        "output projection computed and thrown away; n_head=4",
    ),
    (
        "projection_before_merge",
        ProjectionBeforeMerge,
        32,
        "projection (head_size x head_size, shared) before the merge: heads never mix; n_head=4",
    ),
    (
        "missing_residual",
        MissingResidual,
        32,
        "Llama-like block (RMSNorm, SwiGLU, no RoPE) without the residual around the FFN; n_head=4",
    ),
    (
        "adds_the_norm",
        AddsTheNorm,
        32,
        "block x = ln(x); x = x + f(x): the residual stream carries the normalised x; n_head=4",
    ),
    (
        "time_norm",
        TimeNormBlock,
        36,
        "pre-norm block whose own layer norm takes mean and variance over the tokens (dim=1): leak; n_head=3",
    ),
    (
        "batch_norm",
        BatchNormBlock,
        32,
        "BatchNorm1d in place of LayerNorm: in training it mixes tokens and batch (leak), in eval it uses running statistics; raises for (1, 1, C) in training; n_head=4",
    ),
    (
        "in_place",
        InPlaceBlock,
        24,
        "pre-norm block with sinusoidal positions, added by x += ..., which changes the caller's tensor (output is right; fails on a leaf that needs a gradient); n_head=3",
    ),
    ("dropout_in_eval", DropoutInEval, 32, "SDPA's dropout_p=0.2 also in eval mode; n_head=4"),
    (
        "detached_weights",
        DetachedWeights,
        32,
        "attention weights detached: output right, no gradient for queries and keys; n_head=2",
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
        "token_shift_roll",
        TokenShiftRoll,
        32,
        "token shift by torch.roll: token 0 gets the last token as its predecessor (leak); n_head=4",
    ),
    (
        "rope_only_on_keys",
        RopeOnlyOnKeys,
        32,
        "RoPE applied to the keys and not to the queries, so scores depend on the key's absolute position; n_head=4",
    ),
    (
        "no_scale_no_projection",
        NoScaleNoProjection,
        32,
        "two bugs: scores not scaled, and no output projection; n_head=4",
    ),
    (
        "two_bug_block",
        TwoBugBlock,
        32,
        "two bugs: no residual around the attention, and scores divided by sqrt(C); n_head=4, pre-norm",
    ),
]
