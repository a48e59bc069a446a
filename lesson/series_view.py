"""The map of the series: a box for each notebook that has a page, and where you are."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from attention_base.numbers import joined, wrap_text
from helpers.pictures import Picture
from helpers.pictures.diagrams import Arrow, Box, Frame, Panel, diagram
from lesson import own_file, reviews
from lesson.exercises import SERIES

IN_A_ROW = 8  # boxes; the next ones stand in a row below
# The parts, by their first notebooks: at the end of each one can stop.
PARTS = {
    "00": "Part 1: a GPT that you wrote",
    "08": "Part 2: it writes",
    "11": "Part 3: you look inside, in nearly any order",
}
# What the map of the first notebook writes below others, so that it says where the way leads.
MILESTONES = {
    "04": "your own head",
    "07": "your GPT learns",
    "10": "it writes words",
    "13": "you find its bugs",
    "14": "it writes faster",
    "15": "in your attention",
}


def series_map(current: str) -> Picture:
    """Draw the way of the series, from tensors to a model that writes, and where you are.

    The map of the first notebook also says what the reader will have on the way. Where questions
    are due for review, their notebooks say how many, and a line above the map how to be asked.

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
    file, said = own_file.look()
    if said and not file:
        print(wrap_text(said))
    yours = Counter()  # lines, by notebook
    for part in file.parts.values() if file else ():
        yours[part.id[:2]] += len(part.text.splitlines())
    leads = MILESTONES if here == 0 else {}
    # Only so much fits beside the boxes.
    code = {number: f"your {n} lines" if n < 100 else "your code" for number, n in yours.items()}
    leads = leads | code
    boxes = [replace(box, note=leads.get(box.name, "")) for box in boxes]
    boxes[here] = replace(boxes[here], look="accent", note="you are here")
    due = reviews.due_by_notebook()
    waiting = joined([f"{n} of {number}" for number, n in due.items()])
    if due:
        print(wrap_text(f"Questions due for review: {waiting}. For five minutes of them, run"))
        print("from lesson import review; review()")
    for place, box in enumerate(boxes):
        if n := due.get(box.name):
            boxes[place] = replace(box, note=f"{box.note}\n{n} to review".strip())
    parts = _parts()
    arrows = [Arrow(a, b) for part in parts[:2] for a, b in pairwise(part)]
    told = [f"{number}, {idea}".replace("\n", " ") for number, idea in SERIES.items()]
    ends = ", ".join(f"{note} ({number})" for number, note in leads.items())
    frames = [Frame(PARTS[part[0]], part) for part in parts]
    return diagram(
        "Map of the series",
        [Panel(boxes, arrows, frames, row_height=35, gap=18)],
        alt=(
            f"The notebooks, from {told[0]}, to {told[-1]}. {'. '.join(PARTS.values())}. "
            f"{f'On the way: {ends}. ' if ends else ''}You are in notebook {told[here]}."
            f"{f' {said}' if said else ''}{f' Due for review: {waiting}.' if due else ''}"
        ),
        kind="notebook",
        about="place",
        heading=False,
    )


def _parts() -> list[list[str]]:
    """The notebooks of each part."""
    starts = [*PARTS, "99"]
    return [[n for n in SERIES if start <= n < end] for start, end in pairwise(starts)]


def _box(place: int, name: str, text: str) -> Box:
    """Make the box of a place: rows run to the right, as lines of a text do."""
    row, column = divmod(place, IN_A_ROW)
    return Box(name, text, column, 3.8 * row + 0.5, rows=2)  # with room below for two lines
