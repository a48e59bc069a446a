"""What a text says in numbers and code, found without knowing its words."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unicodedata import numeric

import torch
import torch.nn.functional as F
from torch import nn

from helpers.attention import causal_mask
from tools.prose_numbers import NUMBER, RAISED, numbers

_INSIDE = r"[^()\[\]]*"  # of brackets, with other brackets in them
for _ in range(3):
    _INSIDE = rf"(?:[^()\[\]]|\({_INSIDE}\)|\[{_INSIDE}\])*"
_NAME = r"(?!(?:is|are|and|or|of|the|in|as|for)\b)[A-Za-z_]\w*"  # "the sign @ is" is no product
_RAISED = "[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+"
_PARTED = "[½⅓⅔¼¾⅛]"
_DIGITS = r"\d+(?:\.\d+)?(?:e-?\d+)?"
_TRAILER = rf"(?:\.[A-Za-z_]\w*|\({_INSIDE}\)|\[{_INSIDE}\])"  # .mT, (x), [b, t]
_OPERAND = rf"√?-?(?:{_NAME}|{_DIGITS}|{_PARTED}|\([^(),]*\)){_TRAILER}*(?:{_RAISED})?"
_OPERATOR = r"(?: (?:[-@*/+·×]|\*\*|to the power of) |·|\*\*|\^|(?<=[\d)])/)"
_CALCULATION = rf"{_OPERAND}(?:{_OPERATOR}{_OPERAND})+"
_SIZE = rf"(?:{_CALCULATION}|-?{_DIGITS}|\w+)"

# Not "one", which is a pronoun, too: "two" in its place is noticed all the same.
_WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9}
_WORDS |= {"ten": 10, "eleven": 11, "twelve": 12, "twice": 2, "double": 2, "doubled": 2}
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8}
_WORDS |= _PARTS | {"half": 1 / 2, "quarter": 1 / 4}  # the third, the eighth
_WORDS |= {f"{a} {part}": 1 / n for part, n in _PARTS.items() for a in ("a", "an", "one")}
_WORDS |= {"first axis": 0, "second axis": 1, "third axis": 2, "last axis": -1}
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))

# In this order: a shape is no calculation in brackets, and a calculation is more than a number.
_KINDS = {
    "code": r"`[^`]+`",
    "shape": rf"\({_SIZE}(?:, {_SIZE})+\)|\({_SIZE},\)|\d+(?: × \d+)+",
    "calculation": rf"{_CALCULATION}|√[\w.]*\w|\b\w+{_RAISED}|{_PARTED}|\be(?= =)",
    "call": rf"{_NAME}{_TRAILER}+|(?<!\S)\.{_NAME}{_TRAILER}*",
    "keyword": rf"{_NAME}=(?:-?{_DIGITS}|{_NAME}|…)",
    "index": rf"(?<!\w)\[{_INSIDE}\](?!\()",
    "notebook": r"\b0\d(?:\.\d)?\b(?!\.\d)",
    "number": rf"(?x:{NUMBER.pattern})|(?<!\w)-inf\b",
    "name": r"\b(?:[B-HJ-Z]|d|[A-Za-z]+\d+|\d+[A-Z]|[A-Za-z]\w*_\w+)\b",
    "word": rf"(?i:\b(?:{_WORD})\b)",
}
_FIND = re.compile("|".join(f"(?P<{kind}>{regex})" for kind, regex in _KINDS.items()), re.ASCII)


@dataclass(frozen=True)
class Item:
    """A number, a shape or code in a text; only decimals and powers of ten have a last place."""

    text: str
    kind: str
    value: Any
    place: int | None = None


def items(text: str) -> list[Item]:
    """All numbers and code of a text; a name such as W_O or T once."""
    found = []
    text = re.sub(r"`([-\d. ]+)`", r"\1", text)  # a row of numbers is no code
    for match in _FIND.finditer(text):
        item = _item(match[0].strip("`"), match.lastgroup)
        before = re.search(rf"(?<!\w){re.escape(item.text)}(?!\w)", text[: match.start()])
        if not (item.kind == "name" and before):
            found.append(item)
    return found


def _item(text: str, kind: str) -> Item:
    if NUMBER.fullmatch(text) and kind != "notebook":
        (number,) = numbers(text)
        exact = number.place == 0 or (number.value.is_integer() and "." not in text)
        value = int(number.value) if exact else number.value
        return Item(text, "number", value, None if exact else number.place)
    value = {"number": -math.inf, "word": _WORDS.get(text.lower())}.get(kind, text)
    if kind == "shape":
        sizes = re.split(", | × ", text.strip("()").rstrip(","))
        value = tuple(int(size) if size.isdecimal() else size for size in sizes)
    if kind == "calculation":
        given = _value(text, {"e": math.e, "inf": math.inf})
        value = given if isinstance(given, int | float) else text
    return Item(text, kind, value)


# ---------------------------------------------------------------- running

_NUMBERS = torch.Tensor | int | float
_KNOWN = {"torch": torch, "F": F, "nn": nn, "causal_mask": causal_mask}


def python(code: str) -> str:
    """Code as Python reads it: texts also write √d, a·b, e⁰, ⅓ and "to the power of"."""
    code = code.replace("·", "*").replace("^", "**").replace("to the power of", "**")
    code = re.sub(r"√(\w+(?:\.\d+)?)", r"((\1)**0.5)", code)
    code = re.sub(_RAISED, lambda raised: f"**({raised[0].translate(RAISED)})", code)
    return re.sub(_PARTED, lambda part: f"({numeric(part[0])})", code)


def run(code: str, **names: Any) -> Any:
    """The value of an expression in a text."""
    return eval(python(code), dict(_KNOWN), names)


def written(arguments: str, *lines: str, **known: Any) -> Callable:
    """The function that somebody writes by the hints: lines, and at the end what it returns."""
    *steps, result = map(python, lines)
    body = "".join(f"    {line}\n" for line in [*steps, f"return {result}"])
    exec(f"def answer({arguments}):\n{body}", scope := _KNOWN | known)
    return scope["answer"]


def fails(code: str, **names: Any) -> bool:
    """Whether PyTorch refuses to compute an expression."""
    try:
        run(code, **names)
    except RuntimeError:
        return True
    return False


def agrees(item: Item, expected: Any, **names: Any) -> bool:
    """Whether an item is what is expected, rounded as the text rounds it; code is run first.

    A text that is expected is compared as it is written, and ``...`` stands for anything.
    """
    if expected is ... or isinstance(expected, str):
        return expected is ... or item.text == expected
    if item.kind == "shape":
        sizes = [_value(size, names) for size in item.value]
        return isinstance(expected, tuple) and sizes == [_value(size, names) for size in expected]
    if isinstance(item.value, str):
        code = f"dict({item.value})" if item.kind == "keyword" else item.value
        return same(_value(code, names), expected)
    if item.place is not None and isinstance(expected, _NUMBERS):
        return abs(item.value - float(expected)) <= 0.5000001 * 10.0**item.place
    return same(item.value, expected, rtol=1e-6, atol=1e-8)


def together(wanted: list, shown: list, fits: Callable) -> bool:
    """Whether values stand side by side among others, each as `fits` says."""
    starts = range(len(shown) - len(wanted) + 1)
    return any(all(map(fits, wanted, shown[start:])) for start in starts)


def _value(code: Any, names: dict[str, Any]) -> Any:
    """What code gives, or the code itself where it has a name that is not given."""
    try:
        return run(code, **names) if isinstance(code, str) else code
    except ZeroDivisionError:
        return math.nan
    except (NameError, SyntaxError, TypeError):
        return code


def same(one: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-5) -> bool:
    """Whether two values are equal, up to the rounding of a calculation."""
    if isinstance(one, _NUMBERS) and isinstance(other, _NUMBERS):
        one, other = torch.as_tensor(one).double(), torch.as_tensor(other).double()
        if one.numel() == other.numel() == 1:
            one = one.reshape(other.shape)
        return one.shape == other.shape and torch.allclose(one, other, rtol, atol)
    return one == other
