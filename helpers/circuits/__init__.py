"""Heads whose rules are known: written by hand, and found in trained models.

- by_hand: `score_from_blocks`, `one_hot_tokens`, `written_weights`, `second_layer_tokens`
- rules: the `RULES` of notebook 11, with what checks them, and `certificate`
"""

from helpers.circuits.by_hand import (
    one_hot_tokens,
    score_from_blocks,
    second_layer_tokens,
    written_weights,
)
from helpers.circuits.rules import RULES, Certificate, Rule, certificate

__all__ = [
    "RULES",
    "Certificate",
    "Rule",
    "certificate",
    "one_hot_tokens",
    "score_from_blocks",
    "second_layer_tokens",
    "written_weights",
]
