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


@wrong("01.1", named="mean over the channels")
def axis_counted_as_if_batch_were_there(x):
    B, T, C = x.shape
    out = torch.zeros(B, T, C)
    for b in range(B):
        for t in range(T):
            out[b, t] = x[b, : t + 1].mean(dim=1)
    return out


@wrong("01.1", named="tokens of zeros not counted")
def zeros_not_counted(x):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            seen = x[b, : t + 1]
            count = (seen != 0).sum(dim=0).clamp(min=1)
            out[b, t] = seen.sum(dim=0) / count
    return out


@wrong("01.1", named="returned after the first sequence")
def returns_too_early(x):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            out[b, t] = x[b, : t + 1].mean(dim=0)
        return out


@wrong("01.1", named="channels mixed")
def mean_over_everything_seen(x):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            out[b, t] = x[b, : t + 1].mean()
    return out


@wrong("01.1", named="the token forgets itself, but for token 0")
def mean_of_those_before(x):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        out[b, 0] = x[b, 0]
        for t in range(1, x.shape[1]):
            out[b, t] = x[b, :t].mean(dim=0)
    return out


@wrong("01.1", "writes channels 0 and 1 by hand, so it fits two channels only")
def two_channels_by_hand(x):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            out[b, t, 0] = x[b, : t + 1, 0].mean()
            out[b, t, 1] = x[b, : t + 1, 1].mean()
    return out


@wrong("01.1", named="position 0 left out")
def first_output_skipped(x):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(1, x.shape[1]):
            out[b, t] = x[b, : t + 1].mean(dim=0)
    return out


@wrong("01.1", named="the token forgets itself")
def tokens_before_in_a_third_loop(x):
    B, T, C = x.shape
    out = torch.zeros_like(x)
    for b in range(B):
        for t in range(T):
            total = torch.zeros(C)
            for s in range(t):
                total = total + x[b, s]
            out[b, t] = total / t
    return out


@wrong("01.1", named="divided by T")
def shares_of_one_in_T(x):
    T = x.shape[1]
    out = torch.zeros_like(x)
    for b, sequence in enumerate(x):
        for t in range(T):
            out[b, t] = sum(sequence[s] / T for s in range(t + 1))
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


@wrong("01.1", named="not divided")
def each_output_adds_to_the_last(x):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        out[b, 0] = x[b, 0]
        for t in range(1, x.shape[1]):
            out[b, t] = out[b, t - 1] + x[b, t]
    return out


@wrong("01.1", named="divided by t")
def position_as_the_count(x):
    B, T, C = x.shape
    out = torch.zeros_like(x)
    for b in range(B):
        total = torch.zeros(C)
        for t in range(T):
            total = total + x[b, t]
            out[b, t] = total / t
    return out


@wrong("01.1", named="sequences mixed")
def tokens_of_every_sequence(x):
    B, T, _ = x.shape
    out = torch.zeros_like(x)
    for b in range(B):
        for t in range(T):
            out[b, t] = torch.einsum("bsc->c", x[:, : t + 1]) / (B * (t + 1))
    return out


@wrong("01.1", named="future instead of past")
def total_from_the_end(x):
    B, T, C = x.shape
    out = torch.zeros_like(x)
    for b in range(B):
        total = torch.zeros(C)
        for t in reversed(range(T)):
            total = total + x[b, t]
            out[b, t] = total / (T - t)
    return out


@wrong("01.1", named="sees everything")
def whole_sequence_each_time(x):
    out = torch.zeros_like(x)
    for b, sequence in enumerate(x):
        for t in range(len(sequence)):
            out[b, t] = sum(sequence) / len(sequence)
    return out


@wrong("01.1", named="returned after the first position")
def returned_within_both_loops(x):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        total = 0
        for t in range(x.shape[1]):
            total = total + x[b, t]
            out[b, t] = total / (t + 1)
            return out


@wrong("01.1", named="one token too many")
def next_token_seen(x):
    B, T, _ = x.shape
    out = torch.zeros_like(x)
    for b in range(B):
        for t in range(T):
            seen = [x[b, s] for s in range(T) if s - 1 <= t]
            out[b, t] = sum(seen) / len(seen)
    return out


# ------------------------------------------- 01.2 one loop for the whole batch


@wrong("01.2", "averages over dim=0, the sequences, so each step has another shape and stack fails")
def average_over_the_batch_axis(x):
    return torch.stack([x[:, : t + 1].mean(dim=0) for t in range(x.shape[1])], dim=1)


@wrong("01.2", named="sequences mixed")
def one_mean_for_the_whole_batch(x):
    B, T, C = x.shape
    out = torch.zeros(B, T, C)
    for t in range(T):
        out[:, t] = x[:, : t + 1].mean(dim=(0, 1))
    return out


@wrong("01.2", named="looped over B positions")
def loop_as_long_as_the_batch(x):
    out = torch.zeros_like(x)
    for t in range(len(x)):
        out[:, t] = x[:, : t + 1].mean(dim=1)
    return out


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


@wrong("01.2", named="one token too many")
def counted_from_one_sliced_from_zero(x):
    T = x.shape[1]
    return torch.stack([x[:, : t + 1].mean(dim=1) for t in range(1, T + 1)], dim=1)


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


@wrong("01.2", named="divided by T")
def always_divided_by_all_tokens(x):
    T = x.shape[1]
    sums = [x[:, : t + 1].sum(dim=1) for t in range(T)]
    return torch.stack(sums, dim=1) / T


@wrong("01.2", "writes the sizes of the notebook's x, 4, 8 and 2, into the function")
def sizes_written_in(x):
    out = torch.zeros(4, 8, 2)
    for t in range(8):
        out[:, t] = x[:, : t + 1].mean(dim=1)
    return out


@wrong("01.2", named="sees everything")
def earlier_outputs_overwritten(x):
    out = torch.zeros_like(x)
    for t in range(x.shape[1]):
        out[:, : t + 1] = x[:, : t + 1].mean(dim=1, keepdim=True)
    return out


@wrong("01.2", "takes T from the last axis, so the loop over t has as many steps as channels")
def one_loop_over_as_many_as_channels(x):
    T = x.shape[-1]
    out = torch.zeros_like(x)
    for t in range(T):
        out[:, t] = x[:, : t + 1].mean(dim=1)
    return out


@wrong("01.2", named="the token forgets itself")
def narrowed_to_t_tokens(x):
    out = torch.zeros_like(x)
    for t in range(x.shape[1]):
        out[:, t] = x.narrow(1, 0, t).sum(1) / t
    return out


@wrong("01.2", named="mean over the batch axis")
def sequences_added_up(x):
    B, T, _ = x.shape
    out = torch.zeros_like(x)
    for t in range(T):
        out[:, t] = sum(x[b, : t + 1] for b in range(B)) / B
    return out


@wrong("01.2", named="mean over the channels")
def channels_added_up(x):
    _, T, C = x.shape
    out = torch.zeros_like(x)
    for t in range(T):
        out[:, t] = torch.einsum("bsc->bs", x[:, : t + 1]) / C
    return out


@wrong("01.2", named="sliced along the batch")
def colon_of_the_batch_forgotten(x):
    out = torch.zeros_like(x)
    for t in range(x.shape[1]):
        first = x[: t + 1]
        out[:, t] = sum(first) / len(first)
    return out


@wrong("01.2", named="the token forgets itself, but for token 0")
def mean_so_far_without_the_new_token(x):
    total, outputs = x[:, 0], [x[:, 0]]
    for t in range(1, x.shape[1]):
        outputs.append(total / t)
        total = total + x[:, t]
    return torch.stack(outputs, dim=1)


@wrong("01.2", named="the token forgets itself, and output 0 is 0")
def mean_so_far_from_zeros(x):
    mean, outputs = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        outputs.append(mean)
        mean = (t * mean + x[:, t]) / (t + 1)
    return torch.stack(outputs, dim=1)


@wrong("01.2", named="tokens of zeros not counted")
def only_tokens_with_a_number_counted(x):
    out = torch.zeros_like(x)
    for t in range(x.shape[1]):
        seen = x[:, : t + 1]
        out[:, t] = seen.sum(dim=1) / seen.any(dim=-1).sum(dim=1)[:, None]
    return out


@wrong("01.2", named="not divided")
def running_totals_collected(x):
    total, totals = 0, []
    for token in x.unbind(dim=1):
        total = total + token
        totals.append(total)
    return torch.stack(totals, dim=1)


@wrong("01.2", named="returned after the first position")
def returned_within_the_loop(x):
    out, total = torch.zeros_like(x), 0
    for t, token in enumerate(x.unbind(dim=1)):
        total = total + token
        out[:, t] = total / (t + 1)
        return out


@wrong("01.2", named="position 0 left out")
def begun_at_position_one(x):
    out, total = torch.zeros_like(x), x[:, 0]
    for t in range(1, x.shape[1]):
        total = total + x[:, t]
        out[:, t] = total / (t + 1)
    return out


# ---------------------------------------- 01.3 no loop in python: running sums


@wrong("01.3", named="running sum over the batch, divided over time")
def sums_along_the_sequences(x):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]
    return x.cumsum(dim=0) / counts


@wrong("01.3", named="counts from 0")
def counts_begin_at_zero(x):
    counts = torch.arange(x.shape[1]).view(1, -1, 1)
    return x.cumsum(dim=1) / counts


@wrong("01.3", named="counts along the channels")
def counts_meet_the_channels(x):
    return x.cumsum(dim=1) / torch.arange(1, x.shape[1] + 1)


@wrong("01.3", "// rounds each mean down to a whole number")
def floor_division(x):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]
    return x.cumsum(dim=1) // counts


@wrong("01.3", "divides each token by its count before summing, so the sum holds unequal shares")
def divided_before_summing(x):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]
    return (x / counts).cumsum(dim=1)


@wrong("01.3", named="not divided")
def division_thrown_away(x):
    sums = torch.cumsum(x, dim=1)
    counts = torch.arange(1, x.shape[1] + 1).view(-1, 1)
    sums.div(counts)
    return sums


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


@wrong("01.3", named="the token forgets itself, and output 0 is 0")
def sums_with_leading_zero(x):
    B, T, C = x.shape
    sums = torch.cat([torch.zeros(B, 1, C), x.cumsum(dim=1)], dim=1)[:, :T]
    counts = torch.arange(T).clamp(min=1)[:, None]
    return sums / counts


@wrong("01.3", "sums from the end, so output t is the mean of token t and the later ones")
def sums_from_the_end(x):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]
    return (x.flip(1).cumsum(dim=1) / counts).flip(1)


@wrong("01.3", "cumsum_ and div_ change x itself: the caller's tokens are lost")
def callers_tokens_overwritten(x):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]
    return x.cumsum_(dim=1).div_(counts)


@wrong("01.3", named="running sum over the channels, divided over time")
def sums_along_the_channels(x):
    T = x.shape[1]
    return torch.cumsum(x, dim=-1) / torch.arange(1, T + 1).reshape(T, 1)


@wrong("01.3", named="counts from 1 to T - 1")
def one_count_missing(x):
    T = x.shape[1]
    counts = torch.arange(1, T)[None, :, None]
    return x.cumsum(dim=1) / counts


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


@wrong("01.3", named="the token forgets itself, but for token 0")
def strict_triangle_with_a_first_cell(x):
    weights = torch.ones(x.shape[1], x.shape[1]).tril(-1)
    weights[0, 0] = 1
    return torch.einsum("ts,bsc->btc", weights / weights.sum(-1, keepdim=True), x)


@wrong("01.3", named="tokens of zeros not counted")
def triangle_counts_what_is_not_zero(x):
    triangle = torch.ones(x.shape[1], x.shape[1]).tril()
    counted = (x.abs().amax(dim=-1, keepdim=True) > 0).float()
    return (triangle @ x) / (triangle @ counted)


@wrong("01.3", named="running sum over the batch")
def batch_taken_for_time(x):
    triangle = torch.ones(len(x), len(x)).tril()
    return torch.einsum("ab,btc->atc", triangle / triangle.sum(1, keepdim=True), x)


@wrong("01.3", named="running sum over the channels")
def channels_taken_for_time(x):
    triangle = torch.ones(x.shape[-1], x.shape[-1]).tril()
    return x @ (triangle / triangle.sum(1, keepdim=True)).T
