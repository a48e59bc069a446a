"""Functions are called under the same conditions each time, and their steps are counted."""

import sys

import pytest
import torch

from helpers.lesson import calls


def in_a_loop(x):
    total = 0 * x[0]
    for row in x:
        total = total + row
    return total


def at_once(x):
    return x.sum(0)


def test_only_a_loop_takes_more_steps_for_a_longer_input():
    short, long = (torch.ones(4, 2),), (torch.ones(9, 2),)
    assert calls.steps(at_once, short) == calls.steps(at_once, long) > 0
    five = calls.steps(in_a_loop, (torch.ones(5, 2),))
    one_more = five - calls.steps(in_a_loop, short)
    assert one_more > 0
    assert calls.steps(in_a_loop, long) == five + 4 * one_more


def test_a_function_that_raises_takes_no_steps():
    assert calls.steps(lambda x: x[7] + 1, (torch.ones(4, 2),)) == 0


@pytest.mark.parametrize("function", [at_once, lambda x: x.no_such_name], ids=["runs", "raises"])
def test_who_traced_before_traces_again(function):
    def mine(frame, event, _):
        return None

    before = sys.gettrace()
    sys.settrace(mine)
    try:
        calls.steps(function, (torch.ones(4, 2),))
        after = sys.gettrace()
    finally:
        sys.settrace(before)
    assert after is mine


def test_gradients_are_those_of_the_arguments_that_are_used():
    x, unused, position = torch.ones(3, 2), torch.ones(3), torch.arange(3)
    of_x, of_unused = calls.gradients(lambda x, unused, at: 2 * x[at], (x, unused, position))
    upstream, none = calls.gradients(lambda x, unused, at: x[at], (x, unused, position))
    assert torch.equal(of_x, 2 * upstream) and of_unused is None and none is None
    assert not x.requires_grad, "the argument itself"


def test_no_gradient_arrives_where_the_result_is_cut_from_the_graph():
    given = torch.ones(3, 2), torch.ones(3)
    assert calls.gradients(lambda x, y: x.detach(), given) == [None, None]
    assert calls.gradients(lambda x, y: "text", given) == [None, None]
