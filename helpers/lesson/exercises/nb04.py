"""Predictions and exercises of notebook 04: one head."""

import torch
from torch import nn

from helpers.attention import causal_mask
from helpers.clinic.bugs import ATTENTION_BUGS
from helpers.lesson.exercises.attention_bugs import as_mistake
from helpers.lesson.grading import Exercise, Mistake
from helpers.lesson.question import Choice, Prediction
from helpers.lesson.terms import Term
from helpers.torch_settings import seed_all


def _normal(seed, *shapes):
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(*shape, generator=generator) for shape in shapes)


# ---------------------------------------------------------------- 04.1


def score(x, W_query, W_key, i, j):
    """Score of query i for key j, from x (T, C) and two (C, d) matrices: the plain dot product."""
    return (x[i] @ W_query) @ (x[j] @ W_key)


def _score_from_table(x, W_query, W_key, i, j):
    return (x @ W_query @ (x @ W_key).T)[i, j]


def _sum_of_both(x, W_query, W_key, i, j):
    return (x[i] @ W_query + x[j] @ W_key).sum()


def _weight(x, W_query, W_key, i, j):
    scores = x @ W_query @ (x @ W_key).T / W_query.shape[1] ** 0.5
    return torch.softmax(scores, dim=-1)[i, j]


def _product_of_sums(x, W_query, W_key, i, j):
    return (x[i] @ W_query).sum() * (x[j] @ W_key).sum()


def _column(x, W_query, W_key, i, j):
    return x @ W_query @ (x[j] @ W_key)


def _left_out(n):
    return lambda x, W_query, W_key, i, j: (x[i] @ W_query)[:-n] @ (x[j] @ W_key)[:-n]


def _only(n):
    return lambda x, W_query, W_key, i, j: (x[i] @ W_query)[:n] @ (x[j] @ W_key)[:n]


SCORE = Exercise(
    id="04.1",
    title="One score",
    reference=score,
    axes={"x": "T C", "W_query": "C d", "W_key": "C d"},
    intermediates=(
        ("the query of token i", lambda x, W_query, W_key, i, j: x[i] @ W_query),
        ("the key of token j", lambda x, W_query, W_key, i, j: x[j] @ W_key),
        ("all scores, (T, T)", lambda x, W_query, W_key, i, j: x @ W_query @ (x @ W_key).T),
        ("the sum of query and key, not of their products", _sum_of_both),
        ("the scores of all queries for key j", _column),
        ("the product of two sums: the channels were added up before", _product_of_sums),
        ("the weight of this pair, and not its score", _weight),
        *((f"the score with the last {n} of its products left out", _left_out(n)) for n in (1, 2)),
        *((f"the score of the first {n} channels only", _only(n)) for n in (1, 2)),
    ),
    cases=lambda: [
        (*_normal(0, (7, 3), (3, 2), (3, 2)), 2, 5),  # others than in the text
        (*_normal(1, (5, 4), (4, 3), (4, 3)), 3, 2),
    ],
    accepted=(_score_from_table,),
    checked="two sequences, one pair of positions in each, counted from 0",
    mistakes=(
        Mistake(
            "the key is counted from 1",
            change=("x[j]", "x[j - 1]"),
            message="This is the score for the key of token j - 1. Positions count from 0 here, keys like queries: key 4 is x[4].",
        ),
        Mistake(
            "the query is counted from 1",
            change=("x[i]", "x[i - 1]"),
            message="This is the score of the query of token i - 1. Positions count from 0 here, queries like keys.",
        ),
        Mistake(
            "both counted from 1",
            change=(("x[i]", "x[i - 1]"), ("x[j]", "x[j - 1]")),
            message="Both positions are one too low. They count from 0: query 1 is x[1].",
        ),
        Mistake(
            "query and key swapped",
            change=("(x[i] @ W_query) @ (x[j] @ W_key)", "(x[i] @ W_key) @ (x[j] @ W_query)"),
            message="Query and key have changed roles: this is the score of query j for key i. Token i looks for something, so it is multiplied by W_query; "
            "token j is to be found, so it is multiplied by W_key.",
        ),
        Mistake(
            "the tokens themselves",
            change=("(x[i] @ W_query) @ (x[j] @ W_key)", "x[i] @ x[j]"),
            message="This compares the tokens as they are, x[i] with x[j]. First each goes through its matrix.",
        ),
        Mistake(
            "one matrix for both",
            change=("x[j] @ W_key", "x[j] @ W_query"),
            message="Token j went through W_query too. Its key is x[j] @ W_key.",
        ),
        Mistake(
            "W_key for both",
            change=("x[i] @ W_query", "x[i] @ W_key"),
            message="Token i went through W_key too. Its query is x[i] @ W_query.",
        ),
        Mistake(
            "a whole row",
            change=("(x[j] @ W_key)", "(x @ W_key).T"),
            message="These are the scores of query i for all keys. One is wanted, that for key j: x[j] @ W_key is one key.",
        ),
        Mistake(
            "softmax already taken",
            change=(
                "(x[i] @ W_query) @ (x[j] @ W_key)",
                "torch.softmax((x[i] @ W_query) @ (x @ W_key).T, dim=-1)[j]",
            ),
            message="This is a weight, a share between 0 and 1. The score is the number that goes into the softmax: leave the softmax out.",
        ),
        Mistake(
            "products not added",
            change=(") @ (", ") * ("),
            message="These are the products, channel by channel. A score is their sum: @ instead of *.",
        ),
        Mistake(
            "scaled already",
            change=("(x[j] @ W_key)", "(x[j] @ W_key) / W_query.shape[1] ** 0.5"),
            message="This is the score divided by √d. Here the plain dot product is wanted; the division comes later.",
        ),
        Mistake(
            "divided by √2",
            change=("(x[j] @ W_key)", "(x[j] @ W_key) / 2**0.5"),
            message="This is the score divided by √2, for every length of a query. Here the plain dot product is wanted; the division comes later.",
        ),
    ),
    hints=(
        "Which of the two tokens looks for something, and which one is found? Each role has its own matrix.",
        "x[i] @ W_query is the query, a vector with d channels. The key of token j is computed in the same way, with W_key.",
        "The score is the dot product of the two: query @ key.",
    ),
)


# ---------------------------------------------------------------- 04.2


def plain_matrix(layer):
    """nn.Linear(C, d, bias=False) -> (C, d) matrix M with x @ M == layer(x)."""
    return layer.weight.T


def _by_asking(layer):
    return layer(torch.eye(layer.in_features))


def _linear(C, d):
    seed_all(C + d)
    return nn.Linear(C, d, bias=False)


def _product(layer):
    return layer.weight.T @ layer.weight


def _other_product(layer):
    return layer.weight @ layer.weight.T


def _of_ones(layer):
    return layer(torch.ones(1, layer.in_features))


PLAIN_MATRIX = Exercise(
    id="04.2",
    title="From nn.Linear to a plain matrix",
    reference=plain_matrix,
    axes={"return": "C d"},
    sizes={"C": lambda layer: layer.in_features, "d": lambda layer: layer.out_features},
    intermediates=(
        ("layer.weight as it is stored, (d, C)", lambda layer: layer.weight),
        ("the (C, C) product of layer.weight.T and layer.weight", _product),
        ("the (d, d) product of layer.weight and layer.weight.T", _other_product),
        ("the layer's result for one token of ones: the sums of the matrix's columns", _of_ones),
    ),
    cases=lambda: [(_linear(5, 3),), (_linear(4, 4),), (_linear(1, 2),), (_linear(3, 1),)],
    accepted=(_by_asking,),
    checked="layers of several sizes, a square one and single inputs and outputs among them",
    mistakes=(
        Mistake(
            "not transposed",
            change=(".T", ""),
            message="This is the weight as it is stored, (out, in) = (d, C); the layer multiplies by the transposed matrix. For a square layer nothing would "
            "complain: the shapes fit, the numbers do not.",
        ),
        Mistake(
            "reshaped instead of transposed",
            change=(".T", ".reshape(layer.in_features, layer.out_features)"),
            message="The shape is right, the numbers are in the wrong places: reshape keeps their reading order, a transpose turns rows into columns.",
        ),
        Mistake(
            "inverted",
            change=("layer.weight.T", "torch.linalg.pinv(layer.weight)"),
            message="This matrix undoes the layer (it is its inverse) instead of doing the same. Only the two axes have to be swapped.",
        ),
    ),
    hints=(
        "Print the shape of layer.weight, and compare it with the shape that you need.",
        "layer(x) computes x @ layer.weight.T.",
    ),
)


# ---------------------------------------------------------------- 04.3


def head(x, W_query, W_key, W_value):
    """(B, T, C), (C, d), (C, d), (C, d_v) -> (B, T, d_v): causal self-attention, scaled."""
    T = x.shape[1]
    q, k, v = x @ W_query, x @ W_key, x @ W_value  # (B, T, d) each
    scores = q @ k.mT / q.shape[-1] ** 0.5  # (B, T, T)
    scores = scores.masked_fill(~causal_mask(T), float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def _head_by_einsum(x, W_query, W_key, W_value):
    T = x.shape[1]
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = torch.einsum("bqd,bkd->bqk", q, k) / W_query.shape[1] ** 0.5
    masked = scores.masked_fill(torch.tril(torch.ones(T, T)) == 0, -1e9)
    return torch.einsum("bqk,bkd->bqd", torch.softmax(masked, dim=-1), v)


def _with_bug(bug):
    """A bug of attention as an answer to 04.3."""

    def head(x, W_query, W_key, W_value):
        return bug.compute(x @ W_query, x @ W_key, x @ W_value)[0]

    return head


def _loop_stops_early(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    out = torch.zeros_like(v)
    for t in range(x.shape[1]):
        scores = q[:, t : t + 1] @ k[:, :t].mT / q.shape[-1] ** 0.5
        out[:, t : t + 1] = torch.softmax(scores, dim=-1) @ v[:, :t]
    return out


_STEPS = (
    "the queries",
    "the keys",
    "the values, which no weights have averaged",
    "the scores, before the division, the mask and the softmax",
    "the scaled scores, before the mask and the softmax",
    "the masked, scaled scores, before the softmax",
    "the weights, not yet multiplied by the values",
)


def _step(n):
    """A step on the way to the head's output, as a function of its arguments."""

    def step(x, W_query, W_key, W_value):
        q, k, v = x @ W_query, x @ W_key, x @ W_value
        scores = q @ k.mT
        scaled = scores / q.shape[-1] ** 0.5
        masked = scaled.masked_fill(~causal_mask(x.shape[1]), float("-inf"))
        return (q, k, v, scores, scaled, masked, torch.softmax(masked, dim=-1))[n]

    return step


def _best_key(x, W_query, W_key, W_value):
    best = _step(5)(x, W_query, W_key, W_value).argmax(dim=-1)
    return nn.functional.one_hot(best, x.shape[1]).float() @ (x @ W_value)


def _sigmoids(x, W_query, W_key, W_value):
    return _step(5)(x, W_query, W_key, W_value).sigmoid() @ (x @ W_value)


def _mean_of_values(x, W_query, W_key, W_value):
    return head(x, 0 * W_query, W_key, W_value)


def _sequences_end_to_end(x, W_query, W_key, W_value):
    B, T, C = x.shape
    return head(x.reshape(1, B * T, C), W_query, W_key, W_value).reshape(B, T, -1)


HEAD = Exercise(
    id="04.3",
    title="A causal head",
    reference=head,
    axes={"x": "B T C", "W_query": "C d", "W_key": "C d", "W_value": "C d_v", "return": "B T d_v"},
    intermediates=(
        *((name, _step(n)) for n, name in enumerate(_STEPS)),
        ("the values of the best key alone, of the largest score of each row", _best_key),
        ("the plain causal mean of the values: the scores are not used", _mean_of_values),
        ("the values with sigmoids of the scores as weights, which do not sum to 1", _sigmoids),
    ),
    without="attention",
    trained=True,
    cases=lambda: [
        _normal(0, (3, 5, 8), (8, 2), (8, 2), (8, 2)),
        _normal(1, (2, 6, 7), (7, 3), (7, 3), (7, 4)),
    ],
    accepted=(_head_by_einsum,),
    checked="two batches, in the second with longer values: equal to the reference, which equals PyTorch's function",
    mistakes=(
        *(as_mistake(bug, _with_bug(bug)) for bug in ATTENTION_BUGS.values()),
        Mistake(
            "keys not transposed",
            change=("q @ k.mT", "q @ k"),
            message="The keys are not transposed, so the shapes do not fit: (T, d) @ (T, d). The scores are q @ k.mT: (T, d) @ (d, T) -> (T, T).",
        ),
        Mistake(
            "values times weights",
            change=("torch.softmax(scores, dim=-1) @ v", "v @ torch.softmax(scores, dim=-1)"),
            message="The weights belong on the left of the values: (T, T) @ (T, d_v) -> (T, d_v).",
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
            "filled with plus infinity",
            change=('float("-inf")', 'float("inf")'),
            message="The future is +inf, the largest score there is, and inf - inf is nan. The minus is missing: float('-inf').",
        ),
        Mistake(
            "keys made with W_query",
            change=("x @ W_key", "x @ W_query"),
            message="W_key makes no difference: keys are made with W_query, so each score is a dot product of two queries. The keys are x @ W_key.",
        ),
        Mistake(
            "queries made with W_key",
            change=("x @ W_query", "x @ W_key"),
            message="W_query makes no difference: queries are made with W_key, so each score is a dot product of two keys. The queries are x @ W_query.",
        ),
        Mistake(
            "scaled after the softmax",
            change=(
                (" / q.shape[-1] ** 0.5", ""),
                ("dim=-1) @ v", "dim=-1) / q.shape[-1] ** 0.5 @ v"),
            ),
            message="The weights were divided by √head_size, not the scores: each row sums to 1/√head_size. Divide the scores, before the mask and the softmax.",
        ),
        Mistake(
            "a second softmax",
            change=(
                "torch.softmax(scores, dim=-1)",
                "torch.softmax(torch.softmax(scores, dim=-1), dim=-1)",
            ),
            message="A softmax ran on the weights once more: the zeros of the future became e⁰ = 1, so the future is visible. One softmax is enough.",
        ),
        Mistake(
            "mask added as 1 and 0",
            change=(
                'scores.masked_fill(~causal_mask(T), float("-inf"))',
                "scores + causal_mask(T).float()",
            ),
            message="The allowed scores are 1 higher, and that is all: every future token still has its weight. A mask that is added has to be 0 where a token "
            "may attend and minus infinity elsewhere; masked_fill sets it.",
        ),
        Mistake(
            "filled with -1",
            change=('float("-inf")', "-1.0"),
            message="The scores of the future are -1, so every future token keeps a share. Scores may be any numbers, so only minus infinity is low enough: "
            "float('-inf').",
        ),
        Mistake(
            "weights returned",
            change=(" @ v", ""),
            message="These are the weights, (B, T, T). The output is their product with the values: weights @ v.",
        ),
        Mistake(
            "all sequences in one",
            function=_sequences_end_to_end,
            message="Tokens attend to earlier sequences of the batch: all B * T tokens were treated as one long sequence. Sequences are never mixed; keep the axis B.",
        ),
        Mistake(
            "batch and time exchanged by .T",
            change=("k.mT", "k.permute(2, 1, 0)"),
            message="The keys have all three axes reversed, (d, T, B), as .T does with three axes. Only the last two have to be swapped: k.mT.",
        ),
        Mistake(
            "divided by √2 always",
            change=("q.shape[-1] ** 0.5", "2**0.5"),
            message="The scores are divided by √2, which is right for queries of 2 channels only. Other heads have other sizes: q.shape[-1] ** 0.5.",
        ),
        Mistake(
            "divided by √C",
            change=("q.shape[-1]", "x.shape[-1]"),
            message="The scores are divided by √C, and C is the number of channels of x. Divide by √head_size, the square root of the length of a query, q.shape[-1].",
        ),
        Mistake(
            "divided by √ of the value's length",
            change=("q.shape[-1]", "v.shape[-1]"),
            message="The scores are divided by the square root of a value's length. A score adds up the products of a query and a key, so the length of a query counts, "
            "q.shape[-1]; values may have another one.",
        ),
        Mistake(
            "divided by √16 always",
            change=("q.shape[-1] ** 0.5", "4"),
            message="The scores are divided by √16 = 4, which was right for the head above. Other heads have other sizes: q.shape[-1] ** 0.5.",
        ),
        Mistake(
            "no softmax",
            change=("torch.softmax(scores, dim=-1)", "scores"),
            message="The scores themselves mix the values, with -inf for the future. Make them weights first: softmax with dim=-1.",
        ),
        Mistake(
            "softmax over the batch",
            change=("dim=-1", "dim=0"),
            message="dim=0 of (B, T, T) is the batch: sequences share out 1 among themselves, and the future is nan. The keys are the last axis, dim=-1.",
        ),
        Mistake(
            "keys reshaped instead of transposed",
            change=("k.mT", "k.view(x.shape[0], -1, T)"),
            message="The numbers of different keys are mixed up: the keys have the shape (B, d, T), but their numbers stand in the old reading order, as after view "
            "or reshape. A transpose swaps the axes: k.mT.",
        ),
        Mistake(
            "tokens do not attend to themselves",
            function=_loop_stops_early,
            message="Tokens do not attend to themselves, and output 0 is 0, since token 0 has no key. In a loop, [: t + 1] has token t in it, [:t] has not.",
        ),
        Mistake(
            "x is mixed instead of v",
            change=("@ v", "@ x"),
            message="The weights are right, but they average x. They have to average the values v, so the output has d_v channels, not C.",
        ),
    ),
    hints=(
        "Follow the boxes of the diagram: q, k and v; scores; the division; the mask; the softmax; the weighted average of the values.",
        "q @ k.mT is (B, T, T). Divide it by q.shape[-1] ** 0.5, the square root of head_size.",
        "Fill the future with float('-inf'), using causal_mask(T). Then softmax with dim=-1, and weights @ v.",
    ),
)


EXERCISES = (SCORE, PLAIN_MATRIX, HEAD)


# ---------------------------------------------------------------- predictions

PREDICTIONS = (
    Prediction(
        id="04.p1",
        question="The query of “is” is 0.57 1.83. Which of these keys gets the lowest score: “Life” -0.08 -0.30, "
        "“short” -0.30 -0.73, or “first” -0.48 -0.58?",
        choices={
            "a": Choice(
                "“Life”: it points most exactly away from the query",
                "It points in the opposite direction, but its arrow is short, so its score is only -0.60. The two others point away from the query, too, "
                "and are more than twice as long.",
            ),
            "b": Choice(
                "“short”",
                "Its products are -0.17 and -1.33, which add up to -1.50. For “first” they are -0.27 and -1.07, together -1.34. Channel 1 "
                "of the query is three times its channel 0, so channel 1 of a key counts three times as much.",
            ),
            "c": Choice(
                "“first”: its channel 0 is the lowest",
                "In channel 0 it is lower than “short”, -0.48 against -0.30. But channel 1 of the query is three times as large, and there “short” is lower, "
                "-0.73 against -0.58. The scores are -1.34 and -1.50.",
            ),
        },
        answer="b",
    ),
    Prediction(
        id="04.p2",
        question="The sequences become twice as long. How many parameters has the head then?",
        choices={
            "a": Choice(
                "as many as before",
                "The parameters are the entries of the three matrices, 32 · 16 each. Every token is multiplied by the same three, however many tokens there are.",
            ),
            "b": Choice(
                "twice as many: there are twice as many tokens",
                "There are twice as many queries, keys and values. But these are results, not parameters: the same three matrices compute them all.",
            ),
            "c": Choice(
                "four times as many: a (T, T) matrix has four times as many entries",
                "The matrix of scores has four times as many entries, but they are computed anew for each sequence. Training changes only the three matrices "
                "that queries, keys and values come from, and T does not occur in their shapes.",
            ),
        },
        answer="a",
    ),
    Prediction(
        id="04.p3",
        question="Someone swaps W_query and W_key in a trained head. What happens to the scores?",
        choices={
            "a": Choice(
                "nothing: the dot product does not depend on the order of its two vectors",
                "It is true that a·b = b·a. But the swap also changes which token has which role: entry [i, j] was q_i·k_j and is now k_i·q_j, "
                "which was entry [j, i].",
            ),
            "b": Choice(
                "each (T, T) matrix of scores is transposed",
                "Entry [i, j] was q_i·k_j and is now k_i·q_j, which was entry [j, i]. Before training, the swap would not matter for what the "
                "head can learn: both matrices are random and of the same shape.",
            ),
            "c": Choice(
                "they are multiplied by -1",
                "No sign changes, because a·b = b·a. Write out one entry: q_i·k_j becomes k_i·q_j.",
            ),
        },
        answer="b",
    ),
)

TERMS = (
    Term("query", "The vector that describes what a token looks for.", everyday=True),
    Term("key", "The vector that describes how a token can be found.", everyday=True),
    Term(
        "value",
        "The vector that a token passes on to the tokens that attend to it.",
        everyday=True,
    ),
    Term(
        "attention head",
        "The matrices that make queries, keys and values, with the steps that turn these into one output for each token.",
        also=("head",),
        everyday=True,
    ),
    Term(
        "scaled score", "A score divided by √head_size, as it goes into the mask and the softmax."
    ),
    Term(
        "context vector",
        "The output of attention for one token: the average of the values, weighted with the token's attention weights.",
    ),
    Term(
        "head_size",
        "The length of the queries and keys of a head, and mostly of its values too.",
        also=("d_k",),
    ),
    Term(
        "scaled dot-product attention",
        "Attention whose scores are the dot products of queries and keys, divided by √head_size.",
        also=("dot-product attention",),
    ),
    Term(
        "self-attention",
        "Attention whose queries, keys and values come from the same sequence.",
    ),
    Term(
        "cross-attention",
        "Attention whose queries come from one sequence, and whose keys and values come from another.",
    ),
    Term(
        "attention pattern",
        "All attention weights of a head on one text, seen as a matrix with one row for each query.",
        also=("attention map",),
    ),
    Term("parameter", "A number in a model that training changes."),
    Term(
        "gradient",
        "For each parameter, how fast a result such as the loss changes when the parameter is made slightly larger.",
    ),
    Term("loss", "One number that says how wrong a model's outputs are.", everyday=True),
    Term(
        "gradient descent",
        "Training in small steps, each of which moves every parameter against its gradient, so that the loss falls.",
    ),
    Term(
        "learning rate",
        "The factor by which gradients are multiplied in a training step.",
        also=("step size",),
    ),
)
