"""The recipes of benchmarks/train.py: sizes, schedules, and that no letter sees its future."""

import pytest
import torch
from torch import nn

from benchmarks import train
from benchmarks.training import recipes
from benchmarks.training.recipes import GPT, Recipe


def test_the_classic_recipe_has_as_many_parameters_as_nanogpt_says():
    """It says 0.80 M, without the positions, for tiny Shakespeare with its 65 letters."""
    model = GPT(65, Recipe())
    count = sum(p.numel() for p in model.parameters())
    assert count - model.positions.weight.numel() == 795_904


@pytest.mark.parametrize("step, share", [(0, 1 / 101), (99, 100 / 101), (100, 1), (1050, 0.55)])
def test_the_classic_schedule_warms_up_and_falls_as_a_cosine(step, share):
    assert recipes.schedule(step, Recipe()) == pytest.approx(share)


def test_the_classic_schedule_ends_at_a_tenth():
    assert recipes.schedule(2000, Recipe()) == pytest.approx(0.1)


def test_ours_falls_to_0_in_a_straight_line():
    recipe = Recipe(muon=True, n_step=10)
    assert [recipes.schedule(step, recipe) for step in (0, 5, 9)] == pytest.approx([1, 0.5, 0.1])


@pytest.mark.parametrize("name", train.RECIPES)
def test_no_recipe_sees_what_follows(name):
    torch.manual_seed(0)
    model = GPT(30, train.RECIPES[name])
    ids = torch.randint(30, (2, recipes.T))
    changed = ids.clone()
    changed[:, 40:] = 0
    with torch.no_grad():
        for p in model.parameters():  # what begins at 0 would hide a leak
            p.add_(torch.randn_like(p) / 10)
        before, after = model(ids), model(changed)
    assert torch.equal(before[:, :40], after[:, :40])
    assert not torch.equal(before[:, 40:], after[:, 40:])


@pytest.mark.parametrize("name", train.RECIPES)
def test_each_parameter_has_one_optimizer(name):
    recipe = train.RECIPES[name]
    model = GPT(30, recipe)
    groups = [group for one in recipes.optimizers(model, recipe) for group in one.param_groups]
    trained = [p for group in groups for p in group["params"]]
    assert len(trained) == len({id(p) for p in trained})
    assert {id(p) for p in trained} == {id(p) for p in model.parameters()}


@pytest.mark.parametrize("shape", [(48, 16), (16, 48), (32, 32)])
def test_muon_updates_as_torch_does_but_for_its_bfloat16(shape):
    torch.manual_seed(0)
    start = torch.randn(shape)
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    one = recipes.Muon([ours], 0.03, momentum=0.9)
    other = torch.optim.Muon([theirs], 0.03, weight_decay=0.0, momentum=0.9)
    for _ in range(5):
        ours.grad = torch.randn(shape)
        theirs.grad = ours.grad.clone()
        one.step()
        other.step()
    moved = (theirs - start).norm()
    assert (ours - theirs).norm() < 0.02 * moved  # bfloat16 rounds to 3 digits
    assert recipes.orthogonal(ours.grad).dtype == torch.float32


def test_the_summary_compares_runs_of_the_same_seed():
    def run(recipe, seed, seconds, loss):
        return {"text": "t", "recipe": recipe, "seed": seed, "seconds": seconds, "loss": loss}

    _, ours = train.summary(
        [
            run("classic recipe", 0, 60.0, 1.3),
            run("classic recipe", 1, 90.0, 1.2),
            run("ours", 0, 6.0, 1.25),
            run("ours", 1, 6.0, 1.21),
        ]
    )
    assert (ours["times_faster"], ours["least_times_faster"]) == (12.5, 10.0)
    assert ours["most_above_classic"] == pytest.approx(0.01)
