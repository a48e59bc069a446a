"""The exercises of notebook 00: reading tensors."""

import random
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

import torch

from attention_base.numbers import described
from attention_clinic.probes import rows_sum_to_one
from feedback.grading import Exercise
from lesson.exercises.properties import ROWS_SUM_TO_ONE


def _positive(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(sum(shape))) + 0.1


# ---------------------------------------------------------------- 00.2


def normalise_rows(a):
    """(..., R, S), int or float >= 0, no row all 0 -> float32, same shape: each row / its sum."""
    return a / a.sum(dim=-1, keepdim=True)


def _normalise_unsqueeze(a):
    return a / a.sum(-1)[..., None]


def _by_matrix(a):
    return a / a.sum(dim=(-2, -1), keepdim=True)


def _unit(a):
    return a / (a**2).sum(dim=-1, keepdim=True).sqrt()


def _by_others(a):
    return a / (a.sum(dim=-1, keepdim=True) - a)


def _by_first(a):
    return a / a.flatten(1).sum(dim=-1).reshape(-1, *[1] * (a.dim() - 1))


NORMALISE_ROWS = Exercise(
    "00.2",
    normalise_rows,
    named=("`a` with 4 axes",),
    axes={"a": "... R S", "return": "... R S"},
    intermediates=(
        ("the sums of the rows", lambda a: a.sum(dim=-1)),
        ("the sums of the rows, as a column", lambda a: a.sum(dim=-1, keepdim=True)),
        ("`a` with each matrix divided by the sum of all its numbers", _by_matrix),
        ("`a` with each row divided by the square root of its sum of squares", _unit),
        ("`a` with each entry divided by the sum of the others in its row", _by_others),
        ("`a` with each entry of the first axis divided by its whole sum", _by_first),
    ),
    cases=lambda: [
        (_positive(4, 4),),
        (_positive(2, 3, 5),),
        (_positive(3, 3, 3),),
        (torch.tensor([[0, 1, 1, 0], [2, 1, 0, 1], [0, 0, 3, 0]]),),
    ],
    accepted=(_normalise_unsqueeze,),
    properties=(
        ROWS_SUM_TO_ONE,
        ("columns sum to 1", lambda out, a: rows_sum_to_one(out.mT).ok),
    ),
)


# ---------------------------------------------------------------- 00.count


def count(text):
    """Text -> {letter: {next letter: how often it came next}}."""
    counts = {}
    for letter, next_letter in pairwise(text):
        after = counts.setdefault(letter, {})
        after[next_letter] = after.get(next_letter, 0) + 1
    return counts


def by_the_letter_before(text):
    return count(text[::-1])


def single_letters(text):
    return dict(Counter(text))


def pairs_as_keys(text):
    return dict(Counter(pairwise(text)))


def lists_of_letters(text):
    followers = {}
    for letter, next_letter in pairwise(text):
        followers.setdefault(letter, []).append(next_letter)
    return followers


def every_second_pair(text):
    counts = {}
    for i in range(0, len(text) - 1, 2):
        after = counts.setdefault(text[i], {})
        after[text[i + 1]] = after.get(text[i + 1], 0) + 1
    return counts


def from_the_end_to_the_beginning(text):
    return count(text[-1:] + text)


def words(text):
    return count(text.split())


def at_the_first_place(text):
    return {letter: {text[text.index(letter) + 1]: text.count(letter)} for letter in text[:-1]}


def one_dict_for_all(text):
    followers = Counter(text[1:])
    return {letter: followers for letter in text[:-1]}


def pairs_that_do_not_overlap(text):
    return {a: {b: text.count(a + b) for b in text if a + b in text} for a in text}


def word_by_word(text):
    pairs = Counter(pair for word in text.split() for pair in pairwise(word))
    return {a: {b: n for (c, b), n in pairs.items() if a == c} for a, _ in pairs}


def one_step_too_far(text):
    return {text[i]: {text[i + 1]: 1} for i in range(len(text))}


def returns_in_the_loop(text):
    return count(text[:2])


def _table(counts, text):
    """Effect: how often each pair of the text's letters was counted, and what is wrong."""
    if not isinstance(counts, Mapping):
        raise ValueError(f"Expected a dict of dicts, got {described(counts)}.")
    for letter, after in counts.items():
        if not isinstance(after, Mapping):
            raise ValueError(
                f"counts[{letter!r}] must be a dict, such as {{'a': 2}}, and is {described(after)}."
            )
    counts = {letter: after for letter, after in counts.items() if after}
    right, letters = count(text), sorted({*text})
    table = [[counts.get(a, {}).get(b, 0) for b in letters] for a in letters]
    strange = [key for key in counts if key not in right]
    effect = torch.tensor([len(counts), len(strange), *(n for row in table for n in row)])
    for letter in [*dict.fromkeys(text), *strange]:
        mine, wanted = (dict(one.get(letter, {})) for one in (counts, right))
        if mine != wanted:
            told = f"In the text {text!r}, the right counts for {letter!r} are {wanted}"
            return effect, f"{told}, and yours are {mine}."
    return effect, ""


COUNT = Exercise(
    "00.count",
    count,
    lambda: [("the cat ate the tart",), ("Aaaa bb\nBa",), ("a",), ("",)],
    effect=_table,
)


# ---------------------------------------------------------------- 00.write


def write(guess, start, n):
    """Append n letters to the text start; guess(text) gives {letter: how often it came next}."""
    text = start
    for _ in range(n):
        counts = guess(text)
        text += random.choices(list(counts), list(counts.values()))[0]
    return text


def all_from_one_guess(guess, start, n):
    counts = guess(start)
    return start + "".join(random.choices(list(counts), list(counts.values()), k=n))


def guess_not_asked(guess, start, n):
    return start + "a" * n


def by_softmax(guess, start, n):
    for _ in range(n):
        counts = guess(start)
        weights = torch.softmax(torch.tensor([*counts.values()], dtype=torch.float32), dim=0)
        start += random.choices(list(counts), weights.tolist())[0]
    return start


class Guess:
    """Answers as a model does: what came next after texts that end alike."""

    def __init__(self, **follows):
        self.follows, self.read = follows, []

    def __repr__(self):
        return "guess"

    def __call__(self, text):
        """{letter: how often it came next}."""
        if len(self.read) > 3000:
            raise RuntimeError("guess has been called 3,000 times. Does the loop end?")
        if not isinstance(text, str):
            raise TypeError(f"guess takes the text so far, got {described(text)}.")
        self.read.append(text)
        return self.follows.get(text[-1:], self.follows.get("any", {"?": 1}))


def _written(answer, guess, start, n):
    """Let an answer write, with Python's random numbers from a seed."""
    before = random.getstate()
    random.seed(0)
    try:
        text = answer(guess, start, n)
    finally:
        random.setstate(before)
    return text if text is None else (text, guess.read)


def _of_text(written, guess, start, n):
    """Effect: the text, what guess has read, and how often each letter was drawn."""
    text, read = written
    if not isinstance(text, str):
        raise ValueError(f"Expected a text, got {described(text)}.")
    new, told = text.removeprefix(start), f"write(guess, {start!r}, {n}) gave {text[:30]!r}"
    read = list(dict.fromkeys(read))
    if "any" in guess.follows:
        wanted = guess.follows["any"]
        shares = {letter: new.count(letter) / max(1, len(new)) for letter in wanted}
        right = {letter: share / sum(wanted.values()) for letter, share in wanted.items()}
        effect = torch.tensor([len(new) - n, *(share / 5 for share in shares.values())])
        if any(abs(shares[letter] - right[letter]) > 0.05 for letter in wanted):
            percents = [
                ", ".join(f"{letter!r} {share:.0%}" for letter, share in one.items())
                for one in (shares, right)
            ]
            return effect, f"The letters were drawn as {percents[0]}; guess says {percents[1]}."
        return effect, ""
    codes = [*map(ord, text[:12]), *[0] * 12][:12]
    asked = [code for one in read[:6] for code in (len(one), *map(ord, one[-1:]))]
    effect = torch.tensor([len(text), len(read), *codes, *[*asked, *[0] * 12][:12]])
    if not read and n:
        return effect, "guess was never called, so what is written cannot depend on it."
    for i, asked_for in enumerate(read[:n]):
        if asked_for != start + new[:i] and text.startswith(start):
            so_far = start + new[:i]
            return effect, f"The text so far was {so_far!r}, and guess was given {asked_for!r}."
    if not text.startswith(start):
        return effect, f"{told}, which does not begin with {start!r}."
    if len(new) != n:
        return effect, f"{told}, which has {len(new)} new letters, not {n}."
    right = write(Guess(**guess.follows), start, n)
    return effect, "" if text == right else f"{told}; expected {right!r}."


WRITE = Exercise(
    "00.write",
    write,
    lambda: [
        (Guess(a={"b": 3}, b={"c": 1}, c={"a": 2}), "xya", 5),
        (Guess(a={"b": 1}), "a", 0),
        (Guess(any={"b": 3, "c": 1, "a": 6}), "q", 2000),
    ],
    used=_written,
    effect=_of_text,
)


EXERCISES = (NORMALISE_ROWS, COUNT, WRITE)
