"""The speed story as bars: for each recipe the seconds until it has the classic recipe's loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from helpers.pictures import base
from helpers.pictures.base import Picture
from helpers.pictures.colours import BLUE, PALE, QUIET
from helpers.pictures.table import Table, plain_cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEXTS = {"help": "the texts behind Python's help", "moby": "Moby-Dick"}
TITLE = "Seconds of training until the loss of the classic recipe"
BAR, GAP, LEFT, WIDE, RIGHT = 20, 8, 230, 420, 130  # pixels; names left of the bars, times right


def bars(measured: dict[str, Any]) -> Picture:
    """Draw what benchmarks/train.py has stored."""
    rows = measured["summary"]
    panels = {
        TEXTS[text]: [row for row in rows if row["text"] == text] for text in measured["texts"]
    }
    tables = [
        Table(
            ["seconds", "times as fast"],
            [(named(row), *plain_cells([numbers(row)])) for row in found],
            name,
        )
        for name, found in panels.items()
    ]
    return Picture(
        alt=f"Bars: {TITLE}, on {' and on '.join(panels)}.",
        text="\n\n".join([f"Bars: {TITLE}", *(f"{t.caption}\n{t.text()}" for t in tables)]),
        draw=lambda: draw(panels),
        html=lambda: "".join(table.html() for table in tables),
    )


def numbers(row: dict[str, Any]) -> list[str]:
    return [f"{row['seconds']:.1f}", f"{row['times_faster']:.1f}"]


def named(row: dict[str, Any]) -> str:
    return row["recipe"] if row["recipe"] == "classic recipe" else f"+ {row['recipe']}"


def draw(panels: dict[str, list[dict[str, Any]]]) -> Figure:
    heading, y = base.heading(TITLE, LEFT + WIDE + RIGHT)
    high = 28 + len(next(iter(panels.values()))) * (BAR + GAP) + 12
    figure, page = base.empty_page(
        2 * base.PAD + LEFT + WIDE + RIGHT, 2 * base.PAD + y + high * len(panels)
    )
    base.write_heading(page, heading)
    y += base.PAD
    for name, rows in panels.items():
        base.write(page, base.PAD, y + 12, f"on {name}", ha="left", color=QUIET)
        longest = max(row["seconds"] for row in rows)
        x = base.PAD + LEFT
        for i, row in enumerate(rows):
            top = y + 28 + i * (BAR + GAP)
            length = WIDE * row["seconds"] / longest
            page.barh(top + BAR / 2, length, BAR, left=x, color=BLUE if i else PALE)
            base.write(page, x - 8, top + BAR / 2, named(row), ha="right")
            seconds, faster = numbers(row)
            times = f"{seconds} s, {faster} times as fast" if i else f"{seconds} s"
            base.write(page, x + length + 8, top + BAR / 2, times, ha="left")
        y += high
    return figure
