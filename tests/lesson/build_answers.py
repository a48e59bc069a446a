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
