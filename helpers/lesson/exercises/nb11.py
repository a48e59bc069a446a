"""The exercises of notebook 11: heads whose scores are written by hand."""

import torch

from helpers.circuits import RULES, score_from_blocks
from helpers.lesson.grading import Exercise


def _judged_by(name):
    """What an Exercise needs for a rule: its check inputs, and what is judged of a matrix M."""
    rule = RULES[name]

    def effect(M, letters, T):
        return rule.found(M, letters, T), rule.first_failure(M, letters, T)

    return {"cases": lambda: [(rule.letters, 12), (rule.letters[::-1], 9)], "effect": effect}


# ---------------------------------------------------------------- 11.1


def one_back(letters, T):
    """M (V + T, V + T), in which each position looks for the one before it."""
    before = torch.diag(torch.ones(T - 1), -1)
    return score_from_blocks(letters, T, {("position", "position"): before})


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
    """M of layer 2: find the tokens whose copied letter is my letter, else find yourself."""
    same, itself, start = torch.eye(len(letters)), torch.eye(T), torch.zeros(T, T)
    start[:, 0] = 2
    blocks = {("letter", "copied letter"): 2 * same, ("position", "position"): itself - start}
    return score_from_blocks(letters, T, blocks, layer=2)


WHAT_FOLLOWED = Exercise("11.4", what_followed, **_judged_by("induction"))


EXERCISES = (ONE_BACK, EARLIER_SAME, LAST_SEPARATOR, WHAT_FOLLOWED)
