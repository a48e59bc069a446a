"""Positions: angles and vectors against formulas written in another way, and refusals in words."""

import math

import pytest
import torch

from helpers.positions import rotary, sinusoidal

SIZES = [4, 6, 8, 16, 32, 64]


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def turned_as_complex(x, positions, base):
    """Each pair of channels as one complex number, times a number on the unit circle."""
    d = x.shape[-1]
    numbers = torch.view_as_complex(x.double().unflatten(-1, (d // 2, 2)).contiguous())
    angles = [[p / base ** (2 * i / d) for i in range(d // 2)] for p in positions.tolist()]
    turned = numbers * torch.exp(1j * torch.tensor(angles, dtype=torch.double))
    return torch.view_as_real(turned).flatten(-2)


@pytest.mark.parametrize("base", [10_000.0, 7])
@pytest.mark.parametrize("shape", [(5, 2), (2, 3, 7, 8), (0, 4, 6), (3, 1, 64)], ids=str)
def test_rotary_equals_a_product_of_complex_numbers(shape, base):
    x, given = random(*shape), torch.linspace(0, 3000, shape[-2]).flip(0)  # no whole numbers
    for positions in (None, given, given.int(), (10 * given).bfloat16()):
        places = torch.arange(shape[-2]) if positions is None else positions
        out = rotary(x, positions, base)
        assert out.dtype == x.dtype
        expected = turned_as_complex(x, places, base).float()
        torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)


def test_the_first_pair_turns_fastest_and_anticlockwise():
    x = torch.tensor([1.0, 0, 1, 0]).expand(2, 4)
    first, second = rotary(x)
    assert first.tolist() == [1, 0, 1, 0]
    told = [math.cos(1), math.sin(1), math.cos(0.01), math.sin(0.01)]
    assert second.tolist() == pytest.approx(told)


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("base", [1000, 10_000])
def test_a_shift_of_all_positions_leaves_the_dot_products(d, base):
    q, k = random(2, 8, 32, d)
    at, shifted = (
        rotary(q, positions, base) @ rotary(k, positions, base).mT
        for positions in (torch.arange(32), torch.arange(1000, 1032))
    )
    assert (at - shifted).abs().max() <= 4e-4
    assert (at - q @ k.mT).abs().max() > 1, "distances count"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_angles_are_exact_in_every_dtype(dtype):
    """In bfloat16 there is no 1001, and in float32 no cosine of 1e6 with 8 digits."""
    x, positions = torch.ones(3, 8, dtype=dtype), torch.tensor([1001, 4097, 10**6])
    out = rotary(x, positions)
    assert out.dtype == dtype
    expected = turned_as_complex(x, positions, 10_000)
    atol = max(2 * torch.finfo(dtype).eps, 1e-9)
    torch.testing.assert_close(out.double(), expected, rtol=0, atol=atol)


def test_gradients_are_turned_back_and_the_input_stays():
    x, upstream = random(2, 5, 6).requires_grad_(), random(2, 5, 6, seed=1)
    before = x.detach().clone()
    rotary(x).backward(upstream)
    torch.testing.assert_close(rotary(x.grad), upstream)  # turned forth again
    assert torch.equal(x.detach(), before)


@pytest.mark.parametrize(("T", "C"), [(1, 2), (7, 6), (300, 32)])
def test_sinusoidal_equals_a_loop(T, C):
    rows = [
        [
            (math.cos if c % 2 else math.sin)(p / 10_000 ** ((c - c % 2) / C))
            for c in range(C)
        ]
        for p in range(T)
    ]  # fmt: skip
    out = sinusoidal(T, C)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out, torch.tensor(rows), rtol=0, atol=1e-6)


x = torch.ones(2, 3, 4)
EACH = "position must be a finite number; token 1 has"

BAD_INPUT = [
    ({"x": x[..., :3]}, ValueError, r"must be even and at least 2; x is \(2, 3, 3\)"),
    ({"x": x[..., :0]}, ValueError, r"must be even and at least 2; x is \(2, 3, 0\)"),
    ({"x": x[0, 0]}, ValueError, r"x must be \(\.\.\., T, d\), got \(4,\)\. .*x\[None, :\]"),
    ({"x": x.long()}, TypeError, r"x must be queries or keys, .*\(2, 3, 4\) with torch.int64"),
    ({"x": x + 0j}, TypeError, "dense tensor of floats; got a tensor .*complex64"),
    ({"x": x.tolist()}, TypeError, "x must be queries or keys.*got the list"),
    ({"positions": torch.arange(4)}, ValueError, r"\(3,\) for the T = 3 tokens of x; got \(4,\)"),
    ({"positions": torch.ones(2, 3)}, ValueError, r"for the T = 3 tokens of x; got \(2, 3\)"),
    ({"positions": torch.tensor([0, -1, -2])}, ValueError, "token 1 has -1.*add a constant"),
    ({"positions": torch.tensor([0, 1, -0.5])}, ValueError, "count from 0; token 2 has -0.5"),
    ({"positions": torch.tensor([0, math.nan, 1])}, ValueError, f"{EACH} nan"),
    ({"positions": torch.tensor([0, math.inf, 1])}, ValueError, f"{EACH} inf"),
    ({"positions": torch.tensor([0, -math.inf, 1])}, ValueError, f"{EACH} -inf"),
    ({"positions": torch.ones(3) > 0}, TypeError, "positions must be numbers, .*True and False"),
    ({"positions": torch.ones(3) * 1j}, TypeError, "positions must be real"),
    ({"positions": ["a", "b", "c"]}, TypeError, "positions must be numbers"),
    ({"base": 0}, ValueError, "base must be positive, got 0; usual is 10_000"),
    ({"base": -2.0}, ValueError, "base must be positive, got -2;"),
    ({"base": math.nan}, ValueError, "base must be a finite number, got nan"),
    ({"base": math.inf}, ValueError, "base must be a finite number, got inf"),
    ({"base": "large"}, TypeError, "base must be a finite number, got the str 'large'"),
]


@pytest.mark.parametrize(("given", "error", "match"), BAD_INPUT)
def test_rotary_refuses_bad_input_in_words(given, error, match):
    with pytest.raises(error, match=match):
        rotary(**{"x": x} | given)


@pytest.mark.parametrize(
    ("T", "C", "error", "match"),
    [
        (3, 5, ValueError, "C must be even, .* got C = 5"),
        (3, 0, ValueError, "C must be a whole number of at least 1, got 0"),
        (0, 4, ValueError, "T must be a whole number of at least 1, got 0"),
        (-1, 4, ValueError, "T must be .* got -1"),
        (2.0, 4, TypeError, "T must be a whole number"),
        (3, math.nan, TypeError, "C must be a whole number"),
    ],
)
def test_sinusoidal_refuses_bad_sizes_in_words(T, C, error, match):
    with pytest.raises(error, match=match):
        sinusoidal(T, C)
