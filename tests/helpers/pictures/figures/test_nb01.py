import re
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_hex

from helpers.pictures import staircase, weighted_sum
from helpers.pictures.colours import BLUE, FAINT, ORANGE, PALE
from tests.helpers.pictures import reading


def arrows(shown):
    """From which input to which output the arrows go, and which of them are orange."""
    ax = shown.figure().axes[0]
    found = [text for text in ax.texts if getattr(text, "arrow_patch", None)]
    spots = {round(text.get_position()[0]): int(text.get_text()) for text in ax.texts
             if text.get_text().isdigit()}  # fmt: skip
    pairs = {}
    for arrow in found:
        start, end = spots[round(arrow.get_position()[0])], spots[round(arrow.xy[0])]
        pairs[start, end] = to_hex(arrow.arrow_patch.get_edgecolor()) == ORANGE
    return pairs


def test_arrows_table_and_words_name_the_same_pairs():
    shown = staircase(6, title="Who")
    pairs = {(j, t) for t in range(6) for j in range(t + 1)}
    assert arrows(shown) == {(j, t): j == t for j, t in pairs}
    (table,) = reading.read_html(shown.html())
    assert (table.caption, table.corner, table.over) == ("Who", "output", "input")
    in_table = {
        (int(table.columns[c]), int(name)): text
        for name, row in zip(table.names, table.cells, strict=True)
        for c, text in enumerate(row)
        if text
    }
    assert in_table == {(j, t): "self" if j == t else "yes" for j, t in pairs}
    assert shown.html().count('title="no arrow"') == 15
    in_words = set()
    for line in str(shown).splitlines()[1:]:
        output, inputs = (re.findall(r"\d+|itself", part) for part in line.split("reads"))
        in_words |= {(int(output[0] if j == "itself" else j), int(output[0])) for j in inputs}
    assert in_words == pairs
    assert "21 arrows" in shown.alt


def test_inputs_stand_in_a_row_and_each_output_above_its_input_and_higher():
    (page,) = staircase(4, title="Who").figure().axes
    circles = [(patch.center, patch.get_radius()) for patch in page.patches]
    for t in range(4):
        places = [at for text, at in reading.texts_on(page) if text == str(t)]
        assert [place in [center for center, _ in circles] for place in places] == [True, True]
    spots = [[at for text, at in reading.texts_on(page) if text == str(t)] for t in range(4)]
    inputs, outputs = (
        [max(s, key=lambda at: at[1]) for s in spots],
        [min(s, key=lambda at: at[1]) for s in spots],
    )
    assert len({y for _, y in inputs}) == 1
    assert [x for x, _ in inputs] == [x for x, _ in outputs] == sorted(x for x, _ in inputs)
    heights = [y for _, y in outputs]
    assert heights == sorted(heights, reverse=True) and len(set(heights)) == 4
    found = dict(reading.texts_on(page))
    assert found["inputs"][1] == inputs[0][1] and found["outputs"][1] == outputs[0][1]
    for note in page.texts:
        if getattr(note, "arrow_patch", None):
            own = note.xyann[0] == note.xy[0]
            style = note.arrow_patch.get_linewidth(), to_hex(note.arrow_patch.get_edgecolor())
            assert style == ((2, ORANGE) if own else (1, FAINT))
            # The head lies at the output: it points upwards.
            assert note.xy[1] < note.xyann[1]
            assert note.arrow_patch.get_arrowstyle().__class__.__name__ == "CurveFilledB"


def test_the_staircase_says_what_each_output_reads():
    assert str(staircase(3)).splitlines()[1:] == [
        "output 0 reads itself",
        "output 1 reads input 0 and itself",
        "output 2 reads inputs 0, 1 and itself",
    ]


def test_too_many_tokens_are_refused_in_words():
    with pytest.raises(ValueError, match="1 to 12 tokens, got the int 13 for T"):
        staircase(13)


def test_shares_of_the_tokens_lie_one_behind_the_other_and_end_at_the_output():
    weights, tokens = np.array([0.5, 0, 1.5, -1]), np.array([[1, 0.5], [3, 3], [0, 2], [1, 0.5]])
    names = ["the", "same", "up", "again"]
    shown = weighted_sum(weights, tokens, names, channels=("animal", "food"), title="Sum")
    (page,) = shown.figure().axes
    arrows = [note for note in page.texts if getattr(note, "arrow_patch", None)]
    vectors = {PALE: [], ORANGE: [], BLUE: []}
    for note in arrows:
        vector = np.subtract(note.xy, note.xyann) * [1, -1]
        vectors[to_hex(note.arrow_patch.get_facecolor())].append(vector)
    unit = vectors[PALE][0][0] / tokens[0, 0]
    shares = weights[:, None] * tokens
    assert np.allclose(np.array(vectors[PALE]) / unit, tokens[:3])  # “again” lies on “the”
    assert np.allclose(np.array(vectors[ORANGE]) / unit, [weights @ tokens])
    assert np.allclose(np.array(vectors[BLUE]) / unit, shares[[0, 2, 3]])  # no arrow for 0
    (origin,) = page.lines[-1].get_xydata()
    path = [note for note in arrows if to_hex(note.arrow_patch.get_facecolor()) == BLUE]
    assert np.allclose(path[0].xyann, origin)
    assert all(np.allclose(one.xy, other.xyann) for one, other in pairwise(path))
    (output,) = [n for n in arrows if to_hex(n.arrow_patch.get_facecolor()) == ORANGE]
    assert np.allclose(output.xy, path[-1].xy) and np.allclose(output.xyann, origin)
    places = dict(reading.texts_on(page))
    assert "the, again" in places
    for name, tip in {"the, again": arrows[0].xy, "same": arrows[1].xy, "up": arrows[2].xy}.items():
        beside = places[name][0] - tip[0]
        assert 5 < beside < 30 if name == "up" else beside == 0  # it is not on the axis
        assert abs(places[name][1] - tip[1]) < 60
    (table,) = reading.read_html(shown.html())
    (told,) = reading.in_words([table], str(shown))
    assert told.names == table.names and told.columns == table.columns
    assert [*told.cells[:-1], ["", "", *told.cells[-1]]] == table.cells
    assert reading.read_page(page)[0].said() == table.said()
    assert table.names == [*names, "output"] and table.cells[-1][:3] == ["", "", "added:"]
    found = np.array([[float(cell) for cell in row] for row in table.cells[:-1]])
    assert np.allclose(found, np.column_stack([weights, tokens, shares]), atol=0.006)
    assert np.allclose([*map(float, table.cells[-1][3:])], weights @ tokens, atol=0.006)
    assert "(-0.50, 2.75)" in shown.alt


@pytest.mark.parametrize(
    ("weights", "tokens", "told"),
    [
        ([1.0], [[1.0, 2.0, 3.0]], r"got \(1,\) and \(1, 3\); pick one row"),
        ([0.5, 0.5], [[1.0, 2.0]], r"weights \(T,\) and tokens"),
        ([0.1] * 9, [[1.0, 2.0]] * 9, "up to 8 tokens"),
        ([np.nan], [[1.0, 2.0]], "finite numbers"),
    ],
)
def test_a_sum_that_cannot_be_drawn_is_refused_in_words(weights, tokens, told):
    with pytest.raises(ValueError, match=told):
        weighted_sum(weights, tokens)
