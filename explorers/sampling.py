"""Notebook 10: what a tiny GPT expects next, and what temperature and top-k make of it."""

from __future__ import annotations

from typing import NamedTuple

import ipywidgets as widgets
from torch import nn

from attention_base.numbers import number
from attention_base.same import one_thread
from explorers.explorer import Explorer, sentences, slider
from helpers.gpt import encode, evaluating, logits_of, next_token_probabilities, refuse_other_model
from helpers.pictures.checks import as_text
from helpers.pictures.table import Cell, Table

SHOWN = 10  # letters with a row of their own
TOLD = 24  # letters of the prompt in a sentence
NAMES = {" ": "space", "\n": "line end", "\t": "tab"}  # of letters that leave no ink
VISIBLE = str.maketrans(dict(zip(NAMES, "␣⏎⇥", strict=True)))


def explore_sampling(model: nn.Module, letters: str, prompt: str) -> Explorer:
    """Write a prompt, move temperature and top-k; see the probabilities of the next letter.

    Parameters
    ----------
    model
        Any model of single letters: ids (B, T) -> logits (B, T, V), and `context_length`.
    letters
        Its vocabulary: the letter with the id 0, the one with the id 1, and so on.
    prompt
        The text to go on from, at first.

    Raises
    ------
    TypeError
        When one of them is of another type.
    ValueError
        As for `helpers.gpt.refuse_other_model`.
    """
    refuse_other_model(model, len(as_text(letters, "letters")))
    return SamplingExplorer(model, letters, as_text(prompt, "prompt"))


class SamplingExplorer(Explorer):
    """A table of the likeliest letters: their probabilities of the model, and those drawn with."""

    about = (
        "write a prompt, move temperature and top-k; see the probabilities that the next letter "
        "is drawn with."
    )

    def __init__(self, model: nn.Module, letters: str, prompt: str) -> None:
        self.model, self.letters = model, letters
        box = widgets.Textarea(
            value=prompt, description="prompt", rows=2,
            style={"description_width": "initial"}, layout={"width": "620px"},
        )  # fmt: skip
        top_k = widgets.SelectionSlider(
            options=[*range(1, min(SHOWN, len(letters)) + 1), "all"], value="all",
            description="top-k", style={"description_width": "initial"}, layout={"width": "300px"},
        )  # fmt: skip
        super().__init__(
            {"prompt": box, "temperature": slider("temperature", 1, 0.1, 2, 0.1), "top k": top_k}
        )

    def draw(self, prompt: str, temperature: float, top_k: int | str) -> str:
        """Draw the probabilities as bars, and what is said about them."""
        told, rows = self._guess(prompt, temperature, top_k)
        table = Table(
            ["the model's own", _setting(temperature, top_k)],
            [
                (row.name, [Cell(number(row.own), bar=row.own), Cell(row.text, bar=row.drawn)])
                for row in rows
            ],
            corner="next letter", over="probability", bar_width=160,
        )  # fmt: skip
        return table.html(classes=True) + sentences(*told)

    def describe(self, prompt: str, temperature: float, top_k: int | str) -> str:
        """Say the probabilities."""
        told, rows = self._guess(prompt, temperature, top_k)
        numbers = ", ".join(f"{row.name} {number(row.own)} → {row.text}" for row in rows)
        return (
            f"{' '.join(told)} The model's own probabilities → at {_setting(temperature, top_k)}: "
            f"{numbers}."
        )

    def _guess(
        self, prompt: str, temperature: float, top_k: int | str
    ) -> tuple[list[str], list[_Row]]:
        """What there is to say; and the likeliest letters, with all others in a last row."""
        if not prompt:
            raise ValueError("The prompt is empty. Write at least one letter")
        ids = encode(prompt, self.letters)[None, -self.model.context_length :]  # (1, T)
        with evaluating(self.model), one_thread():
            logits = logits_of(self.model, ids, len(self.letters))[0, -1].double()  # (V,)
        V = len(logits)
        k = V if top_k == "all" else top_k
        order = logits.argsort(descending=True, stable=True)
        own = next_token_probabilities(logits)[order]
        drawn = next_token_probabilities(logits, temperature, k)[order]
        names = [_named(self.letters[i]) for i in order[:SHOWN].tolist()]
        parts = list(zip(names, own.tolist(), drawn.tolist(), strict=False))
        if V > SHOWN:
            parts.append((f"{V - SHOWN} others", *(p[SHOWN:].sum().item() for p in (own, drawn))))
        rows = [
            _Row(name, before, after, number(after) + " (left out)" * (i >= k))
            for i, (name, before, after) in enumerate(parts)
        ]
        seen = prompt.translate(VISIBLE)
        told = [
            f"After “{'…' * (len(seen) > TOLD)}{seen[-TOLD:]}”, the likeliest letter is "
            f"{names[0]} with {number(own[0])}; at {_setting(temperature, top_k)} it has "
            f"{number(drawn[0])}."
        ]
        if k < V:
            told.append(
                f"Top-k leaves {k} letter{'s' * (k > 1)}, with {number(own[:k].sum())} of the "
                "model's own probability."
            )
        if len(prompt) > ids.shape[1]:
            told.append(f"The model reads only the last {ids.shape[1]} of {len(prompt)} letters.")
        return told, rows


class _Row(NamedTuple):
    """A letter, or several."""

    name: str
    own: float  # the model's own probability, at temperature 1 and with all letters
    drawn: float  # the one that it is drawn with
    text: str  # that one, written


def _named(letter: str) -> str:
    """Write a letter; one that leaves no ink with its name."""
    name = NAMES.get(letter)
    if name:
        return f"{letter.translate(VISIBLE)} ({name})"
    return f"“{letter}”" if letter.isprintable() else ascii(letter)


def _setting(temperature: float, top_k: int | str) -> str:
    return f"temperature {number(temperature, 1)}" + f" and top-k {top_k}" * (top_k != "all")
