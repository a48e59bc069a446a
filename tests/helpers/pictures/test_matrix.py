import re

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from explorers.explorer import coloured_cells
from helpers.pictures import heatmap, heatmaps, softmax_steps
from helpers.pictures.colours import INFINITE, MASKED, NAN, paint
from tests.helpers.pictures import reading
from tests.helpers.pictures.examples import BIG, MAY, SCORES, WEIGHTS, WORDS

# --- Content ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "limits", "center"),
    [
        ({"matrix": WEIGHTS}, (0, 1), None),
        ({"matrix": SCORES}, (-3, 3), 0),
        ({"matrix": SCORES, "center": 1.0}, (-2, 4), 1),
        ({"matrix": [[0, 5], [2, 4]]}, (0, 5), None),
        ({"matrix": SCORES, "vmin": -1, "vmax": 4}, (-1, 4), 0),
        ({"matrix": SCORES, "vmax": 5}, (-5, 5), 0),
        ({"matrix": [[0.0, 0.0]]}, (0, 1), None),
        ({"matrix": [[9.0, 0.5]], "mask": [[False, True]]}, (0, 1), None),  # only what is seen
        ({"matrix": [[np.inf, np.nan]]}, (0, 1), None),
    ],
)
def test_limits_follow_the_values(options, limits, center):
    content = heatmap(options.pop("matrix"), **options).content
    assert (content.limits, content.center) == (limits, center)


def test_masked_and_not_finite_cells_have_their_own_looks():
    bad = WEIGHTS.copy()
    bad[0, 0], bad[1, 0], bad[2, 0] = np.nan, np.inf, -np.inf
    content = heatmap(bad, mask=MAY).content
    looks = [content.colours[at] for at in ((0, 0), (1, 0), (0, 5))]
    assert np.allclose(looks, [NAN, INFINITE, MASKED])
    assert content.texts[0][0] == "nan"
    assert content.texts[2][0] == "-inf"
    assert content.texts[0][5] == "–"


def test_it_leaves_its_input_alone():
    weights = torch.tensor(WEIGHTS, requires_grad=True)
    before = weights.detach().clone()
    heatmap(weights, mask=torch.tensor(MAY), vmin=0.2).png()
    assert torch.equal(weights, before)
    assert weights.requires_grad


# --- Drawn as a picture -----------------------------------------------------------------------


def test_the_artists_show_their_content():
    shown = heatmap(WEIGHTS, rows={"reader": WORDS}, cols={"read": WORDS}, mask=MAY, title="Means")
    figure = shown.figure()
    ax = figure.axes[0]
    assert [label.get_text() for label in ax.get_xticklabels()] == WORDS
    assert [label.get_text() for label in ax.get_yticklabels()] == WORDS
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("read", "reader")
    assert [text.get_text() for text in figure.texts] == ["Means"]
    numbers = {text.get_position(): text.get_text() for text in ax.texts}
    assert len(numbers) == 21  # no number in a masked cell
    assert numbers[1, 4] == "0.20"  # column 1, row 4
    assert ax.get_ylim() == (5.5, -0.5)  # row 0 is on top
    cells, hatched = ax.collections[:2]
    assert np.array_equal(cells.get_array(), shown.content.colours)
    assert hatched.get_hatch()
    assert len(hatched.get_paths()) == 15


UNLIKE = np.random.default_rng(1).uniform(0, 1, (13, 15))  # no two rows, columns or cells alike
HEADS = np.random.default_rng(2).uniform(-3, 2, (3, 2, 4))  # (n_head, T_q, T_k)


@pytest.mark.parametrize(
    ("matrix", "options", "ends"),
    [
        (UNLIKE, {}, {0: "0", 1: "1"}),
        (-3 * UNLIKE.T, {"vmin": -3, "vmax": 1}, {-3: "-3", 0: "0", 1: "1"}),
        (UNLIKE, {"center": 0.25, "vmin": -0.5}, {-0.5: "-0.50", 0.25: "0.25", 1: "1"}),
        (UNLIKE, {"vmax": 2}, {0: "0", 2: "2"}),
    ],
)
def test_the_colours_mean_the_values_by_the_colour_bar(matrix, options, ends):
    ax, bar = heatmap(matrix, **options).figure().axes
    drawn, scale = reading.read_heatmap(ax), reading.read_bar(bar)
    assert scale[2] == ends
    step = (max(ends) - min(ends)) / 100
    assert np.abs(reading.values_by(scale, drawn.colours) - matrix).max() < step
    assert not drawn.texts and not drawn.masked


@pytest.mark.parametrize("head", range(3))
def test_every_head_is_drawn_under_its_name_with_its_own_cells(head):
    names = {"rows": ["q a", "q b"], "cols": {"read": list("wxyz")}}
    hidden = np.zeros((2, 4), bool)
    hidden[1, head] = True
    shown = heatmaps(
        {f"n{h}": HEADS[h] for h in range(3)}, **names, titles=["first", "second", "third"],
        mask={f"n{head}": ~hidden}, outline={f"n{head}": [(0, 3), (1, 2)]}, title="All heads",
    )  # fmt: skip
    figure = shown.figure()
    assert [text.get_text() for text in figure.texts] == ["All heads"]
    maps = [reading.read_heatmap(ax) for ax in figure.axes]
    assert [drawn.title for drawn in maps] == ["first", "second", "third"]
    drawn = maps[head]
    assert drawn.names == ("query (who reads)", "read")
    assert drawn.labels == ({0: "q a", 1: "q b"}, dict(enumerate("wxyz")))
    assert drawn.masked == {(1, head)}
    assert drawn.outlined == {(0, 3), (1, 2)}
    assert not maps[head - 1].masked and not maps[head - 1].outlined
    for (r, c), text in drawn.texts.items():
        assert float(text) == pytest.approx(HEADS[head][r, c], abs=0.006)
        assert reading.contrast(drawn.inks[r, c], drawn.colours[r, c]) >= 4.5
        # Blue below zero, red above it, stronger where it is farther away.
        red, _, blue = drawn.colours[r, c]
        assert (red > blue) == (HEADS[head][r, c] > 0)
    lefts = [ax.get_position().x0 for ax in figure.axes]
    assert lefts == sorted(lefts)


def test_above_twelve_a_colour_bar_stands_for_the_numbers():
    ax, bar = heatmap(BIG).figure().axes
    assert not ax.texts
    assert [label.get_text() for label in bar.get_yticklabels()] == ["0", "1"]
    assert len(heatmap(BIG, annotate=True).figure().axes[0].texts) == 400
    assert not heatmap(WEIGHTS, annotate=False).figure().axes[0].texts


def test_into_an_axes_of_your_own():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    shown = heatmap(WEIGHTS, ax=right, title="Right", rows="$q$", cols="$k$")
    assert not right.yaxis.label.get_parse_math() and not right.xaxis.label.get_parse_math()
    assert right.get_title(loc="left") == "Right"
    assert len(right.texts) == 36
    assert not left.texts
    assert shown.figure() is figure
    assert shown.png().startswith(b"\x89PNG")


def test_all_cells_of_a_picture_have_one_size():
    shown = heatmaps({"w": WEIGHTS, "x": SCORES[:, :2], "row": SCORES[:1]}, mask={"w": MAY})
    sizes = [
        np.abs(np.subtract(*ax.transData.transform([(0, 0), (1, 1)]))) for ax in shown.figure().axes
    ]
    assert np.allclose(sizes, sizes[0], atol=1e-6)


def test_long_labels_are_turned_and_many_are_thinned_out():
    def labels(matrix, cols):
        ax = heatmap(matrix, cols=cols).figure().axes[0]
        return [(label.get_text(), label.get_rotation()) for label in ax.get_xticklabels()]

    assert labels(WEIGHTS, WORDS) == [(word, 0) for word in WORDS]
    long = ["extraordinarily"] * 6
    assert labels(WEIGHTS, long) == [(word, 45) for word in long]
    assert labels(BIG, None) == [(str(i), 0) for i in range(20)]
    assert labels(np.zeros((60, 60)), None) == [(str(i), 0) for i in range(0, 60, 5)]


def test_each_letter_of_a_word_has_its_label_beside_other_heatmaps():
    word = "watermelonpie" * 2
    maps = {name: np.zeros((13, 26)) for name in "abcd"}
    for ax in heatmaps(maps, cols=list(word)).figure().axes[::2]:  # every other one is a bar
        assert [(t.get_text(), t.get_rotation()) for t in ax.get_xticklabels()] == [
            (letter, 0) for letter in word
        ]
    numbers = heatmaps(maps, cols=[*map(str, range(26))]).figure().axes[0]
    assert len(numbers.get_xticklabels()) == 13, "two digits need more room"


def test_alt_says_what_the_picture_is():
    alt = heatmap(WEIGHTS, mask=MAY, title="Means").alt
    assert "“Means”: 6 by 6 cells" in alt
    assert "row = query (who reads), column = key (who is read)" in alt
    assert "15 masked" in alt


def test_the_table_has_headers_numbers_and_safe_texts():
    html = heatmap(
        WEIGHTS, rows=WORDS, cols=["<b>", *WORDS[1:]], mask=MAY, title="a & b", outline=[(2, 1)]
    ).html()
    assert html.count('scope="row"') == 6
    assert html.count('scope="col"') == 7
    assert html.count('title="masked"') == 15
    assert html.count(">0.33</td>") == 3
    assert html.count("outline:3px") == 1
    assert "a &amp; b</caption>" in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert heatmap(BIG).html().count("</td>") == 401  # numbers stay, for screen readers


# --- Told in words ----------------------------------------------------------------------------


def test_the_text_version():
    shown = heatmap(
        [[1.0, 0.5], [np.nan, 0.25]],
        rows=["a", "bb"],
        mask=[[True, False], [True, True]],
        title="Two tokens",
        outline=[(1, 1)],
    )
    assert str(shown).splitlines() == [
        "Heatmap: Two tokens",
        "row = query (who reads), column = key (who is read)",
        "colours: 0 to 1",
        "mask: 1 of 4 cells may not attend, written –",
        "not finite: row 1, column 0 is nan",
        "outlined: row 1, column 1",
        "       0     1",
        "a   1.00     –",
        "bb   nan  0.25",
    ]


@pytest.mark.parametrize(
    "matrix", [WEIGHTS, SCORES[:, :2], BIG, -BIG], ids=["6", "6x2", "20", "-20"]
)
def test_every_change_changes_the_text_version(matrix):
    n_row, n_col = matrix.shape
    one = matrix.copy()
    one[n_row - 1, 1] += 0.03
    swapped = matrix.copy()
    swapped[2, [1, n_col - 2]] = matrix[2, [n_col - 2, 1]]
    hidden = np.ones_like(matrix, dtype=bool)
    hidden[3, 0] = False
    texts = [
        str(heatmap(m, **options))
        for m, options in [
            (matrix, {}),
            (matrix.T, {}),
            (one, {}),
            (swapped, {}),
            (matrix[::-1], {}),
            (np.roll(matrix, 1, axis=1), {}),
            (matrix, {"mask": hidden}),
            (matrix, {"vmax": 7}),
            (matrix, {"center": 0.5}),
            (matrix, {"rows": "row"}),
            (matrix, {"rows": [f"r{i}" for i in range(n_row)]}),
            (matrix, {"cols": [f"c{i}" for i in range(n_col)]}),
            (matrix, {"title": "title"}),
            (matrix, {"outline": [(0, 0)]}),
        ]
    ]
    assert len(set(texts)) == len(texts)


def test_rounded_numbers_hide_no_change():
    whole, half = np.array([[8.0, 6.0]]), np.array([[8.0, 6.3]])
    assert str(heatmap(whole, fmt=".0f")).endswith("8  6")
    assert str(heatmap(half, fmt=".0f")).endswith("8.00  6.30")
    assert str(heatmap(half, mask=[[True, False]], fmt=".0f")).endswith("8  –")
    assert heatmap(whole).content.texts == [["8", "6"]]


def test_a_large_text_version_is_short():
    text = str(heatmap(np.linspace(0, 1, 128 * 128).reshape(128, 128)))
    assert len(re.findall(r"\d\.\d\d", text)) < 120


def test_strict_mode_refuses_a_text_version_that_could_flip(monkeypatch):
    monkeypatch.setenv("ATTENTION_STRICT", "1")
    with pytest.raises(ValueError, match=r"0\.125"):
        str(heatmap([[0.1250004, 0.5]]))


# --- Several ----------------------------------------------------------------------------------


def test_several_share_one_scale():
    shown = heatmaps({"small": WEIGHTS, "large": 4 * WEIGHTS}, mask={"large": MAY}, title="Both")
    assert "colours: 0 to 4" in str(shown)
    assert str(shown).count("mask: 15 of 36") == 1
    figure = shown.figure()
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["small", "large"]
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in figure.axes)
    small, large = (ax.collections[0].get_array() for ax in figure.axes)
    assert np.allclose([large[1, 0], small[0, 0]], paint(np.array([2, 1]), 0, 4, None))
    assert shown.html().count("<table") == 2


def test_the_same_weights_have_the_same_colours_in_every_picture():
    alone = heatmap(WEIGHTS, mask=MAY).content
    beside = heatmaps({"one": WEIGHTS[:2], "other": np.eye(6)}).figure().axes[0]
    assert np.allclose(beside.collections[0].get_array()[MAY[:2]], alone.colours[:2][MAY[:2]])
    live = coloured_cells(WEIGHTS, 0, 1)
    steps = softmax_steps(np.zeros(6), MAY[3]).figure().axes[0]
    for column in range(4):
        assert live[3][column].fill == alone.fills[3][column]
        assert reading.grids_on(steps)[-1][0][column].fill == alone.fills[3][column].code


def test_heads_are_named_and_broken_into_even_lines():
    shown = heatmaps(np.stack([np.eye(8)] * 4))
    assert all(f"head {h}" in str(shown) for h in range(4))
    tops = [round(ax.get_position().y1, 3) for ax in shown.figure().axes]
    assert tops[0] == tops[1] > tops[2] == tops[3]
    shown = heatmaps(np.stack([np.eye(6)] * 3))  # smaller cells rather than a second line
    assert len({round(ax.get_position().y1, 3) for ax in shown.figure().axes}) == 1
    named = heatmaps(torch.eye(4).repeat(2, 1, 1), titles=["one", "two"])
    assert "two" in str(named)


# --- Refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matrix", "options", "error", "words"),
    [
        (torch.zeros(6), {}, ValueError, r"the matrix must be 2-D.*\(6,\)"),
        (WEIGHTS, {"rows": WORDS[:4]}, ValueError, "one label for each of the 6 rows, got 4"),
        (WEIGHTS, {"cols": {"a": WORDS, "b": WORDS}}, ValueError, "one entry.*got 2"),
        (WEIGHTS, {"cols": {"key": "abcdef"}}, TypeError, "must be a list, got the str"),
        (torch.zeros(201, 3), {}, ValueError, r"200 rows and columns.*\(201, 3\).*x\[:200"),
        (WEIGHTS, {"mask": MAY[:3]}, ValueError, r"mask must have the shape.*got \(3, 6\)"),
        (WEIGHTS, {"vmin": 1, "vmax": 1}, ValueError, "vmin must be smaller than vmax.*1 and 1"),
        (WEIGHTS, {"vmin": 3}, ValueError, "limits 3 and 1"),
        (WEIGHTS, {"vmax": np.nan}, ValueError, "vmax must be a finite"),
        (
            WEIGHTS,
            {"center": 2, "vmin": 0, "vmax": 1},
            ValueError,
            r"between vmin and vmax, got 2, limits 0…1$",
        ),
        (WEIGHTS, {"fmt": "d"}, ValueError, "fmt must be"),
        (WEIGHTS, {"outline": [(6, 0)]}, ValueError, r"\(6, 0\)"),
        (WEIGHTS, {"outline": (0, 1)}, TypeError, r"as in \[\(0, 1\)\], got the int 0"),
        (WEIGHTS, {"outline": [(0, 1.5)]}, TypeError, "outline must be a whole number.*1.5"),
        (WEIGHTS, {"vmin": "0"}, TypeError, "vmin must be a finite number, got the str '0'"),
        (WEIGHTS, {"ax": 5}, TypeError, "ax must be matplotlib axes.*got the int 5"),
        (WEIGHTS, {"title": None}, TypeError, "title must be a text, got None; leave it out"),
        (WEIGHTS, {"rows": ""}, ValueError, "rows: the name of the axis is empty"),
        (WEIGHTS, {"annotate": "no"}, TypeError, "annotate must be True or False"),
    ],
)
def test_bad_input_is_refused_in_words(matrix, options, error, words):
    with pytest.raises(error, match=words):
        heatmap(matrix, **options)


def test_a_matrix_too_large_is_drawn_as_the_message_says():
    x = torch.randn(450, 300, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="room for 200 rows and columns") as refused:
        heatmap(x)
    part, mean = re.findall(r"as in (.+?\])(?:,? or|$)", str(refused.value))
    assert torch.equal(eval(part), x[:200, :200])
    blocks = eval(mean, {"torch": torch, "x": x})
    assert blocks.shape == (150, 100) and torch.isclose(blocks[0, 1], x[:3, 3:6].mean(), atol=1e-6)
    heatmap(blocks)


@pytest.mark.parametrize(
    ("matrices", "options", "words"),
    [
        ({"a": WEIGHTS}, {"outline": {"b": [(0, 1)]}}, r"outline .*got 'b'; .*\['a'\]"),
        (WEIGHTS, {}, r"dict of name -> matrix.*\(6, 6\)"),
        ({}, {}, "at least one matrix"),
        ({"a": WEIGHTS, "b": [1.0]}, {}, "the matrix 'b' must be 2-D"),
        ({"a": WEIGHTS}, {"titles": ["one", "two"]}, "one title for each of the 1 matrices, got 2"),
        ({"a": WEIGHTS}, {"mask": {"b": MAY}}, "mask names 'b'"),
        ({"a": WEIGHTS, "b": WEIGHTS[:2]}, {"rows": WORDS}, "each of the 2 rows, got 6"),
    ],
)
def test_bad_input_of_several_is_refused_in_words(matrices, options, words):
    with pytest.raises(ValueError, match=words):
        heatmaps(matrices, **options)
