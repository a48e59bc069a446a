"""A tiny GPT: the blocks of 07 with the rotary positions of 08, and how it writes.

The model is that of Radford et al. (2018), "Improving Language Understanding by Generative
Pre-Training", section 3.1, with rotary positions in the place of learned ones. Top-k is from Fan et
al. (2018), "Hierarchical Neural Story Generation", https://arxiv.org/abs/1805.04833, section 5.4.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_base.arguments import typed
from attention_base.masks import refuse_bad_sizes
from attention_base.numbers import as_real, as_whole, described
from helpers.attention import Block, KVCache
from helpers.attention.checks import refuse_bad_ids, refuse_bad_text, refuse_odd_rotary


class TinyGPT(nn.Module):
    """Ids of tokens -> logits of the token after each of them.

    Parameters
    ----------
    vocab_size
        V, the number of different tokens.
    context_length
        The most tokens that it reads at once.
    C
        Channels of a token; must be divisible by n_head.
    n_head
        Heads in each block.
    n_layer
        Blocks.
    rotary
        Whether order comes from rotary positions. If not, a learned vector for each position is
        added to the tokens.

    Attributes
    ----------
    config : dict
        The arguments: ``TinyGPT(**model.config)`` has the same sizes.

    Raises
    ------
    ValueError
        When a size is not a whole number of at least 1, or as for `helpers.attention.Block`.

    Examples
    --------
    >>> model = TinyGPT(vocab_size=100, context_length=64)
    >>> model(torch.zeros(2, 10, dtype=torch.long)).shape
    torch.Size([2, 10, 100])
    """

    def __init__(
        self,
        vocab_size: int,
        context_length: int,
        C: int = 64,
        n_head: int = 4,
        n_layer: int = 2,
        *,
        rotary: bool = True,
    ) -> None:
        super().__init__()
        sizes = {"vocab_size": vocab_size, "context_length": context_length}
        sizes |= {"C": C, "n_head": n_head, "n_layer": n_layer}
        refuse_bad_sizes(**sizes)
        refuse_odd_rotary(rotary, C // n_head)
        self.config = {**sizes, "rotary": rotary}
        self.vocab_size, self.context_length = vocab_size, context_length
        self.embedding = nn.Embedding(vocab_size, C)
        self.positions = None if rotary else nn.Embedding(context_length, C)
        self.blocks = nn.ModuleList(Block(C, n_head, rotary=rotary) for _ in range(n_layer))
        self.norm, self.to_logits = nn.LayerNorm(C), nn.Linear(C, vocab_size)

    def forward(
        self,
        ids: Tensor,
        *,
        mask: Tensor | str | None = "causal",
        cache: list[KVCache] | None = None,
    ) -> Tensor:
        """(B, T) ids -> (B, T, V) logits; the mask as for `helpers.attention.Head`.

        With a cache of `new_cache`, ids are the tokens behind those that it has read before.

        Raises
        ------
        TypeError
            When ids are not whole numbers in a tensor, or the cache is not of `new_cache`.
        ValueError
            When they are not (B, T), with those in the cache more than context_length, or not from
            0 to V - 1.
        """
        if cache is not None:
            self._refuse_other_cache(cache)
        n_kept = 0 if cache is None else len(cache[0])
        x = self._embed(ids, n_kept)
        for block, kept in zip(self.blocks, cache or [None] * len(self.blocks), strict=True):
            x = block(x, mask=mask, cache=kept)
        return self.to_logits(self.norm(x))

    def new_cache(self) -> list[KVCache]:
        """Make an empty cache for each block, with room for context_length tokens."""
        return [KVCache(self.context_length) for _ in self.blocks]

    def _refuse_other_cache(self, cache: list[KVCache]) -> None:
        ours = isinstance(cache, list) and all(isinstance(kept, KVCache) for kept in cache)
        if not ours or len(cache) != len(self.blocks):
            raise TypeError(
                f"cache must be a list with a KVCache for each of {len(self.blocks)} blocks, as "
                f"new_cache() makes it, got {described(cache)}."
            )

    @torch.no_grad()
    def attention_weights(self, ids: Tensor, *, mask: Tensor | str | None = "causal") -> Tensor:
        """(B, T) ids -> (n_layer, B, n_head, T, T), the weights of each head of each block."""
        x, found = self._embed(ids), []
        for block in self.blocks:
            found.append(block.attention(block.norm_1(x), mask=mask, return_weights=True)[1])
            x = block(x, mask=mask)
        return torch.stack(found)

    @typed
    @torch.no_grad()
    def generate(
        self,
        ids: Tensor,
        n: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        generator: torch.Generator | None = None,
        *,
        cache: bool = False,
    ) -> Tensor:
        """Append n tokens, one after the other, each drawn from the model's own distribution.

        The model reads at most its last context_length tokens; all of them are returned.

        Parameters
        ----------
        ids
            (B, T), the tokens to go on from, at least one.
        n
            How many to append.
        temperature, top_k
            As for `next_token_probabilities`.
        generator
            Where the random numbers come from; without one, from PyTorch's own.
        cache
            Whether keys and values are kept, so that each token is read once: the same tokens in
            less time. A text that is longer than context_length is read again for each token,
            since the keys of a later block depend on tokens that are no longer read.

        Returns
        -------
        torch.Tensor
            (B, T + n)

        Raises
        ------
        TypeError, ValueError
            As for `forward` and `next_token_probabilities`, and when there is no token or n is
            not a whole number of at least 1.
        """
        refuse_bad_sizes(n=n)
        refuse_bad_ids(ids, self.vocab_size)
        kept = self.new_cache() if cache else None
        for _ in range(n):
            if ids.shape[1] > self.context_length:
                kept = None
            n_read = 0 if kept is None else len(kept[0])
            window = ids[:, n_read:][:, -self.context_length :]
            logits = self(window, cache=kept)[:, -1]  # (B, V)
            probabilities = next_token_probabilities(logits, temperature, top_k)
            drawn = torch.multinomial(probabilities, 1, generator=generator)
            ids = torch.cat([ids, drawn], dim=1)
        return ids

    def _embed(self, ids: Tensor, n_kept: int = 0) -> Tensor:
        """(B, T) ids, behind n_kept tokens in a cache -> (B, T, C)."""
        refuse_bad_ids(ids, self.vocab_size)
        T = n_kept + ids.shape[1]
        if self.context_length < T and n_kept:
            raise ValueError(
                f"The cache and the new tokens together must be at most context_length: got "
                f"{n_kept} + {ids.shape[1]}, context_length={self.context_length}. Begin a new "
                f"cache with the last tokens."
            )
        if self.context_length < T:
            raise ValueError(
                f"T must be at most context_length: got T={T}, "
                f"context_length={self.context_length}. To write, take the last "
                f"ones, ids[:, -{self.context_length}:]; to train, windows[:, :-1]."
            )
        x = self.embedding(ids)
        if self.positions is not None:
            x = x + self.positions.weight[n_kept:T]
        return x


@typed
def next_token_probabilities(
    logits: Tensor, temperature: float = 1.0, top_k: int | None = None
) -> Tensor:
    """Turn logits into the probabilities that a token is drawn with.

    Parameters
    ----------
    logits
        (..., V)
    temperature
        The logits are divided by it. Below 1, likely tokens get likelier; above 1, the others.
    top_k
        How many of the likeliest tokens are kept; the others get a probability of 0. Of equal
        logits at the edge, the first tokens are kept.

    Returns
    -------
    torch.Tensor
        (..., V); each row sums to 1.

    Raises
    ------
    TypeError
        When temperature is not a number, top_k not a whole number, or the logits no floats.
    ValueError
        When temperature is not above 0, top_k not from 1 to V, or the logits hold nan or inf.
    """
    if not logits.is_floating_point() or not logits.dim() or 0 in logits.shape:
        raise TypeError(f"logits must be floats, (..., V), got {described(logits)}.")
    temperature = as_real(temperature, "temperature")
    if temperature < torch.finfo(logits.dtype).tiny:  # what is smaller may be rounded to 0
        raise ValueError(
            f"temperature must be above 0, got {temperature}. "
            "For the likeliest token every time use top_k=1."
        )
    largest = logits.max(dim=-1, keepdim=True).values
    if not largest.isfinite().all():  # a nan is the largest of its row
        raise ValueError(
            "The logits hold nan or inf, so no token can be drawn: the model's parameters do, or "
            "are too large. Train a new model with a smaller learning rate, or load a checkpoint."
        )
    scaled = (logits - largest) / temperature  # at most 0, so that the softmax cannot overflow
    if top_k is not None:
        top_k = as_whole(top_k, "top_k", 1, logits.shape[-1])
        order = logits.argsort(dim=-1, descending=True, stable=True)
        scaled = scaled.scatter(-1, order[..., top_k:], float("-inf"))
    return scaled.softmax(dim=-1)


@typed
def encode(text: str, letters: str) -> Tensor:
    """A text -> (T,) ids, the place of each letter in the vocabulary `letters`.

    Raises
    ------
    ValueError
        When a letter is not in the vocabulary.
    """
    number = {letter: i for i, letter in enumerate(letters)}
    if unknown := sorted(set(text) - set(letters)):
        raise ValueError(
            f"The model has never seen {', '.join(map(repr, unknown[:5]))}; leave such letters "
            f"out. It knows these {len(letters)}: {''.join(filter(str.isprintable, letters))}"
        )
    return torch.tensor([number[letter] for letter in text], dtype=torch.long)


@typed
def decode(ids: Tensor, letters: str) -> str:
    """(T,) ids -> a text.

    Raises
    ------
    TypeError, ValueError
        When there are several texts, or what are no places in the vocabulary.
    """
    refuse_bad_text(ids, len(letters))
    return "".join(letters[i] for i in ids.tolist())


@typed
def next_token_loss(model: Callable[[Tensor], Tensor], windows: Tensor) -> Tensor:
    """The mean cross-entropy of all guesses in windows (B, T + 1): T of them in each.

    The model reads all tokens but the last; the targets are all tokens but the first.
    """
    refuse_bad_ids(windows, math.inf, "windows")
    if windows.shape[1] < 2:
        raise ValueError(
            f"windows must be (B, T + 1), at least one token and the next one, got "
            f"{tuple(windows.shape)}."
        )
    logits, targets = model(windows[:, :-1]), windows[:, 1:]
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def refuse_other_model(model: nn.Module, V: int) -> None:
    """Refuse what is no model of texts with V letters, built in whatever way.

    Raises
    ------
    TypeError, ValueError
        When it is no nn.Module, does not say how many tokens it reads at most, or `logits_of`
        refuses what it makes of one token.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(
            "model must be an nn.Module that turns ids (B, T) into logits (B, T, V), got "
            f"{described(model)}. Make one of its class: TinyGPT(vocab_size, context_length)."
        )
    length = getattr(model, "context_length", None)
    if not isinstance(length, int) or length < 1:
        raise ValueError(
            "The model must have context_length, the most tokens that it reads at once, a whole "
            f"number of at least 1; it is {length}. Keep it in __init__: self.context_length = …"
        )
    with evaluating(model):
        logits_of(model, torch.zeros(1, 1, dtype=torch.long), V)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients for a while; afterwards the mode is as it was before."""
    trains = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(trains)


def logits_of(model: nn.Module, ids: Tensor, V: int) -> Tensor:
    """The logits (B, T, V) of a model, built in whatever way, for ids (B, T).

    Raises
    ------
    ValueError
        When they have another shape.
    """
    logits, wanted = model(ids), (*ids.shape, V)
    if not isinstance(logits, Tensor) or logits.shape != wanted:
        got = tuple(logits.shape) if isinstance(logits, Tensor) else described(logits)
        raise ValueError(
            f"For ids {tuple(ids.shape)} and V = {V} letters, the model must give logits {wanted}, "
            f"got {got}. Make it with vocab_size = {V}, the length of the vocabulary."
        )
    return logits
