"""Numbers as the notebooks print them: rounded and aligned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attention_base.arguments import typed
from attention_base.numbers import (
    MOST_DECIMALS,
    align_columns,
    as_array,
    as_whole,
    texts,
)

MOST = 200  # numbers that `show` prints at once


@typed
def show(value: Any, label: str = "", *, labels: Sequence[str] = (), decimals: int = 2) -> None:
    """Print a number, a vector, a matrix or a stack of matrices, rounded and aligned.

    Parameters
    ----------
    value : number, tensor, array or nested lists, up to 3-D, up to 200 numbers
        3-D prints as sheets, each under its index.
    label : str
        A line to print first; before a single number it stands on the same line.
    labels : list of str
        A name for each column, printed above it.
    decimals : int
        Digits after the point; none when all numbers are whole.

    Raises
    ------
    TypeError, ValueError
        If `value` is not made of real numbers, is ragged, too deep or too long; if there are not as
        many labels as columns.

    Examples
    --------
    >>> show([[1.0, 0.0], [0.5, 0.5]], "weights")
    weights
    1.00     0
    0.50  0.50
    >>> show([8, 4], "scores of “it”", labels=["cat", "it"])
    scores of “it”
    cat   it
      8    4
    """
    array = as_array(value, "the values to show")
    as_whole(decimals, "decimals", 0, MOST_DECIMALS)
    if array.ndim > 3:
        raise ValueError(
            f"show prints up to 3 dimensions, got {array.ndim}: shape {array.shape}; "
            f"show a slice such as x[0]"
        )
    if array.size > MOST:
        raise ValueError(
            f"show prints up to {MOST} numbers, got {array.size}: shape {array.shape}; "
            f"show a slice such as x[0, :3]"
        )
    if labels and (array.ndim not in (1, 2) or len(labels) != array.shape[-1]):
        raise ValueError(
            f"labels must name each column, got {len(labels)} labels for the shape {array.shape}"
        )
    if array.ndim == 0:
        text = texts(array, decimals)
        print(f"{label.rstrip(':')}: {text}" if label else text)
        return
    if label:
        print(label)
    if array.size == 0:
        print(f"nothing in it: shape {array.shape}")
        return
    cells = texts(array, decimals)
    sheets = cells if array.ndim == 3 else [cells if array.ndim == 2 else [cells]]
    if labels:
        sheets = [[labels, *sheets[0]]]
    width = max(len(word) for sheet in sheets for row in sheet for word in row)
    for index, sheet in enumerate(sheets):
        if array.ndim == 3:
            print(f"[{index}]")
        print("\n".join(align_columns(sheet, width=width)))


def tried(compute: Any) -> str:
    """The shape of what is computed, or why PyTorch cannot compute it."""
    try:
        return str(tuple(compute().shape))
    except RuntimeError as error:
        return str(error)
