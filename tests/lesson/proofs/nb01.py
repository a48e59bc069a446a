"""Notebook 01: the causal mean, by loops."""

import torch

from helpers.training import Corpus, drop_repeats, python_help
from tests.lesson.proofs import proves, run, written

X = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(0))  # (B, T, C)


def causal_mean(x):
    """(T, …) -> (T, …), in 64-bit floats."""
    return torch.stack([x[: t + 1].double().mean(dim=0) for t in range(len(x))])


@proves("01.p1")
def numbers_in_one_mean(texts):
    shape, place = texts["question"].gives()
    B, _, C = shape
    b, t, c = 1, 5, 0
    assert place == f"[{b}, {t}, {c}]"
    x = torch.randn(shape).requires_grad_()
    means = torch.stack([causal_mean(sequence) for sequence in x])
    used = torch.autograd.grad(means[b, t, c], x)[0] != 0
    assert used[b, : t + 1, c].all() and t + 1 == used.sum() == 6
    texts["a"].says(t)
    texts["why a"].says(t, 0, t, t + 1)
    texts["b"].says(t + 1)
    texts["why b"].says(0, t, b, c)
    texts["c"].says((t + 1) * C)
    texts["why c"].says(0, t, b, (t + 1) * C, C, C)
    texts["d"].says((t + 1) * B)
    texts["why d"].says(B)
    return {letter: texts[letter].gives() == [used.sum()] for letter in "abcd"}


def moved(T, places, by=None):
    """By how much each output moves when other tokens stand in some places, and which ones do."""
    x = torch.randn(T)
    changed = x.clone()
    changed[places] = x[places] + 1 if by is None else x[by]
    moves = (causal_mean(changed) - causal_mean(x)).abs()
    return moves, [t for t in range(T) if moves[t] > 1e-9]


@proves("01.p2")
def a_token_is_replaced(texts):
    s, T = texts["question"].gives()
    _, right = moved(T, [s])
    texts["a"].says(s)
    texts["why a"].says(*right, s)
    texts["why b"].says(0, s, *right, 0, s - 1)
    texts["c"].says(*right[1:])
    texts["why c"].says(right[0])
    texts["d"].says(0, s)
    texts["why d"].says(s, s)
    holds = {letter: texts[letter].gives() == right for letter in "abc"}
    return holds | {"d": list(range(s + 1)) == right}


@proves("01.p3")
def token_0_is_replaced(texts):
    (s,) = texts["question"].gives()
    moves, right = moved(8, [s])
    texts["a"].says(s)
    texts["why a"].says(s, s)
    texts["b"].says(len(moves))
    texts["why b"].says(3 + 1, s, t=3)
    texts["c"].says(len(moves))
    texts["why c"].says(s, moves[0], 0, moves[1], 1, moves[7], 7)
    equal, less = (moves.diff().abs() < 1e-9).all(), (moves.diff() < 0).all() and moves[-1] > 0
    return {"a": [s] == right, "the same amount": equal, "later ones less": less}


@proves("01.p4")
def two_tokens_change_places(texts):
    i, j = texts["question"].gives()
    _, right = moved(8, [i, j], by=[j, i])
    texts["why a"].says(i)
    texts["why b"].says(i, i)
    texts["c"].says(i, j)
    texts["why c"].says(i, j, i, j, (3 + 8) / 2, (8 + 3) / 2, a=3, b=8)
    texts["why d"].says(j, i, 2)
    holds = {letter: texts[letter].gives() == right for letter in "bc"}
    return holds | {"all": len(right) == 8, "none": not right}


def perplexity(T, mix):
    """Of a model that guesses letters from mixed embeddings, after 400 steps of training."""
    corpus = Corpus(drop_repeats(python_help()))
    V, generator = len(corpus.letters), torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    table, linear = torch.nn.Embedding(V, 64), torch.nn.Linear(64, V)
    optimizer = torch.optim.Adam([*table.parameters(), *linear.parameters()], lr=0.005)

    def loss(windows):
        logits = linear(mix(table(windows[:, :-1])))  # (B, T, V)
        return torch.nn.functional.cross_entropy(logits.mT, windows[:, 1:])

    for _ in range(400):
        optimizer.zero_grad()
        loss(corpus.batch(16, T, generator)).backward()
        optimizer.step()
    return loss(corpus.windows(T)).exp().item()


@proves("01.p5")
def the_last_letter_or_the_average(texts):
    _, T = texts["question"].gives()
    triangle = torch.ones(T, T).tril()
    last = perplexity(T, lambda x: x)
    mean = perplexity(T, lambda x: triangle / triangle.sum(dim=1, keepdim=True) @ x)
    for told, found in zip(texts["why b"].gives(), (last, mean), strict=True):
        assert abs(told / found - 1) < 0.1  # another Python has other help texts
    return {"average": mean < last, "last letter": last < mean, "both": abs(mean - last) < 1}


@proves("01.1")
def the_loop(texts):
    place = texts["1"].says(2, ...)
    part = texts["2"].says(..., (4, 2), 0, t=3, C=2)
    assert torch.equal(run(part, x=X, b=1, t=3), X[1, :4])
    axis, into = texts["3"].gives()
    assert into == f"out{place}"
    places = "[(b, t) for b in range(x.shape[0]) for t in range(x.shape[1])]"
    line = f"for b, t in {places}: {into} = {part}.mean(dim={axis})"
    return written("x", "out = torch.zeros_like(x)", line, "out")


@proves("01.3")
def running_sums(texts):
    texts["1"].says(3 - 1, t=3)
    sums = texts["2"].says(...)
    counts = texts["3"].says(..., (5, 1), T=5)
    assert run(counts, T=5).tolist() == [[1], [2], [3], [4], [5]]
    return written("x", "T = x.shape[1]", f"{sums} / {counts}")
