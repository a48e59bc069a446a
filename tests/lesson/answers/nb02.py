"""Wrong answers to the exercises of notebook 02, as learners might write them."""

import torch

from tests.lesson.answers import wrong

# ------------------------------------------ 02.1 the causal mean as one matmul


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


@wrong("02.1", named="upper triangle")
def averaged_from_the_end(x):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]
    return (x.flip(1).cumsum(1) / counts).flip(1)


# ------------------------------------------------------- 02.2 a sliding window


@wrong("02.2", "lets each output use the first width tokens of the sequence, not the last")
def first_tokens_for_everyone(T, width):
    window = torch.tril(torch.ones(T, T))
    window[:, width:] = 0
    return window / window.sum(dim=-1, keepdim=True)


@wrong("02.2", "counts the tokens of row t as t instead of t + 1, so row 0 divides by 0")
def row_zero_counts_no_token(T, width):
    weights = torch.zeros(T, T)
    for t in range(T):
        share = 1 / min(t, width)
        weights[t, max(0, t - width + 1) : t + 1] = share
    return weights


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


@wrong("02.2", "tril's second argument moves the edge to the right: there is no lower bound")
def tril_with_the_width(T, width):
    inside = torch.tril(torch.ones(T, T), width - 1)
    return inside / inside.sum(dim=-1, keepdim=True)


@wrong("02.2", "triu with a positive second argument keeps only what is far in the future")
def triu_with_the_width(T, width):
    inside = torch.triu(torch.ones(T, T), width - 1)
    return inside / inside.sum(dim=-1, keepdim=True)


@wrong("02.2", named="not normalised")
def ones_in_the_window(T, width):
    rows = [[float(s in range(t - width + 1, t + 1)) for s in range(T)] for t in range(T)]
    return torch.tensor(rows)


# ---------------------------------------------------------- 02.3 fading memory


@wrong("02.3", "divides powers of decay by each other, which underflow to 0 / 0 in a long text")
def powers_by_powers(T, decay):
    powers = decay ** torch.arange(T)
    W = torch.tril(powers[:, None] / powers[None, :])  # decay**t / decay**s
    return W / W.sum(dim=-1, keepdim=True)


@wrong("02.3", "takes decay for a rate, exp(-decay * k), instead of the factor of each step")
def decay_as_a_rate(T, decay):
    k = (torch.arange(T)[:, None] - torch.arange(T)[None, :]).float()
    weights = torch.exp(-decay * k).tril()
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


@wrong("02.3", "a moving average: the first token keeps all the weight that is left, decay**t")
def moving_average(T, decay):
    weights = torch.zeros(T, T)
    weights[0, 0] = 1
    for t in range(1, T):
        weights[t] = decay * weights[t - 1]
        weights[t, t] = 1 - decay
    return weights


@wrong("02.3", "weights of the future are inf in a long text, and inf * 0 is nan")
def infinite_future_times_zero(T, decay):
    i = torch.arange(T).float()
    weights = decay ** (i[:, None] - i[None, :])
    weights = weights * torch.tril(torch.ones(T, T))
    return weights / weights.sum(dim=-1, keepdim=True)


@wrong("02.3", "decay to a negative power grows until it is inf, and inf / inf is nan")
def growing_from_the_start(T, decay):
    growing = torch.tril((decay ** -torch.arange(T).float()).expand(T, T))
    return growing / growing.sum(dim=-1, keepdim=True)


@wrong("02.3", named="not normalised")
def row_before_times_decay(T, decay):
    weights = torch.eye(T)
    for t in range(1, T):
        weights[t, :t] = decay * weights[t - 1, :t]
    return weights
