"""Models that see the answers have a low loss, and a high one from left to right.

How low depends on the training; that there is a gap does not. The trainings are short: the honest
ones show from the first step on that they read nothing ahead.
"""

import pytest

from benchmarks import ablations

HONEST = ("right", "no attention", "causal mean", "no positions", "no residual", "window of 4")
CHEATS = ("no mask", "softmax over queries", "mask after softmax", "weights transposed")
SLOW_CHEATS = ("view in merge", "view in split")  # they learn later what to do with the answers
N_STEP = dict.fromkeys(HONEST, 30) | dict.fromkeys(CHEATS, 100) | dict.fromkeys(SLOW_CHEATS, 300)


@pytest.mark.slow
@pytest.mark.parametrize("name", N_STEP)
def test_only_cheats_have_two_losses(name):
    found = ablations.measure(ablations.Job(name, seed=0, n_step=N_STEP[name]))
    gap = found["left_to_right"] - found["loss_of_sample"]
    prefix = found["prefix_untrained"]
    if name in HONEST:
        assert abs(gap) < 1e-3 and prefix < 1e-4
    else:
        assert gap > (0.05 if name in SLOW_CHEATS else 1) and prefix > 0.1
