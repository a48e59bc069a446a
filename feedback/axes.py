"""What the axes of arguments and results are called: their sizes, and shapes in letters.

An exercise says ``axes={"x": "B T C", "W": "C d", "return": "B T d"}``: for each tensor one word
an axis, and for a list what its length is called. A number in front multiplies ("4C"), and "..." in
front stands for any axes. A whole number among the arguments whose name is one of the letters, such
as ``T``, is that size.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

# How one place along an axis is called.
NOUNS = {
    "B": "sequence",
    "T": "token",
    "C": "channel",
    "d": "channel",
    "R": "row",
    "S": "column",
    "n_head": "head",
    "n_kv_head": "head",
    "n_head·head_size": "channel",
}


def letters(spec: str) -> list[str]:
    """The words of a spec without "...": one for each axis.

    Examples
    --------
    >>> letters("... 4C d")
    ['4C', 'd']
    """
    return [word for word in spec.split() if word != "..."]


def split(word: str) -> tuple[int, str]:
    """A word as a factor and a letter: "4C" is 4 times C."""
    factor, letter = re.fullmatch(r"(\d*)([\w·]*)", word).groups()
    return int(factor or 1), letter


def all_letters(axes: Mapping[str, str]) -> list[str]:
    """Every letter once, in the order in which they appear."""
    return list(dict.fromkeys(split(word)[1] for spec in axes.values() for word in letters(spec)))


def sizes(axes: Mapping[str, str], names: Sequence[str], arguments: Sequence[Any]) -> dict:
    """The size that each letter has in a call."""
    found: dict[str, int] = {}
    for name, argument in zip(names, arguments, strict=False):
        if isinstance(argument, Tensor):
            words = letters(axes.get(name, ""))
            for word, n in zip(reversed(words), reversed(argument.shape), strict=False):
                factor, letter = split(word)
                found.setdefault(letter, n // factor)
        elif isinstance(argument, list) and len(words := letters(axes.get(name, ""))) == 1:
            found[words[0]] = len(argument)
        elif type(argument) is int:
            found[name] = argument
    order = [letter for letter in all_letters(axes) if letter in found]
    return {letter: found[letter] for letter in dict.fromkeys([*order, *found])}


def resized(
    axes: Mapping[str, str], names: Sequence[str], arguments: Sequence[Any], letter: str, size: int
) -> tuple:
    """The arguments with one letter of another size: cut, or continued by larger copies."""
    changed = []
    for name, argument in zip(names, arguments, strict=False):
        if isinstance(argument, Tensor):
            words = letters(axes.get(name, ""))
            for axis, word in zip(range(-1, -len(words) - 1, -1), reversed(words), strict=True):
                if split(word)[1] == letter and argument.dim() >= -axis:
                    argument = _of_length(argument, axis, split(word)[0] * size)
        elif isinstance(argument, list) and letters(axes.get(name, "")) == [letter]:
            argument = [argument[i % len(argument)] for i in range(size)]
        elif name == letter:
            argument = size
        changed.append(argument)
    return tuple(changed)


def _of_length(tensor: Tensor, axis: int, length: int) -> Tensor:
    """The tensor cut, or continued by its own parts times 1.1, 1.2, …, so that no two are alike."""
    places, old = torch.arange(length), tensor.shape[axis]
    longer = tensor.index_select(axis, places % old)
    if not tensor.is_floating_point():
        return longer
    factors = 1 + 0.1 * (places // old).to(tensor.dtype)
    return longer * factors.reshape(-1, *[1] * (-axis - 1))


def spelled(
    shapes: Sequence[Sequence[int]],
    known: Sequence[Mapping[str, int]],
    likely: Sequence[str] = (),
) -> str:
    """Write a shape in letters, where they fit in each of several calls; "" where none do.

    Parameters
    ----------
    shapes
        One shape for each call.
    known
        The sizes of the letters in each call.
    likely
        What the axes should be called, where there are as many.

    Examples
    --------
    >>> spelled([(3, 10), (2, 12)], [{"B": 3, "T": 5, "C": 2}, {"B": 2, "T": 3, "C": 4}])
    '(B, T·C)'
    """
    if len({len(shape) for shape in shapes}) != 1:
        return ""
    words = []
    likely = likely if len(likely) == len(shapes[0]) else [""] * len(shapes[0])
    for column, first in zip(zip(*shapes, strict=True), likely, strict=True):
        word = _name_of(column, known, first)
        if not word:
            return ""
        words.append(word)
    return f"({', '.join(words)}{',' if len(words) == 1 else ''})"


def _name_of(values: Sequence[int], known: Sequence[Mapping[str, int]], first: str) -> str:
    """What is so large in each call: a letter, one with a factor, a product, or a number."""
    common = [letter for letter in known[0] if all(letter in one for one in known)]
    fitting = [k for k in common if all(one[k] == n for one, n in zip(known, values, strict=True))]
    if first in fitting:
        return first
    if fitting and (len(known) > 1 or len(fitting) == 1):
        return fitting[0]
    if len(set(values)) == 1:
        return str(values[0])
    for letter in common:
        for add in (1, -1):
            if all(one[letter] + add == n for one, n in zip(known, values, strict=True)):
                return f"{letter} {'+' if add > 0 else '−'} 1"
        for factor in (2, 3, 4):
            if all(factor * one[letter] == n for one, n in zip(known, values, strict=True)):
                return f"{factor}·{letter}"
    for a, b in itertools.combinations_with_replacement(common, 2):
        if all(one[a] * one[b] == n for one, n in zip(known, values, strict=True)):
            return f"{a}·{b}" if a != b else f"{a}²"
    for a in common:
        if all(one[a] == 3 * n for one, n in zip(known, values, strict=True)):
            return f"{a}/3"
    return ""


def axis_of(spec: str, letter: str, dim: int) -> int | None:
    """Where a letter stands first, counted from the end; None where it does not."""
    words = letters(spec)
    if len(words) <= dim and letter in words:
        return words.index(letter) - len(words)
    return None


def noun(letter: str) -> str:
    """How one place along an axis is called: of T_q as of T.

    Examples
    --------
    >>> noun("T_q"), noun("n_head"), noun("V")
    ('token', 'head', 'part')
    """
    word = split(letter)[1]
    return NOUNS.get(word) or NOUNS.get(word.partition("_")[0], "part")
