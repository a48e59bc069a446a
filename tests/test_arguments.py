"""Wrong arguments get words: whatever is given to a function of the helpers, for any argument.

Either the function takes the value, or a check of the helpers refuses it as TypeError or
ValueError. No AttributeError, and no message of PyTorch or NumPy, from the depths.
"""

import math
import re
import traceback

import numpy as np
import pytest
import torch

import attention_clinic as clinic
import explorers
import lesson
from attention_base.numbers import number
from helpers import pictures
from helpers.attention import Head, causal_mask
from helpers.gpt import TinyGPT
from helpers.positions import rotary, sinusoidal
from helpers.show import show
from helpers.stack import signal_by_depth
from helpers.toy import numbers, readable
from tools import notebooks

OURS = tuple(f"{notebooks.ROOT / room}" for room in notebooks.ROOMS)
x = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
weights = torch.softmax(x @ x.mT, dim=-1)[0]  # (4, 4)
leaf = torch.ones(2, 3, requires_grad=True)
looks = {
    "rows": ["a", "b", "c", "d"],
    "cols": "key",
    "mask": causal_mask(4),
    "center": 0.5,
    "vmin": 0,
    "vmax": 1,
    "annotate": True,
    "fmt": ".1f",
    "title": "title",
}
probe = {"function": lambda x: x.cumsum(dim=-2), "x": x, "atol": 1e-6}

# Each function with arguments that it takes; one after the other is replaced by an odd value.
CALLS = [
    (show, {"value": [1.0, 2.0], "label": "a", "decimals": 2}),
    (number, {"value": 1.5, "decimals": 2}),
    (numbers, {"C": 2, "seed": 1}),
    (readable, {"B": 2, "T": 3, "C": 2}),
    (rotary, {"x": x[0, :, :2], "positions": torch.arange(4), "base": 100.0}),
    (sinusoidal, {"T": 4, "C": 2}),
    (signal_by_depth, {"way": "plain", "depth": 2, "init": "default"}),
    (clinic.finite, {"values": weights}),
    (clinic.rows_sum_to_one, {"weights": weights, "atol": 1e-5}),
    (clinic.no_weight_on_future, {"weights": weights}),
    (clinic.no_leak, probe),
    (
        clinic.same_for_prefix,
        {"module_or_function": probe["function"], "x": x, "atol": 1e-6},
    ),
    (clinic.reach, probe | {"causal": True}),
    (clinic.sequences_stay_apart, probe),
    (clinic.gradients_reach, {"out": leaf * 2, "tensors": {"leaf": leaf}}),
    (clinic.matches_reference, {"got": weights, "expected": weights, "atol": 1e-5}),
    (
        clinic.diagnose,
        {"module_or_callable": Head(3, 2), "C": 3, "n_head": 1, "example": x, "causal": True},
    ),
    (pictures.heatmap, {"matrix": weights, "outline": [(0, 1)], "ax": None, **looks}),
    (
        pictures.heatmaps,
        {"matrices": {"a": weights}, "titles": ["a"], "outline": {"a": [(0, 1)]}, **looks},
    ),
    (pictures.sheets, {"x": x, "title": ""}),
    (
        pictures.row_times_column,
        {"A": weights, "B": weights, "row": 1, "col": 1, "names": ("A", "B"), "title": ""},
    ),
    (pictures.ribbon, {"T": 2, "n_head": 2, "head_size": 2, "title": ""}),
    (pictures.staircase, {"T": 4, "title": ""}),
    (pictures.score_arrows, {"query": [1.0, 2.0], "keys": {"a": [1.0, 0.0]}, "title": ""}),
    (pictures.turned_arrows, {"pairs": [(4, 1), (5, 2)], "degrees": 30, "title": ""}),
    (
        pictures.softmax_steps,
        {"scores": [1.0, 2.0], "allowed": [True, True], "labels": ["a", "b"], "title": ""},
    ),
    (
        pictures.why_this_weight,
        {"query": x[0, 0], "keys": x[0], "values": x[0], "j": 1, "words": ["a", "b", "c", "d"]},
    ),
    (
        pictures.curves,
        {"x": [1, 2], "panels": {"p": {"l": [1.0, 2.0]}}, "xlabel": "x", "logx": False}
        | {"logy": ["p"], "columns": 1, "statements": ["It rises."], "title": ""},
    ),
    (
        pictures.scatter,
        {"points": {"a": (1.0, 2.0)}, "xlabel": "x", "ylabel": "y", "diagonal": "equal"}
        | {"statements": ["It is high."], "title": ""},
    ),
    (
        pictures.bars,
        {"values": {"a": 1.5}, "xlabel": "x", "decimals": 2, "reference": "a"}
        | {"statements": ["It is long."], "title": ""},
    ),
    (lesson.series_map, {"current": "03"}),
    (explorers.explore_heads, {"x": torch.randn(4, 8), "n_head": 4}),
    (explorers.explore_moments, {"step": 80}),
    (explorers.explore_painter, {"word": "cab", "rule": "one back"}),
    (explorers.explore_prefix, {"x": x[0, :, :2]}),
    (
        explorers.explore_query,
        {"query": x[0, 0, :2], "keys": x[0, :, :2], "values": x[0, :, :2], "x": x[0]}
        | {"words": ["a", "b", "c", "d"]},
    ),
    (
        explorers.explore_sampling,
        {"model": TinyGPT(3, 4, C=4, n_head=1), "letters": "abc", "prompt": "ab"},
    ),
    (explorers.explore_weights, {"x": x[0], "words": ["a", "b", "c", "d"]}),
    (pictures.tables, {"on": False}),
    (pictures.head_diagram, {"B": "B", "T": 4, "C": 4, "head_size": 4, "value_size": 4}),
    (pictures.multi_head_diagram, {"n_head": 4, "B": "B", "T": "T", "C": "C"}),
]
ODD = {
    "None": None,
    "minus one": -1,
    "a half": 0.5,
    "nan": math.nan,
    "True": True,
    "a word": "0",
    "no word": "",
    "an empty list": [],
    "a pair": (0, 1),
    "a list of None": [None, None],
    "an empty dict": {},
    "a set": {1, 2},
    "an object": object(),
    "a number": torch.tensor(3.0),
    "a vector": torch.ones(4),
    "complex": torch.ones(4, 4, dtype=torch.complex64),
    "bool": torch.ones(4, 4, dtype=torch.bool),
    "words": np.array([["a"] * 4] * 4),
    "sparse": torch.eye(4).to_sparse(),
    "meta": torch.ones(4, 4, device="meta"),
    "3-D": x,
    "3-D, complex": x + 0j,
    "3-D, sparse": x.to_sparse(),
    "3-D, meta": x.to("meta"),
    "3-D, nan": x * math.nan,
}


def complaint(function, arguments, drawn, odd=""):
    """What is wrong with how these arguments are refused; "" where they are taken."""
    try:
        shown = function(**arguments)
        if isinstance(shown, pictures.Picture):
            shown.png() if drawn else shown.html()
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        by_us = last.filename.startswith(OURS) and "raise" in last.line
        if not (by_us and isinstance(error, (TypeError, ValueError))):
            return f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"
        if odd and not names(str(error), odd, function, arguments):
            return f"does not say that it is {odd}: {error}"
    return ""


def names(message, argument, function, arguments):
    """Whether a message says which argument it is about, the first one also by the function."""
    own = [argument, argument.removesuffix("s"), function.__name__]
    if argument == next(iter(arguments)) or argument == "expected":  # "(4, 4) and ()"
        own += ["values", "probe", "allowed", "one panel", "shapes"]
    return any(re.search(rf"\b{re.escape(name)}\b", message) for name in own)


@pytest.fixture(autouse=True)
def pictures_afterwards():
    yield
    pictures.tables(False)


@pytest.mark.parametrize("drawn", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("function", "arguments"), CALLS, ids=lambda one: getattr(one, "__name__", "with")
)
def test_wrong_arguments_are_refused_in_words(function, arguments, drawn, capsys):
    assert complaint(function, arguments, drawn) == "", "the arguments that it takes"
    found = {
        (argument, name): said
        for argument in arguments
        for name, odd in ODD.items()
        if (said := complaint(function, arguments | {argument: odd}, drawn, argument))
    }
    assert not found
