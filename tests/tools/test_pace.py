"""What counts as a reader's time, and what does not."""

import pytest
from nbformat import v4

from tools import pace
from tools.lint_notebooks import Book

TEXT, CODE = v4.new_markdown_cell, v4.new_code_cell
HIDDEN = "<details><summary>Answers</summary>\n\nhidden\n\n</details><!-- words -->"
END = "**Sources.** A book.\n\nAnother."
CHECK = "published = 1\nassert published"


def book(*cells):
    """A title cell of three words, the set-up, and these cells."""
    first = TEXT("# One?\n\n5 minutes. Two")
    return Book("03_three.ipynb", v4.new_notebook(cells=[first, CODE("import a"), *cells]), 0)


@pytest.mark.parametrize(
    ("cells", "seconds"),
    [
        ([TEXT("four [words](page.ipynb) are `here`, $x y$")], 4 * 0.4),
        ([TEXT("one" + HIDDEN)], 0.4),
        ([CODE("a = 1\n\n    \nb = 2")], 2 * 4),
        ([CODE('predict("03.p1")')], 4 + 20),
        ([TEXT("### Exercise 03.1 · ★☆☆ · 6 min")], 2 * 0.4 + 6 * 60),
        ([TEXT("### Exercise 03.1 · ★☆☆ · 6 min · optional")], 3 * 0.4),
        (
            [TEXT("## Optional: more"), CODE("a = 1"), TEXT("### Four\n\nfive"), TEXT("## What")],
            0.4,
        ),
        ([TEXT(END), CODE(CHECK)], 0),
        ([CODE(CHECK), TEXT(END), CODE("print(1)\n" + CHECK)], 5 * 4),
    ],
)
def test_the_time_of_a_reader(cells, seconds):
    without = pace.pace(book())
    assert without == {"minutes": 3 / 150, "words": 3, "cells": 2}
    took = 60 * (pace.pace(book(*cells))["minutes"] - 3 / 150)
    assert took == pytest.approx(seconds)


def test_what_takes_80_minutes_names_its_break():
    half, other = TEXT("word " * 3000), TEXT("word " * 3000)
    _, told, *_ = pace.faults(book(half, other))
    assert told.endswith("takes 90 minutes: say in its middle, This is a good place for a break.")
    told = pace.faults(book(half, TEXT(f"{pace.BREAK}."), other))[-1]
    assert "say 90 minutes if attention is new to you (half as long for a fast reader), " in told
    assert told.endswith(", with a break after 40 minutes in the first cell")


def test_what_is_too_much_has_a_star_and_fails(monkeypatch, capsys):
    long = book(TEXT("word " * 2301))
    monkeypatch.setattr(pace.notebooks, "names", lambda: ["03"])
    monkeypatch.setattr(pace, "read", {"03": long}.get)
    with pytest.raises(SystemExit):
        pace.main()
    told = capsys.readouterr()
    assert told.out.splitlines()[2].split() == ["03", "15", "2,304*", "3"]
    assert told.err.splitlines() == [
        "03_three.ipynb has 2304.0 words: at most 2300",
        "03_three.ipynb takes 30.7 minutes: say 40 minutes if attention is new to you "
        "(half as long for a fast reader) in the first cell",
    ]
