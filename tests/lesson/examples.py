"""Exercises and a prediction that no notebook has, and answers to the first exercise."""

import torch
from torch import nn

from attention_base.known import Known
from feedback.grading import Exercise, Mistake
from lesson.builds import Build
from lesson.exercises import EXERCISES
from lesson.question import Choice, Prediction

# All but those that ask for a class or a loop, whose judges have inputs and tests of their own.
CALLED = {id: one for id, one in EXERCISES.items() if not isinstance(one, Build)}


# What a right result may be made into on its way back.
OTHER_FORMS = {
    "nothing": lambda z: None,
    "a word": lambda z: "word",
    "a number": lambda z: 3.5,
    "an empty list": lambda z: [],
    "twice": lambda z: (z, z),
}
OF_TENSORS = {
    "a list": lambda z: z.tolist(),
    "in double precision": lambda z: z.double(),
    "whole numbers": lambda z: z.long(),
    "one axis more": lambda z: z[None],
    "the first of it": lambda z: z[:1],
    "all but the last": lambda z: z[..., :-1],
    "other axes": lambda z: z.mT,
    "zeros": lambda z: 0 * z,
    "half of it": lambda z: z / 2,
    "a little more": lambda z: z + 0.01,
    "turned round": lambda z: z.flip(-1),
    "a nan at first": lambda z: z.where(z != z.flatten()[0], torch.nan),
    "with gradients": lambda z: z * torch.ones((), requires_grad=True),
}


# What a part may read or return in the place of z (B, T, C).
CHANGES = {
    "twice": lambda z: 2 * z,
    "zeros": lambda z: 0 * z,
    "never below 0": lambda z: z.relu(),
    "a softmax": lambda z: z.softmax(-1),
    "the sum so far": lambda z: z.cumsum(1),
    "tokens turned round": lambda z: z.flip(1),
    "the next token": lambda z: z.roll(-1, 1),
    "the token before": lambda z: z.roll(1, 1),
    "the mean of all tokens": lambda z: z.mean(1, keepdim=True).expand_as(z),
    "the mean of all sequences": lambda z: z.mean(0, keepdim=True).expand_as(z),
    "channels turned round": lambda z: z.flip(-1),
    "without gradient": lambda z: z.detach(),
    "a bit of chance": lambda z: z + torch.rand(()),
    "nan": lambda z: z.masked_fill(z > 1, torch.nan),
}


def running_sum(x):
    """(B, T, C) -> (B, T, C)."""
    return x.cumsum(dim=1)


def in_place(x):
    x[:, 0] = 0
    return x.cumsum(dim=1)


EXERCISE = Exercise(
    "99.1",
    running_sum,
    lambda: [(torch.randn(2, 5, 3),), (torch.randn(3, 4, 2),)],
    title="Running sum",
    mistakes=(
        Mistake(
            Known("over the channels", (("dim=1", "dim=-1"),), "You summed over the channels.")
        ),
        Mistake(Known("a product", (("x.cumsum(dim=1)", "x @ x"),), "Nothing is multiplied.")),
    ),
    hints=("Look at the axes.", "Time is axis 1."),
    properties=(
        ("first token unchanged", lambda out, x: torch.equal(out[:, 0], x[:, 0])),
        ("last is the total", lambda out, x: torch.allclose(out[:, -1], x.sum(1), atol=1e-5)),
    ),
    checked="two shapes, every number",
)


def side_by_side(parts, x):
    """Functions (B, T, C) -> (B, T, d), and x (B, T, C) -> (B, T, n·d)."""
    return torch.cat([part(x) for part in parts], dim=-1)


LISTS = Exercise(
    "99.2",
    side_by_side,
    lambda: [
        ([nn.Sequential(nn.Linear(6, 2)) for _ in range(3)], torch.randn(4, 5, 6)),
        ([nn.Sequential(nn.Linear(8, 3)) for _ in range(2)], torch.randn(3, 6, 8)),
    ],
    axes={"parts": "n", "x": "B T C", "return": "B T n·d"},
    sizes={"d": lambda parts, x: parts[0][0].out_features},
)
MODULE = Exercise(
    "99.3",
    lambda layer: layer.weight.T,
    lambda: [(nn.Linear(5, 3),), (nn.Linear(4, 4),)],
    axes={"return": "C d"},
    sizes={"C": lambda layer: layer.in_features, "d": lambda layer: layer.out_features},
)
PIECES = Exercise(
    "99.4",
    lambda fused: fused.chunk(3),
    lambda: [(torch.randn(9, 3),), (torch.randn(6, 2),)],
    axes={"fused": "3C C", "return": "3 C C"},
    several=True,
)

PREDICTION = Prediction(
    id="99.p1",
    question="Is `0.1 + 0.2 == 0.3`? " + "Think of how a computer stores numbers. " * 5,
    choices={
        "a": Choice("yes", "In decimals it is. A computer stores binary fractions."),
        "b": Choice("no, `0.1` < 1 & not exact", "Right: 0.1 has no finite binary fraction."),
    },
    answer="b",
)


def failure(candidate, exercise=EXERCISE):
    """All that is told of an answer that fails and is no known mistake."""
    verdict = exercise.check(candidate)
    assert (verdict.status, verdict.mistake) == ("failed", None)
    return verdict.told(details=True)
