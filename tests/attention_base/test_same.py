"""What counts as the same numbers, and the same conditions."""

import math

import pytest
import torch

from attention_base.same import (
    close,
    one_thread,
    same,
    same_but_for_rounding,
    same_conditions,
    tolerance,
)


def test_same_numbers_are_compared_as_doubles_with_nan_and_inf():
    a = torch.tensor([1.0, math.nan, math.inf])
    assert same(a, a.double()) and same(a, a.half())
    assert close(a, torch.tensor([1.0, 0.0, -math.inf])).tolist() == [True, False, False]
    assert not same(a, a[None])
    assert not same(torch.tensor(1.0), torch.tensor(1.1)) and same(
        torch.tensor(1.0), torch.tensor(1.1), atol=0.11
    )
    assert same(torch.tensor(100.0), torch.tensor(101.0), rtol=0.01)


@pytest.mark.parametrize(
    ("largest", "expected"),
    [(1.0, 1e-5), (9.0, 1e-5), (11.0, 1e-4), (0.11, 1e-5), (0.09, 1e-6), (0.0, 1e-5)],
)
def test_the_tolerance_grows_and_shrinks_with_the_numbers(largest, expected):
    numbers = torch.tensor([0.0, -largest, math.nan, math.inf])
    assert tolerance(numbers) == pytest.approx(expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_may_err_as_far_as_it_rounds(dtype):
    exact = torch.randn(1000, generator=torch.Generator().manual_seed(0)).double()
    assert same_but_for_rounding(exact.to(dtype), exact, dtype)
    assert not same_but_for_rounding(exact * (1 + 2 * torch.finfo(dtype).eps), exact, dtype)
    assert not same_but_for_rounding(exact.to(dtype), exact[None], dtype)
    infinite = exact.index_fill(0, torch.tensor([3]), math.inf)
    assert not same_but_for_rounding(infinite, exact, dtype)
    assert same_but_for_rounding(exact.float(), exact, torch.float32)


def test_conditions_are_restored():
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    torch.set_num_threads(2)
    with same_conditions(1):
        assert torch.get_num_threads() == 1
        first = torch.rand(1)
    with same_conditions(1):
        assert torch.equal(first, torch.rand(1))
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert torch.get_num_threads() == 2
    torch.set_num_threads(threads)
    assert torch.equal(torch.random.get_rng_state(), state)
