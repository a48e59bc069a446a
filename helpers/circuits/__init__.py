"""Heads whose rules are known: written by hand, and found in trained models.

- by_hand: `score_from_blocks`, `one_hot_tokens`, `written_weights`, `second_layer_tokens`
- interventions: `ablate` a head, `patch` a pattern, `attention_layers`; `previous_token_score`,
  `induction_score`
- learned: `learn_rule`, the same rules by gradient descent
- moments: `training_moments`, two layers while they learn, stored by `make circuits`
- patterns: `tokens_back`, `equal_weights`, `followers`, `letter_followers`, to patch in
- repeats: the task `repeated`, the model `AttentionOnly`, `train_on_repeats`, `on_known_letters`,
  `held_out`; `copied_right`, a rule without a model
- rules: the `RULES` of notebook 11, with what checks them, and `certificate`
- trained: `trained_on_repeats`, models that `make circuits` has trained
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
from helpers.circuits.patterns import equal_weights, followers, letter_followers, tokens_back
from helpers.circuits.repeats import (
    AttentionOnly,
    copied_right,
    held_out,
    on_known_letters,
    repeated,
    train_on_repeats,
)
from helpers.circuits.rules import RULES, Certificate, Rule, certificate
from helpers.circuits.trained import trained_on_repeats

__all__ = [
    "RULES",
    "AttentionOnly",
    "Certificate",
    "Rule",
    "TrainingMoments",
    "ablate",
    "attention_layers",
    "certificate",
    "copied_right",
    "equal_weights",
    "followers",
    "held_out",
    "induction_score",
    "learn_rule",
    "letter_followers",
    "on_known_letters",
    "one_hot_tokens",
    "patch",
    "previous_token_score",
    "repeated",
    "score_from_blocks",
    "second_layer_tokens",
    "tokens_back",
    "train_on_repeats",
    "trained_on_repeats",
    "training_moments",
    "written_weights",
]
