"""How much a fact about an answer explains: the one table that puts observations in order."""

from enum import IntEnum, auto


class Rank(IntEnum):
    """What kind of fact it is; the first explains most. Each with a sentence of its kind.

    Of two of one rank the one is told whose experiment stands first in `KINDS`. CERTAIN, COMPLETE
    and STRONG are limits: a rank that moves across one also changes what else is told.
    """

    NOT_REPEATABLE = auto()  # "Your result is another one each time: …"
    STEP = auto()  # "Your result is `x` itself, unchanged."
    OTHER_FORM = auto()  # "The numbers are right, but axes B and T have changed places."
    CERTAIN = OTHER_FORM  # up to here nothing explains more: the search ends
    PARTS_MOVED = auto()  # "The parts are right, but in other places: …"
    ONE_RULE = auto()  # "Every number is T times what it should be."
    UNUSED_STEP = auto()  # "You compute `weights`, and nothing uses it."
    FROM_NOTEBOOK = auto()  # "Your function uses `tokens`, a tensor of the notebook …"
    OTHER_BAND = auto()  # "Row t has its weights on the tokens from t + 2 on; it should …"
    TWO_MISTAKES = auto()  # "Two mistakes at once: no mask; no scale."
    COMPLETE = TWO_MISTAKES  # up to here one fact says all: another sentence would only distract
    ALL_ROWS = auto()  # "Each column of your result sums to 1; each row should sum to 1."
    CAUSE = auto()  # "Output 0 changes when token 2 changes: it sees the future."
    STRONG = CAUSE  # up to here a fact points to a cause by itself
    PLACE_IGNORED = auto()  # "Your result does not change when token 0 of `x` changes."
    ONE_ROW = auto()  # "Row 2 is 1/3 1/3 1/3; it should be 1/6 1/3 1/2."
    ROW_FACTORS = auto()  # "Within one row, all numbers are off by the same factor: …"
    SHAPE = auto()  # "In letters, your result is (B, C); it should be (B, T, C)."
    WEIGHTED_SUM = auto()  # "Output 2 adds up 1/2 of token 1; it should be …"
    SOME_INPUTS = auto()  # "Your result is right where B = T, and is wrong where they differ."
    NOT_FINITE = auto()  # "Output 0 of your result is nan, and nothing else is."
    CORNER = auto()  # "Your function works where B = 1, and raises where it is more."
    SOME_PLACES = auto()  # "Only outputs 1 to 3 are right."
    ROW_SUM = auto()  # "Row 1 sums to 2, not 1."
    SUMS_HOLD = auto()  # "The sum of each row is right, the single numbers are not."
    ONE_INPUT = auto()  # "Your function works for the first input, and is wrong for the second."
    MOST_PLACES = auto()  # as SOME_PLACES, but others are right here and there, too
