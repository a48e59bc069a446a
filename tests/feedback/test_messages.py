"""What the learner reads: every way to be wrong, in words."""

import inspect
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from feedback.grading import Exercise
from lesson.exercises import EXERCISES
from tests.lesson.examples import (
    EXERCISE,
    LISTS,
    MODULE,
    PIECES,
    failure,
    in_place,
    running_sum,
)
from tests.told import Told


def whole_numbers(x):
    return x.cumsum(dim=1).round().long()


def test_an_unknown_difference_tells_place_numbers_and_what_held():
    def from_token_2_on(x):
        out = x.cumsum(dim=1)
        out[0, 2:, 1] += 1
        return out

    message = failure(from_token_2_on)
    expected = EXERCISE.run(running_sum)[0].value[0, 2, 1].item()
    assert f"out[0, 2, 1] is {expected + 1:.4g}, not {expected:.4g}." in message
    assert "Input: x of shape (2, 5, 3)." in message
    assert "27 of the 30 numbers are right." in message
    assert "What holds: the shape (2, 5, 3), all numbers finite, first token unchanged." in message
    assert "What does not: last is the total." in message


def test_a_property_that_the_right_answer_lacks_is_told_as_such():
    total = (
        "every token is the total",
        lambda out, x: torch.equal(out, out[:, -1:].expand_as(out)),
    )
    exercise = replace(EXERCISE, properties=(total,))
    message = failure(lambda x: x.sum(1, keepdim=True).expand_as(x), exercise)
    assert "What should not hold: every token is the total." in message
    assert "total" not in failure(lambda x: x, exercise)


def test_a_difference_in_a_later_digit_is_shown():
    message = failure(lambda x: x.cumsum(dim=1) * 1.0001)
    got, expected = message.split("] is ")[1].split(".\n")[0].split(", not ")
    assert expected != got
    assert "1.0001" in message


GUESSES = [
    (lambda x: x.cumsum(dim=1)[..., :1], "Wrong shape: expected (2, 5, 3), got (2, 5, 1)."),
    (lambda x: x.cumsum(dim=1).mT, "got (2, 3, 5). The sizes are right; their order is not."),
    (lambda x: x.cumsum(dim=1)[None], "got (1, 2, 5, 3). An axis of size 1 is left over."),
    (lambda x: x.sum(), "expected (2, 5, 3), got (), a single number."),
    (lambda x: None, "returned None: its `return` is missing"),
    (lambda x: x.numpy(), "got a numpy array. Return a tensor: torch.from_numpy"),
    (lambda x: x.numpy().sum(), "got a number of numpy (float32). Return a tensor: torch.tensor"),
    (lambda x: x.split(1, dim=2), "got a tuple of 3 tensors of shape (2, 5, 1). Return one"),
    (lambda x: (x, x), "got a tuple of 2 tensors of shape (2, 5, 3). Return one tensor."),
    (lambda x: (x, x.mT), "got 2 tensors of the shapes (2, 5, 3) and (2, 3, 5). Return one"),
    (lambda x: x.tolist(), "got a list. torch.tensor"),
    (lambda x: 1.5, "Expected a tensor of shape (2, 5, 3), got a float."),
    (lambda x: running_sum, "got a function."),
    (whole_numbers, "Expected floats, got whole numbers (torch.int64)."),
    (lambda x: x > 0, "Expected floats, got True and False (torch.bool)."),
    (lambda x: x.double().cumsum(dim=1), "they are torch.float64, not torch.float32."),
    (lambda x: 2 * x.double().cumsum(dim=1), "Every number is 2 times"),
    (lambda x: x.cumsum(dim=1) + 0j, "Expected floats, got complex numbers"),
    (in_place, "Your function changed its input `x`"),
    (lambda x: x.cumsum_(dim=1), "Your function changed its input `x`"),
    (lambda x: x.cumsum(dim=1).to_sparse(), "they come in a sparse tensor"),
    (lambda x: x.cumsum(dim=1)[0].to_sparse_csr().unsqueeze(0), "Your function raised"),
    (lambda x: x.cumsum(dim=1).to_mkldnn(), "they come in a sparse tensor"),
    (lambda x: x.cumsum(dim=1).to_sparse() * 2, "Every number is 2 times"),
]


@pytest.mark.parametrize(("candidate", "words"), GUESSES)
def test_what_came_back_is_told_in_words(candidate, words, snapshot):
    message = failure(candidate)
    assert words in message
    if "raised" not in words:  # PyTorch's own words are others in each version
        assert message == snapshot.use_extension(Told)


def test_nan_is_told_with_its_place_and_number():
    message = failure(lambda x: torch.where(torch.arange(3) == 1, math.nan, x.cumsum(dim=1)))
    assert "out[0, 0, 1] is nan, not" in message
    assert "10 of 30 numbers are nan or inf. nan comes of 0 / 0" in message
    assert "all numbers finite" not in message


def test_one_number_may_come_as_a_float_or_a_tensor():
    dot = Exercise(
        "99.3",
        lambda a, b: float(a @ b),
        lambda: [(torch.ones(3), torch.ones(3))],
    )
    assert dot.check(lambda a, b: float(a @ b)).status == "passed"
    assert dot.check(lambda a, b: (a @ b).numpy()[()]).status == "passed"
    assert dot.check(lambda a, b: (a * b).sum()).status == "passed"
    assert dot.check(lambda a, b: (a * b).double().sum()).status == "passed"
    assert "Your result is 4, not 3." in failure(lambda a, b: 4.0, dot)
    assert "Every number" not in failure(lambda a, b: 6.0, dot)
    assert "Expected one number, got a tensor of shape (3,)." in failure(lambda a, b: a * b, dot)
    assert "Expected one number, got a str." in failure(lambda a, b: "3", dot)


def test_numbers_among_the_arguments_are_told():
    eye = Exercise("99.4", lambda T: torch.eye(T), lambda: [(3,)])
    assert "Input: T = 3." in failure(lambda T: torch.ones(T, T), eye)


def test_a_class_is_told_from_its_instance():
    message = failure(torch.nn.Tanh)
    assert message == "You handed over a class; give a function, or an instance: Tanh(…)."
    assert "out[0, 0, 0] is" in failure(torch.nn.Tanh())


def test_what_is_no_function_is_told(capsys):
    message = failure(torch.ones(2, 3))
    assert "got a tensor of shape (2, 3), which looks like a result" in message
    assert "without brackets after its name: running_sum" in message
    assert "got None." in failure(None)


@pytest.mark.parametrize("candidate", [lambda: 1, lambda x, y: x, lambda *, x: x])
def test_a_wrong_number_of_arguments_is_told(candidate):
    message = failure(candidate)
    assert f"takes {inspect.signature(candidate)}, but it is called as running_sum(x)" in message
    assert "Its first line should read: def running_sum(x):" in message


def test_an_exception_is_told_with_the_learners_line():
    def inner(x):
        return x[:, 7]

    def mine(x):
        y = x + 1
        return inner(y)  # the line below is not ours

    message = failure(mine)
    assert "Your function raised IndexError in line" in message and "7 is out of bounds" in message
    assert "`return x[:, 7]`" in message and "Input: x of shape (2, 5, 3)" in message


def test_an_exception_inside_torch_names_the_learners_line_not_torchs():
    def mine(x):
        return torch.nn.functional.softmax(x, dim="last")

    assert '`return torch.nn.functional.softmax(x, dim="last")`' in failure(mine)


# Apart from what is expected, since a message quotes the line of the answer.
RAISING = [
    lambda x: x + x.mT,
    lambda x: x[0] @ x[0],
    lambda x: x @ x,
    lambda x: torch.zeros(3).copy_(x),
    lambda x: torch.zeros(2).__setitem__(0, x[0]),
    lambda x: x > 0 and x < 1,
    lambda x: x[~x],
    lambda x: x.masked_fill(x, 0),
    lambda x: x - x.max(dim=1),
    lambda x: [x for _ in x.shape[1]],
    lambda x: [T for B, T in [x.shape]],
    lambda x: x[:, 7],
    lambda x: x[:, :0][:, -1],
    lambda x: {}[1],
    lambda x: x.chunk(2)[0] + torch.cat([x, x.amax(-1)]),
    lambda x: setattr(torch.nn.Linear(3, 3), "weight", x),
    lambda x: x + torch.nn.Linear(3, 3, bias=False).bias,
    lambda x: torch.nn.ReLU()(x, x),
]
REMEDIES_MET = [
    "Sizes line up from the right",
    "as many columns in a as b has rows",
    "as many columns in a as b has rows",
    "does not fit its place",
    "more axes than its place",
    "For tensors there are & | ~",
    "~ wants True and False",
    "A mask is True and False",
    "take .values",
    "write range(n)",
    "B, T, C = x.shape needs three axes",
    "Is it the right axis?",
    "holds no tokens",
    "table.get(key, …)",
    "has lost an axis",
    "layer.weight.copy_(…)",
    "So is the bias of a layer with bias=False",
    "called with more arguments than it takes",
]


@pytest.mark.parametrize(
    ("candidate", "remedy"), list(zip(RAISING, REMEDIES_MET, strict=True)), ids=REMEDIES_MET
)
def test_a_common_exception_is_told_with_what_to_do(candidate, remedy):
    message = failure(candidate, replace(EXERCISE, mistakes=()))
    assert "Your function raised" in message and remedy in message


def test_a_long_exception_is_shortened():
    def mine(x):
        raise ValueError("long " * 500)

    assert len(failure(mine)) < 600


def test_parameters_in_another_order_are_told_before_anything_runs():
    def swapped(x, parts):
        raise AssertionError("not called")

    message = failure(swapped, LISTS)
    assert message.startswith("Your function takes (x, parts), but it is called as")
    assert message.endswith("Its first line should read: def side_by_side(parts, x):")


@pytest.mark.filterwarnings("ignore")  # of NumPy, which it makes on purpose
def test_numpy_where_gradients_are_needed_is_no_crash():
    def by_numpy(x, eps=1e-5):
        centred = x - x.mean(-1, keepdim=True)
        return centred / np.sqrt(x.var(-1, unbiased=False, keepdim=True) + eps)

    message = failure(by_numpy, EXERCISES["07.2"])
    assert "in training the inputs ask for gradients, and there your function raised" in message
    assert "NumPy knows no gradients." in message


def test_what_is_kept_between_calls_is_told():
    kept = []

    def collecting(x):
        kept.append(x.cumsum(dim=1))
        return sum(kept[-2:])

    assert "Called again with the same input, your function returns" in failure(collecting)


def test_several_tensors_may_come_as_tuple_list_or_stack():
    rows = PIECES.reference
    for answer in (list, torch.stack, iter, lambda three: (one for one in three)):
        assert PIECES.check(lambda z, answer=answer: answer(rows(z))).status == "passed"
    assert PIECES.check(lambda z: rows(z)[::-1]).status == "failed"
    for answer, told in (
        (lambda z: (z, z[:1]), "got 2 tensors of the shapes (9, 3) and (1, 3)."),
        (lambda z: z.split(1), "Expected 3 tensors of shape (3, 3), got 9 of shape (1, 3)."),
        (lambda z: z.view(3, -1, z.shape[1])[:0], "got 0 of shape (3, 3)."),
        (lambda z: z, "Your result is `fused` itself, unchanged.\nExpected 3 tensors of"),
        (lambda z: z[:3], "Expected 3 tensors of shape (3, 3), got one of shape (3, 3)."),
        (lambda z: z.chunk, "Are the brackets of a call missing?"),
    ):
        assert told in failure(answer, PIECES)


def test_modules_among_the_inputs_are_told_in_a_line():
    text = failure(lambda layer: layer.weight, MODULE)
    assert "Input: layer = Linear(in_features=5, out_features=3, bias=True)." in text
    text = failure(lambda parts, x: x, LISTS)
    assert "Input: parts = [Sequential(…), Sequential(…), Sequential(…)], x of shape" in text


def turned_in_place(layer):
    layer.weight.data = layer.weight.data.T
    return layer.weight


def nothing_left(parts, x):
    return torch.cat([parts.pop(0)(x) for _ in parts[:]], dim=-1)


def answers_in_the_list(parts, x):
    parts[:] = [part(x) for part in parts]
    return torch.cat(parts, dim=-1)


@pytest.mark.parametrize(
    ("of", "answer", "told"),
    [
        (MODULE, turned_in_place, "leaves `layer` changed"),
        (MODULE, lambda layer: layer.double().weight.T, "leaves `layer` changed"),
        (LISTS, nothing_left, "changed its input `parts`"),
        (LISTS, answers_in_the_list, "changed its input `parts`"),
    ],
)
def test_a_module_or_list_that_was_changed_is_told(of, answer, told):
    assert told in failure(answer, of)
