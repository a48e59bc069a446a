"""Notebook 00: what a language model that is a table guesses, by how many words it sees."""

from __future__ import annotations

from collections.abc import Sequence

from attention_base.arguments import typed
from attention_base.numbers import number
from explorers.explorer import Explorer, dropdown, sentences, slider
from helpers.pictures.table import Cell, Table


@typed
def explore_context(read: Sequence[str], starts: Sequence[str]) -> Explorer:
    """Choose a text to go on with, and how many of its last words are looked up in `read`."""
    lengths = [len(text.split()) for text in starts]
    if len(set(lengths)) != 1 or lengths[0] < 1:
        raise ValueError(f"the texts to go on with need equally many words, got {lengths}")
    return ContextExplorer(read, starts)


class ContextExplorer(Explorer):
    """A text with its last words marked, and how often each next word followed these words.

    Parameters
    ----------
    read : texts
        What the model has read.
    starts : texts of equally many words
        What it may be asked about.
    """

    about = "choose a text, and how many of its last words the model sees; see what it guesses."

    def __init__(self, read: Sequence[str], starts: Sequence[str]) -> None:
        self.read = [text.split() for text in read]
        super().__init__(
            {
                "text": dropdown("text", starts, starts[0]),
                "words": slider("words seen", 1, 1, len(starts[0].split())),
            }
        )

    def draw(self, text: str, words: int) -> str:
        """Draw the text, and the table of the next words."""
        tokens, found = text.split(), self._followers(text, words)
        unseen = len(tokens) - words
        cells = [
            Cell(token, "marked" if t >= unseen else "faint") for t, token in enumerate(tokens)
        ]
        start = Table([str(t) for t in range(len(tokens))], [("text", cells)], over="position")
        rows = []
        for word in dict.fromkeys(self._followers(text, 1)):
            share = found.count(word) / max(len(found), 1)
            cells = [Cell(str(found.count(word)), "plain"), Cell(number(share), bar=share)]
            rows.append((word, cells))
        guesses = Table(["times read", "share of the guesses"], rows, corner="next word")
        page = start.html(classes=True) + guesses.html(classes=True)
        return page + sentences(f"{self.describe(text, words)}.")

    def describe(self, text: str, words: int) -> str:
        """Say how often the last words were read, and what followed."""
        seen = f"Of “{text}”, the model sees “{' '.join(text.split()[-words:])}”"
        found = self._followers(text, words)
        if not found:
            return f"{seen}: it has never read this, so it has no guess"
        shares = [f"{w} {number(found.count(w) / len(found))}" for w in dict.fromkeys(found)]
        return f"{seen} and guesses {', '.join(shares)}"

    def _followers(self, text: str, words: int) -> list[str]:
        """Find the words that followed the last `words` words of a text, as often as they did."""
        last = text.split()[-words:]
        return [
            tokens[i + words]
            for tokens in self.read
            for i in range(len(tokens) - words)
            if tokens[i : i + words] == last
        ]
