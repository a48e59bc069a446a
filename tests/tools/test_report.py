"""make report: what its page says of a made-up class, and what it says where it cannot."""

import errno
import json
import re
import time
from collections import Counter

import pytest

from lesson import CheckFailed, check, progress_file
from lesson.builds import build
from lesson.exercises import EXERCISES, PREDICTIONS, RETIRED
from tests.helpers.pictures import reading
from tools import lint_notebooks, notebooks, report

SOFTMAX = EXERCISES["03.1"].mistakes
LOOP = EXERCISES["01.1"].mistakes
VERSION = {"version": 1, "time": "2026-01-31T09:30:00Z"}


def checked(id, status, mistake=None):
    line = VERSION | {"notebook": id[:2], "id": id, "kind": "check", "status": status}
    return line | ({"mistake": mistake.name} if mistake else {})


def predicted(id, letter):
    status = "right" if letter == PREDICTIONS[id].answer else "wrong"
    line = VERSION | {"notebook": id[:2], "id": id, "kind": "predict", "status": status}
    return line | {"answer": letter}


def wrong(id):
    return next(letter for letter in PREDICTIONS[id].choices if letter != PREDICTIONS[id].answer)


CLASS = {
    "anna": [
        checked("03.1", "not attempted"),
        *[checked("03.1", "failed", SOFTMAX[0])] * 5,
        checked("03.1", "failed", SOFTMAX[2]),
        checked("03.1", "passed"),
        predicted("03.p1", wrong("03.p1")),
        predicted("03.p1", PREDICTIONS["03.p1"].answer),
        predicted("03.p2", PREDICTIONS["03.p2"].answer),
    ],
    "bela": [
        checked("03.1", "failed", SOFTMAX[2]),
        checked("01.1", "failed", LOOP[0]),
        checked("01.1", "passed"),
        checked("01.1", "failed"),
        predicted("03.p1", wrong("03.p1")),
        predicted("03.p2", wrong("03.p2")),
    ],
    "Zoë O'Neil": [
        checked("01.1", "failed", LOOP[0]),
        checked("01.1", "passed"),
        checked("01.3", "not attempted"),
        predicted("03.p1", PREDICTIONS["03.p1"].answer),
        predicted("03.p1", wrong("03.p1")),
    ],
    "empty": [],
}


@pytest.fixture
def handed_in(tmp_path):
    folder = tmp_path / "handed in"
    folder.mkdir()
    for name, lines in CLASS.items():
        write(folder, name, "".join(json.dumps(line) + "\n" for line in lines))
    return folder


def write(folder, name, text):
    (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")


def page_of(folder):
    return (folder / "report.html").read_text(encoding="utf-8")


def tables(page):
    """All tables, read back: caption, column headers, rows of texts."""
    root = reading.parse(page[page.index("<main>") : page.index("</body>")])
    found = {}
    for table in root.iter("table"):
        columns = table.findall("thead/tr/th")
        assert all(column.get("scope") == "col" for column in columns)
        rows = []
        for row in table.findall("tbody/tr"):
            assert row[0].tag == "th" and row[0].get("scope") in ("row", "rowgroup")
            assert sum(int(cell.get("colspan", 1)) for cell in row) == len(columns)
            rows.append([reading.words(cell) for cell in row])
        found[reading.words(table.find("caption"))] = [reading.words(c) for c in columns], rows
    return found


def mistakes(page):
    return tables(page)["Mistakes, by the number of students who made them"][1]


# ---------------------------------------------------------------- what the page says


def test_mistakes_stand_in_the_order_of_how_many_made_them(handed_in):
    report.main([str(handed_in)])
    told = mistakes(page_of(handed_in))
    # Two students made the first two; one of the first has not passed. Five times counts once.
    assert [row[0] for row in told] == [
        f"{mistake.name}{mistake.message}".replace("`", "")
        for mistake in (SOFTMAX[2], LOOP[0], SOFTMAX[0])
    ]
    assert [row[1:3] for row in told] == [["2 of 4", "1"], ["2 of 4", "0"], ["1 of 4", "0"]]
    assert [row[3] for row in told] == [
        f"{id} {EXERCISES[id].title}" for id in ("03.1", "01.1", "03.1")
    ]
    assert [row[5] for row in told] == ["anna, bela", "bela, Zoë O'Neil", "anna"]


def test_a_mistake_is_explained_in_the_words_of_check(handed_in):
    """Each row begins with what the student has read, without the line breaks."""
    report.main([str(handed_in)])
    for row, mistake in zip(
        mistakes(page_of(handed_in)), (SOFTMAX[2], LOOP[0], SOFTMAX[0]), strict=True
    ):
        with pytest.raises(CheckFailed) as failed:
            check(mistake.exercise.id, mistake.code)
        printed = " ".join(str(failed.value).replace("`", "").split())
        told = row[0].removeprefix(mistake.name)
        assert told != row[0] and f": {mistake.name} {told} " in printed


def test_predictions_count_first_answers(handed_in):
    report.main([str(handed_in)])
    _, rows = tables(page_of(handed_in))["Predictions, by wrong first answers"]
    assert [row[1] for row in rows] == ["2 of 3", "1 of 2"]
    for row, id, n in zip(rows, ("03.p1", "03.p2"), (2, 1), strict=True):
        choice = PREDICTIONS[id].choices[wrong(id)]
        assert row[0].startswith(id) and PREDICTIONS[id].question.replace("`", "") in row[0]
        assert row[2].startswith(f"{wrong(id)}) {choice.text}".replace("`", ""))
        assert choice.explanation.replace("`", "") in row[2]
        assert row[2].endswith(f"Chosen by {n} of these {n}.")


def test_the_grid_says_done_tried_and_open_of_each_student(handed_in):
    report.main([str(handed_in)])
    columns, rows = tables(page_of(handed_in))["What each student has done"]
    signs = ["✓ done", "◐ corrected", "✗ tried", "○ open"]
    assert columns[1:] == [*signs, "anna", "bela", "empty", "Zoë O'Neil"], "case does not count"
    assert "".join(f'<th scope="col">{sign}</th>' for sign in signs) in page_of(handed_in)
    titles = [row[0] for row in rows if len(row) == 1]
    assert [title[:2] for title in titles] == ["01", "03"]
    assert all(title.endswith("?") for title in titles)
    said = {row[0].split()[0]: row[1:] for row in rows if len(row) > 1}
    assert set(said) == {id for id in (*EXERCISES, *PREDICTIONS) if id[:2] in ("01", "03")}
    signs = {"o": "○ open", "d": "✓ done", "t": "✗ tried", "r": "✓ right at first"}
    signs |= {"l": "◐ right later", "w": "✗ never right"}
    known = {"01.1": "odod", "01.3": "oooo", "03.1": "dtoo", "03.p1": "lwor", "03.p2": "rwoo"}
    for id, cells in said.items():
        wanted = [signs[letter] for letter in known.get(id, "oooo")]
        assert cells[4:] == wanted, id
        counts = Counter(cell[0] for cell in wanted)
        told = {sign: str(counts[sign]) for sign in "✓◐✗○"}
        assert cells[:4] == [*(told | ({"◐": "–"} if id in EXERCISES else {})).values()]
    begun = "Nobody has begun notebooks 00, 02, 04, 05, 06, 07, 08, 09, 10, 11, 12, 13, 14 and 15."
    assert begun in page_of(handed_in)


def test_the_tenth_exercise_stands_below_the_ninth_and_optional_ones_say_so(handed_in):
    write(handed_in, "anna", json.dumps(checked("11.10", "passed")))
    report.main([str(handed_in)])
    _, rows = tables(page_of(handed_in))["What each student has done"]
    own = [row[0] for row in rows if len(row) > 1 and row[0].startswith("11.")]
    ids = [*PREDICTIONS, *EXERCISES]
    assert [name.split()[0] for name in own] == [id for id in ids if id[:2] == "11"]
    for name in own:
        id = name.split()[0]
        optional = id in EXERCISES and EXERCISES[id].optional
        assert name.endswith(" (optional)") == optional


def topics(page):
    """The lines of what to talk about next, each with what stands below it."""
    root = reading.parse(page[page.index("<main>") : page.index("</body>")])
    found = [item.find("details") for item in root.findall("main/ol/li")]
    return [(reading.words(each[0]), "".join(map(reading.words, each[1:]))) for each in found]


def test_the_page_begins_with_three_mistakes_and_two_predictions(handed_in):
    write(handed_in, "carl", "".join(json.dumps(checked("03.2", "failed")) + "\n" for _ in "12"))
    more = [checked("03.1", "failed", mistake) for mistake in SOFTMAX[3:6]]
    more += [predicted(id, wrong(id)) for id in ("03.p1", "03.p2", "03.p3")]
    write(handed_in, "dora", "".join(json.dumps(line) + "\n" for line in more))
    report.main([str(handed_in)])
    told = topics(page_of(handed_in))
    title = EXERCISES["03.1"].title.replace("`", "")
    assert [line.split(" in 0")[0] for line, _ in told[:2]] == [
        f"2 of 6 made the mistake {mistake.name}" for mistake in (SOFTMAX[2], LOOP[0])
    ]
    assert told[0][0].endswith(f" in 03.1 {title}; 1 of them has not passed")
    assert SOFTMAX[2].message.replace("`", "") in told[0][1]
    assert told[0][1].endswith("Made by anna, bela.")
    # Of what only one has made, what has not passed comes first.
    assert told[2][0].startswith("1 of 6 ") and "not passed" in told[2][0]
    said = [line.split(" wrong: ")[0] for line, _ in told[3:]]
    assert said == [
        "3 of 4 first answered prediction 03.p1",
        "2 of 3 first answered prediction 03.p2",
    ]
    choice = PREDICTIONS["03.p1"].choices[wrong("03.p1")]
    assert choice.explanation.replace("`", "") in told[3][1]


def test_where_predictions_misled_nobody_five_mistakes_are_told(handed_in):
    for name in CLASS:
        (handed_in / f"{name}.jsonl").unlink()
    lines = [checked("03.1", "failed", mistake) for mistake in SOFTMAX[:6]]
    write(handed_in, "anna", "".join(json.dumps(line) + "\n" for line in lines))
    report.main([str(handed_in)])
    assert [line.split(" in 03.1")[0] for line, _ in topics(page_of(handed_in))] == [
        f"1 of 1 made the mistake {name}" for name in sorted(m.name for m in SOFTMAX[:6])[:5]
    ]


def test_one_notebook_alone(handed_in):
    report.main([str(handed_in), "--nb", "1"])
    page = page_of(handed_in)
    assert "<h1>Report on a class of 4: notebook 01</h1>" in page and "Nobody has begun" not in page
    assert {row[3][:3] for row in mistakes(page)} == {"01."}
    assert "No first answer to a prediction was wrong." in page
    _, rows = tables(page)["What each student has done"]
    assert {row[0][:2] for row in rows} == {"01"} and len(rows) > 3
    report.main([str(handed_in), "--nb", "09"])
    assert re.findall(r"(\w+)\.jsonl: the file is empty", page_of(handed_in)) == ["empty"]


def test_since_a_day_mistakes_and_first_answers_count_and_what_is_done_stays(
    handed_in, monkeypatch
):
    monkeypatch.setenv("TZ", "Etc/GMT+5")  # a day begins there at 5 in UTC
    time.tzset()
    late, early = {"time": "2026-02-01T05:00:00Z"}, {"time": "2026-02-01T04:59:59Z"}
    lines = [
        checked("03.1", "failed", SOFTMAX[3]) | early,
        checked("03.1", "failed", SOFTMAX[4]) | late,
        predicted("03.p2", PREDICTIONS["03.p2"].answer) | early,
        predicted("03.p2", wrong("03.p2")) | late,  # not the first
        predicted("03.p3", wrong("03.p3")) | late,
    ]
    write(handed_in, "dora", "".join(json.dumps(line) + "\n" for line in lines))
    report.main([str(handed_in), "--since", "2026-02-01"])
    monkeypatch.undo()
    time.tzset()
    page = page_of(handed_in)
    assert [row[0].startswith(SOFTMAX[4].name) for row in mistakes(page)] == [True]
    _, rows = tables(page)["Predictions, by wrong first answers"]
    assert [(row[0][:5], row[1]) for row in rows] == [("03.p3", "1 of 1")]
    assert len(topics(page)) == 2 and "count since 2026-02-01." in page
    _, rows = tables(page)["What each student has done"]
    (row,) = [row for row in rows if row[0].startswith("01.1")]
    assert row[1] == "2", "what was passed before is passed"


def test_a_second_copy_of_a_file_is_no_second_student(handed_in, capsys):
    anna = (handed_in / "anna.jsonl").read_text()
    for name in ("anna (1)", "anna(2)", "bela (1)", "Carl", "dora (1)"):  # there is no dora.jsonl
        write(handed_in, name, anna)
    report.main([str(handed_in)])
    columns, _ = tables(page_of(handed_in))["What each student has done"]
    assert columns[5:] == ["anna", "bela", "bela (1)", "Carl", "dora (1)", "empty", "Zoë O'Neil"]
    assert "anna.jsonl: its 3 copies, with the same lines, count once." in capsys.readouterr().out


def test_a_class_that_has_not_begun(handed_in):
    for path in handed_in.iterdir():
        path.write_text("")
    report.main([str(handed_in)])
    page = page_of(handed_in)
    assert "No mistake that has a name was made." in page
    assert "No first answer to a prediction was wrong." in page
    assert list(tables(page)) == ["What each student has done"]


@pytest.mark.parametrize("id", [*EXERCISES, *PREDICTIONS])
def test_the_place_to_look_at_again_is_the_right_section(id):
    place = report.find_places().of(id)
    found = re.fullmatch(r"notebook (\d\d), section “(.+?)”, (?:exercise|prediction) (.+)", place)
    number, section, named = found.groups()
    assert number == id[:2] and named == id
    section = re.sub(r"</?code>", "`", section)
    (path,) = notebooks.chosen(number)
    book = lint_notebooks.read(path)
    headings = [(n, text) for n, level, text in book.headings if level == 2]
    assert [text for _, text in headings].count(section) == 1, "it can be found by its name"
    called = re.compile(rf'(check|predict)\("{id}"')
    cell = next(n for n, c in book.code if called.search(c.source))
    assert [text for n, text in headings if n <= cell][-1] == section
    assert section not in ("Exercises", "What we found", "")


# ---------------------------------------------------------------- names, and what is not counted


def test_names_can_be_left_out(handed_in, capsys):
    write(handed_in, "carl", json.dumps(CLASS["bela"][0]) + "\nbroken\n")
    write(handed_in, "dora", "not a line\n")
    with pytest.raises(SystemExit):
        report.main([str(handed_in), "--no-names"])
    page = page_of(handed_in)
    for name in (*CLASS, "carl", "dora", "O&#x27;Neil"):
        if name != "empty":
            assert name not in page
    columns, _ = tables(page)["What each student has done"]
    assert columns[5:] == ["1", "2", "3", "4", "5"]
    (number,) = re.findall(r"student (\d): one broken line is left out, line 2\.", page)
    assert number in "12345" and "A file is no progress file" in page
    assert "carl.jsonl: one broken line" in capsys.readouterr().out, "the teacher may know"


def test_own_files_that_were_run_stand_on_the_page_also_without_names(handed_in):
    told = {"anna": {"Head": "", "train": "<b>too slow"}, "bela": {}, "nobody": {"Head": ""}}
    (handed_in / report.OWN).write_text(json.dumps(told))
    report.main([str(handed_in), "--no-names"])
    page = page_of(handed_in)
    own = page.split('<details id="own">')[1]
    assert "Head</td>" in own and "train: &lt;b&gt;too slow</td>" in own
    assert own.count("<tr>") == 3 and not re.search("anna|bela|nobody", own)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"anna": ["Head"]}', '{"anna": {"Head": 1}}', "[" * 9999]
)
def test_own_files_in_another_form_are_told(text, handed_in, capsys):
    (handed_in / report.OWN).write_text(text)
    with pytest.raises(SystemExit):
        report.main([str(handed_in)])
    said = capsys.readouterr().err
    assert "mine.json is not as make collect MINE=1 writes it" in said and said.count("\n") == 1


def test_the_body_of_a_page_is_as_it_is_stored(handed_in, snapshot):
    report.main([str(handed_in)])
    assert page_of(handed_in).split("</style>")[1] == snapshot


def test_numbers_do_not_follow_the_alphabet(handed_in):
    students, _ = report.read_class(report.handed_in(handed_in))
    numbered = report.without_names(students)
    assert [s.entries for s in numbered] != [s.entries for s in students]
    assert sorted(len(s.entries) for s in numbered) == sorted(len(s.entries) for s in students)


@pytest.mark.parametrize("id", ["03.p1", "03.1", "04.Head", "03.9", *sorted(RETIRED)[:1]])
@pytest.mark.parametrize("kind", ["check", "predict", "review", "x", []])
@pytest.mark.parametrize("more", [{"mistake": "x"}, {"answer": 1}, {"time": float("nan")}])
def test_no_line_of_one_student_keeps_the_others_from_their_page(id, kind, more, handed_in):
    for status in ("failed", "wrong"):
        line = VERSION | {"notebook": id[:2], "id": id, "kind": kind, "status": status} | more
        with open(handed_in / "anna.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")
    report.main([str(handed_in)])
    assert len(mistakes(page_of(handed_in))) >= 3


def test_broken_lines_and_unknown_exercises_are_named_and_not_counted(handed_in, capsys):
    write(handed_in, "empty", json.dumps(checked("01.3", "not attempted")) + "\n")
    report.main([str(handed_in)])
    before = mistakes(page_of(handed_in))
    assert "left-out" not in page_of(handed_in) and "not counted" not in page_of(handed_in)
    with open(handed_in / "anna.jsonl", "a") as file:
        file.write('broken\n{"version": 1, "torn')
    with open(handed_in / "bela.jsonl", "a") as file:
        file.write("broken\n")
        for id in ("42.1", "03.9", "42.1"):
            file.write(json.dumps(checked(id, "failed")) + "\n")
    capsys.readouterr()
    report.main([str(handed_in)])
    said = capsys.readouterr().out.splitlines()
    assert said[:-1] == [
        "anna.jsonl: 2 broken lines are left out, lines 12 and 13.",
        "bela.jsonl: one broken line is left out, line 7.",
        "bela.jsonl: 3 lines are left out, as these notebooks have no 03.9 and 42.1.",
    ]
    page = page_of(handed_in)
    for sentence in said[:-1]:
        assert f"<li>{sentence}</li>" in page
    odd = "".join(json.dumps(checked(f"42.{i}", "failed")) + "\n" for i in range(9))
    write(handed_in, "bela", odd + "broken\n" * 9)
    report.main([str(handed_in)])
    assert capsys.readouterr().out.splitlines()[1:3] == [
        "bela.jsonl: 9 broken lines are left out, lines 10, 11, 12, 13, 14 and 4 more.",
        "bela.jsonl: 9 lines are left out, as these notebooks have no 42.0, 42.1, 42.2, 42.3, 42.4 "
        "and 4 more.",
    ]
    assert mistakes(page) == before


def test_an_empty_file_is_named(handed_in, capsys):
    report.main([str(handed_in)])
    told = "empty.jsonl: the file is empty, so all is open for this student."
    assert told in capsys.readouterr().out and f"<li>{told}</li>" in page_of(handed_in)


def test_who_is_stuck_without_a_known_mistake_is_named(handed_in):
    report.main([str(handed_in)])
    assert "no known mistake was recognised" not in page_of(handed_in)
    write(handed_in, "carl", json.dumps(checked("03.2", "failed")) + "\n")
    report.main([str(handed_in)])
    assert re.search(r"Look at the code with them:</p><ul><li>03\.2 .*: carl</li></ul>",
                     page_of(handed_in))  # fmt: skip


def test_wrong_choices_that_were_equally_frequent_are_all_shown(handed_in):
    first, second = [a for a in PREDICTIONS["03.p2"].choices if a != PREDICTIONS["03.p2"].answer][
        :2
    ]
    write(handed_in, "bela", json.dumps(predicted("03.p2", first)) + "\n")
    write(handed_in, "carl", json.dumps(predicted("03.p2", second)) + "\n")
    report.main([str(handed_in)])
    (row,) = [row for row in tables(page_of(handed_in))["Predictions, by wrong first answers"][1]
              if row[0].startswith("03.p2")]  # fmt: skip
    assert f"{first}) " in row[2] and f"{second}) " in row[2]
    assert row[2].endswith("Each chosen by 1 of these 2.")


def test_a_mistake_of_another_version_is_counted_and_marked(handed_in):
    line = checked("03.1", "failed") | {"mistake": "a former name"}
    write(handed_in, "carl", json.dumps(line) + "\n")
    report.main([str(handed_in)])
    (row,) = [row for row in mistakes(page_of(handed_in)) if row[0].startswith("a former name")]
    assert "do not know this mistake" in row[0] and row[1] == "1 of 5"


def test_a_mistake_of_a_build_that_no_page_tells_stands_there_by_its_name(handed_in, monkeypatch):
    monkeypatch.setitem(EXERCISES, "04.Head", build("Head"))
    line = checked("04.Head", "failed") | {"mistake": "no mask"}  # attention_clinic tells it
    write(handed_in, "cleo", json.dumps(line) + "\n")
    report.main([str(handed_in)])
    rows = mistakes(page_of(handed_in))
    assert [row[0] for row in rows if row[3].startswith("04.Head")] == ["no mask"]


def test_what_comes_from_files_is_escaped(handed_in):
    evil = "<script>alert('1')</script>&\"<img src=x>"
    line = checked("03.1", "failed") | {"mistake": evil}
    other = checked("03.1", "failed") | {"id": f"03.{evil}"}
    letter = predicted("03.p1", "a") | {"answer": evil, "status": "wrong"}
    text = "".join(json.dumps(each) + "\n" for each in (line, other, letter)) + evil + "\n"
    write(handed_in, evil.replace("/", "\\"), text)
    write(handed_in, "two\nlines", text)
    report.main([str(handed_in)])
    page = page_of(handed_in)
    assert "<script" not in page and "<img" not in page
    assert page.count("&lt;script&gt;") > 8
    assert "two?lines" in page
    tables(page)  # still well-formed


def test_a_name_that_is_no_text_is_shown_with_question_marks(handed_in):
    (handed_in / b"an\xffna.jsonl".decode("utf-8", "surrogateescape")).write_text("")
    report.main([str(handed_in)])
    assert "an?na" in page_of(handed_in)


# ---------------------------------------------------------------- the page itself


def test_the_page_loads_nothing_and_needs_no_script(handed_in):
    write(handed_in, "broken", json.dumps(CLASS["bela"][0]) + "\nnot a line\n")
    report.main([str(handed_in)])
    page = page_of(handed_in)
    assert "default-src 'none'" in page
    for loads in ("src=", "url(", "@import", "http:", "https:", "<script", "<link", "onclick"):
        assert loads not in page, loads
    assert re.findall(r'<details id="([^"]*)"', page) == [
        "mistakes", "predictions", "grid", "left-out",
    ]  # fmt: skip
    assert page.startswith("<!DOCTYPE html>\n<html lang=") and page.count("<h1>") == 1


def test_letters_can_be_read_on_a_light_and_on_a_dark_page_and_in_print():
    css = report.STYLE.read_text()
    themes = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    assert len(themes) == 3
    for theme in themes:
        colour = {
            name: "#" + "".join(2 * c for c in code) if len(code) == 3 else f"#{code}"
            for name, code in re.findall(r"--(\w+): #(\w+);", theme)
        }
        for ground in ("paper", "head", "done", "corrected", "tried", "code"):
            assert reading.contrast(colour["ink"], colour[ground]) >= 4.5
        assert reading.contrast(colour["quiet"], colour["paper"]) >= 4.5


def test_two_runs_write_the_same_page(handed_in, tmp_path):
    report.main([str(handed_in)])
    other = tmp_path / "other.html"
    report.main([str(handed_in), "--out", str(other)])
    assert other.read_bytes() == (handed_in / "report.html").read_bytes()


# ---------------------------------------------------------------- where it cannot


@pytest.fixture
def untouched(handed_in):
    """What lies in the folder, which no failure may change."""
    (handed_in / "report.html").write_text("the old report")
    return {path.name: path.read_bytes() for path in handed_in.iterdir()}


def now(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([""], "make report FROM=folder"),
        (["{}/none"], "There is no folder {}/none: name the one"),
        (["{}/anna.jsonl"], "There is no folder {}/anna.jsonl"),
        (["{}", "--out", "{}/anna.jsonl"], "OUT has to end with .html"),
        (["{}", "--out", "{}/none/page.html"], "There is no folder {}/none for the report"),
    ],
)
def test_what_is_asked_for_wrongly_is_told(handed_in, untouched, refused, arguments, says):
    said = refused(report.main, [part.format(handed_in) for part in arguments])
    assert says.format(handed_in) in said
    assert now(handed_in) == untouched


def test_a_folder_without_files_of_students_is_told(tmp_path, refused):
    (tmp_path / "anna.txt").touch()
    (tmp_path / "._anna.jsonl").write_bytes(b"\0\5\x16\7")
    assert "no file whose name ends with .jsonl" in refused(report.main, [str(tmp_path)])
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "the disk is full: free some disk space"),
        (errno.EACCES, "no right to write there"),
        (errno.EROFS, "its disk is read-only"),
    ],
)
def test_a_page_that_cannot_be_written_leaves_the_old_one(
    handed_in, untouched, disk, refused, number, says
):
    disk(number, "report.part")
    assert says in refused(report.main, [str(handed_in)])
    assert now(handed_in) == untouched


def test_a_page_in_the_place_of_a_folder_is_told(handed_in, refused):
    (handed_in / "page.html").mkdir()
    said = refused(report.main, [str(handed_in), "--out", str(handed_in / "page.html")])
    assert "cannot be written" in said
    assert not (handed_in / "page.part").exists()


def test_files_that_cannot_be_read_are_named_and_the_others_reported(handed_in, capsys):
    (handed_in / "carl.jsonl").mkdir()
    write(handed_in, "dora", "PK\x03\x04 no lines\nof ours\n")
    with pytest.raises(SystemExit) as end:
        report.main([str(handed_in)])
    assert end.value.code == 1
    sentences = [
        "carl.jsonl cannot be read (it is no ordinary file).",
        "dora.jsonl is no progress file: none of its lines (2) can be read.",
    ]
    assert capsys.readouterr().err.splitlines() == sentences
    page = page_of(handed_in)
    assert all(f"<li>{sentence}</li>" in page for sentence in sentences)
    assert "Report on a class of 4" in page and "dora" not in "".join(map(str, tables(page)))


def test_of_a_file_that_is_too_large_the_end_counts(handed_in, monkeypatch):
    monkeypatch.setattr(progress_file, "MOST_BYTES", 400)
    students, _ = report.read_class(sorted(handed_in.glob("*.jsonl")))
    large = [one for one in students if one.left_out]
    assert large and "only its end was read" in " ".join(report.not_counted(large))


def test_a_class_of_which_nothing_can_be_read_gets_no_page(tmp_path, capsys):
    write(tmp_path, "dora", "nothing of ours\n")
    with pytest.raises(SystemExit) as end:
        report.main([str(tmp_path)])
    assert end.value.code == 1
    assert capsys.readouterr().err.splitlines()[-1] == "So there is nothing to report."
    assert [path.name for path in tmp_path.iterdir()] == ["dora.jsonl"]


def test_a_notebook_that_cannot_be_read_is_told_and_its_rows_name_the_notebook(
    handed_in, tmp_path, monkeypatch, capsys
):
    source = tmp_path / "notebooks"
    source.mkdir()
    for path in notebooks.names():
        (source / path.name).write_bytes(path.read_bytes())
    (broken,) = source.glob("03_*.ipynb")
    broken.write_text('{"cells": [')
    monkeypatch.setattr(notebooks, "SOURCE", source)
    report.main([str(handed_in)])
    said = capsys.readouterr().out
    assert "03_softmax_masking.ipynb is damaged" in said and "does not name its sections" in said
    places = {row[3][:4]: row[4] for row in mistakes(page_of(handed_in))}
    assert places["03.1"] == "notebook 03"
    assert places["01.1"].startswith("notebook 01, section “")
    assert "is damaged" in page_of(handed_in)
