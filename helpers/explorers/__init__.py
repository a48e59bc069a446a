"""Live pictures: a few controls and one drawing that follows them."""

from helpers.explorers.attention import (
    explore_depth,
    explore_heads,
    explore_query,
    explore_scaling,
)
from helpers.explorers.explorer import (
    Explorer,
    explore_axis,
    explore_prefix,
    explore_softmax,
    explore_weights,
)

__all__ = [
    "Explorer",
    "explore_axis",
    "explore_depth",
    "explore_heads",
    "explore_prefix",
    "explore_query",
    "explore_scaling",
    "explore_softmax",
    "explore_weights",
]
