"""The exercises of notebook 15: weights for your class, changes of a running model, a control."""

import inspect
from itertools import product

import torch

from feedback.grading import Exercise
from lesson.builds import right_14

BASE = 100  # of the speeds; with it, a class that ignores its base shows
NAME = "MultiHeadAttention"  # of the class that the weights are for: below, or in a notebook

# ---------------------------------------------------------------- 15.fill


@torch.no_grad()
def fill(attention, query, key, value, proj):
    """Put weights (out, in) into an attention; key and value may have fewer heads than query."""
    n_shared = query.shape[0] // key.shape[0]  # query heads that share one head of keys

    def in_pairs(weight):  # rows i and i + head_size / 2 of a head become 2i and 2i + 1
        halves = weight.unflatten(0, (-1, 2, attention.head_size // 2))
        return halves.transpose(1, 2).flatten(0, 2)

    def for_each_head(weight):
        heads = weight.unflatten(0, (-1, attention.head_size))  # (n_kv_head, head_size, C)
        return heads.repeat_interleave(n_shared, dim=0).flatten(0, 1)  # (C, C)

    attention.query.weight.copy_(in_pairs(query))
    attention.key.weight.copy_(for_each_head(in_pairs(key)))
    attention.value.weight.copy_(for_each_head(value))
    attention.proj.weight.copy_(proj)
    for layer in (attention.query, attention.key, attention.value, attention.proj):
        if layer.bias is not None:
            layer.bias.zero_()


class MultiHeadAttention(right_14.MultiHeadAttention):
    """Each layer has a bias, as in many a learner's class: what a mistake leaves there shows."""

    def __init__(self, C, n_head, base=10_000):
        super().__init__(C, n_head, base)
        for layer in (self.query, self.key, self.value):
            layer.bias = torch.nn.Parameter(torch.zeros(C))


def _made(cls, C, n_head):
    """An attention of the learner's class, which has to be one that 08 would take."""
    try:
        own = cls(C, n_head, base=BASE).eval()
    except TypeError as problem:
        raise TypeError(
            f"Your {NAME} is not that of 08, made with (C, n_head, base): {problem}."
        ) from None
    right = right_14.MultiHeadAttention(C, n_head, base=BASE).eval()
    names = {name: z.shape for name, z in right.named_parameters()}
    if names == {name: z.shape for name, z in own.named_parameters()}:  # so we can compare them
        own.load_state_dict(right.state_dict(), strict=False)
        x = torch.randn(2, 5, C, generator=torch.Generator().manual_seed(2))
        if not torch.allclose(own(x), right(x), atol=1e-4):
            raise ValueError(
                f"Your {NAME} itself gives other numbers than the one of 08, whatever is put into "
                "it. Let 08 check it again; `fill` is not to blame."
            )
    return own


def _filled(answer, attention, query, key, value, proj):
    """What the attention gives for fixed tokens. It is of the class that the answer's file has."""
    cls = getattr(inspect.unwrap(answer), "__globals__", {}).get(NAME, right_14.MultiHeadAttention)
    own = _made(cls, query.shape[1], attention.n_head)
    with torch.no_grad():
        for number in own.parameters():
            number.fill_(0.1)  # so that what is not filled shows, in the same way each time
        answer(own, *(w.float() for w in (query, key, value, proj)))  # as a file is read
        x = torch.randn(2, 5, query.shape[1], generator=torch.Generator().manual_seed(1))
        return own(x)


def _weights():
    generator = torch.Generator().manual_seed(0)
    cases = []
    for C, n_head, n_kv_head in ((36, 6, 2), (24, 3, 3), (16, 4, 1)):
        sizes = (C, *[n_kv_head * C // n_head] * 2, C)
        weights = [torch.randn(size, C, generator=generator) / C**0.5 for size in sizes]
        cases.append((MultiHeadAttention(C, n_head), *weights))
    return cases


FILL = Exercise("15.fill", fill, _weights, used=_filled, atol=1e-4)

# ---------------------------------------------------------------- 15.1


def patch_head(z, other, head, n_head):
    """z, other (B, T, C) -> (B, T, C): one head's channels, at the last token, from other."""
    d = z.shape[-1] // n_head
    mine = slice(head * d, (head + 1) * d)
    z = z.clone()
    z[:, -1, mine] = other[:, -1, mine]
    return z


def by_an_axis_of_heads(z, other, head, n_head):
    z = z.clone()
    heads = z.unflatten(2, (n_head, -1))  # a view: what is written there is written to z
    heads[:, -1, head] = other.unflatten(2, (n_head, -1))[:, -1, head]
    return z


def _outputs_of_heads():
    generator = torch.Generator().manual_seed(0)
    return [
        (*torch.randn(2, B, T, C, generator=generator), head, n_head)
        for B, T, C, n_head, head in ((2, 5, 12, 3, 1), (3, 4, 20, 4, 3), (4, 3, 10, 5, 2))
    ]


PATCH_HEAD = Exercise(
    "15.1",
    patch_head,
    _outputs_of_heads,
    accepted=(by_an_axis_of_heads,),
    axes={"z": "B T C", "other": "B T C", "return": "B T C"},
)

# ---------------------------------------------------------------- 15.4


def hide(maps, target):
    """Maps (..., T, T): each last row without weight on token `target`, summing to 1 again."""
    maps = maps.clone()
    maps[..., -1, target] = 0
    maps[..., -1, :] /= maps[..., -1, :].sum(dim=-1, keepdim=True)
    return maps


def _maps():
    generator = torch.Generator().manual_seed(0)
    cases = []
    for sizes, target in (((5, 5), 3), ((3, 7, 7), 5), ((2, 3, 4, 4), 1)):
        scores = torch.randn(sizes, generator=generator)
        past = torch.ones(sizes[-2:], dtype=torch.bool).tril()
        cases.append((scores.masked_fill(~past, -torch.inf).softmax(dim=-1), target))
    return cases


def _by_what_is_left(maps, target):  # the same if a row sums to 1
    maps = maps.clone()
    maps[..., -1, :] /= 1 - maps[..., -1, [target]]
    maps[..., -1, target] = 0
    return maps


def _all_rows_scaled(maps, target):  # the same if the other rows sum to 1
    maps = maps.clone()
    maps[..., -1, target] = 0
    return maps / maps.sum(dim=-1, keepdim=True)


AXES = {"maps": "... T T", "return": "... T T"}
HIDE = Exercise("15.4", hide, _maps, accepted=(_by_what_is_left, _all_rows_scaled), axes=AXES)

# ---------------------------------------------------------------- 15.5


def wanted(maps, target=1):
    """Maps (..., T, T): each last row with all of its weight on token `target`."""
    maps = maps.clone()
    maps[..., -1, :] = 0
    maps[..., -1, target] = 1
    return maps


WANTED = Exercise("15.5", wanted, _maps, axes=AXES)

# ---------------------------------------------------------------- 15.6


def others(maps, target, heads):
    """As many pairs (block, head) as heads, none of them in it: the most weight on target."""
    look = maps[:, :, -1, target].clone()  # (n_block, n_head)
    for block, head in heads:
        look[block, head] = -1
    first = look.flatten().topk(len(heads)).indices.tolist()
    return [divmod(i, look.shape[1]) for i in first]


def _models():
    torch.manual_seed(0)
    long, wide = (torch.randn(size).softmax(-1) for size in ((4, 3, 5, 5), (3, 6, 7, 7)))
    return [(long, 3, [(0, 0), (1, 1), (3, 1)]), (wide, 2, [(0, 2), (1, 1), (2, 0), (2, 5)])]


def _named(found, maps, target, heads):
    """Whether an answer names each head, and what is wrong with its pairs."""
    places, right = [*product(*map(range, maps.shape[:2]))], {*others(maps, target, heads)}
    try:
        mine = {(int(block), int(head)) for block, head in found}
    except (TypeError, ValueError):
        told = "[(0, 2), (2, 1)]. Number i of all heads is head i % n_head of block i // n_head."
        raise TypeError(f"Return pairs (block, head), such as {told}") from None
    for block, head in sorted(mine - {*places}):
        raise ValueError(f"There is no head {head} in a block {block}: both count from 0.")
    told = f"`heads` has {len(heads)} pairs; yours are {len(mine)}, each counted once."
    for place in sorted(right - mine) if len(mine) == len(heads) else ():
        told = f"{place} is not among yours, and its weight is {maps[place][-1, target]:.3f}."
    return torch.tensor([place in mine for place in places]).float(), told * (mine != right)


OTHERS = Exercise("15.6", others, _models, effect=_named)

EXERCISES = (FILL, PATCH_HEAD, HIDE, WANTED, OTHERS)
