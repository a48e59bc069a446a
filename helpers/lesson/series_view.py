"""The map of the series: a box for each notebook that has a page, and where you are."""

from dataclasses import replace
from itertools import pairwise

from helpers.lesson.exercises import SERIES
from helpers.pictures import Picture
from helpers.pictures.diagrams import Arrow, Box, Panel, diagram

IN_A_ROW = 8  # boxes; the next ones stand in a row below


def series_map(current: str) -> Picture:
    """Draw the way of the series, from tensors to a model that writes, and where you are.

    Parameters
    ----------
    current : str
        The notebook that you are in, such as "03".

    Raises
    ------
    ValueError
        If there is no such notebook.
    """
    if not isinstance(current, str) or current not in SERIES:
        raise ValueError(f"current must be one of {', '.join(SERIES)}, got {current!r}")
    here = list(SERIES).index(current)
    boxes = [
        _box(place, number, f"{number}\n{idea}")
        for place, (number, idea) in enumerate(SERIES.items())
    ]
    boxes[here] = replace(boxes[here], look="accent", note="you are here")
    arrows = [Arrow(a.name, b.name) for a, b in pairwise(boxes) if a.row == b.row]
    told = [f"{number}, {idea}".replace("\n", " ") for number, idea in SERIES.items()]
    return diagram(
        "Map of the series",
        [Panel(boxes, arrows, row_height=35, gap=18)],
        alt=(
            f"The notebooks in two rows, from {told[0]}, to {told[-1]}. "
            f"You are in notebook {told[here]}."
        ),
        kind="notebook",
        about="place",
        heading=False,
    )


def _box(place: int, name: str, text: str) -> Box:
    """Make the box of a place: rows run to the right, as lines of a text do."""
    row, column = divmod(place, IN_A_ROW)
    return Box(name, text, column, 2.6 * row + 0.5, rows=2)  # with room below for "you are here"
