"""The numbers that a text states are found, and its marks are worked out."""

import math

import pytest

from tools.prose_numbers import NUMBER, claims, marks, numbers, sentences, wholes, worked_out


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0.50 and 0.25.", ["0.50", "0.25"]),
        ("row 1.16 -0.17 −1.53", ["1.16", "-0.17", "−1.53"]),
        ("about 4 %, then 10%", ["4 %", "10%"]),
        ("within 10⁻⁶, up to 3.4 · 10³⁸", ["10⁻⁶", "3.4 · 10³⁸"]),
        ("falls to 3e-11", ["3e-11"]),
        ("`0.88 0.12` is a result", ["0.88", "0.12"]),
        ("`1 1` is -3 here, `x=-4` at `0`", ["-3"]),
        ("8-3, C − 1, T², (B, T, C) = (4, 8, 2), 50 minutes", []),
        ("Exercise 03.1, section 3.2.1 and equation 4.1, version 2.13", []),
        ("`dim=-1`, `hint(\"03.1\")`, [a](b_0.5.png), <img width='0.5'>", []),
        ("said <!-- 0.5 = 1 / 2 --> here", []),
    ],
)
def test_decimals_signs_percentages_and_powers_of_ten_are_claims(text, found):
    assert [c.text for sentence in sentences(text) for c in claims(sentence)] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("32 rows of 8, and 22,000 more", ["32", "22,000"]),
        ("| C | 8 | 0 |", ["8", "0"]),
        ("40 minutes, or 10 min; 32-bit floats in 64 bits", []),
        ("Ba et al. (2016), version 13, section 10, GPT-22, T², -12, 12.5", []),
    ],
)
def test_whole_numbers_from_10_are_claims_and_all_those_alone_in_a_table(text, found):
    assert [whole.text for whole in wholes(text)] == found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("−1.5", -1.5),
        ("22,000", 22000),
        ("4 %", 0.04),
        ("10⁻⁶", 1e-6),
        ("3.2·10⁻⁸", 3.2e-8),
        ("2⁻²", 0.25),
        ("2.9e-11", 2.9e-11),
    ],
)
def test_a_number_has_its_value(text, value):
    assert [number.value for number in numbers(text)] == [pytest.approx(value)]
    assert NUMBER.fullmatch(text)


@pytest.mark.parametrize(
    ("said", "computed", "is_so"),
    [
        ("0.50", "0.5", True),
        ("0.29", "0.2872", True),
        ("0.28", "0.2872", False),
        ("0.5", "0.46", False),  # one decimal fits too many numbers
        ("0.2872", "0.29", False),  # more than the output says
        ("0.29", "-0.29", False),
        ("3e-11", "2.9e-11", True),
        ("0.04", "4%", True),
    ],
)
def test_a_number_stands_for_one_that_rounds_to_it(said, computed, is_so):
    assert numbers(said)[0].stands_for(numbers(computed)[0]) == is_so


def test_sentences_and_list_items_are_apart():
    text = "It is 0.5. Then 0.25 follows.\n- one 0.1\n- two 0.2"
    assert [[c.text for c in claims(s)] for s in sentences(text)] == [
        ["0.5"],
        ["0.25"],
        ["0.1"],
        ["0.2"],
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 - 0.27", 0.73),
        ("-2 * 3 + 1 / 4", -5.75),
        ("(1 / 3)**2", 1 / 9),
        ("sqrt(10) + exp(1) - log(26) + log2(8)", 10**0.5 + math.e - math.log(26) + 3),
        ("round(2.47, 1)", 2.5),
    ],
)
def test_a_sum_is_worked_out(text, value):
    assert worked_out(text) == pytest.approx(value)


@pytest.mark.parametrize(
    "text", ["open('x')", "x + 1", "1 +", "'a' * 2", "True + 1", "1 / 0", "sqrt(-1)", "log(0)", ""]
)
def test_what_is_no_sum_is_refused_in_words(text):
    with pytest.raises(ValueError, match=r"sum|cannot be worked out"):
        worked_out(text)


def test_one_comment_holds_several_marks():
    derived, also, read = marks(
        "a <!-- 0.5 = 1 / 2; 4 % = 1 / 26 --> b <!-- -95, 0.1: read off it -->"
    )
    assert [mark.fault() for mark in (derived, also, read)] == [None, None, None]
    assert [number.text for number in read.accounted] == ["-95", "0.1"]
    assert [number.value for number in also.supposed] == [1, 26] and not read.supposed
    assert not list(marks("a <!-- remember this --> b"))


@pytest.mark.parametrize(
    ("mark", "fault"),
    [
        ("0.74 = 1 - 0.27", "comes to 0.73"),
        ("0.73 = 0.73", "derives nothing"),
        ("0.73 = the rest", "no sum"),
        ("0.73:", "no reason"),
        ("0.73: 1", "no reason"),
    ],
)
def test_a_mark_that_does_not_come_out_says_so(mark, fault):
    (found,) = marks(f"text <!-- {mark} -->")
    assert fault in found.fault()
