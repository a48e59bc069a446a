"""Change a running model, and see what it did: ablate a head, patch a pattern; and two scores.

All of it works on any model that is built of `helpers.attention.MultiHeadAttention`, such as
`helpers.gpt.TinyGPT` or one of your own. The two scores are from Olsson et al. (2022), "In-context
Learning and Induction Heads", https://arxiv.org/abs/2209.11895.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attention_base.arguments import typed
from attention_base.numbers import as_whole
from helpers.attention import MultiHeadAttention

TOLERANCE = 1e-4  # how far the sum of a row of weights may lie from 1


def attention_layers(model: nn.Module) -> list[MultiHeadAttention]:
    """All layers of attention in a model, in the order in which it holds them.

    Raises
    ------
    TypeError
        When the model is no module.
    ValueError
        When there is none. PyTorch's `nn.MultiheadAttention` is none: it has no parts between
        which a pattern or a head could be changed.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be an nn.Module, got {type(model).__name__}.")
    layers = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
    if not layers:
        raise ValueError(
            f"{type(model).__name__} holds no helpers.attention.MultiHeadAttention, so there is no "
            "attention to change. PyTorch's own nn.MultiheadAttention cannot be changed this way."
        )
    return layers


@contextmanager
def ablate(model: nn.Module, layer: int, head: int | Sequence[int]) -> Iterator[None]:
    """Within the block ``with ablate(…):``, set the output of one head, or of several, to 0.

    The output of a head is what it hands to the projection, (B, T, head_size). The other heads stay
    as they are. Afterwards the model is what it was, whatever happens.

    Parameters
    ----------
    model
        Any module that holds `helpers.attention.MultiHeadAttention`.
    layer
        Which of its layers of attention, from 0, as in `attention_layers`.
    head
        Which head of that layer, from 0; or several.

    Raises
    ------
    TypeError, ValueError
        When there is no such layer or head.

    Examples
    --------
    >>> attention = MultiHeadAttention(8, 2)
    >>> x = torch.randn(1, 3, 8)
    >>> with ablate(attention, 0, [0, 1]):  # all heads: what is left is the bias of proj
    ...     torch.equal(attention(x)[0, 0], attention.proj.bias)
    True
    """
    changed = _layer(model, layer)
    several = isinstance(head, Sequence) or (isinstance(head, Tensor) and head.dim() == 1)
    heads = [as_whole(one, "head", 0, changed.n_head - 1) for one in (head if several else [head])]
    head_size = changed.proj.in_features // changed.n_head
    kept = torch.ones(changed.n_head, head_size, dtype=torch.bool)
    kept[heads] = False

    def without(proj: nn.Linear, inputs: tuple[Tensor]) -> Tensor:
        return torch.where(kept.flatten().to(inputs[0].device), inputs[0], 0.0)  # (B, T, C)

    handle = changed.proj.register_forward_pre_hook(without)
    try:
        yield
    finally:
        handle.remove()


@typed
@contextmanager
def patch(
    model: nn.Module, layer: int, pattern: Tensor | Callable[[int], Tensor]
) -> Iterator[None]:
    """Within the block ``with patch(…):``, put a pattern in the place of attention weights.

    Values and output projection stay, and so do the other layers. Afterwards the model is what it
    was, whatever happens.

    Parameters
    ----------
    model, layer
        As for `ablate`.
    pattern
        Weights of a shape that broadcasts to (B, n_head, T_q, T_k), so (T, T) holds for all
        sequences and heads. Or a function from the number of keys, T_k, to such weights, for texts
        of different lengths. Nobody looks whether it attends to the future.

    Raises
    ------
    TypeError, ValueError
        When there is no such layer; and within the block, when the layer runs, if a pattern does
        not fit its input, is no float tensor, or has a row that does not sum to 1.

    Examples
    --------
    >>> attention = MultiHeadAttention(8, 2)
    >>> itself = torch.eye(3)  # each token attends to itself alone
    >>> with patch(attention, 0, itself):
    ...     _, weights = attention(torch.randn(1, 3, 8), return_weights=True)
    >>> torch.equal(weights, itself.expand(1, 2, 3, 3))
    True
    """
    changed = _layer(model, layer)

    def patched(attention: MultiHeadAttention, args: tuple, kwargs: dict, output: Any) -> Any:
        x = args[0] if args else kwargs["x"]
        context = kwargs.get("context")
        context = x if context is None else context
        cache = kwargs.get("cache")
        v = attention._split(attention.value(context)) if cache is None else cache.values
        shape = (len(x), attention.n_head, x.shape[1], v.shape[2])
        weights = pattern(shape[-1]) if callable(pattern) else pattern
        weights = _as_weights(weights, shape, layer).to(x)
        out = weights @ attention._for_each_head(v)  # (B, n_head, T_q, head_size)
        out = attention.proj(out.transpose(1, 2).flatten(2))  # (B, T_q, C)
        return (out, weights) if isinstance(output, tuple) else out

    handle = changed.register_forward_hook(patched, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


def _layer(model: nn.Module, layer: int) -> MultiHeadAttention:
    layers = attention_layers(model)
    return layers[as_whole(layer, "layer", 0, len(layers) - 1)]


def _as_weights(pattern: Tensor, shape: tuple[int, ...], layer: int) -> Tensor:
    """The pattern with the shape (B, n_head, T_q, T_k), if its rows are weights."""
    where = f"The pattern for layer {layer}"
    if not isinstance(pattern, Tensor) or not pattern.is_floating_point():
        got = pattern.dtype if isinstance(pattern, Tensor) else type(pattern).__name__
        raise TypeError(f"{where} must be a float tensor, got {got}.")
    try:
        weights = pattern.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"{where} must broadcast to (B, n_head, T_q, T_k) = {shape}, got "
            f"{tuple(pattern.shape)}. (A function of T_k gives weights for texts of any length.)"
        ) from None
    _refuse_no_weights(where, pattern if pattern.dim() > 1 else weights)
    return weights


def _refuse_no_weights(name: str, weights: Tensor) -> None:
    """Refuse rows that hold a negative number or nan, or do not sum to 1."""
    sums = weights.sum(dim=-1)
    wrong = ~((sums - 1).abs() <= TOLERANCE) | (weights < 0).any(dim=-1)  # nan is wrong, too
    if wrong.any():
        place = wrong.nonzero()[0].tolist()
        row = weights[tuple(place)]
        *before, t = place
        of = f" of {before}" if before else ""
        fault = f"sums to {sums[tuple(place)].item():.4g}"
        if row.min() < 0:
            fault = f"holds {row.min().item():.4g}"
        raise ValueError(
            f"{name} must have rows of weights, at least 0, that sum to 1; row {t}{of} {fault}."
        )


# ---------------------------------------------------------------- what a pattern looks like


@typed
def previous_token_score(weights: Tensor) -> Tensor:
    """The mean weight that a token gives to the one before it.

    Parameters
    ----------
    weights
        (..., T, T), such as (B, n_head, T, T).

    Returns
    -------
    torch.Tensor
        (...), from 0 to 1; token 0, which has none before it, is left out.

    Raises
    ------
    TypeError, ValueError
        When these are no weights, or of fewer than two tokens.

    Examples
    --------
    >>> previous_token_score(torch.tensor([[1.0, 0.0], [0.8, 0.2]]))
    tensor(0.8000)
    """
    _refuse_no_map(weights)
    if weights.shape[-1] < 2:
        raise ValueError("A previous-token score needs at least two tokens, got T = 1.")
    return weights.diagonal(-1, -2, -1).mean(dim=-1)


@typed
def induction_score(weights: Tensor, period: int | Tensor) -> Tensor:
    """The mean weight on the token that came after the same token, one period ago.

    Parameters
    ----------
    weights
        (..., T, T) of texts that repeat themselves.
    period
        After how many tokens the texts repeat themselves. If they differ, (B,) or (B, 1) for
        weights (B, ..., T, T).

    Returns
    -------
    torch.Tensor
        (...), from 0 to 1. Only queries t of at least `period` count, since the others have not
        seen a whole period; they should find the key ``t - period + 1``.

    Raises
    ------
    TypeError, ValueError
        When these are no weights, or a period is not a whole number from 1 to T - 1.

    Examples
    --------
    >>> two_back = torch.eye(6).roll(2, 0)
    >>> induction_score(two_back, 3)
    tensor(1.)
    """
    _refuse_no_map(weights)
    T = weights.shape[-1]
    if isinstance(period, Tensor) and period.dim():
        if weights.dim() < 3 or period.numel() != len(weights):
            raise ValueError(
                f"period must have one number for each of the B texts of weights (B, ..., T, T); "
                f"got {period.numel()} for weights {tuple(weights.shape)}."
            )
        rows = zip(weights, period.flatten().tolist(), strict=True)
        return torch.stack([induction_score(text, one) for text, one in rows])
    period = period.item() if isinstance(period, Tensor) else period
    if isinstance(period, bool) or not isinstance(period, int) or not 1 <= period < T:
        raise ValueError(f"period must be a whole number from 1 to T - 1 = {T - 1}, got {period}.")
    return weights.diagonal(1 - period, -2, -1)[..., 1:].mean(dim=-1)


def _refuse_no_map(weights: Tensor) -> None:
    """Refuse what is not (..., T, T) with rows that sum to 1."""
    if not isinstance(weights, Tensor) or not weights.is_floating_point():
        got = weights.dtype if isinstance(weights, Tensor) else type(weights).__name__
        raise TypeError(f"weights must be a float tensor (..., T, T), got {got}.")
    if weights.dim() < 2 or weights.shape[-1] != weights.shape[-2]:
        raise ValueError(f"weights must be (..., T, T), got {tuple(weights.shape)}.")
    _refuse_no_weights("weights", weights)
