"""Wrong answers to the exercises of notebook 00, as learners might write them."""

import torch
import torch.nn.functional as F

from tests.lesson.answers import wrong

# --------------------------------------------------------- 00.1 the mean token


@wrong("00.1", "takes the token in the middle instead of averaging")
def middle_token(x):
    return x[:, x.shape[1] // 2]


@wrong("00.1", "returns the running mean of every token, (B, T, C), instead of only the last")
def running_means(x):
    count = torch.arange(1, x.shape[1] + 1)[:, None]
    return x.cumsum(dim=1) / count


@wrong("00.1", "takes the median token in each channel, which is not the mean")
def median_over_time(x):
    return x.median(dim=1).values


@wrong("00.1", "the loop starts at token 1, so token 0 is not added")
def loop_skips_first_token(x):
    B, T, C = x.shape
    total = torch.zeros(B, C)
    for t in range(1, T):
        total = total + x[:, t]
    return total / T


@wrong("00.1", "averages only the first and the last token")
def mean_of_both_ends(x):
    return (x[:, 0] + x[:, -1]) / 2


@wrong("00.1", "halves the old mean at each token, so late tokens count more than early ones")
def halving_mean(x):
    mean = x[:, 0]
    for t in range(1, x.shape[1]):
        mean = (mean + x[:, t]) / 2
    return mean


@wrong("00.1", "whole-number division throws away the fraction of the mean")
def floor_divided_mean(x):
    return x.sum(dim=1) // x.shape[1]


@wrong("00.1", "uses channel 0 only and repeats it in every channel")
def first_channel_repeated(x):
    mean = x[:, :, 0].mean(dim=1)
    return torch.stack([mean] * x.shape[2], dim=-1)


@wrong("00.1", "reads the numbers as (B, C, T) by a reshape, which mixes tokens and channels")
def mean_after_reshape(x):
    B, T, C = x.shape
    return x.reshape(B, C, T).mean(dim=-1)


@wrong("00.1", "averages over the tokens and the channels together, and copies it to each channel")
def one_mean_for_all_channels(x):
    flat = x.reshape(x.shape[0], -1)
    return flat.mean(dim=1, keepdim=True).expand(x.shape[0], x.shape[2])


@wrong("00.1", named="mean over the channels")
def mean_by_pooling_the_last_axis(x):
    return F.adaptive_avg_pool1d(x, 1).squeeze(-1)


@wrong("00.1", "divides the sum by T - 1, as for a sample variance, instead of by T")
def mean_with_ddof(x):
    return x.sum(dim=1) / max(x.shape[1] - 1, 1)


# ------------------------------------------------ 00.2 make every row sum to 1


@wrong("00.2", "divides each matrix by the sum of all its numbers instead of each row by its own")
def shares_of_the_matrix(a):
    return a / a.sum(dim=(-2, -1), keepdim=True)


@wrong("00.2", "divides each row by its length in the sense of vectors, the root of the squares")
def unit_vectors(a):
    return F.normalize(a, dim=-1)


@wrong("00.2", "the loop runs over axis 0, so in a batch it divides whole matrices by their sum")
def loop_over_first_axis(a):
    out = torch.empty_like(a)
    for i in range(a.shape[0]):
        out[i] = a[i] / a[i].sum()
    return out


@wrong("00.2", "flattens the axes in front and never restores the shape")
def flattened_rows(a):
    rows = a.reshape(-1, a.shape[-1])
    return rows / rows.sum(dim=1, keepdim=True)


@wrong("00.2", "dim=2 exists only with one batch axis: a single matrix raises, two axes go wrong")
def sums_over_axis_two(a):
    return a / a.sum(dim=2, keepdim=True)


@wrong("00.2", "clamps the sums to at least 1, so rows with a smaller sum are not divided")
def clamped_sums(a):
    return a / a.sum(dim=-1, keepdim=True).clamp(min=1)


@wrong("00.2", "divides by the mean of the row, so each row sums to its number of columns")
def divided_by_row_mean(a):
    return a / a.mean(dim=-1, keepdim=True)


@wrong("00.2", "divides the sum by the number instead of the number by the sum")
def upside_down(a):
    return a.sum(dim=-1, keepdim=True) / a


@wrong("00.2", "divides the rows and then the columns too, after which the rows do not sum to 1")
def rows_then_columns(a):
    a = a / a.sum(dim=-1, keepdim=True)
    return a / a.sum(dim=-2, keepdim=True)


@wrong("00.2", "loops over the first axis, so in a batch it divides each matrix by its whole sum")
def loop_over_the_first_axis(a):
    rows = []
    for i in range(len(a)):
        rows.append(a[i] / a[i].sum())
    return torch.stack(rows)


@wrong("00.2", "adds 1 to every count first (smoothing), so zeros get a share as well")
def smoothed_rows(a):
    a = a + 1
    return a / a.sum(dim=-1, keepdim=True)


@wrong("00.2", "divides in place, which fails for whole numbers")
def rows_divided_in_place(a):
    a /= a.sum(dim=-1, keepdim=True)
    return a


@wrong("00.2", named="dim=0")
def parts_of_the_first_axis_added(a):
    total = 0
    for part in a:
        total = total + part
    return a / total


# ------------------------------------------------- 00.3 swap the last two axes


@wrong("00.3", "reshapes the transposed tensor back to (B, R, S), the shape it had before")
def shape_restored(x):
    return x.transpose(1, 2).reshape(x.shape)


@wrong("00.3", named="all axes reversed")
def batch_stacked_last(x):
    return torch.stack([matrix.T for matrix in x], dim=-1)


@wrong("00.3", "flips the order of the last axis instead of swapping two axes")
def order_flipped(x):
    return x.flip(-1)


@wrong("00.3", "uses the first sequence only, whatever B is")
def only_the_first_sequence(x):
    return x[0].T[None]


@wrong("00.3", "multiplies by the swapped tensor as in the notebook, instead of returning it")
def pairs_instead_of_swap(x):
    return x @ x.mT


@wrong("00.3", "moves the first axis to the end, so all three axes change places")
def axes_rotated(x):
    return x.permute(1, 2, 0)


@wrong("00.3", "returns nested Python lists, not a tensor")
def nested_lists(x):
    return [[list(column) for column in zip(*matrix, strict=True)] for matrix in x.tolist()]


@wrong("00.3", "overwrites entries in place, so the lower triangle is lost; works on squares only")
def swapped_in_place(x):
    out = x.clone()
    for r in range(x.shape[1]):
        for s in range(x.shape[2]):
            out[:, s, r] = out[:, r, s]
    return out


@wrong("00.3", "returns square matrices as they are, as if only the shape had to change")
def swap_unless_square(x):
    if x.shape[1] == x.shape[2]:
        return x
    return x.transpose(1, 2)


@wrong("00.3", "writes strides by hand as if x lay in memory without gaps, row after row")
def strides_by_hand(x):
    B, R, S = x.shape
    return x.as_strided((B, S, R), (R * S, 1, S))
