"""Functions are called under the same conditions each time, and their steps are counted."""

import sys

import pytest
import torch
from torch import nn

from feedback import calls


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


def with_hook(layer):
    layer[0].register_forward_hook(lambda *_: None)


def with_hook_for_a_while(layer):
    layer[0].register_full_backward_hook(lambda *_: None).remove()


def with_new_weight(layer):
    layer[0].weight.data[0, 0] = 7


def with_new_number(layer):
    layer[1].p = 0.9


def with_new_name(layer):
    layer[0].mine = torch.ones(2)


def with_another_part(layer):
    layer[2] = nn.Tanh()


def without_gradients(layer):
    layer.eval().requires_grad_(False)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (with_hook, "layer"),
        (with_hook_for_a_while, None),
        (with_new_weight, "layer"),
        (with_new_number, "layer"),
        (with_new_name, "layer"),
        (with_another_part, "layer"),
        (without_gradients, None),
    ],
)
def test_what_counts_as_a_change_of_a_module(change, told):
    layer = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.1), nn.Sigmoid())
    assert calls.call(change, (layer,), ["layer"]).changed_input == told
    assert calls.call(lambda layers: change(layers[0]), ([layer],), ["layer"]).changed_input == told


mean, offset = torch.zeros(1), torch.zeros(1)


def test_a_method_is_no_use_of_a_tensor_of_its_name():
    assert calls.notebook_tensors(lambda x: x.mean() + offset) == ["offset"]
