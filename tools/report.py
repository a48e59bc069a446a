"""Write one page about a class: ``python -m tools.report FOLDER``, and tables of who passed what.

FOLDER holds what students have handed in: of each the file `work/progress.jsonl` under another
name, such as anna.jsonl. The page begins with five things to talk about. The rest is folded: which
mistakes most students have made, which predictions misled them, and what is done and open. It is
one file that loads nothing else, and everything that comes from the students' files is escaped.
"""

import argparse
import filecmp
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from pathlib import Path
from typing import NamedTuple

from attention_base.numbers import joined
from lesson.exercises import EXERCISES, PREDICTIONS, RETIRED
from lesson.progress_file import Entry, read
from lesson.progress_view import SIGNS, is_known, states_of
from lesson.question import Prediction, code_marked
from tools import gradebook, lab, notebooks

OWN = "mine.json"  # what make collect MINE=1 writes beside the files
STYLE = Path(__file__).with_suffix(".css")
NEXT = 5  # things to talk about
SHOWN = 5  # numbers of lines, or ids, that do not count
OF_PREDICTIONS = 2  # of these, where so many predictions misled somebody
MEANING = """<ul>
<li>✓ done: the exercise has passed, or the first answer to the prediction was right.</li>
<li>◐ corrected: the first answer to the prediction was wrong, a later one was right.</li>
<li>✗ tried: not right yet.</li>
<li>○ open: not answered.</li>
</ul>
<p>The first four columns count the students.</p>
"""
# The browser is told to load nothing, whatever stands in the page.
HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Report on a class: Attention from a for-loop</title>
"""


@dataclass(frozen=True)
class Student:
    """What one student has handed in.

    ``name`` stands on the page, ``file`` in what is told about lines that do not count: ``broken``
    are their numbers, and ``unknown`` counts the ids that these notebooks do not have.
    """

    name: str
    file: str
    entries: list[Entry]
    broken: list[int]
    unknown: Counter
    left_out: int = 0  # bytes at the beginning of a file that is too large
    own: Mapping[str, str] | None = None  # why parts of `mine.py` do not pass, "" for those that do
    copies: int = 0  # more files with the same lines
    since: str = ""  # from when on mistakes and answers count, "2026-01-31T09:30:00Z"

    @cached_property
    def recent(self) -> list[Entry]:
        """What counts as a mistake or an answer."""
        return [entry for entry in self.entries if entry.time >= self.since]

    @cached_property
    def first_answers(self) -> dict[str, Entry]:
        """The first answer to each prediction, where it counts."""
        answers: dict[str, Entry] = {}
        for entry in self.entries:
            if entry.kind == "predict":
                answers.setdefault(entry.id, entry)
        return {id: entry for id, entry in answers.items() if entry.time >= self.since}

    @cached_property
    def states(self) -> dict[str, str]:
        """What became of each exercise and of each prediction."""
        return states_of(self.entries)


# ---------------------------------------------------------------- what was handed in


def handed_in(folder: Path) -> list[Path]:
    """The students' files in a folder; where there are none, a sentence and the end."""
    if not folder.is_dir():
        notebooks.stop(
            f"There is no folder {folder}: name the one that holds the students' files, "
            "as in make report FROM=folder."
        )
    try:
        found = [path for path in folder.iterdir() if path.suffix.lower() == ".jsonl"]
    except OSError as error:
        notebooks.stop(f"{folder} cannot be read ({error.strerror}): get the right to read it.")
    found = [path for path in found if not path.name.startswith(".")]  # macOS adds ._anna.jsonl
    if not found:
        notebooks.stop(
            f"{folder} holds no file whose name ends with .jsonl: put the students' files there, "
            "one for each, such as anna.jsonl."
        )
    return sorted(found, key=lambda path: (path.stem.casefold(), path.name))


def without_copies(files: list[Path]) -> dict[Path, int]:
    """The files, each with the number of its copies, which are left out.

    A browser that saves anna.jsonl a second time names it anna (1).jsonl.
    """
    copies: dict[Path, int] = {}
    for path in files:
        stem = re.sub(r" ?\(\d+\)$", "", path.stem)
        original = path.with_name(f"{stem}{path.suffix}")
        if original != path and original in files and _same(original, path):
            copies[original] = copies.get(original, 0) + 1
        else:
            copies.setdefault(path, 0)
    return copies


def _same(one: Path, other: Path) -> bool:
    """Whether two files hold the same bytes; not where one cannot be read, which is told later."""
    try:
        return filecmp.cmp(one, other, shallow=False)
    except OSError:
        return False


def read_class(files: list[Path]) -> tuple[list[Student], dict[str, str]]:
    """Read all files. Those that hold nothing to read come second, with the reason."""
    students, unread = [], {}
    for path, copies in without_copies(files).items():
        name, file = printable(path.stem), printable(path.name)
        try:
            entries, broken, left_out = read(path)
        except OSError as error:
            unread[file] = f"cannot be read ({error.strerror})"
            continue
        if broken and not entries:
            unread[file] = f"is no progress file: none of its lines ({len(broken)}) can be read"
            continue
        known = [entry for entry in entries if is_known(entry)]
        unknown = Counter(entry.id for entry in entries if not is_known(entry))
        students.append(Student(name, file, known, broken, unknown, left_out, copies=copies))
    return students, unread


def with_own_files(students: list[Student], folder: Path) -> list[Student]:
    """The students with what `make collect MINE=1` has found out about their own files."""
    if not (folder / OWN).exists():
        return students
    try:
        told = json.loads((folder / OWN).read_text(encoding="utf-8"))
        if not all(isinstance(why, str) for own in told.values() for why in own.values()):
            raise ValueError
    except (OSError, ValueError, AttributeError, RecursionError):
        notebooks.stop(f"{folder / OWN} is not as make collect MINE=1 writes it: delete it.")
    return [replace(s, own=told.get(s.file.removesuffix(".jsonl"))) for s in students]


def without_names(students: list[Student]) -> list[Student]:
    """Number the students, in an order that does not follow their names."""
    mixed = sorted(students, key=lambda s: hashlib.sha256(repr(s.entries).encode()).digest())
    return [replace(s, name=str(i), file=f"student {i}") for i, s in enumerate(mixed, 1)]


def printable(name: str) -> str:
    """A file's name without what a terminal or a page cannot show."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def not_counted(students: list[Student]) -> list[str]:
    """A sentence for each file of which some lines do not count."""
    said = []
    for student in students:
        if not (student.entries or student.broken or student.unknown):
            said.append(f"{student.file}: the file is empty, so all is open for this student.")
        if n := student.copies:
            said.append(f"{student.file}: its {n + 1} copies, with the same lines, count once.")
        if student.left_out:
            said.append(f"{student.file}: the file is very large, and only its end was read.")
        if n := len(student.broken):
            which = _first([str(number) for number in student.broken])
            lines = f"one broken line is left out, line {which}"
            if n > 1:
                lines = f"{n} broken lines are left out, lines {which}"
            said.append(f"{student.file}: {lines}.")
        if n := student.unknown.total():
            lines = "one line is" if n == 1 else f"{n} lines are"
            ids = _first([f"{id}{' any more' * (id in RETIRED)}" for id in sorted(student.unknown)])
            said.append(f"{student.file}: {lines} left out, as these notebooks have no {ids}.")
    return said


def _first(names: list[str]) -> str:
    """The first of them, and how many more they are: there may be millions."""
    more = [f"{len(names) - SHOWN} more"] * (len(names) > SHOWN)
    return joined([*names[:SHOWN], *more])


# ---------------------------------------------------------------- where things stand


@dataclass(frozen=True)
class Places:
    """Where each exercise and prediction stands, the title of each notebook, and what went wrong.

    A place is what a reader finds in JupyterLab, where cells have no numbers: "notebook 03,
    section “Mask the future”, exercise 03.1".
    """

    by_id: dict[str, str]
    titles: dict[str, str]
    faults: list[str]

    def of(self, id: str) -> str:
        """The place of an exercise or prediction as HTML."""
        return code_marked(self.by_id.get(id, f"notebook {id[:2]}"))


def find_places() -> Places:
    """Look them up in the notebooks of this project."""
    places = Places({}, {}, [])
    for path in notebooks.names():
        number, section = path.name[:2], ""
        try:
            cells = lab.read(path)["cells"]
        except lab.Unreadable as error:
            places.faults.append(f"{error}, so the page does not name its sections.")
            continue
        for cell in cells:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                for title in re.findall(r"^# (.+)$", source, re.MULTILINE):
                    places.titles.setdefault(number, title)
                section = [section, *re.findall(r"^## (.+)$", source, re.MULTILINE)][-1]
                continue
            for id in re.findall(r"""\b(?:check|predict)\(["'](\d\d\.\w+)["']""", source):
                what = "exercise" if id in EXERCISES else "prediction"
                place = f"notebook {number}, section “{section}”, {what} {id}"
                places.by_id.setdefault(id, place)
    return places


# ---------------------------------------------------------------- what students have in common


class Topic(NamedTuple):
    """Something that students have in common, as HTML: a line, what it means, a row of a table."""

    order: tuple  # first what most have in common
    line: str
    more: str
    row: list[str]


def next_topics(students: list[Student], places: Places) -> list[Topic]:
    """What to talk about next: three mistakes and two predictions, or more of the others."""
    made = sorted(_made(students, places) + _nameless(students, places))
    wrong = _misled(students, places)
    n = min(len(wrong), max(OF_PREDICTIONS, NEXT - len(made)))
    return made[: NEXT - n] + wrong[:n]


def _made(students: list[Student], places: Places) -> list[Topic]:
    """The named mistakes, first what most students have made."""
    checked = [(s, e) for s in students for e in s.recent if e.kind == "check"]
    met = [(student, e.id, e.mistake) for student, e in checked if e.mistake]
    made: dict[tuple[str, str], dict[str, Student]] = {}
    for student, *mistake in met:
        made.setdefault(tuple(mistake), {})[student.name] = student
    times = Counter((id, name) for _, id, name in met)
    topics = []
    for (id, name), who in made.items():
        messages = {mistake.name: mistake.message for mistake in EXERCISES[id].mistakes}
        known = EXERCISES[id].recognises(name)  # though its message may not stand on a page
        gone = "" if known else "These notebooks do not know this mistake (any more)."
        stuck = sum(student.states[id] != "done" for student in who.values())
        told, place = code_marked(messages.get(name, gone)), places.of(id)
        exercise, names = f"{id} {code_marked(EXERCISES[id].title)}", escape(", ".join(who))
        n = f"{len(who)} of {len(students)}"
        row = [f"<b>{escape(name)}</b><p>{told}</p>", n, str(stuck), exercise, place, names]
        line = f"<b>{n}</b> made the mistake <b>{escape(name)}</b> in {exercise}"
        line += f"; {stuck} of them {'has' if stuck == 1 else 'have'} not passed" * bool(stuck)
        more = f"<p>{told}</p><p>Look again at {place}. Made by {names}.</p>"
        topics.append(Topic((-len(who), -stuck, -times[id, name], id, name), line, more, row))
    return sorted(topics)


def _nameless(students: list[Student], places: Places) -> list[Topic]:
    """Exercises where somebody has wrong answers of which none was recognised."""
    named = {(s.name, e.id) for s in students for e in s.entries if e.mistake}
    tried = {(s.name, e.id) for s in students for e in s.recent if e.status == "failed"} - named
    topics = []
    for id, exercise in EXERCISES.items():
        who = [s.name for s in students if s.states[id] == "tried" and (s.name, id) in tried]
        if who:
            n, names = len(who), escape(", ".join(who))
            label = f"{id} {code_marked(exercise.title)}"
            line = f"<b>{n} of {len(students)}</b> {'has' if n == 1 else 'have'} not passed {label}"
            line += ", and no known mistake was recognised"
            more = f"<p>Look at the code with {names}. It is {places.of(id)}.</p>"
            topics.append(Topic((-n, -n, 0, id, ""), line, more, [f"{label}: {names}"]))
    return topics


def _misled(students: list[Student], places: Places) -> list[Topic]:
    """The predictions that were first answered wrong, the most misleading one first."""
    topics = []
    for id, prediction in PREDICTIONS.items():
        first = [s.first_answers[id] for s in students if id in s.first_answers]
        wrong = Counter(entry.answer for entry in first if entry.status == "wrong")
        if not wrong:
            continue
        most = max(wrong.values())
        letters = sorted(letter for letter in wrong if wrong[letter] == most)
        told = "".join(_choice(prediction, letter) for letter in letters)
        told += f"<p>{'Each chosen' if len(letters) > 1 else 'Chosen'} by {most} of these "
        told += f"{wrong.total()}.</p>"
        n, place = f"{wrong.total()} of {len(first)}", places.of(id)
        question = code_marked(prediction.question)
        line = f"<b>{n}</b> first answered prediction <b>{id}</b> wrong: {question}"
        more = f"<p>Their most frequent answer:</p>{told}"
        more += f"<p>Look again at {place}.</p>"
        row = [f"<b>{id}</b><p>{question}</p>", n, told, place]
        topics.append(Topic((-wrong.total(), len(first), id), line, more, row))
    return sorted(topics)


# ---------------------------------------------------------------- the tables


def mistakes(students: list[Student], places: Places) -> str:
    """A row for each named mistake, first what most students have made."""
    rows = [topic.row for topic in _made(students, places)]
    if not rows:
        return "<p>No mistake that has a name was made.</p>"
    heads = ["Mistake: its name and explanation, as `check` prints them", "Students who made it"]
    heads += ["Of these, not passed yet", "Exercise", "Look again at", "Who"]
    return table("Mistakes, by the number of students who made them", heads, rows)


def misled(students: list[Student], places: Places) -> str:
    """A row for each prediction that was first answered wrong, the most misleading one first."""
    rows = [topic.row for topic in _misled(students, places)]
    if not rows:
        return "<p>No first answer to a prediction was wrong.</p>"
    heads = ["Prediction", "First answers that were wrong", "Most frequent wrong first answer"]
    return table("Predictions, by wrong first answers", [*heads, "Look again at"], rows)


def _choice(prediction: Prediction, letter: str) -> str:
    """A choice with its explanation; the letter alone where these notebooks have no such choice."""
    if choice := prediction.choices.get(letter):
        text, why = code_marked(choice.text), code_marked(choice.explanation)
        return f"<b>{letter}) {text}</b><p>{why}</p>"
    return f"<b>{escape(letter)})</b>"


def nameless(students: list[Student], places: Places) -> str:
    """Who is at an exercise with wrong answers of which none was recognised."""
    found = [f"<li>{topic.row[0]}</li>" for topic in _nameless(students, places)]
    if not found:
        return ""
    told = "Not right yet, and no known mistake was recognised. Look at the code with them:"
    return f"<p>{told}</p><ul>{''.join(found)}</ul>"


def own_files(students: list[Student]) -> str:
    """A row for each student whose own file was run: which parts pass, and why others do not."""
    rows = []
    for student in students:
        if student.own is not None:
            passed = [name for name, why in student.own.items() if not why]
            failed = [f"{name}: {why}" for name, why in student.own.items() if why]
            cells = escape(", ".join(passed)), "<br>".join(map(escape, failed))
            rows.append([escape(student.name), *cells])
    if not rows:
        return ""
    told = "<p>Each file was run. What it says of itself is the student’s word.</p>"
    heads = ["Student", "Parts that pass", "Parts that do not, and why"]
    return folded("own", "Own files", told + table("Own files, mine.py", heads, rows))


def ordered(rows: list[tuple[tuple, list[str]]]) -> list[list[str]]:
    """Rows by their keys, without these."""
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def table(caption: str, columns: list[str], rows: list[list[str]]) -> str:
    """A table of cells in HTML; the first cell of each row is its header."""
    head = "".join(f'<th scope="col">{code_marked(column)}</th>' for column in columns)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>'
        for first, *others in rows
    )
    return wide(
        f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>",
        caption,
    )


def wide(html: str, name: str) -> str:
    """A table that scrolls by itself where the window is too narrow, by keyboard too."""
    return f'<div class="wide" role="region" aria-label="{name}" tabindex="0">{html}</div>'


def grid(students: list[Student], places: Places, nb: str = "") -> str:
    """Exercises and predictions × students; notebooks that nobody has begun are only named."""
    begun = {nb} if nb else {entry.notebook for student in students for entry in student.entries}
    heads = ["Exercise or prediction"]
    heads += [f"{sign} {state}" for state, sign in SIGNS.items()]
    html = ['<table class="grid"><caption>What each student has done</caption><thead><tr>']
    html += [f'<th scope="col">{head}</th>' for head in heads]
    for name in (escape(student.name) for student in students):
        html.append(f'<th scope="col" class="student"><span title="{name}">{name}</span></th>')
    html.append("</tr></thead>")
    ids = sorted([*PREDICTIONS, *EXERCISES], key=lambda id: id[:2])  # 11.10 stays after 11.9
    for number in sorted(begun):
        title = f"{number} {code_marked(places.titles.get(number, ''))}"
        span = len(heads) + len(students)
        html.append(f'<tbody><tr><th scope="rowgroup" colspan="{span}">{title}</th></tr>')
        for id in (id for id in ids if id[:2] == number):
            states = [student.states[id] for student in students]
            label = code_marked(EXERCISES[id].title) if id in EXERCISES else "prediction"
            label += " (optional)" * (id in EXERCISES and EXERCISES[id].optional)
            html.append(f'<tr><th scope="row">{id} {label}</th>')
            counts = {state: str(states.count(state)) for state in SIGNS}
            if id in EXERCISES:
                counts["corrected"] = "–"  # it passes after some tries, or not
            html += [f"<td>{count}</td>" for count in counts.values()]
            html += [_state(state, id) for state in states]
            html.append("</tr>")
        html.append("</tbody>")
    html = [wide("".join([*html, "</table>"]), "What each student has done")]
    missing = sorted({id[:2] for id in ids} - begun)
    if missing and not nb:
        s = "s" * (len(missing) > 1)
        html.append(f"<p>Nobody has begun notebook{s} {joined(missing)}.</p>")
    return "".join(html)


def _state(state: str, id: str) -> str:
    """A cell with a sign, and a word that a screen reader reads."""
    of_answers = {"done": "right at first", "corrected": "right later", "tried": "never right"}
    word = of_answers.get(state, state) if id in PREDICTIONS else state
    return f'<td class="{state}">{SIGNS[state]}<span class="word"> {word}</span></td>'


# ---------------------------------------------------------------- the page


def page(
    students: list[Student],
    places: Places,
    faults: list[str],
    *,
    nb: str = "",
    since: str = "",
    missing: str = "",
) -> str:
    """The whole page.

    ``nb`` is the only notebook that it tells of, ``since`` the day that the teacher has named, and
    ``missing`` says who is on the roster and has handed in nothing.
    """
    only = f": notebook {nb}" if nb else ""
    from_then = f" Mistakes and first answers count since {escape(since)}." if since else ""
    topics = [
        f"<li><details><summary>{topic.line}</summary>{topic.more}</details></li>"
        for topic in next_topics(students, places)
    ]
    none = "<p>Nothing: no named mistake, and no wrong first answer.</p>"
    first = "<p>Only first answers count: whoever answers again has read an explanation.</p>"
    left_out = "".join(f"<li>{escape(fault)}</li>" for fault in faults)
    parts = [
        HEAD,
        f"<style>\n{STYLE.read_text(encoding='utf-8')}</style>\n</head>\n<body>\n<main>",
        f"<h1>Report on a class of {len(students)}{only}</h1>",
        "<p>Attention from a for-loop. It is made from the students’ progress files, which anybody "
        f"can edit: they show where to help, and are no evidence.{from_then}</p>",
        "<h2>What to talk about next</h2>",
        "\n".join(['<ol class="next">', *topics, "</ol>"]) if topics else none,
        f"<p>{escape(missing)}</p>" if missing else "",
        folded("mistakes", "Mistakes", mistakes(students, places) + nameless(students, places)),
        folded("predictions", "Predictions", first + misled(students, places)),
        folded("grid", "Exercises and students", MEANING + grid(students, places, nb)),
        own_files(students),
        folded("left-out", "What is not counted", f"<ul>{left_out}</ul>") if faults else "",
        "</main>\n</body>\n</html>\n",
    ]
    return "\n".join(filter(None, parts))


def folded(id: str, title: str, html: str) -> str:
    """A part of the page that opens with a click, or with Enter."""
    return f'<details id="{id}"><summary><h2>{title}</h2></summary>\n{html}\n</details>'


def moment(day: str) -> str:
    """When a day begins on this computer, as progress files have it: in UTC."""
    try:
        then = datetime.fromisoformat(day).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        notebooks.stop(f"SINCE has to be a date, such as 2026-01-31, and {day} is none.")
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")


def main(arguments: list[str] | None = None) -> None:
    """Read the folder, write the page and the tables, and say what did not count."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", help="the folder with the students' files")
    parser.add_argument("--out", default="", help="where to write; without: report.html in FOLDER")
    parser.add_argument("--no-names", action="store_true", help="number the students")
    parser.add_argument("--nb", default="", help="the only notebook to tell of, such as 05")
    parser.add_argument("--since", default="", help="the day from when on mistakes count")
    parser.add_argument("--roster", default="", help="a CSV file with all who are in the class")
    parser.add_argument("--csv", default="", help="where to write a table of who has passed what")
    options = parser.parse_args(arguments)
    if not options.folder:
        notebooks.stop("Say where the students' files are: make report FROM=folder.")
    folder = Path(options.folder).expanduser()
    out = Path(options.out).expanduser() if options.out else folder / "report.html"
    if out.suffix != ".html":
        notebooks.stop(f"The report is a page, so OUT has to end with .html, and {out} does not.")
    nb = notebooks.chosen(options.nb)[0].name[:2] if options.nb else ""
    since = moment(options.since) if options.since else ""
    students, unread = read_class(handed_in(folder))
    roster = gradebook.read(Path(options.roster).expanduser()) if options.roster else None
    csv = gradebook.place(options.csv, roster) if options.csv else None
    if not out.parent.is_dir():
        notebooks.stop(f"There is no folder {out.parent} for the report: make it, or change OUT.")
    missing = [f"{file} {why}." for file, why in unread.items()]
    if not students:
        notebooks.stop("\n".join([*missing, "So there is nothing to report."]))
    places, students = find_places(), with_own_files(students, folder)
    absent = roster.told([s.name for s in students]) if roster else []
    shown = without_names(students) if options.no_names else students
    hidden = [f"A file {why}." for why in unread.values()]
    faults = [*(hidden if options.no_names else missing), *places.faults, *not_counted(shown)]
    shown = [
        replace(s, since=since, entries=[e for e in s.entries if nb in ("", e.notebook)])
        for s in shown
    ]
    told = " ".join(line.split(":")[0] + "." if options.no_names else line for line in absent)
    html = page(shown, places, faults, nb=nb, since=options.since, missing=told)
    notebooks.write_whole(out, html)
    for line in (*places.faults, *not_counted(students), *absent):
        print(line)
    n = len(students)
    print(f"{out} tells of {n} student{'s' * (n != 1)}: open it in a browser.")
    if csv:
        work = {student.name: student.entries for student in shown}
        print(gradebook.write(csv, work, None if options.no_names else roster))
    if missing:
        notebooks.stop("\n".join(missing))


if __name__ == "__main__":
    main()
