"""make cheatsheet: its pages say what their sources say. `make browser` counts their sheets."""

import re

import nbformat
import pytest

from tests.helpers.pictures import reading
from tools import cheatsheet, notebooks, sheet_picture
from tools.lecture import plan

SAYS = {
    "cheatsheet": "rows sum to 1, but there are weights on the future",
    "checklist": "Is an output the same when everything after it is cut off?",
    "goals": "give your GPT a KV cache, with which it reads each letter once",
    "exit_questions": "A causal mean of three tokens with one channel is 4, 5, 6.",
}


@pytest.fixture(scope="module")
def written():
    """All pages, as `main` writes them, by name."""
    pages = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(notebooks, "write_whole", pages.__setitem__)
        cheatsheet.main()
    return {path.stem: page for path, page in pages.items()}


def parts(page):
    """What a page holds, part by part."""
    found = re.findall(r"<main>.*?</main>", page, re.S)
    return [reading.parse(part) for part in found]


def test_each_page_has_its_text(written):
    assert written.keys() == SAYS.keys()
    for name, said in SAYS.items():
        assert said in reading.words(parts(written[name])[0])


def test_main_says_where_the_pages_are(monkeypatch, capsys):
    monkeypatch.setattr(notebooks, "write_whole", lambda *_: None)
    cheatsheet.main()
    told = capsys.readouterr().out
    assert re.findall(r"Open (\w+)\.html in a browser", told) == [*SAYS]


@pytest.mark.parametrize("name", cheatsheet.SHEETS)
def test_the_sheets_have_the_tables_and_the_code(written, name):
    source = cheatsheet.SHEETS[name].read_text(encoding="utf-8")
    (body,) = parts(written[name])
    rows = [line for line in source.splitlines() if line.startswith("|") and "---" not in line]
    assert len(list(body.iter("tr"))) == len(rows) > 10
    assert len(list(body.iter("pre"))) == source.count("```") / 2


def test_the_picture_is_the_one_that_is_drawn_and_stands_in_the_page_with_its_words(written):
    """`python -m tools.sheet_picture` writes it."""
    assert sheet_picture.PATH.read_text(encoding="utf-8") == sheet_picture.svg()
    words = re.search(r"!\[(.*)\]", cheatsheet.SHEETS["cheatsheet"].read_text(encoding="utf-8"))[1]
    (picture,) = parts(written["cheatsheet"])[0].iter("svg")
    assert picture.get("role") == "img" and picture.get("aria-label") == words
    drawn = {text.text for text in picture.iter("text")}
    for weight in sheet_picture.weights():
        assert f"{weight:.2f}" in words and f"{weight:.2f}"[1:] in drawn
    assert {"q", "k.mT", "masked", "weights", "v", "out", "−∞"} <= drawn


def test_the_goals_are_those_of_the_notebooks(written):
    (body,) = parts(written["goals"])
    said = [reading.words(item) for item in body.iter("li")]
    expected, minutes = [], 0
    for path in notebooks.names():
        first = nbformat.read(path, as_version=4).cells[0].source
        goals = re.findall(r"^- (.*)$", first, re.M)
        assert 3 <= len(goals) <= 5, path.name
        expected += [re.sub(r"[*`]", "", goal) for goal in goals]
        minutes += int(re.search(r"^(\d+) minutes", first, re.M)[1])
    assert said == expected
    assert f"{minutes // 60} h {minutes % 60:02d} in all" in reading.words(body)


def test_the_key_of_the_exit_questions_begins_a_sheet_of_its_own(written):
    asked, solved = map(reading.words, parts(written["exit_questions"]))
    chapters = plan.chapters()
    exits = {id: told for chapter in chapters.values() for id, told in chapter.exits.items()}
    assert len(exits) == 2 * len(notebooks.names())
    for id, told in exits.items():
        question, key, wrong = (
            re.sub(r"[*`]", "", text) for text in (told.question, told.key, told.wrong)
        )
        assert f"{id} {question}" in asked and f"{id} {key} Wrong: {wrong}" in solved
        assert key not in asked and question not in solved


@pytest.mark.parametrize("name", SAYS)
def test_they_load_nothing(written, name):
    for loads in ("src=", "url(", "@import", "http:", "https:", "<script"):
        assert loads not in written[name], loads


def test_a_page_that_cannot_be_written_is_told(tmp_path, monkeypatch, refused):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    (tmp_path / "cheatsheet.html").mkdir()
    assert "cannot be written" in refused(cheatsheet.main)
