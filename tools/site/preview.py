"""The picture that a chat shows beside a link to the site."""

from __future__ import annotations

import io
import textwrap

from matplotlib.figure import Figure

from helpers.pictures.base import FONT, usual_settings
from tools.site.nouns import Choice

SIZE = 12, 6.3  # inches of 100 dots: what chats ask for
INK, BAR = "#1c2024", "#f6cf95"  # as in static/site.css


def preview(title: str, about: str, choice: Choice) -> bytes:
    """Draw title, sentence, and the words that may come next after both texts, as a PNG."""
    with usual_settings():
        figure = Figure(SIZE, dpi=100)
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 1200), ylim=(630, 0))
        axes.axis("off")

        def write(x: float, y: float, text: str, size: float, **style: str) -> None:
            axes.text(x, y, text, size=size, family=FONT, color=INK, va="center", **style)

        write(60, 75, title, 38, weight="bold")
        write(60, 170, textwrap.fill(about, 68), 20)
        for left, (text, words) in zip((60, 640), choice.likely, strict=True):
            write(left, 275, text, 22, weight="bold")
            for i, (word, percent, share) in enumerate(words):
                y = 328 + 47 * i
                axes.barh(y, 500 * share, height=38, left=left, color=BAR)
                write(left + 10, y, word, 20)
                write(left + 500, y, percent, 20, ha="right")
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png")
    return drawn.getvalue()


def said(choice: Choice) -> str:
    """What the picture shows, in words."""
    lists = (
        f"{text}: {', '.join(f'{w} {p}' for w, p, _ in words)}" for text, words in choice.likely
    )
    return f"The next words of a real model. {'; '.join(lists)}."
