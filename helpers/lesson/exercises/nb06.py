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
    merge_heads,
    split_heads,
)
from helpers.clinic.module_bugs import MODULE_SPLIT_BUGS
from helpers.lesson.exercises.attention_bugs import as_mistake
from helpers.lesson.grading import Exercise, Mistake
from helpers.lesson.question import Choice, Prediction
from helpers.lesson.terms import Term
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


def _fed_forward(heads, x):
    out = []
    for head in heads:
        x = head(x)
        out.append(x)
    return torch.cat(out, dim=-1)


def _heads_and_x():
    seed_all(0)
    return [
        ([Head(6, 2) for _ in range(3)], torch.randn(4, 5, 6)),
        ([Head(8, 3) for _ in range(2)], torch.randn(3, 6, 8)),
    ]


def _with_x(heads, x):
    return torch.cat([x, *(head(x) for head in heads)], dim=-1)


def _before_x(heads, x):
    return torch.cat([*(head(x) for head in heads), x], dim=-1)


def _multiplied(heads, x):
    return torch.stack([head(x) for head in heads]).prod(dim=0)


SIDE_BY_SIDE_HEADS = Exercise(
    id="06.1",
    title="A list of heads",
    reference=side_by_side_heads,
    axes={"heads": "n_head", "x": "B T C", "return": "B T n_head·head_size"},
    sizes={
        "head_size": lambda heads, x: heads[0](x).shape[-1],
    },
    intermediates=(
        ("the heads' results with `x` itself in front of them", _with_x),
        ("the heads' results with `x` itself behind them", _before_x),
        ("the product of the heads' results", _multiplied),
    ),
    trained=True,
    cases=_heads_and_x,
    checked="three heads of 2 channels and two heads of 3: the outputs stand side by side, head 0 first",
    mistakes=(
        Mistake(
            "stacked on a new axis",
            change=(("torch.cat", "torch.stack"), ("dim=-1", "dim=1")),
            message="The heads got an axis of their own. Side by side means along the channels: the last axis grows, no axis is added.",
        ),
        Mistake(
            "stacked on a new last axis",
            change=("torch.cat", "torch.stack"),
            message="The heads got a new axis behind the channels, (B, T, head_size, n_head). Side by side means along the channels: torch.cat makes the last axis "
            "longer and adds none.",
        ),
        Mistake(
            "stacked on a new first axis",
            change=(("torch.cat", "torch.stack"), ("dim=-1", "dim=0")),
            message="The heads got a new axis in front, (n_head, B, T, head_size). Side by side means along the channels: torch.cat makes the last axis "
            "longer and adds none.",
        ),
        Mistake(
            "stacked on a new axis before the channels",
            change=(("torch.cat", "torch.stack"), ("dim=-1", "dim=2")),
            message="The heads got an axis of their own, (B, T, n_head, head_size). Side by side means along the channels: torch.cat makes the last axis "
            "longer and adds none.",
        ),
        Mistake(
            "each head reads the head before it",
            function=_fed_forward,
            message="A head got the output of the head before it, which has head_size channels, not C. All heads read the same x.",
        ),
        Mistake(
            "along the time axis",
            change=("dim=-1", "dim=1"),
            message="The outputs are joined one after another in time: the sequence became n_head times as long. Join them along the channels, dim=-1.",
        ),
        Mistake(
            "along the batch axis",
            change=("dim=-1", "dim=0"),
            message="The batch became n_head times as large. Join the outputs along the channels, dim=-1.",
        ),
        Mistake(
            "averaged",
            change=(("torch.cat", "torch.stack"), (", dim=-1)", ").mean(dim=0)")),
            message="This is the mean of the heads, in which their outputs can no longer be told apart. Put them side by side; the projection will mix them.",
        ),
        Mistake(
            "added",
            change=(
                "torch.cat([head(x) for head in heads], dim=-1)",
                "sum(head(x) for head in heads)",
            ),
            message="This is the sum of the heads. Side by side each keeps its own channels; adding comes with the projection, where each head has its own rows of W_O.",
        ),
        Mistake(
            "one after the other",
            function=_chained,
            message="Each head got what the one before it had changed. Heads work at the same time, all on the same x.",
        ),
        Mistake(
            "last head first",
            change=("in heads", "in reversed(heads)"),
            message="The heads stand in the reverse order. Head 0 comes first.",
        ),
        Mistake(
            "the same head each time",
            change=("head(x) for head", "heads[0](x) for head"),
            message="All parts hold the output of head 0. Call every head in turn.",
        ),
        Mistake(
            "the first head only",
            change=("torch.cat([head(x) for head in heads], dim=-1)", "heads[0](x)"),
            message="This is the output of head 0 alone. Keep the output of every head in a list, and join and return them after the loop.",
        ),
        Mistake(
            "the last head only",
            change=("torch.cat([head(x) for head in heads], dim=-1)", "heads[-1](x)"),
            message="This is the output of the last head alone. Append the output of every head to a list, and join the list after the loop.",
        ),
        Mistake(
            "stacked, then reshaped",
            change=(("torch.cat", "torch.stack"), ("dim=-1)", "dim=0).reshape(*x.shape[:2], -1)")),
            message="The shape is right, the numbers are in the wrong places: they stand in the order of heads, then sequences, tokens and channels, and reshape and view keep "
            "the order. torch.cat joins the outputs along the channels, dim=-1.",
        ),
        Mistake(
            "stacked on axis 1, then reshaped",
            change=(("torch.cat", "torch.stack"), ("dim=-1)", "dim=1).reshape(*x.shape[:2], -1)")),
            message="The shape is right, the numbers are in the wrong places: in each sequence they stand in the order of heads, then tokens and channels, and reshape and view "
            "keep the order. torch.cat joins the outputs along the channels, dim=-1.",
        ),
        Mistake(
            "channels of the heads shuffled together",
            change=(("torch.cat", "torch.stack"), ("dim=-1)", "dim=-1).flatten(-2)")),
            message="The channels alternate between the heads. First all channels of head 0, then all of head 1.",
        ),
    ),
    hints=(
        "Call every head on the same x, and collect the outputs in a list. Which axis of the result should be longer than that of one output?",
        "torch.cat(outputs, dim=…) joins the tensors of the list along an axis that they have. The channels are the last axis, dim=-1.",
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


def _interleaved(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.reshape(B, T, C // n_head, n_head).permute(0, 3, 1, 2) for z in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out.permute(0, 2, 3, 1).reshape(B, T, C)


def _no_transpose(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.view(B, T, n_head, -1) for z in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).reshape(B, T, C)


def _last_axes_swapped(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.view(B, T, n_head, -1).mT for z in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).mT.reshape(B, T, C)


def _mask_for_masked_fill(q, k, v, n_head):
    q, k, v = (split_heads(z, n_head) for z in (q, k, v))
    future = ~causal_mask(q.shape[-2])
    return merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=future))


_STEPS = (
    "the queries after the split, (B, n_head, T, head_size)",
    "the keys after the split",
    "the values after the split",
    "the scores, before the division, the mask and the softmax",
    "the scaled scores, before the mask and the softmax",
    "the masked, scaled scores, before the softmax",
    "the weights, not yet multiplied by the values",
    "the outputs of the heads, not yet merged",
    "the outputs of the heads with their axes in the right order, but not yet joined",
)


def _step(n):
    """A step on the way to the merged output, as a function of the arguments."""

    def step(q, k, v, n_head):
        q, k, v = (split_heads(z, n_head) for z in (q, k, v))
        scores = q @ k.mT
        scaled = scores / q.shape[-1] ** 0.5
        masked = scaled.masked_fill(~causal_mask(q.shape[-2]), float("-inf"))
        weights = torch.softmax(masked, dim=-1)
        out = weights @ v
        return (q, k, v, scores, scaled, masked, weights, out, out.transpose(1, 2))[n]

    return step


MANY_HEADS = Exercise(
    id="06.2",
    title="All heads in one tensor",
    reference=many_heads,
    axes={"q": "B T C", "k": "B T C", "v": "B T C", "return": "B T C"},
    sizes={
        "n_head": lambda q, k, v, n_head: n_head,
        "head_size": lambda q, k, v, n_head: q.shape[-1] // n_head,
    },
    intermediates=tuple((name, _step(n)) for n, name in enumerate(_STEPS)),
    trained=True,
    cases=_qkv,
    accepted=(_by_slices,),
    checked="two cases in which B, T, n_head and head_size all differ: the outputs equal those of single heads on slices of the channels",
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
            message="At the split, .mT swaps the last two axes: (B, T, head_size, n_head), and tokens never meet. Swap the tokens with the heads: transpose(1, 2).",
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
            message=MODULE_SPLIT_BUGS["n_head and head_size swapped"].message,
        ),
        Mistake(
            "n_head and head_size swapped, but divided by √head_size",
            change=("view(B, T, n_head, head_size)", "view(B, T, head_size, n_head)"),
            message=MODULE_SPLIT_BUGS[
                "n_head and head_size swapped, but divided by √head_size"
            ].message,
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
            "channels interleaved by split and merge",
            function=_interleaved,
            message="Head 0 got channels 0, n_head, 2·n_head, …, and the merge puts them back there. A head has neighbouring channels: "
            "view(B, T, n_head, head_size), in this order, and the same way back.",
        ),
        Mistake(
            "keys transposed on other axes",
            change=("q @ k.mT", "q @ k.transpose(1, 2)"),
            message="After the split the keys are (B, n_head, T, head_size), and the scores need their last two axes swapped: k.mT. "
            "transpose(1, 2) swaps heads and tokens here, and .T reverses all four axes.",
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
            "a second softmax",
            change=(
                "torch.softmax(scores, dim=-1)",
                "torch.softmax(torch.softmax(scores, dim=-1), dim=-1)",
            ),
            message="A softmax ran on the weights once more: the zeros of the future became e⁰ = 1, so the future is visible. One softmax is enough.",
        ),
        Mistake(
            "scaled after the softmax",
            change=((" / head_size**0.5", ""), ("dim=-1) @ v", "dim=-1) / head_size**0.5 @ v")),
            message="The weights were divided by √head_size, not the scores: each row sums to 1/√head_size. Divide the scores, before the mask and the softmax.",
        ),
        Mistake(
            "divided by √C",
            change=("head_size**0.5", "C**0.5"),
            message="The scores are divided by √C. A head's score adds up head_size = C / n_head products.",
        ),
        Mistake(
            "keys not transposed",
            change=("q @ k.mT", "q @ k"),
            message="The keys are not transposed, so the shapes do not fit. In each head the scores are q @ k.mT: (T, head_size) @ (head_size, T) -> (T, T).",
        ),
        Mistake(
            "divided by head_size / 2",
            change=("head_size**0.5", "(head_size / 2)"),
            message="The scores are divided by half of head_size. If you wrote head_size ** 1 / 2: Python reads (head_size ** 1) / 2. The root is head_size ** 0.5.",
        ),
        Mistake(
            "divided by 2 head_size",
            change=("head_size**0.5", "(2 * head_size)"),
            message="The scores are divided by 2 · head_size. If you wrote scores / head_size ** 1 / 2: Python divides by head_size ** 1 and then by 2. The root is head_size ** 0.5.",
        ),
        Mistake(
            "no softmax",
            change=("torch.softmax(scores, dim=-1)", "scores"),
            message="The scores themselves mix the values, with -inf for the future. Make them weights first: softmax with dim=-1.",
        ),
        Mistake(
            "divided by √n_head",
            change=("head_size**0.5", "n_head**0.5"),
            message="The scores are divided by √n_head, the square root of the number of heads. A head's score adds up head_size = C / n_head products.",
        ),
        Mistake(
            "mask the wrong way round for PyTorch's function",
            function=_mask_for_masked_fill,
            message="The past and the diagonal are masked, the future is left, and the last row, which has no future, is 0. "
            "scaled_dot_product_attention wants a mask that is True where a token may attend; masked_fill wants the opposite.",
        ),
        *(
            as_mistake(bug, _with_bug_in_heads(bug))
            for bug in (ATTENTION_BUGS | HEAD_AXIS_BUGS).values()
        ),
        Mistake(
            "heads averaged",
            change=("out.transpose(1, 2).reshape(B, T, C)", "out.mean(dim=1)"),
            message="The heads were averaged, which leaves head_size channels. Put them side by side.",
        ),
    ),
    hints=(
        "There are three parts: split, attend, merge. The middle is the head of exercise 04.3, since @ and softmax treat n_head as one more batch axis.",
        "To split q, k and v: z.view(B, T, n_head, head_size).transpose(1, 2) has the shape (B, n_head, T, head_size).",
        "To merge: out.transpose(1, 2) brings back (B, T, n_head, head_size), and .reshape(B, T, C) joins the last two axes.",
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


def _query_scaled(fused):
    query, key, value = fused.chunk(3)
    return query / fused.shape[1] ** 0.5, key, value


_QKV = ("query", "key", "value")


CUT_QKV = Exercise(
    id="06.3",
    title="Split a fused weight",
    reference=cut_qkv,
    cases=lambda: [
        (torch.randn(18, 6, generator=torch.Generator().manual_seed(0)),),
        (torch.randn(9, 3, generator=torch.Generator().manual_seed(1)),),
    ],
    accepted=(_cut_by_view, _cut_by_slices),
    several=True,
    axes={"fused": "3C C", "return": "3 C C"},
    intermediates=(
        ("the query's weight three times", lambda fused: [fused.chunk(3)[0]] * 3),
        ("the right three weights, the query's divided by √C", _query_scaled),
    ),
    checked="two fused weights of different sizes: query first, then key, then value",
    mistakes=(
        Mistake(
            "cut along the columns",
            change=("chunk(3)", "chunk(3, dim=1)"),
            message="The columns were cut, not the rows. The 3C rows belong to the outputs: chunk(3), along dim 0.",
        ),
        Mistake(
            "transposed first, then cut",
            change=("chunk(3)", "T.reshape(3, fused.shape[1], -1)"),
            message="nn.Linear stores (out, in): the 3C outputs are the rows. Cut the rows into three blocks; columns are the inputs.",
        ),
        Mistake(
            "every third row",
            change=("fused.chunk(3)", "[fused[i::3] for i in range(3)]"),
            message="Each piece holds every third row. The three weights lie in blocks of C rows.",
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
        *(
            Mistake(
                name,
                change=("fused.chunk(3)", f"[fused.chunk(3)[i] for i in {order}]"),
                message=f"The three weights are right, but their order is {', '.join(_QKV[i] for i in order)}. It has to be query, key, value.",
            )
            for name, order in (
                ("key first", (1, 0, 2)),
                ("key and value exchanged", (0, 2, 1)),
                ("value first, query last", (2, 1, 0)),
                ("value first", (2, 0, 1)),
                ("query last", (1, 2, 0)),
            )
        ),
    ),
    hints=(
        "Of the 3C rows, the first C belong to the query, the next C to the key, the last C to the value.",
        "fused.chunk(3) cuts the rows into three equal pieces. fused.split(C), with C = fused.shape[1], cuts them into pieces of C rows.",
    ),
)


EXERCISES = (SIDE_BY_SIDE_HEADS, MANY_HEADS, CUT_QKV)


# ---------------------------------------------------------------- predictions

PREDICTIONS = (
    Prediction(
        id="06.p1",
        question="Heads 0 and 1 change places in the concatenation. What must be done to W_O so that the output stays the same?",
        choices={
            "a": Choice(
                "nothing: heads have no order",
                "The heads could stand in any order from the beginning. But each row of W_O is multiplied by one channel of the concatenation, "
                "so W_O as it is would multiply the output of head 1 by the rows of head 0.",
            ),
            "b": Choice(
                "swap its first two groups of eight rows",
                "Row r of W_O is multiplied by channel r of the concatenation. If the rows move with their channels, "
                "the same products are added, only in another order.",
            ),
            "c": Choice(
                "swap its first two groups of eight columns",
                "This changes places among the channels of the output. The channels of the concatenation are multiplied by the rows.",
            ),
            "d": Choice(
                "swap rows 0 and 1",
                "This would be right if a head had one channel. Here each head has eight, so eight rows have to move.",
            ),
        },
        answer="b",
    ),
    Prediction(
        id="06.p2",
        question="C stays at 32, and the concatenation keeps its 32 channels. What happens to the number of parameters when n_head goes from 1 to 8?",
        choices={
            "a": Choice(
                "it becomes eight times as large",
                "There are eight times as many matrices, but each is an eighth as large: (32, 4) in place of (32, 32), because head_size = C / n_head.",
            ),
            "b": Choice(
                "it becomes an eighth",
                "This is true of the query, key and value matrix of each head. But there are eight heads, and W_O keeps its size.",
            ),
            "c": Choice(
                "it stays the same",
                "For the queries, n_head matrices of (32, 32 / n_head) have 32 · 32 entries together, whatever n_head is. "
                "The same holds for the keys and the values, and W_O is (32, 32) in any case.",
            ),
        },
        answer="c",
    ),
    Prediction(
        id="06.p3",
        question="The split and the merge both use view alone, without the transpose. Does the future leak?",
        choices={
            "a": Choice(
                "yes, twice as badly",
                "The two mistakes do not add up. The wrong merge puts every number back to the token that the wrong split took it from. "
                "And inside a head the rows still stand in the order of the tokens, so no row can attend to a later token.",
            ),
            "b": Choice(
                "no, and the module is right after all",
                "Nothing leaks, but each “head” holds all channels of two tokens, where it should hold eight channels of all tokens. "
                "So a token can never attend to the tokens of the other “heads”.",
            ),
            "c": Choice(
                "no, but most outputs no longer depend on most of their past",
                "Each “head” holds two whole tokens, and the merge puts them back to their places. A token can attend to itself and at most "
                "to one token before it. The probe no_leak passes; the probe reach finds the mistake.",
            ),
        },
        answer="c",
    ),
)


# ---------------------------------------------------------------- terms

TERMS = (
    Term(
        "multi-head attention",
        "A layer in which several attention heads attend to the same tokens at the same time, each with its own queries, keys and values.",
        also=("MHA",),
    ),
    Term(
        "concatenation",
        "Tensors put one behind the other along an axis that they have, such as the outputs of all heads along the channels.",
        also=("concat",),
    ),
    Term(
        "output projection",
        "The last matrix of multi-head attention, which combines the outputs of all heads in every channel.",
        also=("W_O", "out_proj"),
    ),
    Term(
        "fused",
        "Combined into one, such as the weights of queries, keys and values in a single matrix, or all steps of attention in a single function.",
    ),
)
