"""Predictions and exercises of notebook 00: reading tensors."""

import torch

from helpers.clinic.probes import rows_sum_to_one
from helpers.lesson.exercises.properties import ROWS_SUM_TO_ONE
from helpers.lesson.grading import Exercise, Mistake
from helpers.lesson.question import Choice, Prediction
from helpers.lesson.terms import Term


def _positive(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(sum(shape))) + 0.1


# ---------------------------------------------------------------- 00.1


def mean_over_time(x):
    """(B, T, C) -> (B, C): the mean of the tokens of each sequence."""
    return x.mean(dim=1)


def _mean_by_negative_dim(x):
    return x.sum(dim=-2) / x.shape[-2]


def _running_means(x):
    return x.cumsum(dim=1) / torch.arange(1, x.shape[1] + 1)[:, None]


def _midrange(x):
    return (x.amin(dim=1) + x.amax(dim=1)) / 2


MEAN_OVER_TIME = Exercise(
    id="00.1",
    title="The mean token",
    reference=mean_over_time,
    axes={"x": "B T C", "return": "B C"},
    intermediates=(
        ("the running mean of every token, not only the last", _running_means),
        ("the median of the tokens, not their mean", lambda x: x.median(dim=1).values),
        ("the largest token in each channel, not their mean", lambda x: x.amax(dim=1)),
        ("the middle between the smallest and the largest token", _midrange),
        ("the mean of the first and the last token only", lambda x: (x[:, 0] + x[:, -1]) / 2),
        ("the token in the middle, x[:, T // 2]", lambda x: x[:, x.shape[1] // 2]),
        ("the last token, x[:, -1]", lambda x: x[:, -1]),
        ("the first token, x[:, 0]", lambda x: x[:, 0]),
    ),
    cases=lambda: [(_positive(3, 5, 2),), (_positive(2, 7, 4),)],
    accepted=(_mean_by_negative_dim,),
    checked="two tensors in which B, T and C all differ: axis T is gone, B and C are in their places",
    mistakes=(
        Mistake(
            "mean over the channels",
            change=("dim=1", "dim=-1"),
            message="You averaged over the channels: dim=-1 is the last axis, C. The result has one number "
            "for every token. Time is the middle axis, so the shape to aim for is (B, C).",
        ),
        Mistake(
            "mean over the batch",
            change=("dim=1", "dim=0"),
            message="You averaged over the batch: dim=0 is B, so different sequences were mixed into one. "
            "Axes count from 0: B is 0, T is 1, C is 2.",
        ),
        Mistake(
            "sum instead of mean",
            change=("x.mean", "x.sum"),
            message="The right axis, but the sum: every value is T times too large. Divide by the number of tokens.",
        ),
        Mistake(
            "mean over everything",
            change=("dim=1", ""),
            message="Without dim, mean() collapses all three axes into a single number. Name the axis to collapse.",
        ),
        Mistake(
            "time axis kept",
            change=("dim=1", "dim=1, keepdim=True"),
            message="The numbers are right, but keepdim=True left an axis of length 1 where time was: "
            "(B, 1, C) instead of (B, C).",
        ),
    ),
    hints=(
        "Compare the shapes (B, T, C) and (B, C): which axis has to disappear?",
        "T is axis 1, because axes are counted from 0. Counted from the end, it is axis -2.",
        "Tensors have a method mean(dim=…). It removes the axis that you name.",
    ),
)


# ---------------------------------------------------------------- 00.2


def normalise_rows(a):
    """(..., R, S), int or float >= 0, no row all 0 -> same shape: each row divided by its sum."""
    return a / a.sum(dim=-1, keepdim=True)


def _normalise_unsqueeze(a):
    return a / a.sum(-1)[..., None]


def _by_matrix(a):
    return a / a.sum(dim=(-2, -1), keepdim=True)


def _unit(a):
    return a / (a**2).sum(dim=-1, keepdim=True).sqrt()


def _by_others(a):
    return a / (a.sum(dim=-1, keepdim=True) - a)


def _by_first(a):
    return a / a.flatten(1).sum(dim=-1).reshape(-1, *[1] * (a.dim() - 1))


NORMALISE_ROWS = Exercise(
    id="00.2",
    title="Make every row sum to 1",
    reference=normalise_rows,
    axes={"a": "... R S", "return": "... R S"},
    intermediates=(
        ("the sums of the rows", lambda a: a.sum(dim=-1)),
        ("the sums of the rows, as a column", lambda a: a.sum(dim=-1, keepdim=True)),
        ("`a` with each matrix divided by the sum of all its numbers", _by_matrix),
        ("`a` with each row divided by the square root of its sum of squares", _unit),
        ("`a` with each entry divided by the sum of the others in its row", _by_others),
        ("`a` with each entry of the first axis divided by its whole sum", _by_first),
    ),
    cases=lambda: [
        (_positive(4, 4),),
        (_positive(2, 3, 5),),
        (_positive(3, 3, 3),),
        (torch.tensor([[0, 1, 1, 0], [2, 1, 0, 1], [0, 0, 3, 0]]),),
    ],
    accepted=(_normalise_unsqueeze,),
    checked="a square matrix, two batches, one of matrices that are not square, and a table of whole numbers: every row is divided by its sum",
    mistakes=(
        Mistake(
            "columns normalised",
            change=("dim=-1", "dim=-2"),
            message="Here every column sums to 1, not every row. A sum over dim=-2 runs down a column; "
            "along a row, the last index changes: dim=-1.",
        ),
        Mistake(
            "dim=1",
            change=("dim=-1", "dim=1"),
            message="For a matrix dim=1 runs along the rows, and your answer is right there. With a batch in front, "
            "(B, R, S), axis 1 is R: the sum runs down the columns. dim=-1 is the last axis in both.",
        ),
        Mistake(
            "dim=0",
            change=("dim=-1", "dim=0"),
            message="dim=0 is the first axis: for a matrix the sum runs down each column, for a batch it runs "
            "over the sequences. Along a row the last index changes: dim=-1.",
        ),
        Mistake(
            "no keepdim",
            change=(", keepdim=True", ""),
            message="Column s was divided by the sum of row s: the row sums have the shape (R,), and broadcasting lines them up with the last axis, "
            "the columns. A square matrix is divided wrongly and in silence, an oblong one raises. As a column, (R, 1), they divide the rows: keepdim=True.",
        ),
        Mistake(
            "divided by the grand total",
            change=("dim=-1, keepdim=True", ""),
            message="You divided by one number, the sum of everything: all entries together now sum to 1. "
            "Each row needs its own sum, so name the axis.",
        ),
        Mistake(
            "divided by the largest",
            change=("a.sum(dim=-1, keepdim=True)", "a.amax(dim=-1, keepdim=True)"),
            message="You divided each row by its largest entry: the largest became 1, not the sum.",
        ),
        Mistake(
            "softmax instead of a division",
            change=("a / a.sum(dim=-1, keepdim=True)", "torch.softmax(a, dim=-1)"),
            message="Rows sum to 1, but the proportions changed: softmax takes exponentials first (notebook 03). "
            "Here 1 and 3 must become 0.25 and 0.75.",
        ),
    ),
    properties=(
        ROWS_SUM_TO_ONE,
        ("columns sum to 1", lambda out, a: rows_sum_to_one(out.mT).ok),
    ),
    hints=(
        "Divide each row by its sum. If you go along a row, which index changes?",
        "The last index changes, with and without axes in front. The sums of a matrix must stay a column, so that each row is divided by its own sum.",
        "a.sum(dim=…, keepdim=…) has the two arguments that you need.",
    ),
)


# ---------------------------------------------------------------- 00.3


def swap_last_two(x):
    """(B, R, S) -> (B, S, R): entry [b, s, r] is x[b, r, s]."""
    return x.transpose(-2, -1)


def _swap_by_mt(x):
    return x.mT


def _swap_by_permute(x):
    return x.permute(0, 2, 1)


SWAP_LAST_TWO = Exercise(
    id="00.3",
    title="Swap the last two axes",
    reference=swap_last_two,
    axes={"x": "B R S", "return": "B S R"},
    intermediates=(
        ("`x` times `x` transposed, one number for each pair of rows", lambda x: x @ x.mT),
        ("`x` with the order along its last axis reversed", lambda x: x.flip(-1)),
        ("`x` with the order of its rows reversed", lambda x: x.flip(-2)),
    ),
    cases=lambda: [(_positive(2, 3, 4),), (_positive(3, 4, 4),)],
    accepted=(_swap_by_mt, _swap_by_permute),
    checked="a batch of square matrices and one of others: every entry [b, s, r] is x[b, r, s]",
    mistakes=(
        Mistake(
            "view or reshape instead of a swap",
            change=("x.transpose(-2, -1)", "x.reshape(x.shape[0], x.shape[2], x.shape[1])"),
            message="The shape is right and the numbers are in the wrong places: they stand in the same reading order as in x, and row 0 of "
            "your result begins with row 0 of x. That is what view and reshape do. A swap turns columns into rows.",
        ),
        Mistake(
            "all axes reversed",
            change=("transpose(-2, -1)", "permute(2, 1, 0)"),
            message="All three axes were reversed, so the batch ended up last. Only the last two change places; b stays first.",
        ),
        Mistake(
            "the first two axes",
            change=("-2, -1", "0, 1"),
            message="You swapped axes 0 and 1: the batch moved. Axes 1 and 2 are wanted; counted from the end, -2 and -1.",
        ),
        Mistake(
            "nothing swapped",
            change=(".transpose(-2, -1)", ""),
            message="This is x, unchanged. The axes to swap are -2 and -1. (A method such as transpose returns a new tensor and leaves x as it was, "
            "so its result has to be returned.)",
        ),
    ),
    hints=(
        "Where must the number x[0, 1, 2] be in the result? Write down its three indices.",
        "The two axes that change places are the last and the one before it. Counted from the end, they are -1 and -2.",
        "Tensors have a method transpose, which takes the numbers of two axes, and the attribute mT.",
    ),
)


EXERCISES = (MEAN_OVER_TIME, NORMALISE_ROWS, SWAP_LAST_TWO)


# ---------------------------------------------------------------- predictions

PREDICTIONS = (
    Prediction(
        id="00.p1",
        question="In the picture above, how much does “dessert” attend to “is”?",
        choices={
            "a": Choice(
                "0.31",
                "The row is “dessert”, because “dessert” reads. The column is “is”, because “is” is read. Their cell holds 0.31.",
            ),
            "b": Choice(
                "not at all, because the cell is hatched",
                "You looked at row “is” and column “dessert”. That cell says how much “is” takes from “dessert”, which comes "
                "later. Start with the word that reads: it stands on the left.",
            ),
            "c": Choice(
                "0.13",
                "The row is right, but 0.13 is in the column of “short”. The word “is” comes one column before it.",
            ),
        },
        answer="a",
    ),
    Prediction(
        id="00.p2",
        question="x has the shape (3, 5, 2): 3 sequences, 5 tokens, 2 channels. What is the shape of x.sum(dim=2)?",
        choices={
            "a": Choice(
                "(5, 2)",
                "This is the shape of x.sum(dim=0), the sum over the 3 sequences. Axes are counted from 0, so axis 2 is the last one.",
            ),
            "b": Choice(
                "(3, 2)",
                "This is the shape of x.sum(dim=1), the sum over the 5 tokens. Axes are counted from 0, so axis 2 is the third one.",
            ),
            "c": Choice(
                "(2,), because axis 2 is what remains",
                "It is the other way round. The sum is taken over the axis that you name, so this axis disappears and all others remain.",
            ),
            "d": Choice(
                "(3, 5)",
                "Axis 2 counts the channels. The two channels of each token become one sum, for each of the 3 sequences and each of the 5 tokens.",
            ),
        },
        answer="d",
    ),
    Prediction(
        id="00.p3",
        question="counts is the 3 × 3 table above, and its row sums are 1, 1 and 2. What does counts / counts.sum(dim=-1) give?",
        choices={
            "a": Choice(
                "an error, because (3, 3) cannot be divided by (3,)",
                "It can. PyTorch lines up the shapes at their last axis, 3 and 3, and repeats the three sums for every row. "
                "A (2, 3) matrix and its 2 row sums do raise an error, because 3 and 2 do not fit.",
            ),
            "b": Choice(
                "the shares we want: every row sums to 1",
                "For this, row “it” would have to be divided by its own sum, 2. But PyTorch lines up the three sums with "
                "the last axis, so the columns are divided by 1, 1 and 2.",
            ),
            "c": Choice(
                "wrong numbers, without an error",
                "PyTorch lines up the three sums with the last axis, so the columns are divided by 1, 1 and 2. Row “it” "
                "becomes 0, 1 and 0.5, which sums to 1.5. No error is raised, because the lengths 3 and 3 fit.",
            ),
        },
        answer="c",
    ),
)

TERMS = (
    Term(
        "language model",
        "A program that takes a text and guesses which token comes next.",
        also=("large language model", "LLM"),
    ),
    Term(
        "token",
        "A piece of text that a model treats as one unit, such as a word or a piece of a word.",
    ),
    Term(
        "attention",
        "The step of a model in which tokens take information from other tokens.",
        everyday=True,
    ),
    Term(
        "attention weight",
        "A number between 0 and 1 that says how much one token takes from another; the weights of each token sum to 1.",
    ),
    Term(
        "vocabulary",
        "The list of all tokens that a model knows.",
        also=("vocab",),
    ),
    Term(
        "token id",
        "The place of a token in the vocabulary.",
        also=("id", "token index"),
    ),
    Term(
        "embedding",
        "The list of numbers that stands for a token: the row of a table that its id picks.",
        also=("token embedding", "embedding vector"),
    ),
    Term(
        "channel",
        "One of the numbers that describe a token, and its place in the list of them.",
        also=("feature",),
        everyday=True,
    ),
    Term(
        "tensor",
        "A grid of numbers with any number of axes.",
        also=("multi-dimensional array",),
    ),
    Term(
        "axis",
        "One direction of a tensor, which counts one kind of thing, such as tokens.",
        also=("dimension",),
        everyday=True,
    ),
    Term(
        "batch",
        "Several sequences that are processed together.",
        everyday=True,
    ),
    Term(
        "broadcasting",
        "PyTorch's rule for tensors of different shapes: line them up at the last axis, and repeat every axis that is missing or has length 1.",
    ),
)
