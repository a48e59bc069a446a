"""What is wrong with an attention? Probes ask one question each; `diagnose` asks all of them."""

from helpers.clinic.diagnosis import diagnose
from helpers.clinic.probes import (
    Finding,
    finite,
    gradients_reach,
    matches_reference,
    no_leak,
    no_weight_on_future,
    reach,
    rows_sum_to_one,
    sequences_stay_apart,
)

__all__ = [
    "Finding",
    "diagnose",
    "finite",
    "gradients_reach",
    "matches_reference",
    "no_leak",
    "no_weight_on_future",
    "reach",
    "rows_sum_to_one",
    "sequences_stay_apart",
]
