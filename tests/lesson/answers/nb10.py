"""Wrong answers to the exercises of notebook 10, as learners might write them."""

from collections import Counter, defaultdict

import torch.nn.functional as F

from tests.lesson.answers import wrong

# --------------------------------------------------- 10.4 count what follows k letters


@wrong("10.4", named="all of the past for k = 0")
def slice_from_minus_k(text, k):
    counts = defaultdict(Counter)
    for i, letter in enumerate(text):
        if i >= k:
            counts[text[:i][-k:]][letter] += 1
    return counts


# --------------------------------------------------- 10.6 softmax, then the mask


@wrong("10.6", named="the right attention")
def rows_divided_again(scores):
    weights = scores.softmax(dim=-1).tril()
    return weights / weights.sum(dim=-1, keepdim=True)


# --------------------------------------------------- 10.3 left-to-right loss


@wrong("10.3", named="all in one pass")
def one_pass(model, windows):
    logits = model(windows[:, :-1])
    T = logits.shape[1]
    return sum(F.cross_entropy(logits[:, t], windows[:, t + 1]) for t in range(T)) / T


# --------------------------------------------------- wrong in ways that have no name


@wrong("10.4")
def counted_for_all_lengths(text, k):
    counts = {}
    for n in range(k + 1):
        for i in range(n, len(text)):
            after = counts.setdefault(text[i - n : i], Counter())
            after[text[i]] += 1
    return counts


@wrong("10.3")
def divided_by_the_letters(model, windows):
    total = 0
    for t in range(windows.shape[1] - 1):
        total += F.cross_entropy(model(windows[:, : t + 1])[:, -1], windows[:, t + 1])
    return total / windows.shape[1]
