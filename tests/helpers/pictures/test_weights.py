import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from attention_base.numbers import number
from helpers.pictures import (
    score_arrows,
    softmax_steps,
    turned_arrows,
    weighted_sum,
    why_this_weight,
)
from helpers.pictures.colours import BLUE, LINE, ORANGE, PALE
from tests.helpers.pictures import reading

WORDS = ["Life", "is", "short"]
QUERY = torch.tensor([1.0, 2.0])
KEYS = torch.tensor([[0.5, -1.0], [3.0, 0.25], [-1.0, 0.75]])  # (3, 2)
VALUES = torch.tensor([[1.0, 0.0, 0.0, 2.0], [0.0, 4.0, 0.0, 2.0], [0.0, 0.0, 8.0, 2.0]])  # (3, 4)
SCORES = [1.0, 0.0, 2.0, 5.0]
ALLOWED = [True, True, True, False]


def test_arrows_point_as_their_vectors_and_tell_the_dot_product():
    keys = {"a": [1.0, 0.5], "b": [-2.0, 0.25]}
    shown = score_arrows(QUERY, keys, title="Fit")
    ax = shown.figure().axes[0]
    drawn = [note for note in ax.texts if getattr(note, "arrow_patch", None)]
    vectors = np.array([np.subtract(note.xy, note.xyann) * [1, -1] for note in drawn])
    unit = vectors[0, 0] / QUERY[0].item()
    assert np.allclose(vectors / unit, [QUERY, keys["a"], QUERY, keys["b"]], atol=1e-6)
    colours = [to_hex(note.arrow_patch.get_facecolor()) for note in drawn]
    assert colours == [LINE, BLUE, LINE, BLUE]
    assert [t.get_text() for t in ax.texts if "score " in t.get_text()] == [
        "score 2.00",
        "score -1.50",
    ]
    assert str(shown).splitlines() == [
        "Arrows: Fit",
        "query: (1, 2)",
        "key  channel 0  channel 1  score",
        "  a          1       0.50   2.00",
        "  b         -2       0.25  -1.50",
    ]


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ([1.0, 2.0], {"up": [0.5, 3.0], "left": [-2.0, 0.25], "down": [-1.0, -1.5]}),
        ([-3.0, 0.5], {"far": [4.0, 1.0], "near": [0.2, -0.1]}),
    ],
)
def test_each_panel_holds_the_arrow_the_name_and_the_score_of_one_key(query, keys):
    shown = score_arrows(query, keys)
    (page,) = shown.figure().axes
    places = dict(reading.texts_on(page))
    notes = [note for note in page.texts if getattr(note, "arrow_patch", None)]
    dots = [line.get_xydata()[0] for line in page.lines]
    scores = {}
    for i, (name, key) in enumerate(keys.items()):
        panel = notes[2 * i : 2 * i + 2]
        vectors = [np.subtract(note.xy, note.xyann) * [1, -1] for note in panel]  # y up
        assert all(np.allclose(note.xyann, dots[i]) for note in panel)
        pixels = np.linalg.norm(vectors[0]) / np.linalg.norm(query)
        assert np.allclose(vectors, np.multiply([query, key], pixels), atol=1e-4)
        x, y = places[name]
        assert all(y < end[1] for note in panel for end in (note.xy, note.xyann))
        (score,) = [t for t, at in places.items() if at[0] == x and at[1] > y and t != name]
        scores[name] = float(score.removeprefix("score "))
    assert scores == pytest.approx(
        {name: np.dot(query, key) for name, key in keys.items()}, abs=0.01
    )
    (table,) = reading.read_html(shown.html())
    (told,) = reading.in_words([table], str(shown))
    assert table.said() == told.said()
    assert table.columns == ["channel 0", "channel 1", "score"]
    assert np.allclose(table.numbers[:, :2], [*keys.values()], atol=0.01)
    assert dict(zip(table.names, table.numbers[:, 2], strict=True)) == scores
    for row in table.styles:
        assert ["outline" in style for style in row] == [False, False, True]
    asked = str(shown).splitlines()[1]
    assert np.allclose([float(q) for q in re.findall(r"-?[\d.]+", asked)], query, atol=0.01)
    assert asked.startswith("query: (") and asked in shown.html()


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
        assert places[name][0] == tip[0] and abs(places[name][1] - tip[1]) < 60
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


@pytest.mark.parametrize(
    ("scores", "allowed"),
    [(SCORES, ALLOWED), ([0.5, -1.0, 12.0, 11.0, 3.0], [True, True, True, True, False])],
)
def test_every_step_of_the_softmax_stands_under_its_key(scores, allowed):
    keys = [f"k{i}" for i in range(len(scores))]
    shown = softmax_steps(scores, allowed, labels=keys, title="One row")
    (page,) = shown.figure().axes
    (table,) = reading.read_html(shown.html())
    lines = [re.split(r"\s{2,}", line.strip()) for line in str(shown).splitlines()[1:]]
    grids = reading.grids_on(page)
    masked = torch.tensor(scores).masked_fill(~torch.tensor(allowed), -torch.inf)
    top = masked.max() if masked.max() > 10 else 0
    grown = (masked - top).exp()
    steps = torch.stack([torch.tensor(scores), masked, grown, masked.softmax(-1)])
    for r, (grid, values) in enumerate(zip(grids, steps, strict=True)):
        (row,) = grid
        assert [float(box.text) for box in row] == pytest.approx(values.tolist(), abs=0.0051)
        assert table.cells[r][:-1] == [box.text for box in row] == lines[r + 1][1 : 1 + len(row)]
        fills = [to_hex(style["background"]) for style in table.styles[r][:-1]]
        assert fills == [box.fill for box in row]
        total = table.cells[r][-1]
        beside = [
            t
            for t, (x, y) in reading.texts_on(page)
            if y == row[0].y + row[0].height / 2 and x > row[-1].x + row[-1].width
        ]
        assert "".join(beside) == total == "".join(lines[r + 1][1 + len(row) :])
        assert (total != "") == (r >= 2)
        if total:
            assert float(total.removeprefix("sum ")) == pytest.approx(
                values.sum().item(), abs=0.0051
            )
    assert table.columns == [*keys, ""] and lines[0] == keys
    assert [line[0] for line in lines[1:]] == table.names
    assert (table.caption, table.over) == ("One row", "key (who is read)")
    middles = [box.x + box.width / 2 for box in grids[0][0]]
    for key, x in zip(keys, middles, strict=True):
        above, below = sorted(at for text, at in reading.texts_on(page) if text == key)
        assert above[0] == below[0] == pytest.approx(x)
        assert above[1] < grids[0][0][0].y < grids[-1][0][0].y < below[1]
    bars = page.containers[0]
    assert [bar.get_x() + bar.get_width() / 2 for bar in bars] == pytest.approx(middles)
    heights = np.array([bar.get_height() for bar in bars])
    assert np.allclose(heights / heights.sum(), steps[-1], atol=1e-6)
    (line,) = page.lines
    assert {bar.get_y() for bar in bars} == set(line.get_ydata())  # they stand on it


def test_softmax_steps_end_in_the_softmax():
    shown = str(softmax_steps(SCORES, ALLOWED, labels=list("abcd")))
    weights = torch.softmax(torch.tensor([1.0, 0.0, 2.0, -torch.inf]), -1)
    last = shown.splitlines()[-1]
    assert re.findall(r"\d\.\d\d", last) == [f"{w:.2f}" for w in weights[:3]] + ["1.00"]
    assert last.split()[-3] == "0"  # exp turns -inf into nothing at all
    assert "exp(score)  " in shown and "7.39" in shown  # as in the formula
    assert shown.splitlines()[3].split() == ["masked", "1.00", "0", "2.00", "-inf"]
    large = str(softmax_steps([11.0, 12.0, 99.0], [True, True, False]))
    assert "exp(score - 12" in large  # the largest that may be seen, not the largest
    assert "exp(score - (-20" in str(softmax_steps([-20.0, -21.0]))


def test_the_bars_of_the_softmax_are_as_long_as_its_weights():
    ax = softmax_steps(SCORES, ALLOWED).figure().axes[0]
    heights = np.abs([bar.get_height() for bar in ax.containers[0]])
    weights = torch.softmax(torch.tensor([1.0, 0.0, 2.0, -torch.inf]), -1).numpy()
    assert np.allclose(heights / heights.sum(), weights, atol=1e-6)


def test_why_this_weight_follows_the_formula():
    shown = str(why_this_weight(QUERY, KEYS, VALUES, 1, words=WORDS))
    scores = KEYS @ QUERY
    weights = torch.softmax(scores / 2**0.5, dim=-1)
    out = weights @ VALUES
    first, second, third = (part.splitlines() for part in shown.split("\n\n")[1:])
    assert first[0] == "The products add up to the score: 3.50."
    assert [line.split()[-3:] for line in first[2:]] == [
        ["1", "3.00", "3.00"],
        ["2", "0.25", "0.50"],
    ]
    for row, word in enumerate(WORDS):
        numbers = [scores[row], scores[row] / 2**0.5, weights[row]]
        assert second[2 + row].split() == [word, *map(number, numbers)]
    assert [line.split()[-1] for line in third[2:]] == [number(o) for o in out]
    assert third[3].split()[1:3] == ["4", f"{4 * weights[1]:.2f}"]
    assert "× 0.87" in third[1]


def test_the_weight_that_is_explained_is_marked():
    shown = why_this_weight(QUERY, KEYS, VALUES, 2, words=WORDS)
    ax = shown.figure().axes[0]
    bars = ax.containers[0]
    widths = np.array([bar.get_width() for bar in bars])
    weights = torch.softmax(KEYS @ QUERY / 2**0.5, -1).numpy()
    assert np.allclose(widths / widths.sum(), weights, atol=1e-6)
    assert [to_hex(bar.get_facecolor()) for bar in bars] == [BLUE, BLUE, ORANGE]
    frames = [patch for patch in ax.patches if not patch.get_fill()]
    assert len(frames) == 3 + 4 + 1  # a row of scores, the shares, and the sum of the products
    assert shown.html().count("outline:2px") == 3 + 4


@pytest.mark.parametrize("j", [0, 2])
def test_arrows_lead_from_the_score_to_its_key_and_from_its_weight_to_the_shares(j):
    (page,) = why_this_weight(QUERY, KEYS, VALUES, j, words=WORDS).figure().axes
    products, weights, shares, (((score,),)) = reading.grids_on(page)
    row = weights[j]
    assert score.text == row[0].text and score.marked
    assert score.x == products[-1][2].x and score.y > products[-1][2].y  # below the products
    assert [[box.marked for box in line] for line in weights] == [[r == j] * 3 for r in range(3)]
    assert [[box.marked for box in line] for line in shares] == [[False, True, False]] * 4
    first, second = [line.get_xydata() for line in page.lines]
    bar = page.containers[0][j]
    middle = row[0].y + row[0].height / 2
    assert bar.get_y() + bar.get_height() / 2 == pytest.approx(middle)
    assert first[0, 0] > score.x + score.width and first[0, 1] == score.y + score.height / 2
    assert score.x + score.width < first[-1, 0] < weights[0][0].x and first[-1, 1] == middle
    assert row[-1].x + row[-1].width < bar.get_x() < second[0, 0] and second[0, 1] == middle
    assert bar.get_x() + bar.get_width() < second[0, 0]
    assert second[-1, 0] < shares[0][0].x
    assert shares[0][0].y < second[-1, 1] < shares[-1][0].y + shares[-1][0].height
    for elbow, tip in zip((first, second), page.patches[-2:], strict=True):
        for (a, b), (c, d) in pairwise(elbow):
            assert a == c or b == d  # level or upright
        (x, y) = tip.get_xy()[2]
        assert y == elbow[-1, 1] and x > elbow[-1, 0]


def test_whole_scores_are_written_alike_everywhere():
    shown = why_this_weight([1.0, 2.0], [[3.0, 4.0], [0.0, 1.0]], [[1.0], [2.0]], 0)
    assert "add up to the score: 11." in str(shown)
    (page,) = shown.figure().axes
    *_, (((score,),)) = reading.grids_on(page)
    assert score.text == reading.read_html(shown.html())[1].cells[0][0] == "11"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: softmax_steps(KEYS), r"one row.*\(3, 2\)"),
        (lambda: score_arrows(QUERY, {}), "1 to 6 keys, got 0"),
        (lambda: score_arrows([1.0], {"a": QUERY}), r"query must be two .*got \[1.0\]"),
        (lambda: score_arrows(QUERY, {"a": [1.0, torch.nan]}), "the key 'a' must be two finite"),
        (lambda: turned_arrows([(1, 2)] * 5, degrees=30), r"1 to 4 pairs .* got pairs \(5, 2\)"),
        (lambda: turned_arrows([(1, 2, 3)], degrees=30), r"got pairs \(1, 3\)"),
        (lambda: turned_arrows([(1, -2)], degrees=30), r"count from 0.* got \[\[1.0, -2.0\]\]"),
        (lambda: turned_arrows([(1, torch.inf)], degrees=30), "finite and at least 0"),
        (lambda: turned_arrows([(1, 2)], degrees=torch.nan), "degrees must be a finite number"),
        (lambda: softmax_steps([1.0, -torch.inf]), "allowed=, not as -inf"),
        (lambda: softmax_steps([1.0, 2.0], [False, False]), "0/0 is nan"),
        (lambda: softmax_steps([1.0, 2.0], labels=["a"]), "each of the 2 scores, got 1"),
        (lambda: why_this_weight(KEYS, KEYS, VALUES, 0), r"shape \(2,\), got \(3, 2\)"),
        (lambda: why_this_weight(QUERY, KEYS, VALUES[:2], 0), "3 keys and 2 values"),
        (lambda: why_this_weight(QUERY, KEYS, VALUES, 3), "from 0 to 2, got 3"),
        (lambda: why_this_weight(QUERY * torch.nan, KEYS, VALUES, 0), "finite"),
        (lambda: why_this_weight(QUERY, KEYS, VALUES, 0, words=["a"]), "3 keys, got 1"),
        (lambda: why_this_weight(QUERY, KEYS.repeat(5, 1), VALUES.repeat(5, 1), 0), "up to 12"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_without_a_mask_there_is_no_masked_row():
    shown = str(softmax_steps([1.0, 0.0]))
    assert "masked" not in shown and "exp(score)" in shown
    assert "masked" in str(softmax_steps([1.0, 0.0], [True, False]))
