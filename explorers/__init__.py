"""Live pictures: a few controls and one drawing that follows them.

`explorer` holds what all of them share. One file each, by the notebook that shows it: `context`
(00), `prefix` (01), `weights` (02), `softmax` (03), `query` (04), `scaling` (05), `heads` (06),
`depth` (07), `rotary` (08), `attends` (09), `sampling` (10), `painter` (11), `moments`
(12), `ward` (13), `online_softmax` and `cache` (14), `sentence` (15). `quilt` draws a matrix of
squares for 11 and 12.
"""

import attention_base  # noqa: F401  (it says so where there is no PyTorch)
from explorers.attends import explore_attends
from explorers.cache import explore_cache
from explorers.context import explore_context
from explorers.depth import explore_depth
from explorers.explorer import Explorer
from explorers.heads import explore_heads
from explorers.moments import explore_moments
from explorers.online_softmax import explore_online_softmax
from explorers.painter import explore_painter
from explorers.prefix import explore_prefix
from explorers.query import explore_query
from explorers.rotary import explore_rotary
from explorers.sampling import explore_sampling
from explorers.scaling import explore_scaling
from explorers.sentence import explore_sentence
from explorers.softmax import explore_softmax
from explorers.ward import explore_ward
from explorers.weights import explore_weights

__all__ = [
    "Explorer",
    "explore_attends",
    "explore_cache",
    "explore_context",
    "explore_depth",
    "explore_heads",
    "explore_moments",
    "explore_online_softmax",
    "explore_painter",
    "explore_prefix",
    "explore_query",
    "explore_rotary",
    "explore_sampling",
    "explore_scaling",
    "explore_sentence",
    "explore_softmax",
    "explore_ward",
    "explore_weights",
]
