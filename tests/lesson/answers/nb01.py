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
