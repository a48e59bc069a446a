"""The exercises of notebook 11: heads whose scores are written by hand."""

import torch

from feedback.grading import Exercise
from helpers.circuits import RULES, score_from_blocks
from helpers.circuits.by_hand import refuse_bad_scores
from helpers.circuits.rules import EXACT


def _judged_by(name):
    """What an Exercise needs for a rule: its check inputs, and what is judged of a matrix M."""
    rule = RULES[name]

    def effect(M, letters, T):
        return rule.found(M, letters, T), rule.first_failure(M, letters, T)

    return {"cases": lambda: [(rule.letters, 12), (rule.letters[::-1], 15)], "effect": effect}


# ---------------------------------------------------------------- 11.1


def one_back(letters, T):
    """M (V + T, V + T), in which each position looks for the one before it."""
    before = torch.diag(torch.ones(T - 1), -1)
    return score_from_blocks(letters, T, {("position", "position"): before})


def positions_first(letters, T):
    """M without its first V rows and columns for the letters."""
    M = torch.zeros(len(letters) + T, len(letters) + T)
    for t in range(1, T):
        M[t, t - 1] = 1
    return M


def positions_first_and_token_0(letters, T):
    M = positions_first(letters, T)
    M[0, 0] = 1
    return M


ONE_BACK = Exercise("11.1", one_back, **_judged_by("one back"))


# ---------------------------------------------------------------- 11.2


def earlier_same(letters, T):
    """M (V + T, V + T): earlier equal letters win over the token itself, and it over the rest."""
    same, itself = torch.eye(len(letters)), torch.eye(T)
    blocks = {("letter", "letter"): 2 * same, ("position", "position"): -1 * itself}
    return score_from_blocks(letters, T, blocks)


def latest_same(letters, T):
    later = 1.0 * torch.arange(T).expand(len(letters), T)
    blocks = {("letter", "letter"): 4 * T * torch.eye(len(letters)), ("letter", "position"): later}
    return score_from_blocks(letters, T, blocks | {("position", "position"): -2 * T * torch.eye(T)})


EARLIER_SAME = Exercise("11.2", earlier_same, **_judged_by("earlier same letter"))


# ---------------------------------------------------------------- 11.3


def last_separator(letters, T):
    """M (V + T, V + T): the last “-” wins, and without one the token itself."""
    separator = torch.zeros(T, len(letters))
    separator[:, letters.index("-")] = T
    later = 1.0 * torch.arange(T).expand(len(letters), T)
    blocks = {("position", "letter"): separator, ("letter", "position"): later}
    return score_from_blocks(letters, T, blocks)


def no_ramp_but_itself(letters, T):
    separator = torch.zeros(T, len(letters))
    separator[:, letters.index("-")] = 2
    blocks = {("position", "letter"): separator, ("position", "position"): torch.eye(T)}
    return score_from_blocks(letters, T, blocks)


LAST_SEPARATOR = Exercise("11.3", last_separator, **_judged_by("last separator"))


# ---------------------------------------------------------------- 11.4


def what_followed(letters, T):
    """M of layer 1: find the tokens whose copied letter is my letter, else find yourself."""
    same, itself, start = torch.eye(len(letters)), torch.eye(T), torch.zeros(T, T)
    start[:, 0] = 2
    blocks = {("letter", "copied letter"): 2 * same, ("position", "position"): itself - start}
    return score_from_blocks(letters, T, blocks, layer=1)


WHAT_FOLLOWED = Exercise("11.4", what_followed, **_judged_by("induction"))


# ---------------------------------------------------------------- 11.5 to 11.12, optional


def first_token(letters, T):
    """M (V + T, V + T): every query looks for position 0."""
    start = torch.zeros(T, T)
    start[:, 0] = 1
    return score_from_blocks(letters, T, {("position", "position"): start})


FIRST = Exercise("11.5", first_token, **_judged_by("first"), optional=True)


def all_same(letters, T):
    """M (V + T, V + T): all equal letters have the same score, the token itself among them."""
    same = torch.eye(len(letters))
    return score_from_blocks(letters, T, {("letter", "letter"): same})


ALL_SAME = Exercise("11.6", all_same, **_judged_by("same letter"), optional=True)


def consonants(letters, T):
    """M (V + T, V + T): a vowel looks for consonants, and every token a little for itself."""
    vowel = torch.tensor([float(one in "ae") for one in letters])
    consonant = torch.tensor([float(one in "bcdf") for one in letters])
    blocks = {("letter", "letter"): 2 * torch.outer(vowel, consonant)}
    return score_from_blocks(letters, T, blocks | {("position", "position"): torch.eye(T)})


CONSONANTS = Exercise("11.7", consonants, **_judged_by("consonants"), optional=True)


def largest_letter(letters, T):
    """M (V + T, V + T): the later a letter stands in the alphabet, the larger is its score."""
    place = torch.tensor([float(sorted(letters).index(one)) for one in letters])
    return score_from_blocks(letters, T, {("letter", "letter"): place.expand(len(letters), -1)})


LARGEST = Exercise("11.8", largest_letter, **_judged_by("largest letter"), optional=True)


def start_and_a(letters, T):
    """M (V + T, V + T): “^” and each “a” have the same score, all other letters a smaller one."""
    wanted = torch.tensor([float(one in "^a") for one in letters])
    return score_from_blocks(letters, T, {("letter", "letter"): wanted.expand(len(letters), -1)})


NUMBER_OF_A = Exercise("11.9", start_and_a, **_judged_by("start and a"), optional=True)


def matching_bracket(letters, T):
    """M (V + T, V + T): a closing bracket finds the last opening one of its kind."""
    pairs = torch.zeros(len(letters), len(letters))
    for opening, closing in ("()", "[]", "{}"):
        pairs[letters.index(closing), letters.index(opening)] = T
    later = 1.0 * torch.arange(T).expand(len(letters), T)
    blocks = {("letter", "letter"): pairs, ("letter", "position"): later}
    return score_from_blocks(letters, T, blocks)


BRACKET = Exercise("11.10", matching_bracket, **_judged_by("matching bracket"), optional=True)


def my_word(letters, T):
    """M of layer 1: find all tokens that have copied the same position, that of their last “-”."""
    blocks = {("copied position", "copied position"): torch.eye(T)}
    return score_from_blocks(letters, T, blocks, layer=1)


MY_WORD = Exercise("11.11", my_word, **_judged_by("my word"), optional=True)


def count_so_far(T):
    """Values (T, 1) with the running mean 1, 2, 3, and so on."""
    return 2.0 * torch.arange(T)[:, None] + 1


def _mean_so_far(values, T):
    """The running mean of values (T, 1), and where it is not the number of values."""
    refuse_bad_scores("The values", values, (T, 1))
    count = torch.arange(1.0, T + 1)[:, None]
    mean = values.cumsum(dim=0) / count
    for n, found in enumerate(mean.flatten().tolist(), start=1):
        if abs(found - n) > EXACT:
            return mean, f"The mean of the first {n} values should be {n}, but it is {found:.2f}."
    return mean, ""


COUNT = Exercise("11.12", count_so_far, lambda: [(12,), (9,)], effect=_mean_so_far, optional=True)


EXERCISES = (
    ONE_BACK, EARLIER_SAME, LAST_SEPARATOR, WHAT_FOLLOWED,
    FIRST, ALL_SAME, CONSONANTS, LARGEST, NUMBER_OF_A, BRACKET, MY_WORD, COUNT,
)  # fmt: skip
