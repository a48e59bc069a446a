"""How an output that nbval does not compare is compared with what its cell says.

tests/stored.py compares the stored ones.
"""

import pytest

from tools.ignored_cells import differences

OLD = "scaled: 0.48\nrows 0 1351, at 3.2e-08"


@pytest.mark.parametrize(
    ("new", "what"),
    [
        ("raw: 0.48\nrows 0 1351, at 3.2e-08", "words differ"),
        ("scaled: nan\nrows 0 1351, at 3.2e-08", "words differ"),
        ("scaled: 0.48\nrows 0, at 3.2e-08", "words differ"),
        ("scaled: 0.14\nrows 0 1351, at 3.2e-08", "0.48 against 0.14"),
        ("scaled: 0.48\nrows 40 1351, at 3.2e-08", "0 against 40"),
        ("scaled: 0.48\nrows 0 1351, at 3.2e-05", "3.2e-08 against 3.2e-05"),
    ],
)
def test_a_false_output_is_seen(new, what):
    assert [said for said in differences(OLD, new, 0.5) if what in said]


def test_another_machine_is_none():
    assert differences("5\n 9 8", "5\n10 8", 0.5) == [], "columns may be wider"
    assert differences(OLD, "scaled:  0.52\nrows  3  1290, at 2.2e-08", 0.5) == []
    assert differences("torch 2.13.0+cpu · 1 threads", "torch 2.14 · 8 threads", None) == []
