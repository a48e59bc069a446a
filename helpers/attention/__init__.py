"""Attention as the notebooks build it: masks, formula, head, multi-head attention, block.

- masks: `causal_mask`, `window_mask`, `prefix_mask`, `padding_mask`; True = may attend
- formula: `attention`
- cache: `KVCache`, for text that is read in pieces
- modules: `Head`, `MultiHeadAttention`, `FeedForward`, `Block`
- checks: what they refuse, in words
"""

from helpers.attention.cache import KVCache
from helpers.attention.formula import attention
from helpers.attention.masks import causal_mask, padding_mask, prefix_mask, window_mask
from helpers.attention.modules import Block, FeedForward, Head, MultiHeadAttention

__all__ = [
    "Block",
    "FeedForward",
    "Head",
    "KVCache",
    "MultiHeadAttention",
    "attention",
    "causal_mask",
    "padding_mask",
    "prefix_mask",
    "window_mask",
]
