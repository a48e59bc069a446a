import pytest
import torch


@pytest.fixture(autouse=True)
def same_random_numbers():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
