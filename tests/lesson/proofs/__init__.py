"""Proofs of what predictions and hints say: the right letter, and each number, found from scratch.

How to write a proof. What a text says in numbers, shapes and code is found by itself, in order
(`reading.py`); words are free. A proof is a function that gets the texts of a prediction
("question", a choice as "a", its explanation as "why a") or the hints of an exercise ("1", …). For
each text with a number or code it calls `says` with what has to stand there, computed: code is run
with the names that you give, then compared; what stands at `...` is handed back, to be used:
`part = texts["2"].says(..., (4, 2), 0, t=3, C=2)`. `gives` hands back all values, as those of a
question. What no proof has accounted for is an error.

For a prediction return whether each choice is true, by its letter, or by a word or two of its own
where no number tells it from the others. For hints return an answer that does what the last one
says: `written` makes a function of lines with the hints' code in them.
"""

import importlib
import json
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from feedback.grading import Exercise
from lesson.question import Prediction
from tests.lesson.proofs.reading import agrees, fails, items, run, same, written

__all__ = ["fails", "proves", "run", "run_cells", "same", "written"]

PROOFS: dict[str, Callable] = {}
NOTEBOOKS = Path(__file__).parents[3] / "notebooks"


def proves(id_: str) -> Callable[[Callable], Callable]:
    """Keep the function below as the proof of a prediction, or of the hints of an exercise."""

    def keep(proof: Callable) -> Callable:
        assert id_ not in PROOFS, f"{id_} has two proofs"
        PROOFS[id_] = proof
        return proof

    return keep


def load() -> dict[str, Callable]:
    """All proofs, from the files beside this one."""
    for module in pkgutil.iter_modules(__path__):
        if re.fullmatch(r"nb\d\d", module.name):
            importlib.import_module(f"{__name__}.{module.name}")
    return PROOFS


class Text:
    """A text, its numbers and code, and whether a proof has accounted for them."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self.items = items(text)
        self.unproved = [item.text for item in self.items]

    def says(self, *expected: Any, **names: Any) -> Any:
        """Compare numbers and code with what is expected; give what stands at each ``...``."""
        self.unproved = []
        found = [item.text for item in self.items]
        assert len(found) == len(expected), (
            f"{self.name} says {found}, but its proof knows {len(expected)}:\n  {self.text}"
        )
        for item, wanted in zip(self.items, expected, strict=True):
            assert agrees(item, wanted, **names), (
                f"{self.name} says {item.text!r}, but it is {wanted!r}:\n  {self.text}"
            )
        asked = [item.value for item, one in zip(self.items, expected, strict=True) if one is ...]
        return asked[0] if len(asked) == 1 else asked

    def gives(self) -> list[Any]:
        """The values of the numbers in the text, the sizes of its shapes, and its code."""
        self.unproved = []
        return [item.value for item in self.items]

    def quoted(self) -> list[str]:
        """The words in quotation marks, each once."""
        return list(dict.fromkeys(re.findall("“(.*?)”", self.text)))

    def after(self, words: str) -> list[str]:
        """The word after each place where these words stand: code that looks like a word."""
        found = re.findall(rf"\b{words} (\w+)", self.text)
        assert found, f"{self.name}: its proof needs the word after {words!r}:\n  {self.text}"
        return found


def texts_of(entry: Prediction | Exercise) -> dict[str, Text]:
    """The texts of a prediction or the hints of an exercise, by name."""
    if isinstance(entry, Exercise):
        texts = {str(n): hint for n, hint in enumerate(entry.hints, start=1)}
    else:
        texts = {"question": entry.question}
        for letter, choice in entry.choices.items():
            texts |= {letter: choice.text, f"why {letter}": choice.explanation}
    return {name: Text(f"{entry.id}, {name}", text) for name, text in texts.items()}


def prove(entry: Prediction | Exercise, proof: Callable) -> None:
    """Run a proof: an error where a text is wrong or unproved, or the key not what is true."""
    texts = texts_of(entry)
    torch.manual_seed(0)
    result = proof(texts)
    for text in texts.values():
        assert not text.unproved, f"{text.name}: no proof accounts for {text.unproved}"
    if isinstance(entry, Exercise):
        verdict = entry.check(result)
        assert verdict.status == "passed", f"{entry.id}, as the last hint says: {verdict.message}"
        return
    holds = {_letter(entry, texts, told): bool(true) for told, true in result.items()}
    assert holds.keys() == entry.choices.keys(), f"{entry.id}: a choice without a proof"
    true = "".join(letter for letter, one in sorted(holds.items()) if one)
    assert true == entry.answer, f"{entry.id}: the key is {entry.answer!r}, but {true!r} is true"


def _letter(entry: Prediction, texts: dict[str, Text], told: str) -> str:
    """The letter of the choice that a proof names: by its letter, or by words of its own."""
    if told not in entry.choices:
        letters = [letter for letter in entry.choices if told in texts[letter].text]
        assert len(letters) == 1, f"{entry.id}: its proof knows one choice by {told!r}: {letters}"
        return letters[0]
    values = [texts[letter].gives() for letter in entry.choices]
    assert texts[told].items and values.count(texts[told].gives()) == 1, (
        f"{entry.id}: no number tells choice {told} from the others: name it by a word of its own"
    )
    return told


def run_cells(notebook: str, *beginnings: str, **known: Any) -> dict[str, Any]:
    """What some code cells of a notebook define, each found by how it begins."""
    path = next(NOTEBOOKS.glob(f"{notebook}_*.ipynb"))
    cells = ["".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"]]
    for beginning in beginnings:
        (cell,) = (cell for cell in cells if cell.startswith(beginning))
        exec(compile(cell, f"{path.name}, {beginning}", "exec"), known)
    return known
