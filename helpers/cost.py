"""What attention costs, and how it costs less: a cache for the past, and a loop over blocks.

`blockwise_attention` is the forward pass of Dao (2023), "FlashAttention-2",
https://arxiv.org/abs/2307.08691, algorithm 1, with the softmax of Milakov and Gimelshein (2018),
"Online normalizer calculation for softmax", https://arxiv.org/abs/1805.02867, algorithm 3.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import torch
from torch import Tensor, nn

from attention_base.arguments import typed
from attention_base.masks import refuse_bad_sizes
from helpers.attention import KVCache, causal_mask
from helpers.attention.checks import refuse_bad_qkv

__all__ = ["KVCache", "blockwise_attention", "cache_bytes", "seconds_of"]


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


@typed
@contextmanager
def seconds_of(model: nn.Module) -> Iterator[list[float]]:
    """Note how long each call of a model takes, in seconds, in the list that it gives.

    Examples
    --------
    >>> layer = nn.Linear(2, 2)
    >>> with seconds_of(layer) as seconds:
    ...     _ = layer(torch.ones(2)), layer(torch.ones(2))
    >>> len(seconds)
    2
    """
    began, seconds = [], []
    before = model.register_forward_pre_hook(lambda *_: began.append(perf_counter()))
    after = model.register_forward_hook(lambda *_: seconds.append(perf_counter() - began.pop()))
    try:
        yield seconds
    finally:
        before.remove()
        after.remove()
