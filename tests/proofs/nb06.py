"""Notebook 06: many heads."""

import torch

from helpers.attention import Head, MultiHeadAttention
from helpers.clinic.probes import no_leak, reach
from helpers.lesson.exercises import EXERCISES
from tests.proofs import proves, run


@proves("06.p1", "26714e")
def heads_change_places(texts):
    i, j = texts["question"].read(
        "Heads {} and {} change places in the concatenation. "
        "What must be done to W_O so that the output stays the same?"
    )
    n_head, size = 4, 8  # of the notebook's layer
    outputs, W_O = torch.randn(n_head, 5, size), torch.randn(n_head * size, n_head * size)
    order = list(range(n_head))
    order[i], order[j] = order[j], order[i]
    before = torch.cat(list(outputs), dim=-1) @ W_O

    def same(W_O):
        after = torch.cat([outputs[h] for h in order], dim=-1) @ W_O
        return torch.allclose(after, before, atol=1e-4)

    texts["a"].read("nothing: heads have no order")
    mine, its = texts["why a"].find(
        "But each row of W_O is multiplied by one channel of the concatenation, so W_O as it is "
        "would multiply the output of head {} by the rows of head {}."
    )
    assert (mine, its) == (j, i) and not same(W_O)
    eight = texts["b"].read("swap its first two groups of {word} rows")
    texts["why b"].find("Row r of W_O is multiplied by channel r of the concatenation.")
    columns = texts["c"].read("swap its first two groups of {word} columns")
    rows = texts["d"].read("swap rows {} and {}")
    assert rows == (i, j) and columns == size  # right, but for columns; and for one row of eight
    one, each, moved = texts["why d"].read(
        "This would be right if a head had {word} channel. Here each head has {word}, "
        "so {word} rows have to move."
    )
    assert one == 1 and each == moved == size

    def exchanged(W_O, length):
        first, second, *rest = W_O.split(length)
        return torch.cat([second, first, *rest])

    assert same(exchanged(W_O, size))
    return {
        "a": same(W_O),
        "b": same(exchanged(W_O, eight)),
        "c": same(exchanged(W_O.T, columns).T),
        "d": same(exchanged(W_O, one)),
    }


@proves("06.p2", "a941b6")
def parameters_by_heads(texts):
    C, channels, few, many = texts["question"].read(
        "C stays at {}, and the concatenation keeps its {} channels. "
        "What happens to the number of parameters when n_head goes from {} to {}?"
    )
    counts = [
        sum(p.numel() for p in MultiHeadAttention(C, n_head).parameters()) for n_head in (few, many)
    ]
    factor = counts[1] / counts[0]
    a = texts["a"].read("it becomes {word} times as large")
    times, share, shape, instead, code = texts["why a"].read(
        "There are {word} times as many matrices, but each is {word} as large: "
        "{shape} in place of {shape}, because head_size = {code}."
    )
    assert times == many / few and share == 1 / many and a == times
    assert instead == (C, C) and shape == (C, run(code, C=C, n_head=many))
    assert Head(C, shape[1]).query.weight.T.shape == shape
    b = texts["b"].read("it becomes {word}")
    eight = texts["why b"].find(
        "This is true of the query, key and value matrix of each head. "
        "But there are {word} heads, and W_O keeps its size."
    )
    assert eight == many and b == share
    texts["c"].read("it stays the same")
    _, *size, square, shape = texts["why c"].read(
        "For the queries, {code} matrices of ({}, {code}) have {code} entries together, whatever "
        "n_head is. The same holds for the keys and the values, and W_O is {shape} in any case."
    )
    for n_head in (few, many):
        entries = n_head * size[0] * run(size[1], n_head=n_head)
        assert entries == run(square.replace("·", "*"))
        assert MultiHeadAttention(C, n_head).proj.weight.shape == shape == (C, C)
    assert channels == C
    return {"a": factor == a, "b": factor == b, "c": factor == 1}


@proves("06.p3", "08783a")
def split_and_merge_by_view_alone(texts):
    texts["question"].read(
        "The split and the merge both use view alone, without the transpose. Does the future leak?"
    )
    B, T, n_head, size = 2, 8, 4, 8
    C = n_head * size
    x = torch.randn(B, T, C, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    matrices = [torch.randn(C, C, generator=generator) / C**0.5 for _ in range(3)]

    def heads(x, right=False):
        B, T, C = x.shape
        if right:
            q, k, v = ((x @ W).view(B, T, n_head, size).transpose(1, 2) for W in matrices)
        else:
            q, k, v = ((x @ W).view(B, n_head, T, size) for W in matrices)
        scores = (q @ k.mT / size**0.5).masked_fill(torch.ones(T, T).triu(1) == 1, float("-inf"))
        out = scores.softmax(dim=-1) @ v
        return (out.transpose(1, 2) if right else out).reshape(B, T, C)

    leaks = not no_leak(heads, x).ok
    right = torch.allclose(heads(x), heads(x, right=True), atol=1e-4)
    # Which token each number of a head comes from.
    token = torch.arange(T)[:, None].expand(T, C).reshape(n_head, T * size)
    tokens = {len(set(one.tolist())) for one in token}
    used = []  # for each output, how many tokens from before it
    for t in range(T):
        changed = [x.index_fill(1, torch.tensor([s]), 0.0) for s in range(t)]
        moves = [bool((heads(other) - heads(x))[:, t].abs().max() > 1e-6) for other in changed]
        used.append(sum(moves))
    lost = sum(n < t / 2 for t, n in enumerate(used)) > T / 2

    texts["a"].read("yes, twice as badly")
    texts["b"].read("no, and the module is right after all")
    for letter, pattern in (
        ("b", "holds all channels of {word} tokens"),
        ("c", "Each “head” holds {word} whole tokens"),
    ):
        assert tokens == {texts[f"why {letter}"].find(pattern)}
    assert texts["why b"].find("where it should hold {word} channels of all tokens") == size
    texts["c"].read("no, but most outputs no longer depend on most of their past")
    most = texts["why c"].find(
        "A token can attend to itself and at most to {word} token before it."
    )
    assert max(used) == most
    passes, finds = texts["why c"].find(
        "The probe {code} passes; the probe {code} finds the mistake."
    )
    probes = {"no_leak": no_leak, "reach": reach}
    assert probes[passes](heads, x).ok and not probes[finds](heads, x).ok
    return {"a": leaks, "b": not leaks and right, "c": not leaks and lost}


@proves("06.1", "9b3939")
def side_by_side_heads(texts):
    join, axis = texts["2"].read(
        "{code} joins the tensors of the list along an axis that they have. "
        "The channels are the last axis, {code}."
    )
    code = join.replace("dim=…", axis)
    return lambda heads, x: run(code, outputs=[head(x) for head in heads])


@proves("06.2", "2f859e")
def many_heads(texts):
    before, after = texts["1"].read(
        "There are three parts: split, attend, merge. The middle is the head of exercise {code}, "
        "since @ and softmax treat {code} as one more batch axis."
    )
    head = EXERCISES[before].reference
    assert head.__name__ == "head" and after == "n_head"
    split, shape = texts["2"].read("To split q, k and v: {code} has the shape {shape}.")
    back, apart, join = texts["3"].read(
        "To merge: {code} brings back {shape}, and {code} joins the last two axes."
    )
    names = {"B": 2, "T": 3, "C": 20, "n_head": 4, "head_size": 5}
    parts = run(split, z=torch.randn(2, 3, 20), **names)
    assert parts.shape == tuple(names[axis] for axis in shape)
    assert run(back, out=parts).shape == tuple(names[axis] for axis in apart)

    def many_heads(q, k, v, n_head):
        B, T, C = q.shape
        names = {"B": B, "T": T, "C": C, "n_head": n_head, "head_size": C // n_head}
        q, k, v = (run(split, z=z, **names) for z in (q, k, v))
        scores = q @ k.mT / names["head_size"] ** 0.5
        weights = scores.masked_fill(torch.ones(T, T).triu(1) == 1, float("-inf")).softmax(dim=-1)
        return run(back + join, out=weights @ v, **names)

    return many_heads


@proves("06.3", "0da5b2")
def cut_qkv(texts):
    texts["1"].read(
        "Of the 3C rows, the first C belong to the query, the next C to the key, "
        "the last C to the value."
    )
    chunk, split, C = texts["2"].read(
        "{code} cuts the rows into three equal pieces. {code}, with C = {code}, "
        "cuts them into pieces of C rows."
    )
    fused = torch.randn(18, 6)
    pieces = run(split, fused=fused, C=run(C, fused=fused))
    assert len(pieces) == 3 and torch.equal(torch.stack(pieces), fused.view(3, 6, 6))
    return lambda fused: run(chunk, fused=fused)
