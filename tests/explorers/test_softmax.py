import pytest
import torch

from helpers.explorers import explore_softmax
from tests.explorers.reading import (
    controls,
    floats,
    move,
    near,
    now,
    numbers,
    paragraphs,
    pixel,
    shown,
    tables,
)

MASK = "mask: tokens 3 and 4 are the future"
FIRST = (1.0, 0.8, 1.2, 0.9, 1.5)


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("temperature", [0.1, 1.3, 5.0])
@pytest.mark.parametrize(
    "scores",
    [FIRST, (0.5, -1.0, 2.0, 1.0, -3.0), (-4.0, 4.0, 0.1, -0.3, 3.9), (0.0,) * 5],
)
def test_the_drawing_and_the_words_are_a_softmax(scores, temperature, mask):
    explorer = explore_softmax()
    move(explorer, {f"token {j}": score for j, score in enumerate(scores)})
    move(explorer, {"temperature": temperature, MASK: mask})
    divided = torch.tensor(scores).double() / temperature
    if mask:
        divided[3:] = -torch.inf
    weights = torch.softmax(divided, -1)
    bits = torch.distributions.Categorical(weights).entropy() / torch.tensor(2.0).log()
    most = torch.tensor(3.0 if mask else 5.0).log2()

    (table,) = tables(explorer)
    over = "score / temperature, masked" if mask else "score / temperature"
    assert table.columns == [over, "weight"]
    assert table.names == [f"token {j}" for j in range(5)]
    assert numbers(table.column(over)) == near(divided)
    hidden = [mask and j > 2 for j in range(5)]
    assert [cell.look == "masked" for cell in table.column(over)] == hidden
    drawn = table.column("weight")
    assert [cell.text.endswith(" (masked)") for cell in drawn] == hidden
    assert [floats(cell.text)[0] for cell in drawn] == near(weights)
    assert [cell.bar for cell in drawn] == pixel([210 * w for w in weights.tolist()])

    (sentence,) = paragraphs(explorer)
    assert sentence.startswith("Entropy ") and " equal weights." in sentence
    assert floats(sentence)[:2] == near([bits, most])
    assert floats(sentence)[2] == pytest.approx(2 ** bits.item(), abs=0.06)
    before, told = now(explorer).split(": weights ")
    assert told == f"{' '.join(cell.text.split()[0] for cell in drawn)}. {sentence}"
    assert before.endswith(f"mask {'on' if mask else 'off'}")
    assert floats(before) == near([*scores, temperature])


def test_each_score_stands_left_of_its_weight():
    explorer = explore_softmax()
    (both,) = [w for w in shown(explorer) if getattr(w, "children", ())[1:] == (explorer.view,)]
    _, *sliders = both.children[0].children
    assert [slider.description for slider in sliders] == [f"token {j}" for j in range(5)]
    assert sliders == [controls(explorer)[f"token {j}"] for j in range(5)]
    assert "tall-rows" in explorer.view._dom_classes
