"""The question of notebook 15 on the start page: what comes next, with and without the noun."""

from __future__ import annotations

from typing import NamedTuple

from attention_base.numbers import number
from helpers.real.study import chances

SUBJECTS = ("cat", "soup")
TEXT = "the {} was warm so it"
WORDS = ("ran", "slept", "ate", "made", "melted", "tasted")
# Heads in which “it” may not attend to the noun, and what a reader chooses.
BLIND = {0: "all 270 heads", 16: "all but 16", 270: "none"}
WIDEST = 12.0  # percent, of a whole bar


class Choice(NamedTuple):
    """What stands on the page where a reader has chosen some heads.

    Attributes
    ----------
    id, label
        Of the radio button.
    likely
        For each subject its text and the words that may come next: word, percent, share of a bar.
    said
        What became of the cat, in a sentence.
    """

    id: str
    label: str
    likely: list[tuple[str, list[tuple[str, str, float]]]]
    said: str


def choices() -> list[Choice]:
    """One for each set of heads, the untouched model first."""
    found = []
    for blind, label in BLIND.items():
        likely, percents = [], []
        for subject in SUBJECTS:
            text = TEXT.format(subject)
            percents.append(dict(zip(WORDS, chances(text, WORDS, blind).tolist(), strict=True)))
            rows = [(word, f"{p:.1f} %", p / WIDEST) for word, p in percents[-1].items()]
            likely.append((text, rows))
        found.append(Choice(f"blind-{blind}", label, likely, _said(percents[0])))
    return found


def _said(after_cat: dict[str, float]) -> str:
    """Whether the cat rather sleeps or melts."""
    less, more = sorted(("slept", "melted"), key=after_cat.get)
    times = number(after_cat[more] / after_cat[less], 1)
    return f"After the cat, {more} is {times} times as likely as {less}."
