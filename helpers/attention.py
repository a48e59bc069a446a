"""Attention, as the notebooks arrive at it: a mask, the formula, a head, many heads, a block.

The formula is Eq. 1 of Vaswani et al. (2017), "Attention Is All You Need",
https://arxiv.org/abs/1706.03762; many heads are its section 3.2.2, the block its section 3.1.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


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
    _refuse_bad_sizes(T_q=T_q, T_k=T_k)
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q)


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
    *,
    dropout: float = 0.0,
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
    dropout
        The share of the weights that is set to 0 at random; the others grow to make up for it.

    Returns
    -------
    out : torch.Tensor
        (..., T_q, d_v), one mix of values a query.
    weights : torch.Tensor
        (..., T_q, T_k), each row sums to 1 (with dropout: on average).

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
    if dropout:
        weights = F.dropout(weights, dropout)
    return weights @ v, weights


class Head(nn.Module):
    """One attention head: three Linear layers give queries, keys and values.

    Parameters
    ----------
    C
        Channels of a token.
    head_size
        Channels of a query, a key and a value.

    Raises
    ------
    ValueError
        When a size is not a whole number of at least 1.

    Examples
    --------
    >>> Head(32, 16)(torch.randn(4, 8, 32)).shape
    torch.Size([4, 8, 16])
    """

    def __init__(self, C: int, head_size: int) -> None:
        super().__init__()
        _refuse_bad_sizes(C=C, head_size=head_size)
        self.query = nn.Linear(C, head_size, bias=False)
        self.key = nn.Linear(C, head_size, bias=False)
        self.value = nn.Linear(C, head_size, bias=False)

    def forward(
        self,
        x: torch.Tensor,
        *,
        context: torch.Tensor | None = None,
        mask: torch.Tensor | str | None = "causal",
        return_weights: bool = False,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Let each token of x read.

        Parameters
        ----------
        x
            (B, T_q, C): who reads.
        context
            (B, T_k, C): who is read; x itself when left out. There is no "earlier" between two
            sequences, so a context needs ``mask=None`` or a mask of its own.
        mask
            "causal": this token and everything before it. None: everything. Or a bool tensor,
            **True = may attend**, that broadcasts to (B, T_q, T_k).
        return_weights
            Whether to return the weights as well.

        Returns
        -------
        out : torch.Tensor
            (B, T_q, head_size)
        weights : torch.Tensor
            (B, T_q, T_k), only with ``return_weights=True``.

        Raises
        ------
        TypeError
            When x or context is not a float tensor, or the mask is not one of the three.
        ValueError
            When a shape does not fit, a row of the mask is empty, or a context meets "causal".
        """
        _refuse_bad_reading(x, context, mask, self.query)
        context = x if context is None else context
        q = self.query(x)  # (B, T_q, head_size)
        k, v = self.key(context), self.value(context)  # (B, T_k, head_size)
        if isinstance(mask, str):  # "causal"
            mask = causal_mask(x.shape[1]).to(x.device)
        out, weights = attention(q, k, v, mask)
        return (out, weights) if return_weights else out


class MultiHeadAttention(nn.Module):
    """Several heads at once, each in its own slice of the channels, and a projection.

    Parameters
    ----------
    C
        Channels of a token; must be divisible by n_head.
    n_head
        Number of heads; each has C / n_head channels.
    fused
        Whether PyTorch's ``F.scaled_dot_product_attention`` does the arithmetic: the same
        numbers in less time and memory, but no weights to look at.
    dropout
        The share of the weights that is dropped in training.

    Raises
    ------
    ValueError
        When a size is not a whole number of at least 1, C is not divisible by n_head, or
        dropout is not in [0, 1).

    Examples
    --------
    >>> many = MultiHeadAttention(32, 4)
    >>> out, weights = many(torch.randn(2, 8, 32), return_weights=True)
    >>> out.shape, weights.shape
    (torch.Size([2, 8, 32]), torch.Size([2, 4, 8, 8]))
    """

    def __init__(self, C: int, n_head: int, *, fused: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        _refuse_bad_sizes(C=C, n_head=n_head)
        _refuse_uneven_heads(C, n_head)
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout is a share, at least 0 and below 1; got {dropout}.")
        self.n_head, self.fused, self.dropout = n_head, fused, dropout
        self.query = nn.Linear(C, C, bias=False)
        self.key = nn.Linear(C, C, bias=False)
        self.value = nn.Linear(C, C, bias=False)
        self.proj = nn.Linear(C, C)

    def forward(
        self,
        x: torch.Tensor,
        *,
        context: torch.Tensor | None = None,
        mask: torch.Tensor | str | None = "causal",
        return_weights: bool = False,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Let each token of x read, once a head.

        Parameters
        ----------
        x, context, mask, return_weights
            As for `Head`. A mask of two or three axes is (B, T_q, T_k) and holds for all heads;
            one of four is (B, n_head, T_q, T_k).

        Returns
        -------
        out : torch.Tensor
            (B, T_q, C)
        weights : torch.Tensor
            (B, n_head, T_q, T_k), only with ``return_weights=True``.

        Raises
        ------
        TypeError
            As for `Head`.
        ValueError
            As for `Head`, and when a fused module is asked for weights.
        """
        if self.fused and return_weights:
            raise ValueError(
                "With fused=True the weights are never written down, so they cannot be returned. "
                "Make the module with fused=False (the same numbers), or leave out return_weights."
            )
        _refuse_bad_reading(x, context, mask, self.query)
        context = x if context is None else context
        q = self._split(self.query(x))  # (B, n_head, T_q, head_size)
        k, v = self._split(self.key(context)), self._split(self.value(context))
        dropout = self.dropout if self.training else 0.0
        causal = isinstance(mask, str)
        if not causal:
            mask = _for_all_heads(mask, q, k)
        if self.fused:
            out = F.scaled_dot_product_attention(
                q, k, v, None if causal else mask, dropout_p=dropout, is_causal=causal
            )
        else:
            mask = causal_mask(x.shape[1]).to(x.device) if causal else mask
            out, weights = attention(q, k, v, mask, dropout=dropout)
        out = self.proj(out.transpose(1, 2).flatten(2))  # (B, T_q, C)
        return (out, weights) if return_weights else out

    def _split(self, z: torch.Tensor) -> torch.Tensor:
        B, T, C = z.shape
        return z.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)


class FeedForward(nn.Module):
    """Two Linear layers with a ReLU between them, for each token by itself.

    Parameters
    ----------
    C
        Channels of a token; in between there are four times as many.

    Raises
    ------
    ValueError
        When C is not a whole number of at least 1.
    """

    def __init__(self, C: int) -> None:
        super().__init__()
        _refuse_bad_sizes(C=C)
        self.wide = nn.Linear(C, 4 * C)
        self.proj = nn.Linear(4 * C, C)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., C) -> (..., C)."""
        _refuse_bad_channels("x", x, self.wide)
        return self.proj(torch.relu(self.wide(x)))


class Block(nn.Module):
    """Tokens talk, then think; both only add to what is there.

    Parameters
    ----------
    C
        Channels of a token; must be divisible by n_head.
    n_head
        Number of heads.
    norm
        "pre": ``x + f(norm(x))``, the way of today. "post": ``norm(x + f(x))``, that of 2017.

    Raises
    ------
    ValueError
        As for `MultiHeadAttention`, and when norm is neither "pre" nor "post".
    """

    def __init__(self, C: int, n_head: int, norm: str = "pre") -> None:
        super().__init__()
        if norm not in ("pre", "post"):
            raise ValueError(f'norm must be "pre" or "post", got {norm!r}.')
        self.norm = norm
        self.attention = MultiHeadAttention(C, n_head)
        self.feed_forward = FeedForward(C)
        self.norm_1, self.norm_2 = nn.LayerNorm(C), nn.LayerNorm(C)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, C) -> (B, T, C), causal."""
        _refuse_bad_reading(x, None, "causal", self.attention.query)
        if self.norm == "post":
            x = self.norm_1(x + self.attention(x))
            return self.norm_2(x + self.feed_forward(x))
        x = x + self.attention(self.norm_1(x))
        return x + self.feed_forward(self.norm_2(x))


def _for_all_heads(
    mask: torch.Tensor | None, q: torch.Tensor, k: torch.Tensor
) -> torch.Tensor | None:
    """Give a mask (B, T_q, T_k) an axis for the heads; (B, n_head, T_q, T_k) has it already."""
    if mask is None:
        return None
    B, n_head, T_q, _ = q.shape
    with_heads = isinstance(mask, torch.Tensor) and mask.dim() > 3
    lead = (B, n_head) if with_heads else (B,)
    _refuse_bad_mask(mask, torch.Size((*lead, T_q, k.shape[-2])))
    return mask[:, None] if mask.dim() == 3 else mask.expand(*mask.shape[:-2], T_q, k.shape[-2])


def _refuse_bad_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            got = repr(size)
            if hasattr(size, "shape"):  # a tensor or an array: not all its numbers
                got = f"{type(size).__name__} of shape {_shape(size)}"
            raise ValueError(f"{name} must be a whole number of at least 1, got {got}.")


def _refuse_uneven_heads(C: int, n_head: int) -> None:
    if C % n_head:
        sizes = " or ".join(str(n * n_head) for n in (C // n_head, C // n_head + 1) if n)
        fitting = ", ".join(str(n) for n in range(1, C + 1) if C % n == 0)
        raise ValueError(
            f"C = {C} channels cannot be shared out evenly among n_head = {n_head} heads: "
            f"{C} / {n_head} = {C / n_head:.4g}. Use C = {sizes}, or one of {fitting} heads."
        )


def _refuse_bad_reading(
    x: torch.Tensor,
    context: torch.Tensor | None,
    mask: torch.Tensor | str | None,
    layer: nn.Linear,
) -> None:
    if isinstance(mask, str) and mask != "causal":
        raise ValueError(f'mask must be "causal", None or a bool tensor, got {mask!r}.')
    if isinstance(mask, str) and context is not None:
        raise ValueError(
            'mask is "causal" (the default), but a context has no earlier and later for x: '
            "its tokens are another sequence. Give mask=None, or a bool tensor (T_q, T_k)."
        )
    for name, tensor in (("x", x), ("context", x if context is None else context)):
        _refuse_bad_channels(name, tensor, layer)
        if tensor.dim() != 3 or tensor.shape[1] == 0:
            single = f" For a single sequence use {name}[None]." if tensor.dim() == 2 else ""
            raise ValueError(
                f"{name} must be (B, T, C) with at least one token; "
                f"its shape is {_shape(tensor)}.{single}"
            )
    if context is not None and len(context) != len(x):
        one = "context" if len(context) == 1 else "context[:1]"
        raise ValueError(
            f"Each sequence reads its own context: x has {len(x)} sequences, context "
            f"{len(context)}. To give all of them one context use {one}.expand({len(x)}, -1, -1)."
        )


def _refuse_bad_channels(name: str, tensor: torch.Tensor, layer: nn.Linear) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} must be a tensor of floats, got {_no_tensor(name, tensor)}.")
    if not tensor.is_floating_point():
        raise TypeError(
            f"{name} must be a tensor of floats, got {tensor.dtype}: use {name}.float()."
        )
    C = layer.in_features
    if tensor.dim() == 0 or tensor.shape[-1] != C:
        swapped = tensor.dim() > 1 and tensor.shape[-2] == C
        raise ValueError(
            f"The last axis of {name} must hold the C = {C} channels that this "
            f"module was made for; its shape is {_shape(tensor)}"
            + (f": are T and C swapped? Then use {name}.mT." if swapped else ".")
        )
    dtype = layer.weight.dtype
    if tensor.dtype != dtype and not torch.is_autocast_enabled(tensor.device.type):
        raise TypeError(
            f"{name} is {tensor.dtype}, the weights of this module are {dtype}: "
            f"use {name}.to({dtype}) or module.to({tensor.dtype})."
        )


def _refuse_bad_tensors(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} must be a tensor, got {_no_tensor(name, tensor)}.")
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
    if not isinstance(mask, torch.Tensor):
        raise TypeError(
            f"mask must be a bool tensor, True = may attend; got {_no_tensor('mask', mask)}."
        )
    if mask.dtype != torch.bool:
        raise TypeError(
            f"mask must be a bool tensor, True = may attend; got {mask.dtype}. "
            "From zeros and ones: mask != 0; from scores with -inf: mask == 0."
        )
    try:
        fits = torch.broadcast_shapes(mask.shape, scores) == scores
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"mask {_shape(mask)} does not fit the scores {tuple(scores)}: read from the right, "
            f"each of its sizes must be equal to the scores' or 1. One of {tuple(scores[-2:])} "
            "does for all of them."
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


def _no_tensor(name: str, value: object) -> str:
    """What came instead of a tensor, and how to make one of it where that works."""
    numbers = isinstance(value, list | tuple) or hasattr(value, "__array__")
    return type(value).__name__ + (f": use torch.tensor({name})" if numbers else "")


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)
