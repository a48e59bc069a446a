import itertools

import numpy as np
import pytest

from attention_base.numbers import number
from explorers import explore_moments
from helpers.circuits import training_moments
from helpers.pictures.colours import GLOW, SKY, fills, paint
from tests.explorers.reading import Chart, Quilt, drawing, move

WORD = "watermelonpie"
STEPS = list(range(0, 201, 10))
PATTERNS = ("learned", "exact", "equal")
MEANT = {
    "learned": ("", ""),
    "exact": (": the letter before", ": the letter after the same letter"),
    "equal": 2 * (": itself and all before it, equally",),
}
MOMENTS = training_moments()


def quilt(weights, title):
    """The numbers of a map in two decimals, each on its colour; what reads 0.00 stays empty."""
    T, texts = 26, [[f"{weight:.2f}" for weight in row] for row in weights]
    values = np.array([[float(text) for text in row] for row in texts])
    colours = fills(paint(values, 0, 1, None))
    cells = {
        (t, j): (colours[t][j].code, texts[t][j].rstrip("0").rstrip("."))
        for t, j in itertools.product(range(T), range(T))
        if values[t, j]
    }
    names = [f"{who}, {half} period" for half in ("first", "second") for who in ("key", "query")]
    return Quilt(title, names, [*2 * WORD], [*2 * WORD], cells)


def model(*setting):
    step, *chosen = setting[-3:]
    n, i, j = STEPS.index(step), *map(PATTERNS.index, chosen)
    maps = MOMENTS.layer_0[n, i].tolist(), MOMENTS.layer_1[n, i, j].tolist()
    titles = [f"Layer {m}, {p}{MEANT[p][m]}" for m, p in enumerate(chosen)]
    pictures = [part for m in (0, 1) for part in (titles[m], quilt(maps[m], titles[m]))]

    lines = [MOMENTS.right[:, a, b].tolist() for a, b in ((0, 0), (i, j))]
    share = lines[1][n]
    text = f"share right: {number(share)}"
    ticks = ["0", "0.5", "1", "0", "50", "100", "150", "200", "step"]
    marks = [(GLOW, ".5", step, None), (GLOW, None, step, share), ("step", None, 100, None)]
    looks = ("currentColor", None), (SKY, "3")
    drawn = [(*look, STEPS, line) for look, line in zip(looks, lines, strict=True)]
    label = f"share right at step {step}: {number(share)}"
    chart = Chart(label, [text, *ticks], marks, drawn)

    def mean(layer, back):
        return number(sum(maps[layer][t][t - back] for t in range(13, 26)) / 13)

    told = [
        f"Step {step}: {number(100 * share, 0)} % of the known letters are right, loss "
        f"{number(MOMENTS.loss[n, i, j])}; previous-token score "
        f"{number(MOMENTS.previous_token_score[n, i])}; induction score "
        f"{number(MOMENTS.induction_score[n, i, j])}.",
        f"In the second “{WORD}”, the mean weight of a letter in layer 0 is {mean(0, 0)} on "
        f"itself, {mean(0, 1)} one back and {mean(0, 2)} two back; in layer 1 it is {mean(1, 12)} "
        f"on the letter after the same letter, 12 back, and {mean(1, 13)} on the same letter, 13 "
        "back.",
    ]
    shares = ", ".join(map(number, lines[1]))
    now = (
        f"{titles[0]}. {titles[1]}. {' '.join(told)} With these patterns, the share right at steps "
        f"0, 10, … 200 is {shares}."
    )
    keys = [
        "Rows: query (who reads); columns: key (who is read).",
        "The thick line is with the patterns that you chose, the thin line with both layers "
        "learned.",
    ]
    return [now, *pictures, chart, *told, *keys]


CONTROLS = {
    "step": (200, (0, 200, 10)),
    "layer 0": ("learned", PATTERNS),
    "layer 1": ("learned", PATTERNS),
}
SOME = list(itertools.product((0, 80, 200), PATTERNS, PATTERNS))
CASES = [
    ({}, [(step, "learned", "learned") for step in STEPS] + SOME),
    ({"step": 70}, [(70, "learned", "learned"), (70, "equal", "exact")]),
]
REFUSED = [
    ({"step": 85}, r"step must be one of 0, 10, 20, … 200, got 85"),
    ({"step": -10}, "step must be a whole number from 0 to 200, got -10"),
    ({"step": 210}, "step must be a whole number from 0 to 200, got 210"),
]


def test_a_word_is_no_step():
    with pytest.raises(TypeError, match="step must be a whole number from 0 to 200, got the str"):
        explore_moments("x")


def test_it_begins_at_the_step_that_is_asked_for():
    assert explore_moments(step=0).controls["step"].value == 0
    assert explore_moments(np.int64(80)).controls["step"].value == 80


def test_a_move_of_the_slider_only_looks_numbers_up(monkeypatch):
    explorer = explore_moments()
    monkeypatch.setattr("explorers.moments.training_moments", None)
    move(explorer, {"step": 90, "layer 0": "exact"})
    drawing(explorer)


def test_the_words_do_not_answer_the_prediction_that_comes_later():
    words = str(explore_moments())
    assert "96 % of the known letters are right" in words
    assert number(MOMENTS.right[-1, 1, 0]) not in words  # the exact pattern in layer 0: 12.p1
