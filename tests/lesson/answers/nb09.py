"""Wrong answers to the exercises of notebook 09, as learners might write them."""

import math

import torch
import torch.nn.functional as F

from helpers.attention import causal_mask
from tests.lesson.answers import wrong


def triangle(real):
    """(B, T, T): True where the key is not later than the query."""
    T = real.shape[1]
    place = torch.arange(T)
    return (place <= place[:, None]).expand(len(real), T, T)


def diagonal(real):
    T = real.shape[1]
    return torch.diag(torch.ones(T)).bool().expand(len(real), T, T)


# --------------------------------------------------- 09.1 a mask for a batch


@wrong("09.1", named="padding on the rows")
def rows_closed(real):
    return triangle(real) * real.unsqueeze(2) + diagonal(real)


@wrong("09.1", named="empty rows opened to everything, padding on the rows, too")
def empty_rows_filled_with_true(real):
    m = triangle(real).bool() & real[:, None] & real[:, :, None]
    m[~m.any(-1)] = True
    return m


@wrong("09.1", named="padding on rows and columns, and rows left empty")
def pairs_of_real_tokens(real):
    pairs = real.float()[:, :, None] @ real.float()[:, None, :]
    return triangle(real) & pairs.bool()


@wrong("09.1", named="empty rows at the left")
def no_diagonal(real):
    return torch.stack([causal_mask(len(row)) & row for row in real])


@wrong("09.1", named="| for &")
def one_rule_is_enough(real):
    return torch.logical_or(triangle(real), real.unsqueeze(1))


@wrong("09.1", named="True and False exchanged")
def for_multihead_attention(real):
    may = triangle(real) & real.unsqueeze(1)
    may[:, torch.arange(real.shape[1]), torch.arange(real.shape[1])] = True
    return torch.logical_not(may)


@wrong("09.1", named="padding read, text not")
def real_taken_for_padding(real):
    padding = real
    return triangle(real).masked_fill(padding[:, None], False) | diagonal(real)


@wrong("09.1", named="causal rule forgotten")
def columns_only(real):
    return real.unsqueeze(1).repeat(1, real.shape[1], 1) | diagonal(real)


@wrong("09.1", named="future for past")
def upper_triangle(real):
    later = torch.ones(real.shape[1], real.shape[1]).triu().bool()
    return (later & real.unsqueeze(1)) | diagonal(real)


@wrong("09.1", named="real without an axis for the queries")
def axes_that_do_not_fit(real):
    T = real.shape[1]
    return (torch.tril(torch.ones(T, T)).bool() & real) | torch.eye(T).bool()


@wrong("09.1", named="real with its axis in front")
def sequences_for_queries(real):
    return torch.ones(real.shape[1], real.shape[1]).tril().bool() & real.unsqueeze(0)


@wrong("09.1", named="& for the diagonal")
def nothing_but_itself(real):
    return triangle(real) & real.unsqueeze(1) & diagonal(real)


@wrong("09.1", named="diagonal of floats")
def eye_as_it_comes(real):
    may = torch.ones(real.shape[1], real.shape[1]).tril().bool() & real[:, None]
    return may | torch.eye(real.shape[1])


@wrong("09.1", named="empty rows opened to everything")
def empty_rows_filled(real):
    may = triangle(real) & real.unsqueeze(1)
    return torch.where(may.any(dim=2, keepdim=True), may, True)


@wrong("09.1", named="numbers to add to the scores")
def zeros_and_infinities(real):
    may = (triangle(real) & real.unsqueeze(1)) | diagonal(real)
    return torch.where(may, 0.0, -torch.inf)


@wrong("09.1", named="real tokens that may not read themselves")
def strictly_before(real):
    before = torch.ones(real.shape[1], real.shape[1]).tril(-1).bool()
    return (before & real.unsqueeze(1)) | (diagonal(real) & ~real.unsqueeze(1))


@wrong("09.1", named="one sequence closes columns for all")
def closed_for_all(real):
    common = real.all(dim=0).expand_as(real)
    return (triangle(real) & common[:, None]) | diagonal(real)


@wrong("09.1", "returns the causal mask only")
def only_causal(real):
    return causal_mask(real.shape[1])


# --------------------------------------------------- 09.2 cross-attention


def averaged(scores, real, v):
    """Values averaged by a softmax of those scores whose keys are real, from its definition."""
    e = scores.exp() * real[:, None]
    return e / e.sum(dim=-1, keepdim=True) @ v


def roots(W_q):
    return W_q.shape[-1] ** -0.5


@wrong("09.2", named="T_q where T_k belongs")
def compared_with_itself(x, memory, real, W_q, W_k, W_v):
    scores = torch.matmul(x @ W_q, (x @ W_k).mT) * roots(W_q)
    weights = F.softmax(scores.masked_fill(~real.unsqueeze(1), -torch.inf), dim=2)
    return weights @ (memory @ W_v)


@wrong("09.2", named="values from x")
def passes_on_its_own(x, memory, real, W_q, W_k, W_v):
    scores = (x @ W_q) @ (memory @ W_k).mT * roots(W_q)
    weights = F.softmax(scores.masked_fill(~real.unsqueeze(1), -torch.inf), dim=2)
    return torch.matmul(weights, x @ W_v)


@wrong("09.2", named="self-attention of x, without a mask")
def attention_without_memory(x, memory, real, W_q, W_k, W_v):
    return F.scaled_dot_product_attention(x @ W_q, x @ W_k, x @ W_v)


@wrong("09.2", named="self-attention of memory")
def memory_reads_itself(x, memory, real, W_q, W_k, W_v):
    scores = (memory @ W_q) @ (memory @ W_k).mT * roots(W_q)
    return averaged(scores, real, memory @ W_v)


@wrong("09.2", named="roles exchanged")
def memory_reads_x(x, memory, real, W_q, W_k, W_v):
    return F.scaled_dot_product_attention(memory @ W_q, x @ W_k, x @ W_v)


@wrong("09.2", named="padding read")
def everything_read(x, memory, real, W_q, W_k, W_v):
    return F.scaled_dot_product_attention(x @ W_q, memory @ W_k, memory @ W_v)


@wrong("09.2", named="padding read, text not")
def mask_the_wrong_way_round(x, memory, real, W_q, W_k, W_v):
    scores = (x @ W_q) @ (memory @ W_k).mT * roots(W_q)
    return averaged(scores, ~real, memory @ W_v)


@wrong("09.2", named="padding on the rows")
def mask_of_queries(x, memory, real, W_q, W_k, W_v):
    scores = (x @ W_q) @ (memory @ W_k).mT * roots(W_q)
    weights = F.softmax(scores.masked_fill(~real.unsqueeze(-1), -torch.inf), dim=-1)
    return weights @ (memory @ W_v)


@wrong("09.2", named="real without an axis for the queries")
def mask_of_two_axes(x, memory, real, W_q, W_k, W_v):
    scores = (x @ W_q) @ (memory @ W_k).mT * roots(W_q)
    return F.softmax(scores.masked_fill(real.logical_not(), -torch.inf), dim=-1) @ (memory @ W_v)


@wrong("09.2", named="padding filled with 0")
def scores_of_padding_are_zero(x, memory, real, W_q, W_k, W_v):
    scores = (x @ W_q) @ (memory @ W_k).mT * roots(W_q)
    return F.softmax(scores * real[:, None], dim=-1) @ (memory @ W_v)


@wrong("09.2", named="masked after the softmax")
def weights_of_padding_removed(x, memory, real, W_q, W_k, W_v):
    scores = (x @ W_q) @ (memory @ W_k).mT * roots(W_q)
    weights = F.softmax(scores, dim=-1)
    return weights @ (memory @ W_v * real[..., None])


@wrong("09.2", named="causal mask added")
def last_lined_up_with_last(x, memory, real, W_q, W_k, W_v):
    T_q, T_k = x.shape[1], memory.shape[1]
    earlier = torch.arange(T_k) - T_k <= torch.arange(T_q)[:, None] - T_q
    scores = (x @ W_q) @ (memory @ W_k).mT * roots(W_q)
    e = scores.exp() * real[:, None] * earlier
    return e / e.sum(dim=-1, keepdim=True) @ (memory @ W_v)


@wrong("09.2", named="causal mask added, from the first key")
def first_lined_up_with_first(x, memory, real, W_q, W_k, W_v):
    earlier = torch.arange(memory.shape[1]) <= torch.arange(x.shape[1])[:, None]
    scores = (x @ W_q) @ (memory @ W_k).mT * roots(W_q)
    e = scores.exp() * real[:, None] * earlier
    return e / e.sum(dim=-1, keepdim=True) @ (memory @ W_v)


@wrong("09.2", named="softmax over the queries")
def keys_shared_out(x, memory, real, W_q, W_k, W_v):
    scores = (x @ W_q) @ (memory @ W_k).mT * roots(W_q)
    scores = scores.masked_fill(~real[:, None], -torch.inf)
    return F.softmax(scores, dim=-2) @ (memory @ W_v)


@wrong("09.2", named="not divided")
def raw_scores(x, memory, real, W_q, W_k, W_v):
    return averaged((x @ W_q) @ (memory @ W_k).mT, real, memory @ W_v)


@wrong("09.2", named="divided by √C")
def root_of_the_channels(x, memory, real, W_q, W_k, W_v):
    scores = (x @ W_q) @ (memory @ W_k).mT / x.shape[-1] ** 0.5
    return averaged(scores, real, memory @ W_v)


@wrong("09.2", named="divided by d")
def no_root(x, memory, real, W_q, W_k, W_v):
    q = x @ W_q
    return averaged(q @ (memory @ W_k).mT / q.shape[-1], real, memory @ W_v)


@wrong("09.2", named="W_q and W_k exchanged")
def matrices_exchanged(x, memory, real, W_q, W_k, W_v):
    scores = (x @ W_k) @ (memory @ W_q).mT * roots(W_q)
    return averaged(scores, real, memory @ W_v)


@wrong("09.2", named="W_k for the values")
def keys_passed_on(x, memory, real, W_q, W_k, W_v):
    k = memory @ W_k
    return averaged((x @ W_q) @ k.mT * roots(W_q), real, k)


@wrong("09.2", named="no softmax")
def scores_for_weights(x, memory, real, W_q, W_k, W_v):
    scores = (x @ W_q) @ (memory @ W_k).mT * roots(W_q) * real[:, None]
    return scores @ (memory @ W_v)


@wrong("09.2", "reads the first sequence of memory with all sequences of x")
def one_memory_for_all(x, memory, real, W_q, W_k, W_v):
    scores = (x @ W_q) @ (memory[0] @ W_k).mT * roots(W_q)
    return averaged(scores, real[:1].expand(len(x), -1), memory[0] @ W_v)


@wrong("09.2", "returns the weights")
def weights_only(x, memory, real, W_q, W_k, W_v):
    scores = (x @ W_q) @ (memory @ W_k).mT * roots(W_q)
    return F.softmax(scores.masked_fill(~real[:, None], -torch.inf), dim=-1)


@wrong("09.2", "cuts the padding off by the length of the first sequence")
def cut_to_one_length(x, memory, real, W_q, W_k, W_v):
    n = int(real[0].sum())
    q, k, v = x @ W_q, memory[:, :n] @ W_k, memory[:, :n] @ W_v
    return F.scaled_dot_product_attention(q, k, v)


# --------------------------------------------------- 09.3 the prefix test


def changes(f, x):
    """(T, B, C): how output t changes when the tokens after t are cut off."""
    whole = f(x)
    return torch.stack([f(x[:, :n])[:, -1] - whole[:, n - 1] for n in range(1, x.shape[1] + 1)])


@wrong("09.3", named="nothing is compared but the last token")
def outputs_cut(f, x):
    whole, largest = f(x), 0.0
    for t in range(x.shape[1]):
        prefix = f(x)[:, : t + 1]
        largest = max(largest, (prefix[:, t] - whole[:, t]).abs().max().item())
    return largest


@wrong("09.3", named="only the last token cut off")
def shorter_by_one(f, x):
    whole, T = f(x), x.shape[1]
    return torch.max(torch.abs(f(x[:, : T - 1]) - whole[:, : T - 1]))


@wrong("09.3", named="the first token only")
def first_token_alone(f, x):
    return (f(x[:, :1]) - f(x)[:, :1]).abs().max()


@wrong("09.3", named="one token too many")
def one_more(f, x):
    whole, T = f(x), x.shape[1]
    return torch.stack([(f(x[:, : t + 2]) - whole[:, : t + 2])[:, t] for t in range(T)]).abs().max()


@wrong("09.3", named="one token too few")
def slice_that_ends_before(f, x):
    whole = f(x)
    found = [f(x[:, 0:t])[:, t] - whole[:, t] for t in range(x.shape[1])]
    return torch.stack(found).abs().max()


@wrong("09.3", named="one token too few, and its last output")
def compared_with_the_next(f, x):
    whole = f(x)
    found = [f(x[:, :t])[:, -1] - whole[:, t] for t in range(1, x.shape[1])]
    return torch.stack(found).abs().max()


@wrong("09.3", named="the prefix compared with the last output")
def with_the_end(f, x):
    last = f(x)[:, -1]
    return torch.stack([f(x[:, : t + 1])[:, -1] - last for t in range(x.shape[1])]).abs().max()


@wrong("09.3", named="the first output each time")
def output_of_the_first(f, x):
    first = f(x)[:, 0]
    return torch.stack([f(x[:, : t + 1])[:, 0] - first for t in range(x.shape[1])]).abs().max()


@wrong("09.3", named="cut at the wrong end")
def suffixes(f, x):
    whole = f(x)
    return max((f(x[:, t:])[:, 0] - whole[:, t]).abs().amax().item() for t in range(x.shape[1]))


@wrong("09.3", named="the batch cut")
def sequences_cut(f, x):
    whole, largest = f(x), torch.tensor(0.0)
    for t in range(x.shape[1]):
        largest = torch.maximum(largest, (f(x[: t + 1])[:, t] - whole[:, t]).abs().max())
    return largest


@wrong("09.3", named="mean instead of maximum")
def mean_of_a_token(f, x):
    return changes(f, x).abs().mean(dim=(1, 2)).max().item()


@wrong("09.3", named="mean over the prefixes")
def mean_of_the_largest(f, x):
    return changes(f, x).abs().amax(dim=(1, 2)).mean().item()


@wrong("09.3", named="summed over the prefixes")
def sum_of_the_largest(f, x):
    return changes(f, x).abs().amax(dim=(1, 2)).sum().item()


@wrong("09.3", named="mean of everything")
def mean_of_all(f, x):
    return changes(f, x).abs().mean()


@wrong("09.3", named="signs kept")
def largest_rise(f, x):
    return changes(f, x).max().item()


@wrong("09.3", named="the first sequence only")
def sequence_zero(f, x):
    return changes(f, x[:1]).abs().max()


@wrong("09.3", named="later tokens set to 0")
def zeroed(f, x):
    found = []
    for t in range(x.shape[1]):
        shorter = x.clone()
        shorter[:, t + 1 :] = 0
        found.append((f(shorter) - f(x))[:, t].abs().max())
    return torch.stack(found).max()


@wrong("09.3", "returns one change for each token")
def all_changes(f, x):
    return changes(f, x).abs().amax(dim=(1, 2))


@wrong("09.3", "says whether anything changes, instead of how much")
def yes_or_no(f, x):
    return changes(f, x).abs().max().item() > 1e-5


@wrong("09.3", "squares the changes")
def largest_square(f, x):
    return changes(f, x).square().max()


@wrong("09.1", named="padding on the rows, and rows left empty")
def who_reads_is_closed(real):
    T = real.shape[1]
    return torch.ones(T, T).tril().bool() & real.unsqueeze(-1)


@wrong("09.1", named="padding taken to stand at the end")
def by_length(real):
    T, lengths = real.shape[1], real.sum(1)
    keys = torch.arange(T)[None] < lengths[:, None]
    return (torch.ones(T, T).tril().bool() & keys.unsqueeze(1)) | torch.eye(T).bool()


@wrong("09.2", named="divided by √d_v")
def root_of_the_values(x, memory, real, W_q, W_k, W_v):
    q, k, v = x @ W_q, memory @ W_k, memory @ W_v
    scores = q @ k.mT / math.sqrt(v.shape[-1])
    return scores.masked_fill(~real[:, None], -math.inf).softmax(-1) @ v


@wrong("09.2", named="divided by √T_k")
def root_of_the_keys(x, memory, real, W_q, W_k, W_v):
    q, k, v = x @ W_q, memory @ W_k, memory @ W_v
    scores = q @ k.mT / math.sqrt(k.shape[1])
    return scores.masked_fill(~real[:, None], -math.inf).softmax(-1) @ v


@wrong("09.2", named="divided after the softmax")
def weights_divided(x, memory, real, W_q, W_k, W_v):
    q, k, v = x @ W_q, memory @ W_k, memory @ W_v
    weights = (q @ k.mT).masked_fill(~real[:, None], -math.inf).softmax(-1)
    return weights / math.sqrt(q.shape[-1]) @ v


@wrong("09.2", named="padding set to 0 in memory")
def emptied_memory(x, memory, real, W_q, W_k, W_v):
    memory = memory.masked_fill(~real[..., None], 0)
    q, k, v = x @ W_q, memory @ W_k, memory @ W_v
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v


@wrong("09.2", named="mask not low enough")
def minus_one(x, memory, real, W_q, W_k, W_v):
    q, k, v = x @ W_q, memory @ W_k, memory @ W_v
    scores = torch.where(real[:, None], q @ k.mT / math.sqrt(q.shape[-1]), -1.0)
    return scores.softmax(-1) @ v


@wrong("09.2", named="mask the wrong way round for PyTorch's function")
def true_as_in_multihead_attention(x, memory, real, W_q, W_k, W_v):
    closed = (real == 0)[:, None].expand(-1, x.shape[1], -1)
    return F.scaled_dot_product_attention(x @ W_q, memory @ W_k, memory @ W_v, attn_mask=closed)


@wrong("09.3", named="the first output of the prefix")
def first_of_the_prefix(f, x):
    full = f(x)
    return max((f(x[:, : t + 1])[:, 0] - full[:, t]).abs().max() for t in range(x.shape[1]))


@wrong("09.3", named="token t alone")
def one_token(f, x):
    full = f(x)
    return max((f(x[:, [t]])[:, -1] - full[:, t]).abs().max() for t in range(x.shape[1]))


@wrong("09.3", named="t = 0 left out")
def from_one(f, x):
    full, T = f(x), x.shape[1]
    return max((f(x[:, :n])[:, -1] - full[:, n - 1]).abs().max() for n in range(2, T + 1))


@wrong("09.3", named="the last but one left out")
def ends_too_early(f, x):
    full, largest = f(x), torch.tensor(0.0)
    for n in range(1, x.shape[1] - 1):
        largest = torch.maximum(largest, (f(x[:, :n])[:, -1] - full[:, n - 1]).abs().max())
    return largest


@wrong("09.3", named="compared with the tokens")
def against_the_tokens(f, x):
    return max((f(x[:, : t + 1])[:, -1] - x[:, t]).abs().max() for t in range(x.shape[1]))


@wrong("09.3", named="compared with the prefix before")
def against_the_prefix_before(f, x):
    before, largest = f(x[:, :1])[:, -1], 0.0
    for t in range(1, x.shape[1]):
        now = f(x[:, : t + 1])[:, -1]
        largest, before = max(largest, (now - before).abs().max().item()), now
    return largest
