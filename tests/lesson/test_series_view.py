"""The map of the series is made of the pages that are there, and marks where you are."""

import re
from types import SimpleNamespace

import pytest

from helpers.pictures.base import size_of
from lesson import series_view
from lesson.exercises import SERIES
from lesson.series_view import series_map
from tools import notebooks


def test_each_notebook_has_its_page():
    assert [*SERIES] == [path.name[:2] for path in notebooks.names()]


@pytest.mark.parametrize("current", SERIES)
def test_the_map_marks_where_you_are(current):
    picture = series_map(current)
    here = [line for line in str(picture).splitlines() if "you are here" in line]
    assert [line[:2] for line in here] == [current]
    assert picture.html().count("you are here") == 1
    idea = SERIES[current].replace("\n", " ")
    assert picture.alt.endswith(f"You are in notebook {current}, {idea}.")
    assert (
        "from 00, tensors, to 15, a real model. Part 1: a GPT that you wrote. Part 2: "
        in picture.alt
    )
    width, height = size_of(picture.figure())
    assert width <= 900 and height <= 260


@pytest.mark.parametrize("lines", [1, 99, 100])
@pytest.mark.parametrize("due", [0, 12])
def test_whatever_the_file_holds_fits_on_the_map(lines, due, monkeypatch):
    parts = {n: SimpleNamespace(id=f"{n}.part", text="x\n" * lines) for n in SERIES}
    file = SimpleNamespace(parts=parts)
    monkeypatch.setattr(series_view.own_file, "look", lambda: (file, ""))
    monkeypatch.setattr(
        series_view.reviews, "due_by_notebook", lambda: {n: due for n in parts if due}
    )
    for current in SERIES:
        width, height = size_of(series_map(current).figure())
        assert width <= 900 and height <= 280, current


def test_the_parts_follow_each_other():
    picture = series_map("00")
    held = [m.groups() for m in re.finditer(r"(\d\d) to (\d\d): (.*)", str(picture))]
    texts = series_view.PARTS.values()
    assert held == [*zip(("00", "08", "11"), ("07", "10", "15"), texts, strict=True)]


def test_the_first_map_says_what_you_will_have_on_the_way():
    first = series_map("00")
    lines = str(first).splitlines()[1:]
    noted = {line[:2]: line.partition("[")[2].rstrip("]") for line in lines if "[" in line}
    assert noted == {"00": "you are here", **series_view.MILESTONES}
    assert all(f"{note} ({number})" in first.alt for number, note in series_view.MILESTONES.items())
    assert size_of(first.figure())[0] <= 900
    for number in [*SERIES][1:]:
        assert str(series_map(number)).count("[") == 1


@pytest.mark.parametrize("current", ["4", 4, None, ["04"]])
def test_an_unknown_notebook_is_refused_in_words(current):
    with pytest.raises(ValueError, match=r"one of 00, 01, .*15, got"):
        series_map(current)
