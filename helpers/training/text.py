"""Texts to learn from: where they come from, their split, and what counting guesses."""

from __future__ import annotations

import pydoc_data.topics
from collections import Counter, defaultdict
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from attention_base.arguments import typed
from attention_base.masks import refuse_bad_sizes
from attention_base.numbers import as_whole
from helpers.gpt import encode

BLOCK = 2000  # letters that stay together in the split
LEAST = 2000  # letters of a text


def python_help() -> str:
    """The texts that Python's own `help` shows, as long as a short book; paragraphs repeat.

    They belong to Python, which differs a little from version to version.
    """
    return "\n\n".join(text for _, text in sorted(pydoc_data.topics.topics.items()))


@typed
def read_text(path: str | Path) -> str:
    """The text of a file in UTF-8.

    Raises
    ------
    OSError
        When it cannot be read.
    ValueError
        When it is not a text in UTF-8.
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"There is no file {path} in the folder {Path.cwd()}. Put it there, or give the whole "
            "path."
        ) from None
    except OSError as error:  # a folder, or no right to read it
        raise OSError(
            f"{path} cannot be read: {error.strerror}. Give the path of a text."
        ) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not a text in UTF-8: byte {error.start} is {data[error.start]:#04x}. "
            "Save it as plain text with the encoding UTF-8."
        ) from None
    if "\0" in text:
        raise ValueError(
            f"{path} is not a text in UTF-8: it holds the byte 0, as programs, pictures and texts "
            "in UTF-16 do. Save it as plain text with the encoding UTF-8."
        )
    return text.replace("\r\n", "\n")


@typed
def drop_repeats(text: str) -> str:
    """A text in which each paragraph stands only once, where it stood first."""
    paragraphs = [paragraph.strip("\n") for paragraph in text.split("\n\n")]
    return "\n\n".join(dict.fromkeys(filter(str.strip, paragraphs)))


class Corpus:
    """A text split in two: most of it to learn from, every tenth block to measure with.

    Parameters
    ----------
    text
        At least 2,000 letters, of at least two kinds.

    Attributes
    ----------
    letters : str
        The vocabulary: every letter of the text once, in the order of Unicode. Its V letters have
        the ids 0 to V - 1.
    training, validation : str
        Nine of ten blocks of the text, and the tenth.

    Raises
    ------
    TypeError
        When text is not a str.
    ValueError
        When it is too short or all its letters are the same.
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(
                f"text must be a str, got {type(text).__name__}. For a file: read_text(path)."
            )
        if len(text) < LEAST:
            raise ValueError(f"A text needs at least {LEAST:,} letters, got {len(text):,}.")
        self.letters = "".join(sorted(set(text)))
        if len(self.letters) < 2:
            raise ValueError(
                f"A text needs at least two different letters, got only {self.letters!r}."
            )
        size = min(BLOCK, len(text) // 20)
        blocks = [text[start : start + size] for start in range(0, len(text), size)]
        self.validation = "".join(blocks[9::10])
        self.training = "".join(block for i, block in enumerate(blocks) if i % 10 != 9)

    @cached_property
    def training_ids(self) -> Tensor:
        """The training text as ids, (N,)."""
        return encode(self.training, self.letters)

    @typed
    def windows(self, T: int) -> Tensor:
        """All windows of the validation text, (N, T + 1): each begins where another one ends.

        Raises
        ------
        ValueError
            When the validation text is shorter than one window.
        """
        refuse_bad_sizes(T=T)
        self.refuse_long_windows("validation", T)
        return encode(self.validation, self.letters).unfold(0, T + 1, T)

    @typed
    def batch(self, B: int, T: int, generator: torch.Generator | None = None) -> Tensor:
        """B windows of the training text from random places, (B, T + 1).

        Without a generator, the places come from PyTorch's own random numbers.

        Raises
        ------
        ValueError
            When the training text is shorter than one window.
        """
        refuse_bad_sizes(B=B, T=T)
        self.refuse_long_windows("training", T)
        starts = torch.randint(len(self.training) - T, (B, 1), generator=generator)
        return self.training_ids[starts + torch.arange(T + 1)]

    def refuse_long_windows(self, part: str, T: int) -> None:
        """Refuse windows of T + 1 letters if the "training" or "validation" text has not as many.

        Raises
        ------
        ValueError
            With both numbers.
        """
        length = len(getattr(self, part))
        if length <= T:
            raise ValueError(
                f"A window needs T + 1 = {T + 1:,} letters, but the {part} text has only "
                f"{length:,}. Take a longer text, or a model with a smaller context_length."
            )


@typed
def share_seen(corpus: Corpus, n: int) -> float:
    """The share of all stretches of n letters of the validation text that training has, too.

    Raises
    ------
    TypeError, ValueError
        When n is not a whole number from 1 to the length of the validation text.
    """
    n = as_whole(n, "n", 1, len(corpus.validation))
    known = {corpus.training[i : i + n] for i in range(len(corpus.training) - n + 1)}
    asked = range(len(corpus.validation) - n + 1)
    return sum(corpus.validation[i : i + n] in known for i in asked) / len(asked)


@typed
def counting_losses(corpus: Corpus, most: int) -> list[float]:
    """The validation losses of tables that look up the last k letters, for k from 0 to `most`.

    A table counts which letters followed in the training text. It is mixed with the table of one
    letter less, the more so the more different letters have followed. Method C of Witten and Bell
    (1991), "The Zero-Frequency Problem", https://doi.org/10.1109/18.87000.

    Raises
    ------
    TypeError, ValueError
        When `most` is not a whole number of at least 0.
    """
    most = as_whole(most, "most", 0)
    V, text, asked = len(corpus.letters), corpus.training, corpus.validation
    guessed = [1 / V] * len(asked)  # the probability that each letter gets; at first from a die
    losses = []
    for k in range(most + 1):
        followed: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for i in range(k, len(text)):
            followed[text[i - k : i]][text[i]] += 1
        for i in range(k, len(asked)):
            counts = followed.get(asked[i - k : i])
            if counts is not None:
                n, kinds = counts.total(), len(counts)
                guessed[i] = (counts[asked[i]] + kinds * guessed[i]) / (n + kinds)
        losses.append(-torch.tensor(guessed, dtype=torch.float64).log().mean().item())
    return losses
