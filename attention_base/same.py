"""The same conditions for a computation, and what counts as the same numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

ATOL = 1e-5  # how far numbers of about 1 may lie apart, computed in two ways
RTOL = 1e-5  # and larger ones, as a share
HALF_PRECISION = 0.9  # of eps: rounding takes float16 and bfloat16 to 0.35, a scale by √T to 1.5


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread for a while.

    The matrices of this project are tiny: several threads would mostly wait for each other.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def seed_all(seed: int = 0) -> None:
    """Seed PyTorch's random numbers, as `torch.manual_seed` does, without touching absent GPUs.

    `torch.manual_seed` keeps a stack trace for each kind of GPU that is absent, which takes longer
    than many a probe.
    """
    if torch.cuda.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


@contextmanager
def same_conditions(seed: int = 0) -> Iterator[None]:
    """One thread and the random state of a seed; afterwards both are as they were before."""
    with one_thread(), torch.random.fork_rng(devices=[]):
        seed_all(seed)
        yield


# ---------------------------------------------------------------- the same numbers


def close(a: Tensor, b: Tensor, atol: float = 0.0, rtol: float = 0.0) -> Tensor:
    """Where two tensors have the same numbers: within atol, plus a share rtol of those of b.

    They are compared as float64, whatever their types; nan is the same as nan, and inf as inf.
    """
    return torch.isclose(a.double(), b.double(), rtol=rtol, atol=atol, equal_nan=True)


def same(a: Tensor, b: Tensor, atol: float = 0.0, rtol: float = 0.0) -> bool:
    """Tell whether two tensors have one shape and the same numbers, as `close` compares them."""
    if a.shape != b.shape:
        return False
    a, b = a.flatten(), b.to(a.device).flatten()
    # Most of what differs, such as the outputs of two attentions, differs at the end already.
    for x, y in zip(a[-1:].tolist(), b[-1:].tolist(), strict=True):
        if abs(x - y) > atol + rtol * abs(y):  # False for nan
            return False
    return bool(close(a, b, atol, rtol).all())


def tolerance(out: Tensor, dtype: torch.dtype | None = None) -> float:
    """How far rounding may take numbers of this size, computed in this type.

    1e-5 where the largest lies between 0.1 and 10, ten times that for each digit more and a tenth
    for each zero more. For float16 and bfloat16 it is how far it takes them on average.
    """
    dtype = dtype or out.dtype
    finite = out.double().nan_to_num(nan=0, posinf=0, neginf=0)
    if dtype.itemsize < 4:
        return HALF_PRECISION * torch.finfo(dtype).eps * (_root_mean_square(finite) or 1.0)
    largest = finite.abs().max().item() if out.numel() else 0.0
    digits = math.ceil(math.log10(largest or 1.0))
    return ATOL * 10.0 ** max(digits - 1, min(digits, 0))


def same_but_for_rounding(got: Tensor, expected: Tensor, dtype: torch.dtype) -> bool:
    """Tell whether two tensors have the same numbers but for rounding in this type."""
    if dtype.itemsize >= 4:
        return same(got, expected, tolerance(got))
    if got.shape != expected.shape or not torch.equal(got.isfinite(), expected.isfinite()):
        return False
    difference = (got.double() - expected.double()).nan_to_num(nan=0, posinf=0, neginf=0)
    return _root_mean_square(difference) <= tolerance(got, dtype)


def _root_mean_square(z: Tensor) -> float:
    return z.square().mean().sqrt().item()
