"""Wrong answers to the exercises of notebook 12, as learners might write them."""

import torch

from tests.lesson.answers import wrong

# ---------------------------------------------------------------- 12.1 induction score


def score_of(weights, queries, key):
    return torch.stack([weights[t, key(t)] for t in queries]).mean()


@wrong("12.1", named="the letter itself")
def one_period_back(weights, period):
    return weights.diagonal(-period).mean()


@wrong("12.1", named="one place too far")
def plus_two(weights, period):
    return score_of(weights, range(period, len(weights)), lambda t: t - period + 2)


@wrong("12.1", named="the letter before it")
def minus_for_plus(weights, period):
    return score_of(weights, range(period, len(weights)), lambda t: t - period - 1)


@wrong("12.1", named="the letter before it, where there is one")
def one_before(weights, period):
    t = torch.arange(period + 1, len(weights))
    return weights[t, t - period - 1].mean()


@wrong("12.1", named="one query too many")
def whole_diagonal(weights, period):
    return weights.diagonal(1 - period).mean()


@wrong("12.1", named="one query too few")
def begins_late(weights, period):
    return weights.diagonal(1 - period)[2:].mean()


@wrong("12.1", named="the last query missing")
def drop_last(weights, period):
    T = len(weights)
    return sum(weights[t, t - period + 1] for t in range(period, T - 1)) / (T - 1 - period)


@wrong("12.1", named="all queries")
def from_the_first(weights, period):
    return score_of(weights, range(len(weights)), lambda t: t - period + 1)


@wrong("12.1", named="a sum")
def added_up(weights, period):
    total = 0.0
    for t in range(period, len(weights)):
        total = total + weights[t, t - period + 1]
    return total


@wrong("12.1", named="divided by all queries")
def mean_of_all_rows(weights, period):
    found = torch.zeros(len(weights))
    for t in range(period, len(weights)):
        found[t] = weights[t, t - period + 1]
    return found.mean()


@wrong("12.1", named="keys and queries exchanged")
def above_the_diagonal(weights, period):
    return weights.diagonal(period - 1)[1:].mean()


@wrong("12.1", named="one token back")
def the_letter_before(weights, period):
    return score_of(weights, range(period, len(weights)), lambda t: t - 1)


@wrong("12.1", named="the largest weight of each query")
def largest(weights, period):
    return weights[period:].max(dim=1).values.mean()


@wrong("12.1", "the score of the whole layer before it")
def previous_token(weights, period):
    return weights.diagonal(-1).mean()


# ---------------------------------------------------------------- 12.2 patch


def heads(layer, z):
    B, T, _ = z.shape
    return z.reshape(B, T, layer.n_head, -1).permute(0, 2, 1, 3)


def merged(out):
    return torch.cat(list(out.unbind(dim=1)), dim=-1)


@wrong("12.2", named="the pattern transposed")
def columns_for_rows(layer, x, pattern):
    return layer.proj(merged(pattern.T @ heads(layer, layer.value(x))))


@wrong("12.2", named="x in the place of the values")
def averages_tokens(layer, x, pattern):
    return layer.proj(pattern @ x)


@wrong("12.2", named="keys in the place of the values")
def averages_keys(layer, x, pattern):
    return layer.proj(pattern @ layer.key(x))


@wrong("12.2", named="only head 0")
def one_head(layer, x, pattern):
    size = x.shape[-1] // layer.n_head
    _, weights = layer(x, return_weights=True)
    values = layer.value(x).split(size, dim=-1)
    out = [weights[:, h] @ values[h] for h in range(1, layer.n_head)]
    return layer.proj(torch.cat([pattern @ values[0], *out], dim=-1))


@wrong("12.2", named="no output projection")
def not_projected(layer, x, pattern):
    return pattern @ layer.value(x)


@wrong("12.2", named="merged without transposing")
def viewed(layer, x, pattern):
    return layer.proj((pattern @ heads(layer, layer.value(x))).reshape(x.shape))


@wrong("12.2", named="split without transposing")
def split_by_view(layer, x, pattern):
    B, T, C = x.shape
    v = layer.value(x).view(B, layer.n_head, T, C // layer.n_head)
    return layer.proj((pattern @ v.transpose(1, 2).transpose(1, 2)).transpose(1, 2).flatten(2))


@wrong("12.2", named="the pattern as scores")
def softmax_again(layer, x, pattern):
    T = x.shape[1]
    hidden = torch.ones(T, T).triu(1).bool()
    weights = pattern.masked_fill(hidden, -1e9).softmax(-1)
    return layer.proj(merged(weights @ heads(layer, layer.value(x))))


@wrong("12.2", named="the pattern as a mask")
def times_its_own(layer, x, pattern):
    _, weights = layer(x, return_weights=True)
    return layer.proj(merged((pattern * weights) @ heads(layer, layer.value(x))))


@wrong("12.2", named="the pattern as a mask, rows divided by their sum")
def times_its_own_renormalised(layer, x, pattern):
    _, weights = layer(x, return_weights=True)
    weights = torch.nn.functional.normalize(pattern * weights, p=1, dim=-1)
    return layer.proj(merged(weights @ heads(layer, layer.value(x))))


@wrong("12.2", named="added to its own output")
def on_top(layer, x, pattern):
    return layer.proj(merged(pattern @ heads(layer, layer.value(x)))) + layer(x)


@wrong("12.2", named="the outputs averaged")
def after_the_layer(layer, x, pattern):
    return torch.einsum("qk,bkc->bqc", pattern, layer(x))


@wrong("12.2", named="x added")
def with_residual(layer, x, pattern):
    return x + layer.proj(pattern @ layer.value(x))


@wrong("12.2", "a hook that stays")
def hook_left(layer, x, pattern):
    layer.proj.register_forward_pre_hook(lambda m, a: (pattern @ layer.value(x),))
    return layer(x)


@wrong("12.2", "another forward that stays")
def forward_replaced(layer, x, pattern):
    layer.forward = lambda x, **k: layer.proj(pattern @ layer.value(x))
    return layer(x)


@wrong("12.2", "nothing patched")
def as_it_was(layer, x, pattern):
    return layer(x)


# ---------------------------------------------------------------- 12.3 without a head


def parts(layer, x):
    """The outputs of all heads (B, n_head, T, head_size)."""
    _, weights = layer(x, return_weights=True)
    return weights @ heads(layer, layer.value(x))


@wrong("12.3", named="only that head")
def keeps_it(layer, x, head):
    out = parts(layer, x)
    kept = torch.arange(layer.n_head) == head
    return layer.proj(merged(out * kept[:, None, None]))


@wrong("12.3", named="a text in the place of a head")
def first_axis(layer, x, head):
    out = parts(layer, x).clone()
    out[head] = 0.0
    return layer.proj(merged(out))


@wrong("12.3", named="a token in the place of a head")
def third_axis(layer, x, head):
    out = parts(layer, x).clone()
    out[:, :, head] = 0.0
    return layer.proj(merged(out))


@wrong("12.3", named="a channel in the place of a head")
def last_axis(layer, x, head):
    out = parts(layer, x).clone()
    out[:, :, :, head] = 0.0
    return layer.proj(merged(out))


@wrong("12.3", named="every n_head-th channel")
def interleaved(layer, x, head):
    out = merged(parts(layer, x)).clone()
    out[..., head :: layer.n_head] = 0
    return layer.proj(out)


@wrong("12.3", named="all heads")
def nothing_left(layer, x, head):
    return layer.proj(torch.zeros_like(x))


@wrong("12.3", named="the head before it")
def counted_from_one(layer, x, head):
    out = list(parts(layer, x).unbind(dim=1))
    out[head - 1] = torch.zeros_like(out[head - 1])
    return layer.proj(torch.cat(out, dim=-1))


@wrong("12.3", named="equal weights in its place")
def scores_of_zero(layer, x, head):
    _, weights = layer(x, return_weights=True)
    T, weights = x.shape[1], weights.clone()
    weights[:, head] = torch.ones(T, T).tril() / torch.arange(1, T + 1)[:, None]
    return layer.proj(merged(weights @ heads(layer, layer.value(x))))


@wrong("12.3", named="channels of the output")
def after_the_projection(layer, x, head):
    size, out = x.shape[-1] // layer.n_head, layer(x).clone()
    out[..., head * size : (head + 1) * size] = 0
    return out


@wrong("12.3", named="channels of the input")
def before_the_layer(layer, x, head):
    size, x = x.shape[-1] // layer.n_head, x.clone()
    x[..., head * size : (head + 1) * size] = 0
    return layer(x)


@wrong("12.3", named="the other heads scaled up")
def as_dropout(layer, x, head):
    out, n = parts(layer, x), layer.n_head
    kept = (torch.arange(n) != head) * n / (n - 1)
    return layer.proj(merged(out * kept[:, None, None]))


@wrong("12.3", named="no output projection")
def raw(layer, x, head):
    return merged(parts(layer, x) * (torch.arange(layer.n_head) != head)[:, None, None])


@wrong("12.3", named="the bias subtracted, too")
def minus_what_it_writes(layer, x, head):
    only = torch.zeros_like(parts(layer, x))
    only[:, head] = parts(layer, x)[:, head]
    return layer(x) - layer.proj(merged(only))


@wrong("12.3", named="the bias subtracted, too")
def without_a_bias(layer, x, head):
    out = parts(layer, x) * (torch.arange(layer.n_head) != head)[:, None, None]
    return merged(out) @ layer.proj.weight.T


@wrong("12.3", named="x in the place of the values")
def weights_of_x(layer, x, head):
    _, weights = layer(x, return_weights=True)
    out = (weights @ heads(layer, x)).clone()
    out[:, head] = 0
    return layer.proj(merged(out))


@wrong("12.3", named="merged without transposing")
def merged_by_reshape(layer, x, head):
    out = parts(layer, x).clone()
    out[:, head] = 0
    return layer.proj(out.reshape(x.shape))


@wrong("12.3", named="split without transposing")
def split_by_reshape(layer, x, head):
    B, T, _ = x.shape
    _, weights = layer(x, return_weights=True)
    out = (weights @ layer.value(x).reshape(B, layer.n_head, T, -1)).clone()
    out[:, head] = 0
    return layer.proj(merged(out))


@wrong("12.3", named="a token in the place of a head")
def transposed_too_early(layer, x, head):
    out = parts(layer, x).transpose(1, 2).clone()
    out[:, head] = 0
    return layer.proj(out.flatten(2))


@wrong("12.3", "a hook that stays")
def hook_left_on_proj(layer, x, head):
    size = x.shape[-1] // layer.n_head

    def zero(module, args):
        out = args[0].clone()
        out[..., head * size : (head + 1) * size] = 0
        return (out,)

    layer.proj.register_forward_pre_hook(zero)
    return layer(x)


@wrong("12.3", "one head less")
def one_head_less(layer, x, head):
    layer.n_head -= 1
    return layer(x)
