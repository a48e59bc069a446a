"""The exercises of notebook 12: what a trained model's attention looks like, and what it causes."""

import torch
from torch.nn.functional import linear, pad

from attention_base.same import seed_all
from feedback.grading import Exercise
from helpers.attention import MultiHeadAttention, causal_mask

# ---------------------------------------------------------------- 12.1


def induction_score(weights, period):
    """Weights (T, T), the period -> the mean weight on what followed, one period ago."""
    rows = torch.arange(period, weights.shape[0])
    return weights[rows, rows - period + 1].mean()


def score_of_a_pattern(weights, period):
    pattern = weights.tril()  # a map without a future, whose rows sum to 1, stays as it is
    pattern = pattern / pattern.sum(dim=-1, keepdim=True)
    return pattern.diagonal(1 - period)[1:].mean()


def _maps():
    generator = torch.Generator().manual_seed(0)
    cases = []
    for T, period in ((12, 4), (15, 6), (9, 2)):
        scores = 2 * torch.randn(T, T, generator=generator)
        cases.append((scores.masked_fill(~causal_mask(T), -torch.inf).softmax(dim=-1), period))
    return cases


INDUCTION_SCORE = Exercise(
    "12.1",
    induction_score,
    _maps,
    axes={"weights": "T T"},
    accepted=(score_of_a_pattern,),
    intermediates=(
        (
            "the mean over all rows of the largest weight of a row",
            lambda weights, period: weights.amax(dim=-1).mean(),
        ),
        (
            "the weights on what followed, before their mean",
            lambda weights, period: weights.diagonal(1 - period)[1:],
        ),
    ),
)


# ---------------------------------------------------------------- 12.2


def patched(layer, x, pattern):
    """The output (B, T, C) of a layer for x, with this pattern (T, T) in place of its weights."""
    B, T, C = x.shape
    v = layer.value(x).view(B, T, layer.n_head, C // layer.n_head)
    out = pattern @ v.transpose(1, 2)  # (B, n_head, T, head_size)
    return layer.proj(out.transpose(1, 2).flatten(2))


def _its_own_weights(layer, x):
    return layer(x, return_weights=True)[1]


def _merged(layer, x, weights):
    v = layer.value(x).unflatten(2, (layer.n_head, -1)).transpose(1, 2)
    return (weights @ v).transpose(1, 2).flatten(2)


def _with_weights(layer, x, weights):
    return layer.proj(_merged(layer, x, weights))


def pattern_as_scores(layer, x, pattern):
    scores = pattern.masked_fill(~causal_mask(x.shape[1]), -torch.inf)
    return _with_weights(layer, x, scores.softmax(dim=-1))


def pattern_as_a_mask(layer, x, pattern):
    weights = _its_own_weights(layer, x) * pattern
    return _with_weights(layer, x, weights)


def a_mask_that_sums_to_1(layer, x, pattern):
    weights = _its_own_weights(layer, x) * pattern
    return _with_weights(layer, x, weights / weights.sum(dim=-1, keepdim=True))


def without_the_future(layer, x, pattern):
    weights = pattern.tril()
    return _with_weights(layer, x, weights / weights.sum(dim=-1, keepdim=True))


def weights_added(layer, x, pattern):
    return _with_weights(layer, x, _its_own_weights(layer, x) + pattern)


def weights_averaged(layer, x, pattern):
    return _with_weights(layer, x, (_its_own_weights(layer, x) + pattern) / 2)


def only_head_0_patched(layer, x, pattern):
    weights = _its_own_weights(layer, x).clone()
    weights[:, 0] = pattern
    return _with_weights(layer, x, weights)


def both_patterns(layer, x, pattern):
    return layer(x) + _with_weights(layer, x, pattern)


def its_output_averaged(layer, x, pattern):
    return pattern @ layer(x)


def _pattern(T, generator, causal):
    scores = 2 * torch.randn(T, T, generator=generator)
    return scores.masked_fill(~causal_mask(T) & causal, -torch.inf).softmax(dim=-1)


def _layers_and_patterns():
    seed_all()
    generator = torch.Generator().manual_seed(1)
    cases = []
    for C, n_head, B, T, causal in ((12, 3, 2, 5, True), (8, 2, 3, 6, False), (20, 4, 2, 7, True)):
        x = torch.randn(B, T, C, generator=generator)
        cases.append((MultiHeadAttention(C, n_head), x, _pattern(T, generator, causal)))
    cases[-1][-1].mul_(0.5)  # weaker, as in the notebook: its rows sum to 0.5
    return cases


PATCHED = Exercise(
    "12.2",
    patched,
    _layers_and_patterns,
    axes={"x": "B T C", "pattern": "T T", "return": "B T C"},
    intermediates=(
        ("the output of the unchanged layer", lambda layer, x, pattern: layer(x)),
        (
            "the outputs of the heads, before the output projection",
            lambda layer, x, pattern: pattern @ layer.value(x),
        ),
        ("the values of the tokens", lambda layer, x, pattern: layer.value(x)),
    ),
)


# ---------------------------------------------------------------- 12.3


def without_head(layer, x, head):
    """The output (B, T, C) of a layer for x, with the output of one of its heads set to 0."""
    B, T, C = x.shape
    _, weights = layer(x, return_weights=True)  # (B, n_head, T, T)
    v = layer.value(x).view(B, T, layer.n_head, C // layer.n_head)
    out = weights @ v.transpose(1, 2)  # (B, n_head, T, head_size)
    out[:, head] = 0
    return layer.proj(out.transpose(1, 2).flatten(2))


def equal_scores_in_its_place(layer, x, head):
    weights = _its_own_weights(layer, x).clone()
    seen = causal_mask(x.shape[1])
    weights[:, head] = seen / seen.sum(dim=1, keepdim=True)
    return _with_weights(layer, x, weights)


def only_that_head(layer, x, head):
    weights = _its_own_weights(layer, x)
    kept = torch.zeros_like(weights)
    kept[:, head] = weights[:, head]
    return _with_weights(layer, x, kept)


def bias_subtracted_too(layer, x, head):
    return layer(x) - only_that_head(layer, x, head)


def every_nth_channel(layer, x, head):
    kept = torch.ones(x.shape[-1])
    kept[head :: layer.n_head] = 0
    return layer.proj(_merged(layer, x, _its_own_weights(layer, x)) * kept)


def _mine(layer, x, head):
    """The channels of a head, when all are merged."""
    size = x.shape[-1] // layer.n_head
    return slice(head * size, (head + 1) * size)


def _others(layer, x, head):
    """A number for each channel: 0 for those of the head, 1 for the others."""
    kept = torch.ones(x.shape[-1])
    kept[_mine(layer, x, head)] = 0
    return kept


def channels_of_the_output(layer, x, head):
    return layer(x) * _others(layer, x, head)


def channels_of_the_input(layer, x, head):
    return layer(x * _others(layer, x, head))


def rows_of_w_o(layer, x, head):
    weight = layer.proj.weight * _others(layer, x, head)[:, None]
    return linear(_merged(layer, x, _its_own_weights(layer, x)), weight, layer.proj.bias)


def rows_of_w_o_subtracted(layer, x, head):
    part = _merged(layer, x, _its_own_weights(layer, x))[..., _mine(layer, x, head)]
    return layer(x) - part @ layer.proj.weight[_mine(layer, x, head)]


def columns_of_the_values(layer, x, head):
    v = layer.value(x * _others(layer, x, head)).unflatten(2, (layer.n_head, -1))
    return layer.proj((_its_own_weights(layer, x) @ v.transpose(1, 2)).transpose(1, 2).flatten(2))


def later_heads_moved_up(layer, x, head):
    merged, mine = _merged(layer, x, _its_own_weights(layer, x)), _mine(layer, x, head)
    rest = torch.cat([merged[..., : mine.start], merged[..., mine.stop :]], dim=-1)
    return layer.proj(pad(rest, (0, mine.stop - mine.start)))


def n_head_channels(layer, x, head):
    merged = _merged(layer, x, _its_own_weights(layer, x)).clone()
    merged[..., head * layer.n_head : (head + 1) * layer.n_head] = 0
    return layer.proj(merged)


def equal_weights_on_all(layer, x, head):
    weights = _its_own_weights(layer, x).clone()
    weights[:, head] = 1 / x.shape[1]
    return _with_weights(layer, x, weights)


def a_key_removed(layer, x, head):
    weights = _its_own_weights(layer, x).clone()
    weights[..., head] = 0
    return _with_weights(layer, x, weights)


def subtracted_after_the_projection(layer, x, head):
    merged = _merged(layer, x, _its_own_weights(layer, x))
    return layer(x) - merged * (1 - _others(layer, x, head))


def itself_in_its_place(layer, x, head):
    weights = _its_own_weights(layer, x).clone()
    weights[:, head] = torch.eye(x.shape[1])
    return _with_weights(layer, x, weights)


def mean_of_the_others(layer, x, head):
    out = _merged(layer, x, _its_own_weights(layer, x)).unflatten(2, (layer.n_head, -1)).clone()
    out[:, :, head] = (out.sum(dim=2) - out[:, :, head]) / (layer.n_head - 1)
    return layer.proj(out.flatten(2))


def _layers_and_heads():
    seed_all(2)
    generator = torch.Generator().manual_seed(3)
    cases = []
    for C, n_head, B, T, head in ((12, 3, 5, 7, 1), (20, 4, 3, 6, 2), (12, 2, 3, 4, 0)):
        x = torch.randn(B, T, C, generator=generator)
        cases.append((MultiHeadAttention(C, n_head), x, head))
    return cases


WITHOUT_HEAD = Exercise(
    "12.3",
    without_head,
    _layers_and_heads,
    axes={"x": "B T C", "return": "B T C"},
    intermediates=(
        ("the output of the unchanged layer", lambda layer, x, head: layer(x)),
        ("what the head adds to the output of the layer", only_that_head),
    ),
)


EXERCISES = (INDUCTION_SCORE, PATCHED, WITHOUT_HEAD)
