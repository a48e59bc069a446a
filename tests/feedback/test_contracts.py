"""What the contract of an exercise allows beside its plain check inputs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from feedback import axes, contracts, judge, messages
from feedback.grading import Exercise
from helpers.attention import attention, causal_mask
from lesson.exercises import EXERCISES
from tests.lesson.examples import EXERCISE, running_sum
from tests.lesson.right_answers import FRAGILE, RIGHT

AXES = {"x": "... T C", "W": "C 4C", "return": "... T C"}


@pytest.mark.parametrize(("exercise", "answer"), RIGHT, ids=[f"{i}-{f.__name__}" for i, f in RIGHT])
def test_right_answers_pass_however_they_are_written(exercise, answer):
    verdict = EXERCISES[exercise].check(answer)
    assert verdict.status == "passed", verdict.message


@pytest.mark.parametrize(
    ("exercise", "answer", "note"), FRAGILE, ids=[f"{i}-{f.__name__}" for i, f, _ in FRAGILE]
)
def test_a_fragile_answer_is_right_with_a_note(exercise, answer, note):
    verdict = EXERCISES[exercise].check(answer)
    assert verdict.status == "passed", verdict.message
    assert note in " ".join(verdict.notes)
    assert all(one.startswith("One more thing: ") for one in verdict.notes)


def test_sizes_are_read_from_the_names_of_axes():
    arguments = torch.zeros(7, 5, 3), torch.zeros(3, 12)
    assert axes.sizes(AXES, ["x", "W"], arguments) == {"T": 5, "C": 3}
    assert axes.sizes({"return": "T T"}, ["T", "width"], (6, 2)) == {"T": 6, "width": 2}


def test_a_letter_is_cut_in_every_argument_at_once():
    x, W = torch.arange(105.0).view(7, 5, 3), torch.zeros(3, 12)
    x1, W1 = axes.resized(AXES, ["x", "W"], (x, W), "C", 1)
    assert x1.shape == (7, 5, 1) and W1.shape == (1, 4)
    assert torch.equal(x1, x[..., :1])
    assert axes.resized({"return": "T T"}, ["T", "width"], (6, 2), "T", 1) == (1, 2)
    longer, _ = axes.resized(AXES, ["x", "W"], (x, W), "T", 8)
    assert torch.allclose(longer[:, 5:], 1.1 * x[:, :3])  # no two tokens are alike


def test_shapes_are_written_in_letters():
    known = [{"B": 3, "T": 5, "C": 2}, {"B": 2, "T": 3, "C": 4}]
    assert axes.spelled([(3, 10), (2, 12)], known) == "(B, T·C)"
    assert axes.spelled([(6, 8), (4, 8)], known) == "(2·B, 8)"
    assert axes.spelled([(6,), (4,)], known) == "(2·B,)"
    assert axes.spelled([(3, 4, 2), (2, 2, 4)], known) == "(B, T − 1, C)"
    assert axes.spelled([(2,), (1,)], [{"C": 6}, {"C": 3}]) == "(C/3,)"
    assert axes.spelled([(3, 11), (2, 12)], known) == ""
    assert axes.spelled([(3, 1), (2,)], known) == ""


def told(exercise):
    return {one.told for one in EXERCISES[exercise].contract}


def test_inputs_follow_from_the_names_of_axes():
    assert {"B = 1", "T = 1", "C = 1", "float64"} <= told("01.1")
    assert {"`a` with 4 axes", "R = 1", "numbers a millionth as large in `a`"} <= told("00.2")
    assert {"`scores` with 1 axis", "`scores` with 3 axes"} <= told("03.3")
    assert {"T = 1", "T = 150", "width = 1", "width = 30"} <= told("02.2")
    assert {"eps = 1", "eps = 1e-08", "C = 1", "`x` with 1 axis"} <= told("07.2")
    assert any("not contiguous" in one for one in told("13.1"))
    assert {"n_head = 1", "T = 1"} <= told("13.1")


def test_inputs_that_a_right_answer_refuses_are_left_out():
    assert "float64" not in told("02.1"), "its reference multiplies by a float32 matrix"
    assert "head = 20" not in told("12.3"), "there is no head 20"
    assert "numbers around -1000 in `a`" not in told("00.2"), "its numbers are positive"


# ---------------------------------------------------------------- known holes, closed


def softmax_dim_1(scores):
    e = torch.exp(scores - scores.max(dim=1, keepdim=True).values)
    return e / e.sum(dim=1, keepdim=True)


def clamped(scores):
    e = torch.exp(scores.clamp(-80, 80))
    return e / e.sum(dim=-1, keepdim=True)


def two_or_three_axes(a):
    if a.dim() == 2:
        return a / a.sum(1, keepdim=True)
    return a / a.sum(2, keepdim=True)


def width_at_most_T(T, width):
    weights = torch.zeros(T, T)
    for t in range(T):
        first = t + 1 - width if t + 1 >= width else 0
        weights[t, first : t + 1] = 1 / (t + 1 - first)
    return weights[:, :T] if width <= T else weights[:0]


def detached_queries(q, k):
    scores = q.data @ k.mT / q.shape[-1] ** 0.5
    return scores.masked_fill(~causal_mask(q.shape[1]), -torch.inf).softmax(-1)


def filled_with(value):
    def answer(scores):
        return scores.masked_fill(~causal_mask(scores.shape[-1]), value).softmax(-1)

    return answer


def ready_made(x):
    return F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=1.0)


def loop_over_sequences(x):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]
    return torch.stack([x[b].cumsum(0) / counts for b in range(len(x))])


def loop_over_tokens(x):
    return torch.stack([x[:, : t + 1].mean(1) for t in range(x.shape[1])], dim=1)


def loop_hidden_in_a_list(x):
    rows = [[[0.0] * x.shape[2] for _ in s] for s in x]
    for b, s in enumerate(x.tolist()):
        for t in range(len(s)):
            rows[b][t] = [sum(z) / (t + 1) for z in zip(*s[: t + 1], strict=True)]
    return torch.tensor(rows)


def calls_another(x):
    return loop_over_tokens(x)


def product_for_each_sequence(x):
    ones = torch.ones(x.shape[1], x.shape[1]).tril()
    weights = ones / ones.sum(1, keepdim=True)
    return torch.stack([weights @ s for s in x])


def product_for_each_token(x):
    ones = torch.ones(x.shape[1], x.shape[1]).tril()
    weights = ones / ones.sum(1, keepdim=True)
    return torch.stack([row @ x for row in weights], dim=1)


def no_product(x):
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]


def counts_by_guess(x):
    counts = torch.arange(1.0, x.shape[1] + 1)
    return x.cumsum(dim=1) / (counts[:, None] if len(x) != x.shape[1] else counts[:, None, None])


def weights_in_place(q, k):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = scores.masked_fill(~causal_mask(q.shape[1]), -torch.inf).softmax(-1)
    weights *= 1
    return weights


def first_64_channels(q, k):
    scores = q[..., :64] @ k[..., :64].mT / q.shape[-1] ** 0.5
    return scores.masked_fill(~causal_mask(q.shape[1]), -torch.inf).softmax(-1)


def eps_left_out(x, eps=1e-5):
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()


def ready_made_weights(q, k):
    return attention(q, k, k, causal_mask(q.shape[1]))[1]


def weights_by_torch(q, k):
    T = q.shape[1]
    return F.scaled_dot_product_attention(q, k, torch.eye(T).expand(len(q), T, T), is_causal=True)


def ready_made_norm(x, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], eps=eps)


def test_each_row_gets_a_minus_infinity_however_short_it_is():
    for shape in ((3, 2), (2, 3, 4), (5,)):
        hidden = contracts._with_minus_inf(torch.ones(shape)) == -torch.inf
        assert (hidden.sum(dim=-1) == 1).all()


REFUSED = [
    ("03.3", softmax_dim_1, "not for `scores` with 3 axes"),
    ("03.3", clamped, "the numbers reach"),
    ("00.2", two_or_three_axes, "not for `a` with 4 axes"),
    ("02.2", width_at_most_T, "not for T = 2"),
    ("05.2", detached_queries, "no gradient reaches `q`"),
    ("03.1", filled_with(-20.0), "a number that is not low enough there?"),
    ("03.1", filled_with(-100.0), "does not hold: no weight on the future"),
    ("03.1", filled_with(-1e4), "not for numbers 100000 times as large"),
    ("03.2", ready_made, "calls a ready-made attention"),
    ("01.3", loop_over_sequences, "loops over the sequences"),
    ("01.3", loop_over_tokens, "loops over the tokens"),
    ("01.3", loop_hidden_in_a_list, "loops over the"),
    ("01.3", calls_another, "your function calls loop_over_tokens, which loops over the tokens"),
    ("02.1", product_for_each_sequence, "loops over the sequences"),
    ("02.1", product_for_each_token, "loops over the tokens"),
    ("01.3", counts_by_guess, "not for B = T"),
    ("05.2", first_64_channels, "not for d = 70"),
    ("02.1", no_product, "asks for a matrix product"),
    ("07.2", eps_left_out, "not for eps = 1"),
    ("07.2", ready_made_norm, "calls torch's own layer_norm"),
    ("05.2", ready_made_weights, "calls a ready-made attention"),
    ("05.2", weights_by_torch, "calls a ready-made attention"),
]


@pytest.mark.parametrize(("exercise", "answer", "words"), REFUSED)
def test_an_answer_that_breaks_the_contract_is_refused_with_the_input_that_shows_it(
    exercise, answer, words
):
    verdict = EXERCISES[exercise].check(answer)
    assert verdict.status == "failed" and words in verdict.told(), verdict.told()
    assert verdict.observations


def test_the_cut_from_the_graph_is_named_only_when_the_source_shows_it():
    assert "`data` in your code" in EXERCISES["05.2"].check(detached_queries).message
    hidden = EXERCISES["05.2"].check(eval("lambda q, k: weights(q, k)", {"weights": no_grad}))
    assert "no gradient reaches `q`" in hidden.message and "in your code" not in hidden.message


def no_grad(q, k):
    with torch.no_grad():
        return detached_queries(q, k)


def test_numpy_scalars_pass_where_python_numbers_do():
    def as_numpy(x):
        return np.float64(x.sum().item())

    total = Exercise("00.0", lambda x: x.sum(), cases=lambda: [(torch.arange(4.0),)])
    assert total.check(as_numpy).status == "passed"
    assert total.check(lambda x: as_numpy(x) + 1).place.startswith("Your result is ")


def test_right_numbers_that_cannot_be_trained_get_a_note():
    verdict = EXERCISES["05.2"].check(weights_in_place)
    assert verdict.status == "passed" and verdict.notes == (messages.backward_in_place(),)


def test_an_axis_that_squeeze_loses_is_missing_only_where_the_task_names_its_size():
    def squeezed(q, k):
        return EXERCISES["05.2"].reference(q, k).squeeze()

    (note,) = EXERCISES["05.2"].check(squeezed).notes
    assert messages.REASONS[contracts.SQUEEZED] in note and "not (1, 5, 5)" in note
    told = replace(EXERCISES["05.2"], named=("B = 1",)).check(squeezed).message
    assert "(1, 5, 5), got (5, 5). An axis of size 1 is missing: keepdim=True keeps it." in told


def test_of_long_inputs_a_slow_answer_gets_the_first_tokens_only(monkeypatch):
    cases = lambda: [(torch.randn(2, 100, 3),), (torch.randn(3, 90, 2),)]  # noqa: E731
    long, tokens = replace(EXERCISE, cases=cases, axes={"x": "B T C", "return": "B T C"}), set()

    def answer(x):
        tokens.add(x.shape[1])
        return running_sum(x)

    assert long.check(answer).notes == () and {90, 100} <= tokens
    monkeypatch.setattr(judge, "SECONDS", 1e-9)
    tokens.clear()
    assert messages.fewer_inputs() in long.check(answer).notes and max(tokens) == 24
    assert "over the channels" in long.check(lambda x: x.cumsum(-1)).mistake


def test_every_way_to_be_fragile_has_a_reason():
    assert {kind.value for kind in contracts.MAY_FAIL} <= messages.REASONS.keys()
    assert {contracts.ROUNDING, contracts.SQUEEZED} <= messages.REASONS.keys()
