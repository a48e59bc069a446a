"""The exercises of notebook 07: the block."""

import torch
from torch import nn

from attention_base.same import seed_all
from attention_clinic.wiring import EXERCISE_BUGS, block_output
from feedback.grading import Exercise
from helpers.attention import FeedForward, MultiHeadAttention

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


def _of_the_mean(x, *layers):
    return feed_forward(x.mean(dim=-2, keepdim=True).expand_as(x), *layers)


FEED_FORWARD = Exercise(
    "07.1",
    feed_forward,
    axes={"x": "... C", "W_1": "4C C", "b_1": "4C", "W_2": "C 4C", "b_2": "C", "return": "... C"},
    intermediates=(
        ("the hidden numbers before the ReLU", lambda x, W_1, b_1, W_2, b_2: x @ W_1.T + b_1),
        ("the hidden numbers after the ReLU", _hidden),
        *((f"the network with {name} in the place of ReLU", _with(f)) for name, f in _CURVES),
        ("the network with a ReLU on x in the place of the one between the layers", _relu_on_x),
        ("a ReLU of the product of both matrices", _both_matrices),
        ("the network of the mean of all tokens", _of_the_mean),
    ),
    trained=True,
    cases=_layers,
    accepted=(_by_linear,),
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
    "07.2",
    layer_norm,
    without="layer_norm",
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
    properties=(("each token has mean 0", lambda out, x: bool(out.mean(-1).abs().max() < 1e-4)),),
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
        return block_output(x, attention, feed_forward, norm_1, norm_2, **bug.settings)

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
    "07.3",
    block,
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
    known={bug: _with_bug(bug) for bug in EXERCISE_BUGS},
)


EXERCISES = (FEED_FORWARD, LAYER_NORM, BLOCK)
