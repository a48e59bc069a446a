"""The exercises of notebook 13: wrong attentions to fix, and the questions that find them."""

from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_base.same import same_conditions
from feedback.calls import is_number
from feedback.grading import Exercise
from helpers.attention import causal_mask
from helpers.ward import Attention, broken

QKV = {name: "B n_head T head_size" for name in ("q", "k", "v")}
PARTS = {"outputs": "B n_head T head_size", "weights": "B n_head T T"}


def _qkv(generator, shape, size=1.0):
    """Queries, keys and values; each score is about as large as the square of ``size``."""
    q, k, v = torch.randn(3, *shape, generator=generator)
    return size * q, size * k, v


def out_and_weights(returned, q, k, v):
    """What an answer returned, side by side: (B, n_head, T, head_size + T).

    Raises
    ------
    TypeError, ValueError
        When it is no pair of an output and weights.
    """
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise TypeError("attend must return (out, weights), two tensors.")
    out, weights = returned
    if not isinstance(out, Tensor) or not isinstance(weights, Tensor):
        names = " and ".join(type(one).__name__ for one in returned)
        raise TypeError(f"attend must return (out, weights), two tensors; it returned {names}.")
    shapes = v.shape, (q @ k.mT).shape
    if (weights.shape, out.shape) == shapes and out.shape != weights.shape:
        raise ValueError("attend must return (out, weights); it returned (weights, out).")
    for name, one, shape in zip(("out", "weights"), (out, weights), shapes, strict=True):
        if one.shape != shape:
            raise ValueError(f"{name} must be {tuple(shape)}; attend returned {tuple(one.shape)}.")
    return torch.cat([out, weights], dim=-1)


def with_its_weights(attend, q, k, v):
    return out_and_weights(attend(q, k, v), q, k, v)


# ---------------------------------------------------------------- 13.1


def softmax_over_queries(q, k, v):
    """q, k, v (B, n_head, T, head_size) -> (out, weights)."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(q.shape[2]), -torch.inf)
    weights = torch.softmax(scores, dim=-2)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ v, weights


def attend(q, k, v):
    """q, k, v (B, n_head, T, head_size) -> (out, weights)."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(q.shape[2]), -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


def _texts():
    generator = torch.Generator().manual_seed(0)
    return [_qkv(generator, shape, 1.5) for shape in ((2, 3, 5, 4), (3, 2, 4, 6))]


OVER_THE_KEYS = Exercise(
    "13.1",
    attend,
    _texts,
    given=softmax_over_queries,
    used=with_its_weights,
    parts=PARTS,
    axes=QKV,
)


# ---------------------------------------------------------------- 13.2


def slow_path_without_mask(q, k, v, need_weights):
    """q, k, v (B, n_head, T, head_size) -> (out, weights), or (out, None) on the fast path."""
    if not need_weights:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True), None
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


def attend(q, k, v, need_weights):
    """q, k, v (B, n_head, T, head_size) -> (out, weights), or (out, None) on the fast path."""
    if not need_weights:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True), None
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal_mask(q.shape[2]), -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


def on_a_path(attend, q, k, v, need_weights):
    """What is judged: on the slow path outputs and weights, on the fast one outputs."""
    returned = attend(q, k, v, need_weights)
    if need_weights:
        return out_and_weights(returned, q, k, v)
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise TypeError("Without need_weights, attend must return (out, None).")
    out, weights = returned
    if weights is not None:
        name = type(weights).__name__
        raise TypeError(f"Without need_weights, attend must return (out, None), not (out, {name}).")
    return out


def _paths():
    return [(*qkv, need_weights) for qkv in _texts() for need_weights in (True, False)]


BOTH_PATHS = Exercise(
    "13.2",
    attend,
    _paths,
    given=slow_path_without_mask,
    used=on_a_path,
    parts=PARTS,
    axes=QKV,
)


# ---------------------------------------------------------------- 13.4


def _louder(generator, shape, size):
    """Queries, keys and values, with scores from size to 5 times it, above 0 and below."""
    q, k, v = 0.05 * torch.randn(3, *shape, generator=generator)
    for z in (q, k):
        sign = torch.randn(shape[:-1], generator=generator).sign()
        z[..., 0] += sign * (1.1 + torch.rand(shape[:-1], generator=generator))
    q[0, 0, 0, 0], k[0, 0, 0, 0] = 2.2, -2.2  # the lowest score is one that has to be seen
    return (size * shape[-1] ** 0.5) ** 0.5 * q, (size * shape[-1] ** 0.5) ** 0.5 * k, 20 * v


def mask_at_the_top_left(q, k, v):
    """New q (B, n_head, T_new, d), k and v (B, n_head, T_all, d) -> out, shaped as q."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attend_to_kept(q, k, v):
    """New q (B, n_head, T_new, d), k and v (B, n_head, T_all, d) -> out, shaped as q."""
    mask = causal_mask(q.shape[2], k.shape[2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def last_rows(q, k, v):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    hidden = ~causal_mask(k.shape[2])[-q.shape[2] :]
    return scores.masked_fill(hidden, -torch.inf).softmax(dim=-1) @ v


def _new_and_kept():
    cases, generator = [], torch.Generator().manual_seed(0)
    for B, n_head, T_new, T_all, d in ((2, 5, 3, 8, 4), (3, 2, 1, 6, 4), (2, 3, 5, 5, 4)):
        _, k, v = _qkv(generator, (B, n_head, T_all, d), 1.5)
        cases.append((1.5 * torch.randn(B, n_head, T_new, d, generator=generator), k, v))
    q, k, v = _louder(generator, (2, 3, 6, 4), 1e30)  # so that few numbers will do as a mask
    return [*cases, (q[:, :, -3:], k, v)]


def large_negative_number(q, k, v):
    hidden = ~causal_mask(q.shape[2], k.shape[2])
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -1e4)
    return torch.softmax(scores, dim=-1) @ v


KEPT_KEYS = Exercise(
    "13.4",
    attend_to_kept,
    _new_and_kept,
    accepted=(last_rows,),
    given=mask_at_the_top_left,
    axes={
        "q": "B n_head T_new d",
        "k": "B n_head T_all d",
        "v": "B n_head T_all d",
        "return": "B n_head T_new d",
    },
)


# ---------------------------------------------------------------- 13.5


def heads_tiled(q, k, v):
    """Many q (B, n_head, T, d), few k and v (B, n_kv_head, T, d) -> out, shaped as q."""
    times = q.shape[1] // k.shape[1]
    k, v = k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attend(q, k, v):
    """Many q (B, n_head, T, d), few k and v (B, n_kv_head, T, d) -> out, shaped as q."""
    times = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(times, dim=1), v.repeat_interleave(times, dim=1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def grouped_by_pytorch(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def queries_reordered(q, k, v):
    order = torch.arange(q.shape[1]).view(k.shape[1], -1).T.flatten()
    return heads_tiled(q[:, order], k, v)


def tokens_and_copies_mixed(q, k, v):
    times = q.shape[1] // k.shape[1]
    k, v = (z[:, :, :, None].expand(-1, -1, -1, times, -1).reshape(q.shape) for z in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def _grouped_heads():
    cases, generator = [], torch.Generator().manual_seed(0)
    for B, n_head, n_kv_head, T, d in ((3, 6, 2, 5, 4), (2, 6, 3, 4, 5)):
        _, k, v = _qkv(generator, (B, n_kv_head, T, d), 1.5)
        cases.append((1.5 * torch.randn(B, n_head, T, d, generator=generator), k, v))
    return cases


GROUPED_HEADS = Exercise(
    "13.5",
    attend,
    _grouped_heads,
    accepted=(grouped_by_pytorch,),
    given=heads_tiled,
    axes={
        "q": "B n_head T d",
        "k": "B n_kv_head T d",
        "v": "B n_kv_head T d",
        "return": "B n_head T d",
    },
)


# ---------------------------------------------------------------- 13.6


def in_pieces(attention, x):
    """The largest difference between the outputs for x (B, T, C) in one pass and in pieces."""
    cache, outputs, start = [], [], 0
    while start < x.shape[1]:
        piece = x[:, start : start + 1 + start % 3]  # 1, 2, 1, 2, … tokens
        outputs.append(attention(piece, start=start, cache=cache))
        start += piece.shape[1]
    return (torch.cat(outputs, dim=1) - attention(x)).abs().max().item()


def _wrong_if_single(right, x, start, cache):
    if x.shape[1] > 1 or not cache:
        return right(x, start, cache)
    wrong = broken("mask at the top left")(8, 2, 1)
    wrong.load_state_dict(right.state_dict())
    return wrong(x, start, cache)


def _only_the_last_piece(right, x, start, cache):
    last = cache[-1:]
    out = right(x, start, last)
    cache.append(last[-1])
    return out


def _in_channel_0(amount):
    def changed(right, x, start, cache):
        behind = amount if cache else 0.0  # text 0 is right
        out = right(x, start, cache).clone()
        out[1:, :, 0] += behind
        return out

    return changed


RIGHT = "is right"
IN_PIECES = {  # what an attention does -> a bug of the ward, or what makes another of the right one
    RIGHT: None,
    "begins its mask at the top left": "mask at the top left",
    "hides nothing behind kept keys": "no mask behind kept keys",
    "is wrong for a single new token only": _wrong_if_single,
    "forgets all kept pieces but the last": _only_the_last_piece,
    "gives 2 too little in channel 0 of each later piece of text 1": _in_channel_0(-2.0),
    "gives 2 too much in channel 0 of each later piece of text 1": _in_channel_0(2.0),
    "counts positions from 0 again in each piece": "keys rotated from 0",
}


def _attentions():
    generator, cases = torch.Generator().manual_seed(0), []
    for i, does in enumerate([*IN_PIECES, RIGHT]):  # a list kept from before spoils the last
        change = IN_PIECES[does]
        with same_conditions(seed=i):
            module = (Attention if callable(change) else broken(change))(8, 2, 1)
        module.does, module.change = does, change if callable(change) else None
        cases.append((module, torch.randn(2, 9 + i % 4, 8, generator=generator)))
    return cases


def watched(in_pieces, attention, x):
    """What in_pieces returns, and its calls: the piece, its start, and how many tokens are kept."""
    calls, own = [], attention.forward

    def forward(piece, start=0, cache=None, need_weights=False):
        old = None if cache is None else sum(k.shape[2] for k, _ in cache)
        calls.append((piece, start, old))
        if attention.change is None or cache is None:
            return own(piece, start, cache, need_weights)
        attention.forward = own  # which the change calls
        try:
            return attention.change(attention, piece, start, cache)
        finally:
            attention.forward = forward

    with torch.no_grad(), patch.object(attention, "forward", forward):
        return in_pieces(attention, x), calls


def _one_number(found, name):
    if isinstance(found, bool) or not is_number(found) or torch.as_tensor(found).numel() != 1:
        raise TypeError(f"{name} must return one number, the largest difference.")
    return float(found)


def _odd_call(calls, x):
    """The kind of the first call that no text in pieces has, 0 for none, and what is said of it."""
    for piece, start, old in calls:
        (texts, n), all_texts = piece.shape[:2], len(x)
        if texts < all_texts:
            return (
                6,
                f"A piece has {texts} of {all_texts} texts. Tokens are axis 1: x.split(3, dim=1).",
            )
        if old and n == x.shape[1]:
            return 1, f"The whole text was read with a list in which {old} tokens are kept already."
        if old == 0 and start:
            return 2, f"A piece with start = {start} came with an empty list."
        if old and start != old:
            again = start < old and torch.equal(piece, x[:, start : start + n])
            told = f"A piece with start = {start} came behind {old} kept tokens"
            asked = ": is start too large, or was a token left out?" if start > old else "."
            return 3 + again, told + asked
    if all(old is None for _, _, old in calls):
        return 5, "No call has a list of kept keys."
    return 0, ""


def _asked(returned, attention, x):
    """How an attention was asked, and whether it was found out; what is wrong with that."""
    found, calls = _one_number(returned[0], "in_pieces"), returned[1]
    odd, told = _odd_call(calls, x)
    cut = [n for z, _, old in calls if old is not None and (n := z.shape[1]) < x.shape[1]]
    sizes_told = f"Your pieces had {' '.join(map(str, cut))} tokens."
    told = told or (sizes_told if cut else "There is one piece, all of x.")
    sizes = [piece.shape[1] for piece, _, old in calls if old]
    how = [max(sizes, default=0) > 1, min(sizes, default=0) > 1, len(sizes) > 1]
    does, level = attention.does, 0.5 * (found > 0.01) + 0.5 * (found > 1.999) + (found > 2.001)
    if odd or " 2 too " not in does:
        level = float(not found <= 1e-4)
    effect = torch.tensor([odd, *([0, 0, 0] if odd else how), level]).float()
    said = f"your function says {found:.2f}."
    if does == RIGHT:
        return effect, "" if found <= 1e-4 else f"A right attention differs by 0, and {said} {told}"
    if found > 1e-3 and (odd or " 2 too " not in does or level == 1):
        return effect, ""
    wanted = " The largest difference is 2." if found > 1e-3 else ""
    return effect, f"An attention that {does} was asked, and {said}{wanted} {told}"


ASK_IN_PIECES = Exercise("13.6", in_pieces, _attentions, used=watched, effect=_asked)


# ---------------------------------------------------------------- 13.7


def forgotten_window(T_new, T_all, window):
    """(T_new, T_all), True = may attend: to itself and to the window - 1 tokens before it."""
    query, key = torch.arange(T_new)[:, None], torch.arange(T_all)
    later = key > query + T_all - T_new
    too_old = key <= query - window
    return ~(later | too_old)


def near_mask(T_new, T_all, window):
    """(T_new, T_all), True = may attend: to itself and to the window - 1 tokens before it."""
    query, key = torch.arange(T_all - T_new, T_all)[:, None], torch.arange(T_all)
    later = key > query
    too_old = key <= query - window
    return ~(later | too_old)


def last_rows_of_all(T_new, T_all, window):
    every = torch.ones(T_all, T_all, dtype=torch.bool)
    return (every.tril() & every.triu(1 - window))[-T_new:]


def begins_below_0(T_new, T_all, window):
    mask = torch.zeros(T_new, T_all, dtype=torch.bool)
    for i in range(T_new):
        place = T_all - T_new + i
        mask[i, place - window + 1 : place + 1] = True
    return mask


def _lengths():
    return [(6, 6, 3), (3, 9, 4), (1, 7, 2), (2, 5, 8)]


MASK = {"return": "T_new T_all"}
WINDOW = Exercise(
    "13.7",
    near_mask,
    _lengths,
    accepted=(last_rows_of_all,),
    given=forgotten_window,
    axes=MASK,
    optional=True,
)


# ---------------------------------------------------------------- 13.8


def sinks_in_the_window(T_new, T_all, window, sinks):
    """(T_new, T_all), True = may attend: as near_mask, and to the first tokens of the text."""
    causal = near_mask(T_new, T_all, T_all)  # a window with room for all tokens
    first = torch.arange(T_all) < sinks
    return (causal | first) & near_mask(T_new, T_all, window)


def sink_mask(T_new, T_all, window, sinks):
    """(T_new, T_all), True = may attend: as near_mask, and to the first tokens of the text."""
    causal = near_mask(T_new, T_all, T_all)  # a window with room for all tokens
    first = torch.arange(T_all) < sinks
    return causal & (first | near_mask(T_new, T_all, window))


def columns_opened(T_new, T_all, window, sinks):
    causal = torch.ones(T_all, T_all, dtype=torch.bool).tril()
    every = causal.triu(1 - window)
    every[:, :sinks] = causal[:, :sinks]
    return every[-T_new:]


def _lengths_and_sinks():
    return [(7, 7, 3, 2), (3, 9, 4, 1), (1, 8, 2, 3), (4, 5, 6, 2)]


SINKS = Exercise(
    "13.8",
    sink_mask,
    _lengths_and_sinks,
    accepted=(columns_opened,),
    given=sinks_in_the_window,
    axes=MASK,
    optional=True,
)


EXERCISES = (
    OVER_THE_KEYS,
    BOTH_PATHS,
    KEPT_KEYS,
    GROUPED_HEADS,
    ASK_IN_PIECES,
    WINDOW,
    SINKS,
)
