"""The exercises of notebook 14: attention as a loop that keeps keys, or three sums."""

import torch
from torch import nn

from attention_base.numbers import described
from feedback import messages
from feedback.grading import Exercise
from lesson.builds import build
from lesson.builds.right_14 import generate

# ---------------------------------------------------------------- 14.generate


class _Model(nn.Module):
    """Letter i is followed by letter i + 1, with logits of 60 if it is `sure`, else of 2.

    It notes what it reads. In its cache it keeps the letters; without `has_cache` it takes none.
    """

    context_length = 6

    def __init__(self, has_cache=True, sure=True):
        super().__init__()
        self.has_cache, self.sure, self.read = has_cache, sure, []

    def __repr__(self):
        return "model" if self.has_cache else "model without a cache"

    def forward(self, ids, **more):
        if more.keys() - {"cache"} or (more and not self.has_cache):
            raise ValueError(f"This model is called as model(ids), and got {[*more]}, too.")
        if len(self.read) > 40:
            raise RuntimeError("The model has been called 40 times. Does the loop end?")
        if not isinstance(ids, torch.Tensor) or ids.dim() != 2 or not ids.shape[1]:
            raise TypeError(f"The model takes ids of shape (B, T), got {described(ids)}.")
        cache = more.get("cache")
        if not isinstance(cache, dict | None):
            raise TypeError(
                f"cache has to be a dictionary, empty at first; got {described(cache)}."
            )
        seen = torch.cat([cache["seen"], ids], dim=1) if cache else ids
        if seen.shape[1] > self.context_length:
            raise ValueError(
                f"The model reads {seen.shape[1]} letters"
                f"{', with those in its cache,' * bool(cache)} and"
                f" its context_length is {self.context_length}."
            )
        if cache is not None:
            cache["seen"] = seen
        self.read.append((ids.shape[1], seen))
        return (60 if self.sure else 2) * torch.eye(7)[(ids + 1) % 7]


def _generated(answer, model, ids, n, cached, temperature=1.0):
    out = answer(model, ids, n, temperature, cached)
    return out if out is None else (out, model)


def _of_texts(generated, model, ids, n, cached, temperature=1.0):
    """Effect: the texts, and how much was read and seen at each letter; and what is wrong."""
    out, model = generated
    (B, T), read = ids.shape, model.read
    if not isinstance(out, torch.Tensor) or out.shape != (B, T + n):
        raise ValueError(f"Expected texts {(B, T + n)}, got {described(out)}.")
    if out.is_floating_point():
        raise TypeError(messages.wrong_kind(out, ids))
    effect = torch.zeros(8, 3)
    for i, (new, seen) in enumerate(read[:8]):
        effect[i] = torch.tensor([new, seen.shape[1], seen[0, 0]])
    effect = torch.cat([out.flatten(), effect.flatten()])
    how = "with cached=True" if cached else "without cached=True"
    for i in range(n):
        right = out[:, : T + i][:, -model.context_length :]
        if i >= len(read) or not read[i][1].equal(right):
            got = read[i][1][0].tolist() if i < len(read) else "nothing"
            told = f"Before letter {i} of the new ones (counted from 0), {how}, the model has"
            return effect, f"{told} {got} before it, and the text is {right[0].tolist()}."
        once = right.shape[1] if i == 0 else 1
        once = once if cached and T + i <= model.context_length else right.shape[1]
        if read[i][0] != once:
            told = f"For letter {i} of the new ones (counted from 0), {how}, the model was given"
            return effect, f"{told} {read[i][0]} letters; {once} would do."
    if not model.sure:
        share = (out[:, -1] == (out[:, -2] + 1) % 7).float().mean()
        likely = torch.softmax(2 * torch.eye(7)[0] / temperature, dim=0)[0]
        told = f"At a temperature of {temperature:g}, {how}, the likeliest letter has a share"
        wrong = f"{told} of {share:.2f}; softmax(logits / temperature) has {likely:.2f}."
        return share, wrong if abs(share - likely) > 0.04 else ""
    sure = torch.cat([ids, (ids[:, -1:] + 1 + torch.arange(n)) % 7], dim=1)
    b = int((out != sure).any(dim=1).int().argmax())  # the first text that is wrong
    wrong = f"Text {b} is {out[b].tolist()}, and {sure[b].tolist()} was sure."
    return effect, wrong if (out != sure).any() else ""


def _texts():
    ids = torch.tensor([[0, 3, 1], [2, 6, 4]])
    return [
        (_Model(), ids, 3, True),
        (_Model(), ids, 7, True),  # longer than the context
        (_Model(has_cache=False), ids, 5, False),
        (_Model(), ids[:, :1], 9, True),
        (_Model(), ids.repeat(1, 3), 2, True),  # a prompt that is longer than the context
        (_Model(has_cache=False), ids.repeat(1, 3), 2, False),
        (_Model(sure=False), ids.repeat(2000, 1), 2, True, 0.5),
    ]


GENERATE = Exercise("14.generate", generate, _texts, used=_generated, effect=_of_texts)


# ---------------------------------------------------------------- 14.2


def online_softmax(scores, values):
    """(T,), (T, D) -> (D,): softmax(scores) @ values, with one look at each score."""
    largest, total = torch.tensor(-torch.inf), torch.tensor(0.0)
    weighted = torch.zeros(values.shape[1])
    for score, value in zip(scores, values, strict=True):
        new = torch.maximum(largest, score)
        factor, weight = torch.exp(largest - new), torch.exp(score - new)
        total = factor * total + weight
        weighted = factor * weighted + weight * value
        largest = new
    return weighted / total


def from_the_first_score(scores, values, factor, weight):
    """The same loop, begun with the first score: how e is raised, for two sums and a new score."""
    largest, total, weighted = scores[0], torch.tensor(1.0), values[0]
    for score, value in zip(scores[1:], values[1:], strict=True):
        new = torch.maximum(largest, score)
        f, w = factor(largest, new), weight(largest, new, score)
        total, weighted = f * total + w, f * weighted + w * value
        largest = new
    return weighted / total


def rescaled_the_wrong_way(scores, values):
    return from_the_first_score(
        scores,
        values,
        lambda old, new: (new - old).exp(),
        lambda old, new, score: (score - new).exp(),
    )


def weighted_by_the_old_maximum(scores, values):
    return from_the_first_score(
        scores,
        values,
        lambda old, new: (old - new).exp(),
        lambda old, new, score: (score - old).exp(),
    )


def divided_at_each_step(scores, values):
    largest, total, out = torch.tensor(-torch.inf), torch.tensor(0.0), torch.zeros(values.shape[1])
    for score, value in zip(scores, values, strict=True):
        new = torch.maximum(largest, score)
        factor, weight = torch.exp(largest - new), torch.exp(score - new)
        total = factor * total + weight
        out = (factor * out + weight * value) / total
        largest = new
    return out


def no_maximum(scores, values):
    weights = scores.exp()
    return weights @ values / weights.sum()


def _scores_and_values():
    generator = torch.Generator().manual_seed(0)
    mixed, rising, large = (torch.randn(T, generator=generator) for T in (5, 7, 6))
    rising = rising.sort().values
    steps = torch.tensor([0.0, 150.0, 160.0, 300.0, 310.0])  # e to the 150 would overflow
    sizes = ((2 * mixed, 3), (2 * rising, 2), (1000 + large, 4), (large - 1000, 4))
    sizes = (*sizes, (steps, 3), (steps.flip(0), 3))
    return [(s, torch.randn(len(s), D, generator=generator)) for s, D in sizes]


ONLINE_SOFTMAX = Exercise(
    "14.2",
    online_softmax,
    _scores_and_values,
    atol=1e-4,  # right forms that carry a logarithm lose digits at scores around 1000
    axes={"scores": "T", "values": "T D", "return": "D"},
    without="softmax",
    intermediates=(
        ("the sum of the exponentials", lambda scores, values: (scores - scores.max()).exp().sum()),
        ("the weights, before the values are averaged", lambda scores, values: scores.softmax(0)),
        ("the plain mean of the values", lambda scores, values: values.mean(dim=0)),
    ),
    optional=True,
)


EXERCISES = (
    build("14.MultiHeadAttention"),
    build("14.Block"),
    build("14.TinyGPT"),
    GENERATE,
    ONLINE_SOFTMAX,
)
