"""make pages says of an edited page what is to mend, in words, with file and line."""

import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from attention_base.known import Known, PageError
from feedback.grading import Mistake
from lesson.exercises import EXERCISES
from tests.lesson.examples import EXERCISE
from tools import pages


def faults(*changes):
    known = [
        Known(f"change {i}", (one,), "Why.", f"99.md, line {i}") for i, one in enumerate(changes)
    ]
    return list(pages.faults_of(replace(EXERCISE, mistakes=tuple(map(Mistake, known)))))


def test_a_mistake_that_changes_nothing_and_one_that_is_another_are_told():
    assert faults(("dim=1", "dim=-1"), ("x.cumsum", "2 * x.cumsum")) == []
    assert faults(("dim=1", "1")) == [
        "99.md, line 0, “change 0”: with this change the answer passes 99.1. Change what matters."
    ]
    assert faults(("dim=1", "dim=-1"), ("dim=1", "dim=2")) == [
        "99.md, line 1, “change 1”: this gives the same results as “change 0”. One of the two is "
        "enough."
    ]


def test_what_is_there_is_counted(capsys):
    with pytest.raises(SystemExit) as end:
        pages.main("00")
    assert not end.value.code
    count = sum(len(one.mistakes) for id, one in EXERCISES.items() if id.startswith("00"))
    told = capsys.readouterr().out
    assert (
        told
        == f"00.md: 3 exercises, {count} mistakes, 4 predictions, 15 terms\n  nothing to mend\n"
    )


def test_a_change_that_makes_no_program_is_told():
    (fault,) = faults(
        ("dim=1", "dim="),
    )
    assert fault.startswith("99.md, line 0, “change 0”: this makes `") and "no Python" in fault


def test_a_page_that_cannot_be_read_ends_in_its_sentence(refused, monkeypatch):
    class Faulty:
        def __getattr__(self, name):
            raise PageError("03.md, line 7: mend it.")

    monkeypatch.setitem(sys.modules, "lesson.exercises", Faulty())
    assert refused(pages.main, "03") == "03.md, line 7: mend it."


PAGE = """# 03 scores ⏎ become weights

# 03.1 Causal softmax
what a pass has checked
- a hint
## no softmax
    old → new
These are scores.
## a second one
    def second
As in 03.1, “no softmax”.

# 03.p1
Which?
## ✓ this
Yes.
## that
No.

# Terms
- mask: what may be seen
"""
FAULTS = [  # old, new, the line and a part of what is told of it
    ("## no softmax", "### no softmax", 6, "no heading. A section begins with `# `"),
    ("## no softmax", "##no softmax", 6, "no heading."),
    ("## no softmax", " ## no softmax", 6, "no heading, since it is indented."),
    ("# 03.p1", "#03.p1", 13, "no heading."),
    ("# Terms", "# Term", 20, "Glossary terms stand below `# Terms`"),
    ("## that", "## ", 17, "a heading without words"),
    ("    old → new", "  old → new", 7, "Begin it with four spaces"),
    ("    old → new", "\told → new", 7, "Begin it with four spaces"),
    ("    old → new", "\xa0\xa0\xa0\xa0old → new", 7, "Begin it with four spaces"),
    ("old → new", "old -> new", 7, "The arrow is `→`: copy it from here."),
    ("old → new", "old => new", 7, "The arrow is `→`"),
    ("These are", "    These are", 8, "Is it what is told? Then do not indent."),
    ("- a hint", "* a hint", 5, "An item, such as a hint or a term, begins with `- `"),
    ("- a hint", "-a hint", 5, "begins with `- `"),
    ("- a hint", "- ", 5, "an item without words"),
    ("- mask: what", "mask: what", 21, "no term. A term is one line"),
    ("Which?", "Which?\n- this one", 15, "A prediction has a question and choices"),
    ("Yes.", "<!-- todo -->", 16, "begins with `> `"),
    ("Yes.", ">todo", 16, "begins with `> `"),
    ("## ✓ this", "## ✔ this", 15, "begins with `✓ `"),
    ("## ✓ this", "## ✓this", 15, "begins with `✓ `"),
    ("## ✓ this", "## this ✓", 15, "begins with `✓ `"),
    ("“no softmax”.", '"no softmax".', 11, "with these quotation marks and the full stop"),
    ("“no softmax”.", "“no softmax”", 11, "and the full stop"),
]


@pytest.mark.parametrize(("old", "new", "line", "told"), FAULTS)
def test_a_line_that_has_no_meaning_is_told_where_it_stands(old, new, line, told, tmp_path):
    path = tmp_path / "03.md"
    path.write_text(PAGE, encoding="utf-8-sig")  # as some editors save it
    assert list(pages.slips_in(path)) == []
    assert PAGE.count(old) >= 1
    path.write_text(PAGE.replace(old, new, 1), encoding="utf-8")
    (slip,) = pages.slips_in(path)
    assert slip.startswith(f"03.md, line {line}: `") and told in slip


def test_a_page_that_is_empty_or_no_utf_8_is_told(tmp_path):
    path = tmp_path / "03.md"
    path.write_text("")
    assert list(pages.slips_in(path)) == [
        "03.md: the page has no heading, such as `# 02.1 A title`. Is it empty?"
    ]
    path.write_text(PAGE, encoding="utf-16")
    assert list(pages.slips_in(path)) == [
        "03.md: this is no text in UTF-8. Save it in your editor as UTF-8."
    ]


def test_a_slip_ends_the_trial(refused, monkeypatch):
    monkeypatch.setattr(pages, "slips_in", lambda path: ["Mend."] if "03" in path.name else [])
    assert refused(pages.main, "02") == "Mend."


@pytest.mark.parametrize(
    ("page", "old", "new", "told"),
    [
        (
            "attention_clinic/parts.md",
            "{n} heads are added",
            "{m} heads are added",
            "in braces stand n,",
        ),
        (
            "attention_clinic/parts.md",
            "{n} heads are added",
            "{n heads are added",
            "in braces stand n,",
        ),
        (
            "attention_clinic/parts.md",
            "## heads added",
            "## heads summed",
            "“heads added”, which has no",
        ),
        (
            "attention_clinic/parts.md",
            "\nOf {n} heads only {names} made the output.",
            "",
            "say in a line",
        ),
        ("feedback/remedies.md", "## 'NoneType'", "## None", "stands in too many errors"),
    ],
)
def test_the_pages_of_diagnose_are_tried(page, old, new, told, tmp_path, monkeypatch):
    assert list(pages.faults_of_diagnose()) == []
    for room in ("attention_clinic", "feedback"):
        shutil.copytree(pages.ROOT / room, tmp_path / room)
    path = tmp_path / page
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (fault,) = pages.faults_of_diagnose()
    assert told in fault


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "old", "new", "told"),
    [
        (
            "attention_clinic/attention.md",
            "dim=-1 → dim=-2",
            "dim=9 → dim=-2",
            "change of `dim=9` must fit",
        ),
        pytest.param(
            "attention_clinic/block.md",
            "share=0.5",
            "shared=0.5",
            "there is no setting shared. Choose from",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "feedback/remedies.md",
            "# Fragile",
            "# Another\n# Fragile",
            "its sections are `# Errors` an",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_page_of_diagnose_that_cannot_be_read_ends_in_its_sentence(
    page, old, new, told, tmp_path
):
    for part in (*pages.notebooks.ROOMS, "tools", "notebooks"):
        shutil.copytree(pages.ROOT / part, tmp_path / part)
    path = tmp_path / page
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "tools.pages"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    assert ended.stderr.startswith(f"{path.name}, line ") and told in ended.stderr


def test_a_change_that_stops_the_program_by_a_slip_is_told():
    (fault,) = faults(("cumsum", "cumsom"))
    assert "stops with “'Tensor' object has no attribute 'cumsom'" in fault
