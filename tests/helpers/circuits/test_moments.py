"""The moments of a training that are stored with the project.

That `make circuits` computes them, `tests/tools/test_train_circuits.py` tests.
"""

import tomllib

import pytest
import torch

from helpers.circuits import training_moments
from helpers.circuits.moments import PATH, PATTERNS, STEPS, TEXT
from tools import notebooks

LEARNED, EXACT, EQUAL = range(3)
LAST = -1


@pytest.fixture(scope="module")
def moments():
    return training_moments()


def test_each_moment_has_its_numbers_by_pattern_and_its_maps(moments):
    assert list(STEPS) == list(range(0, 201, 10)) and PATTERNS == ("learned", "exact", "equal")
    shapes = {name: tuple(values.shape) for name, values in moments._asdict().items()}
    assert shapes == {
        "loss": (21, 3, 3),
        "right": (21, 3, 3),
        "previous_token_score": (21, 3),
        "induction_score": (21, 3, 3),
        "layer_0": (21, 3, 26, 26),
        "layer_1": (21, 3, 3, 26, 26),
    }
    for values in moments:
        assert values.dtype == torch.float32 and values.isfinite().all()


def test_the_file_is_small_and_is_installed_with_the_package():
    assert PATH.stat().st_size < 100_000
    project = tomllib.loads((notebooks.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert {"*.npz", "*.pt"} <= {*project["tool"]["setuptools"]["package-data"]["*"]}


def test_the_rows_of_each_map_are_weights_and_none_lies_on_a_later_letter(moments):
    for maps in (moments.layer_0, moments.layer_1):
        assert (maps.sum(-1) - 1).abs().max() < 2e-3 and maps.min() >= 0  # float16
        assert not maps.triu(1).any()


def test_exact_and_equal_maps_are_what_they_are_called(moments):
    before, follower, equal = torch.zeros(3, 26, 26)
    for t, letter in enumerate(TEXT):
        before[t, max(t - 1, 0)] = 1
        follower[t, TEXT.index(letter + TEXT[t + 1]) + 1 if 13 <= t < 25 else t] = 1
        equal[t, : t + 1] = 1 / (t + 1)
    follower[25] = torch.eye(26)[13]  # after the last letter of a period, the first of the next
    assert (moments.layer_0[:, EXACT] == before).all()
    assert (moments.layer_1[:, :, EXACT] == follower).all()
    for maps in (moments.layer_0[:, EQUAL], moments.layer_1[:, :, EQUAL]):
        assert torch.allclose(maps, equal.expand_as(maps), atol=1e-3)


def test_scores_of_patterns_that_are_put_in(moments):
    equal = sum(1 / (t + 1) for t in range(1, 48)) / 47
    assert moments.previous_token_score[:, EXACT].eq(1).all()
    assert moments.induction_score[:, :, EXACT].eq(1).all()
    assert moments.previous_token_score[:, EQUAL].numpy() == pytest.approx(equal, abs=1e-4)
    assert moments.induction_score[:, :, EQUAL].std() < 1e-6
    assert 1 / 48 < moments.induction_score[0, 0, EQUAL] < 1 / 13


def test_what_training_finds_and_what_patches_do(moments):
    right = moments.right
    assert right[0, LEARNED, LEARNED] < 0.1 and right[LAST, LEARNED, LEARNED] > 0.93
    assert right[6, LEARNED, LEARNED] < 0.3 < 0.75 < right[10, LEARNED, LEARNED], "the cliff"
    assert right[LAST, :, EXACT].min() > 0.97
    assert right[LAST, EXACT, LEARNED] < 0.2 < right[LAST, EQUAL, LEARNED] < 0.4
    assert right[LAST, :, EQUAL].max() < 0.2
    assert moments.loss[LAST, LEARNED, LEARNED] < 0.6 < 3 < moments.loss[0].min()


def test_the_exact_pattern_of_layer_0_helps_half_way_and_later_breaks_layer_1(moments):
    """Layer 2 comes to need the letter two before, too; without it, it is off by one letter."""
    exact = moments.right[:, EXACT, LEARNED]
    assert exact.max() > 0.5 and 70 <= STEPS[exact.argmax()] <= 110
    halves = moments.layer_1[LAST, :, LEARNED, 13:]
    after, same = (halves.diagonal(13 - back, 1, 2).mean(1) for back in (12, 13))
    assert after[LEARNED] > 0.6 and after[EXACT] < 0.3 < same[EXACT]
    near = [moments.layer_0[LAST, LEARNED, 13:].diagonal(13 - back).mean() for back in (1, 2, 3)]
    assert near[0] > 0.35 and near[1] > 0.15 and near[2] < 0.1


def test_the_scores_grow_with_training(moments):
    for scores in (moments.previous_token_score[:, 0], moments.induction_score[:, 0, 0]):
        assert scores[0] < 0.1 and scores[LAST] > 0.35
