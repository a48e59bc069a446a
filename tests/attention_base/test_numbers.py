import math

import numpy as np
import pytest
import torch

from attention_base.numbers import (
    WIDTH,
    align_columns,
    any_rounding,
    as_array,
    bracketed,
    brief,
    briefs,
    decimals_for,
    joined,
    listed,
    narrow,
    number,
    powers,
    small,
    texts,
    told_apart,
    wrap_text,
)


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


@pytest.mark.parametrize(
    ("value", "told"), [("3", "the str '3'"), (None, "None"), (1j, "the complex 1j")]
)
def test_number_refuses_what_is_no_number(value, told):
    with pytest.raises(TypeError, match=f"one real number, got {told}"):
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


def test_texts_are_nested_as_the_array_is():
    assert texts(np.array([[1.0, 2.0], [0.5, 0.0]])) == [["1.00", "2.00"], ["0.50", "0"]]
    assert texts(np.array([8.0, np.nan])) == ["8", "nan"]  # whole, as far as there are numbers
    assert texts(np.array(0.25), 1) == "0.3"


def test_decimals_are_left_out_where_all_is_whole():
    assert decimals_for(np.array([1.0, 2.0 + 1e-9, np.inf])) == 0
    assert decimals_for(np.array([1.0, 2.5]), 3) == 3


def test_small_never_hides_what_is_there():
    assert [small(value) for value in (0.0, 3.2e-5, 0.25)] == ["0", "3e-05", "0.25"]


def test_narrow_needs_three_characters():
    assert [narrow(value) for value in (0.25, 1.0, 2.0, 0.0)] == [".25", "1", "2", "0"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(9.04e-28, "9.0e-28"), (-0.00523, "-0.0052"), (0.0996, "0.10"), (0.996, "1.0"), (17.2, "17"),
     (0.000123, "0.00012"), (0.0000123, "1.2e-05"), (9440, "9400"), (9961, "1.0e+04"),
     (247_000, "2.5e+05"), (0.0, "0"), (float("inf"), "inf")],
)  # fmt: skip
def test_brief_keeps_two_figures(value, text):
    assert brief(value) == text


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ([1, 250, 0], ["1", "250", "0"]),
        ([1, 250, 0.5], ["1.0", "250", "0.50"]),
        ([1, 1e-9], ["1.0", "1.0e-09"]),
        ([1, np.nan], ["1", "nan"]),
    ],
)
def test_briefs_are_whole_only_together(values, written):
    assert briefs(np.array(values, dtype=float)) == written


def test_powers_of_ten():
    assert powers([-4, 0, 3]) == ["0.0001", "1", "1000"]
    assert powers([-5, 0, 3]) == ["10⁻⁵", "1", "10³"]


def test_negative_numbers_stand_in_brackets_behind_a_sign():
    assert [bracketed("-2.00"), bracketed("2.00")] == ["(-2.00)", "2.00"]


def test_two_numbers_are_told_apart():
    assert told_apart(1.0, 1.0000001) == ("1", "1.0000001")
    assert told_apart(2, 3.5) == ("2", "3.5")
    assert told_apart(1 / 3, 0.5) == ("0.3333", "0.5"), "four digits where they are enough"
    assert told_apart(1 / 3, 1 / 3 + 1e-6) == ("0.3333333", "0.3333343")


def test_positions_and_words_as_in_a_sentence():
    assert [listed(p) for p in ([3], [0, 1], [0, 1, 2], [0, 2, 5])] == [
        "3",
        "0 and 1",
        "0 to 2",
        "0, 2 and 5",
    ]
    assert listed(range(0, 20, 2)) == "0, 2, 4, 6, 8 and 5 more"
    assert [joined([]), joined(["a"]), joined(["a", "b", "c"])] == ["", "a", "a, b and c"]


def test_strict_mode_refuses_a_figure_on_the_edge(monkeypatch):
    monkeypatch.setenv("ATTENTION_STRICT", "1")
    with pytest.raises(ValueError, match="another machine"):
        brief(4.15e-5 + 1e-12)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (torch.zeros(2, dtype=torch.complex64), TypeError, "x must be real"),
        ([[1, 2], [3]], ValueError, "different lengths"),
        ("abc", TypeError, "must be numbers.*got the str 'abc'"),
        ([[1, 2], [3, "x"]], TypeError, "must be numbers.*got the str 'x'"),
        ([[None, 1.0]], TypeError, "must be numbers.*got None"),
        (np.array([["a"]]), TypeError, "must be numbers.*got the str 'a'"),
        ([10**30], TypeError, "must be numbers.*got the list"),
        (torch.zeros(2, device="meta"), ValueError, "device 'meta'"),
    ],
)
def test_what_is_not_an_array_of_numbers_is_refused(value, error, words):
    with pytest.raises(error, match=words):
        as_array(value, "x")


def test_as_array_is_a_copy():
    x = torch.zeros(3)
    as_array(x)[0] = 1
    assert x.sum() == 0


def test_columns_are_aligned_right():
    assert align_columns([["", "a", "bb"], ["row", "1.00", ""]]) == ["        a  bb", "row  1.00"]
    assert align_columns([["1", "2"]], width=3) == ["  1    2"]


def test_lines_are_wrapped_one_by_one_and_code_stays():
    text = "word " * 30 + "\n    code = " + "1 + " * 30
    *lines, code = wrap_text(text, hanging="  ").split("\n")
    assert len(lines) == 2 and all(len(line) <= WIDTH for line in lines)
    assert lines[1].startswith("  word")
    assert code == "    code = " + "1 + " * 30
