"""What is done, tried and open in each notebook, and the mistakes met, as a picture."""

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from attention_base.numbers import joined
from helpers.pictures import base
from helpers.pictures.base import Picture
from helpers.pictures.colours import BLUE, CELL, INK, MARKED_CELL, QUIET, Fill
from helpers.pictures.table import Cell, Table, grid, side_by_side, text_html, widest
from lesson import mine, own_file
from lesson.exercises import EXERCISES, PREDICTIONS, RETIRED
from lesson.progress_file import Entry, Log, place, read, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Your progress"
MEANING = (
    "Done: right. Corrected: a prediction, first wrong and later right; it counts as done, too. "
    "Tried: not right yet. Open: not answered yet."
)
SIGNS = {"done": "✓", "corrected": "◐", "tried": "✗", "open": "○"}
FILLS = {
    "done": Fill(BLUE, "white"),
    "corrected": Fill(BLUE, "white"),
    "tried": Fill(MARKED_CELL, INK),
    "open": Fill(CELL, INK),
}
NO_SUCH = Cell("–", fill=Fill("#ffffff", QUIET))
ROW, HEAD, LINE = 26, 44, 17  # heights: a row of cells; what stands above a table; a line of text


def state(entries: Iterable[Entry]) -> str:
    """What became of one exercise or prediction: "done", "corrected", "tried" or "open".

    A prediction is corrected when its first answer was wrong and a later one was right. An exercise
    that passes after some tries is done. A stub that was run (not attempted) leaves it open.
    """
    statuses = [entry.status for entry in entries]
    if "right" in statuses:
        return "done" if statuses[0] == "right" else "corrected"
    if "passed" in statuses:
        return "done"
    return "tried" if {"failed", "wrong"} & set(statuses) else "open"


def is_known(entry: Entry) -> bool:
    """Whether these notebooks have the exercise or the prediction."""
    return entry.id in (EXERCISES if entry.kind == "check" else PREDICTIONS)


def states_of(entries: Iterable[Entry]) -> dict[str, str]:
    """The state of every exercise and every prediction, by id."""
    by_id: dict[str, list[Entry]] = {id: [] for id in (*EXERCISES, *PREDICTIONS)}
    for entry in entries:
        by_id[entry.id].append(entry)
    return {id: state(own) for id, own in by_id.items()}


def progress() -> Picture:
    """Show what is done, tried and open in each notebook, and which mistakes you have met.

    It is read from `work/progress.jsonl`, where `check` and `predict` keep your answers. Optional
    exercises do not count; those that are done are named below the table.

    Returns
    -------
    Picture
        Drawn, as HTML tables under ``tables()``, and as text.
    """
    log, notes = _kept()
    entries = [entry for entry in log.entries if is_known(entry)]
    every = states_of(entries)
    optional = [id for id, exercise in EXERCISES.items() if exercise.optional]
    states = {id: what for id, what in every.items() if id not in optional}
    met = Counter(
        (entry.id, entry.mistake)
        for entry in entries
        if entry.id in EXERCISES and EXERCISES[entry.id].recognises(entry.mistake)
    )
    file, said = own_file.look()
    tables = [_overview(states), _builds(states, file)]
    tables += [_mistakes(met, entries)] if met else []
    more = [id for id in optional if every[id] == "done"]
    also = [f"Optional exercises that are done: {joined(more)}."] if more else []
    notes = [*_where_you_were(states, entries), *also, *filter(None, [said]), *notes]
    told = [f"{table.caption}\n{table.text()}" for table in tables]
    return Picture(
        alt=_alt(states, len(met)),
        text="\n".join([TITLE, MEANING, *told, *notes]),
        draw=lambda: _draw(tables, notes),
        html=lambda: _html(tables, notes),
    )


def _kept() -> tuple[Log, list[str]]:
    """What the file says, and what is to be told about it."""
    path = place()
    if path is None:
        return Log([], []), ["No answers are kept here, because ATTENTION_PROGRESS is 0."]
    name = shown(path)
    try:
        log = read(path)
    except OSError as error:
        return Log([], []), [f"{name} cannot be read ({error.strerror}). So all cells say “open”."]
    notes = [f"Read from {name}, which stays on this computer."]
    if log.left_out:
        size = f"{log.left_out / 1e6:.0f} MB"
        notes.append(f"The file is very large: its first {size} were left out, the end was read.")
    if log.broken:
        lines = [f"line {number}" for number in log.broken[:5]]
        lines += [f"{len(log.broken) - 5} more"] if len(log.broken) > 5 else []
        notes.append(f"Broken lines were left out: {joined(lines)}.")
    gone = [entry for entry in log.entries if entry.id in RETIRED]
    if done := sorted({entry.id for entry in gone if entry.status in ("passed", "right")}):
        told = joined([f"{id} ({RETIRED[id]})" for id in done])
        notes.append(f"Done, and no longer in these notebooks: {told}.")
    if unknown := sorted({e.id for e in log.entries if not is_known(e)} - RETIRED.keys()):
        names = ", ".join(unknown[:5]) + ", …" * (len(unknown) > 5)
        notes.append(f"Exercises that these notebooks do not have were left out: {names}.")
    return log, notes


def _where_you_were(states: dict[str, str], entries: list[Entry]) -> list[str]:
    """Say what was answered last, and what its notebook still has."""
    answered = [entry for entry in entries if entry.status != "not attempted"]
    if not answered:
        return []
    last = answered[-1].id
    notebook = last.split(".")[0]
    left = [
        id
        for id, what in states.items()
        if id.startswith(f"{notebook}.") and what in ("tried", "open")
    ]
    rest = f"Not done there yet: {joined(left)}." if left else "There, all is done."
    return [f"Answered last: {last}, in notebook {notebook}. {rest}"]


def _overview(states: dict[str, str]) -> Table:
    """One row for each notebook, one column for each place of a prediction or an exercise."""
    parts = [id.split(".") for id in states]
    columns = {name for _, name in parts if not mine.is_build(f".{name}")}
    columns = sorted(columns, key=lambda name: (name[0] != "p", name))
    rows = []
    for notebook in sorted({notebook for notebook, _ in parts}):
        own = {name: states[f"{notebook}.{name}"] for nb, name in parts if nb == notebook}
        done = f"{sum(what in ('done', 'corrected') for what in own.values())} of {len(own)}"
        cells = [_cell(own.get(name, "")) for name in columns]
        rows.append((notebook, [Cell(done, "plain"), *cells]))
    caption = "Predictions p1, p2, … and exercises 1, 2, …"
    return Table(["done", *columns], rows, caption, corner="notebook")


def _builds(states: dict[str, str], file: own_file.MyFile | None) -> Table:
    """One row for each build: what became of it, and its lines in the learner's file."""
    own, rows = Counter(), []
    for part in file.parts.values() if file else ():
        own[part.id] += part.text.count("\n")
    for id in mine.builds():
        lines = f"{own[id]} lines" if own[id] else "–"
        rows.append((id, [_cell(states[id]), Cell(lines, "plain")]))
    return Table(["check", "your file"], rows, "Builds: your own file", corner="build")


def _cell(state: str) -> Cell:
    return Cell(f"{SIGNS[state]} {state}", fill=FILLS[state]) if state else NO_SUCH


def _mistakes(met: dict[tuple[str, str], int], entries: list[Entry]) -> Table:
    """One row for each mistake that was met: unsolved ones first, and what was met last first."""
    last = {(entry.id, entry.mistake): i for i, entry in enumerate(entries)}
    passed = {entry.id: i for i, entry in enumerate(entries) if entry.status == "passed"}
    solved = {mistake: passed.get(mistake[0], -1) > last[mistake] for mistake in met}
    rows = []
    for mistake in sorted(met, key=lambda mistake: (solved[mistake], -last[mistake])):
        told = "✓ solved since" if solved[mistake] else "✗ not solved since"
        fill = FILLS["done" if solved[mistake] else "tried"]
        cells = [Cell(f"{met[mistake]} ×", "plain"), Cell(told, fill=fill)]
        rows.append((" ".join(mistake), cells))
    return Table(["met", "exercise"], rows, "Mistakes that you have met", corner="mistake")


def _alt(states: dict[str, str], n_met: int) -> str:
    def count(where: dict) -> str:
        of = Counter(what for id, what in states.items() if id in where)
        signs = [what for what in SIGNS if what != "corrected" or where is PREDICTIONS]
        return ", ".join(f"{of[what]} {what}" for what in signs)

    return (
        f"{TITLE} as a table with a row for each notebook. Exercises: {count(EXERCISES)}. "
        f"Predictions: {count(PREDICTIONS)}. Mistakes met, by name: {n_met}. "
        f"The cells are in the text version of this output."
    )


def _html(tables: list[Table], notes: list[str]) -> str:
    lines = [f'<p style="margin:4px 0">{text_html(note)}</p>' for note in (MEANING, *notes)]
    return side_by_side([table.html() for table in tables], TITLE) + "".join(lines)


def _draw(tables: list[Table], notes: list[str]) -> "Figure":
    """Draw the tables and the notes below each other."""
    lefts = [base.PAD + widest([table.corner, *table.names], 0, 6) for table in tables]
    widths = [  # of each table: of its columns
        [
            widest([name, *(cell.text for cell in column)], 40, 4)
            for name, *column in zip(table.columns, *table.cells, strict=True)
        ]
        for table in tables
    ]
    width = max(left + sum(own) for left, own in zip(lefts, widths, strict=True))
    told = [base.break_lines(note, width - base.PAD) for note in (MEANING, *notes)]
    high = sum(HEAD + ROW * len(table.rows) + base.PAD for table in tables)
    title, y = base.heading(TITLE, width)
    y += base.PAD
    page = width + base.PAD, y + high + LINE * sum(map(len, told)) + base.PAD
    figure, ax = base.empty_page(*page)
    base.write_heading(ax, title)
    for table, left, own in zip(tables, lefts, widths, strict=True):
        base.write(ax, base.PAD, y + 8, table.caption, ha="left", weight="bold", size=12)
        y += HEAD
        base.write(ax, left - 6, y - 9, table.corner, ha="right", color=QUIET)
        grid(ax, left, y, table.cells, own, ROW, names=table.names, columns=table.columns)
        y += ROW * len(table.rows) + base.PAD
    for line in chain.from_iterable(told):
        base.write(ax, base.PAD, y + LINE / 2, line, ha="left", color=QUIET)
        y += LINE
    return figure
