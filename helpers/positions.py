"""Positions of tokens: as angles that turn queries and keys, or as vectors that are added.

Rotary embeddings are sections 3.2 and 3.4 of Su et al. (2021), "RoFormer",
https://arxiv.org/abs/2104.09864; sinusoidal ones section 3.5 of Vaswani et al. (2017), "Attention
Is All You Need", https://arxiv.org/abs/1706.03762.
"""

import math
from functools import cache

import torch

from attention_base.numbers import as_array, as_real, as_whole, described


def rotary(
    x: torch.Tensor, positions: torch.Tensor | None = None, base: float = 10_000.0
) -> torch.Tensor:
    """Turn each pair of channels by an angle that grows with the position of its token.

    The channels 2i and 2i + 1 are an arrow in a plane. At position p it is turned by
    ``p * base**(-2i / d)`` radians. When queries and keys are both turned, their dot products
    depend on positions only through the difference of the two. Eq. 34 of Su et al. (2021).

    Other code, such as that of Llama in Hugging Face, pairs channel i with channel i + d / 2
    instead. Both train equally well, but weights of the one do not fit the other.

    Parameters
    ----------
    x
        (..., T, d) queries or keys; d must be even.
    positions
        (T,), the position of each token, at least 0; 0 to T - 1 when left out. All sequences and
        heads share them.
    base
        How slow the slower arrows are: the larger, the slower. The first arrow, whatever the
        base, turns by 1 radian a position.

    Returns
    -------
    torch.Tensor
        (..., T, d), of the dtype of x. The angles are computed in float64: in bfloat16 most whole
        numbers above 256 do not exist.

    Raises
    ------
    TypeError
        When x is not a float tensor, or positions are not numbers in a tensor.
    ValueError
        When x has no two axes, d is odd or 0, there is not one position a token, a position is
        negative, nan or inf, or base is not a positive number.

    Examples
    --------
    >>> rotary(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, torch.pi / 2])).round()
    tensor([[1., 0.],
            [-0., 1.]])
    """
    _refuse_bad_x(x)
    T, d = x.shape[-2:]
    places = torch.arange(T) if positions is None else _as_places(positions, T)
    if (base := as_real(base, "base")) <= 0:
        raise ValueError(f"base must be positive, got {base:g}; usual is 10_000.")
    angles = places[:, None] * _speeds(d, base)  # (T, d / 2)
    cos, sin = (f.to(x.device, x.dtype) for f in (angles.cos(), angles.sin()))
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


def sinusoidal(T: int, C: int) -> torch.Tensor:
    """Make a vector for each position out of sines and cosines, to be added to the tokens.

    The channels 2i and 2i + 1 of row p are sine and cosine of ``p * 10_000**(-2i / C)``. Section
    3.5 of Vaswani et al. (2017).

    Parameters
    ----------
    T
        Number of positions.
    C
        Channels of a token, even.

    Returns
    -------
    torch.Tensor
        (T, C)

    Raises
    ------
    TypeError, ValueError
        When a size is not a whole number of at least 1, or C is odd.

    Examples
    --------
    >>> sinusoidal(2, 2)
    tensor([[0.0000, 1.0000],
            [0.8415, 0.5403]])
    """
    T, C = as_whole(T, "T", 1), as_whole(C, "C", 1)
    if C % 2:
        raise ValueError(f"C must be even, since sine and cosine come in pairs; got C = {C}.")
    angles = torch.arange(T)[:, None] * _speeds(C, 10_000.0)  # (T, C / 2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).float()


@cache  # for a single token, as when a model writes, they take as long as the rest
def _speeds(d: int, base: float) -> torch.Tensor:
    """Angles in radians by which one position turns each arrow, (d / 2,), in float64."""
    return base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)


def _refuse_bad_x(x: torch.Tensor) -> None:
    if not isinstance(x, torch.Tensor) or not x.is_floating_point() or x.is_sparse:
        raise TypeError(f"x must be queries or keys, a dense tensor of floats; got {described(x)}.")
    if x.dim() < 2:
        raise ValueError(
            f"x must be (..., T, d), got {tuple(x.shape)}. For one token use x[None, :]."
        )
    if x.shape[-1] % 2 or x.shape[-1] == 0:
        raise ValueError(
            "rotary turns pairs of channels, so d, the last size of x, must be even and at least "
            f"2; x is {tuple(x.shape)}."
        )


def _as_places(positions: torch.Tensor, T: int) -> torch.Tensor:
    """Positions (T,) in float64, on the CPU; or a refusal."""
    places = as_array(positions, "positions")
    if places.dtype == bool:
        raise TypeError(
            f"positions must be numbers, one a token, not True and False; got {described(places)}."
        )
    if places.shape != (T,):
        raise ValueError(
            f"positions must be one number a token, ({T},) for the T = {T} tokens of x; "
            f"got {places.shape}."
        )
    for t, place in enumerate(places.astype(float).tolist()):
        if not math.isfinite(place):
            raise ValueError(f"Each position must be a finite number; token {t} has {place}.")
        if place < 0:
            raise ValueError(
                f"positions count from 0; token {t} has {place:g}. Scores depend on differences "
                "of positions alone, so you can add a constant to all of them."
            )
    return torch.from_numpy(places.astype(float))
