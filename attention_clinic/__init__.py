"""What is wrong with an attention? Probes check one property each, `diagnose` runs all of them.

- `probes`: the probes, and the `Finding` that each returns.
- `bugs`: known bugs of attention, told in `attention.md`. `wiring`: known bugs of a block, whose
  parts are right, told in `block.md`. `variants`: other queries and keys, such as rotated ones.
  `fitted`: what was done to the scores, found from the outputs.
- `names`: the usual names of layers, told in `names.md`. `calls`: how a module is called.
- `inspection` finds attentions in a module and what they compute, `readings` their queries, keys
  and values, `blocks` the parts of a block, `inline` those of a block written in one class.
- `before`: what happens to x before a part reads it.
- `comparison`: compares an attention or a block with the right one, and with every known bug.
  `heads`: compares what is made of the outputs of attentions. `lists`: layers that stand in a
  Python list. `crashes`: what to say about a module that raises an error.
- `assertion`: `assert_healthy`, for pytest. `command`: the command ``attention-clinic``; in its
  process `child`, `targets` finds what it names, `making` makes a module from its class, and
  `watch` notes what runs and how long.
- `diagnosis`: `diagnose`; `examination`: its steps, one after another, each on the `subject`:
  `from_outside`, `from_inside`, `gradients`; `told`: what they find, and how it adds up. `report`:
  what `diagnose` returns.
"""

import importlib

TYPE_CHECKING = False  # as in typing, of which the folder that one stands in may have a file
if TYPE_CHECKING:
    from attention_clinic.assertion import assert_healthy
    from attention_clinic.diagnosis import diagnose
    from attention_clinic.probes import (
        Finding,
        finite,
        gradients_reach,
        matches_reference,
        no_leak,
        no_weight_on_future,
        reach,
        rows_sum_to_one,
        same_for_prefix,
        sequences_stay_apart,
    )
    from attention_clinic.report import Report

__version__ = "0.2.0"
__all__ = [
    "Finding",
    "Report",
    "assert_healthy",
    "diagnose",
    "finite",
    "gradients_reach",
    "matches_reference",
    "no_leak",
    "no_weight_on_future",
    "reach",
    "rows_sum_to_one",
    "same_for_prefix",
    "sequences_stay_apart",
]


def __getattr__(name: str) -> object:
    """Import what is asked for: the command does without PyTorch, which takes seconds."""
    for room in ("assertion", "diagnosis", "probes", "report") if name in __all__ else ():
        importlib.import_module("attention_base")  # it says so where there is no PyTorch
        found = vars(importlib.import_module(f"{__name__}.{room}"))
        if name in found:
            return found[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
