import itertools

import torch

from attention_base.numbers import listed, narrow, number
from helpers.pictures.table import Cell, Table
from helpers.toy import numbers as tokens_of
from tests.explorers.reading import heat

X = torch.randn(10, 32, generator=torch.Generator().manual_seed(2)).double()


def cut(z, n_head, skip):
    """Cut (T, C) into heads: by `view` alone into equal runs of its numbers, else by columns."""
    parts = z.flatten().chunk(n_head) if skip else z.chunk(n_head, 1)
    return [part.view(len(z), -1) for part in parts]


def attend(x, n_head, skip):
    T, C = x.shape
    matrices = torch.randn(3, C, C, generator=torch.Generator().manual_seed(0)).double() / C**0.5
    future = torch.ones(T, T).triu(1).bool()
    weights, outs = [], []
    for q, k, v in zip(*[cut(x @ matrix, n_head, skip) for matrix in matrices], strict=True):
        scores = (q @ k.T / q.shape[1] ** 0.5).masked_fill(future, -torch.inf)
        weights.append(torch.softmax(scores, -1))
        outs.append(weights[-1] @ v)
    return weights, torch.cat(outs, 1)


def model(x, n_head, row, skip):
    T, x = len(x), x.clone().requires_grad_()
    weights, out = attend(x, n_head, skip)
    (gradient,) = torch.autograd.grad(out[row].sum(), x)
    reached = gradient.abs().amax(1).nonzero().flatten().tolist()
    owners = [part[:, 0].tolist() for part in cut(torch.arange(T).repeat(32, 1).T, n_head, skip)]
    heads, most = [], []
    for h, owner in enumerate(owners):
        names, rows = list(map(str, owner)), heat(weights[h].detach())
        for t, line in enumerate(weights[h].tolist()):
            for j, w in enumerate(line):
                seen = rows[t][j]._replace(text=narrow(w) if t == row else "", note=number(w))
                rows[t][j] = seen if j <= t else Cell("", "masked", note="masked")
        largest, key = weights[h][row].max(0)
        most.append(f"head {h} gives most to token {owner[key]} ({number(largest)})")
        caption = f"head {h} · most: {owner[key]} ({number(largest)})"
        rows = list(zip(names, rows, strict=True))
        heads.append(Table(names, rows, caption, size="small", framed_row=row))
    whose = "the token whose channels stand there" if skip else "the token"
    note = "Rows are queries (who reads), columns are keys (who is read). "
    note += f"The number at a row or column is {whose}. Row {row} is framed."
    told = in_words(row, [h for h in range(n_head) if owners[h][row] == row], reached)
    how = "split by view alone" if skip else "split right"
    return [f"row {row}, {how}: {', '.join(most)}. {' '.join(told)}", *heads, note, *told]


def in_words(row, right, reached):
    def named(tokens):
        return f"{'token' if len(tokens) == 1 else 'tokens'} {listed(tokens)}"

    told = [f"Output {row} depends on {named(reached)}.", "✓ It does not depend on the future."]
    if future := [t for t in reached if t > row]:
        where = f"only in head {listed(right)}" if right else "in no head"
        why = f"the mask hides later rows, but row {row} is token {row} {where}"
        told[1] = f"⚠ It depends on the future ({named(future)}): {why}."
    if missing := [t for t in range(row + 1) if t not in reached]:
        told.append(f"⚠ It does not depend on {named(missing)}.")
    return told


CONTROLS = {
    "row of the query": (7, (0, 7, 1)),
    "skip the transpose (split by view alone)": (False, ()),
}
CASES = [
    ({"x": X[:T], "n_head": n_head}, list(itertools.product(range(T), (False, True))))
    for T, n_head in [(8, 4), (5, 2), (4, 1), (6, 8), (10, 8)]
]
TOKENS = tokens_of(32)[0]  # (8, 32)
REFUSED = [
    ({"x": TOKENS, "n_head": 5}, "C = 32 channels .* n_head = 5 heads"),
    ({"x": TOKENS, "n_head": 0}, "from 1 to 8, got 0"),
    ({"x": tokens_of(36)[0], "n_head": 9}, "from 1 to 8, got 9"),
    ({"x": TOKENS, "n_head": True}, "from 1 to 8, got True"),
    ({"x": TOKENS, "n_head": 2.0}, "from 1 to 8, got 2.0"),
    ({"x": torch.zeros(11, 4)}, r"10 tokens, got 11.*x\[:10\]"),
    ({"x": tokens_of(32)}, r"2-D.*\(4, 8, 32\)"),
]
