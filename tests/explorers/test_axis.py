import torch

from helpers.explorers import explore_axis
from helpers.explorers.axis import DIGITS


def test_it_sums_as_torch_does():
    explorer = explore_axis()
    x, controls = torch.tensor(DIGITS), explorer.controls
    for dim in range(-3, 3):
        for keepdim in (False, True):
            controls["dim"].value, controls["keepdim"].value = dim, keepdim
            out = x.sum(dim, keepdim=keepdim)
            assert f"-> {tuple(out.shape)}" in str(explorer)
            assert controls["cell"].max == out.numel() - 1
            controls["cell"].value = controls["cell"].max
            place = ", ".join(str(n - 1) for n in out.shape)
            assert f"out[{place}] = " in str(explorer)
            assert f"= {out.flatten()[-1]}" in str(explorer)
            summed = x.shape[dim]
            assert explorer.view.value.count('"marked"') == summed + 1


def test_the_cell_stays_inside_the_result():
    controls = explore_axis().controls
    controls["dim"].value = 0
    controls["cell"].value = 11
    controls["dim"].value = 2  # now there are only 6 cells
    assert controls["cell"].value == 5
