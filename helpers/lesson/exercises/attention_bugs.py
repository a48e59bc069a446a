"""Known bugs of attention as mistakes of exercises, told by what an answer does."""

from collections.abc import Callable

from helpers.clinic.bugs import Bug
from helpers.lesson.grading import Mistake

# `diagnose` looks at modules and may guess at their code. In an exercise, many programs come to one
# result; so some bugs have another name or message there.
RENAMED = {"mask not inverted": "mask the wrong way round"}
MESSAGES = {
    "scores thrown away": "The result is that of plain causal averages: queries and keys make no "
    "difference. The scores q @ k.mT have to be masked, not zeros.",
    "future filled with 0": "The scores of the future are 0, or as good as 0, and e⁰ = 1 is a full "
    "share: the future is visible. Only minus infinity becomes 0 under exp. (Scores that are multiplied by a mask of "
    "ones and zeros are 0, too.)",
    "mask not inverted": "The past and the diagonal are masked, and the future is left; the last row "
    "has no future, and is nan. masked_fill fills where its mask is True, so there True has to mean "
    "the future: ~causal_mask(T).",
    "upper triangle kept": "Each token attends to itself and its future. The past lies to the left "
    "of the diagonal, where torch.tril keeps it.",
    "0 times infinity": "Everything is nan. A mask of ones and zeros times -inf is -inf where it is "
    "1, but 0 * inf = nan everywhere else. masked_fill chooses instead of multiplying.",
    "no mask": "Every token attends to the future: no score is masked. (masked_fill returns a new "
    "tensor, and leaves the scores as they are.)",
    "no scale": "Right but for the scale: scores must be divided by √head_size, the square root of "
    "the number of channels in one query.",
    "divided by head_size, not √head_size": "The scores are divided by head_size itself, or twice by "
    "its root. They are divided once by √head_size. (The attention of helpers.attention and of "
    "PyTorch divides already.)",
    "softmax over the queries": "The columns of the weights sum to 1, the rows do not. The softmax "
    "ran over the queries, the last axis but one; it belongs to the keys, dim=-1.",
    "diagonal masked too": "The mask keeps every token from itself, so token 0 has no key left, and "
    "its row is nan. A token may attend to itself.",
    "masked after the softmax": "The future got its share of the weights and was set to 0 "
    "afterwards, so all rows but the last sum to less than 1. Mask the scores, then take the softmax.",
    "mask one too far": "Each token attends to one token of its future: the mask begins one too far "
    "to the right.",
    "queries and keys swapped": "Queries and keys have changed places, so the scores are transposed. "
    "Row i belongs to query i: q @ k.mT.",
    "weights transposed": "The weights are right, but their rows and columns change roles, as in "
    "weights.mT @ v: every output is collected from the tokens that attend to it, the future ones. "
    "It is weights @ v.",
}


def as_mistake(bug: Bug, function: Callable) -> Mistake:
    """A bug as a mistake of an exercise whose wrong answer is `function`."""
    name = RENAMED.get(bug.name, bug.name)
    return Mistake(name, function=function, message=MESSAGES.get(bug.name, bug.message))
