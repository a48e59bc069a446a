"""What experiments find out about a wrong answer: one small answer for each kind of fact."""

import math
import warnings
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from feedback import observations
from feedback.grading import Exercise
from feedback.judge import Judge
from feedback.observations import KINDS
from feedback.observations.trial import place_word, written
from helpers.attention import causal_mask
from tests.lesson.examples import LISTS, MODULE, PIECES, failure, side_by_side


@pytest.mark.parametrize(
    ("axes", "shape_of", "words"),
    [
        ("B T C", 3, ["sequence", "output", "channel"]),
        ("T T", 2, ["row", "column"]),
        ("B T C", 1, ["number"]),
        ("B T C", 2, ["row", "column"]),
        ("T C", 4, ["sequence", "row", "row", "column"]),
    ],
)
def test_the_places_of_a_result_have_names_with_any_number_of_axes(axes, shape_of, words):
    trial = SimpleNamespace(result_axes=axes.split())
    assert [place_word(trial, axis, shape_of) for axis in range(shape_of)] == words


def head(x, W_query, W_key, W_value):
    """(B, T, C) -> (B, T, d_v): the example of most observations below."""
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return torch.softmax(scores.masked_fill(~causal_mask(x.shape[1]), -torch.inf), dim=-1) @ v


def weights_not_used(x, W_query, W_key, W_value):
    scores = (x @ W_query) @ (x @ W_key).mT
    weights = torch.softmax(scores, dim=-1)  # noqa: F841
    return scores @ (x @ W_value)


def weights_of(x, W_query, W_key, W_value):
    q, k = x @ W_query, x @ W_key
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return torch.softmax(scores.masked_fill(~causal_mask(x.shape[1]), -torch.inf), dim=-1)


def soften(scores, temperature):
    """(B, T) -> (B, T): rows of weights."""
    return torch.softmax(scores / temperature, dim=-1)


def running_mean(x):
    """(B, T, C) -> (B, T, C)."""
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]


def normal(*shapes):
    generator = torch.Generator().manual_seed(sum(map(sum, shapes)))
    return tuple(torch.randn(*shape, generator=generator) for shape in shapes)


def exercise(reference, cases, **more):
    return Exercise("99.9", reference, lambda: cases, **more)


TOKENS = normal((3, 5, 2))[0]  # as one that stands in a notebook
HEAD = exercise(
    head,
    [normal((3, 5, 8), (8, 2), (8, 2), (8, 6)), normal((2, 4, 6), (6, 3), (6, 3), (6, 5))],
    axes={"x": "B T C", "W_query": "C d", "W_key": "C d", "W_value": "C v", "return": "B T v"},
    intermediates=(("the weights, before the values", weights_of),),
)
SOFT = exercise(
    soften,
    [(*normal((3, 5)), 2.0), (*normal((4, 6)), 0.5)],
    axes={"scores": "B T", "return": "B T"},
)
MEAN = exercise(
    running_mean, [normal((3, 5, 2)), normal((2, 4, 3))], axes={"x": "B T C", "return": "B T C"}
)
MAKE = exercise(
    lambda T, width: torch.ones(T, T).tril() / torch.arange(1, T + 1)[:, None],
    [(5, 2), (4, 3)],
    axes={"return": "T T"},
)
MATRIX = exercise(
    lambda a: 2 * a, [normal((3, 4)), normal((4, 5))], axes={"a": "R S", "return": "R S"}
)
FLAG = exercise(
    lambda a, twice: 2 * a if twice else a,
    [(*normal((3, 4)), True), (*normal((2, 5)), False)],
    axes={"a": "R S", "return": "R S"},
)
FLIP = exercise(lambda a: a.flip(0), [normal((1, 4)), normal((3, 5))], axes={"a": "R S"})
PARTS = exercise(
    lambda f, g, x: x + f(x) * g(x),
    [(nn.Tanh(), nn.Sigmoid(), *normal((3, 5, 2))), (nn.Sigmoid(), nn.Tanh(), *normal((2, 4, 3)))],
)


def weights_at(where):
    """Equal weights where s - t is as `where` says; a row without any is nan."""

    def answer(T, width):
        inside = where(torch.arange(T) - torch.arange(T)[:, None], T, width).double()
        return inside / inside.sum(dim=-1, keepdim=True)

    return answer


def fixed_size(x):
    out = running_mean(x)
    out[:, 4:] = 0
    return out * (1.0 if x.shape[1] < 5 else 2.0)


def own_token_only(x):
    return x / torch.arange(1, x.shape[1] + 1)[:, None]


def mixed(x):
    return running_mean(x) + 0.1 * x.mean(0)


def one_ahead(x):
    return torch.cat([running_mean(x)[:, 1:], running_mean(x)[:, -1:]], dim=1)


def sees_last(x):
    return running_mean(x) + 0.1 * x[:, -1:]


def no_query(x, W_query, W_key, W_value):
    return head(x, W_key, W_key, W_value)


def as_dict(fused):
    return dict(zip("qkv", fused.chunk(3), strict=True))


def row_wise(a):
    return 2 * a * torch.arange(1, len(a) + 1)[:, None] ** 1.3


def row_offset(a):
    return 2 * a + a.mean(1, keepdim=True)


def divided_by_the_example(x):
    return running_mean(x) * 5 / x.shape[1]  # right for T = 5 alone


def wrong_mask(x, W_query, W_key, W_value):
    q, k, v = x @ W_query, x @ W_key, x @ W_value
    mask = causal_mask(len(x))  # B, not T
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ v


def for_four_tokens_only(x):
    return torch.ones(8, 8).tril() @ x / torch.arange(1, 9)[:, None]


def nan_in_row_2(x):
    out = running_mean(x)
    out[:, 2] = math.nan
    return out


def diagonal_lost(T, width):
    weights = torch.ones(T, T).tril() / torch.arange(1, T + 1)[:, None]
    return weights.fill_diagonal_(0.0)


def last_part_stays_zero(parts, x):
    out = side_by_side(parts, x)
    out[..., -parts[0][0].out_features :] = 0
    return out


def padded_to_x(parts, x):
    out = side_by_side(parts, x)
    return nn.functional.pad(out, (0, x.shape[-1] - out.shape[-1]))


def square_part_only(layer):
    return layer.weight.T * (torch.arange(layer.in_features) < len(layer.weight))[:, None]


def small_weights_dropped(scores, temperature):
    weights = soften(scores, temperature)
    return weights.where(weights > 0.01, 0.0)


FACTS = [
    # what it is
    (MEAN, lambda x: x.clone(), "Your result is `x` itself, unchanged."),
    (HEAD, weights_of, "Your result is the weights, before the values."),
    (MATRIX, lambda a: a.reshape(a.mT.shape), "holds the numbers of `a` in their old reading ord"),
    (MATRIX, lambda a: a.mT, "Your result is `a` with its last two axes swapped."),
    (HEAD, lambda *z: 3 * weights_of(*z), "Your result is 3 times the weights, before"),
    # how every number relates to the right one
    (SOFT, lambda s, t: soften(s, t) * s.shape[1], "Every number is T times what it should be."),
    (SOFT, lambda s, t: soften(s, t) / t, "Every number is 1/temperature times what it"),
    (HEAD, lambda *z: head(*z) / z[1].shape[1] ** 0.5, "Every number is 1/√d times what it should"),
    (HEAD, lambda *z: -head(*z), "Every number is -1 times what it should be."),
    (MEAN, divided_by_the_example, "5/T times what it should be."),
    (MATRIX, lambda a: 2 * a + 3, "Every number is 3 too large."),
    (MATRIX, lambda a: 3 * a, "Every number is 1.5 times what it should be"),
    (MATRIX, lambda a: 2 * a - a.exp(), "When `a` is doubled, the right result doubles as well"),
    (SOFT, lambda s, t: soften(s, t).log(), "Your numbers are the logarithms of the right ones."),
    (MATRIX, lambda a: (2 * a).round(decimals=1), "the right ones rounded to 1 decimal."),
    (MATRIX, lambda a: (2 * a).floor(), "rounded down to whole numbers."),
    (MEAN, lambda x: running_mean(x) + x, "Your result is the right one plus `x`."),
    (MATRIX, lambda a: (2 * a).double(), "right, but they are torch.float64, not torch.float32."),
    # the right numbers elsewhere
    (MEAN, lambda x: running_mean(x).mT, "The numbers are right, but axes T and C have changed"),
    (MAKE, lambda T, w: MAKE.reference(T, w).T, "right, but rows and columns are swapped."),
    (MATRIX, lambda a: (2 * a).flip(0), "The order of the rows is reversed: row 0 is what row 3"),
    (MATRIX, lambda a: torch.rot90(2 * a), "the matrix is turned by 90°."),
    (MEAN, lambda x: running_mean(x).roll(1, 1), "Your result is shifted by one: output 4 of your"),
    (MEAN, lambda x: running_mean(x)[:1].expand_as(x), "Every sequence of your result is what seq"),
    (MEAN, lambda x: running_mean(x).flatten(0, 1), "reading order are right; only the shape is"),
    (MEAN, lambda x: running_mean(x)[:, -1], "Your result is the last output of the right one."),
    (MEAN, lambda x: running_mean(x).mean(0), "the mean of the right one over its sequences."),
    (MEAN, lambda x: running_mean(x)[None], "stands at the only place along your axis 0."),
    (
        MEAN,
        lambda x: torch.cat([running_mean(x), x[:, :1]], 1),
        "begins with the right one and has 1 more output.",
    ),
    (MEAN, lambda x: running_mean(x)[torch.tensor([1, 0, 2])[: len(x)]], "in other places: seque"),
    # rows
    (MEAN, lambda x: x.cumsum(1) / x.shape[1], "Output t is (t + 1)/T times what it should be."),
    (MATRIX, row_wise, "Within one row, all numbers are off by the same factor: 2.462 in row 1"),
    (MATRIX, row_offset, "all numbers are off by the same amount, another one for each row"),
    (SOFT, lambda s, t: (s / t).exp(), "the proportions are right, but the sums are not: row 0"),
    (SOFT, lambda s, t: soften(3.7 * s, t), "those of the right scores multiplied by 3.7."),
    # right for other inputs
    (
        HEAD,
        no_query,
        "Your result is the right one if `W_key` also stood in the place of `W_query`.",
    ),
    (HEAD, lambda x, q, k, v: head(x, k, q, v), "one if `W_query` and `W_key` changed places."),
    (HEAD, lambda x, q, k, v: head(x.flip(1), q, k, v), "tokens in the reverse order."),
    (SOFT, lambda s, t: soften(s, t**2), "for temperature² in the place of `temperature`."),
    (SOFT, lambda s, t: soften(s.round(), t), "for `scores` rounded to whole numbers."),
    (HEAD, lambda x, *W: head(x * 6, *W), None),
    (FLAG, lambda a, twice: 2 * a, "the right one for `twice=True`, whatever it is."),
    (FLAG, lambda a, twice: a if twice else 2 * a, "right one for the other value of `twice`."),
    (PARTS, lambda f, g, x: x + f(x) * x, "the right one if `g` changed nothing."),
    (PARTS, lambda f, g, x: x + f(x) * g(x)[0], "got what `g` makes of sequence 0."),
    # what it depends on
    (SOFT, lambda s, t: soften(s, 3.0), "Your result does not change when `temperature` changes."),
    (HEAD, lambda x, q, k, v: head(x, q, k * 0 + 1, v).sin(), "not change when `W_key` changes."),
    (MEAN, mixed, "Sequence 1 of your result changes when sequence 0 does: sequences are mixed."),
    (MEAN, sees_last, "Output 0 changes when token 4 changes: it sees the future."),
    (MEAN, one_ahead, "Each output changes when the next token does: it sees one of its future."),
    (MEAN, own_token_only, "Output 4 of your result does not change when token 3 does, and should"),
    (MEAN, lambda x: running_mean(x.roll(1, 1) * torch.rand(())), "it depends on random numbers."),
    (MEAN, lambda x: running_mean(x[..., :1]) * x.new_tensor([1.0, 1.5, 2.0])[: x.shape[2]], None),
    (
        MEAN,
        own_token_only,
        "Output 2 adds up 1/3 of token 2; it should be 1/3 of tokens 0 to 2 each",
    ),
    (HEAD, weights_not_used, "You compute `weights`, and nothing uses it."),
    (MEAN, lambda x: running_mean(TOKENS), "Your function uses `TOKENS` of the notebook"),
    (LISTS, last_part_stays_zero, "does not change when item 2 of `parts` changes."),
    (LISTS, lambda parts, x: side_by_side(parts[:-1], x), "right one for all but the last of `par"),
    (LISTS, lambda parts, x: side_by_side(parts[:4], x), "Right for the first inputs, but not for"),
    (LISTS, padded_to_x, "Your result is right where C = d·n, and is wrong where they differ."),
    (FLIP, lambda a: a, "Your result is right where R = 1, and is wrong where it is more."),
    (
        MODULE,
        lambda layer: layer.weight.T[:60],
        "Right for the first inputs, but not for layer = nn.Linear(70, 71)",
    ),
    (MODULE, lambda layer: layer, "Your result is `layer` itself, unchanged."),
    (MODULE, square_part_only, "Your result is right where C = d, and is wrong where they differ."),
    (MODULE, lambda layer: [layer.weight], "Item 0 of your list is the right result transposed."),
    # where it is wrong
    (MEAN, fixed_size, "Your result is right for the second input, and is wrong for the first"),
    (SOFT, small_weights_dropped, "right for the numbers of the first input, and is wrong for 3 t"),
    (MAKE, lambda T, w: torch.eye(T), "only zeros and ones; the right one"),
    (MEAN, lambda x: running_mean(x).abs(), "No number of your result is below 0; some should be."),
    (MEAN, nan_in_row_2, "Output 2 of your result is nan, and nothing else is."),
    (MEAN, lambda x: running_mean(x) * math.nan, "Every number is nan."),
    (MAKE, diagonal_lost, "Row 2 is 1/3 1/3 0 0 0; it should be 1/3 1/3 1/3 0 0."),
    (
        MAKE,
        weights_at(lambda s, T, w: s <= w),
        "With T = 5 and width = 2, row t has its weights on all tokens up to t + 2; it should have"
        " them on all tokens up to t.",
    ),
    (MAKE, weights_at(lambda s, T, w: s >= w), "on all tokens from t + 2 on; it"),
    (MAKE, weights_at(lambda s, T, w: s == -1), "on token t - 1; it"),
    (MAKE, weights_at(lambda s, T, w: s > -T), "its weights on all tokens; it"),
    (MAKE, weights_at(lambda s, T, w: (s <= 0) & (s > -w)), "its weights on tokens t - 1 to t; it"),
    (SOFT, lambda s, t: torch.softmax(s / t, dim=0), "Each column of your result sums to 1; each"),
    (SOFT, lambda s, t: torch.zeros_like(s), "Your result is 0 everywhere."),
    # shapes, types, crashes
    (MEAN, lambda x: (x * x).flatten(1), "your result is (B, T·C); it"),
    (MEAN, lambda x: running_mean(x)[0], "Axis 0 is missing in your result."),
    (PIECES, lambda f: (f, f[:0], f[:0]), "(1) no rows and (2) no rows; they should be"),
    (MEAN, lambda x: (x, running_mean(x)), "Item 1 of the 2 in your tuple is the right result"),
    (MEAN, lambda x: running_mean(x).tolist(), "right, but your result is a list of numbers"),
    (MEAN, lambda x: running_mean(x).numpy(), "they stand in a NumPy array, not in a tensor."),
    (PIECES, as_dict, "The values of your dict are the right tensors"),
    (PIECES, lambda f: f.split(2), "Your pieces are (0) rows 0 and 1, (1) rows 2 and 3,"),
    (PIECES, lambda f: [f[i::3] for i in range(3)], "(0) rows 0, 3 and 6, (1) rows 1, 4 and 7"),
    (
        MATRIX,
        lambda a: 3 * a + torch.zeros(8, 1),
        "For R = 8 your function runs. There, your result is the right one plus",
    ),
    (HEAD, wrong_mask, "For B = T your function runs, and it is right there: is one taken for"),
    (
        MEAN,
        for_four_tokens_only,
        "For T = 8 your function runs, and it is right there: is this si",
    ),
]


@pytest.mark.parametrize(
    ("of", "answer", "fact"),
    [facts for facts in FACTS if facts[2]],
    ids=[words[:40] for _, _, words in FACTS if words],
)
def test_a_fact_is_found(of, answer, fact):
    message = failure(answer, of).replace("For T = B", "For B = T")
    found = [o.text for o in everything(of, answer)]
    assert any(fact in text for text in found) or fact in message, [*found, message]


def everything(of, answer):
    """All observations about an answer, not only the best; an experiment may not raise."""
    trial = Judge(of, answer).trial()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [one for kind in KINDS for one in kind(trial)]


def test_weights_that_do_not_depend_on_distance_or_do_not_sum_to_1_have_no_band():
    for answer in (lambda T, w: torch.eye(T).flip(0), lambda T, w: torch.ones(T, T) / 2):
        assert not any("its weights on" in fact.text for fact in everything(MAKE, answer))


def test_the_best_fact_leads_and_at_most_two_are_told():
    verdict = HEAD.check(lambda *z: 2 * head(*z))
    assert verdict.observations == ("Every number is 2 times what it should be.",)
    assert verdict.told().startswith("Every number is 2 times what it should be.\nout[0, 0, 0] is")
    for of, answer, _ in FACTS:
        assert len(of.check(answer).observations) <= 2


def test_a_factor_is_named_only_when_all_inputs_agree():
    """In the first input 2 is d as well as B - 1; in the second only one of them."""
    by_input = MATRIX.check(lambda a: 2 * a * (1.7 if len(a) == 3 else 1.9)).message
    assert "Every number is 1.7 times what it should be in the first and 1.9 times" in by_input


def test_a_right_answer_is_not_observed():
    for of in (HEAD, SOFT, MEAN, MAKE, MATRIX, PIECES):
        assert everything(of, of.reference) == []
        assert of.check(of.reference).status == "passed"


def test_what_says_nothing_is_said_only_when_nothing_was_found():
    verdict = MATRIX.check(lambda a: torch.sin(a) + a.sum())
    assert "numbers are right" not in verdict.told()
    assert "0 of the 12 numbers are right." in verdict.details
    nothing = exercise(lambda n: n**2, [(3,), (5,)])
    assert failure(lambda n: n**2 + n % 3 + 1, nothing).startswith("Your result is 10, not 9.")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "1/2"), (3.0, "3"), (0.123456, "0.1235"), (-2 / 3, "-2/3"), (1.0001, "1.0001")],
)
def test_numbers_are_written_as_fractions_where_they_are(value, text):
    assert written(value) == text


def test_the_random_state_stays_after_experiments():
    before = torch.get_rng_state()
    failure(lambda x: x * 1.01, MEAN)
    assert torch.equal(torch.get_rng_state(), before)


def an_experiment_that_trips(trial):
    raise KeyError("x")
    yield


def test_an_experiment_that_breaks_is_raised_under_test_and_told_to_a_learner(monkeypatch):
    monkeypatch.setattr(observations, "KINDS", (an_experiment_that_trips, *KINDS))
    with pytest.raises(KeyError):
        HEAD.check(lambda *z: 2 * head(*z))
    monkeypatch.setenv("ATTENTION_STRICT", "0")
    assert HEAD.check(lambda *z: 2 * head(*z)).observations == (
        "Every number is 2 times what it should be.",
        "(One of our experiments with your answer broke: an_experiment_that_trips, KeyError: 'x'. "
        "That is a fault of these notebooks; please report it.)",
    )
