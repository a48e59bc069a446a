"""Wrong answers to the exercises of notebook 11, as learners might write them."""

import torch

from helpers.circuits import score_from_blocks
from tests.lesson.answers import wrong


def empty(letters, T):
    """M, and where its letters and its positions stand."""
    V = len(letters)
    size = V + T
    return torch.zeros(size, size), slice(V), slice(V, V + T)


# ---------------------------------------------------------------- 11.1 one back


@wrong("11.1", named="itself")
def the_latest(letters, T):
    M, _, P = empty(letters, T)
    M[P, P] = torch.arange(float(T))
    return M


@wrong("11.1", "a matrix of letters")
def only_the_positions(letters, T):
    return torch.diag(torch.ones(T - 1), -1)


@wrong("11.1", "minus infinity for never")
def with_infinity(letters, T):
    M, _, P = empty(letters, T)
    M[P, P] = torch.where(torch.ones(T, T).tril(-1).triu(-1) > 0, 0.0, -torch.inf)
    return M


@wrong("11.1", "too soft")
def too_soft(letters, T):
    M, _, P = empty(letters, T)
    M[P, P] = 0.1 * torch.diag(torch.ones(T - 1), -1)
    return M


# ---------------------------------------------------------------- 11.2 earlier same letter


@wrong("11.2", named="nothing to fall back on")
def only_what_came_before(letters, T):
    M, L, P = empty(letters, T)
    M[L, L], M[P, P] = torch.eye(len(letters)), torch.ones(T, T).tril(-1)
    return M


# ---------------------------------------------------------------- 11.3 last separator


@wrong("11.3", named="the column of another letter")
def first_letter(letters, T):
    M, _, P = empty(letters, T)
    M[P, 0], M[P, P] = T, torch.arange(float(T))
    return M


@wrong("11.3", "so large that the ramp is lost in float32")
def a_billion(letters, T):
    M, _, P = empty(letters, T)
    M[P, letters.index("-")], M[P, P] = 1e9, torch.arange(float(T))
    return M


# ---------------------------------------------------------------- 11.4 what came after my letter


@wrong("11.4", named="token 1 lowered")
def counted_from_one(letters, T):
    pair = {("letter", "copied letter"): 4 * torch.eye(len(letters))}
    M = score_from_blocks(letters, T, pair | {("position", "position"): torch.eye(T)}, layer=1)
    M[: len(letters), len(letters) + 1] = -9
    return M


@wrong("11.4", "a matrix of one layer")
def of_one_layer(letters, T):
    return score_from_blocks(letters, T, {("letter", "letter"): torch.eye(len(letters))})


# ---------------------------------------------------------------- 11.5 first token


@wrong("11.5", named="row for column")
def row_of_the_first(letters, T):
    M, _, P = empty(letters, T)
    M[P.start, P] = 4
    return M


@wrong("11.5", "last for first")
def a_rising_ramp(letters, T):
    M, _, P = empty(letters, T)
    M[P, P] = torch.arange(float(T))
    return M


# ---------------------------------------------------------------- 11.6 same letter


@wrong("11.6", named="different letters")
def the_others(letters, T):
    M, L, _ = empty(letters, T)
    M[L, L] = -1 * torch.eye(len(letters))
    return M


# ---------------------------------------------------------------- 11.7 consonants


def pairs(letters, T, queries, keys, itself, score=2.0):
    """M in which these queries find these keys, beside a score for the token itself."""
    M, _, P = empty(letters, T)
    M[P, P] = itself * torch.eye(T)
    for query in queries:
        for key in keys:
            M[letters.index(query), letters.index(key)] = score
    return M


@wrong("11.7", named="“-” among the consonants")
def all_but_vowels(letters, T):
    return pairs(letters, T, "ae", "bcdf-", 1)


@wrong("11.7", "vowels look for vowels")
def vowels_find_vowels(letters, T):
    return pairs(letters, T, "ae", "ae", 1)


# ---------------------------------------------------------------- 11.8 largest letter


@wrong("11.8", named="rows for columns")
def scores_of_the_query(letters, T):
    M, L, _ = empty(letters, T)
    for i, letter in enumerate(letters):
        M[i, L] = float(ord(letter))
    return M


# ---------------------------------------------------------------- 11.9 number of a's


@wrong("11.9", named="the start counts more")
def start_first(letters, T):
    M = pairs(letters, T, letters, "a", 0)
    M[:, letters.index("^")] = 9
    return M


# ---------------------------------------------------------------- 11.10 matching bracket


def brackets(letters, T, queries, keys, score, ramp, itself=0.0):
    """M in which each query of a pair finds its key, with a ramp."""
    M, _, P = empty(letters, T)
    M[P, P] = ramp * torch.arange(float(T)) + itself * torch.eye(T)
    for query, key in zip(queries, keys, strict=True):
        M[letters.index(query), letters.index(key)] = score
    return M


@wrong("11.10", named="every token looks")
def last_opening_one(letters, T):
    M = brackets(letters, T, "", "", 0, 1)
    for bracket in "([{":
        M[: len(letters), letters.index(bracket)] = 50
    return M


@wrong("11.10", "one kind is missing")
def two_kinds(letters, T):
    return brackets(letters, T, ")]", "([", T, 1)


# ---------------------------------------------------------------- 11.11 my word


@wrong("11.11", named="its own position")
def who_copied_me(letters, T):
    return score_from_blocks(letters, T, {("position", "copied position"): torch.eye(T)}, layer=1)


@wrong("11.11", "a matrix of one layer")
def one_layer_only(letters, T):
    return score_from_blocks(letters, T, {("position", "position"): torch.eye(T)})


# ---------------------------------------------------------------- 11.12 count so far


@wrong("11.12", named="even numbers")
def from_zero(T):
    return torch.tensor([[2.0 * t] for t in range(T)])


@wrong("11.12", "a row of numbers")
def without_a_channel(T):
    return torch.arange(1.0, 2 * T, 2)


@wrong("11.12", "a list")
def a_list(T):
    return [2 * t + 1 for t in range(T)]


@wrong("11.12", "the sums, not the steps")
def squares(T):
    return torch.arange(1.0, T + 1)[:, None] ** 2
