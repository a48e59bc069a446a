"""Numbers as text: every way in which this project writes a number, and how it reads them.

Two machines may compute 0.58984995 and 0.58985005 from the same code. Printed with four decimals
these are 0.5898 and 0.5899, and a notebook that compares its outputs turns red for nothing. So
every number that a notebook shows goes through `number`, which rounds to few decimals and, under
``ATTENTION_STRICT=1``, refuses the few numbers that stand on the edge between two roundings.

Fixed decimals:

- `number`: 0.07, two decimals unless told otherwise. `texts`: a whole array, and no decimals where
  all is whole.
- `small`: two decimals, but never 0.00 for what is not 0: 3e-05.
- `narrow`: two decimals where there is room for three characters: .25, 1, .00.

Significant figures:

- `brief`: two figures, 0.0052 or 2.5e+05. `briefs`: a whole array.
- `told_apart`: as many figures as it takes to tell two numbers apart.

Whole numbers:

- `powers`: powers of ten as tick labels, 0.01 or 10⁻³.
- `listed`: positions as in a sentence, "0 to 3". `joined`: any words, "a, b and c".

Lines of text: `align_columns`, `wrap_text`.
"""

from __future__ import annotations

import math
import operator
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

TIE = 1e-9  # closer to a tie than this: an exact tie such as 1/8, which is exact everywhere
EDGE = 1e-6  # closer than this: another machine may fall on the other side
MOST_DECIMALS = 15  # a float has no more to tell
WIDTH = 80  # characters a line of printed text; JupyterLab breaks longer ones mid-word
HUGE = 1e6  # from here on 1.00e+06 reads better than 1000000.00

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
    decimals = as_whole(decimals, "decimals", 0, MOST_DECIMALS)
    if hasattr(value, "item"):
        array = as_array(value, "the number")
        value = array.item() if array.size == 1 else value
    if isinstance(value, int):  # True and False, too
        return str(value)
    if not isinstance(value, float):
        raise TypeError(f"number() writes one real number, got {described(value)}")
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


def texts(array: np.ndarray, decimals: int = 2) -> Any:
    """Every number of an array as text, in lists nested as the array is.

    Examples
    --------
    >>> texts(np.array([[1.0, 0.5], [0.25, 0.0]])), texts(np.array([3.0, 4.0]))
    ([['1.00', '0.50'], ['0.25', '0']], ['3', '4'])
    """
    return _texts(array.tolist(), decimals_for(array, decimals))


def _texts(values: Any, decimals: int) -> Any:
    if isinstance(values, list):
        return [_texts(part, decimals) for part in values]
    return number(values, decimals)


def decimals_for(array: np.ndarray, decimals: int = 2) -> int:
    """Digits that an array needs after the point: none when all its numbers are whole."""
    array = array.astype(float)
    finite = array[np.isfinite(array)]
    return decimals if np.any(np.abs(finite - finite.round()) > EDGE) else 0


def small(value: float) -> str:
    """Write a number in two decimals; one that would read 0.00 tells its size.

    Examples
    --------
    >>> small(0.125), small(-3.2e-5), small(0.0)
    ('0.13', '-3e-05', '0')
    """
    # Three decimals where the second could turn out otherwise on another machine.
    from_tie = abs(abs(value) * 100 % 1 - 0.5) / 100
    text = number(value, 3 if TIE < from_tie < 2 * EDGE else 2)
    return f"{value:.0e}" if text == "0.00" and value else text


def narrow(value: float) -> str:
    """Write a weight for a narrow cell: without the zero before the point, whole as 1 and 2.

    Examples
    --------
    >>> narrow(0.25), narrow(1.0), narrow(0.001), narrow(0.0)
    ('.25', '1', '.00', '0')
    """
    text = number(value)
    return text.removesuffix(".00") if value >= 1 else text.removeprefix("0") or text


def bracketed(text: str) -> str:
    """Put a negative number into brackets, to stand behind a sign: "(-2)"."""
    return f"({text})" if text.startswith("-") else text


def brief(value: float) -> str:
    """Write a number with two significant figures.

    Examples
    --------
    >>> [brief(value) for value in (9.04e-28, 0.00523, 0.0996, 2.6, 17.2, 9961, 247_000)]
    ['9.0e-28', '0.0052', '0.10', '2.6', '17', '1.0e+04', '2.5e+05']
    """
    value = float(value)
    if not math.isfinite(value) or value == 0:
        return number(value)
    exponent = math.floor(math.log10(abs(value)))
    figures = number(value / 10.0**exponent, 1)  # refuses a rounding that stands on the edge
    if abs(float(figures)) >= 10:
        exponent, figures = exponent + 1, figures.replace("10", "1")
    if not -4 <= exponent <= 3:
        return f"{figures}e{exponent:+03d}"
    return f"{float(figures) * 10.0**exponent:.{max(0, 1 - exponent)}f}"


def briefs(values: np.ndarray) -> list[str]:
    """Write each number with two significant figures, or all as whole numbers if they are whole.

    Examples
    --------
    >>> briefs(np.array([1.0, 250.0])), briefs(np.array([1e-9, 250.0]))
    (['1', '250'], ['1.0e-09', '250'])
    """
    # What is next to nothing is not a whole number here: a logarithmic axis tells it from 0.
    tiny = (values != 0) & (np.abs(values) < 0.5)
    if decimals_for(values) == 0 and not tiny.any():
        return [number(value, 0) for value in values.tolist()]
    return [brief(value) for value in values.tolist()]


def powers(exponents: Iterable[int]) -> list[str]:
    """Write powers of ten, all in one way: 0.01, 1, 1000; or 10⁻⁶, 1, 10³.

    Examples
    --------
    >>> powers([-4, -2, 0]), powers([-6, -3, 0])
    (['0.0001', '0.01', '1'], ['10⁻⁶', '10⁻³', '1'])
    """
    exponents = list(exponents)
    if all(-4 <= exponent <= 4 for exponent in exponents):
        return [f"{10.0**exponent:g}" for exponent in exponents]
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return ["10" + str(exponent).translate(raised) if exponent else "1" for exponent in exponents]


def told_apart(a: float, b: float) -> tuple[str, str]:
    """Write two numbers with as many digits as it takes to tell them apart, at least 4.

    Examples
    --------
    >>> told_apart(0.5, 0.50001)
    ('0.5', '0.50001')
    """
    written = ("", "")
    for digits in (4, 7, 12):
        written = tuple(
            f"{value + 0.0:.{digits}g}" if isinstance(value, float) else str(value)
            for value in (a, b)
        )
        if written[0] != written[1]:
            break
    return written


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
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def align_columns(cells: Sequence[Sequence[str]], *, width: int = 0) -> list[str]:
    """Rows of words as lines of text, columns aligned right, two spaces apart.

    `width` is the least width of a column. The first column may hold row labels.
    """
    widths = [max(width, *map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(word.rjust(w) for word, w in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def wrap_text(text: str, hanging: str = "") -> str:
    """Wrap each line by itself; a line that begins with a space (code) stays as it is."""
    return "\n".join(
        line
        if line.startswith(" ")
        else textwrap.fill(line, WIDTH, subsequent_indent=hanging, break_on_hyphens=False)
        for line in text.split("\n")
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
        raise TypeError(f"{what} must be real, got complex numbers; take .real, .imag or .abs()")
    if array.dtype.kind not in "biuf":
        kinds = int, float, np.number, np.bool_
        odd = next((leaf for leaf in _leaves(plain) if not isinstance(leaf, kinds)), plain)
        raise TypeError(
            f"{what} must be numbers in a tensor, an array or lists, got {described(odd)}"
        )
    return array


def as_whole(value: Any, what: str, low: int, high: float = math.inf) -> int:
    """Return a whole number from `low` to `high` as an int, or say what is wrong with it."""
    limits = f"from {low} to {high}" if high < math.inf else f"of at least {low}"
    whole = None
    if not isinstance(value, bool):
        with suppress(TypeError, RuntimeError):  # no whole number, or a tensor of several
            whole = operator.index(value)
    if whole is None:
        raise TypeError(f"{what} must be a whole number {limits}, got {described(value)}")
    if not low <= whole <= high:
        raise ValueError(f"{what} must be a whole number {limits}, got {whole}")
    return whole


def as_real(value: Any, what: str) -> float:
    """Return a finite number as a float, or say what is wrong with it."""
    found = value
    if hasattr(value, "detach") or isinstance(value, (np.ndarray, np.generic)):
        array = as_array(value, what)
        found = array.item() if array.size == 1 else None
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise TypeError(f"{what} must be a finite number, got {described(value)}")
    if not -sys.float_info.max <= found <= sys.float_info.max:
        raise ValueError(f"{what} must be a finite number, got {found}")
    return float(found)


def described(value: Any) -> str:
    """Say what something is: a tensor with its shape and type, or its class and its looks."""
    if value is None:
        return "None"
    if hasattr(type(value), "detach"):  # not the module torch
        if getattr(value, "is_nested", False):
            return "a nested tensor"
        sparse = "" if str(value.layout) == "torch.strided" else "sparse "
        where = " on the device 'meta', without numbers" * value.is_meta
        return f"a {sparse}tensor of shape {tuple(value.shape)} with {value.dtype}{where}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} with {value.dtype}"
    said = textwrap.shorten(repr(value), 40, placeholder=" …", break_on_hyphens=False)
    return f"the {type(value).__name__} {said}"


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
    if values.is_nested or values.is_quantized or str(values.layout) != "torch.strided":
        raise TypeError(
            f"{what} must be a plain tensor, not a sparse, nested or quantized one; "
            "convert with .to_dense(), torch.nested.to_padded_tensor(x, 0.0) or .dequantize()"
        )
    values = values.detach().cpu().resolve_conj().resolve_neg()
    narrow = str(values.dtype).startswith(("torch.bfloat", "torch.float8"))  # not in NumPy
    return (values.float() if narrow else values).numpy()
