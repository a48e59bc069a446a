"""Notebook 04: one head."""

import math

import torch
from torch import nn

from helpers.toy import WORDS
from tests.lesson.proofs import proves, run, run_cells, same, written


@proves("04.p1")
def it_looks_harder(texts):
    tokens = run_cells("04", "import torch", "with_noun")["tokens"]
    cat, it, noun = 1, 5, 2

    def scores(number):
        changed = tokens.clone()
        changed[it, noun] = number
        return changed @ changed[it]

    old = tokens[it, noun].item()
    _, _, _, _, _, new, _ = texts["question"].gives()
    before, after, equal = scores(old), scores(new), scores(tokens[cat, noun])
    weights = before.softmax(-1)
    texts["question"].says(old, before[cat], before[it], weights[cat], old, new, after[cat])
    texts["why a"].says(0, f"{new} · {new}", after[it], after[it], after[cat])
    texts["b"].says(weights[cat])
    grown = after - before
    texts["why b"].says(grown[cat], before[cat], after[cat], grown[it], before[it], after[it])
    texts["c"].says(equal.softmax(-1)[cat])
    texts["why c"].says(old, tokens[cat, noun], equal[cat], equal[it], new)
    ahead = (after[it] - after[cat]).item()
    texts["why d"].says(after[it], after[cat], ahead, math.e**ahead, 148, "1/149")
    assert abs(math.e**ahead - 148) < 0.5
    assert abs(1 / after.softmax(-1)[cat] - 149) < 1
    said = {letter: texts[letter].gives()[0] for letter in "abcd"}
    return {one: abs(n - after.softmax(-1)[cat]) < 0.005 for one, n in said.items()}


@proves("04.p2")
def lowest_score(texts):
    here = run_cells("04", "import torch", "x = sentence()")
    _, *words = texts["question"].quoted()
    query, keys = here["query"], here["keys"][[WORDS.index(word) for word in words]]
    texts["question"].says(*query, *keys.flatten())
    products, length = keys * query, keys.norm(dim=1)
    scores, times = products.sum(dim=1), round((query[1] / query[0]).item())
    opposite, low, other = (words.index(texts[letter].quoted()[0]) for letter in "abc")
    assert opposite == (scores / length).argmin() and scores.max() < 0
    times_as_long = int(min(length[low], length[other]) / length[opposite])
    texts["why a"].says(scores[opposite], len(words) - 1, times_as_long)
    of_both = (*products[low], scores[low], *products[other], scores[other])
    texts["why b"].says(*of_both, 1, times, 0, 1, times)
    assert other == keys[:, 0].argmin()
    by_channel = (0, keys[other, 0], keys[low, 0], 1, times, keys[low, 1], keys[other, 1])
    texts["why c"].says(*by_channel, scores[other], scores[low])
    assert (texts["why b"].quoted(), texts["why c"].quoted()) == ([words[other]], [words[low]])
    return {f"“{word}”": score == scores.min() for word, score in zip(words, scores, strict=True)}


@proves("04.p3")
def matrices_swapped(texts):
    texts["question"].says("W_query", "W_key")
    x, W_query, W_key = torch.randn(5, 6), torch.randn(6, 1), torch.randn(6, 1)
    q, k = x @ W_query, x @ W_key  # one channel, so that a dot product is a product
    before, after = q @ k.T, k @ q.T
    now = {"q_i": q[1], "k_j": k[3], "k_i": k[1], "q_j": q[3], "i": 1, "j": 3, "a": 2, "b": 5}
    entry = ([1, 3], before[1, 3], after[1, 3], [3, 1])
    assert same(after[1, 3], before[3, 1])
    texts["why a"].says(2 * 5, 5 * 2, *entry, **now)
    texts["b"].says(("T", "T"))
    texts["why b"].says(*entry, **now)
    texts["c"].says(-1)
    texts["why c"].says(2 * 5, 5 * 2, *entry[1:3], **now)
    times = same(after, -1 * before)
    return {"same": same(after, before), "transposed": same(after, before.T), "c": times}


@proves("04.1")
def score(texts):
    texts["1"].says(2)
    query = texts["2"].says(..., "d", "W_key")
    key = query.replace("W_query", "W_key").replace("[i]", "[j]")
    product = texts["3"].says(2, ...)
    return written("x, W_query, W_key, i, j", f"query, key = {query}, {key}", product)


@proves("04.2")
def plain_matrix(texts):
    layer, x = nn.Linear(5, 3, bias=False), torch.randn(4, 5)
    texts["1"].says(layer.weight, layer=layer)
    product = texts["2"].says(layer(x), ..., layer=layer, x=x)
    assert same(run(product, layer=layer, x=x), layer(x))
    return written("layer", product.removeprefix("x @ "))


@proves("04.3")
def head(texts):
    product, divisor = texts["2"].says(..., ("B", "T", "T"), ..., "head_size")
    infinity, mask, axis, average = texts["3"].gives()
    names = "q, k, v, T = x @ W_query, x @ W_key, x @ W_value, x.shape[1]"
    masked = f"masked = ({product} / ({divisor})).masked_fill(~{mask}, {infinity})"
    weights = f"weights = masked.softmax({axis})"
    return written("x, W_query, W_key, W_value", names, masked, weights, average)
