import pytest
import torch

from helpers.explorers import explore_prefix
from tests.explorers.examples import X


def test_it_follows_the_running_mean():
    explorer = explore_prefix(X)
    explorer.controls["t"].value = 3
    assert "tokens 0…3 is (1.00, 1.00), 4 of 4" in str(explorer)
    assert explorer.view.value.count("<circle") == 4 + 3  # tokens, and the means before this one
    explorer.controls["t"].value = 0
    assert "token 0 is (1.00, 0), 1 of 4" in str(explorer)


def test_the_star_is_seen_around_the_token_that_it_meets():
    explorer = explore_prefix(X)
    explorer.controls["t"].value = 0  # the mean of token 0 is token 0
    star, token = (explorer.view.value.index(part) for part in ("fill-opacity", ">0</text></g>"))
    assert star < token, "the token lies over the star"
    assert "scale(1.4)" in explorer.view.value, "the star is wider than the token"


def test_tokens_outside_the_plane_are_refused():
    with pytest.raises(ValueError, match=r"\(T, 2\), got \(4, 3\)"):
        explore_prefix(torch.zeros(4, 3))
