"""Pictures of attention: each is drawn, exists as an HTML table, and says its numbers in words.

- matrix: `heatmap`, `heatmaps`
- tensors: `sheets`, `row_times_column`, `ribbon`
- tokens: `staircase`, `guessed_next`
- weights: `score_arrows`, `turned_arrows`, `weighted_sum`, `softmax_steps`, `why_this_weight`
- lines: `curves`
- charts: `scatter`, `bars`
- diagrams: `lookup_diagram`, `head_diagram`, `multi_head_diagram`, `block_diagram`,
  `encoder_decoder_diagram`
- loops: `ladder`, the series in one picture
- for all of them: base (`Picture`, `tables`, figures and texts), table (one description of a table
  for text, HTML and drawing), colours, checks (what is refused)
"""

from helpers.pictures.base import Picture, tables
from helpers.pictures.charts import bars, scatter
from helpers.pictures.diagrams import (
    block_diagram,
    encoder_decoder_diagram,
    head_diagram,
    lookup_diagram,
    multi_head_diagram,
)
from helpers.pictures.lines import curves
from helpers.pictures.loops import ladder
from helpers.pictures.matrix import heatmap, heatmaps
from helpers.pictures.tensors import ribbon, row_times_column, sheets
from helpers.pictures.tokens import guessed_next, staircase
from helpers.pictures.weights import (
    score_arrows,
    softmax_steps,
    turned_arrows,
    weighted_sum,
    why_this_weight,
)

__all__ = [
    "Picture",
    "bars",
    "block_diagram",
    "curves",
    "encoder_decoder_diagram",
    "guessed_next",
    "head_diagram",
    "heatmap",
    "heatmaps",
    "ladder",
    "lookup_diagram",
    "multi_head_diagram",
    "ribbon",
    "row_times_column",
    "scatter",
    "score_arrows",
    "sheets",
    "softmax_steps",
    "staircase",
    "tables",
    "turned_arrows",
    "weighted_sum",
    "why_this_weight",
]
