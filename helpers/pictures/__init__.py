"""Pictures of attention: each is drawn, exists as an HTML table, and says its numbers in words.

- matrix: `heatmap`, `heatmaps`. lines: `curves`. charts: `scatter`, `bars`. tokens: `guessed_next`
- figures: what one notebook shows once, by its number
- for all of them: base (`Picture`, `tables`, figures and texts), table (one description of a table
  for text, HTML and drawing), diagrams (boxes and arrows), colours, checks (what is refused)
"""

from helpers.pictures.base import Picture, tables
from helpers.pictures.charts import bars, scatter
from helpers.pictures.figures.nb00 import sheets
from helpers.pictures.figures.nb01 import staircase, weighted_sum
from helpers.pictures.figures.nb02 import row_times_column
from helpers.pictures.figures.nb03 import softmax_steps
from helpers.pictures.figures.nb04 import (
    head_diagram,
    lookup_diagram,
    why_this_weight,
)
from helpers.pictures.figures.nb06 import multi_head_diagram, ribbon
from helpers.pictures.figures.nb07 import block_diagram, gpt_diagram
from helpers.pictures.figures.nb08 import turned_arrows
from helpers.pictures.figures.nb09 import encoder_decoder_diagram
from helpers.pictures.figures.nb14 import ladder
from helpers.pictures.lines import curves
from helpers.pictures.matrix import heatmap, heatmaps
from helpers.pictures.tokens import guessed_next

__all__ = [
    "Picture",
    "bars",
    "block_diagram",
    "curves",
    "encoder_decoder_diagram",
    "gpt_diagram",
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
    "sheets",
    "softmax_steps",
    "staircase",
    "tables",
    "turned_arrows",
    "weighted_sum",
    "why_this_weight",
]
