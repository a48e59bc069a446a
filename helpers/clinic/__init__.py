"""What is wrong with an attention? Probes check one property each, `diagnose` runs all of them.

- `probes`: the probes, and the `Finding` that each returns.
- `bugs`: known bugs of attention. `wiring`: known bugs of a block, whose parts are right.
- `inspection`: finds queries, keys, values and weights in a module, and the parts of a block.
- `comparison`: compares an attention or a block with the right one, and with every known bug.
- `diagnosis`: `diagnose`, which runs all probes and names the bug. `report`: what it returns.
"""

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
from helpers.clinic.report import Report

__all__ = [
    "Finding",
    "Report",
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
