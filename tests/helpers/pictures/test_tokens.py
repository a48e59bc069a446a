import re

import pytest
from matplotlib.colors import to_hex

from helpers.pictures import guessed_next, staircase
from helpers.pictures.colours import FAINT, ORANGE
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


def test_the_guess_follows_the_larger_channel():
    shown = str(
        guessed_next([[0.6, 0.4], [0.1, 0.2], [1 / 6, 0.5 / 3]], ["a", "b", "c"], title="At “it”")
    )
    assert [line.split("  ")[0] for line in shown.splitlines()[-3:]] == [
        "a → slept",
        "b → cooled",
        "c → ???",
    ]
    assert "colours: 0 to 1" in shown and "animal  food" in shown


@pytest.mark.parametrize(
    ("outputs", "texts", "message"),
    [
        ([[1.0, 0.0, 0.0]], ["a"], r"\(n_text, 2\), got \(1, 3\)"),
        ([[1.0, 0.0]], ["a", "b"], "got 2"),
    ],
)
def test_guesses_need_two_channels_and_a_text_for_each_row(outputs, texts, message):
    with pytest.raises(ValueError, match=message):
        guessed_next(outputs, texts)
