"""Wrong answers to the exercises of notebook 10, as learners might write them."""

import math

import torch
import torch.nn.functional as F

from tests.lesson.answers import wrong

# --------------------------------------------------- 10.1 the loss of the next letter


def scored(logits, targets):
    """The loss of each question, (B, T)."""
    chosen = logits.log_softmax(-1).gather(2, targets.unsqueeze(2))
    return -chosen.squeeze(2)


@wrong("10.1", named="summed over the windows")
def per_letter(model, windows):
    total = 0
    for window in windows:
        total = total + F.cross_entropy(model(window[None, :-1])[0], window[1:])
    return total


@wrong("10.1", "no gradient: a Python number")
def as_a_number(model, windows):
    return scored(model(windows[:, :-1]), windows[:, 1:]).mean().item()


@wrong("10.1", "no gradient: cut off")
def cut_off(model, windows):
    return scored(model(windows[:, :-1]).detach(), windows[:, 1:]).mean()


# --------------------------------------------------- 10.2 write


@wrong("10.2", named="the first answer in the place of the last")
def first_answer(model, ids, n, temperature, draw):
    for _ in range(n):
        logits = model(ids[:, -model.context_length :])[:, 0, :]
        ids = torch.hstack([ids, draw(F.softmax(logits / temperature, dim=1))])
    return ids


# --------------------------------------------------- 10.3 left-to-right loss


@wrong("10.3", named="all in one pass")
def one_pass(model, windows):
    logits = model(windows[:, :-1])
    T = logits.shape[1]
    return sum(F.cross_entropy(logits[:, t], windows[:, t + 1]) for t in range(T)) / T


# --------------------------------------------------- wrong in ways that have no name


@wrong("10.1")
def in_bits(model, windows):
    return scored(model(windows[:, :-1]), windows[:, 1:]).mean() / math.log(2)


@wrong("10.2")
def one_letter_too_many(model, ids, n, temperature, draw):
    for _ in range(n + 1):
        logits = model(ids[:, -model.context_length :])[:, -1]
        ids = torch.hstack([ids, draw(F.softmax(logits / temperature, dim=1))])
    return ids


@wrong("10.3")
def divided_by_the_letters(model, windows):
    total = 0
    for t in range(windows.shape[1] - 1):
        total += F.cross_entropy(model(windows[:, : t + 1])[:, -1], windows[:, t + 1])
    return total / windows.shape[1]
