"""Rules of who attends to whom, which notebook 11 writes as scores, and how they are checked.

A rule says, for each position of a word, to which positions it attends, to all of them equally.
Most are from Weiss et al. (2021), "Thinking Like Transformers", https://arxiv.org/abs/2106.06981,
and Olsson et al. (2022), "In-context Learning and Induction Heads",
https://arxiv.org/abs/2209.11895.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import permutations, product

import torch
from torch import Tensor

from attention_base.arguments import typed
from attention_base.numbers import joined, wrap_text
from helpers.circuits.by_hand import (
    one_hot_tokens,
    score_from_blocks,
    second_layer_tokens,
    written_weights,
)

N_WORD = 1000
EXACT = 0.01  # how far a weight may lie from the rule's
LETTERS, LONGEST = "abcdef-", 12
VOWELS = "ae"
OPENING, CLOSING = "([{", ")]}"


@dataclass(frozen=True)
class Rule:
    """Who attends to whom, and the words that it is tried on.

    Attributes
    ----------
    name
        Such as "one back".
    attended : word -> list of sets
        For each position, the positions that it attends to, all equally.
    letters
        The letters of its words.
    word
        Makes a random word, from a source, the letters and a length.
    first
        For a rule of two layers: makes the matrix M of the first, from the letters and T.
    """

    name: str
    attended: Callable[[str], list[set[int]]]
    letters: str = LETTERS
    word: Callable[[random.Random, str, int], str] | None = None
    first: Callable[[str, int], Tensor] | None = None

    def weights(self, word: str) -> Tensor:
        """The weights (t, t) that the rule asks for."""
        wanted = torch.zeros(len(word), len(word))
        for t, positions in enumerate(self.attended(word)):
            wanted[t, sorted(positions)] = 1 / len(positions)
        return wanted

    def tokens(self, word: str, letters: str, T: int) -> Tensor:
        """The tokens (t, C) of a word that the head reads: in a second layer, twice as many C."""
        x = one_hot_tokens(word, letters, T)
        if self.first is None:
            return x
        return second_layer_tokens(x, written_weights(x, self.first(letters, T)))

    def found(self, M: Tensor, letters: str = "", T: int = LONGEST) -> Tensor:
        """The weights (1000, T, T) that M gives on random words; 0 after the end of a word.

        Raises
        ------
        TypeError, ValueError
            As for `written_weights`.
        """
        x, inside, _ = examples(self, letters or self.letters, T)
        return written_weights(x, M) * inside

    def first_failure(self, M: Tensor, letters: str = "", T: int = LONGEST) -> str:
        """Say in which of 1,000 random words, and where, M first breaks the rule; "" for never.

        Parameters
        ----------
        M
            (V + T, V + T), from `score_from_blocks`; twice as many for a second layer.
        letters
            The order of the letters in M; as in the rule when left out.
        T
            The most letters of a word.

        Raises
        ------
        TypeError, ValueError
            As for `written_weights`.
        """
        letters = letters or self.letters
        x, inside, wanted = examples(self, letters, T)
        for words in slice(50), slice(N_WORD):  # a wrong M fails early: an explorer has to be fast
            found = written_weights(x[words], M) * inside[words]
            wrong = (found - wanted[words]).abs().amax(dim=-1) > EXACT  # (words, T)
            if wrong.any():
                break
        else:
            return ""
        i, t = wrong.nonzero()[0].tolist()
        word = _words(self, letters, T)[i]
        exact = written_weights(self.tokens(word, letters, T).double(), M)[t]
        digits = ""
        if (exact - wanted[i, t, : len(word)]).abs().max() <= EXACT:
            digits = (
                " In float64 it would be right: float32 has about 7 digits, too few beside a score "
                f"of {M.abs().max():g}."
            )
        row = found[i, t, : t + 1]
        right = self.attended(word)[t]
        wanted = f"In “{word}”, {_at(word, [t])} should attend to {_only(word, t, right)}."
        return f"{wanted}\n{_got(word, row, right)}{digits}"

    def share_right(self, M: Tensor, letters: str = "", T: int = LONGEST) -> float:
        """The share of all rows of the 1,000 words that have the weights of the rule."""
        letters = letters or self.letters
        _, inside, wanted = examples(self, letters, T)
        wrong = (self.found(M, letters, T) - wanted).abs().amax(dim=-1) > EXACT
        return (~wrong)[inside[..., 0] > 0].double().mean().item()


def _at(word: str, positions: list[int]) -> str:
    """Positions with their letters: "position 2 (“a”)", "positions 0 (“b”) and 3 (“-”)"."""
    noun = "position" if len(positions) == 1 else "positions"
    return f"{noun} {joined([f'{t} (“{word[t]}”)' for t in positions])}"


def _only(word: str, t: int, right: set[int]) -> str:
    if right == {t}:
        return "itself"
    if len(right) == 1:
        return _at(word, sorted(right))
    return f"{_at(word, sorted(right))}, equally"


def _got(word: str, row: Tensor, right: set[int]) -> str:
    """Say where the weight of a row is instead, and what that says of its scores."""
    wrong = [j for j in range(len(row)) if j not in right]
    most_wrong = max(wrong, key=lambda j: row[j], default=None)
    least_right = min(right, key=lambda j: row[j])
    if most_wrong is None or row[most_wrong] <= EXACT:
        first, last = sorted(right)[0], sorted(right)[-1]
        return (
            f"It has {row[first]:.2f} on {_at(word, [first])} and {row[last]:.2f} on "
            f"{_at(word, [last])}: equal weights need equal scores."
        )
    got = f"It has {row[most_wrong]:.2f} on {_at(word, [most_wrong])}"
    here = f"{row[least_right]:.2f} on {_at(word, [least_right])}"
    if abs(row[most_wrong] - row[least_right]) < 1e-4:
        return f"{got}, as much as on {_at(word, [least_right])}: their scores are equal."
    if row[most_wrong] > row[least_right]:
        return f"{got} and {here}: the wrong score is the larger one."
    return f"{got} beside {here}: the right score is larger, but not by enough."


# ---------------------------------------------------------------- words


def _any_word(source: random.Random, letters: str, t: int) -> str:
    return "".join(source.choices(letters, k=t))


def _counted(source: random.Random, letters: str, t: int) -> str:
    """A word that begins with “^” and has no other."""
    return "^" + _any_word(source, letters.replace("^", ""), t - 1)


def _words_after_separators(source: random.Random, letters: str, t: int) -> str:
    return "-" + _any_word(source, letters, t - 1)


def _brackets(source: random.Random, letters: str, t: int) -> str:
    """Brackets that match, each pair of the kind of its depth, and “x” between them."""
    word, depth = "", 0
    while len(word) < t:
        choices = ["x"]
        if depth < len(OPENING):
            choices += [OPENING[depth]] * 2
        if depth:
            choices += [CLOSING[depth - 1]] * 2
        word += source.choice(choices)
        depth += (word[-1] in OPENING) - (word[-1] in CLOSING)
    return word


def _repeated(source: random.Random, letters: str, t: int) -> str:
    """Two to six different letters, again and again."""
    period = source.randint(2, min(6, len(letters)))
    return ("".join(source.sample(letters, period)) * t)[:t]


@cache
def _words(rule: Rule, letters: str, T: int) -> list[str]:
    """1,000 random words of 1 to T letters, half of them with T."""
    source = random.Random(11)
    lengths = [T if source.random() < 0.5 else source.randint(1, T) for _ in range(N_WORD)]
    return [(rule.word or _any_word)(source, letters, t) for t in lengths]


@cache
def examples(rule: Rule, letters: str, T: int) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens (1000, T, C), where a word has a row (1000, T, 1), wanted weights (1000, T, T)."""
    words = _words(rule, letters, T)
    C = rule.tokens(words[0], letters, T).shape[1]
    x, inside = torch.zeros(len(words), T, C), torch.zeros(len(words), T, 1)
    wanted = torch.zeros(len(words), T, T)
    for i, word in enumerate(words):
        t = len(word)
        x[i, :t], inside[i, :t] = rule.tokens(word, letters, T), 1
        wanted[i, :t, :t] = rule.weights(word)
    return x, inside, wanted


# ---------------------------------------------------------------- the rules


def _each(positions: Callable[[str, int], set[int]]) -> Callable[[str], list[set[int]]]:
    """A rule of word and position; where it names no position, a token attends to itself."""
    return lambda word: [positions(word, t) or {t} for t in range(len(word))]


def _earlier(t: int, accepts: Callable[[int], bool]) -> set[int]:
    return {j for j in range(t) if accepts(j)}


def _last(positions: set[int]) -> set[int]:
    return {max(positions)} if positions else set()


def _consonants(word: str, t: int) -> set[int]:
    if word[t] not in VOWELS:
        return set()
    return _earlier(t, lambda j: word[j] not in VOWELS and word[j].isalpha())


def _my_word(word: str, t: int) -> set[int]:
    start = word.rfind("-", 0, t + 1)
    return set(range(max(start, 0), t + 1))


def _opening(word: str, t: int) -> set[int]:
    """The bracket that this one closes."""
    depth = 0
    if word[t] not in CLOSING:
        return set()
    for j in range(t, -1, -1):
        depth += (word[j] in CLOSING) - (word[j] in OPENING)
        if depth == 0:
            return {j}
    return set()


def _followers(word: str, t: int) -> set[int]:
    return _earlier(t + 1, lambda j: j > 0 and word[j - 1] == word[t])


def one_back_matrix(letters: str, T: int) -> Tensor:
    """M of the rule "one back"."""
    return score_from_blocks(
        letters, T, {("position", "position"): torch.diag(torch.ones(T - 1), -1)}
    )


def last_separator_matrix(letters: str, T: int) -> Tensor:
    """M of the rule "last separator"."""
    separator = torch.zeros(T, len(letters))
    separator[:, letters.index("-")] = T  # more than any position counts
    later = torch.arange(float(T)).expand(len(letters), T)  # the latest one is the token itself
    blocks = {("position", "letter"): separator, ("letter", "position"): later}
    return score_from_blocks(letters, T, blocks)


_LIST = (
    Rule("everyone", _each(lambda word, t: set(range(t + 1)))),
    Rule("first", _each(lambda word, t: {0})),
    Rule("one back", _each(lambda word, t: {max(t - 1, 0)})),
    Rule("same letter", _each(lambda word, t: _earlier(t + 1, lambda j: word[j] == word[t]))),
    Rule("earlier same letter", _each(lambda word, t: _earlier(t, lambda j: word[j] == word[t]))),
    Rule("consonants", _each(_consonants)),
    Rule(
        "largest letter",
        _each(lambda word, t: _earlier(t + 1, lambda j: word[j] == max(word[: t + 1]))),
    ),
    Rule(
        "last separator",
        _each(lambda word, t: _last(_earlier(t + 1, lambda j: word[j] == "-"))),
    ),
    Rule(
        "start and a",
        _each(lambda word, t: {0} | _earlier(t + 1, lambda j: word[j] == "a")),
        letters="^abc",
        word=_counted,
    ),
    Rule("matching bracket", _each(_opening), letters="([{}])x", word=_brackets),
    Rule("my word", _each(_my_word), word=_words_after_separators, first=last_separator_matrix),
    Rule("induction", _each(_followers), letters="abcdef", word=_repeated, first=one_back_matrix),
)
RULES = {rule.name: rule for rule in _LIST}


# ---------------------------------------------------------------- what one head cannot do


@dataclass(frozen=True)
class Certificate:
    """Two words that no matrix of scores can treat as a rule asks.

    Position t and the two keys i and j are the same tokens in both words, so their two scores are
    the same, whatever M is. But the rule asks for more weight on i in the first word, and for as
    much or more on j in the second.
    """

    first: str
    second: str
    t: int
    i: int
    j: int

    def __str__(self) -> str:
        a, b = self.first, self.second
        return wrap_text(
            f"In “{a}” and “{b}”, {_at(a, [self.t])} is the same query, and "
            f"{_at(a, sorted((self.i, self.j)))} are the same keys: the same two scores. In "
            f"“{a}” the rule gives position {self.i} more weight than {self.j}, in “{b}” it does "
            "not."
        )

    __repr__ = __str__


@typed
def certificate(rule: Rule | str, first: str, second: str) -> Certificate | None:
    """Find the place at which two words prove that no single head follows a rule, or None.

    Raises
    ------
    ValueError
        When there is no such rule, or a word is empty.

    Examples
    --------
    >>> certificate("my word", "a-a", "aaa")
    In “a-a” and “aaa”, position 2 (“a”) is the same query, and positions 0 (“a”)
    and 2 (“a”) are the same keys: the same two scores. In “a-a” the rule gives
    position 2 more weight than 0, in “aaa” it does not.
    """
    if isinstance(rule, str):
        if rule not in RULES:
            raise ValueError(f"There is no rule {rule!r}; there are {', '.join(RULES)}.")
        rule = RULES[rule]
    if not all(isinstance(word, str) and word for word in (first, second)):
        raise ValueError("A certificate needs two words with at least one letter each.")
    same = [t for t, (a, b) in enumerate(zip(first, second, strict=False)) if a == b]
    for (a, b), t in product(((first, second), (second, first)), same):
        in_a, in_b = rule.weights(a)[t], rule.weights(b)[t]
        for i, j in permutations([key for key in same if key <= t], 2):
            # Two weights of 0 leave open which of the scores is the larger one.
            if in_a[i] > in_a[j] and in_b[i] <= in_b[j] and in_b[j] > 0:
                return Certificate(a, b, t, i, j)
    return None
