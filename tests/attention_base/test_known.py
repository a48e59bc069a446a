"""A page is read with its lines; a mistake in it is a change of a right program's source."""

import inspect
import re
import traceback
from dataclasses import replace

import pytest
import torch

from attention_base.known import Known, PageError, patched, program, read, source
from tests.lesson.examples import EXERCISE, running_sum

X = torch.ones(2, 5, 3)


def test_a_change_makes_another_function_and_leaves_the_first_one():
    channels = patched(running_sum, [("dim=1", "dim=-1")], "99.1, channels")
    assert torch.equal(channels(X), X.cumsum(dim=-1))
    assert torch.equal(running_sum(X), X.cumsum(dim=1))
    assert channels.__name__ == "running_sum" and channels.__module__ == running_sum.__module__
    assert inspect.signature(channels) == inspect.signature(running_sum)
    assert channels.__globals__ is running_sum.__globals__


def test_several_changes_are_put_in_one_after_the_other():
    twice = patched(running_sum, [("dim=1", "dim=0"), ("dim=0)", "dim=0) * 2")], "99.1, twice")
    assert torch.equal(twice(X), 2 * X.cumsum(dim=0))


def test_its_source_can_be_read():
    changed = patched(running_sum, [("dim=1", "dim=-1")], "99.1, readable")
    assert inspect.getsource(changed) == (
        'def running_sum(x):\n    """(B, T, C) -> (B, T, C)."""\n    return x.cumsum(dim=-1)\n'
    )


def test_its_errors_point_at_the_changed_line():
    broken = patched(running_sum, [("dim=1", "dim=7")], "99.1, out of range")
    with pytest.raises(IndexError) as raised:
        broken(X)
    last = traceback.extract_tb(raised.value.__traceback__)[-1]
    assert (last.filename, last.name) == ("<99.1, out of range>", "running_sum")
    assert (last.lineno, last.line) == (3, "return x.cumsum(dim=7)")
    text = replace(EXERCISE, mistakes=()).check(broken).message
    assert "raised IndexError in line 3: `return x.cumsum(dim=7)`" in text


def test_a_sentence_goes_on_in_the_next_line_and_a_paragraph_does_not(tmp_path):
    path = tmp_path / "99.md"
    path.write_text("# 99.1 Sums\n## a\nYou summed\nthe channels.\nTime is axis 1.\n", "utf-8")
    assert read(path)[0].entries[0].message == "You summed the channels.\nTime is axis 1."


def test_a_statement_that_is_taken_out_leaves_no_line():
    silent = patched(blocks_of_two, [("total = x + 1", "")], "99.1, silent")
    assert source(silent).splitlines()[1:] == ["    total = 2 * x", "    return total"]


def blocks_of_two(x):
    total = x + 1

    total = 2 * x
    return total


REFUSED = [
    (
        ("dim=2", "dim=-1"),
        "this text stands there 0 times. Quote what stands there, as in `return x.cumsum(dim=1)`.",
    ),
    (("(B, T, C)", "x"), "this text stands there 2 times. Quote more of its line."),
    (("dim=1)", "dim=1"), "this makes `return x.cumsum(dim=1`, which is no Python."),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_a_change_that_does_not_fit_is_refused_with_its_place(change, message):
    elsewhere = Known("elsewhere", (change,), where="99.md, line 7")
    with pytest.raises(PageError) as refused:
        program(running_sum, elsewhere)
    assert str(refused.value).startswith("99.md, line 7, “elsewhere”: ")
    assert message in str(refused.value)
    assert refused.value._render_traceback_() == [str(refused.value)]


def test_two_mistakes_make_one_program_if_they_go_together():
    channels = Known("channels", (("dim=1", "dim=-1"),))
    doubled = Known("doubled", (("x.cumsum", "2 * x.cumsum"),))
    both = program(running_sum, channels, doubled)
    assert torch.equal(both(X), 2 * X.cumsum(dim=-1))
    batch = Known("batch", (("dim=1", "dim=0"),))
    assert program(running_sum, channels, batch) is None


# ---------------------------------------------------------------- pages

PAGE = """> a note
# 99.1 Running sum
two batches
- Look at the axes.
- Time is axis 1.
## over the channels
    dim=1 → dim=-1
You summed over the channels.
## returned too early
    x⏎    return y → x⏎        return y
    , keepdim=True →
Out.
## another program
    def by_loop
As in 98.1.
## a call
    norms=(0, None), place="pre"
Called.

# Terms
- query: What a token looks for.
"""


def test_a_page_is_read_with_its_places(tmp_path):
    (tmp_path / "99.md").write_text(PAGE, encoding="utf-8")
    exercise, terms = read(tmp_path / "99.md")
    assert (exercise.head, exercise.where) == ("99.1 Running sum", "99.md, line 2")
    assert exercise.lines == [("two batches", "99.md, line 3")]
    assert [line.text for line in exercise.items] == ["Look at the axes.", "Time is axis 1."]
    one, two, three, four = exercise.entries
    assert one == Known(
        "over the channels",
        (("dim=1", "dim=-1"),),
        "You summed over the channels.",
        "99.md, line 6",
    )
    assert two.changes == (("x\n    return y", "x\n        return y"), (", keepdim=True", ""))
    assert (three.function, three.message) == ("by_loop", "As in 98.1.")
    assert four.settings == {"norms": (0, None), "place": "pre"}
    assert terms.items == [("query: What a token looks for.", "99.md, line 21")]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("> a note", "a line", "99.md, line 1: a page begins with a heading"),
        ("## a call", "## another program", "line 16: “another program” stands in 99.md, line 13"),
        ("dim=1 → dim=-1", "dim=1 dim=-1", "line 6, “over the channels”: `dim=1 dim=-1` is no ch"),
        ("norms=(0, None)", "norms=x", 'line 16, “a call”: `norms=x, place="pre"` is no change.'),
    ],
)
def test_a_faulty_page_is_refused_with_file_and_line(tmp_path, old, new, message):
    (tmp_path / "99.md").write_text(PAGE.replace(old, new), encoding="utf-8")
    with pytest.raises(PageError, match=re.escape(message)):
        read(tmp_path / "99.md")
