"""Wrong answers to the exercises of notebook 00, as learners might write them."""

from collections import Counter, defaultdict

import torch
import torch.nn.functional as F

from tests.lesson.answers import wrong

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


# ------------------------------------------------- 00.count, 00.write


@wrong("00.count", named="every second pair")
def two_letters_at_a_time(text):
    table = defaultdict(Counter)
    letters = iter(text)
    for first, second in zip(letters, letters, strict=False):
        table[first][second] += 1
    return table


@wrong("00.write", named="always the likeliest letter")
def sorted_by_count(guess, start, n):
    while n > 0:
        ranked = sorted(guess(start).items(), key=lambda pair: pair[1])
        start, n = start + ranked[-1][0], n - 1
    return start
