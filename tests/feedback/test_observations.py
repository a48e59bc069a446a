"""What experiments find out about a wrong answer: one small answer for each kind of fact."""

import inspect
import math
import re
import warnings
from operator import methodcaller
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from feedback import observations
from feedback.grading import Exercise
from feedback.judge import Judge
from feedback.observations import KINDS
from feedback.observations.changed_inputs import right_for_other_inputs
from feedback.observations.factors import every_number
from feedback.observations.forms import what_form_it_has
from feedback.observations.rearranged import other_places
from feedback.observations.rows import each_row, row_factors, scores_multiplied
from feedback.observations.trial import place_word, written
from helpers.attention import causal_mask
from tests.lesson.examples import CHANGES, LISTS, MODULE, PIECES, failure, side_by_side
from tests.told import Told


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


def as_dict(fused):
    return dict(zip("qkv", fused.chunk(3), strict=True))


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


def nan_above_the_diagonal(x):
    out = running_mean(x)
    return out.masked_fill(torch.ones_like(out).triu(1) > 0, math.nan)


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
    (SOFT, lambda s, t: soften(s, t) / t, "Every number is 1/temperature times what it"),
    (MEAN, divided_by_the_example, "5/T times what it should be."),
    (MATRIX, lambda a: 2 * a - a.exp(), "When `a` is doubled, the right result doubles as well"),
    (SOFT, lambda s, t: soften(s, t).log(), "Your numbers are the logarithms of the right ones."),
    (MEAN, lambda x: running_mean(x) + x, "Your result is the right one plus `x`."),
    (MATRIX, lambda a: (2 * a).double(), "right, but they are torch.float64, not torch.float32."),
    # the right numbers elsewhere
    (MEAN, lambda x: running_mean(x).mT, "The numbers are right, but axes T and C have changed"),
    (MAKE, lambda T, w: MAKE.reference(T, w).T, "right, but rows and columns are swapped."),
    (MATRIX, lambda a: (2 * a).flip(0), "The order of the rows is reversed: row 0 is what row 3"),
    (MEAN, lambda x: running_mean(x).roll(1, 1), "Your result is shifted by one: output 4 of your"),
    (MEAN, lambda x: running_mean(x)[:1].expand_as(x), "Every sequence of your result is what seq"),
    (MEAN, lambda x: running_mean(x).flatten(0, 1), "reading order are right; only the shape is"),
    (MEAN, lambda x: running_mean(x)[None], "stands at the only place along your axis 0."),
    # rows
    (SOFT, lambda s, t: (s / t).exp(), "the proportions are right, but the sums are not: row 0"),
    (SOFT, lambda s, t: soften(3.7 * s, t), "those of the right scores multiplied by 3.7."),
    # right for other inputs
    (HEAD, lambda x, q, k, v: head(x.flip(1), q, k, v), "tokens in the reverse order."),
    # what it depends on
    (SOFT, lambda s, t: soften(s, 3.0), "Your result does not change when `temperature` changes."),
    (HEAD, lambda x, q, k, v: head(x, q, k * 0 + 1, v).sin(), "not change when `W_key` changes."),
    (MEAN, mixed, "Sequence 1 of your result changes when sequence 0 does: sequences are mixed."),
    (MEAN, sees_last, "Output 0 changes when token 4 changes: it sees the future."),
    (MEAN, one_ahead, "Each output changes when the next token does: it sees one of its future."),
    (MEAN, lambda x: running_mean(x.roll(1, 1) * torch.rand(())), "it depends on random numbers."),
    (MEAN, own_token_only, "Output 2 adds up 1/3 of token 2; it should be 1/3 of tokens 0 to 2"),
    (HEAD, weights_not_used, "You compute `weights`, and nothing uses it."),
    (MEAN, lambda x: running_mean(TOKENS), "Your function uses `TOKENS` of the notebook"),
    (LISTS, last_part_stays_zero, "does not change when item 2 of `parts` changes."),
    (LISTS, lambda parts, x: side_by_side(parts[:4], x), "Right for the first inputs, but not for"),
    (LISTS, padded_to_x, "Your result is right where C = d·n, and is wrong where they differ."),
    (FLIP, lambda a: a, "Your result is right where R = 1, and is wrong where it is more."),
    (MODULE, lambda layer: layer.weight.T[:60], "Right for the first inputs, but not for layer ="),
    (MODULE, lambda layer: layer, "Your result is `layer` itself, unchanged."),
    (MODULE, square_part_only, "Your result is right where C = d, and is wrong where they differ."),
    (MODULE, lambda layer: [layer.weight], "Item 0 of your list is the right result transposed."),
    # where it is wrong
    (MEAN, fixed_size, "Your result is right for the second input, and is wrong for the first"),
    (SOFT, small_weights_dropped, "right for the numbers of the first input, and is wrong for 3 t"),
    (MAKE, lambda T, w: torch.eye(T), "only zeros and ones; the right one"),
    (MEAN, lambda x: running_mean(x).abs(), "No number of your result is below 0; some should be."),
    (MEAN, nan_above_the_diagonal, "out[0, 0, 1] is nan"),
    (MEAN, nan_in_row_2, "Output 2 of your result is nan, and nothing else is."),
    (MEAN, lambda x: running_mean(x) * math.nan, "Every number is nan."),
    (MAKE, diagonal_lost, "Row 2 is 1/3 1/3 0 0 0; it should be 1/3 1/3 1/3 0 0."),
    (MAKE, weights_at(lambda s, T, w: s <= w), "on all tokens up to t + 2; it"),
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
    (MEAN, lambda x: running_mean(x).tolist(), "right, but your result is a list of numbers"),
    (MEAN, lambda x: running_mean(x).numpy(), "they stand in a NumPy array, not in a tensor."),
    (PIECES, as_dict, "The values of your dict are the right tensors"),
    (PIECES, lambda f: f.split(2), "Your pieces are (0) rows 0 and 1, (1) rows 2 and 3,"),
    (PIECES, lambda f: [f[i::3] for i in range(3)], "(0) rows 0, 3 and 6, (1) rows 1, 4 and 7"),
    (MATRIX, lambda a: 3 * a + torch.zeros(8, 1), "For R = 8 your function runs. There, your r"),
    (HEAD, wrong_mask, "For B = T your function runs, and it is right there: is one taken for"),
    (MEAN, for_four_tokens_only, "For T = 8 your function runs, and it is right there: is "),
]


@pytest.mark.parametrize(("of", "answer", "fact"), FACTS, ids=[words[:40] for *_, words in FACTS])
def test_a_fact_is_found(of, answer, fact, snapshot):
    message = failure(answer, of).replace("For T = B", "For B = T")
    found = [o.text for o in everything(of, answer)]
    assert any(fact in text for text in found) or fact in message, [*found, message]
    assert "\n".join(found) == snapshot.use_extension(Told)


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


NUMBERS = exercise(lambda n, m, t: torch.tensor([n, 3 * m, t]), [(7, 2, 3.3), (4, 9, 0.3)])
LIST = exercise(
    lambda a: sum((i + 2) * z for i, z in enumerate(a)), [([*normal((n, 6))[0]],) for n in (4, 3)]
)
ROWS = exercise(lambda a: a.exp(), [normal((4, 3)), normal((3, 5))], axes={"a": "R S"})
TOTAL = exercise(
    lambda a: a.exp().sum(0), [normal((4, 3)), normal((3, 5))], axes={"a": "R S", "return": "S"}
)
SQUARE = exercise(
    lambda a, b: a @ b.exp(),
    [normal((4, 4), (4, 4)), normal((3, 3), (3, 3))],
    axes={"a": "C d", "b": "C d"},
)
ALONG = [
    lambda a: a[:1].expand_as(a),
    lambda a: a[-1:].expand_as(a),
    lambda a: a.mean(0).expand_as(a),
    lambda a: a.flip(0),
    lambda a: torch.cat([a[-1:], a[:-1]]),
    lambda a: torch.cat([a[1:], a[:1]]),
    lambda a: torch.cat([0 * a[:1], a[1:]]),
    lambda a: torch.cat([a[:-1], 0 * a[:1]]),
]
OF_T = [lambda t: 1 / t, math.sqrt, lambda t: t * t, lambda t: math.exp(-t), lambda t: min(t, 1)]
OF_T += [lambda t: max(t, 1), lambda t: 3.0 if t > 1 else 0.0]
OF_T += [lambda t, k=k: k for k in (1.0, 0.0, 0.5, 2.0, 8.0, 0.125)]
# Other inputs, for which an answer is the right one: its snapshot says which.
OTHER_INPUTS = [
    *((ROWS, lambda a, f=f: [f(a)]) for f in ALONG),
    *((ROWS, lambda a, f=f: [f(a.T).T]) for f in ALONG),
    (TOTAL, lambda a: [a[:1]]),
    (ROWS, lambda a: [-a]),
    (ROWS, lambda a: [a.abs()]),
    (ROWS, lambda a: [a.round()]),
    (ROWS, lambda a: [a.softmax(1)]),
    (ROWS, lambda a: [a.T]),
    (ROWS, lambda a: [2 * a]),
    (ROWS, lambda a: [a / 2]),
    (SQUARE, lambda a, b: [a.T, b.T]),
    (SQUARE, lambda a, b: [b, a]),
    (SQUARE, lambda a, b: [a, a]),
    (SQUARE, lambda a, b: [b, b]),
    (SQUARE, lambda a, b: [a, b * len(b) ** 0.5]),
    *((NUMBERS, lambda n, m, t, k=k: [n + k, m, t]) for k in (1, -1, 2, -2)),
    *((NUMBERS, lambda n, m, t, k=k: [k, m, t]) for k in (0, 1, 2)),
    (NUMBERS, lambda n, m, t: [m, n, t]),
    *((NUMBERS, lambda n, m, t, f=f: [n, m, f(t)]) for f in OF_T),
    (FLAG, lambda a, twice: [a, not twice]),
    (FLAG, lambda a, twice: [a, True]),
    (FLAG, lambda a, twice: [a, False]),
    *((LIST, lambda a, s=s: [a[s]]) for s in (slice(None, None, -1), slice(1), slice(-1, None))),
    *((LIST, lambda a, s=s: [a[s]]) for s in (slice(-1), slice(1, None))),
    (PARTS, lambda f, g, x: [lambda z: z, g, x]),
    (PARTS, lambda f, g, x: [torch.zeros_like, g, x]),
    (PARTS, lambda f, g, x: [lambda z: f(z)[:1], g, x]),
    (PARTS, lambda f, g, x: [f, f, x]),
]


def told_by(kind, of, answer):
    return [one.text for one in kind(Judge(of, answer).trial())]


def on_other_inputs(of, change):
    answer = lambda *arguments: of.reference(*change(*arguments))  # noqa: E731
    answer.__signature__ = inspect.signature(of.reference)
    return answer


FACTORS = "T 1/T √T 1/√T T² 1/T² (T−1)/T √((T−1)/T) T/(T−1) 1/(T+1) 2/T 2/√T T/2 4/T T/4 3/T "
FACTORS += "T/3 √(3/T) √(T/3) B·T 1/(B·T) B/T T/B √(B/T) √(T/B) 3 1/7 √5 1/√7 100 1/100 -T -1/2 "
FACTORS += "t+1 1/(t+1) (t+1)/T T/(t+1) (t+1)/t (t+1)/(t+2) 2/(t+2)"


def test_a_factor_has_the_value_of_its_name():
    for name in FACTORS.split():
        code = re.sub(r"√(\w+)", r"(\1)**.5", re.sub(r"√(\(.*)", r"\1**.5", name))
        code = code.replace("−", "-").replace("²", "**2").replace("·", "*")

        def answer(x, code=code):
            B, T, _ = x.shape
            return running_mean(x) * eval(code, {"B": B, "T": T, "t": torch.arange(T)[:, None]})

        told = [*told_by(every_number, MEAN, answer), *told_by(row_factors, MEAN, answer)]
        spaced = re.sub(r"([−+])", r" \1 ", name)
        which = "Output t" if "t" in name else "Every number"
        assert told == [f"{which} is {spaced} times what it should be."]


TWICE = MATRIX.reference
UNNAMED = exercise(TWICE, [normal((2, 3, 4)), normal((3, 2, 5))])
FACTOR = torch.tensor([[2.0], [3], [1], [0.5]])
REDUCTIONS = [
    lambda e, axis: e.mean(axis),
    lambda e, axis: e.sum(axis),
    lambda e, axis: e.unbind(axis)[0],
    lambda e, axis: e.unbind(axis)[-1],
    lambda e, axis: e.split(1, axis)[0],
    lambda e, axis: e.split(e.shape[axis] - 1, axis)[0],
    lambda e, axis: e.tensor_split([1], axis)[1],
]
# A kind of fact, and answers: what is told of them stands in the snapshot.
ANSWERS = [
    *((right_for_other_inputs, of, on_other_inputs(of, f)) for of, f in OTHER_INPUTS),
    *(
        (other_places, MATRIX, lambda a, f=f, axis=axis: f(TWICE(a), axis))
        for axis in (0, 1)
        for f in REDUCTIONS
    ),
    (other_places, MEAN, lambda x: running_mean(x).permute(1, 0, 2)),
    (other_places, MEAN, lambda x: running_mean(x).permute(2, 0, 1)),
    (other_places, UNNAMED, lambda a: 2 * a.transpose(0, 1)),
    (other_places, UNNAMED, lambda a: 2 * a.mT),
    (other_places, MATRIX, lambda a: torch.rot90(TWICE(a), -1)),
    (other_places, MATRIX, lambda a: TWICE(a).roll(-1, 0)),
    (other_places, MATRIX, lambda a: TWICE(a)[[1, 0, 2, 3][: len(a)]]),
    (other_places, MATRIX, lambda a: TWICE(a)[[0, 0, 0, 3][: len(a)]]),
    (other_places, MATRIX, lambda a: torch.stack([TWICE(a), a], 1)),
    (other_places, MATRIX, lambda a: torch.cat([TWICE(a), a[:2]])),
    (other_places, MATRIX, lambda a: torch.cat([a[:1], TWICE(a)])),
    (other_places, MATRIX, lambda a: torch.cat([TWICE(a), a.new_ones(8 - len(a), a.shape[1])])),
    (other_places, MATRIX, lambda a: torch.cat([TWICE(a), a])),
    (every_number, MATRIX, lambda a: TWICE(a) + len(a)),
    (every_number, MATRIX, lambda a: TWICE(a) - 1.5),
    (every_number, MATRIX, lambda a: TWICE(a) * (1 if len(a) == 3 else 1.7)),
    (every_number, MATRIX, lambda a: TWICE(a) * (1.7 if len(a) == 3 else 1.9)),
    (every_number, MEAN, lambda x: running_mean(x) - x),
    (every_number, MATRIX, lambda a: 1 / TWICE(a)),
    (every_number, MATRIX, lambda a: TWICE(a).round()),
    (every_number, MATRIX, lambda a: TWICE(a).floor()),
    (every_number, MATRIX, lambda a: TWICE(a).trunc()),
    (every_number, MATRIX, lambda a: TWICE(a).round(decimals=3)),
    (row_factors, MATRIX, lambda a: TWICE(a) * FACTOR[: len(a)]),
    (each_row, MATRIX, lambda a: TWICE(a) + FACTOR[: len(a)] - 1),
    (scores_multiplied, SOFT, lambda s, t: soften(s * t, t)),
    (scores_multiplied, SOFT, lambda s, t: soften(s * FACTOR[: len(s)], t)),
    (what_form_it_has, MATRIX, lambda a: [*TWICE(a)]),
    (what_form_it_has, MATRIX, lambda a: TWICE(a).split(1, 1)),
    (what_form_it_has, MATRIX, lambda a: [*TWICE(a).numpy()]),
    (what_form_it_has, MATRIX, lambda a: (a, TWICE(a))),
    (what_form_it_has, MATRIX, lambda a: torch.cat([a, a])),
    (what_form_it_has, TOTAL, lambda a: a),
]


@pytest.mark.filterwarnings("ignore")
def test_what_one_kind_of_fact_tells_of_an_answer(snapshot):
    told = [" ".join(told_by(kind, of, answer)) for kind, of, answer in ANSWERS]
    assert "\n".join(told) == snapshot


GIVEN = [z for of in (HEAD, MEAN, MATRIX) for case in of.cases() for z in case]


def fussy(z):
    others = [given for given in GIVEN if given.shape == z.shape and not torch.equal(given, z)]
    if any(torch.equal(given[1:], z[1:]) for given in others):
        raise ValueError("It takes no change of the first part alone.")
    return z.flip(-2)


MORE = [methodcaller(name) for name in ("neg", "exp", "sign", "int", "double")]
MORE += [
    methodcaller(name, 0) for name in ("sum", "cumsum", "unsqueeze", "unbind", "softmax", "flip")
]
MORE += [lambda z: z.mT, lambda z: z / z.norm(), lambda z: z[:1].expand_as(z), lambda z: z + 1]
MORE += [lambda z: torch.cat([z[..., :-1, :], 0 * z[..., -1:, :]], -2), fussy]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("of", "n"),
    [(of, n) for of in (HEAD, MEAN, MATRIX, SOFT) for n in range(-1, len(of.cases()[0]))],
)
def test_what_is_told_where_an_input_or_the_result_is_changed(of, n, snapshot):
    told = []
    for change in (*CHANGES.values(), *MORE):

        def changed(*given, change=change):
            given = [change(z) if i == n else z for i, z in enumerate(given)]
            return change(of.reference(*given)) if n < 0 else of.reference(*given)

        changed.__signature__ = inspect.signature(of.reference)
        told.append(" ".join(one.text for one in everything(of, changed)))
    assert "\n".join(told) == snapshot
