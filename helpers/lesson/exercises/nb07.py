"""Predictions and exercises of notebook 07: the block."""

import torch
from torch import nn

from helpers.attention import FeedForward, MultiHeadAttention
from helpers.clinic.wiring import WIRING_BUGS, block_output
from helpers.lesson.grading import Exercise, Mistake
from helpers.lesson.question import Choice, Prediction
from helpers.lesson.terms import Term
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


def _hidden(x, W_1, b_1, W_2, b_2):
    return torch.relu(x @ W_1.T + b_1)


def _with(curve):
    """The network with another function in the place of ReLU."""
    return lambda x, W_1, b_1, W_2, b_2: curve(x @ W_1.T + b_1) @ W_2.T + b_2


_CURVES = (
    ("softmax", lambda z: torch.softmax(z, dim=-1)),
    ("SiLU", nn.functional.silu),
    ("leaky ReLU", nn.functional.leaky_relu),
    ("leaky ReLU of slope 0.1", lambda z: nn.functional.leaky_relu(z, 0.1)),
    ("leaky ReLU of slope 0.2", lambda z: nn.functional.leaky_relu(z, 0.2)),
    ("the absolute value", torch.abs),
    ("ELU", nn.functional.elu),
    ("softplus", nn.functional.softplus),
    ("squared ReLU", lambda z: torch.relu(z) ** 2),
    ("a ReLU that keeps the negative numbers", lambda z: z.clamp(max=0)),
    ("a clamp between 0 and 1", lambda z: z.clamp(0, 1)),
)


def _relu_on_x(x, W_1, b_1, W_2, b_2):
    return (torch.relu(x) @ W_1.T + b_1) @ W_2.T + b_2


def _both_matrices(x, W_1, b_1, W_2, b_2):
    return torch.relu(x @ (W_2 @ W_1).T + W_2 @ b_1 + b_2)


FEED_FORWARD = Exercise(
    id="07.1",
    title="Feed-forward network",
    reference=feed_forward,
    axes={"x": "... C", "W_1": "4C C", "b_1": "4C", "W_2": "C 4C", "b_2": "C", "return": "... C"},
    intermediates=(
        ("the hidden numbers before the ReLU", lambda x, W_1, b_1, W_2, b_2: x @ W_1.T + b_1),
        ("the hidden numbers after the ReLU", _hidden),
        *((f"the network with {name} in the place of ReLU", _with(f)) for name, f in _CURVES),
        ("the network with a ReLU on x in the place of the one between the layers", _relu_on_x),
        ("a ReLU of the product of both matrices", _both_matrices),
    ),
    trained=True,
    cases=_layers,
    accepted=(_by_linear,),
    checked="two inputs of different sizes: the first layer, ReLU and the second layer, both with their biases",
    mistakes=(
        Mistake(
            "no ReLU",
            change=("torch.relu", ""),
            message="Nothing cuts off the negative numbers between the two layers, and two matrices in a row are one matrix: nothing new can be computed. "
            "The ReLU is missing, or its result was not kept: torch.relu returns a new tensor.",
        ),
        Mistake(
            "GELU instead of ReLU",
            change=("torch.relu", "nn.functional.gelu"),
            message="This is the network with GELU, a smoother curve that many models use. Here ReLU is wanted: torch.relu.",
        ),
        Mistake(
            "GELU by tanh instead of ReLU",
            change=(
                "torch.relu(x @ W_1.T + b_1)",
                'nn.functional.gelu(x @ W_1.T + b_1, approximate="tanh")',
            ),
            message="This is the network with GELU in its approximation by tanh, as GPT-2 has it. Here ReLU is wanted: torch.relu.",
        ),
        Mistake(
            "tanh instead of ReLU",
            change=("torch.relu", "torch.tanh"),
            message="This is the network with tanh between its layers. Here ReLU is wanted: torch.relu.",
        ),
        Mistake(
            "sigmoid instead of ReLU",
            change=("torch.relu", "torch.sigmoid"),
            message="This is the network with a sigmoid between its layers. Here ReLU is wanted: torch.relu.",
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
            message="This is a ReLU of both layers together, which are one matrix then. The ReLU belongs between the two, on the 4C hidden numbers.",
        ),
        Mistake(
            "not projected back",
            change=(" @ W_2.T + b_2", ""),
            message="The result has 4C channels. Project back to C, so that it can be added to x.",
        ),
        Mistake(
            "the first matrix does not fit",
            change=(("W_1.T", "W_1"), ("W_2.T", "W_2")),
            message="x has C channels, so the matrix that it is multiplied by needs C rows; yours has 4C. nn.Linear stores (out, in): W_1 is (4C, C), so W_1.T fits. "
            "(W_2 belongs to the second layer.)",
        ),
        Mistake(
            "reshaped instead of transposed",
            change=(("W_1.T", "W_1.reshape(W_2.shape)"), ("W_2.T", "W_2.reshape(W_1.shape)")),
            message="The shapes fit, the numbers of the matrices are in the wrong places: in their old reading order, as after view or reshape. .T turns rows into columns.",
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
            message="Your result is the right one plus x. The block adds x (exercise 07.3); here only the residual branch is wanted.",
        ),
    ),
    hints=(
        "Three steps: the first Linear layer, ReLU, the second Linear layer.",
        "nn.Linear stores its weight as (out, in), so a Linear layer computes x @ W.T + b.",
        "torch.relu(x @ W_1.T + b_1) is what goes into the second layer.",
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


def _between_0_and_1(x, eps=1e-5):
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    return (x - low) / (high - low + eps)


def _length_one(x, eps=1e-5):
    return nn.functional.normalize(x - x.mean(dim=-1, keepdim=True), dim=-1, eps=eps)


def _not_centred(x, eps=1e-5):
    mean_square = (x**2).mean(dim=-1, keepdim=True)
    return (x - x.mean(dim=-1, keepdim=True)) / torch.sqrt(mean_square + eps)


LAYER_NORM = Exercise(
    id="07.2",
    title="Layer norm",
    reference=layer_norm,
    axes={"x": "... C", "return": "... C"},
    intermediates=(
        ("the mean of each token", lambda x, eps=1e-5: x.mean(-1)),
        ("the variance of each token", lambda x, eps=1e-5: x.var(-1, unbiased=False)),
        ("each token with its smallest channel at 0 and its largest at 1", _between_0_and_1),
        ("each token minus its mean, with length 1", _length_one),
        ("the centred token divided by the root of its mean square, mean included", _not_centred),
    ),
    trained=True,
    cases=_tokens,
    accepted=(_by_squares,),
    atol=1e-4,
    checked="two batches, each with one tiny token, where the place of ε shows",
    properties=(("each token has mean 0", lambda out, x: bool(out.mean(-1).abs().max() < 1e-4)),),
    mistakes=(
        Mistake(
            "variance divided by C - 1",
            change=("unbiased=False, ", ""),
            message="The variance was divided by C - 1, as var does unless told otherwise. Here the C channels are all there is: unbiased=False.",
        ),
        Mistake(
            "ε outside the square root",
            change=("torch.sqrt(variance + eps)", "(torch.sqrt(variance) + eps)"),
            message="ε was added after the square root. For ordinary tokens it does not show; for a tiny one the result is several times too large. sqrt(var + ε).",
        ),
        Mistake(
            "standard deviation plus ε",
            change=(
                ("unbiased=False, ", ""),
                ("torch.sqrt(variance + eps)", "(torch.sqrt(variance) + eps)"),
            ),
            message="Two things: the variance was divided by C - 1, not C (as std does unless told otherwise), and ε was added after the square root. "
            "Take the variance with unbiased=False: sqrt(var + ε).",
        ),
        Mistake(
            "standard deviation without ε",
            change=(("unbiased=False, ", ""), ("variance + eps", "variance")),
            message="Two things: the variance was divided by C - 1, not C (as std does unless told otherwise), and no ε is added under the root. "
            "Take the variance with unbiased=False: sqrt(var + ε).",
        ),
        Mistake(
            "no ε under the root",
            change=("variance + eps", "variance"),
            message="Tiny tokens are blown up to full size, and a constant token would be 0/0: the division is by the square root of the variance alone. "
            "Add ε to the variance, under the root: sqrt(var + ε).",
        ),
        Mistake(
            "ε as the smallest variance",
            change=("variance + eps", "variance.clamp(min=eps)"),
            message="ε serves as a lower limit of the variance here. It is added to every variance, the large ones too: sqrt(var + ε).",
        ),
        Mistake(
            "divided by the variance",
            change=("torch.sqrt(variance + eps)", "(variance + eps)"),
            message="The division is by the variance. Its square root is the size of the numbers.",
        ),
        Mistake(
            "sum instead of mean",
            change=("x.mean(", "x.sum("),
            message="The sum of the channels was subtracted, not their mean.",
        ),
        Mistake(
            "sum of squares instead of the variance",
            change=("torch.sqrt(variance + eps)", "torch.sqrt(variance * x.shape[-1] + eps)"),
            message="The squared differences were added up and not divided by C, so the result is √C times too small. The variance is their mean.",
        ),
        Mistake(
            "over time",
            change=(("mean(dim=-1", "mean(dim=-2"), ("var(dim=-1", "var(dim=-2")),
            message="Mean and variance were taken over the tokens, dim=-2: tokens were mixed, future ones included. Each token for itself: dim=-1.",
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
            message="Mean, variance or both are (B, T): one number for each token, and the axis of channels is gone. Sizes line up from the right, so T meets C. "
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
            message="Only the mean was divided, and x left as it is: division goes before subtraction. Put x - mean in brackets.",
        ),
        Mistake(
            "mean not subtracted",
            change=("(x - mean)", "x"),
            message="The division is right, but the mean was not subtracted before it.",
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
        "Take mean and variance over the channels, dim=-1, and keep that axis with length 1 (keepdim=True), so that they fit to x.",
        "The variance that divides by C is x.var(dim=-1, unbiased=False, keepdim=True).",
        "Subtract the mean, then divide by torch.sqrt(variance + eps).",
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


def _halved(x, attention, feed_forward, norm_1, norm_2):
    x = (x + attention(norm_1(x))) / 2
    return (x + feed_forward(norm_2(x))) / 2


def _attention_twice(x, attention, feed_forward, norm_1, norm_2):
    x = x + attention(norm_1(x))
    return block(x, attention, feed_forward, norm_1, norm_2)


def _feed_forward_twice(x, attention, feed_forward, norm_1, norm_2):
    x = block(x, attention, feed_forward, norm_1, norm_2)
    return x + feed_forward(norm_2(x))


def _branches_multiplied(x, attention, feed_forward, norm_1, norm_2):
    return x + attention(norm_1(x)) * feed_forward(norm_2(x))


BLOCK = Exercise(
    id="07.3",
    title="The block",
    reference=block,
    axes={"x": "B T C", "return": "B T C"},
    intermediates=(
        ("the output of the attention alone", lambda x, a, f, n, m: a(n(x))),
        ("x after the attention, before the feed-forward", lambda x, a, f, n, m: x + a(n(x))),
        ("the feed-forward's output alone", lambda x, a, f, n, m: f(m(x + a(n(x))))),
        ("each sum of x and a branch halved: the mean of both", _halved),
        ("the block with its attention twice", _attention_twice),
        ("the block with its feed-forward twice", _feed_forward_twice),
        ("the two branches multiplied, not added one after the other", _branches_multiplied),
    ),
    trained=True,
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
            "one residual connection around both",
            change=(
                ("x = x + attention(norm_1(x))", "z = attention(norm_1(x))"),
                ("norm_2(x)", "norm_2(z)"),
            ),
            message="There is one residual connection around both parts: x is added once, at the end. Each part needs its own: "
            "add x after the attention, and add the sum again after the feed-forward.",
        ),
        Mistake(
            "norm_1 on the residual stream",
            change=("x = x + attention(norm_1(x))", "x = norm_1(x)\n    x = x + attention(x)"),
            message="In the first line the norm replaced x on the residual stream: only the attention reads norm_1(x), and x itself is added.",
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
            "x added before the branch",
            change=(
                ("x + attention(norm_1(x))", "attention(x + norm_1(x))"),
                ("x + feed_forward(norm_2(x))", "feed_forward(x + norm_2(x))"),
            ),
            message="x is added to the norm, before the attention and the feed-forward, and not to what they return. "
            "A residual connection goes around the whole branch, so that x itself goes on: look at what stands inside the brackets of attention(…).",
        ),
        Mistake(
            "x added before the attention",
            change=("x + attention(norm_1(x))", "attention(x + norm_1(x))"),
            message="x is added to the norm, before the attention, and not to what it returns. A residual connection goes around the whole branch: look at what stands inside the brackets of attention(…).",
        ),
        Mistake(
            "pre-norm and post-norm mixed",
            change=("x + feed_forward(norm_2(x))", "norm_2(x + feed_forward(x))"),
            message="The first half is pre-norm, the second post-norm: norm_2 stands on the residual stream. Write the second half like the first: only the branch reads the norm.",
        ),
        Mistake(
            "the feed-forward reads the attention alone",
            change=(
                ("x = x + attention(norm_1(x))", "z = attention(norm_1(x))"),
                ("x + feed_forward(norm_2(x))", "x + z + feed_forward(norm_2(z))"),
            ),
            message="The feed-forward reads what the attention returned, without x. It reads the residual stream, norm_2(x + attention(…)).",
        ),
        Mistake(
            "a norm at the end",
            change=("x + feed_forward(norm_2(x))", "norm_2(x + feed_forward(norm_2(x)))"),
            message="The block is right, and then goes through a norm once more. The residual stream keeps x as it is: no norm after the last sum.",
        ),
    ),
    hints=(
        "Two lines, each of the form x = x + branch. Each branch begins with its own norm.",
        "The first branch is attention(norm_1(x)).",
        "The second branch is feed_forward(norm_2(x)). It reads the x that the first line has made.",
    ),
)


EXERCISES = (FEED_FORWARD, LAYER_NORM, BLOCK)


# ---------------------------------------------------------------- predictions

PREDICTIONS = (
    Prediction(
        id="07.p1",
        question="The tokens are shuffled, the feed-forward network is applied, and its outputs are put back in order. Which outputs differ from those without shuffling?",
        choices={
            "a": Choice(
                "all of them, because the order of the tokens matters",
                "It matters to causal attention, where the order decides which tokens a token can see. Here both layers work on the channels of one token.",
            ),
            "b": Choice(
                "none",
                "Each output depends on the channels of its own token only. So it moves with its token, and moves back with it.",
            ),
            "c": Choice(
                "only those of the tokens that moved",
                "Their outputs moved too, and were put back. The place of a token plays no part in the calculation of its output.",
            ),
        },
        answer="b",
    ),
    Prediction(
        id="07.p2",
        question="24 blocks with residual connections: 48 branches. Each attention returns vectors about as long as those it reads, each feed-forward network about 0.7 times as long, all nearly at right angles to what they read. "
        "The tokens begin at size 1. How large are they at the end?",
        choices={
            "a": Choice(
                "about 50: each of the 48 branches adds 1",
                "The first branch does return numbers of size 1. But every later branch reads tokens that have grown, and returns numbers as large as these.",
            ),
            "b": Choice(
                "about 1: attention averages",
                "An average can be small, and with unit gain the signal does fade in a stack without residual connections. Here, what a branch returns is about as large as what it reads, "
                "and it is added.",
            ),
            "c": Choice(
                "more than 100,000",
                "Two vectors of equal size at right angles have a sum that is √2 = 1.4 times as large. With 0.7 times the size it is 1.2 times as large. "
                "The factors of all 48 branches are multiplied. Those of one block make √2 · √1.5 = √3, and 24 blocks √3 to the power of 24, which is 531,000. The notebook measures 250,000.",
            ),
        },
        answer="c",
    ),
    Prediction(
        id="07.p3",
        question="5 is added to every channel of token 3. How does the output of layer norm change?",
        choices={
            "a": Choice(
                "nothing changes",
                "The mean of that token rises by 5 too and is subtracted, and its variance stays the same.",
            ),
            "b": Choice(
                "token 3 rises by 5",
                "Layer norm subtracts the mean of the token, and this mean has risen by 5 as well.",
            ),
            "c": Choice(
                "token 3 shrinks, because it is divided by a larger number",
                "It is divided by the standard deviation of its channels. A constant moves all channels alike, so their distances from the mean stay the same.",
            ),
            "d": Choice(
                "all tokens change a little",
                "They would if the mean were taken over the sequence. Layer norm takes the mean over the channels of one token.",
            ),
        },
        answer="a",
    ),
    Prediction(
        id="07.p4",
        question="Why does dropout double the weights that are kept?",
        choices={
            "a": Choice(
                "so that the weights of each row sum to 1 again",
                "In row 0 the only weight is now 2.00, so this row sums to 2. Dropout comes after the softmax, and a row may sum to more or less than 1.",
            ),
            "b": Choice(
                "so that each weight is right on average",
                "With probability 0.5 a weight becomes 0, otherwise it is doubled. So 1.00 becomes 0 or 2.00, which is 1.00 on average.",
            ),
            "c": Choice(
                "so that the tokens that are kept get larger gradients and learn faster",
                "They do get larger gradients, but as often they get none. On average nothing changes, and that is the aim: in evaluation, the layers that follow read outputs of the size that they know from training.",
            ),
        },
        answer="b",
    ),
    Prediction(
        id="07.p5",
        question="Each of the eight blocks keeps its norms in both versions. What happens in training without residual connections?",
        choices={
            "a": Choice(
                "The loss falls as well, only more slowly.",
                "That is what happens with two or four blocks (four need more than 100 steps). With eight, all letters but the first are averaged away before the last layer, and 100 steps do not change this.",
            ),
            "b": Choice(
                "The loss stays near that of guessing.",
                "All letters but the first are averaged away, and training loses the trace of the first. Then the last layer reads the same for every word, and can only learn how frequent each letter is.",
            ),
            "c": Choice(
                "The loss becomes nan, because the numbers explode.",
                "Without residual connections nothing is added up, and each norm brings the tokens back to size 1. So nothing explodes, and yet it does not learn.",
            ),
        },
        answer="b",
    ),
)

TERMS = (
    Term(
        "transformer block",
        "Attention and a feed-forward network, each with a norm and a residual connection; language models stack many of them.",
        also=("block", "layer"),
        everyday=True,
    ),
    Term(
        "GPT",
        "A language model made of causal transformer blocks, trained to predict the next token; the name stands for generative pre-trained transformer.",
        everyday=True,  # part of titles that other notebooks cite
    ),
    Term(
        "feed-forward network",
        "Two Linear layers with a ReLU or a similar function between them, applied to each token alone.",
        also=("FFN", "MLP", "multi-layer perceptron"),
    ),
    Term(
        "residual connection",
        "A connection that carries x past a layer: the layer's output is added to x instead of replacing it.",
        also=("skip connection",),
    ),
    Term(
        "residual branch",
        "A layer with a residual connection around it; its output is added to the residual stream.",
    ),
    Term(
        "residual stream",
        "The vectors of the tokens from the first block to the last; every branch reads from them and adds to them.",
    ),
    Term(
        "layer norm",
        "A step that subtracts from each token the mean of its channels and divides it by their standard deviation.",
        also=("layer normalisation", "nn.LayerNorm"),
    ),
    Term(
        "scale and shift",
        "The two parameters of each channel at the end of a norm: the channel is multiplied by the scale, and the shift is added.",
        also=("gain and bias",),
    ),
    Term(
        "post-norm",
        "A block whose norms stand on the residual stream, after each addition: norm(x + f(x)).",
    ),
    Term(
        "pre-norm",
        "A block whose norms stand in the residual branches, before attention and feed-forward network: x + f(norm(x)).",
    ),
    Term(
        "dropout",
        "Setting numbers at random to 0 in training, and dividing the others so that each stays right on average.",
    ),
    Term(
        "Adam",
        "A kind of gradient descent that divides the running mean of each gradient by the gradient's typical size, so that all parameters move in steps of similar size.",
    ),
)
