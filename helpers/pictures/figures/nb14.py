"""Pictures that only notebook 14 shows: `ladder`."""

from __future__ import annotations

from typing import NamedTuple

from helpers.pictures.base import Picture, titled
from helpers.pictures.diagrams import Arrow, Box, Panel, diagram
from helpers.pictures.table import Table, plain_cells, text_html

HEAD_SIZE = 16


TITLE = "One loop, and what it carries"


EQUAL = (
    "The numbers are those of one query of a head with 16 channels. The formula holds the scores "
    "of all T queries at once, T × T. It and the blocks read all keys and values besides. With "
    "equal scores, each way gives the running mean of notebook 01."
)


LENGTHS = (256, 100_000)


class Rung(NamedTuple):
    """One way to compute attention."""

    name: str
    step: str  # what the loop goes over, "" without a loop
    carried: str
    numbers: tuple[int, int]  # carried, or computed at once, at each of LENGTHS


def _rungs() -> list[Rung]:
    """From the last one, which stands on top, to the first."""
    d, lengths = HEAD_SIZE, LENGTHS
    fixed = [(n, n) for n in (d + 2, d + 1)]
    return [
        Rung("14\nin blocks", "block", "maximum and two sums;\nreads keys and values", fixed[0]),
        Rung("14\nKV cache", "token", "all keys\nand values", tuple(2 * d * T for T in lengths)),
        Rung("03 to 13\nthe formula", "", "T scores,\nfor a query", lengths),
        Rung("01\nrunning mean", "token", "a sum and a count", fixed[1]),
    ]


def ladder() -> Picture:
    """Draw the ways to compute attention as a ladder, each with what it carries from step to step.

    The numbers are those of one query of a head with 16 channels, after 256 and after 100,000
    tokens. With equal scores, each way gives the running mean of notebook 01.
    """
    boxes, arrows = [], []
    for i, rung in enumerate(rungs := _rungs()):
        row = 1.3 * i
        steps = (f"{rung.step} t", f"{rung.step} t + 1") if rung.step else ("all tokens", "outputs")
        few, many = (f"{n:,}" for n in rung.numbers)
        told = f"{few} / {many}" if few != many else f"{few} at any length"
        boxes += [
            Box(f"{i}", rung.name, 0, row, look="plain" if i < len(rungs) - 1 else "accent"),
            Box(f"{i} from", steps[0], 1, row),
            Box(f"{i} to", steps[1], 2, row),
            Box(f"{i} numbers", told, 3, row, look="pale"),
        ]
        arrows.append(Arrow(f"{i} from", f"{i} to", rung.carried, accent=bool(rung.step)))
        if i:  # from the first notebook to the last
            arrows.append(Arrow(f"{i}", f"{i - 1}"))
    heads = ["", "", "", f"numbers, at {' / '.join(f'{T:,}' for T in LENGTHS)} tokens"]
    told = "; ".join(f"{_line(rung.name)}: {_line(rung.carried)}" for rung in rungs[::-1])
    drawn = diagram(
        TITLE,
        [Panel(boxes, arrows, heads=heads, row_height=52)],
        alt=f"Four ways to compute attention, one above the other, with what each carries from a "
        f"step to the next. From below: {told}. {EQUAL}",
    )
    table = _table(rungs)
    return Picture(
        alt=drawn.alt,
        draw=drawn.figure,
        text=f"{titled('Ladder', TITLE)}\n{table.text()}\n{EQUAL}",
        html=lambda: table.html() + f"<p>{text_html(EQUAL)}</p>",
    )


def _table(rungs: list[Rung]) -> Table:
    """The same in words: a row for each way, from the first to the last."""
    after = [f"after {T:,} tokens" for T in LENGTHS]
    rows = [
        [rung.step or "no loop", _line(rung.carried), *(f"{n:,}" for n in rung.numbers)]
        for rung in rungs[::-1]
    ]
    names = [_line(rung.name) for rung in rungs[::-1]]
    columns = ["loop over", "carries", *after]
    return Table(columns, list(zip(names, plain_cells(rows), strict=True)), TITLE)


def _line(text: str) -> str:
    return text.replace("\n", " ")
