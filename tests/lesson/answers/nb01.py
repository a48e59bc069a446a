"""Wrong answers to the exercises of notebook 01, as learners might write them."""

import torch
import torch.nn.functional as F

from tests.lesson.answers import wrong

# --------------------------------------------------------------- 01.1 the loop


@wrong("01.1", "the result has an integer dtype, so every mean loses its decimals")
def whole_numbers_only(x):
    out = torch.zeros(x.shape, dtype=torch.int64)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            out[b, t] = x[b, : t + 1].mean(dim=0)
    return out


@wrong("01.1", "writes channels 0 and 1 by hand, so it fits two channels only")
def two_channels_by_hand(x):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            out[b, t, 0] = x[b, : t + 1, 0].mean()
            out[b, t, 1] = x[b, : t + 1, 1].mean()
    return out


@wrong("01.1", named="the token forgets itself, and output 0 is 0")
def total_added_too_late(x):
    B, T, C = x.shape
    out = torch.zeros_like(x)
    for b in range(B):
        total = torch.zeros(C)
        for t in range(T):
            out[b, t] = total / max(t, 1)
            total = total + x[b, t]
    return out


# ------------------------------------------- 01.2 one loop for the whole batch


@wrong("01.2", "averages over dim=0, the sequences, so each step has another shape and stack fails")
def average_over_the_batch_axis(x):
    return torch.stack([x[:, : t + 1].mean(dim=0) for t in range(x.shape[1])], dim=1)


@wrong("01.2", "keepdim and stack both make an axis for the positions, so the result has four axes")
def one_axis_too_many(x):
    means = [x[:, : t + 1].mean(dim=1, keepdim=True) for t in range(x.shape[1])]
    return torch.stack(means, dim=1)


@wrong("01.2", "without brackets, / t + 1 divides by t and then adds 1")
def brackets_forgotten(x):
    out = torch.zeros_like(x)
    for t in range(x.shape[1]):
        out[:, t] = x[:, : t + 1].sum(dim=1) / t + 1
    return out


@wrong("01.2", "the loop makes one step too many, so the last mean is there twice: (B, T + 1, C)")
def one_step_too_many(x):
    T = x.shape[1]
    means = []
    for t in range(T + 1):
        means.append(x[:, : t + 1].mean(dim=1))
    return torch.stack(means, dim=1)


@wrong("01.2", "has the 8 tokens of the notebook's x fixed in the loop")
def eight_tokens_always(x):
    means = []
    for t in range(8):
        means.append(x[:, : t + 1].mean(dim=1))
    return torch.stack(means, dim=1)


@wrong("01.2", "range(1, T) leaves out the last mean, so there are only T - 1 outputs")
def last_mean_missing(x):
    T = x.shape[1]
    return torch.stack([x[:, :t].mean(dim=1) for t in range(1, T)], dim=1)


@wrong("01.2", "writes the sizes of the notebook's x, 4, 8 and 2, into the function")
def sizes_written_in(x):
    out = torch.zeros(4, 8, 2)
    for t in range(8):
        out[:, t] = x[:, : t + 1].mean(dim=1)
    return out


@wrong("01.2", "takes T from the last axis, so the loop over t has as many steps as channels")
def one_loop_over_as_many_as_channels(x):
    T = x.shape[-1]
    out = torch.zeros_like(x)
    for t in range(T):
        out[:, t] = x[:, : t + 1].mean(dim=1)
    return out


@wrong("01.2", named="the token forgets itself, and output 0 is 0")
def mean_so_far_from_zeros(x):
    mean, outputs = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        outputs.append(mean)
        mean = (t * mean + x[:, t]) / (t + 1)
    return torch.stack(outputs, dim=1)


# ---------------------------------------- 01.3 no loop in python: running sums


@wrong("01.3", "// rounds each mean down to a whole number")
def floor_division(x):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]
    return x.cumsum(dim=1) // counts


@wrong("01.3", "divides each token by its count before summing, so the sum holds unequal shares")
def divided_before_summing(x):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]
    return (x / counts).cumsum(dim=1)


@wrong("01.3", "counts channels, not tokens: channel c of every sum is divided by c + 1")
def counts_of_channels(x):
    counts = torch.arange(1, x.shape[-1] + 1)
    return x.cumsum(dim=1) / counts


@wrong("01.3", "also sums up the counts 1 2 3 …, so it divides by 1 3 6 …")
def counts_summed_too(x):
    counts = torch.arange(1, x.shape[1] + 1).float().cumsum(dim=0)
    return x.cumsum(dim=1) / counts[None, :, None]


@wrong("01.3", named="divided by T")
def pooled_with_padding(x):
    T = x.shape[1]
    padded = F.pad(x.transpose(1, 2), (T - 1, 0))
    return F.avg_pool1d(padded, kernel_size=T, stride=1).transpose(1, 2)


@wrong("01.3", "sums from the end, so output t is the mean of token t and the later ones")
def sums_from_the_end(x):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]
    return (x.flip(1).cumsum(dim=1) / counts).flip(1)


@wrong("01.3", "cumsum_ and div_ change x itself: the caller's tokens are lost")
def callers_tokens_overwritten(x):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]
    return x.cumsum_(dim=1).div_(counts)


@wrong("01.3", "counts from 1 to 5, as in the notebook's example, whatever the number of tokens")
def counts_of_the_example(x):
    return x.cumsum(dim=1) / torch.arange(1, 6)[:, None]


@wrong("01.3", "counts the sequences, not the tokens: divides all of sequence b by b + 1")
def counts_of_sequences(x):
    counts = torch.arange(1, x.shape[0] + 1)[:, None, None]
    return x.cumsum(dim=1) / counts


@wrong("01.3", "computes the sums through logarithms, which negative numbers do not have")
def running_means_in_log_space(x):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]
    return torch.exp(torch.logcumsumexp(torch.log(x), dim=1) - torch.log(counts))


@wrong(
    "01.3", "counts from 0 and changes the 0 to 1, so from position 1 on one token is not counted"
)
def counts_one_too_low(x):
    counts = torch.arange(x.shape[1]).clamp(min=1)[:, None]
    return x.cumsum(dim=1) / counts


@wrong("01.3", "sums exponentials and takes the logarithm (log-mean-exp) instead of the plain mean")
def log_mean_exp(x):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]
    return x.logcumsumexp(dim=1) - counts.log()
