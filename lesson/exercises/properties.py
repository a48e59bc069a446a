"""What exercises say of an answer's weights, right or wrong: a name, a function, and advice."""

from attention_clinic.probes import no_weight_on_future, rows_sum_to_one

ROWS_SUM_TO_ONE = ("rows sum to 1", lambda out, *_: rows_sum_to_one(out).ok)
NO_FUTURE = (
    "no weight on the future",
    lambda out, *_: no_weight_on_future(out).ok,
    "A low finite score keeps a weight above 0, unless it lies so far below the others that its "
    "weight rounds to 0. Minus infinity, set before the softmax, becomes exactly 0.",
)
