"""Wrong answers to the exercises of notebook 11, as learners might write them."""

import torch

from helpers.circuits import score_from_blocks
from tests.lesson.answers import wrong


def empty(letters, T, layer=1):
    """M, and where its letters and its positions stand."""
    V = len(letters)
    size = layer * (V + T)
    return torch.zeros(size, size), slice(V), slice(V, V + T)


# ---------------------------------------------------------------- 11.1 one back


@wrong("11.1", named="transposed")
def above_the_diagonal(letters, T):
    M, _, P = empty(letters, T)
    M[P, P] = torch.ones(T, T).triu(1).tril(1)
    return M


@wrong("11.1", named="itself")
def the_same_position(letters, T):
    M, _, P = empty(letters, T)
    M[P, P] = 5 * torch.eye(T)
    return M


@wrong("11.1", named="two back")
def one_too_far(letters, T):
    M, V = empty(letters, T)[0], len(letters)
    for t in range(2, T):
        M[V + t, V + t - 2] = 1
    return M


@wrong("11.1", named="everything before")
def all_earlier(letters, T):
    M, _, P = empty(letters, T)
    M[P, P] = (torch.arange(T)[:, None] > torch.arange(T)).float()
    return M


@wrong("11.1", named="one back, and itself")
def two_ones_a_row(letters, T):
    M, _, P = empty(letters, T)
    M[P, P] = torch.ones(T, T).tril().triu(-1)
    return M


@wrong("11.1", named="itself")
def the_latest(letters, T):
    M, _, P = empty(letters, T)
    M[P, P] = torch.arange(float(T))
    return M


@wrong("11.1", named="positions in the first channels")
def shifted_in_the_corner(letters, T):
    M = empty(letters, T)[0]
    M[range(1, T), range(T - 1)] = 3
    return M


@wrong("11.1", named="positions in the first channels, token 0 too")
def all_shifted_in_the_corner(letters, T):
    M = empty(letters, T)[0]
    for t in range(T):
        M[t, max(t - 1, 0)] = 1
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


def earlier(letters, T, same, itself):
    M, L, P = empty(letters, T)
    M[L, L], M[P, P] = same * torch.eye(len(letters)), itself * torch.eye(T)
    return M


@wrong("11.2", named="itself among the equal letters")
def only_letters(letters, T):
    return earlier(letters, T, 1, 0)


@wrong("11.2", named="itself raised")
def plus_for_minus(letters, T):
    return earlier(letters, T, 1, 1)


@wrong("11.2", named="nothing to fall back on")
def as_much_as_it_gave(letters, T):
    return earlier(letters, T, 1, -1)


@wrong("11.2", named="itself below all others")
def far_too_low(letters, T):
    return earlier(letters, T, 1, -5)


@wrong("11.2", named="different letters")
def unequal(letters, T):
    M, L, P = empty(letters, T)
    M[L, L] = 2 * (1 - torch.eye(len(letters)))
    M[P, P] = -1 * torch.eye(T)
    return M


@wrong("11.2", named="itself raised")
def only_positions(letters, T):
    return earlier(letters, T, 0, 1)


@wrong("11.2", named="nothing to fall back on")
def only_what_came_before(letters, T):
    M = earlier(letters, T, 1, 0)
    M[len(letters) :, len(letters) :] = torch.ones(T, T).tril(-1)
    return M


@wrong("11.2", named="ones in the place of the diagonal")
def all_letters_are_equal(letters, T):
    M, L, P = empty(letters, T)
    M[L, L], M[P, P] = 2, -torch.eye(T)
    return M


@wrong("11.2", named="only the last one")
def nearest(letters, T):
    M = earlier(letters, T, 30, -15)
    M[: len(letters), len(letters) :] += torch.arange(float(T))
    return M


# ---------------------------------------------------------------- 11.3 last separator


def separators(letters, T, high, ramp, itself=0.0):
    M, _, P = empty(letters, T)
    M[P, letters.index("-")] = high
    M[P, P] = ramp * torch.arange(float(T)) + itself * torch.eye(T)
    return M


@wrong("11.3", named="no ramp")
def ties(letters, T):
    return separators(letters, T, 10, 0, 5)


@wrong("11.3", named="ramp reversed")
def first_one(letters, T):
    return separators(letters, T, T, -1)


@wrong("11.3", named="ramp too strong")
def lifted(letters, T):
    return separators(letters, T, 2, 1)


@wrong("11.3", named="ramp too flat")
def hardly_a_ramp(letters, T):
    return separators(letters, T, T, 0.1)


@wrong("11.3", named="itself always")
def never_a_separator(letters, T):
    return separators(letters, T, 3, 0, 9)


@wrong("11.3", named="the column of another letter")
def first_letter(letters, T):
    M, _, P = empty(letters, T)
    M[P, 0], M[P, P] = T, torch.arange(float(T))
    return M


@wrong("11.3", named="itself always")
def the_row_of_the_separator(letters, T):
    M = separators(letters, T, 0, 1)
    M[letters.index("-"), : len(letters)] = T
    return M


@wrong("11.3", named="the last column")
def last_letter(letters, T):
    M, _, P = empty(letters, T)
    M[P, len(letters) - 1], M[P, P] = T, torch.arange(float(T))
    return M


@wrong("11.3", named="a separator counts as much as one step")
def one_and_one(letters, T):
    return separators(letters, T, 1, 1)


@wrong("11.3", named="a separator counts as much as the whole ramp")
def off_by_one(letters, T):
    return separators(letters, T, T - 1, 1)


@wrong("11.3", named="no ramp, and nothing to fall back on")
def a_column_alone(letters, T):
    return separators(letters, T, 1, 0)


@wrong("11.3", named="no ramp, and nothing to fall back on")
def a_ramp_of_queries(letters, T):
    M = separators(letters, T, 2 * T, 0)
    M[len(letters) :, len(letters) :] = torch.arange(float(T))[:, None]
    return M


@wrong("11.3", "so large that the ramp is lost in float32")
def a_billion(letters, T):
    return separators(letters, T, 1e9, 1)


@wrong("11.3", named="queries for keys")
def row_for_column(letters, T):
    M, _, P = empty(letters, T)
    M[letters.index("-"), P] = T
    return M


# ---------------------------------------------------------------- 11.4 what came after my letter


def second(letters, T, pair, itself, start):
    at_start = torch.zeros(T, T)
    at_start[:, 0] = start
    blocks = {pair: 4 * torch.eye(len(letters))}
    blocks["position", "position"] = itself * torch.eye(T) - at_start
    return score_from_blocks(letters, T, blocks, layer=2)


@wrong("11.4", named="token 0 as its own predecessor")
def forgets_the_start(letters, T):
    return second(letters, T, ("letter", "copied letter"), 2, 0)


@wrong("11.4", named="itself always")
def own_letter(letters, T):
    return second(letters, T, ("letter", "letter"), 2, 4)


@wrong("11.4", named="query and key exchanged")
def backwards(letters, T):
    return second(letters, T, ("copied letter", "letter"), 2, 4)


@wrong("11.4", named="nothing to fall back on")
def no_fallback(letters, T):
    return second(letters, T, ("letter", "copied letter"), 0, 4)


@wrong("11.4", named="itself always")
def more_than_a_follower(letters, T):
    return second(letters, T, ("letter", "copied letter"), 8, 12)


@wrong("11.4", named="only one block")
def equal_letters_alone(letters, T):
    return second(letters, T, ("letter", "copied letter"), 0, 0)


@wrong("11.4", named="token 1 lowered")
def counted_from_one(letters, T):
    M = second(letters, T, ("letter", "copied letter"), 1, 0)
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


@wrong("11.5", named="counted from 1")
def second_token(letters, T):
    M, L, _ = empty(letters, T)
    M[L, len(letters) + 1] = 1
    return M


@wrong("11.5", named="column 0 of the letters")
def the_letter_that_is_first(letters, T):
    M, L, _ = empty(letters, T)
    M[L, 0] = 2
    return M


@wrong("11.5", "last for first")
def a_rising_ramp(letters, T):
    M, _, P = empty(letters, T)
    M[P, P] = torch.arange(float(T))
    return M


# ---------------------------------------------------------------- 11.6 same letter


@wrong("11.6", named="itself left out")
def only_earlier_ones(letters, T):
    return earlier(letters, T, 4, -2)


@wrong("11.6", named="different letters")
def the_others(letters, T):
    M, L, _ = empty(letters, T)
    M[L, L] = -1 * torch.eye(len(letters))
    return M


@wrong("11.6", named="equal positions")
def who_stands_where_i_stand(letters, T):
    return earlier(letters, T, 0, 1)


@wrong("11.6", named="equal positions")
def both_blocks(letters, T):
    return earlier(letters, T, 1, 1)


# ---------------------------------------------------------------- 11.7 consonants


def pairs(letters, T, queries, keys, itself, score=2.0):
    """M in which these queries find these keys, beside a score for the token itself."""
    M, _, P = empty(letters, T)
    M[P, P] = itself * torch.eye(T)
    for query in queries:
        for key in keys:
            M[letters.index(query), letters.index(key)] = score
    return M


@wrong("11.7", named="query and key exchanged")
def consonants_look(letters, T):
    return pairs(letters, T, "bcdf", "ae", 1)


@wrong("11.7", named="“-” among the consonants")
def all_but_vowels(letters, T):
    return pairs(letters, T, "ae", "bcdf-", 1)


@wrong("11.7", named="itself as much as a consonant")
def as_much(letters, T):
    return pairs(letters, T, "ae", "bcdf", 2)


@wrong("11.7", named="nothing to fall back on")
def only_consonants(letters, T):
    return pairs(letters, T, "ae", "bcdf", 0)


@wrong("11.7", "vowels look for vowels")
def vowels_find_vowels(letters, T):
    return pairs(letters, T, "ae", "ae", 1)


# ---------------------------------------------------------------- 11.8 largest letter


def ranked(letters, T, scores):
    M, L, _ = empty(letters, T)
    M[L, L] = torch.tensor(scores)
    return M


@wrong("11.8", named="the order of the channels")
def place_among_the_channels(letters, T):
    return ranked(letters, T, [2.0 * i for i in range(len(letters))])


@wrong("11.8", named="the smallest letter")
def reversed_alphabet(letters, T):
    return ranked(letters, T, [-float(ord(letter)) for letter in letters])


@wrong("11.8", named="rows for columns")
def scores_of_the_query(letters, T):
    M, L, _ = empty(letters, T)
    for i, letter in enumerate(letters):
        M[i, L] = float(ord(letter))
    return M


@wrong("11.8", named="steps too small")
def shares(letters, T):
    return ranked(letters, T, [("-abcdef".index(letter) + 1) / 10 for letter in letters])


# ---------------------------------------------------------------- 11.9 number of a's


@wrong("11.9", named="without the start")
def only_a(letters, T):
    return pairs(letters, T, letters, "a", 0)


@wrong("11.9", named="the start counts more")
def start_first(letters, T):
    M = pairs(letters, T, letters, "a", 0)
    M[:, letters.index("^")] = 9
    return M


@wrong("11.9", named="only “^” and “a” look")
def among_themselves(letters, T):
    return pairs(letters, T, "^a", "^a", 0)


# ---------------------------------------------------------------- 11.10 matching bracket


def brackets(letters, T, queries, keys, score, ramp, itself=0.0):
    """M in which each query of a pair finds its key, with a ramp."""
    M, _, P = empty(letters, T)
    M[P, P] = ramp * torch.arange(float(T)) + itself * torch.eye(T)
    for query, key in zip(queries, keys, strict=True):
        M[letters.index(query), letters.index(key)] = score
    return M


@wrong("11.10", named="no ramp")
def all_of_its_kind(letters, T):
    return brackets(letters, T, ")]}", "([{", 9, 0, 4)


@wrong("11.10", named="ramp too strong")
def two_against_a_ramp(letters, T):
    return brackets(letters, T, ")]}", "([{", 2, 1)


@wrong("11.10", named="opening brackets look")
def opening_for_closing(letters, T):
    return brackets(letters, T, "([{", ")]}", 40, 1)


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


def equal_parts(letters, T, query, key, n):
    """M of layer 2 in which a part of the query and one of the key have to be equal."""
    return score_from_blocks(letters, T, {(query, key): 3 * torch.eye(n)}, layer=2)


@wrong("11.11", named="its own position")
def who_copied_me(letters, T):
    return equal_parts(letters, T, "position", "copied position", T)


@wrong("11.11", named="only the separator")
def back_to_the_separator(letters, T):
    return equal_parts(letters, T, "copied position", "position", T)


@wrong("11.11", named="the copied letters")
def who_copied_the_same_letter(letters, T):
    return equal_parts(letters, T, "copied letter", "copied letter", len(letters))


@wrong("11.11", "a matrix of one layer")
def one_layer_only(letters, T):
    return score_from_blocks(letters, T, {("position", "position"): torch.eye(T)})


# ---------------------------------------------------------------- 11.12 count so far


@wrong("11.12", named="the numbers themselves")
def one_two_three(T):
    return torch.arange(1.0, T + 1).view(T, 1)


@wrong("11.12", named="even numbers")
def from_zero(T):
    return torch.tensor([[2.0 * t] for t in range(T)])


@wrong("11.12", named="ones only")
def ones(T):
    return torch.ones(T, 1)


@wrong("11.12", "a row of numbers")
def without_a_channel(T):
    return torch.arange(1.0, 2 * T, 2)


@wrong("11.12", "a list")
def a_list(T):
    return [2 * t + 1 for t in range(T)]


@wrong("11.12", "the sums, not the steps")
def squares(T):
    return torch.arange(1.0, T + 1)[:, None] ** 2
