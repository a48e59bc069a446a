"""What teaching/ says: its plans row by row, and what it tells of each notebook."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tools import notebooks

TEACHING = notebooks.ROOT / "teaching"
PLANS = ("one_lecture", "one_day", "eight_weeks")  # their pages there, and their decks
SCREEN = "on the screen"  # the column that names the slides
WHOLE = "notebook"  # or this one: all slides of one notebook
PLACE = re.compile(r"(live|code|\*.*\*) in \[.*\]\(\.\./notebooks/(\d\d)_\w+\.ipynb#(.*)\)")


class Unplanned(Exception):
    """A row of a plan names what is not there; the message says which and where."""


@dataclass(frozen=True)
class Row:
    """A row of a plan: when, what to say, to do and to answer (Markdown), its slides' names."""

    when: str
    do: str
    slides: tuple[str, ...] = ()
    say: str = ""
    asked: str = ""

    @property
    def told(self) -> str:
        """All of it, as the speaker's notes have it."""
        asked = f"*If somebody asks:* {self.asked}" if self.asked else ""
        return "\n\n".join(part for part in (self.say, self.do, asked) if part)


@dataclass(frozen=True)
class Plan:
    """A plan: its name, as in its heading, the name of its deck's file, and its rows.

    A session shows all of a notebook, in one row, and is told by steps on its run sheet.
    """

    name: str
    file: str
    rows: tuple[Row, ...]
    steps: tuple[Row, ...] = ()
    late: str = ""  # what to leave out then


@dataclass(frozen=True)
class Stop:
    """What is told of a prediction: where it stands, and whom to expect."""

    right: str
    expected: str
    why: str

    @property
    def wrong(self) -> list[str]:
        """The letters of the wrong choices to expect."""
        return re.findall(r"\b([a-z]): ", self.expected)


@dataclass(frozen=True)
class Exit:
    """A question for the end of a session: what to answer, and what wrong answers say."""

    question: str
    key: str
    wrong: str


@dataclass(frozen=True)
class Chapter:
    """What is told of a notebook."""

    question: str
    opening: str
    stops: dict[str, Stop]  # by the id of a prediction
    board: tuple[str, str]  # what it shows, and the drawing
    exits: dict[str, Exit]  # by their ids, such as 03.e1


def plans() -> list[Plan]:
    """The plans of teaching/: a page each, of the eight weeks a row each."""
    found = []
    for stem in PLANS:
        text = (TEACHING / f"{stem}.md").read_text(encoding="utf-8")
        head, *rows = tables(text)
        rows = [dict(zip(head, row, strict=True)) for row in rows]
        if WHOLE in head:
            found += map(_session, rows)
        else:
            name = text.partition("\n")[0].removeprefix("# ")
            late = re.search(r"^If you are late.*?(?=\n\n|\Z)", text, re.M | re.S)
            told = " ".join(late[0].split()) if late else ""
            found.append(Plan(name, f"{stem}.html", tuple(map(_row, rows)), late=told))
    return found


def _row(cells: dict[str, str]) -> Row:
    slides = tuple(part.strip() for part in cells[SCREEN].split(" · ") if part.strip())
    return Row(
        cells["from–to"], cells["do"], slides, cells.get("say", ""), cells.get("if asked", "")
    )


def _session(cells: dict[str, str]) -> Plan:
    number, notebook, told = (cells[name] for name in ("session", WHOLE, "in the session"))
    steps, start = [], 0
    for minutes, do in re.findall(r"\*\*(\d+)\*\* (.*?)(?= \*\*\d|$)", told):
        steps.append(Row(f"{start}–{start + int(minutes)}", do))
        start += int(minutes)
    if cells["at home"]:
        steps.append(Row("at home", f"{cells['at home']}."))
    name = f"Session {number}: notebook {notebook}"
    row = Row(f"0–{start}", told, (notebook,))
    return Plan(name, f"session_{int(number):02}.html", (row,), tuple(steps))


def chapters() -> dict[str, Chapter]:
    """What teaching/ says of each notebook, by its number."""
    found = {}
    for page in sorted(TEACHING.glob("[0-9][0-9].md")):
        heading, _, body = page.read_text(encoding="utf-8").partition("\n")
        number, question = re.match(r"# (\d\d) · \[(.*)\]\(", heading).groups()
        opening = re.search(r"^\*\*Question to open with\.\*\* (.*?)\n\n", body, re.M | re.S)
        board = re.search(r"^\*\*On the board\.\*\* (.*?)\n\n```\n(.*?)```", body, re.M | re.S)
        stops = {
            row[0]: Stop(*row[2:5]) for row in tables(body) if re.fullmatch(r"\d\d\.p\d", row[0])
        }
        exits = {
            row[0]: Exit(*row[1:4]) for row in tables(body) if re.fullmatch(r"\d\d\.e\d", row[0])
        }
        told = " ".join(board[1].split())
        found[number] = Chapter(
            question, " ".join(opening[1].split()), stops, (told, board[2]), exits
        )
    return found


def tables(text: str) -> list[list[str]]:
    """All rows of the tables in a text, heads included, as lists of cells."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [cells for cells in rows if not set("".join(cells)) <= set("-: ")]
