"""Predictions and exercises of notebook 03: from scores to weights."""

import torch

from helpers.lesson.exercises.properties import NO_FUTURE, ROWS_SUM_TO_ONE
from helpers.lesson.grading import Exercise, Mistake
from helpers.lesson.question import Choice, Prediction
from helpers.lesson.terms import Term

# ---------------------------------------------------------------- 03.1


def causal_softmax(scores):
    """(B, T, T) scores -> (B, T, T) weights: no weight on the future, every row sums to 1."""
    T = scores.shape[-1]
    may_attend = torch.tril(torch.ones(T, T, dtype=torch.bool))
    masked = scores.masked_fill(~may_attend, float("-inf"))
    return torch.softmax(masked, dim=-1)


def _renormalised(scores):
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


def _divided_by_everything(scores):
    return _exponentials(scores) / _exponentials(scores).sum()


CAUSAL_SOFTMAX = Exercise(
    id="03.1",
    title="Causal softmax for a batch",
    reference=causal_softmax,
    cases=_scores,
    axes={"scores": "B T T", "return": "B T T"},
    intermediates=(
        ("the masked scores, before the softmax", _masked),
        ("the softmax of the scores without a mask", lambda scores: torch.softmax(scores, -1)),
        ("the mask, and no weights", lambda scores: torch.tril(torch.ones_like(scores))),
        ("the weights of the plain causal mean: the scores are not used", _plain_average),
        ("the exponentials of the scores, with the future at 0, not yet divided", _exponentials),
        ("the right weights after another softmax", _softmax_twice),
        ("a softmax of the scores with the future set to 0, then of its result", _zero_twice),
    ),
    accepted=(_large_negative,),
    properties=(ROWS_SUM_TO_ONE, NO_FUTURE),
    checked="three batches, one with a very high later score: rows sum to 1, no weight on the future, and each sequence has the weights of its own scores",
    mistakes=(
        Mistake(
            "softmax over the queries (dim=1)",
            change=("dim=-1", "dim=1"),
            message="Your columns sum to 1, your rows do not: the softmax ran along axis 1 of (B, T, T), the queries. Each query shares out its attention "
            "among the keys, the last axis. Plot weights[0] and look at row 0.",
        ),
        Mistake(
            "softmax over the batch (dim=0)",
            change=("dim=-1", "dim=0"),
            message="dim=0 is the batch: the sequences share the weight among themselves, and where all of them are masked the result is nan. "
            "Sequences are never mixed; the keys are the last axis.",
        ),
        Mistake(
            "future filled with 0, or multiplied by tril",
            change=('float("-inf")', "0.0"),
            message="The scores of the future are 0, and a score of 0 is not “no attention”: e⁰ = 1, so every future token keeps a share. "
            "Only minus infinity becomes 0 under exp.",
        ),
        Mistake(
            "mask added as 1 and 0",
            change=(
                'scores.masked_fill(~may_attend, float("-inf"))',
                "scores + may_attend.float()",
            ),
            message="The allowed scores are 1 higher, and that is all: every future token still has its weight. A mask that is added has to be 0 where a token "
            "may attend and minus infinity elsewhere; masked_fill sets it.",
        ),
        Mistake(
            "mask one too far",
            change=("torch.bool)", "torch.bool), diagonal=1"),
            message="Each token attends to one token of its future: the mask begins one too far to the right. It is tril() without a `diagonal`, or "
            "triu(diagonal=1) for the future.",
        ),
        Mistake(
            "masked after the softmax, then divided",
            function=_renormalised,
            message="Right for ordinary scores. But where a later score is 120 above the others, the softmax gives everything to it: the weights that should stay "
            "underflow to 0, and 0 / 0 is nan. Mask the scores first, then take the softmax.",
        ),
        Mistake(
            "a second softmax",
            change=(
                "torch.softmax(masked, dim=-1)",
                "torch.softmax(torch.softmax(masked, dim=-1), dim=-1)",
            ),
            message="These are the right weights after another softmax: the zeros of the future have become e⁰ = 1 before the division. One softmax is enough.",
        ),
        Mistake(
            "divided by the sum of everything",
            function=_divided_by_everything,
            message="All weights of the batch together sum to 1. Each row has to sum to 1: divide it by its own sum, over dim=-1 with keepdim=True.",
        ),
        Mistake(
            "T taken from the batch axis",
            change=("scores.shape[-1]", "scores.shape[0]"),
            message="The mask is (B, B), and does not fit the scores (B, T, T). T is their last axis: scores.shape[-1].",
        ),
        Mistake(
            "diagonal masked too",
            change=("torch.bool)", "torch.bool), diagonal=-1"),
            message="No token attends to itself here, so token 0 has no key left, and its row is 0/0, nan. The diagonal stays in.",
        ),
        Mistake(
            "diagonal masked with -1e9",
            change=(("torch.bool)", "torch.bool), diagonal=-1"), ('float("-inf")', "-1e9")),
            message="Tokens may not attend to themselves here. In row 0 every score became -1e9, and equal scores share evenly: token 0 attends "
            "to the whole future. The diagonal stays in; and -inf would have told you with a nan.",
        ),
        Mistake(
            "masked after the softmax",
            change=("torch.softmax(masked, dim=-1)", "torch.tril(torch.softmax(scores, dim=-1))"),
            message="The future got its share of the weights before it was set to 0, so your rows sum to less than 1. Mask the scores, then take the softmax.",
        ),
        Mistake(
            "no mask",
            change=("softmax(masked", "softmax(scores"),
            message="These are the weights without a mask: every row has weights to the right of the diagonal, the future. (masked_fill returns a new tensor, "
            "and leaves the scores as they are.)",
        ),
        Mistake(
            "past masked instead of future",
            change=("~may_attend", "may_attend"),
            message="The mask is the wrong way round: the past and the diagonal are masked, and the future is left. The last row "
            "has no key left and is nan. masked_fill fills where its mask is True.",
        ),
        Mistake(
            "upper triangle kept",
            change=("tril", "triu"),
            message="Row t attends to t and everything after it. The past lies to the left of the diagonal, where torch.tril keeps it.",
        ),
        Mistake(
            "0 times infinity",
            change=(
                'scores.masked_fill(~may_attend, float("-inf"))',
                'scores + (1 - may_attend.float()) * float("-inf")',
            ),
            message="Everything is nan. A mask of ones and zeros times -inf is -inf where it is 1, but 0 * inf = nan everywhere else. "
            "masked_fill chooses instead of multiplying.",
        ),
        Mistake(
            "no softmax",
            change=("torch.softmax(masked, dim=-1)", "masked"),
            message="These are the masked scores. Weights come after the softmax.",
        ),
        Mistake(
            "scores thrown away",
            change=("scores.masked_fill", "torch.zeros_like(scores).masked_fill"),
            message="Every row is a plain average of its past: the scores make no difference. Mask the scores that are given.",
        ),
        Mistake(
            "filled with -10",
            change=('float("-inf")', "-10.0"),
            message="The scores of the future are -10, which is low, but not nothing: e⁻¹⁰ = 0.00005 of a share is left, and more where the other scores are low too. "
            "Scores may be any numbers, so only minus infinity is low enough: float('-inf').",
        ),
        Mistake(
            "filled with -1",
            change=('float("-inf")', "-1.0"),
            message="The scores of the future are -1, so every future token keeps a share of e⁻¹ = 0.37 before the division. "
            "Scores may be any numbers, so only minus infinity is low enough: float('-inf').",
        ),
        Mistake(
            "filled with plus infinity",
            change=('float("-inf")', 'float("inf")'),
            message="The future got the highest score there is, +inf, and inf / inf is nan; only the last row has no future. "
            "A minus is missing: float('-inf').",
        ),
    ),
    hints=(
        "Take the two steps that you saw for the zeros above: mask the scores of the future, then apply softmax.",
        "masked_fill(mask, value) returns a new tensor, with the value wherever the mask is True. A (T, T) mask is broadcast over the batch.",
        "Fill the future with float('-inf'), then apply softmax along the axis of the keys, which is the last one.",
    ),
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


LOOK_ONE_BACK = Exercise(
    id="03.2",
    title="Attend one back",
    reference=look_one_back,
    cases=lambda: [(5,), (4,)],
    axes={"return": "T T"},
    needs=(
        ("softmax", ("softmax", "exp", "exp_", "exp2", "logsumexp")),
        ("mask", ("masked_fill", "where", "tril", "triu", "masked_fill_", "masked input")),
    ),
    intermediates=(
        ("the weights of the plain causal mean", lambda T: _plain_average(torch.zeros(T, T))),
        ("the weights of a plain mean over all tokens", lambda T: torch.full((T, T), 1 / T)),
        ("a causal mean that leaves out the token one back", _all_but_one_back),
    ),
    accepted=(_look_one_back_by_diag,),
    atol=0.01,
    properties=(ROWS_SUM_TO_ONE, NO_FUTURE, _ONE_BACK_IS_LARGEST),
    checked="T=5 and T=4: every token gives at least 0.99 of its weight to the token before it, and token 0 to itself",
    mistakes=(
        Mistake(
            "looks forward",
            change=("max(t - 1, 0)", "min(t + 1, T - 1)"),
            message="What is left is the plain causal average: no allowed score stands out. High scores to the right of the diagonal lie in the future, where the "
            "mask removes them. One back is column t - 1.",
        ),
        Mistake(
            "scores too gentle",
            change=("20.0", "1.0"),
            message="The right cell is the largest in its row, but a score only 1 above the others wins by a factor of e = 2.72. "
            "The others are many: make the lead larger, say 20.",
        ),
        Mistake(
            "softmax down the columns",
            change=("dim=-1)", "dim=0)"),
            message="Each column sums to 1: the softmax ran along dim=0, the queries. Each row has to sum to 1, so it runs along the keys, dim=-1.",
        ),
        Mistake(
            "scores still too gentle",
            change=("20.0", "5.0"),
            message="Nearly: a lead of 5 gives e⁵ = 148 times the weight of each other token, and from row 2 on that is less than 0.99 of the row. "
            "Make the lead larger, say 20.",
        ),
        Mistake(
            "row and column swapped",
            change=(("range(T)", "range(1, T)"), ("[t, max(t - 1, 0)]", "[t - 1, t]")),
            message="The high scores are in the cells [t - 1, t], right of the diagonal: row t - 1 would look at its future, and the mask removed "
            "them. Row = who reads: token t reads t - 1 in the cell [t, t - 1].",
        ),
        Mistake(
            "row and column swapped, from t = 0 on",
            change=("[t, max(t - 1, 0)]", "[t - 1, t]"),
            message="The high scores are in the cells [t - 1, t], right of the diagonal, where the mask removed them; for t = 0 that is [-1, 0], "
            "the last row. Row = who reads: token t reads t - 1 in the cell [t, t - 1].",
        ),
        Mistake(
            "looks at itself",
            change=("max(t - 1, 0)", "t"),
            message="The high scores are on the diagonal: every token looks at itself. One back is the diagonal below: column t - 1.",
        ),
        Mistake(
            "token 0 has no key",
            change=(
                "torch.triu(torch.ones(T, T), diagonal=1) == 1",
                "torch.diag(torch.ones(T - 1), diagonal=-1) == 0",
            ),
            message="With everything but the token before masked, token 0 has no allowed cell: 0/0, nan. Use high scores rather than "
            "a stricter mask, or let token 0 see itself.",
        ),
        Mistake(
            "looks two back",
            change=("max(t - 1, 0)", "max(t - 2, 0)"),
            message="The high scores lie two below the diagonal. One back is column t - 1.",
        ),
        Mistake(
            "row 0 wraps round",
            change=(
                ("max(t - 1, 0)", "t - 1"),
                ('scores.masked_fill(future, float("-inf"))', "scores"),
            ),
            message="Row 0 attends to the last token, in its future: the index -1 counts from the end, and torch.roll wraps round the edge. Mask the future.",
        ),
        Mistake(
            "future not masked",
            change=(
                ("range(T)", "range(1, T)"),
                ('scores.masked_fill(future, float("-inf"))', "scores"),
            ),
            message="Row 0 has equal scores only, and spreads its weight over all tokens, the future included. Mask the future.",
        ),
    ),
    hints=(
        "You choose the scores. In row t, which one has to be much higher than the others?",
        "Put 20 into the cells [t, t - 1] and leave the others at 0. Then mask the future and apply softmax.",
        "Token 0 has no token before it. With the future masked, only its own cell is left, so it gets the weight 1 for any score.",
    ),
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
    id="03.3",
    title="A softmax that does not overflow",
    reference=safe_softmax,
    cases=_large_scores,
    axes={"scores": "... T", "return": "... T"},
    intermediates=(
        ("the exponentials, not yet divided by their sum", _shifted_exponentials),
        ("the scores minus the largest of their row", lambda scores: _shifted(scores)),
        ("2 to the power of the scores, divided by its sum, with 2 in the place of e", _base_two),
        ("the scores divided by their sum, without exponentials", _no_exponentials),
    ),
    accepted=(_by_logsumexp,),
    without="softmax",
    properties=(ROWS_SUM_TO_ONE,),
    checked="small scores, scores around 1000, and rows with very different scores in one matrix",
    mistakes=(
        Mistake(
            "overflow",
            change=("scores - largest", "scores"),
            message="Right for small scores. For those around 1000 the exponentials are inf, and inf / inf is nan. Subtract from each row its own largest score "
            "(max(dim=-1).values, not the place where it stands), so that no exponent is above 0.",
        ),
        Mistake(
            "largest of the whole matrix",
            change=("scores.max(dim=-1, keepdim=True).values", "scores.max()"),
            message="A row that lies far below the others is nan: one number was subtracted from all rows, exp(-1000) is 0, and 0/0 is nan. "
            "Each row needs its own largest score.",
        ),
        Mistake(
            "less than the largest subtracted",
            change=("scores - largest", "scores - scores.mean(dim=-1, keepdim=True)"),
            message="Right, until a score lies more than 88 above what was subtracted from its row, such as its mean or its smallest score: then the exponential "
            "is inf. Subtract the largest score of the row, and no exponent is above 0.",
        ),
        Mistake(
            "not divided",
            change=(" / exp.sum(dim=-1, keepdim=True)", ""),
            message="These are the exponentials; the largest of each row is 1. Softmax also divides each row by its sum.",
        ),
        Mistake(
            "divided down the columns",
            change=("exp.sum(dim=-1", "exp.sum(dim=-2"),
            message="Each column sums to 1, not each row: the exponentials were added down the columns (dim=-2). Add them along the row, dim=-1.",
        ),
        Mistake(
            "divided by the grand total",
            change=("exp.sum(dim=-1, keepdim=True)", "exp.sum()"),
            message="All weights together sum to 1: the exponentials were divided by the sum of all rows. Each row needs its own sum.",
        ),
        Mistake(
            "divided by the largest instead of subtracted",
            change=("scores - largest", "scores / largest"),
            message="Adding or subtracting a constant leaves the softmax as it is; dividing the scores changes their distances, and so the weights.",
        ),
        Mistake(
            "no keepdim",
            change=("exp.sum(dim=-1, keepdim=True)", "exp.sum(dim=-1)"),
            message="A max or a sum over each of R rows has the shape (R,), and is lined up with the columns. That does not fit (R, S) "
            "unless the matrix is square, and is silently wrong then. With keepdim=True the shape is (R, 1): row 0 meets number 0.",
        ),
        Mistake(
            "torch's softmax",
            change=("exp / exp.sum(dim=-1, keepdim=True)", "torch.softmax(scores, dim=-1)"),
            message="The numbers are right, since torch made them: its softmax does not overflow either. The point is to find out how. "
            "Use exp, a sum, and one subtraction.",
        ),
        Mistake(
            "max without .values",
            change=(".values", ""),
            message="max(dim=…) returns two tensors, the largest numbers and where they stand. Write .values after it, or use amax, which "
            "returns the numbers alone.",
        ),
    ),
    hints=(
        "You may subtract any number from a whole row. Which one makes sure that no exponent in this row is above 0?",
        "scores.max(dim=-1, keepdim=True).values holds the largest score of each row, as a column.",
        "Take exp of the difference, then divide it by the sum of its row, with keepdim=True.",
    ),
)


EXERCISES = (CAUSAL_SOFTMAX, LOOK_ONE_BACK, SAFE_SOFTMAX)


# ---------------------------------------------------------------- predictions

PREDICTIONS = (
    Prediction(
        id="03.p1",
        question="All scores are 0, the future is filled with -inf, and softmax is applied along the rows. "
        "How close are these weights to the matrix of notebook 02, a triangle of ones divided by its row sums?",
        choices={
            "a": Choice(
                "exactly equal",
                "e⁰ is exactly 1, e^-inf is exactly 0, and a sum of up to 8 ones is exact. Both ways end with the same division, 1 / (t + 1), "
                "so they round to the same number. What matters for attention is only that masked zeros give plain averages.",
            ),
            "b": Choice(
                "equal up to rounding, about 10⁻⁸",
                "Two computations usually round differently, as in notebook 02. Here nothing is rounded before the last step, "
                "and the last step is the same division in both.",
            ),
            "c": Choice(
                "different: exponentials do not give equal weights",
                "For unequal scores that is right. Here all allowed scores are equal, so their exponentials are equal, and so are the weights.",
            ),
        },
        answer="a",
    ),
    Prediction(
        id="03.p2",
        question="The future is filled with 0 instead of -inf. All other scores are 0, too. What is row 0 of the weights (T = 8)?",
        choices={
            "a": Choice(
                "1 0 0 0 0 0 0 0, because 0 means no attention",
                "A weight of 0 means no attention, but this 0 is a score. Its exponential is e⁰ = 1, as large as that of token 0 itself.",
            ),
            "b": Choice(
                "0.125 everywhere",
                "All eight scores are 0, so all eight exponentials are 1, and each weight is 1/8. Token 0 attends to the whole future.",
            ),
            "c": Choice(
                "nan, because 0 cannot be used as a mask",
                "Any number can be filled in, and nothing fails. The rows sum to 1 and the shape is right, but token 0 attends to the future.",
            ),
        },
        answer="b",
    ),
    Prediction(
        id="03.p3",
        question="Start from scores of 1 instead of 0, fill the future with -inf, and apply softmax. What happens to the weights?",
        choices={
            "a": Choice(
                "they stay the same",
                "Every exponential is now e instead of 1. The sum of the row is e times as large, too, so the division cancels the factor.",
            ),
            "b": Choice(
                "each is e = 2.72 times as large",
                "That is true of the exponentials. But each row is then divided by its sum, which is e times as large, too.",
            ),
            "c": Choice(
                "the rows no longer sum to 1",
                "The last step of softmax divides each row by its sum, so each row still sums to 1.",
            ),
        },
        answer="a",
    ),
    Prediction(
        id="03.p4",
        question="Look at the printed matrix and at its row sums. What did the author do?",
        choices={
            "a": Choice(
                "masked after the softmax, and did not divide by the row sums again",
                "Before such a mask, the rows sum to 1, and the mask can only make the sums smaller. Here three rows sum to 1.71, 2.28 and 2.57.",
            ),
            "b": Choice(
                "forgot the mask",
                "Without a mask, all weights would be positive. Here every entry above the diagonal is 0.",
            ),
            "c": Choice(
                "applied the softmax along the columns",
                "Every column sums to 1, and the last column holds a single 1. softmax(dim=1) does this. It is right for a (T, T) matrix, "
                "and wrong for (B, T, T), where axis 1 is the query.",
            ),
            "d": Choice(
                "forgot the softmax",
                "Then we would see negative scores, and -inf in the future. Here all numbers lie between 0 and 1.",
            ),
        },
        answer="c",
    ),
)

TERMS = (
    Term(
        "score",
        "A number of any size and sign that says how much one token matters to another, before softmax makes it a weight.",
        also=("logit", "attention score"),
        everyday=True,
    ),
    Term(
        "softmax",
        "The function that takes the exponential of each score and divides each row by its sum, so that no weight is negative and each row sums to 1.",
    ),
    Term(
        "mask",
        "A matrix of True and False that says which token may attend to which.",
        also=("attention mask",),
        everyday=True,
    ),
    Term(
        "causal mask",
        "The mask that lets each token attend to itself and to the tokens before it.",
        also=("look-ahead mask",),
    ),
    Term(
        "underflow",
        "A positive number that is too small for its format becomes exactly 0.",
    ),
    Term(
        "temperature",
        "A number by which all scores are divided before the softmax: the lower it is, the more unequal the weights become.",
    ),
    Term(
        "entropy",
        "A measure in bits of how spread out weights are: 0 if one token has all of them, log₂ n if n tokens share them equally.",
    ),
)
