"""Notebook 04: one head."""

import torch
from torch import nn

from helpers.attention import attention, causal_mask
from tests.proofs import proves, run, run_cells


@proves("04.p1", "f8bcdc")
def lowest_score(texts):
    q0, q1, *keys = texts["question"].read(
        "The query of “is” is {} {}. Which of these keys gets the lowest score: “Life” {} {}, "
        "“short” {} {}, or “first” {} {}?"
    )
    query = (q0, q1)
    keys = dict(
        zip(("Life", "short", "first"), zip(keys[::2], keys[1::2], strict=True), strict=True)
    )
    scores = {word: q0 * k0 + q1 * k1 for word, (k0, k1) in keys.items()}
    length = {word: (k0**2 + k1**2) ** 0.5 for word, (k0, k1) in keys.items()}
    lowest = min(scores, key=scores.get)

    a = texts["a"].read("“{code}”: it points most exactly away from the query")
    cosine = {word: score / length[word] for word, score in scores.items()}
    assert min(cosine, key=cosine.get) == a
    # The numbers of the question are rounded, so a score may miss by one in its last digit.
    short_score = texts["why a"].find("but its arrow is short, so its score is only {}.")
    assert abs(scores[a] - short_score) < 0.02
    texts["why a"].find("The two others point away from the query, too, and are more than twice")
    assert all(score < 0 for score in scores.values())
    assert all(length[word] > 2 * length[a] for word in keys if word != a)

    b = texts["b"].read("“{code}”")
    p0, p1, total, word, o0, o1, other_total = texts["why b"].find(
        "Its products are {} and {}, which add up to {}. For “{code}” they are {} and {}, "
        "together {}."
    )
    for key, said in ((b, (p0, p1, total)), (word, (o0, o1, other_total))):
        products = [q * k for q, k in zip(query, keys[key], strict=True)]
        for value, number in zip([*products, scores[key]], said, strict=True):
            assert abs(value - number) < 0.011
        assert abs(said[0] + said[1] - said[2]) < 1e-9
    big, times, small = texts["why b"].find(
        "Channel {} of the query is {word} times its channel {},"
    )
    counts = texts["why b"].find("so channel {} of a key counts {word} times as much.")
    assert round(query[big] / query[small]) == times and counts == (big, times)

    c, channel = texts["c"].read("“{code}”: its channel {} is the lowest")
    assert keys[c][channel] == min(key[channel] for key in keys.values())
    values = texts["why c"].read(
        "In channel {} it is lower than “{code}”, {} against {}. But channel {} of the query is "
        "{word} times as large, and there “{code}” is lower, {} against {}. "
        "The scores are {} and {}."
    )
    low, word, mine, its, high, factor, again, its_1, mine_1, my_score, its_score = values
    assert (low, word) == (channel, again) and factor == round(query[high] / query[low])
    assert (mine, mine_1) == keys[c] and (its, its_1) == keys[word]
    assert mine < its and its_1 < mine_1 and (my_score, its_score) == (other_total, total)
    return {letter: word == lowest for letter, word in (("a", a), ("b", b), ("c", c))}


@proves("04.p2", "f86dc3")
def parameters_of_a_head(texts):
    texts["question"].read(
        "The sequences become twice as long. How many parameters has the head then?"
    )
    code = texts["why a"].find("are the entries of the three matrices, {code} each.")
    C, head_size = (int(size) for size in code.split(" · "))
    here = run_cells("04", "import torch", "torch.manual_seed(1337)\ntokens")
    layers = [here["to_key"], here["to_query"], here["to_value"]]
    assert all(layer.weight.T.shape == (C, head_size) for layer in layers)

    def sizes(T):
        """The numbers that get a gradient when the head runs on T tokens, and of scores."""
        q, k, v = (layer(torch.randn(1, T, C)) for layer in layers)
        out, weights = attention(q, k, v, causal_mask(T))
        out.square().sum().backward()
        counted = sum(layer.weight.grad.numel() for layer in layers)
        for layer in layers:
            layer.weight.grad = None
        return counted, q.numel(), weights.numel()

    parameters, queries, scores = (
        long / short for long, short in zip(sizes(16), sizes(8), strict=True)
    )
    words = {"twice": 2, "four times": 4}
    texts["a"].read("as many as before")
    b, tokens = texts["b"].read("{code} as many: there are {code} as many tokens")
    c, shape, entries = texts["c"].read(
        "{code} as many: a {shape} matrix has {code} as many entries"
    )
    assert words[tokens] == queries and words[entries] == scores and shape == ("T", "T")
    texts["why b"].find("There are twice as many queries, keys and values.")
    texts["why c"].find("The matrix of scores has four times as many entries, but")
    texts["why c"].find("and T does not occur in their shapes.")
    return {
        "a": parameters == 1,
        "b": parameters == words[b],
        "c": parameters == words[c],
    }


@proves("04.p3", "889b29")
def matrices_swapped(texts):
    first, second = texts["question"].read(
        "Someone swaps {code} and {code} in a trained head. What happens to the scores?"
    )
    x, W_query, W_key = torch.randn(2, 5, 6), torch.randn(6, 3), torch.randn(6, 3)

    def scores(W_query, W_key):
        return (x @ W_query) @ (x @ W_key).mT

    assert {first, second} == {"W_query", "W_key"}
    before, after = scores(W_query, W_key), scores(W_key, W_query)

    def same(a, b):
        return torch.allclose(a, b, atol=1e-4)

    texts["a"].read("nothing: the dot product does not depend on the order of its two vectors")
    texts["why a"].find("It is true that a·b = b·a.")
    assert same(x[0, 0] @ x[0, 1], x[0, 1] @ x[0, 0])
    for letter in "ab":
        old, new = texts[f"why {letter}"].find(
            "entry [{code}] was q_i·k_j and is now k_i·q_j, which was entry [{code}]."
            if letter == "a"
            else "Entry [{code}] was q_i·k_j and is now k_i·q_j, which was entry [{code}]."
        )
        now = run(f"scores[0, {old}]", scores=after, i=1, j=3)
        assert same(now, run(f"scores[0, {new}]", scores=before, i=1, j=3))
    shape = texts["b"].read("each {shape} matrix of scores is transposed")
    assert shape == ("T", "T")
    factor = texts["c"].read("they are multiplied by {}")
    texts["why c"].find("because a·b = b·a. Write out one entry: q_i·k_j becomes k_i·q_j.")
    return {
        "a": same(after, before),
        "b": same(after, before.mT),
        "c": same(after, factor * before),
    }


@proves("04.1", "7bd299")
def score(texts):
    query, d = texts["2"].read(
        "{code} is the query, a vector with {code} channels. "
        "The key of token j is computed in the same way, with W_key."
    )
    product = texts["3"].read("The score is the dot product of the two: {code}.")

    def score(x, W_query, W_key, i, j):
        key = query.replace("W_query", "W_key").replace("[i]", "[j]")
        names = {"x": x, "W_query": W_query, "W_key": W_key, "i": i, "j": j}
        assert d == "d" and run(query, **names).shape == W_query.shape[1:]
        return run(product, query=run(query, **names), key=run(key, **names))

    return score


@proves("04.2", "795610")
def plain_matrix(texts):
    weight = texts["1"].read(
        "Print the shape of {code}, and compare it with the shape that you need."
    )
    call, product = texts["2"].read("{code} computes {code}.")
    layer, x = nn.Linear(5, 3, bias=False), torch.randn(4, 5)
    assert torch.allclose(run(call, layer=layer, x=x), run(product, layer=layer, x=x), atol=1e-6)
    assert run(weight, layer=layer).shape == (3, 5)
    return lambda layer: run(product.removeprefix("x @ "), layer=layer)


@proves("04.3", "7e967a")
def head(texts):
    texts["1"].read(
        "Follow the boxes of the diagram: q, k and v; scores; the division; the mask; the softmax; "
        "the weighted average of the values."
    )
    product, shape, divisor = texts["2"].read(
        "{code} is {shape}. Divide it by {code}, the square root of head_size."
    )
    q, k = torch.randn(2, 5, 9), torch.randn(2, 5, 9)
    assert run(product, q=q, k=k).shape == (2, 5, 5) and shape == ("B", "T", "T")
    assert run(divisor, q=q) == 9**0.5
    infinity, mask, axis, average = texts["3"].read(
        "Fill the future with {code}, using {code}. Then softmax with {code}, and {code}."
    )

    def head(x, W_query, W_key, W_value):
        q, k, v = x @ W_query, x @ W_key, x @ W_value
        scores = run(product, q=q, k=k) / run(divisor, q=q)
        masked = scores.masked_fill(~run(mask, T=x.shape[1]), run(infinity))
        return run(average, weights=run(f"masked.softmax({axis})", masked=masked), v=v)

    return head
