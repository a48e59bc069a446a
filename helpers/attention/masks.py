"""Masks: which query may attend to which key.

A mask is a bool tensor whose rows are queries and whose columns are keys. In this project, as in
``F.scaled_dot_product_attention``, **True = may attend**. ``nn.MultiheadAttention`` reads its
``attn_mask`` and ``key_padding_mask`` the other way round, True = may *not* attend: hand it
``~mask``. A float mask is added to the scores in both: 0 where a query may attend, -inf where not.

Rules that must hold together are joined by ``&``, rules of which one is enough by ``|``. After
``&`` a row may be empty, such as that of a token of padding at the left under a causal mask.
The softmax of such a row is 0 / 0: `attention` refuses it, ``F.scaled_dot_product_attention``
returns zeros for it, and ``nn.MultiheadAttention`` returns nan (zeros if ``need_weights=False`` and
gradients are computed). Let each token attend to itself, whatever it is:
``mask | torch.eye(T, dtype=torch.bool)``. Nobody reads the output at a token of padding, but nan
would spread to every gradient.
"""

import torch

from attention_base.masks import causal_mask, refuse_bad_sizes
from helpers.attention.checks import refuse_bad_padding


def window_mask(T: int, window: int) -> torch.Tensor:
    """The causal mask with which each token attends to the last `window` tokens only.

    Parameters
    ----------
    T
        Number of tokens.
    window
        How many tokens a query may attend to: itself and the ``window - 1`` before it.

    Returns
    -------
    torch.Tensor
        (T, T), bool. True = may attend.

    Raises
    ------
    ValueError
        When a size is not a whole number of at least 1.

    Examples
    --------
    >>> window_mask(4, 2).int()
    tensor([[1, 0, 0, 0],
            [1, 1, 0, 0],
            [0, 1, 1, 0],
            [0, 0, 1, 1]], dtype=torch.int32)
    """
    refuse_bad_sizes(T=T, window=window)
    return causal_mask(T).triu(1 - window)


def prefix_mask(T: int, n_prefix: int) -> torch.Tensor:
    """The causal mask, but every token may attend to all of the first `n_prefix` tokens.

    Parameters
    ----------
    T
        Number of tokens.
    n_prefix
        Tokens that are given from the beginning, such as a question; from 1 to T.

    Returns
    -------
    torch.Tensor
        (T, T), bool. True = may attend.

    Raises
    ------
    ValueError
        When a size is not a whole number of at least 1, or the prefix is longer than the text.

    Examples
    --------
    >>> prefix_mask(4, 2).int()
    tensor([[1, 1, 0, 0],
            [1, 1, 0, 0],
            [1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=torch.int32)
    """
    refuse_bad_sizes(T=T, n_prefix=n_prefix)
    if n_prefix > T:
        raise ValueError(f"A prefix is part of the text: n_prefix = {n_prefix}, but T = {T}.")
    return causal_mask(T) | (torch.arange(T) < n_prefix)


def padding_mask(real: torch.Tensor) -> torch.Tensor:
    """The mask with which no query attends to padding.

    Texts of different lengths fill one batch with tokens of padding behind (or before) the
    shorter ones. The rule is one of columns, of who may be read. If the rows of padding were
    False too, they would be empty.

    Parameters
    ----------
    real
        (B, T), bool: True at tokens of the text, False at padding, such as ``ids != pad``.

    Returns
    -------
    torch.Tensor
        (B, 1, T), bool, which broadcasts to (B, T_q, T). True = may attend.

    Raises
    ------
    TypeError
        When real is not a bool tensor.
    ValueError
        When it is not (B, T), or a sequence is nothing but padding.

    Examples
    --------
    >>> ids = torch.tensor([[5, 3, 0, 0], [2, 4, 6, 1]])  # 0 is the padding
    >>> padding_mask(ids != 0).int()
    tensor([[[1, 1, 0, 0]],
    <BLANKLINE>
            [[1, 1, 1, 1]]], dtype=torch.int32)
    """
    refuse_bad_padding(real)
    return real[:, None, :]
