"""The formula of attention, and the causal mask.

It is Eq. 1 of Vaswani et al. (2017), "Attention Is All You Need", https://arxiv.org/abs/1706.03762.
"""

import math

import torch
import torch.nn.functional as F

from helpers.attention.checks import refuse_bad_mask, refuse_bad_qkv, refuse_bad_sizes


def causal_mask(T_q: int, T_k: int | None = None) -> torch.Tensor:
    """The mask with which no query attends to the future.

    The last query may attend to all keys, and query i to key j when ``j <= i + T_k - T_q``. That
    is what a cache of earlier keys needs. PyTorch's ``is_causal=True`` lines up the *first* query
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
    refuse_bad_sizes(T_q=T_q, T_k=T_k)
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

    ``softmax(q kᵀ / √d) v``: the dot product of a query and a key is their score, a softmax turns
    each row of scores into weights, and each output is the average of the values with these
    weights. Eq. 1 of Vaswani et al. (2017).

    Parameters
    ----------
    q
        (..., T_q, d) queries: what each token looks for.
    k
        (..., T_k, d) keys: how a token can be found.
    v
        (..., T_k, d_v) values: what a token passes on. d_v may differ from d.
    mask
        bool, **True = may attend**; any shape that broadcasts to (..., T_q, T_k).
    dropout
        Probability with which a weight is set to 0; the others are divided by ``1 - dropout``.

    Returns
    -------
    out : torch.Tensor
        (..., T_q, d_v), one weighted average of the values for each query.
    weights : torch.Tensor
        (..., T_q, T_k), each row sums to 1 (with dropout: on average).

    Raises
    ------
    TypeError
        When q, k or v is not a float tensor, or the mask is not a bool tensor.
    ValueError
        When the shapes do not fit, or a query may attend to no key at all: the softmax of that
        row would be 0 / 0.

    Examples
    --------
    >>> x = torch.eye(3)
    >>> out, weights = attention(x, x, x, causal_mask(3))
    >>> weights[0]
    tensor([1., 0., 0.])
    """
    refuse_bad_qkv(q, k, v)
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (..., T_q, T_k)
    if mask is not None:
        refuse_bad_mask(mask, scores.shape)
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    if dropout:
        weights = F.dropout(weights, dropout)
    return weights @ v, weights
