"""Proofs of what predictions and hints say: the right letter and each number, found from scratch.

A proof reads a text with a pattern. Its words stand in the pattern, so that edited words fail
until somebody has looked at the proof again; its numbers, shapes and code are holes, whose values
come out of the text and are computed with.
"""

import hashlib
import importlib
import json
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from helpers.attention import causal_mask
from helpers.lesson.grading import Exercise
from helpers.lesson.question import Prediction

PROOFS: dict[str, Callable] = {}
LOOKED_AT: dict[str, str] = {}  # the fingerprint of the texts that each proof was written for
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def proves(id_: str, looked_at: str) -> Callable[[Callable], Callable]:
    """Keep the function below as the proof of a prediction, or of the hints of an exercise.

    `looked_at` is the `fingerprint` of the texts: who edits one looks at its proof, too.

    The proof of a prediction gets its texts by name: "question", a choice as "a", its explanation
    as "why a". It returns for each letter whether the choice is true. The proof of hints gets them
    as "1", "2", …, and returns an answer that does what the last hint says.
    """

    def keep(proof: Callable) -> Callable:
        assert id_ not in PROOFS, f"{id_} has two proofs"
        PROOFS[id_], LOOKED_AT[id_] = proof, looked_at
        return proof

    return keep


def load() -> dict[str, Callable]:
    """All proofs, from the files beside this one."""
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("nb"):
            importlib.import_module(f"{__name__}.{module.name}")
    return PROOFS


# ---------------------------------------------------------------- reading

# What has to be proved, and not only read: digits, fractions, code, and the letters of axes.
MARKS = re.compile(r"[\d⅓½√⁰¹²³`]|\w[\[(]|\w=\w|\w\.\w|\w_\w| [@*/] |\b[BTCLRWd]\b")

_NUMBER = r"[-−]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+(?:\.\d+)?)[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]*"
_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8}
_WORDS |= {"a half": 1 / 2, "an eighth": 1 / 8}
_HOLES = {
    "{}": _NUMBER,
    "{numbers}": rf"{_NUMBER}(?:(?:, | and | ){_NUMBER})*",
    "{shape}": r"\([^()]*\)",
    "{word}": "|".join(_WORDS),
    "{code}": ".+?",
}


def number(text: str) -> int | float:
    """The value of a written number: "-0.3", "100,000", "10⁻⁸"."""
    digits, power = re.fullmatch(r"(.*?)([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]*)", text).groups()
    value = float(digits.replace("−", "-").replace(",", ""))
    if power:
        value **= int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")))
    return int(value) if value.is_integer() else value


def _size(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _value(hole: str, text: str) -> Any:
    match hole:
        case "{}":
            return number(text)
        case "{numbers}":
            return [number(one) for one in re.findall(_NUMBER, text)]
        case "{shape}":
            return tuple(_size(one.strip()) for one in text[1:-1].split(",") if one.strip())
        case "{word}":
            return _WORDS[text]
    return text


class Text:
    """A text, and which parts of it a proof has read."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text, self.unread = name, text, text

    def read(self, pattern: str) -> Any:
        """The values in the holes of a pattern that is the whole text."""
        return self._match(pattern, "^{}$")

    def find(self, pattern: str) -> Any:
        """The values in the holes of a pattern that stands somewhere in the text."""
        return self._match(pattern, "{}")

    def _match(self, pattern: str, frame: str) -> Any:
        pieces = re.split(r"(\{\w*\})", pattern)
        holes = pieces[1::2]
        pieces[::2] = map(re.escape, pieces[::2])
        pieces[1::2] = (f"({_HOLES[hole]})" for hole in holes)
        found = re.search(frame.replace("{}", "".join(pieces)), self.text)
        assert found, (
            f"{self.name} reads now:\n  {self.text}\nIts proof expects:\n  {pattern}\n"
            "Is what it says still true? Then change the pattern in the proof."
        )
        start, end = found.span()
        self.unread = self.unread[:start] + "\0" * (end - start) + self.unread[end:]
        values = tuple(map(_value, holes, found.groups()))
        return values[0] if len(values) == 1 else values

    def unproved(self) -> list[str]:
        """The sentences with a number or code that no proof has read."""
        if MARKS.search(self.unread):
            return [part for part in self.unread.split("\0") if MARKS.search(part)]
        return []


def run(code: str, **names: Any) -> Any:
    """The value of an expression in a text."""
    return eval(code, {"torch": torch, "F": F, "causal_mask": causal_mask}, names)


def run_cells(notebook: str, *beginnings: str, **known: Any) -> dict[str, Any]:
    """What some code cells of a notebook define, each found by how it begins."""
    path = next(NOTEBOOKS.glob(f"{notebook}_*.ipynb"))
    cells = ["".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"]]
    defined = known
    for beginning in beginnings:
        (cell,) = (cell for cell in cells if cell.startswith(beginning))
        exec(compile(cell, f"{path.name}, {beginning}", "exec"), defined)
    return defined


def rounds_to(value: Any, said: float, digits: int = 2) -> bool:
    """Whether a value, written with so many decimals, is the number that a text says."""
    return round(float(value), digits) == said


# ---------------------------------------------------------------- judging


def texts_of(entry: Prediction | Exercise) -> dict[str, Text]:
    """The texts of a prediction or the hints of an exercise, by name."""
    if isinstance(entry, Exercise):
        texts = {str(n): hint for n, hint in enumerate(entry.hints, start=1)}
    else:
        texts = {"question": entry.question}
        for letter, choice in entry.choices.items():
            texts |= {letter: choice.text, f"why {letter}": choice.explanation}
    return {name: Text(f"{entry.id}, {name}", text) for name, text in texts.items()}


def fingerprint(entry: Prediction | Exercise) -> str:
    """Six letters that change with any text of an entry."""
    texts = "\n".join(text.text for text in texts_of(entry).values())
    return hashlib.sha256(texts.encode()).hexdigest()[:6]


def prove(entry: Prediction | Exercise, proof: Callable) -> None:
    """Run a proof.

    Raises
    ------
    AssertionError
        When a text says what is not so, when a number or code in it was not read, or when the key
        is not the one true choice.
    """
    texts = texts_of(entry)
    result = proof(texts)
    for text in texts.values():
        unproved = text.unproved()
        assert not unproved, f"{text.name}: no proof has read {unproved}"
    if isinstance(entry, Exercise):
        verdict = entry.check(result)
        assert verdict.status == "passed", f"{entry.id}, as the last hint says: {verdict.message}"
        return
    for letter in entry.choices:
        text = texts[letter]
        assert set(text.unread) == {"\0"}, f"{text.name}: its proof must read the whole choice"
    assert result.keys() == entry.choices.keys(), f"{entry.id}: a choice without a proof"
    true = "".join(letter for letter, holds in result.items() if holds)
    assert true == entry.answer, f"{entry.id}: the key is {entry.answer!r}, but {true!r} is true"
