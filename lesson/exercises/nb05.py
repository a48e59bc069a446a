"""The exercises of notebook 05: scaling."""

import torch

from attention_clinic.bugs import EXERCISE_BUGS
from feedback.grading import Exercise
from helpers.attention import attention, causal_mask
from lesson.exercises.properties import NO_FUTURE, ROWS_SUM_TO_ONE


def _pairs(*shapes):
    generator = torch.Generator().manual_seed(0)
    return [tuple(torch.randn(*shape, generator=generator) for _ in range(2)) for shape in shapes]


def _pairs_with_mean(*shapes):
    """Queries and keys with a mean of 0.5: the mean of their scores is far from 0."""
    return [(q + 0.5, k + 0.5) for q, k in _pairs(*shapes)]


# ---------------------------------------------------------------- 05.1


def score_variance(q, k, scaled):
    """q, k (B, T, d) -> the variance of all scores q · k, divided by √d if scaled."""
    scores = q @ k.mT  # (B, T, T)
    if scaled:
        scores = scores / q.shape[-1] ** 0.5
    return scores.var()


def _by_einsum(q, k, scaled):
    factor = q.shape[-1] ** -0.5 if scaled else 1.0
    return (factor * torch.einsum("bqd,bkd->bqk", q, k)).var()


def _divided_by_n(q, k, scaled):
    return (q @ k.mT / (q.shape[-1] ** 0.5 if scaled else 1)).var(unbiased=False)


def _mean_square(q, k, scaled):
    scores = q @ k.mT / (q.shape[-1] ** 0.5 if scaled else 1)
    return ((scores - scores.mean()) ** 2).mean()


def _another(compute):
    """Another number about the scores, as an answer to 05.1."""

    def another(q, k, scaled):
        scores = q @ k.mT
        return compute(scores / q.shape[-1] ** 0.5 if scaled else scores, q, k)

    return another


def _of_tokens(scores, q, k):
    scale = (scores[0, 0, 0] / (q[0, 0] @ k[0, 0])).item()
    return (scale * (q.mT @ k)).var()


def _end_to_end(scores, q, k):
    """The variance of the scores of all queries with the keys of all sequences."""
    scale = (scores[0, 0, 0] / (q[0, 0] @ k[0, 0])).item()
    return (scale * (q.flatten(0, 1) @ k.flatten(0, 1).T)).var()


_OTHER_NUMBERS = (
    ("the mean of the squared scores", lambda s, q, k: (s**2).mean()),
    ("the mean of the scores", lambda s, q, k: s.mean()),
    ("the sum of the squared differences, not their mean", lambda s, q, k: s.var() * s.numel()),
    ("the mean of the variances of the rows, each for itself", lambda s, q, k: s.var(-1).mean()),
    ("the variances of the rows, not that of all scores together", lambda s, q, k: s.var(-1)),
    ("the variances of the columns", lambda s, q, k: s.var(-2)),
    ("the mean of the variances of the columns", lambda s, q, k: s.var(-2).mean()),
    ("the variance of each sequence", lambda s, q, k: s.var((-2, -1))),
    ("the mean of the variances of the sequences", lambda s, q, k: s.var((-2, -1)).mean()),
    ("the variance of sequence 0 alone", lambda s, q, k: s[0].var()),
    (
        "the variance of what a causal mask allows",
        lambda s, q, k: s[:, causal_mask(s.shape[-1])].var(),
    ),
    ("the variance of the weights, after a softmax", lambda s, q, k: torch.softmax(s, -1).var()),
    ("the mean size of the scores, without their signs", lambda s, q, k: s.abs().mean()),
    ("the scores, and not their variance", lambda s, q, k: s),
    ("the variance of q.mT @ k, which adds up tokens, not channels", _of_tokens),
    ("the variance of q", lambda s, q, k: q.var()),
    (
        "the variance over all sequences laid end to end, where queries also meet keys of others",
        _end_to_end,
    ),
)


def _many_pairs():
    """So many scores that a variance divided by n equals one divided by n - 1: both are right."""
    pairs = _pairs_with_mean((3, 250, 16), (2, 320, 7))
    return [(*pair, scaled) for pair in pairs for scaled in (False, True)]


SCORE_VARIANCE = Exercise(
    "05.1",
    score_variance,
    axes={"q": "B T d", "k": "B T d"},
    intermediates=tuple((name, _another(compute)) for name, compute in _OTHER_NUMBERS),
    cases=_many_pairs,
    accepted=(_by_einsum, _divided_by_n, _mean_square),
)


# ---------------------------------------------------------------- 05.2


def scaled_weights(q, k):
    """q, k (B, T, d) -> (B, T, T) causal weights, whose spread does not depend on d."""
    T, d = q.shape[-2:]
    scores = q @ k.mT / d**0.5
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


def _scaled_queries(q, k):
    fourth_root = q.shape[-1] ** 0.25
    scores = (q / fourth_root) @ (k / fourth_root).mT
    return torch.softmax(scores.masked_fill(torch.ones_like(scores).tril() == 0, -1e9), dim=-1)


def _scaled(q, k):
    return q @ k.mT / q.shape[-1] ** 0.5


def _masked(q, k):
    return _scaled(q, k).masked_fill(~causal_mask(q.shape[1]), float("-inf"))


def _scaled_cosines(q, k):
    return scaled_weights(q / q.norm(dim=-1, keepdim=True), k / k.norm(dim=-1, keepdim=True))


def _cosines(q, k):
    q, k = q / q.norm(dim=-1, keepdim=True), k / k.norm(dim=-1, keepdim=True)
    return scaled_weights(q * q.shape[-1] ** 0.5, k)


def _weights_again(q, k):
    """The weights in the words of `attention_clinic.bugs.attention`."""
    T, d = q.shape[-2:]  # noqa: RUF059 - for what a mistake divides by
    scores = q @ k.mT / q.shape[-1] ** 0.5
    future = torch.ones_like(scores).triu(diagonal=1) == 1
    scores = scores.masked_fill(future, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    out = weights
    return out


_BUGS_OF_THE_WEIGHTS = (
    "softmax over the queries",
    "future filled with 0",
    "masked after the softmax",
    "diagonal masked too",
    "diagonal masked with -1e9",
    "0 times infinity",
    "upper triangle kept",
    "mask not inverted",
    "mask one too far",
    "queries and keys swapped",
)


SCALED_WEIGHTS = Exercise(
    "05.2",
    scaled_weights,
    without="attention",
    ready_made=(attention,),
    axes={"q": "B T d", "k": "B T d", "return": "B T T"},
    intermediates=(
        ("the scores, before the division, the mask and the softmax", lambda q, k: q @ k.mT),
        ("the scaled scores, before the mask and the softmax", _scaled),
        ("the masked, scaled scores, before the softmax", _masked),
        (
            "the scaled scores with the future at 0, before the softmax",
            lambda q, k: _scaled(q, k).tril(),
        ),
        ("the weights times k: an output, not the weights", lambda q, k: scaled_weights(q, k) @ k),
        ("the weights times q: an output, not the weights", lambda q, k: scaled_weights(q, k) @ q),
        ("the weights of cosines: q and k with each row of length 1, not divided", _cosines),
        (
            "the weights of cosines: q and k with each row of length 1, divided by √d",
            _scaled_cosines,
        ),
        ("the right weights after another softmax", lambda q, k: scaled_weights(q, k).softmax(-1)),
    ),
    trained=True,
    cases=lambda: _pairs((3, 5, 16), (2, 6, 7)),
    accepted=(_scaled_queries,),
    known={EXERCISE_BUGS[name]: None for name in _BUGS_OF_THE_WEIGHTS},
    reworded=_weights_again,
    words={"d**0.5": "q.shape[-1] ** 0.5", "/ d**0.5": "/ q.shape[-1] ** 0.5"},
    properties=(ROWS_SUM_TO_ONE, NO_FUTURE),
)


EXERCISES = (SCORE_VARIANCE, SCALED_WEIGHTS)
