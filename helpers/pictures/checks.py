"""What pictures refuse: arguments that cannot be drawn, with what to do about it."""

from __future__ import annotations

from collections.abc import Set
from contextlib import suppress
from typing import Any

import numpy as np

from attention_base.numbers import as_array, described


def as_matrix(matrix: Any, what: str) -> np.ndarray:
    """Copy a matrix (n_row, n_col) to NumPy, or say what is wrong with it."""
    values = as_array(matrix, what)
    if values.ndim != 2:
        remedy = {
            1: "write v[None, :] to show a vector as one row",
            3: "pick one, as in x[0], or show all with heatmaps",
        }
        raise ValueError(
            f"{what} must be 2-D (rows, columns), got shape {values.shape}; "
            f"{remedy.get(values.ndim, 'pick one matrix by indexing')}"
        )
    if values.size == 0:
        raise ValueError(
            f"{what} must have at least one row and one column, got shape {values.shape}"
        )
    return values


def as_mask(mask: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Copy a mask of that shape to NumPy, True = may attend; None lets everything through."""
    if mask is None:
        return np.ones(shape, dtype=bool)
    may = as_array(mask, what)
    if may.dtype != bool:
        raise TypeError(f"{what} must be bool, True = may attend, got {may.dtype}; write mask != 0")
    if may.shape != shape:
        remedy = f"; make one, as in causal_mask{shape}" if len(shape) == 2 else ""
        if may.shape[-len(shape) :] == shape:
            remedy = f"; pick one of its sheets, as in mask{'[0]' * (may.ndim - len(shape))}"
        elif _fits(may.shape, shape):
            remedy = f"; expand it first, as in mask.expand{shape}"
        raise ValueError(
            f"{what} must have the shape of the matrix {shape}, got {may.shape}{remedy}"
        )
    return may


def as_names(names: Any, n: int, what: str, of: str) -> list[str]:
    """Make names of n things from a sequence such as `words`, or 0, 1, 2, … from None."""
    names = [str(name) for name in (range(n) if names is None else as_list(names, what))]
    if len(names) != n:
        one = what.removesuffix("s")
        raise ValueError(f"{what} needs one {one} for each of the {n} {of}, got {len(names)}")
    return names


def as_list(values: Any, what: str) -> list[Any]:
    """Make a list of what has an order and is no text, or say what is wrong with it."""
    if not isinstance(values, (str, Set)):
        with suppress(TypeError, RuntimeError):  # what has no parts to go through
            return list(values)
    raise TypeError(f"{what} must be a list, got {described(values)}")


def as_text(text: Any, what: str) -> str:
    """Return a text as it is, or say that it is none."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a text, got {described(text)}; leave it out for none")
    return text


def as_switch(on: Any, what: str) -> bool:
    """Return True or False as it is, or say that it is neither."""
    if not isinstance(on, bool):
        raise TypeError(f"{what} must be True or False, got {described(on)}")
    return on


def is_whole(value: Any, low: int, high: float) -> bool:
    """Whether a value is a whole number from low to high, and not True or False."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _fits(small: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether broadcasting stretches the one shape to the other."""
    try:
        return np.broadcast_shapes(small, shape) == shape
    except ValueError:
        return False
