"""Predictions and exercises of notebook 02: weights in a matrix."""

import torch

from helpers.lesson.exercises.properties import NO_FUTURE, ROWS_SUM_TO_ONE
from helpers.lesson.grading import Exercise, Mistake
from helpers.lesson.question import Choice, Prediction
from helpers.lesson.terms import Term

# ---------------------------------------------------------------- 02.1


def causal_mean_matmul(x):
    """(B, T, C) -> (B, T, C): the causal mean as one matrix product."""
    T = x.shape[1]
    ones = torch.tril(torch.ones(T, T))
    weights = ones / ones.sum(dim=-1, keepdim=True)  # (T, T)
    return weights @ x


def _by_dividing_afterwards(x):
    T = x.shape[1]
    return torch.tril(torch.ones(T, T)) @ x / torch.arange(1, T + 1)[:, None]


def _batches():
    generator = torch.Generator().manual_seed(0)
    return [
        (torch.randn(3, 5, 2, generator=generator),),
        (torch.randn(2, 7, 4, generator=generator),),
    ]


def _causal_weights(x):
    ones = torch.tril(torch.ones(x.shape[1], x.shape[1]))
    return ones / ones.sum(dim=-1, keepdim=True)


_PRODUCTS = ("matmul", "mm", "bmm", "einsum", "linear", "tensordot", "baddbmm", "inner")


CAUSAL_MEAN_MATMUL = Exercise(
    id="02.1",
    title="The causal mean as one matmul",
    reference=causal_mean_matmul,
    cases=_batches,
    axes={"x": "B T C", "return": "B T C"},
    intermediates=(
        ("the (T, T) weights, not yet multiplied by x", _causal_weights),
        (
            "the running sums, as the weights are ones and not yet divided",
            lambda x: x.cumsum(dim=1),
        ),
    ),
    needs=(("matrix product", _PRODUCTS),),
    no_loop_over="B T",
    accepted=(_by_dividing_afterwards,),
    checked="two random batches: the same numbers as the loop of notebook 01, within 0.00001",
    mistakes=(
        Mistake(
            "upper triangle",
            change=("tril", "triu"),
            message="Output t is the mean of token t and everything after it, the future. "
            "The past stands to the left of the diagonal: torch.tril keeps it, torch.triu the other part.",
        ),
        Mistake(
            "one diagonal too many",
            change=("torch.tril(torch.ones(T, T))", "torch.tril(torch.ones(T, T), diagonal=1)"),
            message="Each output uses one token of its future: the ones reach one diagonal too far to the right. torch.tril without `diagonal` "
            "keeps the main diagonal and what is below it.",
        ),
        Mistake(
            "diagonal left out",
            change=("torch.tril(torch.ones(T, T))", "torch.tril(torch.ones(T, T), diagonal=-1)"),
            message="Output t is the mean of the tokens before it, without token t itself, and row 0 has no weight left: 0/0 is nan. "
            "torch.tril without `diagonal` keeps the main diagonal.",
        ),
        Mistake(
            "columns normalised",
            change=("dim=-1", "dim=0"),
            message="The columns of the weights sum to 1, not the rows. Each output is a row of weights times x, so each row has to sum to 1: "
            "sum over dim=-1.",
        ),
        Mistake(
            "no keepdim",
            change=(", keepdim=True", ""),
            message="Column s of the weights was divided by s + 1, in silence: divisors of shape (T,) are lined up with the columns. Row t has to be "
            "divided by t + 1. As a column, of shape (T, 1), they divide the rows: keepdim=True, or [:, None].",
        ),
        Mistake(
            "weights transposed",
            change=("weights @ x", "weights.T @ x"),
            message="Rows and columns of the weights have changed roles, as in weights.T @ x, so every output is computed from its future. Row t holds "
            "the weights of output t.",
        ),
        Mistake(
            "not normalised",
            change=(" / ones.sum(dim=-1, keepdim=True)", ""),
            message="These are the running sums of the tokens. Divide each row of the weights by its sum.",
        ),
        Mistake(
            "no triangle",
            change=("torch.tril(torch.ones(T, T))", "torch.ones(T, T)"),
            message="Every output is the mean of all T tokens, future included: no weight above the diagonal is 0.",
        ),
        Mistake(
            "x @ weights",
            change=("weights @ x", "x @ weights"),
            message="The weights belong on the left. x @ weights would mix the channels of a token, and works only if C equals T; weights @ x mixes tokens, "
            "which is what we want.",
        ),
        Mistake(
            "divided by T",
            change=("ones.sum(dim=-1, keepdim=True)", "T"),
            message="All weights are 1/T. Row t has t + 1 of them, so only the last row sums to 1: divide each row by its own sum.",
        ),
        Mistake(
            "divided by the sum of everything",
            change=("ones.sum(dim=-1, keepdim=True)", "ones.sum()"),
            message="All weights are divided by one number, the sum of the whole matrix, so all rows together sum to 1. Each row has to be divided by its own sum: "
            "dim=-1 and keepdim=True.",
        ),
        Mistake(
            "* instead of @",
            change=("weights @ x", "weights * x"),
            message="* multiplies entry by entry, and needs two shapes that line up: (T, T) and (B, T, C) do not. "
            "The dot products of rows and columns are the matrix product: weights @ x.",
        ),
        Mistake(
            "T taken from the batch axis",
            change=("x.shape[1]", "x.shape[0]"),
            message="Your weights are (B, B): as many rows as there are sequences. They have to be (T, T). Counted from 0, the axes of (B, T, C) "
            "are B 0, T 1, C 2.",
        ),
        Mistake(
            "T taken from the channel axis",
            change=("x.shape[1]", "x.shape[2]"),
            message="Your weights are (C, C): as many rows as there are channels. They have to be (T, T). "
            "Counted from 0, the axes of (B, T, C) are B 0, T 1, C 2.",
        ),
    ),
    hints=(
        "Build for T tokens the matrix that the 3 × 3 example had, then put it to the left of x.",
        "torch.tril(torch.ones(T, T)) has its ones on and below the diagonal. Divide every row by its sum.",
        "weights @ x multiplies every sequence of the batch by the same (T, T) matrix.",
    ),
)


# ---------------------------------------------------------------- 02.2


def window_weights(T, width):
    """(T, T) weights: output t is the mean of the last `width` tokens, itself included."""
    t = torch.arange(T)
    age = t[:, None] - t  # (T, T): how far back token s lies from token t
    inside = ((age >= 0) & (age < width)).float()
    return inside / inside.sum(dim=-1, keepdim=True)


def _window_by_loop(T, width):
    weights = torch.zeros(T, T)
    for t in range(T):
        first = max(0, t + 1 - width)
        weights[t, first : t + 1] = 1 / (t + 1 - first)
    return weights


def _ages(T):
    return (torch.arange(T)[:, None] - torch.arange(T)).float()


def _window(T, width):
    return ((_ages(T) >= 0) & (_ages(T) < width)).float()


def _blocks(T, width):
    block = torch.arange(T) // width
    same = (block[:, None] == block).float().tril()
    return same / same.sum(dim=-1, keepdim=True)


def _negative_start(T, width):
    weights = torch.zeros(T, T)
    for t in range(T):
        weights[t, t - width + 1 : t + 1] = 1 / min(t + 1, width)
    return weights


WINDOW_WEIGHTS = Exercise(
    id="02.2",
    title="A sliding window",
    reference=window_weights,
    cases=lambda: [(7, 3), (5, 2)],
    axes={"return": "T T"},
    intermediates=(
        ("the table of t - s, how far back each token lies", lambda T, width: _ages(T)),
        ("the window as ones and zeros, not yet divided", lambda T, width: _window(T, width)),
        ("the window cut into blocks that do not overlap", _blocks),
    ),
    accepted=(_window_by_loop,),
    properties=(ROWS_SUM_TO_ONE, NO_FUTURE),
    checked="T=7 with width 3 and T=5 with width 2, the short rows at the start included",
    mistakes=(
        Mistake(
            "window on both sides",
            change=("(age >= 0) & (age < width)", "age.abs() < width"),
            message="The window reaches as far into the future as into the past. Only tokens with "
            "t - s from 0 to width - 1 are in.",
        ),
        Mistake(
            "one token too long",
            change=("age < width", "age <= width"),
            message="Row T-1 has width + 1 tokens. The token itself is one of the `width`: t - s runs from 0 to width - 1.",
        ),
        Mistake(
            "itself left out",
            change=("(age >= 0) & (age < width)", "(age > 0) & (age <= width)"),
            message="The diagonal is empty: token t does not count itself, and row 0 has no token left (0/0 is nan). t - s starts at 0.",
        ),
        Mistake(
            "divided by the width",
            change=("inside.sum(dim=-1, keepdim=True)", "width"),
            message="Row 0 has one token and yet a weight of 1/width: its sum is below 1. Near the start fewer tokens exist; "
            "divide each row by its own sum.",
        ),
        Mistake(
            "window of the future",
            change=("t[:, None] - t", "t - t[:, None]"),
            message="Row t has its weights on token t and those after it. The past of output t lies to the left of the diagonal: t - s, not s - t.",
        ),
        Mistake(
            "no window",
            change=("(age >= 0) & (age < width)", "age >= 0"),
            message="These are the weights of the plain causal mean: tokens further back than the window must get 0.",
        ),
        Mistake(
            "not normalised",
            change=(" / inside.sum(dim=-1, keepdim=True)", ""),
            message="The right cells, but they hold ones. Divide each row by its sum.",
        ),
        Mistake(
            "no keepdim",
            change=(", keepdim=True", ""),
            message="Column s was divided by the sum of row s: sums of shape (T,) are lined up with the columns. "
            "With the shape (T, 1), from keepdim=True, row t is divided by its own sum.",
        ),
        Mistake(
            "first rows empty",
            function=_negative_start,
            message="The rows before t = width - 1 are 0, or have too few weights. Their windows begin at token 0, because no token stands before it. "
            "A start below 0 counts from the end of the row: print where your windows begin.",
        ),
        Mistake(
            "columns normalised",
            change=("dim=-1", "dim=0"),
            message="Columns were divided by their sums. Each output is a row of weights, so each row must sum to 1: sum over dim=-1, "
            "with keepdim=True.",
        ),
        Mistake(
            "future left in",
            change=("(age >= 0) & (age < width)", "age < width"),
            message="Tokens after t get weights: for a token in the future t - s is negative, and a negative number is below the width, too. "
            "Your condition says where the window ends. Print the table of t - s, look at its upper right, and say where the window begins.",
        ),
    ),
    hints=(
        "Token s lies t - s steps back from output t. Build the (T, T) table of t - s first: row t, column s.",
        "torch.arange(T)[:, None] - torch.arange(T) is that table. Which of its values lie inside the window?",
        "A comparison gives True and False; .float() makes ones and zeros of them. Then divide each row by its sum.",
    ),
)


# ---------------------------------------------------------------- 02.3


def decay_weights(T, decay):
    """(T, T) causal weights, rows sum to 1: before, a token k steps back has decay**k."""
    t = torch.arange(T)
    age = t[:, None] - t  # (T, T)
    raw = torch.tril(decay ** age.clamp(min=0).float())
    return raw / raw.sum(dim=-1, keepdim=True)


def _decay_by_softmax(T, decay):
    t = torch.arange(T)
    age = (t[:, None] - t).float()
    scores = age * torch.log(torch.tensor(float(decay)))
    return torch.softmax(scores.masked_fill(age < 0, float("-inf")), dim=-1)


def _raw(T, decay):
    return torch.tril(decay ** _ages(T).clamp(min=0))


def _raw_both(T, decay):
    return decay ** _ages(T).abs()


DECAY_WEIGHTS = Exercise(
    id="02.3",
    title="Fading memory",
    reference=decay_weights,
    cases=lambda: [(5, 0.5), (4, 0.8)],
    axes={"return": "T T"},
    intermediates=(
        ("the table of t - s, how far back each token lies", lambda T, decay: _ages(T)),
        ("decay ** (t - s), not yet divided by the row sums", _raw),
        ("decay ** |t - s| for the future, too, not yet divided by the row sums", _raw_both),
        ("the weights of the plain causal mean", lambda T, decay: decay_weights(T, 1.0)),
    ),
    accepted=(_decay_by_softmax,),
    properties=(ROWS_SUM_TO_ONE, NO_FUTURE),
    checked="T=5 with decay 0.5 and T=4 with decay 0.8",
    mistakes=(
        Mistake(
            "not normalised",
            change=(" / raw.sum(dim=-1, keepdim=True)", ""),
            message="The proportions are right. Divide each row by its sum, or late outputs come out larger than early ones.",
        ),
        Mistake(
            "sees the future",
            change=("torch.tril(decay ** age.clamp(min=0).float())", "decay ** age.abs().float()"),
            message="Tokens after t get weights as well, the same as those before it. Set them to 0 with torch.tril before you normalise.",
        ),
        Mistake(
            "cut after normalising",
            change=(
                ("torch.tril(decay ** age.clamp(min=0).float())", "decay ** age.abs().float()"),
                (
                    "raw / raw.sum(dim=-1, keepdim=True)",
                    "torch.tril(raw / raw.sum(dim=-1, keepdim=True))",
                ),
            ),
            message="The future was part of the row sums before it was set to 0, so rows now sum to less than 1. First cut, then normalise.",
        ),
        Mistake(
            "counted from the start",
            change=("decay ** age.clamp(min=0).float()", "(decay ** t.float()).expand(T, T)"),
            message="The oldest token counts most in every row, as with decay**s, or with the sign of the distance turned. What matters is how far back a token lies: t - s.",
        ),
        Mistake(
            "columns normalised",
            change=("dim=-1", "dim=0"),
            message="Columns sum to 1 here. Each output is a row: sum over dim=-1 with keepdim=True.",
        ),
        Mistake(
            "itself left out",
            change=(
                "torch.tril(decay ** age.clamp(min=0).float())",
                "torch.tril(decay ** age.clamp(min=0).float(), diagonal=-1)",
            ),
            message="The diagonal is empty: token t does not count itself, and row 0 has no token left (0/0 is nan). Token t itself counts decay**0 = 1.",
        ),
        Mistake(
            "base and exponent exchanged",
            change=("decay ** age.clamp(min=0).float()", "age.clamp(min=0).float() ** decay"),
            message="The number of steps is the base here, and decay the exponent, so far tokens count more. It is decay ** age: decay · decay · …, age times.",
        ),
        Mistake(
            "multiplied instead of a power",
            change=("decay ** age.clamp(min=0).float()", "decay * age.clamp(min=0).float()"),
            message="decay is multiplied by the number of steps, so far tokens count more. Each step back multiplies once more: decay ** age.",
        ),
        Mistake(
            "fades linearly",
            change=(
                "decay ** age.clamp(min=0).float()",
                "(1 - (1 - decay) * age.clamp(min=0)).clamp(min=0)",
            ),
            message="The same amount is subtracted at each step back. The weight must fall by the same factor: 1, decay, decay², …",
        ),
        Mistake(
            "divided by the age",
            change=(
                "decay ** age.clamp(min=0).float()",
                "1 / (1 + (1 - decay) * age.clamp(min=0))",
            ),
            message="The weight must fall by the same factor at each step back: 1, decay, decay², …",
        ),
        Mistake(
            "no keepdim",
            change=(", keepdim=True", ""),
            message="Column s was divided by the sum of row s: sums of shape (T,) are lined up with the columns. "
            "With the shape (T, 1), from keepdim=True, row t is divided by its own sum.",
        ),
        Mistake(
            "future not cut off",
            change=("torch.tril(decay ** age.clamp(min=0).float())", "decay ** age.float()"),
            message="The future counts most: there t - s is negative, and decay to a negative power is larger than 1. "
            "Cut it off with torch.tril before you normalise.",
        ),
        Mistake(
            "future counts fully",
            change=(
                "torch.tril(decay ** age.clamp(min=0).float())",
                "decay ** age.clamp(min=0).float()",
            ),
            message="Every token in the future counts 1 = decay**0, as much as token t itself. "
            "Cut the future off with torch.tril before you normalise.",
        ),
    ),
    hints=(
        "Begin again with the table of t - s, as in 02.2. A token k steps back counts decay**k.",
        "Future cells must be 0 before the row sums are taken; torch.tril sets them to 0.",
        "Divide each row by its sum: raw / raw.sum(dim=-1, keepdim=True), where raw holds the weights before the division.",
    ),
)


EXERCISES = (CAUSAL_MEAN_MATMUL, WINDOW_WEIGHTS, DECAY_WEIGHTS)


# ---------------------------------------------------------------- predictions

PREDICTIONS = (
    Prediction(
        id="02.p1",
        question="L is the 3 × 3 triangle of ones, a has the rows 8 6 5, 2 4 4, 7 4 5. What is row 1 of L @ a?",
        choices={
            "a": Choice(
                "10 10 9",
                "Row 1 of L is 1 1 0. It takes row 0 of a once, row 1 once and row 2 not at all: 8 + 2, 6 + 4, 5 + 4.",
            ),
            "b": Choice(
                "9 8 9",
                "This is row 1 plus row 2, as with ones on and *above* the diagonal. L has its ones on and *below* it, so row 1 of L is 1 1 0.",
            ),
            "c": Choice(
                "10 8 4",
                "This is row 1 of a @ L, in which L combines the columns of a. With L on the left, the rows of a are combined.",
            ),
            "d": Choice(
                "2 4 0: L cuts off the upper corner",
                "This is row 1 of L * a, entry by entry. The sign @ is the matrix product, whose entries are dot products of a row and a column.",
            ),
        },
        answer="a",
    ),
    Prediction(
        id="02.p2",
        question="The numbers are 32-bit floats (float32), which store about seven digits. How large is the largest difference between "
        "the means by the loop and by the product? (All means lie between -2 and 2.)",
        choices={
            "a": Choice(
                "exactly 0: the same formula gives the same bits",
                "The formula is the same for exact numbers. Floats are rounded after every step, and the two ways take different steps. The loop "
                "divides a sum once; the product multiplies every token by a rounded weight. So the last bits may differ.",
            ),
            "b": Choice(
                "about 10⁻¹⁶",
                "This would need 64-bit floats, such as those of Python, which store about 16 digits.",
            ),
            "c": Choice(
                "about 10⁻⁸ to 10⁻⁷",
                "A float32 near 1 is rounded by up to 6·10⁻⁸, a smaller one by less. Where and in which order results are rounded depends on the "
                "library and the processor. So we state which difference we accept, such as atol=1e-6 (an absolute tolerance of 10⁻⁶).",
            ),
            "d": Choice(
                "about 10⁻⁵: the rounding errors of eight tokens add up",
                "They do add up, but each is at most about 10⁻⁷, some up and some down. Eight of them stay below 10⁻⁶.",
            ),
        },
        answer="c",
    ),
    Prediction(
        id="02.p3",
        question="x is (4, 8, 2) and W is the (8, 8) matrix of weights. What happens if you write x @ W instead of W @ x?",
        choices={
            "a": Choice(
                "the same result as before",
                "The order matters in a matrix product: a matrix on the left combines the rows of x, a matrix on the right its columns.",
            ),
            "b": Choice(
                "an error: the shapes do not fit",
                "(8, 2) @ (8, 8) needs as many columns on the left as rows on the right, and 2 is not 8. If C were 8, there would be no error. "
                "The channels of each token would be combined with one another, and no information would pass between tokens.",
            ),
            "c": Choice(
                "the result with tokens and channels swapped",
                "That is x.mT @ W.mT. In x @ W the inner sizes are 2 and 8, and they have to be equal.",
            ),
        },
        answer="b",
    ),
)

TERMS = (
    Term(
        "dot product",
        "Multiply two vectors of equal length entry by entry and add the products: one number.",
        also=("inner product",),
    ),
    Term(
        "weighted average",
        "A sum of values, each multiplied by its weight, where the weights are not negative and sum to 1.",
    ),
    Term(
        "lower triangular matrix",
        "A square matrix whose entries above the diagonal are all 0.",
    ),
)
