"""The exercises of notebook 03: from scores to weights."""

import torch

from feedback.grading import Exercise
from helpers.attention import attention, causal_mask
from helpers.toy import numbers
from lesson.exercises.properties import NO_FUTURE, ROWS_SUM_TO_ONE

# ---------------------------------------------------------------- 03.1


def causal_softmax(scores):
    """(B, T, T) scores -> (B, T, T) weights: no weight on the future, every row sums to 1."""
    T = scores.shape[-1]
    may_attend = torch.tril(torch.ones(T, T, dtype=torch.bool))
    masked = scores.masked_fill(~may_attend, float("-inf"))
    return torch.softmax(masked, dim=-1)


def renormalised(scores):
    weights = torch.tril(torch.softmax(scores, dim=-1))
    return weights / weights.sum(dim=-1, keepdim=True)


def _large_negative(scores):
    T = scores.shape[-1]
    return torch.softmax(scores.masked_fill(torch.tril(torch.ones(T, T)) == 0, -1e9), dim=-1)


def _scores():
    generator = torch.Generator().manual_seed(0)
    return [
        (2 * torch.randn(2, 5, 5, generator=generator),),
        (2 * torch.randn(3, 4, 4, generator=generator),),
        (_with_a_high_future(2 * torch.randn(2, 3, 3, generator=generator)),),
    ]


def _with_a_high_future(scores):
    """One later score is so far above the others of its row that these underflow beside it."""
    scores[1, 0] = torch.tensor([-60.0, -60.0, 60.0])  # exp(60) and exp(-60) do not
    return scores


def _masked(scores):
    T = scores.shape[-1]
    return scores.masked_fill(torch.ones(T, T).triu(1) == 1, float("-inf"))


def _plain_average(scores):
    return torch.softmax(_masked(torch.zeros_like(scores)), dim=-1)


def _exponentials(scores):
    return torch.tril(torch.exp(scores))


def _softmax_twice(scores):
    return torch.softmax(causal_softmax(scores), dim=-1)


def _zero_twice(scores):
    return torch.softmax(torch.tril(torch.softmax(scores, dim=-1)), dim=-1)


def divided_by_everything(scores):
    return _exponentials(scores) / _exponentials(scores).sum()


def _without_itself(scores):
    weights = torch.softmax(
        scores.masked_fill(torch.ones_like(scores).triu() == 1, float("-inf")), dim=-1
    )
    return weights.nan_to_num()


def _without_exp(scores):
    return scores.tril() / scores.tril().sum(dim=-1, keepdim=True)


CAUSAL_SOFTMAX = Exercise(
    "03.1",
    causal_softmax,
    _scores,
    axes={"scores": "B T T", "return": "B T T"},
    intermediates=(
        ("the masked scores, before the softmax", _masked),
        ("a softmax of the earlier scores, without the token's own", _without_itself),
        ("the scores, masked with 0 and divided by their sum, without exponentials", _without_exp),
        ("the softmax of the scores without a mask", lambda scores: torch.softmax(scores, -1)),
        ("the mask, and no weights", lambda scores: torch.tril(torch.ones_like(scores))),
        ("the weights of the plain causal mean: the scores are not used", _plain_average),
        ("the exponentials of the scores, with the future at 0, not yet divided", _exponentials),
        ("the right weights after another softmax", _softmax_twice),
        ("a softmax of the scores with the future set to 0, then of its result", _zero_twice),
    ),
    accepted=(_large_negative,),
    properties=(ROWS_SUM_TO_ONE, NO_FUTURE),
)


# ---------------------------------------------------------------- 03.2


def attend(x):
    """(B, T, C) -> (B, T, C): averages of the tokens, with weights computed from the tokens."""
    scores = x @ x.mT  # (B, T, T)
    masked = scores.masked_fill(~causal_mask(x.shape[1]), float("-inf"))
    weights = torch.softmax(masked, dim=-1)
    return weights @ x


def channels_compared(x):
    return causal_softmax(x.mT @ x) @ x


def _own_weights(x):
    return causal_softmax(x @ x.mT)


def _unmasked(x):
    return torch.softmax(x @ x.mT, dim=-1)


ATTEND = Exercise(
    "03.2",
    attend,
    lambda: [(numbers(C=3)[:2, :5],), (numbers(C=6, seed=42)[1:, :4],)],
    axes={"x": "B T C", "return": "B T C"},
    intermediates=(
        ("the scores", lambda x: x @ x.mT),
        ("the masked scores", lambda x: _masked(x @ x.mT)),
        ("the weights, not yet multiplied by the tokens", _own_weights),
        ("the weights without a mask, not yet multiplied by the tokens", _unmasked),
        ("the output of the last token only", lambda x: attend(x)[:, -1]),
        (
            "the weighted averages of the scores, in the place of the tokens",
            lambda x: _own_weights(x) @ (x @ x.mT),
        ),
        ("the tokens as they came", lambda x: x),
    ),
    without="attention",
    ready_made=(attention,),
)


# ---------------------------------------------------------------- 03.3


def safe_softmax(scores):
    """(..., T) scores -> (..., T) weights, without torch.softmax and for scores of any size."""
    largest = scores.max(dim=-1, keepdim=True).values
    exp = torch.exp(scores - largest)
    return exp / exp.sum(dim=-1, keepdim=True)


def _by_logsumexp(scores):
    return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))


def _large_scores():
    generator = torch.Generator().manual_seed(0)
    return [
        (torch.randn(3, 5, generator=generator),),
        (torch.tensor([[1000.0, 1001.0, 999.0], [0.0, 1.0, 2.0]]),),
        # exp(200) overflows too, and leaves enough digits to compare within atol.
        (torch.tensor([[0.0, 200.0, 2.0], [-200.0, -201.0, -200.5]]),),
    ]


def _shifted(scores):
    return scores - scores.amax(dim=-1, keepdim=True)


def _shifted_exponentials(scores):
    return torch.exp(_shifted(scores))


def _base_two(scores):
    return torch.softmax(scores * torch.log(torch.tensor(2.0)), dim=-1)


def _no_exponentials(scores):
    return scores / scores.sum(dim=-1, keepdim=True)


SAFE_SOFTMAX = Exercise(
    "03.3",
    safe_softmax,
    _large_scores,
    axes={"scores": "... T", "return": "... T"},
    intermediates=(
        ("the exponentials, not yet divided by their sum", _shifted_exponentials),
        ("the scores minus the largest of their row", lambda scores: _shifted(scores)),
        ("2 to the power of the scores, divided by its sum, with 2 in the place of e", _base_two),
        ("the scores divided by their sum, without exponentials", _no_exponentials),
    ),
    accepted=(_by_logsumexp,),
    without="softmax",
    named=("numbers 1000 times as large in `scores`", "numbers around -1000 in `scores`"),
    properties=(ROWS_SUM_TO_ONE,),
)


EXERCISES = (CAUSAL_SOFTMAX, ATTEND, SAFE_SOFTMAX)
