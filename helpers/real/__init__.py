"""A published model, SmolLM2-135M-Instruct, in the attention of this series.

`gguf` reads its file, `pieces` cuts texts into its vocabulary, `model` is the model. `study` asks
it, also with a part changed; where it is not installed (`make real`), it gives stored answers.
"""

from helpers.real.study import (
    ANIMALS,
    FOODS,
    log_odds,
    log_odds_with_head_of,
    log_odds_with_maps,
    log_odds_with_vector_of,
    losses,
    maps_of,
    next_words,
    passages,
    three_heads,
    whole_model_in,
)

__all__ = [
    "ANIMALS",
    "FOODS",
    "log_odds",
    "log_odds_with_head_of",
    "log_odds_with_maps",
    "log_odds_with_vector_of",
    "losses",
    "maps_of",
    "next_words",
    "passages",
    "three_heads",
    "whole_model_in",
]
