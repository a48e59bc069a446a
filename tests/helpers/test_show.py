import math

import pytest
import torch

from helpers.show import show, tried


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            torch.tensor([[1.0, -2.5], [0.125, math.inf]], requires_grad=True),
            " 1.00  -2.50\n 0.13    inf\n",
        ),
        ([0.5, 10], " 0.50  10.00\n"),
        (torch.arange(6).reshape(2, 3) * 5, " 0   5  10\n15  20  25\n"),
        (torch.arange(4.0).reshape(2, 1, 2), "[0]\n0  1\n[1]\n2  3\n"),  # whole numbers
        ([[0.0, 0.004], [1.0, 1.0]], "   0  0.00\n1.00  1.00\n"),  # 0 is exact, 0.00 is small
        ([[1, 100], [2, 3]], "  1  100\n  2    3\n"),  # all columns are equally wide
        (torch.tensor([True, False]), " True  False\n"),
        (torch.tensor(0.75, dtype=torch.bfloat16), "0.75\n"),
        ([torch.tensor(1.0), torch.tensor(2.0)], "1  2\n"),
        (torch.zeros(0, 3), "nothing in it: shape (0, 3)\n"),
    ],
)
def test_show_prints_aligned_numbers_only(capsys, value, text):
    show(value)
    assert capsys.readouterr().out == text


def test_show_writes_the_label(capsys):
    show([1.0, 2.5], "two numbers", decimals=1)
    show(0.25, "at X:")
    show([[0.5, 10.0]], labels=["the", "soup"])
    assert capsys.readouterr().out == (
        "two numbers\n1.0  2.5\nat X: 0.25\n  the   soup\n 0.50  10.00\n"
    )


@pytest.mark.parametrize(
    ("value", "labels"),
    [([1, 2], ["a"]), ([[1, 2], [3, 4]], "abc"), (1.0, ["a"]), (torch.zeros(1, 1, 2), ["a", "b"])],
)
def test_show_refuses_labels_that_name_no_columns(value, labels):
    with pytest.raises((TypeError, ValueError), match=r"^labels must "):
        show(value, labels=labels)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (torch.zeros(2, dtype=torch.complex64), TypeError, "the values to show must be real"),
        (torch.zeros(1, 1, 1, 1), ValueError, "up to 3 dimensions, got 4"),
        (torch.zeros(201), ValueError, "up to 200 numbers, got 201.*slice"),
    ],
)
def test_show_refuses_in_words(value, error, words):
    with pytest.raises(error, match=words):
        show(value)


def test_what_is_tried_tells_its_shape_or_the_error():
    assert tried(lambda: torch.ones(4, 3, 3) @ torch.ones(3, 2)) == "(4, 3, 2)"
    assert "cannot be multiplied (3x2 and 3x3)" in tried(lambda: torch.ones(3, 2) @ torch.eye(3))
