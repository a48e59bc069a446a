"""Attention as the notebooks build it: causal mask, formula, head, multi-head attention, block.

- formula: `causal_mask`, `attention`
- modules: `Head`, `MultiHeadAttention`, `FeedForward`, `Block`
- checks: what they refuse, in words
"""

from helpers.attention.formula import attention, causal_mask
from helpers.attention.modules import Block, FeedForward, Head, MultiHeadAttention

__all__ = ["Block", "FeedForward", "Head", "MultiHeadAttention", "attention", "causal_mask"]
