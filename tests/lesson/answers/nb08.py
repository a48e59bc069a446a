"""Wrong answers to the exercises of notebook 08, as learners might write them."""

import torch

from tests.lesson.answers import wrong

# ----------------------------------------- 08.4 add positions


@wrong("08.4", named="a row for each text")
def of_its_text(x, table):
    return torch.stack([text + row for text, row in zip(x, table, strict=False)])


@wrong("08.4", "the positions once more for each text, as if all texts stood in one row")
def in_one_row(x, table):
    places = torch.arange(x[..., 0].numel()).view(x.shape[:2]) % len(table)
    return x + table[places]


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
