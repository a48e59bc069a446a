"""The formula of attention.

It is Eq. 1 of Vaswani et al. (2017), "Attention Is All You Need", https://arxiv.org/abs/1706.03762.
"""

import math

import torch
import torch.nn.functional as F

from helpers.attention.checks import refuse_bad_dropout, refuse_bad_mask, refuse_bad_qkv


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
    >>> x, mask = torch.eye(3), torch.ones(3, 3, dtype=torch.bool).tril()
    >>> out, weights = attention(x, x, x, mask)
    >>> weights[0]
    tensor([1., 0., 0.])
    """
    refuse_bad_qkv(q, k, v)
    refuse_bad_dropout(dropout)
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (..., T_q, T_k)
    if mask is not None:
        refuse_bad_mask(mask, scores.shape)
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    if dropout:
        weights = F.dropout(weights, dropout)
    return weights @ v, weights
