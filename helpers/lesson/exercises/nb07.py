"""Predictions and exercises of notebook 07: the block."""

import torch
from torch import nn

from helpers.attention import FeedForward, MultiHeadAttention
from helpers.clinic.wiring import WIRING_BUGS, block_output
from helpers.lesson.grading import Exercise, Mistake
from helpers.lesson.question import Choice, Prediction
from helpers.torch_settings import seed_all

# ---------------------------------------------------------------- 07.1


def feed_forward(x, W_1, b_1, W_2, b_2):
    """(..., C) -> (..., C): widen by W_1 (4C, C) and b_1, ReLU, project back by W_2 and b_2."""
    return torch.relu(x @ W_1.T + b_1) @ W_2.T + b_2


def _by_linear(x, W_1, b_1, W_2, b_2):
    linear = nn.functional.linear
    return linear(linear(x, W_1, b_1).clamp(min=0), W_2, b_2)


def _layers():
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    return [
        (normal(2, 3, 5), normal(20, 5), normal(20), normal(5, 20), normal(5)),
        (normal(4, 2, 3), normal(12, 3), normal(12), normal(3, 12), normal(3)),
    ]


FEED_FORWARD = Exercise(
    id="07.1",
    title="Feed-forward",
    reference=feed_forward,
    cases=_layers,
    accepted=(_by_linear,),
    checked="two sizes: widen, ReLU, project back, with both biases",
    mistakes=(
        Mistake(
            "no ReLU",
            change=("torch.relu", ""),
            message="Without the ReLU two matrices in a row are one matrix: nothing new can be computed.",
        ),
        Mistake(
            "ReLU at the end too",
            change=(
                "torch.relu(x @ W_1.T + b_1) @ W_2.T + b_2",
                "torch.relu(torch.relu(x @ W_1.T + b_1) @ W_2.T + b_2)",
            ),
            message="The output went through a ReLU as well, so it can only push channels up. The ReLU stands between the two layers.",
        ),
        Mistake(
            "ReLU at the end only",
            change=(
                "torch.relu(x @ W_1.T + b_1) @ W_2.T + b_2",
                "torch.relu((x @ W_1.T + b_1) @ W_2.T + b_2)",
            ),
            message="The ReLU stands after the second layer. It belongs between the two, or they are one matrix.",
        ),
        Mistake(
            "not projected back",
            change=(" @ W_2.T + b_2", ""),
            message="The result has 4C channels. Project back to C, so that it can be added to x.",
        ),
        Mistake(
            "not transposed",
            change=(("W_1.T", "W_1"), ("W_2.T", "W_2")),
            message="nn.Linear stores (out, in): W_1 is (4C, C). Multiply by W_1.T.",
        ),
        Mistake(
            "reshaped instead of transposed",
            change=(("W_1.T", "W_1.reshape(W_2.shape)"), ("W_2.T", "W_2.reshape(W_1.shape)")),
            message="The shapes fit, the numbers are in the wrong places: view and reshape keep the reading order, .T turns rows into columns.",
        ),
        Mistake(
            "W_1 and W_2 exchanged",
            change=(("W_1.T", "W_2"), ("W_2.T", "W_1")),
            message="It runs, since W_2 is stored as (C, 4C), but the matrices changed places. First x @ W_1.T, then W_2.T.",
        ),
        Mistake(
            "no biases",
            change=((" + b_1", ""), (" + b_2", "")),
            message="The two biases are missing.",
        ),
        Mistake(
            "b_1 missing",
            change=(" + b_1", ""),
            message="b_1 is missing: it is added before the ReLU, where it moves the point of the cut.",
        ),
        Mistake(
            "b_2 missing",
            change=(" + b_2", ""),
            message="b_2 is missing: it is added last of all.",
        ),
        Mistake(
            "bias after the ReLU",
            change=("torch.relu(x @ W_1.T + b_1)", "(torch.relu(x @ W_1.T) + b_1)"),
            message="b_1 belongs inside: it moves the point where the ReLU cuts.",
        ),
        Mistake(
            "x added",
            change=("return ", "return x + "),
            message="You added x. The block does that (exercise 07.3); here only the residual branch is wanted.",
        ),
    ),
    hints=(
        "Three steps: to 4C, ReLU, back to C.",
        "A Linear layer is x @ W.T + b.",
    ),
)


# ---------------------------------------------------------------- 07.2


def layer_norm(x, eps=1e-5):
    """(..., C) -> (..., C): each token's channels with mean 0 and variance 1."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, unbiased=False, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps)


def _by_squares(x, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt((centred**2).mean(-1, keepdim=True) + eps)


def _tokens():
    """Two batches; one token of each is tiny, where the place of eps shows."""
    generator = torch.Generator().manual_seed(0)
    batches = [
        torch.randn(3, 5, 8, generator=generator),
        torch.randn(2, 4, 6, generator=generator) + 3,
    ]
    for x in batches:
        x[0, 1] *= 1e-3
    return [(x,) for x in batches]


LAYER_NORM = Exercise(
    id="07.2",
    title="Layer norm",
    reference=layer_norm,
    cases=_tokens,
    accepted=(_by_squares,),
    atol=1e-4,
    checked="two batches, each with one tiny token, where the place of ε shows",
    properties=(("each token has mean 0", lambda out, x: bool(out.mean(-1).abs().max() < 1e-4)),),
    mistakes=(
        Mistake(
            "variance divided by C - 1",
            change=("unbiased=False, ", ""),
            message="Tensor.var divides by C - 1 unless told otherwise. Here the C channels are all there is: unbiased=False.",
        ),
        Mistake(
            "ε outside the square root",
            change=("torch.sqrt(variance + eps)", "(torch.sqrt(variance) + eps)"),
            message="ε was added after the square root. For ordinary tokens it does not show; for a tiny one the result is three times too large. sqrt(var + ε).",
        ),
        Mistake(
            "standard deviation plus ε",
            change=(
                ("unbiased=False, ", ""),
                ("torch.sqrt(variance + eps)", "(torch.sqrt(variance) + eps)"),
            ),
            message="Two things: Tensor.std divides by C - 1, not C, and ε was added after the square root. Take the variance with unbiased=False: sqrt(var + ε).",
        ),
        Mistake(
            "standard deviation without ε",
            change=(("unbiased=False, ", ""), ("variance + eps", "variance")),
            message="Two things: Tensor.std divides by C - 1, not C, and ε is missing. Take the variance with unbiased=False: sqrt(var + ε).",
        ),
        Mistake(
            "no ε",
            change=("variance + eps", "variance"),
            message="ε is missing: tiny tokens are blown up to full size, and a constant token would be 0/0.",
        ),
        Mistake(
            "divided by the variance",
            change=("torch.sqrt(variance + eps)", "(variance + eps)"),
            message="You divided by the variance. Its square root is the size of the numbers.",
        ),
        Mistake(
            "over time",
            change=(("mean(dim=-1", "mean(dim=-2"), ("var(dim=-1", "var(dim=-2")),
            message="The mean ran over the tokens, dim=-2: tokens were mixed, future ones included. Each token for itself: dim=-1.",
        ),
        Mistake(
            "over the whole sequence",
            change=(("mean(dim=-1", "mean(dim=(-2, -1)"), ("var(dim=-1", "var(dim=(-2, -1)")),
            message="Mean and variance were taken over tokens and channels: tokens were mixed. Each token for itself: dim=-1.",
        ),
        Mistake(
            "over the batch",
            change=(("mean(dim=-1", "mean(dim=0"), ("var(dim=-1", "var(dim=0")),
            message="That is the idea of batch norm: statistics over the batch. Layer norm takes each token for itself: dim=-1.",
        ),
        Mistake(
            "over everything",
            change=(
                ("mean(dim=-1, keepdim=True)", "mean()"),
                ("var(dim=-1, unbiased=False, keepdim=True)", "var(unbiased=False)"),
            ),
            message="One mean and one variance for the whole batch: all tokens were mixed. Each token for itself: dim=-1, keepdim=True.",
        ),
        Mistake(
            "axis not kept",
            change=(
                ("mean(dim=-1, keepdim=True)", "mean(dim=-1)"),
                ("unbiased=False, keepdim=True", "unbiased=False"),
            ),
            message="Mean and variance are (B, T): one number for each token, and the axis of channels is gone. Sizes line up from the right, so T meets C. "
            "keepdim=True keeps the axis, (B, T, 1), in the mean and in the variance.",
        ),
        Mistake(
            "only the mean",
            change=(" / torch.sqrt(variance + eps)", ""),
            message="The mean is subtracted and the size left as it was. Divide by the square root of the variance plus ε.",
        ),
        Mistake(
            "brackets missing",
            change=("(x - mean)", "x - mean"),
            message="Division goes before subtraction: only the mean was divided. Put x - mean in brackets.",
        ),
        Mistake(
            "mean not subtracted",
            change=("(x - mean)", "x"),
            message="The size is right, the mean is still in.",
        ),
        Mistake(
            "root mean square",
            change=(
                ("(x - mean)", "x"),
                (
                    "x.var(dim=-1, unbiased=False, keepdim=True)",
                    "(x**2).mean(dim=-1, keepdim=True)",
                ),
            ),
            message="This is RMS norm, which leaves the mean in and divides by the square root of the mean square. A good norm, but another one.",
        ),
    ),
    hints=(
        "Mean and variance over the channels of one token, kept as an axis of length 1.",
        "x.var(dim=-1, unbiased=False, keepdim=True)",
        "(x - mean) / torch.sqrt(variance + eps)",
    ),
)


# ---------------------------------------------------------------- 07.3


def block(x, attention, feed_forward, norm_1, norm_2):
    """(B, T, C) -> (B, T, C): a pre-norm transformer block from its four parts."""
    x = x + attention(norm_1(x))
    return x + feed_forward(norm_2(x))


def _parts():
    """A batch and four parts. At initialisation all norms are equal, so these are changed."""
    cases = []
    for seed, (B, T, C, n_head) in enumerate([(3, 5, 8, 2), (2, 4, 6, 3)]):
        seed_all(seed)
        norms = [nn.LayerNorm(C) for _ in range(2)]
        for norm in norms:
            nn.init.uniform_(norm.weight, 0.5, 2.0)
            nn.init.normal_(norm.bias)
        parts = [MultiHeadAttention(C, n_head), FeedForward(C), *norms]
        cases.append((torch.randn(B, T, C), *(part.requires_grad_(False) for part in parts)))
    return cases


def _with_bug(bug):
    """A block with a wiring bug as an answer to 07.3."""

    def block(x, attention, feed_forward, norm_1, norm_2):
        return block_output(x, attention, feed_forward, norm_1, norm_2, **bug.changed)

    return block


BLOCK = Exercise(
    id="07.3",
    title="The block",
    reference=block,
    cases=_parts,
    checked="two blocks with random norms: both residual connections, both norms, in the right order",
    mistakes=(
        *(
            Mistake(bug.name, function=_with_bug(bug), message=bug.message)
            for bug in WIRING_BUGS
            if bug.changed != {"norms": (1, 1)}  # "one norm for both" is there already
        ),
        Mistake(
            "post-norm",
            change=(
                ("x + attention(norm_1(x))", "norm_1(x + attention(x))"),
                ("x + feed_forward(norm_2(x))", "norm_2(x + feed_forward(x))"),
            ),
            message="This is the block of 2017: norm(x + f(x)), the norm on the residual stream. Pre-norm is x + f(norm(x)).",
        ),
        Mistake(
            "the first sum is not kept",
            change=(("x = x + attention", "z = x + attention"), ("norm_2(x)", "norm_2(z)")),
            message="The feed-forward reads x + attention(…), but its output is added to the old x, so the residual stream lacks the output of the attention. "
            "Two lines, each x = x + ….",
        ),
        Mistake(
            "norm_2 on the residual stream",
            change=(
                ("x + attention(norm_1(x))", "norm_2(x + attention(norm_1(x)))"),
                ("feed_forward(norm_2(x))", "feed_forward(x)"),
            ),
            message="The first line is right. In the second the norm replaced x on the residual stream: only the feed-forward reads norm_2(x), and x itself is added.",
        ),
        Mistake(
            "a norm at the end",
            change=("x + feed_forward(norm_2(x))", "norm_2(x + feed_forward(norm_2(x)))"),
            message="The block is right, and then goes through a norm once more. The residual stream keeps x as it is: no norm after the last sum.",
        ),
    ),
    hints=(
        "Two lines, each of the form x = x + something.",
        "The first something is attention(norm_1(x)).",
        "The second is feed_forward(norm_2(x)), with the x that the first line made.",
    ),
)


EXERCISES = (FEED_FORWARD, LAYER_NORM, BLOCK)


# ---------------------------------------------------------------- predictions

PREDICTIONS = (
    Prediction(
        id="07.p1",
        question="Shuffle the tokens, run the feed-forward layer, put them back in order. What has changed?",
        choices={
            "a": Choice(
                "all outputs: order matters",
                "The layer takes one token at a time and never sees a neighbour.",
            ),
            "b": Choice("nothing", "Each token goes through alone. Only attention mixes tokens."),
            "c": Choice(
                "only the tokens that moved",
                "They moved back. What a token becomes depends on its own channels alone.",
            ),
        },
        answer="b",
    ),
    Prediction(
        id="07.p2",
        question="24 blocks with residual connections, no norm. Each branch gives back numbers about as large as those it reads. "
        "x begins at size 1. How large is it at the end?",
        choices={
            "a": Choice(
                "about 50: each of the 48 branches adds 1",
                "The first branch adds 1. The next one reads what is there by then, and adds as much as that.",
            ),
            "b": Choice(
                "about 1: attention averages",
                "The branch may average, but its result is added to a residual stream that only grows.",
            ),
            "c": Choice(
                "more than 100 000",
                "Each branch adds as much as is there, so the size grows by a factor each time: like interest, not like wages.",
            ),
        },
        answer="c",
    ),
    Prediction(
        id="07.p3",
        question="5 is added to every channel of token 3. How does the output of the layer norm change?",
        choices={
            "a": Choice(
                "nothing changes",
                "The mean of that token rises by 5 too, and is subtracted. The variance does not change at all.",
            ),
            "b": Choice(
                "token 3 rises by 5",
                "The norm subtracts the token's mean, and the mean rose by 5 as well.",
            ),
            "c": Choice(
                "token 3 shrinks: it is divided by a larger number",
                "Divided by the spread of its channels, and a constant does not change the spread.",
            ),
            "d": Choice(
                "all tokens change a little",
                "That would be a norm over the sequence. Layer norm takes each token for itself.",
            ),
        },
        answer="a",
    ),
    Prediction(
        id="07.p4",
        question="In row 0 under “train” stands 2.00. Why?",
        choices={
            "a": Choice(
                "a mistake: no weight may be above 1",
                "In evaluation it would be one: there each output is a weighted average, and its weights sum to 1. "
                "In training dropout changes them, wrong in each row and right on average.",
            ),
            "b": Choice(
                "on purpose: what is not dropped is made larger, so that the average stays right",
                "About half of the weights become 0, so the others are doubled: 1.00 becomes 0 or 2.00, which is 1.00 on average. eval() switches it off.",
            ),
            "c": Choice(
                "the softmax was forgotten in training",
                "The softmax is there, before the dropout. Where nothing was dropped, the weights are exactly doubled.",
            ),
        },
        answer="b",
    ),
)

TERMS = ()
