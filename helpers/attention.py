"""Attention, as the notebooks arrive at it.

The formula is Eq. 1 of Vaswani et al. (2017), "Attention Is All You Need",
https://arxiv.org/abs/1706.03762.
"""

import math

import torch


def causal_mask(T_q: int, T_k: int | None = None) -> torch.Tensor:
    """Who may read whom when nobody may read the future.

    The last query sees all keys: query i may read key j when ``j <= i + T_k - T_q``. That is
    what a cache of earlier keys needs. PyTorch's ``is_causal=True`` lines up the *first* query
    with the first key instead (``j <= i``), which differs as soon as ``T_q != T_k``.

    Parameters
    ----------
    T_q
        Number of queries (rows).
    T_k
        Number of keys (columns); as many as queries when left out. With fewer keys than
        queries the first ``T_q - T_k`` rows are empty, and `attention` refuses them.

    Returns
    -------
    torch.Tensor
        (T_q, T_k), bool. True = may attend.

    Raises
    ------
    ValueError
        When a size is not a whole number of at least 1.

    Examples
    --------
    >>> causal_mask(3).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    >>> causal_mask(2, 4).int()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=torch.int32)
    """
    T_k = T_q if T_k is None else T_k
    for name, size in (("T_q", T_q), ("T_k", T_k)):
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {size!r}.")
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scaled dot-product attention, with its weights.

    ``softmax(q kᵀ / √d) v``: every query scores every key, a softmax turns each row of scores
    into weights, and the weights mix the values. Eq. 1 of Vaswani et al. (2017).

    Parameters
    ----------
    q
        (..., T_q, d) queries: who reads.
    k
        (..., T_k, d) keys: who is read.
    v
        (..., T_k, d_v) values: what is read. d_v may differ from d.
    mask
        bool, **True = may attend**; any shape that broadcasts to (..., T_q, T_k).

    Returns
    -------
    out : torch.Tensor
        (..., T_q, d_v), one mix of values a query.
    weights : torch.Tensor
        (..., T_q, T_k), each row sums to 1.

    Raises
    ------
    TypeError
        When q, k or v is not a float tensor, or the mask is not a bool tensor.
    ValueError
        When the shapes do not fit, or a query may attend to no key at all: a softmax over
        nothing is 0 / 0.

    Examples
    --------
    >>> x = torch.eye(3)
    >>> out, weights = attention(x, x, x, causal_mask(3))
    >>> weights[0]
    tensor([1., 0., 0.])
    """
    _refuse_bad_tensors(q, k, v)
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (..., T_q, T_k)
    if mask is not None:
        _refuse_bad_mask(mask, scores.shape)
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


def _refuse_bad_tensors(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} must be a tensor, got {type(tensor).__name__}.")
        if not tensor.is_floating_point():
            raise TypeError(
                f"{name} must hold floats, got {tensor.dtype}: use {name}.float(), "
                "since weights are fractions."
            )
        if tensor.dim() < 2:
            raise ValueError(
                f"{name} needs at least two dimensions, tokens and channels; "
                f"its shape is {_shape(tensor)}. For one token use {name}[None, :]."
            )
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(
            f"q, k and v must have one dtype, got {q.dtype}, {k.dtype} and {v.dtype}: "
            "convert with .to(q.dtype)."
        )
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(
            "q and k are multiplied channel by channel, so their last sizes must be equal: "
            f"q {_shape(q)} has {q.shape[-1]}, k {_shape(k)} has {k.shape[-1]}."
        )
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            "Each key has one value, so k and v must have the same number of tokens: "
            f"k {_shape(k)} has {k.shape[-2]}, v {_shape(v)} has {v.shape[-2]}."
        )
    if k.shape[-2] == 0 or k.shape[-1] == 0:
        raise ValueError(
            f"There is nothing to read: k has shape {_shape(k)}. "
            "Give at least one token and one channel."
        )
    try:
        torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    except RuntimeError:
        raise ValueError(
            "All sizes before the last two (sequences, heads) must be equal or 1: "
            f"q {_shape(q)}, k {_shape(k)}, v {_shape(v)}."
        ) from None


def _refuse_bad_mask(mask: torch.Tensor, scores: torch.Size) -> None:
    if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
        got = mask.dtype if isinstance(mask, torch.Tensor) else type(mask).__name__
        raise TypeError(
            f"mask must be a bool tensor, True = may attend; got {got}. "
            "From zeros and ones: mask != 0; from scores with -inf: mask == 0."
        )
    try:
        fits = torch.broadcast_shapes(mask.shape, scores) == scores
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"mask {_shape(mask)} does not fit the scores {tuple(scores)}: read from the right, "
            "each of its sizes must be equal to the scores' or 1."
        )
    empty = ~mask.any(dim=-1)  # one entry a query
    if empty.any():
        index = tuple(empty.nonzero()[0].tolist())
        where = f"row {list(index)} of the mask" if index else "the mask"
        raise ValueError(
            f"A query may attend to no key: {where} is False throughout "
            f"({int(empty.sum())} of {empty.numel()} rows). A softmax over nothing is 0 / 0 "
            "= nan. Let each query attend to at least one key, for example to itself."
        )


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)
