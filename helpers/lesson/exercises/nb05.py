"""Predictions and exercises of notebook 05: scaling."""

import torch

from helpers.attention import causal_mask
from helpers.clinic.bugs import ATTENTION_BUGS as ILLNESSES
from helpers.lesson.grading import Choice, Exercise, Mistake, Prediction

# ---------------------------------------------------------------- 05.1


def score_variance(q, k, scaled):
    """q, k (B, T, d) -> the variance of the scores q · k, divided by the root of d if scaled."""
    scores = q @ k.mT  # (B, T, T)
    if scaled:
        scores = scores / q.shape[-1] ** 0.5
    return scores.var()


def _variance(q, k, divisor):
    return (q @ k.mT / divisor).var()


def _never_scaled(q, k, scaled):
    return _variance(q, k, 1)


def _always_scaled(q, k, scaled):
    return _variance(q, k, q.shape[-1] ** 0.5)


def _flag_inverted(q, k, scaled):
    return score_variance(q, k, not scaled)


def _variance_by_d(q, k, scaled):
    return _variance(q, k, q.shape[-1] if scaled else 1)


def _variance_multiplied(q, k, scaled):
    return _variance(q, k, q.shape[-1] ** -0.5 if scaled else 1)


def _variance_root_of_T(q, k, scaled):
    return _variance(q, k, q.shape[-2] ** 0.5 if scaled else 1)


def _variance_by_4(q, k, scaled):
    return _variance(q, k, 4 if scaled else 1)


def _std(q, k, scaled):
    scores = q @ k.mT
    if scaled:
        scores = scores / q.shape[-1] ** 0.5
    return scores.std()


def _variance_over_root(q, k, scaled):
    variance = (q @ k.mT).var()
    return variance / q.shape[-1] ** 0.5 if scaled else variance


def _only_matching_positions(q, k, scaled):
    scores = (q * k).sum(dim=-1)
    if scaled:
        scores = scores / q.shape[-1] ** 0.5
    return scores.var()


def _of_products(q, k, scaled):
    products = q * k
    if scaled:
        products = products / q.shape[-1] ** 0.5
    return products.var()


def _by_einsum(q, k, scaled):
    factor = q.shape[-1] ** -0.5 if scaled else 1.0
    return (factor * torch.einsum("bqd,bkd->bqk", q, k)).var()


def _divided_by_n(q, k, scaled):
    return (q @ k.mT / (q.shape[-1] ** 0.5 if scaled else 1)).var(unbiased=False)


def _mean_square(q, k, scaled):
    scores = q @ k.mT / (q.shape[-1] ** 0.5 if scaled else 1)
    return ((scores - scores.mean()) ** 2).mean()


# ---------------------------------------------------------------- 05.2


def scaled_weights(q, k):
    """q, k (B, T, d) -> (B, T, T) causal weights, scores scaled by the root of d."""
    T, d = q.shape[-2:]
    scores = q @ k.mT / d**0.5
    return torch.softmax(scores.masked_fill(~causal_mask(T), float("-inf")), dim=-1)


def _with_factor(q, k, factor, factor_afterwards=1.0):
    scores = (q @ k.mT * factor).masked_fill(~causal_mask(q.shape[-2]), float("-inf"))
    return torch.softmax(scores, dim=-1) * factor_afterwards


def _not_scaled(q, k):
    return _with_factor(q, k, 1.0)


def _root_of_T(q, k):
    return _with_factor(q, k, q.shape[-2] ** -0.5)


def _by_d(q, k):
    return _with_factor(q, k, 1 / q.shape[-1])


def _by_4(q, k):
    return _with_factor(q, k, 1 / 4)


def _multiplied(q, k):
    return _with_factor(q, k, q.shape[-1] ** 0.5)


def _after_softmax(q, k):
    return _with_factor(q, k, 1.0, q.shape[-1] ** -0.5)


def _root_of_B(q, k):
    return _with_factor(q, k, q.shape[0] ** -0.5)


def _no_mask(q, k):
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)


def _ill(name):
    """The weights of the illness of this name, as an answer to 05.2."""

    def scaled_weights(q, k):
        return ILLNESSES[name].compute(q, k, q)[1]

    return scaled_weights


_ILL_WEIGHTS = (
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


def _scaled_queries(q, k):
    fourth_root = q.shape[-1] ** 0.25
    scores = (q / fourth_root) @ (k / fourth_root).mT
    return torch.softmax(scores.masked_fill(torch.ones_like(scores).tril() == 0, -1e9), dim=-1)


# ---------------------------------------------------------------- 05.3


def soften(scores, temperature):
    """(..., T) scores -> (..., T) weights at this temperature; it must be above 0."""
    return torch.softmax(scores / temperature, dim=-1)


def _multiplied_by_temperature(scores, temperature):
    return torch.softmax(scores * temperature, dim=-1)


def _divided_afterwards(scores, temperature):
    return torch.softmax(scores, dim=-1) / temperature


def _temperature_not_used(scores, temperature):
    return torch.softmax(scores, dim=-1)


def _root_of_temperature(scores, temperature):
    return torch.softmax(scores / temperature**0.5, dim=-1)


def _softened_along_first(scores, temperature):
    return torch.softmax(scores / temperature, dim=0)


def _softened_along_second(scores, temperature):
    return torch.softmax(scores / temperature, dim=1)


def _shared_by_all(scores, temperature):
    shares = torch.exp(scores / temperature)
    return shares / shares.sum()


def _power_of_weights(scores, temperature):
    weights = torch.softmax(scores, dim=-1) ** (1 / temperature)
    return weights / weights.sum(dim=-1, keepdim=True)


def _pairs(*shapes):
    generator = torch.Generator().manual_seed(0)
    return [tuple(torch.randn(*shape, generator=generator) for _ in range(2)) for shape in shapes]


def _many_pairs():
    """So many scores that a variance divided by n equals one divided by n - 1: both are right."""
    pairs = _pairs((3, 250, 16), (2, 320, 9))
    return [(*pair, scaled) for pair in pairs for scaled in (False, True)]


def _scores(*shape):
    return 2 * torch.randn(*shape, generator=torch.Generator().manual_seed(0))


_ROWS_SUM_TO_ONE = (
    "rows sum to 1",
    lambda out, *_: torch.allclose(out.sum(-1), torch.ones(out.shape[:-1]), atol=1e-5),
)

EXERCISES = (
    Exercise(
        id="05.1",
        title="Measure the variance",
        reference=score_variance,
        cases=_many_pairs,
        accepted=(_by_einsum, _divided_by_n, _mean_square),
        checked="two large batches, raw and scaled, over all pairs of positions",
        mistakes=(
            Mistake(
                "never scaled",
                _never_scaled,
                "Right for raw scores; scaled=True must divide the scores by the root of d.",
            ),
            Mistake(
                "always scaled",
                _always_scaled,
                "Right for scaled scores; scaled=False must leave the scores as they are.",
            ),
            Mistake(
                "scaled the other way round",
                _flag_inverted,
                "You scale when scaled is False, and do not when it is True. Turn the condition round.",
            ),
            Mistake(
                "divided by d",
                _variance_by_d,
                "You divided the scores by d itself. Divide by its root, d ** 0.5.",
            ),
            Mistake(
                "multiplied by the root",
                _variance_multiplied,
                "You multiplied the scores by the root of d (or divided by its inverse). Divide by it.",
            ),
            Mistake(
                "root of T",
                _variance_root_of_T,
                "You divided by the root of T, the number of tokens. A score adds up the d channels of a query: q.shape[-1].",
            ),
            Mistake(
                "divided by √16 always",
                _variance_by_4,
                "You divided by √16 = 4, which is right for queries of 16 channels. Others have another length: q.shape[-1] ** 0.5.",
            ),
            Mistake(
                "standard deviation",
                _std,
                "This is the standard deviation, the root of the variance. Tensors have var().",
            ),
            Mistake(
                "the variance was divided, not the scores",
                _variance_over_root,
                "Dividing scores by √d divides their variance by d, not by √d. Scale first, measure afterwards.",
            ),
            Mistake(
                "only a token with itself",
                _only_matching_positions,
                "(q * k).sum(-1) pairs query t with key t only. All pairs: q @ k.mT.",
            ),
            Mistake(
                "products instead of scores",
                _of_products,
                "This is the variance of single products, near 1. A score adds up d of them.",
            ),
        ),
        hints=(
            "All scores of a batch are one product: (B, T, d) with (B, d, T).",
            "scores.var() without dim takes all of them together.",
        ),
    ),
    Exercise(
        id="05.2",
        title="A scaled head",
        reference=scaled_weights,
        cases=lambda: _pairs((3, 5, 16), (2, 6, 9)),
        accepted=(_scaled_queries,),
        properties=(_ROWS_SUM_TO_ONE,),
        checked="two batches with B, T and d all different",
        mistakes=(
            Mistake(
                "not scaled",
                _not_scaled,
                "The scores were not divided. The rows are right in kind and too sharp: divide by the root of d.",
            ),
            Mistake(
                "root of T",
                _root_of_T,
                "You divided by the root of T, the number of tokens. A score is a sum over the d channels of a query.",
            ),
            Mistake(
                "divided by d",
                _by_d,
                "You divided by d itself. Its root is the size of a score; dividing by d makes all rows nearly uniform.",
            ),
            Mistake(
                "divided by √16 always",
                _by_4,
                "You divided by √16 = 4, which is right for queries of 16 channels. Others have another length: q.shape[-1] ** 0.5.",
            ),
            Mistake(
                "multiplied by the root",
                _multiplied,
                "You multiplied by the root (or divided by its inverse): the scores are d times larger than they should be.",
            ),
            Mistake(
                "scaled after the softmax",
                _after_softmax,
                "The weights were scaled, not the scores: rows sum to 1/√d. Scale before the softmax.",
            ),
            Mistake(
                "root of B",
                _root_of_B,
                "You divided by the root of the batch size. Is it shape[0]? The length of a query is the last axis.",
            ),
            Mistake(
                "no mask", _no_mask, "Well scaled, but the future is visible: the mask is missing."
            ),
            *(Mistake(name, _ill(name), ILLNESSES[name].message) for name in _ILL_WEIGHTS),
        ),
        hints=(
            "Which of B, T, d counts the products that are added up in one score?",
            "q.shape[-1] is the length of a query.",
            "scores / d ** 0.5, then mask, then softmax.",
        ),
    ),
    Exercise(
        id="05.3",
        title="Temperature",
        reference=soften,
        cases=lambda: [(_scores(3, 5), 2.0), (_scores(2, 4, 3), 0.5)],
        accepted=(_power_of_weights,),
        properties=(_ROWS_SUM_TO_ONE,),
        checked="a warm and a cold temperature, a matrix and a batch of matrices",
        mistakes=(
            Mistake(
                "multiplied",
                _multiplied_by_temperature,
                "Temperature divides. Yours gets sharper as it gets warmer.",
            ),
            Mistake(
                "divided afterwards",
                _divided_afterwards,
                "The weights were divided: rows sum to 1/temperature. Divide the scores.",
            ),
            Mistake(
                "temperature not used",
                _temperature_not_used,
                "Every temperature gives the same weights: it is left out, or added, which changes nothing either (notebook 03). Divide the scores by it.",
            ),
            Mistake(
                "root of the temperature",
                _root_of_temperature,
                "No root here: √d came from the size of a sum. A temperature divides as it is.",
            ),
            Mistake(
                "along the first axis",
                _softened_along_first,
                "The softmax ran along the first axis. A row is the last: dim=-1.",
            ),
            Mistake(
                "along dim=1",
                _softened_along_second,
                "dim=1 is the last axis of a matrix only; of a batch of matrices it is the one before. dim=-1 is the last of both.",
            ),
            Mistake(
                "divided by the sum of everything",
                _shared_by_all,
                "All rows together sum to 1: sum() without dim adds up everything. Each row for itself: sum(dim=-1, keepdim=True).",
            ),
        ),
        hints=("It is one line.", "Divide the scores before the softmax."),
    ),
)

PREDICTIONS = (
    Prediction(
        id="05.p1",
        question="x has variance 1. Query and key layers are nn.Linear(32, 16) with PyTorch's default start "
        "(its weights start with variance 1/(3 · 32)). "
        "What variance do the raw scores have?",
        choices={
            "a": Choice(
                "about 16: head_size products of variance 1",
                "That needs queries and keys of variance 1. Default weights lie between ±1/√32, so their variance is 1/(3·32), and "
                "q and k come out with variance ⅓.",
            ),
            "b": Choice(
                "about 1",
                "That would be after scaling, if queries and keys had variance 1. They have ⅓ here, and no one has scaled yet.",
            ),
            "c": Choice(
                "about 1.8",
                "16 products, each of variance ⅓ · ⅓: 16/9 = 1.78. This seed gives 1.92.",
            ),
            "d": Choice(
                "about 0.3",
                "That is the variance of q, or of k, alone. A score adds up 16 of their products.",
            ),
        },
        answer="c",
    ),
    Prediction(
        id="05.p2",
        question="d grows from 1 to 1024, without scaling. What happens to the entropy of a row of weights (8 keys, at most 3 bits)?",
        choices={
            "a": Choice(
                "it stays: softmax normalises",
                "Softmax makes the row sum to 1; how evenly it is shared out depends on the differences of scores, and these grow.",
            ),
            "b": Choice(
                "it falls towards 0: one key takes all",
                "Scores of size √d = 32 differ by tens, and e to the ten is 22 000. One key wins everything.",
            ),
            "c": Choice(
                "it rises towards 3 bits: more channels, more averaging",
                "Averaging would do that, if the sum were divided by d. A sum of d products grows.",
            ),
        },
        answer="b",
    ),
    Prediction(
        id="05.p3",
        question="A head forgets the root. It is trained for a long time, from PyTorch's default start. What will you see?",
        choices={
            "a": Choice(
                "an error, or nan",
                "No: every step is defined. Nothing ever complains about a scale.",
            ),
            "b": Choice(
                "it cannot learn at all",
                "With unit-variance queries and keys and a large d it would have a hard start. Default weights are small, so its scores start near 1.9.",
            ),
            "c": Choice(
                "probably nothing: W_query can learn the missing factor",
                "Dividing scores by 4 is the same as dividing W_query by 4. Training can make up for it, which is why “it trains” proves little. "
                "Compare with a reference instead.",
            ),
        },
        answer="c",
    ),
)
