"""Predictions and exercises of notebook 06: many heads."""

import torch
import torch.nn.functional as F

from helpers.attention import Head, causal_mask
from helpers.clinic.bugs import (
    ATTENTION_BUGS,
    HEAD_AXIS_BUGS,
    SPLIT_BUGS,
    correct_attention,
    in_heads,
)
from helpers.lesson.grading import Exercise, Mistake
from helpers.lesson.question import Choice, Prediction
from helpers.torch_settings import seed_all

# ---------------------------------------------------------------- 06.1


def side_by_side_heads(heads, x):
    """Functions (B, T, C) -> (B, T, head_size), and x (B, T, C) -> (B, T, n_head * head_size)."""
    return torch.cat([head(x) for head in heads], dim=-1)


def _chained(heads, x):
    out = []
    for head in heads:
        out.append(head(x))
        x = torch.cat([out[-1], x[..., out[-1].shape[-1] :]], dim=-1)
    return torch.cat(out, dim=-1)


def _heads_and_x():
    seed_all(0)
    return [
        ([Head(6, 2) for _ in range(3)], torch.randn(4, 5, 6)),
        ([Head(8, 4) for _ in range(2)], torch.randn(3, 6, 8)),
    ]


SIDE_BY_SIDE_HEADS = Exercise(
    id="06.1",
    title="A list of heads",
    reference=side_by_side_heads,
    cases=_heads_and_x,
    checked="three heads of 2 channels and two heads of 4, head 0 first",
    mistakes=(
        Mistake(
            "stacked on a new axis",
            change=(("torch.cat", "torch.stack"), ("dim=-1", "dim=1")),
            message="The heads got an axis of their own. Side by side means along the channels: the last axis grows, no axis is added.",
        ),
        Mistake(
            "along the time axis",
            change=("dim=-1", "dim=1"),
            message="The outputs are joined one after another in time: the sequence became n_head times as long. Join them along the channels, dim=-1.",
        ),
        Mistake(
            "along the batch axis",
            change=("dim=-1", "dim=0"),
            message="The batch became n_head times as large. Join the answers along the channels, dim=-1.",
        ),
        Mistake(
            "averaged",
            change=(("torch.cat", "torch.stack"), (", dim=-1)", ").mean(dim=0)")),
            message="You averaged the heads, so their outputs can no longer be told apart. Put them side by side; the projection will mix them.",
        ),
        Mistake(
            "added",
            change=(
                "torch.cat([head(x) for head in heads], dim=-1)",
                "sum(head(x) for head in heads)",
            ),
            message="You added the heads. Side by side each keeps its own channels; adding comes with the projection, where each head has its own rows of W_O.",
        ),
        Mistake(
            "one after the other",
            function=_chained,
            message="Each head got what the one before it had changed. Heads work at the same time, all on the same x.",
        ),
        Mistake(
            "last head first",
            change=("in heads", "in reversed(heads)"),
            message="The order is turned round: head 0 comes first.",
        ),
        Mistake(
            "the same head each time",
            change=("head(x) for head", "heads[0](x) for head"),
            message="All slices hold the answer of head 0. Call every head in turn.",
        ),
        Mistake(
            "the first head only",
            change=("torch.cat([head(x) for head in heads], dim=-1)", "heads[0](x)"),
            message="Only head 0 answers. Does `return` stand inside the loop? The first round ends the function there: collect all answers, then return.",
        ),
        Mistake(
            "the last head only",
            change=("torch.cat([head(x) for head in heads], dim=-1)", "heads[-1](x)"),
            message="Only the last head is left: each round of the loop wrote over the one before. Append every answer to a list, and join the list.",
        ),
        Mistake(
            "stacked, then reshaped",
            change=(("torch.cat", "torch.stack"), ("dim=-1)", "dim=0).reshape(*x.shape[:2], -1)")),
            message="The shape is right, the numbers are in the wrong places: the axis of heads stands in front of the batch, and reshape keeps the reading order. "
            "torch.cat joins the answers along the channels, dim=-1.",
        ),
        Mistake(
            "stacked on axis 1, then reshaped",
            change=(("torch.cat", "torch.stack"), ("dim=-1)", "dim=1).reshape(*x.shape[:2], -1)")),
            message="The shape is right, the numbers are in the wrong places: the axis of heads stands in front of the tokens, and reshape keeps the reading order. "
            "torch.cat joins the answers along the channels, dim=-1.",
        ),
        Mistake(
            "channels of the heads shuffled together",
            change=(("torch.cat", "torch.stack"), ("dim=-1)", "dim=-1).flatten(-2)")),
            message="The channels alternate between the heads. First all channels of head 0, then all of head 1.",
        ),
    ),
    hints=(
        "Call every head on the same x. Which axis of the answers should grow?",
        "torch.cat joins tensors along an axis that they have; torch.stack makes a new one.",
    ),
)


# ---------------------------------------------------------------- 06.2


def many_heads(q, k, v, n_head):
    """q, k, v (B, T, C) -> (B, T, C): causal attention in n_head slices of the channels."""
    B, T, C = q.shape
    head_size = C // n_head
    q, k, v = (z.view(B, T, n_head, head_size).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.mT / head_size**0.5  # (B, n_head, T, T)
    scores = scores.masked_fill(~causal_mask(T), float("-inf"))
    out = torch.softmax(scores, dim=-1) @ v  # (B, n_head, T, head_size)
    return out.transpose(1, 2).reshape(B, T, C)


def _by_slices(q, k, v, n_head):
    T, size = q.shape[1], q.shape[-1] // n_head
    answers = []
    for h in range(n_head):
        a, b, c = (z[..., h * size : (h + 1) * size] for z in (q, k, v))
        scores = (a @ b.mT / size**0.5).masked_fill(torch.ones(T, T).triu(diagonal=1) == 1, -1e9)
        answers.append(torch.softmax(scores, dim=-1) @ c)
    return torch.cat(answers, dim=-1)


def _qkv():
    generator = torch.Generator().manual_seed(0)
    return [
        (*(torch.randn(3, 8, 20, generator=generator) for _ in range(3)), 4),
        (*(torch.randn(2, 6, 12, generator=generator) for _ in range(3)), 3),
    ]


def _with_split_bug(bug):
    """A bug of splitting or merging as an answer to 06.2."""

    def many_heads(q, k, v, n_head):
        return bug.compute(q, k, v, n_head, correct_attention)[0]

    return many_heads


def _with_bug_in_heads(bug):
    """A bug of the attention in each head as an answer to 06.2."""

    def many_heads(q, k, v, n_head):
        return in_heads(bug.compute, q, k, v, n_head)[0]

    return many_heads


def _no_transpose(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.view(B, T, n_head, -1) for z in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).reshape(B, T, C)


def _last_axes_swapped(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.view(B, T, n_head, -1).mT for z in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).mT.reshape(B, T, C)


MANY_HEADS = Exercise(
    id="06.2",
    title="All heads in one tensor",
    reference=many_heads,
    cases=_qkv,
    accepted=(_by_slices,),
    checked="B, T, n_head and head_size all different: equal to slicing the channels and running single heads",
    mistakes=(
        *(
            Mistake(bug.name, function=_with_split_bug(bug), message=bug.message)
            for bug in SPLIT_BUGS.values()
        ),
        Mistake(
            "no transpose",
            function=_no_transpose,
            message="After view the shape is (B, T, n_head, head_size), and attention runs over the last two axes: the heads of one token attended to each other, "
            "and no token to another. transpose(1, 2) brings the tokens there; after it, transpose back and merge.",
        ),
        Mistake(
            "no transpose, so the mask does not fit",
            change=(
                ("view(B, T, n_head, head_size).transpose(1, 2)", "view(B, T, n_head, head_size)"),
                ("out.transpose(1, 2)", "out"),
            ),
            message="The scores are (B, T, n_head, n_head): heads of one token, not tokens, so a (T, T) mask does not fit. After view the shape is "
            "(B, T, n_head, head_size); transpose(1, 2) puts the tokens in the last axis but one.",
        ),
        Mistake(
            ".mT instead of transpose(1, 2)",
            function=_last_axes_swapped,
            message=".mT swaps the last two axes: (B, T, head_size, n_head), and tokens never meet. Swap the tokens with the heads: transpose(1, 2).",
        ),
        Mistake(
            "merged with .mT",
            change=("out.transpose(1, 2)", "out.mT"),
            message="Split right, merged wrong: .mT swaps tokens and channels, (B, n_head, head_size, T). Back goes what came: transpose(1, 2), then reshape.",
        ),
        Mistake(
            "n_head and head_size swapped",
            change=(
                ("view(B, T, n_head, head_size)", "view(B, T, head_size, n_head)"),
                ("head_size**0.5", "n_head**0.5"),
            ),
            message="You cut head_size heads of n_head channels each. It is view(B, T, n_head, head_size): first how many heads, then how many channels each has.",
        ),
        Mistake(
            "n_head and head_size swapped, but divided by √head_size",
            change=("view(B, T, n_head, head_size)", "view(B, T, head_size, n_head)"),
            message="You cut head_size heads of n_head channels each; only √head_size is right. It is view(B, T, n_head, head_size).",
        ),
        Mistake(
            "only v split by view",
            change=(
                ("q, k, v = (z", "v = v.view(B, n_head, T, head_size)\n    q, k = (z"),
                ("in (q, k, v)", "in (q, k)"),
            ),
            message="Queries and keys are split right, the values by view alone: the weights are right and mix the wrong numbers. "
            "v needs view(B, T, n_head, head_size) and transpose(1, 2) as well.",
        ),
        Mistake(
            "not merged",
            change=("out.transpose(1, 2).reshape(B, T, C)", "out"),
            message="The heads are right and still apart: (B, n_head, T, head_size). Bring them back to (B, T, C): transpose(1, 2), then reshape.",
        ),
        Mistake(
            "divided by √C",
            change=("head_size**0.5", "C**0.5"),
            message="You divided by √C. A head's score adds up head_size = C / n_head products.",
        ),
        Mistake(
            "divided by √n_head",
            change=("head_size**0.5", "n_head**0.5"),
            message="You divided by √n_head, the square root of the number of heads. A head's score adds up head_size = C / n_head products.",
        ),
        *(
            Mistake(bug.name, function=_with_bug_in_heads(bug), message=bug.message)
            for bug in (ATTENTION_BUGS | HEAD_AXIS_BUGS).values()
        ),
        Mistake(
            "heads averaged",
            change=("out.transpose(1, 2).reshape(B, T, C)", "out.mean(dim=1)"),
            message="The heads were averaged, which leaves head_size channels. Put them side by side.",
        ),
    ),
    hints=(
        "Three parts: split, attend as always, merge. Only the first and last are new.",
        "z.view(B, T, n_head, head_size).transpose(1, 2) is (B, n_head, T, head_size).",
        "Back: out.transpose(1, 2).reshape(B, T, C).",
    ),
)


# ---------------------------------------------------------------- 06.3


def cut_qkv(fused):
    """(3 * C, C) -> three (C, C) weights: query, key, value."""
    return fused.chunk(3)


def _cut_by_view(fused):
    return fused.view(3, -1, fused.shape[-1])


def _cut_by_slices(fused):
    C = fused.shape[-1]
    return [fused[:C], fused[C : 2 * C], fused[2 * C :]]


CUT_QKV = Exercise(
    id="06.3",
    title="Cut a fused weight",
    reference=cut_qkv,
    cases=lambda: [
        (torch.randn(18, 6, generator=torch.Generator().manual_seed(0)),),
        (torch.randn(9, 3, generator=torch.Generator().manual_seed(1)),),
    ],
    accepted=(_cut_by_view, _cut_by_slices),
    several=True,
    checked="two fused weights: query first, then key, then value",
    mistakes=(
        Mistake(
            "cut along the columns",
            change=("chunk(3)", "chunk(3, dim=1)"),
            message="You cut the columns. The 3C rows are the outputs: chunk(3), along dim 0.",
        ),
        Mistake(
            "transposed first, then cut",
            change=("chunk(3)", "T.reshape(3, fused.shape[1], -1)"),
            message="nn.Linear stores (out, in): the 3C outputs are the rows. Cut the rows into three blocks; columns are the inputs.",
        ),
        Mistake(
            "every third row",
            change=("fused.chunk(3)", "[fused[i::3] for i in range(3)]"),
            message="You took every third row. The three weights lie in blocks of C rows.",
        ),
        Mistake(
            "transposed",
            change=("fused.chunk(3)", "[piece.T for piece in fused.chunk(3)]"),
            message="The right blocks, each transposed. A weight that goes into an nn.Linear stays (out, in).",
        ),
        Mistake(
            "pieces of three rows",
            change=("chunk(3)", "split(3)"),
            message="split takes the length of a piece, not the number of pieces: these have three rows each. chunk takes the number.",
        ),
        Mistake(
            "key first",
            change=("fused.chunk(3)", "[fused.chunk(3)[i] for i in (1, 0, 2)]"),
            message="Query and key changed places: query, key, value.",
        ),
    ),
    hints=(
        "The rows are 3C: C for the query, then C for the key, then C for the value.",
        "fused.chunk(3) cuts the rows into three pieces; fused.split(C) into pieces of C rows.",
    ),
)


EXERCISES = (SIDE_BY_SIDE_HEADS, MANY_HEADS, CUT_QKV)


# ---------------------------------------------------------------- predictions

PREDICTIONS = (
    Prediction(
        id="06.p1",
        question="Heads 0 and 1 change places in the row of answers. What must be done to W_O so that the output stays the same?",
        choices={
            "a": Choice(
                "nothing: heads have no order",
                "They have no order by nature, but W_O was written for one: its first eight rows belong to whatever stands first.",
            ),
            "b": Choice(
                "swap its first two groups of eight rows",
                "concat @ W_O is a sum: the output of each head times its group of rows. As long as each head meets its own rows, the order of the sum does not matter.",
            ),
            "c": Choice(
                "swap its first two groups of eight columns",
                "Columns of W_O are channels of the output. What it reads from the heads are its rows.",
            ),
            "d": Choice(
                "swap rows 0 and 1",
                "A head is eight channels, so eight rows belong to it.",
            ),
        },
        answer="b",
    ),
    Prediction(
        id="06.p2",
        question="C stays at 32. What happens to the number of parameters when n_head goes from 1 to 8?",
        choices={
            "a": Choice(
                "eight times as many",
                "Each head has three matrices, but they shrink: 32 × 4 instead of 32 × 32.",
            ),
            "b": Choice(
                "an eighth",
                "One head of size 4 has an eighth; there are eight of them.",
            ),
            "c": Choice(
                "the same",
                "n_head matrices of (32, 32/n_head) are 32 · 32 numbers, whatever n_head is. Heads share the channels out.",
            ),
        },
        answer="c",
    ),
    Prediction(
        id="06.p3",
        question="Split by view and merge by view, both without the transpose. Does the future leak?",
        choices={
            "a": Choice(
                "yes, twice as badly",
                "The second mistake undoes the first one's displacement: every number comes back to its own token's place.",
            ),
            "b": Choice(
                "no, and the module is right after all",
                "Nothing leaks, but each “head” holds two whole tokens in place of a slice of all of them. The others it never meets.",
            ),
            "c": Choice(
                "no, but the later tokens attend to hardly anything",
                "Each “head” got two whole tokens. No token attends to the future, and hardly any token to the past. The probe no_leak cannot see that; reach can.",
            ),
            "d": Choice(
                "only in head 0",
                "All heads are cut and put together in the same way. Head 0 got tokens 0 and 1, head 1 tokens 2 and 3, and so on; none lets the future through.",
            ),
        },
        answer="c",
    ),
)

TERMS = ()
