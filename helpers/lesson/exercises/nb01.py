"""Predictions and exercises of notebook 01: the causal mean, by loops."""

import torch

from helpers.lesson.grading import Exercise, Mistake
from helpers.lesson.question import Choice, Prediction
from helpers.lesson.terms import Term


def _batches():
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(3, 5, 2, generator=generator)
    first[2, 1] = 0  # a token of zeros counts as any other
    return [(first,), (torch.randn(2, 3, 4, generator=generator),)]


_AXES = {"x": "B T C", "return": "B T C"}


def _running_mean_of_squares(x):
    return (x**2).cumsum(dim=1) / torch.arange(1, x.shape[1] + 1)[:, None]


# What people hand in for the causal mean.
_STEPS = (
    ("the running sums, not yet divided", lambda x: x.cumsum(dim=1)),
    ("the mean of all tokens of each sequence, (B, C)", lambda x: x.mean(dim=1)),
    ("the causal mean of the squares", _running_mean_of_squares),
    ("the largest token so far, in each channel", lambda x: x.cummax(dim=1).values),
)

_FORGETS_ITSELF = (
    "Output t is the mean of tokens 0 to t - 1, without token t. For t = 0 no token is left, and the mean of nothing is nan. "
    "Every token is part of its own mean here: x[b, : t + 1] holds tokens 0 to t."
)

_FORGETS_ITSELF_BUT_0 = (
    "From t = 1 on, output t is the mean of tokens 0 to t - 1, without token t itself. "
    "x[b, : t + 1] holds tokens 0 to t; then output 0 needs no rule of its own."
)


def _without_itself(x, first):
    """The mean of the tokens before, and something else for output 0."""
    means = (x.cumsum(dim=1) - x)[:, 1:] / torch.arange(1, x.shape[1])[:, None]
    return torch.cat([first(x[:, :1]), means], dim=1)


def _forgets_itself_keeps_token_0(x):
    return _without_itself(x, torch.clone)


def _forgets_itself_leaves_0(x):
    return _without_itself(x, torch.zeros_like)


_GUARDED = (
    Mistake(
        "the token forgets itself, but for token 0",
        function=_forgets_itself_keeps_token_0,
        message=_FORGETS_ITSELF_BUT_0,
    ),
    Mistake(
        "the token forgets itself, and output 0 is 0",
        function=_forgets_itself_leaves_0,
        message=_FORGETS_ITSELF_BUT_0,
    ),
)


def _without_zeros(x):
    counted = (x != 0).any(dim=-1, keepdim=True).cumsum(dim=1)  # (B, T, 1)
    return x.cumsum(dim=1) / counted.clamp(min=1)


_ZEROS = Mistake(
    "tokens of zeros not counted",
    function=_without_zeros,
    message="The sums are divided by the number of tokens that are not 0. A token whose channels are all 0 is a token like any other, "
    "and output t is a mean of t + 1 tokens.",
)


_SKIPS_POSITION_0 = (
    "Output 0 is 0, and all others are right. Positions count from 0, and token 0 has a mean too, that of itself alone. "
    "range(T) runs from 0 to T - 1; range(1, T) leaves out the 0."
)


_ONE_TOO_MANY = (
    "Output t is the mean of tokens 0 to t + 1, one of them from the future. "
    "A slice stops one before its end: x[b, : t + 1] has token t in it, and no more."
)


_ERRORS_WITH_DIM = "the mean was taken over the wrong axis and did not fit into its place"


# ---------------------------------------------------------------- 01.1


def causal_mean(x):
    """(B, T, C) -> (B, T, C): output t is the mean of tokens 0 to t of its own sequence."""
    B, T, C = x.shape
    out = torch.zeros(B, T, C)
    for b in range(B):
        for t in range(T):
            out[b, t] = x[b, : t + 1].mean(dim=0)
    return out


CAUSAL_MEAN = Exercise(
    id="01.1",
    title="The loop",
    reference=causal_mean,
    cases=_batches,
    axes=_AXES,
    intermediates=_STEPS,
    checked="two random batches: every output is the mean of its own token and all before it, channel by channel",
    mistakes=(
        Mistake(
            "the token forgets itself",
            change=("[b, : t + 1]", "[b, :t]"),
            message=_FORGETS_ITSELF,
        ),
        Mistake(
            "divided by T",
            change=(".mean(dim=0)", ".sum(dim=0) / T"),
            message="Every sum was divided by T. Output t is a mean of t + 1 tokens; only the last one has T of them. "
            "Look at output 0: it should be token 0 itself.",
        ),
        *_GUARDED,
        _ZEROS,
        Mistake(
            "not divided",
            change=("mean(dim=0)", "sum(dim=0)"),
            message="These are running sums: they grow with t. Divide each by how many tokens went in, t + 1.",
        ),
        Mistake(
            "divided by t",
            change=(".mean(dim=0)", ".sum(dim=0) / t"),
            message="Positions count from 0, so tokens 0 to t are t + 1 tokens. Dividing by t gives x / 0 at t = 0.",
        ),
        Mistake(
            "channels mixed",
            change=("dim=0", ""),
            message="All channels of an output are equal: each is the mean over tokens and channels together, as mean() without dim gives it. "
            "The slice x[b, : t + 1] has the shape (t + 1, C), and only time, its axis 0, is averaged.",
        ),
        Mistake(
            "mean over the channels",
            change=("dim=0", "dim=1"),
            message=f"In the slice x[b, : t + 1], of shape (t + 1, C), axis 1 is C: {_ERRORS_WITH_DIM}. The index b has taken away the batch axis, "
            "so time is axis 0 there.",
        ),
        Mistake(
            "sequences mixed",
            change=("[b, : t + 1].mean(dim=0)", "[:, : t + 1].mean(dim=(0, 1))"),
            message="Every sequence got the same output: you averaged over the batch too. Sequences are never mixed; pick x[b].",
        ),
        Mistake(
            "future instead of past",
            change=(": t + 1", "t:"),
            message="Output t is the mean of tokens t to T - 1, of itself and its future. Output T - 1 should use the most tokens, "
            "and yours uses only itself.",
        ),
        Mistake(
            "sees everything",
            change=("x[b, : t + 1]", "x[b]"),
            message="All outputs of a sequence are equal: the mean of all T tokens, future included. Output t may use tokens 0 to t only.",
        ),
        Mistake(
            "returned after the first position",
            change=("    return out", "            return out"),
            message="Only out[0, 0] is filled, all else is 0. A `return` inside the inner loop ends the function the first time round. "
            "It belongs after both loops, in the column of the first `for`.",
        ),
        Mistake(
            "returned after the first sequence",
            change=("    return out", "        return out"),
            message="Sequence 0 is right, the others are still 0. A `return` inside the loop over b ends the function after one sequence. "
            "It belongs after both loops, in the column of the first `for`.",
        ),
        Mistake(
            "position 0 left out",
            change=("range(T)", "range(1, T)"),
            message=_SKIPS_POSITION_0,
        ),
        Mistake(
            "one token too many",
            change=("t + 1", "t + 2"),
            message=_ONE_TOO_MANY,
        ),
    ),
    hints=(
        "Write two loops, one over the sequences and one over the positions. Which tokens does output [b, t] need?",
        "x[b, : t + 1] is a slice of shape (t + 1, C) that holds tokens 0 to t.",
        "Average that slice over its first axis, and store it in out[b, t].",
    ),
)


# ---------------------------------------------------------------- 01.2


def causal_mean_one_loop(x):
    """(B, T, C) -> (B, T, C): as causal_mean, with a single loop over t."""
    out = torch.zeros_like(x)
    for t in range(x.shape[1]):
        out[:, t] = x[:, : t + 1].mean(dim=1)
    return out


def _by_running_sum(x):
    total, out = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        total = total + x[:, t]
        out.append(total / (t + 1))
    return torch.stack(out, dim=1)


CAUSAL_MEAN_ONE_LOOP = Exercise(
    id="01.2",
    title="One loop for the whole batch",
    reference=causal_mean_one_loop,
    cases=_batches,
    axes=_AXES,
    intermediates=_STEPS,
    no_loop_over="B",
    accepted=(_by_running_sum,),
    checked="the same numbers as causal_mean on two random batches",
    mistakes=(
        Mistake(
            "the token forgets itself",
            change=("[:, : t + 1]", "[:, :t]"),
            message=_FORGETS_ITSELF,
        ),
        Mistake(
            "mean over the batch axis",
            change=("dim=1", "dim=0"),
            message=f"x[:, : t + 1] has the shape (B, t + 1, C). dim=0 is the batch there: {_ERRORS_WITH_DIM}. Time is axis 1 now, because "
            "the batch axis is still present.",
        ),
        Mistake(
            "sequences mixed",
            change=("dim=1", "dim=(0, 1)"),
            message="You averaged over the batch and over time: every sequence got the same output. Only time, axis 1, may collapse.",
        ),
        Mistake(
            "mean over the channels",
            change=("dim=1", "dim=-1"),
            message=f"dim=-1 is C: {_ERRORS_WITH_DIM}. In x[:, : t + 1], of shape (B, t + 1, C), time is axis 1.",
        ),
        Mistake(
            "looped over B positions",
            change=("x.shape[1]", "x.shape[0]"),
            message="As many positions were filled as there are sequences, B = x.shape[0] = len(x). There are T = x.shape[1] positions: "
            "others were left at 0, or did not exist.",
        ),
        Mistake(
            "sliced along the batch",
            change=("x[:, : t + 1].mean(dim=1)", "x[: t + 1].mean(dim=0)"),
            message="x[: t + 1] holds the first t + 1 *sequences*, since axis 0 is the batch, and their mean has the shape (T, C). "
            "x[:, : t + 1] holds the first t + 1 tokens of all sequences; average over axis 1.",
        ),
        *_GUARDED,
        _ZEROS,
        Mistake(
            "sees everything",
            change=("x[:, : t + 1]", "x"),
            message="Every output is the mean of all T tokens, future included. Output t may use tokens 0 to t only: the slice x[:, : t + 1] holds them.",
        ),
        Mistake(
            "not divided",
            change=("mean(dim=1)", "sum(dim=1)"),
            message="These are running sums: they grow with t. Divide each by how many tokens went in, t + 1, or take the mean.",
        ),
        Mistake(
            "divided by T",
            change=(".mean(dim=1)", ".sum(dim=1) / x.shape[1]"),
            message="Every sum was divided by T. Output t is a mean of t + 1 tokens; only the last one has T of them.",
        ),
        Mistake(
            "returned after the first position",
            change=("    return out", "        return out"),
            message="Only out[:, 0] is filled, all else is 0. A `return` inside the loop ends the function the first time round. "
            "It belongs after the loop, in the column of the `for`.",
        ),
        Mistake(
            "position 0 left out",
            change=("range(", "range(1, "),
            message=_SKIPS_POSITION_0,
        ),
        Mistake(
            "one token too many",
            change=("t + 1", "t + 2"),
            message=_ONE_TOO_MANY,
        ),
    ),
    hints=(
        "A slice with : in the first place takes all sequences at once.",
        "x[:, : t + 1] has the shape (B, t + 1, C). Which axis must disappear to leave (B, C)?",
        "Assign to out[:, t], which has the shape (B, C).",
    ),
)


# ---------------------------------------------------------------- 01.3


def causal_mean_cumsum(x):
    """(B, T, C) -> (B, T, C): as causal_mean, without a loop in Python."""
    counts = torch.arange(1, x.shape[1] + 1)[:, None]  # (T, 1)
    return x.cumsum(dim=1) / counts


def _by_matrix(x):
    T = x.shape[1]
    return torch.tril(torch.ones(T, T, dtype=x.dtype)) @ x / torch.arange(1, T + 1)[:, None]


CAUSAL_MEAN_CUMSUM = Exercise(
    id="01.3",
    title="No loop in Python: running sums",
    reference=causal_mean_cumsum,
    cases=_batches,
    axes=_AXES,
    intermediates=_STEPS,
    no_loop_over="B T",
    accepted=(_by_matrix,),
    checked="the same numbers as causal_mean on two random batches",
    mistakes=(
        Mistake(
            "counts from 0",
            change=("torch.arange(1, x.shape[1] + 1)", "torch.arange(x.shape[1])"),
            message="Output t was divided by t, so output 0 by 0. It is a mean of t + 1 tokens: torch.arange(1, T + 1) counts 1 … T, "
            "torch.arange(T) counts 0 … T - 1.",
        ),
        *_GUARDED,
        _ZEROS,
        Mistake(
            "not divided",
            change=(" / counts", ""),
            message="These are the running sums. Divide output t by t + 1 (and use the result: a / b and div return a new tensor).",
        ),
        Mistake(
            "divided by T",
            change=("/ counts", "/ x.shape[1]"),
            message="All running sums were divided by T. Output t is a mean of t + 1 tokens.",
        ),
        Mistake(
            "counts along the channels",
            change=("[:, None]", ""),
            message="T counts of shape (T,) are lined up with the last axis, the channels: an error unless C happens to equal T, and silently wrong then. "
            "As a column, of shape (T, 1), they meet the tokens: counts[:, None].",
        ),
        Mistake(
            "running sum over the batch",
            change=(
                ("x.shape[1] + 1)[:, None]", "x.shape[0] + 1)[:, None, None]"),
                ("dim=1", "dim=0"),
            ),
            message="cumsum(dim=0) runs from sequence to sequence. Time is axis 1 of (B, T, C).",
        ),
        Mistake(
            "running sum over the batch, divided over time",
            change=("dim=1", "dim=0"),
            message="The division is right, but the running sums go along the batch, from sequence to sequence (dim=0). Time is axis 1 of (B, T, C).",
        ),
        Mistake(
            "running sum over the channels",
            change=(("x.shape[1] + 1)[:, None]", "x.shape[-1] + 1)"), ("dim=1", "dim=-1")),
            message="cumsum(dim=-1) runs along the channels of one token. Time is axis 1 of (B, T, C).",
        ),
        Mistake(
            "running sum over the channels, divided over time",
            change=("dim=1", "dim=-1"),
            message="The division is right, but cumsum(dim=-1) runs along the channels of one token. Time is axis 1 of (B, T, C).",
        ),
    ),
    hints=(
        "The sum for t is the sum for t - 1 plus one more token. Tensors have a method for running sums.",
        "x.cumsum(dim=1) gives all running sums. By how much must output t be divided?",
        "torch.arange(1, T + 1)[:, None] has the shape (T, 1): one count for each position, the same for all channels.",
    ),
)


EXERCISES = (CAUSAL_MEAN, CAUSAL_MEAN_ONE_LOOP, CAUSAL_MEAN_CUMSUM)


# ---------------------------------------------------------------- predictions

PREDICTIONS = (
    Prediction(
        id="01.p1",
        question="A sequence has the tokens 6, 2, 1, 7, 9, with one channel. Output t is the mean of tokens 0 to t. What is output 3?",
        choices={
            "a": Choice(
                "3, the mean of 6, 2, 1",
                "This leaves token 3 out. Output 3 may use tokens 0 to 3, and token 3 is one of them.",
            ),
            "b": Choice(
                "4, the mean of 6, 2, 1, 7",
                "Token 3 and everything before it: four numbers with the sum 16, and 16 / 4 = 4.",
            ),
            "c": Choice(
                "5, the mean of all five",
                "This includes token 4, which comes after token 3. It is the right value for output 4.",
            ),
            "d": Choice(
                "16, the sum of 6, 2, 1, 7",
                "Divide the sum by the number of tokens, 4, to get the mean.",
            ),
        },
        answer="b",
    ),
    Prediction(
        id="01.p2",
        question="Token 5 of a sequence of 8 is replaced by something else. Which outputs of the causal mean change?",
        choices={
            "a": Choice(
                "only output 5",
                "Output 5 changes, and so do outputs 6 and 7: they average over token 5 as well.",
            ),
            "b": Choice(
                "outputs 5, 6 and 7",
                "Output t averages tokens 0 to t, so token 5 is in outputs 5, 6 and 7. Outputs 0 to 4 do not use it.",
            ),
            "c": Choice(
                "outputs 6 and 7",
                "Output 5 changes too, because a token is part of its own mean.",
            ),
            "d": Choice(
                "outputs 0 to 5",
                "These are the positions that output 5 is computed *from*. The question is which outputs are computed from token 5.",
            ),
        },
        answer="b",
    ),
    Prediction(
        id="01.p3",
        question="Now token 0 is replaced instead. Which outputs change?",
        choices={
            "a": Choice(
                "only output 0",
                "Output 0 changes. But every other output averages over token 0 as well.",
            ),
            "b": Choice(
                "all 8 outputs, by the same amount",
                "All of them change, but not equally. Output t is a mean of t + 1 tokens, and token 0 is only one of them.",
            ),
            "c": Choice(
                "all 8 outputs, later ones less",
                "Token 0 is in every output. Its share is 1 in output 0, a half in output 1, and an eighth in output 7.",
            ),
        },
        answer="c",
    ),
    Prediction(
        id="01.p4",
        question="Tokens 0 and 1 change places. Which outputs of the causal mean change?",
        choices={
            "a": Choice(
                "all of them: the order is different",
                "Output 0 changes. Every later output contains both tokens, and a mean does not depend on the order of its numbers.",
            ),
            "b": Choice(
                "only output 0",
                "Output 0 contains token 0 alone, and this is another token now. Every other output contains both, and their order does not matter.",
            ),
            "c": Choice(
                "outputs 0 and 1",
                "Output 0 changes. Output 1 is the mean of tokens 0 and 1, and (a + b) / 2 is the same as (b + a) / 2.",
            ),
            "d": Choice(
                "none of them",
                "This holds from output 1 on. Output 0 contains only one of the two tokens, so it changes.",
            ),
        },
        answer="b",
    ),
)

TERMS = (
    Term(
        "next-token prediction",
        "The task that a language model is trained on: from tokens 0 to t, predict token t + 1.",
    ),
    Term(
        "causal",
        "A computation is causal if output t uses tokens 0 to t and nothing later.",
    ),
    Term(
        "autoregressive",
        "A model is autoregressive if it predicts each token from the tokens before it.",
    ),
    Term(
        "leak",
        "A dependence of an output on a later token, by which a model sees what it should predict.",
        everyday=True,
    ),
    Term(
        "bag of words",
        "A summary of tokens that depends on which tokens there are and not on their order, such as their mean.",
    ),
    Term(
        "running sum",
        "The sum of all values up to a position, for every position; PyTorch computes it with cumsum.",
        also=("cumulative sum",),
    ),
    Term(
        "probe",
        "A test of one property of a function or of its weights, which reports what it found with numbers.",
        everyday=True,
    ),
)
