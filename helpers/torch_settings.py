"""PyTorch's number of threads and its random state, set for a while or set fast."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread for a while.

    The matrices of this project are tiny: several threads would mostly wait for each other.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def seed_all(seed: int) -> None:
    """Seed PyTorch's random numbers, as `torch.manual_seed` does, without touching absent GPUs.

    `torch.manual_seed` keeps a stack trace for each kind of GPU that is absent, which takes longer
    than many a probe.
    """
    if torch.cuda.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)
