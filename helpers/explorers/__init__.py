"""Live pictures: a few controls and one drawing that follows them.

`explorer` holds what all of them share. One file each, by the notebook that shows it: `context`
(00), `prefix` (01), `weights` (02), `softmax` (03), `query` (04), `scaling` (05), `heads` (06),
`depth` (07), `rotary` (08), `attends` (09), `sampling` (10), `painter` (11), `moments`
(12), `ward` (13), `online_softmax` and `cache` (14). `quilt` draws a matrix of squares for 11, 12.
"""

from helpers.explorers.attends import explore_attends
from helpers.explorers.cache import explore_cache
from helpers.explorers.context import explore_context
from helpers.explorers.depth import explore_depth
from helpers.explorers.explorer import Explorer
from helpers.explorers.heads import explore_heads
from helpers.explorers.moments import explore_moments
from helpers.explorers.online_softmax import explore_online_softmax
from helpers.explorers.painter import explore_painter
from helpers.explorers.prefix import explore_prefix
from helpers.explorers.query import explore_query
from helpers.explorers.rotary import explore_rotary
from helpers.explorers.sampling import explore_sampling
from helpers.explorers.scaling import explore_scaling
from helpers.explorers.softmax import explore_softmax
from helpers.explorers.ward import explore_ward
from helpers.explorers.weights import explore_weights

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
    "explore_softmax",
    "explore_ward",
    "explore_weights",
]
