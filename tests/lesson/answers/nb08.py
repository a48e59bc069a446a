"""Wrong answers to the exercises of notebook 08, as learners might write them."""

import math

import torch

from tests.lesson.answers import wrong

# ----------------------------------------- 08.1 shuffled tokens, shuffled outputs


@wrong("08.1", named="outputs not shuffled")
def compared_in_the_old_order(layer, x, order):
    before, after = layer(x), layer(x[:, order])
    return torch.max(torch.abs(after - before))


@wrong("08.1", named="tokens not shuffled")
def only_outputs_shuffled(layer, x, order):
    out = layer(x)
    return torch.max(torch.abs(out - out[:, order]))


@wrong("08.1", named="shuffled back instead of forth")
def undone(layer, x, order):
    back = torch.argsort(order)
    return (layer(x[:, order]) - layer(x)[:, back]).abs().amax()


@wrong("08.1", named="sequences shuffled")
def along_the_batch(layer, x, order):
    shuffled = x[order]
    return torch.max(torch.abs(layer(shuffled) - layer(x)[order]))


@wrong("08.1", named="tokens in the place of outputs")
def against_the_tokens(layer, x, order):
    shuffled = x[:, order]
    return (layer(shuffled) - shuffled).abs().max()


@wrong("08.1", named="squared differences")
def squares(layer, x, order):
    return ((layer(x[:, order]) - layer(x)[:, order]) ** 2).max()


@wrong("08.1", named="mean instead of the largest")
def mean_difference(layer, x, order):
    difference = layer(x[:, order]) - layer(x)[:, order]
    return torch.mean(torch.abs(difference))


@wrong("08.1", named="sum instead of the largest")
def total_difference(layer, x, order):
    difference = layer(x[:, order]) - layer(x)[:, order]
    return torch.sum(torch.abs(difference))


@wrong("08.1", named="with its sign")
def signed(layer, x, order):
    difference = layer(x[:, order]) - layer(x)[:, order]
    return torch.max(difference)


@wrong("08.1", named="difference of the largest outputs")
def of_the_largest(layer, x, order):
    one, two = layer(x[:, order]), layer(x)[:, order]
    return torch.abs(one.max() - two.max())


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


# ----------------------------------------- 08.2 turn pairs of channels


def joined(first, second):
    """Channels of arrows, side by side again."""
    out = torch.empty(*first.shape[:-1], 2 * first.shape[-1], dtype=first.dtype)
    out[..., ::2], out[..., 1::2] = first, second
    return out


@wrong("08.2", named="turned the other way round")
def clockwise(x, angles):
    c, s = torch.cos(-angles), torch.sin(-angles)
    even, odd = x[..., ::2], x[..., 1::2]
    return joined(even * c - odd * s, even * s + odd * c)


@wrong("08.2", named="sine and cosine exchanged")
def exchanged(x, angles):
    s, c = torch.cos(angles), torch.sin(angles)
    even, odd = x[..., ::2], x[..., 1::2]
    return joined(even * c - odd * s, even * s + odd * c)


@wrong("08.2", named="two plus signs")
def plus_plus(x, angles):
    c, s = torch.cos(angles), torch.sin(angles)
    even, odd = x[..., ::2], x[..., 1::2]
    return joined(even * c + odd * s, even * s + odd * c)


@wrong("08.2", named="two minus signs")
def minus_minus(x, angles):
    c, s = torch.cos(angles), torch.sin(angles)
    even, odd = x[..., ::2], x[..., 1::2]
    return joined(even * c - odd * s, odd * c - even * s)


@wrong("08.2", named="signs exchanged")
def the_minus_at_the_cosine(x, angles):
    c, s = torch.cos(angles), torch.sin(angles)
    even, odd = x[..., ::2], x[..., 1::2]
    return joined(even * c - odd * s, even * s - odd * c)


@wrong("08.2", named="halves instead of pairs")
def rotate_half(x, angles):
    c, s = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
    half = x.shape[-1] // 2
    return x * c + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * s


@wrong("08.2", named="pairs, but joined as halves")
def concatenated(x, angles):
    c, s = torch.cos(angles), torch.sin(angles)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.concat([even * c - odd * s, even * s + odd * c], -1)


@wrong("08.2", named="halves, but joined as pairs")
def halves_interleaved(x, angles):
    c, s = torch.cos(angles), torch.sin(angles)
    half = x.shape[-1] // 2
    one, two = x[..., :half], x[..., half:]
    return joined(one * c - two * s, one * s + two * c)


@wrong("08.2", named="degrees")
def as_if_in_degrees(x, angles):
    angles = angles * math.pi / 180
    even, odd = x[..., ::2], x[..., 1::2]
    return joined(
        even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()
    )


@wrong("08.2", named="the second channel from the turned first")
def overwritten(x, angles):
    out = x.clone()
    out[..., ::2] = out[..., ::2] * angles.cos() - out[..., 1::2] * angles.sin()
    out[..., 1::2] = out[..., ::2] * angles.sin() + out[..., 1::2] * angles.cos()
    return out


@wrong("08.2", named="the two channels exchanged")
def second_before_first(x, angles):
    c, s = torch.cos(angles), torch.sin(angles)
    even, odd = x[..., ::2], x[..., 1::2]
    return joined(even * s + odd * c, even * c - odd * s)


@wrong("08.2", named="a and b exchanged")
def odd_before_even(x, angles):
    c, s = torch.cos(angles), torch.sin(angles)
    a, b = x[..., 1::2], x[..., ::2]
    return joined(a * c - b * s, a * s + b * c)


@wrong("08.2", named="only the first channels")
def bent(x, angles):
    c, s = torch.cos(angles), torch.sin(angles)
    out = x.clone()
    out[..., ::2] = x[..., ::2] * c - x[..., 1::2] * s
    return out


@wrong("08.2", named="one angle for each token")
def first_angle_for_all(x, angles):
    c, s = torch.cos(angles[:, 0, None]), torch.sin(angles[:, 0, None])
    even, odd = x[..., ::2], x[..., 1::2]
    return joined(even * c - odd * s, even * s + odd * c)


@wrong("08.2", "stacks, and does not flatten")
def not_flattened(x, angles):
    c, s = torch.cos(angles), torch.sin(angles)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * c - odd * s, even * s + odd * c], dim=-1)


@wrong("08.2", named="halves with the angles of pairs")
def halves_with_repeated_angles(x, angles):
    c, s = angles.cos().repeat_interleave(2, -1), angles.sin().repeat_interleave(2, -1)
    half = x.shape[-1] // 2
    return x * c + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * s


@wrong("08.2", "multiplies by the cosine and adds the sine")
def no_rotation(x, angles):
    c, s = angles.cos().repeat_interleave(2, -1), angles.sin().repeat_interleave(2, -1)
    return x * c + s


@wrong("08.2", "the tokens' order of angles reversed")
def angles_reversed(x, angles):
    c, s = angles.flip(0).cos(), angles.flip(0).sin()
    even, odd = x[..., ::2], x[..., 1::2]
    return joined(even * c - odd * s, even * s + odd * c)


# ----------------------------------------- 08.3 a query that looks back


def turned(k, angles):
    """The pairs of channels of k, turned."""
    z = torch.view_as_complex(k.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(z * torch.exp(1j * angles)).flatten(-2)


@wrong("08.3", named="turned ahead")
def ahead(k, n, speeds):
    return turned(k, speeds * n)


@wrong("08.3", named="turned to its own place, too")
def turned_twice(k, n, speeds):
    return turned(k, (torch.arange(k.shape[0]) - n).outer(speeds))


@wrong("08.3", named="the key as it is")
def itself(k, n, speeds):
    return k.clone()


@wrong("08.3", named="one speed for all arrows")
def fastest_speed(k, n, speeds):
    return turned(k, -n * speeds[0].repeat(len(speeds)))


@wrong("08.3", named="one position too few")
def too_few(k, n, speeds):
    return turned(k, speeds * (1 - n))


@wrong("08.3", named="one position too many")
def too_many(k, n, speeds):
    return turned(k, -speeds * (n + 1))


@wrong("08.3", named="degrees")
def in_degrees(k, n, speeds):
    return turned(k, -n * speeds * 180 / math.pi)


@wrong("08.3", named="as if in degrees")
def as_if_speeds_were_degrees(k, n, speeds):
    return turned(k, -n * speeds * math.pi / 180)


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


@wrong("08.3", named="divided by the speed")
def divided(k, n, speeds):
    return turned(k, -n / speeds)
