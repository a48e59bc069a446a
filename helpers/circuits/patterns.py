"""Patterns of attention that are known exactly, to patch into a model.

Each is what `helpers.circuits.patch` takes: a function from the number of tokens T to weights or,
where the pattern depends on the texts, the weights themselves.
"""

import math
from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_base.arguments import typed
from attention_base.masks import refuse_bad_sizes
from helpers.attention.checks import refuse_bad_ids

Pattern = Callable[[int], Tensor]


def tokens_back(shares: Mapping[int, float]) -> Pattern:
    """The pattern that looks a fixed number of tokens back, the same in each row.

    Parameters
    ----------
    shares
        {tokens back: share of the weight}, such as {1: 1.0} for the token before. They need not
        sum to 1: each row is divided by the sum of those that it can see. A row that sees none of
        them attends to its own token.

    Returns
    -------
    function
        T -> weights (T, T).

    Raises
    ------
    ValueError
        When there are no shares, a share is not positive, or a number of tokens is negative.

    Examples
    --------
    >>> tokens_back({1: 3.0, 2: 1.0})(3)
    tensor([[1.0000, 0.0000, 0.0000],
            [1.0000, 0.0000, 0.0000],
            [0.2500, 0.7500, 0.0000]])
    """
    if not isinstance(shares, Mapping) or not shares:
        raise ValueError(
            "tokens_back needs at least one {tokens back: share}, such as {1: 1.0} for the token "
            f"before; got {shares!r}."
        )
    for distance, share in shares.items():
        if not isinstance(distance, int) or distance < 0:
            raise ValueError(f"Tokens back must be whole numbers from 0 on, got {distance!r}.")
        if not share > 0:
            raise ValueError(f"A share must be larger than 0; {distance} back has {share!r}.")

    def pattern(T: int) -> Tensor:
        refuse_bad_sizes(T=T)
        weights = torch.zeros(T, T)
        for distance, share in shares.items():
            weights.diagonal(-min(distance, T))[:] = share
        nothing = weights.sum(dim=1) == 0
        weights[nothing] = torch.eye(T)[nothing]
        return weights / weights.sum(dim=1, keepdim=True)

    return pattern


@typed
def equal_weights(T: int) -> Tensor:
    """The pattern (T, T) in which each token attends to all that it can see, equally.

    Examples
    --------
    >>> equal_weights(2)
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    """
    refuse_bad_sizes(T=T)
    return torch.ones(T, T).tril() / torch.arange(1.0, T + 1)[:, None]


@typed
def letter_followers(ids: Tensor) -> Tensor:
    """The pattern of exercise 11.4: all tokens that came after the letter of a query, equally.

    A token whose letter nothing has followed yet attends to itself.

    Parameters
    ----------
    ids
        (B, T)

    Returns
    -------
    torch.Tensor
        Weights (B, 1, T, T), the same for all heads.

    Examples
    --------
    >>> letter_followers(torch.tensor([[5, 7, 5]]))[0, 0]
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 1., 0.]])
    """
    refuse_bad_ids(ids, math.inf)
    came_after = torch.zeros(*ids.shape, ids.shape[1])  # (B, T, T)
    came_after[:, :, 1:] = (ids[:, :, None] == ids[:, None, :-1]).float()
    weights = came_after.tril()
    weights += torch.diag_embed((weights.sum(dim=-1) == 0).float())
    return (weights / weights.sum(dim=-1, keepdim=True))[:, None]


@typed
def followers(period: Tensor | int) -> Pattern:
    """The pattern that finds what came after the same token, one period ago.

    Before that, in the first period, a token attends to itself.

    Parameters
    ----------
    period
        After how many tokens the texts repeat themselves: a number, or (B, 1).

    Returns
    -------
    function
        T -> weights (1, 1, T, T) or (B, 1, T, T).

    Raises
    ------
    ValueError
        When a period is not a whole number of at least 1.

    Examples
    --------
    >>> followers(2)(3)[0, 0]
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 1., 0.]])
    """
    period = torch.as_tensor(period).view(-1, 1)
    if period.dtype != torch.int64 or not period.numel() or period.min() < 1:
        got = period.min().item() if period.dtype == torch.int64 and period.numel() else period
        raise ValueError(f"A period must be a whole number of at least 1, got {got}.")

    def pattern(T: int) -> Tensor:
        refuse_bad_sizes(T=T)
        t = torch.arange(T)
        key = torch.where(t >= period, t - period + 1, t)  # (B, T)
        return F.one_hot(key, T).float()[:, None]

    return pattern
