"""Wrong answers to the exercises of notebook 11, as learners might write them."""

import torch

from helpers.circuits import score_from_blocks
from tests.answers import wrong


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


@wrong("11.4", "a matrix of one layer")
def of_one_layer(letters, T):
    return score_from_blocks(letters, T, {("letter", "letter"): torch.eye(len(letters))})
