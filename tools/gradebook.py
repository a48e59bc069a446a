"""What a teacher's other programs write and read: who is in a class, and who has passed what.

``CSV=out.csv`` has a row for each student and exercise, for a spreadsheet. Canvas and Moodle import
no such table. Both want what they export themselves: a row for each student, and a column for each
grade. So where ROSTER is such an export, out.gradebook.csv has its rows, with those of its columns
that say who is who, and a column for each exercise:

- Canvas (its gradebook's export and import; ``lib/gradebook_importer.rb``): Student, ID, where they
  are in use SIS User ID and SIS Login ID, and Section, then the assignments. The first row below
  says "Points Possible". Nothing is no grade.
- Moodle (docs.moodle.org, "Grade import"; ``grade/import/csv``): any columns. The teacher says at
  the import which of them tells users apart (email address, ID number or username), and what each
  grade belongs to; a new grade item has 100 points. "-" is no grade.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lesson.exercises import EXERCISES
from lesson.progress_file import Entry
from lesson.progress_view import state
from tools import notebooks

# The columns of an export that say who is who, in small letters.
WHO = {
    "Canvas": ["student", "id", "sis user id", "sis login id", "integration id", "root account"],
    "Moodle": ["first name", "last name", "surname", "id number", "institution", "department"],
}
WHO["Canvas"] += ["section"]
WHO["Moodle"] += ["username", "email address"]
HEADS = {*WHO["Canvas"], *WHO["Moodle"], "name", "full name", "login", "email"}  # one is a header
# What several students may have in common.
SHARED = {"first name", "last name", "surname", "institution", "department", "section"}
# Rows of Canvas that are no student: points, what is posted by hand, and its test student.
NO_STUDENT = re.compile(r"\s*(Points Possible|Student, Test$|(Muted|Manual Posting.*)?$)", re.I)
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet computes what begins so


@dataclass(frozen=True)
class Roster:
    """All who are in a class: the rows of a CSV file by column, or by number without a header."""

    path: Path
    columns: dict[str, str]  # in small letters, each with how the file spells it
    rows: list[dict[str, str]]

    @property
    def kind(self) -> str:
        """Whose export it is: "Canvas", "Moodle", or "" where it is none."""
        if list(self.columns)[:2] == ["student", "id"] and "section" in self.columns:
            return "Canvas"
        return "Moodle" if {"id number", "username", "email address"} & self.columns.keys() else ""

    @cached_property
    def _by_name(self) -> dict[str, set[int]]:
        """The numbers of the rows that a file's name may mean, in letters that are compared."""
        found: dict[str, set[int]] = {}
        for i, row in enumerate(self.rows):
            own = [cell for column, cell in row.items() if column not in SHARED]
            last, _, first = name_of(row).partition(",")
            own += [name_of(row), f"{first} {last}", *(c.split("@")[0] for c in own if "@" in c)]
            for name in filter(None, map(compared, own)):
                found.setdefault(name, set()).add(i)
        return found

    def find(self, name: str) -> int | None:
        """The number of the row that a file's name means; None for none, and for several."""
        rows = self._by_name.get(compared(name), set())
        return min(rows) if len(rows) == 1 else None

    def told(self, names: Iterable[str]) -> list[str]:
        """Who has handed in nothing, and who has handed in and is not on the roster."""
        by_name = {name: self.find(name) for name in names}
        absent = [name_of(r) for i, r in enumerate(self.rows) if i not in by_name.values()]
        others = [name for name, row in by_name.items() if row is None]
        told = {
            f"Nothing handed in, {len(absent)} of {len(self.rows)}": absent,
            f"Handed in, and not found in {self.path.name}, {len(others)}": others,
        }
        # A name may have a comma.
        listed = {what: "; ".join(sorted(who, key=str.casefold)) for what, who in told.items()}
        return [f"{what}: {who}." for what, who in listed.items() if who]


def read(path: Path) -> Roster:
    """Read a roster: any CSV file with a row for each student, with or without a header.

    Raises
    ------
    SystemExit
        In one sentence, where it cannot be read or has no student.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        first = re.sub(r'"[^"]*"', "", text.partition("\n")[0])
        between = max(",;\t", key=first.count)
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=between))
    except OSError as error:
        notebooks.stop(f"ROSTER, {path}, cannot be read ({error.strerror}): name a CSV file.")
    except (UnicodeDecodeError, csv.Error):
        notebooks.stop(f"ROSTER, {path}, is no CSV file in UTF-8: save it as one (“CSV UTF-8”).")
    rows = [cells for row in rows if any(cells := [cell.strip() for cell in row])]
    header = rows[0] if rows and HEADS & {*map(str.casefold, rows[0])} else []
    names = [cell.casefold() for cell in header]
    found = [
        # Of two columns with one name the first counts.
        dict(reversed([*zip(names or map(str, range(len(row))), row, strict=False)]))
        for row in rows[bool(header) :]
        if not (names[:1] == ["student"] and NO_STUDENT.match(row[0]))
    ]
    if not found:
        notebooks.stop(f"ROSTER, {path}, has no student: it needs a row for each.")
    return Roster(path, dict(zip(names, header, strict=True)), found)


def name_of(row: Mapping[str, str]) -> str:
    """What a student on a roster is called."""
    for column in ("student", "name", "full name"):
        if row.get(column):
            return row[column]
    both = [row.get("first name"), row.get("last name") or row.get("surname")]
    return " ".join(filter(None, both)) or next(filter(None, row.values()))


def compared(name: str) -> str:
    """A name without what may differ in a file's name: case, and signs that are no letters."""
    name = unicodedata.normalize("NFKC", name).casefold().replace("_", " ")
    return " ".join(re.findall(r"\w+", name))


# ---------------------------------------------------------------- the tables


def place(name: str, roster: Roster | None) -> Path:
    """Where the table of exercises is to be written.

    Raises
    ------
    SystemExit
        In one sentence, where that cannot be, or would replace the roster.
    """
    path = Path(name).expanduser()
    if path.suffix != ".csv":
        notebooks.stop(f"The table is for a spreadsheet: CSV has to end with .csv, not as {path}.")
    if not path.parent.is_dir():
        notebooks.stop(f"There is no folder {path.parent} for the table: make it, or change CSV.")
    if roster and roster.path.resolve() in (path.resolve(), beside(path).resolve()):
        notebooks.stop(f"The table would replace {roster.path}: give CSV another name.")
    return path


def beside(path: Path) -> Path:
    """Where the table for Canvas or Moodle stands."""
    return path.with_suffix(".gradebook.csv")


def write(path: Path, work: Mapping[str, list[Entry]], roster: Roster | None) -> str:
    """Write the table of all exercises in notebooks that somebody has begun, and the gradebook.

    ``work`` has what each student did, by name. Returns what is to be told.
    """
    begun = {entry.notebook for entries in work.values() for entry in entries}
    ids = [id for id in EXERCISES if id[:2] in begun]
    _write(path, exercises(work, ids))
    told = f"{path} has a row for each student and exercise, for a spreadsheet."
    if not roster or not roster.kind:
        return f"{told} For one that Canvas or Moodle imports, name an export of theirs: ROSTER."
    _write(beside(path), gradebook(work, ids, roster))
    return f"{told}\n{beside(path)} has a row for each student, for the import of {roster.kind}."


def _write(path: Path, rows: list[list[str]]) -> None:
    """Write a CSV file; with a mark of UTF-8, without which Excel shows Zoë as ZoÃ«."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    notebooks.write_whole(path, text.getvalue().encode("utf-8-sig"))


def title(id: str) -> str:
    """What an exercise is called in a table: 11.10 alone would be the number 11.1 there."""
    return f"{id} {EXERCISES[id].title}".replace("`", "") + " (optional)" * EXERCISES[id].optional


def exercises(work: Mapping[str, list[Entry]], ids: list[str]) -> list[list[str]]:
    """A row for each student and exercise: what became of it, tries until it passed, and when."""
    rows = [["student", "exercise", "status", "tries", "first pass"]]
    for name, entries in work.items():
        for id in ids:
            own = [e for e in entries if e.id == id and e.status != "not attempted"]
            passed = [i for i, entry in enumerate(own) if entry.status == "passed"]
            tries = passed[0] + 1 if passed else len(own)
            when = own[passed[0]].time if passed else ""
            rows.append([as_text(name), title(id), state(own), str(tries), as_text(when)])
    return rows


def gradebook(work: Mapping[str, list[Entry]], ids: list[str], roster: Roster) -> list[list[str]]:
    """The roster's own rows, to the letter, with a column for each exercise: all points or none."""
    canvas = roster.kind == "Canvas"
    points, none = ("1", "") if canvas else ("100", "-")
    kept = [column for column in roster.columns if column in WHO[roster.kind]]
    rows = [[*(roster.columns[column] for column in kept), *map(title, ids)]]
    if canvas:
        rows.append(["    Points Possible", *[""] * (len(kept) - 1), *[points] * len(ids)])
    done: dict[int | None, set[str]] = {}
    for name, entries in work.items():
        passed = {entry.id for entry in entries if entry.status == "passed"}
        done.setdefault(roster.find(name), set()).update(passed)
    for i, row in enumerate(roster.rows):
        grades = [none if i not in done else points if id in done[i] else "0" for id in ids]
        rows.append([*(row.get(column, "") for column in kept), *grades])
    return rows


def as_text(cell: str) -> str:
    """A cell that no spreadsheet computes: behind an apostrophe, it is a text there."""
    return f"'{cell}" if cell.startswith(FORMULA) else cell
