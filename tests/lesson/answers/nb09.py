"""Wrong answers to the exercises of notebook 09, as learners might write them."""

import torch
import torch.nn.functional as F

from helpers.attention import causal_mask
from tests.lesson.answers import wrong

# --------------------------------------------------- 09.1 a mask for a batch


@wrong("09.1", named="True and False exchanged")
def for_multihead_attention(real):
    may = causal_mask(real.shape[1]) & real.unsqueeze(1)
    may.diagonal(dim1=1, dim2=2)[:] = True
    return torch.logical_not(may)


@wrong("09.1", "takes the lengths, as if all padding stood at the left")
def by_length(real):
    place, first = torch.arange(real.shape[1]), real.shape[1] - real.sum(dim=1)
    return ((place >= first[:, None])[:, None] | (place == place[:, None])).tril()


# --------------------------------------------------- 09.2 cross-attention


def roots(W_q):
    return W_q.shape[-1] ** -0.5


@wrong("09.2", named="causal mask added, from the first key")
def first_lined_up_with_first(x, memory, real, W_q, W_k, W_v):
    earlier = torch.arange(memory.shape[1]) <= torch.arange(x.shape[1])[:, None]
    scores = (x @ W_q) @ (memory @ W_k).mT * roots(W_q)
    e = scores.exp() * real[:, None] * earlier
    return e / e.sum(dim=-1, keepdim=True) @ (memory @ W_v)


@wrong("09.2", "reads the first sequence of memory with all sequences of x")
def one_memory_for_all(x, memory, real, W_q, W_k, W_v):
    scores = (x @ W_q) @ (memory[0] @ W_k).mT * roots(W_q)
    e = scores.exp() * real[0]
    return e / e.sum(dim=-1, keepdim=True) @ (memory[0] @ W_v)


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


@wrong("09.3", named="cut at the wrong end")
def suffixes(f, x):
    whole = f(x)
    return max((f(x[:, t:])[:, 0] - whole[:, t]).abs().amax().item() for t in range(x.shape[1]))


@wrong("09.3", "returns one change for each token")
def all_changes(f, x):
    return changes(f, x).abs().amax(dim=(1, 2))


@wrong("09.3", "says whether anything changes, instead of how much")
def yes_or_no(f, x):
    return changes(f, x).abs().max().item() > 1e-5


@wrong("09.3", "squares the changes")
def largest_square(f, x):
    return changes(f, x).square().max()


# --------------------------------------------------- 09.4 three masks


@wrong("09.4", named="queries of the prefix")
def rows_of_the_question(T, n):
    window = torch.ones(T, T, dtype=torch.bool).tril().triu(1 - n)
    prefix, sink = torch.ones(T, T, dtype=torch.bool).tril(), window.clone()
    prefix[:n], sink[:, 0] = True, True
    return window, prefix, sink
