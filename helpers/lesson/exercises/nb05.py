"""Predictions and exercises of notebook 05: scaling."""

import torch

from helpers.attention import causal_mask
from helpers.clinic.bugs import ATTENTION_BUGS
from helpers.lesson.exercises.attention_bugs import as_mistake
from helpers.lesson.exercises.properties import ROWS_SUM_TO_ONE
from helpers.lesson.grading import Exercise, Mistake
from helpers.lesson.question import Choice, Prediction
from helpers.lesson.terms import Term


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
    id="05.1",
    title="Measure the variance of scores",
    reference=score_variance,
    axes={"q": "B T d", "k": "B T d"},
    intermediates=tuple((name, _another(compute)) for name, compute in _OTHER_NUMBERS),
    cases=_many_pairs,
    accepted=(_by_einsum, _divided_by_n, _mean_square),
    checked="two large batches, raw and scaled, over all pairs of positions",
    mistakes=(
        Mistake(
            "never scaled",
            change=("if scaled:", "if False:"),
            message="Right for raw scores; scaled=True must divide the scores by √d.",
        ),
        Mistake(
            "always scaled",
            change=("if scaled:", "if True:"),
            message="Right for scaled scores; scaled=False must leave the scores as they are.",
        ),
        Mistake(
            "scaled the other way round",
            change=("if scaled:", "if not scaled:"),
            message="The scores are divided when scaled is False, and not when it is True. Turn the condition round.",
        ),
        Mistake(
            "divided by d",
            change=(" ** 0.5", ""),
            message="The scores are divided by d itself. Divide by its square root, d ** 0.5.",
        ),
        Mistake(
            "divided by d / 2",
            change=("q.shape[-1] ** 0.5", "(q.shape[-1] / 2)"),
            message="The scores are divided by half of d. If you wrote d ** 1 / 2: Python reads (d ** 1) / 2. The root is d ** 0.5.",
        ),
        Mistake(
            "divided by 2 d",
            change=("q.shape[-1] ** 0.5", "(2 * q.shape[-1])"),
            message="The scores are divided by 2 · d. If you wrote scores / d ** 1 / 2: Python divides by d ** 1 and then by 2. The root is d ** 0.5.",
        ),
        Mistake(
            "multiplied by √d",
            change=("/ q.shape", "* q.shape"),
            message="The scores are multiplied by √d (or divided by its inverse). Divide by it.",
        ),
        Mistake(
            "divided by √T",
            change=("q.shape[-1]", "q.shape[-2]"),
            message="The scores are divided by √T, and T is the number of tokens. A score adds up the d channels of a query: q.shape[-1].",
        ),
        Mistake(
            "divided by √16 always",
            change=("q.shape[-1] ** 0.5", "4"),
            message="The scores are divided by √16 = 4, which is right for queries of 16 channels. Others have another length: q.shape[-1] ** 0.5.",
        ),
        Mistake(
            "standard deviation",
            change=("var()", "std()"),
            message="This is the standard deviation, the square root of the variance. Tensors have var().",
        ),
        Mistake(
            "the variance was divided, not the scores",
            change=("scores = scores /", "return scores.var() /"),
            message="Dividing scores by √d divides their variance by d, not by √d. Scale first, measure afterwards.",
        ),
        Mistake(
            "only a token with itself",
            change=("q @ k.mT", "(q * k).sum(dim=-1)"),
            message="This is the variance of the scores of query t for key t alone, as (q * k).sum(-1) gives them. All pairs: q @ k.mT.",
        ),
        Mistake(
            "products instead of scores",
            change=("q @ k.mT", "q * k"),
            message="This is the variance of single products, near 1. A score adds up d of them.",
        ),
    ),
    hints=(
        "One matrix product gives all scores of a batch: (B, T, d) times (B, d, T).",
        "If scaled is true, divide the scores by √d before you measure. d is the last axis of q.",
        "scores.var() without dim is the variance of all scores together.",
    ),
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


def _with_bug(bug):
    """The weights of a bug of attention as an answer to 05.2."""

    def scaled_weights(q, k):
        return bug.compute(q, k, q)[1]

    return scaled_weights


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
    id="05.2",
    title="The same spread for every d",
    reference=scaled_weights,
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
    properties=(ROWS_SUM_TO_ONE,),
    checked="two batches with B, T and d all different",
    mistakes=(
        Mistake(
            "not scaled",
            change=(" / d**0.5", ""),
            message="The rows are too sharp: the scores are not divided. Divide them by √d.",
        ),
        Mistake(
            "divided by √T",
            change=("d**0.5", "T**0.5"),
            message="The scores are divided by √T, and T is the number of tokens. A score is a sum over the d channels of a query.",
        ),
        Mistake(
            "divided by d",
            change=("d**0.5", "d"),
            message="The scores are divided by d itself, so all rows are nearly uniform. The size of a score grows with √d.",
        ),
        Mistake(
            "divided by d / 2",
            change=("d**0.5", "(d / 2)"),
            message="The scores are divided by half of d. If you wrote d ** 1 / 2: Python reads (d ** 1) / 2. The root is d ** 0.5.",
        ),
        Mistake(
            "divided by 2 d",
            change=("d**0.5", "(2 * d)"),
            message="The scores are divided by 2 · d. If you wrote scores / d ** 1 / 2: Python divides by d ** 1 and then by 2. The root is d ** 0.5.",
        ),
        Mistake(
            "divided by √16 always",
            change=("d**0.5", "4"),
            message="The scores are divided by √16 = 4, which is right for queries of 16 channels. Others have another length: q.shape[-1] ** 0.5.",
        ),
        Mistake(
            "multiplied by √d",
            change=("/ d**0.5", "* d**0.5"),
            message="The scores are multiplied by √d (or divided by its inverse): they are d times larger than they should be.",
        ),
        Mistake(
            "scaled after the softmax",
            change=((" / d**0.5", ""), ("dim=-1)", "dim=-1) / d**0.5")),
            message="The weights were scaled, not the scores: rows sum to 1/√d. Scale before the softmax.",
        ),
        Mistake(
            "divided by √B",
            change=("d**0.5", "q.shape[0] ** 0.5"),
            message="The scores are divided by √B, the square root of the number of sequences. The length of a query is the last axis, q.shape[-1].",
        ),
        Mistake(
            "no mask",
            change=('scores.masked_fill(~causal_mask(T), float("-inf"))', "scores"),
            message="Well scaled, but the future is visible: the mask is missing.",
        ),
        *(as_mistake(bug, _with_bug(bug)) for bug in map(ATTENTION_BUGS.get, _BUGS_OF_THE_WEIGHTS)),
    ),
    hints=(
        "A score is one dot product. How many products does it add up: B, T or d of them?",
        "The number of channels of a query is q.shape[-1].",
        "Divide the scores by d ** 0.5, then mask the future, then take the softmax of each row.",
    ),
)


# ---------------------------------------------------------------- 05.3


def soften(scores, temperature):
    """(..., T) scores -> (..., T) weights at this temperature, which is above 0."""
    return torch.softmax(scores / temperature, dim=-1)


def _power_of_weights(scores, temperature):
    weights = torch.softmax(scores, dim=-1) ** (1 / temperature)
    return weights / weights.sum(dim=-1, keepdim=True)


def _scores(*shape):
    return 2 * torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def _mixed(scores, temperature):
    weights = torch.softmax(scores, dim=-1)
    return (1 - temperature) * weights + temperature / scores.shape[-1]


SOFTEN = Exercise(
    id="05.3",
    title="Temperature",
    reference=soften,
    axes={"scores": "... T", "return": "... T"},
    intermediates=(
        ("the scores divided by the temperature, before the softmax", lambda s, t: s / t),
        ("the exponentials, not yet divided by their sum", lambda s, t: (s / t).exp()),
        ("the weights at temperature 1, mixed with equal weights", _mixed),
    ),
    cases=lambda: [(_scores(3, 5), 2.0), (_scores(2, 4, 3), 0.5)],
    accepted=(_power_of_weights,),
    properties=(ROWS_SUM_TO_ONE,),
    checked="a warm and a cold temperature, a matrix and a batch of matrices",
    mistakes=(
        Mistake(
            "multiplied",
            change=("scores / temperature", "scores * temperature"),
            message="The scores are multiplied by the temperature: the weights get sharper as it gets warmer. Divide by it.",
        ),
        Mistake(
            "divided afterwards",
            change=("(scores / temperature, dim=-1)", "(scores, dim=-1) / temperature"),
            message="The weights were divided: rows sum to 1/temperature. Divide the scores.",
        ),
        Mistake(
            "temperature not used",
            change=(" / temperature", ""),
            message="Every temperature gives the same weights. (A temperature that is added to all scores, or that multiplies both the exponentials and their sum, "
            "cancels out: notebook 03.) Divide the scores by it, before the softmax.",
        ),
        Mistake(
            "divided by √temperature",
            change=("/ temperature", "/ temperature**0.5"),
            message="The scores are divided by √temperature. A temperature divides as it is; the root in √d came from the size of a sum.",
        ),
        Mistake(
            "along the first axis",
            change=("dim=-1", "dim=0"),
            message="The softmax ran along the first axis. A row is the last: dim=-1.",
        ),
        Mistake(
            "along dim=1",
            change=("dim=-1", "dim=1"),
            message="Right for a matrix, but in a batch of matrices the softmax ran down the columns: dim=1 is the last axis of a matrix only. dim=-1 is the last of both.",
        ),
        Mistake(
            "divided by the sum of everything",
            change=(
                "torch.softmax(scores / temperature, dim=-1)",
                "(scores / temperature).exp() / (scores / temperature).exp().sum()",
            ),
            message="All rows together sum to 1: the exponentials were divided by the sum of everything. Each row needs its own sum, sum(dim=-1, keepdim=True).",
        ),
    ),
    hints=(
        "√d was a divisor that the shapes decide. Here the divisor is an argument.",
        "Divide the scores, then take the softmax of the last axis. It fits in one line.",
    ),
)


EXERCISES = (SCORE_VARIANCE, SCALED_WEIGHTS, SOFTEN)


# ---------------------------------------------------------------- predictions

PREDICTIONS = (
    Prediction(
        id="05.p1",
        question="The tokens x have variance 1. The query layer and the key layer are nn.Linear(32, 16) with PyTorch's default "
        "initialisation, so the entries of their matrices have variance 1/(3 · 32). What variance do the raw scores have?",
        choices={
            "a": Choice(
                "about 16",
                "That would be right for queries and keys of variance 1. A channel of q adds up 32 products of variance "
                "1 · 1/(3 · 32), so q has variance ⅓ only, and so has k.",
            ),
            "b": Choice(
                "about 1",
                "The division by √16 would give this, if queries and keys had variance 1. These have ⅓, and their scores are not divided yet.",
            ),
            "c": Choice(
                "about 1.8",
                "A channel of q adds up 32 products of variance 1 · 1/(3 · 32), so q has variance ⅓, and so has k. "
                "A score adds up 16 products of variance ⅓ · ⅓, and 16/9 is 1.78.",
            ),
            "d": Choice(
                "about 0.3",
                "That is the variance of q, and of k: 32 products of variance 1/(3 · 32) give ⅓. A score adds up 16 products of q and k.",
            ),
        },
        answer="c",
    ),
    Prediction(
        id="05.p2",
        question="The softmax of 0.1, -0.2, 0.3, -0.2, 0.5 has a largest weight of 0.29. Now all five scores are multiplied by 9. "
        "What happens to the largest weight?",
        choices={
            "a": Choice(
                "it stays 0.29, because softmax normalises the row",
                "Softmax makes each row sum to 1. How evenly the 1 is shared out depends on the differences between scores, and these are now 9 times as large.",
            ),
            "b": Choice(
                "it grows to about 0.84",
                "The two largest scores differed by 0.2 and now differ by 1.8. So the largest weight was e to the power of 0.2 = 1.2 times the next one, "
                "and now it is e to the power of 1.8 = 6.0 times the next one.",
            ),
            "c": Choice(
                "it falls to about 0.21: all five weights become nearly equal",
                "That happens when the scores are divided by 9, because then their differences shrink. Multiplied by 9, the differences grow.",
            ),
        },
        answer="b",
    ),
    Prediction(
        id="05.p3",
        question="Somebody forgets to divide the scores of our head of nn.Linear(32, 16) layers by √16, and trains it "
        "with a small learning rate, from PyTorch's default initialisation. What will they most likely see?",
        choices={
            "a": Choice(
                "an error, or nan",
                "Every step is defined without the division, and these scores are small. PyTorch cannot know which size you wanted.",
            ),
            "b": Choice(
                "a head that does not learn, like the one at the beginning",
                "That head had queries and keys of variance 1 and 256 channels: scores of variance 256. Here the default weights are small, "
                "so the scores have variance 1.9 even without the division, and few rows are saturated.",
            ),
            "c": Choice(
                "nothing unusual",
                "The scores have variance 1.9 at initialisation, so few rows are saturated. Dividing scores by 4 is the same as dividing "
                "W_query by 4, and training can make W_query smaller. That a head trains does not show that it is right: compare it with a reference.",
            ),
        },
        answer="c",
    ),
)

TERMS = (
    Term("variance", "The mean squared distance of some numbers from their mean."),
    Term(
        "standard deviation",
        "The square root of the variance: a typical distance of the numbers from their mean.",
    ),
    Term(
        "initialisation",
        "The random values that the parameters of a model get before training, and the rule by which they are drawn.",
        also=("init",),
    ),
    Term(
        "saturation",
        "The state of a softmax that gives nearly all its weight to one key, so that a small change of a score changes hardly any weight.",
        also=("saturated",),
    ),
    Term(
        "derivative",
        "The change of a result divided by the change of one of its numbers, for a very small change.",
        also=("sensitivity",),
    ),
    Term(
        "chain rule",
        "If a result depends on a number through several steps, its derivative is the product of the derivatives of the steps.",
    ),
    Term(
        "backpropagation",
        "The computation of all derivatives of a result in one pass through its steps, from the last to the first.",
        also=("backward pass",),
    ),
    Term(
        "upstream gradient",
        "The gradient of the loss with respect to the output of a part of a model, which arrives there from the parts that come after.",
    ),
)
