"""Two texts are the same if their words are, and their numbers nearly."""

import pytest

from tests.told import same


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("0.42 of 7", "0.43 of 7", True),
        ("0.42 of 7", "0.42 of 8", False),
        ("0.42 of 7", "0.45 of 7", False),
        ("off by 3.6e-07", "off by 1e-05", True),
        ("one\n  two", "one two", True),
        ("one two", "one too", False),
        ("x[1, 3]", "x[1, 2]", False),
    ],
)
def test_same(one, other, expected):
    assert same(one, other) == expected
