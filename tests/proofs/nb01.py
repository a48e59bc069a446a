"""Notebook 01: the causal mean, by loops."""

import torch

from tests.proofs import proves, run


def causal_mean(x):
    """(T, …) -> (T, …), with exact arithmetic in mind: 64-bit floats."""
    return torch.stack([x[: t + 1].double().mean(dim=0) for t in range(len(x))])


@proves("01.p1", "89ac57")
def output_3(texts):
    tokens, last, t = texts["question"].read(
        "A sequence has the tokens {numbers}, with one channel. "
        "Output t is the mean of tokens 0 to {code}. What is output {}?"
    )
    assert last == "t"
    means = causal_mean(torch.tensor(tokens)).tolist()

    def mean_of(letter, pattern="{}, the mean of {numbers}"):
        said, of = texts[letter].read(pattern)
        assert of == tokens[: len(of)]
        return said, of

    a, a_of = mean_of("a")
    assert a == sum(a_of) / len(a_of)
    left_out, t_said, first, last, included = texts["why a"].read(
        "This leaves token {} out. Output {} may use tokens {} to {}, and token {} is one of them."
    )
    assert left_out == t_said == last == included == t == len(a_of) and first == 0

    b, b_of = mean_of("b")
    t_said, four, total, top, below, mean = texts["why b"].read(
        "Token {} and everything before it: {word} numbers with the sum {}, and {} / {} = {}."
    )
    assert (t_said, four) == (t, len(b_of)) == (t, below)
    assert total == top == sum(b_of) and mean == top / below == b

    c, count = texts["c"].read("{}, the mean of all {word}")
    assert c == sum(tokens) / len(tokens) and count == len(tokens)
    later, t_said, right_for = texts["why c"].read(
        "This includes token {}, which comes after token {}. It is the right value for output {}."
    )
    assert later > t_said == t and later == right_for and means[right_for] == c

    d, d_of = mean_of("d", "{}, the sum of {numbers}")
    assert d == sum(d_of)
    assert texts["why d"].read(
        "Divide the sum by the number of tokens, {}, to get the mean."
    ) == len(d_of)
    return {letter: said == means[t] for letter, said in zip("abcd", (a, b, c, d), strict=True)}


def moved(T, change):
    """The outputs that move when the tokens change."""
    x = torch.randn(T, generator=torch.Generator().manual_seed(0))
    moves = (causal_mean(change(x)) - causal_mean(x)).abs()
    return [t for t in range(T) if moves[t] > 1e-9], moves


def _plus_1(place):
    def change(x):
        x = x.clone()
        x[place] += 1
        return x

    return change


@proves("01.p2", "c18eef")
def a_token_is_replaced(texts):
    s, T = texts["question"].read(
        "Token {} of a sequence of {} is replaced by something else. "
        "Which outputs of the causal mean change?"
    )
    right, _ = moved(T, _plus_1(s))
    a = texts["a"].read("only output {}")
    also = texts["why a"].read(
        "Output {} changes, and so do outputs {numbers}: they average over token {} as well."
    )
    assert [also[0], *also[1]] == right and also[2] == s == a
    b = texts["b"].read("outputs {numbers}")
    token, used_by, unmoved = texts["why b"].read(
        "Output t averages tokens 0 to t, so token {} is in outputs {numbers}. "
        "Outputs 0 to {} do not use it."
    )
    assert token == s and used_by == right and unmoved == s - 1
    c = texts["c"].read("outputs {numbers}")
    own = texts["why c"].read("Output {} changes too, because a token is part of its own mean.")
    assert [own, *c] == right
    first, last = texts["d"].read("outputs {} to {}")
    output, token = texts["why d"].read(
        "These are the positions that output {} is computed *from*. "
        "The question is which outputs are computed from token {}."
    )
    assert (first, last) == (0, output) and token == s
    return {
        "a": [a] == right,
        "b": b == right,
        "c": c == right,
        "d": list(range(first, last + 1)) == right,
    }


@proves("01.p3", "e3cd1a")
def token_0_is_replaced(texts):
    s = texts["question"].read("Now token {} is replaced instead. Which outputs change?")
    right, moves = moved(8, _plus_1(s))
    a = texts["a"].read("only output {}")
    first, token = texts["why a"].read(
        "Output {} changes. But every other output averages over token {} as well."
    )
    assert first == a in right and token == s
    same = texts["b"].read("all {} outputs, by the same amount")
    extra, token = texts["why b"].find("Output t is a mean of t + {} tokens, and token {} is only")
    less = texts["c"].read("all {} outputs, later ones less")
    token, share, output, half, second, eighth, last = texts["why c"].read(
        "Token {} is in every output. Its share is {} in output {}, {word} in output {}, "
        "and {word} in output {}."
    )
    assert token == s
    for said, t in ((share, output), (half, second), (eighth, last)):
        assert abs(moves[t] - said) < 1e-9 and abs(said - 1 / (t + extra)) < 1e-9
    assert same == less == 8
    everywhere = right == list(range(8))
    return {
        "a": [a] == right,
        "b": everywhere and bool((moves.diff().abs() < 1e-9).all()),
        "c": everywhere and bool((moves.diff() < 0).all()),
    }


@proves("01.p4", "4d4f9e")
def two_tokens_change_places(texts):
    i, j = texts["question"].read(
        "Tokens {} and {} change places. Which outputs of the causal mean change?"
    )

    def swap(x):
        x = x.clone()
        x[[i, j]] = x[[j, i]]
        return x

    right, _ = moved(8, swap)
    texts["a"].read("all of them: the order is different")
    assert [texts["why a"].find("Output {} changes.")] == right
    b = texts["b"].read("only output {}")
    output, token = texts["why b"].find("Output {} contains token {} alone")
    assert [output] == right and token == min(i, j) == output
    c = texts["c"].read("outputs {numbers}")
    output, same, first, second, one, other = texts["why c"].read(
        "Output {} changes. Output {} is the mean of tokens {} and {}, "
        "and {code} is the same as {code}."
    )
    assert output in right and same not in right and [first, second] == [i, j] == c == [0, same]
    assert run(one, a=3, b=8) == run(other, a=3, b=8) and one != other
    texts["d"].read("none of them")
    first, output = texts["why d"].read(
        "This holds from output {} on. "
        "Output {} contains only one of the two tokens, so it changes."
    )
    assert first not in right and [output] == right == [first - 1]
    return {"a": right == list(range(8)), "b": right == [b], "c": right == c, "d": not right}


X = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(0))  # (B, T, C)


def means(x):
    return torch.stack([causal_mean(one) for one in x]).float()


@proves("01.1", "541007")
def the_loop(texts):
    place = texts["1"].read(
        "Write two loops, one over the sequences and one over the positions. "
        "Which tokens does output {code} need?"
    )
    part, shape, first, last = texts["2"].read(
        "{code} is a slice of shape {shape} that holds tokens {} to {code}."
    )
    t = 3
    piece = run(part, x=X, b=1, t=t)
    assert shape == ("t + 1", "C") and piece.shape == (t + 1, X.shape[2])
    assert last == "t" and torch.equal(piece[[0, -1]], X[1, [first, t]])
    axis, into = texts["3"].read("Average that slice over its {code} axis, and store it in {code}.")
    assert axis == "first" and into == "out" + place

    def causal_mean(x):
        B, T, _ = x.shape
        out = torch.zeros_like(x)
        for b in range(B):
            for t in range(T):
                exec(f"{into} = {part}.mean(dim=0)", {"out": out, "x": x, "b": b, "t": t})
        return out

    return causal_mean


@proves("01.2", "76c8c3")
def one_loop(texts):
    texts["1"].read("A slice with : in the first place takes all sequences at once.")
    assert torch.equal(X[:, 2], torch.stack([x[2] for x in X]))
    part, shape, left = texts["2"].read(
        "{code} has the shape {shape}. Which axis must disappear to leave {shape}?"
    )
    piece, into = run(part, x=X, t=3), texts["3"].find("Assign to {code}, which")
    assert shape == ("B", "t + 1", "C") and piece.shape == (3, 3 + 1, 2)
    assert left == ("B", "C") == texts["3"].find("has the shape {shape}.")
    assert run(into, out=X, t=3).shape == (3, 2)

    def causal_mean_one_loop(x):
        out = torch.zeros_like(x)
        for t in range(x.shape[1]):
            code = f"{into} = {part}.mean(dim={shape.index('t + 1')})"
            exec(code, {"out": out, "x": x, "t": t})
        return out

    return causal_mean_one_loop


@proves("01.3", "b591ba")
def running_sums(texts):
    before, after = texts["1"].read(
        "The sum for t is the sum for {code} plus {code} more token. "
        "Tensors have a method for running sums."
    )
    assert (before, after) == ("t - 1", "one")
    sums = texts["2"].read("{code} gives all running sums. By how much must output t be divided?")
    assert torch.allclose(run(sums, x=X)[:, 3], X[:, :4].sum(dim=1), atol=1e-6)
    counts, shape = texts["3"].read(
        "{code} has the shape {shape}: one count for each position, the same for all channels."
    )
    assert run(counts, T=5).shape == (5, 1) and shape == ("T", 1)
    assert run(counts, T=5).flatten().tolist() == [1, 2, 3, 4, 5]
    return lambda x: run(f"{sums} / {counts}", x=x, T=x.shape[1])
