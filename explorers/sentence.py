"""Notebook 15: how a published model goes on with a text, and where its last token looks."""

from __future__ import annotations

import ipywidgets as widgets
import numpy as np

from attention_base.numbers import number
from explorers.explorer import Explorer, coloured_cells, sentences
from helpers.pictures.table import Cell, Table, side_by_side
from helpers.real.study import NotInstalled, last_looks, next_words

TEXTS = (
    "the cat was warm so it",
    "the soup was warm so it",
    "the hungry cat ate so it",
    "the hungry soup ate so it",
    "the cat was near the soup so it",
    "The dog barked because it was",
    "Two plus two is",
    "The capital of France is",
)
WORDS, HEADS = 8, 5
LONGEST = 24  # tokens whose weights fit into a table
LETTERS = 200  # more would make more tokens, and takes long to read


def explore_sentence() -> Explorer:
    """Choose or write a text: see its likeliest next words, and the heads that look back most.

    Texts that are not in the list need the model (`make real`).
    """
    return SentenceExplorer()


class SentenceExplorer(Explorer):
    """A table of words with their probabilities, and one of heads with rows of weights."""

    about = "choose or write a text; see the next words, and what its last token attends to."

    def __init__(self) -> None:
        box = widgets.Combobox(
            value=TEXTS[0], options=TEXTS, ensure_option=False, continuous_update=False,
            description="text", style={"description_width": "initial"}, layout={"width": "480px"},
        )  # fmt: skip
        super().__init__({"text": box})

    def draw(self, text: str) -> str:
        """Draw both tables."""
        words, (tokens, heads) = self._asked(text)
        likely = Table(
            ["probability"],
            [(word, [Cell(number(p), bar=p)]) for word, p in words],
            corner="next word", bar_width=120,
        )  # fmt: skip
        rows = coloured_cells(np.array([row for _, _, row in heads]), 0.0, 1.0)
        looks = Table(
            tokens,
            [(f"{block}.{head}", row) for (block, head, _), row in zip(heads, rows, strict=True)],
            corner="block.head", over="what the last token attends to",
        )  # fmt: skip
        return side_by_side([likely.html(classes=True), looks.html(classes=True)]) + sentences(
            self._told(words, tokens, heads)
        )

    def describe(self, text: str) -> str:
        """Say the words and the largest weights."""
        return f"“{text.rstrip()}”. {self._told(*self._parts(text))}"

    def _parts(self, text: str) -> tuple:
        words, (tokens, heads) = self._asked(text)
        return words, tokens, heads

    def _asked(self, text: str) -> tuple:
        if not text.strip():
            raise ValueError("The text is empty. Write some words")
        if len(text := text.rstrip()) > LETTERS:  # a word begins with its blank
            raise ValueError(f"The text has {len(text)} letters; at most {LETTERS} can be shown")
        try:
            words, (tokens, heads) = next_words(text, WORDS), last_looks(text, HEADS)
        except NotInstalled as problem:
            raise ValueError(str(problem).rstrip(".")) from None
        if len(tokens) > LONGEST:
            raise ValueError(f"The text has {len(tokens)} tokens; at most {LONGEST} can be shown")
        return [(word.strip() or repr(word), p) for word, p in words], (tokens, heads)

    def _told(self, words: list, tokens: list, heads: list) -> str:
        looks = [
            f"head {head} of block {block} to “{tokens[np.argmax(row[1:-2]) + 1]}” with "
            f"{number(max(row[1:-2]))}"
            for block, head, row in heads
        ]
        said = ", ".join(f"“{word}” {number(p)}" for word, p in words)
        return f"Likeliest next words: {said}. The last token attends: {'; '.join(looks)}."
