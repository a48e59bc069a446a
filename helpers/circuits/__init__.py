"""Heads whose rules are known: written by hand, and found in trained models.

- by_hand: `score_from_blocks`, `one_hot_tokens`, `written_weights`, `second_layer_tokens`
- interventions: `ablate` a head, `patch` a pattern, `attention_layers`; `previous_token_score`,
  `induction_score`
- learned: `learn_rule`, the same rules by gradient descent
- moments: `training_moments`, two layers while they learn, stored by `make circuits`
- repeats: the task `repeated`, the model `AttentionOnly`, `train_on_repeats`, `on_known_letters`,
- rules: the `RULES` of notebook 11, with what checks them, and `certificate`
"""

from helpers.circuits.by_hand import (
    one_hot_tokens,
    score_from_blocks,
    second_layer_tokens,
    written_weights,
)
from helpers.circuits.interventions import (
    ablate,
    attention_layers,
    induction_score,
    patch,
    previous_token_score,
)
from helpers.circuits.learned import learn_rule
from helpers.circuits.moments import TrainingMoments, training_moments
from helpers.circuits.repeats import (
    AttentionOnly,
    on_known_letters,
    repeated,
    train_on_repeats,
)
from helpers.circuits.rules import RULES, Certificate, Rule, certificate

__all__ = [
    "RULES",
    "AttentionOnly",
    "Certificate",
    "Rule",
    "TrainingMoments",
    "ablate",
    "attention_layers",
    "certificate",
    "induction_score",
    "learn_rule",
    "on_known_letters",
    "one_hot_tokens",
    "patch",
    "previous_token_score",
    "repeated",
    "score_from_blocks",
    "second_layer_tokens",
    "train_on_repeats",
    "training_moments",
    "written_weights",
]
