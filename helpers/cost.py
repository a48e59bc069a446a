"""What attention costs, and how it costs less: a cache for the past, and a loop over blocks.

`ReadsOnce` is a tiny GPT that reads each token once, with any function that keeps a cache.

`blockwise_attention` is the forward pass of Dao (2023), "FlashAttention-2",
https://arxiv.org/abs/2307.08691, algorithm 1, with the softmax of Milakov and Gimelshein (2018),
"Online normalizer calculation for softmax", https://arxiv.org/abs/1805.02867, algorithm 3.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from attention_base.masks import refuse_bad_sizes
from helpers.attention import KVCache, causal_mask
from helpers.attention.checks import refuse_bad_qkv
from helpers.gpt import TinyGPT, refuse_bad_ids

__all__ = ["KVCache", "ReadsOnce", "attend_once", "blockwise_attention", "cache_bytes"]

Cache = tuple[Tensor, Tensor]
Attend = Callable[[Tensor, Tensor, Tensor, Cache], tuple[Tensor, Cache]]


def blockwise_attention(q: Tensor, k: Tensor, v: Tensor, block_size: int = 128) -> Tensor:
    """Causal attention in blocks of queries and keys, without a matrix of all scores.

    For each block of queries, three things are carried from one block of keys to the next: the
    largest score so far, the sum of the exponentials, and the sum of the values weighted by them.
    When the largest score grows, both sums are multiplied by ``exp(old - new)``.

    Parameters
    ----------
    q, k
        (..., T, d) queries and keys.
    v
        (..., T, d_v) values.
    block_size
        How many queries, and how many keys, a block has.

    Returns
    -------
    Tensor
        (..., T, d_v), as `helpers.attention.attention` gives with a causal mask.

    Raises
    ------
    TypeError, ValueError
        As for `helpers.attention.attention`, and when there are not as many queries as keys.

    Examples
    --------
    >>> q, k, v = torch.randn(3, 10, 4)
    >>> blockwise_attention(q, k, v, block_size=4).shape
    torch.Size([10, 4])
    """
    refuse_bad_qkv(q, k, v)
    refuse_bad_sizes(block_size=block_size)
    T, T_k = q.shape[-2], k.shape[-2]
    if T_k != T:
        raise ValueError(
            f"Causal attention in blocks takes as many queries as keys, since it does not say "
            f"where fewer of them stand; got T_q = {T}, T_k = {T_k}. Behind a cache use "
            "attention(q, k, v, causal_mask(T_q, T_k))."
        )
    outs = []
    for i in range(0, T, block_size):
        queries = q[..., i : i + block_size, :] / math.sqrt(q.shape[-1])
        largest, total, weighted = torch.tensor(-math.inf), 0.0, 0.0
        for j in range(0, i + 1, block_size):  # all keys of later blocks are in the future
            scores = queries @ k[..., j : j + block_size, :].mT  # (..., block, block)
            if i == j:
                visible = causal_mask(scores.shape[-1]).to(q.device)
                scores = scores.masked_fill(~visible, -math.inf)
            new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))  # (..., block, 1)
            rescale, e = torch.exp(largest - new), torch.exp(scores - new)
            total = total * rescale + e.sum(dim=-1, keepdim=True)
            weighted = weighted * rescale + e @ v[..., j : j + block_size, :]
            largest = new
        outs.append(weighted / total)
    return torch.cat(outs, dim=-2)


def cache_bytes(
    n_layer: int, n_kv_head: int, head_size: int, T: int, B: int = 1, bytes_per_number: int = 2
) -> int:
    """How many bytes the keys and values of T tokens take, in all layers.

    Parameters
    ----------
    n_layer
        Attention modules, one in each block.
    n_kv_head
        Heads of keys and values; query heads do not count.
    head_size
        Channels of a key, and of a value.
    T, B
        Tokens of a text, and texts.
    bytes_per_number
        2 for float16 and bfloat16, 4 for float32.

    Raises
    ------
    ValueError
        When one of them is not a whole number of at least 1.

    Examples
    --------
    >>> cache_bytes(32, 32, 128, 4096)  # Llama 2, 7B: 2 GB for one text of 4,096 tokens
    2147483648
    """
    refuse_bad_sizes(
        n_layer=n_layer, n_kv_head=n_kv_head, head_size=head_size, T=T, B=B,
        bytes_per_number=bytes_per_number,
    )  # fmt: skip
    return 2 * n_layer * n_kv_head * head_size * T * B * bytes_per_number  # 2: keys and values


class ReadsOnce(nn.Module):
    """A tiny GPT that is called with all tokens so far, and reads those that it has not read yet.

    Parameters
    ----------
    model
        With rotary positions. Its parameters are used, and nothing in it is changed.
    attend
        ``attend(q, k, v, cache) -> (out, cache)``, the attention of each block. q, k and v are
        those of the new tokens, (B, n_head, T_new, d), not turned by their positions yet. The
        cache is what the call before it returned: a pair of tensors with four axes. The first one
        is a pair of empty ones, (B, n_head, 0, d).

    Raises
    ------
    ValueError
        When the model has no rotary positions.

    Examples
    --------
    >>> def newest(q, k, v, cache):  # each token attends to itself only
    ...     return v, cache
    >>> reader = ReadsOnce(TinyGPT(vocab_size=100, context_length=64), newest)
    >>> ids = torch.zeros(2, 10, dtype=torch.long)
    >>> reader(ids[:, :7]).shape, reader(ids).shape
    (torch.Size([2, 7, 100]), torch.Size([2, 3, 100]))
    """

    def __init__(self, model: TinyGPT, attend: Attend) -> None:
        super().__init__()
        if not model.config["rotary"]:
            raise ValueError(
                "attend turns queries and keys by their positions, so the model needs "
                "rotary=True; this one has rotary=False and adds learned positions to its tokens."
            )
        self.model, self.attend = model, attend
        self.read: Tensor | None = None  # (B, T_old), the tokens that it has read
        self.caches: list[Cache] = []  # one for each block

    @torch.no_grad()
    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) ids of all tokens so far -> (B, T_new, V) logits of those not read before.

        When it raises, it has read nothing of these ids.

        Raises
        ------
        TypeError
            When attend does not return a tensor and a pair of tensors with four axes.
        ValueError
            When ids do not begin with the tokens that it has read, add none to them, or are more
            than context_length; when the output of attend has another shape than v.
        """
        model = self.model
        refuse_bad_ids(ids, model.vocab_size)
        self._refuse_other_text(ids)
        T_old = 0 if self.read is None else self.read.shape[1]
        x, caches = model.embedding(ids[:, T_old:]), []
        for i, block in enumerate(model.blocks):
            layer, normed = block.attention, block.norm_1(x)
            q, k, v = (
                linear(normed).unflatten(-1, (layer.n_head, -1)).transpose(1, 2)
                for linear in (layer.query, layer.key, layer.value)
            )
            cache = self.caches[i] if self.caches else (k[:, :, :0], v[:, :, :0])
            out, cache = attend_once(self.attend, q, k, v, cache)
            caches.append(cache)
            x = x + layer.proj(out.transpose(1, 2).flatten(2))
            x = x + block.feed_forward(block.norm_2(x))
        self.read, self.caches = ids.clone(), caches
        return model.to_logits(model.norm(x))

    def _refuse_other_text(self, ids: Tensor) -> None:
        n, most = ids.shape[1], self.model.context_length
        if n > most:
            raise ValueError(
                f"T must be at most context_length: got T={n}, context_length={most}. A cache "
                "cannot drop its first tokens, since later ones have attended to them."
            )
        if self.read is None:
            return
        T_old = self.read.shape[1]
        new = "For another text make a new ReadsOnce(model, attend)."
        if len(ids) != len(self.read):
            raise ValueError(f"It has read {len(self.read)} texts, and ids are {len(ids)}. {new}")
        if n <= T_old:
            raise ValueError(
                f"It has read {T_old} tokens already, so ids need at least {T_old + 1}: all of "
                f"these and a new one; got {n}. {new}"
            )
        if not torch.equal(ids[:, :T_old], self.read):
            raise ValueError(f"The first {T_old} tokens of ids are not those it has read. {new}")


def attend_once(
    attend: Attend, q: Tensor, k: Tensor, v: Tensor, cache: Cache
) -> tuple[Tensor, Cache]:
    """Call attend, as `ReadsOnce` does, and refuse what it returns if that cannot be used.

    Raises
    ------
    TypeError
        When it is not a tensor and a pair of tensors with four axes.
    ValueError
        When the first of these has another shape than v.
    """
    returned = attend(q, k, v, cache)
    wanted = "attend must return (out, (keys, values)), three tensors with four axes each"
    pair = returned[1] if isinstance(returned, tuple | list) and len(returned) == 2 else None
    pair = pair if isinstance(pair, tuple | list | Tensor) and len(pair) == 2 else None
    tensors = [returned[0], *pair] if pair is not None else []
    if not tensors or any(not isinstance(z, Tensor) or z.dim() != 4 for z in tensors):
        raise TypeError(f"{wanted}; it returned {_in_words(returned)}.")
    if returned[0].shape != v.shape:
        raise ValueError(
            f"out must be (B, n_head, T_new, d) = {tuple(v.shape)}, an output for each new token; "
            f"attend returned {tuple(returned[0].shape)}."
        )
    return tensors[0], (tensors[1], tensors[2])


def _in_words(value: object) -> str:
    """What somebody returned: tensors by their shapes."""
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_in_words, value))})"
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return "None" if value is None else type(value).__name__
