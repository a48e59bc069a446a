"""Notebook 05: scaling."""

import math
import re

import torch
from torch import nn

from tests.proofs import proves, rounds_to, run, run_cells


def near(value, said, share=0.1):
    return abs(value / said - 1) < share


@proves("05.p1", "237d9a")
def variance_of_raw_scores(texts):
    variance, C, d, entries = texts["question"].read(
        "The tokens x have variance {}. The query layer and the key layer are nn.Linear({}, {}) "
        "with PyTorch's default initialisation, so the entries of their matrices have variance "
        "{code}. What variance do the raw scores have?"
    )
    torch.manual_seed(0)
    layers = [nn.Linear(C, d, bias=False) for _ in range(400)]
    with torch.no_grad():
        x = torch.randn(200, 64, C) * variance**0.5
        q, k = (
            torch.stack([f(z) for f, z in zip(half, x, strict=True)])
            for half in (layers[::2], layers[1::2])
        )
        measured = (q @ k.mT).var().item()
        q_variance = q.var().item()
    weights = torch.stack([layer.weight for layer in layers])

    def value(code):
        return run(code.replace("·", "*").replace("⅓", "(1 / 3)"))

    assert near(weights.var().item(), value(entries), 0.02)
    a = texts["a"].read("about {}")
    assert a == d * variance  # right for queries and keys of variance 1, as it says
    texts["why a"].find("That would be right for queries and keys of variance 1.")
    third = {}
    for letter in "ac":
        products, of, third[letter] = texts[f"why {letter}"].find(
            "A channel of q adds up {} products of variance {code}, so q has variance {code}"
            + (" only" if letter == "a" else ", and")
        )
        assert products == C and near(products * value(of), q_variance, 0.02)
        assert near(value(third[letter]), q_variance, 0.02)
    b = texts["b"].read("about {}")
    divisor, of, own = texts["why b"].find(
        "The division by {code} would give this, if queries and keys had variance {}. "
        "These have {code},"
    )
    assert run(divisor.replace("√", "") + " ** 0.5") == d**0.5 and d * of / d == b
    assert value(own) == value(third["a"])
    c = texts["c"].read("about {}")
    products, of, result, rounded = texts["why c"].find(
        "A score adds up {} products of variance {code}, and {code} is {}."
    )
    assert near(products * value(of), value(result), 1e-6) and products == d
    assert rounds_to(value(result), rounded)
    e = texts["d"].read("about {}")
    products, of, own, score = texts["why d"].find(
        "{} products of variance {code} give {code}. A score adds up {} products of q and k."
    )
    assert (products, score) == (C, d) and near(C * value(of), value(own), 1e-6)
    assert rounds_to(value(own), e, 1) and near(e, q_variance, 0.15)
    return {letter: near(measured, said) for letter, said in zip("abcd", (a, b, c, e), strict=True)}


@proves("05.p2", "1c359d")
def scores_times_9(texts):
    scores, largest, factor = texts["question"].read(
        "The softmax of {numbers} has a largest weight of {}. Now all five scores are multiplied "
        "by {}. What happens to the largest weight?"
    )

    def largest_weight(factor):
        exponentials = [math.exp(factor * score) for score in scores]
        return max(exponentials) / sum(exponentials)

    assert rounds_to(largest_weight(1), largest) and len(scores) == 5
    a = texts["a"].read("it stays {}, because softmax normalises the row")
    total, shared, larger = texts["why a"].find(
        "Softmax makes each row sum to {}. How evenly the {} is shared out depends on the "
        "differences between scores, and these are now {} times as large."
    )
    assert total == shared == 1 and larger == factor and a == largest
    b = texts["b"].read("it grows to about {}")
    before, after, old, old_ratio, new, new_ratio = texts["why b"].read(
        "The two largest scores differed by {} and now differ by {}. So the largest weight was e "
        "to the power of {} = {} times the next one, and now it is e to the power of {} = {} times "
        "the next one."
    )
    second, first = sorted(scores)[-2:]
    assert math.isclose(first - second, before) and math.isclose(factor * before, after)
    assert (old, new) == (before, after)
    assert rounds_to(math.exp(old), old_ratio, 1) and rounds_to(math.exp(new), new_ratio, 1)
    c = texts["c"].read("it falls to about {}: all five weights become nearly equal")
    divisor, again = texts["why c"].read(
        "That happens when the scores are divided by {}, because then their differences shrink. "
        "Multiplied by {}, the differences grow."
    )
    assert divisor == again == factor and rounds_to(largest_weight(1 / divisor), c)
    return {
        letter: rounds_to(largest_weight(factor), said)
        for letter, said in zip("abc", (a, b, c), strict=True)
    }


@proves("05.p3", "5a8a10")
def division_forgotten(texts):
    layer, root = texts["question"].find(
        "to divide the scores of our head of {code} layers by {code}, and trains it"
    )
    cells = ("def letters_and_pattern", "def weights_of", "def descend")
    here = run_cells("05", "import torch", *cells)
    here["letters"], here["pattern"] = here["letters"][:50], here["pattern"][:50]  # saves seconds
    C, d = (int(size) for size in re.findall(r"\d+", layer))
    assert root == f"√{d}" and layer == f"nn.Linear({C}, {d})"
    torch.manual_seed(0)
    tokens = here["letters"] @ torch.randn(26, C)
    W_q, W_k = (nn.Linear(C, d).weight.detach().T.requires_grad_() for _ in range(2))
    loss = here["descend"](tokens, W_q, W_k, divisor=1, learning_rate=3.75)[-1]
    zero = torch.zeros(26, 1)
    guessing = here["loss_of"](here["letters"], here["pattern"], zero, zero, 1).item()
    texts["a"].read("an error, or nan")
    texts["b"].read("a head that does not learn, like the one at the beginning")
    variance, channels, scores = texts["why b"].find(
        "That head had queries and keys of variance {} and {} channels: scores of variance {}."
    )
    assert channels == 256 and scores == variance * channels
    batch = run_cells("05", "import torch", "def draw_batch")
    x, (to_key, to_query, _), *_ = batch["draw_batch"](1337)
    with torch.no_grad():
        raw = to_query(x) @ to_key(x).mT
    for letter, pattern in (
        ("b", "so the scores have variance {} even without the division"),
        ("c", "The scores have variance {} at initialisation"),
    ):
        assert rounds_to(raw.var(), texts[f"why {letter}"].find(pattern), 1)
    texts["c"].read("nothing unusual")
    by, matrix, divisor, again = texts["why c"].find(
        "Dividing scores by {} is the same as dividing {code} by {}, and training can make {code} "
        "smaller."
    )
    assert by == divisor == d**0.5 and matrix == again == "W_query"
    with torch.no_grad():
        smaller = x @ (to_query.weight / divisor).T @ to_key(x).mT
    assert torch.allclose(smaller, raw / by, atol=1e-5)
    learns = loss < 0.2 * guessing
    return {"a": math.isnan(loss), "b": not learns, "c": learns}


@proves("05.1", "56e93c")
def score_variance(texts):
    one, left, right = texts["1"].read(
        "{code} matrix product gives all scores of a batch: {shape} times {shape}."
    )
    assert one == "One" and left == ("B", "T", "d") and right == ("B", "d", "T")
    root, axis = texts["2"].read(
        "If scaled is true, divide the scores by {code} before you measure. "
        "d is the {code} axis of q."
    )
    assert root == "√d" and axis == "last"
    measured = texts["3"].read("{code} without dim is the variance of all scores together.")

    def score_variance(q, k, scaled):
        scores = q @ k.mT
        return run(measured, scores=scores / q.shape[-1] ** 0.5 if scaled else scores)

    return score_variance


@proves("05.2", "017c54")
def scaled_weights(texts):
    question = texts["1"].read(
        "A score is one dot product. How many products does it add up: {code}, {code} or {code} "
        "of them?"
    )
    size = texts["2"].read("The number of channels of a query is {code}.")
    assert run(size, q=torch.zeros(2, 3, 5)) == 5 and question == ("B", "T", "d")
    root = texts["3"].read(
        "Divide the scores by {code}, then mask the future, then take the softmax of each row."
    )

    def scaled_weights(q, k):
        scores = q @ k.mT / run(root, d=run(size, q=q))
        T = q.shape[1]
        return scores.masked_fill(torch.ones(T, T).triu(1) == 1, float("-inf")).softmax(dim=-1)

    return scaled_weights


@proves("05.3", "6c90dc")
def soften(texts):
    root = texts["1"].read(
        "{code} was a divisor that the shapes decide. Here the divisor is an argument."
    )
    assert root == "√d"
    return lambda scores, temperature: (scores / temperature).softmax(dim=-1)
