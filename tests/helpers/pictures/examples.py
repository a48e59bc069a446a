"""Pictures of each kind, small and large, for the tests that all of them have to pass."""

import numpy as np
import torch

from helpers.pictures import (
    bars,
    curves,
    heatmap,
    heatmaps,
    ribbon,
    row_times_column,
    scatter,
    sheets,
    softmax_steps,
    staircase,
    turned_arrows,
    weighted_sum,
    why_this_weight,
)

WORDS = ["Life", "is", "short", "eat", "dessert", "first"]
LONG = ["understandably", "b", "extraordinarily", "d", "e", "tautologically"]
LONG_TITLE = "A title that goes on " * 6
MAY = np.tri(6, dtype=bool)
WEIGHTS = np.tri(6) / np.arange(1, 7)[:, None]  # (6, 6): running means
SCORES = np.linspace(-2.0, 3.0, 36).reshape(6, 6)
BIG = np.linspace(0.0, 1.0, 400).reshape(20, 20)

HEATMAPS = {
    "words": lambda: heatmap(WEIGHTS, rows=WORDS, cols=WORDS, mask=MAY, title=LONG_TITLE),
    "long words": lambda: heatmap(WEIGHTS, rows=LONG, cols=LONG, title="Long"),
    "one row": lambda: heatmap(WEIGHTS[5:], rows=["first"], cols=WORDS, title="One row"),
    "long name": lambda: heatmap(WEIGHTS[5:], rows={"a-name-much-longer-than-the-row": ["first"]}),
    "narrow": lambda: heatmap(SCORES[:, :2], title="A title that is wider than the two columns"),
    "one cell": lambda: heatmap([[0.5]]),
    "12": lambda: heatmap(-BIG[:12, :12] * 1e4),
    "20": lambda: heatmap(BIG, title="Twenty"),
    "20 words": lambda: heatmap(BIG, rows=LONG[:5] * 4, cols=LONG[:5] * 4),
    "64": lambda: heatmap(np.linspace(-1, 1, 4096).reshape(64, 64)),
    "two": lambda: heatmaps(
        {"scores": SCORES, "weights": WEIGHTS}, rows=WORDS, cols=WORDS, title="T"
    ),
    "shapes": lambda: heatmaps(
        {"w": WEIGHTS, "x": SCORES[:, :2], "w @ x, all channels": SCORES[:, :2]}
    ),
    "heads": lambda: heatmaps(np.stack([WEIGHTS] * 5), title="Five heads"),
    "big heads": lambda: heatmaps(np.stack([BIG] * 4)),
}

ONES = torch.ones(12, 12)
STEPS = range(1, 101)
MANY_LINES = {
    f"panel {i}, with a name that is longer than its line": {
        f"a way that is called {name}": np.geomspace(10.0**-i, 1, 100) for name in "abcdef"
    }
    for i in range(0, 30, 5)
}
OTHERS = {
    "sheets": lambda: sheets(torch.arange(24).reshape(2, 3, 4), title=LONG_TITLE),
    "many sheets": lambda: sheets(torch.full((9, 4, 5), -1000.5)),
    "row times column": lambda: row_times_column(
        [[1, 0, 0], [1, 1, 0]], [[8, 6], [2, 4], [7, 4]], 1, 0, names=("L", "a"), title="A sum"
    ),
    "wide rows": lambda: row_times_column(torch.full((1, 8), 0.125), torch.ones(8, 8), 0, 7),
    "one product": lambda: row_times_column([[2]], [[3]], 0, 0),
    "one number": lambda: sheets([[[1]]]),
    "one score": lambda: softmax_steps([0.5]),
    "ribbon": lambda: ribbon(4, 2, 2, title="Whose channels?"),
    "large ribbon": lambda: ribbon(8, 4, 2),
    "narrow ribbon": lambda: ribbon(1, 1, 1),
    "many heads": lambda: ribbon(4, 8, 2),
    "staircase": lambda: staircase(8, title="Who"),
    "one step": lambda: staircase(1),
    "turned arrows": lambda: turned_arrows([(1, 0), (7, 4), (31, 1), (0, 9)], degrees=36.5),
    "a turned pair": lambda: turned_arrows([(2.5, 2.5)], degrees=90, title=LONG_TITLE),
    "weighted sum": lambda: weighted_sum(
        [0.25, 0.5, 0.25, 0], [[1, 0], [-0.5, 1], [1, 0], [0, 0]], WORDS[:4], title=LONG_TITLE
    ),
    "sum of close arrows": lambda: weighted_sum(
        np.ones(8) / 8, np.linspace(1, 1.1, 16).reshape(8, 2), [LONG[2]] * 8,
        channels=("understandably", "extraordinarily"),
    ),
    "sum of nothing": lambda: weighted_sum([1], [[0, 0]]),
    "softmax": lambda: softmax_steps([1.0, 0.0, 5.0], [True, True, False], labels=WORDS[:3]),
    "long softmax": lambda: softmax_steps(torch.arange(10.0) - 99, labels=[LONG[2]] * 10),
    "why": lambda: why_this_weight(
        [1.0, 2.0], SCORES[:3, :2], SCORES[:3, :4], 1, words=WORDS[:3], title="Why “is”?"
    ),
    "large why": lambda: why_this_weight(
        -99.5 * ONES[0], ONES, -100.5 * ONES, 11, words=["dishwashers"] * 12, title=LONG_TITLE
    ),
    "one token": lambda: why_this_weight([1.0], [[1.0]], [[1.0]], 0),
    "curves": lambda: curves(
        [1, 4, 16], {"size": {"a": [1, 4, 16], "b": [1, 1, 1.01]}, "share": {"a": [0.25, 0.1, 0]}},
        xlabel="d", logx=True, logy=["size"], title="Two quantities",
    ),
    "six panels": lambda: curves(STEPS, MANY_LINES, xlabel="steps", logy=[[*MANY_LINES][-1]]),
    "one curve": lambda: curves([0.5, 1.5], {"loss": {"a": [-1e-9, 0.0]}}, xlabel="x"),
    "levels": lambda: curves(
        range(20), {"loss": {"model": np.geomspace(5, 1.85, 20), "die": 4.63, "two letters": 1.95,
        "three letters": 1.8}}, xlabel="step", title=LONG_TITLE,
    ),
    "levels in panels": lambda: curves(
        [1, 10], {"a": {"x": [1, 2], "far": 90}, "b": {"x": [3, 4], "y": [1, 2]}, "c": {"far": 50}},
        xlabel="x", logx=True, logy=["a"], columns=2,
    ),
    "points": lambda: scatter(
        {"right": (1.81, 1.81), "learned positions": (1.84, 1.84), "window of 16": (1.7, 1.7),
         "untrained": (4.78, 4.78), "strict mask, targets shifted twice": (0.16, 3.7),
         "softmax over axis 1": (0.18, 3.06), "no mask": (0.09, 6.3), "batch norm": (1.62, 1.75)},
        xlabel="parallel loss", ylabel="left-to-right loss", diagonal="equal", title=LONG_TITLE,
    ),
    "points on one spot": lambda: scatter(
        {f"model {i}": (-1.7, 1.7) for i in range(12)}, xlabel="x", ylabel="y"
    ),
    "bars": lambda: bars({"a": 62, "the other one": 5}, xlabel="seconds", title=LONG_TITLE),
    "bars with spans": lambda: bars(
        {"a": (62.31, 58, 70), "b": 5.2, "c": (0, 0, 1)}, xlabel="seconds", reference="b",
    ),
}  # fmt: skip

EXAMPLES = HEATMAPS | OTHERS
