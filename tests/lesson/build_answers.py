"""Answers to builds that differ from the right programs in more than a mistake."""

RIGHT = {  # the name of a build and of a design -> the program
    "Head one layer for all three, bias, SDPA": """
class Head(nn.Module):
    def __init__(self, C, head_size):
        super().__init__()
        self.qkv = nn.Linear(C, 3 * head_size)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
""",
    "Head parameters in a list, einsum, a kept mask": """
class Head(nn.Module):
    def __init__(self, width, d):
        super().__init__()
        self.w = nn.ParameterList([nn.Parameter(0.1 * torch.randn(width, d)) for _ in "qkv"])
        self.register_buffer("past", torch.ones(512, 512).tril())

    def forward(self, x):
        q, k, v = (torch.einsum("btc,cd->btd", x, w) for w in self.w)
        scores = torch.einsum("bid,bjd->bij", q, k) * q.shape[-1] ** -0.5
        past = self.past[: x.shape[1], : x.shape[1]]
        return nn.Softmax(dim=-1)(scores.masked_fill(past == 0, -torch.inf)) @ v
""",
    "Head loops over texts and tokens": """
class Head(nn.Module):
    def __init__(self, C, head_size):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(C, head_size, bias=False) for _ in range(3))

    def of_text(self, text):
        rows = []
        for t in range(len(text)):
            keys = [self.b(text[s]) for s in range(t + 1)]
            scores = torch.stack([self.a(text[t]) @ k / len(k) ** 0.5 for k in keys])
            values = torch.stack([self.c(text[s]) for s in range(t + 1)])
            rows.append(torch.softmax(scores, dim=0) @ values)
        return torch.stack(rows)

    def forward(self, x):
        return torch.stack([self.of_text(text) for text in x])
""",
    "Head one token of all texts after the other": """
class Head(nn.Module):
    def __init__(self, C, head_size):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(C, head_size, bias=False) for _ in range(3))

    def forward(self, x):
        out = []
        for t in range(x.shape[1]):
            query, past = self.q(x[:, t]), range(t + 1)
            scores = [(query * self.k(x[:, s])).sum(dim=-1) for s in past]  # (B,) each
            weights = torch.softmax(torch.stack(scores) / len(query[0]) ** 0.5, dim=0)
            out.append(sum(weights[s][:, None] * self.v(x[:, s]) for s in past))
        return torch.stack(out, dim=1)
""",
    "MultiHeadAttention own heads, dropout": """
class MultiHeadAttention(nn.Module):
    def __init__(self, C, n_head):
        super().__init__()
        self.heads = nn.ModuleList(Head(C, C // n_head) for _ in range(n_head))
        self.last = nn.Sequential(nn.Linear(C, C), nn.Dropout(0.1))

    def forward(self, x):
        return self.last(torch.cat([head(x) for head in self.heads], dim=-1))
""",
    "MultiHeadAttention one layer for all three, bias, SDPA": """
class MultiHeadAttention(nn.Module):
    def __init__(self, C, n_head):
        super().__init__()
        self.n_head, self.c_attn, self.c_proj = n_head, nn.Linear(C, 3 * C), nn.Linear(C, C)

    def forward(self, x):
        q, k, v = self.c_attn(x).unflatten(2, (3, self.n_head, -1)).permute(2, 0, 3, 1, 4)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(z.transpose(1, 2).reshape(x.shape))
""",
    "MultiHeadAttention convolutions in the place of layers": """
class MultiHeadAttention(nn.Module):
    def __init__(self, C, n_head):
        super().__init__()
        self.n, self.qkv, self.out = n_head, nn.Conv1d(C, 3 * C, 1), nn.Conv1d(C, C, 1)

    def forward(self, x):
        q, k, v = self.qkv(x.mT).mT.unflatten(-1, (3, self.n, -1)).permute(2, 0, 3, 1, 4)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(z.transpose(1, 2).flatten(2).mT).mT
""",
    "MultiHeadAttention heads that alternate": """
class MultiHeadAttention(nn.Module):
    def __init__(self, C, n_head):
        super().__init__()
        self.h = n_head
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(C, C, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (w(x).unflatten(-1, (-1, self.h)) for w in (self.wq, self.wk, self.wv))
        scores = torch.einsum("bidh,bjdh->bhij", q, k) / q.shape[2] ** 0.5
        weights = (scores + torch.full_like(scores, -torch.inf).triu(1)).softmax(dim=-1)
        return self.wo(torch.einsum("bhij,bjdh->bidh", weights, v).flatten(2))
""",
    "MultiHeadAttention average and projection in one product": """
class MultiHeadAttention(nn.Module):
    def __init__(self, C, n_head):
        super().__init__()
        self.n_head, self.qkv, self.mix = n_head, nn.Linear(C, 3 * C), nn.Linear(C, C)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(2, (3, self.n_head, -1)).unbind(2)
        scores = torch.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
        past = torch.ones(x.shape[1], x.shape[1]).tril().bool()
        weights = torch.where(past, scores, -torch.inf).softmax(-1)
        mix = self.mix.weight.unflatten(1, (self.n_head, -1))
        return torch.einsum("bhts,bshd,chd->btc", weights, v, mix) + self.mix.bias
""",
    "MultiHeadAttention heads that take token after token": """
class OneByOne(nn.Module):
    def __init__(self, C, d):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(C, d, bias=False) for _ in range(3))

    def forward(self, x):
        out = []
        for t in range(x.shape[1]):
            keys, query = self.k(x[:, : t + 1]), self.q(x[:, t])
            weights = (keys @ query[:, :, None] / query.shape[-1] ** 0.5).softmax(dim=1)
            out.append((weights * self.v(x[:, : t + 1])).sum(dim=1))
        return torch.stack(out, dim=1)

class MultiHeadAttention(nn.Module):
    def __init__(self, C, n_head):
        super().__init__()
        self.heads = nn.ModuleList(OneByOne(C, C // n_head) for _ in range(n_head))
        self.proj = nn.Linear(C, C)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))
""",
    "08.MultiHeadAttention one layer for all three, bias, SDPA, complex numbers": """
class MultiHeadAttention(nn.Module):
    def __init__(self, C, n_head, base=10_000.0):
        super().__init__()
        self.n_head, self.c_attn, self.c_proj = n_head, nn.Linear(C, 3 * C), nn.Linear(C, C)
        d = C // n_head
        self.register_buffer("speeds", torch.tensor([base ** (-2 * i / d) for i in range(d // 2)]))

    def turned(self, z):
        angles = torch.outer(torch.arange(z.shape[2]), self.speeds)
        arrows = torch.view_as_complex(z.unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(arrows * torch.polar(torch.ones_like(angles), angles)).flatten(-2)

    def forward(self, x):
        q, k, v = self.c_attn(x).chunk(3, dim=-1)
        q, k, v = (z.unflatten(2, (self.n_head, -1)).transpose(1, 2) for z in (q, k, v))
        q, k = self.turned(q), self.turned(k)
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(out.transpose(1, 2).flatten(2))
""",
    "08.MultiHeadAttention own heads, positions from 1": """
class RotaryHead(nn.Module):
    def __init__(self, C, head_size, base):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(C, head_size, bias=False) for _ in range(3))
        self.base = base

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        T, d = q.shape[1:]
        i = torch.arange(d // 2)
        angles = torch.arange(1, T + 1).view(T, 1) / self.base ** (2 * i / d)
        q, k = turn(q, angles), turn(k, angles)
        scores = (q @ k.mT) * d**-0.5
        return scores.masked_fill(torch.ones(T, T).triu(1) == 1, -1e9).softmax(-1) @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, C, n_head, base=10_000):
        super().__init__()
        self.heads = nn.ModuleList(RotaryHead(C, C // n_head, base) for _ in range(n_head))
        self.last = nn.Linear(C, C)

    def forward(self, x):
        return self.last(torch.cat([head(x) for head in self.heads], dim=-1))
""",
    "14.MultiHeadAttention one layer for all three, bias, SDPA": """
class MultiHeadAttention(nn.Module):
    def __init__(self, C, n_head, base=10_000):
        super().__init__()
        self.n_head, self.c_attn, self.c_proj = n_head, nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.speeds = base ** (-torch.arange(0, C // n_head, 2) / (C // n_head))

    def forward(self, x, cache=None):
        q, k, v = self.c_attn(x).chunk(3, dim=-1)
        q, k, v = (z.unflatten(2, (self.n_head, -1)).transpose(1, 2) for z in (q, k, v))
        cache = {} if cache is None else cache
        n = cache["k"].size(2) if "k" in cache else 0
        angles = torch.arange(n, n + x.size(1)).unsqueeze(1) * self.speeds
        q, k = turn(q, angles), turn(k, angles)
        k = cache["k"] = torch.cat([cache.get("k", k[:, :, :0]), k], dim=2)
        v = cache["v"] = torch.cat([cache.get("v", v[:, :, :0]), v], dim=2)
        mask = torch.ones(k.size(2), k.size(2), dtype=torch.bool).tril()[n:]
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.c_proj(out.transpose(1, 2).flatten(2))
""",
    "14.MultiHeadAttention own heads, own caches, keys turned when they are read": """
class CachedHead(nn.Module):
    def __init__(self, C, head_size, base):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(C, head_size, bias=False) for _ in range(3))
        self.speeds = base ** (-torch.arange(0, head_size, 2) / head_size)

    def forward(self, x, cache=None):
        q, k, v = self.q(x), self.k(x), self.v(x)
        if cache:
            k, v = torch.cat([cache["k"], k], dim=1), torch.cat([cache["v"], v], dim=1)
        if cache is not None:
            cache.update(k=k, v=v)
        T, T_all = q.shape[1], k.shape[1]
        angles = torch.arange(T_all)[:, None] * self.speeds
        q, k = turn(q, angles[-T:]), turn(k, angles)
        hidden = torch.ones(T, T_all).triu(1 + T_all - T) == 1
        return (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf).softmax(-1) @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, C, n_head, base=10_000):
        super().__init__()
        self.heads = nn.ModuleList(CachedHead(C, C // n_head, base) for _ in range(n_head))
        self.last = nn.Linear(C, C)

    def forward(self, x, cache=None):
        caches = [cache if cache is None else cache.setdefault(i, {}) for i in range(99)]
        heads = zip(self.heads, caches)
        return self.last(torch.cat([head(x, cache=one) for head, one in heads], dim=-1))
""",
    "14.Block parts in a dict, by place": """
class Block(nn.Module):
    def __init__(self, C, n_head):
        super().__init__()
        parts = {"a": MultiHeadAttention(C, n_head), "f": FeedForward(C)}
        self.p = nn.ModuleDict(parts | {"1": nn.LayerNorm(C), "2": nn.LayerNorm(C)})

    def forward(self, x, cache=None):
        x = x + self.p["a"](self.p["1"](x), cache)
        return self.p["f"](self.p["2"](x)) + x
""",
    "14.TinyGPT position vectors that begin at 0": """
class TinyGPT(nn.Module):
    def __init__(self, vocab_size, context_length, C=64, n_head=4, n_layer=2):
        super().__init__()
        self.context_length = context_length
        self.wte, self.wpe = nn.Embedding(vocab_size, C), nn.Parameter(torch.zeros(99, C))
        self.h = nn.ModuleList(Block(C, n_head) for _ in range(n_layer))
        self.last, self.out = nn.LayerNorm(C), nn.Linear(C, vocab_size)

    def forward(self, ids, cache=None):
        cache = {} if cache is None else cache
        n, cache["n"] = cache.get("n", 0), cache.get("n", 0) + ids.shape[1]
        x = self.wte(ids) + self.wpe[n : n + ids.shape[1]]
        for block in self.h:
            x = block(x, cache.setdefault(block, {}))
        return self.out(self.last(x))
""",
    "14.TinyGPT a list of caches under one name": """
class TinyGPT(nn.Module):
    def __init__(self, vocab_size, context_length, C=64, n_head=4, n_layer=2):
        super().__init__()
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, C)
        self.layers = nn.ModuleList([Block(C, n_head) for _ in range(n_layer)])
        self.last = nn.Sequential(nn.LayerNorm(C), nn.Linear(C, vocab_size))

    def forward(self, ids, cache=None):
        x, none = self.tokens(ids), [None] * len(self.layers)
        if cache is not None and "all" not in cache:
            cache["all"] = [{} for _ in self.layers]
        for layer, own in zip(self.layers, none if cache is None else cache["all"]):
            x = layer(x, own)
        return self.last(x)
""",
    "FeedForward a Sequential, GELU, dropout": """
class FeedForward(nn.Sequential):
    def __init__(self, C):
        super().__init__(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C), nn.Dropout(0.1))
""",
    "Block RMSNorm, GELU, a feed-forward of its own": """
class Block(nn.Module):
    def __init__(self, C, n_head):
        super().__init__()
        self.read, self.n1, self.n2 = MultiHeadAttention(C, n_head), nn.RMSNorm(C), nn.RMSNorm(C)
        self.think = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C))

    def forward(self, x):
        h = self.read(self.n1(x))
        return x + h + self.think(self.n2(x + h))
""",
    "Block parts in a dict": """
class Block(nn.Module):
    def __init__(self, C, n_head):
        super().__init__()
        parts = {"a": MultiHeadAttention(C, n_head), "f": FeedForward(C)}
        self.p = nn.ModuleDict(parts | {"1": nn.LayerNorm(C), "2": nn.LayerNorm(C)})

    def forward(self, x):
        x = x + self.p["a"](self.p["1"](x))
        return x + self.p["f"](self.p["2"](x))
""",
    "TinyGPT tied weights, positions, Sequential, dropout": """
class TinyGPT(nn.Module):
    def __init__(self, vocab_size, context_length, C=64, n_head=4, n_layer=2):
        super().__init__()
        self.context_length = context_length
        self.wte, self.drop = nn.Embedding(vocab_size, C), nn.Dropout(0.1)
        self.wpe = nn.Parameter(torch.zeros(context_length, C))
        self.h = nn.Sequential(*(Block(C, n_head) for _ in range(n_layer)), nn.LayerNorm(C))

    def forward(self, ids, targets=None):
        return self.h(self.drop(self.wte(ids) + self.wpe[: ids.shape[1]])) @ self.wte.weight.T
""",
    "train Adam, clipped, its rate falls": """
def train(model, draw_windows, steps, lr=5e-3):
    model.train()
    adam, losses = torch.optim.Adam(model.parameters(), lr), []
    plan = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    while len(losses) < steps:
        windows = draw_windows()
        loss = F.cross_entropy(model(windows[:, :-1]).mT, windows[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad(set_to_none=True)
        plan.step()
        losses += [float(loss)]
        print(losses[-1])
    return losses
""",
}
# The name of a mistake of the clinic -> a right program from above, what changes, and into what.
WRONG = {
    "not the same in pieces": (
        "14.TinyGPT position vectors that begin at 0",
        "n : n + ids.shape[1]",
        ": ids.shape[1]",
    ),
    "not turned": (
        "08.MultiHeadAttention own heads, positions from 1",
        "torch.arange(1, T + 1).view(T, 1) / self.base",
        "1 / self.base",
    ),
    "no mask": ("Head one layer for all three, bias, SDPA", ", is_causal=True", ""),
    "no scale": ("Head loops over texts and tokens", " / len(k) ** 0.5", ""),
    "layers in a Python list": (
        "MultiHeadAttention own heads, dropout",
        "nn.ModuleList(Head(C, C // n_head) for _ in range(n_head))",
        "[Head(C, C // n_head) for _ in range(n_head)]",
    ),
    "no output projection": ("MultiHeadAttention own heads, dropout", "nn.Linear(C, C), ", ""),
    "no norm for the attention": (
        "Block RMSNorm, GELU, a feed-forward of its own",
        "self.read(self.n1(x))",
        "self.read(x)",
    ),
    "one norm for both": ("Block parts in a dict", 'self.p["2"](x)', 'self.p["1"](x)'),
    "no gradient": (
        "TinyGPT tied weights, positions, Sequential, dropout",
        "self.wpe[: ids.shape[1]]",
        "self.wpe[: ids.shape[1]].detach()",
    ),
}
