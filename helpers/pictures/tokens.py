"""Tokens: which output reads which input, and which word the outputs at “it” let us guess."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from helpers.pictures.checks import as_matrix, as_names
from helpers.pictures.matrix import Heatmap, heatmap

if TYPE_CHECKING:
    pass


def guessed_next(outputs: Any, texts: Sequence[str], *, title: str = "") -> Heatmap:
    """Draw the output at “it” for each text, and the word that we would guess next.

    The guess is “slept” if the channel *animal* is larger, “cooled” if *food* is, and none, “???”,
    if they are equal up to rounding.

    Parameters
    ----------
    outputs : (n_text, 2)
        The channels animal and food, from 0 to 1.
    texts : sequence of str
        They stand beside the rows.

    Raises
    ------
    ValueError
        If `outputs` is not (n_text, 2), or there is not one text for each row.
    """
    values = as_matrix(outputs, "outputs")
    if values.shape[1] != 2:
        raise ValueError(f"guessed_next draws animal and food, (n_text, 2), got {values.shape}")
    named = zip(as_names(texts, len(values), "texts", "outputs"), values, strict=True)
    rows = [f"{text} → {_guess(*channels)}" for text, channels in named]
    cols = {"output at “it”": ["animal", "food"]}
    return heatmap(values, rows={"text": rows}, cols=cols, vmin=0, vmax=1, title=title)


def _guess(animal: float, food: float) -> str:
    if abs(animal - food) < 1e-6:
        return "???"
    return "slept" if animal > food else "cooled"
