"""make pages says of an edited page what is to mend, in words, with file and line."""

import sys
from dataclasses import replace

import pytest

from helpers.known import Known, PageError
from helpers.lesson.exercises import EXERCISES
from helpers.lesson.grading import Mistake
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
        == f"00.md: 3 exercises, {count} mistakes, 3 predictions, 12 terms\n  nothing to mend\n"
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

    monkeypatch.setitem(sys.modules, "helpers.lesson.exercises", Faulty())
    assert refused(pages.main, "03") == "03.md, line 7: mend it."
