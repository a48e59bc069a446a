"""Predictions and exercises of notebook 06: many heads."""

import torch
import torch.nn.functional as F

from helpers.attention import Head, causal_mask
from helpers.clinic.bugs import ATTENTION_BUGS as ILLNESSES
from helpers.clinic.bugs import HEAD_AXIS_BUGS as OVER_HEADS
from helpers.clinic.bugs import SPLIT_BUGS as HEAD_ILLNESSES
from helpers.clinic.bugs import correct_attention as healthy
from helpers.clinic.bugs import in_heads
from helpers.lesson.grading import Choice, Exercise, Mistake, Prediction

# ---------------------------------------------------------------- 06.1


def side_by_side_heads(heads, x):
    """Functions (B, T, C) -> (B, T, head_size), and x (B, T, C) -> (B, T, n_head * head_size)."""
    return torch.cat([head(x) for head in heads], dim=-1)


def _stacked(heads, x):
    return torch.stack([head(x) for head in heads], dim=1)


def _along_time(heads, x):
    return torch.cat([head(x) for head in heads], dim=1)


def _along_batch(heads, x):
    return torch.cat([head(x) for head in heads], dim=0)


def _averaged(heads, x):
    return torch.stack([head(x) for head in heads]).mean(dim=0)


def _added(heads, x):
    return sum(head(x) for head in heads)


def _chained(heads, x):
    out = []
    for head in heads:
        out.append(head(x))
        x = torch.cat([out[-1], x[..., out[-1].shape[-1] :]], dim=-1)
    return torch.cat(out, dim=-1)


def _last_first(heads, x):
    return torch.cat([head(x) for head in reversed(heads)], dim=-1)


def _first_only(heads, x):
    return torch.cat([heads[0](x) for _ in heads], dim=-1)


def _returns_in_the_loop(heads, x):
    return heads[0](x)


def _last_only(heads, x):
    return heads[-1](x)


def _poured_together(heads, x, dim=0):
    return torch.stack([head(x) for head in heads], dim=dim).reshape(*x.shape[:2], -1)


def _poured_within_sequences(heads, x):
    return _poured_together(heads, x, dim=1)


def _interleaved(heads, x):
    return torch.stack([head(x) for head in heads], dim=-1).flatten(-2)


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


def _ill_split(name):
    """The illness of this name, of splitting and merging, as an answer to 06.2."""

    def many_heads(q, k, v, n_head):
        return HEAD_ILLNESSES[name].compute(q, k, v, n_head, healthy)[0]

    return many_heads


_ATTENDING = ILLNESSES | OVER_HEADS


def _ill(name):
    """The illness of this name, of attending in each head, as an answer to 06.2."""

    def many_heads(q, k, v, n_head):
        return in_heads(_ATTENDING[name].compute, q, k, v, n_head)[0]

    return many_heads


def _split(z, n_head):
    """Split right: (B, T, C) -> (B, n_head, T, head_size)."""
    B, T, _ = z.shape
    return z.view(B, T, n_head, -1).transpose(1, 2)


def _attend(q, k, v, root=None, may_attend=None):
    """Causal attention in each head, perhaps with another number under the root or mask."""
    may_attend = causal_mask(q.shape[-2]) if may_attend is None else may_attend
    scores = q @ k.mT / (root or q.shape[-1]) ** 0.5
    return torch.softmax(scores.masked_fill(~may_attend, float("-inf")), dim=-1) @ v


def _heads(q, k, v, n_head, **changed):
    """The reference with one place of the attention changed."""
    out = _attend(*(_split(z, n_head) for z in (q, k, v)), **changed)
    return out.transpose(1, 2).reshape(q.shape)


def _root_of_C(q, k, v, n_head):
    return _heads(q, k, v, n_head, root=q.shape[-1])


def _root_of_n_head(q, k, v, n_head):
    return _heads(q, k, v, n_head, root=n_head)


def _no_transpose(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.view(B, T, n_head, -1) for z in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).reshape(B, T, C)


def _no_transpose_own_mask(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.view(B, T, n_head, -1) for z in (q, k, v))
    return _attend(q, k, v, may_attend=causal_mask(T)).reshape(B, T, C)


def _last_axes_swapped(q, k, v, n_head):
    B, T, C = q.shape
    q, k, v = (z.view(B, T, n_head, -1).mT for z in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).mT.reshape(B, T, C)


def _merged_by_last_axes(q, k, v, n_head):
    return _attend(*(_split(z, n_head) for z in (q, k, v))).mT.reshape(q.shape)


def _sizes_swapped(q, k, v, n_head):
    return _heads(q, k, v, q.shape[-1] // n_head)


def _sizes_swapped_but_the_root(q, k, v, n_head):
    head_size = q.shape[-1] // n_head
    return _heads(q, k, v, head_size, root=head_size)


def _only_v_by_view(q, k, v, n_head):
    B, T, C = q.shape
    out = _attend(_split(q, n_head), _split(k, n_head), v.view(B, n_head, T, -1))
    return out.transpose(1, 2).reshape(B, T, C)


def _not_merged(q, k, v, n_head):
    return _attend(*(_split(z, n_head) for z in (q, k, v)))


def _heads_averaged(q, k, v, n_head):
    return _not_merged(q, k, v, n_head).mean(dim=1)


def _by_slices(q, k, v, n_head):
    T, size = q.shape[1], q.shape[-1] // n_head
    answers = []
    for h in range(n_head):
        a, b, c = (z[..., h * size : (h + 1) * size] for z in (q, k, v))
        scores = (a @ b.mT / size**0.5).masked_fill(torch.ones(T, T).triu(diagonal=1) == 1, -1e9)
        answers.append(torch.softmax(scores, dim=-1) @ c)
    return torch.cat(answers, dim=-1)


# ---------------------------------------------------------------- 06.3


def cut_qkv(fused):
    """(3 * C, C) -> three (C, C) weights: query, key, value."""
    return fused.chunk(3)


def _cut_columns(fused):
    return torch.stack(fused.chunk(3, dim=1))


def _cut_columns_turned(fused):
    C = fused.shape[-1]
    return fused.T.reshape(3, C, C)


def _cut_every_third(fused):
    C = fused.shape[-1]
    return fused.view(C, 3, C).transpose(0, 1)


def _cut_transposed(fused):
    C = fused.shape[-1]
    return fused.view(3, C, C).mT


def _cut_key_first(fused):
    C = fused.shape[-1]
    return fused.view(3, C, C)[[1, 0, 2]]


def _cut_in_threes(fused):
    return torch.stack(fused.split(3))


def _cut_by_view(fused):
    return fused.view(3, -1, fused.shape[-1])


def _cut_by_slices(fused):
    C = fused.shape[-1]
    return [fused[:C], fused[C : 2 * C], fused[2 * C :]]


def _heads_and_x():
    torch.manual_seed(0)
    return [
        ([Head(6, 2) for _ in range(3)], torch.randn(4, 5, 6)),
        ([Head(8, 4) for _ in range(2)], torch.randn(3, 6, 8)),
    ]


def _qkv():
    generator = torch.Generator().manual_seed(0)
    return [
        (*(torch.randn(3, 8, 20, generator=generator) for _ in range(3)), 4),
        (*(torch.randn(2, 6, 12, generator=generator) for _ in range(3)), 3),
    ]


EXERCISES = (
    Exercise(
        id="06.1",
        title="A list of heads",
        reference=side_by_side_heads,
        cases=_heads_and_x,
        checked="three heads of 2 channels and two heads of 4, head 0 first",
        mistakes=(
            Mistake(
                "stacked on a new axis",
                _stacked,
                "The heads got an axis of their own. Side by side means along the channels: the last axis grows, no axis is added.",
            ),
            Mistake(
                "along the time axis",
                _along_time,
                "The answers stand behind one another in time: the sequence became n_head times as long. Join them along the channels, dim=-1.",
            ),
            Mistake(
                "along the batch axis",
                _along_batch,
                "The batch became n_head times as large. Join the answers along the channels, dim=-1.",
            ),
            Mistake(
                "averaged",
                _averaged,
                "You averaged the heads, so nobody can tell any more who said what. Put the answers side by side; the projection will mix them.",
            ),
            Mistake(
                "added",
                _added,
                "You added the heads. Side by side each keeps its own channels; adding comes with the projection, through separate slabs.",
            ),
            Mistake(
                "one after the other",
                _chained,
                "Each head got what the one before it had changed. Heads work at the same time, all on the same x.",
            ),
            Mistake(
                "last head first", _last_first, "The order is turned round: head 0 comes first."
            ),
            Mistake(
                "the same head each time",
                _first_only,
                "All slices hold the answer of head 0. Call every head in turn.",
            ),
            Mistake(
                "the first head only",
                _returns_in_the_loop,
                "Only head 0 answers. Does `return` stand inside the loop? The first round ends the function there: collect all answers, then return.",
            ),
            Mistake(
                "the last head only",
                _last_only,
                "Only the last head is left: each round of the loop wrote over the one before. Append every answer to a list, and join the list.",
            ),
            Mistake(
                "stacked, then reshaped",
                _poured_together,
                "The shape is right, the numbers are in the wrong places: the axis of heads stands in front of the batch, and reshape keeps the reading order. "
                "torch.cat joins the answers along the channels, dim=-1.",
            ),
            Mistake(
                "stacked on axis 1, then reshaped",
                _poured_within_sequences,
                "The shape is right, the numbers are in the wrong places: the axis of heads stands in front of the tokens, and reshape keeps the reading order. "
                "torch.cat joins the answers along the channels, dim=-1.",
            ),
            Mistake(
                "channels of the heads shuffled together",
                _interleaved,
                "The channels alternate between the heads. First all channels of head 0, then all of head 1.",
            ),
        ),
        hints=(
            "Call every head on the same x. Which axis of the answers should grow?",
            "torch.cat joins tensors along an axis that they have; torch.stack makes a new one.",
        ),
    ),
    Exercise(
        id="06.2",
        title="All heads in one tensor",
        reference=many_heads,
        cases=_qkv,
        accepted=(_by_slices,),
        checked="B, T, n_head and head_size all different: equal to slicing the channels and running single heads",
        mistakes=(
            *(
                Mistake(illness.name, _ill_split(illness.name), illness.message)
                for illness in HEAD_ILLNESSES.values()
            ),
            Mistake(
                "no transpose",
                _no_transpose,
                "After view the shape is (B, T, n_head, head_size), and attention runs over the last two axes: the heads of one token listened to each other, "
                "and no token to another. transpose(1, 2) brings the tokens there; after it, transpose back and merge.",
            ),
            Mistake(
                "no transpose, so the mask does not fit",
                _no_transpose_own_mask,
                "The scores are (B, T, n_head, n_head): heads of one token, not tokens, so a (T, T) mask does not fit. After view the shape is "
                "(B, T, n_head, head_size); transpose(1, 2) puts the tokens in the last axis but one.",
            ),
            Mistake(
                ".mT instead of transpose(1, 2)",
                _last_axes_swapped,
                ".mT swaps the last two axes: (B, T, head_size, n_head), and tokens never meet. Swap the tokens with the heads: transpose(1, 2).",
            ),
            Mistake(
                "merged with .mT",
                _merged_by_last_axes,
                "Split right, merged wrong: .mT swaps tokens and channels, (B, n_head, head_size, T). Back goes what came: transpose(1, 2), then reshape.",
            ),
            Mistake(
                "n_head and head_size swapped",
                _sizes_swapped,
                "You cut head_size heads of n_head channels each. It is view(B, T, n_head, head_size): first how many heads, then how many channels each has.",
            ),
            Mistake(
                "n_head and head_size swapped, but not under the root",
                _sizes_swapped_but_the_root,
                "You cut head_size heads of n_head channels each; only the root is right. It is view(B, T, n_head, head_size).",
            ),
            Mistake(
                "only v split by view",
                _only_v_by_view,
                "Queries and keys are split right, the values by view alone: the weights are right and mix the wrong numbers. "
                "v needs view(B, T, n_head, head_size) and transpose(1, 2) as well.",
            ),
            Mistake(
                "not merged",
                _not_merged,
                "The heads are right and still apart: (B, n_head, T, head_size). Bring them back to (B, T, C): transpose(1, 2), then reshape.",
            ),
            Mistake(
                "root of C",
                _root_of_C,
                "You divided by the root of C. A head's score adds up head_size = C / n_head products.",
            ),
            Mistake(
                "root of n_head",
                _root_of_n_head,
                "You divided by the root of n_head, the number of heads. A head's score adds up head_size = C / n_head products.",
            ),
            *(
                Mistake(illness.name, _ill(illness.name), illness.message)
                for illness in _ATTENDING.values()
            ),
            Mistake(
                "heads averaged",
                _heads_averaged,
                "The heads were averaged, which leaves head_size channels. Put them side by side.",
            ),
        ),
        hints=(
            "Three parts: split, attend as always, merge. Only the first and last are new.",
            "z.view(B, T, n_head, head_size).transpose(1, 2) is (B, n_head, T, head_size).",
            "Back: out.transpose(1, 2).reshape(B, T, C).",
        ),
    ),
    Exercise(
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
                _cut_columns,
                "You cut the columns. The 3C rows are the outputs: chunk(3), along dim 0.",
            ),
            Mistake(
                "transposed first, then cut",
                _cut_columns_turned,
                "nn.Linear stores (out, in): the 3C outputs are the rows. Cut the rows into three blocks; columns are the inputs.",
            ),
            Mistake(
                "every third row",
                _cut_every_third,
                "You took every third row. The three weights lie in blocks of C rows.",
            ),
            Mistake(
                "transposed",
                _cut_transposed,
                "The right blocks, each transposed. A weight that goes into an nn.Linear stays (out, in).",
            ),
            Mistake(
                "pieces of three rows",
                _cut_in_threes,
                "split takes the length of a piece, not the number of pieces: these have three rows each. chunk takes the number.",
            ),
            Mistake(
                "key first", _cut_key_first, "Query and key changed places: query, key, value."
            ),
        ),
        hints=(
            "The rows are 3C: C for the query, then C for the key, then C for the value.",
            "fused.chunk(3) cuts the rows into three pieces; fused.split(C) into pieces of C rows.",
        ),
    ),
)

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
                "swap its first two slabs of eight rows",
                "concat @ W_O is a sum of answer times slab. As long as each answer meets its own slab, the order of the sum does not matter.",
            ),
            "c": Choice(
                "swap its first two slabs of eight columns",
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
                "no, but the later tokens hear hardly anything",
                "Each “head” got two whole tokens. Nobody hears the future, and hardly anybody hears the past. The probe no_leak cannot see that; reach can.",
            ),
            "d": Choice(
                "only in head 0",
                "All heads are cut and put together in the same way. Head 0 got tokens 0 and 1, head 1 tokens 2 and 3, and so on; none lets the future through.",
            ),
        },
        answer="c",
    ),
)
