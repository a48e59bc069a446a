import math

import numpy as np
import pytest
import torch

from helpers.numbers import any_rounding, as_array, number
from helpers.show import show


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.125, "0.13"),  # ties go away from zero …
        (-0.125, "-0.13"),
        (0.285, "0.29"),  # … also where binary fractions fall just short of them
        (-0.001, "0.00"),
        (5e-8, "0"),  # as machines differ in the last bits
        (-0.0, "0"),
        (2 / 3, "0.67"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (-1e9, "-1.00e+09"),
        (3, "3"),
        (True, "True"),
        (torch.tensor(2.5, requires_grad=True), "2.50"),
        (np.int64(-4), "-4"),
    ],
)
def test_number(value, text):
    assert number(value) == text


def test_number_takes_other_digits():
    assert number(2 / 3, 4) == "0.6667"
    assert number(8.0, 0) == "8"


@pytest.mark.parametrize("value", ["3", None, 1j])
def test_number_refuses_what_is_no_number(value):
    with pytest.raises(TypeError, match="one real number"):
        number(value)


def test_strict_mode_refuses_a_rounding_that_could_flip(monkeypatch):
    monkeypatch.setenv("ATTENTION_STRICT", "1")
    for value, decimals in ((0.58984995, 4), (-0.1250004, 2), (0.0049995, 2)):
        with pytest.raises(ValueError, match="fewer digits"):
            number(value, decimals)
    assert number(0.58984995, 2) == "0.59"
    assert number(1 / 8) == "0.13"  # an exact tie is exact on every machine
    with any_rounding():
        assert number(0.1250004) == "0.13"
    with pytest.raises(ValueError, match=r"0\.125"):
        number(0.1250004)
    monkeypatch.setenv("ATTENTION_STRICT", "0")
    assert number(0.1250004) == "0.13"


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
    show(0.25, "one number")
    assert capsys.readouterr().out == "two numbers\n1.0  2.5\none number: 0.25\n"


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (torch.zeros(2, dtype=torch.complex64), TypeError, "must be real"),
        (torch.zeros(1, 1, 1, 1), ValueError, "up to 3 dimensions, got 4"),
        (torch.zeros(201), ValueError, "up to 200 numbers, got 201.*slice"),
        ([[1, 2], [3]], ValueError, "different lengths"),
        ("abc", TypeError, "must be numbers.*got the str 'abc'"),
        ([[1, 2], [3, "x"]], TypeError, "must be numbers.*got the str 'x'"),
        ([[None, 1.0]], TypeError, "must be numbers.*got the NoneType None"),
        (np.array([["a"]]), TypeError, "must be numbers.*got the str 'a'"),
        ([10**30], TypeError, "must be numbers.*got the list"),
        (torch.zeros(2, device="meta"), ValueError, "device 'meta'"),
    ],
)
def test_show_refuses_in_words(value, error, words):
    with pytest.raises(error, match=words):
        show(value)


def test_as_array_is_a_copy():
    x = torch.zeros(3)
    as_array(x)[0] = 1
    assert x.sum() == 0
