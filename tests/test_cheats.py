"""Models that see the answers have a low loss, and a high one from left to right.

How low depends on the training; that there is a gap does not.
"""

import pytest

from benchmarks import ablations

HONEST = ("right", "no attention", "causal mean", "no positions", "no residual", "window of 4")
CHEATS = ("no mask", "softmax over queries", "mask after softmax", "weights transposed")
SLOW_CHEATS = ("view in merge", "view in split")  # they learn later what to do with the answers


@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST + CHEATS + SLOW_CHEATS)
def test_only_cheats_have_two_losses(name):
    found = ablations.train(ablations.Job(name, seed=0, n_step=400 if name in SLOW_CHEATS else 150))
    gap = found["left_to_right"] - found["loss_of_sample"]
    prefix = found["prefix_untrained"]
    if name in HONEST:
        assert abs(gap) < 1e-3 and prefix < 1e-4
    else:
        assert gap > (0.08 if name in SLOW_CHEATS else 1) and prefix > 0.1
