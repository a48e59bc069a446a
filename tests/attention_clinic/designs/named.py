"""Modules with one bug each, and right variants: what `diagnose` should call them.

Written in other people's styles, after those that two readers made up: nanoGPT, Llama, Raschka's
book (by `build`), vision models, einsum, `nn.MultiheadAttention`, and this project's Block.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from helpers.attention import Block, FeedForward, MultiHeadAttention
from tests.attention_clinic.designs.designs import C, build, distance, rope, rope_pairs


def masked(scores):
    return scores.masked_fill(distance(scores.shape[-1]) < 0, -math.inf)


def heads(z, n):
    return z.unflatten(-1, (n, -1)).transpose(1, 2)


def merged(z):
    return z.transpose(1, 2).flatten(2)


# ---------------------------------------------------------------- blocks: how they are put together


def block(put_together, base=Block, **options):
    """This project's Block with another forward."""

    class Mine(base):
        def forward(self, x):
            return put_together(self, x)

    return lambda: Mine(C, 4, **options)


def first_sum_lost(b, x):
    h = x + b.attention(b.norm_1(x))
    return x + b.feed_forward(b.norm_2(h))


def one_residual(b, x):
    h = b.attention(b.norm_1(x))
    return x + b.feed_forward(b.norm_2(h))


def alone(b, x):
    a = b.attention(b.norm_1(x))
    return x + a + b.feed_forward(b.norm_2(a))


def minus_both(b, x):
    x = x - b.attention(b.norm_1(x))
    return x - b.feed_forward(b.norm_2(x))


def relu_on_stream(b, x):
    x = x + b.attention(b.norm_1(x))
    return F.relu(x + b.feed_forward(b.norm_2(x)))


def relu_on_both_sums(b, x):
    x = F.relu(x + b.attention(b.norm_1(x)))
    return F.relu(x + b.feed_forward(b.norm_2(x)))


def norm_at_the_end(b, x):
    x = x + b.attention(b.norm_1(x))
    return b.norm_2(x + b.feed_forward(b.norm_2(x)))


def before_both(b, x):
    x = b.attention(x + b.norm_1(x))
    return b.feed_forward(x + b.norm_2(x))


def norms_around(b, x):
    x = x + b.norm_1(b.attention(b.norm_1(x)))
    return x + b.norm_2(b.feed_forward(b.norm_2(x)))


def in_two_steps(first, second):
    """A block from what each step makes of x, its branch and its norm."""
    return block(
        lambda b, x: second(first(x, b.attention, b.norm_1), b.feed_forward, b.norm_2),
    )


def usual(x, f, n):
    return x + f(n(x))


STEPS = {  # what each of these steps is called at the attention, and at the feed-forward
    "x minus the {}": lambda x, f, n: x - f(n(x)),
    "x times the {}": lambda x, f, n: x * f(n(x)),
    "ReLU after the {}": lambda x, f, n: x + f(n(x)).relu(),
    "x added before the {}": lambda x, f, n: f(x + n(x)),
    "norm before and after the {}": lambda x, f, n: x + n(f(n(x))),
    "{} applied to its own output": lambda x, f, n: x + f(f(n(x))),
    "{} applied twice": lambda x, f, n: usual(usual(x, f, n), f, n),
}


def norm_around_sum(b, x):
    x = b.norm_1(x + b.attention(b.norm_1(x)))
    return b.norm_2(x + b.feed_forward(b.norm_2(x)))


def norm_2_on_stream(b, x):
    x = b.norm_2(x + b.attention(b.norm_1(x)))
    return x + b.feed_forward(x)


def norm_added(b, x):
    n = b.norm_1(x)
    x = n + b.attention(n)
    return x + b.feed_forward(b.norm_2(x))


def x_of_before(b, x):
    a = x + b.attention(b.norm_1(x))
    return a + b.feed_forward(b.norm_2(a)) + x


class TorchInBlock(nn.Module):
    """`nn.MultiheadAttention` in a pre-norm block; `how` says what it is given."""

    def __init__(self, how, d_model=C, nhead=4):
        super().__init__()
        self.how = how
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = nn.MultiheadAttention(d_model, nhead, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(d_model, 64), nn.GELU(), nn.Linear(64, d_model))

    def forward(self, x):
        mask = torch.triu(torch.ones(x.size(1), x.size(1), dtype=torch.bool), 1)
        h = self.ln1(x)
        qkv = {"q": (x, h, h), "k": (h, x, h), "v": (h, h, x), "kv": (h, x, x), "": (h, h, h)}
        x = x + self.attn(*qkv[self.how], attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.ln2(x))


class ThreeInputs(nn.Module):
    """An attention that is handed queries, keys and values apart."""

    def __init__(self, how, dim=C):
        super().__init__()
        self.how, self.num_heads = how, 4
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, q, k, v):
        q, k, v = (heads(f(z), 4) for f, z in ((self.w_q, q), (self.w_k, k), (self.w_v, v)))
        return self.w_o(merged(F.scaled_dot_product_attention(q, k, v, is_causal=True)))


class HandsOver(TorchInBlock):
    def __init__(self, how):
        super().__init__(how)
        self.attn = ThreeInputs(how)

    def forward(self, x):
        h = self.ln1(x)
        x = x + self.attn(*{"q": (x, h, h), "v": (h, h, x)}[self.how])
        return x + self.mlp(self.ln2(x))


class AddsItself(MultiHeadAttention):
    def forward(self, x, **options):
        return x + super().forward(x, **options)


def with_part(**parts):
    """This project's Block with other parts."""

    def make():
        b = Block(C, 4)
        for name, part in parts.items():
            setattr(b, name, part())
        return b

    return make


class Normed(nn.Module):
    """A norm over other axes, or of another kind."""

    def __init__(self, function):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(C)), nn.Parameter(torch.zeros(C))
        self.function = function

    def forward(self, x):
        return self.function(x) * self.weight + self.bias


def standardised(*axes):
    return lambda x: (
        (x - x.mean(axes, keepdim=True))
        / torch.sqrt(x.var(axes, keepdim=True, unbiased=False) + 1e-5)
    )


def centred_over(axis):
    """Layer norm whose mean is another one."""
    return lambda x: (
        (x - x.mean(axis, keepdim=True))
        / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5)
    )


class OverTime(nn.Module):
    """An MLP that reads tokens in the place of channels."""

    def __init__(self, block_size, cut=False):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(block_size, 4 * block_size), nn.ReLU(), nn.Linear(4 * block_size, block_size)
        )

    def forward(self, x):
        return self.net(x.transpose(1, 2)).transpose(1, 2)


class Mixer(nn.Module):
    """A whole block written for one number of tokens."""

    def __init__(self, block_size):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.sa, self.ffwd = MultiHeadAttention(C, 4), OverTime(block_size)

    def forward(self, x):
        x = x + self.sa(self.ln1(x))
        return x + self.ffwd(self.ln2(x))


class LayerScale(nn.Module):
    def __init__(self, dim, init=0.1):
        super().__init__()
        self.gamma = nn.Parameter(init * torch.ones(dim))

    def forward(self, x):
        return x * self.gamma


class TimmBlock(nn.Module):
    def __init__(self, dim=C, scale=LayerScale):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn, self.mlp = MultiHeadAttention(dim, 4), FeedForward(dim)
        self.ls1, self.ls2 = scale(dim), scale(dim)

    def forward(self, x):
        x = x + self.ls1(self.attn(self.norm1(x)))
        return x + self.ls2(self.mlp(self.norm2(x)))


class ReZero(nn.Module):
    def __init__(self, norms=True):
        super().__init__()
        self.attn, self.mlp = MultiHeadAttention(C, 4), FeedForward(C)
        self.ln_1, self.ln_2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.alpha = nn.Parameter(torch.tensor(0.3))

    def forward(self, x):
        x = x + self.alpha * self.attn(self.ln_1(x))
        return x + self.alpha * self.mlp(self.ln_2(x))


class GammaBlock(Block):
    def __init__(self):
        super().__init__(C, 4)
        self.gamma_1 = nn.Parameter(0.1 * torch.ones(C))
        self.gamma_2 = nn.Parameter(0.2 * torch.ones(C))

    def forward(self, x):
        x = x + self.gamma_1 * self.attention(self.norm_1(x))
        return x + self.gamma_2 * self.feed_forward(self.norm_2(x))


class Gemma2Layer(nn.Module):
    def __init__(self, hidden_size=C):
        super().__init__()
        self.self_attn, self.mlp = MultiHeadAttention(hidden_size, 4), FeedForward(hidden_size)
        self.input_layernorm = nn.RMSNorm(hidden_size)
        self.post_attention_layernorm = nn.RMSNorm(hidden_size)
        self.pre_feedforward_layernorm = nn.RMSNorm(hidden_size)
        self.post_feedforward_layernorm = nn.RMSNorm(hidden_size)

    def forward(self, hidden_states):
        residual = hidden_states
        hidden_states = self.self_attn(self.input_layernorm(hidden_states))
        hidden_states = residual + self.post_attention_layernorm(hidden_states)
        residual = hidden_states
        hidden_states = self.mlp(self.pre_feedforward_layernorm(hidden_states))
        return residual + self.post_feedforward_layernorm(hidden_states)


class SandwichBlock(Block):
    def __init__(self):
        super().__init__(C, 4)
        self.norm_3, self.norm_4 = nn.LayerNorm(C), nn.LayerNorm(C)

    def forward(self, x):
        x = x + self.norm_3(self.attention(self.norm_1(x)))
        return x + self.norm_4(self.feed_forward(self.norm_2(x)))


class GPTJBlock(nn.Module):
    def __init__(self, dim=C):
        super().__init__()
        self.ln_1, self.attn, self.mlp = (
            nn.LayerNorm(dim),
            MultiHeadAttention(dim, 4),
            FeedForward(dim),
        )

    def forward(self, x):
        h = self.ln_1(x)
        return x + self.attn(h) + self.mlp(h)


# ---------------------------------------------------------------- attention


def attention(every, scheme="ours", *, names=None, n_head=4, part="attention", **options):
    """An attention of `designs` with some of its text changed."""
    changes = {"attention": every}
    return lambda: build(scheme, part, changes, names, n_head=n_head, **options)


ROPE = "{q}, {k} = rope({q}), rope({k})"
PAIRS = "{q}, {k} = rope_pairs({q}), rope_pairs({k})"
RMS_NORMED = "{q}, {k} = (F.rms_norm(z, z.shape[-1:]) for z in ({q}, {k}))"
NORMED = """self.q_norm = nn.LayerNorm({init_C} // {init_H})
        self.k_norm = nn.LayerNorm({init_C} // {init_H})
        nn.init.uniform_(self.k_norm.weight)"""
GATE = {"+init": "self.gate = nn.Linear({init_C}, {init_C})"}
GATE["+merge"] = "{out} = {out} * torch.sigmoid(self.gate({x}))"
PLACES = {
    "+init": "self.table = nn.Parameter(torch.randn({init_H}, 64, 64))",
    "+score": "{scores} = {scores} + self.table[:, : {T}, : {T}]",
}
SOFTCAP = "{scores} = 50 * torch.tanh({scores} / 50)"
ROOT_C = {"scale": " / math.sqrt({C})"}
ALONG_HEADS = """{q} = rope({q}.transpose(1, 2)).transpose(1, 2)
        {k} = rope({k}.transpose(1, 2)).transpose(1, 2)"""


class Grouped(nn.Module):
    """8 heads of queries on 2 of keys and values; `k` and `v` say how these are repeated."""

    def __init__(self, k="interleave", v="interleave", scale=True, dim=C, n_kv=2):
        super().__init__()
        self.n_heads, self.n_kv, self.how, self.scale = 8, n_kv, {"k": k, "v": v}, scale
        self.wq, self.wo = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, n_kv * dim // 8, bias=False)
        self.wv = nn.Linear(dim, n_kv * dim // 8, bias=False)

    def repeated(self, z, which):
        z = heads(z, self.n_kv)
        if self.how[which] == "tile":
            return z.repeat(1, 8 // self.n_kv, 1, 1)
        return z.repeat_interleave(8 // self.n_kv, dim=1)

    def forward(self, x):
        q = heads(self.wq(x), 8)
        k, v = self.repeated(self.wk(x), "k"), self.repeated(self.wv(x), "v")
        scores = q @ k.mT / (q.shape[-1] ** 0.5 if self.scale else 1)
        return self.wo(merged(masked(scores).softmax(-1) @ v))


class Karpathys(nn.Module):
    """A list of heads."""

    def __init__(self, make):
        super().__init__()
        self.heads = make()
        self.proj = nn.Linear(C, C)

    def forward(self, x):
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


class Head(nn.Module):
    def __init__(self, n_embd=C, head_size=8):
        super().__init__()
        self.key, self.query, self.value = (
            nn.Linear(n_embd, head_size, bias=False) for _ in range(3)
        )

    def forward(self, x):
        wei = self.query(x) @ self.key(x).transpose(-2, -1) * 8**-0.5
        return masked(wei).softmax(-1) @ self.value(x)


def mixed_up(z, pairs=False):
    """Halves are rotated, by angles that stand as for pairs; or the other way round."""
    angle = torch.arange(z.shape[-2])[:, None] / 10000 ** (
        torch.arange(0, z.shape[-1], 2) / z.shape[-1]
    )
    if pairs:
        angle = torch.cat([angle, angle], dim=-1)
        turned = torch.stack([-z[..., 1::2], z[..., ::2]], dim=-1).flatten(-2)
    else:
        angle = angle.repeat_interleave(2, dim=-1)
        a, b = z.chunk(2, dim=-1)
        turned = torch.cat([-b, a], dim=-1)
    return z * angle.cos() + turned * angle.sin()


def alibi(T, n_head, sign=-1):
    slopes = torch.tensor([2 ** (-8 * (i + 1) / n_head) for i in range(n_head)])
    return sign * slopes[:, None, None] * distance(T)


def alibi_of_positions(T, n_head):
    """As BLOOM has it: the slope times the key's position, the same but for a constant a row."""
    slopes = torch.tensor([2 ** (-8 * (i + 1) / n_head) for i in range(n_head)])
    return slopes[:, None, None] * torch.arange(T)


class BlockSparse(nn.Module):
    """Einsum, no names in the usual list; `weigh` makes weights of (b, h, i, j) scores."""

    def __init__(self, weigh, n=4):
        super().__init__()
        self.heads, self.weigh = n, weigh
        self.to_qkv, self.to_out = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C)

    def forward(self, x):
        q, k, v = (heads(z, self.heads) for z in self.to_qkv(x).chunk(3, dim=-1))
        sim = torch.einsum("b h i d, b h j d -> b h i j", q * q.shape[-1] ** -0.5, k)
        attn = self.weigh(sim)
        out = torch.einsum("b h i j, b h j d -> b h i d", attn, v)
        return self.to_out(merged(out))


class TalkingHeads(nn.Module):
    def __init__(self, before=True, after=True, kind="linear", n=4):
        super().__init__()
        self.num_heads, self.before, self.after = n, before, after
        self.qkv, self.proj = nn.Linear(C, 3 * C), nn.Linear(C, C)
        make = {
            "linear": lambda: nn.Linear(n, n, bias=False),
            "with bias": lambda: nn.Linear(n, n),
            "matrix": lambda: nn.Parameter(torch.randn(n, n)),
        }[kind]
        self.proj_l, self.proj_w = make() if before else None, make() if after else None

    def mixed(self, part, z):
        if isinstance(part, nn.Parameter):
            return torch.einsum("bhij,hg->bgij", z, part)
        return part(z.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    def forward(self, x):
        q, k, v = (heads(z, self.num_heads) for z in self.qkv(x).chunk(3, dim=-1))
        attn = q @ k.mT / q.shape[-1] ** 0.5
        attn = masked(self.mixed(self.proj_l, attn) if self.before else attn).softmax(-1)
        attn = self.mixed(self.proj_w, attn).tril() if self.after else attn
        return self.proj(merged(attn @ v))


class T5Attention(nn.Module):
    """Buckets of distances, as T5 has them for a decoder; unscaled scores, as in T5, if `raw`."""

    def __init__(self, raw=False, n_heads=4, buckets=8, furthest=16):
        super().__init__()
        self.n_heads, self.raw, self.buckets, self.furthest = n_heads, raw, buckets, furthest
        self.q, self.k, self.v, self.o = (nn.Linear(C, C, bias=False) for _ in range(4))
        self.relative_attention_bias = nn.Embedding(buckets, n_heads)

    def bucket(self, T):
        n, exact = distance(T).clamp(min=0), self.buckets // 2
        far = torch.log(n.float().clamp(min=1) / exact) / math.log(self.furthest / exact)
        far = (exact + far * (self.buckets - exact)).long().clamp(max=self.buckets - 1)
        return torch.where(n < exact, n, far)

    def forward(self, x):
        q, k, v = (heads(layer(x), self.n_heads) for layer in (self.q, self.k, self.v))
        scores = q @ k.mT / (1 if self.raw else q.shape[-1] ** 0.5)
        scores = scores + self.relative_attention_bias(self.bucket(x.shape[1])).permute(2, 0, 1)
        return self.o(merged(masked(scores).softmax(-1) @ v))


class Sinks(nn.Module):
    """gpt-oss: one learned score a head, whose weight is thrown away."""

    def __init__(self, n=4, start=None, change=None, width=None, scale=True):
        super().__init__()
        self.num_attention_heads, self.change, self.width = n, change, width
        self.scale = (C // n) ** -0.5 if scale else None
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(C, C) for _ in range(4))
        self.sinks = nn.Parameter(torch.randn(n) if start is None else torch.full((n,), start))

    def forward(self, x):
        q, k, v = (heads(f(x), 4) for f in (self.q_proj, self.k_proj, self.v_proj))
        q, k = (q, k) if self.change is None else (self.change(q), self.change(k))
        logits = masked(q @ k.mT * (self.scale or 1))
        if self.width:
            logits = logits.masked_fill(distance(x.shape[1]) >= self.width, -math.inf)
        sinks = self.sinks.reshape(1, -1, 1, 1).expand(*logits.shape[:-1], 1)
        probs = torch.cat([logits, sinks], dim=-1).softmax(-1)[..., :-1]
        return self.o_proj(merged(probs @ v))


class LearnedKeys(nn.Module):
    """Learned keys and values before those of the tokens."""

    def __init__(self, n=1, heads=4):
        super().__init__()
        self.heads, self.mem_kv = heads, nn.Parameter(torch.randn(2, heads, n, C // heads))
        self.to_qkv, self.to_out = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C)

    def forward(self, x):
        q, k, v = (heads(z, self.heads) for z in self.to_qkv(x).chunk(3, dim=-1))
        k, v = (
            torch.cat([own.expand(len(x), -1, -1, -1), z], dim=-2)
            for own, z in zip(self.mem_kv, (k, v), strict=True)
        )
        hidden = torch.ones(x.shape[1], k.shape[-2]).triu(k.shape[-2] - x.shape[1] + 1) == 1
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -math.inf)
        return self.to_out(merged(scores.softmax(-1) @ v))


class PaLMBlock(nn.Module):
    """Multi-query attention and SwiGLU of one fused layer, side by side."""

    def __init__(self, parallel=True):
        super().__init__()
        self.heads, self.sizes = 4, (C, C // 4, C // 4, 2 * C, 2 * C)
        self.norm, self.fused_attn_ff_proj = nn.LayerNorm(C), nn.Linear(C, sum(self.sizes))
        self.attn_out, self.ff_out, self.parallel = nn.Linear(C, C), nn.Linear(2 * C, C), parallel

    def forward(self, x):
        q, k, v, a, gate = self.fused_attn_ff_proj(self.norm(x)).split(self.sizes, dim=-1)
        scores = rope(heads(q, 4)) @ rope(k)[:, None].mT / (C // 4) ** 0.5
        out = self.attn_out(merged(masked(scores).softmax(-1) @ v[:, None]))
        gate = gate if self.parallel else gate + out.repeat(1, 1, 2)
        return x + out + self.ff_out(F.silu(gate) * a)


class LinearTransformer(nn.Module):
    """One token after another with a running sum, as a recurrent network."""

    def __init__(self, phi=lambda z: F.elu(z) + 1, n=4):
        super().__init__()
        self.n_head, self.phi = n, phi
        self.query, self.key, self.value, self.out = (nn.Linear(C, C) for _ in range(4))

    def forward(self, x):
        q, k, v = (heads(f(x), self.n_head) for f in (self.query, self.key, self.value))
        q, k, outs, S, z = self.phi(q), self.phi(k), [], 0, 0
        for t in range(x.shape[1]):
            S = S + k[:, :, t, :, None] * v[:, :, t, None, :]
            z = z + k[:, :, t]
            outs.append((q[:, :, t, None] @ S)[:, :, 0] / (q[:, :, t] * z).sum(-1, keepdim=True))
        return self.out(merged(torch.stack(outs, dim=2)))


class NormedQK(nn.Module):
    """`norm` for each head, or for all channels before the split; one for both, or two."""

    def __init__(self, norm, size, shared=False, n=4):
        super().__init__()
        self.n_head, self.whole = n, size == C
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(C, C, bias=False) for _ in range(4))
        self.q_norm = norm(size)
        self.k_norm = self.q_norm if shared else norm(size)
        for own in {self.q_norm, self.k_norm}:
            for parameter in own.parameters():
                nn.init.uniform_(parameter, 0.5, 1.5)

    def forward(self, x):
        q, k, v = self.wq(x), self.wk(x), heads(self.wv(x), self.n_head)
        if self.whole:
            q, k = heads(self.q_norm(q), self.n_head), heads(self.k_norm(k), self.n_head)
        else:
            q = self.q_norm(heads(q, self.n_head))
            k = self.k_norm(heads(k, self.n_head))
        return self.wo(
            F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        )


class Latent(nn.Module):
    """DeepSeek-V2: 16 + 8 channels of a query, the last of which are rotated; 16 of a value."""

    def __init__(self, turn_q=True, rope=rope, scale=24**-0.5, mask=masked, n=4, dim=C):
        super().__init__()
        self.num_heads, self.turn_q, self.rope = n, turn_q, rope
        self.by, self.mask = scale, mask
        self.q_a_proj, self.q_a_layernorm = nn.Linear(dim, 20, bias=False), nn.RMSNorm(20)
        self.q_b_proj = nn.Linear(20, n * 24, bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(dim, 12 + 8, bias=False)
        self.kv_a_layernorm, self.kv_b_proj = nn.RMSNorm(12), nn.Linear(12, n * 32, bias=False)
        self.o_proj = nn.Linear(n * 16, dim, bias=False)

    def forward(self, x):
        n = self.num_heads
        q, q_turned = heads(self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x))), n).split(
            [16, 8], -1
        )
        latent, k_turned = self.kv_a_proj_with_mqa(x).split([12, 8], dim=-1)
        k, v = heads(self.kv_b_proj(self.kv_a_layernorm(latent)), n).split(16, dim=-1)
        q_turned = self.rope(q_turned) if self.turn_q else q_turned
        scores = q @ k.mT + q_turned @ self.rope(k_turned)[:, None].mT
        return self.o_proj(merged(self.mask(scores * self.by).softmax(-1) @ v))


class LatentOfOneHeadEach(nn.Module):
    """Names of other layers, which read a narrow vector; `rotated` has a layer of its own."""

    def __init__(self, rotated=False, mix=lambda z: z, values=lambda k, v: v, n=4):
        super().__init__()
        self.n_heads, self.rotated, self.mix, self.values = n, rotated, mix, values
        self.W_D, self.W_Q, self.W_O = nn.Linear(C, 12), nn.Linear(C, C), nn.Linear(C, C)
        self.W_K, self.W_V = nn.Linear(12, C), nn.Linear(12, C)
        self.W_QR, self.W_KR = (nn.Linear(C, 4 * n), nn.Linear(C, 4)) if rotated else (None, None)

    def forward(self, x):
        latent = self.mix(self.W_D(x))
        q, k, v = (
            heads(z, self.n_heads) for z in (self.W_Q(x), self.W_K(latent), self.W_V(latent))
        )
        v = self.values(k, v)
        if self.rotated:
            q = torch.cat([q, rope_pairs(heads(self.W_QR(x), self.n_heads))], dim=-1)
            turned = rope_pairs(self.W_KR(x))[:, None].expand(-1, self.n_heads, -1, -1)
            k = torch.cat([k, turned], dim=-1)
        return self.W_O(merged(F.scaled_dot_product_attention(q, k, v, is_causal=True)))


class QueriesAndGate(nn.Module):
    """Qwen3-Next: one layer makes queries and a gate, head by head."""

    def __init__(self, n=4, n_kv=2):
        super().__init__()
        self.num_heads, self.n_kv = n, n_kv
        self.q_proj, self.o_proj = nn.Linear(C, 2 * C), nn.Linear(C, C)
        self.k_proj, self.v_proj = nn.Linear(C, C // n * n_kv), nn.Linear(C, C // n * n_kv)
        self.q_norm, self.k_norm = nn.RMSNorm(C // n), nn.RMSNorm(C // n)

    def forward(self, x):
        q, gate = heads(self.q_proj(x), self.num_heads).chunk(2, dim=-1)
        k, v = heads(self.k_proj(x), self.n_kv), heads(self.v_proj(x), self.n_kv)
        q, k = rope(self.q_norm(q)), rope(self.k_norm(k))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(merged(out * gate.sigmoid()))


class InGroups(nn.Module):
    """Megatron, InternLM 2: in each group its queries, then a key and a value."""

    def __init__(self, n=8, n_kv=2):
        super().__init__()
        self.num_heads, self.n_kv = n, n_kv
        self.wqkv, self.wo = nn.Linear(C, C // n * (n + 2 * n_kv)), nn.Linear(C, C)

    def forward(self, x):
        z = self.wqkv(x).unflatten(-1, (self.n_kv, -1, C // self.num_heads))
        z = z[..., :-2, :].flatten(2, 3), z[..., -2, :], z[..., -1, :]
        q, k, v = (one.transpose(1, 2) for one in z)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.wo(merged(out))


def rotations(T, d):
    """Complex numbers (T, d // 2), as in Llama."""
    angle = torch.arange(T)[:, None] / 10_000 ** (torch.arange(0, d, 2) / d)
    return torch.polar(torch.ones_like(angle), angle)


def by_rotations(z, of):
    z = torch.view_as_complex(z.unflatten(-1, (-1, 2)).contiguous()) * of[: z.shape[-2]]
    return torch.view_as_real(z).flatten(-2)


class Rotated(nn.Module):
    """Heads of 8 channels, interleaved, as in GPT-NeoX; `share` of them is rotated."""

    def __init__(self, base=10_000, pairs=False, share=0.5, sign=1):
        super().__init__()
        self.n_head, self.base, self.pairs, self.share, self.sign = 4, base, pairs, share, sign
        self.query_key_value, self.dense = nn.Linear(C, 3 * C), nn.Linear(C, C)

    def forward(self, x):
        q, k, v = self.query_key_value(x).unflatten(-1, (4, 3, 8)).permute(3, 0, 2, 1, 4)
        q, k = self.turned(q), self.turned(k)
        return self.dense(merged(F.scaled_dot_product_attention(q, k, v, is_causal=True)))

    def turned(self, z):
        n = int(self.share * 8)
        angle = torch.arange(z.shape[-2])[:, None] / self.base ** (torch.arange(0, n, 2) / n)
        turn = torch.polar(torch.ones_like(angle), self.sign * angle)
        two = (
            z[..., :n].unflatten(-1, (-1, 2))
            if self.pairs
            else z[..., :n].unflatten(-1, (2, -1)).mT
        )
        two = torch.view_as_real(torch.view_as_complex(two.contiguous()) * turn)
        return torch.cat([(two if self.pairs else two.mT).flatten(-2), z[..., n:]], -1)


def window_wrong(s, width=3):
    """Keeps what lies further back than the window, and the token itself."""
    d = distance(s.shape[-1])
    return s.masked_fill((d < 0) | ((d > 0) & (d < width)), -math.inf).softmax(-1)


def window_ahead(s, width=3):
    d = distance(s.shape[-1])
    return s.masked_fill((d > 0) | (d <= -width), -math.inf).softmax(-1)


def window_both_sides(s, width=3):
    d = distance(s.shape[-1])
    return s.masked_fill((d >= width) | (d <= -width), -math.inf).softmax(-1)


def every_second(s):
    d = distance(s.shape[-1])
    return s.masked_fill((d < 0) | (d % 2 == 1), -math.inf).softmax(-1)


def by_log_of_row(s):
    return masked(s * torch.log(torch.arange(s.shape[-1]) + 1.0)[:, None]).softmax(-1)


class Raising(MultiHeadAttention):
    """Runs a while, and stops where `when` says."""

    def __init__(self, when, error):
        super().__init__(C, 4)
        self.when, self.error = when, error

    def forward(self, x, **options):
        if self.when(self, x):
            raise self.error
        return super().forward(x, **options)


class Permuted(nn.Module):
    """einops style; `split` and `merge` say which of (h d) runs fastest."""

    def __init__(self, split="h d", merge="h d", scale=True, mask=True):
        super().__init__()
        self.heads, self.scale, self.mask = 4, scale, mask
        self.order = (split, merge)
        self.to_q, self.to_k, self.to_v, self.to_out = (
            nn.Linear(C, C, bias=False) for _ in range(4)
        )

    def forward(self, x):
        def split(z):
            if self.order[0] == "h d":
                return z.unflatten(-1, (4, -1)).permute(0, 2, 1, 3)
            return z.unflatten(-1, (-1, 4)).permute(0, 3, 1, 2)

        q, k, v = (split(f(x)) for f in (self.to_q, self.to_k, self.to_v))
        scores = q @ k.mT / (8**0.5 if self.scale else 1)
        out = (masked(scores) if self.mask else scores).softmax(-1) @ v
        order = {"d h": (0, 2, 3, 1)}.get(self.order[1], (0, 2, 1, 3))
        out = out.flip(1) if self.order[1] == "reversed" else out
        out = out.permute(order)
        return self.to_out(out.flatten(2))


# ---------------------------------------------------------------- what they should be called


MEAN = "{x} = {x} - {x}.mean(dim=%s, keepdim=True)"
RELATIVE = {
    "+init": "self.table = nn.Parameter(torch.randn(2 * 64 - 1, {init_H}))",
    "+score": "{scores} = {scores} + self.table[distance({T}) + 63].permute(2, 0, 1)",
}

BROKEN = {  # what is wrong -> how it is made, and what `diagnose` calls it
    # how a block is put together
    "first sum lost": (block(first_sum_lost), "the first sum is not kept"),
    "one residual for both": (block(one_residual), "one residual connection around both"),
    "FFN reads attention": (block(alone), "the feed-forward reads the attention alone"),
    "x - both": (block(minus_both), "x minus the attention, x minus the feed-forward"),
    "ReLU on the stream": (block(relu_on_stream), "ReLU on the residual stream"),
    "ReLU on both sums": (block(relu_on_both_sums), "ReLU on the residual stream"),
    "norm at the end": (block(norm_at_the_end), "a norm at the end"),
    "x before both": (block(before_both), "x added before the branch"),
    "norms around": (block(norms_around), "norm before and after the branch"),
    "norms around sum": (block(norm_around_sum), "norm before the branch and after the sum"),
    "norm_2 on stream": (
        block(norm_2_on_stream),
        "norm on the residual stream, at the feed-forward",
    ),
    "norm added": (block(norm_added), "norm on the residual stream, at the attention"),
    "x once more": (block(x_of_before), "x added once more at the end"),
    "q without norm": (lambda: TorchInBlock("q"), "queries, keys and values of different inputs"),
    "k, v without norm": (
        lambda: TorchInBlock("kv"),
        "queries, keys and values of different inputs",
    ),
    "v without norm": (lambda: TorchInBlock("v"), "queries, keys and values of different inputs"),
    "q without norm, own attention": (
        lambda: HandsOver("q"),
        "queries, keys and values of different inputs",
    ),
    "v without norm, own attention": (
        lambda: HandsOver("v"),
        "queries, keys and values of different inputs",
    ),
    "residual inside too": (
        with_part(attention=lambda: AddsItself(C, 4)),
        "x added to the output",
    ),
    "ReLU after each": (
        in_two_steps(STEPS["ReLU after the {}"], STEPS["ReLU after the {}"]),
        "ReLU after each branch",
    ),
    **{
        name.format("attention"): (in_two_steps(step, usual), name.format("attention"))
        for name, step in STEPS.items()
    },
    **{
        name.format("feed-forward"): (in_two_steps(usual, step), name.format("feed-forward"))
        for name, step in STEPS.items()
    },
    # parts of a block
    "norm over T and C": (
        with_part(norm_1=lambda: Normed(standardised(1, 2))),
        "norm over the tokens",
    ),
    "norm over everything": (
        with_part(norm_1=lambda: Normed(standardised(0, 1, 2))),
        "norm over the batch",
    ),
    "norm over T": (with_part(norm_2=lambda: Normed(standardised(1))), "norm over the tokens"),
    "norm centred over T": (
        with_part(norm_1=lambda: Normed(centred_over(1))),
        "norm over the tokens",
    ),
    "norm centred over B": (
        with_part(norm_1=lambda: Normed(centred_over(0))),
        "norm over the batch",
    ),
    "MLP over time": (
        with_part(feed_forward=lambda: OverTime(7)),
        "feed-forward mixes tokens",
    ),
    "MLP over time, block_size 64": (lambda: Mixer(64), "feed-forward mixes tokens"),
    # attention
    "rotary with √C": (attention({"+heads": ROPE, **ROOT_C}), "divided by √C"),
    "rotary, no mask": (attention({"+heads": ROPE, "hide": "", "mask": ""}), "no mask"),
    "rotary, no scale": (attention({"+heads": PAIRS, "scale": ""}, "llama"), "no scale"),
    "rotary with √C in a block": (
        attention({"+heads": ROPE, **ROOT_C}, part="block"),
        "divided by √C",
    ),
    "rotary halves by pairs": (
        attention(
            {"+heads": "{q}, {k} = mixed_up({q}), mixed_up({k})"}, names={"mixed_up": mixed_up}
        ),
        "rotary positions, halves and pairs mixed up",
    ),
    "rotary pairs by halves": (
        attention(
            {"+heads": "{q}, {k} = mixed_up({q}, True), mixed_up({k}, True)"},
            names={"mixed_up": mixed_up},
        ),
        "rotary positions, halves and pairs mixed up",
    ),
    "x minus the output": (
        attention({"output": "return {x} - {proj}({out})"}, "nano"),
        "x minus the output",
    ),
    "rotary along heads, llama block": (
        attention({"+heads": ALONG_HEADS.replace("rope", "rope_pairs")}, "llama", part="block"),
        "rotary positions that cancel",
    ),
    "QK-norm, no mask": (
        attention(
            {
                "+heads": RMS_NORMED,
                "hide": "",
                "mask": "",
            }
        ),
        "no mask",
    ),
    "GQA, k tiled and v interleaved": (
        lambda: Grouped("tile", "interleave"),
        "keys and values repeated in different orders",
    ),
    "GQA, v tiled and k interleaved": (
        lambda: Grouped("interleave", "tile"),
        "keys and values repeated in different orders",
    ),
    "GQA, no scale": (lambda: Grouped(scale=False), "no scale"),
    "MQA, no scale": (lambda: Grouped(scale=False, n_kv=1), "no scale"),
    "same head four times": (
        lambda: Karpathys(lambda: nn.ModuleList([Head()] * 4)),
        "one head several times",
    ),
    "ALiBi, wrong sign, divided by √T": (
        attention(
            {
                "scale": " / math.sqrt({T})",
                "+score": "{scores} = {scores} + alibi({T}, {H}, 1)",
            },
            names={"alibi": alibi},
        ),
        "ALiBi with the wrong sign; divided by √T",
    ),
    "ALiBi, wrong sign": (
        attention({"+score": "{scores} = {scores} + alibi({T}, {H}, 1)"}, names={"alibi": alibi}),
        "ALiBi with the wrong sign",
    ),
    "clamped to ±1": (
        lambda: BlockSparse(lambda s: masked(s.clamp(-0.3, 0.3)).softmax(-1)),
        "scores clamped",
    ),
    "clamped at 0": (attention({"+score": "{scores} = {scores}.clamp(min=0)"}), "scores clamped"),
    "window: far ones kept": (lambda: BlockSparse(window_wrong), "window on the wrong side"),
    "window ahead": (lambda: BlockSparse(window_ahead), "window on the wrong side"),
    "window on both sides": (lambda: BlockSparse(window_both_sides), "window on both sides"),
    "norm over (T, C) inside": (
        attention({"+shape": "{x} = F.layer_norm({x}, {x}.shape[1:])"}),
        "tokens mixed before the attention",
    ),
    "mean over batch": (attention({"+shape": MEAN % 0}), "sequences mixed before the attention"),
    "mean over time": (attention({"+shape": MEAN % 1}), "tokens mixed before the attention"),
    "mean over time after": (
        attention({"output": "return {proj}({out} - {out}.mean(1, keepdim=True))"}, "nano"),
        "mean over time subtracted",
    ),
    "mean over batch after": (
        attention({"output": "return {proj}({out} - {out}.mean(0, keepdim=True))"}, "raschka"),
        "mean of the batch subtracted",
    ),
    "sink, no scale": (lambda: Sinks(scale=False), "no scale"),
    "softcap and RoPE, no scale": (
        attention({"+heads": ROPE, "+score": SOFTCAP.replace("50", "2"), "scale": ""}),
        "no scale",
    ),
    "position bias, no scale": (attention({**PLACES, "scale": ""}), "no scale"),
    "gated, no scale": (attention({**GATE, "scale": ""}), "no scale"),
    "gated, no mask": (attention({**GATE, "hide": "", "mask": ""}, "llama"), "no mask"),
    "latent, no scale": (lambda: Latent(scale=1), "no scale"),
    "latent, no mask": (lambda: Latent(mask=lambda scores: scores), "no mask"),
    "latent, scaled by what is not rotated": (
        lambda: Latent(scale=16**-0.5),
        "divided by the root of the values' channels",
    ),
    "latent, queries not rotated": (
        lambda: Latent(turn_q=False),
        "rotary positions on the keys only",
    ),
    "latent, keys averaged": (
        lambda: LatentOfOneHeadEach(values=lambda k, v: k),
        "keys used as values",
    ),
    "latent, mixed": (
        lambda: LatentOfOneHeadEach(mix=lambda z: z - z.mean(1, keepdim=True)),
        "tokens mixed before the attention",
    ),
    "order, no scale": (lambda: Permuted("d h", scale=False), "no scale"),
    "order, no mask": (lambda: Permuted("h d", "d h", mask=False), "no mask"),
}
ROTARY = "rotary positions (RoPE, Su et al. 2021)"
GROUPED = "grouped-query attention (Ainslie et al. 2023)"
GATED = "gated attention (Qiu et al. 2025)"
MLA = "multi-head latent attention (MLA, DeepSeek-V2, 2024)"
LEARNED_KEYS = "learned sinks with keys and values (Sukhbaatar et al. 2019)"
VARIANTS = {
    "RoPE": (attention({"+heads": ROPE}, "llama"), "rotary positions (RoPE, Su et al. 2021)"),
    "RoPE by pairs": (attention({"+heads": PAIRS}), "rotary positions (RoPE, Su et al. 2021)"),
    "RoPE, half of the channels": (Rotated, "rotary positions (RoPE, Su et al. 2021)"),
    "RoPE and GQA": (
        attention({"+heads": ROPE}, "llama", num_kv_heads=2),
        "grouped-query attention (Ainslie et al. 2023); rotary positions (RoPE, Su et al. 2021)",
    ),
    "QK-norm, RMS, own weights": (lambda: NormedQK(nn.RMSNorm, 8), "QK-norm (Henry et al. 2020)"),
    "QK-norm, layer norm": (lambda: NormedQK(nn.LayerNorm, 8), "QK-norm (Henry et al. 2020)"),
    "QK-norm, shared": (lambda: NormedQK(nn.RMSNorm, 8, True), "QK-norm (Henry et al. 2020)"),
    "QK-norm before the split": (lambda: NormedQK(nn.RMSNorm, C), "QK-norm (Henry et al. 2020)"),
    "QK-norm, plain": (
        attention({"+heads": RMS_NORMED}),
        "QK-norm (Henry et al. 2020)",
    ),
    "QK-norm and RoPE": (
        attention(
            {
                "+init": "self.q_norm = nn.RMSNorm({init_C} // {init_H})\n"
                "        self.k_norm = nn.RMSNorm({init_C} // {init_H})",
                "+heads": "{q}, {k} = rope(self.q_norm({q})), rope(self.k_norm({k}))",
            },
            "llama",
        ),
        "QK-norm (Henry et al. 2020); rotary positions (RoPE, Su et al. 2021)",
    ),
    "QK-norm after RoPE": (
        attention(
            {
                "+init": NORMED,
                "+heads": "{q}, {k} = self.q_norm(rope({q})), self.k_norm(rope({k}))",
            },
            "llama",
        ),
        f"QK-norm (Henry et al. 2020); {ROTARY}",
    ),
    "RoPE by complex numbers": (
        attention(
            {
                "+init": 'self.register_buffer("of", rotations(64, {init_C} // {init_H}))',
                "+heads": "{q}, {k} = by_rotations({q}, self.of), by_rotations({k}, self.of)",
            },
            "llama",
            names={"rotations": rotations, "by_rotations": by_rotations},
        ),
        ROTARY,
    ),
    "latent": (LatentOfOneHeadEach, MLA),
    "latent, a rotated part of its own": (
        lambda: LatentOfOneHeadEach(rotated=True),
        f"{MLA}; {ROTARY}",
    ),
    "latent, DeepSeek": (Latent, f"{MLA}; {ROTARY}"),
    "latent, DeepSeek, pairs": (lambda: Latent(rope=rope_pairs), f"{MLA}; {ROTARY}"),
    "gated": (attention(GATE, "nano"), GATED),
    "gated, per head, and RoPE": (
        attention(
            {
                "+init": "self.gate = nn.Linear({init_C}, {init_H})",
                "+heads": ROPE,
                "+merge": "{out} = ({out}.unflatten(-1, ({H}, -1))"
                " * self.gate({x}).sigmoid()[..., None]).flatten(-2)",
            },
            "llama",
        ),
        f"{GATED}; {ROTARY}",
    ),
    "gated, Qwen3-Next": (
        QueriesAndGate,
        f"{GATED}; {GROUPED}; QK-norm (Henry et al. 2020); {ROTARY}",
    ),
    "grouped, fused in groups": (InGroups, GROUPED),
    "position bias": (attention(PLACES), "position bias (Swin, Liu et al. 2021)"),
    "softcap 50 and RoPE": (
        attention({"+heads": ROPE, "+score": SOFTCAP}, "llama"),
        f"softcap (Gemma 2, 2024); {ROTARY}",
    ),
    "sinks, window and RoPE, gpt-oss": (
        lambda: Sinks(change=rope, width=3),
        f"sliding window (Beltagy et al. 2020); learned sink (gpt-oss, 2025); {ROTARY}",
    ),
    "cosine attention": (
        attention(
            {
                "+init": "self.tau = nn.Parameter(torch.full(({init_H}, 1, 1), 10.0))",
                "+heads": "{q} = F.normalize({q}, dim=-1) * self.tau\n"
                "        {k} = F.normalize({k}, dim=-1)",
                "scale": "",
            }
        ),
        "QK-norm (Henry et al. 2020); scores times another factor",
    ),
    "ALiBi": (
        attention({"+score": "{scores} = {scores} + alibi({T}, {H})"}, names={"alibi": alibi}),
        "ALiBi (Press et al. 2022)",
    ),
    "ALiBi, 8 heads, as BLOOM": (
        attention(
            {"+score": "{scores} = {scores} + alibi({T}, {H})"},
            "llama",
            n_head=8,
            names={"alibi": alibi_of_positions},
        ),
        "ALiBi (Press et al. 2022)",
    ),
    "T5": (T5Attention, "relative position bias (T5, Raffel et al. 2020)"),
    "T5, raw scores": (
        lambda: T5Attention(raw=True),
        "relative position bias (T5, Raffel et al. 2020)",
    ),
    "table of distances": (attention(RELATIVE), "relative position bias (T5, Raffel et al. 2020)"),
    "softcap 2": (
        attention({"+score": "{scores} = 2.0 * torch.tanh({scores} / 2.0)"}, "llama"),
        "softcap (Gemma 2, 2024)",
    ),
    "softcap 0.5": (
        lambda: BlockSparse(lambda s: masked(0.5 * torch.tanh(s / 0.5)).softmax(-1)),
        "softcap (Gemma 2, 2024)",
    ),
    "talking heads": (TalkingHeads, "talking heads (Shazeer et al. 2020)"),
    "talking heads, before": (
        lambda: TalkingHeads(after=False, kind="matrix"),
        "talking heads (Shazeer et al. 2020)",
    ),
    "talking heads, after": (
        lambda: TalkingHeads(before=False),
        "talking heads (Shazeer et al. 2020)",
    ),
    "talking heads, with biases": (
        lambda: TalkingHeads(kind="with bias"),
        "talking heads (Shazeer et al. 2020)",
    ),
    "softcap and window of 3": (
        lambda: BlockSparse(
            lambda s: (
                masked(torch.tanh(s)).masked_fill(distance(s.shape[-1]) > 2, -math.inf).softmax(-1)
            )
        ),
        "sliding window (Beltagy et al. 2020); softcap (Gemma 2, 2024)",
    ),
    "learned key and value": (LearnedKeys, LEARNED_KEYS),
    "3 learned keys and values": (lambda: LearnedKeys(3), LEARNED_KEYS),
    "PaLM": (
        PaLMBlock,
        "multi-query attention (Shazeer 2019); another input of its layers; rotary positions "
        "(RoPE, Su et al. 2021); parallel block (Wang and Komatsuzaki 2021)",
    ),
    "sinks": (Sinks, "learned sink (gpt-oss, 2025)"),
    "softmax1": (
        lambda: Sinks(start=0.0),
        "softmax1, with 1 added to the denominator (Miller 2023)",
    ),
    "linear attention": (LinearTransformer, "linear attention (Katharopoulos et al. 2020)"),
    "grouped-query": (Grouped, "grouped-query attention (Ainslie et al. 2023)"),
    "grouped-query, ours": (
        lambda: MultiHeadAttention(C, 8, 2),
        "grouped-query attention (Ainslie et al. 2023)",
    ),
    "multi-query": (lambda: Grouped(n_kv=1), "multi-query attention (Shazeer 2019)"),
    "log T": (
        attention({"+score": "{scores} = {scores} * math.log({T})"}),
        "scores scaled by log T (Chiang and Cholak 2022)",
    ),
    "log of each row": (
        lambda: BlockSparse(by_log_of_row),
        "scores scaled by log T (Chiang and Cholak 2022)",
    ),
    "learned temperature": (
        attention(
            {
                "+init": "self.temperature = nn.Parameter(torch.full(({init_H}, 1, 1), 1.5))",
                "+score": "{scores} = {scores} * self.temperature",
            },
            "nano",
        ),
        "scores times another factor",
    ),
    "window of 3": (
        attention({"+hide": "{scores} = {scores}.masked_fill(distance({T}) >= 3, -math.inf)"}),
        "sliding window (Beltagy et al. 2020)",
    ),
    "every second token": (
        lambda: BlockSparse(every_second),
        "sparse attention (Child et al. 2019)",
    ),
    "LayerScale, timm": (TimmBlock, "LayerScale (Touvron et al. 2021)"),
    "LayerScale, parameters": (GammaBlock, "LayerScale (Touvron et al. 2021)"),
    "ReZero": (ReZero, "ReZero (Bachlechner et al. 2020)"),
    "Gemma 2": (Gemma2Layer, "sandwich norm (Ding et al. 2021)"),
    "sandwich": (SandwichBlock, "sandwich norm (Ding et al. 2021)"),
    "GPT-J": (GPTJBlock, "parallel block (Wang and Komatsuzaki 2021)"),
    # what may be meant
    "residual inside": (
        attention({"output": "return {x} + {proj}({out})"}),
        "x added to the output",
    ),
    # the same function with its channels in another order
    "split b n (d h)": (lambda: Permuted("d h"), "channels interleaved by the split"),
    "merge b n (d h)": (lambda: Permuted("h d", "d h"), "channels interleaved by the merge"),
    "split and merge b n (d h)": (
        lambda: Permuted("d h", "d h"),
        "channels interleaved by the split; channels interleaved by the merge",
    ),
    "heads reversed": (lambda: Permuted("h d", "reversed"), "heads reversed by the merge"),
    "GQA, both tiled": (
        lambda: Grouped("tile", "tile"),
        "groups tiled; grouped-query attention (Ainslie et al. 2023)",
    ),
}
ASSERTION = AssertionError("Cannot forward, model block size is exhausted.")
RAISING = {  # what happens -> how it is made, and a part of what is told
    "always": (
        lambda: Raising(lambda self, x: True, NotImplementedError("causal only on Tuesdays")),
        "NotImplementedError: causal only on Tuesdays",
    ),
    "from 6 tokens": (lambda: Raising(lambda self, x: x.shape[1] > 5, ASSERTION), "AssertionError"),
    "for other values": (
        lambda: Raising(lambda self, x: bool(x.abs().max() > 3.5), ValueError("out of range")),
        "ValueError: out of range",
    ),
    "where gradients are asked for": (
        lambda: Raising(lambda self, x: torch.is_grad_enabled(), RuntimeError("inference only")),
        "RuntimeError: inference only",
    ),
    "MLP over 64 tokens": (lambda: Mixer(64), "mat1 and mat2 shapes cannot be multiplied"),
    "nothing but an MLP over time": (
        lambda: OverTime(16),
        "It runs with 16 tokens only. Does a Linear layer read the tokens",
    ),
    "attention inside raises": (
        with_part(attention=lambda: Raising(lambda self, x: True, KeyError("rope"))),
        "KeyError: 'rope'",
    ),
    "gives a dictionary": (
        with_part(
            feed_forward=lambda: (lambda m: setattr(m, "forward", lambda x: {"out": x}) or m)(
                FeedForward(C)
            )
        ),
        "TypeError",
    ),
}
