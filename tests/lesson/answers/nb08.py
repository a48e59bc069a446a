"""Wrong answers to the exercises of notebook 08, as learners might write them."""

import torch

from tests.lesson.answers import wrong

# ----------------------------------------- 08.1 shuffled tokens, shuffled outputs


@wrong("08.1", named="outputs not shuffled")
def compared_in_the_old_order(layer, x, order):
    before, after = layer(x), layer(x[:, order])
    return torch.max(torch.abs(after - before))


@wrong("08.1", "returns all differences")
def no_maximum(layer, x, order):
    return torch.abs(layer(x[:, order]) - layer(x)[:, order])


@wrong("08.1", "the length of the differences instead of the largest")
def length_of_the_difference(layer, x, order):
    return torch.linalg.norm(layer(x[:, order]) - layer(x)[:, order])


@wrong("08.1", "one number for each sequence")
def for_each_sequence(layer, x, order):
    return (layer(x[:, order]) - layer(x)[:, order]).abs().amax(dim=(1, 2))


@wrong("08.1", "a verdict instead of a number")
def a_verdict(layer, x, order):
    return torch.allclose(layer(x[:, order]), layer(x)[:, order], atol=1e-6)


# ----------------------------------------- 08.turn pairs of channels


@wrong("08.turn", named="halves instead of pairs")
def rotate_half(x, angles):
    c, s = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
    half = x.shape[-1] // 2
    return x * c + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * s


@wrong("08.turn", "stacks, and does not flatten")
def not_flattened(x, angles):
    c, s = torch.cos(angles), torch.sin(angles)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * c - odd * s, even * s + odd * c], dim=-1)


@wrong("08.turn", "multiplies by the cosine and adds the sine")
def no_rotation(x, angles):
    c, s = angles.cos().repeat_interleave(2, -1), angles.sin().repeat_interleave(2, -1)
    return x * c + s


@wrong("08.turn", "the tokens' order of angles reversed")
def angles_reversed(x, angles):
    c, s = angles.flip(0).cos(), angles.flip(0).sin()
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * c - odd * s, even * s + odd * c], dim=-1).flatten(-2)


# ----------------------------------------- 08.3 a query that looks back


def turned(k, angles):
    """The pairs of channels of k, turned."""
    z = torch.view_as_complex(k.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(z * torch.exp(1j * angles)).flatten(-2)


@wrong("08.3", named="the speed left out")
def without_speed(k, n, speeds):
    return turned(k, torch.full_like(speeds, -n))


@wrong("08.3", "points the other way: the smallest score n tokens back")
def opposite(k, n, speeds):
    return -turned(k, -n * speeds)


@wrong("08.3", "twice as long as the keys")
def too_long(k, n, speeds):
    return 2 * turned(k, -n * speeds)


@wrong("08.3", "the angles, not the turned keys")
def angles_only(k, n, speeds):
    return -n * speeds
