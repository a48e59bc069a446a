"""Wrong answers to the exercises of notebook 02, as learners might write them."""

import torch

from tests.lesson.answers import wrong

# ------------------------------------------ 02.1 the causal mean as one matmul


@wrong("02.1", named="no keepdim")
def row_sums_without_keepdim(x):
    T = x.shape[1]
    tril = torch.tril(torch.ones(T, T))
    weights = tril / tril.sum(dim=-1)
    return weights @ x


@wrong("02.1", named="x @ weights")
def weights_on_the_right(x):
    T = x.shape[1]
    W = torch.tril(torch.ones(T, T))
    W = W / W.sum(dim=1, keepdim=True)
    return x @ W


@wrong("02.1", named="one diagonal too many")
def one_diagonal_too_many(x):
    T = x.shape[1]
    tril = torch.tril(torch.ones(T, T), diagonal=1)
    return (tril / tril.sum(dim=-1, keepdim=True)) @ x


@wrong("02.1", "torch.mm multiplies only two matrices, and x has three axes")
def mm_with_a_batch(x):
    T = x.shape[1]
    W = torch.ones(T, T).tril() / torch.arange(1, T + 1)[:, None]
    return torch.mm(W, x)


@wrong("02.1", "returns the (T, T) weights and never multiplies them with the tokens")
def weights_returned_without_product(x):
    T = x.shape[1]
    ones = torch.ones(T, T).tril()
    return ones / ones.sum(dim=1, keepdim=True)


@wrong(
    "02.1", "divides the running sums by the sum over their channels, not by the number of tokens"
)
def outputs_made_to_sum_to_one(x):
    T = x.shape[1]
    out = torch.tril(torch.ones(T, T)) @ x
    return out / out.sum(dim=-1, keepdim=True)


@wrong("02.1", "the triangle is without its diagonal, so each output lacks its own token")
def diagonal_left_out(x):
    T = x.shape[1]
    earlier = torch.tril(torch.ones(T, T), diagonal=-1)
    counts = earlier.sum(dim=-1, keepdim=True).clamp(min=1)
    return (earlier / counts) @ x


@wrong("02.1", named="divided by T")
def triangle_divided_by_T(x):
    T = x.shape[1]
    return torch.tril(torch.ones(T, T)) / T @ x


@wrong("02.1", named="T taken from the batch axis")
def size_from_len(x):
    n = len(x)
    weights = torch.tril(torch.ones(n, n))
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ x


@wrong("02.1", "rounds the weights to two decimals before the product")
def rounded_weights(x):
    T = x.shape[1]
    weights = torch.tril(torch.ones(T, T))
    weights = torch.round(weights / weights.sum(dim=-1, keepdim=True), decimals=2)
    return weights @ x


@wrong("02.1", "leaves b out of the result of einsum, so the outputs of all sequences are added up")
def einsum_without_b(x):
    T = x.shape[1]
    weights = torch.tril(torch.ones(T, T))
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return torch.einsum("ts,bsc->tc", weights, x)


@wrong("02.1", "prepares the weights of 8 tokens and cuts them to size; a longer text does not fit")
def at_most_eight_tokens(x):
    T = x.shape[1]
    ones = torch.tril(torch.ones(8, 8))
    weights = ones / ones.sum(dim=-1, keepdim=True)
    return weights[:T, :T] @ x


@wrong("02.1", "the weights are 64-bit floats, and a matmul with 32-bit tokens is refused")
def product_with_64_bit_weights(x):
    T = x.shape[1]
    tril = torch.tril(torch.ones(T, T, dtype=torch.float64))
    W = tril / tril.sum(dim=-1, keepdim=True)
    return torch.matmul(W, x)


@wrong("02.1", named="weights transposed")
def transposed_in_einsum(x):
    tril = torch.tril(torch.ones(x.shape[1], x.shape[1], dtype=x.dtype))
    weights = tril / tril.sum(dim=-1, keepdim=True)
    return torch.einsum("st,bsc->btc", weights, x)


@wrong("02.1", named="upper triangle")
def averaged_from_the_end(x):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]
    return (x.flip(1).cumsum(1) / counts).flip(1)


@wrong("02.1", named="diagonal left out")
def running_sums_less_the_token(x):
    earlier = x.cumsum(dim=1) - x
    return earlier / torch.arange(x.shape[1])[:, None]


@wrong("02.1", named="columns normalised")
def tokens_divided_by_their_readers(x):
    readers = torch.arange(x.shape[1], 0, -1)[:, None]
    return (x / readers).cumsum(dim=1)


@wrong("02.1", named="not normalised")
def rows_of_ones_and_zeros(x):
    T = x.shape[1]
    rows = torch.tensor([[1.0] * (t + 1) + [0.0] * (T - 1 - t) for t in range(T)])
    return rows @ x


@wrong("02.1", named="no triangle")
def same_weight_in_every_cell(x):
    T = x.shape[1]
    return torch.einsum("ts,bsc->btc", torch.full((T, T), 1 / T), x)


@wrong("02.1", named="divided by the sum of everything")
def divided_by_the_cells_of_the_triangle(x):
    T = x.shape[1]
    return x.cumsum(dim=1) / (T * (T + 1) / 2)


@wrong("02.1", named="* instead of @")
def mul_for_matmul(x):
    t = torch.arange(x.shape[1])
    weights = torch.where(t[:, None] < t, 0.0, 1 / (t[:, None] + 1))
    return torch.mul(weights, x)


@wrong("02.1", named="T taken from the channel axis")
def last_axis_taken_for_time(x):
    t = torch.arange(x.size(-1))
    weights = torch.where(t[:, None] < t, 0.0, 1 / (t[:, None] + 1))
    return torch.matmul(weights, x)


# ------------------------------------------------------- 02.2 a sliding window


@wrong("02.2", named="one token too long")
def window_one_too_wide(T, width):
    ones = torch.ones(T, T)
    window = torch.triu(torch.tril(ones), diagonal=-width)
    return window / window.sum(dim=-1, keepdim=True)


@wrong("02.2", named="divided by the width")
def always_divided_by_width(T, width):
    window = torch.tril(torch.ones(T, T)) - torch.tril(torch.ones(T, T), diagonal=-width)
    return window / width


@wrong("02.2", named="no keepdim")
def window_sums_divide_columns(T, width):
    window = torch.ones(T, T).tril().triu(1 - width)
    return window / window.sum(dim=-1)


@wrong("02.2", "lets each output use the first width tokens of the sequence, not the last")
def first_tokens_for_everyone(T, width):
    window = torch.tril(torch.ones(T, T))
    window[:, width:] = 0
    return window / window.sum(dim=-1, keepdim=True)


@wrong("02.2", named="future left in")
def future_not_cut_off(T, width):
    i = torch.arange(T).unsqueeze(1)
    j = torch.arange(T).unsqueeze(0)
    window = (j > i - width).float()
    return window / window.sum(dim=-1, keepdim=True)


@wrong("02.2", "counts the tokens of row t as t instead of t + 1, so row 0 divides by 0")
def row_zero_counts_no_token(T, width):
    weights = torch.zeros(T, T)
    for t in range(T):
        share = 1 / min(t, width)
        weights[t, max(0, t - width + 1) : t + 1] = share
    return weights


@wrong("02.2", named="first rows empty")
def only_full_windows(T, width):
    weights = torch.zeros(T, T)
    for t in range(width - 1, T):
        weights[t, t - width + 1 : t + 1] = 1 / width
    return weights


@wrong("02.2", named="start below 0 counted from the end")
def each_of_the_last_ones(T, width):
    rows = []
    for t in range(T):
        row = torch.zeros(T)
        row[[*range(t - width + 1, t + 1)]] = 1 / width
        rows.append(row)
    return torch.stack(rows)


@wrong("02.2", "divides by the sum of the whole matrix instead of each row's own sum")
def divided_by_the_grand_total(T, width):
    row = torch.arange(T)[:, None]
    col = torch.arange(T)[None, :]
    window = ((row - col >= 0) & (row - col < width)).float()
    return window / window.sum()


@wrong("02.2", "an integer matrix holds the weights, so 1/2 or 1/3 becomes 0")
def weights_in_an_integer_matrix(T, width):
    weights = torch.zeros((T, T), dtype=torch.long)
    for t in range(T):
        start = max(0, t + 1 - width)
        weights[t, start : t + 1] = 1 / (t + 1 - start)
    return weights


@wrong("02.2", "the slice begins below 0 in the first rows, so Python counts it from the end")
def slice_from_a_negative_start(T, width):
    weights = torch.zeros(T, T)
    for t in range(T):
        weights[t, t - width + 1 : t + 1] = 1
    return weights / weights.sum(dim=-1, keepdim=True)


@wrong("02.2", named="window on both sides")
def window_around_the_token(T, width):
    place = torch.arange(T)
    near = ((place[:, None] - place[None, :]).abs() < width).float()
    return near / near.sum(dim=-1, keepdim=True)


@wrong("02.2", "cuts the text into blocks of `width` tokens instead of sliding the window")
def blocks_of_width(T, width):
    block = torch.arange(T) // width
    same = torch.tril((block[:, None] == block[None, :]).float())
    return same / same.sum(dim=-1, keepdim=True)


@wrong("02.2", "centres the window on token t, so half of it lies in the future")
def centred_window(T, width):
    steps = torch.arange(T)
    near = ((steps[:, None] - steps[None, :]).abs() <= width // 2).float()
    return near / near.sum(dim=-1, keepdim=True)


@wrong("02.2", named="itself left out")
def window_before_the_token(T, width):
    weights = torch.zeros(T, T)
    for t in range(T):
        weights[t, max(t - width, 0) : t] = 1
    return weights / weights.sum(dim=1)[:, None]


@wrong("02.2", named="window of the future")
def window_begins_at_the_token(T, width):
    weights = torch.zeros(T, T)
    for t in range(T):
        seen = range(t, min(t + width, T))
        for s in seen:
            weights[t, s] = 1 / len(seen)
    return weights


@wrong("02.2", named="no window")
def width_not_used(T, width):
    return torch.tensor([[1 / (t + 1) if s <= t else 0.0 for s in range(T)] for t in range(T)])


@wrong("02.2", named="not normalised")
def ones_in_the_window(T, width):
    rows = [[float(s in range(t - width + 1, t + 1)) for s in range(T)] for t in range(T)]
    return torch.tensor(rows)


@wrong("02.2", named="columns normalised")
def divided_by_the_readers(T, width):
    weights = torch.zeros(T, T)
    for s in range(T):
        readers = range(s, min(s + width, T))
        for t in readers:
            weights[t, s] = 1 / len(readers)
    return weights


# ---------------------------------------------------------- 02.3 fading memory


@wrong("02.3", named="counted from the start")
def decays_from_the_start(T, decay):
    powers = torch.full((T, T), decay).cumprod(dim=1).tril()
    return powers / powers.sum(dim=-1, keepdim=True)


@wrong("02.3", named="sees the future")
def decay_in_both_directions(T, decay):
    position = torch.arange(T)
    distance = (position[:, None] - position[None, :]).abs()
    weights = decay**distance
    return weights / weights.sum(dim=-1, keepdim=True)


@wrong("02.3", named="cut after normalising")
def cut_after_dividing(T, decay):
    position = torch.arange(T)
    weights = decay ** (position[:, None] - position[None, :]).abs()
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights.tril()


@wrong("02.3", "takes decay for a rate, exp(-decay * k), instead of the factor of each step")
def decay_as_a_rate(T, decay):
    k = (torch.arange(T)[:, None] - torch.arange(T)[None, :]).float()
    weights = torch.exp(-decay * k).tril()
    return weights / weights.sum(dim=-1, keepdim=True)


@wrong("02.3", named="base and exponent exchanged")
def distance_to_the_power_of_decay(T, decay):
    i = torch.arange(T, dtype=torch.float)
    weights = (i[:, None] - i[None, :]).clamp(min=0) ** decay
    weights = torch.tril(weights)
    return weights / weights.sum(dim=-1, keepdim=True)


@wrong("02.3", "the exponent is the row number alone, not the distance: within a row all are equal")
def decay_by_row_number(T, decay):
    factor = decay ** torch.arange(T)[:, None]
    weights = torch.tril(factor * torch.ones(T, T))
    return weights / weights.sum(dim=-1, keepdim=True)


@wrong("02.3", "divides every row by the sum of the last row instead of its own")
def last_rows_sum_for_all(T, decay):
    weights = torch.zeros(T, T)
    for t in range(T):
        for s in range(t + 1):
            weights[t, s] = decay ** (t - s)
    return weights / weights[-1].sum()


@wrong("02.3", "multiplies by 1 - decay, as for an endless past, without dividing by row sums")
def moving_average_formula(T, decay):
    weights = torch.zeros(T, T)
    for t in range(T):
        for k in range(t + 1):
            weights[t, t - k] = (1 - decay) * decay**k
    return weights


@wrong("02.3", named="future counts fully")
def triangle_of_distances(T, decay):
    place = torch.arange(T)
    steps = torch.tril(place[:, None] - place)
    weights = decay**steps
    return weights / weights.sum(dim=-1, keepdim=True)


@wrong("02.3", "a moving average: the first token keeps all the weight that is left, decay**t")
def moving_average(T, decay):
    weights = torch.zeros(T, T)
    weights[0, 0] = 1
    for t in range(1, T):
        weights[t] = decay * weights[t - 1]
        weights[t, t] = 1 - decay
    return weights


@wrong("02.3", named="fades linearly")
def subtract_at_every_step(T, decay):
    place = torch.arange(T)
    steps = place[:, None] - place
    weights = torch.tril((1 - (1 - decay) * steps).clamp(min=0))
    return weights / weights.sum(dim=-1, keepdim=True)


@wrong("02.3", named="not normalised")
def row_before_times_decay(T, decay):
    weights = torch.eye(T)
    for t in range(1, T):
        weights[t, :t] = decay * weights[t - 1, :t]
    return weights


@wrong("02.3", named="columns normalised")
def columns_of_powers_divided(T, decay):
    columns = []
    for s in range(T):
        column = torch.tensor([0.0] * s + [decay**age for age in range(T - s)])
        columns.append(column / column.sum())
    return torch.stack(columns, dim=1)


@wrong("02.3", named="itself left out")
def no_weight_for_the_token_itself(T, decay):
    rows = []
    for t in range(T):
        row = torch.tensor([decay ** (t - s) if s < t else 0.0 for s in range(T)])
        rows.append(row / row.sum())
    return torch.stack(rows)


@wrong("02.3", named="multiplied instead of a power")
def steps_times_decay(T, decay):
    rows = []
    for t in range(T):
        row = torch.tensor([decay * max(t - s, 0) for s in range(T)])
        rows.append(row / row.sum())
    return torch.stack(rows)


@wrong("02.3", named="divided by the age")
def divisor_grows_at_each_step(T, decay):
    weights = torch.zeros(T, T)
    for s in range(T):
        divisor = 1
        for t in range(s, T):
            weights[t, s] = 1 / divisor
            divisor += 1 - decay
    return weights / weights.sum(dim=1)[:, None]


@wrong("02.3", named="no keepdim")
def columns_divided_by_row_sums(T, decay):
    weights = torch.zeros(T, T)
    sums = [sum(decay**age for age in range(t + 1)) for t in range(T)]
    for t in range(T):
        for s in range(t + 1):
            weights[t, s] = decay ** (t - s) / sums[s]
    return weights


@wrong("02.3", named="future not cut off")
def negative_powers_for_the_future(T, decay):
    rows = []
    for t in range(T):
        row = torch.tensor([float(decay) ** (t - s) for s in range(T)])
        rows.append(row / row.sum())
    return torch.stack(rows)
