"""A head, multi-head attention, the feed-forward network and the block.

Multi-head attention is section 3.2.2 of Vaswani et al. (2017), "Attention Is All You Need",
https://arxiv.org/abs/1706.03762, the block section 3.1.
"""

import torch
import torch.nn.functional as F
from torch import nn

from attention_base.masks import refuse_bad_sizes
from helpers import positions
from helpers.attention.cache import KVCache
from helpers.attention.checks import (
    refuse_bad_channels,
    refuse_bad_dropout,
    refuse_bad_input,
    refuse_cache_of_context,
    refuse_odd_rotary,
    refuse_rotary_of_context,
    refuse_uneven_groups,
    refuse_uneven_heads,
    refuse_unknown_norm,
    refuse_weights_of_fused,
)
from helpers.attention.formula import attention
from helpers.attention.masks import causal_mask


class Head(nn.Module):
    """One attention head: three Linear layers give queries, keys and values.

    Parameters
    ----------
    C
        Channels of a token.
    head_size
        Channels of a query, a key and a value.
    rotary
        Whether queries and keys are turned by their positions (`helpers.positions.rotary`).

    Raises
    ------
    ValueError
        When a size is not a whole number of at least 1, or with rotary the head_size is odd.

    Examples
    --------
    >>> Head(32, 16)(torch.randn(4, 8, 32)).shape
    torch.Size([4, 8, 16])
    """

    def __init__(self, C: int, head_size: int, *, rotary: bool = False) -> None:
        super().__init__()
        refuse_bad_sizes(C=C, head_size=head_size)
        refuse_odd_rotary(rotary, head_size)
        self.rotary = rotary
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
        """Self-attention over x or, with a context, cross-attention from x to the context.

        Parameters
        ----------
        x
            (B, T_q, C), the tokens that queries are computed from.
        context
            (B, T_k, C), the tokens that keys and values are computed from; x when left out. No
            token of another sequence is earlier or later than one of x, so a context needs
            ``mask=None`` or a mask of its own.
        mask
            "causal": each token attends to itself and everything before it. None: to everything.
            Or a bool tensor, **True = may attend**, that broadcasts to (B, T_q, T_k).
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
        refuse_bad_input(x, context, mask, self.query)
        refuse_rotary_of_context(self.rotary, context)
        context = x if context is None else context
        q = self.query(x)  # (B, T_q, head_size)
        k, v = self.key(context), self.value(context)  # (B, T_k, head_size)
        if self.rotary:
            q, k = positions.rotary(q), positions.rotary(k)
        if isinstance(mask, str):  # "causal"
            mask = causal_mask(x.shape[1]).to(x.device)
        out, weights = attention(q, k, v, mask)
        return (out, weights) if return_weights else out


class MultiHeadAttention(nn.Module):
    """`n_head` heads in one batched matmul, each in its own channels, and an output projection.

    Parameters
    ----------
    C
        Channels of a token; must be divisible by n_head.
    n_head
        Number of heads; each has C / n_head channels.
    n_kv_head
        Number of heads of keys and values, by which n_head must be divisible; n_head when left out.
        Query heads that stand side by side share one: grouped-query attention (Ainslie et al. 2023,
        https://arxiv.org/abs/2305.13245), with a single one multi-query attention.
    fused
        Whether PyTorch's ``F.scaled_dot_product_attention`` does the arithmetic: the same
        numbers in less time and memory, but no weights to look at.
    dropout
        Probability with which an attention weight is set to 0 in training.
    rotary
        Whether queries and keys are turned by their positions (`helpers.positions.rotary`).
    rotary_base
        Of the speeds of these turns; models that read long texts have learned with larger ones.

    Raises
    ------
    ValueError
        When a size is not a whole number of at least 1, C is not divisible by n_head, n_head not by
        n_kv_head, dropout not in [0, 1), or with rotary the channels of a head are odd in number.

    Examples
    --------
    >>> multi_head = MultiHeadAttention(32, 4)
    >>> out, weights = multi_head(torch.randn(2, 8, 32), return_weights=True)
    >>> out.shape, weights.shape
    (torch.Size([2, 8, 32]), torch.Size([2, 4, 8, 8]))
    """

    def __init__(
        self,
        C: int,
        n_head: int,
        n_kv_head: int | None = None,
        *,
        fused: bool = False,
        dropout: float = 0.0,
        rotary: bool = False,
        rotary_base: float = 10_000.0,
    ) -> None:
        super().__init__()
        n_kv_head = n_head if n_kv_head is None else n_kv_head
        refuse_bad_sizes(C=C, n_head=n_head, n_kv_head=n_kv_head)
        refuse_uneven_heads(C, n_head)
        refuse_uneven_groups(n_head, n_kv_head)
        refuse_bad_dropout(dropout)
        refuse_odd_rotary(rotary, C // n_head)
        self.rotary, self.rotary_base = rotary, rotary_base
        self.n_head, self.n_kv_head, self.head_size = n_head, n_kv_head, C // n_head
        self.n_shared = n_head // n_kv_head  # query heads that share one head of keys and values
        self.fused, self.dropout = fused, dropout
        self.query = nn.Linear(C, C, bias=False)
        self.key = nn.Linear(C, n_kv_head * self.head_size, bias=False)
        self.value = nn.Linear(C, n_kv_head * self.head_size, bias=False)
        self.proj = nn.Linear(C, C)

    def forward(
        self,
        x: torch.Tensor,
        *,
        context: torch.Tensor | None = None,
        mask: torch.Tensor | str | None = "causal",
        return_weights: bool = False,
        cache: KVCache | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Self-attention over x or cross-attention from x to a context, once in each head.

        Parameters
        ----------
        x, context, mask, return_weights
            As for `Head`. A mask that broadcasts to (B, T_q, T_k) holds for all heads; one with
            four axes is (B, n_head, T_q, T_k).
        cache
            Keys and values of earlier tokens, to which those of x are appended: x goes on where
            they end, and T_k counts all of them.

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
            As for `Head`, when a fused module is asked for weights, and when a cache is full,
            belongs to another batch, or meets a context.
        """
        refuse_weights_of_fused(self.fused, return_weights)
        n_kept = 0 if cache is None else len(cache)
        refuse_bad_input(x, context, mask, self.query, self.n_head, n_kept)
        refuse_rotary_of_context(self.rotary, context)
        refuse_cache_of_context(cache, context)
        context = x if context is None else context
        q = self._split(self.query(x))  # (B, n_head, T_q, head_size)
        k, v = self._split(self.key(context)), self._split(self.value(context))
        if self.rotary:
            places, sizes = torch.arange(n_kept, n_kept + x.shape[1]), (q.shape[1], k.shape[1])
            # In one call: for a single token, most of the time goes into its angles.
            both = positions.rotary(torch.cat([q, k], dim=1), places, base=self.rotary_base)
            q, k = both.split(sizes, dim=1)
        if cache is not None:
            k, v = cache.append(k, v)  # (B, n_kv_head, T_k, head_size)
        k, v = self._for_each_head(k), self._for_each_head(v)
        dropout = self.dropout if self.training else 0.0
        is_causal = self.fused and isinstance(mask, str) and n_kept == 0
        if isinstance(mask, torch.Tensor):  # one that holds for all heads gets an axis for them
            mask = mask[:, None] if mask.dim() == 3 else torch.atleast_2d(mask)
        elif is_causal or x.shape[1] == 1:  # a single token may attend to all keys that there are
            mask = None
        elif mask is not None:
            # PyTorch's is_causal lets query 0 attend to key 0 only, so kept keys need this mask.
            mask = causal_mask(x.shape[1], k.shape[2]).to(x.device)
        if self.fused:
            out = F.scaled_dot_product_attention(
                q, k, v, mask, dropout_p=dropout, is_causal=is_causal
            )
        else:
            out, weights = attention(q, k, v, mask, dropout=dropout)
        out = self.proj(out.transpose(1, 2).flatten(2))  # (B, T_q, C)
        return (out, weights) if return_weights else out

    def _split(self, z: torch.Tensor) -> torch.Tensor:
        """(B, T, n * head_size) -> (B, n, T, head_size), for n heads."""
        B, T, _ = z.shape
        return z.view(B, T, -1, self.head_size).transpose(1, 2)

    def _for_each_head(self, z: torch.Tensor) -> torch.Tensor:
        """(B, n_kv_head, T, head_size) -> (B, n_head, T, head_size), shared by neighbours."""
        return z if self.n_shared == 1 else z.repeat_interleave(self.n_shared, dim=1)


class FeedForward(nn.Module):
    """Feed-forward network: two Linear layers with a ReLU between them, for each token alone.

    Parameters
    ----------
    C
        Channels of a token; the hidden layer has four times as many.

    Raises
    ------
    ValueError
        When C is not a whole number of at least 1.
    """

    def __init__(self, C: int) -> None:
        super().__init__()
        refuse_bad_sizes(C=C)
        self.wide = nn.Linear(C, 4 * C)
        self.proj = nn.Linear(4 * C, C)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., C) -> (..., C)."""
        refuse_bad_channels("x", x, self.wide)
        return self.proj(torch.relu(self.wide(x)))


class Block(nn.Module):
    """Self-attention, then a feed-forward network, each added to the residual stream.

    Parameters
    ----------
    C
        Channels of a token; must be divisible by n_head.
    n_head
        Number of heads.
    norm
        "pre": ``x + f(norm(x))``, usual today. "post": ``norm(x + f(x))``, as in the paper of 2017.
    rotary
        As for `MultiHeadAttention`.

    Raises
    ------
    ValueError
        As for `MultiHeadAttention`, and when norm is neither "pre" nor "post".
    """

    def __init__(self, C: int, n_head: int, norm: str = "pre", *, rotary: bool = False) -> None:
        super().__init__()
        refuse_unknown_norm(norm)
        self.norm = norm
        self.attention = MultiHeadAttention(C, n_head, rotary=rotary)
        self.feed_forward = FeedForward(C)
        self.norm_1, self.norm_2 = nn.LayerNorm(C), nn.LayerNorm(C)

    def forward(
        self,
        x: torch.Tensor,
        *,
        mask: torch.Tensor | str | None = "causal",
        cache: KVCache | None = None,
    ) -> torch.Tensor:
        """(B, T, C) -> (B, T, C), causal unless it is given another mask.

        The mask is as for `Head`, and the cache as for `MultiHeadAttention`.
        """
        n_kept = 0 if cache is None else len(cache)
        refuse_bad_input(x, None, mask, self.attention.query, self.attention.n_head, n_kept)
        # An attention that a learner puts in this place need not know of caches.
        options = {"mask": mask} if cache is None else {"mask": mask, "cache": cache}
        if self.norm == "post":
            x = self.norm_1(x + self.attention(x, **options))
            return self.norm_2(x + self.feed_forward(x))
        x = x + self.attention(self.norm_1(x), **options)
        return x + self.feed_forward(self.norm_2(x))
