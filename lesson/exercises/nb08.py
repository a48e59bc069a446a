"""The exercises of notebook 08: order."""

import torch

from feedback.grading import Exercise
from lesson.builds import build
from lesson.builds.right_08 import turn

# ---------------------------------------------------------------- 08.4


def add_positions(x, table):
    """Tokens x (B, T, C), table (n, C), n >= T -> x plus the row of each position."""
    return x + table[: x.shape[1]]


def _tokens_and_table():
    generator = torch.Generator().manual_seed(0)
    sizes = ((3, 5, 4, 9), (2, 6, 3, 7))
    return [
        (torch.randn(B, T, C, generator=generator), torch.randn(n, C, generator=generator))
        for B, T, C, n in sizes
    ]


def _by_numbers(x, table):  # n < T would stop it
    return x + table[torch.arange(x.shape[1])]


ADD_POSITIONS = Exercise(
    "08.4",
    add_positions,
    _tokens_and_table,
    accepted=(_by_numbers,),
    axes={"x": "B T C", "table": "n C", "return": "B T C"},
    trained=True,
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
    optional=True,
)


EXERCISES = (ADD_POSITIONS, TURN, build("08.MultiHeadAttention"), LOOK_BACK)
