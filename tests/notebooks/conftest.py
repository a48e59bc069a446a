import pytest
import torch

from tests.cells import fresh_shell
from tests.notebooks.once import Once
from tools import notebooks


@pytest.fixture(
    scope="session",
    params=[pytest.param(p, id=p.stem, marks=pytest.mark.slow) for p in notebooks.names()],
)
def once(request):
    """Each notebook after one run, for all tests that only look at it or go on from there."""
    with fresh_shell() as shell, torch.random.fork_rng(devices=[]):
        yield Once(request.param, shell)
