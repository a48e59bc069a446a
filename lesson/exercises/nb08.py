"""The exercises of notebook 08: order."""

import torch
from torch import nn

from attention_base.same import seed_all
from feedback.grading import Exercise
from helpers.attention import FeedForward, MultiHeadAttention
from lesson.builds import build
from lesson.builds.right_08 import turn

# ---------------------------------------------------------------- 08.1


def shuffle_error(layer, x, order):
    """Outputs for shuffled tokens against shuffled outputs: the largest absolute difference."""
    return (layer(x[:, order]) - layer(x)[:, order]).abs().max()


def _as_a_number(layer, x, order):
    return (layer(x[:, order]) - layer(x)[:, order]).abs().max().item()


def _undone(layer, x, order):
    return (layer(x[:, order])[:, order.argsort()] - layer(x)).abs().max()


class _LastSinks(nn.Module):
    """Only the last token changes, downwards: the largest difference is a negative one."""

    def forward(self, x):
        return torch.cat([x[:, :-1], x[:, -1:] - 1 - x[:, :1].abs()], dim=1)


def _layers_and_tokens():
    seed_all(0)
    cases = [
        (MultiHeadAttention(6, 2), torch.randn(7, 5, 6), [2, 4, 1, 3, 0]),
        (FeedForward(8), torch.randn(6, 4, 8), [1, 2, 3, 0]),
        (_LastSinks(), torch.randn(5, 4, 3), [3, 1, 0, 2]),
    ]
    return [(layer.requires_grad_(False), x, torch.tensor(order)) for layer, x, order in cases]


SHUFFLE_ERROR = Exercise(
    "08.1",
    shuffle_error,
    axes={"x": "B T C", "order": "T"},
    intermediates=(
        ("all differences, not the largest", lambda f, x, o: f(x[:, o]) - f(x)[:, o]),
        ("the absolute differences", lambda f, x, o: (f(x[:, o]) - f(x)[:, o]).abs()),
        ("the outputs for the shuffled tokens", lambda f, x, o: f(x[:, o])),
        ("the length of all differences", lambda f, x, o: (f(x[:, o]) - f(x)[:, o]).norm()),
    ),
    accepted=(_as_a_number, _undone),
    cases=_layers_and_tokens,
)


# ---------------------------------------------------------------- 08.turn


def _by_complex_numbers(x, angles):
    arrows = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(arrows * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def half_turned(x, angles):
    cos, sin = (f.repeat_interleave(2, dim=-1) for f in (angles.cos(), angles.sin()))
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def _x_and_angles():
    generator = torch.Generator().manual_seed(0)
    return [
        (torch.randn(2, 5, 8, generator=generator), 6 * torch.rand(5, 4, generator=generator)),
        (torch.randn(3, 4, 6, generator=generator), 6 * torch.rand(4, 3, generator=generator)),
    ]


TURN = Exercise(
    "08.turn",
    turn,
    axes={"x": "... T d", "angles": "T d", "return": "... T d"},
    intermediates=(
        ("x times the cosines alone", lambda x, a: x * a.cos().repeat_interleave(2, -1)),
        ("the first channel of each arrow alone", lambda x, a: turn(x, a)[..., 0::2]),
        ("the second channel of each arrow alone", lambda x, a: turn(x, a)[..., 1::2]),
    ),
    properties=(
        (
            "the length of each token stays",
            lambda out, x, angles: torch.allclose(out.norm(dim=-1), x.norm(dim=-1), rtol=1e-4),
        ),
    ),
    accepted=(_by_complex_numbers,),
    cases=_x_and_angles,
)


# ---------------------------------------------------------------- 08.3


def look_back(k, n, speeds):
    """Keys (T, d), all equal -> queries (T, d), all equal, which look n tokens back."""
    return turn(k, (-n * speeds).expand(len(k), -1))


def _from_other_rows(k, n, speeds):
    return turn(k.roll(n, dims=0), (-n * speeds).expand(len(k), -1))


def _keys():
    generator = torch.Generator().manual_seed(0)
    cases = []
    for T, d, n in [(7, 10, 3), (6, 8, 2)]:
        k = torch.randn(d, generator=generator).repeat(T, 1)
        cases.append((k, n, 0.9 * 100.0 ** (-torch.arange(0, d, 2) / d)))
    return cases


LOOK_BACK = Exercise(
    "08.3",
    look_back,
    axes={"k": "T d", "return": "T d"},
    properties=(
        (
            "each query has the length of its key",
            lambda out, k, n, speeds: torch.allclose(out.norm(dim=-1), k.norm(dim=-1), rtol=1e-4),
        ),
    ),
    accepted=(_from_other_rows,),
    cases=_keys,
)


EXERCISES = (SHUFFLE_ERROR, TURN, build("08.MultiHeadAttention"), LOOK_BACK)
