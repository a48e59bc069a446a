"""Attentions and blocks as other people write them: right ones, and bugs that were reported."""

import math
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from attention_clinic import assert_healthy, diagnose
from tests.attention_clinic.designs.designs import rope
from tests.attention_clinic.designs.named import alibi
from tests.told import Told

C, N_HEAD = 32, 4
ROPE, ALIBI = "rotary positions (RoPE, Su et al. 2021)", "ALiBi (Press et al. 2022)"


class Attention(nn.Module):
    """Multi-head attention; what the classes below change is a method of its own."""

    def __init__(self, C, n_head):
        super().__init__()
        self.n_head, self.C = n_head, C
        self.query, self.key, self.value, self.out = (self.layer(C) for _ in range(4))

    def layer(self, C):
        return nn.Linear(C, C)

    def split(self, z):
        return z.view(*z.shape[:2], self.n_head, -1).transpose(1, 2)

    def heads(self, x):
        return [self.split(layer(x)) for layer in (self.query, self.key, self.value)]

    def scores(self, q, k):
        return q @ k.mT / q.shape[-1] ** 0.5

    def weights(self, q, k):
        return self.scores(q, k).softmax(-1)

    def merge(self, z):
        return z.transpose(1, 2).flatten(2)

    def forward(self, x):
        q, k, v = self.heads(x)
        return self.out(self.merge(self.weights(q, k) @ v))


class Causal(Attention):
    fill = -torch.inf

    def weights(self, q, k):
        scores = self.scores(q, k)
        return scores.masked_fill(torch.ones_like(scores).triu(1) == 1, self.fill).softmax(-1)


def changed(of, **methods):
    """A class with other methods, under the name of the test."""
    return type(of.__name__, (of,), methods)


# ---------------------------------------------------------------- right, whatever the form


class Splits(nn.Module):
    """A projection that splits the heads itself."""

    def __init__(self, C, n_head, transposed=False):
        super().__init__()
        self.linear, self.n_head, self.transposed = nn.Linear(C, C), n_head, transposed

    def forward(self, x):
        z = self.linear(x).view(*x.shape[:2], self.n_head, -1)
        return z.transpose(1, 2) if self.transposed else z


class OfItself(Attention):
    transposed = False

    def __init__(self, C, n_head):
        super().__init__(C, n_head)
        self.query, self.key, self.value = (Splits(C, n_head, self.transposed) for _ in range(3))

    def split(self, z):
        return z if self.transposed else z.transpose(1, 2)


class EachHeadAlike(Attention):
    """One small matrix for all heads."""

    def __init__(self, C, n_head):
        super().__init__(C, n_head)
        self.query, self.key, self.value = (nn.Linear(C // n_head, C // n_head) for _ in range(3))

    def heads(self, x):
        z = x.view(*x.shape[:2], self.n_head, -1)
        return [layer(z).transpose(1, 2) for layer in (self.query, self.key, self.value)]


class OfThree(Attention):
    def forward(self, query, key, value, mask=None):
        q, k, v = (
            self.split(layer(z))
            for layer, z in ((self.query, query), (self.key, key), (self.value, value))
        )
        scores = self.masked(self.scores(q, k), mask)
        return self.out(self.merge(scores.softmax(-1) @ v))

    def masked(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask == 0, -1e9)


class Shows(Attention):
    def forward(self, x):
        q, k, v = self.heads(x)
        weights = self.weights(q, k)
        return self.out(self.merge(weights @ v)), weights.flatten(0, 1)


class Block(nn.Module):
    def __init__(self, C, n_head, of=Attention):
        super().__init__()
        self.attn = of(C, n_head)
        self.norm1, self.norm2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.ff = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C))

    def attend(self, z):
        return self.attn(z)

    def feed(self, z):
        return self.ff(z)

    def add(self, x, branch):
        return x + branch

    def forward(self, x):
        x = self.add(x, self.attend(self.norm1(x)))
        return x + self.feed(self.norm2(x))


class Before(nn.Module):
    """A right layer that reads something made of x."""

    def __init__(self, C, n_head, reads=lambda self, x: x):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(C, n_head, 4 * C, batch_first=True)
        self.embed, self.reads = nn.Identity(), reads

    def forward(self, x):
        return self.layer(self.reads(self, self.embed(x)))


class Embedded(Before):
    def __init__(self, C, n_head):
        super().__init__(C, n_head, lambda self, x: x + positions(x.shape[1]))
        self.embed = nn.Linear(C, C)


def positions(n):
    angle = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, C, 2) / C)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)


def before(reads):
    return lambda C, n_head: Before(C, n_head, lambda self, x: reads(x))


class ShowsItsBias(Attention):
    def forward(self, x):
        bias = torch.zeros(1, self.n_head, x.shape[1], x.shape[1])
        return super().forward(x), bias


class Stores(Attention):
    def forward(self, x):
        self.q, self.k, self.v = self.heads(x)
        return super().forward(x), torch.tensor(0.1)  # a loss of its own


def zeros_last(C, n_head):
    block = Block(C, n_head)
    nn.init.zeros_(block.ff[-1].weight)
    nn.init.zeros_(block.ff[-1].bias)
    return block


class Stacked(Attention):
    """Parameters in the place of layers, each head's beside the others."""

    def __init__(self, C, n_head):
        super().__init__(C, n_head)
        del self.query, self.key, self.value, self.out
        self.w = nn.Parameter(torch.randn(3, C, C) / C**0.5)
        self.o = nn.Parameter(torch.randn(n_head, C // n_head, C) / C**0.5)

    def heads(self, x):
        return [self.split(x @ w) for w in self.w]

    def out_of(self, z):
        return torch.einsum("bhtd,hdc->btc", z, self.o)

    def forward(self, x):
        q, k, v = self.heads(x)
        return self.out_of(self.weights(q, k) @ v)


class OfEinsum(Stacked):
    def __init__(self, C, n_head):
        super().__init__(C, n_head)
        del self.w
        self.wq, self.wk, self.wv = (
            nn.Parameter(torch.randn(C, n_head, C // n_head) / C**0.5) for _ in range(3)
        )

    def heads(self, x):
        return [torch.einsum("btc,chd->bhtd", x, w) for w in (self.wq, self.wk, self.wv)]


class Unnamed3D(Stacked):
    def __init__(self, C, n_head):
        super().__init__(C, n_head)
        del self.w
        self.asks, self.says, self.holds = (
            nn.Parameter(torch.randn(n_head, C, C // n_head) / C**0.5) for _ in range(3)
        )

    def heads(self, x):
        return [x[:, None] @ w for w in (self.asks, self.says, self.holds)]


def part_by_part(self, x):
    q, k, v = self.heads(x)
    columns = self.out.weight.split(q.shape[-1], dim=1)
    heads = (self.weights(q, k) @ v).unbind(1)
    return sum(z @ w.T for z, w in zip(heads, columns, strict=True)) + self.out.bias


class OddNames(nn.Module):
    """A block whose parts have names that nobody knows; one step is a part of its own."""

    def __init__(self, C, n_head, of=Attention, projected=False):
        super().__init__()
        self.calm, self.still = nn.LayerNorm(C), nn.LayerNorm(C)
        self.listen = of(C, n_head)
        self.blend = nn.Linear(C, C) if projected else nn.Identity()
        self.wide, self.narrow = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)

    def add(self, x, branch):
        return x + branch

    def forward(self, x):
        y = self.add(x, self.blend(self.listen(self.calm(x))))
        return self.add(y, self.think(self.still(y)))

    def think(self, z):
        return self.narrow(self.wide(z).relu())


def projected(C, n_head):
    block = OddNames(C, n_head, projected=True)
    block.listen.out = nn.Identity()
    return block


class Step(nn.Module):
    def __init__(self, C, f):
        super().__init__()
        self.norm, self.f = nn.LayerNorm(C), f

    def forward(self, x):
        return x + self.f(self.norm(x))


def steps(C, n_head):
    feed_forward = nn.Sequential(nn.Linear(C, 4 * C), nn.ReLU(), nn.Linear(4 * C, C))
    return nn.Sequential(Step(C, Attention(C, n_head)), Step(C, feed_forward))


class Single(Attention):
    def __init__(self, C, n_head):
        super().__init__(C, n_head=1)
        self.query, self.key, self.value = (nn.Linear(C, C // n_head) for _ in range(3))
        self.out = nn.Identity()


class HeadsInside(OddNames):
    """The heads stand in the block itself, and their projection, too."""

    def __init__(self, C, n_head):
        super().__init__(C, n_head, projected=True)
        del self.listen
        self.all = nn.ModuleList(Single(C, n_head) for _ in range(n_head))

    def listen(self, z):
        return torch.cat([head(z) for head in self.all], -1)


class InLists(nn.Module):
    """Each head has matrices of its own, in lists."""

    def __init__(self, C, n_head, diagonal=1):
        super().__init__()
        self.n_head, self.diagonal, d = n_head, diagonal, C // n_head
        self.wq, self.wk, self.wv = (
            nn.ParameterList(torch.randn(C, d) / C**0.5 for _ in range(n_head)) for _ in range(3)
        )

    def forward(self, x):
        future = torch.ones(x.shape[1], x.shape[1]).triu(self.diagonal) == 1
        outs = []
        for wq, wk, wv in zip(self.wq, self.wk, self.wv, strict=True):
            scores = (x @ wq) @ (x @ wk).mT / wq.shape[1] ** 0.5
            outs.append(scores.masked_fill(future, -torch.inf).softmax(-1) @ (x @ wv))
        return torch.cat(outs, -1)


class LayersInLists(Attention):
    def __init__(self, C, n_head):
        super().__init__(C, n_head)
        self.query, self.key, self.value = (
            nn.ModuleList(nn.Linear(C, C // n_head) for _ in range(n_head)) for _ in range(3)
        )

    def heads(self, x):
        return [torch.stack([f(x) for f in fs], 1) for fs in (self.query, self.key, self.value)]


class InOne(OddNames):
    """All in one class, with a norm that is no module, and layers in a dictionary."""

    def __init__(self, C, n_head):
        super().__init__(C, n_head)
        del self.listen, self.blend, self.calm, self.still
        self.n_head = n_head
        self.of = nn.ModuleDict({name: nn.Linear(C, C) for name in ("a", "b", "c", "d")})

    def calm(self, x):
        return (x - x.mean(-1, keepdim=True)) / (
            x.var(-1, keepdim=True, unbiased=False) + 1e-5
        ).sqrt()

    still, blend = calm, nn.Identity()

    def listen(self, z):
        q, k, v = (Attention.split(self, self.of[name](z)) for name in ("a", "b", "c"))
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return self.of["d"]((weights @ v).transpose(1, 2).flatten(2))


class Clones(Attention):
    """Four layers in one list, of which the last is the projection."""

    def __init__(self, C, n_head):
        super().__init__(C, n_head)
        self.layers = nn.ModuleList((self.query, self.key, self.value, self.out))
        del self.query, self.key, self.value, self.out

    def forward(self, x):
        q, k, v = (self.split(layer(x)) for layer in self.layers[:3])
        return self.layers[-1](self.merge(self.weights(q, k) @ v))


class Connection(nn.Module):
    """A residual connection that is given its branch, as the Annotated Transformer has it."""

    def __init__(self, C):
        super().__init__()
        self.norm = nn.LayerNorm(C)

    def forward(self, x, branch):
        return x + branch(self.norm(x))


class Connected(Block):
    def __init__(self, C, n_head):
        super().__init__(C, n_head, Clones)
        del self.norm1, self.norm2
        self.connections = nn.ModuleList((Connection(C), Connection(C)))

    def forward(self, x):
        x = self.connections[0](x, self.attn)
        return self.connections[1](x, lambda z: self.ff(z))


class TwoLayers(Attention):
    """One layer for queries, one for keys and values, without the usual names."""

    def __init__(self, C, n_head, width=2):
        super().__init__(C, n_head)
        del self.query, self.key, self.value
        self.asks, self.tells = nn.Linear(C, C), nn.Linear(C, width * C)

    def heads(self, x):
        return [self.split(z) for z in (self.asks(x), *self.tells(x).chunk(2, dim=-1))]


class ValuesFirst(TwoLayers):
    """One layer for all three: the values, keys and queries of a head beside each other."""

    def __init__(self, C, n_head):
        super().__init__(C, n_head, width=3)
        del self.asks

    def heads(self, x):
        return self.tells(x).unflatten(-1, (self.n_head, 3, -1)).permute(3, 0, 2, 1, 4).flip(0)


RIGHT = {
    "a layer for keys and values": TwoLayers,
    "values first, in each head": ValuesFirst,
    "matrices in one parameter": Stacked,
    "matrices of each head, without names": Unnamed3D,
    "matrices (C, n_head, d)": OfEinsum,
    "the projection taken in parts": changed(Attention, forward=part_by_part),
    "a block without the usual names": OddNames,
    "a projection outside of the attention": projected,
    "a list of steps": steps,
    "a list of heads in a block": HeadsInside,
    "layers of each head in lists": LayersInLists,
    "a block in one class": InOne,
    "a block that gives its branches away": Connected,
    "queries kept, and a number returned": Stores,
    "a feed-forward that ends in zeros": zeros_last,
    "positions before, in bfloat16": lambda C, n_head: before(
        lambda x: x + positions(x.shape[1]).to(x)
    )(C, n_head).bfloat16(),
    "a bias of positions returned": ShowsItsBias,
    "plain": Attention,
    "projections that split": OfItself,
    "projections that split and transpose": changed(OfItself, transposed=True),
    "lazy layers": changed(Attention, layer=lambda self, C: nn.LazyLinear(C)),
    "q, k and v to be given": OfThree,
    "weights (B · n_head, T, T)": Shows,
    "layers called by forward": changed(
        Attention,
        heads=lambda self, x: [
            self.split(one.forward(x)) for one in (self.query, self.key, self.value)
        ],
    ),
    "parts called by forward": changed(
        Block,
        attend=lambda self, z: self.attn.forward(z),
        feed=lambda self, z: self.ff.forward(z),
    ),
    "parts behind a lambda and checkpointed": changed(
        Block,
        attend=lambda self, z: (lambda part: part(z))(self.attn),
        feed=lambda self, z: checkpoint(self.ff, z, use_reentrant=False),
    ),
    "positions before": before(lambda x: x + positions(x.shape[1])),
    "an embedding and positions before": Embedded,
    "a norm before": before(lambda x: F.layer_norm(x, x.shape[-1:])),
}


@pytest.mark.parametrize("make", RIGHT.values(), ids=RIGHT)
def test_right_modules_of_other_forms_are_healthy(make):
    assert diagnose(make(C, N_HEAD), C=C, n_head=N_HEAD, causal=False).status == "healthy"


def added(self, scores, mask):
    return scores if mask is None else scores + mask


MASKED = {
    "0 where it may not": (OfThree.masked, "mask=causal_mask(T)"),
    "True where it may not": (
        lambda self, scores, mask: scores if mask is None else scores.masked_fill(mask, -1e9),
        "mask=~causal_mask(T)",
    ),
    "added": (added, "mask=-inf where not causal_mask(T), else 0"),
    "for each head": (
        lambda self, s, mask: s if mask is None else s + mask[:, :, : s.shape[-1]],
        "as (B, 1, T, T)",
    ),
    "of each text": (
        lambda self, s, mask: s if mask is None else s + mask[:, None],
        "as (B, T, T)",
    ),
    "1 where it may": (
        lambda self, s, mask: s if mask is None else s - 1e9 * (1.0 - mask),
        "mask=causal_mask(T).float()",
    ),
}


@pytest.mark.parametrize("name", MASKED)
def test_a_mask_that_has_to_be_given_is_given_in_its_form(name):
    masked, told = MASKED[name]
    report = diagnose(changed(OfThree, masked=masked)(C, N_HEAD), C=C, n_head=N_HEAD)
    assert report.status == "healthy" and f"{told}; without it" in " ".join(str(report).split())


def turned(self, x, position_embeddings: "tuple | None" = None, alibi=None):
    cos, sin = (z.unsqueeze(1) for z in position_embeddings)
    q, k, v = self.heads(x)
    q, k = (z * cos + z.flip(-1) * sin for z in (q, k))
    return self.out(self.merge(self.weights(q, k) @ v))


def biased(self, x, alibi, residual, position_embeddings: torch.Tensor | None = None):
    assert position_embeddings is None  # it may be something to be added
    q, k, v = self.heads(x)
    return self.out(self.merge((self.scores(q, k) + alibi).softmax(-1) @ v)) + residual


def either(self, x, alibi: torch.Tensor | None, position_embeddings: torch.Tensor = None):
    return turned(self, x, position_embeddings if alibi is None else None)


NEUTRAL = {"position_": turned, "alibi and residual": biased, "alibi and position_": either}


@pytest.mark.parametrize("names", NEUTRAL)
def test_what_changes_nothing_is_given_where_it_has_to_be(names):
    module = changed(Attention, forward=NEUTRAL[names])(C, N_HEAD)
    module.head_dim = C // N_HEAD
    report = diagnose(module, C=C, n_head=N_HEAD, causal=False)
    assert report.status == "healthy" and f"Called with {names}" in " ".join(report.notes)


def test_a_bug_beside_the_mask_hides_no_mask():
    over_queries = changed(
        OfThree,
        forward=lambda self, query, key, value, mask=None: self.out(
            self.merge(
                OfThree.masked(
                    self,
                    self.scores(self.split(self.query(query)), self.split(self.key(key))),
                    mask,
                ).softmax(-2)
                @ self.split(self.value(value))
            )
        ),
    )
    report = diagnose(over_queries(C, N_HEAD), C=C, n_head=N_HEAD)
    assert report.bugs == ("softmax over the queries",) and "mask=" in str(report)


class OwnMask(Attention):
    """A mask for padding may be given, beside one of its own, which is wrong."""

    def weights(self, scores, future):
        return scores.masked_fill(future.triu(2) == 1, -torch.inf).softmax(-1)

    def forward(self, x, mask=None):
        q, k, v = self.heads(x)
        scores = OfThree.masked(self, self.scores(q, k), mask)
        weights = self.weights(scores, torch.ones_like(scores))
        return self.out(self.merge(weights @ v))


@pytest.mark.parametrize(
    ("bug", "methods"),
    [
        ("mask one too far", {}),
        ("masked after the softmax", {"weights": lambda self, s, _: s.softmax(-1).tril()}),
        (
            "mask one too far",
            {"scores": lambda self, q, k: Attention.scores(self, rope(q), rope(k))},
        ),
    ],
)
def test_a_mask_that_may_be_given_hides_no_bug(bug, methods):
    report = diagnose(changed(OwnMask, **methods)(C, N_HEAD), C=C, n_head=N_HEAD)
    assert bug in report.bugs and report.status == "broken"


class InDict(Causal):
    """Its matrices stand in a dictionary: one for each role, or one for all three."""

    def __init__(self, C, n_head, roles=("query", "key", "value"), width=C, scale=None):
        nn.Module.__init__(self)
        self.n_head, self.roles, self.factor = n_head, roles, scale
        sizes = {**dict.fromkeys(roles, width), "out": C}
        own = {key: nn.Parameter(torch.randn(C, n) / C**0.5) for key, n in sizes.items()}
        self.kernels = nn.ParameterDict(own)

    def forward(self, x):
        of_roles = torch.cat([x @ self.kernels[key] for key in self.roles], dim=-1)
        q, k, v = map(self.split, of_roles.chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.factor)
        return self.merge(mixed) @ self.kernels["out"]


@pytest.mark.parametrize("fused", [{}, {"roles": ["qkv"], "width": 3 * C}])
@pytest.mark.parametrize(("scale", "bugs"), [(None, ()), (1.0, ("no scale",))])
def test_matrices_in_a_dictionary_are_read(fused, scale, bugs):
    module = InDict(C, N_HEAD, scale=scale, **fused)
    before = {*vars(module)}
    report = diagnose(module, C=C)
    assert (report.bugs, report.status == "healthy") == (bugs, not bugs)
    assert {*vars(module)} == before


class ChannelsFirst(Causal):
    def layer(self, C):
        return nn.Conv1d(C, C, 1)

    def heads(self, x):
        return [self.split(layer(x).mT) for layer in (self.query, self.key, self.value)]

    def merge(self, z):
        return super().merge(z).mT


def test_what_reads_channels_first_is_told_how_it_fits():
    with pytest.raises(ValueError, match=r"reads \(B, C, T\), channels first.* wrapper"):
        diagnose(ChannelsFirst(C, N_HEAD), C=C)


class WithUnused(Causal):
    def __init__(self, C, n_head, **unused):
        super().__init__(C, n_head)
        for name, sizes in unused.items():
            setattr(self, name, nn.Parameter(torch.zeros(sizes)))


class OwnNorm(nn.LayerNorm):
    def forward(self, x):  # the bias is forgotten
        return F.layer_norm(x, x.shape[-1:], self.weight)


def test_a_parameter_that_is_never_read_is_no_bug_where_all_else_is_right():
    alone = diagnose(WithUnused(C, N_HEAD, posbias=(64, 64)), C=C)
    in_list = nn.Sequential(*(WithUnused(C, N_HEAD, slopes=N_HEAD) for _ in range(2)))
    assert alone.status == "healthy"
    assert "but posbias, which forward never reads" in " ".join(str(alone).split())
    told = " ".join(str(diagnose(in_list, C=C)).split())
    assert "0.slopes and 1.slopes, which forward never reads" in told and "✗" not in told


def test_what_is_never_read_is_a_bug_where_it_may_be_missing():
    block = Block(C, N_HEAD, of=Causal)
    block.norm2 = OwnNorm(C)
    unmasked = changed(WithUnused, weights=Attention.weights)(C, N_HEAD, posbias=(64, 64))
    for module in (WithUnused(C, N_HEAD, posbias=(C, C)), block, unmasked):
        assert "gradients reach" in str(diagnose(module, C=C)).split("✓")[0]


class Placed(Attention):
    """Tells places apart, and has no mask but the one that may be given."""

    def forward(self, x, mask=None):
        q, k, v = self.heads(x)
        scores = OfThree.masked(self, self.placed(q, k), mask)
        return self.out(self.merge(scores.softmax(-1) @ v))

    def placed(self, q, k):
        return self.scores(q, k) + alibi(q.shape[2], self.n_head)


PLACED = {
    "rotary": ({"placed": lambda self, q, k: self.scores(rope(q), rope(k))}, ROPE),
    "ALiBi": ({}, ALIBI),
    "ALiBi, 0 at later keys": (
        {"placed": lambda self, q, k: self.scores(q, k) + alibi(q.shape[2], 4).clamp(max=0)},
        ALIBI,
    ),
    "to be given": ({"forward": lambda self, x, mask: Placed.forward(self, x, mask)}, ALIBI),
    "merged by view": (
        {"placed": Attention.scores, "merge": lambda self, z: z.reshape(len(z), -1, C)},
        "merged by view, without transpose",
    ),
}


@pytest.mark.parametrize("name", PLACED)
def test_positions_of_its_own_are_no_mask_of_its_own(name):
    methods, told = PLACED[name]
    report = diagnose(changed(Placed, **methods)(C, N_HEAD), C=C, n_head=N_HEAD)
    assert report.bugs == (told,) and "Called with mask=causal_mask(T)" in str(report)


WINDOW = "sliding window (Beltagy et al. 2020)"


@pytest.mark.parametrize(
    ("width", "sign", "normed", "bugs"),
    [
        (8, -1, False, {WINDOW, ALIBI}),
        (5, -1, True, {WINDOW, ALIBI, "QK-norm (Henry et al. 2020)"}),
        (8, 1, False, {"ALiBi with the wrong sign"}),
        (99, -1, False, {ALIBI}),
    ],
)
def test_alibi_in_a_window_is_named_in_longer_texts(width, sign, normed, bugs):
    class Windowed(Attention):
        def forward(self, x):
            q, k, v = self.heads(x)
            q, k = (F.rms_norm(z, z.shape[-1:], eps=1e-6) if normed else z for z in (q, k))
            scores = self.scores(q, k) + alibi(x.shape[1], self.n_head, sign)
            seen = torch.ones_like(scores).tril().triu(1 - width) == 1
            return self.out(self.merge(scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v))

    torch.manual_seed(0)
    report = diagnose(Windowed(C, N_HEAD), C=C, example=torch.randn(2, 30, C))
    assert set(report.bugs) == bugs and report.status == ("broken" if sign > 0 else "different")


def by_matrix(self, z):
    return z.transpose(1, 2).flatten(2) @ self.matrix


def of_rows(self, z):
    return F.linear(z.transpose(1, 2).flatten(2), self.matrix)


def of_heads(self, z):
    return torch.einsum("bhtd,hdc->btc", z, self.matrix.view(self.n_head, -1, C))


def in_a_loop(self, z):
    return torch.stack([one.transpose(0, 1).flatten(1) @ self.matrix for one in z])


@pytest.mark.parametrize("merge", [by_matrix, of_rows, of_heads, in_a_loop])
@pytest.mark.parametrize(
    ("sign", "bug"), [(-1, ALIBI), (1, "ALiBi with the wrong sign")], ids=["right", "wrong"]
)
def test_a_projection_that_is_a_matrix_hides_no_sign(merge, sign, bug):
    class Projected(Placed):
        def __init__(self):
            super().__init__(C, N_HEAD)
            self.out = nn.Parameter(torch.randn(C, C) / C**0.5)

        matrix = property(lambda self: self.out)

        def placed(self, q, k):
            return self.scores(q, k) + alibi(q.shape[2], self.n_head, sign)

        def forward(self, x):
            q, k, v = self.heads(x)
            scores = self.placed(q, k)
            hidden = torch.ones_like(scores).triu(1) == 1
            return merge(self, scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v)

    torch.manual_seed(6)
    assert diagnose(Projected(), C=C).bugs == (bug,)


def test_alibi_without_a_mask_is_no_window():
    unmasked = changed(Placed, forward=lambda self, x: Placed.forward(self, x))
    report = diagnose(unmasked(C, N_HEAD), C=C, n_head=N_HEAD)
    assert "no mask" in report.bugs and "window" not in str(report)


def test_a_mask_that_is_never_used_is_missing():
    ignores = changed(OfThree, masked=lambda self, scores, mask: scores)
    assert diagnose(ignores(C, N_HEAD), C=C, n_head=N_HEAD).bugs == ("no mask",)


# ---------------------------------------------------------------- wrong, or different


def rows(self, z):
    """(B · n_head, T, d) taken for (n_head, B, T, d)."""
    B, H, T, d = z.shape
    return z.reshape(H, B, T, d).permute(1, 2, 0, 3).flatten(2)


def rows_and_tokens(self, z):
    B, H, T, d = z.shape
    return z.reshape(H, B, T, d).transpose(1, 2).reshape(B, T, -1)


def along_tokens(self, x):
    q, k, v = Attention.heads(self, x)
    return [q, *(z.repeat_interleave(2, dim=-2)[..., : x.shape[1], :] for z in (k, v))]


class Interleaved(Attention):
    def __init__(self, C, n_head):
        super().__init__(C, n_head)
        del self.query, self.key, self.value
        self.qkv = nn.Linear(C, 3 * C)

    def heads(self, x):
        return self.qkv(x).unflatten(-1, (self.n_head, -1, 3)).permute(4, 0, 2, 1, 3)


class Reshaped(Interleaved):
    def heads(self, x):
        return [self.split(z) for z in self.qkv(x).reshape(3, *x.shape)]


class SixChannels(Causal):
    """Values with fewer channels than queries, whose root is the scale."""

    fill = -1e9

    def __init__(self, C, n_head):
        super().__init__(C, n_head)
        self.value, self.out = nn.Linear(C, 6 * n_head), nn.Linear(6 * n_head, C)

    def scores(self, q, k):
        return q @ k.mT / 6**0.5


class Unnamed(Attention):
    """Layers without the usual names, and heads that were not transposed."""

    def __init__(self, C, n_head):
        super().__init__(C, n_head)
        self.a, self.b, self.c = self.query, self.key, self.value
        del self.query, self.key, self.value

    def heads(self, x):
        return [layer(x).unflatten(-1, (self.n_head, -1)) for layer in (self.a, self.b, self.c)]

    def merge(self, z):
        return z.flatten(2)


def over_the_batch(self, q, k):
    return self.scores(q, k).softmax(0)


class SameLayer(TwoLayers):
    def __init__(self, C, n_head):
        super().__init__(C, n_head, width=1)

    def heads(self, x):
        return [self.split(z) for z in (self.asks(x), self.tells(x), self.tells(x))]


class StrictlyPast(Causal):
    """keys[:t] in the place of keys[: t + 1]; the first token attends to itself, or to nothing."""

    first = True

    def weights(self, q, k):
        scores = self.scores(q, k)
        hidden = torch.ones_like(scores).triu() == 1
        hidden[..., 0, 0] = not self.first
        return scores.masked_fill(hidden, -torch.inf).softmax(-1).nan_to_num()


WRONG = {  # what -> a class, whether it should be causal, and the name
    "rolled before": (before(lambda x: x.roll(1, 1)), False, "tokens moved before the attention"),
    "reversed before": (before(lambda x: x.flip(1)), False, "tokens moved before the attention"),
    "one position": (
        before(lambda x: x + positions(9)[x.shape[1]]), False, "one position for all tokens"
    ),
    "along the batch": (
        before(lambda x: x + positions(len(x))[:, None]), False, "positions along the batch"
    ),
    "filled with -e": (changed(Causal, fill=-math.e), True, "future filled with another number"),
    "filled with -5": (changed(Causal, fill=-5.0), True, "future filled with another number"),
    "every head is head 0": (
        changed(
            Attention,
            heads=lambda self, x: [z[:, :1].expand_as(z) for z in Attention.heads(self, x)],
        ),
        False,
        "every head is head 0",
    ),
    "rows of (B, n_head) mixed": (
        changed(Attention, merge=rows), False, "batch and heads mixed by the merge"
    ),
    "and tokens": (
        changed(Attention, merge=rows_and_tokens),
        False,
        "batch, heads and tokens mixed by the merge",
    ),
    "keys along the tokens": (
        changed(Causal, heads=along_tokens), True, "keys and values repeated along the tokens"
    ),
    "after the softmax, interleaved": (
        changed(Interleaved, weights=lambda self, q, k: (q @ k.mT).softmax(-1) / self.C**0.5),
        False,
        "scaled after the softmax, by √C",
    ),
    "keys reshaped": (
        changed(
            Causal,
            scores=lambda self, q, k: q
            @ k.reshape(*k.shape[:2], k.shape[3], k.shape[2])
            / q.shape[-1] ** 0.5,
        ),
        True,
        "keys reshaped, not transposed",
    ),
    **{
        f"heads without that at {i}": (
            changed(
                Causal, weights=lambda self, q, k, i=i: Causal.weights(self, q, k)
                * (torch.arange(self.n_head) != i)[:, None, None],
            ),
            True,
            name,
        )
        for i, name in ((0, "first head left out"), (N_HEAD - 1, "last head left out"))
    },
    "a list of heads, x + x": (
        changed(HeadsInside, add=lambda self, x, branch: branch + branch),
        False,
        "x + x in place of the residual connection",
    ),
    "odd names, ReLU last and none between": (
        changed(OddNames, think=lambda self, z: self.narrow(self.wide(z)).relu()),
        False,
        "ReLU after the feed-forward",
    ),
    "matrices of each head in lists, one too far": (
        lambda C, n_head: InLists(C, n_head, diagonal=2), True, "mask one too far"
    ),
    "the past alone": (StrictlyPast, True, "diagonal masked, but for token 0"),
    "the past alone, nothing for token 0": (
        changed(StrictlyPast, first=False), True, "diagonal masked, token 0 attends to nothing"
    ),
    "values of the keys' layer": (SameLayer, False, "one layer for two roles"),
    "a fused layer reshaped": (Reshaped, False, "fused layer reshaped"),
    "heads not transposed": (Unnamed, False, "tokens and heads not transposed"),
    "over the batch": (
        changed(Attention, weights=over_the_batch), False, "softmax over the batch"
    ),
    "over the batch, with a mask": (
        changed(
            Causal,
            weights=lambda self, q, k: self.scores(q, k)
            .masked_fill(torch.ones(q.shape[-2], q.shape[-2]).triu(1) == 1, -1e9)
            .softmax(0),
        ),
        True,
        "softmax over the batch, masked with -1e9",
    ),
    "** 1/2": (
        changed(Causal, scores=lambda self, q, k: q @ k.mT / q.shape[-1] ** 1 / 2),
        True,
        "divided by 2 · head_size",
    ),
    "the values' channels": (SixChannels, True, "divided by the root of the values' channels"),
    "odd names, x + x": (
        changed(OddNames, add=lambda self, x, branch: branch + branch),
        False,
        "x + x in place of the residual connection",
    ),
    "odd names, no residual": (
        changed(OddNames, add=lambda self, x, branch: branch), False, "no residual connections"
    ),
    "in one class, no residual": (
        changed(InOne, add=lambda self, x, branch: branch), False, "no residual connections"
    ),
    "odd names, ReLU last": (
        changed(OddNames, think=lambda self, z: OddNames.think(self, z).relu()),
        False,
        "ReLU after the feed-forward",
    ),
    "x + x": (
        changed(Block, add=lambda self, x, branch: branch + branch),
        False,
        "x + x in place of the residual connection",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_reported_bugs_have_names(name, snapshot):
    make, causal, bug = WRONG[name]
    report = diagnose(make(C, N_HEAD), C=C, n_head=N_HEAD, causal=causal)
    assert report.status == "broken" and any(one.startswith(bug) for one in report.bugs), report
    assert str(report) == snapshot.use_extension(Told)


class OwnScale(Attention):
    def __init__(self, C, n_head, scaling):
        super().__init__(C, n_head)
        self.scaling = scaling

    def scores(self, q, k):
        return q @ k.mT * self.scaling


DIFFERENT = {
    "scaled before": (before(lambda x: 0.1 * x), "x scaled before the attention"),
    "scaled, with positions": (
        before(lambda x: 4 * x + positions(x.shape[1])), "x scaled before the attention"
    ),
    "squared before": (before(lambda x: x * x), "something else than x is read"),
    "scaling = 1": (
        lambda C, n_head: OwnScale(C, n_head, 1), "no scale, by a setting of its own"
    ),
    "one matrix for all heads": (EachHeadAlike, "one projection for all heads"),
    "cosines, times 5": (
        changed(Attention, scores=lambda self, q, k: F.cosine_similarity(
            q[..., :, None, :], k[..., None, :, :], dim=-1) * 5),
        "scores times another factor",
    ),
    "normed queries and keys, no scale": (
        changed(Attention, scores=lambda self, q, k: F.layer_norm(q, q.shape[-1:])
                @ F.layer_norm(k, k.shape[-1:]).mT),
        "another scale of normed queries and keys",
    ),
    "no projections": (
        changed(Attention, heads=lambda self, x: 3 * [self.split(x)]), "no projections"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_may_be_meant_is_different(name, snapshot):
    make, what = DIFFERENT[name]
    module = make(C, N_HEAD)
    if name == "no projections":
        del module.query, module.key, module.value
    report = diagnose(module, C=C, n_head=N_HEAD, causal=False)
    assert report.status == "different" and any(one.startswith(what) for one in report.bugs), report
    assert str(report) == snapshot.use_extension(Told)


class Plain(nn.Module):
    def __init__(self, C, n_head):
        super().__init__()
        self.w_q, self.w_k, self.w_v = (torch.randn(C, C) / C**0.5 for _ in range(3))

    def forward(self, x):
        return F.scaled_dot_product_attention(x @ self.w_q, x @ self.w_k, x @ self.w_v)


class KeepsKeys(Causal):
    """Attends to the keys and values of the call before as well."""

    before = None

    def heads(self, x):
        q, k, v = super().heads(x)
        k, v = (
            z if self.before is None else (z + old) / 2
            for z, old in zip((k, v), self.before or (k, v), strict=True)
        )
        self.before = super().heads(x)[1:]
        return [q, k, v]


def test_what_is_kept_of_another_text_is_found():
    report = diagnose(KeepsKeys(C, N_HEAD), C=C)
    assert report.bugs == ("something kept from the call before",)


def masked_by(may):
    def weights(self, q, k):
        i = torch.arange(q.shape[-2])
        return self.scores(q, k).masked_fill(~may(i[:, None], i), -torch.inf).softmax(-1)

    return changed(Causal, weights=weights)


@pytest.mark.parametrize(
    "may",
    [
        lambda i, j: (j <= i) & ((i - j < 3) | (j == 0)),  # a window, and the first token
        lambda i, j: (j <= i) & (i // 3 == j // 3),  # in pieces of three
        lambda i, j: (j <= i) & ((i - j) % 2 * (i > 4) == 0),
    ],
)
def test_another_mask_may_be_meant(may):
    report = diagnose(masked_by(may)(C, N_HEAD), C=C)
    assert report.status == "different" and report.bugs == ("another mask",)


def test_one_block_several_times_may_be_meant():
    stack = nn.Sequential(*[Block(C, N_HEAD, Causal)] * 3)
    report = diagnose(stack, C=C)
    assert report.status == "different" and report.bugs == ("one block several times",)


def test_a_compiled_module_is_examined_as_it_was_written():
    class Compiled(nn.Module):  # as torch.compile wraps one
        def __init__(self, module):
            super().__init__()
            self._orig_mod = module

    assert diagnose(Compiled(Causal(C, N_HEAD)), C=C).status == "healthy"


def relu_last(C, n_head):
    block = Block(C, n_head)
    block.ff.append(nn.ReLU())
    return block


class InADictionary(nn.Module):
    def __init__(self, C, n_head, learns=True):
        super().__init__()
        self.w = {name: torch.randn(C, C, requires_grad=learns) for name in "abc"}

    def forward(self, x):
        return F.scaled_dot_product_attention(*(x @ w for w in self.w.values()))


@dataclass
class Layers:
    a: nn.Module
    b: nn.Module
    c: nn.Module


class InADataclass(nn.Module):
    def __init__(self, C, n_head):
        super().__init__()
        self.layers = Layers(*(nn.Linear(C, C) for _ in range(3)))

    def forward(self, x):
        return F.scaled_dot_product_attention(*(f(x) for f in vars(self.layers).values()))


class Pair(Block):
    def __init__(self, C, n_head):
        super().__init__(C, n_head, lambda C, n: nn.MultiheadAttention(C, n, batch_first=True))

    def attend(self, z):
        return self.attn(z, z, z)


LEARNERS = {
    "gradient of x cut": changed(Block, add=lambda self, x, branch: x.detach() + branch),
    "plain tensors": Plain,
    "plain tensors, in a dictionary": InADictionary,
    "plain tensors, without a name or a gradient": lambda C, n_head: InADictionary(
        C, n_head, False
    ),
    "weights not taken apart from the output": Pair,
    "layers in a Python dataclass": InADataclass,
    "layers made in forward": changed(
        Attention, heads=lambda self, x: [self.split(nn.Linear(C, C)(x)) for _ in range(3)]
    ),
    "activation behind the feed-forward": relu_last,
}


@pytest.mark.parametrize("name", LEARNERS)
def test_what_learners_write_is_named(name, snapshot):
    report = diagnose(LEARNERS[name](C, N_HEAD), C=C, causal=False)
    assert name.partition(", ")[0] in report.bugs
    assert str(report) == snapshot.use_extension(Told)


def test_rounded_scores_are_no_bias_of_positions():
    rounded = changed(
        Causal, scores=lambda self, q, k: (64 * Causal.scores(self, q, k)).floor() / 64
    )
    report = str(diagnose(rounded(C, N_HEAD), C=C))
    assert "none arrives at query and key" in report and "relative position" not in report


class TenTokens(Causal):
    def forward(self, x):
        return super().forward(x + torch.zeros(10, x.shape[-1])[: x.shape[1]])


def test_a_fixed_length_is_told():
    report = diagnose(TenTokens(C, N_HEAD), C=C, n_head=N_HEAD)
    assert report.status == "healthy" and "With 64 tokens it raises an error" in str(report)


class Small(nn.Module):
    """One head, whose size is called h."""

    def __init__(self):
        super().__init__()
        self.f, self.h = nn.Linear(C, 24), 8

    def forward(self, x):
        q, k, v = self.f(x).split(self.h, -1)
        return F.scaled_dot_product_attention(v, k, q, is_causal=True)


def test_h_may_be_the_size_of_a_head():
    assert diagnose(Small(), C=C, n_head=1).status == "healthy"


class TimeFirst(Causal):
    """All is (T, B, C)."""

    def split(self, z):
        return super().split(z.transpose(0, 1))

    def merge(self, z):
        return super().merge(z).transpose(0, 1)


@pytest.mark.parametrize(
    "make",
    [
        TimeFirst,
        lambda C, n_head: Block(C, n_head, TimeFirst),
        lambda C, n_head: nn.Sequential(TimeFirst(C, n_head), TimeFirst(C, n_head)),
    ],
)
def test_time_first_is_asked_about_and_can_be_said(make):
    module = make(C, N_HEAD)
    report = diagnose(module, C=C, n_head=N_HEAD)
    assert report.status == "broken" and "--layout tbc" in str(report)
    assert diagnose(module, C=C, n_head=N_HEAD, layout="tbc").status == "healthy"
    for at in (TimeFirst, Block):
        scale = changed(TimeFirst, scores=lambda self, q, k: q @ k.mT)
        wrong = scale(C, N_HEAD) if at is TimeFirst else Block(C, N_HEAD, scale)
        assert diagnose(wrong, C=C, n_head=N_HEAD, layout="tbc").bugs == ("no scale",)
    place = torch.randn(9, C)  # a function that reads (T, B, C)
    right = nn.Sequential(Causal(C, N_HEAD))

    def function(x):
        return right((x + place[: len(x), None]).transpose(0, 1)).transpose(0, 1)

    assert not diagnose(function, C=C, n_head=N_HEAD, layout="tbc").bugs
    with pytest.raises(ValueError, match="layout must be"):
        diagnose(module, C=C, layout="bct")


@pytest.mark.parametrize("kind", [nn.TransformerEncoderLayer, nn.MultiheadAttention])
def test_pytorchs_own_say_it_themselves(kind):
    report = diagnose(kind(C, N_HEAD), C=C)
    assert report.status == "healthy" and "Called with x as (T, B, C)" in str(report)


def test_a_decoder_layer_asks_its_context_along_the_same_axes():
    report = diagnose(nn.TransformerDecoderLayer(C, N_HEAD), C=C)
    assert report.status == "incomplete" and not report.error


class Cross(Attention):
    def forward(self, x, context):
        q, k, v = self.split(self.query(x)), *map(self.split, self.of(context))
        return self.out(self.merge(self.weights(q, k) @ v))

    def of(self, context):
        return self.key(context), self.value(context)


class Crossed(Cross):
    def forward(self, x, context):
        return super().forward(context, x)


def test_cross_attention_asks_with_x():
    sizes = {"C": C, "n_head": N_HEAD, "causal": False}
    assert diagnose(Cross(C, N_HEAD), **sizes).status == "healthy"
    assert diagnose(Crossed(C, N_HEAD), **sizes).bugs == ("queries of the context",)
    of_x = changed(Cross, forward=lambda self, x, context: Cross.forward(self, x, x))
    assert diagnose(of_x(C, N_HEAD), **sizes).bugs == ("context never used",)


class ByRole(Cross):
    def forward(self, values, keys, query):
        assert values is keys is query
        return super().forward(query, keys)


class ByTwoRoles(Cross):
    def forward(self, query, key):
        return super().forward(query, key)


@pytest.mark.parametrize("make", [ByRole, ByTwoRoles])
def test_each_role_is_given_x_in_any_order(make):
    assert diagnose(make(C, N_HEAD), C=C, n_head=N_HEAD, causal=False).status == "healthy"


class OfOneText(Cross):
    def forward(self, x, context):
        if not torch.equal(x, context):
            raise RuntimeError("x and context must be one text")
        return super().forward(x, context)


def test_a_context_of_ours_that_is_refused_is_no_fault():
    report = diagnose(OfOneText(C, N_HEAD), C=C, n_head=N_HEAD, causal=False)
    assert report.status == "healthy", report


class OneOfX(Cross):
    """Keys, or values, of x in a cross attention."""

    keys = True

    def forward(self, x, context):
        k, v = (x, context) if self.keys else (context, x)
        q, k, v = map(self.split, (self.query(x), self.key(k), self.value(v)))
        return self.out(self.merge(self.weights(q, k) @ v))


class SameLength(Cross):
    def of(self, context):
        return super().of(context + torch.zeros(7, C))


@pytest.mark.parametrize(
    ("make", "bug"),
    [
        (OneOfX, "keys or values of x"),
        (changed(OneOfX, keys=False), "keys or values of x"),
        (SameLength, "context as long as x"),
    ],
)
def test_the_context_is_asked_for_too(make, bug):
    assert diagnose(make(C, N_HEAD), C=C, n_head=N_HEAD, causal=False).bugs == (bug,)


# ---------------------------------------------------------------- what is expected


def by_place(z, sign=1, axis=-2):
    d = z.shape[-1]
    angle = sign / 10000 ** (torch.arange(0, d, 2).repeat(2) / d)
    angle = (torch.arange(z.shape[axis])[:, None] * angle).view(-1, *[1] * (-2 - axis), d)
    a, b = z.chunk(2, dim=-1)
    return z * angle.cos() + torch.cat((-b, a), -1) * angle.sin()


class Rotary(Causal):
    def scores(self, q, k):
        return super().scores(by_place(q), by_place(k))


class Backwards(Causal):
    """As in modded-nanogpt."""

    def scores(self, q, k):
        return super().scores(by_place(q, -1), by_place(k, -1))


class OnlyQueries(Causal):
    def scores(self, q, k):
        return super().scores(by_place(q), k)


class ByTheHead(Causal):
    def scores(self, q, k):
        return super().scores(by_place(q, axis=-3), by_place(k, axis=-3))


def test_what_is_expected_is_the_variant_and_not_a_mistake_in_it():
    assert_healthy(Backwards(C, N_HEAD), C=C, n_head=N_HEAD, expect=("rotary",))
    for wrong in (OnlyQueries, ByTheHead):
        report = diagnose(wrong(C, N_HEAD), C=C, n_head=N_HEAD, expect=("rotary",))
        assert report.status == "broken" and "rotary" in report.bugs[0], wrong
        again = diagnose(wrong(C, N_HEAD), C=C, n_head=N_HEAD, expect=report.bugs)
        assert again.status == "healthy", wrong


def test_a_variant_that_is_expected_is_healthy_and_missing_it_is_not():
    sizes = {"C": C, "n_head": N_HEAD}
    module = Rotary(C, N_HEAD)
    assert diagnose(module, **sizes).status == "different"
    report = diagnose(module, **sizes, expect=("rotary",))
    assert report.status == "healthy" and "as expected" in str(report)
    assert_healthy(module, **sizes, expect=("rotary",))
    assert diagnose(module, **sizes, expect=("rotary", "softcap")).status == "different"
    with pytest.raises(AssertionError, match="rotary expected, and not found"):
        assert_healthy(Causal(C, N_HEAD), **sizes, expect=("rotary",))
    longer = changed(Rotary, split=lambda self, z: Causal.split(self, z) * z.shape[1])
    assert diagnose(longer(C, N_HEAD), **sizes, expect=("rotary",)).status != "healthy"
    broken = changed(Rotary, fill=0.0)(C, N_HEAD)
    assert diagnose(broken, **sizes, expect=("rotary",)).status == "broken"
    plain = changed(Causal, scores=lambda self, q, k: q @ k.mT)  # as T5 and GPT-Neo have it
    assert diagnose(plain(C, N_HEAD), **sizes, expect=("no scale",)).status == "healthy"
    leaks = changed(plain, fill=0.0)(C, N_HEAD)
    assert diagnose(leaks, **sizes, expect=("no scale",)).status == "broken"
    for word in ("", " ", "rotatory", "s"):
        with pytest.raises(ValueError, match="expect takes words of the names"):
            diagnose(module, **sizes, expect=(word,))
    assert_healthy(module, **sizes, allow=("rotary",))
    with pytest.raises(TypeError, match="expect must be a tuple"):
        diagnose(module, **sizes, expect="rotary")
