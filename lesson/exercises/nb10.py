"""The exercises of notebook 10: a tiny GPT."""

from collections import Counter
from collections.abc import Mapping

import torch
import torch.nn.functional as F

from attention_base.numbers import described
from feedback.grading import Exercise


class _Table(torch.nn.Module):
    """Logits that depend on all ids so far, and a little on the next one if there is one."""

    def __init__(self, V, context_length, peek=0.0):
        super().__init__()
        generator = torch.Generator().manual_seed(V)
        self.context_length, self.peek = context_length, peek
        self.logits = torch.nn.Parameter(torch.randn(V, V, generator=generator) * 2)

    def forward(self, ids):
        if ids.shape[1] > self.context_length:
            raise ValueError(
                f"T must be at most context_length: got T={ids.shape[1]}, "
                f"context_length={self.context_length}."
            )
        later = ids.roll(-1, dims=1)
        later[:, -1] = ids[:, -1]
        ages = torch.arange(1.0, ids.shape[1] + 1)[:, None]
        known = self.logits[ids].cumsum(dim=1) / ages.sqrt()  # (B, T, V)
        return known + self.peek * F.one_hot(later, len(self.logits))


# ---------------------------------------------------------------- 10.4


def count_after(text, k):
    """Text, k -> {group of k letters: {next letter: how often it came next}}."""
    counts = {}
    for i in range(k, len(text)):
        after = counts.setdefault(text[i - k : i], {})
        after[text[i]] = after.get(text[i], 0) + 1
    return counts


def all_of_the_past(text, k):
    counts = {}
    for i in range(k, len(text)):
        after = counts.setdefault(text[:i][-k:], {})
        after[text[i]] = after.get(text[i], 0) + 1
    return counts


def groups_as_tuples(text, k):
    return {tuple(group): after for group, after in count_after(text, k).items()}


def pairs_as_keys(text, k):
    return dict(Counter((text[i - k : i], text[i]) for i in range(k, len(text))))


def lists_of_letters(text, k):
    followers = {}
    for i in range(k, len(text)):
        followers.setdefault(text[i - k : i], []).append(text[i])
    return followers


def returns_in_the_loop(text, k):
    return count_after(text[: k + 1], k)


def groups_counted(text, k):
    return dict(Counter(text[i - k : i] for i in range(k, len(text))))


def _table(counts, text, k):
    """Effect: what was counted after each group of the text, and what is wrong."""
    if not isinstance(counts, Mapping):
        raise ValueError(f"Expected a dict of dicts, got {described(counts)}.")
    for group, after in counts.items():
        if not isinstance(after, Mapping):
            told = f"counts[{group!r}] must be a dict, such as {{'a': 2}}"
            raise ValueError(f"{told}, and is {described(after)}.")
    right = count_after(text, k)
    mine = {group: dict(after) for group, after in counts.items() if after}
    letters, strange = sorted({*text}), [group for group in mine if group not in right]
    numbers = [mine.get(group, {}).get(b, 0) for group in right for b in letters]
    effect = torch.tensor([len(mine), len(strange), sum(map(len, map(str, strange))), *numbers])
    for group in [*strange, *right]:
        got, wanted = mine.get(group, {}), right.get(group, {})
        if got != wanted:
            told = f"the right counts for {group!r} are {wanted}"
            told = told if wanted else f"{group!r} is no group with a letter after it"
            return effect, f"In the text {text!r} with k = {k}, {told}, and yours are {got}."
    return effect, ""


COUNT_AFTER = Exercise(
    "10.4",
    count_after,
    lambda: [
        ("abracadabra", 2),
        ("the cat ate the tart", 1),
        ("Aaaa\nba ", 1),
        ("Aaaa\nba", 3),
        ("aba", 0),
        ("a", 2),
    ],
    effect=_table,
)


# ---------------------------------------------------------------- 10.6


def softmax_then_mask(scores):
    """Scores (..., T, T) -> weights: the softmax of whole rows, then 0 for the future."""
    return torch.softmax(scores, dim=-1).tril()


def _scores():
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(shape, generator=generator),) for shape in ((4, 4), (2, 3, 5, 5))]


SOFTMAX_THEN_MASK = Exercise("10.6", softmax_then_mask, _scores, axes={"scores": "... T T"})


# ---------------------------------------------------------------- 10.3


def left_to_right_loss(model, windows):
    """Windows (B, T + 1) -> the mean loss if the model reads no letter before it is guessed."""
    losses = []
    for t in range(windows.shape[1] - 1):
        logits = model(windows[:, : t + 1])[:, -1]  # (B, V), for the letter at t + 1
        losses.append(F.cross_entropy(logits, windows[:, t + 1]))
    return torch.stack(losses).mean()


def whole_prefix(model, windows):
    losses = []
    for t in range(windows.shape[1] - 1):
        logits = model(windows[:, : t + 1])
        targets = windows[:, 1 : t + 2]
        losses.append(F.cross_entropy(logits.flatten(0, 1), targets.flatten()))
    return torch.stack(losses).mean()


def in_one_pass(model, windows):
    return F.cross_entropy(model(windows[:, :-1]).mT, windows[:, 1:])


def last_question(model, windows):
    return F.cross_entropy(model(windows[:, :-1])[:, -1], windows[:, -1])


def zeros_for_later(model, windows):
    losses = []
    for t in range(windows.shape[1] - 1):
        inputs = windows[:, :-1].clone()
        inputs[:, t + 1 :] = 0
        losses.append(F.cross_entropy(model(inputs)[:, t], windows[:, t + 1]))
    return torch.stack(losses).mean()


def reads_its_guesses(model, windows):
    ids, losses = windows[:, :1], []
    for t in range(windows.shape[1] - 1):
        logits = model(ids)[:, -1]
        losses.append(F.cross_entropy(logits, windows[:, t + 1]))
        ids = torch.cat([ids, logits.argmax(dim=-1, keepdim=True)], dim=1)
    return torch.stack(losses).mean()


def _peeking():
    cases = []
    for V, B, T in ((7, 2, 5), (11, 4, 6), (5, 3, 8)):
        generator = torch.Generator().manual_seed(T)
        model = _Table(V, context_length=20, peek=3.0)
        cases.append((model, torch.randint(V, (B, T + 1), generator=generator)))
    return cases


LEFT_TO_RIGHT_LOSS = Exercise(
    "10.3",
    left_to_right_loss,
    _peeking,
    axes={"windows": "B n_letters"},
)


EXERCISES = (COUNT_AFTER, SOFTMAX_THEN_MASK, LEFT_TO_RIGHT_LOSS)
