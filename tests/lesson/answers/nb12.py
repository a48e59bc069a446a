"""Wrong answers to the exercises of notebook 12, as learners might write them."""

import torch

from tests.lesson.answers import wrong

# ---------------------------------------------------------------- 12.1 induction score


@wrong("12.1", named="one query too few")
def begins_late(weights, period):
    return weights.diagonal(1 - period)[2:].mean()


@wrong("12.1", "the score of the whole layer before it")
def previous_token(weights, period):
    return weights.diagonal(-1).mean()


# ---------------------------------------------------------------- 12.2 patch


@wrong("12.2", named="only head 0")
def one_head(layer, x, pattern):
    size = x.shape[-1] // layer.n_head
    _, weights = layer(x, return_weights=True)
    values = layer.value(x).split(size, dim=-1)
    out = [weights[:, h] @ values[h] for h in range(1, layer.n_head)]
    return layer.proj(torch.cat([pattern @ values[0], *out], dim=-1))


@wrong("12.2", named="projected first")
def projected_before_it_is_averaged(layer, x, pattern):
    return pattern @ layer.proj(layer.value(x))


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


@wrong("12.3", named="the bias subtracted, too")
def minus_what_it_writes(layer, x, head):
    _, weights = layer(x, return_weights=True)
    size = x.shape[-1] // layer.n_head
    mine, only = slice(head * size, (head + 1) * size), torch.zeros_like(x)
    only[..., mine] = weights[:, head] @ layer.value(x)[..., mine]
    return layer(x) - layer.proj(only)


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
