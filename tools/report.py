"""Write one page about a class: ``python -m tools.report FOLDER [--out FILE] [--no-names]``.

FOLDER holds what students have handed in: of each the file `work/progress.jsonl` under another
name, such as anna.jsonl. The page says which mistakes most students have made, which predictions
misled them, and what is done and open. It is one file that loads nothing else, and everything
that comes from the students' files is escaped.
"""

import argparse
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path

from attention_base.numbers import joined
from lesson.exercises import EXERCISES, PREDICTIONS, RETIRED
from lesson.progress_file import Entry, read
from lesson.progress_view import SIGNS, is_known, states_of
from lesson.question import Prediction, code_marked
from tools import lab, notebooks

OWN = "mine.json"  # what make collect MINE=1 writes beside the files
STYLE = Path(__file__).with_suffix(".css")
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

    @cached_property
    def first_answers(self) -> dict[str, Entry]:
        """The first answer to each prediction."""
        answers: dict[str, Entry] = {}
        for entry in self.entries:
            if entry.kind == "predict":
                answers.setdefault(entry.id, entry)
        return answers

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
        found = [path for path in sorted(folder.iterdir()) if path.suffix.lower() == ".jsonl"]
    except OSError as error:
        notebooks.stop(f"{folder} cannot be read ({error.strerror}): get the right to read it.")
    found = [path for path in found if not path.name.startswith(".")]  # macOS adds ._anna.jsonl
    if not found:
        notebooks.stop(
            f"{folder} holds no file whose name ends with .jsonl: put the students' files there, "
            "one for each, such as anna.jsonl."
        )
    return found


def read_class(files: list[Path]) -> tuple[list[Student], dict[str, str]]:
    """Read all files. Those that hold nothing to read come second, with the reason."""
    students, unread = [], {}
    for path in files:
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
        students.append(Student(name, file, known, broken, unknown, left_out))
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
        if student.left_out:
            said.append(f"{student.file}: the file is very large, and only its end was read.")
        if n := len(student.broken):
            which = joined([str(number) for number in student.broken])
            lines = f"one broken line is left out, line {which}"
            if n > 1:
                lines = f"{n} broken lines are left out, lines {which}"
            said.append(f"{student.file}: {lines}.")
        if n := student.unknown.total():
            lines = "one line is" if n == 1 else f"{n} lines are"
            ids = joined([f"{id}{' any more' * (id in RETIRED)}" for id in sorted(student.unknown)])
            said.append(f"{student.file}: {lines} left out, as these notebooks have no {ids}.")
    return said


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


# ---------------------------------------------------------------- the tables


def mistakes(students: list[Student], places: Places) -> str:
    """A row for each named mistake, first what most students have made."""
    met = [(student, e.id, e.mistake) for student in students for e in student.entries if e.mistake]
    made: dict[tuple[str, str], dict[str, Student]] = {}
    for student, *mistake in met:
        made.setdefault(tuple(mistake), {})[student.name] = student
    times = Counter((id, name) for _, id, name in met)
    rows = []
    for (id, name), who in made.items():
        messages = {mistake.name: mistake.message for mistake in EXERCISES[id].mistakes}
        known = EXERCISES[id].recognises(name)  # though its message may not stand on a page
        gone = "" if known else "These notebooks do not know this mistake (any more)."
        stuck = sum(student.states[id] != "done" for student in who.values())
        row = [
            f"<b>{escape(name)}</b><p>{code_marked(messages.get(name, gone))}</p>",
            f"{len(who)} of {len(students)}",
            str(stuck),
            f"{id} {code_marked(EXERCISES[id].title)}",
            places.of(id),
            escape(", ".join(who)),
        ]
        rows.append(((-len(who), -stuck, -times[id, name], id, name), row))
    if not rows:
        return "<p>No mistake that has a name was made.</p>"
    heads = ["Mistake: its name and explanation, as `check` prints them", "Students who made it"]
    heads += ["Of these, not passed yet", "Exercise", "Look again at", "Who"]
    return table("Mistakes, by the number of students who made them", heads, ordered(rows))


def misled(students: list[Student], places: Places) -> str:
    """A row for each prediction that was first answered wrong, the most misleading one first."""
    rows = []
    for id, prediction in PREDICTIONS.items():
        first = [s.first_answers[id] for s in students if id in s.first_answers]
        wrong = Counter(entry.answer for entry in first if entry.status == "wrong")
        if not wrong:
            continue
        most = max(wrong.values())
        letters = sorted(letter for letter in wrong if wrong[letter] == most)
        told = "".join(_choice(prediction, letter) for letter in letters)
        chosen = "Each chosen" if len(letters) > 1 else "Chosen"
        row = [
            f"<b>{id}</b><p>{code_marked(prediction.question)}</p>",
            f"{wrong.total()} of {len(first)}",
            f"{told}<p>{chosen} by {most} of these {wrong.total()}.</p>",
            places.of(id),
        ]
        rows.append(((-wrong.total(), len(first), id), row))
    if not rows:
        return "<p>No first answer to a prediction was wrong.</p>"
    heads = ["Prediction", "First answers that were wrong", "Most frequent wrong first answer"]
    return table("Predictions, by wrong first answers", [*heads, "Look again at"], ordered(rows))


def _choice(prediction: Prediction, letter: str) -> str:
    """A choice with its explanation; the letter alone where these notebooks have no such choice."""
    if choice := prediction.choices.get(letter):
        text, why = code_marked(choice.text), code_marked(choice.explanation)
        return f"<b>{letter}) {text}</b><p>{why}</p>"
    return f"<b>{escape(letter)})</b>"


def nameless(students: list[Student]) -> str:
    """Who is at an exercise with wrong answers of which none was recognised."""
    named = {(s.name, e.id) for s in students for e in s.entries if e.mistake}
    found = []
    for id, exercise in EXERCISES.items():
        stuck = [s.name for s in students if s.states[id] == "tried" and (s.name, id) not in named]
        if stuck:
            found.append(f"<li>{id} {code_marked(exercise.title)}: {escape(', '.join(stuck))}</li>")
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
    return f'<h2 id="own">Own files</h2>{told}' + table("Own files, mine.py", heads, rows)


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


def grid(students: list[Student], places: Places) -> str:
    """Exercises and predictions × students; notebooks that nobody has begun are only named."""
    begun = {entry.notebook for student in students for entry in student.entries}
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
    if missing := sorted({id[:2] for id in ids} - begun):
        s = "s" * (len(missing) > 1)
        html.append(f"<p>Nobody has begun notebook{s} {joined(missing)}.</p>")
    return "".join(html)


def _state(state: str, id: str) -> str:
    """A cell with a sign, and a word that a screen reader reads."""
    of_answers = {"done": "right at first", "corrected": "right later", "tried": "never right"}
    word = of_answers.get(state, state) if id in PREDICTIONS else state
    return f'<td class="{state}">{SIGNS[state]}<span class="word"> {word}</span></td>'


# ---------------------------------------------------------------- the page


def page(students: list[Student], places: Places, faults: list[str]) -> str:
    """The whole page."""
    n = len(students)
    link = ' · <a href="#left-out">What is not counted</a>' if faults else ""
    left_out = ['<h2 id="left-out">What is not counted</h2>', "<ul>"]
    left_out += [f"<li>{escape(fault)}</li>" for fault in faults]
    parts = [
        HEAD,
        f"<style>\n{STYLE.read_text(encoding='utf-8')}</style>\n</head>\n<body>\n<main>",
        f"<h1>Report on a class of {n}</h1>",
        "<p>Attention from a for-loop. What the students' progress files say, "
        "and what to talk about first.</p>",
        '<nav aria-label="On this page"><a href="#mistakes">Mistakes</a> · '
        '<a href="#predictions">Predictions</a> · <a href="#grid">Exercises and students</a>'
        f"{link}</nav>",
        '<h2 id="mistakes">Mistakes</h2>',
        mistakes(students, places),
        nameless(students),
        '<h2 id="predictions">Predictions</h2>',
        "<p>Only first answers count here: whoever answers again has read an explanation.</p>",
        misled(students, places),
        '<h2 id="grid">Exercises and students</h2>',
        "<ul><li>✓ done: the exercise has passed, or the first answer to the prediction was right."
        "</li>"
        "<li>◐ corrected: the first answer to the prediction was wrong, a later one was right.</li>"
        "<li>✗ tried: not right yet.</li><li>○ open: not answered.</li></ul>",
        "<p>The first four columns count the students.</p>",
        grid(students, places),
        own_files(students),
        *([*left_out, "</ul>"] if faults else []),
        "</main>\n</body>\n</html>\n",
    ]
    return "\n".join(parts)


def main(arguments: list[str] | None = None) -> None:
    """Read the folder, write the page, and say what did not count."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", help="the folder with the students' files")
    parser.add_argument("--out", default="", help="where to write; without: report.html in FOLDER")
    parser.add_argument("--no-names", action="store_true", help="number the students")
    options = parser.parse_args(arguments)
    if not options.folder:
        notebooks.stop("Say where the students' files are: make report FROM=folder.")
    folder = Path(options.folder).expanduser()
    out = Path(options.out).expanduser() if options.out else folder / "report.html"
    if out.suffix != ".html":
        notebooks.stop(f"The report is a page, so OUT has to end with .html, and {out} does not.")
    students, unread = read_class(handed_in(folder))
    if not out.parent.is_dir():
        notebooks.stop(f"There is no folder {out.parent} for the report: make it, or change OUT.")
    missing = [f"{file} {why}." for file, why in unread.items()]
    if not students:
        notebooks.stop("\n".join([*missing, "So there is nothing to report."]))
    places, students = find_places(), with_own_files(students, folder)
    shown = without_names(students) if options.no_names else students
    hidden = [f"A file {why}." for why in unread.values()]
    faults = [*(hidden if options.no_names else missing), *places.faults, *not_counted(shown)]
    notebooks.write_whole(out, page(shown, places, faults))
    for line in (*places.faults, *not_counted(students)):
        print(line)
    n = len(students)
    print(f"{out} tells of {n} student{'s' * (n != 1)}: open it in a browser.")
    if missing:
        notebooks.stop("\n".join(missing))


if __name__ == "__main__":
    main()
