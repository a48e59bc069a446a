import pytest
import torch

from helpers.explorers import explore_weights
from tests.explorers.examples import X
from tests.explorers.reading import (
    buttons,
    colours,
    controls,
    move,
    near,
    now,
    numbers,
    paragraphs,
    shown,
    tables,
)

NORMALISE = "normalise: divide every row by its sum"


def causal(T):
    return torch.ones(T, T).tril()


def steps_back(T):
    return torch.arange(T)[:, None] - torch.arange(T)


PRESETS = {
    "causal": causal,
    "window": lambda T: causal(T) * (steps_back(T) < 3),
    "itself": torch.eye,
    "decay": lambda T: causal(T) * 0.5 ** steps_back(T).clamp(min=0),
}


def cell(explorer, t, j):
    """The button of a weight, found as a reader finds it: by what the mouse says over it."""
    (button,) = [b for tip, b in buttons(explorer).items() if f"output {t}, input {j}:" in tip]
    return button


def click(explorer, *places):
    for t, j in places:
        cell(explorer, t, j).click()


def painted(explorer, T=4):
    """The weights as the buttons show them, read from tooltips; colour and text agree."""
    square = list(buttons(explorer).items())
    places = [f"output {t}, input {j}: weight " for t in range(T) for j in range(T)]
    weights = torch.tensor(
        [float(tip.removeprefix(place)) for place, (tip, _) in zip(places, square, strict=True)]
    ).double()
    assert [float(button.description) for _, button in square] == near(weights)
    assert [button.style.button_color for _, button in square] == colours(weights, 0, 2)
    return weights.view(T, T)


def with_nan(values, colours):
    """The colours, and the alarm where a value is nan."""
    isnan = values.flatten().isnan().tolist()
    return ["#d9008c" if bad else fill for bad, fill in zip(isnan, colours, strict=True)]


def read_back(explorer, x, raw):
    """Compare drawing and words with the weights that are set, computed with torch."""
    T, C = x.shape
    x, raw = x.double(), raw.double()
    normalise = controls(explorer)[NORMALISE].value
    weights = raw / raw.sum(1, keepdim=True) if normalise else raw
    out = weights @ x
    names = [""] if C == 1 else [f", ch. {c}" for c in range(C)]
    results = [f"result{name}" for name in names]
    (table,) = tables(explorer)
    labels = [str(t) for t in range(T)]
    assert table.columns == [*labels, "row sum", *results]
    assert table.names == [*labels, *(f"x{name}" for name in names)]
    assert (table.caption, table.corner) == ("weights, and result = weights @ x", "output")
    above = [cell for row in table.rows[:T] for cell in row[:T]]
    assert numbers(above) == near(weights)
    largest = max(1.0, weights.nan_to_num().max().item())
    assert [cell.fill for cell in above] == with_nan(weights, colours(weights, 0, largest))
    assert numbers(table.column("row sum")[:T]) == near(weights.sum(1))
    reach = x.abs().max().item()
    for c, result in enumerate(results):
        below = table.rows[T + c]
        assert numbers(below[:T]) == near(x[:, c])
        assert {cell.text for cell in below[T:]} == {""}
        outputs = table.column(result)[:T]
        assert numbers(outputs) == near(out[:, c])
        painted_out = colours(out[:, c].clamp(-reach, reach), -reach, reach, "RdBu_r")
        assert [cell.fill for cell in outputs] == with_nan(out[:, c], painted_out)
    how, *lines = str(explorer).split("\nNow: ")[1].splitlines()
    preset = controls(explorer)["preset"].value
    divided = "each row divided by its sum" if normalise else "not divided by the row sums"
    assert how == f"{preset}, {divided}"
    assert lines[0].split() == " ".join(["cells row sum", *results]).split()
    for t, line in enumerate(lines[1 : T + 1]):
        label, *as_set = line.split()[1:]
        assert (label, [float(w) for w in as_set[:T]]) == (str(t), near(raw[t]))
        assert as_set[T:] == [cell.text for cell in table.rows[t][T:]]
    for c, line in enumerate(lines[T + 1 : T + 1 + C]):
        assert line.split()[-T:] == [cell.text for cell in table.rows[T + c][:T]]
    warnings = lines[T + 1 + C :]
    assert paragraphs(explorer) == (
        [f"⚠ {w}" for w in warnings] or ["✓ Every row sums to 1, and no row sees the future."]
    )
    return warnings


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("normalise", [True, False])
def test_presets_buttons_table_and_words_show_the_same_weights(preset, normalise):
    explorer = explore_weights(X)
    move(explorer, {"preset": "decay" if preset == "causal" else "causal"})
    move(explorer, {"preset": preset, NORMALISE: normalise})
    weights = PRESETS[preset](4)
    assert painted(explorer).equal(weights.double())
    warnings = read_back(explorer, X, weights)
    odd = [t for t in range(4) if weights[t].sum() != 1]
    if normalise or not odd:
        assert warnings == []
    else:
        assert warnings == ["rows 1, 2, 3 do not sum to 1: a weighted sum, not an average."]


@pytest.mark.parametrize("normalise", [True, False])
def test_a_click_sets_1_2_and_0_in_turn_and_all_of_it_follows(normalise):
    explorer = explore_weights(X)
    move(explorer, {NORMALISE: normalise})
    weights = causal(4)
    for t, j in [(1, 2), (1, 2), (1, 2), (3, 0), (0, 0), (0, 0), (2, 3), (1, 3)]:
        weights[t, j] = {0: 1, 1: 2, 2: 0}[weights[t, j].item()]
        click(explorer, (t, j))
        assert painted(explorer).equal(weights.double())
        warnings = read_back(explorer, X, weights)
        preset = "causal" if weights.equal(causal(4)) else "by hand"
        assert controls(explorer)["preset"].value == preset
        future = [str(t) for t in range(4) if weights[t, t + 1 :].any()]
        assert sum("the future" in w for w in warnings) == bool(future)
        if future:
            rows = f"rows {', '.join(future)} see" if len(future) > 1 else f"row {future[0]} sees"
            assert any(w.startswith(f"{rows} the future") for w in warnings)
        empty = ["row 0 sums to 0: nothing to average"] * (weights[0].sum() == 0)
        assert [w.split(",")[0] for w in warnings if "to 0" in w] == empty
        assert all(("0/0 is nan" in w) == normalise for w in warnings if "to 0" in w)
        odd = [str(t) for t in range(4) if weights[t].sum() not in (0, 1)]
        told = [w for w in warnings if " to 1" in w]
        if normalise:
            assert told == []
        else:
            assert told[0].startswith(f"rows {', '.join(odd)} do not sum to 1")


def test_one_row_that_is_no_average_is_told_in_the_singular():
    explorer = explore_weights([[0.0], [1.0]])
    move(explorer, {NORMALISE: False})
    assert now(explorer).endswith("row 1 does not sum to 1: a weighted sum, not an average.")
    click(explorer, (0, 0), (0, 0), (1, 0), (1, 0), (1, 1), (1, 1))
    assert "rows 0, 1 sum to 0: nothing to average, so the output is 0." in now(explorer)


def test_a_weight_of_the_preset_decay_can_be_clicked_away():
    explorer = explore_weights(X)
    move(explorer, {"preset": "decay"})
    click(explorer, (2, 1))
    assert painted(explorer)[2].tolist() == [0.25, 0, 1, 0]


def test_a_painting_comes_back_after_a_preset():
    explorer = explore_weights(X)
    first = painted(explorer)
    move(explorer, {"preset": "by hand"})  # nothing is, yet
    assert painted(explorer).equal(first)
    click(explorer, (1, 2), (3, 0))
    mine = painted(explorer)
    move(explorer, {"preset": "decay"})
    assert not painted(explorer).equal(mine)
    move(explorer, {"preset": "by hand"})
    assert painted(explorer).equal(mine)
    move(explorer, {"preset": "window"})
    click(explorer, (0, 1))  # a new painting, which begins with the window
    move(explorer, {"preset": "decay"})
    move(explorer, {"preset": "by hand"})
    window = PRESETS["window"](4).double()
    window[0, 1] = 1
    assert painted(explorer).equal(window)


def test_words_name_rows_columns_buttons_and_warnings():
    explorer = explore_weights([[0.0], [1.0]], words=["<it>", "cat"])
    click(explorer, ("<it>", "cat"))
    (table,) = tables(explorer)
    assert table.names == ["<it>", "cat", "x"]
    assert table.columns == ["<it>", "cat", "row sum", "result"]
    warning = "row “<it>” sees the future: weight on a token after its own."
    assert paragraphs(explorer) == [f"⚠ {warning}"]
    assert now(explorer).endswith(f"row <it> 1 1 1.00 0.50 row cat 1 1 1.00 0.50 x 0 1 {warning}")
    assert sorted(buttons(explorer)) == [
        f"output {t}, input {j}: weight 1" for t in ("<it>", "cat") for j in ("<it>", "cat")
    ]


def test_the_buttons_stand_in_a_square_under_and_beside_their_names():
    T = 3
    explorer = explore_weights(torch.ones(T, 1), words=["<it>", "was", "cat"])
    (painter,) = [w for w in shown(explorer) if w.layout.grid_template_columns]
    assert f"repeat({T}," in painter.layout.grid_template_columns
    note, corner, *parts = painter.children
    assert "column = input" in note.value and note.layout.grid_area == "1 / 1 / 2 / -1"
    assert ">output<" in corner.value
    names = ["&lt;it&gt;", "was", "cat"]
    for j, name in enumerate(names):
        assert f">{name}<" in parts[j].value
    for t, name in enumerate(names):
        head, *row = parts[T + t * (T + 1) : T + (t + 1) * (T + 1)]
        assert f">{name}<" in head.value
        of = ["<it>", "was", "cat"]
        assert [b.tooltip.split(":")[0] for b in row] == [f"output {of[t]}, input {j}" for j in of]
    assert len(parts) == T + T * (T + 1)


def test_the_square_of_buttons_stands_left_of_the_table():
    explorer = explore_weights(X)
    (both,) = [w for w in shown(explorer) if getattr(w, "children", ())[1:] == (explorer.view,)]
    assert both.children[0] is explorer.controls["cells"]


@pytest.mark.parametrize("shape", [(8, 4), (1, 1), (5, 3)])
def test_what_has_room_is_drawn(shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    assert read_back(explore_weights(x), x, causal(shape[0])) == []


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: explore_weights(torch.zeros(9, 2)), r"8 tokens.*\(9, 2\).*slice"),
        (lambda: explore_weights(torch.zeros(2, 5)), r"4 channels.*\(2, 5\)"),
        (lambda: explore_weights(torch.zeros(4, 8, 2)), r"2-D.*\(4, 8, 2\)"),
        (
            lambda: explore_weights([[0.0], [1.0]], words=["cat"]),
            "each of the 2 tokens, got 1",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
