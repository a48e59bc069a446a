"""Notebook 04: one head."""

import math

import torch

from lesson.exercises import EXERCISES
from tests.lesson.proofs import proves, run_cells, same, written


@proves("04.p1")
def it_looks_harder(texts):
    tokens = run_cells("04", "# Set-up", "with_noun")["tokens"]
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


@proves("04.p4")
def two_trainings(texts):
    known = {"Head": EXERCISES["04.Head"].reference, "query_matrix": EXERCISES["04.4"].reference}
    known["step"] = EXERCISES["04.5"].reference
    cells = ("# Set-up", "word = list", "W_c = query_matrix", "generator", "def learn(")
    here = run_cells("04", *cells, **known)
    trained = here["learned"], here["learn"](1)[0]
    texts["question"].says(len(trained), len(trained))
    texts["why d"].says(round(here["losses"][-1], 3))
    one, other = (head(here["examples"]) for head in trained)
    outputs = torch.allclose(one, other, atol=0.05)
    pairs = [*zip(*(head.parameters() for head in trained), strict=True)]
    alike = all(torch.allclose(one, other, atol=0.1) for one, other in pairs)
    angles = torch.stack([torch.cosine_similarity(*map(torch.flatten, p), dim=0) for p in pairs])
    a_factor = (angles.abs() > 0.95).all()
    return {
        "same, and queries and keys, too": outputs and alike,
        "up to a factor": outputs and a_factor and not alike,
        "keys quite different": outputs and not a_factor,
        "outputs differ": not outputs,
    }


@proves("04.4")
def query_matrix(texts):
    texts["1"].says((0, 1))  # row 0 of the matrix becomes the query of (1, 0)
    texts["2"].says((1, 0), "strength", 0, (0, 1))
    vowel, *query, consonant, last = texts["3"].gives()
    (first,) = texts["3"].after("consonant,")
    rows = f"rows = {{{vowel}: {query}, {consonant}: [{first}, {last}]}}"
    return written("strength", rows, "torch.tensor([rows[0], rows[1]])")


@proves("04.5")
def one_step(texts):
    block, change, gradient = texts["3"].says(..., ..., ...)
    lines = f"with {block}: p -= {change}", f"{gradient} = None", "None"
    return written("p, learning_rate", *lines, torch=torch)
