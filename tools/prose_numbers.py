"""Find the numbers in a text, and work out those that a mark derives.

A mark is an HTML comment beside its sentence, which no reader sees. There are two kinds:

- ``<!-- 0.73 = 1 - 0.27 -->``: a number as the text writes it, and the sum that gives it. The
  numbers in the sum stand in a cell nearby, or have a mark of their own.
- ``<!-- -95, -88: read off the live picture -->``: numbers that no cell computes, and why.

Several in one comment are parted by ``;``.
"""

import ast
import math
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
NUMBER = re.compile(
    r"""(?<![\w.])
    (?P<sign>(?<![\w.)\]²³⁴])[-−])?       # -3, but not 8-3
    (?P<digits>\d+(?:,\d{3})*(?:\.\d+)?)  # 0.50, 22,000
    (?:e(?P<e>[-+]?\d+)                   # 3e-11
      |\s?[·×]\s?10(?P<times>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)      # 3 · 10⁻¹¹
      |(?P<power>⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]+|(?<=(?<!\d)10)[⁰¹²³⁴⁵⁶⁷⁸⁹]+)  # 10⁻⁶, 10⁶, but not 4²
    )?
    (?P<percent>\s?%)?
    (?![\w⁻⁰¹²³⁴⁵⁶⁷⁸⁹]|\.\d)""",
    re.VERBOSE,
)
MARK = re.compile(r"<!--(.*?)-->", re.S)
# No statement: comments, addresses, tags, and code (`dim=-1`, while `0.88 0.12` is a result, whose
# backtick does not begin the code that ends at the next one).
NO_TEXT = re.compile(
    r"<!--.*?-->|(?<=\])\([^)]*\)|https?://\S+|</?[a-zA-Z][^>]*>"
    r"|`(?=[^`\n]*[a-zA-Z][^`\n]*`)(?=(?:[^`\n]*`[^`\n]*`)*[^`\n]*`[^`\n]*$)[^`\n]*`",
    re.S | re.M,
)
# An ordinal: "section 4.1", "GPT-22", and "Exercise 03.1" or "03.1" itself.
ORDINAL = re.compile(r"(\b(sections?|equations?|exercises?|chapters?|versions?) +|[a-z]-)$", re.I)
EXERCISE = re.compile(r"0\d\.\d")
# What a whole number may be without a statement: a year, a time, a format, a name.
YEAR = re.compile(r"(19|20)\d\d")
UNIT = re.compile(r"(?:(?:, \d+)* and \d+)?[  -](minutes|min|bits?)\b")
# What may stand before the = of a sum, and what Python calls it: 4 · 32² + 32 = 4128.
SUM = re.compile(
    r"(?<![\w.,)²³+·×/=−-])(?<![+·×/=−-] )([(\d][-−+·×/()\d.,²³ ]*[\d)²³]) = (?=[-−\d])"
)
AS_PYTHON = str.maketrans({"·": "*", "×": "*", "−": "-", "²": "**2", "³": "**3", ",": ""})


@dataclass(frozen=True)
class Number:
    """A number as a text writes it, its value, and its last place: -2 where it has hundredths."""

    text: str
    value: float
    place: int

    def __abs__(self) -> "Number":
        return Number(self.text, abs(self.value), self.place)

    def shows(self, value: float) -> bool:
        """Whether this is what ``value`` reads when it is rounded to this last place."""
        slack = 1e-9 * abs(value)  # 0.125 may read 0.12 or 0.13
        return abs(self.value - value) <= 0.5 * 10.0**self.place + slack

    def stands_for(self, other: "Number") -> bool:
        """Whether this is the other number, or the other one rounded to two or more decimals."""
        if math.isclose(self.value, other.value, rel_tol=1e-9):
            return True
        return other.place < self.place <= -2 and self.shows(other.value)


def numbers(text: str) -> list[Number]:
    """All numbers of a text."""
    return [_number(match) for match in NUMBER.finditer(text)]


def claims(text: str) -> list[Number]:
    """The numbers that a sentence has to account for: decimals, signed, %, powers of ten."""
    return [
        _number(match)
        for match in NUMBER.finditer(text)
        if (
            "." in match["digits"]
            or any(match[g] for g in ("sign", "e", "times", "power", "percent"))
        )
        and not EXERCISE.fullmatch(match[0])
        and not ORDINAL.search(text[: match.start()])
    ]


def wholes(text: str) -> list[Number]:
    """The other numbers that a sentence has to account for: those from 10, or alone in a table."""
    return [
        _number(match)
        for match in NUMBER.finditer(text)
        if match[0] == match["digits"]
        and match[0].replace(",", "").isdecimal()
        and (float(match[0].replace(",", "")) >= 10 or _fills_table_cell(match))
        and not YEAR.fullmatch(match[0])
        and not UNIT.match(text, match.end())
        and not ORDINAL.search(text[: match.start()])
    ]


def rows(text: str) -> list[list[Number]]:
    """The numbers that stand in a row, as "0 1 1", of three or more; also pairs in brackets."""
    found: list[list[re.Match]] = []
    for match in NUMBER.finditer(text):
        if found and text[found[-1][-1].end() : match.start()] in (" ", ", "):
            found[-1].append(match)
        else:
            found.append([match])
    return [
        list(map(_number, row))
        for row in found
        if len(row) >= 3
        or (
            len(row) == 2
            and text[: row[0].start()].endswith("(")
            and text[row[1].end() :].startswith(")")
        )
    ]


def stand_in_a_row(row: list[Number], numbers: list[Number]) -> bool:
    """Whether these numbers stand in this order, one after the other, among the others."""
    return any(
        all(map(Number.stands_for, row, numbers[start:]))
        for start in range(len(numbers) - len(row) + 1)
    )


def _fills_table_cell(match: re.Match) -> bool:
    before, after = match.string[: match.start()], match.string[match.end() :]
    return before.rstrip().endswith("|") and after.lstrip().startswith("|")


def _number(match: re.Match) -> Number:
    digits = match["digits"].replace(",", "")
    value, place = Decimal(digits), -len(digits.partition(".")[2])
    exponent = int(match["e"] or (match["times"] or "").translate(RAISED) or 0)
    if match["power"]:
        value = value ** int(match["power"].translate(RAISED))
        place += value.adjusted()
    if match["percent"]:
        exponent -= 2
    if match["sign"]:
        value = -value
    return Number(match[0], float(value.scaleb(exponent)), place + exponent)


# ---------------------------------------------------------------- marks


@dataclass(frozen=True)
class Mark:
    """One ``numbers = sum`` or ``numbers: reason`` of a comment."""

    left: str
    right: str
    is_derived: bool

    @property
    def accounted(self) -> list[Number]:
        """The numbers that it accounts for: those on its left."""
        return numbers(self.left)

    @property
    def supposed(self) -> list[Number]:
        """The numbers that its sum begins with."""
        return numbers(self.right) if self.is_derived else []

    def fault(self) -> str | None:
        """What is wrong with it, in words."""
        if not self.is_derived:
            return None if re.search(r"[a-z]{2,} +[a-z]+", self.right) else "gives no reason"
        if NUMBER.fullmatch(self.right):
            return "derives nothing: write the sum that gives it"
        try:
            value = worked_out(self.right)
        except ValueError as error:
            return str(error)
        wrong = [number.text for number in self.accounted if not number.shows(value)]
        return f"comes to {value:.5g}" if wrong else None


def marks(text: str) -> Iterator[Mark]:
    """All marks of a text; a comment without ``=`` or ``:`` is none."""
    for comment in MARK.findall(text):
        for part in comment.split(";"):
            if match := re.match(r"([^=:]*)([=:])(.*)", part, re.S):
                yield Mark(match[1].strip(), match[3].strip(), match[2] == "=")


def sums(text: str) -> Iterator[Mark]:
    """The sums that a text itself states, as "2 · 4 = 8"."""
    for match in SUM.finditer(text):
        left, right = match[1].translate(AS_PYTHON), NUMBER.match(text, match.end())
        if right and not left.replace(".", "").isdecimal():
            yield Mark(right[0], left, is_derived=True)


def sentences(text: str) -> list[str]:
    """The sentences and list items of a text, without what is no text."""
    return re.split(r"(?<=[.!?])\s+|\n", NO_TEXT.sub(" ", text))


OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
FUNCTIONS = {"sqrt": math.sqrt, "exp": math.exp, "log": math.log, "log2": math.log2, "round": round}


class NoSum(Exception):
    """Something in a sum that is neither number, operator nor function."""


def worked_out(expression: str) -> float:
    """Give the value of a sum: numbers, ``+ - * / **``, sqrt, exp, log, log2, round.

    Raises
    ------
    ValueError
        In words, where it is anything else, or cannot be computed.
    """
    try:
        return float(_value(ast.parse(expression, mode="eval").body))
    except SyntaxError:
        raise ValueError(f"{expression!r} is no sum") from None
    except NoSum as error:
        raise ValueError(str(error)) from None
    except (ArithmeticError, TypeError, ValueError) as error:  # 1 / 0, sqrt(1, 2), log(0)
        raise ValueError(f"{expression!r} cannot be worked out: {error}") from None


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left), _value(right))
        case ast.Call(func=ast.Name(id=name), args=[*arguments], keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*map(_value, arguments))
    raise NoSum(f"{ast.unparse(node)!r} is no part of a sum")
