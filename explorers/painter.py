"""Notebook 11: a head that is written by choosing what stands in each block of its scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import ipywidgets as widgets
import numpy as np
import torch
from torch import Tensor

from attention_base.numbers import joined, narrow, texts
from explorers.explorer import Explorer, dropdown, in_a_row, sentences, slider
from explorers.quilt import Part, quilt
from helpers.circuits import RULES, one_hot_tokens, score_from_blocks, written_weights
from helpers.circuits.by_hand import SHARPNESS
from helpers.circuits.rules import LETTERS, LONGEST, N_WORD, VOWELS
from helpers.pictures.checks import as_text
from helpers.pictures.colours import fills, paint
from helpers.pictures.table import Cell, Table, side_by_side

V = len(LETTERS)
STEP = 0.5  # of a ramp, from one position or letter to the next
NO_RULE = "no rule"
# What one head of this alphabet can be written for.
AIMS = [name for name, rule in RULES.items() if rule.first is None and rule.letters == LETTERS]

# ---------------------------------------------------------------- strokes


def _zeros(block: tuple[str, str]) -> Tensor:
    return torch.zeros(*(V if part == "letter" else LONGEST for part in block))


def _row_for_all(block: tuple[str, str], row: Tensor) -> Tensor:
    """Give every query the same scores: a stroke that looks at the key alone."""
    return row.expand_as(_zeros(block))


def _vowels_to_consonants() -> Tensor:
    vowel = torch.tensor([letter in VOWELS for letter in LETTERS])
    consonant = torch.tensor([letter not in VOWELS + "-" for letter in LETTERS])
    return torch.outer(vowel, consonant).float()


LETTER_LETTER = "letter", "letter"
LETTER_POSITION = "letter", "position"
POSITION_LETTER = "position", "letter"
POSITION_POSITION = "position", "position"
SEPARATOR = torch.eye(V)[LETTERS.index("-")]
SIZE_OF_LETTER = STEP * torch.tensor([float(sorted(LETTERS).index(letter)) for letter in LETTERS])
FIRST, LATER = torch.eye(LONGEST)[0], STEP * torch.arange(float(LONGEST))
NOTHING, ITS_COLUMN = "nothing", "column “-”"
# (part of the query, part of the key) -> what can stand in this block of M, at strength 1.
STROKES = {
    LETTER_LETTER: {
        NOTHING: _zeros(LETTER_LETTER),
        "same letter": torch.eye(V),
        ITS_COLUMN: _row_for_all(LETTER_LETTER, SEPARATOR),
        "larger letter is more": _row_for_all(LETTER_LETTER, SIZE_OF_LETTER),
        "vowel to consonants": _vowels_to_consonants(),
    },
    LETTER_POSITION: {
        NOTHING: _zeros(LETTER_POSITION),
        "column 0": _row_for_all(LETTER_POSITION, FIRST),
        "later is more": _row_for_all(LETTER_POSITION, LATER),
    },
    POSITION_LETTER: {
        NOTHING: _zeros(POSITION_LETTER),
        ITS_COLUMN: _row_for_all(POSITION_LETTER, SEPARATOR),
    },
    POSITION_POSITION: {
        NOTHING: _zeros(POSITION_POSITION),
        "itself": torch.eye(LONGEST),
        "one back": torch.ones(LONGEST - 1).diag(-1),
        "one ahead": torch.ones(LONGEST - 1).diag(1),  # "one back", transposed by mistake
        "column 0": _row_for_all(POSITION_POSITION, FIRST),
        "later is more": _row_for_all(POSITION_POSITION, LATER),
    },
}
NAMES = {block: " × ".join(block) for block in STROKES}


def strength_of(name: str) -> str:
    """The name of the slider that belongs to the block with this name."""
    return f"strength of {name}"


# ---------------------------------------------------------------- the explorer


def explore_painter(word: str = "cab-ad", rule: str | None = None) -> Explorer:
    """Paint the scores of a head, block by block; see whom each letter of a word attends to.

    Parameters
    ----------
    word
        1 to 12 of the letters "abcdef-".
    rule
        The name of a rule to aim at: of one layer, and of words of these letters.

    Raises
    ------
    TypeError
        When one of them is no text.
    ValueError
        When the word is empty, too long, or has other letters; when there is no such rule.
    """
    try:
        one_hot_tokens(as_text(word, "word"), LETTERS, LONGEST)
    except ValueError as error:
        raise ValueError(f"explore_painter cannot read this word. {error}") from None
    if rule is not None and as_text(rule, "rule") not in AIMS:
        raise ValueError(f"The rule must be one of {', '.join(AIMS)}; got {rule!r}")
    return PainterExplorer(word, rule or NO_RULE)


class PainterExplorer(Explorer):
    """M as a quilt of four blocks, and what it makes of a word: scores, and weights."""

    about = (
        "choose what stands in each block of M, and how strongly; see the scores of a word, its "
        "weights, and whether the rule holds."
    )

    def __init__(self, word: str, rule: str) -> None:
        box = widgets.Text(
            value=word, description="word",
            style={"description_width": "initial"}, layout={"width": "200px"},
        )  # fmt: skip
        made = {
            "rule": dropdown("rule", [NO_RULE, *AIMS], rule),
            "word": box,
            "sharpness": slider("sharpness", int(SHARPNESS), 1, 30),
        }
        for block, name in NAMES.items():
            made[name] = dropdown(name, list(STROKES[block]), NOTHING)
            made[name].layout.width = "300px"
            made[strength_of(name)] = slider(strength_of(name), 1, -10, 10)
            made[strength_of(name)].layout.width = "420px"
        super().__init__(made)

    def arrange(self) -> widgets.Widget:
        """Put each block in a row of its own, with its strength."""
        general, *blocks = list(self.controls.values())[:3], *(
            (self.controls[name], self.controls[strength_of(name)]) for name in NAMES.values()
        )  # fmt: skip
        return widgets.VBox([in_a_row(*row) for row in (general, *blocks)] + [self.view])

    def draw(self, rule: str, word: str, sharpness: int, **blocks: Any) -> str:
        """Draw M, the scores and the weights, and what is said about them."""
        painted = _painted(blocks)
        M = _matrix(painted)
        scores, weights = _tables(rule, word, sharpness, M)
        parts = [_quilt(M), scores.html(classes=True), weights.html(classes=True)]
        return side_by_side(parts) + sentences(_M_in_words(painted), _verdict(rule, sharpness, M))

    def describe(self, rule: str, word: str, sharpness: int, **blocks: Any) -> str:
        """Say what M holds and whether the rule holds, with the scores and the weights."""
        painted = _painted(blocks)
        M = _matrix(painted)
        told = f"{_M_in_words(painted)} {_verdict(rule, sharpness, M)}".rstrip()
        tables = [
            f"{table.caption}. Rows: {table.corner}; columns: {table.over}.\n{table.text()}"
            for table in _tables(rule, word, sharpness, M)
        ]
        return "\n".join([told, *tables])


class _Paint(NamedTuple):
    """What stands in a block."""

    strength: int
    stroke: str


def _painted(blocks: dict[str, Any]) -> dict[tuple[str, str], _Paint]:
    """What the controls of the blocks say, whose names come with _ for a space."""
    return {
        block: _Paint(*(blocks[each.replace(" ", "_")] for each in (strength_of(name), name)))
        for block, name in NAMES.items()
    }


def _matrix(painted: dict[tuple[str, str], _Paint]) -> Tensor:
    """M, (V + T, V + T)."""
    blocks = {
        block: strength * STROKES[block][stroke] for block, (strength, stroke) in painted.items()
    }
    return score_from_blocks(LETTERS, LONGEST, blocks)


def _M_in_words(painted: dict[tuple[str, str], _Paint]) -> str:
    held = [
        f"{strength} × {stroke} ({NAMES[block]})"
        for block, (strength, stroke) in painted.items()
        if strength and stroke != NOTHING
    ]
    if not held:
        strengths = joined([str(strength) for strength, _ in painted.values()])
        return (
            "Nothing is painted, so M is 0, and each token attends to all that it sees, equally. "
            f"The strengths are {strengths}."
        )
    return f"M holds, by part of the query × part of the key: {', '.join(held)}."


def _verdict(rule: str, sharpness: int, M: Tensor) -> str:
    if rule == NO_RULE:
        return ""
    failure = RULES[rule].first_failure(M * (sharpness / SHARPNESS))  # it multiplies by SHARPNESS
    failure = failure.replace("\n", " ")
    how = f"fails. {failure}" if failure else f"holds on {N_WORD:,} random words."
    return f"The rule “{rule}” (framed in the weights) {how}"


# ---------------------------------------------------------------- pictures


def _tables(rule: str, word: str, sharpness: int, M: Tensor) -> list[Table]:
    """The scores and the weights of a word."""
    x = one_hot_tokens(word, LETTERS, LONGEST).double()
    scores = (x @ M.double() @ x.mT).numpy()
    weights = written_weights(x, M, sharpness).numpy()
    asked = [set()] * len(word) if rule == NO_RULE else RULES[rule].attended(word)
    names = [f"{t} {letter}" for t, letter in enumerate(word)]
    written = texts(scores, 1), [[narrow(weight) for weight in row] for row in weights.tolist()]
    coloured = _score_colours(scores), fills(paint(weights, 0, 1, None))
    captions = f"scores of “{word}”", f"weights = softmax({sharpness} × scores)"
    frames = [set()] * len(word), asked
    return [
        Table(
            names,
            [
                (name, [
                    Cell(numbers[t][j], "framed" if j in framed[t] else "", fill[t][j])
                    if j <= t else Cell("–", "masked", note="masked")
                    for j in range(len(word))
                ])
                for t, name in enumerate(names)
            ],
            caption=caption, corner="query (who reads)", over="key (who is read)", size="small",
        )
        for numbers, fill, caption, framed in zip(written, coloured, captions, frames, strict=True)
    ]  # fmt: skip


def _score_colours(values: np.ndarray) -> list:
    """Colours around 0. The root lets a ramp of small steps be seen beside a score of 10."""
    most = max(float(np.abs(values).max()), 1.0)
    return fills(paint(np.sign(values) * np.sqrt(np.abs(values) / most), -1, 1, 0))


SIDE = 13  # of a cell of M, in CSS pixels
PARTS = [
    Part("key’s letter", "query’s letter", LETTERS),
    Part("key’s position", "query’s position", [str(t) for t in range(LONGEST)]),
]


def _quilt(M: Tensor) -> str:
    """Draw M: rows are the query's letter, then its position; columns the key's."""
    values = M.numpy()
    label = "M: what each query scores with each key"
    return quilt(values, _score_colours(values), PARTS, label, SIDE)
