import torch

from attention_base.numbers import number
from explorers import explore_softmax
from helpers.pictures.table import Cell, Table
from tests.explorers.reading import controls, shown

FIRST = (1.0, 0.8, 1.2, 0.9, 1.5)
SCORES = [FIRST, (0.5, -1.0, 2.0, 1.0, -3.0), (-4.0, 4.0, 0.1, -0.3, 3.9), (0.0,) * 5]
SCORES += [(4.0, -4.0, 4.0, -4.0, 4.0), (-4.0, 4.0, -4.0, 4.0, -4.0)]


def model(temperature, mask, *scores):
    divided = torch.tensor(scores).double() / temperature
    if mask:
        divided[3:] = -torch.inf
    weights = torch.softmax(divided, -1)
    bits = torch.distributions.Categorical(weights).entropy() / torch.tensor(2.0).log()
    most = torch.tensor(3.0 if mask else 5.0).log2()
    entropy = f"Entropy {number(bits)} bits of at most {number(most)}: "
    entropy += f"as spread out as {number(2**bits, 1)} equal weights."
    rows = []
    for j in range(5):
        look, note = ("masked", " (masked)") if mask and j > 2 else ("plain", "")
        weight = Cell(number(weights[j]) + note, bar=210 * weights[j].item())
        rows.append((f"token {j}", [Cell(number(divided[j]), look), weight]))
    columns = ["score / temperature" + ", masked" * mask, "weight"]
    state = " ".join(number(score, 1) for score in scores)
    state += f", temperature {number(temperature, 1)}, mask {'on' if mask else 'off'}"
    now = f"scores {state}: weights {' '.join(map(number, weights))}. {entropy}"
    return [now, "scores", Table(columns, rows), entropy]


CONTROLS = {
    "temperature": (0.1, (0.1, 5, 0.1)),
    "mask: tokens 3 and 4 are the future": (False, ()),
    **{f"token {j}": (score, (-4, 4, 0.1)) for j, score in enumerate(FIRST)},
}
CASES = [({}, [(t, m, *s) for s in SCORES for t in (0.1, 1.3, 5.0) for m in (False, True)])]


def test_each_score_stands_left_of_its_weight():
    explorer = explore_softmax()
    (both,) = [w for w in shown(explorer.box) if getattr(w, "children", ())[1:] == (explorer.view,)]
    _, *sliders = both.children[0].children
    assert sliders == [controls(explorer)[f"token {j}"] for j in range(5)]
    assert "tall-rows" in explorer.view._dom_classes
