"""Pictures of attention: each is drawn, exists as an HTML table, and says its numbers in words."""

from helpers.pictures.base import Picture, tables
from helpers.pictures.diagrams import ribbon, why_this_weight
from helpers.pictures.drawings import plane, row_times_column, sheets, softmax_steps, staircase
from helpers.pictures.lines import curves
from helpers.pictures.matrix import heatmap, heatmaps

__all__ = [
    "Picture",
    "curves",
    "heatmap",
    "heatmaps",
    "plane",
    "ribbon",
    "row_times_column",
    "sheets",
    "softmax_steps",
    "staircase",
    "tables",
    "why_this_weight",
]
