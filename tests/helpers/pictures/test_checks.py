import numpy as np
import pytest
import torch

from helpers.pictures.checks import as_mask, as_matrix, as_names, is_whole

MASK = np.tri(6, dtype=bool)


def test_a_matrix_is_copied():
    x = torch.eye(2, requires_grad=True)
    copy = as_matrix(x, "x")
    copy[0, 0] = 7
    assert x[0, 0] == 1
    assert as_matrix([[1, 2, 3]], "x").tolist() == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (torch.zeros(6), r"x must be 2-D.*\(6,\).*v\[None, :\]"),
        (torch.zeros(2, 3, 4), r"2-D.*\(2, 3, 4\).*x\[0\].*heatmaps"),
        (torch.zeros(1, 2, 3, 4), r"2-D.*\(1, 2, 3, 4\).*indexing"),
        (torch.zeros(0, 4), r"at least one.*\(0, 4\)"),
    ],
)
def test_a_matrix_has_two_dimensions(matrix, words):
    with pytest.raises(ValueError, match=words):
        as_matrix(matrix, "x")


def test_no_mask_lets_everything_through():
    assert as_mask(None, (2, 3), "mask").all()
    assert np.array_equal(as_mask(torch.tensor(MASK), (6, 6), "mask"), MASK)


@pytest.mark.parametrize(
    ("mask", "error", "words"),
    [
        (MASK[:3], ValueError, r"\(6, 6\), got \(3, 6\); make one, as in causal_mask\(6, 6\)"),
        (MASK[0], ValueError, r"got \(6,\); expand it.*expand\(6, 6\)"),
        (MASK[None, None], ValueError, r"\(1, 1, 6, 6\).*mask\[0\]\[0\]$"),
        (MASK * 1.0, TypeError, "bool, True = may attend, got float64; write mask != 0"),
    ],
)
def test_a_mask_is_bool_and_fits(mask, error, words):
    with pytest.raises(error, match=words):
        as_mask(mask, (6, 6), "mask")


def test_names_are_texts_one_for_each_thing():
    assert as_names(None, 3, "words", "keys") == ["0", "1", "2"]
    assert as_names(["a", 7], 2, "words", "keys") == ["a", "7"]
    with pytest.raises(ValueError, match="words needs one word for each of the 2 keys, got 1"):
        as_names(["a"], 2, "words", "keys")


@pytest.mark.parametrize(
    ("value", "whole"), [(0, True), (5, True), (6, False), (-1, False), (1.0, False), (True, False)]
)
def test_whole_numbers(value, whole):
    assert is_whole(value, 0, 5) == whole
