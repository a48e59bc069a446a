"""Notebook 06: many heads."""

import torch

from attention_clinic.bugs import merge_heads, split_heads
from attention_clinic.probes import no_leak, reach
from helpers.attention import Head, MultiHeadAttention, attention, causal_mask
from tests.lesson.proofs import proves, same


@proves("06.p2")
def parameters_by_heads(texts):
    _, C, _, _, few, many = texts["question"].gives()
    parts = [MultiHeadAttention(C, n_head) for n_head in (few, many)]
    one, other = (sum(p.numel() for p in part.parameters()) for part in parts)
    matrix, square = Head(C, C // many).query.weight.T.shape, parts[1].proj.weight.shape
    size, times, factor = C // many, many / few, other / one
    assert many * matrix.numel() == square.numel()
    texts["question"].says("C", C, C, "n_head", few, many)
    texts["a"].says(times)
    texts["why a"].says(times, 1 / times, matrix, square, "head_size", size, C=C, n_head=many)
    texts["b"].says(1 / times)
    texts["why b"].says(many, "W_O")
    texts["why c"].says("n_head", matrix, f"{C} · {C}", "W_O", square, n_head=many)
    holds = {letter: texts[letter].gives() == [factor] for letter in "ab"}
    return holds | {"the same": factor == 1}


@proves("06.p3")
def split_and_merge_by_view_alone(texts):
    T, n_head = texts["question"].gives()
    B, size = 2, 8
    C = n_head * size
    x, matrices = torch.randn(B, T, C), torch.randn(3, C, C) / C**0.5

    def heads(x):
        q, k, v = ((x @ W).view(-1, n_head, T, size) for W in matrices)
        return attention(q, k, v, causal_mask(T))[0].reshape(x.shape)

    leaks = not no_leak(heads, x).ok
    q, k, v = (split_heads(x @ W, n_head) for W in matrices)
    right = same(heads(x), merge_heads(attention(q, k, v, causal_mask(T))[0]))
    blanked = [heads(x.index_fill(1, torch.tensor([s]), 0.0)) for s in range(T)]
    uses = ((torch.stack(blanked) - heads(x)).abs() > 1e-6).any(dim=-1).any(dim=1)  # (s, t)
    earlier = uses.triu(1).sum(dim=0)  # how many tokens from before it an output uses
    lost = (earlier < torch.arange(T) / 2).sum() > T / 2
    tokens = T * size // C  # of which a “head” holds all C numbers
    texts["a"].says(2)
    texts["why a"].says(2)  # the split and the merge
    texts["why b"].says(tokens, size)
    texts["why c"].says(tokens, "no_leak")
    assert earlier.max() == 1  # "one token before it"
    passes, finds = texts["why c"].after("probe")
    probes = {"no_leak": no_leak, "reach": reach}
    assert probes[passes](heads, x).ok and not probes[finds](heads, x).ok
    return {"yes": leaks, "is right": not leaks and right, "depend": not leaks and lost}
