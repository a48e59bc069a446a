"""Notebook 11: heads whose scores are written by hand."""

import torch

from helpers.circuits import RULES, certificate, one_hot_tokens, score_from_blocks, written_weights
from tests.lesson.proofs import proves, run, written

LETTERS, T = "abcdef-", 12
V = len(LETTERS)


@proves("11.p1")
def two_separators(texts):
    _, high, *_ = texts["question"].gives()
    separator = torch.zeros(T, V)
    separator[:, LETTERS.index("-")] = high
    M = score_from_blocks(LETTERS, T, {("position", "letter"): separator})
    word = "a-bc-d"
    x = one_hot_tokens(word, LETTERS, T)
    row, scores = written_weights(x, M)[-1], 20 * (x @ M @ x.mT)[-1]
    first, last = word.index("-"), word.rindex("-")
    texts["why a"].says("M", (x @ M @ x.mT)[-1, first])
    texts["why c"].says(2, word.count("-"), row[first])
    texts["why d"].says(scores[first] - scores[0])
    return {
        "the first": row[first] > 0.9,
        "the last": row[last] > 0.9,
        "both": torch.equal(row[[first, last]], torch.full((2,), 0.5)),
        "all letters": row.min() > 0.01,
    }


@proves("11.p2")
def what_one_head_cannot_do(texts):
    for choice in "ab":
        texts[choice].says("head_size")
    texts["why b"].says("W_query", "W_key", "M", "M")
    texts["why d"].says(2, 2, "M")
    impossible = certificate("induction", "abdca", "dbaca") is not None  # of any M, however sharp
    choices = ("number of letters", "as the tokens have channels", "as sharp", "no head")
    return dict.fromkeys(choices[:3], not impossible) | {choices[3]: impossible}


@proves("11.p3")
def one_number_for_a_position(texts):
    n = texts["question"].says("head_size", 1, 2, ...)
    texts["a"].says(n)
    texts["why a"].says(n, n)
    (two,) = texts["b"].gives()
    texts["why b"].says(two)
    *keys, _ = texts["why c"].gives()
    growing = texts["d"].gives()
    texts["why d"].says(growing.index(min(growing)))
    assert keys == [(-1) ** (j + 1) * j for j in range(len(keys))]

    def found(keys):
        """Whether a sign of the query makes the key before it the largest that it sees."""
        return all(
            max(keys[: t + 1], key=lambda k: sign * k) == keys[t - 1]
            for t, sign in enumerate([(-1) ** t for t in range(len(keys))])
            if t
        )

    far = found([(-1) ** (j + 1) * j for j in range(n)])
    return {"a": not far, "b": not far, "swing": far, "grow": found(list(range(n)))}


# ---------------------------------------------------------------- hints


def by_hint(pairs, *lines):
    """The answer that puts these blocks together: {pair: code}, after some lines."""
    blocks = ", ".join(f"{pair!r}: {code}" for pair, code in pairs.items())
    layer = 1 if any("copied" in part for pair in pairs for part in pair) else 0
    result = f"score_from_blocks(letters, T, {{{blocks}}}, layer={layer})"
    steps = ["V = len(letters)", *lines]
    return written("letters, T", *steps, result, score_from_blocks=score_from_blocks)


def named(text):
    """The two parts of a block, such as "letter × letter"."""
    return tuple(text.lower().split(" × "))


@proves("11.1")
def one_back(texts):
    texts["2"].says("t - 1")
    before = texts["3"].says(..., ("T", "T"))
    block = run(before, T=T)
    assert block.shape == (T, T) and all(block[t, t - 1] == 1 for t in range(1, T))
    return by_hint({("position", "position"): before})


@proves("11.2")
def earlier_same(texts):
    texts["1"].says(3)
    letters, positions = map(named, texts["2"].gives())
    same, first, itself, second, high, own, _ = texts["3"].gives()
    assert (named(first), named(second)) == (letters, positions)
    assert run(same, V=V)[0, 0] == high and high + run(itself, T=T)[0, 0] == own
    return by_hint({letters: same, positions: itself})


@proves("11.3")
def last_separator(texts):
    texts["2"].says(1)
    column, high, later = texts["4"].gives()
    lines = "separator = torch.zeros(T, V)", f"{column} = {high}"
    pairs = {("position", "letter"): "separator", ("letter", "position"): f"{later}.float()"}
    return by_hint(pairs, *lines)


@proves("11.4")
def what_followed(texts):
    texts["1"].says(2)
    texts["2"].says(11.2)
    texts["3"].says(0, 0)
    same, itself, less, column = texts["4"].gives()
    x = RULES["induction"].tokens("ab", "ab", 2)
    assert torch.equal(x[0, 4:6], x[0, :2])  # position 0 has copied its own letter
    lines = f"block = {itself}", f"block[:, {column}] -= {less}"
    pairs = {("letter", "copied letter"): same, ("position", "position"): "block"}
    return by_hint(pairs, *lines)


@proves("11.5")
def first_token(texts):
    size, column = texts["2"].says(..., ...)
    lines = f"block = torch.zeros({', '.join(size)})", f"block[:, {column}] = 1"
    return by_hint({("position", "position"): "block"}, *lines)


@proves("11.6")
def same_letter(texts):
    return by_hint({("letter", "letter"): texts["2"].says(...)})


@proves("11.7")
def consonants(texts):
    texts["1"].says(11.2)
    one, other, product = texts["2"].says(..., ..., ...)
    lines = [
        f"{name} = torch.tensor([float(l in {kind!r}) * {one} for l in letters]) + {other}"
        for name, kind in (("vowel", "ae"), ("consonant", "bcdf"))
    ]
    twice, first, itself, second = texts["3"].gives()
    assert product in twice
    return by_hint({named(first): twice, named(second): itself}, *lines)


@proves("11.8")
def largest_letter(texts):
    code, low, high = texts["2"].says(..., ..., ...)
    order = run(code, sorted=sorted, letters=LETTERS)
    assert (order.index("-"), order.index("a")) == (low, high)
    row, block = texts["3"].gives()
    return by_hint({("letter", "letter"): block}, f"row = {row}")


@proves("11.9")
def start_and_a(texts):
    block, one, other = texts["2"].gives()
    wanted = f"[{other} if l in 'bc' else {one} for l in letters]"  # the letters are “^abc”
    return by_hint({named(block): f"torch.tensor({wanted}).expand(V, V)"})


@proves("11.10")
def matching_bracket(texts):
    texts["1"].says(11.3)
    (block,) = texts["2"].gives()
    most, later = texts["3"].gives()
    lines = ["pairs = torch.zeros(V, V)"]
    for opening, closing in ("()", "[]", "{}"):
        lines.append(f"pairs[letters.index({closing!r}), letters.index({opening!r})] = {most}")
    pairs = {named(block): "pairs", ("letter", "position"): f"{later}.float()"}
    return by_hint(pairs, *lines)


@proves("11.11")
def my_word(texts):
    texts["1"].says(0)
    return by_hint({("copied position", "copied position"): texts["2"].says(...)})


@proves("11.12")
def count_so_far(texts):
    *sums, first, second, third = texts["2"].gives()
    assert sums == [n * n for n in (1, 2, 3)]
    values = texts["3"].says(...)
    assert run(values, T=3).flatten().tolist() == [first, second, third]
    return written("T", values)
