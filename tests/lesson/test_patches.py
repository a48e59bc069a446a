"""A mistake is a change in the reference's source: what is made of it, and what is refused."""

import inspect
import re
import traceback
from dataclasses import replace

import pytest
import torch

from helpers.lesson.grading import Mistake
from helpers.lesson.patches import patched
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
    assert "It happened in line 3: `return x.cumsum(dim=7)`" in text


@pytest.mark.parametrize(
    ("old", "message"),
    [
        (
            "dim=2",
            "99.1, elsewhere: the change of 'dim=2' must fit running_sum exactly once, but this "
            "text stands there 0 times. Quote it as it stands there now.",
        ),
        (
            "(B, T, C)",
            "99.1, elsewhere: the change of '(B, T, C)' must fit running_sum exactly once, but "
            "this text stands there 2 times. Quote more of its line.",
        ),
    ],
)
def test_a_change_that_does_not_fit_once_is_refused(old, message):
    mistake = Mistake("elsewhere", change=(old, "dim=-1"), message="")
    exercise = replace(EXERCISE, mistakes=(mistake,))
    with pytest.raises(ValueError, match=re.escape(message)):
        _ = exercise.mistakes[0].code
    with pytest.raises(ValueError, match=re.escape(message)):  # not only the first time
        exercise.check(lambda x: x)
