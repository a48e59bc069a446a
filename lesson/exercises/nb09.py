"""The exercises of notebook 09: who may attend to whom."""

from itertools import pairwise

import torch
import torch.nn.functional as F

from feedback import messages
from feedback.grading import Exercise
from helpers.attention import causal_mask

# ---------------------------------------------------------------- 09.1


def batch_mask(real):
    """(B, T), True = no padding -> (B, T, T), True = may attend: causal, and no row is empty."""
    T = real.shape[1]
    mask = causal_mask(T) & real[:, None, :]  # (B, T, T)
    return mask | torch.eye(T, dtype=torch.bool)


def closed_for_all(real):
    columns = real.all(dim=0).expand(len(real), 1, -1)
    return (causal_mask(real.shape[1]) & columns) | torch.eye(real.shape[1]).bool()


def not_itself(real):
    eye = torch.eye(real.shape[1]).bool()
    return (causal_mask(real.shape[1]) & real[:, None, :] & ~eye) | (eye & ~real[:, None, :])


def opened_rows(real):
    mask = causal_mask(real.shape[1]) & real[:, None, :]
    return mask | ~mask.any(dim=-1, keepdim=True)


def opened_rows_of_padding(real):
    T = real.shape[1]
    mask = causal_mask(T) & real[:, None, :] & real[:, :, None]
    return mask | ~mask.any(dim=-1, keepdim=True)


def padding_at_the_end(real):
    T = real.shape[1]
    columns = torch.arange(T) < real.sum(dim=1)[:, None]
    return (causal_mask(T) & columns[:, None, :]) | torch.eye(T, dtype=torch.bool)


def _real():
    rows = [
        [[0, 0, 1, 1, 1], [0, 1, 1, 1, 1]],
        [[0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1]],
        [[1, 1, 0, 0], [0, 0, 0, 1]],
        [[0, 1, 0]],
    ]
    return [(torch.tensor(case).bool(),) for case in rows]


def _obeyed(mask, real):
    """What the page asks of a mask: rows of the text as they are, two properties of the others."""
    right, text = batch_mask(real), real[:, :, None]
    if not isinstance(mask, torch.Tensor):
        raise TypeError(messages.not_a_tensor(mask, right, several=False))
    if mask.shape != right.shape:
        raise ValueError(messages.wrong_shape(mask, right))
    if mask.dtype != torch.bool:
        more = " Return no numbers to add to the scores." if mask.min() < 0 else ""
        raise TypeError(messages.wrong_kind(mask, right) + more)
    past, empty = causal_mask(mask.shape[1]), ~mask.any(dim=-1, keepdim=True)
    broken = {
        "token {} may attend to token {}, which comes later.": mask & ~past,
        "token {} is text and may attend to token {}, which is padding.": mask & text & ~right,
        "token {} is text and may not attend to token {}, although it should.": ~mask
        & right
        & text,
        "token {} may attend to nothing: its row is empty.": empty & (right | True),
    }
    told = []
    for rule, wrong in broken.items():
        for b, i, j in wrong.nonzero()[:1].tolist():
            told.append(f"Where `real` is {real[b].int().tolist()}, {rule.format(i, j)}")
    return torch.cat([mask & text, (mask & ~past).any(-1, True), empty], -1), "\n".join(told)


BATCH_MASK = Exercise("09.1", batch_mask, _real, effect=_obeyed)


# ---------------------------------------------------------------- 09.2


def cross_attention(x, memory, real, W_q, W_k, W_v):
    """Tokens x (B, T_q, C) read memory (B, T_k, C) where real (B, T_k) is True -> (B, T_q, d_v)."""
    q, k, v = x @ W_q, memory @ W_k, memory @ W_v
    scores = q @ k.mT / W_q.shape[1] ** 0.5  # (B, T_q, T_k)
    scores = scores.masked_fill(~real[:, None, :], float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def _two_sequences():
    generator = torch.Generator().manual_seed(0)
    cases = []
    for lengths, T_q, C, d, d_v in [((3, 7), 4, 6, 5, 2), ((5, 2, 4), 6, 4, 3, 8)]:
        T_k = max(lengths)
        x, memory = (torch.randn(len(lengths), T, C, generator=generator) for T in (T_q, T_k))
        real = torch.arange(T_k) < torch.tensor(lengths)[:, None]
        weights = (torch.randn(C, n, generator=generator) for n in (d, d, d_v))
        cases.append((x, memory, real, *weights))
    return cases


def _scores(x, memory, real, W_q, W_k, *_):
    return (x @ W_q) @ (memory @ W_k).mT / W_q.shape[1] ** 0.5


def _masked(x, memory, real, W_q, W_k, W_v):
    scores = _scores(x, memory, real, W_q, W_k)
    return scores.masked_fill(~real[:, None, :], float("-inf"))


def _large_negative(x, memory, real, W_q, W_k, W_v):
    scores = (x @ W_q) @ (memory @ W_k).mT / W_q.shape[1] ** 0.5
    scores = scores.masked_fill(~real[:, None, :], -1e9)
    return torch.softmax(scores, dim=-1) @ (memory @ W_v)


def zeros_in_memory(x, memory, real, W_q, W_k, W_v):
    memory = memory * real[:, :, None]
    return torch.softmax(_scores(x, memory, real, W_q, W_k), dim=-1) @ (memory @ W_v)


def wrong_polarity(x, memory, real, W_q, W_k, W_v):
    q, k, v = x @ W_q, memory @ W_k, memory @ W_v
    return F.scaled_dot_product_attention(q, k, v, attn_mask=~real[:, None, :])


CROSS_ATTENTION = Exercise(
    "09.2",
    cross_attention,
    _two_sequences,
    axes={
        "x": "B T_q C",
        "memory": "B T_k C",
        "real": "B T_k",
        "W_q": "C d",
        "W_k": "C d",
        "W_v": "C d_v",
        "return": "B T_q d_v",
    },
    intermediates=(
        ("the scaled scores, before the mask and the softmax", _scores),
        ("the masked, scaled scores, before the softmax", _masked),
        (
            "the weights, not yet multiplied by the values",
            lambda *given: torch.softmax(_masked(*given), dim=-1),
        ),
    ),
    trained=True,
    accepted=(_large_negative,),
    optional=True,
)


# ---------------------------------------------------------------- 09.3


def prefix_change(f, x):
    """The largest change of an output of f when the tokens after it are cut off x (B, T, C)."""
    whole, changes = f(x), []
    for t in range(x.shape[1]):
        prefix = f(x[:, : t + 1])
        changes.append((prefix[:, t] - whole[:, t]).abs().max())
    return max(changes).item()


def _all_outputs_so_far(f, x):
    whole, T = f(x), x.shape[1]
    return max((f(x[:, :t]) - whole[:, :t]).abs().max().item() for t in range(1, T + 1))


def _distance(f, x):
    cuts = [f(x[:, : t + 1])[:, t] - f(x)[:, t] for t in range(x.shape[1])]
    return torch.stack(cuts).norm(dim=-1).max()


def _one_token_more(f, x):
    prefixes = [f(x[:, :n]) for n in range(1, x.shape[1] + 1)]
    return max((a[:, -1] - b[:, -2]).abs().max() for a, b in pairwise(prefixes))


def one_token_cut(f, x):
    return (f(x[:, :-1]) - f(x)[:, :-1]).abs().max().item()


def zeros_for_later(f, x):
    later, whole, changes = torch.arange(x.shape[1])[:, None], f(x), []
    for t in range(x.shape[1]):
        changes.append((f(x * (later <= t))[:, t] - whole[:, t]).abs().max())
    return max(changes).item()


def each_with_the_one_before(f, x):
    last = [f(x[:, : t + 1])[:, t] for t in range(x.shape[1])]
    return max((a - b).abs().max() for a, b in pairwise(last)).item()


def _mean_of_all(x):
    return x - x.mean(dim=1, keepdim=True)


def _counts_tokens(x):
    return x.cumsum(dim=1) / x.shape[1]


def _next_too(x):
    following = torch.cat([x[:, 1:], torch.zeros_like(x[:, :1])], dim=1)
    return x - (3.0 ** torch.arange(x.shape[1])[:, None] - 1) * following  # but for output 0


def _running_sum(x):
    return x.cumsum(dim=1)


def _functions():
    generator = torch.Generator().manual_seed(0)
    functions = (_mean_of_all, _counts_tokens, _next_too, _running_sum)
    sizes = ((2, 5, 3), (3, 4, 2), (2, 6, 4), (3, 7, 2))
    cases = []
    for f, size in zip(functions, sizes, strict=True):
        factors = torch.arange(1.0, 1 + size[0])[:, None, None]  # the last sequence is the largest
        cases.append((f, factors * torch.randn(size, generator=generator)))
    return cases


PREFIX_CHANGE = Exercise(
    "09.3",
    prefix_change,
    _functions,
    axes={"x": "B T C"},
    accepted=(_all_outputs_so_far,),
    intermediates=(
        ("the largest distance between two outputs, of all channels together", _distance),
        ("the largest change from one prefix to the next longer one", _one_token_more),
    ),
)


# ---------------------------------------------------------------- 09.4


def three_masks(T, n):
    """Three masks (T, T), True = may attend, of a number n: window, prefix, and sink."""
    i, j = torch.arange(T)[:, None], torch.arange(T)
    window = (j <= i) & (j > i - n)
    prefix = (j <= i) | (j < n)
    return window, prefix, window | (j == 0)


def _followed(masks, T, n):
    """The three masks side by side, and of each the first entry that its rule forbids."""
    masks, right, told = [*masks], three_masks(T, n), []
    if (got := [tuple(getattr(mask, "shape", ())) for mask in masks]) != 3 * [(T, T)]:
        raise ValueError(f"Return three masks ({T}, {T}): window, prefix, sink. Yours are {got}.")
    for name, mask, wanted in zip(("window", "prefix", "sink"), masks, right, strict=True):
        if mask.dtype != torch.bool:
            raise TypeError(f"Your {name}: {messages.wrong_kind(mask, wanted)}")
        for i, j in (mask != wanted).nonzero()[:1].tolist():
            may = "may, and should not," if mask[i, j] else "may not, and should,"
            told.append(f"T = {T}, n = {n}: in your {name}, query {i} {may} attend to key {j}.")
    return torch.cat(masks, dim=-1), "\n".join(told)


THREE_MASKS = Exercise("09.4", three_masks, lambda: [(5, 2), (7, 3), (4, 1)], effect=_followed)


EXERCISES = (BATCH_MASK, CROSS_ATTENTION, PREFIX_CHANGE, THREE_MASKS)
