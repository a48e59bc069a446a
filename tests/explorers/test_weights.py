import itertools

import torch

from attention_base.numbers import narrow, texts
from explorers import explore_weights
from helpers.pictures.table import Cell, Table
from tests.explorers.reading import cells, heat, move, shown

X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [4.0, 1.0]])  # (4, 2)


def presets(T):
    causal, back = torch.ones(T, T).tril().double(), torch.arange(T)[:, None] - torch.arange(T)
    window, decay = causal * (back < 3), causal * 0.5 ** back.clamp(min=0)
    return {"causal": causal, "window": window, "itself": (back == 0).double(), "decay": decay}


def model(x, words, preset, normalise, *clicks):
    x = torch.as_tensor(x).double()
    T, C = x.shape
    labels = words or [str(t) for t in range(T)]
    known = presets(T)
    raw = known["causal" if preset == "by hand" else preset].clone()  # by hand: nothing is yet
    for t, j in [divmod(place, T) for place in clicks]:
        raw[t, j] = {0: 1, 1: 2}.get(raw[t, j].item(), 0)
    if clicks:
        preset = next((p for p in known if raw.equal(known[p])), "by hand")
    weights = raw / raw.sum(1, keepdim=True) if normalise else raw
    out = weights @ x

    square = ["click a cell (column = input)", "output", *labels]
    for label, row in zip(labels, raw.tolist(), strict=True):
        tips = [f"output {label}, input {labels[j]}: weight {w:g}" for j, w in enumerate(row)]
        looks = ["bold" if w else None for w in row]
        square += [label, *zip(tips, map(narrow, row), looks, strict=True)]

    channels = [""] if C == 1 else [f", ch. {c}" for c in range(C)]
    names, results = [f"x{c}" for c in channels], [f"result{c}" for c in channels]
    how = "each row divided by its sum" if normalise else "not divided by the row sums"
    told = [f"{preset}, {how} cells row sum", *results]
    highest, reach = max(1.0, weights.nan_to_num().max().item()), x.abs().max().item()
    rows = heat(weights, 0.0, highest)
    for t, outputs in enumerate(heat(out, -reach, reach, 0.0)):
        rows[t] += [*cells([weights[t].sum()], "bold"), *outputs]
        told += ["row", labels[t], *map(narrow, raw[t].tolist()), *[c.text for c in rows[t][T:]]]
    for name, column in zip(names, x.T, strict=True):
        values = texts(column.numpy())
        rows.append([*[Cell(value, "plain") for value in values], *[Cell("")] * (1 + C)])
        told += [name, *values]
    columns, caption = [*labels, "row sum", *results], "weights, and result = weights @ x"
    warned = warnings(raw, normalise, labels)
    verdict = [f"⚠ {w}" for w in warned] or ["✓ Every row sums to 1, and no row sees the future."]
    rows = Table(columns, list(zip([*labels, *names], rows, strict=True)), caption, "output")
    return [" ".join(told + warned), *square, rows, *verdict]


def warnings(raw, normalise, labels):
    def rows(which, one, more):
        names = [labels[t] if labels[t].isdigit() else f"“{labels[t]}”" for t in which]
        return f"row {names[0]} {one}" if len(names) == 1 else f"rows {', '.join(names)} {more}"

    told, sums = [], dict(enumerate(raw.sum(1).tolist()))
    if empty := [t for t in sums if sums[t] == 0]:
        why = "and 0/0 is nan" if normalise else "so the output is 0"
        told.append(f"{rows(empty, 'sums', 'sum')} to 0: nothing to average, {why}.")
    if not normalise and (odd := [t for t in sums if sums[t] not in (0, 1)]):
        told.append(f"{rows(odd, 'does not', 'do not')} sum to 1: a weighted sum, not an average.")
    if future := [t for t in sums if raw[t, t + 1 :].any()]:
        told.append(f"{rows(future, 'sees', 'see')} the future: weight on a token after its own.")
    return told


# Clicks on the 16 buttons: weights in the future come and go, the first row loses all it has.
CLICKS = (6, 6, 6, 12, 0, 0, 11, 7)
SETTINGS = [("by hand", True), *itertools.product(presets(4), (True, False))]
SETTINGS += [("causal", yes, *CLICKS[:n]) for n in range(1, 9) for yes in (True, False)]
SETTINGS += [("decay", False, place) for place in range(16)]
TWO = [[0.0], [1.0]]
LARGE = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
CONTROLS = {
    "preset": ("causal", ("causal", "window", "itself", "decay", "by hand")),
    "normalise: divide every row by its sum": (True, ()),
}
CASES = [
    ({"x": X, "words": None}, SETTINGS),
    ({"x": TWO, "words": None}, [("causal", False), ("causal", False, 0, 0, 2, 2, 3, 3)]),
    ({"x": TWO, "words": ["<it>", "cat"]}, [("causal", True, 1)]),
    *[({"x": x, "words": None}, [("causal", True)]) for x in (LARGE, LARGE[:1, :1], LARGE[:5, :3])],
]
REFUSED = [
    ({"x": torch.zeros(9, 2)}, r"8 tokens.*\(9, 2\).*slice"),
    ({"x": torch.zeros(2, 5)}, r"4 channels.*\(2, 5\)"),
    ({"x": torch.zeros(4, 8, 2)}, r"2-D.*\(4, 8, 2\)"),
    ({"x": TWO, "words": ["cat"]}, "each of the 2 tokens, got 1"),
]


def test_a_painting_comes_back_after_a_preset():
    explorer = explore_weights(X)
    square = explorer.controls["cells"]
    for preset, places in ("causal", (6, 12)), ("window", (1,)):
        move(explorer, {"preset": preset}, *places)  # a new painting, begun with the preset
        mine = square.value
        move(explorer, {"preset": "decay"})
        assert square.value != mine
        move(explorer, {"preset": "by hand"})
        assert square.value == mine


def test_the_buttons_stand_in_a_square_left_of_the_table():
    explorer = explore_weights(X)
    (both,) = [w for w in shown(explorer.box) if getattr(w, "children", ())[1:] == (explorer.view,)]
    square = both.children[0]
    assert "repeat(4," in square.layout.grid_template_columns
    assert square.children[0].layout.grid_area == "1 / 1 / 2 / -1"
