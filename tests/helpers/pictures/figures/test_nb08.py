import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from helpers.pictures import turned_arrows
from helpers.pictures.colours import BLUE, LINE, ORANGE
from tests.helpers.pictures import reading


@pytest.mark.parametrize(
    ("pairs", "degrees"),
    [
        ([(4, 1), (5, 2), (25, 22)], 30),
        ([(0, 2.5), (3, 0), (9, 9), (0, 7)], -20.5),
        ([(1, 0), (22, 0)], 40),
    ],
)
def test_query_and_key_are_turned_and_the_arc_leads_from_one_to_the_other(pairs, degrees):
    shown = turned_arrows(pairs, degrees=degrees, title="Turned")
    (page,) = shown.figure().axes
    arrows = [note for note in page.texts if getattr(note, "arrow_patch", None)]
    colours = [to_hex(note.arrow_patch.get_facecolor()) for note in arrows]
    assert colours == [LINE, BLUE] * len(pairs)
    arcs = [line for line in page.lines if to_hex(line.get_color()) == ORANGE]
    dots = [line.get_xydata()[0] for line in page.lines if line.get_marker() == "o"]
    numbers = [t for t in page.texts if to_hex(t.get_color()) == ORANGE]
    headings = [t for t, _ in reading.texts_on(page) if t.startswith("query at")]
    assert headings == [f"query at {i}, key at {j}" for i, j in pairs]
    told = []
    for p, (i, j) in enumerate(pairs):
        dot, circle = dots[p], page.patches[p]
        wanted = np.exp(1j * np.radians([degrees * i, degrees * j + 40]))
        tips = [
            complex(*np.subtract(note.xy, note.xyann) * [1, -1]) for note in arrows[2 * p :][:2]
        ]
        assert all(np.allclose(note.xyann, dot) for note in arrows[2 * p :][:2])
        assert np.allclose(circle.center, dot)
        assert np.allclose(np.array(tips) / circle.radius, wanted, atol=1e-4)
        arc = (arcs[p].get_xydata() - dot) @ (1, -1j)
        assert np.allclose(arc[[0, -1]] / abs(arc[0]), wanted, atol=1e-6)
        between = np.degrees(abs(np.angle(wanted[1] / wanted[0])))
        assert np.degrees(np.abs(np.angle(arc[1:] / arc[:-1])).sum()) == pytest.approx(between)
        number_at = complex(*(numbers[p].get_position() - dot) * [1, -1])
        middle = np.angle(arc[29:31].sum())  # of 60 points
        assert np.angle(number_at) == pytest.approx(middle) and abs(number_at) > abs(arc[0]) + 5
        told.append(float(numbers[p].get_text().removesuffix("°")))
        assert told[-1] == pytest.approx(between, abs=0.051)
    assert all(f"{angle:g}°" in shown.alt or f"{angle}°" in shown.alt for angle in told)
    (table,) = reading.read_html(shown.html())
    (words,) = reading.in_words([table], str(shown))
    assert table.said() == words.said()
    at = np.array(pairs)
    angles = (degrees * at + [0, 40]) % 360
    assert np.allclose(table.numbers[:, :4], np.hstack([at, angles]), atol=0.006)
    assert np.allclose(table.numbers[:, 4], told, atol=0.06)
    assert table.columns[-1] == "angle between"
    assert ["outline" in style for style in table.styles[0]] == [False] * 4 + [True]
    rule = str(shown).splitlines()[1]
    assert rule.endswith(f"the key at 40°; each position turns them by {degrees}°.")
    assert rule in shown.html() and rule in dict(reading.texts_on(page))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: turned_arrows([(1, 2)] * 5, degrees=30), r"1 to 4 pairs .* got pairs \(5, 2\)"),
        (lambda: turned_arrows([(1, 2, 3)], degrees=30), r"got pairs \(1, 3\)"),
        (lambda: turned_arrows([(1, -2)], degrees=30), r"count from 0.* got \[\[1.0, -2.0\]\]"),
        (lambda: turned_arrows([(1, torch.inf)], degrees=30), "finite and at least 0"),
        (lambda: turned_arrows([(1, 2)], degrees=torch.nan), "degrees must be a finite number"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
