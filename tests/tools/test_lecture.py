"""Decks: every plan of teaching/ names what is there, and a slide has what its kind promises."""

import errno
import re
from html import unescape

import nbformat
import pytest
from nbformat import v4

from explorers import explore_softmax
from helpers.pictures import curves, heatmap, heatmaps
from lesson import PREDICTIONS, TERMS
from tools import notebooks, npm
from tools.lecture import __main__ as lecture
from tools.lecture import plan as planned
from tools.lecture.deck import Book, Deck
from tools.lecture.drawn import LEAST, ROOM, drawings
from tools.site import live

CHAPTERS = planned.chapters()
BOOKS = {
    path.name[:2]: Book(path.name[:2], nbformat.read(path, as_version=4))
    for path in notebooks.names()
}
LECTURE = planned.plans()[0]


RUN = Book.value


def quick(self, source):
    """One explorer and one picture in the place of all, or models train: tests/browser has them."""
    return explore_softmax() if live.is_explorer(source) else heatmap([[1.0]])


@pytest.fixture(scope="module", autouse=True)
def nothing_is_run():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Book, "value", quick)
        yield


@pytest.fixture(scope="module", params=planned.plans(), ids=lambda plan: plan.file)
def deck(request, nothing_is_run):
    return Deck(request.param, CHAPTERS, BOOKS)


def text_of(html):
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_there_is_a_plan_for_a_lecture_a_day_and_weeks():
    files = [plan.file for plan in planned.plans()]
    sessions = [f"session_{n:02}.html" for n in range(1, 17)]
    assert files == ["one_lecture.html", "one_day.html", *sessions]
    lecture, _, *weeks = planned.plans()
    assert 20 <= len(Deck(lecture, CHAPTERS, BOOKS).slides) <= 50
    assert [row.slides for plan in weeks for row in plan.rows] == [(number,) for number in BOOKS]


def test_the_slides_are_those_that_are_stored(deck, snapshot):
    told = [f"{one.kind} {one.name} {one.values.get('size', '')}" for one in deck.slides]
    assert told == snapshot


def test_each_answer_stands_on_the_slide_behind_its_question(deck):
    kinds = [slide.kind for slide in deck.slides]
    for i, slide in enumerate(deck.slides):
        if slide.kind == "prediction":
            after = deck.slides[i + 1]
            assert (after.kind, after.values) == ("answer", slide.values)
        if slide.kind == "exit":
            after = deck.slides[i + 1]
            assert after.kind == "key" and after.values["id"] == slide.values["id"]
    assert kinds.count("prediction") == kinds.count("answer") > 0
    assert kinds.count("exit") == kinds.count("key")


def test_the_notes_of_a_prediction_say_right_whom_to_expect_and_why(deck):
    asked = [slide for slide in deck.slides if slide.kind == "prediction"]
    for slide in asked:
        id = slide.values["prediction"].id
        stop, told = CHAPTERS[id[:2]].stops[id], letters(unescape(text_of(slide.notes)))
        for part in (stop.right, stop.expected, stop.why):
            assert letters(part) in told, id
    assert asked


def letters(text):
    """A text without the signs of Markdown, and without the places of its links."""
    return re.sub(r"[^\w]", "", re.sub(r"\]\([^)]*\)", "", text))


def test_a_question_does_not_give_its_answer_away(deck):
    page = deck.html()
    for shown in re.findall(r'<section class="prediction">(.*?)</section>', page, re.S):
        slide, notes = shown.split('<aside class="notes">')
        assert "✓" not in slide and "right" not in re.findall('class="([^"]*)"', slide)
        assert "Right:" in text_of(notes)
    answers = re.findall(r'<section class="answer">(.*?)</section>', page, re.S)
    assert all(shown.count('class="right"') == 1 for shown in answers)


@pytest.mark.parametrize("plan", planned.plans()[:2], ids=lambda plan: plan.file)
def test_nothing_that_follows_a_prediction_in_its_notebook_is_shown_before_it(plan):
    """In the notebook, what follows a prediction answers it."""
    last = dict.fromkeys(BOOKS, 0)
    for name in [name for row in plan.rows for name in row.slides]:
        if place := planned.PLACE.fullmatch(name):
            book = BOOKS[place[2]]
            at = book.shown.index(book.find(place[1].strip("*"), place[3]))
            last[book.number] = max(last[book.number], at)
        elif name in PREDICTIONS:
            titles = [one.title for one in BOOKS[name[:2]].shown]
            assert titles.index(name) >= last[name[:2]], name


def test_each_slide_says_to_the_speaker_when_and_what(deck):
    told = {row.when for row in deck.plan.rows if row.slides}
    assert all(any(when in slide.notes for when in told) for slide in deck.slides)


def test_all_pictures_and_predictions_of_a_notebook_are_shown():
    slides = Deck(planned.plans()[5], CHAPTERS, BOOKS).slides  # of session 4
    outputs = [one for cell in BOOKS["03"].nb.cells for one in cell.get("outputs", [])]
    pictures = sum("image/png" in one.get("data", {}) for one in outputs)
    assert sum(one.kind == "picture" for one in slides) == pictures - 1  # without the map
    asked = [one.name for one in slides if one.kind == "prediction"]
    assert asked == [id for id in PREDICTIONS if id.startswith("03")]


def test_an_exit_question_is_asked_without_its_key_which_stands_in_the_notes_and_behind_it():
    plan = planned.Plan("All", "all.html", (planned.Row("5–12", "talk", ("03.e1",)),))
    deck = Deck(plan, CHAPTERS, BOOKS)
    told = CHAPTERS["03"].exits["03.e1"]
    (shown,) = re.findall(r'<section class="exit">(.*?)</section>', deck.html(), re.S)
    slide, notes = (letters(unescape(text_of(part))) for part in shown.split("<aside"))
    assert letters(told.question) in slide and letters(told.key) not in slide
    assert letters(told.key) in notes and letters(told.wrong) in notes
    assert letters(told.key) in letters(unescape(text_of(deck.slides[1].values["key"])))


def test_what_a_page_loads_lies_beside_it(deck):
    page = deck.html()
    loaded = set(re.findall(r'(?:src|<link[^>]*href)="(?!data:)([^"]*)"', page))
    live = {f"assets/live-{name}.js" for name in deck.live}
    assert loaded == live | {f"assets/{name}" for name in [*lecture.ASSETS, "deck.css"]}
    assert "http" not in re.sub(r'href="#/\d+"', "", page.split("<body>")[1])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("99.p1", "'99.p1' names no slide"),
        ("03.e9", "no exit question 03.e9"),
        ("42.e1", "nothing of notebook 42"),
        ("board 42", "nothing of notebook 42"),
        ("question 42", "nothing of notebook 42"),
        ("42", "no notebook 42"),
        (
            "*A cat* in [x](../notebooks/03_softmax_masking.ipynb#Keep-the-future-out)",
            "no 'A cat': “",
        ),
        ("live in [x](../notebooks/03_softmax_masking.ipynb#Break-it)", "shows no 'live'"),
        ("live in [x](../notebooks/42_none.ipynb#Break-it)", "no notebook 42"),
        (
            "*A cat* in [x](../notebooks/03_softmax_masking.ipynb#Nowhere)",
            "#Nowhere of notebook 03 shows no 'A cat': nothing",
        ),
    ],
)
def test_a_name_of_nothing_is_told_with_its_place(name, said):
    plan = planned.Plan("One lecture", "all.html", (planned.Row("5–12", "talk", (name,)),))
    with pytest.raises(planned.Unplanned, match=re.escape(said)) as told:
        Deck(plan, CHAPTERS, BOOKS)
    assert str(told.value).startswith("One lecture, 5–12: ")


# ---------------------------------------------------------------- the lecture


def minutes(row):
    return [int(minute) for minute in row.when.split("–")]


def test_the_class_votes_at_least_every_15_minutes():
    asked = {*PREDICTIONS, "03.e1"}
    votes = [row for row in LECTURE.rows if asked & {*row.slides}]
    ends = [5, *(minutes(row)[1] for row in votes)]
    for end, row in zip(ends, votes, strict=False):
        assert minutes(row)[0] - end <= 15, f"no vote from minute {end} to {row.when}"


def test_a_question_uses_no_word_that_no_slide_has_shown():
    deck, shown = Deck(LECTURE, CHAPTERS, BOOKS), ""
    names = {name for term in TERMS.values() for name in (term.name, *term.also)}
    sections = re.findall(r"<section.*?</section>", deck.html(), re.S)[1:]
    for slide, section in zip(deck.slides, sections, strict=True):
        seen = text_of(section.partition("<aside")[0]).lower()
        if slide.kind in ("prediction", "exit"):
            for name in names:
                word = rf"\b{re.escape(name.lower())}s?\b"
                assert not re.search(word, seen) or re.search(word, shown), (slide.name, name)
        shown += seen


def test_code_is_shown_with_what_it_prints():
    deck = Deck(LECTURE, CHAPTERS, BOOKS)
    (loop,) = [s for s in deck.slides if s.kind == "code" and "for t in" in s.values["parts"][0]]
    assert "output 3: mean of [6, 2, 1, 7] = 4" in loop.values["parts"][1]


def test_the_cells_of_a_book_are_run_once_and_print_nothing(capsys):
    sources = ("n = [1]", "1 / 0", "print(n)\nn.append(2)\nn", "len(n)")
    cells = [*map(v4.new_code_cell, sources)]
    cells[1].metadata.tags = ["raises-exception"]
    book = Book("00", v4.new_notebook(cells=cells))
    told = [RUN(book, source) for source in (sources[3], sources[2], sources[3], sources[0])]
    assert told == [2, [1, 2], 2, None] and capsys.readouterr().out == ""


def test_it_is_prepared_in_30_minutes():
    """Half of the time to read what the guide names, 2,500 words at 170 a minute, half to leaf."""
    guide = (planned.TEACHING / "README.md").read_text(encoding="utf-8")
    first = re.split(r"^## ", guide, flags=re.M)[1]
    assert first.startswith("To prepare one lecture") and "(one_lecture.md)" in first
    lecture = (planned.TEACHING / "one_lecture.md").read_text(encoding="utf-8")
    assert len(re.sub(r"\]\([^)]*\)", "", first + lecture).split()) <= 2500


def test_a_run_sheet_names_the_slides_of_each_row(deck):
    lines = re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td>", deck.run_sheet())
    assert [when for when, _ in lines] == [row.when for row in deck.plan.steps or deck.plan.rows]
    numbers = [int(n) - 2 for _, shown in lines for n in re.findall(r"\d+", shown)]
    assert numbers == sorted(numbers) or deck.plan.steps
    assert max(numbers) < len(deck.slides)
    assert ("If you are late" in deck.run_sheet()) == (deck.plan.name == LECTURE.name)
    for step, (_, shown) in zip(deck.plan.steps, lines, strict=False):
        for id in re.findall(r"\d\d\.p\d", step.do):
            asked = [deck.slides[int(n) - 2].name for n in re.findall(r"\d+", shown)]
            assert id in asked


# ---------------------------------------------------------------- pictures


@pytest.mark.parametrize(
    ("picture", "many"),
    [
        (heatmap([[0.25] * 12] * 12), 1),
        (curves([1, 2, 3], {name: {"a": [1, 2, 3]} for name in "xyz"}, xlabel="x"), 1),
        (heatmaps(dict.fromkeys("abc", [[0.25] * 6] * 6)), 3),
    ],
)
def test_a_picture_or_each_of_its_panels_is_drawn_with_large_letters(picture, many):
    before = picture.png()
    found = drawings(picture)
    assert len(found) == many
    for svg in found:
        wide, high = map(float, re.search(r'viewBox="\S+ \S+ (\S+) (\S+)"', svg).groups())
        scale = min(ROOM[0] / wide, ROOM[1] / high)
        letters = [100 * float(size) for size in re.findall(r" scale\(([\d.]+) -", svg)]
        assert min(letters) * scale >= LEAST
    assert picture.png() == before, "a notebook's picture is not changed by a slide's"


# ---------------------------------------------------------------- the files

CHAPTER = """\
# 00 · [Why?](../notebooks/00_start.ipynb)

**Question to open with.** Why?

**On the board.** A drawing.

```
1 2 3
```
"""
PLAN = """\
# One lecture (90 minutes)

| from–to | minutes | do | on the screen |
| --- | --- | --- | --- |
| 0–90 | 90 | Talk. | {slides} |
"""


@pytest.fixture
def project(folder, tmp_path, monkeypatch):
    """The small project, with a plan, and files in the places of those from npm."""
    monkeypatch.setattr(lecture, "FOLDER", tmp_path / "lecture")
    monkeypatch.setattr(planned, "TEACHING", tmp_path / "teaching")
    monkeypatch.setattr(planned, "PLANS", ("one_lecture",))
    planned.TEACHING.mkdir()
    (planned.TEACHING / "00.md").write_text(CHAPTER)
    monkeypatch.setattr(npm, "PACKAGES", tmp_path / "npm" / "node_modules")
    (tmp_path / "npm").mkdir()
    (tmp_path / "npm" / "ready").touch()
    (tmp_path / "script").write_text("script")
    assets = dict.fromkeys(lecture.ASSETS, tmp_path / "script")
    monkeypatch.setattr(lecture, "ASSETS", assets)

    def plan(slides):
        (planned.TEACHING / "one_lecture.md").write_text(PLAN.format(slides=slides))

    plan("question 00 · board 00")
    return plan


def written(root):
    return {str(p.relative_to(root)) for p in (root / "lecture").rglob("*") if p.is_file()}


def test_a_deck_is_written_with_all_that_it_loads(project, tmp_path, capsys):
    lecture.main()
    assets = {f"lecture/assets/{name}" for name in [*lecture.ASSETS, "deck.css"]}
    pages = {"lecture/one_lecture.html", "lecture/run_sheet_one_lecture.html"}
    assert written(tmp_path) == assets | pages
    assert capsys.readouterr().out.startswith("lecture/one_lecture.html\nBeside each")
    assert "1 2 3" in (tmp_path / "lecture" / "one_lecture.html").read_text()


def test_a_plan_that_names_nothing_leaves_the_old_deck(project, tmp_path, refused):
    lecture.main()
    before = (tmp_path / "lecture" / "one_lecture.html").read_text()
    project("board 07")
    assert "teaching/: One lecture (90 minutes), 0–90" in refused(lecture.main)
    assert (tmp_path / "lecture" / "one_lecture.html").read_text() == before


def test_a_damaged_notebook_and_a_full_disk_are_told(project, folder, tmp_path, disk, refused):
    disk(errno.ENOSPC, "one_lecture.part")
    assert "because the disk is full" in refused(lecture.main)
    assert "lecture/one_lecture.html" not in written(tmp_path)
    (folder.source / "01_bag.ipynb").write_text("{")
    assert "notebooks/01_bag.ipynb is damaged" in refused(lecture.main)


def test_an_explorer_that_fails_is_told(project, folder, refused, monkeypatch):
    monkeypatch.setattr(Book, "value", RUN)
    cells = [v4.new_code_cell("x = 1 / 0"), v4.new_code_cell("explore_it(x)")]
    heading = v4.new_markdown_cell("# Why?\n## Here")
    nbformat.write(v4.new_notebook(cells=[heading, *cells]), folder.source / "00_start.ipynb")
    project("live in [Here](../notebooks/00_start.ipynb#Here)")
    assert "`x = 1 / 0` raised ZeroDivisionError" in refused(lecture.main)


def test_without_npm_it_says_what_to_run(project, refused):
    (npm.PACKAGES.parent / "ready").unlink()
    assert "run make lecture" in refused(lecture.main)
