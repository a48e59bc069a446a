"""A head whose scores are written by hand, from what two tokens are and where they stand.

A token is two one-hot vectors side by side: its letter and its position. So a matrix M of scores,
``W_q W_kᵀ`` in a trained head, has four blocks: letter or position of the query against letter or
position of the key. Weiss et al. (2021), "Thinking Like Transformers",
https://arxiv.org/abs/2106.06981, write such rules as programs.
"""

from collections.abc import Mapping
from math import inf

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_base.arguments import typed
from attention_base.numbers import as_real, as_whole, described
from helpers.attention import causal_mask

SHARPNESS = 20.0  # of two scores that are 1 apart, the softmax then gives the lower one 2e-9
PARTS = ("letter", "position")
COPIED = ("copied letter", "copied position")


def one_hot_tokens(word: str, letters: str, T: int) -> Tensor:
    """A word -> (t, V + T) tokens: a channel for each letter, then one for each position.

    Parameters
    ----------
    word
        t letters, at most T.
    letters
        The V letters that there are.
    T
        The most letters of a word.

    Raises
    ------
    TypeError, ValueError
        When the word is empty or too long, or has a letter that there is not; or when letters are
        not different ones.

    Examples
    --------
    >>> one_hot_tokens("ba", "ab", 3)
    tensor([[0., 1., 1., 0., 0.],
            [1., 0., 0., 1., 0.]])
    """
    _refuse_bad_letters(letters, T)
    if not isinstance(word, str):
        raise TypeError(f"word must be a text, got {type(word).__name__}.")
    if not 1 <= len(word) <= T:
        raise ValueError(f"A word has 1 to T = {T} letters; {word!r} has {len(word)}.")
    for t, letter in enumerate(word):
        if letter not in letters:
            raise ValueError(
                f"The letters are {letters!r}; position {t} of {word!r} has {letter!r}."
            )
    ids = torch.tensor([letters.index(letter) for letter in word])
    places = torch.arange(len(word))
    return torch.cat([F.one_hot(ids, len(letters)), F.one_hot(places, T)], dim=1).float()


def score_from_blocks(
    letters: str, T: int, blocks: Mapping[tuple[str, str], Tensor], *, layer: int = 0
) -> Tensor:
    """Put blocks together to the matrix M of scores: ``x @ M @ x.mT`` for tokens x.

    Parameters
    ----------
    letters
        The V letters that there are.
    T
        The most letters of a word.
    blocks
        (part of the query, part of the key) -> the scores of the one with the other. The parts
        are "letter", with V channels, and "position", with T; blocks that are left out are 0.
    layer
        0, or 1. The tokens of layer 1 have two parts more: "copied letter" and "copied
        position", which hold what layer 0 has read.

    Returns
    -------
    torch.Tensor
        (V + T, V + T), or twice as many for layer 1.

    Raises
    ------
    TypeError, ValueError
        When there is no such part or layer, or a block is no tensor, of another shape, or holds
        nan or inf: 0 times inf is nan.

    Examples
    --------
    >>> score_from_blocks("ab", 3, {("letter", "letter"): torch.eye(2)}).shape
    torch.Size([5, 5])
    """
    _refuse_bad_letters(letters, T)
    as_whole(layer, "layer", 0, 1)
    if not isinstance(blocks, Mapping):
        raise TypeError(
            'blocks must be a dict such as {("letter", "letter"): a tensor}, got '
            f"{type(blocks).__name__}."
        )
    names = PARTS if layer == 0 else PARTS + COPIED
    sizes = [len(letters) if "letter" in name else T for name in names]
    start = {name: sum(sizes[:i]) for i, name in enumerate(names)}
    M = torch.zeros(sum(sizes), sum(sizes))
    for pair, block in blocks.items():
        if not (isinstance(pair, tuple) and len(pair) == 2 and set(pair) <= set(names)):
            parts = ", ".join(map(repr, names))
            raise ValueError(
                f"A block is named by a part of the query and one of the key, each one of {parts} "
                f"in layer {layer}; got {pair!r}."
                + (" Copied parts need layer=1." if "copied" in str(pair) and layer == 0 else "")
            )
        i, j = map(names.index, pair)
        refuse_bad_scores(f"The block {pair}", block, (sizes[i], sizes[j]))
        top, left = start[pair[0]], start[pair[1]]
        M[top : top + sizes[i], left : left + sizes[j]] = block
    return M


def _refuse_bad_letters(letters: str, T: int) -> None:
    as_whole(T, "T", 1)
    if not isinstance(letters, str) or not letters or len(set(letters)) < len(letters):
        raise ValueError(f"letters must be a text of different letters, got {letters!r}.")


def refuse_bad_scores(name: str, scores: Tensor, shape: tuple[int, int]) -> None:
    """Refuse a matrix of scores that is no tensor, of another shape, or not finite."""
    if not isinstance(scores, Tensor):
        raise TypeError(f"{name} must be a tensor {shape}, got {type(scores).__name__}.")
    if tuple(scores.shape) != shape:
        raise ValueError(f"{name} must be {shape}, got {tuple(scores.shape)}.")
    if not scores.isfinite().all():
        i, j = (~scores.isfinite()).nonzero()[0].tolist()
        held = scores[i, j].item()
        never = " For “never” use a large negative number, such as -10." if held == -inf else ""
        raise ValueError(
            f"{name} must hold finite numbers; row {i}, column {j} has {held}, and 0 times {held} "
            f"is nan.{never}"
        )


def written_weights(x: Tensor, M: Tensor, sharpness: float = SHARPNESS) -> Tensor:
    """The causal attention weights of a head with the scores ``sharpness * x @ M @ x.mT``.

    Parameters
    ----------
    x
        (..., t, C) tokens.
    M
        (C, C), from `score_from_blocks`.
    sharpness
        What the scores are multiplied by. The larger it is, the more of the weight goes to the
        largest score of a row.

    Returns
    -------
    torch.Tensor
        (..., t, t); each row sums to 1.

    Raises
    ------
    TypeError, ValueError
        When M is no tensor, not (C, C), or not finite; or sharpness is no finite number.
    """
    plain = isinstance(x, Tensor) and x.layout == torch.strided and not x.is_meta
    if not plain or x.dim() < 2 or not x.is_floating_point():
        raise TypeError(f"x must be tokens (..., t, C), from one_hot_tokens, got {described(x)}.")
    refuse_bad_scores("M", M, (x.shape[-1], x.shape[-1]))
    scores = as_real(sharpness, "sharpness") * (x @ M.to(x.dtype) @ x.mT)
    if not scores.isfinite().all():  # inf - inf is nan
        raise ValueError(
            f"All scores must be finite; of this x and sharpness = {sharpness:g} some are not. "
            "Take a smaller sharpness."
        )
    return scores.masked_fill(~causal_mask(x.shape[-2]), float("-inf")).softmax(dim=-1)


@typed
def second_layer_tokens(x: Tensor, weights: Tensor) -> Tensor:
    """Tokens (..., t, C), and beside them what a first layer with these weights has read.

    The first layer's values are the tokens themselves, and its output gets channels of its own:
    (..., t, 2 C).

    Raises
    ------
    ValueError
        When weights are not (..., t, t).
    """
    t = x.shape[-2] if x.dim() > 1 else 0
    if not t or weights.shape != (*x.shape[:-1], t) or weights.dtype != x.dtype:
        raise ValueError(
            f"weights must be (..., t, t) and of the type of the tokens x (..., t, C), which are "
            f"{described(x)}; got {described(weights)}."
        )
    return torch.cat([x, weights @ x], dim=-1)
