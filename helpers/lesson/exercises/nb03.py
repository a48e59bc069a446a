"""The exercises of notebook 03: from scores to weights."""

from functools import partial

import torch

from helpers.lesson.exercises.properties import NO_FUTURE, ROWS_SUM_TO_ONE
from helpers.lesson.grading import Exercise

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


def look_one_back(T):
    """(T, T) weights by masked softmax: token t attends to token t - 1, token 0 to itself."""
    scores = torch.zeros(T, T)
    for t in range(T):
        scores[t, max(t - 1, 0)] = 20.0
    future = torch.triu(torch.ones(T, T), diagonal=1) == 1
    return torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1)


def _look_one_back_by_diag(T):
    scores = torch.diag(torch.full((T - 1,), 1000.0), diagonal=-1)
    future = torch.triu(torch.ones(T, T), diagonal=1) == 1
    return torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1)


_ONE_BACK_IS_LARGEST = (
    "the largest weight of every row lies one back",
    lambda out, T: bool((out.diagonal(-1) > out[1:].sort(dim=-1).values[:, -2]).all()),
)


def _all_but_one_back(T):
    scores = torch.diag(torch.full((T - 1,), -1000.0), diagonal=-1)
    return torch.softmax(_masked(scores), dim=-1)


_MORE_MASKS = ("triu_indices", "masked_fill_", "masked input", "inf")


def _before_softmax(T, n):
    rows = torch.arange(T)
    return torch.zeros(T, T).index_put((rows, (rows - 1).clamp(min=0)), torch.tensor(float(n)))


def _led(T, n):
    return torch.softmax(_masked(_before_softmax(T, n)), dim=-1)


LOOK_ONE_BACK = Exercise(
    "03.2",
    look_one_back,
    lambda: [(5,), (4,)],
    axes={"return": "T T"},
    needs=(
        ("softmax", ("softmax", "exp", "exp_", "exp2", "logsumexp", "pow", "__rpow__")),
        ("mask", ("masked_fill", "where", "tril", "triu", *_MORE_MASKS)),
    ),
    intermediates=(
        ("the weights of the plain causal mean", lambda T: _plain_average(torch.zeros(T, T))),
        ("the weights of a plain mean over all tokens", lambda T: torch.full((T, T), 1 / T)),
        ("a causal mean that leaves out the token one back", _all_but_one_back),
        *(
            (f"right but for a lead of {n}, too small for a weight of 0.99", partial(_led, n=n))
            for n in (2, 3, 4, 4.5)
        ),
        *(
            (f"the {what} softmax ({n} one back)", lambda T, n=n, f=f: f(_before_softmax(T, n)))
            for what, f in (
                ("scores, before mask and", torch.clone),
                ("masked scores, before the", _masked),
            )
            for n in (1, 10, 20, 30, 50, 100, 1000)
        ),
    ),
    accepted=(_look_one_back_by_diag,),
    atol=0.01,
    properties=(ROWS_SUM_TO_ONE, NO_FUTURE, _ONE_BACK_IS_LARGEST),
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


EXERCISES = (CAUSAL_SOFTMAX, LOOK_ONE_BACK, SAFE_SOFTMAX)
