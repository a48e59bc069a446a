"""make report CSV=… ROSTER=…: who is missing, and tables that spreadsheets and gradebooks read.

`canvas` and `moodle` read a table as these do at an import: the rules are those of Canvas's
lib/gradebook_importer.rb, and of docs.moodle.org, "Grade import", with grade/import/csv.
"""

import csv
import io
import json
import re

import pytest

from lesson.exercises import EXERCISES
from tests.tools.invented import NAMES, write_class
from tools import gradebook, report


@pytest.fixture
def handed_in(tmp_path):
    folder = tmp_path / "handed in"
    folder.mkdir()
    return folder


def write(folder, name, *lines):
    """A progress file with checks: id and status, in the order of the minutes."""
    said = [
        {
            "version": 1,
            "time": f"2026-01-31T09:{minute:02d}:00Z",
            "notebook": id[:2],
            "id": id,
            "kind": "check",
            "status": status,
        }
        for minute, (id, status) in enumerate(lines)
    ]
    text = "".join(json.dumps(line) + "\n" for line in said)
    (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")


def rows_of(path):
    """The rows of a table, and the mark by which Excel knows UTF-8."""
    text = path.read_bytes().decode()
    assert text[0] == "\ufeff"
    return list(csv.reader(io.StringIO(text[1:], newline="")))


def roster(path, *rows, between=","):
    text = io.StringIO()
    csv.writer(text, delimiter=between).writerows(rows)
    path.write_bytes(text.getvalue().encode())
    return path


# ---------------------------------------------------------------- what Canvas and Moodle read


def canvas(path, by_id):
    """What Canvas would give: points by assignment and student, and the points possible."""
    header, *rows = rows_of(path)
    assert len(header) > 3 and "Student" in header[0] and "ID" in header[1], "Invalid header row"
    own = 3
    if re.search(r"SIS\s+Login\s+ID", header[2]):
        own = 4
    elif re.search(r"SIS\s+User\s+ID", header[2]) and re.search(r"SIS\s+Login\s+ID", header[3]):
        own = 5 + bool(re.search(r"Integration\s+ID", header[4]))
    assert "Section" in header[own - 1], "Invalid header row"
    assignments, possible, given = header[own:], {}, {}
    for name in assignments:  # these would be other columns of Canvas
        assert not re.search(r"\(\d+\)$|(Current|Final|Override) (Score|Points|Grade|Status)", name)
    assert len(set(assignments)) == len(assignments)
    for row in rows:
        assert len(row) == len(header)
        points = dict(zip(assignments, row[own:], strict=True))
        if "Points Possible" in row[0]:
            possible = {name: float(most) for name, most in points.items()}
        else:
            given[by_id[row[1]]] = {name: float(n) if n else None for name, n in points.items()}
    return possible, given


def moodle(path, by, users):
    """What Moodle would give, of 100 points, where ``by`` is mapped to a field of the users."""
    header, *rows = rows_of(path)
    key, given = header.index(by), {}
    grades = [i for i, name in enumerate(header) if re.match(r"\d\d\.", name)]
    for row in rows:
        assert len(row) == len(header) > 1
        user = users[row[key]]  # Moodle ends the import where it knows none
        given[user] = {header[i]: None if row[i] == "-" else float(row[i]) for i in grades}
        assert all(n is None or 0 <= n <= 100 for n in given[user].values())
    return given


def export_of_canvas(path, names):
    """A gradebook of Canvas, with its rows that are no student, and other columns."""
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Essay (77)", "Final Score"]
    by_hand = ["", "", "", "", "", "Manual Posting", ""]
    points = ["    Points Possible", "", "", "", "", "10", "(read only)"]
    rows = [[name, str(100 + i), f"S{i}", f"u{i}", "A", "7", "70"] for i, name in enumerate(names)]
    test = ["Student, Test", "999", "", "c0ffee", "A", "", ""]
    return roster(path, head, by_hand, points, *rows, test)


def test_canvas_and_moodle_import_a_class_of_thirty(handed_in, tmp_path):
    write_class(handed_in)
    absent = "Nemo, Nils"
    path = export_of_canvas(tmp_path / "canvas.csv", [*NAMES, absent])
    report.main([str(handed_in), "--roster", str(path), "--csv", str(tmp_path / "c.csv")])
    by_id = {str(100 + i): name for i, name in enumerate([*NAMES, absent])}
    possible, given = canvas(tmp_path / "c.gradebook.csv", by_id)
    assert set(given) == {*NAMES, absent} and set(possible.values()) == {1}

    head = ["First name", "Last name", "ID number", "Email address", "Quiz: one (Real)"]
    people = [[name, "Doe", "", f"s{i}@x.org", "5"] for i, name in enumerate([*NAMES, absent])]
    path = roster(tmp_path / "moodle.csv", head, *people)
    for name in NAMES:  # as Moodle names them
        (handed_in / f"{name}.jsonl").rename(handed_in / f"{name} Doe.jsonl")
    report.main([str(handed_in), "--roster", str(path), "--csv", str(tmp_path / "m.csv")])
    users = {row[3]: row[0] for row in people}
    marks = moodle(tmp_path / "m.gradebook.csv", "Email address", users)

    # Both say what the table of exercises says, and nothing of who has handed in nothing.
    _, *rows = rows_of(tmp_path / "c.csv")
    done = {(name.removeprefix("'"), title): status == "done" for name, title, status, *_ in rows}
    assert {name for name, _ in done} == set(NAMES) and {*done.values()} == {True, False}
    for (name, title), passed in done.items():
        assert given[name][title] == passed and marks[name][title] == 100 * passed
    assert set(given[absent].values()) == set(marks[absent].values()) == {None}


# ---------------------------------------------------------------- the table of exercises


def test_tries_count_until_the_exercise_first_passes(handed_in, tmp_path):
    stub, no, yes = [("01.1", status) for status in ("not attempted", "failed", "passed")]
    write(handed_in, "anna", stub, no, no, yes, no, yes, ("01.3", "not attempted"))
    write(handed_in, "Bela", no, no)
    report.main([str(handed_in), "--csv", str(tmp_path / "out.csv")])
    header, *rows = rows_of(tmp_path / "out.csv")
    assert header == ["student", "exercise", "status", "tries", "first pass"]
    said = {(row[0], row[1][:4]): row[2:] for row in rows}
    assert said["anna", "01.1"] == ["done", "3", "2026-01-31T09:03:00Z"]
    assert said["anna", "01.3"] == ["open", "0", ""]
    assert said["Bela", "01.1"] == ["tried", "2", ""]
    assert {row[1] for row in rows} == {
        gradebook.title(id) for id in EXERCISES if id[:2] == "01"
    }, "notebooks that nobody has begun have no rows"


def test_names_arrive_whole_and_no_spreadsheet_computes_them(handed_in, tmp_path):
    names = ["=SUM(A1)", "+49 Ann", "-Bo", "@cy", 'A "B", C', "Łukasz; Żak", "李 娜"]
    for name in names:
        write(handed_in, name, ("01.1", "passed"))
    line = (handed_in / "李 娜.jsonl").read_text().replace("2026-01-31T09:00:00Z", "=A1")
    (handed_in / "李 娜.jsonl").write_text(line)  # a student may have written that
    report.main([str(handed_in), "--csv", str(tmp_path / "out.csv")])
    _, *rows = rows_of(tmp_path / "out.csv")
    assert {row[0].removeprefix("'") for row in rows} == set(names)
    cells = [cell for row in rows for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    assert "'=A1" in cells


def test_no_title_is_read_as_a_number_or_twice():
    titles = [gradebook.title(id) for id in EXERCISES]
    assert len(set(titles)) == len(titles)
    for title in titles:
        assert re.fullmatch(r"\d\d\.\w+ \D.*", title) and "`" not in title


def test_without_names_the_table_has_numbers_and_there_is_no_gradebook(handed_in, tmp_path):
    write(handed_in, "anna", ("01.1", "passed"))
    write(handed_in, "bela", ("01.1", "failed"))
    path = export_of_canvas(tmp_path / "class.csv", ["anna", "bela", "carl"])
    more = ["--roster", str(path), "--csv", str(tmp_path / "out.csv"), "--no-names"]
    report.main([str(handed_in), *more])
    assert {row[0] for row in rows_of(tmp_path / "out.csv")[1:]} == {"1", "2"}
    assert not (tmp_path / "out.gradebook.csv").exists()
    page = (handed_in / "report.html").read_text()
    assert "Nothing handed in, 1 of 3." in page and not re.search("anna|bela|carl", page)


# ---------------------------------------------------------------- the roster


@pytest.mark.parametrize(
    ("rows", "between"),
    [
        ([["Anna Meier"], ["bela"], ["Carl Öz"]], ","),  # no header
        ([["Name", "Email"], ["Meier", "Anna.Meier@x.org"], ["Bela B.", "bela@x.org"],
          ["Carl Öz", ""]], ";"),
        ([["First name", "Surname", "Email address"], ["Anna", "Meier", "a@x.org"],
          ["Bela", "Meier", "bela@x.org"], ["Carl", "Öz", "c@x.org"]], "\t"),
        ([["Student", "ID", "SIS Login ID", "Section"], ["    Points Possible", "", "", ""],
          ["Meier, Anna", "1", "am", "A"], ["Meier, Bela", "2", "bela", "A"],
          ["Öz, Carl", "3", "c", "A"]], ","),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_who_has_handed_in_nothing_is_named(rows, between, mark, handed_in, tmp_path, capsys):
    """A file is found by a name, a login or an address, whatever its case and its hyphens."""
    for name in ("anna_meier", "BELA", "Dora (1)"):
        write(handed_in, name, ("01.1", "passed"))
    path = roster(tmp_path / "class.csv", *rows, between=between)
    path.write_bytes(mark.encode() + path.read_bytes())
    report.main([str(handed_in), "--roster", str(path)])
    said, page = capsys.readouterr().out, (handed_in / "report.html").read_text()
    (missing,) = re.findall(r"Nothing handed in, 1 of 3: (.*)\.", said)
    assert sorted(re.findall(r"\w+", missing)) == ["Carl", "Öz"]
    for line in (f"Nothing handed in, 1 of 3: {missing}.",
                 "Handed in, and not found in class.csv, 1: Dora (1)."):  # fmt: skip
        assert line in said and line in page


def test_a_name_that_two_on_the_roster_have_means_neither(handed_in, tmp_path):
    path = roster(tmp_path / "class.csv", ["Login", "Name"], ["a1", "Kim Lee"], ["a2", "kim lee"])
    found = gradebook.read(path)
    assert [found.find(name) for name in ("a1", "A2", "Kim Lee", "…")] == [0, 1, None, None]


def test_of_two_columns_with_one_name_the_first_counts(handed_in, tmp_path):
    head = ["Student", "ID", "Section", "Essay", "Essay", "student"]
    path = roster(tmp_path / "class.csv", head, ["Anna", "1", "A", "3", "4", "other"])
    found = gradebook.read(path)
    assert found.kind == "Canvas" and gradebook.name_of(found.rows[0]) == "Anna"


@pytest.mark.parametrize(
    ("content", "arguments", "says"),
    [
        (b"Name\nZo\xeb\n", [], "is no CSV file in UTF-8: save it as one"),
        (b"Name\n\n", [], "has no student: it needs a row for each"),
        (b"", [], "has no student"),
        (None, [], "cannot be read (No such file or directory): name a CSV file"),
        (b"anna\n", ["--csv", "{}/class.csv"], "would replace {}/class.csv: give CSV another"),
        (b"anna\n", ["--csv", "{}/out.xlsx"], "CSV has to end with .csv, not as {}/out.xlsx"),
        (b"anna\n", ["--csv", "{}/none/out.csv"], "There is no folder {}/none for the table"),
        (b"anna\n", ["--nb", "77"], "There is no notebook 77: choose one"),
        (b"anna\n", ["--since", "yesterday"], "SINCE has to be a date, such as 2026-01-31"),
    ],
)
def test_what_cannot_be_is_told_and_nothing_written(
    content, arguments, says, handed_in, tmp_path, capsys
):
    write(handed_in, "anna", ("01.1", "passed"))
    path = tmp_path / "class.csv"
    if content is not None:
        path.write_bytes(content)
    arguments = [part.format(tmp_path) for part in arguments]
    with pytest.raises(SystemExit) as end:
        report.main([str(handed_in), "--roster", str(path), *arguments])
    said = capsys.readouterr().err + (end.value.code if isinstance(end.value.code, str) else "")
    assert says.format(tmp_path) in said and said.strip().count("\n") == 0
    assert [each.name for each in handed_in.iterdir()] == ["anna.jsonl"]
    assert {each.name for each in tmp_path.iterdir()} <= {"class.csv", "handed in"}
