"""Predictions and exercises of notebook 00: reading tensors."""

import torch

from helpers.clinic.probes import rows_sum_to_one
from helpers.lesson.exercises.properties import ROWS_SUM_TO_ONE
from helpers.lesson.grading import Exercise, Mistake
from helpers.lesson.question import Choice, Prediction


def _positive(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(sum(shape))) + 0.1


# ---------------------------------------------------------------- 00.1


def mean_over_time(x):
    """(B, T, C) -> (B, C): the mean of each sequence's tokens."""
    return x.mean(dim=1)


def _mean_by_negative_dim(x):
    return x.sum(dim=-2) / x.shape[-2]


MEAN_OVER_TIME = Exercise(
    id="00.1",
    title="Mean over time",
    reference=mean_over_time,
    cases=lambda: [(_positive(3, 5, 2),), (_positive(2, 7, 4),)],
    accepted=(_mean_by_negative_dim,),
    checked="two tensors with B, T and C all different: the time axis is gone, the others kept their places",
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
        "Which of the three letters in (B, T, C) must be missing from the result?",
        "T is axis 1, counted from 0. Equally, it is axis -2, counted from the end.",
        "Tensors have a method mean(dim=…).",
    ),
)


# ---------------------------------------------------------------- 00.2


def normalise_rows(a):
    """(..., R, S) of positive numbers -> the same shape, every row sums to 1."""
    return a / a.sum(dim=-1, keepdim=True)


def _normalise_unsqueeze(a):
    return a / a.sum(-1)[..., None]


NORMALISE_ROWS = Exercise(
    id="00.2",
    title="Make every row sum to 1",
    reference=normalise_rows,
    cases=lambda: [(_positive(4, 4),), (_positive(2, 3, 5),), (_positive(3, 3, 3),)],
    accepted=(_normalise_unsqueeze,),
    checked="a square matrix, a batch of oblong ones and a cube: every row sums to 1 and keeps its proportions",
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
            message="Without keepdim=True the row sums lose their axis, (R,) instead of (R, 1). Broadcasting then lines them up "
            "with the columns: a square matrix is divided wrongly and in silence, an oblong one raises.",
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
        "Divide the matrix by its row sums. Which axis does a row run along?",
        "The sums must keep an axis of length 1, so that row 0 is divided by sum 0.",
        "a.sum(dim=…, keepdim=…) has the two arguments you need.",
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
    cases=lambda: [(_positive(2, 3, 4),), (_positive(3, 4, 4),)],
    accepted=(_swap_by_mt, _swap_by_permute),
    checked="an oblong and a square batch: entry [b, s, r] is the old [b, r, s], sequence by sequence",
    mistakes=(
        Mistake(
            "view or reshape instead of a swap",
            change=("x.transpose(-2, -1)", "x.reshape(x.shape[0], x.shape[2], x.shape[1])"),
            message="The shape is right and the numbers are in the wrong places. view and reshape put the same numbers, in the same "
            "order, into another shape: row 0 of your answer begins with row 0 of x. A swap turns columns into rows.",
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
            message="This is x itself. Methods such as transpose return a new tensor and leave x as it was: return their result.",
        ),
    ),
    hints=(
        "Write down where x[0, 1, 2] must stand in the result.",
        "Counted from the end, the two axes are -2 and -1, however many stand before them.",
        "Look at Tensor.transpose, or at the attribute mT.",
    ),
)


EXERCISES = (MEAN_OVER_TIME, NORMALISE_ROWS, SWAP_LAST_TWO)


# ---------------------------------------------------------------- predictions

PREDICTIONS = (
    Prediction(
        id="00.p1",
        question="In the picture above: how much does “dessert” listen to “is”?",
        choices={
            "a": Choice(
                "0.31",
                "Row “dessert” (who reads), column “is” (who is read): 0.31. Rows read, columns are read.",
            ),
            "b": Choice(
                "not at all: the cell is hatched",
                "That is the mirrored cell, row “is”, column “dessert”. It asks how much “is” listens to “dessert”, a word "
                "still to come. Find the reader on the left first.",
            ),
            "c": Choice(
                "0.13",
                "You took column 2, “short”: the row is right. Positions count from 0 here, so “is” is column 1.",
            ),
        },
        answer="a",
    ),
    Prediction(
        id="00.p2",
        question="x has the shape (3, 5, 2): 3 sequences, 5 tokens, 2 channels. What is the shape of x.mean(dim=1)?",
        choices={
            "a": Choice(
                "(5, 2)",
                "That is dim=0: the batch collapsed. Axes are counted from 0, so dim=1 is the second one.",
            ),
            "b": Choice(
                "(3, 2)",
                "The axis that is named is the axis that disappears: T goes, (B, C) stays. One mean per sequence and channel.",
            ),
            "c": Choice(
                "(5,): the mean of axis 1 is what remains",
                "The other way round: the named axis is the one that is used up. What remains are all the others.",
            ),
            "d": Choice(
                "(3, 5)",
                "That is dim=2, or dim=-1: the channels collapsed and every token kept one number.",
            ),
        },
        answer="b",
    ),
    Prediction(
        id="00.p3",
        question="tril is the 3 × 3 matrix of ones on and below the diagonal. Its row sums are 1, 2, 3. "
        "What does tril / tril.sum(1) give, without keepdim?",
        choices={
            "a": Choice(
                "an error: (3, 3) cannot be divided by (3,)",
                "It can. Broadcasting adds the missing axis on the left, (1, 3), and stretches it down. For a matrix that "
                "is not square it would have failed, which would have been kinder.",
            ),
            "b": Choice(
                "the right answer: every row sums to 1",
                "That needs the sums as a column, (3, 1), so that row t is divided by its own sum. "
                "Shape (3,) is lined up as a row.",
            ),
            "c": Choice(
                "wrong numbers, and no complaint",
                "Shape (3,) is lined up with the columns: column s is divided by s + 1. The last row becomes 1, 0.5, 0.33 "
                "and sums to 1.83. Nothing complains, because the shapes fit.",
            ),
        },
        answer="c",
    ),
)

TERMS = ()
