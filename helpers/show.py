"""Numbers as text, the same on every machine: two decimals, aligned, no brackets.

Two machines may compute 0.58984995 and 0.58985005 from the same code. Printed with four decimals
these are 0.5898 and 0.5899, and a notebook that compares its outputs turns red for nothing. So
every number that a notebook prints goes through `number`, which rounds to few decimals and, under
``ATTENTION_STRICT=1``, refuses the few numbers that stand on the edge between two roundings.
"""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

TIE = 1e-9  # closer to a tie than this: an exact tie such as 1/8, which is exact everywhere
EDGE = 1e-6  # closer than this: another machine may fall on the other side
HUGE = 1e6  # from here on 1.00e+06 reads better than 1000000.00
MOST = 200  # numbers that `show` prints at once
WIDTH = 80  # characters a line of printed text; JupyterLab breaks longer ones mid-word

_any_rounding = False


@contextmanager
def any_rounding() -> Iterator[None]:
    """Switch the strict check off for a while: a live picture must take any slider value."""
    global _any_rounding
    before, _any_rounding = _any_rounding, True
    try:
        yield
    finally:
        _any_rounding = before


def number(value: Any, decimals: int = 2) -> str:
    """One number as text.

    Ties round away from zero (0.125 -> 0.13). Zero is "0": no weight at all, not a small one
    ("0.00"). Less than a millionth counts as zero, since machines differ in the last bits.
    Integers and booleans keep their looks.

    Parameters
    ----------
    value : int, float, bool, or a tensor or array with one element
    decimals : int
        Digits after the point, for floats only.

    Raises
    ------
    TypeError
        If `value` is not a real number.
    ValueError
        Under ``ATTENTION_STRICT=1``, if the rounding could flip on another machine.
    """
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, int):  # True and False, too
        return str(value)
    if not isinstance(value, float):
        raise TypeError(f"number() writes one real number, got {type(value).__name__} {value!r}")
    if not math.isfinite(value):
        return str(value)  # nan, inf, -inf
    if abs(value) < min(EDGE, 10.0**-decimals / 2):
        return "0"
    if abs(value) >= HUGE:
        return f"{value:.{decimals}e}"
    if not _any_rounding and os.environ.get("ATTENTION_STRICT") == "1":
        _refuse_edge(value, decimals)
    text = f"{value + math.copysign(TIE, value):.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else text


def _refuse_edge(value: float, decimals: int) -> None:
    unit = 10.0**-decimals
    tie = math.copysign((math.floor(abs(value) / unit) + 0.5) * unit, value)
    if TIE < abs(value - tie) < EDGE:
        raise ValueError(
            f"{value!r} lies only {abs(value - tie):.0e} from {tie:.{decimals + 1}f}, so rounded "
            f"to {decimals} decimals it may differ on another machine (keep {EDGE:.0e} away). "
            f"Print fewer digits, or assert the number instead of printing it."
        )


def as_array(values: Any, what: str = "the values") -> np.ndarray:
    """A NumPy copy of a tensor, an array or (nested) lists of numbers; the input stays as it was.

    Tensors are detached and brought to the CPU. Integers and booleans keep their type.

    Raises
    ------
    TypeError
        If there is something else than real numbers in it.
    ValueError
        If lists are ragged, or a tensor has a shape but no numbers (device "meta").
    """
    plain = _plain(values, what)
    try:
        array = np.array(plain)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(
            f"{what} must be rectangular, but the rows have different lengths; "
            f"pad or cut them to one length"
        ) from None
    if np.iscomplexobj(array):
        raise TypeError(f"{what} must be real, got complex numbers; show .real, .imag or .abs()")
    if array.dtype.kind not in "biuf":
        kinds = int, float, np.number, np.bool_
        odd = next((leaf for leaf in _leaves(plain) if not isinstance(leaf, kinds)), plain)
        told = textwrap.shorten(repr(odd), 40, placeholder=" …")
        raise TypeError(
            f"{what} must be numbers in a tensor, an array or lists, got the "
            f"{type(odd).__name__} {told}"
        )
    return array


def _leaves(values: Any) -> Iterator[Any]:
    """What stands in nested lists or an array, one after the other."""
    if isinstance(values, np.ndarray):
        values = values.ravel().tolist()
    if not isinstance(values, (list, tuple)):
        yield values
        return
    for value in values:
        yield from _leaves(value)


def _plain(values: Any, what: str) -> Any:
    if isinstance(values, (list, tuple)):
        return [_plain(value, what) for value in values]
    if not hasattr(values, "detach"):
        return values
    if values.is_meta:
        raise ValueError(
            f"{what} lie on the device 'meta': a shape without numbers; make them on 'cpu'"
        )
    values = values.detach().cpu()
    return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()


def needed(array: np.ndarray, decimals: int) -> int:
    """Digits that an array needs after the point: none when all its numbers are whole."""
    array = array.astype(float)
    finite = array[np.isfinite(array)]
    return decimals if np.any(np.abs(finite - finite.round()) > EDGE) else 0


def texts(array: np.ndarray, decimals: int = 2) -> list:
    """Every number of an array as text, in lists nested as the array is."""
    return _texts(array.tolist(), needed(array, decimals))


def _texts(values: Any, decimals: int) -> Any:
    if isinstance(values, list):
        return [_texts(part, decimals) for part in values]
    return number(values, decimals)


def lines(cells: Sequence[Sequence[str]], *, width: int = 0) -> list[str]:
    """Rows of words as lines of text, columns aligned right, two spaces apart.

    `width` is the least width of a column. The first column may hold row labels.
    """
    widths = [max(width, *map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(word.rjust(w) for word, w in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def wrap(text: str, hanging: str = "") -> str:
    """Wrap each line by itself; a line that begins with a space (code) stays as it is."""
    return "\n".join(
        line
        if line.startswith(" ")
        else textwrap.fill(line, WIDTH, subsequent_indent=hanging, break_on_hyphens=False)
        for line in text.split("\n")
    )


def show(value: Any, label: str = "", *, decimals: int = 2) -> None:
    """Print a number, a vector, a matrix or a stack of matrices, rounded and aligned.

    Parameters
    ----------
    value : number, tensor, array or nested lists, up to 3-D, up to 200 numbers
        3-D prints as sheets, each under its index.
    label : str
        A line to print first; before a single number it stands on the same line.
    decimals : int
        Digits after the point; none when all numbers are whole.

    Raises
    ------
    TypeError, ValueError
        If `value` is not made of real numbers, is ragged, too deep or too long.

    Examples
    --------
    >>> show([[1.0, 0.0], [0.5, 0.5]], "weights")
    weights
    1.00     0
    0.50  0.50
    """
    array = as_array(value, "the values to show")
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
    width = max(len(word) for sheet in sheets for row in sheet for word in row)
    for index, sheet in enumerate(sheets):
        if array.ndim == 3:
            print(f"[{index}]")
        print("\n".join(lines(sheet, width=width)))


def listed(places: Sequence[int]) -> str:
    """Whole numbers in words: 0, 1, 2, 3 is "0 to 3", 0, 2, 3 is "0, 2 and 3".

    Examples
    --------
    >>> listed([0, 1, 2, 3]), listed([0, 2, 3]), listed([7])
    ('0 to 3', '0, 2 and 3', '7')
    """
    places = list(places)
    if len(places) > 2 and places[-1] - places[0] == len(places) - 1:
        return f"{places[0]} to {places[-1]}"
    if len(places) > 6:
        return ", ".join(map(str, places[:5])) + f" and {len(places) - 5} more"
    return joined([str(place) for place in places])


def joined(words: Sequence[str]) -> str:
    """Words as in a sentence: "a, b and c"."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
