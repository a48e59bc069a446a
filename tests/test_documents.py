"""README.md and the pages of teaching/ say what the notebooks say.

That their links lead to a file and to a heading is tested in `test_house`.
"""

import ast
import math
import re
from functools import cache

import nbformat
import pytest

import attention_clinic as clinic
from helpers import ward
from helpers.measured import measured, ward_losses
from helpers.ward import EIGHT
from lesson import EXERCISES, PREDICTIONS, series_view
from tools import notebooks
from tools.lint_notebooks import Book

README = (notebooks.ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((notebooks.ROOT / "teaching").glob("*.md"))
}
TEACHING, CHEATSHEET = PAGES["README"], PAGES["CHEATSHEET"]
EVERY_PAGE = pytest.mark.parametrize("text", PAGES.values(), ids=PAGES)
EVERY_NOTEBOOK = pytest.mark.parametrize("path", notebooks.names(), ids=lambda path: path.stem)
NUMBERS = "|".join(path.name[:2] for path in notebooks.names())
NAMES = "|".join(id[3:] for id in EXERCISES if not id[3:].isdigit())
ID = re.compile(rf"\b(?:{NUMBERS})\.(?:p?\d+|{NAMES})\b")


@cache
def book(path):
    return Book(path.stem, nbformat.read(path, as_version=4), path.stat().st_size)


def of_notebook(path):
    """What its page in teaching/ says below the heading, its number and question."""
    number, question = path.name[:2], book(path).headings[0][2]
    heading, _, text = PAGES[number].partition("\n")
    assert heading == f"# {number} · [{question}](../notebooks/{path.name})"
    return text


def plan(name):
    """What stands in brackets behind the name of a plan, and the rows of its table."""
    heading, _, text = PAGES[name.lower().replace(" ", "_")].partition("\n")
    return re.fullmatch(rf"# {name} \((.*)\)", heading)[1], rows(text)


def rows(text):
    """The rows of all tables, without their heads, as lists of cells."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    heads = {i - 1 for i, cells in enumerate(table) if set("".join(cells)) <= set("-: ")}
    return [cells for i, cells in enumerate(table) if i not in heads and i - 1 not in heads]


@EVERY_NOTEBOOK
def test_a_notebook_takes_the_minutes_that_it_says(path):
    """In a class: four more for each prediction, exercises twice, up to the next five."""
    alone, in_class = minutes_of(path)
    assert f"\n\n{2 * alone} minutes if attention is new" in book(path).nb.cells[0].source
    number, headings = path.name[:2], [text for _, _, text in book(path).headings]
    exercises = sum(int(m[1]) for h in headings if (m := re.search(r"Exercise.* (\d+) min$", h)))
    predictions = sum(id.startswith(number) for id in PREDICTIONS)
    assert exercises and predictions
    assert in_class == 5 * math.ceil((alone + 4 * predictions + exercises) / 5)


def minutes_of(path):
    """What teaching/ says of a notebook: minutes of a fast reader, minutes in a class."""
    found = re.search(r"(\d+) minutes for a fast reader, about (\d+) in a class", of_notebook(path))
    return [int(minutes) for minutes in found.groups()]


def test_the_minutes_of_all_notebooks_add_up():
    alone, in_class = (
        sum(minutes) for minutes in zip(*map(minutes_of, notebooks.names()), strict=True)
    )
    number, length = map(int, re.findall(r"\d+", plan("Eight weeks")[0]))
    said = re.findall(r"\b(\d+) h (\d\d)\b", TEACHING)
    assert [60 * int(h) + int(m) for h, m in said] == [alone, in_class, number * length]
    said = re.findall(r"\b(\d+) h (\d\d)\b", README)
    minutes = [minutes_of(path)[0] for path in notebooks.names()]
    parts = [minutes[:8], minutes[8:11], minutes[11:]]
    assert [60 * int(h) + int(m) for h, m in said] == [2 * m for m in (*map(sum, parts), alone)]
    assert [f"{start:02d}" for start in (0, 8, 11)] == [*series_view.PARTS]
    (hours,) = re.findall(r"about (\d+) hours", README)
    assert int(hours) == round(alone / 30)


def test_the_documents_count_the_notebooks_and_the_weeks_right():
    count = {16: "sixteen"}[len(notebooks.names())]
    for text in (README, TEACHING):
        assert f"{count} notebooks" in text.lower()
    number = int(re.match(r"\d+", plan("Eight weeks")[0])[0])
    assert math.ceil(number / 2) == 8, "two sessions a week"
    for text in (README, *PAGES.values()):
        assert set(re.findall(r"\b(\w+) weeks\b", text.lower())) <= {"eight", "the"}


def test_the_day_gets_as_far_as_it_says():
    shown = {
        number for row in plan("One day")[1] for number in re.findall(r"question (\d\d)", row[3])
    }
    said = re.search(r"a day, which gets as far as notebook (\d\d)", TEACHING)[1]
    assert max(shown) == said


@EVERY_NOTEBOOK
def test_each_prediction_has_its_place_its_answer_and_wrong_choices(path):
    told = {cells[0]: cells[1:] for cells in rows(of_notebook(path)) if ID.fullmatch(cells[0])}
    assert list(told) == [id for id in PREDICTIONS if id.startswith(path.name[:2])]
    for id, (place, right, wrong, _why) in told.items():
        right, wrong = (set(re.findall(r"\b([a-z]): ", choices)) for choices in (right, wrong))
        assert right == {PREDICTIONS[id].answer}, id
        assert wrong and wrong <= set(PREDICTIONS[id].choices) - right, id
        assert re.match(r"\[(.*)\]", place)[1] in enclosing_headings(path, id), id


def enclosing_headings(path, prediction):
    """The section in which a prediction stands, and the sections around that one."""
    cell = next(n for n, c in book(path).code if f'predict("{prediction}"' in c.source)
    open_sections = []
    for n, level, text in book(path).headings:
        if n < cell:
            open_sections = [s for s in open_sections if s[0] < level] + [(level, text)]
    return [text for _, text in open_sections]


@EVERY_NOTEBOOK
def test_each_exercise_is_done_together_or_at_home(path):
    said = re.search(r"^\*\*Exercises\.\*\* (.*?)\n\n", of_notebook(path), re.M | re.S)[1]
    assert sorted(ID.findall(said)) == sorted(id for id in EXERCISES if id[:2] == path.name[:2])


@EVERY_PAGE
def test_every_prediction_and_exercise_exists(text):
    assert set(ID.findall(text)) <= {*EXERCISES, *PREDICTIONS}


@EVERY_NOTEBOOK
def test_the_numbers_for_a_notebook_stand_in_it(path):
    """Those with a decimal point or a comma for thousands, but for exit questions.

    What these say is computed in `test_exit_questions`.
    """
    text = re.sub(r"^\| \d\d\.e\d .*\n", "", of_notebook(path), flags=re.M)
    text = ID.sub("", re.sub(r"\]\([^)]*\)", "", text))
    there = "\n".join(
        [c.source for c in book(path).nb.cells]
        + [str(output.get("text", output.get("data"))) for _, output in book(path).outputs]
    ).replace("−", "-")
    for number in re.findall(r"-?\b\d+[.,]\d+\b", text):
        assert re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", there), number


def test_the_minutes_of_the_lecture_follow_each_other():
    length, blocks = plan("One lecture")
    check_follow(blocks, 0, int(re.match(r"\d+", length)[0]), int)


def test_the_minutes_of_the_day_follow_each_other():
    hours, blocks = plan("One day")
    check_follow(blocks, *map(clock, hours.split(" to ")), clock)


def clock(time):
    hours, minutes = time.split(":")
    return 60 * int(hours) + int(minutes)


def check_follow(blocks, start, end, read):
    """Each block begins where the one before ends, and is as long as it says."""
    for times, minutes, *_ in blocks:
        begins, ends = map(read, times.split("–"))
        assert begins == start and ends - begins == int(minutes), times
        start = ends
    assert start == end


def test_the_minutes_of_each_session_add_up():
    number_and_length, sessions = plan("Eight weeks")
    number, length = map(int, re.findall(r"\d+", number_and_length))
    assert [cells[0] for cells in sessions] == [str(i + 1) for i in range(number)]
    assert [cells[1] for cells in sessions] == [path.name[:2] for path in notebooks.names()]
    for session, notebook, what, at_home in sessions:
        assert sum(map(int, re.findall(r"\*\*(\d+)\*\*", what))) == length, session
        assert all(id.startswith(notebook) for id in ID.findall(what + at_home)), session


@EVERY_PAGE
def test_the_code_runs_and_has_the_shapes_that_its_comments_say(text):
    """All blocks of a page, one after the other. A shape stands behind what it is said of."""
    scope = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
        lines = block.splitlines()
        for statement in ast.parse(block).body:
            exec(compile(ast.Module([statement], []), "a block of code", "exec"), scope)
            shape = re.search(r"# \((.*)\)", lines[statement.end_lineno - 1])
            if isinstance(statement, ast.Assign) and shape:
                for name in ast.walk(statement.targets[0]):
                    if isinstance(name, ast.Name):
                        expected = eval(f"({shape[1]},)", scope)
                        assert tuple(scope[name.id].shape) == expected, ast.unparse(statement)


def test_the_cheat_sheet_is_not_longer_than_a_sheet_of_paper():
    """Roughly, without a browser: 72 lines fit one (tried). `make browser` prints it.

    The picture takes none, as it stands beside the code.
    """
    lines = [line for line in CHEATSHEET.splitlines() if line.strip() and line[:2] != "!["]
    assert sum(math.ceil(len(line) / 150) for line in lines) <= 72


def test_the_cheat_sheet_lists_the_probes_that_the_notebooks_import():
    source = "\n".join(c.source for path in notebooks.names() for _, c in book(path).code)
    of_clinic = r"^from (?:attention_clinic|helpers\.diagnosis) import (\([^)]*\)|.*)$"
    imported = {
        name.strip()
        for names in re.findall(of_clinic, source, re.M)
        for name in names.strip("()").split(",")
    }
    imported -= {"", *vars(ward)}  # what is examined, not what examines
    listed = {m[1] for cells in rows(CHEATSHEET) if (m := re.match(r"`(\w+)\(", cells[0]))}
    assert imported == listed & set(clinic.__all__)


def test_the_speed_story_says_what_was_measured():
    text = (notebooks.ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    for row in measured("train")["summary"]:
        numbers = rf"{row['seconds']:.1f}[ s|]+{row['times_faster']:.1f}\b"
        assert re.search(rf"{row['recipe']}.*\b{numbers}", text), row


def test_the_losses_of_the_wrong_attentions_are_those_that_were_measured():
    text = (notebooks.ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    section = text.partition("(`ward.py`)")[2].partition("\n## ")[0]
    losses = ward_losses()
    assert list(losses) == ["right", *EIGHT]
    expected = [[name, *(f"{n:.2f}" for n in of.values())] for name, of in losses.items()]
    assert rows(section) == expected


def test_the_costs_are_those_that_were_measured():
    text = (notebooks.ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    section = text.partition("(`attention_cost.py`)")[2].partition("\n## ")[0]
    runs = {
        (run["way"], run["T"], run["threads"]): run for run in measured("attention_cost")["runs"]
    }
    columns = [(512, 1, "ms"), (512, 2, "ms")]
    columns += [(T, *of) for T in (2048, 4096) for of in ((1, "ms"), (2, "ms"), (1, "extra_MB"))]
    for way, *cells in rows(section):
        numbers = [runs.get((way, T, n), {}).get(what) for T, n, what in columns]
        told = ["–" if x is None else f"{x:,.{1 if x < 10 else 0}f}" for x in numbers]
        assert cells == told, way
    assert len(rows(section)) == len({way for way, _, _ in runs})


def test_the_judges_found_what_was_measured():
    text = (notebooks.ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    section = text.partition("(`judges.py`)")[2].partition("\n## ")[0]
    of = {(row["judge"], row["list"]): row for row in measured("judges")["summary"]}
    for judge, *cells, seconds in rows(section):
        threads, standard, right = (of[judge, name] for name in ("threads", "standard", "right"))
        found = [one[what] for one in (threads, standard) for what in ("found", "named")]
        assert cells == [str(n) for n in (*found, right["given"], right["found"])], judge
        assert seconds == f"{threads['seconds']:.2f}"
    assert f"{threads['of']} threads" in section and f"{standard['of']} standard" in section


def test_the_memory_of_each_notebook_is_what_was_measured_rounded_up():
    text = (notebooks.ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    section = text.partition("(`memory.py`)")[2].partition("\n## ")[0]
    most = {notebook: int(most) for notebook, _end, most in rows(section)}
    assert [*most] == [path.name[:2] for path in notebooks.names()]
    said = re.findall(r"^\| \[(\d\d)\].*\| (\d+) MB \|$", README, re.M)
    assert {n: int(MB) for n, MB in said} == {n: 50 * math.ceil(MB / 50) for n, MB in most.items()}
    (up_to,) = re.findall(r"up to (\d+) MB of memory", README)
    assert int(up_to) == max(int(MB) for _, MB in said)
