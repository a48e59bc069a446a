"""Right answers in many ways of writing, which `check` has to accept: pairs of an id and one.

Those of `FRAGILE` come with words of the note that they get: they fail for what no task names.
"""

import copy
import math
from collections import Counter, defaultdict

import numpy as np
import torch
import torch.nn.functional as F

from helpers.attention import attention, causal_mask
from helpers.positions import rotary

RIGHT, FRAGILE = [], []


def right(exercise, note=""):
    def keep(function):
        if note:
            FRAGILE.append((exercise, function, note))
        else:
            RIGHT.append((exercise, function))
        return function

    return keep


@right("00.2")
def by_unsqueeze(a):
    return a / a.sum(-1).unsqueeze(-1)


@right("00.2")
def by_normalize(a):
    return F.normalize(a.float(), p=1, dim=-1)


@right("00.2")
def by_two_transposes(a):
    return (a.transpose(-1, -2) / a.sum(-1).unsqueeze(-2)).transpose(-1, -2)


@right("00.2")
def by_einsum(a):
    return torch.einsum("...rs,...r->...rs", a.float(), 1 / a.sum(dim=-1))


@right("01.1")
def with_totals(x):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        total = torch.zeros(x.shape[2])
        for t in range(x.shape[1]):
            total += x[b, t]
            out[b, t] = total / (t + 1)
    return out


@right("01.1")
def with_lists(x):
    rows = [[s[: t + 1].mean(0) for t in range(len(s))] for s in x]
    return torch.stack([torch.stack(row) for row in rows])


@right("01.1")
def vectorised_anyway(x):
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1).reshape(1, -1, 1)


@right("01.3")
def by_arange_float(x):
    T = x.shape[1]
    return torch.cumsum(x, dim=-2) / torch.arange(1.0, T + 1).view(T, 1)


@right("01.3")
def by_ones(x):
    return x.cumsum(1) / torch.ones_like(x).cumsum(1)


@right("02.1")
def by_arange_division(x):
    T = x.shape[1]
    W = torch.ones(T, T).tril() / torch.arange(1, T + 1).unsqueeze(1)
    return torch.matmul(W, x)


@right("02.1")
def by_einsum_weights(x):
    T = x.shape[-2]
    W = torch.tril(torch.ones(T, T))
    return torch.einsum("ts,bsc->btc", W / W.sum(1, keepdim=True), x)


@right("02.1")
def by_softmax_of_zeros(x):
    T = x.shape[1]
    scores = torch.zeros(T, T).masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf)
    return scores.softmax(-1) @ x


@right("02.2")
def by_tril_and_triu(T, width):
    ones = torch.ones(T, T)
    window = torch.tril(ones) * torch.triu(ones, -(width - 1))
    return window / window.sum(-1, keepdim=True)


@right("02.2")
def by_two_loops(T, width):
    W = torch.zeros((T, T))
    for t in range(T):
        for s in range(T):
            if t - width < s <= t:
                W[t, s] = 1 / min(t + 1, width)
    return W


@right("02.3")
def by_loops(T, decay):
    W = torch.zeros(T, T)
    for t in range(T):
        for s in range(t + 1):
            W[t, s] = decay ** (t - s)
    return W / W.sum(dim=1, keepdim=True)


@right("02.3")
def by_the_sum_of_a_series(T, decay):
    t = torch.arange(T)[:, None]
    k = (t - torch.arange(T)).clamp(min=0)
    return torch.tril(decay**k * (1 - decay) / (1 - decay ** (t + 1)))


@right("02.3")
def by_where(T, decay):
    k = torch.arange(T)[:, None] - torch.arange(T)[None, :]
    raw = torch.where(k >= 0, float(decay) ** k.clamp(min=0), 0.0)
    return raw / raw.sum(-1, keepdim=True)


@right("03.1")
def with_triu(scores):
    T = scores.size(-1)
    future = torch.triu(torch.ones(T, T), diagonal=1).bool()
    return F.softmax(scores.masked_fill(future, -math.inf), dim=-1)


@right("03.1")
def with_added_mask(scores):
    T = scores.shape[-1]
    mask = torch.full((T, T), float("-inf")).triu(1)
    return torch.softmax(scores + mask, dim=-1)


@right("03.1")
def with_where(scores):
    allowed = torch.ones_like(scores).tril() == 1
    return torch.where(allowed, scores, torch.tensor(float("-inf"))).softmax(2)


@right("03.1")
def in_a_loop(scores):
    out = torch.zeros_like(scores)
    for b in range(len(scores)):
        for t in range(scores.shape[1]):
            out[b, t, : t + 1] = torch.softmax(scores[b, t, : t + 1], dim=0)
    return out


@right("03.1")
def safe_by_hand(scores):
    masked = scores.masked_fill(~causal_mask(scores.shape[-1]), float("-inf"))
    e = torch.exp(masked - masked.max(-1, keepdim=True).values)
    return e / e.sum(-1, keepdim=True)


@right("03.2")
def with_einsum(x):
    scores = torch.einsum("btc,bsc->bts", x, x)
    weights = scores.masked_fill(~causal_mask(x.shape[1]), -torch.inf).softmax(-1)
    return torch.einsum("bts,bsc->btc", weights, x)


@right("03.2")
def query_by_query(x):
    outputs = []
    for t in range(x.shape[1]):
        past = x[:, : t + 1]  # needs no mask
        weights = torch.softmax(past @ x[:, t, :, None], dim=1)  # (B, t + 1, 1)
        outputs.append((weights * past).sum(dim=1))
    return torch.stack(outputs, dim=1)


@right("03.2")
def sequence_by_sequence(x):
    future = torch.triu(torch.ones(x.shape[1], x.shape[1]), diagonal=1).bool()
    each = [torch.softmax((one @ one.T).masked_fill(future, -1e9), dim=-1) @ one for one in x]
    return torch.stack(each)


@right("03.2")
def by_bmm(x):
    scores = torch.bmm(x, x.transpose(1, 2)) + torch.full((x.shape[1],) * 2, -torch.inf).triu(1)
    return torch.bmm(scores.softmax(dim=2), x)


@right("03.3")
def with_amax(scores):
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


@right("03.3")
def with_unsqueeze(scores):
    top, _ = torch.max(scores, dim=-1)
    e = torch.exp(scores - top.unsqueeze(-1))
    return e / e.sum(-1)[..., None]


@right("04.4")
def by_one_entry(strength):
    matrix = torch.zeros(2, 2)
    matrix[1, 0] = strength
    return matrix


@right("04.4")
def by_an_outer_product(strength):
    vowel, consonant = torch.eye(2)
    return strength * consonant[:, None] * vowel


@right("04.5")
def by_data_and_zeros(p, learning_rate):
    p.data = p.data - learning_rate * p.grad
    p.grad.zero_()


@right("04.5")
@torch.no_grad()
def by_add_(p, learning_rate):
    p.add_(p.grad, alpha=-learning_rate)
    p.grad = None


@right("05.2")
def by_math_sqrt(q, k):
    _, T, d = q.shape
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(d)
    return scores.masked_fill(torch.ones(T, T).tril().logical_not(), -torch.inf).softmax(dim=2)


@right("07.2")
def by_correction(x, eps=1e-5):
    var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return (x - mean) * (var + eps) ** -0.5


@right("07.2")
def by_hand(x, eps=1e-5):
    C = x.shape[-1]
    centred = x - x.sum(-1, keepdim=True) / C
    return centred / ((centred * centred).sum(-1, keepdim=True) / C + eps).sqrt()


@right("08.turn")
def turned_into_zeros(x, angles):
    out = torch.zeros_like(x)
    c, s = torch.cos(angles), torch.sin(angles)
    out[..., ::2] = x[..., ::2] * c - x[..., 1::2] * s
    out[..., 1::2] = x[..., ::2] * s + x[..., 1::2] * c
    return out


@right("08.turn")
def turned_by_matrices(x, angles):
    c, s = angles.cos(), angles.sin()
    matrices = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)
    return (matrices @ x.unflatten(-1, (-1, 2))[..., None]).squeeze(-1).flatten(-2)


@right("08.turn")
def turned_by_repeated_angles(x, angles):
    c, s = angles.cos().repeat_interleave(2, -1), angles.sin().repeat_interleave(2, -1)
    other = torch.stack((-x[..., 1::2], x[..., ::2]), -1).reshape(x.shape)
    return x * c + other * s


@right("08.3")
def looked_back_by_complex_numbers(k, n, speeds):
    z = torch.complex(k[:, 0::2], k[:, 1::2]) * torch.exp(-1j * n * speeds)
    return torch.stack([z.real, z.imag], dim=-1).reshape(k.shape)


@right("08.3")
def looked_back_by_sines(k, n, speeds):
    c, s = torch.cos(n * speeds), torch.sin(n * speeds)
    return torch.stack(
        [k[:, ::2] * c + k[:, 1::2] * s, k[:, 1::2] * c - k[:, ::2] * s], -1
    ).flatten(1)


@right("09.1")
def mask_in_a_loop(real):
    B, T = real.shape
    out = torch.zeros(B, T, T, dtype=torch.bool)
    for b in range(B):
        for i in range(T):
            for j in range(i + 1):
                out[b, i, j] = real[b, j] or i == j
    return out


@right("09.1")
def mask_of_places(real):
    i, j = torch.arange(real.shape[1])[:, None], torch.arange(real.shape[1])
    return (j == i) | ((j < i) & real[:, None])


@right("09.1")
def only_empty_rows_mended(real):
    mask = torch.tril(real[:, None, :].repeat(1, real.shape[1], 1))
    mask[..., 0] |= ~mask.any(dim=-1)
    return mask


@right("09.1")
def padding_keeps_to_itself(real):
    return torch.tril(real[:, :, None] == real[:, None, :])


@right("09.1")
def padding_reads_everything_so_far(real):
    return causal_mask(real.shape[1]) & (real[:, None, :] | ~real[:, :, None])


@right("09.2")
def cross_by_sdpa(x, memory, real, W_q, W_k, W_v):
    q, k, v = x @ W_q, memory @ W_k, memory @ W_v
    return F.scaled_dot_product_attention(q, k, v, attn_mask=real[:, None, :])


@right("09.2")
def cross_by_helper(x, memory, real, W_q, W_k, W_v):
    return attention(x @ W_q, memory @ W_k, memory @ W_v, real[:, None])[0]


@right("09.2")
def cross_with_einsum(x, memory, real, W_q, W_k, W_v):
    scores = torch.einsum("btc,cd,bse,ed->bts", x, W_q, memory, W_k) / math.sqrt(W_q.shape[1])
    scores = scores + torch.where(real, 0.0, -torch.inf)[:, None]
    return torch.einsum("bts,bsc,cd->btd", F.softmax(scores, -1), memory, W_v)


@right("09.2")
def cross_for_each_sequence(x, memory, real, W_q, W_k, W_v):
    out = []
    for a, b, keep in zip(x, memory, real, strict=True):
        b = b[keep]
        out.append(torch.softmax((a @ W_q) @ (b @ W_k).T / W_k.shape[1] ** 0.5, dim=1) @ b @ W_v)
    return torch.stack(out)


@right("09.2")
def cross_with_a_large_number(x, memory, real, W_q, W_k, W_v):
    scores = (x @ W_q / W_q.shape[1] ** 0.5) @ (memory @ W_k).transpose(1, 2)
    return scores.masked_fill(real[:, None] == 0, -1e9).softmax(dim=-1) @ (memory @ W_v)


@right("09.3")
def change_as_a_tensor(f, x):
    whole = f(x)
    prefixes = [f(x[:, :n])[:, -1] for n in range(1, x.shape[1] + 1)]
    return (torch.stack(prefixes, dim=1) - whole).abs().amax()


@right("09.3")
def change_of_all_outputs_so_far(f, x):
    whole, largest = f(x), 0.0
    for n in range(1, x.shape[1] + 1):
        largest = max(largest, float((f(x[:, :n]) - whole[:, :n]).abs().max()))
    return largest


@right("09.3")
def change_from_a_whole_zero(f, x):
    worst = 0  # max keeps it where no change is larger
    for t in range(x.shape[1]):
        worst = max(worst, (f(x[:, : t + 1])[:, t] - f(x)[:, t]).abs().max())
    return worst


@right("09.3")
def change_without_the_last(f, x):
    return max(
        (
            (f(x[:, : t + 1]) - f(x)[:, : t + 1])[:, t].abs().max().item()
            for t in range(len(x[0]) - 1)
        ),
        default=0.0,
    )


@right("09.4")
def masks_of_triangles(T, n):
    window, prefix = torch.ones(2, T, T).bool().tril()
    window.triu_(1 - n)
    prefix[:, :n] = True
    return torch.stack([window, prefix, window | (torch.arange(T) < 1)])


# ---------------------------------------------------------------- right, and fragile


@right("00.2", "with numbers a millionth as large in `a`, a number is 0.6175 where 0.6179 is right")
def with_a_small_number_added(a):
    return a / (a.sum(dim=-1, keepdim=True) + 1e-9)


@right("01.3", "with float64, your function raises RuntimeError: expected")
def weights_in_float32(x):
    T = x.shape[1]
    return torch.tril(torch.ones(T, T)) @ x / torch.arange(1, T + 1)[:, None]


@right("03.1", "with numbers 1000 times as large in `scores`, 43 of 50 numbers are nan or inf")
def exponentials_overflow(scores):
    exponentials = torch.exp(scores) * causal_mask(scores.shape[-1])
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@right(
    "07.2",
    "with numbers around 100 in `x`, a number is -2.055 where -2.044 is right, because float32",
)
def difference_of_large_numbers(x, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    var = (x * x).mean(dim=-1, keepdim=True) - mean * mean
    return (x - mean) / (var + eps).sqrt()


@right("01.3")
def branch_for_large_sizes(x):
    counts = torch.arange(1, x.shape[1] + 1)
    if x.shape[1] > 8:
        counts = counts.to(x.dtype)
        counts = counts.contiguous()
    return x.cumsum(dim=1) / counts[:, None]


@right("02.1")
def product_of_numpy(x):
    ones = np.tril(np.ones((x.shape[1], x.shape[1])))
    return torch.tensor(ones / ones.sum(axis=1, keepdims=True) @ x.numpy()).float()


SOME_ARRAY = np.arange(4.0)  # a global beside the answer, which is compared with no module


@right("02.1")
def product_with_an_array_beside_it(x):
    ones = torch.ones(x.shape[1], x.shape[1]).tril() + 0 * SOME_ARRAY.sum()
    return (ones / ones.sum(dim=1, keepdim=True)).float() @ x


@right("10.4")
def counted_with_counters(text, k):
    counts = defaultdict(Counter)
    for i in range(len(text) - k):
        counts[text[i : i + k]][text[i + k]] += 1
    return counts


@right("10.4")
def counted_with_a_window(text, k):
    counts = {}
    for group in (text[i : i + k + 1] for i in range(len(text) - k)):
        counts.setdefault(group[:-1], Counter()).update(group[-1])
    return counts


@right("10.4")
def counted_group_by_group(text, k):
    groups = [text[i : i + k + 1] for i in range(len(text) - k)]
    return {one[:k]: dict(Counter(g[k] for g in groups if g[:k] == one[:k])) for one in groups}


@right("10.6")
def softmax_filled_with_zeros(scores):
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return F.softmax(scores, dim=-1).masked_fill(future, 0)


@right("10.3")
def left_to_right_by_sum(model, windows):
    total, T = 0.0, windows.shape[1] - 1
    for t in range(1, T + 1):
        total = total + F.cross_entropy(model(windows[:, :t])[:, -1, :], windows[:, t])
    return total / T


@right("10.3")
def left_to_right_with_all_logits(model, windows):
    last = [model(windows[:, : t + 1])[:, t] for t in range(windows.shape[1] - 1)]
    return F.cross_entropy(torch.stack(last, dim=2), windows[:, 1:])


@right("10.3")
def left_to_right_by_windows(model, windows):
    losses = []
    for window in windows:
        for t in range(len(window) - 1):
            logarithms = model(window[None, : t + 1])[0, -1].log_softmax(-1)
            losses.append(-logarithms[window[t + 1]])
    return torch.stack(losses).mean()


# ---------------------------------------------------------------- 11, matrices of scores


@right("11.1")
def by_distance(letters, T):
    V = len(letters)
    place = torch.arange(T, dtype=torch.float32)
    M = torch.zeros(V + T, V + T)
    M[V:, V:] = -10 * (place[:, None] - 1 - place).square()
    return M


@right("11.1")
def by_a_loop(letters, T):
    V = len(letters)
    M = torch.full((V + T, V + T), 0.5)
    for t in range(1, T):
        M[V + t, V + t - 1] += 100
    return M


@right("11.1")
def in_double(letters, T):
    V = len(letters)
    M = torch.zeros(V + T, V + T, dtype=torch.float64)
    M[V:, V:] = torch.eye(T, dtype=torch.float64).roll(-1, dims=1)
    return M.tril(-1)


@right("11.2")
def all_others_low(letters, T):
    V = len(letters)
    M = torch.zeros(V + T, V + T)
    M[:V, :V] = -4 * (1 - torch.eye(V))
    M[V:, V:] = -2 * torch.eye(T)
    return M


@right("11.2")
def by_two_matrices(letters, T):
    V = len(letters)
    scale = torch.cat([torch.full((V,), 3.0), torch.full((T,), -1.0)])
    return torch.eye(V + T) @ torch.diag(scale)


@right("11.3")
def ramp_by_position(letters, T):
    V = len(letters)
    M = torch.zeros(V + T, V + T)
    M[V:, letters.index("-")] = 100.0
    M[V:, V:] = torch.arange(T)
    return M


@right("11.3")
def ramp_and_letters(letters, T):
    V = len(letters)
    M = torch.zeros(V + T, V + T)
    M[:V, letters.index("-")] = 2 * T
    M[:V, V:] = torch.arange(T)
    return M


@right("11.3")
def distance_costs(letters, T):
    V = len(letters)
    place = torch.arange(T, dtype=torch.float32)
    M = torch.zeros(V + T, V + T)
    M[V:, letters.index("-")] = 3.0 * T
    M[V:, V:] = place - place[:, None]
    return M


@right("11.4")
def start_by_its_copied_position(letters, T):
    V = len(letters)
    M = torch.zeros(2 * (V + T), 2 * (V + T))
    M[:V, V + T : 2 * V + T] = 10 * torch.eye(V)
    M[V : V + T, V : V + T] = 5 * torch.eye(T)
    M[:V, V] = -10
    return M


@right("11.4")
def twice(letters, T):
    V, start = len(letters), torch.zeros(T, T)
    start[:, 0] = 5
    M = torch.zeros(2 * (V + T), 2 * (V + T))
    M[:V, V + T : 2 * V + T] = 4 * torch.eye(V)
    M[V : V + T, V : V + T] = 2 * torch.eye(T) - start
    return M


def blocks_of(letters, T):
    """An empty M, and where its letters and its positions stand."""
    V = len(letters)
    return torch.zeros(V + T, V + T), slice(V), slice(V, V + T)


@right("11.5")
def from_letters_to_the_start(letters, T):
    M, L, _ = blocks_of(letters, T)
    M[L, len(letters)] = 3
    return M


@right("11.5")
def a_falling_ramp(letters, T):
    M, _, P = blocks_of(letters, T)
    M[P, P] = -torch.arange(T).float()
    return M


@right("11.6")
def others_lower(letters, T):
    M, L, _ = blocks_of(letters, T)
    M[L, L] = -5 * (1 - torch.eye(len(letters)))
    return M


@right("11.7")
def all_but_consonants_lower(letters, T):
    M, _, P = blocks_of(letters, T)
    M[P, P] = 30 * torch.eye(T)
    for i, query in enumerate(letters):
        for j, key in enumerate(letters):
            if query in "ae" and key in "bcdf":
                M[i, j] = 60
    return M


@right("11.8")
def by_the_code_of_a_letter(letters, T):
    M, L, P = blocks_of(letters, T)
    M[P, L] = torch.tensor([float(ord(letter)) for letter in letters])
    return M


@right("11.9")
def start_by_its_position(letters, T):
    M, L, P = blocks_of(letters, T)
    M[P, letters.index("a")] = 2
    M[L, len(letters)] = 2
    return M


@right("11.10")
def nearest_of_its_kind(letters, T):
    M, _, P = blocks_of(letters, T)
    M[P, P] = 2 * torch.arange(T).float()
    for pair in ("()", "[]", "{}"):
        M[letters.index(pair[1]), letters.index(pair[0])] = 100
    return M


@right("11.11")
def other_words_lower(letters, T):
    V = len(letters)
    M = torch.zeros(2 * (V + T), 2 * (V + T))
    M[2 * V + T :, 2 * V + T :] = 7 * torch.eye(T) - 7
    return M


@right("11.11")
def nearer_positions_of_separators(letters, T):
    V, place = len(letters), torch.arange(T).float()
    M = torch.zeros(2 * (V + T), 2 * (V + T))
    M[2 * V + T :, 2 * V + T :] = -(place[:, None] - place).abs()
    return M


@right("11.12")
def steps_of_the_squares(T):
    values = torch.zeros(T, 1)
    for t in range(T):
        values[t] = (t + 1) ** 2 - t**2
    return values


@right("11.12")
def whole_odd_numbers(T):
    return torch.arange(1, 2 * T, 2).unsqueeze(1)


# ---------------------------------------------------------------- 12, models taken apart


@right("12.1")
def score_by_diagonal(weights, period):
    return weights.diagonal(1 - period)[1:].mean()


@right("12.1")
def score_by_loop(weights, period):
    T, total = len(weights), 0.0
    for t in range(period, T):
        total += weights[t][t - period + 1].item()
    return total / (T - period)


@right("12.1")
def score_by_mask(weights, period):
    t = torch.arange(len(weights))
    place = (t[:, None] - t == period - 1) & (t[:, None] >= period)
    return (weights * place).sum() / place.sum()


@right("12.1")
def score_of_normed_rows(weights, period):
    weights = torch.tril(weights / weights.sum(-1, keepdim=True))
    return weights.diagonal(1 - period)[1:].mean()


@right("12.2")
def patched_without_gradients(layer, x, pattern):
    layer.eval()
    with torch.no_grad():
        return layer.proj(pattern @ layer.value(x))


@right("12.2")
def patched_by_a_hook(layer, x, pattern):
    handle = layer.proj.register_forward_pre_hook(lambda *_: (pattern @ layer.value(x),))
    try:
        return layer(x)
    finally:
        handle.remove()


@right("12.2")
def patched_by_slices(layer, x, pattern):
    v = layer.value(x)
    size = v.shape[-1] // layer.n_head
    out = [pattern @ v[..., h * size : (h + 1) * size] for h in range(layer.n_head)]
    return layer.proj(torch.cat(out, dim=-1))


@right("12.2")
def patched_at_once(layer, x, pattern):
    return layer.proj(pattern @ layer.value(x))


@right("12.2")
def patched_by_einsum(layer, x, pattern):
    B, T, C = x.shape
    v = layer.value(x).reshape(B, T, layer.n_head, -1)
    return layer.proj(torch.einsum("qk,bkhd->bqhd", pattern, v).reshape(B, T, C))


@right("12.3")
def without_by_its_columns(layer, x, head):
    size = x.shape[-1] // layer.n_head
    _, weights = layer(x, return_weights=True)
    v = layer.value(x)[..., head * size : (head + 1) * size]
    part = (weights[:, head] @ v) @ layer.proj.weight[:, head * size : (head + 1) * size].T
    return layer(x) - part


@right("12.3")
def without_by_weights_of_0(layer, x, head):
    _, weights = layer(x, return_weights=True)
    weights = weights.clone()
    weights[:, head] = 0
    v = layer.value(x).unflatten(-1, (layer.n_head, -1)).transpose(1, 2)
    return layer.proj((weights @ v).transpose(1, 2).flatten(2))


@right("12.3")
def without_by_a_list(layer, x, head):
    _, weights = layer(x, return_weights=True)
    size = x.shape[-1] // layer.n_head
    values = layer.value(x).split(size, dim=-1)
    out = [weights[:, h] @ v * (h != head) for h, v in enumerate(values)]
    return layer.proj(torch.cat(out, dim=-1))


@right("12.3")
def without_its_values_in_a_copy(layer, x, head):
    twin, size = copy.deepcopy(layer), x.shape[-1] // layer.n_head
    with torch.no_grad():
        twin.value.weight[head * size : (head + 1) * size] = 0
    return twin(x)


@right("12.3")
def without_its_columns_in_a_copy(layer, x, head):
    twin, size = copy.deepcopy(layer), x.shape[-1] // layer.n_head
    twin.proj.weight.data[:, head * size : (head + 1) * size] = 0
    return twin(x)


@right("12.3")
def without_it_for_a_while(layer, x, head):
    size = x.shape[-1] // layer.n_head
    columns = layer.proj.weight.data[:, head * size : (head + 1) * size]
    before = columns.clone()
    columns.zero_()
    out = layer(x).detach()
    columns.copy_(before)
    return out


# ---------------------------------------------------------------- 13, attentions to fix


def masked_scores(q, k):
    """Scores with minus infinity on the future, whose mask ends at the bottom right."""
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    later = torch.ones_like(scores).triu(k.shape[2] - q.shape[2] + 1)
    return scores.masked_fill(later.bool(), float("-inf"))


@right("13.1")
def softmax_over_keys_and_divided(q, k, v):
    weights = torch.softmax(masked_scores(q, k), dim=-1)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ v, weights


@right("13.1")
def softmax_of_the_transposed(q, k, v):
    weights = masked_scores(q, k).mT.softmax(dim=-2).mT
    return [weights @ v, weights]


@right("13.1", "too large or too small for float32")
def exponentials_divided_by_their_sums(q, k, v):
    e = masked_scores(q, k).exp()
    weights = e / e.sum(dim=-1, keepdim=True)
    return weights @ v, weights


@right("13.1", "0 / 0")
def cut_and_divided_again(q, k, v):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1) * causal_mask(q.shape[2])
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ v, weights


@right("13.2")
def fast_outputs_and_masked_weights(q, k, v, need_weights):
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out, masked_scores(q, k).softmax(-1) if need_weights else None


@right("13.2")
def one_path(q, k, v, need_weights):
    weights = masked_scores(q, k).softmax(dim=-1)
    return (weights @ v, weights) if need_weights else (weights @ v, None)


@right("13.2", "0 / 0")
def cut_weights_divided(q, k, v, need_weights):
    if not need_weights:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True), None
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1).tril()
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ v, weights


@right("13.2")
def weights_as_outputs_for_the_identity(q, k, v, need_weights):
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    if not need_weights:
        return out, None
    one = torch.eye(q.shape[2], dtype=v.dtype).expand(*q.shape[:3], -1)
    return out, F.scaled_dot_product_attention(q, k, one, is_causal=True)


@right("13.4")
def new_rows_of_the_mask(q, k, v):
    mask = causal_mask(k.shape[2])[k.shape[2] - q.shape[2] :]
    return F.scaled_dot_product_attention(q, k, v, mask)


@right("13.4")
def triangle_moved_to_the_right(q, k, v):
    T_new, T_all = q.shape[2], k.shape[2]
    mask = torch.ones(T_new, T_all, dtype=torch.bool).tril(diagonal=T_all - T_new)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@right("13.4")
def new_tokens_by_hand(q, k, v):
    return masked_scores(q, k).softmax(-1) @ v


@right("13.4")
def two_kinds_of_call(q, k, v):
    if q.shape[2] == 1:
        return F.scaled_dot_product_attention(q, k, v)
    return F.scaled_dot_product_attention(q, k, v, causal_mask(q.shape[2], k.shape[2]))


@right("13.4")
def queries_filled_up_in_front(q, k, v):
    missing = k[:, :, q.shape[2] :]
    out = F.scaled_dot_product_attention(torch.cat([missing, q], dim=2), k, v, is_causal=True)
    return out[:, :, missing.shape[2] :]


@right("13.4")
def one_new_token_at_a_time(q, k, v):
    outs, old = [], k.shape[2] - q.shape[2]
    for i in range(q.shape[2]):
        end = old + i + 1
        one = q[:, :, i : i + 1]
        outs.append(F.scaled_dot_product_attention(one, k[:, :, :end], v[:, :, :end]))
    return torch.cat(outs, dim=2)


@right("13.5")
def grouped_heads_of_pytorch(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


@right("13.5")
def heads_by_division(q, k, v):
    head = torch.arange(q.shape[1]) // (q.shape[1] // k.shape[1])
    return F.scaled_dot_product_attention(q, k[:, head], v[:, head], is_causal=True)


@right("13.5")
def heads_expanded(q, k, v):
    B, n_head, T, d = q.shape
    n_kv_head = k.shape[1]
    k, v = (
        z.unsqueeze(2).expand(B, n_kv_head, n_head // n_kv_head, T, d).reshape(B, n_head, T, d)
        for z in (k, v)
    )
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@right("13.5")
def queries_in_groups(q, k, v):
    B, n_head, T, d = q.shape
    groups = q.reshape(B, k.shape[1], -1, T, d)
    scores = groups @ k.unsqueeze(2).mT / d**0.5
    weights = scores.masked_fill(~causal_mask(T), -torch.inf).softmax(-1)
    return (weights @ v.unsqueeze(2)).reshape(B, n_head, T, d)


@right("13.5")
def repeated_along_the_tokens_and_cut(q, k, v):
    times = q.shape[1] // k.shape[1]
    k, v = (z.repeat(1, 1, times, 1).reshape(q.shape) for z in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def pieces_of(attention, x, sizes):
    kept, out, start = [], [], 0
    for n in sizes:
        out.append(attention(x[:, start : start + n], start, kept))
        start += n
    return torch.cat(out, dim=1)


@right("13.6")
def as_a_chat(attention, x):
    pieces = pieces_of(attention, x, (3, 1, 1, x.shape[1] - 5))
    return float((pieces - attention(x)).abs().amax())


@right("13.6")
def three_ways_of_cutting(attention, x):
    T, found = x.shape[1], []
    for sizes in ([1] * T, [2] * (T // 2) + [1] * (T % 2), [3, 1, T - 4]):
        found.append(torch.max(torch.abs(attention(x) - pieces_of(attention, x, sizes))))
    return max(found)


@right("13.7")
def two_triangles(T_new, T_all, window):
    old = T_all - T_new
    return torch.ones(T_new, T_all, dtype=torch.bool).tril(old).triu(old + 1 - window)


@right("13.7")
def a_slice_for_each_row(T_new, T_all, window):
    mask = torch.zeros(T_new, T_all).bool()
    for i, t in enumerate(range(T_all - T_new, T_all)):
        mask[i, max(0, t - window + 1) : t + 1] = True
    return mask


@right("13.8")
def sinks_by_distance(T_new, T_all, window, sinks):
    key = torch.arange(T_all)
    back = key[-T_new:, None] - key
    return (back >= 0) & ((back < window) | (key < sinks))


@right("13.8")
def columns_of_the_causal_mask(T_new, T_all, window, sinks):
    mask = two_triangles(T_new, T_all, window)
    mask[:, :sinks] |= causal_mask(T_new, T_all)[:, :sinks]
    return mask


# ---------------------------------------------------------------- 14, attention as a loop


def attended_by_hand(q, keys, values):
    """The formula, under a mask that ends at the bottom right."""
    scores = q @ keys.transpose(-2, -1) / q.shape[-1] ** 0.5
    later = torch.ones(q.shape[2], keys.shape[2]).triu(keys.shape[2] - q.shape[2] + 1)
    return scores.masked_fill(later.bool(), -torch.inf).softmax(-1) @ values


@right("14.2")
def online_by_lists(scores, values):
    m, s, out = -math.inf, 0.0, [0.0] * values.shape[1]
    for score, row in zip(scores.tolist(), values.tolist(), strict=True):
        new = max(m, score)
        f, w = math.exp(m - new), math.exp(score - new)
        s, out, m = s * f + w, [f * o + w * value for o, value in zip(out, row, strict=True)], new
    return torch.tensor(out) / s


@right("14.2")
def online_from_the_first_score(scores, values):
    m, s, out = scores[0], 1.0, values[0]
    for t in range(1, len(scores)):
        new = torch.maximum(m, scores[t])
        out = out * (m - new).exp() + values[t] * (scores[t] - new).exp()
        s = s * (m - new).exp() + (scores[t] - new).exp()
        m = new
    return out / s


@right("14.2")
def online_with_an_if(scores, values):
    m, s, out = scores.new_tensor(-torch.inf), 0.0, values.new_zeros(values.shape[1])
    for t in range(len(scores)):
        if scores[t] > m:
            s, out = s * (m - scores[t]).exp(), out * (m - scores[t]).exp()
            m = scores[t]
        s, out = s + (scores[t] - m).exp(), out + (scores[t] - m).exp() * values[t]
    return out / s


@right("14.2")
def online_average_at_each_step(scores, values):
    m, s, mean = torch.tensor(-torch.inf), torch.tensor(0.0), torch.zeros(values.shape[1])
    for score, value in zip(scores, values, strict=True):
        new = torch.maximum(m, score)
        before, weight = s * (m - new).exp(), (score - new).exp()
        s, m = before + weight, new
        mean = (mean * before + weight * value) / s
    return mean


@right("14.2")
def online_by_the_logarithm_of_the_sum(scores, values):
    log_sum, out = scores[0], values[0]
    for score, value in zip(scores[1:], values[1:], strict=True):
        share = torch.sigmoid(score - log_sum)
        log_sum, out = torch.logaddexp(log_sum, score), out + share * (value - out)
    return out


# ---------------------------------------------------------------- 15, a real model


@right("15.fill")
def filled_by_a_loop_over_heads(attention, query, key, value, proj):
    d = attention.head_size
    for h in range(attention.n_head):
        g = h * len(key) // (attention.n_head * d)
        for i in range(d):
            row = g * d + i // 2 + (d // 2 if i % 2 else 0)
            attention.key.weight.data[h * d + i] = key[row]
            attention.query.weight.data[h * d + i] = query[row + (h - g) * d]
        attention.value.weight.data[h * d : (h + 1) * d] = value[g * d : (g + 1) * d]
    attention.proj.weight.data = proj.clone()
    torch.nn.init.zeros_(attention.proj.bias)


@right("15.fill")
def filled_by_a_state_dict(attention, query, key, value, proj):
    d, n = attention.head_size, len(query) // len(key)
    rows = torch.cat([torch.arange(g, g + d) for g in range(0, len(key), d) for _ in range(n)])
    mine = torch.arange(len(query)).view(-1, 2, d // 2).mT.flatten()  # 0 3 1 4 2 5, 6 9 7 10 8 11
    state = {
        "query.weight": query[mine],
        "key.weight": key[rows][mine],
        "value.weight": value[rows],
    }
    state |= {"proj.weight": proj, "proj.bias": torch.zeros(len(proj))}
    attention.load_state_dict(state)


@right("15.fill")
def filled_by_einsum(attention, query, key, value, proj):
    n_kv_head = len(key) // attention.head_size
    shares = torch.arange(attention.n_head) * n_kv_head // attention.n_head
    choose = torch.eye(n_kv_head)[shares]  # (n_head, n_kv_head)
    swap = torch.zeros(attention.head_size, attention.head_size)  # (mine, theirs)
    half = attention.head_size // 2
    swap[range(0, 2 * half, 2), range(half)] = 1
    swap[range(1, 2 * half, 2), range(half, 2 * half)] = 1
    for layer, weight in ((attention.key, key), (attention.value, value)):
        heads = weight.reshape(n_kv_head, attention.head_size, -1)
        heads = swap @ heads if weight is key else heads
        layer.weight.copy_(torch.einsum("hg,gdc->hdc", choose, heads).flatten(0, 1))
    queries = query.reshape(attention.n_head, attention.head_size, -1)
    attention.query.weight.copy_((swap @ queries).flatten(0, 1))
    attention.proj.weight.copy_(proj)
    attention.proj.bias *= 0


@right("15.1")
def patched_in_a_list_of_heads(z, other, head, n_head):
    parts = list(z.chunk(n_head, dim=-1))
    last = other[:, -1:].chunk(n_head, dim=-1)[head]
    parts[head] = torch.cat([parts[head][:, :-1], last], dim=1)
    return torch.cat(parts, dim=-1)


@right("15.1")
def patched_where_a_mask_says_so(z, other, head, n_head):
    T, C = z.shape[1:]
    of_head = torch.arange(C) // (C // n_head) == head
    last = torch.arange(T)[:, None] == T - 1
    return torch.where(of_head & last, other, z)


@right("15.1")
def patched_by_a_loop_over_channels(z, other, head, n_head):
    out, size = z.detach().clone(), int(z.size(2) / n_head)
    for b in range(len(z)):
        for c in range(head * size, head * size + size):
            out[b, z.size(1) - 1, c] = other[b, z.size(1) - 1, c]
    return out


@right("15.1")
def patched_by_a_difference(z, other, head, n_head):
    change = torch.zeros_like(z).unflatten(-1, (n_head, -1))
    change[:, -1, head] = (other - z).unflatten(-1, (n_head, -1))[:, -1, head]
    return z + change.flatten(-2)


@right("15.1")
def patched_as_the_groups_of_a_view(z, other, head, n_head):
    B, T, C = z.shape
    heads = z.reshape(B, T, n_head, C // n_head).transpose(1, 2).clone()
    heads[:, head, -1] = other.reshape(B, T, n_head, C // n_head).transpose(1, 2)[:, head, -1]
    return heads.transpose(1, 2).reshape(B, T, C)


@right("15.4")
def hidden_by_what_the_target_leaves(maps, target):
    out = maps.clone()
    out[..., -1, :] /= 1 - out[..., -1, [target]]
    out[..., -1, target] = 0
    return out


@right("15.4")
def hidden_map_by_map(maps, target):
    flat = maps.clone().reshape(-1, *maps.shape[-2:])
    for one in flat:
        one[-1, target] = 0.0
        one[-1] = one[-1] / one[-1].sum()
    return flat.reshape(maps.shape)


@right("15.4")
def hidden_before_the_softmax(maps, target):
    scores = maps.log()
    scores[..., -1, target] = -torch.inf
    return scores.softmax(dim=-1)


@right("15.4")
def hidden_where_a_mask_says_so(maps, target):
    T = maps.shape[-1]
    last = torch.arange(T)[:, None] == T - 1
    left = maps * ~(last & (torch.arange(T) == target))
    return left / left.sum(dim=-1, keepdim=True)


@right("15.4")
def hidden_by_normalize(maps, target):
    row = maps[..., -1:, :] * (torch.arange(maps.shape[-1]) != target)
    return torch.cat([maps[..., :-1, :], torch.nn.functional.normalize(row, p=1, dim=-1)], dim=-2)


@right("15.5")
def wanted_as_a_row_of_a_unit_matrix(maps, target=1):
    row = torch.eye(maps.shape[-1])[target].expand_as(maps[..., -1:, :])
    return torch.cat([maps[..., :-1, :], row.to(maps)], dim=-2)


@right("15.6")
def others_sorted(maps, target, heads):
    every = [(block, head) for block in range(len(maps)) for head in range(len(maps[0]))]
    free = [place for place in every if place not in heads]
    return sorted(free, key=lambda place: maps[place][-1][target])[-len(heads) :]


@right("15.6")
def others_as_a_tensor(maps, target, heads):
    mine = torch.zeros(maps.shape[:2], dtype=torch.bool)
    mine[tuple(torch.tensor(heads).T)] = True
    order = maps[..., -1, target].masked_fill(mine, -torch.inf).flatten().argsort(descending=True)
    return torch.stack(torch.unravel_index(order[: len(heads)], mine.shape), dim=1)
